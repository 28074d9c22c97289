"""Mechanisms of which a Rényi curve alone is known: by a formula of the order, or by a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy as sp

from symdp.errors import InputError
from symdp.model.intake import Intake
from symdp.model.mechanism import Mechanism
from symdp.model.pair import Support
from symdp.model.renyi_curve import RenyiCurve, table
from symdp.model.sampling import Number, exact

__all__ = ["from_renyi", "from_renyi_points"]

_ORDERS = Support("interval", sp.Integer(1), sp.oo)
_TRIED = 12  # orders 1 + 2^k and 1 + 2^−k at which a formula without parameters is looked at


def from_renyi(
    divergence: sp.Expr,
    variable: sp.Symbol | str = "alpha",
    name: str = "renyi",
    *,
    parameters: Mapping[str, str] | None = None,
) -> Mechanism:
    """Return the step whose Rényi divergence at order α is at most a formula of α, for all α > 1.

    Parameters
    ----------
    divergence : D_α, a SymPy expression; symbols besides α are parameters
    variable : α
    parameters : name -> domain word, as for `Mechanism.additive`

    Raises
    ------
    InputError : no formula of α, or one that is seen to be negative or no number at some order.

    Examples
    --------
    >>> from_renyi(sp.Symbol("alpha") / 8, name="step")
    <Mechanism step()>
    """
    intake = Intake(variable, _ORDERS, parameters)
    curve = intake.read(divergence, "the divergence")
    if not curve.free_symbols - {intake.variable}:
        for power in range(-_TRIED, _TRIED + 1):
            order = 1 + sp.Integer(2) ** power
            value = curve.subs(intake.variable, order).evalf(30)
            if not (value == sp.oo or (value.is_comparable and value >= 0)):
                raise InputError(f"the divergence of order {order} must be 0 or more, not {value}")
    return Mechanism(name, intake.variable, _ORDERS, RenyiCurve(curve), intake.declared)


def from_renyi_points(
    points: Mapping[Number, Number] | Iterable[Iterable[Number]], name: str = "renyi"
) -> Mechanism:
    """Return the step whose Rényi divergence is bounded at some orders.

    Parameters
    ----------
    points : order α > 1 -> D_α, or pairs of them, orders rising, as accountants print them

    Raises
    ------
    InputError : no orders, one not above 1 or out of turn, a divergence that is negative or falls.

    Examples
    --------
    >>> from_renyi_points({2: "1/4", 4: 0.5})
    <Mechanism renyi()>
    """
    listed = points.items() if isinstance(points, Mapping) else points
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise InputError("a Rényi curve must be a table of orders and divergences")
    held: list[sp.Expr] = []
    for place, point in enumerate(listed, start=1):
        pair = list(point) if isinstance(point, Iterable) and not isinstance(point, str) else []
        if len(pair) != 2:
            raise InputError(f"point {place} must be (order, divergence), not {point!s:.40}")
        held += [exact(pair[0], "the order"), exact(pair[1], "the divergence")]
    alpha = sp.Symbol("alpha", real=True)
    return Mechanism(name, alpha, _ORDERS, RenyiCurve(table(held)), ())
