"""Accountants by name, truth among them, and what they say of the directions that matter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from symdp.errors import InputError
from symdp.numeric.answer import ROUNDING, Answer
from symdp.numeric.saddle_point import log_usual_bound

if TYPE_CHECKING:
    from symdp.numeric.answer import Accountant
    from symdp.numeric.total import SumLaw
    from symdp.questions.accounted import Composed

_DIGITS = 30  # of the method truth


@dataclass(frozen=True)
class Truth:
    """δ(ε) to 30 digits, proved; of few steps as many as can be had, and the advice says so."""

    composition: Composed
    name: str = "truth"
    citations: tuple[str, ...] = ("SPA (28)",)
    is_exact: bool = True
    least_log_delta: float = -math.inf

    def log_delta(self, law: SumLaw, epsilon: float) -> Answer:
        """Return log δ(ε), rounded from 30 digits or from as many as can be had."""
        import mpmath

        from symdp.prove.truth import profile

        own = self.composition
        side = next(side for side in own.sides("both") if own.law(side) is law)
        pairs = own.accounted.pairs(side)
        found = profile(pairs, epsilon, digits=_DIGITS)
        delta = found.value
        with mpmath.workdps(_DIGITS):
            log_delta = float(mpmath.log(delta)) if delta > 0 else -math.inf
            complement = 1 - delta
            log_complement = float(mpmath.log(complement)) if complement > 0 else -math.inf
        slack = ROUNDING * abs(log_delta) if log_delta > -math.inf else 0.0
        slack += 10.0**-found.digits
        bounds = (log_delta - slack, min(log_delta + slack, 0.0))
        advice = (
            "" if found.digits >= _DIGITS and found.is_proved else f"δ is known to {found.said}"
        )
        return Answer(log_delta, *bounds, "exact", advice, log_complement=log_complement)

    def log_deltas(self, law: SumLaw, epsilons: Sequence[float]) -> list[Answer]:
        """Return log δ at several ε in the direction of the law."""
        return [self.log_delta(law, epsilon) for epsilon in epsilons]


def accountant_for(
    method: str, composition: Composed, options: Mapping[str, Any] | None = None
) -> Accountant:
    """Return the accountant of a name and its options; `truth` is made for one composition.

    Steps that are known by a Rényi curve alone leave one: InputError for the name of another.
    """
    curve = composition.step_by_curve
    if curve is not None:
        from symdp.methods.renyi import METHODS, RenyiBound

        if method not in METHODS:
            raise InputError(
                f"{curve.summary} is known by its Rényi curve alone: {method} needs the law of the "
                "loss; leave the method out, or ask renyi"
            )
        if options:
            raise InputError(f"{curve.summary}: the method of a Rényi curve takes no options")
        return RenyiBound()
    if method == "truth" and not options:
        return Truth(composition)
    if method == "contour" and not options:  # the table of routes, without what others need
        from symdp.methods.route import Contour

        return Contour()
    from symdp.methods.table import accountant, options_of

    return accountant(method, **options_of(method, options or {}))


def certified_digits(options: Mapping[str, Any]) -> int:
    """Return the digits that the method certified was asked for."""
    if not options:
        return 15
    from symdp.methods.table import options_of

    return int(options_of("certified", options)["digits"])


def answers_of(
    accountant: Accountant, laws: Mapping[str, SumLaw], epsilons: Sequence[float]
) -> list[dict[str, Answer]]:
    """Return what an accountant says at every ε of the directions that may have the larger δ."""
    found: list[dict[str, Answer]] = [{} for _ in epsilons]
    for side, law in laws.items():
        if accountant.is_exact and len(epsilons) == 1 and found[0]:
            known = [a.log_lower for a in found[0].values() if a.log_lower is not None]
            if log_usual_bound(law, epsilons[0]) < max(known, default=-math.inf):
                continue
        for answers, answer in zip(found, accountant.log_deltas(law, epsilons), strict=True):
            answers[side] = answer
    return found
