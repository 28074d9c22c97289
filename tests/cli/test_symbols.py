"""Rates and sensitivities that are names become parameters."""

from __future__ import annotations

import pytest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("--sampling poisson --rate q", "P(x) = qf₁(x) + (1 − q)f₀(x)"),
        ("--sampling poisson --rate b/N", "P(x) = (1 − b/N)f₀(x) + bf₁(x)/N"),
        ("--sensitivity D", "P(x) = e^(−(x − D)²/(2σ²))/(σ√(2π))"),
        ("b=3 N=60 --sampling poisson --rate b/N", "sampling: Poisson sampling at rate 1/20"),
        ("q=0.1 --sampling poisson --rate q", "sampling: Poisson sampling at rate 1/10"),
    ],
)
def test_a_derivation_has_the_names_of_its_rate(shell, words, shown):
    ran = shell(f"derive gaussian {words} --only mechanism")
    assert ran.code == 0, ran.err
    assert f"  {shown}\n" in ran.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("derive gaussian b=7 N=3 --sampling poisson --rate b/N", "not 7/3"),
        ("derive gaussian q=2 --sampling poisson --rate q", "q must be above 0 and below 1"),
        ("derive gaussian --sampling poisson --rate 2q", "--rate: '2q' is not a number"),
        ("delta gaussian sigma=2 --sampling poisson --rate q -n 9 --epsilon 1", "a value for q"),
        ("derive gaussian --only formulas", "no section or formula is called 'formulas'"),
        ("derive gaussian --only loss --format json", "--only needs --format text"),
    ],
)
def test_what_cannot_be_read_is_one_line(shell, words, told):
    ran = shell(words)
    assert ran.code == 2
    assert told in ran.err
    assert len(ran.err.strip().splitlines()) == 1
