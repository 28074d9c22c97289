"""The rules that keep the house simple, read off the source itself."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from symdp.methods import METHODS

PACKAGE = Path(__file__).parents[1] / "symdp"
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES = 900  # a file is an idea that a reader would look up by name
PROOF = "prove/check_certificate.py"  # read as one
LAST_RESORT = "cli/__init__.py"  # the one place that may catch everything

# From the street to the ground: a room imports from its own row and from rows below, no other.
ROWS = (
    ("cli", "adapters"),
    ("page",),
    ("individual",),
    ("questions",),
    ("derive",),
    ("mechanisms",),
    ("methods",),
    ("prove",),
    ("numeric",),
    ("balls",),
    ("density",),
    ("emit", "model"),
    ("expansion",),
)
APART = {("emit", "model")}
WITHOUT_NUMPY = ("derive", "density", "expansion", "balls", "model")
TYPES_ARE_ARROWS = ("derive", "density")  # rooms whose imports for type checkers count everywhere
STREET = {"__init__", "__main__"}  # they open the house
# Where modules are imported by names that a reader does not see: the street says what is above a
# room, and a data frame is a library's.
BY_ANY_NAME = ("__init__.py", "above.py", "questions/guarantee.py")
# Formulas for people: no number waits for one of these, and they ask for no number.
ASK_FOR_PAGES = ("cli/", "page/", "derive/", "__init__.py", "questions/programs.py")
BELOW_DERIVE = ("density", "emit", "model", "expansion", "mechanisms", "derive")
LIBRARY_HIDES_FROM = ("symdp.cli", "symdp.page", "typer", "rich", "matplotlib")
MOST_CONSTANTS = {
    "numeric": 344,
    "prove": 180,
}  # of a room: thresholds and tables; lower it with the count
MOST_FILES = 20  # of a folder, that which names it among them
MOST_CATCHES = 117  # places that catch an error of ours: a row that asks for less fails less
# How densely the package is written: budgets that only fall. Syntax nodes on a line of code, then
# per 1,000 statements: assignments of several values at once, and conditional expressions.
MOST_NODES_A_LINE = 6.45
MOST_PARALLEL = 2.5
MOST_CONDITIONAL = 17.0
MOST_EMPTY_NAMES = 99  # names that are stored and do not say what they hold
MOST_NODES_A_FUNCTION = 12.0  # on each of its lines
SHORT_FUNCTION = 8  # lines, from which on that is counted
MOST_HOMES = 3  # files that a private name may stand in, for functions and classes of their own
EMPTY_NAMES = {"found", "own", "one", "place", "known", "told", "held", "made", "said", "some"}
EMPTY_NAMES |= {"here", "each", "rest", "given", "asked", "got", "thing"}
CODE_FROM_TEXT = {"eval", "exec", "parse_expr", "__import__"}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree_of(path)))


@cache
def imports(path: Path, *, for_types: bool = False) -> tuple[str, ...]:
    """Modules that a file imports when it runs; those for type checkers too if asked."""
    return tuple(_imports(path, for_types or room_of(path) in TYPES_ARE_ARROWS))


def _imports(path: Path, with_types: bool) -> Iterator[str]:
    own = f"symdp.{room_of(path)}"
    yield from (m for m, _ in imports_by_name(path) if m and not within(m, (own,)))
    for_types = {
        inner
        for node in nodes_of(path)
        if not with_types
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in nodes_of(path):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)} has a relative import"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports_by_name(path: Path) -> Iterator[tuple[str, int]]:
    """Modules that a call of `import_module` means, as far as it says which, and its line."""
    for node in nodes_of(path):
        if not isinstance(node, ast.Call) or called_name(node) != "import_module":
            continue
        name = node.args[0]
        first = name.values[0] if isinstance(name, ast.JoinedStr) else name
        text = str(first.value) if isinstance(first, ast.Constant) else ""
        # Of `symdp.room.{name}` the room is known, and the file is one of the room's.
        yield (text.rstrip(".") if text.count(".") > 1 else "", node.lineno)


def within(module: str, forbidden: tuple[str, ...]) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in forbidden)


def called_name(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def broken(rule: Callable[[Path], Iterator[str]]) -> str:
    """Return a line for every place in the package that breaks a rule."""
    return "\n".join(f"{name_of(path)}{what}" for path in FILES for what in rule(path))


def calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in nodes_of(path) if isinstance(node, ast.Call))


def test_there_is_something_to_check():
    assert len(FILES) > 40


@cache
def module_of(path: Path) -> str:
    return ".".join(("symdp", *path.relative_to(PACKAGE).with_suffix("").parts))


def test_a_folder_has_few_files():
    counts = Counter(file.parent for file in FILES)
    assert {folder: count for folder, count in counts.items() if count > MOST_FILES} == {}


def imported_files(path: Path, *, for_types: bool = False) -> set[Path]:
    """Files of the package that a file imports, at any depth of its code."""
    by_module = {module_of(one): one for one in FILES}
    wanted = set(imports(path, for_types=for_types))
    # `from room import file` needs the file alone, `from room import name` the room.
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            if all(name in by_module or f"{name}.__init__" in by_module for name in names):
                wanted.discard(str(node.module))
    wanted |= {f"{name}.__init__" for name in wanted}
    return {by_module[name] for name in wanted if name in by_module} - {path}


def room_of(path: Path) -> str | None:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else None


def test_a_line_says_one_thing():
    """The package becomes no denser, and no emptier in its names."""
    kinds = (ast.expr, ast.stmt, ast.arg, ast.keyword, ast.comprehension)
    counts: Counter[str] = Counter()
    for path in FILES:
        code = lines_of_code(path)
        counts["lines"] += len(code)
        for node in nodes_of(path):
            is_text = isinstance(node, ast.Constant) and node.lineno not in code
            counts["nodes"] += isinstance(node, kinds) and not is_text
            counts["statements"] += isinstance(node, ast.stmt)
            counts["parallel"] += assigns_several(node)
            counts["conditional"] += isinstance(node, ast.IfExp)
            counts["empty names"] += is_stored(node) and node.id in EMPTY_NAMES
    thousands = counts["statements"] / 1000.0
    budgets = {
        "syntax nodes on a line": (counts["nodes"] / counts["lines"], MOST_NODES_A_LINE),
        "assignments of several values": (counts["parallel"] / thousands, MOST_PARALLEL),
        "conditional expressions": (counts["conditional"] / thousands, MOST_CONDITIONAL),
        "names that say nothing": (counts["empty names"], MOST_EMPTY_NAMES),
    }
    for what, (number, most) in budgets.items():
        assert number <= most, f"{what}: {number:.2f}, {most} are the most"


def test_no_function_is_dense():
    """Where a function has many syntax nodes on each line, values in it have no names."""
    kinds = (ast.expr, ast.stmt, ast.arg, ast.keyword, ast.comprehension)
    dense = {}
    for path in FILES:
        code = lines_of_code(path)
        for function in nodes_of(path):
            if not isinstance(function, ast.FunctionDef):
                continue
            assert function.end_lineno is not None
            lines = sum(function.lineno <= line <= function.end_lineno for line in code)
            nodes = sum(isinstance(node, kinds) for node in ast.walk(function))
            if lines >= SHORT_FUNCTION and nodes > MOST_NODES_A_FUNCTION * lines:
                dense[f"{name_of(path)}: {function.name}"] = round(nodes / lines, 1)
    assert dense == {}


def test_a_private_name_says_what_it_is():
    """One name in many files stands for many things: each gets the name of what it does."""
    homes: dict[str, list[str]] = {}
    for path in FILES:
        nodes = [n for n in nodes_of(path) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        for name in {node.name for node in nodes}:
            if name.startswith("_") and not name.endswith("_"):
                homes.setdefault(name, []).append(name_of(path))
    assert {name: files for name, files in homes.items() if len(files) > MOST_HOMES} == {}


def assigns_several(node: ast.AST) -> bool:
    is_row = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)
    return is_row and isinstance(node.value, ast.Tuple)


def is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def test_no_arrow_climbs():
    row = {room: number for number, rooms in enumerate(ROWS) for room in rooms}

    def rule(path):
        own = room_of(path)
        if path.stem in STREET and own is None:
            return
        for other in imported_files(path):
            room = room_of(other)
            if room is None:
                if other.stem in STREET:
                    yield f" imports {name_of(other)}"
            elif own is None:
                yield f" is on the ground and imports {name_of(other)}"
            elif row[room] < row[own] or (own, room) in APART:
                yield f" climbs to {name_of(other)}"

    assert {room_of(path) for path in FILES} - {None} <= set(row)
    assert not broken(rule)


def test_no_two_files_import_each_other():
    """Nor by a detour, nor for the sake of types alone."""
    arrows = {path: imported_files(path, for_types=True) for path in FILES}

    def reached(path):
        seen = set()
        stack = list(arrows[path])
        while stack:
            one = stack.pop()
            if one not in seen:
                seen.add(one)
                stack.extend(arrows[one])
        return seen

    assert not "\n".join(name_of(path) for path in FILES if path in reached(path))


def test_what_is_imported_by_name_is_seen_above():
    """An arrow that no rule can read stands in few places, each with its reason."""

    def rule(path):
        for module, line in imports_by_name(path):
            if not module and name_of(path) not in BY_ANY_NAME:
                yield f":{line} imports by a name that is not told here"

    assert not broken(rule)


def test_formulas_know_no_arrays():
    def rule(path):
        if room_of(path) in WITHOUT_NUMPY:
            yield from (f" imports {m}" for m in imports(path) if within(m, ("numpy", "scipy")))

    assert not broken(rule)


def test_derive_is_a_leaf():
    def rule(path):
        for other in imported_files(path):
            room = room_of(other)
            if room == "derive" and not name_of(path).startswith(ASK_FOR_PAGES):
                yield f" imports {name_of(other)}"
            if room_of(path) == "derive" and room is not None and room not in BELOW_DERIVE:
                yield f" imports {name_of(other)}"

    assert not broken(rule)


def test_only_the_shell_knows_people():
    def rule(path):
        if not name_of(path).startswith(("cli/", "page/", "__main__", "axes.py")):
            wrong = (m for m in imports(path) if within(m, LIBRARY_HIDES_FROM))
            yield from (f" must not import {m}" for m in wrong)

    assert not broken(rule)


def test_text_never_becomes_code():
    def rule(path):
        for node in calls(path):
            name = called_name(node)
            if name in CODE_FROM_TEXT:
                yield f":{node.lineno} calls {name}"
            if name == "sympify":
                strict = [k.value for k in node.keywords if k.arg == "strict"]
                if not strict or getattr(strict[0], "value", None) is not True:
                    yield f":{node.lineno}: sympify without strict=True would run text as code"
            if name == "S" and not isinstance(node.args[0], ast.Constant):
                yield f":{node.lineno}: S() of a value would run text as code"

    assert not broken(rule)


def test_no_exception_is_swallowed():
    def rule(path):
        for node in nodes_of(path):
            if not isinstance(node, ast.ExceptHandler):
                continue
            if node.type is None:
                yield f":{node.lineno} is a bare except"
                continue
            caught = {getattr(one, "id", "") for one in ast.walk(node.type)}
            if caught & {"Exception", "BaseException"} and name_of(path) != LAST_RESORT:
                yield f":{node.lineno} catches everything"

    assert not broken(rule)


def test_our_own_errors_are_caught_in_few_places():
    """Whoever catches an error takes another way, which nobody sees; lower it with the count."""
    classes = (node for path in FILES for node in nodes_of(path) if isinstance(node, ast.ClassDef))
    own = {node.name for node in classes if node.name.endswith("Error")}
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.ExceptHandler) and node.type is not None
        if {getattr(one, "id", "") for one in ast.walk(node.type)} & own
    ]
    assert len(found) <= MOST_CATCHES, f"{len(found)} places: {found}"


def lines_of_code(path: Path) -> set[int]:
    """Return the numbers of lines that hold code: no comments, docstrings or empty lines."""
    source = path.read_text(encoding="utf-8")
    texts = {
        line
        for node in nodes_of(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    apart = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {t.start[0] for t in tokens if t.type not in apart and t.string} - texts


def test_files_stay_short():
    def rule(path):
        lines = path.read_text(encoding="utf-8").count("\n")
        if name_of(path) == PROOF:  # its comments are the proof
            lines = len(lines_of_code(path))
        if lines > MOST_LINES:
            yield f" has {lines} lines"

    assert not broken(rule)


def constants(path: Path) -> Iterator[tuple[str, int]]:
    """Names in capitals that a file assigns, and their lines; none of the proof."""
    for node in () if name_of(path) == PROOF else tree_of(path).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in (inner for target in targets for inner in ast.walk(target)):
                if isinstance(name, ast.Name) and name.id.isupper():
                    yield name.id, node.lineno


def test_constants_become_fewer():
    """A threshold has one definition, as few as possible, and follows from another if it can."""
    for room, most in MOST_CONSTANTS.items():
        found = [name for path in FILES if room_of(path) == room for name, _ in constants(path)]
        assert len(found) <= most, f"{room}/ has {len(found)} constants, {most} are the most"
        assert most <= 2 * len(found), f"{most} is no budget of {room}/, which has {len(found)}"


def test_every_constant_says_what_it_bounds():
    def rule(path):
        lines = path.read_text(encoding="utf-8").splitlines()
        for name, number in constants(path) if room_of(path) in MOST_CONSTANTS else ():
            if "#" not in lines[number - 1] and not lines[number - 2].startswith("#"):
                yield f":{number}: {name} has no comment"

    assert not broken(rule)


def names_of_methods(node: ast.AST) -> tuple[ast.expr, ...]:
    """The names in a type that lists methods alone: one of them is that of a mechanism too."""
    if not isinstance(node, ast.Subscript) or getattr(node.value, "id", "") != "Literal":
        return ()
    listed = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    named = {str(getattr(one, "value", "")).split(":")[0] for one in listed}
    return tuple(listed) if named <= METHODS.keys() else ()


def test_no_code_knows_a_mechanism_by_name():
    names = {file.stem for file in (PACKAGE / "mechanisms").glob("*.toml")}
    assert names

    def rule(path):
        of_methods = {one for node in nodes_of(path) for one in names_of_methods(node)}
        for node in nodes_of(path):
            if isinstance(node, ast.Constant) and node.value in names and node not in of_methods:
                yield f":{node.lineno} names the mechanism {node.value!r}"

    assert not broken(rule)


def test_every_module_says_what_it_is():
    def rule(path):
        if not ast.get_docstring(tree_of(path)):
            yield " has no docstring"

    assert not broken(rule)


def test_every_room_says_what_comes_in_and_what_to_read_first():
    for room in {room_of(path) for path in FILES} - {None}:
        words = ast.get_docstring(tree_of(PACKAGE / room / "__init__.py")) or ""
        assert re.search(r"[Ii]n comes? ", words), room
        assert re.search(r"\b[Rr]ead\b", words), room
        for name in re.findall(r"`(\w+\.(?:py|toml))`", words):
            assert (PACKAGE / room / name).exists(), f"{room}/ has no {name}"


def test_a_rule_that_is_broken_is_told_with_its_place(monkeypatch, tmp_path):
    """The rules above can fail."""
    folder = tmp_path / "derive"
    folder.mkdir()
    (folder / "wrong.py").write_text(
        "import numpy\nfrom symdp.cli import app\n\ntry:\n    eval('1')\n"
        "except Exception:\n    sympify('x')\n    S(x)\n    name: Literal['gaussian', 'beta']\n"
        "    import_module(f'symdp.{name}')\n    import_module('symdp.page.plot')\n"
        + "\n"
        * MOST_LINES,
        encoding="utf-8",
    )
    (tmp_path / "mechanisms").mkdir()
    (tmp_path / "mechanisms" / "gaussian.toml").write_text("", encoding="utf-8")
    module = sys.modules[__name__]
    monkeypatch.setattr(module, "PACKAGE", tmp_path)
    (tmp_path / "numeric").mkdir()
    long = tmp_path / "numeric" / "long.py"
    long.write_text(
        "".join(f"A{k} = {k}\n" for k in range(MOST_CONSTANTS["numeric"] + 1)), encoding="utf-8"
    )
    monkeypatch.setattr(module, "FILES", [folder / "wrong.py", long])
    rules = [
        (test_formulas_know_no_arrays, "derive/wrong.py imports numpy"),
        (test_only_the_shell_knows_people, "must not import symdp.page.plot"),
        (test_text_never_becomes_code, "wrong.py:5 calls eval"),
        (test_no_exception_is_swallowed, "wrong.py:6 catches everything"),
        (test_files_stay_short, f"has {MOST_LINES + 11} lines"),
        (test_what_is_imported_by_name_is_seen_above, "wrong.py:10 imports by a name"),
        (test_no_code_knows_a_mechanism_by_name, "wrong.py:9 names the mechanism 'gaussian'"),
        (test_every_module_says_what_it_is, "has no docstring"),
        (test_constants_become_fewer, f"numeric/ has {MOST_CONSTANTS['numeric'] + 1} constants"),
        (test_every_constant_says_what_it_bounds, "numeric/long.py:1: A0 has no comment"),
    ]
    for test, words in rules:
        with pytest.raises(AssertionError) as failure:
            test()
        assert words in str(failure.value)
