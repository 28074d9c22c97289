"""Logs of weighted sums of densities, in the shape log(Σ cᵢ exp(aᵢ)) with few variables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import sympy as sp

from symdp.density.normal_form import LogForm, log_form
from symdp.density.roots import known_roots
from symdp.density.signs import interior_point, random_values, sign_of
from symdp.model import tidy

_FAR = sp.Float(2) ** 200  # a float, of which no factorial is taken
_CANCELLED = sp.Float(2) ** -40  # of a log-density


@dataclass(frozen=True)
class Term:
    """One additive term weight·exp(form) of a density, the weight free of the variable.

    `order` is the place of its component in the pair; 0 is the density without the record.
    """

    weight: sp.Expr
    form: LogForm
    order: int = 0

    def log(self) -> sp.Expr:
        """Return log weight + form."""
        return self.form.to_expression() + _log_weight(self.weight)


def _log_weight(weight: sp.Expr) -> sp.Expr:
    if weight == 1:
        return sp.S.Zero
    return sp.log(weight)


def relative_sum(terms: Iterable[Term], reference: LogForm) -> sp.Expr:
    """Return Σ wᵢ exp(formᵢ − reference), equal exponents merged."""
    groups: dict[object, list[tuple[sp.Expr, LogForm]]] = {}
    for term in terms:
        ratio = term.form.minus(reference)
        members = groups.setdefault(ratio.moving_key(), [])
        members.append((term.weight, ratio))
    parts: list[sp.Expr] = []
    for members in groups.values():
        _, first = members[0]
        if len(members) == 1 or first.is_constant:
            for weight, ratio in members:
                parts.append(weight * sp.exp(ratio.to_expression()))
            continue
        shares = []
        for weight, ratio in members:
            log_share = ratio.minus(first).to_expression()
            shares.append(weight * sp.exp(log_share))
        common = sp.exp(first.to_expression())
        parts.append(sp.Add(*shares) * common)
    return sp.Add(*parts)


def log_of_sum(total: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return log(total), without a log where total is one exponential."""
    if isinstance(total, sp.Add):
        # SymPy would ask a long sum for its sign first, which takes seconds, and change nothing.
        return sp.log(total, evaluate=False)
    if x in total.free_symbols:
        return sp.expand_log(sp.log(total), force=True)
    return sp.log(total)


def log_mixture(terms: tuple[Term, ...], reference: LogForm, x: sp.Symbol) -> sp.Expr:
    """Return log Σ wᵢ exp(formᵢ), the reference's exponent pulled out of several terms."""
    if len(terms) == 1:
        return terms[0].log()
    return reference.to_expression() + log_of_sum(relative_sum(terms, reference), x)


def heaviest(
    terms: tuple[Term, ...], reference: LogForm, x: sp.Symbol, ends: Iterable[sp.Expr]
) -> LogForm:
    """Return the form to pull out of terms: the first that cancels against none far out.

    Of log f₀ + log(1 − q + q f/f₀) nothing is left in doubles where log f₀ falls like −x², say, and
    log f like −|x|. Where each form does so at one of the ends, none is pulled out.
    """
    ends = list(ends)
    if len(terms) < 2 or not ends or x.is_integer:
        return reference
    forms = [reference, *(term.form for term in terms)]
    written = [form.to_expression() for form in forms]
    kept = list(range(len(forms)))
    values = random_values({s for form in written for s in form.free_symbols} - {x}, 0)
    for end in ends:
        far_values = {**values, x: -_FAR}
        if end is sp.oo:
            far_values[x] = _FAR
        sizes = []
        for form in written:
            try:
                sizes.append(abs(sp.N(form.subs(far_values))))
            except OverflowError:  # as of log(e^{−e^{−x}} + e^x)
                sizes.append(sp.nan)
        least = min((size for size in sizes[1:] if size.is_Float), default=sp.oo)
        kept = [k for k in kept if not (sizes[k].is_Float and least < _CANCELLED * sizes[k])]
    if kept:
        return forms[kept[0]]
    return reference.minus(reference)


def mixture_form(terms: tuple[Term, ...], reference: LogForm, x: sp.Symbol, at: sp.Expr) -> LogForm:
    """Return log Σ wᵢ exp(formᵢ) as one normal form."""
    if len(terms) == 1:
        return terms[0].form.plus(log_form(terms[0].weight, x, at))
    return reference.plus(log_form(relative_sum(terms, reference), x, at))


def log_ratio(
    p_terms: tuple[Term, ...], q_terms: tuple[Term, ...], reference: LogForm, x: sp.Symbol
) -> sp.Expr:
    """Return log(Σ P terms) − log(Σ Q terms) with as few variables as the forms allow.

    A single term on one side becomes the reference of the other, so that only one log is left.
    """
    if len(q_terms) == 1:
        (of_q,) = q_terms
        if len(p_terms) == 1:
            (of_p,) = p_terms
            ratio = of_p.form.minus(of_q.form).to_expression()
            weight = tidy.cancel(of_p.weight / of_q.weight)
            return ratio + _log_weight(weight)
        scaled = _scaled_terms(p_terms, of_q.weight)
        return log_of_sum(relative_sum(scaled, of_q.form), x)
    if len(p_terms) == 1:
        (of_p,) = p_terms
        scaled = _scaled_terms(q_terms, of_p.weight)
        return -log_of_sum(relative_sum(scaled, of_p.form), x)
    top = relative_sum(p_terms, reference)
    bottom = relative_sum(q_terms, reference)
    if x not in top.free_symbols | bottom.free_symbols and top == bottom:
        return sp.S.Zero
    return log_of_sum(top, x) - log_of_sum(bottom, x)


def _scaled_terms(terms: tuple[Term, ...], divisor: sp.Expr) -> tuple[Term, ...]:
    if divisor == 1:
        return terms
    return tuple(replace(term, weight=tidy.cancel(term.weight / divisor)) for term in terms)


def additive_terms(
    density: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> tuple[Term, ...]:
    """Split a density on (lower, upper) into positive exponential terms; one term where it is none.

    A product of a single sum with other factors is multiplied out, so that mixtures written as
    c·(f + g) show their terms.
    """
    at = lower
    if lower != upper:
        at = interior_point(lower, upper)
    whole = (Term(sp.S.One, log_form(density, x, at)),)
    leaves = _leaves(density, x)
    if len(leaves) < 2 or density.is_polynomial(x):
        return whole
    terms = [Term(sp.S.One, log_form(leaf, x, at)) for leaf in leaves]
    for leaf, term in zip(leaves, terms, strict=True):
        if not leaf.is_positive and sign_of(leaf.subs(x, at)) != 1:
            return whole
        if any(_may_vanish(base, x, lower, upper) for base in term.form.moving_logs):
            return whole
    exponents = {frozenset(term.form.smooth.items()) for term in terms}
    has_logs = any(term.form.moving_logs for term in terms)
    if len(exponents) < 2 and has_logs:
        return whole  # one exponential times a polynomial, say
    return tuple(terms)


def _may_vanish(base: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> bool:
    if base.is_positive or lower == upper:
        return False
    return known_roots(base, x, lower, upper) != ()


def _leaves(density: sp.Expr, x: sp.Symbol) -> list[sp.Expr]:
    terms: Iterable[sp.Expr] = ()
    if isinstance(density, sp.Add):
        terms = density.args
    elif isinstance(density, sp.Mul):
        sums = [f for f in density.args if isinstance(f, sp.Add) and x in f.free_symbols]
        if len(sums) == 1:
            (only,) = sums
            factors = [factor for factor in density.args if factor is not only]
            if not only.is_polynomial(x):
                others = sp.Mul(*factors)
                terms = [others * term for term in only.args]
    leaves: list[sp.Expr] = []
    for term in terms:
        leaves += _leaves(term, x)
    return leaves or [density]
