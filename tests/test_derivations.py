"""The derivation pages are run: every cell in order, every assert, warnings as errors.

The documentation build runs the same pages in a notebook kernel; this needs neither Sphinx nor
Jupyter, and says which page, which cell and which line failed.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sympy as sp

import symdp

ROOT = Path(__file__).parents[1]
FENCE = re.compile(
    r"^(?P<fence>`{3,})\{code-cell\}[^\n]*\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.M | re.S
)
OPTIONS = re.compile(r"\A(?:---\n.*?^---\n|(?::[\w-]+:[^\n]*\n)+)", re.M | re.S)
DERIVATIONS = sorted((ROOT / "derivations").glob("*.md"))
GUIDES = sorted((ROOT / "docs").glob("*.md"))


@dataclass(frozen=True)
class Cell:
    """One code cell; `line` is how many lines of the page come before its code."""

    number: int
    line: int
    code: str


def cells(text: str) -> list[Cell]:
    """Return the code cells of a MyST page, without their options."""
    found = []
    for number, match in enumerate(FENCE.finditer(text), start=1):
        body, start = match["body"], match.start("body")
        if options := OPTIONS.match(body):
            body, start = body[options.end() :], start + options.end()
        found.append(Cell(number, text.count("\n", 0, start), body))
    return found


def assert_has_left_side(shown: Any) -> None:
    """A formula that a page displays says what it is."""
    for one in shown if isinstance(shown, list | tuple | sp.Tuple) else [shown]:
        assert not isinstance(one, sp.Expr) or one.is_number, f"{one} = what?"


def run(page: Path) -> None:
    """Run a page in a namespace of its own; what a cell raises carries the cell's name."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells(page.read_text(encoding="utf-8")):
        # Blank lines in front make the traceback's line numbers those of the page.
        tree, shown = ast.parse("\n" * cell.line + cell.code, str(page)), None
        if page in DERIVATIONS and tree.body and isinstance(tree.body[-1], ast.Expr):
            shown = ast.Expression(tree.body.pop().value)
        try:
            exec(compile(tree, str(page), "exec", dont_inherit=True), namespace)
            if shown is not None:
                code = compile(shown, str(page), "eval", dont_inherit=True)
                assert_has_left_side(eval(code, namespace))
        except Exception as error:
            error.add_note(f"{page.name}, cell {cell.number}, which begins at line {cell.line + 1}")
            raise


@pytest.fixture(autouse=True)
def _drawing_board(monkeypatch):
    """Draw figures without a screen, and let none outlive its page."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    monkeypatch.chdir(ROOT)
    mpl.use("agg")
    yield
    plt.close("all")


# Most of what these take goes into truths of 20 digits and more, and into proofs.
@pytest.mark.quick_cases("discrete-gaussian")
@pytest.mark.parametrize("page", DERIVATIONS, ids=lambda page: page.stem)
def test_derivation(page):
    run(page)


@pytest.mark.slow_cases(
    "answers",
    "browser-budgets",
    "coming-from",
    "individual",
    "ledger",
    "mechanism-files",
    "natural-filters",
    "noise",
    "shuffling",
    "command-line",
    "histogram",
    "designing-noise",
    "getting-started",
)
@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_guide(page):
    run(page)


@pytest.mark.parametrize("page", DERIVATIONS, ids=lambda page: page.stem)
def test_a_derivation_asserts_and_ends_with_truth(page):
    code = "\n".join(cell.code for cell in cells(page.read_text(encoding="utf-8")))
    assert len(re.findall(r"^\s*assert ", code, re.M)) >= 5
    assert re.search(r"\b(privacy_profile|mpmath|flint)\b", code)


@pytest.mark.parametrize("name", symdp.mechanisms.names())
def test_every_built_in_mechanism_has_its_page(name):
    own = re.compile(rf"\bsymdp\.mechanisms\.{name}\b")
    assert any(own.search(page.read_text(encoding="utf-8")) for page in DERIVATIONS)


def test_a_failing_assert_names_page_and_cell(tmp_path):
    page = tmp_path / "wrong.md"
    page.write_text(
        "# Wrong\n\n```{code-cell} ipython3\n:tags: [hide-input]\n\nx = 1\n```\n\n"
        "````{code-cell} python\n---\ntags: [a]\n---\nassert x == 1\nassert x == 2\n````\n",
        encoding="utf-8",
    )
    with pytest.raises(AssertionError) as failure:
        run(page)
    assert failure.value.__notes__ == ["wrong.md, cell 2, which begins at line 13"]
    assert failure.traceback[-1].lineno == 13  # counted from 0


def test_a_warning_fails_the_page(tmp_path):
    page = tmp_path / "careless.md"
    page.write_text(
        "```{code-cell} ipython3\nimport numpy as np\nnp.log(np.zeros(1))\n```\n", encoding="utf-8"
    )
    with pytest.raises(RuntimeWarning):
        run(page)
