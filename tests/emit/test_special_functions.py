"""Special functions as programs hold them, in three languages, against many digits."""

from __future__ import annotations

import json
import subprocess
from importlib.resources import files
from pathlib import Path

import mpmath
import numpy as np
import pytest
from emitted import COMPILER, NODE

from symdp.emit.standalone.tables import tables
from symdp.emit.standalone.write import error_functions

PAIRS = (
    (0.1, 0.2), (3.0, 0.4), (9.0, 2.0), (1.0, 3.0), (40.0, 0.001), (2.5, 2.4), (-3.0, 0.4),
    (0.3, 0.31), (0.26, 0.48), (0.25, 0.51), (1e-9, 1e-9), (3.0, 0.04), (3.0, 0.0417), (20.0, 19.9),
)  # fmt: skip
PLACES = (-30.0, -3.0, -0.2, 1e-9, 0.3, 0.5, 0.999, 1.001, 1.9, 3.75, 8.0, 26.0)
READ = files("symdp.emit.standalone.runtime").joinpath
HEAD = """#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#define PI 3.14159265358979323846
"""


def truths() -> list[float]:
    """Return differences of erf, log erfc, erf and erfc by mpmath, in the order of questions."""
    with mpmath.workdps(60):
        values = []
        for middle, half in PAIRS:
            m, h = abs(mpmath.mpf(middle)), mpmath.mpf(half)
            values.append(mpmath.log(mpmath.erfc(m - h) - mpmath.erfc(m + h)))
        for function in (lambda x: mpmath.log(mpmath.erfc(x)), mpmath.erf, mpmath.erfc):
            values += [function(mpmath.mpf(x)) for x in PLACES]
        return [float(v) for v in values]


def agree(printed: list[float]) -> None:
    """Differences and logarithms may be off by a few roundings of what they are made of."""
    expected = truths()
    assert len(printed) == len(expected)
    logarithms = len(PAIRS) + len(PLACES)
    for i, (value, truth) in enumerate(zip(printed, expected, strict=True)):
        absolute = 3e-15 if i < logarithms else 0.0
        assert value == pytest.approx(truth, rel=1.5e-15, abs=absolute)


def list_of(name: str) -> str:
    return ", ".join(map(repr, tables()[name]))


def test_python_has_erf(monkeypatch):
    from symdp.emit.standalone.runtime import erf

    for name in ("SCALED_ERFC", "SMALL_ERF"):
        monkeypatch.setattr(erf, name, tables()[name])
    middles, halves = np.array(PAIRS).T
    x = np.array(PLACES)
    with np.errstate(all="ignore"):  # as every answer has it
        parts = [erf.log_erf_difference(middles, halves), erf.log_erfc(x), erf.erf(x), erf.erfc(x)]
        assert np.isnan(erf.log_erf_difference(np.ones(1), -1e-3))
        assert erf.log_erfc(np.array([1e5, np.inf])).tolist()[1] == -np.inf
    agree(np.concatenate(parts).tolist())


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_c_has_erf(tmp_path: Path):
    source = tmp_path / "asked.c"
    asked = [f'printf("%.17g\\n", log_erf_difference({m!r}, {h!r}));' for m, h in PAIRS]
    for name in ("log_erfc", "erf", "erfc"):
        asked += [f'printf("%.17g\\n", {name}({x!r}));' for x in PLACES]
    lines = [
        HEAD + READ("primitives.c").read_text("utf-8"),
        f"static double numbers[] = {{ {list_of('SCALED_ERFC')} }};",
        f"static vector SCALED_ERFC = {{ numbers, {len(tables()['SCALED_ERFC'])} }};",
        error_functions("c"),
        "int main(void) {",
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
def test_javascript_has_erf(tmp_path: Path):
    source = tmp_path / "asked.mjs"
    ask = f"""const pairs = {json.dumps(PAIRS)}, xs = {json.dumps(PLACES)};
const answers = [...pairs.map(([m, h]) => log_erf_difference(m, h)),
  ...xs.map(log_erfc), ...xs.map(erf), ...xs.map(erfc)];
console.log(JSON.stringify(answers));"""
    lists = [
        f"const {name} = Float64Array.of({list_of(name)});" for name in ("SCALED_ERFC", "SMALL_ERF")
    ]
    lines = [READ("primitives.js").read_text("utf-8"), *lists, error_functions("javascript"), ask]
    source.write_text("\n".join(lines), "utf-8")
    ran = subprocess.run([str(NODE), str(source)], check=True, capture_output=True, text=True)
    agree(json.loads(ran.stdout))


ORDERS = (0.0, 0.5, 7.0, 300.0)
DISTANCES = (1e-5, 0.9, 16.0, 35.0, 200.0)
SHAPES = ((0.5, 0.3), (3.7, 1.5), (20.0, 22.0), (150.0, 60.0), (150.0, 180.0))
ASKED = [
    *(("log_besseli", v, x) for v in ORDERS for x in DISTANCES),
    *(("log_besselk", v, x) for v in ORDERS for x in DISTANCES),
    ("besseli", 3.0, -2.5),
    ("besselk", 1.0, 0.4),
    *(("erfi", x, 0.0) for x in (1e-9, -1.0, 8.0, 26.0)),
    *((name, s, x) for name in ("lowergamma", "uppergamma") for s, x in SHAPES),
    *(("uppergamma", s, x) for s, x in ((0.0, 0.3), (-0.5, 0.2), (-2.0, 4.0), (0.0, 30.0))),
]
TRUE = {
    "log_besseli": lambda v, x: mpmath.log(mpmath.besseli(v, x)),
    "log_besselk": lambda v, x: mpmath.log(mpmath.besselk(v, x)),
    "besseli": mpmath.besseli,
    "besselk": mpmath.besselk,
    "erfi": lambda x, _: mpmath.erfi(x),
    "lowergamma": lambda s, x: mpmath.gammainc(s, 0, x),
    "uppergamma": mpmath.gammainc,
}


def agree_with_mpmath(values: list[float]) -> None:
    assert len(values) == len(ASKED)
    for (name, a, b), value in zip(ASKED, values, strict=True):
        with mpmath.workdps(30):
            truth = float(TRUE[name](mpmath.mpf(a), mpmath.mpf(b)))
        is_log = name.startswith("log")
        close = pytest.approx(truth, rel=1e-12, abs=1e-12 if is_log else 0.0)
        assert value == close, (name, a, b)


def call(name: str, a: float, b: float) -> str:
    return f"{name}({a!r})" if name == "erfi" else f"{name}({a!r}, {b!r})"


def test_python_has_bessel_and_gamma_functions():
    from symdp.emit.standalone.runtime import special

    with np.errstate(all="ignore"):  # as every answer has it
        values = [
            float(getattr(special, name)(*((a,) if name == "erfi" else (a, b))))
            for name, a, b in ASKED
        ]
        together = special.log_besseli(np.array(ORDERS)[:, None], np.array(DISTANCES))
    agree_with_mpmath(values)
    assert together.ravel().tolist() == pytest.approx(values[: together.size], rel=1e-14, abs=1e-13)


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_c_has_bessel_and_gamma_functions(tmp_path: Path):
    source = tmp_path / "special.c"
    printed = [f'printf("%.17g\\n", {call(*asked)});' for asked in ASKED]
    text = HEAD + READ("special.c").read_text("utf-8")
    source.write_text("\n".join([text, "int main(void) {", *printed, "return 0; }"]), "utf-8")
    program = str(tmp_path / "special")
    line = [str(COMPILER), "-std=c99", "-O1", "-o", program, str(source), "-lm"]
    subprocess.run(line, check=True, timeout=100, capture_output=True)
    ran = subprocess.run([program], check=True, timeout=60, capture_output=True, text=True)
    agree_with_mpmath([float(word) for word in ran.stdout.split()])


@pytest.mark.skipif(NODE is None, reason="no node, which runs JavaScript")
def test_javascript_has_bessel_and_gamma_functions(tmp_path: Path):
    source = tmp_path / "special.mjs"
    values = ", ".join(call(*asked) for asked in ASKED)
    parts = [READ(name).read_text("utf-8") for name in ("primitives.js", "special.js")]
    source.write_text("\n".join([*parts, f"console.log(JSON.stringify([{values}]));"]), "utf-8")
    ran = subprocess.run([str(NODE), str(source)], check=True, capture_output=True, text=True)
    agree_with_mpmath(json.loads(ran.stdout))
