"""The head of a report: what a guarantee means, for a person who does not know ε."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from symdp.decimal_text import given, rounded
from symdp.interrupt import time_limit
from symdp.model.relation import SUBSTITUTION, ZERO_OUT
from symdp.page.analysis import Results
from symdp.page.blocks import Block, Paragraph, Table
from symdp.page.profile import FAILURES

if TYPE_CHECKING:
    from symdp.model.relation import Protection
    from symdp.questions.composition import Composition

_FALSE_ALARMS = (0.01, 0.001)
_SECONDS = 10.0  # for what attacks find
_PRESENCE = "whether one record was in the data"


def head_blocks(composition: Composition, delta: float, results: Results) -> list[Block]:
    """Return a plain sentence with four digits of ε, and what the best attack finds at most."""
    best = results.best
    if best is None:
        return []
    from symdp.questions.tradeoff import trade_off

    rows = []
    try:
        with time_limit(_SECONDS):
            for alpha in _FALSE_ALARMS:
                found = 100.0 * (1.0 - trade_off(composition, alpha))
                rows.append((f"{100 * alpha:g} %", f"{rounded(found, 3, side='up')} %"))
    except FAILURES:
        rows = []
    epsilon = rounded(best.epsilon, 4, side="up")
    promise = f"the guarantee is ε = {epsilon} at δ = {given(delta)}"
    secret = _secret(composition.protection)
    sentence = f"Whoever sees what is released learns little about {secret}: {promise}"
    if rows:
        alarm, reached = rows[0]
        sentence = (
            f"An attack on {secret}, with {alarm} false alarms, finds at most {reached}: {promise}"
        )
        if secret == _PRESENCE:
            sentence = (
                f"An attack that accuses {alarm} of those who are not in the data finds at most "
                f"{reached} of those who are: {promise}"
            )
    blocks: list[Block] = [Paragraph(f"{sentence}. {datetime.now(UTC):%Y-%m-%d}.")]
    if rows:
        head = ("false alarms", "found at most")
        blocks.append(Table(head, rows, f"The best attack on {secret}", 0))
    return blocks


def _secret(whose: Protection) -> str:
    """Return what an attack wants to know."""
    who, verb = ("one record", "was") if whose.group == 1 else (f"{whose.group} records", "were")
    if whose.relation == SUBSTITUTION:
        return f"which value {who} had" if whose.group == 1 else f"which values {who} had"
    if whose.relation == ZERO_OUT:
        return f"whether {who} {verb} set to zero"
    return f"whether {who} {verb} in the data"
