"""One step's loss in cells no wider than a mesh, with the proved masses of P and Q in each.

A stretch is cut into panels x = c + hu, |u| ≤ 1, on which p, q and ℓ are holomorphic in the ellipse
of radius ρ = 3.  A function bounded by M there differs from its interpolant at N Chebyshev points
by at most 4Mρ^{1−N}/(ρ − 1) on the panel [Trefethen, Approximation Theory and Approximation
Practice, Theorem 8.2].  The antiderivatives of the interpolants give the mass of any part of the
panel for the price of a polynomial, within that error times its width.

Cells end where ℓ passes the levels g_k of a mesh.  Such places are found in doubles; how far ℓ is
from g_k there is then enclosed, and the largest such distance is the overshoot of the step: losses
in the cell lie between g_k − overshoot and g_{k+1} + overshoot, as ℓ is monotone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp
from flint import acb, arb, arb_mat, arb_poly, ctx

from symdp.certify.nodes import RADIUS, ellipse_arcs, nodes_between
from symdp.certify.parts import parts_of
from symdp.certify.piece_integrand import whole_ends
from symdp.emit.enclose import between
from symdp.emit.exact import real_ball
from symdp.errors import AccuracyError
from symdp.prove.work import COARSE_BITS

if TYPE_CHECKING:
    from symdp.certify.piece_integrand import Part
    from symdp.law.step import Array
    from symdp.model.pair import Pair

_POINTS = 48  # Chebyshev points of a panel: 3^{−47} is below 2^{−74}
_SHARP_BITS = 50  # to which p and q are known, relative to their least value on a panel
_MOST_PANELS = 4_000  # Taylor panels of a step: about a second
_FINE = 0.5  # of the loss on an arc of the ellipse: a ball that wide serves its bound
_FEWEST_GRID = 64  # places of a panel between which a root in doubles begins
_EXACT_BITS = 1024  # that hold the ends of part of a panel without rounding
_NEWTON = 5  # steps of a root in doubles


@dataclass(frozen=True, eq=False)
class Atom:
    """A value of the loss and its mass; the value as an expression where it is known as one."""

    mass: arb
    loss: arb
    expression: sp.Expr | None


@dataclass(frozen=True, eq=False)
class Panel:
    """Polynomials in u of the loss and of the antiderivatives of P and Q, and their errors.

    Attributes
    ----------
    p, q, loss
        In u from −1 to 1.
    p_error, q_error, loss_error
        Of a mass, for each unit of u, and of the loss.
    middle, values
        An ℓ within the panel, and how far ℓ lies from it at the Chebyshev points, in doubles.
    place
        The stretch, and c and h of x = c + hu.
    start, end
        The part of the panel that counts, in u.
    """

    p: arb_poly
    q: arb_poly
    loss: arb_poly
    p_error: arb
    q_error: arb
    loss_error: arb
    middle: arb
    values: Array
    place: tuple[Part, arb, arb]
    start: float = -1.0
    end: float = 1.0

    @cached_property
    def mass(self) -> arb:
        """Enclose the mass of P."""
        error = arb(0, self.p_error * (self.end - self.start))
        return arb(self.p(arb(self.end)) - self.p(arb(self.start)) + error)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """About the least and the largest loss."""
        both = [float(self.loss(arb(u)).mid()) for u in (self.start, self.end)]
        return min(both), max(both)

    @cached_property
    def top(self) -> arb:
        """Bound the loss."""
        low, high = (self.loss(arb(u)) for u in (self.start, self.end))
        return arb((low.max(high) + self.loss_error).upper())

    def halves(self) -> tuple[Panel, Panel]:
        """Return both halves of the part that counts, that of smaller losses first."""
        middle = (self.start + self.end) / 2
        low, high = replace(self, end=middle), replace(self, start=middle)
        return (low, high) if low.ends[0] <= high.ends[0] else (high, low)

    def remade(self) -> Panel:
        """Return a panel of the part that counts, so that doubles resolve it."""
        part, centre, half = self.place
        with ctx.workprec(_EXACT_BITS):
            ends = [centre + half * u for u in (self.start, self.end)]
        if any(end.rad() > 0 for end in ends):
            return self
        return _panel(part, *ends) or self


@dataclass(frozen=True)
class Outcomes:
    """One step's finite losses: atoms, panels, and a bound of P outside of both."""

    atoms: tuple[Atom, ...]
    panels: tuple[Panel, ...]
    beyond: arb


@lru_cache(maxsize=16)
def outcomes_of(pair: Pair, bits: int) -> Outcomes:
    """Return the outcomes of one step but for a mass of P of about 2^(−bits).

    Raises
    ------
    AccuracyError
        If a piece is not known to be monotone, or needs too many panels.
    """
    atoms: list[Atom] = []
    panels: list[Panel] = []
    beyond = arb(0)
    parts = parts_of(pair)
    for point in parts.points:
        mass, loss = (real_ball(e) for e in (point.p, point.loss))
        atoms.append(Atom(mass, loss, point.loss))
    for part in parts.stretches:
        cut = part.cut(sp.S.Zero, bits)
        if part.x.is_integer and not part.is_flat:
            beyond += cut.beyond
            first, last = whole_ends(cut)
            for k in range(first, last + 1):
                exponent, loss = part.terms(arb(k), 0)
                atoms.append(Atom(exponent.exp(), loss, None))
        elif part.is_flat:
            tolerance = arb(2) ** -(bits + _SHARP_BITS)
            found = nodes_between(part, cut, arb(0), arb(0), tolerance=tolerance)
            mass = arb(found.total() + arb(0).union(cut.beyond))
            loss = real_ball(part.piece.loss)
            atoms.append(Atom(mass, loss, part.piece.loss))
        else:
            with ctx.workprec(ctx.prec + part.spare(cut.lower, cut.upper)):
                own, missed = _panels(part, cut.lower, cut.upper, bits)
            panels += own
            beyond += cut.beyond + missed
    return Outcomes(tuple(_merged(atoms)), tuple(panels), arb(beyond.upper()))


def _merged(atoms: list[Atom]) -> Iterator[Atom]:
    """Yield atoms, those of one expression as one."""
    known: dict[sp.Expr, Atom] = {}
    for atom in atoms:
        if atom.expression is None:
            yield atom
        elif atom.expression in known:
            old = known[atom.expression]
            known[atom.expression] = Atom(old.mass + atom.mass, old.loss, old.expression)
        else:
            known[atom.expression] = atom
    yield from known.values()


def _panels(part: Part, lower: arb, upper: arb, bits: int) -> tuple[list[Panel], arb]:
    """Return panels of a stretch, and a bound of P on what is too short or irregular to count."""
    if part.piece.slope == "unknown":
        raise AccuracyError("the loss is not known to be monotone on a piece: no proved roots")
    low, high = lower.upper(), upper.lower()
    if not low < high:
        raise AccuracyError("the ends of a piece could not be told from each other")
    missed = arb(0)
    for place, end in ((low, lower), (high, upper)):
        gap = abs(place - end).upper()
        if gap > 0:
            missed += gap * part.height(place.union(end), arb(0), arb(0))
    negligible = arb(2) ** -bits / _MOST_PANELS
    panels: list[Panel] = []
    waiting = [(arb(low), arb(high))]
    for _ in range(_MOST_PANELS):
        if not waiting:
            return panels, arb(missed.upper())
        left, right = waiting.pop()
        with ctx.workprec(COARSE_BITS + ctx.prec // 2):
            size = (right - left) * part.height(between(left, right), arb(0), arb(0))
        if size < negligible:
            missed += size.upper()
            continue
        found = _panel(part, left, right)
        if found is not None:
            panels.append(found)
            continue
        middle = ((left + right) / 2).mid()
        if middle in (left, right):
            break
        waiting += [(middle, right), (left, middle)]
    raise AccuracyError("a piece of the loss needs too many panels")


def _panel(part: Part, left: arb, right: arb) -> Panel | None:
    """Return the panel between two exact places, None where one must be shorter."""
    with ctx.workprec(_EXACT_BITS):
        centre, half = ((left + right) / 2).mid(), ((right - left) / 2).mid()
    places, matrix, integral = _chebyshev(ctx.prec)
    middle = part.loss(centre)
    bounds = _on_ellipse(part, centre, half, middle)
    if bounds is None:
        return None
    columns: list[list[arb]] = [[], [], []]
    for u in places:
        exponent, loss = part.terms(centre + half * u, arb(0))
        for column, value in zip(
            columns, (exponent.exp(), (exponent - loss).exp(), loss), strict=True
        ):
            column.append(value)
    front = arb(4) / (RADIUS - 1) * arb(RADIUS) ** (1 - _POINTS)
    errors = [(front * bound).upper() for bound in bounds]
    sharp = arb(2) ** -_SHARP_BITS
    for error, column in zip(errors[:2], columns[:2], strict=True):
        if not all(error <= sharp * value for value in column):
            return None
    if not errors[2] <= sharp:
        return None
    columns[2] = [value - middle for value in columns[2]]
    found = (matrix if k == 2 else integral for k in range(3))
    p, q, loss = (
        arb_poly(list((m * arb_mat([[v] for v in column])).entries()))
        for m, column in zip(found, columns, strict=True)
    )
    values = np.array([float(value.mid()) for value in columns[2]])
    return Panel(
        half * p, half * q, loss + middle, half * errors[0], half * errors[1], errors[2],
        middle, values, (part, centre, half),
    )  # fmt: skip


def _on_ellipse(part: Part, centre: arb, half: arb, middle: arb) -> list[arb] | None:
    """Bound |p|, |q| and |ℓ − ℓ(c)| on the ellipse around a panel, None where one is not regular.

    The upper half says all: what is real on the axis has conjugate values below it.
    """
    with ctx.workprec(COARSE_BITS + ctx.prec // 2):
        wide = (arb(RADIUS) + arb(1) / RADIUS) / 2
        tall = (arb(RADIUS) - arb(1) / RADIUS) / 2
        around = centre + half * acb(between(-wide, wide), between(-tall, tall))
        if not part.is_analytic(around):
            return None
        bounds = [arb(0), arb(0), arb(0)]
        for turn in ellipse_arcs():
            exponent, loss = part.values(centre + half * turn, arb(0), _FINE)
            sizes = exponent.real.exp(), (exponent - loss).real.exp(), abs(loss - middle)
            bounds = [b.max(arb(s.upper())) for b, s in zip(bounds, sizes, strict=True)]
    return bounds if all(bound.is_finite() for bound in bounds) else None


@lru_cache(maxsize=8)
def _chebyshev(precision: int) -> tuple[tuple[arb, ...], arb_mat, arb_mat]:
    """Return Chebyshev points, rising, and what makes interpolants of values and their integrals.

    Coefficients are those of powers of u.
    """
    with ctx.workprec(precision + 2 * _POINTS):
        size = _POINTS
        angles = [(2 * k + 1) * arb.pi() / (2 * size) for k in reversed(range(size))]
        places = tuple(angle.cos() for angle in angles)
        fourier = arb_mat(
            [
                [(arb(2) if j else arb(1)) * (j * angle).cos() / size for angle in angles]
                for j in range(size)
            ]
        )
        columns = [[0] * size for _ in range(size)]  # of powers in each Chebyshev polynomial
        before, own = [1], [0, 1]
        for j in range(size):
            for k, c in enumerate(before):
                columns[k][j] = c
            following = [0, *(2 * c for c in own)]
            for k, c in enumerate(before):
                following[k] -= c
            before, own = own, following
        matrix = arb_mat(columns) * fourier
        rows = [[arb(0)] * size]
        rows += [[matrix[k, j] / (k + 1) for j in range(size)] for k in range(size)]
        return places, matrix, arb_mat(rows)


@dataclass(frozen=True)
class Cell:
    """The masses of P and Q where ℓ is between g_k and g_{k+1}, and by how much it may miss."""

    level: int
    p: arb
    q: arb
    overshoot: arb


def cells(panel: Panel, offset: arb, spacing: arb) -> Iterator[Cell]:
    """Yield the cells of a panel on the mesh g_k = offset + k·spacing."""
    places, levels = _roots(panel, offset, spacing)
    ends = [arb(place) for place in places]
    sums = [shape.evaluate(ends, "iter") for shape in (panel.p, panel.q, panel.loss)]
    error = arb(0, panel.loss_error) - offset
    away = [loss + error for loss in sums[2]]
    for k, level in enumerate(levels):
        width = places[k + 1] - places[k]
        p = sums[0][k + 1] - sums[0][k] + arb(0, panel.p_error * width)
        q = sums[1][k + 1] - sums[1][k] + arb(0, panel.q_error * width)
        low = level * spacing
        high = low + spacing
        overshoot = arb(0)
        for end in away[k : k + 2]:
            overshoot = overshoot.max(low - end).max(end - high)
        yield Cell(level, p, q, overshoot.upper())


def _roots(panel: Panel, offset: arb, spacing: arb) -> tuple[list[float], list[int]]:
    """Return the ends of cells in u, rising, and between two of them the level below the loss.

    All are found in doubles.
    """
    places = np.cos((2 * np.arange(_POINTS)[::-1] + 1) * np.pi / (2 * _POINTS))
    away = (panel.middle - offset) / spacing
    whole = away.mid().floor().unique_fmpz()
    if whole is None:
        raise AccuracyError("a loss on the mesh is not enclosed")
    heights = panel.values / float(spacing) + float((away - whole).mid())
    shape = np.polynomial.chebyshev.chebfit(places, heights, _POINTS - 1)
    slope = np.polynomial.chebyshev.chebder(shape)
    sides = np.array([panel.start, panel.end])
    first, last = np.polynomial.chebyshev.chebval(sides, shape)
    low, high = min(first, last), max(first, last)
    bottom = math.floor(low)
    wanted = np.arange(bottom + 1, max(math.ceil(high), bottom + 1), dtype=float)
    sign = 1.0 if last >= first else -1.0
    grid = np.linspace(panel.start, panel.end, max(_FEWEST_GRID, len(wanted)))
    rising = np.maximum.accumulate(sign * np.polynomial.chebyshev.chebval(grid, shape))
    targets = wanted if sign > 0 else -wanted[::-1]
    u = np.interp(targets, rising, grid)
    for _ in range(_NEWTON):
        steep = np.polynomial.chebyshev.chebval(u, slope)
        steep = np.where(steep == 0.0, sign, steep)
        miss = np.polynomial.chebyshev.chebval(u, shape) - sign * targets
        u = np.clip(u - np.clip(miss / steep, -0.1, 0.1), *sides)
    ends = np.maximum.accumulate(np.concatenate((sides[:1], u, sides[1:])))
    levels = range(bottom, bottom + len(wanted) + 1)
    ordered = levels if sign > 0 else levels[::-1]
    return [float(end) for end in ends], [int(whole) + level for level in ordered]
