"""Far waves of a step's loss: thousands of turns that little mass has, as few losses.

What lies nearer has at most 64 turns, next to which means are cut. A mean over the far part
is a sum over Gauss's rules for its losses, cell by cell (see `beyond.waves`): exact but where a
kink of what is averaged lies within a cell. Cells of half the width say how far off that is.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass

import numpy as np

from symdp.numeric.beyond.waves import rules_of_losses
from symdp.numeric.few.kernels import MeanSeries, Payoff, SlopeOf
from symdp.numeric.few.monotone import Kernel, Mean, Panels, TiltedStep, UnsettledError
from symdp.numeric.step import Array


@dataclass(frozen=True)
class Losses:
    """Losses and their weights."""

    loss: Array
    weight: Array

    def mean(self, kernel: Kernel, centre: float) -> tuple[float, float]:
        """Return Σ w g(c − ℓ) and its derivative by c."""
        gaps = centre - self.loss
        value = float(kernel(gaps) @ self.weight)
        slope = float(kernel.slope(gaps) @ self.weight)
        return value, slope


@dataclass(frozen=True)
class PartedStep:
    """A step without its far waves, and these by wide cells and by narrow ones."""

    near: TiltedStep
    far: tuple[Losses, Losses] | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest loss."""
        losses = [self.near.kinks]
        if self.far is not None:
            losses += [rule.loss for rule in self.far]
        joined = np.concatenate(losses)
        return float(joined.min()), float(joined.max())


def parted(step: TiltedStep) -> PartedStep:
    """Return a step with no more turns than means are cut at; UnsettledError where none is."""
    most_kinks = 256  # each costs a panel of the series, or more
    many_kinks = 64  # whose squares are many parts of panels
    if step.kinks.size <= many_kinks:
        return PartedStep(step)
    for exponent in (-28, -24, -20, -16, -12):
        far_mass = math.ldexp(1.0, exponent)  # at each end of a piece
        near = copy(step)
        near.panels = []
        losses = []
        weights = []
        for panels in step.panels:
            inner, far = _without_ends(panels, far_mass)
            near.panels.append(inner)
            losses.append(far.loss.ravel())
            weights.append(far.weight.ravel())
        turns = [panels.kinks() for panels in near.panels if panels.lower.size]
        near.kinks = np.unique(np.concatenate([step.atom_loss, *turns]))
        if near.kinks.size > many_kinks:
            continue
        near.panels = [panels for panels in near.panels if panels.lower.size]
        loss = np.concatenate(losses)
        weight = np.concatenate(weights)
        cells = 64
        half_width = 0.5 * float(np.ptp(loss)) / cells
        wide = rules_of_losses(loss, weight, half_width)
        narrow = rules_of_losses(loss, weight, 0.5 * half_width)
        return PartedStep(near, (Losses(*wide), Losses(*narrow)))
    if step.kinks.size > most_kinks:
        raise UnsettledError("kinks of the loss are too many")
    return PartedStep(step)


def _without_ends(panels: Panels, far_mass: float) -> tuple[Panels, Panels]:
    """Return panels without so much mass at each end, and those."""
    mass = panels.weight.sum(axis=1)
    before = np.cumsum(mass)
    beyond = np.cumsum(mass[::-1])[::-1]
    is_far = np.minimum(before, beyond) <= far_mass
    return panels.take(~is_far), panels.take(is_far)


def far_mean(inner: PartedStep, outer: PartedStep, series: MeanSeries, epsilon: float) -> Mean:
    """Return what far losses of either step add to the mean, `series` of the inner step's others.

    The slopes are sums of slopes.
    """
    if inner.far is None and outer.far is None:
        return Mean(0.0, 0.0, 0.0)
    payoff = Payoff(inner.near.tilt)
    values = []
    slopes = []
    for index in range(2):
        value = 0.0
        slope = 0.0
        if outer.far is not None:
            value, slope = outer.far[index].mean(series, epsilon)
        if inner.far is not None:
            rule = inner.far[index]
            centres = epsilon - rule.loss
            means = outer.near.means(payoff, centres)
            slopes_there = outer.near.means(SlopeOf(payoff), centres)
            value += float(means @ rule.weight)
            slope += float(slopes_there @ rule.weight)
        if inner.far is not None and outer.far is not None:
            others = outer.far[index]
            for loss, weight in zip(others.loss.tolist(), others.weight.tolist(), strict=True):
                both, slope_of_both = rule.mean(payoff, epsilon - loss)
                value += weight * both
                slope += weight * slope_of_both
        values.append(value)
        slopes.append(slope)
    wide, narrow = values
    return Mean(narrow, slopes[1], abs(narrow - wide))
