"""δ(ε) beside rare large losses, as a sum over how many of the steps have one.

With A and B a step's loss given that it is above or below a threshold c, and p the probability that
it is above,

    δ(ε) = Σ_j C(n, j) p^j (1 − p)^{n−j} E[G_j(ε − B₁ − … − B_{n−j})],
    G_j(u) = E[(1 − e^{u − A₁ − … − A_j})⁺].

G_j is smooth for u > jc, and the small losses hardly ever add up to more than ε − jc: so its mean
over their sum is that over the few nodes of a Gauss rule of the sum, all of one sign. The nodes of
the rules of two sums, added up in pairs, have a Gauss rule of their own, with all moments that
count [W. B. Gragg, W. J. Harwood, Numer. Math. 44 (1984) 317]; so a thousand steps take ten such
pairs. G₁ is a mean over panels, and G_j that of G_{j−1}, a series on panels (`kernels`).

All is under a tilt that makes ε typical. Two rules, halved panels and the last coefficients of
series tell the errors; Chernoff's bound tells what small losses alone add, and more large losses
than are counted, and what small ones add beyond ε − jc.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from symdp.errors import AccuracyError
from symdp.numeric.answer import MOST_NODES, ROUNDING, SAFETY, SETTLED, TOLERABLE, Answer, margin
from symdp.numeric.contour import epsilons_of_line
from symdp.numeric.cut_off import laws_around
from symdp.numeric.elementary import distinct, log_payoff, log_sum
from symdp.numeric.few.kernels import MeanSeries, Payoff, SlopeOf
from symdp.numeric.few.monotone import Kernel, TiltedStep, UnsettledError
from symdp.numeric.line import LineError, StripValue, answer_from_strips
from symdp.numeric.loss import LossLaw
from symdp.numeric.saddle_point import Strip, has_no_typical_tilt
from symdp.numeric.step import Array
from symdp.numeric.total import SumLaw, kept_with_law
from symdp.tolerances import LARGEST_EXPONENT, MASS_ROUNDED, NEGLIGIBLE, ROUNDED


def large_losses_answer(law: SumLaw, epsilon: float) -> Answer | None:
    """Return δ(ε) of equal steps, None of others and where the sum does not settle."""
    if len(law.parts) != 1 or law.count < 3 or not law.is_spread:
        return None
    if type(law.parts[0][0]) is not LossLaw:
        return None

    def value(strip: Strip) -> StripValue | None:
        return _strip_value(law, epsilon, strip)

    with suppress(AccuracyError):
        answer = answer_from_strips(law, value)
        if answer is not None and margin(answer) <= TOLERABLE:
            return answer
    return None


def _strip_value(law: SumLaw, epsilon: float, strip: Strip) -> StripValue | None:
    if strip is not Strip.RIGHT:
        return None
    served = None
    if not has_no_typical_tilt(law, epsilon):
        served = epsilons_of_line(law, epsilon, strip)
        if served is None:
            return None
    if served is None:  # every tilt serves, as any will do
        served = 0.5 * law.domain[1], 0.0, math.inf
    tilt, lowest, highest = served
    if not epsilon > max(law.mean, 0.0):
        return None
    # K rises so steeply that a tilt's stretch is wide: an eighth of an octave has one threshold.
    part = math.floor(8.0 * math.log2(epsilon))
    lowest = max(lowest, 2.0 ** (0.125 * part))
    highest = min(highest, 2.0 ** (0.125 * (part + 1)))
    steps = _large_losses(law, tilt, lowest, highest)
    return None if steps is None else steps.value(epsilon)


@kept_with_law
def _large_losses(law: SumLaw, tilt: float, lowest: float, highest: float) -> _LargeLosses | None:
    """Return the terms of the sum for all ε between two, None where there are none."""
    with suppress(AccuracyError):
        plan = _threshold_plan(law, tilt, lowest)
        if plan is not None:
            return _LargeLosses(law, lowest, highest, plan)
    return None


@dataclass(frozen=True)
class _Plan:
    """What a step's losses are parted by, and how many large ones are counted."""

    threshold: float
    tilt: float
    most: int
    log_missed: float  # of what all others add


class _Sides:
    """Masses of a step's losses above and below a threshold, as nodes tell."""

    def __init__(self, law: SumLaw, tilt: float, epsilon: float, threshold: float) -> None:
        [(part, self._count)] = law.parts
        self._end = law.domain[1]
        self._nodes = (part.base, part.tilted(tilt).nodes)  # far tilts have nodes of their own
        self._epsilon = epsilon
        self._tilts = np.append(np.linspace(0.0, tilt, 9), np.geomspace(1.2, 64.0, 16) * tilt)
        self.threshold = threshold
        self._log_small = self._log_moments(is_large=False)
        self._log_large = self._log_moments(is_large=True)

    def _log_moments(self, is_large: bool) -> Array:
        """Return log E[e^{sL}; L] at every tilt s, of losses on one side of the threshold."""
        best = np.full(self._tilts.size, -math.inf)
        for nodes in self._nodes:
            chosen = (nodes.loss > self.threshold) == is_large
            if not chosen.any():
                continue
            exponents = np.multiply.outer(self._tilts, nodes.loss[chosen])
            exponents += nodes.log_weight[chosen]
            top = exponents.max(axis=1)
            sums = np.exp(exponents - top[:, None]).sum(axis=1)
            best = np.maximum(best, top + np.log(sums))
        if is_large:
            best[self._tilts >= self._end] = math.inf
        return best

    def log_chance(self) -> float:
        """Return the log of how many losses are large in the mean."""
        return math.log(self._count) + float(self._log_large[0])

    def log_small(self) -> float:
        """Bound what no large loss adds."""
        if self._count * self.threshold <= self._epsilon:
            return -math.inf
        chernoff = self._count * self._log_small - self._tilts * self._epsilon
        return float((chernoff + log_payoff(self._tilts)).min())

    def log_rough(self) -> float:
        """Bound what small ones add where G_j is not smooth."""
        count = self._count
        if count * self.threshold <= self._epsilon:
            return -math.inf
        log_large = float(self._log_large[0])
        logs = []
        for j in range(1, min(_most_large(count), count - 1) + 1):
            left = self._epsilon - j * self.threshold
            chernoff = (count - j) * self._log_small - self._tilts * left
            logs.append(_log_binomial(count, j) + j * log_large + float(chernoff.min()))
        return log_sum(np.asarray(logs))

    def log_more(self, most: int) -> float:
        """Bound what more large losses than `most` add."""
        count = self._count
        log_payoffs = log_payoff(self._tilts) - self._tilts * self._epsilon
        logs = [-math.inf]
        for j in range(most + 1, min(count, most + 12) + 1):
            chernoff = j * self._log_large + (count - j) * self._log_small + log_payoffs
            logs.append(_log_binomial(count, j) + float(chernoff.min()))
        return log_sum(np.asarray(logs))

    def tilt_of_one(self) -> float:
        """Return about the tilt under which a large loss is typically ε: nearer to 0 than K's."""
        exponents = self._log_large - self._tilts * self._epsilon
        return float(self._tilts[1 + int(exponents[1:].argmin())])

    def log_one_loss(self, others: float) -> float:
        """Return about the δ of one large loss, the others being at their mean."""
        best = -math.inf
        for nodes in self._nodes:
            over = nodes.loss + others - self._epsilon
            is_over = over > 0.0
            logs = nodes.log_weight[is_over] + np.log(-np.expm1(-over[is_over]))
            best = max(best, log_sum(np.append(logs, -math.inf)))
        return math.log(self._count) + best


def _most_large(count: int) -> int:
    """Return how many large losses may count, each a series of series."""
    return min(count, 7)


def _log_binomial(count: int, j: int) -> float:
    """Return log C(n, j)."""
    return math.log(math.comb(count, j))


def _threshold_plan(law: SumLaw, tilt: float, epsilon: float) -> _Plan | None:
    """Return how losses are parted at an ε, None where large losses are not rare enough."""
    count = law.count
    others = law.mean * (count - 1) / count
    shares = [2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 36]  # of ε: the others are made negligible
    if count < shares[-1]:
        shares = [share for share in shares if share < count]
        shares.append(count)
    plan = None
    for share in shares:
        sides = _Sides(law, tilt, epsilon, epsilon / share)
        log_delta = sides.log_one_loss(others)
        if log_delta == -math.inf:
            return None
        if sides.log_chance() > math.log(0.25):  # they are not rare: a line is shorter
            return plan
        missed = float(np.logaddexp(sides.log_small(), sides.log_rough()))
        for most in range(1, _most_large(count) + 1):
            log_missed = float(np.logaddexp(missed, sides.log_more(most)))
            least = log_delta - 0.7 * NEGLIGIBLE
            if log_missed <= least:
                return _Plan(epsilon / share, sides.tilt_of_one(), most, log_missed)
            is_less = plan is None or log_missed < plan.log_missed
            if is_less and log_missed <= log_delta - 0.5 * NEGLIGIBLE:
                plan = _Plan(epsilon / share, sides.tilt_of_one(), most, log_missed)
    return plan


class _LargeLosses:
    """The terms of the sum under one tilt, for every ε between two."""

    def __init__(
        self,
        law: SumLaw,
        lowest: float,
        highest: float,
        plan: _Plan,
    ) -> None:
        threshold = plan.threshold
        tilt = plan.tilt
        self._most = plan.most
        self._log_missed = plan.log_missed
        self._tilt = tilt
        self._count = law.count
        self._log_finite = law.log_finite_mass
        parts = laws_around(law, 0, threshold)
        if parts is None:
            raise UnsettledError("the losses are not parted at one place")
        (below, above), (_, log_above) = parts
        if not log_above < 0.0:
            raise UnsettledError("no mass is seen below the threshold")
        self._small = TiltedStep(below, tilt)
        self._large = TiltedStep(above, tilt)
        self._finer = self._large.halved()
        self._log_large = log_above + self._large.log_mass
        log_mass, unseen = _log_mass(self._small)
        self._log_small = math.log1p(-math.exp(log_above)) + log_mass
        self._missed = self._large.missed + self._count * (self._small.missed + unseen)
        self._rules = self._sums_of_small()
        farthest = highest - min(float(places.min()) for places, _, _ in self._rules.values())
        if self._large.atom_loss.size or self._may_meet_kinks(1, lowest, highest):
            raise UnsettledError("what large losses leave has kinks")
        counts = range(2, self._most + 1)
        self._kinked = {j for j in counts if self._may_meet_kinks(j, lowest, highest)}
        self._kernels: list[Kernel] = [Payoff(tilt)]
        middle = 0.5 * (lowest + highest)
        total = self._term(1, middle)[0]
        if not total > 0.0:
            raise UnsettledError("the mean cancelled to nothing")
        low = -NEGLIGIBLE / tilt
        rough = 1e-5  # of a first series, which tells how much it counts
        for j in range(2, self._most + 1):
            before = self._kernels[-1]
            self._kernels.append(MeanSeries(self._large, before, low, farthest, rough))
            share = self._term(j, middle)[0] / total
            enough = 0.01 * SETTLED / max(share, SETTLED)
            if enough < rough:
                self._kernels[-1] = MeanSeries(self._large, before, low, farthest, enough)

    def _may_meet_kinks(self, j: int, lowest: float, highest: float) -> bool:
        """Whether what j large losses leave may have a kink where small ones add up to it."""
        places, _, _ = self._rules[j]
        kinks = distinct(self._large.kinks)  # the first is the threshold
        sums = kinks[1:]
        for _ in range(j - 1):
            if sums.size * kinks.size > MOST_NODES:
                return True
            sums = distinct(np.add.outer(sums, kinks).ravel())
            sums = sums[sums < highest - places.min()]
        is_met = (sums > lowest - places.max()) & (sums < highest - places.min())
        return bool(is_met.any())

    def _sums_of_small(self) -> dict[int, tuple[Array, Array, Array]]:
        """Return nodes of the sum of the losses beside j large ones, and weights by two rules.

        Each rule's weights are 0 at the nodes of the other.
        """
        places = [self._small.atom_loss]
        weights = [self._small.atom_weight]
        for panels in self._small.panels:
            places.append(panels.loss.ravel())
            weights.append(panels.weight.ravel())
        losses = np.concatenate(places)
        masses = np.concatenate(weights)
        rules: dict[int, list[Rule]] = {}
        for order in (20, 30):
            rule_of_step = gauss_rule(losses, masses / masses.sum(), order)
            least = max(self._count - self._most, 0)
            rule = power_rule(rule_of_step, least, order)
            for j in range(self._count - least, 0, -1):
                rules.setdefault(j, []).append(rule)
                rule = sum_rule(rule, rule_of_step, order)
        both = {}
        for j, (first, second) in rules.items():
            nothing = np.zeros_like
            both[j] = (
                np.append(first[0], second[0]),
                np.append(first[1], nothing(second[1])),
                np.append(nothing(first[1]), second[1]),
            )
        return both

    def _term(self, j: int, epsilon: float) -> tuple[float, float, float]:
        """Return the term of j large losses, less e^{log of the first}, its slope and its error."""
        places, coarse_weights, weights = self._rules[j]
        kernel = self._kernels[j - 1]
        centres = epsilon - places
        values = self._large.means(kernel, centres)
        finer = self._finer.means(kernel, centres[weights > 0.0])
        slopes = self._large.means(SlopeOf(kernel), centres)
        mean = float(weights @ values)
        changed = np.abs(values[weights > 0.0] - finer)
        error = abs(mean - float(coarse_weights @ values))
        if j in self._kinked:  # there both rules are off by about as much as they differ
            error *= SAFETY
        error += float(weights[weights > 0.0] @ changed)
        if isinstance(kernel, MeanSeries):
            means = [self._large.rough_mean(kernel.error, centre) for centre in centres.tolist()]
            error += float(weights @ np.asarray(means))
        log_scale = self._log_weight(j) - self._log_weight(1)
        if log_scale > LARGEST_EXPONENT:
            raise UnsettledError("large losses are not rare under the tilt")
        scale = math.exp(log_scale)
        return scale * mean, scale * float(weights @ slopes), scale * error

    def _log_weight(self, j: int) -> float:
        """Return log C(n, j) + j log M_A + (n − j) log M_B, of masses under the tilt."""
        log_count = _log_binomial(self._count, j) + self._log_finite
        return log_count + j * self._log_large + (self._count - j) * self._log_small

    def value(self, epsilon: float) -> StripValue:
        """Return the logarithm of the sum at one ε, with its errors."""
        tilt = self._tilt
        terms = [self._term(j, epsilon) for j in range(1, self._most + 1)]
        total, by_epsilon, error_of_terms = (
            math.fsum(column) for column in zip(*terms, strict=True)
        )
        if not total > 0.0:
            raise UnsettledError("the mean cancelled to nothing")
        log_weight = self._log_weight(1)
        log_value = log_weight - tilt * epsilon + math.log(total)
        slope = by_epsilon / total - tilt
        steepness = 1.0 + abs(tilt) + abs(slope)
        of_balls = self._count * self._small.rounding(steepness) + self._large.rounding(steepness)
        far = float(self._rules[1][0].max()) - float(self._rules[1][0].min())
        sums = 8.0 + abs(log_weight) + steepness * (abs(epsilon) + far)
        missed = math.exp(min(self._log_missed - log_value, 0.0))
        for panels in self._large.panels:
            missed += (100.0 + panels.lower.size) * panels.least_mass / total
        error = LineError(
            outside=self._missed + missed,
            quadrature=error_of_terms / total + 4.0 * ROUNDED,
            rounding=ROUNDING * sums + of_balls,
        )
        return StripValue(log_value, error, slope, assured=True)


def _log_mass(step: TiltedStep) -> tuple[float, float]:
    """Return log E e^{tL} from growths, as many are added up, and what of the mass is unseen."""
    losses = [step.atom_loss, *(panels.loss.ravel() for panels in step.panels)]
    weights = [step.atom_weight, *(panels.weight.ravel() for panels in step.panels)]
    loss = np.concatenate(losses)
    weight = np.concatenate(weights)
    whole = float(weight.sum())
    change = weight @ np.expm1(-step.tilt * loss)  # of the mass where the tilt is taken back
    if not change > -whole:
        raise UnsettledError("under the tilt nothing is seen of the small losses' mass")
    fall = float(change) / whole
    mass = math.exp(step.log_mass) * whole * (1.0 + fall)
    return -math.log1p(fall), max(abs(mass - 1.0) - MASS_ROUNDED, 0.0)


Rule = tuple[Array, Array]  # places and weights


def gauss_rule(losses: Array, weight: Array, order: int) -> Rule:
    """Return the rule of so many nodes with the same moments, of mass 1, by Lanczos' method."""
    total = float(weight.sum())
    centre = float(weight @ losses) / total
    spread = math.sqrt(float(weight @ (losses - centre) ** 2) / total)
    if not spread > 0.0 or losses.size <= order:
        return losses, weight / total
    u = (losses - centre) / spread
    basis = np.zeros((order, losses.size))
    basis[0] = np.sqrt(weight / total)
    diagonal = np.zeros(order)
    beside = np.zeros(order)
    size = 1
    for k in range(order):
        following = u * basis[k]
        diagonal[k] = following @ basis[k]
        for _ in range(2):  # orthogonal to rounding
            following = following - (basis[: k + 1] @ following) @ basis[: k + 1]
        beside[k] = math.sqrt(float(following @ following))
        size = k + 1
        if size == order or beside[k] < SETTLED:
            break
        basis[size] = following / beside[k]
    inner = beside[: size - 1]
    matrix = np.diag(diagonal[:size]) + np.diag(inner, 1) + np.diag(inner, -1)
    nodes, vectors = np.linalg.eigh(matrix)
    shares = vectors[0] ** 2
    return centre + spread * nodes, shares / shares.sum()  # else a thousand steps add up roundings


def sum_rule(first: Rule, second: Rule, order: int) -> Rule:
    """Return a rule of the sum of two independent numbers."""
    sums = np.add.outer(first[0], second[0])
    weight = np.multiply.outer(first[1], second[1])
    return gauss_rule(sums.ravel(), weight.ravel(), order)


def power_rule(rule: Rule, count: int, order: int) -> Rule:
    """Return a rule of the sum of so many equal numbers."""
    total: Rule = (np.zeros(1), np.ones(1))
    while count:
        if count & 1:
            total = sum_rule(total, rule, order)
        count >>= 1
        if count:
            rule = sum_rule(rule, rule, order)
    return total
