"""The sections of a derivation, each made by itself: what one lacks, the others do not."""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp

from symdp.derive.child import or_reason
from symdp.derive.derivation import Derivation
from symdp.derive.epoch import EpochDerivation
from symdp.errors import InputError
from symdp.page.layout import layout
from symdp.page.legend import explained
from symdp.page.loss_sections import (
    cgf_section,
    loss_section,
    masses_of,
    mechanism_section,
    range_ends,
)
from symdp.page.notation import read
from symdp.page.section import Section, equation, sentence, token
from symdp.page.series_sections import (
    asymptotics_section,
    composed_section,
    corrections,
    own_section,
    tails_section,
)

_WHOLE_TILTS = 3  # of an epoch, at which K is shown


def sections(d: Derivation | EpochDerivation, order: int) -> list[Section]:
    """Return the sections, expansions up to `order`, each with its legend."""
    return _of_epoch(d, order) if isinstance(d, EpochDerivation) else _of_steps(d, order)


def _of_steps(d: Derivation, order: int) -> list[Section]:
    made: tuple[tuple[str, str, Callable[[], list[Section]]], ...] = (
        ("mechanism", "Mechanism", lambda: [mechanism_section(d)]),
        ("loss", "Privacy loss", lambda: [loss_section(d)]),
        ("cumulants", "Cumulant generating function", lambda: [cgf_section(d, order)]),
        ("series", "Series", lambda: corrections(d, order)),
        ("series", "For this mechanism", lambda: [own_section(d)]),
        ("asymptotics", "Many steps", lambda: [asymptotics_section(d)]),
        ("tails", "Tail constants", lambda: [tails_section(d, d.tails)]),
        ("composed", "Composed δ as a finite formula", lambda: [composed_section(d)]),
    )
    found = [
        section for key, title, make in made for section in or_reason(make, _absent(key, title))
    ]
    extra = {
        token(layout(d.variable)): "the output of the mechanism",
        token(layout(d.pld_density.loss)): "a loss",
    }
    told = "the mass by which a density is divided"
    extra |= {token(layout(mass)): told for mass in masses_of(d)}
    return explained(d, found, extra)


def _absent(key: str, title: str) -> Callable[[str], list[Section]]:
    """What stands for a section that was not found: its title, and a line that says why."""
    return lambda why: [Section(key, title, (sentence(f"not found: {why}"),))]


def _of_epoch(epoch: EpochDerivation, order: int) -> list[Section]:
    """One step, one epoch, its moments, the series."""
    d, sign = epoch.one_step, 1 if epoch.direction == "remove" else -1
    x, z = layout(d.variable), layout(epoch.cgf.tilt)
    step = [equation(read("W({})", x), epoch.ratio)]
    step += [equation(read("Q(W = {})", value), mass) for value, mass in epoch.atoms]
    step.append(equation(read("φ({})", epoch.rate), epoch.transform))
    own = [
        sentence(f"Y is the sum of {epoch.steps} independent copies of W under Q"),
        equation("ℓ", sign * sp.log(sp.Symbol("Y", positive=True) / epoch.steps)),
    ]
    ends = range_ends(d)
    if d.loss_range is not None and sign < 0:
        ends = (-d.loss_range[1], -d.loss_range[0])
    if d.loss_range is not None or sign > 0:
        own += [equation(name, end) for name, end in zip(("inf ℓ", "sup ℓ"), ends, strict=True)]
    transform = [equation(read("e^{K({})}", z), epoch.moment)]
    for tilt in range(1, _WHOLE_TILTS + 1) if sign > 0 else ():
        try:
            transform.append(equation(read("K({})", sp.Integer(tilt)), epoch.cgf_at(tilt)))
        except InputError:
            break
    found = [
        Section("epoch", "One step", tuple(step)),
        Section("epoch", f"One epoch of {epoch.steps} steps", tuple(own)),
        Section("epoch", "Moment generating function", tuple(transform)),
        *corrections(epoch, order),
    ]
    extra = {
        token(layout(d.variable)): "the output of one step",
        token(layout(epoch.rate)): "the argument of the transform φ of W under Q",
    }
    return explained(epoch, found, extra)
