"""Write the suite anew: files from the tests' densities, then truths, then what symdp answers.

    python -m benchmarks.densities files            # files/*.toml
    python -m benchmarks.densities truths [NAME …]  # truths.json: two sums on a grid
    python -m benchmarks.densities ask [NAME …]     # symdp's answers, and proofs by certify
    python -m benchmarks.densities page             # README.md

Names are those of files. Without any, `truths` and `ask` go on with those that are not there yet.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import symdp
from benchmarks import results
from benchmarks.densities import suite
from benchmarks.peers.answers import Answer, Outcome
from symdp.errors import SymdpError
from symdp.interrupt import time_limit

PROVED, ANSWERED = 5.0, 20.0  # processor seconds of a proof, and of an answer


def write(path: Path, found: object) -> None:
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


def write_truths(names: Sequence[str]) -> None:
    """Ask the grid about the named densities, or about those that have no questions yet."""
    kept = {row["file"]: row for row in suite.truths()} if suite.TRUTHS.exists() else {}
    for own, stranger in suite.strangers().items():
        if own not in names if names else own in kept:
            continue
        values, questions = dict(stranger.values), suite.questions(stranger)
        kept[own] = {"file": own, "values": values, "questions": questions}
        print(own, *(q["upper"] for q in questions), flush=True)
        write(suite.TRUTHS, [kept[name] for name in suite.strangers() if name in kept])


def ask(names: Sequence[str]) -> None:
    """Ask symdp for answers and proofs; a proof that the grid contradicts is an error."""
    rows = json.loads(suite.ANSWERS.read_text("utf-8"))["rows"] if suite.ANSWERS.exists() else []
    truths = suite.truths()
    for row in truths:
        asked = [suite.asked(row, question) for question in row["questions"]]
        known = {found["question"] for found in rows}
        if row["file"] not in names if names else asked[0] in known:
            continue
        rows = [found for found in rows if found["question"] not in asked]
        for question in row["questions"]:
            rows.append(_answered(row, question))
            suite.prove(row, question, PROVED)
            rows[-1]["truth"] = {k: question[k] for k in ("lower", "upper", "proof")}
        print(row["file"], *((r["kind"], round(r["seconds"], 2)) for r in rows[-3:]), flush=True)
        write(suite.TRUTHS, truths)
        suite.ANSWERS.write_text(results.file_of(rows), "utf-8")


def _answered(row: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    outcome, start = Outcome(), time.process_time()
    try:
        with time_limit(ANSWERED):
            found = suite.composed(row, question["steps"]).delta(question["epsilon"])
        ends = [math.exp(end) for end in (found.log_lower, found.log_upper)]
        kind = {"exact": "exact", "bound": "upper", "estimate": "estimate"}[found.kind]
        outcome.answer = Answer(found.delta, kind, *ends)
    except SymdpError as error:
        outcome.failure = str(error).replace(f"{suite.FILES}/", "")[:400]
    taken = time.process_time() - start
    asked = suite.asked(row, question), "delta", question["epsilon"]
    return results.row(asked, None, ("symdp", "", symdp.__version__), outcome, taken)


def main(words: Sequence[str]) -> int:
    match words:
        case ["files"]:
            for own, stranger in suite.strangers().items():
                (suite.FILES / f"{own}.toml").write_text(suite.file_of(stranger, own), "utf-8")
        case ["truths", *names]:
            write_truths(names)
        case ["ask", *names]:
            ask(names)
        case ["page"]:
            (suite.HERE / "README.md").write_text(suite.page(), "utf-8")
        case _:
            print((__doc__ or "").strip(), file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
