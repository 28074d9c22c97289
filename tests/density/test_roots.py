"""Zeros by formula: a function vanishes at each, and changes its sign nowhere else."""

from __future__ import annotations

from itertools import pairwise

import mpmath
import pytest
import sympy as sp

from symdp.density.roots import known_roots

X = sp.Symbol("x", real=True)
R = sp.Rational
SOLVED = {  # an expression, and how many zeros it has
    3 * sp.log(X**2 + 1) - 2: 2,
    2 - 3 * sp.log(X**2 + 1): 2,
    2 * sp.log(X) - 3: 1,
    sp.log(2 + sp.exp(X)) - 2: 1,
    3 * (X**2 + 1) ** sp.pi - 7: 2,
    7 - 3 * (X**2 + 1) ** sp.pi: 2,
    7 + 3 * (X**2 + 1) ** sp.pi: 0,
    2 * (sp.exp(X) + 1) ** sp.pi - 9: 1,
    sp.exp(2 * X) - 3 * sp.exp(X) + 2: 2,
    5 * (X**2 + 1) ** R(1, 3) - 7: 2,
}


@pytest.mark.parametrize(("expression", "count"), SOLVED.items(), ids=map(str, SOLVED))
def test_zeros_are_where_the_sign_changes(expression, count):
    roots = sorted(known_roots(expression, X, -sp.oo, sp.oo), key=float)
    assert len(roots) == count
    for root in roots:
        assert abs(sp.N(expression.subs(X, root), 40)) < 1e-30
    value = sp.lambdify(X, expression, "mpmath")
    places = [mpmath.mpf(k) / 64 for k in range(-640, 641)]
    signs = [mpmath.sign(mpmath.re(v)) for v in map(value, places) if not mpmath.im(v)]
    changes = sum(a * b < 0 for a, b in pairwise(signs))
    assert changes + signs.count(0) == count
