"""The commands sample, plot and design: what a noise looks like, and which one is best."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symdp.cli import job as words
from symdp.cli.asking import How
from symdp.cli.display import check_drawing, check_output, print_json, protection, say
from symdp.cli.job import Job
from symdp.cli.working import working
from symdp.errors import InputError
from symdp.page.document import Block, Sentence, Table

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.questions.design.grid import Where
    from symdp.questions.design.integers import Design

_MOST = 1_000_000  # values that are printed
_FOR_WHAT = (
    "for simulations: no release may use them, as the rounding of doubles tells of what they are "
    "added to"
)


def sample(*, job: Job, size: str = "10", seed: str | None = None, as_json: bool = False) -> None:
    """Print independent values of the noise, for simulations."""
    from symdp.questions.noise import sample as drawn

    many = words.whole(size, "--size", most=_MOST)
    start = None if seed is None else words.whole(seed, "--seed", least=0)
    mechanism = _concrete(job)
    values: list[Any] = drawn(mechanism, many, start).tolist()
    if mechanism.variable.is_integer:
        values = [int(value) for value in values]
    if as_json:
        print_json(
            {"mechanism": mechanism.summary, "seed": start, "values": values, "for": _FOR_WHAT}
        )
        return
    for value in values:
        say(repr(value))


def plot(*, job: Job, output: Path) -> None:
    """Draw density and shift, privacy loss, K and trade-off of one step."""
    check_drawing(output, "-o")
    from symdp.page.plot import save_mechanism

    save_mechanism(_concrete(job), output)
    say(f"drawn: {output}")


def design(
    *,
    std: str,
    delta: str,
    count: str = "1",
    cost: str = "x**2",
    support: str = "integers",
    sensitivity: str = "1",
    sampling: str | None = None,
    rate: str | None = None,
    output: Path | None = None,
    plot: Path | None = None,
    how: How,
) -> None:
    """Find the noise of least ε at a cost, a local optimum, and write its mechanism file."""
    check_output(output, "toml")
    check_drawing(plot)
    deviation = words.number(std, "--std")
    at_delta = words.delta(delta)
    steps = words.whole(count, "-n")
    where, reach = _support(support)
    moved: Any = words.number(sensitivity, "--sensitivity")
    if where == "integers":
        moved = words.whole(sensitivity, "--sensitivity")
    share = _poisson_rate(sampling, rate)
    what = f"noise of least ε, n = {steps}"

    def ask(work: Any) -> Design:
        from symdp.questions.design.integers import design as least

        def seen(start: str, epsilon: float) -> None:
            work.say(f"{what}: ε about {epsilon:.6f}, from {start}")

        return least(
            steps, delta=at_delta, std=deviation, cost=cost, sensitivity=moved, rate=share,
            reach=reach, support=where, progress=seen,
        )  # fmt: skip

    with working(what) as work:
        answer = how.ask("", lambda: work, ask)
    if output is not None:
        from symdp.durable import replace_text

        replace_text(output, answer.to_toml())
    if plot is not None:
        from symdp.page.plot import save_design

        save_design(answer, plot)
    how.tell(answer, _designed)
    if not how.as_json:
        for file in filter(None, (output, plot)):
            say(f"written: {file}")


def _support(text: str) -> tuple[Where, Any]:
    """Return integers or reals, and B of [−B, B], None for all of them."""
    rule = "integers, reals, or those between two ends: [-20, 20], reals [-20, 20]"
    squeezed = "".join(text.split())
    where: Where = "reals" if squeezed.startswith("reals") else "integers"
    ends = squeezed.removeprefix(where)
    if not ends and squeezed:
        return where, None
    low, comma, high = ends.removeprefix("[").removesuffix("]").partition(",")
    if not (comma and ends == f"[{low},{high}]" and low == f"-{high}"):
        raise InputError(f"--support {text:.40}: {rule}")
    if where == "integers":
        return where, words.whole(high, "--support")
    return where, words.number(high, "--support")


def _poisson_rate(sampling: str | None, rate: str | None) -> Any:
    """Return the rate of Poisson sampling, 1 where there is none."""
    if sampling is None and rate is None:
        return 1
    if sampling != "poisson" or rate is None:
        raise InputError("noise is designed for --sampling poisson --rate Q, or without sampling")
    return words.number(rate, "--rate")


def _designed(answer: Design) -> Iterator[Block]:
    head = ("noise", "ε", "standard deviation", "E|X|", "kind")
    rows = []
    for row in answer.rows:
        deviation = f"{row.mechanism.std:.8g}"
        rows.append((row.name, row.guarantee.epsilon_text(), deviation,
                     f"{row.mechanism.mean_abs:.8g}", row.guarantee.kind))  # fmt: skip
    yield Table(head, rows, numbers=range(1, 4))
    yield Sentence(f"  {answer.sentence}")
    yield from protection(answer.guarantee)


def _concrete(job: Job) -> Mechanism:
    """Return the mechanism of a job, every parameter with a value."""
    return job.build_mechanism().require_concrete()
