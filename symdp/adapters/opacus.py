"""Opacus: an accountant for its `PrivacyEngine`, registered under the name "symdp".

    import symdp.adapters.opacus
    engine = opacus.PrivacyEngine(accountant="symdp")

Opacus tells its accountants a noise multiplier and a sample rate for every step. They are taken as
normal noise on a sum of clipped gradients, the noise over the clip norm, and as Poisson sampling,
which is how `make_private` draws batches unless `poisson_sampling=False`: every example on its own.
Protected is one example added to or removed from the data. Batches drawn in another way, shuffled
ones among them, are told to no accountant of Opacus; for them no ε of this module holds.

What is accounted for is the noisy sum of a batch, or that divided by a constant. Opacus divides by
the rate times `len(dataset)`, which is a constant only where the number of examples is public.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

try:
    from opacus.accountants import IAccountant, register_accountant
except ImportError as error:
    raise ImportError("symdp.adapters.opacus needs Opacus: pip install opacus") from error

from symdp.adapters.upper import epsilon_upper
from symdp.errors import InputError
from symdp.mechanisms import gaussian
from symdp.model.relation import ADD_REMOVE, protects
from symdp.questions.calibrate import calibrate
from symdp.questions.ledger import Ledger

NAME = "symdp"
SCHEME = "poisson"
# A product of epochs and batches per epoch that lies this close to a whole number, relatively, was
# one before the sample rate was rounded to a double.
WHOLE_STEPS_ROUNDING = 1e-12

History = list[tuple[float, float, int]]


class SymdpAccountant(IAccountant):
    """The steps of a training run, and the ε that they cost.

    Attributes
    ----------
    history
        (noise multiplier, sample rate, steps), equal steps in a row counted together.
    neighboring_relation
        "add_remove": one example added to or removed from the data.
    sampling
        "poisson": every example takes part in a step on its own.
    """

    neighboring_relation = ADD_REMOVE
    sampling = SCHEME

    def __init__(self) -> None:
        super().__init__()
        self.history: History = []

    @property
    def protects(self) -> str:
        """Whose privacy ε speaks of, in words."""
        return protects(self.neighboring_relation)

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count one step.

        Raises
        ------
        InputError
            If the multiplier is negative or no number, or the rate lies outside (0, 1].
        """
        _check_noise_and_rate(noise_multiplier, sample_rate)
        noise, rate, count = self.history[-1] if self.history else (math.nan, math.nan, 0)
        if (noise, rate) == (noise_multiplier, sample_rate):
            self.history[-1] = noise, rate, count + 1
        else:
            self.history.append((noise_multiplier, sample_rate, 1))

    def ledger(self) -> Ledger:
        """Return the steps as a ledger, for every other question; their dates are not known.

        Raises
        ------
        InputError
            If an entry of the history breaks a rule, as a step without noise does.
        """
        ledger = Ledger()
        ledger.add_history(gaussian, self.history, SCHEME)
        return Ledger(ledger.steps)

    def get_epsilon(self, delta: float, **options: Any) -> float:
        """Return an upper bound on ε at δ, inf where a step had no noise.

        Parameters
        ----------
        delta
            From 0 to 1.
        options
            What other accountants take, `alphas` and `eps_error` say; without meaning here.
        """
        if any(noise == 0 for noise, _, _ in self.history):
            return math.inf
        return epsilon_upper(self.ledger(), delta)

    def __len__(self) -> int:
        return sum(count for _, _, count in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """Return the name under which Opacus knows this accountant."""
        return NAME

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take the history from what `state_dict` returned, JSON between them or not.

        Raises
        ------
        ValueError
            If it is not the state of this accountant.
        """
        super().load_state_dict(state_dict)
        self.history = _checked_history(self.history)


def get_noise_multiplier(
    *,
    target_epsilon: float,
    target_delta: float,
    sample_rate: float,
    epochs: float | None = None,
    steps: int | None = None,
) -> float:
    """Return the least noise multiplier, to ten digits, that meets (ε, δ) after a training run.

    Parameters
    ----------
    target_epsilon, target_delta
        The budget.
    sample_rate
        The expected share of the examples in a batch, 0 < q ≤ 1.
    epochs, steps
        One of the two. A last batch that is begun counts: steps are epochs/q, rounded up.

    Raises
    ------
    InputError
        If a number breaks a rule, or no multiplier meets the budget.
    """
    if (steps is None) == (epochs is None):
        raise InputError("give epochs or steps, one of the two")
    _check_noise_and_rate(1.0, sample_rate)
    if steps is None:
        assert epochs is not None
        exactly = epochs / sample_rate
        if not 0.0 < exactly < math.inf:
            raise InputError(f"epochs = {epochs!r}: a number above 0 is needed")
        near = round(exactly)
        whole = abs(exactly - near) <= WHOLE_STEPS_ROUNDING * exactly
        steps = max(1, near if whole else math.ceil(exactly))
    mechanism = gaussian if sample_rate == 1.0 else gaussian.subsample(SCHEME, sample_rate)
    (parameter,) = gaussian.parameters
    calibration = calibrate(mechanism, parameter, steps, epsilon=target_epsilon, delta=target_delta)
    # Ten digits are kept by a double: read back as a decimal, it is the value that was found.
    assert Fraction(repr(float(calibration))) == Fraction(
        int(calibration.value.p), int(calibration.value.q)
    )
    return float(calibration)


def _check_noise_and_rate(noise_multiplier: float, sample_rate: float) -> None:
    if not 0.0 <= noise_multiplier < math.inf:
        raise InputError(f"noise_multiplier = {noise_multiplier!r}: a number from 0 is needed")
    if not 0.0 < sample_rate <= 1.0:
        raise InputError(
            f"sample_rate = {sample_rate!r}: it must lie above 0 and not above 1; accumulated "
            "steps are no Poisson sample of a higher rate"
        )


def _checked_history(history: Iterable[Any]) -> History:
    if not isinstance(history, list):
        raise InputError("the history must be a list")
    checked: History = []
    for index, entry in enumerate(history, start=1):
        if not (isinstance(entry, tuple | list) and len(entry) == 3):
            raise InputError(f"history entry {index}: (noise multiplier, sample rate, steps)")
        noise, rate, count = entry
        numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (noise, rate))
        if not numbers or type(count) is not int or count < 1:
            raise InputError(f"history entry {index}: two numbers and a whole number are needed")
        _check_noise_and_rate(noise, rate)
        checked.append((noise, rate, count))
    return checked


register_accountant(NAME, SymdpAccountant, force=True)
