"""The tree of a formula: how wide it is about, and where its lines break."""

from __future__ import annotations

import pytest
import sympy as sp

from symdp.page.formula import read
from symdp.page.node import (
    EMPTY,
    PRODUCT,
    SUM,
    Node,
    applied,
    broken,
    fraction,
    is_wide,
    listed,
    measure,
    name,
    number,
    operator,
    row,
    script,
    text,
    words,
)

A, LONG = name("a"), name("abcdef")
PLUS = operator("+")


@pytest.mark.parametrize(
    ("node", "width"),
    [
        (A, 1.0),
        (number("1234"), 4.0),
        (words("of them"), 6.3),
        (PLUS, 2.4),
        (operator("·"), 1.0),
        (row(A, PLUS, LONG), 9.4),
        (fraction(LONG, A), 6.5),
        (fraction(A, LONG), 6.5),
        (Node("fence", (operator("("), A, operator(")"))), 4.0),
        (Node("root", (LONG,)), 7.0),
        (Node("binomial", (LONG, A)), 8.0),
        (script(A, number("12"), number("3")), 1.0 + 0.7 * 2),
        (script(A, number("1"), number("234")), 1.0 + 0.7 * 3),
        (script(operator("∑"), number("12"), number("3")), 1.0 + 0.7 * 3),
    ],
)
def test_a_width_is_that_of_its_parts(node, width):
    assert measure(node) == pytest.approx(width)


def test_a_fraction_in_a_line_counts_its_brackets():
    total = row(A, PLUS, A, level=SUM)
    product = row(A, A, level=PRODUCT)
    assert measure(fraction(A, A), in_line=True) == 3.0  # a/a
    assert measure(fraction(total, A), in_line=True) == 4.4 + 1.0 + 1.0 + 2.0  # (a + a)/a
    assert measure(fraction(product, A), in_line=True) == 2.0 + 1.0 + 1.0  # aa/a
    assert measure(fraction(A, product), in_line=True) == 1.0 + 2.0 + 1.0 + 2.0  # a/(aa)


def test_a_left_side_is_wide_beyond_24_letters():
    assert not is_wide(name("a" * 24))
    assert is_wide(name("a" * 25))


def test_lines_break_before_a_sign_where_the_next_does_not_fit():
    terms = [name(letter * 9) for letter in "abcd"]
    total = row(*(part for term in terms for part in (term, PLUS)), terms[0], level=SUM)
    lines = [text(line) for line in broken(total, 24.0)]
    assert lines == [
        "aaaaaaaaa + bbbbbbbbb",
        "+ccccccccc",
        "+ddddddddd",
        "+aaaaaaaaa",
    ]
    assert all(measure(line) <= 24.0 for line in broken(total, 24.0))
    assert broken(total, measure(total)) == [total]


def test_what_stands_behind_each_other_is_told_apart():
    assert text(applied(name("f"), A, A)) == "f(a, a)"
    assert text(listed([A, number("2"), A])) == "a, 2, a"
    assert text(row(name("log"), A)) == "log a"
    assert text(row(number("2"), A, level=PRODUCT), ascii_only=True) == "2*a"
    assert text(script(A, number("12"), number("3"))) == "a₁₂³"
    assert text(script(A, EMPTY, row(A, PLUS, A, level=SUM))) == "a^(a + a)"


def test_a_second_script_of_one_base_stands_above_the_first():
    below = script(A, below=number("1"))
    assert script(below, above=number("2")) == script(A, number("1"), number("2"))
    twice = script(script(A, above=number("2")), above=number("3"))
    assert text(twice) != text(script(A, above=number("3")))


def test_text_is_read_into_the_same_tree():
    assert text(read("K_{}({})", sp.Integer(1), sp.Integer(2))) == "K₁(2)"
