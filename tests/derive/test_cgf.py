"""Closed-form CGFs against quadrature at 30 digits, at tilts that the derivation did not check."""

from __future__ import annotations

from functools import lru_cache

import mpmath
import pytest
import sympy as sp
from derive_examples import (
    PAIRS,
    R,
    additive,
    gaussian,
    laplace,
    logistic,
    plain,
    poisson,
    randomized_response,
    x,
)

from symdp.density import check
from symdp.density.check import CheckError, agrees, moment
from symdp.density.normal_form import LogForm
from symdp.density.pieces import pieces, points
from symdp.density.records import Piece
from symdp.derive import cgf as cgf_module
from symdp.derive.cgf import derive_cgf
from symdp.derive.domain import Flank, cgf_domain
from symdp.derive.records import CGF
from symdp.model.pair import Pair

sigma, delta, b = sp.symbols("sigma Delta b", positive=True)
t = sp.Symbol("t", real=True)

CLOSED = [
    "gaussian",
    "laplace",
    "asymmetric laplace",
    "logistic",
    "logistic by sech",
    "sech",
    "gumbel",
    "two variances",
    "uniform",
    "exponential noise",
    "exponential noise add",
    "beta",
    "gamma",
    "flat top",
    "discrete laplace",
    "discrete laplace poisson",
    "geometric",
    "geometric shifted",
    "zero inflated",
]
NUMERIC = [
    "gaussian poisson",
    "gaussian without",
    "logistic poisson",
    "laplace poisson",
    "laplace poisson add",
    "quartic",
    "mixed noise",
    "discrete gaussian",
    "wave",
]
BOTH_WAYS_CONTINUOUS = [
    name for name in CLOSED if not any(w in name for w in ("uniform", "exponential", "shifted"))
]


@pytest.fixture(autouse=True)
def _cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here may rest on what an earlier session stored."""
    monkeypatch.setenv("SYMDP_CACHE", "off")


@lru_cache
def found(name: str) -> CGF:
    return derive_cgf(PAIRS[name]())


def raw_moment(pair: Pair, z: complex | mpmath.mpf, cuts: list[sp.Expr]) -> mpmath.mpc:
    """∫ P^{1+z} Q^{−z} by tanh-sinh on P and Q as they were written, split at the given places."""
    variable = pair.variable
    p, q = (sp.lambdify(variable, law, "mpmath") for law in (pair.P, pair.Q))

    def integrand(at: mpmath.mpf) -> mpmath.mpc:
        top, bottom = mpmath.mpf(p(at)), mpmath.mpf(q(at))
        return mpmath.exp((1 + z) * mpmath.log(top) - z * mpmath.log(bottom)) if top > 0 else 0

    if variable.is_integer:
        low = -250 if cuts[0] == -sp.oo else int(cuts[0])
        return mpmath.fsum(integrand(mpmath.mpf(k)) for k in range(low, 251))
    places = [mpmath.mpf(str(sp.N(cut, 50))) for cut in cuts if cut not in (-sp.oo, sp.oo)]
    first, last = min(places, default=mpmath.mpf(0)), max(places, default=mpmath.mpf(0))
    steps = [2, 5, 10, 20, 40, 80, 160, 320]
    below = [first - s for s in reversed(steps)] if cuts[0] == -sp.oo else []
    above = [last + s for s in steps] if cuts[-1] == sp.oo else []
    return mpmath.quad(integrand, [*below, *(places or [mpmath.mpf(0)]), *above], maxdegree=9)


@pytest.mark.quick_cases(
    "z0-uniform", "z0-geometric shifted", "z0-exponential noise", "z0-zero inflated"
)
@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("z", [mpmath.mpf("0.37"), mpmath.mpc("-0.61", "0.83")])
def test_closed_form_equals_quadrature_of_the_raw_densities(name: str, z: mpmath.mpc) -> None:
    pair, cgf = PAIRS[name](), found(name)
    assert cgf.form == "closed", cgf.reason
    assert cgf.expression is not None
    both = [p for p in pieces(pair) if p.log_p is not None and p.log_q is not None]
    cuts = [both[0].lower, *(p.upper for p in both)]
    with mpmath.workdps(40):
        at = sp.Float(str(mpmath.re(z)), 45) + sp.I * sp.Float(str(mpmath.im(z)), 45)
        closed = mpmath.mpmathify(sp.exp(cgf.expression).subs(cgf.tilt, at).evalf(40))
        direct = raw_moment(pair, z, cuts)
        assert abs(closed - direct) < mpmath.mpf(10) ** -30 * abs(direct)


@pytest.mark.quick_cases(
    "-1-gamma",
    "-1-gaussian",
    "-1-geometric",
    "-1-gumbel",
    "-1-zero inflated",
    "0-zero inflated",
    "-1-asymmetric laplace",
    "-1-discrete laplace",
    "-1-laplace",
    "0-discrete laplace",
    "0-gaussian",
    "0-gumbel",
    "0-gamma",
    "0-geometric",
)
@pytest.mark.parametrize("name", BOTH_WAYS_CONTINUOUS)
@pytest.mark.parametrize("place", [0, -1])
def test_total_probability_is_one_under_p_and_q(name: str, place: int) -> None:
    cgf = found(name)
    assert cgf.expression is not None
    # A removable 0/0 at the place is passed at a short distance.
    near = sp.Rational(place) + (R(1, 10**30) if cgf.removable else 0)
    assert abs(sp.N(cgf.expression.subs(cgf.tilt, near), 60)) < R(1, 10**25)


def test_mass_at_infinity_stays_outside_the_cgf() -> None:
    assert found("uniform").expression == -sp.log(2)
    assert sp.simplify(found("exponential noise add").expression.subs(t, 0) + 1) == 0


@pytest.mark.parametrize("name", NUMERIC)
def test_what_has_no_closed_form_says_why(name: str) -> None:
    cgf = found(name)
    assert (cgf.form, cgf.expression) == ("numeric", None)
    assert cgf.reason


@pytest.mark.slow
def test_symbolic_closed_forms_are_the_known_ones() -> None:
    known = {
        t * (t + 1) * delta**2 / (2 * sigma**2): additive(gaussian(sigma), delta),
        sp.log(sp.sinh((t + R(1, 2)) * delta / b) / ((2 * t + 1) * sp.sinh(delta / (2 * b)))): (
            additive(logistic(b), delta)
        ),
        sp.log(((t + 1) * sp.exp(t / b) + t * sp.exp(-(t + 1) / b)) / (2 * t + 1)): (
            additive(laplace(b))
        ),
        (t + 1) / b - sp.log((t + 1) * sp.exp(1 / b) - t): (
            additive(sp.exp(-x / b - sp.exp(-x / b)) / b)
        ),
    }
    values = {sigma: R(3, 2), delta: R(5, 4), b: R(7, 3)}
    for wanted, pair in known.items():
        cgf = derive_cgf(pair)
        assert cgf.form == "closed", cgf.reason
        for tilt in (R(1, 3), -R(9, 7), R(5, 2)):
            gap = (cgf.expression - wanted).subs({**values, t: tilt})
            assert abs(sp.N(gap, 40)) < R(1, 10**30)


def test_randomized_response_is_a_finite_sum() -> None:
    level = sp.Symbol("e", positive=True)
    cgf = derive_cgf(randomized_response(sp.exp(level) / (1 + sp.exp(level))))
    wanted = sp.log(sp.cosh((2 * t + 1) * level / 2) / sp.cosh(level / 2))
    assert abs(sp.N((cgf.expression - wanted).subs({t: R(2, 3), level: 2}), 30)) < 1e-25
    assert cgf.domain == (-sp.oo, sp.oo)


@pytest.mark.slow_cases(
    "student-domain2", "triangle-domain10", "student poisson-domain3", "beta-domain7"
)
@pytest.mark.parametrize(
    ("name", "domain"),
    [
        ("gaussian", (-sp.oo, sp.oo)),
        ("two variances", (-R(4, 3), sp.oo)),
        ("student", (-sp.oo, sp.oo)),
        ("student poisson", (-sp.oo, sp.oo)),
        ("gaussian poisson", (-sp.oo, sp.oo)),
        ("gumbel", (-1 / (1 - sp.exp(-R(1, 2))), sp.oo)),
        ("geometric", (-sp.oo, sp.log(R(3, 2)) / sp.log(R(4, 3)))),
        ("beta", (-R(3), sp.oo)),
        ("gamma", (-R(3), sp.oo)),
        ("rayleigh signs", (-R(3, 2), R(1, 2))),
        ("triangle", (-R(2), R(1))),
    ],
)
def test_domain(name: str, domain: tuple[sp.Expr, sp.Expr]) -> None:
    own = found(name).domain
    assert own is not None
    for mine, wanted in zip(own, domain, strict=True):
        assert mine == wanted or abs(sp.N(mine - wanted, 30)) < 1e-25


def test_domain_of_tails_of_different_orders_ends_at_zero() -> None:
    heavy, light = LogForm(x, smooth={x: -sp.S.One}), LogForm(x, smooth={x**2: -sp.S.One})
    assert cgf_domain([Flank((heavy,), (light,), sp.oo)]) == (-sp.oo, 0)
    assert cgf_domain([Flank((light,), (heavy,), sp.oo)]) == (-1, sp.oo)


def test_moment_diverges_just_outside_the_domain() -> None:
    pair = PAIRS["two variances"]()
    edge = found("two variances").domain[0]
    assert moment(edge + R(1, 50), pieces(pair), (), x).is_finite()
    with pytest.raises(CheckError):
        moment(edge - R(1, 50), pieces(pair), (), x)


def test_a_wrong_closed_form_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    right = cgf_module._closed_form

    def wrong(*arguments: object) -> sp.Expr:
        return right(*arguments) * R(10**12 + 1, 10**12)

    derive_cgf.cache_clear()
    monkeypatch.setattr(cgf_module, "_closed_form", wrong)
    cgf = derive_cgf(additive(gaussian(R(7, 5))))
    derive_cgf.cache_clear()
    assert cgf.form == "numeric"
    assert "disagrees" in cgf.reason


def test_wrong_log_densities_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    right = check.pieces

    def wrong(pair: Pair) -> tuple[Piece, ...]:
        return tuple(
            Piece(p.lower, p.upper, p.log_p + R(1, 10**9), p.log_q, p.loss, p.slope)
            for p in right(pair)
        )

    derive_cgf.cache_clear()
    monkeypatch.setattr(check, "pieces", wrong)
    cgf = derive_cgf(additive(gaussian(R(7, 5))))
    derive_cgf.cache_clear()
    assert (cgf.form, cgf.reason) == ("numeric", "the log densities disagree with P and Q")


def test_agreement_is_to_eighteen_digits() -> None:
    pair = additive(gaussian(sp.S.One))
    law = (pieces(pair), points(pair), x)
    exact = t * (t + 1) / 2
    assert agrees(exact, t, R(3, 4) + sp.I * R(5, 4), law)
    assert not agrees(exact + R(1, 10**15), t, R(3, 4) + sp.I * R(5, 4), law)


def test_no_time_means_the_table_alone() -> None:
    assert derive_cgf(additive(gaussian(R(8, 5))), 0.0).form == "closed"
    beyond = plain(
        sp.exp(-x - sp.exp(-x)) * sp.Integer(1), sp.exp(-2 * x - sp.exp(-x))
    )  # in the table as well
    assert derive_cgf(beyond, 0.0).form == "closed"
    assert derive_cgf(PAIRS["quartic"](), 0.0).form == "numeric"


def test_subsampling_with_a_free_rate_is_declared_numeric() -> None:
    rate = sp.Symbol("q", nonnegative=True)
    cgf = derive_cgf(poisson(additive(gaussian(sigma)), rate), 20.0, ("q",))
    assert cgf.form == "numeric"
    assert cgf.domain == (-sp.oo, sp.oo)


def test_a_parameter_called_t_keeps_its_name() -> None:
    own = sp.Symbol("t", positive=True)
    cgf = derive_cgf(additive(gaussian(own)))
    assert cgf.tilt.name != "t"
    assert sp.simplify(cgf.expression - cgf.tilt * (cgf.tilt + 1) / (2 * own**2)) == 0


def test_special_functions_have_the_names_that_people_use():
    x, z = sp.symbols("x z")
    total = (
        sp.hyper([1, x], [3], z) + sp.hyper([1], [x, 3], z) + sp.meijerg([[1], []], [[x], []], z)
    )
    told = r"in 3 special functions \(Meijer G, ₁F₂, ₂F₁\) was found"
    with pytest.raises(cgf_module.NoClosedForm, match=told):
        cgf_module._refuse_unreadable(total)


def test_a_notebook_shows_the_formula_or_says_that_there_is_none():
    t = sp.Symbol("t")
    closed = CGF(t, t**2 / 2, "closed", None)
    assert closed._repr_latex_() == r"$\displaystyle K(t) = \frac{t^{2}}{2}$"
    open_ = CGF(t, None, "numeric", None, reason="it took too long")
    assert open_._repr_latex_() == r"$K(t) \text{ numerically: it took too long}$"
