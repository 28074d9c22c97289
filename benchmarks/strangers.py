"""What densities that nobody tuned for get: nine questions each, beside truths from NumPy grids.

    python -m benchmarks.strangers [--only PATTERN] [--ask PATTERN] [--part K/N] [--limit SECONDS]

Each line says answered, refused with its sentence, late, or **wrong**, and the processor time; the
last ones count them. The densities and their truths, which share no code with symdp, are those of
the tests in `tests/strangers`: a sum of four-point weights, and sums of losses rounded down and up.
The exit code is 1 where a number is wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import symdp
from symdp.derive import derive as derived
from symdp.errors import SymdpError
from symdp.interrupt import time_limit
from symdp.page.derivation import to_page

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from strangers.densities import STRANGERS, Stranger
from strangers.truth import Loss, pair_of
from strangers.twenty import TWENTY
from strangers.unseen import UNSEEN

DELTA, RATE = 1e-5, "1/10"
FINER = 8  # times as many points of a lattice, where its truth contradicts an answer
ROUNDING = 1e-9  # relative: grids cut losses that fall like 1/ℓ, beyond what they tell of
SMALLER = (Fraction(7, 10), Fraction(1, 3))  # shifts that a bound for "at most" covers, too


class WrongError(Exception):
    """An answer that its truth contradicts."""


@dataclass(frozen=True)
class Truth:
    """The largest δ of a density's directions, at its sensitivity or also at smaller shifts."""

    stranger: Stranger

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        return pair_of(self.stranger)

    @cached_property
    def of_smaller(self) -> tuple[Loss, ...]:
        size = Fraction(self.stranger.sensitivity)
        shifts = [shift * size for shift in SMALLER if self.stranger.other is None]
        if isinstance(self.stranger.support, str):
            shifts = []
        return sum((pair_of(replace(self.stranger, sensitivity=str(s))) for s in shifts), ())

    def delta(self, count: int, epsilon: float, finer: int = 1) -> tuple[float, float]:
        """Return δ, and how far off it may be."""
        found = [loss.delta(count, epsilon, finer) for loss in self.losses]
        return max(delta for delta, _ in found), max(off for _, off in found)

    def check(self, low: float, high: float, kind: str, count: int, epsilon: float) -> str:
        """Raise if an interval of δ is wrong; return what a bound gives away."""
        try:
            return self._check(low, high, kind, count, epsilon, 1)
        except WrongError:  # the error of a lattice is an estimate
            return self._check(low, high, kind, count, epsilon, FINER)

    def _check(
        self, low: float, high: float, kind: str, count: int, epsilon: float, finer: int
    ) -> str:
        truth, off = self.delta(count, epsilon, finer)
        room = off + ROUNDING * truth
        ends = [loss.between(count, epsilon) for loss in self.losses]
        beside = f"{low:.12g} … {high:.12g} for {truth:.12g} ± {off:.1g}"
        if high < max(truth - room, *(end for end, _ in ends)):
            raise WrongError(beside)
        if kind == "bound":
            smaller = [loss.delta(count, epsilon) for loss in self.of_smaller]
            if high < max((delta - error for delta, error in smaller), default=0.0):
                raise WrongError(f"{beside}, at a smaller shift {smaller}")
            largest = max([truth, *(delta for delta, _ in smaller)])
            return f"a bound, {high / largest - 1:+.2%}" if largest else "a bound"
        if low > min(truth + room, max(end for _, end in ends)):
            raise WrongError(beside)
        return "" if high - low <= 1e-6 * high else f"{kind}, {beside}"


Check = Callable[[], str]  # raises if the answer is wrong, and returns what there is to say


def questions(stranger: Stranger) -> dict[str, Callable[[], Check]]:
    """Return what is asked of a density, by name; what is asked returns what checks it."""
    plain = replace(stranger, rate="")
    own = Truth(plain)
    file = symdp.Mechanism.from_toml(plain.toml)
    mechanism = file(**dict(stranger.values))
    sampled = replace(plain, rate=stranger.rate or RATE)
    drawn = symdp.Mechanism.from_toml(sampled.toml)(**dict(stranger.values))
    five = symdp.compose(mechanism, 5)
    infinite = max(-np.expm1(5 * np.log1p(-min(loss.infinite, 0.999))) for loss in own.losses)
    aimed = float(DELTA if infinite < DELTA / 10 else infinite + 0.1 * (1 - infinite))

    def delta(made: Any, truth: Truth, count: int) -> Check:
        found = symdp.compose(made, count).delta(1)
        low, high = (float(np.exp(end)) for end in (found.log_lower, found.log_upper))
        return lambda: truth.check(low, high, found.kind, count, 1.0)

    def epsilon() -> Check:
        found = five.epsilon(aimed)

        def check() -> str:
            truth, off = own.delta(5, found.epsilon_upper)
            if truth > aimed * (1 + ROUNDING) + off:
                raise WrongError(f"δ is {truth:.12g} at {found}")
            if found.kind == "bound" or not found.epsilon_lower:
                return found.kind
            truth, off = own.delta(5, found.epsilon_lower)
            if truth < aimed * (1 - ROUNDING) - off:
                raise WrongError(f"δ is {truth:.12g} at the lower end of {found}")
            return ""

        return check

    def certify() -> Check:
        found = five.certify(1, digits=6)
        low, high = float(found.lower), float(found.upper)
        return lambda: own.check(low, high, five.delta(1).kind, 5, 1.0)

    def trade_off() -> Check:
        miss = float(five.trade_off(0.1))

        def check() -> str:
            for at in np.linspace(0.0, 6.0, 13):  # no line of the profile lies above the curve
                truth, off = own.delta(5, float(at))
                if miss < 1 - truth - np.exp(at) * 0.1 - off - 1e-5:
                    if five.delta(1).kind == "bound":
                        return "a bound"
                    raise WrongError(f"f(0.1) = {miss:.12g} lies below the line of ε = {at}")
            return ""

        return check

    def calibrate() -> Check:
        made = mechanism.subsample("poisson", "q")
        found = symdp.calibrate(made, "q", 30, epsilon=1, delta=DELTA)

        def check() -> str:
            truth, off = Truth(replace(plain, rate=str(found.value))).delta(30, 1.0)
            if truth > DELTA * (1 + 1e-6) + off:
                raise WrongError(f"δ is {truth:.12g} at q = {found.value}")
            return ""

        return check

    def derive() -> Check:
        for made in [file, mechanism] if stranger.values else [file]:
            for found in derived(made).cases:
                texts = found.to_text(), found.to_latex(), found.to_mathml(), found.show()
                json.dumps(found.to_json(), allow_nan=False)
                if not (all(texts) and to_page(found, "mechanism", {})):
                    raise WrongError("a format is empty")
        return str

    return {
        "derive": derive,
        **{f"δ, n = {n}": lambda n=n: delta(mechanism, own, n) for n in (1, 5, 30)},
        "sampled": lambda: delta(drawn, Truth(sampled), 30),
        "ε": epsilon,
        "certify": certify,
        "trade-off": trade_off,
        "calibrate": calibrate,
    }


def asked(question: Callable[[], Check], limit: float) -> tuple[str, str, float]:
    """Return what became of a question, in a word and in words, and its processor time."""
    began = time.process_time()
    took = 0.0
    try:
        with time_limit(limit):
            check = question()
        took = time.process_time() - began
        what, why = "answered", check()
    except WrongError as error:
        what, why = "wrong", str(error)
    except SymdpError as error:
        what = "late" if time.process_time() - began > 0.9 * limit else "refused"
        why = str(error)
    except Exception as error:
        what, why = "bug", f"{type(error).__name__}: {error}"
    return what, why, took or time.process_time() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="a pattern of names")
    parser.add_argument("--ask", default="", help="a pattern of questions")
    parser.add_argument("--part", default="0/1", help="K/N: every N-th density from the K-th on")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of a question")
    parser.add_argument("--tests", action="store_true", help="the densities of the tests instead")
    given = parser.parse_args()
    first, step = map(int, given.part.split("/"))
    known = STRANGERS if given.tests else UNSEEN | TWENTY
    names = [name for name in known if re.search(given.only, name)][first::step]
    counted, seconds = Counter[str](), list[float]()
    for name in names:
        try:
            own = questions(known[name])
        except SymdpError as error:
            counted["refused"] += 1
            print(f"{name:28} {'load':10} {'refused':9} {0:6.2f} s  {error}"[:260], flush=True)
            continue
        for question, ask in own.items():
            if not re.search(given.ask, question):
                continue
            what, why, took = asked(ask, given.limit)
            counted[what] += 1
            seconds.append(took)
            print(f"{name:28} {question:10} {what:9} {took:6.2f} s  {why}"[:260], flush=True)
    median, late = np.percentile(seconds, [50, 95])
    print(f"{dict(counted)}; seconds p50 {median:.2f}, p95 {late:.2f}, longest {max(seconds):.1f}")
    return int(counted["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
