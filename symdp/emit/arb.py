"""Emit a SymPy expression as a function over Arb balls that encloses every value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self

from flint import acb, arb, ctx, fmpq

from symdp.emit.arb_operations import (
    UNKNOWN,
    all_of,
    any_of,
    asinh,
    bessel_k_ball,
    comparison,
    integer_power,
    log_bessel_i_ball,
    log_one_plus,
    log_ratio,
    log_sum_exp,
    on_cut_left_of,
    piecewise,
    power,
    unit_log_sum_exp,
)
from symdp.emit.enclose import enclose_integral, enclose_sum
from symdp.emit.erf_difference import log_erf_difference_ball, log_erfc_ball
from symdp.emit.steps import Program
from symdp.errors import InputError

if TYPE_CHECKING:
    import sympy as sp

_Operation = Callable[..., Any]


class _Compiled:
    """Steps over balls, run at whatever precision flint then works."""

    def __init__(self, program: Program, bound: tuple[fmpq, ...] = ()) -> None:
        _check_supported(program)
        self._program, self._bound = program, bound
        self._free = len(program.symbols) - len(bound)
        first = len(program.symbols) + len(program.constants)
        moving = set(range(self._free))
        self._fixed, self._moving = [], []
        for slot, step in enumerate(program.steps, first):
            own = (slot, OPERATIONS[step.operation], step.detail, _reader(step.operands))
            if moving.isdisjoint(step.operands):
                self._fixed.append(own)
            else:
                self._moving.append(own)
                moving.add(slot)
        self._known: dict[int, list[Any]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._program, self._bound)

    def at(self, values: Sequence[fmpq]) -> Self:
        """Return the function with its last arguments bound; what they alone tell is kept."""
        return type(self)(self._program, tuple(values))

    def _run(self, arguments: tuple[Any, ...], analytic: bool) -> list[Any]:
        """Return what is in every slot."""
        if len(arguments) != self._free:
            names = ", ".join(self._program.symbols[: self._free])
            raise TypeError(f"expected the arguments ({names}), got {len(arguments)}")
        known: list[Any] | None = self._known.get(ctx.prec)
        if known is None:
            known = [None] * self._free + [acb(value) for value in self._bound]
            known += [constant(node) for node in self._program.constants]
            known += [None] * len(self._program.steps)
            for slot, operation, detail, operands in self._fixed:
                known[slot] = operation(detail, False, *operands(known))
            self._known[ctx.prec] = known
        values = known.copy()
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
        return _of_kind(arguments, self._run(arguments, analytic)[self._program.result])


class ArbFunctions(_Compiled):
    """Several compiled expressions."""

    def __call__(self, *arguments: Any, analytic: bool = False) -> tuple[Any, ...]:
        """Return balls around the values of each over `arguments`, as `ArbFunction` does of one."""
        values = self._run(arguments, analytic)
        return tuple(_of_kind(arguments, values[slot]) for slot in self._program.results)


def _of_kind(arguments: tuple[Any, ...], value: Any) -> Any:
    """Return a value as a real ball where all arguments are."""
    result = acb(value)
    if any(isinstance(argument, acb) for argument in arguments):
        return result
    return result.real if result.imag.contains(0) else arb.nan()


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
    """Compile several expressions as `compile_arb` does one; what they share is evaluated once.

    Examples
    --------
    >>> import sympy as sp
    >>> x = sp.Symbol("x", real=True)
    >>> compile_arb_together([sp.exp(x), 1 + sp.exp(x)], [x])(arb(0))
    (1.00000000000000, 2.00000000000000)
    """
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
    program = node if isinstance(node, Program) else _constant_program(node)
    _check_supported(program)
    values: list[Any] = []
    for step in program.steps:
        operands = [values[slot] for slot in step.operands]
        values.append(OPERATIONS[step.operation](step.detail, False, *operands))
    return values[program.result]


def _constant_program(node: sp.Expr) -> Program:
    from symdp.emit.program import compile_constant

    return compile_constant(node)


def _check_supported(program: Program) -> None:
    for step in program.steps:
        if step.operation not in OPERATIONS:
            raise InputError(
                f"the operation '{step.operation}' has no ball form; "
                "write the expression without it to have proved results"
            )


_WIDE_GAMMA = 0.125  # a radius from which on balls of log Γ are several times too wide

# Operations take (detail, analytic, *operands).


def _add(_detail: object, _analytic: bool, first: acb, *rest: acb) -> acb:
    for term in rest:
        first = first + term
    return first


def _mul(_detail: object, _analytic: bool, first: acb, *rest: acb) -> acb:
    for factor in rest:
        first = first * factor
    return first


def _log_gamma(_detail: object, analytic: bool, value: acb) -> acb:
    if analytic and on_cut_left_of(value, 0):
        return UNKNOWN
    x = value.real
    if value.imag == 0 and x > 2 and x.rad() > _WIDE_GAMMA:  # where it rises, ends say all
        return acb(x.lower().lgamma().union(x.upper().lgamma()))
    return value.lgamma()


def _with_real_cuts(name: str) -> _Operation:
    """Wrap inverse functions whose cuts leave ±1 outwards (atan: ±i, after a quarter turn)."""

    def operation(_detail: object, analytic: bool, value: acb) -> acb:
        turned = value * acb(0, 1) if name == "atan" else value
        if analytic and (on_cut_left_of(turned, -1) or on_cut_left_of(-turned, -1)):
            return UNKNOWN
        return acb(getattr(value, name)())

    return operation


def _acosh(_detail: object, analytic: bool, value: acb) -> acb:
    return UNKNOWN if analytic and on_cut_left_of(value, 1) else value.acosh()


def _bessel(name: str) -> _Operation:
    def operation(detail: Any, analytic: bool, order: acb, value: acb) -> acb:
        is_entire = name in ("bessel_i", "bessel_j") and order.unique_fmpz() is not None
        if analytic and not is_entire and on_cut_left_of(value, 0):
            return UNKNOWN
        if name == "bessel_k":
            return bessel_k_ball(fmpq(*detail) if detail else order, value)
        return acb(getattr(value, name)(order))

    return operation


def _log_bessel_k(detail: Any, analytic: bool, order: acb, value: acb) -> acb:
    # The scaled function does not vanish at large x.
    if analytic and on_cut_left_of(value, 0):
        return UNKNOWN
    scaled = bessel_k_ball(fmpq(*detail) if detail else order, value, scaled=True)
    return scaled.log(analytic=analytic) - value


def _log_bessel_i(_detail: object, analytic: bool, order: acb, value: acb) -> acb:
    if analytic and on_cut_left_of(value, 0):
        return UNKNOWN
    wide = None if order.is_exact() else log_bessel_i_ball(order, value)
    return wide or acb(value.bessel_i(order, scaled=True).log(analytic=analytic) + value)


def _incomplete_gamma(name: str) -> _Operation:
    def operation(_detail: object, analytic: bool, order: acb, value: acb) -> acb:
        on_cut = analytic and on_cut_left_of(value, 0)
        return UNKNOWN if on_cut else acb(getattr(value, name)(order))

    return operation


def _fold(name: str) -> _Operation:
    def operation(_detail: object, analytic: bool, first: Any, *rest: Any) -> acb:
        result = acb(first)
        for other in rest:
            result = getattr(result, name)(acb(other), analytic=analytic)
        return result

    return operation


@lru_cache(maxsize=1024)  # a density's formulas hold one normalising sum many times
def _enclosed_sum(node: Any, _bits: int) -> acb:
    index, lower, upper = node.limits[0]
    return acb(enclose_sum(_in_logarithms(node.function, index), _end(lower), _end(upper)))


# How a kind of integral is enclosed better than here, by the rooms above: None where it is not.
ENCLOSERS: dict[type[Any], Callable[[Any], arb | None]] = {}


@lru_cache(maxsize=256)  # a density's formulas hold one integral many times
def _enclosed_integral(node: Any, _bits: int) -> acb:
    better = ENCLOSERS.get(type(node))
    found = None if better is None else better(node)
    if found is not None:
        return acb(found)
    variable, lower, upper = node.limits[0]
    spread = node.function.expand(deep=False)
    total = arb(0)
    for term in spread.args if spread.is_Add else (spread,):  # each has a tail of its own
        function = _in_logarithms(term, variable)
        total += enclose_integral(function, _end(lower), _end(upper))
    return acb(total)


def _in_logarithms(term: sp.Expr, variable: sp.Symbol) -> _Operation:
    """Compile f as e^{log f}, in which no part overflows where f itself is tiny: 1/cosh x, 1/k!."""
    import sympy as sp

    hyperbolic = sp.functions.elementary.hyperbolic.HyperbolicFunction
    plain = compile_arb(term, [variable])
    if not term.has(hyperbolic, sp.factorial, sp.gamma, sp.binomial):
        return plain
    logarithm = sp.expand_log(sp.log(sp.factor_terms(term.rewrite(sp.exp))), force=True)
    compiled = compile_arb(logarithm, [variable])

    def value(x: Any, analytic: bool = False) -> Any:
        found = compiled(x, analytic=analytic).exp()
        return found if found.is_finite() else plain(x, analytic=analytic)

    return value


def _end(limit: sp.Expr) -> arb | None:
    """A limit as a ball, None where it is infinite."""
    return None if limit.is_infinite else acb(constant(limit)).real


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
    "add": _add,
    "mul": _mul,
    "integer_power": integer_power,
    "power": power,
    "sqrt": _cut_method("sqrt"),
    "log": _cut_method("log"),
    "log1p": log_one_plus,
    "log_ratio": log_ratio,
    "log_sum_exp": log_sum_exp,
    "unit_log_sum_exp": unit_log_sum_exp,
    "sum": lambda node, _: _enclosed_sum(node, ctx.prec),
    "integral": lambda node, _: _enclosed_integral(node, ctx.prec),
    "piecewise": piecewise,
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
    "asinh": asinh,
    "acosh": _acosh,
    "besseli": _bessel("bessel_i"),
    "besselk": _bessel("bessel_k"),
    "besselj": _bessel("bessel_j"),
    "bessely": _bessel("bessel_y"),
    **{"log_besselk": _log_bessel_k, "log_besseli": _log_bessel_i},
    **{"log_erf_difference": log_erf_difference_ball, "log_erfc": log_erfc_ball},
    "uppergamma": _incomplete_gamma("gamma_upper"),
    "lowergamma": _incomplete_gamma("gamma_lower"),
    "hyper_0f1": lambda _detail, _analytic, order, value: value.hypgeom_0f1(order),
    "lt": comparison(lambda d: d < 0, lambda d: d >= 0),
    "le": comparison(lambda d: d <= 0, lambda d: d > 0),
    "gt": comparison(lambda d: d > 0, lambda d: d <= 0),
    "ge": comparison(lambda d: d >= 0, lambda d: d < 0),
    "eq": comparison(lambda d: d.is_zero(), lambda d: not d.contains(0)),
    "ne": comparison(lambda d: not d.contains(0), lambda d: d.is_zero()),
    "and": all_of,
    "or": any_of,
    "not": lambda _detail, _analytic, part: None if part is None else not part,
    **{
        name: _method(name)
        for name in (
            "exp", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh",
            "erf", "erfc", "erfi", "gamma",
        )
    },
}  # fmt: skip
