"""An integrand in normal form with its range: what the rules of the table read."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from symdp.derive.normal_form import LogForm


@dataclass(frozen=True)
class Integrand:
    """exp(form) on (lower, upper); a sum over integers, ends included, where `is_sum`."""

    form: LogForm
    lower: sp.Expr
    upper: sp.Expr
    is_sum: bool

    @property
    def x(self) -> sp.Symbol:
        """The variable of integration."""
        return self.form.variable

    @property
    def is_line(self) -> bool:
        """Whether the range is the whole line."""
        return bool(self.lower is -sp.oo and self.upper is sp.oo)

    def powers(self) -> dict[int, sp.Expr] | None:
        """Coefficients of x, x², … where the smooth part is a polynomial without logs."""
        if self.form.moving_logs:
            return None
        return self.smooth_powers()

    def smooth_powers(self) -> dict[int, sp.Expr] | None:
        """Coefficients of x, x², … where the smooth part is a polynomial."""
        powers: dict[int, sp.Expr] = {}
        for monomial, coefficient in self.form.smooth.items():
            base, power = monomial.as_base_exp()
            if base != self.x or not (power.is_Integer and power > 0):
                return None
            powers[int(power)] = coefficient
        return powers
