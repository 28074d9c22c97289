"""The far terms of the rule, summed exactly, where the loss has atoms or its density has edges.

Let every piece of the loss be flat, at a value σ, or have a density g with finite derivatives at
both of its ends σ.  Integration by parts, J times, gives with u = 1/(iy)

    φ_t(y) = Σ_σ e^{iyσ} (a_σ + Σ_{j≥1} c_{σj} uʲ) + r,   |r| ≤ V_J/y^J,

a polynomial in u for each σ, and so does the product over n steps, for each sum Λ of such values.
Beyond a node N the terms of the rule are then Lerch sums Σ_k e^{i(Λ−ε)kh}/(ikh)^m, known to any
accuracy, and what the powers of u beyond D leave out is bounded by the same product over moduli.
However slowly φ_tⁿ falls, or if it does not fall at all, few nodes suffice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp
from flint import acb, arb, arb_poly, ctx

from symdp.certify.decay import loss_density
from symdp.certify.turning import TurningSums
from symdp.derive.signs import sign_of
from symdp.emit.arb import constant_ball
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.certify.step import TiltedStep

_MOST_SUMS = 10_000
_MOST_PLACES = 6
_ORDERS = (12, 20, 32)
_FIRST, _LAST = 32, 8192
_ENOUGH = 512  # nodes that cost less than a higher order
_STEEP = arb(2) ** -30
_BITS = 128

Steps = Sequence[tuple["TiltedStep", int]]
Polynomial = list[arb]  # coefficients of powers of u


@dataclass(frozen=True)
class _Expansion:
    """One step's φ_t, in units of e^{−scale}: values σ with polynomials, and V_J."""

    terms: tuple[tuple[sp.Expr, Polynomial], ...]
    remainder: arb

    def majorant(self, order: int) -> Polynomial:
        """Return a polynomial whose value at 1/y bounds the sum of moduli, r left out."""
        total = [arb(0)] * (order + 1)
        for _, polynomial in self.terms:
            total = [a + abs(b).upper() for a, b in zip(total, polynomial, strict=True)]
        return total


def has_edges(steps: Steps) -> bool:
    """Whether every loss consists of atoms and densities with finite, regular ends."""
    for step, _ in steps:
        if len(step.parts.points) + 2 * len(step.parts.stretches) > 2 * _MOST_PLACES:
            return False
        for part in step.parts.stretches:
            piece = part.piece
            if part.x.is_integer or piece.slope == "unknown":
                return False
            if piece.slope != "constant" and not (piece.lower.is_finite and piece.upper.is_finite):
                return False
    return True


class Tail:
    """The terms of the rule beyond a node, for steps whose loss has edges.

    Parameters
    ----------
    steps : sequence of (TiltedStep, count)
    tilt, epsilon, spacing : arb

    Raises
    ------
    AccuracyError
        If an end is not regular, or there are too many sums of values.
    """

    def __init__(self, steps: Steps, tilt: arb, epsilon: arb, spacing: arb, order: int) -> None:
        self._epsilon, self._spacing, self.order = epsilon, spacing, order
        expansions = [(_expand(step, order), n) for step, n in steps]
        size = math.prod(math.comb(n + len(e.terms) - 1, n) for e, n in expansions)
        if size > _MOST_SUMS:
            raise AccuracyError(
                f"the atoms and edges of the loss have {size} sums, too many to certify; compose "
                "fewer steps, or many more"
            )
        kernel = _kernel(tilt, order, 1)
        self._sums: list[tuple[arb, arb_poly]] = [(arb(0), kernel)]
        self._majorant = _kernel(tilt, order, -1)
        self._moduli: list[tuple[arb_poly, arb, int]] = []
        for expansion, count in expansions:
            own = _power(expansion.terms, count, order + 1)
            self._sums = [
                (place + other, _cut(p * q, order + 1))
                for (place, p), (other, q) in itertools.product(self._sums, own)
            ]
            modulus = arb_poly(expansion.majorant(order))
            self._moduli.append((modulus, expansion.remainder, count))
            self._majorant = _cut(self._majorant * _cut_power(modulus, count, order + 1), order + 1)
        self._tilt = tilt

    def bound(self, first: int) -> arb:
        """Bound what r and the powers beyond the order add up to over k ≥ first."""
        u = 1 / (first * self._spacing)
        if not u * (1 + self._tilt) < arb("0.5"):
            return arb.pos_inf()
        whole = 1 / ((1 - self._tilt * u) * (1 - (1 + self._tilt) * u))
        for polynomial, remainder, count in self._moduli:
            whole *= (polynomial(u) + remainder * u**self.order) ** count
        rest = (whole - self._majorant(u)) * u**2
        # The terms fall like k^{−(order + 2)} at least.
        return arb((rest * (1 + arb(first) / (self.order + 1))).upper())

    def total(self, first: int, goal: arb) -> arb:
        """Enclose Re Σ_{k ≥ first} of the powers up to the order, to about a goal."""
        unit = acb(0, -1) / self._spacing  # 1/(ih)
        units = [unit ** (index + 2) for index in range(self.order + 1)]
        sums = TurningSums(first, self.order + 1, goal / (16 * len(self._sums)))
        total = arb(0)
        for place, polynomial in self._sums:
            turn = acb(0, (place - self._epsilon) * self._spacing).exp()
            own = [*polynomial.coeffs(), *[arb(0)] * (self.order + 1)]
            row = [c * unit for c, unit in zip(own, units, strict=False)]
            total += sums.total(turn, row).real
        return total


def find_tail(
    steps: Steps, tilt: arb, epsilon: arb, spacing: arb, goal: arb
) -> tuple[Tail, int] | None:
    """Return a tail with its first node, such that what it leaves out lies below a goal, or None.

    Raises
    ------
    AccuracyError
        If there are too many sums of values, or an end is not regular.
    """
    if not has_edges(steps):
        return None
    best: tuple[Tail, int] | None = None
    for order in _ORDERS:
        tail = Tail(steps, tilt, epsilon, spacing, order)
        first = _FIRST
        while first <= _LAST and not tail.bound(first) < goal:
            first = first * 5 // 4
        if first > _LAST or (best is not None and first * 5 > best[1] * 4):
            continue
        best = tail, first
        if first <= _ENOUGH:
            break
    return best


def _kernel(tilt: arb, order: int, sign: int) -> arb_poly:
    """Return 1/((1 + tu)(1 + (1 + t)u)), which is y²/… of 1/(z(1 + z)), or its majorant."""
    first = arb_poly([(-sign * tilt) ** k for k in range(order + 1)])
    second = arb_poly([(-sign * (1 + tilt)) ** k for k in range(order + 1)])
    return _cut(first * second, order + 1)


def _cut(polynomial: arb_poly, length: int) -> arb_poly:
    return arb_poly(polynomial.coeffs()[:length])


def _cut_power(polynomial: arb_poly, count: int, length: int) -> arb_poly:
    result, square = arb_poly([1]), polynomial
    while count:
        if count & 1:
            result = _cut(result * square, length)
        count >>= 1
        if count:
            square = _cut(square * square, length)
    return result


def _power(
    terms: Iterable[tuple[sp.Expr, Polynomial]], count: int, length: int
) -> list[tuple[arb, arb_poly]]:
    """Return the n-th power: one polynomial for each multiset of values."""
    listed = [(constant_ball(place, ctx.prec).real, arb_poly(p)) for place, p in terms]
    partial = [(count, arb(0), arb_poly([math.factorial(count)]))]
    for index, (place, polynomial) in enumerate(listed):
        shares = [arb_poly([1])]
        for k in range(1, count + 1):
            shares.append(_cut(shares[-1] * polynomial * (arb(1) / k), length))
        partial = [
            (left - k, total + k * place, _cut(product * shares[k], length))
            for left, total, product in partial
            for k in (range(left + 1) if index + 1 < len(listed) else (left,))
        ]
    return [(total, product) for _, total, product in partial]


def _expand(step: TiltedStep, order: int) -> _Expansion:
    """Expand one step's φ_t to u^order."""
    terms: list[tuple[sp.Expr, Polynomial]] = []
    remainder = arb(0)
    tilt = constant_ball(step.tilt, ctx.prec).real
    for point in step.parts.points:
        mass, loss = (constant_ball(e, ctx.prec).real for e in (point.p, point.loss))
        _add(terms, point.loss, 0, (mass.log() + tilt * loss - step.scale).exp(), order)
    density = loss_density(step.pair, step.tilt, step.scale)
    moving = iter(density.parts)
    for part in step.parts.stretches:
        piece = part.piece
        if piece.slope == "constant":
            _add(terms, piece.loss, 0, step.flat(part), order)
            continue
        own = next(moving)
        sign = 1 if piece.slope == "increasing" else -1
        ends = []
        for end in (piece.lower, piece.upper):
            exact = constant_ball(end, 2 * ctx.prec).real
            slope = own.loss(exact, 2)[1]
            values = own.derivatives(exact, order)
            if not abs(slope) > _STEEP or not all(value.is_finite() for value in values):
                raise AccuracyError("the density of the loss is not regular at its ends")
            # The loss at the upper end of a falling piece is the lower value.
            side = sign if end is piece.upper else -sign
            value = sp.simplify(piece.loss.subs(part.x, end))
            for j, size in enumerate(values):
                _add(terms, value, j + 1, side * (-sign) ** j * size, order)
            ends.append(exact)
        # Not less than the variation between the exact ends.
        with ctx.workprec(_BITS):
            remainder += own.variation(ends[0].lower(), ends[1].upper(), order)
    return _Expansion(tuple(terms), arb(remainder.upper()))


def _add(
    terms: list[tuple[sp.Expr, Polynomial]], value: sp.Expr, power: int, size: arb, order: int
) -> None:
    """Add a coefficient to the value's polynomial; equal values share one."""
    for place, polynomial in terms:
        if place == value or sign_of(place - value) == 0:
            polynomial[power] += size
            return
    fresh = [arb(0)] * (order + 1)
    fresh[power] = size
    terms.append((value, fresh))
