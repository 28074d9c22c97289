"""Privacy loss random variables on a mesh: two-sided proved bounds on δ(ε), plain and tilted."""

from __future__ import annotations

import math
from dataclasses import dataclass

from symdp.errors import AccuracyError, InputError
from symdp.exact.answer import Answer
from symdp.exact.base import FloatAccountant
from symdp.exact.prv.cut_mesh import Mesh, largest_loss, mesh_of
from symdp.exact.single import log_single
from symdp.law.chernoff import SLACK, log_moments_bound
from symdp.law.elementary import log_payoff
from symdp.law.saddle_point import saddle_point
from symdp.law.tilts import Strip, far_tilt
from symdp.law.total import SumLaw
from symdp.method_options import DELTA_ERROR, EPS_ERROR, POINTS

_FEW_POINTS, _POINTS = 1 << 20, 1 << 22  # the second where bounds from the first are wide
_NARROW = 0.05  # wider intervals are worth four times the points
_MISSED = math.log(1e-5)  # of the answer: what the coupling's failure may cost
_LOG_ROUND = 3.0  # so that nearby ε share a mesh
_LEAST_SHARE, _LARGEST_SHARE = -36.0, -9.0  # below the first, rounding is larger
_WIDE = 2.0  # ratio of the bounds at which a finer grid is tried


@dataclass(frozen=True)
class Prv(FloatAccountant):
    """δ(ε + e) − η ≤ δ̃(ε) ≤ δ(ε − e) + η from losses rounded to a mesh [PRV Thm 5.5].

    Each step is cut to a range, rounded to the mesh, and shifted so that its mean stays; the sum
    then differs by at most e = h√(k/2 · log(2/η₀)) with probability 1 − η₀ (Hoeffding), for the
    rounding of one step has mean zero and a range of h. η is what lies beyond the range of the sum,
    η₀, and a bound on the rounding of the transform: for small δ that floor is all that is left.

    No moments are needed: P(ℓ < a) ≤ e^a, and above a loss b > ε that is far enough the payoff is 1
    but for e^{ε−b}; with J = {the loss of some step is above b}, the part of J in δ lies between
    P(J) − e^ε Q(J) and P(J), and Q(J) ≤ e^{−b} Σ P(ℓᵢ > b).

    `tilted` does the same under P_t ∝ e^{tL}P at the saddle point t. With g(s) = e^{−t(s−ε)} ·
    (1 − e^{ε−s})⁺, δ = e^{K(t)−tε} E_t g(L), and every error is relative to that, however small
    it is: rounding moves g by e^{±te} and (1 − e^{ε±e−s})⁺, and a failed coupling costs at most
    max g = t^t/(1+t)^{1+t}.

    Parameters
    ----------
    tilted
        convolve the tilted law.
    points
        the number N of points, a power of two is fastest; None takes 2^20, or 2^22
        where the interval is wider than 5 %.
    eps_error
        e in place of the number of points, which then follows [PRV Thm 5.5].
    delta_error
        the probability that may be missed, of the law that is convolved; None takes what is small
        beside δ.

    Raises
    ------
    InputError
        If an option is out of range, or points and eps_error are both given.

    Examples
    --------
    >>> Prv().name, Prv(tilted=True).name
    ('prv', 'tilted-prv')
    """

    tilted: bool = False
    points: int | None = None
    eps_error: float | None = None
    delta_error: float | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        for option in (POINTS, EPS_ERROR, DELTA_ERROR):
            value = getattr(self, option.name)
            if value is not None:
                option.read(self.name, value)
        if self.points is not None and self.eps_error is not None:
            raise InputError(f"method '{self.name}': eps_error chooses points; give one of them")

    @property
    def name(self) -> str:
        """The method's name."""
        return "tilted-prv" if self.tilted else "prv"

    @property
    def citations(self) -> tuple[str, ...]:
        """What the method rests on."""
        return ("PRV", "SPA") if self.tilted else ("PRV",)

    @property
    def least_log_delta(self) -> float:
        """The log of what the coupling's failure may cost at least, where nothing is tilted."""
        return -math.inf if self.tilted else _LEAST_SHARE

    def inside_range(self, law: SumLaw, epsilon: float) -> Answer:
        """Return the interval at one ε, of kind "bound"; the value is its upper end.

        Where no mesh of so many points serves, it is the one from 0 to the moments bound.
        """
        tilt, share = self._tilt_and_share(law, epsilon)
        found, refusal = None, ""
        top = largest_loss(law, epsilon)
        if self.eps_error is not None:
            tries = [0]
        else:
            tries = [_FEW_POINTS, _POINTS] if self.points is None else [self.points]
        for points in tries:
            try:
                mesh = mesh_of(law, tilt, share, top, points=points, distance=self.eps_error or 0.0)
                found = _bounds(law, epsilon, mesh)
            except AccuracyError as error:
                refusal = str(error)
                continue
            lower, upper, floor = found
            if upper - lower <= _NARROW or floor >= upper - 3.0:
                break
        if found is None:
            upper = log_moments_bound(law, epsilon)
            advice = f"{refusal}; this is the moments bound"
            return Answer(upper, -math.inf, upper, "bound", advice)
        lower, upper, floor = found
        advice = ""
        if not upper - lower <= math.log(_WIDE):
            if floor > upper - 3.0:
                advice = (
                    f"the floating-point floor of this convolution, {math.exp(floor):.0e}, is "
                    "most of the bound; use the method tilted-prv or contour"
                )
            else:
                advice = "the interval is wider than a factor of two; use more points or contour"
        return Answer(upper, lower, upper, "bound", advice)

    def _tilt_and_share(self, law: SumLaw, epsilon: float) -> tuple[float, float]:
        """Return the tilt, and the log of the probability that may be missed."""
        moments = log_moments_bound(law, epsilon)
        if not law.domain[1] > 0 and epsilon > law.mean:
            # No tilt bounds δ, which one step's large loss makes.
            moments = log_one_large(law, epsilon)
        tilt = 0.0
        if self.tilted and law.domain[1] > 0:
            saddle = saddle_point(law, epsilon, Strip.RIGHT, settled=0.1)
            if saddle is None:
                tilt = far_tilt(law, Strip.RIGHT)
            else:
                farthest = 0.9 * min(law.domain[1], 1e3)
                tilt = min(2.0 ** (round(8.0 * math.log2(saddle.tilt)) / 8.0), farthest)
                moments = saddle.log_leading
            moments -= law.cgf(tilt) - tilt * epsilon + float(log_payoff(tilt))
        if self.delta_error is not None:
            return tilt, math.log(self.delta_error)
        moments = min(max(moments, _LEAST_SHARE), 0.0)
        share = _LOG_ROUND * math.floor((moments + _MISSED) / _LOG_ROUND)
        return tilt, min(max(share, _LEAST_SHARE), _LARGEST_SHARE)


def log_one_large(law: SumLaw, epsilon: float) -> float:
    """Return about log δ(ε) where one step's large loss makes it and the others are usual."""
    found = -math.inf
    for part, count in law.parts:
        rest = epsilon - (law.mean - part.base.mean)
        if not part.domain[1] > 0 and part.loss_bounds[0] < rest:
            found = max(found, math.log(count) + log_single(part, rest))
    return found


def _bounds(law: SumLaw, epsilon: float, mesh: Mesh) -> tuple[float, float, float]:
    """Return log lower, log upper, and log of the rounding floor, of δ."""
    tilt, distance = mesh.tilt, mesh.distance
    largest = math.exp(float(log_payoff(tilt)))
    missed = math.exp(mesh.share) * largest
    moved = math.exp(min(tilt * distance, 300.0))
    floor = mesh.total.floor * largest
    above = mesh.total.payoff(epsilon, tilt, -distance) * moved
    below = mesh.total.payoff(epsilon, tilt, distance) / moved
    kept, jump = math.exp(mesh.log_kept), mesh.above if tilt == 0.0 else 0.0
    upper = kept * (max(above, 0.0) + missed + floor * moved * moved) + mesh.below * largest
    upper = min(upper + jump, largest)
    lower = kept * (below - missed - floor)
    lower = max(lower, 0.0) + (mesh.jump(epsilon) if tilt == 0.0 else 0.0)
    terms = (law.cgf(tilt), -tilt * epsilon)
    scale, slack = sum(terms), SLACK * (1.0 + abs(terms[0]) + abs(terms[1]))
    escaped = law.mass_at_infinity

    def logarithm(value: float, error: float) -> float:
        finite = math.log(value) + scale + error if value > 0 else -math.inf
        if escaped > 0:
            # The mass at infinity has been rounded too.
            finite = math.log(escaped + math.exp(min(finite, 0.0))) + error
        return min(finite, 0.0)

    return logarithm(lower, -slack), logarithm(upper, slack), scale + math.log(floor)
