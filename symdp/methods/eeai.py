"""The exact Edgeworth accountant interval: first-order Edgeworth with a proved error.

The distance of a standardised sum's law from its first-order Edgeworth series has two bounds.

*By moments*, of Derumigny, Girard and Guyonvarch for independent summands with four. Every term
is a part of an integral of the distance between characteristic functions, taken against a
smoothing kernel of modulus at most c/(2π|u|) on |u| ≤ 2π√n/K̃₃: the Edgeworth series is compared
with the sum near u = 0, up to √(2η)(n/K₄)^{1/4}, and both are bounded by Gaussians beyond. η is
free between 0 and 1/3, and the least bound over it is taken.

*By the characteristic function itself*, Prawitz's smoothing. For a distribution function F with
characteristic function f, a smooth G with g, and every T > 0

    sup|F − G| ≤ (2/T)∫₀ᵀ |k(u/T)| |f − g| du + (2/T)∫₀ᵀ |k(u/T) − iT/(2πu)| |g| du
                 + (1/π)∫_T^∞ |g|/u du,

k(v) = ½(1 − |v|) + (i/2)((1 − |v|) cot πv + sgn(v)/π), where |k(v)| ≤ c/(2π|v|) and
|k(v) − i/(2πv)| ≤ ½(1 − |v| + π²v²/18). The second integral is about 1.2533/T. A bound that knows
moments only must stop at T ~ √n, where nothing is known of f any more, which makes it n^{−1/2}.
Here f is evaluated, bounded between the places by its derivatives, and T goes on as long as that
pays: for continuous losses |f| is tiny there, and what is left is the error of the series, O(1/n).
Where the loss has atoms |f| returns to one, and T stays before that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symdp.errors import AccuracyError
from symdp.methods.interval import Summands, log_tail, proved_answer, summands
from symdp.methods.moments import log_of
from symdp.numeric.answer import Answer, FloatAccountant
from symdp.numeric.elementary import Complex
from symdp.numeric.nodes import Tilted, log_characteristic_grid
from symdp.numeric.saddle_point import complement_rounding, log_one_minus_exp
from symdp.numeric.total import SumLaw, kept_with_law
from symdp.tolerances import ROUNDED, SUMS_ROUNDED

Array = NDArray[np.float64]
_KERNEL = 1.0253  # c
_COSINE = 0.09916191  # χ: cos x ≤ 1 − x²/2 + χ|x|³ for every x
_ETA = np.linspace(0.002, 0.32, 160)
_SKEWNESS = 1.0 / (6.0 * math.sqrt(2.0 * math.pi))  # the largest (x² − 1)φ(x)/6 is at x = 0
_SERIES_END = 12.0  # deviations of u, where |g| is below 1e-28
# of u: the last is divided by n^{1/3}
_FINEST = 2e-4
_COARSEST = 0.02
_SPACING = 0.3
_CELL = 0.1  # width of cells where y times a step's deviation is one or more; in ratio before
# largest y of one deviation of a step, and how it grows with √n
_FARTHEST = 4096.0
_PER_ROOT = 4.0
_TURNS = 1e5  # of the whole range of a loss, which take a second to resolve
_NEARER = 8.0  # where the loss turns too fast to be integrated so far out
_LIGHT = 1e-20  # probability: losses less likely do not turn what is summed
_HALF_NORMAL = math.sqrt(0.5 * math.pi)


@dataclass(frozen=True, slots=True)
class _Tail:
    """Proved bounds on the probability that the loss exceeds ε; the upper one also as a logarithm,
    which goes on where doubles end."""

    least: float
    most: float
    log_most: float


@dataclass(frozen=True)
class EdgeworthInterval(FloatAccountant):
    """δ± = 1 − E_Y ± Δ_Y − e^ε(1 − E_X ∓ Δ_X) [EA Def 4.2] with proved Δ ≥ |F − E₁|.

    Y is the loss under P, X the loss under Q, each expanded to first order; steps may differ, at a
    cost that grows with the number of distinct ones. Δ is the least of three: of moments alone
    [EA Lemma 4.3], O(n^{−1/2}); of Berry and Esseen; and of the characteristic function, O(1/n) for
    continuous losses [EA App. H]. It is uniform in ε, while e^ε multiplies it, so each tail
    probability is also held within its Chernoff and Hoeffding bounds; that is never wider than
    Δ(ε) = min(Δ, tail(ε) + |1 − E₁(ε)|) [EA Thm 1]. The interval is cut to that of the moments
    bound, which it is never wider than, and its value is its upper end.

    Examples
    --------
    >>> EdgeworthInterval().name
    'eeai'
    """

    name: str = "eeai"
    citations: tuple[str, ...] = (
        "EA Def 4.2",
        "EA Lemma 4.3",
        "Derumigny Thm A.2",
        "Prawitz",
        "Shevtsova2010",
        "SPA (43)",
    )

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the proved interval at one ε; its value is the upper end."""
        under_p = _tail(law, epsilon, 0.0)
        under_q = _tail(law, epsilon, -1.0)
        escaped = law.mass_at_infinity
        mass = math.exp(law.log_finite_mass)
        log_factor = epsilon + min(law.cgf(-1.0), 0.0)
        unsure = complement_rounding(law)  # of K(−1)
        # e^ε Q{L > ε} never exceeds P{L > ε}, hence 1
        gone = math.exp(min(log_factor - unsure + log_of(under_q.least), 0.0))
        taken = math.exp(min(log_factor + unsure + under_q.log_most, 0.0))
        low = escaped + mass * under_p.least - taken - ROUNDED
        high = escaped + mass * under_p.most - gone
        log_high = log_of(high + ROUNDED)
        if escaped == 0.0:
            log_high = min(log_high, under_p.log_most)
        return proved_answer(law, epsilon, log_of(low), log_high, self.name)


def edgeworth_tail(steps: Summands, x: float) -> float:
    """Return 1 − E₁(x) = 1 − Φ(x) + λ₃(x² − 1)φ(x)/6."""
    normal = 0.5 * math.erfc(x / math.sqrt(2.0))
    density = math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    return normal + steps.skewness * (x * x - 1.0) * density / 6.0


def _tail(law: SumLaw, epsilon: float, origin: float) -> _Tail:
    steps = summands(law, origin)
    # the other tail, being a probability too, bounds this one from below
    log_most = log_tail(law, epsilon, origin, upper=True)
    least = math.exp(log_one_minus_exp(log_tail(law, epsilon, origin, upper=False)))
    if not steps.is_spread:
        return _Tail(least, math.exp(log_most), log_most)
    deviation = math.sqrt(steps.variance)
    drift = law.drift(epsilon)
    x = -(drift + steps.shift) / deviation
    # x is known up to rounding only, and E₁ changes by at most about one unit a deviation
    rounding = steps.uncertainty + 1e-15 * (abs(drift) + abs(steps.shift))
    error = min(_edgeworth_error(steps), smoothing_error(law, origin, steps))
    error += ROUNDED + (1.0 + abs(steps.skewness)) * rounding / deviation
    centre = edgeworth_tail(steps, x)
    most = min(centre + error, 1.0)
    least = max(least - ROUNDED, centre - error, 0.0)
    if most < math.exp(log_most):
        return _Tail(least, most, log_of(most))
    return _Tail(least, math.exp(log_most), log_most)


def _edgeworth_error(steps: Summands) -> float:
    """Return Δ ≥ sup|F − E₁|, E₁(x) = Φ(x) − λ₃(x² − 1)φ(x)/6, never more than 1."""
    if not steps.is_spread:
        return 1.0
    # Berry and Esseen's, which is the better one for few steps
    plain = steps.berry_esseen + _SKEWNESS * abs(steps.skewness)
    return min(plain, uniform_error(steps), 1.0)


def uniform_error(steps: Summands) -> float:
    """Return the bound of first order on sup|F − E₁| (Derumigny, Thm A.2) [EA Lemma 4.3]."""
    n = float(steps.count)
    root = math.sqrt(steps.count)
    deviation = math.sqrt(steps.variance / n)  # root mean variance of one step
    cubed = n * deviation**3
    k3 = steps.absolute_third / cubed
    k4 = steps.fourth / (n * deviation**4)
    k3_tilde = k3 + steps.absolute_mixed / cubed
    skew = abs(steps.third) / cubed
    eta = _ETA
    ratio = k4 / n
    narrow = (1.0 - 3.0 * eta) ** 2
    polynomial = 144.0 + 80.0 * eta + 4.0 * eta**2
    polynomial = polynomial + 96.0 * np.sqrt(2.0 * eta)
    polynomial = polynomial + 16.0 * math.sqrt(2.0) * eta**1.5
    polynomial = polynomial / 576.0
    exponent = eta**2 * (1.0 / 6.0 + 2.0 * polynomial / narrow)
    growth = np.exp(exponent)
    squares = 0.031 * k3_tilde**2 + 0.054 * skew * k3_tilde
    second_order = squares + 0.037 * growth * skew**2
    fourth = 1.0 / 12.0 + 0.25 / narrow
    second_order = second_order + 0.327 * k4 * fourth
    near = _near_zero(eta, ratio, skew / root, narrow, polynomial, growth)
    end = 2.0 * root / k3_tilde
    start = np.minimum(np.sqrt(2.0 * eta) / ratio**0.25, end)
    of_skewness = _upper_gamma(start) - _upper_gamma(np.asarray(end))
    decay = 0.5 * (1.0 - 4.0 * _COSINE - math.sqrt(ratio))
    of_kernel = _KERNEL * k3 / (6.0 * math.pi * root)
    gaussian_part = of_kernel * _gaussian_second(start, end, decay)
    beyond = skew / root * of_skewness + gaussian_part
    n_squared_pi_fourth = 16.0 * math.pi**4 * n * n
    n_squared_pi_cubed = 8.0 * math.pi**3 * n * n
    far = (14.1961 + 67.0415) * k3_tilde**4 / n_squared_pi_fourth
    far += 4.3394 * skew * k3_tilde**3 / n_squared_pi_cubed
    first_order = 0.1995 * k3_tilde / root
    total = first_order + second_order / n + near + beyond + far
    return float(total.min())


def _near_zero(
    eta: Array, ratio: float, skew: float, narrow: Array, polynomial: Array, growth: Array
) -> Array:
    """Return the part of higher orders near u = 0, `ratio` = K₄/n and `skew` = |λ₃|/√n.

    Terms are (power of K₄/n, factor, moment ∫₀^∞ u^m e^{−u²/2} du) of the squared first logarithm,
    and of the second term of the exponential.
    """
    products = (
        (1.5, 1.0 / 48.0, 7),
        (2.0, 1.0 / 1152.0, 9),
        (1.25, 1.0 / 12.0, 6),
        (1.5, 1.0 / 72.0, 7),
        (1.75, 1.0 / 144.0, 8),
    )
    squares = sum(factor * ratio**power * _half_moment(m) for power, factor, m in products)
    fourth = 1.0 / 24.0 + 0.5 * polynomial / narrow
    exponential = 0.5 * fourth**2 * ratio**2 + skew * fourth * ratio / 6.0
    total = squares / narrow + growth * exponential * _half_moment(9)
    return np.asarray(_KERNEL / math.pi * total)


def _half_moment(m: int) -> float:
    """Return ∫₀^∞ u^m e^{−u²/2} du = 2^{(m−1)/2} Γ((m+1)/2)."""
    return float(2.0 ** (0.5 * (m - 1)) * math.gamma(0.5 * (m + 1)))


def _upper_gamma(x: Array) -> Array:
    """Return Γ(3/2, x)."""
    from scipy.special import gammaincc

    return np.asarray(math.gamma(1.5) * gammaincc(1.5, x))


def _gaussian_second(start: Array, end: float, decay: float) -> Array:
    """Return ∫ u² e^{−decay·u²} du from start to end, or more where decay ≤ 0."""
    from scipy.special import gammainc

    if decay > 0:
        front = 0.5 * math.gamma(1.5) / decay**1.5
        difference = gammainc(1.5, decay * end * end) - gammainc(1.5, decay * start * start)
        return np.asarray(front * difference)
    largest = math.exp(min(-decay * end * end, 700.0))
    return np.asarray(largest * (end**3 - start**3) / 3.0)


@kept_with_law
def smoothing_error(law: SumLaw, origin: float, steps: Summands) -> float:
    """Return Δ ≥ sup|F − E₁| of the standardised sum under P_t, the least over T."""
    near = _near(law, origin, steps)
    parts = law.tilted(origin)
    widest = max(part.widest for part in parts)
    longest = max(_spread_of_losses(part) for part in parts)
    turns = 2.0 * math.pi * _TURNS * widest / longest
    farthest = min(_FARTHEST, _PER_ROOT * math.sqrt(steps.count), turns)
    while True:
        try:
            edges, far = _far(law, origin, steps, farthest)
            break
        except AccuracyError:
            farthest /= _NEARER  # any T gives a bound
            if farthest < 1.0 / _NEARER:
                return 1.0
    total = near + np.concatenate([[0.0], np.cumsum(far)]) + _kernel_error(edges, steps)
    return float(total.min()) * (1.0 + SUMS_ROUNDED)


def _kernel_error(ends: Array, steps: Summands) -> Array:
    """Return the second and third integral at each T ≥ 1: |g| = e^{−u²/2}√(1 + λ²u⁶/36)."""
    skew = abs(steps.skewness) / 6.0
    none = _HALF_NORMAL + 2.0 * skew
    two = _HALF_NORMAL + 8.0 * skew  # ∫|g|, ∫u²|g|; ∫u|g| ≥ 1
    second_order = math.pi**2 / 18.0 * two / ends**2
    inner = (none - 1.0 / ends + second_order) / ends
    normal_tail = np.exp(-0.5 * ends**2) / math.pi
    growth = 1.0 / ends**2 + skew * (ends + 1.0 / ends)
    return np.asarray(inner + normal_tail * growth)


def _near(law: SumLaw, origin: float, steps: Summands) -> float:
    """Return a bound on (c/π)∫ |f − g|/u du over 0 < u ≤ 12.

    On a cell |D| is at most the line through its end values plus h²/8 · sup|D″|. D″ is known to
    h·sup|D‴| from second differences, and D = O(u⁴) on the first cells.
    """
    skew = abs(steps.skewness)
    # of S = Σ Xᵢ/σ: E S⁴ = 3 + κ₄/σ⁴, E|S|³ ≤ (E S⁴)^{3/4}, and as much for the series
    fourth_cumulant = float(law.cumulants(origin, 4)[3])
    moment = 3.0 + abs(fourth_cumulant) / steps.variance**2
    third = moment**0.75 + 1.6 + 4.0 * skew
    fourth = moment + 3.0 + 9.6 * skew
    finest = max(_FINEST, _SPACING * steps.count ** (-1.0 / 3.0))
    h = min(_COARSEST, finest)
    count = math.ceil(_SERIES_END / h)
    u = h * np.arange(count + 2)
    difference, unsure = _from_series(law, origin, steps, u)
    size = np.abs(difference) + unsure
    second_differences = difference[2:] - 2.0 * difference[1:-1] + difference[:-2]
    unsure_of_them = unsure[2:] + 2.0 * unsure[1:-1] + unsure[:-2]
    bend = np.zeros(count + 1)  # of second differences around the nodes 1, …, count
    bend[1:] = np.abs(second_differences)
    bend[1:] += unsure_of_them
    left = u[:count]
    right = u[1 : count + 1]
    larger_bend = np.maximum(bend[:count], bend[1:])
    at_zero = 0.5 * h * h * fourth * right**2  # as D = D′ = D″ = D‴ = 0 at u = 0
    cell = np.minimum(larger_bend + 2.0 * h**3 * third, at_zero)
    larger_end = np.maximum(size[:count], size[1 : count + 1])
    value = larger_end + 0.125 * cell
    logarithm = np.log(right[1:] / left[1:])
    first_cell = fourth * h**4 / 96.0  # ∫₀ʰ M u³/24 du
    total = float(value[1:] @ logarithm) + first_cell
    return float(_KERNEL / math.pi * total)


def _from_series(law: SumLaw, origin: float, steps: Summands, u: Array) -> tuple[Complex, Array]:
    """Return f − g at places u of equal steps from 0, and how far rounding may move it."""
    y = u / math.sqrt(steps.variance)
    log_f, error = _log_sum(law, origin, y)
    skewed = 1.0 - 1j * steps.skewness * u**3 / 6.0
    normal = np.exp(-0.5 * u * u)
    series = normal * skewed
    f = np.exp(log_f)
    relative = error * (1.0 + np.abs(log_f))
    unsure = np.abs(f) * np.expm1(np.minimum(relative, 1.0))
    return f - series, unsure


def _far(law: SumLaw, origin: float, steps: Summands, farthest: float) -> tuple[Array, Array]:
    """Return places T from 12 on, and bounds on (c/π)∫ (|f| + |g|)/u du between them."""
    widest = max(part.widest for part in law.tilted(origin))
    per_turn = math.sqrt(steps.variance) / widest
    # v = yσ of the widest step: equal ratios below one, where 1 − |φ| grows like v², then multiples
    start = _SERIES_END / per_turn
    end = max(farthest, 2.0 * start)
    cells_to_one = round(1.0 / _CELL)
    first = max(math.floor(start / _CELL), cells_to_one) + 1
    last = max(math.ceil(end / _CELL), first) + 1
    grid = _CELL * np.arange(first, last + 1, dtype=np.float64)
    nearest = grid[0]
    ratio = math.log(nearest / start)
    cells_below = math.ceil(ratio / _CELL)
    shares = np.linspace(1.0, 0.0, cells_below + 1)[:-1]
    below = nearest * np.exp(-ratio * shares)
    edges = np.concatenate([below, grid])
    slow_places = edges[: below.size + 1] / widest
    slow = _log_largest(law, origin, slow_places)
    fast = _log_largest(law, origin, grid / widest, (_CELL / widest, first))
    log_f = np.concatenate([slow, fast])
    series = 1e-27 * (1.0 + abs(steps.skewness))
    logarithm = np.log(edges[1:] / edges[:-1])
    larger = np.exp(log_f) + series
    bound = _KERNEL / math.pi * logarithm * larger
    places = np.asarray(edges * per_turn, dtype=np.float64)
    return places, np.asarray(bound)


def _spread_of_losses(tilted: Tilted) -> float:
    """Return the range of the losses of a step that are not too unlikely to matter."""
    seen = tilted.deviation[tilted.weight > _LIGHT]
    return float(seen.max() - seen.min())


def _log_largest(
    law: SumLaw, origin: float, y: Array, grid: tuple[float, int] | None = None
) -> Array:
    """Return a bound on log |f| between neighbours of rising y, a grid of a step and a first place.

    |φ|² of a step is the characteristic function of the difference of two independent losses, so
    that its second derivative is at most 2σ².
    """
    total = np.zeros(y.size - 1)
    cell = np.diff(y)
    if y.size < 2:
        return total
    for tilted, count in law.tilted_terms(origin, float(y[-1])):
        if grid is None:
            log_f = tilted.log_characteristic(y)
        else:
            log_f = log_characteristic_grid(tilted, *grid, grid[1] + y.size)
        square = np.exp(2.0 * log_f.real)
        total += count * _log_between(square, cell, tilted.variance, tilted.error)
    return total


def _log_between(square: Array, cell: Array, variance: float | Array, error: float) -> Array:
    larger = np.maximum(square[..., 1:], square[..., :-1])
    larger = larger + 0.25 * cell * cell * variance + SUMS_ROUNDED + 8.0 * error
    return np.asarray(0.5 * np.log(np.minimum(larger, 1.0)))


def _log_sum(law: SumLaw, origin: float, y: Array) -> tuple[Complex, float]:
    """Return log f, the sum's mean taken out, and how far off it may be relative to itself."""
    spacing = float(y[1])
    parts = law.tilted(origin, float(y[-1]))
    total = np.zeros(y.size, dtype=np.complex128)
    for tilted, (_, count) in zip(parts, law.terms, strict=True):
        log_f = log_characteristic_grid(tilted, spacing, 0, y.size)
        total += count * log_f
    largest_error = max(tilted.error for tilted in parts)
    return total, SUMS_ROUNDED + 4.0 * largest_error
