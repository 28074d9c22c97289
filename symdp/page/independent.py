"""One step by mpmath's quadrature of P and Q: a judge that shares no code with what it judges.

Formulas of a derivation are put beside it, with a program of mpmath that anybody can run.

δ(ε) = ∫ (p − e^ε q)⁺ between marks and roots, and M(t) = ∫ p^{1+t} q^{−t}, by the tanh-sinh rule;
integers and lists are summed.  Nothing is proved.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import mpmath
import sympy as sp
from sympy.printing.pycode import MpmathPrinter

from symdp.density.check import with_values
from symdp.derive.child import or_reason
from symdp.derive.quadratic_pieces import tilts_beside_changes
from symdp.derive.series import cumulant_at, moment_at_zero

if TYPE_CHECKING:
    from symdp.derive import PairDerivation
    from symdp.model.pair import Pair

DIGITS = 20  # carried; about fifteen are to agree
_MOST_DIGITS = 400  # within a formula that is a difference of large numbers
_OCTAVES = (*range(-6, 7, 2), *range(8, 64, 6))  # of distances from a kink that split integrals
_NEAR = 6  # octave up to which they split in any case
_NOTHING = 1e-40  # of a density beside its place: integrals end there
_PARTS = 8  # of each stretch, at whose ends the sign of p − e^ε q is looked at
_INSIDE = 2.0**-40  # of a stretch from its ends, as densities may be infinite there
_FARTHEST = 3000  # integers summed on each side

Function = Callable[[Any, Any], Any]


def delta(pair: Pair, epsilon: Any) -> Any:
    """Return δ(ε) of one step."""
    with mpmath.workdps(DIGITS):
        growth = mpmath.exp(mpmath.mpf(epsilon))

        def excess(p: Any, q: Any) -> Any:
            least = growth * q
            if p > least:
                return p - least
            return mpmath.mpf(0)

        return _total(pair, excess)


def cgf(pair: Pair, tilt: Any) -> Any:
    """Return K(t) = log Σ ∫ p^{1+t} q^{−t} of one step."""
    with mpmath.workdps(DIGITS):
        t = mpmath.mpf(tilt)

        def moment(p: Any, q: Any) -> Any:
            if p > 0 and q > 0:
                return p ** (1 + t) * q**-t
            return mpmath.mpf(0)

        return mpmath.log(_total(pair, moment))


def _total(pair: Pair, value: Function) -> Any:
    """Sum or integrate value(p, q) over the support."""
    if pair.support.kind == "points":
        masses = zip(map(_number, pair.P), map(_number, pair.Q), strict=True)
        return mpmath.fsum(value(p_mass, q_mass) for p_mass, q_mass in masses)
    p, q = (sp.lambdify(pair.variable, law, "mpmath") for law in (pair.P, pair.Q))

    def at(x: Any) -> tuple[Any, Any]:
        return mpmath.re(p(x)), mpmath.re(q(x))

    if pair.variable.is_integer:
        lower = float(pair.support.lower)
        upper = float(pair.support.upper)
        terms = []
        for side, start in ((1, 0), (-1, 1)):
            for k in range(start, _FARTHEST):
                if not lower <= side * k <= upper:
                    break
                densities = at(mpmath.mpf(side * k))
                if k > 2**_NEAR and sum(densities) * k < _NOTHING:
                    break
                terms.append(value(*densities))
        return mpmath.fsum(terms)

    def integrand(x: Any) -> Any:
        return value(*at(x))

    atoms = []
    q_atoms = dict(pair.atoms_under(pair.q_weights))
    for x, p_mass in dict(pair.atoms_under(pair.p_weights)).items():
        q_mass = q_atoms.get(x, 0)
        atoms.append(value(_number(p_mass), _number(q_mass)))
    parts = [mpmath.fsum(atoms)]
    marks = sorted(set(_marks(pair, at)))
    for low, high in itertools.pairwise(marks):
        parts.append(mpmath.quad(integrand, _split(integrand, low, high)))
    return mpmath.fsum(parts)


def _number(value: Any) -> Any:
    if value in (sp.oo, -sp.oo):
        if value == sp.oo:
            return mpmath.inf
        return -mpmath.inf
    return mpmath.mpmathify(sp.N(value, DIGITS + 5))


def _marks(pair: Pair, at: Callable[[Any], tuple[Any, Any]]) -> Iterator[Any]:
    """Yield the ends, what Abs, Max, Min and Piecewise turn at, and distances from these."""
    lower = _number(pair.support.lower)
    upper = _number(pair.support.upper)
    finite_ends = [end for end in (lower, upper) if mpmath.isfinite(end)]
    yield from finite_ends
    kinks = set(finite_ends) or {mpmath.mpf(0)}
    for law in (pair.P, pair.Q):
        kinks |= set(map(_number, _kinks(law, pair.variable)))
    gone: dict[tuple[Any, int], bool] = {}  # sides on which both densities have vanished
    for kink in kinks:
        if lower < kink < upper:
            yield kink
        for side, octave in itertools.product((1, -1), _OCTAVES):
            x = kink + side * mpmath.mpf(2) ** octave
            if not lower < x < upper:
                continue
            if octave > _NEAR and gone.get((kink, side)):
                continue
            yield x
            gone[kink, side] = octave >= _NEAR and sum(at(x)) * abs(x) < _NOTHING


def _kinks(law: sp.Expr, x: sp.Symbol) -> Iterator[sp.Expr]:
    kinks = [node.args[0] for node in law.atoms(sp.Abs)]
    for node in law.atoms(sp.Max, sp.Min):
        kinks += [a - b for a, b in itertools.combinations(node.args, 2)]
    for piece in law.atoms(sp.Piecewise):
        for _, condition in piece.args:
            relations = condition.atoms(sp.core.relational.Relational)
            kinks += [relation.lhs - relation.rhs for relation in relations]
    for zero in kinks:
        if zero.is_polynomial(x):
            yield from (root for root in sp.roots(zero, x) if root.is_real)


def _split(value: Callable[[Any], Any], low: Any, high: Any) -> list[Any]:
    """Return both ends, and the places between where a value becomes 0 or ceases to be."""
    shares = (_INSIDE, *(mpmath.mpf(k) / _PARTS for k in range(1, _PARTS)), 1 - _INSIDE)
    places = [low + (high - low) * share for share in shares]
    cuts = [low]
    for a, b in itertools.pairwise(places):
        left = value(a) > 0
        right = value(b) > 0
        if left != right:
            ends = [a, b]
            for _ in range(4 * DIGITS):
                middle = (ends[0] + ends[1]) / 2
                ends[(value(middle) > 0) != left] = middle
            cuts.append(ends[0])
    return [*cuts, high]


def agreement(pair: Pair, epsilon: float) -> tuple[int, int] | None:
    """Return on how many digits this agrees with a proof of δ(ε), and with doubles of K(−1/2).

    None where the densities are no formulas that mpmath evaluates.
    """
    from symdp.numeric.compile import pair_law
    from symdp.numeric.total import SumLaw
    from symdp.prove.truth import privacy_profile

    try:
        with mpmath.workdps(DIGITS):
            proved = privacy_profile([(pair, 1)], epsilon, DIGITS)
            in_doubles = SumLaw([(pair_law(pair), 1)]).cgf(-0.5)
            return _digits(proved, delta(pair, epsilon)), _digits(in_doubles, cgf(pair, -0.5))
    except (ArithmeticError, TypeError, ValueError, NameError, AttributeError):
        return None


def _digits(value: Any, judge: Any) -> int:
    apart = abs(value - judge)
    if apart == 0:
        return DIGITS
    return min(max(int(-mpmath.log10(apart / abs(judge))), 0), DIGITS)


class Judged(NamedTuple):
    """One formula at one place: by the formula, and by quadrature of P and Q as they are written.

    `program` is a line of mpmath, with p, q and the ends defined before, that repeats the latter.
    """

    name: str
    at: str
    value: Any
    truth: Any
    program: str

    @property
    def digits(self) -> int:
        """On how many digits both agree, absolute ones where the truth is 0."""
        with mpmath.workdps(DIGITS):
            apart = abs(self.value - self.truth)
            size = abs(self.truth) or mpmath.mpf(1)
            if apart == 0:
                return DIGITS
            return max(min(int(-mpmath.log10(apart / size)), DIGITS), 0)


def judged(d: PairDerivation, values: Mapping[sp.Symbol, sp.Expr]) -> list[Judged]:
    """Return what formulas of a derivation say at values of its parameters, beside quadratures."""
    pair = with_values(d.pair, dict(values))
    with mpmath.workdps(DIGITS):
        return [row for row in _rows(d, pair, values) if mpmath.isfinite(row.value)]


def _rows(d: PairDerivation, pair: Pair, values: Mapping[sp.Symbol, sp.Expr]) -> Iterator[Judged]:
    def put(formula: sp.Expr) -> Any:
        number = formula.subs(values).evalf(DIGITS + 10, maxn=_MOST_DIGITS)
        return mpmath.re(mpmath.mpmathify(number))

    for name, index in (("p", 0), ("q", 1)):
        truth = _total(pair, lambda *masses, index=index: masses[index])
        yield Judged(f"mass of {name.upper()}", "", mpmath.mpf(1), truth, f"total({name})")
    for x in _outputs(pair):
        at_output = [sp.N(law.subs(pair.variable, x), DIGITS) for law in _laws(pair)]
        p, q = map(mpmath.mpmathify, at_output)
        if p > 0 and q > 0:
            at = f"{d.variable} = {x}"
            value = put(d.loss.subs(d.variable, x))
            truth = mpmath.log(p / q)
            yield Judged("ℓ", at, value, truth, f"loss({_exact(x)})")
    for tilt, formula in _closed_cgf(d, values):
        at = f"{d.cgf.tilt} = {tilt}"
        truth = cgf(pair, put(tilt))
        line = f"log(total(lambda x: p(x)*(p(x)/q(x))**({_exact(tilt)}) if p(x)*q(x) else 0))"
        yield Judged("K", at, put(formula), truth, line)
    mean = _mean(d)
    if mean is not None:
        yield _judged_moment(pair, "κ₁", 1, put(mean))
        if d.cgf.expression is None:
            for order in (2, 3):
                moment = moment_at_zero(d.pair, order, d.below_one)
                if moment is None:
                    break
                yield _judged_moment(pair, f"m{'₂₃'[order - 2]}", order, put(moment))


def _closed_cgf(
    d: PairDerivation, values: Mapping[sp.Symbol, sp.Expr]
) -> Iterator[tuple[sp.Expr, sp.Expr]]:
    """Yield tilts with what a closed form of K says there; beside a change of its form too."""
    tilt = d.cgf.tilt
    if d.cgf.expression is not None:
        for at in _tilts(d, values):
            yield at, d.cgf.expression.subs(tilt, at)
        return
    by_sign = d.cgf_by_sign
    if by_sign is not None and d.cgf.domain is not None:
        for at in tilts_beside_changes(by_sign, d.cgf.domain, values):
            yield at, by_sign.at({**values, tilt: at})


def _judged_moment(pair: Pair, name: str, order: int, value: Any) -> Judged:
    """Return E ℓʲ by its formula beside the quadrature of ℓʲP."""

    def integrand(p: Any, q: Any) -> Any:
        if p > 0 and q > 0:
            return p * mpmath.log(p / q) ** order
        return 0

    power = ""
    if order > 1:
        power = f"**{order}"
    program = f"total(lambda x: p(x)*loss(x){power} if p(x)*q(x) else 0)"
    return Judged(name, "", value, _total(pair, integrand), program)


def _laws(pair: Pair) -> tuple[Any, Any]:
    return pair.P, pair.Q


def _outputs(pair: Pair) -> list[sp.Expr]:
    """Return outputs inside the support at which a loss is looked at."""
    places = [sp.Integer(-2), sp.Integer(2)]
    if not pair.variable.is_integer:
        places.insert(1, sp.Rational(1, 3))
    return [x for x in places if pair.support.lower < x < pair.support.upper]


def _tilts(d: PairDerivation, values: Mapping[sp.Symbol, sp.Expr]) -> list[sp.Expr]:
    domain = d.cgf.domain or (-sp.S.One, sp.S.Zero)
    low = domain[0].subs(values)
    high = domain[1].subs(values)
    tilts = (sp.Rational(-1, 3), sp.Rational(1, 2), sp.Integer(2))
    inside = [tilt for tilt in tilts if low < tilt < high]
    return [tilt for tilt in inside if tilt not in d.cgf.removable]


def _mean(d: PairDerivation) -> sp.Expr | None:
    """Return κ₁ in closed form, None where no formula is known or the loss may be infinite."""
    if d.mass_at_infinity != 0:
        return None
    if d.cgf.expression is None:
        return moment_at_zero(d.pair, 1, d.below_one)
    return or_reason(lambda: cumulant_at(d, 1, 0), lambda _: None)


def _exact(number: sp.Expr) -> str:
    if isinstance(number, sp.Rational):
        return f"mpf({number.p})/{number.q}"
    return str(number)


def program_of(
    d: PairDerivation, values: Mapping[sp.Symbol, sp.Expr], rows: Sequence[Judged]
) -> str:
    """Return a program of mpmath that repeats the quadratures of rows, and prints them."""
    pair = with_values(d.pair, dict(values))
    printer = MpmathPrinter({"fully_qualified_modules": False})
    x = pair.variable
    laws = [printer.doprint(law.xreplace({x: sp.Symbol("x")})) for law in _laws(pair)]
    lines = ["from mpmath import *", "mp.dps = 30"]
    lines.append(f"p = lambda x: {laws[0]}")
    lines.append(f"q = lambda x: {laws[1]}")
    lines.append("loss = lambda x: log(p(x)/q(x))")
    lower = pair.support.lower
    upper = pair.support.upper
    if x.is_integer:
        low = max(lower, -_FARTHEST)
        high = min(upper, _FARTHEST)
        lines.append(f"total = lambda f: fsum(f(mpf(k)) for k in range({low}, {high} + 1))")
    else:
        kinks = set(_kinks(pair.P, x)) | set(_kinks(pair.Q, x)) or {sp.S.Zero}
        inner = sorted(kink for kink in kinks if lower < kink < upper)
        ends = ", ".join(printer.doprint(end) for end in (lower, *inner, upper))
        lines.append(f"ends = [{ends}]")
        lines.append("total = lambda f: quad(f, ends)")
    lines += [f"print({row.program})" for row in rows]
    return "\n".join(lines) + "\n"
