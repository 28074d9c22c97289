"""Work in blocks: what an executor gives is what is done here, and what was done is kept."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from symdp import AccuracyError, InputError, mechanisms, sweep, sweep_in_folder
from symdp.blocks import kept_blocks
from symdp.individual import from_counts, from_mechanisms, in_folder

GRID = {"sigma": [2, 3, 4, 5, 6]}
BLOCKS = 12


def deadly(number: int, folder: str) -> bytes:
    """Return a block's bytes; the first worker that comes to block 7 kills itself."""
    if number == 7:
        try:
            Path(folder, "killed").touch(exist_ok=False)
        except FileExistsError:
            return b"7"
        os.kill(os.getpid(), signal.SIGKILL)
    Path(folder, f"made-{number}-{os.urandom(4).hex()}").touch()
    return str(number).encode()


def pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


@pytest.mark.slow
def test_a_killed_worker_costs_no_block_that_was_done(tmp_path):
    seen, folder = tmp_path / "seen", tmp_path / "kept"
    seen.mkdir()

    def asked(executor):
        return kept_blocks(
            folder, {"of": 1}, BLOCKS, deadly, lambda k: (k, str(seen)), ".txt", executor
        )

    with pool(2) as executor, pytest.raises(AccuracyError, match=r"\d+ of 12 blocks are kept"):
        asked(executor)
    kept = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.txt")}
    assert 1 <= len(kept) < BLOCKS
    with pool(2) as executor:
        found = asked(executor)
    assert [path.read_text() for path in found] == [str(k) for k in range(BLOCKS)]
    again = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.txt")}
    assert all(again[name] == time for name, time in kept.items())
    for name in kept:
        assert len(list(seen.glob(f"made-{int(name.split('-')[0])}-*"))) == 1


def test_a_damaged_block_is_made_again(tmp_path):
    calls = []

    def work(number):
        calls.append(number)
        return bytes([number])

    def asked():
        return kept_blocks(tmp_path, {}, 3, work, lambda k: (k,), ".bin")

    first = asked()
    first[1].write_bytes(b"other")
    assert [path.read_bytes() for path in asked()] == [b"\0", b"\1", b"\2"]
    assert calls == [0, 1, 2, 1]


def test_a_block_of_another_number_or_question_is_made_again(tmp_path):
    """Its bytes are whole, but its name says that they are the answer to something else."""
    calls = []

    def work(name, number):
        calls.append(name + str(number))
        return calls[-1].encode()

    def asked(name):
        return kept_blocks(tmp_path / name, {"of": name}, 2, work, lambda k: (name, k), ".txt")

    (one, two), (other, _) = asked("a"), asked("b")
    first, second = one.read_bytes(), two.read_bytes()
    for data, path in ((second, one), (first, two)):
        path.with_name(f"{path.name[:8]}-{path.name[9:]}").write_bytes(data)
    assert [path.read_bytes() for path in asked("a")] == [b"a0", b"a1"]
    calls.clear()
    digest = two.name.partition("-")[2]
    one.unlink()
    two.rename(two.with_name(f"00000000-{digest}"))
    other.rename(tmp_path / "a" / f"00000001-{other.name.partition('-')[2]}")
    assert [path.read_bytes() for path in asked("a")] == [b"a0", b"a1"]
    assert calls == ["a0", "a1"]


def test_a_folder_of_another_question_is_refused(tmp_path):
    sweep_in_folder(mechanisms.gaussian, GRID, 10, tmp_path, delta=1e-5, block=2)
    with pytest.raises(InputError, match="another question"):
        sweep_in_folder(mechanisms.gaussian, GRID, 11, tmp_path, delta=1e-5, block=2)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is no folder"):
        sweep_in_folder(mechanisms.gaussian, GRID, 11, tmp_path / "file", delta=1e-5)


def test_an_error_of_one_block_leaves_the_others(tmp_path):
    """Scales of 0 are refused when their turn comes."""
    grid = {"sigma": [2, 3, 0]}
    with ThreadPoolExecutor(1) as executor, pytest.raises(InputError, match="sigma"):
        sweep_in_folder(
            mechanisms.gaussian, grid, 10, tmp_path, delta=1e-5, block=1, executor=executor
        )
    assert len(list(tmp_path.glob("*.block"))) == 2


@pytest.mark.slow
def test_a_sweep_in_a_folder_is_the_sweep(tmp_path):
    steps, deltas = [1, 30], [1e-5, 1e-6]
    whole = sweep(mechanisms.gaussian, GRID, steps, delta=deltas)
    seen = []
    with pool(2) as executor:
        shared = sweep(mechanisms.gaussian, GRID, steps, delta=deltas, executor=executor)
        table = sweep_in_folder(
            mechanisms.gaussian, GRID, steps, tmp_path, delta=deltas, executor=executor, block=3,
            progress=lambda *at: seen.append(at),
        )  # fmt: skip
    assert shared.to_csv() == table.read_text() == whole.to_csv()
    assert seen == [(k, 4) for k in (1, 2, 3, 4)]


@pytest.mark.slow_cases("mechanisms", "levels")
@pytest.mark.parametrize("by", ["levels", "mechanisms"])
def test_records_in_a_folder_are_the_records(tmp_path, by):
    counts = np.arange(14).reshape(7, 2) * 10
    if by == "levels":
        rate = np.linspace(0.01, 0.03, 7)[:, None]
        accountant = from_counts([1.0, 2.0], counts, rate, ids=[f"r{k}" for k in range(7)])
    else:
        kinds = [mechanisms.gaussian(sigma=4), mechanisms.laplace(b=50)]
        accountant = from_mechanisms(kinds, counts[:3])
    whole = accountant.epsilon(1e-5)
    with pool(2) as executor:
        files = in_folder(accountant, tmp_path / "a", delta=1e-5, block=2, executor=executor)
    found = {name: np.concatenate([np.load(f)[name] for f in files]) for name in whole.columns()}
    np.testing.assert_allclose(found["epsilon"], whole.epsilon, rtol=1e-12)
    assert found["id"].tolist() == whole.columns()["id"].tolist()
    each = np.linspace(0.1, 1.0, len(accountant))
    files = in_folder(accountant, tmp_path / "b", epsilon=each, block=3)
    logs = np.concatenate([np.load(file)["log_delta"] for file in files])
    np.testing.assert_allclose(logs, accountant.delta(each).log_delta, rtol=1e-9)
    with pytest.raises(InputError, match="another question"):
        in_folder(accountant, tmp_path / "b", epsilon=2 * each, block=3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_of_two_workers(tmp_path):
    """A thousandth of 10⁶ points and of 10⁸ records."""
    distributed = pytest.importorskip("distributed")
    sigmas = np.linspace(5, 50, 1000)
    counts = np.random.default_rng(3).integers(0, 500, (100_000, 3))
    np.save(tmp_path / "counts.npy", counts)
    mapped = np.load(tmp_path / "counts.npy", mmap_mode="r")
    records = from_counts([1.0, 2.0, 4.0], mapped, 0.01)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        table = sweep_in_folder(
            mechanisms.gaussian, {"sigma": sigmas}, 10, tmp_path / "s", delta=1e-5,
            executor=executor, block=50,
        )  # fmt: skip
        files = in_folder(records, tmp_path / "r", delta=1e-5, executor=executor, block=10_000)
    text = sweep(mechanisms.gaussian, {"sigma": sigmas[:3]}, 10, delta=1e-5).to_csv()
    assert table.read_text().startswith(text)
    assert len(table.read_text().splitlines()) == 1001
    epsilons = np.concatenate([np.load(file)["epsilon"] for file in files])
    few = from_counts([1.0, 2.0, 4.0], counts[::10_000], 0.01).epsilon(1e-5).epsilon
    np.testing.assert_allclose(epsilons[::10_000], few, rtol=1e-9)
