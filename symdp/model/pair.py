"""The dominating pair (P, Q) and its support."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import sympy as sp

from symdp.emit.mass import MassIntegral, MassSum
from symdp.errors import InputError, suggestion
from symdp.model.reading.guarded import sign_of, substitute

Component: TypeAlias = sp.Expr | tuple[sp.Expr, ...]
Atoms: TypeAlias = tuple[tuple[sp.Expr, tuple[sp.Expr, ...]], ...]  # place, mass of each component


@dataclass(frozen=True)
class Support:
    """Where a density lives: an interval, finitely many points, all integers, or 0, 1, 2, ..."""

    kind: Literal["interval", "points", "integers", "naturals"]
    lower: sp.Expr
    upper: sp.Expr
    points: tuple[sp.Expr, ...] = ()

    def checked(self) -> Support:
        """Return self; raise InputError if the support is empty or a point is there twice."""
        if self.kind == "points":
            if len(self.points) < 2:
                raise InputError("a finite support needs two points or more")
            before: set[sp.Expr] = set()
            for point in self.points:
                if point in before:
                    raise InputError(f"the point {point} of the support is there twice")
                before.add(point)
        if self.kind != "interval":
            return self
        empty = self.lower == sp.oo or self.upper == -sp.oo
        width = self.upper - self.lower
        if empty or (not width.free_symbols and not width.is_infinite and sign_of(width) <= 0):
            raise InputError(
                f"the support [{self.lower}, {self.upper}] is empty;"
                " its lower end must lie below its upper end"
            )
        return self

    def substitute(self, values: Mapping[sp.Symbol, sp.Expr]) -> Support:
        """Return the support with values in place of symbols."""
        lower, upper = substitute(self.lower, values), substitute(self.upper, values)
        points = tuple(substitute(point, values) for point in self.points)
        return Support(self.kind, lower, upper, points).checked()


@dataclass(frozen=True)
class Pair:
    r"""A dominating pair as two mixtures of the same components.

    .. math:: P = \sum_i p_i f_i, \qquad Q = \sum_i q_i f_i

    P is the law of the output with the record and Q without it; f_0 is the density without the
    record. A plain pair has the components (Q, P) and the weights (0, 1) and (1, 0).
    """

    variable: sp.Symbol
    support: Support
    components: tuple[Component, ...]
    p_weights: tuple[sp.Expr, ...]
    q_weights: tuple[sp.Expr, ...]
    alternatives: tuple[tuple[sp.Expr, Pair], ...] = ()
    atoms: Atoms = ()

    @classmethod
    def choice(cls, alternatives: Sequence[tuple[sp.Expr, Pair]]) -> Pair:
        """Return the public choice among pairs of one variable; of a single pair, that pair."""
        if len(alternatives) == 1:
            return alternatives[0][1]
        first = alternatives[0][1]
        return cls(first.variable, first.support, (), (), (), tuple(alternatives))

    def __post_init__(self) -> None:
        if not len(self.components) == len(self.p_weights) == len(self.q_weights):
            raise InputError("a pair needs one weight of P and one of Q for every component")

    @property
    def P(self) -> Component:
        """The law with the record; a tuple of masses on points, and no law of a public choice."""
        return self._mixture(self.p_weights)

    @property
    def Q(self) -> Component:
        """The law without the record; a tuple of masses on points."""
        return self._mixture(self.q_weights)

    @property
    def is_discrete(self) -> bool:
        """Whether the variable takes countably many values."""
        return self.support.kind != "interval"

    def reversed(self) -> Pair:
        """Return the pair with P and Q swapped."""
        others = tuple((weight, pair.reversed()) for weight, pair in self.alternatives)
        fields = (self.components, self.q_weights, self.p_weights, others, self.atoms)
        return Pair(self.variable, self.support, *fields)

    def expressions(self) -> tuple[sp.Expr, ...]:
        """Return every expression that the pair is made of, for hashes and free symbols."""
        listed = [self.variable, self.support.lower, self.support.upper, *self.support.points]
        for component in self.components:
            if isinstance(component, tuple):
                listed += component
            else:
                listed.append(component)
        for value, masses in self.atoms:
            listed += [value, *masses]
        listed += [*self.p_weights, *self.q_weights]
        for weight, pair in self.alternatives:
            listed += [weight, *pair.expressions()]
        return tuple(listed)

    def atoms_under(self, weights: tuple[sp.Expr, ...]) -> tuple[tuple[sp.Expr, sp.Expr], ...]:
        """Return the atoms of a mixture of the components, each with its mass."""
        return tuple(
            (value, sp.Add(*(w * m for w, m in zip(weights, masses, strict=True))))
            for value, masses in self.atoms
        )

    def _mixture(self, weights: tuple[sp.Expr, ...]) -> Component:
        terms = [
            component if isinstance(component, tuple) else (component,)
            for component in self.components
        ]
        used = [(weight, term) for weight, term in zip(weights, terms, strict=True) if weight != 0]
        masses = tuple(
            sp.Add(*(weight * term[index] for weight, term in used))
            for index in range(len(terms[0]))
        )
        if self.support.kind == "points":
            return masses
        return masses[0]


def mass_of(law: Component, variable: sp.Symbol, support: Support, name: str = "C") -> sp.Expr:
    """Return the mass of a law, of a density as an unevaluated exact sum or integral."""
    if isinstance(law, tuple):
        if (total := sp.Add(*law)) == 0:
            raise InputError("the masses add up to 0, so they cannot be normalized")
        return total
    taken = {str(symbol.name) for symbol in law.free_symbols}
    dummy_name = f"{variable.name}_"
    while dummy_name in taken:
        dummy_name += "_"
    # Not a Dummy: two loads of one file must give equal mechanisms.
    dummy = sp.Symbol(dummy_name, **variable.assumptions0)
    limits = sp.Tuple(dummy, support.lower, support.upper)
    inside = law.xreplace({variable: dummy})
    if support.kind != "interval":
        return MassSum(inside, limits)
    return MassIntegral(inside, limits, next(n for n in (name, "N", "Z", "C_0") if n not in taken))


def divided(law: Component, by: sp.Expr) -> Component:
    """Return a law divided by a number."""
    if isinstance(law, tuple):
        return tuple(mass / by for mass in law)
    return law / by


def plain_support(support: object) -> object:
    """Return SymPy's sets in the words of a file: an interval by its ends, ℤ and ℕ by names."""
    if isinstance(support, sp.Interval):
        return (support.start, support.end)
    if isinstance(support, sp.FiniteSet):
        return {"points": list(support.args)}
    if isinstance(support, sp.Set):
        return {sp.S.Integers: "integers", sp.S.Naturals0: "naturals"}.get(support, support)
    return support


_REALS = ("reals", "real", "r", "ℝ", "line", "real line", "all", "everywhere")


def kind_of(support: object) -> Literal["interval", "points", "integers", "naturals"]:
    """Return the kind of support that a caller means."""
    if isinstance(support, Support):
        return support.kind
    if isinstance(support, Mapping) and set(support) == {"points"}:
        return "points"
    if isinstance(support, list | tuple) and len(support) >= 2:
        if len(support) > 2:
            return "points"
        return "interval"
    if support == "integers":
        return "integers"
    if support == "naturals":
        return "naturals"
    hint = suggestion(support, ("integers", "naturals")) if isinstance(support, str) else ""
    if isinstance(support, str) and support.lower() in _REALS:
        hint = '; all reals are ["-oo", "oo"]'
    raise InputError(
        f"the support {support!r:.60} must be [lower, upper], 'integers', 'naturals',"
        f" three points or more, or points = [...]{hint}"
    )
