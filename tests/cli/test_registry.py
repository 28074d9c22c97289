"""`symdp card --registry`: the fields of the registry of deployments, as YAML."""

from __future__ import annotations

import math

import pytest

import symdp
from symdp import mechanisms
from symdp.page.card import make_card, registry_record

# The names that the registry's schema has where a card has something, and those that it requires.
NAMES = {
    "": {"url_slug", "status", "tier", "deployment"},
    "deployment": {
        "basic", "dp_variant", "privacy_loss", "accounting", "implementation", "administrative",
    },
    "basic": {
        "name", "data_curators", "intended_use", "data_product_type", "data_product_region",
        "description", "publication_date",
    },
    "privacy_loss": {
        "privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details",
    },
    "privacy_parameters": {"epsilon", "delta"},
    "administrative": {"sources", "notes", "registry_authors"},
}  # fmt: skip
HOSTILE = 'a: "b" # {c} [d] | > & * ! % @ ` é ε \x1b[31m \x7f \x85 \u2028 \n- x: y'


def record(title="A trial"):
    steps = symdp.compose(mechanisms.gaussian(sigma=4), 10)
    return registry_record(make_card(steps, title=title, date="2026-01-31"))


def test_the_fields_are_those_of_the_schema():
    found = pytest.importorskip("yaml").safe_load(record())
    assert set(found) == NAMES[""]
    assert set(found["deployment"]) == NAMES["deployment"]
    for name in ("basic", "privacy_loss", "administrative"):
        assert set(found["deployment"][name]) == NAMES[name]
    told = found["deployment"]["privacy_loss"]["privacy_parameters"]
    assert set(told) == NAMES["privacy_parameters"]
    assert found["url_slug"] == "a-trial"


def test_its_numbers_are_numbers_and_hold():
    """YAML 1.1 takes 1e-05 for a text; an ε is never rounded down."""
    found = pytest.importorskip("yaml").safe_load(record())
    told = found["deployment"]["privacy_loss"]["privacy_parameters"]
    assert (type(told["epsilon"]), told["delta"]) == (float, 1e-5)
    exact = symdp.compose(mechanisms.gaussian(sigma=4), 10).epsilon(1e-5).epsilon
    assert exact <= told["epsilon"] < exact + 10 ** (math.floor(math.log10(exact)) - 5)


def test_what_is_not_known_is_empty():
    text = record()
    assert text.count("''  # to be filled in") == 8
    assert "epsilon: 3." in text
    assert "delta: 1.0e-05" in text
    assert "10 × Gaussian mechanism, sigma = 4; no sampling" in text


def test_no_title_breaks_the_file():
    text = record(HOSTILE)
    assert "\x1b" not in text
    found = pytest.importorskip("yaml").safe_load(text)
    name = found["deployment"]["basic"]["name"]
    assert name == 'a: "b" # {c} [d] | > & * ! % @ ` é ε [31m - x: y'


@pytest.mark.slow
def test_on_the_command_line(shell, tmp_path):
    run = "card --examples 1000 --batch 10 --epochs 1 --noise 2 --delta 1e-5"
    file, card = tmp_path / "card.yaml", tmp_path / "card.json"
    ran = shell(run, "--registry", str(file), "-o", str(card))
    assert (ran.code, ran.out) == (0, f"{card}\n{file}\n")
    assert 'data_product_type: "Machine learning model"' in file.read_text(encoding="utf-8")
    assert shell(run, "--registry", str(tmp_path / "card.yml")).code == 2
    none = shell(run)
    assert (none.code, none.err.count("\n")) == (2, 1)
    both = shell("card --check", str(card), "--registry", str(file))
    assert (both.code, both.err.count("\n")) == (2, 1)
