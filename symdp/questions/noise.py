"""A noise itself: how large it is, its quantiles and samples, and noises of one size side by side.

**Size.**  Utility asks for E(X − EX)² or E|X − EX|, whatever the privacy. Both are integrals, or
sums over integers, of the density that was written: balls enclose them, so that a moment that is
infinite, or not shown to be finite, has no number here. A mechanism with one parameter left open
gets the value at which its noise has the size that was asked for.

**Quantiles and samples**, in doubles.  The line is cut into cells at geometric distances from the
ends, the modes and zero, so that heavy tails and singular ends are cells like others. In a cell the
density is a polynomial through Chebyshev places; where the integral of a cell and those of its
halves differ, it is halved. The distribution function of a cell is the polynomial's integral, and
is inverted by bisection. On integers the probabilities are summed. What all cells hold besides 1
is the error that is known.

**Noise on vectors** is a length R, of a density as r^{d−1} g(r), times an independent direction u,
uniform on the sphere. Size is that of one coordinate: (E R²/d)^{1/2}, and E R · E|u₁| with
E|u₁| = Γ(d/2)/(√π Γ((d+1)/2)).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
import sympy as sp
from flint import arb, ctx, fmpq
from numpy.polynomial import chebyshev

from symdp.arguments import listed, real, share, whole
from symdp.balls.mass import enclose_mass
from symdp.emit.numpy import compile_numpy
from symdp.errors import AccuracyError, InputError, SymdpError, at
from symdp.interrupt import Deadline, worked
from symdp.model import assumption
from symdp.model.local import Local
from symdp.model.mechanism import Mechanism, a_mechanism
from symdp.model.sampling import MassNoise, Noise, Radial, exact
from symdp.numeric.laws.of_mechanism import loss_law
from symdp.questions.composition import Composition, compose
from symdp.questions.invert import bracketed_root
from symdp.questions.shuffled.worst import as_noise
from symdp.questions.tradeoff import trade_off
from symdp.questions.value_search import decimal
from symdp.tolerances import MASS_ROUNDED, ROUNDED, SOME_TIME, SUM_BITS
from symdp.turns import in_turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from symdp.model.sampling import Number
    from symdp.questions.guarantee import Guarantee

    Array = NDArray[Any]

Size = Literal["std", "mean_abs"]
WORDS = {"std": "standard deviation", "mean_abs": "mean absolute deviation"}
ALPHA = 0.05  # the false positive rate of the attacks that are compared
_TRIES = 4  # accuracies at which one moment is tried
_RELATIVE = arb(2) ** -64  # of a moment: far below the rounding of doubles
# of the logarithm of a value, or the log odds of a share
_STEP = 2.0
_MOST_STEPS = 12
_DIGITS = 12  # significant, of a value that is looked for
_DEGREE = 15  # of a cell's polynomial
_DEEPEST = 1000  # binary digits between the nearest and the farthest cell, and 1
_LEAST = 1e-40  # of a mass that is resolved
# of one cell, and of all at a time
_HALVINGS = 48
_MOST_CELLS = 1 << 16
_BISECTIONS = 60  # of a place in its cell
_DRAWN = [0.005, 0.995]  # the shares below the ends of a figure
_LEAST_SHARE = 1e-30  # the least p: cells of less mass are not resolved
_LARGEST_INT = 2.0**63
_LACKING = 1e-9  # of the mass, that the cells may not see
_MOST_WHOLE = 1 << 22  # integers whose probabilities are summed
# octaves, and lengths at which a mass is sized up
_FARTHEST = 100.0
_LENGTHS = 1601
_PLACES = np.cos(np.pi * np.arange(_DEGREE + 1) / _DEGREE)
_TO_SERIES = np.linalg.inv(chebyshev.chebvander(_PLACES, _DEGREE))


class NoiseSize(NamedTuple):
    """The mean of a noise, and how far it lies from it."""

    mean: float
    std: float
    mean_abs: float  # E|X − EX|


@in_turn
def noise_size(mechanism: Mechanism) -> NoiseSize:
    r"""Return the mean, the standard deviation and the mean absolute deviation of a noise.

    .. math:: m = \int x f(x)dx, \quad \Bigl(\int (x - m)^2 f(x)dx\Bigr)^{1/2}, \quad
        \int |x - m| f(x)dx

    The noise is additive, on the line or on integers, with a value for every parameter; sampling
    does not change what is added. Each integral is enclosed by balls: AccuracyError for a moment
    that is infinite, or of which no bound was found.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> size = noise_size(mechanisms.laplace(b=3))
    >>> size.mean, round(size.std, 12), round(size.mean_abs, 12)
    (0.0, 4.242640687119, 3.0)
    """
    mean = _mean(a_mechanism(mechanism))
    moments = (_moment(mechanism, name, mean) for name in ("std", "mean_abs"))
    return NoiseSize(float(mean.mid()), *moments)


@dataclass(frozen=True)
class Compared:
    """One noise of the size that was asked for, and what its releases say.

    `mechanism` has the value that was found, `values` has those of all its parameters by name.
    `size` is None where it adds no noise, or no bound on the noise's size was found.
    `guarantee` is ε at the δ that was asked for, `delta` the upper end of δ at the least ε of all
    that are compared. The best attack's true positive rate exceeds its false positive rate by
    `advantage`; `miss_rate` is the least at false positive rate 0.05.
    """

    mechanism: Mechanism
    values: dict[str, str]
    size: NoiseSize | None
    guarantee: Guarantee
    delta: float
    advantage: float
    miss_rate: float

    def __repr__(self) -> str:
        size = "" if self.size is None else f", std {self.size.std:.6g}"
        return f"<Compared {self.mechanism.summary}{size}: {self.guarantee}>"

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON values: the guarantee's keys, and what stands beside them."""
        sizes: dict[str, float | None] = dict.fromkeys(NoiseSize._fields)
        if self.size is not None:
            sizes.update(self.size._asdict())
        entries = {"mechanism": self.mechanism.name, "values": self.values, **sizes}
        also = {"delta_at_least_epsilon": self.delta, "advantage": self.advantage}
        return {**entries, **self.guarantee.to_json(), **also, "miss_rate": self.miss_rate}


@in_turn
def compare(
    noises: Sequence[Mechanism],
    n: int = 1,
    *,
    delta: float,
    std: Number | None = None,
    mean_abs: Number | None = None,
    left_out: Callable[[str], None] | None = None,
) -> tuple[Compared, ...]:
    """Return noises of one size side by side, what is most private first.

    A mechanism with one parameter without a value gets the one at which its noise has the size
    that was asked for, to eleven digits; one with values for all keeps them, and shows its size.
    Without a size all have values, and need not add noise: lists of outcomes, say.

    Parameters
    ----------
    noises : mechanisms that add noise, local randomizers that add it to an input among them;
        sampled and shuffled ones are accounted as such
    n : the number of releases
    delta : δ of the ε that is compared, in (0, 1)
    std, mean_abs : the standard deviation or E|X − EX| of the noise, one of them, above 0; neither
        where every mechanism has values for all its parameters
    left_out : called with the reason for each noise that has no answer, as where no value of its
        parameter within its domain and [assume] gives the size; an error where it is not given

    Examples
    --------
    >>> from symdp import mechanisms
    >>> rows = compare([mechanisms.laplace, mechanisms.gaussian], 50, delta=1e-5, std=20)
    >>> [(row.mechanism.name, round(row.guarantee.epsilon, 6)) for row in rows]
    [('gaussian', 1.356467), ('laplace', 1.913757)]
    """
    compared = listed(noises, "give a list of mechanisms")
    is_sized = not all(a_mechanism(noise).is_concrete for noise in compared)
    is_double = std is not None and mean_abs is not None
    if is_double or (is_sized and std is None and mean_abs is None):
        raise InputError("give the size of the noise: std or mean_abs, one of them")
    share(delta, "delta")
    measure: Size | None = None
    size = math.nan
    for name, target in (("std", std), ("mean_abs", mean_abs)):
        if target is not None:
            measure = cast("Size", name)
            size = real(target, WORDS[measure])
            if size <= 0:
                raise InputError(f"{WORDS[measure]} {target}: it must be positive")
    rows = []
    last: SymdpError = InputError("give a noise to compare")
    for noise in compared:
        try:
            noise_of_size = a_mechanism(noise)
            if measure is not None:
                noise_of_size = _of_size(noise_of_size, measure, size)
            with at(noise_of_size.summary):
                steps = compose(noise_of_size, n)
                rows.append((noise_of_size, steps, steps.epsilon(delta)))
        except (_NoValueError, AccuracyError) as error:
            if left_out is None:
                raise
            name = a_mechanism(noise).name
            left_out(str(error) if name in str(error) else f"{name}: {error}")
            last = error
    if not rows:
        raise last
    rows.sort(key=lambda row: row[2].epsilon)
    least = rows[0][2].epsilon
    return tuple(_compared_row(*row, least, is_sized=measure is not None) for row in rows)


def _compared_row(
    mechanism: Mechanism, steps: Composition, answer: Guarantee, least: float, *, is_sized: bool
) -> Compared:
    size = None
    if is_sized:
        size = noise_size(mechanism)
    with suppress(InputError, AccuracyError):
        size = size or noise_size(mechanism)
    return Compared(
        mechanism,
        {name: decimal(value) for name, value in mechanism.bound},
        size,
        answer,
        steps.delta(least).at_most,
        steps.membership_advantage(),
        float(trade_off(steps, ALPHA)),
    )


class _NoValueError(InputError):
    """No value of a parameter gives noise the size that was asked for."""


def _of_size(mechanism: Mechanism, measure: Size, size: float) -> Mechanism:
    """Return a mechanism with the value of its one open parameter that gives a size."""
    if mechanism.is_concrete:
        _added(mechanism)
        return mechanism
    name, *more = mechanism.parameters
    if more:
        few = ", ".join([name, *more])
        raise InputError(
            f"{mechanism.name}: give values for all but one of {few}, as in {more[-1]}=VALUE"
        )

    is_share = any(
        declared.name == name and declared.bounds[1] == 1 for declared in mechanism.declared
    )
    is_whole = bool(mechanism.parameters[name].is_integer)

    def value(u: float) -> sp.Rational:
        parameter = 1.0 / (1.0 + math.exp(-u)) if is_share else math.exp(u)
        if is_whole:
            return sp.Integer(round(parameter))
        return exact(f"{parameter:.{_DIGITS}g}")

    def excess(u: float) -> float:
        tried = mechanism(**{name: value(u)})
        return math.log(_moment(tried, measure, _mean(tried)) / size)

    places = _places(lambda position: assumption.allows(mechanism, name, value(position)))
    ends, seen = _around(excess, places)
    extremes = " and ".join(
        f"{size * math.exp(seen[position]):.6g} at {name} = {decimal(value(position))}"
        for position in (min(seen, default=0.0), max(seen, default=0.0))
        if position in seen
    )
    limits = f", {' and '.join(mechanism.assumptions)}" if mechanism.assumptions else ""
    nothing = f"{mechanism.name}: no {name}{limits} was found of which the {WORDS[measure]} is"
    if ends is None:
        raise _NoValueError(f"{nothing} {size:g}; it is {extremes or 'not known of any'}")
    if ends[0] == ends[1]:
        return mechanism(**{name: value(ends[0])})
    if not is_whole:
        root = bracketed_root(excess, *ends, absolute=1e-13)
        return mechanism(**{name: value(root)})
    low, high = (int(value(position)) for position in ends)
    lower = excess(ends[0])
    while high - low > 1:
        middle = (low + high) // 2
        height = excess(math.log(middle))
        if (height > 0) == (lower > 0):
            low = middle
        else:
            high = middle
    raise _NoValueError(
        f"{nothing} {size:g}: it crosses that between {name} = {low} and {high}; give one of them"
    )


def _places(allows: Callable[[float], bool]) -> list[float]:
    """Return allowed places from the middle outwards, ends of what is allowed among them."""
    regular = [_STEP * k for k in range(-_MOST_STEPS, _MOST_STEPS + 1)]
    allowed = [u for u in regular if allows(u)]
    for left, right in pairwise(regular):
        if allows(left) == allows(right):
            continue
        inside, outside = (left, right) if allows(left) else (right, left)
        last = inside
        refused = outside
        for _ in range(_BISECTIONS):
            middle = 0.5 * (last + refused)
            if allows(middle):
                last = middle
            else:
                refused = middle
        allowed += [last, 0.5 * (last + inside)]
    return sorted(set(allowed), key=abs)


def _around(
    excess: Callable[[float], float], places: Sequence[float]
) -> tuple[tuple[float, float] | None, dict[float, float]]:
    """Return two places next to each other, too small a size at one of them, and what was seen.

    Places without an answer are stepped over; the first error counts where there is none at all.
    """
    heights: dict[float, float] = {}
    first_error: SymdpError | None = None
    for u in places:
        try:
            height = excess(u)
        except SymdpError as error:
            first_error = first_error or error
            continue
        heights[u] = height
        if abs(height) < MASS_ROUNDED:
            return (u, u), heights
        ordered = sorted(heights)
        index = ordered.index(u)
        for other in ordered[max(index - 1, 0) : index] + ordered[index + 1 : index + 2]:
            if (heights[other] > 0) != (height > 0):
                return (min(u, other), max(u, other)), heights
    if not heights and first_error is not None:
        raise first_error
    return None, heights


def _added(mechanism: Mechanism) -> Noise | MassNoise:
    """Return the noise of a mechanism, of a local randomizer what is added to the input."""
    source = mechanism.source
    if not isinstance(source, Local):
        return noise_of(mechanism)
    added = as_noise(mechanism)
    if added is None:
        raise InputError(
            f"{mechanism.name} adds no noise to its input, and has no size: give densities f(y - x)"
        )
    return noise_of(added)


def noise_of(mechanism: Mechanism) -> Noise | MassNoise:
    """Return the additive noise of a mechanism; InputError where it has none."""
    source = mechanism.source
    if isinstance(source, Noise | MassNoise):
        return source
    what = "no additive noise: size, quantiles and values are those of noise on a line or a vector"
    if isinstance(source, Radial):
        what = "noise on vectors, which has no quantiles: ask for std, mean_abs or sample"
    raise InputError(f"{mechanism.name} is {what}")


def _log_of_length(mechanism: Mechanism) -> sp.Expr:
    """Return the log of r^{d−1} g(r), to which the density of the length is proportional."""
    source = mechanism.source
    assert isinstance(source, Radial)
    return (source.dimension - 1) * sp.log(mechanism.variable) + sp.log(source.density)


def _length(mechanism: Mechanism) -> tuple[Mechanism, int, sp.Rational]:
    """Return the length of noise on vectors as noise on [0, ∞), and k and c: it is 2^{−k}/c times.

    Its mass is 1 but for rounding.
    """
    source = mechanism.source
    r = mechanism.variable
    assert isinstance(source, Radial)
    name = f"the length of {mechanism.name}"
    lengths = np.exp2(np.linspace(-_FARTHEST, _FARTHEST, _LENGTHS))
    with np.errstate(all="ignore"):
        log_density = compile_numpy(_log_of_length(mechanism), [r])(lengths)
        log_masses = np.asarray(log_density) + np.log(lengths)
    bits = round(float(np.nanmax(log_masses)) / math.log(2.0))
    density = r ** (source.dimension - 1) * source.density * sp.Integer(2) ** -bits
    ball = _enclosed(density, r, (sp.S.Zero, sp.oo))
    if ball is None or not ball > 0:
        raise AccuracyError(f"{name}: no bound on the mass of its density was found")
    mass = sp.Rational(float(ball.mid()))
    return Mechanism.additive(density / mass, r, support=(0, sp.oo), name=name), bits, mass


@lru_cache(maxsize=16)
def _law_of_length(mechanism: Mechanism) -> NoiseLaw:
    """Return the cells of the length, by the log of its density: r^{d−1} may be no double."""
    length, bits, mass = _length(mechanism)
    log_density = compile_numpy(_log_of_length(mechanism), [mechanism.variable])
    log_mass = bits * math.log(2.0) + math.log(float(mass))
    return NoiseLaw(length, lambda r: np.exp(log_density(r) - log_mass))


@in_turn
def moment(mechanism: Mechanism, name: Literal["mean", "std", "mean_abs"]) -> float:
    """Return one number of `NoiseSize`: it may exist where another one is infinite."""
    mean = _mean(a_mechanism(mechanism).require_concrete())
    if name == "mean":
        return float(mean.mid())
    return _moment(mechanism, name, mean)


def _mean(mechanism: Mechanism) -> arb:
    if isinstance(mechanism.source, Radial):
        return arb(0)  # of each coordinate
    return _integral(mechanism, mechanism.variable, "mean")


def _moment(mechanism: Mechanism, name: Size, mean: arb) -> float:
    if isinstance(mechanism.source, Radial):
        return _coordinate(mechanism, name)
    away = mechanism.variable - sp.Rational(float(mean.mid()))
    power = away**2 if name == "std" else sp.Abs(away)
    ball = _integral(mechanism, power, WORDS[name])
    with ctx.workprec(SUM_BITS):
        return float((ball.sqrt() if name == "std" else ball).mid())


def _coordinate(mechanism: Mechanism, name: Size) -> float:
    """Return the size of one coordinate of noise on vectors."""
    source = mechanism.source
    assert isinstance(source, Radial)
    length, _, _ = _length(mechanism)
    power = length.variable**2 if name == "std" else length.variable
    ball = _integral(length, power, WORDS[name])
    with ctx.workprec(SUM_BITS):
        d = arb(int(source.dimension))
        if name == "std":
            return float((ball / d).sqrt().mid())
        share_of_length = (d / 2).gamma() / ((d + 1) / 2).gamma() / arb.pi().sqrt()
        return float((ball * share_of_length).mid())


def _integral(mechanism: Mechanism, factor: sp.Expr, word: str) -> arb:
    """Enclose the mean of a function of the noise, to a double's accuracy."""
    noise = _added(mechanism)
    x = mechanism.variable
    if isinstance(noise, MassNoise):
        return _of_masses(noise, word)
    ends = mechanism.support.lower, mechanism.support.upper
    ball = _enclosed(factor * noise.density, x, ends)
    if ball is None:
        raise AccuracyError(
            f"{mechanism.summary}: no bound on the {word} of its noise was found; whether it is "
            "finite is open"
        )
    return ball


def _enclosed(density: sp.Expr, x: sp.Symbol, ends: tuple[sp.Expr, sp.Expr]) -> arb | None:
    """Enclose an integral or a sum to a double's accuracy, None where no bound is found."""
    tolerance = arb(2) ** -40
    for _ in range(_TRIES):
        with ctx.workprec(SUM_BITS):
            ball = enclose_mass(density, x, *ends, tolerance, Deadline(SOME_TIME, worked))
        if not ball.is_finite():
            return None
        if ball.rad() < 2.0**-56 * abs(ball) or ball.rad() < _RELATIVE:
            if ball.contains(0):
                return arb(0)
            return ball
        tolerance = min(tolerance, abs(ball).upper()) * _RELATIVE
    return None


def _of_masses(noise: MassNoise, word: str) -> arb:
    """Return the mean of noise whose masses are listed, of its square or its size, an exact sum."""
    if word == "mean":
        return arb(0)  # it is even
    total = noise.absolute_moment(2 if word == WORDS["std"] else 1)
    with ctx.workprec(SUM_BITS):
        return arb(fmpq(int(total.p), int(total.q)))


class NoiseLaw:
    """Cells of a noise's density, and how much of its mass lies below each.

    `error` bounds no more than what is seen: by how much all cells differ from mass 1.
    """

    def __init__(
        self, mechanism: Mechanism, density: Callable[[Array], Array] | None = None
    ) -> None:
        noise = noise_of(mechanism.require_concrete())
        self._density = density
        if isinstance(noise, MassNoise):
            self._list(noise)
        else:
            self._find(mechanism, noise)
        total = float(self.mass.sum())
        self.error = abs(total - 1.0)
        if not self.error < _LACKING:
            raise AccuracyError(
                f"{mechanism.summary}: the mass of its noise was not found (1 - {1 - total:.3g}), "
                "as where its tail is too heavy for doubles"
            )
        self.mass /= total
        self._below = np.concatenate([[0.0], np.cumsum(self.mass)])
        self._above = np.concatenate([[0.0], np.cumsum(self.mass[::-1])])  # cells from the last

    def _list(self, noise: MassNoise) -> None:
        """Take the masses that are listed, and those of a tail as far as they count."""
        self.is_whole = noise.cell is None
        half = np.asarray([float(mass) for mass in noise.masses])
        if noise.tail:
            log_ratio = math.log(float(noise.ratio))
            beyond = math.ceil(math.log(_LEAST) / log_ratio)
            if beyond > _MOST_WHOLE:
                raise AccuracyError(f"a tail of {beyond} numbers is too long to be summed")
            half = np.concatenate([half, half[-1] * np.exp(log_ratio * np.arange(1.0, beyond))])
        self.mass = np.concatenate([half[:0:-1], half])
        self.left = np.arange(1.0 - half.size, half.size)
        if noise.cell is not None:
            width = float(noise.cell)
            self.right = width * (self.left + 0.5)
            self.left = width * (self.left - 0.5)
            self._series = 0.5 * np.stack([self.mass, self.mass], axis=1)  # a line in each cell

    def _find(self, mechanism: Mechanism, noise: Noise) -> None:
        """Find the mass of cells of a density, or of single integers."""
        if self._density is None:
            self._density = compile_numpy(noise.density, [mechanism.variable])
        alone = replace(mechanism, sampling=None, relation=None)
        law = loss_law(alone, "remove")
        ends = [float(mechanism.support.lower), float(mechanism.support.upper)]
        seen = [anchor for outline in law.outlines for anchor in outline.anchors]
        marks = {0.0, *(mark for mark in (*seen, *ends) if math.isfinite(mark))}
        anchors = np.asarray(sorted(mark for mark in marks if ends[0] <= mark <= ends[1]))
        self.is_whole = mechanism.support.kind != "interval"
        if self.is_whole:
            self._sum(ends, float(anchors[0]), float(anchors[-1]))
        else:
            self._cut(ends, anchors)

    def _at(self, x: Array) -> Array:
        assert self._density is not None
        with np.errstate(all="ignore"):
            density = np.asarray(self._density(x), dtype=np.float64)
        return np.where(np.isfinite(density) & (density > 0.0), density, 0.0)

    def _sum(self, ends: list[float], low: float, high: float) -> None:
        """Take integers around the modes until what is beyond does not count."""
        reach = 64.0
        while True:
            first, last = max(ends[0], math.floor(low) - reach), min(ends[1], high + reach)
            self.left = np.arange(first, last + 1.0)
            self.mass = self._at(self.left)
            if self.mass.sum() > 1.0 - ROUNDED or self.left.size > _MOST_WHOLE:
                return
            reach *= 4.0

    def _cut(self, ends: list[float], anchors: Array) -> None:
        """Take cells around the anchors, halved until they are known."""
        away = np.exp2(np.arange(-_DEEPEST, _DEEPEST + 1.0))
        apart = np.concatenate([-away, [0.0], away])
        places = np.add.outer(apart, anchors).ravel()
        first, last = ends
        is_inside = (places >= first) & (places <= last)
        edges = np.unique(places[is_inside])
        low = edges[:-1]
        high = edges[1:]
        kept: list[tuple[Array, ...]] = []
        for depth in range(_HALVINGS):
            middle = 0.5 * low + 0.5 * high
            whole_cell, series = self._integral(low, high)
            left_half, _ = self._integral(low, middle)
            right_half, _ = self._integral(middle, high)
            halves = left_half + right_half
            allowed = MASS_ROUNDED * np.maximum(halves, _LEAST)
            done = np.abs(whole_cell - halves) <= allowed
            done |= (middle <= low) | (middle >= high)
            done |= depth == _HALVINGS - 1 or low.size > _MOST_CELLS
            kept.append((low[done], high[done], whole_cell[done], series[done]))
            parted = middle[~done]
            low = np.concatenate([low[~done], parted])
            high = np.concatenate([parted, high[~done]])
            if not low.size:
                break
        columns = [np.concatenate(column) for column in zip(*kept, strict=True)]
        order = np.argsort(columns[0])
        order = order[columns[2][order] > 0.0]
        self.left, self.right, self.mass, self._series = (values[order] for values in columns)

    def _integral(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the mass of cells, and the series of the mass below each of their places."""
        half = 0.5 * high - 0.5 * low
        middle = 0.5 * low + 0.5 * high
        x = middle[:, None] + half[:, None] * _PLACES
        heights = self._at(x) * half[:, None]
        series = heights @ _TO_SERIES.T
        below = chebyshev.chebint(series, lbnd=-1.0, axis=1)
        masses = np.asarray(below.sum(axis=1), dtype=np.float64)
        return np.maximum(masses, 0.0), below

    def quantile(self, p: Array) -> Array:
        """Return the least x with P(X ≤ x) ≥ p."""
        last = self.mass.size - 1
        upper_share = 1.0 - p
        low = np.clip(np.searchsorted(self._below, p, side="left") - 1, 0, last)
        high = np.clip(np.searchsorted(self._above, upper_share, side="right") - 1, 0, last)
        from_low = (p - self._below[low]) / self.mass[low]
        from_high = 1.0 - (upper_share - self._above[high]) / self.mass[last - high]
        is_low = p <= 0.5
        cell = np.where(is_low, low, last - high)
        if self.is_whole:
            return self.left[cell]
        share = np.clip(np.where(is_low, from_low, from_high), 0.0, 1.0)
        series = self._series[cell].T
        aim = share * series.sum(axis=0)
        low = np.full(p.size, -1.0)
        high = np.full(p.size, 1.0)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            is_below = chebyshev.chebval(middle, series, tensor=False) < aim
            low = np.where(is_below, middle, low)
            high = np.where(is_below, high, middle)
        from_right = 0.5 - 0.5 * high
        from_left = 0.5 + 0.5 * high
        return np.asarray(self.left[cell] * from_right + self.right[cell] * from_left)


@lru_cache(maxsize=16)
def _law(mechanism: Mechanism) -> NoiseLaw:
    return NoiseLaw(mechanism)


@in_turn
def quantile(mechanism: Mechanism, p: Any) -> Any:
    """Return the least x with P(noise ≤ x) ≥ p, see `Mechanism.quantile`."""
    shares = np.asarray(p, dtype=np.float64)
    if not ((shares >= _LEAST_SHARE) & (shares < 1.0)).all():
        raise InputError(f"p = {p!r:.40}: it must lie between {_LEAST_SHARE:g} and 1")
    quantiles = _law(a_mechanism(mechanism)).quantile(shares.ravel()).reshape(shares.shape)
    if shares.ndim == 0:
        return float(quantiles)
    return quantiles


@in_turn
def sample(
    mechanism: Mechanism, size: int, rng: np.random.Generator | int | None = None
) -> Array | NDArray[np.int64]:
    """Return independent values of the noise, see `Mechanism.sample`."""
    generator = np.random.default_rng(rng)
    uniform = np.maximum(generator.random(whole(size, "size")), _LEAST_SHARE)
    noise = a_mechanism(mechanism)
    if isinstance(noise.source, Radial):
        lengths = _law_of_length(noise.require_concrete()).quantile(uniform)
        normal = generator.standard_normal((uniform.size, int(noise.source.dimension)))
        directions = normal / np.linalg.norm(normal, axis=1, keepdims=True)
        return np.asarray(lengths[:, None] * directions)
    values = _law(noise).quantile(uniform)
    is_in_cells = getattr(noise.source, "cell", None) is not None
    is_whole = noise.support.kind != "interval" and not is_in_cells
    if is_whole and np.all(np.abs(values) < _LARGEST_INT):
        return values.astype(np.int64)
    return values


def shown_range(mechanism: Mechanism) -> tuple[float, float]:
    """Return between which places a figure of one step's pair is drawn.

    Of noise from a half percent below to as much above, moved by its shift; of noise on vectors
    along the line through both centres; of other pairs a finite support. InputError where there is
    neither.
    """
    source = mechanism.source
    support = mechanism.support
    if isinstance(source, Radial):
        farthest = float(_law_of_length(mechanism).quantile(np.asarray([_DRAWN[1]]))[0])
        return -farthest, farthest + float(source.sensitivity)
    ends = float(support.lower), float(support.upper)
    if isinstance(source, Noise | MassNoise):
        low, high = quantile(mechanism, _DRAWN)
        return max(low, ends[0]), high + float(source.sensitivity)
    if support.points or all(map(math.isfinite, ends)):
        return ends
    raise InputError(f"{mechanism.name} is no noise, and its support has no ends to draw between")
