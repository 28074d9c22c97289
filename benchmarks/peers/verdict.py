"""What is to be said of a number beside the proved one: pure functions of both."""

from __future__ import annotations

import math
from fractions import Fraction

from benchmarks.peers.answers import Answer, Outcome

SMALLEST = 1e-17  # relative errors below this are drawn here: a double has no finer one
SLIGHT = 1e-9  # relative: an estimate that is this little too small is not worth a word
LARGE = 1e3  # relative errors above this are written as a factor
VACUOUS = 1.0

Ends = tuple[Fraction, Fraction]


def relative_error(value: float, truth: Ends) -> float:
    """Return value/truth − 1, against the middle of the proved interval.

    Examples
    --------
    >>> relative_error(0.75, (Fraction(1, 2), Fraction(1, 2)))
    0.5
    """
    if math.isnan(value) or math.isinf(value):
        return value
    middle = (truth[0] + truth[1]) / 2
    error = Fraction(value) / middle - 1
    try:
        return float(error)
    except OverflowError:
        return math.copysign(math.inf, error)


def below(value: float | Fraction, truth: Ends) -> bool:
    """Whether a number is proved to be smaller than the truth."""
    return value == -math.inf or (math.isfinite(value) and Fraction(value) < truth[0])


def above(value: float | Fraction, truth: Ends) -> bool:
    """Whether a number is proved to be larger than the truth."""
    return value == math.inf or (math.isfinite(value) and Fraction(value) > truth[1])


def holds(answer: Answer, truth: Ends) -> bool | None:
    """Whether the program's interval can hold the truth; None where it has no interval."""
    if answer.lower is None or answer.upper is None:
        return None
    return not above(answer.lower, truth) and not below(answer.upper, truth)


def words(outcome: Outcome, truth: Ends, quantity: str = "δ") -> str:
    """Return in words what is wrong with an outcome; empty where nothing is.

    Parameters
    ----------
    outcome
        Of one number, not of a curve.
    truth
        The proved ends.
    quantity
        "δ", of which 1 says nothing, or "ε".

    Examples
    --------
    >>> half = (Fraction(1, 2), Fraction(1, 2))
    >>> words(Outcome(Answer(0.25, "upper")), half)
    '**below the truth** although an upper bound: half of it is missing'
    >>> words(Outcome(failure="over 30 s"), half)
    'over 30 s'
    """
    answer = outcome.answer
    if answer is None:
        return outcome.failure
    assert isinstance(answer.value, float)
    value, said = answer.value, []
    if math.isnan(value):
        said.append("returns nan")
    elif math.isinf(value):
        said.append("returns inf")
    elif value == 0.0 and truth[0] > 0:
        said.append("**returns 0**")
    elif value < 0.0:
        said.append("**returns a negative number**")
    elif below(value, truth) and answer.kind == "upper":
        said.append(f"**below the truth** although an upper bound: {_missing(value, truth)}")
    elif above(value, truth) and answer.kind == "lower":
        said.append(f"**above the truth** although a lower bound{_times(value, truth)}")
    elif below(value, truth) and answer.kind == "estimate":
        if relative_error(value, truth) < -SLIGHT:
            said.append(f"below the truth: {_missing(value, truth)}")
    elif quantity == "δ" and answer.kind == "upper" and value >= VACUOUS and truth[1] < 0.5:
        said.append("says nothing: δ ≤ 1")
    contained = holds(answer, truth)
    if contained is False:
        said.append("**its interval misses the truth**")
    if answer.note:
        said.append("advises against itself")
    return "; ".join(said)


def shown_error(value: float, truth: Ends) -> str:
    """Return a signed relative error, or a factor where it is large.

    Examples
    --------
    >>> shown_error(0.75, (Fraction(1, 2), Fraction(1, 2))), shown_error(0.5, (Fraction(1, 2),) * 2)
    ('+5.0e-01', '0')
    """
    error = relative_error(value, truth)
    if math.isnan(error) or math.isinf(error):
        return "–"
    if error > LARGE:
        return f"× {error + 1.0:.1e}"
    return "0" if error == 0.0 else f"{error:+.1e}"


def _missing(value: float, truth: Ends) -> str:
    share = -relative_error(value, truth)
    if share == 0.5:
        return "half of it is missing"
    if share > 0.9:
        return f"{float(truth[0] / Fraction(value)):.2g} times too small"
    if share < 0.01:
        return f"by {share:.1e} of it"
    return f"{100.0 * share:.2g} % of it is missing"


def _times(value: float, truth: Ends) -> str:
    error = relative_error(value, truth)
    return f": {error + 1.0:.1e} times" if error > LARGE else f": by {error:.1e} of it"
