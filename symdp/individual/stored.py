"""Making and loading filters that live in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from symdp.arguments import a_path
from symdp.durable import locked
from symdp.errors import InputError
from symdp.individual.filters import Filter, GaussianFilter
from symdp.individual.individual_filter import IndividualFilter
from symdp.individual.odometer import Odometer
from symdp.individual.renyi_filter import RenyiFilter
from symdp.individual.state import FILTER, read

_FILE = "the filter's file"


def create(path: str | Path, made: Filter | IndividualFilter) -> Filter | IndividualFilter:
    """Put a new filter into a file that does not exist yet.

    Raises
    ------
    InputError
        If there is a file of that name: a budget is not to be forgotten by mistake.
    """
    where = a_path(path, _FILE)
    kinds = (Filter, IndividualFilter)
    if not isinstance(made, kinds):
        raise InputError(f"{made!r:.60}: it is no filter: give GaussianFilter(budget=1), say")
    with locked(where):
        if where.exists():
            raise InputError(f"{where}: there is such a file; a filter's state is not overwritten")
        FILTER.write(where, made.to_json())
        made.path = where
    return made


def load_filter(path: str | Path) -> Filter | IndividualFilter:
    """Return the filter that a state file holds, exactly as it was.

    Every step of the journal is charged again; nothing is taken on trust.

    Raises
    ------
    InputError
        If the file is missing, cut short or edited.
    """
    where = a_path(path, _FILE)
    state = FILTER.read(where)
    try:
        return _made(state, where)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where}: the filter's state lacks {error}") from None


def _made(state: dict[str, Any], path: Path) -> Filter | IndividualFilter:
    kind = state["filter"]
    made: Filter
    if kind == "individual":
        return IndividualFilter.from_state(state, path)
    if kind == GaussianFilter.type_name:
        made = GaussianFilter(read(state["budget"]), path=path)
        if "epsilon" in state:
            made._target = str(state["epsilon"]), str(state["delta"])
    elif kind == Odometer.type_name:
        made = Odometer([read(x) for x in state["increments"]], path=path)
    elif kind == RenyiFilter.type_name:
        made = RenyiFilter(
            [float.fromhex(x) for x in state["orders"]],
            epsilon=float.fromhex(state["epsilon"]),
            delta=float.fromhex(state["delta"]),
            path=path,
        )
    else:
        raise InputError(f"{path}: a filter of kind {kind!r} is not known")
    made._replay(state, str(path))
    return made
