"""Where a loss turns, what its limits are and between what it lies, as a page shows them.

No number asks for any of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import sympy as sp

from symdp.density.pieces import joined, pieces
from symdp.density.records import Piece
from symdp.density.signs import compare, is_nearly_zero, sign_of
from symdp.density.turning import monotone_cuts
from symdp.derive.presented import presented
from symdp.emit.log_sum_exp import erf_difference
from symdp.model import tidy

if TYPE_CHECKING:
    from symdp.model.pair import Pair


def monotone_pieces(pair: Pair) -> tuple[Piece, ...]:
    """Return the smooth pieces of a pair, split further where the loss turns."""
    x = pair.variable
    plain = (replace(piece, loss=without_gammas(piece.loss, x)) for piece in pieces(pair))
    monotone = [part for piece in plain for part in _monotone_parts(piece, x)]
    return tuple(monotone if pair.alternatives else joined(monotone, x))


def without_gammas(loss: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return a loss whose constant log Γ(a + 1)/Γ(a) is log a, under its one other logarithm."""
    others = []
    logs = []
    short = []
    for term in sp.Add.make_args(loss):
        sign = -1 if term.could_extract_minus_sign() else 1
        log = sign * term
        if not isinstance(log, sp.log):
            others.append(term)
        elif log.has(sp.gamma) and not log.has(x):
            short.append(sp.gammasimp(log.args[0]) ** sign)
        else:
            logs.append(log.args[0] ** sign)
    if not short or any(argument.has(sp.gamma) or not argument.is_positive for argument in short):
        return loss
    together = [sp.Mul(*logs, *short)] if len(logs) == 1 else [*logs, sp.Mul(*short)]
    return sp.Add(*others, *map(sp.log, together))


def _monotone_parts(piece: Piece, x: sp.Symbol) -> Iterator[Piece]:
    """Yield a piece in parts, one for each direction of the loss."""
    if piece.slope != "unknown":
        yield piece
        return
    lower, upper = piece.lower, piece.upper
    for low, high, slope in monotone_cuts(piece.loss, x, lower, upper):
        first, last = low, high
        if x.is_integer:
            first = low if low == lower else sp.floor(low) + 1
            last = high if high == upper else sp.floor(high)
            if sign_of(last - first) == -1:
                continue
        yield replace(piece, lower=first, upper=last, slope=slope)


_SECONDS = 3.0  # for one limit of SymPy's
_FEW = 6  # summands of a log
_INFINITE = (sp.oo, -sp.oo)


def limit_at(expression: sp.Expr, x: sp.Symbol, end: sp.Expr, from_left: bool) -> sp.Expr | None:
    """Return the limit of a loss at an end of a piece, None where it was not found.

    Values in the extended reals are put in where they determine the limit; SymPy's own algorithm
    takes the rest, in a child process with a time limit.
    """
    value = _by_values(expression, x, end)
    if value is not None:
        return value
    from symdp.derive.child import compute

    direction = "-" if from_left else "+"
    return compute("limit", (_leading(expression, x, end), x, end, direction), _SECONDS)


def _by_values(expression: sp.Expr, x: sp.Symbol, end: sp.Expr) -> sp.Expr | None:
    return _extended(_leading(expression, x, end), x, end)


def _leading(expression: sp.Expr, x: sp.Symbol, end: sp.Expr) -> sp.Expr:
    """Put what leads inside the logs of a loss for Bessel and error functions that vanish or grow.

    I_ν(z) ~ (z/2)^ν/Γ(ν + 1) where ν goes to ∞, or as a whole number to −∞ [DLMF 10.41.1];
    K_ν(z) ~ √(π/2z) e^{−z} [DLMF 10.25.3] and erfc z ~ e^{−z²}/(z√π) [DLMF 7.12.1] where z → ∞.
    """

    if not expression.has(sp.besseli, sp.besselk, sp.erf, sp.erfc):
        return expression

    def of_order(order: sp.Expr, z: sp.Expr) -> sp.Expr:
        value = _extended(order, x, end) if x not in z.free_symbols else None
        if value is -sp.oo and order.is_integer:
            order = -order
            value = sp.oo
        if value is not sp.oo:
            return sp.besseli(order, z)
        return (z / 2) ** order / sp.gamma(order + 1)

    def decaying(order: sp.Expr, z: sp.Expr) -> sp.Expr:
        grows = x not in order.free_symbols and _extended(z, x, end) is sp.oo
        if grows:
            return sp.sqrt(sp.pi / (2 * z)) * sp.exp(-z)
        return sp.besselk(order, z)

    def in_log(log: sp.Expr) -> sp.Expr:
        """log(c ± c·erf z) is log c + log erfc(∓z), which has an expansion where erf z → ∓1."""
        difference = erf_difference(log.args[0]) if isinstance(log.args[0], sp.Add) else None
        if difference is not None and difference[2].is_positive:  # the erfc nearer to 0 leads
            c, middle, half = difference
            for z in (middle - half, -middle - half):
                if _extended(z, x, end) is sp.oo:
                    return sp.log(c / (z * sp.sqrt(sp.pi))) - sp.expand(z**2)
        constant, moving = sp.expand(log.args[0]).as_independent(x, as_Add=True)
        factor, function = moving.as_independent(x, as_Add=False)
        if isinstance(function, sp.erf) and abs(factor) == abs(constant):
            z = -factor / constant * function.args[0]
        elif isinstance(function, sp.erfc) and constant == 0:
            constant = factor
            z = function.args[0]
        else:
            return log
        if _extended(z, x, end) is not sp.oo:
            return log
        return sp.log(constant / (z * sp.sqrt(sp.pi))) - sp.expand(z**2)

    expression = expression.replace(lambda node: isinstance(node, sp.log), in_log)
    if expression.has(sp.besselk):
        expression = sp.expand_log(expression.replace(sp.besselk, decaying), force=True)
    if not expression.has(sp.besseli) or end not in _INFINITE:
        return expression
    replaced = sp.logcombine(expression.replace(sp.besseli, of_order), force=True)
    return replaced.replace(
        lambda node: isinstance(node, sp.Mul) and node.has(sp.gamma),
        lambda node: sp.powsimp(sp.gammasimp(node)),
    )


def _extended(node: sp.Expr, x: sp.Symbol, end: sp.Expr) -> sp.Expr | None:
    """Evaluate bottom-up at the end; None for forms such as ∞ − ∞."""
    if x not in node.free_symbols:
        return node
    if node == x:
        return end
    value = _combined(node, x, end)
    if value is None and end in _INFINITE and node.is_rational_function(x):
        return _rational_limit(node, x, end)
    return value


def _combined(node: sp.Expr, x: sp.Symbol, end: sp.Expr) -> sp.Expr | None:
    """Evaluate a function of x from the values of its arguments."""
    parts = [_extended(argument, x, end) for argument in node.args]
    values = [part for part in parts if part is not None]
    if len(values) < len(parts):
        inverse = 1 / node.args[0] if isinstance(node, sp.log) else None
        if inverse is None or inverse.is_Pow or _extended(inverse, x, end) != 0:
            return None
        return sp.oo  # what is under the log is positive
    if isinstance(node, sp.Add):
        infinite = {value for value in values if value in _INFINITE}
        if len(infinite) > 1:
            return None
        if infinite:
            return infinite.pop()
        return sp.Add(*values)
    if isinstance(node, sp.Mul):
        return _limit_of_product(values)
    if isinstance(node, sp.exp):
        return sp.exp(values[0])
    if isinstance(node, sp.log):
        if values[0] is sp.oo:
            return sp.oo
        if is_nearly_zero(values[0]):
            return -sp.oo
        return sp.log(values[0], evaluate=_is_short(values[0]))
    if isinstance(node, sp.Pow):
        return _limit_of_power(*values)
    # So that cos(π(1 − w)/2w − π/2w) is seen to be cos(−π/2).
    result = node.func(*(sp.expand(value) if value.free_symbols else value for value in values))
    if result.has(sp.nan, sp.zoo, sp.oo, -sp.oo, sp.AccumBounds):
        return None
    return result


def _is_short(value: sp.Expr) -> bool:
    """Whether SymPy may look for a simpler log; it asks a long sum for its sign first."""
    return len(sp.Add.make_args(value)) < _FEW


def _limit_of_product(values: Sequence[sp.Expr]) -> sp.Expr | None:
    if not any(value in _INFINITE for value in values):
        return sp.Mul(*values)
    sign = 1
    for value in values:
        factor = sign_of(value)
        if not factor:
            return None
        sign *= factor
    return sign * sp.oo


def _limit_of_power(base: sp.Expr, exponent: sp.Expr) -> sp.Expr | None:
    sign = sign_of(exponent)
    if base in _INFINITE or sign_of(base) == 0:
        if not sign or exponent in _INFINITE or (base is -sp.oo and not exponent.is_integer):
            return None
        if base is -sp.oo and sign > 0:
            if exponent.is_even:
                return sp.oo
            if exponent.is_odd:
                return -sp.oo
            return None
        if base in _INFINITE:
            if sign > 0:
                return sp.oo
            return sp.S.Zero
        if sign > 0:
            return sp.S.Zero
        return None
    if exponent in _INFINITE:
        steep = sign_of(base - 1)
        if sign_of(base) != 1 or not steep or not sign:
            return None
        if steep == sign:
            return sp.oo
        return sp.S.Zero
    return base**exponent


def _rational_limit(node: sp.Expr, x: sp.Symbol, end: sp.Expr) -> sp.Expr | None:
    numerator, denominator = (sp.Poly(part, x) for part in sp.fraction(tidy.together(node)))
    excess = numerator.degree() - denominator.degree()
    if excess < 0:
        return sp.S.Zero
    leading = tidy.cancel(numerator.LC() / denominator.LC())
    if excess == 0:
        return leading
    sign = sign_of(leading)
    if not sign:
        return None
    return sign * end**excess


def loss_range(pieces: Iterable[Piece], x: sp.Symbol) -> tuple[sp.Expr, sp.Expr] | None:
    """Return the essential infimum and supremum of the finite loss, None where not found.

    Both are limits at ends of monotone pieces.  A limit that is the smaller one on some piece
    cannot be the supremum, which settles most ties between parameter expressions; what stays
    open is left as Min or Max.  On a piece that may turn, only an infinite limit is an end.
    """
    return range_or_reason(pieces, x)[0]


def range_or_reason(
    pieces: Iterable[Piece], x: sp.Symbol
) -> tuple[tuple[sp.Expr, sp.Expr] | None, str]:
    """Return the range of the loss, or None and why it was not found."""
    finite = [piece for piece in pieces if piece.loss not in _INFINITE]
    if not finite:
        return None, "the loss has no finite value"
    limits = [end_limits(piece, x) for piece in finite]
    values = {value for pair in limits for value in pair}
    if {sp.oo, -sp.oo} <= values:
        return (-sp.oo, sp.oo), ""
    open_at = next((p for p, pair in zip(finite, limits, strict=True) if None in pair), None)
    if open_at is not None:
        return None, f"no limit of the loss was found between {open_at.lower} and {open_at.upper}"
    turning = [piece for piece in finite if piece.slope == "unknown"]
    if turning:
        first = turning[0]
        names = ", ".join(sorted(str(y.name) for y in first.loss.free_symbols - {x}))
        why = ": the zeros of its slope could not be enclosed"
        if names:
            why = f" while {names} may have any value: give values, or an assumption"
        return None, f"whether the loss turns between {first.lower} and {first.upper} is open{why}"
    ends = [
        pair if piece.slope != "decreasing" else pair[::-1]
        for piece, pair in zip(finite, limits, strict=True)
    ]
    moving = [pair for piece, pair in zip(finite, ends, strict=True) if piece.slope != "constant"]
    bottom = _without([low for low, _ in ends], {high for _, high in moving})
    top = _without([high for _, high in ends], {low for low, _ in moving})
    least = _extreme(bottom, -1)
    greatest = _extreme(top, 1)
    if least is None or greatest is None:
        return None, "which of several limits of the loss is the largest depends on the parameters"
    return (presented(least), presented(greatest)), ""


def _without(values: list[sp.Expr], beaten: set[sp.Expr]) -> list[sp.Expr]:
    """Return the values once each, those that others go beyond left out."""
    return [value for value in dict.fromkeys(values) if value not in beaten] or values


def end_limits(piece: Piece, x: sp.Symbol) -> tuple[sp.Expr | None, sp.Expr | None]:
    """Return the limits of the loss at the lower and the upper end of a piece."""
    if piece.slope == "constant":
        return piece.loss, piece.loss
    limits = []
    for end, from_left in ((piece.lower, False), (piece.upper, True)):
        value = _limit_of_shift(piece, x, end)
        value = limit_at(piece.loss, x, end, from_left) if value is None else value
        limits.append(None if value is None else _shorter(value))
    return limits[0], limits[1]


def _limit_of_shift(piece: Piece, x: sp.Symbol, end: sp.Expr) -> sp.Expr | None:
    """Return the limit of g(x − D) − g(x) at ±∞, which is −D·lim g′ by the mean value theorem."""
    log_p = piece.log_p
    log_q = piece.log_q
    if end not in _INFINITE or x.is_integer or log_p is None or log_q is None:
        return None
    if _by_values(piece.loss, x, end) is not None:
        return None
    lines = (t for t in log_p.atoms(sp.Add) if t.is_polynomial(x) and sp.degree(t, x) == 1)
    for shift in {-line.subs(x, 0) / sp.diff(line, x) for line in lines}:
        residual = log_p.subs(x, x + shift) - log_q
        if _may_vanish(residual, x) and sp.expand_log(sp.expand(residual), force=True) == 0:
            slope = sp.powsimp(sp.expand(sp.diff(log_q, x)))
            value = limit_at(slope, x, end, from_left=end is sp.oo)
            if value is None:
                return None
            return _limit_of_product((-shift, value))
    return None


def _may_vanish(expression: sp.Expr, x: sp.Symbol) -> bool:
    """Return whether an expression is 0 at a place, as far as digits tell: expansion is long."""
    value = expression.subs(x, sp.Rational(17, 13)).evalf(20)
    return not value.is_number or not abs(value) > 1e-9


def _shorter(value: sp.Expr) -> sp.Expr:
    if not all(_is_short(log.args[0]) for log in value.atoms(sp.log)):
        return value
    expanded = sp.expand_log(sp.expand(value), force=True)
    return min(value, expanded, key=lambda e: (sp.count_ops(e), sp.default_sort_key(e)))


def _extreme(values: list[sp.Expr], direction: int) -> sp.Expr | None:
    best = values[0]
    undecided = []
    for value in values[1:]:
        order = compare(value, best)
        if order is None:
            undecided.append(value)
        elif order == direction:
            best = value
    if undecided and all(value.is_extended_real for value in (best, *undecided)):
        return (sp.Max if direction > 0 else sp.Min)(best, *undecided)
    if undecided:
        return None
    return best
