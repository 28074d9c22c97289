"""Citations: BibTeX for exactly what a result used."""

from __future__ import annotations

import re

import pytest

import symdp
from symdp import methods
from symdp.citation import REFERENCES, bibtex, tag_of
from symdp.page.report import full

ENTRY = re.compile(r"@(\w+)\{(\w+),\n((?:  \w+ = \{.*\},?\n)+)\}")


def keys(text: str) -> list[str]:
    return [found.group(2) for found in ENTRY.finditer(text)]


@pytest.mark.parametrize("tag", REFERENCES)
def test_every_entry_is_well_formed(tag):
    text = REFERENCES[tag].bibtex()
    found = ENTRY.fullmatch(text)
    assert found, text
    assert text.isascii()
    assert text.count("{") == text.count("}")
    fields = dict(re.findall(r"  (\w+) = \{(.*)\},?\n", found.group(3)))
    assert {"title", "author", "year"} <= set(fields)
    assert re.fullmatch(r"(19|20)\d\d", fields["year"])
    needed = {"article": "journal", "inproceedings": "booktitle", "misc": "eprint"}
    assert needed[found.group(1)] in fields


def test_keys_are_unique():
    names = [reference.key for reference in REFERENCES.values()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", methods.names())
def test_every_accountant_can_be_cited(name):
    for citation in methods.accountant(name).citations:
        assert tag_of(citation) in REFERENCES, f"{name} cites {citation!r}"


def test_an_answer_cites_what_it_used_and_nothing_else():
    steps = symdp.compose(symdp.mechanisms.gaussian(sigma=5), 20)
    assert keys(steps.delta(1.0).citation()) == ["alghamdi2022saddlepoint"]
    assert keys(steps.delta(1.0, method="edgeworth:2").citation()) == ["wang2022edgeworth"]
    both = steps.epsilon(1e-3, method="lugannani-rice").citation()
    assert keys(both) == ["daniels1987tail", "alghamdi2022saddlepoint"]


def test_a_derivation_cites_its_mechanism_its_sampling_and_its_expansions():
    plain = symdp.derive(symdp.mechanisms.logistic)  # a mechanism without a source of its own
    assert keys(plain.citation()) == ["alghamdi2022saddlepoint", "wang2022edgeworth"]
    gaussian = symdp.mechanisms.gaussian(sigma=2)
    sampled = symdp.derive(gaussian.subsample("without_replacement", "1/10"))
    assert keys(sampled.citation()) == [
        "source1", "balle2018subsampling", "zhu2022optimal", "alghamdi2022saddlepoint",
        "wang2022edgeworth",
    ]  # fmt: skip
    assert "Dwork" in sampled.citation()
    poisson = symdp.derive(gaussian.subsample("poisson", "1/10"))
    assert "koskela2023individual" in keys(poisson.citation())


def test_free_text_is_escaped_and_numbered():
    text = bibtex(["A & B: 100% of {x}_y", "", "SPA (60)", "C", "SPA"])
    assert keys(text) == ["source1", "alghamdi2022saddlepoint", "source2"]
    assert r"A \& B: 100\% of \{x\}\_y" in text
    assert bibtex([]) == ""


def test_a_page_and_a_bibliography_tell_the_same():
    (line,) = full(["FA Alg. 1", "FA 6.2"])
    reference = REFERENCES["FA"]
    assert reference.title in line
    assert all(author.partition(",")[0] in line for author in reference.authors)
    assert r"J{\"a}lk{\"o}" in reference.bibtex()
