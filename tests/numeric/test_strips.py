"""δ from the integrals of two strips, δ itself and 1 − δ: what their errors allow lies between."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import mpmath
import pytest

from symdp.numeric.line import LineError, StripValue, answer_from_strips
from symdp.numeric.saddle_point import Strip

DELTAS = (1e-30, 1e-9, 0.3, 0.5, 0.6, 0.999, 1.0 - 1e-9)
ERRORS = (1e-13, 1e-9, 1e-4)


def strip(value: mpmath.mpf, off: float, error: float) -> StripValue:
    """A strip's value, off by a share of its error."""
    log_value = float(mpmath.log(value * (1 + off * error)))
    return StripValue(log_value, LineError(quadrature=error), -1.0, True)


def law_of(end: float) -> SimpleNamespace:
    """A law whose moments exist up to a tilt, and that keeps nothing apart."""
    return SimpleNamespace(domain=(-math.inf, end), log_mass_at_infinity=-math.inf)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("end", [0.0, 1.0])
def test_what_the_errors_allow_lies_between_the_ends(delta, end):
    with mpmath.workdps(40):
        whole = mpmath.mpf(delta)
        for right, middle in itertools.product(ERRORS, ERRORS):
            for off, other in itertools.product((-0.9, 0.9), (-0.9, 0.9)):
                values = {
                    Strip.RIGHT: strip(whole, off, right),
                    Strip.MIDDLE: strip(1 - whole, other, middle),
                }
                answer = answer_from_strips(law_of(end), values.__getitem__)
                assert answer is not None
                lower, upper = (mpmath.exp(log) for log in (answer.log_lower, answer.log_upper))
                spare = 1 + 1e-15 * abs(math.log(delta))
                assert lower <= whole * spare
                assert upper >= whole / spare
                # No wider than the errors that were asked say.
                most = max(right, middle) if whole >= 0.5 else right * whole
                if end == 0.0:
                    most = middle
                assert upper - whole <= 20 * most + 1e-12 * whole
                if answer.log_complement is not None and answer.complement_error is not None:
                    gap = abs(mpmath.exp(answer.log_complement) - (1 - whole))
                    assert gap <= answer.complement_error * (1 - whole) * (1 + 1e-6) + 1e-16


def test_where_the_complement_is_1_its_error_is_what_delta_may_be():
    """Nothing above 0 was seen of δ, which is no more than the error of 1 − δ: not 0."""
    for log_value, error in ((0.0, 1e-9), (3e-10, 1e-9), (0.0, 1e-13)):
        middle = StripValue(log_value, LineError(quadrature=error), -1.0, True)
        answer = answer_from_strips(law_of(0.0), {Strip.MIDDLE: middle}.__getitem__)
        assert answer is not None
        assert answer.kind == "bound"
        assert answer.log_lower == -math.inf
        assert error <= math.exp(answer.log_upper) <= 20 * error
