"""`symdp certify`: δ or ε between proved ends, for people or as JSON."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from symdp.cli import job as words
from symdp.cli import options
from symdp.cli.display import one_line, print_json, print_source, styled
from symdp.cli.job import Job
from symdp.cli.supervise import in_time
from symdp.cli.working import working
from symdp.decimal_text import scientific
from symdp.errors import AccuracyError, InputError

if TYPE_CHECKING:
    from symdp.arguments import Direction
    from symdp.questions.certificate import Certificate
    from symdp.questions.composition import Composition

_ALL_DIGITS = 15  # from which on the ends are shown as they were proved


@options.of_steps()
def certify(
    *,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="E", help="Prove δ at this ε.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option("--delta", metavar="D", help="Or prove ε at this δ.")
    ] = None,
    job: Job,
    digits: Annotated[
        str, typer.Option("--digits", metavar="D", help="Proved digits, 1 to 200.")
    ] = "15",
    direction: options.Direction = "both",
    file: Annotated[
        Path | None,
        typer.Option("--certificate", metavar="FILE", help="Write a .json that anyone can check."),
    ] = None,
    with_checker: Annotated[
        bool, typer.Option("--with-checker", help="Write the checker beside the certificate.")
    ] = False,
    time_limit: options.TimeLimit = "60",
    as_json: options.Json = False,
) -> None:
    """Print two decimals between which δ (or ε) is proved to lie, every rounding included."""
    side = words.direction(direction)
    if (epsilon is None) == (delta is None):
        raise InputError("give --epsilon E or --delta D, one of the two")
    wanted = words.whole(digits, "--digits", 1, 200)
    if file is None and with_checker:
        raise InputError("--with-checker goes with --certificate FILE.json")
    if file is not None:
        number = words.number(epsilon or delta or "", "--epsilon or --delta")
        which = "delta" if epsilon is None else "epsilon"
        _certificate(file, with_checker, job, time_limit, side, wanted, {which: number})
        return
    if epsilon is not None:
        at = words.real(epsilon, "--epsilon")
        with working(f"proof of δ({epsilon}) of {job.subject}"):
            proved = in_time(
                time_limit,
                job.build,
                lambda steps: steps.certify(at, wanted, side),
                lambda steps: steps.delta(at, "moments", side),
            )
    else:
        assert delta is not None
        asked = words.delta(delta)
        with working(f"proof of ε(δ = {delta}) of {job.subject}"):
            proved = in_time(
                time_limit,
                job.build,
                lambda steps: steps.certify_epsilon(asked, wanted, side),
                lambda steps: steps.epsilon(asked, "moments", side),
            )
    _print(proved, as_json)


def _print(proved: Certificate, as_json: bool) -> None:
    """Print the two ends, the lower one rounded down and the upper one up."""
    if as_json:
        print_json(proved.to_json())
        return
    of_epsilon = proved.asked == "epsilon"
    what = f"ε(δ = {proved.delta_text()})" if of_epsilon else f"δ({proved.epsilon_text()})"
    print(f"{what} lies between")
    low, high = proved.lower_decimal, proved.upper_decimal
    if proved.digits_asked < _ALL_DIGITS:
        low = scientific(Fraction(low), proved.digits_asked, up=False)
        high = scientific(Fraction(high), proved.digits_asked, up=True)
    print(styled(f"  {low}\n  {high}", "bold"))
    fewer = ""
    if proved.digits < proved.digits_asked:
        fewer = f"; {proved.digits} digits of the {proved.digits_asked} asked for"
    print(f"  proved, every rounding included{fewer}")
    print_source(proved, proved.seconds)


def _certificate(
    file: Path,
    with_checker: bool,
    job: Job,
    time_limit: str,
    side: Direction,
    digits: int,
    asked: dict[str, Fraction],
) -> None:
    """Write a certificate, beside it the checker if asked, and print what is claimed."""
    from symdp.cli.report import check_file, write_file
    from symdp.questions.certificate_file import CHECKER, certificate

    def ask(steps: Composition) -> dict[str, Any]:
        return certificate(steps, digits=min(digits, 15), direction=side, **asked)

    check_file(file, ("json",))
    with working(f"certificate of {job.subject}"):
        made = in_time(time_limit, job.build, ask)
    write_file(file, {"json": lambda: json.dumps(made, indent=1) + "\n"})
    claim = made["claim"]
    print(f"{file}: {claim['lower']} ≤ δ({claim['epsilon']}) ≤ {claim['upper']}")
    if with_checker:
        beside = file.with_name(CHECKER.name)
        beside.write_text(CHECKER.read_text(encoding="utf-8"), encoding="utf-8")
        print(f"{beside}: run it as python {beside.name} {file.name}")


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A certificate.")],
    *,
    time_limit: options.TimeLimit = "60",
) -> None:
    """Check a certificate by a program of its own: 400 lines of code, and integers alone decide.

    Exit code 1 where the claim is not proved, 2 where the file is no certificate.
    """
    from symdp.cli.supervise import seconds_of
    from symdp.questions import certificate_file

    with working(f"checking {file}"):
        verdict = certificate_file.check(file, seconds_of(time_limit))
    if verdict.code == 2:
        raise InputError(f"{file}: {verdict.text}")
    if verdict.code == 1:
        raise AccuracyError(f"{file}: {verdict.text}")
    print(one_line(verdict.text))
