r"""An exponential family at two parameters: its loss has a transform without an integral.

Outputs of density h(x) exp(⟨θ, T(x)⟩ − A(θ)), θ₁ with the record and θ₀ without it, have

.. math:: K(z) = \log M(z) = A\bigl((1+z)θ_1 - zθ_0\bigr) - (1+z)A(θ_1) + zA(θ_0),

whatever h, T and their dimension are. A is a formula of named coordinates of θ, or of its length.
Where T counts, and one coordinate alone changes, the loss lies on a lattice of spacing θ₁ − θ₀.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp.errors import InputError
from symdp.model import tidy
from symdp.model.reading.guarded import substitute

if TYPE_CHECKING:
    from symdp.model.pair import Support

TILT = sp.Symbol("z", real=True)  # of the formula of K


@dataclass(frozen=True)
class Family:
    """Two members of an exponential family, known by K alone."""

    log_moment: sp.Expr  # K, a formula of z
    lattice: tuple[sp.Expr, ...] = ()  # start and step of the values that a discrete loss may have

    def substitute(self, values: Mapping[sp.Symbol, sp.Expr]) -> Family:
        """Return the family with values in place of symbols."""
        lattice = tuple(substitute(part, values) for part in self.lattice)
        return Family(substitute(self.log_moment, values), lattice)

    def checked(self, support: Support) -> Family:
        """Return self; raise InputError where the two members are one."""
        if self.log_moment.is_zero or self.lattice[1:] == (0,):
            raise InputError("theta is the same with the record and without it: nothing is lost")
        return self


def coordinates(members: Sequence[Any], length: object) -> list[str]:
    """Return the names of the coordinates of θ, or that of its length."""
    if length is not None:
        return [str(length)]
    if not all(isinstance(member, Mapping) and member for member in members):
        raise InputError("theta is a table of coordinates; a list needs the name of its length")
    if members[0].keys() != members[1].keys():
        raise InputError("theta has other coordinates with the record than without it")
    return [str(name) for name in members[0]]


def family_of(
    intake: Any, a: sp.Expr, members: Sequence[Any], length: object, counts: bool
) -> Family:
    """Return the family of A and two θ: tables of coordinates, or vectors whose length A has."""
    if length is None:
        return _of_coordinates(intake, a, members, counts)
    if counts:
        raise InputError("counts: of statistics that are whole numbers, give theta by coordinates")
    vectors = []
    for member in members:
        if not isinstance(member, list | tuple) or not member:
            raise InputError("theta is a list of components where the formula is of its length")
        vectors.append([intake.constant(part, "a component of theta") for part in member])
    first, second = vectors
    if len(first) != len(second):
        raise InputError(
            f"theta has {len(first)} components with the record, {len(second)} without"
        )
    k = intake.constant(_symbol(length), "the length")

    def at(vector: Sequence[sp.Expr]) -> sp.Expr:
        square = sp.expand(sum((part**2 for part in vector), sp.S.Zero))
        return a.xreplace({k: sp.sqrt(tidy.bounded(sp.trigsimp, square))})

    moved = [x + TILT * (x - y) for x, y in zip(first, second, strict=True)]
    return Family(_cumulants(at(moved), at(first), at(second)))


def _of_coordinates(intake: Any, a: sp.Expr, members: Sequence[Any], counts: bool) -> Family:
    both = []
    for member in members:
        theta = {}
        for coordinate, value in member.items():
            symbol = intake.constant(_symbol(coordinate), "theta")
            theta[symbol] = intake.constant(value, f"{symbol} of theta")
        both.append(theta)
    first, second = both
    step = {}
    for c in first:
        if first[c] != second[c]:
            step[c] = tidy.bounded(sp.factor, first[c] - second[c])
    if counts and len(step) > 1:
        raise InputError(
            f"counts: {' and '.join(map(str, step))} change at once, and the losses lie on no one "
            "lattice; compose one family for each"
        )
    tilted = {c: first[c] + TILT * step.get(c, sp.S.Zero) for c in first}
    a_with = a.xreplace(first)
    a_without = a.xreplace(second)
    lattice: tuple[sp.Expr, ...] = ()
    if counts:
        lattice = (a_without - a_with, *step.values())
    cumulants = _cumulants(a.xreplace(tilted), a_with, a_without)
    return Family(cumulants, lattice)


def _symbol(name: object) -> sp.Symbol:
    if isinstance(name, sp.Symbol):
        return name
    return sp.Symbol(str(name))


def _cumulants(moved: sp.Expr, a_with: sp.Expr, a_without: sp.Expr) -> sp.Expr:
    normalisers = [moved, a_with, a_without]
    factored = [_of_positive_factors(normaliser) for normaliser in normalisers]
    at_tilt, at_p, at_q = factored
    cgf = at_tilt - (1 + TILT) * at_p + TILT * at_q
    if factored == normalisers:
        cgf = sp.expand_log(cgf, force=True)
    # e^{z log(b/a)} is a power, whose base keeps its size when values are put in.
    return cgf.replace(sp.exp, lambda power: sp.exp(sp.logcombine(power, force=True)))


def _of_positive_factors(a: sp.Expr) -> sp.Expr:
    """Return A, logarithms of products with negative factors as sums over the factors' sizes.

    Balls and doubles have a logarithm that jumps where its argument is negative.
    """
    return a.replace(sp.log, _of_sizes)


def _of_sizes(product: sp.Expr) -> sp.Expr:
    """Return the log of a product, as a sum where an even number of its factors is negative."""
    number, factors = product.as_coeff_mul()
    is_positive = number > 0
    is_mended = number < 0
    terms = [sp.log(abs(number))]
    for factor in factors:
        base, power = factor.as_base_exp()
        if base.xreplace({TILT: sp.S.Zero}).is_negative:
            if not power.is_integer:
                return sp.log(product)
            base = -base
            is_mended = True
            is_positive = is_positive == bool(power.is_even)
        terms.append(power * sp.log(base))
    if is_mended and is_positive:
        return sp.Add(*terms)
    return sp.log(product)
