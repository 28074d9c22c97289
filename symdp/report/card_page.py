"""A privacy card for people: a page that becomes Markdown or HTML, and LaTeX."""

from __future__ import annotations

from typing import Any

from symdp.decimal_text import given, rounded
from symdp.report.blocks import Block, Code, Heading, Listing, Page, Paragraph, Table

_DIGITS = 6


def card_page(card: dict[str, Any]) -> Page:
    """Return the page of a card that `make_card` returned."""
    first = card["privacy_parameters"][0]
    neighbours = card["neighboring_datasets"]
    blocks: list[Block] = [
        Paragraph(
            f"ε = {_epsilon(first)} at δ = {given(first['delta'])}. "
            f"Protected: {neighbours['protects']}."
        ),
        Heading(2, "Privacy parameters"),
        Table(
            ("δ", "ε", "from", "to", "kind", "method", "direction"),
            [
                (
                    given(row["delta"]),
                    _epsilon(row),
                    _end(row["lower"], up=False),
                    _end(row["upper"], up=True),
                    row["kind"],
                    row["method"],
                    row["direction"],
                )
                for row in card["privacy_parameters"]
            ],
            card["differential_privacy_variant"],
            numbers_from=0,
        ),
        Heading(2, "Unit of privacy and neighboring datasets"),
        Listing(
            [
                f"Unit of privacy: {card['unit_of_privacy']}",
                f"Relation: {neighbours['relation']}; {neighbours['kind']}",
                f"Protected: {neighbours['protects']}",
            ]
        ),
        Heading(2, "Mechanism and composition"),
        Table(
            ("steps", "mechanism", "parameters", "sampling"),
            [
                (
                    str(row["count"]),
                    row["title"] or row["name"],
                    ", ".join(f"{name} = {value}" for name, value in row["parameters"].items()),
                    row["sampling"] or "none",
                )
                for row in card["mechanism"]
            ],
            f"{card['composition']['steps']} steps, {card['composition']['distinct']} distinct",
            numbers_from=4,
        ),
        Heading(2, "What an attack can reach"),
        Table(
            ("false positive rate", "true positive rate, at most"),
            [
                (given(row["false_positive_rate"]), _up(row["true_positive_rate"]))
                for row in card["attack"]["trade_off"]
            ],
            f"Advantage over guessing, at most {_up(card['attack']['advantage'])}",
            numbers_from=0,
        ),
        Heading(2, "Proof"),
        Listing([f"{name.replace('_', ' ')}: {value}" for name, value in card["proof"].items()]),
        Heading(2, "Not covered"),
        Listing(card["not_covered"]),
        Heading(2, "Software and inputs"),
        Listing(
            [
                ", ".join(f"{name} {release}" for name, release in card["software"].items()),
                f"SHA-256 of the exact inputs: {card['sha256']}",
            ]
        ),
    ]
    if card["citation"]:
        blocks += [Heading(2, "Citation"), Code(card["citation"])]
    return Page(card["title"], blocks)


def _epsilon(parameters: dict[str, Any]) -> str:
    """Return ε rounded up, from the upper end of its interval where there is one."""
    upper = parameters["upper"]
    return _up(parameters["epsilon"] if upper is None else upper)


def _up(value: float) -> str:
    return rounded(value, _DIGITS, "up")


def _end(value: float | None, *, up: bool) -> str:
    return "" if value is None else rounded(value, _DIGITS + 4, "up" if up else "down")
