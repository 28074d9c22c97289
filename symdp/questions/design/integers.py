"""The noise of least ε at a cost, as a list of exact masses of whole numbers or of cells of reals.

The noise is even and has one mode by construction: log p_k falls by θ_k ≥ 0 from |k| to |k| + 1,
so that what is designed at a shift D holds for every shift of at most D. Its cost E c(X) is held at
its target (`grid.py`), and L-BFGS goes down the gradient of ε (`loss_sum.py`) in θ. ε is not
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
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import sympy as sp

from symdp.arguments import silent
from symdp.decimal_text import given, rounded
from symdp.errors import InputError
from symdp.interrupt import limit, time_left
from symdp.model.specification import loads
from symdp.questions.composition import compose
from symdp.questions.design.grid import NEGLIGIBLE, SHAPES, UNREACHABLE, Grid, Where, grid
from symdp.questions.design.one_step import least_masses
from symdp.tolerances import MASS_ROUNDED, SAME
from symdp.turns import in_turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from symdp.model.mechanism import Mechanism
    from symdp.model.sampling import MassNoise, Number
    from symdp.questions.guarantee import Guarantee

    Array = NDArray[Any]
    Progress = Callable[[str, float], None]

DESIGNED = "designed"
PROGRAM = "a linear program"
STAIRS = "one-step"  # the best of one step, at an equal part of δ: a staircase
_FEW = 5  # steps, up to which a search starts from it too
# The densities of a file that a design is compared with, on whole numbers and on the reals.
_DENSITIES: dict[Where, dict[str, str]] = {
    "integers": {
        "Gaussian": 'density = "exp(-k**2/(2*{scale}**2))"\nnormalize = true',
        "Laplace": 'density = "exp(-abs(k)/{scale})*tanh(1/(2*{scale}))"',
    },
    "reals": {
        "Gaussian": 'density = "exp(-x**2/(2*{scale}**2))/({scale}*sqrt(2*pi))"',
        "Laplace": 'density = "exp(-abs(x)/{scale})/(2*{scale})"',
    },
}
_DIGITS = 13  # of the scale of such noise
_FOR_SEARCH = 0.5  # of the time left; the rest is for ε of what was found
_MIX = 0.01  # of the other noise in a start, so that no tail is out of reach
_WINDOW = 1.5  # by which a fall of log p may leave its start
_ITERATIONS = 400
_ROUNDS = 4  # of a search, each with the window around what the last one ended at
_PROGRESS = 1e-6  # relative, of ε, that a round must make
_SPARE_DIGITS = 16  # of a mass, below δ/n
_IN_DOUBLES = 5e-3  # relative: searches that end so near the best are all answered
_SHARES_OF_STEPS = (1 / 2, 3 / 4, 1, 5 / 4, 3 / 2, 2, 3)  # n of a figure, over that of a design


class Row(NamedTuple):
    """One noise of the cost, and ε of all steps with it."""

    name: str
    text: str  # its mechanism file
    mechanism: Mechanism
    guarantee: Guarantee


@dataclass(frozen=True)
class Design:
    """The noise of least ε that was found, beside normal and Laplace noise of its cost.

    `rows` holds all three, least ε first; `starts` has the ε of what the search ended at from each
    start. A design of one step is a global optimum on its support, others are local.
    """

    n: int
    delta: float
    cost: str  # a formula of x
    most: float  # of its mean
    rows: tuple[Row, ...]
    starts: dict[str, float]
    is_global: bool
    is_late: bool  # whether time ended a search, and the best until then is the answer
    rate: sp.Expr  # of Poisson sampling, 1 for none
    cell: sp.Expr | None  # the width of cells in which the density is constant; None on integers
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

    def gains(self) -> dict[int, float]:
        """Return by how many percent ε of this noise is below the better of the others, over n.

        It is the noise of least ε at its own number of steps alone; of so many that one of the
        noises, which ends, has infinite losses beyond δ there is no number.
        """
        counts = {max(round(self.n * share), 1) for share in _SHARES_OF_STEPS}
        percents = {}
        cut_off = max(self.rate * _cut_off(row.mechanism) for row in self.rows)
        for n in sorted(counts):
            if n * cut_off >= self.delta:
                continue
            epsilons = []
            for row in self.rows:
                steps = compose(_sampled(row.mechanism, self.rate), n)
                epsilons.append(steps.epsilon(self.delta).epsilon)
            better = min(epsilons[1:], default=0.0)
            if better > 0.0:
                percents[n] = 100.0 * (1.0 - epsilons[0] / better)
        return percents

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        name = self.rows[0].name
        if name != DESIGNED:
            return f"{name} noise is the best that was found: the search found none of less ε"
        what = "the best of all even noises with one mode on these points"
        if not self.is_global:
            best = min(self.starts, key=lambda start: self.starts[start])
            others = ", ".join(self.starts)
            what = f"a local optimum, found from {best} noise (starts: {others})"
        if self.cell is not None:
            what = f"{what}, of densities that are constant in cells of {self.cell}"
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
            "cell": None if self.cell is None else str(self.cell),
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
    sensitivity: Number = 1,
    rate: Number = 1,
    reach: Number | None = None,
    support: Where = "integers",
    name: str = DESIGNED,
    progress: Progress | None = None,
) -> Design:
    r"""Return the noise of least ε(δ) of so many steps at a cost: a local optimum.

    .. math:: \min_p ε_n(δ) \quad\text{where}\quad E\,c(X) ≤ C, \quad p_0 ≥ p_1 ≥ …, \quad
        p_{-k} = p_k

    C is the cost of normal noise on the integers, or on the reals, of standard deviation `std`.
    Even and with one mode the noise protects records that move the output by at most the
    sensitivity, either way. On the reals the density is constant in cells around 0, ±w, ±2w, …, so
    many to a sensitivity that their width costs next to nothing.

    Parameters
    ----------
    n : the number of steps
    delta : δ, in (0, 1)
    std : the standard deviation of the noise, or of normal noise of the same cost
    cost : a formula of x, even, and not falling away from 0
    sensitivity : what a record moves the output by at most, on integers a whole number
    rate : the rate of Poisson sampling, 1 for none
    reach : the largest value of the noise, B of [−B, B]; where it does not matter if left out
    support : "integers" or "reals"
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
    question = grid(n, delta, std, cost, sensitivity, rate, reach, support)
    shapes = {label: question.shape(label) for label in SHAPES}
    best, ended, is_late = _searched(question, shapes, progress)
    rows = []
    least = min(ended.values(), default=0.0)
    for label, masses in best.items():
        if ended[label] > least * (1.0 + _IN_DOUBLES):
            continue
        row = _row(question, DESIGNED, _listed_file(name, question, masses))
        ended[label] = row.guarantee.epsilon
        rows.append(row)
    rows = sorted(rows, key=lambda row: row.guarantee.epsilon)[:1]
    for label, masses in shapes.items():
        if not question.is_bounded:
            rows.append(_row(question, label, _family_file(label, question)))
        elif question.slopes(masses) is not None:  # else its last masses are more than δ
            rows.append(_row(question, label, _listed_file(label, question, masses)))
    if not rows:
        raise InputError(
            "no noise that was tried has a finite ε: the support cuts off more than δ; take a "
            "wider one"
        )
    rows.sort(key=lambda row: row.guarantee.epsilon * (1.0 + SAME * (row.name == DESIGNED)))
    seconds = time.perf_counter() - start
    return Design(
        question.count,
        question.delta,
        question.cost,
        question.most,
        tuple(rows),
        ended,
        question.count == 1,
        is_late,
        question.exact_rate,
        question.width if question.where == "reals" else None,
        seconds,
    )


def _searched(
    task: Grid, shapes: dict[str, Array], progress: Progress
) -> tuple[dict[str, Array], dict[str, float], bool]:
    """Return the masses and the ε at which each search ended, and whether time ended one."""
    ended: dict[str, float] = {}
    searches: dict[str, Array] = {}

    def stairs() -> tuple[float, Array]:
        reached = min(task.one_step.epsilon(masses) for masses in shapes.values())
        highest = min(reached, float(task.values.size))
        return least_masses(
            task.costs, task.most, task.shift, task.rate, task.delta / task.count, highest,
            task.listed,
        )  # fmt: skip

    def search() -> None:
        if task.count == 1:
            ended[PROGRAM], searches[PROGRAM] = stairs()
            progress(PROGRAM, ended[PROGRAM])
            return
        starts = {}
        if task.count <= _FEW:
            starts[STAIRS] = stairs()[1]
        starts |= shapes
        for label, masses in starts.items():
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
    return searches, ended, outcome.late


def _descend(task: Grid, masses: Array, better: Callable[[Array, float], None]) -> None:
    """Search from one noise, telling of each that is better than all before."""
    from scipy.optimize import minimize

    least = UNREACHABLE
    best = masses

    def objective(falls: Array) -> tuple[float, Array]:
        nonlocal least, best
        law, way, factor = task.at_cost(task.logs(falls))
        answer = task.slopes(law)
        if answer is None:
            return UNREACHABLE, np.zeros_like(falls)
        epsilon, by_mass = answer
        shares = task.twice * law
        by_mass = by_mass / task.twice
        by_log = shares * (by_mass - shares @ by_mass)
        dearer = shares * (task.costs - shares @ task.costs)
        by_log = by_log - dearer * (by_log @ way) / (dearer @ way)
        if epsilon < least and (np.diff(law) <= 0.0).all():
            least = epsilon
            best = law
            better(law, epsilon)
        return epsilon, factor * task.by_falls(by_log, falls.size)

    before = math.inf
    options = {"maxiter": _ITERATIONS, "maxcor": 40}
    for _ in range(_ROUNDS):
        first = _falls(task, best)
        bounds = [(max(fall - _WINDOW, 0.0), fall + _WINDOW) for fall in first]
        minimize(objective, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        if not least < before * (1.0 - _PROGRESS):
            return
        before = least


def _falls(task: Grid, masses: Array) -> Array:
    """Return by how much the logarithm of masses falls from each value to the next.

    The last is that of a tail, where values go on.
    """
    logs = np.log(np.maximum(masses, 1e-300))
    if task.is_bounded:  # the end of the support is out of reach of the shift
        last = slice(logs.size - task.shift, logs.size)
        highest = math.log(task.delta / (8.0 * task.count * task.shift))
        logs[last] = np.minimum(logs[last], highest)
    falls = np.maximum(-np.diff(logs), 0.0)
    return falls[: task.listed + 1]


def _row(task: Grid, label: str, text: str) -> Row:
    """Return a noise with ε of all its steps."""
    mechanism = loads(text, label)
    steps = compose(_sampled(mechanism, task.exact_rate), task.count)
    return Row(label, text, mechanism, steps.epsilon(task.delta))


def _cut_off(mechanism: Mechanism) -> sp.Expr:
    """Return the probability of an infinite loss of noise that ends."""
    if not mechanism.is_listed:
        return sp.S.Zero
    noise = cast("MassNoise", mechanism.source)
    if noise.tail:
        return sp.S.Zero
    return sp.Add(*noise.masses[-noise.cells :])


def _sampled(mechanism: Mechanism, rate: sp.Expr) -> Mechanism:
    """Return noise for a Poisson sample, or as it is at rate 1."""
    if rate == 1:
        return mechanism
    return mechanism.subsample("poisson", rate)


def exact_masses(task: Grid, masses: Array) -> tuple[list[sp.Rational], sp.Rational]:
    """Return masses as decimals that do not rise, and the mass of a tail; they add up to one.

    Each is rounded down, and what is lacking is added at 0, so that the cost is no larger.
    """
    digits = _SPARE_DIGITS + math.ceil(math.log10(task.count / task.delta))
    unit = 10**digits
    kept = masses
    beyond = 0.0
    if not task.is_bounded:
        least = task.delta / task.count * NEGLIGIBLE
        kept = masses[: task.listed + 1]
        if kept.size < masses.size and kept[-1] > 0.0:
            ratio = masses[kept.size] / kept[-1]
            beyond = kept[-1] * ratio / (1.0 - ratio)
        if not beyond > least:
            beyond = 0.0
            kept = kept[kept >= least]
    share_of_one = (1.0 - MASS_ROUNDED) / (2.0 * (float(kept.sum()) + beyond) - kept[0])
    kept = share_of_one * kept
    beyond = share_of_one * beyond
    counts = [int(sp.Rational(float(mass)) * unit) for mass in kept]
    counts = [whole for whole in counts if whole > 0]
    tail = int(sp.Rational(float(beyond)) * unit)
    counts[0] += unit - counts[0] - 2 * (sum(counts[1:]) + tail)
    return [sp.Rational(whole, unit) for whole in counts], sp.Rational(tail, unit)


def _listed_file(name: str, task: Grid, masses: Array) -> str:
    """Return noise of listed masses as a mechanism file."""
    exact, tail = exact_masses(task, masses)
    listed = "\n".join(f'  "{_decimal(mass)}",' for mass in exact)
    of = "0, ±1, ±2, …"
    lines = []
    if task.where == "reals":
        of = "cells around 0, ±cell, ±2*cell, …"
        lines.append(f'cell = "{task.width}"')
    comment = f"of {of}: exact decimals that add up to one with their mirror"
    if tail:
        lines.append(f'tail = "{_decimal(tail)}"  # beyond the last mass, on either side')
        comment = f"{comment} and the tails"
    lines.append(f"masses = [  # {comment}\n{listed}\n]")
    return _file(name, task, "\n".join(lines))


def _family_file(label: str, task: Grid) -> str:
    """Return noise of a family at the cost as a mechanism file."""
    is_real = task.where == "reals"
    scale = task.line_scale(label) if is_real else task.scale(label)
    law = _DENSITIES[task.where][label].format(scale=f"{scale:.{_DIGITS}g}")
    return _file(label, task, law)


def _file(name: str, task: Grid, law: str) -> str:
    """Return noise as a mechanism file."""
    support = '"integers"'
    variable = "k"
    if task.where == "reals":
        support = '["-oo", "oo"]'
        variable = "x"
    lines = [
        f'name = "{name}"',
        f'variable = "{variable}"',
        f"support = {support}",
        "",
        "[noise]",
        f'sensitivity = "{task.shift * task.width}"',
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
    if places:
        return f"0.{int(whole):0{places}d}"
    return str(whole)
