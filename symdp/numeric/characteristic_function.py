"""The tilted characteristic function on a line: log φ_t(y) with the mean's phase taken out.

**Sums Σⱼ wⱼ e^{ikθⱼ} for many consecutive k.** Of few points, e^{i(a+b)θ} = e^{iaθ} e^{ibθ} makes
the sums of all k = a + b one matrix product. Of many, each is spread over a fine grid with the
kernel e^{β(√(1−x²)−1)} (Barnett, Magland and af Klinteberg, SIAM J. Sci. Comput. 2019),
transformed, and divided by the kernel's own transform.

**How large it can be far out**, which no sample of it could show. Where the loss has a density g on
a stretch, k integrations by parts bound that stretch's share of |φ(y)| by V_k/|y|^k and what is
left at its ends, V_k the total variation of g^(k−1) there; its mass bounds the share as well.
Stretches on which the loss hardly changes, and single values, keep their mass: |φ(y)| may recur to
that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, singledispatch

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from symdp.numeric.elementary import Complex, oscillation_sum
from symdp.numeric.nodes import Tilted
from symdp.numeric.panels import DERIVATIVE, NODES, ORDER, WEIGHTS
from symdp.numeric.step import Array

DIRECT_WORK = 400_000  # below this many exponentials a plain sum beats the transform
_LOG_ZERO = -800.0  # stands for log 0: e^-800 is zero in double precision, and stays so times n
_SMALL_SQUARE = -0.75  # |1 + z|² − 1 for |1 + z| = 1/2
_NEAR_PHASE = 32.0  # radians at the last y: nodes that turn by no more keep their relative accuracy
_PLACES = 48  # of a polynomial that e^{iyd} is to rounding while yd runs over half of that phase
_BLOCK = 1 << 14  # values that stay in a processor's cache
_CHEBYSHEV = np.cos((np.arange(_PLACES) + 0.5) * (np.pi / _PLACES))  # places of the polynomial
# Its values there to its coefficients.
_TO_SERIES = np.cos(np.outer(np.arange(_PLACES), np.arccos(_CHEBYSHEV))) * (2.0 / _PLACES)
_TO_SERIES[0] *= 0.5


@singledispatch
def log_characteristic(tilted: Tilted, y: Array) -> Complex:
    """Return log E_t e^{iy(L − m)} = log φ_t(y) − iym, accurate relative to itself near y = 0."""
    flat = oscillation_sum(y.ravel(), tilted.deviation, tilted.weight)
    return log_one_plus(flat).reshape(y.shape)


@singledispatch
def log_characteristic_grid(tilted: Tilted, step: float, first: int, last: int) -> Complex:
    """Return log φ_t(kh) − ikhm for k = first, …, last − 1.

    Nodes near the mean, which carry nearly all weight when n is large, are summed directly so that
    they keep full relative accuracy; the far ones go through a non-uniform Fourier transform whose
    error is relative to their own, small weight.
    """
    y: Array = step * np.arange(first, last, dtype=np.float64)
    if y.size * tilted.deviation.size <= DIRECT_WORK:
        return log_characteristic(tilted, y)
    near = np.abs(tilted.deviation) * (step * last) <= _NEAR_PHASE
    remainder = _near_sum(y, tilted.deviation[near], tilted.weight[near])
    weight, deviation = tilted.weight[~near], tilted.deviation[~near]
    if weight.size:
        far = uniform_sum(weight, np.fmod(step * deviation, 2 * np.pi), first, last)
        remainder += far - weight.sum() - 1j * y * float(weight @ deviation)
    return log_one_plus(remainder)


def _near_sum(y: Array, deviation: Array, weight: Array) -> Complex:
    """Return `oscillation_sum` at rising y, from 0 or a multiple of the step on, with small phases.

    From one y to twice as far it is y times a polynomial in y, found at its Chebyshev places.
    """
    found = np.empty(y.size, dtype=np.complex128)
    start = 0
    while start < y.size:
        stop = int(max(np.searchsorted(y, 2.0 * y[start]), start + 2 * _PLACES))
        here = y[start:stop]
        if here.size <= 2 * _PLACES:
            found[start:stop] = oscillation_sum(here, deviation, weight)
        else:
            middle, half = 0.5 * (here[0] + here[-1]), 0.5 * (here[-1] - here[0])
            places = middle + half * _CHEBYSHEV
            coefficients = _TO_SERIES @ (oscillation_sum(places, deviation, weight) / places)
            for first in range(0, here.size, _BLOCK):
                some = here[first : first + _BLOCK]
                value = np.polynomial.chebyshev.chebval((some - middle) / half, coefficients)
                found[start + first : start + first + some.size] = some * value
        start = stop
    return found


def log_one_plus(z: Complex) -> Complex:
    """Return log(1 + z), accurate relative to itself or to 1 + z, on the principal branch."""
    real = z.real
    result = np.empty(z.shape, dtype=np.complex128)
    with np.errstate(divide="ignore"):
        square = np.maximum(real * (2.0 + real) + z.imag * z.imag, -1.0)
        modulus = 0.5 * np.log1p(square)
        # Next to −1 the square cancels, and its root would keep half of the digits.
        small = square < _SMALL_SQUARE
        modulus[small] = np.log(np.hypot(1.0 + real[small], z.imag[small]))
        result.real = np.maximum(modulus, _LOG_ZERO)
    result.imag = np.arctan2(z.imag, 1.0 + real)
    return result


_WIDTH = 15  # grid points a source is spread over: relative error about 1e-14
_BETA = 2.30 * _WIDTH  # of the kernel e^{β(√(1−x²)−1)}, for a grid twice as fine


@cache
def _kernel_transform() -> Chebyshev:
    """Return the kernel's Fourier transform, which is even, as a polynomial in (k/grid)² ≤ 1/16."""
    nodes, weights = np.polynomial.legendre.leggauss(80)
    values = weights * np.exp(_BETA * (np.sqrt(1.0 - nodes * nodes) - 1.0))

    def transform(square: Array) -> Array:
        phase = np.multiply.outer(np.sqrt(square) * (np.pi * _WIDTH), nodes)
        return 0.5 * _WIDTH * (np.cos(phase) @ values)

    return Chebyshev.interpolate(transform, 20, domain=[0.0, 0.0676])


def _quick_length(least: int) -> int:
    """Return a length, hardly greater, that a fast Fourier transform takes quickly."""
    shift = max(least.bit_length() - 4, 0)
    return next(k << shift for k in (8, 9, 10, 12, 15, 16) if k << shift >= least)


def uniform_sum(weight: Array, angle: Array, first: int, last: int) -> Complex:
    """Return Σⱼ wⱼ e^{ikθⱼ} for k = first, …, last − 1, absolute error below 5e-14 Σ|wⱼ|.

    Angles are at most 2π in size; what k times their rounding turns the terms comes on top.

    Examples
    --------
    >>> out = uniform_sum(np.array([0.25, 0.75]), np.array([0.1, -2.0]), 5, 9)
    >>> direct = 0.25 * np.exp(0.1j * 5) + 0.75 * np.exp(-2j * 5)
    >>> bool(abs(out[0] - direct) < 1e-13)
    True
    """
    seen = np.abs(weight) > 1e-17 * np.abs(weight).sum() / weight.size
    if np.count_nonzero(seen) <= 64 * _WIDTH:  # else a transform takes less time
        weight, angle = weight[seen], angle[seen]
        width = 1 << ((last - first).bit_length() + 1) // 2
        starts = np.arange(first, last, width)
        rows = np.exp(1j * np.multiply.outer(starts, angle)) * weight
        columns = np.exp(1j * np.multiply.outer(angle, np.arange(width)))
        return np.asarray((rows @ columns).ravel()[: last - first])
    count = last - first
    half = (count + 1) // 2
    centre = first + half  # frequencies are taken relative to the middle of the asked range
    grid = _quick_length(max(2 * count + 2 * _WIDTH, 64))
    # Signed, so that small angles of either sign keep their relative accuracy: k multiplies it.
    position = angle * (grid / (2.0 * np.pi))
    source = weight * np.exp(1j * _turned(centre, position, grid))
    base = np.ceil(position - 0.5 * _WIDTH).astype(np.int64)
    real, imaginary = np.zeros(grid), np.zeros(grid)
    for offset in range(_WIDTH):
        place = base + offset
        x = (place - position) * (2.0 / _WIDTH)
        kernel = np.exp(_BETA * (np.sqrt(np.maximum(1.0 - x * x, 0.0)) - 1.0))
        index = np.mod(place, grid)
        real += np.bincount(index, source.real * kernel, grid)
        imaginary += np.bincount(index, source.imag * kernel, grid)
    spectrum = np.fft.ifft(real + 1j * imaginary) * grid
    k = np.arange(first, last) - centre
    return np.asarray(spectrum[np.mod(k, grid)] / _kernel_transform()((k / grid) ** 2))


def _turned(centre: int, position: Array, grid: int) -> Array:
    """Return the angle 2π·centre·position/grid, whole turns apart, without rounding the product.

    A rounded one would be wrong by `centre` times what the position is rounded by, next to k = 0
    as well.
    """
    scale = 2.0**27 + 1.0  # splits a double into two of half its bits [Dekker]
    high = scale * position - (scale * position - position)
    parts = np.fmod(centre * high, grid) + np.fmod(centre * (position - high), grid)
    return np.asarray(parts * (2.0 * np.pi / grid))


def column_sums(weights: Array, angle: Array, count: int) -> Complex:
    """Return Σⱼ wⱼᵢ e^{−ikθⱼ}, a row for each column i, for k = 0, …, count − 1.

    On a grid twice as fine as that of `uniform_sum`: absolute error ~1e-15 Σⱼ|wⱼᵢ|.

    >>> out = column_sums(np.array([[0.25, 1.0], [0.75, 0.0]]), np.array([0.1, -2.0]), 3)
    >>> bool(abs(out[0, 2] - 0.25 * np.exp(-0.2j) - 0.75 * np.exp(4j)) < 1e-14)
    True
    """
    grid = _quick_length(max(4 * count + 2 * _WIDTH, 64))
    position = angle * (grid / (2.0 * np.pi))
    base = np.ceil(position - 0.5 * _WIDTH)
    from_base, base = position - base, np.mod(base.astype(np.int64), grid)
    order = np.argsort(base)
    base, from_base, weights = base[order], from_base[order], weights[order]
    starts = np.flatnonzero(np.diff(base, prepend=-1))
    total = np.zeros((grid, weights.shape[1]))
    for offset in range(_WIDTH):
        x = (offset - from_base) * (2.0 / _WIDTH)
        kernel = np.exp(_BETA * (np.sqrt(np.maximum(1.0 - x * x, 0.0)) - 1.0))
        cells = np.mod(base[starts] + offset, grid)  # no two of them are equal
        total[cells] += np.add.reduceat(kernel[:, None] * weights, starts, axis=0)
    spectrum = np.fft.rfft(total.T)[:, :count]
    return np.asarray(spectrum / _kernel_transform()((np.arange(count) / grid) ** 2))


_DERIVATIVES = 4  # the most integrations by parts
_ORDERS = (1, 2, _DERIVATIVES)  # of a variation; a higher one serves farther out
_ANGLES = np.asarray([0.5, 1.0, 2.0, 3.0])  # a, how far two losses may turn apart
_ALL = 1.0 - 1e-15  # of |φ|², that a bound may leave
# values at the nodes of a panel to values at its ends
_ENDS = np.linalg.solve(
    np.polynomial.legendre.legvander(NODES, ORDER - 1).T,
    np.polynomial.legendre.legvander(np.asarray([-1.0, 1.0]), ORDER - 1).T,
)


@dataclass(frozen=True)
class Decay:
    """The tilted loss density on the panels of its quadrature, as far as it bounds |φ|.

    Of many steps at once, all arrays have an axis for the steps before that of the panels.

    `left, right`: g, g′, … at the ends of each panel, one row for each derivative.
    """

    rest: Array  # the mass of what has no density: single values, and panels cut short
    mass: Array  # the mass of each panel
    variation: tuple[Array, ...]  # V_k of each panel: an array for each of the orders
    left: Array
    right: Array
    joined: NDArray[np.bool_]  # whether a panel's right end is the next one's left end

    @property
    def _jumps(self) -> Array:
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(self.right[..., :-1] - self.left[..., 1:]))

    def log_bound(self, y: Array) -> Array:
        """Return an estimated bound on log |φ(y')| for every |y'| ≥ |y|, the y in rising order.

        What lies beyond the last y is bounded as if it were of the last one's size.
        """
        best = np.ones((y.size, *np.shape(self.rest)))
        for order, variation in zip(_ORDERS, self.variation, strict=False):
            powers = np.power.outer(1.0 / np.abs(y), np.arange(1.0, order + 1.0))
            with np.errstate(over="ignore", invalid="ignore"):
                share = np.multiply.outer(powers[:, -1], variation)
                left, right, jump = (
                    np.abs(np.tensordot(powers, ends[:order], 1))
                    for ends in (self.left, self.right, self._jumps)
                )
                # By parts or not, any choice bounds: what a panel's own mass is not worth, the
                # ends of its neighbours may be.
                for good in (share < self.mass, share < self.mass + left + right):
                    total = np.where(good, share, self.mass).sum(axis=-1) + self.rest
                    inner = self.joined & good[..., :-1] & good[..., 1:]
                    alone_right, alone_left = good.copy(), good.copy()
                    alone_right[..., :-1] &= ~inner
                    alone_left[..., 1:] &= ~inner
                    total += np.where(alone_right, right, 0.0).sum(axis=-1)
                    total += np.where(alone_left, left, 0.0).sum(axis=-1)
                    total += np.where(inner, jump, 0.0).sum(axis=-1)
                    best = np.fmin(best, total)
        return np.asarray(np.log(np.maximum.accumulate(best[::-1])[::-1]))


def decay(tilted: Tilted) -> Decay:
    """Return how the characteristic function of one step's tilted loss is bounded far out.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> law = compose(mechanisms.gaussian(sigma=2), 1).law("remove")
    >>> bound = decay(law.tilted(0.0)[0])
    >>> near, far = bound.log_bound(np.asarray([100.0, 200.0]))
    >>> bool(near > -0.5 * (100 / 2) ** 2), bool(abs(near - far - 4 * np.log(2)) < 0.1)
    (True, True)
    """
    panels = tilted.nodes.whole_panels
    return panel_decay(tilted.weight[panels.index], panels.slope, panels.joined)


def decays(parts: Sequence[Tilted]) -> Decay:
    """Return the same of several steps at once, each with panels of no mass at its end."""
    panels = [part.nodes.whole_panels for part in parts]
    length = max(1, *(len(some.index) for some in panels))
    weight = np.zeros((len(parts), length, ORDER))
    slope, joined = np.ones_like(weight), np.zeros((len(parts), length - 1), dtype=np.bool_)
    for k, (part, some) in enumerate(zip(parts, panels, strict=True)):
        weight[k, : len(some.index)] = part.weight[some.index]
        slope[k, : len(some.index)] = some.slope
        joined[k, : some.joined.size] = some.joined
    return panel_decay(weight, slope, joined)


def panel_decay(weight: Array, slope: Array, joined: NDArray[np.bool_]) -> Decay:
    """Return the decay of one step, or of many, from weights and ℓ′ on whole panels.

    `weight, slope`: the last two axes are panels and their nodes; ℓ′ is per half a panel's width.
    `joined`: whether a panel ends where the next one begins.
    """
    with np.errstate(all="ignore"):
        # A node stands for its weight times |ℓ′|, both per half a panel's width.
        derivatives = [weight / (np.abs(slope) * WEIGHTS)]
        for _ in range(_DERIVATIVES - 1):
            derivatives.append((derivatives[-1] @ DERIVATIVE.T) / slope)
        ends = [_finite(d @ _ENDS) for d in derivatives]
        variation = []
        for k in _ORDERS:
            low, high = ends[k - 1][..., :1], ends[k - 1][..., 1:]
            path = np.concatenate([low, derivatives[k - 1], high], axis=-1)
            variation.append(_finite(np.abs(path[..., 1:] - path[..., :-1]).sum(axis=-1)))
    mass = weight.sum(axis=-1)
    return Decay(
        np.maximum(0.0, 1.0 - mass.sum(axis=-1)),
        mass,
        tuple(variation),
        np.stack([e[..., 0] for e in ends]),
        np.stack([e[..., 1] for e in ends]),
        joined,
    )


def _finite(values: Array) -> Array:
    """Return the values with +inf where there are none."""
    return np.where(np.isnan(values), np.inf, values)


@singledispatch
def log_decay(tilted: Tilted, y: Array) -> Array:
    """Return an estimated bound on log |φ_t(y')| for every |y'| ≥ |y|, the y in rising order."""
    return decay(tilted).log_bound(y)


@singledispatch
def log_bound_near(tilted: Tilted, y: Array) -> Array:
    """Return a bound on log |φ(y')| between every two neighbours of rising y.

    With two independent losses L and L', as 1 − cos u ≥ c u² for |u| ≤ a,

        1 − |φ(y)|² = E(1 − cos y(L − L')) ≥ c y² E[(L − L')²; L, L' ∈ I],

    I of length a/y around the median of L. That shows how |φ|ⁿ of many steps falls.
    """
    return near_bound(tilted.weight, tilted.deviation, y)


def near_bound(weight: Array, deviation: Array, y: Array) -> Array:
    """Return the same from weights and rising deviations of one step."""
    below = np.zeros((3, deviation.size + 1))
    below[0, 1:], below[1, 1:] = weight, weight * deviation
    below[2, 1:] = below[1, 1:] * deviation
    np.cumsum(below, axis=1, out=below)
    median = deviation[min(int(below[0, 1:].searchsorted(0.5)), deviation.size - 1)]
    half = np.divide.outer(0.5 * _ANGLES, y[1:])
    low = deviation.searchsorted(median - half)
    high = deviation.searchsorted(median + half, side="right")
    mass, first, second = below[:, high] - below[:, low]
    curved = (1.0 - np.cos(_ANGLES)) / _ANGLES**2
    lost = 2.0 * y[:-1] ** 2 * (curved[:, None] * (mass * second - first * first)).max(axis=0)
    return np.asarray(0.5 * np.log1p(-np.clip(lost, 0.0, _ALL)))
