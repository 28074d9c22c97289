"""Derivations as JSON, MathML and HTML: they read back exactly, and nothing in them is run."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import symdp
from symdp.emit.json import _heads, read_expressions, write_expressions
from symdp.errors import InputError
from symdp.model.sampling import Radial
from symdp.page.derivation_json import SCHEMA, derived, from_json, texts_of
from symdp.page.formula import read
from symdp.page.html import mathml

X = sp.Symbol("x", real=True)
N = sp.Symbol("n", integer=True, positive=True)
PLAIN = sp.Symbol("x")


def on_a_line() -> list[str]:
    """Return the built-in mechanisms that have a pair of laws on a line."""
    held = {name: getattr(symdp.mechanisms, name) for name in symdp.mechanisms.names()}
    return [name for name, one in held.items() if not isinstance(one.source, Radial)]


DERIVED = {
    **{name: (getattr(symdp.mechanisms, name), "remove") for name in on_a_line()},
    "gumbel, added": (symdp.mechanisms.gumbel, "add"),
    "sampled": (symdp.mechanisms.gaussian(sigma="3/2").subsample("poisson", "q"), "add"),
    "logistic.toml": (
        symdp.load(Path(__file__).parents[2] / "examples" / "logistic.toml"),
        "remove",
    ),
}


# What these take is their derivation, whose forms differ little from those of others.
slow_derivations = pytest.mark.slow_cases(
    "student_t",
    "exponential",
    "sampled",
    "staircase",
    "sparse_histogram",
    "logistic",
    "logistic.toml",
    "gumbel, added",
    "l2_laplace",
    "von_mises_fisher",
    "k_ary_randomized_response",
    "permute_and_flip",
    "adaptive_clipping",
    "bounded_range",
)


@pytest.fixture(scope="module", params=DERIVED)
def derivation(request: pytest.FixtureRequest) -> symdp.Derivation:
    mechanism, direction = DERIVED[request.param]
    return symdp.derive(mechanism, direction)


@pytest.fixture(scope="module")
def document(derivation: symdp.Derivation) -> dict[str, object]:
    """One derivation as JSON, which several tests read and none changes."""
    return derivation.to_json(order=1)


def through_json(value: object) -> object:
    return json.loads(json.dumps(value, allow_nan=False))


@pytest.mark.quick_cases("discrete_gaussian")
@slow_derivations
def test_every_expression_reads_back_equal(derivation):
    document = through_json(derivation.to_json(order=2))
    read = from_json(document)
    written = {"variable": derivation.variable}
    texts_of(derived(derivation, 2), written)
    written |= {f"parameters.{p.name}": p.symbol for p in derivation.mechanism.declared}
    assert set(read) == set(written)
    for path, expression in written.items():
        assert read[path] == expression, path
        assert sp.srepr(read[path]) == sp.srepr(expression), path
        own = {s.name: s.assumptions0 for s in expression.free_symbols}
        assert {s.name: s.assumptions0 for s in read[path].free_symbols} == own


@pytest.mark.quick_cases("discrete_gaussian", "gaussian")
@slow_derivations
def test_every_text_has_its_expression(document):
    read = from_json(document)
    for path, expression in read.items():
        place = document
        *outer, last = path.split(".")
        for step in outer:
            place = place[int(step) if isinstance(place, list) else step]
        if path.startswith("parameters."):
            assert last in place
            continue
        text = place[int(last) if isinstance(place, list) else last]
        assert text == str(expression), path


@pytest.mark.quick_cases("discrete_gaussian", "discrete_laplace", "gaussian", "laplace", "skellam")
@slow_derivations
def test_the_document_has_what_it_promises(document):
    assert {
        "schema", "name", "variable", "parameters", "loss", "loss_range", "atoms",
        "mass_at_infinity", "cgf", "cumulants", "msd", "edgeworth", "tails", "expressions",
    } <= set(document)  # fmt: skip
    assert {"form", "expression", "domain", "checked_at", "reason"} <= set(document["cgf"])
    assert document["cgf"]["form"] in {"closed", "numeric"}


def expressions() -> st.SearchStrategy[sp.Expr]:
    leaves = st.one_of(
        st.sampled_from([X, N, PLAIN, sp.Symbol("p", positive=True), sp.pi, sp.E, sp.oo, sp.I]),
        st.integers(-(10**30), 10**30).map(sp.Integer),
        st.fractions(max_denominator=10**6).map(sp.Rational),
    )

    def grow(inner: st.SearchStrategy[sp.Expr]) -> st.SearchStrategy[sp.Expr]:
        two = st.tuples(inner, inner)
        return st.one_of(
            two.map(lambda p: sp.Add(*p, evaluate=False)),
            two.map(lambda p: sp.Mul(*p, evaluate=False)),
            st.tuples(inner, st.sampled_from([sp.Integer(2), sp.Rational(1, 2), N])).map(
                lambda p: sp.Pow(*p, evaluate=False)
            ),
            *(inner.map(lambda e, f=f: f(e, evaluate=False)) for f in (sp.exp, sp.log, sp.sinh)),
        )

    return st.recursive(leaves, grow, max_leaves=12)


@given(expressions())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_unevaluated_expressions_stay_as_they_are(expression):
    read = read_expressions(through_json(write_expressions({"it": expression})))["it"]
    assert sp.srepr(read) == sp.srepr(expression)
    assert read == expression


@pytest.mark.parametrize(
    "expression",
    [
        sp.Piecewise((X, X < 0), (sp.Abs(X) + sp.sign(X), sp.And(X > 1, X <= 2)), (0, True)),
        sp.Max(X, N, 1) - sp.Min(X, 2),
        sp.Sum(sp.exp(-(N**2)), (N, 1, sp.oo)) + sp.Integral(sp.sin(X) / X, (X, 0, 1)),
        sp.Function("m_2")(X) - sp.Function("m_1")(X) ** 2,
        sp.besselk(sp.Rational(1, 3), X) + sp.hyper((-sp.Rational(1, 2), X), (N,), -X),
        sp.Symbol("x", positive=True) * PLAIN + X,
        sp.Integer(7) ** 20_000,
        sp.erfc(X) + sp.loggamma(N) + sp.polygamma(1, N) + sp.zeta(3),
        sp.Or(X < 0, sp.Eq(N, 3), sp.Not(sp.Lt(X, N))),
        sp.Heaviside(X) + sp.Tuple(X, N)[0] + sp.EulerGamma,
    ],
)
def test_every_kind_of_node_survives(expression):
    read = read_expressions(through_json(write_expressions({"it": expression})))["it"]
    assert read == expression
    assert read.free_symbols == expression.free_symbols


def test_a_deep_expression_needs_no_recursion():
    expression = X
    for _ in range(3000):
        expression = sp.exp(expression, evaluate=False)
    assert len(write_expressions({"it": expression})["nodes"]) == 3001


def test_dummies_and_unknown_heads_are_refused():
    with pytest.raises(InputError, match="Dummy"):
        write_expressions({"it": sp.Dummy("x")})
    with pytest.raises(InputError, match="Matrix"):
        write_expressions({"it": sp.ImmutableMatrix([[1, 2]])})


SYMBOL = ["Symbol", "x", {"real": True}]


@pytest.mark.parametrize(
    ("nodes", "word"),
    [
        ([["__import__('os').system('true')"]], "unknown"),
        ([["eval", []]], "unknown"),
        ([["Function", 3, []]], "name"),
        ([["Add", [0, 1]]], "place"),
        ([SYMBOL, ["Add", [0, -1]]], "place"),
        ([SYMBOL, ["Add", [0]]], "two operands"),
        ([SYMBOL, ["exp", [True]]], "place"),
        ([SYMBOL, ["exp", [0, 0, 0]]], "operands"),
        ([SYMBOL, ["exp", 0]], "list"),
        ([SYMBOL, ["expp", [0]]], "did you mean"),
        ([["Symbol", "x", {"reel": True}]], "assumptions"),
        ([["Symbol", "x", {"real": "yes"}]], "assumptions"),
        ([["Symbol", "x", {"positive": True, "negative": True}]], "operands"),
        ([["Symbol", "", {}]], "name"),
        ([["Integer", 3]], "digits"),
        ([["Integer", "3+4"]], "operands"),
        ([["Rational", "1"]], "operands"),
        ([["Constant", "inf"]], "constant"),
        ([{"head": "exp"}], "list"),
        ([[]], "list"),
        ("nodes", "list"),
    ],
)
def test_a_broken_document_is_one_clear_line(nodes, word):
    with pytest.raises(InputError, match=word) as caught:
        read_expressions({"nodes": nodes, "roots": {"it": 0}})
    assert "\n" not in str(caught.value)


def test_another_schema_is_refused():
    document = symdp.derive(symdp.mechanisms.gaussian).to_json(1)
    for broken in (None, [], {}, document | {"schema": "symdp/derivation/0"}):
        with pytest.raises(InputError, match="schema"):
            from_json(broken)
    with pytest.raises(InputError, match="expressions"):
        from_json({"schema": SCHEMA})
    with pytest.raises(InputError, match="place"):
        from_json({"schema": SCHEMA, "expressions": {"nodes": [], "roots": {"loss": 0}}})


def test_nothing_large_is_computed_while_reading():
    nodes = [["Integer", "9" * 9], ["factorial", [0]], ["Pow", [0, 0]], ["Add", [1, 2]]]
    read = read_expressions({"nodes": nodes, "roots": {"it": 3}})["it"]
    assert read.has(sp.factorial)


def test_heads_are_mathematics_alone():
    assert all(issubclass(head, sp.Basic) for head in _heads().values())
    assert {"Add", "Mul", "Pow", "exp", "Piecewise", "ExprCondPair"} <= set(_heads())


@pytest.mark.quick_cases("skellam", "discrete_gaussian", "gaussian", "discrete_laplace", "laplace")
@slow_derivations
def test_mathml_and_html_are_well_formed(derivation):
    lines = derivation.to_mathml(order=1).splitlines()
    assert len(lines) > 5
    for line in lines:
        assert ET.fromstring(line).tag == "math"
        assert "\\" not in line
    ET.fromstring(derivation._repr_html_())
    assert "<mi>ℓ</mi>" in derivation._repr_html_()


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("ℓ(x)", "ℓ(x)"),
        ("δ_∞ = P(Q = 0)", "δ∞=P(Q=0)"),
        ("K″(t)", "K″(t)"),
        ("c₁₂", "c12"),
        ("a < b", "a<b"),
        ("t₋", "t−"),
    ],
)
def test_left_sides_become_mathml(formula, text):
    written = "".join(ET.fromstring(f"<math>{mathml(read(formula))}</math>").itertext())
    assert written.replace("\N{FUNCTION APPLICATION}", "") == text
