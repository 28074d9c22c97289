"""`calibrate` for any target: (ε, δ), an attack's advantage, or its hits at a false alarm rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symdp.arguments import real
from symdp.errors import InputError
from symdp.questions import calibrate as of_guarantees
from symdp.questions.calibrate_attack import AttackCalibration, calibrate_attack

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.questions.calibrate import Calibration

_DIGITS, _ATTACK_DIGITS = 10, 6  # significant, of the value: the search for a rate is dearer


def calibrate(
    mechanism: Mechanism,
    parameter: str,
    count: int | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    advantage: float | None = None,
    tpr: float | None = None,
    fpr: float | None = None,
    digits: int | None = None,
    **others: Any,
) -> Calibration | AttackCalibration:
    """Return the least noisy value of a parameter that meets a target, rounded to the safe side.

    Parameters
    ----------
    mechanism, parameter, count
        As for `symdp.questions.calibrate.calibrate`: every parameter bound but this one.
    epsilon, delta
        The target: any real ε in nats, and 0 < δ < 1.
    advantage
        Or the largest advantage of an attack, its true less its false positive rate.
    tpr, fpr
        Or its largest true positive rate at a false positive rate.
    digits
        Significant digits of the grid, 4 to 13; 10, or 6 for an attack.
    others
        `between`, and for (ε, δ) also `method` and `direction`.

    Raises
    ------
    InputError
        If an argument breaks a rule, no value of the parameter meets the target or all do, or
        what is met is not monotone in the parameter.
    AccuracyError
        If the method fails near the answer.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> calibrate(mechanisms.gaussian, "sigma", 10, epsilon=1, delta=1e-5, digits=6).value
    117973/10000
    >>> calibrate(mechanisms.gaussian, "sigma", 1, advantage=0.1).value
    3979/1000
    """
    kinds = (epsilon, delta), (advantage,), (tpr, fpr)
    named = [kind for kind in kinds if any(value is not None for value in kind)]
    if len(named) != 1 or None in named[0]:
        raise InputError("give epsilon and delta, or advantage, or tpr and fpr")
    if epsilon is not None and delta is not None:
        return of_guarantees.calibrate(
            mechanism,
            parameter,
            count,
            epsilon=real(epsilon, "epsilon"),
            delta=real(delta, "delta"),
            digits=digits or _DIGITS,
            **others,
        )
    return calibrate_attack(
        mechanism,
        parameter,
        count,
        advantage=advantage,
        true_positive_rate=tpr,
        false_positive_rate=fpr,
        digits=digits or _ATTACK_DIGITS,
        **others,
    )
