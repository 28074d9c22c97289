"""Every public way to a number keeps every promise: it says one number, for one record, or refuses.

`promise_paths` has the promises and the ways; as a program it prints the whole table.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from promise_paths import HERE, PROMISES, TIMED, TOO_LONG, WAYS, WIDE, Asked, frozen, walked, worded

from symdp.errors import InputError

REFUSED = "an average of several modes"
USUAL = (
    *("delta", "epsilon", "bayes_error", "renyi", "sweep", "ledger", "individual"),
    *("filter by step_mu", "program", "explore", "derive -n"),
)
# What has one pair for each step, by the promises that more than one pair stands for.
ONE_PAIR = ("certificate file", "program", "explore", "derive -n")
REFUSALS = {
    **{("skewed, sampled", way): "ask for one, as in shift" for way in ONE_PAIR},
    ("several modes", "derive -n"): 'shift = "exactly"',
    ("several modes, sampled", "derive -n"): 'shift = "exactly"',
    ("average", "filter by step_mu"): "neither Gaussian nor bounded",
}
ANSWERS = [
    *((promise, "delta") for promise in PROMISES if promise != REFUSED),
    *(("several modes", way) for way in ("program", "explore", "individual", "ledger", "sweep")),
    *((promise, way) for promise in ("up", "down") for way in ("program", "explore", "individual")),
    *(("skewed, sampled", way) for way in ("individual", "ledger", "bayes_error", "calibrate n")),
]


TABLE = frozen()


def _walk(promise: str, ways: Iterable[str]) -> None:
    asked = Asked.of(PROMISES[promise])
    for way in ways:
        if not HERE.get(way, True):
            continue
        if TABLE[promise].get(way) == TOO_LONG:
            continue
        said = walked(way, asked)
        if way in TABLE[promise] and way not in TIMED:
            assert worded(said) == TABLE[promise][way], (promise, way)
        if (promise, way) in REFUSALS:
            assert said.startswith("refused"), (way, said)
            assert REFUSALS[promise, way] in said, (way, said)
        if (promise, way) in ANSWERS:
            assert said == "answered", (way, said)


@pytest.mark.slow
@pytest.mark.parametrize("promise", ["several modes", "skewed, sampled"])
def test_ways_that_passed_by_a_field_say_one_number_or_refuse(promise: str) -> None:
    _walk(promise, USUAL)


@pytest.mark.slow
@pytest.mark.parametrize("promise", [name for name in PROMISES if name != REFUSED])
def test_every_way_says_one_number_or_refuses(promise: str) -> None:
    _walk(promise, WAYS)


def test_the_table_knows_every_promise_and_way_and_nothing_that_went_wrong() -> None:
    assert set(TABLE) == set(PROMISES) - {REFUSED}
    for promise, told in TABLE.items():
        missing = [way for way in WAYS if HERE.get(way, True)]
        assert not set(missing) - set(told), promise
        for way, said in told.items():
            assert said in {"answered", "estimated", WIDE, TOO_LONG} or said.startswith(
                "refused: "
            ), (
                promise,
                way,
            )


def test_what_no_pair_is_proved_for_is_refused_before_any_way() -> None:
    """Averages of noise of several modes: the sum's bound, 0.0798, lay below the true 0.1928."""
    with pytest.raises(InputError, match="symmetric and falls away from its centre"):
        Asked.of(PROMISES[REFUSED])
