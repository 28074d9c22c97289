"""What is changed: one operator, comparison, sign, number or direction of rounding at a time."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

_OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.Pow: ("**", "*"),
}
_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.In: ("in", "not in"),
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Names and words that turn an end of an interval, or a rounding, into the other.
_OPPOSITES = {
    "min": "max",
    "minimum": "maximum",
    "floor": "ceil",
    "lower": "upper",
    "any": "all",
    "up": "down",
    "left": "right",
}
_OPPOSITES |= {new: old for old, new in _OPPOSITES.items()}
_FUNCTIONS = (ast.FunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Mutation:
    """One changed stretch of one line, in a statement that begins at `statement`.

    It is `inside` a function, or run when its module is imported.
    """

    path: str
    line: int
    start: int
    end: int
    new: str
    kind: str
    statement: int
    inside: bool

    def applied(self, text: str) -> str:
        """Return a file's text with the change; columns are of UTF-8."""
        lines = text.split("\n")
        raw = lines[self.line - 1].encode()
        changed = raw[: self.start] + self.new.encode() + raw[self.end :]
        lines[self.line - 1] = changed.decode()
        return "\n".join(lines)

    def shown(self, text: str) -> str:
        """Return the line before and after."""
        old = text.split("\n")[self.line - 1].strip()
        new = self.applied(text).split("\n")[self.line - 1].strip()
        return f"{self.path}:{self.line}\n  - {old}\n  + {new}"


def mutations(path: str, text: str) -> Iterator[Mutation]:
    """Yield what can be changed in a file."""
    rows = [row.encode() for row in text.split("\n")]

    def between(left: ast.expr, right: ast.expr, old: str) -> tuple[int, int, int] | None:
        if left.end_lineno != right.lineno or left.end_col_offset is None:
            return None
        at = rows[right.lineno - 1].find(old.encode(), left.end_col_offset, right.col_offset)
        return (right.lineno, at, at + len(old)) if at >= 0 else None

    for node, statement, inside in _nodes(ast.parse(text)):
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            old, new = _OPERATORS[type(node.op)]
            kind, place = "operator", between(node.left, node.right, old)
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
            old, new = _COMPARISONS[type(node.ops[0])]
            kind, place = "comparison", between(node.left, node.comparators[0], old)
            if place is not None and old in _TURNED:
                yield Mutation(path, *place, _TURNED[old], kind, statement, inside)
                kind = "boundary"
                if _is_threshold(node.left) or _is_threshold(node.comparators[0]):
                    continue
        elif isinstance(node, ast.BoolOp):
            is_and = isinstance(node.op, ast.And)
            old, new = ("and", "or") if is_and else ("or", "and")
            kind, place = "condition", between(node.values[0], node.values[1], old)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            kind, new = ("sign", "") if isinstance(node.op, ast.USub) else ("condition", "")
            length = 1 if kind == "sign" else len("not ")
            place = (node.lineno, node.col_offset, node.col_offset + length)
        elif isinstance(node, ast.Attribute) and node.attr == "inf":
            kind, new = "sign", "-"
            place = (node.lineno, node.col_offset, node.col_offset)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            kind, new = "number", _another(node.value)
            place = (node.lineno, node.col_offset, node.end_col_offset or 0)
        elif (found := _direction(node)) is not None:
            kind, new, place = "rounding", found[0], found[1]
        else:
            continue
        if place is not None:
            yield Mutation(path, *place, new, kind, statement, inside)


def _is_threshold(node: ast.expr) -> bool:
    """Whether a number is a threshold with a name; what lies on it may count as either side."""
    return isinstance(node, ast.Name) and node.id.isupper()


def _another(value: float) -> str:
    """Return another number: a count off by one, a threshold twice as large."""
    return str(value + 1) if isinstance(value, int) else repr(2.0 * value or 1.0)


def _direction(node: ast.AST) -> tuple[str, tuple[int, int, int]] | None:
    """Return the opposite of a word that says where an end lies, and where it stands."""
    if isinstance(node, ast.Constant) and node.value in ("up", "down"):
        new = f'"{_OPPOSITES[str(node.value)]}"'
        return new, (node.lineno, node.col_offset, node.end_col_offset or 0)
    if not isinstance(node, ast.Call):
        return None
    called = node.func
    name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
    if name not in _OPPOSITES or called.end_lineno is None or called.end_col_offset is None:
        return None
    end = called.end_col_offset
    return _OPPOSITES[name], (called.end_lineno, end - len(name), end)


def _nodes(tree: ast.Module) -> Iterator[tuple[ast.AST, int, bool]]:
    """Yield nodes that runs read, the first line of the statement of each, and if it is in a body.

    Left out are annotations, decorators, what is raised, and texts with values in them, of whose
    columns Python is not sure.
    """
    waiting: list[tuple[ast.AST, int, bool]] = [(tree, 1, False)]
    while waiting:
        node, statement, inside = waiting.pop()
        if isinstance(node, ast.Raise | ast.JoinedStr):
            continue
        if isinstance(node, ast.stmt):
            statement = node.lineno
        yield node, statement, inside
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_comment"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    is_body = name == "body" and isinstance(node, _FUNCTIONS)
                    waiting.append((child, statement, inside or is_body))


def drawn(root: Path, room: str, count: int, seed: int) -> list[Mutation]:
    """Draw mutations of a room: files in turn in a random order, in each a kind at random.

    The first of a longer draw are those of a shorter one.
    """
    draw = random.Random(seed)
    waiting = []
    for file in sorted((root / "symdp" / room).rglob("*.py")):
        path = str(file.relative_to(root))
        own = list(mutations(path, file.read_text(encoding="utf-8")))
        if own:
            waiting.append(own)
    draw.shuffle(waiting)
    taken: list[Mutation] = []
    while waiting and len(taken) < count:
        for own in waiting:
            kind = draw.choice(sorted({mutation.kind for mutation in own}))
            of_kind = [mutation for mutation in own if mutation.kind == kind]
            chosen = draw.choice(of_kind)
            own.remove(chosen)
            taken.append(chosen)
        waiting = [own for own in waiting if own]
    return taken[:count]


def lines_that_use(root: Path, mutation: Mutation) -> Iterator[tuple[str, int]]:
    """Yield lines that are run when what is changed counts, where its own line runs at import.

    Of a function's defaults these are its body; of a constant, the lines that hold its name.
    """
    tree = ast.parse((root / mutation.path).read_text(encoding="utf-8"))
    names = set()
    for node in ast.walk(tree):
        is_here = isinstance(node, ast.stmt) and node.lineno == mutation.statement
        if is_here and isinstance(node, ast.FunctionDef):
            yield from ((mutation.path, inner.lineno) for inner in node.body)
        elif is_here:
            names |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    if not names:
        return
    for file in sorted((root / "symdp").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if any(name in text for name in names):
            path = str(file.relative_to(root))
            for node in ast.walk(ast.parse(text)):
                if getattr(node, "id", getattr(node, "attr", None)) in names:
                    yield path, node.lineno


def again(root: Path, mutation: Mutation, before: str) -> Mutation | None:
    """Return a mutation of an earlier text at the line that is nearest to where it stood."""
    file = root / mutation.path
    if not file.exists():
        return None
    lines = file.read_text(encoding="utf-8").split("\n")
    same = [number for number, line in enumerate(lines, start=1) if line == before]
    if not same:
        return None
    line = min(same, key=lambda number: abs(number - mutation.line))
    return replace(mutation, line=line, statement=mutation.statement + line - mutation.line)
