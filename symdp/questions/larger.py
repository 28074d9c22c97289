"""The larger δ of two directions, with an interval that holds it whichever is the larger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from symdp.arguments import clearly_larger, of_the_larger
from symdp.questions.guarantee import Guarantee

if TYPE_CHECKING:
    from symdp.exact.answer import Answer


def larger_delta(
    epsilon: float,
    answers: Mapping[str, Answer],
    *,
    method: str,
    label: str,
    count: int,
    told: Callable[[Answer], dict[str, Any]],
) -> Guarantee:
    """Return the larger of the δ(ε) of the directions.

    Parameters
    ----------
    epsilon
        In nats.
    answers
        What an accountant says of each direction.
    method, count
        As the guarantee has them.
    label
        What the guarantee calls its direction; the larger one's name where it is empty.
    told
        What the guarantee says besides its numbers.
    """
    side = clearly_larger({s: answer.log_delta for s, answer in answers.items()})
    answer = answers[side]
    lower, upper = of_the_larger(
        [(a.log_lower, a.log_upper) for a in answers.values()],
        (answer.log_lower, answer.log_upper),
        answer.log_delta,
    )
    return Guarantee(
        epsilon,
        upper if answer.kind == "bound" and upper is not None else answer.log_delta,
        answer.kind,
        method,
        label or side,
        count,
        "delta",
        lower,
        upper,
        **told(answer),
    )
