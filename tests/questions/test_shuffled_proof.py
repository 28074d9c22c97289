"""Proved upper ends of shuffled answers, and the certificate of lists with its checker."""

from __future__ import annotations

import json
import sys
from copy import deepcopy
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
import sympy as sp
from refusals import refused

from symdp import Mechanism, compose
from symdp.derive import derive
from symdp.prove import check_certificate
from symdp.questions import certificate_file
from symdp.questions.certificate_file import certificate, check
from symdp.questions.shuffled.proof import _Run

X, Y = sp.symbols("x y", real=True)
COIN = [["3/4", "1/4"], ["1/4", "3/4"]]
ODD = [
    ["4/13", "9/26", "7/26", "1/13"],
    ["1/9", "1/9", "2/9", "5/9"],
    ["5/57", "0", "2/57", "50/57"],
]
LAPLACE = sp.exp(-sp.Abs(Y - X)) / 2
NORMAL = sp.exp(-((Y - X) ** 2) / 2) / sp.sqrt(2 * sp.pi)
WAVES = sp.exp(-sp.Abs(Y - X)) * (1 + sp.cos(4 * (Y - X)) / 2) / (2 + sp.Rational(1, 17))


def coin_sum(people, epsilon):
    """E[S₊]/n of the coin, summed over all counts in 40 digits: X is a, b, or 0, half the time."""
    with mpmath.workdps(40):
        e = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        a, b = 3 - e, 1 - 3 * e
        quarter = mpmath.mpf(1) / 4
        total = mpmath.mpf(0)
        for i in range(people + 1):
            for j in range(people + 1 - i):
                weight = mpmath.binomial(people, i) * mpmath.binomial(people - i, j)
                weight *= quarter ** (i + j) / 2 ** (people - i - j)
                total += weight * max(i * a + j * b, 0)
        return total / people


@pytest.mark.quick_cases("12-3/10")
@pytest.mark.parametrize(("people", "epsilon"), [(12, "3/10"), (60, "1/4"), (60, "9/10")])
def test_a_proof_of_a_coin_is_above_the_sum_over_all_counts(people, epsilon):
    exact = Fraction(epsilon)
    proved = compose(Mechanism.local(COIN).shuffled(people)).certify(exact, digits=6)
    truth = coin_sum(people, exact)
    assert proved.kind == "bound"
    assert proved.lower_decimal == "0"
    high = Fraction(proved.upper_decimal)
    upper = mpmath.mpf(high.numerator) / high.denominator
    assert truth <= upper <= truth * (1 + mpmath.mpf(2) / 10**6)


def test_all_pairs_of_a_list_are_proved():
    """An input without one of the outcomes, which is counted apart."""
    crowd = compose(Mechanism.local(ODD).shuffled(40))
    proved = crowd.certify(Fraction(1, 2), digits=5)
    answer = crowd.delta(0.5).delta
    assert answer * (1 - 1e-9) <= float(Fraction(proved.upper_decimal)) <= answer * (1 + 1e-4)


def test_the_digits_of_few_people_are_those_that_the_blur_leaves():
    """With two people the sum is 0 with probability 1/4, and a blur adds to it at first order."""
    proved = compose(Mechanism.local(COIN).shuffled(2)).certify(Fraction(3, 10), digits=6)
    truth = float(coin_sum(2, Fraction(3, 10)))
    assert proved.digits < 6
    gap = float(Fraction(proved.upper_decimal)) / truth - 1
    assert 0.0 < gap <= 10.0**-proved.digits


@pytest.mark.slow_cases("density1-inputs1-1000-0.002")
@pytest.mark.parametrize(
    ("density", "inputs", "people", "width"),
    [(LAPLACE, (0, 1), 1000, 1e-3), (NORMAL, (0, 1), 1000, 2e-3)],
)
def test_densities_are_proved_on_their_panels(density, inputs, people, width):
    crowd = compose(Mechanism.local(density, Y, X, inputs).shuffled(people))
    proved = float(Fraction(crowd.certify(Fraction(1, 5), digits=3).upper_decimal))
    answer = crowd.delta(0.2).delta
    assert answer * (1 - 1e-6) <= proved <= answer * (1 + width)


@pytest.mark.slow
@pytest.mark.parametrize("people", [4, 300])
def test_where_the_smallest_law_changes_often(people):
    randomizer = Mechanism.local(WAVES, Y, X, {"values": [0, 1]})
    crowd = compose(randomizer.shuffled(people))
    proved = float(Fraction(crowd.certify(Fraction(3, 10), digits=3).upper_decimal))
    answer = crowd.delta(0.3).delta
    assert answer * (1 - 1e-6) <= proved <= answer * (1 + 5e-3)


def test_an_epsilon_is_proved_next_to_the_root():
    crowd = compose(Mechanism.local(COIN).shuffled(200))
    proved = crowd.certify_epsilon(Fraction(1, 10**6), digits=3)
    above = Fraction(proved.upper_decimal)
    assert crowd.delta(float(above)).delta <= 1e-6
    assert float(above) == pytest.approx(crowd.epsilon(1e-6).epsilon, rel=1e-3)


def test_a_certificate_of_a_list_is_checked(tmp_path):
    crowd = compose(Mechanism.local(ODD).shuffled(9))
    told = certificate(crowd, epsilon="1/2", digits=2)
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(told))
    verdict = check(path)
    assert verdict.code == 0, verdict.text
    assert float(told["claim"]["upper"]) == pytest.approx(crowd.delta(0.5).delta, rel=2e-2)
    below = deepcopy(told)
    below["claim"]["upper"] = str(0.9 * crowd.delta(0.5).delta)
    no_plan = deepcopy(told)
    no_plan["witness"]["plans"].popitem()
    more = deepcopy(told)
    more["shuffled"]["laws"][0][0] = "5/13"
    lower = deepcopy(told)
    lower["claim"]["lower"] = "1/1000"
    for tampered in (below, no_plan, more, lower):
        with pytest.raises(check_certificate.Refused):
            check_certificate.check(tampered)


LOGISTIC = sp.exp(-(Y - X)) / (1 + sp.exp(-(Y - X))) ** 2


@pytest.mark.quick_cases("Laplace-100-3/10")
@pytest.mark.parametrize(
    ("name", "people", "epsilon"),
    [("Laplace", 100, "3/10"), ("logistic", 300, "1/5"), ("normal", 1000, "1/5")],
)
def test_a_certificate_of_densities_is_checked(tmp_path, name, people, epsilon):
    density = {"Laplace": LAPLACE, "logistic": LOGISTIC, "normal": NORMAL}[name]
    crowd = compose(Mechanism.local(density, Y, X, (0, 1)).shuffled(people))
    told = certificate(crowd, epsilon=epsilon, digits=2)
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(told))
    assert path.stat().st_size < 20_000
    verdict = check(path)
    assert verdict.code == 0, verdict.text
    assert "worst pair" in told["assumed"]
    answer = crowd.delta(float(Fraction(epsilon))).delta
    assert answer * (1 - 1e-6) <= float(told["claim"]["upper"]) <= answer * 1.1
    if name != "Laplace":
        return
    below = deepcopy(told)
    below["claim"]["upper"] = str(0.99 * answer)
    another = deepcopy(told)
    another["witness"]["plans"]["0 1"]["least"][0] = "0"
    narrow = deepcopy(told)
    narrow["witness"]["plans"]["0 1"]["panels"][0] = ["-3", "-1"]
    over = deepcopy(told)
    over["witness"]["plans"]["0 1"]["panels"][0][-1] = "1/10"
    heavy = deepcopy(told)
    heavy["shuffled"]["laws"][0] = "exp(-Abs(x))"
    sharp = deepcopy(told)
    sharp["shuffled"]["laws"] = ["2*exp(-4*Abs(x))", "2*exp(-4*Abs(x - 1))"]
    raised = deepcopy(told)
    raised["witness"]["plans"]["0 1"]["slack"] = "-1/10"
    for tampered in (below, another, narrow, over, heavy, sharp, raised):
        with pytest.raises(check_certificate.Refused):
            check_certificate.check(tampered)


def test_a_file_of_densities_needs_a_worst_pair():
    skewed = 2 * sp.exp(-(Y - X)) / (1 + sp.exp(-(Y - X))) ** 3
    with refused("list the inputs"):
        certificate(compose(Mechanism.local(skewed, Y, X, (0, 1)).shuffled(9)), epsilon="1/2")


def test_what_is_not_proved_is_refused():
    coin = Mechanism.local(COIN).shuffled(100)
    with refused("from epsilon = 0 on"):
        compose(coin).certify(-1)
    with refused("one round"):
        certificate(compose(coin), delta="1/1000")


@pytest.mark.slow
def test_several_rounds_are_not_certified():
    with refused("several rounds"):
        compose(Mechanism.local(COIN).shuffled(100), 2).certify(0.2)


@pytest.mark.slow
def test_a_page_tells_the_common_part_and_the_law_of_a_part():
    b = sp.Symbol("b", positive=True)
    d = derive(Mechanism.local(sp.exp(-sp.Abs(Y - X) / b) / (2 * b), Y, X, (0, 1)))
    assert sp.simplify(d.common_mass - sp.exp(-1 / (2 * b))) == 0
    text = d.to_text()
    assert "γ = e^(−1/(2b))" in text
    assert "L(y) = e^(1/b) − e^ε           if y < 0" in text
    assert r"\gamma &= e^{-1/(2b)}" in d.to_latex()
    # the transform of the page at numbers is that of a quadrature by mpmath
    values = {b: 1, sp.Symbol("epsilon", nonnegative=True): sp.Rational(1, 5)}
    shown = (
        d.transform.subs(values)
        .subs({sp.Symbol("z"): 2})
        .subs(sp.Symbol("gamma", positive=True), sp.exp(-sp.Rational(1, 2)))
    )

    def integrand(y):
        first, second = (mpmath.exp(-abs(y - x)) / 2 for x in (0, 1))
        least = min(first, second)
        return least * mpmath.expm1(2 * (first - mpmath.exp(0.2) * second) / least)

    truth = 1 + mpmath.quad(integrand, [-30, 0, 0.5, 1, 31])
    assert float(shown.evalf()) == pytest.approx(float(truth), rel=1e-12)
    assert d.to_json()["common_mass"] == "exp(-1/(2*b))"
    coin = derive(Mechanism.local(COIN)).to_text()
    assert "P(L = 3 − e^ε) = 1/4" in coin


@pytest.mark.parametrize("kept", [{}, {0, 1, 2}, {2, 3, 7}, {9}, {0, 2, 4, 6, 8}, set(range(10))])
def test_kept_and_other_panels_tile_a_stretch(kept):
    """Each output is in one of them, whatever is kept: none counts twice, and none is left out."""
    edges = tuple(float(k * k) for k in range(11))
    run = _Run(None, None, (), 0, tuple(range(10)), edges)
    parts = list(run.parts({panel: panel in kept for panel in range(10)}))
    ends = [(part[0], part[-1]) for _, part in parts]
    assert ends[0][0] == edges[0]
    assert ends[-1][1] == edges[-1]
    assert all(left[1] == right[0] for left, right in pairwise(ends))
    assert all(list(part) == sorted(set(part)) for _, part in parts)
    for panel in range(10):
        (is_kept,) = [flag for flag, part in parts if part[0] <= edges[panel] < part[-1]]
        assert is_kept is (panel in kept)


@pytest.mark.skipif(sys.platform != "linux", reason="there may be no bound of memory")
def test_a_check_ends_where_a_file_asks_for_much_memory(monkeypatch, tmp_path):
    """A certificate of a stranger is checked with a gigabyte at most."""
    checker = tmp_path / "checker.py"
    checker.write_text("whole = bytearray(3 << 30)\nprint('held', len(whole))\n")
    monkeypatch.setattr(certificate_file, "CHECKER", checker)
    verdict = check(tmp_path / "certificate.json")
    assert verdict.code == 1
    assert "MemoryError" in verdict.text
