"""`symdp curve`: the privacy profile as a table, as JSON, as a figure."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from symdp.cli import job as words
from symdp.cli import options
from symdp.cli.display import print_json, print_protection, print_table, say, steps_of
from symdp.cli.job import Job
from symdp.cli.supervise import in_time
from symdp.cli.working import working
from symdp.decimal_text import rounded
from symdp.errors import InputError

if TYPE_CHECKING:
    from symdp.questions.composition import Composition, Direction
    from symdp.questions.guarantee import Curve, Guarantee

_MOST_NAMED = 3  # mechanisms in a title
_AT_ONCE = 25  # points that are taken together, between two signs of life
_SHOWN = 1e-9  # relative; closer bounds look like the value itself


@options.of_steps("points")
def curve(
    *,
    job: Job,
    epsilon_range: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--epsilon-range", metavar="A B", help="From 0 to where δ is 1e-10, if left out."
        ),
    ] = None,
    points: Annotated[
        str, typer.Option("--points", metavar="N", help="How many ε, both ends among them.")
    ] = "50",
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw the curve: .svg, .pdf or .png."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            metavar="METHOD",
            help="An accountant, contour if left out; several are drawn over each other.",
        ),
    ] = None,
    settings: options.Settings,
    direction: options.Direction = "both",
    time_limit: options.TimeLimit = "60",
    as_json: options.Json = False,
) -> None:
    """Print the privacy profile δ(ε) at evenly spaced ε, and draw it."""
    side = words.direction(direction)
    ends = None
    if epsilon_range is not None:
        low, high = (words.real(end, "--epsilon-range") for end in epsilon_range)
        ends = (low, high)
        if not low < high:
            raise InputError("--epsilon-range A B: A must lie below B")
    names = [words.method(one) for one in method or ["contour"]]
    name, many = names[0], words.whole(points, "--points", 2, 10_000)
    if len(names) > 1 and plot is None:
        raise InputError("several --method are drawn over each other: give --plot FILE too")
    chosen = words.settings(name, settings)

    def ask(steps: Composition, some: list[float]) -> Curve:
        return cast("Curve", steps.delta(some, name, side, **chosen))

    answers, seconds = in_time(
        time_limit,
        lambda: job,
        lambda asked: _computed(asked, ask, side, ends, many, plot, names[1:]),
    )
    if as_json:
        _print_json(answers, side, seconds)
    elif plot is not None:
        print_protection(answers[0])
        say(f"drawn: {plot}")
    else:
        _print_table(answers)


def _computed(
    job: Job,
    ask: Callable[[Composition, list[float]], Curve],
    direction: Direction,
    ends: tuple[float, float] | None,
    points: int,
    plot: Path | None,
    overlaid: list[str],
) -> tuple[list[Guarantee], float]:
    """Return the profile at evenly spaced ε and the seconds it took; draw it if a file is named."""
    with working(f"profile of {job.subject}") as work:
        if plot is not None:
            check_drawing(plot)
        composition = job.build()
        from symdp.page.profile import default_range, evenly

        start = time.perf_counter()
        epsilons = evenly(ends or default_range(composition, direction), points)
        answers: list[Guarantee] = []
        while len(answers) < len(epsilons):
            done = len(answers)
            # The first alone: it shows whether all others will take long.
            some = epsilons[done : done + (_AT_ONCE if done else 1)]
            work.say(f"δ({some[0]:.6g}) of {job.subject}", done, points)
            answers += ask(composition, some)
        seconds = time.perf_counter() - start
        if plot is not None:
            work.say(f"drawing {plot}")
            _draw(composition, answers, direction, plot, overlaid or ["moments"])
    return answers, seconds


def check_drawing(path: Path) -> None:
    """A wrong name, a missing folder and a missing Matplotlib are known before the work."""
    from symdp.page.plot import format_of, why_not_drawn

    format_of(path)
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}")
    if reason := why_not_drawn():
        raise InputError(f"--plot {path}: {reason}")


def _print_json(answers: list[Guarantee], direction: str, seconds: float) -> None:
    from symdp.questions.guarantee import weakest

    whose = answers[0].protection
    print_json(
        {
            "points": [answer.to_json() for answer in answers],
            "kind": weakest(answer.kind for answer in answers),
            "method": answers[0].method,
            "direction": direction,
            "count": answers[0].count,
            "seconds": round(seconds, 6),
            **({} if whose is None else whose.to_json()),
        }
    )


def _draw(
    composition: Composition,
    answers: list[Guarantee],
    direction: Direction,
    path: Path,
    overlaid: list[str],
) -> None:
    from symdp.page.plot import Series, save
    from symdp.page.profile import sample

    epsilons = [answer.epsilon for answer in answers]
    curves = [Series.of(answers[0].method, answers)]
    for name in overlaid:
        if name != answers[0].method:
            others = sample(composition, epsilons, name, direction)
            curves.append(Series.of("moments bound" if name == "moments" else name, others))
    save(curves, path, _title(composition))


def _title(composition: Composition) -> str:
    if len(composition.steps) > _MOST_NAMED:
        return f"{composition.count} steps of {len(composition.steps)} mechanisms"
    return "\n".join(f"{steps_of(n)} of {m.summary}" for m, n in composition.steps)


def _print_table(answers: list[Guarantee]) -> None:
    wide = any(_are_apart(a) for a in answers)
    head = ("ε", "δ", *(("lower", "upper") if wide else ()), "kind")
    rows = []
    for a in answers:
        bounds = [text or "" for text in a.bound_texts()] if wide else []
        # δ falls with ε: what holds at one ε holds at a larger one
        rows.append((rounded(a.epsilon, 8, "up"), a.delta_text(), *bounds, a.kind))
    print_table(head, rows, range(len(head) - 1))
    print_protection(answers[0])
    for advice in dict.fromkeys(a.advice for a in answers if a.advice):
        say(f"warning: {advice}", "yellow")


def _are_apart(answer: Guarantee) -> bool:
    """Whether the bounds on δ differ by more than the digits that are shown."""
    low, high = answer.log_lower, answer.log_upper
    return low is not None and high is not None and high - low > _SHOWN
