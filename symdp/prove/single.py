"""δ(ε) of one step from its definition, ∫ (p − e^ε q)⁺, the sign of ℓ − ε proved piece by piece.

A panel on which balls do not tell the sign is halved until what it can add is negligible; where
ℓ > ε, Gauss's rule serves P and e^{ε−ℓ}P at once.  What lies outside the panels counts as an
infinite loss above and as nothing below.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from flint import arb, ctx

from symdp.emit.enclose import between
from symdp.emit.exact import LN10
from symdp.errors import AccuracyError
from symdp.prove.kind import Kind, Stretch, sum_law
from symdp.prove.line import masses
from symdp.prove.measure import TOO_MANY, Asked, Panels, measure
from symdp.prove.plan import find_saddle, panels_of
from symdp.prove.work import COARSE_BITS

_SPARE_DIGITS = 3.0  # of what is left out, beyond those asked
_SPARE_BITS = 40  # beyond those digits
_MOST_PIECES = 20_000  # of a panel
_TRIES = 6  # of a smaller error
_FIRST = 15.0  # digits of what is left out at first


def enclose_single(kind: Kind, epsilon: arb, digits: float) -> arb:
    """Enclose δ(ε) of one step to about so many digits."""
    saddle = find_saddle(sum_law(((kind, 1),)), float(epsilon))
    size = 0.0 if saddle is None else min(saddle.log_size, 0.0)
    log_error = size - max(_FIRST, digits + _SPARE_DIGITS) * LN10
    found = arb(0)
    for _ in range(_TRIES):
        found = _enclosed(kind, epsilon, log_error)
        if found.lower() > 0 and 2 * found.rad() < found.lower() * arb(10) ** -digits:
            break
        with ctx.workprec(64):
            size = float(found.lower().log()) if found.lower() > 0 else 2 * log_error
        log_error = min(size - (digits + _SPARE_DIGITS) * LN10, log_error - LN10)
    return found


def _enclosed(kind: Kind, epsilon: arb, log_error: float) -> arb:
    panels = panels_of(kind, 0.0, 0.0, log_error)
    own = masses(((kind, 1),), (panels,), log_error)
    with ctx.workprec(int(-log_error / math.log(2)) + _SPARE_BITS):
        above, rest = list[Panels](), arb(0)
        for one in panels:
            stretch = kind.stretches[one.stretch]
            if not stretch.has_density:
                above.append(one)
                continue
            for ends in itertools.pairwise(map(stretch.place, one.edges)):
                rows, missed = _above(stretch, *ends, epsilon, log_error - math.log(64.0))
                above += [Panels(one.stretch, tuple(row)) for row in rows]
                rest += missed
        each = log_error - math.log(64.0)
        about = float(epsilon)
        asked = [Asked(arb(0), 0.0, each), Asked(arb(-1), -about, each)]
        nodes = measure(kind, above, asked)
        total = sum(
            (
                w * (-(epsilon - x).expm1()).max(arb(0))
                for w, x in zip(nodes.weights, nodes.losses, strict=True)
            ),
            arb(0, nodes.errors[0] + nodes.errors[1] * (epsilon - about).exp()),
        )
        found = (total + arb(0).union(rest)).max(arb(0)) + own.infinity
        return arb((found + arb(0).union(own.outside)).min(arb(1)))


def _above(
    stretch: Stretch, left: arb, right: arb, epsilon: arb, log_error: float
) -> tuple[list[Sequence[arb]], arb]:
    """Return the ends of pieces on which ℓ > ε, and what those may add whose sign is not told."""
    rows, rest, waiting = list[list[arb]](), arb(0), [(left, right)]
    for _ in range(_MOST_PIECES):
        if not waiting:
            return list[Sequence[arb]](rows), rest
        start, end = waiting.pop()
        with ctx.workprec(max(COARSE_BITS, ctx.prec // 2)):
            log_p, loss = stretch.values(between(start, end))
        if loss < epsilon:
            continue
        if loss > epsilon:
            if rows and rows[-1][1] is start:
                rows[-1][1] = end
            else:
                rows.append([start, end])
            continue
        mass = abs(end - start) * log_p.exp()
        size = mass * (-(epsilon - loss).expm1()).max(arb(0))
        middle = ((start + end) / 2).mid()
        is_least = size.is_finite() and bool(arb(size.upper()).log() < log_error)
        if start < middle < end and not is_least:
            waiting += [(middle, end), (start, middle)]
            continue
        # A probability: where nothing is known the mass outside of what is integrated says it.
        size = size if size.is_finite() else mass
        rest += arb(size.upper()) if size.is_finite() else arb(1)
    raise AccuracyError(TOO_MANY)
