r"""A local randomizer: what all its laws have in common, and one answer's part of the bound.

With ω(y) = inf_x R_x(y), γ = ∫ω and n people, each of whom answers by R_x, the shuffled answers
have [Balle2019, Lemma 5.3]

.. math::

   δ(ε) \le \frac1n E\Big[\Big(\sum_{i \le n} L_i\Big)_+\Big]
   = \frac1n \frac1{2πi} \int_{\mathrm{Re}\,z = t} φ(z)^n z^{-2}\, dz, \qquad
   φ(z) = 1 - γ + \int ω\, e^{zL}, \qquad L = \frac{R_a - e^ε R_b}{ω}.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp.density.breakpoints import smooth_stretches
from symdp.density.shapes import shape_of
from symdp.derive.printed import Derivation
from symdp.interrupt import Clock
from symdp.model import tidy
from symdp.model.local import Local, is_affine, location

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism

EPSILON = sp.Symbol("epsilon", nonnegative=True)
TILT = sp.Symbol("z")
MOST_SHOWN = 8  # laws, or outcomes, that a page lists


@dataclass(frozen=True)
class Part:
    """What holds between two outputs, or of outcomes that are alike."""

    lower: sp.Expr
    upper: sp.Expr
    least: sp.Expr
    first: sp.Expr
    second: sp.Expr
    # of a list: how many outcomes are like this one
    count: int = 1

    @property
    def value(self) -> sp.Expr | None:
        """L, None where ω is 0."""
        if self.least == 0:
            return None
        ratios = [tidy.simplify(law / self.least) for law in (self.first, self.second)]
        return ratios[0] - sp.exp(EPSILON) * ratios[1]


def derive_local(mechanism: Mechanism, time_limit: float = 20.0) -> LocalDerivation:
    """Derive what the laws of a local randomizer have in common, and its part of the bound."""
    return LocalDerivation(mechanism, "both", Clock(time_limit))


@dataclass(frozen=True)
class LocalDerivation(Derivation):
    """What `derive` finds of a local randomizer; further parts are computed when asked for.

    Attributes
    ----------
    mechanism, direction : what was derived; both directions are one
    clock : the time that is left

    Examples
    --------
    >>> import sympy as sp
    >>> import symdp
    >>> x, y = sp.symbols("x y", real=True)
    >>> b = sp.Symbol("b", positive=True)
    >>> answer = symdp.Mechanism.local(sp.exp(-sp.Abs(y - x) / b) / (2 * b), y, x, (0, 1))
    >>> symdp.derive(answer).common_mass
    exp(-1/(2*b))
    """

    mechanism: Mechanism
    direction: str
    clock: Clock = field(repr=False, compare=False)

    @property
    def headline(self) -> str:
        """What was derived, in one line."""
        return repr(self.mechanism)

    @property
    def source(self) -> Local:
        """The randomizer."""
        source = self.mechanism.source
        assert isinstance(source, Local)
        return source

    @property
    def is_list(self) -> bool:
        """Whether the outputs are a list of outcomes."""
        return self.mechanism.support.kind == "points"

    @property
    def people(self) -> sp.Expr:
        """n, the number of people, a symbol where the answers are not shuffled."""
        if self.source.people is None:
            return sp.Symbol("n")
        return self.source.people

    @cached_property
    def laws(self) -> tuple[Any, ...]:
        """The law of each input, of an interval of its two ends."""
        m = self.mechanism
        numbers = range(len(self.source.inputs))
        return tuple(self.source.law(number, m.variable, m.support) for number in numbers)

    @cached_property
    def falls(self) -> bool:
        """Whether the density is f(y − x) with an even f that falls from its centre."""
        density = location(self.source, self.mechanism.variable)
        if density is None or self.is_list:
            return False
        shape = shape_of(density, self.mechanism.variable, self.mechanism.support)
        return shape.centre is not None and bool(shape.falls)

    @cached_property
    def middle(self) -> sp.Expr:
        """Where the laws at both ends of the inputs cross, of such a density."""
        density = location(self.source, self.mechanism.variable)
        shape = shape_of(density, self.mechanism.variable, self.mechanism.support)
        lower, upper = self.source.inputs[0], self.source.inputs[-1]
        return (lower + upper) / 2 + shape.centre

    @cached_property
    def why_least(self) -> str:
        """Why ω is what it is shown to be; empty where it is the smallest of listed laws."""
        if not self.source.is_interval:
            return ""
        if is_affine(self.source):
            return (
                "the density is affine in the input, so that of all inputs one at an end gives "
                "least"
            )
        if self.falls:
            return (
                "the density falls from its centre on both sides, so that of all inputs one at an "
                "end gives least"
            )
        return "of inputs in an interval no closed form of the smallest law is known"

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """ω and both laws on stretches of outputs, or for each kind of outcomes.

        The two laws are those of the first and the last input. Empty where ω has no closed form.
        """
        is_at_an_end = self.falls or is_affine(self.source)
        if self.source.is_interval and not is_at_an_end:
            return ()
        if self.is_list:
            return self._outcomes()
        return tuple(self._stretches())

    def _outcomes(self) -> tuple[Part, ...]:
        counts: dict[tuple[sp.Expr, sp.Expr, sp.Expr], int] = {}
        for masses in zip(*self.laws, strict=True):
            least = min(masses, key=sp.default_sort_key)
            if all(mass.is_number for mass in masses):
                least = min(masses, key=float)
            elif len(set(masses)) > 1:
                least = sp.Min(*masses)
            triple = (least, masses[0], masses[-1])
            counts[triple] = counts.get(triple, 0) + 1
        none = sp.S.Zero
        return tuple(Part(none, none, *triple, count) for triple, count in counts.items())

    def _stretches(self) -> list[Part]:
        m = self.mechanism
        laws = self.laws
        least = sp.Min(*laws)
        support = m.support
        ends = [support.lower, support.upper]
        stretches = []
        if self.falls and len(laws) == 2:
            # below the middle the law of the upper input is the smaller one
            lower = smooth_stretches((laws[-1], *laws), m.variable, ends[0], self.middle)
            upper = smooth_stretches((laws[0], *laws), m.variable, self.middle, ends[1])
            stretches = [*lower, *upper]
        else:
            stretches = smooth_stretches((least, *laws), m.variable, *ends)
        parts = []
        for stretch in stretches:
            smallest, *both = [tidy.simplify(law) for law in stretch.expressions]
            parts.append(Part(stretch.lower, stretch.upper, smallest, both[0], both[-1]))
        return parts

    @cached_property
    def common_mass(self) -> sp.Expr:
        """γ, the mass of ω; an integral where no closed form was found."""
        if self.is_list:
            return sp.Add(*(part.count * part.least for part in self.parts))
        total = sp.S.Zero
        for part in self.parts:
            limits = (self.mechanism.variable, part.lower, part.upper)
            integral = sp.Integral(part.least, limits)
            closed = self.clock.attempt(integral.doit, None)
            total += integral if closed is None else closed
        return tidy.simplify(total)

    @cached_property
    def transform(self) -> sp.Expr:
        """φ(z) = E e^{zL}, its integrals left as they stand."""
        gamma = sp.Symbol("gamma", positive=True)
        total = 1 - gamma
        y = self.mechanism.variable
        for part in self.parts:
            value = part.value
            if value is None:
                continue
            weight = part.least * sp.exp(TILT * value)
            if self.is_list:
                total += part.count * weight
            elif y in value.free_symbols:
                total += sp.Integral(weight, (y, part.lower, part.upper))
            else:
                mass = sp.Integral(part.least, (y, part.lower, part.upper))
                closed = self.clock.attempt(mass.doit, None)
                mass = mass if closed is None else tidy.simplify(closed)
                total += mass * sp.exp(TILT * value)
        return total

    def __repr__(self) -> str:
        return f"<LocalDerivation of {self.mechanism.summary}>"
