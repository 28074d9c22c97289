"""The certificate that a card carries, and whether it is one of that card's job."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from symdp.errors import InputError
from symdp.exact_number import exact_number
from symdp.questions.certificate_file import certificate, check, told_steps
from symdp.questions.ledger import Ledger

if TYPE_CHECKING:
    from symdp.questions.composition import Composition

_DIGITS = 6  # of the ε that is proved
_NEAR = 1e-3  # of the card's ε, that the proved one may lie above


def add_certificate(card: dict[str, Any], composition: Composition) -> None:
    """Put a certificate of the first δ, in both directions, into a card.

    Raises
    ------
    AccuracyError
        If there is none for these steps.
    """
    delta = Fraction(card["privacy_parameters"][0]["delta"])
    card["certificate"] = certificate(composition, delta=delta, digits=_DIGITS)


def wrong_in_certificate(card: Mapping[str, Any]) -> Iterator[str]:
    """Yield what keeps a card's certificate, if it has one, from proving what the card says.

    It must speak of the card's steps in both directions, of its first δ and of an ε next to its
    first one, and its own checker must prove it. The card's inputs have been checked before.
    """
    if "certificate" not in card:
        return
    composition = Ledger.from_state_dict(card["inputs"]["ledger"]).composition()
    made = card["certificate"]
    claim = made.get("claim") if isinstance(made, dict) else None
    if not isinstance(claim, dict):
        yield "it has no claim"
        return
    if made.get("steps") != told_steps(composition):
        yield "its steps are not those of the card"
    if claim.get("direction") != "both":
        yield "it does not speak of both directions"
    first = card["privacy_parameters"][0]
    if claim.get("upper") != str(Fraction(first["delta"])):
        yield "its upper end is not the first δ of the card"
    if abs(_number(claim.get("epsilon")) - first["epsilon"]) > _NEAR * max(
        abs(first["epsilon"]), 1
    ):
        yield "its ε is not next to the first one of the card"
    with TemporaryDirectory() as folder:
        file = Path(folder) / "certificate.json"
        file.write_text(json.dumps(made), encoding="utf-8")
        verdict = check(file)
    if verdict.code:
        yield verdict.text


def _number(text: object) -> float:
    try:
        return float(exact_number(str(text)))
    except InputError:
        return math.inf
