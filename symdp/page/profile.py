"""The privacy profile over a range of ε: where to look, and the values there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symdp.errors import InputError, SymdpError
from symdp.interrupt import Deadline

if TYPE_CHECKING:
    from symdp.questions.composition import Composition, Direction
    from symdp.questions.guarantee import Guarantee

SMALL = 1e-10  # δ at which a curve ends, unless somebody asks for more
# What keeps an accountant from an answer: bad input, too little accuracy, a division by zero.
FAILURES = (InputError, ArithmeticError)


def reason_of(failure: Exception) -> str:
    """Return one line that says why there is no number.

    >>> reason_of(ZeroDivisionError("float division by zero"))
    'its arithmetic broke off (float division by zero)'
    """
    text = " ".join(str(failure).split())
    return text if isinstance(failure, SymdpError) else f"its arithmetic broke off ({text})"


def default_range(
    composition: Composition, direction: Direction = "both", method: str = "contour"
) -> tuple[float, float]:
    """Return the range from ε = 0 to where δ is about 1e-10, or near its mass at infinity.

    Examples
    --------
    >>> import symdp
    >>> steps = symdp.compose(symdp.mechanisms.gaussian(sigma=10), 1)
    >>> low, high = default_range(steps)
    >>> low, round(high, 2)
    (0.0, 0.57)
    """
    sides = composition.sides(direction)
    escaped = max(composition.law(side).mass_at_infinity for side in sides)
    start = composition.delta(0.0, method, direction)
    target = SMALL
    if start.delta <= SMALL:
        target = max(start.delta * SMALL, 1e-300)
    if escaped > 0:
        target = max(target, min(2 * escaped, 0.5 * (escaped + start.delta)))
    if not escaped < target < start.delta:
        return 0.0, 1.0
    try:
        end = composition.epsilon(target, method, direction).epsilon
    except InputError:
        end = 0.0
    return 0.0, end or 1.0


def evenly(ends: tuple[float, float], points: int) -> list[float]:
    """Return evenly spaced ε, both ends among them.

    >>> evenly((0.0, 1.0), 5)
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    low, high = ends
    last = points - 1
    return [low + (high - low) * (place / last) for place in range(last)] + [high]


def sample(
    composition: Composition,
    epsilons: list[float],
    method: str,
    direction: Direction = "both",
    seconds: float | None = None,
) -> list[Guarantee]:
    """Return an accountant's answers, leaving out the ε at which it has none, or no more time."""
    answers = []
    deadline = Deadline(seconds)
    for epsilon in epsilons:
        if deadline.is_past:
            break
        try:
            with deadline.within():
                answers.append(composition.delta(epsilon, method, direction))
        except FAILURES:
            continue
    return answers
