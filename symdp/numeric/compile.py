"""From the derived pieces of a pair to the law of its loss in numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import sympy as sp
from flint import arb, ctx, fmpq

from symdp.balls.mass import pieces_in_numbers
from symdp.density.exponents import exponents
from symdp.density.normal_form import exponential_terms
from symdp.density.pieces import flat_masses, masses_of_points
from symdp.density.records import DISTANCE, Piece
from symdp.density.signs import is_nearly_zero
from symdp.emit import compile_arb, compile_numpy
from symdp.emit.arb import constant_ball
from symdp.emit.exact import real_ball
from symdp.emit.mass import names_of_masses
from symdp.errors import InputError
from symdp.interrupt import generation
from symdp.model.pair import Pair
from symdp.numeric.closed import ClosedMasses
from symdp.numeric.formula import Formula, continues
from symdp.numeric.laws.table import LogDensityTable
from symdp.numeric.loss import BITS as END_BITS
from symdp.numeric.loss import LossLaw
from symdp.numeric.step import (
    Balls,
    RealFunction,
    SmoothPiece,
    Step,
    Stretch,
    rounded,
    together,
)
from symdp.tolerances import BITS, MANY_BITS

if TYPE_CHECKING:
    from symdp.emit.arb import ArbFunction
    from symdp.numeric.step import Moment

# of a table in log u, down from half a piece's length: far out a function of u is a line
_DEPTHS = (700.0, *range(44, 4, -2), 4.0, 3.5, 3.0, 2.5, 2.0, 1.5, 1.0, 0.5, 0.0)
_DISTANCES = [2.0**-k for k in (2, 4, 8, 14, 20, 27, 34, 45, 60, 90)]  # of a piece's length
_CLOSE = 1e-11  # of doubles to balls; where they cancel they are far apart


def pair_law(pair: Pair) -> LossLaw:
    """Return the numeric law of a dominating pair without free parameters, compiled once."""
    return _pair_law(pair, generation())


@lru_cache(maxsize=256)
def _pair_law(pair: Pair, _: int) -> LossLaw:
    return compiled_law(pair, "the pair")


def compiled_law(pair: Pair, name: str) -> LossLaw:
    """Return the law of a pair from a derivation of its own."""
    variable = pair.variable
    if pair.support.kind == "points":
        step = _finite_step(name, pair)
        return LossLaw(step, None, read_moment=lambda: _moment_of_pair(pair))
    integer = pair.is_discrete
    alike, others = _alike_alternatives(pair, name)
    derived = _derived_pieces(others)
    compiled = compiled_pieces(others)
    smooth = [*alike, *(piece for _, piece in compiled if piece is not None)]
    flat_sources = [source for source, piece in compiled if piece is None]
    flat = flat_masses(flat_sources, variable)
    step = _with_atoms(Step(name, tuple(smooth)), flat)
    has_both = bool(alike) or any(p.log_p is not None and p.log_q is not None for p in derived)
    is_reversible = not integer and has_both
    only_q = []
    if is_reversible:
        swapped = [_exchanged(piece) for piece in derived if piece.log_p is None]
        only_q = [_smooth_piece(piece, variable, integer) for piece in swapped]
    return LossLaw(
        step,
        None,
        is_reversible,
        only_q=only_q,
        read_moment=lambda: _moment_of_pair(pair),
    )


_Alternative: TypeAlias = "tuple[sp.Expr, Pair]"


def _alike_alternatives(pair: Pair, name: str) -> tuple[list[SmoothPiece], Pair]:
    """Return the pieces of alternatives that differ in weights alone, and the pair of the others.

    Of a batch whose size shows there is one alternative for each size, all of the same densities:
    what they are mixed with, and how likely each is, are symbols of one formula.
    """
    groups: dict[object, list[_Alternative]] = {}
    for weight, alternative in pair.alternatives:
        zeros = tuple(w == 0 for w in (*alternative.p_weights, *alternative.q_weights))
        key = alternative.components, alternative.support, alternative.atoms, zeros
        groups.setdefault(key, []).append((weight, alternative))
    pieces: list[SmoothPiece] = []
    others: list[_Alternative] = []
    for group in groups.values():
        alike = _pieces_of_group(group, name)
        pieces += alike
        if not alike:
            others += group
    return pieces, replace(pair, alternatives=tuple(others))


def _pieces_of_group(group: Sequence[_Alternative], name: str) -> list[SmoothPiece]:
    """Return the pieces of all alternatives of a group, none where one formula does not serve."""
    _, first = group[0]
    if len(group) == 1 or first.support.kind != "interval" or first.alternatives:
        return []
    rows = [(weight, *pair.p_weights, *pair.q_weights) for weight, pair in group]
    entries: list[sp.Expr] = []
    symbols: dict[str, sp.Symbol] = {}
    columns: list[tuple[sp.Expr, ...]] = []
    for number, column in enumerate(zip(*rows, strict=True)):
        if len(set(column)) == 1:
            entries.append(column[0])
            continue
        symbol = sp.Symbol(f"weight_{number:03d}", positive=True)  # names sort like columns
        symbols[symbol.name] = symbol
        entries.append(symbol)
        columns.append(column)
    if not all(value.is_Rational for column in columns for value in column):
        return []
    share, *weights = entries
    count = len(first.components)
    template = replace(first, p_weights=tuple(weights[:count]), q_weights=tuple(weights[count:]))
    choice = Pair(first.variable, first.support, (), (), (), ((share, template),))
    pieces: list[SmoothPiece] = []
    # Values may decide what symbols do not.
    with suppress(InputError, NotImplementedError, TypeError):
        formula = Formula(pieces_in_numbers(choice), symbols, choice, below_one=())
        for row in zip(*columns, strict=True):
            law = formula.at([Fraction(int(value.p), int(value.q)) for value in row], name)
            if law is None:
                return []
            pieces += law.step.pieces
        return pieces
    return []


def _moment_of_pair(pair: Pair) -> Moment | None:
    """Return M of a pair as a sum of rational functions times exponentials, if it is one."""
    from symdp.density.exponential_sum import exponential_sum
    from symdp.numeric.residues import moment_of

    exponentials = exponential_sum(pair)
    if exponentials is None:
        return None
    return moment_of(exponentials)


@lru_cache(maxsize=256)
def _derived_pieces(pair: Pair) -> tuple[Piece, ...]:
    if not (pair.components or pair.alternatives):
        return ()
    return pieces_in_numbers(pair)


@lru_cache(maxsize=256)
def compiled_pieces(pair: Pair) -> tuple[tuple[Piece, SmoothPiece | None], ...]:
    """Return the pieces with an outcome in numbers; None for one loss of many integers."""
    integer = pair.is_discrete
    pieces = [piece for piece in _derived_pieces(pair) if piece.log_p is not None]
    flat = {}
    if integer:
        flat = flat_masses(pieces, pair.variable)
    compiled: list[tuple[Piece, SmoothPiece | None]] = []
    for piece in pieces:
        if piece in flat:
            compiled.append((piece, None))
        else:
            compiled.append((piece, _smooth_piece(piece, pair.variable, integer)))
    return tuple(compiled)


def _with_atoms(step: Step, masses: Mapping[Piece, arb]) -> Step:
    """Return a step of no points with pieces of constant loss as points."""
    with ctx.workprec(BITS):
        losses = [compile_arb(piece.loss, [])().real for piece in masses]
        log_masses = [float(mass.log().mid()) for mass in masses.values()]
        balls = zip(masses.values(), losses, strict=True)
        return replace(
            step,
            point_loss=np.asarray([float(loss.mid()) for loss in losses]),
            point_log_p=np.asarray(log_masses),
            point_balls=tuple((mass, loss) for mass, loss in balls if loss.is_finite()),
        )


def _exchanged(piece: Piece) -> Piece:
    """Return a piece where P vanishes with P and Q exchanged."""
    return replace(
        piece,
        log_p=piece.log_q,
        log_q=None,
        loss=sp.oo,
        log_p_terms=piece.log_q_terms,
        log_q_terms=(),
    )


def _smooth_piece(piece: Piece, variable: sp.Symbol, integer: bool) -> SmoothPiece:
    is_infinite = piece.loss == sp.oo
    ball_log_p = compile_arb(piece.log_p, [variable])
    ball_loss = None if is_infinite else compile_arb(piece.loss, [variable])
    # Where two of the three continue beyond an end, so does their difference, log Q.
    balls = [ball for ball in (ball_log_p, ball_loss) if ball is not None]
    # An end that no ball can enclose is left where it is.
    with suppress(InputError):
        stretched = None if integer else _stretched(piece, variable, balls)
        if stretched is not None:
            return stretched
    log_q = _constant_function(-math.inf)
    loss = _constant_function(math.inf)
    if not is_infinite:
        log_q = compile_numpy(piece.log_q, [variable])
        loss = compile_numpy(piece.loss, [variable])
    log_terms = [compile_numpy(term, [variable]) for term in _log_terms(piece)]
    return SmoothPiece(
        lower=float(sp.N(piece.lower, 40)),
        upper=float(sp.N(piece.upper, 40)),
        log_p=compile_numpy(piece.log_p, [variable]),
        log_q=log_q,
        loss=loss,
        ball=Balls(ball_log_p, ball_loss),
        log_terms=together(log_terms),
        flat=is_infinite or piece.slope == "constant",
        monotone=piece.slope in ("increasing", "decreasing"),
        integer=integer,
        ends=_exact_ends(piece),
        closed=_closed_masses(piece, variable),
    )


def _closed_masses(piece: Piece, variable: sp.Symbol) -> ClosedMasses | None:
    """Return the integrals of P and Q, None where no formula gives them."""
    exponents_of_sides = exponents(piece, variable)
    if exponents_of_sides is None:
        return None
    sides = []
    with ctx.workprec(BITS):
        for side in exponents_of_sides:
            balls = []
            for a, b, c in side:
                balls.append((real_ball(a), real_ball(b), real_ball(c)))
            sides.append(tuple(balls))
    return ClosedMasses(*sides)


def _exact_ends(piece: Piece) -> tuple[arb, ...]:
    """Return balls around the finite ends that can be enclosed."""
    ends: list[arb] = []
    for end in (piece.lower, piece.upper):
        with suppress(InputError):
            if end.is_finite:
                ends.append(constant_ball(end, END_BITS).real)
    return tuple(ends)


def _log_terms(piece: Piece) -> list[sp.Expr]:
    return list(dict.fromkeys((*piece.log_p_terms, *piece.log_q_terms)))


def _stretched(piece: Piece, variable: sp.Symbol, balls: list[ArbFunction]) -> SmoothPiece | None:
    """Return the piece with its singular finite ends at infinity, None where it has none.

    A singular end at 0 needs that only where the expressions cancel there.
    """
    is_infinite = piece.loss == sp.oo
    listed = [piece.log_p]
    if not is_infinite:
        listed += [piece.log_q, piece.loss]
    if piece.lower == piece.upper:
        return None
    length = piece.upper - piece.lower
    width = float(sp.N(length, 40)) if length.is_finite else 1.0

    def together_in_balls(x: Any, analytic: bool) -> list[Any]:
        return [ball(x, analytic=analytic) for ball in balls]

    singular = []
    for end, inward in ((piece.lower, 1), (piece.upper, -1)):
        if end.is_finite and not continues(together_in_balls, real_ball(end)):
            singular.append((end, inward))
    if all(end == 0 and _is_resolved(listed, variable, inward * width) for end, inward in singular):
        return None
    # A row for each singular end, a column for each expression.
    near = []
    near_terms = []  # of P and of Q
    for end in singular:
        near.append([_in_distance(f, variable, *end, width) for f in listed])
        near_terms.append([_in_distance(f, variable, *end, width) for f in _log_terms(piece)])
    length_at = lru_cache(maxsize=8)(lambda _precision: real_ball(length))
    read_length = (lambda: length_at(ctx.prec)) if length.is_finite else None
    stretch = Stretch(read_length, len(singular) == 2)
    columns = list(zip(*near, strict=True))
    log_p = columns[0]
    log_q = _constant_function(-math.inf)
    loss = _constant_function(math.inf)
    loss_ball = None
    if not is_infinite:
        log_q = stretch.in_doubles(columns[1], True)
        loss = stretch.in_doubles(columns[2], False)
        loss_balls = [ball for _, ball in columns[2]]
        loss_ball = stretch.in_balls(loss_balls, False)
    log_p_ball = stretch.in_balls([ball for _, ball in log_p], True)
    log_terms = [stretch.in_doubles(term, True) for term in zip(*near_terms, strict=True)]
    return SmoothPiece(
        lower=stretch.lower,
        upper=stretch.upper,
        log_p=stretch.in_doubles(log_p, True),
        log_q=log_q,
        loss=loss,
        ball=Balls(log_p_ball, loss_ball),
        log_terms=together(log_terms),
        flat=is_infinite or piece.slope == "constant",
        monotone=piece.slope in ("increasing", "decreasing"),
    )


def _is_resolved(listed: list[sp.Expr], x: sp.Symbol, width: float) -> bool:
    """Return whether doubles give what balls do down to tiny x."""
    places = [u * width for u in _DISTANCES]
    return all(
        _agrees_with_balls(compile_numpy(f, [x]), compile_arb(f, [x]), places) for f in listed
    )


def _around_end(node: sp.Expr, x: sp.Symbol, place: sp.Expr) -> sp.Expr:
    """Return an expression at a place end ± u, what vanishes at the end without its constant."""
    if node.is_polynomial(x):
        shifted = sp.expand(node.subs(x, place))
        constant, moving = shifted.as_independent(DISTANCE, as_Add=True)
        return sp.factor_terms(moving) if is_nearly_zero(constant) else shifted
    arguments = [_around_end(argument, x, place) for argument in node.args]
    shifted = node.func(*arguments)
    if not shifted.is_Add:
        return shifted
    terms = exponential_terms(shifted, DISTANCE)
    if not terms:
        return shifted
    at_end = [exponent.subs(DISTANCE, 0) for _, exponent in terms]
    factors = [factor for factor, _ in terms]
    pairs = zip(factors, at_end, strict=True)
    heights = [factor * sp.exp(value) for factor, value in pairs]
    total = sp.Add(*heights)
    if not total.is_finite or not is_nearly_zero(total):
        return shifted
    from symdp.emit.log_sum_exp import ExpMinusOne  # where a formula is compiled, not shipped

    grown = []
    for height, (_, exponent), value in zip(heights, terms, at_end, strict=True):
        rise = sp.expand(exponent - value)
        if rise != 0:
            grown.append(height * ExpMinusOne(rise))
    return sp.Add(*grown)


def _table_in_log(ball: Callable[..., Any], width: float) -> LogDensityTable:
    """Return a table of a function in log u, down from half a piece's length."""
    pair_at = Balls(ball, None)

    def series(low: float, high: float) -> Any:
        def function(t: Any) -> Any:
            depths = (low + 0.5 * (high - low) * (1.0 + t)).tolist()
            values = [rounded(pair_at, math.exp(depth)) for depth in depths]
            return np.asarray([log_value for log_value, _ in values])

        return np.polynomial.chebyshev.chebinterpolate(function, 19)

    edges = math.log(width / 2) - np.asarray(_DEPTHS)
    stretches = pairwise(edges.tolist())
    coefficients = np.asarray([series(low, high) for low, high in stretches])
    no_errors = np.zeros(edges.size - 1)
    return LogDensityTable(edges, coefficients, no_errors)


def _in_distance(
    expression: sp.Expr, x: sp.Symbol, end: sp.Expr, inward: int, width: float
) -> tuple[RealFunction, Callable[..., Any]]:
    """Return an expression in the distance u > 0 from an end, x = end ± u, in doubles and balls.

    Balls carry the bits that u is below 1 twice more: what vanishes at the end like u² is told.
    Where doubles cancel, a table of balls in log u stands for them.
    """
    names = names_of_masses([expression])
    moved = _around_end(expression.xreplace(names), x, end + inward * DISTANCE)
    moved = moved.xreplace({name: mass for mass, name in names.items()})
    ball = compile_arb(moved, [DISTANCE])
    double = compile_numpy(moved, [DISTANCE])

    def precise_ball(u: Any, analytic: bool = False) -> Any:
        size = u.abs_lower()
        depth = 0.0
        if size > 0 and size.is_finite():
            depth = -float(size.log().mid()) / math.log(2)
        depth = min(max(depth, 0.0), 4 * MANY_BITS)
        with ctx.workprec(ctx.prec + 256 * math.ceil(depth / 128)):
            return ball(u, analytic=analytic)

    if _agrees_with_balls(double, precise_ball, [u * width for u in _DISTANCES]):
        return double, precise_ball
    table = _table_in_log(precise_ball, width)

    def in_table(u: Any) -> Any:
        is_near = np.real(u) < width / 2
        return np.where(is_near, table(np.log(u)), double(u))

    return in_table, precise_ball


def _agrees_with_balls(
    function: RealFunction, ball: Callable[..., Any], places: list[float]
) -> bool:
    """Return whether doubles give what balls do."""
    with ctx.workprec(MANY_BITS):
        exact = [float(ball(arb(x)).mid()) for x in places]
    with np.errstate(all="ignore"):
        doubles = function(np.asarray(places)).tolist()
    for value, exact_value in zip(doubles, exact, strict=True):
        if not abs(value - exact_value) <= _CLOSE * (1.0 + abs(exact_value)):
            return False
    return True


def _constant_function(value: float) -> RealFunction:
    return lambda x: np.full(np.shape(x), value)


def _finite_step(name: str, pair: Pair) -> Step:
    """Return the step of a finite list."""
    masses = []
    losses = []
    with ctx.workprec(BITS):
        for _, p, q in masses_of_points(pair):
            if p == 0:
                continue
            p_ball = _mass_ball(p)
            q_ball = _mass_ball(q)
            masses.append(p_ball)
            # log(p/q), which is 0 exactly where p and q are one
            if q_ball == 0:
                losses.append(arb.pos_inf())
            else:
                losses.append((p_ball / q_ball).log())
        log_p = [float(p.log().mid()) for p in masses]
    points = zip(masses, losses, strict=True)
    point_loss = []
    for loss in losses:
        if loss.is_finite():
            point_loss.append(float(loss.mid()))
        else:
            point_loss.append(math.inf)
    return Step(
        name,
        point_loss=np.asarray(point_loss),
        point_log_p=np.asarray(log_p),
        point_balls=tuple((mass, loss) for mass, loss in points if loss.is_finite()),
    )


def _mass_ball(probability: sp.Expr) -> arb:
    """Return a ball around a probability."""
    if isinstance(probability, sp.Rational):
        return arb(fmpq(int(probability.p), int(probability.q)))
    ball: arb = compile_arb(probability, [])().real
    return ball
