"""`symdp certify`: δ or ε between proved ends, for people or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symdp.cli import job as words
from symdp.cli.display import console, print_json, print_protection, steps_of
from symdp.cli.patience import in_time
from symdp.cli.working import working

if TYPE_CHECKING:
    from symdp.cli.job import Job
    from symdp.questions.certificate import Certificate
    from symdp.questions.composition import Direction


def prove(
    job: Job,
    epsilon: str | None,
    delta: str | None,
    digits: int,
    side: Direction,
    time_limit: str,
    as_json: bool,
) -> None:
    """Prove δ at an ε or ε at a δ, whichever is given, and print the two ends."""
    if epsilon is not None:
        at = words.real(epsilon, "--epsilon")
        with working(f"proof of δ({epsilon}) of {job.subject}"):
            proved = in_time(
                time_limit,
                job.build,
                lambda steps: steps.certify(at, digits, side),
                lambda steps: steps.delta(at, "moments", side),
            )
    else:
        assert delta is not None
        asked = words.delta(delta)
        with working(f"proof of ε(δ = {delta}) of {job.subject}"):
            proved = in_time(
                time_limit,
                job.build,
                lambda steps: steps.certify_epsilon(asked, digits, side),
                lambda steps: steps.epsilon(asked, "moments", side),
            )
    print_certificate(proved, as_json)


def print_certificate(proved: Certificate, as_json: bool) -> None:
    """Print the two ends, the lower one rounded down and the upper one up."""
    if as_json:
        print_json(proved.to_json())
        return
    from rich.text import Text

    screen = console()
    if proved.asked == "epsilon":
        head = f"ε({proved.delta_text()}) lies between\n"
    else:
        head = f"δ({proved.epsilon_text()}) lies between\n"
    ends = f"  {proved.lower_decimal}\n  {proved.upper_decimal}"
    screen.print(Text(head).append(ends, style="bold"), soft_wrap=True)
    said = "  proved, every rounding included"
    if proved.digits < proved.digits_asked:
        said += f"; {proved.digits} digits of the {proved.digits_asked} asked for"
    screen.print(Text(said), soft_wrap=True)
    screen.print(
        Text(
            f"  method {proved.method}, direction {proved.direction}, "
            f"{steps_of(proved.count)}, {proved.seconds:.2g} s",
            style="dim",
        ),
        soft_wrap=True,
    )
    print_protection(proved)
