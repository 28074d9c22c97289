"""Emitted accountants, run: the Python and the C file agree with the package and with mpmath."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import mpmath
import pytest
import sympy as sp
from emitted import (
    CASES,
    COMPILER,
    ORDER,
    CModule,
    X,
    closed_at,
    derived,
    package_law,
    places,
    python_module,
    run_python,
)

import symdp
from symdp import mechanisms
from symdp.emit.standalone import NoTapeError
from symdp.emit.standalone.corrections import correction_terms
from symdp.emit.standalone.model import CONDITIONS
from symdp.emit.standalone.runtime.series import _Arithmetic
from symdp.emit.standalone.tape import tape
from symdp.errors import InputError
from symdp.expansion import F, saddlepoint_corrections
from symdp.law import saddle_point
from symdp.law.standalone import to_c, to_python
from symdp.law.tilts import Strip
from symdp.methods import accountant
from symdp.model.sampling import _DOMAINS

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler")


@pytest.fixture(scope="module")
def c_module(tmp_path_factory):
    folder, built = tmp_path_factory.mktemp("c"), {}

    def build(case: str, order: int = ORDER) -> CModule:
        if (case, order) not in built:
            name = "".join(c if c.isalnum() else "_" for c in derived(case).mechanism.name)
            code = to_c(derived(case), order)
            own = folder / f"{case.replace(' ', '_')}_{order}"
            own.mkdir()
            built[case, order] = CModule(own, name, len(CASES[case][1]), code)
        return built[case, order]

    return build


@pytest.fixture
def _settled(monkeypatch):
    """The package stops at 1e-9 of a width from the saddle point; here rounding is compared."""
    search = saddle_point.saddle_point
    monkeypatch.setattr(
        saddle_point, "saddle_point", lambda law, epsilon, strip: search(law, epsilon, strip, 1e-13)
    )


@pytest.mark.slow_cases(
    "subsampled gaussian-1", "gumbel added-1", "half Cauchy with mass at infinity-1"
)
@pytest.mark.usefixtures("_settled")
@pytest.mark.parametrize("count", [1, 60, 10**6])
@pytest.mark.parametrize("case", CASES)
def test_python_gives_the_package_s_series(case, count):
    _, values, _ = CASES[case]
    module, law = python_module(case), package_law(case, count)
    compared = 0
    for order in (0, 1, ORDER):
        method = accountant(f"msd:{order}")
        for epsilon in places(law):
            answer = method.log_delta(law, epsilon)
            try:
                found, following = module.log_delta(epsilon, count, order=order, **values)
            except module.AccountantError:
                # The package has no series to give either, or reaches farther than a table.
                far = module._law(1, {}) if not values else None
                assert answer.kind == "bound" or hasattr(far, "_tilts")
                continue
            if answer.kind == "bound" or following > 1:
                continue  # out of its regime, where nothing is promised
            if answer.log_delta == -math.inf:
                assert found == -math.inf
            else:
                # δ to 1e-12 relative, which is log δ to 1e-12, where the series converges;
                # of a single step high cumulants are differences of moments, good to 1e-10
                allowed = (1e-12 if count > 1 else 1e-10) * (1 + following)
                assert found == pytest.approx(answer.log_delta, abs=allowed, rel=1e-14)
            compared += 1
    # One step of a rare event is no regime for a series: there, nothing may be left to compare.
    assert compared >= 4 or (case, count) == ("subsampled gaussian", 1)


@needs_compiler
@pytest.mark.parametrize("case", CASES)
def test_c_gives_what_python_gives(case, c_module):
    _, values, _ = CASES[case]
    module, library = python_module(case), c_module(case)
    for count in (60, 10**6):
        for epsilon in places(package_law(case, count)):
            for order in (0, ORDER):
                try:
                    expected = module.log_delta(epsilon, count, order=order, **values)
                except module.AccountantError:
                    with pytest.raises(ArithmeticError):
                        library.log_delta(epsilon, count, order=order, **values)
                    continue
                found = library.log_delta(epsilon, count, order=order, **values)
                allowed = 1e-12 * (1 + 10 * expected[1])
                assert found[0] == pytest.approx(expected[0], abs=allowed, rel=1e-14)
                assert found[1] == pytest.approx(expected[1], rel=1e-6, abs=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_epsilon_is_the_inverse_of_delta(case, c_module):
    _, values, _ = CASES[case]
    count = 40_000 if case.startswith("subsampled") else 400
    modules = [python_module(case)] + ([c_module(case)] if COMPILER else [])
    law = package_law(case, count)
    for delta in (0.01, 1e-9):
        if law.mass_at_infinity >= delta:
            for module in modules:
                with pytest.raises(ArithmeticError, match="no finite epsilon"):
                    module.epsilon(delta, count, **values)
            continue
        found = [module.epsilon(delta, count, **values) for module in modules]
        if 0 < found[0] < law.loss_bounds[1] * (1 - 1e-9):
            back = modules[0].log_delta(found[0], count, **values)[0]
            assert back == pytest.approx(math.log(delta), abs=1e-11)
        assert found[-1] == pytest.approx(found[0], rel=1e-12, abs=1e-12)


def test_epsilon_agrees_with_the_package():
    composed = symdp.compose(mechanisms.gumbel(b=3), 200)
    expected = composed.epsilon(1e-6, method="msd:2", direction="add").epsilon
    found = python_module("gumbel added").epsilon(1e-6, 200, b=3)
    assert found == pytest.approx(expected, rel=1e-9)  # as far as the package's search settles


@pytest.mark.parametrize("case", ["laplace", "logistic", "gumbel", "discrete laplace", "gaussian"])
@pytest.mark.parametrize("tilt", [-3.0, -0.75, -0.4375, -0.499, 0.0, 2.5, 40.0])
def test_derivatives_of_the_closed_form(case, tilt, c_module):
    (name,) = CASES[case][1]
    exact = sp.Rational(tilt)
    for value in (sp.Rational(1, 2), sp.Integer(3), sp.Integer(10**4)):
        if case == "gumbel" and tilt <= -2:
            continue
        expected = closed_at(case, exact, 6, **{name: value})
        modules = [python_module(case)] + ([c_module(case)] if COMPILER else [])
        for module in modules:
            found = module.cgf(tilt, 6, **{name: float(value)})
            for j, (one, other) in enumerate(zip(found, expected, strict=True)):
                floor = mpmath.mpf(10) ** -28 * 5**j  # pairs of doubles round at 1e-32
                assert abs(one - other) <= 1e-13 * abs(other) + floor, (value, j)


@pytest.mark.parametrize("case", ["laplace", "logistic"])
@pytest.mark.parametrize("distance", [0.0, 1e-15, 1e-9, 1e-4, 0.0099, 0.0101, 0.124, 0.126])
def test_removable_singularities_leave_no_trace(case, distance, c_module):
    (name,) = CASES[case][1]
    tilt = -0.5 + distance
    for value in (sp.Rational(1, 20), sp.Integer(2), sp.Integer(500)):
        # About −1/2 the loss is symmetric: even derivatives there, odd ones by Taylor's formula.
        near = closed_at(case, sp.Rational(tilt) + sp.Rational(1, 10**12), 4, **{name: value})
        modules = [python_module(case)] + ([c_module(case)] if COMPILER else [])
        for module in modules:
            found = module.cgf(tilt, 4, **{name: float(value)})
            for j in (0, 2):
                assert abs(found[j] / near[j] - 1) < 1e-10


@pytest.mark.parametrize("case", ["gaussian", "logistic", "gumbel"])
@pytest.mark.parametrize("count", [1, 10**6])
def test_the_series_against_mpmath(case, count, c_module):
    """MSD_1 in the right strip, written out from the closed form at 60 digits."""
    ((name, value),) = CASES[case][1].items()
    law = package_law(case, count)
    epsilon = places(law)[4 if count > 1 else 1]
    module = python_module(case)
    with mpmath.workdps(60):

        def derivatives(t, order):
            exact = sp.Rational(int(t * 2**150), 2**150)
            found = closed_at(case, exact, order, **{name: sp.Rational(str(value))})
            return [count * derivative for derivative in found]

        def condition(t):
            return derivatives(t, 1)[1] - epsilon - 1 / t - 1 / (1 + t)

        near = mpmath.mpf(saddle_point.saddle_point(law, epsilon, Strip.RIGHT).tilt)
        t = mpmath.findroot(condition, (near, near * 1.0001), solver="secant", tol=1e-70)
        f = derivatives(t, 4)
        f[0] -= epsilon * t + mpmath.log(t) + mpmath.log(1 + t)
        for j in range(2, 5):
            f[j] += (-1) ** j * mpmath.factorial(j - 1) * (t**-j + (1 + t) ** -j)
        series = 1 + f[4] / (8 * f[2] ** 2) - 5 * f[3] ** 2 / (24 * f[2] ** 3)
        expected = float(f[0] - mpmath.log(2 * mpmath.pi * f[2]) / 2 + mpmath.log(series))
    modules = [module] + ([c_module(case)] if COMPILER else [])
    for one in modules:
        found = one.log_delta(epsilon, count, order=1, **{name: value})[0]
        assert found == pytest.approx(expected, abs=1e-13, rel=1e-14)


def test_a_far_tilt_does_not_overflow(c_module):
    modules = [python_module("laplace")] + ([c_module("laplace")] if COMPILER else [])
    for module in modules:
        assert module.cgf(2000.0, 1, b=1)[0] == pytest.approx(
            float(closed_at("laplace", sp.Integer(2000), 0, b=sp.Integer(1))[0]), rel=1e-15
        )


def test_orders_up_to_the_highest_are_offered(c_module):
    law = package_law("logistic", 300)
    epsilon = places(law)[4]
    modules = [python_module("logistic", 8)] + ([c_module("logistic", 8)] if COMPILER else [])
    expected = accountant("msd:8").log_delta(law, epsilon).log_delta
    for module in modules:
        assert module.log_delta(epsilon, 300, order=8, s=4)[0] == pytest.approx(expected, abs=1e-8)
        truth = symdp.compose(mechanisms.logistic(s=4), 300).delta(epsilon, direction="add")
        first, eighth = (
            abs(module.log_delta(epsilon, 300, order=k, s=4)[0] - truth.log_delta) for k in (0, 8)
        )
        assert eighth < 1e-3 * first


def test_corrections_are_the_expansion_s_own():
    f = {j: sp.Symbol(f"f_{j}") for j in range(2, 21)}
    for order in range(1, 7):
        unit = saddlepoint_corrections(order)[-1].subs(F(2), 1)
        expected = unit.xreplace({F(j): f[j] for j in range(3, 2 * order + 3)})
        total = sp.S.Zero
        for term in correction_terms(order):
            ratio, *factors = term.replace("-", "- ", 1).split(" * ")
            above, below = (sp.Integer(p.replace(" ", "")[:-2]) for p in ratio.split("/"))
            total += above / below * sp.Mul(*(f[int(factor[2:-1])] for factor in factors))
        assert sp.expand(total - expected) == 0


def test_the_files_need_nothing_of_the_package(tmp_path):
    for case, allowed in (("laplace", set()), ("student t", {"numpy"})):
        path = tmp_path / f"{case.replace(' ', '_')}.py"
        path.write_text(to_python(derived(case)), encoding="utf-8")
        watched = "{'symdp', 'sympy', 'scipy', 'mpmath', 'flint', 'numpy'}"
        call = (
            f"import sys, runpy; runpy.run_path({str(path)!r}); print({watched} & {{*sys.modules}})"
        )
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", call], check=True, capture_output=True, text=True
        )
        assert eval(done.stdout) == allowed


@needs_compiler
def test_the_c_file_is_also_a_program(tmp_path):
    source, program = tmp_path / "gumbel.c", tmp_path / "gumbel"
    source.write_text(to_c(derived("gumbel")), encoding="utf-8")
    subprocess.run(
        [COMPILER, "-O2", "-DACCOUNTANT_MAIN", str(source), "-o", str(program), "-lm"], check=True
    )
    done = subprocess.run(
        [program, "epsilon", "1e-6", "200", "2", "3"], check=True, capture_output=True, text=True
    )
    expected = python_module("gumbel").epsilon(1e-6, 200, b=3)
    assert float(done.stdout.split()[1]) == pytest.approx(expected, rel=1e-12)
    bad = subprocess.run(
        [program, "delta", "1", "200", "2", "-3"], capture_output=True, text=True, check=False
    )
    assert bad.returncode == 1
    assert "b must be" in bad.stderr
    assert bad.stderr.count("\n") == 1


def test_bad_input_is_refused(c_module):
    module = python_module("gaussian")
    for arguments, values, word in (
        ((math.nan, 10), {"sigma": 1}, "epsilon"),
        ((1.0, 0), {"sigma": 1}, "count"),
        ((1.0, 2.5), {"sigma": 1}, "count"),
        ((1.0, 10), {"sigma": -1}, "sigma must be"),
        ((1.0, 10), {"sigma": "nan"}, "sigma"),
        ((1.0, 10), {"sigma": 1, "order": 3}, "order"),
    ):
        with pytest.raises(ValueError, match=word):
            module.log_delta(*arguments, **values)
    with pytest.raises(ValueError, match="delta"):
        module.epsilon(1.0, 10, sigma=1)
    if COMPILER:
        library = c_module("gaussian")
        for arguments in ((math.nan, 10, 2, 1.0), (1.0, 0, 2, 1.0), (1.0, 10, 3, 1.0)):
            with pytest.raises(ArithmeticError, match="sigma must be"):
                library.log_delta(*arguments[:2], order=arguments[2], sigma=arguments[3])
        for sigma in (0.0, -1.0, math.nan, math.inf):
            with pytest.raises(ArithmeticError, match="sigma must be"):
                library.log_delta(1.0, 10, sigma=sigma)


def test_parameters_must_be_bound_where_the_form_is_numeric():
    for write in (to_python, to_c):
        with pytest.raises(InputError, match="nu"):
            write(symdp.derive(mechanisms.student_t))
        with pytest.raises(InputError, match="order"):
            write(derived("gaussian"), 9)


def test_a_parameter_may_have_the_name_of_a_word_of_the_code(tmp_path):
    width = sp.Symbol("double", positive=True)
    density = sp.exp(-sp.Abs(X) / width) / (2 * width)
    derivation = symdp.derive(symdp.Mechanism.additive(density, X, name="int"))
    module = run_python(to_python(derivation))
    expected = python_module("laplace").log_delta(1.0, 50, b=5)
    assert module.log_delta(1.0, 50, double_=5) == expected
    if COMPILER:
        library = CModule(tmp_path, "int", 1, to_c(derivation))
        assert library.log_delta(1.0, 50, double_=5.0)[0] == pytest.approx(expected[0], abs=1e-12)


def test_every_domain_word_has_its_condition():
    assert set(CONDITIONS) == set(_DOMAINS)


def test_functions_without_a_series_are_refused():
    t = sp.Symbol("t", real=True)
    with pytest.raises(NoTapeError, match="erf"):
        tape(sp.erf(t), t, {})
    with pytest.raises(NoTapeError, match="sign"):
        tape((t - 3) ** sp.Symbol("a", real=True), t, {sp.Symbol("a", real=True): 0})


def test_series_operations_against_sympy():
    from decimal import Decimal

    t = sp.Symbol("t", real=True)
    arithmetic = _Arithmetic(7)
    at = sp.Rational(3, 4)
    for expression in (
        sp.exp(-t / 3),
        sp.log(1 + t**2),
        sp.sinh(t) / t,
        sp.tanh(2 * t),
        sp.cosh(t) * sp.coth(t + 1),
        (1 + sp.exp(t)) ** (t / 2),
        sp.sqrt(1 + t) / (2 - t) ** 3,
    ):
        values = []
        for line in tape(expression, t, {}):
            inputs = [values[k] for k in line.operands]
            if line.operation == "tilt":
                values.append([Decimal("0.75"), Decimal(1)])
            elif line.operation == "constant":
                values.append(arithmetic.constant(str(sp.N(line.detail, 60))))
            else:
                values.append(getattr(arithmetic, line.operation)(*inputs))
        with mpmath.workdps(40):
            expected = mpmath.taylor(
                sp.lambdify(t, expression, "mpmath"), mpmath.mpf(at.p) / at.q, 6
            )
            for one, other in zip(values[-1], expected, strict=True):
                assert abs(mpmath.mpf(str(one)) - other) < 1e-20


@pytest.mark.slow_cases("c")
@pytest.mark.parametrize("form", ["python", "c"])
def test_the_command_line_writes_working_files(form, shell, tmp_path):
    toml = Path(__file__).parents[2] / "examples" / "logistic.toml"
    for line, values in (
        (f"derive {toml}", {"s": 4.0}),
        ("derive laplace b=3 --sampling poisson --rate 1/20 --direction add", {}),
        ("derive gaussian", {"sigma": 30.0}),
    ):
        ran = shell(f"{line} --format {form}")
        assert ran.code == 0, ran.err
        if form == "python":
            emitted = run_python(ran.out)
        elif COMPILER is None:
            pytest.skip("no C compiler")
        else:
            name = {"": "laplace", "s": "logistic", "sigma": "gaussian"}["".join(values)]
            emitted = CModule(tmp_path, name, len(values), ran.out)
        assert emitted.epsilon(1e-6, 5000, **values) > 0


def test_the_command_line_says_what_is_missing(shell):
    for form in ("python", "c"):
        ran = shell(f"derive student_t nu=3 --format {form}")
        assert ran.code == 2
        assert "needs a value for s" in ran.err
        assert ran.err.count("\n") == 1
