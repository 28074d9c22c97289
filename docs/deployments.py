"""The page of public deployments, each computed anew from its file in examples/deployments.

Run it as `python docs/deployments.py`; it writes docs/deployments.md.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import symdp
from symdp.decimal_text import given, rounded
from symdp.questions.claim import CheckedClaim

HERE = Path(__file__).parent
FILES = HERE.parent / "examples" / "deployments"
REGISTRY = "https://github.com/opendp/deployments-registry-data/blob/main/deployments"
_VERDICTS = {"proved": "proved", "exact": "true", "refuted": "refuted", "open": "open"}


class Deployment(NamedTuple):
    """A row: the file of ours, that of the registry, the claim, and what is to be said of it."""

    file: str
    title: str
    record: str
    epsilon: str | None  # as published, None where only ρ is
    delta: str  # as published; of those without ε, the one to compare at
    why: str
    unsaid: str


_CONVERTED = "published is a conversion of ρ; the exact ε is that of Gaussian noise with this ρ"
_CENSUS = "which conversion; the noise of each query, on integers, of which ρ is the sum"
_RHO = "only ρ is published"
_PURE = "the sum of ε, and right: pure claims have no slack"
_SKETCH = "two bits of ε/2 each make ε, and right"
_EVENTS = "how many events a person has; what many days come to"

DEPLOYMENTS = (
    Deployment(
        "census_redistricting_persons", "2020 Census, redistricting, persons",
        "census_redistricting_data", "17.14", "1e-10", _CONVERTED, _CENSUS,
    ),
    Deployment(
        "census_redistricting_housing", "2020 Census, redistricting, housing units",
        "census_redistricting_data", "2.47", "1e-10", _CONVERTED, _CENSUS,
    ),
    Deployment(
        "census_dhc_persons", "2020 Census, demographic and housing, persons",
        "census_demographic_and_housing", "26.34", "1e-10", _CONVERTED,
        f"{_CENSUS}; 4.96 and 7.70 are not the 15.29 in all",
    ),
    Deployment(
        "census_dhc_housing", "2020 Census, demographic and housing, housing units",
        "census_demographic_and_housing", "34.33", "1e-10", _CONVERTED, _CENSUS,
    ),
    Deployment(
        "census_detailed_dhc_a", "2020 Census, detailed demographic and housing A",
        "census_detailed_demographic_and_housing_a", None, "1e-10", _RHO, "ε and δ",
    ),
    Deployment(
        "census_detailed_dhc_b", "2020 Census, detailed demographic and housing B",
        "census_detailed_demographic_and_housing_b", None, "1e-10", _RHO, "ε and δ",
    ),
    Deployment(
        "census_supplemental_dhc", "2020 Census, supplemental demographic and housing",
        "census_supplemental_demographic_and_housing", None, "1e-10", _RHO, "ε and δ",
    ),
    Deployment(
        "census_business_patterns", "County Business Patterns",
        "county_business_patterns", None, "1e-10", _RHO,
        "ε and δ; a record's own ρ grows with its size",
    ),
    Deployment(
        "gboard_spanish", "Next word in Spanish, Google keyboard",
        "spanish_language_next_word", None, "1e-10", _RHO, "ε and δ; the other models of a device",
    ),
    Deployment(
        "wikimedia_current", "Page views by country, Wikimedia",
        "wikimedia_current_usage_data", None, "1e-10", _RHO, "ε and δ; what many days come to",
    ),
    Deployment(
        "facebook_urls", "URL shares, Facebook",
        "user_url_privacy", "1.453", "1e-5", "computed from μ, and right",
        "the σ of each action; μ has three digits",
    ),
    Deployment(
        "recurve_energy", "Energy use of a comparison group, Recurve",
        "recurve_energy_dp", "6.8", "4.08e-8", "the sum of ε of six queries, before sampling",
        "how the sample was drawn, without which neither 0.843 nor 4.72 has a proof",
    ),
    Deployment(
        "google_trips", "Trips between cells, Google",
        "shared_mobility_dataset", "0.66", "2.1e-29",
        "right: δ is the chance e^{−0.66 · 99}/2 that Laplace noise lifts a count of 1 to 100",
        "that the threshold is 100 is what this δ tells",
    ),
    Deployment(
        "google_mobility", "Community Mobility Reports, Google",
        "google_mobility", "2.64", "0", _PURE,
        "what many days come to; the noise of the mean, here one Laplace step a level",
    ),
    Deployment(
        "google_symptoms", "Search Trends symptoms, Google",
        "covid19_search_trends_symptoms", "1.68", "0", _PURE,
        "the three ε of the normalization add up to half of the 0.042 that is stated",
    ),
    Deployment(
        "microsoft_broadband", "Broadband coverage, Microsoft",
        "broadband_coverage", "0.2", "0", _PURE,
        "how many devices a user has; the noise is for one",
    ),
    Deployment(
        "spectus_hurricane", "Mobility after a hurricane, Spectus",
        "mobility_trends_hurricane", "10", "0", _PURE, "the unit beyond \"user\"",
    ),
    Deployment(
        "wikimedia_editors", "Editor activity by country, Wikimedia",
        "wikimedia_editor_activity_statistics_2023", "2", "0", _PURE,
        "groups dropped below a threshold have a key set of their own",
    ),
    Deployment(
        "wikimedia_russian_editors", "Editor activity in Russia, Wikimedia",
        "wikimedia_russian_editor_activity_statistics_2023", "0.1", "0", _PURE,
        "the record gives ε = 0.9 for the same noise scale 10 further below",
    ),
    Deployment(
        "apple_emojis", "Popular emojis, Apple",
        "apple_popular_emojis", "4", "0", _SKETCH, _EVENTS,
    ),
    Deployment(
        "apple_healthkit", "Health data types, Apple", "healthkit", "2", "0", _SKETCH, _EVENTS,
    ),
    Deployment(
        "apple_autoplay", "Sites that play sound, Apple",
        "autoplay_intent", "8", "0", _SKETCH, _EVENTS,
    ),
    Deployment(
        "apple_safari_energy", "Energy drain in Safari, Apple",
        "safari_energy_drain", "4", "0", "one bit, and right", _EVENTS,
    ),
)  # fmt: skip

_HEAD = """# Public deployments, computed anew

The [registry of deployments](https://github.com/opendp/deployments-registry-data) keeps, for
each, what its curator states: the privacy unit, ε, δ or ρ, and the mechanisms. Of {many} records
that is enough to compute ε anew. Each row is a file in `examples/deployments/`; `symdp
epsilon --composition FILE --delta D` and `symdp check-claim CLAIM --composition FILE` say the
same as the table. `python docs/deployments.py` writes this page.

- **published**: (ε, δ) of the record; ρ alone where there is no more.
- **exact**: ε at that δ, rounded up; at δ = 1e-10 where only ρ is published. At δ = 0 it is the
  largest loss.
- **at 1e-6**: of pure claims, what the same noise has at δ = 1e-6.
- **verdict**: that of [`check-claim`](claims.md): proved is proved in ball arithmetic, every
  rounding included; a true claim is loose where an ε with three digits below it would do.

What is called exact is so for the mechanism in the file, and the file is our reading of a record:
of many Gaussian queries whose ρ add up it has one Gaussian step of the whole ρ, which has the
same law of the loss. Noise on integers differs from that in digits that depend on each query's
scale, which no record states. A deployment may add what the record does not say; then its ε is
another one.

| deployment | published | exact | at 1e-6 | verdict | why they differ | what was not stated |
| --- | --- | --- | --- | --- | --- | --- |
"""


def exact_epsilon(composition: symdp.Composition, delta: str) -> str:
    """Return ε at a δ to four digits, rounded up; at 0 the largest loss."""
    if Fraction(delta) == 0:
        laws = [composition.law(side) for side in composition.sides("both")]
        # A rounded largest loss is no larger one, as 3.3000000000000003 is of 3.3.
        return rounded(
            Fraction(max(law.loss_bounds[1] for law in laws)).limit_denominator(10**9), 12
        )
    # Twelve digits are right; the last bit of a double must not lift 0.66 to 0.66001.
    return rounded(Fraction(rounded(composition.epsilon(delta).epsilon, 12)), 5, "up")


def verdict_of(found: CheckedClaim) -> str:
    """Return the verdict in words."""
    loose = f", loose: {given(float(found.would_do or 0))}" if found.is_loose else ""
    return _VERDICTS[found.verdict] + loose


def row(one: Deployment) -> str:
    """Return a row of the table."""
    composition = symdp.load_composition(FILES / f"{one.file}.toml")
    published, verdict = "ρ alone", ""
    if one.epsilon is not None:
        published = f"({one.epsilon}, {one.delta})"
        verdict = verdict_of(composition.check_claim(one.epsilon, one.delta))
    pure = exact_epsilon(composition, "1e-6") if one.delta == "0" else ""
    name = f"[{one.title}]({REGISTRY}/{one.record}.yaml), `{one.file}.toml`"
    cells = (
        name,
        published,
        exact_epsilon(composition, one.delta),
        pure,
        verdict,
        one.why,
        one.unsaid,
    )
    return f"| {' | '.join(cells)} |"


def page() -> str:
    """Return the page."""
    rows = "\n".join(map(row, DEPLOYMENTS))
    return _HEAD.format(many=len({one.record for one in DEPLOYMENTS})) + rows + "\n"


if __name__ == "__main__":
    (HERE / "deployments.md").write_text(page(), encoding="utf-8")
