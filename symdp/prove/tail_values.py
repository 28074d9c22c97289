"""Values of tail constants in ball arithmetic.

`derive` gives a tail constant its formula and says what kind of bound it is; here the bound is
evaluated, for concrete parameters and exact numbers.  A value is a ball around the constant, or,
where the constant is a supremum, a number that is proved to be an upper bound of it.

**Sub-Gaussian on an interval.**  With L the loss under P or Q, log E e^{u(L − EL)} is convex in u:
on [a, b] it lies below its chord α + βu with α ≤ 0, so that twice it over u² is at most β²/(−2α).
On [0, u₁] it is at most u²/2 times the larger of the variance and E(L − EL)²e^{u₁(L − EL)}, which
is convex in u₁ and bounds the second derivative.

**V_k, by integration by parts.**  With u = log P + tℓ − K(t) and D = (1/ℓ′)d/dx the tilted density
of the loss is f = e^u/|ℓ′|, and k integrations by parts give, as in [SPA (48)] where D^j f
vanishes at the ends for j < k − 1,

    V_k = Σ_ends |D^{k−1} f| + ∫ |d/dx D^{k−1} f| dx,  D^j f = ±e^{u − (j+1)b} ρ_j,  b = log|ℓ′|,

ρ_0 = 1 and ρ_{j+1} = ρ_j′ + (u′ − (j+1)b′) ρ_j.  On panels log P and ℓ are polynomials but for a
proved error (see `falling`).  Cells on which ρ_k has one sign contribute the difference of their
ends; others their width times the largest slope, and are halved until they hardly matter.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy as sp
from flint import arb, arb_poly, arb_series, ctx

from symdp.emit.arb import constant_ball
from symdp.emit.exact import real_ball
from symdp.errors import AccuracyError, InputError, suggestion
from symdp.numeric.saddle_point import Probe, increasing_root
from symdp.numeric.total import SumLaw
from symdp.prove.falling import Falling, Model, local_derivatives, panel_model
from symdp.prove.kind import Kind, Stretch, kind_of
from symdp.prove.measure import Asked, up
from symdp.prove.tilted_loss import LOG2, TiltedLoss, covered, log_moment, tilted_loss
from symdp.tolerances import BITS
from symdp.turns import in_turn

if TYPE_CHECKING:
    from symdp.derive.tails.records import TailConstant
    from symdp.model.pair import Pair

_REACH = 40  # the constants hold for |y| up to 2 to this power
_SPARE = 30  # bits of the mass beyond panels, relative to that
_MOST_CELLS = 6000  # of a sum of variations: about a second
_SLACK = 2.0**-11  # of a variation that need not be resolved
_NEGLIGIBLE = 2.0**-30  # an edge's part in a bound, relative
_BITS = 60  # of the mass that the bound at one frequency leaves out
_POINTS = 64  # of the polynomials on a panel
_MOST_PANELS = 4000  # of a stretch
_HALVINGS = 12  # of a panel next to a place where ℓ turns
_GENTLE = 4  # of the slopes at the ends of a panel
_MORE = 6  # terms of a series on a cell
# Why there is no constant.
_DISCRETE = "the loss is discrete: its characteristic function does not decay"
# Why there is none with the loss turning at a place.
_TURNS = (
    "the loss turns at {}, where its density is infinite: no constant bounds |φ| times |y|; ask "
    "for the split bound at one frequency"
)


@lru_cache(maxsize=64)
def _variation_constant(kind: Kind, order: int, tilt: sp.Rational) -> arb:
    """Return V_k for 0 < |y| ≤ 2⁴⁰."""
    if order < 1:
        raise InputError(f"the order must be 1 or more, not {order}")
    if kind.is_discrete:
        raise AccuracyError(_DISCRETE)
    scale = arb(0)
    if order > 1:
        scale = _variation_constant(kind, 1, tilt)
    bits = _REACH * order + _SPARE
    with ctx.workprec(2 * bits + 3 * _POINTS):  # whose powers cancel
        moment = Asked(real_ball(tilt), log_moment(kind, tilt), -bits * LOG2)
        panels, (beyond,) = covered(kind, [moment], bits)
        log_total = TiltedLoss(kind, tilt, tilt).cgf(tilt)
        total = (moment.scale - log_total).exp()
        rows = []
        edges = [arb(0)] * order
        for stretch_panels in panels:
            stretch = kind.stretches[stretch_panels.stretch]
            if not stretch.has_density:
                continue
            row = _panel_models(stretch, stretch_panels.edges, order)
            rows.append(row)
            first_end = (row[0], -1.0)
            last_end = (row[-1], 1.0)
            for model, u in (first_end, last_end):
                series = _local_series(moment, model, u, 1.0, order - 1)
                assert series is not None  # ℓ is steep at the ends of panels
                sizes = [(abs(value) * total).upper() for value in series.derivatives()]
                edges = [edge + size for edge, size in zip(edges, sizes, strict=True)]
        for j, edge in enumerate(edges[:-1]):
            if not edge < arb(_NEGLIGIBLE) * scale ** (j + 1):
                raise AccuracyError(
                    f"the loss's density, differentiated {j} times, does not vanish at an end "
                    f"of a monotone piece: boundary terms remain, and V_{order} does not exist"
                )
        reach = arb(2) ** _REACH
        variation = beyond * reach**order
        for row in rows:
            variation = variation + _variation_on_panels(moment, row, order)
        at_ends = arb(0)
        for j, edge in enumerate(edges):
            at_ends += edge * reach ** (order - 1 - j)
        return arb((variation * total + at_ends).upper())


def _split_bound(kind: Kind, tilt: sp.Rational, frequency: sp.Rational) -> arb:
    """Return a bound of |φ_t(y) − atoms| at one y > 0 that holds where the loss turns, too."""
    if kind.is_discrete:
        raise AccuracyError(_DISCRETE)
    loss = TiltedLoss(kind, tilt, tilt)
    moment = loss.asked[0]
    total = loss.smooth_part(tilt) * (-arb(moment.scale)).exp()
    falling = Falling(
        kind,
        loss.panels,
        moment.tilt,
        moment.scale,
        total=total,
        atoms=arb(0),
        share=2.0**-_BITS,
        orders=3,
    )
    just_below = math.nextafter(float(frequency), 0.0)
    bound = arb(falling.at(just_below)) + loss.tails[0]
    bound *= (moment.scale - loss.cgf(tilt)).exp()
    with suppress(AccuracyError):
        bound = bound.min(_variation_constant(kind, 1, tilt) / real_ball(frequency))
    return arb(bound.upper())


def _panel_models(stretch: Stretch, edges: Sequence[float], order: int) -> list[Model]:
    """Return log P and ℓ on panels in a row, halved until ℓ is about as steep everywhere.

    At an end of the stretch where it is not steep at all the loss turns.
    """
    places = [stretch.place(edge) for edge in edges]
    panels = [(left, right, 0) for left, right in itertools.pairwise(places)]
    waiting = panels[::-1]
    ends = [str(end) for end in stretch.ends() if end is not None]
    models = list[Model]()
    while waiting:
        left, right, halvings = waiting.pop()
        middle = ((left + right) / 2).mid()
        is_last = halvings >= _HALVINGS
        model = panel_model(stretch, left, right, _POINTS, order + _MORE + 2)
        if model is not None:
            if is_last and _may_turn(model):
                raise AccuracyError(_TURNS.format(middle.str(6, radius=False)))
            if is_last or _is_gentle(model):
                models.append(model)
                continue
        if halvings > 3 * _HALVINGS or len(models) > _MOST_PANELS:
            raise AccuracyError("the loss's density is not resolved by panels of its variable")
        if model is not None and halvings:
            for slope, end in zip(_end_slopes(model), (left, right), strict=True):
                if slope == 0 and str(end) in ends:
                    raise AccuracyError(_TURNS.format(end.str(6, radius=False)))
        right_half = (middle, right, halvings + 1)
        left_half = (left, middle, halvings + 1)
        waiting += [right_half, left_half]
    return models


def _is_gentle(model: Model) -> bool:
    """Whether ℓ is known to be about as steep at one end of a panel as at the other."""
    first, last = _end_slopes(model)
    return bool(first < _GENTLE * last and last < _GENTLE * first)


def _may_turn(model: Model) -> bool:
    """Whether ℓ rises at one end of a panel and falls at the other."""
    if 0 in _end_slopes(model):
        return True
    slope = model.loss.derivative()
    return bool(slope(arb(-1)) * slope(arb(1)) < 0)


def _end_slopes(model: Model) -> list[arb]:
    """Return |ℓ′| at both ends of a panel, 0 where hardly more is known of it."""
    slope = model.loss.derivative()
    error = arb(float(model.errors[1][1]))
    sizes = []
    for u in (-1, 1):
        size = abs(slope(arb(u)))
        is_known = size * arb(_SLACK) ** 2 > error
        if not is_known:
            size = arb(0)
        sizes.append(size)
    return sizes


class _LocalSeries(NamedTuple):
    """Series of u, of b = log|ℓ′| and of ρ_0, …, ρ_k around a place, or on a cell around it."""

    exponent: arb_series
    rise: arb_series
    factors: list[arb_series]

    def derivatives(self) -> list[arb]:
        """Return f, Df, …, D^k f up to their signs."""
        height = self.exponent[0]
        log_slope = self.rise[0]
        derivatives = []
        for j, factor in enumerate(self.factors):
            size = (height - (j + 1) * log_slope).exp()
            derivatives.append(size * factor[0])
        return derivatives


def _local_series(
    moment: Asked,
    model: Model,
    centre: float,
    half: float,
    order: int,
    more: int = 0,
    *,
    around: bool = False,
) -> _LocalSeries | None:
    """Return the series at a place of a panel, or over the cell so far around it; ρ_k has more.

    None where ℓ′ may be 0.
    """
    at = arb_poly([centre, half])
    count = order + more + 1
    pair = []
    log_p_errors, loss_errors = model.errors
    for shape, errors in ((model.log_p, log_p_errors), (model.loss, loss_errors)):
        moved = shape(at)
        if around:
            derivatives, _ = local_derivatives(moved, errors, half, count)
        else:
            zeros = [arb(0)] * (count + 1)
            coefficients = [*moved.coeffs(), *zeros]
            radii = [float(errors[k]) * half**k for k in range(count + 1)]
            derivatives = []
            for coefficient, radius in zip(coefficients, radii, strict=False):
                derivatives.append(coefficient + arb(0, radius))
        pair.append(derivatives)
    log_p, loss = pair
    if not abs(loss[1]) > 0:
        return None
    total = [p + moment.tilt * x for p, x in zip(log_p, loss, strict=True)]
    log_width = (half * model.half).log()
    total[0] += moment.tilt * model.middle - moment.scale + log_width
    sign = 1 if loss[1] > 0 else -1
    slopes = [sign * (k + 1) * c for k, c in enumerate(loss[1:])]
    exponent = arb_series(total, prec=count)
    rise = arb_series(slopes, prec=count).log()
    factors = [arb_series([1], prec=count)]
    for j in range(1, order + 1):
        factor = factors[-1]
        rate = exponent.derivative() - j * rise.derivative()
        factors.append(factor.derivative() + rate * factor)
    return _LocalSeries(exponent, rise, factors)


def _variation_on_panels(moment: Asked, row: Sequence[Model], order: int) -> arb:
    """Bound ∫ |d/dx D^{k−1} f| dx over panels."""
    settled = arb(0)
    number = itertools.count()
    heap: list[tuple[float, int, Model, float, float]] = []
    waiting = [(model, 0.0, 1.0) for model in row]
    open_total = 0.0
    for cells in range(_MOST_CELLS + len(row)):
        if cells % 64 == 0 or open_total <= _SLACK * float(settled):
            open_total = -sum(entry[0] for entry in heap)  # ∞ − ∞ and roundings
        if not waiting:
            if open_total <= _SLACK * float(settled):
                break
            size, _, model, centre, half = heapq.heappop(heap)
            open_total += size
            finer = half / 2
            waiting = [(model, centre + side * finer, finer) for side in (1, -1)]
        model, centre, half = waiting.pop()
        bound, variation = _variation_on_cell(moment, model, centre, half, order)
        if variation is not None:
            settled += variation
        else:
            heapq.heappush(heap, (-bound, next(number), model, centre, half))
            open_total += bound
    open_bound = -sum(entry[0] for entry in heap)
    if waiting or not math.isfinite(open_bound):
        raise AccuracyError("the variation of the loss's density was not bounded in time")
    with_open = settled + open_bound * (1 + 2.0**-40)
    return arb(with_open.upper())


def _variation_on_cell(
    moment: Asked, model: Model, centre: float, half: float, order: int
) -> tuple[float, arb | None]:
    """Return a bound of the variation over a cell, and the variation where that is known."""
    around = _local_series(moment, model, centre, half, order, _MORE, around=True)
    middle = _local_series(moment, model, centre, half, order, _MORE)
    if around is None or middle is None:
        return math.inf, None
    factor = _on_cell(middle.factors[-1], around.factors[-1])
    if not factor.contains(0):
        values = []
        for side in (-1, 1):
            end = _local_series(moment, model, centre + side * half, half, order - 1)
            assert end is not None
            values.append(end.derivatives()[-1])
        first, last = values
        return 0.0, abs(last - first)
    middle_height = middle.exponent - order * middle.rise
    height = around.exponent - order * around.rise
    bound = 2 * _on_cell(middle_height, height).exp() * abs(factor)
    return up(bound), None


def _on_cell(middle: arb_series, around: arb_series) -> arb:
    """Enclose a function on a cell by its series at the middle, the last term over all of it."""
    total = middle[0]
    for k in range(1, _MORE):
        total = total + middle[k] * arb(0, 1)
    return total + around[_MORE] * arb(0, 1)


_GRID_BITS = 12  # of an irrational end of an interval of tilts, rounded outwards
# Of neighbouring places of a grid: a constant then is within a fourth of the best.
_GRID_RATIO = sp.Rational(5, 4)
_SMALLEST_SHARE = 24  # the grid of tilts begins at this part of its end
_FARTHEST_TILT = 2.0**12  # beyond the largest loss the best tilt is infinite
_FINE = 48  # bits of the best tilt
_MOST_ABOVE = 20.0  # e-folds of K at the ends of a range above its tangent at a tilt
_PAD = sp.Rational(1, 8)  # of a range of tilts beyond what is asked, so that moments have room


@in_turn
def tail_value(constant: TailConstant, **values: Any) -> arb:
    """Return a ball around a tail constant, see `TailConstant.value`."""
    request = _Request.read(constant, values)
    return _KINDS[constant.rule.kind](request)


@dataclass(frozen=True)
class _Request:
    """What one evaluation asks for: a concrete pair and exact numbers."""

    constant: TailConstant
    pair: Pair
    domain: tuple[sp.Expr, sp.Expr]
    numbers: Mapping[str, sp.Rational]
    substitution: Mapping[sp.Symbol, sp.Expr]

    @classmethod
    def read(cls, constant: TailConstant, values: Mapping[str, Any]) -> _Request:
        """Check names and numbers."""
        from symdp.model.mechanism import exact

        derivation = constant.derivation
        parameters = derivation.mechanism.parameters
        arguments = {name: value for name, value in values.items() if name in constant.arguments}
        parameter_values = {
            name: value for name, value in values.items() if name not in constant.arguments
        }
        missing = [name for name in constant.arguments if name not in arguments]
        if missing:
            raise InputError(f"{constant.name} needs {' and '.join(missing)}; give a number")
        for name in parameter_values:
            if name in parameters:
                continue
            names = [*constant.arguments, *parameters]
            hint = suggestion(name, names)
            if not hint and names:
                hint = f"; known: {names}"
            raise InputError(
                f"'{name}' is neither an argument of {constant.name} nor a free parameter{hint}"
            )
        mechanism = derivation.mechanism(**parameter_values).require_concrete()
        numbers = {name: exact(value, name) for name, value in arguments.items()}
        for name, number in numbers.items():
            if not number.is_Rational:
                raise InputError(f"{name} must be a number or a ratio, not {values[name]!r}")
        count = numbers.get("n", sp.S.One)
        if not (count.is_Integer and count > 0):
            raise InputError(f"n must be a whole number, 1 or more, not {count}")
        bound = {parameters[name]: mechanism.values[name] for name in parameter_values}
        pair = mechanism.pair(derivation.direction)
        low, high = derivation.cgf.domain or map(sp.Float, kind_of(pair).law.domain)
        domain = (low.subs(bound), high.subs(bound))
        tilt = numbers.get("t")
        if tilt is not None and not (domain[0] < tilt) & (tilt < domain[1]):
            raise InputError(
                f"the tilt {tilt} lies outside ({domain[0]}, {domain[1]}), where the CGF is finite"
            )
        return cls(constant, pair, domain, numbers, bound)

    @property
    def count(self) -> int:
        return int(self.numbers["n"])

    def law(self, low: sp.Rational, high: sp.Rational) -> TiltedLoss:
        """Return the tilted loss between two tilts, and a little beyond them."""
        least, most = self.domain
        pad = (high - low) * _PAD or sp.Rational(1, 2)
        below = pad
        above = pad
        if least.is_finite:
            below = min(pad, _rounded_down(abs(least - low) / 2))
        if most.is_finite:
            above = min(pad, _rounded_down(abs(most - high) / 2))
        return tilted_loss(self.pair, low - below, high + above)

    def laws(self, low: sp.Rational, high: sp.Rational) -> Callable[[sp.Rational], TiltedLoss]:
        """Return what serves each tilt between two: one law, or where it errs too much its own."""
        kind = kind_of(self.pair)
        ends = [(float(end), log_moment(kind, end)) for end in (low, high)]

        def law_at(tilt: sp.Rational) -> TiltedLoss:
            t = float(tilt)
            log_at_tilt = log_moment(kind, tilt)
            cumulants = SumLaw([(kind.law, 1)]).cumulants(t, 1)
            slope = float(cumulants[0])
            rises = [height - log_at_tilt - (s - t) * slope for s, height in ends]
            above = max(rises)
            if above < _MOST_ABOVE:
                return self.law(low, high)
            return self.law(tilt, tilt)

        return law_at

    def reach(self, base: int, direction: int) -> sp.Expr:
        """How far tilts may go to one side of a base."""
        low, high = self.domain
        end = high if direction > 0 else low
        if end.is_infinite:
            return sp.oo
        return abs(end - base)

    def of_all(self, log_finite: arb) -> arb:
        """Add the probability of an infinite loss under P to a bound on the tail of finite ones."""
        infinite = self.constant.derivation.mass_at_infinity
        if self.constant.rule.under == "Q" or infinite == 0:
            return log_finite
        with ctx.workprec(BITS):
            log_finite_each = (-self.number(infinite)).log1p()
            lost = -(self.count * log_finite_each).expm1()
            bound = (lost + log_finite.exp()).min(arb(1))
            return bound.log().upper()

    def number(self, expression: sp.Expr) -> arb:
        """Enclose an expression in the parameters."""
        return constant_ball(expression.subs(self.substitution), BITS).real

    def known(self, formula: sp.Expr | None) -> sp.Expr:
        """Return a formula, or say why the constant has none."""
        if formula is None:
            raise AccuracyError(f"{self.constant.name} is not known here: {self.constant.reason}")
        return formula


def _rounded_down(value: sp.Expr) -> sp.Rational:
    """Return a rational that is no larger than a positive number, and hardly smaller."""
    if not value > 0:
        return sp.S.Zero
    units = sp.floor(value.evalf(20) * 2**60)
    return sp.Rational(units, 2**60)


def _tilt_of_law(under: str) -> sp.Integer:
    """The tilt of P or of Q: under Q the CGF of the loss is K(s − 1), where K is that under P."""
    return sp.S.Zero if under == "P" else sp.S.NegativeOne


def _value_of_formula(request: _Request) -> arb:
    value = request.known(request.constant.expression).subs(request.substitution)
    if value.is_infinite:
        raise AccuracyError(f"{request.constant.name} is infinite: {request.constant.bounds}")
    return request.number(value)


def _value_of_drift(request: _Request) -> arb:
    tilt = _tilt_of_law("Q")
    return -request.law(tilt, tilt).mean(tilt)


def _chernoff_bound(request: _Request) -> arb:
    """Bound log P(L₁ + … + L_n ≥ ε) by min over s ≥ 0 of nK(s) − sε [SPA (40)].

    Every s gives a valid bound, so only the value at the chosen one is proved.
    """
    base = _tilt_of_law(request.constant.rule.under)
    epsilon = request.numbers["epsilon"]
    kind = kind_of(request.pair)
    level = float(epsilon) / request.count
    reach = request.reach(int(base), 1)
    s = _best_tilt(SumLaw([(kind.law, 1)]), int(base), level, reach)
    tilt = base + s
    with ctx.workprec(BITS):
        log_moment = TiltedLoss(kind, tilt, tilt).cgf(tilt)
        bound = request.count * log_moment - real_ball(s * epsilon)
        return request.of_all(arb(bound.upper()))


def _best_tilt(law: SumLaw, base: int, level: float, reach: sp.Expr) -> sp.Rational:
    """Return nearly the s ≥ 0 with tilted mean `level`."""

    def probe(s: float) -> Probe:
        mean, variance = law.cumulants(base + s, 2).tolist()
        step = math.inf
        if variance > 0:
            step = (mean - level) / variance
        tolerance = 2.0**-24 * math.sqrt(variance)
        return Probe(mean - level, tolerance, s - step)

    if reach == 0:
        return sp.S.Zero
    if law.cumulants(float(base), 1)[0] >= level:
        return sp.S.Zero
    end = min(float(reach), _FARTHEST_TILT)
    s = increasing_root(probe, end, min(0.5, end / 2))
    if not s:
        s = end * (1 - 2.0**-10)
        if end < reach:
            s = end
    return _short_rational(s, _FINE)


def _short_rational(value: float, bits: int = _GRID_BITS) -> sp.Rational:
    """Return a rational of few digits near a number, never 0 for a positive one."""
    _, exponent = math.frexp(value)
    scale = 2 ** max(bits - exponent, 0)
    return sp.Rational(round(value * scale), scale)


def _quadratic_bound(request: _Request) -> arb:
    """Bound by −(ε − n·mean)²/(2ns²), as of a sub-Gaussian sum; 0 below the mean.

    With s² = τ²/4 this is Hoeffding's bound, as in [EA Prop 4.5].  From s² under Q,
    K_P(s − 1) = K_Q(s) ≤ s·m + s²u²/2 makes P(ΣL ≥ ε) ≤ exp(n(um + u²s²/2) − (u − 1)ε) for every
    u ≥ 1; the best is u = (ε − nm)/(ns²), m the mean under Q.
    """
    rule = request.constant.rule
    count = request.count
    request.known(request.constant.expression)
    square = request.number(request.known(rule.formula))
    base = _tilt_of_law(rule.known)
    level = real_ball(request.numbers["epsilon"])
    law = request.law(base, base)
    with ctx.workprec(BITS):
        mean = law.mean(base)
        log_mass = law.cgf(base)  # of the finite loss
        excess = level - count * mean
        if rule.known == rule.under:
            bound = count * log_mass
            if excess > 0:
                bound -= excess**2 / (2 * count * square)
            return request.of_all(bound.upper())
        law_under_q = request.law(base + 1, base + 1)
        certain = count * law_under_q.cgf(base + 1)
        u = (excess / (count * square)).mid()
        if u > 1:
            log_moment = u * mean + u**2 * square / 2 + log_mass
            exponent = count * log_moment - (u - 1) * level
            certain = exponent.min(certain)
        return request.of_all(certain.upper())


def _sub_gaussian_within(request: _Request) -> arb:
    return _sub_gaussian(request, request.numbers["low"], request.numbers["high"])


def _sub_exponential(request: _Request) -> arb:
    rate = request.known(request.constant.rule.formula).subs(request.substitution)
    end = 1 / rate
    if not end.is_Rational:
        # An irrational end is rounded outwards, so that the constant holds up to the very end.
        units = sp.floor(end.evalf(20) * 2**_GRID_BITS) + 1
        end = sp.Rational(units, 2**_GRID_BITS)
    return _sub_gaussian(request, -end, end)


def _sub_gaussian(request: _Request, low: sp.Rational, high: sp.Rational) -> arb:
    """Return s² with log E e^{u(L − EL)} ≤ s²u²/2 for all u in [low, high], proved."""
    base = _tilt_of_law(request.constant.rule.under)
    if not low <= 0 <= high or low == high:
        raise InputError(f"the interval of tilts must hold 0 and be no point, not [{low}, {high}]")
    below = request.reach(int(base), -1)
    above = request.reach(int(base), 1)
    if high >= above or -low >= below:
        raise InputError(
            f"the interval [{low}, {high}] leaves the domain of the CGF, ({-below}, {above})"
        )
    law_at = request.laws(base + low, base + high)
    with ctx.workprec(BITS):
        square = law_at(base).variance(base).upper()
        for end in (low, high):
            if end != 0:
                square = square.max(_one_side(law_at, base, end))
        return square.upper()


def _one_side(
    law_at: Callable[[sp.Rational], TiltedLoss], base: sp.Integer, end: sp.Rational
) -> arb:
    mean = law_at(base).mean(base)
    log_mass = law_at(base).cgf(base)
    side = sp.sign(end)
    grid = [side * _short_rational(float(abs(end)) / _SMALLEST_SHARE)]
    while abs(grid[-1]) * _GRID_RATIO < abs(end):
        farther = float(abs(grid[-1]) * _GRID_RATIO)
        grid.append(side * _short_rational(farther))
    grid.append(end)
    values = [law_at(base + u).cgf(base + u) - log_mass - real_ball(u) * mean for u in grid]
    first = base + grid[0]
    second_moment = law_at(first).square_about(first, mean)
    square = (second_moment * values[0].exp()).upper()
    distances = [abs(real_ball(u)) for u in grid]
    bounds = [value.upper() for value in values]
    for k in range(len(grid) - 1):
        chord = _bound_by_chord(distances[k], distances[k + 1], bounds[k], bounds[k + 1])
        square = square.max(chord)
    return arb(square)


def _bound_by_chord(a: arb, b: arb, at_a: arb, at_b: arb) -> arb:
    """Bound 2(α + βu)/u² over [a, b] for the chord through two points."""
    beta = (at_b - at_a) / (b - a)
    alpha = at_a - beta * a
    ends = (2 * at_a / a**2).max(2 * at_b / b**2)
    if not alpha < 0:
        # Only roundings can make the chord of a convex function through 0 meet the axis above 0.
        return (2 * at_b.max(at_a) / a**2).upper()
    turn = b + 1
    if beta > 0:
        turn = -2 * alpha / beta
    if turn < a or turn > b:
        return ends.upper()
    at_turn = beta**2 / (-2 * alpha)
    return at_turn.max(ends).upper()


def _third_moment(request: _Request) -> arb:
    if request.constant.expression == 0:
        return arb(0)
    tilt = request.numbers["t"]
    return request.law(tilt, tilt).third(tilt)


def _berry_esseen(request: _Request) -> arb:
    """Enclose P_t/K″(t)^{3/2}, the ratio of [SPA Thm 5]."""
    if request.constant.expression == 0:
        return arb(0)
    tilt = request.numbers["t"]
    law = request.law(tilt, tilt)
    with ctx.workprec(BITS):
        variance = law.variance(tilt)
        if not variance > 0:
            raise AccuracyError("the loss is constant: its Berry-Esseen ratio does not exist")
        return law.third(tilt) / (variance * variance.sqrt())


def _van_der_corput(request: _Request) -> arb:
    if request.constant.expression == 0:
        return arb(0)
    order = request.constant.rule.order
    return _variation_constant(kind_of(request.pair), order, request.numbers["t"])


def _value_of_split(request: _Request) -> arb:
    frequency = request.numbers["frequency"]
    if not frequency > 0:
        raise InputError(f"frequency must be positive, not {frequency}")
    return _split_bound(kind_of(request.pair), request.numbers["t"], frequency)


# How each kind of bound is evaluated.
_KINDS: dict[str, Callable[[_Request], arb]] = {
    "formula": _value_of_formula,
    "end": _value_of_formula,
    "drift": _value_of_drift,
    "chernoff": _chernoff_bound,
    "quadratic": _quadratic_bound,
    "sub-gaussian within": _sub_gaussian_within,
    "sub-exponential": _sub_exponential,
    "third moment": _third_moment,
    "berry-esseen": _berry_esseen,
    "van der corput": _van_der_corput,
    "split": _value_of_split,
}
