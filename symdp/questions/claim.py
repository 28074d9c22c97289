r"""A stated (ε, δ), checked against the steps that it is stated of.

The claim holds where δ(ε) ≤ δ. Where δ(ε) > δ some test has more power than it allows: in y = e^ε
the function g(y) = 1 − δ(log y) is concave, and the trade-off is f(α) = sup_y g(y) − yα. Given g at
y₀ < y₁ = e^ε < y₂ with chords of slopes s₀₁ and s₁₂, every α ≥ s₀₁ has

.. math:: f(\alpha) \le g(y_1) - y_1\alpha
   + \max\left((\alpha - s_{01})\, y_1,\; (\alpha - s_{12})(y_1 - y_0)\right) ,

as g lies below each chord beyond its ends. So there is a test with false positive rate α and a
power of at least 1 less that; (ε, δ) allows e^ε α + δ [Kairouz, Oh, Viswanath 2015].
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from symdp.arguments import instance, real
from symdp.capacity import within_capacity
from symdp.decimal_text import exponential, given, rounded
from symdp.emit.exact import fraction_ball, middle_of
from symdp.errors import AccuracyError, InputError, at
from symdp.exact_number import exact_number
from symdp.interrupt import limit, time_left
from symdp.questions.steps.accounted import direction_of

if TYPE_CHECKING:
    from symdp.arguments import Direction
    from symdp.questions.guarantee import Guarantee
    from symdp.questions.steps.accounted import Composed

T = TypeVar("T")
CERTIFIED = "certified"  # the method of what is proved
_PROVED_DIGITS = (6, 15, 40)  # of δ(ε): more where fewer do not tell it from the claim
_LONGEST = 30.0  # seconds for each proof, after which the exact formula answers
_SHOWN = 3  # digits of the ε that would do, rounded up
_RATE_DIGITS = (4, 8, 16, 24)  # of an attack's rates: more where fewer leave nothing between them
_NAMES = {"ε": "ε", "ϵ": "ε", "eps": "ε", "epsilon": "ε", "δ": "δ", "delta": "δ"}
_STATED = re.compile(
    r"(?<![^\W\d_])(eps(?:ilon)?|delta|[εϵδ])\s*(?:=|:|≤|<=)?\s*([^\s,;()=:]+(?:\s*/\s*[\d.eE]+)?)",
    re.IGNORECASE,
)
_PAIR = re.compile(
    r"(?:\(\s*[εϵ]\s*,\s*δ\s*\)\s*=\s*)?\(\s*([^\s,;()]+)\s*[,;]\s*([^\s,;()]+)\s*\)"
)
_POWER = re.compile(r"(?:([\d.]+)\s*[×x*]\s*)?\b10(?:\^|\*\*)\{?([+-]?\d+)\}?")
_BETWEEN = re.compile(r"(?:\s|[,;().-]|\bat\b|\band\b|\bwith\b|\bDP\b)*", re.IGNORECASE)
_WANTED = 'write a claim as "ε = 0.843 at δ = 1e-5" or "eps=0.843, delta=1e-5"'


class Attack(NamedTuple):
    """A test that no mechanism with the claimed (ε, δ) allows, its rates on the safe sides."""

    false_positive_rate: Fraction
    true_positive_rate: Fraction
    allowed: Fraction  # the largest true positive rate that the claim allows there
    direction: str

    def to_json(self) -> dict[str, Any]:
        """Return the rates, a false negative rate being 1 less a true positive rate."""
        return {
            "false_positive_rate": float(self.false_positive_rate),
            "false_negative_rate": float(1 - self.true_positive_rate),
            "true_positive_rate": float(self.true_positive_rate),
            "allowed_true_positive_rate": float(self.allowed),
            "direction": self.direction,
        }


@dataclass(frozen=True)
class CheckedClaim:
    """What became of a claim, which is kept exactly: its verdict, and δ at the claimed ε.

    "proved": it holds, every rounding included; "exact": it holds by the exact formula in floating
    point or by another bound; "refuted", by `attack` where rates tell it apart; "open": neither was
    shown. `would_do` is an ε to three digits, rounded up, that holds at this δ as surely; None
    where none is found.
    """

    epsilon: Fraction
    delta: Fraction
    verdict: Literal["proved", "exact", "refuted", "open"]
    answer: Guarantee
    would_do: Fraction | None = None
    attack: Attack | None = None

    @property
    def is_proved(self) -> bool:
        """Whether the verdict rests on a proved enclosure of δ(ε)."""
        return self.answer.method == CERTIFIED

    @property
    def holds(self) -> bool:
        """Whether the claim was found true."""
        return self.verdict in ("proved", "exact")

    @property
    def is_loose(self) -> bool:
        """Whether the claim is true, and so is one of a smaller ε."""
        return self.holds and self.would_do is not None and self.would_do < self.epsilon

    def __repr__(self) -> str:
        stated = f"ε = {given(float(self.epsilon))} at δ = {given(float(self.delta))}"
        return f"<CheckedClaim {stated}: {self.verdict}>"

    def to_json(self) -> dict[str, Any]:
        """Return the entries as JSON values, those of δ at the claimed ε among them."""
        return self.answer.to_json() | {
            "claim": {"epsilon": str(self.epsilon), "delta": str(self.delta)},
            "verdict": self.verdict,
            "proved": self.is_proved,
            "loose": self.is_loose,
            "would_do": None if self.would_do is None else float(self.would_do),
            "attack": None if self.attack is None else self.attack.to_json(),
        }


def read_claim(text: str) -> tuple[Fraction, Fraction]:
    """Return the ε and the δ of a claim in words.

    Examples
    --------
    >>> read_claim("ε = 0.843 at δ = 1/8"), read_claim("(2, 1e-1)-DP")
    ((Fraction(843, 1000), Fraction(1, 8)), (Fraction(2, 1), Fraction(1, 10)))
    """
    text = instance(text, str, f"it is no claim: {_WANTED}")
    plain = _POWER.sub(lambda power: f"{power[1] or 1}e{power[2]}", text)
    stated = [(_NAMES[name.lower()], number) for name, number in _STATED.findall(plain)]
    remaining = _STATED.sub("", plain)
    pair = _PAIR.search(plain)
    if not stated and pair is not None:
        stated = [("ε", pair[1]), ("δ", pair[2])]
        remaining = _PAIR.sub("", plain)
    if sorted(name for name, _ in stated) != ["δ", "ε"] or not _BETWEEN.fullmatch(remaining):
        raise InputError(f"{text!r:.60} is no claim: {_WANTED}")
    numbers: dict[str, Fraction] = {}
    for name, number in stated:
        with at(name):
            numbers[name] = exact_number(number.rstrip("."))
    return checked(numbers["ε"], numbers["δ"])


def checked(epsilon: Any, delta: Any) -> tuple[Fraction, Fraction]:
    """Return a claim's numbers exactly; InputError for a claim that says nothing."""
    numbers = []
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        real(value, name)
        numbers.append(exact_number(value) if isinstance(value, str) else Fraction(value))
    if numbers[0] < 0:
        raise InputError(f"epsilon = {epsilon!s:.40}: a claim's ε is 0 or more")
    if not 0 <= numbers[1] < 1:
        raise InputError(
            f"delta = {delta!s:.40}: a claim's δ lies from 0 to below 1; every mechanism has δ = 1"
        )
    return numbers[0], numbers[1]


def check_claim(
    composition: Composed, epsilon: Any, delta: Any, direction: Direction = "both"
) -> CheckedClaim:
    """Return whether steps have a stated (ε, δ), see `Composition.check_claim`."""
    stated, most = checked(epsilon, delta)
    verdict, answer = _verdict(composition, stated, most, direction)
    proved = answer.method == CERTIFIED
    attack = None
    better = _in_time(lambda: _would_do(composition, most, direction, proved))
    if verdict == "refuted":
        attack = _in_time(lambda: _refuting_attack(composition, stated, most, direction, proved))
    return CheckedClaim(stated, most, verdict, answer, better, attack)


def _verdict(
    composition: Composed, epsilon: Fraction, delta: Fraction, direction: Direction
) -> tuple[Literal["proved", "exact", "refuted", "open"], Guarantee]:
    """Return what δ(ε) says of a claim, proved where it can be.

    Only attacks on a pair that is attained are attacks on the mechanism.
    """
    is_attained = composition.accounted.protection.is_attained
    proved = None
    for digits in _PROVED_DIGITS:
        certified = _in_time(partial(composition.certify, epsilon, digits, direction))
        if certified is None:
            break
        proved = certified
        (low, high) = _ends_of(certified)
        if high <= delta:
            return "proved", proved
        if low > delta:
            return ("refuted" if is_attained else "open"), proved
    answers = _computed(composition, epsilon, direction)
    low, high = _ends_of(answers[-1])[0], _ends_of(answers[0])[1]
    if high <= delta:
        return "exact", answers[0]
    if low > delta and is_attained:
        return "refuted", answers[0]
    return "open", answers[0] if proved is None else proved


def _in_time(work: Callable[[], T | None]) -> T | None:
    """Return what work finds, None where it fails, or takes long or half of the time left."""
    with suppress(AccuracyError, InputError), limit(min(time_left() / 2, _LONGEST), of_work=True):
        return work()
    return None


def _computed(composition: Composed, epsilon: Fraction, direction: Direction) -> list[Guarantee]:
    """Return δ at the doubles next to ε below and above: one, where ε is a double."""
    nearest = float(epsilon)
    other = math.nextafter(nearest, -math.inf if nearest > epsilon else math.inf)
    places = {nearest} if nearest == epsilon else {nearest, other}
    return [composition.delta(near, direction=direction) for near in sorted(places)]


def _ends_of(answer: Guarantee) -> tuple[Fraction, Fraction]:
    """Return what δ lies between: 0 and 1 where nothing is known."""
    entries = answer.to_json()
    low, high = (0.0 if entries["lower"] is None else entries["lower"]), entries["upper"]
    if answer.kind_for_pair == "estimate":
        low, high = 0.0, 1.0
    elif high is None:
        high = entries["delta"] if answer.kind == "bound" else 1.0
    return Fraction(low), Fraction(high)


def _would_do(
    composition: Composed, delta: Fraction, direction: Direction, proved: bool
) -> Fraction | None:
    """Return ε(δ) rounded up, once δ is found to hold there as the verdict was found."""
    if delta > 0:
        least = composition.epsilon(float(delta), direction=direction).at_most
    else:
        sides = [composition.law(side) for side in composition.sides(direction)]
        least = max(math.inf if law.mass_at_infinity else law.loss_bounds[1] for law in sides)
    if math.isinf(least):
        return None
    near = Fraction(rounded(max(least, 0.0), _SHOWN, "up"))
    verdict, _ = _verdict(composition, near, delta, direction)
    if verdict == "proved" or (verdict == "exact" and not proved):
        return near
    return None


def _refuting_attack(
    composition: Composed, epsilon: Fraction, delta: Fraction, direction: Direction, proved: bool
) -> Attack | None:
    """Return rates that refute a claim, None where none are told apart from it."""
    from flint import ctx

    for digits in _RATE_DIGITS:
        finer = digits // 2  # digits of ε: the rates' error is of second order in its step
        places = [float(epsilon + Fraction(k, 10**finer)) for k in (-1, 0, 1)]
        with suppress(AccuracyError, InputError), within_capacity("claim"), ctx.workprec(256):
            side, ends = _on_one_side(composition, places, digits + finer, direction, proved)
            y0, y1, y2 = (fraction_ball(Fraction(epsilon_at)).exp() for epsilon_at in places)
            g0, g1, g2 = (1 - fraction_ball(low).union(fraction_ball(high)) for low, high in ends)
            before = (g1 - g0) / (y1 - y0)
            after = (g2 - g1) / (y2 - y1)
            alpha = Fraction(rounded(max(middle_of(before.upper()), Fraction(0)), digits, "up"))
            rate = fraction_ball(alpha)
            slack = ((rate - before) * y1).max((rate - after) * (y1 - y0))
            power = middle_of((1 - g1 + y1 * rate - slack).lower())
            most = fraction_ball(epsilon).exp() * rate + fraction_ball(delta)
            reached = Fraction(rounded(power, digits, "down"))
            allowed = Fraction(rounded(middle_of(most.upper()), digits, "up"))
            if reached > allowed and alpha <= 1:
                return Attack(alpha, reached, allowed, direction_of(side))
    return None


def _on_one_side(
    composition: Composed, places: list[float], digits: int, direction: Direction, proved: bool
) -> tuple[str, list[tuple[Fraction, Fraction]]]:
    """Return the side with the larger δ in the middle, and what δ lies between at three ε there."""
    from symdp.questions.certificate import certify_delta

    def ends(side: str, at: float) -> tuple[Fraction, Fraction]:
        if proved:
            return _ends_of(certify_delta(composition.accounted, at, digits, [side]))
        answer = composition.accountant().log_delta(composition.law(side), at)
        low, high = answer.log_lower, answer.log_upper
        return (
            Fraction(0 if low is None else exponential(low, "down")),
            Fraction(1 if high is None else exponential(high, "up")),
        )

    middle = {side: ends(side, places[1]) for side in composition.sides(direction)}
    side = max(middle, key=lambda name: middle[name][0])
    return side, [ends(side, places[0]), middle[side], ends(side, places[2])]
