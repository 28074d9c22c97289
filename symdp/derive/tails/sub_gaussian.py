"""Global sub-Gaussian constants as formulas, each with the theorem that proves it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import sympy as sp

from symdp.derive.signs import sign_of
from symdp.derive.tails.slopes import concavity, largest_slope

if TYPE_CHECKING:
    from symdp.derive.derivation import Derivation


def sub_gaussian_square(derivation: Derivation, under: str) -> tuple[sp.Expr | None, str]:
    """Return s² with log E e^{u(L − EL)} ≤ s²u²/2 for every real u, or None and the reason.

    Three theorems are tried: a CGF of degree 2 is that of a normal loss, s² = K″; a loss of width
    τ has s² = τ²/4 (Hoeffding's lemma); and a loss with |ℓ′| ≤ Λ of a variable whose density f has
    (log f)″ ≤ −κ is a Λ/√κ-Lipschitz function of a standard normal variable, so s² = Λ²/κ.

    Parameters
    ----------
    derivation : Derivation
    under : {"P", "Q"}
        The law of the variable.

    Examples
    --------
    >>> import symdp
    >>> from symdp.derive import derive
    >>> q = symdp.mechanisms.gaussian.subsample("poisson", 0.01)
    >>> sub_gaussian_square(derive(q), "Q")
    (sigma**(-2), '')
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
    return None, (
        "the loss is unbounded, and its variable's density is not shown to be strongly log-concave "
        "with a loss of bounded slope; use the constant on an interval of tilts"
    )


def normal_variance(derivation: Derivation) -> sp.Expr | None:
    """Return K″ where the CGF has degree 2, so that the loss is normal; else None."""
    cgf = derivation.cgf
    if cgf.expression is None or not cgf.expression.is_polynomial(cgf.tilt):
        return None
    variance = sp.factor_terms(derivation.cumulant(2))
    flat = cgf.tilt in variance.free_symbols or sign_of(variance) != 1
    return None if flat else variance


def loss_width(derivation: Derivation) -> sp.Expr | None:
    """Return τ = sup ℓ − inf ℓ, ∞ allowed, None where the range was not found."""
    if derivation.loss_range is None:
        return None
    low, high = derivation.loss_range
    return sp.logcombine(sp.expand(high - low), force=True)


def _lipschitz_square(derivation: Derivation, under: str) -> sp.Expr | None:
    pieces, x = derivation.pieces, derivation.variable
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
