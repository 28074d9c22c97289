"""What δ and ε of many steps tend to, in cumulants, with corrections in powers of √n."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

import sympy as sp
from sympy.functions.elementary.hyperbolic import HyperbolicFunction

from symdp.derive.orders import cumulants_of
from symdp.derive.records import COUNT, EPSILON
from symdp.errors import AccuracyError, InputError
from symdp.expansion import (
    edgeworth_density_polynomials,
    edgeworth_polynomials,
    standardised_cumulant,
)
from symdp.expansion.edgeworth import X
from symdp.expansion.hermite import hermite
from symdp.model import tidy
from symdp.model.sampling import exact

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Regime = Literal["central", "fixed", "large"]

DEVIATION = sp.Symbol("xi", real=True)
LEVEL = sp.Symbol("level", real=True)
PLACE = sp.Symbol("t_star", real=True)
STEP = sp.Symbol("h", positive=True)
_LONG = 60  # operations up to which a term is simplified
_MOST_CUMULANTS = 12  # of a series that is written out
LATTICE = "a lattice loss has oscillating terms of this order"


@cache
def kappa(j: int) -> sp.Symbol:
    """Return the symbol of K⁽ʲ⁾(0), the j-th cumulant of one step under P."""
    if j < 3:
        return sp.Symbol(f"kappa_{j}", positive=True)
    return sp.Symbol(f"kappa_{j}", real=True)


@cache
def at_place(j: int) -> sp.Symbol:
    """Return the symbol of K⁽ʲ⁾(s), of one step at the tilt s of the regime."""
    if j == 2:
        return sp.Symbol(f"K_{j}", positive=True)
    return sp.Symbol(f"K_{j}", real=True)


@dataclass(frozen=True)
class Expansion:
    """One regime of ε as n grows.

    Attributes
    ----------
    regime
        "central": ε = nκ₁ + ξ√(nκ₂), where δ tends to a limit in (0, 1) [SPA Thm 9];
        "fixed": ε does not move, δ tends to 1;
        "large": ε = nλ (λ is `level`) with λ > κ₁, δ falls exponentially.
    epsilon
        ε as an expression of n.
    tilt
        The saddle point t₀ of [SPA (50)], up to an error of order n^tilt_order.
    tilt_order
    log_delta
        log δ, or log(1 − δ) in the fixed regime, up to an error of order n^log_order; None where
        there is no expansion.
    log_order
    condition
        The equation that defines the tilt s in the formulas; None where there is no s.
    reason
        Why an order is missing.
    """

    regime: Regime
    epsilon: sp.Expr
    tilt: sp.Expr
    tilt_order: sp.Rational
    log_delta: sp.Expr | None
    log_order: sp.Rational | None
    condition: sp.Equality | None = None
    reason: str = ""

    def put(self, values: Mapping[sp.Symbol, sp.Expr]) -> Expansion:
        """Return the expansion with values for its symbols, the tilt s last."""
        last_values = {PLACE: values[PLACE]} if PLACE in values else {}
        first_values = {symbol: value for symbol, value in values.items() if symbol != PLACE}

        def inner(expression: sp.Expr) -> sp.Expr:
            return expression.subs(first_values).subs(last_values)

        return replace(
            self,
            epsilon=inner(self.epsilon),
            tilt=inner(self.tilt),
            log_delta=None if self.log_delta is None else inner(self.log_delta),
            condition=None if last_values else self.condition,
        )


def expansions(order: int, is_lattice: bool = False) -> tuple[Expansion, ...]:
    """Return the expansions of t₀ and log δ in all regimes, in cumulant symbols."""
    return central(order, is_lattice), fixed(order, is_lattice), large(order, is_lattice)


def central(order: int, is_lattice: bool = False) -> Expansion:
    """Expand at ε = nκ₁ + ξ√(nκ₂): t₀ ≈ τ/√(nκ₂) with τ − 1/τ = ξ [SPA Prop 8], δ → Φ̄(ξ).

    With h = n^{−1/2} and g = h/√κ₂, δ = P(L > ε) − e^ε Q(L > ε): the first term is that of the
    Edgeworth series, the second ∫ e^{−s} f(ε + s) ds = Σ g^{i+1} D^i f(ξ) of its density f.
    """
    n = COUNT
    b = DEVIATION
    epsilon = n * kappa(1) + b * sp.sqrt(n * kappa(2))
    orders_known = 0 if is_lattice else order
    return Expansion(
        "central",
        epsilon,
        _central_tilt(order),
        -sp.Rational(order + 2, 2),
        _central_log(orders_known),
        -sp.Rational(orders_known + 1, 2),
        reason=LATTICE if is_lattice and order else "",
    )


@cache
def _central_tilt(order: int) -> sp.Expr:
    """Solve κ₂u + Σ κ_{j+2}h^j u^{j+1}/(j+1)! − ξ√κ₂ − 1/u − h/(1 + hu) = 0 for t₀ = hu."""
    h = STEP
    b = DEVIATION
    lead = sp.Symbol("u_0", positive=True)
    u: sp.Expr = lead
    parts = [lead * h]
    for k in range(1, order + 1):
        unknown = sp.Dummy("u")
        trial = u + unknown * h**k
        relative = (trial - lead) / lead
        series: sp.Expr = sp.S.Zero
        inverse: sp.Expr = sp.S.Zero
        for j in range(k + 1):
            series += kappa(j + 2) * h**j * trial ** (j + 1) / sp.factorial(j + 1)
            inverse += (-relative) ** j / lead
        pole = sum((-1) ** j * h ** (j + 1) * trial**j for j in range(k))
        difference = sp.expand(series - inverse - pole)
        equation = difference.coeff(h, k)
        slope = sp.diff(equation, unknown)
        at_zero = equation.subs(unknown, 0)
        term = sp.factor(-at_zero / slope)
        u += term * h**k
        parts.append(term * h ** (k + 1))
    root = (b / 2 + sp.sqrt(b**2 + 4) / 2) / sp.sqrt(kappa(2))
    terms = (term.subs(lead, root) for term in parts)
    return sp.Add(*terms).subs(h, 1 / sp.sqrt(COUNT))


@cache
def _central_log(order: int) -> sp.Expr:
    h = STEP
    b = DEVIATION
    phi = sp.exp(-(X**2) / 2) / sp.sqrt(2 * sp.pi)
    survival = sp.erfc(b / sp.sqrt(2)) / 2
    coefficients = delta_coefficients(order)
    ratio = [(phi * c).subs(X, b) / survival for c in coefficients]
    # log(1 + Σ r_j h^j) by the recurrence of the logarithm of a power series.
    logs: list[sp.Expr] = [sp.S.Zero]
    full = [sp.S.One, *ratio]
    for k in range(1, order + 1):
        lower = sum((j * logs[j] * full[k - j] for j in range(1, k)), sp.S.Zero)
        logs.append(full[k] - lower / k)
    total = sp.log(survival)
    for k in range(1, order + 1):
        total += logs[k] * h**k
    return total.subs(h, 1 / sp.sqrt(COUNT))


def delta_coefficients(order: int) -> list[sp.Expr]:
    """Return c_1, … with δ = Φ̄(x) + φ(x) Σ c_j h^j, polynomials in x and the cumulants."""
    h = STEP
    x = X
    g = h / sp.sqrt(kappa(2))
    values = {
        standardised_cumulant(j): kappa(j) / kappa(2) ** sp.Rational(j, 2)
        for j in range(3, order + 3)
    }
    tail = [p.subs(values) for p in edgeworth_polynomials(order)]
    density = [sp.S.One, *(r.subs(values) for r in edgeworth_density_polynomials(order))]
    total = sp.Add(*(p * h ** (j + 1) for j, p in enumerate(tail)))
    for k, part in enumerate(density):
        derivative = part
        for i in range(order - k):
            total -= g ** (i + 1) * h**k * derivative
            derivative = sp.diff(derivative, x) - x * derivative
    expanded = sp.expand(total)
    return [sp.factor(expanded.coeff(h, j)) for j in range(1, order + 1)]


@cache
def fixed(order: int, is_lattice: bool = False) -> Expansion:
    """Expand at fixed ε: t₀ = 1/(nκ₁) + …, and 1 − δ falls like e^{nK(s)} with K′(s) = 0.

    1 − δ is the integral of [SPA (48)] along a line left of the pole at 0; its saddle point lies
    in (−1, 0) and tends to s.
    """
    n = COUNT
    s = PLACE
    step = STEP
    t: sp.Expr = step / kappa(1)
    for k in range(2, order + 2):
        unknown = sp.Dummy("u")
        trial = t + unknown * step**k
        slope = sum(kappa(j + 1) * trial**j / sp.factorial(j) for j in range(k + 1))
        pole = trial * sum((-1) ** j * trial**j for j in range(k))
        # t(nK′(t) − ε) − 1 − t/(1 + t) = 0 with n = 1/h.
        equation = sp.expand(trial * (slope / step - EPSILON) - 1 - pole).coeff(step, k - 1)
        t += sp.factor(-equation.subs(unknown, 0) / sp.diff(equation, unknown)) * step**k
    return Expansion(
        "fixed",
        EPSILON,
        t.subs(step, 1 / n),
        -sp.Integer(order + 2),
        None if is_lattice else _saddle_log(EPSILON, order),
        None if is_lattice else -sp.Integer(min(order, 1) + 1),
        sp.Eq(sp.Derivative(sp.Function("K")(s), s), 0),
        LATTICE if is_lattice else "",
    )


@cache
def large(order: int, is_lattice: bool = False) -> Expansion:
    """Expand at ε = nλ, λ > κ₁: with K′(s) = λ, t₀ → s, log δ ≈ n(K(s) − λs) − ½ log n − …."""
    n = COUNT
    s = PLACE
    t: sp.Expr = s
    if order:
        t += (1 / s + 1 / (1 + s)) / (n * at_place(2))
    return Expansion(
        "large",
        n * LEVEL,
        t,
        -sp.Integer(min(order, 1) + 1),
        None if is_lattice else _saddle_log(n * LEVEL, order),
        None if is_lattice else -sp.Integer(min(order, 1) + 1),
        sp.Eq(sp.Derivative(sp.Function("K")(s), s), LEVEL),
        LATTICE if is_lattice else "",
    )


def _saddle_log(epsilon: sp.Expr, order: int) -> sp.Expr:
    """Return nK − εs − ½ log(2πnK₂) − log|s(1+s)| and, from order 1 on, the term of order 1/n.

    The factor e^{(…)} G(z) with the part of ε that does not grow moved into G: there G′/G and G″/G
    change, and the correction is K₄/8K₂² − 5K₃²/24K₂³ + G′K₃/2GK₂² − G″/2GK₂.
    """
    n = COUNT
    s = PLACE
    lead = (
        n * at_place(0)
        - epsilon * s
        - sp.log(2 * sp.pi * n * at_place(2)) / 2
        - sp.log(sp.Abs(s * (1 + s)))
    )
    if not order:
        return lead
    epsilon_part = sp.S.Zero if epsilon.has(n) else epsilon
    first = -epsilon_part - 1 / s - 1 / (1 + s)  # G′/G of e^{−εz}/(z(1+z))
    second = first**2 + 1 / s**2 + 1 / (1 + s) ** 2
    k2, k3, k4 = (at_place(j) for j in (2, 3, 4))
    correction = (
        k4 / (8 * k2**2) - 5 * k3**2 / (24 * k2**3) + first * k3 / (2 * k2**2) - second / (2 * k2)
    )
    return lead + correction / n


def substituted(
    expansion: Expansion,
    at_zero: Callable[[int], sp.Expr],
    derivative: Callable[[int], sp.Expr],
    tilt: sp.Symbol,
    place: sp.Expr | None,
) -> Expansion:
    """Put a closed-form CGF into an expansion."""
    formulas = [expansion.epsilon, expansion.tilt, expansion.log_delta or sp.S.Zero]
    used = set().union(*(formula.free_symbols for formula in formulas))
    values: dict[sp.Symbol, sp.Expr] = {}
    for j in range(_MOST_CUMULANTS):
        if j and kappa(j) in used:
            values[kappa(j)] = at_zero(j)
        if at_place(j) in used:
            values[at_place(j)] = derivative(j).subs(tilt, PLACE)
    if place is not None:
        values[PLACE] = place
    expanded = expansion.put(values)
    short = None if expanded.log_delta is None else _shorter(expanded.log_delta)
    return replace(expanded, tilt=_shorter(expanded.tilt), log_delta=short)


def _shorter(expression: sp.Expr) -> sp.Expr:
    """Shorten the terms one by one; a sum of logs and powers of n is not to be merged.

    Of hyperbolic functions SymPy's simplify makes longer ones, in seconds.
    """
    return sp.Add(
        *(
            term if sp.count_ops(term) >= _LONG else min((term, _rewritten(term)), key=sp.count_ops)
            for term in sp.Add.make_args(expression)
        )
    )


def _rewritten(term: sp.Expr) -> sp.Expr:
    if term.has(HyperbolicFunction):
        return sp.factor_terms(term)
    return tidy.simplify(term)


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
    def n(self) -> sp.Expr:
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
        self, n: int, delta: sp.Expr | float, values: Mapping[sp.Symbol, sp.Expr] | None = None
    ) -> sp.Expr:
        """Return ε in numbers."""
        numbers = dict(values or {}) | {COUNT: n, QUANTILE: normal_quantile(delta)}
        put, more = (part.subs(numbers) for part in (self.epsilon, self.next_rate_term))
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
    n = COUNT
    z = QUANTILE
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
    h = STEP
    shift = sp.S.Zero
    coefficients = delta_coefficients(order)
    shifts = []
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
        shifts.append(term)
        shift += term * h**k
    return tuple(shifts)


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
    v = sp.Symbol("v")
    y = sp.Symbol("y")
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
