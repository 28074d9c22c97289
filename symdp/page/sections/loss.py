"""What a derivation shows of a mechanism, its loss, the law of the loss and its CGF."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import sympy as sp

from symdp.balls.modes import one_mode
from symdp.density.shapes import shape_of
from symdp.density.signs import random_values
from symdp.derive import series
from symdp.derive.child import GIVES_UP, or_reason
from symdp.derive.orders import cumulant_in_moments, sampled_pair
from symdp.derive.presented import presented
from symdp.derive.series import moment_at_zero
from symdp.derive.without_pair.vectors import FIRST, SECOND, VectorDerivation, distance_loss
from symdp.emit.mass import MassIntegral
from symdp.errors import InputError
from symdp.interrupt import attempt
from symdp.model import tidy
from symdp.model.fact import AUTHOR, BALLS, RULE, VALUES, Fact
from symdp.model.sampling import Noise, Radial
from symdp.page.document import Line, Section, sentence
from symdp.page.formula import equation, layout, read, shown
from symdp.page.node import (
    PRODUCT,
    Node,
    fence,
    in_words,
    listed,
    measure,
    operator,
    row,
    text,
)
from symdp.questions.steps.smaller_shifts import of_smaller_shifts
from symdp.tolerances import SOME_TIME

if TYPE_CHECKING:
    from symdp.density.records import Piece
    from symdp.derive.masses import MassRule
    from symdp.derive.orders import Sampled
    from symdp.derive.privacy_loss import PrivacyLoss
    from symdp.derive.quadratic_pieces import CGFBySign
    from symdp.derive.records import Atom, HasCGF
    from symdp.model.mechanism import Mechanism
    from symdp.model.sampling import MassNoise

_FEW = 4  # whole numbers beside the first of a set that is written out
CUMULANTS = 4  # shown at t = 0
_CLOSED_MOMENTS = 3  # of a loss whose K has no closed form: the fourth is no formula to read
_TWO_PLACES = (-1, 2)  # at which a loss that is monotone is compared
_RATE_ORDER = 4  # powers of a sampling rate looked through for a leading term
_LEAST_FOR_MEAN = 3.0  # seconds: it takes one or two where it is found
# of the clock, and seconds, for one formula
SHARE = 0.3
LEAST = 0.5
_HOW = {
    RULE: "by a rule",
    BALLS: "by interval arithmetic",
    VALUES: "by values of the density",
    AUTHOR: "by its author's word",
}
ASSUMED = "assumed: "
OF_INTEGRAL = ": no closed form of the integral"  # between two places of a case
DISJOINT = "δ = 1 for every ε: the two laws have no output in common"
_WHY = {
    "none": "of two neighbours this is the pair itself",
    "vectors": "the density falls with the length: the balls on which it is high meet the less the "
    "farther their centres part, so that the largest shift dominates every other one",
    "poisson": "mixing P into Q at the rate keeps dominance [SPA Lemma 3], [IND Lemma 8]",
    "truncated_poisson": "a public choice of a Poisson step and a substitution [ZDW]",
    "without_replacement": "the profile of a fixed batch [BBG Thm 8] belongs to this pair [ZDW]",
    "with_replacement": "the profile of repeated draws [BBG Thm 10] belongs to this pair [ZDW]",
}


def tried(d: HasCGF, what: str, work: Callable[[], Iterable[Line]]) -> list[Line]:
    """Return the lines of a part of a section, or one that says why there are none."""

    def absent(why: str) -> list[Line]:
        return [sentence(f"{what}: {in_words(why)}")]

    late = absent("not found within the time limit")
    return or_reason(lambda: d.clock.attempt(lambda: list(work()), late, SHARE, LEAST), absent)


def mechanism_section(d: PrivacyLoss | VectorDerivation) -> Section:
    """Return the densities, the sampling, the neighbours and why the pair dominates."""
    m = d.mechanism
    lines = [sentence(in_words(f"{ASSUMED}{text}")) for text in m.assumptions]
    lines += vector_lines(m)
    if not isinstance(d, VectorDerivation):
        lines += _densities(d)
    scheme = "none"
    if m.sampling:
        scheme = m.sampling.scheme
        described = m.sampling.describe().replace("_", " ").replace("poisson", "Poisson")
        lines.append(sentence(f"sampling: {described}"))
    units = {
        "add_remove": "one record added or removed",
        "substitution": "one record's value changed",
        "zero_out": "one record's contribution set to zero",
        "pair": m.protects or "what the given laws stand for",
    }
    lines.append(sentence(in_words(f"protects: {units[m.neighbours]}; {d.direction} direction")))
    reason = m.dominates or "the pair is given; its author says why it dominates"
    if m.is_listed:
        lines.extend(_of_listed(m))
        reason = "the noise is even and falls from 0, so that a half-line shifts with it"
    if scheme != "none":
        why = _WHY[scheme]
    elif m.is_given:
        why = reason
    elif isinstance(m.source, Radial):
        why = _WHY["vectors"]
    else:
        why = _WHY["none"]
    if scheme == "none" and isinstance(m.source, Noise):
        why = f"{why}; {of_smaller_shifts(m)}"
    lines.append(sentence(in_words(f"why the pair dominates: {why}")))
    if not isinstance(d, VectorDerivation):
        larger = d.dominating_direction
        lines.append(sentence(in_words(f"larger direction: {larger.value}: {larger.proof}")))
    return Section("mechanism", "Mechanism", tuple(lines))


def _of_listed(m: Mechanism) -> Iterator[Line]:
    """Say what the points of noise of listed masses stand for, where it is more than themselves."""
    noise = cast("MassNoise", m.source)
    if noise.cell is not None:
        yield sentence(f"each point stands for a cell of width {noise.cell} around it")
    if noise.tail:
        yield sentence("the first and the last point stand for all beyond them, of one loss each")


def facts_section(d: PrivacyLoss | VectorDerivation) -> Section:
    """Return what is known of the shape of the noise: each fact, how it is known, and why."""
    lines = []
    reasons: list[str] = []
    for name, fact in facts(d.mechanism):
        reason = fact.reason
        for before in reasons:  # that it is log-concave has its reason on the line above
            reason = reason.removesuffix(f": {before}")
        reasons.append(fact.reason)
        lines.append(sentence(in_words(_fact_text(name, replace(fact, reason=reason)))))
    return Section("facts", "Facts", tuple(lines))


def facts(m: Mechanism) -> Iterator[tuple[str, Fact]]:
    """Return the facts of additive noise by name; none for laws that were given."""
    if not isinstance(m.source, Noise | Radial):
        return
    is_on_vectors = isinstance(m.source, Radial)
    noise = m
    if is_on_vectors:
        noise = m.on_a_line
    else:
        shape = shape_of(noise.source.density, noise.variable, noise.support)  # type: ignore[union-attr]
        yield "even", shape.even
        yield "log-concave", shape.log_concave
    yield "one mode", one_mode(noise)


def _fact_text(name: str, fact: Fact) -> str:
    """Return a fact in words."""
    if fact.value is None:
        return f"{name}: open: {fact.reason}"
    verdict = "yes"
    if fact.value is False:
        verdict = "no"
    return f"{name}: {verdict}, {_HOW[fact.by]}: {fact.reason}"


def vector_lines(m: Mechanism) -> Iterator[Line]:
    """The density of noise on vectors and its loss at two distances, nothing for other noise."""
    if not isinstance(m.source, Radial):
        return
    g = m.source.density
    loss = distance_loss(m.source, m.variable)
    yield equation(read("g({})", layout(m.variable)), g, relation="∝")
    yield sentence(
        f"the density of noise on vectors of {m.source.dimension} coordinates at a distance, moved "
        f"by {m.source.sensitivity} in length: the output lies at the distance r₂ from where the "
        "noise is centred with the record, at r₁ from where it is without, and the loss is"
    )
    yield equation("ℓ(r₁, r₂)", loss)


def density_lines(d: PrivacyLoss) -> list[Line]:
    """Return Q and P, the laws without and with the record; those of each pair of a choice."""
    return list(_densities(d))


def masses_of(d: PrivacyLoss) -> list[MassIntegral]:
    """The masses by which the densities are divided, as far as they are no formula."""
    masses: set[MassIntegral] = set()
    for pair in (d.pair, *(alternative for _, alternative in d.pair.alternatives)):
        for expression in pair.expressions():
            masses |= expression.atoms(MassIntegral)
    return sorted(masses, key=sp.default_sort_key)


def _densities(d: PrivacyLoss) -> Iterator[Line]:
    yield from _laws(d)
    for mass in masses_of(d):
        inside, limits = mass.parts
        integral = sp.Integral(inside, limits).xreplace({limits[0]: d.variable})
        yield equation(mass.name, integral)


def _laws(d: PrivacyLoss) -> Iterator[Line]:
    x = layout(d.variable)
    pair = d.pair
    if pair.alternatives:
        for number, (weight, alternative) in enumerate(pair.alternatives, start=1):
            k = layout(sp.Integer(number))
            yield equation(read("“Pr”({})", k), weight)
            yield equation(read("Q_{}({})", k, x), _law(alternative.Q))
            yield equation(read("P_{}({})", k, x), _law(alternative.P))
        return
    mixed = any(weight not in (0, 1) for weight in (*pair.p_weights, *pair.q_weights))
    if not mixed:
        yield equation(read("Q({})", x), _law(pair.Q))
        yield equation(read("P({})", x), _law(pair.P))
        yield from _atom_lines(d, "Q", pair.q_weights)
        yield from _atom_lines(d, "P", pair.p_weights)
        return
    count = len(pair.components)
    for number_of_law, shares in enumerate(zip(pair.p_weights, pair.q_weights, strict=True)):
        if shares == (0, 0):
            continue
        index = layout(sp.Integer(number_of_law))
        law = _law(pair.components[number_of_law])
        yield equation(read("f_{}({})", index, x), law)
        only = tuple(sp.Integer(k == number_of_law) for k in range(count))
        yield from _atom_lines(d, f"f_{number_of_law}", only)
    functions = [sp.Function(f"f_{k}")(d.variable) for k in range(count)]
    for name, weights in (("Q", pair.q_weights), ("P", pair.p_weights)):
        products = map(sp.Mul, weights, functions)
        yield equation(read(f"{name}({{}})", x), sp.Add(*products))


def _atom_lines(d: PrivacyLoss, name: str, weights: tuple[sp.Expr, ...]) -> Iterator[Line]:
    """The probabilities of single values of the output under one law, beside its density."""
    x = layout(d.variable)
    for value, mass in d.pair.atoms_under(weights):
        yield equation(read(f"{name}({{}} = {{}})", x, value), mass)


def _law(law: sp.Expr | tuple[sp.Expr, ...]) -> sp.Basic:
    if isinstance(law, tuple):
        return sp.Tuple(*law)
    return law


def loss_section(d: PrivacyLoss) -> Section:
    """Return the loss, where it is monotone, its range, its inverse and its law."""
    if d.is_disjoint:
        return Section("loss", "Privacy loss", (*loss_lines(d), sentence(DISJOINT)))

    def without_law(why: str) -> list[Line]:
        return [sentence(f"the law of the loss: {in_words(why)}")]

    law = or_reason(lambda: law_lines(d), without_law)
    return Section("loss", "Privacy loss", (*loss_lines(d), *law))


def loss_lines(d: PrivacyLoss) -> list[Line]:
    """Return the privacy loss, its pieces, its range, its atoms and masses at infinity."""
    x = layout(d.variable)
    lines = [equation(read("ℓ({})", x), d.loss, note="")]
    lines += [sentence(in_words(f"ℓ has no value on {gap}, where P = Q = 0")) for gap in _gaps(d)]
    if not d.is_disjoint:
        lines += _slope_lines(d)
        lines += _range_lines(d)
    lines += [_atom(atom) for atom in d.atoms]
    if d.mass_at_infinity != 0:
        lines.append(equation("δ_∞", d.mass_at_infinity, words="= P(Q = 0)"))
    if d.mass_at_minus_infinity != 0:
        lines.append(equation("δ_{−∞}", d.mass_at_minus_infinity, words="= Q(P = 0)"))
    return lines


def _slope_lines(d: PrivacyLoss) -> Iterator[Line]:
    """Say on each piece whether the loss rises, falls or is constant."""
    for piece in d.pieces:
        if piece.place is not None:
            continue
        words = f"ℓ is {piece.slope}"
        if piece.slope == "unknown":
            words = _slope_by_shape(d) or "ℓ is smooth; whether it is monotone was not decided"
        yield Line(_inside(d.variable, piece), None, words)


def _slope_by_shape(d: PrivacyLoss) -> str:
    """Say that ℓ is monotone where a log-concave density was shifted: (log f)′ does not rise."""
    m = d.mechanism
    if not isinstance(m.source, Noise) or d.pair.alternatives:
        return ""
    if not shape_of(m.source.density, m.variable, m.support).log_concave:
        return ""
    values = random_values(d.loss.free_symbols - {d.variable}, 0, d.below_one)
    low, high = (d.loss.subs(d.variable, at).subs(values).evalf() for at in _TWO_PLACES)
    if not (low.is_real and high.is_real) or low == high:
        return ""
    verb = "fall" if low < high else "rise"
    return f"ℓ does not {verb}, as the density is log-concave"


def _gaps(d: PrivacyLoss) -> Iterator[str]:
    """Intervals between two pieces of the support."""
    on_line = [p for p in d.pieces if p.place is None and not d.variable.is_integer]
    for left, right in pairwise(on_line):
        if left.upper != right.lower:
            yield text(fence(listed(map(layout, (left.upper, right.lower)))))


def _atom(atom: Atom) -> Line:
    return equation(read("P(ℓ = {})", presented(shown(atom.loss))), atom.mass)


def finite_lines(d: HasCGF) -> list[Line]:
    """Return what K counts where the loss is infinite with positive probability; else nothing."""
    ends = (("K(0)", "δ_∞", d.mass_at_infinity), ("K(−1)", "δ_{−∞}", d.mass_at_minus_infinity))
    lost = [equation(end, f"=log(1 − {mark})") for end, mark, mass in ends if mass != 0]
    words = (
        "K counts finite losses alone; K′, κ_j and m_j are those of a loss given that it is finite"
    )
    if lost:
        return [sentence(words), *lost]
    return []


def _inside(x: sp.Symbol, piece: Piece | MassRule) -> Node:
    """Return where a piece lies, of integers with its ends."""
    at = layout(x)
    low = piece.lower
    high = piece.upper
    if not x.is_integer:
        return read("{} ∈ ({}, {})", at, low, high)
    if low.is_infinite and high.is_infinite:
        return read("{} ∈ ℤ", at)
    if low == high:
        return read("{} = {}", at, low)
    if high.is_infinite:
        return read("{} ≥ {}", at, low)
    if low.is_infinite:
        return read("{} ≤ {}", at, high)
    return read("{} ∈ {}", at, fence(row(*_whole_numbers(low, high)), "{", "}"))


def _whole_numbers(low: sp.Expr, high: sp.Expr) -> tuple[Node, ...]:
    """Return the members of a set of whole numbers, of a large one the ends."""
    if not (high - low).is_Integer or high - low > _FEW:
        return read("{}, …, {}", low, high).parts
    return listed(layout(low + k) for k in range(int(high - low) + 1)).parts


def _range_lines(d: PrivacyLoss) -> Iterator[Line]:
    names = "inf ℓ", "sup ℓ"
    if not d.range_cases:
        for name, end in zip(names, range_ends(d), strict=True):
            yield _end(name, end)
        return
    for case in d.range_cases:
        conditions: list[Node] = []
        for a, sign, b in case.conditions:
            if conditions:
                conditions.append(operator(","))
            conditions += [layout(a), operator(sign), layout(b)]
        ends = case.ends or (f"not found: {case.reason}",) * 2
        for name, end in zip(names, ends, strict=True):
            yield equation(read(f"{name} “if” {{}}", row(*conditions)), end)


def _end(name: str, end: sp.Expr | str) -> Line:
    """An end of the range; an infinite one whose sign a parameter decides, where that is not 0."""
    if isinstance(end, str):
        return equation(name, in_words(end))
    if end.is_infinite or not end.has(sp.oo, -sp.oo):
        return equation(name, end)
    free = sorted(end.free_symbols, key=str)
    condition = " and ".join(f"{text(layout(symbol))} ≠ 0" for symbol in free)
    at = end.subs(dict.fromkeys(free, sp.S.One))
    return equation(name, at, words=f"for {condition}; else the loss is constant")


def range_ends(d: PrivacyLoss) -> tuple[sp.Expr | str, sp.Expr | str]:
    """Return the infimum and the supremum of the loss: formulas, what numbers show, or why not."""
    if d.loss_range is not None:
        return d.loss_range
    low, high = seen_ends(d, "loss_bounds") or (None, None)
    if low is not None and high is not None:
        return numeric_end(low), numeric_end(high)
    return (f"not found: {d.range_reason}",) * 2


def seen_ends(d: PrivacyLoss, of: str) -> tuple[sp.Expr, sp.Expr] | None:
    """Return the "loss_bounds" or the "domain" of K that numbers show; None without values."""
    if d.mechanism.parameters or d.points or d.is_disjoint:
        return None
    from symdp.numeric.laws.of_mechanism import loss_law

    def found() -> tuple[sp.Expr, sp.Expr]:
        low, high = map(sp.Float, getattr(loss_law(d.mechanism, d.direction), of))
        return sp.nsimplify(low.n(6), rational=True), sp.nsimplify(high.n(6), rational=True)

    return or_reason(lambda: attempt(found, None, SOME_TIME), lambda _: None)


def numeric_end(end: sp.Expr) -> str:
    """Return an end that numbers show, in words."""
    if not end.is_infinite:
        end = sp.Float(end, 6)
    return f"{in_words(str(end))}, as numbers show it"


def law_lines(d: PrivacyLoss) -> list[Line]:
    """Return the inverse of the loss on its pieces, its density and distribution function."""
    s = layout(d.pld_density.loss)
    is_on_line = not d.variable.is_integer
    moving = [pair for pair in d.inverse if pair[0].slope != "constant" and is_on_line]
    lines: list[Line] = []
    for piece, back in moving:
        left = read("ℓ⁻¹({})", s)
        if len(moving) > 1:
            left = read("ℓ⁻¹({}), {}", s, _inside(d.variable, piece))
        if back is None:
            lines.append(equation(left, "no formula was found"))
        else:
            lines.append(equation(left, back))
    for name, law in (("ω", d.pld_density), ("F", d.pld_cdf)):
        left = read(f"{name}({{}})", s)
        if law.expression is None:
            lines.append(equation(left, law.reason))
        elif name == "ω":
            lines.append(equation(left, _shorter_density(d, law.expression)))
        else:
            lines.append(equation(left, law.expression))
    for rule in d.mass_rules:
        domain = _inside(d.variable, rule)
        lines.append(equation(read("P(ℓ = {}), {}", rule.loss, domain), rule.mass))
        if rule.at_most is not None:
            left = read("P(ℓ ≤ {}), {}", rule.loss, domain)
            lines.append(equation(left, rule.at_most))
    return lines


def _shorter_density(d: PrivacyLoss, density: sp.Expr) -> sp.Expr:
    """Return ω, or F′ where that is written in fewer letters."""
    distribution = d.pld_cdf.expression
    if not (isinstance(distribution, sp.Piecewise) and isinstance(density, sp.Piecewise)):
        return density
    s = d.pld_density.loss
    rows = [(sp.diff(value, s), condition) for value, condition in distribution.args]
    if [condition for _, condition in rows] != [condition for _, condition in density.args]:
        return density
    slope = sp.Piecewise(*rows, evaluate=False)
    if slope.has(sp.Derivative, sp.Subs):
        return density
    return min((density, slope), key=lambda form: len(text(layout(presented(shown(form))))))


def cgf_section(d: PrivacyLoss, order: int) -> Section:
    """Return K: its definition, closed form and domain, whole tilts, cumulants."""
    cgf = d.cgf
    t = layout(cgf.tilt)
    lines = [_definition(d), *finite_lines(d)]
    if cgf.expression is not None:
        lines.append(equation(read("K({})", t), cgf.expression))
    elif d.cgf_by_sign is not None:
        lines += _by_sign_lines(d.cgf_by_sign)
    else:
        lines.append(sentence(f"no closed form of K was found: {in_words(cgf.reason)}"))
    lines += [*_whole_tilts(d), *domain_lines(d), *cumulant_lines(d, order + 1)]
    at_zero: list[Line] = []
    closed: list[sp.Expr] = []
    with suppress(*GIVES_UP):  # a special function may have no derivative by its parameters
        if cgf.expression is not None:
            at_zero = d.clock.attempt(lambda: list(_closed_at_zero(d)), [], 2 * SHARE, LEAST)
        else:
            closed = _moments_in_time(d)
    lines += at_zero or tried(d, "cumulants at t = 0", lambda: _moments_at_zero(d, closed))
    return Section("cumulants", "Cumulant generating function", tuple(lines))


def _by_sign_lines(by_sign: CGFBySign) -> Iterator[Line]:
    """K with the integral over a finite piece as a function, and that function in its cases."""
    yield equation(read("K({})", layout(by_sign.tilt)), by_sign.expression)
    name = by_sign.integrals[0].func(*by_sign.arguments)
    yield equation(layout(name), by_sign.integral)
    yield equation(layout(name), layout(by_sign.in_normal))
    alpha = text(layout(by_sign.arguments[0]))
    places = []
    for slope, constant in by_sign.changes:
        left = text(layout(slope * by_sign.tilt))
        places.append(f"{left} = {text(layout(constant))}")
    if places:
        listed_places = " or ".join(places)
        yield sentence(
            f"{alpha} is 0 where {listed_places}; near there the other two forms are differences "
            "of large numbers"
        )


def _definition(d: PrivacyLoss) -> Line:
    """K as the integral or the sum that defines it, over the place where both laws are positive."""
    t, x = layout(d.cgf.tilt), layout(d.variable)
    power = read("P({})^{1 + {}}Q({})^{−{}}", x, t, x, t)
    name = read("K({})", t)
    if d.pair.alternatives:
        return equation(name, read("log ∑_j “Pr”(j)·∫ P_j({})^{1 + {}}Q_j({})^{−{}}dx", x, t, x, t))
    right = row(read("log"), *_over_finite_losses(d, power))
    return equation(name, right, words=_over_atoms(d))


def _over_finite_losses(d: PrivacyLoss, inside: Node) -> tuple[Node, ...]:
    """Return the sum or the integral over the outputs at which both laws are positive."""
    x = layout(d.variable)
    is_whole = d.mass_at_infinity == 0 == d.mass_at_minus_infinity
    total = read("∑_{PQ > 0}")
    if is_whole:
        total = read("∑_{}", x)
    if d.variable.is_integer or d.points:
        return total, inside
    common = [p for p in d.pieces if p.log_p is not None and p.log_q is not None]
    parts = [piece for piece in common if piece.place is None]
    sign = read("∫_{{}}^{{}}", -sp.oo, sp.oo)
    if parts:
        sign = read("∫_{{}}^{{}}", parts[0].lower, parts[-1].upper)
    if any(left.upper != right.lower for left, right in pairwise(parts)):
        sign = read("∫_{PQ > 0}")
    if len(parts) == len(common):
        return sign, inside, operator("d"), x
    both = row(sign, inside, operator("d"), x, operator("+"), total, inside)
    return (fence(both),)


def _over_atoms(d: PrivacyLoss) -> str:
    """Return what the sum beside an integral goes over, nothing where there is none."""
    atoms = [p for p in d.pieces if p.place is not None and p.log_p is not None]
    if all(piece.log_q is None for piece in atoms):
        return ""
    return "the sum over values of positive probability, which P and Q stand for there"


def _whole_tilts(d: PrivacyLoss) -> Iterator[Line]:
    """The binomial sum of a Poisson-sampled pair, K at whole tilts (the whole Rényi orders)."""
    sampled = _sampled(d)
    if sampled is None or d.cgf.expression is not None:
        return
    base = series.base_cgf(d, sampled)
    if base is None or base.expression is None:
        return
    tilt = d.cgf.tilt
    order = tilt + 1
    tilts = "0, 1, 2, …"
    if sampled.is_reversed:
        order = -tilt
        tilts = "−1, −2, −3, …"
    j = sp.Symbol("j", integer=True, nonnegative=True)
    value = sp.factor(base.expression.subs(base.tilt, j - 1))
    binomial = sp.binomial(order, j)
    weight = binomial * (1 - sampled.rate) ** (order - j) * sampled.rate**j
    term = sp.Mul(weight, sp.exp(value))
    # Of j = 0 the factor is the whole mass of Q, not that where the other law is positive.
    if tidy.simplify(value.subs(j, 0)) == 0:
        total = sp.Sum(term, (j, 0, order))
    else:
        total = sp.Sum(term, (j, 1, order)) + weight.subs(j, 0)
    name = read("e^{K({})}", layout(tilt))
    yield equation(name, total, words=f"for {tilt} = {tilts} (Rényi order {tilt} + 1)")


def _sampled(d: PrivacyLoss) -> Sampled | None:
    """Return the pair that Poisson sampling mixed, None where there is none."""
    if d.pair.alternatives or d.points:
        return None
    return sampled_pair(d.pair)


def domain_lines(d: PrivacyLoss) -> list[Line]:
    """Return the ends of the interval on which K is finite, nothing where they were not found."""
    ends: Iterable[sp.Expr | str] = d.cgf.domain or ()
    if not d.cgf.domain:
        ends = map(numeric_end, seen_ends(d, "domain") or ())
    t = layout(d.cgf.tilt)
    return [equation(read(f"{{}}{sign}", t), end) for sign, end in zip("₋₊", ends, strict=False)]


def cumulant_lines(d: PrivacyLoss | VectorDerivation, highest: int) -> Iterator[Line]:
    """Yield the tilted cumulants up to an order: formulas, or the moments that they are made of."""
    t = layout(d.cgf.tilt)
    for j in range(1, highest + 1):
        left = read(f"K{derivative_mark(j)}({{}})", t)
        closed = series.closed_cumulant(d, j)
        if closed is not None:
            yield equation(left, closed)
            continue
        if j == 1:
            yield equation(left, _tilted(d, 1))
            continue
        if j == 2:
            yield equation(read("m_j({})", t), _tilted(d, "j"))
        yield equation(left, cumulant_in_moments(j, d.cgf.tilt))


def _tilted(d: PrivacyLoss | VectorDerivation, order: int | str) -> Node:
    """Return a tilted moment of the loss as an integral or a sum."""
    t = layout(d.cgf.tilt)
    scale = read("e^{−K({})}", t)
    if isinstance(d, VectorDerivation):
        loss = sp.Function("ℓ")(FIRST, SECOND)
        exponent = sp.Symbol("j")
        if isinstance(order, int):
            exponent = sp.Integer(order)
        density = sp.Function("q")(FIRST, SECOND)
        inside = d.moment(density * loss**exponent, loss)
        return row(scale, operator("·"), layout(inside), level=PRODUCT)
    power = ""
    if order != 1:
        power = f"^{order}"
    x = layout(d.variable)
    if d.pair.alternatives:
        whole = read(
            f"∑_i “Pr”(i)·∫ ℓ_i({{}}){power}P_i({{}})^{{1 + {{}}}}Q_i({{}})^{{−{{}}}}dx",
            x,
            x,
            t,
            x,
            t,
        )
        return row(scale, operator("·"), whole, level=PRODUCT)
    inside = read(f"ℓ({{}}){power}P({{}})^{{1 + {{}}}}Q({{}})^{{−{{}}}}", x, x, t, x, t)
    return row(scale, operator("·"), *_over_finite_losses(d, inside), level=PRODUCT)


def derivative_mark(order: int) -> str:
    """Return ′, ″, ‴ or ^{(4)}."""
    if order < 4:
        return ["", "′", "″", "‴"][order]
    return f"^{{({order})}}"


def _closed_at_zero(d: PrivacyLoss) -> Iterator[Line]:
    """κ₁ … κ₄, skewness and excess in the parameters."""
    cumulants = [series.cumulant_at(d, j, 0) for j in range(1, CUMULANTS + 1)]
    for j, value in enumerate(cumulants, start=1):
        yield equation(read("κ_{}", sp.Integer(j)), value)
    _, variance, third, fourth = cumulants
    if variance == 0:
        return
    skewness = third / variance ** sp.Rational(3, 2)
    forms = (sp.factor_terms(skewness), tidy.factor(presented(skewness)))
    shortest = min(forms, key=sp.count_ops)
    excess = sp.factor_terms(fourth / variance**2)
    for name, ratio, words in (
        ("κ₃/κ₂^{3/2}", shortest, "skewness"),
        ("κ₄/κ₂²", excess, "excess"),
    ):
        line = equation(name, ratio, words=words)
        width = measure(layout(presented(ratio))) + len(words)
        if width <= line.room:  # else it is left to the two lines above
            yield line


# κ₂, κ₃ and κ₄ in the moments about 0.
_IN_MOMENTS = ("m₂ − m₁²", "m₃ − 3m₁m₂ + 2m₁³", "m₄ − 4m₁m₃ − 3m₂² + 12m₁²m₂ − 6m₁⁴")


def _moments_at_zero(d: PrivacyLoss, closed: Sequence[sp.Expr]) -> Iterator[Line]:
    """κ₁ … κ₄ as moments, the first ones in closed form, with leading terms in q."""
    x = layout(d.variable)

    def moment(power: str) -> Node:
        whole = row(*_over_finite_losses(d, read(f"ℓ({{}}){power}P({{}})", x, x)))
        if d.mass_at_infinity == 0:
            return whole
        return read("1/(1 − δ_∞)·{}", whole)

    yield equation("m_j", moment("^j"), words=_over_atoms(d))
    if closed:
        yield equation("κ₁", closed[0])
    else:
        yield equation("κ₁", moment(""))
    for j, right in enumerate(_IN_MOMENTS, start=2):
        index = sp.Integer(j)
        if j <= len(closed):
            yield equation(read("m_{}", index), closed[j - 1])
        yield equation(read("κ_{}", index), f"={right}")
    yield from _leading_terms(d)


def _moments_in_time(d: PrivacyLoss) -> list[sp.Expr]:
    """Return E ℓ, E ℓ², E ℓ³ in closed form, up to the first that is not found in time."""
    moments: list[sp.Expr] = []
    if d.mass_at_infinity != 0:
        return moments
    for order in range(1, _CLOSED_MOMENTS + 1):
        moment = d.clock.attempt(
            lambda order=order: moment_at_zero(d.pair, order, d.below_one),  # type: ignore[misc]
            None,
            SHARE,
            _LEAST_FOR_MEAN,
        )
        if moment is None:
            break
        moments.append(moment)
    return moments


def _leading_terms(d: PrivacyLoss) -> Iterator[Line]:
    """What κ_j begins with in powers of the sampling rate, where that is a symbol."""
    sampled = _sampled(d)
    if sampled is None or not sampled.rate.is_Symbol:
        return
    q = sampled.rate
    with suppress(InputError):
        cumulants, power = series.cumulants(d, CUMULANTS, _RATE_ORDER)
        if power is None:
            return
        for j, value in enumerate(cumulants, start=1):
            if value == 0:
                continue
            (lowest,), coefficient = sp.Poly(value, q).terms()[-1]
            lead = layout(q**lowest * sp.factor(coefficient))
            remainder = read("O({})", layout(q ** (lowest + 1)))
            yield equation(read("κ_{}", sp.Integer(j)), row(lead, operator("+"), remainder))
