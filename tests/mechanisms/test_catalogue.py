"""What is built in, in words; and what is not, with the reason."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from refusals import refused

import symdp
from symdp.cli.catalogue import source
from symdp.mechanisms import resolve

FOLDER = Path(symdp.mechanisms.__file__).parent
REFUSED = [
    tomllib.loads(path.read_text(encoding="utf-8"))
    for path in sorted((FOLDER / "without_pair").glob("*.toml"))
]


def list_word(name):
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8")).get("family", "")


@pytest.mark.parametrize("name", symdp.mechanisms.names())
def test_one_is_shown_with_family_parameters_relation_and_source(shell, name):
    out = shell(f"list {name}").out
    held = getattr(symdp.mechanisms, name)
    for part in (held.title, held.description, held.citation, list_word(name), held.protects):
        assert part in out
    assert held.dominates in out
    assert "adaptive" in held.dominates
    for heading in ("family ", "dominates ", "protects ", "source ", *held.parameters):
        assert heading in out


def test_the_table_names_families_and_sources(shell):
    out = shell("list").out
    for part in ("selection", "black box", "additive noise", "Kairouz et al. 2015", "Warner 1965"):
        assert part in " ".join(out.split())


def test_pairs_say_what_they_protect():
    for name in symdp.mechanisms.names():
        held = getattr(symdp.mechanisms, name)
        if held.is_given:
            assert list_word(name), name
            assert held.protects, name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A. B. One, C. Two: Title (ICML 2015)", "One and Two 2015"),
        ("A. One, B. Two, C. Three: Title (arXiv 2202.01100)", "One et al. 2022"),
        ("", ""),
    ],
)
def test_sources_in_short(text, words):
    assert source({"citation": text}) == words


@pytest.mark.parametrize("document", REFUSED, ids=lambda document: document["names"][0])
def test_what_has_no_known_pair_is_refused_by_name(document, shell):
    assert not set(document["names"]) & set(symdp.mechanisms.names())
    for name in document["names"]:
        with refused(name, document["why"], document["instead"]):
            resolve(name)
    ran = shell(f"delta {document['names'][0]} -n 3 --epsilon 1")
    assert ran.code == 2
    assert document["instead"] in " ".join(ran.err.split())


def test_a_mechanism_that_nobody_knows_is_named_with_a_match(shell):
    ran = shell("list exponentail")
    assert ran.code == 2
    assert "did you mean 'exponential'" in ran.err
