"""Two steps of densities in programs, beside sums over a fine grid of places."""

from __future__ import annotations

import cmath
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import symdp
from symdp.emit.standalone.runtime import cut_off
from symdp.model.mechanism import Mechanism

HEAD = (
    'name = "law"\nvariable = "x"\nsupport = {}\n[noise]\nnormalize = true\n'
    'sensitivity = 1\nshift = "exactly"\n'
)
LINE, RAY = '["-oo", "oo"]', '[0, "oo"]'
PLACES = 400_001
LAWS = {  # support, density for SymPy, for NumPy, how far out, ε
    "plateau": (LINE, "1/(1 + (x/10)**20)", lambda x: 1 / (1 + (x / 10) ** 20), 400.0, 0.8),
    "two hills": (
        LINE, "exp(-(x - 3)**2/2) + exp(-(x + 3)**2/4)",
        lambda x: np.exp(-((x - 3) ** 2) / 2) + np.exp(-((x + 3) ** 2) / 4), 40.0, 2.5,
    ),
    "waves": (
        LINE, "(2 + cos(3*x))*exp(-x**2/32)",
        lambda x: (2 + np.cos(3 * x)) * np.exp(-(x**2) / 32), 60.0, 1.7,
    ),
    "spike": (
        LINE, "exp(-abs(x)/5) + 20*exp(-100*x**2)",
        lambda x: np.exp(-abs(x) / 5) + 20 * np.exp(-100 * x**2), 200.0, 0.9,
    ),
    "heavy": (LINE, "1/(1 + abs(x)/3)**4", lambda x: 1 / (1 + abs(x) / 3) ** 4, 8e4, 1.4),
    "one-sided": (RAY, "x**3*exp(-x/2)", lambda x: x**3 * np.exp(-x / 2), 150.0, 0.5),
}  # fmt: skip


def two_steps(density: Any, support: str, far: float, epsilon: float) -> float:
    """Return δ of two steps: the mean, over one step's loss, of the profile of the other."""
    u = np.linspace(-1.0, 1.0, PLACES)
    wide = math.asinh(far * 10)
    x = np.sinh(wide * u) / 10  # dense near 0
    width = np.cosh(wide * u) * wide / 10 * (u[1] - u[0])
    with np.errstate(all="ignore"):
        q = np.where(x >= 0, density(x), 0.0) if support == RAY else density(x)
        p = np.where(x >= 1, density(x - 1), 0.0) if support == RAY else density(x - 1)
        mass = float(q @ width)
        p, q = p * width / mass, q * width / mass
        loss = np.where(p > 0, np.log(p) - np.log(q), -np.inf)
    order = np.argsort(loss)
    sorted_loss = loss[order]
    beyond_p = np.append(np.cumsum(p[order][::-1])[::-1], 0.0)
    beyond_q = np.append(np.cumsum(q[order][::-1])[::-1], 0.0)
    seen = p > 0
    left = epsilon - loss[seen]
    first = np.searchsorted(sorted_loss, left)
    profile = beyond_p[first] - np.exp(np.minimum(left, 700.0)) * beyond_q[first]
    return float(p[seen] @ profile)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name not in ("heavy", "one-sided") else [])
        for name in LAWS
    ],
)
def test_two_steps_lie_between_the_ends_of_a_program(name: str):
    support, text, density, far, epsilon = LAWS[name]
    law = Mechanism.from_toml(HEAD.format(support) + f'density = "{text}"\n')
    program: dict[str, Any] = {"__name__": "program"}
    exec(symdp.derive(law).to_program("python"), program)
    truth = math.log(two_steps(density, support, far, epsilon))
    lower, upper = program["log_delta_ends"](epsilon, 2, "remove")
    assert lower - 3e-8 <= truth <= upper + 3e-8
    assert upper - lower <= 3e-6  # waves: the nodes that a law may have


def test_a_transform_of_scattered_losses_is_their_sum():
    draws = np.random.default_rng(5)
    weight, deviation = draws.random(500), draws.normal(size=500) * 4
    weight /= weight.sum()
    values = cut_off.transformed(weight, deviation, 0.02, 1024.0)
    index = np.arange(1024)
    exact = np.exp(1j * 0.02 * np.outer(index, deviation)) @ weight
    assert abs(values[:1024] + 1j * values[1024:] - exact).max() < cut_off.TRANSFORMED


@pytest.mark.parametrize(("count", "epsilon"), [(5, 0.00189), (1000, 0.01875)])
def test_rare_integers_are_answered_at_tilts_at_which_steps_are_wide(count: int, epsilon: float):
    """A line that is too short has a sum below 0: it was taken for a step that is too wide."""
    law = symdp.mechanisms.discrete_gaussian(sigma=1).subsample("poisson", "1/10000")
    program: dict[str, Any] = {"__name__": "program"}
    exec(symdp.derive(law).to_program("python"), program)
    lower, upper = program["log_delta_ends"](epsilon, count, "remove")
    exact = symdp.compose(law, count).delta(epsilon, direction="remove").log_delta
    assert lower <= exact <= upper
    assert upper - lower <= 1e-4


@pytest.mark.parametrize("is_short", [True, False])
def test_the_ends_of_a_line_count_what_its_window_leaves_out(is_short: bool, monkeypatch: Any):
    """log δ is that of Re Σ φⁿ/(z(1 + z)); left out are (1 − window)|φ|ⁿ/|z(1 + z)| and more."""
    tilt, half_step, epsilon, beyond = 0.75, 0.2, 0.3, 1e-4
    frequency = half_step * np.arange(1, 7)
    turn, length = 0.4 * frequency, np.exp(-0.3 * frequency**2)
    window, near = 1 / (1 + frequency), np.full(6, 0.25)
    far = 1e-3 if is_short else 1e3
    line = SimpleNamespace(
        t=tilt, half_step=half_step, far=far, scale=0.1, centre=epsilon, frequency=frequency,
        sign=np.tile([-1.0, 1.0], 3), window=window, near=near, length=length, turn=turn,
        unsure=np.zeros(6), vague=0.0, beyond=beyond,
    )  # fmt: skip
    monkeypatch.setattr(cut_off, "log_escaped", lambda _: -math.inf)
    law = SimpleNamespace(upper=0.0, lower=0.0)
    cut_off.set_cut_ends(law, line, epsilon)
    value, left_out = 0.5 / (tilt * (1 + tilt)), beyond
    transform = 0.5 * float(cut_off.near_at(0.0))
    for w, phase, size, part in zip(frequency, turn, length, window, strict=True):
        z = complex(tilt, w)
        term = size * cmath.exp(1j * phase) / (z * (1 + z))
        value += part * term.real
        left_out += (1 - part) * abs(term)
        transform += 0.25 * size * math.cos(phase)
    assert line.value == pytest.approx(value, rel=1e-13)
    assert line.change == pytest.approx(left_out if is_short else abs(transform) / far**2)
    log_unit = 0.1 - tilt * epsilon + math.log(half_step / math.pi)
    assert law.upper >= log_unit + math.log(value + line.change)
