"""∫ P and ∫ Q between two places in balls, where both are sums of e^{ax² + bx + c}.

    ∫_u^v e^{ax²+bx+c} dx = √π/(2r) e^{c + r²m²} (erf r(v − m) − erf r(u − m))

with r² = −a and m = b/(2r²) for a < 0, a difference of exponentials for a = 0. On one side of m it
is a difference of erfc, so that nothing cancels but what is close together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flint import arb

Coefficients = tuple[arb, arb, arb]  # a, b and c


@dataclass(frozen=True)
class ClosedMasses:
    """The terms of P and those of Q."""

    p: tuple[Coefficients, ...]
    q: tuple[Coefficients, ...]

    def between(self, low: arb, high: arb) -> tuple[arb, arb]:
        """Enclose ∫ P and ∫ Q; not finite where a term has no integral that is known."""
        return _integral_of_terms(self.p, low, high), _integral_of_terms(self.q, low, high)

    def density(self, x: arb) -> arb:
        """Enclose P: the sum of its terms."""
        terms = ((a * x**2 + b * x + c).exp() for a, b, c in self.p)
        return sum(terms, arb(0))

    def reversed(self) -> ClosedMasses:
        """Return those of P and Q exchanged."""
        return ClosedMasses(self.q, self.p)

    def scaled(self, log_factor: arb) -> ClosedMasses:
        """Return those of densities that are multiplied by a constant."""
        p = tuple((a, b, c + log_factor) for a, b, c in self.p)
        q = tuple((a, b, c + log_factor) for a, b, c in self.q)
        return ClosedMasses(p, q)


def _integral_of_terms(terms: Sequence[Coefficients], low: arb, high: arb) -> arb:
    total = arb(0)
    for a, b, c in terms:
        if a < 0:
            total += _normal(a, b, c, low, high)
        elif a.is_zero():
            total += _exponential_integral(b, c, low, high)
        else:
            return arb.nan()
    return total


def _normal(a: arb, b: arb, c: arb, low: arb, high: arb) -> arb:
    root = (-a).sqrt()
    centre = b / (-2 * a)
    peak = (c - a * centre**2).exp()
    height = peak * arb.pi().sqrt() / (2 * root)
    left = root * (low - centre)
    right = root * (high - centre)
    if left > 0:
        return height * (_erfc(left) - _erfc(right))
    if right < 0:
        return height * (_erfc(-right) - _erfc(-left))
    if left.is_finite() and right.is_finite():
        return height * (right.erf() - left.erf())
    return height * (2 - _erfc(right) - _erfc(-left))


def _erfc(x: arb) -> arb:
    """Enclose erfc, which has no ball at infinity in Arb."""
    if x == arb.pos_inf():
        return arb(0)
    return x.erfc()


def _exponential_integral(b: arb, c: arb, low: arb, high: arb) -> arb:
    if b.is_zero():
        return c.exp() * (high - low)
    # Each end by itself: e^{bx} vanishes at an infinite one where the integral exists.
    return ((b * high + c).exp() - (b * low + c).exp()) / b
