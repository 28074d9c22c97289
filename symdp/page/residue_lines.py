"""The composed δ as a finite sum, in the parameters: a sum of two exponentials over one pole.

M = (N₁(t)e^{βt} + N₂(t)e^{γt})/(t − p)^d gives Mⁿ by the binomial theorem, and each term of the
contour integral its residues at 0, at −1 and at p, where it is closed to the left: b_k > ε.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import sympy as sp

from symdp.density.exponential_sum import ExponentialSum, Polynomial
from symdp.derive.records import COUNT, EPSILON
from symdp.page.layout import layout
from symdp.page.node import row
from symdp.page.notation import read
from symdp.page.section import Line, equation, sentence

INDEX = sp.Symbol("k", integer=True, nonnegative=True)
STEP = sp.Symbol("w", real=True)


@dataclass(frozen=True)
class ResidueTerms:
    """What the k-th term of the sum is made of.

    Attributes
    ----------
    place
        b_k: the term counts where it is above ε.
    at_zero, at_minus_one
        The residues at t = 0 and t = −1, without the binomial coefficient.
    around_pole
        A function of w whose coefficient of w^(order − 1) is the residue at the pole.
    order
        The order of the pole.
    """

    place: sp.Expr
    at_zero: sp.Expr
    at_minus_one: sp.Expr
    around_pole: sp.Expr
    order: sp.Expr


def residue_terms(found: ExponentialSum) -> ResidueTerms | None:
    """Return the terms of a sum of two exponentials over one pole off 0 and −1, else None.

    Examples
    --------
    >>> t, b = sp.Symbol("t", real=True), sp.Symbol("b", positive=True)
    >>> from symdp.density.exponential_sum import read_exponential_sum
    >>> moment = ((1 + t) * sp.exp(t / b) + t * sp.exp(-(1 + t) / b)) / (1 + 2 * t)
    >>> terms = residue_terms(read_exponential_sum(moment, t))
    >>> terms.place, terms.at_zero
    ((-2*k + n)/b, Piecewise((1, Eq(k, 0)), (0, True)))
    """
    if len(found.terms) != 2 or len(found.poles) != 1:
        return None
    (pole, degree), (one, two) = found.poles[0], found.terms
    if pole in (sp.S.Zero, sp.S.NegativeOne):
        return None
    n, k, w = COUNT, INDEX, STEP
    place = (n - 2 * k) * two.rate if one.rate == -two.rate else k * one.rate + (n - k) * two.rate

    def residue(at: sp.Expr, over: sp.Expr) -> sp.Expr:
        first, second = _at(one.polynomial, at), _at(two.polynomial, at)
        powers = [(first, k), (second, n - k), (at - pole, -degree * n), (over, sp.S.NegativeOne)]
        wave = at * place - at * EPSILON
        if first != 0 != second:
            return _product(powers, wave)
        if first == 0 == second:
            return sp.S.Zero
        only = sp.S.Zero if first == 0 else n  # the term that does not vanish
        left = [(value, power.subs(k, only)) for value, power in powers if value != 0]
        return sp.Piecewise((_product(left, wave.subs(k, only)), sp.Eq(k, only)), (0, True))

    shifted = pole + w
    around = _product(
        [(_at(one.polynomial, shifted), k), (_at(two.polynomial, shifted), n - k),
         (shifted, sp.S.NegativeOne), (1 + shifted, sp.S.NegativeOne)],
        shifted * (place - EPSILON),
    )  # fmt: skip
    return ResidueTerms(
        place, residue(sp.S.Zero, sp.S.One), residue(sp.S.NegativeOne, sp.S.NegativeOne), around,
        sp.Integer(degree) * n,
    )  # fmt: skip


def _at(polynomial: Polynomial, place: sp.Expr) -> sp.Expr:
    return sp.factor(sp.simplify(sp.Add(*(c * place**j for j, c in enumerate(polynomial)))))


def _product(powers: Iterable[tuple[sp.Expr, sp.Expr]], wave: sp.Expr) -> sp.Expr:
    """Return Π valueᵢ^powerᵢ e^wave, each base once, exponents joined where none has w."""
    exponents: dict[sp.Expr, sp.Expr] = {}
    height = sp.S.Zero
    for value, power in powers:
        for factor in sp.Mul.make_args(value):
            base, own = factor.as_base_exp()
            if base is sp.E:
                height += own * power
                continue
            parts = {base: own}
            if base.is_Rational:
                parts = {sp.Integer(base.p) * sp.sign(base): own, sp.Integer(base.q): -own}
                parts[sp.S.NegativeOne] = own if base < 0 else sp.S.Zero
            elif base.could_extract_minus_sign() and own.is_integer:
                parts = {-base: own, sp.S.NegativeOne: own}
            elif base.is_Add and (content := base.as_content_primitive())[0] != 1:
                parts = {content[1]: own, sp.Integer(content[0].p): own}
                parts[sp.Integer(content[0].q)] = -own
            for each, times in parts.items():
                exponents[each] = exponents.get(each, sp.S.Zero) + times * power
    found = [base ** sp.expand(power) for base, power in exponents.items() if base != 1]
    if STEP in wave.free_symbols:
        return sp.Mul(*found) * sp.exp(sp.factor(height)) * sp.exp(wave)
    return sp.Mul(*found) * sp.exp(sp.factor_terms(sp.expand(height + wave)))


def residue_lines(found: ExponentialSum, infinite: sp.Expr) -> Iterator[Line]:
    """Yield the lines of the finite sum, nothing where it is not of this form."""
    terms = residue_terms(found)
    if terms is None:
        return
    yield equation("b_k", terms.place)
    inner = "[w^{{}}]g_k(w)"
    parts = []
    for name, value, words in (
        ("r₀", terms.at_zero, "residue at t = 0"),
        ("r₁", terms.at_minus_one, "residue at t = −1"),
    ):
        if value != 0:
            parts.append(name)
            yield equation(name, value, words="" if isinstance(value, sp.Piecewise) else words)
    yield equation("g_k(w)", terms.around_pole)
    lost = "" if infinite == 0 else "1 − (1 − δ_∞)^n + "
    total = lost + "∑_{k: b_k > ε} {}·(" + " + ".join([*parts, inner]) + ")"
    binomial = layout(sp.binomial(COUNT, INDEX))
    yield equation("δ(ε)", row(*read(total, binomial, terms.order - 1).parts))
    yield sentence(
        "the sum is over k = 0, …, n; [w^m]g is the coefficient of w^m in the power series of g"
    )
