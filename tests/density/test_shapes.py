"""What is decided by rule, of catalogued densities and of built-in noise, and with which reason."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import sympy as sp
from strangers.densities import STRANGERS
from strangers.unseen import UNSEEN

import symdp
from symdp import mechanisms
from symdp.balls.modes import one_mode
from symdp.density import shapes
from symdp.density.second_look import Contradiction, SecondLook
from symdp.density.shapes import shape_of
from symdp.errors import InputError
from symdp.model.fact import OPEN, RULE
from symdp.model.mechanism import Mechanism
from symdp.model.pair import Support
from symdp.model.sampling import Noise

X = sp.Symbol("x", real=True)
K = sp.Symbol("k", integer=True)
LINE = Support("interval", -sp.oo, sp.oo)
FROZEN = Path(__file__).with_name("shapes.tsv")


@cache
def catalogue() -> dict[str, Mechanism]:
    """Built-in noise without values, and the densities that nobody tuned for."""
    noises = {name: getattr(mechanisms, name) for name in mechanisms.names()}
    for name, stranger in {**STRANGERS, **UNSEEN}.items():
        try:
            noise = symdp.Mechanism.from_toml(stranger.toml)
        except InputError:  # of a density that is refused
            continue
        noises[name] = noise(**dict(stranger.values)) if stranger.values else noise
    return {name: noise for name, noise in noises.items() if isinstance(noise.source, Noise)}


def row(name: str) -> str:
    """Name, how one mode is known, and why."""
    noise = catalogue()[name]
    fact = shape_of(noise.source.density, noise.variable, noise.support).one_mode
    return f"{name}\t{fact.by}\t{fact.reason}"


@pytest.mark.slow
def test_rules_decide_what_they_decided():
    """A line that changes is looked at; `python tests/density/test_shapes.py` writes them anew."""
    frozen = FROZEN.read_text(encoding="utf-8").splitlines()
    assert [row(name) for name in catalogue()] == frozen


@pytest.mark.slow_cases("density6-falls")
@pytest.mark.parametrize(
    ("density", "reason"),
    [
        (sp.exp(-(X**2)) * (1 + sp.erf(X)), "sum of concave terms"),
        (1 / (1 + sp.exp(-X)) ** 3 / (1 + sp.exp(X)), "sum of concave terms"),
        (sp.erf(X + 3) - sp.erf(X - 2), "a uniform law plus independent noise"),
        (sp.atan(X + 3) - sp.atan(X - 3), "a uniform law plus independent noise of one mode"),
        (sp.tanh(3 * X + 9) - sp.tanh(3 * X - 9), "a uniform law plus independent noise"),
        (
            sp.exp(-X) * sp.erfc((1 - X) / sp.sqrt(2)) + sp.exp(X) * sp.erfc((1 + X) / sp.sqrt(2)),
            "Laplace noise plus independent log-concave noise",
        ),
        (sp.besselk(sp.Rational(3, 2), abs(X)) * abs(X) ** sp.Rational(3, 2), "falls"),
        (sp.exp(-abs(X)) + 1 / (1 + X**2) + 1 / sp.cosh(X), "falls on either side"),
        (sp.Piecewise((sp.exp(2 * X), X < 0), (1 / (1 + X) ** 2, True)), "falls on either side"),
        ((1 + abs(X)) * sp.exp(-2 * abs(X)), "its pieces are log-concave"),
    ],
)
def test_reasons(density, reason):
    fact = shape_of(density, X, LINE).one_mode
    assert fact
    assert fact.by == RULE
    assert reason in fact.reason
    assert SecondLook(density, X, LINE).against_one_mode() is None


@pytest.mark.slow_cases("density2", "density3")
@pytest.mark.parametrize(
    "density",
    [
        sp.Piecewise((sp.Rational(1, 8), abs(X) < 1), (sp.Rational(1, 4), abs(X) < 2), (0, True)),
        pytest.param(
            sp.erf(X + 3) - sp.erf(X - 2) + sp.erf(X - 6) - sp.erf(X - 9), marks=pytest.mark.slow
        ),
        sp.exp(-X) * sp.erfc(1 - X) - sp.exp(X) * sp.erfc(1 + X) / 3,
        X**2 * sp.besselk(1, abs(X)),
        (1 + 2 * abs(X)) * sp.exp(-abs(X)),
        sp.cosh(X) * sp.exp(-(X**2) / 8),
        sp.exp(-((4 * abs(K) / 3 - 1) ** 2)),  # it rises from 0 to 1, and falls from there
    ],
)
def test_no_rule_takes_a_valley_for_a_mode(density):
    """Without the second look, too: steps that rise away from the centre have a slope of 0."""
    (x,) = density.free_symbols
    support = Support("integers", -sp.oo, sp.oo) if x.is_integer else LINE
    centre = shapes.centre_of(density, x, support)
    body = shapes._without_constant(density, x, support)
    assert not shapes._log_concave(body, x, support, centre)
    assert not shapes._one_mode(body, x, support, centre)


def test_a_contradiction_opens_the_fact_and_is_told(monkeypatch):
    """Where values contradict a proof, the fact is open and says whose fault that is."""
    density = 3 * sp.exp(-sp.Abs(X) / 7)
    monkeypatch.setattr(SecondLook, "against_one_mode", lambda _: Contradiction((1.0, 2.0, 3.0)))
    fact = shape_of(density, X, LINE).one_mode
    shape_of.cache_clear()
    assert fact.by == OPEN
    assert fact.value is None
    assert "at x = 1, 2, 3: a fault of symdp" in fact.reason


def test_noise_with_values_is_decided_where_no_rule_holds_for_all():
    """Champernowne noise of q < π has one mode; its formula shows it once q has a value."""
    q = sp.Symbol("q", positive=True)
    noise = Mechanism.additive(sp.sin(q) / (2 * q * (sp.cosh(X) + sp.cos(q))), X)
    assert one_mode(noise).by == OPEN
    assert one_mode(noise(q=2)).by == RULE


if __name__ == "__main__":
    FROZEN.write_text("".join(f"{row(name)}\n" for name in catalogue()), encoding="utf-8")


def test_one_mode_in_the_logarithm_of_the_distance_from_an_end():
    """Weibull's and Kumaraswamy's noise, whatever the exponents are, and not one with two ends."""
    x = sp.Symbol("x", real=True)
    p, r = sp.symbols("p r", positive=True)
    ray = Support("interval", sp.S.Zero, sp.oo)
    unit = Support("interval", sp.S.Zero, sp.S.One)
    assert shape_of(x ** (p - 1) * sp.exp(-((x / r) ** p)), x, ray).one_mode
    assert shape_of(x ** (p - 1) * (1 - x**p) ** 2, x, unit).one_mode
    assert shape_of(sp.exp(-r * (x - p) ** 2 / (2 * p**2 * x)) / sp.sqrt(x**3), x, ray).one_mode
    assert not shape_of(1 / sp.sqrt(x * (1 - x)), x, unit).one_mode
    assert not shape_of(x ** (p - 1) * (1 - x) ** (r - 1), x, unit).one_mode


@pytest.mark.parametrize(
    ("at_zero", "is_highest"), [("2", True), ("1/2", True), ("1/e", True), ("1/4", False)]
)
def test_the_mass_at_the_first_integer_counts(at_zero, is_highest):
    """Masses e^{−k} on 1, 2, … fall from 0 on where that at 0 is at least e^{−1}."""
    first = sp.exp(-1) if at_zero == "1/e" else sp.Rational(at_zero)
    masses = sp.Piecewise((first, sp.Eq(K, 0)), (sp.exp(-K), True))
    naturals = Support("integers", sp.S.Zero, sp.oo)
    assert shapes._falls(masses, K, sp.S.Zero, naturals, 1, is_even=False) is is_highest
    assert bool(shape_of(masses, K, naturals).one_mode) is is_highest


def test_a_function_of_an_exponential_is_no_exponential():
    x = sp.Symbol("x", real=True)
    function = sp.erf(sp.exp(x))
    assert shapes._collected(function) == function
    assert shapes._collected(2 * sp.exp(x) * sp.exp(3 * x)) == 2 * sp.exp(4 * x)
