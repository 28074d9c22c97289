"""How large a noise is, and noises of one size side by side.

Utility asks for the size of what is added, E(X − EX)² or E|X − EX|, whatever the privacy. Both are
integrals, or sums over integers, of the density that was written: balls enclose them, so that a
moment that is infinite, or not shown to be finite, has no number here. A mechanism with one
parameter left open gets the value at which its noise has the size that was asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import sympy as sp
from flint import arb, ctx

from symdp.arguments import real, share
from symdp.balls.mass import enclose_mass
from symdp.errors import AccuracyError, InputError, at
from symdp.interrupt import Deadline, worked
from symdp.model.mechanism import Mechanism, a_mechanism
from symdp.model.sampling import Noise, exact
from symdp.questions.calibrate import decimal
from symdp.questions.composition import Composition, compose
from symdp.questions.invert import bracketed_root
from symdp.questions.tradeoff import membership_advantage, trade_off
from symdp.turns import in_turn

if TYPE_CHECKING:
    from symdp.model.sampling import Number
    from symdp.questions.guarantee import Guarantee

Size = Literal["std", "mean_abs"]
WORDS = {"std": "standard deviation", "mean_abs": "mean absolute deviation"}
ALPHA = 0.05  # the false positive rate of the attacks that are compared
_SECONDS, _TRIES = 4.0, 4  # of work for one moment, and at how many accuracies
_BITS = 160  # carried by the balls of a moment
_RELATIVE = arb(2) ** -64  # of a moment: far below the rounding of doubles
_STEP, _FARTHEST = 2.0, 25.0  # of the logarithm of a value, or the log odds of a share
_DIGITS = 12  # significant, of a value that is looked for


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
    `guarantee` is ε at the δ that was asked for, `delta` the upper end of δ at the least ε of all
    that are compared. The best attack's true positive rate exceeds its false positive rate by
    `advantage`; `miss_rate` is the least at false positive rate 0.05.
    """

    mechanism: Mechanism
    values: dict[str, str]
    size: NoiseSize
    guarantee: Guarantee
    delta: float
    advantage: float
    miss_rate: float

    def __repr__(self) -> str:
        return f"<Compared {self.mechanism.summary}, std {self.size.std:.6g}: {self.guarantee}>"

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON values: the guarantee's keys, and what stands beside them."""
        own = {"mechanism": self.mechanism.name, "values": self.values, **self.size._asdict()}
        also = {"delta_at_least_epsilon": self.delta, "advantage": self.advantage}
        return {**own, **self.guarantee.to_json(), **also, "miss_rate": self.miss_rate}


@in_turn
def compare(
    noises: Sequence[Mechanism],
    count: int = 1,
    *,
    delta: float,
    std: Number | None = None,
    mean_abs: Number | None = None,
) -> tuple[Compared, ...]:
    """Return noises of one size side by side, what is most private first.

    A mechanism with one parameter without a value gets the one at which its noise has the size
    that was asked for, to eleven digits; one with values for all keeps them, and shows its size.

    Parameters
    ----------
    noises : mechanisms that add noise; sampled ones are accounted with their sampling
    count : the number of releases
    delta : δ of the ε that is compared, in (0, 1)
    std, mean_abs : the standard deviation or E|X − EX| of the noise, one of them, above 0

    Examples
    --------
    >>> from symdp import mechanisms
    >>> rows = compare([mechanisms.laplace, mechanisms.gaussian], 50, delta=1e-5, std=20)
    >>> [(row.mechanism.name, round(row.guarantee.epsilon, 6)) for row in rows]
    [('gaussian', 1.356467), ('laplace', 1.913757)]
    """
    if (std is None) == (mean_abs is None):
        raise InputError("give the size of the noise: std or mean_abs, one of them")
    share(delta, "delta")
    asked: Size = "std" if std is not None else "mean_abs"
    given = std if std is not None else mean_abs
    size = real(given, WORDS[asked])
    if size <= 0:
        raise InputError(f"{WORDS[asked]} {given}: it must be positive")
    made = [_of_size(a_mechanism(one), asked, size) for one in noises]
    rows = []
    for one in made:
        with at(one.summary):
            steps = compose(one, count)
            rows.append((one, steps, steps.epsilon(delta)))
    rows.sort(key=lambda row: row[2].epsilon)
    return tuple(_row(*row, rows[0][2].epsilon) for row in rows)


def _row(mechanism: Mechanism, steps: Composition, answer: Guarantee, least: float) -> Compared:
    return Compared(
        mechanism,
        {name: decimal(value) for name, value in mechanism.bound},
        noise_size(mechanism),
        answer,
        steps.delta(least).end,
        membership_advantage(steps),
        float(trade_off(steps, ALPHA)),
    )


def _of_size(mechanism: Mechanism, asked: Size, size: float) -> Mechanism:
    """Return a mechanism with the value of its one open parameter that gives a size."""
    if mechanism.is_concrete:
        noise_of(mechanism)
        return mechanism
    name, *more = mechanism.parameters
    if more:
        few = ", ".join([name, *more])
        raise InputError(f"{mechanism.name}: give values for all but one of {few}")

    is_share = any(one.name == name and one.bounds[1] == 1 for one in mechanism.declared)

    def value(place: float) -> sp.Rational:
        found = 1.0 / (1.0 + math.exp(-place)) if is_share else math.exp(place)
        return exact(f"{found:.{_DIGITS}g}")

    def excess(place: float) -> float:
        tried = mechanism(**{name: value(place)})
        return math.log(_moment(tried, asked, _mean(tried)) / size)

    nothing = f"{mechanism.name}: no {name} was found of which the {WORDS[asked]} is {size:g}"
    found = bracketed_root(excess, *_around(excess, nothing), absolute=1e-13)
    return mechanism(**{name: value(found)})


def _around(excess: Callable[[float], float], nothing: str) -> tuple[float, float]:
    """Return two places, the size too small at one of them and too large at the other."""
    first, place = excess(0.0), _STEP
    while place < _FARTHEST:
        for side in (place, -place):
            if (excess(side) > 0) != (first > 0):
                near = side - math.copysign(_STEP, side)
                return min(near, side), max(near, side)
        place += _STEP
    raise InputError(nothing)


def noise_of(mechanism: Mechanism) -> Noise:
    """Return the additive noise of a mechanism; InputError where it has none."""
    source = mechanism.source
    if not isinstance(source, Noise):
        kind = "noise on vectors" if not mechanism.is_given else "no additive noise"
        raise InputError(
            f"{mechanism.name} is {kind}: size, quantiles and values are those of noise on a line"
        )
    return source


@in_turn
def moment(mechanism: Mechanism, name: Literal["mean", "std", "mean_abs"]) -> float:
    """Return one number of `NoiseSize`: it may exist where another one is infinite."""
    mean = _mean(a_mechanism(mechanism).require_concrete())
    return float(mean.mid()) if name == "mean" else _moment(mechanism, name, mean)


def _mean(mechanism: Mechanism) -> arb:
    return _integral(mechanism, mechanism.variable, "mean")


def _moment(mechanism: Mechanism, name: Size, mean: arb) -> float:
    away = mechanism.variable - sp.Rational(float(mean.mid()))
    power = away**2 if name == "std" else sp.Abs(away)
    found = _integral(mechanism, power, WORDS[name])
    with ctx.workprec(_BITS):
        return float((found.sqrt() if name == "std" else found).mid())


def _integral(mechanism: Mechanism, factor: sp.Expr, word: str) -> arb:
    """Enclose the mean of a function of the noise, to a double's accuracy."""
    density, x = factor * noise_of(mechanism).density, mechanism.variable
    ends, tolerance = (mechanism.support.lower, mechanism.support.upper), arb(2) ** -40
    for _ in range(_TRIES):
        with ctx.workprec(_BITS):
            found = enclose_mass(density, x, *ends, tolerance, Deadline(_SECONDS, worked))
        if not found.is_finite():
            break
        if found.rad() < 2.0**-56 * abs(found) or found.rad() < _RELATIVE:
            return arb(0) if found.contains(0) else found
        tolerance = min(tolerance, abs(found).upper()) * _RELATIVE
    raise AccuracyError(
        f"{mechanism.summary}: no bound on the {word} of its noise was found, as where a heavy "
        "tail makes it infinite"
    )
