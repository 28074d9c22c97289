"""`symdp verify`: every accountant against truth, in a table."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from symdp.cli import job as words
from symdp.cli import options
from symdp.cli.display import one_line, print_json, print_table, say, steps_of
from symdp.cli.job import Job
from symdp.cli.supervise import in_time
from symdp.cli.working import working
from symdp.decimal_text import rounded_exponential

if TYPE_CHECKING:
    from symdp.page.verification import Check
    from symdp.questions.composition import Composition


@options.of_steps()
def verify(
    *,
    job: Job,
    digits: Annotated[
        str, typer.Option("--digits", metavar="D", help="Digits of the truth, 15 to 200.")
    ] = "20",
    method: Annotated[
        str | None, typer.Option("--method", metavar="METHOD", help="Compare this one only.")
    ] = None,
    direction: options.Direction = "both",
    time_limit: options.TimeLimit = "60",
    as_json: options.Json = False,
) -> None:
    """Compare every accountant with a many-digit truth (100 steps unless -n says)."""
    side = words.direction(direction)
    wanted = words.whole(digits, "--digits", 15, 200)
    methods = None if method is None else [words.method(method)]
    what = f"truth and accountants for {job.subject}"

    def compare() -> int:
        with working(what) as work:
            composition = job.build(default_count=100)
            from symdp.page.verification import verify as found

            start = time.perf_counter()
            checks = list(
                found(
                    composition,
                    side,
                    digits=wanted,
                    methods=methods,
                    advance=lambda done, total: work.say(work.what, done, total),
                )
            )
        seconds = time.perf_counter() - start
        return _print(composition, checks, side, wanted, seconds, as_json)

    if in_time(time_limit, lambda: compare, lambda work: work()):
        raise typer.Exit(1)


def _print(
    composition: Composition,
    checks: list[Check],
    direction: str,
    digits: int,
    seconds: float,
    as_json: bool,
) -> int:
    """Print the comparison and return how many bounds were violated."""
    broken = sum(c.broken for c in checks)
    if as_json:
        print_json(
            {
                "checks": [c.to_json() for c in checks],
                "digits": min((c.truth.digits for c in checks), default=digits),
                "direction": direction,
                "count": composition.count,
                "violated": broken,
                "seconds": round(seconds, 6),
            }
        )
    else:
        _print_table(composition, checks, broken)
    return broken


def _print_table(composition: Composition, checks: list[Check], broken: int) -> None:
    names = "; ".join(
        f"{count} × {repr(m)[len('<Mechanism ') : -1]}" for m, count in composition.steps
    )
    head = one_line(f"{names}, {steps_of(composition.count)}")
    say(head, "bold")
    notes: dict[str, str] = {}
    by_place: dict[float, list[Check]] = {}
    for one in checks:
        by_place.setdefault(one.truth.epsilon, []).append(one)
    for epsilon, own in by_place.items():
        truth = own[0].truth
        if truth.value is None:
            head = f"ε = {epsilon:g}: no truth, {truth.reason}"
        else:
            delta = rounded_exponential(truth.log, side="up")
            head = f"ε = {epsilon:g}: δ = {delta} to {truth.behind or f'{truth.digits} digits'}"
        say()
        say(head)
        columns = ("method", "kind", "δ", "relative error", "seconds", "")
        print_table(columns, [_row(c, notes) for c in own], range(2, 5))
    _print_independent(composition, checks)
    if notes:
        say()
    for name, advice in notes.items():
        note = advice if advice.startswith(name) else f"{name}: {advice}"
        say(note, "yellow")
    say()
    if broken:
        say(f"{broken} bounds violated", "red")
    else:
        say("no bound violated", "green")


def _print_independent(composition: Composition, checks: list[Check]) -> None:
    """Print how well quadratures that share no code agree with one step of each kind."""
    from symdp.page.independent import agreement

    side = next((c.truth.direction for c in checks if c.truth.direction != "both"), "remove")
    say()
    for pair, _ in composition.accounted.pairs(side):
        found = agreement(pair, 0.0)
        said = "the densities are no formulas for it"
        if found is not None:
            said = f"δ(0) agrees to {found[0]} digits, K(−1/2) to {found[1]}"
        say(f"independent: one step by mpmath's quadrature of P and Q: {said}")


def _row(c: Check, notes: dict[str, str]) -> list[str]:
    if c.answer is None:
        return [c.method, "", "none", "", "", c.reason]
    error = "" if c.error is None else f"{c.error:+.1e}"
    mark = "VIOLATED" if c.broken else ""
    if c.answer.advice:
        mark = f"{mark} advice".strip()
        notes.setdefault(c.method, c.answer.advice)
    value = c.answer.delta_text(8)
    return [c.method, c.answer.kind, value, error, f"{c.answer.seconds:.4f}", mark]
