"""Sums of e^{ax² + bx + c} are read as such, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from symdp.density.exponents import exponents
from symdp.density.pieces import pieces
from symdp.density.records import Piece
from symdp.model.mechanism import Mechanism

X = sp.Symbol("x", real=True)
NORMAL = -((X - 1) ** 2) / 18 - sp.log(3)


def piece(log_p, log_q):
    return Piece(-sp.oo, sp.oo, log_p, log_q, log_p - log_q, "unknown")


@pytest.mark.parametrize("log", [NORMAL, -2 * X + 5, -(X**2) + 3 * X - 7, sp.S(4)], ids=str)
def test_coefficients_are_those_of_the_exponent(log):
    (terms, others) = exponents(piece(log, NORMAL), X)
    for exponent, read in ((log, terms), (NORMAL, others)):
        ((a, b, c),) = read
        assert sp.expand(a * X**2 + b * X + c - exponent) == 0


def test_terms_of_a_mixture_are_read_one_by_one():
    """Of ¾ N(0, 1) + ¼ N(2, 3) the terms add up to the density."""
    normals = [
        sp.exp(-((X - m) ** 2) / (2 * s)) / sp.sqrt(2 * sp.pi * s) for m, s in ((0, 1), (2, 3))
    ]
    mixture = (3 * normals[0] + normals[1]) / 4
    (found,) = pieces(Mechanism.from_pair(mixture, normals[0], X, name="mixture").pair("remove"))
    sides = exponents(found, X)
    for side, density in zip(sides, (mixture, normals[0]), strict=True):
        total = sum(sp.exp(a * X**2 + b * X + c) for a, b, c in side)
        assert abs(sp.N((total - density).subs(X, sp.Rational(7, 5)), 30)) < 1e-25


@pytest.mark.parametrize("other", [-sp.log(1 + X**2), -(X**4), -sp.sqrt(1 + X**2)], ids=str)
def test_one_side_that_is_no_quadratic_leaves_none(other):
    assert exponents(piece(NORMAL, other), X) is None
    assert exponents(piece(other, NORMAL), X) is None


def test_what_has_no_distribution_function_of_normal_laws_has_no_exponents():
    """Masses at integers, an atom, and a stretch on which one of the laws is 0."""
    k = sp.Symbol("k", integer=True)
    masses = piece(-(k**2) / 8, -((k - 1) ** 2) / 8)
    assert exponents(masses, k) is None
    whole = piece(NORMAL, -(X**2))
    assert exponents(whole, X) is not None
    assert exponents(replace(whole, place=sp.S.One), X) is None
    assert exponents(replace(whole, log_p=None), X) is None
    assert exponents(replace(whole, log_q=None), X) is None
