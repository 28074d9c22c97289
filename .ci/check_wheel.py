"""Is the installed wheel whole? Run by `make dist` with the Python of a clean environment."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

import symdp

SOURCE = Path(__file__).resolve().parents[1] / "symdp"


def run(*words: str) -> str:
    """Return what a command of the wheel prints."""
    command = [str(Path(sys.executable).with_name("symdp")), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Compare the files, read the metadata, ask four questions."""
    installed = Path(symdp.__file__).resolve().parent
    assert installed != SOURCE, "the source was imported, not the wheel"
    assert "site-packages" in installed.parts
    for file in SOURCE.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            held = installed / file.relative_to(SOURCE)
            assert held.is_file(), f"the wheel lacks {file.relative_to(SOURCE)}"
            assert held.read_bytes() == file.read_bytes(), f"{held} is not the source's"
    told = distribution("symdp")
    metadata = told.metadata
    for name in ("Name", "Version", "Summary", "License-Expression", "Author", "Keywords"):
        assert metadata.get(name), f"the metadata has no {name}"
    assert metadata["Version"] == symdp.__version__
    assert told.read_text("direct_url.json") is None or "editable" not in told.read_text(
        "direct_url.json"
    )
    assert symdp.__version__ in run("--version")
    asked = "delta gaussian sigma=2 -n 3 --epsilon 1.5 --json"
    answer = json.loads(run(*asked.split()))
    assert abs(answer["delta"] - 0.0288822455519780) < 1e-15, answer
    assert "discrete_gaussian" in run("list")
    assert "Φ" in run("derive", "gaussian", "--only", "composed")
    with tempfile.TemporaryDirectory() as folder:
        proof = f"{folder}/proof.json"
        asked = ("gaussian", "sigma=2", "--sampling", "poisson", "--rate", "0.01", "-n", "1000")
        run("certify", *asked, "--epsilon", "0.5", "--certificate", proof)
        assert "proved" in run("check", proof)
    print(f"symdp {symdp.__version__}: the wheel is whole and answers")


if __name__ == "__main__":
    main()
