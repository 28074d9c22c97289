"""Noise on the integers given by its masses: enumeration is the truth; what is wrong is said."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import symdp
from symdp import InputError, Mechanism, compare
from symdp.model.local import listed_laws

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


TAILED = [Fraction(3, 10), Fraction(1, 5), Fraction(1, 10)]  # and 1/20 beyond, on either side
CELLS = """
name = "cells"
support = ["-oo", "oo"]
[noise]
masses = ["3/10", "1/5", "1/10"]
tail = "1/20"
cell = "1/4"
sensitivity = "1/2"
"""


def long_tail(size):
    """The masses of TAILED one by one: beyond the last they fall by 1/3 = (1/20)/(1/20 + 1/10)."""
    return [*TAILED, *(Fraction(1, 10) * Fraction(1, 3) ** k for k in range(1, size))]


@pytest.mark.parametrize("shift", [1, 2, 4])
def test_a_tail_is_that_of_all_numbers(shift):
    noise = Mechanism.listed(TAILED, shift, tail="1/20")
    answer = symdp.compose(noise, 2).delta(0.4)
    assert answer.delta == pytest.approx(enumerated(long_tail(18), shift, 2, 0.4), rel=1e-6)
    sampled = symdp.compose(noise.subsample("poisson", "1/3"), 2).delta(0.4)
    truth = enumerated(long_tail(18), shift, 2, 0.4, 1 / 3)
    assert sampled.delta == pytest.approx(truth, rel=1e-6)


def test_a_tail_has_exact_moments_and_values():
    noise = Mechanism.listed(TAILED, tail="1/20")
    far = list(enumerate(long_tail(80)))
    assert noise.std == pytest.approx(math.sqrt(2 * sum(k * k * float(m) for k, m in far)))
    assert noise.mean_abs == pytest.approx(2 * sum(k * float(m) for k, m in far))
    # P(X ≤ −4) = Σ_{j ≥ 2} 3^{−j}/10 = 1/60
    assert noise.quantile(1 / 60 - 1e-6) == -4
    assert noise.quantile(1 / 60 + 1e-6) == -3


def density_of_cells(x):
    """The density of CELLS at places, by hand."""
    listed = np.array([float(mass) for mass in long_tail(90)])
    return 4 * listed[np.floor(np.abs(x) / 0.25 + 0.5).astype(int)]


PLACES = (np.arange(-12_000, 12_000) + 0.5) / 1000


def test_cells_are_noise_on_the_reals():
    noise = symdp.Mechanism.from_toml(CELLS)
    shares = density_of_cells(PLACES) / 1000
    assert shares.sum() == pytest.approx(1.0, rel=1e-9)
    assert noise.std == pytest.approx(math.sqrt(shares @ PLACES**2), rel=1e-6)
    assert noise.mean_abs == pytest.approx(shares @ abs(PLACES), rel=1e-6)
    values = noise.sample(200_000, 7)
    assert (abs(values) > 0.3).mean() == pytest.approx(0.7 - 2 * 0.2 * 0.7, abs=5e-3)
    assert len(set(values[:1000].tolist())) == 1000
    assert noise.quantile(0.5 + 0.15 + 0.1) == pytest.approx(0.125 + 0.125, rel=1e-12)


@pytest.mark.parametrize("shift", [0.5, 0.37, 0.1])
def test_no_shift_of_cells_loses_more_than_the_largest(shift):
    """Shifts that are no whole number of cells too: δ(0.3) by a sum over a fine grid."""
    gaps = density_of_cells(PLACES - shift) - math.exp(0.3) * density_of_cells(PLACES)
    total = np.maximum(gaps, 0.0).sum() / 1000
    answer = symdp.compose(symdp.Mechanism.from_toml(CELLS)).delta(0.3)
    assert total <= answer.delta + 1e-9
    if shift == 0.5:
        assert answer.delta == pytest.approx(total, rel=1e-6)


def test_cells_move_as_a_whole():
    noise = symdp.Mechanism.from_toml(CELLS)
    assert noise.source.sensitivity == Fraction(1, 2)
    assert noise.moved_by(1).source.cells == 4
    assert noise.under("substitution").pair().Q == noise.moved_by(1).pair().Q
    integers = Mechanism.listed(TAILED, 2, tail="1/20")
    for count in (1, 5):
        cells = symdp.compose(noise, count).delta(0.7).delta
        assert cells == symdp.compose(integers, count).delta(0.7).delta
    ledger = symdp.Ledger()
    ledger.add(noise, 2)
    ledger.add(integers)
    kept = symdp.Ledger.from_state_dict(ledger.state_dict())
    assert [entry.mechanism for entry in kept.entries] == [noise, integers]
    with pytest.raises(InputError, match="1 to 200 cells"):
        noise.moved_by("1/3")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ('tail = "-1/20"', "on either side"),
        ('tail = "1/19"', "so does the tail"),
        ('tail = "1/20"\ncell = 0', "a ratio above 0"),
        ('tail = "1/20"\nsensitivity = 201', "1 to 200"),
    ],
)
def test_what_is_no_tail_or_cell_is_refused(wrong, told):
    masses = '[noise]\nmasses = ["3/10", "1/5", "1/10"]\n'
    with pytest.raises(InputError, match=told):
        symdp.Mechanism.from_toml(f'name = "wrong"\n{masses}{wrong}\n')
    with pytest.raises(InputError, match="one of the reals"):
        symdp.Mechanism.from_toml(CELLS.replace('["-oo", "oo"]', '"integers"'))


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
    cells = symdp.derive(symdp.Mechanism.from_toml(CELLS)).to_text(only=("mechanism",))
    assert "each point stands for a cell of width 1/4" in cells
    assert "the first and the last point stand for all beyond them" in cells


@pytest.mark.parametrize(
    "laws",
    [[], [[]], [[], []], [["1/2", "1/2"], ["1"]], [["1"], ["1/2", "1/2"], []]],
    ids=["no law", "an empty one", "empty ones", "a shorter one", "three lengths"],
)
def test_listed_laws_have_the_same_outcomes(laws):
    with pytest.raises(InputError, match="needs the same outcomes in every law, one or more"):
        listed_laws(laws)


def test_listed_laws_are_read_as_they_stand():
    assert listed_laws([["1/2", "1/2"]]) == [("1/2", "1/2")]
    assert listed_laws([["1/2", "1/2"], [1, 0]]) == [("1/2", "1/2"), (1, 0)]
