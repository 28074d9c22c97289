"""Where densities have kinks or jumps, and what they are on the smooth stretches between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

import sympy as sp
from sympy.core.relational import Relational

from symdp.density.gammas import with_ends
from symdp.density.roots import RootsUnknownError, known_roots, roots_between
from symdp.density.signs import interior_point, sign_of, sorted_points, values_wanted
from symdp.errors import InputError

_KINKED = (sp.Abs, sp.sign, sp.Heaviside, sp.Max, sp.Min, sp.Piecewise)
_REFUSED = (sp.floor, sp.ceiling, sp.Mod, sp.DiracDelta, sp.KroneckerDelta, sp.re, sp.im, sp.arg)


@dataclass(frozen=True)
class Stretch:
    """Expressions that are smooth between two ends; equal ends mean the single point."""

    lower: sp.Expr
    upper: sp.Expr
    expressions: tuple[sp.Expr, ...]

    @property
    def is_point(self) -> bool:
        """Whether the stretch is one point of an integer support."""
        return bool(self.lower == self.upper)

    @property
    def inside(self) -> sp.Expr:
        """A point of the stretch."""
        if self.is_point:
            return self.lower
        return interior_point(self.lower, self.upper)


def smooth_stretches(
    expressions: tuple[sp.Expr, ...], x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> list[Stretch]:
    """Cut (lower, upper) at every kink and resolve Abs, sign, Heaviside, Max, Min and Piecewise.

    The innermost kinks are resolved first, then those whose arguments became smooth.  For an
    integer variable every kink at a whole number also becomes a stretch of its own, because
    sign(0), Heaviside(0) and Piecewise conditions have a value of their own there.
    """
    for expression in expressions:
        refused = expression.atoms(*_REFUSED)
        if any(x in node.free_symbols for node in refused):
            name = next(iter(refused)).func.__name__
            raise InputError(f"a density may not contain {name} of {x}; write it with Piecewise")
    if x.is_integer:
        expressions = tuple(with_ends(masses, x, lower, upper) for masses in expressions)
    return list(_resolve(Stretch(lower, upper, expressions), x))


def _resolve(stretch: Stretch, x: sp.Symbol) -> Iterator[Stretch]:
    nodes = _innermost(stretch.expressions, x)
    if not nodes:
        yield stretch
        return
    for part in _cut_stretch(stretch, _kinks(nodes, stretch, x), bool(x.is_integer)):
        rules = {node: _resolved(node, x, part) for node in nodes}
        yield from _resolve(_substituted(part, rules), x)


def _innermost(expressions: Iterable[sp.Expr], x: sp.Symbol) -> list[sp.Basic]:
    """Kinked functions of x whose own arguments (or conditions) have no kink."""
    kinks = []
    for expression in expressions:
        for node in expression.atoms(*_KINKED):
            if x in node.free_symbols and not any(
                inner.free_symbols & {x}
                for part in _deciding(node)
                for inner in part.atoms(*_KINKED)
            ):
                kinks.append(node)
    return sorted(set(kinks), key=sp.default_sort_key)


def _deciding(node: sp.Basic) -> tuple[sp.Basic, ...]:
    """The parts of a kinked function that decide which branch holds."""
    if isinstance(node, sp.Piecewise):
        return tuple(condition for _, condition in node.args)
    return tuple(node.args)


def _switches(node: sp.Basic, x: sp.Symbol) -> Iterator[sp.Expr]:
    """Expressions at whose zeros the node changes its branch."""
    if isinstance(node, sp.Piecewise):
        for condition in _deciding(node):
            for relation in condition.atoms(Relational):
                if x in relation.free_symbols:
                    yield relation.lhs - relation.rhs
            if not isinstance(condition, sp.logic.boolalg.Boolean):
                raise InputError(f"cannot read the Piecewise condition {condition}")
    elif isinstance(node, sp.Max | sp.Min):
        for first, second in combinations(node.args, 2):
            yield first - second
    else:
        yield node.args[0]


def _kinks(nodes: Iterable[sp.Basic], stretch: Stretch, x: sp.Symbol) -> list[sp.Expr]:
    points: set[sp.Expr] = set()
    if stretch.is_point:
        return []
    for node in nodes:
        for switch in _switches(node, x):
            if x not in switch.free_symbols:
                continue
            endless = stretch.lower is -sp.oo or stretch.upper is sp.oo
            waves = switch.atoms(sp.functions.elementary.trigonometric.TrigonometricFunction)
            if endless and any(x in wave.free_symbols for wave in waves):
                raise InputError(
                    f"{node} has infinitely many kinks on an unbounded support; "
                    "bound the support or write the density without it"
                )
            try:
                points.update(roots_between(sp.expand(switch), x, stretch.lower, stretch.upper))
            except RootsUnknownError as error:
                raise InputError(f"cannot locate the kinks of {node}: {error}") from error
    return sorted_points(points, f"the kinks (values of {x})")


def _cut_stretch(stretch: Stretch, points: list[sp.Expr], is_integer: bool) -> Iterator[Stretch]:
    expressions = stretch.expressions
    lower = stretch.lower
    for point in points:
        yield Stretch(lower, point, expressions)
        if is_integer and _is_whole(point):
            yield Stretch(point, point, expressions)
        lower = point
    yield Stretch(lower, stretch.upper, expressions)


def _is_whole(point: sp.Expr) -> bool:
    if point.is_integer is None:
        raise InputError(f"whether the kink {point} is a whole number is open; give it a value")
    return bool(point.is_integer)


def _resolved(node: sp.Basic, x: sp.Symbol, stretch: Stretch) -> sp.Expr:
    """Return the smooth expression that equals `node` on the stretch."""
    at = stretch.inside
    if isinstance(node, sp.Piecewise):
        for value, condition in node.args:
            if _holds(condition, x, at):
                return value
        raise InputError(f"no case of {node} covers {x} = {at}; add a last case (0, True)")
    if isinstance(node, sp.Max | sp.Min):
        best = node.args[0]
        wanted = 1 if isinstance(node, sp.Max) else -1
        for candidate in node.args[1:]:
            if _sign_at(candidate - best, x, at) == wanted:
                best = candidate
        return best
    argument = node.args[0]
    sign = _sign_at(argument, x, at)
    if isinstance(node, sp.Abs):
        if sign < 0:
            return -argument
        return argument
    if isinstance(node, sp.sign):
        return sp.Integer(sign)
    return node.func(sp.Integer(sign), *node.args[1:])


def _sign_at(expression: sp.Expr, x: sp.Symbol, at: sp.Expr) -> int:
    sign = sign_of(sp.expand(expression.subs(x, at)))
    if sign is None:
        names = ", ".join(sorted(s.name for s in expression.free_symbols - {x}))
        raise InputError(
            f"the sign of {expression} at {x} = {at} depends on parameter values; "
            f"{values_wanted(names or 'the parameters')}"
        )
    return sign


def _holds(condition: sp.Basic, x: sp.Symbol, at: sp.Expr) -> bool:
    """Decide a condition at one point."""
    rules = {}
    for relation in condition.atoms(Relational):
        gap = relation.lhs - relation.rhs
        sign = sp.Integer(_sign_at(gap, x, at))
        is_true = bool(relation.func(sign, 0))
        rules[relation] = sp.true if is_true else sp.false
    value = condition.xreplace(rules)
    if value not in (sp.true, sp.false):
        raise InputError(f"cannot decide the Piecewise condition {condition} at {x} = {at}")
    return bool(value)


def _substituted(stretch: Stretch, rules: dict[sp.Basic, sp.Expr]) -> Stretch:
    expressions = tuple(expression.xreplace(rules) for expression in stretch.expressions)
    return Stretch(stretch.lower, stretch.upper, expressions)


def cut_at(stretch: Stretch, points: Iterable[sp.Expr], is_integer: bool) -> list[Stretch]:
    """Cut a smooth stretch at further points (zeros or poles of its densities)."""
    return list(_cut_stretch(stretch, sorted_points(set(points), "the zeros"), is_integer))


def singular_points(
    expression: sp.Expr, x: sp.Symbol, lower: sp.Expr, upper: sp.Expr
) -> set[sp.Expr]:
    """Return places between two ends where a power or a logarithm in an expression blows up.

    Those of log(1 + 4/x²) are 0 alone: a sum of a density that is positive elsewhere hides them.
    """
    places: set[sp.Expr] = set()
    for node in expression.atoms(sp.Pow, sp.log):
        if isinstance(node, sp.Pow):
            base, power = node.as_base_exp()
            blows_up = power.is_extended_negative or not power.is_integer
        else:
            (base,) = node.args
            blows_up = True
        if blows_up and x in base.free_symbols and not base.is_positive:
            places.update(known_roots(base, x, lower, upper) or ())
    return places
