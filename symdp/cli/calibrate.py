"""`symdp calibrate`: the value of one parameter that just meets an (ε, δ)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from symdp.cli import job as words
from symdp.cli.display import console, meaning, print_json, print_protection, steps_of
from symdp.cli.job import Job
from symdp.cli.working import working
from symdp.decimal_text import given
from symdp.errors import InputError

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.questions.calibrate import Calibration
    from symdp.questions.composition import Direction


def run_calibration(
    job: Job,
    parameter: str,
    epsilon: float,
    delta: float,
    *,
    digits: int,
    between: tuple[str, str] | None,
    method: str,
    direction: Direction,
    as_json: bool,
) -> None:
    """Calibrate and print.

    Raises
    ------
    InputError
        If the job breaks a rule, or no value meets the target.
    """
    with working(f"calibrating {parameter} of {job.subject}"):
        from symdp.questions.calibrate import COUNT, calibrate

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
            epsilon=epsilon,
            delta=delta,
            digits=digits,
            between=ends,
            method=method,
            direction=direction,
        )
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)


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
    ).build_mechanism()
    if job.rate is None and parameter in {*plain.parameters, "n"}:
        raise InputError("--sampling needs --rate Q, as in --rate 0.01")
    return job.subsampled(plain, scheme, parameter)


def _print(found: Calibration) -> None:
    from rich.text import Text

    from symdp.questions.calibration_grid import decimal

    screen = console()
    answer = found.guarantee
    head = Text(f"{found.parameter} = ").append(decimal(found.value), style="bold")
    screen.print(head, soft_wrap=True)
    at, goal = f"δ({answer.epsilon_text()})", given(found.target_delta)
    screen.print(Text(f"  {at} = {_within(found)} ≤ {goal}, {meaning(answer)}"))
    missed = found.missed.delta_text()
    screen.print(Text(f"  the next, {decimal(found.neighbour)}, has {missed} and misses it"))
    screen.print(
        Text(
            f"  method {answer.method}, direction {answer.direction}, "
            f"{steps_of(answer.count)}, {found.seconds:.2g} s",
            style="dim",
        ),
        soft_wrap=True,
    )
    print_protection(answer)


def _within(found: Calibration) -> str:
    """Return δ as text with as many digits as keep it at most the target that it meets."""
    answer = found.guarantee
    text = answer.delta_text()
    return text if float(text) <= found.target_delta else answer.delta_text(17)
