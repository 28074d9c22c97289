"""A mechanism as text: one line, its densities in LaTeX, and what tells it from others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from symdp.arguments import AT_MOST
from symdp.errors import InputError
from symdp.model.assumption import comparisons
from symdp.model.renyi_curve import RenyiCurve
from symdp.model.sampling import Noise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from symdp.model.record import MechanismRecord

_LONGEST_VALUE = 24  # characters in a message


def summary(mechanism: MechanismRecord) -> str:
    """Return name, values and sampling in one line; see `Mechanism.summary`."""
    values = {name: f"={value}" for name, value in mechanism.bound}
    names = (p.name + values.get(p.name, "") for p in mechanism.declared)
    text = f"{mechanism.name}({', '.join(names)})"
    source = mechanism.source
    if isinstance(source, Noise) and source.sensitivity.is_Integer and source.sensitivity != 1:
        text += f", sensitivity {source.sensitivity}"
    if mechanism.sampling:
        text += f", {mechanism.sampling.describe()}"
    if mechanism.relation is not None:
        text += f", {mechanism.relation.replace('_', ' ')}"
    if mechanism.shift != AT_MOST:
        text += f", shift {mechanism.shift}"
    if held := comparisons(mechanism):
        text += f", assuming {' and '.join(held)}"
    return text


def values(bound: Sequence[tuple[str, sp.Expr]]) -> str:
    """Return values for a message, those of many digits rounded.

    >>> values([("sigma", sp.Rational(3, 2)), ("b", sp.Integer(10)**300)])
    'sigma=3/2, b=1.00e+300'
    """
    texts = {name: str(value) for name, value in bound}
    texts |= {n: str(v.evalf(3)) for n, v in bound if len(texts[n]) > _LONGEST_VALUE}
    return ", ".join(f"{name}={text}" for name, text in texts.items())


def require_names(mechanism: MechanismRecord, unnamed: Sequence[object]) -> None:
    """Raise InputError where values were given without the names of parameters."""
    if unnamed:
        names = list(mechanism.parameters) or ["NAME"]
        shown = ", ".join(f"{n}={v!r:.20}" for n, v in zip(names, unnamed, strict=False))
        raise InputError(f"values need names: write {mechanism.name}({shown})")


def latex(mechanism: MechanismRecord) -> str:
    """Return the densities of P and Q, and the sampling, as one displayed line."""
    x = sp.latex(mechanism.variable)
    source = mechanism.source
    if isinstance(source, Noise):
        f, size = sp.latex(source.density), sp.latex(source.sensitivity)
        lines = [f"Q({x}) = f({x}) = {f}", f"P({x}) = f({x} - {size})"]
    elif isinstance(source, RenyiCurve):
        table = isinstance(source.divergence, tuple)
        bound = r"\text{a table}" if table else sp.latex(source.divergence)
        lines = [rf"D_{{{x}}} \le {bound}"]
    else:
        lines = [f"{name}({x}) = {sp.latex(getattr(source, name))}" for name in ("P", "Q")]
        lines += [
            f"{name}(\\{{{sp.latex(place)}\\}}) = {sp.latex(mass)}"
            for place, masses in source.atoms
            for name, mass in zip("PQ", masses, strict=True)
        ]
    if mechanism.sampling:
        scheme = mechanism.sampling.scheme.replace("_", r"\ ")
        lines.append(rf"\text{{{scheme} sampling}},\ q = {sp.latex(mechanism.sampling.rate)}")
    return r"$\displaystyle " + r",\quad ".join(lines) + "$"


def key(mechanism: MechanismRecord, neighbours: str, of_template: str) -> str:
    """Return a text of name, expressions and sampling that is equal for equal mechanisms.

    Values in a formula are told apart as values: the expression that they give is not needed.
    """
    source, template, sampling = mechanism.source, mechanism.template, mechanism.sampling
    held = [] if sampling is None else [type(sampling).__name__, *vars(sampling).values()]
    # The shift is told where it is not what it is for every other mechanism.
    asked = [neighbours] + [mechanism.shift] * (mechanism.shift != AT_MOST)
    if template is not None and mechanism.is_concrete:
        values = dict(mechanism.bound)
        used = sorted(values.keys() & {p.name for p in template.declared})
        own = (of_template, *asked, *(f"{name}={values[name]}" for name in used))
        return "\n".join((*own, *map(str, held)))
    parts = [mechanism.name, mechanism.variable, *asked]
    for part in (mechanism.support, source):
        parts += [type(part).__name__, *vars(part).values()]
    return "\n".join(sp.srepr(value) for value in (*parts, *held))
