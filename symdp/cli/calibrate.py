"""`symdp calibrate`: the value of one parameter that just meets an (ε, δ)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from symdp.cli import job as words
from symdp.cli import options
from symdp.cli.display import meaning, print_json, print_source, say, styled
from symdp.cli.job import Job
from symdp.cli.supervise import in_time
from symdp.cli.working import working
from symdp.decimal_text import given, rounded
from symdp.errors import InputError

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.questions.calibrate import AttackCalibration, Calibration
    from symdp.questions.composition import Direction

USUAL_METHOD = "contour"


@options.of_steps("composition")
def calibrate(
    *,
    parameter: Annotated[
        str,
        typer.Option(
            "--parameter", metavar="NAME", help="A parameter, a sampling rate, or n: the steps."
        ),
    ],
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="E", help="ε in nats.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option("--delta", metavar="D", help="δ, between 0 and 1.")
    ] = None,
    advantage: Annotated[
        str | None,
        typer.Option(
            "--advantage",
            metavar="A",
            help="The largest advantage of an attack, instead of ε and δ.",
        ),
    ] = None,
    tpr: Annotated[
        str | None,
        typer.Option(
            "--tpr", metavar="T", help="Its largest true positive rate, at the rate --fpr."
        ),
    ] = None,
    fpr: Annotated[
        str | None, typer.Option("--fpr", metavar="F", help="The false positive rate for --tpr.")
    ] = None,
    job: Job,
    digits: Annotated[
        str | None,
        typer.Option("--digits", metavar="K", help="Significant digits, 4 to 13; 10, 6 of a rate."),
    ] = None,
    between: Annotated[
        tuple[str, str] | None,
        typer.Option("--between", metavar="A B", help="Search between these two values only."),
    ] = None,
    method: options.Method = USUAL_METHOD,
    direction: options.Direction = "both",
    time_limit: options.TimeLimit = "60",
    as_json: options.Json = False,
) -> None:
    """Print the value of a parameter that just meets (ε, δ), rounded to the safe side.

    Or the value that holds attacks down: --advantage A, or --tpr T at --fpr F.
    """
    kinds = (epsilon, delta), (advantage,), (tpr, fpr)
    named = [kind for kind in kinds if any(word is not None for word in kind)]
    if len(named) != 1 or None in named[0]:
        raise InputError("give --epsilon E and --delta D, or --advantage A, or --tpr T and --fpr F")
    target = {
        "epsilon": None if epsilon is None else words.real(epsilon, "--epsilon"),
        "delta": None if delta is None else words.delta(delta),
        "advantage": None if advantage is None else words.share(advantage, "--advantage"),
        "tpr": None if tpr is None else words.share(tpr, "--tpr"),
        "fpr": None if fpr is None else words.share(fpr, "--fpr"),
    }
    in_time(
        time_limit,
        lambda: job,
        lambda asked: _calibrate(
            asked,
            parameter,
            target,
            None if digits is None else words.whole(digits, "--digits", 4, 13),
            between,
            words.method(method),
            words.direction(direction),
            as_json,
        ),
    )


def _calibrate(
    job: Job,
    parameter: str,
    target: Mapping[str, float | None],
    digits: int | None,
    between: tuple[str, str] | None,
    method: str,
    direction: Direction,
    as_json: bool,
) -> None:
    with working(f"calibrating {parameter} of {job.subject}"):
        from symdp.questions.calibrate import COUNT, Calibration, calibrate

        mechanism = _mechanism(job, parameter)
        count = None if job.count is None else words.whole(job.count, "-n")
        if count is None and (parameter != COUNT or COUNT in mechanism.parameters):
            raise InputError("-n COUNT is missing: the number of steps, as in -n 1000")
        ends = None
        if between is not None:
            low, high = (words.number(end, "--between") for end in between)
            ends = (low, high)
        found = calibrate(
            mechanism,
            parameter,
            count,
            **target,
            digits=digits,
            between=ends,
            method=method,
            direction=direction,
        )
    if as_json:
        print_json(found.to_json())
    elif isinstance(found, Calibration):
        _print(found)
    else:
        _print_attack(found)


def _print_attack(found: AttackCalibration) -> None:
    alpha, (value, beyond) = found.false_positive_rate, _values(found)
    print(f"{found.parameter} = {styled(value, 'bold')}")
    what = "advantage" if alpha is None else f"true positive rate at {given(alpha)}"
    held = rounded(found.rate, 9, "up")
    if float(held) > found.target:
        held = rounded(found.rate, 17, "up")
    say(f"  no attack has a higher {what} than {held} ≤ {given(found.target)}")
    say(f"  the next, {beyond}, allows {rounded(found.missed, 9, 'up')} and misses it")
    say(f"  both directions, {found.seconds:.2g} s")


def _values(found: Calibration | AttackCalibration) -> tuple[str, str]:
    """Return the value that was found and the next one as decimals."""
    from symdp.questions.calibrate import decimal

    return decimal(found.value), decimal(found.neighbour)


def _mechanism(job: Job, parameter: str) -> Mechanism:
    """Return the mechanism; a sampling rate that is left out or named becomes the parameter."""
    drawn = (job.sampling or "").replace("-", "_")
    if drawn in {"", "random_allocation"} or job.rate not in {None, parameter}:
        return job.build_mechanism()
    scheme = drawn
    plain = replace(
        job,
        sampling=None,
        rate=None,
        batch=None,
        records=None,
        group=None,
        steps=None,
        participations=None,
        released=None,
    ).build_mechanism()
    if job.rate is None and parameter in {*plain.parameters, "n"}:
        raise InputError("--sampling needs --rate Q, as in --rate 0.01")
    return job.subsampled(plain, scheme, parameter)


def _print(found: Calibration) -> None:
    answer, (value, beyond) = found.guarantee, _values(found)
    print(f"{found.parameter} = {styled(value, 'bold')}")
    at, goal = f"δ({answer.epsilon_text()})", given(found.target_delta)
    say(f"  {at} = {_within(found)} ≤ {goal}, {meaning(answer)}")
    say(f"  the next, {beyond}, has {found.missed.delta_text()} and misses it")
    print_source(answer, found.seconds)


def _within(found: Calibration) -> str:
    """Return δ as text with as many digits as keep it at most the target that it meets."""
    answer = found.guarantee
    for text in (answer.delta_text(), answer.delta_text(17)):
        if float(text) <= found.target_delta:
            return text
    return given(answer.delta)  # its interval, which is printed beside, reaches beyond the target
