"""δ(ε) of one step from its definition, ∫ (p − e^ε q)⁺, the sign of ℓ − ε proved piece by piece.

A panel on which balls do not tell the sign is halved until what it can add is negligible; runs of
pieces above ε are integrated panel by panel, whatever turns the loss takes.  What lies outside the
panels counts as an infinite loss above and as nothing below.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from flint import arb, ctx

from symdp.emit.enclose import between
from symdp.emit.exact import LN10
from symdp.errors import AccuracyError
from symdp.prove.kind import Kind, Stretch
from symdp.prove.line import Masses, masses
from symdp.prove.measure import MOST_INTEGERS, TOO_MANY, ellipse, gauss, order_of, rule_error
from symdp.prove.plan import panels_of
from symdp.prove.work import COARSE_BITS

_SPARE_DIGITS = 3.0  # of what is left out, beyond those asked
_SPARE_BITS = 40  # beyond those digits
_MOST_PIECES = 20_000  # of a stretch
_TRIES = 6  # of a smaller error
_FIRST = 15.0  # digits of what is left out at first


def excess(loss: arb, epsilon: arb) -> arb:
    """Enclose (1 − e^{ε−ℓ})⁺."""
    return (-(epsilon - loss).expm1()).max(arb(0))


def enclose_single(kind: Kind, epsilon: arb, digits: float) -> arb:
    """Enclose δ(ε) of one step to about so many digits."""
    log_error = -max(_FIRST, digits + _SPARE_DIGITS) * LN10
    found = arb(0)
    for _ in range(_TRIES):
        own = Single(kind, log_error)
        found = own.delta(epsilon)
        if found.lower() > 0 and 2 * found.rad() < found.lower() * arb(10) ** -digits:
            return found
        with ctx.workprec(64):
            size = float(found.lower().log()) if found.lower() > 0 else 2 * log_error
        log_error = min(size - (digits + _SPARE_DIGITS) * LN10, log_error - LN10)
    return found


class Single:
    """One step, whose masses serve every ε."""

    def __init__(self, kind: Kind, log_error: float) -> None:
        self.kind, self._log_error = kind, log_error
        self._panels = panels_of(kind, 0.0, 0.0, log_error)
        self.masses: Masses = masses(((kind, 1),), (self._panels,), log_error)
        self.bits = int(-log_error / math.log(2)) + _SPARE_BITS

    def delta(self, epsilon: arb) -> arb:
        """Enclose δ(ε)."""
        with ctx.workprec(self.bits):
            total = sum((m * excess(x, epsilon) for m, x in self.kind.atoms()), arb(0))
            for one in self._panels:
                stretch = self.kind.stretches[one.stretch]
                if stretch.is_infinite:
                    continue
                whole = stretch.whole_mass() if stretch.is_flat else None
                if whole is not None:
                    total += whole * excess(stretch.loss, epsilon)
                elif stretch.is_integer:
                    total += _over_integers(stretch, one.edges, epsilon)
                else:
                    total += _Above(stretch, epsilon, self._log_error).over(one.edges)
            found = total.max(arb(0)) + self.masses.infinity
            return (found + arb(0).union(self.masses.outside)).min(arb(1))


def _over_integers(stretch: Stretch, edges: Sequence[float], epsilon: arb) -> arb:
    total = arb(0)
    if not edges:
        return total
    if edges[-1] - edges[0] > MOST_INTEGERS:
        raise AccuracyError(TOO_MANY)
    for k in range(int(edges[0]), int(edges[-1]) + 1):
        log_p, loss = stretch.values(arb(k))
        total += log_p.exp() * excess(loss, epsilon)
    return total


class _Above:
    """The integral of p − e^ε q over where ℓ > ε."""

    def __init__(self, stretch: Stretch, epsilon: arb, log_error: float) -> None:
        self._stretch, self._epsilon = stretch, epsilon
        self._log_error = log_error - math.log(64.0)

    def over(self, edges: Sequence[float]) -> arb:
        places = [self._stretch.place(edge) for edge in edges]
        total = arb(0)
        for left, right in itertools.pairwise(places):
            run: list[arb] | None = None
            for start, end, sign, rest in self._signs(left, right):
                if sign > 0 and run is not None:
                    run[1] = end
                    continue
                if run is not None:
                    total += self._integrate(run[0], run[1])
                run = [start, end] if sign > 0 else None
                total += arb(0).union(rest)
            if run is not None:
                total += self._integrate(run[0], run[1])
        return total

    def _signs(self, left: arb, right: arb) -> Iterator[tuple[arb, arb, int, arb]]:
        """Yield pieces with the sign of ℓ − ε there; 0, and what it may add, where none is told."""
        waiting, log_least = [(left, right)], self._log_error - 4.0
        for _ in range(_MOST_PIECES):
            if not waiting:
                return
            start, end = waiting.pop()
            with ctx.workprec(max(COARSE_BITS, ctx.prec // 2)):
                log_p, loss = self._stretch.values(between(start, end))
            if loss > self._epsilon or loss < self._epsilon:
                yield start, end, 1 if loss > self._epsilon else -1, arb(0)
                continue
            size = abs(end - start) * log_p.exp() * excess(loss, self._epsilon)
            middle = ((start + end) / 2).mid()
            is_least = size.is_finite() and bool(arb(size.upper()).log() < log_least)
            if is_least or not start < middle < end:
                if not size.is_finite():
                    # A probability: the mass outside of what is integrated says it.
                    size = abs(end - start) * log_p.exp()
                yield start, end, 0, arb(size.upper()) if size.is_finite() else arb(1)
                continue
            waiting += [(middle, end), (start, middle)]
        raise AccuracyError(TOO_MANY)

    def _integrate(self, left: arb, right: arb) -> arb:
        """Enclose the integral over a piece on which ℓ > ε."""
        total, waiting = arb(0), [(left, right)]
        for _ in range(_MOST_PIECES):
            if not waiting:
                return total
            start, end = waiting.pop()
            centre, half = (start + end) / 2, (end - start) / 2
            log_bound = self._on_ellipse(centre, half)
            order = None if log_bound is None else order_of(log_bound - self._log_error)
            if log_bound is not None and order is not None and order <= self._most():
                for root, weight in gauss(order, ctx.prec):
                    log_p, loss = self._stretch.values(centre + half * root)
                    total += half * weight * log_p.exp() * -(self._epsilon - loss).expm1()
                total += arb(0, rule_error(log_bound, order))
                continue
            with ctx.workprec(COARSE_BITS):
                log_p, _ = self._stretch.values(between(start, end))
                size = abs(end - start) * log_p.exp()
            if size.is_finite() and arb(size.upper()).log() < self._log_error:
                total += arb(0).union(arb(size.upper()))
                continue
            middle = centre.mid()
            if not start < middle < end:
                raise AccuracyError(TOO_MANY)
            waiting += [(middle, end), (start, middle)]
        raise AccuracyError(TOO_MANY)

    def _most(self) -> int:
        return int(1.5 * order_of(-self._log_error)) + 8

    def _on_ellipse(self, centre: arb, half: arb) -> float | None:
        """Return the log of a bound of h·|p − e^ε q| around a panel, None where not analytic."""
        with ctx.workprec(COARSE_BITS):
            around = ellipse(self._stretch, centre, half)
            if around is None:
                return None
            log_half, most = abs(half).log(), -math.inf
            for log_p, loss in around:
                size = log_p.real + (1 + (self._epsilon - loss.real).exp()).log() + log_half
                most = max(most, float(arb(size.upper())))
        return most + 1e-9 * (1.0 + abs(most)) if math.isfinite(most) else None
