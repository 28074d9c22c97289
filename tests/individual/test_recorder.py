"""Recording norms: buckets that never round down, inputs, commits, and what is refused."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from symdp.cli import main
from symdp.errors import InputError
from symdp.individual import Recorder, from_counts, open_accountant, recorder
from symdp.individual.norms import NormGrid
from symdp.individual.published import _inner

RUN = {"multiplier": 1.0, "clip": 2.0, "rate": 0.01}


def norms(steps=60, records=5, seed=1):
    random = np.random.default_rng(seed)
    values = 2.0 * random.lognormal(-1.5, 0.8, (steps, records))
    values[:, 0] = 2.0
    values[:, 1] = 0.0
    return values.astype(np.float32)


@pytest.mark.parametrize("grid", ["norm:256", "norm:7", "geometric:64", [0.1, 0.5, 1.0]])
@pytest.mark.parametrize("clip", [1.0, 0.79, 3.3])
def test_no_norm_is_counted_as_smaller(grid, clip):
    made = NormGrid.parse(grid)
    random = np.random.default_rng(0)
    shares = np.concatenate([random.random(2000), made.edges, np.nextafter(made.edges, 0)])
    values = np.minimum((shares * clip).astype(np.float32), np.float32(clip))
    places = made.place_scaled(values, clip)
    upper = np.concatenate([[0.0], made.edges])[places]
    assert (upper >= values.astype(np.float64) / clip * (1 - 1.3e-7)).all()
    _, above = made.levels(1.0)
    assert (1.0 / above[places] <= values.astype(np.float64) / clip).all()
    assert (made.place_scaled(np.zeros(1, np.float32), clip) == 0).all()


def test_steps_and_arrays_count_the_same(tmp_path):
    values = norms()
    one = Recorder(tmp_path / "one", 5, **RUN)
    for row in values:
        one.step(row)
    found = []
    for layout, array in (("steps-records", values), ("records-steps", values.T.copy())):
        path = tmp_path / f"{layout}.npy"
        np.save(path, array)
        run = Recorder(tmp_path / layout, 5, **RUN)
        run.add(path, layout)
        found.append(run.accountant().counts)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(one.accountant().counts, found[0])


def test_few_rows_at_a_time_count_the_same(tmp_path, monkeypatch):
    """Counts are added in blocks of rows; here a block is two of five records."""
    values = norms()
    found = []
    for name, block in (("whole", recorder._BLOCK), ("parts", 2 * 256)):
        monkeypatch.setattr(recorder, "_BLOCK", block)
        run = Recorder(tmp_path / name, 5, **RUN, grid="norm:255")
        for row in values[:30]:
            run.step(row)
        run.add(values[30:], "steps-records")
        found.append(run.accountant().counts)
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0].sum() == values.size


@pytest.mark.slow
def test_results_enclose_the_norms_themselves(tmp_path):
    values = norms(steps=30, records=4).astype(np.float64)
    values = np.where(values > 0.0, np.ceil(2.0 * values) / 2.0 - 0.01, 0.0)  # few kinds of steps
    run = Recorder(tmp_path / "run", 4, **RUN, adaptive=False)
    run.add(values, "steps-records")
    found = run.accountant().epsilon(1e-5)
    assert set(found.kind) == {"exact"}
    assert found.epsilon[1] == 0.0
    clipped = np.minimum(values, 2.0)
    with np.errstate(divide="ignore"):
        noise, many = np.unique(2.0 / clipped[:, 2], return_counts=True)
    exact = from_counts(noise, many[None, :], 0.01).epsilon(1e-5).epsilon[0]
    assert found.lower[2] <= exact <= found.epsilon[2] <= found.upper[2]


def test_squared_and_refused(tmp_path):
    run = Recorder(tmp_path / "squared", 2, **RUN, squared=True)
    run.step([4.0, 1.0])
    assert run.accountant().counts[:, [128, 256]].tolist() == [[0, 1], [1, 0]]
    strict = Recorder(tmp_path / "strict", 2, **RUN, above="refuse")
    with pytest.raises(InputError, match=r"records 1 \(1 in all\) lie above the clip"):
        strict.step([1.0, 2.5])
    assert strict.steps == 0


@pytest.mark.slow
def test_parts_of_the_records_and_active_ones(tmp_path):
    run = Recorder(tmp_path / "run", 3, **RUN, ids=["a", "b", "c"])
    run.step([1.0, 1.0, 1.0])
    run.step([0.5], ids=["b"], rest="clip")
    run.step([2.0, 2.0, 2.0], active=[True, False, True])
    counts = run.accountant().counts
    assert counts[:, [0, 64, 128, 256]].tolist() == [[0, 0, 1, 2], [1, 1, 1, 0], [0, 0, 1, 2]]
    assert not run.stale
    run.step([0.5], ids=["c"], rest="stale")
    assert run.stale
    assert "estimate" in set(run.accountant().epsilon(1e-5).kind)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda run: run.step([1.0]), "give ids= and rest="),
        (lambda run: run.step([1.0, np.nan, -1.0]), "records 1, 2 (2 in all)"),
        (lambda run: run.step([1.0], ids=["a"]), "rest = None"),
        (lambda run: run.step([1.0], ids=["z"], rest="clip"), "'z' is no record"),
        (lambda run: run.step([1.0, 1.0], ids=["a", "a"], rest="clip"), "twice"),
        (lambda run: run.step([1.0, 1.0, 1.0], number=5), "the next step is 1"),
        (lambda run: run.add(np.ones((4, 3)), None), "it is not guessed"),
        (lambda run: run.add(np.ones((4, 2)), "steps-records"), "norms of 2 records"),
        (lambda run: run.add(np.ones((0, 3)), "steps-records"), "there are none"),
        (lambda run: run.add("missing.npy", "steps-records"), "cannot be read"),
        (lambda run: run.segment(1.0, 1.0, 1.5), "rate = 1.5"),
    ],
)
def test_bad_input_counts_nothing(tmp_path, call, said):
    run = Recorder(tmp_path / "run", 3, **RUN, ids=["a", "b", "c"])
    with pytest.raises(InputError) as refusal:
        call(run)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert run.accountant().counts.sum() == 0
    assert run.steps == 0


def test_commit_and_resume(tmp_path):
    values = norms()
    folder = tmp_path / "run"
    run = Recorder(folder, 5, **RUN)
    for row in values[:20]:
        run.step(row)
    run.commit()
    run.step(values[20])  # never committed: forgotten
    again = Recorder(folder, 5, **RUN)
    assert again.steps == 20
    for row in values[20:]:
        again.step(row)
    again.commit()
    whole = Recorder(tmp_path / "whole", 5, **RUN)
    whole.add(values, "steps-records")
    np.testing.assert_array_equal(open_accountant(folder).counts, whole.accountant().counts)
    with pytest.raises(InputError, match="another writer"):
        run.commit()
    with pytest.raises(InputError, match="multiplier, clip or rate differ"):
        Recorder(folder, 5, multiplier=2.0, clip=2.0, rate=0.01)
    (folder / "run.json").write_text((folder / "run.json").read_text().replace('"steps"', '"s"'))
    with pytest.raises(InputError, match="checksum"):
        open_accountant(folder)


def test_a_new_clip_is_a_new_segment(tmp_path):
    run = Recorder(tmp_path / "run", 1, **RUN, adaptive=False)
    for _ in range(100):
        run.step([2.0])
    run.segment(2.0, 4.0, 0.02)
    for _ in range(100):
        run.step([2.0])
    run.commit()
    found = open_accountant(tmp_path / "run").epsilon(1e-5)
    known = from_counts([1.0, 4.0], [[100, 100]], [0.01, 0.02]).epsilon(1e-5)
    assert found.epsilon[0] == pytest.approx(known.epsilon[0], rel=1e-9)


def test_counts_widen(tmp_path):
    run = Recorder(tmp_path / "run", 1, **RUN, grid="norm:2")
    run.add(np.full((1, 70_000), 2.0, dtype=np.float32), "records-steps")
    counts = run.accountant().counts
    assert counts.dtype == np.uint32
    assert counts.tolist() == [[0, 0, 70_000]]


def test_parquet_long_and_wide(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    values = norms(steps=4, records=3)
    wide = pa.table({f"step{j}": values[j] for j in range(4)})
    pq.write_table(wide, tmp_path / "wide.parquet")
    record, step = np.meshgrid(np.arange(3), np.arange(4), indexing="ij")
    long = {"record": record.ravel(), "step": step.ravel(), "norm": values.T.ravel()}
    pq.write_table(pa.table(long), tmp_path / "long.parquet")
    tables = []
    for name in ("wide", "long"):
        run = Recorder(tmp_path / name, 3, **RUN)
        run.add(tmp_path / f"{name}.parquet", "records-steps")
        tables.append(run.accountant().counts)
    np.testing.assert_array_equal(*tables)
    short = {name: column[:-1] for name, column in long.items()}
    pq.write_table(pa.table(short), tmp_path / "short.parquet")
    with pytest.raises(InputError, match="1 norms of 3 records × 4 steps are missing"):
        run.add(tmp_path / "short.parquet", "records-steps")


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_files_are_complete_or_absent(tmp_path, ending):
    found = from_counts([1.0, 4.0], [[10, 5], [0, 20]], 0.02, ids=["a", "b"]).epsilon(1e-5)
    path = tmp_path / f"out.{ending}"
    found.save(path)
    if ending == "npz":
        stored = np.load(path)
    else:
        import pyarrow.parquet as pq

        stored = pq.read_table(path).to_pydict()
    assert list(stored["id"]) == ["a", "b"]
    assert list(stored["epsilon"]) == found.epsilon.tolist()
    assert list(stored["kind"]) == ["exact", "exact"]
    with pytest.raises(InputError, match="cannot be written"):
        found.save(tmp_path / "nowhere" / f"out.{ending}")
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name]
    with pytest.raises(InputError, match="must end in"):
        found.save(tmp_path / "out.txt")


def test_groups_and_quantiles():
    found = from_counts([1.0], [[10], [20], [30], [40]], 0.02, "remove").epsilon(1e-5)
    table = found.by_group(["a", "a", "b", "b"])
    assert table["a"]["max"] == found.epsilon[1]
    assert table["b"]["count"] == 2
    assert found.quantiles([0.0, 1.0]) == {0.0: found.epsilon[0], 1.0: found.epsilon[3]}
    with pytest.raises(InputError, match="one label each"):
        found.by_group(["a"])


def many():
    random = np.random.default_rng(4)
    return from_counts([1.0, 3.0, 9.0], random.integers(50, 400, (4100, 3)), 0.01, "remove")


@pytest.mark.slow
def test_a_process_pool_gives_the_same():
    records = many()
    with ProcessPoolExecutor(2) as pool:
        shared = records.epsilon(1e-6, executor=pool)
    np.testing.assert_allclose(shared.epsilon, records.epsilon(1e-6).epsilon, rtol=1e-11)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_gives_the_same():
    distributed = pytest.importorskip("distributed")
    records = many()
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        shared = records.epsilon(1e-6, executor=client.get_executor())
    np.testing.assert_allclose(shared.epsilon, records.epsilon(1e-6).epsilon, rtol=1e-11)


@pytest.mark.slow
def test_the_command_line(tmp_path, capsys):
    values = norms(steps=600, records=4)
    np.save(tmp_path / "norms.npy", values)
    (tmp_path / "labels.txt").write_text("x x y y")
    words = ["individual", str(tmp_path / "norms.npy"), "--delta", "1e-5"]
    settings = ["--multiplier", "1", "--clip", "2", "--rate", "0.01"]
    assert main([*words, *settings]) == 2
    assert "--layout" in capsys.readouterr().err
    words += [*settings, "--layout", "steps-records", "--groups", str(tmp_path / "labels.txt")]
    words += ["--keep", str(tmp_path / "run"), "-o", str(tmp_path / "out.npz")]
    words += ["--plot", str(tmp_path / "h.svg"), "--json", "--mu-floor", "1e-6", "--grid", "norm:8"]
    assert main(words) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["kinds"] == {"estimate": 4}
    assert set(first["groups"]) == {"x", "y"}
    stored = np.load(tmp_path / "out.npz")
    assert stored["epsilon"].max() == first["quantiles"]["1"]
    assert "mu_floor_1e-06" in stored
    assert (tmp_path / "h.svg").stat().st_size > 1000
    assert main(["individual", str(tmp_path / "run"), "--delta", "1e-5", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["quantiles"] == first["quantiles"]


def test_the_filter_on_the_command_line(tmp_path, capsys):
    file = str(tmp_path / "f.json")
    assert main(["filter", "new", file, "--epsilon", "1", "--delta", "1e-5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "bound"
    assert main(["filter", "commit", file, "0.2", "--step", "1"]) == 0
    assert main(["filter", "commit", file, "0.2", "--step", "1"]) == 2
    assert main(["filter", "ask", file, "0.2"]) == 1
    assert main(["filter", "commit", file, "nan"]) == 2
    assert main(["filter", "new", file, "--budget", "9"]) == 2
    capsys.readouterr()
    assert main(["filter", "status", file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 1


def _tree(folder):
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.suffix != ".lock"}


def test_the_same_norms_are_counted_once(tmp_path, shell):
    """Once more by mistake, 100 steps became 200 and ε 0.718 became 0.912, silently."""
    values = norms(steps=100, records=4)
    np.save(tmp_path / "norms.npy", values)
    np.save(tmp_path / "more.npy", values[::-1])
    settings = (
        "--multiplier 1 --clip 2 --rate 0.01 --delta 1e-5 --method renyi --json --grid norm:8"
    )
    line = f"individual {tmp_path}/norms.npy {settings} --keep {tmp_path}/run"
    first = shell(f"{line} --layout steps-records").json
    kept = _tree(tmp_path / "run")
    np.save(tmp_path / "norms.npy", values.T)  # another layout, the same norms
    again = shell(f"{line} --layout records-steps -o {tmp_path}/out.npz")
    assert (again.code, again.out) == (2, "")
    assert "--again" in again.err.splitlines()[-1]  # after a note on norms above the clip
    assert _tree(tmp_path / "run") == kept
    assert not (tmp_path / "out.npz").exists()
    assert (
        shell(f"individual {tmp_path}/run --delta 1e-5 --method renyi --json").json["quantiles"]
        == first["quantiles"]
    )
    more = f"individual {tmp_path}/more.npy {settings} --keep {tmp_path}/run"
    assert shell(f"{more} --layout steps-records").code == 0
    assert shell(f"{line} --layout records-steps --again").code == 0
    assert open_accountant(tmp_path / "run").counts.sum() == 1200


@pytest.mark.parametrize(
    ("words", "said"),
    [("--again", "--again needs --keep"), ("--counts --keep {}/run", "--keep FOLDER keeps norms")],
)
def test_what_keeps_nothing_is_refused(tmp_path, shell, words, said):
    np.save(tmp_path / "norms.npy", norms(records=2))
    line = f"individual {tmp_path}/norms.npy --multiplier 1 --clip 2 --rate 0.01 --delta 1e-5 "
    ran = shell(line + words.format(tmp_path))
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert said in ran.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("written", [list, tuple, np.asarray, iter], ids=lambda f: f.__name__)
def test_labels_may_come_one_by_one(written):
    found = from_counts([1.0], [[10], [20], [30], [40]], 0.02, "remove").epsilon(1e-5)
    assert found.by_group(written(["a", "a", "b", "b"])) == found.by_group(["a", "a", "b", "b"])


@pytest.mark.parametrize("points", [8, 9, 64, 65, 100])
def test_inner_products_are_those_of_the_spectra(points):
    """Parseval's identity, whose last term of an even length has no mirror image."""
    first, second = np.random.default_rng(points).normal(size=(2, points))
    spectra = np.fft.rfft(first), np.fft.rfft(second)
    assert _inner(*spectra, points) == pytest.approx(first @ second, rel=1e-12)
