"""A composition of mechanisms, and the questions that people ask of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from symdp.above import above
from symdp.arguments import (
    DIRECTIONS,
    Direction,
    checked_count,
    flat,
    is_array,
    real,
    share,
)
from symdp.capacity import within_capacity
from symdp.errors import InputError
from symdp.interrupt import generation
from symdp.model.relation import is_local, is_shuffled
from symdp.numeric.answer import ROUNDING, Answer, outside_range
from symdp.numeric.saddle_point import log_usual_bound
from symdp.questions.guarantee import Curve, Guarantee, Link, largest, table_html
from symdp.questions.steps.accounted import (
    Composed,
    accounted,
    direction_of,
    listed_steps,
    merged_steps,
)
from symdp.questions.steps.total_law import total_law
from symdp.turns import in_turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from symdp.arguments import MethodName
    from symdp.model.mechanism import Mechanism
    from symdp.model.relation import Protection
    from symdp.numeric.answer import Accountant
    from symdp.numeric.total import SumLaw
    from symdp.questions.certificate import Certificate
    from symdp.questions.claim import CheckedClaim
    from symdp.questions.guarantee import Many, One
    from symdp.questions.steps.accounted import Accounted
    from symdp.questions.zcdp import Zcdp

__all__ = ["Composition", "Direction", "compose"]

_Steps = Sequence[tuple["Mechanism", int]]
_DIGITS = 30  # of the method truth
_DRAWN, _DRAWN_TO = 65, 1e-10  # points of a drawn profile, and the δ at its end
_MOST_NAMED = 3  # distinct steps in a repr


class Composition(Composed):
    """Independent (or adaptively composed) steps of mechanisms: distinct ones, each with a count.

    Compositions add up, and `3 * steps` takes every step three times as often.

    A question takes one number or an array of them, which gives a `Curve`, and a `direction`:
    "remove" (P, Q), "add" (Q, P), or "both", the larger answer of the two. It raises InputError
    where an argument is unknown or out of range, AccuracyError where its accuracy is not reached.

    Parameters
    ----------
    steps
        Pairs (mechanism, count): every mechanism concrete, every count a positive integer. A mass
        that rounded constants put off by less than 1e-9 is divided out, exactly.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> steps = Composition([(mechanisms.gaussian(sigma=2).subsample("poisson", "1/100"), 1000)])
    >>> print(f"{steps.delta(0.5).delta:.12f}")
    0.000121178974
    >>> noise, sample = mechanisms.gaussian(sigma=4), mechanisms.laplace(b=8)
    >>> both = compose(noise, 3) + 10 * compose(sample, 2)
    >>> both.n, both.steps == compose([(noise, 3), (sample, 20)]).steps
    (23, True)
    """

    @in_turn
    def __init__(self, steps: Iterable[tuple[Mechanism, int]]) -> None:
        merged = merged_steps(steps)
        self.accounted = accounted(merged)
        self.protection, self.mass = self.accounted.protection, self.accounted.mass
        self.n, self._label = sum(merged.values()), self.accounted.label
        self._laws: dict[tuple[str, int], SumLaw] = {}
        self._is_one_round = any(is_local(step) for step, _ in self.accounted.steps)

    @property
    def steps(self) -> tuple[tuple[Mechanism, int], ...]:
        """The distinct steps that are accounted for, each with its count."""
        return self.accounted.steps

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the laws, whose functions are no data: a copy makes its own."""
        return vars(self) | {"_laws": {}}

    def __eq__(self, other: object) -> bool:
        """Whether both are the same steps, as they were given, in any order."""
        if not isinstance(other, Composition):
            return NotImplemented
        return frozenset(self.given_steps()) == frozenset(other.given_steps())

    def __hash__(self) -> int:
        return hash(frozenset(self.given_steps()))

    def __repr__(self) -> str:
        shown = [f"{times} × {mechanism!r}" for mechanism, times in self.steps[:_MOST_NAMED]]
        more = len(self.steps) - len(shown)
        if more:
            shown.append(f"{more} more distinct step{'s' * (more != 1)}, {self.n} steps in all")
        return f"Composition({', '.join(shown)})"

    def _repr_html_(self) -> str:
        rows = [(str(times), mechanism.summary) for mechanism, times in self.steps]
        return table_html(("steps", f"mechanism ({self.n} steps in all)"), rows)

    def given_steps(self) -> _Steps:
        """Return the steps as they were given, before a pair took the place of any."""
        return self.accounted.given

    def __add__(self, other: object) -> Composition:
        """Return all steps of both; InputError where they protect different neighbours."""
        if not isinstance(other, Composition):
            return NotImplemented
        return Composition([*self.given_steps(), *other.given_steps()])

    def __radd__(self, other: object) -> Composition:
        """Return these steps, added to the 0 with which `sum` begins."""
        return self if type(other) is int and other == 0 else NotImplemented

    def __mul__(self, times: object) -> Composition:
        """Return every step so many times; InputError for what is no positive whole number."""
        many = checked_count(times)
        return Composition([(mechanism, many * count) for mechanism, count in self.given_steps()])

    __rmul__ = __mul__

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
        return total_law(self.accounted.steps_of(side), direction_of(side))

    def accountant(
        self, method: str = "contour", options: Mapping[str, Any] | None = None
    ) -> Accountant:
        """Return the accountant of a name and its options, as this composition needs it.

        Steps that are known by a Rényi curve alone leave one: InputError for the name of another.
        """
        if self.protection.by_curve:
            return _of_curves(self.accounted, method, options)
        if self._is_one_round:
            return _of_shuffled(self.accounted, method, options)
        if method == "truth" and not options:
            return Truth(self)
        if method == "contour" and not options:  # the table of routes, without what others need
            from symdp.methods.route import Contour

            return Contour()
        from symdp.methods.table import accountant, options_of

        return accountant(method, **options_of(method, options or {}))

    @overload
    def delta(
        self, epsilon: One, method: MethodName = ..., direction: Direction = ..., **options: Any
    ) -> Guarantee: ...
    @overload
    def delta(
        self, epsilon: Many, method: MethodName = ..., direction: Direction = ..., **options: Any
    ) -> Curve: ...
    @in_turn
    def delta(
        self,
        epsilon: Any,
        method: MethodName = "contour",
        direction: Direction = "both",
        **options: Any,
    ) -> Guarantee | Curve:
        """Return δ(ε) = E[(1 − e^{ε−L})⁺] of the composition.

        Parameters
        ----------
        epsilon
            Any real number in nats.
        method
            An accountant's name, see `symdp.methods.names`.
        options
            The method's own, such as eps_error=1e-3; `symdp methods` lists who takes which.
        """
        if method == "certified":
            return cast("Curve", self.certify(epsilon, certified_digits(options), direction))
        accountant = self.accountant(method, options)
        if is_array(epsilon):
            values = [real(e, "epsilon") for e in flat(epsilon)]
            return Curve(self._deltas(accountant, values, direction))
        return self._deltas(accountant, [real(epsilon, "epsilon")], direction)[0]

    def _deltas(
        self, accountant: Accountant, epsilons: Sequence[float], direction: str
    ) -> list[Guarantee]:
        """Return every δ(ε) in the direction in which it is larger."""
        start, wanted = time.perf_counter(), self.sides(direction)
        links: list[dict[str, Link]] = [{} for _ in epsilons]
        with within_capacity(accountant.name):
            ordered: Sequence[str] = wanted
            if accountant.is_exact and len(wanted) > 1 and epsilons:
                ordered = self._larger_first(wanted, epsilons[0])
            for side in ordered:
                law = self.law(side)
                needed = list(range(len(epsilons)))
                if accountant.is_exact:
                    needed = [k for k in needed if not _is_exceeded(law, epsilons[k], links[k])]
                answers = accountant.log_deltas(law, [epsilons[k] for k in needed])
                for k, answer in zip(needed, answers, strict=True):
                    links[k][side] = Link.of(answer)
        seconds = (time.perf_counter() - start) / max(len(epsilons), 1)
        whose = self._whose(direction)
        return [
            self._answer("delta", epsilon, link, accountant, seconds, whose)
            for epsilon, link in zip(epsilons, links, strict=True)
        ]

    def _larger_first(self, wanted: Sequence[str], epsilon: float) -> Sequence[str]:
        """Return sides by about their δ, the largest first, where a first one is dear."""
        laws = {side: self.law(side) for side in wanted}
        beyond = [side for side in wanted if outside_range(laws[side], epsilon) is not None]
        others = [side for side in wanted if side not in beyond]
        from symdp.methods.route import is_dear

        if len(others) > 1 and is_dear(laws[others[0]], epsilon):
            from symdp.questions.rough_delta import rough_log_deltas

            estimates = rough_log_deltas(self.accounted, others, epsilon)
            if not any(map(math.isnan, estimates.values())):
                others.sort(key=lambda side: -estimates[side])
        return [*beyond, *others]

    def _whose(self, direction: str) -> Protection:
        """Return whose privacy the answer of a direction speaks of."""
        if direction == "both" or len(self.sides("both")) == 1:
            return self.protection
        return self.accounted.protection_of(direction)

    def _answer(
        self,
        quantity: Literal["delta", "epsilon"],
        value: float,
        links: Mapping[str, Link],
        accountant: Accountant,
        seconds: float,
        whose: Protection,
    ) -> Guarantee:
        """Return the largest answer of the sides, with all that an answer says besides."""
        side, both = largest(links)
        entries: dict[str, Any] = {"epsilon": value}
        if quantity == "epsilon":
            entries = {"log_delta": math.log(value), "target_delta": value}
        return Guarantee(
            kind=both.kind,
            method=accountant.name,
            direction=self._label or direction_of(side),
            n=self.n,
            quantity=quantity,
            advice=both.advice,
            seconds=seconds,
            citations=accountant.citations,
            protection=whose,
            route=links[side].route,
            mass=self.mass,
            **entries,
            **both.entries(quantity),
        )

    @overload
    def epsilon(
        self, delta: One, method: MethodName = ..., direction: Direction = ..., **options: Any
    ) -> Guarantee: ...
    @overload
    def epsilon(
        self, delta: Many, method: MethodName = ..., direction: Direction = ..., **options: Any
    ) -> Curve: ...
    @in_turn
    def epsilon(
        self,
        delta: Any,
        method: MethodName = "contour",
        direction: Direction = "both",
        **options: Any,
    ) -> Guarantee | Curve:
        """Return the smallest ε ≥ 0 with δ(ε) ≤ `delta`, the inverse of the privacy profile.

        Parameters
        ----------
        delta
            A number strictly between 0 and 1, above the composition's mass at infinity.
        method, options
            As for `delta`.
        """
        from symdp.questions.invert import invert_larger

        if method == "certified":
            return cast("Curve", self.certify_epsilon(delta, certified_digits(options), direction))
        if is_array(delta):
            return Curve([self.epsilon(d, method, direction, **options) for d in flat(delta)])
        delta = share(delta, "delta")
        accountant = self.accountant(method, options)
        start = time.perf_counter()
        with within_capacity(accountant.name):
            laws = {side: self.law(side) for side in self.sides(direction)}
            escaped = max(law.mass_at_infinity for law in laws.values())
            if escaped >= delta and self.protection.is_of_all_shifts:
                raise InputError(
                    f"delta = {delta:.6g} is not above {escaped:.6g}, which the pair that bounds "
                    "all shifts counts as an infinite loss: it tells no finite epsilon; ask a "
                    'larger delta, or shift = "exactly" for the pair of one shift'
                )
            if self._is_one_round:
                inverses = _least_of_round(accountant, laws, math.log(delta))
            else:
                inverses = invert_larger(accountant, laws, math.log(delta))
        seconds, whose = time.perf_counter() - start, self._whose(direction)
        return self._answer("epsilon", delta, inverses, accountant, seconds, whose)

    @overload
    def certify(
        self, epsilon: One, digits: int = ..., direction: Direction = ...
    ) -> Certificate: ...
    @overload
    def certify(self, epsilon: Many, digits: int = ..., direction: Direction = ...) -> Curve: ...
    @in_turn
    def certify(
        self, epsilon: Any, digits: int = 15, direction: Direction = "both"
    ) -> Certificate | Curve:
        """Return δ(ε) between proved ends, every error bounded, floating point included.

        Parameters
        ----------
        epsilon
            Any real number in nats, taken exactly.
        digits
            Significant digits to which the ends should agree, 1 to 1000.  Few steps and atoms off
            any lattice get about six, four at least, unless δ is a short sum of residues.

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
            if self._is_one_round:
                from symdp.questions.shuffled.proof import certify_delta_of_round

                return self._owned(
                    certify_delta_of_round(self.steps[0][0], exact, digits), direction
                )
            self._require_no_rounds()
            return self._owned(
                certify_delta(self.accounted, exact, digits, self.sides(direction)), direction
            )

    def _require_no_rounds(self) -> None:
        if any(is_shuffled(step) for step, _ in self.accounted.given):
            raise InputError(
                "several rounds of shuffled answers are composed by a table of each round's bound, "
                "in floating point: certify one round, or leave the proof out"
            )

    def _owned(self, certificate: Certificate, direction: str) -> Certificate:
        label = self._label or direction_of(certificate.direction)
        return replace(certificate, direction=label, protection=self._whose(direction))

    @overload
    def certify_epsilon(
        self, delta: One, digits: int = ..., direction: Direction = ...
    ) -> Certificate: ...
    @overload
    def certify_epsilon(
        self, delta: Many, digits: int = ..., direction: Direction = ...
    ) -> Curve: ...
    @in_turn
    def certify_epsilon(
        self, delta: Any, digits: int = 15, direction: Direction = "both"
    ) -> Certificate | Curve:
        """Return ε(δ) between proved ends: the sign of δ(ε) − δ is certified at both.

        The ends are 0 where δ(0) ≤ δ is proved.

        Parameters
        ----------
        delta
            A number strictly between 0 and 1, taken exactly.
        digits
            As for `certify`.

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
        exact = delta if isinstance(delta, Fraction) else share(delta, "delta")
        if not 0 < exact < 1:
            raise InputError(f"delta = {delta!r}: it must lie strictly between 0 and 1")
        with within_capacity("certify"):
            if self._is_one_round:
                from symdp.questions.shuffled.proof import certify_epsilon_of_round

                def about(goal: float) -> float:
                    return float(self.epsilon(goal).epsilon)

                proved = certify_epsilon_of_round(self.steps[0][0], about, exact, digits)
                return self._owned(proved, direction)
            self._require_no_rounds()
            return self._owned(
                certify_epsilon(self, exact, digits, self.sides(direction)), direction
            )

    @in_turn
    def check_claim(self, epsilon: Any, delta: Any, direction: Direction = "both") -> CheckedClaim:
        """Return whether these steps have a stated (ε, δ), proved where a proof is found.

        ε ≥ 0 and 0 ≤ δ < 1 are taken exactly: numbers, or texts such as "1/3". The answer is
        "proved", "exact", "refuted" with an attack's rates, or "open"; and an ε that would do.

        Examples
        --------
        >>> from symdp import mechanisms
        >>> found = compose(mechanisms.gaussian(sigma=2), 30).check_claim(17, "1e-5")
        >>> found.verdict, found.is_loose, float(found.would_do)
        ('proved', True, 14.9)
        """
        from symdp.questions.claim import check_claim

        return check_claim(self, epsilon, delta, direction)

    @overload
    def renyi(self, order: One, direction: Direction = ...) -> float: ...
    @overload
    def renyi(self, order: Many, direction: Direction = ...) -> NDArray[np.float64]: ...
    def renyi(self, order: Any, direction: Direction = "both") -> Any:
        """Return D_α at any order α ≥ 0, or an array, see `tradeoff.renyi_divergence`."""
        from symdp.questions.tradeoff import renyi_divergence

        return renyi_divergence(self, order, direction)

    def gradient(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        direction: Direction = "both",
        progress: Callable[[str], None] | None = None,
    ) -> Any:
        """Return ∂ε/∂θ at a δ or ∂δ/∂θ at an ε, see `symdp.questions.design.gradient`."""
        derive = above("gradient").gradient
        return derive(self, epsilon=epsilon, delta=delta, direction=direction, progress=progress)

    def zcdp(self, direction: Direction = "both") -> Zcdp:
        """Return the least ρ of zCDP, the supremum of D_α/α over α > 1, see `zcdp.zcdp`."""
        from symdp.questions.zcdp import zcdp

        return zcdp(self, direction)

    def plot(
        self,
        ax: Any = None,
        *,
        method: MethodName | Sequence[MethodName] = "contour",
        epsilons: Any = None,
        **style: Any,
    ) -> Any:
        """Draw the privacy profile δ(ε) by one method or several into Matplotlib axes; return them.

        Parameters
        ----------
        ax
            The axes; those of a new figure if left out.
        method
            The name of an accountant, or several, each a line with its name.
        epsilons
            Where δ is asked; from 0 to ε(1e-10) if left out.
        style
            What `Axes.plot` takes.
        """
        if epsilons is None:
            last = max(float(self.epsilon(_DRAWN_TO).epsilon), 1.0)
            epsilons = [last * index / (_DRAWN - 1) for index in range(_DRAWN)]
        for name in [method] if isinstance(method, str) else method:
            ax = self.delta(epsilons, name).plot(ax, **{"label": name, **style})
        if not isinstance(method, str):
            ax.legend()
        return ax


def certified_digits(options: Mapping[str, Any]) -> int:
    """Return the digits that the method certified was asked for."""
    if not options:
        return 15
    from symdp.methods.table import options_of

    return int(options_of("certified", options)["digits"])


def _least_of_round(
    accountant: Accountant, laws: Mapping[str, SumLaw], log_delta: float
) -> dict[str, Link]:
    """Return the least ε of one round of shuffled answers, which has one law."""
    from symdp.questions.shuffled.blanket import BlanketLaw, least_epsilon

    ((side, law),) = laws.items()
    assert isinstance(law, BlanketLaw)
    return {side: least_epsilon(accountant, law, log_delta)}


def _of_shuffled(steps: Accounted, method: str, options: Mapping[str, Any] | None) -> Accountant:
    """Return the accountant of one round of shuffled answers."""
    from symdp.questions.shuffled.blanket import Blanket
    from symdp.questions.shuffled.clones import Clones

    if method == Clones().name and not options:
        return Clones()
    if method != Blanket().name or options:
        raise InputError(
            f"{steps.steps[0][0].summary}: {method} needs the law of the loss, and of shuffled "
            "answers a bound on δ is known alone; leave the method out, or ask clones"
        )
    return Blanket()


def _of_curves(steps: Accounted, method: str, options: Mapping[str, Any] | None) -> Accountant:
    """Return the one accountant of steps that are known by a Rényi curve alone."""
    from symdp.methods.renyi import METHODS, RenyiBound
    from symdp.model.sampling import RenyiCurve

    name = next(m.summary for m, _ in steps.steps if isinstance(m.source, RenyiCurve))
    if method not in METHODS:
        raise InputError(
            f"{name} is known by its Rényi curve alone: {method} needs the law of the loss; leave "
            "the method out, or ask renyi"
        )
    if options:
        raise InputError(f"{name}: the method of a Rényi curve takes no options")
    return RenyiBound()


@dataclass(frozen=True)
class Truth:
    """δ(ε) to 30 digits, proved; of few steps as many as can be had, and the advice says so."""

    composition: Composition
    name: str = "truth"
    citations: tuple[str, ...] = ("SPA (28)",)
    is_exact: bool = True
    least_log_delta: float = -math.inf

    def log_delta(self, law: SumLaw, epsilon: float) -> Answer:
        """Return log δ(ε), rounded from 30 digits or from as many as can be had."""
        import mpmath

        from symdp.prove.truth import profile

        composition = self.composition
        side = next(side for side in composition.sides("both") if composition.law(side) is law)
        truth = profile(composition.accounted.pairs(side), epsilon, digits=_DIGITS)
        with mpmath.workdps(_DIGITS):
            log_delta, log_complement = (
                float(mpmath.log(value)) if value > 0 else -math.inf
                for value in (truth.value, 1 - truth.value)
            )
        slack = ROUNDING * abs(log_delta) if log_delta > -math.inf else 0.0
        slack += 10.0**-truth.digits
        bounds = (log_delta - slack, min(log_delta + slack, 0.0))
        is_whole = truth.digits >= _DIGITS and truth.is_proved
        advice = "" if is_whole else f"δ is known to {truth.said}"
        return Answer(log_delta, *bounds, "exact", advice, log_complement=log_complement)

    def log_deltas(self, law: SumLaw, epsilons: Sequence[float]) -> list[Answer]:
        """Return log δ at several ε in the direction of the law."""
        return [self.log_delta(law, epsilon) for epsilon in epsilons]


def compose(
    steps: Mechanism | Sequence[Mechanism | tuple[Mechanism, int]],
    n: float | None = None,
) -> Composition:
    """Return the composition of one mechanism `n` times, or of several steps.

    Parameters
    ----------
    steps
        A mechanism; or a list of mechanisms, each once, and of pairs (mechanism, count).
    n
        How often one mechanism is taken, once if left out; a float must be whole.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> compose([(mechanisms.laplace(b=2), 3), (mechanisms.gaussian(sigma=4), 5)]).n
    8
    >>> noise = mechanisms.gaussian(sigma=4)
    >>> compose([noise, noise]).steps == compose(noise, 2.0).steps
    True
    """
    from symdp.model.mechanism import Mechanism, a_mechanism

    if isinstance(steps, Mechanism | str):
        return Composition([(a_mechanism(steps), checked_count(1 if n is None else n))])
    if n is not None:
        raise InputError("a list of steps carries its own counts; leave `n` out")
    return Composition(listed_steps(steps))


def _is_exceeded(law: SumLaw, epsilon: float, links: Mapping[str, Link]) -> bool:
    """Return whether δ(ε) of a side is certainly below that of another one, which is known."""
    lowers = [link.lower for link in links.values() if link.lower is not None]
    if not lowers or law.is_closed:  # whose δ costs less than a bound of it
        return False
    least = max(lowers)
    return log_usual_bound(law, epsilon, least) < least
