"""Run cases in child processes, and say what is wrong with what they did.

As a program: `python tests/fuzz/run.py SEED COUNT` prints every case that ends badly.
"""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from fuzz.cases import Case, cases

LIMIT = 2.0  # seconds of --time-limit
PATIENCE = 60.0  # seconds until a case counts as hung: the bound instead may take 5, a busy machine
MOST_BYTES = 3 << 30
_NAN = re.compile(r"\bnan\b", re.IGNORECASE)
_CHILD = str(Path(__file__).with_name("child.py"))


def run(listed: Sequence[Case], limit: float = LIMIT) -> Iterator[tuple[Case, str]]:
    """Yield each case with what is wrong with it, nothing where it ended well."""
    waiting = list(listed)
    while waiting:
        done = 0
        for result in _results(waiting, limit):
            yield waiting[done], judged(waiting[done], result)
            done += 1
        if done < len(waiting):  # this one took the process down, or its time
            yield waiting[done], "the process hung, or was ended"
        waiting = waiting[done + 1 :]


def _results(listed: Sequence[Case], limit: float) -> Iterator[dict[str, Any]]:
    """Yield results until the child has no more, or none for long."""
    child = subprocess.Popen(
        [sys.executable, _CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # so that all it starts can be ended with it
    )
    assert child.stdin is not None
    assert child.stdout is not None
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in child.stdout or ():
            lines.put(line)
        lines.put("")

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        json.dump([limit, [[case.words, case.text] for case in listed]], child.stdin)
        child.stdin.close()
        while line := lines.get(timeout=PATIENCE):
            yield json.loads(line)
    except (queue.Empty, BrokenPipeError):
        return
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        reader.join(5.0)
        if not reader.is_alive():
            child.stdout.close()


def judged(case: Case, result: dict[str, Any]) -> str:
    """Return what is wrong with the end of one command."""
    code, out, err = result["code"], result["out"], result["err"]
    if result["bytes"] > MOST_BYTES:
        return f"{result['bytes'] / 1e9:.1f} GB of memory"
    if code not in {0, 1, 2}:
        return f"exit code {code}"
    if "bug in symdp" in err or "Traceback" in err:
        return err.strip()
    if _NAN.search(out) or "NaN" in out:
        return f"not a number: {out:.200}"
    if code:
        is_part = code == 1 and err.startswith("symdp: incomplete after ")
        if (out and not is_part) or err.count("\n") != 1 or not err.startswith("symdp: "):
            return f"no single line: {out:.100} | {err:.300}"
        if out and "--json" in case.words and not json.loads(out).get("incomplete"):
            return f"a part that is not marked: {out:.300}"
        return ""
    if err:
        return f"beside its answer it says {err:.300}"
    if not out.strip():
        return "no answer"
    if case.words[0] == "derive":
        return ""
    if "--json" in case.words:
        return _ordered(json.loads(out), _asks_epsilon(case))
    return ""


def _ordered(answer: dict[str, Any], by_delta: bool) -> str:
    """Return what is wrong with the order of lower, value and upper."""
    for one in answer.get("points", [answer]):
        value = one["epsilon" if by_delta else "delta"]
        low, high = (one[end] for end in ("lower", "upper"))
        if low is not None and Decimal(low) > Decimal(value):
            return f"{value} lies below its lower end {low}"
        if high is not None and Decimal(high) < Decimal(value):
            return f"{value} lies above its upper end {high}"
    return ""


def _asks_epsilon(case: Case) -> bool:
    return case.words[0] == "epsilon" or (case.words[0] == "certify" and "--delta" in case.words)


def main(seed: int, count: int) -> None:
    bad = 0
    for case, wrong in run(cases(seed, count)):
        if wrong:
            bad += 1
            print("===", wrong, "\n   ", " ".join(case.words), flush=True)
            if case.text:
                print("    " + case.text.replace("\n", "\n    "), flush=True)
    print(f"{bad} of {count} ended badly")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
