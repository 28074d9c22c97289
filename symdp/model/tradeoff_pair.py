r"""Pairs of a step that is known by its trade-off function or by its privacy profile.

*Trade-off function* f: no test of size α misses with a probability below f(α). With Q uniform on
[0, 1], P of density −f′ and the mass 1 − f(0) at infinity, the tests [0, α] miss with exactly f(α):
the pair is f where f is convex, and below f otherwise [Dong, Roth, Su 2019, Proposition 2.2].
In s = −log α the laws are e^{−s} and the derivative of f(e^{−s}), which tames a steep start of f.

*Privacy profile*: δ as a function of y = e^ε is convex, falls from 1 at y = 0 with a slope of −1 or
more, and under Q the ratio P/Q has the law δ″(y) [Gopi, Lee, Wutschitz 2021, Theorem 3.3].

Tables of points: `symdp.model.curve_tables`.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from symdp.errors import InputError
from symdp.model.mechanism import Mechanism

__all__ = ["from_profile", "from_trade_off"]

_PLACES = 64  # where a formula is tried against the rules of a trade-off function
_SLACK = sp.Float("1e-30", 30)


def from_trade_off(
    f: sp.Expr,
    variable: sp.Symbol,
    name: str = "trade_off",
    *,
    parameters: Mapping[str, str] | None = None,
) -> Mechanism:
    """Return the mechanism whose trade-off function is a formula.

    Parameters
    ----------
    f : the least miss rate at false alarm rate α, for 0 ≤ α ≤ 1; other symbols are parameters
    variable : α
    parameters : name -> domain word, as for `Mechanism.additive`

    Raises
    ------
    InputError : f(1) is not 0, or f is found to rise, to be concave, or to lie above 1 − α.

    Examples
    --------
    >>> a = sp.Symbol("a")
    >>> from_trade_off((1 - sp.sqrt(a))**2, a).source.Q
    exp(-a_s)
    """
    alpha, curve = _read(f, variable, "trade-off function", parameters)
    ends = [sp.simplify(curve.subs(alpha, end)) for end in (0, 1)]
    if ends[1] != 0:
        raise InputError(f"a trade-off function is 0 at α = 1, not {ends[1]}")
    if not curve.free_symbols - {alpha}:
        _check_formula(curve, alpha)
    s = alpha
    while s.name in {symbol.name for symbol in curve.free_symbols}:
        s = sp.Symbol(f"{s.name}_s", real=True)
    moved = sp.powdenest(sp.expand(curve.subs(alpha, sp.exp(-s))), force=True)
    P, Q = sp.simplify(sp.diff(moved, s)), sp.exp(-s)
    if ends[0] == 1:
        return Mechanism.from_pair(P, Q, s, (0, sp.oo), name, parameters=parameters)
    left = s < 0
    P, Q = sp.Piecewise((1 - ends[0], left), (P, True)), sp.Piecewise((0, left), (Q, True))
    return Mechanism.from_pair(P, Q, s, (-1, sp.oo), name, parameters=parameters)


def _read(
    formula: object, variable: object, what: str, parameters: Mapping[str, str] | None
) -> tuple[sp.Symbol, sp.Expr]:
    """Return the variable as a real symbol, and the formula in it."""
    if not isinstance(variable, sp.Symbol):
        raise InputError(f"the variable of a {what} must be a SymPy symbol, not {variable!r:.40}")
    if str(variable.name) in (parameters or {}):
        raise InputError(f"'{variable}' is both the variable of the {what} and a parameter")
    if not isinstance(formula, sp.Expr | int):
        raise InputError(f"a {what} must be a SymPy expression of {variable}, not {formula!r:.40}")
    symbol = sp.Symbol(str(variable.name), real=True)
    return symbol, sp.sympify(formula, strict=True).xreplace({variable: symbol})


def from_profile(
    delta: sp.Expr,
    variable: sp.Symbol,
    support: object,
    name: str = "profile",
    *,
    parameters: Mapping[str, str] | None = None,
) -> Mechanism:
    """Return the mechanism whose privacy profile is a formula.

    Parameters
    ----------
    delta : δ(ε) of one direction on the range of the loss, without atoms
    variable : ε
    support : (least, most) loss, where δ must come down to 0
    parameters : name -> domain word, as for `Mechanism.additive`

    Raises
    ------
    InputError : δ is not 0 at the largest loss.

    Examples
    --------
    >>> e = sp.Symbol("e")
    >>> from_profile(1 / (1 + sp.exp(e)), e, (-sp.oo, sp.oo))
    <Mechanism profile()>
    """
    epsilon, curve = _read(delta, variable, "privacy profile", parameters)
    made = Mechanism.from_pair(curve, curve, epsilon, support, name, parameters=parameters)
    last = sp.simplify(sp.limit(curve, epsilon, made.support.upper, "-"))
    if last != 0:
        raise InputError(f"a profile must come down to 0 at its largest loss, not to {last}")
    P = sp.simplify(sp.diff(curve, epsilon, 2) - sp.diff(curve, epsilon))
    Q = sp.exp(-epsilon) * P
    return Mechanism.from_pair(P, Q, epsilon, support, name, parameters=parameters)


def _check_formula(curve: sp.Expr, alpha: sp.Symbol) -> None:
    """Raise InputError at the first place where a formula breaks a rule, if one is found."""
    bend = sp.diff(curve, alpha, 2)
    slope = sp.diff(curve, alpha)
    for step in range(1, _PLACES):
        at = sp.Rational(step, _PLACES)
        for what, rule, wrong in (
            (curve - 1 + alpha, "lies above 1 - α", 1),
            (slope, "rises", 1),
            (bend, "is not convex", -1),
        ):
            value = what.subs(alpha, at).evalf(30)
            if not value.is_comparable:
                raise InputError(f"the trade-off function has no real value near α = {float(at)}")
            if wrong * value > _SLACK:
                raise InputError(f"the trade-off function {rule} at α = {float(at)}")
