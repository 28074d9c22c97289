"""δ(ε) of few steps between two compositions of discrete laws on one mesh of losses.

With the other steps held fixed, an outcome of one step with masses p and q counts for

    F(p, q) = Σ (p p′ − e^ε q q′)⁺

over theirs, which is convex and homogeneous and so subadditive, grows with p and falls with q.
Hence, one step after the other, δ does not fall where an outcome is split into parts that share out
its p and its q, and does not grow where outcomes are added up, p is lowered or q is raised.

Above: the masses (p, q) of a cell [g_i, g_j] go to its two ends, at which p = e^g q, so that both
sums stay; every outcome of the cell is split like that.  What lies beyond the mesh is lost.

Below: each cell is added up to one outcome (p, q) and shared out between its ends.  What two
neighbours send to the end between them has too small a loss from one and too large a one from the
other; added up so that the loss is that of the end or more, q is raised until it is that of the
end.  What has no partner is rounded down.

Either error falls like the square of the mesh.  Products are of polynomials in balls whose
coefficients are tilted, so that a small δ keeps its relative accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb, arb_poly, ctx

from symdp.certify.cells import Cell, Chain, Mesh, Weighting, atoms_of, log_sum
from symdp.certify.parts import parts_of
from symdp.certify.single import excess
from symdp.certify.work import limited
from symdp.emit.arb import constant_ball
from symdp.errors import AccuracyError

if TYPE_CHECKING:
    from symdp.certify.parts import Parts
    from symdp.model.pair import Pair

Steps = Sequence[tuple["Pair", int]]
_Law = dict[int, arb]

_BITS = 160
_TRIES = 5
_MOST_POINTS = 1 << 21
_ROUNDS = 12
_FINER = 4.0  # than the mean width of cells is the mesh
_SMALLEST = 0.01
_TRIMMED = 0.01  # of the error


@dataclass(frozen=True)
class _Aim:
    """What one bracket is made for; only its cost and its width depend on it."""

    tilt: float
    log_size: float
    share: float  # that the error may be of δ
    bits: int


def bracket_delta(steps: Steps, epsilon: arb, tilt: float, log_size: float, digits: float) -> arb:
    """Enclose δ(ε) less the mass at infinity to about so many digits.

    Parameters
    ----------
    steps : sequence of (Pair, count)
        All parameters bound; losses on infinitely many points are not served.
    tilt, log_size : float
        t > 0 near the saddle point, and about log δ: they decide about width and cost alone.
    digits : float
        A digit more takes three times as many cells and points.

    Returns
    -------
    arb
        A ball from the lower to the upper composition.

    Raises
    ------
    AccuracyError
        If the mesh would be too fine, with the digits that can be had.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> steps = [(mechanisms.laplace(b=2).pair(), 3)]
    >>> ball = bracket_delta(steps, arb(0.5), tilt=3.0, log_size=-2.0, digits=2)
    >>> bool(0.1465 < ball < 0.1476)
    True
    """
    count = sum(n for _, n in steps)
    bits = int(max(0.0, -log_size) / math.log(2) + 3.33 * (digits + 6) + math.log2(count)) + 10
    goal = 0.5 * 10.0**-digits
    share, have = goal, math.inf
    with ctx.workprec(_BITS + int(max(0.0, math.log2(tilt)))):
        for _ in range(_TRIES):
            try:
                with limited(int(digits)):
                    ball = _bracket(steps, epsilon, _Aim(tilt, log_size, share, bits))
            except AccuracyError as error:
                if have < 1.0:
                    had = f"{error}; about {-math.log10(have):.1f} digits can be had"
                    raise AccuracyError(had) from None
                raise
            have = float(2 * ball.rad() / abs(ball).lower()) if ball > 0 else math.inf
            if have <= goal:
                return ball
            share *= max(0.7 * goal / have, _SMALLEST)
    raise AccuracyError("the bracket of the loss on a mesh stays too wide; ask for fewer digits")


def _bracket(steps: Steps, epsilon: arb, aim: _Aim) -> arb:
    count, tilt = sum(n for _, n in steps), aim.tilt
    # A step whose cells have widths w and tilted masses m errs by about Σ m w² of this.
    allowed = 12.0 * aim.share / (count * tilt * (1.0 + tilt))
    centre = float(epsilon) / count
    weighting = Weighting(tilt, centre, aim.bits)
    meshes = _meshes([parts_of(pair) for pair, _ in steps], math.sqrt(allowed) / _FINER, aim.bits)
    products = [arb_poly([1]), arb_poly([1])]
    missed, origin = arb(0), arb(0)
    length = 0
    for (pair, n), mesh in zip(steps, meshes, strict=True):
        upper, lower, beyond = _laws(parts_of(pair), mesh, weighting, allowed, count)
        beyond += _trimmed(upper, lower, mesh, weighting, aim, count)
        missed += n * beyond
        low, high = min(upper), max(upper)
        length += n * (high - low)
        if length > _MOST_POINTS:
            raise AccuracyError("the mesh needs too many points")
        for index, law in enumerate((upper, lower)):
            values = [arb(0)] * (high - low + 1)
            for k, mass in law.items():
                values[k - low] = mass * (tilt * (mesh.at(k) - centre)).exp()
            products[index] = products[index] * arb_poly(values) ** n
        origin += n * mesh.at(low)
    # e^{t(Σg − nc)} was multiplied in, nc being ε but for the rounding of a double.
    shift = tilt * (count * arb(centre))
    sums = [arb(0), arb(0)]
    for index in range(max(product.length() for product in products)):
        place = origin + index * meshes[0].spacing
        if place <= epsilon:
            continue
        weight = (shift - tilt * place).exp() * excess(place, epsilon)
        for which, product in enumerate(products):
            sums[which] += product[index] * weight
    above, below = (sums[0] + missed).upper(), sums[1].lower()
    return arb(arb(below).max(arb(0)).union(arb(above)))


def _laws(
    parts: Parts, mesh: Mesh, weighting: Weighting, allowed: float, count: int
) -> tuple[_Law, _Law, arb]:
    """Return the upper and the lower law of one step, and a bound of P beyond the upper one."""
    atoms, beyond = atoms_of(parts, weighting.bits)
    chain = Chain(parts, mesh, weighting, allowed)
    on_mesh: list[list[Cell]] = []
    for expression, mass in atoms:
        if expression in mesh.atoms:
            index = mesh.atoms[expression]
            on_mesh.append([Cell(index, index, mass, arb(0))])
        else:
            loss = _ball(expression)
            on_mesh.append([Cell(*mesh.around(loss, loss), mass, mass * (-loss).exp())])
    for _ in range(_ROUNDS):
        lower: _Law = {}
        cells = chain.cells()
        costs = _add_lower(lower, cells, mesh, weighting)
        total = chain.log_total()
        # These errors are of the first order in the tilt, those of `allowed` of the second.
        limit = total + math.log(allowed * (1.0 + weighting.tilt) / 24)
        if log_sum(costs) <= limit:
            break
        limit -= math.log(len(costs))
        if not chain.halve([cost > limit for cost in costs]):
            break
    upper: _Law = {}
    for own in (*on_mesh, cells):
        _add_upper(upper, own, mesh)
    for own in on_mesh:
        _add_lower(lower, own, mesh, weighting)
    return upper, lower, beyond + chain.beyond


def _meshes(parts: Sequence[Parts], spacing: float, bits: int) -> list[Mesh]:
    """Return one mesh for each step, of one spacing, on which as many atoms lie as can."""
    found: list[list[sp.Expr]] = []
    for own in parts:
        atoms, _ = atoms_of(own, bits)
        sizes: dict[sp.Expr, float] = {}
        for loss, mass in atoms:
            sizes[loss] = sizes.get(loss, 0.0) + float(mass)
        found.append(sorted(sizes, key=lambda loss: -sizes[loss])[:2])
    step = arb(spacing)
    two: list[sp.Expr] | None = None
    for losses in found:
        if len(losses) == 2:
            gap = abs(_ball(losses[0]) - _ball(losses[1]))
            if gap > 0:
                two, step = losses, gap / math.ceil(float(gap) / spacing)
                break
    meshes = []
    for own, losses in zip(parts, found, strict=True):
        if not losses:
            meshes.append(Mesh(arb(_natural_end(own, bits)), step, {}))
            continue
        offset, atoms_on = _ball(losses[0]), {losses[0]: 0}
        if two is not None and losses == two:
            gap = offset - _ball(losses[1])
            cells = int(float((abs(gap) / step).mid()) + 0.5)
            atoms_on[losses[1]] = -cells if gap > 0 else cells
        meshes.append(Mesh(offset, step, atoms_on))
    return meshes


def _ball(expression: sp.Expr) -> arb:
    return constant_ball(expression, ctx.prec).real


def _natural_end(parts: Parts, bits: int) -> arb:
    """Return the largest loss between the cuts: where it is the end of the range, cells end."""
    places = []
    for part in parts.stretches:
        cut = part.cut(sp.S.Zero, bits)
        places += [part.loss(cut.lower.mid()).mid(), part.loss(cut.upper.mid()).mid()]
    finite = [place for place in places if place.is_finite()]
    return max(finite, default=arb(0), key=float)


def _is_sharp(cell: Cell, mesh: Mesh) -> tuple[arb, arb] | None:
    """Return p − e^{g_i}q and e^{g_j}q − p, or None where they are not proved to be positive."""
    surplus = cell.p - mesh.at(cell.low).exp() * cell.q
    deficit = mesh.at(cell.high).exp() * cell.q - cell.p
    if cell.p > 0 and surplus > 0 and deficit > 0:
        return surplus, deficit
    return None


def _add(law: _Law, index: int, mass: arb) -> None:
    law[index] = law[index] + mass if index in law else mass


def _add_upper(law: _Law, cells: Sequence[Cell], mesh: Mesh) -> None:
    for cell in cells:
        if cell.low == cell.high:
            _add(law, cell.low, cell.p)
            continue
        sharp = _is_sharp(cell, mesh)
        if sharp is None:
            _add(law, cell.high, arb(cell.p.upper()).max(arb(0)))
            continue
        up = sharp[0] / -((cell.low - cell.high) * mesh.spacing).expm1()
        _add(law, cell.high, up)
        _add(law, cell.low, cell.p - up)


def _add_lower(law: _Law, cells: Sequence[Cell], mesh: Mesh, weighting: Weighting) -> list[float]:
    """Add the lower law of cells, and return what rounding losses down costs at each of them.

    The costs are logarithms of tilted mass times loss, and prove nothing.
    """
    sharp = [None if c.low == c.high else _is_sharp(c, mesh) for c in cells]
    up = _shares_upwards(sharp, _finest(cells, mesh, weighting))
    costs = [-math.inf] * len(cells)
    spacing = float(mesh.spacing)
    mass, deficit, behind = arb(0), arb(0), 0  # what the cell before sends up
    for index, cell in enumerate(cells):
        own = sharp[index]
        if own is None:
            _add(law, cell.low, arb(cell.p.lower()).max(arb(0)))
            down, surplus = arb(1), arb(0)
        else:
            down = 1 - up[index]
            surplus = down * own[0]
            _add(law, cell.low, down * cell.p)
        lost = surplus
        if index > 0:
            share = arb(1)
            if not surplus.lower() >= deficit.upper():
                share = (surplus.lower() / deficit.upper()).lower().max(arb(0)).min(arb(1))
            _add(law, cell.low, share * mass)
            _add(law, behind, (1 - share) * mass)
            wide = (cell.low - behind) * spacing
            lost = (surplus - share * deficit) + (1 - share) * mass * wide
        if lost.mid() > 0:
            height = weighting.tilt * (float(mesh.at(cell.low)) - weighting.centre)
            cost = _log(lost.mid()) + height
            for at in (index - 1, index) if index else (index,):
                costs[at] = max(costs[at], cost)
        mass, deficit, behind = arb(0), arb(0), cell.low
        if own is not None:
            mass, deficit = up[index] * cell.p, up[index] * own[1]
    if cells:
        _add(law, behind, mass)
        if mass.mid() > 0:
            wide = (cells[-1].high - behind) * spacing
            height = weighting.tilt * (float(mesh.at(behind)) - weighting.centre)
            costs[-1] = max(costs[-1], _log(mass * wide) + height)
    return costs


def _finest(cells: Sequence[Cell], mesh: Mesh, weighting: Weighting) -> int:
    """Return about where the tilted density is largest."""

    def log_density(index: int) -> float:
        cell = cells[index]
        height = weighting.tilt * (float(mesh.at(cell.low)) - weighting.centre)
        return _log(cell.p) + height - math.log(max(cell.high - cell.low, 1))

    return max(range(len(cells)), key=log_density, default=0)


def _shares_upwards(sharp: Sequence[tuple[arb, arb] | None], start: int) -> list[arb]:
    """Return the share of each cell that goes to its upper end; any shares prove the same.

    What goes to an end from below is to lack as much as what goes there from above has too much:
    with m at the end between cells k − 1 and k, m_k/surplus_k + m_{k+1}/deficit_k = 1.  From where
    cells are finest outwards m stays in the range it has; where it cannot, more goes down.
    """
    zero = arb(0)
    surplus, deficit = ([zero if own is None else own[i].mid() for own in sharp] for i in (0, 1))
    size = len(sharp)
    flow = [zero] * (size + 1)
    if 0 < start < size and deficit[start - 1] > 0 and surplus[start] > 0:
        before, after = deficit[start - 1], surplus[start]
        flow[start] = (before * after / (before + after)).mid()
    for k in range(max(start, 0), size - 1):
        if sharp[k] is not None:
            rest = deficit[k] * (1 - flow[k] / surplus[k])
            flow[k + 1] = rest.mid().max(zero).min(surplus[k + 1])
    for k in range(start - 1, 0, -1):
        if sharp[k] is not None:
            rest = surplus[k] * (1 - flow[k + 1] / deficit[k])
            flow[k] = rest.mid().max(zero).min(deficit[k - 1])
    return [
        zero if sharp[k] is None else (flow[k + 1] / deficit[k]).mid().max(zero).min(arb(1))
        for k in range(size)
    ]


def _log(mass: arb) -> float:
    top = mass.upper()
    return float(top.log().mid()) if top > 0 else -math.inf


def _trimmed(
    upper: _Law, lower: _Law, mesh: Mesh, weighting: Weighting, aim: _Aim, count: int
) -> arb:
    """Cut what does not count off either end of both laws, in place; return what is lost above."""
    allowed, tilt = _TRIMMED * aim.share / count, aim.tilt
    places = sorted(upper)
    heights = {k: tilt * (float(mesh.at(k)) - weighting.centre) for k in places}
    peak = max(_log(upper[k]) + heights[k] for k in places)
    lost = arb(0)
    limit = aim.log_size + math.log(allowed)
    while len(places) > 1:
        more = lost + upper[places[-1]].max(arb(0))
        if not _log(more) < limit:
            break
        lost = arb(more.upper())
        del upper[places.pop()]
    below, first = arb(0), 0
    for index, place in enumerate(places[:-1]):
        below += upper[place].max(arb(0))
        if _log(below) + heights[places[index + 1]] < peak + math.log(allowed):
            first = index + 1
    for place in places[:first]:
        _add(upper, places[first], upper.pop(place).max(arb(0)))
    low, high = places[first], places[-1]
    for place in [k for k in lower if k < low]:
        del lower[place]
    for place in [k for k in lower if k > high]:
        _add(lower, high, lower.pop(place))
    return lost
