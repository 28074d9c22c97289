"""What docs/reproduction.md prints is what the package computes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from symdp import compose, mechanisms

PAGE = Path(__file__).parents[1] / "docs" / "reproduction.md"
ROW = re.compile(
    r"\| (remove|substitution), q = ([\d.]+), σ = (\d), k = ([\d,]+), ε = ([\d.]+)"
    r" \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| (.+) \|"
)


def rows():
    return ROW.findall(PAGE.read_text())


def test_all_ten_values_are_there():
    assert len(rows()) == 10
    assert [row[-1].startswith("off") for row in rows()].count(True) == 2


@pytest.mark.parametrize("place", range(10))
def test_certified_digits(place):
    """The page's proved value against the contour, and its verdict on the published digits."""
    relation, rate, sigma, steps, epsilon, paper, _, certified, verdict = rows()[place]
    noise = mechanisms.gaussian(sigma=sigma)
    if relation == "substitution":  # [FA 6.2] has the pair of Poisson batches
        noise = noise.under("substitution")
    noise = noise.subsample("poisson", rate)
    found = compose(noise, int(steps.replace(",", ""))).delta(float(epsilon), direction="remove")
    assert found.delta == pytest.approx(float(certified), rel=1e-11)
    error = abs(float(paper) / found.delta - 1.0)
    assert verdict.startswith("off" if error > 1e-6 else "right")


def test_tables_and_figures_are_there():
    text = PAGE.read_text()
    for what in ("FA Table 1", "FA Table 2", "| 495 | 495 |", "| 0.8 | 0.8", "## Figures"):
        assert what in text
    for name in re.findall(r"\(figures/([\w-]+\.svg)\)", text):
        picture = (PAGE.parent / "figures" / name).read_text()
        assert picture.lstrip().startswith("<?xml")
        assert "nan" not in picture.lower().split("<metadata>")[0]
    assert len(re.findall(r"!\[", text)) == 24
    for paper in ("FA", "SPA", "EA", "PRV", "IND"):
        assert f"| {paper} | " in text
