r"""μ-GDP with its regret: how far a Gaussian curve may lie below a privacy profile.

The smallest μ with δ(ε) ≤ δ_μ(ε) + Δ for every ε ≥ 0. Both profiles are convex in y = e^ε. Between
two places δ lies below the chord of its upper ends and δ_μ above its tangent in the middle: a
difference of two lines, which is largest at an end. Beyond the last place δ ≤ Δ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from symdp.arguments import real
from symdp.errors import InputError
from symdp.questions.steps import a_composition
from symdp.questions.tradeoff import GaussianPrivacy
from symdp.turns import in_turn

if TYPE_CHECKING:
    from symdp.questions.composition import Composition

_PLACES = 256  # of ε; the loss to chords and tangents falls with their square
_HALVINGS = 50
_ROUNDING = 1e-12  # of the tangents, which are differences of normal tails
_LARGEST = 700.0  # of an exponent: a tangent that falls so far holds nothing


@in_turn
def gaussian_privacy_with_regret(composition: Composition, regret: float) -> GaussianPrivacy:
    """Return a μ, next to the smallest, with δ(ε) ≤ δ_μ(ε) + `regret` for every ε ≥ 0.

    It holds as surely as the upper ends of δ: chords and tangents leave no ε out.

    Parameters
    ----------
    composition
        The steps, both directions.
    regret
        Δ, strictly between 0 and 1.

    Returns
    -------
    GaussianPrivacy, with the last ε that was looked at and the regret.

    Raises
    ------
    InputError
        If the regret is out of range, or not above the composition's mass at infinity.

    Examples
    --------
    >>> from symdp import compose, mechanisms
    >>> found = gaussian_privacy_with_regret(compose(mechanisms.gaussian(sigma=2), 1), 1e-6)
    >>> 0.4999 < found.mu < 0.502
    True
    """
    import numpy as np
    from scipy.special import log_ndtr, ndtr

    most = real(regret, "regret")
    if not 0.0 < most < 1.0:
        raise InputError(f"regret = {regret!r}: it must lie strictly between 0 and 1")
    last = a_composition(composition).epsilon(most)
    end = max(last.epsilon if last.upper is None else last.upper, 1e-3) * (1.0 + 1e-9)
    places = end * np.arange(_PLACES) / (_PLACES - 1)
    profile = composition.delta(places)
    heights = np.asarray([d.delta if d.upper is None else d.upper for d in profile])
    middle = 0.5 * (places[:-1] + places[1:])
    ahead = places[1:] - middle

    def holds(mu: float) -> bool:
        """Return whether every chord lies below the tangent in its middle, at both of its ends."""
        log_lost = middle + log_ndtr(-middle / mu - 0.5 * mu)  # of e^ε Φ(−ε/μ − μ/2), at most 1
        lost = np.exp(log_lost)
        tangent = ndtr(-middle / mu + 0.5 * mu) - lost
        left = tangent + lost * -np.expm1(-ahead)
        right = tangent + lost - np.exp(np.minimum(log_lost + ahead, _LARGEST))
        ends = np.stack([left - heights[:-1], right - heights[1:]])
        return bool((ends >= _ROUNDING - most).all())

    if heights[0] <= most:
        return GaussianPrivacy(0.0, end, most)
    above = 1.0
    while not holds(above):
        above *= 2.0
        if above > 1e4:
            raise InputError("no μ up to 10000 has so small a regret: take a larger one")
    below = 0.0
    for _ in range(_HALVINGS):
        mu = 0.5 * (below + above)
        below, above = (below, mu) if holds(mu) else (mu, above)
    return GaussianPrivacy(above, end, most)
