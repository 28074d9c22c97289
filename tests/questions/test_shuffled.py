"""Shuffled answers of any randomizer: enumeration, sums of their own, and what is refused."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import sympy as sp
from refusals import refused

import symdp
from symdp import Mechanism, compose
from symdp.numeric.shuffled.blanket import _cells
from symdp.questions.shuffled.alone import _tabulated
from symdp.questions.shuffled.blanket import BlanketLaw
from symdp.questions.shuffled.outputs import randomizer

X, Y = sp.symbols("x y", real=True)
B = sp.Symbol("b", positive=True)
LAPLACE = sp.exp(-sp.Abs(Y - X) / B) / (2 * B)
FILE = """
name = "answers"
variable = "y"
[parameters]
b = "positive"
[local]
input = "x"
inputs = [0, 1]
density = "exp(-abs(y - x)/b)/(2*b)"
"""


def k_ary(k, odds):
    """Masses of k-ary response: the truth has odds e^ε₀ against every other answer."""
    whole = odds + k - 1
    return [[sp.Rational(odds if i == j else 1, whole) for j in range(k)] for i in range(k)]


def rappor(bits, keep):
    """Masses of one-hot inputs whose bits are flipped, each with probability 1 − keep."""
    rows = []
    for value in range(bits):
        row = []
        for outcome in itertools.product((0, 1), repeat=bits):
            same = sum((bit == (place == value)) for place, bit in enumerate(outcome))
            row.append(keep**same * (1 - keep) ** (bits - same))
        rows.append(row)
    return rows


HADAMARD = [  # three inputs, each with four of the eight outcomes likelier
    [sp.Rational(3 if bin(row & column).count("1") % 2 == 0 else 1, 16) for column in range(8)]
    for row in (1, 2, 3)
]
SKEWED = [["1/2", "3/10", "1/5"], ["1/5", "1/2", "3/10"], ["1/10", "1/5", "7/10"]]
LISTS = {
    "two": k_ary(2, 3),
    "five": k_ary(5, 4),
    "bits": rappor(3, sp.Rational(3, 4)),
    "hadamard": HADAMARD,
    "skewed": SKEWED,
}


def doubles(rows):
    return np.array([[float(sp.Rational(mass)) for mass in row] for row in rows])


def counts_law(laws):
    """The law of how often each outcome comes, from the laws of independent answers."""
    law = Counter({(0,) * len(laws[0]): 1.0})
    for masses in laws:
        grown = Counter()
        for counts, chance in law.items():
            for outcome, mass in enumerate(masses):
                more = (*counts[:outcome], counts[outcome] + 1, *counts[outcome + 1 :])
                grown[more] += chance * mass
        law = grown
    return law


def exact_delta(table, people, epsilon):
    """δ of the counts of all answers, over all inputs of all people, by enumeration."""
    inputs = range(len(table))
    worst = 0.0
    for others in itertools.combinations_with_replacement(inputs, people - 1):
        crowd = [table[value] for value in others]
        laws = [counts_law([*crowd, table[value]]) for value in inputs]
        for P, Q in itertools.permutations(laws, 2):
            value = math.fsum(max(P[k] - math.exp(epsilon) * Q[k], 0.0) for k in P)
            worst = max(worst, value)
    return worst


def blanket_delta(table, people, epsilon):
    """E[(Σ X)₊]/n for the worst pair of inputs, over all counts of outcomes of the blanket."""
    least = table.min(axis=0)
    worst = 0.0
    for first, second in itertools.permutations(range(len(table)), 2):
        parts = np.append((table[first] - math.exp(epsilon) * table[second]) / least, 0.0)
        law = Counter()  # outcomes with equal parts are one
        for value, mass in zip(parts, np.append(least, 1.0 - least.sum()), strict=True):
            law[round(value, 12)] += mass
        total = 0.0
        for counts, chance in counts_law([list(law.values())] * people).items():
            sums = math.fsum(c * value for c, value in zip(counts, law, strict=True))
            total += max(sums, 0.0) * chance
        worst = max(worst, total / people)
    return worst


@pytest.mark.quick_cases("two")
@pytest.mark.parametrize("name", LISTS)
def test_the_bound_is_the_sum_over_all_counts_and_no_less_than_the_truth(name):
    randomizer = Mechanism.local(LISTS[name], name=name)
    table = doubles(LISTS[name])
    for people, epsilon in ((4, 0.1), (4, 0.6), (7, 0.3)):
        bound = compose(randomizer.shuffled(people)).delta(epsilon)
        own = blanket_delta(table, people, epsilon)
        assert bound.kind == "bound"
        assert own * (1 - 1e-12) <= bound.delta <= own * (1 + 1e-6)
        if people < 5:
            assert exact_delta(table, people, epsilon) <= bound.delta


# Of two pairs of inputs both bounds by a tilt are above 1, and the larger sum is the second's;
# an input without one of the outcomes; sums of 0 that a blur or a lattice would raise.
ODD = {
    "beyond one": (["1/35 5/7 9/70 9/70", "7/11 1/11 1/11 2/11", "6/19 4/19 2/19 7/19"], 2, 0.3),
    "no outcome": (["4/13 9/26 7/26 1/13", "1/9 1/9 2/9 5/9", "5/57 0 2/57 50/57"], 2, 0.0),
    "ties": (["1/2 1/2", "5/6 1/6"], 4, 0.0),
    "rare": (["3/8 5/8", "50/51 1/51"], 2, 1.0),
}


@pytest.mark.slow_cases("beyond one")
@pytest.mark.parametrize("name", ODD)
def test_lists_that_were_wrong(name):
    texts, people, epsilon = ODD[name]
    rows = [text.split() for text in texts]
    bound = compose(Mechanism.local(rows).shuffled(people)).delta(epsilon).delta
    truth = exact_delta(doubles(rows), people, epsilon)
    assert truth * (1 - 1e-12) <= bound <= truth * 1.2
    if name in ("ties", "rare"):
        assert bound <= truth * (1 + 1e-6)


def laplace_bracket(people, epsilon, cells=4_000):
    """Ends of E[(Σ X)₊]/n of Laplace noise of scale 1 on [0, 1], by a sum of its own.

    The law of X on 2^14 points: its values moved down to a lattice, and up to it.
    """
    y = (np.arange(cells) + 0.5) / cells
    least = np.exp(-np.maximum(y, 1 - y)) / 2
    parts = (np.exp(-y) - np.exp(epsilon + y - 1)) / 2 / least
    masses = np.append(least / cells, [math.exp(-1) / 2] * 2)
    parts = np.append(parts, [math.e - math.exp(epsilon), 1 - math.exp(epsilon + 1)])
    step = 2e-3
    ends = []
    for rounded in (np.floor, np.ceil):
        numbers = rounded(parts / step).astype(int)
        low = min(numbers.min(), 0)
        one = np.zeros(numbers.max() - low + 1)
        np.add.at(one, numbers - low, masses)
        one[-low] += 1 - masses.sum()
        law = np.ones(1)
        for _ in range(people):
            law = np.convolve(law, one)
        sums = step * (np.arange(law.size) + people * low)
        ends.append(float(np.maximum(sums, 0.0) @ law) / people)
    return ends


def test_two_values_that_two_other_programs_gave():
    answer = Mechanism.from_toml(FILE)(b=1)
    assert compose(answer.shuffled(100)).delta(0.3).delta == pytest.approx(1.4252e-4, rel=2e-5)
    assert compose(answer.shuffled(1000)).delta(0.2).delta == pytest.approx(4.5447e-11, rel=2e-5)
    low, high = laplace_bracket(6, 0.4)
    assert low <= compose(answer.shuffled(6)).delta(0.4).delta <= high


def test_epsilon_is_the_inverse_and_a_bound():
    crowd = compose(Mechanism.local(k_ary(10, 3)).shuffled(1000))
    answer = crowd.epsilon(1e-6)
    assert crowd.delta(answer.epsilon).delta <= 1e-6
    assert crowd.delta(answer.epsilon * (1 - 1e-7)).delta > 1e-6
    assert answer.kind == "bound"
    # beyond the local ε nothing is left
    assert crowd.delta(math.log(3) * 1.000001).delta == 0.0


def test_unbounded_ratios_are_counted_apart():
    density = sp.exp(-((Y - X) ** 2) / 2) / sp.sqrt(2 * sp.pi)
    normal = Mechanism.local(density, Y, X, (0, 1))
    few = compose(normal.shuffled(10)).delta(0.5).delta
    alone = compose(normal).delta(0.5).delta
    assert 0.01 < few < alone


STRANGERS = {
    "student": 2 / (sp.pi * (1 + (Y - X) ** 2) ** 2),
    "logistic": sp.exp(-(Y - X)) / (1 + sp.exp(-(Y - X))) ** 2,
    "two modes": (sp.exp(-sp.Abs(Y - X)) + sp.exp(-sp.Abs(Y - X - 3))) / 4,
    "waves": sp.exp(-sp.Abs(Y - X)) * (1 + sp.cos(4 * (Y - X)) / 2) / (2 + sp.Rational(2, 34)),
    "flat": sp.Piecewise((sp.Rational(1, 4), sp.Abs(Y - X) <= 2), (0, True)),
}


def own_bound(density, people, epsilon):
    """The same bound by a sum of its own: midpoints of y, X on a lattice, convolved by FFT.

    Of outputs that not every input can give the whole is added.
    """
    y = np.linspace(-60, 61, 2_420_001)
    y = (y[1:] + y[:-1]) / 2
    f = sp.lambdify((Y, X), density, "numpy")
    P, Q = (np.broadcast_to(f(y, value), y.shape) * 5e-5 for value in (0.0, 1.0))
    worst = 0.0
    for one, other in ((P, Q), (Q, P)):
        least = np.minimum(P, Q)
        hidden = least > 1e-14 * 5e-5
        apart = np.maximum(one - math.exp(epsilon) * other, 0.0)[~hidden].sum()
        parts = (one - math.exp(epsilon) * other)[hidden] / least[hidden]
        step = 1e-3
        size = 1 << 19
        numbers = np.floor(parts / step).astype(int)
        shares = parts / step - numbers
        law = np.bincount(numbers % size, least[hidden] * (1 - shares), minlength=size)
        law += np.bincount((numbers + 1) % size, least[hidden] * shares, minlength=size)
        law[0] += 1.0 - least[hidden].sum()
        total = np.fft.irfft(np.fft.rfft(law) ** people)
        sums = step * ((np.arange(size) + size // 2) % size - size // 2)
        worst = max(worst, float(np.maximum(sums, 0.0) @ total) / people + apart)
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("name", STRANGERS)
def test_densities_that_nobody_had_in_mind(name):
    """At two inputs, which are all there are: then no mode needs to be shown."""
    randomizer = Mechanism.local(STRANGERS[name], Y, X, {"values": [0, 1]}, name=name)
    for people, epsilon in ((3, 0.3), (12, 0.2)):
        found = compose(randomizer.shuffled(people)).delta(epsilon).delta
        own = own_bound(STRANGERS[name], people, epsilon)
        assert found == pytest.approx(own, rel=2e-6)


def test_cells_keep_the_masses_of_wide_tails():
    """A tail on which X is constant is one cell, as wide as the mass beyond it is small."""
    laws = randomizer(Mechanism.local(STRANGERS["two modes"], Y, X, {"values": [0, 1]}).shuffled(9))
    # next to the end of the doubles a ratio says nothing: such panels are counted apart
    outputs = laws.outputs.only((laws.outputs.least > 1e-280).all(axis=1))
    cells = _cells(outputs, (0, 1), 0.3, 1.0)
    mass = float((outputs.least * outputs.weights).sum())
    assert float(cells.masses.sum()) == pytest.approx(mass, rel=1e-13)
    mean = math.fsum(cells.masses * cells.means)
    assert mean == pytest.approx(1.0 - math.exp(0.3), rel=1e-13)


def test_the_blanket_is_below_the_clones():
    general = compose(Mechanism.from_shuffled(sp.log(3), 500)).delta(0.15).delta
    for rows in (k_ary(2, 3), HADAMARD):
        crowd = compose(Mechanism.local(rows).shuffled(500))
        clones = crowd.delta(0.15, method="clones")
        assert clones.method == "clones"
        assert crowd.delta(0.15).delta <= clones.delta * (1 + 1e-6)
        assert clones.delta <= general * (1 + 1e-6)
    with refused("the ratios of these laws reach beyond"):
        density = sp.exp(-((Y - X) ** 2) / 2) / sp.sqrt(2 * sp.pi)
        compose(Mechanism.local(density, Y, X, (0, 1)).shuffled(9)).delta(0.1, method="clones")
    with refused("asked of a composition"):
        compose(symdp.mechanisms.laplace(b=1)).delta(0.1, method="clones")


def test_an_answer_by_itself_is_a_pair_of_two_inputs():
    answer = Mechanism.from_toml(FILE)(b=2)
    noise = symdp.mechanisms.laplace(b=2)
    delta = compose(noise, 5).delta(0.3).delta
    assert compose(answer, 5).delta(0.3).delta == pytest.approx(delta, rel=1e-12)
    table = doubles(SKEWED)
    alone = compose(Mechanism.local(SKEWED))
    for epsilon in (0.0, 0.3, 0.8, 1.2):
        truth = max(
            float(np.maximum(P - math.exp(epsilon) * Q, 0.0).sum())
            for P, Q in itertools.permutations(table, 2)
        )
        assert alone.delta(epsilon).delta == pytest.approx(truth, rel=1e-9, abs=1e-15)
    coin = compose(Mechanism.local(k_ary(2, 3)))
    assert coin.delta(0.5).delta == pytest.approx(0.75 - math.exp(0.5) * 0.25)


def test_an_answer_of_unlike_laws_has_the_largest_profile_of_all_pairs():
    """Of three laws whose profiles cross: δ is straight between corners, where all are exact."""
    laws = [(20, 6, 4), (10, 10, 10), (12, 3, 15)]  # in thirtieths
    seen = compose(Mechanism.local([[f"{mass}/30" for mass in law] for law in laws]))
    crossings = 0
    before = None
    for y in np.geomspace(1.0, 4.0, 61):
        profiles = {
            (a, b): sum(max(p - y * q, 0.0) for p, q in zip(laws[a], laws[b], strict=True)) / 30
            for a, b in itertools.permutations(range(3), 2)
        }
        worst = max(profiles, key=profiles.get)
        crossings += before not in (None, worst)
        before = worst
        answer = seen.delta(math.log(y)).delta
        assert answer == pytest.approx(profiles[worst], rel=1e-9, abs=1e-12)
    assert crossings >= 2


@pytest.mark.slow
def test_more_people_and_several_rounds():
    coin = Mechanism.local(k_ary(2, 3))
    once = compose(coin.shuffled(200)).delta(0.3).delta
    assert compose(coin.shuffled(400)).delta(0.3).delta < once
    rounds = compose(coin.shuffled(200), 2)
    assert once < rounds.delta(0.3).delta < 1.0
    assert rounds.protection.sentence.startswith("one record's value changed; of the shuffled")


def test_scales_of_inputs_and_of_noise():
    """The bound depends on b over the length of the interval alone."""
    answer = Mechanism.from_toml(FILE.replace("[0, 1]", "[1000, 1002]"))(b=2)
    delta = compose(Mechanism.from_toml(FILE)(b=1).shuffled(1000)).delta(0.2).delta
    assert compose(answer.shuffled(1000)).delta(0.2).delta == pytest.approx(delta, rel=1e-9)


def test_how_many_people_is_a_parameter():
    crowd = Mechanism.from_toml(FILE)(b=1).shuffled("people")
    assert list(crowd.parameters) == ["people"]
    direct = compose(Mechanism.from_toml(FILE)(b=1).shuffled(300)).delta(0.25).delta
    assert compose(crowd(people=300)).delta(0.25).delta == direct
    with refused("people must be"):
        crowd(people=1)


def miss_rate(P, Q, alpha):
    """The least miss rate of any test of P against Q with false positive rate α under Q."""
    lines = {P[k] / Q[k] for k in Q if Q[k]}
    return max(
        1.0 - math.fsum(max(P[k] - y * Q[k], 0.0) for k in P) - y * alpha for y in {0.0, *lines}
    )


@pytest.mark.quick_cases("two")
@pytest.mark.parametrize("name", ["two", "skewed"])
def test_no_attack_on_shuffled_answers_is_above_the_trade_off(name):
    """Of four people, over all inputs of the three others."""
    table = doubles(LISTS[name])
    inputs = range(len(table))
    crowd = compose(Mechanism.local(LISTS[name]).shuffled(4))
    for alpha in (0.05, 0.3):
        least = 1.0
        for others in itertools.combinations_with_replacement(inputs, 3):
            laws = [counts_law([*(table[i] for i in others), table[value]]) for value in inputs]
            for P, Q in itertools.permutations(laws, 2):
                least = min(least, miss_rate(P, Q, alpha))
        assert 0.5 * least <= crowd.trade_off(alpha) <= least
    assert crowd.membership_advantage() == crowd.delta(0.0).at_most
    # the pair exchanged: δ(−ε) = 1 − e^{−ε} (1 − δ(ε))
    turned = 1.0 - math.exp(-0.4) * (1.0 - crowd.delta(0.4).delta)
    assert crowd.delta(-0.4).delta == pytest.approx(turned, rel=1e-12)


@pytest.mark.slow
def test_randomizers_are_compared_at_one_size_or_as_they_stand():
    answer = Mechanism.from_toml(FILE)
    normal = Mechanism.local(
        sp.exp(-((Y - X) ** 2) / (2 * B**2)) / sp.sqrt(2 * sp.pi) / B, Y, X, (0, 1), name="normal"
    )
    rows = symdp.compare([answer.shuffled(300), normal.shuffled(300)], delta=1e-5, std=2)
    assert {row.mechanism.name for row in rows} == {"answers", "normal"}
    for row in rows:
        assert row.size.std == pytest.approx(2.0)
        assert row.guarantee.epsilon == compose(row.mechanism).epsilon(1e-5).epsilon
    coin = Mechanism.local(k_ary(2, 3), name="coin").shuffled(300)
    plain = symdp.compare([coin, answer(b=1).shuffled(300)], delta=1e-5)
    assert plain[0].guarantee.epsilon <= plain[1].guarantee.epsilon
    sizes = {row.mechanism.name: row.size for row in plain}
    assert sizes["coin"] is None
    assert sizes["answers"].std == pytest.approx(math.sqrt(2))
    assert [row.to_json()["std"] for row in plain if row.size is None] == [None]
    with refused("give the size"):
        symdp.compare([answer.shuffled(300)], delta=1e-5)
    with refused("adds no noise"):
        symdp.compare([coin], delta=1e-5, std=1)


def test_what_is_refused_is_told_in_a_sentence():
    crowd = compose(Mechanism.from_toml(FILE)(b=1).shuffled(100))
    for order in (0, 0.5, 1, 2):
        with refused("shuffled"):
            crowd.renyi(order)
    with refused("prv needs the law of the loss"):
        crowd.delta(0.3, method="prv")
    with refused("is no local randomizer"):
        symdp.mechanisms.laplace(b=1).shuffled(10)
    with refused("shuffled already"):
        Mechanism.from_toml(FILE).shuffled(10).shuffled(10)
    with refused("people must be a whole number"):
        Mechanism.from_toml(FILE).shuffled(1)
    with refused("no common part"):
        compose(Mechanism.local([[1, 0], [0, 1]]).shuffled(10)).delta(0.1)
    with refused("no common part"):
        Mechanism.from_toml(FILE.replace("[0, 1]", '[0, "oo"]'))
    with refused("one mode"):
        compose(Mechanism.local(STRANGERS["waves"], Y, X, (0, 1)).shuffled(10)).delta(0.1)
    with refused("list the inputs"):
        density = sp.exp(-sp.Abs(Y - X**2)) / 2
        compose(Mechanism.local(density, Y, X, (0, 1)).shuffled(10)).delta(0.1)
    with refused("off from 1"):
        compose(Mechanism.local([["1/2", "1/4"], ["1/4", "3/4"]]).shuffled(10)).delta(0.1)
    with refused("sampling"):
        Mechanism.from_toml(FILE).subsample("poisson", 0.1)
    with refused("no local randomizers"):
        symdp.Ledger().add(Mechanism.from_toml(FILE)(b=1).shuffled(10))
    with refused("relation is substitution"):
        Mechanism.from_toml(FILE).under("add_remove")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "people", "epsilon", "truth", "bound"),
    [
        ("two", 12, 0.2, 0.07113, 0.09135),
        ("two", 12, 0.5, 0.02492, 0.03016),
        ("three", 8, 0.2, 0.10688, 0.10690),
        ("skewed", 8, 0.5, 0.07096, 0.09033),
    ],
)
def test_the_table_of_how_far_the_bound_is(name, people, epsilon, truth, bound):
    """Rows of docs/papers.md: δ over all inputs of all people, and what bounds it."""
    tables = {"two": k_ary(2, 3), "three": k_ary(3, 3), "skewed": SKEWED}
    exact = exact_delta(doubles(tables[name]), people, epsilon)
    answer = compose(Mechanism.local(tables[name]).shuffled(people)).delta(epsilon).delta
    assert exact == pytest.approx(truth, abs=6e-6)  # five decimals
    assert answer == pytest.approx(bound, abs=6e-6)
    assert exact <= answer


def test_rounds_are_tabulated_without_loss_at_their_places():
    """A pair with the bound of one round at ε in steps of σ/4, and the chord of δ between them."""
    answers = Mechanism.local(k_ary(2, 3)).shuffled(6)
    law, pair = BlanketLaw(answers), compose(_tabulated(answers))
    width = math.sqrt(float(law.cumulants(0.0, 2)[1]))
    for share, excess in ((0.0, 1e-9), (1.0, 1e-5), (0.6, 0.05), (1.1, 0.05)):
        bound = math.exp(law.bound(share * width).log_delta)
        delta = pair.delta(share * width, direction="remove").delta
        assert bound * (1 - 1e-5) <= delta <= bound * (1 + excess)
