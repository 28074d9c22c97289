"""How far the sliders of a page reach: the program of the page is asked while the page is written.

A page shows no slider that it cannot move: the program that it holds is tried at several numbers of
steps and at both ends of each parameter. An end without an answer moves towards the opening value;
a slider that nothing is left of becomes a text.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

COUNTS = (1, 2, 5, 10, 100, 10_000)  # steps at which a program is tried
_HALVINGS = 3  # of the way from an end without an answer to the opening value
_COARSE = 0.1  # of log δ: the width of a grid that tells whether there is an answer
_LEAST_WAY = 0.01  # of a slider, logarithmic where the slider is: less is no slider


# What runs a program beside symdp: a question a line, and why it has no answer a line.
_ASKED = """
import json, math, runpy, sys
names = runpy.run_path(sys.argv[1])
for line in sys.stdin:
    count, values, direction, epsilons, width = json.loads(line)
    try:
        laws = names["_laws"](count, values, direction)
        for law in laws:
            law.near = width
        logs = [names["_log_delta"](laws, epsilon) for epsilon in epsilons]
        why = "no number" if any(map(math.isnan, logs)) else ""
    except (ArithmeticError, ValueError) as error:
        why = str(error)
    print(json.dumps(why), flush=True)
"""
Question = tuple[float, Mapping[str, float], str, Sequence[float], float]
Program = Callable[[Question], str]


@contextmanager
def running(program: str) -> Iterator[Program]:
    """Run a program in Python, and yield what asks it: why it has no answer, empty where it has.

    A page that is given up takes it along: its input ends.
    """
    with TemporaryDirectory() as folder:
        source = Path(folder) / "program.py"
        source.write_text(program, "utf-8")
        line = [sys.executable, "-I", "-c", _ASKED, str(source)]
        with subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:

            def ask(question: Question) -> str:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(json.dumps(question) + "\n")
                process.stdin.flush()
                return str(json.loads(process.stdout.readline()))

            try:
                yield ask
            finally:
                process.kill()


@dataclass(frozen=True)
class Trial:
    """The program of a page, and what the page opens with."""

    program: Program
    epsilon: float
    count: float
    values: Mapping[str, float]
    direction: str = "both"

    def refusal(self, count: float, **values: float) -> str:
        """Return why the program has no δ at 0 and about where the page asks, or nothing."""
        scaled = self.epsilon * math.sqrt(count / self.count)
        everything = {**self.values, **values}
        return self.program((count, everything, self.direction, (0.0, scaled), _COARSE))


def least_count(trial: Trial) -> tuple[int | None, str]:
    """Return the number of steps from which on all that are tried have an answer, and why."""
    least, why = None, ""
    for count in reversed(COUNTS):
        why = trial.refusal(count)
        if why:
            break
        least = count
    return least, why


def narrowed(trial: Trial, count: float, field: Mapping[str, Any]) -> dict[str, Any]:
    """Return a slider whose ends have answers: `low`, `high`, or `fixed` where nothing is left."""
    name, value = field["name"], trial.values[field["name"]]
    ends = {}
    for side in ("low", "high"):
        end = field[side]
        for _ in range(_HALVINGS):
            if not trial.refusal(count, **{name: _allowed(field, end)}):
                break
            end = _between(field, end, value)
        else:
            end = value
        ends[side] = end
    way = _way(field, ends["low"], ends["high"]) / (_way(field, field["low"], field["high"]) or 1.0)
    return {**field, **ends, "fixed": way < _LEAST_WAY}


def _allowed(field: Mapping[str, Any], end: float) -> float:
    """Return an end that the rule of a parameter allows."""
    is_out = field["open"] and end <= field["least"]
    return field["least"] + 1e-3 if is_out else end


def _between(field: Mapping[str, Any], end: float, value: float) -> float:
    middle = math.sqrt(end * value) if field["log"] else 0.5 * (end + value)
    return round(middle) if "integer" in field["domain"] or field["domain"] == "natural" else middle


def _way(field: Mapping[str, Any], low: float, high: float) -> float:
    return math.log(high / low) if field["log"] else high - low
