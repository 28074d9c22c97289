"""Results of benchmarks as JSON that others can send: one table says what a file may hold.

    python -m benchmarks.results check FILE …      # one line for what is wrong; else its tables
    python -m benchmarks.results schema            # benchmarks/schema.json, written from FIELDS

`benchmarks.peers` and `benchmarks.days` write such files. Nothing in a file is run, and a number is
read as a decimal of at most 60 letters, so that a δ below every double is one, too.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from benchmarks.peers.answers import Answer, Outcome
from benchmarks.peers.page import duration, megabytes, table
from benchmarks.peers.verdict import shown_error, words
from symdp.errors import InputError, suggestion

FORMAT = "symdp benchmark results 1"
SCHEMA = Path(__file__).with_name("schema.json")
LARGEST = 20_000_000  # bytes of a file
DECIMAL = r"^-?[0-9]{1,50}(\.[0-9]{1,50})?([eE][+-]?[0-9]{1,4})?$"
SMALLEST = Fraction(sys.float_info.min)
_MOST = Fraction(sys.float_info.max)
KINDS = ("exact", "upper", "lower", "estimate")  # what a program claims about its number


@dataclass(frozen=True)
class Field:
    """One key: what its value may be, in words and as a JSON schema, and whether it must stand."""

    says: str
    schema: Mapping[str, Any]
    required: bool = True


def _text(says: str, required: bool = True) -> Field:
    return Field(says, {"type": "string", "maxLength": 500}, required)


def _choice(says: str, *values: Any) -> Field:
    return Field(says, {"enum": list(values)})


def _number(says: str, required: bool = True) -> Field:
    return Field(says, {"type": ["number", "string", "null"], "pattern": DECIMAL}, required)


def _size(says: str) -> Field:
    return Field(says, {"type": ["number", "null"], "minimum": 0})


FILE = {
    "format": _choice("what the file is", FORMAT),
    "measured": Field(
        "the day, YYYY-MM-DD", {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
    ),
    "machine": _text("processor, cores and what else ran, in words"),
    "clock": _choice("what seconds are of", "processor", "wall"),
    "rows": Field("one for each answer", {"type": "array", "items": {"$ref": "#/$defs/row"}}),
}
ROW = {
    "question": _text(
        "noise, sampling, steps in one line; or a file of benchmarks/, and its steps"
    ),
    "asks": _choice("what is asked for", "delta", "epsilon"),
    "at": _number("the ε, or the δ, at which it is asked"),
    "truth": Field(
        "proved ends, or null", {"anyOf": [{"$ref": "#/$defs/truth"}, {"type": "null"}]}
    ),
    "program": _text("who answers"),
    "setting": _text("its options; empty for its defaults", required=False),
    "version": _text("of the program"),
    "kind": _choice("what it claims: exact, a bound of one side, an estimate", *KINDS, None),
    "answer": _number("the number; null if there is none"),
    "lower": _number("the lower end of its own interval", required=False),
    "upper": _number("the upper end", required=False),
    "failure": _text("why there is no number, in words", required=False),
    "seconds": _size("for one answer from the parameters, null if not known"),
    "memory": _size("what the answer added to its process at most, in MB, null if not known"),
}
TRUTH = {
    "lower": _number("the lower end"),
    "upper": _number("the upper end"),
    "proof": _text("where it comes from: certify, a grid, a closed form"),
}
PARTS = {"row": ROW, "truth": TRUTH}


def schema() -> dict[str, Any]:
    """Return the JSON schema that FILE, ROW and TRUTH say."""

    def made(fields: Mapping[str, Field]) -> dict[str, Any]:
        return {
            "type": "object",
            "additionalProperties": False,
            "required": [name for name, field in fields.items() if field.required],
            "properties": {n: {"description": f.says, **f.schema} for n, f in fields.items()},
        }

    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": FORMAT}
    return head | made(FILE) | {"$defs": {name: made(part) for name, part in PARTS.items()}}


def read(text: str) -> dict[str, Any]:
    """Return a file's object; raise an `InputError` at the first thing that is wrong."""
    if len(text) > LARGEST:
        raise InputError(f"a file of {len(text)} bytes is too large; there may be {LARGEST}")
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InputError(f"no JSON: {error!s:.200}") from None
    _check(found, FILE, "the file")
    for place, row in enumerate(found["rows"], start=1):
        where = f"row {place}"
        _check(row, ROW, where)
        _ordered(row, ("lower", "upper"), where)
        if (truth := row["truth"]) is not None:
            _check(truth, TRUTH, f"{where}, truth")
            _ordered(truth, ("lower", "upper"), f"{where}, truth")
            if None in (truth["lower"], truth["upper"]):
                raise InputError(
                    f"{where}, truth: both ends must be numbers; else write null for it"
                )
        if (row["answer"] is None) != bool(row.get("failure")):
            raise InputError(f"{where}: give answer, or null and failure in words")
        if (row["answer"] is None) != (row["kind"] is None):
            raise InputError(f"{where}, kind: null where there is no answer, else one of {KINDS}")
        if row["at"] is None:
            raise InputError(f"{where}, at: the ε or δ that was asked at must be a number")
    return found


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number; write null, and failure in words")


_TYPES = {"string": str, "number": int | float, "array": list, "null": type(None)}


def _check(found: Any, fields: Mapping[str, Field], where: str) -> None:
    if not isinstance(found, dict):
        raise InputError(f"{where} must be an object of {', '.join(fields)}")
    for name in found:
        if name not in fields:
            raise InputError(f"{where} has no key {name!r:.60}{suggestion(name, list(fields))}")
    for name, field in fields.items():
        if name not in found:
            if field.required:
                raise InputError(f"{where} lacks {name}: {field.says}")
            continue
        if wrong := _wrong(found[name], field.schema):
            raise InputError(f"{where}, {name}: {found[name]!r:.60} {wrong}")


def _wrong(value: Any, rule: Mapping[str, Any]) -> str:
    """Return what breaks the rule, empty if nothing does; rows and truths are looked at apart."""
    if "enum" in rule and (isinstance(value, bool) or value not in rule["enum"]):
        return f"must be one of {', '.join(map(str, rule['enum']))}"
    allowed = [rule["type"]] if isinstance(rule.get("type"), str) else rule.get("type", ())
    fits = not isinstance(value, bool) and isinstance(value, tuple(_TYPES[n] for n in allowed))
    if allowed and not fits:
        return f"must be of type {' or '.join(allowed)}"
    if isinstance(value, str):
        if len(value) > rule.get("maxLength", len(value)):
            return f"is longer than {rule['maxLength']} letters"
        if "pattern" in rule and not re.fullmatch(rule["pattern"], value):
            return "must be a decimal" if rule["pattern"] == DECIMAL else "must be a day YYYY-MM-DD"
    if isinstance(value, int | float):
        if not abs(value) <= sys.float_info.max:
            return "is beyond every double; write it as a text"
        if value < rule.get("minimum", value):
            return f"must be at least {rule['minimum']}"
    return ""


def _ordered(found: Mapping[str, Any], names: Sequence[str], where: str) -> None:
    values = [(name, number(found[name])) for name in names if found.get(name) is not None]
    for (one, low), (other, high) in pairwise(values):
        if low > high:
            raise InputError(f"{where}: {one} must not be above {other}")


def number(value: float | str) -> Fraction:
    """Return a number of a file exactly, a decimal as it is written."""
    return Fraction(value)


def tables(found: Mapping[str, Any]) -> str:
    """Return every question as a heading and a table, in Markdown."""
    parts = [f"Measured {found['measured']} on {found['machine']}; {found['clock']} seconds.\n"]

    def asked(row: Mapping[str, Any]) -> str:
        letter = {"delta": "δ at ε", "epsilon": "ε at δ"}[row["asks"]]
        return f"## {row['question']}: {letter} = {row['at']}\n"

    for heading, rows in groupby(found["rows"], asked):
        listed = list(rows)
        parts.append(heading)
        if truth := listed[0]["truth"]:
            parts.append(f"Truth: {truth['lower']} … {truth['upper']}, by {truth['proof']}.\n")
        header = ("program", "setting", "answer", "relative error", "seconds", "memory", "in words")
        parts.append(table(header, map(_cells, listed)))
    return "\n".join(parts)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    name, setting = f"{row['program']} {row['version']}", row.get("setting", "")
    costs = (duration(row["seconds"]), megabytes(row["memory"]))
    if row["answer"] is None:
        return name, setting, "", "", *costs, row["failure"]
    shown = str(row["answer"]) if isinstance(row["answer"], str) else f"{row['answer']:.10g}"
    if not row["truth"]:
        return name, setting, shown, "", *costs, ""
    ends = [number(row["truth"][end]) for end in ("lower", "upper")]
    own = [None if row.get(end) is None else number(row[end]) for end in ("lower", "upper")]
    value = number(row["answer"])
    if 0 < ends[1] < SMALLEST:  # all are multiplied by one number, as doubles end there
        value, *ends = (x / ends[1] for x in (value, *ends))
        own = [None if x is None else x / number(row["truth"]["upper"]) for x in own]
    double = float(min(max(value, -_MOST), _MOST))
    truth = ends[0], ends[1]
    said = words(
        Outcome(Answer(double, row["kind"], *own)), truth, row["asks"].replace("delta", "δ")
    )
    error = shown_error(double, truth) if sum(truth) else f"{double:.1e} off"
    return name, setting, shown, error, *costs, said


def row(
    asked: tuple[str, str, float],
    truth: tuple[Fraction, Fraction] | None,
    program: tuple[str, str, str],
    outcome: Outcome,
    seconds: float | None,
) -> dict[str, Any]:
    """Return a row: (question, asks, at), proved ends, (program, setting, version), an outcome."""
    ends = None
    if truth is not None:
        low, high = _decimal(truth[0], ROUND_FLOOR), _decimal(truth[1], ROUND_CEILING)
        ends = {"lower": low, "upper": high, "proof": "certify"}
    answer, failure = outcome.answer, outcome.failure
    if answer is not None and not math.isfinite(answer.value):
        answer, failure = None, f"returns {answer.value}"
    found = {
        **dict(zip(("question", "asks", "at"), asked, strict=True)),
        "truth": ends,
        **dict(zip(("program", "setting", "version"), program, strict=True)),
        "kind": answer and answer.kind,
        "answer": answer and answer.value,
        "lower": answer and answer.lower,
        "upper": answer and answer.upper,
        "failure": failure if answer is None else None,
        "seconds": seconds,
        "memory": outcome.megabytes,
    }
    for end, rounding in (("lower", ROUND_FLOOR), ("upper", ROUND_CEILING)):
        if isinstance(found[end], Fraction):
            found[end] = _decimal(found[end], rounding)
    return {k: v for k, v in found.items() if v is not None or ROW[k].required}


def _decimal(value: Fraction, rounding: str) -> str:
    with localcontext(prec=20, rounding=rounding):
        return str(Decimal(value.numerator) / Decimal(value.denominator)).replace("E", "e")


def file_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a file measured here, today, checked as a stranger's would be."""
    head = {
        "format": FORMAT,
        "measured": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, under a load of {max(os.getloadavg()):.1f}",
        "clock": "processor",
    }
    text = json.dumps({**head, "rows": list(rows)}, indent=1, ensure_ascii=False, allow_nan=False)
    read(text)
    return text + "\n"


def main(words: Sequence[str]) -> int:
    """Check files and print their tables, or print the schema."""
    match words:
        case ["schema"]:
            print(json.dumps(schema(), indent=1, ensure_ascii=False))
            return 0
        case ["check", *files] if files:
            for name in files:
                try:
                    found = read(Path(name).read_text("utf-8"))
                except (InputError, OSError, UnicodeDecodeError) as error:
                    print(f"{name}: {error}", file=sys.stderr)
                    return 2
                print(tables(found))
                print(f"{name}: {len(found['rows'])} rows, as the schema says")
            return 0
    print((__doc__ or "").strip(), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
