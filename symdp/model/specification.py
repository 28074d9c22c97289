"""Mechanisms and compositions from TOML: checked key by key, every number exact.

Numbers in a file mean the decimals that are written; text is a formula for the whitelisting
parser. Each error is one line that names the file and the key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import sympy as sp

from symdp.arguments import AT_MOST
from symdp.errors import InputError, at, suggestion
from symdp.exact_number import shorten
from symdp.model.average import SUM
from symdp.model.family import coordinates
from symdp.model.mechanism import Mechanism, declare, exact
from symdp.model.pair import kind_of
from symdp.model.reading.parser import parse
from symdp.model.sampling import symbols_of, variable_symbol
from symdp.model.schemes import ALLOCATION

_LARGEST_FILE = 1_000_000  # bytes
_OF_MASSES = ("masses", "tail", "cell")
_EXAMPLES = {  # what to write where a key is missing
    "name": 'name = "my_noise" at the top of the file',
    "variable": 'variable = "x" at the top of the file, the output\'s name in formulas',
    "support": 'where the output lives at the top of the file, such as support = ["-oo", "oo"]',
    "density": 'a formula such as density = "exp(-abs(x))/2"',
    "P": "the density of the output with the record, as P",
    "Q": "the density of the output without the record, as Q",
    "scheme": 'scheme = "poisson"',
    "rate": 'the share of the records that a step draws, such as rate = "1/100"',
    "input": 'input = "x", the answer\'s input in formulas',
    "inputs": "what a person may hold: inputs = [0, 1], or inputs = { values = [0, 1, 2] }",
    "people": "how many answer, such as people = 1000",
    "epsilon_0": "the local privacy of one answer, such as epsilon_0 = 1",
    "dimension": "the number of coordinates, such as dimension = 10",
    "log_partition": 'log_partition = "…", a formula of the coordinates',
}
_KEYS = {  # of the tables of a file, by what an error calls them
    "[noise]": ("density", "sensitivity", "substitution_sensitivity", "normalize", "shift", "modes",
                "norm", "dimension", *_OF_MASSES),
    "[local]": ("input", "inputs", "density", "laws"),
    "[pair]": ("P", "Q", "atoms", "normalize", "envelope", "rho"),
    "[sampling]": ("scheme", "rate", "batch", "records", "group", "steps", "participations",
                   "released"),
}  # fmt: skip
_TEXTS = ("title", "description", "citation", "protects", "dominates")
_CURVES = ("trade_off", "profile", "renyi", "shuffled")
_FORMULAS = {  # of a curve: the key of its formula, its variable, and what a table of points takes
    "trade_off": ("f", "alpha", "between"), "profile": ("delta", "epsilon", "both"),
    "renyi": ("divergence", "alpha"),
}  # fmt: skip
_CONTENT = (
    "variable", "support", "dimension", "parameters", "assume", "noise", "pair", "local",
    *_CURVES, "sampling", "relation",
)  # fmt: skip
_TOP = ("name", "also", *_TEXTS, "family", *_CONTENT)  # a family is a text, or a table
_WORDS = {
    str: "text", int: "a whole number", bool: "true or false", dict: "a table", list: "a list",
    Decimal: "a number",
}  # fmt: skip


def load(path: str | Path) -> Mechanism:
    """Read a mechanism from a TOML file.

    Parameters
    ----------
    path : a UTF-8 file of at most 1 MB

    Raises
    ------
    InputError : the file cannot be read, or describes no mechanism.
    """
    with at(str(path)):
        return _mechanism(document_of(read_text(path)))


def loads(text: str, source: str = "text") -> Mechanism:
    """Return the mechanism in TOML text; `source` stands in the error messages."""
    with at(source):
        return _mechanism(document_of(text))


def _mechanism(document: dict[str, Any]) -> Mechanism:
    if "step" in document:
        raise InputError("this is a composition; pass it with --composition")
    if "atoms" in document:
        raise InputError("atoms belong into the [pair] table: write [pair.atoms]")
    refuse_unknown(document, _TOP)
    name = take(document, "name", str, required=True)
    if not name or len(name) > 60 or not name.isprintable():
        raise InputError(f"name must be 1 to 60 printable characters, not {shorten(name)}")
    maker = _of_curve if any(key in document for key in _CURVES) else _of_densities
    if not isinstance(document.get("family", ""), str):
        maker = _of_family
    if "local" in document:
        maker = _of_randomizer
    mechanism = maker(document)
    texts = {key: take(document, key, str, default="") for key in _TEXTS}
    mechanism = replace(mechanism, name=name, **texts)
    mechanism = with_sampling(mechanism, take(document, "sampling", dict))
    mechanism = with_relation(mechanism, take(document, "relation", str))
    _refuse_unused(mechanism)
    with at("[assume]"):
        return mechanism.assuming(document.get("assume"))


def _of_densities(document: dict[str, Any]) -> Mechanism:
    """Return the mechanism of a [noise] or a [pair] table."""
    noise = take(document, "noise", dict)
    laws = take(document, "pair", dict)
    if (noise is None) == (laws is None):
        have = "neither" if noise is None else "both"
        raise InputError(f"a mechanism has a [noise] table or a [pair] table; this has {have}")
    if "dimension" in document:  # of the vectors that noise is added to
        if noise is None or "dimension" in noise:
            where = "stands twice" if noise else "is one of noise on vectors, in [noise]"
            raise InputError(f"dimension {where}; leave the one at the top of the file out")
        noise = {**noise, "dimension": document["dimension"]}
    if noise is not None and {*_OF_MASSES} & {*noise}:
        return _of_masses(document, noise)
    with at("support"):
        is_length = {"norm", "dimension"} & {*(noise or {})}
        whole = [0, "oo"] if is_length else None
        support = take(document, "support", object, required=not whole, default=whole)
        kind = kind_of(support)
    words = take(document, "parameters", dict, default={})
    with at("[parameters]"):
        for parameter, word in words.items():
            if not isinstance(word, str):
                raise InputError(f"{parameter} must be a word such as 'positive'")
        symbols = {name: declare(name, word).symbol for name, word in words.items()}
    # A list of masses needs no variable.
    anonymous = "x" if kind == "points" and "x" not in symbols else None
    variable = take(document, "variable", str, required=anonymous is None, default=anonymous)
    with at("variable"):
        if variable in symbols:
            raise InputError(f"'{variable}' is a parameter too; rename one of them")
        symbol = variable_symbol(variable, kind)
    with at("support"):
        ends = _support(support, symbols)
        if is_length and ends != [0, sp.oo]:
            raise InputError(
                'with norm or dimension it is noise on vectors, of lengths in [0, "oo"]: a density '
                "that stops at a length is not answered; leave support out, and give one without "
                "an end"
            )
    read = _additive if noise is not None else _from_pair
    return read(noise or laws or {}, {**symbols, variable: symbol}, symbol, ends, words)


def _of_masses(document: dict[str, Any], table: dict[str, Any]) -> Mechanism:
    """Return the mechanism of a [noise] table that lists the masses of whole numbers, or cells."""
    if "masses" not in table:
        raise InputError("tail and cell belong to listed masses: give masses, or leave them out")
    is_real = "cell" in table
    whole_line = ["-oo", "oo"]
    with at("support"):
        support = take(document, "support", object, default=whole_line if is_real else "integers")
        if is_real and support != whole_line:
            raise InputError("a list with a cell is one of the reals: write ['-oo', 'oo']")
        if not is_real and support != "integers":
            raise InputError("listed masses are those of whole numbers: write 'integers'")
    if document.get("parameters"):
        raise InputError("its masses are values; leave [parameters] out")
    variable = take(document, "variable", str, default="x" if is_real else "k")
    with at("[noise]"):
        refuse_unknown(table, _KEYS["[noise]"])
        if others := [key for key in table if key not in (*_OF_MASSES, "sensitivity")]:
            raise InputError(f"masses say all of the noise but sensitivity; leave {others[0]} out")
        listed = [exact(mass, "a mass") for mass in take(table, "masses", list)]
        size = exact(take(table, "sensitivity", object, default=1), "sensitivity")
        tail = take(table, "tail", object, default=0)
        cell = take(table, "cell", object)
        return Mechanism.listed(listed, size, variable=variable, tail=tail, cell=cell)


def _of_curve(document: dict[str, Any]) -> Mechanism:
    """Return the mechanism of a [trade_off], [profile], [renyi] or [shuffled] table."""
    present = [key for key in (*_CURVES, "noise", "pair") if key in document]
    if len(present) > 1:
        raise InputError(f"a mechanism has one of [{'], ['.join(present)}], not several")
    for key in ("variable", "support", "dimension"):
        if key in document:
            raise InputError(f"[{present[0]}] fixes the {key}; leave it out")
    key = present[0]
    table = take(document, present[0], dict)
    if key == "shuffled":
        return _of_answers(table, "parameters" in document)
    words = take(document, "parameters", dict, default={})
    formula, variable, *other = _FORMULAS[key]
    with at(f"[{key}]"):
        if (formula in table) == ("points" in table):
            both = "not both" if formula in table else "there is neither"
            raise InputError(f"give {formula}, a formula of {variable}, or points; {both}")
        if "points" in table:
            refuse_unknown(table, ("points", *other))
        elif key == "profile":
            refuse_unknown(table, (formula, "support"))
        else:
            refuse_unknown(table, (formula,))
        # What few files have is loaded with the first of them.
        if "points" in table:
            if words:
                raise InputError("its points are values; leave [parameters] out")
            from symdp.model.curve_tables import (
                from_profile_points,
                from_renyi_points,
                from_trade_off_points,
            )

            listed = take(table, "points", list)
            if key == "renyi":
                return from_renyi_points(listed)
            if key == "profile":
                return from_profile_points(listed, both=take(table, "both", bool, default=True))
            return from_trade_off_points(listed, take(table, "between", str, default="unknown"))
        from symdp.model.curve_tables import from_profile, from_renyi, from_trade_off

        x = variable_symbol(variable, "interval")
        symbols = {name: declare(name, word).symbol for name, word in words.items()}
        with at(formula):
            curve = parse(take(table, formula, str), {**symbols, variable: x})
        if key == "renyi":
            return from_renyi(curve, x, parameters=words)
        if key == "trade_off":
            return from_trade_off(curve, x, parameters=words)
        with at("support"):
            ends = _support(take(table, "support", list, default=["-oo", "oo"]), symbols)
        return from_profile(curve, x, ends, parameters=words)


def _of_family(document: dict[str, Any]) -> Mechanism:
    """Return the mechanism of a [family] table."""
    for key in ("variable", "support", "dimension", "noise", "pair", *_CURVES):
        if key in document:
            raise InputError(f"[family] says all of the law; leave {key} out")
    words = take(document, "parameters", dict, default={})
    symbols = {name: declare(name, word).symbol for name, word in words.items()}
    table = take(document, "family", dict)
    with at("[family]"):
        refuse_unknown(table, ("log_partition", "with", "without", "length", "counts"))
        members: list[Any] = []
        for key in ("with", "without"):
            theta = take(table, key, object, required=True)
            with at(key):
                if isinstance(theta, dict):
                    members.append({c: _expression(v, symbols) for c, v in theta.items()})
                elif isinstance(theta, list):
                    members.append([_expression(v, symbols) for v in theta])
                else:
                    raise InputError("theta is a table of coordinates, or a list of components")
        length = take(table, "length", str)
        text = take(table, "log_partition", str, required=True)
        coordinate_symbols = {c: declare(c, "real").symbol for c in coordinates(members, length)}
        with at("log_partition"):
            a = parse(text, {**symbols, **coordinate_symbols})
        counts = take(table, "counts", bool, default=False)
        return Mechanism.family(a, *members, length=length, counts=counts, parameters=words)


def _of_randomizer(document: dict[str, Any]) -> Mechanism:
    """Return the mechanism of a [local] table, shuffled where there is a [shuffled] table."""
    for key in ("dimension", "noise", "pair", "trade_off", "profile", "renyi"):
        if key in document:
            raise InputError(f"[local] says all of the law; leave {key} out")
    words = take(document, "parameters", dict, default={})
    symbols = {name: declare(name, word).symbol for name, word in words.items()}
    table = take(document, "local", dict)
    with at("[local]"):
        refuse_unknown(table, _KEYS["[local]"])
        if ("density" in table) == ("laws" in table):
            both = "not both" if "laws" in table else "there is neither"
            raise InputError(
                f"give density, a formula of the answer and the input, or laws, a list of masses "
                f"for every input; {both}"
            )
        mechanism = _of_laws if "laws" in table else _of_formula
        randomizer = mechanism(document, table, words, symbols)
    if "shuffled" not in document:
        return randomizer
    shuffled = take(document, "shuffled", dict)
    with at("[shuffled] beside [local]"):
        refuse_unknown(shuffled, ("people",))
        return randomizer.shuffled(take(shuffled, "people", object, required=True))


def _of_laws(
    document: dict[str, Any],
    table: dict[str, Any],
    words: Mapping[str, str],
    symbols: Mapping[str, sp.Symbol],
) -> Mechanism:
    """Return the randomizer of a list of laws."""
    for key in ("variable", "support"):
        if key in document:
            raise InputError(f"laws need no {key}: their outcomes are numbered; leave it out")
    for key in ("input", "inputs"):
        if key in table:
            raise InputError(f"laws need no {key}, as there is one for every input; leave it out")
    rows = []
    for law in take(table, "laws", list):
        if not isinstance(law, list):
            raise InputError("each law must be a list with a mass for every outcome")
        with at("laws"):
            rows.append([_expression(mass, symbols) for mass in law])
    return Mechanism.local(rows, parameters=words)


def _of_formula(
    document: dict[str, Any],
    table: dict[str, Any],
    words: Mapping[str, str],
    symbols: Mapping[str, sp.Symbol],
) -> Mechanism:
    """Return the randomizer of a density."""
    support = take(document, "support", object, default=["-oo", "oo"])
    with at("support"):
        kind = kind_of(support)
        ends = _support(support, symbols)
    answer = take(document, "variable", str, required=True)
    word = take(table, "input", str, required=True)
    listed = take(table, "inputs", object, required=True)
    with at("inputs"):
        inputs = _inputs(listed, symbols)
    variables = {answer: variable_symbol(answer, kind), word: variable_symbol(word, "interval")}
    density = _formula(table, "density", {**symbols, **variables}, kind=str, required=True)
    return Mechanism.local(density, answer, word, inputs, ends, parameters=words)


def _inputs(listed: object, symbols: Mapping[str, sp.Symbol]) -> object:
    """Return inputs with their numbers exact, what is no list left for the mechanism to refuse."""
    if isinstance(listed, dict):
        return {key: _inputs(values, symbols) for key, values in listed.items()}
    if not isinstance(listed, list):
        return listed
    return [_expression(value, symbols, infinite=True) for value in listed]


def _of_answers(table: dict[str, Any], has_parameters: bool) -> Mechanism:
    """Return the mechanism of a [shuffled] table."""
    from symdp.model.shuffle import from_shuffled

    with at("[shuffled]"):
        if has_parameters:
            raise InputError("its numbers are values; leave [parameters] out")
        refuse_unknown(table, ("epsilon_0", "people", "clones"))
        size = take(table, "epsilon_0", object, required=True)
        people = take(table, "people", int, required=True)
        return from_shuffled(size, people, take(table, "clones", object))


def _additive(
    table: dict[str, Any],
    symbols: Mapping[str, sp.Symbol],
    variable: sp.Symbol,
    support: object,
    words: Mapping[str, str],
) -> Mechanism:
    with at("[noise]"):
        if "atoms" in table:
            raise InputError("atoms belong into a [pair] table, beside the densities P and Q")
        if "norm" in table or "dimension" in table:
            return _radial(table, symbols, variable, words)
        refuse_unknown(table, _KEYS["[noise]"])
        density = _formula(table, "density", symbols, kind=str, required=True)
        others = {name: symbol for name, symbol in symbols.items() if symbol != variable}
        sensitivity = _formula(table, "sensitivity", others, default=1)
        moved = _formula(table, "substitution_sensitivity", others)
        return Mechanism.additive(
            density, variable, sensitivity, support, parameters=words,
            substitution_sensitivity=moved,
            normalize=take(table, "normalize", bool, default=False),
            shift=take(table, "shift", str, default=AT_MOST),
            modes=take(table, "modes", int),
        )  # fmt: skip


def _radial(
    table: dict[str, Any],
    symbols: Mapping[str, sp.Symbol],
    variable: sp.Symbol,
    words: Mapping[str, str],
) -> Mechanism:
    """Return the mechanism of a [noise] table of noise on vectors."""
    refuse_unknown(table, ("density", "norm", "dimension", "sensitivity", "modes"))
    norm = take(table, "norm", str, required=True)
    if norm != "l2":
        raise InputError(
            f"norm = {shorten(norm)}: noise on vectors is of Euclidean lengths, norm = 'l2'; in "
            "other norms the largest shift is not known to be the worst"
        )
    others = {name: symbol for name, symbol in symbols.items() if symbol != variable}
    density = _formula(table, "density", symbols, kind=str, required=True)
    dimension = _formula(table, "dimension", others, required=True)
    sensitivity = _formula(table, "sensitivity", others, default=1)
    modes = take(table, "modes", int)
    return Mechanism.radial(
        density, variable, dimension, sensitivity, parameters=words, modes=modes
    )


def _from_pair(
    table: dict[str, Any],
    symbols: Mapping[str, sp.Symbol],
    variable: sp.Symbol,
    support: object,
    words: Mapping[str, str],
) -> Mechanism:
    with at("[pair]"):
        refuse_unknown(table, _KEYS["[pair]"])
        laws: list[Any] = []
        for name in ("P", "Q"):
            law = take(table, name, object, required=True)
            with at(name):
                laws.append(
                    [_expression(mass, symbols) for mass in law]
                    if isinstance(law, list)
                    else _expression(law, symbols)
                )
        listed = take(table, "atoms", dict, default={})
        with at("atoms"):
            atoms = _atoms(listed, symbols)
        others = {name: symbol for name, symbol in symbols.items() if symbol != variable}
        return Mechanism.from_pair(
            laws[0], laws[1], variable, support, parameters=words, atoms=atoms,
            normalize=take(table, "normalize", bool, default=False),
            envelope=take(table, "envelope", bool, default=False),
            rho=_formula(table, "rho", others),
        )  # fmt: skip


def _atoms(table: dict[str, Any], symbols: Mapping[str, sp.Symbol]) -> dict[Any, Any]:
    """Return places and masses, those that are no list left for the mechanism to refuse."""
    atoms: dict[Any, Any] = {}
    for text, masses in table.items():
        value = parse(text, symbols)
        if value in atoms:
            raise InputError(f"the place {shorten(text)} is there twice")
        listed = isinstance(masses, list)
        atoms[value] = [_expression(mass, symbols) for mass in masses] if listed else masses
    return atoms


def with_sampling(mechanism: Mechanism, table: dict[str, Any] | None) -> Mechanism:
    """Return the mechanism with what its [sampling] table says."""
    if table is None:
        return mechanism
    with at("[sampling]"):
        refuse_unknown(table, _KEYS["[sampling]"])
        scheme = take(table, "scheme", str, required=True)
        rate = take(table, "rate", object, required=scheme != ALLOCATION)
        if rate is not None and not isinstance(rate, str):
            rate = exact(rate, "rate")
        return mechanism.subsample(
            scheme,
            rate,
            take(table, "batch", int),
            records=take(table, "records", int),
            group=take(table, "group", int, default=1),
            steps=take(table, "steps", int),
            participations=take(table, "participations", int),
            released=take(table, "released", str, default=SUM),
        )


def with_relation(mechanism: Mechanism, relation: str | None) -> Mechanism:
    """Return the mechanism with its neighbouring relation, if one is named."""
    if relation is None:
        return mechanism
    with at("relation"):
        return mechanism.under(relation)


def _formula(
    table: Mapping[str, Any], key: str, symbols: Mapping[str, sp.Symbol], **rules: Any
) -> sp.Expr | None:
    """Return the exact number or formula of a key, None where there is none; see `take`."""
    value = take(table, key, rules.pop("kind", object), **rules)
    with at(key):
        if value is None:
            return None
        return _expression(value, symbols)


def _support(support: object, symbols: Mapping[str, sp.Symbol]) -> object:
    if isinstance(support, str):
        return support
    listed = support["points"] if isinstance(support, dict) else support
    if not isinstance(listed, list):
        raise InputError("points must be a list")
    values = [_expression(value, symbols, infinite=True) for value in listed]
    if isinstance(support, dict):
        return {"points": values}
    return values


def _expression(
    value: object, symbols: Mapping[str, sp.Symbol], *, infinite: bool = False
) -> sp.Expr:
    if isinstance(value, str):
        return parse(value, symbols, infinite=infinite)
    if isinstance(value, Decimal) and value.is_infinite() and infinite:
        if value > 0:
            return sp.oo
        return -sp.oo
    return exact(value)


def _refuse_unused(mechanism: Mechanism) -> None:
    sampling = mechanism.sampling
    used = symbols_of(mechanism.source, mechanism.support)
    used |= sampling.rate.free_symbols if sampling else frozenset()
    for name, symbol in mechanism.parameters.items():
        if symbol not in used:
            others = {str(other) for other in used} - set(mechanism.parameters)
            hint = suggestion(name, others) or "; use it or leave it out"
            raise InputError(f"[parameters] declares '{name}' but no formula uses it{hint}")


def read_text(path: str | Path) -> str:
    """Return the text of a file of reasonable size; InputError where there is none."""
    if not isinstance(path, str | Path):
        raise InputError("give the path of a TOML file, as in 'mechanism.toml'")
    try:
        file = Path(path)
        if file.is_dir():
            raise InputError("this is a directory; give a TOML file")
        if not file.exists():
            raise InputError("there is no such file")
        if not file.is_file() or file.stat().st_size > _LARGEST_FILE:
            raise InputError(f"this is no ordinary file of at most {_LARGEST_FILE} bytes")
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"the file is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror}") from None


def document_of(text: str) -> dict[str, Any]:
    """Return TOML as a dictionary, its numbers exact decimals."""
    if not isinstance(text, str):
        raise InputError(f"TOML text is needed, not {text!r:.40}")
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except RecursionError:
        raise InputError("the file is not TOML that can be read: nested too deeply") from None
    except ValueError as error:
        reason = " ".join(str(error).split())[:120]
        hint = "; text has quotes around it" if reason.startswith("Invalid value") else ""
        raise InputError(f"the file is not TOML: {reason}{hint}") from None


def take(
    table: Mapping[str, Any], key: str, kind: type, *, required: bool = False, default: Any = None
) -> Any:
    """Return the entry of a key if it is of a kind; InputError otherwise."""
    if key not in table:
        if required:
            example = f": write {_EXAMPLES[key]}" if key in _EXAMPLES else ""
            raise InputError(f"the key '{key}' is missing{example}")
        return default
    value = table[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InputError(f"{key} must be {_WORDS[kind]}, not {shorten(str(value))}")
    return value


def refuse_unknown(table: Mapping[str, Any], valid: Sequence[str]) -> None:
    """Raise InputError for a key that the table does not know, naming the tables that do."""
    for key in table:
        if key in valid:
            continue
        homes = [name for name, keys in _KEYS.items() if key in keys]
        if key in _TOP and valid in _KEYS.values():
            homes.append("the top of the file")
        advice = suggestion(key, valid) or f" (known are {', '.join(valid)})"
        if homes and len(valid) > 1:
            advice = f"; it is a key of {' and '.join(homes)}"
        raise InputError(f"unknown key {shorten(key)}{advice}")
