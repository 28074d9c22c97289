"""Flower: an accountant for its strategies with differential privacy.

    from flwr.serverapp import PrivacyConfig
    from symdp.adapters.flower import SymdpAccountant
    accountant = SymdpAccountant(PrivacyConfig(...))

The unit is a client. `PrivacyConfig` names the neighbouring relation and how clients are drawn:

- poisson with add-or-remove-one: one client added or removed;
- no-amplification with add-or-remove-one: the same, the draw is not counted on;
- without-replacement with replace-one: one client's update replaced by another. The noise
  multiplier is noise over clip norm, and a replaced update moves the sum by up to twice that norm,
  which is counted here. Accountants that count it once give a smaller ε.

ε and δ are upper bounds, rounded up.
"""

from __future__ import annotations

import math
from copy import copy
from fractions import Fraction
from typing import TYPE_CHECKING

try:
    from flwr.serverapp import (
        GaussianPrivacyEvent,
        NeighboringRelation,
        PrivacyConfig,
        PrivacySpent,
        SamplingMethod,
    )
except ImportError as error:
    raise ImportError(
        "symdp.adapters.flower needs Flower 1.42: pip install 'flwr>=1.42'"
    ) from error

from symdp.adapters.upper import delta_upper, epsilon_upper
from symdp.arguments import checked_count, share
from symdp.errors import InputError
from symdp.mechanisms import gaussian
from symdp.model.relation import ADD_REMOVE, SUBSTITUTION, protects
from symdp.questions.ledger import Ledger

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism

METHOD = "symdp"
_SCHEMA = 1
_RELATIONS = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: ADD_REMOVE,
    NeighboringRelation.REPLACE_ONE: SUBSTITUTION,
}
_CONFIG = ("target_delta", "population_size", "neighboring_relation", "sampling_method")
_EVENT = ("noise_multiplier", "sample_size", "population_size")


# By the words of sampling, a scheme of symdp; None where the draw is not counted on.
_SCHEMES = {
    SamplingMethod.POISSON: "poisson",
    SamplingMethod.WITHOUT_REPLACEMENT: "without_replacement",
    SamplingMethod.NO_AMPLIFICATION: None,
}


class SymdpAccountant:
    """Flower's `PrivacyAccountant` protocol, answered by symdp.

    Parameters
    ----------
    config
        δ, the population of clients, the relation, how clients are drawn, and a budget if there
        is one.

    Raises
    ------
    InputError
        If the relation or the sampling is unknown here.
    """

    def __init__(self, config: PrivacyConfig) -> None:
        if config.neighboring_relation not in _RELATIONS or config.sampling_method not in _SCHEMES:
            raise InputError(
                f"{config.sampling_method} with {config.neighboring_relation}: unknown to symdp"
            )
        self._config = config
        self._ledger = Ledger()
        self._compositions: list[tuple[GaussianPrivacyEvent, int]] = []

    @property
    def config(self) -> PrivacyConfig:
        """The configuration that was given."""
        return self._config

    @property
    def num_releases(self) -> int:
        """How many releases were composed."""
        return sum(count for _, count in self._compositions)

    @property
    def ledger(self) -> Ledger:
        """A copy of the ledger of all releases, for every other question."""
        return copy(self._ledger)

    @property
    def protects(self) -> str:
        """Whose privacy ε speaks of, in words: the records are clients."""
        return protects(_RELATIONS[self._config.neighboring_relation])

    def compose(self, event: GaussianPrivacyEvent, count: int = 1) -> None:
        """Add releases.

        Raises
        ------
        InputError
            If the event is not Gaussian, its population is another, or the count is no positive
            whole number.
        """
        step = self._step_of_event(event)
        self._ledger.add(step, checked_count(count))
        self._compositions.append((event, int(count)))

    def get_epsilon(self, delta: float) -> float:
        """Return an upper bound on ε at δ, strictly between 0 and 1."""
        return epsilon_upper(self._ledger, share(delta, "delta"))

    def get_delta(self, epsilon: float) -> float:
        """Return an upper bound on δ at ε ≥ 0."""
        return delta_upper(self._ledger, epsilon)

    def get_privacy_spent(self, delta: float | None = None) -> PrivacySpent:
        """Return what was spent, at the configuration's δ if none is given."""
        at = self._config.target_delta if delta is None else delta
        return PrivacySpent(
            epsilon=self.get_epsilon(at),
            delta=at,
            num_releases=self.num_releases,
            accounting_method=METHOD,
        )

    def would_exceed(
        self, event: GaussianPrivacyEvent, max_epsilon: float | None = None, count: int = 1
    ) -> bool:
        """Return whether further releases would exceed a budget; nothing is added."""
        budget = self._config.max_epsilon if max_epsilon is None else max_epsilon
        if budget is None or isinstance(budget, bool) or not 0.0 < budget < math.inf:
            raise InputError(
                f"max_epsilon = {budget!r}: give a number above 0, here or in PrivacyConfig"
            )
        projected = self.ledger
        projected.add(self._step_of_event(event), checked_count(count))
        return epsilon_upper(projected, self._config.target_delta) > budget

    def state_dict(self) -> dict[str, object]:
        """Return the state as JSON values."""
        return {
            "schema_version": _SCHEMA,
            "backend": METHOD,
            "config": _config_values(self._config),
            "compositions": [
                {"event": {name: getattr(event, name) for name in _EVENT}, "count": count}
                for event, count in self._compositions
            ],
        }

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Take the releases of a state of the same configuration.

        Raises
        ------
        InputError
            If it is no such state; then nothing changes.
        """
        if not isinstance(state, dict) or state.get("backend") != METHOD:
            raise InputError(f"this is no state of {METHOD}: its 'backend' must be {METHOD!r}")
        if state.get("schema_version") != _SCHEMA:
            raise InputError(
                f"schema_version {state.get('schema_version')!r:.20}; known: {_SCHEMA}"
            )
        if state.get("config") != _config_values(self._config):
            raise InputError("the state's privacy configuration is not this accountant's")
        entries = state.get("compositions")
        if not isinstance(entries, list):
            raise InputError("the state's 'compositions' must be a list")
        restored = SymdpAccountant(self._config)
        for index, entry in enumerate(entries, start=1):
            try:
                event = GaussianPrivacyEvent(**{name: entry["event"][name] for name in _EVENT})
                restored.compose(event, entry["count"])
            except (KeyError, TypeError, ValueError) as error:
                raise InputError(f"composition {index} of the state: {error}") from None
        self._ledger = Ledger(restored._ledger.steps)  # when they were released is not in the state
        self._compositions = restored._compositions

    def _step_of_event(self, event: object) -> Mechanism:
        if not isinstance(event, GaussianPrivacyEvent):
            raise InputError(f"{event!r:.80} is no GaussianPrivacyEvent; symdp knows no other")
        if event.population_size != self._config.population_size:
            raise InputError(
                f"population_size {event.population_size} of {event!r} is not the configured "
                f"{self._config.population_size}"
            )
        (parameter,) = gaussian.parameters
        noise: Mechanism = gaussian(**{parameter: event.noise_multiplier})
        noise = noise.under(_RELATIONS[self._config.neighboring_relation])
        drawn = Fraction(event.sample_size, event.population_size)
        scheme = _SCHEMES[self._config.sampling_method]
        if scheme is None or drawn == 1:
            return noise
        return noise.subsample(scheme, drawn)


def _config_values(config: PrivacyConfig) -> dict[str, object]:
    settings = {name: getattr(config, name) for name in _CONFIG}
    named = {name: getattr(value, "value", value) for name, value in settings.items()}
    return {**named, "max_epsilon": config.max_epsilon}
