"""Tails of e^g by the leading term of the slope of g, proved as far as infinity.

Where g is a sum of c e^{ky} y^p and of b log y, so is its slope.  Beside the term that grows
fastest every other one shrinks from some y on, so its positive part is bounded by what it is there:

    y g′(y) ≤ −s for all y ≥ Y, so ∫_Y^∞ e^g dy ≤ e^{g(Y)} ∫_Y^∞ (y/Y)^{−s} dy = e^{g(Y)} Y/(s − 1).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp
from flint import arb

from symdp.emit.exact import real_ball

_Key = tuple[sp.Expr, sp.Expr]

_FARTHEST = 1024  # doublings of a place, up to the largest double
_MOST_TERMS = 40  # of an exponent: longer ones are no sums that people write


@dataclass(frozen=True)
class _Term:
    """d e^{ky} y^p, and exactly what k and p are."""

    coefficient: arb
    rate: arb
    power: arb
    key: _Key


class Slope:
    """The slope of g outwards, y the distance from 0, its fastest term first."""

    def __init__(self, terms: list[_Term]) -> None:
        self._lead, *self._others = terms

    @property
    def diverges(self) -> bool:
        """Whether e^g is known not to be integrable: g rises, or falls no faster than −log y."""
        lead = self._lead
        if lead.coefficient > 0:
            return True
        rate, power = lead.key
        if rate != 0 or power != -1:
            return bool(rate < 0 or (rate == 0 and power < -1))
        return bool(lead.coefficient >= -1)

    def steepness(self, y: arb) -> arb | None:
        """Return s > 0 with zg′(z) ≤ −s for all z ≥ y, None where that is not shown."""
        lead = self._lead
        total = lead.coefficient
        if not _rises(lead.rate, lead.power + 1, lead.key, y):
            return None
        for term in self._others:
            if term.coefficient < 0:
                continue
            rate, power = lead.rate - term.rate, lead.power - term.power
            key = (lead.key[0] - term.key[0], lead.key[1] - term.key[1])
            if not _rises(rate, power, key, y):
                return None
            total += term.coefficient * (-rate * y).exp() * y ** (-power)
        steepness = -total * (lead.rate * y).exp() * y ** (lead.power + 1)
        return steepness if steepness > 0 else None

    def cut(
        self,
        magnitude: Callable[[arb], arb],
        begin: arb,
        tolerance: arb,
        *,
        whole: bool = False,
    ) -> tuple[arb, arb] | None:
        """Return Y and a bound of what e^g has beyond it below a tolerance, None if none is found.

        Parameters
        ----------
        magnitude : callable
            e^g of the distance from 0, on balls.
        begin, tolerance : arb
            Positive.
        whole : bool
            Whether e^g is summed over the integers from Y on; `begin` must be one.
        """
        for exponent in range(_FARTHEST):
            place = (begin * 2**exponent).upper()
            steepness = self.steepness(place)
            if steepness is None or not steepness > 1:
                continue
            length = place / (steepness - 1) + (1 if whole else 0)
            bound = arb((magnitude(place) * length).upper())
            if bound < tolerance:
                return place, bound
        return None


def _rises(rate: arb, power: arb, key: _Key, y: arb) -> bool:
    """Whether e^{kz} z^p is known not to fall from z = y on."""
    if key[0] == 0:
        return key[1] == 0 or bool(power >= 0)
    return bool(rate > 0) and bool(rate * y + power >= 0)


@lru_cache(maxsize=512)
def outward_slope(exponent: sp.Expr, x: sp.Symbol, direction: int) -> Slope | None:
    """Return the slope of g towards infinity, None where g is no sum of such terms.

    Parameters
    ----------
    exponent, x
        g and its variable.
    direction : {1, -1}
        The side.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> slope = outward_slope(3 * x - x**2 / 2, x, 1)
    >>> place, bound = slope.cut(lambda y: (3 * y - y**2 / 2).exp(), arb(1), arb(1) / 1000)
    >>> float(place), bool(bound < 1e-3)
    (8.0, True)
    """
    y = sp.Symbol("y", positive=True)
    far = exponent.xreplace({x: direction * y})
    if any(node.has(y) and not _is_simple(node, y) for node in far.atoms(sp.Function)):
        return None
    far = sp.expand(far.rewrite(sp.exp) if far.has(sp.cosh, sp.sinh) else far)
    found: defaultdict[_Key, sp.Expr] = defaultdict(lambda: sp.S.Zero)
    for term in sp.Add.make_args(far):
        parts = _slopes(term, y)
        if parts is None or len(found) > _MOST_TERMS:
            return None
        for key, coefficient in parts:
            found[key] += coefficient
    terms = []
    for (rate, power), coefficient in found.items():
        if coefficient == 0:
            continue
        ball, *others = (real_ball(part) for part in (coefficient, rate, power))
        if ball.contains(0):
            return None  # whether it is there at all decides about the rest
        terms.append(_Term(ball, others[0], others[1], (rate, power)))
    ordered = _ordered(terms)
    return Slope(ordered) if ordered else None


def _is_simple(node: sp.Expr, y: sp.Symbol) -> bool:
    """Whether a function of y may be part of such terms."""
    argument = node.args[0]
    if isinstance(node, sp.log):
        return not isinstance(argument, sp.Add)
    return isinstance(node, (sp.exp, sp.cosh, sp.sinh)) and bool(argument.is_polynomial(y))


def _slopes(term: sp.Expr, y: sp.Symbol) -> list[tuple[_Key, sp.Expr]] | None:
    """Return what the slope of c e^{ky} y^p or of c log y consists of, None for anything else."""
    constant, moving = term.as_independent(y, as_Add=False)
    if moving == sp.log(y):
        return [((sp.S.Zero, sp.S.NegativeOne), constant)]
    rate, power = sp.S.Zero, sp.S.Zero
    for factor in sp.Mul.make_args(moving):
        base, exponent = factor.as_base_exp()
        if base == y and not exponent.has(y):
            power += exponent
        elif isinstance(factor, sp.exp) and not sp.expand(exponent / y).has(y):
            rate += sp.expand(exponent / y)
        elif factor != 1:
            return None
    parts = [((rate, power - 1), constant * power), ((rate, power), constant * rate)]
    return [(key, coefficient) for key, coefficient in parts if coefficient != 0]


def _ordered(terms: list[_Term]) -> list[_Term] | None:
    """Return terms with the one first that grows fastest, None where that is not known."""
    if not terms:
        return None
    lead = terms[0]
    for term in terms[1:]:
        if _is_faster(term, lead):
            lead = term
    others = [term for term in terms if term is not lead]
    return [lead, *others] if all(_is_faster(lead, term) for term in others) else None


def _is_faster(one: _Term, other: _Term) -> bool:
    if one.key[0] == other.key[0]:
        return bool(one.power > other.power)
    return bool(one.rate > other.rate)
