"""The measured map: which method is how close to the exact δ at which job, and what it costs."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass

from jobs import job
from page import table

import symdp
from symdp.errors import SymdpError
from symdp.methods import accountant, names
from symdp.methods.route import ROUTES

JOBS = (  # σ, q, steps
    ("2", "1", 1),
    ("5", "1", 10),
    ("50", "1", 1000),
    ("2", "0.1", 100),
    ("1", "0.01", 1000),
    ("1.5", "0.01", 10_000),
    ("0.8", "0.001", 10_000),
    ("2", "0.01", 100_000),
    ("1", "0.001", 1_000_000),
)
DELTAS = (1e-2, 1e-6, 1e-12, 1e-40)
GRADES = ((1e-8, "●"), (1e-4, "◕"), (1e-2, "◐"), (1.0, "○"))
OUT, NONE = "·", "–"
BOUNDS = (
    "moments", "moments-plain", "moments-variance", "renyi", "spa-bounds", "eeai", "prv",
    "tilted-prv",
)  # fmt: skip

HEAD = """# How to choose a method

You need not choose: the default, `contour`, takes the first row of this table that applies. It
evaluates the exact formula, as exactly as the table says, and costs about as much as an
estimate. Ask for another method to compare with a published number, to have a bound that rests
on one inequality, or to have a formula that you can write down.
"""
MEASURED = """\
`answer.route` names the row, and `--explain` prints the table. An interval stands with the
answer wherever it is wider than rounding. `symdp verify` compares the methods for one mechanism
of yours, as the map below does for nine jobs.

## How the map was measured

`make figures` measured what follows: Gaussian noise of standard deviation σ, sampled at rate q
(Poisson, remove direction), n steps. Each job is asked at four values of ε, where δ is 1e-2,
1e-6, 1e-12 and 1e-40. Each cell of the map holds one sign for each of these four, in this
order:

| sign | relative distance of the method's δ from the exact one |
| --- | --- |
| ● | at most 1e-8 |
| ◕ | at most 1e-4 |
| ◐ | at most 1e-2 |
| ○ | at most 1 |
| · | larger |
| – | the method refuses, or says that it does not hold here and gives a bound instead |

A sign in brackets comes with advice: the method itself says that its number should not be
trusted there.
"""


@dataclass
class Cell:
    """One method at one job: its signs, and seconds for one δ."""

    signs: list[str]
    first: list[float]
    next: list[float]
    within: list[float]
    factors: list[float]


def grade(error: float) -> str:
    return next((sign for limit, sign in GRADES if error <= limit), OUT)


def measure(method: str, steps: symdp.Composition, places: list[tuple[float, float]]) -> Cell:
    """Return the cell of one method at (ε, exact log δ), timed there and at an ε beside it.

    The composition is a fresh one, so that nothing kept for another method is of use.
    """
    fresh = symdp.compose(list(steps.steps))
    rule, law = accountant(method), fresh.law("remove")
    law.cumulants(0.0, 2)
    signs, first, again, within, factors = [], [], [], [], []
    for epsilon, exact in places:
        try:
            start = time.perf_counter()
            answer = rule.log_delta(law, epsilon)
            taken = time.perf_counter() - start
        except SymdpError:
            signs.append(NONE)
            continue
        first.append(taken)
        start = time.perf_counter()
        rule.log_delta(law, epsilon * (1.0 + 1e-3))
        again.append(time.perf_counter() - start)
        fell_back = answer.kind == "bound" and bool(answer.advice) and answer.log_lower == -math.inf
        factors.append(math.exp(min(answer.log_delta - exact, 700.0)))
        error = abs(math.expm1(min(answer.log_delta - exact, 700.0)))
        within.append(math.inf if fell_back or answer.advice else error)
        sign = NONE if fell_back else grade(error)
        signs.append(f"({sign})" if answer.advice and not fell_back else sign)
    return Cell(signs, first, again, within, factors)


def exact_places(steps: symdp.Composition) -> list[tuple[float, float]]:
    places = []
    for target in DELTAS:
        # a short ε, at which the exact δ is taken anew
        epsilon = float(f"{steps.epsilon(target, direction='remove').epsilon:.4g}")
        found = steps.delta(epsilon, direction="remove")
        places.append((epsilon, found.log_delta))
    return places


def page() -> str:
    compositions = [job(*j) for j in JOBS]
    places = [exact_places(c) for c in compositions]
    methods = names()
    cells = {
        m: [measure(m, c, p) for c, p in zip(compositions, places, strict=True)] for m in methods
    }
    jobs = [
        (str(k + 1), f"{n:,}", q, sigma, ", ".join(f"{e:g}" for e, _ in p))
        for k, ((sigma, q, n), p) in enumerate(zip(JOBS, places, strict=True))
    ]
    total = len(JOBS) * len(DELTAS)
    rows = [(f"`{m}`", *("".join(c.signs) for c in cells[m])) for m in methods]
    costs, bounds = [], []
    for m in methods:
        errors = [e for c in cells[m] for e in c.within]
        shares = (f"{sum(e <= limit for e in errors)}" for limit, _ in reversed(GRADES[:3]))
        times = [s for c in cells[m] for s in c.first], [s for c in cells[m] for s in c.next]
        middles = (_time(statistics.median(t)) for t in times)
        costs.append((f"`{m}`", *middles, _time(max(times[0])), *shares))
        factors = [f for c in cells[m] for f in c.factors]
        if min(factors) >= 1.0 - 1e-9 and m in BOUNDS:
            bounds.append((f"`{m}`", f"{statistics.median(factors):.3g}", f"{max(factors):.2g}"))
    return "\n".join(
        (
            HEAD,
            routes(),
            MEASURED,
            "## The jobs\n",
            table(("job", "n", "q", "σ", "ε at the four δ"), jobs),
            "## The map\n",
            table(("method", *(f"job {k + 1}" for k in range(len(JOBS)))), rows),
            "## What it costs\n",
            "Time for one δ at a first ε (median and most over the map) and at an ε beside it, "
            f"where grids are kept; and at how many of the {total} places the method is so close "
            "without advising against itself.\n",
            table(("method", "first ε", "next ε", "most", "within 1e-2", "1e-4", "1e-8"), costs),
            "## How far the bounds are from the exact value\n",
            "The factor between the bound and δ over the map, where the method answers.\n",
            table(("method", "median", "most"), bounds),
            _reading(cells, total),
        )
    )


def routes() -> str:
    """The table by which the default method chooses, as the package holds it."""
    rows = [(f"`{r.name}`", r.laws, r.how, r.promise, r.cost) for r in ROUTES]
    return table(("route", "applies to", "computes", "half width of δ", "work"), rows)


def _reading(cells: dict[str, list[Cell]], total: int) -> str:
    """What the map says, in sentences whose numbers are counted from it."""

    def count(method: str, limit: float) -> int:
        return sum(e <= limit for c in cells[method] for e in c.within)

    others = [m for m in cells if m != "contour"]
    best = sorted(others, key=lambda m: -count(m, 1e-4))[:3]
    listed = ", ".join(f"`{m}` at {count(m, 1e-4)}" for m in best)
    return (
        "## Reading it\n\n"
        f"- `contour` is within 1e-8 at {count('contour', 1e-8)} of {total} places (it is what "
        "the others are compared with; the tests compare it with truth to 20 digits).\n"
        f"- Of the others the closest are {listed} places within 1e-4.\n"
        f"- `msd:2` is within 1e-2 at {count('msd:2', 1e-2)} places, `edgeworth:4` at "
        f"{count('edgeworth:4', 1e-2)}: a tilted series serves small δ, one around the mean large "
        "δ.\n"
        f"{_out_of_reach(cells)}"
        f"- Of the bounds `moments` is within 1e-2 at {count('moments', 1e-2)} places and "
        f"`tilted-prv` at {count('tilted-prv', 1e-2)}.\n"
    )


def _out_of_reach(cells: dict[str, list[Cell]]) -> str:
    """The jobs at which no series or limit stands by an answer within 1e-2 for a small δ."""
    series = [m for m in cells if m not in {"contour", "fourier", *BOUNDS}]
    close = {sign for limit, sign in GRADES if limit <= 1e-2}
    lost = [
        str(k + 1)
        for k in range(len(JOBS))
        if not any(cells[m][k].signs[place] in close for m in series for place in (1, 2))
    ]
    if not lost:
        return ""
    return (
        f"- At job {' and '.join(lost)} no series and no limit stands by an answer within 1e-2 at "
        "δ = 1e-6 or 1e-12: a rare large loss of one step carries that tail. There `contour` and "
        "`tilted-prv` remain.\n"
    )


def _time(seconds: float) -> str:
    if seconds >= 1.0:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.1 else f"{seconds * 1e3:.2g} ms"
