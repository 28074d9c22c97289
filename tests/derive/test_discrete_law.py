"""Masses and distribution functions of discrete losses, against sums at many digits."""

from __future__ import annotations

import math

import pytest
import sympy as sp

import symdp
from symdp.derive import derive
from symdp.derive.limits import monotone_pieces
from symdp.derive.masses import mass_rules
from symdp.model.mechanism import Mechanism
from symdp.model.pair import Pair, Support

R = sp.Rational
LAWS = {
    "poisson": ('[noise]\ndensity = "exp(-s)*s**x/factorial(x)"', {"s": R(3)}),
    "negative binomial": (
        '[noise]\ndensity = "binomial(x+3,x)*(1-r)**4*r**x"',
        {"r": R(1, 3)},
    ),
    "two poisson means": (
        '[pair]\nP = "exp(-s)*s**x/factorial(x)"\nQ = "exp(-2*s)*(2*s)**x/factorial(x)"',
        {"s": R(3)},
    ),
    "two geometric rates": ('[pair]\nP = "(1-r)*r**x"\nQ = "(1-r/2)*(r/2)**x"', {"r": R(1, 3)}),
}


def mechanism(name: str) -> Mechanism:
    table, values = LAWS[name]
    declared = "\n".join(f'{key} = "open probability"' if key == "r" else f'{key} = "positive"'
                         for key in values)  # fmt: skip
    return symdp.Mechanism.from_toml(
        f'name = "{name}"\nvariable = "x"\nsupport = "naturals"\n[parameters]\n{declared}\n{table}'
    )


@pytest.mark.quick_cases("two geometric rates")
@pytest.mark.parametrize("name", LAWS)
def test_masses_and_sums_in_k_are_those_of_the_pair(name: str) -> None:
    made = mechanism(name)
    d, k = derive(made), derive(made).variable
    values = {made.parameters[key]: value for key, value in LAWS[name][1].items()}
    (rule,) = d.mass_rules
    P, Q = (law.subs(values) for law in (d.pair.P, d.pair.Q))
    losses = {j: sp.N(sp.log(P.subs(k, j) / Q.subs(k, j)), 30) for j in range(1, 60)}
    for j in (1, 2, 5, 11):
        assert abs(sp.N(rule.loss.subs(values).subs(k, j) - losses[j], 30)) < 1e-25
        assert abs(sp.N(rule.mass.subs(values).subs(k, j) - P.subs(k, j), 30)) < 1e-25
        listed = sum(P.subs(k, i) for i, loss in losses.items() if loss <= losses[j])
        first = P.subs(k, 0) if rule.lower == 0 and losses[1] < losses[2] else 0
        assert rule.at_most is not None
        direct = sp.N(rule.at_most.subs(values).subs(k, j).doit(), 25)
        assert abs(direct - listed - first) < 1e-18


def test_the_sum_of_a_geometric_loss_is_closed() -> None:
    (rule,) = derive(mechanism("two geometric rates")).mass_rules
    assert rule.at_most is not None
    assert not rule.at_most.has(sp.Sum)


@pytest.mark.slow
def test_few_values_make_a_step_function() -> None:
    found = derive(symdp.mechanisms.k_ary_randomized_response)
    cdf, atoms = found.pld_cdf.expression, found.atoms
    assert cdf is not None
    values = {found.mechanism.parameters["epsilon_0"]: R(1), found.mechanism.parameters["k"]: 5}
    for s in (-2, R(-1, 2), R(1, 2), 2):
        direct = sum(a.mass.subs(values) for a in atoms if a.loss.subs(values) <= s)
        assert abs(sp.N(cdf.subs(values).subs(found.pld_cdf.loss, s) - direct, 20)) < 1e-15
    assert found.mass_rules == ()


@pytest.mark.slow
def test_rules_are_printed_and_read_back() -> None:
    from symdp.page.derivation_json import from_json

    d = derive(mechanism("poisson"))
    (rule,) = d.mass_rules
    assert "P(ℓ ≤ log(x) − log(s)), x ≥ 1 = ∑" in d.to_text(0)
    read = from_json(d.to_json(0))
    assert read["mass_rules.0.at_most"] == rule.at_most
    assert r"\le " in d.to_latex(0)
    assert "∑" in d.to_mathml(0)


def test_a_loss_that_turns_has_masses_and_no_sum() -> None:
    d = derive(symdp.mechanisms.skellam)
    assert [rule.at_most for rule in d.mass_rules] == [None] * len(d.mass_rules)
    assert d.mass_rules


@pytest.mark.slow
def test_pieces_of_integers_are_told_with_their_ends():
    """ℓ(k) = log(k/(k + r − 1)) − log p: quotients of Γ are one logarithm, and 0 is a place."""
    free = symdp.mechanisms.negative_binomial
    told = symdp.derive(free).to_text(only=["loss"])
    assert "k = 0: ℓ is constant" in told
    assert "k ≥ 1: ℓ is" in told
    assert "∈ (0, 0)" not in told
    loss = symdp.derive(free).pieces[-1].loss
    assert len(loss.atoms(sp.log)) == 2
    k, r, p = (next(s for s in loss.free_symbols if s.name == n) for n in "krp")
    at = {k: sp.Integer(7), r: sp.Integer(3), p: sp.Rational(2, 5)}
    assert sp.exp(loss.subs(at)).equals(sp.Rational(7, 9) / sp.Rational(2, 5))


STAIRS = sp.Symbol("k", integer=True)
BENT = sp.exp(-sp.Max(STAIRS / 2, STAIRS - 1))  # steeper from 2 on


@pytest.mark.parametrize("side", [1, -1], ids=["on naturals", "mirrored"])
@pytest.mark.parametrize("rate", [R(1, 3), R(3, 2)], ids=["falls", "rises"])
def test_sums_of_a_loss_with_a_kink_are_those_of_its_masses(side, rate):
    """P(ℓ ≤ ℓ(k)) over both pieces of a loss that moves one way, whichever that is."""
    masses = [m.subs(STAIRS, side * STAIRS) for m in (BENT, sp.exp(-rate * STAIRS))]
    ends = (sp.S.Zero, sp.oo) if side > 0 else (-sp.oo, sp.S.Zero)
    support = Support("integers", *ends)
    pair = Pair(STAIRS, support, tuple(masses), (sp.S.One, sp.S.Zero), (sp.S.Zero, sp.S.One))
    rules = mass_rules(monotone_pieces(pair), STAIRS)
    assert len(rules) >= 2
    p, q = (sp.lambdify(STAIRS, mass, "math") for mass in masses)
    places = [side * j for j in range(120)]
    for at in places[:8]:
        (rule,) = [r for r in rules if r.lower <= at <= r.upper]
        loss = math.log(p(at) / q(at))
        assert float(rule.loss.subs(STAIRS, at)) == pytest.approx(loss, abs=1e-12)
        truth = math.fsum(p(j) for j in places if math.log(p(j) / q(j)) <= loss + 1e-9)
        assert float(rule.at_most.subs(STAIRS, at)) == pytest.approx(truth, rel=1e-12)
