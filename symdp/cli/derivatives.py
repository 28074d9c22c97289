"""The command sensitivities: how ε or δ moves with every parameter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from symdp.cli import job as words
from symdp.cli.asking import How
from symdp.cli.display import protection
from symdp.cli.job import Job
from symdp.decimal_text import rounded
from symdp.errors import InputError
from symdp.page.document import Block, Sentence, Table

if TYPE_CHECKING:
    from symdp.questions.design.gradient import Gradient, Slope

_MOST_DIGITS = 10
_HOW = {"line": "a sum on the contour", "differences": "estimated by differences of answers"}


def sensitivities(
    *, job: Job, epsilon: str | None = None, delta: str | None = None, how: How
) -> None:
    """Print the derivatives of ε at a δ, or of δ at an ε, in every parameter of every step."""
    if (epsilon is None) == (delta is None):
        raise InputError("give --delta D for the derivatives of ε, or --epsilon E for those of δ")
    at_epsilon = None if epsilon is None else words.real(epsilon, "--epsilon")
    at_delta = None if delta is None else words.delta(delta)
    answer: Gradient = how.ask(
        f"derivatives of {job.subject}",
        job.build,
        lambda steps: steps.gradient(epsilon=at_epsilon, delta=at_delta, direction=how.side),
    )
    how.tell(answer, _derived)


def _derived(answer: Gradient) -> Iterator[Block]:
    what = "ε" if answer.asked == "epsilon" else "δ"
    guarantee = answer.answer
    place_of = f"ε = {guarantee.epsilon_text()}, δ = {guarantee.delta_text()}"
    yield Sentence(f"derivatives of {what} where {place_of}, {answer.direction} direction")
    head = ("step", "parameter", "value", f"∂{what}/∂parameter", "error about", "how")
    yield Table(head, [_row(slope) for slope in answer.slopes], numbers=range(2, 5))
    if answer.other:
        text = "  the other direction has the same answer, and these on its side:"
        yield Sentence(text, "warning")
        yield Table(head, [_row(slope) for slope in answer.other], numbers=range(2, 5))
    yield from protection(guarantee)


def _row(slope: Slope) -> tuple[str, ...]:
    return (
        slope.step, slope.parameter, f"{slope.value:.10g}",
        f"{slope.derivative:.{_MOST_DIGITS}g}", rounded(slope.error, 2, "up"), _HOW[slope.by],
    )  # fmt: skip
