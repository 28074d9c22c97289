"""The commands sensitivities and plan: how ε moves with parameters, and which are cheapest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from symdp.cli import job as words
from symdp.cli.asking import How
from symdp.cli.display import meaning, protection, source
from symdp.cli.job import Job
from symdp.cli.working import Work, working
from symdp.decimal_text import rounded
from symdp.errors import InputError
from symdp.page.document import Block, Sentence, Table

if TYPE_CHECKING:
    from symdp.questions.design.gradient import Gradient, Slope
    from symdp.questions.design.plan import Plan

_MOST_DIGITS = 10
_HOW = {"line": "a sum on the contour", "differences": "estimated by differences of answers"}


def sensitivities(
    *, job: Job, epsilon: str | None = None, delta: str | None = None, how: How
) -> None:
    """Print the derivatives of ε at a δ, or of δ at an ε, in every parameter of every step."""
    if (epsilon is None) == (delta is None):
        raise InputError("give --delta D for the derivatives of ε, or --epsilon E for those of δ")
    at_epsilon = words.optional(words.real, epsilon, "--epsilon")
    at_delta = words.optional(words.delta, delta)
    what = f"derivatives of {job.subject}"

    def ask(work: Work) -> Gradient:
        def seen(to_come: str) -> None:
            work.say(f"{what}: {to_come}, each as long as δ itself")

        steps = job.build()
        answer: Gradient = steps.gradient(
            epsilon=at_epsilon, delta=at_delta, direction=how.side, progress=seen
        )
        return answer

    with working(what) as work:
        answer = how.ask("", lambda: work, ask)
    how.tell(answer, _derived)


def plan(
    *,
    job: Job,
    minimize: str,
    epsilon: str,
    delta: str,
    ranges: list[str] | None = None,
    how: How,
) -> None:
    """Find the parameters that meet (ε, δ) and make a formula of them least, a local optimum."""
    at_epsilon = words.real(epsilon, "--epsilon")
    at_delta = words.delta(delta)
    between = dict(_named_range(text) for text in ranges or [])
    if not between:
        raise InputError("--range NAME=A:B is missing: which parameters are looked for, and where")
    what = f"plan for {job.subject}"

    def ask(work: Work) -> Plan:
        from symdp.questions.calibrate import COUNT
        from symdp.questions.design.plan import plan as cheapest

        def seen(values: Mapping[str, float], cost: float) -> None:
            listed = ", ".join(f"{name} = {value:.4g}" for name, value in values.items())
            work.say(f"{what}: {listed}, {minimize} = {cost:.6g}")

        count = None
        if COUNT not in between or job.count is not None:
            count = job.steps_asked
        return cheapest(
            job.build_mechanism(),
            minimize,
            between,
            epsilon=at_epsilon,
            delta=at_delta,
            n=count,
            progress=seen,
        )

    with working(what) as work:
        answer = how.ask("", lambda: work, ask)
    how.tell(answer, lambda best: _planned(best, at_delta))


def _named_range(text: str) -> tuple[str, tuple[Fraction, Fraction]]:
    """Return a name and its range, written as sigma=1:20."""
    name, equals, ends = text.partition("=")
    low, colon, high = ends.partition(":")
    if not (equals and colon):
        raise InputError(f"--range {text:.40}: write NAME=A:B, as in sigma=1:20")
    option = f"--range {name}"
    return name, (words.number(low, option), words.number(high, option))


def _planned(answer: Plan, delta: float) -> Iterator[Block]:
    listed = ", ".join(f"{name} = {value:.10g}" for name, value in answer.values.items())
    yield Sentence("", answer=listed)
    yield Sentence(f"  {answer.formula} = {answer.cost:.8g}, a local optimum")
    guarantee = answer.guarantee
    texts = (guarantee.delta_text(), guarantee.delta_text(17))
    within = next((text for text in texts if float(text) <= delta), f"{delta:g}")
    yield Sentence(f"  δ({guarantee.epsilon_text()}) = {within} ≤ {delta:g}, {meaning(guarantee)}")
    if answer.at_ends:
        ends = ", ".join(answer.at_ends)
        yield Sentence(f"  at an end of its range: {ends}; a wider one may be cheaper", "warning")
    if answer.is_late:
        yield Sentence("  the best that was found in the time given", "warning")
    yield from source(guarantee, answer.seconds)


def _derived(answer: Gradient) -> Iterator[Block]:
    what = "δ"
    if answer.quantity == "epsilon":
        what = "ε"
    guarantee = answer.answer
    place_of = f"ε = {guarantee.epsilon_text()}, δ = {guarantee.delta_text()}"
    yield Sentence(f"derivatives of {what} where {place_of}, {answer.direction} direction")
    head = ("step", "parameter", "value", f"∂{what}/∂parameter", "error about", "how")
    yield Table(head, [_slope_row(slope) for slope in answer.slopes], numbers=range(2, 5))
    if answer.other:
        text = "  the other direction has the same answer, and these on its side:"
        yield Sentence(text, "warning")
        yield Table(head, [_slope_row(slope) for slope in answer.other], numbers=range(2, 5))
    yield from protection(guarantee)


def _slope_row(slope: Slope) -> tuple[str, ...]:
    return (
        slope.step, slope.parameter, f"{slope.value:.10g}",
        f"{slope.derivative:.{_MOST_DIGITS}g}", rounded(slope.error, 2, "up"), _HOW[slope.by],
    )  # fmt: skip
