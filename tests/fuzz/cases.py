"""Seeded commands and mechanism files at and beyond the edge of what makes sense."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

# Values that found something once, or are where a format ends.
POSITIVE = (
    "1e-300", "1e-30", "1e-8", "0.01", "1/3", "0.5", "1", "2", "3", "7.5", "100", "1e4", "1e8",
    "1e16", "1e30", "1e300",
)  # fmt: skip
ODD = ("0", "-1", "nan", "inf", "oo", "", "1e400", "1e-400", "1/0", "1e9999999", "x", "1,5", "²")
COUNTS = ("1", "2", "3", "10", "45", "1000", "1e6", "2e10", "1e11", "1e15")
ODD_COUNTS = ("0", "-3", "2.5", "1e16", "many", "")
EPSILONS = (
    "0", "1e-300", "1e-16", "0.1", "1", "4", "60", "700", "1e6", "1e16", "1e300", "-1", "-50",
)  # fmt: skip
DELTAS = ("1e-300", "1e-100", "1e-16", "1e-12", "1e-5", "0.1", "0.5", "0.999999")
ODD_DELTAS = ("0", "1", "-1e-5", "2", "nan", "1e-400")
RATES = ("1e-9", "1e-6", "0.01", "1/2", "0.999999", "1")
METHODS = (
    "contour", "contour", "contour", "moments", "moments-plain", "renyi", "prv", "tilted-prv",
    "fourier", "clt", "spa-bounds", "gdp-e", "gaussian", "msd:1", "edgeworth:2", "eeai",
    "lugannani-rice", "certified", "msd:99", "nothing",
)  # fmt: skip
BUILT_IN = {
    "gaussian": ("sigma",),
    "laplace": ("b",),
    "discrete_laplace": ("b",),
    "discrete_gaussian": ("sigma",),
    "logistic": ("s",),
    "gumbel": ("b",),
    "student_t": ("nu", "s"),
    "randomized_response": ("epsilon_0",),
}
LINES = (
    "exp(-abs(x))/2",
    "exp(-x**2/2)/sqrt(2*pi)",
    "exp(-x)/(1 + exp(-x))**2",
    "1/(pi*(1 + x**2))",
    "besselk(0, abs(x))/pi",
    "sech(pi*x/2)/2",
    "3*abs(x)**2*exp(-abs(x)**3)/2",
    "exp(-x**4)/(2*gamma(5/4))",
    "3/10*exp(-abs(x)) + 2/5*exp(-abs(x)*2)",
    "exp(-exp(-cosh(Max(x, 10**10))))",
    "Piecewise((exp(-x)/2, x > 0), (exp(x)/2, True))",
)
HALF_LINES = ("exp(-x)", "x*exp(-x)", "x**(-1/2)*exp(-x)/sqrt(pi)", "2/(1 + x)**3", "gamma(x)")
UNITS = ("1", "2*x", "6*x*(1 - x)", "1/(2*sqrt(x))", "besseli(abs(x), pi)", "pi/2*sin(pi*x)")
SUPPORTS = {
    '["-oo", "oo"]': LINES,
    '[0, "oo"]': HALF_LINES,
    "[0, 1]": UNITS,
    '["oo", "-oo"]': LINES,
    "[1, 0]": UNITS,
    '"integers"': ("exp(-abs(x))*(1 - exp(-1))/(1 + exp(-1))", "2**(-abs(x))/3"),
    '"naturals"': ("2**(-x - 1)", "exp(-1)/factorial(x)"),
}
HEADS = ("exp", "log", "sqrt", "abs", "cosh", "gamma", "erf", "sin", "sign", "eval", "Max")
NUMBERS = ("0", "1", "2", "-1", "1/2", "10**10", "1e-30", "1e300", "9**9**9", "pi", "oo", "x", "y")
SENSITIVITIES = ("1", "1", "1", "0", "-1", "1e-30", "1e8", "1e300", '"1/3"', '"x"', "nan", "true")
_TOKEN = re.compile(r"[A-Za-z_]+|\d+(?:\.\d+)?|\*\*|[-+*/(),<>]")


@dataclass(frozen=True)
class Case:
    """The words of one command, where FILE stands for a file with the text, if there is one."""

    words: tuple[str, ...]
    text: str = ""


def cases(seed: int, count: int) -> list[Case]:
    """Return so many cases, the same for the same seed."""
    return [_case(random.Random(f"{seed}/{place}")) for place in range(count)]


def _case(dice: random.Random) -> Case:
    text = _file(dice) if dice.random() < 0.4 else ""
    mechanism = ["FILE"] if text else _built_in(dice)
    command = dice.choices(
        ("delta", "epsilon", "certify", "curve", "derive"), (10, 10, 3, 2, 2 if text else 0)
    )[0]
    words = [command, *mechanism]
    if command == "derive":
        form = dice.choice(("text", "latex", "mathml", "json"))
        return Case((*words, "--format", form, "--time-limit", "1"), text)
    words += ["-n", _pick(dice, COUNTS, ODD_COUNTS)]
    if command == "epsilon" or (command == "certify" and dice.random() < 0.3):
        words += ["--delta", _pick(dice, DELTAS, ODD_DELTAS)]
    elif command == "curve":
        words += ["--points", dice.choice(("2", "3"))]
        words += ["--epsilon-range", "0", dice.choice(EPSILONS)]
    else:
        words += ["--epsilon", _pick(dice, EPSILONS, ODD)]
    if command == "certify":
        words += ["--digits", dice.choice(("3", "6", "15"))]
    else:
        words += ["--method", dice.choice(METHODS)]
    if dice.random() < 0.3:
        scheme = dice.choice(("poisson", "poisson", "without_replacement", "with_replacement"))
        words += ["--sampling", scheme, "--rate", _pick(dice, RATES, ODD)]
        if scheme == "with_replacement":
            words += ["--batch-size", dice.choice(("1", "2", "100", "1e6"))]
    if dice.random() < 0.3:
        words += ["--direction", dice.choice(("remove", "add", "both", "ad"))]
    if dice.random() < 0.6:
        words.append("--json")
    return Case(tuple(words), text)


def _pick(dice: random.Random, usual: tuple[str, ...], odd: tuple[str, ...]) -> str:
    return dice.choice(odd if dice.random() < 0.04 else usual)


def _built_in(dice: random.Random) -> list[str]:
    name = dice.choice(list(BUILT_IN))
    values = [f"{p}={_pick(dice, POSITIVE, ODD)}" for p in BUILT_IN[name]]
    if dice.random() < 0.03:
        values.append("nonsense=1")
    return [name, *values]


def _file(dice: random.Random) -> str:
    support = dice.choice(list(SUPPORTS))
    density = dice.choice(SUPPORTS[support])
    if dice.random() < 0.6:
        density = _mutated(dice, density)
    lines = ['name = "fuzz"', 'variable = "x"', f"support = {support}"]
    normalize = ["normalize = true"] if dice.random() < 0.3 else []
    if dice.random() < 0.7:
        sensitivity = dice.choice(SENSITIVITIES)
        lines += ["[noise]", f'density = "{density}"', f"sensitivity = {sensitivity}", *normalize]
    else:
        other = dice.choice(SUPPORTS[support])
        lines += ["[pair]", f'P = "{density}"', f'Q = "{other}"', *normalize]
    if dice.random() < 0.05:
        lines[dice.randrange(len(lines))] = dice.choice(("", "[", "support = 3", "[sampling]"))
    return "\n".join(lines) + "\n"


def _mutated(dice: random.Random, formula: str) -> str:
    """Return a formula with one to three of its tokens changed."""
    tokens = _TOKEN.findall(formula)
    for _ in range(dice.randint(1, 3)):
        place = dice.randrange(len(tokens))
        token = tokens[place]
        if token[0].isdigit() or token in {"x", "pi"}:
            tokens[place] = dice.choice(NUMBERS)
        elif token.isalpha():
            tokens[place] = dice.choice(HEADS)
        elif token in {"+", "-", "*", "/", "**"}:
            tokens[place] = dice.choice(("+", "-", "*", "/", "**"))
        elif dice.random() < 0.2:
            del tokens[place]
        tokens = tokens or ["x"]
    return "".join(tokens)
