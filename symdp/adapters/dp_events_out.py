"""From steps to dp-accounting's `DpEvent`s."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp import mechanisms
from symdp.adapters.dp_events import RELATIONS
from symdp.errors import InputError
from symdp.model.average import SUM
from symdp.model.sampling import exact

from dp_accounting import NeighboringRelation, dp_event  # isort: skip  # checked above

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.questions.composition import Composition

_NAMES = {relation: name for name, relation in RELATIONS.items()}


def event_of(composition: Composition) -> tuple[Any, NeighboringRelation]:
    """Return a composition as a `DpEvent`, and the neighbouring relation to account for it under.

    A number that no double holds is rounded to the side that costs no privacy: noise down, rates
    up.

    Raises
    ------
    InputError
        If a step has no event: its noise, its sampling or its relation is unknown there.
    """
    name, group = composition.protection.relation, composition.protection.group
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
    known = {
        mechanisms.gaussian: lambda v: dp_event.GaussianDpEvent(_double(v, up=False)),
        mechanisms.laplace: lambda v: dp_event.LaplaceDpEvent(_double(v, up=False)),
        mechanisms.discrete_laplace: lambda v: dp_event.DiscreteLaplaceDpEvent(
            _double(1 / v, up=True), 1
        ),
    }
    values = list(mechanism.values.values())
    if template not in known or len(values) != 1:
        raise InputError(f"{mechanism.summary}: dp-accounting has no event for it")
    event, sampling = known[template](values[0]), mechanism.sampling
    if sampling is not None and sampling.released != SUM:
        raise InputError(
            f"{mechanism.summary}: dp-accounting's events are of noisy sums, and this step divides "
            "by the number of records drawn; account for it here"
        )
    if sampling is None:
        return event
    rate = sp.Rational(sampling.rate)
    if sampling.scheme == "poisson":
        return dp_event.PoissonSampledDpEvent(_double(rate, up=True), event)
    if sampling.scheme == "without_replacement":
        return dp_event.SampledWithoutReplacementDpEvent(int(rate.q), int(rate.p), event)
    if sampling.scheme == "with_replacement" and rate.p == 1:
        return dp_event.SampledWithReplacementDpEvent(int(rate.q), sampling.batch, event)
    if sampling.scheme == "truncated_poisson" and hasattr(event, "noise_multiplier"):
        return dp_event.TruncatedSubsampledGaussianDpEvent(
            sampling.records, _double(rate, up=True), sampling.batch, event.noise_multiplier
        )
    raise InputError(f"{mechanism.summary}: dp-accounting has no event for it")


def _double(value: sp.Expr, *, up: bool) -> float:
    """Return a double whose decimal is the value, or lies on the side asked for."""
    found = float(value)
    while (exact(found) < value) if up else (exact(found) > value):
        found = math.nextafter(found, math.inf if up else 0.0)
    return found
