"""Emit a standalone accountant in Python: the standard library, and NumPy where K is numeric."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

import mpmath
import sympy as sp

from symdp.emit.constants import constant_value
from symdp.emit.standalone.corrections import correction_terms
from symdp.emit.standalone.model import (
    CONDITIONS,
    MARKER,
    Argument,
    ClosedForm,
    Model,
    Points,
    resource,
)
from symdp.emit.standalone.tape import Line, tape

_DIGITS, _BITS = 70, 250  # of constants, beyond what the emitted code computes with
_IMPORTS = {
    ClosedForm: """\
import math
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, DecimalException, localcontext
from typing import Protocol
""",
    Points: """\
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
""",
}


def to_python(model: Model) -> str:
    """Return a Python module with `log_delta`, `delta`, `epsilon` and `cgf` of one mechanism.

    K(t) and its derivatives come from the closed form by Taylor arithmetic over 60 digits, so that
    neither differences inside K nor a million steps cost accuracy, or from weighted points; δ is
    MSD_k [SPA (60), (61)], ε its inverse. The file needs nothing of this package.

    Parameters
    ----------
    model : Model

    Raises
    ------
    InputError
        For a closed form with a function that has no series here.
    """
    backend = "series" if isinstance(model.law, ClosedForm) else "nodes"
    law = (
        _closed_law(model, model.law)
        if isinstance(model.law, ClosedForm)
        else _point_law(model, model.law)
    )
    parts = [
        _header(model),
        "from __future__ import annotations\n",
        _IMPORTS[type(model.law)],
        f"HIGHEST_ORDER = {model.order}\n",
        _runtime("saddlepoint"),
        _runtime(backend),
        law,
        _corrections(model.order),
        _public(model),
    ]
    return "\n\n\n".join(part.strip("\n") for part in parts) + "\n"


def _runtime(name: str) -> str:
    return resource(f"{name}.py").partition(MARKER)[2]


def _header(model: Model) -> str:
    lines = [
        f"{model.heading}",
        "",
        *model.notes,
        "",
        "log_delta(epsilon, count, order=..., ...) -> (log delta, next term of the series)",
        "delta(epsilon, count, ...), epsilon(delta, count, ...), cgf(tilt, derivatives, ...)",
    ]
    text = "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text}\n"""'


def _closed_law(model: Model, law: ClosedForm) -> str:
    places = {argument.symbol: i for i, argument in enumerate(model.arguments)}
    tapes = [("_cgf_tape", law.cgf, bool(law.removable))]
    tapes += [(f"_fact_{i}", fact, False) for i, fact in enumerate(law.facts)]
    tapes += [(f"_removable_{i}", at, False) for i, at in enumerate(law.removable)]
    functions = [
        _function(name, tape(expression, law.tilt, places, removable))
        for name, expression, removable in tapes
    ]
    facts = ", ".join(f"_fact_{i}" for i in range(len(law.facts)))
    removable = "".join(f"_removable_{i}, " for i in range(len(law.removable)))
    values = "".join(f"values[{a.name!r}], " for a in model.arguments)
    body = (
        "def _law(count: int, values: dict[str, Decimal]) -> _SeriesLaw:\n"
        f"    return _SeriesLaw(count, ({values}), _cgf_tape, ({facts}), ({removable}))\n"
    )
    return "\n\n".join([*functions, body])


def _function(name: str, lines: Sequence[Line]) -> str:
    body = []
    for i, line in enumerate(lines):
        operands = ", ".join(f"v{k}" for k in line.operands)
        if line.operation == "tilt":
            right = "t"
        elif line.operation == "argument":
            right = f"p[{line.detail}]"
        elif line.operation == "constant":
            right = f'a.constant("{_decimal(line.detail)}")'
        else:
            right = f"a.{line.operation}({operands})"
        body.append(f"    v{i} = {right}\n")
    return (
        f"def {name}(a: _Arithmetic, t: _Series, p: Sequence[_Series]) -> _Series:\n"
        f"{''.join(body)}    return v{len(lines) - 1}\n"
    )


def _decimal(value: object) -> str:
    """Return a constant to more digits than the emitted code computes with."""
    if value in (sp.oo, -sp.oo):
        return "Infinity" if value == sp.oo else "-Infinity"
    if isinstance(value, sp.Integer):
        return str(value)
    with mpmath.workdps(_DIGITS):
        return str(mpmath.nstr(constant_value(value, _BITS), _DIGITS, strip_zeros=True))


def _point_law(model: Model, law: Points) -> str:
    facts = (law.log_finite_mass, law.domain, law.loss_range, law.tilts)
    return (
        f"_CENTRED = np.array({_array(law.centred)})\n"
        f"_LOG_WEIGHT = np.array({_array(law.log_weight)})\n\n\n"
        "def _law(count: int, values: dict[str, Any]) -> _NodeLaw:\n"
        f"    inf = math.inf\n    facts = {facts!r}\n"
        f"    return _NodeLaw(count, _CENTRED, _LOG_WEIGHT, {law.mean!r}, facts)\n"
    )


def _array(values: Sequence[float]) -> str:
    rows = [", ".join(map(repr, values[i : i + 4])) for i in range(0, len(values), 4)]
    return "[\n    " + ",\n    ".join(rows) + ",\n]"


def _corrections(order: int) -> str:
    # The list reaches as far as the derivatives do: the order asked for and one more.
    text = "def _corrections(f: Sequence[float]) -> list[float]:\n    terms: list[float] = []\n"
    for k in range(1, order + 2):
        terms = "\n            + ".join(correction_terms(k)).replace("+ -", "- ")
        text += (
            f"    if len(f) > {2 * k + 2}:\n        terms.append(\n            {terms}\n        )\n"
        )
    return text + "    return terms\n"


def _public(model: Model) -> str:
    arguments = model.arguments
    names = "".join(f"{a.name}: float | str, " for a in arguments)
    template = Template(resource("public.txt"))
    text = template.substitute(
        names=names,
        star=f", *, {names[:-2]}" if names else "",
        passing="".join(f", {a.name}={a.name}" for a in arguments),
        kind="Decimal" if isinstance(model.law, ClosedForm) else "float",
        rules="".join(f"\n    {a.name} : {a.rule}" for a in arguments) + "\n" * bool(arguments),
        checks="".join(map(_check, arguments)),
    )
    return f"{_NUMBER}\n\n{text}" if arguments else text


def _check(argument: Argument) -> str:
    name = argument.name
    condition = (
        CONDITIONS[argument.domain].format("value").replace("whole(value)", "value % 1 == 0")
    )
    return (
        f"    value = values[{name!r}] = _number({name!r}, {name})\n"
        f"    if not ({condition}):\n"
        f'        raise ValueError(f"{name} must be {argument.rule}, not {{{name}!r}}")\n'
    )


_NUMBER = """\
def _number(name: str, value: object) -> Decimal:
    # A float means the decimal that it prints: 0.1 is 1/10.
    try:
        number = Decimal(str(value))
    except DecimalException:
        raise ValueError(f"{name} must be a number, not {value!r}") from None
    if not number.is_finite():
        raise ValueError(f"{name} must be a finite number, not {value!r}")
    return number
"""
