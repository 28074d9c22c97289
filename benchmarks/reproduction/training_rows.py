"""Figures of individual privacy in training, on the digits that come with scikit-learn [IND]."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from drawing import Curve, Figure, Panel
from sklearn.metrics import roc_auc_score

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))
from individual import CLIP, MULTIPLIER, RATE, STEPS, Logistic, load, sampled_run, softmax

from symdp.individual import GaussianFilter, IndividualFilter, from_counts
from symdp.individual.gaussian import epsilon_of

DELTA, START, EPOCHS, DIVISOR = 1e-5, 50, 100, 1000.0
CLIPS = tuple(2.0**k for k in range(-8, 0))
SPEEDS = (1.0, 4.0, 16.0, 64.0)
TIMES = (0.5, 1.0, 2.0, 5.0)  # of the best clip
EPOCH = "epoch"
OURS = (
    "the data (1797 digits of 8 × 8 points in place of MIMIC-III, whose licence is personal), "
    "logistic regression by plain gradient descent, one random seed, and a clip and a rate chosen "
    "from a grid by test AUC at epoch 50"
)


@dataclass(frozen=True)
class Run:
    """One training: what is drawn of it, an entry for each epoch."""

    auc: list[float]
    active: list[int]
    train: list[dict[int, float]]  # mean loss of every digit
    test: list[dict[int, float]]
    spent: list[np.ndarray]  # Σμ² of every record


@cache
def data():
    return load("digits")


@cache
def trained(epsilon: float, clip: float, speed: float, epochs: int = EPOCHS) -> Run:
    """Full-batch DP-GD whose worst case spends ε in 50 epochs, under the individual filter.

    A record's contribution is charged by its own clipped norm [IND Alg. 1], and one that cannot
    pay sits the epoch out; before epoch 51 nobody has to. The sum of gradients is divided by a
    number that no record changes.
    """
    (x, y), (held_x, held_y) = data()
    random = np.random.default_rng(3)
    budget = GaussianFilter(epsilon=epsilon, delta=DELTA).budget
    multiplier = math.sqrt(START) / budget * (1.0 + 1e-6)
    model = Logistic(x.shape[1], 10, random)
    filter = IndividualFilter(len(y), budget, last="drop")
    run = Run([], [], [], [], [])
    for _ in range(epochs):
        norms, summed = model.gradients(x, y)
        taken = filter.commit(np.minimum(norms, clip) / (multiplier * clip))
        scale = taken.scale * np.minimum(1.0, clip / np.maximum(norms, 1e-12))
        (total,) = summed(scale)
        noise = multiplier * clip * random.standard_normal(total.shape)
        model.weights[0] -= speed * (total + noise) / (clip * DIVISOR)
        known = softmax(model.scores(held_x))
        run.auc.append(float(roc_auc_score(held_y, known, multi_class="ovr")))
        run.active.append(int(taken.active.sum()))
        run.train.append(by_digit(softmax(model.scores(x)), y))
        run.test.append(by_digit(known, held_y))
        run.spent.append(filter.spent.copy())
    return run


def by_digit(known: np.ndarray, labels: np.ndarray) -> dict[int, float]:
    losses = -np.log(np.maximum(known[np.arange(len(labels)), labels], 1e-300))
    return {digit: float(losses[labels == digit].mean()) for digit in range(10)}


@cache
def best(epsilon: float) -> tuple[float, float]:
    """The clip and the rate with the largest test AUC when filtering starts."""
    return max(
        ((clip, speed) for clip in CLIPS for speed in SPEEDS),
        key=lambda pair: trained(epsilon, *pair, START).auc[-1],
    )


@cache
def at_clip(epsilon: float, clip: float) -> Run:
    """The training at a clip, its rate tuned."""
    speed = max(SPEEDS, key=lambda s: trained(epsilon, clip, s, START).auc[-1])
    return trained(epsilon, clip, speed)


def individual(spent: np.ndarray) -> np.ndarray:
    """Every record's ε, that of the Gaussian curve with μ² = Σμ²."""
    return epsilon_of(np.sqrt(np.maximum(spent, 1e-18)), math.log(DELTA))


def histogram(label: str, values: np.ndarray, edges: np.ndarray) -> Curve:
    heights, _ = np.histogram(values, edges)
    return Curve(label, list(np.repeat(edges, 2))[1:-1], [float(h) for h in np.repeat(heights, 2)])


def figures() -> list[Figure]:
    return [_sampled(), _groups(), _clips(), _histograms(), _budgets()]


def _sampled() -> Figure:
    """Figure 1, right: two accountants of the records of one sampled training."""
    _, records, found, worst, _ = sampled_run(Logistic, "digits")
    exact = found.epsilon
    bound = records.epsilon(DELTA, method="renyi").epsilon
    worst_bound = from_counts([MULTIPLIER], [[STEPS]], RATE, "remove").epsilon(
        DELTA, method="renyi"
    )
    assert (bound >= exact).all()
    ratio = bound / exact
    assert ratio[exact.argmin()] > ratio[exact.argmax()]
    edges = np.linspace(0.0, 1.02 * float(worst_bound.epsilon[0]), 41)
    return Figure(
        "ind-1b",
        "IND Figure 1, right: individual ε by Rényi divergences and by loss distributions",
        f"The {len(exact)} records of one training of the digits after {STEPS} steps. Rényi's ε is "
        f"{ratio.min():.2f} to {ratio.max():.2f} times the exact one, the more the smaller ε is; "
        f"the record that is always clipped has {worst:.3f} and {worst_bound.epsilon[0]:.3f}.",
        (
            Panel(
                "records", f"ε at δ = {DELTA:g}", "number of records",
                (histogram("exact", exact, edges), histogram("renyi", bound, edges)),
            ),
        ),
        given="σ = 2, 1000 records of MNIST, 50 epochs, δ = 1e-6",
        chosen=f"the data, logistic regression, rate {RATE}, clip {CLIP:g}, {STEPS} steps and δ",
    )  # fmt: skip


def _groups() -> Figure:
    clip, speed = best(2.75)
    run = at_clip(2.75, clip)
    # Who is clipped in every epoch has spent the budget, and nobody more.
    assert abs(float(individual(run.spent[START - 1]).max()) - 2.75) < 1e-4
    _, labels = data()[0]
    epochs = list(range(1, EPOCHS + 1))
    mean = {
        d: [float(individual(s[labels == d]).mean()) for s in run.spent[::5]] for d in range(10)
    }
    order = sorted(range(10), key=lambda d: mean[d][START // 5 - 1])
    shown = (order[0], order[5], order[-1])
    rows = [
        (
            str(d), f"{mean[d][START // 5 - 1]:.3f}",
            *(f"{loss[epoch - 1][d]:.3f}" for loss in (run.train, run.test)
              for epoch in (START, EPOCHS)),
        )
        for d in shown
    ]  # fmt: skip
    spread = [run.test[e - 1][shown[-1]] - run.test[e - 1][shown[0]] for e in (START, EPOCHS)]
    return Figure(
        "ind-2",
        "IND Figure 2: losses and privacy of groups before and after filtering",
        f"The digits with the smallest, a middle and the largest mean ε; ε = 2.75 at δ = 1e-5, "
        f"clip {clip:g}, rate {speed:g}. The gap of the test loss between the last and the first "
        f"goes from {spread[0]:.3f} at epoch {START} to {spread[1]:.3f} at epoch {EPOCHS}.",
        (
            *(
                Panel(
                    name, EPOCH, "mean loss",
                    tuple(Curve(f"digit {d}", epochs, [e[d] for e in losses]) for d in shown),
                    mark=START,
                )
                for name, losses in (("training loss", run.train), ("test loss", run.test))
            ),
            Panel(
                "mean individual ε", EPOCH, EPSILON_AT,
                tuple(Curve(f"digit {d}", epochs[::5], mean[d]) for d in shown), mark=START,
            ),
        ),
        given="ε = 2.75, δ = 1e-5, filtering from epoch 50 of 100; three diagnoses as groups",
        chosen=OURS,
        rows=rows,
        header=("digit", f"mean ε, {START}", f"training, {START}", f"{EPOCHS}",
                f"test, {START}", f"{EPOCHS}"),
    )  # fmt: skip


EPSILON_AT = f"ε at δ = {DELTA:g}"


def _over_epochs(epsilon: float, clips: tuple[float, ...]) -> tuple[Panel, Panel]:
    runs = {f"clip {c:g}": at_clip(epsilon, c) for c in clips}
    epochs = list(range(1, EPOCHS + 1))
    return (
        Panel(
            f"test AUC, ε = {epsilon:g}", EPOCH, "AUC",
            tuple(Curve(name, epochs, run.auc) for name, run in runs.items()), mark=START,
            y_range=(min(min(run.auc[19:]) for run in runs.values()), 1.0),
        ),
        Panel(
            f"active records, ε = {epsilon:g}", EPOCH, "records",
            tuple(Curve(name, epochs, run.active) for name, run in runs.items()), mark=START,
        ),
    )  # fmt: skip


def _row(epsilon: float, clip: float) -> tuple[str, ...]:
    run = at_clip(epsilon, clip)
    places = (START - 1, START, EPOCHS - 1)
    return (
        f"{epsilon:g}", f"{clip:g}", *(f"{run.auc[k]:.4f}" for k in (START - 1, EPOCHS - 1)),
        f"{max(run.auc[START:]):.4f}", *(str(run.active[k]) for k in places),
    )  # fmt: skip


HEADER = ("ε", "clip", "AUC at 50", "AUC at 100", "best after 50", "active at 50", "51", "100")


def _clips() -> Figure:
    clips = tuple(t * best(2.75)[0] for t in TIMES)
    left = ", ".join(str(at_clip(2.75, c).active[START]) for c in clips)
    return Figure(
        "ind-6",
        "IND Figure 6: filtered training at several clips",
        f"Clips of ½, 1, 2 and 5 times the best one, {clips[1]:g}, the rate tuned at each. Of "
        f"{len(data()[0][1])} records {left} are active in epoch {START + 1}. The digits are "
        "nearly separable, so that the clip hardly matters; records that sit out are those with "
        "large gradients, and the AUC falls without them.",
        _over_epochs(2.75, clips),
        given="ε = 2.75, δ = 1e-5, clips from one half to five times the best",
        chosen=OURS,
        rows=[_row(2.75, c) for c in clips],
        header=HEADER,
    )


def _histograms() -> Figure:
    clip = best(2.75)[0]
    panels, parts = [], []
    for times in (1.0, 5.0):
        found = individual(at_clip(2.75, times * clip).spent[START - 1])
        edges = np.linspace(0.0, 2.8, 41)
        panels.append(
            Panel(
                f"clip {times * clip:g}", EPSILON_AT, "number of records",
                (histogram("after 50 epochs", found, edges),), mark=2.75,
            )
        )  # fmt: skip
        parts.append(
            f"{(found > 2.6).mean():.0%} are above 2.6, the median is {np.median(found):.2f}"
        )
    return Figure(
        "ind-7",
        "IND Figures 7 and 8: individual ε after 50 epochs",
        f"At the best clip {parts[0]}; at five times that, {parts[1]}. Digits that are learnt have "
        "small gradients, which MIMIC-III's patients at the paper's clip have not.",
        panels,
        given="50 epochs without filtering, ε = 2.75 at δ = 1e-5; the best clip, and five times it",
        chosen=OURS,
    )


def _budgets() -> Figure:
    panels = [p for e in (0.5, 10.0) for p in _over_epochs(e, (best(e)[0],))]
    rows = [_row(e, best(e)[0]) for e in (0.5, 10.0)]
    return Figure(
        "ind-9",
        "IND Figures 9 and 10: filtered training at a small and at a large budget",
        "As before, each at its best clip and rate: the small budget is where noise decides.",
        panels,
        given="ε = 0.5 and ε = 10, δ = 1e-5",
        chosen=OURS,
        rows=rows,
        header=HEADER,
    )
