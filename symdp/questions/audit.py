r"""Attack counts to a lower bound on ε: Clopper and Pearson's intervals, and a test of a claim.

An attack says of m members and n others who is a member: tp hits, fp false alarms. With
confidence 1 − a, its true positive rate is at least t and its false positive rate at most s, each
by the exact one-sided interval of level a/2 [Clopper, Pearson 1934]. Every (ε, δ) mechanism has
[Kairouz, Oh, Viswanath 2015]

.. math:: \varepsilon \ge \max\left(\log\frac{t - \delta}{s},\;
   \log\frac{1 - s - \delta}{1 - t}\right) .

A composition whose best attack at false positive rate s reaches less than t is refuted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from symdp.arguments import real, share
from symdp.errors import InputError
from symdp.questions.invert import halved
from symdp.tolerances import ABOVE_ROUNDING

if TYPE_CHECKING:
    from symdp.questions.composition import Composition

_HALVINGS = 19  # of the logarithm of the level at which a claim is refuted, to 1e-4
_LEAST_LEVEL = 1e-12  # below which no p-value is told
MOST_COUNTED = 10**9


@dataclass(frozen=True)
class Audit:
    """What attack counts prove.

    `epsilon` is the lower bound on ε at `delta`, 0 if the counts prove nothing; the two rates are
    the lower and the upper end that hold together with the confidence, `members` and `others` how
    many were attacked. `p_value` is that of the claim that the records had the privacy of a
    composition, `allowed` the largest true positive rate that it allows at `false_positive_rate`;
    None where none was given.
    """

    epsilon: float
    delta: float
    confidence: float
    true_positive_rate: float
    false_positive_rate: float
    members: int
    others: int
    p_value: float | None = None
    allowed: float | None = None

    @property
    def is_refuted(self) -> bool:
        """Whether the composition is refuted with the confidence."""
        return self.p_value is not None and self.p_value <= 1.0 - self.confidence

    def to_json(self) -> dict[str, Any]:
        """Return the entries as JSON values."""
        return dict(vars(self)) | {"refuted": self.is_refuted}


def audit(
    hits: int,
    false_alarms: int,
    members: int,
    others: int,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    composition: Composition | None = None,
) -> Audit:
    """Return the lower bound on ε that an attack's counts prove, and test a claim with them.

    The attack must have been fixed before these records were drawn, each on its own; several
    thresholds tried on the same records need a smaller level each.

    Parameters
    ----------
    hits, members
        Members that were said to be members, and how many members there were.
    false_alarms, others
        Others that were said to be members, and how many others there were.
    delta
        The δ of the guarantee, from 0 to below 1.
    confidence
        Of both rates together, strictly between 0 and 1.
    composition
        Whose trade-off function is the null hypothesis.

    Examples
    --------
    >>> found = audit(90, 5, 100, 100)
    >>> print(f"{found.epsilon:.4f} {found.true_positive_rate:.4f} {found.false_positive_rate:.4f}")
    1.9880 0.8238 0.1128
    """
    for name, part, whole in (("hits", hits, members), ("false_alarms", false_alarms, others)):
        for value in (part, whole):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InputError(f"{name}: counts are whole numbers of 0 or more, not {value!r}")
        if not 0 < whole <= MOST_COUNTED or part > whole:
            raise InputError(f"{name} = {part} of {whole}: it must be from 0 to the number of them")
    at = real(delta, "delta")
    sure = share(confidence, "confidence")
    if not 0.0 <= at < 1.0:
        raise InputError(f"delta = {delta!r}: it must be 0 or more, and below 1")
    counts = hits, members, false_alarms, others
    low, high = _rates(counts, 1.0 - sure)
    bound = max(_log_ratio(low - at, high), _log_ratio(1.0 - high - at, 1.0 - low), 0.0)
    p_value = allowed = None
    if composition is not None:
        p_value = _p_value(counts, composition)
        allowed = 1.0 - float(composition.trade_off(high))
    return Audit(bound, at, sure, low, high, members, others, p_value, allowed)


def _rates(counts: tuple[int, int, int, int], level: float) -> tuple[float, float]:
    """Return the lower end of the true and the upper end of the false positive rate."""
    hits, members, alarms, others = counts
    return _lower(hits, members, level / 2.0), 1.0 - _lower(others - alarms, others, level / 2.0)


def _lower(count: int, whole: int, level: float) -> float:
    """Return the p with Pr[Bin(whole, p) ≥ count] = level, rounded down; 0 for no count."""
    from scipy.special import betaincinv

    if count == 0:
        return 0.0
    return float(betaincinv(count, whole - count + 1, level)) * (1.0 - ABOVE_ROUNDING)


def _log_ratio(above: float, below: float) -> float:
    """Return log(above/below), −inf where nothing is above."""
    if above <= 0.0:
        return -math.inf
    if below > 0.0:
        return math.log(above / below)
    return math.inf


def _p_value(counts: tuple[int, int, int, int], composition: Composition) -> float:
    """Return the smallest level at which the counts refute the trade-off function, 1 for none."""

    def refutes(level: float) -> bool:
        low, high = _rates(counts, level)
        return low > 1.0 - float(composition.trade_off(min(high, 1.0)))

    if not refutes(1.0 - 1e-12):
        return 1.0
    if refutes(_LEAST_LEVEL):
        return _LEAST_LEVEL
    ends = math.log(_LEAST_LEVEL), 0.0
    return math.exp(halved(lambda level: not refutes(math.exp(level)), *ends, most=_HALVINGS)[1])
