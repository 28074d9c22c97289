"""A training run in the words of whoever trains: examples, batch, epochs, noise multiplier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp import mechanisms
from symdp.arguments import checked_count, real, spelled
from symdp.errors import InputError, suggestion
from symdp.model.average import SUM
from symdp.model.sampling import Number, exact
from symdp.model.schemes import SCHEMES
from symdp.questions.composition import Composition, compose

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.questions.calibrate import Calibration

DEFAULT_SAMPLING = "poisson"


@dataclass(frozen=True)
class TrainingRun:
    """What is fixed about a training run before its noise multiplier is known."""

    # examples, batch: how many examples there are, and how many a batch holds, in expectation
    # where batches are drawn example by example
    examples: int
    batch: int
    steps: int  # the number of steps
    sampling: str  # how batches are drawn, one of `samplings`
    largest_batch: int | None  # the most examples that a truncated batch keeps
    # noise of sensitivity 1 with one free parameter, the multiplier: noise over clip norm
    noise: Mechanism
    relation: str | None = None  # the neighbouring relation; that of the sampling if None
    # "sum", also divided by a constant, or "average": divided by how many examples were drawn
    released: str = SUM

    @property
    def rate(self) -> sp.Rational:
        """The share of the examples in a batch."""
        return sp.Rational(self.batch, self.examples)

    def is_loose(self, delta: float) -> bool:
        """Return whether δ allows that a mechanism publishes one example, each with chance 1/N."""
        return delta * self.examples >= 1.0

    @property
    def multiplier(self) -> str:
        """The name of the noise's free parameter."""
        (name,) = self.noise.parameters
        return str(name)

    @property
    def n(self) -> int:
        """How often `step` is taken: every step, or every epoch where an epoch is drawn at once."""
        if self.sampling not in _BY_EPOCH:
            return self.steps
        # A run of so many epochs has this many steps, its last batch among them.
        epochs = self.steps * self.batch // self.examples
        if epochs < 1 or self.steps != -(-epochs * self.examples // self.batch):
            raise InputError(
                f"{self.sampling} draws whole epochs; {self.steps} steps of {self.batch} out of "
                f"{self.examples} examples are none"
            )
        return epochs

    def step(self) -> Mechanism:
        """Return what is repeated, its multiplier free."""
        # Also where a batch holds as many as there are: draws with replacement still repeat some,
        # truncated batches still leave some out, and a batch of fixed size admits one relation.
        if self.sampling == _TRUNCATED and self.largest_batch is None:
            raise InputError(
                "truncated batches need the most examples that one keeps: largest_batch"
            )
        drawn = _DRAWS[self.sampling](self)
        if self.released != SUM:
            drawn |= {"released": self.released, "records": self.examples}
        step = self.noise.subsample(self.sampling, **drawn)
        if self.relation is None:
            return step
        return step.under(self.relation)

    def composition(self, multiplier: Number) -> Composition:
        """Return all steps at a noise multiplier."""
        return compose(self.step()(**{self.multiplier: multiplier}), self.n)

    def calibrated(self, epsilon: float, delta: float) -> Calibration:
        """Return the least multiplier that meets (ε, δ), see `symdp.calibrate`."""
        from symdp.questions.calibrate import calibrate

        return calibrate(self.step(), self.multiplier, self.n, epsilon=epsilon, delta=delta)

    def drawn(self, sampling: str) -> TrainingRun:
        """Return the same run, and the relation that was asked for, under another sampling."""
        return replace(self, sampling=sampling)


_BY_EPOCH = ("random_allocation",)
_TRUNCATED = "truncated_poisson"
# What a scheme of `symdp.model.sampling` is told about a batch; one that it has not is not offered.
_DRAWS: dict[str, Callable[[TrainingRun], dict[str, Any]]] = {
    "poisson": lambda run: {"rate": run.rate},
    "without_replacement": lambda run: {"rate": run.rate},
    "with_replacement": lambda run: {"rate": sp.Rational(1, run.examples), "batch": run.batch},
    _TRUNCATED: lambda run: {
        "rate": run.rate,
        "batch": run.largest_batch,
        "records": run.examples,
    },
    # Every example takes part in one step of each epoch, drawn for it alone.
    "random_allocation": lambda run: {
        "steps": -(-run.examples // run.batch),
        "participations": 1,
    },
}


def samplings(largest_batch: int | None = None) -> tuple[str, ...]:
    """Return the samplings that a training run may have, those of truncated batches with a size."""
    schemes = (scheme for scheme in SCHEMES if scheme in _DRAWS)
    return tuple(s for s in schemes if largest_batch or s != _TRUNCATED)


def training_run(
    examples: int,
    batch: int,
    epochs: Number | None = None,
    *,
    steps: int | None = None,
    sampling: str = DEFAULT_SAMPLING,
    largest_batch: int | None = None,
    noise: Mechanism | None = None,
    relation: str | None = None,
    released: str = SUM,
) -> TrainingRun:
    """Return a training run whose noise multiplier is open, see `training`."""
    examples = checked_count(examples)
    batch = checked_count(batch)
    if batch > examples:
        raise InputError(f"a batch of {batch} out of {examples} examples: it is too large")
    if (epochs is None) == (steps is None):
        raise InputError("give epochs or steps, one of the two")
    if steps is None:
        many = exact(epochs, "epochs")
        if not (many.is_Rational and many > 0):
            raise InputError(f"epochs must be a number above 0, not {epochs!r:.40}")
        steps = int(sp.ceiling(many * examples / batch))
    sampling = spelled(sampling, SCHEMES)
    if sampling not in _DRAWS or sampling not in SCHEMES:
        schemes = [scheme for scheme in SCHEMES if scheme in _DRAWS]
        hint = suggestion(str(sampling), schemes) or f"; there are {', '.join(schemes)}"
        raise InputError(f"unknown sampling {sampling!r:.60}{hint}")
    if largest_batch is not None:
        largest_batch = checked_count(largest_batch)
    law = mechanisms.gaussian if noise is None else noise
    if len(law.parameters) != 1:
        raise InputError(
            f"{law.name} has {len(law.parameters)} free parameters; one is needed, the multiplier"
        )
    count = checked_count(steps)
    return TrainingRun(examples, batch, count, sampling, largest_batch, law, relation, released)


def training(
    examples: int,
    batch: int,
    epochs: Number | None = None,
    *,
    noise_multiplier: Number | None = None,
    target_epsilon: float | None = None,
    delta: float | None = None,
    steps: int | None = None,
    sampling: str = DEFAULT_SAMPLING,
    largest_batch: int | None = None,
    mechanism: Mechanism | None = None,
    relation: str | None = None,
    released: str = SUM,
) -> Composition:
    """Return the composition of a training run with clipped, noisy gradients (DP-SGD).

    Every step draws a batch, clips each example's gradient to a norm C, adds them and adds noise.
    This stands in place of ``compose(mechanisms.gaussian(sigma=noise_multiplier)
    .subsample("poisson", "batch/examples"), steps)``, of `compute_dp_sgd_privacy` of TensorFlow
    Privacy, and with a target of `get_noise_multiplier` of Opacus.

    Parameters
    ----------
    examples
        How many examples there are.
    batch
        How many a batch holds: in expectation for Poisson sampling, exactly for batches of one
        size.
    epochs, steps
        One of the two: `steps` in place of `epochs`, which are epochs times examples over batch,
        rounded up, as a last batch that is begun counts.
    noise_multiplier
        The standard deviation of the noise over C.
    target_epsilon, delta
        In place of `noise_multiplier`: the least multiplier that meets (ε, δ) is taken.
    sampling
        "poisson", "without_replacement", "with_replacement" or "truncated_poisson". Shuffled
        passes have no known pair; they are none of these.
    largest_batch
        The most examples that a batch keeps, for "truncated_poisson".
    mechanism
        In place of `mechanisms.gaussian`, which alone fits gradients of any length: additive noise
        with one free parameter that takes the multiplier.
    relation
        In place of the sampling's own neighbouring relation, see `Mechanism.under`.
    released
        "sum", also divided by a constant; "average" where a step divides by how many were drawn.

    Examples
    --------
    >>> run = training(60000, 256, 60, noise_multiplier=1.12)
    >>> print(run.n, f"{run.epsilon(1e-5).epsilon:.9f}")
    14063 2.310184135
    """
    run = training_run(
        examples,
        batch,
        epochs,
        steps=steps,
        sampling=sampling,
        largest_batch=largest_batch,
        noise=mechanism,
        relation=relation,
        released=released,
    )
    has_target = target_epsilon is not None
    if (noise_multiplier is None) != has_target or has_target != (delta is not None):
        raise InputError("give noise_multiplier, or target_epsilon and delta")
    if noise_multiplier is None:
        target = real(target_epsilon, "target_epsilon")
        noise_multiplier = run.calibrated(target, real(delta, "delta")).value
    return run.composition(noise_multiplier)
