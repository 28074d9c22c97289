"""dp-accounting: `DpEvent`s in and out, and a `PrivacyAccountant` that symdp answers.

What takes an accountant of dp-accounting takes this one: jax-privacy, PipelineDP, TensorFlow
Privacy, `dp_accounting.calibrate_dp_mechanism`. The neighbouring relation is the accountant's, as
there: one record added or removed unless another is given. ε and δ are upper bounds, rounded up.
A sampled event speaks of the noisy sum of a batch, or of that divided by a constant.

An event says what was run, not whose privacy is counted: the neighbouring relation belongs to the
accountant. Numbers of an event are taken as the decimals that they print. Events are known by the
name of their class, so that those of later releases are read where they are present.

Noise multipliers are noise over the bound on a record's norm: under REPLACE_ONE a sum moves by up
to twice that bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import sympy as sp

from symdp import mechanisms
from symdp.adapters.upper import delta_upper, epsilon_upper
from symdp.errors import InputError
from symdp.model.average import SUM
from symdp.model.mechanism import Mechanism
from symdp.model.relation import ADD_REMOVE, SUBSTITUTION, ZERO_OUT, protects
from symdp.model.sampling import exact
from symdp.model.schemes import SCHEMES
from symdp.questions.composition import Composition
from symdp.questions.ledger import Ledger

try:
    from dp_accounting import NeighboringRelation, PrivacyAccountant, dp_event
except ImportError as error:
    raise ImportError(
        "symdp.adapters.dp_accounting needs dp-accounting: pip install dp-accounting"
    ) from error

__all__ = ["EventError", "SymdpAccountant", "composition_of", "event_of"]

_RELATIONS = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: ADD_REMOVE,
    NeighboringRelation.REPLACE_ONE: SUBSTITUTION,
    NeighboringRelation.REPLACE_SPECIAL: ZERO_OUT,
}
_NAMES = {relation: name for name, relation in _RELATIONS.items()}

# One step: a mechanism and its count. None in a mechanism's place: a release without any privacy.
_Step = tuple[Mechanism | None, int]

_ADD_OR_REMOVE = (NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_SPECIAL)
_REPLACE = (NeighboringRelation.REPLACE_ONE, NeighboringRelation.REPLACE_SPECIAL)
_ALLOCATED = "RandomAllocationDpEvent"
_X = sp.Symbol("x")


class EventError(InputError):
    """An event that symdp cannot represent; `event` is the one that is to blame."""

    def __init__(self, event: Any, why: str) -> None:
        super().__init__(f"{event!r:.200}: {why}")
        self.event = event
        self.why = why


def _steps_of(event: Any, relation: NeighboringRelation, count: int = 1) -> Iterator[_Step]:
    """Yield the steps of an event under a neighbouring relation.

    Raises
    ------
    EventError
        If an event, or one inside it, cannot be represented.
    """
    if relation not in _RELATIONS:
        raise EventError(event, f"unknown neighbouring relation {relation!r}")
    kind = type(event).__name__
    if kind == "NoOpDpEvent":
        return
    if kind == "NonPrivateDpEvent":
        yield None, count
    elif kind == "SelfComposedDpEvent":
        yield from _steps_of(event.event, relation, count * event.count)
    elif kind == "ComposedDpEvent":
        for part in event.events:
            yield from _steps_of(part, relation, count)
    else:
        yield from _single(event, kind, relation, count)


def _single(event: Any, kind: str, relation: NeighboringRelation, count: int) -> Iterator[_Step]:
    sampled = _SAMPLED.get(kind)
    noise = _NOISE.get(kind)
    read = sampled or noise or _PAIRS.get(kind)
    if read is None:
        raise EventError(event, "symdp cannot represent this event")
    try:
        step = read(event, relation)
        if step is None:
            return
        if isinstance(step, Mechanism) and not step.is_given:
            step = step.under(_RELATIONS[relation])
            # Whether there is a proved pair is known now, not at the first question.  An allocation
            # has none of one variable, and asks for that of its noise.
            (replace(step, sampling=None) if kind == _ALLOCATED else step).pair()
    except EventError:
        raise
    except InputError as error:
        raise EventError(event, str(error)) from None
    yield (None if isinstance(step, _NonPrivate) else step), count


class _NonPrivate:
    """A release without noise."""


# What is made of an event: a step, a release without noise, or None where nothing is released.
_Noise: TypeAlias = Mechanism | _NonPrivate
_Made: TypeAlias = _Noise | None
_Read = Callable[[Any, NeighboringRelation], _Made]


def _normal_noise(sigma: object, sensitivity: object = 1) -> _Noise:
    return _noise(mechanisms.gaussian, exact(sigma) / exact(sensitivity))


def _noise(mechanism: Mechanism, value: sp.Expr) -> _Noise:
    """Return noise of one free parameter at a value; none at 0."""
    (parameter,) = mechanism.parameters
    if value == 0:
        return _NonPrivate()
    return mechanism(**{parameter: value})


def _discrete_laplace(event: Any, relation: NeighboringRelation) -> _Noise:
    rate = exact(event.noise_parameter)
    if rate == 0:
        return _NonPrivate()
    noise = _noise(mechanisms.discrete_laplace, 1 / rate)
    assert isinstance(noise, Mechanism)
    return _moved_by(noise, event.sensitivity)


def _discrete_gaussian(event: Any, relation: NeighboringRelation) -> _Noise:
    if event.dimension != 1:
        raise EventError(event, "discrete normal noise is known in one dimension only")
    noise = _noise(mechanisms.discrete_gaussian, exact(event.sigma))
    if isinstance(noise, _NonPrivate):
        return noise
    return _moved_by(noise, event.sensitivity)


def _moved_by(noise: Mechanism, sensitivity: object) -> Mechanism:
    """Return noise on a query of another sensitivity."""
    size = exact(sensitivity)
    if size == 1:
        return noise
    density = getattr(noise.source, "density")  # noqa: B009  # a pair of laws has none
    return Mechanism.additive(
        density, noise.variable, size, noise.support.kind, f"{noise.name}_{size}"
    )


_NOISE: dict[str, _Read] = {
    "GaussianDpEvent": lambda event, _: _normal_noise(event.noise_multiplier),
    "LaplaceDpEvent": lambda event, _: _noise(mechanisms.laplace, exact(event.noise_multiplier)),
    "PermuteAndFlipDpEvent": lambda event, _: _noise(mechanisms.laplace, 1 / exact(event.epsilon)),
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "DiscreteGaussianDpEvent": _discrete_gaussian,
}


def _inner(event: Any, relation: NeighboringRelation) -> _Noise:
    """Return the noise that is added to a sample."""
    inner = getattr(event, "event", event)
    read = _NOISE.get(type(inner).__name__)
    if read is None:
        deviation = _deviation(_gaussians(inner))
        if deviation == 0:
            return _NonPrivate()
        return mechanisms.gaussian(sigma=deviation)
    noise = read(inner, relation)
    assert noise is not None
    return noise


def _gaussians(event: Any) -> Iterator[tuple[sp.Expr, int]]:
    """Yield the deviation and the number of every normal noise that one sample gets."""
    kind = type(event).__name__
    if kind == "SelfComposedDpEvent":
        yield from ((sigma, event.count * many) for sigma, many in _gaussians(event.event))
    elif kind == "ComposedDpEvent":
        for part in event.events:
            yield from _gaussians(part)
    elif kind == "GaussianDpEvent":
        yield exact(event.noise_multiplier), 1
    elif kind == "NonPrivateDpEvent":
        yield sp.S.Zero, 1
    elif kind != "NoOpDpEvent":
        why = "inside a sample symdp knows additive noise, and several normal ones"
        raise EventError(event, why)


def _deviation(noises: Iterator[tuple[sp.Expr, int]]) -> sp.Expr:
    """Return (Σ nσ⁻²)^(−1/2): several normal noises on one sample are one, in a rotated basis."""
    listed = [(sigma, many) for sigma, many in noises if many]
    if any(sigma == 0 for sigma, _ in listed):
        return sp.S.Zero
    precisions = [many / sigma**2 for sigma, many in listed]
    return 1 / sp.sqrt(sp.Add(*precisions))


def _tree(event: Any, relation: NeighboringRelation) -> _Made:
    """Return one normal step: a record is in one node of every level of one tree."""
    _require(event, relation, (NeighboringRelation.REPLACE_SPECIAL,))
    counts = event.step_counts
    most = max(counts) if hasattr(counts, "__len__") else counts
    if most < 1:
        return None
    return _normal_noise(exact(event.noise_multiplier) / sp.sqrt(int(most).bit_length()))


def _drawn(noise: _Noise, is_empty: bool, scheme: str, *drawn: Any, **options: Any) -> _Made:
    """Return noise on a sample; None where a sample is empty, a release without noise as it is."""
    if is_empty or isinstance(noise, _NonPrivate):
        if is_empty:
            return None
        return noise
    return noise.subsample(scheme, *drawn, **options)


def _poisson(event: Any, relation: NeighboringRelation) -> _Made:
    rate = exact(event.sampling_probability)
    noise = _inner(event, relation)
    if rate == 1:
        return noise
    return _drawn(noise, rate == 0, "poisson", rate)


def _without_replacement(event: Any, relation: NeighboringRelation) -> _Made:
    _require(event, relation, (NeighboringRelation.REPLACE_ONE,))
    share = Fraction(event.sample_size, event.source_dataset_size)
    noise = _inner(event, relation)
    if share == 1:
        return noise
    return _drawn(noise, share == 0, "without_replacement", share)


def _with_replacement(event: Any, relation: NeighboringRelation) -> _Made:
    _require(event, relation, (NeighboringRelation.REPLACE_ONE,))
    noise = _inner(event, relation)
    size = event.sample_size
    share = Fraction(1, event.source_dataset_size)
    return _drawn(noise, size == 0, "with_replacement", share, size)


def _truncated(event: Any, relation: NeighboringRelation) -> _Made:
    rate = exact(event.sampling_probability)
    noise = _normal_noise(event.noise_multiplier)
    size, records = event.truncated_batch_size, event.dataset_size
    is_empty = rate == 0 or size == 0 or records == 0
    return _drawn(noise, is_empty, "truncated_poisson", rate, size, records=records)


def _random_allocation(event: Any, relation: NeighboringRelation) -> _Made:
    scheme = "random_allocation"
    if scheme not in SCHEMES:
        raise EventError(event, f"this symdp has no sampling {scheme}")
    noise = _inner(event, relation)
    chosen = event.num_selected
    return _drawn(noise, chosen == 0, scheme, steps=event.num_steps, participations=chosen)


_SAMPLED: dict[str, _Read] = {
    "PoissonSampledDpEvent": _poisson,
    "SampledWithoutReplacementDpEvent": _without_replacement,
    "SampledWithReplacementDpEvent": _with_replacement,
    "TruncatedSubsampledGaussianDpEvent": _truncated,
    _ALLOCATED: _random_allocation,
}


def _mixture(event: Any, relation: NeighboringRelation) -> _Made:
    _require(event, relation, _ADD_OR_REMOVE)
    sizes = event.sensitivities
    shares = event.sampling_probs
    if len(sizes) != len(shares) or not len(sizes):
        raise EventError(event, "as many probabilities as sensitivities are needed, one or more")
    moved = [(exact(size), exact(share)) for size, share in zip(sizes, shares, strict=True)]
    if all(size == 0 for size, share in moved if share != 0):
        return None
    sigma = exact(event.standard_deviation)
    if sigma == 0:
        return _NonPrivate()
    with_record = [share * _bell(size, sigma) for size, share in moved]
    P = sp.Add(*with_record)
    return Mechanism.from_pair(P, _bell(sp.S.Zero, sigma), _X, name="normal_mixture")


def _bell(centre: sp.Expr, sigma: sp.Expr) -> sp.Expr:
    return sp.exp(-((_X - centre) ** 2) / (2 * sigma**2)) / (sigma * sp.sqrt(2 * sp.pi))


def _randomized_response(event: Any, relation: NeighboringRelation) -> _Made:
    _require(event, relation, _REPLACE)
    buckets = event.num_buckets
    noise = exact(event.noise_parameter)
    if buckets == 1:
        return None
    if noise == 0:
        return _NonPrivate()
    truth = 1 - noise + noise / buckets
    other = noise / buckets
    if relation is NeighboringRelation.REPLACE_ONE:
        others = [(buckets - 2) * other] if buckets > 2 else []
        P = [truth, other, *others]
        Q = [other, truth, *others]
    else:  # against an answer that is uniform over the buckets
        share = sp.Rational(1, buckets)
        P = [truth, 1 - truth]
        Q = [share, 1 - share]
    return _on_points(P, Q, "response")


def _zcdp(event: Any, relation: NeighboringRelation) -> _Made:
    """Return the Rényi curve ξ + ρα of the event; both 0 is no release."""
    rho = exact(event.rho)
    xi = exact(getattr(event, "xi", 0))
    if rho == 0 == xi:
        return None
    return Mechanism.from_renyi(xi + rho * sp.Symbol("alpha"), name="zcdp")


def _best_of(event: Any, relation: NeighboringRelation) -> _Made:
    steps = list(_steps_of(event.event, relation))
    if any(mechanism is None for mechanism, _ in steps):
        return _NonPrivate()
    named = [(mechanism, count) for mechanism, count in steps if mechanism is not None]
    if named:
        return Composition(named).selection(event.mean, event.shape)
    return None


def _pure(event: Any, epsilon: sp.Expr, delta: sp.Expr) -> _Made:
    """Return the pair that dominates every (ε, δ) mechanism: δ without an answer, the rest a coin.

    P puts δ where Q has no mass; elsewhere the two differ by the factors e^ε and e^{−ε}.
    """
    if not (epsilon >= 0 and 0 <= delta <= 1):
        raise EventError(event, "ε must be 0 or more, and δ a probability")
    if delta == 1:
        return _NonPrivate()
    if epsilon == 0 == delta:
        return None
    likely = (1 - delta) * sp.exp(epsilon) / (1 + sp.exp(epsilon))
    unlikely = (1 - delta) / (1 + sp.exp(epsilon))
    if epsilon == 0:
        lost = [1 - delta]
        return _on_points([delta, *lost, 0], [0, *lost, delta], "lost")
    if delta == 0:
        return _on_points([likely, unlikely], [unlikely, likely], "coin")
    P = [delta, likely, unlikely, sp.S.Zero]
    return _on_points(P, P[::-1], "coin_or_lost")


def _on_points(P: list[Any], Q: list[Any], name: str) -> Mechanism:
    return Mechanism.from_pair(P, Q, _X, {"points": list(range(len(P)))}, name)


_PAIRS: dict[str, _Read] = {
    "MixtureOfGaussiansDpEvent": _mixture,
    "RandomizedResponseDpEvent": _randomized_response,
    "EpsilonDeltaDpEvent": lambda event, _: _pure(event, exact(event.epsilon), exact(event.delta)),
    "SingleEpochTreeAggregationDpEvent": _tree,
    "ZCDpEvent": _zcdp,
    "RepeatAndSelectDpEvent": _best_of,
    "ExponentialMechanismDpEvent": lambda event, _: _pure(event, exact(event.epsilon), sp.S.Zero),
}


def _require(event: Any, relation: NeighboringRelation, allowed: tuple[Any, ...]) -> None:
    if relation not in allowed:
        names = " or ".join(f"`{relation_allowed.name}`" for relation_allowed in allowed)
        raise EventError(
            event,
            f"neighboring_relation must be {names} for `{type(event).__name__}`. Found {relation}.",
        )


def event_of(composition: Composition) -> tuple[Any, NeighboringRelation]:
    """Return a composition as a `DpEvent`, and the neighbouring relation to account for it under.

    A number that no double holds is rounded to the side that costs no privacy: noise down, rates
    up.

    Raises
    ------
    InputError
        If a step has no event: its noise, its sampling or its relation is unknown there.
    """
    name = composition.protection.relation
    group = composition.protection.group
    if name not in _NAMES or group != 1:
        raise InputError(f"{composition!r:.200}: dp-accounting has no relation {name}, {group}")
    relation = _NAMES[name]
    events = []
    for mechanism, count in composition.steps:
        event = _event(mechanism)
        events.append(event if count == 1 else dp_event.SelfComposedDpEvent(event, count))
    return (events[0] if len(events) == 1 else dp_event.ComposedDpEvent(events)), relation


def _event(mechanism: Mechanism) -> Any:
    template = mechanism.template or mechanism
    events = {
        mechanisms.gaussian: lambda v: dp_event.GaussianDpEvent(_double_beside(v, up=False)),
        mechanisms.laplace: lambda v: dp_event.LaplaceDpEvent(_double_beside(v, up=False)),
        mechanisms.discrete_laplace: lambda v: dp_event.DiscreteLaplaceDpEvent(
            _double_beside(1 / v, up=True), 1
        ),
    }
    values = list(mechanism.values.values())
    if template not in events or len(values) != 1:
        raise InputError(f"{mechanism.summary}: dp-accounting has no event for it")
    event = events[template](values[0])
    sampling = mechanism.sampling
    if sampling is not None and sampling.released != SUM:
        raise InputError(
            f"{mechanism.summary}: dp-accounting's events are of noisy sums, and this step divides "
            "by the number of records drawn; account for it here"
        )
    if sampling is None:
        return event
    rate = sp.Rational(sampling.rate)
    if sampling.scheme == "poisson":
        return dp_event.PoissonSampledDpEvent(_double_beside(rate, up=True), event)
    if sampling.scheme == "without_replacement":
        return dp_event.SampledWithoutReplacementDpEvent(int(rate.q), int(rate.p), event)
    if sampling.scheme == "with_replacement" and rate.p == 1:
        return dp_event.SampledWithReplacementDpEvent(int(rate.q), sampling.batch, event)
    if sampling.scheme == "truncated_poisson" and hasattr(event, "noise_multiplier"):
        return dp_event.TruncatedSubsampledGaussianDpEvent(
            sampling.records, _double_beside(rate, up=True), sampling.batch, event.noise_multiplier
        )
    raise InputError(f"{mechanism.summary}: dp-accounting has no event for it")


def _double_beside(value: sp.Expr, *, up: bool) -> float:
    """Return a double whose decimal is the value, or lies on the side asked for."""
    double = float(value)
    while (exact(double) < value) if up else (exact(double) > value):
        double = math.nextafter(double, math.inf if up else 0.0)
    return double


def composition_of(
    event: Any,
    neighboring_relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE,
) -> Composition:
    """Return the composition that an event describes.

    Parameters
    ----------
    event
        A `DpEvent`.
    neighboring_relation
        Which data sets are neighbours; an event does not say.

    Raises
    ------
    EventError
        If symdp cannot represent the event, or one inside it, or it has no privacy.
    """
    steps = []
    for mechanism, count in _steps_of(event, neighboring_relation):
        if mechanism is None:
            raise EventError(event, "it releases something without privacy: no ε is finite")
        steps.append((mechanism, count))
    if not steps:
        raise EventError(event, "it releases nothing: there is no step to account for")
    return Composition(steps)


class SymdpAccountant(PrivacyAccountant):
    """A `PrivacyAccountant`: events are composed, ε and δ asked at any time.

    Parameters
    ----------
    neighboring_relation
        Which data sets are neighbours; one record added or removed if left out.
    """

    def __init__(
        self,
        neighboring_relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE,
    ) -> None:
        if neighboring_relation not in _RELATIONS:
            raise InputError(f"unknown neighbouring relation {neighboring_relation!r}")
        super().__init__(neighboring_relation)
        self._steps = Ledger()
        self._is_private = True

    @property
    def protects(self) -> str:
        """Whose privacy ε speaks of, in words."""
        return protects(_RELATIONS[self.neighboring_relation])

    def composition(self) -> Composition:
        """Return all steps so far, for every other question; InputError if there is none."""
        return self._steps.composition()

    def get_epsilon(self, target_delta: float) -> float:
        """Return an upper bound on ε at δ from 0 to 1, inf where no ε is finite."""
        if not self._is_private:
            return math.inf
        return epsilon_upper(self._steps, float(target_delta))

    def get_delta(self, target_epsilon: float) -> float:
        """Return an upper bound on δ at ε ≥ 0."""
        if not self._is_private:
            return 1.0
        return delta_upper(self._steps, float(target_epsilon))

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        """Look at an event, and add its steps where that is asked for."""
        try:
            steps = list(_steps_of(event, self.neighboring_relation, count))
        except EventError as error:
            return self.CompositionErrorDetails(error.event, error.why)
        if do_compose:
            for mechanism, times in steps:
                if mechanism is None:
                    self._is_private = False
                else:
                    self._steps.add(mechanism, times)
        return None
