"""The saddle-point accountant's figures: curves, relative errors, payoffs and bounds."""

from __future__ import annotations

import math

from drawing import Curve, Figure, Panel
from jobs import DELTA, EPSILON, counts, deltas, epsilon, grid, interval, job

SIGMA, RATE, STEPS = "2", "0.01", 2000
TARGET = 1e-10
METHODS = ("moments", "gaussian", "prv", "msd:0", "msd:1", "clt")
EPOCHS = "epochs (steps × q)"
OWN = f"q = {RATE}, σ = {SIGMA}, {STEPS} steps, δ = {TARGET:g}, and the ranges of ε and epochs"


def figures() -> list[Figure]:
    curve, errors = _curves()
    return [curve, _payoffs(), errors, _bounds()]


def _relative(values: list[float], truth: list[float]) -> list[float]:
    return [abs(v / t - 1.0) for v, t in zip(values, truth, strict=True)]


def _curves() -> tuple[Figure, Figure]:
    """δ(ε) and ε over epochs (Figure 1), and their relative errors (Figure 3)."""
    steps = job(SIGMA, RATE, STEPS)
    epsilons = grid(0.05, 3.0, 60)
    exact = deltas(steps, epsilons)
    values = {m: deltas(steps, epsilons, m) for m in METHODS}
    numbers = counts(20, STEPS, 20)
    jobs = [job(SIGMA, RATE, n) for n in numbers]
    epochs = [n * float(RATE) for n in numbers]
    exact_epsilon = [epsilon(j, TARGET) for j in jobs]
    epsilons_by = {m: [epsilon(j, TARGET, m) for j in jobs] for m in METHODS if m != "prv"}
    curves = [Curve("contour", epsilons, exact)]
    curves += [Curve(m, epsilons, values[m]) for m in ("moments", "gaussian", "prv")]
    curves += [Curve(m, epsilons, values[m], dots=True) for m in ("msd:0", "msd:1", "clt")]
    over_epochs = [Curve("contour", epochs, exact_epsilon)]
    over_epochs += [Curve(m, epochs, epsilons_by[m]) for m in ("moments", "gaussian")]
    over_epochs += [Curve(m, epochs, epsilons_by[m], dots=True) for m in ("msd:0", "msd:1", "clt")]
    first = Figure(
        "spa-1",
        "SPA Figure 1: the accountants side by side",
        f"q = {RATE}, σ = {SIGMA}; δ(ε) of {STEPS} steps, and ε at δ = {TARGET:g} over epochs. "
        "The moments bound lies above, the Gaussian limit below the exact curve by decades, and "
        "the convolution of discretised losses ends at its floating-point floor.",
        (
            Panel("δ(ε)", EPSILON, DELTA, curves, log_y=True, y_range=(1e-42, 1)),
            Panel(f"ε at δ = {TARGET:g}", EPOCHS, EPSILON, over_epochs),
        ),
        given="the sampled Gaussian mechanism, and a curve that is followed past δ = 1e-10",
        chosen=OWN,
    )
    wrong = {m: _relative(values[m], exact) for m in METHODS}
    wrong_epsilon = {m: _relative(epsilons_by[m], exact_epsilon) for m in epsilons_by}
    rows = []
    for wanted in (1.0, 3.0, 16.0):
        place = min(range(len(epochs)), key=lambda k: abs(math.log(epochs[k] / wanted)))
        rows.append(
            (f"{epochs[place]:.2g}", *(f"{wrong_epsilon[m][place]:.1e}" for m in wrong_epsilon))
        )
    second = Figure(
        "spa-3",
        "SPA Figure 3: relative errors",
        "The same curves as distances from the exact value. Dips are changes of sign. Where one "
        "step's large loss carries the tail, at large ε and few epochs, no order of the series "
        "helps; `symdp` says so with each such answer. Errors of ε at three places:",
        (
            Panel(
                "error of δ(ε)", EPSILON, "|δ̃/δ − 1|",
                [Curve(m, epsilons, wrong[m]) for m in METHODS],
                log_y=True, y_range=(1e-7, 1e4),
            ),
            Panel(
                f"error of ε at δ = {TARGET:g}", EPOCHS, "|ε̃/ε − 1|",
                [Curve(m, epochs, wrong_epsilon[m]) for m in wrong_epsilon],
                log_x=True, log_y=True,
            ),
        ),
        "the curves of its Figure 1, and errors of ε after 1, 3 and 16 epochs",
        OWN,
        rows,
        ("epochs", *(f"`{m}`" for m in wrong_epsilon)),
    )  # fmt: skip
    return first, second


def _payoffs() -> Figure:
    tilt = 1.0
    x = grid(-1.0, 5.0, 121)
    payoff = [max(-math.expm1(-v), 0.0) * math.exp(-tilt * v) for v in x]
    top = tilt**tilt / (1.0 + tilt) ** (1.0 + tilt)
    return Figure(
        "spa-2",
        "SPA Figure 2: what the moments bounds replace the payoff by",
        f"(1 − e^−x)⁺ e^−tx at t = {tilt:g}, under the constant 1 of the plain bound [SPA (40)] "
        f"and its largest value t^t/(1+t)^(1+t) = {top:g} of the tightened one [SPA (43)].",
        (
            Panel(
                "payoff", "x", "",
                (
                    Curve("payoff", x, payoff),
                    Curve("plain bound", x, [1.0] * len(x)),
                    Curve("tightened bound", x, [top] * len(x)),
                ),
            ),
        ),
        given="the two bounds",
        chosen="t = 1",
    )  # fmt: skip


def _bounds() -> Figure:
    panels, rows = [], []
    for sigma, rate, count, end in (("1.5", "0.01", 10_000, 4.0), ("2", "0.01", 100_000, 12.0)):
        steps = job(sigma, rate, count)
        epsilons = grid(0.1, end, 24)
        exact = deltas(steps, epsilons)
        low, high = interval(steps, epsilons, "spa-bounds")
        moments = deltas(steps, epsilons, "moments")
        panels.append(
            Panel(
                f"q = {rate}, σ = {sigma}, {count:,} steps", EPSILON, DELTA,
                (
                    Curve("contour", epsilons, exact),
                    Curve("spa-bounds", epsilons, low, high),
                    Curve("moments", epsilons, moments),
                    Curve("clt", epsilons, deltas(steps, epsilons, "clt"), dots=True),
                ),
                log_y=True,
            )
        )  # fmt: skip
        inside = all(lo <= d <= hi for lo, d, hi in zip(low, exact, high, strict=True))
        assert inside, "the interval lost the exact value"
        middle = len(epsilons) // 2
        rows.append(
            (
                f"{count:,}", f"{epsilons[middle]:.3g}", f"{exact[middle]:.6e}",
                f"{low[middle]:.3e}", f"{high[middle]:.3e}", f"{moments[middle]:.3e}",
            )
        )  # fmt: skip
    return Figure(
        "spa-4",
        "SPA Figure 4: proved bounds around the tilted central limit",
        "The interval of the tilted Berry–Esseen theorem, its tilt chosen for the least error, "
        "intersected with the moments bound. It holds the exact value at every ε drawn.",
        panels,
        "the sampled Gaussian mechanism",
        "q, σ, the numbers of steps and the ranges of ε",
        rows,
        ("steps", "ε", "δ", "lower", "upper", "moments"),
    )
