"""What a checker of types is told: a number gives a guarantee, an array a curve."""

import subprocess
import sys

import pytest

RIGHT = """
from typing import Any, assert_type
import numpy as np
import symdp
from numpy.typing import NDArray
from symdp import Composition, Ledger, Mechanism, compose, mechanisms
from symdp.questions.calibrate import AttackCalibration, Calibration
from symdp.questions.certificate import Certificate
from symdp.questions.guarantee import Curve, Guarantee

noise = mechanisms.laplace(b=2)
steps, ledger, parts = compose(noise, 3), Ledger(), symdp.Parallel([compose(noise)])
assert_type(noise, Mechanism)
assert_type(noise.mean, float)
assert_type(2 * steps + steps, Composition)
assert_type(steps.delta("1/2"), Guarantee)
assert_type(steps.epsilon([1e-5]), Curve)
assert_type(steps.delta(np.array([0.5]), "msd:1"), Curve)
assert_type(steps.certify(0.5), Certificate)
assert_type(steps.renyi(2), float)
assert_type(ledger.delta(0.5), Guarantee)
assert_type(ledger.delta([0.5]), Curve)
assert_type(ledger.by("note"), dict[str, Ledger])
assert_type(symdp.calibrate(mechanisms.laplace, "b", 3, epsilon=1, delta=1e-5), Calibration)
assert_type(symdp.calibrate(mechanisms.laplace, "b", 3, advantage=0.1), AttackCalibration)
assert_type(symdp.derive(noise), symdp.Derivation)
assert_type(symdp.derive(noise).to_program("c"), str)
assert_type(Mechanism.from_toml(""), Mechanism)
assert_type(symdp.load_composition("job.toml"), Composition)
assert_type(parts.epsilon(1e-5), Guarantee)
assert_type(parts.epsilon([1e-5]), Curve)
"""
WRONG = """
from symdp import Ledger, compose, mechanisms

steps = compose(mechanisms.laplace(b=2), 3)
steps.delta(0.5, "mds:1")
steps.delta(0.5, direction="sideways")
Ledger().epsilon(1e-5, "gaus")
"""


@pytest.mark.slow
def test_types_are_as_documented(tmp_path):
    pytest.importorskip("mypy")
    for name, text in (("right", RIGHT), ("wrong", WRONG)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary"]
    ran = subprocess.run(
        [*command, "right.py", "wrong.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in ran.stdout.splitlines() if ": error:" in line]
    assert [line.split(":")[:2] for line in errors] == [
        ["wrong.py", "5"],
        ["wrong.py", "6"],
        ["wrong.py", "7"],
    ], ran.stdout + ran.stderr
