"""δ by residues as a row of the table: next to the largest loss, poles on both sides, one reading.

Truth is computed here, by power series and gamma functions in mpmath.
"""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction

import mpmath
import pytest
import sympy as sp

import symdp
from symdp import Mechanism, compose, mechanisms
from symdp.density import exponential_sum as reading
from symdp.numeric.formula import decode, encode, formula_of
from symdp.numeric.loss import LossLaw
from symdp.numeric.residues import residue_answer
from symdp.numeric.total import SumLaw


def _logistic(y, c):
    u = mpmath.expm1(y / 2) / (c - mpmath.exp(y / 2))
    return c * u / (1 + c * u)


def _bounded(y, c):
    return (1 - mpmath.exp(-y / 2)) / (1 - 1 / c)


# With c = e^{top}: P(ℓ ≥ top − y) under P, from the density of the noise by hand.
NOISES = {
    "laplace": ("b", lambda y, c: mpmath.mpf(1) / 2 - mpmath.expm1(-y / 2) / 2),
    "logistic": ("s", _logistic),
    "gumbel": ("b", lambda y, c: -mpmath.expm1(-c * y / (c - 1))),
    "exponential": ("epsilon_0", _bounded),
}
DISTANCES = (2.0**-7, 2.0**-20, 3e-10, 3e-13)


def short_falls(shares, count: int, terms: int = 24):
    """Return the powers k and factors g of s^{−k} in the transform of what a sum falls short by.

    With P(Y ≤ y) = Σ aₖyᵏ the transform of Y is Σ aₖk! s^{−k}, its n-th power that of the sum.
    """
    series = [a * mpmath.factorial(k) for k, a in enumerate(mpmath.taylor(shares, 0, terms))]
    lead = 0 if series[0] else 1
    series, power = series[lead:], [mpmath.mpf(1)] + [mpmath.mpf(0)] * terms
    for _ in range(count):
        power = [
            mpmath.fsum(power[i] * series[k - i] for i in range(k + 1)) for k in range(len(series))
        ]
    return [(count * lead + k, g) for k, g in enumerate(power)]


def near_the_top(fallen, below):
    """Return δ where ε lies `below` the largest sum of losses.

    What falls short like yᵏ/k! has E(1 − e^{y − below})⁺ = Σⱼ (−1)^{j+1} below^{j+k}/(j + k)!.
    """
    return mpmath.fsum(
        g * (-1) ** (j + 1) * below ** (j + k) / mpmath.factorial(j + k)
        for k, g in fallen
        for j in range(1, 24)
    )


@pytest.mark.slow_cases(
    "logistic-2", "logistic-3", "logistic-60", "gumbel-2", "gumbel-10", "gumbel-60", "logistic-10"
)
@pytest.mark.parametrize("count", [2, 3, 10, 60])
@pytest.mark.parametrize("name", NOISES)
def test_next_to_the_largest_loss_all_digits_are_there(name: str, count: int) -> None:
    parameter, shares = NOISES[name]
    steps = compose(getattr(mechanisms, name)(**{parameter: 4}), count)
    with mpmath.workdps(60):
        top = mpmath.mpf(4) if name == "exponential" else mpmath.mpf(1) / 4
        fallen = short_falls(lambda y: shares(y, mpmath.exp(top)), count)
    for distance in DISTANCES:
        with mpmath.workdps(60):
            epsilon = float(count * top - mpmath.mpf(distance))
            below = count * top - mpmath.mpf(epsilon)
            truth = mpmath.log(near_the_top(fallen, below))
            answer = steps.delta(epsilon, direction="remove")
            assert answer.log_lower <= truth <= answer.log_upper, distance
        assert (answer.kind_for_pair, answer.route) == ("exact", "residues")
        # Ends are doubles of a logarithm, and δ is raised from it: no wider than what that rounds.
        assert answer.log_upper - answer.log_lower < 1e-14 + 1.2e-15 * abs(answer.log_delta)


@pytest.mark.quick_cases("2")
@pytest.mark.parametrize("seed", range(6))
def test_steps_with_poles_on_the_right(seed: int) -> None:
    """Exponential noise of two scales: a sum of losses is a sum of n exponentials, moved."""
    chance = random.Random(seed)
    p, q, count = Fraction(chance.randint(1, 9), 4), Fraction(chance.randint(10, 20), 4), seed + 1
    x = sp.Symbol("x", real=True)
    rates = [sp.Rational(r.numerator, r.denominator) for r in (p, q)]
    pair = Mechanism.from_pair(*(r * sp.exp(-r * x) for r in rates), x, support=(0, sp.oo))
    steps = compose(pair, count)
    for direction in ("remove", "add"):
        for share in (-0.5, 0.1, 0.7, 2.0):
            with mpmath.workdps(40):
                a, b = (mpmath.mpf(r.numerator) / r.denominator for r in (p, q))
                sign = 1 if direction == "remove" else -1
                mean = count * (mpmath.log(a / b) + (b - a) / a)
                epsilon = float(sign * mean * share) if share > 0 else float(-sign * mean)
                # L > ε where the sum x of outputs is above a place, below it the other way.
                place = (sign * mpmath.mpf(epsilon) - count * mpmath.log(a / b)) / (b - a)
                place = max(place, mpmath.mpf(0))
                masses = [
                    mpmath.gammainc(count, r * place, regularized=True)
                    if sign > 0
                    else mpmath.gammainc(count, 0, r * place, regularized=True)
                    for r in ((a, b) if sign > 0 else (b, a))
                ]
                truth = masses[0] - mpmath.exp(mpmath.mpf(epsilon)) * masses[1]
                answer = steps.delta(epsilon, direction=direction)
                if truth <= 0:
                    assert answer.delta == 0.0
                    continue
                assert answer.log_lower <= mpmath.log(truth) <= answer.log_upper
                rest = mpmath.log1p(-truth)
            route = "single" if count == 1 else "residues"
            assert answer.route == route or share < 0
            assert answer.log_upper - answer.log_lower < 2e-14 + 2e-15 * abs(answer.log_delta)
            law = steps.law(direction)
            found = residue_answer(law, epsilon)
            if found is not None and found.log_complement > -math.inf:
                low, high = found.complement_bounds
                assert low <= rest <= high


@pytest.mark.slow
def test_a_moment_is_read_once_for_all_values(monkeypatch: pytest.MonkeyPatch) -> None:
    x, s = sp.Symbol("x", real=True), sp.Symbol("s", positive=True)
    noise = Mechanism.additive(
        sp.exp(-sp.Abs(x) / s) / (2 * s), x, name="noise", parameters={"s": "positive"}
    )
    asked = []
    known = reading.tabulated_moment
    monkeypatch.setattr(reading, "tabulated_moment", lambda pair: asked.append(pair) or known(pair))
    for k in range(1, 6):
        answer = compose(noise(s=sp.Rational(k, 3)), 4).delta(0.5)
        assert answer.route == "residues"
    assert len(asked) == 1


# As their author would write them: of what is shipped no moment is read.
WRITTEN = {
    "laplace": "exp(-abs(x)/b)/(2*b)",
    "gumbel": "exp(-x/b - exp(-x/b))/b",
    "student_t": "2/(pi*sqrt(3)*b*(1 + x**2/(3*b**2))**2)",
    "gaussian": "exp(-x**2/(2*b**2))/(b*sqrt(2*pi))",
}


def written(density: str) -> Mechanism:
    return symdp.Mechanism.from_toml(
        'name = "written"\nvariable = "x"\nsupport = ["-oo", "oo"]\n'
        f'[parameters]\nb = "positive"\n[noise]\ndensity = "{density}"\n'
    )


@pytest.mark.slow_cases("laplace", "gumbel")
@pytest.mark.parametrize("name", WRITTEN)
def test_a_formula_keeps_its_moment_or_that_there_is_none(name: str) -> None:
    formula, numbers = formula_of(written(WRITTEN[name])(b=3), "remove")
    formula.entries([numbers], [])  # of schedules: what they compile is not written down
    again = decode(json.loads(json.dumps(encode(formula))))
    assert (again.moment is None) == (name in {"student_t", "gaussian"})
    law, other = (SumLaw([(one.at(numbers, name), 3)]) for one in (formula, again))
    first, second = residue_answer(law, 0.25), residue_answer(other, 0.25)
    assert first == second
    assert (first is None) == (again.moment is None)


def test_a_moment_of_another_law_is_not_believed() -> None:
    laplace = written(WRITTEN["laplace"])
    law, other = (compose(laplace(b=b), 2).law("remove").parts[0][0] for b in (2, 3))
    for read, is_right in ((law.moment, True), (other.moment, False)):
        made = LossLaw(law.step, law.loss_bounds, read_moment=lambda read=read: read)
        assert (residue_answer(SumLaw([(made, 2)]), 0.5) is not None) is is_right
