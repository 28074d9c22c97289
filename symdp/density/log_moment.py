"""K of an exponential family at complex z: a formula whose branches are those of one function.

e^K is analytic between the ends of K's domain, but a formula of K takes principal values. A
logarithm or a root of what is linear in z, and real for real z, has its cut beyond the domain.
What else has a cut is crossed at a few places: e^K has to be the same on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp
from flint import acb, arb, ctx

from symdp.emit import compile_arb
from symdp.errors import InputError
from symdp.tolerances import LONG_BITS, SAME

_LEVELS = (0.3, 2.1, 17.0, 340.0)  # of −w, at which a cut is crossed
_ASIDE = 1e-25  # of w: how far from the cut


def continued(log_moment: sp.Expr, z: sp.Symbol) -> sp.Expr:
    """Return K as a formula that holds at complex z; InputError where its branch is not known."""
    logs = log_moment.atoms(sp.log)
    formula = log_moment.xreplace({log: _over_linear_factors(log, z) for log in logs})
    value = compile_arb(formula, [z])
    with ctx.workprec(LONG_BITS):
        for w in _with_branch_cuts(formula, z):
            for point, aside in _crossings(w, z):
                left = value(point + aside)
                right = value(point - aside)
                gap = (left - right).exp() - 1
                if not abs(gap) < SAME:
                    raise InputError(
                        f"its log-partition function has a cut where {sp.sstr(w):.60} is negative, "
                        "as at complex z: write a logarithm of a product as a sum of logarithms"
                    )
    return formula


def _over_linear_factors(log: sp.Expr, z: sp.Symbol) -> sp.Expr:
    """Return the logarithm of a product of real linear factors as a sum."""
    w = sp.expand(log.args[0])
    if not w.is_polynomial(z) or sp.degree(w, z) < 2:
        return log
    _, factors = sp.factor_list(w, z)
    total = sp.log(w.xreplace({z: sp.S.Zero}))
    for factor, times in factors:
        if sp.degree(factor, z) > 2:
            return log
        roots = sp.roots(factor, z)
        if not roots or not all(root.is_real for root in roots):
            return log
        for root, multiplicity in roots.items():
            total += times * multiplicity * sp.log(1 - z / root)
    return total


def _with_branch_cuts(formula: sp.Expr, z: sp.Symbol) -> Iterator[sp.Expr]:
    """Yield what has a cut where it is negative, but for what is linear in z.

    A logarithm that stands in K a whole number of times leaves e^K the same on both sides.
    """
    logarithm = sp.Dummy()
    inner = {power.base for power in formula.atoms(sp.Pow) if not power.exp.is_Integer}
    for log in formula.atoms(sp.log, sp.loggamma):
        if not log.has(z):
            continue
        times = sp.diff(formula.xreplace({log: logarithm}), logarithm)
        if not times.is_Integer:
            inner.add(log.args[0])
    for w in sorted(inner, key=sp.default_sort_key):
        is_line = w.is_polynomial(z) and sp.degree(w, z) == 1
        if w.has(z) and not is_line:
            yield w


def _crossings(w: sp.Expr, z: sp.Symbol) -> Iterator[tuple[acb, acb]]:
    """Yield places where w is negative, and a little way from them across its cut."""
    if not w.is_polynomial(z):
        raise InputError(
            f"its log-partition function has a logarithm or a root of {sp.sstr(w):.60}, whose "
            "branch at complex z is not known; give the two laws as a pair where there is one"
        )
    slope = compile_arb(sp.diff(w, z), [z])
    for level in _LEVELS:
        for root in sp.Poly(w + sp.Rational(str(level)), z).nroots(n=60, maxsteps=200):
            real, imag = (arb(str(part)) for part in root.as_real_imag())
            point = acb(real.mid(), imag.mid())
            yield point, acb(0, _ASIDE) / slope(point)
