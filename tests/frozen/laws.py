"""The laws that the frozen questions ask about, each as JSON values that rebuild it alone.

A step names a built-in mechanism or holds a mechanism file as text; parameters, sampling and
relation stand beside it.  `weight` is how many times the step is taken for one of the question's
count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from catalogue import Entry

    from symdp.model.mechanism import Mechanism

Step = dict[str, Any]


@dataclass(frozen=True)
class Law:
    """One law of the loss: a label, the family that it is counted in, and its distinct steps."""

    label: str
    family: str
    steps: tuple[Step, ...]


def mechanism_of(step: Step) -> Mechanism:
    """Build the mechanism of a step."""
    from symdp import Mechanism, mechanisms

    if "built_in" in step:
        free = getattr(mechanisms, step["built_in"])
    else:
        free = Mechanism.from_toml(step["toml"])
    made = free(**step.get("parameters", {}))
    if not made.is_given:  # as they were answered: for a record that raises the output
        made = made.shifted("up")
    if "sampling" in step:
        made = made.subsample(**step["sampling"])
    return made.under(step["relation"]) if "relation" in step else made


def toml_of(name: str, entry: Entry) -> str:
    """Write a density of the catalogue as the mechanism file that a user would write."""
    support: object = list(entry.support) if isinstance(entry.support, tuple) else entry.support
    listed = isinstance(support, str) and support.startswith("points")
    lines = [f"name = {json.dumps(name)}"]
    if listed:
        lines.append(f"support = {{ points = {list(range(int(str(support).split()[1])))} }}")
    else:
        variable = "k" if support in ("integers", "naturals") else "x"
        lines += [f'variable = "{variable}"', f"support = {json.dumps(support)}"]
    if entry.parameters:
        lines.append("[parameters]")
        for word in entry.parameters.split():
            parameter, _, domain = word.partition(":")
            lines.append(f"{parameter} = {json.dumps(domain.replace('_', ' ') or 'positive')}")
    if not entry.q:
        lines += ["[noise]", f"density = {json.dumps(entry.p)}"]
        return "\n".join([*lines, f"sensitivity = {json.dumps(entry.sensitivity)}", ""])
    lines.append("[pair]")
    for side, text in (("P", entry.p), ("Q", entry.q)):
        value = [mass.strip() for mass in text.split(";")] if listed else text
        lines.append(f"{side} = {json.dumps(value)}")
    return "\n".join([*lines, ""])


PLAIN = {
    "gaussian": ({"sigma": "1/2"}, {"sigma": "2"}, {"sigma": "15"}),
    "laplace": ({"b": "1/2"}, {"b": "2"}, {"b": "10"}),
    "logistic": ({"s": "1/2"}, {"s": "3"}),
    "gumbel": ({"b": "1"}, {"b": "5"}),
    "student_t": ({"nu": "3", "s": "1"}, {"nu": "5/2", "s": "4"}),
    "randomized_response": ({"epsilon_0": "1/10"}, {"epsilon_0": "2"}),
}
INTEGERS = {
    "discrete_laplace": ({"b": "1"}, {"b": "7/2"}),
    "discrete_gaussian": ({"sigma": "1/2"}, {"sigma": "2"}, {"sigma": "10"}),
}
POISSON = (
    ("gaussian", {"sigma": "1/2"}, "1/1000"),
    ("gaussian", {"sigma": "1"}, "1/100"),
    ("gaussian", {"sigma": "2"}, "1/10"),
    ("gaussian", {"sigma": "4"}, "1/2"),
    ("laplace", {"b": "1"}, "1/20"),
    ("laplace", {"b": "3"}, "1/2"),
    ("logistic", {"s": "2"}, "1/10"),
    ("gumbel", {"b": "3"}, "1/10"),
    ("student_t", {"nu": "4", "s": "2"}, "1/10"),
    ("randomized_response", {"epsilon_0": "1"}, "1/10"),
)
POISSON_INTEGERS = (
    ("discrete_laplace", {"b": "2"}, "1/10"),
    ("discrete_gaussian", {"sigma": "1"}, "1/100"),
    ("discrete_gaussian", {"sigma": "2"}, "1/10"),
    ("discrete_gaussian", {"sigma": "5"}, "1/2"),
    ("discrete_gaussian", {"sigma": "2"}, "1/1000"),
    ("discrete_gaussian", {"sigma": "1"}, "1/4"),
)
# Mechanism, parameters, sampling or none, relation or none; each family of its own.
OTHERS: tuple[tuple[str, str, dict[str, str], dict[str, Any], str], ...] = (
    ("fixed batch", "gaussian", {"sigma": "2"},
     {"scheme": "without_replacement", "rate": "1/50"}, ""),
    ("fixed batch", "laplace", {"b": "3"}, {"scheme": "without_replacement", "rate": "1/10"}, ""),
    ("fixed batch", "logistic", {"s": "4"}, {"scheme": "without_replacement", "rate": "1/5"}, ""),
    ("fixed batch", "gaussian", {"sigma": "3"},
     {"scheme": "with_replacement", "rate": "1/100", "batch": 3}, ""),
    ("substitution", "gaussian", {"sigma": "2"}, {}, "substitution"),
    ("substitution", "logistic", {"s": "4"}, {}, "substitution"),
    ("substitution", "gaussian", {"sigma": "2"}, {"scheme": "poisson", "rate": "1/10"},
     "substitution"),
    ("substitution", "laplace", {"b": "3"}, {"scheme": "poisson", "rate": "1/4"}, "substitution"),
    ("group", "gaussian", {"sigma": "4"}, {"scheme": "poisson", "rate": "1/100", "group": 3}, ""),
    ("group", "laplace", {"b": "8"}, {"scheme": "poisson", "rate": "1/10", "group": 2}, ""),
    ("group", "gaussian", {"sigma": "5"},
     {"scheme": "without_replacement", "rate": "1/50", "records": 1000, "group": 2}, ""),
    ("truncated", "gaussian", {"sigma": "2"},
     {"scheme": "truncated_poisson", "rate": "1/50", "batch": 40, "records": 1500}, ""),
    ("truncated", "laplace", {"b": "2"},
     {"scheme": "truncated_poisson", "rate": "1/100", "batch": 12, "records": 1000}, ""),
)  # fmt: skip
# Name in the catalogue, parameters, rate or none.
CATALOGUE: tuple[tuple[str, dict[str, str], str], ...] = (
    ("gaussian, two variances", {"a": "1", "c": "6/5", "m": "1/2"}, ""),
    ("asymmetric laplace", {"a": "2", "c": "3"}, ""),
    ("gamma scales", {"k": "2", "a": "1", "c": "3/2"}, ""),
    ("uniform noise", {"w": "9"}, ""),
    ("generalised gaussian noise", {}, ""),
    ("geometric pair", {"r": "1/2", "s": "2/5"}, ""),
    ("discrete laplace, sensitivity 3", {"b": "4"}, ""),
    ("poisson counts", {"a": "2", "c": "3/2"}, ""),
    ("raised cosine noise", {}, ""),
    ("truncated laplace", {"b": "3"}, ""),
    ("cauchy", {}, ""),
    ("hyperbolic secant", {}, ""),
    ("skellam", {}, ""),
    ("rayleigh scales", {"a": "1", "c": "6/5"}, ""),
    ("half-normal noise", {}, ""),
    ("pareto shapes", {"a": "3", "c": "2"}, ""),
    ("beta shapes", {"a": "2", "c": "3", "d": "2"}, ""),
    ("triangles", {}, ""),
    ("cos**2 and uniform", {}, ""),
    ("negative binomial", {"a": "2/5", "c": "1/2"}, ""),
    ("laplace scales", {"a": "1", "c": "3/2"}, ""),
    ("von mises", {}, ""),
    ("asymmetric laplace", {"a": "2", "c": "3"}, "1/10"),
    ("gamma scales", {"k": "2", "a": "3/2", "c": "1"}, "1/10"),
    ("hyperbolic secant", {}, "1/4"),
    ("truncated laplace", {"b": "3"}, "1/10"),
    ("poisson counts", {"a": "2", "c": "3/2"}, "1/5"),
    ("laplace scales", {"a": "1", "c": "3/2"}, "1/10"),
)
POINTS = {
    "incommensurable": (["1/2", "3/10", "1/5"], ["1/5", "3/10", "1/2"]),
    "four values": (["2/5", "3/10", "1/5", "1/10"], ["1/10", "1/5", "2/5", "3/10"]),
    "mass at infinity": (["1/1000", "3/5", "399/1000"], ["0", "2/5", "3/5"]),
    "rare large loss": (["1/100", "99/100"], ["1/1000000", "999999/1000000"]),
}


def laws() -> Iterator[Law]:
    """Yield every law, always in the same order."""
    for family, table in (("plain", PLAIN), ("integers", INTEGERS)):
        for name, choices in table.items():
            for values in choices:
                yield _one(family, _built_in(name, values))
    for family, rows in (("poisson", POISSON), ("sampled integers", POISSON_INTEGERS)):
        for name, values, rate in rows:
            yield _one(family, _built_in(name, values, {"scheme": "poisson", "rate": rate}))
    for family, name, values, sampling, relation in OTHERS:
        yield _one(family, _built_in(name, values, sampling, relation))
    yield from _from_catalogue()
    yield from _on_points()
    yield from _mixed()


def _from_catalogue() -> Iterator[Law]:
    from catalogue import ALL

    for name, values, rate in CATALOGUE:
        step: Step = {"toml": toml_of(name, ALL[name])}
        if values:
            step["parameters"] = values
        if rate:
            step["sampling"] = {"scheme": "poisson", "rate": rate}
        yield _one("sampled density" if rate else "density", step)


def _on_points() -> Iterator[Law]:
    from catalogue import ALL

    for name in ("randomised response of 4", "staircase, cells"):
        yield _one("points", {"toml": toml_of(name, ALL[name]), "parameters": {"e": "1/2"}})
    for name in POINTS:
        yield _one("points", _points(name))
    yield _one(
        "points", _points("incommensurable") | {"sampling": {"scheme": "poisson", "rate": "1/10"}}
    )


def _mixed() -> Iterator[Law]:
    tenth = {"scheme": "poisson", "rate": "1/10"}
    gaussian = _built_in("gaussian", {"sigma": "3"})
    laplace = _built_in("laplace", {"b": "5"})
    response = _built_in("randomized_response", {"epsilon_0": "1/4"})
    sampled = _built_in("gaussian", {"sigma": "2"}, tenth)
    integers = _built_in("discrete_gaussian", {"sigma": "4"})
    counts = _built_in("discrete_laplace", {"b": "3"})
    steps: tuple[tuple[tuple[Step, int], ...], ...] = (
        ((gaussian, 1), (laplace, 1)),
        ((sampled, 7), (_built_in("gaussian", {"sigma": "3"}, tenth), 4)),
        ((gaussian, 1), (response, 2)),
        ((sampled, 3), (laplace, 1), (response, 1)),
        ((integers, 1), (counts, 2)),
        ((counts, 1), (_built_in("discrete_laplace", {"b": "4"}), 1), (response, 1)),
        ((_points("mass at infinity"), 1), (gaussian, 2)),
        ((_built_in("gumbel", {"b": "4"}), 1), (_built_in("logistic", {"s": "3"}), 1)),
        ((_points("incommensurable"), 1), (response, 1)),
    )
    for parts in steps:
        listed = tuple(step | {"weight": weight} for step, weight in parts)
        yield Law(" + ".join(_label(step) for step in listed), "mixed", listed)


def _built_in(
    name: str,
    values: dict[str, str],
    sampling: dict[str, Any] | None = None,
    relation: str = "",
) -> Step:
    step: Step = {"built_in": name, "parameters": values}
    if sampling:
        step["sampling"] = sampling
    return step | ({"relation": relation} if relation else {})


def _points(name: str) -> Step:
    P, Q = POINTS[name]
    lines = [f"name = {json.dumps(name)}", f"support = {{ points = {list(range(len(P)))} }}"]
    return {
        "toml": "\n".join([*lines, "[pair]", f"P = {json.dumps(P)}", f"Q = {json.dumps(Q)}", ""])
    }


def _one(family: str, step: Step) -> Law:
    return Law(_label(step), family, (step | {"weight": 1},))


def _label(step: Step) -> str:
    weight = step.get("weight", 1)
    named = step["built_in"] if "built_in" in step else json.loads(step["toml"].split("\n")[0][7:])
    words = [f"{key}={value}" for key, value in step.get("parameters", {}).items()]
    text = f"{named}({', '.join(words)})"
    if "sampling" in step:
        text += " " + " ".join(str(value) for value in step["sampling"].values())
    text += f" {step['relation']}" if "relation" in step else ""
    return text if weight == 1 else f"{weight} {text}"
