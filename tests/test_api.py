"""The public names, frozen; and what importing them costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import symdp

PUBLIC = [
    "AccuracyError",
    "Calibration",
    "Composition",
    "Curve",
    "Derivation",
    "Guarantee",
    "InputError",
    "Ledger",
    "Mechanism",
    "Parallel",
    "Sweep",
    "SymdpError",
    "__version__",
    "audit",
    "calibrate",
    "compare",
    "compose",
    "derive",
    "individual",
    "load",
    "load_composition",
    "mechanisms",
    "sensitivities",
    "sweep",
    "training",
]

ANSWER = """
from symdp import compose, mechanisms
total = compose(mechanisms.gaussian(sigma=2).subsample("poisson", "1/100"), 1000)
assert total.delta(1.0).epsilon == 1.0 and total.epsilon(1e-5).delta == 1e-5
"""
HEAVY = ("sympy", "numpy", "scipy", "matplotlib", "mpmath", "flint", "rich")


MOST_NAMES = 26


def test_public_names_are_exactly_these():
    assert len(PUBLIC) <= MOST_NAMES
    assert symdp.__all__ == PUBLIC
    assert dir(symdp) == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_and_documented(name):
    thing = getattr(symdp, name)
    assert thing is not None
    assert name == "__version__" or thing.__doc__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = symdp.nonsense


def test_derive_stays_the_function_when_the_folder_is_imported_first():
    code = (
        "import symdp.density.pieces, symdp.derive.series, symdp\n"
        "from symdp.derive import derive\n"
        "import symdp.derive.tails.records\n"
        "assert symdp.derive is derive and callable(derive)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_name_has_its_home_in_the_stub():
    """What type checkers read is what Python gives."""
    stub = Path(symdp.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    named = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    for node in named:
        (alias,) = node.names
        assert alias.name == alias.asname
        if node.module != "symdp":
            assert getattr(import_module(node.module), alias.name) is getattr(symdp, alias.name)
    assert sorted(node.names[0].name for node in named) == PUBLIC


@pytest.mark.slow_cases("code4-allowed4")
@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import symdp", ()),
        ("import symdp; symdp.InputError; symdp.mechanisms.names()", ()),
        ("from symdp.cli import main; assert main(['--help']) == 0", ()),
        ("from symdp.cli import main; assert main(['list']) == 0", ()),
        (ANSWER, ("sympy", "numpy", "mpmath", "flint")),
    ],
)
def test_light_work_imports_nothing_heavy(code, allowed):
    check = f"{code}\nimport sys\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], check=True, capture_output=True, text=True)
    loaded = done.stdout.splitlines()[-1]
    assert loaded == str(list(allowed))
