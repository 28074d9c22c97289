"""Every public function, with an object of a wrong type first: one error that says what to pass."""

from __future__ import annotations

import inspect
import re
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path

import pytest

import symdp
from symdp.errors import InputError

ROOMS = ("symdp", *(f"symdp.{room}" for room in symdp._ROOMS), "symdp.tree_strategy")
PAGES = (Path(__file__).parents[1] / "docs").glob("reference*.md")
REFERENCE = "".join(page.read_text(encoding="utf-8") for page in PAGES)
NEVER_CALLED = {"symdp.methods.Accountant"}  # a protocol
WRONG = {
    "object": object(),
    "class": symdp.Ledger,
    "list": [object()],
    "tuple": (object(),),
}


def public_functions() -> dict[str, object]:
    found = {}
    for room in ROOMS:
        module = import_module(room)
        names = [*getattr(module, "__all__", ()), *getattr(module, "_BUILDERS", ())]
        found |= {f"{room}.{name}": getattr(module, name) for name in names}
    for full in re.findall(r"autofunction:: (\S+)", REFERENCE):
        module, _, name = full.rpartition(".")
        found[full] = getattr(import_module(module), name)
    return {
        name: value
        for name, value in found.items()
        if callable(value)
        and name not in NEVER_CALLED
        and not (isinstance(value, type) and issubclass(value, Exception))
        # Records are what functions return; people make none of them.
        and not (is_dataclass(value) and value is not symdp.Mechanism)
        and inspect.signature(value).parameters
    }


def arguments(function: object, wrong: object) -> tuple[list[object], dict[str, object]]:
    """Return the wrong value as first argument, and numbers for all others that are needed."""
    needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    named = {p.name: 0.5 for p in needed if p.kind is p.KEYWORD_ONLY}
    others = [p for p in needed if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [wrong, *(1 for _ in others[1:])], named


@pytest.mark.parametrize("kind", ["object", "class", "tuple"])  # what is cached takes no list
@pytest.mark.parametrize("name", sorted(public_functions()))
def test_a_wrong_first_argument_is_refused_in_one_line(name, kind):
    function = public_functions()[name]
    given, named = arguments(function, WRONG[kind])
    with pytest.raises(InputError) as refusal:
        function(*given, **named)
    text = str(refusal.value)
    assert text.strip()
    assert "\n" not in text
    assert len(text) <= 300


METHODS = (
    (
        symdp.compose(symdp.mechanisms.gaussian(sigma=2), 3),
        ("delta", "epsilon", "certify", "certify_epsilon", "trade_off", "renyi"),
    ),
    (symdp.Ledger([(symdp.mechanisms.gaussian(sigma=2), 3)]), ("add", "add_history")),
    (symdp.mechanisms.gaussian, ("subsample", "under", "assuming", "moved_by", "pair")),
    (symdp.individual.GaussianFilter(1), ("ask", "commit")),
    (symdp.individual.RenyiFilter(8, epsilon=2, delta=1e-5), ("ask", "commit")),
    (symdp.individual.Odometer([1, 2]), ("ask", "commit")),
    (symdp.individual.IndividualFilter(2, 1), ("ask", "commit")),
    (symdp.individual.from_counts(1, [[1]]), ("epsilon", "delta", "mu")),
)


@pytest.mark.parametrize(
    ("held", "method"),
    [(held, method) for held, names in METHODS for method in names],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
@pytest.mark.parametrize("kind", WRONG)
def test_methods_refuse_it_too(held, method, kind):
    given, named = arguments(getattr(held, method), WRONG[kind])
    with pytest.raises(InputError) as refusal:
        getattr(held, method)(*given, **named)
    assert "\n" not in str(refusal.value)
