"""What a derivation consists of beside the pieces of the support: atoms, cases and the CGF."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import sympy as sp

if TYPE_CHECKING:
    from symdp.interrupt import Clock
    from symdp.model.mechanism import Mechanism

EPSILON = sp.Symbol("epsilon", real=True)
COUNT = sp.Symbol("n", integer=True, positive=True)  # of steps


@dataclass(frozen=True)
class Atom:
    """One value that the loss takes with positive probability, and that probability under P."""

    loss: sp.Expr
    mass: sp.Expr


Comparison: TypeAlias = tuple[sp.Expr, str, sp.Expr]  # left, one of > = <, right


@dataclass(frozen=True)
class Case:
    """The range of the loss where parameters compare as the conditions say.

    Attributes
    ----------
    conditions
        Comparisons (left, ">", "=" or "<", right), all of which hold.
    ends
        Infimum and supremum of the finite loss; None for a `reason`.
    is_open
        Whether a further comparison would have to decide.
    """

    conditions: tuple[Comparison, ...]
    ends: tuple[sp.Expr, sp.Expr] | None
    reason: str = ""
    is_open: bool = False

    def __str__(self) -> str:
        return ", ".join(f"{left} {operator} {right}" for left, operator, right in self.conditions)

    def named(self, symbols: Mapping[str, sp.Symbol]) -> Case:
        """Return the case in the symbols of a mechanism, by their names."""

        def put(expression: sp.Expr) -> sp.Expr:
            return expression.xreplace(
                {s: symbols.get(str(s.name), s) for s in expression.free_symbols}
            )

        conditions = tuple((put(a), operator, put(b)) for a, operator, b in self.conditions)
        ends = None if self.ends is None else (put(self.ends[0]), put(self.ends[1]))
        return replace(self, conditions=conditions, ends=ends)


@dataclass(frozen=True)
class CGF:
    """The cumulant generating function K(t) = log ∫ P^{1+t} Q^{−t} of the loss under P.

    Attributes
    ----------
    tilt
        The symbol t.
    expression
        K(t) in closed form, None where `form` is "numeric".
    form
        "closed" only after the expression was found equal to a numerical integral.
    domain
        (t₋, t₊): K is finite between the two; None where it was not found.
    checked_at
        The tilts, real and complex, at which the check was made.
    parameters_checked
        The values that free parameters had in the check, one tuple of pairs for each tilt.
    reason
        Why there is no closed form; empty where there is one.
    removable
        Tilts at which the expression reads 0/0 and means its limit.
    """

    tilt: sp.Symbol
    expression: sp.Expr | None
    form: Literal["closed", "numeric"]
    domain: tuple[sp.Expr, sp.Expr] | None
    checked_at: tuple[sp.Expr, ...] = ()
    parameters_checked: tuple[tuple[tuple[str, sp.Expr], ...], ...] = ()
    reason: str = ""
    removable: tuple[sp.Expr, ...] = ()

    def _repr_latex_(self) -> str:
        tilt = sp.latex(self.tilt)
        if self.expression is None:
            return f"$K({tilt}) \\text{{ numerically: {self.reason}}}$"
        return f"$\\displaystyle K({tilt}) = {sp.latex(self.expression)}$"


class HasCGF(Protocol):
    """What can be expanded in cumulants: a mechanism, its CGF, and the time that is left.

    The CGF is that of the finite losses, e^{K(0)} = 1 − P(Q = 0) and e^{K(−1)} = 1 − Q(P = 0), so
    that of n steps an infinite loss adds 1 − (1 − P(Q = 0))ⁿ to what the CGF tells of δ.
    """

    @property
    def mechanism(self) -> Mechanism: ...  # noqa: D102

    @property
    def cgf(self) -> CGF: ...  # noqa: D102

    @property
    def moment_integral(self) -> sp.Expr: ...  # noqa: D102

    @property
    def clock(self) -> Clock: ...  # noqa: D102

    @property
    def mass_at_infinity(self) -> sp.Expr: ...  # noqa: D102

    @property
    def mass_at_minus_infinity(self) -> sp.Expr: ...  # noqa: D102

    @property
    def only_loss(self) -> sp.Expr | None: ...  # noqa: D102
