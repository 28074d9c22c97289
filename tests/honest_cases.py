"""Random questions, each from a seed: a mechanism, its sampling, a count, an ε and a direction."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalogue import ALL
from flint import arb, ctx

from symdp import compose, mechanisms
from symdp.errors import AccuracyError, InputError
from symdp.prove.inverse import larger_delta

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.questions.guarantee import Guarantee

COUNTS = (1, 1, 2, 3, 5, 10, 30, 100, 1000, 10**4, 10**6, 10**9)
BUILT_IN = {
    "gaussian": ("sigma",),
    "laplace": ("b",),
    "logistic": ("s",),
    "gumbel": ("b",),
    "student_t": ("nu", "s"),
    "discrete_laplace": ("b",),
    "discrete_gaussian": ("sigma",),
    "randomized_response": ("epsilon_0",),
}
SYMMETRIC = ("gaussian", "laplace", "logistic", "student_t")
RATES = ("1/2", "1/10", "1/100", "1/1000")
DIGITS = 14


@dataclass(frozen=True)
class Case:
    """One question."""

    name: str
    mechanism: Mechanism
    count: int
    epsilon: float
    direction: str

    def __str__(self) -> str:
        return f"{self.name} x {self.count}, epsilon={self.epsilon!r}, {self.direction}"


def draw(seed: int) -> Case:
    """Return the question of a seed."""
    chance = random.Random(seed)
    name, mechanism = _mechanism(chance)
    count = chance.choice(COUNTS)
    direction = chance.choice(("remove", "add"))
    law = compose(mechanism, count).law(direction)
    mean, variance = (float(value) for value in law.cumulants(0.0, 2))
    kind, size = chance.choice(("usual", "usual", "tail", "head", "plain")), chance.random()
    deviation = math.sqrt(variance) if math.isfinite(variance) else 1.0
    mean = mean if math.isfinite(mean) else 0.0
    bottom, top = law.loss_bounds
    if kind == "usual":
        epsilon = mean + (8 * size - 2) * deviation
    elif kind == "tail":
        epsilon = mean + 30 * size * deviation
    elif kind == "head":
        epsilon = mean - 6 * size * deviation
    else:
        epsilon = 10 ** (3 * size - 2)
    if not math.isfinite(epsilon):  # of a loss whose variance is infinite
        epsilon = 10 ** (3 * size - 2)
    # Near the ends of the range, too, but not often beyond them.
    if epsilon >= top:
        epsilon = mean + (top - mean) * chance.random()
    if epsilon <= bottom:
        epsilon = bottom + (mean - bottom) * chance.random()
    return Case(name, mechanism, count, float(f"{epsilon:.6g}"), direction)


def _mechanism(chance: random.Random) -> tuple[str, Mechanism]:
    while True:
        name = chance.choice([*BUILT_IN, *BUILT_IN, *ALL])
        if name in BUILT_IN:
            free = {word: chance.choice(("1/2", "1", "3/2", "3", "10")) for word in BUILT_IN[name]}
            made = getattr(mechanisms, name)(**free)
        else:
            raw = ALL[name].mechanism(name)
            free = {word: _value(chance, word, raw) for word in raw.parameters}
            made = raw(**free)
        words = ", ".join(f"{key}={value}" for key, value in free.items())
        label = f"{name}({words})"
        try:
            if made.sampling is None and chance.random() < 0.5:
                scheme = "poisson"
                if name in SYMMETRIC and chance.random() < 0.3:
                    scheme = chance.choice(("without_replacement", "with_replacement"))
                rate = chance.choice(RATES)
                made = made.subsample(scheme, rate, 3 if scheme == "with_replacement" else None)
                label += f" {scheme} {rate}"
            compose(made, 1)
        except InputError:  # values at which it is no density: draw again
            continue
        return label, made


def _value(chance: random.Random, word: str, raw: Mechanism) -> str:
    domain = next(parameter.domain for parameter in raw.declared if parameter.name == word)
    if "probability" in domain:
        return chance.choice(("1/3", "1/2", "1/20", "7/10"))
    return chance.choice(("1", "2", "3/2", "5"))


def proved(case: Case) -> arb:
    """Return the certified δ; AccuracyError where there is no proof."""
    steps = compose(case.mechanism, case.count)  # their densities have mass 1 exactly
    pairs = {side: steps.accounted.pairs(side) for side in steps.sides(case.direction)}
    return larger_delta(pairs, case.epsilon, DIGITS)[1]


def answered(case: Case) -> Guarantee:
    """Return the contour's answer."""
    return compose(case.mechanism, case.count).delta(case.epsilon, direction=case.direction)


def is_honest(answer: Guarantee, truth: arb) -> bool:
    """Whether the proved value is not proved to lie outside the bounds of an answer."""
    assert answer.log_lower is not None
    assert answer.log_upper is not None
    with ctx.workprec(200):
        if truth.is_zero():
            return answer.log_lower == -math.inf
        log = truth.log()
        low = answer.log_lower == -math.inf or not log < arb(answer.log_lower)
        return low and not log > arb(answer.log_upper)


def judge(seed: int) -> tuple[str, str]:
    """Return what became of a seed: a verdict, and the case in words."""
    case = draw(seed)
    try:
        answer = answered(case)
    except AccuracyError as error:
        return "failed", f"{case}: {error}"
    if math.isnan(answer.log_delta):
        return "violated", f"{case}: NaN"
    try:
        truth = proved(case)
    except AccuracyError as error:
        return "unproved", f"{case}: {error}"
    if is_honest(answer, truth):
        return "honest", str(case)
    bounds = (answer.log_lower, answer.log_upper)
    return "violated", f"{case}: bounds {bounds} on log δ, proved {truth.log().str(20)}"
