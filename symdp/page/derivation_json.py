"""A derivation for programs: JSON with every formula as text and as an exact expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp.derive import series, tails
from symdp.derive.child import or_reason
from symdp.derive.derivation import PairDerivation
from symdp.derive.kinds import CasesDerivation
from symdp.derive.printed import Derivation, plain
from symdp.derive.without_pair.epoch import EpochDerivation
from symdp.derive.without_pair.local import LocalDerivation
from symdp.derive.without_pair.vectors import VectorDerivation
from symdp.errors import InputError
from symdp.page.derivation import doubt
from symdp.page.document import Section
from symdp.page.sections.loss import facts, seen_ends
from symdp.page.sections.series import many_steps
from symdp.page.text import formula_lines, legend_text

if TYPE_CHECKING:
    from symdp.derive.pld import LossLaw
    from symdp.derive.privacy_loss import PrivacyLoss
    from symdp.model.fact import Fact

SCHEMA = "symdp/derivation/1"
_EPOCH_SCHEMA = "symdp/epoch/1"
_VECTOR_SCHEMA = "symdp/vectors/1"
_LOCAL_SCHEMA = "symdp/local/1"


def to_json(d: Derivation, order: int) -> dict[str, Any]:
    """Return everything that was derived as dicts, lists, strings and None."""
    if isinstance(d, CasesDerivation):
        return {"name": d.mechanism.name, "cases": [case.to_json(order) for case in d.cases]}
    if isinstance(d, LocalDerivation):
        schema = _LOCAL_SCHEMA
        content = _of_local(d)
    elif isinstance(d, VectorDerivation):
        schema = _VECTOR_SCHEMA
        content = _of_vectors(d)
    elif isinstance(d, EpochDerivation):
        schema = _EPOCH_SCHEMA
        content = _of_epoch(d)
    else:
        assert isinstance(d, PairDerivation)
        schema = SCHEMA
        content = _of_steps(d, order)
    document = {"schema": schema, "name": d.mechanism.name, "direction": d.direction, **content}
    document["facts"] = {name: _fact(fact) for name, fact in facts(d.mechanism)}
    document["sections"] = [sentences(section) for section in d.sections(order)]
    if isinstance(d, EpochDerivation):
        return document | {"one_step": d.one_step.to_json(order)}
    return document | {"expressions": document.pop("expressions")}


def _fact(fact: Fact) -> dict[str, Any]:
    """Return a fact: its value as text, true or false, None where it is open; how it is known."""
    is_plain = fact.value is None or isinstance(fact.value, bool)
    value = fact.value
    if not is_plain:
        value = str(value)
    return {"value": value, "by": fact.by, "reason": fact.reason}


def _of_epoch(epoch: EpochDerivation) -> dict[str, Any]:
    return {
        "steps": epoch.steps,
        "ratio": str(epoch.ratio),
        "atoms": [{"ratio": str(value), "mass": str(mass)} for value, mass in epoch.atoms],
        "transform": str(epoch.transform),
        "transform_is_closed": epoch.is_closed,
        "moment": str(epoch.moment),
    }


def _of_vectors(d: VectorDerivation) -> dict[str, Any]:
    from symdp.emit.json import write_expressions

    law = d.density / d.normaliser
    formulas = {"loss": d.loss, "density": law, "moment": d.moment(law, d.loss)}
    return {
        "dimension": str(d.source.dimension),
        "sensitivity": str(d.source.sensitivity),
        **{key: str(formula) for key, formula in formulas.items()},
        "expressions": write_expressions(_symbols(d) | formulas),
    }


def _of_local(d: LocalDerivation) -> dict[str, Any]:
    from symdp.emit.json import write_expressions

    y = d.mechanism.variable
    parts = []
    formulas: dict[str, sp.Basic] = {"variable": y, **_symbols(d)}
    for number, part in enumerate(d.parts):
        value = part.value
        formulas[f"parts.{number}.least"] = part.least
        if value is not None:
            formulas[f"parts.{number}.value"] = value
        parts.append(
            {
                "between": [str(part.lower), str(part.upper)],
                "outcomes": part.count,
                "least": str(part.least),
                "value": _text_or_none(value),
            }
        )
    common_mass = None
    if d.parts:
        common_mass = str(d.common_mass)
    return {
        "inputs": [str(value) for value in d.source.inputs],
        "is_interval": d.source.is_interval,
        "people": _text_or_none(d.source.people),
        "common_mass": common_mass,
        "parts": parts,
        "expressions": write_expressions(formulas),
    }


def _text_or_none(value: object) -> str | None:
    if value is None:
        return None
    return str(value)


def _symbols(d: Derivation) -> dict[str, sp.Basic]:
    return {f"parameters.{p.name}": p.symbol for p in d.mechanism.declared}


def _of_steps(d: PairDerivation, order: int) -> dict[str, Any]:
    """The texts are for people; "expressions" holds the same formulas for programs.

    Each stands under the path of its text: `from_json` gives back equal expressions and symbols.
    """
    from symdp.emit.json import write_expressions

    expressions = {"variable": d.variable, **_symbols(d)}
    texts = texts_of(derived(d, order), expressions)
    loss_range_seen = None
    ends = None
    if not d.loss_range:
        ends = seen_ends(d, "loss_bounds")
    if ends is not None:
        loss_range_seen = [str(end.n(6)) for end in ends]
    return {
        "doubt": doubt(d.mechanism) or None,
        "variable": d.variable.name,
        "parameters": {p.name: p.domain for p in d.mechanism.declared},
        "assumptions": list(d.mechanism.assumptions),
        "range_reason": d.range_reason or None,
        "loss_range_seen": loss_range_seen,
        "dominating_direction": dict(vars(d.dominating_direction)),
        "many_steps": str(many_steps(d)),
        "tails": tails.to_json(d.tails),
        **texts,
        "expressions": write_expressions(expressions),
    }


def sentences(section: Section) -> dict[str, Any]:
    """Return a section as the lines that people read."""
    return {
        "key": section.key,
        "title": section.title,
        "lines": [row for line in section.lines for row in formula_lines(line)],
        "legend": legend_text(section.legend),
    }


def derived(d: PrivacyLoss, order: int) -> dict[str, Any]:
    """Return what has expressions under the keys of the JSON; None for what was not found."""

    def law(loss_law: LossLaw) -> dict[str, Any]:
        return _some(loss_law, "loss", "expression") | {"reason": loss_law.reason or None}

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
        "pld_density": lambda: law(d.pld_density),
        "pld_cdf": lambda: law(d.pld_cdf),
        "mass_rules": lambda: [dict(vars(rule)) for rule in d.mass_rules],
        "cgf": lambda: {
            **_some(d.cgf, "tilt", "form", "expression"),
            "domain": d.cgf.domain or seen_ends(d, "domain"),
            "domain_is_numeric": d.cgf.domain is None and seen_ends(d, "domain") is not None,
            **_some(d.cgf, "checked_at", "removable"),
            "reason": d.cgf.reason or None,
            "by_sign": _by_sign(d),
        },
        "cumulants": lambda: {str(j): series.cumulant(d, j) for j in range(1, order + 2)},
        "msd": lambda: {str(k): series.msd(d, k) for k in range(order + 1)},
        "msd_terms": lambda: {
            str(f): term for f, term in series.saddle_terms(d, order, substitute=False)
        },
        "edgeworth": lambda: {str(k): series.edgeworth(d, k) for k in range(order + 1)},
    }
    return {name: or_reason(make, lambda _: None) for name, make in parts.items()}


def _by_sign(d: PrivacyLoss) -> dict[str, Any] | None:
    """K of quadratic pieces with G, and G by its cases."""
    by_sign = d.cgf_by_sign
    if by_sign is None:
        return None
    return _some(by_sign, "expression", "arguments", "integral", "definition")


def _some(record: object, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def texts_of(value: Any, expressions: dict[str, sp.Basic], path: str = "") -> Any:
    """Return the same with every expression as text, and put each under the path of its text."""
    if isinstance(value, dict):
        inside = ""
        if path:
            inside = f"{path}."
        return {n: texts_of(entry, expressions, f"{inside}{n}") for n, entry in value.items()}
    if isinstance(value, list | tuple):
        return [texts_of(entry, expressions, f"{path}.{k}") for k, entry in enumerate(value)]
    if not isinstance(value, sp.Basic):
        return value
    expressions[path] = value
    return plain(value)


def from_json(document: object) -> dict[str, sp.Basic]:
    """Return the expressions of a document that `to_json` made, equal to those it was made from.

    The whitelisting reader of `symdp.emit.json` builds them; no text is parsed or run.  Of a
    parameter with an assumption the sign comes back, not the bound, which "assumptions" holds.
    """
    from symdp.emit.json import read_expressions

    schema = None
    if isinstance(document, dict):
        schema = document.get("schema")
    if not isinstance(document, dict) or schema != SCHEMA:
        raise InputError(f"the document's schema is {schema!r:.40}, not {SCHEMA!r}")
    return read_expressions(document.get("expressions"))
