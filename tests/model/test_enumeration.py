"""Every sampling scheme, relation and group against all data sets of up to five records.

A data set gives the law of the batch's sum, written out draw by draw, and with it a mixture of
shifted noise. Noise is cut into cells: what a cell says is a function of the output, so that the
divergence of the cells is a lower bound on that of the data sets, whatever the width. No pair may
lie below it, in one step or in two whose data sets the adversary chooses in between.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr, stdtr

from symdp import compose, mechanisms
from symdp.model.mechanism import Mechanism

Data = tuple[float, ...]
Law = np.ndarray  # probabilities of the sums −5, −4.5, … 5
EPSILONS = (-0.5, 0.0, 0.4, 1.0, 2.0)
LARGEST = 5
ROUNDING = 1e-8
CELLS = 1e-4  # the cells lose the square of their width over the size of a kink
COARSE = 3e-3


@dataclass(frozen=True)
class Noise:
    mechanism: Mechanism
    below: Callable[[np.ndarray], np.ndarray] | None = None  # its distribution function
    masses: Callable[[np.ndarray], np.ndarray] | None = None  # on integers
    values: Data = (-1.0, -0.5, 0.0, 1.0)  # contributions within the clip, which is 1

    @functools.cached_property
    def fine(self) -> np.ndarray:
        return self.cells(1 / 64)

    @functools.cached_property
    def coarse(self) -> np.ndarray:
        return self.cells(1 / 16)

    def cells(self, width: float, reach: float = 25.0) -> np.ndarray:
        """Return the masses of the noise in cells, a row for each sum of the batch."""
        shifts = np.arange(-2 * LARGEST, 2 * LARGEST + 1) / 2
        if self.masses is not None:
            outputs = np.arange(-70, 71)
            whole = shifts == np.round(shifts)
            rows = [self.masses(outputs - s) * w for s, w in zip(shifts, whole, strict=True)]
            return np.array(rows)
        assert self.below is not None
        ends = np.concatenate([[-np.inf], np.arange(-reach, reach + width, width), [np.inf]])
        return np.diff(self.below(ends - shifts[:, None]), axis=1)


def discrete_gaussian(k: np.ndarray) -> np.ndarray:
    every = np.arange(-200, 201)
    return np.exp(-(k**2) / 4.5) / np.exp(-(every**2) / 4.5).sum()


WHOLE = (-1.0, 0.0, 1.0)
NOISES = {
    "gaussian": Noise(mechanisms.gaussian(sigma="3/2"), lambda x: ndtr(x / 1.5)),
    "little": Noise(mechanisms.gaussian(sigma="2/3"), lambda x: ndtr(1.5 * x)),
    "laplace": Noise(
        mechanisms.laplace(b=2), lambda x: 0.5 - 0.5 * np.sign(x) * np.expm1(-np.abs(x) / 2)
    ),
    "logistic": Noise(mechanisms.logistic(s=1), lambda x: 0.5 + 0.5 * np.tanh(x / 2)),
    "student": Noise(mechanisms.student_t(nu=3, s=1), lambda x: stdtr(3, x)),
    # Skewed: for records that raise the output alone, and for those of either sign.
    "gumbel": Noise(
        mechanisms.gumbel(b=2).shifted("up"), lambda x: np.exp(-np.exp(-x / 2)), values=(0, 0.5, 1)
    ),
    "gumbel either way": Noise(
        mechanisms.gumbel(b=2).shifted("either way"), lambda x: np.exp(-np.exp(-x / 2))
    ),
    "discrete": Noise(
        mechanisms.discrete_gaussian(sigma="3/2"), masses=discrete_gaussian, values=WHOLE
    ),
    "geometric": Noise(
        mechanisms.discrete_laplace(b=2),
        masses=lambda k: math.tanh(0.25) * np.exp(-np.abs(k) / 2),
        values=WHOLE,
    ),
}


def law(sums: Iterable[tuple[float, float]]) -> Law:
    """Return the law of the sum from sums with their chances."""
    found = np.zeros(4 * LARGEST + 1)
    for total, chance in sums:
        found[round(2 * total) + 2 * LARGEST] += chance
    assert abs(found.sum() - 1) < 1e-12
    return found


@functools.cache
def poisson(data: Data, rate: float, most: int = LARGEST) -> Law:
    """A Poisson batch, of which `most` at random are kept."""
    sums = []
    for drawn in itertools.product((0, 1), repeat=len(data)):
        chance = math.prod(rate if d else 1 - rate for d in drawn)
        batch = [v for v, d in zip(data, drawn, strict=True) if d]
        kept = list(itertools.combinations(batch, min(len(batch), most)))
        sums += [(sum(one), chance / len(kept)) for one in kept]
    return law(sums)


@functools.cache
def without_replacement(data: Data, size: int) -> Law:
    batches = list(itertools.combinations(data, size))
    return law((sum(batch), 1 / len(batches)) for batch in batches)


@functools.cache
def with_replacement(data: Data, draws: int) -> Law:
    batches = itertools.product(data, repeat=draws)
    return law((sum(batch), len(data) ** -draws) for batch in batches)


@dataclass(frozen=True)
class Case:
    """A scheme by what `subsample` takes and by what it draws from a data set."""

    relation: str
    records: int
    draw: Callable[[Data], Law]
    scheme: tuple[object, ...] = ()
    held: tuple[tuple[str, int], ...] = ()

    @property
    def group(self) -> int:
        return dict(self.held).get("group", 1)

    def mechanism(self, noise: Mechanism) -> Mechanism:
        made = noise.subsample(*self.scheme, **dict(self.held)) if self.scheme else noise
        return made.under(self.relation)

    def data(self, values: Data) -> Iterator[tuple[Data, Data]]:
        """Yield neighbours, with the record first; substitution has every order among them."""
        group = list(itertools.combinations_with_replacement(values, self.group))
        others = itertools.combinations_with_replacement(values, self.records - self.group)
        for rest in others:
            if self.relation == "substitution":
                yield from ((a + rest, b + rest) for a, b in itertools.permutations(group, 2))
            elif self.relation == "zero_out":
                yield from ((own + rest, (0.0,) * self.group + rest) for own in group)
            else:
                yield from ((own + rest, rest) for own in group)


def all_of_them(data: Data) -> Law:
    return law([(sum(data), 1.0)])


def by_poisson(rate: float, most: int = LARGEST) -> Callable[[Data], Law]:
    return lambda data: poisson(data, rate, most)


def _cases() -> dict[str, Case]:
    found = {}
    for relation in ("add_remove", "zero_out", "substitution"):
        found[f"none-{relation}"] = Case(relation, 2, all_of_them)
        found[f"poisson-{relation}"] = Case(relation, 3, by_poisson(0.4), ("poisson", "2/5"))
    for relation in ("add_remove", "zero_out"):
        for group in (2, 3):
            held = (("group", group),)
            found[f"poisson-{relation}-{group}"] = Case(
                relation, group + 1, by_poisson(0.4), ("poisson", "2/5"), held
            )
        for records, rate, most in ((4, "1/2", 1), (5, "2/5", 2), (3, "1", 2)):
            found[f"truncated-{relation}-{records}"] = Case(
                relation,
                records,
                by_poisson(float(Fraction(rate)), most),
                ("truncated_poisson", rate, most),
                (("records", records),),
            )
    for records, size in ((5, 2), (4, 3), (3, 3)):
        found[f"without-{records}"] = Case(
            "substitution",
            records,
            functools.partial(without_replacement, size=size),
            ("without_replacement", f"{size}/{records}"),
        )
    for records, size, group in ((4, 2, 2), (5, 3, 3)):
        found[f"without-{records}-{group}"] = Case(
            "substitution",
            records,
            functools.partial(without_replacement, size=size),
            ("without_replacement", f"{size}/{records}"),
            (("records", records), ("group", group)),
        )
    for records, draws, group in ((3, 2, 1), (4, 2, 2), (2, 3, 1)):
        found[f"with-{records}-{group}"] = Case(
            "substitution",
            records,
            functools.partial(with_replacement, draws=draws),
            ("with_replacement", f"1/{records}", draws),
            (("group", group),),
        )
    return found


CASES = _cases()


def divergences(p: np.ndarray, q: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the hockey-stick divergence of every data set."""
    return np.maximum(p - math.exp(epsilon) * q, 0.0).sum(axis=1)


def worst_of(p: np.ndarray, q: np.ndarray) -> list[int]:
    """Return the data sets that are the worst at some ε."""
    grid = np.linspace(-4.0, 4.0, 33)
    return sorted({int(divergences(p, q, epsilon).argmax()) for epsilon in grid})


def two_steps(p: np.ndarray, q: np.ndarray, epsilons: Iterable[float]) -> list[float]:
    """Return the divergence of two steps; the data set of the second follows the first output.

    Given the first output the second step has the order e^ε·q/p, and its worst data set there.
    """
    profiles = []
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.where(p > 0, np.log(p) - np.log(q), -np.inf)
    for row, (own, other) in enumerate(zip(p, q, strict=True)):
        order = np.argsort(-losses[row])
        totals = [np.concatenate([[0.0], np.cumsum(law[order])]) for law in (own, other)]
        profiles.append((-losses[row][order], *totals))
    found = []
    for epsilon in epsilons:
        best = 0.0
        for row, own in enumerate(p):
            at = epsilon - losses[row][own > 0]
            second = np.zeros(len(at))
            for negative, above_p, above_q in profiles:
                k = np.searchsorted(negative, -at)
                with np.errstate(invalid="ignore"):
                    value = above_p[k] - np.where(above_q[k] > 0, np.exp(at) * above_q[k], 0.0)
                second = np.maximum(second, value)
            best = max(best, float((own[own > 0] * second).sum()))
        found.append(best)
    return found


def _named() -> Iterator[tuple[str, str]]:
    for case, name in itertools.product(CASES, NOISES):
        grouped = case.startswith("poisson") and case[-1] in "23"
        if name.startswith("gumbel") and (
            CASES[case].relation == "substitution" or "trunc" in case
        ):
            continue  # symmetric noise is asked for
        if name in {"student", "gumbel either way"} and grouped:
            continue  # log-concave noise is asked for, and one sign of skewed noise
        if name in {"little", "logistic", "laplace", "discrete"} and case[-1].isdigit():
            continue  # another noise of their kind is asked of every size
        yield case, name


LONG = {
    "truncated-zero_out-4",
    "truncated-zero_out-5",
    "truncated-zero_out-3",
    "truncated-add_remove-5",
    "poisson-zero_out-3",
    "with-2-1",
    "with-4-2",
    "without-5",
    "without-5-3",
    "without-4-2",
}
QUICK = {
    *((case, "gaussian") for case in CASES if case not in LONG),
    *((case, "geometric") for case in ("truncated-zero_out-4", "without-5", "poisson-zero_out-2")),
    ("poisson-add_remove", "gumbel"),
    ("none-add_remove", "gumbel either way"),
}


@pytest.mark.quick_cases(
    "none-substitution-gaussian", "none-add_remove-gaussian", "none-zero_out-gaussian"
)
@pytest.mark.parametrize(
    ("case", "name"),
    [
        pytest.param(*both, marks=() if both in QUICK else pytest.mark.slow, id="-".join(both))
        for both in _named()
    ],
)
def test_no_data_set_is_further_apart_than_the_pair(case: str, name: str) -> None:
    scheme, noise = CASES[case], NOISES[name]
    mechanism = scheme.mechanism(noise.mechanism)
    pairs = [(scheme.draw(one), scheme.draw(other)) for one, other in scheme.data(noise.values)]
    with_it, without = (np.unique(np.array(pairs), axis=0)[:, side] for side in (0, 1))
    one, two = compose(mechanism), compose(mechanism, 2)
    for side in ("remove",) if mechanism.is_mirrored else ("remove", "add"):
        laws = (with_it, without) if side == "remove" else (without, with_it)
        p, q = (sums @ noise.fine for sums in laws)
        for epsilon in EPSILONS:
            worst = float(divergences(p, q, epsilon).max())
            answer = one.delta(epsilon, direction=side)
            assert worst <= answer.delta + ROUNDING
            if one.protection.is_attained:
                assert worst >= answer.delta - CELLS
        rows = worst_of(p, q)
        p, q = (sums[rows] @ noise.coarse for sums in laws)
        for epsilon, worst in zip(EPSILONS, two_steps(p, q, EPSILONS), strict=True):
            answer = two.delta(epsilon, direction=side)
            assert worst <= answer.delta + ROUNDING
            if one.protection.is_attained:
                assert worst >= answer.delta - COARSE


def placed(records: int, steps: int, parts: int) -> list[tuple[tuple[int, ...], ...]]:
    """Return every way in which records draw their steps."""
    return list(itertools.product(itertools.combinations(range(steps), parts), repeat=records))


def epoch(noise: Noise, data: tuple[Data, ...], steps: int, parts: int) -> np.ndarray:
    """Return the law of an epoch's outputs, one axis a step; a record contributes data[i][step]."""
    cells = noise.cells(1 / 4 if steps == 2 else 1 / 2, 10)
    ways = placed(len(data), steps, parts)
    factors = [
        np.array([law([(sum(v[t] for v, own in zip(data, way, strict=True) if t in own), 1.0)])
                  for way in ways]) @ cells
        for t in range(steps)
    ]  # fmt: skip
    axes = "abc"[:steps]
    return np.einsum(",".join(f"w{a}" for a in axes) + "->" + axes, *factors) / len(ways)


@pytest.mark.parametrize(
    ("name", "relation"),
    [
        ("gaussian", "add_remove"),
        pytest.param("gaussian", "zero_out", marks=pytest.mark.slow),
        pytest.param("laplace", "add_remove", marks=pytest.mark.slow),
        pytest.param("geometric", "add_remove", marks=pytest.mark.slow),
    ],
)
def test_an_epoch_of_two_steps_whose_second_follows_the_first(name: str, relation: str) -> None:
    noise, absent = NOISES[name], () if relation == "add_remove" else ((0.0, 0.0),)
    mechanism = noise.mechanism.under(relation).subsample("random_allocation", steps=2)
    answers = {
        (side, epsilon): compose(mechanism).delta(epsilon, direction=side).delta
        for side in ("remove", "add")
        for epsilon in EPSILONS
    }
    found = dict.fromkeys(answers, 0.0)
    for first in itertools.product(WHOLE, repeat=2):
        inner = dict.fromkeys(answers, 0.0)
        for second in itertools.product(WHOLE, repeat=2):
            own, other = zip(first, second, strict=True)
            with_it, without = (
                epoch(noise, tuple(data), 2, 1) for data in ((own, other), (*absent, other))
            )
            for side, epsilon in answers:
                p, q = (with_it, without) if side == "remove" else (without, with_it)
                gap = np.maximum(p - math.exp(epsilon) * q, 0.0).sum(axis=1)
                inner[side, epsilon] = np.maximum(inner[side, epsilon], gap)
        found = {key: max(worst, float(inner[key].sum())) for key, worst in found.items()}
    assert all(found[key] <= answer + ROUNDING for key, answer in answers.items())
    assert all(found[key] >= answer - 1e-2 for key, answer in answers.items())


def test_two_participations_in_three_steps() -> None:
    noise = NOISES["gaussian"]
    steps = compose(noise.mechanism.subsample("random_allocation", steps=3, participations=2))
    asked = list(itertools.product(("remove", "add"), EPSILONS))
    answers = {(side, at): steps.delta(at, direction=side).delta for side, at in asked}
    for own, other in itertools.product(itertools.product((-1.0, 1.0), repeat=3), WHOLE):
        rest = ((other,) * 3,)
        with_it, without = (epoch(noise, data, 3, 2) for data in ((own, *rest), rest))
        for side, epsilon in asked:
            p, q = (with_it, without) if side == "remove" else (without, with_it)
            worst = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
            assert worst <= answers[side, epsilon] + ROUNDING


@functools.cache
def shown(data: Data, rate: float) -> np.ndarray:
    """Return the law of the size and the sum of a Poisson batch: a row for each size."""
    found = np.zeros((LARGEST + 1, 4 * LARGEST + 1))
    for drawn in itertools.product((0, 1), repeat=len(data)):
        chance = math.prod(rate if d else 1 - rate for d in drawn)
        total = sum(v for v, d in zip(data, drawn, strict=True) if d)
        found[sum(drawn), round(2 * total) + 2 * LARGEST] += chance
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["gaussian", *(pytest.param(n, marks=pytest.mark.slow) for n in ("laplace", "student"))]
)
@pytest.mark.parametrize(("records", "rate"), [(4, "2/5"), (3, "1/10")])
def test_averages_show_the_size_of_the_batch(name: str, records: int, rate: str) -> None:
    noise, q = NOISES[name], float(Fraction(rate))
    averaged = noise.mechanism.subsample("poisson", rate, records=records, released="average")
    one, two = compose(averaged), compose(averaged, 2)
    pairs = [
        (shown((own, *rest), q), shown(rest, q))
        for own in noise.values
        for rest in itertools.combinations_with_replacement(noise.values, records - 1)
    ]
    p, q_law = (
        (np.array(laws) @ noise.coarse).reshape(len(pairs), -1) for laws in zip(*pairs, strict=True)
    )
    more = 0.0
    for side, (p_, q_) in {"remove": (p, q_law), "add": (q_law, p)}.items():
        rows = worst_of(p_, q_)
        twice = two_steps(p_[rows], q_[rows], EPSILONS)
        for epsilon, later in zip(EPSILONS, twice, strict=True):
            worst = float(divergences(p_, q_, epsilon).max())
            assert worst <= one.delta(epsilon, direction=side).delta + ROUNDING
            assert later <= two.delta(epsilon, direction=side).delta + ROUNDING
            plain = compose(noise.mechanism.subsample("poisson", rate))
            more = max(more, worst - plain.delta(epsilon, direction=side).delta)
    assert more > 1e-3  # a data set is further apart than the pair of the sum
