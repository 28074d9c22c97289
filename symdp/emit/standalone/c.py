"""Emit a standalone accountant in C99 that needs libm alone."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

import mpmath
import sympy as sp

from symdp.emit.constants import constant_value
from symdp.emit.standalone.corrections import correction_terms
from symdp.emit.standalone.model import (
    CONDITIONS,
    Argument,
    ClosedForm,
    Model,
    Points,
    c_comment,
    resource,
)
from symdp.emit.standalone.tape import Line, tape

_BITS = 160
_REACH = 48  # terms more than asked for, about a removable singularity
_CODES = "DONE, BAD_INPUT, TOO_FAR, NO_SADDLE, OUT_OF_REGIME, NOT_SETTLED, NO_EPSILON"


def to_c(model: Model) -> str:
    """Return a C file with NAME_log_delta, NAME_epsilon and NAME_cgf of one mechanism.

    K(t) and its derivatives come from the closed form by Taylor arithmetic over pairs of doubles
    (32 digits), or from weighted points; δ is MSD_k [SPA (60), (61)], ε its inverse. Functions
    return 0, or a code that NAME_message spells out.

    Parameters
    ----------
    model : Model

    Raises
    ------
    InputError
        For a closed form with a function that has no series here.
    """
    highest = 2 * model.order + 4
    parts = [
        _comment(model),
        _prototypes(model),
        "#include <math.h>\n\n#ifdef __FAST_MATH__\n"
        '#error "pairs of doubles need exact rounding: compile without -ffast-math"\n#endif',
        f"enum {{ {_CODES} }};\nenum {{ ORDERS = {model.order}, HIGHEST = {highest} }};",
        resource("double_double.c"),
    ]
    if isinstance(model.law, ClosedForm):
        parts += _closed(model, model.law, highest)
    else:
        parts += _points(model.law)
    parts += [_corrections(model.order), resource("saddlepoint.c"), _public(model)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _comment(model: Model) -> str:
    lines = [model.heading, *model.notes, "", "Compile with: cc -O2 -c FILE.c; link with -lm."]
    lines.append("A program to try it: cc -O2 -DACCOUNTANT_MAIN FILE.c -lm")
    return c_comment(lines)


def _typed(arguments: Sequence[Argument]) -> str:
    return "".join(f", double {a.name}" for a in arguments)


def _prototypes(model: Model) -> str:
    name, typed = model.prefix, _typed(model.arguments)
    return (
        "/* Each returns 0, or a code that NAME_message spells out. log_delta is MSD_order, and\n"
        " * next_term the size of the first term left out, relative to delta. */\n"
        f"int {name}_log_delta(double epsilon, long long count, int order{typed},\n"
        "    double *log_delta, double *next_term);\n"
        "/* The smallest epsilon >= 0 with delta(epsilon) at most delta. */\n"
        f"int {name}_epsilon(double delta, long long count, int order{typed}, double *epsilon);\n"
        "/* K, K', ... up to a derivative, of one step. */\n"
        f"int {name}_cgf(double tilt, int derivatives{typed}, double *values);\n"
        f"const char *{name}_message(int code);"
    )


def _closed(model: Model, law: ClosedForm, highest: int) -> list[str]:
    places = {argument.symbol: i for i, argument in enumerate(model.arguments)}
    removable = len(law.removable)
    tapes = [_function("cgf_tape", tape(law.cgf, law.tilt, places, bool(removable)))]
    for kind, expressions in (("fact", law.facts), ("removable", law.removable)):
        tapes += [
            _function(f"{kind}_{i}", tape(expression, law.tilt, places))
            for i, expression in enumerate(expressions)
        ]
    lists = []
    for kind, count in (("fact", len(law.facts)), ("removable", removable)):
        names = ", ".join(f"{kind}_{i}" for i in range(count)) or "0"
        lists.append(f"static const tape {kind}_tapes[] = {{ {names} }};")
    terms = highest + 1 + (_REACH if removable else 0)
    return [
        f"enum {{ TERMS_MAX = {max(terms, 3)}, REMOVABLE = {removable}, REACH = {_REACH} }};",
        resource("series.c"),
        "typedef struct {\n"
        "    double count, log_finite_mass, lower, upper, least, largest;\n"
        f"    const double *p;\n    dd removable[{max(removable, 1)}];\n}} law;",
        "/* Straight code for K and for what else is known of one step. */\n"
        "typedef void (*tape)(arithmetic *, dd, const double *, series *);",
        *tapes,
        "\n".join(lists),
        resource("closed.c"),
    ]


def _function(name: str, lines: Sequence[Line]) -> str:
    body = []
    for i, line in enumerate(lines):
        v = [f"&v[{k}]" for k in line.operands]
        if line.operation == "tilt":
            body.append(f"series_tilt(a, &v[{i}], tilt);")
        elif line.operation == "argument":
            body.append(f"series_constant(a, &v[{i}], p[{line.detail}], 0.0, 0);")
        elif line.operation == "constant":
            body.append(f"series_constant(a, &v[{i}], {_literal(line.detail)});")
        elif line.operation in ("add", "mul"):
            first = v[0]
            if len(v) == 1:
                body.append(f"v[{i}] = *{first};")
            for other in v[1:]:
                body.append(f"series_{line.operation}(a, &v[{i}], {first}, {other});")
                first = f"&v[{i}]"
        else:
            body.append(f"series_{line.operation}(a, &v[{i}], {', '.join(v)});")
        if line.operation not in ("tilt", "argument", "constant"):
            body.append("if (a->failed) return;")
    unused = "".join(
        f"    (void) {word};\n"
        for word, operation in (("tilt", "tilt"), ("p", "argument"))
        if operation not in {line.operation for line in lines}
    )
    code = "".join(f"    {line}\n" for line in body)
    return (
        f"static void {name}(arithmetic *a, dd tilt, const double *p, series *result)\n{{\n"
        f"    series v[{len(lines)}];\n    *result = series_zero();\n{unused}{code}"
        f"    *result = v[{len(lines) - 1}];\n}}"
    )


def _literal(value: object) -> str:
    """Return a constant as two doubles and a power of two."""
    if value in (sp.oo, -sp.oo):
        return "INFINITY, 0.0, 0" if value == sp.oo else "-INFINITY, 0.0, 0"
    with mpmath.workprec(_BITS):
        number = constant_value(value, _BITS)
        mantissa, exponent = mpmath.frexp(number)
        high = float(mantissa)
        low = float(mantissa - mpmath.mpf(high))
    return f"{high!r}, {low!r}, {int(exponent)}"


def _number(value: float) -> str:
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    return repr(value)


def _points(law: Points) -> list[str]:
    arrays = [
        f"static const double {name}[POINTS] = {{\n    {_rows(values)}\n}};"
        for name, values in (("CENTRED", law.centred), ("LOG_WEIGHT", law.log_weight))
    ]
    named = {
        "MEAN_HIGH": law.mean[0],
        "MEAN_LOW": law.mean[1],
        "LOG_FINITE_MASS": law.log_finite_mass,
        "DOMAIN_LOWER": law.domain[0],
        "DOMAIN_UPPER": law.domain[1],
        "LEAST_LOSS": law.loss_range[0],
        "LARGEST_LOSS": law.loss_range[1],
        "LOWEST_TILT": law.tilts[0],
        "HIGHEST_TILT": law.tilts[1],
    }
    constants = [f"#define {name} ({_number(value)})" for name, value in named.items()]
    return [
        f"enum {{ POINTS = {len(law.centred)} }};\n" + "\n".join(constants),
        *arrays,
        "typedef struct {\n"
        "    double count, log_finite_mass, lower, upper, least, largest;\n"
        "    double lowest_tilt, highest_tilt;\n} law;",
        resource("nodes.c"),
    ]


def _rows(values: Sequence[float]) -> str:
    rows = (", ".join(map(_number, values[i : i + 4])) for i in range(0, len(values), 4))
    return ",\n    ".join(rows)


def _corrections(order: int) -> str:
    code = []
    for k in range(1, order + 2):
        terms = "\n        + ".join(correction_terms(k)).replace("+ -", "- ")
        code.append(f"    if (count < {k}) return;\n    terms[{k - 1}] = {terms};\n")
    return (
        "/* The corrections at n^-1, ..., n^-count; f[j] = F_j / F_2^(j/2). */\n"
        "static void corrections(const double *f, int count, double *terms)\n{\n"
        f"{''.join(code)}}}"
    )


def _public(model: Model) -> str:
    arguments = model.arguments
    closed = isinstance(model.law, ClosedForm)
    names = [a.name for a in arguments]
    checks = "".join(f"    if (!({_condition(a)})) return BAD_INPUT;\n" for a in arguments)
    rules = [f"{a.name} must be {a.rule}" for a in arguments]
    rules += [f"count from 1 to 1e15, order from 0 to {model.order}", "0 < delta < 1"]
    pack = ""
    if closed:
        pack = f"    double p[{max(len(names), 1)}] = {{ {', '.join(names) or '0.0'} }};\n"
    # Declarations come first in a block.
    return Template(resource("public.c.txt")).substitute(
        prefix=model.prefix,
        typed=_typed(arguments),
        typed_all=_typed(arguments),
        checks=checks,
        passed="".join(f", {name}" for name in names),
        pack=pack + ("    l.p = p;\n" if closed else ""),
        rules="; ".join(rules).replace('"', "'"),
        argc=5 + len(names),
        usage="".join(f" {name.upper()}" for name in names),
        parsed="".join(f", atof(argv[{5 + i}])" for i in range(len(names))),
    )


def _condition(argument: Argument) -> str:
    condition = CONDITIONS[argument.domain].format(argument.name)
    condition = condition.replace(" and ", " && ")
    name = argument.name
    condition = condition.replace(f"whole({name})", f"floor({name}) == {name}")
    return f"fabs({name}) <= 1e300 && {condition}"
