"""Noise on an interval whose width is a parameter, derived under an assumption of the file."""

from __future__ import annotations

import json
import math
import pickle
from functools import reduce

import mpmath
import pytest
import sympy as sp

import symdp
from symdp.density.signs import random_values, sign_of
from symdp.derive import derive
from symdp.derive.derivation import derive_pair
from symdp.errors import InputError
from symdp.model.assumption import AssumedSymbol, End, released
from symdp.model.mechanism import Mechanism

R = sp.Rational
# The density on (−w, w), what orders its pieces beside sensitivity 1, and other parameters' values.
NOISES = {
    "uniform": ("1/(2*w)", {"w": "> 1/2"}, {}),
    "triangular": ("(1 - abs(x)/w)/w", {"w": "> 1"}, {}),
    "epanechnikov": ("3*(1 - x**2/w**2)/(4*w)", {"w": "> 1/2"}, {}),
    "arcsine": ("1/(pi*sqrt(w**2 - x**2))", {"w": ">= 1"}, {}),
    "raised_cosine": ("(1 + cos(pi*x/w))/(2*w)", {"w": "> 1/2"}, {}),
    "truncated_laplace": (
        "exp(-abs(x)/b)/(2*b*(1 - exp(-w/b)))",
        {"w": "> 2*b", "b": "> 1/2"},
        {"b": R(3, 4)},
    ),
    "truncated_gaussian": (
        "exp(-x**2/(2*b**2))/(b*sqrt(2*pi)*erf(w/(b*sqrt(2))))",
        {"w": "> 1/2, < 10"},
        {"b": R(3, 2)},
    ),
}


def noise(name: str, assumed: bool = True) -> Mechanism:
    density, assume, values = NOISES[name]
    table = "".join(f'{key} = "{text}"\n' for key, text in assume.items())
    return symdp.Mechanism.from_toml(f"""
name = "{name}"
variable = "x"
support = ["-w", "w"]
[parameters]
w = "positive"
{"".join(f'{key} = "positive"' for key in values)}
[noise]
density = "{density}"
{"[assume]" if assumed else ""}
{table if assumed else ""}
""")


@pytest.mark.quick_cases("width1-uniform", "width0-uniform")
@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("width", [R(9, 5), R(4)])
def test_masses_without_counterpart_are_formulas_that_numbers_confirm(
    name: str, width: sp.Rational
) -> None:
    made, values = noise(name), {"w": width, **NOISES[name][2]}
    d = derive(made)
    symbols = {made.parameters[key]: value for key, value in values.items()}
    f = made(**values).source.density  # type: ignore[union-attr]
    density = sp.lambdify(d.variable, f, "mpmath")
    with mpmath.workdps(25):
        lost = mpmath.quad(density, [mpmath.mpf(width.p) / width.q - 1, width])
    for mass in (d.mass_at_infinity, d.mass_at_minus_infinity):
        assert not mass.has(sp.Integral)
        assert abs(sp.N(mass.subs(symbols), 25) - lost) < 1e-12
    # Of a loss that is bounded δ above it is what lies at infinity; it is never less. The arcsine
    # density is infinite at its ends, and no smaller shift of it is bounded.
    exactly = made(**values).shifted("exactly") if name == "arcsine" else made(**values)
    far = symdp.compose(exactly, 1).delta(60.0).delta
    assert far >= float(lost) * (1 - 1e-9)
    if d.loss_range is not None and d.loss_range[1].is_finite:
        assert far == pytest.approx(float(lost), rel=1e-9)


@pytest.mark.quick_cases("uniform", "truncated_gaussian", "truncated_laplace")
@pytest.mark.parametrize("name", NOISES)
def test_pieces_in_parameters_are_those_of_their_values(name: str) -> None:
    values = {"w": R(13, 5), **NOISES[name][2]}
    general, plain = noise(name), noise(name, assumed=False)(**values)
    symbols = {general.parameters[key]: value for key, value in values.items()}
    own, other = derive(general).pieces, derive(plain).pieces
    found = [(p.lower.subs(symbols), p.upper.subs(symbols)) for p in own]
    assert found == [(p.lower, p.upper) for p in other] or len(found) < len(other)
    for piece in own:
        low, high = piece.lower.subs(symbols), piece.upper.subs(symbols)
        at = (2 * low + 3 * high) / 5
        same = next(p for p in other if p.lower < at < p.upper)
        x = plain.variable
        if same.loss.is_infinite:
            assert piece.loss == same.loss
        else:
            gap = piece.loss.subs(symbols).subs(x, at) - same.loss.subs(x, at)
            assert abs(sp.N(gap, 30)) < 1e-25


@pytest.mark.quick_cases("uniform")
@pytest.mark.parametrize("name", ["uniform", "truncated_laplace", "truncated_gaussian"])
def test_the_cgf_is_closed_in_the_parameters(name: str) -> None:
    made, values = noise(name), {"w": R(3), **NOISES[name][2]}
    d = derive(made)
    assert d.cgf.form == "closed"
    symbols = {made.parameters[key]: value for key, value in values.items()}
    bound = d.cgf.expression.subs(symbols).subs(d.cgf.tilt, R(1, 3))  # type: ignore[union-attr]
    there = derive(noise(name, assumed=False)(**values)).cgf
    other = there.expression.subs(there.tilt, R(1, 3))  # type: ignore[union-attr]
    assert abs(sp.N(bound - other, 30)) < 1e-25
    for row in d.cgf.parameters_checked:  # the check respected what is assumed
        made(**dict(row))


def test_what_is_assumed_is_printed_in_every_form() -> None:
    d = derive(noise("uniform"))
    for text in (d.to_text(1), d.to_latex(1), repr(d), d._repr_html_(), str(d.mechanism)):
        assert any(shown in text for shown in ("w > 1/2", "w &gt; 1/2", r"w \textgreater{} 1/2"))
    document = json.loads(json.dumps(d.to_json(1)))
    assert document["assumptions"] == ["w > 1/2"]
    assert symdp.derive(noise("uniform")(w=2)).to_json(1)["assumptions"] == []


def test_without_an_assumption_the_refusal_names_it() -> None:
    with pytest.raises(InputError, match=r"give values to w first, or assume in \[assume\]"):
        derive_pair(noise("triangular", assumed=False))


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("uniform", {"w": R(1, 2)}, r"w=1/2 breaks the assumption w > 1/2: give another value"),
        ("arcsine", {"w": R(9, 10)}, "w=9/10 breaks the assumption w >= 1:"),
        ("truncated_gaussian", {"b": 1, "w": 10}, "w=10 breaks the assumption w < 10"),
        ("truncated_laplace", {"w": 2, "b": 1}, r"assumption w > 2\*b, which is 2 here"),
        ("truncated_laplace", {"b": R(1, 2)}, "b=1/2 breaks the assumption b > 1/2"),
    ],
)
def test_a_value_that_breaks_an_assumption_is_refused(
    name: str, values: dict[str, sp.Expr], words: str
) -> None:
    made = noise(name)
    with pytest.raises(InputError, match=words):
        made(**values)
    with pytest.raises(InputError, match="breaks the assumption"):
        reduce(lambda one, item: one(**dict([item])), values.items(), made)  # one by one


def test_binding_one_parameter_moves_the_ends_of_another() -> None:
    made = noise("truncated_laplace")
    assert made.assumptions == ("w > 2*b", "b > 1/2")
    assert made(b=3).assumptions == ("w > 6",)
    assert sign_of(made(b=3).parameters["w"] - 5) == 1
    assert made(w=7).assumptions == ("7 > 2*b", "b > 1/2")
    assert made(b=3)(w=8) == made(w=8)(b=3)


@pytest.mark.parametrize(
    ("assume", "words"),
    [
        ({"v": "> 1"}, "no parameter 'v'"),
        ({"w": "1/2"}, "must be >, >=, < or <= and a number"),
        ({"w": "> "}, "must be >"),
        ({"w": "> oo"}, "must be >"),
        ({"w": "> w"}, "must be >"),
        ({"w": "> 1/0"}, "must be >"),
        ({"w": "> c"}, "must be >"),
        ({"w": "< -b"}, "leaves nothing"),
        ({"w": "= 1"}, "must be >"),
        ({"w": "> 1 > 2"}, "must be >"),
        ({"w": "> 1; import os"}, "must be >"),
        ({"w": "> __import__('os')"}, "must be >"),
        ({"w": "> 1, > 2"}, "two ends on one side"),
        ({"w": "> 2, < 1"}, "no w is both > 2 and < 1"),
        ({"w": "< 0"}, "leaves nothing, for w must be above 0"),
        ({"w": "> b", "b": "< w"}, "compared with each other in a circle"),
        ({"w": 2}, "must be a text"),
        ("w > b", "a table such as"),
        (["w"], "compares two formulas of parameters"),
        ([3], "compares two formulas of parameters"),
        (["w > b > 1"], "compares two formulas of parameters"),
        (["w > __import__('os')"], "compares two formulas of parameters"),
        (["w**2 > b**2"], "cannot be solved for a parameter"),
        (["w > b", "b > w"], "no w is both > b and < b"),
        (["w < -b"], "leaves nothing"),
    ],
)
def test_what_is_no_assumption_is_refused(assume: object, words: str) -> None:
    made = noise("truncated_laplace", assumed=False)
    with pytest.raises(InputError, match=words) as caught:
        made.assuming(assume)
    assert "\n" not in str(caught.value)


HUBER = """
name = "huber"
variable = "x"
support = ["-oo", "oo"]
ASSUME
[parameters]
c = "positive"
s = "positive"
[noise]
density = '''Piecewise((exp(-x**2/(2*s**2)), abs(x) <= c*s), (exp(c**2/2 - c*abs(x)/s), True))
    /(s*sqrt(2*pi)*erf(c/sqrt(2)) + 2*s*exp(-c**2/2)/c)'''
"""


@pytest.mark.quick_cases("assume.c = '> 1/s'")
@pytest.mark.parametrize("assume", ["assume = ['c*s > 1']", "assume.c = '> 1/s'"])
def test_an_end_is_a_formula_of_other_parameters(assume: str) -> None:
    """Huber noise whose threshold c·s is beyond the sensitivity: its loss is clipped at ±c/s."""
    made = symdp.Mechanism.from_toml(HUBER.replace("ASSUME", assume))
    assert made.assumptions == ("c > 1/s",)
    d = derive(made)
    c, s = made.parameters["c"], made.parameters["s"]
    assert d.loss_range == (-c / s, c / s)
    ends = [piece.upper.subs({c: 2, s: 3}) for piece in d.pieces]
    assert ends == [-6, -5, 6, 7, sp.oo]
    assert made(s=2).assumptions == ("c > 1/2",)
    assert made(s=2)(c=1) == made(c=1)(s=2)
    with pytest.raises(InputError, match="c=1/4 breaks the assumption c > 1/s, which is 1/2 here"):
        made(s=2, c=R(1, 4))


def three(assume: object) -> Mechanism:
    """Three parameters whose order matters, in a pair that nothing else is asked of."""
    return symdp.Mechanism.from_toml("""
name = "three"
variable = "x"
support = [0, "oo"]
[parameters]
a = "positive"
b = "positive"
c = "positive"
[pair]
P = "exp(-x/(a + b + c))/(a + b + c)"
Q = "exp(-x)"
""").assuming(assume)  # type: ignore[arg-type]


@pytest.mark.slow_cases("assume7-a - min(b, c)")
@pytest.mark.parametrize(
    ("assume", "positive"),
    [
        ({"a": "> b", "b": "> c"}, "a - c"),
        (["a > b", "b > c"], "a - c"),
        (["b > a", "c > b", "a > 1"], "c - 1"),
        (["a*b > c"], "a*b - c"),
        (["a - b >= 2*c + 1"], "a - b - c"),
        (["1/a < b"], "a*b - 1"),
        ({"a": "> pi"}, "a - 3"),
        ({"a": "> max(b, c)"}, "a - min(b, c)"),
        ({"a": "> b, < b + 1"}, "b + 1 - a"),
    ],
)
def test_signs_under_comparisons_are_those_of_values(assume: object, positive: str) -> None:
    made = three(assume)
    own = made.parameters
    expression = sp.sympify(positive, {**own, "max": sp.Max, "min": sp.Min})
    if not expression.has(sp.Min):
        assert sign_of(expression) == 1
    for seed in range(20):
        values = random_values(own.values(), seed)
        assert expression.subs(values) > 0
        made(**{str(symbol.name): value for symbol, value in values.items()})


def test_further_assumptions_narrow_those_there_are() -> None:
    made = three({"a": "> 1", "b": "> a"})
    more = made.assuming(["a > 2", "c < b"])
    assert more.assumptions == ("a > 2", "b > a", "c < b")
    assert sign_of(more.parameters["b"] - 2) == 1
    assert made.assuming(["a > 1/2"]).assumptions == made.assumptions
    with pytest.raises(InputError, match="which is narrower is not certain"):
        made.assuming({"b": "> c"})
    assert made(a=3).assumptions == ("b > 3",)
    with pytest.raises(InputError, match="b=2 breaks the assumption b > a, which is 3 here"):
        made(a=3, b=2)


def test_python_takes_assumptions_as_a_file_does() -> None:
    x, w = sp.Symbol("x", real=True), sp.Symbol("w", positive=True)
    made = Mechanism.additive(
        1 / (2 * w), x, support=(-w, w), name="uniform", assume={"w": "> 1/2"}
    )
    assert made == noise("uniform")
    assert made != Mechanism.additive(1 / (2 * w), x, support=(-w, w), name="uniform")
    two = Mechanism.from_pair(
        [1 - w, w], [w, 1 - w], x, {"points": [0, 1]}, assume={"w": "> 1/2, < 1"}
    )
    low, high = derive(two).loss_range or (sp.nan, sp.nan)
    own = two.parameters["w"]
    assert not sp.Tuple(low, high).has(sp.Min, sp.Max)
    assert float(high.subs(own, R(2, 3))) == pytest.approx(math.log(2), rel=1e-14)


@pytest.mark.parametrize("operator", [">", ">=", "<", "<="])
def test_signs_hold_for_every_value_that_is_allowed(operator: str) -> None:
    """A sign that an assumption decides is that of the expression at values on both sides."""
    symbol = AssumedSymbol(
        "w", (End(R(3, 2), operator[0] == ">", "=" not in operator),), positive=True
    )
    shift = sp.Symbol("w", positive=True)
    for text in (shift - R(3, 2), shift - 1, 2 - shift, shift**2 - shift, 1 / shift - R(2, 3)):
        decided = sign_of(text.subs(shift, symbol))
        for value in (R(1, 7), R(1), R(3, 2), R(8, 5), R(2), R(10)):
            if decided is not None and symbol.allows(value):
                assert sp.sign(text.subs(shift, value)) == decided


def test_an_assumed_symbol_is_itself_after_pickling_and_no_other() -> None:
    w = AssumedSymbol("w", (End(R(1, 2), True, True),), real=True)
    assert pickle.loads(pickle.dumps(w + 1)) == w + 1
    assert w.is_positive
    assert w != sp.Symbol("w", positive=True)
    assert sp.srepr(w) != sp.srepr(sp.Symbol("w", real=True))
    assert released(w).free_symbols.isdisjoint({w})
    for seed in range(20):
        (value,) = random_values([w], seed).values()
        assert value > R(1, 2)


def test_of_two_ends_the_narrower_is_known_by_what_is_assumed_of_their_parameters():
    x = sp.Symbol("x", real=True)
    w, s = sp.symbols("w s", positive=True)
    noise = symdp.Mechanism.additive(sp.exp(-sp.Abs(x) / s - (x / w) ** 2), x, normalize=True)
    assumed = noise.assuming(["w > s"]).assuming(["s < 1"])
    assert set(assumed.assuming(["w > 1"]).assumptions) == {"w > 1", "s < 1"}
    with pytest.raises(InputError, match="which is narrower is not certain"):
        noise.assuming(["w > s"]).assuming(["w > 1"])
