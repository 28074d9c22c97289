"""Programs in C under the address and undefined-behaviour sanitizers: nothing is said."""

from __future__ import annotations

import math
import re
import subprocess
from pathlib import Path

import pytest
import sympy as sp
from emitted import COMPILER, compiled

import symdp
from symdp import mechanisms
from symdp.model.mechanism import Mechanism

X = sp.Symbol("x", real=True)
TWO_PIECES = sp.sqrt(2 / sp.pi) / 7 * sp.exp(-(X**2) / sp.Piecewise((18, X < 0), (32, True)))
PROGRAMS: dict[str, tuple[Mechanism, str]] = {
    "gaussian": (mechanisms.gaussian(sigma=6), "both"),
    "laplace": (mechanisms.laplace(b=6), "both"),
    "two-piece normal": (Mechanism.additive(TWO_PIECES, X), "remove"),
    "gumbel": (mechanisms.gumbel(b=4), "both"),
    "sampled discrete gaussian": (
        mechanisms.discrete_gaussian(sigma=3).subsample("poisson", "1/10"), "both"
    ),
    "sampled gaussian": (mechanisms.gaussian(sigma=1).subsample("poisson", "1/10"), "both"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("name", PROGRAMS)
def test_c_breaks_no_rule_of_its_language(name: str, tmp_path: Path):
    mechanism, direction = PROGRAMS[name]
    source = tmp_path / "asked.c"
    source.write_text(symdp.derive(mechanism).to_program("c"), "utf-8")
    command = compiled(source, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    for count in (1, 3, 30, 1000):
        epsilon = 0.2 * math.sqrt(count)
        words = [f"epsilon={epsilon!r}", f"n={count}", direction]
        line = [*command, *words]
        ran = subprocess.run(line, capture_output=True, text=True, check=False, timeout=100)
        assert (ran.returncode, ran.stderr) == (0, "")
        upper = float(ran.stdout.split()[2])
        least = re.search(r"delta >= (\S+)", ran.stdout)
        lower = float(least[1]) if least else upper * (1 - 1e-6)
        exact = symdp.compose(mechanism, count).delta(epsilon, direction=direction)
        assert lower <= upper
        assert lower * (1 - 1e-9) <= exact.delta <= upper * (1 + 1e-9)
