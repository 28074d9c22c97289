"""What a command writes for people is whole or not there, and what was there stays."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import numpy as np
import pytest

import symdp
from symdp.errors import InputError

STEPS = "gaussian sigma=2 -n 5"
WRITERS = {
    "curve.svg": f"curve {STEPS} --points 3 --plot",
    "curve.png": f"curve {STEPS} --points 3 --plot",
    "tradeoff.pdf": f"tradeoff {STEPS} --plot",
    "card.json": f"card {STEPS} --delta 1e-5 -o",
    "card.html": f"card {STEPS} --delta 1e-5 -o",
    "card.tex": f"card {STEPS} --delta 1e-5 -o",
    "records.npz": "individual {folder}/norms.npy {settings} -o",
    "records.svg": "individual {folder}/norms.npy {settings} --plot",
    "report.md": f"report {STEPS} -o",
}
SETTINGS = (
    "--multiplier 1 --clip 1 --rate 0.01 --delta 1e-5 --layout steps-records --method renyi "
    "--grid norm:4"
)


def _full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _tree(folder):
    return {one.name: one.read_bytes() for one in folder.iterdir()}


@pytest.mark.quick_cases("card.tex", "records.npz", "records.svg")
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_one_line_and_changes_nothing(name, tmp_path, shell, monkeypatch):
    np.save(tmp_path / "norms.npy", np.full((30, 2), 0.5))
    line = WRITERS[name].format(folder=tmp_path, settings=SETTINGS)
    where = tmp_path / "out"
    where.mkdir()
    for old in (False, True):
        if old:
            (where / name).write_text("old")
        before = _tree(where)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", _full)
            ran = shell(line, str(where / name))
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert f"cannot be written: {os.strerror(errno.ENOSPC)}" in ran.err
        assert _tree(where) == before
    assert shell(line, str(where / name)).code == 0
    assert (where / name).stat().st_size > 100


def test_tables_of_the_library_too(tmp_path, monkeypatch):
    noise = symdp.mechanisms.gaussian
    curve = symdp.compose(noise(sigma=2), 3).delta([0.5, 1.5])
    for table in (curve, symdp.sweep(noise, {"sigma": [2, 3]}, 4, epsilon=1)):
        path = tmp_path / "out.csv"
        path.write_text("old")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", _full)
            with pytest.raises(InputError, match=r"out.csv cannot be written"):
                table.to_csv(path)
        assert _tree(tmp_path) == {"out.csv": b"old"}
        assert table.to_csv(path) == path.read_text()


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("place", ["/dev/stdout", "/dev/full"])
def test_a_table_goes_to_a_device(place):
    work = (
        "import symdp; symdp.compose(symdp.mechanisms.laplace(b=2), 3).delta([1.0])"
        f".to_csv({place!r})"
    )
    done = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, check=False)
    if place == "/dev/full":
        assert "No space left" in done.stderr
    else:
        assert done.stdout.startswith("epsilon,delta,lower")


@pytest.mark.parametrize("name", [name for name in WRITERS if not name.startswith("records")])
def test_a_folder_in_the_place_of_a_file_is_known_before_the_work(name, tmp_path, shell):
    place = tmp_path / name
    place.mkdir()
    ran = shell(f"{WRITERS[name]} {place} --time-limit 0.001")
    assert (ran.code, ran.out) == (2, "")
    assert f"{place} cannot be written: it is a folder; name a file" in ran.err
    assert not list(place.iterdir())
