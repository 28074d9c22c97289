"""dp-accounting: `DpEvent`s in and out, and a `PrivacyAccountant` that symdp answers.

What takes an accountant of dp-accounting takes this one: jax-privacy, PipelineDP, TensorFlow
Privacy, `dp_accounting.calibrate_dp_mechanism`. The neighbouring relation is the accountant's, as
there: one record added or removed unless another is given. ε and δ are upper bounds, rounded up.
A sampled event speaks of the noisy sum of a batch, or of that divided by a constant.
"""

from __future__ import annotations

import math
from typing import Any

from symdp.adapters.dp_events import RELATIONS, EventError, event_of, steps_of
from symdp.adapters.upper import delta_upper, epsilon_upper
from symdp.errors import InputError
from symdp.model.relation import protects
from symdp.questions.composition import Composition
from symdp.questions.ledger import Ledger

from dp_accounting import NeighboringRelation, PrivacyAccountant  # isort: skip  # checked above

__all__ = ["EventError", "SymdpAccountant", "composition_of", "event_of"]


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
    for mechanism, count in steps_of(event, neighboring_relation):
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
        if neighboring_relation not in RELATIONS:
            raise InputError(f"unknown neighbouring relation {neighboring_relation!r}")
        super().__init__(neighboring_relation)
        self._steps = Ledger()
        self._is_private = True

    @property
    def protects(self) -> str:
        """Whose privacy ε speaks of, in words."""
        return protects(RELATIONS[self.neighboring_relation])

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
            steps = list(steps_of(event, self.neighboring_relation, count))
        except EventError as error:
            return self.CompositionErrorDetails(error.event, error.why)
        if do_compose:
            for mechanism, times in steps:
                if mechanism is None:
                    self._is_private = False
                else:
                    self._steps.add(mechanism, times)
        return None
