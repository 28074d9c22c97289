"""OpenDP: a composition as a privacy profile, and as the map of a measurement of your own.

OpenDP asks for a curve δ(ε), and searches it for ε. It gets the upper end of symdp's interval,
rounded up, and is told that you vouch for it: `enable_features("contrib", "honest-but-curious")`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

try:
    import opendp.prelude as dp
except ImportError as error:
    raise ImportError("symdp.adapters.opendp needs OpenDP: pip install opendp") from error

from symdp.adapters.upper import delta_upper
from symdp.arguments import instance, real
from symdp.errors import InputError
from symdp.questions.composition import Composition
from symdp.questions.ledger import Ledger

NEEDED = "give a Composition, as symdp.compose makes one"


def profile(composition: Composition) -> Any:
    """Return OpenDP's `PrivacyProfile` of a composition: `delta(epsilon)` and `epsilon(delta)`.

    >>> import symdp
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> steps = symdp.compose(symdp.mechanisms.gaussian(sigma=4), 50)
    >>> exact = steps.epsilon(1e-6).epsilon
    >>> exact <= profile(steps).epsilon(1e-6) <= exact * (1 + 1e-12)
    True
    """
    ledger = Ledger(instance(composition, Composition, NEEDED).steps)
    return dp.new_privacy_profile(cache(lambda epsilon: delta_upper(ledger, epsilon)))


def measurement(
    function: Callable[[Any], Any],
    composition: Composition,
    domain: Any,
    metric: Any,
    distance: float,
    **options: Any,
) -> Any:
    """Return a measurement that calls `function` and costs what the composition does.

    Parameters
    ----------
    function
        It releases what the steps of the composition release; nothing here can check that.
    domain, metric
        OpenDP's, of the data.
    distance
        How far apart, in that metric, the data sets are of which the composition speaks: a record
        added or removed is 1 in `symmetric_distance`, a substituted one 2. The map refuses more.
    options
        For `make_user_measurement`: `TO`, the type of what is released.
    """
    instance(composition, Composition, NEEDED)
    if not real(distance, "distance") > 0:
        raise InputError(f"distance = {distance!r}: it must be above 0")

    def cost(d_in: float) -> Any:
        if not d_in <= distance:
            raise InputError(f"d_in = {d_in!r}: this composition is of data sets {distance} apart")
        return profile(composition).curve  # OpenDP takes the curve over, and frees it

    measure = dp.smoothed_max_divergence()
    return dp.m.make_user_measurement(domain, metric, measure, function, cost, **options)
