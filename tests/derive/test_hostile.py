"""Densities that are hard on a derivation: many digits, no closed form, atoms, nothing at all."""

from __future__ import annotations

import json
import time
from importlib import import_module

import mpmath
import pytest
import sympy as sp
from catalogue import Entry
from shell import Shell

import symdp
from symdp.derive import Derivation, derive
from symdp.errors import AccuracyError
from symdp.page.sections.loss import domain_lines, seen_ends
from symdp.page.text import formula_lines

derivation = import_module("symdp.derive.derivation")
privacy_loss = import_module("symdp.derive.privacy_loss")
R = sp.Rational


@pytest.fixture(autouse=True)
def _cold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMDP_CACHE", "off")


def value(expression: sp.Expr, **places: sp.Expr) -> mpmath.mpf:
    names = {s: places[s.name] for s in expression.free_symbols if s.name in places}
    with mpmath.workdps(40):
        return mpmath.mpf(str(expression.subs(names).evalf(40, maxn=1000)))


MANY_DIGITS = {
    "response": symdp.mechanisms.randomized_response(epsilon_0=R(12345678912, 10**10)),
    "laplace": symdp.mechanisms.laplace(b=R(1234567891, 10**10)),
    "narrow laplace": symdp.mechanisms.laplace(b=R(1, 1000)),
    "discrete laplace": symdp.mechanisms.discrete_laplace(b=R(1234567891, 10**9)),
    "asymmetric": Entry(
        "Piecewise((exp(x/0.3333), x < 0), (exp(-x/1.23456), True))/(0.3333 + 1.23456)"
    ).mechanism(),
}


@pytest.mark.quick_cases("response")
@pytest.mark.parametrize("name", MANY_DIGITS)
def test_many_digits_leave_the_closed_form_in_reach(name: str) -> None:
    found = derive(MANY_DIGITS[name])
    assert found.cgf.form == "closed", found.cgf.reason
    with mpmath.workdps(30):
        tilt = R(-3, 10)
        closed = value(found.cgf.expression, t=tilt)
        assert abs(mpmath.exp(closed) - direct(found, mpmath.mpf("-0.3"))) < mpmath.mpf("1e-20")


def direct(found: Derivation, t: mpmath.mpf) -> mpmath.mpf:
    """Σ or ∫ P^{1+t} Q^{−t}, from the formulas of P and Q."""
    pair, x = found.pair, found.variable
    if found.points:
        masses = ((value(p.p), value(p.q)) for p in found.points)
        return mpmath.fsum(p ** (1 + t) * q**-t for p, q in masses)
    p, q = (sp.lambdify(x, law, "mpmath") for law in (pair.P, pair.Q))
    if x.is_integer:
        return mpmath.fsum(
            p(mpmath.mpf(k)) ** (1 + t) * q(mpmath.mpf(k)) ** -t for k in range(-120, 121)
        )
    spread = [mpmath.mpf(2) ** k for k in range(-14, 8)]
    marks = sorted({0, 1, *(-d for d in spread), *(1 + d for d in spread), *(
        end for d in spread if d < 0.5 for end in (d, 1 - d))})  # fmt: skip
    return mpmath.quad(lambda at: p(at) ** (1 + t) * q(at) ** -t, marks)


@pytest.mark.slow
def test_a_part_that_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(*_: object) -> None:
        time.sleep(60)

    monkeypatch.setattr(import_module("symdp.derive.pld"), "pld_density", sleep)
    monkeypatch.setattr(privacy_loss, "range_or_reason", sleep)
    constants = import_module("symdp.derive.tails.constants")
    monkeypatch.setattr(constants, "van_der_corput_formula", sleep)
    found = derive(symdp.mechanisms.gaussian, time_limit=1.0)
    assert found.loss_range is None
    assert "time limit" in found.range_reason
    assert found.pld_density.expression is None
    assert "time limit" in found.pld_density.reason
    assert "time limit" in found.tails["van_der_corput_1"].reason
    assert found.cgf.form == "closed"
    assert json.dumps(found.to_json(1))


def test_without_pieces_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivation, "MORE_TIME", 0.05)
    monkeypatch.setattr(derivation, "monotone_pieces", lambda _: time.sleep(60))
    with pytest.raises(AccuracyError, match="raise the time limit"):
        derive(symdp.mechanisms.gaussian, time_limit=0.0)


def test_every_value_of_a_loss_on_integers_is_an_atom() -> None:
    noise = Entry("exp(-abs(k)/3)*tanh(1/6)", support="integers", sensitivity="2").mechanism()
    found = derive(noise)
    masses = {atom.loss: value(atom.mass) for atom in found.atoms}
    assert set(masses) == {R(-2, 3), sp.S.Zero, R(2, 3)}
    p = sp.lambdify(found.variable, found.pair.P, "mpmath")
    with mpmath.workdps(20):
        for loss, places in ((R(-2, 3), range(-200, 1)), (0, (1,)), (R(2, 3), range(2, 202))):
            expected = mpmath.fsum(p(mpmath.mpf(k)) for k in places)
            assert abs(masses[loss] - expected) < mpmath.mpf("1e-18")


def test_probabilities_stay_positive_under_powers() -> None:
    listed = Entry(
        "a**2; 2*a*(1 - a); (1 - a)**2", "c**2; 2*c*(1 - c); (1 - c)**2",
        parameters="a:open_probability c:open_probability", support="points 3",
    )  # fmt: skip
    found = derive(listed.mechanism())
    assert found.cgf.expression is not None
    for log in found.cgf.expression.atoms(sp.log):
        inside = log.args[0].subs({s: R(1, 3) for s in log.args[0].free_symbols if s.name != "t"})
        assert sp.im(inside.subs({s: R(2, 7) for s in inside.free_symbols}).evalf()) == 0


def test_a_loss_of_one_value_has_constants_without_zero_divisions() -> None:
    same = Entry("exp(-x**2/2)/sqrt(2*pi)", "exp(-x**2/2)/sqrt(2*pi)").mechanism()
    tails = derive(same).tails
    for constant in tails:
        assert constant.expression is None or not constant.expression.has(sp.zoo, sp.nan)
    assert tails["hoeffding_p"].reason
    for order in (1, 2, 3):
        assert tails[f"van_der_corput_{order}"].value(t=1) == 0


def test_the_chernoff_bound_is_at_its_optimum() -> None:
    gaussian = symdp.mechanisms.gaussian(sigma=2)
    bound = derive(gaussian).tails["chernoff_p"].value(epsilon=3, n=5)
    exact = -((R(3) - R(5, 8)) ** 2) / (2 * R(5, 4))
    assert abs(float(bound) / float(exact) - 1) < 1e-12


NUMERIC_DOMAINS = {
    "log-normal": (
        Entry("exp(-log(x)**2/2)/(x*sqrt(2*pi))", support=("0", "oo")),
        (-1.0, sp.oo),
    ),
    "levy": (
        Entry("sqrt(1/(2*pi))*exp(-1/(2*x))*x**(-3/2)", support=("0", "oo")),
        (-1.0, sp.oo),
    ),
}


@pytest.mark.slow_cases("log-normal")
@pytest.mark.parametrize("name", NUMERIC_DOMAINS)
def test_a_domain_without_formula_is_numeric_and_says_so(name: str) -> None:
    entry, expected = NUMERIC_DOMAINS[name]
    found = derive(entry.mechanism())
    assert found.cgf.domain is None
    told = [line for own in domain_lines(found) for line in formula_lines(own)]
    assert [line.endswith("as numbers show it") for line in told] == [True, True]
    for end, wanted in zip(seen_ends(found, "domain"), expected, strict=True):
        assert end == wanted or abs(float(end) - float(wanted)) < 1e-6


@pytest.mark.slow
def test_the_law_of_a_students_loss() -> None:
    found = derive(symdp.mechanisms.student_t(nu=3, s=1))
    density = found.pld_density.expression
    assert density is not None, found.pld_density.reason
    loss = sp.Rational(1, 2)
    expected = mpmath.mpf(0)
    with mpmath.workdps(25):
        for piece, back in found.inverse:
            at = value(back, **{found.pld_density.loss.name: loss})
            if float(piece.lower) < float(at) < float(piece.upper):
                slope = sp.diff(piece.loss, found.variable).subs(
                    found.variable, sp.Float(str(at), 30)
                )
                expected += mpmath.exp(value(piece.log_p, x=sp.Float(str(at), 30))) / abs(
                    mpmath.mpf(str(slope.evalf(30)))
                )
        assert abs(value(density, **{found.pld_density.loss.name: loss}) - expected) < 1e-18


@pytest.mark.slow
def test_a_density_of_hyperbolic_tangents_is_a_logistic_one() -> None:
    found = derive(Entry("(1 - tanh(x)**2)/2").mechanism())
    assert found.cgf.form == "closed", found.cgf.reason


def test_terms_of_the_series_stay_short() -> None:
    found = derive(symdp.mechanisms.laplace)
    terms = dict(found.saddle_terms(2, substitute=False))
    assert len(terms) == 7
    assert max(sp.count_ops(term) for term in terms.values()) < 20
    whole = dict(found.saddle_terms(0))
    places = {"b": R(2), "n": sp.Integer(7), "t": R(3, 2), "epsilon": R(1)}
    own = {
        sp.Symbol(f"kappa_{j}", real=True): found.cumulant(j) if j else found.cgf.expression
        for j in range(3)
    }
    for name, term in whole.items():
        named = terms[name].xreplace(own)
        assert abs(value(named, **places) - value(term, **places)) < 1e-25


@pytest.mark.slow
def test_the_command_line_takes_a_time_limit(capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(capsys)
    found = shell("derive gaussian --format json --time-limit 1/2").json
    assert found["cgf"]["form"] == "closed"
    assert set(found["msd_terms"]) == {f"F_{j}" for j in range(7)}
    wrong = shell("derive gaussian --time-limit -1")
    assert wrong.code == 2
    assert "--time-limit" in wrong.err


@pytest.mark.slow
def test_a_density_of_two_very_different_widths_neither_kills_the_process_nor_stops_it():
    """Their exponents' denominators differ by a thousand; cancelling them as powers ends in GMP."""
    wide, narrow = "exp(-(x-1.34)**2/(2*1.73**2))/1.73", "exp(-(x+2.74)**2/(2*0.049**2))/0.049"
    noise = symdp.Mechanism.from_toml(
        'name = "two_widths"\nvariable = "x"\nsupport = ["-oo", "oo"]\n\n[noise]\n'
        f'density = "{wide} + 0.064*{narrow}"\nsensitivity = 1.25\nshift = "exactly"\n'
        "normalize = true\n"
    )()
    answer = symdp.compose(noise, 2).delta(1.0)
    assert answer.lower <= 0.222494051096 + 1e-9
    assert answer.upper >= 0.222494051096 - 1e-9
    with pytest.raises(symdp.InputError, match="symmetric"):
        symdp.compose(noise.subsample("without_replacement", "1/10"), 20).delta(1.0)
