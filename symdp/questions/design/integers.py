"""The noise on the integers of least ε at a cost, as a list of exact masses.

The noise is even and has one mode by construction: log p_k falls by θ_k ≥ 0 from |k| to |k| + 1,
so that what is designed at a shift D holds for every shift of at most D. Its cost E c(X) is held at
its target by a tilt e^{-βc}, and L-BFGS goes down the gradient of ε (`loss_sum.py`) in θ. ε is not
convex in θ: the search starts at normal and at Laplace noise of the same cost, and what it ends at
is a *local* optimum. The masses are rounded to decimals that add up to exactly one. What is
reported is ε of these decimals, by the accountant that answers for every mechanism, and beside it
that of normal and Laplace noise of the same cost; where one of them is better, it is the answer.
One step alone is a linear program at each ε, whose optimum is global (`one_step.py`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sympy as sp

from symdp.arguments import checked_count, real, share, silent
from symdp.decimal_text import given, rounded
from symdp.errors import InputError, at
from symdp.interrupt import limit, time_left
from symdp.model.parser import parse
from symdp.model.sampling import exact, variable_symbol
from symdp.model.specification import loads
from symdp.questions.composition import compose
from symdp.questions.design.loss_sum import Slope, epsilon_slope
from symdp.questions.design.one_step import least_masses
from symdp.turns import in_turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from symdp.model.mechanism import Mechanism
    from symdp.model.sampling import Number
    from symdp.questions.guarantee import Guarantee

    Array = NDArray[Any]
    Progress = Callable[[str, float], None]

DESIGNED = "designed"
PROGRAM = "a linear program"
# What a design is compared with, and where searches start: the law of a file, and its logarithm.
_FAMILIES: dict[str, tuple[str, Callable[[Array, float], Array]]] = {
    "Gaussian": (
        'density = "exp(-k**2/(2*{scale}**2))"\nnormalize = true',
        lambda values, scale: -((values / scale) ** 2) / 2.0,
    ),
    "Laplace": (
        'density = "exp(-abs(k)/{scale})*tanh(1/(2*{scale}))"',
        lambda values, scale: -values / scale,
    ),
}
_DIGITS = 13  # of the scale of such noise
_FOR_SEARCH = 0.5  # of the time left; the rest is for ε of what was found
_MOST_REACH = 2_000  # of a support, as each of its values has a mass of its own
_BISECTIONS = 100  # of a scale or a tilt
_MIX = 0.01  # of the other noise in a start, so that no tail is out of reach
_WINDOW = 1.5  # by which a fall of log p may leave its start
_ITERATIONS = 400
_ROUNDS = 4  # of a search, each with the window around what the last one ended at
_PROGRESS = 1e-6  # relative, of ε, that a round must make
_UNREACHABLE = 1e3  # stands for an ε that no finite one meets
_SPARE_DIGITS = 16  # of a mass, below δ/n
_NEGLIGIBLE = 1e-8  # of δ/n: masses below are cut off
_ALLOWED = 1e-9  # relative: smaller gains are none
_NAMED = "x"  # the noise, in a formula of its cost


class Row(NamedTuple):
    """One noise of the cost, and ε of all steps with it."""

    name: str
    text: str  # its mechanism file
    mechanism: Mechanism
    guarantee: Guarantee


@dataclass(frozen=True)
class Design:
    """The noise of least ε that was found, beside normal and Laplace noise of its cost.

    `rows` holds all three, least ε first; `starts` has the ε in doubles at which the search ended
    from each start. A design of one step is a global optimum on its support, others are local.
    """

    n: int
    delta: float
    cost: str  # a formula of x
    most: float  # of its mean
    rows: tuple[Row, ...]
    starts: dict[str, float]
    is_global: bool
    is_late: bool  # whether time ended a search, and the best until then is the answer
    seconds: float = field(compare=False)

    @property
    def mechanism(self) -> Mechanism:
        """The noise of least ε."""
        return self.rows[0].mechanism

    @property
    def guarantee(self) -> Guarantee:
        """Its ε at δ."""
        return self.rows[0].guarantee

    @property
    def gain(self) -> float | None:
        """The percentage by which ε is below the better one of normal and Laplace noise.

        None where both have infinite losses beyond δ, as on a narrow support.
        """
        others = [row.guarantee.epsilon for row in self.rows if row.name != DESIGNED]
        if not others:
            return None
        better = min(others)
        if better == 0.0:
            return 0.0
        return 100.0 * (1.0 - self.guarantee.epsilon / better)

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        name = self.rows[0].name
        if name != DESIGNED:
            return f"{name} noise is the best that was found: the search found none of less ε"
        what = "the best of all even noises with one mode on these points"
        if not self.is_global:
            best = min(self.starts, key=lambda start: self.starts[start])
            others = " and ".join(self.starts)
            what = f"a local optimum, found from {best} noise (starts: {others})"
        if self.is_late:
            what = "the best that was found in the time given"
        if self.gain is None:
            return f"the others have infinite losses beyond δ on this support; {what}"
        return f"{rounded(self.gain, 3, 'down')} % less ε than the better of the others; {what}"

    def to_toml(self) -> str:
        """Return the noise as a mechanism file."""
        head = f'description = "{self._question}; {self.sentence}"'
        first, _, others = self.rows[0].text.partition("\n")
        return f"{first}\n{head}\n{others}"

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        noises = [{"noise": row.name, **row.guarantee.to_json()} for row in self.rows]
        return {
            "count": self.n,
            "delta": self.delta,
            "cost": self.cost,
            "cost_at_most": self.most,
            "gain_percent": self.gain,
            "is_global": self.is_global,
            "starts": self.starts,
            "told": self.sentence,
            "noises": noises,
            "seconds": round(self.seconds, 6),
        }

    @property
    def _question(self) -> str:
        aim = f"least ε of {self.n} steps at δ = {given(self.delta)}"
        return f"{aim}, E[{self.cost}] ≤ {self.most:.12g}"

    def __repr__(self) -> str:
        return f"<Design {self.guarantee}; {self.sentence}>"


@in_turn
def design(
    n: int = 1,
    *,
    delta: float,
    std: Number,
    cost: str = "x**2",
    sensitivity: int = 1,
    rate: Number = 1,
    reach: int | None = None,
    name: str = DESIGNED,
    progress: Progress | None = None,
) -> Design:
    r"""Return the integer noise of least ε(δ) of so many steps at a cost: a local optimum.

    .. math:: \min_p ε_n(δ) \quad\text{where}\quad E\,c(X) ≤ C, \quad p_0 ≥ p_1 ≥ …, \quad
        p_{-k} = p_k

    C is the cost of normal noise on the integers of standard deviation `std`. Even and with one
    mode the noise protects records that move the output by at most the sensitivity, either way.

    Parameters
    ----------
    n : the number of steps
    delta : δ, in (0, 1)
    std : the standard deviation of the noise, or of normal noise of the same cost
    cost : a formula of x, even, and not falling away from 0
    sensitivity : what a record moves the output by at most, a whole number
    rate : the rate of Poisson sampling, 1 for none
    reach : the largest value of the noise, B of [−B, B]; where it does not matter if left out
    name : of the mechanism
    progress : called with a start and ε in doubles at each step of a search

    Raises
    ------
    InputError : numbers out of range, or a cost that no noise on the support has.

    Examples
    --------
    >>> best = design(10, delta=1e-6, std=2)
    >>> best.gain > 0, sum(best.mechanism.source.Q)
    (True, 1)
    """
    if progress is None:
        progress = silent
    start = time.perf_counter()
    task = _task(n, delta, std, cost, sensitivity, rate, reach)
    shapes = {label: task.scaled(logs) for label, (_, logs) in _FAMILIES.items()}
    best, ended, is_late = _searched(
        task, {label: law for label, (_, law) in shapes.items()}, progress
    )
    rows = []
    if best is not None:
        rows.append(_row(task, DESIGNED, _listed_file(name, task, best)))
    for label, (scale, masses) in shapes.items():
        text = _listed_file(label, task, masses)
        if not task.is_bounded:
            text = _file(
                label, task.shift, _FAMILIES[label][0].format(scale=f"{scale:.{_DIGITS}g}")
            )
        elif task.slopes(masses) is None:
            continue  # its last masses are more than δ
        rows.append(_row(task, label, text))
    if not rows:
        raise InputError(
            "no noise that was tried has a finite ε: the support cuts off more than δ; take a "
            "wider one"
        )
    rows.sort(key=lambda row: row.guarantee.epsilon * (1.0 + _ALLOWED * (row.name == DESIGNED)))
    seconds = time.perf_counter() - start
    is_global = task.count == 1
    return Design(
        task.count,
        task.delta,
        task.cost,
        task.most,
        tuple(rows),
        ended,
        is_global,
        is_late,
        seconds,
    )


def _searched(
    task: _Task, shapes: dict[str, Array], progress: Progress
) -> tuple[Array | None, dict[str, float], bool]:
    """Return the best masses, the ε at which each search ended, and whether time ended one."""
    ended: dict[str, float] = {}
    searches: dict[str, Array] = {}

    def search() -> None:
        if task.count == 1:
            reached = min(task.epsilon(masses) for masses in shapes.values())
            highest = min(reached, float(task.values[-1]))
            answer = least_masses(task.costs, task.most, task.shift, task.rate, task.delta, highest)
            ended[PROGRAM], searches[PROGRAM] = answer
            progress(PROGRAM, ended[PROGRAM])
            return
        for label, masses in shapes.items():
            mixed = (1.0 - _MIX) * masses
            for other in shapes.values():
                mixed = mixed + _MIX / len(shapes) * other

            def better(law: Array, epsilon: float, label: str = label) -> None:
                searches[label] = law
                ended[label] = epsilon
                progress(label, epsilon)

            _descend(task, mixed, better)

    left = time_left()
    with limit(_FOR_SEARCH * left, of_work=True) as outcome:
        search()
    if not searches:
        return None, ended, outcome.late
    return searches[min(ended, key=lambda label: ended[label])], ended, outcome.late


@dataclass(frozen=True)
class _Task:
    """What is asked, and where masses are looked for."""

    count: int
    delta: float
    cost: str
    values: Array  # 0, 1, …, K
    costs: Array  # of each
    most: float
    shift: int
    rate: float
    exact_rate: sp.Expr
    is_bounded: bool

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

    def scaled(self, logs: Callable[[Array, float], Array]) -> tuple[float, Array]:
        """Return the scale at which noise of a family has the cost, and its masses."""
        low = math.log(1e-3)
        high = math.log(1e6)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            masses = self.normalized(logs(self.values, math.exp(middle)))
            if self.mean_cost(masses) < self.most:
                low = middle
            else:
                high = middle
        scale = math.exp(low)
        return scale, self.normalized(logs(self.values, scale))

    def tilted(self, falls: Array) -> Array:
        """Return the masses whose logarithms fall so, tilted to the cost."""
        logs = -np.concatenate([[0.0], np.cumsum(falls)])
        scale = max(self.most, 1e-300)
        low = -50.0 / scale
        high = 50.0 / scale
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            if self.mean_cost(self.normalized(logs - middle * self.costs)) > self.most:
                low = middle
            else:
                high = middle
        return self.normalized(logs - high * self.costs)

    def slopes(self, masses: Array) -> tuple[float, Array] | None:
        """Return ε and its derivatives in the masses of 0, 1, …, of the larger direction."""
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
        return _UNREACHABLE if slopes is None else slopes[0]


def _task(
    count: int,
    delta: float,
    std: Number,
    cost: str,
    sensitivity: int,
    rate: Number,
    reach: int | None,
) -> _Task:
    count = checked_count(count)
    delta = share(delta, "delta")
    deviation = real(std, "std")
    if not deviation > 0.0:
        raise InputError(f"std {std}: it must be positive")
    if not (isinstance(sensitivity, int) and sensitivity >= 1):
        raise InputError(f"sensitivity {sensitivity!r:.40}: a whole number from 1 on")
    exact_rate = exact(rate, "the rate")
    if not 0 < exact_rate <= 1:
        raise InputError(f"the rate {rate} must lie above 0, and be 1 at most")
    if reach is None:
        # Where a Laplace tail of this deviation is below what is cut off.
        tail = math.log(count / (delta * _NEGLIGIBLE))
        farthest = math.ceil(deviation / math.sqrt(2.0) * tail) + sensitivity
    elif isinstance(reach, int) and reach >= 2 * sensitivity:
        farthest = reach
    else:
        raise InputError(f"the support ends at {reach}: a whole number of 2 sensitivities or more")
    if farthest > _MOST_REACH:
        raise InputError(
            f"a standard deviation of {deviation:g} needs masses up to {farthest}, and at most "
            f"{_MOST_REACH} are designed: divide std and sensitivity by a common factor"
        )
    values = np.arange(farthest + 1.0)
    costs = _costs(cost, farthest)
    wide = _Task(count, delta, cost, values, costs, 0.0, sensitivity, 1.0, exact_rate, True)
    uniform = wide.mean_cost(wide.normalized(np.zeros(values.size)))
    far = np.arange(math.ceil(40.0 * deviation) + 1.0)
    weights = np.exp(-((far / deviation) ** 2) / 2.0)
    weights[1:] *= 2.0
    most = float(weights @ _costs(cost, far.size - 1) / weights.sum())
    if not 0.0 < most < uniform:
        raise InputError(
            f"E[{cost}] = {most:.6g}: noise on the points up to {farthest} has at most "
            f"{uniform:.6g}, where all are equally likely; take a wider support or a smaller std"
        )
    is_bounded = reach is not None
    return _Task(
        count, delta, cost, values, costs, most, sensitivity, float(exact_rate), exact_rate,
        is_bounded,
    )  # fmt: skip


def _costs(cost: str, farthest: int) -> Array:
    """Return the cost of 0, 1, …, InputError where it is not even or falls."""
    x = variable_symbol(_NAMED, "interval")
    with at("cost"):
        formula = parse(cost, {_NAMED: x})
        if x not in formula.free_symbols:
            raise InputError(f"{cost} does not hold {_NAMED}")
        evaluate = sp.lambdify(x, formula, "numpy")
        values = np.arange(farthest + 1.0)
        with np.errstate(all="ignore"):
            costs = np.asarray(evaluate(values) + np.zeros(values.size), dtype=np.float64)
            mirrored = np.asarray(evaluate(-values) + np.zeros(values.size), dtype=np.float64)
        if not (np.isfinite(costs).all() and np.allclose(costs, mirrored, rtol=1e-9)):
            raise InputError(f"{cost} is not even, or not finite at whole numbers")
        if (np.diff(costs) < 0.0).any() or not costs[-1] > costs[0]:
            raise InputError(f"{cost} falls away from 0: noise of one mode would leave it")
    return costs


def _descend(task: _Task, masses: Array, better: Callable[[Array, float], None]) -> None:
    """Search from one noise, telling of each that is better than all before."""
    from scipy.optimize import minimize

    least = _UNREACHABLE
    best = masses

    def objective(falls: Array) -> tuple[float, Array]:
        nonlocal least, best
        law = task.tilted(falls)
        answer = task.slopes(law)
        if answer is None:
            return _UNREACHABLE, np.zeros_like(falls)
        epsilon, by_mass = answer
        shares = task.twice * law
        by_mass = by_mass / task.twice
        away = shares * (task.costs - shares @ task.costs)
        by_log = shares * (by_mass - shares @ by_mass)
        by_log = by_log - away * (by_mass @ away) / (away @ task.costs)
        if epsilon < least and (np.diff(law) <= 0.0).all():
            least = epsilon
            best = law
            better(law, epsilon)
        return epsilon, -np.cumsum(by_log[::-1])[::-1][1:]

    before = math.inf
    options = {"maxiter": _ITERATIONS, "maxcor": 40}
    for _ in range(_ROUNDS):
        first = _falls(task, best)
        bounds = [(max(fall - _WINDOW, 0.0), fall + _WINDOW) for fall in first]
        minimize(objective, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        if not least < before * (1.0 - _PROGRESS):
            return
        before = least


def _falls(task: _Task, masses: Array) -> Array:
    """Return by how much the logarithm of masses falls from each value to the next."""
    logs = np.log(np.maximum(masses, 1e-300))
    if task.is_bounded:  # the end of the support is out of reach of the shift
        last = slice(logs.size - task.shift, logs.size)
        highest = math.log(task.delta / (8.0 * task.count * task.shift))
        logs[last] = np.minimum(logs[last], highest)
    return np.maximum(-np.diff(logs), 0.0)


def _row(task: _Task, label: str, text: str) -> Row:
    """Return a noise with ε of all its steps."""
    mechanism = loads(text, label)
    sampled = mechanism
    if task.exact_rate != 1:
        sampled = mechanism.subsample("poisson", task.exact_rate)
    return Row(label, text, mechanism, compose(sampled, task.count).epsilon(task.delta))


def exact_masses(task: _Task, masses: Array) -> list[sp.Rational]:
    """Return masses as decimals that do not rise and add up to exactly one with their mirror.

    Each is rounded down, and what is lacking is added at 0, so that the cost is no larger.
    """
    digits = _SPARE_DIGITS + math.ceil(math.log10(task.count / task.delta))
    unit = 10**digits
    kept = masses
    if not task.is_bounded:
        kept = masses[masses >= task.delta / task.count * _NEGLIGIBLE]
    counts = [int(sp.Rational(float(mass)) * unit) for mass in kept]
    counts = [whole for whole in counts if whole > 0]
    counts[0] += unit - counts[0] - 2 * sum(counts[1:])
    return [sp.Rational(whole, unit) for whole in counts]


def _listed_file(name: str, task: _Task, masses: Array) -> str:
    """Return noise of listed masses as a mechanism file."""
    listed = "\n".join(f'  "{_decimal(mass)}",' for mass in exact_masses(task, masses))
    comment = "of 0, ±1, ±2, …: exact decimals that add up to one with their mirror"
    return _file(name, task.shift, f"masses = [  # {comment}\n{listed}\n]")


def _file(name: str, sensitivity: int, law: str) -> str:
    """Return noise on the integers as a mechanism file."""
    lines = [
        f'name = "{name}"',
        'variable = "k"',
        'support = "integers"',
        "",
        "[noise]",
        f"sensitivity = {sensitivity}",
        law,
    ]
    return "\n".join(lines) + "\n"


def _decimal(mass: sp.Rational) -> str:
    """Return an exact decimal fraction below one in digits."""
    places = 0
    whole = sp.Rational(mass)
    while whole.q != 1:
        whole *= 10
        places += 1
    return f"0.{int(whole):0{places}d}" if places else str(whole)
