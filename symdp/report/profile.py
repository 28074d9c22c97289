"""The privacy profile over a range of ε: where to look, and the values there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symdp.errors import InputError, SymdpError
from symdp.report.deadline import Deadline, within

if TYPE_CHECKING:
    from symdp.questions.composition import Composition, Direction
    from symdp.questions.guarantee import Guarantee

SMALL = 1e-10  # δ at which a curve ends, unless somebody asks for more
# What keeps an accountant from an answer: bad input, too little accuracy, a division by zero.
FAILURES = (InputError, ArithmeticError)
_SIDES: tuple[Direction, ...] = ("remove", "add")


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
    sides = _SIDES if direction == "both" else (direction,)
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
        end = spent(composition, target, method, direction).epsilon
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
            with within(deadline):
                answers.append(composition.delta(epsilon, method, direction))
        except FAILURES:
            continue
    return answers


def spent(
    composition: Composition, delta: float, method: str = "contour", direction: Direction = "both"
) -> Guarantee:
    """Return ε at δ, asking only those directions in which the finite loss can be positive.

    In the others δ(ε) is the mass at infinity from ε = 0 on, so that they decide nothing, or
    leave no ε at all.

    Raises
    ------
    InputError
        If the mass at infinity of some direction is at least δ, or no loss is positive.
    AccuracyError
        If the method cannot reach its accuracy.
    """
    sides: tuple[Direction, ...] = _SIDES if direction == "both" else (direction,)
    able = [side for side in sides if composition.law(side).loss_bounds[1] > 0]
    for side in sides:
        escaped = composition.law(side).mass_at_infinity
        if side not in able and escaped >= delta:
            raise InputError(
                f"delta = {delta:.6g} is not above the probability {escaped:.6g} of an output "
                "that only one of the two distributions can give: no finite epsilon exists"
            )
    if not able:
        raise InputError(
            "no finite loss is positive: ε is 0 for every δ above the mass at infinity"
        )
    return composition.epsilon(delta, method, direction if len(able) == len(sides) else able[0])
