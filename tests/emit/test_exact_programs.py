"""Emitted exact accountants, compiled and run: δ of the package to 1e-12, or one clear line."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from shell import Shell

import symdp
from symdp import mechanisms
from symdp.emit.standalone.lines import NoLinesError
from symdp.errors import InputError
from symdp.law.standalone import to_c, to_python
from symdp.model.mechanism import Mechanism

COMPILER = shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
ACCURATE = 1e-12  # of δ, relative; of log δ where δ is tiny: what both files promise


@dataclass(frozen=True)
class Case:
    """A mechanism, values for its free parameters, and questions (n, ε)."""

    mechanism: Mechanism
    values: dict[str, object]
    questions: tuple[tuple[int, float], ...]


CASES = {
    "gaussian": Case(
        mechanisms.gaussian, {"sigma": "3/2"}, ((1, 1.0), (30, 2.0), (40, -1.0), (1000, 800.0))
    ),
    "sampled gaussian": Case(
        mechanisms.gaussian.subsample("poisson", "q"),
        {"sigma": 1.5, "q": "1/100"},
        ((1000, 1.0),),
    ),
    "logistic": Case(mechanisms.logistic, {"s": 3}, ((60, 2.0),)),
    "gumbel": Case(mechanisms.gumbel, {"b": 4}, ((60, 2.0),)),
    "laplace": Case(mechanisms.laplace, {"b": 6}, ((400, 3.0),)),
    "student": Case(mechanisms.student_t(nu=3), {"s": 2}, ((60, 2.0), (1000, 50.0))),
    "exponential": Case(mechanisms.exponential, {"epsilon_0": 0.1}, ((30, 1.0), (30, 3.5))),
    "discrete laplace": Case(mechanisms.discrete_laplace, {"b": 4}, ((50, 2.0), (1000, 30.0))),
    "discrete gaussian": Case(mechanisms.discrete_gaussian(sigma=3), {}, ((50, 2.0),)),
    "randomized response": Case(
        mechanisms.randomized_response, {"epsilon_0": 0.2}, ((50, 2.0), (1000, 100.0))
    ),
    "k-ary response": Case(
        mechanisms.k_ary_randomized_response, {"epsilon_0": 1, "k": 3}, ((5, 4.9),)
    ),
    "approximate": Case(
        mechanisms.approximate_dp, {"epsilon_0": 0.5, "delta_0": 0.001}, ((20, 3.0),)
    ),
    "adaptive clipping": Case(mechanisms.adaptive_clipping, {"z": 5, "sigma_b": 40}, ((100, 4.0),)),
}


def arguments(case: Case, count: int, epsilon: float, *more: str) -> list[str]:
    values = [f"{name}={value}" for name, value in case.values.items()]
    return [f"epsilon={epsilon!r}", f"n={count}", *values, *more]


def log_delta_of(ran: subprocess.CompletedProcess[str]) -> float:
    assert ran.returncode == 0, ran.stderr
    found = re.match(r"delta = (exp\()?(\S+?)\)?\n", ran.stdout)
    assert found is not None
    assert "exact to about 1e-12" in ran.stdout
    number = float(found[2])
    if found[1]:
        return number
    return math.log(number) if number > 0 else -math.inf


def compare(case: Case, command: list[str]) -> None:
    own = case.mechanism(**case.values) if case.values else case.mechanism
    if "q" in case.values:
        own = mechanisms.gaussian(sigma=case.values["sigma"]).subsample("poisson", case.values["q"])
    for count, epsilon in case.questions:
        for direction in ("remove", "add", "both"):
            words = [*command, *arguments(case, count, epsilon, direction)]
            found = log_delta_of(subprocess.run(words, capture_output=True, text=True, check=False))
            answer = symdp.compose(own, count).delta(epsilon, direction=direction)
            if answer.log_delta == -math.inf:
                assert found == -math.inf
            else:
                assert found == pytest.approx(answer.log_delta, rel=1e-14, abs=ACCURATE)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder, built = tmp_path_factory.mktemp("exact"), {}

    def build(name: str) -> list[str]:
        if name not in built:
            source = folder / f"{name.replace(' ', '_')}.c"
            source.write_text(to_c(symdp.derive(CASES[name].mechanism), exact=True))
            built[name] = [str(source.with_suffix(""))]
            options = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic"]
            subprocess.run(
                [str(COMPILER), *options, "-o", *built[name], str(source), "-lm"], check=True
            )
        return built[name]

    return build


@needs_compiler
@pytest.mark.slow_cases("logistic", "gaussian")
@pytest.mark.parametrize("name", CASES)
def test_c_gives_the_package_s_delta(name, program):
    compare(CASES[name], program(name))


@pytest.mark.slow_cases("sampled gaussian", "student", "adaptive clipping", "gaussian", "logistic")
@pytest.mark.parametrize("name", CASES)
def test_python_gives_the_package_s_delta(name, tmp_path: Path):
    source = tmp_path / "accountant.py"
    source.write_text(to_python(symdp.derive(CASES[name].mechanism), exact=True))
    compare(CASES[name], [sys.executable, "-I", "-W", "error", str(source)])


@needs_compiler
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("epsilon=1 n=5", "a value is missing: sigma"),
        ("epsilon=1 n=5 sigma=0", "sigma must be above 0"),
        ("epsilon=1 n=5 sigma=1/0", "no finite number: sigma=1/0"),
        ("epsilon=1 n=5 sigma=nan", "no finite number: sigma=nan"),
        ("epsilon=1 n=0 sigma=1", "n must be a whole number of 1 or more"),
        ("epsilon=1 n=2.5 sigma=1", "n must be a whole number of 1 or more"),
        ("epsilon=1 n=5 sigma=1 tau=2", "unknown: tau=2"),
        ("epsilon=1 n=5 sigma=1 sideways", "unknown: sideways"),
    ],
)
def test_wrong_words_are_one_line_and_code_2(words, told, program, tmp_path: Path):
    source = tmp_path / "accountant.py"
    source.write_text(to_python(symdp.derive(mechanisms.gaussian), exact=True))
    for command in (program("gaussian"), [sys.executable, "-I", str(source)]):
        line = [*command, *words.split()]
        ran = subprocess.run(line, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", f"{told}\n")


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("name", ["laplace", "logistic"])
def test_too_few_steps_are_refused(name, program):
    case = CASES[name]
    line = [*program(name), *arguments(case, 3, 0.1, "remove")]
    ran = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert re.fullmatch(r"no answer: .*too few steps.*\n", ran.stderr)


def test_what_standalone_code_does_not_have_is_said():
    with pytest.raises(NoLinesError, match="log_besseli"):
        to_c(symdp.derive(mechanisms.skellam), exact=True)
    with pytest.raises(InputError, match="give values"):
        to_python(symdp.derive(mechanisms.discrete_gaussian), exact=True)


def test_the_command_says_which_of_the_two_a_file_holds(shell: Shell):
    exact = shell("derive gaussian --format c --exact").out
    estimate = shell("derive gaussian --format c").out
    assert "delta is exact to about 1e-12" in exact
    assert "estimate" in estimate
    assert "estimate" not in exact
    assert shell("derive gaussian sigma=2 --exact").code == 2
