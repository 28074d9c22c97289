"""Certificates contain the truth, are as narrow as they say, and fail when a bound is broken."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
import sympy as sp
from catalogue import ALL
from flint import arb, ctx

from symdp import mechanisms
from symdp.decimal_text import scientific
from symdp.errors import AccuracyError, InputError
from symdp.model.mechanism import Mechanism
from symdp.prove import enclosure, line
from symdp.prove.enclosure import enclose_delta
from symdp.prove.kind import kind_of
from symdp.prove.measure import Asked, measure, walk
from symdp.prove.plan import panels_of, period_of
from symdp.prove.truth import privacy_profile
from symdp.questions.composition import compose

SUBSAMPLED = mechanisms.gaussian(sigma="1.5").subsample("poisson", "1/100")
RESPONSE = mechanisms.randomized_response(epsilon_0="1/2")
GEOMETRIC = mechanisms.discrete_laplace(b=2)
HETEROGENEOUS = [
    (mechanisms.gaussian(sigma=2).subsample("poisson", "1/100"), 1000),
    (mechanisms.laplace(b=20), 20),
    (mechanisms.gaussian(sigma=10), 10),
]
OFF_LATTICE = [(RESPONSE, 20), (mechanisms.randomized_response(epsilon_0="1/3"), 30)]

FAST = {
    "subsampled": ([(SUBSAMPLED, 10_000)], 1.0, "remove"),
    "gaussian": ([(mechanisms.gaussian(sigma=10), 100)], 2.0, "remove"),
    "gaussian tiny": ([(mechanisms.gaussian(sigma=10), 100)], 21.0, "add"),
    "laplace": ([(mechanisms.laplace(b=2), 300)], 20.0, "remove"),
    "two laplace": ([(mechanisms.laplace(b=2), 2)], 0.7, "remove"),
    "three laplace on a kink": ([(mechanisms.laplace(b=2), 3)], 0.5, "add"),
    "few subsampled laplace": (
        [(mechanisms.laplace(b=1).subsample("poisson", "1/10"), 4)],
        0.2,
        "add",
    ),
    "gumbel": ([(mechanisms.gumbel(b=2), 50)], 5.0, "remove"),
    "heterogeneous": (HETEROGENEOUS, 3.0, "remove"),
    "response": ([(RESPONSE, 1000)], 150.0, "remove"),
    "response on the lattice": ([(RESPONSE, 10)], 2.0, "add"),
    "geometric": ([(GEOMETRIC, 100)], 10.0, "remove"),
    "discrete gaussian": ([(mechanisms.discrete_gaussian(sigma=2), 100)], 40.0, "remove"),
    "off a lattice": (OFF_LATTICE, 4.0, "remove"),
    "one gaussian": ([(mechanisms.gaussian(sigma=1), 1)], 20.0, "remove"),
    "one laplace": ([(mechanisms.laplace(b=2), 1)], 0.3, "add"),
    "one gumbel": ([(mechanisms.gumbel(b=2), 1)], 0.3, "remove"),
    "one discrete": ([(mechanisms.discrete_gaussian(sigma=2), 1)], 0.3, "remove"),
    "one below zero": ([(SUBSAMPLED, 1)], -0.001, "add"),
    "one heavy tail": ([(mechanisms.student_t(nu=3, s=2), 1)], 0.25, "remove"),
}
SLOW = {
    "subsampled add": ([(SUBSAMPLED, 10_000)], 1.0, "add"),
    "logistic": ([(mechanisms.logistic(s=2), 50)], 5.0, "add"),
    "gumbel add": ([(mechanisms.gumbel(b=2), 100)], 15.0, "add"),
    "rare jump": (
        [(mechanisms.gaussian(sigma=2).subsample("poisson", "1/100"), 2000)],
        8.0,
        "remove",
    ),
    "three gaussians": ([(mechanisms.gaussian(sigma=2), 3)], 1.5, "remove"),
}


def pairs_of(steps, direction):
    return [(mechanism.pair(direction), count) for mechanism, count in steps]


def contains(ball: arb, steps, epsilon, direction, digits) -> bool:
    """Whether a ball meets the truth, known to more digits than it, and the answer in doubles.

    The truth comes from another plan of the same theorem; the answer shares no line of it.
    """
    answer = compose(steps).delta(epsilon, direction=direction)
    lower, upper = (float(end.log()) for end in (ball.lower(), ball.upper()))
    if not (lower <= answer.log_upper + 1e-12 and answer.log_lower - 1e-12 <= upper):
        return False
    truth = privacy_profile(pairs_of(steps, direction), epsilon, digits + 3)
    with ctx.workprec(4 * digits + 200):
        middle = arb(mpmath.nstr(truth, digits + 3))
        about = middle + abs(middle) * arb(0, 1) * arb(10) ** -(digits + 1)
        return bool(ball.overlaps(about))


# On a mesh: few steps, heavy atoms, or atoms off a lattice that have too many sums.
SIX_DIGITS = {
    "few subsampled laplace",
    "three gaussians",
}


def check(steps, epsilon, direction, digits=15):
    ball = enclose_delta(pairs_of(steps, direction), epsilon, digits)
    with ctx.workprec(4 * digits + 200):
        assert ball.lower() > 0
        assert 2 * ball.rad() < abs(ball) * arb(10) ** -digits
    assert contains(ball, steps, epsilon, direction, digits + 3)


@pytest.mark.slow_cases(
    "subsampled",
    "gaussian",
    "gaussian tiny",
    "laplace",
    "three laplace on a kink",
    "few subsampled laplace",
    "gumbel",
    "heterogeneous",
    "one heavy tail",
    "two laplace",
)
@pytest.mark.parametrize("name", FAST)
def test_contains_the_truth(name):
    check(*FAST[name], 6 if name in SIX_DIGITS else 15)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_contains_the_truth_slowly(name):
    check(*SLOW[name], 6 if name in SIX_DIGITS else 15)


@pytest.mark.slow
def test_thirty_digits():
    check([(SUBSAMPLED, 10_000)], 1.0, "remove", 30)


def gaussian_delta(mu: arb, epsilon: arb) -> arb:
    """δ(ε) of N(μ, 1) against N(0, 1) [IND (2)]."""
    root = arb(2).sqrt()
    upper = ((epsilon / mu - mu / 2) / root).erfc() / 2
    return upper - epsilon.exp() * ((epsilon / mu + mu / 2) / root).erfc() / 2


def holds_closed_form(ball: arb) -> bool:
    """Whether a ball holds δ(2) of 100 steps of σ = 10, which is one of μ = 1."""
    with ctx.workprec(300):
        return bool(ball.contains(gaussian_delta(arb(1), arb(2))))


@pytest.mark.quick_cases("epsilon1-5-25-20")
@pytest.mark.parametrize(
    ("sigma", "count", "digits"), [(5, 25, 20), (1, 2, 15), (2, 3, 12), (2, 11, 15), (1, 5, 9)]
)
@pytest.mark.parametrize("epsilon", [Fraction(3, 2), Fraction(6)])
def test_contains_a_closed_form(sigma, count, digits, epsilon):
    """A Gaussian composition is one Gaussian step, however few steps it has."""
    with ctx.workprec(300):
        at = arb(epsilon.numerator) / epsilon.denominator
        closed = gaussian_delta(arb(count).sqrt() / sigma, at)
    ball = enclose_delta([(mechanisms.gaussian(sigma=sigma).pair(), count)], epsilon, digits)
    with ctx.workprec(300):
        assert ball.contains(closed)
        assert 2 * ball.rad() < ball.lower() * arb(10) ** -digits


def test_beyond_the_largest_loss_delta_is_zero():
    assert enclose_delta([(RESPONSE.pair(), 10)], 5).is_zero()
    assert enclose_delta([(mechanisms.laplace(b=2).pair(), 4)], 3).is_zero()


@pytest.fixture
def afresh():
    """Lines made before and after are forgotten."""
    enclosure._line_at.cache_clear()
    yield
    enclosure._line_at.cache_clear()


def test_without_the_bound_of_what_the_rule_adds_the_truth_is_lost(monkeypatch, afresh):
    """A rule with a step so wide that its own terms matter shows what their bound is for."""
    steps = [(mechanisms.gaussian(sigma=10), 100)]
    real = enclosure.find_plan

    def wide(*arguments):
        plan = real(*arguments)
        return replace(plan, period=plan.period / 3)

    monkeypatch.setattr(enclosure, "find_plan", wide)
    monkeypatch.setattr(enclosure, "_TRIES", 1)
    monkeypatch.setattr(enclosure, "WAYS", [w for w in enclosure.WAYS if w.name == "line"])
    with pytest.raises(AccuracyError, match="too wide"):
        enclose_delta(pairs_of(steps, "remove"), 2.0, 15)
    monkeypatch.setattr(line, "log_payoff", lambda _: arb(-1000))
    ball = enclose_delta(pairs_of(steps, "remove"), 2.0, 15)
    assert not holds_closed_form(ball)


def test_a_node_slightly_wrong_loses_the_truth(monkeypatch, afresh):
    steps = [(mechanisms.gaussian(sigma=10), 100)]
    real = line.measure

    def wrong(*arguments):
        found = real(*arguments)
        weights = tuple(weight * (1 + arb(10) ** -17) for weight in found.weights)
        return replace(found, weights=weights)

    monkeypatch.setattr(line, "measure", wrong)
    ball = enclose_delta(pairs_of(steps, "remove"), 2.0, 15)
    assert not holds_closed_form(ball)


def test_without_what_lies_outside_of_the_panels_the_truth_is_lost(monkeypatch, afresh):
    """Panels that hold all but a millionth of the mass: the upper end has it, the lower has not."""
    steps = [(mechanisms.gaussian(sigma=10), 100)]
    real = enclosure.find_plan

    def inner(edges):
        return (edge for edge in edges if abs(edge) < 48)

    def short(kinds, epsilon, digits, strip):
        plan = real(kinds, epsilon, digits, strip)
        panels = tuple(
            tuple(one._replace(edges=(-48.0, *inner(one.edges), 48.0)) for one in own)
            for own in plan.panels
        )
        return replace(plan, panels=panels)

    monkeypatch.setattr(enclosure, "find_plan", short)
    monkeypatch.setattr(enclosure, "WAYS", [w for w in enclosure.WAYS if w.name == "line"])
    monkeypatch.setattr(enclosure, "_TRIES", 1)
    with pytest.raises(AccuracyError, match="too wide"):
        enclose_delta(pairs_of(steps, "remove"), 2.0, 15)
    ball = enclose_delta(pairs_of(steps, "remove"), 2.0, 1)
    assert holds_closed_form(ball)
    whole = line.masses
    monkeypatch.setattr(line, "masses", lambda *a: replace(whole(*a), outside=arb(0)))
    enclosure._line_at.cache_clear()
    assert not holds_closed_form(enclose_delta(pairs_of(steps, "remove"), 2.0, 15))


@pytest.mark.slow
def test_what_cannot_be_proved_to_so_many_digits_is_proved_to_six():
    steps, epsilon, side = FAST["few subsampled laplace"]
    ball = enclose_delta(pairs_of(steps, side), epsilon, 100)
    with ctx.workprec(200):
        assert arb(10) ** -8 * ball < 2 * ball.rad() < arb(10) ** -6 * ball
    assert contains(ball, steps, epsilon, side, 10)


def test_what_cannot_be_proved_is_refused(monkeypatch):
    """Where even the mesh is too wide, for a truth that is not known to four digits."""
    monkeypatch.setattr("symdp.prove.mesh._MOST_CELLS", 100)
    with pytest.raises(AccuracyError, match="fewer digits"):
        enclose_delta([(mechanisms.laplace(b=1).subsample("poisson", "1/10").pair(), 4)], 0.2, 5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", [mechanisms.gaussian(sigma=1), ALL["gumbel"].mechanism()(b=1, D=1)]
)
def test_the_size_of_delta_of_very_many_steps_is_known(mechanism):
    """Of 10¹² steps K must be known to 16 digits, and ε to more than six."""
    composition = compose(mechanism, 10**12)
    law = composition.law("remove")
    epsilon = law.mean + 3.3 * math.sqrt(float(law.cumulants(0.0, 2)[1]))
    found = composition.delta(epsilon, direction="remove")
    about = enclosure.estimate_log_delta([(mechanism.pair("remove"), 10**12)], epsilon)
    assert about == pytest.approx(found.log_delta, abs=0.2)
    proved = composition.certify(epsilon, digits=15, direction="remove")
    assert found.log_lower <= proved.log_upper
    assert proved.log_lower <= found.log_upper


@pytest.mark.slow
def test_what_the_mass_at_infinity_proves_needs_no_more():
    mechanism = ALL["raised cosine noise"].mechanism().subsample("poisson", "1/100")
    proved = compose(mechanism, 10**12).certify(-3e9, digits=15, direction="remove")
    assert proved.upper == 1.0  # what is below it is the width of fifteen digits
    assert -1e-15 < proved.log_lower <= 0.0


def test_bad_input():
    pairs = [(RESPONSE.pair(), 2)]
    with pytest.raises(InputError, match="digits"):
        enclose_delta(pairs, 1.0, 0)
    with pytest.raises(InputError, match="epsilon"):
        enclose_delta(pairs, math.inf)
    with pytest.raises(InputError, match="direction"):
        compose(RESPONSE, 2).certify(1.0, direction="up")


@pytest.mark.parametrize("digits", [1, 2, 5, 17])
@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(1), Fraction(999_999, 10**6),
                                   Fraction(1, 10**300), Fraction(7, 2**1100)])  # fmt: skip
def test_decimals_are_rounded_outwards(value, digits):
    low = Fraction(scientific(value, digits, up=False))
    high = Fraction(scientific(value, digits, up=True))
    assert low <= value <= high
    assert high - low <= value * Fraction(10) ** (1 - digits)


@pytest.mark.slow
def test_the_record_of_both_directions_is_the_larger():
    both = compose(mechanisms.gumbel(b=2), 50).certify(5.0, digits=8)
    sides = [compose(mechanisms.gumbel(b=2), 50).certify(5.0, 8, s) for s in ("remove", "add")]
    assert both.delta == max(side.delta for side in sides)
    assert both.lower is not None
    assert both.upper is not None
    assert both.lower <= both.delta <= both.upper
    assert (both.kind, both.method, both.n) == ("exact", "certified", 50)


def test_the_command(shell):
    words = "certify randomized_response epsilon_0=1/2 -n 1000 --epsilon 150 --digits 20"
    found = json.loads(shell(f"{words} --json").out)
    truth = privacy_profile([(RESPONSE.pair(), 1000)], 150, 40)
    with mpmath.workdps(50):
        low, high = mpmath.mpf(found["lower"]), mpmath.mpf(found["upper"])
        assert low <= truth <= high
        assert high - low < truth * mpmath.mpf(10) ** -20
    assert set(found) >= {"epsilon", "delta", "kind", "method", "direction", "count", "seconds"}
    shown = shell(words).out
    assert found["lower"] in shown
    assert found["upper"] in shown


@pytest.mark.slow_cases("mechanism1-100-delta1-25")
@pytest.mark.parametrize(
    ("mechanism", "count", "delta", "digits"),
    [
        (RESPONSE, 1000, 1e-6, 18),
        (mechanisms.gaussian(sigma=10), 100, Fraction(1, 10**5), 25),
        (mechanisms.gaussian(sigma=1), 1, 1e-9, 15),
    ],
)
def test_epsilon_lies_between_proved_signs(mechanism, count, delta, digits):
    found = compose(mechanism, count).certify_epsilon(delta, digits, "remove")
    low, high = Fraction(found.lower_decimal), Fraction(found.upper_decimal)
    assert 0 < high - low < low / 10**digits
    pairs = [(mechanism.pair("remove"), count)]
    with mpmath.workdps(60):
        given = mpmath.mpf(Fraction(delta).numerator) / Fraction(delta).denominator
        assert privacy_profile(pairs, low, digits + 8) > given
        assert privacy_profile(pairs, high, digits + 8) < given
    assert found.epsilon_lower <= low < high <= found.epsilon_upper
    assert (found.quantity, found.target_delta) == ("epsilon", float(delta))


def test_epsilon_is_zero_where_delta_is_large_and_infinite_where_it_is_too_small():
    found = compose(mechanisms.gaussian(sigma=10), 1).certify_epsilon(0.5)
    assert (found.epsilon, found.lower_decimal, found.upper_decimal) == (0.0, "0", "0")
    with pytest.raises(InputError, match="no finite epsilon"):
        compose(ALL["uniform noise"].mechanism()(w=1), 1).certify_epsilon(0.1)


def test_a_curve_of_certificates():
    curve = compose(RESPONSE, 1000).certify([100.0, 150.0], 10)
    assert [point.epsilon for point in curve] == [100.0, 150.0]
    assert curve[1].lower_decimal == compose(RESPONSE, 1000).certify(150.0, 10).lower_decimal
    inverse = compose(RESPONSE, 1000).certify_epsilon(curve.delta, 8)
    assert list(inverse.epsilon) == pytest.approx([100.0, 150.0], rel=1e-8)


PLACES = [-160, -80, -40, -20, -10, -4, 0, 1, 4, 10, 20, 40, 80, 160]  # kinks among them


@pytest.mark.quick_cases("geometric")
@pytest.mark.parametrize(
    "mechanism",
    [SUBSAMPLED, mechanisms.gumbel(b=2), mechanisms.laplace(b=2), GEOMETRIC],
    ids=["subsampled", "gumbel", "laplace", "geometric"],
)
def test_nodes_serve_every_frequency_within_their_error(mechanism):
    """Gauss–Legendre nodes against mpmath's quadrature or sum of the densities as given."""
    pair, reach = mechanism.pair(), 30.0
    kind = kind_of(pair)
    scale = float(kind.law.transform(np.asarray([1.5]))[0]) + 1.5 * kind.law.base.mean
    asked = Asked(arb(1.5), scale, -60.0, reach)
    x, log_ratio = pair.variable, sp.log(pair.P) - sp.log(pair.Q)
    with ctx.workprec(160), mpmath.workdps(40):
        nodes = measure(kind, panels_of(kind, 1.5, reach, -100.0), [asked])
        assert nodes.errors[0] < arb(10) ** -25
        spacing = arb(1) / 3
        values = walk(nodes.weighted(asked), nodes.losses, nodes.errors[0], spacing)
        for k, value in enumerate(itertools.islice(values, 88)):
            if k not in (0, 7, 87):
                continue
            power = sp.Rational(3, 2) + sp.I * sp.Rational(k, 3)
            function = sp.lambdify(x, pair.P * sp.exp(power * log_ratio), "mpmath")
            truth = (
                mpmath.fsum(function(mpmath.mpf(i)) for i in range(-200, 200))
                if pair.is_discrete
                else mpmath.quad(
                    function, [-160, -80, -40, -20, -10, -4, 0, 1, 4, 10, 20, 40, 80, 160]
                )
            ) * mpmath.exp(-scale)
            for ball, part in ((value.real, truth.real), (value.imag, truth.imag)):
                assert abs(mpmath.mpf(ball.mid().str(40, radius=False)) - part) < 1e-22


def test_two_sampled_laplace_steps_against_an_integral_over_one():
    mechanism = mechanisms.laplace(b=1).subsample("poisson", "1/2")
    ball = enclose_delta([(mechanism.pair("remove"), 2)], 0.3, 6)
    with mpmath.workdps(45), ctx.workprec(160):
        half, factor = mpmath.mpf(1) / 2, mpmath.exp(mpmath.mpf(0.3))

        def ratio(place):
            return half + half * mpmath.exp(2 * place - 1)

        def place(value):  # where the ratio has it, between 0 and 1
            rest = 2 * value - 1
            return min(max((mpmath.log(rest) + 1) / 2, 0), 1) if rest > 0 else mpmath.mpf(0)

        atoms = [(half, ratio(0)), (mpmath.exp(-1) / 2, ratio(1))]  # under Q

        def gain(other):
            """Return the expectation of (r·other − e^ε)⁺ under Q."""
            total = sum(mass * max(value * other - factor, 0) for mass, value in atoms)
            start = place(factor / other)
            total += (half * other - factor) * (mpmath.exp(-start) - mpmath.exp(-1)) / 2
            return total + half * other * mpmath.exp(-1) * (mpmath.e - mpmath.exp(start)) / 2

        cuts = {mpmath.mpf(0), *(place(factor / value) for _, value in atoms), mpmath.mpf(1)}
        truth = sum(mass * gain(value) for mass, value in atoms)
        truth += mpmath.quad(lambda t: mpmath.exp(-t) / 2 * gain(ratio(t)), sorted(cuts))
        assert ball.overlaps(arb(mpmath.nstr(truth, 40), 1e-36))
        assert 2 * ball.rad() < arb(10) ** -6 * ball


@pytest.mark.slow_cases("20-1000-1.3-6")
@pytest.mark.parametrize(
    ("b", "count", "epsilon", "digits"), [(10, 100, 1.0, 6), (20, 1000, 1.3, 6)]
)
def test_a_loss_that_is_a_single_value_most_of_the_time(b, count, epsilon, digits):
    """Wide Laplace noise, whose characteristic function falls no further than its atoms' share."""
    composition = compose(mechanisms.laplace(b=b), count)
    proved = composition.certify(epsilon, digits=15, direction="remove")
    assert proved.digits >= digits
    answer = composition.delta(epsilon, direction="remove")
    assert answer.log_lower <= proved.log_upper
    assert proved.log_lower <= answer.log_upper


def test_the_command_for_epsilon(shell):
    words = "certify randomized_response epsilon_0=1/2 -n 1000 --delta 1e-6 --digits 18"
    found = json.loads(shell(f"{words} --json").out)
    pairs = [(RESPONSE.pair(), 1000)]
    low, high = Fraction(found["lower"]), Fraction(found["upper"])
    assert high - low < low / 10**18
    assert enclose_delta(pairs, low, 25) > 1e-6 > enclose_delta(pairs, high, 25)
    assert found["lower"] in shell(words).out
    assert shell("certify laplace b=1 -n 1").code == 2


def test_certified_is_a_method(shell):
    steps = compose(RESPONSE, 1000)
    assert steps.delta(150.0, "certified").lower == steps.certify(150.0).lower
    assert steps.epsilon(1e-6, "certified").quantity == "epsilon"
    line = "delta randomized_response epsilon_0=1/2 -n 1000 --epsilon 150 --method certified --json"
    assert json.loads(shell(line).out)["method"] == "certified"


@pytest.mark.parametrize("power", [3, 20, 30])
@pytest.mark.parametrize("count", [1, 3])
def test_a_rare_infinite_loss_is_never_none(power, count):
    """P gives what Q never gives with so small a probability: δ is 1 − (1 − m)ⁿ, and not 0."""
    x, rare = sp.Symbol("x", real=True), sp.Rational(1, 10**power)
    p = sp.Piecewise((1 - rare, x < 1), (rare, True))
    q = sp.Piecewise((sp.Integer(1), x < 1), (sp.Integer(0), True))
    pair = Mechanism.from_pair(p, q, x, (0, 2), name="rare").pair("remove")
    truth = 1 - (1 - Fraction(1, 10**power)) ** count
    ball = enclose_delta([(pair, count)], 1, 8)
    with ctx.workprec(300):
        assert ball.overlaps(arb(truth.numerator) / truth.denominator)
        assert 2 * ball.rad() < ball.lower() * arb(10) ** -8


def test_tilts_that_are_the_saddle_point_in_doubles_bound_no_aliases():
    """The end of K's domain is the next double, as of a loss whose law falls like a power."""
    law = SimpleNamespace(
        domain=(-math.inf, math.nextafter(1.0, 2.0)),
        log_transform=lambda tilts, _: np.where(tilts > 1.0, math.inf, 0.0),
    )
    with pytest.raises(AccuracyError, match="just beside its saddle point"):
        period_of(law, 0.0, 1.0, -30.0)


X = sp.Symbol("x", real=True)
HALF_LINE = (sp.S.Zero, sp.oo)


@pytest.mark.parametrize(
    ("density", "truth"),
    [
        pytest.param(32 * X**-4 * sp.exp(-4 / X), 0.9371405, id="inverse gamma"),
        pytest.param(
            32 * X**-3 * sp.exp(-16 / X**2), 0.43137423, id="Frechet", marks=pytest.mark.slow
        ),
    ],
)
def test_an_end_where_the_loss_grows_without_a_moment_is_certified(density, truth):
    """Of the losses of five steps on lattices of NumPy (tests/strangers/truth.py, finer ones)."""
    noise = Mechanism.additive(density, X, sensitivity=1, support=HALF_LINE)
    ball = enclose_delta([(noise.pair("add"), 5)], 1, 4)
    assert ball.overlaps(arb(truth, 2e-8))
    assert 2 * ball.rad() < 1e-4 * truth
