"""Public deployments are what their files give, by closed forms that share no code with symdp."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from fractions import Fraction

import mpmath
import pytest
from pages import ROOT

import symdp

FILES = ROOT / "examples" / "deployments"
PAGE = (ROOT / "docs" / "deployments.md").read_text(encoding="utf-8")
# ρ, or μ²/2, and δ of the records: what is published of noise that is Gaussian.
GAUSSIAN = {
    "census_redistricting_persons": ("2.56", "1e-10", "16.48"),
    "census_redistricting_housing": ("0.07", "1e-10", "2.2796"),
    "census_dhc_persons": ("4.96", "1e-10", None),
    "census_dhc_housing": ("7.70", "1e-10", None),
    "census_detailed_dhc_a": ("19.776", "1e-10", None),
    "census_detailed_dhc_b": ("17.79", "1e-10", None),
    "census_supplemental_dhc": ("2.515", "1e-10", None),
    "census_business_patterns": ("12.058", "1e-10", None),
    "gboard_spanish": ("0.81", "1e-10", "8.549"),
    "wikimedia_current": ("0.015", "1e-10", None),
    "facebook_urls": ("0.070688", "1e-5", "1.452"),  # 0.376²/2
}
# The ε of each step, and how often it is taken: they add up to a pure ε.
PURE = {
    "google_mobility": ("2.64", {"0.11": 12, "0.22": 6}),
    "google_symptoms": (
        "1.68",
        {"0.056": 3, "37/300": 3, "11/30": 3, "0.0023": 2, "0.0047": 2, "0.014": 2},
    ),
    "microsoft_broadband": ("0.2", {"0.1": 2}),
    "spectus_hurricane": ("10", {"4": 1, "2": 1, "1": 1, "3": 1}),
    "wikimedia_editors": ("2", {"1.1": 1, "0.9": 1}),
    "wikimedia_russian_editors": ("0.1", {"0.1": 1}),
    "apple_emojis": ("4", {"2": 2}),
    "apple_healthkit": ("2", {"1": 2}),
    "apple_autoplay": ("8", {"4": 2}),
    "apple_safari_energy": ("4", {"4": 1}),
}
OTHERS = {"google_trips", "recurve_energy"}


@pytest.fixture(scope="module")
def deployments():
    """Load what writes the page."""
    path = ROOT / "docs" / "deployments.py"
    specification = importlib.util.spec_from_file_location("deployments", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def shown(name):
    """The cells of a row of the page."""
    line = next(line for line in PAGE.splitlines() if f"`{name}.toml`" in line)
    return [cell.strip() for cell in line.split("|")[1:-1]]


def gaussian_epsilon(rho, delta):
    """The root of Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) = δ, μ² = 2ρ, to 30 digits."""
    with mpmath.workdps(50):
        mu = mpmath.sqrt(2 * mpmath.mpf(rho))

        def height(epsilon):
            last = mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)
            return mpmath.log((mpmath.ncdf(-epsilon / mu + mu / 2) - last) / mpmath.mpf(delta))

        low, high = mpmath.mpf(0), mu**2 / 2 + 10 * mu  # Φ(−10) is below every δ here
        for _ in range(120):
            middle = (low + high) / 2
            low, high = (middle, high) if height(middle) > 0 else (low, middle)
        return high


@pytest.mark.slow_cases(
    "census_dhc_persons", "census_dhc_housing", "census_detailed_dhc_a", "census_detailed_dhc_b"
)
@pytest.mark.parametrize("name", GAUSSIAN)
def test_gaussian_noise(name):
    rho, delta, known = GAUSSIAN[name]
    truth = gaussian_epsilon(rho, delta)
    steps = symdp.load_composition(FILES / f"{name}.toml")
    assert abs(steps.epsilon(delta).epsilon / truth - 1) < 1e-12  # what doubles hold
    cell = shown(name)[2]
    assert 0 <= float(cell) - truth < 1e-4 * truth  # five digits, rounded up
    assert known in (None, cell.rstrip("0"))


@pytest.mark.parametrize("name", PURE)
def test_pure_noise(name):
    total, parts = PURE[name]
    assert sum(Fraction(epsilon) * count for epsilon, count in parts.items()) == Fraction(total)
    counts = [
        step.get("count", 1)
        for step in tomllib.loads((FILES / f"{name}.toml").read_text("utf-8"))["step"]
    ]
    assert counts == list(parts.values())
    assert shown(name)[1:3] == [f"({total}, 0)", total]
    steps = symdp.load_composition(FILES / f"{name}.toml")
    assert steps.law("remove").loss_bounds[1] == pytest.approx(float(Fraction(total)), rel=1e-14)


def test_a_delta_below_every_grid():
    """δ = e^{−65.34}/2 = 2.0995e-29 that a count of 1 comes to 100; at ε = 0.66 no more is left."""
    with mpmath.workdps(30):
        truth = mpmath.exp(mpmath.mpf("-65.34")) / 2
    steps = symdp.load_composition(FILES / "google_trips.toml")
    assert abs(steps.delta("0.66").delta / truth - 1) < 1e-12
    assert truth < 2.1e-29
    assert shown("google_trips")[2] == "0.66"


def test_every_file_is_a_row_and_every_row_a_file(deployments):
    there = {path.stem for path in FILES.glob("*.toml")}
    assert there == {one.file for one in deployments.DEPLOYMENTS}
    assert there == GAUSSIAN.keys() | PURE.keys() | OTHERS
    assert set(re.findall(r"`(\w+)\.toml`", PAGE)) == there


@pytest.mark.slow
def test_the_page_is_what_its_program_writes(deployments):
    assert deployments.page() == PAGE
