"""The far terms of the rule, summed exactly, where atoms or edges of the loss rule them.

Far out φ_t is a polynomial in u = 1/(iy) for each of a few values of the loss, and a small rest
(see `expansion`); so is the product over n steps, for each sum Λ of such values.  Beyond a node N
the terms of the rule are then Lerch sums Σ_k e^{i(Λ−ε)kh}/(ikh)^m, known to any accuracy, and what
the powers of u beyond J leave out is bounded by the same product over moduli.  However slowly φ_tⁿ
falls, or if it does not fall at all, few nodes suffice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flint import acb, acb_poly, arb, arb_poly

from symdp.certify.expansion import Expansion, Reach, expand
from symdp.certify.powers import nth_power
from symdp.certify.turning import TurningSums
from symdp.certify.work import OutOfWorkError
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.certify.step import TiltedStep

_MOST_SUMS = 10_000
_MOST_PLACES = 6
_ORDERS = (12, 20, 32)
_FIRST, _LAST = 32, 16384
_ENOUGH = 2048  # nodes that cost less than a higher order
_FINE = 1e-12  # a goal for which the lowest order does not serve
_CUT_SHARE = 2.0**-8

Steps = Sequence[tuple["TiltedStep", int]]


def may_have_edges(steps: Steps) -> bool:
    """Whether every loss has few pieces, on each of which it is constant or monotone."""
    for step, _ in steps:
        if len(step.parts.points) + 2 * len(step.parts.stretches) > 2 * _MOST_PLACES:
            return False
        for part in step.parts.stretches:
            if part.x.is_integer or part.piece.slope == "unknown":
                return False
    return True


class Tail:
    """The terms of the rule beyond a node, for steps whose loss has edges.

    Parameters
    ----------
    expansions : sequence of (Expansion, count)
    tilt, epsilon, spacing : arb
    order : int
        J.

    Raises
    ------
    AccuracyError
        If there are too many sums of values.
    """

    def __init__(
        self,
        expansions: Sequence[tuple[Expansion, int]],
        tilt: arb,
        epsilon: arb,
        spacing: arb,
        order: int,
    ) -> None:
        self._tilt, self._epsilon, self._spacing, self.order = tilt, epsilon, spacing, order
        size = math.prod(math.comb(n + len(e.terms) - 1, n) for e, n in expansions)
        if size > _MOST_SUMS:
            raise AccuracyError(
                f"the atoms and edges of the loss have {size} sums, too many to certify; compose "
                "fewer steps, or many more"
            )
        self._length = length = order + 1
        self._sums: list[tuple[arb, acb_poly]] = [(arb(0), acb_poly(self._kernel(1)))]
        self._majorant = arb_poly(self._kernel(-1))
        self._moduli: list[tuple[arb_poly, arb, arb, int]] = []
        for expansion, count in expansions:
            terms = [
                (place, acb_poly([*row, *[acb(0)] * length][:length]))
                for place, row in expansion.terms
            ]
            own = nth_power(
                terms, count, acb_poly([1]), lambda p, q: (p * q).truncate(length), acb_poly.__mul__
            )
            self._sums = [
                (place + other, (p * q).truncate(length))
                for (place, p), (other, q) in itertools.product(self._sums, own)
            ]
            modulus = arb_poly(expansion.majorant(length))
            self._moduli.append((modulus, expansion.remainder, expansion.removed, count))
            power = _cut_power(modulus, count, length)
            self._majorant = (self._majorant * power).truncate(length)

    def bound(self, first: int) -> arb:
        """Bound what the rests and the powers beyond the order add up to over k ≥ first."""
        u = 1 / (first * self._spacing)
        if not u * (1 + self._tilt) < arb("0.5"):
            return arb.pos_inf()
        kernel = 1 / ((1 - self._tilt * u) * (1 - (1 + self._tilt) * u))
        whole = with_cuts = kernel
        for polynomial, remainder, removed, count in self._moduli:
            modulus = polynomial(u) + remainder * u**self.order
            whole *= modulus**count
            with_cuts *= (modulus + removed) ** count
        # The terms fall like k^{−(order + 2)} at least, those of what is cut off like k⁻².
        rest = (whole - self._majorant(u)) * (1 + arb(first) / (self.order + 1))
        rest += (with_cuts - whole) * (1 + first)
        return arb((rest * u**2).upper())

    def total(self, first: int, goal: arb) -> arb:
        """Enclose Re Σ_{k ≥ first} of the powers up to the order, to about a goal."""
        unit = acb(0, -1) / self._spacing  # 1/(ih)
        units = [unit ** (index + 2) for index in range(self._length)]
        sums = TurningSums(first, self._length, goal / (16 * len(self._sums)))
        total = arb(0)
        for place, polynomial in self._sums:
            turn = acb(0, (place - self._epsilon) * self._spacing).exp()
            own = [*polynomial.coeffs(), *[acb(0)] * self._length]
            row = [c * unit for c, unit in zip(own, units, strict=False)]
            total += sums.total(turn, row).real
        return total

    def _kernel(self, sign: int) -> list[arb]:
        """Return 1/((1 + tu)(1 + (1 + t)u)), which is y²/… of 1/(z(1 + z)), or its majorant."""
        first, second = (
            arb_poly([(-sign * rate) ** k for k in range(self.order + 1)])
            for rate in (self._tilt, 1 + self._tilt)
        )
        return [*(first * second).coeffs()][: self.order + 1]


def find_tail(
    steps: Steps, tilt: arb, epsilon: arb, spacing: arb, goal: arb
) -> tuple[Tail, int] | None:
    """Return a tail with its first node, such that what it leaves out lies below a goal, or None.

    Raises
    ------
    AccuracyError
        If there are too many sums of values, or an end is not regular.
    """
    if not may_have_edges(steps):
        return None
    count = sum(n for _, n in steps)
    removed = (goal * spacing.min(arb(1)) ** 2 * _CUT_SHARE / (_MOST_PLACES * count)).mid()
    best: tuple[Tail, int] | None = None
    for order in _ORDERS if goal > _FINE else _ORDERS[1:]:
        reach = Reach(order, _FIRST * spacing, removed)
        try:
            expansions = [(expand(step, reach), n) for step, n in steps]
        except OutOfWorkError:
            raise
        except AccuracyError:
            if best is None:
                raise
            break
        found = [(e, n) for e, n in expansions if e is not None]
        if len(found) < len(expansions):
            return None
        tail = Tail(found, tilt, epsilon, spacing, order)
        first = _FIRST
        while first <= _LAST and not tail.bound(first) < goal:
            first = first * 5 // 4
        if first > _LAST or (best is not None and first * 5 > best[1] * 4):
            continue
        best = tail, first
        if first <= _ENOUGH:
            break
    return best


def _cut_power(polynomial: arb_poly, count: int, length: int) -> arb_poly:
    result, square = arb_poly([1]), polynomial
    while count:
        if count & 1:
            result = (result * square).truncate(length)
        count >>= 1
        if count:
            square = (square * square).truncate(length)
    return result
