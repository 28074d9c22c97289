"""The page of the reproduction, written from what was computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drawing import Figure
from fourier_rows import Digits

HEAD = """# Published results, reproduced

`make figures` computes everything on this page and writes it. The exact value is the method
`contour`; the tables' last digits are those of `certify`, whose enclosure is proved with floating
point included. FA is Koskela, Jälkö and Honkela, *Computing Tight Differential Privacy Guarantees
Using FFT*; SPA is Alghamdi et al., *The Saddle-Point Accountant*; EA is Wang et al., *Analytical
Composition of Differential Privacy via the Edgeworth Accountant*; IND is Koskela, Tobaben and
Honkela, *Individual Privacy Accounting with Gaussian DP*. Where a paper's comparison uses software
that is no part of symdp, symdp's method of the same kind stands in its place and is named.
"""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def reproduction(
    tables: Sequence[Digits],
    errors: Sequence[tuple[str, ...]],
    grid: Sequence[Digits],
    gaussian: Sequence[tuple[str, ...]],
    figures: Sequence[Figure],
    own: Figure,
) -> str:
    header = ("what", "paper says", "symdp on the same grid", "certified δ", "the paper's value is")
    off = [row for row in grid if row.verdict.startswith("off")]
    parts = [
        HEAD,
        "## Tables of the Fourier accountant\n",
        "q = 0.01, σ = 1.5, k = 10 000, ε = 1, Poisson sampling, remove direction. The same grid "
        "gives the same digits, up to the rounding of two transforms; what differs from the "
        "certified value is the grid's own error.\n",
        table(header, map(_cells, tables)),
        "Its error estimates: 2|Iₙ − I₂ₙ|, and the bound on the tail (7.3). Values below 1e-10 in "
        "the first four rows are rounding, which depends on the transform. The first two printed "
        "ones are not 2|Iₙ − I₂ₙ| of the printed δ, which differ by 4.8e-4 and 2.6e-8 from the "
        "exact one; they agree within a few percent with that difference divided by δ.\n",
        table(("what", "paper says", "symdp gets"), errors),
        "## Values of the Fourier accountant's code\n",
        "A million points of [−20, 20), as its authors' tests list them. "
        f"{len(off)} of the {len(grid)} are off: one grid is too coarse for its loss, the other "
        "too short for its sum. In the others only the last digits printed, which are rounding of "
        "the transforms, differ from the proved value.\n",
        table(header, map(_cells, grid)),
        "".join(_wrong(row) for row in off),
        "## Individual accounting\n",
        "σ = 100, δ = 1e-5. The printed ε = 0.8 is rounded: 495 steps belong to the ε that the "
        "Rényi curve gives 420 steps.\n",
        table(("what", "paper says", "symdp gets"), gaussian),
        "## Figures\n",
        "With each figure stand the parameters that the paper prints with it, and those that are "
        "our own because it prints none, or because its text has not kept them.\n",
    ]
    for figure in figures:
        parts.append(f"### {figure.heading}\n\n{figure.text}\n")
        parts.append(f"The paper's: {figure.given}. Our own: {figure.chosen}.\n")
        if figure.rows:
            parts.append(table(figure.header, figure.rows))
        parts.append(f"![{figure.heading}](figures/{figure.name}.svg)\n")
    parts += [
        f"## {own.heading}\n\n{own.text}\n",
        f"This one is no paper's: {own.chosen}.\n",
        table(own.header, own.rows),
        f"![{own.heading}](figures/{own.name}.svg)\n",
    ]
    return "\n".join(parts)


def _cells(row: Digits) -> tuple[str, ...]:
    return row.what, row.paper, row.same_grid, row.certified, row.verdict


def _wrong(row: Digits) -> str:
    return f"- {row.what}: printed {row.paper}, proved {row.certified}, {row.verdict}.\n"
