"""Emit a SymPy expression as a function over Arb balls that encloses every value."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self

from flint import acb, arb, ctx, fmpq

from symdp.emit.enclose import between, enclose_integral, enclose_sum
from symdp.emit.steps import Program
from symdp.errors import AccuracyError, InputError

if TYPE_CHECKING:
    import sympy as sp

_NARROW = 4  # bits of a ball whose powers are hardly wider than they must be
UNKNOWN = acb(arb.nan(), arb.nan())

_WIDE = 0.5  # the radius of a real exponent from which on its ends say more
_MOST_BITS = 20_000


def log_erf_difference_ball(_detail: object, analytic: bool, middle: acb, half: acb) -> acb:
    """Enclose log(erf(m + h) − erf(m − h)), from the side on which erfc is small."""
    side = -middle if middle.real < 0 else middle
    return acb(((side - half).erfc() - (side + half).erfc()).log(analytic=analytic))


_FAR_OUT = 1024  # z beyond which nine terms of the series of log erfc z suffice


def log_erfc_ball(_detail: object, analytic: bool, z: acb) -> acb:
    """Enclose log erfc z: where that of a ball is not told, by its series at infinity.

    erfc z = e^{−z²}/(z√π) (1 − 1/2z² + 3/4z⁴ − …), off by the first term left out at most where
    |arg z| < π/4 [DLMF 7.12.1].
    """
    ball = acb(z.erfc().log(analytic=analytic))
    if ball.is_finite() or not (z.real > _FAR_OUT and abs(z.imag) < z.real):
        return ball
    term = acb(1)
    total = acb(0)
    for k in range(1, 10):
        total = total + term
        term = term * (1 - 2 * k) / (2 * z * z)
    off = arb(0, abs(term).upper())
    total += acb(off, 0 if z.imag == 0 else off)
    series = total.log() - z * z - z.log() - acb.pi().log() / 2
    if abs(series.imag) < arb.pi():  # of the principal branch alone
        return series
    return ball


def _comparison(
    decide: Callable[[arb], bool], refute: Callable[[arb], bool]
) -> Callable[..., bool | None]:
    """A comparison of real parts: true, false, or None where the balls leave it open."""

    def operation(_detail: object, _analytic: bool, left: Any, right: Any) -> bool | None:
        difference = (acb(left) - acb(right)).real
        if decide(difference):
            return True
        if refute(difference):
            return False
        return None

    return operation


def _all_of(_detail: object, _analytic: bool, *parts: bool | None) -> bool | None:
    """Whether all hold."""
    if False in parts:
        return False
    if None in parts:
        return None
    return True


def _any_of(_detail: object, _analytic: bool, *parts: bool | None) -> bool | None:
    """Whether one holds."""
    if True in parts:
        return True
    if None in parts:
        return None
    return False


def _piecewise(_detail: object, analytic: bool, *branches: Any) -> acb:
    """Follow the conditions; where a ball straddles a border, unite all branches it may take."""
    united: acb | None = None
    for value, condition in zip(branches[::2], branches[1::2], strict=True):
        if condition is False:
            continue
        united = acb(value) if united is None else united.union(acb(value))
        if condition is True:
            return united
        if analytic:
            return UNKNOWN
    return UNKNOWN


def _integer_power(exponent: int, _analytic: bool, base: acb) -> acb:
    """Return baseⁿ, the better of products and what the ends of a wide real ball say."""
    raised = base**exponent
    ends = _ends_of_interval(base)
    if ends is None or not raised.is_finite():
        return raised
    # Products of wide balls are wider than what they stand for.
    low, high = ends
    united = (low**exponent).union(high**exponent)
    if exponent % 2 or not base.contains(0):
        return united
    return united.union(acb(0))


def _principal_power(_detail: object, analytic: bool, base: acb, exponent: acb) -> acb:
    """Return baseᵉ on the principal branch."""
    is_real = exponent.imag.is_zero()
    if not analytic and base.contains(0) and is_real and exponent.real > 0:
        return _power_about_zero(base, exponent)
    raised = base.pow(exponent, analytic=analytic)
    ends = _ends_of_interval(base)
    if ends is None or not is_real:
        return raised
    if not (base.real > 0 and raised.is_finite()):
        return raised
    low, high = ends
    return low.pow(exponent).union(high.pow(exponent))


def _power_about_zero(base: acb, exponent: acb) -> acb:
    """Enclose zᵉ from |zᵉ| = |z|ᵉ where the ball holds 0, at which log z is not finite."""

    def size(of: arb) -> arb:
        return acb(of.upper()).pow(exponent).real.upper()

    largest = size(abs(base))
    if not base.imag.is_zero():
        return acb(arb(0, largest), arb(0, largest))
    below = size((-base.real).max(arb(0)))
    return acb(between(-below, largest), arb(0, below))


def _ends_of_interval(value: acb) -> tuple[acb, acb] | None:
    """Return the ends of a wide real interval, None for any other ball."""
    if value.rel_accuracy_bits() >= _NARROW or not value.imag.is_zero():
        return None
    return acb(value.real.lower()), acb(value.real.upper())


def _log_one_plus(_detail: object, analytic: bool, value: acb) -> acb:
    """Log(1 + u); no branch cut lies in |u| < 1/2."""
    if value.abs_upper() < 0.5:
        return value.log1p()
    return (1 + value).log(analytic=analytic)


def _log_sum_exp(_detail: object, analytic: bool, *arguments: acb) -> acb:
    """Log Σ c exp(a), continued from real a as a_r + log(c_r + Σ c exp(a − a_r)) with a largest r.

    That is one holomorphic function of all a, whatever r, where c_r exceeds the rest, and where
    the sum cannot vanish for the directions of its terms; no other place counts as analytic.
    """
    coefficients = arguments[::2]
    exponents = arguments[1::2]
    if not _is_wide(coefficients, exponents):
        return _around_largest(coefficients, exponents, analytic=analytic)
    # it rises with every exponent
    least = [acb(a.real.lower()) for a in exponents]
    most = [acb(a.real.upper()) for a in exponents]
    low = _around_largest(coefficients, least, analytic=analytic)
    high = _around_largest(coefficients, most, analytic=analytic)
    return low.union(high)


def _is_wide(coefficients: Sequence[acb], exponents: Sequence[acb]) -> bool:
    """Whether all are real, so much so that balls around exponentials may hold 0."""
    if not any(a.real.rad() > _WIDE for a in exponents):
        return False
    for exponent in exponents:
        if not exponent.imag.is_zero() or not exponent.is_finite():
            return False
    return all(c.imag.is_zero() and c.real > 0 for c in coefficients)


def _around_largest(
    coefficients: Sequence[acb], exponents: Sequence[acb], *, analytic: bool
) -> acb:
    largest = 0
    most = -math.inf
    for index, exponent in enumerate(exponents):
        size = float(exponent.real.mid()) + _log_size(coefficients[index])
        if size > most:
            largest = index
            most = size
    top = exponents[largest]
    front = coefficients[largest]
    turns = []
    terms = []
    total = front
    for index, exponent in enumerate(exponents):
        if index != largest:
            turn = exponent - top
            term = coefficients[index] * turn.exp()
            total = total + term
            turns.append(turn)
            terms.append(term)
    if analytic and not _is_single(front, coefficients, turns, terms, total):
        return UNKNOWN
    return top + total.log()


def _log_size(coefficient: acb) -> float:
    size = abs(float(coefficient.real.mid()))
    if size > 0:
        return math.log(size)
    return -math.inf


def _is_single(
    front: acb, coefficients: Sequence[acb], turns: list[acb], terms: list[acb], total: acb
) -> bool:
    """Whether one term exceeds the rest, or the directions of all let them not cancel."""
    size_of_others = sum((abs(term) for term in terms), arb(0))
    if size_of_others < front.real:
        return True
    sides = [turn.imag for turn in turns]
    lowest = min(arb(0), *(side.lower() for side in sides))
    highest = max(arb(0), *(side.upper() for side in sides))
    spread = highest - lowest
    if all(c.real > 0 for c in coefficients):
        return bool(spread < arb.pi())
    return bool(spread < arb.pi() / 2 and total.real > 0)


def _unit_log_sum_exp(_detail: object, analytic: bool, *arguments: acb) -> acb:
    """Log Σ c exp(a) where Σ c = 1: each a occurs once, and small a keep relative accuracy."""
    exponents = arguments[1::2]
    terms = zip(arguments[::2], exponents, strict=True)
    total = sum((c * a.expm1() for c, a in terms), acb(0))
    if total.abs_upper() < 0.5 and all(abs(a.imag) < 1 for a in exponents):
        return total.log1p()
    return _log_sum_exp(None, analytic, *arguments)


def _log_ratio(_detail: object, analytic: bool, difference: acb, a: acb, b: acb) -> acb:
    """Log(a/b) from a − b, a and b: one function of the ratio, cut where that is negative."""
    relative = difference / b
    if relative.abs_upper() < 0.5:
        return relative.log1p()
    return (a / b).log(analytic=analytic)


# Where these orders are, a function of a real x > 0 rises or falls.
_MONOTONE_ORDERS: dict[str, Callable[[Any], bool]] = {
    "bessel_i": lambda order: bool(order >= 0),
    "gamma_lower": lambda order: bool(order > 0),
    "gamma_upper": lambda order: True,
}


def _of_order(name: str, order: acb, value: acb) -> acb:
    """Enclose a function of an order at a place.

    Arb's series of a wide real ball take seconds at some widths and many bits: what such a ball
    tells is had from its ends where the function is monotone, and from few bits elsewhere.
    """
    is_wide_real = value.imag.is_zero() and value.rel_accuracy_bits() < _WIDE_BITS
    if not is_wide_real:
        return acb(getattr(value, name)(order))
    is_monotone = _MONOTONE_ORDERS.get(name)
    is_real = order.imag.is_zero() and value.real > 0
    if is_monotone is not None and is_real and is_monotone(order.real):
        first = getattr(acb(value.real.lower()), name)(order)
        last = getattr(acb(value.real.upper()), name)(order)
        return acb(first.real.union(last.real))
    with ctx.workprec(_FEW_BITS):
        return acb(getattr(value, name)(order))


def _bessel_k_ball(order: acb | fmpq, value: acb, *, scaled: bool = False) -> acb:
    """Enclose K_ν(z), or exp(z) K_ν(z).

    Arb's series loses about 3|z| bits at middling |z|, of the argument's own width too.  For
    Re z > 0 and an exact rational ν the midpoint is evaluated with as many bits more, and the
    width enters through |K_ν′(z)| ≤ (K_{|ν−1|}(Re z) + K_{ν+1}(Re z))/2, which follows from
    K_ν(z) = ∫₀^∞ exp(−z cosh t) cosh(νt) dt.
    """
    direct = acb(value.bessel_k(acb(order), scaled=scaled))
    left = arb(value.real.lower())
    wanted = min(value.rel_accuracy_bits(), ctx.prec) - 30
    if direct.rel_accuracy_bits() >= wanted or not isinstance(order, fmpq) or not left > 0:
        return direct
    middle = acb(value.real.mid(), value.imag.mid())
    bits_lost = 3 * float(middle.abs_upper())
    if bits_lost > _MOST_BITS:
        return direct
    centre = _bessel_k_at(order, middle)
    near = _bessel_k_at(abs(order - 1), acb(left)).real
    far = _bessel_k_at(order + 1, acb(left)).real
    slope = (near + far).upper() / 2
    width = value.real.rad() + value.imag.rad()
    reach = (slope * width).upper()
    around = arb(0, reach)
    enclosure = centre + acb(around, around)
    if scaled:
        return enclosure * value.exp()
    return +enclosure


def _bessel_k_at(order: fmpq, z: acb) -> acb:
    """Enclose K at an exact place, with more bits only where so many are lost."""
    ball = acb(z.bessel_k(acb(order)))
    if ball.rel_accuracy_bits() >= ctx.prec - 30:
        return ball
    with ctx.workprec(ctx.prec + int(3 * float(z.abs_upper())) + 16):
        return acb(z.bessel_k(acb(order)))


def log_bessel_i_ball(order: acb, value: acb) -> acb | None:
    """Enclose log I_ν(x) for a range of real ν ≥ 0 and a real x > 0, None for anything else.

    I falls as ν grows, and all terms of its series are positive:

        F(ν) ≤ log I_ν(x) ≤ F(ν) + x²/(4(ν + 1)),    F(ν) = ν log(x/2) − log Γ(ν + 1).
    """
    low = arb(order.real.lower())
    high = arb(order.real.upper())
    x = value.real
    are_real = order.imag.is_zero() and value.imag.is_zero()
    if not (are_real and low >= 0 and x > 0):
        return None
    log_half = (x / 2).log()
    at_low = low * log_half - (low + 1).lgamma()
    at_high = high * log_half - (high + 1).lgamma()
    top = at_low + x * x / (4 * (low + 1))
    bottom = arb(at_high.lower())
    return acb(bottom.union(arb(top.upper())))


def _on_cut_left_of(value: acb, edge: int) -> bool:
    """Return whether the ball may meet the real half-line left of `edge`."""
    return bool(value.imag.contains(0)) and not bool(value.real > edge)


def _asinh(_detail: object, analytic: bool, value: acb) -> acb:
    """Return asinh on a ball, where z + √(1 + z²) may vanish, as it may not for any one z."""
    turned = value * acb(0, 1)
    if analytic and (_on_cut_left_of(turned, -1) or _on_cut_left_of(-turned, -1)):
        return UNKNOWN
    if value.imag == 0:  # it rises, so that ends say all
        low = value.real.lower().asinh()
        high = value.real.upper().asinh()
        return acb(low.union(high))
    if value.real < 0:
        direct = -((-value).asinh())
    else:
        direct = value.asinh()
    inside = 1 + value * value
    if direct.is_finite() or not inside.real > 0:
        return direct
    middle = value.mid()
    return middle.asinh() + (value - middle) / inside.sqrt()


_Operation = Callable[..., Any]


class _Compiled:
    """Steps over balls, run at whatever precision flint then works."""

    def __init__(self, program: Program, bound: tuple[fmpq | arb, ...] = ()) -> None:
        _check_supported(program)
        self._program = program
        self._bound = bound
        self._free = len(program.symbols) - len(bound)
        first = len(program.symbols) + len(program.constants)
        moving = set(range(self._free))
        self._fixed = []
        self._moving = []
        for slot, step in enumerate(program.steps, first):
            instruction = (slot, OPERATIONS[step.operation], step.detail, _reader(step.operands))
            if moving.isdisjoint(step.operands):
                self._fixed.append(instruction)
            else:
                self._moving.append(instruction)
                moving.add(slot)
        self._known: dict[int, list[Any]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._program, self._bound)

    def in_doubles(self) -> tuple[Program, list[float]]:
        """Return the program and its constants as doubles: what evaluates the same there."""
        with ctx.workprec(_OF_DOUBLES):
            balls = [acb(constant(node)) for node in self._program.constants]
        numbers = [float(ball.real.mid()) for ball in balls]
        are_real = all(ball.imag.is_zero() for ball in balls)
        if not are_real or not all(map(math.isfinite, numbers)):
            raise InputError("a constant of the formula is no double")
        return self._program, numbers

    def at(self, values: Sequence[fmpq | arb]) -> Self:
        """Return the function with its last arguments bound; what they alone tell is kept."""
        return type(self)(self._program, tuple(values))

    def _slot_values(self, arguments: tuple[Any, ...], analytic: bool) -> list[Any]:
        """Return what is in every slot."""
        if len(arguments) != self._free:
            names = ", ".join(self._program.symbols[: self._free])
            raise TypeError(f"expected the arguments ({names}), got {len(arguments)}")
        slots: list[Any] | None = self._known.get(ctx.prec)
        if slots is None:
            slots = [None] * self._free
            slots += [acb(value) for value in self._bound]
            slots += [constant(node) for node in self._program.constants]
            slots += [None] * len(self._program.steps)
            for slot, operation, detail, operands in self._fixed:
                slots[slot] = operation(detail, False, *operands(slots))
            self._known[ctx.prec] = slots
        values = slots.copy()
        values[: self._free] = [acb(argument) for argument in arguments]
        for slot, operation, detail, operands in self._moving:
            values[slot] = operation(detail, analytic, *operands(values))
        return values


class ArbFunction(_Compiled):
    """A compiled expression."""

    def __call__(self, *arguments: Any, analytic: bool = False) -> Any:
        """Return a ball around the values over `arguments`.

        With `analytic=True` the result is finite only where the function is holomorphic on the
        whole of the balls, as `acb.integral` asks.  Real balls (arb) in, a real ball out.
        """
        return _of_kind(arguments, self._slot_values(arguments, analytic)[self._program.result])


class ArbFunctions(_Compiled):
    """Several compiled expressions."""

    def __call__(self, *arguments: Any, analytic: bool = False) -> tuple[Any, ...]:
        """Return balls around the values of each over `arguments`, as `ArbFunction` does of one."""
        values = self._slot_values(arguments, analytic)
        return tuple(_of_kind(arguments, values[slot]) for slot in self._program.results)


def _of_kind(arguments: tuple[Any, ...], value: Any) -> Any:
    """Return a value as a real ball where all arguments are."""
    result = acb(value)
    if any(isinstance(argument, acb) for argument in arguments):
        return result
    if result.imag.contains(0):
        return result.real
    return arb.nan()


def compile_arb(expression: sp.Expr, symbols: Sequence[sp.Symbol]) -> ArbFunction:
    """Compile an expression for ball arithmetic at `flint.ctx.prec`, exact rationals kept exact.

    Of complex arguments the value is complex, of real ones real. What is free of the symbols is
    evaluated once a precision. InputError for a function that has no ball form.

    >>> import sympy as sp
    >>> x = sp.Symbol("x", real=True)
    >>> f = compile_arb(sp.log(sp.Rational(9, 10) + sp.exp(x) / 10), [x])
    >>> f(arb(1))
    [0.158565078740429 +/- 1.42e-16]
    """
    from symdp.emit.program import compile_program

    return ArbFunction(compile_program(expression, symbols))


def compile_arb_together(
    expressions: Sequence[sp.Expr], symbols: Sequence[sp.Symbol]
) -> ArbFunctions:
    """Compile several expressions as `compile_arb` does one; what they share is evaluated once."""
    from symdp.emit.program import compile_programs

    return ArbFunctions(compile_programs(expressions, symbols))


def constant_ball(node: object, precision: int) -> acb:
    """Enclose a variable-free expression at `precision` bits."""
    import sympy as sp

    with ctx.workprec(precision):
        return acb(constant(sp.sympify(node, strict=True)))


def _reader(slots: tuple[int, ...]) -> Callable[[list[Any]], Any]:
    """Read some slots at once, always as a sequence."""
    if len(slots) > 1:
        return itemgetter(*slots)
    return itemgetter(slice(slots[0], slots[0] + 1) if slots else slice(0))


def constant(node: sp.Expr | Program) -> Any:
    """Return a ball around a variable-free expression, or its truth value."""
    if not isinstance(node, Program):
        from symdp.emit.program import compile_constant

        return constant(compile_constant(node))
    _check_supported(node)
    values: list[Any] = []
    for step in node.steps:
        operands = [values[slot] for slot in step.operands]
        values.append(OPERATIONS[step.operation](step.detail, False, *operands))
    return values[node.result]


def _check_supported(program: Program) -> None:
    for step in program.steps:
        if step.operation not in OPERATIONS:
            raise InputError(
                f"the operation '{step.operation}' has no ball form; "
                "write the expression without it to have proved results"
            )


_OF_DOUBLES = 136  # bits of a constant before it is rounded once
_WIDE_BITS = 24  # relative, below which a ball of a real argument is wide
_FEW_BITS = 64  # that do for a wide ball
_WIDE_GAMMA = 0.125  # a radius from which on balls of log Γ are several times too wide

# Operations take (detail, analytic, *operands).


def _sum_of_balls(_detail: object, _analytic: bool, first: acb, *others: acb) -> acb:
    for term in others:
        first = first + term
    return first


def _mul(_detail: object, _analytic: bool, first: acb, *others: acb) -> acb:
    for factor in others:
        first = first * factor
    return first


def _log_gamma(_detail: object, analytic: bool, value: acb) -> acb:
    if analytic and _on_cut_left_of(value, 0):
        return UNKNOWN
    x = value.real
    if value.imag == 0 and x > 2 and x.rad() > _WIDE_GAMMA:  # where it rises, ends say all
        return acb(x.lower().lgamma().union(x.upper().lgamma()))
    return value.lgamma()


def _with_real_cuts(name: str) -> _Operation:
    """Wrap inverse functions whose cuts leave ±1 outwards (atan: ±i, after a quarter turn)."""

    def operation(_detail: object, analytic: bool, value: acb) -> acb:
        turned = value * acb(0, 1) if name == "atan" else value
        if analytic and (_on_cut_left_of(turned, -1) or _on_cut_left_of(-turned, -1)):
            return UNKNOWN
        return acb(getattr(value, name)())

    return operation


def _acosh(_detail: object, analytic: bool, value: acb) -> acb:
    if analytic and _on_cut_left_of(value, 1):
        return UNKNOWN
    return value.acosh()


def _bessel(name: str) -> _Operation:
    def operation(detail: Any, analytic: bool, order: acb, value: acb) -> acb:
        is_entire = name in ("bessel_i", "bessel_j") and order.unique_fmpz() is not None
        if analytic and not is_entire and _on_cut_left_of(value, 0):
            return UNKNOWN
        if name == "bessel_k":
            return _bessel_k_ball(fmpq(*detail) if detail else order, value)
        return _of_order(name, order, value)

    return operation


def _hypergeometric(above: Any, analytic: bool, *parts: Any) -> acb:
    """pFq: of p = q + 1 with its cut from 1 on, and for ₃F₂ and above within the unit circle."""
    *lists, value = parts
    uppers = lists[:above]
    lowers = lists[above:]
    if analytic and len(uppers) > len(lowers) and _on_cut_left_of(-value, -1):
        return UNKNOWN
    if len(uppers) == 2 and len(lowers) == 1:
        return acb(value.hypgeom_2f1(*lists))
    return acb(value.hypgeom([*uppers], [*lowers]))


def _hyperu(_detail: object, analytic: bool, a: acb, b: acb, value: acb) -> acb:
    if analytic and _on_cut_left_of(value, 0):
        return UNKNOWN
    return acb(value.hypgeom_u(a, b))


def _log_bessel_k(detail: Any, analytic: bool, order: acb, value: acb) -> acb:
    # The scaled function does not vanish at large x.
    if analytic and _on_cut_left_of(value, 0):
        return UNKNOWN
    scaled = _bessel_k_ball(fmpq(*detail) if detail else order, value, scaled=True)
    return scaled.log(analytic=analytic) - value


def _log_bessel_i(_detail: object, analytic: bool, order: acb, value: acb) -> acb:
    if analytic and _on_cut_left_of(value, 0):
        return UNKNOWN
    if not order.is_exact():
        wide = log_bessel_i_ball(order, value)
        if wide is not None:
            return wide
    if value.imag.is_zero() and value.rel_accuracy_bits() < _WIDE_BITS:
        return acb(_of_order("bessel_i", order, value).log(analytic=analytic))
    scaled = value.bessel_i(order, scaled=True)
    return acb(scaled.log(analytic=analytic) + value)


def _incomplete_gamma(name: str) -> _Operation:
    def operation(_detail: object, analytic: bool, order: acb, value: acb) -> acb:
        on_cut = analytic and _on_cut_left_of(value, 0)
        if on_cut:
            return UNKNOWN
        return _of_order(name, order, value)

    return operation


def _fold(name: str) -> _Operation:
    def operation(_detail: object, analytic: bool, first: Any, *others: Any) -> acb:
        result = acb(first)
        for other in others:
            result = getattr(result, name)(acb(other), analytic=analytic)
        return result

    return operation


@lru_cache(maxsize=1024)  # a density's formulas hold one normalising sum many times
def _enclosed_sum(node: Any, _bits: int) -> acb:
    index, lower, upper = node.limits[0]
    try:
        term = _in_logarithms(node.function, index)
        return acb(enclose_sum(term, _ball_of_limit(lower), _ball_of_limit(upper)))
    except AccuracyError:  # as of e^{−k−e^{−k}}, of which no ball tells how it falls
        better = ENCLOSERS.get(type(node))
        narrow = None
        if better is not None:
            narrow = better(node)
        if narrow is None:
            raise
        return acb(narrow)


# How a kind of integral or sum is enclosed by the rooms above: None where it is not.
ENCLOSERS: dict[type[Any], Callable[[Any], arb | None]] = {}


@lru_cache(maxsize=256)  # a density's formulas hold one integral many times
def _enclosed_integral(node: Any, _bits: int) -> acb:
    better = ENCLOSERS.get(type(node))
    if better is not None:
        narrow = better(node)
        if narrow is not None:
            return acb(narrow)
    variable, lower, upper = node.limits[0]
    spread = node.function.expand(deep=False)
    terms = [spread]
    if spread.is_Add:
        terms = spread.args
    total = arb(0)
    for term in terms:  # each has a tail of its own
        function = _in_logarithms(term, variable)
        total += enclose_integral(function, _ball_of_limit(lower), _ball_of_limit(upper))
    return acb(total)


def _in_logarithms(term: sp.Expr, variable: sp.Symbol) -> _Operation:
    """Compile f as e^{log f}, in which no part overflows where f itself is tiny: 1/cosh x, 1/k!."""
    import sympy as sp

    hyperbolic = sp.functions.elementary.hyperbolic.HyperbolicFunction
    plain = compile_arb(term, [variable])
    if not term.has(hyperbolic, sp.factorial, sp.gamma, sp.binomial):
        return plain
    factored = sp.factor_terms(term.rewrite(hyperbolic, sp.exp))
    logarithm = sp.expand_log(sp.log(factored), force=True)
    compiled = compile_arb(logarithm, [variable])

    def value(x: Any, analytic: bool = False) -> Any:
        by_logs = compiled(x, analytic=analytic).exp()
        if by_logs.is_finite():
            return by_logs
        return plain(x, analytic=analytic)

    return value


def _ball_of_limit(limit: sp.Expr) -> arb | None:
    """A limit as a ball, None where it is infinite."""
    if limit.is_infinite:
        return None
    return acb(constant(limit)).real


def _method(name: str) -> _Operation:
    return lambda _detail, _analytic, value: getattr(value, name)()


def _cut_method(name: str) -> _Operation:
    return lambda _detail, analytic, value: getattr(value, name)(analytic=analytic)


OPERATIONS: dict[str, _Operation] = {
    "rational": lambda detail, _: acb(fmpq(*detail)),
    "pi": lambda *_: acb.pi(),
    "e": lambda *_: acb(arb.const_e()),
    "euler": lambda *_: acb(arb.const_euler()),
    "catalan": lambda *_: acb(arb.const_catalan()),
    "imaginary": lambda *_: acb(0, 1),
    "infinity": lambda *_: acb(arb.pos_inf()),
    "minus_infinity": lambda *_: acb(arb.neg_inf()),
    "true": lambda *_: True,
    "false": lambda *_: False,
    "add": _sum_of_balls,
    "mul": _mul,
    "integer_power": _integer_power,
    "power": _principal_power,
    "sqrt": _cut_method("sqrt"),
    "log": _cut_method("log"),
    "log1p": _log_one_plus,
    "log_ratio": _log_ratio,
    "log_sum_exp": _log_sum_exp,
    "unit_log_sum_exp": _unit_log_sum_exp,
    "sum": lambda node, _: _enclosed_sum(node, ctx.prec),
    "integral": lambda node, _: _enclosed_integral(node, ctx.prec),
    "piecewise": _piecewise,
    "abs": _cut_method("real_abs"),
    "sign": _cut_method("real_sgn"),
    "heaviside": _cut_method("real_heaviside"),
    "floor": _cut_method("real_floor"),
    "ceiling": _cut_method("real_ceil"),
    "max": _fold("real_max"),
    "min": _fold("real_min"),
    "loggamma": _log_gamma,
    "polygamma": lambda _detail, _analytic, order, value: value.polygamma(order),
    "asin": _with_real_cuts("asin"),
    "acos": _with_real_cuts("acos"),
    "atanh": _with_real_cuts("atanh"),
    "atan": _with_real_cuts("atan"),
    "asinh": _asinh,
    "acosh": _acosh,
    "besseli": _bessel("bessel_i"),
    "besselk": _bessel("bessel_k"),
    "besselj": _bessel("bessel_j"),
    "bessely": _bessel("bessel_y"),
    **{"log_besselk": _log_bessel_k, "log_besseli": _log_bessel_i},
    **{"log_erf_difference": log_erf_difference_ball, "log_erfc": log_erfc_ball},
    "uppergamma": _incomplete_gamma("gamma_upper"),
    "lowergamma": _incomplete_gamma("gamma_lower"),
    "hyper": _hypergeometric,
    "hyperu": _hyperu,
    "lt": _comparison(lambda d: d < 0, lambda d: d >= 0),
    "le": _comparison(lambda d: d <= 0, lambda d: d > 0),
    "gt": _comparison(lambda d: d > 0, lambda d: d <= 0),
    "ge": _comparison(lambda d: d >= 0, lambda d: d < 0),
    "eq": _comparison(lambda d: d.is_zero(), lambda d: not d.contains(0)),
    "ne": _comparison(lambda d: not d.contains(0), lambda d: d.is_zero()),
    "and": _all_of,
    "or": _any_of,
    "not": lambda _detail, _analytic, part: None if part is None else not part,
    **{
        name: _method(name)
        for name in (
            "exp", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh",
            "erf", "erfc", "erfi", "gamma",
        )
    },
}  # fmt: skip
