"""A local randomizer: the law of one person's answer at each input, and how many are shuffled.

Protected is one person's input. Every other person's answer may have any of the laws too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp.errors import InputError, at, suggestion
from symdp.exact_number import shorten
from symdp.model.reading.guarded import sign_of, substitute

if TYPE_CHECKING:
    from symdp.model.pair import Support

MOST_INPUTS = 400  # of a list: their pairs are compared, each with each
MOST_PEOPLE = 10**12  # how many answers are counted in doubles


@dataclass(frozen=True)
class Local:
    """The density of an answer y at an input x, or a list of laws on a list of outcomes."""

    # a formula of the answer and the input, or for each input its masses
    density: sp.Expr | tuple[tuple[sp.Expr, ...], ...]
    input: sp.Symbol
    # the ends of an interval, or all values; for laws in a list their numbers
    inputs: tuple[sp.Expr, ...]
    is_interval: bool
    # how many answers are shuffled; none where the answer is seen by itself
    people: sp.Expr | None = None

    @property
    def is_shuffled(self) -> bool:
        """Whether the names of the answers are dropped."""
        return self.people is not None

    def substitute(self, values: Mapping[sp.Symbol, sp.Expr]) -> Local:
        """Return the randomizer with values in place of symbols."""
        density: Any = self.density
        if isinstance(density, tuple):
            density = tuple(tuple(substitute(mass, values) for mass in law) for law in density)
        else:
            density = substitute(density, values)
        people = None if self.people is None else substitute(self.people, values)
        inputs = tuple(substitute(value, values) for value in self.inputs)
        return replace(self, density=density, inputs=inputs, people=people)

    def checked(self, support: Support) -> Local:
        """Return self; raise InputError where inputs, outcomes and people do not fit."""
        if support.kind not in ("interval", "points"):
            raise InputError(
                f"the answers of a local randomizer are an interval or a list of points, not all "
                f"{support.kind}; list those that count"
            )
        if isinstance(self.density, tuple):
            for number, law in enumerate(self.density, start=1):
                if len(law) != len(support.points):
                    raise InputError(
                        f"law {number} has {len(law)} masses but there are "
                        f"{len(support.points)} outcomes"
                    )
        _check_inputs(self.inputs, self.is_interval)
        if self.people is not None:
            _check_people(self.people)
        return self

    def law(self, index: int, variable: sp.Symbol, support: Support) -> Any:
        """Return the law of an input by its number: an expression, or a mass for every outcome."""
        if isinstance(self.density, tuple):
            return self.density[index]
        law = substitute(self.density, {self.input: self.inputs[index]})
        if support.kind == "points":
            return tuple(substitute(law, {variable: point}) for point in support.points)
        return law

    def latex_lines(self, variable: sp.Symbol) -> list[str]:
        """Return the law and the number of people as lines of LaTeX."""
        y = sp.latex(variable)
        x = sp.latex(self.input)
        law = r"\text{a list of laws}"
        if not isinstance(self.density, tuple):
            law = sp.latex(self.density)
        lines = [f"R_{{{x}}}({y}) = {law}"]
        if self.people is not None:
            lines.append(f"n = {sp.latex(self.people)}")
        return lines


def _check_inputs(inputs: Sequence[sp.Expr], is_interval: bool) -> None:
    if not is_interval:
        if not 2 <= len(inputs) <= MOST_INPUTS:
            raise InputError(
                f"a local randomizer needs 2 to {MOST_INPUTS} inputs, not {len(inputs)}"
            )
        for index, value in enumerate(inputs):
            if value in inputs[:index]:
                raise InputError(f"the input {value} is there twice")
        return
    lower, upper = inputs
    if lower.is_infinite or upper.is_infinite:
        raise InputError(
            f"inputs = [{lower}, {upper}]: of inputs without an end the laws have no common part "
            "that hides anybody; clip them to an interval"
        )
    width = upper - lower
    if not width.free_symbols and sign_of(width) <= 0:
        raise InputError(f"inputs = [{lower}, {upper}]: the lower end must lie below the upper one")


def _check_people(people: sp.Expr) -> None:
    if people.free_symbols:
        return
    if not people.is_Integer or not 2 <= people <= MOST_PEOPLE:
        raise InputError(f"people must be a whole number from 2 to {MOST_PEOPLE}, not {people}")


def read_randomizer(
    intake_of: Callable[..., Any],
    written: tuple[Any, sp.Symbol | str, sp.Symbol | str, object],
    support: object,
    parameters: Mapping[str, str] | None,
) -> tuple[Any, Local]:
    """Return what reads a caller's symbols, and the randomizer: density, answer, input, inputs."""
    density, variable, letter, inputs = written
    name = str(letter)
    rows: list[tuple[Any, ...]] = []
    if isinstance(density, list | tuple):
        rows = listed_laws(density)
        if inputs is not None:
            raise InputError("a list of laws has one law for each input: leave inputs out")
        support = {"points": list(range(len(rows[0])))}
        inputs = {"values": list(range(len(rows)))}
    if parameters is not None and name in parameters:
        raise InputError(f"'{name}' is both the input and a parameter")
    words = None if parameters is None else {**parameters, name: "real"}
    intake = intake_of(variable, support, words)
    if name == intake.variable.name:
        raise InputError(f"'{name}' is both the answer and the input; rename one of them")
    symbol = sp.Symbol(name, real=True)
    law: Any = tuple(tuple(intake.formula(mass, "a mass") for mass in row) for row in rows)
    if not rows:
        symbol = intake.read(symbol, "the input")
        law = intake.read(density, "the density")
    values, is_interval = read_inputs(intake, inputs)
    return intake, Local(law, symbol, values, is_interval)


def listed_laws(density: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return a list of laws, each a row of masses of one length."""
    rows = []
    for number, law in enumerate(density, start=1):
        if isinstance(law, str) or not isinstance(law, list | tuple):
            raise InputError(f"law {number} must be a list with a mass for every outcome")
        rows.append(tuple(law))
    lengths = {len(row) for row in rows}
    if len(lengths) != 1 or not rows[0]:
        raise InputError("a list of laws needs the same outcomes in every law, one or more")
    return rows


def read_inputs(intake: Any, inputs: object) -> tuple[tuple[sp.Expr, ...], bool]:
    """Return the inputs that a caller means, and whether they are the ends of an interval."""
    values = inputs
    is_interval = True
    if isinstance(inputs, Mapping):
        if set(inputs) != {"values"}:
            wrong = next(iter(set(inputs) - {"values"}), "none")
            hint = suggestion(str(wrong), ("values",))
            raise InputError(f"inputs: unknown key {shorten(str(wrong))}{hint}; write values = […]")
        values = inputs["values"]
        is_interval = False
    if isinstance(inputs, sp.Interval):
        values = [inputs.start, inputs.end]
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError("inputs are the ends of an interval, [0, 1], or { values = [0, 1, 2] }")
    listed = tuple(intake.end(value, "an input") for value in values)
    if is_interval and len(listed) != 2:
        raise InputError(
            f"inputs has {len(listed)} numbers: an interval has two ends; a list is written "
            "{ values = […] }"
        )
    return listed, is_interval


def with_people(
    mechanism: Any, people: Any, intake_of: Callable[..., Any], declare: Callable[..., Any]
) -> tuple[Local, tuple[Any, ...]]:
    """Return a mechanism's randomizer with so many people, and the parameters that it then has."""
    name = mechanism.name
    source = mechanism.source
    if not isinstance(source, Local):
        raise InputError(
            f"{name} is no local randomizer, whose answers can be shuffled: give the density of "
            "an answer at an input, in a [local] table or by Mechanism.local"
        )
    if source.is_shuffled:
        raise InputError(f"{name} is shuffled already")
    if isinstance(people, bool):
        raise InputError("people must be a whole number, from 2 on")
    declared = mechanism.declared
    is_name = isinstance(people, sp.Symbol | str) and str(people).isidentifier()
    if is_name and str(people) not in {parameter.name for parameter in declared}:
        declared = (*declared, declare(str(people), "integer above 1"))
    intake = intake_of(mechanism.variable, mechanism.support, None, declared)
    with at("people"):
        number = intake.formula(people, "the number of people")
    number = substitute(number, {intake.symbols[key]: value for key, value in mechanism.bound})
    return replace(source, people=number).checked(mechanism.support), intake.declared


def is_affine(source: Local) -> bool:
    """Whether the density is affine in the input: between two inputs it lies on the chord."""
    density = source.density
    if isinstance(density, tuple):
        return False
    polynomial = density.as_poly(source.input)
    return polynomial is not None and polynomial.degree() <= 1


def location(source: Local, variable: sp.Symbol) -> sp.Expr | None:
    """Return f(y) where the density at x is f(y − x) on the whole line, None where it is not."""
    density = source.density
    if isinstance(density, tuple):
        return None
    moved = density.xreplace({variable: variable + source.input})
    if source.input in moved.free_symbols:
        moved = moved.replace(lambda part: isinstance(part, sp.Add), sp.expand)
    if source.input in moved.free_symbols:
        return None
    return moved
