"""How ε moves with what a mechanism is made with: derivatives of ε(δ) in its parameters.

ε(θ) at fixed δ is an analytic function of a parameter θ of the densities, and the exact method
gives it to about thirteen digits. The polynomial through its values at Chebyshev points of
[θ − h, θ + h] therefore has a derivative at θ that is right to about ten; two intervals of
different width say how far it is off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from symdp.errors import InputError
from symdp.model.mechanism import a_mechanism
from symdp.questions.composition import Composition

if TYPE_CHECKING:
    from symdp.arguments import Direction
    from symdp.model.mechanism import Mechanism

_POINTS = 9  # Chebyshev points: the interpolant's error falls like h^9
_WIDTHS = (0.04, 0.06)  # h relative to the parameter; the two must agree
RATE, COUNT = "rate", "count"


@dataclass(frozen=True)
class Sensitivity:
    """dε/dθ at fixed δ.

    Attributes
    ----------
    derivative
        dε/dθ; for the number of steps ε(n+1) − ε(n), what one more step adds.
    error
        An estimate of how far off it is: the difference of two interpolants.
    elasticity
        (θ/ε) dε/dθ: by how many per cent ε grows where the parameter grows by one; NaN at ε = 0.
    """

    derivative: float
    error: float
    elasticity: float


def sensitivities(
    mechanism: Mechanism, count: int, delta: float, direction: Direction = "both"
) -> dict[str, Sensitivity]:
    """Return how ε(δ) of a number of steps moves with each parameter, the rate and that number.

    Whole-number parameters are left out; the rate is "rate", that number "count".

    Parameters
    ----------
    mechanism, count
        A step with all its parameters bound by keyword, and how often it is taken.
    delta
        In (0, 1); ε must be positive there.
    direction
        "remove", "add", or "both": the larger of the two where the parameters are as given.

    Examples
    --------
    For the Gaussian mechanism ε depends on √n/σ alone, so that σ dε/dσ is about −2n times what one
    more step adds.

    >>> import symdp
    >>> step = symdp.mechanisms.gaussian(sigma=2)
    >>> found = sensitivities(step, 100, 1e-5)
    >>> print(f"{found['sigma'].derivative:.6f} {found['count'].derivative:.6f}")
    -23.069741 0.230438
    """
    own = Composition([(a_mechanism(mechanism).require_concrete(), count)])
    here = own.epsilon(delta, direction=direction)
    if not here.epsilon > 0:
        raise InputError(f"epsilon is 0 at delta = {delta!r:.30}: nothing moves it")
    side: Direction = "add" if here.direction == "add" else "remove"

    def epsilon_of(made: Mechanism, steps: int = count) -> float:
        return Composition([(made, steps)]).epsilon(delta, direction=side).epsilon

    found = {
        name: _derivative(epsilon_of, make, value, here.epsilon)
        for name, value, make in _axes(mechanism)
    }
    more = epsilon_of(mechanism, count + 1) - epsilon_of(mechanism)
    found[COUNT] = Sensitivity(more, 4e-13 * here.epsilon, count * more / here.epsilon)
    return found


def _axes(mechanism: Mechanism) -> list[tuple[str, float, Callable[[float], Mechanism]]]:
    """Return each real parameter with its value, and the step with another value in its place."""
    template, sampling = mechanism.template, mechanism.sampling

    def rebuilt(name: str, value: float) -> Mechanism:
        assert template is not None
        values = {**dict(mechanism.bound), name: value}
        made = replace(template(**values), relation=mechanism.relation)
        return made if sampling is None else resampled(made, sampling.rate)

    def resampled(made: Mechanism, rate: object) -> Mechanism:
        assert sampling is not None
        return replace(made, sampling=replace(sampling, rate=rate))

    axes: list[tuple[str, float, Callable[[float], Mechanism]]] = []
    if template is not None:
        real = [p.name for p in template.declared if not p.symbol.is_integer]
        for name in real:
            value = float(dict(mechanism.bound)[name])
            axes.append((name, value, partial(rebuilt, name)))
    if sampling is not None and not sampling.rate.free_symbols:
        import sympy as sp

        whole = replace(mechanism, sampling=None)

        def with_rate(rate: float) -> Mechanism:
            return resampled(whole, sp.Rational(str(rate)))

        axes.append((RATE, float(sampling.rate), with_rate))
    return axes


def _derivative(
    epsilon_of: Callable[[Mechanism], float],
    make: Callable[[float], Mechanism],
    value: float,
    epsilon: float,
) -> Sensitivity:
    """Return dε/dθ from two interpolants of different width."""
    from numpy.polynomial import Chebyshev

    points = np.cos(np.pi * (np.arange(_POINTS) + 0.5) / _POINTS)
    found = []
    for width in _WIDTHS:
        half = width * abs(value)
        values = [epsilon_of(make(float(value + half * x))) for x in points]
        series = Chebyshev.fit(points, values, _POINTS - 1, domain=[-1, 1])
        found.append(float(series.deriv()(0.0)) / half)
    error = abs(found[1] - found[0]) + 4e-13 * epsilon / (_WIDTHS[0] * abs(value))
    return Sensitivity(found[0], error, found[0] * value / epsilon)
