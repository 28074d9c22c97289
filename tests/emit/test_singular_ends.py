"""Programs of densities without a bound at an end of their support."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import mpmath
import pytest
import sympy as sp

import symdp
from symdp.emit.standalone import Piece
from symdp.emit.standalone.ends import _place_inside, told_from_ends
from symdp.model.mechanism import Mechanism

X = sp.Symbol("x", real=True)
S = sp.Symbol("s", positive=True)
NOISE = """name = "noise"
variable = "x"
support = {}
[noise]
normalize = true
sensitivity = 1
density = "{}"
"""
# support, density, and the density as a function of the distances from both ends
ARCSINE = ("[0, 10]", "1/sqrt(x*(10 - x))", lambda a, b: 1 / mpmath.sqrt(a * b))
STEEP = ("[-5, 5]", "(25 - x**2)**(-3/4)", lambda a, b: (a * b) ** mpmath.mpf("-0.75"))


def delta_of_one_step(density, wide: int, epsilon: float, rate: float) -> float:
    """Return δ of removing a record that shifts the noise by 1, sampled at a rate."""
    with mpmath.workdps(50):

        def mass(low, high, function):
            return mpmath.quad(function, [low, (low + high) / 2, high])

        total = mass(0, wide, lambda a: density(a, wide - a))
        # beyond the neighbour's end the record alone is seen
        alone = rate * mass(0, 1, lambda b: density(wide - b, b)) / total

        def loss(x):
            shifted = density(x - 1, wide + 1 - x) / density(x, wide - x)
            return mpmath.log(1 - rate + rate * shifted)

        # both parts fall or rise with x between 1 and the end
        def gain(x):
            before = density(x, wide - x)
            with_record = (1 - rate) * before + rate * density(x - 1, wide + 1 - x)
            return max(with_record - mpmath.exp(epsilon) * before, mpmath.mpf(0))

        root = mpmath.findroot(lambda x: loss(x) - epsilon, (1.001, wide - 0.5), solver="anderson")
        shared = mass(mpmath.mpf(1), root, lambda x: gain(min(x, root))) / total
        return float(alone + shared)


@pytest.mark.parametrize(("law", "wide"), [(ARCSINE, 10), (STEEP, 10)], ids=["arcsine", "steep"])
@pytest.mark.parametrize("rate", ["1/10", pytest.param("1", marks=pytest.mark.slow)])
def test_mass_next_to_an_end_is_not_lost(law, wide: int, rate: str, tmp_path: Path):
    support, density, function = law
    noise = Mechanism.from_toml(NOISE.format(support, density)).shifted("exactly")
    if rate != "1":
        noise = noise.subsample("poisson", rate)
    source = tmp_path / "noise.py"
    source.write_text(symdp.derive(noise).to_program("python"), "utf-8")
    names = runpy.run_path(str(source))
    truth = math.log(delta_of_one_step(function, wide, 0.1, float(sp.Rational(rate))))
    lower, upper = names["log_delta_ends"](0.1, 1, "remove")
    assert lower - 1e-11 <= truth <= upper + 1e-11
    assert upper - lower < 1e-10


@pytest.mark.parametrize(
    ("lower", "upper", "log_density"),
    [
        (0, 1, sp.log(1 - X)),  # vanishes at 1
        (0, sp.oo, 3 * sp.log(X) - X),
        (-sp.oo, sp.oo, -(X**2)),
        (0, 2, -X - sp.log(1 + X)),
    ],
)
def test_other_pieces_stay_what_they_are(lower, upper, log_density):
    piece = Piece(sp.sympify(lower), sp.sympify(upper), log_density, log_density, X)
    assert list(told_from_ends(piece, X)) == [piece]


def test_places_next_to_an_end_are_told_by_their_distance():
    log_density = (S - 3) * sp.log(1 - X) + (S - 3) * sp.log(1 + X)
    piece = Piece(sp.Integer(-1), sp.Integer(1), log_density, log_density, X)
    low, high = told_from_ends(piece, X)
    for part in (low, high):
        assert (part.lower, part.upper) == (0, sp.oo)
        expected = (S - 3) * (sp.log(2 - sp.exp(-X)) - X) - X
        assert sp.expand(part.log_p - expected) == 0
    assert low.loss == -1 + sp.exp(-X)
    assert high.loss == 1 - sp.exp(-X)


@pytest.mark.parametrize(
    ("lower", "upper"), [(0, sp.oo), (-sp.oo, 0), (-3, sp.oo), (-sp.oo, 7), (-2, 5)], ids=str
)
def test_a_support_is_cut_inside(lower, upper):
    """Between a singular end and the other one, where either may be infinite."""
    inner = _place_inside(sp.sympify(lower), sp.sympify(upper))
    assert lower < inner < upper
