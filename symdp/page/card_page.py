"""The page of a privacy card, of which HTML, Markdown and LaTeX are made."""

from __future__ import annotations

from typing import Any

from symdp.decimal_text import given, rounded
from symdp.page.blocks import Block, Code, Heading, Listing, Page, Paragraph, Table

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
        *([Paragraph(f"Date: {card['date']}.")] if card["date"] else []),
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
        *_gaussian(card),
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
        *_training(card),
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
        *_certificate(card),
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


def _gaussian(card: dict[str, Any]) -> list[Block]:
    found = card["gaussian_privacy"]
    if found is None:
        return []
    return [
        Paragraph(
            f"μ-GDP with its regret: δ(ε) ≤ δ_μ(ε) + {given(found['regret'])} for every ε ≥ 0, "
            f"with μ = {_up(found['mu'])} and δ_μ the profile of N(μ, 1) against N(0, 1)."
        )
    ]


def _training(card: dict[str, Any]) -> list[Block]:
    run = card["training"]
    if run is None:
        return []
    facts = {
        "training examples N": run["examples"],
        "batch": f"{run['batch']}, rate {run['rate']}",
        "epochs": f"{run['epochs']:.6g}",
        "steps": run["steps"],
        "noise multiplier": run["noise"],
    }
    return [Listing([f"{name}: {value}" for name, value in facts.items()])]


def _certificate(card: dict[str, Any]) -> list[Block]:
    """Return what a page says of the certificate that stands in the JSON form."""
    if "certificate" not in card:
        return []
    claim = card["certificate"]["claim"]
    return [
        Paragraph(
            f"Certificate: δ({claim['epsilon']}) ≤ {given(card['privacy_parameters'][0]['delta'])},"
            " proved by a program of integers alone from the certificate in the card's JSON form;"
            " symdp card --check runs it."
        )
    ]


def _epsilon(parameters: dict[str, Any]) -> str:
    """Return ε rounded up, from the upper end of its interval where there is one."""
    upper = parameters["upper"]
    return _up(parameters["epsilon"] if upper is None else upper)


def _up(value: float) -> str:
    return rounded(value, _DIGITS, "up")


def _end(value: float | None, *, up: bool) -> str:
    return "" if value is None else rounded(value, _DIGITS + 4, "up" if up else "down")
