"""Closed forms kept between sessions, as the nodes of `symdp.emit.json` in `symdp.user_cache`.

Nothing of an entry is ever run, and none is believed: whoever recalls a closed form compares it
with an integral.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp import user_cache
from symdp.derive.records import CGF
from symdp.errors import InputError
from symdp.user_cache import file_for

if TYPE_CHECKING:
    from symdp.model.pair import Pair

# What a broken entry raises.
_REFUSALS = (InputError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


def entry(pair: Pair, below_one: tuple[str, ...]) -> Path | None:
    """Return the file of a pair's CGF, None where the cache is off."""
    expressions = (sp.srepr(part) for part in pair.expressions())
    return file_for("cgf", pair.support.kind, *below_one, "", *expressions)


def recall(path: Path) -> CGF | None:
    """Return a stored CGF; None where there is none, or none that can be read."""
    try:
        return _decoded(user_cache.recall(path))
    except _REFUSALS:
        return None


def keep(path: Path, cgf: CGF) -> None:
    """Store a CGF; nothing happens where the disk or an expression refuses."""
    try:
        data = _encoded(cgf)
        if _decoded(data) != cgf:
            return
    except _REFUSALS:
        return
    user_cache.keep(path, data)


def _encoded(cgf: CGF) -> dict[str, Any]:
    from symdp.emit.json import write_expressions

    parts = {
        "tilt": cgf.tilt,
        "expression": cgf.expression,
        "domain": None if cgf.domain is None else sp.Tuple(*cgf.domain),
        "checked_at": sp.Tuple(*cgf.checked_at),
        "removable": sp.Tuple(*cgf.removable),
        "values": sp.Tuple(*(sp.Tuple(*dict(row).values()) for row in cgf.parameters_checked)),
    }
    return {
        "expressions": write_expressions({k: own for k, own in parts.items() if own is not None}),
        "names": [list(dict(row)) for row in cgf.parameters_checked],
        "form": cgf.form,
        "reason": cgf.reason,
        "domain_is_numeric": cgf.domain_is_numeric,
    }


def _decoded(data: Any) -> CGF:
    from symdp.emit.json import read_expressions

    read = read_expressions(data["expressions"])
    tilt, expression, domain = read["tilt"], read.get("expression"), read.get("domain")
    form, reason = data["form"], data["reason"]
    known = {"closed": isinstance(expression, sp.Expr), "numeric": expression is None}
    if not isinstance(tilt, sp.Symbol) or not known.get(form) or not isinstance(reason, str):
        raise TypeError("no CGF")
    if domain is not None and not (
        len(domain.args) == 2 and all(isinstance(end, sp.Expr) for end in domain.args)
    ):
        raise TypeError("no domain")
    rows = zip(data["names"], read["values"].args, strict=True)
    return CGF(
        tilt,
        expression,
        form,
        None if domain is None else domain.args,
        read["checked_at"].args,
        tuple(tuple(zip(map(str, names), row.args, strict=True)) for names, row in rows),
        reason,
        read["removable"].args,
        data["domain_is_numeric"] is True,
    )
