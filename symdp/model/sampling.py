"""What a mechanism is made of: parameters, exact values, noise or two laws, and sampling.

From these, `symdp.model.dominating.dominating_pair` makes the pair (P, Q).
"""

from __future__ import annotations

import keyword
import math
import numbers
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Self, TypeAlias

import sympy as sp

from symdp.arguments import AT_MOST
from symdp.errors import InputError, at, suggestion
from symdp.exact_number import shorten
from symdp.model.family import Family
from symdp.model.local import Local
from symdp.model.pair import Atoms, Component, Support, divided, mass_of
from symdp.model.reading.guarded import never_refuses, sign_of, substitute
from symdp.model.reading.parser import CONSTANTS, parse_value
from symdp.model.schemes import Sampling

Number: TypeAlias = int | float | str | Fraction | Decimal | sp.Expr

_MOST_VALUE_BITS = 4_000
_MOST_ORDERS = 10_000  # of one table
_MOST_MASSES = 5_000  # of 0, 1, 2, …: twice as many losses are summed, each by itself
_LARGEST_SHIFT = 5_000
_LARGEST_SHIFT_OF_TAILS = 200  # as each number adds the digits of a mass


@dataclass(frozen=True)
class _Domain:
    assumptions: tuple[str, ...]
    rule: str  # completes "sigma must be ..."
    holds: Callable[[sp.Expr], bool]


def _whole(value: sp.Expr) -> bool:
    return bool(value.is_integer)


_DOMAINS = {
    "positive": _Domain(("positive",), "above 0", lambda v: sign_of(v) > 0),
    "nonnegative": _Domain(("nonnegative",), "0 or more", lambda v: sign_of(v) >= 0),
    "real": _Domain(("real",), "a real number", lambda v: True),
    "probability": _Domain(
        ("nonnegative",), "from 0 to 1", lambda v: sign_of(v) >= 0 >= sign_of(v - 1)
    ),
    "open probability": _Domain(
        ("positive",), "above 0 and below 1", lambda v: sign_of(v) > 0 > sign_of(v - 1)
    ),
    "positive integer": _Domain(
        ("integer", "positive"), "1, 2, 3 or more", lambda v: _whole(v) and sign_of(v) > 0
    ),
    "integer above 1": _Domain(
        ("integer", "positive"), "2, 3, 4 or more", lambda v: _whole(v) and sign_of(v - 1) > 0
    ),
    "natural": _Domain(
        ("integer", "nonnegative"), "0, 1, 2 or more", lambda v: _whole(v) and sign_of(v) >= 0
    ),
    "integer": _Domain(("integer",), "a whole number", _whole),
}


@dataclass(frozen=True)
class Parameter:
    """A declared parameter: a symbol that carries its assumptions, and the word of its domain."""

    symbol: sp.Symbol
    domain: str

    @property
    def name(self) -> str:
        """The name that binds it."""
        return str(self.symbol.name)

    @property
    def rule(self) -> str:
        """What a value must be, in words."""
        return _DOMAINS[self.domain].rule

    @property
    def bounds(self) -> tuple[sp.Expr, sp.Expr]:
        """The ends of its domain."""
        least = sp.S.Zero if self.symbol.is_nonnegative else -sp.oo
        return least, sp.S.One if self.domain.endswith("probability") else sp.oo

    @cached_property
    def _more_facts(self) -> dict[str, bool]:
        """What a symbol from user code carries beyond its domain: negative=True, even=True."""
        usual = sp.Symbol("x", **dict.fromkeys(_DOMAINS[self.domain].assumptions, True))
        return dict(self.symbol.assumptions0.items() - usual.assumptions0.items())

    def renamed(self, rules: Mapping[sp.Symbol, sp.Symbol]) -> Parameter:
        """Return the parameter with another symbol."""
        return replace(self, symbol=rules.get(self.symbol, self.symbol))

    def checked(self, value: sp.Expr) -> sp.Expr:
        """Return `value`; raise InputError if it lies outside the domain."""
        if not _DOMAINS[self.domain].holds(value):
            raise InputError(f"{self.name} must be {self.rule}, not {value!s:.60}")
        facts = self._more_facts.items()
        if not all(getattr(value, f"is_{fact}", None) in {None, truth} for fact, truth in facts):
            raise InputError(f"{value} breaks an assumption that the symbol {self.name} carries")
        return value


def check_name(name: str, what: str) -> str:
    """Return `name` if it can name a symbol in a formula; raise InputError otherwise."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or len(name) > 50:
        raise InputError(
            f"the {what} name {shorten(name)} must be a letter followed by letters, digits or _"
        )
    if name.lower() in {"nan", "inf", "infinity"}:
        raise InputError(f"'{name}' is not a finite number and cannot name a {what}")
    if name in CONSTANTS or keyword.iskeyword(name):
        raise InputError(f"the {what} name '{name}' is reserved; write {name}_0, say")
    return name


# what is written for a domain -> its word
_SAID = {
    ">0": "positive", "(0,oo)": "positive", "(0,inf)": "positive",
    ">=0": "nonnegative", "[0,oo)": "nonnegative", "[0,inf)": "nonnegative",
    "(0,1)": "open probability", "[0,1]": "probability", "rate": "probability",
    "float": "real", "double": "real", "int": "integer", "(-oo,oo)": "real",
}  # fmt: skip


def declare(name: str, domain: str) -> Parameter:
    """Declare a parameter."""
    if domain not in _DOMAINS:
        domains = ", ".join(_DOMAINS)
        word = _SAID.get("".join(str(domain).lower().split()))
        hint = f"; write '{word}'" if word else suggestion(str(domain), _DOMAINS)
        raise InputError(f"{name}: unknown domain {domain!r}{hint} (known are {domains})")
    assumptions = dict.fromkeys(_DOMAINS[domain].assumptions, True)
    return Parameter(sp.Symbol(check_name(name, "parameter"), **assumptions), domain)


def exact(value: object, what: str = "the value") -> sp.Expr:
    """Return a number as an exact SymPy number.

    A float is taken as the decimal that it prints: whoever types 0.1 means 1/10, not the binary
    fraction nearest to it. Text is a number or a ratio ("1/3", "1e-5"). A SymPy constant such as
    sqrt(2) stays as it is, floats inside it taken likewise.
    """
    result: sp.Expr
    if isinstance(value, str):
        with at(what):
            result = parse_value(value)
    elif isinstance(value, sp.Expr) and not value.free_symbols:
        result = without_floats(value)
        size = result.evalf(15)
        if not size.is_comparable or not size.is_finite:
            raise InputError(f"{what} must be a finite real number, not {value}")
    elif isinstance(value, bool):
        raise InputError(f"{what} must be a number, not {value}")
    elif isinstance(value, numbers.Integral):
        result = sp.Integer(int(value))
    elif isinstance(value, numbers.Rational):
        result = sp.Rational(int(value.numerator), int(value.denominator))
    elif isinstance(value, Decimal | numbers.Real):
        if not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
            raise InputError(f"{what} must be a finite number, not {value}")
        # The repr of a NumPy scalar names its type, but its str is the shortest decimal too.
        result = parse_value(float.__repr__(value) if isinstance(value, float) else str(value))
    else:
        raise InputError(f"{what} must be a number, not {value!r:.60}")
    if result.is_Rational and max(abs(result.p), result.q) >= 2**_MOST_VALUE_BITS:
        raise InputError(f"{what} has over {_MOST_VALUE_BITS} bits; round it")
    return result


def infer(symbol: sp.Symbol) -> Parameter:
    """Return a symbol of user code as a parameter; one without assumptions is taken as real."""
    name = check_name(str(symbol.name), "parameter")
    if symbol.is_extended_real is False or not symbol.is_commutative:
        raise InputError(f"the parameter {name} must be real, but its symbol is not")
    if not symbol.is_real:
        return declare(name, "real")
    for word in ("positive integer", "natural", "integer", "positive", "nonnegative", "real"):
        if all(getattr(symbol, f"is_{fact}") for fact in _DOMAINS[word].assumptions):
            break
    return Parameter(sp.Symbol(name, **symbol.assumptions0), word)


def without_floats(expr: sp.Expr) -> sp.Expr:
    """Return the expression with every float as the exact decimal that it prints."""
    return expr.xreplace(
        {
            number: parse_value(repr(float(number)) if number._prec == 53 else str(number))
            for number in expr.atoms(sp.Float)
        }
    )


def variable_symbol(name: str, kind: str) -> sp.Symbol:
    """Return the symbol that a density on a support of this kind is written in."""
    check_name(name, "variable")
    assumptions = {
        "integers": {"integer": True},
        "naturals": {"integer": True, "nonnegative": True},
    }
    return sp.Symbol(name, **assumptions.get(kind, {"real": True}))


@dataclass(frozen=True)
class Noise:
    """Additive noise: Q(x) = f(x) and P(x) = f(x - D) for the density f and the sensitivity D."""

    density: sp.Expr
    sensitivity: sp.Expr  # D, what adding or removing one record moves the output by
    moved_by_substitution: sp.Expr | None = None  # what changing its value does; 2 D if left out
    falls: bool = False  # whether f was shown, at its values, to fall away from its centre

    @property
    def substitution_sensitivity(self) -> sp.Expr:
        """What changing one record's value moves the output by."""
        if (moved := self.moved_by_substitution) is None:
            return 2 * self.sensitivity
        return moved

    def substitute(self, values: Mapping[sp.Symbol, sp.Expr]) -> Noise:
        """Return the noise with values in place of symbols."""
        by_substitution = self.moved_by_substitution
        moved = None if by_substitution is None else substitute(by_substitution, values)
        size = substitute(self.sensitivity, values)
        if never_refuses(self.density, values):
            return _LaterNoise(self, values, size, moved)
        return Noise(substitute(self.density, values), size, moved)

    def of_density(self, density: sp.Expr) -> Noise:
        """Return noise of another density on the same query."""
        return Noise(density, self.sensitivity, self.moved_by_substitution)

    def on(self, sensitivity: sp.Expr) -> Noise:
        """Return the same noise on a query of another sensitivity."""
        return Noise(self.density, sensitivity)

    def checked(self, support: Support) -> Noise:
        """Return self; raise InputError where the sensitivity does not fit the support."""
        if support.kind == "points":
            raise InputError(
                "additive noise needs an interval, integers or naturals as its support;"
                " on points give P and Q themselves"
            )
        sizes = {"sensitivity": self.sensitivity}
        sizes["substitution_sensitivity"] = self.substitution_sensitivity
        for name, size in sizes.items():
            _check_size(size, name)
            if support.kind != "interval" and size.is_integer is False:
                raise InputError(f"on {support.kind} the {name} must be a whole number, not {size}")
        return self


def _check_size(size: sp.Expr, name: str) -> None:
    positive = size.is_positive if size.free_symbols else sign_of(size) > 0
    if size.is_infinite or positive is False:
        raise InputError(f"the {name} must be a number above 0, not {size}")


class _LaterNoise(Noise):
    """Noise whose density gets its values when it is looked at: numeric laws never do."""

    _template: Noise
    _values: dict[sp.Symbol, sp.Expr]

    def __init__(
        self,
        template: Noise,
        values: Mapping[sp.Symbol, sp.Expr],
        sensitivity: sp.Expr,
        moved_by_substitution: sp.Expr | None,
    ) -> None:
        fields = {"sensitivity": sensitivity, "moved_by_substitution": moved_by_substitution}
        vars(self).update(fields, _template=template, _values=dict(values))

    @cached_property
    def density(self) -> sp.Expr:
        return substitute(self._template.density, self._values)


@dataclass(frozen=True)
class Laws:
    """The two laws P and Q themselves; on points, one mass for every point."""

    P: Component
    Q: Component
    is_bound: bool = False  # made to dominate what is partly known: no data are known as far apart
    atoms: Atoms = ()  # places of an interval with a mass of their own under P and Q
    # Whether it stands for many pairs, each of which attains its profile at some ε and none at all:
    # of several steps, and for every divergence, it is an upper bound.
    is_envelope: bool = False
    rho: sp.Expr | None = None  # a bound on D_α/α, α > 1, of all pairs that it stands for

    def substitute(self, values: Mapping[sp.Symbol, sp.Expr]) -> Laws:
        """Return the laws with values in place of symbols."""
        P, Q = (
            tuple(substitute(mass, values) for mass in law)
            if isinstance(law, tuple)
            else substitute(law, values)
            for law in (self.P, self.Q)
        )
        atoms = tuple(
            (substitute(value, values), tuple(substitute(mass, values) for mass in masses))
            for value, masses in self.atoms
        )
        rho = None if self.rho is None else substitute(self.rho, values)
        return replace(self, P=P, Q=Q, atoms=atoms, rho=rho)

    def normalized(self, variable: sp.Symbol, support: Support) -> Laws:
        """Return the laws divided by their masses, those of the atoms included."""
        atoms_of_p = [of_p for _, (of_p, _) in self.atoms]
        atoms_of_q = [of_q for _, (_, of_q) in self.atoms]
        mass_of_p = mass_of(self.P, variable, support, "C_P") + sp.Add(*atoms_of_p)
        mass_of_q = mass_of(self.Q, variable, support, "C_Q") + sp.Add(*atoms_of_q)
        atoms = []
        for value, (of_p, of_q) in self.atoms:
            atoms.append((value, (of_p / mass_of_p, of_q / mass_of_q)))
        P = divided(self.P, mass_of_p)
        Q = divided(self.Q, mass_of_q)
        return replace(self, P=P, Q=Q, atoms=tuple(atoms))

    def checked(self, support: Support) -> Laws:
        """Return self; raise InputError where the number of masses is not that of the points."""
        for name, law in (("P", self.P), ("Q", self.Q)):
            if isinstance(law, tuple) and len(law) != len(support.points):
                raise InputError(
                    f"{name} has {len(law)} masses but the support has {len(support.points)} points"
                )
        if self.atoms and support.kind != "interval":
            raise InputError(
                f"atoms stand beside densities on an interval; on {support.kind} the masses are P"
                " and Q themselves"
            )
        places = [value for value, _ in self.atoms]
        for number, value in enumerate(places):
            if value in places[:number]:
                raise InputError(f"the atom at {value} is there twice")
            for below, above in ((support.lower, value), (value, support.upper)):
                gap = above - below
                if value.is_infinite or (sign_of(gap) < 0 if gap.is_number else gap.is_negative):
                    ends = f"[{support.lower}, {support.upper}]"
                    raise InputError(f"the atom at {value} lies outside of the support {ends}")
        return self


@dataclass(frozen=True)
class Radial:
    """Noise of density g(|x|), but for a factor, on a vector that a record moves by D in length.

    The largest shift is the worst, as g falls: ∫ min(f(x − s), λf(x)) dx is the integral over
    heights of the volume that two balls share, which falls as their centres part. As x -> s − x
    exchanges the two laws, both directions have one law of the loss without sampling.
    """

    density: sp.Expr
    dimension: sp.Expr
    sensitivity: sp.Expr

    def substitute(self, values: Mapping[sp.Symbol, sp.Expr]) -> Radial:
        """Return the noise with values in place of symbols."""
        parts = (self.density, self.dimension, self.sensitivity)
        return Radial(*(substitute(part, values) for part in parts))

    def on(self, sensitivity: sp.Expr) -> Radial:
        """Return the same noise on a query of another sensitivity."""
        return replace(self, sensitivity=sensitivity)

    def checked(self, support: Support) -> Radial:
        """Return self; raise InputError where dimension, sensitivity or support do not fit."""
        if support.kind != "interval" or (support.lower, support.upper) != (0, sp.oo):
            raise InputError('the length of noise on vectors has the support [0, "oo"]')
        d = self.dimension
        if d.is_integer is False or (d.is_number and not (d.is_integer and d >= 1)):
            raise InputError(
                f"the dimension of noise on vectors is a whole number from 1 on, not {d}"
            )
        _check_size(self.sensitivity, "sensitivity")
        return self


@dataclass(frozen=True)
class RenyiCurve:
    r"""A bound on the divergence D_α at every order α > 1 of the support, in both directions.

    Such a step, of zCDP or of a table of orders, has no dominating pair. What adds up is a bound,

    .. math:: K(t) \le \sum_i n_i\, t\, D^{(i)}_{1+t}, \qquad t > 0,

    on the transform, and every tilt t gives a bound on δ [SPA (43)], [IND (C.3)].
    """

    # A formula of the order, or a list of orders, rising, each followed by its bound. K is convex
    # and 0 at t = 0, so that between orders it lies below the chord
    divergence: sp.Expr | tuple[sp.Expr, ...]

    @classmethod
    def of_table(cls, points: Sequence[sp.Expr]) -> RenyiCurve:
        """Return the curve of orders, each followed by its bound, checked."""
        listed = list(zip(points[::2], points[1::2], strict=True))
        if not 1 <= len(listed) <= _MOST_ORDERS:
            raise InputError(f"a Rényi curve needs 1 to {_MOST_ORDERS} orders, not {len(listed)}")
        for (before, last), (order, bound) in pairwise([(sp.S.One, sp.S.Zero), *listed]):
            if not order > before:
                rule = "above 1, and orders rising"
                raise InputError(f"order {order} must lie above {before}: {rule}")
            if not bound >= last:
                where = "0" if bound < 0 else f"the {last} of a smaller order"
                raise InputError(
                    f"the divergence {bound} of order {order} is below {where}; it must not be"
                )
        return cls(tuple(points))

    def substitute(self, values: Mapping[sp.Symbol, sp.Expr]) -> RenyiCurve:
        """Return the curve with values in place of symbols."""
        if isinstance(self.divergence, tuple):
            return self
        return replace(self, divergence=substitute(self.divergence, values))

    def checked(self, support: Support) -> RenyiCurve:
        """Return self: every support of orders will do."""
        return self


Source: TypeAlias = Noise | Laws | RenyiCurve | Radial | Family | Local


def symbols_of(source: Source, support: Support) -> frozenset[sp.Symbol]:
    """Return the symbols in the noise or the laws, and in the support that they have."""
    expressions = [part for part in vars(source).values() if part is not None]
    return frozenset(
        sp.Tuple(*expressions, support.lower, support.upper, support.points).free_symbols
    )


@dataclass(frozen=True, eq=False, repr=False)
class MechanismRecord:
    """The parts of a mechanism, see `symdp.Mechanism`."""

    name: str
    variable: sp.Symbol
    support: Support
    source: Source
    declared: tuple[Parameter, ...]
    bound: tuple[tuple[str, sp.Expr], ...] = ()
    sampling: Sampling | None = None
    relation: str | None = None
    title: str = ""
    description: str = ""
    citation: str = ""
    protects: str = ""
    dominates: str = ""
    template: Self | None = None
    shift: str = AT_MOST
    modes: int | None = None  # of the noise, by its author's word

    @property
    def values(self) -> dict[str, sp.Expr]:
        """The bound values, exact."""
        return dict(self.bound)

    @property
    def parameters(self) -> dict[str, sp.Symbol]:
        """The free parameters; a bound one is no longer here."""
        return {p.name: p.symbol for p in self.declared if p.name not in self.values}

    @property
    def is_concrete(self) -> bool:
        """Whether every parameter has its value."""
        return len(self.bound) == len(self.declared)

    @property
    def is_given(self) -> bool:
        """Whether two laws or a Rényi curve were given instead of noise."""
        return not isinstance(self.source, Noise | Radial)

    @property
    def is_listed(self) -> bool:
        """Whether it is noise on the integers that is given by its masses."""
        return hasattr(self.source, "masses")


# Noise that is given by a list of its masses, even and with one mode.
# The masses p₀ ≥ p₁ ≥ … ≥ p_K of 0, ±1, …, ±K are rationals. Beyond ±K lies the mass T on either
# side, which falls by one ratio r = T/(T + p_K) from each number to the next; T = 0 where the noise
# ends. All add up to exactly one, p₀ + 2(p₁ + … + p_K + T) = 1.
#
# On the reals k stands for a cell, ((k − 1/2)w, (k + 1/2)w), in which the density is p_k/w. A shift
# by D = mw moves cells onto cells, so that its loss is that of noise on the integers moved by m.
#
# Even and falling away from 0, so that the pair at the largest shift D dominates every shift of at
# most D, either way, as a half-line shifts with it; under substitution a record moves the output by
# at most 2D, and the same holds of the pair at 2D. All k ≤ −K − 1 have the same loss, and so have
# all k ≥ K + m + 1: each of the two counts as one outcome, which loses nothing and adds nothing.


@dataclass(frozen=True)
class MassNoise(Laws):
    """The pair of such noise and its shift, on the points −K, …, K + m and, of a tail, beyond."""

    cells: int = 1  # m, by how many numbers the noise is moved
    tail: sp.Expr = sp.S.Zero  # T, the mass beyond K, on either side
    cell: sp.Expr | None = None  # w, the width of a cell; None on the integers

    @property
    def reach(self) -> int:
        """K, the largest number whose mass is listed."""
        beyond = 2 if self.tail else 0
        return (len(self.Q) - self.cells - beyond - 1) // 2

    @property
    def sensitivity(self) -> sp.Expr:
        """D, what adding or removing one record moves the output by."""
        if self.cell is None:
            return sp.Integer(self.cells)
        return self.cells * self.cell

    @property
    def masses(self) -> tuple[sp.Expr, ...]:
        """The masses of 0, 1, 2, …, K."""
        middle = self.reach + (1 if self.tail else 0)
        return tuple(self.Q[middle : middle + self.reach + 1])

    @property
    def ratio(self) -> sp.Expr:
        """r, by which masses fall beyond K."""
        return self.tail / (self.tail + self.masses[-1])

    def absolute_moment(self, power: int) -> sp.Expr:
        """Return E|X|^power of power 1 or 2, exact."""
        reach = self.reach
        total = sum((2 * mass * k**power for k, mass in enumerate(self.masses)), sp.S.Zero)
        if self.tail:
            # With j numbers beyond K at a chance that falls by r, E j = 1/(1 − r).
            away = 1 / (1 - self.ratio)
            if power == 1:
                mean = reach + away
            else:
                mean = reach**2 + 2 * reach * away + (1 + self.ratio) * away**2
            total += 2 * self.tail * mean
        if self.cell is None:
            return total
        within = sp.Rational(1, 12)  # of a cell
        if power == 1:
            within = self.masses[0] / 4
        return (total + within) * self.cell**power

    def moved(self, sensitivity: sp.Expr) -> tuple[MassNoise, Support]:
        """Return the same noise beside its shift by another D, and the points of both."""
        return mass_noise(self.masses, sensitivity, self.tail, self.cell)


def mass_noise(
    listed: Sequence[Number], sensitivity: Number, tail: Number = 0, cell: Number | None = None
) -> tuple[MassNoise, Support]:
    """Return the noise of masses of 0, 1, 2, …, and the points of it and of its shift."""
    masses = tuple(exact(mass, "a mass") for mass in listed)
    tail = exact(tail, "the tail")
    width = sp.S.One
    if cell is not None:
        cell = exact(cell, "the cell")
        width = cell
    _check_masses(masses, tail)
    shift = _cells_moved(exact(sensitivity, "the sensitivity"), tail, cell)
    last_mass = masses[-1]
    first = 1 - len(masses)
    law = (*masses[:0:-1], *masses)
    beyond: tuple[sp.Expr, ...] = (sp.S.Zero,) * shift
    Q = (*law, *beyond)
    P = (*beyond, *law)
    if tail:
        first -= 1
        ratio = tail / (tail + last_mass)
        falling = [last_mass * ratio**k for k in range(1, shift + 1)]
        last = tail * ratio**shift
        Q = (tail, *law, *falling, last)
        P = (last, *reversed(falling), *law, tail)
    points = tuple(width * k for k in range(first, first + len(Q)))
    support = Support("points", -sp.oo, sp.oo, points)
    return MassNoise(P, Q, cells=shift, tail=tail, cell=cell), support


def _cells_moved(sensitivity: sp.Expr, tail: sp.Expr, cell: sp.Expr | None) -> int:
    """Return by how many numbers the noise is moved; InputError where they are none."""
    most = _LARGEST_SHIFT
    if tail:
        most = _LARGEST_SHIFT_OF_TAILS
    size = sensitivity
    unit = ""
    if cell is not None:
        if not (cell.is_Rational and cell > 0):
            raise InputError(f"cell {cell!s:.40}: the width of a cell is a ratio above 0")
        size = sensitivity / cell
        unit = " cells"
    if not (size.is_Integer and 1 <= size <= most):
        raise InputError(
            f"sensitivity {sensitivity}: noise of listed masses moves by a whole number of 1 to "
            f"{most}{unit}"
        )
    return int(size)


def _check_masses(masses: tuple[sp.Expr, ...], tail: sp.Expr) -> None:
    """Raise InputError where masses are not those of even noise with one mode."""
    if not 2 <= len(masses) <= _MOST_MASSES:
        raise InputError(
            f"masses: {len(masses)} of them; give those of 0, 1, 2, …, from 2 to {_MOST_MASSES}, "
            "and beyond them a tail"
        )
    for k, mass in enumerate(masses):
        if not (mass.is_Rational and mass > 0):
            raise InputError(f"masses: that of {k} is {mass!s:.40}; each is a ratio above 0")
    for k, (inner, outer) in enumerate(pairwise(masses)):
        if outer > inner:
            raise InputError(
                f"masses: that of {k + 1} is above that of {k}; they are those of 0, 1, 2, … and "
                "must not rise; of other noise give the two laws under [pair]"
            )
    if not (tail.is_Rational and tail >= 0):
        raise InputError(f"tail {tail!s:.40}: the mass beyond the last, on either side, is a ratio")
    total = masses[0] + 2 * sp.Add(*masses[1:], tail)
    if total != 1:
        raise InputError(
            f"masses: those of 0 and of ±1, ±2, … add up to {total.evalf(20)}, which is not 1; "
            "each but the first counts twice, and so does the tail"
        )
