"""Next to the largest loss δ is a short sum, and keeps its digits up to the last double."""

from fractions import Fraction

import mpmath
import pytest
from catalogue import ALL

from symdp import compose, mechanisms
from symdp.errors import AccuracyError
from symdp.numeric.sums import is_near_top, topmost_sum
from symdp.prove.enclosure import enclose_delta

BELOW = (9.7e-4, 1e-8, 1e-12, 4e-16)
RESPONSE = mechanisms.randomized_response(epsilon_0="1/2")
BINOMIAL = ALL["binomial pair"].mechanism("binomial pair")(a="1/3", c="1/2")


def truth(kinds, epsilon):
    """Return log δ of a sum of n losses each of (loss, mass) pairs, by all that few fall short."""
    with mpmath.workdps(60):
        epsilon = mpmath.mpf(epsilon)
        top = mpmath.fsum(n * max(values)[0] for values, n in kinds)
        sums = {mpmath.mpf(0): mpmath.mpf(1)}
        for values, n in kinds:
            largest, mass = max(values)
            others = [(largest - loss, p) for loss, p in values if loss < largest]
            grown = {}
            for short, weight in sums.items():
                # One after another, the number of steps that have each of the smaller losses.
                stack = [(0, 0, short, weight)]
                while stack:
                    place, used, total, product = stack.pop()
                    if total >= top - epsilon:
                        continue
                    if place == len(others):
                        value = product * mass ** (n - used)
                        grown[total] = grown.get(total, mpmath.mpf(0)) + value
                        continue
                    gap, p = others[place]
                    for k in range(n - used + 1):
                        if total + k * gap >= top - epsilon:
                            break
                        ways = mpmath.binomial(n - used, k) * p**k
                        stack.append((place + 1, used + k, total + k * gap, product * ways))
            sums = grown
        delta = mpmath.fsum(w * -mpmath.expm1(d - (top - epsilon)) for d, w in sums.items())
        return mpmath.log(delta)


def response(epsilon_0):
    e = mpmath.mpf(epsilon_0.numerator) / epsilon_0.denominator
    keep = mpmath.exp(e) / (1 + mpmath.exp(e))
    return [(e, keep), (-e, 1 - keep)]


def binomial():
    """Return what ten trials lose, of chance 1/3 against 1/2, and how likely."""
    rise, fall = (mpmath.log(2 * mpmath.mpf(k) / 3) for k in (2, 1))
    return [
        ((10 - k) * rise + k * fall, mpmath.binomial(10, k) * mpmath.mpf(2) ** (10 - k) / 3**10)
        for k in range(11)
    ]


def check(law, kinds, below):
    with mpmath.workdps(60):
        top = mpmath.fsum(n * max(values)[0] for values, n in kinds)
        epsilon = float(top * (1 - mpmath.mpf(below)))
        expected = truth(kinds, epsilon)
        found = law(epsilon)
        width = found.log_upper - found.log_lower
        assert found.log_lower <= expected <= found.log_upper, epsilon
        assert width <= 1e-13 + 1e-13 * sum(n for _, n in kinds)


@pytest.mark.slow_cases("100000-0.00097")
@pytest.mark.parametrize("below", BELOW)
@pytest.mark.parametrize("count", [1, 2, 5, 100, 10**5])
def test_digits_are_kept_up_to_the_largest_loss(count, below):
    with mpmath.workdps(60):
        kinds = [(response(Fraction(1, 2)), count)]
    composition = compose(RESPONSE, count)
    check(lambda e: composition.delta(e, direction="remove"), kinds, below)


@pytest.mark.parametrize("below", BELOW)
def test_digits_are_kept_of_a_sum_of_several_kinds(below):
    with mpmath.workdps(60):
        kinds = [(response(Fraction(1, 2)), 30), (response(Fraction(1, 3)), 7)]
    composition = compose([(RESPONSE, 30), (mechanisms.randomized_response(epsilon_0="1/3"), 7)])
    check(lambda e: composition.delta(e, direction="remove"), kinds, below)


@pytest.mark.slow_cases("1-0.00097")
@pytest.mark.parametrize("below", BELOW)
@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_digits_are_kept_where_integers_end(count, below):
    """No tilt makes losses typical that lie within a few doubles of the largest."""
    with mpmath.workdps(60):
        kinds = [(binomial(), count)]
    composition = compose(BINOMIAL, count)
    check(lambda e: composition.delta(e, direction="remove"), kinds, below)


@pytest.mark.slow_cases("4e-16", "0.00097")
@pytest.mark.parametrize("below", BELOW)
def test_many_sampled_steps_of_which_one_value_is_left(below):
    with mpmath.workdps(60):
        values = []
        for loss, mass in binomial():
            share = mass * mpmath.exp(-loss)  # under Q, which is not sampled
            mixed = share * mpmath.mpf("0.99") + mass / 100
            values.append((mpmath.log(mixed / share), mixed))
        kinds = [(values, 10**5)]
    composition = compose(BINOMIAL.subsample("poisson", "1/100"), 10**5)
    check(lambda e: composition.delta(e, direction="remove"), kinds, below / 100)


@pytest.mark.slow_cases("0.00097", "1e-08")
@pytest.mark.parametrize("below", BELOW)
def test_losses_without_a_least_one_keep_their_digits(below):
    """Poisson counts of rate 4/5 against 7/5 lose log(7/4) for each count, from 3/5 downwards."""
    with mpmath.workdps(60):
        rate, other = mpmath.mpf(4) / 5, mpmath.mpf(7) / 5
        values = [
            (
                other - rate - k * mpmath.log(other / rate),
                mpmath.exp(-rate) * rate**k / mpmath.fac(k),
            )
            for k in range(30)
        ]
    steps = compose(ALL["poisson counts"].mechanism("counts")(a="4/5", c="7/5"), 50)
    check(lambda e: steps.delta(e, direction="remove"), [(values, 50)], below)


@pytest.mark.parametrize("below", [1e-8, 1e-12])
def test_the_largest_value_itself_is_certified(below):
    pairs = [(RESPONSE.pair("remove"), 40)]
    epsilon = 20.0 * (1.0 - below)
    found = compose(RESPONSE, 40).delta(epsilon, direction="remove")
    proved = enclose_delta(pairs, epsilon, 15)
    assert found.log_lower <= float(proved.log().lower())
    assert float(proved.log().upper()) <= found.log_upper


def test_sums_of_which_many_fall_short_are_left_to_others():
    law = compose(RESPONSE, 10**5).law("remove")
    assert not is_near_top(law, 10.0)
    assert topmost_sum(law, 10.0, 0.5) is None
    spread = compose(mechanisms.gaussian(sigma=2), 3).law("remove")
    assert topmost_sum(spread, 1.0, 1.0) is None


def test_tilts_beyond_what_doubles_tell_apart_are_refused():
    law = compose(BINOMIAL, 2).law("remove")
    with pytest.raises(AccuracyError, match="no loss of"):
        law.tilted(3e17)
