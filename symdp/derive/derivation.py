"""Everything that is derived from a mechanism in one direction, as SymPy expressions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from symdp.derive.cgf import derive_cgf
from symdp.derive.child import compute
from symdp.derive.cumulants import cumulant_in_moments, derivative_of
from symdp.derive.inverse import inverses, loss_symbol
from symdp.derive.limits import loss_range
from symdp.derive.masses import atoms, mass_where
from symdp.derive.pieces import pieces, points
from symdp.derive.records import CGF, Atom, Piece, Point
from symdp.derive.shown import Shown
from symdp.derive.symmetry import Dominance, dominating_direction
from symdp.errors import InputError

if TYPE_CHECKING:
    from symdp.derive.asymptotics import Expansion
    from symdp.derive.pld import LossLaw
    from symdp.derive.tails import Tails
    from symdp.mechanism import Mechanism
    from symdp.pair import Pair

_SECONDS_OF_A_LIMIT = 5.0

EPSILON = sp.Symbol("epsilon", real=True)
COUNT = sp.Symbol("n", integer=True, positive=True)


def derive(mechanism: Mechanism, direction: str = "remove", time_limit: float = 20.0) -> Derivation:
    """Derive the privacy loss of a mechanism, its pieces, range, atoms, CGF and expansions.

    Parameters
    ----------
    mechanism : Mechanism
        Parameters may be free, as far as they leave the order of kinks decidable.
    direction : {"remove", "add"}
        (P, Q) as given, or (Q, P).
    time_limit : float
        Seconds that integrals for the closed-form CGF may take; used only when the CGF is asked.

    Raises
    ------
    InputError
        For an unknown direction, a time limit that is no positive number, or a density whose kinks
        cannot be located.

    Examples
    --------
    >>> import symdp
    >>> d = derive(symdp.mechanisms.laplace)
    >>> d.loss_range
    (-1/b, 1/b)
    >>> derive(symdp.mechanisms.gaussian).cumulant(2)
    sigma**(-2)
    """
    if not 0 <= time_limit < float("inf"):
        raise InputError(f"time_limit must be a number of seconds from 0 up, not {time_limit}")
    pair = mechanism.pair(direction)
    return Derivation(mechanism, direction, pair, time_limit, pieces(pair), points(pair))


@dataclass(frozen=True)
class Derivation(Shown):
    """What `derive` found; each further part is computed when it is first asked for.

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

    @property
    def variable(self) -> sp.Symbol:
        """The variable x of P and Q."""
        return self.pair.variable

    @cached_property
    def loss(self) -> sp.Expr:
        """The privacy loss ℓ(x) = log(P(x)/Q(x)) on the whole support."""
        x, cases = self.variable, []
        for point in self.points:
            cases.append((point.loss, sp.Eq(x, point.value)))
        for piece in self.pieces:
            within = x <= piece.upper if x.is_integer else x < piece.upper
            condition = sp.true if piece.upper is sp.oo or piece is self.pieces[-1] else within
            if cases and cases[-1][0] == piece.loss:
                cases[-1] = (piece.loss, condition)
            else:
                cases.append((piece.loss, condition))
        if len(cases) == 1:
            return cases[0][0]
        return sp.Piecewise(*cases, evaluate=False)

    @cached_property
    def loss_range(self) -> tuple[sp.Expr, sp.Expr] | None:
        """Essential infimum and supremum of the finite loss; None where they were not found."""
        if not self.points:
            return loss_range(self.pieces, self.variable)
        flat = [
            Piece(p.value, p.value, p.p, p.q, p.loss, "constant")
            for p in self.points
            if not p.loss.is_infinite
        ]
        return loss_range(flat, self.variable)

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
        found = inverses(self.pieces, self.variable, self._loss_value)
        return tuple(zip(self.pieces, found, strict=True))

    @cached_property
    def pld_density(self) -> LossLaw:
        """The density ω(s) of the loss under P, atoms apart [FA 5]."""
        from symdp.derive.pld import pld_density

        backs = [back for _, back in self.inverse]
        return pld_density(self.pieces, backs, self.variable, self._loss_value)

    @cached_property
    def pld_cdf(self) -> LossLaw:
        """P(ℓ ≤ s) of the finite loss without its atoms."""
        from symdp.derive.pld import pld_cdf

        backs = [back for _, back in self.inverse]
        return pld_cdf(self.pieces, backs, self.variable, self._loss_value)

    @cached_property
    def dominating_direction(self) -> Dominance:
        """Which direction has the larger δ(ε), with the proof where a symmetry gives one."""
        return dominating_direction(self.mechanism.pair("remove"))

    @cached_property
    def cgf(self) -> CGF:
        """K(t) = log ∫ P^{1+t} Q^{−t}: closed and checked, or numeric with the reason."""
        return derive_cgf(self.pair, self.time_limit, self._below_one)

    @property
    def _below_one(self) -> tuple[str, ...]:
        declared = self.mechanism.declared
        return tuple(p.name for p in declared if p.domain.endswith("probability"))

    def cgf_at(self, tilt: int) -> sp.Expr:
        """Return K at a whole tilt in closed form, Poisson-subsampled pairs included (`orders`)."""
        if not isinstance(tilt, int) or isinstance(tilt, bool):
            raise InputError(f"the tilt must be a whole number, not {tilt!r}")
        from symdp.derive.orders import cgf_at

        return cgf_at(self.pair, tilt, self.time_limit, self._below_one)

    def renyi(self, order: int) -> sp.Expr:
        """Return the Rényi divergence D_α(P‖Q) = K(α − 1)/(α − 1) of a whole order α ≥ 2.

        Raises
        ------
        InputError
            For another order, or where no closed form is known.
        """
        _check_order(order, 2)
        return self.cgf_at(order - 1) / (order - 1)

    @cached_property
    def tails(self) -> Tails:
        """Tail constants: Chernoff, Hoeffding, sub-Gaussian, Berry-Esseen, van der Corput."""
        from symdp.derive.tails import derive_tails

        return derive_tails(self)

    def cumulant(self, order: int) -> sp.Expr:
        """Return the tilted cumulant K^(order)(t) as an expression of the tilt.

        Without a closed form it is given by the tilted raw moments
        m_k(t) = ∫ ℓᵏ P^{1+t} Q^{−t} / ∫ P^{1+t} Q^{−t}.

        Parameters
        ----------
        order : int, 1 or more

        Raises
        ------
        InputError
            For an order below 1.
        """
        _check_order(order, 1)
        tilt, expression = self.cgf.tilt, self.cgf.expression
        if expression is None:
            return cumulant_in_moments(order, tilt)
        return derivative_of(expression, tilt, order)

    def msd(self, order: int, substitute: bool = False) -> sp.Expr:
        """Return MSD_order ≈ δ(ε), the method of steepest descent [SPA (60), (61)].

        MSD_k = e^{F₀}/√(2πF₂)·(1 + corrections up to n^{−k}), F_j the j-th derivative of
        F(z) = nK(z) − εz − log z − log(1+z) at t.

        Parameters
        ----------
        order : int, 0 or more
        substitute : bool
            Put the closed-form CGF in, for n steps at ε and tilt t.

        Raises
        ------
        InputError
            For a negative order, or a substitution without a closed form.
        """
        from symdp.expansion import F, saddlepoint_series

        _check_order(order, 0)
        formula = sp.exp(F(0)) / sp.sqrt(2 * sp.pi * F(2)) * saddlepoint_series(order)
        if not substitute:
            return formula
        tilt = self.cgf.tilt
        z = sp.Symbol(tilt.name, positive=True)  # the saddle point lies right of 0
        own = {j: derivative_of(self._closed(), tilt, j) for j in range(1, 2 * order + 3)}
        rest = -EPSILON * z - sp.log(z) - sp.log(1 + z)
        values = {F(0): COUNT * self._closed().subs(tilt, z) + rest}
        for j, derivative in own.items():
            values[F(j)] = COUNT * derivative.subs(tilt, z) + sp.diff(rest, z, j)
        return formula.subs(values)

    def edgeworth(self, order: int, substitute: bool = False, at: sp.Expr | int = 0) -> sp.Expr:
        """Return E_order(x), the Edgeworth series of the standardised loss's distribution function.

        E_k(x) = Φ(x) − φ(x) Σ_{j≤k} p_j(x) in λ_j = κ_j/κ₂^{j/2}, as behind [EA Prop 3.2].

        Parameters
        ----------
        order : int, 0 or more
        substitute : bool
            Put the cumulants of n steps in: those under P for `at` = 0, under Q for `at` = −1.
        at : the tilt of the cumulants

        Raises
        ------
        InputError
            For a negative order, or a substitution without a closed form.
        """
        from symdp.expansion import edgeworth_polynomials, standardised_cumulant

        _check_order(order, 0)
        x = sp.Symbol("x", real=True)
        normal = (1 + sp.erf(x / sp.sqrt(2))) / 2
        density = sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)
        formula = normal - density * sp.Add(*edgeworth_polynomials(order))
        if not substitute:
            return formula
        self._closed()
        kappa = {j: self.cumulant_at(j, at) for j in range(2, order + 3)}
        half = sp.Rational(1, 2)
        return formula.subs(
            {
                standardised_cumulant(j): COUNT ** (1 - j * half)
                * kappa[j]
                / kappa[2] ** (j * half)
                for j in range(3, order + 3)
            }
        )

    def cumulant_at(self, order: int, at: sp.Expr | int) -> sp.Expr:
        """Return the closed-form cumulant at one tilt, as a limit where the formula reads 0/0.

        Raises
        ------
        InputError
            Where there is no closed form, or the limit was not found.
        """
        _check_order(order, 1)
        derivative = derivative_of(self._closed(), self.cgf.tilt, order)
        if not isinstance(at, int | sp.Expr):
            raise InputError(f"the tilt must be a number or a SymPy expression, not {at!r}")
        place = sp.sympify(at, strict=True)
        value = derivative.subs(self.cgf.tilt, place)
        if value.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
            limit = compute("limit", (derivative, self.cgf.tilt, place, "+"), _SECONDS_OF_A_LIMIT)
            if limit is None:
                raise InputError(f"the cumulant of order {order} has no value found at {place}")
            return limit
        return sp.simplify(value)

    def asymptotics(self, order: int = 1, substitute: bool = False) -> tuple[Expansion, ...]:
        """Return how t₀ and log δ behave for many steps, in three regimes of ε.

        "central" ε = nκ₁ + ξ√(nκ₂) [SPA Prop 8, Thm 9], "fixed" ε, and "large" ε = nλ.

        Parameters
        ----------
        order : int, 0 or more
            Terms after the leading one.
        substitute : bool
            Put the closed-form CGF in, and solve for the tilt s where a formula does.

        Raises
        ------
        InputError
            For a negative order, or a substitution without a closed form.

        Examples
        --------
        >>> import symdp
        >>> central, fixed, large = derive(symdp.mechanisms.gaussian).asymptotics(0, True)
        >>> fixed.tilt, large.tilt
        (2*sigma**2/n, level*sigma**2 - 1/2)
        """
        from symdp.derive.asymptotics import LEVEL, expansions, substituted
        from symdp.derive.tails.constants import invert_slope

        _check_order(order, 0)
        found = expansions(order, self.pair.is_discrete)
        if not substitute:
            return found
        levels = {"fixed": sp.S.Zero, "large": LEVEL}
        places = {name: invert_slope(self, level) for name, level in levels.items()}
        return tuple(
            substituted(
                expansion,
                lambda j: self.cumulant_at(j, 0),
                lambda j: self.cumulant(j) if j else self._closed(),
                self.cgf.tilt,
                places.get(expansion.regime),
            )
            for expansion in found
        )

    def _closed(self) -> sp.Expr:
        if self.cgf.expression is None:
            raise InputError(
                f"{self.mechanism.name} has no closed-form CGF to substitute ({self.cgf.reason}); "
                "leave substitute out"
            )
        return self.cgf.expression


def _check_order(order: int, least: int) -> None:
    if not isinstance(order, int) or isinstance(order, bool) or order < least:
        raise InputError(f"the order must be a whole number, {least} or more, not {order!r}")
