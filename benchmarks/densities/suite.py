"""The suite: its files, its questions, how a truth is found, and the page that shows all of it."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np

import symdp
from benchmarks.peers.page import duration, table
from symdp.errors import SymdpError
from symdp.interrupt import time_limit

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from strangers.densities import Stranger  # noqa: E402
from strangers.truth import Loss, pair_of  # noqa: E402
from strangers.unseen import UNSEEN  # noqa: E402

FILES, TRUTHS = HERE / "files", HERE / "truths.json"
ANSWERS = HERE.parent / "measured" / "densities.json"
COUNTS = (1, 5, 30)
DELTA = 1e-4  # about what is asked at, by an ε of two digits
DIGITS = 10
GRID = "two sums on a grid"
CERTIFY = "certify"


def strangers() -> dict[str, Stranger]:
    """Return the densities of the tests that nobody tuned for, by the names of their files."""
    return {slug(name): stranger for name, stranger in UNSEEN.items()}


def slug(name: str) -> str:
    """Return the name of a density's file.

    Examples
    --------
    >>> slug("Conway–Maxwell–Poisson"), slug("Pearson's fourth")
    ('conway-maxwell-poisson', 'pearsons-fourth')
    """
    plain = unicodedata.normalize("NFKD", name.replace("–", "-").replace("'", ""))
    return re.sub(r"[^a-z0-9]+", "-", plain.encode("ascii", "ignore").decode().lower()).strip("-")


def file_of(stranger: Stranger, own: str) -> str:
    """Return the file of a density: a record moves its output by exactly the sensitivity."""
    text = re.sub(r'^name = ".*"', f'name = "{own}"', stranger.toml, count=1, flags=re.M)
    if "[noise]" in text and "shift" not in text:
        text = text.replace("[noise]\n", '[noise]\nshift = "exactly"\n')
    return text.rstrip() + "\n"


def truths() -> list[dict[str, Any]]:
    """Return every density with its questions and their proved ends."""
    found: list[dict[str, Any]] = json.loads(TRUTHS.read_text("utf-8"))
    return found


def composed(row: Mapping[str, Any], count: int) -> symdp.Composition:
    """Return the steps that a question speaks of."""
    mechanism = symdp.load(FILES / f"{row['file']}.toml")
    return symdp.compose(mechanism(**row["values"]) if row["values"] else mechanism, count)


def asked(row: Mapping[str, Any], question: Mapping[str, Any]) -> str:
    """Return a question in one line, as a results file names it."""
    values = "".join(f", {name} = {value}" for name, value in row["values"].items())
    return f"densities/files/{row['file']}.toml{values}, n = {question['steps']}"


def on_grid(losses: Sequence[Loss], count: int, epsilon: float) -> tuple[float, float]:
    """Return δ of losses rounded down and up, the larger direction: no code of symdp is used."""
    ends = [loss.between(count, epsilon) for loss in losses]
    return max(0.0, *(low for low, _ in ends)), min(1.0, max(high for _, high in ends))


def questions(stranger: Stranger) -> list[dict[str, Any]]:
    """Return the questions about a density, with truths from a grid."""
    losses, found = pair_of(stranger), []
    for count in COUNTS:
        epsilon = _asked_at(losses, count)
        low, high = on_grid(losses, count, epsilon)
        ends = {"lower": repr(low), "upper": repr(high), "proof": GRID}
        found.append({"steps": count, "epsilon": epsilon, **ends})
    return found


def prove(row: Mapping[str, Any], question: dict[str, Any], seconds: float) -> None:
    """Put a proof by `certify` in the place of sums on a grid, if it takes no longer than so long.

    Both must have a number in common, else one of them is wrong and an error says so.
    """
    try:
        with time_limit(seconds):
            found = composed(row, question["steps"]).certify(question["epsilon"], digits=DIGITS)
    except SymdpError:
        return
    ends = found.lower_decimal, found.upper_decimal
    if not (
        float(ends[0]) <= float(question["upper"]) and float(question["lower"]) <= float(ends[1])
    ):
        raise AssertionError(f"{asked(row, question)}: {found} and {question}")
    question |= {"lower": str(ends[0]), "upper": str(ends[1]), "proof": CERTIFY}


def _asked_at(losses: Sequence[Loss], count: int) -> float:
    """Return an ε of two digits at which δ is about 1e-4 or a little more, 1 if there is none."""
    found = 0.0
    for loss in losses:
        sums, masses = loss.summed(count, 2**19)
        lasting = 1 - (1 - loss.infinite) ** count
        low, high = 0.0, max(float(sums.max()), 0.0)
        for _ in range(40):
            middle = 0.5 * (low + high)
            above = sums > middle
            delta = lasting + float(masses[above] @ -np.expm1(middle - sums[above]))
            low, high = (middle, high) if delta > DELTA else (low, middle)
        found = max(found, low)
        if lasting > DELTA:
            return 1.0
    with localcontext(prec=2, rounding=ROUND_FLOOR):
        return float(+Decimal(found)) or 1.0


HEAD = """# Densities that no program has built in

A suite for accountants that read a density: {files} files in `files/`, with one mode, several or
gaps, light and heavy tails, kinks and holes, on the line, on intervals and on integers, sampled or
not. None was chosen because it is easy: they are those of `tests/strangers` that nobody tuned for.
`truths.json` has three questions about each: δ at an ε, of 1, 5 and 30 steps. The ε has two digits,
and δ there is a little above 1e-4; where δ does not fall so far, ε is 1. A record moves the output
by exactly the sensitivity, up or down; of both signs and both directions the largest δ is meant.

A truth is an interval, and says where it comes from:

| proof | questions | what it is |
| --- | --- | --- |
| `certify` | {certified} | a proof in ball arithmetic, by symdp; it met the sums |
| two sums on a grid | {gridded} | NumPy alone, no code of symdp: losses rounded down, and up |

The grid has 2¹⁹ points, and its intervals are at most 0.6 % of δ wide. Left open there is what the
rounding of the sums and the quadrature of the density's mass may change; both are taken to be below
1e-12. `ask` puts a proof in the place of the sums where it comes within five seconds, so that more
of them follow as more is asked.

`python -m benchmarks.densities` lists the commands that write all of this. To put your program
beside symdp, answer the questions, write [a results file](../README.md), and send it. Of the
programs that `benchmarks/peers` compares none reads a density: its job "A density that no program
has built in" shows what they say.

## Who answers

symdp {version}, measured on {measured}; of {questions} questions: {told}. Seconds are
of the processor; most of them go into the formulas of a density, which its first question derives.

"""


def page() -> str:
    """Return README.md, from the truths and from what was measured."""
    rows, kept = truths(), json.loads(ANSWERS.read_text("utf-8"))
    measured = {row["question"]: row for row in kept["rows"]}
    proofs = Counter(question["proof"] for row in rows for question in row["questions"])
    cells, kinds = [], Counter[str]()
    for row in rows:
        cell, seconds = [], []
        for question in row["questions"]:
            answer = measured.get(asked(row, question))
            kind = "not asked" if answer is None else answer["kind"] or "no answer"
            kinds[kind] += 1
            seconds += [answer["seconds"]] if answer else []
            said = "" if kind == "exact" else f", {kind}"
            cell.append(f"δ({question['epsilon']:g}) = {float(question['upper']):.4g}{said}")
        values = "".join(f", {name} = {value}" for name, value in row["values"].items())
        name = f"[{row['file']}](files/{row['file']}.toml){values}"
        cells.append((name, *cell, duration(max(seconds)) if seconds else ""))
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    head = HEAD.format(
        files=len(rows), certified=proofs[CERTIFY], gridded=proofs[GRID], told=told,
        version=kept["rows"][0]["version"], measured=kept["measured"], questions=kinds.total(),
    )  # fmt: skip
    columns = ("file", *(f"n = {count}" for count in COUNTS), "slowest")
    return head + table(columns, cells)
