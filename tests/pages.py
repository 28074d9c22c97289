"""What tests read in a page: its blocks of code, its commands with their output, its links."""

from __future__ import annotations

import doctest
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)")
# Times, and what a method thinks of its own rounding, differ between machines.
_VARIES = [
    (re.compile(r"[\d.e-]+ s$", re.MULTILINE), "TIME s"),
    (re.compile(r"at most [\d.e-]+ by"), "at most ERROR by"),
]


@dataclass(frozen=True)
class Page:
    """A Markdown file."""

    path: Path

    @cached_property
    def text(self) -> str:
        """All of it."""
        return self.path.read_text(encoding="utf-8")

    def blocks(self, language: str) -> list[str]:
        """Return the blocks of code in a language."""
        return [body for kind, body in _BLOCK.findall(self.text) if kind == language]

    def console(self) -> list[tuple[str, str]]:
        """Return every command line with the output that the page shows, which may be none."""
        found = []
        for body in self.blocks("console"):
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, _, expected = part.partition("\n")
                found.append((command, expected))
        return found

    def links(self) -> list[str]:
        """Return the files to which the page links, relative to its folder."""
        return [target for target in _LINK.findall(self.text) if "://" not in target]


def settled(text: str) -> str:
    """Return output without what differs between machines."""
    for pattern, word in _VARIES:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def complaints(code: str, name: str) -> str:
    """Run a block of doctest; return what went otherwise than shown."""
    test = doctest.DocTestParser().get_doctest(code, {}, name, name, 0)
    assert test.examples, f"{name}: a block of Python without a prompt is not run"
    found: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=found.append)
    return "".join(found)
