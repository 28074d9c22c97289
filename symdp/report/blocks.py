"""What a page consists of, before it becomes HTML or Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from symdp.report.formulas import Formula
from symdp.report.plot import Series


@dataclass(frozen=True)
class Heading:
    """A heading of level 2 (a section) or 3."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Plain text; `tone` is "" or "warning"."""

    text: str
    tone: str = ""


@dataclass(frozen=True)
class Formulas:
    """Equations, one below the other."""

    formulas: Sequence[Formula]


@dataclass(frozen=True)
class Table:
    """Rows of text below a head; the columns from `numbers_from` on hold numbers.

    `strong` lists the rows that stand out, `bad` those that are wrong.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    numbers_from: int = 1
    strong: frozenset[int] = frozenset()
    bad: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Plot:
    """Curves with a caption; `name` is unique within the page."""

    series: Sequence[Series]
    caption: str
    name: str


@dataclass(frozen=True)
class Listing:
    """A list of lines."""

    lines: Sequence[str]


Block: TypeAlias = Heading | Paragraph | Formulas | Table | Plot | Listing


@dataclass
class Page:
    """A title and what stands below it."""

    title: str
    blocks: list[Block] = field(default_factory=list)
