"""Programs at few steps: between the ends that they print, in three languages."""

from __future__ import annotations

import itertools
import math
import re
import runpy
import subprocess
from pathlib import Path

import mpmath
import numpy as np
import pytest
from emitted import CASES, COMPILER, NODE, by_node, compiled, python_command, write

import symdp
import symdp.mechanisms

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
needs_node = pytest.mark.skipif(NODE is None, reason="no node, which runs JavaScript")
WIDE = 1e-5  # of log δ, far more than is left


def two_laplace_steps(b: float, epsilon: float) -> float:
    """Return δ of two steps of Laplace noise from δ of one, which is closed, over the other."""
    top = 1 / mpmath.mpf(b)

    def one(e: mpmath.mpf) -> mpmath.mpf:
        if e <= -top:
            return 1 - mpmath.exp(e)
        return 1 - mpmath.exp((e - top) / 2) if e < top else mpmath.mpf(0)

    # under P a loss is 1/b with 1/2, −1/b with exp(−1/b)/2, and has a density between the two
    atoms = (one(epsilon - top) + mpmath.exp(-top) * one(epsilon + top)) / 2
    kinks = sorted({-top, top, *(e for e in (epsilon - top, epsilon + top) if -top < e < top)})
    between = mpmath.quad(lambda x: mpmath.exp((x - top) / 2) / 4 * one(epsilon - x), kinks)
    return float(atoms + between)


def normal_steps(sigma: float, count: int, epsilon: float) -> float:
    """Return δ of steps of normal noise, which is two tails of a normal law."""
    shift = mpmath.sqrt(count) / sigma
    below = mpmath.ncdf(shift / 2 - epsilon / shift)
    return float(below - mpmath.exp(epsilon) * mpmath.ncdf(-shift / 2 - epsilon / shift))


def between(ends: tuple[float, float], delta: float) -> None:
    low, high = ends
    assert low <= math.log(delta) <= high
    assert high - low <= WIDE


@needs_node
def test_few_steps_lie_between_their_ends(tmp_path: Path):
    laplace = [(b, e) for b, e in ((3.0, 0.5), (0.4, 4.7))]
    normal = [(3.0, 7, 1.06)]
    asked = [("log_delta_ends", e, 2, {"b": b}, "both") for b, e in laplace]
    for (b, e), ends in zip(
        laplace, by_node(write("laplace", "javascript", tmp_path), asked), strict=True
    ):
        between(ends, two_laplace_steps(b, e))
    asked = [("log_delta_ends", e, n, {"sigma": s}, "add") for s, n, e in normal]
    for (s, n, e), ends in zip(
        normal, by_node(write("gaussian", "javascript", tmp_path), asked), strict=True
    ):
        between(ends, normal_steps(s, n, e))


@pytest.mark.slow
@needs_compiler
def test_c_and_python_print_the_same_ends(tmp_path: Path):
    programs = [
        compiled(write("laplace", "c", tmp_path)),
        python_command(write("laplace", "python", tmp_path)),
    ]
    texts = []
    for command in programs:
        words = ["epsilon=0.5", "n=2", "b=3", "remove"]
        ran = subprocess.run([*command, *words], capture_output=True, text=True, check=True)
        number = re.match(r"delta = (\S+)\n", ran.stdout)
        assert number is not None
        truth = two_laplace_steps(3.0, 0.5)
        assert truth <= float(number[1]) <= truth * (1 + WIDE)
        texts.append(number[1][:10])
    assert texts[0] == texts[1]


THREE = 'name = "three"\nsupport = [0, 1, 2]\n[pair]\nP = ["1/2", "1/3", "1/6"]\nQ = {}\n'


def test_atoms_off_any_lattice_lie_between_their_ends(tmp_path: Path):
    source = tmp_path / "three.py"
    q = [3 / 10, 1 / 20, 13 / 20]
    law = symdp.Mechanism.from_toml(THREE.format('["3/10", "1/20", "13/20"]'))
    source.write_text(symdp.derive(law).to_program("python"), "utf-8")
    p = [1 / 2, 1 / 3, 1 / 6]
    for count, epsilon in ((2, 0.7), (5, 1.3)):
        truth = sum(
            max(
                0.0, math.prod(p[i] for i in way) - math.exp(epsilon) * math.prod(q[i] for i in way)
            )
            for way in itertools.product(range(3), repeat=count)
        )
        words = [f"epsilon={epsilon}", f"n={count}", "remove"]
        ran = subprocess.run(
            [*python_command(source), *words], capture_output=True, text=True, check=True
        )
        upper = float(ran.stdout.split()[2])
        least = re.search(r"delta >= (\S+)", ran.stdout)
        lower = float(least[1]) if least else upper * (1 - 1e-6)
        assert lower <= truth <= upper
        assert upper - lower <= 1e-3 * truth


def test_a_line_that_is_not_laid_gives_no_answer_of_another_epsilon(monkeypatch):
    from symdp.emit.standalone.runtime import accountant, law
    from symdp.emit.standalone.runtime.primitives import NoAnswerError

    one = law.law_of(np.ones(1), 1.0, 3.0)
    one.loss, one.log_weight, one.escaped = np.ones(1), np.zeros(1), 0.0
    one.settled, one.lower, one.upper = 1.0, -5.0, -5.0 + 1e-9  # as an earlier question left it
    monkeypatch.setattr(accountant, "tilt_of_short_line", lambda *_: 0.5)
    monkeypatch.setattr(accountant, "cut_width", lambda *_: math.inf)
    with pytest.raises(NoAnswerError, match="no line"):
        accountant.between_ends(one, 1.0, 0.5)


@pytest.mark.slow
@needs_node
def test_epsilon_s_ends_hold_delta_s(tmp_path: Path):
    """Where log δ's lower end is at most the target, ε's lower end is no larger, and so above."""
    source = write("laplace", "javascript", tmp_path)
    target, values = 1e-4, {"b": 2.0}
    ((low, high),) = by_node(source, [("epsilon_ends", target, 3, values, "remove")])
    assert low < high < low + WIDE
    asked = [("log_delta_ends", e, 3, values, "remove") for e in (low - 1e-6, high + 1e-6)]
    before, after = by_node(source, asked)
    assert before[1] >= math.log(target) >= after[0]
    exact = symdp.compose(CASES["laplace"].mechanism(b=2), 3).epsilon(target)
    assert low <= exact.epsilon <= high


@pytest.mark.slow
def test_an_epsilon_is_finite_where_the_search_never_had_an_upper_end(tmp_path: Path):
    """It printed ε = ∞: noise that falls like e^{−|x| − x²/10}, sampled, seven steps."""
    noise = symdp.Mechanism.from_toml(
        'name = "both"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[noise]\nnormalize = true\n'
        'density = "exp(-abs(x) - x**2/10)"\nsensitivity = 1\n'
    ).subsample("poisson", "1/5")
    program = tmp_path / "both.py"
    program.write_text(symdp.derive(noise).to_program("python"), encoding="utf-8")
    words = [*python_command(program), "delta=1e-5", "n=7"]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    epsilon = float(re.search(r"^epsilon\s*(?:<=|=)\s*(\S+)", printed, re.MULTILINE)[1])
    truth = symdp.compose(noise, 7).epsilon(1e-5, direction="remove").epsilon
    assert truth <= epsilon <= truth * (1 + 1e-6)


@pytest.mark.slow
def test_a_pair_of_all_shifts_has_a_program(tmp_path: Path):
    """Noise of several modes is answered by a list of outcomes, whose masses add up to 1."""
    noise = symdp.Mechanism.from_toml(
        'name = "waves"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[noise]\nnormalize = true\n'
        'density = "(2 + cos(2*x))*exp(-abs(x)/4)"\nsensitivity = 1\n'
    )
    program = tmp_path / "waves.py"
    program.write_text(symdp.derive(noise).to_program("python"), encoding="utf-8")
    words = [*python_command(program), "epsilon=1.47", "n=2", "remove"]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    bound = symdp.compose(noise, 2).delta(1.47, direction="remove").delta
    assert float(printed.split()[2]) == pytest.approx(bound, rel=1e-9)


@pytest.mark.slow
@needs_compiler
def test_masses_that_fall_like_a_power_are_integrated_far_out(tmp_path: Path):
    """δ of one step is a sum over integers of 1/(3 + k)³, whose tails are Hurwitz zetas."""
    noise = symdp.Mechanism.from_toml(
        'name = "zeta"\nvariable = "k"\nsupport = "naturals"\n[noise]\nnormalize = true\n'
        'density = "1/(3 + k)**3"\nsensitivity = 1\n'
    )
    source = tmp_path / "zeta.c"
    source.write_text(symdp.derive(noise).to_program("c"), "utf-8")
    epsilon, whole = 0.2, mpmath.zeta(3, 3)
    # added: outcomes k ≥ 1 of (3 + k)^−3 against (2 + k)^−3, and k = 0 alone; removed: never below
    excess = sum(
        max(0.0, float((3 + k) ** -3.0 - math.exp(epsilon) * (2 + k) ** -3.0)) for k in range(1, 9)
    )
    truth = (1 / mpmath.mpf(27) + excess) / whole
    words = [f"epsilon={epsilon}", "n=1", "add"]
    ran = subprocess.run([*compiled(source), *words], capture_output=True, text=True, check=True)
    assert float(ran.stdout.split()[2]) == pytest.approx(float(truth), rel=1e-10)


@pytest.mark.slow
@needs_compiler
def test_a_loss_that_is_no_number_far_out_does_not_end_an_answer(tmp_path: Path):
    """The loss is a ratio of two cosh, beyond the doubles where the density is e^−700."""
    noise = symdp.Mechanism.from_toml(
        'name = "wide"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[noise]\nnormalize = true\n'
        'density = "1/(cosh(x/3) + cos(2))"\nsensitivity = 1\n'
    ).subsample("poisson", "1/10")
    source = tmp_path / "wide.c"
    source.write_text(symdp.derive(noise).to_program("c"), "utf-8")
    words = ["epsilon=0.0186", "n=1", "add"]
    ran = subprocess.run([*compiled(source), *words], capture_output=True, text=True, check=True)
    exact = symdp.compose(noise, 1).delta(0.0186, direction="add").delta
    assert float(ran.stdout.split()[2]) == pytest.approx(exact, rel=1e-10)


@pytest.mark.slow
@needs_node
def test_close_to_m_s_end_a_grid_takes_a_tilt_under_which_it_is_narrow(tmp_path: Path):
    """Sampled Gumbel noise of one sign, whose loss has a tail like e^−3.52ℓ: fifty steps."""
    noise = symdp.mechanisms.gumbel(b=4).subsample("poisson", "1/10").shifted("down")
    source = tmp_path / "down.mjs"
    source.write_text(symdp.derive(noise).to_program("javascript"), "utf-8")
    ((low, high),) = by_node(source, [("epsilon_ends", 1e-5, 50, {}, "remove")])
    exact = symdp.compose(noise, 50).epsilon(1e-5, direction="remove").epsilon
    assert low <= exact <= high <= low * (1 + 1e-4)


@pytest.mark.parametrize(("sigma", "count", "epsilon"), [(100.0, 3, 2.0), (600.0, 30, 2.0)])
def test_nodes_lie_where_the_tilted_law_has_its_mass(sigma, count, epsilon, tmp_path: Path):
    """The mean under the tilt lies tens of deviations from those of the tilts that nodes serve."""
    names = runpy.run_path(str(write("gaussian", "python", tmp_path)))
    low, high = names["log_delta_ends"](epsilon, count, "remove", sigma=sigma)
    with mpmath.workdps(40):
        shift = mpmath.sqrt(count) / sigma
        below = mpmath.ncdf(shift / 2 - epsilon / shift)
        above = mpmath.exp(epsilon) * mpmath.ncdf(-shift / 2 - epsilon / shift)
        log_delta = float(mpmath.log(below - above))
    assert low <= log_delta <= high
    assert high - low <= WIDE


def test_integers_that_are_hardly_seen_have_a_delta(tmp_path: Path):
    """δ of one step of discrete normal noise is a sum: far out e^−800, not 0."""
    names = runpy.run_path(str(write("discrete gaussian", "python", tmp_path)))
    with mpmath.workdps(40):
        mass = {k: mpmath.exp(-(mpmath.mpf(k) ** 2) / 2) for k in range(-101, 102)}
        whole = mpmath.fsum(mass.values())
        for epsilon in (10.2, 15.2, 40.2):
            beyond = [k for k in range(-100, 101) if k - 0.5 > epsilon]
            terms = [mass[k - 1] - mpmath.exp(epsilon) * mass[k] for k in beyond]
            log_delta = float(mpmath.log(mpmath.fsum(terms) / whole))
            low, high = names["log_delta_ends"](epsilon, 1, "remove", sigma=1.0)
            assert low <= log_delta <= high
            assert high - low <= WIDE
