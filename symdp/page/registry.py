"""A card in the schema of the registry of deployments, opendp/deployments-registry-data, as YAML.

What no computation knows stays empty where the schema requires it, and is left out elsewhere: the
registry's own check then names what is missing. Texts are written as JSON strings, which YAML reads
as they are, or as block scalars; numbers have the point without which YAML 1.1 reads a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from symdp.decimal_text import given, rounded

_OPEN = "to be filled in"
_NUMBER = re.compile(r"(\d+)(e[+-]\d+)?")  # which lacks a point


def registry_record(card: Mapping[str, Any]) -> str:
    """Return a record of the second tier for a card that `make_card` returned."""
    first, others = card["privacy_parameters"][0], card["privacy_parameters"][1:]
    neighbours, steps = card["neighboring_datasets"], card["composition"]["steps"]
    software = ", ".join(f"{name} {release}" for name, release in card["software"].items())
    more = [f"ε = {_up(row)} at δ = {given(row['delta'])}, {row['kind']}" for row in others]
    made = "Machine learning model" if card["training"] else ""
    record = {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", card["title"].lower()).strip("-") or "deployment",
        "status": "Draft",
        "tier": 2,
        "deployment": {
            "basic": {
                "name": card["title"],
                "data_curators": [""],
                "intended_use": "",
                "data_product_type": made,
                "data_product_region": "",
                "description": "",
                "publication_date": "",
            },
            "dp_variant": {"variant_name": "Approximate DP"},
            "privacy_loss": {
                "privacy_unit": f"{card['unit_of_privacy']} of the data",
                "privacy_unit_details": f"Protected: {neighbours['protects']}.",
                "privacy_parameters": {"epsilon": Fraction(_up(first)), "delta": first["delta"]},
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


def _up(row: Mapping[str, Any]) -> str:
    """Return an ε that holds, to six digits."""
    return rounded(row["epsilon"] if row["upper"] is None else row["upper"], 6, "up")


def _told(step: Mapping[str, Any]) -> str:
    values = ", ".join(f"{name} = {value}" for name, value in step["parameters"].items())
    drawn = "no sampling" if step["sampling"] is None else step["sampling"]
    return (
        f"{step['count']} × {step['title'] or step['name']}, {values or 'no parameters'}; {drawn}"
    )


def _lines(table: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Yield the lines of a table; a list of texts is a list in Markdown but where lists belong."""
    margin = "  " * depth
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield f"{margin}{name}:"
            yield from _lines(value, depth + 1)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            is_text = name not in ("data_curators", "registry_authors")
            yield f"{margin}{name}:{' |' if is_text else ''}"
            for one in value:
                yield f"{margin}  - {_printable(one) if is_text else _scalar(one)}"
        else:
            yield f"{margin}{name}: {_scalar(value)}"


def _scalar(value: object) -> str:
    if isinstance(value, Fraction | float):
        text = given(float(value))
        return _NUMBER.sub(r"\1.0\2", text) if _NUMBER.fullmatch(text) else text
    if value == "":
        return f"''  # {_OPEN}"
    return json.dumps(_printable(value) if isinstance(value, str) else value, ensure_ascii=False)


def _printable(text: str) -> str:
    """Return a text on one line, without the characters that YAML refuses."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
