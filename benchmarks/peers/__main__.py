"""Measure symdp beside its peers and write docs/benchmarks.md: `make bench`."""

from __future__ import annotations

import sys

from benchmarks.peers.run import main

if __name__ == "__main__":
    sys.exit(main())
