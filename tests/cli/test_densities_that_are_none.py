"""Files whose density is none: one line that names the file, and exit code 2."""

import json
import re

import pytest

import symdp
from symdp.cli import main
from symdp.page.derivation import doubt

NORMAL = "exp(-x**2/2)/sqrt(2*pi)"
DIP = "(1 - 3/2*exp(-(2000*(x - 1.23456))**2))"  # below 0 on a width of 6e-4
HOLE = "Piecewise((exp(-abs(x)), abs(x) > 1), (0, True))"

# Density, support, whether it is normalized, and what the line must hold.
NONE = {
    "too little": (f"0.999*{NORMAL}", "line", False, ["integrates to 0.999", "normalize"]),
    "too much": (f"1.001*{NORMAL}", "line", False, ["integrates to 1.001", "normalize"]),
    "too few": ("0.999*exp(-abs(x)/3)*tanh(1/6)", "integers", False, ["sums to 0.999"]),
    "too many": ("1.001*exp(-abs(x)/3000)*tanh(1/6000)", "integers", False, ["sums to 1.001"]),
    "slow": ("1/(2*(1 + abs(x)))", "line", False, ["mass 1"]),
    "growing": ("exp(x**2)", "line", False, ["mass 1"]),
    "slow sum": ("1/(1 + abs(x))", "integers", False, ["mass 1"]),
    "slow, normalized": (f"{NORMAL} + 1/(1 + abs(x))", "line", True, ["normalized"]),
    "growing, normalized": ("exp(x**2)", "line", True, ["normalized"]),
    "waves": ("1 + sin(x)", "line", True, ["normalized"]),
    "pole": ("1/x**2", "unit", True, ["normalized"]),
    "slow sum, normalized": ("1/(1 + abs(x))", "integers", True, ["normalized"]),
    "growing sum": ("exp(x)", "naturals", True, ["normalized"]),
    "odd": ("x*exp(-x**2)", "line", True, ["normalized", "mass is 0"]),
    "negative": (f"{NORMAL}*{DIP}", "line", False, ["negative", "1.23"]),
    "negative, normalized": (f"{NORMAL}*{DIP}", "line", True, ["negative", "1.23"]),
    "hole": (f"0.999*{HOLE}*exp(1)/2", "line", False, ["integrates to 0.999"]),
    "function": ("foo(x)*exp(-x**2)", "line", True, ["unknown function 'foo'"]),
    "name": ("exp(-x**2/s)", "line", True, ["unknown name 's'"]),
}
SUPPORTS = {"line": '["-oo", "oo"]', "unit": "[0, 1]"}


def written(directory, density, support, is_normalized):
    path = directory / "none.toml"
    lines = [
        'name = "none"', 'variable = "x"', f"support = {SUPPORTS.get(support, repr(support))}",
        "[noise]", f'density = "{density}"', "sensitivity = 1",
    ]  # fmt: skip
    path.write_text("\n".join([*lines, "normalize = true"] if is_normalized else lines))
    return path


def asked(path, capsys):
    code = main(["delta", str(path), "-n", "3", "--epsilon", "1"])
    return code, capsys.readouterr()


@pytest.mark.slow_cases(
    "slow", "slow sum", "slow, normalized", "waves", "pole", "slow sum, normalized", "growing sum"
)
@pytest.mark.parametrize("name", NONE)
def test_what_is_no_density_is_refused_in_one_line(name, tmp_path, capsys):
    density, support, is_normalized, wanted = NONE[name]
    path = written(tmp_path, density, support, is_normalized)
    code, said = asked(path, capsys)
    assert code == 2
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert all(word in line for word in [path.name, *wanted]), line


@pytest.mark.quick_cases("integers")
@pytest.mark.parametrize("support", ["line", "integers"])
def test_a_hole_in_a_density_is_none_in_its_answer(support, tmp_path, capsys):
    path = written(tmp_path, HOLE, support, True)
    code, said = asked(path, capsys)
    assert code == 0
    assert said.out.startswith("δ(1) = ")


@pytest.mark.slow
def test_a_derivation_says_on_its_first_line_that_a_density_is_none(tmp_path):
    """Where free parameters have no values, at drawn ones, which are named."""
    path = tmp_path / "none.toml"
    path.write_text(
        'name = "none"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[parameters]\ns = "positive"\n'
        '[noise]\ndensity = "exp(-abs(x)/s)/s"\nsensitivity = 1\n'
    )
    found = symdp.derive(symdp.load(path), time_limit=4)
    forms = found.to_text(1), found.to_latex(1), found.to_mathml(1), json.dumps(found.to_json(1))
    for said in forms:
        begins = " ".join(said.split())[:300]
        assert "integrates to 2, not 1" in begins
        assert re.search("s ?= ?", begins)
    path.write_text(
        'name = "none"\nvariable = "x"\nsupport = [-1, 1]\n'
        '[noise]\ndensity = "(1 + 2*x)/2"\nsensitivity = "1/2"\n'
    )
    assert "negative at x = -" in doubt(symdp.load(path))
    assert not doubt(symdp.mechanisms.laplace.subsample("poisson", "1/10"))
