"""K of laws whose logarithms are quadratics on pieces, such as normal laws of two scales.

On a piece P^{1+t} Q^{−t} is e^{γ + βx − αx²} with α, β and γ linear in t.  On a finite piece α may
change its sign with t, and no real form with error functions holds on both sides.  The integral is

    G(α, β; l, u) = ∫_l^u e^{βx − αx²} dx,

entire in α and β: erf where α > 0, exponentials where α = 0, erfi where α < 0.  K is the logarithm
of a sum of exponentials, error functions and G, right at every t at which it is finite.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp

from symdp.density.check import agrees, parameters_of, tilts_to_check, with_values
from symdp.density.integrate import definite, stretches_of, tilt_symbol
from symdp.density.pieces import pieces, points
from symdp.density.signs import random_values, sign_of
from symdp.derive.presented import NORMAL
from symdp.errors import InputError
from symdp.model import tidy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from symdp.density.normal_form import Integrand
    from symdp.model.pair import Pair

_LETTERS = (("alpha", "beta", "l", "u"), ("A", "B", "L", "U"), ("c_1", "c_2", "c_3", "c_4"))
_NAMES = ("G", "H", "W")
_ROUNDS = 2  # random values of the parameters
_STEPS = (sp.Rational(1, 64), sp.Rational(1, 4), sp.S.One, sp.Integer(4))  # beside a change
_MOST_DEEP = 300  # of β²/(4|α|), whose exponential the difference of error functions makes up for


_APPLIED = sp.core.function.AppliedUndef


@dataclass(frozen=True)
class CGFBySign:
    """K(t) with G(α, β; l, u), whose form hangs on the sign of α.

    Attributes
    ----------
    tilt
        The symbol t.
    expression
        K(t), G a function of the arguments.
    arguments
        α and β, and l and u where the pieces have several ends.
    integral
        G as an integral.
    definition
        G by the sign of α.
    changes
        For each G the coefficients (a, b) of its α = 0, which reads a·t = b.
    """

    tilt: sp.Symbol
    expression: sp.Expr
    arguments: tuple[sp.Symbol, ...]
    integral: sp.Integral
    definition: sp.Piecewise
    changes: tuple[tuple[sp.Expr, sp.Expr], ...]

    @property
    def in_normal(self) -> sp.Piecewise:
        """The definition with Φ for the error function, as it is printed."""
        alpha, beta = self.arguments[:2]
        _, low, high = self.integral.limits[0]
        root = sp.sqrt(2 * alpha)
        above = NORMAL((2 * alpha * high - beta) / root)
        below = NORMAL((2 * alpha * low - beta) / root)
        peak = sp.exp(beta**2 / (4 * alpha))
        whole = sp.sqrt(sp.pi) / sp.sqrt(alpha) * peak
        first = whole * (above - below)
        others = self.definition.args[1:]
        return sp.Piecewise((first, alpha > 0), *others, evaluate=False)

    @property
    def integrals(self) -> list[sp.Expr]:
        """What stands for G in K, one for each finite piece."""
        return sorted(self.expression.atoms(_APPLIED), key=sp.default_sort_key)

    def at(self, values: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr:
        """Return K where the tilt and all parameters have values, without G."""
        formula = self.expression.xreplace(dict(values))
        written_out = {}
        for applied in formula.atoms(_APPLIED):
            arguments = dict(zip(self.arguments, applied.args, strict=True))
            written_out[applied] = self._form_at(arguments).xreplace(arguments | dict(values))
        return formula.xreplace(written_out)

    def _form_at(self, arguments: dict[sp.Symbol, sp.Expr]) -> sp.Expr:
        """Return the form of G whose condition numbers meet."""
        for value, condition in self.definition.args:
            if condition.xreplace(arguments) == sp.true:
                return value
        raise InputError("the integral of a piece has no form at these arguments")


@lru_cache(maxsize=64)
def cgf_by_sign(
    pair: Pair, domain: tuple[sp.Expr, sp.Expr], below_one: tuple[str, ...] = ()
) -> CGFBySign | None:
    """Return K of a pair on pieces of quadratic logarithms; None for others.

    It is compared with integrals at random values of the parameters, at the tilts at which an α
    vanishes, beside them and away from them.
    """
    if pair.support.kind != "interval" or pair.alternatives or pair.atoms:
        return None
    tilt = tilt_symbol(pair)
    integrands = _without_false_kinks([stretch.tilted(tilt) for stretch in stretches_of(pair)])
    bounded = [integrand for integrand in integrands if _needs_sign(integrand)]
    if not bounded or any(_coefficients(integrand) is None for integrand in bounded):
        return None
    names = {symbol.name for symbol in parameters_of(pair)} | {tilt.name, pair.variable.name}
    ends = {(integrand.lower, integrand.upper) for integrand in bounded}
    has_one_range = len(ends) == 1
    count = 4
    if has_one_range:
        count = 2
    letters = next(some for some in _LETTERS if not names & set(some[:count]))
    name = next(some for some in _NAMES if some not in names)
    alpha, beta, low, high = sp.symbols(letters, real=True)
    if has_one_range:
        ((low, high),) = ends
    function = sp.Function(name, real=True)
    total = sp.S.Zero
    for integrand in integrands:
        constant = sp.exp(sp.expand(integrand.form.constant))
        coefficients = _coefficients(integrand)
        if integrand in bounded and coefficients is not None:
            arguments = tuple(_shortest(part, tilt) for part in coefficients)
            if not has_one_range:
                arguments += (integrand.lower, integrand.upper)
            value = function(*arguments)
        else:
            value = definite(integrand)
        if value is None:
            return None
        total += _one_exponential(value * constant)
    x = pair.variable
    found = CGFBySign(
        tilt,
        sp.log(sp.factor_terms(total)),
        (alpha, beta, low, high)[:count],
        sp.Integral(sp.exp(beta * x - alpha * x**2), (x, low, high)),
        _definition(alpha, beta, low, high, any(_may_vanish(part, tilt) for part in bounded)),
        _changes(bounded, tilt),
    )
    if all(_is_right(found, pair, domain, below_one, seed) for seed in range(_ROUNDS)):
        return found
    return None


def _one_exponential(product: sp.Expr) -> sp.Expr:
    """Return a product with one exponential, whose exponent is factored."""
    exponent = sp.S.Zero
    others = sp.S.One
    for factor in sp.Mul.make_args(sp.expand_power_exp(product)):
        base, power = factor.as_base_exp()
        if base == sp.E:
            exponent += power
        else:
            others *= factor
    return others * sp.exp(tidy.factor(sp.expand(exponent)))


def _without_false_kinks(integrands: Sequence[Integrand]) -> list[Integrand]:
    """Return the integrands with neighbours of one form as one: |x| has no kink inside a square."""
    joined: list[Integrand] = []
    for integrand in integrands:
        if joined and _continues(joined[-1], integrand):
            joined[-1] = replace(joined[-1], upper=integrand.upper)
        else:
            joined.append(integrand)
    return joined


def _continues(left: Integrand, right: Integrand) -> bool:
    if left.upper != right.lower:
        return False
    left_parts = (left.form.constant, *(_coefficients(left) or ()))
    right_parts = (right.form.constant, *(_coefficients(right) or ()))
    if len(left_parts) != len(right_parts) or len(left_parts) == 1:
        return False
    pairs = zip(left_parts, right_parts, strict=True)
    return all(sp.expand(first - second) == 0 for first, second in pairs)


def _needs_sign(integrand: Integrand) -> bool:
    """Whether a piece is finite and its α not surely above 0."""
    if integrand.lower.is_infinite or integrand.upper.is_infinite:
        return False
    coefficients = _coefficients(integrand)
    return coefficients is None or sign_of(coefficients[0]) != 1


def _coefficients(integrand: Integrand) -> tuple[sp.Expr, sp.Expr] | None:
    """Return α and β, None where the logarithm is no quadratic."""
    powers = integrand.powers()
    if powers is None or integrand.is_sum or set(powers) - {1, 2}:
        return None
    return -powers.get(2, sp.S.Zero), powers.get(1, sp.S.Zero)


def _shortest(coefficient: sp.Expr, tilt: sp.Symbol) -> sp.Expr:
    expanded = sp.expand(coefficient)
    forms = (coefficient, tidy.factor(expanded), sp.collect(expanded, tilt))
    return min(forms, key=sp.count_ops)


def _may_vanish(integrand: Integrand, tilt: sp.Symbol) -> bool:
    """Whether β may be 0 where α is."""
    alpha, beta = _coefficients(integrand) or (sp.S.Zero, sp.S.Zero)
    if alpha == 0:
        return True
    places = sp.solve(alpha, tilt)
    numerators = (sp.numer(tidy.together(beta.subs(tilt, place))) for place in places)
    return not all(sign_of(tidy.factor(numerator)) for numerator in numerators)


def _definition(
    alpha: sp.Symbol, beta: sp.Symbol, low: sp.Expr, high: sp.Expr, may_vanish: bool
) -> sp.Piecewise:
    """Return G by cases; each antiderivative between the ends."""
    half_root_of_pi = sp.sqrt(sp.pi) / 2
    top = sp.exp(beta**2 / (4 * alpha))
    root = sp.sqrt(alpha)
    turned_root = sp.sqrt(-alpha)

    def normal(end: sp.Expr) -> sp.Expr:
        return sp.erf(root * end - beta / (2 * root))

    def turned(end: sp.Expr) -> sp.Expr:
        return sp.erfi((beta - 2 * alpha * end) / (2 * turned_root))

    falling = half_root_of_pi / root * top * (normal(high) - normal(low))
    rising = half_root_of_pi / turned_root * top * (turned(high) - turned(low))
    exponential = (sp.exp(beta * high) - sp.exp(beta * low)) / beta
    vanishes = sp.Eq(alpha, 0)
    rows = [(falling, alpha > 0), (rising, alpha < 0)]
    if may_vanish:
        rows.append((exponential, sp.And(vanishes, sp.Ne(beta, 0))))
        rows.append((high - low, sp.And(vanishes, sp.Eq(beta, 0))))
    else:
        rows.append((exponential, vanishes))
    return sp.Piecewise(*rows, evaluate=False)


def _changes(
    integrands: Sequence[Integrand], tilt: sp.Symbol
) -> tuple[tuple[sp.Expr, sp.Expr], ...]:
    """Return a and b of a·t = b, where an α is 0, without a common factor; each once."""
    changes: dict[tuple[sp.Expr, sp.Expr], None] = {}
    for integrand in integrands:
        alpha, _ = _coefficients(integrand) or (sp.S.Zero, sp.S.Zero)
        numerator = sp.expand(sp.numer(tidy.together(alpha)))
        slope = numerator.coeff(tilt, 1)
        constant = -numerator.coeff(tilt, 0)
        common = sp.gcd(slope, constant)
        if slope == 0:
            continue
        if slope.is_number:
            common = slope
        elif sign_of(-constant) == 1:
            common = -common
        changes[sp.cancel(slope / common), sp.cancel(constant / common)] = None
    return tuple(changes)


def _is_right(
    found: CGFBySign,
    pair: Pair,
    domain: tuple[sp.Expr, sp.Expr],
    below_one: Sequence[str],
    seed: int,
) -> bool:
    values = dict(random_values(parameters_of(pair), seed, tuple(below_one)))
    concrete = with_values(pair, values)
    law = pieces(concrete), points(concrete), pair.variable
    tilts: Sequence[sp.Expr] = tilts_beside_changes(found, domain, values)
    if seed:  # other values of the parameters, at two tilts
        tilts = tilts_to_check(domain, values, seed)
    return all(agrees(found.at(values | {found.tilt: at}), found.tilt, at, law) for at in tilts)


def tilts_beside_changes(
    found: CGFBySign,
    domain: tuple[sp.Expr, sp.Expr],
    values: Mapping[sp.Symbol, sp.Expr],
) -> list[sp.Expr]:
    """Return tilts inside the domain: where an α vanishes, beside these, and two at random."""
    low, high = (end.subs(values) for end in domain)
    tilts = list(tilts_to_check(domain, values, 0))
    for slope, constant in found.changes:
        rate = slope.subs(values)
        if rate == 0:
            continue
        change = constant.subs(values) / rate
        tilts.append(change)
        for side in (1, -1):
            beside = (change + side * step for step in _STEPS)
            tilts.append(next((at for at in beside if _is_shallow(found, values, at)), change))
    return [tilt for tilt in dict.fromkeys(tilts) if low < tilt < high]


def _is_shallow(found: CGFBySign, values: Mapping[sp.Symbol, sp.Expr], at: sp.Expr) -> bool:
    """Whether a few hundred digits are enough for the difference of error functions."""
    for applied in found.integrals:
        alpha, beta = (part.subs(values).subs(found.tilt, at) for part in applied.args[:2])
        if alpha != 0 and beta**2 > 4 * _MOST_DEEP * abs(alpha):
            return False
    return True
