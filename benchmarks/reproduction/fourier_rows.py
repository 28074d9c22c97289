"""The Fourier accountant's tables and figures: digits against certified truth, curves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import theorems
from drawing import Curve, Figure, Panel
from jobs import (
    DELTA,
    EPSILON,
    STEPS,
    counts,
    delta,
    deltas,
    epsilon,
    grid,
    interval,
    job,
    trusted_delta,
)

from symdp.errors import InputError
from symdp.methods.fourier import Fourier, halving_error
from symdp.methods.interval import summands
from symdp.methods.loss_mesh import log_beyond
from symdp.methods.renyi import Renyi
from symdp.questions.invert import invert

TABLE_1 = (  # points, δ, err(L, n); L = 12
    (50_000, "0.0491228786423", "2.01e-2"),
    (200_000, "0.0496013846114", "1.06e-6"),
    (800_000, "0.0496014103252", "2.66e-11"),
    (3_200_000, "0.0496014103163", "2.22e-12"),
)
TABLE_2 = (  # L, δ, estimate (7.3); n = 3.2e6
    (2, "0.0422160172923", "3.32e-1"),
    (6, "0.0496014103158", "3.32e-6"),
    (10, "0.0496014103134", "1.36e-16"),
    (12, "0.0496014103163", "8.30e-24"),
)
GRID_20 = (  # rate, σ, steps, ε, remove, substitution: 10⁶ points of [−20, 20)
    ("0.01", "2", 10_000, 1.0, "0.010224911209", "0.128209385711"),
    ("0.01", "2", 100_000, 1.0, "0.392057288533", "0.820553801441"),
    ("0.01", "2", 10_000, 0.8, "0.022850339596", "0.168032073536"),
    ("0.01", "1", 10_000, 1.0, "0.239176394737", "0.556809673152"),
    ("0.02", "2", 10_000, 1.0, "0.149917329693", "0.511311882151"),
)
DIGITS = 15
ROUNDED = 1e-7  # of δ: what transforms of ten thousand steps may lose
FLOOR = 1e-9  # of δ, for the transform's rounding to leave six digits
SIGMAS = ("1", "2", "3")
RATE = "0.01"


@dataclass(frozen=True)
class Digits:
    """A published number, symdp's on the same grid, the certified value and what follows."""

    what: str
    paper: str
    same_grid: str
    certified: str
    verdict: str


def _verdict(paper: str, truth: float) -> str:
    error = float(paper) / truth - 1.0
    return (
        f"right to {abs(error):.0e} of δ" if abs(error) < ROUNDED else f"off by {error:+.1e} of δ"
    )


def _on_grid(steps, epsilon_: float, reach: float, points: int) -> tuple[float, bool]:
    answer = Fourier(reach, points).log_delta(steps.law("remove"), epsilon_)
    return math.exp(answer.log_delta), bool(answer.advice)


def _certified(steps, epsilon_: float) -> float:
    """The middle of the enclosure, whose ends agree to more digits than are printed."""
    proved = steps.certify(epsilon_, digits=DIGITS, direction="remove")
    low, high = float(proved.lower_decimal), float(proved.upper_decimal)
    assert high - low <= 1e-13 * high
    return 0.5 * (low + high)


def tables() -> tuple[list[Digits], list[tuple[str, ...]]]:
    """Rows of digits of Tables 1 and 2, and rows of their error estimates."""
    steps = job("1.5", RATE, 10_000)
    truth = _certified(steps, 1.0)
    rows, errors = [], []
    for points, paper, printed in TABLE_1:
        value, _ = _on_grid(steps, 1.0, 12, points)
        rows.append(
            Digits(
                f"FA Table 1, n = {points:,}", paper, f"{value:.13f}", f"{truth:.15f}",
                _verdict(paper, truth),
            )
        )  # fmt: skip
        found = halving_error(steps.law("remove"), 1.0, 12, points)
        errors.append((f"err(L, n), L = 12, n = {points:,}", printed, f"{found:.2e}"))
    for reach, paper, printed in TABLE_2:
        value, _ = _on_grid(steps, 1.0, reach, TABLE_1[-1][0])
        rows.append(
            Digits(
                f"FA Table 2, L = {reach}", paper, f"{value:.13f}", f"{truth:.15f}",
                _verdict(paper, truth),
            )
        )  # fmt: skip
        estimate = theorems.tail_estimate(0.01, 1.5, 10_000, reach)
        errors.append((f"estimate (7.3), L = {reach}", printed, f"{estimate:.2e}"))
    return rows, errors


def tails() -> list[tuple[str, ...]]:
    """Rows of what bounds the loss beyond L, and what Lemma 7 says of the rest."""
    rows = []
    for sigma, count, reaches in (
        (1.5, 10_000, (4, 6, 8)),
        (4.0, 10_000, (2.5, 4, 6)),
        (4.0, 50, (4,)),
    ):
        law = job(f"{sigma:g}", RATE, count).law("remove")
        for reach in reaches:
            own = 0.01, sigma, count, reach
            rows.append(
                (
                    f"σ = {sigma:g}, k = {count:,}, L = {reach:g}",
                    _or_why_not(theorems.tail_estimate, *own),
                    _or_why_not(theorems.tail_bound, *own),
                    f"{theorems.chernoff_tail(*own):.2e}",
                    f"{math.exp(log_beyond(law, 0.0, reach, True)):.2e}",
                    f"{theorems.periodisation_bound(*own):.2e}",
                )
            )
    return rows


def _or_why_not(bound: Callable[..., float], *own: float) -> str:
    try:
        return f"{bound(*own):.2e}"
    except InputError as error:
        return str(error)


def grid_20() -> list[Digits]:
    """Ten values of the authors' code on a grid of a million points of [−20, 20)."""
    rows = []
    for rate, sigma, count, at, *papers in GRID_20:
        for relation, paper in zip(("remove", "substitution"), papers, strict=True):
            steps = job(sigma, rate, count, relation)
            value, warned = _on_grid(steps, at, 20, 1_000_000)
            truth = _certified(steps, at)
            verdict = _verdict(paper, truth)
            assert warned == ("off" in verdict), (rate, sigma, count, relation)
            told = "; `fourier` says so by its own estimate" if warned else ""
            rows.append(
                Digits(
                    f"{relation}, q = {rate}, σ = {sigma}, k = {count:,}, ε = {at:g}",
                    paper, f"{value:.12f}", f"{truth:.15f}", verdict + told,
                )
            )  # fmt: skip
    return rows


def figures() -> list[Figure]:
    return [_moments_accountant(), _renyi(), _berry_esseen(), _buckets()]


def _moments_accountant() -> Figure:
    steps = counts(10, 10_000, 13)
    first, second = [], []
    for sigma in SIGMAS:
        jobs = [job(sigma, RATE, k) for k in steps]
        for method in ("contour", "moments-plain"):
            label = f"{method}, σ = {sigma}"
            first.append(Curve(label, steps, [delta(j, 1.0, method) for j in jobs]))
            second.append(Curve(label, steps, [epsilon(j, 1e-6, method) for j in jobs]))
    few = [(k, job(s, RATE, k)) for s in SIGMAS for k in (100, 1000, 10_000)]
    few = [(k, j) for k, j in few if delta(j, 1.0) > FLOOR]
    dots = [trusted_delta(j, 1.0, "fourier") for _, j in few]
    stood_by = [(k, d, delta(j, 1.0)) for (k, j), d in zip(few, dots, strict=True) if d >= 0]
    first.append(
        Curve("fourier", [k for k, *_ in stood_by], [d for _, d, _ in stood_by], dots=True)
    )
    worst = max(abs(d / exact - 1) for _, d, exact in stood_by)
    return Figure(
        "fa-1",
        "FA Figure 1: the moments accountant against the exact value",
        "q = 0.01, Poisson sampling; δ at ε = 1 and ε at δ = 1e-6 over the number of steps. The "
        "plain Chernoff bound takes the moments accountant's place, at real orders, so that it "
        f"is nowhere looser. `fourier` with a grid of its own choice lies on the exact curve: at "
        f"{len(stood_by)} of {len(few)} places with δ > {FLOOR:g} it stands by its answer, and "
        f"there it differs by at most {worst:.0e} of δ.",
        (
            Panel("δ at ε = 1", STEPS, DELTA, first, log_x=True, log_y=True, y_range=(1e-30, 1)),
            Panel("ε at δ = 1e-6", STEPS, EPSILON, second, log_x=True),
        ),
        given="q = 0.01, σ ∈ {1, 2, 3}, up to 10 000 steps, ε = 1 and δ = 1e-6",
        chosen="the numbers of steps in between, real orders for the moments accountant, and the "
        "grid, which is chosen automatically",
    )


def _renyi() -> Figure:
    steps = counts(10, 20_000, 13)
    jobs = [job("2", RATE, k) for k in steps]
    integers = Renyi(tuple(float(k) for k in range(2, 65)))
    listed = [invert(integers, j.law("remove"), math.log(1e-6)).value for j in jobs]
    exact = [epsilon(j, 1e-6) for j in jobs]
    real = [epsilon(j, 1e-6, "renyi") for j in jobs]
    gaps = [r / e - 1 for r, e in zip(real, exact, strict=True)]
    return Figure(
        "fa-2",
        "FA Figure 2: Rényi bounds against the exact value",
        "q = 0.01, σ = 2, ε at δ = 1e-6. The Rényi curve converted at orders 2 to 64, and at the "
        f"best real order. The latter is {100 * gaps[-1]:.0f} % above the exact ε at 20 000 steps, "
        f"and {100 * max(gaps):.0f} % at worst, where steps are few.",
        (
            Panel(
                "ε at δ = 1e-6",
                STEPS,
                EPSILON,
                (
                    Curve("contour", steps, exact),
                    Curve("renyi, real orders", steps, real),
                    Curve("renyi, orders 2 to 64", steps, listed),
                ),
                log_x=True,
            ),
        ),
        given="q = 0.01 and δ = 1e-6",
        chosen="σ = 2, up to 20 000 steps, and the orders",
    )


def _berry_esseen() -> Figure:
    steps = job("2", RATE, 50_000)
    law = steps.law("remove")
    epsilons = grid(0.2, 6.0, 30)
    plain = summands(law, 0.0).berry_esseen
    methods = ("berry-esseen", "spa-bounds", "eeai")
    rows = []
    for at in (0.5, 1.0, 2.0, 4.0, 6.0):
        exact = delta(steps, at)
        widths = []
        for method in methods:
            (low,), (high,) = interval(steps, [at], method)
            widths.append(high - low)
        rows.append((f"{at:g}", f"{exact:.6e}", *(f"{w:.1e}" for w in widths)))
    return Figure(
        "fa-3",
        "FA Figure 3: bounds by Berry and Esseen against the exact value",
        "q = 0.01, σ = 2, 50 000 steps. The error of the untilted interval (`berry-esseen`) is "
        f"{plain:.1e} at every ε, and the moments bound cuts what is above it; tilted "
        "(`spa-bounds`) it keeps to the curve at every ε. The error of "
        "the first-order Edgeworth interval (`eeai`) is multiplied by e^ε. Widths of the three:",
        (
            Panel(
                "δ(ε)",
                EPSILON,
                DELTA,
                (
                    Curve("contour", epsilons, deltas(steps, epsilons)),
                    *(Curve(m, epsilons, *interval(steps, epsilons, m)) for m in methods),
                ),
                log_y=True,
                y_range=(1e-9, 1.5),
            ),
        ),
        "q = 0.01 and 50 000 steps",
        "σ = 2 and the range of ε; the constant of Berry and Esseen is 0.469, in place of the "
        "bound that the paper cites",
        rows,
        ("ε", "δ", *(f"`{method}`" for method in methods)),
    )


def _buckets() -> Figure:
    steps = job("1", "0.02", 2**12)
    epsilons = grid(0.2, 7.0, 18)
    return Figure(
        "fa-4",
        "FA Figure 4: discretised losses against the exact value",
        "q = 0.02, σ = 1, 2¹² steps. `buckets` rounds each loss up and down, `prv` keeps its mean. "
        "Google's implementation of buckets is measured at this job, at ε = 3, in the "
        "[benchmarks](benchmarks.md).",
        (
            Panel(
                "δ(ε)",
                EPSILON,
                DELTA,
                (
                    Curve("contour", epsilons, deltas(steps, epsilons)),
                    Curve("fourier", epsilons, deltas(steps, epsilons, "fourier"), dots=True),
                    Curve("buckets", epsilons, *interval(steps, epsilons, "buckets")),
                    Curve("prv", epsilons, *interval(steps, epsilons, "prv")),
                    Curve("tilted-prv", epsilons, *interval(steps, epsilons, "tilted-prv")),
                ),
                log_y=True,
            ),
        ),
        given="q = 0.02, σ = 1, 2¹² steps",
        chosen="the range of ε, and buckets without the virtual errors that their authors count",
    )
