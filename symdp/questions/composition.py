"""A composition of mechanisms, and the questions that people ask of it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast, overload

from symdp.arguments import (
    DIRECTIONS,
    Direction,
    checked_count,
    flat,
    is_array,
    real,
)
from symdp.capacity import within_capacity
from symdp.errors import InputError
from symdp.interrupt import generation
from symdp.questions.accountants import accountant_for, answers_of, certified_digits, larger_delta
from symdp.questions.accounted import accounted, direction_of
from symdp.questions.guarantee import Guarantee
from symdp.questions.largest import largest
from symdp.questions.profile_curve import Curve
from symdp.questions.shifts import told_of_shifts
from symdp.questions.steps import Summed, listed_steps
from symdp.turns import in_turn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from symdp.model.mechanism import Mechanism
    from symdp.numeric.answer import Accountant, Answer
    from symdp.numeric.total import SumLaw
    from symdp.questions.certificate import Certificate
    from symdp.questions.invert import Inverse

__all__ = ["Composition", "Direction", "compose"]


class Composition(Summed):
    """Independent (or adaptively composed) steps of mechanisms: distinct ones, each with a count.

    Parameters
    ----------
    steps
        Pairs (mechanism, count): every mechanism concrete, every count a positive integer. A mass
        that rounded constants put off by less than 1e-9 is divided out, exactly.

    Raises
    ------
    InputError
        If a parameter is missing, a count is no positive integer, or a density is none.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> steps = Composition([(mechanisms.gaussian(sigma=2).subsample("poisson", "1/100"), 1000)])
    >>> print(f"{steps.delta(0.5).delta:.12f}")
    0.000121178974
    """

    @in_turn
    def __init__(self, steps: Iterable[tuple[Mechanism, int]]) -> None:
        from symdp.questions.steps import merged_steps

        asked = merged_steps(steps)
        self.accounted = accounted(asked)
        self.steps, self.protection = self.accounted.steps, self.accounted.protection
        self.mass, self._label = self.accounted.mass, self.accounted.label
        self.count = sum(asked.values())
        self._laws: dict[tuple[str, int], SumLaw] = {}

    def __repr__(self) -> str:
        from symdp.questions.notebook import steps_text

        return f"Composition({steps_text(self.steps, self.count)})"

    def _repr_html_(self) -> str:
        from symdp.questions.notebook import steps_html

        return steps_html(self.steps, self.count)

    def given_steps(self) -> Iterable[tuple[Mechanism, int]]:
        """Return the steps as they were given, before a pair took the place of any."""
        return self.accounted.given

    def sides(self, direction: str) -> tuple[str, ...]:
        """Return the sides of a direction: each has a law, and the largest δ of them answers.

        They are the directions themselves, where both signs of a shift have one law; of sampled
        skewed noise each direction has a second side, of a record that lowers the output.
        """
        return self.accounted.sides(direction)

    @in_turn
    def law(self, side: str) -> SumLaw:
        """Return the law of the total privacy loss on one side, built once."""
        if side not in self.sides("both"):
            if side not in DIRECTIONS:
                raise InputError("a law has one direction: 'remove' or 'add'")
            side = "remove"  # both directions have its law
        key = side, generation()  # an interrupt may have left a law half made
        if key not in self._laws:
            self._laws[key] = self._new_law(side)
        return self._laws[key]

    def _new_law(self, side: str) -> SumLaw:
        from symdp.questions.total_law import total_law

        return total_law(self.accounted.steps_of(side), direction_of(side))

    @overload
    def delta(
        self, epsilon: float, method: str = ..., direction: Direction = ..., **options: Any
    ) -> Guarantee: ...
    @overload
    def delta(
        self, epsilon: ArrayLike, method: str = ..., direction: Direction = ..., **options: Any
    ) -> Guarantee | Curve: ...
    @in_turn
    def delta(
        self, epsilon: Any, method: str = "contour", direction: Direction = "both", **options: Any
    ) -> Guarantee | Curve:
        """Return δ(ε) = E[(1 − e^{ε−L})⁺] of the composition.

        Parameters
        ----------
        epsilon
            Any real number in nats, or an array of them.
        method
            An accountant's name, see `symdp.methods.names`.
        direction
            "remove" (P, Q), "add" (Q, P), or "both", which returns the larger δ.
        options
            The method's own, such as eps_error=1e-3; `symdp methods` lists who takes which.

        Returns
        -------
        Guarantee, or a Curve for an array.

        Raises
        ------
        InputError
            If ε is not finite, or the method, direction or an option unknown or out of range.
        AccuracyError
            If the method cannot reach its accuracy.
        """
        if method == "certified":
            return cast("Curve", self.certify(epsilon, certified_digits(options), direction))
        accountant = accountant_for(method, self, options)
        if is_array(epsilon):
            values = [real(e, "epsilon") for e in flat(epsilon)]
            return Curve(self._deltas(accountant, values, direction))
        return self._deltas(accountant, [real(epsilon, "epsilon")], direction)[0]

    def _deltas(
        self, accountant: Accountant, epsilons: Sequence[float], direction: str
    ) -> list[Guarantee]:
        """Return every δ(ε) in the direction in which it is larger."""
        start, asked = time.perf_counter(), self.sides(direction)
        with within_capacity(accountant.name):
            found = answers_of(accountant, {side: self.law(side) for side in asked}, epsilons)
        seconds = (time.perf_counter() - start) / max(len(epsilons), 1)
        answers = [
            larger_delta(
                epsilon,
                answers,
                method=accountant.name,
                label=self._label,
                count=self.count,
                told=lambda answer: self._told(answer, accountant, seconds),
            )
            for epsilon, answers in zip(epsilons, found, strict=True)
        ]
        return [told_of_shifts(answer, self.given_steps, Composition) for answer in answers]

    def _told(self, of: Answer | Inverse, accountant: Accountant, seconds: float) -> dict[str, Any]:
        """Return what every answer says besides its numbers."""
        told = {"advice": of.advice, "route": of.route, "citations": accountant.citations}
        return told | {"seconds": seconds, "protection": self.protection, "mass": self.mass}

    @overload
    def epsilon(
        self, delta: float, method: str = ..., direction: Direction = ..., **options: Any
    ) -> Guarantee: ...
    @overload
    def epsilon(
        self, delta: ArrayLike, method: str = ..., direction: Direction = ..., **options: Any
    ) -> Guarantee | Curve: ...
    @in_turn
    def epsilon(
        self, delta: Any, method: str = "contour", direction: Direction = "both", **options: Any
    ) -> Guarantee | Curve:
        """Return the smallest ε ≥ 0 with δ(ε) ≤ `delta`, the inverse of the privacy profile.

        Parameters
        ----------
        delta
            A number strictly between 0 and 1, or an array of them.
        method, direction, options
            As for `delta`.

        Raises
        ------
        InputError
            If δ or an option is out of range, or δ not above the composition's mass at infinity.
        AccuracyError
            If the method cannot reach its accuracy.
        """
        from symdp.questions.invert import invert_larger

        if method == "certified":
            return cast("Curve", self.certify_epsilon(delta, certified_digits(options), direction))
        if is_array(delta):
            return Curve([self.epsilon(d, method, direction, **options) for d in flat(delta)])
        delta = real(delta, "delta")
        if not 0.0 < delta < 1.0:
            raise InputError(f"delta = {delta!r}: it must lie strictly between 0 and 1")
        accountant = accountant_for(method, self, options)
        start = time.perf_counter()
        with within_capacity(accountant.name):
            laws = {side: self.law(side) for side in self.sides(direction)}
            found = invert_larger(accountant, laws, math.log(delta))
        side, both = largest({side: inverse.link for side, inverse in found.items()})
        answer = Guarantee(
            both.value,
            math.log(delta),
            both.kind,
            accountant.name,
            self._label or direction_of(side),
            self.count,
            "epsilon",
            epsilon_lower=both.lower,
            epsilon_upper=both.upper,
            given_delta=delta,
            **(
                self._told(found[side], accountant, time.perf_counter() - start)
                | {"advice": both.advice}
            ),
        )
        return told_of_shifts(answer, self.given_steps, Composition)

    @overload
    def certify(
        self, epsilon: float | Fraction, digits: int = ..., direction: Direction = ...
    ) -> Certificate: ...
    @overload
    def certify(
        self, epsilon: ArrayLike, digits: int = ..., direction: Direction = ...
    ) -> Certificate | Curve: ...
    @in_turn
    def certify(
        self, epsilon: Any, digits: int = 15, direction: Direction = "both"
    ) -> Certificate | Curve:
        """Return δ(ε) between proved ends, every error bounded, floating point included.

        Parameters
        ----------
        epsilon
            Any real number in nats, taken exactly, or an array of them.
        digits
            Significant digits to which the ends should agree, 1 to 1000.  Few steps and atoms off
            any lattice get about six, four at least, unless δ is a short sum of residues.
        direction
            As for `delta`.

        Returns
        -------
        Certificate, or a Curve of them for an array.

        Raises
        ------
        InputError
            If ε, the digits or the direction are out of range.
        AccuracyError
            If no proof is found for this mechanism at so many digits.

        Examples
        --------
        >>> from symdp import mechanisms
        >>> proved = compose(mechanisms.gaussian(sigma=2), 30).certify(1.5, digits=8)
        >>> proved.lower_decimal[:9], proved.upper_decimal[:9]
        ('6.7057172', '6.7057172')
        """
        from symdp.questions.certificate import certify_delta

        if is_array(epsilon):
            return Curve([self.certify(e, digits, direction) for e in flat(epsilon)])
        exact = epsilon if isinstance(epsilon, Fraction) else real(epsilon, "epsilon")
        with within_capacity("certify"):
            return self._owned(certify_delta(self.accounted, exact, digits, self.sides(direction)))

    def _owned(self, one: Certificate) -> Certificate:
        label = self._label or direction_of(one.direction)
        one = replace(one, direction=label, protection=self.protection)
        return told_of_shifts(one, self.given_steps, Composition)

    @overload
    def certify_epsilon(
        self, delta: float | Fraction, digits: int = ..., direction: Direction = ...
    ) -> Certificate: ...
    @overload
    def certify_epsilon(
        self, delta: ArrayLike, digits: int = ..., direction: Direction = ...
    ) -> Certificate | Curve: ...
    @in_turn
    def certify_epsilon(
        self, delta: Any, digits: int = 15, direction: Direction = "both"
    ) -> Certificate | Curve:
        """Return ε(δ) between proved ends: the sign of δ(ε) − δ is certified at both.

        Parameters
        ----------
        delta
            A number strictly between 0 and 1, taken exactly, or an array of them.
        digits, direction
            As for `certify`.

        Returns
        -------
        Certificate, or a Curve of them for an array; the ends are 0 where δ(0) ≤ δ is proved.

        Raises
        ------
        InputError
            If δ, the digits or the direction are out of range, or no finite ε exists.
        AccuracyError
            If no proof is found for this mechanism at so many digits.

        Examples
        --------
        >>> from symdp import mechanisms
        >>> proved = compose(mechanisms.gaussian(sigma=2), 30).certify_epsilon(1e-5, digits=8)
        >>> proved.lower_decimal[:9], proved.upper_decimal[:9]
        ('1.4829941', '1.4829941')
        """
        from symdp.questions.certificate import certify_epsilon

        if is_array(delta):
            return Curve([self.certify_epsilon(d, digits, direction) for d in flat(delta)])
        exact = delta if isinstance(delta, Fraction) else real(delta, "delta")
        if not 0 < exact < 1:
            raise InputError(f"delta = {delta!r}: it must lie strictly between 0 and 1")
        with within_capacity("certify"):
            return self._owned(certify_epsilon(self, exact, digits, self.sides(direction)))

    def trade_off(self, alpha: Any, direction: Direction = "both") -> Any:
        """Return the least miss rate at false alarm rate α, an array of them for an array."""
        from symdp.questions.tradeoff import trade_off

        return trade_off(self, alpha, direction)

    def bayes_error(self, prior: float = 0.5, direction: Direction = "both") -> float:
        """Return an attacker's least probability of error."""
        from symdp.questions.tradeoff import bayes_error

        return bayes_error(self, prior, direction)

    def renyi(self, order: float, direction: Direction = "both") -> float:
        """Return D_α at any order α ≥ 0, see `symdp.questions.tradeoff.renyi_divergence`."""
        from symdp.questions.tradeoff import renyi_divergence

        return renyi_divergence(self, order, direction)


def compose(
    steps: Mechanism | Sequence[Mechanism | tuple[Mechanism, int]],
    count: float | None = None,
) -> Composition:
    """Return the composition of one mechanism `count` times, or of several steps.

    Parameters
    ----------
    steps
        A mechanism; or a list of mechanisms, each once, and of pairs (mechanism, count).
    count
        How often one mechanism is taken, once if left out; a float must be whole.

    Raises
    ------
    InputError
        If a step is neither, a count is no positive whole number, or a parameter has no value.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> compose([(mechanisms.laplace(b=2), 3), (mechanisms.gaussian(sigma=4), 5)]).count
    8
    >>> noise = mechanisms.gaussian(sigma=4)
    >>> compose([noise, noise]).steps == compose(noise, 2.0).steps
    True
    """
    from symdp.model.taken import Mechanism, a_mechanism

    if isinstance(steps, Mechanism | str):
        return Composition([(a_mechanism(steps), checked_count(1 if count is None else count))])
    if count is not None:
        raise InputError("a list of steps carries its own counts; leave `count` out")
    return Composition(listed_steps(steps))
