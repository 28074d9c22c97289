r"""An upper end of E[S₊] in balls: shuffled answers, of lists and of smooth laws.

S is the sum of n independent values X of one law, φ(z) = E e^{zX}, and G normal with mean 0 and
variance τ². As s₊ is convex, and by Poisson's formula (see `numeric.shuffled.line`), for any t, Λ
and τ above 0, at z_k = t + 2πik/Λ,

.. math:: E[S_+] \le E[(S + G)_+] \le \frac1Λ \sum_k φ(z_k)^n e^{τ^2 z_k^2/2} z_k^{-2}.

Beyond |k| = K the terms add up to at most 2 φ(t)ⁿ e^{τ²(t² − y²)/2}/(h²K), with h = 2π/Λ and
y = (K + 1)h. Nothing of the law has to be known there, no alias is bounded, and t, Λ, τ, K are not
believed: they cost width alone.

*The law of X.* With any ω that lies below every law R_x which an answer may have, X is 0 with
probability 1 − ∫ω, else (R_a − e^ε R_b)/ω at an output that is drawn from ω. So ω may be the
smallest law less a small share, the slack of `Smooth`, and 0 on panels whose outputs are counted
apart: these add ∫(R_a − e^ε R_b)₊ at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import sympy as sp
from flint import acb, arb, ctx

from symdp.density.signs import interior_point
from symdp.emit.arb import compile_arb, compile_arb_together
from symdp.emit.exact import LN10, fraction_ball, real_ball
from symdp.prove.measure import Asked, Nodes, Panels, measure, walk

# Stretches, each with the edges of its panels.
Panelled = Sequence[tuple[Any, tuple[float, ...]]]


@dataclass(frozen=True)
class Line:
    """Where the sum is taken: none of it is believed."""

    tilt: float
    period: float
    blur: float
    terms: int
    digits: int
    people: int

    @property
    def spacing(self) -> arb:
        """h = 2π/Λ."""
        return 2 * arb.pi() / arb(self.period)

    @property
    def reach(self) -> float:
        """The largest frequency of the sum."""
        return 2.0 * math.pi / self.period * self.terms * (1.0 + 1e-9)


class Law(NamedTuple):
    """Σ weight·e^{zX} is ∫ω e^{zX} but for an error, for frequencies up to a line's reach."""

    weights: Sequence[arb]  # tilted
    values: Sequence[arb]
    error: arb
    remaining: arb  # 1 − ∫ω


def simple_end(law: Law, line: Line) -> arb:
    """Return min over t of φ(t)ⁿ/(et n) at one t, an upper end of E[S₊]/n."""
    moment = arb((sum(law.weights, arb(0, law.error)) + law.remaining).upper())
    return arb((moment**line.people / (arb(line.tilt) * arb(1).exp() * line.people)).upper())


def upper_end(law: Law, line: Line) -> tuple[arb, int]:
    """Return an upper end of E[S₊]/n, and to how many digits it is that.

    The blur adds τ² times the density of S + G at 0 at most, which is the sum without z^{−2}.
    """
    spacing = line.spacing
    people = line.people
    tilt = arb(line.tilt)
    half_square = arb(line.blur) ** 2 / 2
    total = arb(0)
    density = arb(0)
    largest = arb(0)
    values = walk(law.weights, law.values, law.error, spacing)
    for k, value in enumerate(islice(values, line.terms + 1)):
        point = acb(tilt, k * spacing)
        moment = value + law.remaining
        square = point * point
        blurred = moment**people * (half_square * square).exp()
        term = (blurred / square).real
        if k == 0:
            largest = moment.real
            total += term
            density += blurred.real
        else:
            total += 2 * term
            density += 2 * blurred.real
    height = (line.terms + 1) * spacing
    exponent = half_square * (tilt**2 - height**2)
    beyond = 2 * largest**people * exponent.exp() / (spacing**2 * line.terms)
    share = (2 * half_square * density / total).upper()
    digits = line.digits
    while digits > 0 and not share < arb(10) ** -digits:
        digits -= 1
    return arb(((total + beyond) / arb(line.period) / people).upper()), digits


@dataclass(frozen=True)
class ListedPart:
    """X of a list of outcomes: masses of both laws and of ω, each exactly."""

    outcomes: tuple[tuple[sp.Expr, sp.Expr, sp.Expr], ...]
    epsilon: Fraction

    @cached_property
    def counts(self) -> dict[tuple[sp.Expr, sp.Expr, sp.Expr], int]:
        """How often each triple of masses stands there."""
        counts: dict[tuple[sp.Expr, sp.Expr, sp.Expr], int] = {}
        for outcome in self.outcomes:
            counts[outcome] = counts.get(outcome, 0) + 1
        return counts

    def law(self, line: Line) -> Law:
        """Return masses and values."""
        growth = fraction_ball(self.epsilon).exp()
        tilt = arb(line.tilt)
        weights = []
        values = []
        remaining = arb(1)
        for (first, second, least), count in self.counts.items():
            if least == 0:
                continue
            mass = real_ball(least)
            value = (real_ball(first) - growth * real_ball(second)) / mass
            remaining -= count * mass
            values.append(value)
            weights.append(count * mass * (tilt * value).exp())
        return Law(weights, values, arb(0), remaining)

    def apart(self, _log_error: float) -> arb:
        """Return an upper end of Σ (R_a − e^ε R_b)₊ over the outcomes that ω has nothing of."""
        growth = fraction_ball(self.epsilon).exp()
        total = arb(0)
        for (first, second, least), count in self.counts.items():
            if least == 0:
                gain = real_ball(first) - growth * real_ball(second)
                total += count * gain.max(arb(0))
        return arb(total.upper())


class Smooth:
    """log ω and X on a stretch between kinks of all laws, where one law is the smallest."""

    is_infinite = False
    is_integer = False

    def __init__(
        self,
        ends: tuple[sp.Expr, sp.Expr],
        logs: tuple[sp.Expr, sp.Expr, sp.Expr],
        y: sp.Symbol,
        epsilon: Fraction,
        slack: Fraction,
    ) -> None:
        self.ends = ends
        self.epsilon = epsilon
        self.slack = slack
        self._logs = compile_arb_together(logs, [y])
        first, second, least = logs
        ratios = [sp.expand(first - least), sp.expand(second - least)]
        # where X is one number, all of the stretch is one atom
        self.is_flat = not any(y in ratio.free_symbols for ratio in ratios)

    @property
    def loss(self) -> arb:
        """X where it is one number."""
        return arb(self.values(real_ball(interior_point(*self.ends)))[1].real)

    def whole_mass(self) -> arb | None:
        """None: panels tell how much of the stretch is kept."""
        return None

    def values(self, y: Any, *, analytic: bool = False) -> tuple[Any, Any]:
        """Return balls around log ω and X."""
        first, second, least = self._logs(y, analytic=analytic)
        log_least = least - fraction_ball(self.slack)
        part = (first - log_least).exp()
        part -= (fraction_ball(self.epsilon) + second - log_least).exp()
        return log_least, part

    def place(self, edge: float | arb) -> arb:
        """Return an edge, which is the exact end where it is the double next to it."""
        return placed(edge, self.ends)


class Single:
    """The log of one law on a stretch, whose mass is wanted."""

    is_infinite = False
    is_flat = False
    is_integer = False

    def __init__(self, ends: tuple[sp.Expr, sp.Expr], log: sp.Expr, y: sp.Symbol) -> None:
        self.ends = ends
        self._log = compile_arb(log, [y])

    def values(self, y: Any, *, analytic: bool = False) -> tuple[Any, Any]:
        """Return balls around the log of the density and 0."""
        return self._log(y, analytic=analytic), arb(0)

    def place(self, edge: float | arb) -> arb:
        """Return an edge, as `Smooth.place`."""
        return placed(edge, self.ends)


def placed(edge: float | arb, ends: tuple[sp.Expr, sp.Expr]) -> arb:
    """Return an edge of a panel, the exact end of its stretch where it is the double next to it."""
    for end in ends:
        if end.is_finite and edge == float(end):
            return real_ball(end)
    return arb(edge)


@dataclass(frozen=True)
class Stretches:
    """What `measure` takes: stretches, and no atoms."""

    stretches: Sequence[Any]

    def atoms(self) -> list[tuple[arb, arb]]:
        """None: outputs have densities."""
        return []


@dataclass(frozen=True)
class SmoothPart:
    """X of densities, on panels of stretches; other outputs are counted apart."""

    smooth: Panelled
    # of the first law on the same panels, and of the second where, elsewhere, the first law is
    # proved to exceed e^ε times it
    first: Panelled
    second_apart: Panelled
    epsilon: Fraction

    def law(self, line: Line) -> Law:
        """Return nodes of the integrals over ω."""
        log_error = -(line.digits + 3.0) * LN10 - math.log(line.people)
        asked = [
            Asked(arb(line.tilt), 0.0, log_error, line.reach),
            Asked(arb(0), 0.0, log_error),
        ]
        nodes = _measured(self.smooth, asked)
        remaining = 1 - nodes.total(asked[1], 1)
        return Law(nodes.weighted(asked[0]), nodes.losses, nodes.errors[0], remaining)

    def apart(self, log_error: float) -> arb:
        """Return an upper end of what the other outputs add.

        That is the first law's mass beside the kept panels, less e^ε times the second one's where
        the difference is above 0.
        """
        question = Asked(arb(0), 0.0, log_error)
        bits_of_error = max(int(-log_error / math.log(2.0)), 0)
        with ctx.workprec(ctx.prec + bits_of_error):
            kept = _measured(self.first, [question]).total(question, 0)
            second = _measured(self.second_apart, [question]).total(question, 0)
            growth = fraction_ball(self.epsilon).exp()
            total = 1 - kept - growth * second
        return arb(total.max(arb(0)).upper())


def _measured(stretches: Panelled, asked: Sequence[Asked]) -> Nodes:
    """Return nodes of integrals over panels of stretches."""
    kind: Any = Stretches([stretch for stretch, _ in stretches])
    panels = [Panels(number, edges) for number, (_, edges) in enumerate(stretches)]
    return measure(kind, panels, asked)
