"""The check that every density passes: non-negative, and of mass one, made one if rounded."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import sympy as sp
from flint import arb, ctx

from symdp.balls.mass import (
    MassCheck,
    enclose_mass,
    enclose_normalizer,
    is_proved,
    two_masses,
    with_numbers,
)
from symdp.density.breakpoints import smooth_stretches
from symdp.density.gammas import COUNTING, are_positive
from symdp.emit import compile_arb, compile_numpy
from symdp.emit.arb import constant_ball
from symdp.emit.exact import constant_value
from symdp.emit.mass import MassIntegral, MassSum
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import Deadline, worked
from symdp.model.mechanism import a_mechanism
from symdp.tolerances import BITS, MASS_TOLERANCE, SHORT_TIME, SUMS_ROUNDED

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.model.pair import Pair

_MOST_CELLS = 1_000  # on which a sign is looked at: some ten milliseconds
_PLAIN = 1e-4  # what six digits show of a distance from one
_ACCURACY = arb(2) ** -90  # to which a mass must be 1; formulas that are off are off by far more


def check_densities(mechanism: Mechanism) -> bool:
    """Check that P and Q of one unsampled step are non-negative and integrate to one.

    The integral is enclosed in ball arithmetic: a range that carries all but 1e-27 of the mass,
    and a bound on the tails that holds for every x a double can represent.

    Parameters
    ----------
    mechanism
        With all parameters bound. For additive noise only the noise itself is checked: P is Q
        shifted.

    Returns
    -------
    bool
        False where a mass is proved to differ from 1, by no more than a rounded constant explains.

    Raises
    ------
    InputError
        If a density is negative somewhere, or its mass is proved to differ from 1 by over 1e-9.
    AccuracyError
        If the mass cannot be enclosed that closely.

    Examples
    --------
    >>> from symdp.model.mechanism import Mechanism
    >>> x = sp.Symbol("x", real=True)
    >>> check_densities(Mechanism.additive(0.3989422804 * sp.exp(-(x**2) / 2), x))
    False
    >>> check_densities(Mechanism.additive(sp.exp(-abs(x)) / 3, x, name="half-hearted"))
    Traceback (most recent call last):
    ...
    symdp.errors.InputError: the density of half-hearted integrates to 0.666667, not 1; ...
    """
    return checked_masses(a_mechanism(mechanism), for_proof=True).is_one


def checked_masses(mechanism: Mechanism, for_proof: bool = False) -> MassCheck:
    """Check densities as `check_densities` does; two quadratures that agree stand for a proof.

    They must agree to 1e-12 with each other and with 1; nothing but a proof will do for a proof.
    """
    pair = replace(mechanism, sampling=None, relation=None).pair()
    laws = {f"the density of {mechanism.name}": pair.components[0]}
    if hasattr(mechanism.source, "Q"):
        q, p = pair.components[:2]
        laws = {f"Q of {mechanism.name}": q, f"P of {mechanism.name}": p}
    seconds = math.inf if for_proof else SHORT_TIME
    verb = "sums" if pair.is_discrete else "integrates"
    if pair.atoms:
        verb += ", with its atoms,"
    masses_are_one = True
    is_proved = True
    for index, (of, component) in enumerate(laws.items()):
        if pair.support.kind == "points":
            masses_are_one &= _judge(of, _total(of, component), "sums")
            continue
        ends = (pair.support.lower, pair.support.upper)
        atoms = _total(of, [masses[index] for _, masses in pair.atoms])
        _check_normaliser(of, component)
        _check_sign(of, component, pair.variable, ends)
        try:
            with ctx.workprec(BITS):
                mass = _mass(pair, component, seconds) + atoms
                masses_are_one &= _judge(of, mass, verb)
        except AccuracyError as error:
            if for_proof:
                raise InputError(f"{of} could not be shown to have mass 1: {error}") from None
            normaliser = _normaliser(component, pair.variable, *ends)
            if normaliser is None or atoms != 0:  # else two quadratures have found it already
                quadratures = two_masses(with_numbers(component), pair.variable, *ends)
                _agree(of, *(mass + float(atoms.mid()) for mass in quadratures))
            is_proved = False
    return MassCheck(masses_are_one, is_proved)


def _check_normaliser(of: str, density: sp.Expr) -> None:
    """Raise an error where what a density is divided by is not positive and finite."""
    for mass in density.atoms(MassIntegral, MassSum):
        try:
            value = constant_value(mass, BITS)
            if value > 0:
                continue
            reason = f"its mass is {float(value):.6g}"
            if not value > 0:
                reason += ", as of a function that is negative somewhere; a density nowhere is"
        except AccuracyError:
            reason = (
                "its mass could not be enclosed: it is infinite where a density grows or falls too "
                "slowly; where it is finite, divide by it, to 13 digits, and leave normalize out"
            )
        raise InputError(f"{of} cannot be normalized: {reason}")


def _agree(of: str, first: float, second: float) -> None:
    """Raise an error where two quadratures do not both find the mass 1."""
    if max(abs(first - second), abs(first - 1), abs(second - 1)) <= SUMS_ROUNDED:
        return
    if not (math.isfinite(first) or math.isfinite(second)):
        reason = "as where it is infinite, or spread over very many integers"
        raise InputError(f"{of} could not be shown to have mass 1: no sum of it settled, {reason}")
    masses = [f"{mass:.12g}" if math.isfinite(mass) else "no limit" for mass in (first, second)]
    what = f"one quadrature found {masses[0]}, another {masses[1]}"
    remedy = ""
    if "no limit" not in masses:
        remedy = "; divide it by its mass, or set normalize = true"
    raise InputError(f"{of} could not be shown to have mass 1: {what}{remedy}")


def _mass(pair: Pair, density: sp.Expr, seconds: float) -> arb:
    """Enclose the mass of a density."""
    ends = pair.support.lower, pair.support.upper
    normaliser = _normaliser(density, pair.variable, *ends)
    if normaliser is not None:
        if is_proved(normaliser):
            return arb(1)
        raise AccuracyError("what it is divided by was found by two quadratures, not by a proof")
    k = pair.variable
    bessel = sp.Wild("z", exclude=[k])
    factor, bessels = density.as_independent(k, as_Add=False)
    match = bessels.match(sp.besseli(sp.Abs(k), bessel)) if k.is_integer else None
    if match and ends == (-sp.oo, sp.oo):  # the generating function: their sum is e^z
        return constant_ball(factor * sp.exp(match[bessel]), BITS).real
    return enclose_mass(density, pair.variable, *ends, _ACCURACY, Deadline(seconds, worked))


def _normaliser(density: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> arb | None:
    """Return the integral that a density is a function divided by, if positive and known."""
    if isinstance(density, sp.Piecewise):  # as where P and Q live on different intervals
        stretches = smooth_stretches((density,), x, lower, upper)
        with_mass = [stretch for stretch in stretches if stretch.expressions[0] != 0]
        if len(with_mass) != 1:
            return None
        (stretch,) = with_mass
        (density,) = stretch.expressions
        lower = stretch.lower
        upper = stretch.upper
    for integral in density.atoms(MassIntegral):
        ((moved, *ends),) = integral.limits
        same = density * integral == integral.function.xreplace({moved: x})
        if same and tuple(ends) == (lower, upper):
            value = enclose_normalizer(integral)
            is_positive = value is not None and value > 0
            if is_positive:
                return value
            return None
    return None


def _judge(of: str, mass: arb, verb: str) -> bool:
    """Tell whether a mass may be one; raise an error where it is none of a density."""
    if not mass.is_finite():
        raise AccuracyError(
            "no bound on its integral was found, as where a density grows too fast or falls too "
            "slowly"
        )
    distance = abs(mass - 1)
    if distance < MASS_TOLERANCE:
        return bool(mass.contains(1))
    if distance > MASS_TOLERANCE / 2:
        places = 6 if distance > _PLAIN else 12
        raise InputError(
            f"{of} {verb} to {float(mass.mid()):.{places}g}, not 1; divide it by that constant, "
            "or set normalize = true"
        )
    raise AccuracyError(f"the mass of {of} could be enclosed in {mass.str(5)} only")


def _total(of: str, masses: object) -> arb:
    """Add up a finite list of probabilities."""
    values = [sp.sympify(mass, strict=True) for mass in masses]  # type: ignore[attr-defined]
    with ctx.workprec(BITS):
        for value in values:
            if _is_negative(value):
                raise InputError(f"{of} has the negative probability {value}")
        return constant_ball(sp.Add(*values), BITS).real


def _is_negative(value: sp.Expr) -> bool:
    """Return whether a probability is shown to be negative."""
    if isinstance(value, sp.Rational):
        return bool(value.p < 0)
    return bool(value.is_negative) or bool(constant_ball(value, BITS).real < 0)


def _check_sign(of: str, density: sp.Expr, x: sp.Symbol, ends: tuple[sp.Expr, sp.Expr]) -> None:
    """Look for a negative value where the form of the density does not exclude one."""
    for stretch in smooth_stretches((density,), x, *ends):
        (expression,) = stretch.expressions
        low = stretch.lower
        high = stretch.upper
        if _is_plainly_positive(expression, x, low, high):
            continue
        point = _negative_place(expression, x, float(low), float(high))
        if point is not None:
            raise InputError(f"{of} is negative at {x} = {point:.6g}: no density is")


def _is_plainly_positive(expression: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> bool:
    """Return whether a form shows a density to be non-negative, I and K of what is positive too."""
    for counted in expression.atoms(*COUNTING):
        if are_positive(counted, x, lower, upper):
            expression = expression.xreplace({counted: sp.Dummy(positive=True)})
    size = sp.Dummy(positive=True, integer=x.is_integer)
    if lower.is_nonnegative:
        expression = expression.subs(x, size)
    elif upper.is_nonpositive:
        expression = expression.subs(x, -size)
    for bessel in expression.atoms(sp.besseli, sp.besselk):
        order, argument = bessel.args
        if order.is_real and argument.is_positive:
            expression = expression.xreplace({bessel: sp.Dummy(positive=True)})
    return bool(expression.is_nonnegative)


def _negative_place(expression: sp.Expr, x: sp.Symbol, low: float, high: float) -> float | None:
    """Return a place at which a density is negative, seen on a grid or in halved balls, or None."""
    function = compile_arb(expression, [x])

    def is_negative(point: float) -> bool:
        with ctx.workprec(200):
            return bool(function(arb(point)) < 0)

    places = list(_spread_places(low, high, bool(x.is_integer)))
    heights = compile_numpy(expression, [x])(places).tolist()
    for point, height in zip(places, heights, strict=True):
        if height < 0 and is_negative(point):
            return point
    edges = {end for end in (low, high) if math.isfinite(end)}
    for k in range(-10, 11):
        size = 2.0**k
        edges.update(edge for edge in (-size, size) if low < edge < high)
    waiting = deque(pairwise(sorted(edges)))
    for _ in range(_MOST_CELLS):
        if not waiting:
            break
        left, right = waiting.popleft()
        middle = 0.5 * (left + right)
        if x.is_integer:
            middle = float(math.floor(middle))
        with ctx.workprec(64):
            on_cell = function(arb(left).union(arb(right)))
        if on_cell >= 0 or not left < middle < right:
            continue
        if is_negative(middle):
            return middle
        waiting += [(left, middle), (middle, right)]
    return None


def _spread_places(low: float, high: float, whole: bool) -> Iterator[float]:
    """Yield places spread over a stretch evenly and geometrically from its ends and from zero."""
    offsets = [2.0 ** (k / 4) for k in range(-80, 121)]
    centres = [c for c in (low, high, 0.0) if math.isfinite(c)]
    if math.isfinite(low) and math.isfinite(high):
        centres.append(0.5 * (low + high))
        offsets += [(high - low) * k / 400 for k in range(1, 400)]
    else:
        offsets += [k / 16 for k in range(1, 800)]
    for centre in centres:
        for point in (centre, *(centre + o for o in offsets), *(centre - o for o in offsets)):
            if whole:
                rounded = float(round(point))
                is_inside = low <= rounded <= high
            else:
                rounded = point
                is_inside = low < point < high
            if is_inside:
                yield rounded
