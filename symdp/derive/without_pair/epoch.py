r"""One epoch of random allocation: its likelihood ratios, their transform, its moments.

W = P/Q of one step under Q, φ(u) = E_Q e^{−uW}, and Y the sum of t independent copies of W, whose
transform is φ^t. The loss is log(Y/t) under P_t in the remove direction, log(t/Y) under Q_t in the
add direction, and Euler's integral of the gamma function gives its moment generating function:

.. math::

   \text{remove:}\quad M(z) = \frac{t^{-1-z}}{\Gamma(1-z)} \int_0^\infty u^{-z}
       \frac{d^2}{du^2} \varphi(u)^t\, du, \qquad
   \text{add:}\quad M(z) = \frac{t^z}{\Gamma(z)} \int_0^\infty u^{z-1} \varphi(u)^t\, du,

for 0 < Re z < 1 and for Re z > 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from symdp.density.check import agrees, parameters_of, with_values
from symdp.density.pieces import points
from symdp.density.records import Piece, Slope
from symdp.density.signs import random_values
from symdp.derive import series
from symdp.derive.derivation import PairDerivation, derive_pair
from symdp.derive.limits import monotone_pieces
from symdp.derive.orders import check_order, cumulants_of
from symdp.derive.printed import Derivation
from symdp.derive.records import CGF
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import attempt
from symdp.model import tidy
from symdp.model.allocation import MOST_FORMULAS, allocated_steps, outcomes

if TYPE_CHECKING:
    from symdp.interrupt import Clock
    from symdp.model.mechanism import Mechanism

_RATIO = sp.Symbol("w", positive=True)
_TURNED: dict[Slope, Slope] = {"increasing": "decreasing", "decreasing": "increasing"}
_SHARE = 0.4  # of the time, for one integral
_CHECKED_AT = (sp.Rational(7, 10), sp.Rational(12, 5))  # u


def has_no_single_pair(mechanism: Mechanism) -> bool:
    """Return whether an epoch of random allocation is no pair of one variable."""
    steps = allocated_steps(mechanism)
    if steps is None or steps == 1:
        return False
    pair = replace(mechanism, sampling=None).pair()
    return pair.support.kind != "points" or outcomes(pair, steps) > MOST_FORMULAS


def derive_epoch(
    mechanism: Mechanism, direction: str = "remove", time_limit: float = 20.0
) -> EpochDerivation:
    """Derive one epoch of random allocation from the pair of one step."""
    steps = allocated_steps(mechanism)
    assert steps is not None
    one_step = replace(mechanism, sampling=None)
    return EpochDerivation(mechanism, direction, steps, derive_pair(one_step, "remove", time_limit))


@dataclass(frozen=True)
class EpochDerivation(Derivation):
    """What `derive` finds of an epoch; each further part is computed when it is first asked for.

    Attributes
    ----------
    mechanism, direction : what was derived
    steps : t
    one_step : the derivation of one step in the remove direction

    Examples
    --------
    >>> import symdp
    >>> noise = symdp.mechanisms.gaussian.subsample("random_allocation", steps=50)
    >>> epoch = symdp.derive(noise)
    >>> epoch.ratio
    exp((2*x - 1)/(2*sigma**2))
    >>> epoch.cgf_at(1)
    log(exp(sigma**(-2))/50 + 49/50)
    """

    mechanism: Mechanism
    direction: str
    steps: int
    one_step: PairDerivation

    cumulant = series.cumulant
    msd = series.msd
    saddle_terms = series.saddle_terms
    edgeworth = series.edgeworth

    @property
    def clock(self) -> Clock:
        """The time that is left."""
        return self.one_step.clock

    @property
    def mass_at_infinity(self) -> sp.Expr:
        """The mass of an infinite loss, where Q is 0 (remove) or all ratios are (add)."""
        return self._masses[0 if self.direction == "remove" else 1]

    @property
    def mass_at_minus_infinity(self) -> sp.Expr:
        """The mass at infinity of the other direction."""
        return self._masses[1 if self.direction == "remove" else 0]

    @property
    def only_loss(self) -> sp.Expr | None:
        """The one finite loss of an epoch, which is that of its one step where Y is certain."""
        if self._masses == (0, 0):
            return self.one_step.only_loss
        return None

    @property
    def _masses(self) -> tuple[sp.Expr, sp.Expr]:
        d = self.one_step
        return d.mass_at_infinity, d.mass_at_minus_infinity**self.steps

    @cached_property
    def rate(self) -> sp.Symbol:
        """The symbol u of φ(u), or another name where a parameter has that one."""
        names = {parameter.name for parameter in self.mechanism.declared}
        free = next(name for name in ("u", "v", "u_of_phi") if name not in names)
        return sp.Symbol(free, positive=True)

    @cached_property
    def ratio(self) -> sp.Expr:
        """W(x) = P(x)/Q(x) of one step."""
        loss = self.one_step.loss
        if isinstance(loss, sp.Piecewise):
            return sp.Piecewise(*((sp.exp(e), c) for e, c in loss.args), evaluate=False)
        return sp.exp(loss)

    @cached_property
    def atoms(self) -> tuple[tuple[sp.Expr, sp.Expr], ...]:
        """Values of W of positive probability, with that probability under Q; 0 where P is 0."""
        atoms = []
        for atom in self.one_step.atoms:
            mass_of_q = tidy.simplify(atom.mass * sp.exp(-atom.loss))
            atoms.append((sp.exp(atom.loss), mass_of_q))
        absent = self.one_step.mass_at_minus_infinity
        if absent != 0:
            atoms.append((sp.S.Zero, absent))
        return tuple(atoms)

    @cached_property
    def transform(self) -> sp.Expr:
        """φ(u) = E_Q e^{−uW}: closed and checked, or atoms and integrals over the output."""
        closed = attempt(self._closed, None, _SHARE * self.one_step.time_limit)
        if closed is None:
            return self._written_out
        return closed

    @property
    def is_closed(self) -> bool:
        """Whether no integral is left in the transform."""
        return not self.transform.has(sp.Integral, sp.Sum)

    def _from_atoms(self) -> sp.Expr:
        return sp.Add(*(mass * sp.exp(-self.rate * value) for value, mass in self.atoms))

    @cached_property
    def _moving(self) -> tuple[Piece, ...]:
        """The pieces on which W varies and both densities are positive."""
        both = (p for p in self.one_step.pieces if p.log_p is not None and p.log_q is not None)
        return tuple(p for p in both if p.slope != "constant")

    @cached_property
    def _written_out(self) -> sp.Expr:
        x = self.one_step.variable
        parts = [self._from_atoms()]
        for piece in self._moving:
            law = sp.exp(piece.log_q - self.rate * sp.exp(piece.loss))
            over = (x, piece.lower, piece.upper)
            parts.append(sp.Sum(law, over) if x.is_integer else sp.Integral(law, over))
        return sp.Add(*parts)

    def _closed(self) -> sp.Expr | None:
        """Return φ by integrating over W, where its density is known; None if it does not agree."""
        d = self.one_step
        parts = [self._from_atoms()]
        if self._moving:
            law, ends = d.pld_density, d.loss_range
            if d.variable.is_integer or law.expression is None or ends is None:
                return None
            if not isinstance(law.expression, sp.Piecewise):
                return None
            inside = [e for e, _ in law.expression.args if e != 0]
            if len(inside) != 1:
                return None
            # Under Q the density of W at w is ω(log w)/w².
            density = inside[0].subs(law.loss, sp.log(_RATIO)) / _RATIO**2
            whole = _of_power(density, self.rate, sp.exp(ends[0]), sp.exp(ends[1]))
            if whole is None:
                return None
            parts.append(whole)
        total = sp.Add(*parts)
        if self._agrees(total):
            return total
        return None

    def _agrees(self, total: sp.Expr) -> bool:
        """Whether φ equals integrals over the output, at random values of the parameters."""
        from symdp.density.check import CheckError

        pair = self.one_step.pair
        values = random_values(parameters_of(pair), 1, self.one_step.below_one)
        concrete = with_values(pair, dict(values))
        law = (
            [_of_ratio(p) for p in monotone_pieces(concrete) if p.log_q is not None],
            [replace(p, p=p.q, loss=-p.p / p.q) for p in points(concrete) if p.q != 0],
            concrete.variable,
        )
        try:
            return all(agrees(sp.log(total.subs(values)), self.rate, at, law) for at in _CHECKED_AT)
        except (CheckError, InputError, AccuracyError):
            return False

    @cached_property
    def cgf(self) -> CGF:
        """K(t), of which no closed form is known but that of `moment`."""
        tilt = self.one_step.cgf.tilt
        return CGF(tilt, None, "numeric", None, reason="it is an integral over the transform")

    @cached_property
    def moment(self) -> sp.Expr:
        """M(t) = E e^{tL} as an integral over φ^steps: 0 < t < 1 (remove), t > 0 (add)."""
        z = self.cgf.tilt
        u = self.rate
        t = sp.Integer(self.steps)
        phi = sp.Function("phi")(u)
        if self.direction == "remove":
            inner = u ** (-z) * sp.Derivative(phi**t, (u, 2))
            return t ** (-1 - z) / sp.gamma(1 - z) * sp.Integral(inner, (u, 0, sp.oo))
        finite = phi**t - self.mass_at_infinity  # of Y = 0, the loss is infinite
        return t**z / sp.gamma(z) * sp.Integral(u ** (z - 1) * finite, (u, 0, sp.oo))

    @property
    def moment_integral(self) -> sp.Expr:
        """M(t) of the finite losses, written out."""
        return self.moment

    def cgf_at(self, tilt: int) -> sp.Expr:
        """Return K at a whole tilt in closed form, from the moments of W.

        E_Q Y^{1+t} is a polynomial in E_Q W^j = e^{k(j−1)}, k the CGF of one step.

        Raises
        ------
        InputError
            For a negative tilt, the add direction, or a step without these closed forms.
        """
        check_order(tilt, 0)
        if self.direction != "remove":
            raise InputError(
                "no closed form of the moments of 1/Y is known: ask for the remove direction"
            )
        moments = [sp.S.One, sp.S.One]  # E_Q W = 1 but for the mass at infinity
        if self.one_step.mass_at_infinity != 0:
            moments[1] -= self.one_step.mass_at_infinity
        moments += [sp.exp(self.one_step.cgf_at(j)) for j in range(1, tilt + 1)]
        cumulants = cumulants_of(moments)
        total = _moments([self.steps * c for c in cumulants])[-1]
        return sp.log(sp.expand(sp.expand(total) / self.steps ** (1 + tilt)))

    def renyi(self, order: int) -> sp.Expr:
        """Return the Rényi divergence K(α − 1)/(α − 1) of a whole order α ≥ 2."""
        check_order(order, 2)
        if self.mass_at_infinity != 0:
            return sp.oo
        return self.cgf_at(order - 1) / (order - 1)


def _of_power(density: sp.Expr, u: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> sp.Expr | None:
    """Return ∫ c w^p e^{−uw} dw = c u^{−p−1} (Γ(p + 1, u·lower) − Γ(p + 1, u·upper)), or None."""
    plain = sp.powsimp(sp.expand_power_exp(sp.expand(sp.powdenest(density, force=True))))
    factor, power_of_ratio = sp.powsimp(plain, force=True).as_independent(_RATIO, as_Add=False)
    base, power = power_of_ratio.as_base_exp()
    if base != _RATIO or power.has(_RATIO):
        return None
    near, far = (
        sp.S.Zero if end is sp.oo else sp.uppergamma(power + 1, u * end) for end in (lower, upper)
    )
    integral = sp.expand(factor * u ** (-power - 1) * (near - far))
    if integral.has(sp.nan, sp.zoo, sp.oo):
        return None
    return integral


def _of_ratio(piece: Piece) -> Piece:
    """Return a piece with the law Q and the loss −W."""
    ratio = sp.S.Zero if piece.log_p is None else sp.exp(piece.loss)
    return replace(
        piece,
        log_p=piece.log_q,
        loss=-ratio,
        slope=_TURNED.get(piece.slope, piece.slope),
        log_p_terms=piece.log_q_terms,
    )


def _moments(cumulants: list[sp.Expr]) -> list[sp.Expr]:
    """Return moments from order 0 up."""
    moments: list[sp.Expr] = [sp.S.One]
    for n in range(1, len(cumulants) + 1):
        parts = (
            math.comb(n - 1, k - 1) * cumulants[k - 1] * moments[n - k] for k in range(1, n + 1)
        )
        moments.append(sp.Add(*parts))
    return moments
