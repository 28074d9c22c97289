"""δ and ε of shuffled answers: the bound by the blanket, as law and accountant of one round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from symdp.errors import InputError
from symdp.model.local import Local
from symdp.numeric.answer import Answer
from symdp.numeric.saddle_point import log_one_minus_exp
from symdp.numeric.shuffled.blanket import Bound, best_split, blanket_bound
from symdp.numeric.total import SumLaw
from symdp.questions.guarantee import Link
from symdp.questions.invert import exceeded
from symdp.questions.shuffled.outputs import Randomizer, randomizer
from symdp.tolerances import SAME

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.numeric.answer import Accountant
    from symdp.numeric.step import Array

_LOWEST = -1e6  # of log δ where nothing is left of it
_STEEP = 1e3  # e-folds of δ below the one asked for: there no secant is of use
_FARTHEST = 1e3  # ε at which a search ends
_ITERATIONS = 60  # of a bracket
_ROUGH = 30  # of the same by saddle points
_ROUGHLY = 1e-2  # of log δ, from which on a saddle point says no more
_SECANTS = 12  # after which every other step halves the bracket
_WIDE = 1e-6  # relative: what a lattice may add to δ before an answer says so
ROUTE = "blanket"


class BlanketLaw(SumLaw):
    """Shuffled answers of one round: of their loss a bound on the profile is known, no law."""

    def __init__(self, mechanism: Mechanism) -> None:
        source = mechanism.source
        assert isinstance(source, Local)
        assert source.people is not None
        self.mechanism = mechanism
        self.people = int(source.people)
        self.kept = {}
        self.count = 1
        self._bounds: dict[float, Bound] = {}
        self._about: dict[float, float] = {}

    @cached_property
    def randomizer(self) -> Randomizer:
        """The laws of all inputs."""
        return randomizer(self.mechanism)

    def bound(self, epsilon: float) -> Bound:
        """Return the largest bound on log δ(ε) of all pairs of inputs."""
        if epsilon not in self._bounds:
            randomizer = self.randomizer
            self._bounds[epsilon] = blanket_bound(
                randomizer.outputs, randomizer.pairs, self.people, epsilon
            )
        return self._bounds[epsilon]

    def about(self, epsilon: float) -> float:
        """Return about log δ(ε), by a saddle point, of the pair that was the worst one before."""
        if epsilon not in self._about:
            randomizer = self.randomizer
            pair = randomizer.pairs[0]
            if self._bounds:
                pair = next(reversed(self._bounds.values())).pair
            cut = best_split(randomizer.outputs, pair, self.people, epsilon)
            self._about[epsilon] = max(cut.estimate.about, _LOWEST)
        return self._about[epsilon]

    @property
    def parts(self) -> Any:
        """Refused: the loss has no known law."""
        raise InputError(
            f"{self.mechanism.summary}: of shuffled answers a bound on δ is known, not the law of "
            "the loss; ask for ε, δ, a curve or a calibration"
        )

    @property
    def terms(self) -> Any:
        """Refused, as `parts`."""
        return self.parts

    @property
    def mass_at_infinity(self) -> float:
        """None that is told apart: what ε cannot tell is part of the bound."""
        return 0.0

    @property
    def log_finite_mass(self) -> float:
        """0: no output is told apart from the others."""
        return 0.0

    @property
    def log_common_mass(self) -> float:
        """0 at most, which is all that is known."""
        return 0.0

    @property
    def domain(self) -> tuple[float, float]:
        """Every tilt."""
        return -math.inf, math.inf

    @property
    def loss_bounds(self) -> tuple[float, float]:
        """No bounds are used."""
        return -math.inf, math.inf

    @cached_property
    def uncertain_mass(self) -> float:
        """None that is counted apart."""
        return 0.0

    @property
    def is_spread(self) -> bool:
        """Nothing tells that it takes single values."""
        return True

    def cumulants(self, tilt: float, order: int) -> Array:
        """Return about what mean and variance the loss has: where a search starts."""
        outputs = self.randomizer.outputs
        least = outputs.least
        counts = least > 0.0
        spreads = []
        for first, second in self.randomizer.pairs[:8]:
            difference = outputs.densities[first] - outputs.densities[second]
            ratios = np.minimum(np.abs(difference[counts] / least[counts]), 1e3)
            weights = (least * outputs.weights)[counts]
            spreads.append(float(weights @ ratios**2))
        return np.array([0.0, max(*spreads, 1e-12) / self.people])


@dataclass(frozen=True)
class Blanket:
    """δ ≤ E[(Σ X)₊]/n by the blanket [Balle2019, Lemma 5.3], of one round of shuffled answers."""

    name: str = "contour"
    citations: tuple[str, ...] = ("Balle2019",)
    is_exact: bool = False
    least_log_delta: float = -math.inf

    def log_delta(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the bound at one ε, of kind "bound"."""
        assert isinstance(law, BlanketLaw)
        bound = law.bound(abs(epsilon))
        log_delta = bound.log_delta
        if epsilon < 0.0:
            # δ(ε) = 1 − e^ε (1 − δ(−ε)) of the pair exchanged, which is bounded too
            log_delta = log_one_minus_exp(epsilon + log_one_minus_exp(log_delta))
        return Answer(log_delta, None, log_delta, "bound", _advice(law, bound), route=ROUTE)

    def log_deltas(self, law: SumLaw, epsilons: Sequence[float]) -> list[Answer]:
        """Return log δ at several ε."""
        return [self.log_delta(law, epsilon) for epsilon in epsilons]


def _advice(law: BlanketLaw, bound: Bound) -> str:
    """Return what is not proved of the bound, and how wide it is where that shows."""
    words = []
    randomizer = law.randomizer
    if not randomizer.worst:
        first, second = (randomizer.inputs[index] for index in bound.pair)
        words.append(
            f"the worst of {len(randomizer.pairs)} pairs of inputs is {first} and {second}; "
            f"{randomizer.worst.reason}"
        )
    if bound.share > _WIDE:
        words.append(f"rounding upwards may have added a share of {bound.share:.0e}")
    return "; ".join(words)


def least_epsilon(accountant: Accountant, law: BlanketLaw, log_delta: float) -> Link:
    """Return an ε ≥ 0 at which the bound is at most δ, next to the least.

    A saddle point says about where it lies and how fast log δ falls; then secants.
    """
    answers: dict[float, Answer] = {}

    def height(epsilon: float) -> float:
        if epsilon not in answers:
            answers[epsilon] = accountant.log_delta(law, epsilon)
        return max(answers[epsilon].log_delta, _LOWEST) - log_delta

    def link(epsilon: float) -> Link:
        answer = answers[epsilon]
        return Link(epsilon, None, epsilon, "bound", answer.advice, answer.route)

    low = 0.0
    high = math.inf
    epsilon, slope = _about_where(law, log_delta)
    for number in range(_ITERATIONS):
        value = height(epsilon)
        if value <= 0.0:
            high = epsilon
        else:
            low = epsilon
        if high < math.inf and (high - low <= SAME * high or height(high) > -SAME):
            break
        if low > _FARTHEST:
            raise _flat(law, log_delta)
        following = epsilon - (value + 0.3 * SAME) / slope
        if following <= 0.0:
            if height(0.0) <= 0.0:
                return link(0.0)
            following = 0.5 * (low + epsilon)
        following = min(following, 2.0 * epsilon)
        is_slow = number > _SECANTS and number % 2 == 0
        if value < -_STEEP or is_slow or not low < following < high:
            following = 0.5 * (low + min(high, 2.0 * epsilon))
        rise = height(following) - value
        if rise * (following - epsilon) < 0.0 and value > -_STEEP:
            slope = rise / (following - epsilon)
        epsilon = following
    if high == math.inf:
        raise _flat(law, log_delta)
    return link(high)


def _about_where(law: BlanketLaw, log_delta: float) -> tuple[float, float]:
    """Return about where the bound falls to a δ, and the slope of log δ there."""
    width = math.sqrt(float(law.cumulants(0.0, 2)[1]))
    low = 0.0
    high = math.inf
    epsilon = width * max(exceeded(log_delta), 0.5)
    # log δ is nearly a parabola of ε
    slope = -epsilon / width**2
    for _ in range(_ROUGH):
        value = law.about(epsilon) - log_delta
        if value <= 0.0:
            high = epsilon
        else:
            low = epsilon
        if abs(value) < _ROUGHLY or low > _FARTHEST:
            break
        following = min(epsilon - value / slope, 2.0 * epsilon)
        if not low < following < high:
            following = 0.5 * (low + min(high, 2.0 * epsilon))
        rise = law.about(following) - log_delta - value
        if rise * (following - epsilon) < 0.0 and math.isfinite(rise):
            slope = rise / (following - epsilon)
        epsilon = following
    return min(epsilon, _FARTHEST), slope


def _flat(law: BlanketLaw, log_delta: float) -> InputError:
    return InputError(
        f"{law.mechanism.summary}: δ does not fall to {math.exp(log_delta):.3g}, as some "
        "outputs are told apart by no shuffling; ask for a larger delta"
    )
