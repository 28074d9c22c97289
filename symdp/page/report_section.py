"""One composition as a section of a report: what it is, what was derived, what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from symdp.citation import REFERENCES, bibtex, tag_of
from symdp.decimal_text import given, rounded
from symdp.errors import InputError
from symdp.interrupt import time_limit
from symdp.page import formulas
from symdp.page.analysis import GUIDES, Results, different_sides
from symdp.page.blocks import (
    Block,
    Code,
    Folded,
    Formulas,
    Heading,
    Listing,
    Paragraph,
    Plot,
)
from symdp.page.derived import cumulant_table, derivation_blocks, mechanism_blocks
from symdp.page.numbers import check_blocks, epsilon_table, truth_text
from symdp.page.plot import Series
from symdp.page.profile import FAILURES, default_range, evenly, reason_of, sample

if TYPE_CHECKING:
    from symdp.questions.composition import Composition

DRAWN = ("contour", "msd:1", "clt", "moments")
_POINTS = 60
_SECONDS = 4.0  # for one curve


def section(
    title: str,
    composition: Composition,
    delta: float,
    results: Results,
    *,
    name: str = "profile",
    order: int = 2,
    advance: Callable[[str], None] = lambda _: None,
    undrawn: str = "",
) -> list[Block]:
    """Return the blocks of one composition.

    Parameters
    ----------
    title
        The section's heading.
    composition, delta, results
        What was analysed; see `symdp.page.analysis.analyse`.
    name
        Distinguishes this section's figures from others on the page.
    order
        Highest order of the series shown.
    advance
        Told what comes next.
    undrawn
        Why there are no figures; the page says so in their place, and what they alone would
        need is not computed.
    """
    from symdp.derive.printed import citations

    protects = Paragraph(f"Protects {composition.protection.sentence}.")
    blocks: list[Block] = [Heading(2, title), Paragraph(_summary(delta, results)), protects]
    for mechanism, count in composition.steps:
        advance(f"derivation of {mechanism.name}")
        try:
            blocks += mechanism_blocks(mechanism, count)
        except InputError as error:
            blocks.append(Paragraph(f"{mechanism.name}: not derived: {error}", "warning"))
    blocks += [Heading(3, f"ε at δ = {given(delta)}"), *epsilon_table(results)]
    advance("privacy profile")
    blocks += [Heading(3, "Privacy profile"), *_profile(composition, results, name, undrawn)]
    checked = check_blocks(results, name)
    shown = [block for block in checked if not (undrawn and isinstance(block, Plot))]
    blocks += [Heading(3, "Checked against truth"), *shown]
    best = results.best
    epsilon = best.epsilon if best is not None and len(composition.steps) == 1 else None
    sources: list[str] = []
    for mechanism, count in composition.steps:
        advance(f"derivation of {mechanism.name}")
        try:
            blocks += derivation_blocks(mechanism, count, epsilon)
            sources += citations(mechanism)
        except InputError as error:
            blocks.append(Paragraph(f"{mechanism.name}: not derived: {error}", "warning"))
    text = (
        "The saddle-point and Edgeworth series in the derivatives F_j of n K(t) − ε t − log t − "
        "log(1 + t) and in the standardised cumulants λ_j: each order adds its correction terms. "
        "δ_∞ is the mass of an infinite loss, mostly 0; K and the cumulants are of finite losses."
    )
    blocks += [Heading(3, "Cumulants and correction terms")]
    blocks += cumulant_table(composition, different_sides(composition))
    blocks.append(Paragraph(text))
    blocks.append(Formulas(formulas.series(order)))
    sources += [c for answer in results.answers for c in answer.citations]
    listed: list[Block] = [Listing(full(sources)), Folded("BibTeX", [Code(bibtex(sources))])]
    return [*blocks, Heading(3, "Sources"), *listed]


def _summary(delta: float, results: Results) -> str:
    best = results.best
    if best is None:
        reason = dict(results.failures).get("contour", "no exact answer")
        text = f"At δ = {given(delta)} there is no exact ε: {reason}"
        bounds = [a.epsilon for a in results.answers if a.kind == "bound"]
        if not bounds:
            return f"{text}."
        return f"{text}; the least proved bound is {rounded(min(bounds), side='up')}."
    text = f"At δ = {given(delta)}: ε = {best.epsilon_text()}, the exact formula in floating point"
    bound = next((a for a in results.answers if a.method == "moments"), None)
    if bound is not None:
        text += f"; the tightened moments bound gives {bound.epsilon_text()}"
    truth = results.truth
    if truth is not None and truth.exact is not None:
        shown = truth_text(truth)
        what = "certified values of δ give" if truth.certified else "the truth begins"
        text += f"; {what} {shown}"
    return f"{text}."


def _profile(composition: Composition, results: Results, name: str, undrawn: str) -> list[Block]:
    """The profile by the main accountants with truth on it."""
    if undrawn:
        return [Paragraph(f"The profile was not drawn: {undrawn}.", "warning")]
    reason = "no accountant has an answer"
    late = {method for method, _ in results.failures} if results.answers else set()
    ends = None
    for guide in GUIDES:
        if ends is None and guide not in late:
            try:
                with time_limit(_SECONDS):
                    ends = default_range(composition, method=guide)
            except FAILURES as error:
                reason = reason_of(error)
                late.add(guide)
    if ends is None:
        return [Paragraph(f"The profile was not drawn: {reason}.", "warning")]
    curves = [
        Series.of(method, answers)
        for method in DRAWN
        if method not in late
        and (answers := sample(composition, evenly(ends, _POINTS), method, seconds=_SECONDS))
    ]
    truths = {
        c.truth.epsilon: c.truth.log
        for c in results.checks
        if c.truth.value is not None and c.truth.epsilon <= 1.01 * ends[1]
    }
    if truths:
        places = sorted(truths)
        logs = tuple(truths[epsilon] for epsilon in places)
        curves.append(Series("truth", tuple(places), logs, dots=True))
    drawn = ", ".join(curve.label for curve in curves)
    return [Plot(curves, f"The privacy profile by {drawn}.", name)]


def full(citations: Iterable[str]) -> list[str]:
    """Return the sources of citations such as "SPA (61)", each once, tags spelled out.

    >>> full(["FA Alg. 1", "FA 6.2"])[0][:26]
    'FA: A. Koskela, J. Jälkö, '
    """
    found: dict[str, None] = {}
    for citation in citations:
        known = REFERENCES.get(tag_of(citation))
        found[f"{known.tag}: {known.text()}" if known else citation] = None
    return [text for text in found if text]
