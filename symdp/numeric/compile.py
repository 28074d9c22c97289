"""From the derived pieces of a pair to numbers: the only place where derivation meets numerics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from flint import arb, ctx, fmpq

from symdp.balls.cuts import DISTANCE
from symdp.balls.mass import pieces_in_numbers
from symdp.density.exponents import exponents
from symdp.density.normal_form import exponential_terms, log_form
from symdp.density.pieces import flat_masses, masses_of_points
from symdp.density.records import Piece
from symdp.density.signs import is_nearly_zero
from symdp.emit import compile_arb, compile_numpy
from symdp.emit.arb import constant_ball
from symdp.emit.exact import BITS, real_ball
from symdp.emit.log_sum_exp import ExpMinusOne
from symdp.emit.mass import names_of_masses
from symdp.errors import InputError, at
from symdp.interrupt import generation
from symdp.model.allocation import MOST_OUTCOMES, allocated_steps, outcomes
from symdp.model.family import Family
from symdp.model.relation import SUBSTITUTION
from symdp.model.sampling import Radial
from symdp.numeric.closed import ClosedMasses
from symdp.numeric.formula import continues, law_of_formula
from symdp.numeric.laws.table import LogDensityTable
from symdp.numeric.loss import BITS as END_BITS
from symdp.numeric.loss import LossLaw
from symdp.numeric.step import (
    RealFunction,
    SmoothPiece,
    Step,
    Stretch,
    paired,
    rounded,
    together,
)

if TYPE_CHECKING:
    from symdp.emit.arb import ArbFunction
    from symdp.model.mechanism import Mechanism
    from symdp.model.pair import Pair
    from symdp.numeric.laws.family import FamilyLaw
    from symdp.numeric.step import Moment

# of a table in log u, down from half a piece's length: far out a function of u is a line
_DEPTHS = (700.0, *range(44, 4, -2), 4.0, 3.5, 3.0, 2.5, 2.0, 1.5, 1.0, 0.5, 0.0)
_MANY_BITS = 1_000  # carried next to an end, where terms cancel
_DISTANCES = [2.0**-k for k in (2, 4, 8, 14, 20, 27, 34, 45, 60, 90)]  # of a piece's length
_CLOSE = 1e-11  # of doubles to balls; where they cancel they are far apart
# functions that are not smooth
_KINKS = (sp.Piecewise, sp.Heaviside, sp.Abs, sp.sign, sp.Min, sp.Max, sp.floor, sp.ceiling)


def loss_law(mechanism: Mechanism, direction: str) -> LossLaw:
    """Return the numeric law of one step's privacy loss in one direction, compiled once."""
    side = "remove" if mechanism.is_mirrored else direction  # both have one law then
    return _loss_law(mechanism.require_concrete(), side, generation())


def pair_law(pair: Pair) -> LossLaw:
    """Return the numeric law of a dominating pair without free parameters, compiled once."""
    return _pair_law(pair, generation())


@lru_cache(maxsize=256)
def _loss_law(mechanism: Mechanism, direction: str, _: int) -> LossLaw:
    allocated = _allocated_law(mechanism, direction)
    if allocated is not None:
        return allocated
    if isinstance(mechanism.source, Radial):
        return _of_vectors(mechanism, direction)
    if isinstance(mechanism.source, Family):
        return _of_family(mechanism, mechanism.source, direction)
    if direction == "add":
        other = _loss_law(mechanism, "remove", generation())
        if other.is_reversible:
            return other.reversed()
    formula = law_of_formula(mechanism, direction)
    return formula or _compiled(mechanism.pair(direction), mechanism.name)


@lru_cache(maxsize=64)
def _descent(density: sp.Expr, r: sp.Symbol) -> tuple[RealFunction, RealFunction]:
    """Return −log g and its slope at lengths above 0."""
    if density.has(*_KINKS):
        raise InputError("its density has kinks or ends, which noise on vectors may not have")
    psi = -log_form(density, r, sp.S.One).to_expression()
    return compile_numpy(psi, [r]), compile_numpy(sp.diff(psi, r), [r])


def _of_vectors(mechanism: Mechanism, direction: str) -> LossLaw:
    """Return the law of noise on vectors, whose log density and its slope are compiled."""
    from symdp.numeric.laws.radial import radial_law

    source, r = mechanism.source, sp.Symbol(mechanism.variable.name, positive=True)
    assert isinstance(source, Radial)
    if source.dimension == 1:
        return loss_law(mechanism.on_a_line.normalized(), direction)
    sampling = mechanism.sampling
    twice = 2 if mechanism.neighbours == SUBSTITUTION else 1
    with at(mechanism.summary):
        functions = _descent(source.density.xreplace({mechanism.variable: r}), r)
        shape = int(source.dimension), float(twice * source.sensitivity)
        rate = 1.0 if sampling is None else float(sampling.rate)
        return radial_law(functions, shape, rate, direction, mechanism.name)


def known_law(mechanism: Mechanism, source: Family, direction: str) -> FamilyLaw:
    """Return the law of a family, K compiled as it holds at complex places."""
    from symdp.density.log_moment import continued
    from symdp.numeric.laws.family import FamilyLaw

    z = mechanism.variable
    formula = continued(source.log_moment, z)
    functions = compile_arb(formula, [z]), compile_numpy(formula, [z])
    law = FamilyLaw(mechanism.name, *functions, direction)
    if source.lattice:
        sign = 1 if direction == "remove" else -1
        with ctx.workprec(_MANY_BITS):
            start, step = (sign * compile_arb(part, [])().real for part in source.lattice)
        law.lattice = start, step
    return law


def _of_family(mechanism: Mechanism, source: Family, direction: str) -> LossLaw:
    """Return the law of a family, its losses listed where they lie on a lattice."""
    from symdp.numeric.laws.family import listed

    with at(mechanism.summary):
        law = known_law(mechanism, source, "remove" if source.lattice else direction)
        return law if law.lattice is None else listed(law, law.lattice, direction)


@lru_cache(maxsize=256)
def _pair_law(pair: Pair, _: int) -> LossLaw:
    return _compiled(pair, "the pair")


def _compiled(pair: Pair, name: str) -> LossLaw:
    """Return the law of a pair from a derivation of its own."""
    variable = pair.variable
    if pair.support.kind == "points":
        step = _finite_step(name, pair)
        return LossLaw(step, None, read_moment=lambda: _moment(pair))
    derived, integer = pieces_in_numbers(pair), pair.is_discrete
    compiled = compiled_pieces(pair)
    smooth = [piece for _, piece in compiled if piece is not None]
    flat = flat_masses([p for p, piece in compiled if piece is None], variable)
    step = _with_atoms(Step(name, tuple(smooth)), flat)
    charged = [p for p in derived if p.log_p is not None and p.log_q is not None]
    is_reversible = not integer and bool(charged)
    swapped = [_exchanged(p) for p in derived if p.log_p is None] if is_reversible else []
    only_q = [_smooth_piece(piece, variable, integer) for piece in swapped]
    return LossLaw(step, None, is_reversible, only_q=only_q, read_moment=lambda: _moment(pair))


def _moment(pair: Pair) -> Moment | None:
    """Return M of a pair as a sum of rational functions times exponentials, if it is one."""
    from symdp.density.exponential_sum import exponential_sum
    from symdp.numeric.residues import moment_of

    exponentials = exponential_sum(pair)
    return None if exponentials is None else moment_of(exponentials)


@lru_cache(maxsize=256)
def compiled_pieces(pair: Pair) -> tuple[tuple[Piece, SmoothPiece | None], ...]:
    """Return the pieces with an outcome in numbers; None for one loss of many integers."""
    integer = pair.is_discrete
    outcomes = [p for p in pieces_in_numbers(pair) if p.log_p is not None]
    flat = flat_masses(outcomes, pair.variable) if integer else {}
    return tuple(
        (p, None if p in flat else _smooth_piece(p, pair.variable, integer)) for p in outcomes
    )


def _with_atoms(step: Step, masses: Mapping[Piece, arb]) -> Step:
    """Return a step of no points with pieces of constant loss as points."""
    with ctx.workprec(BITS):
        balls = [(mass, compile_arb(piece.loss, [])().real) for piece, mass in masses.items()]
        return replace(
            step,
            point_loss=np.asarray([float(loss.mid()) for _, loss in balls]),
            point_log_p=np.asarray([float(mass.log().mid()) for mass, _ in balls]),
            point_balls=tuple((mass, loss) for mass, loss in balls if loss.is_finite()),
        )


def _exchanged(piece: Piece) -> Piece:
    """Return a piece where P vanishes with P and Q exchanged."""
    terms = piece.log_q_terms
    return replace(
        piece, log_p=piece.log_q, log_q=None, loss=sp.oo, log_p_terms=terms, log_q_terms=()
    )


def _allocated_law(mechanism: Mechanism, direction: str) -> LossLaw | None:
    """Return the law of random allocation, None for other schemes."""
    steps = allocated_steps(mechanism)
    if steps is None:
        return None
    if steps == 1:
        return loss_law(replace(mechanism, sampling=None), direction)
    from symdp.numeric.laws.allocation import allocated_law, listed_step

    unsampled = replace(mechanism, sampling=None)
    if unsampled.support.kind != "points":
        return allocated_law(loss_law(unsampled, "remove"), steps, direction)
    pair = unsampled.pair()
    if outcomes(pair, steps) > MOST_OUTCOMES:
        raise InputError(
            f"{mechanism.summary}: {outcomes(pair, steps)} numbers of outcomes; at most "
            f"{MOST_OUTCOMES} are listed: fewer steps or fewer points are needed"
        )
    with ctx.workprec(BITS):
        p, q = ([compile_arb(mass, [])().real for mass in law] for law in (pair.P, pair.Q))
    step = listed_step(mechanism.name, p, q, steps, direction)
    return LossLaw(step, None)


def _smooth_piece(piece: Piece, variable: sp.Symbol, integer: bool) -> SmoothPiece:
    infinite = piece.loss == sp.oo
    ball_log_p = compile_arb(piece.log_p, [variable])
    ball_loss = None if infinite else compile_arb(piece.loss, [variable])
    # Where two of the three continue beyond an end, so does their difference, log Q.
    balls = [ball_log_p] if ball_loss is None else [ball_log_p, ball_loss]
    # An end that no ball can enclose is left where it is.
    with suppress(InputError):
        stretched = None if integer else _stretched(piece, variable, balls)
        if stretched is not None:
            return stretched
    log_p = compile_numpy(piece.log_p, [variable])
    return SmoothPiece(
        lower=float(sp.N(piece.lower, 40)),
        upper=float(sp.N(piece.upper, 40)),
        log_p=log_p,
        log_q=_constant(-math.inf) if infinite else compile_numpy(piece.log_q, [variable]),
        loss=_constant(math.inf) if infinite else compile_numpy(piece.loss, [variable]),
        ball=paired(ball_log_p, ball_loss),
        log_terms=together([compile_numpy(term, [variable]) for term in _terms(piece)]),
        flat=infinite or piece.slope == "constant",
        monotone=piece.slope in ("increasing", "decreasing"),
        integer=integer,
        ends=_exact_ends(piece),
        closed=_closed(piece, variable),
    )


def _closed(piece: Piece, variable: sp.Symbol) -> ClosedMasses | None:
    """Return the integrals of P and Q, None where no formula gives them."""
    read = exponents(piece, variable)
    if read is None:
        return None
    with ctx.workprec(BITS):
        sides = [
            tuple((real_ball(a), real_ball(b), real_ball(c)) for a, b, c in side) for side in read
        ]
    return ClosedMasses(sides[0], sides[1])


def _exact_ends(piece: Piece) -> tuple[arb, ...]:
    """Return balls around the finite ends that can be enclosed."""
    ends: list[arb] = []
    for end in (piece.lower, piece.upper):
        with suppress(InputError):
            if end.is_finite:
                ends.append(constant_ball(end, END_BITS).real)
    return tuple(ends)


def _terms(piece: Piece) -> list[sp.Expr]:
    return list(dict.fromkeys((*piece.log_p_terms, *piece.log_q_terms)))


def _stretched(piece: Piece, variable: sp.Symbol, balls: list[ArbFunction]) -> SmoothPiece | None:
    """Return the piece with its singular finite ends at infinity, None where it has none.

    A singular end at 0 needs that only where the expressions cancel there.
    """
    infinite = piece.loss == sp.oo
    listed = [piece.log_p] if infinite else [piece.log_p, piece.log_q, piece.loss]
    if piece.lower == piece.upper:
        return None

    length = piece.upper - piece.lower
    width = float(sp.N(length, 40)) if length.is_finite else 1.0
    singular = [
        (end, inward)
        for end, inward in ((piece.lower, 1), (piece.upper, -1))
        if end.is_finite
        if not continues(
            lambda x, analytic: [b(x, analytic=analytic) for b in balls], real_ball(end)
        )
    ]
    if all(end == 0 and _is_resolved(listed, variable, inward * width) for end, inward in singular):
        return None
    near = [[_near(f, variable, *end, width) for f in listed] for end in singular]
    terms = [[_near(f, variable, *end, width) for f in _terms(piece)] for end in singular]
    kept = lru_cache(maxsize=8)(lambda _precision: real_ball(length))
    stretch = Stretch((lambda: kept(ctx.prec)) if length.is_finite else None, len(singular) == 2)
    log_p, *others = zip(*near, strict=True)
    loss = stretch.in_doubles(others[1], False) if others else None
    return SmoothPiece(
        lower=stretch.lower,
        upper=stretch.upper,
        log_p=stretch.in_doubles(log_p, True),
        log_q=stretch.in_doubles(others[0], True) if others else _constant(-math.inf),
        loss=loss or _constant(math.inf),
        ball=paired(
            stretch.in_balls([ball for _, ball in log_p], True),
            stretch.in_balls([ball for _, ball in others[1]], False) if others else None,
        ),
        log_terms=together([stretch.in_doubles(term, True) for term in zip(*terms, strict=True)]),
        flat=infinite or piece.slope == "constant",
        monotone=piece.slope in ("increasing", "decreasing"),
    )


def _is_resolved(listed: list[sp.Expr], x: sp.Symbol, width: float) -> bool:
    """Return whether doubles give what balls do down to tiny x."""
    places = [u * width for u in _DISTANCES]
    return all(_agree(compile_numpy(f, [x]), compile_arb(f, [x]), places) for f in listed)


def _near(
    expression: sp.Expr, x: sp.Symbol, end: sp.Expr, inward: int, width: float
) -> tuple[RealFunction, Callable[..., Any]]:
    """Return an expression in the distance u > 0 from an end, x = end ± u, in doubles and balls.

    Balls carry the bits that u is below 1 twice more: what vanishes at the end like u² is told.
    Where doubles cancel, a table of balls in log u stands for them.
    """
    moved_place, names = end + inward * DISTANCE, names_of_masses([expression])

    def moved(node: sp.Expr) -> sp.Expr:
        if not node.is_polynomial(x):
            shifted = node.func(*map(moved, node.args))
            terms = exponential_terms(shifted, DISTANCE) if shifted.is_Add else None
            heights = [(c * sp.exp(a.subs(DISTANCE, 0)), a) for c, a in terms or ()]
            total = sp.Add(*(height for height, _ in heights))
            if not terms or not total.is_finite or not is_nearly_zero(total):
                return shifted
            rises = ((height, sp.expand(a - a.subs(DISTANCE, 0))) for height, a in heights)
            return sp.Add(*(height * ExpMinusOne(rise) for height, rise in rises if rise != 0))
        shifted = sp.expand(node.subs(x, moved_place))
        constant, moving = shifted.as_independent(DISTANCE, as_Add=True)
        return sp.factor_terms(moving) if is_nearly_zero(constant) else shifted

    near = moved(expression.xreplace(names)).xreplace({name: mass for mass, name in names.items()})
    ball, double = compile_arb(near, [DISTANCE]), compile_numpy(near, [DISTANCE])

    def told(u: Any, analytic: bool = False) -> Any:
        size = u.abs_lower()
        depth = -float(size.log().mid()) / math.log(2) if size > 0 and size.is_finite() else 0.0
        with ctx.workprec(ctx.prec + 256 * math.ceil(min(max(depth, 0.0), 4 * _MANY_BITS) / 128)):
            return ball(u, analytic=analytic)

    if _agree(double, told, [u * width for u in _DISTANCES]):
        return double, told
    pair_at, top = paired(told, None), math.log(width / 2)

    def between(low: float, high: float) -> Any:
        def function(t: Any) -> Any:
            depths = (low + 0.5 * (high - low) * (1.0 + t)).tolist()
            return np.asarray([rounded(pair_at, math.exp(depth))[0] for depth in depths])

        return np.polynomial.chebyshev.chebinterpolate(function, 19)

    edges = top - np.asarray(_DEPTHS)
    series = [between(low, high) for low, high in pairwise(edges.tolist())]
    table = LogDensityTable(edges, np.asarray(series), np.zeros(edges.size - 1))

    def in_table(u: Any) -> Any:
        return np.where(np.real(u) < width / 2, table(np.log(u)), double(u))

    return in_table, told


def _agree(function: RealFunction, ball: Callable[..., Any], places: list[float]) -> bool:
    """Return whether doubles give what balls do."""
    with ctx.workprec(_MANY_BITS):
        exact = [float(ball(arb(x)).mid()) for x in places]
    with np.errstate(all="ignore"):
        doubles = function(np.asarray(places)).tolist()
    pairs = zip(doubles, exact, strict=True)
    return all(
        abs(value - exact_value) <= _CLOSE * (1.0 + abs(exact_value))
        for value, exact_value in pairs
    )


def _constant(value: float) -> RealFunction:
    return lambda x: np.full(np.shape(x), value)


def _finite_step(name: str, pair: Pair) -> Step:
    """Return the step of a finite list."""
    with ctx.workprec(BITS):
        masses = [(_mass(p), _mass(q)) for _, p, q in masses_of_points(pair) if p != 0]
        # log(p/q), which is 0 exactly where p and q are one
        losses = [arb.pos_inf() if q == 0 else (p / q).log() for p, q in masses]
        listed = tuple(zip((p for p, _ in masses), losses, strict=True))
        log_p = [float(p.log().mid()) for p, _ in masses]
    balls = tuple((p, loss) for p, loss in listed if loss.is_finite())
    point_loss = [float(loss.mid()) if loss.is_finite() else math.inf for loss in losses]
    return Step(name, (), np.asarray(point_loss), np.asarray(log_p), balls)


def _mass(probability: sp.Expr) -> arb:
    """Return a ball around a probability."""
    if isinstance(probability, sp.Rational):
        return arb(fmpq(int(probability.p), int(probability.q)))
    ball: arb = compile_arb(probability, [])().real
    return ball
