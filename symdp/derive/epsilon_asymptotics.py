"""ε at fixed δ for many steps, as a formula: nκ₁ + z√(nκ₂) + skewness + …, and its derivatives.

At ε = nκ₁ + ξ√(nκ₂) the Edgeworth series gives δ = Φ̄(ξ) + φ(ξ) Σ c_j(ξ) n^{−j/2}.  Solved for ξ
order by order around z = Φ̄⁻¹(δ) this is a Cornish-Fisher expansion whose first correction holds
one term more than that of a quantile: −1, for what e^ε Q(ℓ > ε) takes off P(ℓ > ε).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import sympy as sp

from symdp.derive.asymptotics import STEP, delta_coefficients, kappa
from symdp.derive.orders import cumulants_of
from symdp.derive.records import COUNT, EPSILON
from symdp.errors import AccuracyError, InputError
from symdp.expansion.edgeworth import X
from symdp.expansion.hermite import hermite
from symdp.model.sampling import exact

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

QUANTILE = sp.Symbol("z_delta", real=True)
_SETTLED = 0.05  # of ε: the next power of the rate adds no more
_MOST_DIGITS = 30  # of a normal quantile


@dataclass(frozen=True)
class EpsilonTerm:
    """One term of ε, the power of n that it is of, and what it stands for."""

    expression: sp.Expr
    power: sp.Rational
    meaning: str


@dataclass(frozen=True)
class EpsilonAsymptotics:
    """ε(n, δ) for many steps of one mechanism, an estimate.


    Attributes
    ----------
    terms
        In falling powers of n.  They hold n, z_delta = Φ̄⁻¹(δ), and κ₁, κ₂, … or what these are.
    error_power
        The error is of the order of n to this power.
    rate_order
        Where κ_j are series in a sampling rate q: the power of q up to which they go, else None.
    next_rate_term
        What the next power of q adds to nκ₁ + z√(nκ₂); 0 where there is no series.
    """

    terms: tuple[EpsilonTerm, ...]
    error_power: sp.Rational
    rate_order: int | None = None
    next_rate_term: sp.Expr = sp.S.Zero

    @property
    def epsilon(self) -> sp.Expr:
        """The sum of the terms."""
        return sp.Add(*(term.expression for term in self.terms))

    def sensitivity(self, symbol: sp.Symbol) -> sp.Expr:
        """Return dε/dn, dε/dσ, dε/dq, … at fixed δ, the derivative of the same formula."""
        return sp.Add(*(sp.diff(term.expression, symbol) for term in self.terms))

    @property
    def count(self) -> sp.Expr:
        """How many steps ε (the symbol `epsilon`) has room for: n from the terms down to n⁰.

        √n is the positive root of κ₁n + z√κ₂ √n + c = ε.
        """
        first, root, constant = (
            sp.Add(*(t.expression for t in self.terms if t.power == power)) / COUNT**power
            for power in (sp.S.One, sp.S.Half, sp.S.Zero)
        )
        a, b = (sp.expand(part) for part in (first, root))
        return ((-b + sp.sqrt(b**2 + 4 * a * (EPSILON - constant))) / (2 * a)) ** 2

    def at(
        self, count: int, delta: sp.Expr | float, values: Mapping[sp.Symbol, sp.Expr] | None = None
    ) -> sp.Expr:
        """Return ε in numbers."""
        known = dict(values or {}) | {COUNT: count, QUANTILE: normal_quantile(delta)}
        put, more = (part.subs(known) for part in (self.epsilon, self.next_rate_term))
        if put.free_symbols:
            names = ", ".join(sorted(str(symbol.name) for symbol in put.free_symbols))
            raise InputError(f"epsilon needs a value for {names}")
        if abs(more.evalf(15)) > _SETTLED * abs(put.evalf(15)):
            raise AccuracyError(
                f"the series in the rate has not settled: its power {(self.rate_order or 0) + 1} "
                f"adds {more.evalf(3)} to {put.evalf(3)}; take a higher rate_order, or "
                "compose(...).epsilon"
            )
        return put.evalf(15)


def normal_quantile(delta: sp.Expr | float) -> sp.Expr:
    """Return z with Φ̄(z) = δ, as a number."""
    value = exact(delta, "delta")
    if not 0 < value < 1:
        raise InputError(f"delta must lie between 0 and 1, not {delta!s:.30}")
    return (sp.sqrt(2) * sp.erfinv(1 - 2 * value)).evalf(_MOST_DIGITS, maxn=1000)


def in_cumulants(order: int, is_lattice: bool) -> EpsilonAsymptotics:
    """Return the expansion in n, z_delta and κ₁, κ₂, …."""
    if is_lattice and order:
        raise InputError(
            "from order 1 on the terms of a loss on a lattice oscillate with n; ask for order 0"
        )
    n, z = COUNT, QUANTILE
    terms = [
        EpsilonTerm(n * kappa(1), sp.S.One, "n times the mean loss"),
        EpsilonTerm(z * sp.sqrt(n * kappa(2)), sp.S.Half, "the normal quantile of the sum"),
    ]
    for j, shift in enumerate(_quantile_shifts(order), start=1):
        power = sp.Rational(1 - j, 2)
        term = sp.expand(shift.subs(X, z) * sp.sqrt(kappa(2)))
        if j == 1:
            plain, skew = term.as_independent(kappa(3), as_Add=True)
            terms += [
                EpsilonTerm(sp.factor(skew), power, "the skewness of the loss"),
                EpsilonTerm(plain, power, "what e^epsilon Q(loss > epsilon) takes off"),
            ]
        else:
            names = f"what kappa_3 to kappa_{j + 2} and the term above add together"
            terms.append(EpsilonTerm(sp.factor(term) * n**power, power, names))
    return EpsilonAsymptotics(tuple(terms), sp.Rational(-order, 2))


@cache
def _quantile_shifts(order: int) -> tuple[sp.Expr, ...]:
    """Return a_1, …, a_order with ξ = z + Σ a_k n^{−k/2}, polynomials in z (written x).

    Φ̄(ξ) + φ(ξ) Σ c_j(ξ) h^j = Φ̄(z) is expanded around z and divided by φ(z): the m-th derivative
    of Φ̄ is (−1)^m He_{m−1} φ, that of φc is φ (D − x)^m c.  Each a_k enters the order h^k as −a_k.
    """
    h, shift = STEP, sp.S.Zero
    coefficients, found = delta_coefficients(order), []
    for k in range(1, order + 1):
        total = sp.S.Zero
        for m in range(1, k + 1):
            total += (-1) ** m * hermite(m - 1, X) * shift**m / sp.factorial(m)
        for j, coefficient in enumerate(coefficients[:k], start=1):
            moved = coefficient
            for i in range(k - j + 1):
                total += h**j * shift**i * moved / sp.factorial(i)
                moved = sp.diff(moved, X) - X * moved
        term = sp.factor(sp.expand(total).coeff(h, k))
        found.append(term)
        shift += term * h**k
    return tuple(found)


def sampled_cumulants(
    highest: int,
    rate: sp.Expr,
    likelihood: Callable[[int], sp.Expr],
    is_reversed: bool,
    rate_order: int,
) -> tuple[sp.Expr, ...]:
    """Return κ₁, …, κ_highest of a Poisson-sampled loss as polynomials in the rate.

    With V = P/Q − 1 of the base pair and m_k = E_Q Vᵏ the loss is ℓ = log(1 + qV) under
    (1 + qV)Q, or −log(1 + qV) under Q where the pair is reversed; its moments are power series in
    q whose coefficients hold m_2, m_3, ….
    """
    v, y = sp.Symbol("v"), sp.Symbol("y")
    sign, weight = (-1, sp.S.One) if is_reversed else (1, 1 + v)
    log = sum(((-1) ** (i + 1) * v**i / i for i in range(1, rate_order + 1)), sp.S.Zero)
    central = [
        sp.expand(sum(sp.binomial(k, i) * (-1) ** (k - i) * likelihood(i) for i in range(k + 1)))
        for k in range(rate_order + 1)
    ]
    moments = [sp.S.One]
    for j in range(1, highest + 1):
        series = sp.Poly(sp.expand(weight * (sign * log) ** j), v)
        moments.append(
            sp.Add(*(c * y**k * central[k] for (k,), c in series.terms() if k <= rate_order))
        )

    def cut(series: sp.Expr) -> sp.Expr:
        terms = sp.Poly(sp.expand(series), y).terms()
        return sp.Add(*(c * y**k for (k,), c in terms if k <= rate_order))

    cumulants = cumulants_of(moments, cut)
    return tuple(sp.collect(c, y).subs(y, rate) for c in cumulants)
