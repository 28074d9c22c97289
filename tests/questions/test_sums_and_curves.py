"""Sums and multiples of compositions; curves as CSV and in axes; trade-offs of arrays."""

import csv
import io
from decimal import Decimal

import numpy as np
import pytest

from symdp import compose, mechanisms
from symdp.errors import InputError

NOISE, COUNT = mechanisms.gaussian(sigma=4), mechanisms.laplace(b=8)


def test_sums_and_multiples_are_the_composition_of_all_steps():
    a, b = compose(NOISE, 3), compose(COUNT, 2)
    assert (a + b).steps == compose([(NOISE, 3), (COUNT, 2)]).steps
    assert (100 * a).steps == (a * 100).steps == compose(NOISE, 300).steps
    assert (a + 2 * (a + b)).epsilon(1e-5).epsilon == compose([(NOISE, 9), (COUNT, 4)]).epsilon(
        1e-5
    ).epsilon


@pytest.mark.parametrize("times", [0, -1, 2.5, True, None])
def test_a_multiple_is_a_positive_whole_number(times):
    with pytest.raises(InputError, match="positive integer"):
        times * compose(NOISE, 3)


def test_other_neighbours_and_other_things_do_not_add_up():
    with pytest.raises(InputError, match="one neighbouring relation"):
        compose(NOISE, 1) + compose(NOISE.under("substitution"), 1)
    with pytest.raises(TypeError):
        compose(NOISE, 1) + 3


def test_a_curve_as_csv(tmp_path):
    curve = compose(NOISE, 3).delta([0.5, 1.5, 40.0])
    path = tmp_path / "curve.csv"
    text = curve.to_csv(path)
    assert path.read_text(encoding="utf-8") == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [float(row["epsilon"]) for row in rows] == [0.5, 1.5, 40.0]
    assert [float(row["delta"]) for row in rows[:2]] == list(curve.delta[:2])
    for row in rows:
        lower, delta, upper = (Decimal(row[name]) for name in ("lower", "delta", "upper"))
        assert 0 < lower <= delta <= upper  # the last one far below the double range
    assert {row["kind"] for row in rows} == {"exact"}
    bounds = compose(NOISE, 3).delta([0.5], "moments").to_csv().splitlines()[1]
    assert ",bound,moments," in bounds
    with pytest.raises(InputError, match="cannot be written"):
        curve.to_csv(tmp_path / "nowhere" / "curve.csv")


def test_a_curve_in_axes():
    figure = pytest.importorskip("matplotlib.figure")
    axes = figure.Figure().subplots()
    curve = compose(NOISE, 3).delta([0.5, 1.5])
    assert curve.plot(ax=axes, label="three") is axes
    (line,) = axes.lines
    assert list(line.get_ydata()) == list(curve.delta)
    assert (axes.get_yscale(), line.get_label()) == ("log", "three")


def test_a_trade_off_of_an_array():
    steps = compose(NOISE, 3)
    alpha = np.array([0.0, 0.01, 0.5, 1.0])
    curve = steps.trade_off(alpha)
    assert isinstance(curve, np.ndarray)
    # Array code and scalar code of one function differ by an ulp on some processors.
    one_by_one = [steps.trade_off(float(level)) for level in alpha]
    assert curve == pytest.approx(one_by_one, rel=1e-15, abs=0.0)
    assert np.all(np.diff(curve) < 0)
    with pytest.raises(InputError, match="alpha"):
        steps.trade_off([0.1, 1.1])
