"""What structure shows of random expressions holds at values: bounds, slope, bends."""

import random

import mpmath
import numpy as np
import pytest
import sympy as sp

from symdp.density.curvature import _FUNCTIONS, Curvature

X = sp.Symbol("x", real=True)
A = sp.Symbol("a", positive=True)
SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 100))]
ENDS = [(-2, 3), (0, 2), (-3, 0), (1, 4), (-4, -1), (0, 1)]


def number(rng: random.Random) -> sp.Rational:
    return sp.Rational(rng.choice([-3, -2, -1, 1, 2, 3, 5]), rng.choice([1, 2, 3]))


def real_tree(rng: random.Random, depth: int) -> sp.Expr:
    """A random expression that SymPy can write down: Max takes no complex number."""
    while True:
        try:
            return tree(rng, depth)
        except ValueError:
            continue


def tree(rng: random.Random, depth: int) -> sp.Expr:
    """A random expression of x: functions, powers, sums and products of each other."""
    if depth == 0:
        return rng.choice([X, X, number(rng) * X + number(rng), X - number(rng), sp.Abs(X), A * X])
    inner = tree(rng, depth - 1)
    other = tree(rng, rng.randrange(depth))
    unary = [
        sp.exp(inner), sp.exp(-inner), sp.log(inner), sp.Abs(inner), sp.cosh(inner), sp.sinh(inner),
        sp.tanh(inner), sp.erf(inner), sp.erfc(inner), sp.atan(inner), sp.asinh(inner),
        sp.cos(inner), inner**2, inner**3, inner**4, inner**-1, inner**-2, sp.sqrt(inner),
        inner ** sp.Rational(3, 2), inner ** sp.Rational(-3, 2), -inner, number(rng) * inner,
        inner + number(rng), 1 + sp.erf(inner), 1 - sp.tanh(inner), 1 + sp.cos(inner),
        sp.besselk(sp.Rational(1, 2) + rng.randrange(3), inner), sp.gamma(inner),
        inner**2 * sp.besselk(2, inner), sp.gamma(inner + 2) / sp.gamma(inner + rng.choice([1, 4])),
        sp.Max(inner, number(rng)), sp.Rational(1, 3) ** inner,
    ]  # fmt: skip
    binary = [inner + other, inner * other, inner - other, inner / other, sp.Max(inner, other)]
    return rng.choice(unary if rng.random() < 0.6 else binary)


def values_of(e: sp.Expr, low: float, high: float) -> np.ndarray | None:
    """Values at evenly spread points, to fifteen digits of forty; None where one is not real."""
    value = sp.lambdify(X, e, "mpmath")
    values = []
    for k in range(1, 60):
        point = low + (high - low) * mpmath.mpf(k) / 60
        try:
            at = mpmath.mpmathify(value(point))
        except (ArithmeticError, ValueError, TypeError, OverflowError):
            return None
        if not mpmath.isfinite(at) or abs(mpmath.im(at)) > 0 or abs(at) > 1e30:
            return None
        values.append(mpmath.re(at))
    return np.array(values)


def agrees(sign: int | None, changes: np.ndarray, scale: object) -> bool:
    """Whether no change has the other sign, but for the rounding of the fortieth digit."""
    spare = mpmath.mpf(10) ** -30 * (1 + abs(scale))
    if sign is None:
        return True
    if sign == 0:
        return all(abs(change) <= spare for change in changes)
    return all(sign * change >= -spare for change in changes)


@pytest.mark.quick_cases("1", "8")
@pytest.mark.parametrize("seed", SEEDS)
def test_what_structure_shows_holds_at_values(seed):
    with mpmath.workdps(40):
        compare(random.Random(seed))


def compare(rng: random.Random) -> None:
    for _ in range(8):
        e = real_tree(rng, rng.choice([1, 2, 3]))
        low, high = rng.choice(ENDS)
        at_values = e.subs(A, sp.Rational(5, 3))
        values = values_of(at_values, low, high) if e.has(X) and not e.has(sp.nan, sp.zoo) else None
        if values is None:
            continue
        curvature = Curvature(X, sp.Integer(low), sp.Integer(high))
        run = curvature.run(e)
        scale = max(abs(values))
        bounds = [sp.N(bound.subs(A, sp.Rational(5, 3)), 40) for bound in (run.low, run.high)]
        assert bounds[0] <= min(values) + 1e-25 * (1 + scale), (e, low, high)
        assert bounds[1] >= max(values) - 1e-25 * (1 + scale), (e, low, high)
        assert agrees(run.slope, np.diff(values), scale), (e, low, high)
        assert agrees(run.bend, np.diff(values, 2), scale), (e, low, high)
        if min(values) > 0:
            logs = np.array([mpmath.log(value) for value in values])
            bend = curvature.log_bend(e)
            assert agrees(bend, np.diff(logs, 2), max(abs(logs))), (e, low, high)


# What no rule shows of one function on one side of 0: SymPy's Γ turns at 1.46, sin at π/2, and
# sech bends the other way from 0.88 on.
OPEN = {("gamma", "slope"), ("factorial", "slope"), ("loggamma", "slope"), ("sin", "slope"),
        ("sin", "bend"), ("sin", "log bend"), ("sech", "bend")}  # fmt: skip


def signs(changes: np.ndarray) -> set[int]:
    """The signs of changes that are more than rounding."""
    return {int(mpmath.sign(change)) for change in changes if abs(change) > 1e-30} or {0}


@pytest.mark.parametrize("ends", [(1, 3), (-3, -1)], ids=["right", "left"])
@pytest.mark.parametrize("name", sorted(_FUNCTIONS, key=lambda function: function.__name__))
def test_each_function_runs_as_its_values(name, ends):
    """On either side of 0 the slope and the bends are known, and those of the values."""
    if ends[0] < 0 and name in (sp.log, sp.gamma, sp.factorial, sp.loggamma):
        return
    curvature = Curvature(X, *map(sp.Integer, ends))
    run = curvature.run(name(X))
    with mpmath.workdps(40):
        values = values_of(name(X), *ends)
        assert run.low <= min(values) + 1e-30
        assert run.high >= max(values) - 1e-30
        shown = {"slope": (run.slope, np.diff(values)), "bend": (run.bend, np.diff(values, 2))}
        if name is sp.Abs:  # convex as a whole, a line on either side
            shown["bend"] = (run.bend - 1, np.diff(values, 2))
        if min(values) > 0:
            logs = np.array([mpmath.log(value) for value in values])
            shown["log bend"] = (curvature.log_bend(name(X)), np.diff(logs, 2))
        if name is sp.Abs and ends[0] < 0:
            del shown["log bend"]
        for what, (sign, changes) in shown.items():
            is_open = (name.__name__, what) in OPEN
            assert {sign} == ({None} if is_open else signs(changes)), what


def test_masses_of_poisson_differences_are_log_concave():
    """I_|k|(2) at −12, …, 12: the ratio of neighbours falls, of which mode and tails follow."""
    k = sp.Symbol("k", integer=True)
    assert Curvature(k, -sp.oo, sp.oo).log_bend(sp.besseli(sp.Abs(k), 2)) == -1
    logs = np.array([mpmath.log(mpmath.besseli(abs(j), 2)) for j in range(-12, 13)])
    assert max(np.diff(logs, 2)) < 0


@pytest.mark.parametrize("power", [sp.Rational(1, 4), sp.Integer(2), sp.Rational(-1, 3)])
@pytest.mark.parametrize("size", [lambda k: k, sp.Abs, lambda k: 2 * sp.Abs(k), lambda k: k**2])
def test_factorials_at_whole_numbers(power, size):
    """Bends and slopes of powers of factorials are those of their values at −9, …, 9."""
    k = sp.Symbol("k", integer=True)
    low, high = (0, 9) if size(k) == k else (-9, 9)
    f = sp.factorial(size(k)) ** -power
    curvature = Curvature(k, sp.Integer(low), sp.Integer(high))
    with mpmath.workdps(40):
        values = [mpmath.mpmathify(sp.N(f.subs(k, j), 40)) for j in range(low, high + 1)]
        logs = np.array([mpmath.log(value) for value in values])
        assert agrees(curvature.run(f).slope, np.diff(values), max(values))
        bend = curvature.log_bend(f)
        assert bend == -sp.sign(power)
        assert agrees(bend, np.diff(logs, 2), max(abs(logs)))
