"""Recognise log Σ cᵢ exp(aᵢ), the shape of a mixture's loss, so that targets evaluate it well."""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy.core.function import ArgumentIndexError

_Term = tuple[sp.Expr, sp.Expr]
_NEAR_ONE = sp.Rational(1, 2), sp.Integer(2)  # constants c whose log(c + u) loses a small u


class LogSumExp(sp.Function):  # type: ignore[misc]
    """log(c₁ exp(a₁) + c₂ exp(a₂) + …), with the arguments c₁, a₁, c₂, a₂, … in turn.

    Targets evaluate it around its largest term, or, where the coefficients add up to 1, as
    log1p(Σ cᵢ expm1(aᵢ)), which keeps relative accuracy where all aᵢ are small.  Off the real
    line it is the holomorphic branch that is real there.
    """

    @classmethod
    def eval(cls, *args: sp.Expr) -> sp.Expr | None:
        """Refuse an odd number of arguments; never evaluate further."""
        if not args or len(args) % 2:
            raise TypeError("LogSumExp takes pairs: coefficient, exponent, …")
        return None

    @property
    def terms(self) -> tuple[_Term, ...]:
        """The pairs (cᵢ, aᵢ)."""
        return tuple(zip(self.args[::2], self.args[1::2], strict=True))

    @property
    def is_unit(self) -> bool:
        """Whether Σ cᵢ is identically 1."""
        total = sp.Add(*self.args[::2])
        if total.is_Rational:
            return bool(total == 1)
        return bool(total == 1 or sp.expand(total) == 1)

    def _eval_rewrite_as_log(self, *args: sp.Expr, **_hints: object) -> sp.Expr:
        return sp.log(sp.Add(*(c * sp.exp(a) for c, a in self.terms)))


class LogOnePlus(sp.Function):  # type: ignore[misc]
    """log(1 + u) without cancellation at small u."""

    nargs = 1


class LogRatio(sp.Function):  # type: ignore[misc]
    """log(a/b) of two polynomials, with the arguments a − b (expanded), a, b.

    Where the leading terms of a and b agree, log1p((a − b)/b) keeps relative accuracy at large x.
    """

    nargs = 3


class ExpMinusOne(sp.Function):  # type: ignore[misc]
    """exp(u) − 1 without cancellation at small u."""

    nargs = 1

    def _eval_rewrite_as_exp(self, argument: sp.Expr, **_hints: object) -> sp.Expr:
        return sp.exp(argument) - 1


class LogGamma(sp.Function):  # type: ignore[misc]
    """log Γ(x) for x > 0; SymPy's own loggamma turns back into log(gamma(x)) for whole x."""

    nargs = 1


class LogBesselK(sp.Function):  # type: ignore[misc]
    """log K_ν(x) for x > 0, beyond the range in which K_ν(x) itself is a double."""

    nargs = 2


class hyperu(sp.Function):  # type: ignore[misc]  # noqa: N801  (mpmath's and SciPy's name)
    """Tricomi's U(a, b, z) = ∫₀^∞ y^{a−1} (1 + y)^{b−a−1} e^{−zy} dy/Γ(a)."""

    nargs = 3

    def fdiff(self, argindex: int = 3) -> sp.Expr:
        """U′ = −a U(a + 1, b + 1, z); by a and b it has no formula."""
        if argindex < 3:
            raise ArgumentIndexError(self, argindex)
        a, b, z = self.args
        return -a * hyperu(a + 1, b + 1, z)

    def _latex(self, printer: Any) -> str:
        return rf"U\left({', '.join(map(printer.doprint, self.args))}\right)"


class LogBesselI(sp.Function):  # type: ignore[misc]
    """log I_ν(x) for ν ≥ 0, x > 0, beyond the range in which I_ν(x) itself is a double."""

    nargs = 2


class LogErfc(sp.Function):  # type: ignore[misc]
    """log erfc z, beyond the range in which erfc z itself is a double."""

    nargs = 1


class LogErfDifference(sp.Function):  # type: ignore[misc]
    """log(erf(m + h) − erf(m − h)), where both values of erf may be 1 in doubles."""

    nargs = 2


def recognise_log_sum_exp(expression: sp.Expr) -> sp.Expr:
    """Return `expression` with every log Σ cᵢ exp(aᵢ) as a LogSumExp node.

    Positive powers b^e and cosh count as exponentials, logs of positive products are expanded,
    log(1 + u), exp(u) − 1 and log(a/b) become nodes that do not cancel, and logs of gamma and
    Bessel functions become nodes that do not overflow.  Values on the real line do not change.

    >>> x = sp.Symbol("x", real=True)
    >>> recognise_log_sum_exp(sp.log(sp.Rational(3, 4) + sp.exp(2 * x) / 4))
    LogSumExp(3/4, 0, 1/4, 2*x)
    >>> recognise_log_sum_exp(sp.log(1 + x**2) + sp.exp(x) - 1)
    ExpMinusOne(x) + LogOnePlus(x**2)
    """
    return _Recogniser().visit(expression)


class _Recogniser:
    """One bottom-up walk; equal subexpressions are visited once."""

    def __init__(self) -> None:
        self._seen: dict[sp.Basic, sp.Basic] = {}

    def visit(self, node: sp.Basic) -> sp.Basic:
        if not node.args or isinstance(node, sp.Sum | sp.Integral):
            return node
        if node not in self._seen:
            self._seen[node] = self._rewrite(node)
        return self._seen[node]

    def _rewrite(self, node: sp.Basic) -> sp.Basic:
        if isinstance(node, sp.log):
            return self._log(node)
        arguments = [self.visit(argument) for argument in node.args]
        if any(new is not old for new, old in zip(arguments, node.args, strict=True)):
            node = node.func(*arguments)
        if isinstance(node, sp.Add):
            return _expm1(node)
        return node

    def _log(self, node: sp.log) -> sp.Basic:
        argument = node.args[0]
        if isinstance(argument, sp.Mul | sp.Pow) and not argument.is_number:
            ratio = _log_of_close_quotient(argument)
            if ratio is not None:
                return ratio
            expanded = _expand_product(node)
            if expanded != node:
                return self.visit(expanded)
        special = _log_special(argument)
        if special is not None:
            return self.visit(special)
        terms = _exponential_terms(argument)
        if terms is not None and len(terms) == 1:
            coefficient, exponent = terms[0]
            if coefficient.is_positive:
                return self.visit(sp.log(coefficient) + exponent)
        elif terms is not None:
            parts: list[sp.Basic] = []
            for coefficient, exponent in terms:
                parts += [self.visit(coefficient), self.visit(exponent)]
            return LogSumExp(*parts)
        if isinstance(argument, sp.Add):
            constant, others = argument.as_coeff_Add()
            (least, most) = _NEAR_ONE
            if least <= constant <= most:
                # Expanded, a product of polynomials would cancel next to its zeros.
                relative = sp.Add(*(term / constant for term in sp.Add.make_args(others)))
                return LogOnePlus(self.visit(relative)) + sp.log(constant)
        return sp.log(self.visit(argument))


def _expm1(total: sp.Add) -> sp.Expr:
    """Turn c·exp(a) − c inside a sum into c·ExpMinusOne(a)."""
    constant, _ = total.as_coeff_Add()
    if constant.is_zero:
        return total
    for term in total.args:
        coefficient, exponential = term.as_coeff_Mul()
        if coefficient == -constant and isinstance(exponential, sp.exp):
            remaining = total - term - constant
            return remaining + coefficient * ExpMinusOne(exponential.args[0])
    return total


def _log_of_close_quotient(argument: sp.Expr) -> LogRatio | None:
    """Log of a quotient of polynomials whose leading terms agree, else None."""
    numerator, denominator = sp.fraction(argument)
    symbols = tuple(sorted(argument.free_symbols, key=str))
    if not (numerator.is_polynomial(*symbols) and denominator.is_polynomial(*symbols)):
        return None
    are_positive = numerator.is_positive and denominator.is_positive
    if not are_positive or not denominator.free_symbols:
        return None
    difference = sp.expand(numerator - denominator)
    for symbol in denominator.free_symbols:
        if not sp.degree(difference, symbol) < sp.degree(denominator, symbol):
            return None
    return LogRatio(difference, numerator, denominator)


def _log_of_powers(powers: list[sp.Pow]) -> list[sp.Expr]:
    """Logs of positive powers, with b^e c^(−e) taken together as e·log(b/c)."""
    logs: list[sp.Expr] = []
    waiting = list(powers)
    while waiting:
        first = waiting.pop(0)
        partner = next((other for other in waiting if other.exp == -first.exp), None)
        if partner is None:
            logs.append(first.exp * sp.log(first.base))
        else:
            waiting.remove(partner)
            logs.append(first.exp * sp.log(first.base / partner.base))
    return logs


def _is_positive_sum(base: sp.Expr) -> bool:
    """Whether this is a sum with exponentials of terms that are positive where they are real."""
    if not isinstance(base, sp.Add):
        return False
    for term in base.args:
        for factor in sp.Mul.make_args(term):
            if not isinstance(factor, sp.exp | sp.erfc) and not factor.is_positive:
                return False
    return bool(base.has(sp.exp))


def _is_positive_bessel(factor: sp.Expr) -> bool:
    if not isinstance(factor, sp.besselk | sp.besseli):
        return False
    order, argument = factor.args
    if isinstance(factor, sp.besselk):
        order_fits = order.is_real
    else:
        order_fits = order.is_nonnegative or order.is_integer
    return bool(order_fits and argument.is_positive)


def _log_of_erf_tail(factor: sp.Expr) -> sp.Expr | None:
    """Log erfc z, or log(c ± c erf z) = log c + log erfc ∓z, c > 0; None for anything else.

    SymPy writes erfc(−z) as 2 − erfc z.
    """
    if isinstance(factor, sp.erfc):
        return LogErfc(factor.args[0])
    constant, erf_term = factor.as_coeff_Add()
    scale, function = erf_term.as_coeff_Mul()
    if isinstance(function, sp.erfc) and scale < 0 and constant == -2 * scale:
        return LogErfc(-function.args[0]) + sp.log(-scale)
    if constant.is_zero or constant != abs(scale) or not isinstance(function, sp.erf):
        return None
    side = -1 if scale > 0 else 1
    return LogErfc(function.args[0] * side) + sp.log(constant)


def _is_erf_mass(factor: sp.Expr) -> bool:
    """Whether this is erfc z, c ± c erf z, or a difference of two erf that is positive."""
    if not factor.has(sp.erf, sp.erfc):
        return False
    if _log_of_erf_tail(factor) is not None:
        return True
    if not isinstance(factor, sp.Add):
        return False
    difference = erf_difference(factor)
    return difference is not None and bool(difference[2].is_positive)


def _expand_product(node: sp.log) -> sp.Expr:
    """Split the logarithm of a product at its positive factors, Bessel functions included."""
    product = node.args[0]
    bessel = [part for part in sp.Mul.make_args(product) if _is_positive_bessel(part)]
    if bessel and product not in bessel:
        others = product / sp.Mul(*bessel)
        logs = [sp.log(part) for part in bessel]
        return sp.Add(sp.log(others), *logs)
    return sp.expand_log(node, deep=False)


def _log_special(argument: sp.Expr) -> sp.Expr | None:
    """Log of a gamma or Bessel function or their kin through nodes of its own, else None."""
    lg = LogGamma
    if _is_positive_bessel(argument):
        order, z = argument.args
        if isinstance(argument, sp.besselk):
            return LogBesselK(order, z)
        if not order.is_nonnegative:  # I of a whole order is that of its opposite
            order = sp.Abs(order)
        return LogBesselI(order, z)
    if isinstance(argument, sp.gamma):
        (z,) = argument.args
        if _is_whole_or_positive(z):
            return lg(z)
    if isinstance(argument, sp.factorial):
        z = argument.args[0] + 1
        if _is_whole_or_positive(z):
            return lg(z)
    if isinstance(argument, sp.beta):
        a, b = argument.args[:2]
        if a.is_positive and b.is_positive:
            return lg(a) + lg(b) - lg(a + b)
    if argument.has(sp.erf, sp.erfc):
        tail = _log_of_erf_tail(argument)
        if tail is not None:
            return tail
    if isinstance(argument, sp.Add):
        conjugate = _root_and_rest(argument)
        if conjugate is not None:
            square, odd_part = conjugate
            return sp.log(square) / 2 + sp.asinh(odd_part / sp.sqrt(square))
    if isinstance(argument, sp.Add) and len(argument.args) == 2:
        difference = erf_difference(argument)
        if difference is None:
            return None
        scale, middle, half = difference
        return LogErfDifference(middle, half) + sp.log(scale)
    if isinstance(argument, sp.binomial):
        n, k = argument.args
        if all(_is_whole_or_positive(part) for part in (n + 1, k + 1, n - k + 1)):
            return lg(n + 1) - lg(k + 1) - lg(n - k + 1)
    return None


def _is_whole_or_positive(argument: sp.Expr) -> bool:
    """Whether Γ is positive wherever it is finite."""
    return bool(argument.is_positive or argument.is_integer)


def _root_and_rest(total: sp.Expr) -> tuple[sp.Expr, sp.Expr] | None:
    """Return k > 0 and r of √(k + r²) + r, which cancels for r < 0; None for anything else.

    >>> x = sp.Symbol("x", real=True)
    >>> _root_and_rest(1 - x + sp.sqrt((x - 1) ** 2 + 3))
    (3, 1 - x)
    """
    roots = [t for t in total.args if t.is_Pow and t.exp == sp.S.Half]
    if len(roots) != 1:
        return None
    others = total - roots[0]
    if not others.is_polynomial():
        return None
    square = sp.expand(roots[0].base - others**2)
    if square.is_number and square.is_positive:
        return (square, others)
    return None


def erf_difference(difference: sp.Expr) -> tuple[sp.Expr, sp.Expr, sp.Expr] | None:
    """Return c, m and h of c·erf(m + h) − c·erf(m − h), c > 0, None for anything else.

    >>> x = sp.Symbol("x", real=True)
    >>> erf_difference(sp.erf(x + 2) / 4 - sp.erf(x) / 4)
    (1/4, x + 1, 1)
    """
    ends: dict[bool, sp.Expr] = {}
    scales: set[sp.Expr] = set()
    for term in difference.args:
        scale, function = term.as_coeff_Mul()
        if not isinstance(function, sp.erf | sp.erfc):
            return None
        is_upper = bool(scale > 0) == isinstance(function, sp.erf)
        ends[is_upper] = function.args[0]
        scales.add(abs(scale))
    if len(ends) < 2 or len(scales) > 1:
        return None
    upper = ends[True]
    lower = ends[False]
    middle, half = (sp.expand(span / 2) for span in (upper + lower, upper - lower))
    return scales.pop(), middle, half


def _exponential_terms(argument: sp.Expr) -> list[_Term] | None:
    """Split a sum into (cᵢ, aᵢ) with equal exponents merged; None where nothing is exponential."""
    terms = sp.Add.make_args(argument)
    if isinstance(argument, sp.Mul):  # the only sum among its factors multiplied out
        sums = [factor for factor in argument.args if isinstance(factor, sp.Add)]
        if len(sums) == 1:
            (only,) = sums
            outside = sp.Mul(*(factor for factor in argument.args if factor is not only))
            products = [outside * term for term in only.args]
            terms = sp.Add.make_args(sp.Add(*products))
    merged: dict[sp.Expr, list[sp.Expr]] = {}
    for term in terms:
        for coefficient, exponent in _exponential_pairs(term):
            merged.setdefault(exponent, []).append(coefficient)
    if set(merged) == {sp.S.Zero}:
        return None
    return [(sp.Add(*coefficients), exponent) for exponent, coefficients in merged.items()]


def _exponential_pairs(term: sp.Expr) -> list[_Term]:
    """Write one term as Σ c·exp(a): one pair, or two where it holds a hyperbolic cosine."""
    coefficients: list[sp.Expr] = []
    exponents: list[sp.Expr] = []
    powers: list[sp.Pow] = []
    cosines: list[sp.Expr] = []
    for factor in sp.Mul.make_args(term):
        base, power = factor.as_base_exp()
        if isinstance(factor, sp.exp):
            exponents.append(factor.args[0])
        elif _is_positive_bessel(base) or _is_erf_mass(base):
            exponents.append(power * _log_special(base))  # may be tiny where a ratio of two is not
        elif isinstance(factor, sp.cosh):
            cosines.append(factor.args[0])
        elif _is_positive_sum(base):
            powers.append(sp.Pow(base, power, evaluate=False))
        elif isinstance(factor, sp.Pow) and base.is_positive and not factor.is_number:
            powers.append(factor)
        else:
            coefficients.append(factor)
    # A lone x**2 stays a coefficient; ratios such as a Student density's become exponentials,
    # so that a mixture keeps its relative accuracy where the ratio is near 1, and so do sums of
    # exponentials, which leave the range of doubles.
    are_whole = all(p.exp.is_Integer and p.exp.is_positive for p in powers)
    if are_whole and not any(p.base.has(sp.exp) for p in powers):
        coefficients.extend(powers)
    else:
        exponents.extend(_log_of_powers(powers))
    exponent = sp.Add(*exponents)
    if len(cosines) == 1:
        (angle,) = cosines
        half = sp.Mul(sp.Rational(1, 2), *coefficients)
        return [(half, exponent + angle), (half, exponent - angle)]
    coefficients.extend(sp.cosh(angle) for angle in cosines)
    return [(sp.Mul(*coefficients), exponent)]
