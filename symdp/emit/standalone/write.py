"""Write one mechanism's accountant as one file in Python, C99 or JavaScript."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

import sympy as sp

from symdp.emit.log_sum_exp import ExpMinusOne
from symdp.emit.program import compile_programs, compile_template
from symdp.emit.standalone.lines import INFINITY, SPECIAL, lines, literal
from symdp.emit.standalone.tables import tables
from symdp.emit.standalone.translate import JAVASCRIPT, C, translate
from symdp.errors import InputError

# Domain word -> condition, in which every language puts its own whole().
CONDITIONS = {
    "positive": "{0} > 0",
    "nonnegative": "{0} >= 0",
    "real": "{0} == {0}",
    "probability": "0 <= {0} and {0} <= 1",
    "open probability": "0 < {0} and {0} < 1",
    "integer": "floor({0}) == {0}",
    "integer above 1": "{0} > 1 and floor({0}) == {0}",
    "positive integer": "{0} > 0 and floor({0}) == {0}",
    "natural": "{0} >= 0 and floor({0}) == {0}",
}

_ENTRIES = {"python": "{}[{}]", "javascript": "{}[{}]", "c": "{}.at[{}]"}  # of a vector
_INDENTS = {"python": "    ", "javascript": "  ", "c": "    "}

# The line from which on a file of the runtime is emitted.
_MARKER = "# ---- emitted from here on ----\n"

_WORDS_OF_THE_CODE = """
epsilon epsilons delta deltas n direction found given count answer int short long char float double
    signed unsigned void auto register static extern const volatile enum struct union typedef sizeof
    do switch case default goto inline restrict return break continue for while if else
"""
_TAKEN = frozenset(_WORDS_OF_THE_CODE.split())


def _resource(name: str) -> str:
    """Return a file of the runtime as text, from its marker line on where it has one."""
    text = files("symdp.emit.standalone.runtime").joinpath(name).read_text("utf-8")
    return text.rpartition(_MARKER)[2].strip("\n")


def error_functions(language: str) -> str:
    """Return erf and what is made of it, in a language."""
    source = _resource("erf.py")
    if language == "python":
        return source
    names = frozenset(tables())
    if language == "javascript":
        return translate(source, JAVASCRIPT, _OF_PRIMITIVES, names)
    return translate(source, C, {**_OF_PRIMITIVES, **_OF_LIBM}, names)


def runtime() -> str:
    """Return the accountant that all three languages share, in its own small part of Python."""
    return "\n\n\n".join(map(_resource, ("law.py", "tilted.py", "cut_off.py", "accountant.py")))


@dataclass(frozen=True)
class Argument:
    """A free parameter: its symbol, its domain word and rule."""

    symbol: sp.Symbol
    domain: str
    rule: str

    @property
    def name(self) -> str:
        """The name that people write."""
        return str(self.symbol.name)

    @property
    def identifier(self) -> str:
        """The name as an argument in C, with an underscore where C has the word for itself."""
        if self.name in _TAKEN or not self.name.isascii():
            return f"{self.name}_"
        return self.name


@dataclass(frozen=True)
class Piece:
    """A stretch of the support, or one point of a list, where a law may vanish.

    `lower, upper`: the ends; of a point, its probabilities under P and Q. `log_p, log_q`: None
    where the density vanishes, and for points. `loss`: ±oo where one of them vanishes.
    """

    lower: sp.Expr
    upper: sp.Expr
    log_p: sp.Expr | None
    log_q: sp.Expr | None
    loss: sp.Expr
    is_flat: bool = False


@dataclass(frozen=True)
class Condition:
    """What must hold of parameters: a difference is positive, or not negative."""

    difference: sp.Expr
    is_strict: bool
    sentence: str

    @property
    def sign(self) -> str:
        """How the difference compares with 0, in every language."""
        if self.is_strict:
            return ">"
        return ">="


@dataclass(frozen=True)
class Case:
    """An order of the parameters, and what the law is there.

    `symbols`: those of the model's arguments, in their order. `pieces`: of the support; all points
    of a list. `loss_range`: ±oo where an end is not known.
    """

    conditions: tuple[Condition, ...]
    symbols: tuple[sp.Symbol, ...]
    variable: sp.Symbol
    pieces: tuple[Piece, ...]
    loss_range: tuple[sp.Expr, sp.Expr]


@dataclass(frozen=True)
class Model:
    """One mechanism, ready to be written out with its accountant.

    `arguments`: parameters that stay arguments. `assumed`: what must hold of these. `cases`: of
    which the first that holds is the law. `is_remove`: whether P is the law with the record.
    `has_one_law`: whether both directions have one law of the loss, so that one is asked.
    """

    name: str
    heading: str
    notes: tuple[str, ...]
    arguments: tuple[Argument, ...]
    assumed: tuple[Condition, ...]
    kind: str
    cases: tuple[Case, ...]
    is_remove: bool
    has_one_law: bool

    @property
    def prefix(self) -> str:
        """The name as an identifier."""
        name = re.sub(r"\W", "_", self.name, flags=re.ASCII)
        if re.match(r"[A-Za-z]", name):
            return name
        return f"m_{name}"


_OF_PRIMITIVES = {"polynomial": ["Vector", "Number"]}
_TABLES_OF_LIBM = ("SMALL_ERF",)  # of erf, which C has
_OF_LIBM = {"erf": ["Number"], "erfc": ["Number"], "near_erf": ["Number"], "far_erf": ["Number"]}
_DECLARED = {name: ["float", "Number", "Vector"] for name in ("log_p", "log_q", "loss_at", "term")}


@dataclass(frozen=True)
class _Parts:
    """What is known of a mechanism once its expressions are written out."""

    model: Model
    enums: dict[str, int]
    tables: dict[str, list[float]]
    functions: list[str]
    assignments: list[str]
    constants: int

    @property
    def is_special(self) -> bool:
        """Whether a function stands in the file of special ones."""
        code = "\n".join([*self.functions, *self.assignments])
        return any(f"{name}(" in code for name in SPECIAL)

    def special(self, ending: str) -> list[str]:
        """Return the special functions in a language, where one is called."""
        if self.is_special:
            return [_resource(f"special.{ending}")]
        return []

    @property
    def names(self) -> list[str]:
        """The names of the parameters."""
        return [a.name for a in self.model.arguments]

    @property
    def header(self) -> list[str]:
        """The lines that begin the file."""
        return [self.model.heading, "", *self.model.notes]


def _rows_of_numbers(values: Sequence[float]) -> str:
    texts = [repr(v).replace("inf", "INFINITY") for v in values] or ["0"]
    rows = [", ".join(texts[i : i + 4]) for i in range(0, len(texts), 4)]
    return ",\n    ".join(rows)


def _checks(model: Model, language: str, sentence: str, signs: dict[str, str]) -> str:
    """Return the lines that look at parameters: their domains first, then what is assumed."""
    entry = _ENTRIES[language]
    indent = _INDENTS[language]
    text = ""
    for i, argument in enumerate(model.arguments):
        parameter = entry.format("p", i)
        condition = CONDITIONS[argument.domain].format(parameter)
        for word, sign in signs.items():
            condition = condition.replace(word, sign)
        refusal = _quoted(f"{argument.name} must be {argument.rule}")
        text += sentence.format(condition, refusal)
    symbols = [argument.symbol for argument in model.arguments]
    steps, conditions = _comparison_lines(model.assumed, symbols, language)
    text += "".join(f"{indent}{line}\n" for line in steps)
    for condition, assumed in zip(conditions, model.assumed, strict=True):
        refusal = _quoted(f"{assumed.sentence} is assumed of this program")
        text += sentence.format(condition, refusal)
    return text


def _comparison_lines(
    conditions: Sequence[Condition], symbols: Sequence[sp.Symbol], language: str
) -> tuple[list[str], list[str]]:
    """Return lines that compute differences of parameters, and comparisons of these with 0."""
    if not conditions:
        return [], []
    differences = [condition.difference for condition in conditions]
    program = compile_programs(differences, symbols)
    entry = _ENTRIES[language]
    names = [entry.format("p", i) for i in range(len(symbols))]
    constants = [literal(constant, language) for constant in program.constants]
    steps, values = lines(program, language, names, constants)
    comparisons = []
    for value, condition in zip(values, conditions, strict=True):
        comparisons.append(f"{value} {condition.sign} 0.0")
    return steps, comparisons


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _python_file(own: _Parts) -> list[str]:
    """Return the parts of a file in Python."""
    values = ", ".join(f"{name}=VALUE" for name in own.names)
    usage = f"delta(1.0, 100{values and ', ' + values}), epsilon(1e-5, 100, ...), curve, log_delta"
    words = " ".join(f"{name}=VALUE" for name in own.names)
    header = [
        *own.header, "", usage,
        f"python FILE.py epsilon=VALUE|delta=VALUE n=VALUE {words} [remove|add|both]",
    ]  # fmt: skip
    text = "\n".join(header).replace("\\", "\\\\").replace('"""', "'''")
    checks = _checks(own.model, "python", "    if not ({}):\n        return {}\n", {})
    enums = "\n".join(f"{name} = {value}" for name, value in own.enums.items())
    lists = "\n".join(
        f"{name} = np.array([\n    {_rows_of_numbers(values)},\n])"
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
        _resource("primitives.py"),
        *own.special("py"),
        f"{enums}\nNAMES = {own.names!r}\n{lists}",
        error_functions("python"),
        *own.functions,
        runtime(),
        f"def constants(p):\n    c = np.zeros({own.constants})\n{assigned}    return c",
        f"def check(p):\n{checks}    return None",
        _resource("public.py"),
    ]


def _javascript_file(own: _Parts) -> list[str]:
    """Return the parts of an ES module."""
    comment = "\n".join(f" * {line}".rstrip() for line in own.header).replace("*/", "* /")
    signs = {" and ": " && ", "==": "===", "0 <= p": "0 <= p"}
    checks = _checks(own.model, "javascript", "  if (!({})) return {};\n", signs)
    enums = "".join(f"const {name} = {value};\n" for name, value in own.enums.items())
    lists = "".join(
        f"const {name} = Float64Array.of({_rows_of_numbers(values)});\n"
        for name, values in own.tables.items()
    )
    arguments = ", ".join(
        f"{{ name: {_quoted(a.name)}, domain: {_quoted(a.domain)}, rule: {_quoted(a.rule)} }}"
        for a in own.model.arguments
    )
    assigned = "".join(f"  {line}\n" for line in own.assignments)
    return [
        f"/*\n{comment}\n */",
        _resource("primitives.js"),
        *own.special("js"),
        f"{enums}{lists}export const parameters = [{arguments}];\n"
        "const NAMES = parameters.map((one) => one.name);",
        error_functions("javascript"),
        *own.functions,
        translate(runtime(), JAVASCRIPT, _DECLARED, frozenset(own.tables)),
        f"function constants(p) {{\n  const c = new Float64Array({own.constants});\n"
        f"{assigned}  return c;\n}}",
        f"function check(p) {{\n{checks}  return null;\n}}",
        _resource("public.js"),
    ]


def _c_file(own: _Parts) -> list[str]:
    """Return the parts of a file in C."""
    words = " ".join(f"{name}=VALUE" for name in own.names)
    header = [
        *own.header, "", "Compile with: cc -O2 -c FILE.c; link with -lm.",
        "A program: cc -O2 -DACCOUNTANT_MAIN FILE.c -o FILE -lm",
        f"Usage: ./FILE epsilon=VALUE|delta=VALUE n=VALUE {words} [remove|add|both]",
    ]  # fmt: skip
    comment = "\n".join(f" * {line}".rstrip() for line in header).replace("*/", "* /")
    sentence = "    if (!({})) return {};\n"
    checks = _checks(own.model, "c", sentence, {" and ": " && "})
    enums = {**own.enums, "ARGUMENTS": len(own.names), "CONSTANTS": own.constants}
    lists = "\n".join(
        f"static double {name}_[] = {{\n    {_rows_of_numbers(values)}\n}};\n"
        f"static vector {name} = {{ {name}_, {len(values)} }};"
        for name, values in own.tables.items()
        if name not in _TABLES_OF_LIBM
    )
    names = ", ".join(map(_quoted, ["epsilon", "delta", "n", *own.names]))
    assigned = "".join(f"    {line}\n" for line in own.assignments)
    source = translate(runtime(), C, _DECLARED, frozenset(own.tables))
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
        _resource("primitives.c"),
        *own.special("c"),
        lists,
        error_functions("c"),
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
                "log_erfc",
                "log_erf_difference",
                "gaussian_of",
                "series",
                "LOSS",
                *(SPECIAL if own.is_special else ()),
            )
        )
        + "}",
        _resource("public.c"),
        public,
        "#ifdef ACCOUNTANT_MAIN\nstatic const char *const NAMES[] = { " + names + " };\n#endif",
        _resource("main.c"),
    ]


def _c_interface(own: _Parts) -> tuple[str, str]:
    """Return the prototypes of the public functions, and the functions."""
    names = [a.identifier for a in own.model.arguments]
    typed = "".join(f", double {name}" for name in names)
    pack = f"    const double given[] = {{ {', '.join(names) or '0.0'} }};\n"
    heads = []
    bodies = []
    for name, what in (("log_delta", "l"), ("delta", "d"), ("epsilon", "e")):
        asked = "delta" if what == "e" else "epsilon"
        head = (
            f"const char *{own.model.prefix}_{name}(double {asked}, double n{typed}, "
            "const char *direction, double *found)"
        )
        heads.append(f"{head};")
        bodies.append(
            f"{head}\n{{\n{pack}    return answer('{what}', &{asked}, 1, n, given, direction, "
            "found, NULL);\n}"
        )
        if what != "d":
            head = head.replace(f"_{name}(", f"_{name}_ends(").replace("*found", "*ends")
            heads.append(f"{head};")
            bodies.append(
                f"{head}\n{{\n{pack}    double found;\n    return answer('{what}', &{asked}, 1, n, "
                "given, direction, &found, ends);\n}"
            )
    head = (
        f"const char *{own.model.prefix}_curve(const double *epsilons, long count, double n{typed}"
        ", const char *direction, double *deltas)"
    )
    heads.append(f"{head};")
    bodies.append(
        f"{head}\n{{\n{pack}"
        "    return answer('d', epsilons, count, n, given, direction, deltas, NULL);\n}"
    )
    note = (
        "/* Each returns NULL, or a sentence that says what is wrong or why there is no answer.\n"
        ' * direction: "remove", "add" or "both". ends: between which two numbers it is.\n'
        " * Not for several threads at once. */\n"
    )
    return note + "\n".join(heads), "\n\n".join(bodies)


LANGUAGES = ("python", "c", "javascript")
_FUNCTIONS = {"log_p": "log_p", "log_q": "log_q", "loss_at": "loss"}


_RESERVED = 4  # numbers of a case that every case has at these places
# of these
_FIRST = 2
_LAST = 3


@dataclass
class _Numbers:
    """What parameters alone decide in a case, each in its place of one array.

    The first are the ends of the loss, and which pieces are those of the case.
    """

    case: Case
    first: int
    sums: list[tuple[sp.Sum, tuple[sp.Symbol, ...]]]
    listed: list[sp.Expr] = field(default_factory=list)
    relative: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        last = self.first + len(self.case.pieces)
        self.listed += [*self.case.loss_range, sp.Integer(self.first), sp.Integer(last)]

    def place(self, expression: sp.Expr, *, relative: bool = False) -> int:
        if expression not in self.listed:
            self.listed.append(expression)
        place = self.listed.index(expression)
        if relative:
            self.relative.add(place)
        return place

    def assignments(self, language: str) -> list[str]:
        """Return the lines that compute them from the parameters."""
        entry = _ENTRIES[language]
        end = "" if language == "python" else ";"
        fixed_lines = []
        free = []
        wanted = []
        for number, expression in enumerate(self.listed):
            if not expression.free_symbols:
                value = literal(expression, language)
                fixed_lines.append(f"{entry.format('c', number)} = {value}{end}")
                continue
            plain = self._without_sums(expression)
            free.append(plain.replace(lambda e: isinstance(e, sp.Add), _factored))
            wanted.append(number)
        if not free:
            return fixed_lines
        symbols = list(self.case.symbols)
        names = [entry.format("p", i) for i in range(len(symbols))]
        for i in range(len(self.sums)):
            names.append(f"series({i}, p)")
            symbols.append(_stand_in(i))
        try:
            program = compile_programs(free, symbols)
        except InputError as error:
            parameters = ", ".join(str(symbol.name) for symbol in self.case.symbols)
            raise InputError(f"{error}; give values to {parameters}") from None
        constants = [literal(constant, language) for constant in program.constants]
        relative = [i for i, number in enumerate(wanted) if number in self.relative]
        steps, values = lines(program, language, names, constants, relative)
        results = []
        for number, value in zip(wanted, values, strict=True):
            results.append(f"{entry.format('c', number)} = {value}{end}")
        return [*fixed_lines, *steps, *results]

    def _without_sums(self, expression: sp.Expr) -> sp.Expr:
        for found in expression.atoms(sp.Sum):
            (_, low, high) = found.limits[0]
            if len(found.limits) == 1 and not (low.free_symbols | high.free_symbols):
                entry = (found, self.case.symbols)
                if entry not in self.sums:
                    self.sums.append(entry)
                expression = expression.xreplace({found: _stand_in(self.sums.index(entry))})
        return expression


def _factored(total: sp.Add) -> sp.Expr:
    """Return c exp(a) − c exp(b) as c exp(b) (exp(a − b) − 1), which does not cancel."""
    if len(total.args) != 2:
        return total
    first, second = total.args
    c, a = first.as_independent(sp.exp, as_Add=False)
    d, b = second.as_independent(sp.exp, as_Add=False)
    are_powers = isinstance(a, sp.exp) and isinstance(b, sp.exp)
    if c == -d and are_powers:
        exponent = sp.expand(a.args[0] - b.args[0])
        return c * b * ExpMinusOne(exponent)
    return total


def _stand_in(number: int) -> sp.Symbol:
    return sp.Symbol(f"_sum{number}", positive=True)


def to_code(model: Model, language: str) -> str:
    """Return a file with log_delta, delta, epsilon and curve of one mechanism.

    Python needs NumPy; C needs libm; JavaScript, an ES module, needs nothing. All three are the
    same accountant. InputError for a function that standalone code does not have, or a normalising
    integral that depends on a parameter without value.
    """
    sums: list[tuple[sp.Sum, tuple[sp.Symbol, ...]]] = []
    numbered = []
    first = 0
    for case in model.cases:
        numbered.append(_Numbers(case, first, sums))
        first += len(case.pieces)
    tables = _tables(model, numbered)
    functions = [_function(name, model, numbered, language) for name in _FUNCTIONS]
    if model.kind != "points":
        for numbers in numbered:
            for expression in _hoisted(numbers.case):
                numbers.place(expression)
    assignments = _chosen(numbered, language)
    tables["SERIES_LOW"] = [float(s.limits[0][1]) for s, _ in sums]
    tables["SERIES_HIGH"] = [float(s.limits[0][2]) for s, _ in sums]
    functions.append(_term(sums, language))
    enums = {
        "PIECES": first,
        "POINTS": int(model.kind == "points"),
        "INTEGERS": int(model.kind == "integers"),
        "LEAST": 0,
        "LARGEST": 1,
        "FIRST": _FIRST,
        "LAST": _LAST,
        "REMOVE": 1 if model.is_remove else -1,
        "ONE_LAW": int(model.has_one_law),
    }
    count = max(len(numbers.listed) for numbers in numbered)
    own = _Parts(model, enums, tables, functions, assignments, count)
    written = {"python": _python_file, "c": _c_file, "javascript": _javascript_file}[language](own)
    return "\n\n".join(part.strip("\n") for part in written) + "\n"


_NO_CASE = "this program has no case for these values of its parameters: symdp answers"


def _chosen(numbered: Sequence[_Numbers], language: str) -> list[str]:
    """Return the lines that compute the numbers of the first case that holds."""
    if not any(numbers.case.conditions for numbers in numbered):
        return numbered[0].assignments(language)
    is_python = language == "python"
    indent = _INDENTS[language]
    leave = {"python": "return c", "javascript": "return c;", "c": "return;"}[language]
    chosen = []
    for numbers in numbered:
        case = numbers.case
        steps, comparisons = _comparison_lines(case.conditions, case.symbols, language)
        bracketed = [f"({comparison})" for comparison in comparisons]
        inner = [f"{indent}{line}" for line in (*numbers.assignments(language), leave)]
        if is_python:
            test = " and ".join(bracketed)
            chosen += [*steps, f"if {test}:", *inner]
            continue
        test = " && ".join(bracketed)
        block = [*steps, f"if ({test}) {{", *inner, "}"]
        # a block of its own: names of one case are those of another
        indented = [f"{indent}{line}" for line in block]
        chosen += ["{", *indented, "}"]
    failure = f'fail("{_NO_CASE}")'
    if not is_python:
        failure += ";"
    return [*chosen, failure]


def _tables(model: Model, numbered: Sequence[_Numbers]) -> dict[str, list[float]]:
    """Return what is known of each piece, and the Gauss rule."""
    is_listed = model.kind == "points"
    kinds: list[float] = []
    flat: list[float] = []
    lower: list[float] = []
    upper: list[float] = []
    losses: list[float] = []
    for numbers in numbered:
        for piece in numbers.case.pieces:
            is_flat = piece.is_flat or model.kind != "interval"
            kinds.append((piece.loss == sp.oo) - (piece.loss == -sp.oo))
            flat.append(int(is_flat))
            lower.append(numbers.place(piece.lower, relative=is_listed))
            upper.append(numbers.place(piece.upper, relative=is_listed))
            losses.append(numbers.place(piece.loss) if is_listed else 0)
    return {
        "KIND": kinds,
        "FLAT": flat,
        "LOWER": lower,
        "UPPER": upper,
        "LOSS": losses,
        **tables(),
    }


def _hoisted(case: Case) -> list[sp.Expr]:
    """Return the parts of the densities that parameters alone decide."""
    written = [e for piece in case.pieces for e in (piece.log_p, piece.log_q, piece.loss)]
    return [
        constant
        for expression in written
        if expression is not None and not expression.is_infinite
        for constant in compile_template([expression], [case.variable]).constants
    ]


def _function(name: str, model: Model, numbered: Sequence[_Numbers], language: str) -> str:
    """Return a function of (piece, x, c) that is one of the three of every piece."""
    bodies: list[tuple[list[str], str]] = []
    for numbers in numbered:
        for piece in numbers.case.pieces:
            value = getattr(piece, _FUNCTIONS[name])
            if model.kind == "points" or value is None or value.is_infinite:
                sign = "" if value == sp.oo else "-"
                bodies.append(([], f"{sign}{INFINITY[language]}"))
                continue
            bodies.append(_body(value, numbers, language))
    return _case_lines(name, "c", bodies, language)


def _body(value: sp.Expr, numbers: _Numbers, language: str) -> tuple[list[str], str]:
    """Return the lines of a function of x on a piece, and what holds its value."""
    program = compile_template([value], [numbers.case.variable])
    places = [numbers.place(constant) for constant in program.constants]
    constants = [_ENTRIES[language].format("c", place) for place in places]
    steps, values = lines(program, language, ["x"], constants)
    return steps, values[0]


def _term(sums: Sequence[tuple[sp.Sum, tuple[sp.Symbol, ...]]], language: str) -> str:
    """Return a function of (which, x, p): the terms of the normalising sums."""
    bodies = []
    for series, parameters in sums:
        symbols = [series.limits[0][0], *parameters]
        program = compile_programs([series.function], symbols)
        constants = [literal(constant, language) for constant in program.constants]
        names = [_ENTRIES[language].format("p", i) for i in range(len(parameters))]
        steps, results = lines(program, language, ["x", *names], constants)
        bodies.append((steps, results[0]))
    return _case_lines("term", "p", bodies, language)


def _case_lines(
    name: str, last: str, bodies: Sequence[tuple[list[str], str]], language: str
) -> str:
    if language == "python":
        text = f"def {name}(piece, x, {last}):\n"
        for i, (steps, result) in enumerate(bodies):
            inner = "".join(f"        {line}\n" for line in steps)
            text += f"    if piece == {i}:\n{inner}        return {result} + 0.0 * x\n"
        return text + "    return -np.inf + 0.0 * x\n"
    head = f"function {name}(piece, x, {last})"
    if language == "c":
        head = f"static double {name}(double piece, double x, vector {last})"
    text = f"{head}\n{{\n"
    if language == "c":
        text += f"    (void) piece;\n    (void) x;\n    (void) {last};\n"
    for i, (steps, result) in enumerate(bodies):
        inner = "".join(f"        {line}\n" for line in steps)
        text += f"    if (piece == {i}) {{\n{inner}        return {result};\n    }}\n"
    return text + "    return -INFINITY;\n}"
