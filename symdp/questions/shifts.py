"""What an answer says of smaller shifts where it is for exactly the sensitivity."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from symdp.arguments import EXACTLY
from symdp.questions.accounted import has_one_shift, proved_shift
from symdp.questions.guarantee import Guarantee

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism

_SMALLER = 8  # smaller shifts that are tried, where there is no proof: k D/8
_SECONDS = 10.0  # after which no further one is tried


G = TypeVar("G", bound=Guarantee)
Steps = Iterable[tuple["Mechanism", int]]
Composed = Callable[[Any], Any]  # a composition of steps


def told_of_shifts(answer: G, given: Callable[[], Steps], composed: Composed) -> G:
    """Return an answer that says what it is for other shifts.

    Where nothing is proved of smaller shifts though they were meant, the largest δ that a search of
    them finds is told.
    """
    whose = answer.protection
    # What is imported for more than this is not needed where a formula is known.
    if whose is None or whose.is_of_all_shifts or whose.shift != EXACTLY:
        return answer
    steps = list(given())
    if any(_is_open(mechanism) for mechanism, _ in steps):
        found = _larger_at_smaller_shifts(steps, answer.epsilon, composed)
        if found is not None:
            smaller, part = found
            than = "more" if smaller > answer.delta else "not more"
            advice = (
                f"nothing is proved of shifts below the sensitivity; at {part} of it δ = "
                f"{smaller:.6g} was found, {than} than here"
            )
            return replace(answer, advice="; ".join(filter(None, (answer.advice, advice))))
    return answer


def _is_open(mechanism: Mechanism) -> bool:
    """Whether smaller shifts were meant, and are soon tried: an epoch of many steps is not."""
    from symdp.model.schemes import ALLOCATION

    epoch = mechanism.sampling is not None and mechanism.sampling.scheme == ALLOCATION
    return mechanism.shift != EXACTLY == proved_shift(mechanism) and not epoch


def is_proved_at_all_values(mechanism: Mechanism) -> bool:
    """Return whether other values of the parameters are answered for the same shifts."""
    from symdp.density.modes import has_one_mode_always
    from symdp.model.sampling import Noise

    if not isinstance(mechanism.source, Noise) or mechanism.shift == EXACTLY:
        return True
    return has_one_shift(mechanism.template or mechanism) or has_one_mode_always(mechanism)


def _larger_at_smaller_shifts(
    steps: list[tuple[Mechanism, int]], epsilon: float, composed: Composed
) -> tuple[float, Fraction] | None:
    """Return the largest δ(ε) found where a record moves every output by a part of D, and the part.

    None where nothing else is a shift, as of integers. A search, no proof.
    """
    found: list[tuple[float, Fraction]] = []
    start = time.perf_counter()
    for k in sorted(range(1, _SMALLER), key=lambda k: (-math.gcd(k, _SMALLER), k)):
        part = Fraction(k, _SMALLER)
        if found and time.perf_counter() - start > _SECONDS:
            break
        moved = [(_at_part(mechanism, part), count) for mechanism, count in steps]
        if all(mechanism is not None for mechanism, _ in moved):
            found.append((composed(moved).delta(epsilon).delta, part))
    return max(found, default=None)


def _at_part(mechanism: Mechanism, part: Fraction) -> Mechanism | None:
    """Return the step where a record moves its output by exactly a part of D."""
    from symdp.model.sampling import Noise

    if not isinstance(mechanism.source, Noise):
        return mechanism
    size = mechanism.source.sensitivity * part
    if mechanism.support.kind != "interval" and not size.is_integer:
        return None
    return replace(mechanism, shift=EXACTLY).moved_by(size)
