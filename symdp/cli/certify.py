"""`symdp certify`: δ or ε between proved ends, for people or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from symdp.cli import job as words
from symdp.cli import options
from symdp.cli.display import print_json, print_source, styled
from symdp.cli.job import Job
from symdp.cli.supervise import in_time
from symdp.cli.working import working
from symdp.errors import InputError

if TYPE_CHECKING:
    from symdp.questions.certificate import Certificate


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
    time_limit: options.TimeLimit = "60",
    as_json: options.Json = False,
) -> None:
    """Print two decimals between which δ (or ε) is proved to lie, every rounding included."""
    side = words.direction(direction)
    if (epsilon is None) == (delta is None):
        raise InputError("give --epsilon E or --delta D, one of the two")
    wanted = words.whole(digits, "--digits", 1, 200)
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
    asked = proved.delta_text() if proved.asked == "epsilon" else proved.epsilon_text()
    print(f"{'ε' if proved.asked == 'epsilon' else 'δ'}({asked}) lies between")
    print(styled(f"  {proved.lower_decimal}\n  {proved.upper_decimal}", "bold"))
    fewer = ""
    if proved.digits < proved.digits_asked:
        fewer = f"; {proved.digits} digits of the {proved.digits_asked} asked for"
    print(f"  proved, every rounding included{fewer}")
    print_source(proved, proved.seconds)
