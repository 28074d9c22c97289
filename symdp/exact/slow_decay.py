"""The contour integral of the privacy profile on one vertical line, however slowly it settles.

Terms that die out are summed plainly. Those of smooth losses that do not are cut off smoothly, and
the part of atoms, which recurs, is split off and summed exactly. Where all losses are atoms,
recurrences of |φ| near 1 are looked for: over one period, or as far as it pays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np

from symdp.errors import AccuracyError
from symdp.exact.accuracy import FEW_NODES, LONG_LINE, NEGLIGIBLE, SETTLED, TOLERABLE
from symdp.exact.finite_sum import finite_sum
from symdp.exact.line import (
    Line,
    StripValue,
    continuous_kernel,
    end_size,
    first_line,
    kernel_modulus,
    longer,
    plain_sum,
)
from symdp.exact.mesh.smoothed import cut_off
from symdp.exact.tail_bound import Tail, TailBound
from symdp.law.elementary import Complex
from symdp.law.lattice import find_lattice
from symdp.law.step import Array
from symdp.law.tilted import Tilted
from symdp.law.total import SumLaw

_UNSEEN = 1e-5  # relative to δ: what may lie beyond a line whose smooth cut-offs agree to 1e-13
_CYCLES = 8.0  # recurrences after which a sum is taken for settled


@dataclass(frozen=True)
class SlowLine(Line):
    """A line whose values die out slowly: at each ε the sum is cut off smoothly.

    Attributes
    ----------
    law
        The total loss.
    listed
        Whether the part that atoms alone have in the values is left out, and summed exactly.
    recurrent
        What |φ_t| returns to beyond the end, where atoms are not listed.
    complete
        Whether every recurrence of the atoms has been seen.
    smooth
        Whether the sum may be cut off smoothly, rather than once its terms have died out.
    left_out
        What lies beyond the end, on both sides together.
    """

    law: SumLaw
    listed: bool
    recurrent: float
    complete: bool
    smooth: bool
    left_out: float = 0.0

    def value(self, epsilon: float) -> StripValue:
        """Return the integral at one ε."""
        total, tail, slope = self.sums(epsilon)
        tail = min(tail, 1e300) + self.left_out + self._atoms(epsilon)[1]
        return self.sized(self.distance(epsilon), total, tail, slope / total if total else math.nan)

    def sums(self, epsilon: float) -> tuple[float, float, float]:
        """Return the sum, what it may lack, and its derivative by ε.

        Where terms have died out the sum is plain. Where they decay slowly but δ is smooth around
        ε, a smooth cut-off at Y averages δ over a width of order 1/Y with a kernel whose moments
        all vanish, so its error falls faster than any power of Y. Sums at Y and less show it,
        several of them, as next to a kink of δ any two may agree by chance.
        """
        exact, _, steepness = self._atoms(epsilon)
        turned = self.values * np.exp(1j * (self.distance(epsilon) + self.shift) * self.places)
        terms = turned.real
        slopes = self.places * turned.imag - self.tilt * terms
        total = plain_sum(terms) + exact
        tail = 2.0 * terms.size * self.end
        if not self.complete:
            return total, math.inf, math.nan
        if not self.smooth or tail <= SETTLED * abs(total):
            return total, tail, plain_sum(slopes) + steepness
        cuts = _cut_offs(terms.size)
        full, *others = (2.0 * (cuts @ terms) - terms[0]).tolist()
        tail = max(abs(full - other) for other in others)
        return full + exact, tail, plain_sum(slopes * cuts[0]) + steepness

    @property
    def end(self) -> float:
        """The size of the last values, or of what they may return to."""
        again = self.recurrent * kernel_modulus(continuous_kernel, self.tilt, self.reach)
        return max(end_size(np.abs(self.values[self.values.size // 2 :])), again)

    @property
    def reach(self) -> float:
        """The end Y."""
        return self.step * self.places.size

    def _atoms(self, epsilon: float) -> tuple[float, float, float]:
        """Return what atoms alone add to the sum, its error, and its derivative by ε."""
        found = finite_sum(self.law, epsilon, self.tilt, atomic=True) if self.listed else None
        if found is None:
            return 0.0, 0.0, 0.0
        log_unit = math.log(2.0 * math.pi / self.step)
        log_unit -= self.tilt * self.distance(epsilon) + self.excess
        log_value = found.log_delta if self.tilt > 0 else found.log_complement
        value, error, slope = (
            math.exp(min(log + log_unit, 700.0))
            for log in (log_value, found.log_error, found.log_slope)
        )
        return math.copysign(value, self.tilt), error, -slope


@lru_cache(maxsize=8)
def _cut_offs(size: int) -> Array:
    """Return the smooth cut-offs at Y and less at the nodes below Y, a row for each."""
    place = np.arange(size) / size
    return np.stack([cut_off(shorter * place) for shorter in np.geomspace(1.0, 2.0, 5)])


def slow_line(
    law: SumLaw,
    epsilon: float,
    tilt: float,
    beside: float,
    most: int,
    enough: float = SETTLED,
    worst: float = TOLERABLE,
    least: int = 0,
) -> SlowLine:
    """Return a line that serves every ε' with |ε' − ε| ≤ `beside`.

    Parameters
    ----------
    law
        With a density.
    epsilon, tilt
        In nats, and where the line crosses the real axis.
    beside
        In nats.
    most
        Nodes.
    enough
        The relative change at which the sum counts as complete.
    worst
        The relative change with which a line of so many nodes is still returned.
    least
        Nodes.

    Raises
    ------
    AccuracyError
        If the integrand does not settle within so many nodes, or rises again after it had.
    """
    tilted = law.tilted(tilt)
    first, _ = first_line(law, tilted, epsilon, tilt, continuous_kernel, math.inf, beside)
    line, cycle = _started(law, first, tilted)
    whole, tails = first, [(math.inf, line)]
    while True:
        total, tail, _ = line.sums(epsilon)
        tails.append((tail / abs(total) if total else math.inf, line))
        relative, best = min(tails, key=lambda pair: pair[0])
        tails = [(relative, best)]
        stop = line.places.size * (4 if line.places.size < FEW_NODES else 2)
        if relative <= enough and line.places.size >= least:
            rest = _beyond(law, line, total)
            if rest.start <= line.reach:
                assured = line.assured or rest.assured
                return replace(line, assured=assured, left_out=rest.beyond(line))
            if rest.start > line.step * LONG_LINE:
                raise AccuracyError(
                    "the losses gather near equally spaced values, and the characteristic function "
                    f"rises again after {line.places.size} nodes; the method prv gives proved "
                    "bounds"
                )
            stop, tails = math.ceil(rest.start / line.step) + 1, []
        if stop > most:
            if relative <= worst:
                rest = _beyond(law, best, best.sums(epsilon)[0])
                known = rest.assured and rest.start <= best.reach
                return replace(best, assured=best.assured or known, left_out=rest.beyond(best))
            raise AccuracyError(
                "the characteristic function of the privacy loss decays too slowly for "
                f"{law.count} steps: {line.places.size} nodes leave a relative error of "
                f"{relative:.1e}"
            )
        whole = longer(law, whole, stop, continuous_kernel)
        line = _continued(law, line, whole, tilted, cycle)


def _started(law: SumLaw, first: Line, tilted: list[Tilted]) -> tuple[SlowLine, float]:
    """Return a line's first nodes, and after which length the atoms' part of |φ| recurs."""
    counts = [weight for _, weight in law.terms]
    recurrent = _revival(tilted, counts) if law.has_atoms else 0.0
    cycle = law.atom_cycle if recurrent * law.count > math.exp(-NEGLIGIBLE) else 0.0
    listed = recurrent > SETTLED and first.tilt > -1.0
    # What recurs is the sum of atoms alone, which is known exactly.
    listed = listed and finite_sum(law, 0.0, first.tilt, atomic=True) is not None
    # Where the densities show that |φ| stays small far out, what is closer is looked at.
    looked = law.is_mixed and not listed and Tail(law, first.tilt).end is not None
    if law.is_mixed and not looked:
        cycle = max(cycle, _period(law))
        if _CYCLES * cycle > first.step * 0.25 * LONG_LINE:
            raise AccuracyError(
                f"the single values of the loss of {law.count} steps bring the characteristic "
                "function back too often; the method prv gives proved bounds"
            )
    known = {field.name: getattr(first, field.name) for field in fields(Line)}
    known["assured"] = law.is_mixed and not looked
    known |= {"places": np.empty(0), "values": np.empty(0, dtype=np.complex128)}
    line = SlowLine(
        **known,
        law=law,
        listed=listed,
        recurrent=0.0 if listed else recurrent,
        complete=False,
        smooth=not looked,
    )
    return _continued(law, line, first, tilted, cycle), cycle


def _continued(
    law: SumLaw, line: SlowLine, whole: Line, tilted: list[Tilted], cycle: float
) -> SlowLine:
    """Return a line with all nodes of one whose values have the atoms' part in them."""
    start, stop = line.places.size, whole.places.size
    values = whole.values[start:]
    if line.listed:
        counts = [weight for _, weight in law.terms]
        values = values - _atomic_values(tilted, counts, line.tilt, line.step, start, stop)
    return replace(
        line,
        places=whole.places,
        values=np.concatenate([line.values, values]),
        fixed_error=whole.fixed_error,
        unsure=whole.unsure,
        complete=line.step * stop >= _CYCLES * cycle,
    )


def _beyond(law: SumLaw, line: SlowLine, total: float) -> TailBound:
    """Return from where on what lies beyond a line that has settled is negligible.

    The variation of the densities says how much may lie there at most. Where that is not negligible
    itself, but too little for a recurrence, what was seen up to there is taken to go on.
    """
    size, rest = line.places.size, TailBound(line.reach, assured=False)
    if line.assured:
        return rest
    wanted = abs(total) * line.step * abs(line.tilt * (1.0 + line.tilt))
    tail = Tail(law, line.tilt)
    unseen = tail.largest(line.reach)
    if unseen <= SETTLED * wanted:
        return TailBound(line.reach, True, 0.5 * unseen)
    if not law.has_atoms and 2.0 * size * line.end <= SETTLED * abs(total):
        rest = tail.beyond(line.reach)
        if rest.assured or rest.start > line.reach:
            return rest
    if unseen <= _UNSEEN * wanted:
        return replace(rest, assured=True)
    reach = line.reach
    while reach < 0.5 * line.step * LONG_LINE:
        reach *= 2.0
        if tail.largest(reach) <= 0.5 * _UNSEEN * wanted:
            return replace(rest, start=reach)
    return rest


def _period(law: SumLaw) -> float:
    """Return the length after which the single-valued losses of a mixed law repeat."""
    lattice = find_lattice(law.apart[0])
    return math.inf if lattice is None else 2.0 * math.pi / float(lattice.spacing)


def _revival(tilted: list[Tilted], counts: Sequence[float]) -> float:
    """Return Π aᵢ^nᵢ, what |φ_t(y)| returns to again and again where atoms carry weights aᵢ.

    Between two such returns the terms look as if they had died out.
    """
    if any(part.atomic <= 0 for part in tilted):
        return 0.0
    return math.exp(
        math.fsum(n * math.log(part.atomic) for n, part in zip(counts, tilted, strict=True))
    )


def _atomic_values(
    tilted: list[Tilted], counts: Sequence[float], tilt: float, step: float, start: int, stop: int
) -> Complex:
    """Return the values that the sums of atoms alone would have."""
    y = step * np.arange(start, stop, dtype=np.float64)
    modulus, angle = np.ones(y.size), np.zeros(y.size)
    for part, count in zip(tilted, counts, strict=True):
        here = part.nodes.atomic
        turns = np.exp(1j * np.multiply.outer(y, part.deviation[here]))
        value = (turns * part.weight[here]).sum(axis=1)
        modulus = modulus * np.abs(value) ** count
        angle = angle + count * np.angle(value)
    return np.asarray(modulus * np.exp(1j * angle) * continuous_kernel(np.asarray(tilt + 1j * y)))
