"""What a page consists of, before it becomes HTML or Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from symdp.page.plot import Series
from symdp.page.section import Line


@dataclass(frozen=True)
class Heading:
    """A heading of level 2 (a section), 3 or 4."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Plain text; `tone` is "" or "warning"."""

    text: str
    tone: str = ""


@dataclass(frozen=True)
class Formulas:
    """Equations, one below the other; long ones are folded."""

    formulas: Sequence[Line]


@dataclass(frozen=True)
class Table:
    """Rows of text below a head; the columns from `numbers_from` to `numbers_to` hold numbers.

    `strong` lists the rows that stand out, `bad` those that are wrong.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    numbers_from: int = 1
    numbers_to: int | None = None  # the first column behind them
    strong: frozenset[int] = frozenset()
    bad: frozenset[int] = frozenset()

    def holds_numbers(self, column: int) -> bool:
        """Whether a column is set to the right."""
        behind = len(self.head) if self.numbers_to is None else self.numbers_to
        return self.numbers_from <= column < behind


@dataclass(frozen=True)
class Plot:
    """Curves with a caption; `name` is unique within the page.

    `of_errors` is for relative errors: a row for each accountant.
    """

    series: Sequence[Series]
    caption: str
    name: str
    of_errors: bool = False


@dataclass(frozen=True)
class Listing:
    """A list of lines."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Code:
    """Text that is copied as it stands."""

    text: str


@dataclass(frozen=True)
class Folded:
    """Blocks behind a line that opens them."""

    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Embedded:
    """Markup of our own that a browser runs, such as a panel; Markdown leaves it out."""

    html: str


Block: TypeAlias = (
    Heading | Paragraph | Formulas | Table | Plot | Listing | Code | Folded | Embedded
)


@dataclass
class Page:
    """A title and what stands below it."""

    title: str
    blocks: list[Block] = field(default_factory=list)
