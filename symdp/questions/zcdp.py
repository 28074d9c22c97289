r"""The least ρ of zero-concentrated differential privacy: the supremum of D_α/α over α > 1.

.. math:: ρ = \sup_{t > 0} g(t), \qquad g(t) = \frac{D_{1+t}}{1+t} = \frac{K(t)}{t(t + 1)}

as D_α = K(α − 1)/(α − 1). On a cell [a, b] K lies below its chord by at least A(t − a)(b − t), 2A a
bound below K″ there. The third cumulant of a step whose losses lie w apart is at most w times its
variance, so that K″(t) changes by a factor of e^{w|t − s|} at most. At t → 0 g is the mean loss KL;
where no loss exceeds L, K(t) ≤ tL and g(t) ≤ L/(1 + t). Cells are halved until the largest of these
bounds is next to the largest value of g: an enclosure, up to the rounding of K.

Where no largest loss is known, no bound holds beyond the last tilt, and the value is an estimate.
Not so of noise with log f(x) = c − x²/(2σ²), on the line around any mean, or on all integers:
D_α ≤ αD²/(2σ²), with equality on the line, and on integers at whole α, as a theta series is largest
unshifted. A Poisson sample at rate q has the same ρ where a record is removed, the limit at α → ∞:
D_α grows with q by joint convexity, and is at least that of q = 1 plus (log q) α/(α − 1). Where one
is added no loss exceeds −log(1 − q).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy as sp

from symdp.decimal_text import Side, rounded
from symdp.errors import AccuracyError, InputError
from symdp.methods.renyi import check_resolved, goes_on
from symdp.model.relation import ADD_REMOVE, SUBSTITUTION
from symdp.model.sampling import Noise, Radial, RenyiCurve
from symdp.numeric.saddle_point import golden_section
from symdp.questions.steps.accounted import a_composition, direction_of
from symdp.questions.tradeoff import divergence_kind, stated_rho
from symdp.tolerances import LOSS_ROUNDED
from symdp.turns import in_turn

if TYPE_CHECKING:
    from symdp.arguments import Direction
    from symdp.model.mechanism import Mechanism
    from symdp.model.relation import Protection
    from symdp.numeric.answer import Kind
    from symdp.numeric.total import SumLaw
    from symdp.questions.steps.accounted import Composed

_TOLERANCE = 1e-12  # relative: of the enclosure, beyond which no cell is halved
_MOST = 400  # tilts at most
_FIRST = 2.0**-10  # of the last tilt, or of 1: where the first cell ends
_NEARER = 1.0 / 16.0  # of its tilt: where the cell at 0 is divided
_NARROWINGS = 40  # of a golden section
_FARTHEST = 2.0**20  # tilt at which a search without an end stops
_FALLEN = 0.25  # of the largest value: g has left it behind
_GROWS = 1.01  # times as large at twice the tilt: then no finite ρ is in sight


@dataclass(frozen=True)
class Zcdp:
    """The least ρ with D_α ≤ ρα for all α > 1, and where it is reached.

    Attributes
    ----------
    rho
        ρ; the upper end where a pair only bounds what data attain, inf where there is none.
    lower, upper
        Between which it lies; upper is None where it is an estimate.
    kind
        "exact", "bound" or "estimate", as of a `Guarantee`.
    order
        The order α at which D_α/α is largest, about: 1 or inf where it is a limit.
    direction, n, protection
        The direction of the larger ρ, the number of steps, and whose privacy it is.
    advice
        Empty, or what is not known.
    """

    rho: float
    lower: float
    upper: float | None
    kind: Kind
    order: float
    direction: str
    n: int
    protection: Protection
    advice: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values, infinite ones as null."""
        entries: dict[str, Any] = {
            name: getattr(self, name) if math.isfinite(getattr(self, name) or 0.0) else None
            for name in ("rho", "lower", "upper", "order")
        }
        entries |= {"kind": self.kind, "direction": self.direction, "count": self.n}
        return (
            entries | self.protection.to_json() | ({"advice": self.advice} if self.advice else {})
        )

    def __repr__(self) -> str:
        return f"<Zcdp {self}>"

    def __str__(self) -> str:
        if math.isinf(self.rho):
            which = " is known, as the pair only dominates" if self.kind == "bound" else ""
            return f"no finite ρ{which}: {self.advice}"
        where = "α → 1" if self.order == 1.0 else f"α = {self.order:.6g}"
        where = "α → ∞" if math.isinf(self.order) else where
        side: Side = "nearest" if self.upper in (None, self.lower) else "up"
        note = f" [{self.advice}]" if self.advice else ""
        shown = rounded(self.rho if self.upper is None else self.upper, 12, side)
        sign = "≤" if self.kind == "bound" else "="
        return (
            f"ρ {sign} {shown}, {self.kind}, largest at {where}, {self.direction} direction{note}"
        )


@dataclass(frozen=True)
class _Found:
    """The supremum of g between two ends, the upper one None where no bound is known."""

    lower: float
    upper: float | None
    order: float
    advice: str = ""


@in_turn
def zcdp(composition: Composed, direction: Direction = "both") -> Zcdp:
    """Return the least ρ of zCDP, the supremum over α > 1 of D_α/α.

    Parameters
    ----------
    composition
        The steps.
    direction
        "remove", "add", or "both", which takes the larger ρ.

    Raises
    ------
    AccuracyError
        If K can be computed nowhere.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> print(zcdp(compose(mechanisms.laplace(b=2), 3)))
    ρ = 0.319591979138, exact, largest at α → 1, remove direction
    >>> print(zcdp(compose(mechanisms.gaussian(sigma=2), 3)))
    ρ = 0.375, exact, largest at α → 1, remove direction
    """
    steps = a_composition(composition)
    sides = steps.sides(direction)
    by_formula = []
    others = []
    for step, count in steps.given_steps():
        rho = stated_rho(step)
        if rho is None and (step.sampling is None or "remove" in sides):
            rho = _quadratic(step)
        if rho is None:
            others.append((step, count))
        else:
            by_formula.append((count * float(rho), step.sampling is None))
    fixed = math.fsum(rho for rho, plain in by_formula if plain)
    limit = math.fsum(rho for rho, plain in by_formula if not plain)
    suprema = dict.fromkeys(sides, _Found(0.0, 0.0, 1.0))
    if others:
        remaining = type(steps)(others) if by_formula else steps
        suprema = {side: _supremum(remaining.law(side)) for side in sides}
    side = max(suprema, key=lambda name: (suprema[name].lower, -sides.index(name)))
    uppers = [supremum.upper for supremum in suprema.values()]
    lower, upper = suprema[side].lower, None if None in uppers else max(u or 0.0 for u in uppers)
    order = suprema[side].order
    if limit:
        # The sum rises to `limit` as α → ∞, where g of bounded losses is gone.
        order = math.inf if limit >= lower else order
        upper = None if upper is None else limit + upper
        lower = max(limit, lower)
    lower, upper = fixed + lower, None if upper is None else fixed + upper
    kind: Kind = "estimate" if upper is None else "exact"
    only_dominates = divergence_kind(steps) == "bound"
    if upper is not None and (only_dominates or (limit and others)):
        kind = "bound"
    value = upper if kind == "bound" and upper is not None else lower
    if only_dominates:
        lower = 0.0  # no data are known as far apart
    label = steps.accounted.label or direction_of(side)
    whose = steps.accounted.protection_of(direction)
    return Zcdp(value, lower, upper, kind, order, label, steps.n, whose, suprema[side].advice)


def _quadratic(step: Mechanism) -> sp.Expr | None:
    """Return ρ of a step of which log f is quadratic, or whose curve is ρα; None for others."""
    source = step.source
    x = step.variable
    scheme = step.sampling
    if isinstance(source, RenyiCurve) and isinstance(source.divergence, sp.Expr):
        rho = sp.simplify(source.divergence / x)
        if rho.free_symbols:
            return None
        return rho
    if isinstance(source, Radial):
        step = step.on_a_line
    noise, ends = step.source, (step.support.lower, step.support.upper)
    if not isinstance(noise, Noise) or ends != (-sp.oo, sp.oo):
        return None
    if scheme is not None and not (
        scheme.scheme == "poisson"
        and step.neighbours == ADD_REMOVE
        and (scheme.group, scheme.released, scheme.batch) == (1, "sum", None)
        and scheme.rate.is_positive
    ):
        return None
    real = sp.Dummy(real=True)
    density = noise.density.xreplace({x: real})
    slope = sp.simplify(sp.diff(density, real) / density)
    if not slope.is_polynomial(real) or sp.degree(slope, real) != 1:
        return None
    if step.support.kind == "integers" and not slope.subs(real, 0).is_zero:
        return None
    moved = noise.substitution_sensitivity if step.neighbours == SUBSTITUTION else noise.sensitivity
    return -sp.diff(slope, real) * moved**2 / 2


def _supremum(law: SumLaw) -> _Found:
    """Return the supremum of g for one side."""
    check_resolved(law)
    if law.diverges_at(0.0):
        return _Found(math.inf, math.inf, 1.0, "an output that the other data set never has")
    end = law.domain[1]
    if end < math.inf and law.is_resolved_at(end):
        last = 1.0 + end
        return _Found(math.inf, math.inf, last, f"D_α is infinite from α = {last:.6g} on")
    if goes_on(law):
        raise AccuracyError(
            "ρ needs the divergence at every order, and these losses are listed up to one that is "
            "not the last; ask renyi for an order"
        )
    mean = float(law.cumulants(0.0, 1)[0])
    top = law.loss_bounds[1]
    if top <= 0.0:
        return _Found(0.0, 0.0, 1.0)
    if top == math.inf:
        return _looked_for(law, mean)
    return _enclosed(law, mean, top)


class _Place(NamedTuple):
    """A tilt with K and K″ there, a bound on K and 0 where they cannot be computed."""

    tilt: float
    cgf: float
    variance: float

    @property
    def ratio(self) -> float:
        return self.cgf / self.tilt / (1.0 + self.tilt)


def _enclosed(law: SumLaw, mean: float, top: float) -> _Found:
    """Return the supremum where no loss exceeds `top`, by bounds on cells."""
    widths = [high - low for low, high in (part.loss_bounds for part, _ in law.terms)]
    width = max(widths) if law.terms is law.parts else math.inf
    spread = float(law.cumulants(0.0, 2)[1])
    best = mean
    order = 1.0
    number = 0
    cells: list[tuple[float, _Place, _Place]] = []

    def look(tilt: float) -> _Place:
        nonlocal best, order, number
        number += 1
        try:
            point = _Place(tilt, float(law.cgf(tilt)), float(law.cumulants(tilt, 2)[1]))
        except AccuracyError:
            return _Place(tilt, tilt * top, 0.0)
        if point.ratio > best:
            best = point.ratio
            order = 1.0 + tilt
        return point

    def add(left: _Place, right: _Place) -> None:
        heapq.heappush(cells, (-_above(left, right, width), left, right))

    edge = _Place(0.0, 0.0, spread)
    last = max(top / mean, 1.0) if mean > 0.0 else _FARTHEST
    tilt = min(last, 1.0) * _FIRST
    while edge.tilt < last:
        point_at = look(tilt)
        add(edge, point_at)
        edge = point_at
        tilt = 2.0 * tilt
    while number < _MOST and -cells[0][0] > best * (1.0 + _TOLERANCE):
        _, left, right = heapq.heappop(cells)
        middle = look(math.sqrt(left.tilt * right.tilt) or right.tilt * _NEARER)
        add(left, middle)
        add(middle, right)
    upper = max(-cells[0][0], best, top / (1.0 + edge.tilt))
    error = LOSS_ROUNDED * (math.hypot(mean, math.sqrt(spread)) + best)
    return _Found(max(best - error, 0.0), upper + error, order)


def _above(left: _Place, right: _Place, width: float) -> float:
    """Return a bound on g on a cell: the largest value of (At² + Bt + C)/(t² + t) over K."""
    a = left.tilt
    b = right.tilt
    length = b - a
    slope = (right.cgf - left.cgf) / (b - a)
    bend = 0.5 * max(left.variance, right.variance) * math.exp(-width * length)  # A

    def ratio(t: float) -> float:
        line = (left.cgf * (b - t) + right.cgf * (t - a)) / length
        return (line - bend * (t - a) * (b - t)) / t / (1.0 + t)

    if a == 0.0:
        return max(slope - bend * b, right.ratio)
    first = slope - bend * (a + b)  # B
    constant = left.cgf - slope * a + bend * a * b  # C
    # Where the derivative vanishes: (A − B)t² − 2Ct − C = 0.
    square = bend - first
    root = constant * (constant + bend - first)
    places = [a, b]
    if root >= 0.0 and square:
        turns = ((constant + sign * math.sqrt(root)) / square for sign in (-1.0, 1.0))
        places += [t for t in turns if a < t < b]
    return max(map(ratio, places))


def _looked_for(law: SumLaw, mean: float) -> _Found:
    """Return the largest value of g at tilts up to where K ends in doubles."""

    def g(tilt: float) -> float:
        return float(law.cgf(tilt)) / tilt / (1.0 + tilt)

    tilts = [0.0]
    values = [mean]
    tilt = _FIRST
    while tilt <= _FARTHEST and values[-1] > _FALLEN * max(values):
        try:
            values.append(g(tilt))
        except (AccuracyError, InputError):
            break
        tilts.append(tilt)
        tilt *= 2.0
    best = max(range(len(values)), key=values.__getitem__)
    last = 1.0 + tilts[-1]
    if best == len(values) - 1 and best and values[best] > _GROWS * values[best - 1]:
        return _Found(math.inf, None, math.inf, f"D_α/α still grows at α = {last:.3g}")
    best_tilt = tilts[best]
    largest = values[best]
    if 0 < best < len(values) - 1:
        ends = math.log(tilts[best - 1] or best_tilt * _NEARER), math.log(tilts[best + 1])
        best_tilt, least = golden_section(lambda u: -g(math.exp(u)), *ends, _NARROWINGS)
        best_tilt = math.exp(best_tilt)
        largest = -least
    advice = f"no largest loss is known: orders above {last:.3g} were not looked at"
    return _Found(largest, None, 1.0 + best_tilt, advice)
