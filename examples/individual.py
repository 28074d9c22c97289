"""Individual privacy of a real training run: DP-SGD on scikit-learn's bundled data, in NumPy.

    python examples/individual.py        # needs the extra 'examples'; writes into out/

Logistic regression on the digits and the breast cancer data and a small network on the digits are
trained with DP-SGD.  Every example's clipped gradient norm is recorded in every step, and its own ε
set beside the worst case.  Then full-batch training goes on past the worst-case budget under the
individual filter, where examples that have spent theirs sit out.
"""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path

import numpy as np

from symdp.individual import GaussianFilter, IndividualFilter, Recorder, from_counts

OUT = Path(__file__).parent.parent / "out"
DELTA = 1e-5
RATE, MULTIPLIER, CLIP = 0.05, 2.0, 1.0
STEPS = 300


def load(name):
    """Return (training, test) features and labels, scaled to unit spread, with a constant."""
    try:
        from sklearn import datasets
    except ImportError:
        raise SystemExit(
            "this example trains on data that come with scikit-learn: pip install 'symdp[examples]'"
        ) from None

    found = datasets.load_digits() if name == "digits" else datasets.load_breast_cancer()
    x = (found.data - found.data.mean(axis=0)) / (found.data.std(axis=0) + 1e-9)
    x = np.hstack([x, np.ones((len(x), 1))]) / math.sqrt(x.shape[1])
    order = np.random.default_rng(0).permutation(len(x))
    cut = int(0.8 * len(x))
    parts = order[:cut], order[cut:]
    return [(x[p], found.target[p]) for p in parts]


def softmax(scores):
    grown = np.exp(scores - scores.max(axis=1, keepdims=True))
    return grown / grown.sum(axis=1, keepdims=True)


class Logistic:
    """Multinomial logistic regression; per-example gradients are outer products."""

    def __init__(self, features, classes, random):
        self.weights = [np.zeros((features, classes))]

    def scores(self, x):
        return x @ self.weights[0]

    def gradients(self, x, y):
        """Return norms of per-example gradients, and a function: weights → their weighted sum."""
        residue = softmax(self.scores(x))
        residue[np.arange(len(y)), y] -= 1.0
        norms = np.linalg.norm(x, axis=1) * np.linalg.norm(residue, axis=1)
        return norms, lambda w: [x.T @ (w[:, None] * residue)]


class Network(Logistic):
    """One hidden layer of 24 units."""

    def __init__(self, features, classes, random):
        self.weights = [
            random.standard_normal((features, 24)) * 1.5,
            random.standard_normal((24, classes)) * 0.1,
        ]

    def scores(self, x):
        return np.tanh(x @ self.weights[0]) @ self.weights[1]

    def gradients(self, x, y):
        hidden = np.tanh(x @ self.weights[0])
        residue = softmax(hidden @ self.weights[1])
        residue[np.arange(len(y)), y] -= 1.0
        back = (residue @ self.weights[1].T) * (1.0 - hidden**2)
        first = np.linalg.norm(x, axis=1) * np.linalg.norm(back, axis=1)
        second = np.linalg.norm(hidden, axis=1) * np.linalg.norm(residue, axis=1)
        return np.hypot(first, second), lambda w: [
            x.T @ (w[:, None] * back),
            hidden.T @ (w[:, None] * residue),
        ]


def accuracy(model, data):
    x, y = data
    return float((model.scores(x).argmax(axis=1) == y).mean())


def move(model, sums, size, rate, random, noise):
    for weight, total in zip(model.weights, sums, strict=True):
        drawn = noise * random.standard_normal(total.shape)
        np.subtract(weight, rate * (total + drawn) / size, out=weight)


def sampled_run(kind, name):
    """Train with Poisson sampling; return the model's accuracy, an accountant, ε's, and labels."""
    random = np.random.default_rng(1)
    train, test = load(name)
    x, y = train
    model = kind(x.shape[1], int(y.max()) + 1, random)
    with tempfile.TemporaryDirectory() as folder:
        run = Recorder(
            f"{folder}/run", len(y), multiplier=MULTIPLIER, clip=CLIP, rate=RATE, grid="norm:64"
        )
        for _ in range(STEPS):
            norms, summed = model.gradients(x, y)
            run.step(norms)  # what every example would contribute, drawn or not
            drawn = random.random(len(y)) < RATE
            scale = drawn * np.minimum(1.0, CLIP / np.maximum(norms, 1e-12))
            move(model, summed(scale), RATE * len(y), 2.0, random, MULTIPLIER * CLIP)
        run.commit()
        records = run.accountant("remove")
    found = records.epsilon(DELTA)
    worst = from_counts([MULTIPLIER], [[STEPS]], RATE, "remove").epsilon(DELTA).epsilon[0]
    return accuracy(model, test), records, found, worst, y


def filtered_run(steps, budget, noise=12.0, last="scale", individual=True):
    """Full-batch training on the digits; with the filter it may go on past the worst case."""
    random = np.random.default_rng(2)
    train, test = load("digits")
    x, y = train
    model = Logistic(x.shape[1], 10, random)
    filter = IndividualFilter(len(y), budget, last=last)
    active = len(y)
    for _ in range(steps):
        norms, summed = model.gradients(x, y)
        clipped = np.minimum(norms, CLIP)
        scale = np.minimum(1.0, CLIP / np.maximum(norms, 1e-12))
        charged = clipped if individual else np.full(len(y), CLIP)
        taken = filter.commit(charged / (noise * CLIP))
        active = int(taken.active.sum())
        if not active:
            break
        # a sum over all examples, divided by a number that no one's presence changes
        move(model, summed(scale * taken.scale), 1000.0, 4.0, random, noise * CLIP)
    return accuracy(model, test), active, filter


def main():
    start = time.perf_counter()
    OUT.mkdir(exist_ok=True)
    shown = []
    for kind, name in ((Logistic, "digits"), (Logistic, "breast cancer"), (Network, "digits")):
        score, _, found, worst, labels = sampled_run(kind, name.split()[0])
        spread = found.quantiles((0.05, 0.5, 0.95, 1.0))
        text = ", ".join(f"{share:.0%} {value:.3f}" for share, value in spread.items())
        print(f"{kind.__name__}, {name}: test accuracy {score:.3f}, worst case ε = {worst:.3f}")
        print(f"  ε of the {len(found)} examples at δ = {DELTA}: {text} ({found.kind[0]})")
        groups = found.by_group(labels)
        rows = sorted(groups.items(), key=lambda row: row[1]["median"])
        for label, row in (rows[0], rows[-1]):
            print(f"  class {label}: median ε {row['median']:.3f}, largest {row['max']:.3f}")
        shown.append((f"{kind.__name__}, {name}", found, worst, labels))
    budget = GaussianFilter(epsilon=1.5, delta=DELTA).budget
    noise = 12.0
    allowed = int((budget * noise) ** 2)
    print(f"filter: B = {budget:.4f} for ε = 1.5; the worst case allows {allowed} full-batch steps")
    for steps, individual in ((allowed, False), (2 * allowed, True), (6 * allowed, True)):
        score, active, _ = filtered_run(steps, budget, noise, individual=individual)
        name = "individual filter" if individual else "worst case"
        print(f"  {name}: {steps} steps, test accuracy {score:.3f}, {active} still active")
    draw(shown)
    print(f"drawn: {OUT / 'individual.svg'}; {time.perf_counter() - start:.0f} s")


def draw(shown):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.2), layout="constrained")
    for axes, (title, found, worst, labels) in zip(figure.subplots(1, 3), shown, strict=True):
        for label in np.unique(labels):
            values = np.sort(found.epsilon[labels == label])
            axes.step(values, np.arange(1, values.size + 1) / values.size, label=str(label))
        axes.axvline(worst, color="black", linestyle="--")
        axes.set(title=title, xlabel="ε (worst case dashed)", ylabel="share of the class")
    figure.savefig(OUT / "individual.svg")


if __name__ == "__main__":
    main()
