"""Whom an answer protects: what is accounted for in place of steps, resolved once for everyone.

A step is a mechanism and what it promises: its relation, its sampling, what it releases, and how
far and to which side a record moves the output. The sensitivity D of noise is the most that a
record moves it by. The pair at exactly D is the worst of all where the noise has one mode
(`symdp.balls.modes`); else one pair stands for every shift
(`symdp.questions.steps.worst_shift`), or the answer says that it is for exactly D.

The pair at −D is the reverse of that at D. Under sampling it is not, unless the noise is symmetric:
((1 − q)f + q f(· + D), f) and its reverse are a third and a fourth pair. So where noise is skewed,
each direction has two *sides*, and the largest δ of all answers. A record whose shifts change
their sign between steps may lose more than each: the pair of all shifts answers for it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from symdp.above import above
from symdp.arguments import (
    AT_MOST,
    DOWN,
    EITHER,
    EXACTLY,
    UP,
    checked_count,
    instance,
    listed,
    sides,
)
from symdp.errors import AccuracyError, InputError
from symdp.model.average import AVERAGE, SUM
from symdp.model.fact import AUTHOR
from symdp.model.relation import (
    DOWNWARDS,
    IN_LENGTH,
    ONE_SIGN,
    PAIR,
    SEVERAL_SIGNS,
    SUBSTITUTION,
    UPWARDS,
    Protection,
    is_local,
    is_shuffled,
    protects,
)

if TYPE_CHECKING:
    from symdp.arguments import Direction
    from symdp.model.mechanism import Mechanism
    from symdp.model.pair import Pair
    from symdp.numeric.answer import Accountant
    from symdp.numeric.total import SumLaw
    from symdp.questions.guarantee import GaussianPrivacy, Guarantee

    Steps = tuple[tuple[Mechanism, int], ...]

LEAST_DELTA = 1e-12  # of what is a pure ε but for δ
_SKEWED = (
    "{} speaks of one sign, and of sampled skewed noise a record that lowers the output loses "
    'something else than one that raises it: ask for one, as in shift = "up"'
)
_SEVERAL = (
    "{} speaks of one shift, and noise that was not shown to have one mode may lose more at a "
    "smaller one: {}say modes = 1 if you know that it has one, or ask for that shift, "
    'shift = "exactly"'
)
_ENDS_OF_INPUTS = (
    ", for a change of input from end to end of the interval, and others that were compared: "
    "that none is worse was not proved"
)
_OPEN = (
    "{}: a record may move the output by less than the sensitivity, and noise was shown neither to "
    "have one mode nor to be bounded for every shift{}; if you know that it has one mode say "
    'modes = 1, and for just that shift ask shift = "exactly"'
)
_RISES = (
    "{}: its density was not shown to fall with the length{}, and where it rises a smaller shift "
    "may be worse; give a density that falls, or say modes = 1 if you know that it does"
)
_VALUES = "give every parameter its value, or "
_LOWERED = " lowered"  # ends the name of a side where the record lowers the output
_ASKED = {UP: UPWARDS, DOWN: DOWNWARDS, EXACTLY: EXACTLY}

# What holds for every step: the first of these.
_NARROWEST = (EXACTLY, SEVERAL_SIGNS, UPWARDS, DOWNWARDS, ONE_SIGN, IN_LENGTH, AT_MOST)


@dataclass(frozen=True)
class Accounted:
    """What answers for the steps of a composition, and for whom."""

    given: Steps  # the steps as they were handed in
    # what is accounted for: the steps themselves, or pairs that stand for all their shifts
    steps: Steps
    # the same for a record that lowers every output, where that is another law than those of
    # `steps` in the two directions; else empty
    lowered: Steps
    protection: Protection  # whose privacy it is
    # whether every density was proved to have mass 1, or two quadratures found it
    mass: Literal["proved", "seen"]

    @cached_property
    def has_one_law(self) -> bool:
        """Whether both directions are known to have one law of the loss."""
        return not self.lowered and all(has_one_law(step) for step, _ in self.steps)

    def note(self, direction: str) -> str:
        """Return which sign of a shift one direction covers, empty where it covers both.

        Of skewed noise without sampling, (f(x − D), f) is the pair of removing a record that raises
        the output and, mirrored, of adding one that lowers it; its reverse is that of the others.
        """
        if direction == "both" or self.has_one_law:
            return ""
        if self.lowered:
            return "; this direction alone, whichever way the record moves the output"
        if not any(_is_one_sided(step) for step, _ in self.steps):
            return ""
        if direction == "remove":
            return (
                "; this direction: a record removed that raises the output, or added that lowers it"
            )
        return "; this direction: a record added that raises the output, or removed that lowers it"

    def protection_of(self, direction: str) -> Protection:
        """Return whose privacy the answer of a direction speaks of."""
        note = self.protection.note + self.note(direction)
        return replace(self.protection, note=note)

    @cached_property
    def label(self) -> str:
        """What answers call their direction: "both", or empty where the larger δ has its own."""
        if all(step.is_mirrored for step, _ in self.steps):
            return "both"
        return ""

    def sides(self, direction: str) -> tuple[str, ...]:
        """Return the sides of a direction: laws of the loss, of which the largest δ answers."""
        wanted = sides(direction)
        wanted = wanted[:1] if self.has_one_law else wanted
        if self.lowered:
            return (*wanted, *(side + _LOWERED for side in wanted))
        return wanted

    def steps_of(self, side: str) -> Steps:
        """Return what is accounted for on a side."""
        if side.endswith(_LOWERED):
            return self.lowered
        return self.steps

    def pairs(self, side: str) -> list[tuple[Pair, int]]:
        """Return the pairs (P, Q) of a side, each with its count."""
        direction = direction_of(side)
        return [(step.pair(direction), count) for step, count in self.steps_of(side)]

    def require_one_sign(self, what: str) -> None:
        """Raise InputError where two signs have two pairs, for what has one pair a step."""
        if self.lowered:
            raise InputError(_SKEWED.format(what))

    def require_own_pairs(self, what: str) -> None:
        """Raise InputError, for what speaks of the pairs of the steps themselves."""
        self.require_one_sign(what)
        if self.protection.is_of_all_shifts:
            raise InputError(_SEVERAL.format(what, ""))


class Composed:
    """A composition, as those need it who answer more about it than it does itself."""

    n: int  # the number of all steps
    accounted: Accounted
    sides: Callable[[str], tuple[str, ...]]
    law: Callable[[str], SumLaw]  # of a side
    accountant: Callable[..., Accountant]
    delta: Callable[..., Guarantee]
    epsilon: Callable[..., Guarantee]
    certify: Callable[..., Guarantee]

    def trade_off(self, alpha: Any, direction: Direction = "both") -> Any:
        """Return f(α): no attack whose false alarms have rate α has a smaller miss rate.

        f(α) = sup over all real ε of 1 − δ(ε) − e^ε α, which for two directions together is
        sup over ε ≥ 0 of max(0, 1 − δ(ε) − e^ε α, e^{−ε}(1 − δ(ε) − α)) [IND]. With "remove" the
        null hypothesis is Q and f is T(Q, P); "add" gives its inverse T(P, Q). "both" takes the
        larger δ at each ε: the convex hull of the smaller of the two, which is its own inverse.

        Every ε gives a line that no trade-off lies below, so that f is the highest of the lines
        that were tried, each from the lower end of 1 − δ: at most the true f, and by no more than
        the error of δ where the best line was found. The lines are checked to be those of one curve
        that is convex, falling and at most 1 − α.

        Parameters
        ----------
        alpha
            The type I error, from 0 to 1, or an array of them.
        direction
            "remove", "add" or "both".

        Examples
        --------
        >>> from symdp import compose, mechanisms
        >>> print(f"{compose(mechanisms.gaussian(sigma=1)).trade_off(0.1):.9f}")
        0.610856308
        """
        return above("attacks").trade_off(self, alpha, direction)

    def bayes_error(self, prior: float = 0.5, direction: Direction = "both") -> float:
        """Return the least probability that an attacker with a prior on membership is wrong.

        min over tests of π β + (1 − π) α = π (1 − δ(log((1 − π)/π))): exact in one direction, and
        for "both" the smaller of the two, so that no attacker does better. The prior π is the
        probability that the record is in, strictly between 0 and 1.

        Examples
        --------
        >>> from symdp import compose, mechanisms
        >>> print(f"{compose(mechanisms.gaussian(sigma=1)).bayes_error():.9f}")
        0.308537539
        """
        return float(above("attacks").bayes_error(self, prior, direction))

    def inverse_trade_off(self, beta: float, direction: Direction = "both") -> float:
        """Return the least false alarm rate α of any attack whose miss rate is `beta`: f⁻¹(β).

        The inverse of T(Q, P) is T(P, Q): the same curve in the other direction.

        Examples
        --------
        >>> from symdp import compose, mechanisms
        >>> steps = compose(mechanisms.gumbel(b=2), 3)
        >>> round(steps.inverse_trade_off(steps.trade_off(0.2, "remove"), "remove"), 9)
        0.2
        """
        return float(above("attacks").inverse_trade_off(self, beta, direction))

    def membership_advantage(self) -> float:
        """Return the largest true positive rate less false positive rate of any attack: δ(0).

        This is the total variation distance of P and Q, the same in both directions; returned is
        the upper end of its interval, so that no attack does better.

        Examples
        --------
        >>> from symdp import compose, mechanisms
        >>> print(f"{compose(mechanisms.gaussian(sigma=1)).membership_advantage():.9f}")
        0.382924923
        """
        return float(above("attacks").membership_advantage(self))

    def gaussian_privacy(
        self, least_delta: float = LEAST_DELTA, *, regret: float | None = None
    ) -> GaussianPrivacy:
        """Return the smallest μ whose Gaussian curve lies above δ(ε) wherever δ(ε) ≥ `least_delta`.

        μ = max over ε ≥ 0 of that of (ε, δ(ε)), δ the larger of both directions, found on a grid
        that is refined around its maximum: an estimate. A floor is needed because the tail of a
        loss may be heavier than every Gaussian's, and then no μ would do [IND].

        Parameters
        ----------
        least_delta
            The floor, strictly between 0 and 1, above the composition's mass at infinity.
        regret
            In place of a floor: a μ next to the smallest with δ(ε) ≤ δ_μ(ε) + `regret` for every
            ε ≥ 0. It holds as surely as the upper ends of δ: chords and tangents leave no ε out.

        Examples
        --------
        >>> from symdp import compose, mechanisms
        >>> steps = compose(mechanisms.gaussian(sigma=2), 1)
        >>> print(f"{steps.gaussian_privacy().mu:.9f}")
        0.500000000
        >>> 0.4999 < steps.gaussian_privacy(regret=1e-6).mu < 0.502
        True
        """
        attacks = above("attacks")
        if regret is None:
            curve: GaussianPrivacy = attacks.gaussian_privacy(self, least_delta)
        else:
            curve = attacks.gaussian_privacy_with_regret(self, regret)
        return curve

    def selection(self, mean: float, shape: float = 1.0, by: str = "profile") -> Mechanism:
        """Return the step that releases the best of a random number of trials, as a bound.

        These steps are one trial. The number of trials must be drawn as said, whatever the data,
        and be kept secret; a trial must not see the others' results; the score must be part of a
        trial's result.

        Parameters
        ----------
        mean
            The expected number of trials, 1 or more (any positive number for Poisson).
        shape
            η > −1 of the truncated negative binomial law: 1 is geometric, 0 logarithmic; inf is
            Poisson. Its γ follows from the mean.
        by
            "profile", a bound on δ(ε) that composes as a pair; or "renyi", the bound at Rényi
            orders.

        Examples
        --------
        >>> from symdp import compose, mechanisms
        >>> trial = compose(mechanisms.gaussian(sigma=20).subsample("poisson", "1/100"), 10_000)
        >>> best = compose(trial.selection(mean=10, shape=0))
        >>> print(f"{trial.epsilon(1e-6).epsilon:.4f} {best.epsilon(1e-6).epsilon:.4f}")
        0.1895 0.2846
        """
        step: Mechanism = above("selection").selection(self, mean, shape, by)
        return step


def a_composition(value: Any) -> Any:
    """Return the value if it is a composition; InputError that says how to make one."""
    return instance(value, Composed, "it is no composition: give symdp.compose(mechanism, n)")


def listed_steps(steps: object) -> list[tuple[Mechanism, Any]]:
    """Return a list of mechanisms, or of (mechanism, count), as pairs; InputError for others."""
    from symdp.model.mechanism import Mechanism

    pairs = []
    for index, step in enumerate(
        listed(steps, "it is no mechanism, nor a list of (mechanism, count)"), start=1
    ):
        pair = (step, 1) if isinstance(step, Mechanism) else step
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise InputError(f"step {index}: a mechanism or (mechanism, count) is needed")
        if not isinstance(pair[0], Mechanism):
            raise InputError(f"step {index}: {pair[0]!r:.60} is no mechanism")
        pairs.append((pair[0], pair[1]))
    return pairs


def merged_steps(steps: Iterable[tuple[Mechanism, int]]) -> dict[Mechanism, int]:
    """Return distinct concrete mechanisms, each with its whole count."""
    merged: dict[Mechanism, int] = {}
    for mechanism, count in listed_steps(steps):
        concrete = mechanism.require_concrete()
        merged[concrete] = merged.get(concrete, 0) + checked_count(count)
    if not merged:
        raise InputError("a composition needs at least one step")
    return merged


def direction_of(side: str) -> str:
    """Return the direction of a side."""
    return side.removesuffix(_LOWERED)


def accounted(steps: Mapping[Mechanism, int]) -> Accounted:
    """Return what answers for steps, whose privacy it is, and what is known of the masses."""
    from symdp.balls.proper import checked_steps
    from symdp.model.allocation import independent_steps

    protection_of(list(steps))  # what is refused is refused before the work
    placed = steps
    has_local = any(is_local(step) for step in steps)
    if has_local:
        from symdp.questions.shuffled.alone import in_their_place

        placed = in_their_place(steps)
    # A density is checked before a pair takes its place.
    # One that is a composition itself stands as those that it is made of.
    single = [
        (step, times * count)
        for mechanism, count in placed.items()
        for step, times in independent_steps(mechanism)
    ]
    checked, mass = checked_steps(merged_steps(single))
    answered_steps = [answered(mechanism) for mechanism in checked]
    answers = answered_steps
    if sum(checked.values()) == 1:  # the sign of one shift does not change
        answers = [
            replace(answer, shift=AT_MOST) if answer.shift == ONE_SIGN else answer
            for answer in answered_steps
        ]
    counted = list(zip(answered_steps, checked.values(), strict=True))
    beside = [(answer.beside, count) for answer, count in counted if answer.beside is not None]
    upper_steps = merged_steps([*((answer.step, count) for answer, count in counted), *beside])
    lowered = {}
    if any(answer.is_one_sided for answer in answered_steps) and not all(
        map(_is_reversed_by_sign, answered_steps)
    ):
        lowered = merged_steps([*((answer.lowered, count) for answer, count in counted), *beside])
    protection = protection_of(list(steps), answers).over(sum(checked.values()))
    if has_local:
        protection = replace(protection, note=protection.note + _crowds(steps))
    given_steps, listed_upper, listed_lowered = (
        tuple(steps_of.items()) for steps_of in (steps, upper_steps, lowered)
    )
    return Accounted(given_steps, listed_upper, listed_lowered, protection, mass)


def _crowds(steps: Iterable[Mechanism]) -> str:
    """Return in words how many people's answers are shuffled, and whose input may change how.

    Of inputs in an interval a few pairs may be compared, the two ends among them: the note stands
    in every answer, certificate and claim then, as none of them proves more.
    """
    from symdp.questions.shuffled.worst import is_worst_known

    crowds = [step for step in steps if is_shuffled(step)]
    if not crowds:
        return ""
    people = dict.fromkeys(f"{step.source.people} people" for step in crowds)  # type: ignore[union-attr]
    words = f"; of the shuffled answers of {' and of '.join(people)}"
    if not all(is_worst_known(step) for step in crowds):
        words += _ENDS_OF_INPUTS
    return words


def protection_of(mechanisms: Sequence[Mechanism], answers: Sequence[Answered] = ()) -> Protection:
    """Return the relation and the group size that all steps of a composition share.

    A pair of laws that was given fits any relation of single records: its author says which.
    """
    from symdp.model.dominating import is_attained, is_envelope
    from symdp.model.sampling import RenyiCurve

    schemes = dict.fromkeys("none" if m.sampling is None else m.sampling.scheme for m in mechanisms)
    averages = any(m.sampling is not None and m.sampling.released == AVERAGE for m in mechanisms)
    released = AVERAGE if averages else SUM
    shifts = [answer.shift for answer in answers]
    is_of_all_shifts = any(answer.is_of_all_shifts for answer in answers)
    if {UPWARDS, DOWNWARDS} <= set(shifts):
        shifts.append(SEVERAL_SIGNS)
    shift = next((answer for answer in _NARROWEST if answer in shifts), "")
    attained = all(map(is_attained, mechanisms)) and not is_of_all_shifts
    by_curve = any(isinstance(m.source, RenyiCurve) for m in mechanisms)
    facts = (
        attained,
        released,
        shift,
        is_of_all_shifts,
        by_curve,
        any(map(is_envelope, mechanisms)),
        any(answer.by_author for answer in answers),
    )
    sampling = ", ".join(schemes)
    related = [m for m in mechanisms if m.neighbours != PAIR]
    by_relation = {(m.neighbours, getattr(m.sampling, "group", 1)): m for m in related}
    if not by_relation:
        return Protection(PAIR, sampling, 1, *facts)
    (first, answer), *others = by_relation.items()
    if others:
        second, other = others[0]
        raise InputError(
            f"{answer.summary} protects {protects(*first)}, {other.summary} {protects(*second)}: "
            "one composition has one neighbouring relation; give every step the same"
        )
    if first[1] > 1 and any(m.neighbours == PAIR for m in mechanisms):
        raise InputError(
            f"a pair of laws speaks of one record, {answer.summary} of {first[1]}: "
            "compose steps of one group size"
        )
    return Protection(first[0], sampling, first[1], *facts)


@dataclass(frozen=True)
class Answered:
    """What is accounted for in place of a step."""

    step: Mechanism  # the step itself, or the pair of all its shifts
    shift: str  # how far a record may move its output, as `Protection.shift` has it
    is_of_all_shifts: bool = False  # whether it is that pair, an upper bound
    # whether it speaks of a record that raises the output, and one that lowers it is another
    is_one_sided: bool = False
    by_author: bool = False  # whether that its noise has one mode is the author's word
    beside: Mechanism | None = None  # what smaller shifts may add to the step, a step of its own

    @property
    def lowered(self) -> Mechanism:
        """The step of a record that lowers the output."""
        if self.is_one_sided:
            return self.step.shifted(DOWN)
        return self.step


def answered(mechanism: Mechanism, *, by_one_step: bool = False) -> Answered:
    """Return the pair that answers for a step, alone if asked, and for which shifts it does."""
    by_author = rests_on_its_author(mechanism)
    mechanism = _told_to_fall(mechanism)
    if _never_draws(mechanism):
        return Answered(mechanism, AT_MOST)
    shift = proved_shift(mechanism)
    sampling = mechanism.sampling
    mixes = sampling is None or (
        sampling.scheme == "poisson" and sampling.group == 1 and sampling.released == SUM
    )
    is_open = shift == EXACTLY != mechanism.shift
    any_sign = mechanism.shift == EITHER and _is_one_sided(mechanism)
    if any_sign and not mixes:
        raise InputError(
            f"{mechanism.summary}: signs that change between steps are answered for steps without "
            "sampling, or of Poisson samples and single records; of skewed noise ask for one sign"
        )
    if is_open and not mixes:
        if sampling is not None and sampling.released == AVERAGE:
            mechanism.pair()  # where no pair is proved at all, that is the reason
        raise InputError(_OPEN.format(mechanism.summary, ""))
    if is_open or any_sign:
        from symdp.questions.steps.worst_shift import smaller_shifts, worst_pair

        beside = None if any_sign or by_one_step else smaller_shifts(mechanism)
        if beside is not None:
            return Answered(
                mechanism,
                proved_shift(mechanism, is_bounded=True),
                is_of_all_shifts=True,
                is_one_sided=_is_one_sided(mechanism),
                beside=beside,
            )
        try:
            return Answered(worst_pair(mechanism), AT_MOST, True)
        except AccuracyError as error:  # no enclosure of the density
            if any_sign:
                raise
            raise InputError(_OPEN.format(mechanism.summary, f" ({error})")) from None
    return Answered(mechanism, shift, is_one_sided=_is_one_sided(mechanism), by_author=by_author)


def rests_on_its_author(mechanism: Mechanism) -> bool:
    """Whether that the pair is the worst of all shifts rests on the author's word for one mode.

    InputError where values contradict that word.
    """
    source = mechanism.source
    if mechanism.modes is None:
        return False
    from symdp.balls.modes import one_mode
    from symdp.model.sampling import Noise, Radial

    if isinstance(source, Radial):
        return one_mode(mechanism.on_a_line).by == AUTHOR
    if not isinstance(source, Noise):  # a pair that was made of such noise
        return True
    is_said = one_mode(mechanism).by == AUTHOR
    if _is_exchanged(mechanism):
        return is_said
    return is_said and not (mechanism.shift == EXACTLY or has_one_shift(mechanism))


def _is_exchanged(mechanism: Mechanism) -> bool:
    """Whether a record may take another's place, so that noise is asked to fall from a centre."""
    sampling = mechanism.sampling
    if mechanism.neighbours == SUBSTITUTION:
        return True
    return sampling is not None and (
        sampling.scheme == "truncated_poisson" or sampling.released == AVERAGE
    )


def _never_draws(mechanism: Mechanism) -> bool:
    """Whether noise is added to batches that never hold the record: no shift makes a loss."""
    from symdp.model.sampling import Noise

    sampling = mechanism.sampling
    if sampling is None or not isinstance(mechanism.source, Noise):
        return False
    return mechanism.neighbours != SUBSTITUTION and bool(sampling.rate.is_zero)


def _told_to_fall(mechanism: Mechanism) -> Mechanism:
    """Return a step whose pair is told that noise with a centre has one mode, where that holds."""
    from symdp.model.sampling import Noise

    source = mechanism.source
    if not (_is_exchanged(mechanism) and isinstance(source, Noise)):
        return mechanism
    from symdp.density.shapes import shape_of

    shape = shape_of(source.density, mechanism.variable, mechanism.support)
    if shape.centre is None or shape.falls or not _has_one_mode(mechanism):
        return mechanism
    falling = Noise(source.density, source.sensitivity, source.moved_by_substitution, falls=True)
    return replace(mechanism, source=falling)


def proved_shift(mechanism: Mechanism, *, is_bounded: bool = False) -> str:
    """Return for which shifts the step's own pair is proved; empty for laws that were given.

    `is_bounded`: what smaller shifts may add is bounded, so that nobody asks for one mode.
    """
    from symdp.model.sampling import Noise, Radial

    source = mechanism.source
    if isinstance(source, Radial):
        if not _has_one_mode(mechanism.on_a_line):
            free = ", ".join(mechanism.parameters)
            raise InputError(
                _RISES.format(mechanism.summary, f" while {free} may have any value" * bool(free))
            )
        if mechanism.neighbours == SUBSTITUTION:
            return AT_MOST
        return IN_LENGTH
    if not isinstance(source, Noise):
        if mechanism.is_listed:
            return AT_MOST  # even, and it falls from 0
        if mechanism.shift == AT_MOST:
            return ""
        return mechanism.shift
    if mechanism.neighbours == SUBSTITUTION:
        return AT_MOST  # its pair asks for noise that is symmetric and falls
    if mechanism.shift == EXACTLY:
        return EXACTLY
    if not (is_bounded or has_one_shift(mechanism) or _has_one_mode(mechanism)):
        return EXACTLY
    if not is_skewed(mechanism):
        return AT_MOST
    return _ASKED.get(mechanism.shift, ONE_SIGN)


def _has_one_mode(mechanism: Mechanism) -> bool:
    """Whether noise has one mode, as is shipped or shown."""
    shape = mechanism.shipped_shape
    if shape is not None and shape.one_mode:
        return True
    from symdp.balls.modes import one_mode

    return bool(one_mode(mechanism))


def answering(mechanism: Mechanism, what: str) -> tuple[Mechanism, Protection]:
    """Return the one step whose pair answers for a mechanism, and whom it protects.

    InputError where `what` would have to ask two, or one is not proved to hold for every shift.
    """

    if mechanism.is_concrete:
        answer = answered(mechanism, by_one_step=True)
    else:
        shift = proved_shift(mechanism)
        answer = Answered(
            mechanism,
            shift,
            is_one_sided=_is_one_sided(mechanism),
            by_author=rests_on_its_author(mechanism),
        )
    if answer.shift == EXACTLY != mechanism.shift:
        raise InputError(_SEVERAL.format(what, "" if mechanism.is_concrete else _VALUES))
    if answer.is_one_sided and mechanism.sampling is not None:
        raise InputError(_SKEWED.format(what))
    return answer.step, protection_of([mechanism], [answer])


def has_one_shift(mechanism: Mechanism) -> bool:
    """Whether there is none between 0 and D, as of whole numbers for D = 1."""
    size = mechanism.source.sensitivity  # type: ignore[union-attr]
    return mechanism.support.kind != "interval" and size == 1


def has_one_law(mechanism: Mechanism) -> bool:
    """Return whether both directions are seen at once to have one law of the loss.

    Where f is even around c, x → D + 2c − x exchanges P(x) = f(x − D) and Q(x) = f(x), and with
    them the law of ℓ under P and that of −ℓ under Q. False proves nothing.
    """
    from symdp.model.sampling import Noise

    is_plain = mechanism.sampling is None and isinstance(mechanism.source, Noise)
    return mechanism.is_mirrored or (is_plain and not is_skewed(mechanism))


def is_skewed(mechanism: Mechanism) -> bool:
    """Whether noise is not known to be symmetric."""
    shape = mechanism.shipped_shape
    if shape is not None:
        return shape.centre is None
    from symdp.density.shapes import centre_of

    free = mechanism.template or mechanism
    even = centre_of(free.source.density, free.variable, free.support)  # type: ignore[union-attr]
    return even is None


def _is_one_sided(mechanism: Mechanism) -> bool:
    """Whether the pair is that of a record which raises the output, though it may lower it."""
    from symdp.model.sampling import Noise

    is_noise = isinstance(mechanism.source, Noise) and mechanism.neighbours != SUBSTITUTION
    return is_noise and mechanism.shift not in (UP, DOWN) and is_skewed(mechanism)


def _is_reversed_by_sign(answer: Answered) -> bool:
    """Whether the reverse of a step's pair is that of the other sign."""
    is_plain = answer.is_one_sided and answer.step.sampling is None
    return is_plain or has_one_law(answer.step)
