"""Tables of answers over a grid: what single questions answer, in the order of the grid."""

from __future__ import annotations

import csv
import sys
from statistics import NormalDist

import numpy as np
import pytest

import symdp
from symdp import InputError, compose, mechanisms, sweep

NORMAL = NormalDist()
SAMPLED = mechanisms.gaussian.subsample("poisson", "q")


def gaussian_delta(sigma, count, epsilon):
    """Return δ(ε) of Gaussian noise on a sensitivity of 1, in closed form."""
    mu = count**0.5 / sigma
    upper = NORMAL.cdf(mu / 2 - epsilon / mu)
    return upper - np.exp(epsilon) * NORMAL.cdf(-mu / 2 - epsilon / mu)


def test_rows_are_in_the_order_of_the_grid_and_agree_with_a_closed_form():
    table = sweep(mechanisms.gaussian, {"sigma": [2, 3.5]}, [1, 30], epsilon=[0.5, 1.0])
    rows = [(s, n, e) for s in (2, 3.5) for n in (1, 30) for e in (0.5, 1.0)]
    assert list(zip(table["sigma"], table["n"], table["epsilon"], strict=True)) == rows
    assert table.delta == pytest.approx([gaussian_delta(*row) for row in rows], rel=1e-9)


def test_rows_are_what_single_questions_answer():
    grid = {"sigma": np.asarray([1.25, 1.5]), "q": ["1/100", "1/50"]}
    table = sweep(SAMPLED, grid, np.int64(1000), delta=1e-6)
    assert len(table) == 4
    assert set(table.n) == {1000}
    for sigma, q, answer in zip(table["sigma"], table["q"], table.answers, strict=True):
        one = compose(mechanisms.gaussian(sigma=float(sigma)).subsample("poisson", str(q)), 1000)
        assert answer.epsilon == one.epsilon(1e-6).epsilon
        assert answer.lower <= answer.epsilon <= answer.upper


def test_csv_has_a_row_for_each_answer_and_no_cell_for_a_bound_that_is_not_there(tmp_path):
    table = sweep(mechanisms.laplace, {"b": 3}, [40, 50], epsilon=2, method="msd:1")
    assert table.to_csv(tmp_path / "table.csv") == (tmp_path / "table.csv").read_text("utf-8")
    rows = list(csv.DictReader(table.to_csv().splitlines()))
    assert [row["n"] for row in rows] == ["40", "50"]
    assert [row["upper"] for row in rows] == ["", ""]
    assert np.isnan(table["upper"]).all()
    assert [float(row["delta"]) for row in rows] == pytest.approx(table.delta, rel=1e-11)


def test_a_mechanism_without_parameters_is_swept_over_its_steps():
    table = sweep(mechanisms.laplace(b=3), {}, [1, 2], epsilon=0.1)
    assert table.to_csv().splitlines()[0].startswith("n,epsilon,delta")
    assert table.delta[0] < table.delta[1]


def test_a_data_frame_has_the_columns(monkeypatch):
    class Frame(dict):
        pass

    module = type(sys)("pandas")
    module.DataFrame = Frame
    monkeypatch.setitem(sys.modules, "pandas", module)
    table = sweep(mechanisms.laplace(b=3), {}, 2, epsilon=0.1)
    assert list(table.to_dataframe()) == list(table.columns())
    assert list(table.answers.to_dataframe()) == list(table.answers.columns())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pip install pandas"):
        table.to_dataframe()


def test_progress_counts_the_compositions():
    seen = []
    sweep(
        mechanisms.laplace, {"b": [3, 4]}, 2, epsilon=[0.1, 0.2], progress=lambda *s: seen.append(s)
    )
    assert seen == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("grid", "n", "asked", "message"),
    [
        ({"sigma": [1]}, 1, {}, "either epsilon or delta"),
        ({"sigma": [1]}, 1, {"epsilon": 1, "delta": 1e-5}, "either epsilon or delta"),
        ({"sigma": []}, 1, {"epsilon": 1}, "the grid of sigma has no values"),
        ({"sigma": [1]}, [], {"epsilon": 1}, "the grid of n has no values"),
        ({"sigm": [1]}, 1, {"epsilon": 1}, "no parameter 'sigm'"),
        ({}, 1, {"epsilon": 1}, "needs a value for sigma"),
        ({"sigma": [1, -1]}, 1, {"epsilon": 1}, "sigma must be"),
        ({"sigma": [1]}, 0, {"epsilon": 1}, "positive integer"),
        ({"sigma": np.ones((2, 2))}, 1, {"epsilon": 1}, "one dimension"),
    ],
)
def test_a_wrong_grid_is_named(grid, n, asked, message):
    with pytest.raises(InputError, match=message):
        sweep(mechanisms.gaussian, grid, n, **asked)


def test_an_unknown_column_is_named():
    table = sweep(mechanisms.laplace(b=3), {}, 2, epsilon=0.1)
    with pytest.raises(InputError, match="no column 'sigma'; there are n, epsilon"):
        table["sigma"]


@pytest.mark.slow
def test_combinations_that_are_refused_have_no_rows_and_are_told():
    """u > s is assumed: of four combinations of a splice's values two break it."""
    splice = symdp.Mechanism.from_toml(
        'name = "splice"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[parameters]\n'
        'u = "positive"\ns = "positive"\n[assume]\nu = "> s"\n[noise]\n'
        'density = "exp(-abs(x)/(u + s))/(2*(u + s))"\n'
    )
    table = sweep(splice, {"u": [2, 4], "s": [1, 3]}, [1, 2], epsilon=0.3)
    assert table["u"].tolist() == [2, 2, 4, 4, 4, 4]
    assert table["s"].tolist() == [1, 1, 1, 1, 3, 3]
    assert [values for values, _ in table.refused] == [
        {"u": 2, "s": 3, "n": 1},
        {"u": 2, "s": 3, "n": 2},
    ]
    assert all("u > s" in reason for _, reason in table.refused)
    assert "2 refused" in repr(table)
    assert table["delta"][4] == symdp.compose(splice(u=4, s=3), 1).delta(0.3).delta
    with pytest.raises(InputError, match="assum"):
        sweep(splice, {"u": [2], "s": [3]}, 1, epsilon=0.3)
