"""log erfc and log(erf(m + h) − erf(m − h)) as C and JavaScript hold them, against many digits."""

from __future__ import annotations

import json
import subprocess
from importlib.resources import files
from pathlib import Path

import mpmath
import pytest
from emitted import COMPILER, NODE

from symdp.emit.standalone.write import gauss_legendre

PAIRS = ((0.1, 0.2), (3.0, 0.4), (9.0, 2.0), (1.0, 3.0), (40.0, 0.001), (2.5, 2.4), (-3.0, 0.4))
PLACES = (-3.0, 0.5, 8.0, 26.0, 400.0)
READ = files("symdp.emit.standalone.runtime").joinpath
HEAD = """#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#define PI 3.14159265358979323846
"""


def truths() -> list[float]:
    """Return the logarithms by mpmath, in the order in which they are asked."""
    with mpmath.workdps(60):
        differences = [
            mpmath.log(mpmath.erfc(mpmath.mpf(m) - h) - mpmath.erfc(mpmath.mpf(m) + h))
            for m, h in [(abs(m), h) for m, h in PAIRS]
        ]
        return [float(v) for v in (*differences, *(mpmath.log(mpmath.erfc(x)) for x in PLACES))]


def rule() -> tuple[str, str]:
    """Return the nodes and the weights of a panel, as both languages write them."""
    nodes, weights = gauss_legendre(20)
    places = [*(-x for x in nodes), *reversed(nodes)]
    both = [*weights, *reversed(weights)]
    return ", ".join(map(repr, places)), ", ".join(map(repr, both))


def agree(printed: list[float]) -> None:
    expected = truths()
    assert len(printed) == len(expected)
    for value, truth in zip(printed, expected, strict=True):
        assert value == pytest.approx(truth, rel=1e-13, abs=1e-13)


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_c_has_log_erfc_and_differences_of_erf(tmp_path: Path):
    source = tmp_path / "asked.c"
    places, weights = rule()
    asked = [f'printf("%.17g\\n", log_erf_difference({m!r}, {h!r}));' for m, h in PAIRS]
    asked += [f'printf("%.17g\\n", log_erfc({x!r}));' for x in PLACES]
    lines = [
        HEAD + READ("primitives.c").read_text("utf-8"),
        f"static double places[] = {{ {places} }}, weights[] = {{ {weights} }};",
        "int main(void) {",
        "PLACES.at = places; WEIGHTS.at = weights; PLACES.size = WEIGHTS.size = 20;",
        *asked,
        "return 0; }",
    ]
    source.write_text("\n".join(lines), "utf-8")
    program = str(tmp_path / "asked")
    line = [str(COMPILER), "-std=c99", "-O1", "-o", program, str(source), "-lm"]
    subprocess.run(line, check=True, timeout=100, capture_output=True)
    ran = subprocess.run([program], check=True, timeout=60, capture_output=True, text=True)
    agree([float(word) for word in ran.stdout.split()])


@pytest.mark.skipif(NODE is None, reason="no node, which runs JavaScript")
def test_javascript_has_log_erfc_and_differences_of_erf(tmp_path: Path):
    source = tmp_path / "asked.mjs"
    places, weights = rule()
    ask = f"""const pairs = {json.dumps(PAIRS)}, xs = {json.dumps(PLACES)};
const answers = [...pairs.map(([m, h]) => log_erf_difference(m, h)), ...xs.map(log_erfc)];
console.log(JSON.stringify(answers));"""
    lines = [
        READ("primitives.js").read_text("utf-8"),
        f"const PLACES = Float64Array.of({places}), WEIGHTS = Float64Array.of({weights});",
        ask,
    ]
    source.write_text("\n".join(lines), "utf-8")
    ran = subprocess.run([str(NODE), str(source)], check=True, capture_output=True, text=True)
    agree(json.loads(ran.stdout))
