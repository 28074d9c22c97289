"""The mass of a density by two quadratures, where no proof comes: two numbers that must agree.

Both run over shells that grow geometrically away from the ends, the kinks or 0; one encloses the
integral of each shell (Arb halves it until its balls are narrow, so that no peak is missed), the
other adds Gauss–Legendre panels in doubles, over other shells. Beyond the last shell the partial
sums are extrapolated by Wynn's ε-algorithm, exact for tails that are sums of powers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise

import mpmath
import sympy as sp
from flint import arb, ctx

from symdp.balls.terms import ends_at_infinity, integral, is_finite_at
from symdp.derive.breakpoints import smooth_stretches
from symdp.derive.log_form import log_form
from symdp.emit import compile_arb, compile_numpy
from symdp.errors import AccuracyError
from symdp.interrupt import Deadline, worked

AGREEMENT = 1e-12  # to which two masses must agree with each other and with 1
_SECONDS = 6.0  # of work for each quadrature
_REACH = 2.0**44  # how far the shells go
_BITS = 80  # carried by the balls
_CUT = 2.0**-52  # of a cell
_EVALUATIONS = 300_000  # of an integrand: more than those seconds allow
_DEGREE = 4  # of mpmath's rule of Gauss and Legendre: 24 nodes of a panel
_HALVINGS = 40  # of a panel
_PANEL = 1e-16  # to which a panel agrees with its halves
_TOO_MUCH = 1e3  # of a mass: more will not come down to 1
_SUMMED = 14  # partial sums that are extrapolated
_MOST_INTEGERS = 2**17  # of a shell that is summed

Cell = Callable[[float, float], float]


def two_masses(
    density: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> tuple[float, float]:
    """Return the integral of a density (or its sum over integers) as two quadratures find it.

    Parameters
    ----------
    density, x, lower, upper
        The density, its variable and the ends of its support.

    Returns
    -------
    tuple of float
        NaN where a quadrature did not settle.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> first, second = two_masses(1 / (sp.pi * (1 + x**2)), x, -sp.oo, sp.oo)
    >>> abs(first - 1) < 1e-12, abs(second - 1) < 1e-12
    (True, True)
    """
    found = []
    for cells, start, ratio in ((_enclosed, 1.0, 2.0), (_added, 3.0, 3.0)):
        deadline, total = Deadline(_SECONDS, worked), []
        try:
            for expression, v, low, high in _parts(density, x, lower, upper):
                whole = bool(v.is_integer)
                cell = cells(*_with_its_sign(expression, v, low, high), deadline)
                middle = _middle(low, high, whole)
                if whole:
                    total.append(cell(middle, middle))
                for end in {low, high}:
                    edges = _edges(middle, end, start, 2.0 if whole else ratio)
                    is_near_end = v is not x and math.isinf(end)  # nothing is far out there
                    total.append(_side(cell, edges, math.isinf(end), whole, is_near_end))
            found.append(math.fsum(total))
        except (AccuracyError, OverflowError, ZeroDivisionError):
            found.append(math.nan)
    return found[0], found[1]


def _parts(
    density: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> Iterator[tuple[sp.Expr, sp.Symbol, float, float]]:
    """Yield smooth parts with their variables and ends, those at which one is infinite moved."""
    half = sp.S.Half if x.is_integer else sp.S.Zero
    for stretch in smooth_stretches((density,), x, lower - half, upper + half):
        (expression,) = stretch.expressions
        if expression == 0:
            continue
        low, high = stretch.lower, stretch.upper
        if x.is_integer:
            if not stretch.is_point:
                low, high = sp.floor(low) + 1, sp.ceiling(high) - 1
            yield expression, x, float(low), float(high)
        elif all(end.is_infinite or is_finite_at(expression, x, end) for end in (low, high)):
            yield expression, x, float(low), float(high)
        else:
            for part, s, first, last in ends_at_infinity(expression, x, low, high):
                yield part, s, float(first), float(last)


def _middle(low: float, high: float, whole: bool) -> float:
    if math.isinf(low) and math.isinf(high):
        return 0.0
    if math.isinf(low) or math.isinf(high):
        if low < 0.0 < high:
            return 0.0
        return low + 1.0 if math.isfinite(low) else high - 1.0
    middle = 0.5 * (low + high)
    return float(math.floor(middle)) if whole else middle


def _edges(middle: float, end: float, start: float, ratio: float) -> list[float]:
    """Return the edges of shells, from the middle outwards."""
    edges, step = [middle], start
    while step < min(_REACH, abs(end - middle)):
        edges.append(middle + math.copysign(step, end - middle))
        step *= ratio
    return [*edges, end] if math.isfinite(end) else edges


def _side(
    cell: Cell, edges: list[float], is_endless: bool, whole: bool, is_near_end: bool = False
) -> float:
    """Add up shells and what is beyond the last one; of integers, the middle is left out."""
    sums, total = [0.0], 0.0
    step = math.copysign(1.0, edges[-1] - edges[0]) if whole else 0.0
    for inner, outer in pairwise(edges):
        if inner == outer or (whole and is_endless and _is_over(sums, outer - inner)):
            break
        if is_near_end and _has_ended(sums):
            break
        try:
            total += cell(*sorted((inner + step, outer)))
        except AccuracyError:
            if len(sums) <= _SUMMED and not _has_ended(sums):
                raise
            break  # waves far out: what came before them tells the rest, or does not settle
        if not abs(total) < _TOO_MUCH:
            raise AccuracyError("the mass of a density is far above 1")
        sums.append(total)
    if len(sums) == 1 and is_endless:
        raise AccuracyError("next to an end so far out doubles have no room for shells")
    if not is_endless or _has_ended(sums):
        return total
    return _limit(sums[1:])


def _has_ended(sums: list[float]) -> bool:
    """Whether the last shell had next to nothing."""
    return len(sums) > 2 and abs(sums[-1] - sums[-2]) <= 1e-3 * AGREEMENT


def _is_over(sums: list[float], length: float) -> bool:
    """Whether the integers of a shell are too many, or shells before it had nothing."""
    least = 1e-6 * AGREEMENT
    empty = len(sums) > _SUMMED and abs(sums[-1] - sums[-4]) < least
    return abs(length) > _MOST_INTEGERS or empty


def _limit(sums: list[float]) -> float:
    """Extrapolate partial sums by the ε-algorithm, NaN where its last values differ.

    NaN, too, where shells hold ever more, or did so before the last one: the algorithm gives
    2, 4, 8, … a value as well.
    """
    steps = [abs(after - before) for before, after in pairwise(sums[-4:])]
    if len(steps) < 3 or max(steps[1], steps[2]) > steps[0]:
        return math.nan
    last, before = (_wynn(part) for part in (sums[-_SUMMED:], sums[-_SUMMED - 1 : -1]))
    return last if abs(last - before) < 0.1 * AGREEMENT else math.nan


def _wynn(sums: list[float]) -> float:
    with mpmath.workdps(40):
        previous, row = [mpmath.mpf(0)] * (len(sums) + 1), [mpmath.mpf(s) for s in sums]
        best, level = row[-1], 0
        while len(row) > 1:
            gaps = [b - a for a, b in pairwise(row)]
            if any(abs(gap) < 1e-17 * abs(best) for gap in gaps) and level % 2 == 0:
                return float(row[-1])
            previous, row = row, [p + 1 / gap for p, gap in zip(previous[1:], gaps, strict=False)]
            level += 1
            if level % 2 == 0:
                best = row[-1]
        return float(best)


def _enclosed(density: sp.Expr, x: sp.Symbol, deadline: Deadline) -> Cell:
    """Return what integrates a cell with proved error."""
    compiled = compile_arb(density, [x])

    def cell(low: float, high: float) -> float:
        with ctx.workprec(_BITS):
            if x.is_integer:
                total = arb(0)
                for k in range(int(low), int(high) + 1):
                    deadline.check()
                    total += compiled(arb(k))
            else:
                close, ends = arb(AGREEMENT) / 4096, (arb(low), arb(high))
                if not all(compiled(end).is_finite() for end in ends):  # as of (1 − cos x)/x² at 0
                    ctx.prec, cut = 4 * _BITS, (ends[1] - ends[0]) * _CUT
                    ends = ends[0] + cut, ends[1] - cut
                total = integral(compiled, *ends, close, _EVALUATIONS, deadline).real
            if not total.rad() < AGREEMENT / 256:
                raise AccuracyError("a cell of the mass could not be enclosed")
            return float(total.mid())

    return cell


def _added(density: sp.Expr, x: sp.Symbol, deadline: Deadline) -> Cell:
    """Return what integrates a cell by panels, halved until they agree with their halves."""
    compiled = _compiled(density, x)
    nodes, weights = _rule()

    def panel(low: float, high: float) -> float:
        deadline.check()
        half, middle = 0.5 * (high - low), 0.5 * (high + low)
        heights = compiled([middle + half * t for t in nodes])
        found = half * math.fsum(w * h for w, h in zip(weights, heights, strict=True))
        if not math.isfinite(found):
            raise AccuracyError("a density has no value in doubles")
        return found

    def settled(low: float, high: float, whole: float, depth: int) -> float:
        middle = 0.5 * (low + high)
        left, right = panel(low, middle), panel(middle, high)
        if abs(left + right - whole) <= _PANEL + 4e-16 * abs(whole) or depth == _HALVINGS:
            return left + right
        return settled(low, middle, left, depth + 1) + settled(middle, high, right, depth + 1)

    def cell(low: float, high: float) -> float:
        if x.is_integer:
            return math.fsum(compiled([float(k) for k in range(int(low), int(high) + 1)]))
        # Panels that agree by accident are not believed: a cell is cut into several at first.
        edges = [low + (high - low) * k / 8 for k in range(9)]
        return math.fsum(settled(a, b, panel(a, b), 0) for a, b in pairwise(edges) if a < b)

    return cell


def _with_its_sign(
    density: sp.Expr, x: sp.Symbol, low: float, high: float
) -> tuple[sp.Expr, sp.Symbol]:
    """Return a density in a variable that is known to be positive or negative, where it is."""
    if not (low >= 0 or high <= 0) or (0 in (low, high) and x.is_integer):
        return density, x
    signed = sp.Dummy(integer=x.is_integer, positive=low >= 0, negative=low < 0)
    return density.xreplace({x: signed}), signed


def _compiled(density: sp.Expr, x: sp.Symbol) -> Callable[[list[float]], list[float]]:
    """Return a density in doubles; Bessel functions, which overflow, by their logarithms."""
    if not density.has(sp.besseli, sp.besselk):
        compiled = compile_numpy(density, [x])
        return lambda places: compiled(places).tolist()
    form = log_form(density, x, sp.Integer(-1 if x.is_negative else 1))
    log = compile_numpy(form.to_expression(), [x])
    return lambda places: [math.exp(height) for height in log(places).tolist()]


@lru_cache(maxsize=1)
def _rule() -> tuple[list[float], list[float]]:
    """Return the nodes and weights of Gauss and Legendre on [−1, 1]."""
    pairs = mpmath.calculus.quadrature.GaussLegendre(mpmath.mp).calc_nodes(_DEGREE, 80)
    return [float(node) for node, _ in pairs], [float(weight) for _, weight in pairs]
