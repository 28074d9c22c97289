"""The table of integrals and sums, rule by rule, against numerical quadrature and summation."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp
from derive_examples import R, k, n, x

from symdp.density.integral_rules import INTEGRAL_RULES, LAST_RULES, hypergeometric
from symdp.density.integrate import Integrand, definite, entry_of
from symdp.density.normal_form import LogForm, log_form
from symdp.density.sum_rules import SUM_RULES

t = sp.Symbol("t", real=True)
AT = R(2, 7)  # the tilt at which values are compared


def form(expression: sp.Expr, variable: sp.Symbol, inside: sp.Expr) -> LogForm:
    return log_form(expression, variable, inside)


INTEGRALS = {
    "line": (sp.exp((t - 2) * x), R(1), sp.oo),
    "line both ends": (sp.exp((t - 2) * x), -R(1), R(3)),
    "constant": (R(3) + 0 * x, R(1), R(4)),
    "gaussian": (sp.exp(-(t + 1) * x**2 + t * x), -sp.oo, sp.oo),
    "gaussian on a ray": (sp.exp(-2 * x**2 + t * x), R(1, 2), sp.oo),
    "gaussian on the other ray": (sp.exp(-2 * x**2 + t * x), -sp.oo, -R(1, 2)),
    "gaussian between": (sp.exp(-2 * x**2 + t * x), -R(1, 2), R(2)),
    "gamma": (sp.exp(-(t + 1) * x - 3 * sp.exp(-x / 2)), -sp.oo, sp.oo),
    "beta of one factor": (sp.exp(-x) * (2 + 3 * sp.exp(-2 * x)) ** (-t - 2), -sp.oo, sp.oo),
    "beta of two factors": (
        sp.exp(-x) * (1 + sp.exp(-x)) ** t * (2 + sp.exp(-x)) ** (-t - 3),
        -sp.oo,
        sp.oo,
    ),
    "beta made elementary": (
        sp.exp(-x) * (1 + sp.exp(-x)) ** t * (2 + sp.exp(-x)) ** (-t - 2),
        -sp.oo,
        sp.oo,
    ),
    "power of a line in e^x": (sp.exp(2 * x) * (3 + sp.exp(x)) ** (-t - 4), R(0), sp.oo),
    "power of a line, turned": (sp.exp(-3 * x) * (1 + 2 * sp.exp(-3 * x)) ** (t + 1), R(0), R(1)),
    "beta from its zero": (sp.exp(-x) * (1 - sp.exp(-2 * x)) ** (t + 1), R(0), sp.oo),
    "gamma of whole order": (sp.exp(2 * x - (t + 2) * sp.exp(x)), R(0), sp.oo),
    "gamma of whole order between": (sp.exp(3 * x - (t + 2) * sp.exp(x)), -R(1, 2), R(2, 3)),
    "power of a line in e^x, elsewhere": (
        sp.exp(2 * x) * (3 + sp.exp(x)) ** (-t - 4),
        R(1, 2),
        sp.oo,
    ),
    "gamma of order one half": (sp.exp(x / 2 - 3 * sp.exp(x)), -R(2), sp.oo),
    "gamma of order one half, turned": (sp.exp(-x - 3 * sp.exp(-2 * x)), -R(1), R(2)),
    "bessel": (sp.exp(-(t + 1) * sp.exp(x) - 2 * sp.exp(-x) + x / 3), -sp.oo, sp.oo),
    "bessel of half order": (
        sp.exp(-(t + 1) * sp.exp(2 * x) - 2 * sp.exp(-2 * x) + 3 * x),
        -sp.oo,
        sp.oo,
    ),
    "power of a quadratic": ((x**2 + 2 * x + 3) ** (-t - 2), -sp.oo, sp.oo),
    "powers of two quadratics": (
        (x**2 + 2 * x + 3) ** (-t - 1) * (x**2 + 1) ** t,
        -sp.oo,
        sp.oo,
    ),
    "weibull": (x ** (t + 1) * sp.exp(-(t + 2) * x ** R(5, 2)), R(0), sp.oo),
    "kumaraswamy": (x**2 * (1 - x**3) ** (t + 1), R(0), R(1)),
    "burr": (x**t * (1 + x**3) ** (-t - 2), R(0), sp.oo),
    "full circle": (sp.exp(t * sp.cos(x) + sp.sin(x)), -sp.pi, sp.pi),
    "power of a sine": (sp.sin(x) ** (t + 1), R(0), sp.pi),
    "power to infinity": ((x + 2) ** (-t - 3), R(0), sp.oo),
    "power from its zero": (x**t, R(0), R(2)),
    "gamma on a ray": ((x - 1) ** t * sp.exp(-3 * x), R(1), sp.oo),
    "gamma on the other ray": ((1 - x) ** t * sp.exp(3 * x), -sp.oo, R(1)),
    "beta between its zeros": ((x - 1) ** t * (3 - x) ** (t + 1), R(1), R(3)),
    "log line": (x**t * sp.exp(-(sp.log(x) ** 2)), R(0), sp.oo),
    "waves on a ray": (sp.exp(-(t + 1) * x) * (2 + sp.cos(3 * x)), R(0), sp.oo),
    "waves between": (sp.exp((t - 2) * x) * (3 + sp.sin(2 * x + 1)) ** 2, -R(1), R(2)),
    "waves on the line": (sp.exp(-(x**2) + t * x) * (2 + sp.cos(3 * x)), -sp.oo, sp.oo),
    "polynomial": ((x**2 + 1) ** 2 * (2 + x), -R(1), R(2)),
    "inverse sine": (1 / sp.sqrt(4 - (x - 1) ** 2), R(0), R(2)),
    "power of a wave": ((1 + sp.cos(x)) ** (t + 2), -sp.pi, sp.pi),
    "two powers": ((1 + x) ** (t + 1) * (3 + x) ** (-t - R(1, 2)), R(0), R(2)),
}

SUMS = {
    "geometric up": (sp.exp((t - 1) * k), k, R(-2), sp.oo),
    "geometric down": (sp.exp((t + 1) * k), k, -sp.oo, R(5)),
    "geometric between": (sp.exp((t + 1) * k), k, -R(3), R(120)),
    "a few terms": (sp.exp(-t * k**2), k, -R(3), R(4)),
    "negative binomial series": (
        sp.binomial(n + 3, n) * sp.exp((t - 2) * n),
        n,
        R(0),
        sp.oo,
    ),
    "gamma ratio series": (
        sp.gamma(n + R(5, 2)) / sp.factorial(n) * sp.exp(-2 * n),
        n,
        R(0),
        sp.oo,
    ),
    "binomial sum": (sp.binomial(70, n) * sp.exp(t * n), n, R(0), R(70)),
    "polynomial series": ((n**2 + 1) * sp.exp((t - 2) * n), n, R(0), sp.oo),
    "logarithmic series": (sp.exp((t - 2) * n) / (n + 1), n, R(0), sp.oo),
    "logarithmic series, moved": (sp.exp((t - 2) * k) / (k + 3), k, -R(2), sp.oo),
    "exponential series": (sp.exp(t * n) / sp.factorial(n), n, R(0), sp.oo),
}


def asked_of(name: str) -> Integrand:
    """Return an integral or a sum as the table takes it."""
    if name in SUMS:
        term, variable, first, last = SUMS[name]
        return Integrand(form(term, variable, R(1)), first, last, True)
    integrand, lower, upper = INTEGRALS[name]
    inside = R(3, 2) if lower in (0, 1) else -R(1) if upper in (1, -R(1, 2)) else R(3, 2)
    inside = R(1, 2) if lower == 0 and upper == 1 else inside
    inside = R(0) if name in {"full circle", "power of a wave"} else inside
    return Integrand(form(integrand, x, inside), lower, upper, False)


def test_every_rule_of_the_table_is_asked() -> None:
    entries = [entry_of(asked_of(name)) for name in (*INTEGRALS, *SUMS)]
    asked = {rule for entry in entries if entry is not None for rule in entry.rules}
    rules = (*INTEGRAL_RULES, *LAST_RULES, *SUM_RULES)
    assert {rule.__name__ for rule in rules} == asked


@pytest.mark.slow_cases("powers of two quadratics")
@pytest.mark.parametrize("name", INTEGRALS)
def test_integrals(name: str) -> None:
    integrand, lower, upper = INTEGRALS[name]
    own = asked_of(name).form
    value = definite(asked_of(name))
    assert value is not None
    total = sp.N((value * sp.exp(own.constant)).subs(t, AT), 30)
    function = sp.lambdify(x, integrand.subs(t, AT), "mpmath")
    with mpmath.workdps(30):
        marks = [-120, -60, -30, -12, -6, -3, -1, 0, 1, 3, 6, 12, 30, 60, 120, 10**3, 10**5, 10**8]
        marks += [10**12, 10**17]
        if (integrand.atoms(sp.exp) and "bessel" in name) or " order" in name:
            marks = [mark for mark in marks if -12 <= mark <= 12]  # e^(e^x) ends it there
            lower, upper = max(lower, -R(6)), min(upper, R(6))
        if "quadratic" in name:
            marks = [side * m for m in (*marks, 10**22, 10**27) for side in (-1, 1) if m > 0]
            marks = sorted(marks)
        low, high = (
            sp.Float(sp.N(end, 30), 30) if end.is_finite else end for end in (lower, upper)
        )
        inner = [mark for mark in marks if low < mark < high]
        ends = [*([low] if lower.is_finite else []), *inner, *([high] if upper.is_finite else [])]
        direct = mpmath.re(mpmath.quad(function, [mpmath.mpf(str(end)) for end in ends]))
        assert abs(mpmath.mpf(str(total)) - direct) < mpmath.mpf(10) ** -18 * direct


@pytest.mark.quick_cases(
    "a few terms", "binomial sum", "exponential series", "logarithmic series, moved"
)
@pytest.mark.parametrize("name", SUMS)
def test_sums(name: str) -> None:
    term, variable, lower, upper = SUMS[name]
    own = form(term, variable, R(1))
    value = definite(Integrand(own, lower, upper, True))
    assert value is not None
    total = sp.N((value * sp.exp(own.constant)).subs(t, AT), 30)
    first = -120 if lower == -sp.oo else int(lower)
    last = 150 if upper == sp.oo else int(upper)
    direct = sum(sp.N(term.subs({t: AT, variable: j}), 40) for j in range(first, last + 1))
    assert abs(total - direct) < R(1, 10**25) * abs(total)


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ((-2, R(5, 2)), (R(3, 2),)),  # a polynomial
        ((-3, R(1, 2), R(4, 3)), (R(5, 3), R(7, 4))),
        ((0, R(1, 2)), (R(1, 3),)),
        ((R(1, 3),), ()),  # a power
        ((R(1, 3), 2), (2,)),
        ((-R(1, 3), R(4, 3)), (1,)),  # Legendre's function
        ((R(1, 2), R(1, 3)), (R(5, 4),)),
    ],
    ids=str,
)
@pytest.mark.parametrize("at", [-R(3, 4), R(1, 3)], ids=str)
def test_hypergeometric_functions_are_their_series(above, below, at):
    value = sp.N(hypergeometric(above, below, at), 30)
    with mpmath.workdps(30):
        sides = [
            [mpmath.mpf(sp.Rational(a).p) / sp.Rational(a).q for a in s] for s in (above, below)
        ]
        truth = mpmath.hyper(*sides, mpmath.mpf(at.p) / at.q)
        assert abs(mpmath.mpf(str(value)) - truth) < 1e-25


@pytest.mark.parametrize(
    ("integrand", "lower", "upper"),
    [
        (sp.exp(-(x**4) + t * x), -sp.oo, sp.oo),
        (sp.exp(t * x), -sp.oo, sp.oo),
        (sp.exp(-t * x**2), -R(1), R(1)),
        ((1 + x**4) ** (-t - 1) * (1 + x**2) ** (-t - 1), -sp.oo, sp.oo),
        (sp.exp(-sp.exp(-x)), R(0), sp.oo),
    ],
)
def test_what_the_table_does_not_know_is_left(
    integrand: sp.Expr, lower: sp.Expr, upper: sp.Expr
) -> None:
    assert definite(Integrand(form(integrand, x, R(1, 2)), lower, upper, False)) is None


@pytest.mark.parametrize(
    ("density", "zero", "inside"),
    [
        ((1 + sp.cos(sp.pi * x)) / 2, sp.S.One, sp.S.Zero),
        ((1 - sp.cos(sp.pi * x)) / 2, sp.S.Zero, sp.S.Half),
        ((3 - 3 * sp.sin(2 * x)) / 7, sp.pi / 4, sp.S.Zero),
        ((1 + sp.sin(x)) / 4, 3 * sp.pi / 2, sp.S.Zero),
    ],
    ids=str,
)
def test_one_plus_a_cosine_does_not_cancel_at_its_zeros(density, zero, inside):
    form = log_form(density, x, inside).to_expression()
    values = sp.lambdify(x, form, "math")
    for power in (3, 6, 9):
        place = float(zero) + (-1 if inside < zero else 1) * 10.0**-power
        exact = sp.log(density).subs(x, sp.Rational(place)).evalf(20, maxn=200)
        assert values(place) == pytest.approx(float(exact), rel=1e-7 if zero else 1e-14)
