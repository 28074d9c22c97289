"""What a derivation shows of its expansions, many steps, tail constants and composed δ.

Where M = (N₁(t)e^{βt} + N₂(t)e^{γt})/(t − p)^d, δ is a finite sum: Mⁿ by the binomial theorem, and
each term of the contour integral by its residues at 0, at −1 and at p, where it is closed to the
left: b_k > ε.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import sympy as sp

from symdp.density.exponential_sum import REFUSALS, ExponentialSum, Polynomial, read_exponential_sum
from symdp.density.signs import random_values, sign_of
from symdp.derive import series
from symdp.derive.asymptotics import LEVEL, PLACE, Expansion, at_place
from symdp.derive.presented import NORMAL
from symdp.derive.records import COUNT, EPSILON
from symdp.errors import InputError
from symdp.expansion import (
    F,
    graded_expression,
    hermite,
    saddlepoint_corrections,
    standardised_cumulant,
)
from symdp.interrupt import attempt
from symdp.page.document import Line, Section, sentence
from symdp.page.formula import equation, layout, read
from symdp.page.node import in_words, measure, row, text
from symdp.page.sections.loss import LEAST, SHARE, finite_lines, tried
from symdp.tolerances import SHORT_TIME

if TYPE_CHECKING:
    from symdp.derive.privacy_loss import PrivacyLoss
    from symdp.derive.records import HasCGF
    from symdp.derive.tails import Tails

INDEX = sp.Symbol("k", integer=True, nonnegative=True)
STEP = sp.Symbol("w", real=True)


@dataclass(frozen=True)
class ResidueTerms:
    """What the k-th term of the sum is made of."""

    place: sp.Expr
    at_zero: sp.Expr
    at_minus_one: sp.Expr
    around_pole: sp.Expr
    order: sp.Expr


def residue_terms(exponentials: ExponentialSum) -> ResidueTerms | None:
    """Return the terms of a sum of two exponentials over one pole off 0 and −1, else None."""
    if len(exponentials.terms) != 2 or len(exponentials.poles) != 1:
        return None
    (pole, degree) = exponentials.poles[0]
    (first_term, second_term) = exponentials.terms
    if pole in (sp.S.Zero, sp.S.NegativeOne):
        return None
    n = COUNT
    k = INDEX
    w = STEP
    if first_term.rate == -second_term.rate:
        exponent = (n - 2 * k) * second_term.rate
    else:
        exponent = k * first_term.rate + (n - k) * second_term.rate

    def residue(at: sp.Expr, over: sp.Expr) -> sp.Expr:
        first = _at(first_term.polynomial, at)
        second = _at(second_term.polynomial, at)
        powers = [(first, k), (second, n - k), (at - pole, -degree * n), (over, sp.S.NegativeOne)]
        wave = at * exponent - at * EPSILON
        if first != 0 != second:
            return _product(powers, wave)
        if first == 0 == second:
            return sp.S.Zero
        only = n  # the term that does not vanish
        if first == 0:
            only = sp.S.Zero
        left = [(value, power.subs(k, only)) for value, power in powers if value != 0]
        value_there = _product(left, wave.subs(k, only))
        return sp.Piecewise((value_there, sp.Eq(k, only)), (0, True))

    shifted = pole + w
    powers_around = [
        (_at(first_term.polynomial, shifted), k),
        (_at(second_term.polynomial, shifted), n - k),
        (shifted, sp.S.NegativeOne),
        (1 + shifted, sp.S.NegativeOne),
    ]
    return ResidueTerms(
        place=exponent,
        at_zero=residue(sp.S.Zero, sp.S.One),
        at_minus_one=residue(sp.S.NegativeOne, sp.S.NegativeOne),
        around_pole=_product(powers_around, shifted * (exponent - EPSILON)),
        order=sp.Integer(degree) * n,
    )


def _at(polynomial: Polynomial, value: sp.Expr) -> sp.Expr:
    terms = (coefficient * value**power for power, coefficient in enumerate(polynomial))
    return sp.factor(sp.simplify(sp.Add(*terms)))


def _product(powers: Iterable[tuple[sp.Expr, sp.Expr]], wave: sp.Expr) -> sp.Expr:
    """Return Π valueᵢ^powerᵢ e^wave, each base once, exponents joined where none has w."""
    exponents: dict[sp.Expr, sp.Expr] = {}
    height = sp.S.Zero
    for value, power in powers:
        for factor in sp.Mul.make_args(value):
            base, exponent = factor.as_base_exp()
            if base is sp.E:
                height += exponent * power
                continue
            parts = {base: exponent}
            if base.is_Rational:
                parts = {
                    sp.Integer(base.p) * sp.sign(base): exponent,
                    sp.Integer(base.q): -exponent,
                }
                if base < 0:
                    parts[sp.S.NegativeOne] = exponent
            elif base.could_extract_minus_sign() and exponent.is_integer:
                parts = {-base: exponent, sp.S.NegativeOne: exponent}
            elif base.is_Add:
                content, primitive = base.as_content_primitive()
                if content != 1:
                    parts = {primitive: exponent, sp.Integer(content.p): exponent}
                    parts[sp.Integer(content.q)] = -exponent
            for base_part, times in parts.items():
                exponents[base_part] = exponents.get(base_part, sp.S.Zero) + times * power
    powers_joined = [base ** sp.expand(power) for base, power in exponents.items() if base != 1]
    product = sp.Mul(*powers_joined)
    if STEP in wave.free_symbols:
        return product * sp.exp(sp.factor(height)) * sp.exp(wave)
    exponent_joined = sp.factor_terms(sp.expand(height + wave))
    return product * sp.exp(exponent_joined)


def _common(
    d: PrivacyLoss, first: sp.Expr, second: sp.Expr, k: sp.Symbol
) -> tuple[sp.Expr, sp.Expr]:
    """Return s > 0 and max(0, a − b) with max(0, first − second) = s·max(0, a − b), s without k."""
    powers = [
        sp.expand_power_base(powers_of, force=True).as_powers_dict()
        for powers_of in (first, second)
    ]
    shared = {b: p for b, p in powers[0].items() if p == powers[1].get(b) and not p.has(k)}
    scale = sp.Mul(*(base**power for base, power in shared.items()))
    values = random_values([p.symbol for p in d.mechanism.declared], 1, d.below_one)
    if sign_of(scale.subs({COUNT: 1}).subs(values)) != 1:
        scale = sp.S.One
        shared = {}
    remaining = []
    for powers_of in powers:
        factors = [base**power for base, power in powers_of.items() if base not in shared]
        remaining.append(sp.Mul(*factors))
    difference = sp.Add(remaining[0], -remaining[1])
    return scale, sp.Max(0, difference, evaluate=False)


def residue_lines(exponentials: ExponentialSum, infinite: sp.Expr) -> Iterator[Line]:
    """Yield the lines of the finite sum, nothing where it is not of this form."""
    terms = residue_terms(exponentials)
    if terms is None:
        return
    yield equation("b_k", terms.place)
    inner = "[w^{{}}]g_k(w)"
    parts = []
    for name, value, words in (
        ("r₀", terms.at_zero, "residue at t = 0"),
        ("r₁", terms.at_minus_one, "residue at t = −1"),
    ):
        if value == 0:
            continue
        parts.append(name)
        if isinstance(value, sp.Piecewise):
            yield equation(name, value)
        else:
            yield equation(name, value, words=words)
    yield equation("g_k(w)", terms.around_pole)
    lost = _escaped(infinite)
    residues = " + ".join([*parts, inner])
    total = f"{lost}∑_{{k: b_k > ε}} {{}}({residues})"
    binomial = layout(sp.binomial(COUNT, INDEX))
    yield equation("δ(ε)", row(*read(total, binomial, terms.order - 1).parts))
    yield sentence(
        "the sum is over k = 0, …, n; [w^m]g is the coefficient of w^m in the power series of g"
    )


def _escaped(mass_at_infinity: sp.Expr) -> str:
    """Return what an infinite loss adds to δ of n steps, before the other terms."""
    if mass_at_infinity == 0:
        return ""
    return "1 − (1 − δ_∞)^n + "


_ONE_LINE = 130  # characters of a formula that is not given in F_j
_RATES = ("b", "a", "c", "d", "g")  # letters of which one is no parameter's name
_COUNTERS = ("k", "j", "i", "l", "m")  # letters of the number of a term, likewise
_SMALL = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
X = sp.Symbol("x", real=True)


def rho(j: int) -> sp.Symbol:
    """Return the symbol ρ_j = F_j/F₂^{j/2}."""
    return sp.Symbol(f"rho_{j}", real=True)


def saddle_corrections(order: int) -> tuple[sp.Expr, ...]:
    """Return c₁, …, c_order in ρ₃, ρ₄, …, each over one denominator."""
    rules = {F(j): rho(j) for j in range(3, 2 * order + 3)} | {F(2): sp.S.One}
    return tuple(_over_one(c.xreplace(rules)) for c in saddlepoint_corrections(order))


def edgeworth_corrections(order: int) -> tuple[sp.Expr, ...]:
    """Return e₁, …, e_order in λ_j and the Hermite polynomials He_k."""
    corrections_of_grades = []
    for grade in range(1, order + 1):
        terms = graded_expression(grade, standardised_cumulant, lambda k: hermite_symbol(k - 1))
        corrections_of_grades.append(_over_one(terms))
    return tuple(corrections_of_grades)


def hermite_symbol(k: int) -> sp.Symbol:
    """Return the symbol He_k."""
    return sp.Symbol(f"He_{k}", real=True)


def _over_one(terms: sp.Expr) -> sp.Expr:
    content = sp.together(terms).as_numer_denom()[1]
    inside = sp.expand(terms)
    if not inside.is_Add:
        return inside
    return sp.Mul(sp.Rational(1, content), sp.expand(inside * content), evaluate=False)


def corrections(d: HasCGF, order: int) -> list[Section]:
    """Return the saddle-point and the Edgeworth series as people print them."""
    lost = finite_lines(d)
    if d.only_loss is not None:
        reason = (
            "there is none: the finite loss takes one value alone, and δ of n steps is a formula"
        )
        return [Section("series", "Series", (sentence(reason),))]
    return [
        Section("series", title, (*lines, *lost[1:]), is_general=True)
        for title, lines in (
            ("Saddle-point series", _saddle(d, order)),
            ("Edgeworth series", _edgeworth(d, order)),
        )
    ]


def _saddle(d: HasCGF, order: int) -> Iterator[Line]:
    t = layout(d.cgf.tilt)
    more = "".join(f" + {name}" for name in _indexed("c", order))
    lost = _escaped(d.mass_at_infinity)
    yield equation("δ(ε)", f"={lost}e^{{F₀}}/√(2πF₂)·(1{more} + …)", relation="≈")
    for k, correction in enumerate(saddle_corrections(order), start=1):
        yield equation(read("c_{}", sp.Integer(k)), correction, words=f"of order n{_power(-2 * k)}")
    yield equation("ρ_j", "=F_j/F₂^{j/2}")
    yield equation("F(z)", "=nK(z) − εz − log z − log(1 + z)")
    yield equation("F₀", read("nK({}) − ε{} − log {} − log(1 + {})", t, t, t, t))
    words = f"which fixes {d.cgf.tilt} > 0 [SPA (50)]"
    yield equation("F₁", read("nK′({}) − ε − 1/{} − 1/(1 + {}) = 0", t, t, t), words=words)
    yield equation(
        "F_j", read("nK^{(j)}({}) + (−1)^j·(j − 1)!·({}^{−j} + (1 + {})^{−j})", t, t, t),
        words="for j ≥ 2",
    )  # fmt: skip


def _edgeworth(d: HasCGF, order: int) -> Iterator[Line]:
    more = " + ".join(_indexed("e", order))
    under_p = ""
    if d.mass_at_infinity != 0:
        under_p = "(1 − δ_∞)^n·"
    under_q = ""
    if d.mass_at_minus_infinity != 0:
        under_q = "·(1 − δ_{−∞})^n"
    whole = f"=1 − {under_p}E_P(x_P) − e^ε{under_q}·(1 − E_Q(x_Q))"
    yield equation("δ(ε)", whole, relation="≈", words="[EA Prop 3.2]")
    yield equation("x_P", "=(ε − nK′(0))/√(nK″(0))")
    yield equation("x_Q", "=(ε − nK′(−1))/√(nK″(−1))")
    yield equation(
        "E(x)", f"=Φ(x) − φ(x)·({more} + …)", words="E_P with λ_j at t = 0, E_Q at t = −1"
    )
    for k, correction in enumerate(edgeworth_corrections(order), start=1):
        yield equation(read("e_{}", sp.Integer(k)), correction, words=f"of order n{_power(-k)}")
    yield equation("λ_j", "=n^{1 − j/2}K^{(j)}(t)/K″(t)^{j/2}")
    symbols = set().union(*(e.free_symbols for e in edgeworth_corrections(order)))
    for k in range(1, 3 * order):
        if hermite_symbol(k) in symbols:
            yield equation(read("He_{}", sp.Integer(k)), sp.expand(hermite(k, X)))


def _indexed(letter: str, order: int) -> list[str]:
    indices = [str(k).translate(_SMALL) for k in range(1, order + 1)]
    return [f"{letter}{index}" for index in indices]


def _power(halves: int) -> str:
    """A power of n for a text: ⁻¹, ⁻² or ^(−1/2)."""
    if halves % 2 == 0:
        return str(halves // 2).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"^(−{-halves}/2)"


def own_section(d: PrivacyLoss) -> Section:
    """Return F₀, F₂, ρ₃, ρ₄ and c₁ with this mechanism's K put in; nothing without a formula."""
    lines: list[Line] = []
    if d.cgf.expression is not None and d.only_loss is None:
        lines += tried(d, "F₀ and its derivatives", lambda: _own(d))
    return Section("series", "For this mechanism", tuple(lines))


def _own(d: PrivacyLoss) -> list[Line]:
    try:
        terms = dict(series.saddle_terms(d, 1))
    except InputError:
        return []
    t = layout(d.cgf.tilt)
    lost = _escaped(d.mass_at_infinity)
    at = f"at the saddle point {d.cgf.tilt} > 0"
    lines = [
        equation("δ(ε)", f"={lost}e^{{F₀}}/√(2πF₂)·(1 + c₁ + …)", relation="≈"),
        equation(read("nK′({})", t), read("ε + 1/{} + 1/(1 + {})", t, t), words=at),
    ]
    lines.append(equation("F₀", terms[F(0)]))
    lines.append(equation("F₂", terms[F(2)]))
    third = terms[F(3)] / terms[F(2)] ** sp.Rational(3, 2)
    fourth = terms[F(4)] / terms[F(2)] ** 2
    for j, ratio, in_terms_of_f in ((3, third, "=F_3/F₂^{3/2}"), (4, fourth, "=F_4/F₂²")):
        name = read("ρ_{}", sp.Integer(j))
        if _is_short(ratio):
            lines.append(equation(name, ratio))
        else:
            lines.append(equation(read("F_{}", sp.Integer(j)), terms[F(j)]))
            lines.append(equation(name, in_terms_of_f))
    first = (3 * fourth - 5 * third**2) / 24
    if _is_short(first):
        lines.append(equation("c₁", first))
    else:
        lines.append(equation("c₁", "=(3ρ₄ − 5ρ₃²)/24"))
    return lines


def _is_short(value: sp.Expr) -> bool:
    return len(text(layout(value))) <= _ONE_LINE


def asymptotics_section(d: PrivacyLoss) -> Section:
    """Return ε(n, δ), and t₀ and log δ in three regimes of ε, for many steps."""
    lines = [equation("ε(n, δ)", many_steps(d), relation="≈")]
    if d.only_loss is None:
        regime_lines: list[Line] = []
        if d.cgf.expression is not None:
            regime_lines = d.clock.attempt(lambda: _regimes(d, substitute=True), [], SHARE, LEAST)
        lines += regime_lines or tried(d, "t₀ and log δ", lambda: _regimes(d, substitute=False))
    return Section("asymptotics", "Many steps", tuple(lines))


_SAID = {
    "central": ("=nκ₁ + ξ√(nκ₂)", "in the bulk"),
    "fixed": ("", "at fixed ε, where δ tends to 1"),
    "large": ("=nr", "in the tail, r > κ₁"),
}
_SIGNS = ", if κ₁ > 0 > K′(−1)"  # which is so where K vanishes at 0 and at −1


def _regimes(d: PrivacyLoss, *, substitute: bool) -> list[Line]:
    try:
        in_cumulants = series.asymptotics(d, 0)
        expansions = series.asymptotics(d, 0, substitute)
    except InputError:
        return []
    is_lost = d.mass_at_infinity != 0
    signs = ""
    if is_lost or d.mass_at_minus_infinity != 0:
        signs = _SIGNS
    log_delta = "log δ"
    if is_lost:
        log_delta = "log(δ − 1 + (1 − δ_∞)^n)"
    names = {PLACE: sp.Symbol("theta", real=True), LEVEL: sp.Symbol("r", real=True)}
    lines: list[Line] = []
    for general, closed in zip(in_cumulants, expansions, strict=True):
        expansion = _readable(general, closed)
        level, words = _SAID[expansion.regime]
        if level:
            lines.append(equation("ε", level, words=words))
        else:  # at fixed ε
            lines.append(sentence(f"{words}{signs}:"))
        is_mirrored = expansion.regime == "fixed" and general.condition is None
        if is_mirrored and expansion.log_delta is not None and expansion.log_delta.has(at_place(0)):
            lines.append(equation("θ", -sp.S.Half, words="where K is least, as K(t) = K(−1 − t)"))
        if expansion.condition is not None:
            name = "K′(θ)"
            if expansion.condition.lhs == PLACE:
                name = "θ"
            lines.append(equation(name, expansion.condition.rhs.xreplace(names)))
        lines.append(equation("t₀", expansion.tilt.xreplace(names), relation="≈"))
        if expansion.log_delta is not None:
            left = log_delta
            if expansion.regime == "fixed":
                left = "log(1 − δ)"
            lines.append(equation(left, expansion.log_delta.xreplace(names), relation="≈"))
    return lines


def _readable(general: Expansion, closed: Expansion) -> Expansion:
    """Return an expansion with K put in, but log δ in K_j where it is longer than two lines."""
    if closed.log_delta is None or len(text(layout(closed.log_delta))) <= 2 * _ONE_LINE:
        return closed
    condition = general.condition
    if general.regime == "large" and closed.condition is None:
        condition = sp.Eq(PLACE, closed.tilt)
    return replace(closed, tilt=general.tilt, log_delta=general.log_delta, condition=condition)


def many_steps(d: PrivacyLoss) -> sp.Expr | str:
    """Return ε of many steps in n and z_delta = Φ̄⁻¹(δ), the terms down to n⁰, or why there is none.

    A loss on a lattice has no more than the first two; cumulants without a formula are κ_j.
    """
    reason = "it was not found within the time limit"
    # Series in a sampling rate hold for small rates alone: no formula for people.
    substitutions = [False]
    if d.cgf.expression is not None:
        substitutions = [True, False]
    order = int(not d.pair.is_discrete)
    for substitute in substitutions:
        work = partial(series.epsilon_asymptotics, d, order, substitute)
        try:
            expansion = d.clock.attempt(work, None, SHARE, LEAST)
        except InputError as error:
            reason = str(error)
        else:
            if expansion is not None:
                return expansion.epsilon
    return reason


def tails_section(d: PrivacyLoss, tails: Tails, values: Mapping[str, str] | None = None) -> Section:
    """Return the tail constants with their sentences, then those without a formula.

    Parts that divide by a width of zero have none.  `values` has what is known in numbers, by name.
    """
    lines = []
    reasons: dict[str, list[str]] = {}
    for constant in tails:
        right = constant.expression
        note = (values or {}).get(constant.name, "")
        if values is not None and right is not None and right.has(sp.zoo, sp.nan):
            right = None
        if right is not None:
            line = equation(constant.notation, right, words=constant.bounds, note=note)
            is_quotient = constant.name == "berry_esseen"  # of two formulas that stand above
            if not (is_quotient and measure(layout(right)) > line.room):
                lines.append(line)
        elif note:
            lines.append(equation(constant.notation, constant.bounds, note=note))
        else:
            reason = constant.reason or "the formula divides by zero"
            reasons.setdefault(reason, []).append(text(read(constant.notation)))
    if reasons:
        parts = []
        for why, notations in reasons.items():
            listed = ", ".join(notations)
            parts.append(f"{listed} ({in_words(why)})")
        absent = "; ".join(parts)
        lines.append(sentence(f"without a formula: {absent}"))
    return Section("tails", "Tail constants", tuple(lines))


def composed_section(d: PrivacyLoss) -> Section:
    """Return the composed δ as a finite formula, where there is one."""
    lines = tried(d, "δ(ε)", lambda: _composed(d))
    return Section("composed", "Composed δ as a finite formula", tuple(lines))


def _normal(argument: sp.Expr) -> sp.Expr:
    return NORMAL(sp.together(sp.factor_terms(argument)))


def _composed(d: PrivacyLoss) -> Iterator[Line]:
    from symdp.derive.tails.sub_gaussian import normal_variance

    n = COUNT
    e = EPSILON
    kept = series.finite_mass(d)
    mass_of_q = (1 - d.mass_at_minus_infinity) ** n
    variance = normal_variance(d)
    both = [p for p in d.points if p.p != 0 and p.q != 0]
    if d.only_loss is not None:
        inside = sp.Max(0, 1 - sp.exp(e - n * d.only_loss), evaluate=False)
        yield equation("δ(ε)", 1 - kept + kept * inside)
        return
    if variance is not None:
        mean = n * series.cumulant_at(d, 1, 0)
        square = n * variance
        root = sp.sqrt(square)
        above = _normal((mean - e) / root)
        below = _normal((mean - square - e) / root)
        yield equation("δ(ε)", 1 - kept + kept * above - mass_of_q * sp.exp(e) * below)
        return
    if len(both) == 2:
        names = {d.variable.name, *(p.name for p in d.mechanism.declared)}
        free = next(letter for letter in _COUNTERS if letter not in names)
        k = sp.Symbol(free, integer=True, nonnegative=True)
        first_coin, second_coin = both
        ps = first_coin.p**k * second_coin.p ** (n - k)
        qs = first_coin.q**k * second_coin.q ** (n - k)
        scale, inside = _common(d, ps, sp.exp(e) * qs, k)
        total = sp.Sum(sp.Mul(sp.binomial(n, k), inside, evaluate=False), (k, 0, n))
        yield equation("δ(ε)", 1 - kept + sp.Mul(scale, total, evaluate=False))
        return
    if d.cgf.expression is None or d.pair.is_discrete:
        return
    moment = sp.exp(d.cgf.expression)
    # Whether M is such a sum does not hang on the values.
    values = random_values(d.mechanism.parameters.values(), 1, d.below_one)
    concrete = moment.subs(values)
    tilt = d.cgf.tilt
    if attempt(lambda: read_exponential_sum(concrete, tilt), None, SHORT_TIME) is None:
        return
    t = layout(tilt)
    yield equation(read("M({})", t), moment)
    with suppress(*REFUSALS):
        exponentials = attempt(lambda: read_exponential_sum(moment, tilt), None, SHORT_TIME)
        explicit: list[Line] = []
        if exponentials is not None:
            explicit += residue_lines(exponentials, d.mass_at_infinity)
        if explicit:
            yield from explicit
            return
    taken = {parameter.name for parameter in d.mechanism.declared}
    b = next(letter for letter in _RATES if letter not in taken)
    yield equation(read("M({})^n", t), read(f"∑_{b} R_{b}({{}})e^{{{b}{{}}}}", t, t))
    pole = f"“Res”_{{{{}} = p}} R_{b}({{}})e^{{({b} − ε)·{{}}}}/({{}}·(1 + {{}}))"
    lost = _escaped(d.mass_at_infinity)
    sums = read(f"{lost}∑_{{{b} > ε}} ∑_p{{}}", read(pole, t, t, t, t, t))
    yield equation("δ(ε)", sums)
    yield sentence(
        "M is a sum of rational functions times exponentials, so that its powers are, and δ is the "
        "finite sum of the residues at the poles p left of the line"
    )
