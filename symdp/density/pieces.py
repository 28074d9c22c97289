"""From a dominating pair to the smooth pieces of its privacy loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sympy as sp
from flint import arb, ctx

from symdp.density.breakpoints import Stretch, cut_at, singular_points, smooth_stretches
from symdp.density.gammas import in_log_gammas, with_ends, with_fewer_gammas
from symdp.density.mixture import Term, additive_terms, heaviest, log_mixture, log_ratio
from symdp.density.normal_form import LogForm, log_form, occurrences
from symdp.density.records import Piece, Point, mapped
from symdp.density.roots import known_roots
from symdp.density.signs import interior_point, random_values, sign_of
from symdp.density.turning import NAMES, slope_numerator, trend
from symdp.emit import compile_arb
from symdp.emit.enclose import enclose_sum
from symdp.emit.exact import real_ball
from symdp.emit.mass import names_of_masses
from symdp.errors import AccuracyError, InputError
from symdp.model import tidy
from symdp.tolerances import BITS, SAME

if TYPE_CHECKING:
    from symdp.model.pair import Pair


_Sides = tuple[tuple[Term, ...], tuple[Term, ...]]  # the terms of P and of Q


@dataclass(frozen=True)
class SmoothPair:
    """P and Q on one smooth stretch, as terms in normal form; no terms where a density is 0."""

    variable: sp.Symbol
    lower: sp.Expr
    upper: sp.Expr
    p_terms: tuple[Term, ...]
    q_terms: tuple[Term, ...]
    reference: LogForm
    p_hints: tuple[sp.Expr, ...] = ()
    q_hints: tuple[sp.Expr, ...] = ()
    place: sp.Expr | None = None  # of an atom

    @property
    def log_p(self) -> sp.Expr | None:
        """Log density of P, None where P is 0."""
        return self._log_of_terms(self.p_terms)

    @property
    def log_q(self) -> sp.Expr | None:
        """Log density of Q, None where Q is 0."""
        return self._log_of_terms(self.q_terms)

    @property
    def loss(self) -> sp.Expr:
        """log P − log Q, ±oo where one of them is 0."""
        if not self.q_terms:
            return sp.oo
        if not self.p_terms:
            return -sp.oo
        return log_ratio(self.p_terms, self.q_terms, self.reference, self.variable)

    def _log_of_terms(self, terms: tuple[Term, ...]) -> sp.Expr | None:
        if not terms:
            return None
        ends = [end for end in (self.lower, self.upper) if end.is_infinite]
        reference = heaviest(terms, self.reference, self.variable, ends)
        return log_mixture(terms, reference, self.variable)


def pieces(pair: Pair) -> tuple[Piece, ...]:
    """Return the smooth pieces of a pair; where the loss turns is not asked.

    Every zero of an argument of Abs, sign, Min, Max, Heaviside or a Piecewise condition and every
    zero of a density ends a piece.  Ends are exact where a
    formula gives them, else rationals within 2^−200 of the true place.  Stretches where P and Q
    are both 0 are left out; with an integer variable both ends of a piece belong to it.  Atoms
    beside the densities come last, each as a flat piece of length 1, whose `place` says where it
    is: the interval of such a piece has no meaning beyond its length.  A finite list has none (see
    `points`); those of a public choice have the probability of their pair on both densities.

    What densities are divided by is a symbol as long as SymPy works on them: it cancels in the
    loss, and no question about a sign waits for its value.
    """
    if pair.support.kind == "points":
        return ()
    if pair.alternatives:
        weighed: list[Piece] = []
        for weight, alternative in pair.alternatives:
            weighed += [_weighed(piece, weight) for piece in pieces(alternative)]
        return tuple(weighed)
    x = pair.variable
    names = names_of_masses(pair.expressions())
    named = mapped(pair, lambda density: density.xreplace(names))
    smooth_pieces = joined([_piece(smooth, x) for smooth in smooth_pairs(named)], x)
    masses = {name: mass for mass, name in names.items()}
    return tuple(piece.replaced(masses) for piece in smooth_pieces)


def _weighed(piece: Piece, weight: sp.Expr) -> Piece:
    """Return a piece with both densities multiplied; the loss stays as it is."""
    log = sp.log(weight)
    return replace(
        piece,
        log_p=None if piece.log_p is None else piece.log_p + log,
        log_q=None if piece.log_q is None else piece.log_q + log,
        log_p_terms=tuple(term + log for term in piece.log_p_terms),
        log_q_terms=tuple(term + log for term in piece.log_q_terms),
    )


def points(pair: Pair) -> tuple[Point, ...]:
    """Return the points of a finite list with their probabilities and losses."""
    return tuple(Point(value, p, q, _point_loss(p, q)) for value, p, q in masses_of_points(pair))


def masses_of_points(pair: Pair) -> Iterator[tuple[sp.Expr, sp.Expr, sp.Expr]]:
    """Yield the points of a finite list with their probabilities under P and Q."""
    if pair.support.kind != "points":
        return
    for index, value in enumerate(pair.support.points):
        masses = [_entry(component, index) for component in pair.components]
        sides = []
        for weights in (pair.p_weights, pair.q_weights):
            terms = [weight * mass for weight, mass in zip(weights, masses, strict=True)]
            sides.append(sp.Add(*terms))
        p, q = sides
        if not (p == 0 and q == 0):
            yield value, p, q


def _entry(component: sp.Expr | tuple[sp.Expr, ...], index: int) -> sp.Expr:
    if not isinstance(component, tuple):
        raise InputError("a component of a finite list must give one probability for each point")
    return component[index]


def _point_loss(p: sp.Expr, q: sp.Expr) -> sp.Expr:
    if q == 0:
        return sp.oo
    if p == 0:
        return -sp.oo
    return sp.log(_turned(sp.powsimp(tidy.factor(tidy.cancel(tidy.together(p / q))))))


def _turned(ratio: sp.Expr) -> sp.Expr:
    """Write (r − 1)/(s − 1) as (1 − r)/(1 − s): factors turned to be positive for r, s below 1.

    What is raised to a power that holds a tilt, later on, must be positive.
    """
    values = random_values(ratio.free_symbols, 1, [str(s.name) for s in ratio.free_symbols])
    turned = sp.S.One
    sign = 1
    for factor in sp.Mul.make_args(ratio):
        base, power = factor.as_base_exp()
        if base.is_Add and power.is_Integer and sign_of(base.subs(values)) == -1:
            sign *= (-1) ** int(power)
            turned *= sp.expand(-base) ** power
        else:
            turned *= factor
    if sign == 1:
        return turned
    return ratio


def smooth_pairs(pair: Pair) -> Iterator[SmoothPair]:
    """Yield the pair on stretches between kinks and zeros, from left to right, then its atoms."""
    x = pair.variable
    is_integer = bool(x.is_integer)
    lower = pair.support.lower
    upper = pair.support.upper
    if is_integer:  # half a step of room, so that a jump at the first integer lies inside
        lower = lower - sp.S.Half
        upper = upper + sp.S.Half
    components = tuple(_expression(component) for component in pair.components)
    if is_integer:
        # Where masses end is told first: Γ(n + 3 - k)/Γ(n - k), shortened, no longer tells it.
        ended = [with_ends(component, x, lower, upper) for component in components]
        components = tuple(with_fewer_gammas(component, x) for component in ended)
    for stretch in smooth_stretches(components, x, lower, upper):
        for part in _without_zeros(stretch, x, is_integer):
            smooth = _smooth_pair(pair, part)
            if smooth is not None:
                yield smooth
    for number, (atom, masses) in enumerate(pair.atoms):
        begin = sp.Integer(number)
        smooth = _smooth_pair(pair, Stretch(begin, begin + 1, masses))
        if smooth is not None:
            yield replace(smooth, place=atom)


def _expression(component: sp.Expr | tuple[sp.Expr, ...]) -> sp.Expr:
    if isinstance(component, tuple):
        raise InputError("only a finite list may have components given point by point")
    return component


def _without_zeros(stretch: Stretch, x: sp.Symbol, is_integer: bool) -> list[Stretch]:
    """Cut a stretch at zeros and poles of its densities, where their logs are not smooth."""
    cuts: set[sp.Expr] = set()
    for expression in stretch.expressions:
        if expression == 0 or stretch.is_point:
            continue
        if not is_integer:
            cuts |= singular_points(expression, x, stretch.lower, stretch.upper)
        if expression.is_positive:
            continue
        for base in log_form(expression, x, stretch.inside).moving_logs:
            if base.is_positive:
                continue
            # Where the zeros cannot be told, a density is positive on its support, as it should be.
            cuts.update(known_roots(base, x, stretch.lower, stretch.upper) or ())
    if cuts:
        return cut_at(stretch, cuts, is_integer)
    return [stretch]


def _integer_ends(stretch: Stretch) -> tuple[sp.Expr, sp.Expr]:
    """First and last integer of a stretch whose own ends do not belong to it."""
    if stretch.is_point:
        return stretch.lower, stretch.upper
    lower, upper = stretch.lower, stretch.upper
    if lower is not -sp.oo:
        lower = sp.floor(lower) + 1
    if upper is not sp.oo:
        upper = sp.ceiling(upper) - 1
    return lower, upper


def _smooth_pair(pair: Pair, stretch: Stretch) -> SmoothPair | None:
    x = pair.variable
    lower = stretch.lower
    upper = stretch.upper
    if x.is_integer:
        lower, upper = _integer_ends(stretch)
        if sign_of(upper - lower) == -1:
            return None
    densities = [_on_stretch(density, x, stretch) for density in stretch.expressions]
    p_terms, q_terms = _terms(pair, densities, stretch)
    if not p_terms and not q_terms:
        return None
    hints = []
    for weights in (pair.p_weights, pair.q_weights):
        logs = []
        for weight, density in zip(weights, densities, strict=True):
            if weight == 0 or density == 0:
                continue
            for leaf in additive_terms(density, x, stretch.lower, stretch.upper):
                term = Term(weight * leaf.weight, leaf.form)
                logs.append(term.log())
        hints.append(tuple(logs))
    p_hints, q_hints = hints
    # f₀, the density without the record, is a term of at least one side wherever it is positive.
    reference = min((*q_terms, *p_terms), key=lambda term: term.order).form
    return SmoothPair(x, lower, upper, p_terms, q_terms, reference, p_hints, q_hints)


def _on_stretch(density: sp.Expr, x: sp.Symbol, stretch: Stretch) -> sp.Expr:
    """Return the density, 0 where it vanishes at the stretch's only point."""
    if density != 0 and stretch.is_point and density.subs(x, stretch.lower) == 0:
        return sp.S.Zero
    return density


def _terms(pair: Pair, densities: list[sp.Expr], stretch: Stretch) -> _Sides:
    """Return the terms of P and of Q: the components, or what a user's own mixture is made of."""
    x = pair.variable
    sides = []
    whole: list[tuple[Term, ...]] = []
    for weights in (pair.p_weights, pair.q_weights):
        weighted = enumerate(zip(weights, densities, strict=True))
        side = [
            (order, weight, density) for order, (weight, density) in weighted if weight and density
        ]
        terms = []
        for order, weight, density in side:
            form = log_form(density, x, stretch.inside)
            terms.append(Term(weight, form, order))
        sides.append(side)
        whole.append(tuple(terms))
    if len(sides[0]) == len(sides[1]) == 1:
        split: list[tuple[Term, ...]] = []
        for ((order, weight, density),) in sides:
            leaves = additive_terms(density, x, stretch.lower, stretch.upper)
            split.append(tuple(Term(weight * leaf.weight, leaf.form, order) for leaf in leaves))
        shapes = {term.form.moving_key() for term in (*split[0], *split[1])}
        shorter, longer = sorted(map(len, split))
        # Splitting pays where both sides are made of the same shapes, or one side is one shape.
        if longer > 1 and (shorter == 1 or len(shapes) < shorter + longer):
            forms = ((whole[0], whole[1]), (split[0], split[1]))
            return min(forms, key=lambda form: _length(form[0], form[1], x))
    return whole[0], whole[1]


def _length(p_terms: tuple[Term, ...], q_terms: tuple[Term, ...], x: sp.Symbol) -> tuple[int, int]:
    """How long the loss of these terms would be."""
    if not p_terms or not q_terms:
        return 0, 0
    reference = q_terms[0].form
    loss = log_ratio(p_terms, q_terms, reference, x)
    return occurrences(loss, x), int(sp.count_ops(loss))


def _piece(smooth: SmoothPair, x: sp.Symbol) -> Piece:
    """Return one smooth stretch, with the direction of the loss where structure alone shows it."""
    lower = smooth.lower
    upper = smooth.upper

    def open_form(expression: sp.Expr) -> sp.Expr:
        if x.is_integer:
            return expression
        return in_log_gammas(expression, x, lower, upper)

    loss = open_form(smooth.loss)
    logs = []
    for log in (smooth.log_p, smooth.log_q):
        logs.append(None if log is None else open_form(log))
    log_p, log_q = logs
    p_hints = tuple(map(open_form, smooth.p_hints))
    q_hints = tuple(map(open_form, smooth.q_hints))
    direction = trend(loss, x, lower, upper)
    if direction is None and _is_flat(loss, x, lower, upper):
        direction = 0
    return Piece(lower, upper, log_p, log_q, loss, NAMES[direction], p_hints, q_hints, smooth.place)


def _is_flat(loss: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> bool:
    """Whether a loss that holds the variable is constant: its values tell most that are not."""
    first = lower
    if lower != upper:
        first = interior_point(lower, upper)
    second = first - 3
    if lower.is_finite:
        second = (first + lower) / 2
    values = random_values(loss.free_symbols - {x}, 0)
    at_first = loss.subs(x, first).subs(values).evalf(15, maxn=100)
    at_second = loss.subs(x, second).subs(values).evalf(15, maxn=100)
    apart = at_first - at_second
    if apart.is_comparable and abs(apart) > SAME * (1 + abs(at_first)):
        return False
    return bool(slope_numerator(loss, x) == 0)


def joined(parts: list[Piece], x: sp.Symbol) -> list[Piece]:
    """Join neighbours that are one smooth piece of one direction after all."""
    pieces_so_far: list[Piece] = []
    for piece in parts:
        merged = _merged_piece(pieces_so_far[-1], piece, x) if pieces_so_far else None
        if merged is None:
            pieces_so_far.append(piece)
        else:
            pieces_so_far[-1] = merged
    return [
        _at_its_point(piece, x) if piece.lower == piece.upper else piece for piece in pieces_so_far
    ]


def _at_its_point(piece: Piece, x: sp.Symbol) -> Piece:
    """Put the only value of the variable into a piece."""

    def value(expression: sp.Expr) -> sp.Expr:
        return sp.logcombine(expression.subs(x, piece.lower), force=True)

    return replace(
        piece,
        log_p=None if piece.log_p is None else value(piece.log_p),
        log_q=None if piece.log_q is None else value(piece.log_q),
        loss=value(piece.loss),
        slope="constant",
        log_p_terms=tuple(map(value, piece.log_p_terms)),
        log_q_terms=tuple(map(value, piece.log_q_terms)),
    )


def _merged_piece(left: Piece, right: Piece, x: sp.Symbol) -> Piece | None:
    """Return one piece for two neighbours, or None where they differ."""
    if left.place is not None or right.place is not None:
        return None
    following = left.upper
    if x.is_integer:
        following = following + 1
    if sp.expand(following - right.lower) != 0:
        return None
    if right.lower == right.upper and _extends(left, right, x, right.lower):
        return replace(left, upper=right.upper)
    if left.lower == left.upper and _extends(right, left, x, left.upper):
        return replace(right, lower=left.lower)
    if left.slope == right.slope and _logs(left) == _logs(right):
        return replace(left, upper=right.upper)
    return None


def _logs(piece: Piece) -> tuple[sp.Expr | None, ...]:
    return piece.log_p, piece.log_q, piece.loss


def _extends(piece: Piece, single: Piece, x: sp.Symbol, at: sp.Expr) -> bool:
    """Whether the formulas of a piece also hold at a neighbouring single point."""
    infinite = (sp.oo, -sp.oo)
    for ours, theirs in zip(_logs(piece), _logs(single), strict=True):
        if ours == theirs:
            continue
        if ours is None or theirs is None or ours in infinite or theirs in infinite:
            return False
        gap = ours.subs(x, at) - theirs.subs(x, at)
        if not _vanishes(sp.expand(gap)):
            return False
    return True


def _vanishes(difference: sp.Expr) -> bool:
    """Whether an expression is shown to be 0; SymPy splits some logarithms of numbers for ever."""
    if difference.is_Number or difference.free_symbols:
        return bool(sp.expand_log(difference, force=True) == 0)
    return sign_of(difference) == 0


def flat_masses(pieces: Sequence[Piece], k: sp.Symbol) -> dict[Piece, arb]:
    """Return the pieces of the integers on which the loss is constant, with balls around their P.

    Those that are too many to sum, and not smooth enough for an integral, are left out.
    """
    masses = {}
    for piece in pieces:
        if piece.slope == "constant":
            with suppress(AccuracyError), ctx.workprec(BITS):
                mass = mass_of_integers(piece, k)
                if mass > 0:
                    masses[piece] = mass
    return masses


def log_exponential_mass(piece: Piece, x: sp.Symbol) -> sp.Expr | None:
    """Return the log of the mass of e^{a+rx} from an end on, of all integers or of an interval."""
    is_flat = piece.slope == "constant" or piece.loss == sp.oo
    if piece.log_p is None or not is_flat:
        return None
    rate = sp.diff(piece.log_p, x)
    is_endless = [bool(end.is_infinite) for end in (piece.lower, piece.upper)]
    if x in rate.free_symbols or rate == 0 or is_endless[0] == is_endless[1]:
        return None
    end = piece.upper
    if piece.upper.is_infinite:
        end = piece.lower
    divisor = sp.Abs(rate)
    if x.is_integer:
        divisor = 1 - sp.exp(-divisor)
    return piece.log_p.subs(x, end) - sp.log(divisor)


def mass_of_integers(piece: Piece, k: sp.Symbol) -> arb:
    """Enclose P of a piece of the integers at the working precision."""
    log_p = compile_arb(piece.log_p, [k])

    def mass(k: Any, analytic: bool = False) -> Any:
        return log_p(k, analytic=analytic).exp()

    lower = None
    upper = None
    if not piece.lower.is_infinite:
        lower = real_ball(piece.lower)
    if not piece.upper.is_infinite:
        upper = real_ball(piece.upper)
    rate = sp.diff(piece.log_p, k)
    is_ray = (lower is None) != (upper is None)
    if not rate.free_symbols and is_ray:  # a geometric series
        ratio = real_ball(rate if upper is None else -rate).exp()
        if ratio < 1:
            first: arb = mass(lower if upper is None else upper)
            return first / (1 - ratio)
    return enclose_sum(mass, lower, upper)
