"""`symdp list`: the built-in mechanisms as a table, or one of them in full."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from symdp.cli.display import print_json, say, show
from symdp.mechanisms import checked_name, curve_names, names, path_of
from symdp.method_options import Option
from symdp.page.document import Table

_NOISE = "additive noise"  # the family of a file with a [noise] table
_RELATIONS = "add_remove"
_RECORDS = "one record added to or removed from the data; others, where proved, by --relation"
_IN_FILES = (
    "A density, two laws, a trade-off function, a privacy profile, a Rényi curve or shuffled "
    "answers of your own: a TOML file with [noise], [pair], [trade_off], [profile], [renyi] or "
    "[shuffled]."
)
_PAIR = "the change that its two laws stand for"


def list_mechanisms(name: str | None = None, *, as_json: bool = False) -> None:
    """Show the built-in mechanisms with their parameters."""
    if as_json:
        wanted = [*names(), *curve_names()]
        if name is not None:
            wanted = [checked_name(name)]
        print_json(
            {"mechanisms": {mechanism_name: _document(mechanism_name) for mechanism_name in wanted}}
        )
    elif name is None:
        _print_table()
    else:
        _print_one(checked_name(name))


def list_methods() -> None:
    """Show the methods: what they promise, where they are from, the options that they take."""
    from symdp.methods.table import METHODS

    rows = [method.cells(name) for name, method in METHODS.items()]
    show(Table(("method", "promises", "what it does", "source", "options"), rows))
    takers: dict[Option, list[str]] = {}
    for name, method in METHODS.items():
        for option in method.options:
            takers.setdefault(option, []).append(name)
    for option, of in takers.items():
        say(f"{option.flag} of {', '.join(of)}: {option.what}; {option.rule}")
    say("In Python: steps.delta(1, method='prv', eps_error=1e-3).")


def _document(name: str) -> dict[str, Any]:
    path = path_of(name)
    assert path is not None
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _print_table() -> None:
    rows = []
    for name in [*names(), *curve_names()]:
        entry = _document(name)
        parameters = ", ".join(f"{p} {word}" for p, word in entry["parameters"].items())
        rows.append((name, _family(entry), parameters, _relation(entry), source(entry)))
    show(Table(("mechanism", "family", "parameters", "relation", "source"), rows))
    say("symdp list NAME shows one in full, and why its pair dominates.")
    say(_IN_FILES)


def _print_one(name: str) -> None:
    entry = _document(name)
    lines = [f"{name}: {entry.get('title', '')}", entry.get("description", ""), ""]
    lines.append(f"family      {_family(entry)}")
    lines += [f"parameter   {p}, {word}" for p, word in entry["parameters"].items()]
    protects = _PAIR
    if "noise" in entry:
        protects = _RECORDS
    lines.append(f"protects    {entry.get('protects') or protects}")
    lines.append(f"dominates   {entry.get('dominates', 'what its author says')}")
    lines.append(f"source      {entry.get('citation', 'none named')}")
    lines += [f"{key:11} {text}" for key, text in _laws_in_words(entry)]
    for line in lines:
        say(line)


def _laws_in_words(entry: dict[str, Any]) -> list[tuple[str, str]]:
    table = entry.get("noise") or entry.get("pair") or entry.get("renyi") or {}
    laws = []
    for key in ("density", "P", "Q", "divergence"):
        if key in table:
            law = table[key]
            if isinstance(law, list):
                laws.append((key, ", ".join(map(str, law))))
            else:
                laws.append((key, str(law)))
    return laws


def _family(entry: dict[str, Any]) -> str:
    family = entry.get("family")
    if family:
        return str(family)
    if "noise" in entry:
        return _NOISE
    return "two laws"


def _relation(entry: dict[str, Any]) -> str:
    if "noise" in entry:
        return _RELATIONS
    return "of the pair"


def source(entry: dict[str, Any]) -> str:
    """Return first author and year of a citation."""
    authors, _, publication = str(entry.get("citation", "")).partition(":")
    if not publication:
        return ""
    listed = authors.split(",")
    years = re.findall(r"(?:19|20)\d\d(?!\d)", publication)
    arxiv = re.search(r"arXiv (\d\d)\d\d\.", publication)
    year = ""
    if arxiv:
        year = f"20{arxiv.group(1)}"
    elif years:
        year = years[-1]
    others = ""
    if len(listed) > 2:
        others = " et al."
    elif len(listed) == 2:
        others = f" and{listed[1].split('.')[-1]}"
    return f"{listed[0].split('.')[-1].strip()}{others} {year}".strip()
