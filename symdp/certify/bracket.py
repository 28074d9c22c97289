"""δ(ε) from a law of the loss on a mesh that dominates the true one, and a bound of their distance.

**Above.**  Each outcome x of a step, with a loss between the levels A < B, is split between A and B
such that both its masses stay: p = p_A + p_B and q = e^{−A} p_A + e^{−B} p_B.  Let U be the sum of
the levels and S the sum of the losses.  Under P, given what happened, the factors e^{−ξ} with
ξ = (level) − ℓ(x) are independent and of mean 1, so that N = e^{−Ξ}, Ξ = U − S, has mean 1, and by
Jensen's inequality

    E(1 − e^{ε−U})⁺ = E E[(1 − e^{ε−S} N)⁺ | x] ≥ E(1 − e^{ε−S})⁺.

**Below.**  Given x let w(S) be what this inequality lacks.  With d = |S − ε| it is at most
E(Ξ − d)⁺ for S ≤ ε, as 1 − e^{−v} ≤ v.  For S > ε it is E(e^{−d}N − 1)⁺, which under dP′ = N dP is
at most E′(−Ξ − d)⁺, and −Ξ under P′ is what Ξ is under P.  Each ξ spans at most h, so that by
Hoeffding's lemma 0 ≤ EΞ ≤ nh²/8 = τ²/2, where τ = √n h/2, and Ξ − EΞ has a variance of at most τ²
and the exponential moments of a Gaussian of that variance.  Hence, with z = d/τ − b and b = τ/2,

    w ≤ τ min{(√(1 + z²) − z)/2, e^{−1−z²/2}/z}

by Cauchy's inequality, and by v⁺ ≤ e^{λv−1}/λ with λ = z/τ.  Let V(u) = C e^{−(u−ε)²/4τ²}.  By
Jensen's inequality E[V(U) | x] ≥ C e^{−((z + 2b)² + 1)/4}, which is at least w(S) at every z ≥ −b
if it is at z = −b: both bounds fall faster than it does, the first one up to 1, for b ≤ 1/5.  So

    C = τ (√(1 + b²) + b) e^{(1 + b²)/4}/2,    δ(ε) ≥ E(1 − e^{ε−U})⁺ − E V(U).

Outcomes that lie on the mesh are not split; sums of such alone need no V(U).  The distance is
about 0.6 n h² times the density of the loss at ε, so relative to δ about 0.6 n h² t(1 + t).

**Sums.**  Masses times e^{t(level)}, t > 0, are rounded down to integers; products of polynomials
over them are rounded down, their ends cut off.  What the total then lacks of the enclosed one
counts with the largest weight that it can have, which is e^{−tε} t^t/(1 + t)^{1+t}.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flint import arb, arb_poly, ctx, fmpz_poly

from symdp.certify.cells import Atom, Cell, Outcomes, Panel, cells, outcomes_of
from symdp.certify.single import excess
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.model.pair import Pair

Steps = Sequence[tuple["Pair", int]]

_BITS = 192  # of balls: cells lose what their width is relative to the loss
_DISTANCE = 0.6  # of both bounds, in n h² t(1 + t) δ
_TRIES = 5
_FIRST = 0.5  # of the width, that the first mesh is made for
_FINER, _FINEST_STEP = 0.8, 0.05  # of the mesh from one try to the next
_FINER_AGAIN = 1.2  # times the finest mesh: nearer to it is not worth another try
_MOST_CELLS = 150_000  # of all steps: ten seconds
_MOST_POINTS = 1 << 22  # of a sum: a product of such polynomials takes ten seconds
_SHARE = 2.0**-6  # of the width that is asked for, for each thing that is left out
_COEFFICIENT_BITS = 28  # beyond what may be left out, as so many are rounded
_WIDEST_SPREAD = 0.4  # τ, so that b ≤ 1/5
_REACH = 16.0  # of V in units of τ: e^{−64} beyond
_NEAR_POINTS = 4  # of a sum, next to ε, whose side may not be proved
_DEVIATIONS = 16.0  # that a sum may be long
_MOST_SUMS = 20_000  # of atoms on the mesh


@dataclass(frozen=True)
class _Aim:
    """What decides about cost and width, and proves nothing."""

    tilt: float
    centre: float  # about which losses are tilted: ε/n
    log_size: float  # about log δ
    width: float  # of the ball relative to δ
    count: int

    @property
    def log_share(self) -> float:
        """Log of what may be left out at a time, relative to δ and for each step."""
        return math.log(_SHARE * self.width / self.count)


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


def bracket_delta(steps: Steps, epsilon: arb, tilt: float, log_size: float, digits: float) -> arb:
    """Enclose δ(ε) less the mass at infinity, to so many digits if a mesh so fine can be had.

    Parameters
    ----------
    steps : sequence of (Pair, count)
        All parameters bound.
    epsilon : arb
        ε, in nats.
    tilt, log_size : float
        t > 0 near the saddle point, and about log δ: they decide about width and cost alone.
    digits : float
        Relative to δ.  One more takes a mesh three times as fine.

    Returns
    -------
    arb
        The narrowest ball that was found.

    Raises
    ------
    AccuracyError
        If the loss is not known to be monotone on its pieces.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> steps = [(mechanisms.laplace(b=2).pair(), 3)]
    >>> ball = bracket_delta(steps, arb(0.5), tilt=3.0, log_size=-2.0, digits=5)
    >>> bool(0.147066 < ball < 0.147067)
    True
    """
    count = sum(n for _, n in steps)
    width = 10.0**-digits
    aim = _Aim(tilt, float(epsilon.mid()) / count, log_size, width, count)
    best: arb | None = None
    with ctx.workprec(_BITS + int(max(0.0, math.log2(tilt)))):
        spacing = math.sqrt(_FIRST * width / (_DISTANCE * count * tilt * (1.0 + tilt)))
        for _ in range(_TRIES):
            found = [(outcomes_of(pair, _cut_bits(aim)), n) for pair, n in steps]
            kept, missed, surplus = _windows(found, aim)
            coarsest = _coarsest(kept, aim)
            spacing = max(spacing, coarsest)
            ball, left_out = _bracket(kept, missed, surplus, epsilon, aim, spacing)
            best = ball if best is None else best.intersection(ball)
            have = float(2 * best.rad() / best.lower()) if best > 0 else math.inf
            if have <= width:
                break
            if left_out > width / 2:  # δ is smaller than it was said to be
                top = float(best.upper().log()) if best.upper() > 0 else aim.log_size
                size = min(aim.log_size, top) - math.log(left_out / width)
                aim = replace(aim, log_size=size)
            elif spacing <= coarsest * _FINER_AGAIN:
                break
            else:
                spacing *= max(min(math.sqrt(width / have), 1.0) * _FINER, _FINEST_STEP)
    assert best is not None
    return best


def _cut_bits(aim: _Aim) -> int:
    """Return −log₂ of the mass of P that may be cut off, a multiple of 32 that few aims share."""
    return 32 * math.ceil((max(0.0, -aim.log_size) - aim.log_share) / math.log(2) / 32)


@dataclass(frozen=True)
class _Kept:
    """The outcomes of one step that count, n, and a bound of the tilted mass of all others."""

    outcomes: Outcomes
    count: int
    below: arb


def _windows(found: Sequence[tuple[Outcomes, int]], aim: _Aim) -> tuple[list[_Kept], arb, float]:
    """Return what counts of each step, and a bound of the mass of P of what is left out above.

    The last number is about log (Π M^n ω/δ): what is left out below counts by its tilted mass, of
    M in all, with the largest weight ω.
    """
    tilt, centre = arb(aim.tilt), arb(aim.centre)
    steps = []
    surplus = float(_largest_weight(tilt).log()) - aim.log_size
    for outcomes, n in found:
        items: list[tuple[float, arb, arb, Atom | Panel]] = [
            (float(atom.loss.mid()), atom.mass, (tilt * (atom.loss - centre)).exp(), atom)
            for atom in outcomes.atoms
        ]
        for panel in outcomes.panels:
            mass = panel.mass + arb(0, 2 * panel.p_error)
            items.append((panel.ends[1], mass, (tilt * (panel.top() - centre)).exp(), panel))
        items.sort(key=lambda item: item[0])
        log_total = _log_sum([_log(mass * weight) for _, mass, weight, _ in items])
        surplus += n * log_total
        steps.append((items, log_total))
    kept, missed = [], arb(0)
    for (items, log_total), (outcomes, n) in zip(steps, found, strict=True):
        beyond, last = outcomes.beyond, len(items)
        while last > 1 and _log(beyond + items[last - 1][1]) < aim.log_size + aim.log_share:
            last -= 1
            beyond = arb((beyond + items[last][1]).upper())
        below, first = arb(0), 0
        while first < last - 1:
            more = below + items[first][1] * items[first][2]
            if not _log(more) < log_total - surplus + aim.log_share:
                break
            below, first = arb(more.upper()), first + 1
        left = [item for *_, item in items[first:last]]
        atoms = tuple(item for item in left if isinstance(item, Atom))
        panels = tuple(item for item in left if isinstance(item, Panel))
        kept.append(_Kept(Outcomes(atoms, panels, arb(0)), n, below))
        missed += n * beyond
    return kept, arb(missed.upper()), max(surplus, 0.0)


def _log(mass: arb) -> float:
    top = mass.upper()
    return float(top.log().mid()) if top > 0 else -math.inf


def _log_sum(values: Sequence[float]) -> float:
    peak = max(values, default=-math.inf)
    return peak + math.log(sum(math.exp(v - peak) for v in values)) if peak > -math.inf else peak


def _coarsest(kept: Sequence[_Kept], aim: _Aim) -> float:
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
        total = _log_sum(weights)
        shares = [math.exp(w - total) for w in weights]
        mean = sum(s * x for s, x in zip(shares, places, strict=True))
        variance += own.count * sum(
            s * (x - mean) ** 2 for s, x in zip(shares, places, strict=True)
        )
        full += own.count * (max(places) - min(places))
    span = min(full, _DEVIATIONS * math.sqrt(variance))
    return max(length / _MOST_CELLS, span / _MOST_POINTS)


def _laws(kept: Sequence[_Kept], aim: _Aim, spacing: float, bits: int) -> tuple[list[_Law], arb]:
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


def _law(own: _Kept, mesh: _Mesh, aim: _Aim, bits: int) -> _Law:
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


def _power(base: fmpz_poly, count: int, bits: int, dropped: int) -> tuple[fmpz_poly, int]:
    """Return a power rounded down in units of 2^(−bits), and the index of its first coefficient."""
    result, first = fmpz_poly([1 << bits]), 0
    low = 0
    while True:
        if count & 1:
            result, shift = _trimmed(result * base // (1 << bits), bits, dropped)
            first += low + shift
        count >>= 1
        if not count:
            return result, first
        base, shift = _trimmed(base * base // (1 << bits), bits, dropped)
        low = 2 * low + shift


def _trimmed(product: fmpz_poly, bits: int, dropped: int) -> tuple[fmpz_poly, int]:
    """Cut ends off that add up to less than 2^(−dropped); return the first index that is left."""
    least = 1 << (bits - dropped)
    values = [int(value) for value in product.coeffs()]
    ends = []
    for side in (values, values[::-1]):
        total, index = 0, 0
        for value in side:
            total += value
            if total >= least:
                break
            index += 1
        ends.append(index)
    last = len(values) - ends[1]
    return fmpz_poly(values[ends[0] : last]), ends[0]


def _times(known: dict[int, arb], own: dict[int, arb], count: int) -> dict[int, arb]:
    """Return lower bounds of the masses of sums of levels, none where there are too many."""
    powers: dict[int, arb] = {}
    if len(own) == 1:
        ((level, mass),) = own.items()
        powers = {count * level: mass**count}
    elif len(own) == 2 and count <= _MOST_SUMS:
        (one, p), (other, q) = own.items()
        ways = arb(1)
        for k in range(count + 1):
            powers[k * one + (count - k) * other] = ways * p**k * q ** (count - k)
            ways = ways * (count - k) / (k + 1)
    if len(powers) * len(known) > _MOST_SUMS:
        return {}
    found: dict[int, arb] = {}
    for first, mass in known.items():
        for level, other_mass in powers.items():
            found[first + level] = found.get(first + level, arb(0)) + mass * other_mass
    return found


def _bracket(
    kept: Sequence[_Kept],
    missed: arb,
    surplus: float,
    epsilon: arb,
    aim: _Aim,
    spacing: float,
) -> tuple[arb, float]:
    """Return the ball from the lower to the upper end on one mesh, and what was left out of δ."""
    tilt, count = arb(aim.tilt), aim.count
    dropped = math.ceil((surplus - aim.log_share) / math.log(2))
    bits = dropped + _COEFFICIENT_BITS
    laws, step = _laws(kept, aim, spacing, bits)
    product, first = fmpz_poly([1 << bits]), 0
    origin, slack, log_total = arb(0), arb(0), arb(0)
    on_mesh: dict[int, arb] = {0: arb(1)}
    split = 0
    for law, own in zip(laws, kept, strict=True):
        power, low = _power(law.masses, own.count, bits, dropped)
        product, shift = _trimmed(product * power // (1 << bits), bits, dropped)
        first += low + own.count * law.first + shift
        origin += own.count * law.offset
        slack += own.count * law.overshoot
        log_total += own.count * law.total.log()
        split += own.count if law.is_split else 0
        on_mesh = _times(on_mesh, law.on_mesh, own.count)
    # In units of 2^(−bits) e^{log_total}: a tilted mass of the sum is at least a coefficient.
    unit = log_total.exp()
    lacking = unit * (1 - arb(product(1)) / (arb(2) ** bits)).upper()
    back = tilt * (count * arb(aim.centre))  # tilts were taken about the centre
    front = unit * (back - tilt * origin).exp() / arb(2) ** bits
    law_sum = _Sum(product, first, origin, step, tilt, front)
    largest = (back - tilt * epsilon + tilt * slack).exp() * _largest_weight(tilt)
    above = law_sum.excess(epsilon - slack) + lacking * largest + missed
    below = law_sum.excess(epsilon + slack)
    if split:
        width = step + 2 * max((law.overshoot for law in laws), key=lambda o: float(o.mid()))
        spread = (arb(split).sqrt() * width / 2).upper()
        below -= law_sum.distance(epsilon, slack, arb(spread), on_mesh, lacking, back, unit)
    left_out = lacking * largest + missed
    share = float((left_out / above).upper()) if above > 0 else 0.0
    return arb(below.lower()).max(arb(0)).union(arb(above.upper())), share


def _largest_weight(tilt: arb) -> arb:
    """Return max_v e^{−tv}(1 − e^{−v})⁺ = t^t/(1 + t)^{1+t}."""
    return (tilt * tilt.log() - (1 + tilt) * (1 + tilt).log()).exp()


@dataclass(frozen=True)
class _Sum:
    """The law of the sum: the mass of P at origin + (first + j)h is at least

    front·e^{−t(first + j)h}·(coefficient j).
    """

    masses: fmpz_poly
    first: int
    origin: arb
    step: arb
    tilt: arb
    front: arb

    def excess(self, epsilon: arb) -> arb:
        """Enclose Σ (1 − e^{ε−u})⁺ over these masses."""
        length = self.masses.length()
        start = math.floor(float(((epsilon - self.origin) / self.step).mid())) - self.first
        start = max(start - 1, 0)
        total = arb(0)
        for j in range(start, min(start + _NEAR_POINTS, length)):
            level = (self.first + j) * self.step
            weight = (-self.tilt * level).exp() * excess(self.origin + level, epsilon)
            total += arb(self.masses[j]) * weight
        start += _NEAR_POINTS
        if start < length:
            rest = arb_poly(self.masses.right_shift(start))
            level = (self.first + start) * self.step
            head = (-self.tilt * level).exp()
            inner = rest((-self.tilt * self.step).exp())
            inner -= (epsilon - self.origin - level).exp() * rest(
                (-(1 + self.tilt) * self.step).exp()
            )
            total += head * inner
        return self.front * total

    def distance(
        self,
        epsilon: arb,
        slack: arb,
        spread: arb,
        on_mesh: dict[int, arb],
        lacking: arb,
        back: arb,
        unit: arb,
    ) -> arb:
        """Bound E V(U) over sums of which an outcome was split."""
        if not spread <= _WIDEST_SPREAD:
            return arb.pos_inf()
        b = spread / 2
        front = spread * ((1 + b**2).sqrt() + b) / 2 * ((1 + b**2) / 4).exp()
        reach = _REACH * spread
        if not reach >= 2 * self.tilt * spread**2:
            return arb.pos_inf()
        tilted = (back - self.tilt * epsilon + self.tilt * slack).exp()
        # What is farther than the reach, and what the coefficients lack.
        total = unit * front * tilted * (self.tilt * reach - (_REACH / 2) ** 2).exp()
        total += lacking * front * tilted * ((self.tilt * spread) ** 2).exp()
        middle = (epsilon - self.origin) / self.step
        half = math.ceil(float(((reach + slack) / self.step).upper())) + 1
        centre = math.floor(float(middle.mid()))
        for level in range(centre - half, centre + half + 2):
            j = level - self.first
            if not 0 <= j < self.masses.length():
                continue
            own = self.front * (-self.tilt * (level * self.step)).exp() * arb(self.masses[j])
            own -= on_mesh.get(level, arb(0))
            away = abs(self.origin + level * self.step - epsilon) - slack
            away = away.max(arb(0))
            total += own * front * (-((away / (2 * spread)) ** 2)).exp()
        return arb(total.upper())
