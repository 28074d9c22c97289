"""What noise promises for every shift up to its sensitivity, against sums over grids of one's own.

The grids know nothing of what is tested: densities as arrays, shifts by whole cells, composition by
convolution of the losses' law, spread to both sides so that δ is too large by little.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from statistics import NormalDist

import flint
import mpmath
import numpy as np
import pytest
import sympy as sp
from shell import Shell

from symdp import compose, mechanisms
from symdp.density.breakpoints import smooth_stretches
from symdp.errors import AccuracyError, InputError
from symdp.model.mechanism import Mechanism
from symdp.questions.steps.accounted import answered
from symdp.questions.steps.worst_shift import (
    _Cells,
    _double_ends,
    _of_between,
    _of_shift,
    _on_grid,
)
from symdp.tolerances import BITS

X, K = sp.Symbol("x", real=True), sp.Symbol("k", integer=True)
LINE = (-math.inf, math.inf)


def profile(p, q, alpha):
    """H_α(p ‖ q) of two arrays of masses."""
    return float(np.maximum(p - alpha * q, 0.0).sum())


def moved(masses, k):
    """f(· − k), masses beyond the ends lost."""
    result = np.zeros_like(masses)
    if k >= 0:
        result[k:] = masses[: masses.size - k]
    else:
        result[:k] = masses[-k:]
    return result


def composed(p, q, count, epsilon, step=2e-3):
    """δ(ε) of n steps, below the truth: losses go to the middle of what their cell has."""
    used = (p > 0) & (q > 0)
    loss = np.log(p[used] / q[used])
    infinite = float(p[(p > 0) & (q == 0)].sum())
    low = math.floor(loss.min() / step)
    place = np.round(loss / step).astype(int) - low
    law = np.bincount(place, p[used])
    size = 1 << math.ceil(math.log2(count * law.size + 1))
    total = np.fft.irfft(np.fft.rfft(law, size) ** count, size)
    losses = step * (count * low + np.arange(size))
    above = losses > epsilon
    finite = float((total[above] * -np.expm1(epsilon - losses[above])).sum())
    return finite + 1.0 - (1.0 - infinite) ** count


def sampled(p, q, rate):
    return (1 - rate) * q + rate * p


def grid(formula, low, high, cells):
    """Masses of a density on even cells, their number of cells in 1."""
    x = low + (high - low) * (np.arange(cells) + 0.5) / cells
    values = sp.lambdify(X, formula, "numpy")(x) * np.ones(cells)
    return values / values.sum(), round(cells / (high - low))


HALF = sp.Rational(1, 2)
SEVERAL = {  # density, its support, the range of the grid
    "waves": (sp.exp(-(X**2) / 8) * (2 + sp.cos(2 * sp.pi * X)), LINE, (-24, 24)),
    "humps": (sp.exp(-((X - 2) ** 2) / 2) + sp.exp(-((X + 2) ** 2) / 2), LINE, (-14, 14)),
    "skewed humps": (2 * sp.exp(-((X - 2) ** 2) / 2) + sp.exp(-abs(X)), LINE, (-40, 40)),
    "a gap": (sp.Piecewise((1, abs(X - HALF) > sp.Rational(1, 4)), (0, True)), (0, 1), (-1, 2)),
    "a ripple": (sp.exp(-abs(X)) * (3 + sp.sin(5 * X)), LINE, (-40, 40)),
}


SIZE = {"a gap": sp.Rational(1, 8)}  # of the sensitivity, where it is not 1


def of(name):
    density, support, _ = SEVERAL[name]
    return Mechanism.additive(density, X, SIZE.get(name, 1), support, name, normalize=True)


def masses(name, cells_in_one=200):
    density, support, (low, high) = SEVERAL[name]
    if support != LINE:
        inside = (support[0] < X) & (support[1] > X)
        density = sp.Piecewise((density, inside), (0, True))
    return grid(density, low, high, (high - low) * cells_in_one)


@pytest.mark.quick_cases("a gap")
@pytest.mark.parametrize("name", SEVERAL)
def test_the_answer_holds_at_every_shift(name):
    own = answered(of(name))
    assert (own.shift, own.is_of_all_shifts) == ("at most", True)
    f, one = masses(name)
    one = int(one * SIZE.get(name, 1))
    for n in (1, 2, 5):
        for epsilon in (0.25, 1.0, 2.0):
            answer = compose(of(name), n).delta(epsilon)
            assert answer.kind == "bound"
            shifts = [side * k for k in range(one // 5, one + 1, one // 5) for side in (1, -1)]
            worst = max(composed(moved(f, k), f, n, epsilon) for k in shifts)
            # The grid's losses are rounded, by 1e-3 at most each.
            assert answer.delta >= worst * (1 - 2e-3 * n) - 1e-9
    # One step's bound is no wider than the table's spacing makes it.
    steps = range(-one, one + 1, max(one // 100, 1))
    truth = max(profile(moved(f, k), f, math.e) for k in steps)
    assert compose(of(name), 1).delta(1.0).delta <= truth * 1.03 + 2e-3


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_sampled_noise_of_several_modes(direction):
    rate = 0.1
    f, one = masses("humps")
    answer = compose(of("humps").subsample("poisson", rate), 5).delta(0.3, direction=direction)
    found = []
    for k in range(one // 10, one + 1, one // 10):
        pair = sampled(moved(f, k), f, rate), f
        p, q = pair if direction == "remove" else pair[::-1]
        found.append(composed(p, q, 5, 0.3, 2e-4))
    assert max(found) * (1 - 2e-3) <= answer.delta <= max(found) * 1.05
    assert answer.protection.sampling == "poisson"


@pytest.mark.slow
def test_waves_at_half_the_sensitivity():
    """A record that moves the output by ½ had 0.419 where the answer for 1 was 0.170."""
    f, one = masses("waves", 400)
    half, whole = (composed(moved(f, k), f, 5, 1.0) for k in (one // 2, one))
    assert (round(half, 3), round(whole, 3)) == (0.419, 0.17)
    answer = compose(of("waves"), 5).delta(1.0)
    assert half < answer.delta < 0.425
    assert "was not shown to have one mode" in answer.protection.sentence
    assert answer.to_json()["shift"] == "at most"
    density, support, _ = SEVERAL["waves"]
    exactly = Mechanism.additive(density, X, 1, support, normalize=True, shift="exactly")
    pair = compose(exactly, 5).delta(1.0)
    assert (pair.kind, pair.to_json()["shift"]) == ("exact", "exactly")
    assert pair.delta == pytest.approx(whole, rel=2e-3)
    assert "exactly the sensitivity" in pair.protection.sentence
    assert compose(exactly, 5).epsilon(0.1).kind == "exact"
    bound = compose(of("waves"), 5).epsilon(0.1)
    assert bound.kind == "bound"
    assert composed(moved(f, one // 2), f, 5, bound.epsilon) < 0.1


def two_humps():
    """Integer noise of modes at ±3 and sensitivity 4, and its masses."""
    noise = Mechanism.additive(sp.exp(-abs(abs(K) - 3)), K, 4, "integers", normalize=True)
    f = np.exp(-np.abs(np.abs(np.arange(-80, 81)) - 3.0))
    return noise, f / f.sum()


@pytest.mark.quick_cases("5")
@pytest.mark.parametrize("n", [1, 2, 5])
def test_whole_numbers_take_the_largest_of_finitely_many(n):
    noise, f = two_humps()
    for epsilon in (0.5, 2.0):
        worst = max(composed(moved(f, d), f, n, epsilon, 1e-4) for d in range(1, 5))
        answer = compose(noise, n).delta(epsilon)
        assert worst * (1 - 1e-3) <= answer.delta
        if n == 1:
            assert answer.delta <= worst * 1.02
    # There is no other shift below 1.
    assert answered(noise.moved_by(1)).shift == "at most"
    assert not answered(noise.moved_by(1)).is_of_all_shifts


def random_mode(seed):
    """A skewed density of one mode on a grid: it rises in random steps, then falls in others."""
    chance = np.random.default_rng(seed)
    sides = [np.sort(chance.exponential(1.0, size) ** 3) for size in chance.integers(20, 200, 2)]
    f = np.concatenate([np.zeros(300), sides[0], sides[1][::-1], np.zeros(300)])
    return f / f.sum()


@pytest.mark.parametrize("seed", range(10))
def test_the_lemma(seed):
    """With one mode, no shift below D has a larger δ, at any α and in either order; nor sampled."""
    f = random_mode(seed)
    for alpha in (0.2, 0.9, 1.0, 1.5, 4.0, 50.0):
        for rate in (1.0, 0.3):
            for order in (1, -1):
                pairs = [(sampled(moved(f, d), f, rate), f)[::order] for d in range(0, 101, 10)]
                found = [profile(p, q, alpha) for p, q in pairs]
                assert found == sorted(found) or np.diff(found).min() > -1e-14


def test_the_other_direction_is_the_other_sign():
    """H(f(· + D) ‖ f) = H(f ‖ f(· − D)): a record that lowers the output at every step."""
    f = random_mode(3)
    for alpha in (0.5, 2.0):
        lowered = profile(moved(f, -50), f, alpha)
        assert lowered == pytest.approx(profile(f, moved(f, 50), alpha), abs=1e-15)


@pytest.mark.slow
def test_sampled_skewed_noise_answers_for_either_sign():
    """Sampled, a record that lowers the output is another pair than either direction.

    Gumbel-like noise b = 2, q = 1/10, 50 steps, δ = 1e-5: upwards alone 1.18373, downwards 5.61640.
    """
    noise = mechanisms.gumbel(b=2).subsample("poisson", "1/10")
    both, up, down = (compose(m, 50) for m in (noise, noise.shifted("up"), noise.shifted("down")))
    shifts = ["at most, one sign", "at most, upwards", "at most, downwards"]
    assert [one.protection.shift for one in (both, up, down)] == shifts
    assert round(both.epsilon(1e-5).epsilon, 5) == 5.61640
    assert round(up.epsilon(1e-5).epsilon, 5) == 1.18373
    x = np.linspace(-9, 60, 1_000_001)  # cells of 7e-5: their losses are exact to about that
    f = np.exp(-x / 2 - np.exp(-x / 2)) / 2
    moved = {s: np.exp(-(x - s) / 2 - np.exp(-(x - s) / 2)) / 2 for s in (1, -1)}
    width = x[1] - x[0]
    for sign, one in ((1, up), (-1, down)):
        for direction in ("remove", "add"):
            p, q = sampled(moved[sign], f, 0.1), f
            p, q = (p, q) if direction == "remove" else (q, p)
            truth = composed(p * width, q * width, 50, 0.9, 2e-4)
            found = one.delta(0.9, direction=direction).delta
            # The law of the loss is rounded to cells of 2e-4, to either side.
            assert found == pytest.approx(truth, rel=2e-3, abs=1e-13)
            assert both.delta(0.9, direction=direction).delta >= found * (1 - 1e-12)


@pytest.mark.slow
def test_signs_that_change_between_steps_may_lose_more():
    """One step up and one down, its law by convolution, lies between one sign and either way."""
    x = np.linspace(-9, 40, 200_001)
    f = np.exp(-x / 2 - np.exp(-x / 2)) / 2
    one, either = (mechanisms.gumbel(b=2), mechanisms.gumbel(b=2).shifted("either way"))
    mixed = compose([(one.shifted("up"), 1), (one.shifted("down"), 1)])
    assert mixed.protection.shift == "at most, upwards and downwards"
    up, down = (np.exp(-(x - s) / 2 - np.exp(-(x - s) / 2)) / 2 for s in (1, -1))
    for epsilon in (-0.5, 0.5):
        # Of the second step H_α at α = e^ε f/f_up of the first, summed over its outputs.
        alphas = np.exp(np.linspace(-40.0, 40.0, 8001))
        second = np.array([profile(down, f, a) for a in alphas]) * (x[1] - x[0])
        with np.errstate(over="ignore", divide="ignore"):
            at = math.exp(epsilon) * f / up
        inner = np.interp(np.log(np.clip(at, alphas[0], alphas[-1])), np.log(alphas), second)
        truth = float((up * inner).sum() * (x[1] - x[0]))
        assert mixed.delta(epsilon).delta == pytest.approx(truth, rel=1e-4)
        assert compose(either, 2).delta(epsilon).delta >= truth
    assert compose(either, 2).delta(-0.5).delta > 1.003 * compose(one, 2).delta(-0.5).delta


@pytest.mark.slow
def test_one_step_or_none_sampled_needs_no_second_pair():
    """One step has one sign; without sampling the other sign is the other direction."""
    skewed = mechanisms.gumbel(b=2)
    assert compose(skewed, 1).delta(0.5).protection.shift == "at most"
    plain = compose(skewed, 2)
    assert plain.protection.shift == "at most, one sign"
    assert plain.sides("both") == ("remove", "add")
    assert "to one side at all steps" in plain.protection.sentence
    beside = plain + compose(mechanisms.gaussian(sigma=2).subsample("poisson", "1/9"), 3)
    assert len(beside.sides("both")) == 4
    alone = [compose([(skewed.shifted(s), 2), *beside.steps[1:]]) for s in ("up", "down")]
    assert beside.delta(0.5).delta == max(one.delta(0.5).delta for one in alone)
    assert compose(mechanisms.laplace(b=2), 2).delta(0.5).protection.shift == "at most"


def test_where_nothing_is_proved_of_smaller_shifts_there_is_no_answer(monkeypatch):
    def refuse(_mechanism):
        raise AccuracyError("no enclosure")

    monkeypatch.setattr("symdp.questions.steps.worst_shift.worst_pair", refuse)
    noise, f = two_humps()
    with pytest.raises(InputError, match=r'neither to have one mode.*no enclosure.*"exactly"'):
        compose(noise.moved_by(6), 2)
    asked = compose(noise.moved_by(6).shifted("exactly"), 2).delta(1.0)  # one hump on the other
    assert asked.to_json()["shift"] == "exactly"
    assert asked.delta == pytest.approx(composed(moved(f, 6), f, 2, 1.0, 1e-4), rel=1e-3)


def test_an_epoch_of_noise_of_several_modes_is_asked_for_exactly_the_sensitivity():
    humps = of("humps").subsample("random_allocation", steps=2)
    with pytest.raises(InputError, match="neither to have one mode"):
        answered(humps)
    assert answered(humps.shifted("exactly")).shift == "exactly"
    noise = mechanisms.gaussian(sigma=2).subsample("random_allocation", steps=2)
    assert answered(noise).shift == "at most"


def test_steps_keep_what_was_asked():
    composition = compose(of("a gap"), 2)
    assert [m for m, _ in composition.given_steps()] == [of("a gap")]
    assert (composition * 2).protection == composition.protection
    mixed = composition + compose(mechanisms.laplace(b=2), 1)
    assert mixed.protection.is_of_all_shifts
    assert mixed.n == 3


FILE = """
name = "humps"
variable = "k"
support = "integers"
[noise]
density = "exp(-abs(abs(k) - 3))"
sensitivity = 4
normalize = true
shift = "exactly"
"""


def test_a_file_may_ask_for_exactly_the_sensitivity(tmp_path, capsys):
    asked = Mechanism.from_toml(FILE)
    assert asked.shift == "exactly"
    assert asked != Mechanism.from_toml(FILE.replace('shift = "exactly"', 'shift = "at most"'))
    with pytest.raises(InputError, match="shift = 'about' must be one of 'at most', 'either way'"):
        Mechanism.from_toml(FILE.replace("exactly", "about"))
    file = tmp_path / "humps.toml"
    file.write_text(FILE, encoding="utf-8")
    told = Shell(capsys)(f"delta {file} -n 2 --epsilon 1").out
    assert "moves the output by exactly the sensitivity" in " ".join(told.split())


@pytest.mark.slow
def test_a_bound_for_all_shifts_does_not_say_that_no_epsilon_exists():
    """At a shift of 1 alone ε is 9.84: what the cells do not hold is no loss of the noise."""
    x = sp.Symbol("x", real=True)
    noise = Mechanism.additive(sp.Abs(x) * sp.exp(-sp.Abs(x) / 4) / 32, x)
    with pytest.raises(InputError, match="it tells no finite epsilon; ask a larger delta"):
        compose(noise, 5).epsilon(1e-5)
    alone = compose(noise.shifted("exactly"), 5)
    found = alone.epsilon(1e-5)
    assert alone.delta(found.epsilon).delta == pytest.approx(1e-5, rel=1e-6)


def exact(ball):
    """The ends of a ball as fractions."""
    ends = []
    for end in (ball.lower(), ball.upper()):
        mantissa, exponent = end.mid().man_exp()
        ends.append(Fraction(int(mantissa)) * Fraction(2) ** int(exponent))
    return ends


@pytest.mark.parametrize("scale", [-300, -1, 0, 40])
def test_doubles_around_a_ball_hold_all_of_it(scale):
    """Most balls of 200 bits end between two doubles: an ulp inwards would leave a part out."""
    draw = random.Random(5)
    old, flint.ctx.prec = flint.ctx.prec, 200
    try:
        for _ in range(200):
            middle = flint.arb(draw.getrandbits(180) + 1) * flint.arb(2) ** (scale - 180)
            ball = flint.arb(middle, float(middle) * draw.choice([0.0, 1e-30, 1e-9]))
            low, high = exact(ball)
            assert Fraction(_double_ends(ball)[0]) <= low
            assert high <= Fraction(_double_ends(ball)[1])
            assert _double_ends(ball)[1] - _double_ends(ball)[0] <= float(
                high - low
            ) + 1e-15 * float(high)
    finally:
        flint.ctx.prec = old


def two_normals(x):
    """The density of 0.6 N(−1, 1) + 0.4 N(2, ½²)."""
    first = np.exp(-((x + 1) ** 2) / 2) * 0.6
    second = np.exp(-((x - 2) ** 2) * 2) * 0.8
    return (first + second) / math.sqrt(2 * math.pi)


def mass_of_two_normals(low, high):
    parts = [(0.6, NormalDist(-1, 1)), (0.4, NormalDist(2, 0.5))]
    return sum(weight * (law.cdf(high) - law.cdf(low)) for weight, law in parts)


def cells_by_hand(density, mass, bend, ends, width, shifts):
    """Cells of a density that is looked at in 40 places of each, its mass exactly."""
    count = round((ends[1] - ends[0]) / width)
    rows = []
    for i in range(count):
        left = ends[0] + i * width
        inside = left + width * np.linspace(0.0, 1.0, 41)
        values = density(inside)
        exact_mass = mass(left, left + width)
        rows.append((values.min(), values.max(), exact_mass, exact_mass, bend(inside).max()))
    beyond = 1.0 - sum(row[2] for row in rows)
    return _Cells(np.array(rows).T, max(beyond, 0.0), width, shifts)


@pytest.mark.parametrize("ends", [(-7.0, 6.0), (-3.0, 3.0)])
def test_cells_bound_the_profile_of_a_shift_and_little_more(ends):
    """H_α by two normal laws; of the narrower range 2.3 % of the mass is on no cell."""
    cells = cells_by_hand(
        two_normals, mass_of_two_normals, lambda x: 9.0 + 0.0 * x, ends, 1 / 50, 100
    )
    x = np.linspace(-14.0, 14.0, 140_001)
    alphas = np.array([1.0, 1.3, 4.0, 60.0])
    for k in (5, 50, 100):
        bound = _of_shift(cells, k, alphas)
        # What a shift moves off the cells counts as an infinite loss.
        off = mass_of_two_normals(ends[1] - k / 50, ends[1])
        for alpha, above in zip(alphas, bound, strict=True):
            excess = np.maximum(two_normals(x - k / 50) - alpha * two_normals(x), 0.0)
            truth = float(excess.sum()) * 2e-4
            assert truth <= above * (1 + 1e-9)
            assert above <= truth * 1.002 + 1e-3 + cells.beyond + off


def test_shifts_between_those_of_whole_cells_are_counted():
    """f = (1 − cos 2πx)/8 on [0, 8]: ½ is the worst shift, and 2 and 3 cells are 0.4 and 0.6."""

    def density(x):
        return np.where((x > 0) & (x < 8), 1 - np.cos(2 * math.pi * x), 0.0) / 8

    def mass(low, high):
        waves = math.sin(2 * math.pi * high) - math.sin(2 * math.pi * low)
        return (high - low - waves / (2 * math.pi)) / 8

    def bend(x):
        return math.pi**2 / 2 * np.abs(np.cos(2 * math.pi * x))

    cells = cells_by_hand(density, mass, bend, (0.0, 8.0), 0.2, 3)
    x = np.linspace(-1.0, 10.0, 44_001)
    alphas = np.array([1.0, 2.0, 5.0, 20.0])
    added = _of_between(cells, 3, alphas)
    for alpha, most in zip(alphas, added, strict=True):
        profiles = [
            float(np.maximum(density(x - d) - alpha * density(x), 0.0).sum()) * 2.5e-4
            for d in (0.4, 0.6, 0.45, 0.5, 0.55)
        ]
        gained = max(profiles) - max(profiles[:2])
        assert 0.003 < gained <= most <= 20 * gained


RIPPLES = {  # with its support
    "kinks": (sp.exp(-sp.Abs(X)) * (3 + sp.sin(5 * X)), (-sp.oo, sp.oo)),
    "ends": (X * (1 - X) ** 2 * (2 + sp.cos(9 * X)), (0, 1)),
    "smooth": (sp.exp(-(X**2)) * (1 + X**2), (-sp.oo, sp.oo)),
}


@pytest.mark.parametrize("name", RIPPLES)
def test_cells_hold_values_masses_and_bends(name):
    """Of 24 cells, some with a kink inside: values at places, masses by quadrature, f″."""
    formula, support = RIPPLES[name]
    stretches = smooth_stretches((formula,), X, *map(sp.sympify, support))
    low, high = (-1.5, 1.5) if support[0] == -sp.oo else (0.0, 1.0)
    with flint.ctx.workprec(BITS):
        step = flint.arb(1) / (8 if name == "smooth" else 7)
        cells = _on_grid(stretches, X, step, (low, high), 0.0, 7)
    width = float(step)
    first = math.floor(low / width - 1e-9) if low else 0
    with mpmath.workdps(30):
        value = sp.lambdify(X, formula, "mpmath")
        second = sp.lambdify(X, sp.diff(formula, X, 2).subs(sp.DiracDelta(X), 0), "mpmath")
        inside = [mpmath.mpf(k) / 6 for k in range(1, 6)]
        for number, (least, most, mass, large_mass, bend) in enumerate(cells.rows.T):
            left = (first + number) / mpmath.mpf(str(8 if name == "smooth" else 7))
            places = [left + place * width for place in inside]
            places = [x for x in places if support[0] < x < support[1]]
            if not places:
                assert (least, mass) == (0.0, 0.0)
                continue
            heights = [value(x) for x in places]
            assert least <= min(heights)
            assert max(heights) <= most
            ends = [max(left, support[0]), min(left + width, support[1])]
            middle = [0] if ends[0] < 0 < ends[1] else []
            truth = mpmath.quad(value, [ends[0], *middle, ends[1]])
            assert mass * (1 - 1e-12) <= truth <= large_mass * (1 + 1e-12)
            assert max(abs(second(x)) for x in places) <= bend
            if bend < math.inf:
                assert large_mass - mass <= 1e-2 * truth
                nearby = [abs(second(left + place * width)) for place in (0, 0.5, 1)]
                assert bend <= 2 * max(nearby) + 10


def test_a_ball_about_zero_ends_at_zero():
    assert _double_ends(flint.arb(-1, 0.5)) == (0.0, 0.0)
    low, high = _double_ends(flint.arb(0, 0.5))
    assert low == 0.0
    assert high >= 0.5


@pytest.mark.slow
def test_a_skewed_noise_with_waves_is_cut_where_its_mass_ends():
    """Its slope was told to fall 1 000 away only, and cells were as wide as the sensitivity."""
    x = sp.Symbol("x", real=True)
    y = 5 * x / 8 + sp.Rational(1, 16)
    skewed = (1 + sp.erf(y)) * sp.exp(-(y**2) / 2)
    waves = skewed * (sp.Rational(5, 4) + sp.cos(1 + 33 * x / 10))
    noise = Mechanism.additive(waves, x, sp.Rational(1, 10), normalize=True)
    bounds = compose(noise).delta([0.0, 0.1, 0.3])
    largest = (0.0901622, 0.0516333, 0.0107191)  # at ±1/10, by sums over 200 000 panels
    for bound, single in zip(bounds, largest, strict=True):
        assert single * (1 - 1e-5) <= bound.delta <= 1.01 * single
