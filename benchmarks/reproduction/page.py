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
    return table(("paper", "table or figure", "here"), INDEX)


INDEX = (
    ("FA", "Tables 1 and 2", "above, each digit"),
    ("FA", "Figures 1 to 4", "fa-1 to fa-4"),
    ("SPA", "Figures 1 to 4", "spa-1 to spa-4"),
    ("EA", "Figure 1", "no figure of its own: spa-1 has the Gaussian limit and Rényi's bound"),
    ("EA", "Figures 2 and 3", "ea-2, ea-3"),
    ("PRV", "Figures 1, 3, 4 and 6", "prv-1, prv-3, prv-4, prv-6; `buckets` for the other program"),
    ("PRV", "Figure 9, run times", "prv-9, in points, which run times are proportional to"),
    ("IND", "Figure 1, left", "ind-1, for a record that is always clipped"),
    ("IND", "Figure 1, right", "a histogram over MNIST, which is not at hand: "
     "`examples/individual.py` on the digits of scikit-learn"),
    ("IND", "Figures 2, 6 to 10", "MIMIC-III is not public without a licence: the filter is run on "
     "the digits by `examples/individual.py`"),
    ("IND", "Figures 3, 4 and 5", "ind-3"),
)  # fmt: skip


def _cells(row: Digits) -> tuple[str, ...]:
    return row.what, row.paper, row.same_grid, row.certified, row.verdict


def _wrong(row: Digits) -> str:
    return f"- {row.what}: printed {row.paper}, proved {row.certified}, {row.verdict}.\n"
