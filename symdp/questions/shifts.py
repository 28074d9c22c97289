"""How far a record may move the output that noise is added to, and what is answered for that.

The sensitivity D of noise is the most that a record moves the output by. The pair at exactly D is
the worst of all where the noise has one mode (`symdp.derive.modes`); else one pair stands for every
shift (`symdp.questions.worst_shift`), or the answer says that it is for exactly D.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from symdp.arguments import AT_MOST, EXACTLY
from symdp.errors import AccuracyError
from symdp.model.relation import SUBSTITUTION, UPWARDS
from symdp.questions.guarantee import Guarantee

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.model.relation import Protection

_SMALLER = 8  # smaller shifts that are tried, where there is no proof: k D/8
_SECONDS = 10.0  # after which no further one is tried


@dataclass(frozen=True)
class Answered:
    """What is accounted for in place of a step.

    Attributes
    ----------
    step
        The step itself, or the pair of all its shifts.
    shift
        How far a record may move its output, as `Protection.shift` has it.
    is_of_all_shifts
        Whether it is that pair, an upper bound.
    """

    step: Mechanism
    shift: str
    is_of_all_shifts: bool = False


def accounted(
    steps: Mapping[Mechanism, int],
) -> tuple[dict[Mechanism, int], Protection, Literal["proved", "seen"]]:
    """Return what answers for steps, whose privacy it speaks of, and what is known of the masses.

    Raises
    ------
    InputError : two steps speak of different neighbours, or a density is none.
    """
    from symdp.balls.masses import checked_steps
    from symdp.model.protection import protection_of
    from symdp.questions.steps import merged_steps, of_independent_steps

    protection_of(list(steps))  # what is refused is refused before the work
    # A density is checked before a pair takes its place.
    checked, mass = checked_steps(merged_steps(of_independent_steps(steps)))
    found = [answered(mechanism) for mechanism in checked]
    shifts, bounds = [one.shift for one in found], any(one.is_of_all_shifts for one in found)
    pairs = [(one.step, count) for one, count in zip(found, checked.values(), strict=True)]
    return merged_steps(pairs), protection_of(list(steps), shifts, bounds), mass


def answered(mechanism: Mechanism) -> Answered:
    """Return the pair that answers for a step, and for which shifts it does.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> [answered(m).shift for m in (mechanisms.laplace(b=2), mechanisms.gumbel(b=2))]
    ['at most', 'at most, upwards']
    """
    shift = proved_shift(mechanism)
    sampling = mechanism.sampling
    mixes = sampling is None or (sampling.scheme == "poisson" and sampling.group == 1)
    if shift == EXACTLY != mechanism.shift and mixes:
        from symdp.questions.worst_shift import worst_pair

        try:
            return Answered(worst_pair(mechanism), AT_MOST, True)
        except AccuracyError:
            pass  # no enclosure of the density
    return Answered(mechanism, shift)


def proved_shift(mechanism: Mechanism) -> str:
    """Return for which shifts the step's own pair is proved; empty for laws that were given."""
    from symdp.derive.modes import has_one_mode
    from symdp.model.noise_shape import centre_of
    from symdp.model.sampling import Noise

    source = mechanism.source
    if not isinstance(source, Noise):
        return ""
    if mechanism.neighbours == SUBSTITUTION:
        return AT_MOST  # its pair asks for noise that is symmetric and falls
    if mechanism.shift == EXACTLY or not (_has_one_shift(mechanism) or has_one_mode(mechanism)):
        return EXACTLY
    own = mechanism.template or mechanism
    even = centre_of(own.source.density, own.variable, own.support)  # type: ignore[union-attr]
    return UPWARDS if even is None else AT_MOST


G = TypeVar("G", bound=Guarantee)
Steps = Iterable[tuple["Mechanism", int]]
Composed = Callable[[Any], Any]  # a composition of steps


def told_of_shifts(answer: G, steps: Steps, composed: Composed) -> G:
    """Return an answer that says what it is for other shifts.

    Where nothing is proved of smaller shifts though they were meant, the largest δ that a search of
    them finds is told.
    """
    whose = answer.protection
    # What is imported for more than this is not needed where a formula is known.
    if whose is None or whose.is_of_all_shifts or whose.shift != EXACTLY:
        return answer
    steps = list(steps)
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
    from symdp.derive.modes import has_one_mode_always
    from symdp.model.sampling import Noise

    if not isinstance(mechanism.source, Noise) or mechanism.shift == EXACTLY:
        return True
    return _has_one_shift(mechanism.template or mechanism) or has_one_mode_always(mechanism)


def _has_one_shift(mechanism: Mechanism) -> bool:
    """Whether there is none between 0 and D, as of whole numbers for D = 1."""
    size = mechanism.source.sensitivity  # type: ignore[union-attr]
    return mechanism.support.kind != "interval" and size == 1


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
