"""Sums of losses on a mesh, their masses tilted and rounded down, and what that leaves out.

Every outcome of a step is split between the levels A < B next to its loss such that the masses of
both P and Q stay (see `bracket`):

    p_B = (p − e^A q)/(1 − e^{A−B}),    p_A = p − p_B.

Masses times e^{t(level − c)} are divided by a bound M of their total and rounded down to multiples
of 2^{−bits}; products of polynomials over them are rounded down as well, their ends cut off.  What
the total then lacks of 1 bounds all that was left out, by its tilted mass.  What lies so high that
its tilted mass is large although it hardly ever occurs is left out by its mass under P.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from flint import arb, ctx, fmpz_poly

from symdp.certify.mesh.cells import Atom, Cell, Outcomes, Panel, cells, outcomes_of
from symdp.certify.mesh.polynomials import (
    MOST_POINTS,
    TOO_LARGE,
    power_of,
    product_of,
    sums_of_levels,
    trimmed,
)
from symdp.errors import AccuracyError
from symdp.law.elementary import log_payoff, log_sum

if TYPE_CHECKING:
    from symdp.model.pair import Pair

Steps = tuple[tuple["Pair", int], ...]

_MOST_CELLS = 150_000  # of all steps: about six seconds
_SHARE = 2.0**-6  # of the width that is asked for, for each thing that is left out
_COEFFICIENT_BITS = 28  # beyond what may be left out, as so many are rounded
_DEVIATIONS = 16.0  # that a sum may be long
_MOST_HALVINGS = 50  # of a panel, whose ends in u are doubles


@dataclass(frozen=True)
class Aim:
    """What decides about cost and width, and proves nothing."""

    tilt: float
    centre: float  # about which losses are tilted, near ε/n
    log_size: float  # about log δ
    width: float  # of the ball relative to δ
    count: int

    @property
    def log_share(self) -> float:
        """Log of what may be left out at a time, relative to δ and for each step."""
        return math.log(_SHARE * self.width / self.count)

    @property
    def cut_bits(self) -> int:
        """−log₂ of the mass of P that may be cut off, a multiple of 32 that few aims share."""
        return 32 * math.ceil((max(0.0, -self.log_size) - self.log_share) / math.log(2) / 32)


@dataclass(frozen=True)
class Composed:
    """The sum of all steps on the mesh.

    The tilted mass of origin + (first + j)·step is at least `unit`·(coefficient j).

    Attributes
    ----------
    lacking
        A bound of the tilted mass that the coefficients lack.
    missed
        A bound of the mass of P that was left out on top of it.
    slack
        By how much a sum may differ from the level that it is counted at.
    spread
        τ = √n h/2 over the n steps of which outcomes are split.
    on_mesh
        Lower bounds of P of the sums of which no outcome was split, by level.
    """

    masses: fmpz_poly
    first: int
    origin: arb
    step: arb
    unit: arb
    lacking: arb
    missed: arb
    slack: arb
    spread: arb
    on_mesh: dict[int, arb]


@lru_cache(maxsize=4)
def _window(steps: Steps, aim: Aim, precision: int) -> tuple[list[_Kept], arb, float]:
    return _windows([(outcomes_of(pair, aim.cut_bits), n) for pair, n in steps], aim)


def finest_spacing(steps: Steps, aim: Aim) -> float:
    """Return the finest mesh that can be had in seconds."""
    return _coarsest(_window(steps, aim, ctx.prec)[0], aim)


def compose_on_mesh(steps: Steps, aim: Aim, spacing: float) -> Composed:
    """Return the sum of steps on a mesh about so wide, kept for close ε."""
    return _composed(steps, aim, spacing, ctx.prec)


@lru_cache(maxsize=4)
def _composed(steps: Steps, aim: Aim, spacing: float, precision: int) -> Composed:
    kept, missed, surplus = _window(steps, aim, precision)
    dropped = math.ceil((surplus - aim.log_share) / math.log(2))
    bits = dropped + _COEFFICIENT_BITS
    laws, step = _laws(kept, aim, spacing, bits)
    product, first = fmpz_poly([1 << bits]), 0
    origin, slack, log_total = arb(0), arb(0), arb(0)
    on_mesh: dict[int, arb] = {0: arb(1)}
    split = 0
    for law, own in zip(laws, kept, strict=True):
        power, low = power_of(law.masses, own.count, bits, dropped)
        product, shift = trimmed(product_of(product, power, bits) // (1 << bits), bits, dropped)
        first += low + own.count * law.first + shift
        origin += own.count * law.offset
        slack += own.count * law.overshoot
        log_total += own.count * law.total.log()
        split += own.count if law.is_split else 0
        on_mesh = sums_of_levels(on_mesh, law.on_mesh, own.count)
    total = log_total.exp()
    lacking = total * (1 - arb(product(1)) / arb(2) ** bits).upper()
    width = step + 2 * max((law.overshoot for law in laws), key=lambda o: float(o.mid()))
    return Composed(
        product, first, origin, step,
        unit=total / arb(2) ** bits,
        lacking=lacking,
        missed=missed,
        slack=arb(slack.upper()),
        spread=arb((arb(split).sqrt() * width / 2).upper()),
        on_mesh=on_mesh,
    )  # fmt: skip


@dataclass(frozen=True)
class _Law:
    """One step on the mesh, tilted and scaled to a total of at most 1.

    Attributes
    ----------
    masses, first
        A polynomial of lower bounds times 2^bits, and the level of its first coefficient.
    log_total
        Log of an upper bound of all tilted mass.
    on_mesh
        Lower bounds of the masses of P that are not split, by level.
    overshoot
        By how much levels may differ from those of the mesh.
    is_split
        Whether any outcome is.
    """

    masses: fmpz_poly
    first: int
    offset: arb
    total: arb
    on_mesh: dict[int, arb]
    overshoot: arb
    is_split: bool


@dataclass(frozen=True)
class _Kept:
    """The outcomes of one step that count, n, and a bound of the tilted mass of all others."""

    outcomes: Outcomes
    count: int
    below: arb


def _windows(found: Sequence[tuple[Outcomes, int]], aim: Aim) -> tuple[list[_Kept], arb, float]:
    """Return what counts of each step, and a bound of the mass of P of what is left out above.

    The last number is about log (Π M^n ω/δ): what is left out below counts by its tilted mass, of
    M in all, with the largest weight ω.
    """
    steps = []
    surplus = float(log_payoff(aim.tilt)) - aim.log_size
    for outcomes, n in found:
        items = [_Item.of(atom, aim) for atom in outcomes.atoms]
        items += [_Item.of(panel, aim) for panel in outcomes.panels]
        log_total = log_sum([item.log_tilted for item in items])
        surplus += n * log_total
        steps.append((items, log_total))
    kept, missed = [], arb(0)
    for (whole, log_total), (outcomes, n) in zip(steps, found, strict=True):
        most_above = aim.log_size + aim.log_share
        most_below = log_total - surplus + aim.log_share
        items, below, beyond = _clipped(whole, aim, most_below, most_above)
        beyond = arb((beyond + outcomes.beyond).upper())
        last = len(items)
        while last > 1 and _log(beyond + items[last - 1].mass) < most_above:
            last -= 1
            beyond = arb((beyond + items[last].mass).upper())
        first = 0
        while first < last - 1 and _log(below + items[first].tilted) < most_below:
            below, first = arb((below + items[first].tilted).upper()), first + 1
        left = [item.outcome for item in items[first:last]]
        atoms = tuple(item for item in left if isinstance(item, Atom))
        panels = tuple(item for item in left if isinstance(item, Panel))
        kept.append(_Kept(Outcomes(atoms, panels, arb(0)), n, below))
        missed += n * beyond
    return kept, arb(missed.upper()), max(surplus, 0.0)


class _Item(NamedTuple):
    """An outcome, its largest loss, its mass of P, and a bound of its tilted mass."""

    outcome: Atom | Panel
    loss: float
    mass: arb
    tilted: arb

    @classmethod
    def of(cls, outcome: Atom | Panel, aim: Aim) -> _Item:
        """Bound the tilted mass of a panel by that at its largest loss."""
        top = outcome.loss if isinstance(outcome, Atom) else outcome.top
        tilted = outcome.mass * (arb(aim.tilt) * (top - arb(aim.centre))).exp()
        return cls(outcome, float(top.mid()), outcome.mass, tilted)

    @property
    def log_tilted(self) -> float:
        """About the logarithm of the tilted mass."""
        return _log(self.tilted)


def _clipped(
    items: Sequence[_Item], aim: Aim, most_below: float, most_above: float
) -> tuple[list[_Item], arb, arb]:
    """Return outcomes by loss, ends cut off panels, and the tilted mass below and mass above cut.

    Half a panel is cut off as often as its share of half of what may be left out allows it.
    """
    share = math.log(2 * len(items))
    below, beyond, clipped = arb(0), arb(0), []
    for whole in items:
        item = whole
        for side, most in ((0, most_below - share), (1, most_above - share)):
            cut = arb(0)
            for _ in range(_MOST_HALVINGS):
                if isinstance(item.outcome, Atom):
                    break
                halves = [_Item.of(half, aim) for half in item.outcome.halves()]
                own = halves[side].tilted if side == 0 else halves[side].mass
                if not _log(cut + own) < most:
                    break
                cut, item = arb((cut + own).upper()), halves[1 - side]
            below, beyond = (below + cut, beyond) if side == 0 else (below, beyond + cut)
        if isinstance(item.outcome, Panel) and item is not whole:
            item = _Item.of(item.outcome.remade(), aim)
        clipped.append(item)
    clipped.sort(key=lambda item: item.loss)
    return clipped, arb(below.upper()), arb(beyond.upper())


def _log(mass: arb) -> float:
    top = mass.upper()
    return float(top.log().mid()) if top > 0 else -math.inf


def _coarsest(kept: Sequence[_Kept], aim: Aim) -> float:
    """Return the finest mesh that can be had."""
    length, variance, full = 0.0, 0.0, 0.0
    for own in kept:
        places, weights = [], []
        for panel in own.outcomes.panels:
            low, high = panel.ends
            length += high - low
            places += [low, high]
            size = _log(panel.mass) + aim.tilt * ((low + high) / 2 - aim.centre)
            weights += [size, size]
        for atom in own.outcomes.atoms:
            places.append(float(atom.loss.mid()))
            weights.append(_log(atom.mass) + aim.tilt * (places[-1] - aim.centre))
        total = log_sum(weights)
        shares = [math.exp(w - total) for w in weights]
        mean = sum(s * x for s, x in zip(shares, places, strict=True))
        variance += own.count * sum(
            s * (x - mean) ** 2 for s, x in zip(shares, places, strict=True)
        )
        full += own.count * (max(places) - min(places))
    span = min(full, _DEVIATIONS * math.sqrt(variance))
    return max(length / _MOST_CELLS, span / MOST_POINTS)


def _laws(kept: Sequence[_Kept], aim: Aim, spacing: float, bits: int) -> tuple[list[_Law], arb]:
    """Return the law of each step on meshes of one width, and that width."""
    heaviest = []
    for own in kept:
        by_mass = sorted(
            own.outcomes.atoms,
            key=lambda a: -(_log(a.mass) + aim.tilt * float(a.loss.mid())),
        )
        heaviest.append(by_mass[:2])
    step, shared = arb(spacing), None
    for atoms in heaviest:
        if len(atoms) == 2:
            gap = abs(atoms[0].loss - atoms[1].loss)
            if gap > spacing:
                step, shared = gap / math.ceil(float(gap.mid()) / spacing), atoms
                break
    laws = []
    for own, atoms in zip(kept, heaviest, strict=True):
        offset = atoms[0].loss if atoms else arb(0)
        placed = {atoms[0]: 0} if atoms else {}
        if shared is not None and len(atoms) == 2 and _are_alike(atoms, shared):
            placed[atoms[1]] = round(float(((atoms[1].loss - offset) / step).mid()))
        laws.append(_law(own, _Mesh(offset, step, placed), aim, bits))
    return laws, step


def _are_alike(atoms: Sequence[Atom], others: Sequence[Atom]) -> bool:
    """Whether the losses of atoms are exactly those of others."""
    return all(
        one is other or (one.expression is not None and one.expression == other.expression)
        for one, other in zip(atoms, others, strict=True)
    )


@dataclass(frozen=True)
class _Mesh:
    """Levels g_k = offset + k·step, and the atoms that lie on it."""

    offset: arb
    step: arb
    placed: dict[Atom, int]


def _law(own: _Kept, mesh: _Mesh, aim: Aim, bits: int) -> _Law:
    """Split every outcome of one step between two levels."""
    on_mesh: dict[int, arb] = {}
    found: list[Cell] = []
    for atom in own.outcomes.atoms:
        if atom in mesh.placed:
            on_mesh[mesh.placed[atom]] = atom.mass
            continue
        away = atom.loss - mesh.offset
        level = math.floor(float((away / mesh.step).mid()))
        away -= level * mesh.step
        overshoot = arb(0).max(-away).max(away - mesh.step).upper()
        found.append(Cell(level, atom.mass, atom.mass * (-atom.loss).exp(), arb(overshoot)))
    for panel in own.outcomes.panels:
        found += cells(panel, mesh.offset, mesh.step)
    overshoot = arb(0)
    for cell in found:
        overshoot = overshoot.max(cell.overshoot)
    tilt, masses = arb(aim.tilt), dict[int, arb]()
    whole = -(-(mesh.step + 2 * overshoot)).expm1()
    levels = sorted(
        {cell.level for cell in found} | {cell.level + 1 for cell in found} | set(on_mesh)
    )
    if levels[-1] - levels[0] >= MOST_POINTS:
        raise AccuracyError(TOO_LARGE)
    weights = {k: (tilt * (mesh.offset + k * mesh.step - arb(aim.centre))).exp() for k in levels}
    for level, mass in on_mesh.items():
        masses[level] = mass * weights[level]
    for cell in found:
        low = (mesh.offset + cell.level * mesh.step - overshoot).exp()
        up = (cell.p - low * cell.q) / whole
        for level, part in ((cell.level, cell.p - up), (cell.level + 1, up)):
            tilted = part * weights[level]
            masses[level] = masses[level] + tilted if level in masses else tilted
    total = own.below
    for mass in masses.values():
        total += mass.upper().max(arb(0))
    total = arb(total.upper())
    scale = arb(2) ** bits / total
    coefficients = [0] * (levels[-1] - levels[0] + 1)
    for level, mass in masses.items():
        whole_units = (mass * scale).lower().max(arb(0)).floor().unique_fmpz()
        if whole_units is None:
            raise AccuracyError("a mass on the mesh is not enclosed")
        coefficients[level - levels[0]] = int(whole_units)
    return _Law(
        fmpz_poly(coefficients), levels[0], mesh.offset, total,
        {k: arb(m.lower()) for k, m in on_mesh.items()}, overshoot, bool(found),
    )  # fmt: skip
