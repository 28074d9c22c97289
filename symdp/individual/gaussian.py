"""Gaussian privacy: its profile, its inverses, the μ of a step and of a record.

G_μ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) [IND 2.3], evaluated as a difference of scaled
complementary error functions, so that nothing cancels. A step has a μ that is proved, a record
one that its profile looks like, and another by the central limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtri

from symdp.arguments import real
from symdp.errors import InputError
from symdp.model.average import SUM
from symdp.model.mechanism import a_mechanism
from symdp.numeric.step import Array
from symdp.tolerances import LARGEST_EXPONENT

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism

NAME = __name__.rpartition(".")[2]  # of the method: this file's, which no mechanism's file decides
_NEWTON = 60  # iterations; quadratic from a bracket, so far fewer are needed
_ROOT_HALF = math.sqrt(0.5)
_PLACES = 8  # of ε up to the floor's, from an eighth of it
_CELLS = 128  # of ε below the largest loss
_OF_ONE_SHIFT = ("poisson", "without_replacement")
_UP = 1.0 + 4e-12  # widens what single-step numbers in doubles may have lost


def log_profile(mu: Array, epsilon: Array) -> Array:
    """Return log G_μ(ε) for arrays of μ > 0 and real ε."""
    a = epsilon / mu - 0.5 * mu
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        # φ(a) and φ(a + μ)e^ε are equal: what is left are two Mills ratios
        near = erfcx(a * _ROOT_HALF) - erfcx((a + mu) * _ROOT_HALF)
        right = -0.5 * a * a + np.log(0.5 * near)
        # far left, Φ(−a) is next to 1 and erfcx overflows
        first = log_ndtr(-a)
        second = epsilon + log_ndtr(-a - mu)
        left = first + np.log1p(-np.exp(second - first))
    return np.asarray(np.where(a > -20.0, right, left))


def epsilon_of(mu: Array, log_delta: float) -> Array:
    """Return the smallest ε ≥ 0 at which G_μ(ε) is at most δ, by bisection and Newton's steps."""
    result = np.zeros(mu.shape)
    is_positive = mu > 0.0
    at_zero = log_profile(mu[is_positive], np.zeros(int(is_positive.sum())))
    is_positive[is_positive] = at_zero > log_delta
    m = mu[is_positive]
    if m.size:
        low = np.zeros(m.size)
        high = 0.5 * m * m + m * math.sqrt(2.0 * -log_delta) + 1e-300
        for _ in range(_NEWTON):
            middle = 0.5 * (low + high)
            above = log_profile(m, middle) > log_delta
            low = np.where(above, middle, low)
            high = np.where(above, high, middle)
        result[is_positive] = high
    return result


def mu_of(epsilon: Array, log_delta: Array) -> Array:
    """Return the μ with G_μ(ε) = δ at ε ≥ 0; 0 where δ = 0."""
    low = np.full(epsilon.shape, -40.0)
    high = np.full(epsilon.shape, 10.0)
    for _ in range(_NEWTON + 10):
        middle = 0.5 * (low + high)
        with np.errstate(invalid="ignore"):
            above = ~(log_profile(np.exp(middle), epsilon) < log_delta)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.where(np.isneginf(log_delta), 0.0, np.exp(high))


def central_limit(counts: NDArray[np.integer], noise: Array, rate: Array, question: Any) -> Array:
    """Return the estimate at μ_i² = Σ_b n_ib q²(e^{1/σ_b²} − 1) [IND 5]: ε, or log δ of each."""
    spread = rate**2 * np.expm1(np.minimum(noise**-2.0, LARGEST_EXPONENT))
    mu = np.sqrt(np.asarray(counts, dtype=np.float64) @ spread)
    if question.log_delta is not None:
        return epsilon_of(mu, question.log_delta)
    value = np.full(mu.shape, -np.inf)
    has_loss = mu > 0.0
    value[has_loss] = log_profile(mu[has_loss], question.epsilon[has_loss])
    with np.errstate(divide="ignore"):
        value[~has_loss] = np.log(-np.expm1(np.minimum(question.epsilon[~has_loss], 0.0)))
    return value


def largest_mu(end: Array, floor: float, log_delta_at: Callable[[Array], Array]) -> Array:
    """Return μ(δ₀) of every record from its ε(δ₀), see `IndividualAccountant.mu`."""
    best = np.zeros(len(end))
    has_loss = end > 0.0
    for share in np.linspace(1.0 / _PLACES, 1.0, _PLACES):
        at = share * end
        log_delta = np.full(len(end), math.log(floor)) if share == 1.0 else log_delta_at(at)
        best[has_loss] = np.maximum(best[has_loss], mu_of(at[has_loss], log_delta[has_loss]))
    return best


def pure_mu(epsilon: float) -> float:
    """Return the μ of a step that is ε₀-DP: 2Φ⁻¹(e^{ε₀}/(1 + e^{ε₀})), rounded up.

    Its trade-off function lies above that of N(0, 1) against N(μ, 1), so that the step may enter
    a Gaussian filter with this μ.

    Examples
    --------
    >>> round(pure_mu(1.0), 12)
    1.232035385346
    """
    if not 0.0 <= real(epsilon, "epsilon") < 500.0:
        raise InputError(f"epsilon = {epsilon!r}: a pure step needs 0 ≤ ε₀ < 500")
    # Φ⁻¹(1 − p) = −Φ⁻¹(p), with p = 1/(1 + e^ε₀) small and precise
    return float(-2.0 * ndtri(1.0 / (1.0 + math.exp(epsilon)))) * (1.0 + 1e-12)


@dataclass(frozen=True)
class StepMu:
    """A μ that a step is proved to have, and why."""

    mu: float
    reason: str

    def __float__(self) -> float:
        return self.mu


def step_mu(mechanism: Mechanism) -> StepMu:
    """Return a μ such that one step of a mechanism is μ-GDP, in both directions.

    A Gaussian has its own; a sampled step has that of the step without sampling under the same
    neighbouring relation, since sampling is a map of the outputs; a step of bounded loss has the
    largest μ over cells of ε, G_μ(ε_{k+1}) = δ(ε_k), which holds at every ε between since δ falls
    and G rises in μ.

    A mechanism whose loss is neither Gaussian nor bounded is refused: no finite μ is proved.

    Examples
    --------
    >>> import symdp
    >>> step_mu(symdp.mechanisms.gaussian(sigma=4).subsample("poisson", 0.01))
    StepMu(mu=0.25, reason='Gaussian loss; sampling is a map of the outputs')
    >>> step_mu(symdp.mechanisms.gaussian(sigma=4).subsample("without_replacement", 0.01)).mu
    0.5
    """
    from symdp.questions.composition import compose

    a_mechanism(mechanism).require_concrete()
    sampling = mechanism.sampling
    # Of groups, repeated draws, averages and truncated batches the shift is another than without
    # sampling.
    single = (
        sampling is not None
        and sampling.scheme in _OF_ONE_SHIFT
        and (sampling.group, sampling.released) == (1, SUM)
    )
    base = mechanism
    if single:
        relation = None if mechanism.is_given else mechanism.neighbours
        base = replace(mechanism, sampling=None, relation=relation)
    composition = compose(mechanism, 1)
    mu = None if composition.protection.is_of_all_shifts else _gaussian_loss(base)
    if mu is not None:
        return StepMu(mu, "Gaussian loss" + "; sampling is a map of the outputs" * single)
    laws = [composition.law(side) for side in composition.sides("both")]
    top = max(law.loss_bounds[1] for law in laws)
    if not math.isfinite(top) or any(law.mass_at_infinity > 0 for law in laws):
        raise InputError(
            f"{mechanism.summary}: its loss is neither Gaussian nor bounded, so that no finite μ "
            "is proved; use a Rényi filter"
        )
    top *= _UP
    ends = top * np.arange(_CELLS + 1) / _CELLS
    bounds = [composition.delta(float(e)).upper for e in ends[:-1]]
    upper = np.asarray([1.0 if bound is None else bound for bound in bounds]) * _UP
    is_positive = upper > 0.0
    best = 0.0
    if is_positive.any():
        best = float(mu_of(ends[1:][is_positive], np.log(upper[is_positive])).max())
    return StepMu(min(best * _UP, pure_mu(top)), "bounded loss, the largest μ over cells of ε")


def _gaussian_loss(mechanism: Mechanism) -> float | None:
    """Return μ where the CGF is proved to be μ²z(1+z)/2, in both directions; else None."""
    import sympy as sp

    from symdp.density.check import NoClosedForm, checked
    from symdp.density.integrate import tabulated_moment

    values = []
    for direction in ("remove", "add"):
        pair = mechanism.pair(direction)
        closed_form = tabulated_moment(pair)
        if closed_form is None:
            return None
        tilt, moment = closed_form
        cgf = sp.expand_log(sp.log(moment), force=True)
        square = sp.simplify(2 * cgf / (tilt * (1 + tilt)))
        if square.free_symbols or not square.is_positive:
            return None
        try:
            checked(cgf, pair, tilt, None, ())
        except NoClosedForm:
            return None
        exact = sp.sqrt(square)
        value = float(exact)
        values.append(value if sp.Rational(value) >= exact else math.nextafter(value, math.inf))
    return max(values)
