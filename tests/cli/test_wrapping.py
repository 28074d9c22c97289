"""Formulas over several lines: none too wide, nothing lost."""

from __future__ import annotations

import pytest

import symdp
from symdp.page.text import WIDTH, wrapped


def joined(text):
    return "".join(text.split())


@pytest.mark.slow_cases("student_t", "logistic", "laplace")
@pytest.mark.parametrize("name", ["gaussian", "laplace", "logistic", "student_t"])
def test_a_derivation_as_text_fits_the_width(shell, name):
    ran = shell(f"derive {name}")
    assert max(len(line) for line in ran.out.splitlines()) <= WIDTH
    whole = symdp.derive(getattr(symdp.mechanisms, name)).to_text()
    assert joined(whole) == joined(ran.out)


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
    text = wrapped(line, 60)
    assert joined(text) == joined(line)
    for shown in text.splitlines():
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
