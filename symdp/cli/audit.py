"""`symdp audit`: what the counts of an attack prove of ε, and of a composition's claim."""

from __future__ import annotations

from typing import Annotated

import typer

from symdp.cli import job as words
from symdp.cli import options
from symdp.cli.job import Job
from symdp.errors import InputError


@options.of_steps()
def audit(
    *,
    tp: Annotated[
        str,
        typer.Option("--tp", metavar="HITS", help="Members that the attack found: 90, or 90/100."),
    ],
    fp: Annotated[
        str,
        typer.Option(
            "--fp", metavar="ALARMS", help="Others that it took for members: 5, or 5/100."
        ),
    ],
    members: Annotated[
        str | None, typer.Option("--members", metavar="M", help="How many members were attacked.")
    ] = None,
    others: Annotated[
        str | None,
        typer.Option(
            "--others", metavar="N", help="How many others; as many as members if not said."
        ),
    ] = None,
    delta: Annotated[
        str | None, typer.Option("--delta", metavar="D", help="δ of the guarantee; 0 if left out.")
    ] = None,
    confidence: Annotated[
        str, typer.Option("--confidence", metavar="C", help="Of both rates together.")
    ] = "0.95",
    job: Job,
    as_json: options.Json = False,
) -> None:
    """Print a lower bound on ε from an attack's counts, and test a claim with them."""
    from symdp.cli.display import print_json, say, styled
    from symdp.decimal_text import rounded
    from symdp.questions.audit import audit as ask

    hits, all_members = _counted(tp, members, "--tp", "--members")
    alarms, all_others = _counted(fp, others or members, "--fp", "--others")
    at = 0.0 if delta is None else words.delta(delta)
    sure = words.share(confidence, "--confidence")
    claimed = job.mechanism is not None or job.composition is not None
    steps = job.build() if claimed else None
    found = ask(hits, alarms, all_members, all_others, delta=at, confidence=sure, composition=steps)
    if as_json:
        print_json(found.to_json())
        return
    at_delta = "" if delta is None else f" at δ = {delta}"
    print(f"ε ≥ {styled(rounded(found.epsilon, 6, 'down'), 'bold')}{at_delta}")
    low = rounded(found.true_positive_rate, 6, "down")
    high = rounded(found.false_positive_rate, 6, "up")
    say(
        f"  with confidence {confidence}: true positive rate at least {low}, false positive rate "
        f"at most {high} (Clopper and Pearson)"
    )
    if steps is not None and found.allowed is not None and found.p_value is not None:
        verdict = "refutes" if found.is_refuted else "does not refute"
        say(f"  {verdict} {job.typed}: p-value {rounded(found.p_value, 3, 'up')}")
        most = rounded(found.allowed, 6, "up")
        say(f"  it allows a true positive rate of {most} at false positive rate {high}")


def _counted(text: str, whole: str | None, option: str, of: str) -> tuple[int, int]:
    """Return a count and what it is out of, written as 90/100 or in two options."""
    part, slash, rest = text.partition("/")
    if slash:
        return words.whole(part, option, 0), words.whole(rest, option)
    if whole is None:
        raise InputError(f"{option} {text:.40}: out of how many? Write {option} 90/100, or {of} N")
    return words.whole(text, option, 0), words.whole(whole, of)
