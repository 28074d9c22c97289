"""What is accounted for: the published settings, and the regimes where programs break."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import symdp

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "logistic.toml"


@dataclass(frozen=True)
class Job:
    """Noise of a scale, sampled at a rate, composed, and the ε at which δ is asked for.

    Attributes
    ----------
    name
        Short, for file names.
    heading, text
        What it is, and why it is here.
    noise
        "gaussian", "laplace", or "logistic", which is the density written in examples/.
    scale, rate
        Decimals or ratios, taken exactly; rate "1" samples nothing.
    count, epsilon
        The number of steps, and ε.
    scheme
        "poisson"; "substitution": the same batches, one record's value changed; or "allocation":
        one step of 1/rate, drawn at random.
    delta_error
        What a program that takes an absolute accuracy of δ is asked for.
    """

    name: str
    heading: str
    text: str
    noise: str
    scale: str
    rate: str
    count: int
    epsilon: float
    scheme: str = "poisson"
    delta_error: float = 1e-10

    @property
    def sigma(self) -> float:
        """The noise scale as a double."""
        return float(Fraction(self.scale))

    @property
    def q(self) -> float:
        """The sampling rate as a double."""
        return float(Fraction(self.rate))

    @property
    def setting(self) -> str:
        """The parameters in one line."""
        letter = {"gaussian": "σ", "laplace": "b", "logistic": "s"}[self.noise]
        sampled = "" if self.rate == "1" else f"q = {self.rate}, "
        relation = "" if self.scheme == "poisson" else f"{self.scheme}, "
        name = self.noise if self.noise == "logistic" else self.noise.capitalize()
        return (
            f"{relation}{name} noise, {sampled}{letter} = {self.scale}, "
            f"n = {self.count:,}, ε = {self.epsilon:g}"
        )

    def moved(self, places: int) -> Job:
        """The same job with a scale that nobody has asked for before."""
        scale = Fraction(self.scale) * (1 + Fraction(places, 10_000))
        return replace(self, scale=str(scale))

    def mechanism(self) -> symdp.Mechanism:
        """The mechanism as symdp has it."""
        if self.noise == "gaussian":
            noise = symdp.mechanisms.gaussian(sigma=self.scale)
        elif self.noise == "laplace":
            noise = symdp.mechanisms.laplace(b=self.scale)
        else:
            noise = symdp.load(EXAMPLE)(s=self.scale)
        if self.rate == "1":
            return noise
        if self.scheme == "allocation":
            return noise.subsample("random_allocation", steps=round(1.0 / self.q))
        noise = noise.under("substitution") if self.scheme == "substitution" else noise
        return noise.subsample("poisson", self.rate)


JOBS = (
    Job(
        "fa", "The tables of the Fourier accountant",
        "The setting of Tables 1 and 2 of Koskela et al.",
        "gaussian", "1.5", "0.01", 10_000, 1.0,
    ),
    Job(
        "tutorial", "The tutorial of TensorFlow Privacy",
        "60 000 examples, batches of 256, 60 epochs; δ is near 1e-5.",
        "gaussian", "1.12", "256/60000", 14_063, 2.31,
    ),
    Job(
        "fa-code", "The tests of the Fourier accountant's code",
        "The first of the values that its authors test against.",
        "gaussian", "2", "0.01", 10_000, 1.0,
    ),
    Job(
        "fa-4", "The setting of Koskela's Figure 4",
        "The job at which Koskela et al. compare with Privacy Buckets, at an ε of our own.",
        "gaussian", "1", "0.02", 4096, 3.0,
    ),
    Job(
        "spa", "A saddle-point accountant's job",
        "A curve followed past δ = 1e-10, as in Figure 1 of Alghamdi et al.; the parameters are "
        "our own.",
        "gaussian", "2", "0.01", 2000, 1.5, delta_error=1e-13,
    ),
    Job(
        "ea", "The federated task of the Edgeworth accountant",
        "Ten epochs at rate 0.05, Figure 2 of Wang et al.; δ is near 1e-5.",
        "gaussian", "1", "0.05", 200, 4.766,
    ),
    Job(
        "ea-large", "A large δ of the Edgeworth accountant",
        "σ = 0.8 and δ near 0.015, Figure 2 of Wang et al., here at 2000 steps.",
        "gaussian", "0.8", "0.01", 2000, 1.828,
    ),
    Job(
        "floor-30", "δ below 1e-30",
        "A transform in doubles rounds at about 1e-17 of the whole mass: what is smaller cannot be "
        "read off it.",
        "gaussian", "2", "0.01", 2000, 3.0, delta_error=1e-16,
    ),
    Job(
        "floor-100", "δ below 1e-100",
        "The same curve further out; one large loss carries it.",
        "gaussian", "2", "0.01", 2000, 8.0, delta_error=1e-16,
    ),
    Job(
        "billion", "A billion steps",
        "Discretised losses need a mesh that shrinks with the square root of the steps.",
        "gaussian", "1", "1e-5", 10**9, 1.5,
    ),
    Job(
        "jump", "A rare step with one large loss",
        "A record is seldom sampled, and one step in which it is carries the tail: no limit "
        "theorem holds there.",
        "gaussian", "1", "0.001", 10_000, 1.2,
    ),
    Job(
        "laplace", "Sampled Laplace noise",
        "The loss is bounded and has atoms at both ends.",
        "laplace", "1", "0.01", 1000, 1.0,
    ),
    Job(
        "allocation", "One step of a hundred, drawn at random",
        "Random allocation: each record takes part in one step of an epoch of 100.",
        "gaussian", "1", "1/100", 1, 0.858, "allocation",
    ),
    Job(
        "written", "A density that no program has built in",
        "Logistic noise, read by symdp from the file examples/logistic.toml.",
        "logistic", "4", "1", 50, 2.5,
    ),
)  # fmt: skip
