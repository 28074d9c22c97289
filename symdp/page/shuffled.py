"""A report on one round of shuffled answers: the bound, a proof of it, attacks, and formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from symdp.citation import bibtex
from symdp.decimal_text import given, rounded
from symdp.interrupt import time_limit
from symdp.model.local import Local
from symdp.model.relation import is_shuffled
from symdp.page.document import (
    Block,
    Command,
    Document,
    Figure,
    Folded,
    Heading,
    Listing,
    Sentence,
    Table,
)
from symdp.page.plot import Series
from symdp.page.report import PROFILE, full
from symdp.page.sections.local import local_sections
from symdp.page.verification import FAILURES, Results, default_range, evenly, reason_of, sample
from symdp.tolerances import SHORT_TIME

if TYPE_CHECKING:
    from symdp.arguments import MethodName
    from symdp.model.mechanism import Mechanism
    from symdp.questions.composition import Composition

_METHODS: tuple[MethodName, ...] = ("contour", "clones")
_NAMES = {"contour": "blanket", "clones": "clones"}
_ALARMS = (0.01, 0.001)  # false positive rates of an attack
_POINTS = 40  # of a drawn profile
_FOR_A_PROOF = 20.0  # seconds of work
_PROVED_DIGITS = 3
_ANSWERS = "answers"
_UNPATIENT = 10.0  # times the seconds of one answer, for all rates of an attack


def is_one_round(composition: Composition) -> bool:
    """Whether a composition is one round of shuffled answers, of which no pair of laws is known."""
    return len(composition.steps) == 1 and is_shuffled(composition.steps[0][0])


class ShuffledReport:
    """A page on one round of shuffled answers that is made part by part."""

    def __init__(
        self, head: tuple[str, str], composition: Composition, delta: float, *, undrawn: str = ""
    ) -> None:
        self.results = Results()
        self._title, self._typed = head
        self._steps = composition
        self._delta = delta
        self._undrawn = undrawn
        self._rows: list[tuple[str, str, str]] = []
        self._blocks: dict[str, list[Block]] = {}

    @property
    def mechanism(self) -> Mechanism:
        """The randomizer with its people."""
        return self._steps.steps[0][0]

    def make(self, digits: int, patience: float | None) -> Iterator[tuple[str, list[str]]]:
        """Make the page; yield what comes next, and what is not there yet."""
        work: dict[str, Callable[[], None]] = {
            _ANSWERS: self._answer,
            "proof": self._prove,
            "attacks": self._attack,
            PROFILE: self._draw,
            "derivation": self._derive,
            "sources": self._cite,
        }
        for index, (part, make) in enumerate(work.items()):
            yield part, [*work][index:]
            make()

    def document(self, title: str, mark: str = "") -> Document:
        """Return what is there, a mark above it where it is not all."""
        blocks: list[Block] = [Heading(2, self._title)]
        if mark:
            blocks.append(Sentence(f"{mark[:1].upper()}{mark[1:]}.", "warning"))
        if self._typed:
            blocks.append(Sentence(f"Asked: {self._typed}", "quiet"))
        head = ("asked", "answer", "which is")
        table = Table(head, self._rows, "Answers", (1,), strong=frozenset({0}))
        parts = (PROFILE, "derivation", "sources")
        appendix = [block for part in parts for block in self._blocks.get(part, ())]
        left = ", ".join(f"{name} ({reason})" for name, reason in self.results.failures)
        if self._rows:
            blocks.append(table)
        blocks.append(Sentence(f"Protects {self._steps.protection.sentence}."))
        blocks.append(Folded("Appendix: the profile, the formulas, the sources", appendix))
        blocks.append(Sentence(f"Not evaluated: {left or 'nothing'}.", "quiet"))
        return Document(title, blocks)

    def _answer(self) -> None:
        """ε of the bound, by clones, and of an answer that is seen by itself."""
        question = f"ε at δ = {given(self._delta)}"
        for method in _METHODS:
            try:
                answer = self._steps.epsilon(self._delta, method)
            except FAILURES as error:
                self.results.failures.append((_NAMES[method], reason_of(error)))
                continue
            self.results.answers.append(answer)
            name = question
            if method != "contour":
                name = f"{question}, by clones"
            self._rows.append((name, rounded(answer.epsilon, 4, side="up"), "bound"))
        alone = replace(self._source, people=None)
        with suppress(*FAILURES):
            steps = type(self._steps)([(replace(self.mechanism, source=alone), 1)])
            answer = steps.epsilon(self._delta)
            shown = rounded(answer.epsilon, 4, side="up")
            self._rows.append(
                (f"{question}, of one answer that is not shuffled", shown, answer.kind)
            )

    @property
    def _source(self) -> Local:
        source = self.mechanism.source
        assert isinstance(source, Local)
        return source

    def _prove(self) -> None:
        """Add ε with every rounding counted."""
        try:
            with time_limit(_FOR_A_PROOF):
                proved = self._steps.certify_epsilon(self._delta, _PROVED_DIGITS)
        except FAILURES as error:
            self.results.failures.append(("proof", reason_of(error)))
            return
        shown = rounded(proved.epsilon, 4, side="up")
        self._rows.append((f"ε at δ = {given(self._delta)}, again", shown, "proved"))

    def _attack(self) -> None:
        """Add the most that an attack finds at some rates of false alarms."""
        for rate in _ALARMS:
            with suppress(*FAILURES), time_limit(_UNPATIENT * SHORT_TIME):
                most = 1.0 - self._steps.trade_off(rate)
                question = f"attack, {100 * rate:g} % false alarms"
                self._rows.append((question, f"≤ {rounded(100.0 * most, 3, side='up')} %", "found"))

    def _draw(self) -> None:
        """The profile by the bound and by clones."""
        heading = Heading(3, "Privacy profile")
        if self._undrawn:
            why = Sentence(f"The profile was not drawn: {self._undrawn}.", "warning")
            self._blocks[PROFILE] = [heading, why]
            return
        places = evenly(default_range(self._steps), _POINTS)
        curves = []
        for method in _METHODS:
            answers = sample(self._steps, places, method, seconds=2.0 * SHORT_TIME)
            if answers:
                curves.append(Series.of(_NAMES[method], answers))
        drawn = " and ".join(curve.label for curve in curves)
        figure = Figure(curves, f"The privacy profile, at most, by {drawn}.", "profile")
        self._blocks[PROFILE] = [heading, figure]

    def _derive(self) -> None:
        """ω, γ, X and the bound as formulas."""
        from symdp.derive.without_pair.local import derive_local

        blocks = self._blocks.setdefault("derivation", [])
        try:
            for section in local_sections(derive_local(self.mechanism)):
                blocks += section.blocks(3)
        except FAILURES as error:
            blocks.append(Sentence(f"not derived: {reason_of(error)}", "warning"))

    def _cite(self) -> None:
        cited = [tag for answer in self.results.answers for tag in answer.citations]
        self._blocks["sources"] = [
            Heading(3, "Sources"),
            Listing(full(cited)),
            Folded("BibTeX", [Command(bibtex(cited))]),
        ]
