"""All tail constants of a derivation, each with its formula or the reason why it has none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import sympy as sp

from symdp.density.integrate import stretches_of
from symdp.density.signs import compare, sign_of
from symdp.derive.child import or_reason
from symdp.derive.domain import power_at_end
from symdp.derive.limits import limit_at
from symdp.derive.records import COUNT, EPSILON
from symdp.derive.series import cumulant, cumulant_at, finite_mass, invert_slope
from symdp.derive.tails.records import TailConstant, TailRule, Tails
from symdp.derive.tails.sub_gaussian import loss_width, normal_variance, sub_gaussian_square
from symdp.derive.tails.van_der_corput import DISCRETE, van_der_corput_formula
from symdp.errors import InputError
from symdp.interrupt import T
from symdp.model import tidy

if TYPE_CHECKING:
    from symdp.derive.privacy_loss import PrivacyLoss

ORDERS = (1, 2, 3)  # of the tail constants
_POWERS = {1: "", 2: "²", 3: "³"}
_FEW_POINTS = 4  # whose third moment is written out
_CERTAIN = "the loss takes one value alone"
_NO_RANGE = "the range of the loss was not found"
_NO_CLOSED = "no closed form of the CGF was found"
_Formula = tuple[sp.Expr | None, str]
_LATE: _Formula = (None, "it was not found within the time limit")
# of the clock, and seconds, for each formula
_SHARE = 0.2
_LEAST = 0.1


def derive_tails(derivation: PrivacyLoss) -> Tails:
    """Return the tail constants of a loss.

    Tails under P and under Q: Chernoff exponents [SPA (40)], Hoeffding's bound with the width τ and
    the drift η [EA Prop 4.5], sub-Gaussian and sub-exponential constants; at each tilt the third
    absolute moment P_t and its ratio [SPA Thm 5], and constants V_k that bound |φ_t|.
    """
    # First what they rest on: asked for within a formula's time it would have that alone.
    _ = derivation.cgf, derivation.loss_range
    parts = (_sums, _squares, _exponential, _at_ends, _of_one_tilt)
    return Tails(tuple(constant for part in parts for constant in part(derivation)))


def _tried(d: PrivacyLoss, work: Callable[[], T], otherwise: T) -> T:
    """What the work finds within its share of the derivation's time."""
    return or_reason(lambda: d.clock.attempt(work, otherwise, _SHARE, _LEAST), lambda _: otherwise)


def _sums(d: PrivacyLoss) -> Iterator[TailConstant]:
    width = _tried(d, lambda: loss_width(d), None)
    tau: _Formula = (width, "") if width is not None else (None, _NO_RANGE)
    means = {under: _tried(d, partial(_mean_loss, d, under), None) for under in ("P", "Q")}
    drift = means["Q"]
    yield TailConstant(
        "loss_width", "τ", "= sup ℓ − inf ℓ of the finite loss", *tau, (),
        TailRule("formula"), d,
    )  # fmt: skip
    why = _NO_CLOSED if d.cgf.expression is None else "no closed form of K′(−1) was found"
    eta: _Formula = (None, why) if drift is None else (-drift, "")
    yield TailConstant(
        "loss_drift", "η", "= −E_Q ℓ of the finite loss", *eta, (), TailRule("drift"), d
    )
    bounded = width is not None and not width.is_infinite
    open_ = _NO_RANGE if width is None else "the loss is unbounded"
    for under, least in (("P", "min_s nK(s) − sε"), ("Q", "min_s nK(s) − (1 + s)ε")):
        yield TailConstant(
            f"chernoff_{under.lower()}",
            f"log {under}_“Chernoff”(ε)",
            _bounded_by(d, under, least),
            *_of_all(d, under, _tried(d, partial(_legendre, d, under), _LATE)),
            ("epsilon", "n"),
            TailRule("chernoff", under),
            d,
        )
        square = width**2 / 4 if bounded and width is not None else None
        yield TailConstant(
            f"hoeffding_{under.lower()}",
            f"log {under}_“Hoeffding”(ε)",
            _bounded_by(
                d, under, f"{_kept(d, under)}−2(ε − n E_{under} ℓ)²/(nτ²)".replace(" −2", " − 2")
            ),
            *_of_all(d, under, _quadratic(d, square, means[under], under, open_)),
            ("epsilon", "n"),
            TailRule("quadratic", under, square, under),
            d,
        )


def _squares(d: PrivacyLoss) -> Iterator[TailConstant]:
    squares = {
        under: _tried(d, partial(sub_gaussian_square, d, under), _LATE) for under in ("P", "Q")
    }
    variance = _tried(d, partial(normal_variance, d), None)
    for under in ("P", "Q"):
        low = under.lower()
        square, reason = squares[under]
        yield TailConstant(
            f"sub_gaussian_{low}",
            f"s²_{under}",
            f"log E_{under} e^(λ(ℓ − Eℓ)) ≤ s_{under}²λ²/2 for every real λ{_given(d)}",
            square, reason, (), TailRule("formula"), d,
        )  # fmt: skip
        crossed = square is None and under == "P" and squares["Q"][0] is not None
        law = "Q" if crossed else under
        mean = _tried(d, partial(_mean_loss, d, law), None)
        formula, why = _quadratic(d, squares[law][0], mean, law, reason)
        if crossed and formula is not None:
            formula += EPSILON
        yield TailConstant(
            f"sub_gaussian_tail_{low}",
            f"log {under}_“sub”(ε)",
            f"log {under}(L₁ + … + Lₙ ≥ ε) from s_{law}²; E_{law} is the mean{_given(d)}",
            *_of_all(d, under, (formula, why)),
            ("epsilon", "n"),
            TailRule("quadratic", under, squares[law][0], law),
            d,
        )
        yield TailConstant(
            f"sub_gaussian_within_{low}",
            f"s²_{under}[a, b]",
            f"log E_{under} e^(λ(ℓ − Eℓ)) ≤ s_{under}²[a, b]·λ²/2 for λ in [a, b]{_given(d)}",
            *_everywhere(variance),
            ("low", "high"),
            TailRule("sub-gaussian within", under),
            d,
        )


def _everywhere(variance: sp.Expr | None) -> _Formula:
    if variance is not None:
        return variance, ""
    return None, "it is a supremum over tilts"


def _exponential(d: PrivacyLoss) -> Iterator[TailConstant]:
    variance = _tried(d, partial(normal_variance, d), None)
    for under in ("P", "Q"):
        scale, reason = _tried(d, partial(_scale, d, 0 if under == "P" else -1), _LATE)
        yield TailConstant(
            f"sub_exponential_scale_{under.lower()}",
            f"α_{under}",
            _of_scale(under),
            scale, reason, (), TailRule("formula"), d,
        )  # fmt: skip
        yield TailConstant(
            f"sub_exponential_{under.lower()}",
            f"ν²_{under}",
            f"log E_{under} e^(λ(ℓ − Eℓ)) ≤ ν_{under}²λ²/2 for |λ| ≤ 1/α_{under}{_given(d)}",
            *(_everywhere(variance) if scale is not None else (None, reason)),
            (),
            TailRule("sub-exponential", under, scale),
            d,
        )


def _of_scale(under: str) -> str:
    base = {"P": "0", "Q": "−1"}[under]
    return f"= 2/(the distance of {base} from the nearer end of K's domain), 1 where it has no end"


def _scale(d: PrivacyLoss, base: int) -> _Formula:
    if d.cgf.domain is None:
        return None, "the domain of the CGF was not found"
    lower, upper = d.cgf.domain
    ends = [gap for gap in (base - lower, upper - base) if not gap.is_infinite]
    if not ends:
        return sp.S.One, ""
    if any(tidy.simplify(end) == 0 for end in ends):
        return None, "the loss has no exponential moments on one side"
    nearest = ends[0]
    if len(ends) > 1:
        order = compare(ends[1], ends[0])
        nearest = sp.Min(*ends) if order is None else ends[1 if order < 0 else 0]
    return sp.factor_terms(2 / nearest), ""


def _at_ends(d: PrivacyLoss) -> Iterator[TailConstant]:
    for side, name, mark, description in (
        (1, "upper", "₊", ("P(ℓ > s) ∼ A₊e^(−a₊s) for large losses s of one step",
                           "δ(ε) − δ_∞ ∼ A₊e^(−a₊ε)/(1 + a₊) for large ε and one step")),
        (-1, "lower", "₋", ("P(ℓ < −s) ∼ A₋e^(−a₋s) for large s and one step",
                            "the factor of that tail")),
    ):  # fmt: skip
        powers = _tried(d, partial(_power_of_loss, d, side), (None, None, _LATE[1]))
        parts = zip(("exponent", "factor"), "aA", description, powers[:2], strict=True)
        for part, symbol, words, value in parts:
            yield TailConstant(
                f"{name}_tail_{part}", f"{symbol}{mark}", words, value, powers[2], (),
                TailRule("end"), d,
            )  # fmt: skip


def _power_of_loss(d: PrivacyLoss, side: int) -> tuple[sp.Expr | None, sp.Expr | None, str]:
    """Return a and A of one step's ±ℓ > s where ±ℓ is unbounded at finite ends alone.

    Where P ~ p y^j and Q ~ q y^k at a distance y of an end and m = ±(k − j) > 0, ±ℓ > s means
    y < (p/q)^{±1/m} e^{−s/m}, of which P is p y^{j+1}/(j + 1).
    """
    if d.pair.is_discrete:
        return None, None, "the loss is discrete"
    if d.loss_range is not None and not d.loss_range[side > 0].is_infinite:
        return None, None, "the loss is bounded on that side"
    for piece in d.pieces:
        for end in (piece.lower, piece.upper):
            if end.is_infinite and not piece.loss.is_infinite:
                limit = limit_at(piece.loss, d.variable, end, end is sp.oo)
                if limit is None or limit.is_infinite:
                    return None, None, "the loss is unbounded at infinity"
    powers = []
    for stretch in stretches_of(d.pair):
        if stretch.smooth.place is not None:
            continue
        for end, inwards in ((stretch.lower, 1), (stretch.upper, -1)):
            terms = (stretch.smooth.p_terms, stretch.smooth.q_terms)
            p, q = (power_at_end(exponent_of, end, inwards) for exponent_of in terms)
            if p is None or q is None:
                return None, None, f"how the densities fall towards {end} was not found"
            gap = side * sp.expand(q[0] - p[0])
            sign = sign_of(gap)
            if sign is None:
                return None, None, f"which density falls faster towards {end} depends on parameters"
            if sign > 0:
                power = p[0] + 1
                scale = (p[1] / q[1]) ** (side * power / gap)
                powers.append((tidy.factor(power / gap), p[1] / power * scale))
    if not powers:
        return None, None, "no end at which the loss is unbounded was found"
    least = sp.Min(*(exponent for exponent, _ in powers))
    if not all(compare(least, exponent_of) is not None for exponent_of, _ in powers):
        return None, None, "which end has the heavier tail depends on parameters"
    exponent_of = [factor for exponent, factor in powers if compare(least, exponent) == 0]
    return least, tidy.simplify(sp.Add(*exponent_of)), ""


def _of_one_tilt(d: PrivacyLoss) -> Iterator[TailConstant]:
    third, reason = _tried(d, partial(_third, d), _LATE)
    ratio, why = (None, reason) if third is None else _standardised(third, cumulant(d, 2))
    yield TailConstant(
        "third_moment", "P_t", "= E_t|ℓ − E_t ℓ|³ under dP_t ∝ e^(tℓ)dP", third, reason, ("t",),
        TailRule("third moment"), d,
    )  # fmt: skip
    yield TailConstant(
        "berry_esseen", "P_t/K″(t)^{3/2}", "= E_t|ℓ − E_t ℓ|³ / Var_t(ℓ)^(3/2)", ratio, why,
        ("t",), TailRule("berry-esseen"), d,
    )  # fmt: skip
    continuous = "|φ_t(y)|"
    meaning = ""
    if d.atoms:
        continuous = "|φ_t(y) − A_t(y)|"
        meaning = ", A_t what atoms add"
    for order in ORDERS:
        yield TailConstant(
            f"van_der_corput_{order}",
            f"V_{order}",
            f"{continuous} ≤ V_{order}/|y|{_POWERS[order]}{meaning}; "
            "values are proved for 0 < |y| ≤ 2⁴⁰",
            *_tried(d, partial(van_der_corput_formula, d, order), _LATE),
            ("t",),
            TailRule("van der corput", order=order),
            d,
        )
    why = DISCRETE if d.pair.is_discrete else "what is left out around turning points depends on y"
    yield TailConstant(
        "van_der_corput_split", "V_“split”(y)",
        f"{continuous} ≤ V_split(y) at one frequency y, also where the loss turns", None, why,
        ("t", "frequency"), TailRule("split"), d,
    )  # fmt: skip


def _standardised(third: sp.Expr, variance: sp.Expr) -> _Formula:
    if variance == 0:
        return None, _CERTAIN
    return third / variance ** sp.Rational(3, 2), ""


def _mean_loss(d: PrivacyLoss, under: str) -> sp.Expr | None:
    """Return E_P ℓ = K′(0) or E_Q ℓ = K′(−1) of the finite loss, None without a closed form."""
    if d.cgf.expression is None:
        return None
    try:
        return cumulant_at(d, 1, 0 if under == "P" else -1)
    except InputError:
        return None


def _lost(d: PrivacyLoss, under: str) -> sp.Expr:
    """The mass of a law at which the loss is infinite: ∞ under P, −∞ under Q."""
    if under == "P":
        return d.mass_at_infinity
    return d.mass_at_minus_infinity


def _given(d: PrivacyLoss) -> str:
    certain = d.mass_at_infinity == 0 == d.mass_at_minus_infinity
    if certain:
        return ""
    return ", given that ℓ is finite"


def _kept(d: PrivacyLoss, under: str) -> str:
    """The log of the probability that all losses are finite, in words."""
    if _lost(d, under) == 0:
        return ""
    return f"n log(1 − {'δ_∞' if under == 'P' else 'δ_(−∞)'}) "


def _bounded_by(d: PrivacyLoss, under: str, exponent: str) -> str:
    """What a bound on the tail of n steps says, infinite losses included."""
    left = f"log {under}(L₁ + … + Lₙ ≥ ε) ≤"
    if under == "Q" or d.mass_at_infinity == 0:
        return f"{left} {exponent}, ε above the mean{_given(d)}"
    return (
        f"{left} log(1 − (1 − δ_∞)ⁿ + e^h), as a loss may be infinite; "
        f"h = {exponent}, ε above the mean{_given(d)}"
    )


def _of_all(d: PrivacyLoss, under: str, formula_or_reason: _Formula) -> _Formula:
    """Return a bound on the tail of finite losses with the probability of an infinite one added."""
    formula, reason = formula_or_reason
    if formula is None or under == "Q" or d.mass_at_infinity == 0:
        return formula_or_reason
    kept = finite_mass(d)
    apart = kept * sp.exp(formula - COUNT * sp.log(1 - d.mass_at_infinity))
    return sp.log(1 - kept + min(sp.exp(formula), apart, key=sp.count_ops)), reason


def _quadratic(
    d: PrivacyLoss, square: sp.Expr | None, mean: sp.Expr | None, under: str, reason: str
) -> _Formula:
    """n log(finite mass) − (ε − n·mean)²/(2ns²); a mean without a formula stays a symbol."""
    if square is None:
        return None, reason
    if square == 0:
        return None, _CERTAIN
    if mean is None:
        mean = sp.Symbol(f"E_{under}", real=True)
    kept = COUNT * sp.log(1 - _lost(d, under))
    return kept - (EPSILON - COUNT * mean) ** 2 / (2 * COUNT * sp.factor_terms(square)), ""


def _legendre(d: PrivacyLoss, under: str) -> _Formula:
    """Return nK(s*) − s*ε with K′(s*) = ε/n where K′ can be inverted by formula."""
    cgf = d.cgf
    if cgf.expression is None:
        return None, _NO_CLOSED
    tilt = cgf.tilt
    saddle = invert_slope(d, EPSILON / COUNT)
    if saddle is None:
        return None, "K′ cannot be inverted by formula"
    value = COUNT * cgf.expression.subs(tilt, saddle) - saddle * EPSILON
    if under == "Q":
        value -= EPSILON
    return _shortest(value), ""


def _shortest(value: sp.Expr) -> sp.Expr:
    """Tidy a formula; logs keep to themselves, since combined ones take powers of symbols."""
    tidied = value.replace(sp.log, lambda inside: sp.log(tidy.factor(tidy.together(inside))))
    forms = [value, tidied]
    if not value.has(sp.log):
        forms.append(tidy.simplify(value))
    return min(forms, key=sp.count_ops)


def _third(d: PrivacyLoss) -> _Formula:
    variance = normal_variance(d)
    if variance is not None:
        return 2 * sp.sqrt(2 / sp.pi) * variance ** sp.Rational(3, 2), ""
    finite = [point for point in d.points if not point.loss.is_infinite and point.p != 0]
    if 0 < len(finite) <= _FEW_POINTS and d.cgf.expression is not None:
        mean = cumulant(d, 1)
        terms = []
        for point in finite:
            exponent = d.cgf.tilt * point.loss - d.cgf.expression
            deviation = sp.Abs(point.loss - mean)
            terms.append(point.p * sp.exp(exponent) * deviation**3)
        return sp.Add(*terms), ""
    return None, "the place K′(t) where |ℓ − K′(t)| has its kink has no formula"
