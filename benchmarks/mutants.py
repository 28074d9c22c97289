"""Change one line of a room at a time and see whether its quick tests notice.

    python -m benchmarks.mutants --count 60 --room derive

Mutations are drawn with a seed: an operator or a comparison for another, a sign dropped, a whole
number off by one, `and` for `or`, a condition turned. The room and its tests are run from a copy of
the tree; files are taken in turn, so that no long file has all of them. What survives is printed;
somebody must look at each: a hole gets a test, what changes nothing gets deleted code.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 600.0  # for the tests of one mutation: what hangs is noticed
COPIED = ("symdp", "tests", "benchmarks", "examples", "docs", "derivations")
FILES = (
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "CITATION.cff",
    "Makefile",
)

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


@dataclass(frozen=True)
class Mutation:
    """One changed stretch of one line."""

    path: Path
    line: int
    start: int
    end: int
    new: str

    def applied(self, text: str) -> str:
        """Return a file's text with the change; columns are of UTF-8."""
        lines = text.split("\n")
        raw = lines[self.line - 1].encode()
        changed = raw[: self.start] + self.new.encode() + raw[self.end :]
        lines[self.line - 1] = changed.decode()
        return "\n".join(lines)

    def __str__(self) -> str:
        before = (ROOT / self.path).read_text(encoding="utf-8")
        old = before.split("\n")[self.line - 1].strip()
        new = self.applied(before).split("\n")[self.line - 1].strip()
        return f"{self.path}:{self.line}\n  - {old}\n  + {new}"


def mutations(path: Path, text: str) -> Iterator[Mutation]:
    """Yield what can be changed in a file, docstrings and annotations left alone."""
    rows = [row.encode() for row in text.split("\n")]

    def between(left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[Mutation]:
        if left.end_lineno != right.lineno or left.end_col_offset is None:
            return
        row = rows[right.lineno - 1]
        at = row.find(old.encode(), left.end_col_offset, right.col_offset)
        if at >= 0:
            yield Mutation(path, right.lineno, at, at + len(old), new)

    for node in ast.walk(without_annotations(ast.parse(text))):
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            yield from between(node.left, node.right, *_OPERATORS[type(node.op)])
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
            words = _COMPARISONS[type(node.ops[0])]
            yield from between(node.left, node.comparators[0], *words)
        elif isinstance(node, ast.BoolOp):
            is_and = isinstance(node.op, ast.And)
            words = ("and", "or") if is_and else ("or", "and")
            yield from between(node.values[0], node.values[1], *words)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            length = 1 if isinstance(node.op, ast.USub) else len("not ")
            yield Mutation(path, node.lineno, node.col_offset, node.col_offset + length, "")
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            end = node.end_col_offset
            if end is not None:
                more = str(node.value + 1)
                yield Mutation(path, node.lineno, node.col_offset, end, more)


def without_annotations(tree: ast.Module) -> ast.Module:
    """Take types out: nothing that runs reads them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(value=None)
    return tree


def drawn(room: str, count: int, seed: int) -> list[Mutation]:
    """Draw mutations of a room, a file after another in a random order."""
    draw = random.Random(seed)
    files = sorted((ROOT / "symdp" / room).rglob("*.py"))
    waiting = []
    for file in files:
        path = file.relative_to(ROOT)
        own = list(mutations(path, file.read_text(encoding="utf-8")))
        draw.shuffle(own)
        if own:
            waiting.append(own)
    draw.shuffle(waiting)
    taken: list[Mutation] = []
    while waiting and len(taken) < count:
        for own in waiting[: count - len(taken)]:
            taken.append(own.pop())
        waiting = [own for own in waiting if own]
    return taken


def is_noticed(mutation: Mutation, tree: Path, tests: Sequence[str]) -> bool:
    """Run the tests on the changed file, and put it back."""
    file = tree / mutation.path
    text = file.read_text(encoding="utf-8")
    file.write_text(mutation.applied(text), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-q", "-x", "-m", "not slow"]
    surroundings = os.environ | {"PYTHONPATH": str(tree)}
    try:
        ran = subprocess.run(
            [*command, *tests], cwd=tree, env=surroundings, timeout=SECONDS,
            capture_output=True, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_text(text, encoding="utf-8")
    return ran.returncode != 0


def copied(folder: Path) -> Path:
    """Copy what tests read."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    return folder


def main() -> int:
    """Print how many are noticed, and the others."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--room", required=True, help="a folder of symdp, such as derive")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="*", help="what to run, in place of the room's tests")
    given = parser.parse_args()
    tests = given.tests or [f"symdp/{given.room}", f"tests/{given.room}"]
    survivors = []
    chosen = drawn(given.room, given.count, given.seed)
    with tempfile.TemporaryDirectory() as folder:
        tree = copied(Path(folder))
        for number, mutation in enumerate(chosen, start=1):
            noticed = is_noticed(mutation, tree, tests)
            word = "noticed" if noticed else "SURVIVES"
            print(f"{number} of {len(chosen)} {word}: {mutation}", flush=True)
            if not noticed:
                survivors.append(mutation)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} are noticed; these are not:")
    for mutation in survivors:
        print(mutation)
    return 0


if __name__ == "__main__":
    sys.exit(main())
