"""Formulas over several lines: none too wide, nothing lost."""

from __future__ import annotations

import pytest

import symdp
from symdp.page import text
from symdp.page.text import WIDTH, wrapped


def joined(text):
    return "".join(text.split())


@pytest.mark.slow_cases("student_t", "logistic", "laplace")
@pytest.mark.parametrize("name", ["gaussian", "laplace", "logistic", "student_t"])
def test_a_derivation_as_text_fits_the_width(shell, monkeypatch, name):
    """Every formula that was found, however many were, is printed as a whole."""
    formulas = []

    def recorded(line, *width):
        formulas.append(line)
        return wrapped(line, *width)

    monkeypatch.setattr(text, "wrapped", recorded)
    printed = shell(f"derive {name}").out
    assert max(len(line) for line in printed.splitlines()) <= WIDTH
    assert len(formulas) >= 8
    place = 0
    for formula in formulas:
        place = joined(printed).index(joined(formula), place)


@pytest.mark.parametrize(
    "line",
    [
        "  x = " + " + ".join(f"a_{k}**{k}" for k in range(60)),
        "  x = " + "*".join(f"(b_{k} - {k})" for k in range(60)),
        "  x = f(" + ", ".join(f"c_{k}" for k in range(60)) + ")",
        "  x = not found: " + "whether it turns is open " * 9,
        "  x = no place to break" + "y" * 300,
    ],
)
def test_nothing_is_lost(line):
    printed = wrapped(line, 60)
    assert joined(printed) == joined(line)
    for shown in printed.splitlines():
        assert len(shown) <= 60 or "yyy" in shown
        assert not shown.strip().startswith("**")


@pytest.mark.slow
def test_a_derivation_shows_itself_on_three_lines():
    for name in ("laplace", "student_t"):
        derivation = symdp.derive(getattr(symdp.mechanisms, name))
        for _ in range(2):
            lines = repr(derivation).splitlines()
            assert len(lines) == 3
            assert max(map(len, lines)) <= WIDTH
            assert derivation.cgf  # K is shown once it was asked for
