"""The upper end of E[S₊] holds on whatever line it is summed: the line is not believed."""

from __future__ import annotations

import cmath
import itertools
import math

import pytest
from flint import arb, ctx

from symdp.prove.blanket import Law, Line, simple_end, upper_end

ROUNDED = 1e-13


@pytest.mark.parametrize("people", [1, 2, 5])
@pytest.mark.parametrize("tilt", [0.3, 1.0, 2.0])
def test_no_line_gives_less_than_the_sum(people, tilt):
    """Of n signs, each +1 or −1 with one half, by their binomial law; the best line is close."""
    ways = [math.comb(people, k) * max(2 * k - people, 0) for k in range(people + 1)]
    truth = sum(ways) / 2**people / people
    law = Law([arb(tilt).exp() / 2, arb(-tilt).exp() / 2], [arb(1), arb(-1)], arb(0), arb(0))
    ends = []
    for period, blur, terms in itertools.product((2.0, 6.0, 16.0), (0.05, 0.3, 1.0), (1, 4, 40)):
        line = Line(tilt, period, blur, terms, 3, people)
        with ctx.workprec(100):
            ends.append(float(upper_end(law, line)[0]))
            ends.append(float(simple_end(law, line)))
    assert min(ends) >= truth
    assert min(ends) <= 1.5 * truth


@pytest.mark.parametrize("terms", [1, 2])
@pytest.mark.parametrize("blur", [0.15, 0.3])
def test_frequencies_that_are_left_out_are_bounded(terms, blur):
    """The whole sum of one sign, φ(z) = cosh z, is below the end, by a few of the next terms."""
    tilt, period = 0.5, 2.0

    def term(k):
        z = complex(tilt, 2.0 * math.pi / period * k)
        return cmath.cosh(z) * cmath.exp(blur**2 / 2 * z * z) / (z * z)

    whole = sum(term(k).real for k in range(-60, 61)) / period
    law = Law([arb(tilt).exp() / 2, arb(-tilt).exp() / 2], [arb(1), arb(-1)], arb(0), arb(0))
    with ctx.workprec(100):
        end = float(upper_end(law, Line(tilt, period, blur, terms, 3, 1))[0])
    assert whole <= end + ROUNDED
    assert end <= whole + 10 * abs(term(terms + 1)) / period + ROUNDED
