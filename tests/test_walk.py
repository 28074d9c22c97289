"""docs/architecture.md walks one question through the house by functions that are called."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
ROW = re.compile(r"^\| ?\d* ?\| ?(?:`(\w+)`)? ?\| (.+?) \|", re.MULTILINE)
QUESTION = """
import sys
import symdp
root, called = symdp.__file__.removesuffix("__init__.py"), set()
def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root):
        called.add(code.co_filename[len(root):-3] + " " + code.co_qualname)
sys.setprofile(note)
from symdp import compose
gaussian = symdp.mechanisms.gaussian
ASKED
sys.setprofile(None)
print(*called, sep="\\n")
"""


def named(text: str) -> Iterator[tuple[str, str]]:
    """Every file and function of the table, as paths in the package and words."""
    room = file = ""
    for own, cell in ROW.findall(text):
        room = own or room
        for word in re.findall(r"`([^`]+)`", cell):
            before, _, function = word.rpartition(": ")
            file = before or file
            yield f"{room}/{file}", function.removeprefix(".")


def test_every_function_on_the_way_is_called():
    text = PAGE.read_text(encoding="utf-8")
    question = re.search(r"^`(compose\(.+\))`:$", text, re.MULTILINE)
    assert question is not None
    way = list(named(text))
    assert len(way) > 25
    script = QUESTION.replace("ASKED", question[1])
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    called = [line.split(" ") for line in ran.stdout.splitlines()]
    for place, function in way:
        assert any(place == file and f".{function}." in f".{name}." for file, name in called), (
            f"{place} has no {function}, or it is not called"
        )
