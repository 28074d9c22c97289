"""Noise on the integers given by its masses: enumeration is the truth; what is wrong is said."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

import symdp
from symdp import InputError, Mechanism, compare

SHORT = [Fraction(2, 5), Fraction(1, 5), Fraction(1, 10)]
FILE = 'name = "short"\nsupport = "integers"\n[noise]\nmasses = ["2/5", 0.2, "0.1"]\n'


def enumerated(masses, shift, count, epsilon, rate=1.0):
    """δ(ε) of so many steps, the larger direction, by all outcomes."""
    noise = {k: float(masses[abs(k)]) for k in range(1 - len(masses), len(masses))}
    places = {k + moved for k in noise for moved in (0, shift)}
    q = {k: noise.get(k, 0.0) for k in places}
    p = {k: rate * noise.get(k - shift, 0.0) + (1 - rate) * q[k] for k in places}
    deltas = []
    for first, second in ((p, q), (q, p)):
        total = 0.0
        for outcome in itertools.product(places, repeat=count):
            a = math.prod(first[k] for k in outcome)
            b = math.prod(second[k] for k in outcome)
            total += max(a - math.exp(epsilon) * b, 0.0)
        deltas.append(total)
    return max(deltas)


@pytest.mark.parametrize("shift", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 3])
def test_delta_is_that_of_all_outcomes(shift, count):
    noise = Mechanism.listed(SHORT, shift)
    answer = symdp.compose(noise, count).delta(0.6)
    assert answer.delta == pytest.approx(enumerated(SHORT, shift, count, 0.6), rel=1e-9)
    assert answer.protection.shift == "at most"


def test_no_smaller_shift_loses_more():
    """That the largest shift is the worst is seen, not only proved."""
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        deltas = [enumerated(SHORT, shift, 2, epsilon) for shift in (1, 2, 3)]
        assert deltas == sorted(deltas)


def test_a_sampled_step_has_both_directions():
    noise = Mechanism.listed(SHORT).subsample("poisson", "1/3")
    answer = symdp.compose(noise, 3).delta(0.4)
    assert answer.delta == pytest.approx(enumerated(SHORT, 1, 3, 0.4, 1 / 3), rel=1e-9)


def test_a_changed_value_moves_twice():
    noise = Mechanism.listed(SHORT).under("substitution")
    answer = symdp.compose(noise, 2).delta(0.5)
    assert answer.delta == pytest.approx(enumerated(SHORT, 2, 2, 0.5), rel=1e-9)
    assert answer.protection.relation == "substitution"


def test_a_file_is_the_same_noise_and_moves():
    noise = symdp.Mechanism.from_toml(FILE)
    assert noise.source.masses == Mechanism.listed(SHORT).source.masses
    assert noise.moved_by(2).source == Mechanism.listed(SHORT, 2).source
    assert noise.std == pytest.approx(math.sqrt(2 * (0.2 + 4 * 0.1)), rel=1e-14)
    assert noise.mean_abs == pytest.approx(2 * (0.2 + 0.2), rel=1e-14)
    assert set(noise.sample(1000, 1).tolist()) == {-2, -1, 0, 1, 2}


def test_a_ledger_keeps_it():
    ledger = symdp.Ledger()
    noise = symdp.Mechanism.from_toml(FILE)
    ledger.add(noise, 2)
    kept = symdp.Ledger.from_state_dict(ledger.state_dict())
    assert kept.entries[0].mechanism == noise
    assert kept.entries[0].mechanism.neighbours == "add_remove"


def test_it_is_compared_and_proved():
    noise = symdp.Mechanism.from_toml(FILE)
    (row,) = compare([noise], 1, delta=0.3, std=1)
    assert row.size.std == noise.std
    proved = symdp.compose(noise, 3).certify(0.5)
    truth = enumerated(SHORT, 1, 3, 0.5)
    assert float(proved.lower_decimal) - 1e-13 <= truth <= float(proved.upper_decimal) + 1e-13


@pytest.mark.parametrize(
    ("masses", "told"),
    [
        ('["1/2", "1/3"]', "add up to 1.16"),
        ('["1/5", "2/5"]', "that of 1 is above that of 0"),
        ('["1", "0"]', "that of 1 is 0"),
        ('["1"]', "from 2 to"),
        ('["sqrt(2)/3", "1/5"]', "each is a ratio"),
        ('["a", "1/5"]', "a mass"),
        ("0.3", "masses"),
        ('["2/5", "3/10"]\nsensitivity = "1/2"', "a whole number"),
        ('["2/5", "3/10"]\nmodes = 1', "modes"),
        ('["2/5", "3/10"]\ndensity = "1"', "density"),
    ],
)
def test_what_is_no_such_noise_is_refused(masses, told):
    with pytest.raises(InputError, match=told):
        symdp.Mechanism.from_toml(f'name = "wrong"\n[noise]\nmasses = {masses}\n')


def test_other_samplings_are_refused():
    with pytest.raises(InputError, match="needs additive noise"):
        Mechanism.listed(SHORT).subsample("without_replacement", "1/3")
    with pytest.raises(InputError, match="integers"):
        symdp.Mechanism.from_toml(FILE.replace('"integers"', '[0, "oo"]'))


@pytest.mark.slow
def test_the_page_says_why_the_largest_shift_is_the_worst():
    text = symdp.derive(symdp.Mechanism.from_toml(FILE)).to_text(only=("mechanism",))
    assert "the noise is even and falls from 0" in text
    assert "one record added or removed" in text
