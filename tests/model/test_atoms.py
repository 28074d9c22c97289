"""Pairs with atoms beside densities: their table, their page, and every path that takes them."""

from __future__ import annotations

import json
import pickle
import re

import mpmath as mp
import pytest
import sympy as sp
from atom_truths import CLAMPED, FAILING, INFLATED, LAWS, SPIKE, clamped, step
from emitted import COMPILER, ENDINGS, NODE, by_command, by_node, compiled, python_command

import symdp
from symdp import compose, mechanisms
from symdp.errors import AccuracyError, InputError
from symdp.page.derivation import to_page
from symdp.questions.certificate_file import certificate


@pytest.mark.slow
def test_a_short_page_says_the_atoms():
    derived = symdp.derive(step("spike"))
    assert [(piece.place, piece.slope) for piece in derived.pieces] == [
        (None, "increasing"),
        (0, "constant"),
    ]
    text = derived.to_text(order=1, only=("mechanism", "loss", "cumulants"))
    for line in (
        "P(x = 0) = 1/2",
        "ℓ(x) = −log(2/3)           if x = 0",
        "P(ℓ = −log(2/3)) = 1/2",
        "K(t) = log(∫_(−∞)^∞ P(x)^(1 + t)Q(x)^(−t) dx + ∑_x P(x)^(1 + t)Q(x)^(−t))",
        "(the sum over values of positive probability, which P and Q stand for there)",
    ):
        assert line in text
    # Under P half of the losses are log(3/2), half x + log(3/4) − 1/2 of a normal x of mean 1.
    assert sp.simplify(derived.cumulant_at(1, 0) - sp.log(3) + 3 * sp.log(2) / 2) == sp.Rational(
        1, 4
    )
    assert "f₁(x = 0) = 1/2" in symdp.derive(step("spike").subsample("poisson", "q")).to_text(
        order=1, only=("mechanism",)
    )
    apart = symdp.derive(symdp.Mechanism.from_toml(FAILING)).to_text(order=1, only=("cumulants",))
    assert "∑_x" not in apart  # Q has no atom there
    assert "the sum over" not in apart


@pytest.mark.slow
def test_a_page_says_the_atoms():
    derived = symdp.derive(symdp.Mechanism.from_toml(CLAMPED))
    places = [piece.place for piece in derived.pieces]
    B = derived.mechanism.parameters["B"]
    assert places == [None, -B, B]
    text = derived.to_text(order=1, only=("mechanism", "loss", "cumulants"))
    for line in (
        "Q(x = B) = 1 − Φ((2B + 1)/(2s))",
        "P(x = −B) = 1 − Φ((2B + 1)/(2s))",
        "x ∈ (−B, B): ℓ is increasing",
        "K(t) = log(∫_(−B)^B P(x)^(1 + t)Q(x)^(−t) dx + ∑_x P(x)^(1 + t)Q(x)^(−t))",
    ):
        assert line in text
    assert derived.cgf.form == "closed"
    assert derived.dominating_direction.value == "both"
    own = symdp.derive(step("clamped normal"))
    with mp.workdps(20):
        (p, q), _ = clamped(2, 1).atoms
        top = own.loss_range[1]
        assert abs(mp.log(q / p) - mp.mpf(str(sp.N(top, 20)))) < 1e-17
    assert sorted(float(atom.mass) for atom in own.atoms) == pytest.approx(
        sorted(map(float, (p, q))), rel=1e-14
    )
    read = json.loads(json.dumps(derived.to_json(order=1)))
    assert [piece["place"] for piece in read["pieces"]] == [None, "-B", "B"]


@pytest.mark.slow
def test_the_cells_of_a_page_hold(tmp_path):
    text, values, _ = LAWS["often zero"]
    file = tmp_path / "own.toml"
    file.write_text(text)
    page = to_page(
        symdp.derive(symdp.load(file)),
        f"symdp.load({str(file)!r})",
        {name: str(value) for name, value in values.items()},
        order=1,
    )
    code = "\n".join(re.findall(r"```{code-cell} ipython3\n(.*?)```", page, re.DOTALL))
    exec(code, {})


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "javascript", "c"])
def test_programs_know_atoms(language, tmp_path):
    if (language, COMPILER) == ("c", None) or (language, NODE) == ("javascript", None):
        pytest.skip("no compiler, or no node")
    family = symdp.Mechanism.from_toml(CLAMPED)
    source = tmp_path / f"own.{ENDINGS[language]}"
    source.write_text(symdp.derive(family).to_program(language), "utf-8")
    asked = [
        ({"s": 2.0, "B": 1.0}, 1, 0.1, "remove"),
        ({"s": 2.0, "B": 1.0}, 100, 2.0, "add"),
        ({"s": 1.5, "B": 0.75}, 300, 4.0, "remove"),
    ]
    if language == "javascript":
        found = by_node(source, [("log_delta", e, n, values, side) for values, n, e, side in asked])
    else:
        command = compiled(source) if language == "c" else python_command(source)
        found = [by_command(command, one) for one in asked]
    for (values, count, epsilon, side), answer in zip(asked, found, strict=True):
        right = compose(family(**values), count).delta(epsilon, direction=side).log_delta
        assert answer == pytest.approx(right, abs=1e-10)


def test_a_certificate_file_is_refused_in_a_sentence():
    with pytest.raises(AccuracyError, match="no certificate file is known"):
        certificate(compose(step("clamped normal"), 30), epsilon="2")


@pytest.mark.slow
def test_other_paths_take_them():
    family = symdp.Mechanism.from_toml(INFLATED)
    one = family(a="1/4")
    table = symdp.sweep(family, {"a": ["1/3", "1/4"]}, 4, epsilon=0.4)
    right = [compose(family(a=a), 4).delta(0.4).delta for a in ("1/3", "1/4")]
    assert table.delta.tolist() == pytest.approx(right, rel=1e-12)
    ledger = symdp.Ledger([(one, 4)])
    again = symdp.Ledger.from_state_dict(json.loads(json.dumps(ledger.state_dict())))
    assert again.steps == ledger.steps
    assert again.delta(0.4).delta == pytest.approx(right[1], rel=1e-12)
    assert pickle.loads(pickle.dumps(one)) == one
    records = symdp.individual.from_mechanisms([one, mechanisms.laplace(b=3)], [[4, 0], [1, 1]])
    assert records.delta(0.4).delta[0] == pytest.approx(right[1], rel=1e-9)
    assert r"P(\{0\}) = \frac{1}{4}" in one._repr_latex_()
    assert one != symdp.Mechanism.from_toml(INFLATED.replace("0.2", "0.3"))(a="1/4")


def test_a_calibrated_bound_is_the_least_noise_that_does():
    found = symdp.calibrate(
        symdp.Mechanism.from_toml(CLAMPED)(B=1), "s", 1, epsilon=0.3, delta=0.01
    )
    assert clamped(found.value, 1).delta(mp.mpf("0.3")) <= 0.01
    assert clamped(found.value * 0.999, 1).delta(mp.mpf("0.3")) > 0.01


@pytest.mark.slow
def test_rounded_constants_and_normalize_count_the_atoms():
    """0.19947114 is exp(0)/(2√(2π)) to eight digits; both laws are divided by their own mass."""
    rounded = SPIKE.replace("/sqrt(2*pi)/2", "*0.19947114020").replace(
        "/sqrt(2*pi)*2/3", "*0.2659615203"
    )
    right = compose(symdp.Mechanism.from_toml(SPIKE), 2).delta(0.3).delta
    assert compose(symdp.Mechanism.from_toml(rounded), 2).delta(0.3).delta == pytest.approx(
        right, rel=1e-8
    )
    weights = INFLATED.replace('"(1 - a)*exp(-x)"', '"3*exp(-x)"').replace(
        '["a", 0.2]', '["4*a", 0.2]'
    )
    whole = symdp.Mechanism.from_toml(weights.replace("[pair]", "[pair]\nnormalize = true"))(
        a="1/4"
    )
    right = compose(symdp.Mechanism.from_toml(INFLATED)(a="1/4")).delta(0.3).delta
    assert compose(whole).delta(0.3).delta == pytest.approx(right, rel=1e-12)


BASE = """
name = "own"
variable = "x"
support = [-1, 1]
[parameters]
a = "probability"
[pair]
P = "1/4"
Q = "1/4"
"""
FINE = 'atoms = { "-1" = ["1/4", "a/2"], "1" = ["1/4", "1/2 - a/2"] }'


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ('atoms = { "0" = ["1/4"] }', r"atom at 0 needs a list of two masses"),
        ('atoms = { "0" = ["1/4", "a", 0] }', r"atom at 0 needs a list of two masses"),
        ('atoms = { "0" = "a" }', r"atom at 0 needs a list of two masses"),
        ("atoms = [1, 2]", "atoms must be a table"),
        ('atoms = { "2" = ["1/2", "a"] }', r"atom at 2 lies outside of the support \[-1, 1\]"),
        ('atoms = { "oo" = ["1/2", "a"] }', "infinity"),
        ('atoms = { "x" = ["1/2", "a"] }', "must not depend on the variable x"),
        ('atoms = { "0" = ["1/2", "x*a"] }', "must not depend on the variable x"),
        ('atoms = { "0" = ["1/2", "a"], "0.0" = ["1/2", "a"] }', "'0.0' is there twice"),
        ('atoms = { "c" = ["1/2", "a"] }', "unknown name 'c'"),
        ('atoms = { "__import__(1)" = ["1/2", "a"] }', "is code"),
        ('atom = { "0" = ["1/2", "a"] }', "did you mean 'atoms'"),
        ('[atoms]\n"0" = ["1/2", "a"]', r"write \[pair.atoms\]"),
    ],
)
def test_a_wrong_table_is_refused_in_a_sentence(table, match):
    with pytest.raises(InputError, match=match) as caught:
        symdp.Mechanism.from_toml(BASE + table, "own.toml")
    assert str(caught.value).startswith("own.toml: ")
    assert "\n" not in str(caught.value)
    assert symdp.Mechanism.from_toml(BASE + FINE)(a="1/3").is_concrete


def test_noise_and_lists_are_told_where_atoms_belong():
    noise = 'name="n"\nvariable="x"\nsupport=["-oo","oo"]\n[noise]\ndensity="exp(-abs(x))/2"\n'
    with pytest.raises(InputError, match=r"\[noise\]: atoms belong into a \[pair\] table"):
        symdp.Mechanism.from_toml(noise + 'atoms = { "0" = [0.5, 0.5] }')
    listed = 'name="n"\nsupport={points=[0,1]}\n[pair]\nP=[0.5,0.5]\nQ=[0.25,0.75]\n'
    with pytest.raises(InputError, match="on points the masses are P and Q themselves"):
        symdp.Mechanism.from_toml(listed + 'atoms = { "0" = [0.5, 0.5] }')


def test_masses_are_checked_when_their_values_are_known():
    off = symdp.Mechanism.from_toml(BASE + 'atoms = { "0" = ["1/2", "a"] }')
    assert compose(off(a="1/2")).delta(0.1).delta == 0.0
    with pytest.raises(InputError, match=r"Q of own integrates, with its atoms, to 0\.8333"):
        compose(off(a="1/3"))
    wrong = 'atoms = { "0" = ["3/4", "a"], "1" = ["-1/4", "0*1"] }'
    below = symdp.Mechanism.from_toml(BASE + wrong)
    with pytest.raises(InputError, match="negative probability -1/4"):
        compose(below(a="1/2"))
    x, B = sp.Symbol("x"), sp.Symbol("B", positive=True)
    quarter, half = sp.Rational(1, 4), sp.Rational(1, 2)
    own = symdp.Mechanism.from_pair(
        quarter, quarter, x, (-1, 1), atoms={0: (half, quarter), B / 2: (0, quarter)}
    )
    assert own(B=1).pair().atoms == ((0, (quarter, half)), (half, (quarter, 0)))
    for value, match in ((3, "atom at 3/2 lies outside"), (0, "must be above 0")):
        with pytest.raises(InputError, match=match):
            own(B=value)
    twice = {B: (half, 0), 1 / B: (0, half)}
    with pytest.raises(InputError, match="the atom at 1 is there twice"):
        symdp.Mechanism.from_pair(quarter, quarter, x, (-1, 1), atoms=twice)(B=1)
    with pytest.raises(InputError, match="a table of places"):
        symdp.Mechanism.from_pair(quarter, quarter, x, (-1, 1), atoms=[(0, half, half)])
