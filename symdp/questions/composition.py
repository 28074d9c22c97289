"""A composition of mechanisms, and the questions that people ask of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from symdp.arguments import (
    DIRECTIONS,
    EXACTLY,
    Direction,
    checked_count,
    flat,
    is_array,
    real,
    share,
    sides,
)
from symdp.capacity import within_capacity
from symdp.errors import AccuracyError, InputError
from symdp.interrupt import generation
from symdp.questions.accountants import accountant_for, answers_of, certified_digits
from symdp.questions.accounted import accounted, direction_of, has_one_shift
from symdp.questions.guarantee import Curve, Guarantee, Link, largest
from symdp.questions.steps import Summed, listed_steps
from symdp.turns import in_turn

if TYPE_CHECKING:
    from decimal import Decimal

    import numpy as np
    from numpy.typing import NDArray

    from symdp.arguments import MethodName
    from symdp.model.mechanism import Mechanism
    from symdp.numeric.answer import Accountant
    from symdp.numeric.loss import LossLaw
    from symdp.numeric.many.schedule import StepFamily
    from symdp.numeric.total import SumLaw
    from symdp.questions.accounted import Accounted
    from symdp.questions.certificate import Certificate
    from symdp.questions.claim import CheckedClaim

    One = float | Fraction | Decimal | np.number[Any] | str
    Many = Sequence[float] | NDArray[Any]

__all__ = ["Composition", "Direction", "compose"]

_Steps = Sequence[tuple["Mechanism", int]]
_LEAST = 24  # distinct steps of one formula from which on fewer may stand for all of them
_ELSEWHERE = (Fraction(2, 3), Fraction(7, 4))  # times its values, where a formula's mass is checked


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

    def __eq__(self, other: object) -> bool:
        """Whether both are the same steps, as they were given, in any order."""
        if not isinstance(other, Composition):
            return NotImplemented
        return frozenset(self.given_steps()) == frozenset(other.given_steps())

    def __hash__(self) -> int:
        return hash(frozenset(self.given_steps()))

    def __repr__(self) -> str:
        from symdp.questions.steps import steps_text

        return f"Composition({steps_text(self.steps, self.count)})"

    def _repr_html_(self) -> str:
        from symdp.questions.steps import steps_html

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

        return total_law(self.accounted.steps_of(side), direction_of(side))

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
        links = ({s: Link.of_delta(one) for s, one in answers.items()} for answers in found)
        return [
            self._answer("delta", epsilon, sides, accountant, seconds)
            for epsilon, sides in zip(epsilons, links, strict=True)
        ]

    def _answer(
        self,
        asked: Literal["delta", "epsilon"],
        given: float,
        links: Mapping[str, Link],
        accountant: Accountant,
        seconds: float,
    ) -> Guarantee:
        """Return the largest answer of the sides, with all that an answer says besides."""
        side, both = largest(links)
        epsilon, log_delta = given, both.value
        names = ("log_lower", "log_upper")
        if asked == "epsilon":
            epsilon, log_delta = both.value, math.log(given)
            names = ("epsilon_lower", "epsilon_upper")
        ends: dict[str, Any] = dict(zip(names, (both.lower, both.upper), strict=True))
        return Guarantee(
            epsilon,
            log_delta,
            both.kind,
            accountant.name,
            self._label or direction_of(side),
            self.count,
            asked,
            advice=both.advice,
            seconds=seconds,
            citations=accountant.citations,
            given_delta=given if asked == "epsilon" else None,
            protection=self.protection,
            route=links[side].route,
            mass=self.mass,
            **ends,
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
        delta = share(delta, "delta")
        accountant = accountant_for(method, self, options)
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
            found = invert_larger(accountant, laws, math.log(delta))
        return self._answer("epsilon", delta, found, accountant, time.perf_counter() - start)

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
        return replace(one, direction=label, protection=self.protection)

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
        exact = delta if isinstance(delta, Fraction) else share(delta, "delta")
        if not 0 < exact < 1:
            raise InputError(f"delta = {delta!r}: it must lie strictly between 0 and 1")
        with within_capacity("certify"):
            return self._owned(certify_epsilon(self, exact, digits, self.sides(direction)))

    @in_turn
    def check_claim(self, epsilon: Any, delta: Any, direction: Direction = "both") -> CheckedClaim:
        """Return whether these steps have a stated (ε, δ), proved where a proof is found.

        Parameters
        ----------
        epsilon, delta
            ε ≥ 0 and 0 ≤ δ < 1, taken exactly: numbers, or texts such as "1/3".
        direction
            As for `delta`.

        Returns
        -------
        CheckedClaim: "proved", "exact", "refuted" with an attack's rates, or "open"; and an ε that
        would do.

        Raises
        ------
        InputError
            If ε, δ or the direction are out of range.

        Examples
        --------
        >>> from symdp import mechanisms
        >>> found = compose(mechanisms.gaussian(sigma=2), 30).check_claim(17, "1e-5")
        >>> found.verdict, found.is_loose, float(found.would_do)
        ('proved', True, 14.9)
        """
        from symdp.questions.claim import check_claim

        return check_claim(self, epsilon, delta, direction)

    def trade_off(self, alpha: Any, direction: Direction = "both") -> Any:
        """Return the least miss rate at false alarm rate α, an array of them for an array."""
        from symdp.questions.tradeoff import trade_off

        return trade_off(self, alpha, direction)

    def bayes_error(self, prior: float = 0.5, direction: Direction = "both") -> float:
        """Return an attacker's least probability of error."""
        from symdp.questions.tradeoff import bayes_error

        return bayes_error(self, prior, direction)

    @overload
    def renyi(self, order: One, direction: Direction = ...) -> float: ...
    @overload
    def renyi(self, order: Many, direction: Direction = ...) -> NDArray[np.float64]: ...
    def renyi(self, order: Any, direction: Direction = "both") -> Any:
        """Return D_α at any order α ≥ 0, or an array, see `tradeoff.renyi_divergence`."""
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
    from symdp.model.mechanism import Mechanism, a_mechanism

    if isinstance(steps, Mechanism | str):
        return Composition([(a_mechanism(steps), checked_count(1 if count is None else count))])
    if count is not None:
        raise InputError("a list of steps carries its own counts; leave `count` out")
    return Composition(listed_steps(steps))


def total_law(steps: _Steps, direction: str) -> SumLaw:
    """Return the law of the total privacy loss; very many steps of one formula are one term.

    Of steps that are known by a Rényi curve alone it is a bound on the transform.
    """
    from symdp.model.renyi_curve import RenyiCurve
    from symdp.numeric.compile import loss_law
    from symdp.numeric.total import SumLaw

    def parts(some: _Steps) -> list[tuple[LossLaw, int]]:
        return [(loss_law(mechanism, direction), count) for mechanism, count in some]

    curves = [(step, count) for step, count in steps if isinstance(step.source, RenyiCurve)]
    if curves:
        from symdp.methods.renyi import RenyiBoundLaw

        known = [(step, count) for step, count in steps if not isinstance(step.source, RenyiCurve)]
        other = "add" if direction == "remove" else "remove"
        return RenyiBoundLaw(
            curves,
            total_law(known, direction) if known else None,
            lambda: total_law(steps, other),
        )
    families, others = [], []
    for members in _grouped(steps):
        found = _families(tuple(members), generation()) if len(members) >= _LEAST else []
        families += found
        others += [] if found else members
    if any(family.has_rule for family in families):
        from symdp.numeric.many.schedule import RuleLaw

        return RuleLaw(families, parts(others), lambda: parts(steps), direction)
    terms = [x for family in families for x in family.terms(direction == "add")]
    return SumLaw([*((law, int(count)) for law, count in terms), *parts(others)], direction)


def _grouped(steps: _Steps) -> list[list[tuple[Mechanism, int]]]:
    """Return the steps by what those of one formula share."""
    if len(steps) < _LEAST:
        return [list(steps)]
    groups: dict[object, list[tuple[Mechanism, int]]] = {}
    for mechanism, count in steps:
        sampling = mechanism.sampling
        scheme = None if sampling is None else tuple((vars(sampling) | {"rate": None}).items())
        template = None if mechanism.template is None else mechanism.template.key
        whole = {p.name for p in mechanism.declared if p.symbol.is_integer}
        fixed = tuple(pair for pair in sorted(mechanism.bound) if pair[0] in whole)
        key = template, scheme, mechanism.neighbours, mechanism.is_mirrored, fixed
        groups.setdefault(key, []).append((mechanism, count))
    return list(groups.values())


@lru_cache(maxsize=8)
def _families(members: tuple[tuple[Mechanism, int], ...], _: int) -> list[StepFamily]:
    """Return what stands for steps of one formula, nothing where they have none.

    Where their values are on no line, and one parameter has few values, those that share one of
    them may be.
    """
    import numpy as np

    from symdp.model.allocation import allocated_steps
    from symdp.numeric.compile import loss_law
    from symdp.numeric.formula import formula_of
    from symdp.numeric.many.schedule import StepFamily

    if allocated_steps(members[0][0]) is not None:
        return []
    found = [formula_of(mechanism, "remove") for mechanism, _ in members]
    formulas = {id(pair[0]) for pair in found if pair is not None}
    if None in found or len(formulas) != 1:
        return []
    formula = next(pair[0] for pair in found if pair is not None)
    vectors = [tuple(pair[1]) for pair in found if pair is not None]
    name = members[0][0].name

    def made(some: Sequence[int]) -> list[StepFamily]:
        ends = min(some, key=lambda k: vectors[k]), max(some, key=lambda k: vectors[k])
        laws = [loss_law(members[k][0], "remove") for k in ends]
        family = StepFamily(
            [vectors[k] for k in some],
            np.asarray([float(members[k][1]) for k in some]),
            lambda k: loss_law(members[some[k]][0], "remove"),
            lambda values: formula.at(values, name),
            lambda vectors: formula.entries(vectors, laws),
        )
        distinct = [{vectors[k][j] for k in some} for j in range(len(vectors[0]))]
        j, values = min(enumerate(distinct), key=lambda pair: (len(pair[1]) < 2, len(pair[1])))
        if family.has_rule or len(some) < 2 * _LEAST * len(values):
            return [family]
        groups = ([k for k in some if vectors[k][j] == value] for value in sorted(values))
        return [one for group in groups for one in made(group)]

    try:
        return made(range(len(members)))
    except (AccuracyError, InputError):  # what no double holds, or no quadrature resolves
        return []


def is_proved_at_all_values(mechanism: Mechanism) -> bool:
    """Return whether other values of the parameters are answered for the same shifts."""
    from symdp.balls.modes import has_one_mode_always
    from symdp.model.sampling import Noise

    if not isinstance(mechanism.source, Noise) or mechanism.shift == EXACTLY:
        return True
    return has_one_shift(mechanism.template or mechanism) or has_one_mode_always(mechanism)


class KnownComposition(Composition):
    """One step, some number of times, whose law an earlier process derived.

    `facts` is what `facts_of` wrote down, `values` has those of its parameters, the rate among
    them; `built` makes the composition for questions that the law does not answer. Facts that are
    none end in errors of any kind, values that need a derivation of their own in an InputError.
    """

    def __init__(
        self,
        facts: Mapping[str, Any],
        values: Mapping[str, Fraction],
        count: int,
        built: Callable[[], Composition],
    ) -> None:
        from symdp.model.relation import Protection
        from symdp.numeric.formula import decode

        formula = decode(facts["formula"])
        law = formula.at([values[name] for name in formula.names], str(facts["name"]))
        if law is None:
            raise InputError("these values need a derivation of their own")
        self._law: LossLaw = law
        self.protection = Protection(**facts["protection"])
        self._label = "both" if facts["is_mirrored"] else ""
        self._has_one_law = bool(facts["has_one_law"])
        self.count, self.mass = count, "proved"
        self._laws = {}
        self._built = built

    @cached_property
    def accounted(self) -> Accounted:  # type: ignore[override]
        """The record of a composition of the step."""
        return self._built().accounted

    def sides(self, direction: str) -> tuple[str, ...]:
        """Return the sides of a direction, without the record: a formula has no lowered ones."""
        asked = sides(direction)
        return asked[:1] if self._has_one_law else asked

    @property
    def step_by_curve(self) -> None:
        """None: a formula is that of a law."""

    @cached_property
    def steps(self) -> tuple[tuple[Mechanism, int], ...]:  # type: ignore[override]
        """The step with its count."""
        return self.accounted.steps

    def _new_law(self, side: str) -> SumLaw:
        from symdp.numeric.total import SumLaw

        law = self._law if side == "remove" else self._law.reversed()
        return SumLaw([(law, self.count)], side)


def facts_of(steps: Composition) -> dict[str, Any] | None:
    """Return the facts that answer for a formula in any process, None where there are none.

    That its densities have mass one is checked at three values of its parameters, as everywhere;
    the quadrature of each law is the check at others.
    """
    from symdp.model.relation import SUBSTITUTION
    from symdp.numeric.compile import loss_law
    from symdp.numeric.formula import encode, formula_of
    from symdp.numeric.loss import LossLaw

    if steps.accounted.lowered:
        return None
    if not all(is_proved_at_all_values(given) for given, _ in steps.given_steps()):
        return None
    ((mechanism, _), *others) = steps.steps
    sampling = mechanism.sampling
    found = None if others else formula_of(mechanism, "remove")
    if found is None or type(loss_law(mechanism, "remove")) is not LossLaw:
        return None
    if sampling is not None and mechanism.neighbours == SUBSTITUTION:
        return None  # whether data attain the pair may depend on values
    try:
        data = encode(found[0])
        if not _has_mass_one_elsewhere(mechanism):
            return None
    except InputError:
        return None
    return {
        "names": list(found[0].names),
        "name": mechanism.name,
        "formula": data,
        "is_mirrored": mechanism.is_mirrored,
        "has_one_law": steps.accounted.has_one_law,
        "protection": dict(vars(steps.protection)),
    }


def _has_mass_one_elsewhere(mechanism: Mechanism) -> bool:
    from symdp.balls.density import with_mass_one

    template = mechanism.template
    if template is None:
        return False
    free = {p.name for p in template.declared if p.symbol.is_positive and not p.symbol.is_integer}
    for factor in _ELSEWHERE:
        values = {
            name: value * factor if name in free else value for name, value in mechanism.bound
        }
        known = {name: value for name, value in values.items() if name in template.parameters}
        other = template(**known)
        if list(with_mass_one({other: 1}, for_proof=True)) != [other]:
            return False
    return True
