"""The page of the reproduction, written from what was computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drawing import Figure
from fourier_rows import Digits

HEAD = """# Published results, reproduced

*For those who check symdp against the papers; using it needs nothing of this page.*

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
    tails: Sequence[tuple[str, ...]],
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
        beyond(tails),
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
    parts += [index(), *map(shown, figures)]
    parts += [
        f"## {own.heading}\n\n{own.text}\n",
        f"This one is no paper's: {own.chosen}.\n",
        table(own.header, own.rows),
        f"![{own.heading}](figures/{own.name}.svg)\n",
    ]
    return "\n".join(parts)


def beyond(rows: Sequence[tuple[str, ...]]) -> str:
    """Return the table of the paper's bounds on the tail, beside Chernoff's."""
    header = ("q = 0.01", "(7.3), an estimate", "Theorem 8", "Chernoff, λ = L/2",
              "Chernoff, best λ", "Lemma 7")  # fmt: skip
    return (
        "Its bounds on the loss beyond L. What fails a theorem's condition is named. Chernoff's "
        "bound at the best λ is the one that `fourier` counts with. Lemma 7, on truncation and "
        "periodisation, is infinite where k ≥ 4σ², as its sum diverges there.\n\n"
        + table(header, rows)
    )


def shown(figure: Figure) -> str:
    """Return the section of one figure."""
    parts = [
        f"### {figure.heading}\n\n{figure.text}\n",
        f"The paper's: {figure.given}. Our own: {figure.chosen}.\n",
        table(figure.header, figure.rows) if figure.rows else "",
        f"![{figure.heading}](figures/{figure.name}.svg)\n",
    ]
    return "\n".join(filter(None, parts))


def index() -> str:
    """Return the table of every table and figure of the five papers."""
    return table(("paper", "table or figure", "says", "here", "why they differ"), INDEX)


SAMPLED = "parameters are our own where the paper prints none"
MIMIC = "data: MIMIC-III is under a personal licence, the digits come with scikit-learn"
INDEX = (
    ("FA", "Tables 1 and 2", "δ of a grid, to 12 digits", "the same digits",
     "the grid's own error: the last column above"),
    ("FA", "Figure 1", "the moments accountant is loose", "fa-1, the same", "real orders, tighter"),
    ("FA", "Figure 2", "so is Rényi's bound", "fa-2, the same", SAMPLED),
    ("FA", "Figure 3", "a bound by Berry and Esseen fails at small δ", "fa-3, the same",
     "a smaller constant than the cited one"),
    ("FA", "Figure 4", "as good as Privacy Buckets", "fa-4: `buckets` is wider",
     "without the virtual errors that their authors count"),
    ("SPA", "Figures 1 and 3", "the tilted estimates are accurate where others fail",
     "spa-1 and spa-3; not at few epochs", SAMPLED + "; few epochs are ruled by one large loss"),
    ("SPA", "Figure 2", "the constant of the moments bound can be less", "spa-2, the same", ""),
    ("SPA", "Figure 4", "bounds around the tilted limit hold δ", "spa-4, the same", SAMPLED),
    ("EA", "Table 1", "guarantees and costs of methods, in words",
     "[how to choose](how-to-choose.md), measured", "no numbers are printed"),
    ("EA", "Figure 1", "a diagram: one Gaussian for all, or one series for each ε",
     "none; spa-1 and prv-1 have `gaussian`", "no numbers are printed"),
    ("EA", "Figure 2", "second order is near the truth", "ea-2: not for small m", SAMPLED),
    ("EA", "Figure 3", "the interval is narrow for many steps", "ea-3, the same", SAMPLED),
    ("PRV", "Figure 1", "one mesh, two roundings: means kept are better", "prv-1, the same",
     "`buckets` stands for the other program"),
    ("PRV", "Figures 3 and 4", "errors over points and over steps", "prv-3 and prv-4, the same",
     SAMPLED),
    ("PRV", "Figure 6", "a floor of floating point", "prv-6, the same, counted in", SAMPLED),
    ("PRV", "Figures 2, 5, 7 and 8", "not known", "none",
     "the text that this page was made from does not name them"),
    ("PRV", "Figure 9, run times", "faster by the root of the steps", "prv-9, in points",
     "run times are proportional to points, and depend on the machine"),
    ("PRV", "Section 1, DP-SGD-JL", "a loss without moments has useful intervals",
     "prv-jl, the same", "the paper cites it without numbers"),
    ("IND", "Figure 1, left", "one μ-GDP curve above a record's", "ind-1, the same",
     "the record is one that is always clipped"),
    ("IND", "Figure 1, right", "loss distributions beat Rényi where ε is small", "ind-1b, the same",
     "data: the digits for MNIST"),
    ("IND", "Figure 2", "groups with small ε have small losses; filtering widens the gap",
     "ind-2, the same", MIMIC),
    ("IND", "Figures 3, 4 and 5", "Gaussian DP gives about 10 % less than Rényi", "ind-3, the same",
     "printed numbers are rounded: the table above"),
    ("IND", "Figure 6", "filtering helps only at a clip five times the best",
     "ind-6: better for some epochs, then worse, at every clip", MIMIC),
    ("IND", "Figures 7 and 8", "at the best clip most records are near the budget",
     "ind-7: a quarter are", MIMIC),
    ("IND", "Figures 9 and 10", "a little better with filtering",
     "ind-9: better for some epochs, then worse", MIMIC),
)  # fmt: skip


def _cells(row: Digits) -> tuple[str, ...]:
    return row.what, row.paper, row.same_grid, row.certified, row.verdict


def _wrong(row: Digits) -> str:
    return f"- {row.what}: printed {row.paper}, proved {row.certified}, {row.verdict}.\n"
