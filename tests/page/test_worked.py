"""The calculation in numbers: each result is what its row says, and what other code finds."""

from __future__ import annotations

import pytest
import sympy as sp
from printed_formula import value

import symdp
from symdp.page.text import to_text
from symdp.page.worked import edgeworth_sheet, saddle_sheet, sheet_blocks, sheets, tails_sheet

SAMPLED = symdp.mechanisms.gaussian(sigma=1.5).subsample("poisson", "1/100")
MADE = symdp.compose(SAMPLED, 10_000)


def number(text: str) -> float:
    return float(text.replace("−", "-"))


@pytest.mark.parametrize("sheet", [saddle_sheet, edgeworth_sheet])
def test_the_numbers_that_are_put_in_give_the_result(sheet):
    rows = [row for row in sheet(MADE.law("remove"), 1.0, 2) if row[1] and "e−" not in row[1]]
    assert len(rows) > 8
    for formula, put, result in rows:
        found = float(value(put, {}))
        # Six digits were put in, of which a difference may lose some.
        assert found == pytest.approx(number(result), rel=2e-4, abs=1e-8), formula


def test_partial_sums_are_those_of_the_methods():
    saddle = {
        row[0].split(" = ")[0]: number(row[2]) for row in saddle_sheet(MADE.law("remove"), 1.0, 2)
    }
    for order in (0, 1, 2):
        other = MADE.delta(1.0, method=f"msd:{order}", direction="remove").delta
        assert saddle[f"δ{'₀₁₂'[order]}"] == pytest.approx(other, rel=1e-5)
    rows = edgeworth_sheet(MADE.law("remove"), 1.0, 2)
    edgeworth = {row[0].split(" = ")[0]: number(row[2]) for row in rows}
    for order in (1, 2):
        other = MADE.delta(1.0, method=f"edgeworth:{order}", direction="remove").delta
        assert edgeworth[f"δ{'₀₁₂'[order]}"] == pytest.approx(other, rel=1e-5)


@pytest.mark.slow
def test_the_exact_delta_stands_beside_the_last_sum():
    found = sheets(MADE, symdp.derive(SAMPLED), 1.0, 2, "remove")
    for title, rows in found[:2]:
        assert rows[-3][0].startswith("exact δ"), title
        assert number(rows[-3][2]) == pytest.approx(0.0496014103, rel=1e-5)  # [FA Table 1]
        assert abs(number(rows[-2][2])) < 2e-3
        assert rows[-1] == ("δ of both directions: remove is the larger", "", rows[-3][2])
    assert found[2][0] == "Tail constants"


X = sp.Symbol("x", real=True)
# Two laws in the two directions: skewed, a gap in the support, atoms, one-sided, of two modes.
TWO_LAWS = {
    "split normal": symdp.Mechanism.additive(
        sp.Piecewise((sp.exp(-(X**2) / 18), X < 0), (sp.exp(-(X**2) / 50), True)), X,
        normalize=True),
    "Gumbel": symdp.mechanisms.gumbel(b=2),
    "counts": symdp.mechanisms.negative_binomial(r=3, p="1/3"),
    "list": symdp.Mechanism.from_pair(
        [0.5, 0.3, 0.2], [0.125, 0.25, 0.625], X, {"points": [0, 1, 2]}),
    "sample": symdp.mechanisms.laplace(b=2).subsample("poisson", "1/5"),
}  # fmt: skip


@pytest.mark.quick_cases("list", "Gumbel")
@pytest.mark.parametrize("name", TWO_LAWS)
def test_where_the_directions_differ_the_larger_delta_is_shown_and_named(name):
    """The larger δ, of the definition at one step, stands beside that of the asked direction."""
    steps = symdp.compose(TWO_LAWS[name], 1)
    of = {side: steps.delta(0.1, direction=side).delta for side in ("remove", "add")}
    larger = max(of, key=of.get)
    for side, own in of.items():
        for _, rows in sheets(steps, None, 0.1, 1, side):
            shown = {row[0]: number(row[2]) for row in rows if "δ (" in row[0] or "both" in row[0]}
            assert shown == {
                f"exact δ (exact, contour), {side} direction": pytest.approx(own, rel=1e-5),
                f"δ of both directions: {larger} is the larger": pytest.approx(
                    of[larger], rel=1e-5
                ),
            }


@pytest.mark.slow
def test_an_epsilon_that_is_asked_for_is_that_of_both_directions(shell):
    ran = shell("derive gumbel b=2 -n 3 --delta 1/1000")
    assert ran.code == 0
    epsilon = symdp.compose(symdp.mechanisms.gumbel(b=2), 3).epsilon(1e-3).epsilon
    assert f"at ε = {epsilon:g}, n = 3, remove direction" in ran.out
    assert "add is the larger" in ran.out


@pytest.mark.slow
def test_every_tail_constant_of_a_normal_loss_is_a_number():
    gaussian = symdp.mechanisms.gaussian(sigma=2)
    rows = {row[0]: row[2] for row in tails_sheet(symdp.derive(gaussian), 10, 1.0)}
    assert rows["τ"] == "∞"
    assert number(rows["s_P²"]) == pytest.approx(0.25)
    assert number(rows["η"]) == pytest.approx(0.125)
    assert number(rows["P_t at t = 0"]) == pytest.approx(0.199471, rel=1e-5)


@pytest.mark.slow
def test_sheets_are_tables_that_keep_to_a_width():
    found = sheets(MADE, symdp.derive(SAMPLED), 1.0, 2, "remove")
    text = to_text(sheet_blocks(found, " at ε = 1"), 100)
    assert max(map(len, text.splitlines())) <= 100
    assert "δ₂ = δ₀·(1 + c₁ + c₂)" in text
    plain = to_text(sheet_blocks(found, " at ε = 1"), 60, ascii_only=True)
    assert plain.isascii()
    assert max(map(len, plain.splitlines())) <= 60


@pytest.mark.parametrize(
    "row", [("exact δ", "", "0.1"), ("no series", "", ""), ("a = b", "2", "3")]
)
def test_rows_without_numbers_and_narrow_terminals_have_columns_too(row):
    for width in (10, 100):
        assert row[2] in to_text(sheet_blocks([("a title", [row])], ""), width)


def test_a_mass_at_infinity_is_added_to_the_series():
    mechanism = symdp.mechanisms.approximate_dp(epsilon_0=1, delta_0="1/1000")
    found = dict(sheets(symdp.compose(mechanism, 30), symdp.derive(mechanism), 4.0, 1, "remove"))
    assert list(found) == ["Saddle-point series", "Edgeworth series", "Tail constants"]
    rows = {row[0].partition(" =")[0]: row[2] for row in found["Saddle-point series"]}
    assert number(rows["A"]) == pytest.approx(1 - 0.999**30, rel=1e-5)
    assert number(rows["δ₁"]) > number(rows["δ₀"]) > number(rows["A"])


def test_a_loss_of_one_value_has_no_series():
    whole = symdp.Mechanism.from_toml(
        'name = "w"\nsupport = [0, 1, 2]\n[pair]\nP = ["1/4", "3/4", "0"]\nQ = ["0", "1/2", "1/2"]'
    )
    found = sheets(symdp.compose(whole, 3), symdp.derive(whole), 2.0, 1, "remove")
    assert [title for title, _ in found] == ["δ", "Tail constants"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("derive gaussian -n 10", "give --epsilon E or --delta D as well"),
        ("derive gaussian -n 10 --epsilon 1", "sigma"),
        ("derive gaussian sigma=1 -n 9 --epsilon 1 --format latex", "--format text, json"),
    ],
)
def test_what_is_missing_is_one_line(shell, words, told):
    ran = shell(words)
    assert ran.code == 2
    assert told in ran.err
