"""Where noise of least ε is looked for: whole numbers, or cells of the reals, and their costs.

**Cells.** On the reals the density is constant in cells of width w = D/m around 0, ±w, ±2w, …, so
that the largest shift D moves cells onto cells. Why no spline, and no slopes within a cell?
The best noise of one step has just this form: a staircase. Its loss is a finite list, so that
every ε is a sum and every proof short; masses are rationals, and exact sampling takes whole numbers
and random bits. What it costs is known: noise of cells has w²/12 more variance than noise on the
lattice of the same ε, which is 1e-5 of it at σ = 8w.

**Tails.** Beyond the last mass that is listed the logarithm falls by one number from each value to
the next. The search sums so many of these masses that what is left out cannot be seen.

A vector of falls θ_k ≥ 0 of log p becomes a noise of the cost C: its logarithms are multiplied by
one number, which keeps tails geometric; on a bounded support, where no multiple may do, βc(x) is
added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import sympy as sp

from symdp.arguments import checked_count, real, share
from symdp.emit.numpy import compile_numpy
from symdp.errors import InputError, at
from symdp.model.reading.parser import parse
from symdp.model.sampling import exact, variable_symbol
from symdp.questions.design.loss_sum import Slope, epsilon_slope

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from symdp.model.sampling import Number

    Array = NDArray[Any]

Where = Literal["integers", "reals"]
UNREACHABLE = 1e3  # stands for an ε that no finite one meets
NEGLIGIBLE = 1e-8  # of δ/n: masses below are cut off
_LISTED_DOWN_TO = 1e-2  # of δ/n, of Laplace noise: masses beyond are a geometric tail
_MOST_LISTED = 4_999  # masses of a file, besides that of 0
_MOST_CELLS = 16  # in one sensitivity
_CELLS = 600  # to one side of 0, about so many at most
_LARGEST_SHIFT = 200  # of noise with tails, in cells
_UNDER = 2e-8  # of a cost: what a tail and decimals may add
_BISECTIONS = 100  # of a scale or a tilt
_FARTHEST = 40.0  # standard deviations of normal noise that its cost is summed over
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_NAMED = "x"  # the noise, in a formula of its cost
# The logarithm of the densities that a design is compared with, at one scale.
SHAPES: dict[str, Callable[[Array, float], Array]] = {
    "Gaussian": lambda values, scale: -((values / scale) ** 2) / 2.0,
    "Laplace": lambda values, scale: -values / scale,
}


@dataclass(frozen=True)
class Grid:
    """What is asked, and the values, 0 and above, at which masses are looked for."""

    count: int
    delta: float
    cost: str
    where: Where
    width: sp.Expr  # of a cell; 1 on the integers
    values: Array  # 0, w, 2w, …
    costs: Array  # of each, the mean over a cell
    most: float
    shift: int
    rate: float
    exact_rate: sp.Expr
    is_bounded: bool
    listed: int  # the number of the last value whose mass is listed

    @property
    def one_step(self) -> Grid:
        """The same question of one step, at an equal part of δ."""
        return replace(self, count=1, delta=self.delta / self.count)

    @property
    def twice(self) -> Array:
        """How many values share a mass."""
        weights = np.full(self.values.size, 2.0)
        weights[0] = 1.0
        return weights

    def normalized(self, logs: Array) -> Array:
        """Return masses that are proportional to exp of these logarithms."""
        masses = np.exp(logs - logs.max())
        return np.asarray(masses / (self.twice @ masses))

    def mean_cost(self, masses: Array) -> float:
        """Return E c(X)."""
        return float((self.twice * masses) @ self.costs)

    def scale(self, name: str) -> float:
        """Return the scale at which noise of a family on these values has the cost."""
        logs = SHAPES[name]
        return _scale(lambda s: self.mean_cost(self.normalized(logs(self.values, s))), self.most)

    def shape(self, name: str) -> Array:
        """Return the masses of noise of a family that has the cost."""
        return self.normalized(SHAPES[name](self.values, self.scale(name)))

    def logs(self, falls: Array) -> Array:
        """Return logarithms that fall so, those of a tail like the last."""
        beyond = self.values.size - 1 - falls.size
        full = np.concatenate([falls, np.full(beyond, falls[-1])])
        return -np.concatenate([[0.0], np.cumsum(full)])

    def by_falls(self, by_logs: Array, falls: int) -> Array:
        """Return slopes in the falls from those in the logarithms."""
        full = -np.cumsum(by_logs[::-1])[::-1][1:]
        return np.concatenate([full[: falls - 1], [full[falls - 1 :].sum()]])

    def at_cost(self, logs: Array) -> tuple[Array, Array, float]:
        """Return masses of the cost, the way to keep it, and by how much logarithms are multiplied.

        Where logarithms move, moves along the way hold the cost.
        """
        if self.is_bounded:
            scale = max(self.most, 1e-300)
            tilt = _scaled_down(
                lambda beta: self.mean_cost(self.normalized(logs - beta * self.costs)),
                self.most, -50.0 / scale, 50.0 / scale,
            )  # fmt: skip
            return self.normalized(logs - tilt * self.costs), self.costs, 1.0
        log_factor = _scaled_down(
            lambda log: self.mean_cost(self.normalized(math.exp(log) * logs)),
            self.most, -20.0, 20.0,
        )  # fmt: skip
        factor = math.exp(log_factor)
        return self.normalized(factor * logs), logs, factor

    def slopes(self, masses: Array) -> tuple[float, Array] | None:
        """Return ε and its derivatives in the masses of 0, w, …, of the larger direction."""
        noise = np.concatenate([masses[:0:-1], masses])
        size = noise.size
        beyond = np.zeros(self.shift)
        q = np.concatenate([noise, beyond])
        p = self.rate * np.concatenate([beyond, noise]) + (1.0 - self.rate) * q

        def by_noise(by_p: Array, by_q: Array) -> Array:
            moved = self.rate * by_p[self.shift :] + (1.0 - self.rate) * by_p[:size]
            return np.asarray(moved + by_q[:size])

        answers: list[tuple[Slope, Array]] = []
        removed = epsilon_slope(p, q, self.count, self.delta)
        if removed is None:
            return None
        answers.append((removed, by_noise(removed.by_p, removed.by_q)))
        if self.rate < 1.0:
            added = epsilon_slope(q, p, self.count, self.delta)
            if added is None:
                return None
            answers.append((added, by_noise(added.by_q, added.by_p)))
        slope, by_value = max(answers, key=lambda answer: answer[0].epsilon)
        middle = size // 2
        upwards = by_value[middle:]
        downwards = by_value[middle::-1]
        both = upwards + downwards
        both[0] = upwards[0]
        return slope.epsilon, both

    def epsilon(self, masses: Array) -> float:
        """Return ε in doubles, a large number where there is none."""
        slopes = self.slopes(masses)
        if slopes is None:
            return UNREACHABLE
        return slopes[0]

    def line_scale(self, name: str) -> float:
        """Return the scale at which noise of a family on the whole reals has the cost."""
        formula = _cost_formula(self.cost)
        logs = SHAPES[name]

        def mean(scale: float) -> float:
            return _mean_on_line(formula, logs, scale)

        return _scale(mean, self.most)


def grid(
    count: int,
    delta: float,
    std: Number,
    cost: str,
    sensitivity: Number,
    rate: Number,
    reach: Number | None,
    where: Where,
) -> Grid:
    """Return what is asked, checked."""
    count = checked_count(count)
    delta = share(delta, "delta")
    deviation = real(std, "std")
    if not deviation > 0.0:
        raise InputError(f"std {std}: it must be positive")
    if where not in ("integers", "reals"):
        raise InputError(f"support {where!r:.40}: integers or reals")
    exact_rate = exact(rate, "the rate")
    if not 0 < exact_rate <= 1:
        raise InputError(f"the rate {rate} must lie above 0, and be 1 at most")
    size = exact(sensitivity, "sensitivity")
    if not size > 0 or (where == "integers" and not size.is_Integer):
        words = "a number above 0"
        if where == "integers":
            words = "a whole number from 1 on"
        raise InputError(f"sensitivity {sensitivity!r:.40}: {words}")
    end = None if reach is None else exact(reach, "the support's end")
    is_whole = end is None or where == "reals" or end.is_Integer
    if end is not None and not (is_whole and end >= 2 * size):
        raise InputError(f"the support ends at {reach}: a number of 2 sensitivities or more")
    width, shift = _cells(where, deviation, size, end)
    step = float(width)
    if end is None:
        farthest = _reach(deviation, step, count / (delta * NEGLIGIBLE)) + shift
        listed = _reach(deviation, step, count / (delta * _LISTED_DOWN_TO)) + shift
        if shift > _LARGEST_SHIFT:
            listed = farthest
    else:
        farthest = int(sp.floor(end / width))
        if where == "reals":
            farthest = int(sp.floor(end / width - sp.Rational(1, 2)))
        listed = farthest
    if listed > _MOST_LISTED:
        _refuse(deviation, size, listed, shift, end)
    numbers = np.arange(farthest + 1.0)
    formula = _cost_formula(cost)
    costs = _costs(formula, cost, numbers, step, where)
    uniform = _mean(costs, np.ones(numbers.size))
    most = _cost_of_normal(formula, cost, deviation, where)
    if not 0.0 < most < uniform:
        raise InputError(
            f"E[{cost}] = {most:.6g}: noise on the values up to {numbers[-1] * step:.6g} has at "
            f"most {uniform:.6g}, where all are equally likely; take a wider support or a smaller "
            "std"
        )
    most *= 1.0 - _UNDER
    return Grid(
        count, delta, cost, where, width, numbers * step, costs, most, shift, float(exact_rate),
        exact_rate, end is not None, listed,
    )  # fmt: skip


def _refuse(deviation: float, size: sp.Expr, listed: int, shift: int, end: Any) -> None:
    """Raise InputError for a support of too many masses."""
    if end is not None:
        raise InputError(
            f"the support has {listed} masses to one side, and at most {_MOST_LISTED} are listed: "
            "take a narrower one, or leave it out"
        )
    largest = deviation * (_MOST_LISTED - shift) / (listed - shift)
    if shift > 1:
        raise InputError(
            f"a standard deviation of {deviation:g} needs masses up to {listed}, and at most "
            f"{_MOST_LISTED} are listed: divide std and sensitivity by a common factor"
        )
    raise InputError(
        f"a standard deviation of {deviation:g} at sensitivity {size} needs masses up to {listed}, "
        f"and at most {_MOST_LISTED} are listed: take a standard deviation up to {largest:.3g}; "
        "for more, symdp compare says which of normal and Laplace noise is better"
    )


def _cells(where: Where, deviation: float, size: sp.Expr, end: sp.Expr | None) -> tuple[Any, int]:
    """Return the width of a cell, and how many are one sensitivity."""
    if where == "integers":
        return sp.S.One, int(size)
    farthest = 16.0 * deviation if end is None else float(end)
    many = int(_CELLS * float(size) / farthest)
    shift = min(max(many, 1), _MOST_CELLS)
    return size / shift, shift


def _reach(deviation: float, step: float, parts: float) -> int:
    """Return the number of the value beyond which Laplace noise has one part of so many."""
    return math.ceil(deviation / math.sqrt(2.0) * math.log(parts) / step)


def _cost_formula(cost: str) -> Callable[[Array], Array]:
    """Return the cost as a function."""
    x = variable_symbol(_NAMED, "interval")
    with at("cost"):
        formula = parse(cost, {_NAMED: x})
        if x not in formula.free_symbols:
            raise InputError(f"{cost} does not hold {_NAMED}")
    return compile_numpy(formula, [x])


def _costs(
    formula: Callable[[Array], Array], cost: str, numbers: Array, step: float, where: Where
) -> Array:
    """Return the cost of values, or its mean over cells; InputError where it falls or is not even.

    Half of the cell around 0 stands for both.
    """
    places = step * numbers[:, None]
    weights = np.ones(1)
    if where == "reals":
        places = step * (numbers[:, None] + 0.5 * _NODES)
        places[0] = 0.25 * step * (1.0 + _NODES)
        weights = 0.5 * _WEIGHTS
    values = formula(places)
    with at("cost"):
        mirrored = formula(-places)
        if not (np.isfinite(values).all() and np.allclose(values, mirrored, rtol=1e-9)):
            raise InputError(f"{cost} is not even, or not finite everywhere")
        costs = values @ weights
        if (np.diff(costs) < 0.0).any() or not costs[-1] > costs[0]:
            raise InputError(f"{cost} falls away from 0: noise of one mode would leave it")
    return np.asarray(costs)


def _mean(costs: Array, weights: Array) -> float:
    """Return the mean cost of even noise with weights of 0, 1, …."""
    both = 2.0 * weights
    both[0] = weights[0]
    return float(both @ costs / both.sum())


def _cost_of_normal(
    formula: Callable[[Array], Array], cost: str, deviation: float, where: Where
) -> float:
    """Return the cost of normal noise of a standard deviation."""
    if where == "reals":
        return _mean_on_line(formula, SHAPES["Gaussian"], deviation)
    far = np.arange(math.ceil(_FARTHEST * deviation) + 1.0)
    costs = _costs(formula, cost, far, 1.0, where)
    return _mean(costs, np.exp(SHAPES["Gaussian"](far, deviation)))


def _mean_on_line(
    formula: Callable[[Array], Array], logs: Callable[[Array, float], Array], scale: float
) -> float:
    """Return the mean cost of noise on the reals, by panels of a tenth of its scale."""
    panels = np.arange(10.0 * _FARTHEST)
    places = 0.1 * scale * (panels[:, None] + 0.5 * (1.0 + _NODES))
    density = np.exp(logs(places, scale)) * _WEIGHTS
    return float((density * formula(places)).sum() / density.sum())


def _scale(mean_cost: Callable[[float], float], most: float) -> float:
    """Return the largest scale at which a cost that rises with it is at most so much."""
    log = _scaled_down(lambda log: mean_cost(math.exp(-log)), most, -math.log(1e6), math.log(1e3))
    return math.exp(-log)


def _scaled_down(cost: Callable[[float], float], most: float, low: float, high: float) -> float:
    """Return the least number at which a cost that falls with it is at most so much."""
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if cost(middle) > most:
            low = middle
        else:
            high = middle
    return high
