"""The privacy loss of a mechanism in one direction: its range, atoms, law and CGF, in SymPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from symdp.density.integrate import tilt_symbol
from symdp.density.pieces import pieces, points
from symdp.density.records import Piece, Point
from symdp.density.shapes import shape_of
from symdp.derive.cgf import derive_cgf, derive_with_values
from symdp.derive.child import or_reason
from symdp.derive.limits import monotone_pieces, range_or_reason
from symdp.derive.masses import atoms, mass_where, with_known_masses
from symdp.derive.orders import cgf_at, check_order
from symdp.derive.pld import inverse_on, loss_symbol
from symdp.derive.presented import presented
from symdp.derive.quadratic_pieces import CGFBySign, cgf_by_sign
from symdp.derive.records import CGF, Atom, Case
from symdp.derive.symmetry import Dominance, dominating_direction
from symdp.errors import InputError
from symdp.interrupt import Clock, T, attempt
from symdp.model.relation import SUBSTITUTION
from symdp.model.sampling import Noise
from symdp.tolerances import SOME_TIME

if TYPE_CHECKING:
    from symdp.derive.masses import MassRule
    from symdp.derive.pld import LossLaw
    from symdp.model.mechanism import Mechanism
    from symdp.model.pair import Pair


FOR_CGF = 0.6  # of the time limit; the clock of the other parts has the rest
_SHARE = 0.5  # of the clock, for each other part
_LEAST = 0.25  # seconds for each
_LATE = "it was not found within the time limit"


@dataclass(frozen=True)
class PrivacyLoss:
    """The loss of a mechanism, its law and its CGF, each found when it is first asked for.

    Attributes
    ----------
    mechanism, direction, pair
        What was derived from.
    pieces, points
        The smooth, monotone pieces of the loss, or the points of a finite list.
    """

    mechanism: Mechanism
    direction: str
    pair: Pair
    time_limit: float
    pieces: tuple[Piece, ...]
    points: tuple[Point, ...]
    clock: Clock = field(repr=False, compare=False)

    def _part(self, work: Callable[[], T], otherwise: Callable[[str], T]) -> T:
        """One part of the derivation, or what stands in for it and says why it was not found."""
        late = otherwise(_LATE)
        return or_reason(lambda: self.clock.attempt(work, late, _SHARE, _LEAST), otherwise)

    @property
    def variable(self) -> sp.Symbol:
        """The variable x of P and Q."""
        return self.pair.variable

    @cached_property
    def loss(self) -> sp.Expr:
        """The privacy loss ℓ(x) = log(P(x)/Q(x)) on the whole support.

        Of a public choice it is that of each pair in turn, by the number of the choice.
        """
        if self.pair.alternatives:
            choice = sp.Symbol("choice", integer=True, positive=True)
            derivations = (
                replace(self, pair=pair, pieces=monotone_pieces(pair))
                for _, pair in self.pair.alternatives
            )
            listed = [
                (d.loss, sp.Eq(choice, number)) for number, d in enumerate(derivations, start=1)
            ]
            return sp.Piecewise(*listed, evaluate=False)
        x = self.variable
        cases = []
        for point in self.points:
            cases.append((point.loss, sp.Eq(x, point.value)))
        smooth = [piece for piece in self.pieces if piece.place is None]
        atom = None
        for piece in self.pieces:
            if piece.place is not None:
                atom = piece.place
                cases.append((piece.loss, sp.Eq(x, atom)))
        for piece in smooth:
            within = x <= piece.upper if x.is_integer else x < piece.upper
            condition = sp.true if piece.upper is sp.oo or piece is smooth[-1] else within
            # An atom elsewhere keeps a case of its own, whatever its loss.
            is_next = atom is None or atom == piece.lower
            if cases and is_next and cases[-1][0] == piece.loss:
                cases[-1] = (piece.loss, condition)
            else:
                cases.append((piece.loss, condition))
            atom = None
        if len(cases) == 1:
            return cases[0][0]
        return sp.Piecewise(*cases, evaluate=False)

    @property
    def loss_range(self) -> tuple[sp.Expr, sp.Expr] | None:
        """Essential infimum and supremum of the finite loss; None for a `range_reason`."""
        return self._range_or_reason[0]

    @property
    def range_reason(self) -> str:
        """Why there is no `loss_range`; empty where there is one."""
        return self._range_or_reason[1]

    @cached_property
    def _range_or_reason(self) -> tuple[tuple[sp.Expr, sp.Expr] | None, str]:
        parts = self.pieces or tuple(
            Piece(p.value, p.value, p.p, p.q, p.loss, "constant")
            for p in self.points
            if not p.loss.is_infinite
        )
        return self._part(lambda: range_or_reason(parts, self.variable), lambda why: (None, why))

    @cached_property
    def range_cases(self) -> tuple[Case, ...]:
        """The range for each order of the parameters, where `loss_range` hangs on that order."""
        from symdp.derive.cases import range_cases

        if self.loss_range is not None or not self.mechanism.parameters:
            return ()
        return self._part(lambda: range_cases(self.mechanism, self.direction), lambda _: ())

    @property
    def only_loss(self) -> sp.Expr | None:
        """The one finite value that the loss takes; None where there are several, or none."""
        low, high = self.loss_range or (sp.S.Zero, sp.S.One)
        if low == high:
            return low
        return None

    @property
    def is_disjoint(self) -> bool:
        """Whether P and Q have no output in common, so that no loss is finite and δ is 1."""
        losses = [part.loss for part in self.pieces] + [point.loss for point in self.points]
        return bool(losses) and all(loss.is_infinite for loss in losses)

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """Values that the loss takes on flat pieces or points, with their masses under P."""
        return atoms(self.pieces, self.points, self.variable)

    @cached_property
    def mass_at_infinity(self) -> sp.Expr:
        """δ∞ = P(Q = 0)."""
        return mass_where(sp.oo, self.pieces, self.points, self.variable)

    @cached_property
    def mass_at_minus_infinity(self) -> sp.Expr:
        """Q(P = 0), the mass at infinity of the other direction."""
        return mass_where(-sp.oo, self.pieces, self.points, self.variable)

    @cached_property
    def _loss_value(self) -> sp.Symbol:
        return loss_symbol({self.variable.name, *(p.name for p in self.mechanism.declared)})

    @cached_property
    def inverse(self) -> tuple[tuple[Piece, sp.Expr | None], ...]:
        """Each piece with ℓ⁻¹(s) on it, None where there is none in closed form."""
        x = self.variable
        s = self._loss_value
        inverses = self._part(
            lambda: tuple(inverse_on(piece, x, s) for piece in self.pieces),
            lambda _: (None,) * len(self.pieces),
        )
        return tuple(zip(self.pieces, inverses, strict=True))

    @cached_property
    def pld_density(self) -> LossLaw:
        """The density ω(s) of the loss under P, atoms apart [FA 5]."""
        from symdp.derive.pld import LossLaw, pld_density

        backs = [back for _, back in self.inverse]
        s = self._loss_value
        return self._part(
            lambda: pld_density(self.pieces, backs, self.variable, s),
            lambda why: LossLaw(s, None, why),
        )

    @cached_property
    def pld_cdf(self) -> LossLaw:
        """P(ℓ ≤ s) of the finite loss: without its atoms, or of atoms alone where they are few."""
        from symdp.derive.masses import has_few_values, step_function
        from symdp.derive.pld import LossLaw, pld_cdf

        backs, s, x = [back for _, back in self.inverse], self._loss_value, self.variable

        def absent(why: str) -> LossLaw:
            return LossLaw(s, None, why)

        if self.points or (x.is_integer and has_few_values(self.pieces)):
            whole = 1 - self.mass_at_infinity
            return self._part(lambda: step_function(self.atoms, s, whole), absent)
        return self._part(lambda: pld_cdf(self.pieces, backs, x, s), absent)

    @cached_property
    def mass_rules(self) -> tuple[MassRule, ...]:
        """Loss, mass and P(ℓ ≤ ℓ(k)) of a mechanism on integers whose losses are not listed."""
        from symdp.derive.masses import has_few_values, mass_rules

        if not self.variable.is_integer or self.points or has_few_values(self.pieces):
            return ()
        return self._part(lambda: mass_rules(self.pieces, self.variable), lambda _: ())

    @cached_property
    def dominating_direction(self) -> Dominance:
        """Which direction has the larger δ(ε), with the proof where a symmetry gives one."""
        if self.mechanism.neighbours == SUBSTITUTION and self.mechanism.is_mirrored:
            return Dominance("both", "substituting a record is undone by substituting it back")
        if self.is_disjoint:
            return Dominance("both", "the laws have no output in common, so that δ = 1 both ways")
        pair = with_known_masses(self.mechanism.pair("remove"))
        return self._part(lambda: dominating_direction(pair), self._dominance_by_shape)

    def _dominance_by_shape(self, why: str) -> Dominance:
        """Which direction dominates where the symmetry of the pair was not decided in time."""
        m = self.mechanism
        if isinstance(m.source, Noise) and m.sampling is None:
            shape = shape_of(m.source.density, m.variable, m.support)
            if shape.centre is not None:
                proof = "the noise is even, and a reflection exchanges P and Q"
                return Dominance("both", f"{proof}, so that δ(P‖Q) = δ(Q‖P)")
        return Dominance("unknown", f"{why}: compare both directions in numbers")

    @cached_property
    def cgf(self) -> CGF:
        """K(t) = log ∫ P^{1+t} Q^{−t}: closed and checked, or numeric with the reason."""
        limit = FOR_CGF * self.time_limit

        def absent(why: str) -> CGF:
            return CGF(tilt_symbol(self.pair), None, "numeric", None, reason=why)

        seconds = limit + SOME_TIME
        return or_reason(lambda: attempt(lambda: self._cgf(limit), absent(_LATE), seconds), absent)

    @cached_property
    def cgf_by_sign(self) -> CGFBySign | None:
        """K of quadratic pieces, by the signs that a coefficient has at t; else None."""
        domain = self.cgf.domain
        if self.cgf.expression is not None or domain is None or self.points:
            return None
        limit = FOR_CGF * self.time_limit

        def work() -> CGFBySign | None:
            return cgf_by_sign(self.pair, domain, self.below_one)

        return or_reason(lambda: attempt(work, None, limit), lambda _: None)

    def _cgf(self, limit: float) -> CGF:
        """K found with free parameters where there are some with values, which are then put in."""
        m = self.mechanism
        if m.template is None or m.sampling is not None or self.pair.support.kind == "points":
            return derive_cgf(self.pair, limit, self.below_one)
        values = {p.symbol: m.values[p.name] for p in m.template.declared if p.name in m.values}
        free = replace(m.template, relation=m.relation).pair(self.direction)
        free = with_known_masses(free)
        return derive_with_values(free, values, self.pair, limit, self.below_one)

    @property
    def below_one(self) -> tuple[str, ...]:
        """Names of the parameters that are probabilities."""
        declared = self.mechanism.declared
        return tuple(p.name for p in declared if p.domain.endswith("probability"))

    @cached_property
    def moment_integral(self) -> sp.Expr:
        """M(t) = ∫ P^{1+t} Q^{−t} of the finite losses, written out in integrals and sums."""
        if self.pair.alternatives:
            moments = (
                weight
                * replace(self, pair=pair, pieces=pieces(pair), points=points(pair)).moment_integral
                for weight, pair in self.pair.alternatives
            )
            return sp.Add(*moments)
        x = self.variable
        t = tilt_symbol(self.pair)
        total = sp.Add(*(p.p * sp.exp(t * p.loss) for p in self.points if p.loss.is_finite))
        for piece in pieces(self.pair) if not self.points else ():
            if piece.log_p is None or piece.log_q is None:
                continue
            inside = presented(sp.exp(piece.log_p) * sp.exp(t * piece.loss))
            over = sp.Sum if x.is_integer else sp.Integral
            of_atom = piece.place is not None
            total += inside if of_atom else over(inside, (x, piece.lower, piece.upper))
        return total

    def cgf_at(self, tilt: int) -> sp.Expr:
        """Return K at a whole tilt in closed form, Poisson-subsampled pairs included (`orders`)."""
        if not isinstance(tilt, int) or isinstance(tilt, bool):
            raise InputError(f"the tilt must be a whole number, not {tilt!r}")
        return cgf_at(self.pair, tilt, self.time_limit, self.below_one)

    def renyi(self, order: int) -> sp.Expr:
        """Return the Rényi divergence D_α(P‖Q) = K(α − 1)/(α − 1) of a whole order α ≥ 2.

        It is infinite where the loss is, with positive probability, which K does not count.
        """
        check_order(order, 2)
        if self.mass_at_infinity != 0:
            return sp.oo
        return self.cgf_at(order - 1) / (order - 1)
