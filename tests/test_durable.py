"""Files that are kept: damage is told, writers take turns, a write that fails changes nothing."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import random
import select
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from symdp import Ledger, mechanisms, user_cache
from symdp.durable import Kept, locked, replace_file
from symdp.errors import InputError
from symdp.individual import (
    GaussianFilter,
    IndividualFilter,
    Odometer,
    Recorder,
    RenyiFilter,
    create,
    load_filter,
    open_accountant,
)

FORK = multiprocessing.get_context("fork")


def _run(folder):
    run = Recorder(folder / "run", 3, 1.0, 2.0, 0.01, grid="norm:8", ids=["a", "b", "c"])
    run.add(np.random.default_rng(1).uniform(0.0, 2.0, (40, 3)), "steps-records")
    run.segment(2.0, 1.0, 0.02)
    run.step([1.0, 0.5, 0.1])
    run.commit()
    return sorted(one for one in (folder / "run").iterdir() if one.suffix != ".lock")


def _filter(made, bound):
    def keep(folder):
        filter_ = create(folder / "state.json", made())
        for _ in range(3):
            filter_.commit(bound)
        return [folder / "state.json"]

    return keep


def _ledger(folder):
    Ledger([(mechanisms.laplace(b=2), 5), (mechanisms.gaussian(sigma=2), 2)]).save(
        folder / "budget.json"
    )
    return [folder / "budget.json"]


def _cache(folder):
    user_cache.keep(folder / "facts.json", {"a": [1.5, "x"], "b": None})
    return [folder / "facts.json"]


def _numbers(folder):
    records = open_accountant(folder / "run")
    held = (records.counts, records.noise, records.noise_above, records.rate)
    return [np.asarray(one).tolist() for one in held], list(records.ids)


KEPT = {
    "run": (_run, _numbers),
    "ledger": (_ledger, lambda folder: Ledger.load(folder / "budget.json").state_dict()),
    "cache": (_cache, lambda folder: user_cache.recall(folder / "facts.json")),
} | {
    made.__name__: (
        _filter(lambda made=made, words=words: made(**words), bound),
        lambda folder: load_filter(folder / "state.json").to_json(),
    )
    for made, words, bound in (
        (GaussianFilter, {"budget": 1.0}, 0.1),
        (Odometer, {"increments": [0.5, 1.0]}, 0.4),
        (RenyiFilter, {"orders": [8.0, 16.0], "epsilon": 3.0, "delta": 1e-5}, [0.1, 0.2]),
        (IndividualFilter, {"records": 3, "budget": 1.0}, [0.1, 0.2, 0.9]),
    )
}


@pytest.mark.parametrize("kind", KEPT)
def test_a_key_that_is_there_twice_is_no_file_of_ours(kind, tmp_path):
    """Whatever object it is in: the last one would fit the checksum, the first one be read."""
    keep, read = KEPT[kind]
    file = keep(tmp_path)[-1]
    whole, text = json.loads(file.read_text()), file.read_text()
    places = [k for k in range(len(text)) if text.startswith('{"', k) or text.startswith("{\n", k)]
    for place in places:
        (key, *_) = json.JSONDecoder().raw_decode(text, place)[0]
        twice = f'{text[: place + 1]}"{key}": 1, {text[place + 1 :]}'
        assert json.loads(twice) == whole
        file.write_text(twice)
        if kind == "cache":
            assert read(tmp_path) is None
        else:
            with pytest.raises(InputError, match=f"the key '{key}' is there twice"):
                read(tmp_path)
    assert places


def _damaged(data, chance):
    """Yield a file's bytes with one or two of them flipped, cut short, longer, or gone."""
    for _ in range(120):
        flipped = bytearray(data)
        for place in chance.sample(range(len(data)), chance.choice((1, 2))):
            flipped[place] ^= 1 << chance.randrange(8)
        yield bytes(flipped)
    yield from (data[: len(data) // 2], data[:-1], data + b"\0", data + data, b"", None)


@pytest.mark.slow_cases("run")
@pytest.mark.parametrize("kind", KEPT)
def test_a_damaged_file_is_refused_or_gives_the_same_answer(kind, tmp_path):
    keep, read = KEPT[kind]
    files = keep(tmp_path)
    good, chance, refused = read(tmp_path), random.Random(kind), 0
    for file in files:
        whole = file.read_bytes()
        for changed in _damaged(whole, chance):
            if changed is None:
                file.unlink()
            else:
                file.write_bytes(changed)
            there = sorted(tmp_path.rglob("*"))
            said = ""
            try:
                found = read(tmp_path)
            except InputError as error:
                said = str(error)
            if said or found is None:
                refused += 1
                assert kind == "cache" or str(file) in said
                assert "\n" not in said
            else:
                assert found == good
            assert sorted(tmp_path.rglob("*")) == there
            assert changed is None or file.read_bytes() == changed
        file.write_bytes(whole)
    assert read(tmp_path) == good
    assert refused > 100 * len(files)


def test_two_bytes_of_a_run_s_counts_are_missed_by_nobody(tmp_path, shell):
    """The case that was seen: ε moved by 0.18 and nothing was said."""
    counts = next(one for one in _run(tmp_path) if one.name.startswith("counts-0"))
    data = bytearray(counts.read_bytes())
    data[-2:] = b"\x01\x01"
    counts.write_bytes(data)
    ran = shell(f"individual {tmp_path / 'run'} --delta 1e-5")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert str(counts) in ran.err
    assert "restore it from a copy" in ran.err
    with pytest.raises(InputError, match="checksum does not fit"):
        Recorder(tmp_path / "run", 3, 2.0, 1.0, 0.02, grid="norm:8", ids=["a", "b", "c"])


def test_of_two_recorders_the_second_is_refused(tmp_path):
    """Both took the run at its first step; the longer one must not undo the other's."""
    first, second = (Recorder(tmp_path / "run", 1, 1.0, 1.0) for _ in range(2))
    first.step([1.0])
    first.commit()
    for _ in range(2):
        second.step([0.5])
    with pytest.raises(InputError, match="another writer"):
        second.commit()
    assert open_accountant(tmp_path / "run").counts.sum() == 1


def test_blocks_without_steps_are_kept(tmp_path):
    run = Recorder(tmp_path / "run", 2, 1.0, 1.0, grid="norm:4")
    run.count_block(np.ones((2, 7)), 0)
    run.commit()
    assert open_accountant(tmp_path / "run").counts[:, -1].tolist() == [7, 7]


@pytest.mark.parametrize("writes", range(5))
def test_a_run_on_a_full_disk_is_as_it_was(writes, tmp_path, monkeypatch):
    """Whichever of the files of a commit the disk refuses, also the first commit's."""
    synced, made = os.fsync, [0]

    def full_after(handle):
        made[0] += 1
        if made[0] > writes:
            _full()
        synced(handle)

    def start():
        return Recorder(tmp_path / "run", 2, 1.0, 1.0, grid="norm:4", ids=["a", "b"])

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_after)
        with pytest.raises(InputError, match="No space left"):
            start()
    assert [one.name for one in (tmp_path / "run").iterdir()] == ["run.json.lock"]
    run = start()
    run.step([1.0, 0.5])
    before, made[0] = {one.name: one.read_bytes() for one in (tmp_path / "run").iterdir()}, 0
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: full_after(handle) if writes < 3 else _full())
        with pytest.raises(InputError, match="No space left"):
            run.commit()
    assert {one.name: one.read_bytes() for one in (tmp_path / "run").iterdir()} == before
    run.commit()
    assert open_accountant(tmp_path / "run").counts.sum() == 2


# Writers that come at once, and one that is killed.


def _charge(path, told):
    """Charge steps until killed; tell of each one that is charged."""
    while True:
        try:
            load_filter(path).commit(1e-3)
        except InputError:
            continue
        os.write(told, b".")


def _add(path, told):
    while True:
        try:
            with Ledger.open(path) as ledger:
                ledger.add(mechanisms.laplace(b=2))
        except InputError:
            continue
        os.write(told, b".")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="fork and SIGKILL")
@pytest.mark.parametrize("work", [_charge, _add])
def test_four_writers_at_once_and_killed_forget_nothing(work, tmp_path):
    path = tmp_path / "kept.json"
    if work is _charge:
        create(path, GaussianFilter(budget=9.0))
    else:
        Ledger().save(path)
    reading, writing = os.pipe()
    workers = [FORK.Process(target=work, args=(path, writing)) for _ in range(4)]
    for worker in workers:
        worker.start()
    told = 0
    while told < 12 and select.select([reading], [], [], 60)[0]:
        told += len(os.read(reading, 1))
    for worker in workers:
        os.kill(worker.pid, signal.SIGKILL)
        worker.join(20)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        told += len(stream.read())
    found = load_filter(path).n if work is _charge else Ledger.load(path).n
    assert told >= 12
    assert told <= found <= told + 4  # a step that was charged may not have been told of
    with locked(path):  # the locks of the dead are free
        pass


# Files for people: whole or not at all.


def _full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _halves(stream):
    stream.write(b"half")
    _full()


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("where", ["content", "disk"])
def test_a_full_disk_leaves_what_was_there(there, where, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    if there:
        path.write_text("old")
    if where == "disk":
        monkeypatch.setattr(os, "fsync", _full)
    with pytest.raises(InputError, match=r"report.html cannot be written: No space left"):
        replace_file(path, _halves if where == "content" else lambda part: part.write(b"new"))
    assert [one.read_text() for one in tmp_path.iterdir()] == (["old"] if there else [])


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, InputError])
def test_whatever_ends_a_write_leaves_what_was_there(error, tmp_path):
    def stops(stream):
        stream.write(b"half")
        raise error

    (tmp_path / "a.csv").write_text("old")
    with pytest.raises(error):
        replace_file(tmp_path / "a.csv", stops)
    assert [one.read_text() for one in tmp_path.iterdir()] == ["old"]


def test_a_new_file_has_usual_permissions_and_an_old_one_its_own(tmp_path):
    usual = tmp_path / "usual"
    usual.write_text("")
    for name, private, mode in (
        ("new", False, usual.stat().st_mode & 0o777),
        ("private", True, 0o600),
    ):
        for permissions in (mode, 0o640):
            replace_file(tmp_path / name, lambda part: part.write(b"x"), private=private)
            assert (tmp_path / name).stat().st_mode & 0o777 == permissions
            (tmp_path / name).chmod(0o640)


@pytest.mark.skipif(os.name != "posix", reason="links and devices")
def test_links_stay_and_devices_are_written_to(tmp_path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "link.svg"
    link.symlink_to("there/figure.svg")
    for text in (b"one", b"two"):
        replace_file(link, lambda part, text=text: part.write(text))
        assert (tmp_path / "there" / "figure.svg").read_bytes() == text
    assert link.is_symlink()
    replace_file("/dev/null", lambda part: part.write(b"x"))
    with pytest.raises(InputError, match="/dev/full cannot be written: No space left"):
        replace_file("/dev/full", lambda part: part.write(b"x"))
    for place in (tmp_path / "nowhere" / "a", tmp_path / "there"):
        with pytest.raises(InputError, match="cannot be written"):
            replace_file(place, lambda part: part.write(b"x"))
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    replace_file(tmp_path / "pipe", lambda part: part.write(b"x" * 200_000))
    reader.join(20)
    assert read == [b"x" * 200_000]


_TO_STDOUT = (
    "from symdp.durable import replace_file\n"
    "print('before', flush=True)\n"
    "replace_file('/dev/stdout', lambda part: part.write(b'row\\n'))\n"
    "print('after')"
)


@pytest.mark.skipif(os.name != "posix", reason="devices")
@pytest.mark.parametrize("into_a_file", [True, False])
def test_standard_output_is_a_place_to_write_to(into_a_file, tmp_path):
    command = [sys.executable, "-c", _TO_STDOUT]
    if into_a_file:
        with (tmp_path / "out").open("ab") as out:
            subprocess.run(command, stdout=out, check=True)
        assert (tmp_path / "out").read_text() == "before\nrow\nafter\n"
    else:
        done = subprocess.run(command, capture_output=True, check=True, text=True)
        assert done.stdout == "before\nrow\nafter\n"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions bind no root")
def test_a_folder_that_is_not_ours_is_one_line(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot be written: Permission denied"):
        replace_file(tmp_path / "a", lambda part: part.write(b"x"))
    with pytest.raises(InputError, match="cannot be written"), locked(tmp_path / "a"):
        pass


def test_a_lock_makes_no_folder(tmp_path):
    with pytest.raises(InputError, match="there is no folder"), locked(tmp_path / "no" / "a"):
        pass
    assert not list(tmp_path.iterdir())


def test_other_json_is_refused_with_its_remedy(tmp_path):
    kind, path = Kept("a format", 3, "the thing", "make one"), tmp_path / "a.json"
    kind.write(path, {"x": 1})
    held = json.loads(path.read_text())
    assert kind.read(path) == held
    for change, words in (
        ({"format": "b"}, "make one"),
        ({"version": 4}, "version 4"),
        ({"version": True}, "version True"),
        ({"x": 2}, "checksum does not fit"),
        ({"x": float("nan")}, "no JSON"),
    ):
        path.write_text(json.dumps(held | change))
        with pytest.raises(InputError, match=words):
            kind.read(path)
