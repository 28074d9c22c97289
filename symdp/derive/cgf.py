"""The CGF of the privacy loss: a closed form that was checked, else declared numeric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp

from symdp.derive import store
from symdp.derive.check import (
    NoClosedForm,
    at_values,
    checked,
    in_time,
    parameters_of,
    still_agrees,
    with_values,
)
from symdp.derive.child import compute
from symdp.derive.domain import Flank, cgf_domain
from symdp.derive.integrate import Integrand, definite
from symdp.derive.mixture import Term, mixture_form
from symdp.derive.normal_form import LogForm, exponential_terms
from symdp.derive.pieces import SmoothPair, pieces, points, smooth_pairs
from symdp.derive.records import CGF
from symdp.derive.signs import compare, interior_point
from symdp.derive.simplify import log_of_total
from symdp.errors import InputError
from symdp.interrupt import attempt, worked
from symdp.model import tidy

if TYPE_CHECKING:
    from symdp.model.pair import Pair


_LONGEST = 400  # operations of a closed form that is worth showing
_SHARE = 0.2  # of the time limit, for the domain
_FREE = 0.4  # of the time limit, for the form whose parameters are free
_LEAST = 2.0  # seconds for the domain, the table of integrals and the check, one by one


@dataclass(frozen=True)
class _Stretch:
    """log P and log Q as one normal form each, where both densities are positive."""

    smooth: SmoothPair
    log_p: LogForm
    log_q: LogForm
    lower: sp.Expr
    upper: sp.Expr
    is_sum: bool

    def tilted(self, tilt: sp.Symbol) -> Integrand:
        """P^{1+t} Q^{−t}."""
        form = self.log_p.plus(self.log_p.minus(self.log_q), tilt)
        return Integrand(form, self.lower, self.upper, self.is_sum)


@lru_cache(maxsize=256)
def derive_cgf(pair: Pair, time_limit: float = 20.0, below_one: tuple[str, ...] = ()) -> CGF:
    """Return K(t) = log ∫ P^{1+t} Q^{−t} in closed form, or say why there is none.

    The support is cut at the kinks, each stretch integrated by table or, in a child process, by
    SymPy; the sum is simplified and compared with numerical integrals at random rational tilts,
    real and complex.  Only where all agree to 18 digits the form is "closed".

    Examples
    --------
    >>> from symdp.model.pair import Pair, Support
    >>> x, s = sp.Symbol("x", real=True), sp.Symbol("sigma", positive=True)
    >>> def density(at):
    ...     return sp.exp(-at**2 / (2 * s**2)) / (s * sp.sqrt(2 * sp.pi))
    >>> pair = Pair(x, Support("interval", -sp.oo, sp.oo), (density(x), density(x - 1)),
    ...             (sp.S.Zero, sp.S.One), (sp.S.One, sp.S.Zero))
    >>> derive_cgf(pair).expression
    t*(t + 1)/(2*sigma**2)
    """
    path = store.entry(pair, below_one)
    found = None if path is None else store.recall(path)
    if found is None or not _is_believed(found, pair, below_one):
        found, is_final = _derived(pair, time_limit, below_one)
        if path is not None and is_final:
            store.keep(path, found)
    return found


def derive_with_values(
    free: Pair,
    values: Mapping[sp.Symbol, sp.Expr],
    pair: Pair,
    time_limit: float = 20.0,
    below_one: tuple[str, ...] = (),
) -> CGF:
    """Return K of a pair whose parameters have values: put into K of the free pair where it can be.

    The form of the free pair was checked at random values and tilts; at these values, where a
    check may take too long, it need only not be contradicted.
    """
    with suppress(InputError):  # the order of kinks may hang on the values
        found = derive_cgf(free, _FREE * time_limit, below_one)
        put = None if found.expression is None else _put(found, values, pair, below_one)
        if put is not None:
            return put
    return derive_cgf(pair, (1 - _FREE) * time_limit, below_one)


def _put(
    found: CGF, values: Mapping[sp.Symbol, sp.Expr], pair: Pair, below_one: tuple[str, ...]
) -> CGF | None:
    """Return a closed form with values for parameters, None where it has no sense there."""
    tilt = tilt_symbol(pair)

    def put(expression: sp.Expr) -> sp.Expr:
        return expression.subs(values).xreplace({found.tilt: tilt})

    plain = put(found.expression)
    if plain.has(sp.nan, sp.zoo, sp.oo, sp.I):
        return None
    short = attempt(lambda: log_of_total(sp.exp(plain), tilt, worked() + _LEAST), plain, _LEAST)
    domain = None if found.domain is None else (put(found.domain[0]), put(found.domain[1]))
    if domain is None:
        domain = attempt(lambda: _domain(pair, list(stretches_of(pair)), below_one), None, _LEAST)
    expression = min(plain, short, key=sp.count_ops)
    verdict = at_values(expression, tilt, pair, domain, below_one, _LEAST)
    if verdict is False:
        return None
    expression = expression if verdict else plain
    removable = _removable(expression, tilt, domain)
    return replace(found, tilt=tilt, expression=expression, domain=domain, removable=removable)


def _is_believed(found: CGF, pair: Pair, below_one: tuple[str, ...]) -> bool:
    """Whether what a file says may be taken over: a closed form only after a check of its own."""
    return found.tilt == tilt_symbol(pair) and still_agrees(found, pair, below_one, _LEAST)


def _derived(pair: Pair, time_limit: float, below_one: tuple[str, ...]) -> tuple[CGF, bool]:
    """Return the CGF, and whether another run with more time would find the same."""
    tilt = tilt_symbol(pair)
    if pair.alternatives:
        ends = _numeric_domain(pair)
        reason = "the loss is that of a public choice among several pairs"
        return CGF(tilt, None, "numeric", ends, reason=reason, domain_is_numeric=True), True
    deadline = worked() + time_limit
    stretches = [] if pair.support.kind == "points" else list(stretches_of(pair))
    domain = attempt(
        lambda: _domain(pair, stretches, below_one), None, max(_LEAST, _SHARE * time_limit)
    )
    try:
        expression = in_time(
            lambda: _closed_form(pair, stretches, tilt, deadline),
            "no closed form was found within the time limit",
            max(_LEAST, time_limit),
        )
        _refuse_unreadable(expression)
        tilts, values = in_time(
            lambda: checked(expression, pair, tilt, domain, below_one),
            "a closed form was found, but not checked within the time limit",
            max(_LEAST, deadline - worked()),
        )
    except NoClosedForm as reason:
        is_final = reason.is_final and worked() < deadline
        ends = _numeric_domain(pair) if domain is None else None
        found = CGF(tilt, None, "numeric", domain or ends, reason=str(reason))
        return replace(found, domain_is_numeric=ends is not None), is_final
    closed = CGF(
        tilt,
        expression,
        "closed",
        domain,
        checked_at=tilts,
        parameters_checked=values,
        removable=_removable(expression, tilt, domain),
    )
    return closed, True


def tabulated_moment(pair: Pair) -> tuple[sp.Symbol, sp.Expr] | None:
    """Return the tilt and M = ∫ P^{1+t} Q^{−t} as the table of integrals has it, not simplified.

    None where a stretch is not in the table; nothing is compared with an integral yet.
    """
    if pair.alternatives:
        return None
    tilt = tilt_symbol(pair)
    if pair.support.kind == "points":
        finite = (point for point in points(pair) if not point.loss.is_infinite)
        return tilt, sp.Add(*(point.p * sp.exp(tilt * point.loss) for point in finite))
    total = sp.S.Zero
    for stretch in stretches_of(pair):
        integrand = stretch.tilted(tilt)
        value = definite(integrand)
        if value is None:
            return None
        total += value * sp.exp(sp.expand(integrand.form.constant))
    return tilt, total


def _numeric_domain(pair: Pair) -> tuple[sp.Expr, sp.Expr] | None:
    """The domain in numbers, where no parameter is free."""
    from symdp.derive.numeric_ends import numeric_domain

    if parameters_of(pair):
        return None
    return attempt(lambda: numeric_domain(pieces(pair), pair.variable), None, 2 * _LEAST)


def tilt_symbol(pair: Pair) -> sp.Symbol:
    """Return the symbol of the tilt: t, or another name where the pair has a t of its own.

    Real, since simplification relies on it; complex values may be put in afterwards.
    """
    names = {symbol.name for part in pair.expressions() for symbol in part.free_symbols}
    free = next(name for name in ("t", "tilt", "t_tilt", "tilt_of_K") if name not in names)
    return sp.Symbol(free, real=True)


def stretches_of(pair: Pair) -> Iterator[_Stretch]:
    """Yield the stretches between kinks on which both densities are positive."""
    for smooth in smooth_pairs(pair):
        if smooth.p_terms and smooth.q_terms:
            yield _stretch(smooth)


def _stretch(smooth: SmoothPair) -> _Stretch:
    x, ends = smooth.variable, (smooth.lower, smooth.upper)
    at = ends[0] if ends[0] == ends[1] else interior_point(*ends)
    log_p, log_q = (
        mixture_form(terms, smooth.reference, x, at) for terms in (smooth.p_terms, smooth.q_terms)
    )
    return _Stretch(smooth, log_p, log_q, *ends, is_sum=bool(x.is_integer))


def _domain(
    pair: Pair, stretches: Sequence[_Stretch], below_one: tuple[str, ...] = ()
) -> tuple[sp.Expr, sp.Expr] | None:
    if pair.support.kind == "points":
        return -sp.oo, sp.oo
    shares = [s for s in parameters_of(pair) if s.name in below_one and s.is_positive]
    if shares:
        # r = 1/(1 + w) with w > 0 tells SymPy, which knows no upper bounds, that r < 1.
        odds = {r: 1 / (1 + sp.Dummy(str(r.name), positive=True)) for r in shares}
        back = {next(iter(value.free_symbols)): 1 / r - 1 for r, value in odds.items()}
        concrete = with_values(pair, odds)
        found = _domain(concrete, list(stretches_of(concrete)))
        return None if found is None else tuple(tidy.simplify(end.subs(back)) for end in found)
    flanks = [
        Flank(_forms(stretch.smooth.p_terms), _forms(stretch.smooth.q_terms), end)
        for stretch in stretches
        for end in (stretch.lower, stretch.upper)
        if end.is_infinite or not stretch.is_sum
    ]
    return cgf_domain(flanks)


def _forms(terms: Sequence[Term]) -> tuple[LogForm, ...]:
    return tuple(term.form for term in terms)


def _closed_form(
    pair: Pair, stretches: Sequence[_Stretch], tilt: sp.Symbol, deadline: float
) -> sp.Expr:
    if pair.support.kind == "points":
        finite = [point for point in points(pair) if not point.loss.is_infinite]
        if not finite:
            raise NoClosedForm("P and Q have no point in common, so that K = −∞")
        return log_of_total(sp.Add(*(p.p * sp.exp(tilt * p.loss) for p in finite)), tilt, deadline)
    if not stretches:
        raise NoClosedForm("P and Q have no part of the support in common, so that K = −∞")
    parts = [_integral(stretch, tilt, deadline) for stretch in stretches]
    total = sp.Add(*(value * sp.exp(sp.expand(constant)) for value, constant in parts))
    _refuse_longer(total, 4 * _LONGEST)
    return log_of_total(total, tilt, deadline)


def _refuse_unreadable(expression: sp.Expr) -> None:
    """A special function may stand in a formula for people once, not several times over."""
    _refuse_longer(expression, _LONGEST)
    special = expression.atoms(sp.hyper, sp.meijerg)
    if len(special) > 1 or expression.has(sp.meijerg):
        names = ", ".join(sorted({node.func.__name__ for node in special}))
        raise NoClosedForm(f"only a form in {len(special)} special functions ({names}) was found")
    if expression.has(sp.polar_lift, sp.I):
        raise NoClosedForm("only a complex form was found")


def _refuse_longer(expression: sp.Expr, most: int) -> None:
    operations = int(sp.count_ops(expression))
    if operations > most:
        raise NoClosedForm(
            f"the closed form that was found has {operations} operations, too many to be of use"
        )


def _integral(stretch: _Stretch, tilt: sp.Symbol, deadline: float) -> tuple[sp.Expr, sp.Expr]:
    """Return the integral of a stretch as value and log of a constant factor."""
    integrand = stretch.tilted(tilt)
    form = integrand.form
    value = definite(integrand)
    if value is not None:
        return value, form.constant
    reason = _hopeless(integrand, tilt)
    if reason:
        raise NoClosedForm(reason, is_final=True)
    moving = LogForm(form.variable, smooth=form.smooth, logs=form.moving_logs)
    left = deadline - worked()
    arguments = (sp.exp(moving.to_expression()), form.variable, stretch.lower, stretch.upper)
    value = compute("integrate", arguments, left)
    if value is None:
        late = worked() > deadline - 0.1
        raise NoClosedForm(
            f"no closed form of the integral between {stretch.lower} and {stretch.upper} was found"
            + (" within the time limit" if late else "")
        )
    return value, form.constant


def _hopeless(integrand: Integrand, tilt: sp.Symbol) -> str:
    """Say why an integral outside the table need not be tried; empty where it should be."""
    if integrand.is_sum:
        return "the sum over the integers has no elementary closed form"
    tilted = {
        base for base, power in integrand.form.moving_logs.items() if tilt in power.free_symbols
    }
    for base in tilted:
        if exponential_terms(base, integrand.x) is not None:
            return "a sum of exponentials is raised to a power that holds the tilt"
    if len(tilted) > 1:
        return "several factors are raised to powers that hold the tilt"
    powers = integrand.smooth_powers()
    if powers is None:
        plain = {integrand.x**k for k in range(1, 9)}
        several = len(set(integrand.form.smooth) - plain) > 1
        return "the exponent holds several unlike terms" if several else ""
    if max(powers, default=0) > 2 and len(powers) > 1:
        return f"the exponent is a full polynomial of degree {max(powers)}"
    return ""


def _removable(
    expression: sp.Expr, tilt: sp.Symbol, domain: tuple[sp.Expr, sp.Expr] | None
) -> tuple[sp.Expr, ...]:
    """Return the tilts inside the domain where a denominator vanishes, as far as it is linear."""
    if domain is None:
        return ()
    found: list[sp.Expr] = []
    for power in expression.atoms(sp.Pow):
        base, exponent = power.as_base_exp()
        if exponent.is_negative and base.is_polynomial(tilt) and sp.degree(base, tilt) == 1:
            root = tidy.cancel(-base.subs(tilt, 0) / sp.diff(base, tilt))
            inside = compare(root, domain[0]) == 1 and compare(domain[1], root) == 1
            if inside and root not in found:
                found.append(root)
    return tuple(sorted(found, key=sp.default_sort_key))
