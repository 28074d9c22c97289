"""A derivation for programs: JSON with every formula as text and as an exact expression."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp.derive import series, tails
from symdp.derive.child import or_reason
from symdp.derive.epoch import EpochDerivation
from symdp.derive.printed import plain
from symdp.derive.vectors import VectorDerivation
from symdp.errors import InputError
from symdp.page.derivation import doubt
from symdp.page.document import Section
from symdp.page.loss_sections import seen_ends
from symdp.page.series_sections import many_steps
from symdp.page.text import formula_lines, legend_text

if TYPE_CHECKING:
    from symdp.derive.derivation import Derivation
    from symdp.derive.pld import LossLaw
    from symdp.derive.privacy_loss import PrivacyLoss

SCHEMA = "symdp/derivation/1"
_EPOCH_SCHEMA = "symdp/epoch/1"
_VECTOR_SCHEMA = "symdp/vectors/1"


def to_json(d: Derivation | EpochDerivation | VectorDerivation, order: int) -> dict[str, Any]:
    """Return everything that was derived as dicts, lists, strings and None."""
    if isinstance(d, VectorDerivation):
        return _of_vectors(d, order)
    return _of_epoch(d, order) if isinstance(d, EpochDerivation) else _of_steps(d, order)


def _of_epoch(epoch: EpochDerivation, order: int) -> dict[str, Any]:
    return {
        "schema": _EPOCH_SCHEMA,
        "name": epoch.mechanism.name,
        "direction": epoch.direction,
        "steps": epoch.steps,
        "ratio": str(epoch.ratio),
        "atoms": [{"ratio": str(value), "mass": str(mass)} for value, mass in epoch.atoms],
        "transform": str(epoch.transform),
        "transform_is_closed": epoch.is_closed,
        "moment": str(epoch.moment),
        "sections": [sentences(section) for section in epoch.sections(order)],
        "one_step": epoch.one_step.to_json(order),
    }


def _of_vectors(d: VectorDerivation, order: int) -> dict[str, Any]:
    from symdp.emit.json import write_expressions

    law = d.density / d.normaliser
    formulas = {"loss": d.loss, "density": law, "moment": d.moment(law, d.loss)}
    symbols = {f"parameters.{p.name}": p.symbol for p in d.mechanism.declared}
    return {
        "schema": _VECTOR_SCHEMA,
        "name": d.mechanism.name,
        "direction": d.direction,
        "dimension": str(d.source.dimension),
        "sensitivity": str(d.source.sensitivity),
        **{key: str(own) for key, own in formulas.items()},
        "sections": [sentences(section) for section in d.sections(order)],
        "expressions": write_expressions({**symbols, **formulas}),
    }


def _of_steps(d: Derivation, order: int) -> dict[str, Any]:
    """The texts are for people; "expressions" holds the same formulas for programs.

    Each stands under the path of its text: `from_json` gives back equal expressions and symbols.
    """
    from symdp.emit.json import write_expressions

    derived = _derived(d, order)
    symbols = {f"parameters.{p.name}": p.symbol for p in d.mechanism.declared}
    expressions = {"variable": d.variable, **symbols, **dict(_leaves(derived))}
    seen = None if d.loss_range else seen_ends(d, "loss_bounds")
    return {
        "schema": SCHEMA,
        "name": d.mechanism.name,
        "direction": d.direction,
        "doubt": doubt(d.mechanism) or None,
        "variable": d.variable.name,
        "parameters": {p.name: p.domain for p in d.mechanism.declared},
        "assumptions": list(d.mechanism.assumptions),
        "range_reason": d.range_reason or None,
        "loss_range_seen": None if seen is None else [str(end.n(6)) for end in seen],
        "dominating_direction": dict(vars(d.dominating_direction)),
        "many_steps": str(many_steps(d)),
        "tails": tails.to_json(d.tails),
        **_texts(derived),
        "sections": [sentences(section) for section in d.sections(order)],
        "expressions": write_expressions(expressions),
    }


def sentences(section: Section) -> dict[str, Any]:
    """Return a section as the lines that people read."""
    lines = [own for line in section.lines for own in formula_lines(line)]
    return {
        "key": section.key,
        "title": section.title,
        "lines": lines,
        "legend": legend_text(section.legend),
    }


def _derived(d: PrivacyLoss, order: int) -> dict[str, Any]:
    """Return what has expressions under the keys of the JSON; None for what was not found."""
    parts: dict[str, Callable[[], Any]] = {
        "values": lambda: d.mechanism.values,
        "loss": lambda: d.loss,
        "pieces": lambda: [
            _some(piece, "lower", "upper", "loss", "slope", "place") for piece in d.pieces
        ],
        "points": lambda: [_some(point, "value", "p", "q", "loss") for point in d.points],
        "loss_range": lambda: d.loss_range,
        "loss_range_cases": lambda: [
            {"case": str(case), "range": case.ends, "reason": case.reason or None}
            for case in d.range_cases
        ],
        "atoms": lambda: [_some(atom, "loss", "mass") for atom in d.atoms],
        "mass_at_infinity": lambda: d.mass_at_infinity,
        "mass_at_minus_infinity": lambda: d.mass_at_minus_infinity,
        "inverse": lambda: [back for _, back in d.inverse],
        "pld_density": lambda: _law(d.pld_density),
        "pld_cdf": lambda: _law(d.pld_cdf),
        "mass_rules": lambda: [dict(vars(rule)) for rule in d.mass_rules],
        "cgf": lambda: {
            **_some(d.cgf, "tilt", "form", "expression"),
            "domain": d.cgf.domain or seen_ends(d, "domain"),
            "domain_is_numeric": d.cgf.domain is None and seen_ends(d, "domain") is not None,
            **_some(d.cgf, "checked_at", "removable"),
            "reason": d.cgf.reason or None,
        },
        "cumulants": lambda: {str(j): series.cumulant(d, j) for j in range(1, order + 2)},
        "msd": lambda: {str(k): series.msd(d, k) for k in range(order + 1)},
        "msd_terms": lambda: {
            str(f): own for f, own in series.saddle_terms(d, order, substitute=False)
        },
        "edgeworth": lambda: {str(k): series.edgeworth(d, k) for k in range(order + 1)},
    }
    return {name: or_reason(make, lambda _: None) for name, make in parts.items()}


def _some(record: object, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _law(law: LossLaw) -> dict[str, Any]:
    return {"loss": law.loss, "expression": law.expression, "reason": law.reason or None}


def _texts(held: Any) -> Any:
    """Return the same with every expression as text."""
    if isinstance(held, dict):
        return {name: _texts(own) for name, own in held.items()}
    if isinstance(held, list | tuple):
        return [_texts(own) for own in held]
    return plain(held) if isinstance(held, sp.Basic) else held


def _leaves(held: Any, path: str = "") -> Iterator[tuple[str, sp.Basic]]:
    """Yield every expression with the path of its text."""
    if isinstance(held, dict):
        parts: Iterable[tuple[object, Any]] = held.items()
    elif isinstance(held, list | tuple):
        parts = enumerate(held)
    else:
        if isinstance(held, sp.Basic):
            yield path, held
        return
    for name, own in parts:
        yield from _leaves(own, f"{path}.{name}" if path else str(name))


def from_json(document: object) -> dict[str, sp.Basic]:
    """Return the expressions of a document that `to_json` made, equal to those it was made from.

    The whitelisting reader of `symdp.emit.json` builds them; no text is parsed or run.  Of a
    parameter with an assumption the sign comes back, not the bound, which "assumptions" holds.
    """
    from symdp.emit.json import read_expressions

    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(document, dict) or schema != SCHEMA:
        raise InputError(f"the document's schema is {schema!r:.40}, not {SCHEMA!r}")
    return read_expressions(document.get("expressions"))
