"""Disjoint parts: the largest of their profiles, under a condition that is said."""

from __future__ import annotations

import pytest
from refusals import refused

import symdp
from symdp import Parallel, compose, mechanisms

NORTH = compose(mechanisms.gaussian(sigma=3), 5)
SOUTH = compose([(mechanisms.laplace(b=2), 4)])
GROUP = mechanisms.gaussian(sigma=3).subsample("poisson", "1/9", group=2)
FILE = """
[[step]]
mechanism = "gaussian"
parameters = { sigma = 4 }
count = 2

[[step]]
mechanism = "laplace"
parameters = { b = 2 }
count = 4
part = "south"

[[step]]
mechanism = "gaussian"
parameters = { sigma = 3 }
count = 5
part = "north"
"""


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5, 1.99, 2.5])
def test_the_largest_part_answers(epsilon):
    found = Parallel({"north": NORTH, "south": SOUTH}).delta(epsilon)
    parts = [NORTH.delta(epsilon), SOUTH.delta(epsilon)]
    assert found.delta == max(one.delta for one in parts)
    assert found.lower <= found.delta <= found.upper
    assert found.upper >= max(one.upper for one in parts)
    assert "every record is in one part" in found.protection.sentence
    assert found.kind == "exact"


def test_kinds_and_curves():
    both = Parallel([NORTH, compose(mechanisms.zcdp(rho="1/2"))])
    assert both.delta(1.0).kind == "bound"
    assert both.delta(1.0, "moments").kind == "bound"
    assert Parallel([NORTH, SOUTH]).delta(1.0, "msd:1").kind == "estimate"
    assert Parallel([NORTH, SOUTH]).epsilon([1e-5, 1e-2]).epsilon[1] == pytest.approx(
        max(one.epsilon(1e-2).epsilon for one in (NORTH, SOUTH))
    )


def test_a_part_may_be_its_steps():
    noise = mechanisms.gaussian(sigma=3)
    steps = Parallel({"north": [(noise, 5)], "south": SOUTH})
    assert steps.delta(1.0) == Parallel({"north": NORTH, "south": SOUTH}).delta(1.0)


def test_what_breaks_the_condition_is_refused():
    with refused("may leave one part and enter another"):
        Parallel([compose(mechanisms.gaussian(sigma=3).under("substitution"))])
    with refused("records of a group may be in several parts"):
        Parallel([compose(GROUP)])
    with refused("records of a group may be in several parts"):  # of one of the parts
        Parallel([compose(GROUP), compose(mechanisms.gaussian(sigma=3))])
    zero_out = compose(mechanisms.gaussian(sigma=3).under("zero_out"))
    with refused("one neighbouring relation"):
        Parallel([NORTH, zero_out])


def test_steps_of_a_file_may_see_one_part(tmp_path, shell):
    path = tmp_path / "job.toml"
    path.write_text(FILE)
    parts = Parallel.load(path)
    assert [(n, one.n) for n, one in parts.parts.items()] == [("south", 6), ("north", 7)]
    with refused("Parallel.load"):
        symdp.load_composition(path)
    whole = path.with_name("whole.toml")
    whole.write_text(FILE.replace("part =", "name ="))
    with refused("load_composition"):
        Parallel.load(whole)
    assert symdp.load_composition(whole).n == 11
    done = shell(f"epsilon --composition {path} --delta 1e-5")
    assert done.code == 0
    answer = parts.epsilon(1e-5)
    assert f"{answer.epsilon_text()}" in done.out
    assert "the largest of 2 disjoint parts, " in done.out
    assert shell(f"certify --composition {path} --epsilon 1").code == 2
