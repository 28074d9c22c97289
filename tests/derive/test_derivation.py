"""The derivation as a whole: through mechanisms, in all its presentations."""

from __future__ import annotations

import json
import multiprocessing
import threading

import mpmath
import pytest
import sympy as sp
from derive_examples import R, gaussian, student, x
from flint import arb

import symdp
from symdp.density.normal_form import exponential_polynomial, occurrences, tidy_polynomial
from symdp.density.roots import RootsUnknownError, isolated_roots, roots_between
from symdp.density.signs import compare, interior_point, sign_of, sorted_points
from symdp.derive import Derivation, derive
from symdp.derive.child import compute
from symdp.derive.limits import limit_at
from symdp.derive.simplify import log_of_total
from symdp.emit.ranges import Ranges, Seen
from symdp.errors import InputError
from symdp.model.mechanism import Mechanism
from symdp.model.tidy import Generators

BUILT_IN = (
    "gaussian",
    "laplace",
    "logistic",
    "gumbel",
    "student_t",
    "discrete_laplace",
    "discrete_gaussian",
    "randomized_response",
)


@pytest.fixture(scope="module")
def derivations() -> dict[str, Derivation]:
    return {name: derive(getattr(symdp.mechanisms, name)) for name in BUILT_IN}


@pytest.mark.quick_cases("discrete_gaussian")
@pytest.mark.parametrize("name", BUILT_IN)
def test_json_holds_everything_and_survives_a_round_trip(
    name: str, derivations: dict[str, Derivation]
) -> None:
    data = derivations[name].to_json(order=1)
    assert json.loads(json.dumps(data)) == data
    assert data["schema"] == "symdp/derivation/1"
    assert data["name"] == name
    assert set(data["cumulants"]) == {"1", "2"}
    assert (data["cgf"]["expression"] is None) == (data["cgf"]["form"] == "numeric")
    assert (data["cgf"]["reason"] is None) == (data["cgf"]["form"] == "closed")


@pytest.mark.quick_cases("gaussian")
@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("gaussian", "z_δ√n/σ + n/(2σ²) − 1"),
        ("student_t", "κ₃·(z_δ + 1)(z_δ − 1)/(6κ₂)"),
        ("randomized_response", "nε₀·tanh(ε₀/2)"),
        ("approximate_dp", "ε does not exist for large n"),
    ],
    ids=("gaussian", "student_t", "randomized_response", "approximate_dp"),
)
def test_many_steps_are_told(name: str, formula: str) -> None:
    d = derive(getattr(symdp.mechanisms, name))
    assert formula in " ".join(d.show("asymptotics").split())


@pytest.mark.quick_cases("discrete_gaussian", "gaussian")
@pytest.mark.parametrize("name", BUILT_IN)
def test_text_and_latex_are_complete(name: str, derivations: dict[str, Derivation]) -> None:
    found = derivations[name]
    text, latex = found.to_text(1), found.to_latex(1)
    assert "Privacy loss" in text
    assert "K(t) = " in text
    assert latex.startswith("% ")
    assert latex.count("{") == latex.count("}")
    assert found._repr_latex_().startswith("$$")
    assert found.cgf._repr_latex_().startswith("$")


def test_built_ins_have_the_forms_that_are_known(derivations: dict[str, Derivation]) -> None:
    forms = {name: found.cgf.form for name, found in derivations.items()}
    numeric = {name for name, form in forms.items() if form == "numeric"}
    assert numeric == {"discrete_gaussian"}


def test_ranges_atoms_and_masses(derivations: dict[str, Derivation]) -> None:
    b = symdp.mechanisms.laplace.parameters["b"]
    laplace = derivations["laplace"]
    assert laplace.loss_range == (-1 / b, 1 / b)
    assert {atom.loss: atom.mass for atom in laplace.atoms} == {
        1 / b: R(1, 2),
        -1 / b: sp.exp(-1 / b) / 2,
    }
    assert laplace.mass_at_infinity == 0
    lattice = derivations["discrete_laplace"]
    masses = sum(atom.mass for atom in lattice.atoms)
    own = symdp.mechanisms.discrete_laplace.parameters["b"]
    assert abs(sp.N((masses - 1).subs(own, R(3, 2)), 30)) < 1e-25


def test_loss_covers_the_whole_support(derivations: dict[str, Derivation]) -> None:
    b = symdp.mechanisms.laplace.parameters["b"]
    y = derivations["laplace"].variable
    at = {place: derivations["laplace"].loss.subs({y: place, b: 2}) for place in (-3, R(1, 4), 5)}
    assert at == {-3: -R(1, 2), R(1, 4): -R(1, 4), 5: R(1, 2)}
    assert isinstance(derivations["randomized_response"].loss, sp.Piecewise)


def test_mass_at_infinity_of_both_directions() -> None:
    third = R(1, 3)
    uniform = Mechanism.additive(
        sp.Piecewise((third, x <= 3), (0, True)), sp.Symbol("x"), support=(0, 3)
    )
    there, back = derive(uniform), derive(uniform, "add")
    assert (there.mass_at_infinity, there.mass_at_minus_infinity) == (third, third)
    assert (back.mass_at_infinity, back.loss_range) == (third, (0, 0))


def test_cumulants_are_derivatives_of_the_cgf(derivations: dict[str, Derivation]) -> None:
    for name in ("gaussian", "laplace", "logistic", "gumbel", "discrete_laplace"):
        found = derivations[name]
        (parameter,) = found.mechanism.parameters.values()
        tilt, place = found.cgf.tilt, R(2, 7)
        expression = sp.lambdify(tilt, found.cgf.expression.subs(parameter, R(5, 3)), "mpmath")
        with mpmath.workdps(60):
            for order in range(1, 5):
                exact = found.cumulant(order).subs({parameter: R(5, 3), tilt: place})
                seen = mpmath.diff(expression, mpmath.mpf(2) / 7, order)
                assert abs(sp.N(exact, 40) - sp.Float(str(seen), 40)) < 1e-20


@pytest.mark.slow
def test_numeric_cumulants_come_as_tilted_moments(derivations: dict[str, Derivation]) -> None:
    found = derivations["student_t"]
    t = found.cgf.tilt
    whole = found.moment_integral
    first, second, third = (sp.diff(whole, t, k) / whole for k in (1, 2, 3))
    assert not found.cumulant(1).atoms(sp.core.function.AppliedUndef)
    assert found.cumulant(2) == second - first**2
    assert sp.expand(found.cumulant(3) - (third - 3 * first * second + 2 * first**3)) == 0


def test_series_delegate_and_substitute(derivations: dict[str, Derivation]) -> None:
    found = derivations["gaussian"]
    sigma = found.mechanism.parameters["sigma"]
    names = {symbol.name for symbol in found.msd(1).free_symbols}
    assert names == {"F_0", "F_2", "F_3", "F_4"}
    assert {s.name for s in found.edgeworth(2).free_symbols} == {"x", "lambda_3", "lambda_4"}
    # One hundred Gaussian steps at the saddle point, against the exact profile.
    n, s, eps = 100, 20.0, 1.0
    mu = n**0.5 / s
    t, z = 0.0, sp.Symbol("t", positive=True)
    condition = n * (2 * z + 1) / (2 * s**2) - eps - 1 / z - 1 / (1 + z)
    t = float(sp.nsolve(condition, z, 5))
    values = {z: t, sigma: s, sp.Symbol("n", integer=True, positive=True): n}
    values[sp.Symbol("epsilon", real=True)] = eps
    normal = mpmath.ncdf
    exact = normal(-eps / mu + mu / 2) - mpmath.exp(eps) * normal(-eps / mu - mu / 2)
    errors = [
        abs(float(found.msd(order, substitute=True).subs(values).evalf()) / exact - 1)
        for order in range(3)
    ]
    assert errors[2] < errors[1] < errors[0] < 0.2
    # A Gaussian loss has no cumulant beyond the second: every series is the normal law.
    assert sp.simplify(found.edgeworth(3, substitute=True) - found.edgeworth(0)) == 0


@pytest.mark.slow
def test_edgeworth_at_a_removable_tilt_is_a_limit() -> None:
    found = derive(symdp.mechanisms.laplace(b=1))
    assert found.cumulant_at(1, -R(1, 2)) == 0
    mean = found.cumulant_at(1, 0)
    assert abs(sp.N(mean - sp.exp(-1), 30)) < 1e-25


def test_what_cannot_be_substituted_is_refused(derivations: dict[str, Derivation]) -> None:
    with pytest.raises(InputError, match="no closed form of the CGF of discrete_gaussian was"):
        derivations["discrete_gaussian"].msd(1, substitute=True)
    with pytest.raises(InputError, match="no closed form of the derivative of order 1 of student"):
        derivations["student_t"].msd(1, substitute=True)
    with pytest.raises(InputError, match="whole number, 1 or more"):
        derivations["gaussian"].cumulant(0)
    with pytest.raises(InputError, match="whole number, 0 or more"):
        derivations["gaussian"].msd(-1)
    with pytest.raises(InputError, match="direction"):
        derive(symdp.mechanisms.gaussian, "sideways")
    with pytest.raises(InputError, match="time_limit"):
        derive(symdp.mechanisms.gaussian, time_limit=float("nan"))


def test_children_are_stopped_in_time_and_left_none_behind() -> None:
    hard = student(sp.Symbol("nu", positive=True)) ** sp.Symbol("t", positive=True)
    assert compute("integrate", (hard * sp.exp(-(x**4)), x, -sp.oo, sp.oo), 0.3) is None
    assert multiprocessing.active_children() == []
    assert compute("integrate", (sp.exp(-(x**2)), x, -sp.oo, sp.oo), 0.0) is None


@pytest.mark.slow
def test_children_also_serve_where_a_fork_is_unsafe() -> None:
    release = threading.Event()
    other = threading.Thread(target=release.wait)
    other.start()
    try:
        assert compute("integrate", (gaussian(sp.S.One), x, -sp.oo, sp.oo), 60.0) == 1
        assert compute("limit", (sp.sin(x) / x, x, sp.S.Zero, "+"), 60.0) == 1
    finally:
        release.set()
        other.join()


def test_a_failing_child_is_no_result() -> None:
    assert compute("integrate", (sp.Function("f")(x), x, sp.S.Zero, sp.S.One), 20.0) is None


@pytest.mark.parametrize(
    ("difference", "sign"),
    [
        (lambda s: 2 * s - 3 - sp.sqrt(9 + 4 * s**2), -1),
        (lambda s: 2 * s + 4 - sp.sqrt(9 + 4 * s**2), 1),
        (lambda s: sp.sqrt(1 + s) - sp.sqrt(2 + s), -1),
        (lambda s: 3 / sp.sqrt(1 + 9 / s**2) - 1 / sp.sqrt(1 + 1 / s**2), 1),
        (lambda s: s + 1 - sp.sqrt(s + 1), 1),
        (lambda s: s - sp.sqrt(s + 1), None),
    ],
)
def test_signs_of_square_roots_are_what_squares_show(difference, sign):
    s = sp.Symbol("s", positive=True)
    assert sign_of(difference(s)) == sign
    seen = {int(sp.sign(difference(sp.Rational(k, 7)))) for k in (1, 5, 20, 300)}
    assert seen == ({sign} if sign else {1, -1})


def test_signs_are_certain_or_none() -> None:
    s, d = sp.symbols("s d", positive=True)
    assert sign_of(sp.exp(d / s) - 1) == 1
    assert sign_of(1 - sp.exp(-d)) == 1
    assert sign_of(s - d) is None
    assert sign_of(sp.sqrt(2) + sp.sqrt(3) - sp.sqrt(5 + 2 * sp.sqrt(6))) == 0
    assert sign_of(sp.exp(sp.pi * sp.sqrt(163)) - 262537412640768744) == -1
    assert compare(sp.oo, s) == 1
    assert sorted_points({d, sp.S.Zero, -d}, "points") == [-d, 0, d]
    assert sp.pi < interior_point(sp.pi, sp.pi + R(1, 10**12)) < sp.pi + R(1, 10**12)


def test_roots_of_every_kind() -> None:
    line = (-sp.oo, sp.oo)
    assert roots_between(x**2 - 2 * x, x, sp.S.Zero, sp.oo) == (2,)
    assert set(roots_between(sp.exp(2 * x) - 3 * sp.exp(x) + 2, x, *line)) == {0, sp.log(2)}
    (real,) = roots_between(x**5 - x - 1, x, *line)
    assert abs(sp.N(real**5 - real - 1, 30, maxn=500)) < R(1, 10**55)
    (fixed,) = roots_between(x - sp.cos(x), x, *line)
    assert abs(sp.N(fixed - sp.cos(fixed), 30, maxn=500)) < R(1, 10**55)
    assert roots_between(2 + sp.exp(-x), x, *line) == ()
    radical = roots_between(sp.sqrt(1 + x**2) - 2 * x, x, *line)
    assert any(sp.simplify(root - 1 / sp.sqrt(3)) == 0 for root in radical)
    with pytest.raises(RootsUnknownError, match="infinitely many"):
        roots_between(sp.sin(x) + x / 10**9, x, *line)
    with pytest.raises(RootsUnknownError, match="give values to a"):
        roots_between(x * sp.exp(x) - sp.Symbol("a", positive=True), x, *line)


def test_isolation_finds_close_and_far_roots() -> None:
    close = sp.exp(x) * (x - 1) * (x - R(1001, 1000)) + sp.S.Zero
    found = sorted(isolated_roots(sp.expand(close), x, sp.S.Zero, R(5)))
    assert [
        abs(root - place) < R(1, 10**50)
        for root, place in zip(found, (1, R(1001, 1000)), strict=True)
    ] == [True, True]
    far = sp.log(1 + sp.exp(x)) - 10**6
    assert abs(sp.N(isolated_roots(far, x, -sp.oo, sp.oo)[0], 30) - 10**6) < 1e-20


def test_ranges_contain_values() -> None:
    expression = sp.exp(-(x**2)) * sp.log(2 + x) / (1 + x**2) - sp.gamma(R(1, 3)) * sp.sin(x)
    ranges = Ranges(expression, x)
    for k in range(-3, 8):
        low, high = ranges(arb(k) / 2, arb(k + 1) / 2, Seen())
        value = arb(str(sp.N(expression.subs(x, R(k, 2)), 25)))
        assert low <= value <= high
    assert Ranges(sp.exp(-x) - 1, x)(arb(1), arb.pos_inf(), Seen())[1] < 0


def test_limits_at_both_ends_and_at_singular_points() -> None:
    a = sp.Symbol("a", positive=True)
    assert limit_at(sp.log(1 - a + a * sp.exp(-x)), x, sp.oo, True) == sp.log(1 - a)
    assert limit_at(sp.log((x - 1) ** 2 / (x**2 + a)), x, sp.oo, True) == 0
    assert limit_at(2 * sp.log((1 - x) / x), x, sp.S.One, True) == -sp.oo
    assert limit_at(sp.sqrt(x**2 + 1) - sp.sqrt((x - 1) ** 2 + 1), x, sp.oo, True) == 1


def test_presentation_keeps_the_value_and_saves_variables() -> None:
    cubic = {3: R(4), 2: -R(6), 1: R(4), 0: -R(1)}
    tidy = tidy_polynomial(cubic, x)
    assert sp.expand(tidy - sum(c * x**k for k, c in cubic.items())) == 0
    assert occurrences(tidy, x) == 2
    # Nearly equal variances: completing the square would lose fourteen digits.
    nearly = tidy_polynomial({2: R(1, 10**14), 1: R(1), 0: -R(1, 2)}, x)
    assert occurrences(nearly, x) == 2
    assert exponential_polynomial([(sp.S.One, x), (sp.S.One, sp.sqrt(2) * x)], x) is None


def test_generators_restore_what_they_replaced() -> None:
    t = sp.Symbol("t", real=True)
    expression = sp.exp(2 * t + 1) * 3**t - sp.tanh(sp.S.Half) * sp.exp(t) / 2
    generators = Generators(expression)
    for with_hyperbolics in (False, True):
        product = sp.Mul(
            *generators.factors(
                sp.factor(sp.together(generators.reduced)), with_hyperbolics=with_hyperbolics
            )
        )
        assert abs(sp.N((product - expression).subs(t, R(3, 7)), 40)) < R(1, 10**35)


def test_logs_of_totals_stay_real_where_both_parts_turn_negative() -> None:
    t = sp.Symbol("t", real=True)
    total = ((t + 1) * sp.exp(t) + t * sp.exp(-t - 1)) / (2 * t + 1)
    short = log_of_total(total, t)
    for place in (-R(5, 2), -R(1, 3), R(9, 4)):
        value = sp.N(short.subs(t, place), 30)
        assert value.is_real
        assert abs(value - sp.N(sp.log(total.subs(t, place)), 30)) < 1e-25
