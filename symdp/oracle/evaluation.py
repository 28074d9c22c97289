"""δ(ε) of a composition to many digits, independent of the double-precision path.

One step is integrated from the definition.  Of several, the integral of [SPA (28)] is taken in the
strip in which it is smallest, and its poles add what is known without cancelling: on lattices over
one period, over short lists sum by sum, over densities along a line, and of few steps by adding one
step at a time.  All is done twice, with other nodes, another step and another tilt, and the two
must agree to the digits wanted; that is the only measure of error.  Where the integral is a short
sum of residues that sum is taken, in balls, and only the mass at infinity is integrated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import mpmath
import sympy as sp
from flint import arb, ctx

from symdp.arguments import counted_pairs, real
from symdp.emit.exact import LN10, real_ball
from symdp.errors import AccuracyError, InputError
from symdp.law.residues import ResidueSum, residues_of
from symdp.oracle.contour import (
    MOST_WORK,
    LineIntegral,
    Saddle,
    Steps,
    cumulants,
    find_saddle,
    integrate_line,
)
from symdp.oracle.convolution import convolve
from symdp.oracle.definition import single_step
from symdp.oracle.discrete import (
    SumGrid,
    enumerate_sums,
    find_lattice,
    has_few_sums,
    sum_lattice,
    weighted_atoms,
)
from symdp.oracle.law import StepLaw, step_law
from symdp.oracle.panels import DivergentError, WorkLimitError, as_float

if TYPE_CHECKING:
    from symdp.model.pair import Pair

_SECOND_LINE = 0.25  # how far the second line lies from the first, in widths of the saddle
_MORE_DIGITS = 4.0  # in both evaluations, so that their last ones need not agree
_MOST_CANCELLED = 400  # digits
_MOST_CONVOLVED = 60  # steps
_LITTLE_WORK = 5e6  # products a step for the contour of so few, before they are convolved


@dataclass(frozen=True)
class Profile:
    """δ(ε) and 1 − δ(ε), each to its own relative accuracy.

    Attributes
    ----------
    value, complement
        mpmath.mpf, both with the digits asked.
    digits
        Decimal digits on which two independent evaluations of both agree.
    method
        "definition", "residues", "contour", "convolution", "lattice" or "enumeration".
    """

    value: Any
    complement: Any
    digits: float
    method: str


def privacy_profile(
    pairs: Iterable[tuple[Pair, int]], epsilon: float | Fraction | sp.Expr, digits: int = 50
) -> Any:
    """Return δ(ε) of a composition to the asked number of digits.

    Parameters
    ----------
    pairs : iterable of (Pair, count)
        The steps; all parameters bound; counts up to 10¹².
    epsilon : float, Fraction or SymPy number
        Any real number, taken exactly.
    digits : int
        Significant digits of δ.

    Returns
    -------
    mpmath.mpf

    Raises
    ------
    InputError
        For a bad count, ε or number of digits.
    AccuracyError
        If the two evaluations differ or the work limit is reached.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> steps = [(mechanisms.gaussian(sigma=2).pair(), 3)]
    >>> print(mpmath.nstr(privacy_profile(steps, Fraction(3, 2), digits=30), 30))
    0.0288822455519780282780479127346
    """
    return profile(pairs, epsilon, digits).value


def profile(
    pairs: Iterable[tuple[Pair, int]], epsilon: float | Fraction | sp.Expr, digits: int = 50
) -> Profile:
    """Return what `privacy_profile` does, with the digits reached and the method used."""
    listed = tuple(counted_pairs(pairs, "pair"))
    steps = _steps(listed)
    if not isinstance(digits, int) or not 1 <= digits <= 1000:
        raise InputError(f"digits must be a whole number from 1 to 1000, not {digits!r}")
    size = math.log10(10 + sum(count for _, count in steps))
    with ctx.workprec(int(3.33 * (digits + size + 30)) + 60):
        number = _number(epsilon)
        evaluator = _evaluator(steps, number, _residues(listed, steps))
        try:
            first = evaluator.evaluate(digits + _MORE_DIGITS, 0)
        except AccuracyError:
            if evaluator.method != "residues":
                raise
            evaluator = _evaluator(steps, number, None)
            first = evaluator.evaluate(digits + _MORE_DIGITS, 0)
        second = evaluator.evaluate(digits + _MORE_DIGITS + 3, 1)
        reached = min(_agreement(*pair) for pair in zip(first, second, strict=True))
        if reached < digits:
            shown = ", ".join(value.str(10, radius=False) for value in (first[0], second[0]))
            raise AccuracyError(
                f"two evaluations of δ agree on {max(reached, 0):.1f} of {digits} digits only "
                f"({shown}); ask for fewer digits"
            )
        delta, complement = (_to_mpf(value, digits) for value in second)
        return Profile(delta, complement, reached, evaluator.method)


def _evaluator(
    steps: Steps, epsilon: sp.Expr, residues: ResidueSum | None
) -> _Single | _Residues | _Composed:
    if residues is not None:
        return _Residues(steps, epsilon, residues)
    exact = real_ball(epsilon)
    if sum(count for _, count in steps) == 1:
        return _Single(steps[0][0], exact)
    return _Composed(steps, exact)


def _residues(pairs: Iterable[tuple[Pair, int]], steps: Steps) -> ResidueSum | None:
    """The sum of residues; lists have ways of their own, and one step is integrated."""
    if sum(count for _, count in steps) == 1 or all(law.is_discrete for law, _ in steps):
        return None
    return residues_of(list(pairs))


class _Single:
    """One step, from the definition."""

    method = "definition"

    def __init__(self, law: StepLaw, epsilon: arb) -> None:
        self._law, self._epsilon = law, epsilon

    def evaluate(self, digits: float, which: int) -> tuple[arb, arb]:
        order = _order(digits, which)
        infinite = self._law.mass_at_infinity(digits, order)
        excess, rest = single_step(self._law, self._epsilon, digits, order)
        return infinite + excess, rest


class _Residues:
    """Several steps whose integral is a finite sum."""

    method = "residues"

    def __init__(self, steps: Steps, epsilon: sp.Expr, residues: ResidueSum) -> None:
        self._steps, self._epsilon, self._residues = steps, epsilon, residues

    def evaluate(self, digits: float, which: int) -> tuple[arb, arb]:
        infinite, kept = _masses(self._steps, digits, _order(digits, which))
        goal = arb(10) ** -int(digits)

        def is_tight(excess: arb) -> bool:
            error = excess.rad()
            return bool(error <= goal * excess and error <= goal * (kept - excess))

        excess = self._residues.excess(self._epsilon, is_tight)
        return infinite + excess, kept - excess


def _masses(steps: Steps, digits: float, order: int) -> tuple[arb, arb]:
    """The probabilities of an infinite loss and of a finite one."""
    log_kept = arb(0)
    for law, count in steps:
        log_kept += count * (-law.mass_at_infinity(digits, order)).log1p()
    return -log_kept.expm1(), log_kept.exp()


class _Composed:
    """Several steps: the integral of the strip in which it is smallest, and what the poles add."""

    def __init__(self, steps: Steps, epsilon: arb) -> None:
        self._steps, self._epsilon = steps, epsilon
        self._line: LineIntegral | None = None
        self._lattice: SumGrid | None = None
        self._cancelled = 0.0
        self.method = "contour"
        ranges = [(law.loss_range(), count) for law, count in steps]
        if epsilon >= sum((top * count for (_, top), count in ranges), arb(0)).mid():
            self._strip = "above"
        elif epsilon <= sum((low * count for (low, _), count in ranges), arb(0)).mid():
            self._strip = "below"
        else:
            self._strip, self._saddle = _strip(steps, float(epsilon))
            if all(law.is_discrete for law, _ in steps):
                self._choose_discrete()

    def evaluate(self, digits: float, which: int) -> tuple[arb, arb]:
        """δ and 1 − δ; each strip yields one of them, or what it differs by, without cancelling."""
        order = _order(digits, which)
        infinite, kept = _masses(self._steps, digits, order)
        if self._strip == "above":
            return infinite, kept
        integral = arb(0) if self._strip == "below" else self._integral(digits, which)
        if self._strip == "right":
            return infinite + integral, kept - integral
        complement = integral if self.method == "enumeration" else -integral
        if self._strip in ("left", "below") and self.method != "enumeration":
            present = arb(1)
            for law, count in self._steps:
                present *= law.mass_without_record(digits, order) ** count
            complement += self._epsilon.exp() * present
        return infinite + (kept - complement), complement

    def _choose_discrete(self) -> None:
        """Lattices and short lists have ways of their own; atoms alone never let a line end."""
        atoms = weighted_atoms(self._steps, self._saddle.tilt, ctx.prec / 3.33 - 20)
        self._lattice = find_lattice(atoms)
        if self._lattice is not None:
            self.method = "lattice"
        elif has_few_sums(atoms):
            self.method = "enumeration"
        else:
            raise AccuracyError(
                "the atoms of the losses lie on no lattice, and sums of them are too many to "
                "enumerate; ask for fewer digits, or for a certified enclosure"
            )

    def _integral(self, digits: float, which: int) -> arb:
        """The integral of the strip, with as many more digits as cancel in it.

        Where no tilt makes ε a typical loss, the integral is far smaller than its integrand.
        """
        while True:
            value = self._with(digits + self._cancelled, which)
            size = as_float(abs(value).log()) if value != 0 else -math.inf
            lost = max(0.0, (self._saddle.log_height - size) / LN10)
            if lost < self._cancelled + _MORE_DIGITS / 2:
                return value
            # Where nothing but rounding is left, that shows only how much was not enough.
            self._cancelled += min(lost, digits + self._cancelled) + _MORE_DIGITS
            if self._cancelled > _MOST_CANCELLED:
                raise AccuracyError(
                    f"more than {_MOST_CANCELLED} digits cancel in the integral; no tilt makes "
                    "ε a typical loss"
                )

    def _with(self, digits: float, which: int) -> arb:
        saddle = self._saddle if which == 0 else _second_line(self._saddle)
        steps, epsilon = self._steps, self._epsilon
        if self.method == "enumeration":
            return enumerate_sums(weighted_atoms(steps, saddle.tilt, digits), epsilon, saddle.tilt)
        if self._lattice is not None:
            largest = math.log10(max(count for _, count in steps))
            atoms = weighted_atoms(steps, saddle.tilt, digits + largest)
            return sum_lattice(atoms, self._lattice, epsilon, saddle, digits)
        order = _order(digits + math.log10(max(count for _, count in steps)), which)
        if self.method == "contour":
            count = sum(count for _, count in steps)
            is_few = count <= _MOST_CONVOLVED and not any(law.is_discrete for law, _ in steps)
            work = min(_LITTLE_WORK * count, MOST_WORK / 2) if is_few else MOST_WORK
            try:
                self._line = integrate_line(
                    steps, epsilon, saddle, digits, order, like=self._line, work=work
                )
            except WorkLimitError:
                if not is_few or which == 1:
                    raise
                self.method = "convolution"
            else:
                return self._line.value
        return convolve(steps, epsilon, saddle, digits, order)


def _strip(steps: Steps, epsilon: float) -> tuple[str, Saddle]:
    """The strip in which the integral is smallest, by its saddle point."""
    if epsilon < 0 and epsilon <= cumulants(steps, -1.0)[1]:
        with suppress(DivergentError):
            return "left", find_saddle(steps, epsilon, -math.inf, -1.0)
    if epsilon < cumulants(steps, 0.0)[1]:
        middle = find_saddle(steps, epsilon, -1.0, 0.0)
        if middle.log_size < math.log(0.5):
            return "middle", middle
        # One rare large loss may carry the mean: then δ itself is the smaller number.
        with suppress(DivergentError):
            right = find_saddle(steps, epsilon, 0.0, math.inf)
            if right.log_size < middle.log_size:
                return "right", right
        return "middle", middle
    return "right", find_saddle(steps, epsilon, 0.0, math.inf)


def _second_line(saddle: Saddle) -> Saddle:
    """A line some way towards the nearer pole: the domain of K contains [−1, 0]."""
    tilt = saddle.tilt
    towards = 1 if tilt < -1 or -0.5 < tilt < 0 else -1
    shift = towards * _SECOND_LINE / math.sqrt(saddle.curvature)
    return Saddle(tilt + shift, saddle.log_height, saddle.curvature)


def _order(digits: float, which: int) -> int:
    return int(10 + 0.7 * digits) + 7 * which


def _steps(pairs: Iterable[tuple[Pair, int]]) -> list[tuple[StepLaw, int]]:
    counts: dict[StepLaw, int] = {}
    for pair, count in pairs:
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise InputError(f"a count of steps must be a positive whole number, not {count!r}")
        law = step_law(pair)
        counts[law] = counts.get(law, 0) + count
    if not counts:
        raise InputError("a composition needs at least one step")
    return list(counts.items())


def _number(epsilon: Any) -> sp.Expr:
    if isinstance(epsilon, sp.Basic):
        number: Any = epsilon
    else:
        taken = isinstance(epsilon, int | Fraction)
        number = sp.Rational(epsilon if taken else real(epsilon, "epsilon"))
    if not (number.is_number and number.is_finite and number.is_real):
        raise InputError(f"epsilon must be a finite real number, not {epsilon!r}")
    return number


def _agreement(first: arb, second: arb) -> float:
    if first.is_zero() and second.is_zero():
        return math.inf
    if not (first.is_finite() and second.is_finite()) or not second > 0:
        return 0.0
    apart = (abs(first - second) / second).upper()
    return math.inf if apart.is_zero() else -float(apart.log()) / math.log(10)


def _to_mpf(value: arb, digits: int) -> Any:
    mantissa, exponent = value.mid().man_exp()
    with mpmath.workdps(digits + 5):
        return mpmath.ldexp(mpmath.mpf(int(mantissa)), int(exponent))
