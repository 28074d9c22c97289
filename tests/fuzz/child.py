"""A process that runs cases one after the other, and says of each what the command did.

One JSON list of [words, text] pairs comes in on standard input; one line of JSON goes out for each.
Memory is limited for the whole process, so that a case may fail and the test's own process not.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

MOST_MEMORY = 5 << 30  # bytes of address space, libraries included


def main() -> None:
    seconds, listed = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    os.environ["SYMDP_CACHE"] = "off"
    from symdp.cli import main as symdp

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "fuzz.toml"
        for words, text in listed:
            file.write_text(text, encoding="utf-8")
            line = [str(file) if word == "FILE" else word for word in words]
            if "--time-limit" not in line:
                line += ["--time-limit", str(seconds)]
            out, err = io.StringIO(), io.StringIO()
            start = time.monotonic()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = symdp(line)
            result = {
                "code": code,
                "out": out.getvalue(),
                "err": err.getvalue(),
                "seconds": time.monotonic() - start,
                "bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            }
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
