"""How a file of each language is put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symdp.emit.standalone.functions import JAVASCRIPT, C
from symdp.emit.standalone.model import CONDITIONS, Model, resource
from symdp.emit.standalone.translate import translate

_DECLARED = {name: ["float", "Number", "Vector"] for name in ("log_p", "log_q", "loss_at", "term")}


@dataclass(frozen=True)
class Parts:
    """What is known of a mechanism once its expressions are written out."""

    model: Model
    enums: dict[str, int]
    tables: dict[str, list[float]]
    functions: list[str]
    assignments: list[str]
    constants: int

    @property
    def names(self) -> list[str]:
        """The names of the parameters."""
        return [a.name for a in self.model.arguments]

    @property
    def header(self) -> list[str]:
        """The lines that begin the file."""
        return [self.model.heading, "", *self.model.notes]


def _accountant() -> str:
    """Return the accountant as every language has it."""
    names = ("outline", "nodes", "sums", "accountant")
    return "\n\n\n".join(resource(f"{name}.py") for name in names)


def _rows(values: Sequence[float]) -> str:
    texts = [repr(v).replace("inf", "INFINITY") for v in values] or ["0"]
    rows = [", ".join(texts[i : i + 4]) for i in range(0, len(texts), 4)]
    return ",\n    ".join(rows)


def _checks(model: Model, entry: str, sentence: str, signs: dict[str, str]) -> str:
    text = ""
    for i, argument in enumerate(model.arguments):
        condition = CONDITIONS[argument.domain].format(entry.format(i))
        for word, sign in signs.items():
            condition = condition.replace(word, sign)
        text += sentence.format(condition, _quoted(f"{argument.name} must be {argument.rule}"))
    return text


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def python_file(own: Parts) -> list[str]:
    """Return the parts of a file in Python."""
    values = ", ".join(f"{name}=VALUE" for name in own.names)
    usage = f"delta(1.0, 100{values and ', ' + values}), epsilon(1e-5, 100, ...), curve, log_delta"
    words = " ".join(f"{name}=VALUE" for name in own.names)
    header = [
        *own.header, "", usage,
        f"python FILE.py epsilon=VALUE|delta=VALUE n=VALUE {words} [remove|add|both]",
    ]  # fmt: skip
    text = "\n".join(header).replace("\\", "\\\\").replace('"""', "'''")
    checks = _checks(own.model, "p[{}]", "    if not ({}):\n        return {}\n", {})
    enums = "\n".join(f"{name} = {value}" for name, value in own.enums.items())
    lists = "\n".join(
        f"{name} = np.array([\n    {_rows(values)},\n])"
        if name in ("PLACES", "WEIGHTS")
        else f"{name} = [{', '.join(map(repr, values)).replace('inf', 'INFINITY')}]"
        for name, values in own.tables.items()
    )
    assigned = "".join(f"    {line}\n" for line in own.assignments)
    return [
        f'"""{text}\n"""',
        "from __future__ import annotations",
        "import math\nimport sys\nfrom fractions import Fraction\nfrom typing import Any",
        "import numpy as np",
        resource("primitives.py"),
        f"{enums}\nNAMES = {own.names!r}\n{lists}",
        *own.functions,
        _accountant(),
        f"def constants(p):\n    c = np.zeros({own.constants})\n{assigned}    return c",
        f"def check(p):\n{checks}    return None",
        resource("public.py"),
    ]


def javascript_file(own: Parts) -> list[str]:
    """Return the parts of an ES module."""
    comment = "\n".join(f" * {line}".rstrip() for line in own.header).replace("*/", "* /")
    signs = {" and ": " && ", "==": "===", "0 <= p": "0 <= p"}
    checks = _checks(own.model, "p[{}]", "  if (!({})) return {};\n", signs)
    enums = "".join(f"const {name} = {value};\n" for name, value in own.enums.items())
    lists = "".join(
        f"const {name} = Float64Array.of({_rows(values)});\n" for name, values in own.tables.items()
    )
    arguments = ", ".join(
        f"{{ name: {_quoted(a.name)}, domain: {_quoted(a.domain)}, rule: {_quoted(a.rule)} }}"
        for a in own.model.arguments
    )
    assigned = "".join(f"  {line}\n" for line in own.assignments)
    return [
        f"/*\n{comment}\n */",
        resource("primitives.js"),
        f"{enums}{lists}export const parameters = [{arguments}];\n"
        "const NAMES = parameters.map((one) => one.name);",
        *own.functions,
        translate(_accountant(), JAVASCRIPT, _DECLARED, frozenset(own.tables)),
        f"function constants(p) {{\n  const c = new Float64Array({own.constants});\n"
        f"{assigned}  return c;\n}}",
        f"function check(p) {{\n{checks}  return null;\n}}",
        resource("public.js"),
    ]


def c_file(own: Parts) -> list[str]:
    """Return the parts of a file in C."""
    words = " ".join(f"{name}=VALUE" for name in own.names)
    header = [
        *own.header, "", "Compile with: cc -O2 -c FILE.c; link with -lm.",
        "A program: cc -O2 -DACCOUNTANT_MAIN FILE.c -o FILE -lm",
        f"Usage: ./FILE epsilon=VALUE|delta=VALUE n=VALUE {words} [remove|add|both]",
    ]  # fmt: skip
    comment = "\n".join(f" * {line}".rstrip() for line in header).replace("*/", "* /")
    sentence = "    if (!({})) return {};\n"
    checks = _checks(own.model, "p.at[{}]", sentence, {" and ": " && "})
    enums = {**own.enums, "ARGUMENTS": len(own.names), "CONSTANTS": own.constants}
    lists = "\n".join(
        f"static double {name}_[] = {{\n    {_rows(values)}\n}};\n"
        f"static vector {name} = {{ {name}_, {len(values)} }};"
        for name, values in own.tables.items()
    )
    names = ", ".join(map(_quoted, ["epsilon", "delta", "n", *own.names]))
    assigned = "".join(f"    {line}\n" for line in own.assignments)
    source = translate(_accountant(), C, _DECLARED, frozenset(own.tables))
    prototypes, public = _c_interface(own)
    return [
        f"/*\n{comment}\n */",
        prototypes,
        "#include <math.h>\n#include <setjmp.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        "#include <string.h>\n\n#ifdef __FAST_MATH__\n"
        '#error "infinities are used: compile without -ffast-math"\n#endif',
        "#define PI 3.14159265358979323846\nenum {\n"
        + "".join(f"    {name} = {value},\n" for name, value in enums.items())
        + "};",
        resource("primitives.c"),
        lists,
        *own.functions,
        source,
        f"static void constants(vector p, vector c)\n{{\n    (void) p;\n{assigned}}}",
        f"static const char *check(vector p)\n{{\n    (void) p;\n{checks}    return NULL;\n}}",
        "/* not every mechanism needs them */\nvoid symdp_unused(void);\n"
        "void symdp_unused(void)\n{\n"
        + "".join(
            f"    (void) {name};\n"
            for name in (
                "log_sum_exp",
                "unit_log_sum_exp",
                "log_ratio",
                "careful",
                "series",
                "LOSS",
            )
        )
        + "}",
        resource("public.c"),
        public,
        "#ifdef ACCOUNTANT_MAIN\nstatic const char *const NAMES[] = { " + names + " };\n#endif",
        resource("main.c"),
    ]


def _c_interface(own: Parts) -> tuple[str, str]:
    """Return the prototypes of the public functions, and the functions."""
    names = [a.identifier for a in own.model.arguments]
    typed = "".join(f", double {name}" for name in names)
    pack = f"    const double given[] = {{ {', '.join(names) or '0.0'} }};\n"
    heads, bodies = [], []
    for name, what in (("log_delta", "l"), ("delta", "d"), ("epsilon", "e")):
        asked = "delta" if what == "e" else "epsilon"
        head = (
            f"const char *{own.model.prefix}_{name}(double {asked}, double n{typed}, "
            "const char *direction, double *found)"
        )
        heads.append(f"{head};")
        bodies.append(
            f"{head}\n{{\n{pack}    return answer('{what}', &{asked}, 1, n, given, direction, "
            "found);\n}"
        )
    head = (
        f"const char *{own.model.prefix}_curve(const double *epsilons, long count, double n{typed}"
        ", const char *direction, double *deltas)"
    )
    heads.append(f"{head};")
    bodies.append(
        f"{head}\n{{\n{pack}"
        "    return answer('d', epsilons, count, n, given, direction, deltas);\n}"
    )
    note = (
        "/* Each returns NULL, or a sentence that says what is wrong or why there is no answer.\n"
        ' * direction: "remove", "add" or "both". Not for several threads at once. */\n'
    )
    return note + "\n".join(heads), "\n\n".join(bodies)
