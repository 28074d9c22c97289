"""A privacy card: what a guarantee says and what it rests on, as JSON values and as a document.

The names are those of NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees:
privacy parameters, unit of privacy, neighboring datasets, mechanism, composition. What that text
asks besides (trust model, exposure, access, bias) no computation knows; the card lists it as open.

A card holds its own inputs, every number exact, and their SHA-256. `differences` computes all of it
anew from them; nothing in a card is trusted, and no text in it is run.
"""

from __future__ import annotations

import datetime
import json
import math
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from symdp.decimal_text import Side, given, rounded
from symdp.durable import checksum
from symdp.errors import InputError
from symdp.exact_number import exact_number
from symdp.page.document import Block, Command, Document, Heading, Listing, Sentence, Table
from symdp.questions.certificate_file import certificate, check, told_steps
from symdp.questions.ledger import Ledger
from symdp.questions.training import training
from symdp.tolerances import SAME
from symdp.version import __version__

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.questions.composition import Composition
    from symdp.questions.guarantee import Guarantee

FORMAT = "symdp privacy card"
_VERSION = 1
DELTAS = (1e-5, 1e-6, 1e-8)
FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
_MOST_DELTAS = 20
_LONGEST_TITLE = 200
_LIBRARIES = ("numpy", "scipy", "sympy", "mpmath", "python-flint")
NOT_COVERED = (
    "trust model: who sees the data before noise is added",
    "exposure of the data while they are collected and stored, and access control",
    "side channels of the running system, floating-point noise among them",
    "whether the implementation is the mechanism that is described here",
    "utility and bias of what is released",
)
_CHECKED_APART = {"software", "certificate"}  # the latter by its own checker
_NEEDED = {"title", "deltas", "proved_digits", "ledger"}
_INPUTS = _NEEDED | {"date", "training"}
_TRAINING = {
    "examples", "batch", "steps", "noise", "sampling", "largest_batch", "relation", "released"
}  # fmt: skip
_RELATIONS = {
    "add_remove": "unbounded: they differ by the presence of the unit",
    "substitution": "bounded: they have one size and differ in the unit's value",
    "zero_out": "one has the unit's contribution set to zero",
    "pair": "those that the given pair of laws stands for, which its author knows",
}


@dataclass(frozen=True)
class Difference:
    """A place of a card whose content is not what its inputs give."""

    place: str
    found: Any
    recomputed: Any

    def __str__(self) -> str:
        if self.place == "certificate":
            return f"{self.place}: {self.found:.200}"
        return f"{self.place}: the card has {self.found!r:.60}, computed is {self.recomputed!r:.60}"


def make_card(
    composition: Composition,
    *,
    title: str,
    deltas: Sequence[float] = DELTAS,
    proved_digits: int | None = None,
    date: str | None = None,
    training: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the card of a composition as JSON values."""
    run = None
    if training is not None:
        run = dict(training)
    inputs = {
        "title": _title(title),
        "date": date,
        "training": run,
        "deltas": _deltas(deltas),
        "proved_digits": proved_digits,
        "ledger": Ledger(composition.given_steps()).state_dict(),
    }
    return _computed(inputs)


def differences(card: object) -> list[Difference]:
    """Return where a card is not what its inputs give, software versions apart."""
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise InputError(f"this is no privacy card: its 'format' must be {FORMAT!r}")
    if card.get("version") != _VERSION:
        raise InputError(f"a card of version {card.get('version')!r:.20}; known is {_VERSION}")
    inputs = card.get("inputs")
    if not isinstance(inputs, dict) or not _NEEDED <= set(inputs) <= _INPUTS:
        raise InputError(f"a card's 'inputs' must be {', '.join(sorted(_INPUTS))}")
    stated = {key: value for key, value in card.items() if key not in _CHECKED_APART}
    again = {key: value for key, value in _computed(inputs).items() if key != "software"}
    return list(_compared("", stated, again))


def _computed(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the card of some inputs, which are checked here as a stranger's."""
    title = _title(inputs["title"])
    deltas = _deltas(inputs["deltas"])
    digits = inputs["proved_digits"]
    if digits is not None and (type(digits) is not int or not 1 <= digits <= 15):
        raise InputError(f"proved_digits = {digits!r:.20}: a whole number from 1 to 15")
    composition = Ledger.from_state_dict(inputs["ledger"]).composition()
    day = _date(inputs.get("date"))
    run = _run(inputs.get("training"), composition)
    whose = composition.protection
    answers = [composition.epsilon(delta) for delta in deltas]
    cited = dict.fromkeys(tag for answer in answers for tag in answer.citations)
    from symdp.citation import bibtex

    unit = "one record"
    if whose.group != 1:
        unit = f"{whose.group} records"
    cited |= dict.fromkeys(m.citation for m, _ in composition.steps if m.citation)
    return {
        "format": FORMAT,
        "version": _VERSION,
        "title": title,
        "date": day,
        "training": run,
        "differential_privacy_variant": "approximate differential privacy, (ε, δ)",
        "privacy_parameters": [_parameters(answer) for answer in answers],
        "unit_of_privacy": unit,
        "neighboring_datasets": {
            "relation": whose.relation,
            "kind": _RELATIONS[whose.relation],
            "protects": whose.sentence,
            "is_attained": whose.is_attained,
            "shift": whose.shift,
        },
        "mechanism": [_step(mechanism, count) for mechanism, count in composition.steps],
        "composition": {"steps": composition.n, "distinct": len(composition.steps)},
        "attack": _attack(composition),
        "gaussian_privacy": _gaussian(composition, deltas[0]),
        "proof": _proof(composition, deltas[0], digits),
        "not_covered": list(NOT_COVERED),
        "citation": bibtex(cited),
        "software": _software(),
        "inputs": dict(inputs),
        "sha256": checksum(dict(inputs)),
    }


def _step(mechanism: Mechanism, count: int) -> dict[str, Any]:
    """Return one mechanism of a composition and how often it is used."""
    sampling = None
    if mechanism.sampling is not None:
        sampling = mechanism.sampling.describe()
    return {
        "name": mechanism.name,
        "title": mechanism.title,
        "description": mechanism.description,
        "parameters": {name: str(value) for name, value in mechanism.bound},
        "sampling": sampling,
        "count": count,
    }


def _parameters(answer: Guarantee) -> dict[str, Any]:
    """Return one (ε, δ) with its interval and where it comes from."""
    names = ("epsilon", "delta", "lower", "upper", "kind", "method", "direction")
    entries = {name: getattr(answer, name) for name in names}
    if answer.advice:
        entries["advice"] = answer.advice
    return entries


def _attack(composition: Composition) -> dict[str, Any]:
    """Return what the best attack on the presence of one unit reaches."""
    from symdp.questions.tradeoff import trade_off

    misses = trade_off(composition, FALSE_POSITIVE_RATES).tolist()
    curve = [
        {"false_positive_rate": alpha, "true_positive_rate": 1.0 - miss}
        for alpha, miss in zip(FALSE_POSITIVE_RATES, misses, strict=True)
    ]
    return {"advantage": composition.membership_advantage(), "trade_off": curve}


def _gaussian(composition: Composition, regret: float) -> dict[str, Any] | None:
    """Return μ with δ(ε) ≤ δ_μ(ε) + regret for every ε ≥ 0; None where no μ has that."""

    try:
        gaussian = composition.gaussian_privacy(regret=regret)
    except InputError:  # a mass at infinity above the regret
        return None
    return {"mu": gaussian.mu, "regret": regret}


def _proof(composition: Composition, delta: float, digits: int | None) -> dict[str, Any]:
    if digits is None:
        return {
            "status": "not proved: the exact formula in floating point, with an error estimate",
        }
    proved = composition.certify_epsilon(delta, digits)
    return {
        "status": "proved in ball arithmetic, floating point included",
        "delta": delta,
        "epsilon_lower": proved.lower_decimal,
        "epsilon_upper": proved.upper_decimal,
    }


def _software() -> dict[str, str]:
    versions = {"symdp": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # another way of installing it
            continue
    return versions


def _date(date: object) -> str | None:
    try:
        if date is None:
            return None
        return datetime.date.fromisoformat(str(date)).isoformat()
    except ValueError:
        raise InputError(f"a card's date is written as 2026-01-31, not {date!r:.40}") from None


def _run(facts: object, composition: Composition) -> dict[str, Any] | None:
    """Return the facts of a training run, after its steps were found to be the card's."""
    if facts is None:
        return None
    if not isinstance(facts, dict) or set(facts) != _TRAINING:
        raise InputError(f"a card's 'training' must be {', '.join(sorted(_TRAINING))}")
    others = {name: value for name, value in facts.items() if name != "noise"}
    run = training(noise_multiplier=facts["noise"], **others)
    if dict(run.given_steps()) != dict(composition.given_steps()):
        raise InputError("the card's 'training' does not give the steps of its ledger")
    epochs = Fraction(facts["steps"] * facts["batch"], facts["examples"])
    return {
        **facts,
        "rate": str(Fraction(facts["batch"], facts["examples"])),
        "epochs": float(epochs),
    }


def _title(title: object) -> str:
    if not isinstance(title, str) or not title.strip() or len(title) > _LONGEST_TITLE:
        raise InputError(f"a card's title must be a text of 1 to {_LONGEST_TITLE} characters")
    return title


def _deltas(deltas: object) -> list[float]:
    """Return the δ of a card as doubles."""
    if not isinstance(deltas, list | tuple) or not 1 <= len(deltas) <= _MOST_DELTAS:
        raise InputError(f"a card's deltas must be a list of 1 to {_MOST_DELTAS} numbers")
    for delta in deltas:
        number = isinstance(delta, int | float) and not isinstance(delta, bool)
        if not number or not 0.0 < delta < 1.0:
            raise InputError(f"delta = {delta!r:.40}: it must lie strictly between 0 and 1")
    return [float(delta) for delta in deltas]


def _compared(path: str, stated: Any, again: Any) -> Iterator[Difference]:
    """Yield the places where two JSON values differ by more than rounding."""
    if isinstance(stated, dict) and isinstance(again, dict):
        for key in dict.fromkeys((*again, *stated)):
            inner = str(key)
            if path:
                inner = f"{path}.{key}"
            if key not in stated or key not in again:
                yield Difference(inner, stated.get(key, "nothing"), again.get(key, "nothing"))
            else:
                yield from _compared(inner, stated[key], again[key])
    elif isinstance(stated, list) and isinstance(again, list) and len(stated) == len(again):
        for number, (entry, other) in enumerate(zip(stated, again, strict=True)):
            yield from _compared(f"{path}[{number}]", entry, other)
    elif not _is_same(stated, again):
        yield Difference(path, stated, again)


def _is_same(stated: Any, again: Any) -> bool:
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (stated, again))
    if not numbers:
        return type(stated) is type(again) and bool(stated == again)
    return math.isfinite(stated) and abs(stated - again) <= SAME * abs(again)


_DIGITS = 6  # of the ε that is proved
_NEAR = 1e-3  # of the card's ε, that the proved one may lie above


def add_certificate(card: dict[str, Any], composition: Composition) -> None:
    """Put a certificate of the first δ, in both directions, into a card."""
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
    document = card["certificate"]
    claim = None
    if isinstance(document, dict):
        claim = document.get("claim")
    if not isinstance(claim, dict):
        yield "it has no claim"
        return
    if document.get("steps") != told_steps(composition):
        yield "its steps are not those of the card"
    if claim.get("direction") != "both":
        yield "it does not speak of both directions"
    first = card["privacy_parameters"][0]
    if claim.get("upper") != str(Fraction(first["delta"])):
        yield "its upper end is not the first δ of the card"
    gap = abs(_number(claim.get("epsilon")) - first["epsilon"])
    if gap > _NEAR * max(abs(first["epsilon"]), 1):
        yield "its ε is not next to the first one of the card"
    with TemporaryDirectory() as folder:
        file = Path(folder) / "certificate.json"
        file.write_text(json.dumps(document), encoding="utf-8")
        verdict = check(file)
    if verdict.code:
        yield verdict.text


def _number(text: object) -> float:
    try:
        return float(exact_number(str(text)))
    except InputError:
        return math.inf


def card_page(card: dict[str, Any]) -> Document:
    """Return the page of a card that `make_card` returned."""
    first = card["privacy_parameters"][0]
    neighbours = card["neighboring_datasets"]
    gaussian = card["gaussian_privacy"]
    run = card["training"]
    proved = card.get("certificate")
    software = ", ".join(f"{name} {release}" for name, release in card["software"].items())
    parts: dict[str, list[Block]] = {
        "": [Sentence(f"ε = {_epsilon(first)} at δ = {given(first['delta'])}. "
                      f"Protected: {neighbours['protects']}.")],
        "Privacy parameters": [Table(
            ("δ", "ε", "from", "to", "kind", "method", "direction"),
            [
                (given(row["delta"]), _epsilon(row), _end(row["lower"], "down"),
                 _end(row["upper"], "up"), row["kind"], row["method"], row["direction"])
                for row in card["privacy_parameters"]
            ],
            card["differential_privacy_variant"],
            numbers=range(7),
        )],
        "Unit of privacy and neighboring datasets": [Listing([
            f"Unit of privacy: {card['unit_of_privacy']}",
            f"Relation: {neighbours['relation']}; {neighbours['kind']}",
            f"Protected: {neighbours['protects']}",
        ])],
        "Mechanism and composition": [Table(
            ("steps", "mechanism", "parameters", "sampling"),
            [
                (str(row["count"]), row["title"] or row["name"], _values(row),
                 row["sampling"] or "none")
                for row in card["mechanism"]
            ],
            f"{card['composition']['steps']} steps, {card['composition']['distinct']} distinct",
        )],
        "What an attack can reach": [Table(
            ("false positive rate", "true positive rate, at most"),
            [
                (given(row["false_positive_rate"]), _up(row["true_positive_rate"]))
                for row in card["attack"]["trade_off"]
            ],
            f"Advantage over guessing, at most {_up(card['attack']['advantage'])}",
            numbers=range(2),
        )],
        "Proof": [
            Listing([f"{name.replace('_', ' ')}: {words}" for name, words in card["proof"].items()])
        ],
        "Not covered": [Listing(card["not_covered"])],
        "Software and inputs": [
            Listing([software, f"SHA-256 of the exact inputs: {card['sha256']}"])
        ],
    }  # fmt: skip
    if card["date"]:
        parts[""].append(Sentence(f"Date: {card['date']}."))
    if gaussian is not None:
        parts["Privacy parameters"].append(Sentence(
            f"μ-GDP with its regret: δ(ε) ≤ δ_μ(ε) + {given(gaussian['regret'])} for every ε ≥ 0, "
            f"with μ = {_up(gaussian['mu'])} and δ_μ the profile of N(μ, 1) against N(0, 1)."
        ))  # fmt: skip
    if run is not None:
        parts["Mechanism and composition"].append(Listing([
            f"training examples N: {run['examples']}",
            f"batch: {run['batch']}, rate {run['rate']}",
            f"epochs: {run['epochs']:.6g}",
            f"steps: {run['steps']}",
            f"noise multiplier: {run['noise']}",
        ]))  # fmt: skip
    if proved is not None:
        parts["Proof"].append(Sentence(
            f"Certificate: δ({proved['claim']['epsilon']}) ≤ {given(first['delta'])},"
            " proved by a program of integers alone from the certificate in the card's JSON form;"
            " symdp card --check runs it."
        ))  # fmt: skip
    if card["citation"]:
        parts["Citation"] = [Command(card["citation"])]
    blocks: list[Block] = []
    for title, content in parts.items():
        if title:
            blocks.append(Heading(2, title))
        blocks += content
    return Document(card["title"], blocks)


def _values(step: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in step["parameters"].items())


def _epsilon(parameters: Mapping[str, Any]) -> str:
    """Return ε rounded up, from the upper end of its interval where there is one."""
    upper = parameters["upper"]
    if upper is None:
        return _up(parameters["epsilon"])
    return _up(upper)


def _up(value: float) -> str:
    return rounded(value, _DIGITS, "up")


def _end(value: float | None, side: Side) -> str:
    if value is None:
        return ""
    return rounded(value, _DIGITS + 4, side)


_OPEN = "to be filled in"
_WHOLE = re.compile(r"(\d+)(e[+-]\d+)?")  # which lacks a point


def registry_record(card: Mapping[str, Any]) -> str:
    """Return a card in the schema of the registry of deployments, opendp/deployments-registry-data.

    It is a record of the second tier, as YAML. What no computation knows stays empty where the
    schema requires it, and is left out elsewhere: the registry's own check names what is missing.
    Texts are written as JSON strings, which YAML reads as they are, or as block scalars; numbers
    have the point without which YAML 1.1 reads a text.
    """
    first = card["privacy_parameters"][0]
    others = card["privacy_parameters"][1:]
    neighbours = card["neighboring_datasets"]
    steps = card["composition"]["steps"]
    software = ", ".join(f"{name} {release}" for name, release in card["software"].items())
    more = [f"ε = {_epsilon(row)} at δ = {given(row['delta'])}, {row['kind']}" for row in others]
    product = ""
    if card["training"]:
        product = "Machine learning model"
    record = {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", card["title"].lower()).strip("-") or "deployment",
        "status": "Draft",
        "tier": 2,
        "deployment": {
            "basic": {
                "name": card["title"],
                "data_curators": [""],
                "intended_use": "",
                "data_product_type": product,
                "data_product_region": "",
                "description": "",
                "publication_date": "",
            },
            "dp_variant": {"variant_name": "Approximate DP"},
            "privacy_loss": {
                "privacy_unit": f"{card['unit_of_privacy']} of the data",
                "privacy_unit_details": f"Protected: {neighbours['protects']}.",
                "privacy_parameters": {
                    "epsilon": Fraction(_epsilon(first)), "delta": first["delta"]
                },
                "privacy_parameters_details": [
                    f"{first['kind']} by {first['method']}, direction {first['direction']}", *more
                ],
            },
            "accounting": {
                "composition": f"{steps} steps, composed by the law of their total privacy loss",
            },
            "implementation": {"mechanisms": [*map(_told, card["mechanism"])]},
            "administrative": {
                "sources": "",
                "notes": [f"computed by {software}", f"SHA-256 of the inputs: {card['sha256']}"],
                "registry_authors": [""],
            },
        },
    }  # fmt: skip
    return "\n".join(_lines(record, 0)) + "\n"


def _told(step: Mapping[str, Any]) -> str:
    what = step["title"] or step["name"]
    parameters = _values(step) or "no parameters"
    sampling = step["sampling"]
    if sampling is None:
        sampling = "no sampling"
    return f"{step['count']} × {what}, {parameters}; {sampling}"


def _lines(table: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Yield the lines of a table; a list of texts is a list in Markdown but where lists belong."""
    margin = "  " * depth
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield f"{margin}{name}:"
            yield from _lines(value, depth + 1)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            if name in ("data_curators", "registry_authors"):
                yield f"{margin}{name}:"
                yield from (f"{margin}  - {_scalar(item)}" for item in value)
            else:
                yield f"{margin}{name}: |"
                yield from (f"{margin}  - {_printable(item)}" for item in value)
        else:
            yield f"{margin}{name}: {_scalar(value)}"


def _scalar(value: object) -> str:
    if isinstance(value, Fraction | float):
        text = given(float(value))
        if _WHOLE.fullmatch(text):
            return _WHOLE.sub(r"\1.0\2", text)
        return text
    if value == "":
        return f"''  # {_OPEN}"
    if isinstance(value, str):
        value = _printable(value)
    return json.dumps(value, ensure_ascii=False)


def _printable(text: str) -> str:
    """Return a text on one line, without the characters that YAML refuses."""
    refused = {ord(sign): " " for sign in text if not sign.isprintable()}
    return " ".join(text.translate(refused).split())
