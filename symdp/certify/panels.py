"""The nodes of the rule from one power of two to the next, summed without a value at each.

Where nodes ℓ_i with weights W_i lie on paths that leave the axis at the ends σ of the range of the
loss (see `lifted`), one step's φ_t is between two frequencies

    φ_t(y) = Σ_σ e^{iyσ} G_σ(y) + r,    G_σ(y) = Σ_i W_i e^{iy(ℓ_i − σ)},    |r| ≤ e,

and what oscillates fast is in front.  The G_σ are entire, and their bounds on an ellipse around
A ≤ y/h < 2A,

    |G_σ(a + ib)| ≤ Σ_i |W_i| e^{−a Im ℓ_i + |b| |Re ℓ_i − σ|},

say how few values at Chebyshev points determine a power of φ_t there: with f at most B on the
ellipse of radius ρ the polynomial of degree d errs by at most 4Bρ^{−d}/(ρ − 1).  For each sum Λ of
values σ what remains is Σ_k w^k p(k) with a polynomial p and w = e^{i(Λ−ε)h}, from the moments

    Σ_{k<2^j} w^k e^{s(x + kδ)} = e^{sx} Π_{m<j} (1 + w^{2^m} e^{2^m sδ}),

a power series in s made of j factors without any division, so that w may be as close to 1 as it
likes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from flint import acb, acb_mat, acb_poly, arb, arb_mat, ctx

from symdp.certify.powers import nth_power
from symdp.certify.work import spend_products
from symdp.emit.enclose import between

if TYPE_CHECKING:
    from symdp.certify.nodes import Nodes

_RADIUS = 3
_ARCS = 6  # of the upper half of the ellipse
_COARSE = 64  # bits of what only bounds
_MOST_DEGREE = 80
_MOST_PARTS = 64
_MOST_SUMS = 3000
_PER_SUM = 8  # nodes that cost as much as one sum Λ
_DROPPED = 2.0**-10  # of what the nodes may err by
_SHARE = 0.5  # of the products of coefficients that two polynomials take
_LEBESGUE = 5  # more than 1 + (2/π) log(d + 1)
_SAME = 2.0**-6  # radians that one value of the loss may stand off another


@dataclass(frozen=True)
class Panel:
    """A sum over nodes, what it may err by, and about |φ| of each kind of step at its end."""

    total: acb
    error: arb
    moduli: tuple[float, ...]


@dataclass(frozen=True)
class _Range:
    """Frequencies kh, first ≤ k < first + count, where the count is a power of two."""

    first: int
    count: int
    spacing: arb

    @property
    def start(self) -> arb:
        return self.first * self.spacing

    @property
    def end(self) -> arb:
        return (self.first + self.count) * self.spacing

    def place(self, x: Any) -> Any:
        """Return the frequency between the ends that −1 ≤ x ≤ 1 stands for."""
        return self.start + (self.end - self.start) * (1 + x) / 2

    def halves(self) -> tuple[_Range, _Range]:
        half = self.count // 2
        return (
            _Range(self.first, half, self.spacing),
            _Range(self.first + half, half, self.spacing),
        )


@dataclass(frozen=True)
class _Group:
    """The nodes of one value σ of the loss: weights, losses, and the bounds of G_σ on the arcs."""

    place: arb
    weights: list[Any]
    losses: list[acb]
    bounds: list[arb]

    def values(self, frequencies: list[arb]) -> list[acb]:
        """Return G_σ at frequencies."""
        spend_products(len(frequencies) * len(self.weights))
        turns = [acb(0, 1) * (loss - self.place) for loss in self.losses]
        found = []
        for y in frequencies:
            total = acb(0)
            for weight, turn in zip(self.weights, turns, strict=True):
                total += weight * (y * turn).exp()
            found.append(total)
        return found


@dataclass(frozen=True)
class _Split:
    """One step's φ on a range: groups, e, a bound of |φ| less e, and one of |φ| at the end."""

    groups: list[_Group]
    error: arb
    largest: arb
    last: arb


def sum_panel(
    steps: Sequence[tuple[Nodes, int]],
    tilt: arb,
    epsilon: arb,
    spacing: arb,
    first: int,
    goal: arb,
) -> Panel | None:
    """Sum e^{−iεy} Πφⁿ/(z(1 + z)) over y = kh for first ≤ k < 2·first, None if nodes cost less.

    Parameters
    ----------
    steps : sequence of (Nodes, count)
        That serve all these frequencies.
    tilt, epsilon, spacing : arb
    first : int
        A power of two.
    goal : arb
        What the interpolation may err by.
    """
    whole = _Range(first, first, spacing)
    waiting = [whole]
    total, error = acb(0), arb(0)
    moduli: tuple[float, ...] = ()
    while waiting:
        part = waiting.pop()
        found = _sum_range(steps, tilt, epsilon, part, goal * part.count / whole.count)
        if found is None:
            if part.count * _MOST_PARTS <= whole.count:
                return None
            waiting += reversed(part.halves())
            continue
        total += found.total
        error += found.error
        moduli = found.moduli
    return Panel(total, arb(error.upper()), moduli)


def _sum_range(
    steps: Sequence[tuple[Nodes, int]], tilt: arb, epsilon: arb, part: _Range, goal: arb
) -> Panel | None:
    with ctx.workprec(_COARSE):
        arcs = _arcs(part)
        splits = [(_split(nodes, part, arcs), count) for nodes, count in steps]
        sums = math.prod(math.comb(n + len(s.groups) - 1, n) for s, n in splits)
        if sums > _MOST_SUMS:
            return None
        size = part.count * _largest(splits, arcs)
        degree = _degree(size, goal)
        if degree is None or degree + _PER_SUM * sums > part.count:
            return None
        error = part.count * part.start**-2 * _difference(splits) + _interpolation(size, degree)
        bits = math.log2(max(float((size / goal).upper()), 2.0)) + 3 * degree + 40
    with ctx.workprec(max(ctx.prec, int(bits))):
        total = _total(splits, tilt, epsilon, part, degree)
    return Panel(total, arb(error.upper()), tuple(float(split.last) for split, _ in splits))


def _arcs(part: _Range) -> list[acb]:
    """Return balls y that cover the upper half of the ellipse around the frequencies."""
    wide, tall = ((arb(_RADIUS) + sign / arb(_RADIUS)) / 2 for sign in (1, -1))
    angles = [arb.pi() * k / _ARCS for k in range(_ARCS + 1)]
    turns = (between(*pair) for pair in itertools.pairwise(angles))
    return [part.place(acb(wide * turn.cos(), tall * turn.sin())) for turn in turns]


def _split(nodes: Nodes, part: _Range, arcs: list[acb]) -> _Split:
    """Give each node that counts to the value of the loss that is next to it."""
    places = _distinct(nodes.ends, part.end)
    at_ends = [
        [abs(weight) * (-y * acb(loss).imag).exp() for y in (part.start, part.end)]
        for weight, loss in zip(nodes.weights, nodes.losses, strict=True)
    ]
    sizes = [arb(first.max(last).upper()) for first, last in at_ends]
    error, left = nodes.error, nodes.error * _DROPPED
    kept = set(range(len(sizes)))
    for index in sorted(kept, key=lambda i: float(sizes[i])):
        left -= sizes[index]
        if not left > 0:
            break
        error += sizes[index]
        kept.remove(index)
    members: list[list[int]] = [[] for _ in places]
    middles = [float(place) for place in places]
    for index in sorted(kept):
        at = float(acb(nodes.losses[index]).real)
        members[min(range(len(places)), key=lambda j: abs(middles[j] - at))].append(index)
    groups = []
    for place, own in zip(places, members, strict=True):
        if own:
            weights = [nodes.weights[i] for i in own]
            losses = [acb(nodes.losses[i]) for i in own]
            offsets = [loss - place for loss in losses]
            groups.append(_Group(place, weights, losses, _bounds(weights, offsets, arcs)))
    spend_products(len(sizes) * len(arcs))
    largest = sum((sizes[i] for i in kept), arb(0))
    last = sum((at_ends[i][1] for i in kept), error)
    return _Split(groups, arb(error.upper()), arb(largest.upper()), arb(last.upper()))


def _distinct(ends: Sequence[arb], highest: arb) -> list[arb]:
    """Return values of the loss that no frequency of the panel tells apart, one of each."""
    found: list[arb] = []
    for end in ends:
        if not any(abs(end - other) * highest < _SAME for other in found):
            found.append(end.mid())
    return found


def _bounds(weights: list[Any], offsets: list[acb], arcs: list[acb]) -> list[arb]:
    parts = [(abs(w), o.imag, abs(o.real)) for w, o in zip(weights, offsets, strict=True)]
    found = []
    for arc in arcs:
        a, b = arc.real, abs(arc.imag)
        total = sum((size * (b * away - a * rise).exp() for size, rise, away in parts), arb(0))
        found.append(arb(total.upper()))
    return found


def _largest(splits: list[tuple[_Split, int]], arcs: list[acb]) -> arb:
    """Bound the sum over all Λ of what the terms are on the ellipse."""
    largest = arb(0)
    for number, arc in enumerate(arcs):
        product = 1 / arc.real**2  # |z|, |1 + z| ≥ Re y
        for split, count in splits:
            product *= sum((g.bounds[number] for g in split.groups), arb(0)) ** count
        if not product.is_finite():
            return arb.pos_inf()
        largest = largest.max(arb(product.upper()))
    return largest


def _difference(splits: list[tuple[_Split, int]]) -> arb:
    """Bound what the errors of all steps change their product by."""
    whole = math.prod(((s.largest + s.error) ** n for s, n in splits), start=arb(1))
    share = sum((n * s.error / (s.largest + s.error) for s, n in splits), arb(0))
    return arb((share * whole).upper())


def _degree(size: arb, goal: arb) -> int | None:
    if not size.is_finite():
        return None
    excess = float((4 * size / goal).log().upper()) / math.log(_RADIUS)
    degree = max(4 * math.ceil(excess / 4), 4)
    return degree if degree <= _MOST_DEGREE else None


def _interpolation(size: arb, degree: int) -> arb:
    return 4 * size * arb(_RADIUS) ** -degree / (_RADIUS - 1)


def _total(
    splits: list[tuple[_Split, int]], tilt: arb, epsilon: arb, part: _Range, degree: int
) -> acb:
    """Sum the polynomials that agree with the terms at Chebyshev points."""
    points, to_powers = _interpolant(degree, ctx.prec)
    frequencies = [part.place(x) for x in points]
    kernel = [1 / (acb(tilt, y) * acb(1 + tilt, y)) for y in frequencies]
    products: list[tuple[arb, list[acb]]] = [(-epsilon, kernel)]
    for split, count in splits:
        terms = [(group.place, group.values(frequencies)) for group in split.groups]
        own = nth_power(terms, count, [acb(1)] * len(frequencies), _products, _scaled)
        products = [
            (place + other, _products(values, more))
            for place, values in products
            for other, more in own
        ]
    columns = acb_mat(to_powers) * acb_mat(
        [[values[j].mid() for _, values in products] for j in range(degree + 1)]
    )
    spend_products(len(products) * (degree + 1) * (degree + 1) * _SHARE * part.count.bit_length())
    # What values err by the polynomial errs by at most times the Lebesgue constant.
    unsure = sum((max(_radius(v) for v in values) for _, values in products), arb(0))
    error = (_LEBESGUE * part.count * unsure).upper()
    total = acb(arb(0, error), arb(0, error))
    for number, (place, _) in enumerate(products):
        moments = _moments(place * part.spacing, part.count, degree)
        inner = sum((columns[k, number] * moments[k] for k in range(degree + 1)), acb(0))
        total += acb(0, place * part.start).exp() * inner
    return total


def _products(values: list[acb], others: list[acb]) -> list[acb]:
    return [a * b for a, b in zip(values, others, strict=True)]


def _scaled(values: list[acb], size: arb) -> list[acb]:
    return [a * size for a in values]


def _radius(value: acb) -> arb:
    return arb((value.real.rad() + value.imag.rad()).upper())


@lru_cache(maxsize=32)
def _interpolant(degree: int, precision: int) -> tuple[list[arb], arb_mat]:
    """Return Chebyshev points, and the matrix from values there to coefficients of powers."""
    with ctx.workprec(precision):
        count = degree + 1
        angles = [arb.pi() * (2 * j + 1) / (2 * count) for j in range(count)]
        rows = []
        for k in range(count):
            share = arb(1 if k == 0 else 2) / count
            rows.append([share * (k * angle).cos() for angle in angles])
        powers = [[0] * count for _ in range(count)]  # of x, down, in T_k, across
        powers[0][0] = 1
        if count > 1:
            powers[1][1] = 1
        for k in range(2, count):
            for m in range(k + 1):
                powers[m][k] = (2 * powers[m - 1][k - 1] if m else 0) - powers[m][k - 2]
        return [angle.cos() for angle in angles], arb_mat(powers) * arb_mat(rows)


def _moments(turn: arb, count: int, degree: int) -> list[acb]:
    """Return Σ_k e^{ik·turn} x_k^l, l ≤ d, over the x_k = −1 + 2k/A, k < A."""
    series = acb_poly(_exponential(arb(-1), degree))
    for m in range(count.bit_length() - 1):
        factor = _exponential(arb(2) * 2**m / count, degree)
        phase = acb(0, turn * 2**m).exp()
        row = [phase * c for c in factor]
        row[0] += 1
        series = (series * acb_poly(row)).truncate(degree + 1)
    found = [*series.coeffs(), *[acb(0)] * (degree + 1)]
    return [math.factorial(k) * c for k, c in enumerate(found[: degree + 1])]


def _exponential(rate: arb, degree: int) -> list[arb]:
    row = [arb(1)]
    for k in range(1, degree + 1):
        row.append(row[-1] * rate / k)
    return row
