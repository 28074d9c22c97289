"""On the way to a number SymPy rewrites nothing without a limit of operations."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import sympy as sp

from symdp.model import tidy

PACKAGE = Path(__file__).parents[1] / "symdp"
ROOMS = ("balls", "density", "model", "numeric", "emit")  # those below questions/
# They may take for ever; `tidy` has each with a limit.
HEAVY = {
    "simplify", "factor", "together", "cancel", "apart", "limit", "solve", "solveset",
    "trigsimp", "gammasimp", "resultant", "integrate", "hyperexpand", "radsimp", "nsimplify",
}  # fmt: skip
LIMITED = {  # calls behind a limit of their own, with that limit
    "model/tidy.py": "count_ops ≤ tidy.MOST_OPERATIONS, in `_limited`, `limit` and `_simplified`",
    "emit/standalone/ends.py": "together: count_ops ≤ _LONGEST in the line before",
    "density/roots.py": "resultant: count_ops ≤ tidy.MOST_OPERATIONS in the line before",
}
MOST_EXPANSIONS = 145  # calls of `sp.expand` that have no limit yet: lower it with the count


def calls() -> Iterator[tuple[str, int, str]]:
    """File, line and name of each call of a function of SymPy's namespace."""
    for room in ROOMS:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                function = node.func if isinstance(node, ast.Call) else None
                if (
                    isinstance(function, ast.Attribute)
                    and getattr(function.value, "id", "") == "sp"
                ):
                    yield path.relative_to(PACKAGE).as_posix(), node.lineno, function.attr


def test_rewriting_has_a_limit_of_operations():
    bare = [f"{file}:{line} {name}" for file, line, name in calls() if name in HEAVY
            and file not in LIMITED]  # fmt: skip
    assert not bare, "use tidy, or tidy.bounded(sp.…, expression)"


def test_expansions_without_a_limit_become_fewer():
    count = sum(name == "expand" for _, _, name in calls())
    assert MOST_EXPANSIONS - 10 <= count <= MOST_EXPANSIONS


def test_what_is_very_long_stays_as_it_is():
    x = sp.Symbol("x", positive=True)
    long = sp.Add(*(sp.sin(k * x) ** k / (x + k) for k in range(2, 1_000)))
    assert long.count_ops() > tidy.MOST_OPERATIONS
    for rewrite in (tidy.factor, tidy.cancel, tidy.together, tidy.simplify):
        assert rewrite(long) is long
    assert tidy.bounded(sp.factor, long) is long
    assert tidy.limit(long, x, sp.oo, "-") is None
    assert tidy.bounded(sp.factor, x**2 + x) == x * (x + 1)
