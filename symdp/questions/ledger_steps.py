"""Steps of a ledger as JSON values, every number exact; nothing that is read is trusted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from symdp.arguments import checked_count
from symdp.errors import InputError
from symdp.model.average import SUM

if TYPE_CHECKING:
    import sympy as sp

    from symdp.model.mechanism import Mechanism
    from symdp.model.sampling import Source
    from symdp.model.schemes import Sampling

_BOUND = "dominating pair"  # of what is only partly known
_LAWS = ("P", "Q")
_CURVE = "renyi curve"
_SOURCES: dict[str, tuple[str, ...]] = {
    "noise": ("density", "sensitivity"),
    "pair": _LAWS,
    _BOUND: _LAWS,
}
_SOURCES |= {_CURVE: ("divergence",)}
_SAMPLING = ("scheme", "batch", "records", "group", "steps", "participations")
_TEXTS = ("title", "description", "citation")
_LONGEST_TEXT = 1_000_000  # characters, as many as a mechanism file may have


def written(mechanism: Mechanism) -> dict[str, Any]:
    """Return a mechanism as JSON values."""
    from symdp.emit.json import write_expressions

    kinds = {"density": "noise", "divergence": _CURVE}
    kind = next((kinds[name] for name in kinds if hasattr(mechanism.source, name)), "pair")
    if getattr(mechanism.source, "is_bound", False):
        kind = _BOUND
    # With its parameters free, so that steps of one family are known for it again.
    template, sampling = mechanism.template or mechanism, mechanism.sampling
    support = template.support
    formulas: dict[str, sp.Basic] = {
        "variable": mechanism.variable,
        "lower": support.lower,
        "upper": support.upper,
        **{f"point {i}": point for i, point in enumerate(support.points)},
        **{f"value {name}": value for name, value in mechanism.bound},
    }
    moved = getattr(template.source, "moved_by_substitution", None)
    if moved is not None:
        formulas["moved by substitution"] = moved
    for name in _SOURCES[kind]:
        law = getattr(template.source, name)
        masses = law if isinstance(law, tuple) else (law,)
        formulas |= {f"{name} {i}": mass for i, mass in enumerate(masses)}
    for i, (place, masses) in enumerate(getattr(template.source, "atoms", ())):
        formulas |= {f"atom {i}": place, f"P of atom {i}": masses[0], f"Q of atom {i}": masses[1]}
    if sampling is not None:
        formulas["rate"] = sampling.rate
    return {
        "name": mechanism.name,
        **{name: getattr(mechanism, name) for name in _TEXTS},
        "support": support.kind,
        "source": kind,
        "parameters": {p.name: p.domain for p in mechanism.declared},
        "relation": mechanism.relation,
        "shift": mechanism.shift,
        **{name: None if sampling is None else getattr(sampling, name) for name in _SAMPLING},
        **({} if sampling is None or sampling.released == SUM else {"released": sampling.released}),
        "formulas": write_expressions(formulas),
    }


def read_step(step: object) -> tuple[Mechanism, int]:
    """Return a step and its count; InputError where it is not what `written` writes."""
    if not isinstance(step, dict) or set(step) != {"mechanism", "count"}:
        raise InputError("an object of 'mechanism' and 'count' is needed")
    return _read(step["mechanism"]), checked_count(step["count"])


def _read(written: object) -> Mechanism:
    from symdp.emit.json import read_expressions
    from symdp.model.mechanism import Mechanism
    from symdp.model.pair import Support
    from symdp.model.sampling import declare, variable_symbol
    from symdp.model.schemes import Sampling

    stated = ("name", "support", "source", "parameters", "relation", "shift", "formulas")
    keys = {*stated, "released", *_SAMPLING, *_TEXTS}
    if not isinstance(written, dict):
        raise InputError(f"a mechanism is an object of {', '.join(sorted(keys))}")
    if not {"relation", "records", "group"} & set(written):  # as earlier versions wrote it
        written = {**written, "relation": None, "records": None, "group": 1}
    if not set(_TEXTS) & set(written):
        written = {**written, **dict.fromkeys(_TEXTS, "")}
    if "released" not in written:  # the sum goes without saying
        written = {**written, "released": SUM}
    if not {"steps", "participations"} & set(written):  # as versions before random allocation
        written = {**written, "steps": None, "participations": None}
    written = {"shift": "at most", **written}  # as versions before it
    if set(written) != keys:
        raise InputError(f"a mechanism is an object of {', '.join(sorted(keys))}")
    name, kind, words = (written[key] for key in ("name", "support", "parameters"))
    source_kind = written["source"]
    if kind not in ("interval", "points", "integers", "naturals"):
        raise InputError(f"support {kind!r:.40} is unknown")
    if source_kind not in tuple(_SOURCES) or not isinstance(name, str) or len(name) > 60:
        raise InputError(f"'source' must be {', '.join(_SOURCES)}, and 'name' a short text")
    texts = {name: written[name] for name in _TEXTS}
    if any(not isinstance(text, str) or len(text) > _LONGEST_TEXT for text in texts.values()):
        raise InputError(f"{', '.join(_TEXTS)} must be texts of at most {_LONGEST_TEXT} characters")
    if not isinstance(words, dict):
        raise InputError("'parameters' must be an object of name and domain")
    formulas = read_expressions(written["formulas"])
    declared = tuple(declare(str(one), str(word)) for one, word in words.items())
    variable = formulas.get("variable")
    if variable is None or variable != variable_symbol(str(variable), kind):
        raise InputError(f"'variable' does not fit the support {kind}")
    values = {p.name: _one(formulas, f"value {p.name}") for p in declared}
    ends = _one(formulas, "lower"), _one(formulas, "upper")
    support = Support(kind, *ends, _all(formulas, "point"))
    sampling: Sampling | None = None
    if written["scheme"] is not None:
        own = {name: written[name] for name in (*_SAMPLING, "released") if name != "scheme"}
        sampling = Sampling(str(written["scheme"]), _one(formulas, "rate"), **own)
        if sampling.rate.free_symbols:
            raise InputError("the sampling rate has no value")
    source = _source(source_kind, formulas, kind == "points")
    known = {variable, *(parameter.symbol for parameter in declared)}
    free = {s for f in formulas.values() for s in f.free_symbols} - known
    if free:
        raise InputError(f"{', '.join(sorted(map(str, free)))} has no value")
    made = replace(
        Mechanism(name, variable, support, source, declared, **texts, shift=written["shift"])(
            **values
        ),
        sampling=sampling,
    )
    return made if written["relation"] is None else made.under(written["relation"])


def _source(kind: str, formulas: dict[str, sp.Basic], listed: bool) -> Source:
    from symdp.model.renyi_curve import RenyiCurve, table
    from symdp.model.sampling import Laws, Noise

    if kind == _CURVE:
        curve = _all(formulas, "divergence")
        return RenyiCurve(curve[0] if len(curve) == 1 else table(curve))
    if kind == "noise":
        moved = formulas.get("moved by substitution")
        if moved is not None:
            moved = _one(formulas, "moved by substitution")
        return Noise(_one(formulas, "density 0"), _one(formulas, "sensitivity 0"), moved)
    if listed:
        return Laws(_all(formulas, "P"), _all(formulas, "Q"), kind == _BOUND)
    atoms = zip(*(_all(formulas, own) for own in ("atom", "P of atom", "Q of atom")), strict=True)
    held = tuple((place, tuple(masses)) for place, *masses in atoms)
    return Laws(_one(formulas, "P 0"), _one(formulas, "Q 0"), kind == _BOUND, held)


def _one(formulas: dict[str, sp.Basic], name: str) -> sp.Expr:
    import sympy as sp

    found = formulas.get(name)
    if not isinstance(found, sp.Expr):
        raise InputError(f"the formula '{name}' is missing")
    return found


def _all(formulas: dict[str, sp.Basic], name: str) -> tuple[sp.Expr, ...]:
    found: list[sp.Expr] = []
    while f"{name} {len(found)}" in formulas:
        found.append(_one(formulas, f"{name} {len(found)}"))
    return tuple(found)
