r"""Derivatives of ε(δ) and of δ(ε) in every parameter of every step.

By the envelope theorem the best set of outputs stands still while a parameter θ moves, so that no
derivative of the privacy loss is needed: on the line Re z = t > 0 of the contour formula

.. math::

    \frac{∂δ}{∂θ} = \frac{1}{2πi} \int e^{K(z) - εz} \frac{n ∂_θ K_1(z)}{z(1 + z)} dz, \qquad
    ∂_θ K_1(z) = \frac{1}{M(z)} \int P^{1+z} Q^{-z} ((1 + z) ∂_θ \log P - z ∂_θ \log Q) dx,

∂ log P and ∂ log Q by SymPy: one more sum over the nodes of the line and of the loss that are
there. A count is a real number: ∂K/∂n is K_1. ε moves by dε = −dδ / (∂δ/∂ε).

**What is checked.** ∂_θ K_1 at two places of the line is compared with differences of K_1 at nearby
values of θ, by laws of their own: what jumps where θ moves it has terms that the integral above
does not have. Where they differ, where the line is long or atoms keep it from ending, or where no
formula is there, the derivative is that of δ at six nearby values of θ, and `by` says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import sympy as sp

from symdp.arguments import silent
from symdp.emit.numpy import compile_numpy
from symdp.errors import AccuracyError, InputError
from symdp.model.sampling import Noise, Radial, declare, exact
from symdp.numeric.contour import SlowNodes
from symdp.numeric.laws.of_mechanism import loss_law
from symdp.numeric.line import Line, line_tilt, plain_sum
from symdp.numeric.panels import gauss_legendre
from symdp.numeric.saddle_point import Strip
from symdp.numeric.total import SumLaw
from symdp.questions.composition import Composition
from symdp.questions.steps.accounted import direction_of
from symdp.tolerances import SAME

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from symdp.arguments import Direction
    from symdp.model.mechanism import Mechanism
    from symdp.questions.guarantee import Guarantee

    Array = NDArray[Any]

By = Literal["line", "differences"]
RATE = "rate"
SENSITIVITY = "sensitivity"
COUNT = "n"
_BESIDE = 5e-4  # relative: of the nearest values of θ at which answers are compared
_CLOSE = 1e-5  # relative: of those where answers further away disagree
_APART = 2e-5  # relative: of values of θ between which K is compared
_AGREES = 1e-6  # relative, of ∂K and its difference
_NOTHING = 1e-18  # of the largest value of a line: smaller ones at its end add nothing
_ROUNDED = 4e-13  # relative, of an answer
_MOST_TERMS = 1 << 22  # of a sum on the line: a quarter of a second


@dataclass(frozen=True)
class Slope:
    """The derivative of ε or of δ in one parameter of one step."""

    step: str
    parameter: str
    value: float  # of the parameter
    derivative: float
    error: float  # an estimate of how far off it is
    by: By  # "line": as a sum on the contour; "differences": of answers at nearby values

    def to_json(self) -> dict[str, Any]:
        """Return the slope as JSON values; the number of steps has the name of the command line."""
        parameter = "count" if self.parameter == COUNT else self.parameter
        return dict(vars(self)) | {"parameter": parameter}


@dataclass(frozen=True)
class Gradient:
    """Derivatives of an answer, of the direction with the larger δ or ε.

    `other` holds those of the other direction where both have the same answer but other laws: the
    larger of two is then no smooth function, and each side has a derivative of its own.
    """

    answer: Guarantee
    quantity: Literal["epsilon", "delta"]  # what is derived
    direction: str
    slopes: tuple[Slope, ...]
    other: tuple[Slope, ...] = field(default=())

    def __getitem__(self, parameter: str) -> Slope:
        """Return the slope of a parameter, the first where several steps have it."""
        for slope in self.slopes:
            if slope.parameter == parameter:
                return slope
        names = ", ".join(dict.fromkeys(slope.parameter for slope in self.slopes))
        raise InputError(f"no derivative in {parameter!r:.60}; there are {names}")

    def to_json(self) -> dict[str, Any]:
        """Return the derivatives as JSON values."""
        return {
            "epsilon": self.answer.epsilon,
            "delta": self.answer.delta,
            "of": self.quantity,
            "direction": self.direction,
            "slopes": [slope.to_json() for slope in self.slopes],
            "other_direction": [slope.to_json() for slope in self.other],
        }

    def __repr__(self) -> str:
        listed = ", ".join(f"{slope.parameter}: {slope.derivative:.9g}" for slope in self.slopes)
        return f"<Gradient of {self.quantity}, {self.direction}: {listed}>"


def gradient(
    composition: Composition,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    direction: Direction = "both",
    progress: Callable[[str], None] | None = None,
) -> Gradient:
    """Return ∂ε/∂θ at a δ, or ∂δ/∂θ at an ε, for every parameter θ of every step.

    Parameters
    ----------
    epsilon, delta : where; ε at δ is derived, or δ at ε
    direction : "remove", "add", or "both": the direction of the larger one
    progress : called before each derivative that takes six answers at nearby values, each as long
        as this answer, in place of a sum on the contour

    Examples
    --------
    For normal noise ε depends on √n/σ alone, so that σ ∂ε/∂σ = −2n ∂ε/∂n.

    >>> import symdp
    >>> found = gradient(symdp.compose(symdp.mechanisms.gaussian(sigma=2), 100), delta=1e-5)
    >>> print(f"{found['sigma'].derivative:.6f} {found['n'].derivative:.6f}")
    -23.069741 0.230697
    """
    if (epsilon is None) == (delta is None):
        raise InputError("give epsilon, for the derivatives of δ, or delta, for those of ε")
    if progress is None:
        progress = silent
    asked: Literal["epsilon", "delta"] = "delta" if delta is None else "epsilon"
    at = epsilon if delta is None else delta
    ask: Callable[..., Guarantee] = getattr(composition, asked)
    answers = {side: ask(at, direction=side) for side in _directions(composition, direction)}
    larger = max(answers, key=lambda side: float(getattr(answers[side], asked)))
    answer = answers[larger]
    if asked == "epsilon" and not answer.epsilon > 0.0:
        raise InputError(f"epsilon is 0 at delta = {delta!r:.30}: nothing moves it")
    slopes = tuple(_slopes(composition, answer, asked, larger, progress))
    other: tuple[Slope, ...] = ()
    for side, second in answers.items():
        apart = abs(float(getattr(second, asked)) / float(getattr(answer, asked)) - 1.0)
        if side != larger and apart < SAME:
            second_slopes = tuple(_slopes(composition, second, asked, side, progress))
            if any(map(_differ, slopes, second_slopes)):
                other = second_slopes
    return Gradient(answer, asked, larger, slopes, other)


def _differ(one: Slope, other: Slope) -> bool:
    """Whether two slopes are apart by more than their errors."""
    errors = one.error + other.error + _AGREES * abs(one.derivative)
    return abs(one.derivative - other.derivative) > errors


def _directions(composition: Composition, direction: str) -> tuple[Direction, ...]:
    """Return the directions that have a law of their own."""
    if direction != "both":
        return (cast("Direction", direction),)
    if composition.accounted.has_one_law:
        return ("remove",)
    return ("remove", "add")


def _slopes(
    composition: Composition,
    answer: Guarantee,
    asked: str,
    direction: Direction,
    progress: Callable[[str], None],
) -> Iterator[Slope]:
    """Yield the slopes of all parameters in one direction."""
    steps = composition.accounted.given
    line = _line_of(composition, answer, direction)
    nearby = _Nearby(composition, answer, direction)
    for number, (mechanism, count) in enumerate(steps):
        for axis in _axes(mechanism):
            slope = None
            if line is not None:
                slope = _on_line(line, axis, mechanism, count, asked)
            if slope is None:
                progress(f"six answers for the derivative in {axis.name}")
                slope = nearby.slope(number, axis, asked)
            yield replace(slope, step=mechanism.summary)
        by_count = _of_count(nearby, number, line, asked)
        yield replace(by_count, step=mechanism.summary)


@dataclass(frozen=True)
class _Ended:
    """A line whose values died out, at one ε, and the values of the integrand on it."""

    line: Line
    direction: str
    scale: float  # δ of the answer
    places: Array  # z
    terms: Array  # of the sum, turned to ε

    def mean(self, factor: Array) -> float:
        """Return the integral with a factor in the integrand, over the integral."""
        return plain_sum((self.terms * factor).real) / plain_sum(self.terms.real)

    def derivative(self, factor: Array, asked: str) -> float:
        """Return ∂δ, or ∂ε, of which the integrand's logarithm has the derivative `factor`."""
        rise = self.mean(factor)
        if asked == "delta":
            return self.scale * rise
        return rise / self.mean(self.places)


def _line_of(composition: Composition, answer: Guarantee, direction: str) -> _Ended | None:
    """Return the line of an answer's ε, None where it does not end or is not all of δ."""
    steps = composition.accounted.steps
    if composition.accounted.lowered or steps != composition.accounted.given:
        return None  # the pair of all shifts is made of the parameters in another way
    law = SumLaw([(loss_law(step, direction), count) for step, count in steps], direction)
    if law.has_atoms or law.mass_at_infinity > 0.0 or not law.domain[1] > 0.0:
        return None
    line: Line | None = None
    with suppress(AccuracyError):
        tilt = line_tilt(law, answer.epsilon, Strip.RIGHT)
        line = SlowNodes(law, answer.epsilon, tilt, 0.0).plain
    if line is None:
        return None
    log_value = line.value(answer.epsilon).log_value
    if not abs(log_value - answer.log_delta) < SAME:
        return None
    sizes = np.abs(line.values)
    not_nothing = np.flatnonzero(sizes > _NOTHING * sizes.max())
    kept = int(not_nothing[-1]) + 1
    line = line.up_to(kept)
    nodes = sum(part.points for part in law.tilted(line.tilt, float(line.places[-1])))
    if nodes * line.places.size > _MOST_TERMS:
        return None  # the line of few steps is long, and differences of answers are soon had
    turns = np.exp(1j * (line.distance(answer.epsilon) + line.shift) * line.places)
    places = line.tilt + 1j * line.places
    return _Ended(line, direction, math.exp(log_value), places, line.values * turns)


@dataclass(frozen=True)
class _Axis:
    """A parameter of a step, its value, and the step with a symbol or a value in its place."""

    name: str
    value: sp.Expr
    symbol: sp.Symbol
    at: Callable[[sp.Expr], Mechanism]


def _axes(mechanism: Mechanism) -> Iterator[_Axis]:
    """Yield the real parameters of a step: those of its density, its rate, its sensitivity."""
    template = mechanism.template
    sampling = mechanism.sampling
    bound = dict(mechanism.bound)
    if template is not None:
        for parameter in template.declared:
            if parameter.symbol.is_integer or parameter.name not in bound:
                continue

            def with_value(value: sp.Expr, name: str = parameter.name) -> Mechanism:
                assert template is not None
                others = {key: bound[key] for key in bound if key in template.parameters}
                if value.free_symbols:
                    others.pop(name)
                else:
                    others[name] = value
                return replace(template(**others), sampling=sampling, relation=mechanism.relation)

            yield _Axis(parameter.name, bound[parameter.name], parameter.symbol, with_value)
    if sampling is not None and sampling.rate.is_number and 0 < sampling.rate < 1:

        def with_rate(rate: sp.Expr) -> Mechanism:
            sampled = replace(mechanism, sampling=replace(sampling, rate=rate))
            if not rate.free_symbols:
                return sampled
            declared = (*mechanism.declared, declare(str(rate), "probability"))
            return replace(sampled, declared=declared, template=None)

        yield _Axis(RATE, sampling.rate, declare("rate_", "probability").symbol, with_rate)
    size = getattr(mechanism.source, "sensitivity", None)
    is_real = mechanism.support.kind == "interval" and isinstance(mechanism.source, Noise | Radial)
    if is_real and size is not None and size.is_number:

        def with_size(size: sp.Expr) -> Mechanism:
            free = (declare(str(size), "positive"),) if size.free_symbols else ()
            source = cast("Noise", mechanism.source).on(size)
            declared = (*mechanism.declared, *free)
            return replace(mechanism, source=source, declared=declared, template=None)

        symbol = declare("sensitivity_", "positive").symbol
        yield _Axis(SENSITIVITY, size, symbol, with_size)


def _on_line(
    ended: _Ended, axis: _Axis, mechanism: Mechanism, count: int, asked: str
) -> Slope | None:
    """Return a slope as a sum on the line, None where checks do not bear it out."""
    slopes = None
    with suppress(InputError, AccuracyError, NotImplementedError, AttributeError, TypeError):
        slopes = _Slopes(axis, mechanism, ended)
    if slopes is None:
        return None
    off = slopes.disagreement()
    if not off < _AGREES:
        return None
    derivative = ended.derivative(count * slopes.at(ended.places), asked)
    error = (off + _ROUNDED) * abs(derivative)
    return Slope("", axis.name, float(axis.value), derivative, error, "line")


class _Slopes:
    """∂_θ K of one step, from ∂ log P and ∂ log Q at the nodes of its loss."""

    def __init__(self, axis: _Axis, mechanism: Mechanism, ended: _Ended) -> None:
        self._axis = axis
        self._ended = ended
        self._law = loss_law(mechanism, ended.direction)
        pair = axis.at(axis.symbol).pair(direction_of(ended.direction))
        x = pair.variable
        at_value = {axis.symbol: axis.value}
        parts = []
        for law in (pair.P, pair.Q):
            density = cast("sp.Expr", law)
            moved = sp.diff(density, axis.symbol).subs(at_value)
            parts += [compile_numpy(density.subs(at_value), [x]), compile_numpy(moved, [x])]
        frequency = float(ended.line.places[-1])
        nodes = self._law.nodes(ended.line.tilt, frequency)
        columns = []
        for piece, lower, upper in nodes.panels:
            places, weights = gauss_legendre(lower, upper)
            at = places.ravel()
            log_p, _, loss = piece.values(at)
            with np.errstate(all="ignore"):
                p, dp, q, dq = (np.broadcast_to(part(at), at.shape) for part in parts)
                by_p = np.where(p > 0.0, dp / p, 0.0)
                by_q = np.where(q > 0.0, dq / q, 0.0)
            size = np.log(weights.ravel()) + log_p
            columns.append(np.stack([size, loss, by_p, by_q]))
        self._log_weight, self._loss, self._by_p, self._by_q = np.concatenate(columns, axis=1)
        for values in (self._by_p, self._by_q):
            values[~np.isfinite(values)] = 0.0

    def at(self, places: Array) -> Array:
        """Return ∂_θ K at complex places z."""
        slopes = []
        for z in np.atleast_1d(places):
            exponent = self._log_weight + z * self._loss
            terms = np.exp(exponent - exponent.real.max())
            moved = terms @ ((1.0 + z) * self._by_p - z * self._by_q)
            slopes.append(moved / terms.sum())
        return np.asarray(slopes)

    def disagreement(self) -> float:
        """Return how far ∂K at two places is off differences of K, relative to its size."""
        tilt = self._ended.line.tilt
        heights = np.asarray([0.0, self._law.tilted(tilt).variance ** -0.5])
        width = exact(f"{_APART * abs(float(self._axis.value)):.6g}")
        quotients = []
        for distance in (width, 2 * width):
            ends = []
            for value in (self._axis.value + distance, self._axis.value - distance):
                law = SumLaw([(loss_law(self._axis.at(value), self._ended.direction), 1)])
                ends.append(law.cgf(tilt) + law.cgf_line(tilt, heights))
            quotients.append((ends[0] - ends[1]) / (2.0 * float(distance)))
        differences = (4.0 * quotients[0] - quotients[1]) / 3.0
        slopes = self.at(tilt + 1j * heights)
        size = float(np.abs(differences).max())
        if size == 0.0:
            return math.inf
        return float(np.abs(slopes - differences).max()) / size


def _of_count(nearby: _Nearby, number: int, ended: _Ended | None, asked: str) -> Slope:
    """Return the slope in a count as a real number, or what one more step adds."""
    mechanism, count = nearby.steps[number]
    if ended is not None:
        law = SumLaw([(loss_law(mechanism, nearby.direction), 1)])
        factor = law.cgf(ended.line.tilt) + law.cgf_line(ended.line.tilt, ended.line.places)
        derivative = ended.derivative(factor, asked)
        error = 1e-9 * abs(derivative)
        return Slope("", COUNT, float(count), derivative, error, "line")
    return nearby.slope_in_count(number, asked)


@dataclass(frozen=True)
class _Nearby:
    """Answers beside an answer: at other ε, or of a step at other values of its parameters.

    ∂ε/∂θ at a δ is −∂δ/∂θ over ∂δ/∂ε at that ε: δ is one sum where ε is a search. Where δ has a
    kink at that ε, as at a loss that is an atom, differences of ε are taken.
    """

    composition: Composition
    answer: Guarantee
    direction: Direction

    @property
    def steps(self) -> tuple[tuple[Mechanism, int], ...]:
        return self.composition.accounted.given

    def slope(self, number: int, axis: _Axis, asked: str) -> Slope:
        """Return a slope from answers at six values around a parameter's, or at six nearer ones."""
        wide = self._slope_within(_BESIDE, number, axis, asked)
        if wide.error <= _AGREES * abs(wide.derivative):
            return wide
        near = self._slope_within(_CLOSE, number, axis, asked)  # there may be a kink in between
        return min(wide, near, key=lambda slope: slope.error)

    def _slope_within(self, share: float, number: int, axis: _Axis, asked: str) -> Slope:
        _, count = self.steps[number]
        width = exact(f"{share * abs(float(axis.value)):.6g}")

        def answered(by: int) -> float:
            composition = self._with(number, axis.at(axis.value + by * width), count)
            if self._quantity(asked) == "epsilon":
                return self._epsilon_at(composition)
            return self._delta_at(composition, self.answer.epsilon)

        size = float(getattr(self.answer, self._quantity(asked)))
        rise, off = _difference(answered, float(width), size)
        derivative, error = self._of(rise, off, asked)
        return Slope("", axis.name, float(axis.value), derivative, error, "differences")

    def slope_in_count(self, number: int, asked: str) -> Slope:
        """Return a slope from answers at nearby counts, far apart: of ε, or of log δ."""
        mechanism, count = self.steps[number]
        scale = 1.0 if asked == "epsilon" else self.answer.delta

        def moved(by: int) -> float:
            composition = self._with(number, mechanism, count + by)
            if asked == "epsilon":
                return self._epsilon_at(composition)
            value = self._delta_at(composition, self.answer.epsilon)
            if value > 0.0:
                return math.log(value)
            return -math.inf

        first = moved(0)
        second = moved(1)
        third = moved(2)
        near = second - first
        bent = third - first - 2.0 * near
        rise = near - 0.5 * bent
        error = abs(bent)
        if count > 2 and math.isfinite(fewest := moved(-2)):
            near = 0.5 * (second - moved(-1))
            far = 0.25 * (third - fewest)
            rise = (4.0 * near - far) / 3.0
            error = abs(rise - near)
        return Slope("", COUNT, float(count), scale * rise, scale * error, "differences")

    def _quantity(self, asked: str) -> Literal["epsilon", "delta"]:
        """Of what differences are taken."""
        if asked == "epsilon" and self._by_epsilon is None:
            return "epsilon"
        return "delta"

    def _of(self, rise: float, error: float, asked: str) -> tuple[float, float]:
        """Return the derivative of what is asked and its error from those of what is derived."""
        if asked == "delta" or self._by_epsilon is None:
            return rise, error
        fall, off = self._by_epsilon
        derivative = -rise / fall
        return derivative, error / abs(fall) + abs(derivative) * off

    def _with(self, number: int, mechanism: Mechanism, count: int) -> Composition:
        """Return the composition with other steps in place of those of a number."""
        steps = list(self.steps)
        steps[number] = (mechanism, count)
        return Composition(steps)

    def _epsilon_at(self, composition: Composition) -> float:
        answer = composition.epsilon(self.answer.delta, direction=self.direction)
        return float(answer.epsilon)

    def _delta_at(self, composition: Composition, epsilon: float) -> float:
        answer = composition.delta(epsilon, direction=self.direction)
        return float(answer.delta)

    @cached_property
    def _by_epsilon(self) -> tuple[float, float] | None:
        """∂δ/∂ε and how far it may be off, relative to it; None where δ has a kink."""
        epsilon = self.answer.epsilon
        width = _BESIDE * epsilon

        def answered(by: int) -> float:
            return self._delta_at(self.composition, epsilon + by * width)

        fall, error = _difference(answered, width, self.answer.delta)
        size = abs(fall)
        if error < _AGREES * size:
            return fall, error / size
        return None


def _difference(answered: Callable[[int], float], width: float, size: float) -> tuple[float, float]:
    """Return a derivative, exact to fourth order, from answers so many widths away, and its error.

    Where there is a kink in between, the differences over other widths differ by its size.
    """

    def quotient(by: int) -> float:
        rise = answered(by) - answered(-by)
        return rise / (2.0 * by * width)

    near = quotient(1)
    middle = quotient(2)
    far = quotient(4)
    derivative = (4.0 * near - middle) / 3.0
    wider = (4.0 * middle - far) / 3.0
    rounding = 2.0 * _ROUNDED * size / width
    return derivative, abs(wider - derivative) + rounding
