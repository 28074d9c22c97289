"""What commands print for people, and the one JSON object that they print for programs."""

from __future__ import annotations

import json
import math
import os
import sys
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symdp.decimal_text import rounded
from symdp.errors import InputError, suggestion
from symdp.page.document import Block, Sentence, Table
from symdp.page.text import to_text

if TYPE_CHECKING:
    from symdp.questions.guarantee import Guarantee

# As terminals number them.
_STYLES = {"strong": 1, "quiet": 2, "bad": 31, "good": 32, "warning": 33}
_EXACTLY = {
    "truth": "arbitrary precision, proved or computed in two ways",
    "certified": "proved, every rounding included",
}
_HAIR = 1e-6  # bounds that are closer than this, relatively, are shown as an error


def one_line(text: str) -> str:
    """Return text without line breaks and control characters, so that no terminal obeys it."""
    joined = " ".join(text.split())
    return "".join(c for c in joined if unicodedata.category(c)[0] != "C")


def show(*blocks: Block) -> None:
    """Print blocks; on a terminal in its width and its styles."""
    width = columns(0) or None
    print(to_text(blocks, width, styled=styled))


def say(text: str = "", tone: str = "") -> None:
    """Print a sentence; on a terminal that is too narrow, on several lines."""
    show(Sentence(text, tone))


def check_output(path: Path | None, *endings: str, option: str = "-o") -> str:
    """Return the ending of a file's name; a wrong one, or a place for no file, is known first."""
    if path is None:
        return ""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in endings:
        listed = [f".{suffix}" for suffix in endings]
        allowed = " or ".join(filter(None, (", ".join(listed[:-1]), listed[-1])))
        hint = ""
        if ending:
            hint = suggestion(ending, endings)
        raise InputError(f"{option} {path}: the name must end in {allowed}{hint}")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}")
    if path.is_dir():
        raise InputError(f"{path} cannot be written: it is a folder; name a file")
    return ending


def check_drawing(path: Path | None, option: str = "--plot") -> None:
    """A wrong name, a missing folder and a missing Matplotlib are known before the work."""
    if path is None:
        return
    from symdp.page.plot import FORMATS, why_not_drawn

    check_output(path, *FORMATS, option=option)
    if reason := why_not_drawn():
        raise InputError(f"{option} {path}: {reason}")


def columns(otherwise: int) -> int:
    """Return the width of the terminal, or another one where nothing is printed to a terminal."""
    if not sys.stdout.isatty():
        return otherwise
    from shutil import get_terminal_size

    return get_terminal_size().columns


def styled(text: str, style: str) -> str:
    """Return text in a style on a terminal that shows styles, and plain elsewhere."""
    shown = sys.stdout.isatty() and os.environ.get("TERM") not in {None, "dumb"}
    if not shown or "NO_COLOR" in os.environ:
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object; not-a-number and infinity are refused."""
    print(json.dumps(value, allow_nan=False, ensure_ascii=False))


def answer_blocks(answer: Guarantee, *, explain: bool = False) -> list[Block]:
    """Return one (ε, δ), and how it was found."""
    epsilon = answer.epsilon_text()
    delta = answer.delta_text()
    if answer.quantity == "delta":
        head = Sentence(f"δ({epsilon}) {answer.sign} ", answer=delta)
    else:
        head = Sentence(f"ε(δ = {delta}) {answer.sign} ", answer=epsilon)
    blocks: list[Block] = [head, Sentence(f"  {meaning(answer)}"), *source(answer)]
    if answer.advice:
        blocks.append(Sentence(f"  warning: {answer.advice}", "warning"))
    if explain:
        blocks.append(routes_table(answer.route))
    return blocks


def routes_table(taken: str) -> Table:
    """Return the ways by which the default method answers, the one that was taken marked."""
    from symdp.methods.route import ROUTES

    rows = []
    for route in ROUTES:
        mark = ""
        if route.name == taken:
            mark = "→"
        rows.append((mark, route.name, route.laws, route.how, route.promise, route.cost))
    return Table(("", "route", "applies to", "what it computes", "half width", "work grows"), rows)


def source(answer: Guarantee, seconds: float | None = None) -> list[Sentence]:
    """Return how an answer was found, and whose privacy it speaks of."""
    if seconds is None:
        seconds = answer.seconds
    how = f"direction {answer.direction}, {steps_of(answer.n)}, {seconds:.2g} s"
    return [Sentence(f"  method {answer.method}, {how}", "quiet"), *protection(answer)]


def protection(answer: Guarantee) -> list[Sentence]:
    """Return whose privacy an answer speaks of."""
    sentences = []
    if answer.protection is not None:
        sentences.append(f"  protects {answer.protection.sentence}")
    if answer.mass == "seen":
        sentences.append("  the mass 1 of the densities was seen by two quadratures, not proved")
    return [Sentence(words, "quiet") for words in sentences]


def steps_of(count: int) -> str:
    """Return a number of steps in words."""
    if count == 1:
        return "1 step"
    return f"{count} steps"


def meaning(answer: Guarantee) -> str:
    """Return in words what the number is: exact, a proved bound, or an estimate."""
    bounds = _bounds(answer)
    if answer.kind == "bound" and answer.quantity == "delta" and answer.log_delta >= 0.0:
        return "no bound below 1 is known, which δ never exceeds"
    if answer.sign == "≤":
        return "exact formula in floating point, of which an upper end alone is known"
    if answer.kind != answer.kind_for_pair:
        exactly = _EXACTLY.get(answer.method, "exact formula in floating point")
        return f"upper bound: {exactly} for a pair that dominates{bounds}"
    if answer.kind == "exact":
        return f"{_EXACTLY.get(answer.method, 'exact formula in floating point')}{bounds}"
    if answer.route == "blanket":
        return f"upper bound by the blanket, its nodes in floating point{bounds}"
    if answer.kind == "bound":
        return f"proved upper bound: the true value is not larger{bounds}"
    return f"estimate, not a guarantee{bounds}"


def _bounds(answer: Guarantee) -> str:
    if answer.quantity == "delta":
        lower = answer.log_lower
        upper = answer.log_upper
        value = answer.log_delta
        if lower is None or upper is None or value == -math.inf:
            return ""
        error = max(upper - value, value - lower)
    else:
        lower = answer.epsilon_lower
        upper = answer.epsilon_upper
        value = answer.epsilon
        if lower is None or upper is None:
            return ""
        error = max(upper - value, value - lower) / value if value else upper
    if error <= 0.0:
        return ""
    if error < _HAIR:
        most = f", relative error at most {rounded(error, 1, 'up')}"
        if answer.method == "certified":
            return most
        return f"{most} by its own estimate"
    low, high = answer.bound_texts()
    return f", between {low} and {high}"
