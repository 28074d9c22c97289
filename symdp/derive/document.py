"""A derivation for programs: JSON with every formula as text and as an exact expression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp.derive import tails
from symdp.derive.present import many_steps, plain
from symdp.errors import InputError

if TYPE_CHECKING:
    from symdp.derive.derivation import Derivation
    from symdp.derive.pld import LossLaw

SCHEMA = "symdp/derivation/1"


def to_json(derivation: Derivation, order: int) -> dict[str, Any]:
    """Return everything that was derived as dicts, lists, strings and None.

    The texts are for people. "expressions" holds the same formulas for programs, each under the
    path of its text, so that `from_json` gives back equal expressions and symbols.
    """
    from symdp.emit.json import write_expressions

    d, cgf = derivation, derivation.cgf
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "name": d.mechanism.name,
        "direction": d.direction,
        "variable": d.variable.name,
        "parameters": {p.name: p.domain for p in d.mechanism.declared},
        "values": {name: str(value) for name, value in d.mechanism.values.items()},
        "assumptions": list(d.mechanism.assumptions),
        "loss": plain(d.loss),
        "pieces": [
            {
                "lower": plain(piece.lower),
                "upper": plain(piece.upper),
                "loss": plain(piece.loss),
                "slope": piece.slope,
            }
            for piece in d.pieces
        ],
        "points": [
            {"value": str(p.value), "p": str(p.p), "q": str(p.q), "loss": str(p.loss)}
            for p in d.points
        ],
        "loss_range": None if d.loss_range is None else [plain(end) for end in d.loss_range],
        "range_reason": d.range_reason or None,
        "loss_range_seen": None
        if d.numeric_range is None
        else [str(end) for end in d.numeric_range],
        "atoms": [{"loss": plain(atom.loss), "mass": plain(atom.mass)} for atom in d.atoms],
        "mass_at_infinity": plain(d.mass_at_infinity),
        "dominating_direction": {
            "value": d.dominating_direction.value,
            "proof": d.dominating_direction.proof,
        },
        "inverse": [None if back is None else plain(back) for _, back in d.inverse],
        "pld_density": _law(d.pld_density),
        "pld_cdf": _law(d.pld_cdf),
        "mass_rules": [
            {name: None if own is None else plain(own) for name, own in vars(rule).items()}
            for rule in d.mass_rules
        ],
        "cgf": {
            "tilt": cgf.tilt.name,
            "form": cgf.form,
            "expression": None if cgf.expression is None else plain(cgf.expression),
            "domain": None if cgf.domain is None else [plain(end) for end in cgf.domain],
            "domain_is_numeric": cgf.domain_is_numeric,
            "checked_at": [str(at) for at in cgf.checked_at],
            "removable": [str(at) for at in cgf.removable],
            "reason": cgf.reason or None,
        },
        "cumulants": {str(j): str(d.cumulant(j)) for j in range(1, order + 2)},
        "msd": {str(k): str(d.msd(k)) for k in range(order + 1)},
        "msd_terms": {str(f): str(own) for f, own in d.saddle_terms(order, substitute=False)},
        "edgeworth": {str(k): str(d.edgeworth(k)) for k in range(order + 1)},
        "many_steps": str(many_steps(d)),
        "tails": tails.to_json(d.tails),
    }
    return document | {"expressions": write_expressions(dict(_formulas(derivation, order)))}


def _law(law: LossLaw) -> dict[str, str | None]:
    return {
        "loss": law.loss.name,
        "expression": None if law.expression is None else plain(law.expression),
        "reason": law.reason or None,
    }


def _formulas(derivation: Derivation, order: int) -> Iterator[tuple[str, sp.Basic]]:
    """Every expression of the JSON with the path of its text."""
    d, cgf = derivation, derivation.cgf
    yield "variable", d.variable
    yield from ((f"parameters.{p.name}", p.symbol) for p in d.mechanism.declared)
    yield from ((f"values.{name}", value) for name, value in d.mechanism.values.items())
    yield "loss", d.loss
    for i, piece in enumerate(d.pieces):
        for name in ("lower", "upper", "loss"):
            yield f"pieces.{i}.{name}", getattr(piece, name)
    for i, point in enumerate(d.points):
        for name in ("value", "p", "q", "loss"):
            yield f"points.{i}.{name}", getattr(point, name)
    for i, end in enumerate(d.loss_range or ()):
        yield f"loss_range.{i}", end
    for i, atom in enumerate(d.atoms):
        yield f"atoms.{i}.loss", atom.loss
        yield f"atoms.{i}.mass", atom.mass
    yield "mass_at_infinity", d.mass_at_infinity
    for i, (_, back) in enumerate(d.inverse):
        if back is not None:
            yield f"inverse.{i}", back
    for name, law in (("pld_density", d.pld_density), ("pld_cdf", d.pld_cdf)):
        yield f"{name}.loss", law.loss
        if law.expression is not None:
            yield f"{name}.expression", law.expression
    for i, rule in enumerate(d.mass_rules):
        for name, own in vars(rule).items():
            if own is not None:
                yield f"mass_rules.{i}.{name}", own
    yield "cgf.tilt", cgf.tilt
    if cgf.expression is not None:
        yield "cgf.expression", cgf.expression
    for name, several in (
        ("domain", cgf.domain or ()),
        ("checked_at", cgf.checked_at),
        ("removable", cgf.removable),
    ):
        yield from ((f"cgf.{name}.{i}", one) for i, one in enumerate(several))
    yield from ((f"cumulants.{j}", d.cumulant(j)) for j in range(1, order + 2))
    yield from ((f"msd.{k}", d.msd(k)) for k in range(order + 1))
    yield from ((f"msd_terms.{f}", own) for f, own in d.saddle_terms(order, substitute=False))
    yield from ((f"edgeworth.{k}", d.edgeworth(k)) for k in range(order + 1))


def from_json(document: object) -> dict[str, sp.Basic]:
    """Return the expressions of a document that `to_json` made, equal to those it was made from.

    The whitelisting reader of `symdp.emit.json` builds them; no text is parsed or run.  Of a
    parameter with an assumption the sign comes back, not the bound, which "assumptions" holds.

    Parameters
    ----------
    document : what `json.loads` gave

    Returns
    -------
    dict
        From the path of a text in the document, such as "cgf.expression" or "pieces.0.loss", to
        its expression.

    Raises
    ------
    InputError
        If the document is of another schema, or broken.

    Examples
    --------
    >>> import json, symdp
    >>> found = symdp.derive(symdp.mechanisms.gaussian)
    >>> read = from_json(json.loads(json.dumps(found.to_json(order=1))))
    >>> read["loss"] == found.loss, read["parameters.sigma"].is_positive
    (True, True)
    """
    from symdp.emit.json import read_expressions

    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(document, dict) or schema != SCHEMA:
        raise InputError(f"the document's schema is {schema!r:.40}, not {SCHEMA!r}")
    return read_expressions(document.get("expressions"))
