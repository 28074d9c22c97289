"""The rules that keep the house simple, read off the source itself."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
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


@cache
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


def broken(rule: Callable[[Path], Iterator[str]]) -> str:
    """Return a line for every place in the package that breaks a rule."""
    return "\n".join(f"{name_of(path)}{what}" for path in FILES for what in rule(path))


def calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))


def test_there_is_something_to_check():
    assert len(FILES) > 40


def test_the_corridor_runs_one_way():
    def rule(path):
        forbidden = FORBIDDEN.get(name_of(path).split("/")[0], ())
        yield from (f" must not import {m}" for m in imports(path) if within(m, forbidden))

    assert not broken(rule)


def test_only_the_shell_knows_people():
    def rule(path):
        if not name_of(path).startswith(("cli/", "report/", "__main__")):
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
        for node in ast.walk(tree_of(path)):
            if not isinstance(node, ast.ExceptHandler):
                continue
            if node.type is None:
                yield f":{node.lineno} is a bare except"
                continue
            caught = {getattr(one, "id", "") for one in ast.walk(node.type)}
            if caught & {"Exception", "BaseException"} and name_of(path) != LAST_RESORT:
                yield f":{node.lineno} catches everything"

    assert not broken(rule)


def test_files_stay_short():
    def rule(path):
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > MOST_LINES:
            yield f" has {lines} lines"

    assert not broken(rule)


def test_no_code_knows_a_mechanism_by_name():
    names = {file.stem for file in (PACKAGE / "mechanisms").glob("*.toml")}
    assert names

    def rule(path):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Constant) and node.value in names:
                yield f":{node.lineno} names the mechanism {node.value!r}"

    assert not broken(rule)


def test_every_module_says_what_it_is():
    def rule(path):
        if not ast.get_docstring(tree_of(path)):
            yield " has no docstring"

    assert not broken(rule)


def test_a_rule_that_is_broken_is_told_with_its_place(monkeypatch, tmp_path):
    """The rules above can fail."""
    folder = tmp_path / "derive"
    folder.mkdir()
    (folder / "wrong.py").write_text(
        "import numpy\nfrom symdp.cli import app\n\ntry:\n    eval('1')\n"
        "except Exception:\n    sympify('x')\n    S(x)\n    name = 'gaussian'\n" + "\n" * 400,
        encoding="utf-8",
    )
    (tmp_path / "mechanisms").mkdir()
    (tmp_path / "mechanisms" / "gaussian.toml").write_text("", encoding="utf-8")
    monkeypatch.setattr("test_architecture.PACKAGE", tmp_path)
    monkeypatch.setattr("test_architecture.FILES", [folder / "wrong.py"])
    rules = [
        (test_the_corridor_runs_one_way, "derive/wrong.py must not import numpy"),
        (test_only_the_shell_knows_people, "must not import symdp.cli"),
        (test_text_never_becomes_code, "wrong.py:5 calls eval"),
        (test_no_exception_is_swallowed, "wrong.py:6 catches everything"),
        (test_files_stay_short, "has 409 lines"),
        (test_no_code_knows_a_mechanism_by_name, "wrong.py:9 names the mechanism 'gaussian'"),
        (test_every_module_says_what_it_is, "has no docstring"),
    ]
    for test, words in rules:
        with pytest.raises(AssertionError) as failure:
            test()
        assert words in str(failure.value)
