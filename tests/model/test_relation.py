"""Every answer says whose privacy it speaks of: in Python, in text, in JSON, in a file."""

from __future__ import annotations

import pytest
from shell import Shell

from symdp import Mechanism, compose, mechanisms
from symdp.model.relation import Protection, checked, protects

GAUSSIAN = mechanisms.gaussian(sigma=2)


@pytest.mark.slow_cases("mechanism5-substitution-poisson-False")
@pytest.mark.parametrize(
    ("mechanism", "relation", "sampling", "attained"),
    [
        (GAUSSIAN, "add_remove", "none", True),
        (GAUSSIAN.under("zero_out"), "zero_out", "none", True),
        (GAUSSIAN.under("substitution"), "substitution", "none", True),
        (GAUSSIAN.subsample("poisson", 0.1), "add_remove", "poisson", True),
        (GAUSSIAN.under("substitution").subsample("poisson", 0.1), "substitution", "poisson", True),
        (
            mechanisms.student_t(nu=3, s=1).under("substitution").subsample("poisson", 0.1),
            "substitution",
            "poisson",
            False,
        ),
        (
            GAUSSIAN.subsample("without_replacement", 0.1),
            "substitution",
            "without_replacement",
            False,
        ),
        (mechanisms.randomized_response(epsilon_0=1), "pair", "none", True),
    ],
)
def test_an_answer_carries_its_relation(mechanism, relation, sampling, attained):
    answer = compose(mechanism).delta(0.1)
    shift = "" if relation == "pair" else "at most"
    assert answer.protection == Protection(relation, sampling, 1, attained, shift=shift)
    json = answer.to_json()
    assert json.get("shift", "") == shift
    assert (json["relation"], json["sampling"]) == (relation, sampling)
    assert json["protects"].startswith(protects(relation))


def test_substitution_doubles_the_shift():
    ours = compose(GAUSSIAN.under("substitution"), 3).delta(1.0).delta
    assert ours == pytest.approx(compose(mechanisms.gaussian(sigma=1), 3).delta(1.0).delta)
    zero_out = compose(GAUSSIAN.under("zero_out"), 3).delta(1.0).delta
    assert zero_out == pytest.approx(compose(GAUSSIAN, 3).delta(1.0).delta, rel=1e-14)


def test_a_pair_of_laws_joins_any_relation_of_single_records():
    response = mechanisms.randomized_response(epsilon_0=1)
    steps = compose([(response, 1), (GAUSSIAN.under("substitution"), 2)])
    assert steps.protection.relation == "substitution"
    assert steps.delta(1.0).direction in {"remove", "add"}


def test_the_command_line_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(capsys)
    job = "delta gaussian sigma=2 -n 3 --epsilon 1 --sampling without-replacement --rate 0.1"
    text = shell(job)
    assert "protects one record's value changed; fixed batches: an upper bound" in text.out
    json = shell(f"{job} --json").json
    assert (json["relation"], json["direction"]) == ("substitution", "both")
    grouped = shell(f"{job.replace('without-replacement', 'poisson')} --group 2 --json").json
    assert (grouped["group"], grouped["relation"]) == (2, "add_remove")
    refused = shell(f"{job} --relation add_remove")
    assert (refused.code, refused.out) == (2, "")
    assert "admits the relation substitution alone" in refused.err
    misspelt = shell("delta gaussian sigma=2 -n 3 --epsilon 1 --relation substitute")
    assert "did you mean 'substitution'" in misspelt.err
    moved = shell("delta laplace b=1 -n 1 --epsilon 1 --group 2").out
    assert "up to 2 records" in moved
    assert "δ(1) = 0.393469340288" in moved  # 1 − e^{(1 − 2)/2}


def test_relations_are_few():
    assert [checked(name) for name in ("add_remove", "substitution", "zero_out")]


def test_a_file_has_groups_and_truncated_batches():
    head = """
name = "noise"
variable = "x"
support = ["-oo", "oo"]
[noise]
density = "exp(-x**2/8)/(2*sqrt(2*pi))"
[sampling]
"""
    group = Mechanism.from_toml(head + 'scheme = "poisson"\nrate = "1/10"\ngroup = 3\n')
    assert compose(group).protection.sentence.startswith("up to 3 records added or removed; rel")
    cut = Mechanism.from_toml(
        head + 'scheme = "truncated_poisson"\nrate = 0.1\nbatch = 5\nrecords = 30\n'
    )
    assert cut.summary == ("noise(), truncated_poisson sampling at rate 1/10, batch 5, 30 records")
    assert len(cut.pair().alternatives) == 2
