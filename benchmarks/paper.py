"""The tables of paper/paper.md, computed anew or read off what was measured: `make paper`.

Each table stands between two comments that name it, `<!-- table NAME -->` and `<!-- end -->`. Then,
where pandoc and a TeX engine are installed, the paper is set as out/paper.pdf.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import sympy as sp

import symdp

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "paper" / "paper.md"
MEASURED = ROOT / "benchmarks" / "measured" / "peers.json"
PDF = ROOT / "out" / "paper.pdf"
ENGINES = ("pdflatex", "xelatex", "lualatex", "tectonic")
METHODS = (
    "contour",
    "moments-plain",
    "moments",
    "spa-bounds",
    "clt",
    "msd:1",
    "edgeworth:2",
    "prv",
)
PROGRAMS = (
    ("symdp", "contour"),
    ("symdp", "msd:1"),
    ("symdp", "edgeworth:2"),
    ("Google PLD, connect the dots", "0.001"),
    ("Google PLD, connect the dots", "0.0001"),
    ("Google PLD, privacy buckets", "0.0001"),
    ("Google RDP", ""),
)
# Each of another kind: ordinary training, a rare step, noise that is not normal.
QUESTIONS = (
    "q = 0.01, σ = 1.5, n = 10,000",
    "q = 0.001, σ = 1, n = 10,000",
    "Laplace noise, q = 0.01",
)
BLOCK = re.compile(r"<!-- table (\w+) -->\n.*?<!-- end -->\n", re.DOTALL)
EPSILON = r"$\varepsilon$"
KINDS = {"exact": "exact in floating point", "bound": "proved bound", "estimate": "estimate"}


def rows_of(header: tuple[str, ...], rows: list[tuple[str, ...]], caption: str) -> str:
    """Return a table in Pandoc's Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in (header, *rows)]
    # A column is as wide as its longest cell, where Pandoc has to break lines.
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    lines.insert(1, "|" + "".join(f" {'-' * max(3, width)} |" for width in widths))
    return "\n".join([*lines, "", f": {caption}"])


def by_method() -> str:
    """Return ε of one job by several accountants."""
    noise = symdp.mechanisms.gaussian(sigma="1.12").subsample("poisson", "256/60000")
    steps = symdp.compose(noise, 14063)
    rows = []
    for method in METHODS:
        answer = steps.epsilon(1e-5, method)  # type: ignore[call-overload]
        rows.append((f"`{method}`", f"{answer.epsilon:.6f}", KINDS[answer.kind]))
    caption = (
        r"$\varepsilon$ at $\delta = 10^{-5}$ of 14 063 steps with normal noise, by accountant. "
        r"\label{methods}"
    )
    return rows_of(("accountant", EPSILON, "which is"), rows, caption)


def by_program() -> str:
    """Return relative errors and times of programs that were measured beside one another."""
    measured = json.loads(MEASURED.read_text("utf-8"))
    rows: list[tuple[str, ...]] = []
    for question in dict.fromkeys(row["question"] for row in measured["rows"]):
        if not any(part in question for part in QUESTIONS):
            continue
        words = question.replace("σ", r"$\sigma$").replace("ε", EPSILON)
        rows.append((f"*{words}*", "", ""))
        for row in measured["rows"]:
            if row["question"] == question and (row["program"], row["setting"]) in PROGRAMS:
                rows.append(_program(row))
    caption = (
        r"Relative error of $\delta$ against a proved enclosure, and processor time of one answer "
        rf"in a warm process ({measured['machine']}). \label{{programs}}"
    )
    return rows_of(("program", "relative error", "seconds"), rows, caption)


def _program(row: dict[str, Any]) -> tuple[str, ...]:
    name = f"{row['program']} {row['setting']}".strip()
    if row["answer"] is None:
        return (name, "no answer", "")
    lower, upper = (Decimal(row["truth"][end]) for end in ("lower", "upper"))
    error = Decimal(row["answer"]) / ((lower + upper) / 2) - 1
    mantissa, _, power = f"{float(error):+.1e}".partition("e")
    return (name, rf"${mantissa} \cdot 10^{{{int(power)}}}$", f"{row['seconds']:.2g}")


def by_density() -> str:
    """Return ε of densities of which nothing but the formula is known beforehand."""
    x = sp.Symbol("x")
    densities = (
        (r"$e^{-x^2/8}$", sp.exp(-(x**2) / 8)),
        (r"$\cosh^{-2}(x/2)$", sp.sech(x / 2) ** 2),
        (r"$e^{-x^4/64}$", sp.exp(-(x**4) / 64)),
        (r"$(1 + x^2/6)^{-4}$", (1 + x**2 / 6) ** -4),
        (r"$e^{-x^2/8} (2 + \cos 2\pi x)$", sp.exp(-(x**2) / 8) * (2 + sp.cos(2 * sp.pi * x))),
    )
    rows = []
    for name, density in densities:
        noise = symdp.Mechanism.additive(density, x, 1, normalize=True)
        step = noise.subsample("poisson", "1/50")
        answer = symdp.compose(step, 200).epsilon(1e-6)
        rows.append((name, f"{answer.upper:.6f}", KINDS[answer.kind]))
    caption = (
        r"$\varepsilon$ at $\delta = 10^{-6}$ of 200 Poisson-sampled steps, rate 1/50, "
        r"sensitivity 1, for a density that is given up to a factor. \label{densities}"
    )
    return rows_of(("density", EPSILON, "which is"), rows, caption)


TABLES: dict[str, Callable[[], str]] = {
    "methods": by_method,
    "programs": by_program,
    "densities": by_density,
}


def filled(text: str) -> str:
    """Return the paper with every table made anew."""

    def one(block: re.Match[str]) -> str:
        name = block[1]
        return f"<!-- table {name} -->\n{TABLES[name]()}\n<!-- end -->\n"

    return BLOCK.sub(one, text)


def main() -> int:
    """Write the tables, and set the paper where that can be done."""
    PAPER.write_text(filled(PAPER.read_text("utf-8")), "utf-8")
    print(f"the tables: {PAPER.relative_to(ROOT)}")
    engine = next(filter(shutil.which, ENGINES), None)
    if shutil.which("pandoc") is None or engine is None:
        print("the paper is not set: that needs pandoc and one of " + ", ".join(ENGINES))
        return 0
    PDF.parent.mkdir(exist_ok=True)
    command = ["pandoc", PAPER.name, "--citeproc", f"--pdf-engine={engine}", "--number-sections"]
    command += ["--variable=geometry:margin=3cm", "--output", str(PDF)]
    subprocess.run(command, cwd=PAPER.parent, check=True)
    print(f"the paper: {PDF.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
