"""Freeze today's answers: `python -m tests.frozen.recipe --seconds 500`, again until it is done.

Each piece goes on where the last one ended (out/frozen.jsonl) and writes questions.json from all
that is there.  `--fresh` begins anew, as it must wherever the questions below have changed.

The question k of all asks for the count k mod 9, the place of ε k mod 8 and the direction k mod 5
of the tables below, so that 360 questions in a row meet every combination.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .comparison import Entry, contradictions
from .laws import Law, laws, mechanism_of

if TYPE_CHECKING:
    from symdp.numeric.total import SumLaw
    from symdp.questions.composition import Composition
    from symdp.questions.guarantee import Guarantee

HERE = Path(__file__).parent
FROZEN = HERE / "questions.json"
PARTIAL = HERE.parents[1] / "out" / "frozen.jsonl"

COUNTS = (1, 2, 3, 5, 20, 100, 1000, 10**4, 10**6)
PLACES = (
    "mean",
    "1 deviation",
    "3 deviations",
    "6 deviations",
    "1e-30",
    "1e-100",
    "top",
    "negative",
)
DIRECTIONS = ("remove", "add", "both", "remove", "add")
EACH = 6  # questions about one law
BEYOND = "6 deviations"  # the place that may lie beyond the largest loss
CERTIFIED = 3  # every third question is certified too
# Losses off any lattice and mixed ones have the most ways to go wrong: all of them are certified.
CERTIFIED_FAMILIES = ("sampled integers", "points", "mixed")
DIGITS = 12
SECONDS = 4.0  # of processor time that an answer may take, or a proof one more
BUILDING = 12.0  # seconds in which a law must be built
PATIENCE = 2.0  # seconds of the clock for one of the processor, on a machine with other work
BITS = 20  # of ε, so that its exact decimal is short


def composition_of(entry: Entry) -> Composition:
    """Build the composition that a question is about, from its entry alone."""
    from symdp import compose

    return compose([(mechanism_of(step), step["count"]) for step in entry["steps"]])


def ask(entry: Entry) -> Guarantee:
    """Ask the default accountant a question."""
    return composition_of(entry).delta(float(entry["epsilon"]), direction=entry["direction"])


def asked() -> Iterator[tuple[int, Law, int, str, str]]:
    """Yield number, law, count, place and direction of every question."""
    for i, law in enumerate(laws()):
        for k in range(EACH * i, EACH * (i + 1)):
            yield k, law, COUNTS[k % 9], PLACES[k % 8], DIRECTIONS[k % 5]


def steps_of(law: Law, count: int) -> list[dict[str, Any]]:
    """Return the steps of a law, each as often as its weight says for one of the count."""
    return [
        {key: value for key, value in step.items() if key != "weight"}
        | {"count": step["weight"] * count}
        for step in law.steps
    ]


def place_epsilon(law: SumLaw, place: str) -> float:
    """Return ε at a place of the law of the total loss."""
    from symdp.errors import AccuracyError

    mean, variance = (float(value) for value in law.cumulants(0.0, 2))
    mean = mean if math.isfinite(mean) else 0.0
    deviation = math.sqrt(variance) if 0 < variance < math.inf else 1.0
    bottom, top = law.loss_bounds
    if place == "mean":
        epsilon = mean
    elif place.endswith(("deviation", "deviations")):
        epsilon = mean + int(place[0]) * deviation
    elif place == "negative":
        epsilon = max(-(mean + deviation) / 2, 0.75 * bottom)
    elif place == "top":
        epsilon = top - (top - mean) / 2**10 if math.isfinite(top) else mean - 2 * deviation
    else:
        epsilon = mean + 6 * deviation
        with suppress(AccuracyError):  # next to the end of the tilts there may be no cumulants
            epsilon = _far_out(law, math.log(float(place)), epsilon)
    if epsilon >= top and place != BEYOND:
        epsilon = mean + (top - mean) * 0.75
    for bits in (BITS, 2 * BITS):
        short = _rounded(epsilon, bits)
        if (bottom < short < top) == (bottom < epsilon < top):
            return short
    return epsilon


def _far_out(law: SumLaw, log_delta: float, otherwise: float) -> float:
    """Return ε where Chernoff's bound min K(t) − tε on log δ is about as given."""
    least, most = 0.0, 1.0
    for _ in range(12):
        if not most < law.domain[1]:
            most = (least + law.domain[1]) / 2
        slope = float(law.cumulants(most, 1)[0])
        if law.cgf(most) - most * slope < log_delta:
            break
        least, most = most, 2 * most
    else:
        return otherwise
    for _ in range(20):
        tilt = (least + most) / 2
        slope = float(law.cumulants(tilt, 1)[0])
        if law.cgf(tilt) - tilt * slope < log_delta:
            most = tilt
        else:
            least = tilt
    return slope


def _rounded(value: float, bits: int) -> float:
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(mantissa, bits)), exponent - bits)


class _Timed:
    """Processor seconds of a block, which must end within some."""

    def __init__(self, seconds: float) -> None:
        from symdp.interrupt import time_limit

        self.seconds, self.taken = seconds, 0.0
        self._limit = time_limit(PATIENCE * seconds)

    def __enter__(self) -> _Timed:
        self._begun = time.process_time()
        self._limit.__enter__()
        return self

    def __exit__(self, *raised: Any) -> bool | None:
        self.taken = time.process_time() - self._begun
        return self._limit.__exit__(*raised)


def frozen(k: int, law: Law, count: int, place: str, direction: str) -> Entry:
    """Return a question with its answer, or with the reason why it is skipped."""
    from symdp.errors import AccuracyError

    entry: Entry = {
        "question": k,
        "family": law.family,
        "label": f"{law.label} x {count}, {place}, {direction}",
        "steps": steps_of(law, count),
        "direction": direction,
    }
    try:
        with _Timed(BUILDING) as building:
            composition = composition_of(entry)
            for side in ("remove", "add") if direction == "both" else (direction,):
                built = composition.law(side)
                epsilon = place_epsilon(built, place)
    except AccuracyError as error:
        return entry | {"skipped": _reason("no law", BUILDING, error)}
    entry["epsilon"] = str(Decimal(epsilon))
    try:
        with _Timed(SECONDS) as answering:
            answer = composition.delta(epsilon, direction=direction)  # type: ignore[arg-type]
    except AccuracyError as error:
        return entry | {"skipped": _reason("no answer", SECONDS, error)}
    if answering.taken > SECONDS:
        return entry | {"skipped": _reason("no answer", SECONDS, None)}
    entry["answer"] = {
        "log_delta": _written(answer.log_delta),
        "log_lower": _written(answer.log_lower),
        "log_upper": _written(answer.log_upper),
        "kind": answer.kind,
        "direction": answer.direction,
    }
    if getattr(answer, "route", None):
        entry["answer"]["route"] = answer.route  # type: ignore[attr-defined]
    entry["seconds"] = round(building.taken + answering.taken, 2)
    if k % CERTIFIED == 0 or law.family in CERTIFIED_FAMILIES:
        try:
            with _Timed(SECONDS + 1):
                proved = composition.certify(epsilon, DIGITS, direction)  # type: ignore[arg-type]
        except AccuracyError as error:
            return entry | {"unproved": f"{error}"}
        entry["certified"] = {
            "lower": proved.lower_decimal,
            "upper": proved.upper_decimal,
            "digits": DIGITS,
        }
    return entry


def _reason(what: str, seconds: float, error: Exception | None) -> str:
    """Say why a question is skipped; the error of a time limit counts the clock's seconds."""
    late = error is None or str(error) == f"no answer within {PATIENCE * seconds:.3g} s"
    return f"{what} within {seconds:.3g} s" if late else f"{what}: {error}"


def _written(log: float | None) -> float | str | None:
    return "-inf" if log == -math.inf else log


def contradicted(entry: Entry) -> list[str]:
    """Return what is wrong with an answer already when it is frozen."""
    own = entry["answer"]
    values = (
        None if v is None else float(v)
        for v in (own["log_delta"], own["log_lower"], own["log_upper"])
    )
    return contradictions(entry, *values)  # type: ignore[arg-type]


def write(entries: list[Entry]) -> None:
    """Write questions.json, one question to a line."""
    import symdp

    kept = [entry for entry in entries if "answer" in entry]
    skipped = Counter((e["family"], e["skipped"].split(":")[0]) for e in entries if "skipped" in e)
    head = {
        "recipe": "python -m tests.frozen.recipe",
        "version": symdp.__version__,
        "questions asked": len(entries),
        "skipped": {f"{family}, {why}": n for (family, why), n in sorted(skipped.items())},
        "certified": sum("certified" in entry for entry in kept),
    }
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in kept)
    text = json.dumps(head, indent=1, ensure_ascii=False)[:-2]
    FROZEN.write_text(f'{text},\n "questions": [\n{lines}\n]}}\n', encoding="utf-8")


def main() -> None:
    """Answer what is not answered yet, within some seconds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=500.0, help="end after so many")
    parser.add_argument("--fresh", action="store_true", help="forget earlier pieces")
    options = parser.parse_args()
    PARTIAL.parent.mkdir(exist_ok=True)
    if options.fresh:
        PARTIAL.unlink(missing_ok=True)
    lines = PARTIAL.read_text(encoding="utf-8").splitlines() if PARTIAL.exists() else []
    done = {entry["question"]: entry for entry in map(json.loads, lines)}
    todo, end = list(asked()), time.monotonic() + options.seconds
    with PARTIAL.open("a", encoding="utf-8") as file:
        for question in todo:
            if question[0] in done:
                continue
            if time.monotonic() > end:
                break
            entry = done[question[0]] = frozen(*question)
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
            file.flush()
            wrong = contradicted(entry) if "answer" in entry else []
            what = entry.get("skipped") or f"{entry['seconds']:.2f} s"
            what += " certified" if "certified" in entry else ""
            what += f" ({entry['unproved']})" if "unproved" in entry else ""
            print(
                f"{len(done)}/{len(todo)} {entry['label']}: {what}",
                *wrong,
                sep="\n  !! ",
                flush=True,
            )
    write([done[k] for k in sorted(done)])


if __name__ == "__main__":
    os.environ["SYMDP_CACHE"] = "off"  # nothing that was kept on the disk may decide an answer
    sys.path.insert(0, str(HERE.parent))  # for the densities of tests/catalogue.py
    main()
