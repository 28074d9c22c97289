"""Whether what was asked before, in which order, or in how many threads changes an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from benchmarks.frozen import asking
from benchmarks.frozen.cases import Case

SECONDS = 60.0  # of work that the questions of one case may take
Answers = dict[str, list[Any]]


def differences(case: Case, epsilons: list[float]) -> Iterator[str]:
    """Yield a line for every ε at which an answer or its ends are not those of a fresh law."""
    alone: Answers = {}
    for epsilon in epsilons:
        alone |= _asked(case, [epsilon], _in_turn)
    ways = {
        "in order": (epsilons, _in_turn),
        "in reverse": (epsilons[::-1], _in_turn),
        "after other questions": (epsilons, _after_others),
        "in threads": (epsilons, _in_threads),
    }
    for name, (order, way) in ways.items():
        found = _asked(case, order, way)
        for place, answer in found.items():
            if place not in alone or alone[place] != answer:
                yield f"{case.name}, ε = {place}, {name}: {answer}, alone {alone.get(place)}"
        if found.keys() != alone.keys():
            yield f"{case.name}, {name}: {sorted(found)} answered, alone {sorted(alone)}"


def _asked(case: Case, order: list[float], way: Callable[..., Answers]) -> Answers:
    """Return what one way of asking gives in a process of its own."""
    found = asking.in_a_child(lambda: way(case, order), SECONDS)
    found.pop("seconds")
    return found


def _answer(composition: Any, case: Case, epsilon: float) -> list[Any]:
    one = composition.delta(epsilon, direction=case.direction)
    ends = [asking.told(log) for log in (one.log_delta, one.log_lower, one.log_upper)]
    return [*ends, one.kind, one.route, one.direction]


def _in_turn(case: Case, order: list[float]) -> Answers:
    import symdp

    composition = symdp.compose(case.steps())
    return {repr(epsilon): _answer(composition, case, epsilon) for epsilon in order}


def _after_others(case: Case, order: list[float]) -> Answers:
    import symdp

    composition = symdp.compose(case.steps())
    direction = case.direction
    others: list[Callable[[], object]] = [
        lambda: composition.epsilon(1e-5, direction=direction),
        lambda: composition.delta([0.1, 0.3, 1.0, 2.5], direction=direction),
        lambda: composition.delta(1.01 * order[0], method="tilted-prv", direction=direction),
        lambda: composition.delta(order[-1], method="msd:1", direction=direction),
    ]
    for other in others:
        with suppress(symdp.SymdpError):
            other()
    return {repr(epsilon): _answer(composition, case, epsilon) for epsilon in order}


def _in_threads(case: Case, order: list[float]) -> Answers:
    import symdp

    composition = symdp.compose(case.steps())
    with ThreadPoolExecutor(len(order)) as pool:
        answers = pool.map(lambda epsilon: _answer(composition, case, epsilon), order)
        return dict(zip(map(repr, order), answers, strict=True))
