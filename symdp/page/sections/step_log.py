"""The step log of a derivation: which rule found what on the way from the densities to K.

It is made anew from the passes that found K, and so tells what they do; what a child process of
SymPy integrated, and what was only looked at in numbers, is said to be that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import sympy as sp

from symdp.density.check import DIGITS_COMPARED
from symdp.density.integrate import entry_of, stretches_of, told
from symdp.density.normal_form import Integrand
from symdp.interrupt import attempt
from symdp.page.document import Line, Section, sentence
from symdp.page.formula import equation, finished, layout, read
from symdp.page.node import in_words, text
from symdp.page.sections.loss import DISJOINT

if TYPE_CHECKING:
    from symdp.derive.privacy_loss import PrivacyLoss

_SECONDS = 10.0  # for all rules anew
_LONG = 400  # operations from which on a formula is counted and not shown


def step_log(d: PrivacyLoss) -> Section:
    """Return the steps that lead to K: kinks, normal forms, table entries, sum, and the check."""
    lines = attempt(lambda: list(_steps(d)), None, _SECONDS)
    if lines is None:
        lines = [sentence("the steps were not found again within the time limit")]
    section = Section("steps", "How K was found", tuple(lines))
    return finished(section, (d.variable.name, d.cgf.tilt.name))


def _steps(d: PrivacyLoss) -> Iterator[Line]:
    t = layout(d.cgf.tilt)
    x = layout(d.variable)
    if d.is_disjoint:
        yield sentence(f"{DISJOINT}; no loss is finite, K = −∞, and neither direction is larger")
        return
    if d.pair.alternatives:
        yield sentence("a public choice among several pairs: K is the logarithm of a mean of M")
    elif d.points:
        yield sentence("a list of outcomes: K is the logarithm of a sum, term by term")
    else:
        stretches = list(stretches_of(d.pair))
        ends = [stretch.lower for stretch in stretches[:1]]
        ends += [stretch.upper for stretch in stretches]
        shown = ", ".join(text(layout(end)) for end in ends)
        yield sentence(f"1. kinks and ends: {shown}; between them both densities are smooth")
        for number, stretch in enumerate(stretches, start=1):
            span = read("{} ∈ ({}, {})", x, stretch.lower, stretch.upper)
            yield sentence(
                f"2.{number} {text(span)}: normal forms, and the form that is integrated"
            )
            yield _formula("log P", stretch.log_p.to_expression())
            yield _formula("log Q", stretch.log_q.to_expression())
            integrand = stretch.tilted(d.cgf.tilt)
            power = read("log P^{1 + {}}Q^{−{}}", t, t)
            yield _formula(text(power), integrand.form.to_expression())
            yield from _found(integrand)
    yield from _last(d)
    larger = d.dominating_direction
    yield sentence(in_words(f"larger direction: {larger.value}: {larger.proof}"))


def _formula(name: str, value: sp.Expr) -> Line:
    operations = int(sp.count_ops(value))
    if operations > _LONG:
        return sentence(f"{name}: {operations} operations, not shown")
    return equation(read(f"“{name}”"), value)


def _found(integrand: Integrand) -> Iterator[Line]:
    """Say which entry of the table knows an integral, and by which change of variable."""
    table = "table of integrals"
    if integrand.is_sum:
        table = "table of sums"
    entry = entry_of(integrand)
    if entry is None:
        yield sentence(
            f"no entry of the {table} knows it; SymPy's integrate was asked in a process of its own"
        )
        return
    for moved in entry.moved:
        yield sentence("x = r ± e^y, r an end of the range; the exponent in y:")
        yield _formula("exponent", moved.form.to_expression())
    for name in dict.fromkeys(entry.rules):
        yield sentence(f"{table}, {name}: {' '.join(told(name).split())}")
    yield _formula("value", entry.value * sp.exp(sp.expand(integrand.form.constant)))


def _last(d: PrivacyLoss) -> Iterator[Line]:
    cgf = d.cgf
    if cgf.expression is None:
        yield sentence(in_words(f"3. no closed form was found: {cgf.reason}"))
        return
    yield sentence("3. the logarithm of the sum, simplified")
    yield _formula(f"K({cgf.tilt})", cgf.expression)
    tilts = ", ".join(text(layout(sp.nsimplify(at))) for at in cgf.checked_at)
    compared = f"4. compared with numerical integrals at {cgf.tilt} = {tilts}"
    points = []
    for drawn in cgf.parameters_checked:
        points.append(", ".join(f"{name} = {value}" for name, value in drawn))
    values = "; ".join(points)
    if values:
        compared += f", parameters {values}"
    yield sentence(f"{compared}: equal to {DIGITS_COMPARED} digits")
    if cgf.removable:
        places = ", ".join(text(layout(tilt)) for tilt in cgf.removable)
        yield sentence(f"at {cgf.tilt} = {places} the form reads 0/0 and means its limit")
    if cgf.domain is not None:
        ends = " to ".join(text(layout(end)) for end in cgf.domain)
        yield sentence(
            f"5. K is finite for {cgf.tilt} from {ends}, from the tails of the densities"
        )
