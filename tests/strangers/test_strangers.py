"""Every density answers, and agrees with a truth from its own formula within its interval."""

from __future__ import annotations

import math

import pytest
import sympy as sp

import symdp
from strangers.densities import FOUND, LINE, STRANGERS, Stranger
from strangers.truth import pair_of
from symdp.model.reading.parser import parse

COUNTS = (1, 5, 30, 1000)
SAMPLE = (  # answers of a second or so, one of each kind
    "sech squared", "logistic of type I", "two Cauchy scales", "quartic wings",
    "truncated normal", "Gompertz", "wide normal", "Maxwell on both sides",
)  # fmt: skip
# Every density at one of the counts, in turn.
EVERY = [(name, COUNTS[k % len(COUNTS)]) for k, name in enumerate(STRANGERS)]
ROUNDING = 1e-12  # of an ε that was found again


def delta_of(losses, count, epsilon):
    """Return the larger δ of both directions, and how far off it may be."""
    found = [loss.delta(count, epsilon) for loss in losses]
    return max(delta for delta, _ in found), max(off for _, off in found)


def asked_of(losses, count):
    """Return a δ that has a finite ε: 1e-5, or a little above the mass at infinity."""
    infinite = max(loss.infinite for loss in losses)
    least = -math.expm1(count * math.log1p(-infinite))
    return 1e-5 if least < 1e-9 else least + 1e-4 * (1.0 - least)


def agrees(stranger: Stranger, count: int) -> None:
    """Ask for an ε, for δ there, and for ε again; compare with the truth."""
    losses = pair_of(stranger)
    composition = symdp.compose(symdp.Mechanism.from_toml(stranger.toml), count)
    asked = asked_of(losses, count)
    found = composition.epsilon(asked)
    again = composition.delta(found.epsilon)
    truth, off = delta_of(losses, count, found.epsilon)
    assert math.exp(again.log_lower) - off <= truth <= math.exp(again.log_upper) + off
    assert off <= 1e-4 * truth  # else it tells little
    if found.epsilon == 0.0:  # δ(0) is less than was asked for
        assert truth <= asked * (1.0 + ROUNDING) + off
        return
    # Next to the largest loss δ changes by more than that from one double ε to the next.
    if math.exp(again.log_lower) > asked * (1.0 + ROUNDING):
        again = composition.delta(found.epsilon_upper)
        assert math.exp(again.log_lower) <= asked
    back = composition.epsilon(again.delta)
    ends = found.epsilon_lower, found.epsilon_upper, back.epsilon_lower, back.epsilon_upper
    assert None not in ends
    room = ROUNDING * (1.0 + found.epsilon)
    assert ends[0] - room <= ends[3]
    assert ends[2] - room <= ends[1]


@pytest.mark.quick_cases("Gompertz")
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_agrees(name):
    agrees(STRANGERS[name], 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND)
def test_what_a_search_found_agrees(name):
    agrees(STRANGERS[name], 30)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), EVERY)
def test_every_density_agrees(name, count):
    agrees(STRANGERS[name], count)


@pytest.mark.slow
def test_a_formula_of_sympy_is_the_same_mechanism():
    x = sp.Symbol("x", real=True)
    stranger = LINE["sech squared"]
    built = symdp.Mechanism.additive(parse(stranger.formula, {"x": x}), x, shift="exactly")
    both = [
        symdp.compose(m, 30).delta(2) for m in (built, symdp.Mechanism.from_toml(stranger.toml))
    ]
    assert both[0].log_delta == both[1].log_delta


@pytest.mark.slow_cases("double well", "hole of a Laplace")
@pytest.mark.parametrize("name", ["double well", "hole of a Laplace"])
def test_noise_of_several_modes_is_bounded_for_every_shift(name):
    stranger = STRANGERS[name]
    mechanism = symdp.Mechanism.from_toml(stranger.toml.replace('"exactly"', '"at most"'))
    found = symdp.compose(mechanism, 5).delta(2)
    assert found.kind == "bound"
    for shift in ("1", "7/10", "1/3"):
        smaller = Stranger(stranger.formula, stranger.same, sensitivity=shift, kinks=stranger.kinks)
        truth, off = delta_of(pair_of(smaller), 5, 2.0)
        assert truth - off <= found.delta
