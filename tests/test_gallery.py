"""The gallery's programs run, warnings are errors, and each becomes a page of the documentation."""

from __future__ import annotations

import importlib.util
import re
import runpy
import sys

import pytest
from pages import ROOT

CELL = "# %%"
GALLERY = [
    path
    for path in sorted((ROOT / "examples").glob("*.py"))
    if path.read_text(encoding="utf-8").startswith(CELL)
]


@pytest.fixture(scope="module")
def gallery():
    """Load what makes pages out of programs; it needs nothing but the standard library."""
    path = ROOT / "docs" / "gallery.py"
    specification = importlib.util.spec_from_file_location("gallery", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.quick_cases("integer_counts")
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_example(path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_an_example_tells_a_story_and_checks_it(path, gallery):
    text = path.read_text(encoding="utf-8")
    assert re.search(r"^ *assert ", text, re.MULTILINE)
    page = gallery.page_of(text)
    assert page.count("```{code-cell}") == text.count("\n# %%\n")
    assert re.search(r"^# \w", page, re.MULTILINE)


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_an_example_is_listed(path):
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert f"\nexamples/{path.stem}\n" in index


def test_a_program_becomes_a_page(gallery):
    text = "# %% [markdown]\n# # Title\n#\n# Words.\n\n# %%\nx = 1\nassert x\n"
    assert gallery.page_of(text).endswith(
        "# Title\n\nWords.\n\n```{code-cell} ipython3\nx = 1\nassert x\n```\n"
    )


def test_cells_that_check_are_folded(gallery):
    shown = "```{code-cell} ipython3\nx = 1\nx\n```\n"
    check = "```{code-cell} ipython3\nassert 1 == 1\nassert (\n    2 == 2\n)\n```\n"
    assert gallery.folded(shown) == shown
    assert gallery.folded(check) == check.replace("\n", "\n:tags: [hide-input]\n\n", 1)
