"""Commands that prove and check: certify, check and check-claim."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symdp.cli import job as words
from symdp.cli.asking import How, seconds_of
from symdp.cli.display import (
    check_output,
    one_line,
    source,
)
from symdp.cli.job import Job
from symdp.cli.working import working
from symdp.decimal_text import rounded, scientific
from symdp.errors import AccuracyError, InputError
from symdp.page.document import Block, Sentence

if TYPE_CHECKING:
    from symdp.questions.certificate import Certificate
    from symdp.questions.claim import CheckedClaim
    from symdp.questions.composition import Composition

_ALL_DIGITS = 15  # from which on the ends are shown as they were proved
_RATE_DIGITS = 30  # more than the rates of an attack have


def certify(
    *,
    epsilon: str | None = None,
    delta: str | None = None,
    job: Job,
    digits: str = "15",
    file: Path | None = None,
    with_checker: bool = False,
    how: How,
) -> None:
    """Print two decimals between which δ (or ε) is proved to lie, every rounding included."""
    if (epsilon is None) == (delta is None):
        raise InputError("give --epsilon E or --delta D, one of the two")
    wanted = words.whole(digits, "--digits", 1, 200)
    if file is None and with_checker:
        raise InputError("--with-checker goes with --certificate FILE.json")
    if file is not None:
        number = words.number(epsilon or delta or "", "--epsilon or --delta")
        which = "delta" if epsilon is None else "epsilon"
        _certificate(file, with_checker, job, how, wanted, {which: number})
        return
    at = words.delta(str(delta)) if epsilon is None else words.real(epsilon, "--epsilon")
    what = f"ε(δ = {delta})" if epsilon is None else f"δ({epsilon})"
    prove, bound = ("certify", "delta") if delta is None else ("certify_epsilon", "epsilon")
    proved: Certificate = how.ask(
        f"proof of {what} of {job.subject}",
        job.build,
        lambda steps: getattr(steps, prove)(at, wanted, how.side),
        lambda steps: getattr(steps, bound)(at, "moments", how.side),
    )
    how.tell(proved, _proved_ends)


def _proved_ends(proved: Certificate) -> Iterator[Block]:
    """Yield the two ends, the lower one rounded down and the upper one up."""
    of_epsilon = proved.quantity == "epsilon"
    what = f"ε(δ = {proved.delta_text()})" if of_epsilon else f"δ({proved.epsilon_text()})"
    low, high = proved.lower_decimal, proved.upper_decimal
    if proved.kind == "bound" and proved.sum_digits is not None:
        yield Sentence(f"{what} is at most")
        yield Sentence("  ", answer=high)
        yield Sentence(
            "  proved, every rounding included; the sum that bounds it was taken to "
            f"{proved.digits} digits"
        )
        yield from source(proved)
        return
    if proved.digits_asked < _ALL_DIGITS:
        low = scientific(Fraction(low), proved.digits_asked, up=False)
        high = scientific(Fraction(high), proved.digits_asked, up=True)
    fewer = ""
    if proved.digits < proved.digits_asked:
        fewer = f"; {proved.digits} digits, of {proved.digits_asked} that were tried"
    yield Sentence(f"{what} lies between")
    yield from (Sentence("  ", answer=end) for end in (low, high))
    yield Sentence(f"  proved, every rounding included{fewer}")
    yield from source(proved)


def _certificate(
    file: Path,
    with_checker: bool,
    job: Job,
    how: How,
    digits: int,
    goals: dict[str, Fraction],
) -> None:
    """Write a certificate, beside it the checker if asked, and print what is claimed."""
    from symdp.durable import replace_text
    from symdp.questions.certificate_file import CHECKER, certificate

    def ask(steps: Composition) -> dict[str, Any]:
        return certificate(steps, digits=min(digits, 15), direction=how.side, **goals)

    check_output(file, "json")
    document = how.ask(f"certificate of {job.subject}", job.build, ask)
    replace_text(file, json.dumps(document, indent=1) + "\n")
    claim = document["claim"]
    print(f"{file}: {claim['lower']} ≤ δ({claim['epsilon']}) ≤ {claim['upper']}")
    if "assumed" in document:
        whose = "the laws in the file" if "shuffled" in document else "the pair at the sensitivity"
        print(f"{file}: proved of {whose}; {document['assumed']}")
    if with_checker:
        beside = file.with_name(CHECKER.name)
        beside.write_text(CHECKER.read_text(encoding="utf-8"), encoding="utf-8")
        print(f"{beside}: run it as python {beside.name} {file.name}")


def check(file: Path, *, time_limit: str = "60") -> None:
    """Check a certificate by a program of its own: 500 lines of code, and integers alone decide.

    Exit code 1 where the claim is not proved, 2 where the file is no certificate.
    """
    from symdp.questions import certificate_file

    with working(f"checking {file}"):
        verdict = certificate_file.check(file, seconds_of(time_limit))
    if verdict.code == 2 and not file.is_file():
        raise InputError(f"{file}: there is no such file, which certify --certificate FILE writes")
    if verdict.code:
        raise (InputError if verdict.code == 2 else AccuracyError)(f"{file}: {verdict.text}")
    print(one_line(verdict.text))


def check_claim(
    *,
    claim: str,
    job: Job,
    how: How,
) -> int:
    """Prove or refute that steps have a stated (ε, δ), or say which smaller ε would do.

    Exit code 0 where it holds, 1 where it is refuted or neither is shown.
    """
    from symdp.questions.claim import read_claim

    at, most = read_claim(claim)
    checked: CheckedClaim = how.ask(
        f"claim about {job.subject}",
        job.build,
        lambda steps: steps.check_claim(at, most, how.side),
        lambda steps: steps.delta(float(at), "moments", how.side),
    )
    how.tell(checked, _verdict)
    return int(not checked.holds)


def _verdict(checked: CheckedClaim) -> Iterator[Block]:
    answer = checked.answer
    attack = checked.attack
    how = "the exact formula in floating point"
    if answer.kind_for_pair == "bound":
        how = "an upper bound"
    head = {
        "proved": "proved",
        "exact": f"true, by {how}",
        "refuted": "refuted" if checked.is_proved else f"refuted, by {how}",
        "open": "open: neither proved nor refuted",
    }[checked.verdict]
    better = None
    if checked.would_do is not None:
        better = rounded(checked.would_do, 12, "up")
    if checked.is_loose:
        head += f", but loose: ε = {better} would do"
    low, high = answer.bound_texts(9)
    sure = ""
    if checked.is_proved:
        entries = answer.to_json()
        digits = max(entries["digits"], 6) + 3
        low = rounded(Fraction(entries["lower"]), digits, "down")
        high = rounded(Fraction(entries["upper"]), digits, "up")
        sure = ", proved, every rounding included"
    at = _exactly(checked.epsilon)
    most = _exactly(checked.delta)
    yield Sentence("", answer=head)
    yield Sentence(f"  δ({at}) lies between {low or 0} and {high or 1}{sure}; claimed is {most}")
    if attack is not None:
        miss = _complement(attack.true_positive_rate)
        least = _complement(attack.allowed)
        alarm = rounded(attack.false_positive_rate, _RATE_DIGITS)
        yield Sentence(
            f"  an attack has false positive rate {alarm} and false negative rate {miss}, in "
            f"direction {attack.direction}; the claim allows no less than {least}"
        )
    if better is not None and not checked.holds:
        yield Sentence(f"  ε = {better} would do at this δ")
    yield from source(answer)


def _exactly(value: Fraction) -> str:
    """Return a number as a decimal, or as a ratio where a short decimal is another number."""
    text = rounded(value, 20)
    return text if Fraction(text) == value else str(value)


def _complement(rate: Fraction) -> str:
    """Return 1 less a rate, written so that no digit is lost where the rate is small."""
    text = rounded(min(rate, 1 - rate), _RATE_DIGITS)
    return text if rate > 1 - rate else f"1 − {text}"
