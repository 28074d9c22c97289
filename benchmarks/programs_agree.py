"""Whether exported programs answer as the package does: densities, languages, numbers of steps.

    python -m benchmarks.programs_agree [--only PATTERN] [--part K/N] [--save FILE] [--page FILE]

Each line says of a density, sampled or not, a number of steps, a direction and a language: whether
the package's number lies between the two ends that the program gives, how far apart these are,
and the processor seconds. The exit code is 1 where one does not, or where there is no answer.
`--save` adds the lines to a file of JSON, `--page` writes the table of docs/ from that file:

    python -m benchmarks.programs_agree --save FILE --page docs/programs-agree.md
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import symdp
import symdp.mechanisms
from symdp.errors import SymdpError
from symdp.interrupt import time_limit

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from emitted import COMPILER, ENDINGS, NODE

COUNTS = (1, 2, 3, 7, 30, 1000)
RATE, DELTA = "1/10", 1e-5
SIDES = ("remove", "add")
CASE_SECONDS = 60.0  # of a package's answer
PACKAGE = 1e-10  # relative: what an estimate of the package may be off by
DOUBLES = 1e300  # minus log of a δ that is 0

EVEN = 'variable = "x"\nsupport = ["-oo", "oo"]\n[noise]\nnormalize = true\nsensitivity = 1\n'
INTEGERS = EVEN.replace('["-oo", "oo"]', '"integers"').replace('"x"', '"k"')
RAY = EVEN.replace('["-oo", "oo"]', '[0, "oo"]')


@dataclass(frozen=True)
class Density:
    """A mechanism: the text of a file, or the name of a built-in one; and values."""

    source: str
    values: Mapping[str, str]
    is_skewed: bool = False  # noise whose two signs have two laws when sampled: one is asked
    is_sampled: bool = True

    def mechanism(self, name: str, *, sampled: bool) -> Any:
        """Return the mechanism with its parameters free."""
        if "=" in self.source:
            word = re.sub(r"\W", "_", name)
            made = symdp.Mechanism.from_toml(f'name = "{word}"\n{self.source}')
        else:
            made = getattr(symdp.mechanisms, self.source)
        if sampled:
            made = made.subsample("poisson", RATE)
        return made


def _noise(
    density: str, head: str = EVEN, parameters: str = "", more: str = "", *, whole: bool = False
) -> str:
    """Return a file of noise, whose mass is 1 where it is whole."""
    head = head.replace("normalize = true\n", "") if whole else head
    domains = "".join(f'{name} = "positive"\n' for name in parameters.split())
    first, _, last = head.partition("[noise]")
    return f'{first}[parameters]\n{domains}{more}[noise]{last}density = "{density}"\n'


HUBER = "Piecewise((exp(-x**2/(2*s**2)), abs(x) < k), (exp(-k*(2*abs(x) - k)/(2*s**2)), True))"
SPLICE = (
    "Piecewise((exp(-x**2/(2*s**2)), abs(x) <= u), "
    "(exp(-u**2/(2*s**2))*(u/abs(x))**(u**2/s**2), True))"
)
TWO_PIECES = "Piecewise((exp(-x**2/(2*a**2)), x < 0), (exp(-x**2/(2*b**2)), True))"
LAPLACE_AND_NORMAL = (
    "exp(s**2/(2*b**2))/(4*b)*(exp(-x/b)*erfc((s/b - x/s)/sqrt(2)) "
    "+ exp(x/b)*erfc((s/b + x/s)/sqrt(2)))"
)
SMOOTHED_BOX = "(erf((x + w)/(s*sqrt(2))) - erf((x - w)/(s*sqrt(2))))/(4*w)"
HEIGHTS = "(exp(e) - exp(e/2))/(2*exp(e/2) + 2)"
END = "(exp(e/2) + 1)/(exp(e/2) - 1)"
TWO_HEIGHTS = f"""variable = "x"
support = ["-{END}", "{END}"]
[parameters]
e = "positive"
[pair]
P = "{HEIGHTS}*Piecewise((1, x >= 1), (exp(-e), True))"
Q = "{HEIGHTS}*Piecewise((1, x <= -1), (exp(-e), True))"
"""
DENSITIES = {
    # built in
    "gaussian": Density("gaussian", {"sigma": "3"}),
    "laplace": Density("laplace", {"b": "3"}),
    "logistic": Density("logistic", {"s": "2"}),
    "gumbel": Density("gumbel", {"b": "4"}, is_skewed=True),
    "student": Density("student_t", {"nu": "3", "s": "4"}),
    "staircase": Density("staircase", {"epsilon_0": "1/2", "gamma_0": "1/3"}),
    "discrete laplace": Density("discrete_laplace", {"b": "4"}),
    "discrete gaussian": Density("discrete_gaussian", {"sigma": "3"}),
    "skellam": Density("skellam", {"mu": "8"}),
    "k-ary response": Density("k_ary_randomized_response", {"epsilon_0": "1/2", "k": "4"}),
    # from surveys
    "huber": Density(_noise(HUBER, parameters="k s"), {"k": "4", "s": "3"}),
    "two-piece normal": Density(
        _noise(TWO_PIECES, parameters="a b"), {"a": "3", "b": "5"}, is_skewed=True
    ),
    "lindley": Density(
        _noise("(1 + abs(x))*exp(-b*abs(x))", parameters="b", more='[assume]\nb = ">= 1"\n'),
        {"b": "1"},
    ),
    "champernowne": Density(
        _noise("1/(cosh(x/s) + cos(q))", parameters="s q", more='[assume]\nq = "< pi"\n'),
        {"s": "3", "q": "2"},
    ),
    "normal and laplace": Density(
        _noise(LAPLACE_AND_NORMAL, parameters="s b", whole=True), {"s": "2", "b": "2"}
    ),
    "smoothed box": Density(
        _noise(SMOOTHED_BOX, parameters="w s", whole=True), {"w": "40", "s": "2"}
    ),
    "spliced": Density(
        _noise(SPLICE, parameters="u s", more='[assume]\nu = "> s"\n'), {"u": "18/5", "s": "3"}
    ),
    "zeta": Density(_noise("1/(3 + abs(k))**3", INTEGERS), {}),
    "skewed secant": Density(
        _noise("exp(x/(2*s))/cosh(x/s)", parameters="s"), {"s": "3"}, is_skewed=True
    ),
    "two heights": Density(TWO_HEIGHTS, {"e": "1"}),
    # new here
    "power 3/2": Density(_noise("exp(-abs(x/s)**(3/2))", parameters="s"), {"s": "3"}),
    "several modes": Density(_noise("(2 + cos(2*x))*exp(-abs(x)/4)"), {}),
    "bessel": Density(_noise("exp(3)*besselk(0, sqrt(9 + x**2))/pi", whole=True), {}),
    "gamma, one-sided": Density(_noise("x**3*exp(-x/s)", RAY, "s"), {"s": "2"}, is_skewed=True),
    "quartic and cosine": Density(_noise("exp(-x**4/400 - x**2/40)/(1 + x**2/9)"), {}),
}

_PYTHON = """
import json, runpy, sys, time
names = runpy.run_path(sys.argv[1])
for line in sys.stdin:
    count, values, direction, epsilon = json.loads(line)
    start = time.process_time()
    try:
        ends = [float(end) for end in names["log_delta_ends"](epsilon, count, direction, **values)]
        why = ""
    except (ArithmeticError, ValueError) as error:
        ends, why = [0.0, 0.0], str(error)
    print(json.dumps([*ends, time.process_time() - start, why]), flush=True)
"""
_NODE = """
import * as own from {module};
import * as readline from "node:readline";
for await (const line of readline.createInterface({{ input: process.stdin }})) {{
  const [count, values, direction, epsilon] = JSON.parse(line);
  const start = process.cpuUsage();
  let ends = [0, 0], why = "";
  try {{ ends = own.log_delta_ends(epsilon, count, values, direction); }}
  catch (error) {{ why = error.message; }}
  const {{ user, system }} = process.cpuUsage(start);
  const text = JSON.stringify([...ends, (user + system) / 1e6, why],
    (_, v) => v === -Infinity ? -1e999 : v);
  console.log(JSON.stringify([...ends.map((v) => v === -Infinity ? -1e308 : v),
    (user + system) / 1e6, why]));
}}
"""
_C = """
#include <time.h>
int main(void)
{{
    double p[{number}], epsilon, n, ends[2];
    char direction[16];
    while (scanf("%lf %lf %15s", &n, &epsilon, direction) == 3) {{
        for (int i = 0; i < {arguments}; i++) if (scanf("%lf", p + i) != 1) return 1;
        clock_t start = clock();
        ends[0] = ends[1] = 0.0;
        const char *why = {prefix}_log_delta_ends(epsilon, n{passed}, direction, ends);
        double seconds = (double) (clock() - start) / CLOCKS_PER_SEC;
        for (int i = 0; i < 2; i++) if (ends[i] == -INFINITY) ends[i] = -1e308;
        printf("[%.17g, %.17g, %.6f, \\"%s\\"]\\n", ends[0], ends[1], seconds, why ? why : "");
        fflush(stdout);
    }}
    return 0;
}}
"""


@dataclass(frozen=True)
class Row:
    """One answer of one program beside the package's."""

    density: str
    sampled: bool
    count: int
    direction: str
    language: str
    epsilon: float
    package: float
    lower: float
    upper: float
    seconds: float
    package_seconds: float
    verdict: str

    @property
    def width(self) -> float:
        """The interval of δ, relative."""
        if self.lower < -DOUBLES:
            return math.inf if self.upper > -DOUBLES else 0.0
        return math.expm1(max(self.upper - self.lower, 0.0))


def main_in_c(names: Sequence[str], prefix: str) -> str:
    """Return a main function that answers a question a line."""
    passed = "".join(f", p[{place}]" for place in range(len(names)))
    number = max(1, len(names))
    return _C.format(number=number, arguments=len(names), prefix=prefix, passed=passed)


class Asked:
    """A program that runs beside this one and answers a question a line."""

    def __init__(self, command: Sequence[str], names: Sequence[str], *, is_c: bool) -> None:
        self._names, self._is_c = names, is_c
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, question: tuple[int, dict[str, float], str, float]) -> list[Any]:
        count, values, direction, epsilon = question
        line = json.dumps(question)
        if self._is_c:
            words = [str(count), repr(epsilon), direction]
            line = " ".join([*words, *(repr(values[name]) for name in self._names)])
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer: list[Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the program."""
        self._process.kill()
        self._process.wait()


def command_of(program: str, language: str, names: Sequence[str], folder: Path) -> list[str]:
    """Write a program in a language, and return what runs it."""
    source = folder / f"program.{ENDINGS[language]}"
    if language == "python":
        source.write_text(program, "utf-8")
        return [sys.executable, "-c", _PYTHON, str(source)]
    if language == "javascript":
        source.write_text(program, "utf-8")
        asking = folder / "asking.mjs"
        asking.write_text(_NODE.format(module=json.dumps(source.as_uri())), "utf-8")
        return [str(NODE), str(asking)]
    prefix = re.search(r"(\w+)_log_delta_ends\(", program)
    assert prefix is not None
    source.write_text(program + main_in_c(names, prefix[1]), "utf-8")
    output = str(folder / "program")
    options = ["-std=c99", "-O2", "-D_POSIX_C_SOURCE=200112L", "-o", output, str(source), "-lm"]
    subprocess.run([str(COMPILER), *options], check=True, timeout=100)
    return [output]


@contextmanager
def running(
    mechanism: Any, derivation: symdp.Derivation, names: Sequence[str]
) -> Iterator[dict[str, Asked]]:
    """Run the programs of a mechanism, one a language that is here."""
    languages = ["python"]
    languages += ["c"] if COMPILER else []
    languages += ["javascript"] if NODE else []
    with ExitStack() as stack:
        programs = {}
        for language in languages:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            text = derivation.to_program(language)
            command = command_of(text, language, names, folder)
            program = Asked(command, names, is_c=language == "c")
            stack.callback(program.close)
            programs[language] = program
        yield programs


def verdict_of(package: Any, lower: float, upper: float) -> str:
    """Say whether the package's number lies between the ends of a program."""
    off = PACKAGE + abs(package.log_delta) * 1e-14
    if package.log_delta < -DOUBLES and upper < -DOUBLES:
        return "inside"  # no δ at all
    if not lower <= upper:
        return "NO INTERVAL"
    if package.log_upper < lower - off:
        return f"above by {lower - package.log_delta:.1e}"
    if package.log_lower > upper + off:
        return f"BELOW by {package.log_delta - upper:.1e}"
    return "inside"


def rows_of(name: str, *, sampled: bool) -> Iterator[Row]:
    """Yield the answers of all programs of a density."""
    density = DENSITIES[name]
    mechanism = density.mechanism(name, sampled=sampled)
    if sampled and density.is_skewed:
        mechanism = mechanism.shifted("up")
    values = {key: float(eval_fraction(value)) for key, value in density.values.items()}
    concrete = mechanism(**density.values) if values else mechanism
    try:
        derivation, names = symdp.derive(mechanism), list(mechanism.parameters)
        derivation.to_program("python")
    except SymdpError as error:
        print(f"{name}: with free parameters: {error}", flush=True)
        mechanism, names, values = concrete, [], {}
        derivation = symdp.derive(mechanism)
    with running(mechanism, derivation, names) as programs:
        for count in COUNTS:
            steps = symdp.compose(concrete, count)
            epsilon = asked_at(steps, count)
            for direction in SIDES:
                start = time.process_time()
                try:
                    with time_limit(CASE_SECONDS):
                        package = steps.delta(epsilon, direction=direction)
                except SymdpError as error:
                    print(f"{name}: {count} steps, {direction}: {error}", flush=True)
                    continue
                took = time.process_time() - start
                for language, program in programs.items():
                    lower, upper, seconds, why = program((count, values, direction, epsilon))
                    verdict = why or verdict_of(package, lower, upper)
                    yield Row(
                        name, sampled, count, direction, language, epsilon,
                        max(float(package.log_delta), -1e308),
                        lower, upper, seconds, took, verdict,
                    )  # fmt: skip


def asked_at(steps: Any, count: int) -> float:
    """Return an ε of three digits, below that at which δ is 1e-5."""
    epsilon = 0.1 * math.sqrt(count)
    with suppress(SymdpError), time_limit(CASE_SECONDS):
        epsilon = 0.6 * steps.epsilon(DELTA).epsilon
    return float(f"{epsilon:.3g}") if 0 < epsilon < math.inf else 0.5


def eval_fraction(text: str) -> float:
    """Return a number that is written as a ratio."""
    from fractions import Fraction

    return float(Fraction(text))


HEAD = """# Exported programs beside the package

*For those who compare programs or change symdp; using it needs nothing of this page.*

`symdp derive M --format python|c|javascript` writes a program that answers alone. Here each program
is asked δ at an ε below that of δ = 1e-5, in both directions, and its interval is compared with the
number of the package, which shares no code with the programs from the law of a step on.
`python -m benchmarks.programs_agree` asks again; `--only`, `--part` and `--sampled` a part of it.

{summary}

A cell is the widest interval of δ, relative, over directions and languages; an empty one was not
asked. Where a sum along a line converges, 4e-12 is what it may be off by. A line that is cut off
has a bound of what that changes: by the mass of losses near ε, or, where nodes resolve the density
of losses, by the size of φ on its upper half. The upper end is the answer of the program. Seconds
are the processor's, of one question without a law at hand, on a machine that other work loaded: the
median, and in brackets the longest. C is run under the address and undefined-behaviour sanitizers
in `tests/emit/test_sanitized.py`.

| noise | {counts} | Python | C | JavaScript |
| --- | {lines} | --- | --- | --- |
"""


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of a file of answers; the last of equal questions counts."""
    asked = ("density", "sampled", "count", "direction", "language")
    last = {tuple(row[name] for name in asked): row for row in rows}
    kept = [row for row in last.values() if row["density"] in DENSITIES]
    inside = [row for row in kept if row["verdict"] == "inside"]
    refused = [row for row in kept if row["verdict"] != "inside"]
    laws = {(row["density"], row["sampled"]) for row in kept}
    summary = (
        f"**{len(kept)} answers of {len({name for name, _ in laws})} densities, with and without "
        f"Poisson sampling where it was asked: {len(inside)} hold the package's number in their "
        f"interval, {len(refused)} are no answers.**"
    )
    counts = " | ".join(f"n = {count}" for count in COUNTS)
    lines = " | ".join("---" for _ in COUNTS)
    text = HEAD.format(summary=summary, counts=counts, lines=lines)
    for name in DENSITIES:
        for sampled in (False, True):
            of_law = [r for r in kept if (r["density"], r["sampled"]) == (name, sampled)]
            if of_law:
                text += _line(f"{name}{', sampled' if sampled else ''}", of_law)
    sentences = sorted({f"{row['density']}: {row['verdict']}" for row in refused})
    if sentences:
        text += "\nNo answers: " + "; ".join(sentences) + ".\n"
    return text


def _line(label: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a line of the table."""
    cells = [label]
    for count in COUNTS:
        widths = [
            r["upper"] - r["lower"] if r["upper"] > -DOUBLES else 0.0
            for r in rows
            if r["count"] == count and r["verdict"] == "inside"
        ]
        cells.append(f"{math.expm1(max(widths)):.0e}" if widths else "")
    for language in ("python", "c", "javascript"):
        seconds = sorted(r["seconds"] for r in rows if r["language"] == language)
        times = [seconds[len(seconds) // 2], seconds[-1]] if seconds else []
        cells.append(f"{times[0]:.2f} ({times[1]:.1f})" if times else "")
    return f"| {' | '.join(cells)} |\n"


def main() -> int:
    """Ask, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="a pattern of names")
    parser.add_argument("--part", default="0/1", help="K/N: every N-th density from the K-th on")
    parser.add_argument("--sampled", choices=["no", "yes"], help="without sampling, or with it")
    parser.add_argument("--save", help="a file to which the lines are added")
    parser.add_argument("--page", help="write the table of what was saved, and ask nothing")
    given = parser.parse_args()
    if given.page:
        lines = Path(given.save).read_text("utf-8").splitlines()
        Path(given.page).write_text(page([json.loads(line) for line in lines]), "utf-8")
        return 0
    first, step = map(int, given.part.split("/"))
    names = [name for name in DENSITIES if re.search(given.only, name)][first::step]
    is_wrong = False
    for name in names:
        for sampled in [word == "yes" for word in ("no", "yes") if given.sampled in (None, word)]:
            label = f"{name}{', sampled' if sampled else ''}"
            try:
                for row in rows_of(name, sampled=sampled):
                    is_wrong |= row.verdict != "inside"
                    print(
                        f"{label:28} n={row.count:<5} {row.direction:7} {row.language:10} "
                        f"{row.verdict:20} {row.width:8.1e} {row.seconds:6.2f} s "
                        f"(package {row.package_seconds:.2f}) ε={row.epsilon} lδ={row.package:.9g}",
                        flush=True,
                    )
                    if given.save:
                        with Path(given.save).open("a", encoding="utf-8") as file:
                            file.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
            except SymdpError as error:
                is_wrong = True
                print(f"{label:28} refused: {error}", flush=True)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
