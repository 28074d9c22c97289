"""δ(ε) to many digits: the plan in balls, else few steps added one at a time from the definition.

With h(s) = (1 − e^s)⁺ and g₀(s) = e^{ts}h(s), δ(ε) = E h(ε − L₁ − … − Lₙ) is e^{−εt} Π M(t) gₙ(ε),

    g_k(e) = ∫ g_{k−1}(e − ℓ) dμ_k(ℓ),

μ being the law of a step's loss tilted by t, of mass 1: nothing cancels, and errors never grow.
g₀ has a kink at 0, and g_k has those of g_{k−1} moved by every end, turning value and atom of the
loss.  Between kinks g_k is interpolated in u, e = a + (b − a)/(1 + e^{−π sinh u}), which makes
singular ends smooth; panels of Gauss's rule in x that meet a kink, or lie beside one that does,
are split there and summed by the same map (tanh-sinh).  Two evaluations, with other nodes and
other degrees, must agree: that is the measure of error of what is not proved.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import mpmath
import sympy as sp
from flint import acb, arb, arb_poly, ctx

from symdp.arguments import counted_pairs
from symdp.emit.exact import LN10, fraction_ball
from symdp.errors import AccuracyError, InputError
from symdp.model.allocation import AllocatedPair, OneStep
from symdp.prove.enclosure import WAYS, enclose_by, mass_at_infinity
from symdp.prove.kind import Kind, Stretch, kind_of, sum_law
from symdp.prove.measure import MOST_INTEGERS, gauss
from symdp.prove.plan import find_saddle, panels_of
from symdp.prove.work import limited, spend

if TYPE_CHECKING:
    from symdp.model.pair import Pair

FEWER_DIGITS = 15  # asked for where more are out of reach
_MOST_STEPS = 4  # added one at a time
_MOST_KINKS = 40  # of a law's density, between which it is smooth
_MOST_SUMS = 200_000  # of atoms
_FEW_SUMS = 40  # at which the last function is not interpolated
_MOST_HALVINGS = 40  # of a place that is looked for
_SPARE = 5.0  # digits of each evaluation beyond those on which two must agree
_RESOLVED = 8.0  # frequencies that panels resolve, in units of one over the deviation
_FAR = 120  # powers of two, at which a loss that has a limit is there
_WORK = 0.4  # of a value of g, in values of a log-density

Function = Callable[[arb], arb]


@dataclass(frozen=True)
class Profile:
    """δ(ε), how many digits of it are known, and how.

    Attributes
    ----------
    value : mpmath.mpf
    digits : int
        Decimal digits: those of a proved ball, or those on which two evaluations agree.
    is_proved : bool
    way : str
        The row of `symdp.prove.enclosure`, or "convolution".
    """

    value: Any
    digits: int
    is_proved: bool
    way: str

    @property
    def said(self) -> str:
        """How many digits are known, and by what."""
        how = (
            f"proved by the row {self.way!r}" if self.is_proved else "two evaluations agree on them"
        )
        return f"{self.digits} digits: {how}"


def privacy_profile(
    pairs: Iterable[tuple[OneStep, int]], epsilon: float | Fraction | sp.Rational, digits: int = 50
) -> Any:
    """Return δ(ε) of a composition to the asked number of digits.

    Parameters
    ----------
    pairs : iterable of (Pair, count)
        The steps; all parameters bound.
    epsilon : float, Fraction or SymPy rational
        Any rational number, taken exactly.
    digits : int
        Significant digits of δ, 1 to 1000.

    Returns
    -------
    mpmath.mpf

    Raises
    ------
    InputError
        For a bad count, ε or number of digits.
    AccuracyError
        If so many digits are out of reach.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> steps = [(mechanisms.gaussian(sigma=2).pair(), 20)]
    >>> print(mpmath.nstr(privacy_profile(steps, Fraction(3, 2), digits=30), 30))
    0.507627661812330236985484988637
    """
    return _profile(pairs, epsilon, (digits,), None).value


def profile(
    pairs: Iterable[tuple[OneStep, int]], epsilon: float | Fraction | sp.Rational, digits: int = 30
) -> Profile:
    """Return δ(ε) to so many digits, or to as many as can be had, at the least those of a mesh.

    Raises
    ------
    InputError
        For a bad count, ε or number of digits.
    AccuracyError
        If not even four digits are proved.
    """
    asked = tuple(dict.fromkeys((digits, min(digits, FEWER_DIGITS))))
    return _profile(pairs, epsilon, asked, digits)


def _profile(
    pairs: Iterable[tuple[OneStep, int]], epsilon: Any, asked: Sequence[int], mesh: int | None
) -> Profile:
    steps = tuple(counted_pairs(pairs, "pair"))
    if isinstance(epsilon, sp.Basic) and not epsilon.is_Rational:
        raise InputError(f"epsilon = {epsilon}: give a rational number, or a double close by")
    exact = (
        Fraction(int(epsilon.p), int(epsilon.q)) if isinstance(epsilon, sp.Rational) else epsilon
    )
    sharp = tuple(way for way in WAYS if way.is_sharp)
    refusal = AccuracyError("the plan proves fewer digits, and more steps are too many to add")
    for digits in asked:
        try:
            return _proved(*enclose_by(sharp, steps, exact, digits), digits)
        except AccuracyError as own:
            refusal = own
        try:
            return _agreed(steps, Fraction(exact), digits)
        except AccuracyError as own:
            refusal = own if own.args[0] else refusal
    if mesh is None:
        raise refusal
    return _proved(*enclose_by(WAYS, steps, exact, mesh), mesh)


def _proved(way: str, ball: arb, digits: int) -> Profile:
    reached = digits
    if 2 * ball.rad() > abs(ball.mid()) * arb(10) ** -digits:
        reached = max(int(ball.rel_accuracy_bits() * math.log10(2.0)), 0)
    return Profile(_to_mpf(ball, digits), reached, True, way)


def _to_mpf(ball: arb, digits: int) -> Any:
    mantissa, exponent = ball.mid().man_exp()
    with mpmath.workdps(digits + 5):
        return mpmath.ldexp(mpmath.mpf(int(mantissa)), int(exponent))


def _agreed(steps: Sequence[tuple[OneStep, int]], epsilon: Fraction, digits: int) -> Profile:
    """Return δ from two evaluations that agree on so many digits."""
    plain = [(pair, n) for pair, n in steps if not isinstance(pair, AllocatedPair)]
    if len(plain) < len(steps):
        raise AccuracyError("")
    found = []
    for further in (0, 5):
        with limited(digits):
            found.append(_convolved(plain, epsilon, digits + _SPARE, further))
    first, second = found
    apart = (abs(first - second) / second).upper()
    reached = digits if apart.is_zero() else min(int(-float(apart.log()) / LN10), digits)
    if reached < digits or not second > 0:
        raise AccuracyError(
            f"two evaluations of δ agree on {max(reached, 0)} of {digits} digits only "
            f"({first.str(10, radius=False)}, {second.str(10, radius=False)}); ask for fewer digits"
        )
    return Profile(_to_mpf(second, digits), digits, False, "convolution")


def _convolved(
    steps: Sequence[tuple[Pair, int]], epsilon: Fraction, digits: float, further: int
) -> arb:
    order = int(8 + 0.8 * digits) + further
    kinds = [(kind_of(pair), count) for pair, count in steps]
    if sum(count for kind, count in kinds if not kind.is_discrete) > _MOST_STEPS:
        raise AccuracyError("")
    smooth = [kind for kind, count in kinds if not kind.is_discrete for _ in range(count)]
    law = sum_law(tuple(kinds))
    saddle = find_saddle(law, float(epsilon))
    # Without a moment a large loss is likely: δ is not small, and no tilt is needed.
    tilt, log_size = (0.0, -4.0) if saddle is None else (saddle.tilt, saddle.log_size)
    log_mass = min(log_size, 0.0) - digits * LN10 - math.log(law.count)
    scale = math.log2(10 + abs(log_size) + abs(tilt * float(epsilon)))
    with ctx.workprec(int(3.33 * digits + 2.8 * order + scale) + 40):
        own = {k: _Step(k, tilt, log_mass, digits, order) for k in dict.fromkeys(smooth)}
        laws = [own[kind] for kind in smooth]
        atoms, log_atoms = _sums([(k, n) for k, n in kinds if k.is_discrete], tilt, log_mass)
        exponent = sum((one.log_moment for one in laws), log_atoms - tilt * fraction_ball(epsilon))
        tolerance = (arb(min(log_size, 0.0)) - exponent).exp() * arb(10) ** -int(digits)
        e = fraction_ball(epsilon)
        spread = (min(x for _, x in atoms), max(x for _, x in atoms))
        g: _Payoff | _Between = _Payoff(arb(tilt))
        for index, one in enumerate(laws):
            rest = [*((later.low, later.high) for later in laws[index + 1 :]), spread]
            low, high = (e - sum((r[side] for r in rest), arb(0)) for side in (1, 0))
            if index == len(laws) - 1 and len(atoms) <= _FEW_SUMS:
                break
            kinks = _merged([k + x for k in g.kinks for x in one.kinks], low.mid(), high.mid())
            values = partial(one.convolved, g)
            g = _Between(kinks, values, tolerance, digits, 2 * order)
        final = g if not laws or len(atoms) > _FEW_SUMS else partial(laws[-1].convolved, g)
        total = sum((mass * final(e - loss) for mass, loss in atoms), arb(0))
        return arb((total * exponent.exp()).mid() + mass_at_infinity(steps, log_mass).mid())


def _sums(
    kinds: Sequence[tuple[Kind, int]], tilt: float, log_mass: float
) -> tuple[list[tuple[arb, arb]], arb]:
    """Return all sums of atoms with tilted masses, and the log of what these were divided by."""
    sums, log_total = [(arb(1), arb(0))], arb(0)
    for kind, count in kinds:
        atoms = _tilted_atoms(kind, tilt, log_mass)
        if not atoms or len(sums) * math.comb(len(atoms) + count - 1, count) > _MOST_SUMS:
            raise AccuracyError("sums of atoms are too many to add; ask for fewer digits")
        whole = sum((mass for mass, _ in atoms), arb(0))
        log_total += count * whole.log()
        own = _multinomial([(mass / whole, loss) for mass, loss in atoms], count)
        sums = [(p * q, a + b) for (p, a), (q, b) in itertools.product(sums, own)]
    return sums, log_total


def _multinomial(atoms: Sequence[tuple[arb, arb]], count: int) -> list[tuple[arb, arb]]:
    found = [(count, arb(math.factorial(count)), arb(0))]
    for index, (mass, loss) in enumerate(atoms):
        powers = [mass**k / math.factorial(k) for k in range(count + 1)]
        is_last = index == len(atoms) - 1
        found = [
            (left - k, weight * powers[k], total + k * loss)
            for left, weight, total in found
            for k in ((left,) if is_last else range(left + 1))
        ]
    return [(weight, total) for _, weight, total in found]


def _tilted_atoms(kind: Kind, tilt: float, log_mass: float) -> list[tuple[arb, arb]]:
    """Return masses e^{tℓ}P and losses of the atoms of a step."""
    atoms = kind.atoms()
    for one in panels_of(kind, tilt, 0.0, log_mass):
        stretch = kind.stretches[one.stretch]
        if stretch.is_infinite or not (stretch.is_flat or stretch.is_integer):
            continue
        whole = stretch.whole_mass() if stretch.is_flat else None
        if whole is not None:
            atoms.append((whole, stretch.loss))
        elif stretch.is_integer:
            first, last = (int(edge) for edge in (one.edges[0], one.edges[-1]))
            if last - first > MOST_INTEGERS:
                raise AccuracyError("sums of atoms are too many to add; ask for fewer digits")
            for k in range(first, last + 1):
                log_p, loss = stretch.values(arb(k))
                atoms.append((log_p.exp(), loss))
        else:
            raise AccuracyError("")
    return [(mass * (tilt * loss).exp(), loss) for mass, loss in atoms]


def _merged(places: list[arb], low: arb, high: arb) -> list[arb]:
    """Return both ends and the places between, equal ones once."""
    same, found = arb(2) ** (20 - ctx.prec), [low]
    for place in sorted((p.mid() for p in places), key=arb.fmpq):
        if place - found[-1] > same * (1 + abs(place)) and high - place > same * (1 + abs(place)):
            found.append(place)
    if len(found) > _MOST_KINKS:
        raise AccuracyError("a convolution has too many kinks; compose fewer steps")
    return [*found, high]


class _Payoff:
    """g₀(e) = e^{te}(1 − e^e)⁺."""

    def __init__(self, tilt: arb) -> None:
        self._tilt, self.kinks = tilt, [arb(0)]

    def __call__(self, e: arb) -> arb:
        return -(self._tilt * e).exp() * e.expm1() if e < 0 else arb(0)


class _Half(NamedTuple):
    """Polynomials on one half of an interval, from its outer end to its middle."""

    start: arb
    width: arb  # negative where the start is the upper end
    is_kink: bool
    rights: list[float]
    pieces: list[tuple[float, float, arb_poly]]


class _Between:
    """A function that is smooth between kinks, by polynomials on parts of each interval."""

    def __init__(
        self, kinks: list[arb], values: Function, tolerance: arb, digits: float, order: int
    ) -> None:
        self.kinks = kinks[1:-1]
        self._reach = (
            math.ceil(8 * math.asinh((digits + 1) * LN10 / math.pi)) / 8
        )  # halves are exact
        self._halves: list[_Half] = []
        for number, (a, b) in enumerate(itertools.pairwise(kinks)):
            half = ((b - a) / 2).mid()
            left = a, half, number > 0
            for one in (left, (b, -half, number < len(kinks) - 2)):
                self._halves.append(self._half(*one, values, tolerance, order))
        ends = [e for one in self._halves[::2] for e in (one.start, one.start + one.width)]
        self._ends = ends[1:]
        self._floats = [float(end) for end in self._ends]

    def _half(
        self, start: arb, width: arb, is_kink: bool, values: Function, tolerance: arb, order: int
    ) -> _Half:
        points = [arb.cos_pi(arb(2 * k + 1) / (2 * order)).mid() for k in range(order)]
        pieces: list[tuple[float, float, arb_poly]] = []
        waiting = [(-self._reach, 0.0, 0) if is_kink else (0.0, 1.0, 0)]
        while waiting:
            left, right, depth = waiting.pop()
            middle = (left + right) / 2
            shares = [middle + (right - left) / 2 * x for x in points]
            if is_kink:
                shares = [(arb.pi() * u.sinh()).exp() for u in shares]
            found = arb_poly.interpolate(
                points, [values((start + width * s).mid()) for s in shares], algorithm="barycentric"
            )
            # The Chebyshev coefficients of the two highest orders.
            tail = (2 * abs(found[order - 1]) + 4 * abs(found[order - 2])) * arb(2) ** -order
            if 8 * tail < tolerance or depth == _MOST_HALVINGS:
                own = arb_poly([found[k].mid() for k in range(order)])
                pieces.append((left, right, own))
            else:
                waiting += [(left, middle, depth + 1), (middle, right, depth + 1)]
        pieces.sort(key=lambda piece: piece[0])
        return _Half(start, width, is_kink, [right for _, right, _ in pieces[:-1]], pieces)

    def __call__(self, e: arb) -> arb:
        spend(_WORK)
        index = bisect.bisect(self._floats, float(e))
        if index > 0 and e < self._ends[index - 1]:  # as doubles they may be equal
            index -= 1
        elif index < len(self._ends) and e > self._ends[index]:
            index += 1
        half = self._halves[index]
        u = (e - half.start) / half.width
        if half.is_kink:
            u = (u.log() / arb.pi()).asinh().mid() if u > 0 else arb(-self._reach)
            u = u.max(arb(-self._reach))
        left, right, polynomial = half.pieces[bisect.bisect(half.rights, float(u))]
        return polynomial((2 * u - left - right) / (right - left)).mid()


def _share(u: arb) -> tuple[arb, arb]:
    """Return 1/(1 + e^{−π sinh u}) and its derivative."""
    turned = (-arb.pi() * u.sinh()).exp()
    share = 1 / (1 + turned)
    return share, share * share * turned * arb.pi() * u.cosh()


@lru_cache(maxsize=16)
def _tanh_sinh(digits: float, order: int, precision: int) -> tuple[tuple[arb, arb, arb], ...]:
    """Return shares of an interval from its left and from its right end, and weights."""
    with ctx.workprec(precision):
        reach, count = math.asinh((digits + 4) * LN10 / math.pi), 3 * order
        step = arb(2 * reach / count)
        found = []
        for k in range(-count // 2, count // 2 + 1):
            share, slope = _share(k * step)
            found.append((share.mid(), _share(-k * step)[0].mid(), (slope * step).mid()))
        return tuple(found)


@lru_cache(maxsize=16)
def _from_both_ends(order: int, precision: int) -> tuple[tuple[arb, arb, arb], ...]:
    """Return Gauss's rule in the same form."""
    rule = gauss(order, precision)
    return tuple(((1 + x) / 2, (1 - x) / 2, weight / 2) for x, weight in rule)


class _Panel(NamedTuple):
    """Gauss's nodes of the tilted law between two places where the loss is monotone."""

    left: arb
    right: arb
    weights: list[arb]
    losses: list[arb]
    low: arb
    high: arb


class _Step:
    """One step's loss, tilted: atoms, and panels of each stretch, of total mass 1."""

    def __init__(self, kind: Kind, tilt: float, log_mass: float, digits: float, order: int) -> None:
        self._tilt, self._rule = tilt, (digits, order, ctx.prec)
        law = sum_law(((kind, 1),))
        frequency = _RESOLVED / math.sqrt(float(law.cumulants(tilt, 2)[1])) + abs(tilt)
        self._frequency, self._order = arb(frequency), order
        self._height = arb(float(law.cgf(tilt)))
        self._tolerance = arb(10) ** -int(digits + 2)
        self.atoms = kind.atoms()
        self.runs: list[tuple[Stretch, list[_Panel]]] = []
        self.kinks: list[arb] = []
        for one in panels_of(kind, tilt, 0.0, log_mass):
            stretch = kind.stretches[one.stretch]
            if stretch.is_infinite:
                continue
            if stretch.is_integer:
                raise AccuracyError("")
            whole = stretch.whole_mass() if stretch.is_flat else None
            if whole is not None:
                self.atoms.append((whole, stretch.loss))
            elif one.edges:
                self._add(stretch, [stretch.place(edge) for edge in one.edges])
        shrunk = (-self._height).exp()
        self.atoms = [(m * shrunk * (tilt * loss).exp(), loss) for m, loss in self.atoms]
        masses = [mass for mass, _ in self.atoms]
        masses += [w for _, panels in self.runs for panel in panels for w in panel.weights]
        whole = sum(masses, arb(0))
        self.log_moment = self._height + whole.log()
        self._height = self.log_moment
        self.atoms = [((mass / whole).mid(), loss.mid()) for mass, loss in self.atoms]
        self.runs = [
            (stretch, [p._replace(weights=[(w / whole).mid() for w in p.weights]) for p in panels])
            for stretch, panels in self.runs
        ]
        self.kinks += [loss for _, loss in self.atoms]
        ends = [x for _, x in self.atoms]
        ends += [end for _, panels in self.runs for p in panels for end in (p.low, p.high)]
        self.low, self.high = min(ends), max(ends)

    def _density(self, stretch: Stretch, x: arb) -> tuple[arb, arb]:
        log_p, loss = stretch.values(x)
        return (log_p + self._tilt * loss - self._height).exp(), loss

    def _sampled(self, stretch: Stretch, left: arb, right: arb) -> tuple[list[arb], list[arb], acb]:
        centre, half = (left + right) / 2, (right - left) / 2
        weights, losses, total = [], [], acb(0)
        for root, weight in gauss(self._order, ctx.prec):
            density, loss = self._density(stretch, (centre + half * root).mid())
            weights.append((half * weight * density).mid())
            losses.append(loss.mid())
            total += weights[-1] * (1 + acb(0, self._frequency * losses[-1]).exp())
        return weights, losses, total

    def _add(self, stretch: Stretch, edges: list[arb]) -> None:
        """Add panels of a stretch, split where the loss turns and where Gauss's rule needs it."""
        panels: list[_Panel] = []
        waiting: list[tuple[arb, arb, Any, int]] = [
            (a, b, None, 0) for a, b in itertools.pairwise(edges)
        ][::-1]
        turns: list[arb] = []
        while waiting:
            left, right, known, depth = waiting.pop()
            weights, losses, total = known or self._sampled(stretch, left, right)
            turn = _turn(lambda x: stretch.values(x)[1].mid(), left, right, losses)
            if turn is not None and depth < _MOST_HALVINGS:
                turns.append(stretch.values(turn)[1].mid())
                waiting += [(turn, right, None, depth + 30), (left, turn, None, depth + 30)]
                continue
            middle = ((left + right) / 2).mid()
            halves = [self._sampled(stretch, *ends) for ends in ((left, middle), (middle, right))]
            change = abs(halves[0][2] + halves[1][2] - total)
            if not change < self._tolerance and depth < _MOST_HALVINGS:
                waiting += [
                    (middle, right, halves[1], depth + 1),
                    (left, middle, halves[0], depth + 1),
                ]
                continue
            ends = [
                value.mid() if value.is_finite() else outer
                for value, outer in zip(
                    (stretch.values(left)[1], stretch.values(right)[1]),
                    (losses[0], losses[-1]),
                    strict=True,
                )
            ]
            panels.append(_Panel(left, right, weights, losses, min(ends), max(ends)))
        self.runs.append((stretch, panels))
        self.kinks += [*turns, *_limits(stretch, edges)]

    def convolved(self, g: _Payoff | _Between, e: arb) -> arb:
        """∫ g(e − ℓ) dμ(ℓ)."""
        total = sum((mass * g(e - loss) for mass, loss in self.atoms), arb(0))
        values = [e - kink for kink in g.kinks]
        is_payoff = isinstance(g, _Payoff)  # analytic on both sides, and 0 on one
        for stretch, panels in self.runs:
            roots = [[v for v in values if p.low < v < p.high] for p in panels]
            near = [
                any(r if is_payoff else roots[max(i - 1, 0) : i + 2]) for i, r in enumerate(roots)
            ]
            run: list[arb] = []
            for index, panel in enumerate(panels):
                if not near[index]:
                    if not is_payoff or panel.high > e:
                        pairs = zip(panel.weights, panel.losses, strict=True)
                        total += sum((w * g(e - loss) for w, loss in pairs), arb(0))
                    continue
                run = run or [panel.left]
                places = (_place(stretch, panel, value) for value in roots[index])
                run += sorted(places, key=arb.fmpq)
                if index + 1 == len(panels) or not near[index + 1]:
                    run.append(panel.right)
                    for a, b in itertools.pairwise(run):
                        if a < b:
                            total += self._between(stretch, g, e, a, b)
                    run = []
        return total.mid()

    def _between(self, stretch: Stretch, g: _Payoff | _Between, e: arb, a: arb, b: arb) -> arb:
        """Integrate between two places where the integrand may have kinks."""
        if not isinstance(g, _Payoff):
            rule = _tanh_sinh(*self._rule)
        elif stretch.values(((a + b) / 2).mid())[1] > e:
            rule = _from_both_ends(self._order, ctx.prec)
        else:
            return arb(0)
        total, width = arb(0), b - a
        for from_a, from_b, weight in rule:
            x = a + width * from_a if from_a < from_b else b - width * from_b
            density, loss = self._density(stretch, x.mid())
            value = weight * density * g(e - loss)
            total += value if value.is_finite() else 0
        return width * total


def _turn(loss: Function, left: arb, right: arb, losses: list[arb]) -> arb | None:
    """Return where the loss turns between two places, None if its values there are monotone."""
    centre, half = (left + right) / 2, (right - left) / 2
    places = [left, *(centre + half * root for root, _ in gauss(len(losses), ctx.prec)), right]
    values = [loss(left), *losses, loss(right)]
    known = [(x.mid(), v.mid()) for x, v in zip(places, values, strict=True) if v.is_finite()]
    known.sort(key=lambda pair: pair[0].fmpq())
    small = arb(2) ** (30 - ctx.prec)
    for (low, at_low), (_, at_middle), (high, at_high) in zip(
        known, known[1:], known[2:], strict=False
    ):
        rise, fall = at_middle - at_low, at_middle - at_high
        if not (rise * fall > 0 and abs(rise).min(abs(fall)) > small * (1 + abs(at_middle))):
            continue
        side, golden, ends = (1 if rise > 0 else -1), (arb(5).sqrt() - 1) / 2, [low, high]
        for _ in range(int(0.75 * ctx.prec)):  # half the digits are all that values tell
            step = golden * (ends[1] - ends[0])
            inner = (ends[1] - step).mid(), (ends[0] + step).mid()
            is_left = side * (loss(inner[0]) - loss(inner[1])).mid() > 0
            ends[is_left] = inner[is_left]
        return arb(((ends[0] + ends[1]) / 2).mid())
    return None


def _limits(stretch: Stretch, edges: Sequence[arb]) -> Iterator[arb]:
    """Yield the finite limits of the loss at both ends of a stretch, as far as they stand still."""
    for end, edge, side in zip(stretch.ends(), (edges[0], edges[-1]), (-1, 1), strict=True):
        if end is not None:
            value = stretch.values(end)[1]
            if value.is_finite():
                yield value.mid()
            continue
        far = [stretch.values(edge + side * arb(2) ** k)[1] for k in (_FAR, _FAR + 1)]
        if abs(far[0] - far[1]) < (1 + abs(far[1])) * arb(2) ** -_FAR:
            yield far[1].mid()


def _place(stretch: Stretch, panel: _Panel, value: arb) -> arb:
    """Return where the loss takes a value on a panel, by secants that keep a bracket."""
    a, b = panel.left, panel.right
    at_a, at_b = ((stretch.values(x)[1] - value).mid() for x in (a, b))
    small = (1 + abs(value)) * arb(2) ** (16 - ctx.prec)
    for _ in range(2 * ctx.prec):
        x = ((a * at_b - b * at_a) / (at_b - at_a)).mid()
        if not a.min(b) < x < a.max(b):
            x = ((a + b) / 2).mid()
        at_x = (stretch.values(x)[1] - value).mid()
        if abs(at_x) < small or not a.min(b) < x < a.max(b):
            return arb(x)
        if (at_x > 0) == (at_b > 0):
            at_a = at_a / 2  # the Illinois rule
        else:
            a, at_a = b, at_b
        b, at_b = x, at_x
    return b
