"""Sums of many exponentials by one transform, against sums in extended precision."""

from __future__ import annotations

import numpy as np
import pytest

from symdp.numeric.elementary import column_sums, uniform_sum


def plainly(weight, angle, places):
    """The sums term by term; k times an angle is exact to 64 bits."""
    turns = np.multiply.outer(places.astype(np.longdouble), angle.astype(np.longdouble))
    turns = np.fmod(turns, 2.0 * np.arctan2(np.longdouble(0.0), np.longdouble(-1.0)))
    return np.exp(1j * turns.astype(np.float64)) @ weight


@pytest.mark.slow_cases("1500-0.3-1048576", "1500-3.0-1048576")
@pytest.mark.parametrize("size", [1 << 10, 1 << 16, 1 << 20])
@pytest.mark.parametrize("width", [0.3, 3.0])
@pytest.mark.parametrize("points", [20, 1_500])
def test_only_the_frequency_itself_multiplies_the_rounding_of_an_angle(size, width, points):
    """Next to k = 0 a long sum is as accurate as a short one, by a product or a transform."""
    random = np.random.default_rng(1)
    weight, angle = random.random(points), np.clip(width * random.normal(size=points), -6.0, 6.0)
    weight /= weight.sum()
    places = np.unique(np.geomspace(1, size, 600).astype(int) - 1)
    error = np.abs(uniform_sum(weight, angle, 0, size)[places] - plainly(weight, angle, places))
    assert (error <= 5e-14 + 4e-16 * width * places).all()


def test_sums_of_columns():
    random = np.random.default_rng(2)
    weight, angle = random.random((30, 2)), random.normal(size=30)
    places = np.arange(500)
    found = column_sums(weight, angle, places.size)
    for column in range(2):
        expected = plainly(weight[:, column], -angle, places)
        allowed = (1e-14 + 4e-16 * np.abs(angle).max() * places) * weight[:, column].sum()
        assert (np.abs(found[column] - expected) <= allowed).all()
