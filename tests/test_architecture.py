"""The rules that keep the house simple, read off the source itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "symdp"
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES = 400
LAST_RESORT = "cli/__init__.py"  # the one place that may catch everything

# Folder -> what its modules may not import, at any depth of the code.
FORBIDDEN = {
    "derive": ("numpy", "scipy", "symdp.numeric", "symdp.accountant"),
    "expansion": ("numpy", "scipy", "symdp.derive", "symdp.numeric", "symdp.accountant"),
    "numeric": ("symdp.derive", "symdp.truth", "symdp.accountant"),
    "accountant": ("symdp.derive", "symdp.truth"),
    "truth": ("symdp.numeric", "symdp.accountant"),
    "emit": ("symdp.derive", "symdp.numeric", "symdp.accountant", "symdp.truth"),
}
LIBRARY_HIDES_FROM = ("symdp.cli", "symdp.report", "typer", "rich", "matplotlib")
CODE_FROM_TEXT = {"eval", "exec", "parse_expr", "__import__"}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path) -> Iterator[str]:
    """Modules that a file imports when it runs; imports for type checkers are left out."""
    tree = tree_of(path)
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)} has a relative import"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(module: str, forbidden: tuple[str, ...]) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in forbidden)


def called_name(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def test_there_is_something_to_check():
    assert len(FILES) > 40


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_the_corridor_runs_one_way(path):
    folder = name_of(path).split("/")[0]
    wrong = [m for m in imports(path) if within(m, FORBIDDEN.get(folder, ()))]
    assert not wrong, f"{name_of(path)} must not import {', '.join(wrong)}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_only_the_shell_knows_people(path):
    if name_of(path).startswith(("cli/", "report/", "__main__")):
        return
    wrong = [m for m in imports(path) if within(m, LIBRARY_HIDES_FROM)]
    assert not wrong, f"{name_of(path)} must not import {', '.join(wrong)}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_text_never_becomes_code(path):
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.Call):
            continue
        name = called_name(node)
        place = f"{name_of(path)}:{node.lineno}"
        assert name not in CODE_FROM_TEXT, f"{place} calls {name}"
        if name == "sympify":
            strict = [k.value for k in node.keywords if k.arg == "strict"]
            is_strict = bool(strict) and getattr(strict[0], "value", None) is True
            assert is_strict, f"{place}: sympify without strict=True would run text as code"
        if name == "S":
            constant = isinstance(node.args[0], ast.Constant)
            assert constant, f"{place}: S() of a value would run text as code"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_exception_is_swallowed(path):
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.ExceptHandler):
            continue
        place = f"{name_of(path)}:{node.lineno}"
        assert node.type is not None, f"{place} is a bare except"
        caught = {getattr(one, "id", "") for one in ast.walk(node.type)}
        if caught & {"Exception", "BaseException"}:
            assert name_of(path) == LAST_RESORT, f"{place} catches everything"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_stay_short(path):
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= MOST_LINES, f"{name_of(path)} has {lines} lines"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_code_knows_a_mechanism_by_name(path):
    names = {file.stem for file in (PACKAGE / "mechanisms").glob("*.toml")}
    assert names
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Constant) and node.value in names:
            pytest.fail(f"{name_of(path)}:{node.lineno} names the mechanism {node.value!r}")


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_module_says_what_it_is(path):
    assert ast.get_docstring(tree_of(path)), f"{name_of(path)} has no docstring"
