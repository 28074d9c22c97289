"""Places next to a narrow part of a law are rounded by more than digits of its density allow."""

from __future__ import annotations

import itertools
import math
import runpy
from functools import cache
from pathlib import Path

import mpmath
import pytest
import sympy as sp
from emitted import COMPILER, NODE, by_command, by_node, compiled, python_command

import symdp
import symdp.mechanisms

X = sp.Symbol("x", real=True)
WIDTH = sp.Rational(1, 10**5)
WEIGHT = sp.Rational(1, 10)


def _normal(centre, width):
    return sp.exp(-(((X - centre) / width) ** 2) / 2) / (width * sp.sqrt(2 * sp.pi))


@pytest.fixture(scope="module")
def spiked() -> symdp.Derivation:
    """A normal law, a tenth of which is a spike at 3 of width 1e-5, beside a normal law."""
    spike = (1 - WEIGHT) * _normal(sp.Rational(1, 3), 1) + WEIGHT * _normal(3, WIDTH)
    return symdp.derive(symdp.Mechanism.from_pair(spike, _normal(0, 1), X))


def log_delta(epsilon: float, is_removed: bool) -> mpmath.mpf:
    """Return log δ of one step at 40 digits, from the density as a sum of two normal laws."""
    with mpmath.workdps(40):

        def of(density_p, density_q):
            def gain(x):
                return max(density_p(x) - mpmath.exp(epsilon) * density_q(x), mpmath.mpf(0))

            narrow = [3 + mpmath.mpf(k) / 10**5 for k in range(-12, 13)]
            wide = [-40, -10, 0, 2, 5, 10, 40]
            places = sorted({*narrow, *(mpmath.mpf(x) for x in wide), *crossings(epsilon)})
            return mpmath.quad(gain, places)

        def p(x):
            main = mpmath.npdf(x, mpmath.mpf(1) / 3, 1)
            return mpmath.mpf("0.9") * main + mpmath.npdf(x, 3, mpmath.mpf(10) ** -5) / 10

        def q(x):
            return mpmath.npdf(x, 0, 1)

        def crossings(level):
            sign = 1 if is_removed else -1

            def loss(x):
                return sign * mpmath.log(p(x) / q(x)) - level

            grid = [mpmath.mpf(k) / 7 for k in range(-70, 71)]
            grid = sorted([*grid, *(3 + mpmath.mpf(k) / 10**5 for k in range(-12, 13))])
            changed = [(a, b) for a, b in itertools.pairwise(grid) if loss(a) * loss(b) < 0]
            return [mpmath.findroot(loss, ends, solver="anderson") for ends in changed]

        return mpmath.log(of(p, q) if is_removed else of(q, p))


@pytest.mark.parametrize(("epsilon", "direction"), [(2.0, "remove"), (0.5, "remove"), (0.5, "add")])
def test_one_step_holds_what_rounding_leaves_open(spiked, epsilon, direction, tmp_path: Path):
    source = tmp_path / "spiked.py"
    source.write_text(spiked.to_program("python"), "utf-8")
    lower, upper = runpy.run_path(str(source))["log_delta_ends"](epsilon, 1, direction)
    assert lower <= log_delta(epsilon, direction == "remove") <= upper
    assert upper - lower < 1e-9


@pytest.mark.skipif(COMPILER is None or NODE is None, reason="needs a C compiler and node")
def test_every_language_counts_it(spiked, tmp_path: Path):
    truth = log_delta(2.0, True)
    programs = {"python": "spiked.py", "c": "spiked.c", "javascript": "spiked.mjs"}
    for language, name in programs.items():
        source = tmp_path / name
        source.write_text(spiked.to_program(language), "utf-8")
        if language == "javascript":
            [found] = by_node(source, [("log_delta", 2.0, 1, {}, "remove")])
        else:
            command = compiled(source) if language == "c" else python_command(source)
            found = by_command(command, ({}, 1, 2.0, "remove"))
        assert truth <= found + 4e-16 * abs(found) <= truth + 1e-9, language
        assert math.isfinite(found)


@pytest.mark.parametrize("short", [0.5, 1e-4, 1e-6, 1e-9])
@pytest.mark.parametrize("scale", [3.0, 0.5, 0.01])
def test_close_to_the_largest_loss_rounded_losses_count(scale, short, tmp_path: Path):
    """δ of one Laplace release is 1 − exp((ε − 1/b)/2), whose digits ε − 1/b has lost."""
    source = tmp_path / "laplace.py"
    source.write_text(_laplace(), "utf-8")
    epsilon = (1 - short) / scale
    lower, upper = runpy.run_path(str(source))["log_delta_ends"](epsilon, 1, b=scale)
    with mpmath.workdps(40):
        truth = mpmath.log(-mpmath.expm1((mpmath.mpf(epsilon) - 1 / mpmath.mpf(scale)) / 2))
    assert lower <= truth <= upper
    assert upper - lower < 1e-11 + 2e-15 / short


@cache
def _laplace() -> str:
    return symdp.derive(symdp.mechanisms.laplace).to_program("python")
