"""Seeded nonsense on the command line ends in an answer or in one honest sentence, and in time."""

from __future__ import annotations

import os

import pytest
from fuzz.cases import cases
from fuzz.run import judged, run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="limits of memory and time are POSIX")

QUICK, MANY = 10, 60  # cases of a batch: eight small batches, two large ones


def ends_well(seed: int, count: int, limit: float) -> None:
    bad = [(case, wrong) for case, wrong in run(cases(seed, count), limit) if wrong]
    told = "\n".join(f"{wrong}\n  {' '.join(c.words)}\n  {c.text!r}" for c, wrong in bad)
    assert not bad, f"of {count} cases of seed {seed} these end badly:\n{told}"


@pytest.mark.quick_cases("1")
@pytest.mark.parametrize("seed", range(8))
def test_some_cases_end_well(seed: int) -> None:
    ends_well(seed, QUICK, 0.3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 102))
def test_many_cases_end_well(seed: int) -> None:
    ends_well(seed, MANY, 2.0)


def test_cases_are_the_same_for_the_same_seed() -> None:
    assert cases(7, 20) == cases(7, 20) != cases(8, 20)


@pytest.mark.parametrize(
    ("code", "out", "err"),
    [
        (3, "", "symdp: no\n"),
        (1, "", "symdp: a bug in symdp, please report it\n"),
        (1, "", "two\nlines\n"),
        (2, "half", "symdp: no\n"),
        (0, "", ""),
        (0, '{"delta": NaN}', ""),
        (0, "fine", "RuntimeWarning: overflow\n"),
        (0, '{"epsilon": 1.0, "delta": 0.5, "lower": 0.6, "upper": 1.0}', ""),
        (0, '{"epsilon": 1.0, "delta": "1e-400", "lower": "0", "upper": "9e-401"}', ""),
    ],
)
def test_a_bad_end_is_seen(code: int, out: str, err: str) -> None:
    case = next(c for c in cases(0, 200) if c.words[0] == "delta" and "--json" in c.words)
    assert judged(case, {"code": code, "out": out, "err": err, "bytes": 0})
