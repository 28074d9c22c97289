"""The CGF of the privacy loss: a closed form that was checked, else declared numeric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp

from symdp.density.check import (
    NoClosedForm,
    agrees,
    checked,
    in_time,
    parameters_of,
    tilts_to_check,
    with_values,
)
from symdp.density.integral_rules import hypergeometric
from symdp.density.integrate import TiltedStretch, definite, stretches_of, tilt_symbol
from symdp.density.mixture import Term
from symdp.density.normal_form import Integrand, LogForm, exponential_terms
from symdp.density.pieces import pieces, points
from symdp.density.signs import compare, random_values
from symdp.derive.child import compute
from symdp.derive.domain import Flank, cgf_domain
from symdp.derive.records import CGF
from symdp.derive.simplify import log_of_total
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import attempt, worked
from symdp.model import tidy

if TYPE_CHECKING:
    from symdp.model.pair import Pair


_LONGEST = 400  # operations of a closed form that is worth showing
_MOST_POLES = 8  # of a hypergeometric function, that are listed
_MOST_SPECIAL = 4  # hypergeometric functions in it
_SHARE = 0.2  # of the time limit, for the domain
_FREE = 0.4  # of the time limit, for the form whose parameters are free
_LEAST = 2.0  # seconds for the domain, the table of integrals and the check, one by one


@lru_cache(maxsize=256)
def derive_cgf(pair: Pair, time_limit: float = 20.0, below_one: tuple[str, ...] = ()) -> CGF:
    """Return K(t) = log ∫ P^{1+t} Q^{−t} in closed form, or say why there is none.

    The support is cut at the kinks, each stretch integrated by table or, in a child process, by
    SymPy; the sum is simplified and compared with numerical integrals at random rational tilts,
    real and complex.  Only where all agree to 18 digits the form is "closed".
    """
    tilt = tilt_symbol(pair)
    if pair.alternatives:
        reason = "the loss is that of a public choice among several pairs"
        return CGF(tilt, None, "numeric", None, reason=reason)
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
        return CGF(tilt, None, "numeric", domain, reason=str(reason))
    return CGF(
        tilt,
        expression,
        "closed",
        domain,
        checked_at=tilts,
        parameters_checked=values,
        removable=_removable(expression, tilt, domain),
    )


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
        free_cgf = derive_cgf(free, _FREE * time_limit, below_one)
        put = None if free_cgf.expression is None else _put(free_cgf, values, pair, below_one)
        if put is not None:
            return put
    return derive_cgf(pair, (1 - _FREE) * time_limit, below_one)


def _put(
    free_cgf: CGF, values: Mapping[sp.Symbol, sp.Expr], pair: Pair, below_one: tuple[str, ...]
) -> CGF | None:
    """Return a closed form with values for parameters, None where it has no sense there."""
    tilt = tilt_symbol(pair)

    def put(expression: sp.Expr) -> sp.Expr:
        bound = expression.subs(values).xreplace({free_cgf.tilt: tilt})
        return bound.replace(sp.hyper, hypergeometric)

    plain = put(free_cgf.expression)
    if plain.has(sp.nan, sp.zoo, sp.oo, sp.I):
        return None
    short = attempt(lambda: log_of_total(sp.exp(plain), tilt, worked() + _LEAST), plain, _LEAST)
    domain = None if free_cgf.domain is None else (put(free_cgf.domain[0]), put(free_cgf.domain[1]))
    if domain is None:
        domain = attempt(lambda: _domain(pair, list(stretches_of(pair)), below_one), None, _LEAST)
    expression = min(plain, short, key=sp.count_ops)
    verdict = _at_values(expression, tilt, pair, domain, below_one, _LEAST)
    if verdict is False:
        return None
    expression = expression if verdict else plain
    removable = _removable(expression, tilt, domain)
    return replace(free_cgf, tilt=tilt, expression=expression, domain=domain, removable=removable)


def _at_values(
    expression: sp.Expr,
    tilt: sp.Symbol,
    pair: Pair,
    domain: tuple[sp.Expr, sp.Expr] | None,
    below_one: tuple[str, ...],
    seconds: float,
) -> bool | None:
    """Whether a form equals an integral at one tilt, None where that does not come in time."""
    from symdp.density.check import CheckError

    def check() -> bool:
        values = random_values(
            (expression.free_symbols - {tilt}) | parameters_of(pair), 0, below_one
        )
        concrete = with_values(pair, dict(values))
        bound = expression.subs(values)
        law = pieces(concrete), points(concrete), pair.variable
        return agrees(bound, tilt, tilts_to_check(domain, values, 0)[0], law)

    try:
        return attempt(check, None, seconds)
    except (CheckError, InputError, AccuracyError):
        return None


def _domain(
    pair: Pair, stretches: Sequence[TiltedStretch], below_one: tuple[str, ...] = ()
) -> tuple[sp.Expr, sp.Expr] | None:
    if pair.support.kind == "points":
        return -sp.oo, sp.oo
    shares = [s for s in parameters_of(pair) if s.name in below_one and s.is_positive]
    if shares:
        # r = 1/(1 + w) with w > 0 tells SymPy, which knows no upper bounds, that r < 1.
        odds = {r: 1 / (1 + sp.Dummy(str(r.name), positive=True)) for r in shares}
        back = {next(iter(value.free_symbols)): 1 / r - 1 for r, value in odds.items()}
        concrete = with_values(pair, odds)
        domain = _domain(concrete, list(stretches_of(concrete)))
        if domain is None:
            return None
        return tuple(tidy.simplify(end.subs(back)) for end in domain)
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
    pair: Pair, stretches: Sequence[TiltedStretch], tilt: sp.Symbol, deadline: float
) -> sp.Expr:
    if pair.support.kind == "points":
        finite = [point for point in points(pair) if not point.loss.is_infinite]
        if not finite:
            raise NoClosedForm("P and Q have no point in common, so that K = −∞")
        return log_of_total(sp.Add(*(p.p * sp.exp(tilt * p.loss) for p in finite)), tilt, deadline)
    if not stretches:
        raise NoClosedForm("P and Q have no part of the support in common, so that K = −∞")
    parts = [_integral_of_stretch(stretch, tilt, deadline) for stretch in stretches]
    total = sp.Add(*(value * sp.exp(sp.expand(constant)) for value, constant in parts))
    _refuse_longer(total, 4 * _LONGEST)
    return log_of_total(total, tilt, deadline)


def _refuse_unreadable(expression: sp.Expr) -> None:
    """A few hypergeometric functions may stand in a formula for people, no Meijer G."""
    _refuse_longer(expression, _LONGEST)
    special = expression.atoms(sp.hyper, sp.meijerg)
    if len(special) > _MOST_SPECIAL or expression.has(sp.meijerg):
        names = ", ".join(sorted(set(map(_name_of, special))))
        raise NoClosedForm(f"only a form in {len(special)} special functions ({names}) was found")
    if expression.has(sp.polar_lift, sp.I):
        raise NoClosedForm("only a complex form was found")


def _name_of(special: sp.Expr) -> str:
    """Return what people call a hypergeometric function: ₂F₁, or Meijer G."""
    if isinstance(special, sp.meijerg):
        return "Meijer G"
    above, below = (chr(ord("₀") + len(parameters)) for parameters in (special.ap, special.bq))
    return f"{above}F{below}"


def _refuse_longer(expression: sp.Expr, most: int) -> None:
    operations = int(sp.count_ops(expression))
    if operations > most:
        raise NoClosedForm(
            f"the closed form that was found has {operations} operations, too many to be of use"
        )


def _integral_of_stretch(
    stretch: TiltedStretch, tilt: sp.Symbol, deadline: float
) -> tuple[sp.Expr, sp.Expr]:
    """Return the integral of a stretch as value and log of a constant factor."""
    integrand = stretch.tilted(tilt)
    form = integrand.form
    value = definite(integrand)
    if value is not None:
        return value, form.constant
    reason = _hopeless(integrand, tilt)
    if reason:
        raise NoClosedForm(reason)
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
        return "no closed form of the sum over the integers was found"
    tilted = {
        base for base, power in integrand.form.moving_logs.items() if tilt in power.free_symbols
    }
    for base in tilted:
        if exponential_terms(base, integrand.x) is not None:
            return "a sum of exponentials is raised to a power that holds the tilt"
    if len(tilted) > 1:
        return "several factors are raised to powers that hold the tilt"
    symbolic = [power for power in integrand.form.moving_logs.values() if power.free_symbols]
    if len(symbolic) > 1 and integrand.form.smooth:
        # SymPy looks for such an integral as long as it may, and found none of any mechanism.
        return "several powers with parameters stand beside an exponential"
    powers = integrand.smooth_powers()
    if powers is None:
        plain = {integrand.x**k for k in range(1, 9)}
        several = len(set(integrand.form.smooth) - plain) > 1
        if several:
            return "the exponent holds several unlike terms"
        return ""
    if max(powers, default=0) > 2 and len(powers) > 1:
        return f"the exponent is a full polynomial of degree {max(powers)}"
    return ""


def _removable(
    expression: sp.Expr, tilt: sp.Symbol, domain: tuple[sp.Expr, sp.Expr] | None
) -> tuple[sp.Expr, ...]:
    """Return the tilts inside the domain where a linear denominator vanishes, or a lower parameter.

    A hypergeometric function has a pole where a lower parameter is 0, −1, …: the first few.
    """
    if domain is None:
        return ()
    roots: list[sp.Expr] = []
    powers = (power.as_base_exp() for power in expression.atoms(sp.Pow))
    below = [base for base, exponent in powers if exponent.is_negative]
    for special in expression.atoms(sp.hyper):
        below += [lower + k for lower in special.bq for k in range(_MOST_POLES)]
    for base in below:
        if base.is_polynomial(tilt) and sp.degree(base, tilt) == 1:
            root = tidy.cancel(-base.subs(tilt, 0) / sp.diff(base, tilt))
            inside = compare(root, domain[0]) == 1 and compare(domain[1], root) == 1
            if inside and root not in roots:
                roots.append(root)
    return tuple(sorted(roots, key=sp.default_sort_key))
