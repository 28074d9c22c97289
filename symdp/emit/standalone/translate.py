"""Translate the accountant, which is written in a small part of Python, into C and JavaScript.

There are numbers, vectors of numbers and records. An expression over vectors is one loop over their
places; `total`, `summed` and `largest` are loops that end in a number. Vectors in C come from a
list of blocks; a function that returns a number or a vector, and leaves no other vector behind,
gives its own back.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

_ELEMENTWISE_NAMES = """exp expm1 log log1p sqrt sin cos atan2 hypot floor absolute power maximum
    minimum where isfinite erfc"""
_VECTOR_NAMES = """filled steps ordered ranking taken gathered repeated tiled joined kept sums_of
    largest_of binned spread_over spectrum"""
_ELEMENTWISE = frozenset(_ELEMENTWISE_NAMES.split())
_REDUCTIONS = {"total": "0.0", "summed": "0.0", "largest": "-INFINITY"}
_VECTORS = frozenset(_VECTOR_NAMES.split())
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&&", ast.BitOr: "||",
    ast.And: "&&", ast.Or: "||", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Eq: "==", ast.NotEq: "!=", ast.USub: "-", ast.Not: "!",
}  # fmt: skip


@dataclass(frozen=True)
class _Language:
    """How C or JavaScript writes what differs between them."""

    name: str
    entry: Callable[[str, str], str]
    size: Callable[[str], str]
    member: str
    fresh: Callable[[str], str]
    index: str

    @property
    def is_c(self) -> bool:
        """Whether types are written."""
        return self.name == "c"


C = _Language("c", "{}.at[(long) ({})]".format, "{}.size".format, "->", "room({})".format, "long")
JAVASCRIPT = _Language(
    "javascript", "{}[{}]".format, "{}.length".format, ".", "new Float64Array({})".format, "let"
)


@dataclass
class _Function:
    """One function: its text and the kinds of its arguments."""

    node: ast.FunctionDef
    kinds: list[str]
    returns: str

    @property
    def names(self) -> list[str]:
        """The names of the arguments."""
        return [a.arg for a in self.node.args.args]

    @property
    def is_elementwise(self) -> bool:
        """Whether it takes a vector place by place."""
        return "Number" in self.kinds


@dataclass
class _Unit:
    """All that is known of the text before a function is translated."""

    language: _Language
    functions: dict[str, _Function] = field(default_factory=dict)
    records: dict[str, dict[str, str]] = field(default_factory=dict)
    vectors: frozenset[str] = frozenset()
    leaks: dict[str, bool] = field(default_factory=dict)


def _c_type(kind: str) -> str:
    """Return how C writes a kind, with the space that follows."""
    known = {"float": "double ", "Number": "double ", "Vector": "vector "}
    return known.get(kind, f"{kind} *")


class _Writer:
    """One function."""

    def __init__(self, unit: _Unit, function: _Function) -> None:
        self._unit = unit
        self._language = unit.language
        self._function = function
        self._kinds = {
            name: "float" if kind == "Number" else kind
            for name, kind in zip(function.names, function.kinds, strict=True)
        }
        self._locals: dict[str, str] = {}
        self._lines: list[str] = []
        self._depth = 1
        self._temps = 0
        self._length = ""
        self._releases = False

    def text(self) -> str:
        """Return the function in the other language."""
        function = self._function
        name = function.node.name
        is_c = self._language.is_c
        is_plain = function.returns in ("float", "Vector")
        self._releases = is_c and is_plain and not self._leaks(function)
        for statement in function.node.body:
            self._statement(statement)
        indent = "    " if is_c else "  "
        first_lines = ""
        if not is_c:
            head = f"function {name}({', '.join(function.names)}) {{\n"
            if self._locals:
                first_lines = f"{indent}let {', '.join(self._locals)};\n"
            return f"{head}{first_lines}{''.join(self._lines)}}}"
        arguments = []
        for argument, kind in zip(function.names, function.kinds, strict=True):
            arguments.append(f"{_c_type(kind)}{argument}")
        head = f"static {_c_type(function.returns)}{name}({', '.join(arguments)})\n{{\n"
        for local, kind in self._locals.items():
            nothing = "{ 0, 0 }" if kind == "Vector" else "0"
            first_lines += f"{indent}{_c_type(kind)}{local} = {nothing};\n"
        if self._releases:
            first_lines += f"{indent}long mark = held.count;\n"
        return f"{head}{first_lines}{''.join(self._lines)}}}"

    def _leaks(self, function: _Function) -> bool:
        """Whether a function may store vectors in what it was given."""
        name = function.node.name
        leaks = self._unit.leaks
        if name in leaks:
            return leaks[name]
        leaks[name] = False
        kinds_of_fields: dict[str, str] = {}
        for fields in self._unit.records.values():
            kinds_of_fields.update(fields)
        for node in ast.walk(function.node):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                record = node.value
                assert isinstance(record, ast.Name)
                is_argument = record.id in function.names
                leaks[name] |= is_argument and kinds_of_fields[node.attr] != "float"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                called = self._unit.functions.get(node.func.id)
                leaks[name] |= called is not None and self._leaks(called)
        return leaks[name]

    # ---- what a node is ----

    def _kind(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            if node.id in self._unit.vectors:
                return "Vector"
            kinds = {**self._locals, **self._kinds}
            return kinds.get(node.id, "float")
        if isinstance(node, ast.Attribute):
            record = self._unit.records[self._kind(node.value)]
            return record[node.attr]
        if isinstance(node, ast.Constant | ast.Subscript):
            return "float"
        if isinstance(node, ast.Call):
            name = self._called(node)
            if name in self._unit.records:
                return name
            function = self._unit.functions.get(name)
            if function is not None and not function.is_elementwise:
                return function.returns
            if name in _VECTORS:
                return "Vector"
            if function is None and name not in _ELEMENTWISE:
                return "float"
            parts = node.args
            if function is not None:
                pairs = zip(node.args, function.kinds, strict=True)
                parts = [argument for argument, kind in pairs if kind == "Number"]
        elif isinstance(node, ast.IfExp):
            parts = [node.body, node.orelse]
        else:
            parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        if any(self._kind(part) == "Vector" for part in parts):
            return "Vector"
        return "float"

    @staticmethod
    def _called(node: ast.Call) -> str:
        assert isinstance(node.func, ast.Name)
        return node.func.id

    def _is_opaque(self, node: ast.expr) -> bool:
        """Whether a vector is made by a call rather than place by place."""
        if not isinstance(node, ast.Call):
            return False
        name = self._called(node)
        function = self._unit.functions.get(name)
        return name in _VECTORS or (function is not None and not function.is_elementwise)

    # ---- expressions ----

    def _expression(self, node: ast.expr, index: str | None = None) -> str:
        """Return the text of a number, or of what a vector holds at an index."""
        is_leaf = self._is_opaque(node) or isinstance(node, ast.Name | ast.Attribute)
        if is_leaf and self._kind(node) == "Vector":
            leaf = self._vector(node)
            self._length = self._language.size(leaf)
            assert index is not None
            return self._entry(leaf, index)
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute):
            record = self._expression(node.value)
            return f"{record}{self._language.member}{node.attr}"
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                return f'"{node.value}"'
            return repr(node.value)
        if isinstance(node, ast.Subscript):
            vector = self._vector(node.value)
            return self._language.entry(vector, self._expression(node.slice))
        if isinstance(node, ast.UnaryOp):
            operand = self._expression(node.operand, index)
            return f"({_OPERATORS[type(node.op)]}{operand})"
        if isinstance(node, ast.BinOp | ast.Compare | ast.BoolOp):
            return self._infix(node, index)
        if isinstance(node, ast.IfExp):
            test = self._expression(node.test, index)
            if_true = self._expression(node.body, index)
            if_false = self._expression(node.orelse, index)
            return f"({test} ? {if_true} : {if_false})"
        assert isinstance(node, ast.Call), ast.dump(node)
        return self._call(node, index)

    def _entry(self, leaf: str, index: str) -> str:
        if self._language.is_c:
            return f"{leaf}.at[{index}]"
        return f"{leaf}[{index}]"

    def _infix(self, node: ast.BinOp | ast.Compare | ast.BoolOp, index: str | None) -> str:
        if isinstance(node, ast.BoolOp):
            parts = node.values
            operators: list[ast.AST] = [node.op] * (len(node.values) - 1)
        elif isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
            operators = list(node.ops)
        else:
            parts = [node.left, node.right]
            operators = [node.op]
        first, *further = (self._expression(part, index) for part in parts)
        text = first
        for operator, operand in zip(operators, further, strict=True):
            text += f" {_OPERATORS[type(operator)]} {operand}"
        return f"({text})"

    def _call(self, node: ast.Call, index: str | None) -> str:
        name = self._called(node)
        if name in _REDUCTIONS:
            return self._reduced(name, node.args[0])
        if name == "int":
            inner = self._expression(node.args[0])
            return f"floor({inner})"
        if name == "where":
            test, if_true, if_false = (self._expression(a, index) for a in node.args)
            return f"({test} ? {if_true} : {if_false})"
        if name == "chosen":
            test, if_true, if_false, *texts = (self._expression(a, index) for a in node.args)
            arguments = ", ".join(texts)
            return f"({test} ? {if_true}({arguments}) : {if_false}({arguments}))"
        if name in self._unit.records:
            if self._language.is_c:
                return f"block(sizeof({name}))"
            return f"{name}()"
        function = self._unit.functions.get(name)
        kinds = ["Number"] * len(node.args)
        if function is not None:
            kinds = function.kinds
        if name == "size":
            kinds = ["Vector"]
        texts = []
        for argument, kind in zip(node.args, kinds, strict=True):
            is_whole = kind != "Number" and self._kind(argument) == "Vector"
            texts.append(self._vector(argument) if is_whole else self._expression(argument, index))
        return f"{name}({', '.join(texts)})"

    def _temp(self, kind: str) -> str:
        name = f"t{self._temps}"
        self._temps += 1
        self._locals[name] = kind
        return name

    def _reduced(self, name: str, node: ast.expr) -> str:
        """Write the loop of a sum or a maximum, and return the variable that holds it."""
        temp = self._temp("float")
        let = "double" if self._language.is_c else "let"
        length_around = self._length
        self._length = ""
        part = self._expression(node, "i")
        loop = f"for ({self._language.index} i = 0; i < {self._length}; i++)"
        self._length = length_around
        start = _REDUCTIONS[name]
        if name == "largest":
            self._append_line(f"{temp} = {start};")
            self._append_line(f"{loop} {temp} = maximum({part}, {temp});")
        elif name == "summed":
            self._append_line(f"{temp} = {start};")
            self._append_line(f"{loop} {temp} += {part};")
        else:  # Neumaier's sum
            const = "double" if self._language.is_c else "const"
            self._append_line(
                f"{{ {let} sum = 0, lost = 0; {loop} {{ {const} part = {part}, next = sum + part; "
                "lost += absolute(sum) >= absolute(part) ? (sum - next) + part : "
                f"(part - next) + sum; sum = next; }} {temp} = sum + (lost == lost ? lost : 0); }}"
            )
        return temp

    def _vector(self, node: ast.expr) -> str:
        """Return what names a vector, after making it where it has no name yet."""
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute):
            return f"{self._expression(node.value)}{self._language.member}{node.attr}"
        temp = self._temp("Vector")
        if self._is_opaque(node):
            assert isinstance(node, ast.Call)
            texts = [
                self._vector(a) if self._kind(a) == "Vector" else self._expression(a)
                for a in node.args
            ]
            self._append_line(f"{temp} = {self._called(node)}({', '.join(texts)});")
            return temp
        self._length = ""
        value = self._expression(node, "i")
        self._append_line(f"{temp} = {self._language.fresh(self._length)};")
        self._fill(temp, value)
        return temp

    def _fill(self, target: str, value: str) -> None:
        let = self._language.index
        size = self._language.size(target)
        self._append_line(
            f"for ({let} i = 0; i < {size}; i++) {self._entry(target, 'i')} = {value};"
        )

    # ---- statements ----

    def _append_line(self, text: str) -> None:
        indent = "    " if self._language.is_c else "  "
        self._lines.append(f"{indent * self._depth}{text}\n")

    def _append_block(self, head: str, body: list[ast.stmt]) -> None:
        self._append_line(f"{head} {{")
        self._depth += 1
        for statement in body:
            self._statement(statement)
        self._depth -= 1
        self._append_line("}")

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            self._assignment(node)
        elif isinstance(node, ast.Return):
            self._return(node)
        elif isinstance(node, ast.If):
            self._append_block(f"if ({self._expression(node.test)})", node.body)
            if node.orelse:
                self._append_block("else", node.orelse)
        elif isinstance(node, ast.While):
            before = len(self._lines)
            test = self._expression(node.test)
            assert len(self._lines) == before, "a loop's condition holds no sum"
            self._append_block(f"while ({test})", node.body)
        elif isinstance(node, ast.For):
            self._loop(node)
        elif isinstance(node, ast.Break):
            self._append_line("break;")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._append_line(f"{self._call(node.value, None)};")

    def _return(self, node: ast.Return) -> None:
        assert node.value is not None
        is_vector = self._kind(node.value) == "Vector"
        text = self._vector(node.value) if is_vector else self._expression(node.value)
        if self._releases and is_vector:
            self._append_line(f"return kept_alone({text}, mark);")
        elif self._releases and not isinstance(node.value, ast.Constant):
            self._append_line(f"{{ double result = {text}; release(mark); return result; }}")
        elif self._releases:
            self._append_line(
                f"release(mark); return {text};"
                if self._depth == 1
                else f"{{ release(mark); return {text}; }}"
            )
        else:
            self._append_line(f"return {text};")

    def _loop(self, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name)
        assert isinstance(node.iter, ast.Call)
        bounds = [self._expression(a) for a in node.iter.args]
        start, stop = bounds if len(bounds) == 2 else ("0", bounds[0])
        name = node.target.id
        let = self._language.index
        self._append_block(f"for ({let} {name} = {start}; {name} < {stop}; {name}++)", node.body)

    def _assignment(self, node: ast.Assign) -> None:
        (target,) = node.targets
        if isinstance(target, ast.Tuple):
            assert isinstance(node.value, ast.Tuple)
            values = []
            for value in node.value.elts:
                kind = self._kind(value)
                text = self._vector(value) if kind == "Vector" else self._expression(value)
                if len(node.value.elts) > 1 and kind == "float":
                    temp = self._temp(kind)
                    self._append_line(f"{temp} = {text};")
                    text = temp
                values.append((kind, text))
            for element, (kind, text) in zip(target.elts, values, strict=True):
                self._store(element, kind, text)
            return
        if isinstance(target, ast.Subscript):  # u[:] = ..., in place
            assert isinstance(target.value, ast.Name)
            self._fill(target.value.id, self._expression(node.value, "i"))
            return
        kind = self._kind(node.value)
        text = self._vector(node.value) if kind == "Vector" else self._expression(node.value)
        self._store(target, kind, text)

    def _store(self, target: ast.expr, kind: str, text: str) -> None:
        if isinstance(target, ast.Name) and target.id not in self._kinds:
            self._locals[target.id] = kind
        self._append_line(f"{self._expression_of(target)} = {text};")

    def _expression_of(self, target: ast.expr) -> str:
        if isinstance(target, ast.Name):
            return target.id
        assert isinstance(target, ast.Attribute)
        return f"{self._expression(target.value)}{self._language.member}{target.attr}"


def translate(
    source: str, language: _Language, declared: dict[str, list[str]], vectors: frozenset[str]
) -> str:
    """Return functions, records and constants of a text with annotated types in another language.

    `declared, vectors`: elementwise functions, with the kinds of their arguments, and names of
    tables that stand before it.

    >>> text = "def half(v: Vector) -> Vector:\\n    return 0.5 * v\\n"
    >>> print(translate(text, JAVASCRIPT, {}, frozenset()))
    function half(v) {
      let t0;
      t0 = new Float64Array(v.length);
      for (let i = 0; i < t0.length; i++) t0[i] = (0.5 * v[i]);
      return t0;
    }
    """
    unit = _Unit(language, vectors=vectors)
    for name, kinds in declared.items():
        arguments = ", ".join(f"a{i}" for i in range(len(kinds)))
        (stub,) = ast.parse(f"def {name}({arguments}): pass").body
        assert isinstance(stub, ast.FunctionDef)
        returns = "Number" if "Number" in kinds else "float"
        unit.functions[name] = _Function(stub, kinds, returns)
    written = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            fields = {}
            for entry in node.body:
                if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name):
                    fields[entry.target.id] = ast.unparse(entry.annotation)
            unit.records[node.name] = fields
            written.append(_record(node.name, fields, language))
        elif isinstance(node, ast.Assign):
            (target,) = node.targets
            assert isinstance(target, ast.Name)
            value = repr(ast.literal_eval(node.value))
            if language.is_c:
                written.append(f"#define {target.id} {value}")
            else:
                written.append(f"const {target.id} = {value};")
        elif isinstance(node, ast.FunctionDef):
            assert node.returns is not None
            kinds = [ast.unparse(a.annotation) for a in node.args.args if a.annotation]
            unit.functions[node.name] = _Function(node, kinds, ast.unparse(node.returns))
    for name, function in unit.functions.items():
        if name not in declared:
            written.append(_Writer(unit, function).text())
    return "\n\n".join(written)


def _record(name: str, fields: dict[str, str], language: _Language) -> str:
    if language.is_c:
        lines = "".join(f"    {_c_type(kind)}{key};\n" for key, kind in fields.items())
        return f"typedef struct {{\n{lines}}} {name};"
    values = ", ".join(
        f"{key}: {'null' if kind == 'Vector' else 0}" for key, kind in fields.items()
    )
    return f"const {name} = () => ({{ {values} }});"
