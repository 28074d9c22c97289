"""The contour integral of the privacy profile on one vertical line, however slowly it settles.

Terms that die out are summed plainly. Those of smooth losses that do not are cut off smoothly, and
the part of atoms, which recurs, is split off and summed exactly. Where all losses are atoms,
recurrences of |φ| near 1 are looked for: over one period, or as far as it pays.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from symdp.errors import AccuracyError
from symdp.exact.finite_sum import finite_sum
from symdp.exact.lattice import find_lattice
from symdp.exact.line import (
    MAX_NODES,
    SETTLED,
    Line,
    StripValue,
    continuous_kernel,
    end_size,
    first_line,
    kernel_modulus,
    longer,
    plain_sum,
    tilted_laws,
)
from symdp.exact.tail_bound import Tail, TailBound
from symdp.law.elementary import Complex
from symdp.law.step import Array
from symdp.law.tilted import Tilted
from symdp.law.total import CoarseError, SumLaw

_RECURRENT = 1e-17  # recurrences below this are none
TOLERABLE = 1e-10  # the largest relative change that is still reported, with its size
_TOO_OFTEN = (
    "the single values of the loss of {} steps bring the characteristic function back too often; "
    "the method prv gives proved bounds"
)
_FARTHEST_RETURN = 1 << 17  # nodes up to a recurrence that is waited for
_CYCLES = 8.0  # recurrences after which a sum is taken for settled
_MOST_PATIENT = 1 << 15  # nodes
_SHORTER = (1.0, 1.19, 1.41, 1.68, 2.0)  # times shorter than Y
_TAPER = 24.0  # the cut-off falls from 1 − 1e-17 at Y/2 to 1e-17 at Y


def integrate(law: SumLaw, epsilon: float, tilt: float) -> StripValue:
    """Return log |I(t)| of a law with a density on the line Re z = `tilt`.

    Raises
    ------
    AccuracyError
        If the integrand has not died out after 2^20 nodes, or rises again after it had.
    """
    tilted = tilted_laws(law, tilt)
    line, _ = first_line(law, tilted, epsilon, tilt, continuous_kernel, math.inf, 0.0)
    return _spread(law, epsilon, line, tilted)


def _spread(law: SumLaw, epsilon: float, line: Line, tilted: list[Tilted]) -> StripValue:
    """Return the integral for a law that is not of single values alone."""
    tilt, step = line.tilt, line.step
    distance = line.distance(epsilon)
    gap = distance + line.shift
    counts = [weight for _, weight in law.terms]
    stop = line.places.size
    revival = _revival(tilted, counts) if law.has_atoms else 0.0
    cycle = law.atom_cycle if revival * law.count > 1e-17 else 0.0
    exact = 0.0
    single = revival > SETTLED and tilt > -1.0
    if single and law.is_condensed:
        raise CoarseError
    if single:
        # What recurs is the sum of atoms alone, which is known exactly.
        listed = finite_sum(law, epsilon, tilt, atomic=True)
        if listed is None:
            single = False
        else:
            log_exact = listed.log_delta if tilt > 0 else listed.log_complement
            log_front = tilt * distance + line.excess
            exact = math.exp(min(log_exact - log_front, 700.0)) * 2.0 * math.pi / step
            revival = 0.0
    # Where the densities show that |φ| stays small far out, what is closer is looked at.
    beyond = Tail(law, tilt)
    looked = law.is_mixed and not single and beyond.end is not None
    if law.is_mixed and not looked:
        cycle = max(cycle, _period(law))
        if _CYCLES * cycle > step * _MOST_PATIENT:
            raise AccuracyError(_TOO_OFTEN.format(law.count))
    known = single or revival > _RECURRENT or (law.is_mixed and not looked)
    best = (math.inf, 0.0)
    terms = np.empty(0, dtype=np.complex128)
    rest = TailBound(math.inf, assured=False)
    left_out = 0.0
    while True:
        block = line.values[terms.size :] * np.exp(1j * gap * line.places[terms.size :])
        if single:
            block = block - _atomic_terms(tilted, counts, gap, tilt, step, terms.size, stop)
        terms = np.concatenate([terms, block])
        last = np.maximum(
            np.abs(block), revival * kernel_modulus(continuous_kernel, tilt, step * stop)
        )
        if looked:
            total, tail = plain_sum(terms.real), 2.0 * terms.size * end_size(last)
        else:
            total, tail = _settle(terms.real, last, step * stop >= _CYCLES * cycle)
        best = min(best, (tail / abs(total) if total else math.inf, total))
        if best[0] <= SETTLED:
            died = end_size(last) * 2.0 * terms.size <= SETTLED * abs(total)
            if not died or known:
                break
            rest = beyond.beyond(step * stop)
            wanted = rest.start / step
            if wanted <= stop:
                left_out = rest.beyond(line)
                if left_out <= SETTLED * abs(total) or 2 * stop > _MOST_PATIENT:
                    break
                wanted, left_out = 2 * stop - 1, 0.0
            if wanted > _FARTHEST_RETURN:
                raise AccuracyError(
                    "the losses gather near equally spaced values, and the characteristic function "
                    f"rises again after {stop} nodes; the method prv gives proved bounds"
                )
            stop, best = math.ceil(wanted) + 1, (math.inf, 0.0)
        else:
            stop = min(2 * stop, max(MAX_NODES, stop))
        if terms.size >= stop:
            if best[0] <= TOLERABLE:
                break
            raise AccuracyError(
                f"the characteristic function of the privacy loss decays too slowly for "
                f"{law.count} steps: {stop} nodes leave a relative error of {best[0]:.1e}"
            )
        line = longer(law, line, stop, continuous_kernel)
    tail, total = best
    tail = tail * abs(total) + left_out
    total += math.copysign(exact, tilt)
    # The atoms' terms are known exactly, and count for no cancellation.
    line = replace(line, values=terms, assured=known or rest.assured)
    return line.sized(distance, total, tail, math.nan)


def _period(law: SumLaw) -> float:
    """Return the length after which the single-valued losses of a mixed law repeat."""
    lattice = find_lattice(law.apart()[0])
    return math.inf if lattice is None else 2.0 * math.pi / float(lattice.spacing)


def _revival(tilted: list[Tilted], counts: list[float]) -> float:
    """Return Π aᵢ^nᵢ, what |φ_t(y)| returns to again and again where atoms carry weights aᵢ.

    Between two such returns the terms look as if they had died out.
    """
    if any(part.atomic <= 0 for part in tilted):
        return 0.0
    return math.exp(
        math.fsum(n * math.log(part.atomic) for n, part in zip(counts, tilted, strict=True))
    )


def _atomic_terms(
    tilted: list[Tilted],
    counts: list[float],
    gap: float,
    tilt: float,
    step: float,
    start: int,
    stop: int,
) -> Complex:
    """Return the terms that the sums of atoms alone would have."""
    y = step * np.arange(start, stop, dtype=np.float64)
    modulus, angle = np.ones(y.size), y * gap
    for part, count in zip(tilted, counts, strict=True):
        here = part.nodes.atomic
        turns = np.exp(1j * np.multiply.outer(y, part.deviation[here]))
        value = (turns * part.weight[here]).sum(axis=1)
        modulus = modulus * np.abs(value) ** count
        angle = angle + count * np.angle(value)
    return np.asarray(
        modulus
        * np.exp(1j * angle)
        * continuous_kernel(np.asarray(tilt + 1j * y, dtype=np.complex128))
    )


def _settle(terms: Array, last: Array, complete: bool) -> tuple[float, float]:
    """Return the two-sided sum and the size of what its cut-off may have left out.

    Where terms have died out the sum is plain. Where they decay slowly but δ is smooth around ε, a
    smooth cut-off at Y averages δ over a width of order 1/Y with a kernel whose moments all vanish,
    so its error falls faster than any power of Y. Sums at Y and less show it, several of them, as
    next to a kink of δ any two may agree by chance; and only once the sum is `complete`: once every
    return of the atoms' oscillation has been seen.
    """
    plain = plain_sum(terms)
    if not complete:
        return plain, math.inf
    tail = 2.0 * terms.size * end_size(last)
    if tail <= SETTLED * abs(plain):
        return plain, tail
    place = np.arange(terms.size) / terms.size
    tapers = ([0.5 * math.erfc(x) for x in _TAPER * (s * place - 0.75)] for s in _SHORTER)
    full, *others = (plain_sum(terms * np.asarray(taper)) for taper in tapers)
    return full, max(abs(full - other) for other in others)
