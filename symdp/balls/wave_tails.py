"""The mass of waves under a power tail, (2 + cos x)/(1 + x²)² far out and its like, in balls.

**Waves as harmonics.**  Far out such a density is x^{−p} Φ(ωx, x), with Φ of period 2π in its first
argument, and Φ(φ, z) = Σ c_j(z) e^{ijφ}.  Let |Φ| ≤ H, and Φ be holomorphic, where |Im φ| ≤ a and
|z| ≥ X.  Then |c_j(z)| ≤ H e^{−a|j|}, and N = 2J + 1 places φ give c_j up to the c_{j + mN}.

**Each harmonic on its own path.**  For j ≥ 1 the integral from X to ∞ is turned to X + iy,

    ∫_X^∞ x^{−p} c_j(x) e^{ijωx} dx = i e^{ijωX} ∫_0^∞ (X + iy)^{−p} c_j(X + iy) e^{−jωy} dy,

as z^{−p} c_j vanishes at infinity (Jordan's lemma); c_{−j} gives the conjugate, and c_0 is
integrated in log x.  Harmonics above J, and what the N places confuse, each sum to at most
2H e^{−a(J+1)}/(1 − e^{−a}) times the integral of x^{−p}, or of that on the turned path.

**Φ and H.**  Every sum in the density is written as its fastest power times a function of z^{−b},
b > 0, which lie in discs of radius X^{−b}; balls over the discs and over 0 ≤ Re φ ≤ 2π tell the
rest.  Principal values do not meet their cuts then, however far z turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce

import sympy as sp
from flint import acb, arb, ctx

from symdp.density.records import DISTANCE
from symdp.emit.arb import UNKNOWN, compile_arb
from symdp.emit.enclose import between
from symdp.emit.exact import real_ball
from symdp.interrupt import Deadline
from symdp.model import tidy

_PHASE = sp.Symbol("phi", real=True)
_FARTHEST = 6  # times X is taken four times farther: waves between 0 and it are many then
_STRIPS = (64, 32, 16, 12, 8, 6, 4, 2, 1.25, 1, 0.5, 0.25)  # half heights a
_ORDERS = (1, 2, 4, 8, 12, 16, 24, 32, 64, 128, 256)  # J
_FEW = 12  # harmonics whose coefficients are found at every z
_MOST_CELLS = 400  # of a strip
_EVALUATIONS = 20_000  # of an integrand


def wave_tail(
    far: sp.Expr, begin: arb, tolerance: arb, deadline: Deadline
) -> tuple[arb, arb] | None:
    """Return a place X of `DISTANCE`, at `begin` or beyond, and ∫_X^∞; None for other tails."""
    terms = []
    for summand, frequency in _summands(far):
        term = _term(summand, frequency)
        if term is None:
            return None
        terms.append(term)
    share = tolerance / len(terms)
    cut = begin
    for _ in range(_FARTHEST):
        if all(term.is_quick(cut, share) for term in terms):
            break
        cut = (4 * cut).ceil()
    total = arb(0)
    for term in terms:
        total += term.tail(cut, share, deadline)
    if not total.is_finite():
        return None
    return cut, total


def _summands(far: sp.Expr) -> Iterator[tuple[sp.Expr, sp.Expr]]:
    """Yield summands and the frequency of the waves in each, NaN where they have several."""
    for summand in sp.Add.make_args(far):
        frequency = _common_frequency(summand)
        if frequency is not sp.nan:
            yield summand, frequency
            continue
        for term in sp.Add.make_args(tidy.bounded(sp.expand, summand)):
            yield term, _common_frequency(term)


def _common_frequency(far: sp.Expr) -> sp.Expr:
    """Return ω such that all waves are of frequency kω; 0 without any, NaN where there is none."""
    rates = []
    for wave in far.atoms(sp.cos, sp.sin):
        if DISTANCE in wave.free_symbols:
            rate = sp.diff(wave.args[0], DISTANCE)
            rates.append(abs(rate))
    if not rates:
        return sp.S.Zero
    ratios = [rate / rates[0] for rate in rates]
    if rates[0].free_symbols or not all(ratio.is_Rational for ratio in ratios):
        return sp.nan
    return rates[0] * sp.gcd_list(ratios)


class _Leading:
    """An expression as its fastest power of y times a function of waves and of y^{−b}, b > 0."""

    def __init__(self) -> None:
        self.symbols: dict[sp.Expr, sp.Symbol] = {}

    def of(self, node: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
        """Return the power and the function, NaN where there are none."""
        if DISTANCE not in node.free_symbols:
            return sp.S.Zero, node
        if node == DISTANCE:
            return sp.S.One, sp.S.One
        if node.is_Add:
            return self._of_sum(node)
        if node.is_Mul:
            factors = [self.of(factor) for factor in node.args]
            power = sp.Add(*(factor_power for factor_power, _ in factors))
            return power, sp.Mul(*(factor for _, factor in factors))
        if node.is_Pow and node.exp.is_real and not node.exp.free_symbols:
            power, base = self.of(node.base)
            return power * node.exp, base**node.exp
        if isinstance(node, sp.Function):
            arguments = [self._falling(*self.of(argument)) for argument in node.args]
            return sp.S.Zero, node.func(*arguments)
        return sp.nan, node

    def _of_sum(self, node: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
        summands = [self.of(summand) for summand in node.args]
        power = max((summand_power for summand_power, _ in summands), key=float)
        return power, sp.Add(*(self._falling(p - power, factor) for p, factor in summands))

    def _falling(self, power: sp.Expr, factor: sp.Expr) -> sp.Expr:
        if power == 0:
            return factor
        if not power.is_negative:
            return sp.nan
        number = len(self.symbols)
        symbol = self.symbols.setdefault(-power, sp.Symbol(f"d{number}", positive=True))
        return factor * symbol


class _Harmonics:
    """Harmonics up to J, from places φ, and a bound of Σ H e^{−a|j|} over the others.

    The places begin at ωX, so that coefficients are c_j e^{ijωX}: powers of e^{iωX} would wrap.
    """

    def __init__(self, order: int, others: arb, start: arb) -> None:
        self.order = order
        self.others = others
        count = 2 * order + 1
        angles = [2 * arb.pi() * index / count for index in range(count)]
        self.phases = [start + angle for angle in angles]
        self._turns = [acb(0, -angle).exp() / count for angle in angles]

    def coefficients(self, values: Sequence[acb]) -> list[acb]:
        """Return those of j = 0 … J of a function with these values at the places."""
        count = len(values)
        coefficients = []
        for j in range(self.order + 1):
            total = acb(0)
            for index, value in enumerate(values):
                total += value * self._turns[j * index % count]
            coefficients.append(total)
        return coefficients


def _term(far: sp.Expr, frequency: sp.Expr) -> _Term | None:
    """Return a summand in its form x^{−p} Φ(ωx, x), p > 1, None where it has none."""
    if frequency is sp.nan:
        return None
    waves = {}
    for wave in far.atoms(sp.cos, sp.sin):
        if DISTANCE in wave.free_symbols:
            (argument,) = wave.args
            start = argument.subs(DISTANCE, 0)
            multiple = sp.diff(argument, DISTANCE) / frequency
            waves[wave] = wave.func(start + multiple * _PHASE)
    leading = _Leading()
    power, function = leading.of(far.xreplace(waves))
    if function.has(sp.nan) or not float(power) < -1:
        return None
    return _Term(-power, frequency, function, leading.symbols)


class _Term:
    """x^{−p} Φ(ωx, x)."""

    def __init__(
        self,
        decay: sp.Expr,
        frequency: sp.Expr,
        function: sp.Expr,
        powers: dict[sp.Expr, sp.Symbol],
    ) -> None:
        self._decay = real_ball(decay)
        self._frequency = real_ball(frequency)
        self._exponents = [real_ball(exponent) for exponent in powers]
        symbols = list(powers.values())
        self._phi = compile_arb(function, [_PHASE, *symbols])
        waving, still = function.as_independent(*symbols, as_Add=False)
        self._waving = compile_arb(waving, [_PHASE])
        self._still = None
        if _PHASE not in still.free_symbols:
            self._still = compile_arb(still, symbols)

    def largest(self, strip: arb, cut: arb) -> arb | None:
        """Bound |Φ| where |Im φ| ≤ a and |z| ≥ X; None where it is not seen to be holomorphic."""
        discs = []
        for exponent in self._exponents:
            radius = (cut**-exponent).upper()
            discs.append(acb(arb(0, radius), arb(0, radius)))
        waiting = [(arb(0), 2 * arb.pi())]
        high = acb(0, arb(0, strip))
        bound = arb(0)
        for _ in range(_MOST_CELLS):
            if not waiting:
                return bound
            left, right = waiting.pop()
            across = between(left, right)
            value = self._phi(high + across, *discs, analytic=True)
            if value.is_finite():
                bound = bound.max(abs(value).upper())
                continue
            middle = ((left + right) / 2).mid()
            waiting += [(left, middle), (middle, right)]
        return None

    def is_quick(self, cut: arb, tolerance: arb) -> bool:
        """Return whether Φ is smooth from X on, with few harmonics unless they are fixed."""
        if self.largest(arb(0), cut) is None:
            return False
        return self._still is not None or self._harmonics(cut, tolerance).order <= _FEW

    def tail(self, cut: arb, tolerance: arb, deadline: Deadline) -> arb:
        """Enclose ∫_X^∞ x^{−p} Φ(ωx, x) dx."""
        bound = self.largest(arb(0), cut)
        if bound is None:
            return arb.nan()
        harmonics = self._harmonics(cut, tolerance)
        off = harmonics.others.upper()
        total = self._mean_mass(harmonics, cut, bound, tolerance, deadline) + between(-off, off)
        if harmonics.order:
            total += self._turned_mass(harmonics, cut, bound, tolerance, deadline)
        return total

    def _harmonics(self, cut: arb, small: arb) -> _Harmonics:
        """Return the fewest harmonics that leave out less than that, or the least of all."""
        if self._frequency == 0:
            return _Harmonics(0, arb(0), arb(0))
        straight = cut ** (1 - self._decay) / (self._decay - 1)
        turned = cut**-self._decay / self._frequency
        reach = straight + straight.max(turned)
        sizes = []
        for half_height in _STRIPS:
            strip = arb(half_height)
            bound = self.largest(strip, cut)
            if bound is not None:
                sizes.append((strip, 2 * bound * reach / (1 - (-strip).exp())))
        start = self._frequency * cut
        best = _Harmonics(0, arb.pos_inf(), start)
        if not sizes:
            return best
        for order in _ORDERS:
            bounds = [size * (-strip * (order + 1)).exp() for strip, size in sizes]
            others = reduce(arb.min, bounds).upper()
            if others < best.others:
                best = _Harmonics(order, others, start)
            if others < small:
                break
        return best

    def _coefficients(self, harmonics: _Harmonics) -> Callable[[acb, bool], list[acb]]:
        """Return a function for c_j(z) e^{ijωX}, j = 0 … J."""
        still = self._still
        fixed: list[acb] = []
        if still is not None:
            values = [acb(self._waving(phase)) for phase in harmonics.phases]
            fixed = harmonics.coefficients(values)

        def coefficients(z: acb, analytic: bool) -> list[acb]:
            log = z.log(analytic=analytic)
            powers = [(-exponent * log).exp() for exponent in self._exponents]
            if still is not None:
                factor = acb(still(*powers, analytic=analytic))
                return [factor * coefficient for coefficient in fixed]
            values = [self._phi(phase, *powers, analytic=analytic) for phase in harmonics.phases]
            return harmonics.coefficients(values)

        return coefficients

    def _mean_mass(
        self, harmonics: _Harmonics, cut: arb, bound: arb, tolerance: arb, deadline: Deadline
    ) -> arb:
        """Enclose the integral of x^{−p} c₀(x), in s = log x."""
        excess = self._decay - 1
        end = (bound / (tolerance * excess)).log() / excess
        end = end.max(cut.log() + 1)
        beyond = (bound * (-excess * end).exp() / excess).upper()
        coefficients = self._coefficients(harmonics)

        def values(s: acb, analytic: bool) -> acb:
            if deadline.is_past:
                return UNKNOWN
            mean = coefficients(s.exp(), analytic)[0]
            return mean * (-excess * s).exp()

        inside = _integral(values, cut.log(), end, tolerance, deadline)
        return inside.real + between(-beyond, beyond)

    def _turned_mass(
        self, harmonics: _Harmonics, cut: arb, bound: arb, tolerance: arb, deadline: Deadline
    ) -> arb:
        """Enclose the sum of the other harmonics, on X + iy."""
        frequency = self._frequency
        size = bound * cut**-self._decay / frequency
        end = (2 * harmonics.order * size / tolerance).log() / frequency
        end = end.max(1 / frequency)
        # Σ_j e^{−jωY}/j, for j = ±1 … ±J
        beyond = (2 * size * harmonics.order * (-frequency * end).exp()).upper()
        coefficients = self._coefficients(harmonics)
        i = acb(0, 1)

        def values(y: acb, analytic: bool) -> acb:
            if deadline.is_past:
                return UNKNOWN
            z = cut + i * y
            falling = (-frequency * y).exp()
            total = acb(0)
            for coefficient in reversed(coefficients(z, analytic)[1:]):
                total = falling * (coefficient + total)
            return total * (-self._decay * z.log(analytic=analytic)).exp() * i

        inside = _integral(values, arb(0), end, tolerance, deadline)
        return 2 * inside.real + between(-beyond, beyond)


def _integral(
    values: Callable[[acb, bool], acb], low: arb, high: arb, tolerance: arb, deadline: Deadline
) -> acb:
    ball = acb.integral(
        values,
        acb(low),
        acb(high),
        abs_tol=tolerance,
        rel_tol=arb(2) ** (4 - ctx.prec),
        eval_limit=_EVALUATIONS,
    )
    deadline.check()
    return ball
