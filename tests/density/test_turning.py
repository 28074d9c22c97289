"""What structure alone shows of rising and falling, and where it shows nothing."""

from __future__ import annotations

import pytest
import sympy as sp

from symdp.density.turning import trend

X, A = sp.symbols("x a", real=True)
S = sp.Symbol("s", positive=True)


@pytest.mark.parametrize(
    ("expression", "direction"),
    [
        ((X + S) ** 2, 1),
        (1 / (X + S), -1),
        ((X + S) ** -3, -1),
        (-1 / (X + S) ** 2, 1),
        (X**2, 1),
        (1 / X, -1),
        ((X - S) ** 2, None),  # it turns at s
        (1 / (X - S), None),  # a pole at s, and negative before
        ((X - A) ** 2, None),  # where a may lie on the ray
        (1 / (X - A), None),
        (X - A, 1),
        ((X - A) ** 3, 1),
    ],
    ids=str,
)
def test_powers_of_lines_on_a_ray(expression, direction):
    """On (0, ∞), for all a and all s > 0."""
    assert trend(expression, X, sp.S.Zero, sp.oo) == direction
    mirrored = None if direction is None else -direction
    assert trend(expression.subs(X, -X), X, -sp.oo, sp.S.Zero) == mirrored
