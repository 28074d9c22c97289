"""A key that a mechanism's table does not use is refused by its name; none is read and dropped."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest

import symdp
from symdp import Mechanism, mechanisms
from symdp.errors import InputError
from symdp.model.specification import _CONTENT, _CURVES, _FORMULAS, _KEYS, _TEXTS

LINE = {"variable": "x", "support": ["-oo", "oo"]}
COIN = {"support": {"points": [0, 1]}, "pair": {"P": ["3/4", "1/4"], "Q": ["1/4", "3/4"]}}
LAPLACE = {"density": "exp(-abs(x))/2", "sensitivity": 1}
PLAIN = {**LINE, "noise": LAPLACE}
DENSITIES = {"P": "exp(-abs(x - 1))/2", "Q": "exp(-abs(x))/2"}
ANSWER = {"input": "x", "inputs": [0, 1], "density": "exp(-abs(y - x))/2"}
BASES: dict[str, dict[str, Any]] = {
    "noise": PLAIN,
    "integers": {"variable": "k", "support": "integers", "noise": {"density": "2**(-abs(k))/3"}},
    "vectors": {"variable": "r", "noise": {"density": "exp(-r)", "norm": "l2", "dimension": 2}},
    "pair": {**LINE, "pair": DENSITIES},
    "points": COIN,
    "trade-off": {"trade_off": {"f": "(1 - alpha)/2"}},
    "trade-off points": {"trade_off": {"points": [[0, "3/4"], ["1/2", "1/4"]]}},
    "profile": {"profile": {"delta": "(1 - epsilon)/2", "support": [-1, 1]}},
    "profile points": {"profile": {"points": [[0, "1/2"], [1, "1/8"]]}},
    "renyi": {"renyi": {"divergence": "alpha/8"}},
    "renyi points": {"renyi": {"points": [[2, "1/4"], [8, 1]]}},
    "family": {"family": {
        "log_partition": "exp(theta)", "with": {"theta": 1}, "without": {"theta": 0}}},
    "shuffled": {"shuffled": {"epsilon_0": 1, "people": 20}},
    "local": {"variable": "y", "local": ANSWER},
    "local laws": {"local": {"laws": [["3/4", "1/4"], ["1/4", "3/4"]]}},
    "local shuffled": {"variable": "y", "local": ANSWER, "shuffled": {"people": 20}},
    **{scheme: {**PLAIN, "sampling": {"scheme": scheme, "rate": "1/10", **more}}
       for scheme, more in (("poisson", {}), ("without_replacement", {}),
                            ("with_replacement", {"batch": 3}),
                            ("truncated_poisson", {"batch": 3, "records": 30}))},
    "masses": {"noise": {"masses": ["1/2", "1/4"], "sensitivity": 1}},
    "random_allocation": {**PLAIN, "sampling": {"scheme": "random_allocation", "steps": 4}},
}  # fmt: skip
# Two values of every key of every table: what the key does must differ between the two.
VALUES: dict[str, dict[str, list[Any]]] = {
    "": {
        "variable": ["y", "z"],
        "support": [[0, 3], [0, 7]],
        "dimension": [3, 4],
        "parameters": [{"b": "positive"}, {"c": "real"}],
        "assume": [{"b": "> 1"}, {"b": "> 2"}],
        "noise": [LAPLACE, {**LAPLACE, "sensitivity": 2}],
        "pair": [DENSITIES, {"P": DENSITIES["Q"], "Q": DENSITIES["P"]}],
        "trade_off": [{"f": "1 - alpha"}, {"f": "1 - alpha/3"}],
        "profile": [{"points": [[0, "1/2"]]}, {"points": [[0, "1/3"]]}],
        "renyi": [{"divergence": "alpha"}, {"divergence": "alpha/2"}],
        "local": [{**ANSWER, "inputs": [0, 2]}, {"laws": [["1/2", "1/2"], ["1/3", "2/3"]]}],
        "shuffled": [{"epsilon_0": 1, "people": 9}, {"epsilon_0": 1, "people": 8}],
        "sampling": [{"scheme": "poisson", "rate": "1/5"}, {"scheme": "poisson", "rate": "1/6"}],
        "relation": ["substitution", "add_remove", "zero_out"],
        **{text: ["first", "second"] for text in _TEXTS},
    },
    "noise": {
        "density": ["exp(-abs(x)/2)/4", "exp(-abs(x)/3)/6"],
        "sensitivity": [2, 3],
        "substitution_sensitivity": [1, 3],
        "normalize": [True],
        "shift": ["exactly", "up"],
        "modes": [1],
        "masses": [["2/5", "3/10"], ["3/5", "1/5"]],
        "tail": ["1/8"],
        "cell": ["1/2", "1/4"],
        "norm": ["l2"],
        "dimension": [3, 5],
    },
    "local": {
        "input": ["z", "w"],
        "inputs": [[0, 2], {"values": [0, 1, 2]}],
        "density": ["exp(-abs(y - x)/2)/4", "exp(-abs(y - x)/3)/6"],
        "laws": [[["1/2", "1/2"], ["1/3", "2/3"]], [["1/2", "1/2"], ["1/4", "3/4"]]],
    },
    "pair": {
        "P": ["exp(-abs(x - 2))/2", "exp(-abs(x - 3))/2"],
        "Q": ["exp(-abs(x - 2))/2", "exp(-abs(x - 3))/2"],
        "atoms": [{"0": ["1/2", "1/3"]}, {"0": ["1/3", "1/2"]}],
        "normalize": [True],
        "envelope": [True],
        "rho": ["1/3", "1/4"],
    },
    "sampling": {
        "scheme": ["poisson", "without_replacement"],
        "rate": ["1/7", "1/9"],
        "batch": [2, 5],
        "records": [40, 50],
        "group": [2, 3],
        "steps": [5, 6],
        "participations": [1, 2],
        "released": ["average"],
    },
    "trade_off": {"f": ["1 - alpha"], "points": [[[0, "1/2"]]], "between": ["lines"],
                  "support": [[0, 1]], "both": [False]},
    "profile": {"delta": ["(1 - epsilon)/3"], "points": [[[0, "1/2"]]], "both": [False],
                "support": [[-1, 1], [-2, 1]], "between": ["lines"]},
    "renyi": {"divergence": ["alpha"], "points": [[[2, 1]]], "both": [False], "between": ["lines"],
              "support": [[2, 8]]},
    "family": {"log_partition": ["exp(theta)/2", "theta**2"], "with": [{"theta": 2}],
               "without": [{"theta": 3}], "length": ["theta"], "counts": [True]},
    "shuffled": {"epsilon_0": [2, 3], "people": [9, 8], "clones": [1, 2]},
}  # fmt: skip


def written(document: dict[str, Any]) -> str:
    """Return a document as TOML, tables inline: JSON but for the sign between key and value."""

    def value(part: Any) -> str:
        if isinstance(part, dict):
            return "{" + ", ".join(f"{json.dumps(k)} = {value(v)}" for k, v in part.items()) + "}"
        if isinstance(part, list):
            return "[" + ", ".join(map(value, part)) + "]"
        return json.dumps(part)

    return "".join(f"{key} = {value(part)}\n" for key, part in document.items())


def parts(document: dict[str, Any]) -> tuple[str, ...]:
    """Return all that a mechanism is made of."""
    made = symdp.Mechanism.from_toml(written({"name": "m", **document}))
    return tuple(repr(entry) for name, entry in sorted(vars(made).items()) if name != "_pair")


def outcome_of(document: dict[str, Any]) -> tuple[tuple[str, ...], str]:
    """Return the parts of a mechanism, or what it is refused for."""
    try:
        return parts(document), ""
    except InputError as error:
        return (), str(error)


def test_every_key_of_the_format_is_tried() -> None:
    assert set(VALUES[""]) == {*_CONTENT, *_TEXTS}
    for table in ("noise", "pair", "local", "sampling"):
        assert set(VALUES[table]) == set(_KEYS[f"[{table}]"])
    for table in _CURVES:
        assert set(_FORMULAS.get(table, ())) - {"epsilon", "alpha"} <= set(VALUES[table])


@pytest.mark.slow_cases("trade-off", "shuffled")
@pytest.mark.parametrize("name", BASES)
def test_a_key_is_used_or_refused_by_its_name(name: str) -> None:
    base = parts(BASES[name])
    for table, keys in VALUES.items():
        if table and table not in BASES[name]:
            continue  # another table: refused as a whole, among the keys of the top
        for key, values in keys.items():
            outcomes = [base]
            for value in values:
                document = copy.deepcopy(BASES[name])
                target = document[table] if table else document
                if key in target and target[key] == value:
                    continue
                target[key] = value
                outcome, refusal = outcome_of(document)
                if refusal:
                    # A value of a key that is used may be wrong beside the others.
                    is_used = key in BASES[name] or bool(table and key in BASES[name][table])
                    words = rf"\b{key}\b|\b{key.replace('_', ' ')}\b|\bneeds \w+:"
                    assert is_used or re.search(words, refusal), (table, key, value, refusal)
                else:
                    outcomes.append(outcome)
            if len(outcomes) > 1 and (name, key) != ("points", "normalize"):  # by a mass of 1
                assert len(set(outcomes)) > 1, (table, key, "is read and dropped")


def test_what_was_dropped_is_refused() -> None:
    with pytest.raises(InputError, match=r"support: .* noise on vectors.* not answered"):
        symdp.Mechanism.from_toml(written({"name": "m", **BASES["vectors"], "support": [0, 3]}))
    assert symdp.Mechanism.from_toml(
        written({"name": "m", **BASES["vectors"], "support": [0, "oo"]})
    )
    for wrong in ({"group": 2}, {"batch": 3}, {"records": 30}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            mechanisms.gaussian(sigma=2).subsample("random_allocation", steps=4, **wrong)
    with pytest.raises(InputError, match="rho is of a pair"):
        Mechanism.from_pair(["1/2", "1/2"], ["1/4", "3/4"], "x", {"points": [0, 1]}, rho=1)
