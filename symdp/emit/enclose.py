"""Enclose sums and integrals over unbounded ranges: a partial result plus a proved tail bound.

A sum of many values of a smooth function is its integral and what the ends add (Abel and Plana):
for f holomorphic on a ≤ Re z ≤ b, |Im z| ≤ Y, with a = m − ½ and b = M + ½, the residues of
f(z)/(e^{2πiz} − 1) at the integers give

    Σ_{k=m}^{M} f(k) = ∫_a^b f(x) dx + J(b) − J(a) + E,
    J(c) = i ∫_0^Y (f(c + iy) − f(c − iy))/(e^{2πy} + 1) dy,
    |E| ≤ ∫_a^b (|f(x + iY)| + |f(x − iY)|) dx/(e^{2πY} − 1)

[DLMF 2.10(i) with ends at integers]. A sum of a million terms then costs what an integral does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import acb, arb, ctx

from symdp.errors import AccuracyError, InputError

_MOST_CELLS = 1_000  # on which f is looked at: each takes some ten microseconds
_SPARE_BITS = 64  # carried: large logarithms cancel in masses
_LARGER = 2**16  # than |∫f| may be what bounds ∫|f|
_MANY_OCTAVES = 2**12  # times its near end is the far end of an integral in log |x|
_UNKNOWN = acb(arb.nan(), arb.nan())
_EVALUATIONS = 80_000  # of an integrand: less than a second


def smooth_sum(function: Callable[..., Any], first: int, last: int) -> arb | None:
    """Enclose Σ f(k), k = first … last, at `flint.ctx.prec`; None where f is not seen smooth."""
    bits = ctx.prec
    with ctx.workprec(bits + _SPARE_BITS):
        ball = _smooth_sum(function, first, last, arb(2) ** -bits)
    if ball is None:
        return None
    return +ball


def _smooth_sum(function: Callable[..., Any], first: int, last: int, small: arb) -> arb | None:
    low = arb(first) - 0.5
    high = arb(last) + 0.5
    height = ((_LARGER / small).log() / (2 * arb.pi())).ceil()
    inside = _integral_over_octaves(function, low, high, small)
    size = abs(inside.real).upper()
    if not (size.is_finite() and size > 0):
        return None
    bound = _bound_on_edge(function, low, high, height, size)
    if bound is None:
        return None
    turned = (2 * arb.pi() * height).exp() - 1
    on_edges = (2 * bound / turned).upper()
    total = inside.real + arb(0, on_edges)
    i = acb(0, 1)
    for end, sign in ((high, 1), (low, -1)):

        def weighed(y: acb, analytic: bool = False, end: arb = end) -> acb:
            above = function(end + i * y, analytic=analytic)
            below = function(end - i * y, analytic=analytic)
            falling = (-2 * arb.pi() * y).exp()  # e^{2πy} of a wide ball says nothing
            difference = above - below
            return acb(difference * falling / (1 + falling))

        across = _guarded_integral(weighed, arb(0), height, size * small, small)
        total -= sign * across.imag
    if total.is_finite():
        return total
    return None


def _integral_over_octaves(function: Callable[..., Any], low: arb, high: arb, relative: arb) -> acb:
    """Enclose an integral, in log |x| where it spans many octaves on one side of 0."""
    near, far = (low, high) if low > 0 else (-high, -low)
    if not (near > 0 and far > _MANY_OCTAVES * near):
        return _guarded_integral(function, low, high, arb(0), relative)
    sign = 1 if low > 0 else -1

    def moved(s: acb, analytic: bool = False) -> Any:
        size = s.exp()
        return function(sign * size, analytic=analytic) * size

    return _guarded_integral(moved, near.log(), far.log(), arb(0), relative)


def _guarded_integral(
    function: Callable[..., Any], low: arb, high: arb, absolute: arb, relative: arb
) -> acb:
    refusal: list[AccuracyError] = []

    def values(z: acb, analytic: bool = False) -> Any:
        try:
            if refusal:
                return _UNKNOWN
            return function(z, analytic=analytic)
        except AccuracyError as error:  # raised here, it would not stop Arb
            refusal.append(error)
            return _UNKNOWN

    integral = acb.integral(
        values,
        acb(low),
        acb(high),
        abs_tol=absolute,
        rel_tol=relative,
        eval_limit=_EVALUATIONS,
    )
    if refusal:
        raise refusal[0]
    return integral


def _bound_on_edge(
    function: Callable[..., Any], low: arb, high: arb, height: arb, size: arb
) -> arb | None:
    """Bound ∫|f(x ± iY)| dx where f is holomorphic on the whole rectangle, else return None."""
    total = arb(0)
    waiting = [(low, high)]
    strip = arb(0, height)
    for _ in range(_MOST_CELLS):
        if not waiting:
            return total
        left, right = waiting.pop()
        across = left.union(right)
        value = function(acb(across, strip), analytic=True)
        edge = function(acb(across, height), analytic=True)
        part = abs(acb(edge)).upper() * (right - left)
        if value.is_finite() and part < size * _LARGER / _MOST_CELLS:
            total = (total + part).upper()
        else:
            middle = ((left + right) / 2).mid()
            waiting += [(left, middle), (middle, right)]
    return None


_END = arb(2) ** 1024
_RATIOS = (4096.0, 256.0, 16.0, 4.0, 2.0, 1.25, 1.0625)
_MOST_TERMS = 400_000
_MANY_TERMS = 4096  # from which on an integral costs less than a sum
_FIRST_TERMS = 512  # of an endless sum: they tell its scale
_WIDE = arb(2) ** -40  # of a sum: next to a pole an integral may be known by far less
_SINGLE_TERMS = 24  # at each end: more than half a strip of the smooth sum is high
_MOST_EVALUATIONS = 400_000  # of an integrand
_MOST_SHELLS = 40_000

_Function = Callable[..., Any]


def between(lower: arb, upper: arb) -> arb:
    """Return a ball that covers [lower, upper]."""
    return arb(lower).union(arb(upper))


def shell_tail(
    function: _Function, start: arb, direction: int, tolerance: arb, *, per_integer: bool = False
) -> arb | None:
    """Bound the integral (or sum over integers) of |function| beyond `start`, away from 0.

    The tail is cut into shells start·[rᵏ, rᵏ⁺¹]; each contributes the supremum that ball
    arithmetic finds on it times its length (or its number of integers), which is a proof for
    every x up to 2¹⁰²⁴, so for every number that a double can hold.

    The tail is on the side of `direction`; `per_integer` asks for a sum over the integers.  None
    stands for no bound below the tolerance.
    """
    small = tolerance / 1024
    total = arb(0)
    x = arb(start)
    choice = 3
    for _ in range(_MOST_SHELLS):
        if x > _END:
            return total
        choice = max(choice - 1, 0)
        while True:
            far = x * _RATIOS[choice]
            size = far - x + 1 if per_integer else far - x
            bound = arb(abs(function(direction * between(x, far))).upper() * size).upper()
            if bound <= small or choice == len(_RATIOS) - 1:
                break
            choice += 1
        total = (total + bound).upper()
        if not total <= tolerance:
            return None
        x = far.upper()
    return None


def find_cut(
    function: _Function, start: arb, direction: int, tolerance: arb, *, per_integer: bool = False
) -> tuple[arb, arb]:
    """Return (cut, tail bound ≤ tolerance), doubling the cut from `start`."""
    cut = arb(start)
    while cut < _END:
        tail = shell_tail(function, cut, direction, tolerance, per_integer=per_integer)
        if tail is not None:
            return cut, tail
        cut = cut * 2 if cut < 2**20 else cut * 16
    raise AccuracyError(
        "no proved bound for the tail of a density or a sum was found; "
        "its terms must fall faster than 1/x"
    )


def enclose_sum(term: _Function, lower: arb | None, upper: arb | None) -> arb:
    """Enclose Σ term(k) over the integers between two ends, None where there is none.

    AccuracyError where too many terms would be needed that are not smooth enough for an integral.
    """
    if lower is not None and upper is not None:
        first = _integer(lower)
        last = _integer(upper)
        if first < 0 < last and last - first > _MANY_TERMS:  # kinks are at 0, if any
            return _partial(term, first, -1) + _partial(term, 0, last)
        return _partial(term, first, last)
    precision = ctx.prec
    if lower is None and upper is None:
        return enclose_sum(term, arb(0), None) + enclose_sum(term, None, arb(-1))
    is_upwards = upper is None
    direction = 1 if is_upwards else -1
    edge = lower if is_upwards else upper
    signed = term if is_upwards else lambda k, analytic=False: term(-k, analytic=analytic)
    first = direction * _integer(edge)
    # The scale of the sum is unknown, so the cut grows until the tail is negligible beside it.
    total = arb(0)
    summed = first
    cut = max(first, 0) + 16
    while cut < _END:
        if cut - first < _FIRST_TERMS or not total > 0:
            total += _partial(signed, summed, cut - 1)
            summed = cut
        scale = abs(total).lower() * arb(2) ** (-precision)
        if scale > 0:
            tail = shell_tail(signed, arb(cut), 1, scale, per_integer=True)
            if tail is not None:
                remaining = _partial(signed, summed, cut - 1)
                return total + remaining + between(-tail, tail)
        cut += max(cut // 2, 16)
    raise AccuracyError("no proved bound for the tail of a sum was found")


def enclose_integral(function: _Function, lower: arb | None, upper: arb | None) -> arb:
    """Enclose an integral of order 1 over an interval, unbounded where an end is None.

    It is wide, or not finite, where the work limit was hit.
    """
    tolerance = arb(2) ** (8 - ctx.prec)
    total = arb(0)
    begin = arb(1)
    ends = []
    for end in (lower, upper):
        if end is not None:
            begin = begin.max(abs(end).upper() + 1)
    for end, direction in ((lower, -1), (upper, 1)):
        if end is None:
            cut, tail = find_cut(function, begin, direction, tolerance)
            total += between(-tail, tail)
            ends.append(direction * cut)
        else:
            ends.append(end)
    first, last = ends
    inside = acb.integral(
        lambda x, analytic: function(x, analytic=analytic),
        acb(first),
        acb(last),
        abs_tol=tolerance,
        rel_tol=arb(2) ** (4 - ctx.prec),
        eval_limit=_MOST_EVALUATIONS,
    )
    return total + inside.real


def _integer(limit: arb | None) -> int:
    value = None if limit is None else limit.unique_fmpz()
    if value is None:
        raise InputError("the limits of a sum must be integers")
    return int(value)


def _partial(term: _Function, first: int, last: int) -> arb:
    count = last - first + 1
    if count > _MANY_TERMS:  # those at the ends one by one, next to which kinks may be
        near = first + _SINGLE_TERMS
        far = last - _SINGLE_TERMS
        inside = smooth_sum(term, near, far)
        if inside is not None and inside.rad() < _WIDE * (1 + abs(inside)):
            before = _partial(term, first, near - 1)
            after = _partial(term, far + 1, last)
            return before + inside + after
    if count > _MOST_TERMS:
        raise AccuracyError(
            f"a sum needs more than {_MOST_TERMS} terms; write its closed form in the density"
        )
    total = arb(0)
    for k in range(first, last + 1):
        total = total + term(arb(k))
    return total
