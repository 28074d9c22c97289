"""The van der Corput constants V_k as formulas, where the variation of the density is exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from symdp.density.roots import known_roots
from symdp.density.signs import sign_of
from symdp.density.turning import slope_numerator
from symdp.derive.limits import limit_at
from symdp.derive.tails.sub_gaussian import normal_variance
from symdp.model import tidy

if TYPE_CHECKING:
    from symdp.density.records import Piece
    from symdp.derive.privacy_loss import PrivacyLoss

_LONG = 40  # operations of a loss, beyond which its derivatives take too long
DISCRETE = "the loss is discrete: |φ| does not decay"
_NUMERIC = "the places where the density of the loss turns have no formula"


def van_der_corput_formula(derivation: PrivacyLoss, order: int) -> tuple[sp.Expr | None, str]:
    """Return V_k with |φ_t(y) − atoms| ≤ V_k/|y|^k, or None and the reason.

    V_k = Σ_pieces [|g_{k−1}| at the ends + ∫ |g_{k−1}′| dx] with g_0 = w/|ℓ′|, g_{j+1} = g_j′/ℓ′
    and w = dP_t/dx.  A normal loss of variance v has V_k = 2v^{−k/2} Σ |He_{k−1}(z)| φ(z) over the
    zeros z of He_k; a density g_0 that turns at most once on each piece has V_1 = Σ 2 max g_0.
    """
    if derivation.pair.is_discrete:
        return None, DISCRETE
    variance = normal_variance(derivation)
    if variance is not None:
        return _of_normal(variance, order), ""
    moving = [
        piece
        for piece in derivation.pieces
        if piece.slope != "constant" and piece.log_p is not None and piece.log_q is not None
    ]
    if not moving:
        return sp.S.Zero, ""
    if order > 1:
        return None, "higher constants have a formula for a normal loss alone"
    turning = _turning_point(moving, derivation.variable)
    if turning is not None:
        return None, (
            f"the loss turns at {derivation.variable} = {turning}, where its density is infinite: "
            "no constant bounds |φ(y)| times |y|; the split bound holds at each y"
        )
    total: sp.Expr = sp.S.Zero
    for piece in moving:
        part = _unimodal(piece, derivation)
        if part is None:
            return None, _NUMERIC
        total += part
    moment = sp.exp(-derivation.cgf.expression) if derivation.cgf.expression is not None else None
    if moment is None:
        moment = sp.exp(-sp.Function("K")(derivation.cgf.tilt))
    return total * moment, ""


def _of_normal(variance: sp.Expr, order: int) -> sp.Expr:
    from symdp.expansion import hermite

    z = sp.Symbol("z", real=True)
    zeros = sp.roots(sp.Poly(hermite(order, z), z))
    density = sp.exp(-(z**2) / 2) / sp.sqrt(2 * sp.pi)
    height = sp.Abs(hermite(order - 1, z)) * density
    total = 2 * sp.Add(*(height.subs(z, zero) for zero in zeros))
    return tidy.simplify(total / sp.sqrt(variance) ** order)


def _turning_point(moving: list[Piece], x: sp.Symbol) -> sp.Expr | None:
    """Return an inner end at which the slope of the loss vanishes."""
    for piece in moving:
        for end, from_left in ((piece.lower, False), (piece.upper, True)):
            if not end.is_infinite and _vanishes(sp.diff(piece.loss, x), x, end, from_left):
                return end
    return None


def _vanishes(slope: sp.Expr, x: sp.Symbol, end: sp.Expr, from_left: bool) -> bool:
    """Whether a slope vanishes at an end; where nothing tells, it may."""
    limit: sp.Expr | None = slope.subs(x, end)
    if limit is None or limit.has(sp.nan, sp.zoo):
        limit = limit_at(slope, x, end, from_left)
    if limit is None or limit.has(sp.nan, sp.zoo):
        return True
    if limit.is_infinite:
        return False
    if limit.free_symbols:
        return sign_of(limit) == 0 or tidy.simplify(limit) == 0
    size = abs(limit.evalf(60, maxn=400))
    return not size.is_comparable or bool(size < sp.Float(10) ** -30)


def _unimodal(piece: Piece, derivation: PrivacyLoss) -> sp.Expr | None:
    """Return twice the largest M(t)·g_0 where g_0 turns at most once, None if unknown."""
    x = derivation.variable
    tilt = derivation.cgf.tilt
    assert piece.log_p is not None
    if sp.count_ops(piece.loss) > _LONG:
        return None
    slope = sp.diff(piece.loss, x)
    log_slope = sp.expand_log(sp.log(slope if piece.slope == "increasing" else -slope), force=True)
    height = sp.expand(piece.log_p + tilt * piece.loss) - log_slope
    turning = slope_numerator(height, x)
    places = known_roots(turning, x, piece.lower, piece.upper)
    if places is None:
        return None
    ends = [
        limit_at(height, x, end, from_left)
        for end, from_left in ((piece.lower, False), (piece.upper, True))
    ]
    if any(end is None or (end is not -sp.oo and end.has(sp.oo, -sp.oo)) for end in ends):
        return None
    values = [sp.exp(end) for end in ends if end is not None]
    if not places:
        return 2 * sp.Max(*values)
    if len(places) > 1 or any(end is not -sp.oo for end in ends):
        return None
    # Between two ends where it vanishes, the only stationary point of a density is its mode.
    return 2 * sp.exp(tidy.simplify(height.subs(x, places[0])))
