"""docs/refused.md has every sentence with which a number is refused, as the code has it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from symdp.errors import AccuracyError

ROOT = Path(__file__).parents[1]
ROOMS = ("numeric", "methods", "prove", "balls", "density", "emit")  # those below questions/
LEAST = 12  # letters of a part between two values that is looked for


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _parts(node: ast.expr, texts: dict[str, list[str]]) -> list[str]:
    """The texts of a message between the values that it is given."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return [part for value in node.values for part in _parts(value, texts)]
    if isinstance(node, ast.BinOp):
        return _parts(node.left, texts) + _parts(node.right, texts)
    if isinstance(node, ast.Name):
        return texts.get(node.id, [])
    return []


def refusals() -> Iterator[tuple[str, str]]:
    """Where a number is refused, and the longest part of the sentence."""
    for room in ROOMS:
        for path in sorted((ROOT / "symdp" / room).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            texts = {
                node.targets[0].id: _parts(node.value, {})
                for node in ast.walk(tree)
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            }
            for node in ast.walk(tree):
                if not (
                    isinstance(node, ast.Call) and getattr(node.func, "id", "") == "AccuracyError"
                ):
                    continue
                parts = [part for argument in node.args for part in _parts(argument, texts)]
                longest = _plain(max(parts, key=len, default=""))
                if len(longest) >= LEAST:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", longest


def test_every_refusal_of_a_number_has_its_entry():
    page = _plain((ROOT / "docs" / "refused.md").read_text(encoding="utf-8").replace("\\|", "|"))
    found = list(refusals())
    assert len(found) > 90
    lacking = {place: text for place, text in found if text.strip(" ;:,") not in page}
    assert not lacking


def test_the_page_is_linked():
    assert "refused" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8").split()


def test_a_command_points_to_the_page(capsys, monkeypatch):
    from symdp import cli

    def refuse(words):
        raise AccuracyError("the density or its loss oscillates too fast to integrate")

    monkeypatch.setattr(cli, "_run_command", refuse)
    assert cli.main(["delta"]) == 1
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert line.endswith("; see docs/refused.md\n")


@pytest.mark.parametrize("said", ["no answer within 60 s", "incomplete after 3 s: 26 of 40 points"])
def test_what_took_too_long_is_no_refusal(capsys, monkeypatch, said):
    from symdp import cli

    def refuse(words):
        raise AccuracyError(said)

    monkeypatch.setattr(cli, "_run_command", refuse)
    assert cli.main(["delta"]) == 1
    assert "refused" not in capsys.readouterr().err
