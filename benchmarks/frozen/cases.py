"""The 400 compositions: each has a name, builds alone, and says where its three ε lie.

A place of ε is that of `place_epsilon` of tests/frozen ("mean", "3 deviations", "1e-40" for a δ of
about that size, "top" next to the largest loss, "negative") or a number.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from catalogue import ALL
from every_kind import EVERY_KIND
from frozen.laws import Law, laws, mechanism_of
from skewed_pairs import KINDS, random_pair
from strangers.densities import FROZEN, Stranger

import symdp

if TYPE_CHECKING:
    from symdp import Mechanism

Steps = list[tuple["Mechanism", int]]
SEED = 11
DIRECTIONS = ("both", "remove", "add")
# δ from about one half to 1e-300, places next to the largest loss among them.
PLACES = (
    ("mean", "1e-6", "1e-40"),
    ("negative", "1e-9", "top"),
    ("1 deviation", "1e-5", "1e-100"),
    ("mean", "1e-12", "1e-300"),
    ("1 deviation", "3 deviations", "top"),
)


@dataclass(frozen=True)
class Case:
    """One composition, the direction that is asked for, and where its ε lie."""

    name: str
    steps: Callable[[], Steps]
    direction: str
    places: tuple[str, ...]
    stranger: tuple[Stranger, int] | None = None  # has a truth of its own: tests/strangers/truth.py


class _Cases:
    """Cases in a row; directions and places come in turn where none are given."""

    def __init__(self) -> None:
        self.cases: dict[str, Case] = {}

    def add(
        self,
        name: str,
        steps: Callable[[], Steps],
        direction: str = "",
        places: tuple[str, ...] = (),
        stranger: tuple[Stranger, int] | None = None,
    ) -> None:
        k = len(self.cases)
        assert name not in self.cases, name
        direction = direction or DIRECTIONS[k % len(DIRECTIONS)]
        places = places or PLACES[k % len(PLACES)]
        self.cases[name] = Case(name, steps, direction, places, stranger)


def poisson(rate: str, **more: Any) -> dict[str, Any]:
    """Return Poisson sampling."""
    return {"scheme": "poisson", "rate": rate, **more}


def step(
    built_in: str, sampling: dict[str, Any] | None = None, relation: str = "", **parameters: str
) -> dict[str, Any]:
    """Return a step of a built-in mechanism, as `mechanism_of` takes it."""
    made: dict[str, Any] = {"built_in": built_in, "parameters": parameters}
    made |= {"sampling": sampling} if sampling else {}
    return made | ({"relation": relation} if relation else {})


def _built(rows: tuple[tuple[dict[str, Any], int], ...]) -> Steps:
    return [(mechanism_of(one), count) for one, count in rows]


def _named(rows: tuple[tuple[dict[str, Any], int], ...]) -> str:
    def words(one: dict[str, Any]) -> str:
        values = [f"{key}={value}" for key, value in one["parameters"].items()]
        drawn = [str(value) for value in one.get("sampling", {}).values()]
        return " ".join([one["built_in"], *values, *drawn, one.get("relation", "")]).strip()

    return " + ".join(f"{count} {words(one)}" for one, count in rows)


# Every built-in mechanism: parameters, and how often.
BUILT_IN: tuple[tuple[str, dict[str, str], tuple[int, ...]], ...] = (
    ("adaptive_clipping", {"z": "2", "sigma_b": "5"}, (1, 40)),
    ("approximate_dp", {"epsilon_0": "1/10", "delta_0": "1/1000000"}, (1, 20, 3000)),
    ("approximate_dp", {"epsilon_0": "1", "delta_0": "1/20"}, (7,)),
    ("bounded_range", {"epsilon_0": "1", "u": "2/5"}, (1, 12, 1000)),
    ("discrete_gaussian", {"sigma": "1/2"}, (1, 4)),
    ("discrete_gaussian", {"sigma": "10"}, (1, 100, 10**6)),
    ("discrete_gaussian", {"sigma": "1000"}, (3,)),
    ("discrete_laplace", {"b": "1"}, (1, 10)),
    ("discrete_laplace", {"b": "20"}, (100, 10**5)),
    ("exponential", {"epsilon_0": "1/2"}, (1, 10)),
    ("exponential", {"epsilon_0": "1/10"}, (1000,)),
    ("gaussian", {"sigma": "4"}, (1, 3)),
    ("gaussian", {"sigma": "1/3"}, (1, 2)),
    ("gnmax", {"sigma": "20"}, (1, 300)),
    ("gumbel", {"b": "4"}, (1, 3, 50)),
    ("k_ary_randomized_response", {"k": "5", "epsilon_0": "1"}, (1, 12)),
    ("k_ary_randomized_response", {"k": "100", "epsilon_0": "1/5"}, (500,)),
    ("laplace", {"b": "2"}, (1, 2, 3, 10)),
    ("laplace", {"b": "20"}, (40, 100, 10**4)),
    ("logistic", {"s": "4"}, (1, 2)),
    ("logistic", {"s": "1"}, (10,)),
    ("negative_binomial", {"r": "3", "p": "1/2"}, (1, 5)),
    ("permute_and_flip", {"epsilon_0": "1/4"}, (1, 30)),
    ("randomized_response", {"epsilon_0": "1/2"}, (1, 100)),
    ("randomized_response", {"epsilon_0": "1/100"}, (5000,)),
    ("skellam", {"mu": "20"}, (1, 10)),
    ("sparse_histogram", {"sigma": "2", "tau": "9", "j": "2", "m": "1"}, (1, 10)),
    ("staircase", {"epsilon_0": "1/2", "gamma_0": "2/5"}, (1, 4, 60)),
    ("student_t", {"nu": "3", "s": "4"}, (1, 2, 20)),
    ("student_t", {"nu": "5", "s": "2"}, (100,)),
)
# Every scheme with the relations that it admits.
SCHEMES: tuple[tuple[dict[str, Any], tuple[int, ...]], ...] = (
    (step("gaussian", poisson("1/100"), sigma="1"), (1, 5, 10_000)),
    (step("gaussian", poisson("1/10"), sigma="2"), (2, 100)),
    (step("gaussian", poisson("1/2"), sigma="4"), (30,)),
    (step("gaussian", poisson("256/60000"), sigma="1.12"), (14_063,)),
    (step("gaussian", poisson("1/100"), "substitution", sigma="1"), (1, 1000)),
    (step("gaussian", poisson("1/20"), "zero_out", sigma="2"), (50,)),
    (step("gaussian", poisson("1/100", group=3), sigma="4"), (1, 200)),
    (step("gaussian", poisson("1/50", records=1000, released="average"), sigma="1/10"), (5,)),
    (step("laplace", poisson("1/10"), b="2"), (1, 20)),
    (step("laplace", poisson("1/4"), "substitution", b="3"), (10,)),
    (step("logistic", poisson("1/10"), s="2"), (1, 30)),
    (step("gumbel", poisson("1/10"), b="3"), (1, 30)),
    (step("student_t", poisson("1/10"), nu="3", s="4"), (1, 4, 1000)),
    (step("exponential", poisson("1/10"), epsilon_0="1"), (1, 10)),
    (step("randomized_response", poisson("1/10"), epsilon_0="1"), (1, 30, 10**5)),
    (step("discrete_gaussian", poisson("1/10"), sigma="2"), (1, 2, 5, 30)),
    (step("discrete_gaussian", poisson("1/100"), sigma="2"), (100, 1000)),
    (step("discrete_laplace", poisson("1/10"), b="1"), (1, 30)),
    (step("skellam", poisson("1/20"), mu="10"), (1, 20)),
    (step("gaussian", {"scheme": "without_replacement", "rate": "1/100"}, sigma="1"),
     (1, 10, 1000)),
    (step("laplace", {"scheme": "without_replacement", "rate": "1/10"}, b="3"), (1, 10)),
    (step("logistic", {"scheme": "without_replacement", "rate": "1/5"}, s="4"), (3,)),
    (step("discrete_gaussian", {"scheme": "without_replacement", "rate": "1/10"}, sigma="3"),
     (4,)),
    (step("gaussian", {"scheme": "without_replacement", "rate": "1/50", "records": 1000,
                       "group": 2}, sigma="5"), (20,)),
    (step("gaussian", {"scheme": "with_replacement", "rate": "1/100", "batch": 3}, sigma="4"),
     (1, 100)),
    (step("laplace", {"scheme": "with_replacement", "rate": "1/50", "batch": 2}, b="5"), (5,)),
    (step("gaussian", {"scheme": "truncated_poisson", "rate": "1/50", "batch": 40,
                       "records": 1500}, sigma="2"), (1, 100)),
    (step("gaussian", {"scheme": "truncated_poisson", "rate": "1/50", "batch": 40,
                       "records": 1500}, "zero_out", sigma="2"), (10,)),
    (step("laplace", {"scheme": "truncated_poisson", "rate": "1/100", "batch": 12,
                      "records": 1000}, b="2"), (10,)),
    (step("gaussian", {"scheme": "random_allocation", "steps": 10}, sigma="2"), (1, 5)),
    (step("gaussian", {"scheme": "random_allocation", "steps": 1000}, sigma="1"), (1,)),
    (step("laplace", {"scheme": "random_allocation", "steps": 5}, b="4"), (2,)),
    (step("gaussian", {"scheme": "random_allocation", "steps": 8, "participations": 2},
          sigma="3"), (1,)),
    (step("gaussian", relation="substitution", sigma="5"), (1, 7)),
    (step("laplace", relation="substitution", b="8"), (1, 25)),
    (step("gaussian", relation="zero_out", sigma="5"), (4,)),
)  # fmt: skip
# From one step to 10⁹ and more; the losses of a step shrink or do not.
MANY: tuple[tuple[dict[str, Any], tuple[int, ...]], ...] = (
    (step("gaussian", sigma="30000"), (10, 10**3, 10**5, 10**7, 10**9)),
    (step("gaussian", poisson("1/10000"), sigma="2"), (10**3, 10**5, 10**7, 10**9)),
    (step("laplace", b="10000"), (10**4, 10**6, 10**8, 10**9)),
    (step("logistic", poisson("1/1000"), s="3"), (10**4, 10**6, 10**8)),
    (step("student_t", poisson("1/1000"), nu="4", s="2"), (10**4, 10**6, 10**8)),
    (step("randomized_response", epsilon_0="1/1000"), (10**3, 10**6, 10**9)),
    (step("discrete_laplace", poisson("1/1000"), b="2"), (10**4, 10**6, 10**8)),
    (step("gaussian", {"scheme": "without_replacement", "rate": "1/1000"}, sigma="2"),
     (10**4, 10**6)),
)  # fmt: skip
_COIN = step("randomized_response", epsilon_0="1/2")
_BOX = step("approximate_dp", epsilon_0="1/10", delta_0="1/100000")
_WIDE = step("gaussian", sigma="3")
# Atoms beside densities, densities of two kinds, lattices that do not fit.
MIXED: tuple[tuple[tuple[dict[str, Any], int], ...], ...] = (
    ((_WIDE, 20), (_COIN, 3)),
    ((step("laplace", b="3"), 2), (_COIN, 2)),
    ((step("laplace", b="3"), 10), (step("laplace", b="5"), 7)),
    ((_WIDE, 1), (_BOX, 1)),
    ((step("gaussian", poisson("1/100"), sigma="1"), 500), (_BOX, 10)),
    ((step("gaussian", poisson("1/100"), sigma="1.2"), 700),
     (step("gaussian", poisson("1/50"), sigma="0.9"), 300)),
    ((step("discrete_gaussian", sigma="4"), 3), (step("discrete_laplace", b="3"), 2)),
    ((step("discrete_laplace", b="3"), 3), (_COIN, 5)),
    ((step("discrete_gaussian", poisson("1/10"), sigma="2"), 5), (_WIDE, 1)),
    ((step("randomized_response", epsilon_0="1"), 5), (step("gaussian", sigma="1000"), 1)),
    ((step("randomized_response", epsilon_0="1"), 10**6), (step("gaussian", sigma="10"), 1)),
    ((step("k_ary_randomized_response", k="4", epsilon_0="1"), 6),
     (step("randomized_response", epsilon_0="7/10"), 6)),
    ((step("staircase", epsilon_0="1/3", gamma_0="1/3"), 6), (step("logistic", s="5"), 2)),
    ((step("sparse_histogram", sigma="3", tau="12", j="1", m="1"), 2), (_WIDE, 5)),
    ((step("student_t", nu="3", s="5"), 2), (step("exponential", epsilon_0="1/5"), 3)),
    ((step("gumbel", b="5"), 2), (step("skellam", mu="30"), 2)),
)  # fmt: skip
# Atoms on a lattice finer than anything dies out: bounds, and far out less than any double.
FAR = ((step("randomized_response", epsilon_0="1"), 10**8), (step("gaussian", sigma="10"), 1))
FAR_PLACES = ("mean", "1e-40", "60000000")
# How far ε lies below the largest loss n/b of Laplace noise, and of others.
BELOW = (2.0**-7, 2.0**-20, 3e-10)


def _largest(found: _Cases) -> None:
    for count in (1, 2, 3, 10, 60):
        for b in (2, 5):
            places = tuple(repr(count / b - distance) for distance in BELOW)
            one = ((step("laplace", b=str(b)), count),)
            found.add(f"largest loss: {_named(one)}", partial(_built, one), "remove", places)
    for name, values, top, count in (
        ("randomized_response", {"epsilon_0": "1/2"}, 0.5, 7),
        ("staircase", {"epsilon_0": "1/2", "gamma_0": "1/4"}, 0.5, 3),
        ("exponential", {"epsilon_0": "1"}, 0.5, 4),
        ("discrete_laplace", {"b": "4"}, 0.25, 8),
        ("logistic", {"s": "4"}, 0.25, 5),
        ("laplace", {"b": "4"}, 0.25, 6),
        ("k_ary_randomized_response", {"k": "3", "epsilon_0": "1"}, 1.0, 5),
    ):
        one = ((step(name, **values), count),)
        limit = count * top
        places = (repr(limit - 2**-10), repr(limit - 3e-13), repr(limit + 0.5))
        found.add(f"largest loss: {_named(one)}", partial(_built, one), "", places)


def _varied(name: str, sampling: dict[str, Any] | None, values: list[dict[str, str]]) -> Steps:
    return [(mechanism_of(step(name, sampling, **one)), 1) for one in values]


def _schedules(found: _Cases) -> None:
    """Many steps of one formula whose parameter changes from step to step."""
    for name, parameter, low, high, sampling, size in (
        ("gaussian", "sigma", 1.0, 2.0, poisson("1/100"), 200),
        ("gaussian", "sigma", 1.0, 2.0, poisson("1/100"), 3000),
        ("gaussian", "sigma", 20.0, 60.0, None, 300),
        ("gaussian", "sigma", 0.8, 5.0, {"scheme": "without_replacement", "rate": "1/50"}, 40),
        ("gaussian", "sigma", 2.0, 3.0, poisson("1/10"), 5),
        ("laplace", "b", 10.0, 30.0, None, 60),
        ("laplace", "b", 1.0, 4.0, poisson("1/50"), 100),
        ("logistic", "s", 3.0, 9.0, None, 30),
        ("student_t", "s", 4.0, 8.0, None, 20),
        ("randomized_response", "epsilon_0", 0.1, 0.9, None, 25),
        ("discrete_gaussian", "sigma", 5.0, 9.0, None, 20),
        ("discrete_laplace", "b", 2.0, 6.0, poisson("1/10"), 10),
    ):
        fixed = {"nu": "4"} if name == "student_t" else {}
        width = (high - low) / (size - 1)
        values = [{**fixed, parameter: f"{low + k * width:.6f}"} for k in range(size)]
        drawn = f" {sampling['scheme']} {sampling['rate']}" if sampling else ""
        label = f"schedule: {size} {name} {parameter} from {low:g} to {high:g}{drawn}"
        found.add(label, partial(_varied, name, sampling, values))


def _stranger(stranger: Stranger, count: int) -> Steps:
    return [(symdp.Mechanism.from_toml(stranger.toml), count)]


def _of_law(law: Law, count: int) -> Steps:
    return [(mechanism_of(one), one["weight"] * count) for one in law.steps]


def _known(entry: Any, name: str, count: int) -> Steps:
    return [(entry.mechanism(name), count)]


def _random(seed: int, count: int) -> Steps:
    return [(random_pair(seed), count)]


def _every_kind(name: str, count: int) -> Steps:
    return [(EVERY_KIND[name], count)]


def cases() -> dict[str, Case]:
    """Return every case by its name, always in the same order."""
    found = _Cases()
    for name, values, counts in BUILT_IN:
        for count in counts:
            one = ((step(name, **values), count),)
            found.add(f"built-in: {_named(one)}", partial(_built, one))
    for family, table in (("scheme", SCHEMES), ("many", MANY)):
        for row, counts in table:
            for count in counts:
                one = ((row, count),)
                found.add(f"{family}: {_named(one)}", partial(_built, one))
    for rows in MIXED:
        found.add(f"mixed: {_named(rows)}", partial(_built, rows))
    found.add(f"mixed: {_named(FAR)}", partial(_built, FAR), "both", FAR_PLACES)
    _largest(found)
    _schedules(found)
    for k, (name, stranger) in enumerate(FROZEN.items()):
        count = (1, 5, 30, 1000)[k % 4]
        places = ("1 deviation", "1e-5", ("1e-30", "top", "1e-100")[k % 3])
        label = f"stranger: {count} {name}"
        found.add(label, partial(_stranger, stranger, count), "", places, (stranger, count))
    counts = random.Random(SEED)
    for k in range(6 * len(KINDS)):
        seed, count = len(KINDS) * SEED + k, counts.choice((1, 2, 3, 8, 50, 400, 10_000))
        label = f"random: {count} {KINDS[seed % len(KINDS)]} of seed {seed}"
        found.add(label, partial(_random, seed, count))
    for k, (name, _) in enumerate(EVERY_KIND.items()):
        count = (10, 300, 10**5)[k % 3]
        found.add(f"mesh: {count} {name}", partial(_every_kind, name, count))
    _frozen_questions(found)
    return found.cases


def _frozen_questions(found: _Cases) -> None:
    """Densities, lists and pairs of the frozen questions of tests/ that stand nowhere above."""
    asked = {"density", "sampled density", "points", "group", "substitution"}
    chosen = [law for law in laws() if law.family in asked]
    for k, law in enumerate(chosen):
        count = (1, 3, 20, 1000)[k % 4]
        found.add(f"{law.family}: {count} {law.label}", partial(_of_law, law, count))
    free = [name for name, entry in ALL.items() if not entry.parameters]
    taken = {law.label.split("(")[0] for law in chosen}
    for k, name in enumerate(name for name in free if name not in taken):
        count = (2, 40, 1)[k % 3]
        found.add(f"catalogue: {count} {name}", partial(_known, ALL[name], name, count))
