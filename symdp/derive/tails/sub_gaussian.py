"""Global sub-Gaussian constants as formulas, each with the theorem that proves it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

import sympy as sp

from symdp.density.signs import compare, sign_of
from symdp.derive.series import cumulant

if TYPE_CHECKING:
    from symdp.derive.privacy_loss import PrivacyLoss

Range = tuple[sp.Expr, sp.Expr]


def slope_range(expression: sp.Expr, x: sp.Symbol) -> Range | None:
    """Return numbers between which the derivative lies for every real x, None where not found.

    A sum has the sum of the ranges; log Σ cᵢe^{aᵢ} with cᵢ ≥ 0 has a weighted mean of the aᵢ′,
    so what holds all of their ranges.
    """
    if x not in expression.free_symbols:
        return sp.S.Zero, sp.S.Zero
    if expression.is_polynomial(x):
        slope = sp.expand(sp.diff(expression, x))
        if x in slope.free_symbols:
            return None
        return (slope, slope)
    if isinstance(expression, sp.Add):
        parts = [slope_range(term, x) for term in expression.args]
        ranges = [part for part in parts if part is not None]
        if len(ranges) < len(parts):
            return None
        return sp.Add(*(low for low, _ in ranges)), sp.Add(*(high for _, high in ranges))
    if isinstance(expression, sp.Mul):
        factor, moving = expression.as_independent(x, as_Add=False)
        part = None if moving == expression else slope_range(moving, x)
        sign = sign_of(factor)
        if part is None or sign is None:
            return None
        ends = (factor * part[0], factor * part[1])
        if sign >= 0:
            return ends
        return (ends[1], ends[0])
    if isinstance(expression, sp.log):
        return _of_log(sp.expand(expression.args[0], power_exp=False), x)
    return None


def _of_log(argument: sp.Expr, x: sp.Symbol) -> Range | None:
    ends: list[Range] = []
    for term in sp.Add.make_args(argument):
        coefficient, moving = term.as_independent(x, as_Add=False)
        if not (coefficient.is_nonnegative or sign_of(coefficient) in (0, 1)):
            return None
        exponent = sp.S.Zero
        for factor in sp.Mul.make_args(moving):
            if not isinstance(factor, sp.exp) and factor != 1:
                return None
            exponent += factor.args[0] if factor != 1 else 0
        part = slope_range(sp.expand(exponent), x)
        if part is None:
            return None
        ends.append(part)
    low, high = ends[0]
    for other in ends[1:]:
        if (order := compare(other[0], low)) is None:
            return None
        low = other[0] if order < 0 else low
        if (order := compare(other[1], high)) is None:
            return None
        high = other[1] if order > 0 else high
    return low, high


def largest_slope(losses: Iterable[sp.Expr], x: sp.Symbol) -> sp.Expr | None:
    """Return a bound of |ℓ′| over all pieces of a loss, None where unknown.

    Only of a loss that is continuous across its pieces this is a Lipschitz constant.
    """
    largest: sp.Expr = sp.S.Zero
    for loss in losses:
        slopes = slope_range(loss, x)
        if slopes is None:
            return None
        for end in slopes:
            sign = sign_of(end)
            if sign is None:
                return None
            size = end if sign >= 0 else -end
            order = compare(size, largest)
            if order is None:
                return None
            largest = size if order > 0 else largest
    return largest


def concavity(log_density: sp.Expr, x: sp.Symbol) -> sp.Expr | None:
    """Return a κ > 0 with (log f)″ ≤ −κ everywhere, None where none shows from the structure."""
    kappa: sp.Expr = sp.S.Zero
    for term in sp.Add.make_args(sp.expand(log_density)):
        bend = sp.expand(-sp.diff(term, x, 2))
        if x not in bend.free_symbols:
            kappa += bend
        elif not (bend.is_nonnegative or sp.factor_terms(bend).is_nonnegative):
            return None
    kappa = sp.factor_terms(kappa)
    if sign_of(kappa) == 1:
        return kappa
    return None


def sub_gaussian_square(derivation: PrivacyLoss, under: str) -> tuple[sp.Expr | None, str]:
    """Return s² with log E e^{u(L − EL)} ≤ s²u²/2 for every real u, or None and the reason.

    Three theorems are tried: a CGF of degree 2 is that of a normal loss, s² = K″; a loss of width
    τ has s² = τ²/4 (Hoeffding's lemma); and a loss with |ℓ′| ≤ Λ of a variable whose density f has
    (log f)″ ≤ −κ is a Λ/√κ-Lipschitz function of a standard normal variable, so s² = Λ²/κ.
    """
    variance = normal_variance(derivation)
    if variance is not None:
        return variance, ""
    width = loss_width(derivation)
    if width is not None and not width.is_infinite:
        return sp.factor_terms(width**2 / 4), ""
    square = _lipschitz_square(derivation, under)
    if square is not None:
        return square, ""
    what = "the range of the loss was not found" if width is None else "the loss is unbounded"
    return None, (
        f"{what}, and its variable's density is not shown to be strongly log-concave "
        "with a loss of bounded slope; use the constant on an interval of tilts"
    )


def normal_variance(derivation: PrivacyLoss) -> sp.Expr | None:
    """Return K″ where the CGF has degree 2, so that the loss is normal; else None."""
    cgf = derivation.cgf
    if cgf.expression is None or not cgf.expression.is_polynomial(cgf.tilt):
        return None
    variance = sp.factor_terms(cumulant(derivation, 2))
    flat = cgf.tilt in variance.free_symbols or sign_of(variance) != 1
    if flat:
        return None
    return variance


def loss_width(derivation: PrivacyLoss) -> sp.Expr | None:
    """Return τ = sup ℓ − inf ℓ, ∞ allowed, None where the range was not found."""
    if derivation.loss_range is None:
        return None
    low, high = derivation.loss_range
    # SymPy keeps ∞ − log(1 − q), and ∞·sign(√j) of a whole j ≥ 0.
    if low.has(sp.oo, -sp.oo) or high.has(sp.oo, -sp.oo):
        return sp.oo
    return sp.logcombine(sp.expand(high - low), force=True)


def _lipschitz_square(derivation: PrivacyLoss, under: str) -> sp.Expr | None:
    pieces = derivation.pieces
    x = derivation.variable
    if not pieces or x.is_integer or any(piece.loss.is_infinite for piece in pieces):
        return None
    densities = [piece.log_p if under == "P" else piece.log_q for piece in pieces]
    if len({(piece.loss, density) for piece, density in zip(pieces, densities, strict=True)}) > 1:
        return None  # several formulas: kinks would have to be shown concave as well
    if any(left.upper != right.lower for left, right in pairwise(pieces)):
        return None  # a hole in the support: no Lipschitz image of a normal variable
    slope = largest_slope([piece.loss for piece in pieces], x)
    kappa = None if densities[0] is None else concavity(densities[0], x)
    if slope is None or kappa is None:
        return None
    return sp.factor_terms(slope**2 / kappa)
