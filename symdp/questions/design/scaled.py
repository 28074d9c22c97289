"""Steps with one unknown: a scale that several parameters are formulas of, or shares of a budget.

A *scaled* composition has steps whose parameters are formulas of names without a value, as
b = "2*scale"; at a value of each name it is a list of steps as any other.

*Shares* say how much of a budget each step has. By ε: a step alone, with all its repetitions, has
ε at the common δ in proportion to its share, as whoever splits an ε between queries means it. By ρ,
as whoever accounts by zCDP does: it has ρ in that proportion. The unknown is then the ε or ρ of a
share of one; what steps have together is not the sum, but what their composition has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import sympy as sp

from symdp.arguments import listed, whole
from symdp.errors import InputError, at, suggestion
from symdp.mechanisms import resolve
from symdp.model.mechanism import Mechanism, a_mechanism
from symdp.model.reading.guarded import substitute
from symdp.model.reading.parser import parse
from symdp.model.sampling import Parameter, declare, exact
from symdp.model.specification import (
    document_of,
    read_text,
    refuse_unknown,
    take,
    with_relation,
    with_sampling,
)
from symdp.questions.invert import bracketed_root

if TYPE_CHECKING:
    from symdp.model.sampling import Number

By = Literal["epsilon", "rho"]
Meets = Callable[[Mechanism, str, int, float, float], sp.Expr]
SHARE = "share"
_KEYS = ("mechanism", "name", "parameters", "sampling", "relation", "count")
_MOST_COUNT = 10**12  # of one step
_DIGITS = 12  # of a parameter whose ρ is asked
_FARTHEST = 60.0  # of the logarithm of such a parameter
_CLOSE = 1e-11  # of that logarithm
_LEAST_RHO = 1e-300


@dataclass(frozen=True)
class ScaledStep:
    """A mechanism, the formulas of those of its parameters that have one, and how often it runs."""

    name: str
    mechanism: Mechanism
    formulas: tuple[tuple[str, sp.Expr], ...]
    count: int

    def at(self, values: Mapping[sp.Symbol, sp.Expr]) -> tuple[Mechanism, int]:
        """Return the step at values of the names; what they break is told with the step's name."""
        with at(self.name):
            bound = {name: substitute(formula, values) for name, formula in self.formulas}
            by_name = {str(symbol): value for symbol, value in values.items()}
            free = self.mechanism.parameters
            bound |= {name: by_name[name] for name in free if name in by_name and name not in bound}
            return self.mechanism(**bound).require_concrete(), self.count


@dataclass(frozen=True)
class ScaledSteps:
    """Steps whose parameters are formulas of names that have no value yet."""

    steps: tuple[ScaledStep, ...]
    declared: tuple[Parameter, ...]

    is_shared = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names without a value."""
        return tuple(parameter.name for parameter in self.declared)

    def at(self, **values: Number) -> list[tuple[Mechanism, int]]:
        """Return the steps at a value of every name."""
        symbols = {}
        for parameter in self.declared:
            if parameter.name not in values:
                raise InputError(f"{parameter.name} needs a value")
            value = exact(values[parameter.name], parameter.name)
            symbols[parameter.symbol] = parameter.checked(value)
        return [step.at(symbols) for step in self.steps]

    def bound(self, **values: Number) -> ScaledSteps:
        """Return the steps with values of some names."""
        for name in values:
            if name not in self.names:
                hint = suggestion(name, self.names) or f"; there is {', '.join(self.names)}"
                raise InputError(f"the composition has no name {name!r:.60}{hint}")
        symbols = {}
        for parameter in self.declared:
            if parameter.name in values:
                value = exact(values[parameter.name], parameter.name)
                symbols[parameter.symbol] = parameter.checked(value)
        by_name = {str(symbol): value for symbol, value in symbols.items()}
        steps = []
        for step in self.steps:
            formulas = {name: substitute(formula, symbols) for name, formula in step.formulas}
            free = step.mechanism.parameters
            formulas |= {name: by_name[name] for name in free if name in by_name}
            pairs = tuple(formulas.items())
            steps.append(ScaledStep(step.name, step.mechanism, pairs, step.count))
        remaining = tuple(p for p in self.declared if p.name not in values)
        return ScaledSteps(tuple(steps), remaining)

    def told(self, value: sp.Expr) -> dict[str, dict[str, str]]:
        """Return the parameters of each step where the one name has a value, in digits."""
        return parameters_of(self.steps, self.at(**{self.names[0]: value}))


def parameters_of(
    steps: Sequence[ScaledStep], concrete: Sequence[tuple[Mechanism, int]]
) -> dict[str, dict[str, str]]:
    """Return the values of each step's parameters by its name."""
    rows = {}
    for step, (mechanism, _) in zip(steps, concrete, strict=True):
        rows[step.name] = {name: f"{float(value):.12g}" for name, value in mechanism.bound}
    return rows


@dataclass(frozen=True)
class SharedBudget:
    """Steps that each have one parameter open, and the share of a budget that each has."""

    steps: tuple[ScaledStep, ...]
    shares: tuple[sp.Expr, ...]
    by: By = "epsilon"

    is_shared = True
    names = (SHARE,)
    declared = (declare(SHARE, "positive"),)

    def at_delta(self, share: sp.Expr, delta: float, meets: Meets) -> list[tuple[Mechanism, int]]:
        """Return the steps where a share of one is so much ε at δ, or so much ρ.

        `meets` finds the value of a mechanism's one parameter at which so many steps meet (ε, δ).
        """
        return [
            (_of_share(step, weight * share, self.by, delta, meets), step.count)
            for step, weight in zip(self.steps, self.shares, strict=True)
        ]

    def told(self, share: sp.Expr, delta: float, meets: Meets) -> dict[str, dict[str, str]]:
        """Return the parameters of each step at a share, in digits."""
        return parameters_of(self.steps, self.at_delta(share, delta, meets))


@lru_cache(maxsize=1024)
def _of_share(step: ScaledStep, most: sp.Expr, by: By, delta: float, meets: Meets) -> Mechanism:
    """Return a step with the value of its open parameter that spends a share and no more."""
    mechanism = step.mechanism
    (name,) = mechanism.parameters
    with at(step.name):
        if by == "epsilon":
            value = meets(mechanism, name, step.count, float(most), delta)
        else:
            value = _of_rho(mechanism, name, step.count, float(most))
        return mechanism(**{name: value})


def _of_rho(mechanism: Mechanism, name: str, count: int, most: float) -> sp.Expr:
    """Return a value at which ρ is at most a number: a root in the value's logarithm."""
    from symdp.questions.composition import compose

    def value(logarithm: float) -> sp.Expr:
        return exact(f"{math.exp(logarithm):.{_DIGITS}g}")

    def excess(logarithm: float) -> float:
        steps = compose(mechanism(**{name: value(logarithm)}), count)
        return math.log(max(steps.zcdp().rho, _LEAST_RHO) / most)

    low = -1.0
    high = 1.0
    falls = excess(low) > excess(high)
    while (excess(high) > 0.0) == falls and high < _FARTHEST:
        high += 2.0
    while (excess(low) > 0.0) != falls and low > -_FARTHEST:
        low -= 2.0
    if (excess(low) > 0.0) == (excess(high) > 0.0):
        raise InputError(f"{mechanism.summary}: no {name} was found at which ρ is {most:.6g}")
    root = bracketed_root(excess, low, high, absolute=_CLOSE)
    safe = _CLOSE if falls else -_CLOSE  # to the side where ρ is smaller
    while excess(root) > 0.0:
        root += safe
        safe *= 2.0
    return value(root)


def scaled(
    steps: Sequence[tuple[Mechanism, Mapping[str, Any], int]],
    parameters: Mapping[str, str] | None = None,
) -> ScaledSteps:
    """Return steps whose parameters are formulas of names, for `symdp.calibrate`.

    Parameters
    ----------
    steps : (mechanism, parameter -> number or formula in text, count)
    parameters : name -> domain word, positive if left out

    Raises
    ------
    InputError : a parameter that a mechanism has not, or a formula that is none.

    Examples
    --------
    >>> import symdp
    >>> m = symdp.mechanisms
    >>> both = scaled([(m.laplace, {"b": "2*scale"}, 4), (m.gaussian, {"sigma": "3*scale"}, 6)])
    >>> found = symdp.calibrate(both, "scale", epsilon=2, delta=1e-6, digits=6)
    >>> found.value
    31507/12500
    """
    words = dict(parameters or {})
    rows = []
    rule = "give a list of (mechanism, parameters, count)"
    for number, step in enumerate(listed(steps, rule), start=1):
        with at(f"step {number}"):
            if not isinstance(step, tuple | list) or len(step) != 3:
                raise InputError(f"{step!r:.60}: {rule}")
            mechanism, formulas, count = step
            if not isinstance(formulas, Mapping):
                raise InputError(f"{formulas!r:.60}: a table of parameters is needed")
            times = whole(count, "the count", 1)
            rows.append((f"step {number}", a_mechanism(mechanism), dict(formulas), times))
    if not rows:
        raise InputError("a composition needs at least one step")
    return _scaled(rows, words)


def _scaled(
    listed: Sequence[tuple[str, Mechanism, Mapping[str, Any], int]], words: Mapping[str, str]
) -> ScaledSteps:
    """Return the steps, each name that they use declared."""
    domains = dict(words)
    for _, mechanism, formulas, _ in listed:
        for parameter in mechanism.declared:
            if parameter.name in mechanism.parameters and parameter.name not in formulas:
                domains.setdefault(parameter.name, parameter.domain)
    symbols = {name: declare(name, word) for name, word in domains.items()}
    steps = []
    for label, mechanism, formulas, count in listed:
        with at(label):
            read = tuple(
                (name, _formula(formula, name, symbols)) for name, formula in formulas.items()
            )
            for name, _ in read:
                if name not in mechanism.parameters:
                    hint = suggestion(name, mechanism.parameters)
                    raise InputError(f"{mechanism.name} has no parameter {name!r:.60}{hint}")
        steps.append(ScaledStep(label, mechanism, read, count))
    return ScaledSteps(tuple(steps), tuple(symbols.values()))


def _formula(value: Any, name: str, symbols: dict[str, Parameter]) -> sp.Expr:
    """Return a number or a formula; a name in it that is new is that of a positive number."""
    if not isinstance(value, str):
        return exact(value, name)
    with at(name):
        for word in dict.fromkeys(_names_in(value)):
            symbols.setdefault(word, declare(word, "positive"))
        return parse(value, {word: parameter.symbol for word, parameter in symbols.items()})


def _names_in(text: str) -> list[str]:
    """Return the names in a formula that are no functions or constants."""
    import re

    pattern = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\w)(?!\s*\()")
    return [word for word in pattern.findall(text) if word not in ("pi", "E", "oo")]


def load_scaled(path: str | Path) -> ScaledSteps | SharedBudget:
    """Read a composition with an unknown: formulas of names, or a `[budget]` of shares.

    `[[step]]` tables as of every composition, whose parameters may be formulas of names:
    `parameters = { b = "2*scale" }`. A `[parameters]` table gives domains of names, positive if
    left out. With `[budget]`, `shares = { first = 1, second = 3 }` names steps by their `name`,
    each with one parameter left open, and `by` is "epsilon" (if left out) or "rho".
    """
    with at(str(path)):
        document = document_of(read_text(path))
        refuse_unknown(document, ("step", "parameters", "budget"))
        tables = take(document, "step", list, required=True)
        words = take(document, "parameters", dict, default={})
        listed = []
        for number, table in enumerate(tables, start=1):
            with at(f"[[step]] {number}"):
                listed.append(_read_step(table, number, Path(path).parent))
        labels = [label for label, *_ in listed]
        if len(set(labels)) < len(labels):
            raise InputError("two steps have one name")
        budget = take(document, "budget", dict)
        if budget is None:
            return _scaled(listed, words)
        return _shared(listed, budget)


def _read_step(
    table: object, number: int, folder: Path
) -> tuple[str, Mechanism, dict[str, Any], int]:
    if not isinstance(table, dict):
        raise InputError("a step is a table")
    refuse_unknown(table, _KEYS)
    mechanism = resolve(take(table, "mechanism", str, required=True), folder)
    mechanism = with_sampling(mechanism, take(table, "sampling", dict))
    mechanism = with_relation(mechanism, take(table, "relation", str))
    count = take(table, "count", int, default=1)
    if not 1 <= count <= _MOST_COUNT:
        raise InputError(f"count must be a whole number from 1 to {_MOST_COUNT}, not {count}")
    label = take(table, "name", str, default=f"step {number}")
    return label, mechanism, take(table, "parameters", dict, default={}), count


def _shared(
    listed: Sequence[tuple[str, Mechanism, Mapping[str, Any], int]], budget: Mapping[str, Any]
) -> SharedBudget:
    """Return steps that share a budget."""
    with at("[budget]"):
        refuse_unknown(budget, ("shares", "by"))
        by = take(budget, "by", str, default="epsilon")
        if by not in ("epsilon", "rho"):
            raise InputError(f"by = {by!r:.40}: epsilon, each step's at δ, or rho, that of zCDP")
        shares = take(budget, "shares", dict, required=True)
        labels = [label for label, *_ in listed]
        for label in shares:
            if label not in labels:
                hint = suggestion(label, labels) or f"; there are {', '.join(labels)}"
                raise InputError(f"no step has the name {label!r:.60}{hint}")
    steps = []
    weights = []
    for label, mechanism, values, count in listed:
        with at(label):
            bound = mechanism(**values)
            if len(bound.parameters) != 1:
                free = ", ".join(bound.parameters) or "none"
                raise InputError(f"a step with a share has one parameter left open, not {free}")
            if label not in shares:
                raise InputError("it has no share in [budget]")
            weight = exact(shares[label], "its share")
            if not weight > 0:
                raise InputError(f"its share {weight} must be above 0")
        steps.append(ScaledStep(label, bound, (), count))
        weights.append(weight)
    return SharedBudget(tuple(steps), tuple(weights), cast("By", by))
