"""What densities that nobody tuned for get: ten questions each, beside truths from NumPy grids.

    python -m benchmarks.strangers [--only PATTERN] [--part K/N] [--limit SECONDS]

Each line says answered, refused with its sentence, late, or **wrong**, and the processor time; the
last ones count them. The densities and their truths, which share no code with symdp, are those of
the tests in `tests/strangers`. The exit code is 1 where a number is wrong.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import symdp
from symdp.errors import SymdpError
from symdp.interrupt import time_limit

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from strangers.densities import STRANGERS, Stranger
from strangers.truth import Loss, pair_of

DELTA, RATE = 1e-5, "1/10"
ROUNDING = 1e-9  # relative: grids cut losses that fall like 1/ℓ, beyond what they tell of
Check = Callable[[], str]  # asks, and returns what is wrong with the answer, or ""


def largest(losses: tuple[Loss, ...], count: int, epsilon: float) -> tuple[float, float]:
    """Return the largest δ of some losses, and how far off it may be."""
    found = [loss.delta(count, epsilon) for loss in losses]
    return max(delta for delta, _ in found), max(off for _, off in found)


def between(low: float, high: float, losses: tuple[Loss, ...], count: int, epsilon: float) -> str:
    """Return what is wrong with an interval of δ."""
    truth, off = largest(losses, count, epsilon)
    room = off + ROUNDING * truth
    return (
        "" if low - room <= truth <= high + room else f"{low:.12g} … {high:.12g} for {truth:.12g}"
    )


def questions(stranger: Stranger) -> dict[str, Check]:
    """Return what is asked of a density, by name."""
    plain = replace(stranger, rate="")
    mechanism, losses = symdp.loads(plain.toml), pair_of(plain)
    sampled = replace(plain, rate=stranger.rate or RATE)
    drawn = symdp.loads(sampled.toml)

    def delta(made: Any, own: tuple[Loss, ...], count: int) -> str:
        found = symdp.compose(made, count).delta(1)
        ends = np.exp([found.log_lower, found.log_upper])
        return between(*map(float, ends), own, count, 1.0)

    def epsilon() -> str:
        infinite = max(-np.expm1(5 * np.log1p(-min(loss.infinite, 0.999))) for loss in losses)
        asked = float(DELTA if infinite < DELTA / 10 else infinite + 0.1 * (1 - infinite))
        found = symdp.compose(mechanism, 5).epsilon(asked)
        truth, off = largest(losses, 5, found.epsilon_upper)
        return "" if truth <= asked * (1 + ROUNDING) + off else f"δ is {truth:.12g} at {found}"

    def certify() -> str:
        found = symdp.compose(mechanism, 5).certify(1, digits=6)
        return between(float(found.lower), float(found.upper), losses, 5, 1.0)

    def trade_off() -> str:
        miss = float(symdp.compose(mechanism, 5).trade_off(0.1))
        for at in np.linspace(0.0, 6.0, 13):  # no line of the profile lies above the curve
            truth, off = largest(losses, 5, float(at))
            if miss < 1 - truth - np.exp(at) * 0.1 - off - 1e-5:
                return f"f(0.1) = {miss:.12g} lies below the line of ε = {at}"
        return ""

    def calibrate() -> str:
        made = mechanism.subsample("poisson", "q")
        found = symdp.calibrate(made, "q", 30, epsilon=1, delta=DELTA)
        own = pair_of(replace(plain, rate=str(found.value)))
        truth, off = largest(own, 30, 1.0)
        return (
            "" if truth <= DELTA * (1 + 1e-6) + off else f"δ is {truth:.12g} at q = {found.value}"
        )

    def derive() -> str:
        made = symdp.derive(mechanism)
        texts = (made.to_text(), made.to_latex(), made.to_mathml(), made.to_json())
        return "" if all(texts) else "a format is empty"

    return {
        "derive": derive,
        **{f"δ, n = {n}": lambda n=n: delta(mechanism, losses, n) for n in (1, 5, 30)},
        "sampled": lambda: delta(drawn, pair_of(sampled), 30),
        "ε": epsilon,
        "certify": certify,
        "trade-off": trade_off,
        "calibrate": calibrate,
    }


def asked(check: Check, limit: float) -> tuple[str, str, float]:
    """Return what became of a question, in a word and in words, and its processor time."""
    began = time.process_time()
    try:
        with time_limit(limit):
            wrong = check()
        what, why = ("wrong", wrong) if wrong else ("answered", "")
    except SymdpError as error:
        what = "late" if time.process_time() - began > 0.9 * limit else "refused"
        why = str(error)
    except Exception as error:
        what, why = "bug", f"{type(error).__name__}: {error}"
    return what, why, time.process_time() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="a pattern of names")
    parser.add_argument("--part", default="0/1", help="K/N: every N-th density from the K-th on")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a question")
    given = parser.parse_args()
    first, step = map(int, given.part.split("/"))
    names = [name for name in STRANGERS if re.search(given.only, name)][first::step]
    counted, seconds = Counter[str](), list[float]()
    for name in names:
        for question, check in questions(STRANGERS[name]).items():
            what, why, took = asked(check, given.limit)
            counted[what] += 1
            seconds.append(took)
            print(f"{name:28} {question:10} {what:9} {took:6.2f} s  {why}"[:200], flush=True)
    median, late = np.percentile(seconds, [50, 95])
    print(f"{dict(counted)}; seconds p50 {median:.2f}, p95 {late:.2f}, longest {max(seconds):.1f}")
    return int(counted["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
