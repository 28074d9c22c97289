"""Figures of the numerical composition of privacy loss random variables [PRV]."""

from __future__ import annotations

import math
from pathlib import Path

from drawing import Curve, Figure, Panel
from jobs import DELTA, EPSILON, STEPS, counts, deltas, grid, job, sampled

import symdp
from symdp.methods import accountant

RATE, SIGMA, COUNT = "0.01", "0.8", 1000
POINTS = [1 << k for k in range(14, 21)]
CHOSEN = "q = 0.01, σ = 0.8, the numbers of steps, of points and the ranges of ε"
OTHER = (
    "The program that the paper compares with rounds losses to one side; `buckets` is the method "
    "of its kind here."
)
MOST = 1 << 22


def band(steps: symdp.Composition, epsilon: float, method: str, points: int) -> tuple[float, float]:
    """Both bounds on δ in the remove direction, on so many points."""
    answer = accountant(method, points=points).log_delta(steps.law("remove"), epsilon)
    assert answer.log_lower is not None
    assert answer.log_upper is not None
    return math.exp(answer.log_lower), math.exp(answer.log_upper)


def curve(label: str, x: list[float], bounds: list[tuple[float, float]]) -> Curve:
    low, high = (list(ends) for ends in zip(*bounds, strict=True))
    return Curve(label, x, low, high)


def figures() -> list[Figure]:
    return [_side_by_side(), _points(), _steps(), _floor(), _needed(), _without_moments()]


def _side_by_side() -> Figure:
    steps, epsilons = job(SIGMA, RATE, COUNT), grid(0.25, 4.0, 16)
    exact = Curve("contour", epsilons, deltas(steps, epsilons))
    bands = [
        curve(name, epsilons, [band(steps, e, name, 1 << 17) for e in epsilons])
        for name in ("prv", "buckets")
    ]
    others = [
        Curve(name, epsilons, deltas(steps, epsilons, name)) for name in ("renyi", "gaussian")
    ]
    return Figure(
        "prv-1",
        "PRV Figure 1: two roundings on one mesh, and two other accountants",
        f"{COUNT} steps, 2¹⁷ points. {OTHER} Rényi's bound lies above the exact curve, the "
        "Gaussian limit below it.",
        (
            Panel("the same points", EPSILON, DELTA, (exact, *bands), log_y=True),
            Panel("other accountants", EPSILON, DELTA, (exact, bands[0], *others), log_y=True),
        ),
        given="DP-SGD, a mesh shared by two programs",
        chosen=CHOSEN,
    )


def _points() -> Figure:
    steps = job(SIGMA, RATE, COUNT)
    exact = deltas(steps, [1.5])[0]
    widths, rows = {}, []
    for name in ("prv", "buckets"):
        ends = [band(steps, 1.5, name, points) for points in POINTS]
        assert all(low <= exact <= high for low, high in ends)
        widths[name] = [(high - low) / exact for low, high in ends]
    rows = [
        (f"{n:,}", f"{a:.1e}", f"{b:.1e}")
        for n, a, b in zip(POINTS, widths["prv"], widths["buckets"], strict=True)
    ]
    return Figure(
        "prv-3",
        "PRV Figure 3: the interval's width over the number of points",
        f"{COUNT} steps, ε = 1.5, where δ = {exact:.4e}: width over δ. Both fall like 1/N; where "
        f"the means of losses are kept it is {widths['buckets'][-1] / widths['prv'][-1]:.1f} times "
        "narrower, a factor that grows with the root of the number of steps.",
        (
            Panel(
                "width over δ", "number of points", "width",
                tuple(Curve(name, POINTS, width) for name, width in widths.items()),
                log_x=True, log_y=True,
            ),
        ),
        given="the number of points on one axis",
        chosen=CHOSEN,
        rows=rows,
        header=("points", "`prv`", "`buckets`"),
    )  # fmt: skip


def _steps() -> Figure:
    many = counts(10, 10_000, 10)
    jobs = [job(SIGMA, RATE, n) for n in many]
    return Figure(
        "prv-4",
        "PRV Figure 4: the interval over the number of steps",
        f"ε = 2 and 2¹⁷ points. {OTHER} Its bounds worsen with the number of steps.",
        (
            Panel(
                "δ(2)", STEPS, DELTA,
                (
                    Curve("contour", many, [deltas(j, [2.0])[0] for j in jobs]),
                    *(
                        curve(name, many, [band(j, 2.0, name, 1 << 17) for j in jobs])
                        for name in ("prv", "buckets")
                    ),
                ),
                log_x=True, log_y=True,
            ),
        ),
        given="the number of steps on one axis",
        chosen=CHOSEN,
    )  # fmt: skip


def _floor() -> Figure:
    steps = symdp.compose(sampled("20", "1"), 400)
    epsilons = grid(3.0, 10.0, 15)
    exact = deltas(steps, epsilons)
    plain = [band(steps, e, "prv", 1 << 18) for e in epsilons]
    tilted = [band(steps, e, "tilted-prv", 1 << 18) for e in epsilons]
    lost = next(e for e, (low, _) in zip(epsilons, plain, strict=True) if low <= 0.0)
    reached = exact[epsilons.index(lost)]
    return Figure(
        "prv-6",
        "PRV Figure 6: the floor of floating point",
        "400 Gaussian steps, σ = 20, whose δ is known in closed form. A transform in doubles "
        "rounds by about 1e-16 of the whole mass for each step: the interval of `prv` counts that "
        f"in, and says no more from ε = {lost:g} on, where δ = {reached:.0e}. Tilted, every error "
        "is relative to δ.",
        (
            Panel(
                "δ(ε)", EPSILON, DELTA,
                (
                    Curve("contour", epsilons, exact),
                    curve("prv", epsilons, plain),
                    curve("tilted-prv", epsilons, tilted),
                ),
                log_y=True, y_range=(1e-26, 1.0),
            ),
        ),
        given="the Gaussian mechanism, small values of δ",
        chosen="σ = 20, 400 steps and the range of ε",
    )  # fmt: skip


def _needed() -> Figure:
    many = counts(10, 3000, 6)
    found: dict[str, list[float]] = {"prv": [], "buckets": []}
    for n in many:
        steps = job(SIGMA, RATE, n)
        law = steps.law("remove")
        at = law.mean + math.sqrt(float(law.cumulants(0.0, 2)[1]))
        exact = math.exp(accountant("contour").log_delta(law, at).log_delta)
        for name, needed in found.items():
            points = 1 << 12
            while points < MOST:
                low, high = band(steps, at, name, points)
                if high - low <= 0.1 * exact:
                    break
                points *= 2
            needed.append(points if points < MOST else math.nan)
    return Figure(
        "prv-9",
        "PRV Figure 9: what an interval of one tenth of δ costs",
        "The least power of two of points with which the interval is no wider than a tenth of δ, "
        "one deviation above the mean. Run times are proportional to it.",
        (
            Panel(
                "points needed", STEPS, "number of points",
                tuple(Curve(name, many, needed) for name, needed in found.items()),
                log_x=True, log_y=True,
            ),
        ),
        given="run times at an accuracy that both programs reach",
        chosen="points in place of seconds, which depend on the machine; q, σ, ε, and the accuracy",
        rows=[
            (f"{n:,}", *(f"{x:,.0f}" if math.isfinite(x) else "over 2²²" for x in pair))
            for n, *pair in zip(many, found["prv"], found["buckets"], strict=True)
        ],
        header=("steps", "`prv`", "`buckets`"),
    )  # fmt: skip


def _without_moments() -> Figure:
    projected = symdp.load(Path(__file__).resolve().parents[2] / "examples" / "dp_sgd_jl.toml")
    asked = (("1", "1", 1, 1.0), ("1", "1", 5, 4.0), ("2", "1", 50, 3.0), ("1", "0.01", 1000, 1.0))
    rows = []
    for sigma, rate, count, e in asked:
        step = projected(sigma=sigma)
        steps = symdp.compose(step if rate == "1" else step.subsample("poisson", rate), count)
        found = steps.delta(e, method="prv", direction="remove")
        rows.append(
            (
                sigma, rate, f"{count:,}", f"{e:g}", f"{found.lower:.5e}", f"{found.upper:.5e}",
                f"{steps.delta(e, method='renyi', direction='remove').delta:g}",
            )
        )  # fmt: skip
    steps, epsilons = symdp.compose(projected(sigma="2"), 50), grid(0.5, 20.0, 14)
    plain = Curve("contour", epsilons, deltas(steps, epsilons))
    bands = curve("prv", epsilons, [band(steps, e, "prv", 1 << 18) for e in epsilons])
    assert all(a <= d <= b for a, d, b in zip(bands.y, plain.y, bands.high or (), strict=True))
    clipped = job("2", "1", 50)
    return Figure(
        "prv-jl",
        "PRV, section 1: DP-SGD-JL, a loss without moments",
        "`examples/dp_sgd_jl.toml`: norms known from four random projections. E e^{λℓ} is infinite "
        "for every λ > 0, so that moments and Rényi divergences say δ ≤ 1; the interval of `prv` "
        "cuts each step by its own distribution. Drawn: 50 steps at σ = 2, beside norms that are "
        "known.",
        (
            Panel(
                "δ(ε)", EPSILON, DELTA,
                (plain, bands, Curve("norms known", epsilons, deltas(clipped, epsilons))),
                log_y=True, y_range=(1e-5, 1.0),
            ),
        ),
        given="that it has no moments, and that numerical composition accounts for it",
        chosen="four projections, σ, q, the numbers of steps and the range of ε",
        rows=rows,
        header=("σ", "q", "steps", "ε", "`prv`, lower", "upper", "`renyi`"),
    )  # fmt: skip
