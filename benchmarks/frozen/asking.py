"""Ask symdp, each question in a process of its own: laws are fresh, and its work is counted.

The process is forked once every module is imported, so that its processor seconds are those of the
question: derivation, compilation, the law and the answer.  Nothing comes from the disk.
"""

from __future__ import annotations

import json
import math
import os
import pkgutil
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from benchmarks.frozen.cases import Case

ANSWER, PROOF = 20.0, 30.0  # processor seconds that an answer may take, and a proof
PATIENCE = 15.0  # seconds that may pass for one of the processor, where others keep it busy
SIDE_ROOMS = ("symdp.cli", "symdp.page", "symdp.adapters", "symdp.__main__")
COLUMNS = ("answer", "6", "10", "truth")
TRUTH_DIGITS = 20

Row = dict[str, Any]


class _LateError(BaseException):
    """The processor seconds are used up; nothing that catches errors may catch it."""


def prepare() -> None:
    """Import what answers need, and keep nothing on the disk."""
    import symdp

    os.environ["SYMDP_CACHE"] = "off"
    for module in pkgutil.walk_packages(symdp.__path__, "symdp."):
        if not module.name.startswith(SIDE_ROOMS):
            try:
                import_module(module.name)
            except ImportError:  # it belongs to a program that is not installed
                continue


def epsilons_of(case: Case) -> Row:
    """Return the ε of a case by their places, or why there are none."""
    return in_a_child(lambda: _epsilons(case), ANSWER)


def ask(case: Case, epsilon: float, column: str) -> Row:
    """Return what one column has for a row."""
    if column == "answer":
        return in_a_child(lambda: _answer(case, epsilon), ANSWER)
    if column != "truth":
        return in_a_child(lambda: _certificate(case, epsilon, int(column)), PROOF)
    found = in_a_child(lambda: _certificate(case, epsilon, TRUTH_DIGITS), PROOF)
    found["by"] = f"certify, {TRUTH_DIGITS} digits"
    if "refused" in found and case.stranger is not None:
        other = in_a_child(lambda: _own_truth(case, epsilon), PROOF)
        return found if "refused" in other else other | {"by": "tests/strangers/truth.py"}
    return found


def _epsilons(case: Case) -> Row:
    from frozen.recipe import place_epsilon

    import symdp

    composition, found = symdp.compose(case.steps()), {}
    law = composition.law("remove" if case.direction == "both" else case.direction)
    for place in case.places:
        found[place] = float(place) if _is_number(place) else place_epsilon(law, place)
    mean, top = law.mean, law.loss_bounds[1]
    if len({*found.values()}) == len(found) or not math.isfinite(mean):
        return found
    # The range of losses is too short for so small a δ, or its tail too heavy for any formula.
    if math.isfinite(top):
        shares = (0.25, 0.625, 1.0 - 2.0**-10)
        return {place: mean + s * (top - mean) for place, s in zip(found, shares, strict=True)}
    steps = enumerate(found.items())
    return {place: epsilon + k * (1.0 + abs(mean)) for k, (place, epsilon) in steps}


def _is_number(place: str) -> bool:
    """Return whether a place is an ε itself; one with an exponent is a δ.

    >>> _is_number("2.5"), _is_number("1e-40"), _is_number("top")
    (True, False, False)
    """
    return place.lstrip("-").replace(".", "", 1).isdigit()


def _answer(case: Case, epsilon: float) -> Row:
    import symdp

    one = symdp.compose(case.steps()).delta(epsilon, direction=case.direction)
    whose = one.protection
    return {
        "log_delta": told(one.log_delta),
        "log_lower": told(one.log_lower),
        "log_upper": told(one.log_upper),
        "kind": one.kind,
        "side": one.direction,
        "pair": "tight" if whose is None or whose.is_attained else "dominating",
        "relation": "" if whose is None else whose.relation,
        "shift": "" if whose is None else whose.shift,
        "route": one.route,
        "mass": one.mass,
        "advice": one.advice,
    }


def told(value: float | None) -> float | str | None:
    """Return a number as JSON has it: infinities by their names."""
    return value if value is None or math.isfinite(value) else repr(value)


def _certificate(case: Case, epsilon: float, digits: int) -> Row:
    import symdp

    one = symdp.compose(case.steps()).certify(epsilon, digits, case.direction)
    return {"lower": one.lower_decimal, "upper": one.upper_decimal, "digits": one.digits}


def _own_truth(case: Case, epsilon: float) -> Row:
    from strangers.truth import pair_of

    assert case.stranger is not None
    stranger, count = case.stranger
    chosen = {"remove": slice(0, 1), "add": slice(1, 2)}.get(case.direction, slice(0, 2))
    found = [loss.delta(count, epsilon) for loss in pair_of(stranger)[chosen]]
    delta, off = max(delta for delta, _ in found), max(off for _, off in found)
    return {"lower": repr(max(0.0, delta - off)), "upper": repr(delta + off)}


def in_a_child(work: Callable[[], Mapping[str, Any]], seconds: float) -> Row:
    """Return what work returns in a forked process, or {"refused": why}, with its seconds."""
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            os.write(writing, json.dumps(_guarded(work, seconds)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    answered, end = b"", time.monotonic() + PATIENCE * seconds
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, end - time.monotonic()))
        piece = os.read(reading, 1 << 16) if ready else b""
        if not piece:
            break
        answered += piece
    os.close(reading)
    if time.monotonic() > end:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return json.loads(answered) if answered else {"refused": _late(seconds), "seconds": seconds}


def _late(seconds: float) -> str:
    return f"no answer within {seconds:g} s of work"


def _guarded(work: Callable[[], Mapping[str, Any]], seconds: float) -> Row:
    """Work until the processor seconds are used up; a little later the system ends the process."""

    rings = []

    def ring(*_: object) -> None:
        rings.append(1)
        raise _LateError

    signal.signal(signal.SIGXCPU, ring)
    used = _used()
    resource.setrlimit(
        resource.RLIMIT_CPU, (math.ceil(used + seconds), math.ceil(used + seconds) + 5)
    )
    try:
        found = dict(work())
    except _LateError:
        found = {"refused": _late(seconds)}
    except Exception as error:
        # C code that calls Python back reports the end of time as an error of its own.
        found = {"refused": _late(seconds) if rings else f"{type(error).__name__}: {error}"}
    found["seconds"] = round(_used() - used, 3)
    return found


def _used() -> float:
    """Return the processor seconds of this process and of its children."""
    return sum(os.times()[:4])
