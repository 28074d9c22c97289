"""Where the order of parameters decides: each case with its condition, confirmed by losses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import mpmath
import pytest
import sympy as sp
from shell import Shell

import symdp
from symdp.derive import CasesDerivation, cases, derive
from symdp.model.mechanism import Mechanism
from symdp.page.document import Section, sentence

R = sp.Rational
LINE, RAY, UNIT, WIDTH = '["-oo", "oo"]', '[0, "oo"]', "[0, 1]", '["-w", "w"]'
COUNTS = '"naturals"'
# Support, P and Q, and two values of each parameter, none of them equal to another's.
PAIRS = {
    "poisson counts": (COUNTS, "exp(-c)*c**x/factorial(x)", "exp(-a)*a**x/factorial(x)", "ac"),
    "beta": (UNIT, "x**(a-1)*(1-x)**(c-1)/beta(a,c)", "x**(c-1)*(1-x)**(a-1)/beta(a,c)", "ac"),
    "exponential rates": (RAY, "a*exp(-a*x)", "c*exp(-c*x)", "ac"),
    "geometric rates": (COUNTS, "(1-p)*p**x", "(1-r)*r**x", "pr"),
    "normal scales": (
        LINE,
        "exp(-x**2/(2*a**2))/(a*sqrt(2*pi))",
        "exp(-x**2/(2*c**2))/(c*sqrt(2*pi))",
        "ac",
    ),
    "laplace scales": (LINE, "exp(-abs(x)/a)/(2*a)", "exp(-abs(x)/c)/(2*c)", "ac"),
    "gamma shapes": (RAY, "x**(a-1)*exp(-x)/gamma(a)", "x**(c-1)*exp(-x)/gamma(c)", "ac"),
    "pareto shapes": (RAY, "a*(1+x)**(-a-1)", "c*(1+x)**(-c-1)", "ac"),
    "cauchy scales": (LINE, "a/(pi*(a**2+x**2))", "c/(pi*(c**2+x**2))", "ac"),
    "coins": (
        "{points = [0, 1]}",
        "Piecewise((p, x < 1), (1 - p, True))",
        "Piecewise((r, x < 1), (1 - r, True))",
        "pr",
    ),
}
VALUES = {"a": (R(3, 2), R(7, 3)), "p": (R(1, 3), R(3, 5))}
VALUES |= {"c": VALUES["a"][::-1], "r": VALUES["p"][::-1]}


def given(name: str) -> Mechanism:
    support, p, q, names = PAIRS[name]
    word = "open probability" if names == "pr" else "positive"
    words = "\n".join(f'{key} = "{word}"' for key in names)
    return symdp.Mechanism.from_toml(
        f'name = "{name}"\nvariable = "x"\nsupport = {support}\n[parameters]\n{words}\n'
        f'[pair]\nP = "{p}"\nQ = "{q}"'
    )


def losses(name: str, values: dict[str, sp.Expr]) -> list[mpmath.mpf]:
    """log P − log Q of the formulas themselves, near the ends of the support and between them."""
    support, p, q, _ = PAIRS[name]
    x, names = sp.Symbol("x"), {key: sp.Symbol(key) for key in values}
    laws = [
        sp.lambdify(x, sp.sympify(law, {"x": x, "beta": sp.beta, **names}).subs(values), "mpmath")
        for law in (p, q)
    ]
    places = {
        UNIT: [mpmath.mpf(k) / 2**80 for k in (1, 2**60, 2**79, 2**80 - 2**40, 2**80 - 1)],
        COUNTS: [mpmath.mpf(k) for k in (0, 1, 2, 5, 20, 100, 400)],
        RAY: [mpmath.mpf(10) ** k for k in (-30, -9, -3, -1, 0, 1, 2, 4)],
        LINE: [mpmath.mpf(10) ** k for k in (-30, -9, -3, -1, 0, 1, 2, 4)],
    }.get(support, [mpmath.mpf(0), mpmath.mpf(1)])
    with mpmath.workdps(60):
        return [mpmath.log(laws[0](at)) - mpmath.log(laws[1](at)) for at in places]


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_each_case_holds_the_losses_of_values_in_it(name: str) -> None:
    d = derive(given(name))
    assert d.loss_range is None
    above, tie, below = d.range_cases
    assert (above.conditions[0][1], tie.conditions[0][1], below.conditions[0][1]) == tuple(">=<")
    assert tie.ends == (0, 0)  # of two equal laws
    symbols = d.mechanism.parameters
    for index in range(2):
        values = {key: VALUES[key][index] for key in symbols}
        bound = {symbols[key]: value for key, value in values.items()}
        (left, _, right) = above.conditions[0]
        case = above if left.subs(bound) > right.subs(bound) else below
        assert case.ends is not None
        with mpmath.workdps(60):
            low, high = (
                mpmath.mpf(str(end.subs(bound).evalf(60)).replace("oo", "inf")) for end in case.ends
            )
            seen = losses(name, values)
            assert low - 1e-25 <= min(seen)
            assert max(seen) <= high + 1e-25
        for end, own in ((low, min(seen)), (high, max(seen))):
            assert abs(own) > 4 if mpmath.isinf(end) else abs(end - own) < 0.05


@pytest.mark.slow
def test_cases_are_printed_in_every_form() -> None:
    d = derive(given("poisson counts"))
    assert "inf ℓ if a < c = a − c" in d.to_text(0)
    assert r"a=c &= 0" in d.to_latex(0)
    assert "<mo>&lt;</mo>" in d.to_mathml(0)
    document = json.loads(json.dumps(d.to_json(0)))
    assert document["loss_range"] is None
    assert document["loss_range_cases"][2] == {
        "case": "a < c", "range": ["a - c", "oo"], "reason": None
    }  # fmt: skip
    assert derive(symdp.mechanisms.laplace).to_json(0)["loss_range_cases"] == []


def noise(density: str, words: str = 'w = "positive"', support: str = WIDTH) -> str:
    return (
        f'name = "noise"\nvariable = "x"\nsupport = {support}\n[parameters]\n{words}\n'
        f'[noise]\ndensity = "{density}"\n'
    )


# Noise on (−w, w), and for w below and above ½ or 1 what it puts where the other has no mass.
WIDTHS = {
    "uniform": ("1/(2*w)", R(1, 2)),
    "epanechnikov": ("3*(1 - x**2/w**2)/(4*w)", R(1, 2)),
}


@pytest.mark.slow_cases("epanechnikov")
@pytest.mark.parametrize("name", WIDTHS)
def test_noise_of_any_width_is_derived_below_and_above(name: str) -> None:
    density, edge = WIDTHS[name]
    made = symdp.Mechanism.from_toml(noise(density))
    both = derive(made)
    with pytest.raises(AttributeError, match=r"d\.cases\[0\]\.loss"):
        _ = both.loss
    below, above = sorted(both.cases, key=lambda d: d.mechanism.assumptions)
    assert (below.cases, above.cases) == ((below,), (above,))
    assert (below.mechanism.assumptions, above.mechanism.assumptions) == (
        (f"w < {edge}",),
        (f"w > {edge}",),
    )
    assert below.mass_at_infinity == 1
    (w,) = above.mechanism.parameters.values()
    f = sp.lambdify(made.variable, made(w=2).source.density, "mpmath")  # type: ignore[union-attr]
    lost = mpmath.quad(f, [1, 2])
    assert float(above.mass_at_infinity.subs(w, 2)) == pytest.approx(float(lost), rel=1e-12)


@pytest.mark.slow
def test_three_orders_of_the_width_of_a_triangle() -> None:
    found = derive(symdp.Mechanism.from_toml(noise("(1 - abs(x)/w)/w"))).cases
    assumed = {d.mechanism.assumptions for d in found}
    assert assumed == {("w > 1",), ("w < 1", "w > 1/2"), ("w < 1/2",)}


class _Case:
    """A derivation that has sections alone."""

    def __init__(self, assumed: str, lines: dict[str, list[str]]) -> None:
        self.mechanism = symdp.Mechanism.from_toml(noise("(1 - abs(x)/w)/w")).assuming([assumed])
        self.lines = lines

    def sections(self, _: int) -> list[Section]:
        told = [f"assumed: {text}" for text in self.mechanism.assumptions]
        listed = {"mechanism": [*told, "the noise"], **self.lines}
        return [Section(key, key, tuple(map(sentence, listed[key]))) for key in listed]


def test_what_cases_share_is_printed_once() -> None:
    series = {"series": ["at fixed ε:", "log δ ≈ 1"]}
    cases = (
        _Case(
            "w > 1", {"loss": ["ℓ is flat", "sup ℓ = 1"], "series": ["at fixed ε:", "log δ ≈ 2"]}
        ),
        _Case("w < 1/2", {"loss": ["ℓ is flat", "sup ℓ = 2"], **series}),
        _Case("w < 1/3", {"loss": ["ℓ is flat", "sup ℓ = 2"], **series}),
    )
    text = CasesDerivation(cases[0].mechanism, "remove", cases).to_text(2)  # type: ignore[arg-type]
    shared, first, others = re.split("\n(?=Cases? [0-9])", text)
    assert "remove direction; 3 cases" in shared
    assert "the noise" in shared
    assert text.count("ℓ is flat") == shared.count("ℓ is flat") == 1
    assert "fixed" not in shared  # its next line differs
    assert first.startswith("Case 1: w > 1\n")
    assert "sup ℓ = 1" in first
    assert "sup ℓ = 2" not in first
    assert others.startswith("Cases 2 and 3: w < 1/2; w < 1/3\n")
    assert others.count("sup ℓ = 2") == others.count("at fixed ε:") == 1


@pytest.mark.slow
def test_no_line_of_a_case_is_lost() -> None:
    found = derive(symdp.Mechanism.from_toml(noise("(1 - abs(x)/w)/w")))
    text = found.to_text()
    shared, *alone = re.split("\n(?=Cases? [0-9])", text)
    assert "remove direction; 3 cases" in shared
    assert sum(part.count("Q(x) =") for part in (shared, *alone)) == 1
    one_by_one = [d.to_text() for d in found.cases]
    assert len(text) < 0.8 * sum(map(len, one_by_one))
    for number, whole in enumerate(one_by_one, start=1):
        (own,) = (part for part in alone if str(number) in part.splitlines()[0].partition(":")[0])
        lines = (shared + own).splitlines()
        left_out = ("assumed: ", "<Mechanism", "  no closed form of K", "  where", "      ")
        for line in whole.partition("\nSymbols")[0].splitlines():
            assert line in lines or line.startswith(left_out) or line.strip().startswith("assumed")


@pytest.mark.slow
def test_the_command_prints_every_case(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "epanechnikov.toml"
    file.write_text(noise(WIDTHS["epanechnikov"][0]))
    done = shell(f"derive {file} --order 1")
    assert (done.code, done.err) == (0, "")
    assert "<Mechanism noise(w)>, remove direction; 2 cases" in done.out
    assert {"Case 1: w > 1/2", "Case 2: w < 1/2"} <= set(done.out.splitlines())
    second = shell(f"derive {file} --order 1 --case 2 --only loss")
    assert (second.code, second.err) == (0, "")
    assert shell(f"derive {file} --case 3").err.strip().endswith("this mechanism has 2 cases")


def test_an_order_that_cannot_be_is_no_case(monkeypatch):
    """Of a comparison whose one side contradicts what is assumed nothing is derived."""
    mechanism = given("exponential rates")
    a, c = (mechanism.parameters[name] for name in "ac")
    monkeypatch.setattr(cases, "orders", lambda *_: [((a, c), mechanism, None)])
    (only,) = cases._derived_cases(mechanism, "remove", (), 1)
    assert (only.ends, only.is_open) == (None, True)
