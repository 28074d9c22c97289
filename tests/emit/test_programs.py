"""Emitted accountants, run in three languages: δ and ε of the package, or one clear sentence."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
import sympy as sp
from emitted import (
    CASES,
    COMPILER,
    NODE,
    by_command,
    by_node,
    compiled,
    package,
    python_command,
    write,
)
from shell import Shell

import symdp
from symdp import mechanisms
from symdp.emit.program import compile_program
from symdp.emit.standalone import NoLinesError
from symdp.emit.standalone.lines import lines
from symdp.emit.standalone.write import CONDITIONS
from symdp.errors import InputError
from symdp.model.sampling import _DOMAINS

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
needs_node = pytest.mark.skipif(NODE is None, reason="no node, which runs JavaScript")
# of δ relative, so of log δ absolute, by which a program's upper end may lie above the package's
# value; more where ε or log δ is large and doubles hold no more of it, and by the rounding of the
# places of each step
ACCURATE, ROUNDING, PLACED = 2e-12, 4e-15, 1e-17
SLOW = (
    *("gaussian", "sampled gaussian", "student", "adaptive clipping", "sampled laplace"),
    "generalised normal",
)


def agree(found: float, expected: float, epsilon: float, count: int) -> None:
    if expected == -math.inf:
        assert found == -math.inf
    else:
        size = abs(expected) + abs(epsilon)
        most = 2.2 * (ACCURATE + ROUNDING * size) + PLACED * count
        assert -ROUNDING * size <= found - expected <= most


@needs_node
@pytest.mark.quick_cases("randomized response")
@pytest.mark.parametrize("name", CASES)
def test_javascript_gives_the_package_s_delta(name, tmp_path: Path):
    asked = CASES[name].asked
    questions = [("log_delta", e, n, values, side) for values, n, e, side in asked]
    found = by_node(write(name, "javascript", tmp_path), questions)
    for one, question in zip(found, asked, strict=True):
        assert isinstance(one, float | int), (question, one)
        agree(one, package(name, question), question[2], question[1])


@needs_compiler
@pytest.mark.quick_cases("approximate")
@pytest.mark.parametrize("name", CASES)
def test_c_gives_the_package_s_delta(name, tmp_path: Path):
    command = compiled(write(name, "c", tmp_path))
    for question in CASES[name].asked:
        agree(by_command(command, question), package(name, question), question[2], question[1])


@pytest.mark.slow
@needs_compiler
def test_a_program_in_c_says_how_it_is_called(tmp_path: Path):
    command = compiled(write("randomized response", "c", tmp_path))
    for words, code in (((), 2), (("--help",), 0)):
        ran = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
        assert ran.returncode == code
        said = ran.stderr + ran.stdout
        assert said.startswith("usage: ")
        assert "epsilon=VALUE|delta=VALUE n=VALUE epsilon_0=VALUE [remove|add|both]" in said


def test_a_program_in_python_lists_its_names(tmp_path: Path):
    text = write("randomized response", "python", tmp_path).read_text()
    assert '"curve", "delta", "epsilon", "epsilon_ends", "log_delta", "log_delta_ends"' in text


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("name", ["laplace", "student", "discrete gaussian", "k-ary response"])
def test_c_is_clean_under_the_sanitizers(name, tmp_path: Path):
    command = compiled(write(name, "c", tmp_path), "-fsanitize=address,undefined", "-g")
    for question in CASES[name].asked[:4]:
        by_command(command, question)


@pytest.mark.quick_cases("k-ary response")
@pytest.mark.parametrize("name", CASES)
def test_python_gives_the_package_s_delta(name, tmp_path: Path):
    command = python_command(write(name, "python", tmp_path))
    for question in CASES[name].asked[:3]:
        agree(by_command(command, question), package(name, question), question[2], question[1])


@pytest.mark.quick_cases("randomized response-values3-60-1e-06", "approximate-values4-20-0.001")
@needs_node
@pytest.mark.parametrize(
    ("name", "values", "count", "delta"),
    [
        ("gaussian", {"sigma": 20.0}, 100, 1e-5),
        ("gaussian", {"sigma": 20.0}, 100, 0.9),
        ("gaussian", {"sigma": 3.0}, 50, 1e-300),
        ("randomized response", {"epsilon_0": 0.2}, 60, 1e-6),
        ("approximate", {"epsilon_0": 0.5, "delta_0": 1e-6}, 20, 1e-3),
        ("exponential", {"epsilon_0": 0.1}, 60, 1e-9),
        ("gumbel", {"b": 2.0}, 1, 1e-3),
        ("sampled gaussian", {"sigma": 1.56, "q": 0.00115}, 9, 0.0167),  # 0
    ],
)
def test_epsilon_is_the_package_s(name, values, count, delta, tmp_path: Path):
    source = write(name, "javascript", tmp_path)
    (found,) = by_node(source, [("epsilon", delta, count, values, "both")])
    expected = symdp.compose(CASES[name].mechanism(**values), count).epsilon(delta).epsilon
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.slow
@needs_node
def test_a_spike_s_recurrence_is_not_missed(tmp_path: Path):
    """Far out logistic noise has the losses ±1/s almost alone: |φ| is near 1 again and again."""
    source = write("logistic", "javascript", tmp_path)
    asked = [({"s": s}, n, e, "remove") for s, n, e in ((0.05, 60, 1100.0), (0.1, 40, 350.0))]
    ends = by_node(source, [("log_delta_ends", e, n, v, d) for v, n, e, d in asked])
    for (low, high), question in zip(ends, asked, strict=True):
        assert low <= package("logistic", question) <= high <= low + 0.01


@pytest.mark.slow_cases(
    "question0-sigma must be above 0",
    "question1-sigma must be above 0",
    "question3-sigma must be a finite number",
    "question5-n must be a whole number from 1 to 1e15",
)
@needs_node
@pytest.mark.parametrize(
    ("question", "told"),
    [
        (("delta", 1.0, 5, {"sigma": 0}, "both"), "sigma must be above 0"),
        (("delta", 1.0, 5, {"sigma": -1}, "both"), "sigma must be above 0"),
        (("delta", 1.0, 5, {}, "both"), "a value is missing: sigma"),
        (("delta", 1.0, 5, {"sigma": "x"}, "both"), "sigma must be a finite number"),
        (("delta", 1.0, 5, {"sigma": 1, "tau": 2}, "both"), "unknown: tau"),
        (("delta", 1.0, 2.5, {"sigma": 1}, "both"), "n must be a whole number from 1 to 1e15"),
        (("delta", 1.0, 0, {"sigma": 1}, "both"), "n must be a whole number from 1 to 1e15"),
        (("delta", None, 3, {"sigma": 1}, "both"), "epsilon must be a finite number"),
        (("delta", 1.0, 3, {"sigma": 1}, "sideways"), "direction must be remove, add or both"),
        (("epsilon", 0, 3, {"sigma": 1}, "both"), "delta must be above 0 and below 1"),
    ],
)
def test_javascript_refuses_bad_input(question, told, tmp_path: Path):
    assert by_node(write("gaussian", "javascript", tmp_path), [question]) == [told]


@pytest.fixture(scope="module")
def commands(tmp_path_factory) -> list[list[str]]:
    folder = tmp_path_factory.mktemp("programs")
    program = compiled(write("gaussian", "c", folder))
    return [program, python_command(write("gaussian", "python", folder))]


@pytest.mark.quick_cases(
    "epsilon=1 n=5 sigma=1/0-no finite number: sigma=1/0",
    "epsilon=1 n=5 sigma=1 tau=2-unknown: tau=2",
    "epsilon=1 n=5 sigma=1 sideways-unknown: sideways",
)
@needs_compiler
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("epsilon=1 n=5", "a value is missing: sigma"),
        ("epsilon=1 n=5 sigma=0", "sigma must be above 0"),
        ("epsilon=1 n=5 sigma=1/0", "no finite number: sigma=1/0"),
        ("epsilon=1 n=5 sigma=nan", "no finite number: sigma=nan"),
        ("epsilon=1 n=0 sigma=1", "n must be a whole number from 1 to 1e15"),
        ("delta=2 n=5 sigma=1", "delta must be above 0 and below 1"),
        ("epsilon=1 n=5 sigma=1 tau=2", "unknown: tau=2"),
        ("epsilon=1 n=5 sigma=1 sideways", "unknown: sideways"),
    ],
)
def test_wrong_words_are_one_line(words, told, commands):
    for command in commands:
        line = [*command, *words.split()]
        ran = subprocess.run(line, capture_output=True, text=True, check=False)
        assert ran.returncode in (1, 2)
        assert (ran.stdout, ran.stderr.removeprefix("no answer: ")) == ("", f"{told}\n")


@pytest.mark.slow
@needs_node
def test_what_no_sum_tells_is_refused(tmp_path: Path):
    source = write("approximate", "javascript", tmp_path)
    values = {"epsilon_0": 0.5, "delta_0": 0.01}
    assert by_node(source, [("epsilon", 1e-5, 9, values, "both")]) == [
        "no epsilon is finite: delta is below the probability of an infinite loss"
    ]


@pytest.mark.slow
def test_what_no_program_has_is_said():
    x = sp.Symbol("x", real=True)
    wave = sp.besselj(0, x) ** 2 + 1 / (1 + x**2)
    with pytest.raises(NoLinesError, match=r"no program has Bessel functions that oscillate"):
        lines(compile_program(wave, [x]), "c", ["x"], ["1.0"] * 9)
    x, y, b = sp.Symbol("x"), sp.Symbol("y"), sp.Symbol("b", positive=True)
    shape = sp.exp(-((x**2 + b) ** sp.Rational(3, 4)))
    mass = sp.Integral(shape.subs(x, y), (y, -sp.oo, sp.oo))
    noise = symdp.Mechanism.additive(shape / mass, x)
    with pytest.raises(InputError, match="give values to b"):
        symdp.derive(noise).to_program("javascript")


def test_every_domain_has_a_condition_in_code():
    assert set(CONDITIONS) == set(_DOMAINS)


@pytest.mark.parametrize(
    ("values", "name"), [({}, "gaussian(sigma)"), ({"sigma": 2}, "gaussian(sigma=2)")]
)
def test_a_program_names_its_mechanism(values, name):
    program = symdp.derive(mechanisms.gaussian(**values)).to_program("python")
    assert program.startswith(f'"""Privacy accountant of {name}.\n')


def test_exact_is_accepted_and_changes_nothing(shell: Shell):
    plain = shell("derive gaussian --format c").out
    assert plain == shell("derive gaussian --format c --exact").out
    assert "accurate to about 1e-12" in plain
    assert "estimate" not in plain
    assert shell("derive gaussian sigma=2 --exact").code == 2
    assert "export function epsilon" in shell("derive gaussian --format javascript").out


@pytest.mark.slow
@needs_node
def test_a_delta_below_the_doubles_is_not_shown_as_zero(tmp_path: Path):
    question = ("delta", 2000.0, 10**6, {"sigma": 30.0}, "remove")
    assert by_node(write("gaussian", "javascript", tmp_path), [question]) == [5e-324]


@pytest.mark.slow
def test_a_program_says_in_which_direction_the_answer_is_larger(shell: Shell, tmp_path: Path):
    program = shell("derive gumbel --format python").out
    file = tmp_path / "gumbel.py"
    file.write_text(program, "utf-8")
    steps = symdp.compose(mechanisms.gumbel(b=5), 100)
    for side, larger in {"both": "add", "remove": "remove"}.items():
        words = ["epsilon=2", "n=100", "b=5", side]
        ran = subprocess.run(
            [sys.executable, str(file), *words], capture_output=True, text=True, check=True
        )
        first, second = ran.stdout.splitlines()
        right = steps.delta(2.0, direction=larger).delta
        assert float(first.removeprefix("delta = ")) == pytest.approx(right, rel=1e-9)
        assert second == f"direction = {larger}"
