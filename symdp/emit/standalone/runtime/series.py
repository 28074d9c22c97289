"""A closed-form K and its derivatives by truncated Taylor series over decimal numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, DecimalException, localcontext

from symdp.emit.standalone.runtime.saddlepoint import _TooFar

# ---- emitted from here on ----

_Series = list[Decimal]  # coefficients of (z - t)^k; what is left out at the end is zero

_PRECISION = 60  # digits: differences in K cancel, and n steps multiply what is left
_CONTEXT = Context(prec=_PRECISION, Emax=MAX_EMAX, Emin=MIN_EMIN)
_ZERO = Decimal("1e-40")  # relative size below which a number stands for zero
_NEAR = 0.01  # distance from a removable singularity within which K is expanded about it
_REACH = 28  # how many terms more that takes


class _Arithmetic:
    """Operations on series of a fixed number of terms.

    With `removable`, a quotient whose parts both vanish at t is divided through by z - t first.
    """

    def __init__(self, terms: int, removable: bool = False) -> None:
        self.terms = terms
        self.removable = removable

    def constant(self, text: str) -> _Series:
        return [+Decimal(text)]

    def add(self, *parts: _Series) -> _Series:
        total = [Decimal(0)] * max(len(part) for part in parts)
        for part in parts:
            for k, value in enumerate(part):
                total[k] += value
        return total

    def scale(self, factor: int | Decimal, a: _Series) -> _Series:
        return [factor * value for value in a]

    def mul(self, first: _Series, *rest: _Series) -> _Series:
        for other in rest:
            size = min(self.terms, len(first) + len(other) - 1)
            product = [Decimal(0)] * size
            for i, value in enumerate(first[:size]):
                for j, factor in enumerate(other[: size - i]):
                    product[i + j] += value * factor
            first = product
        return first

    def div(self, a: _Series, b: _Series) -> _Series:
        while self.removable and len(b) > 1 and abs(b[0]) <= _ZERO * abs(b[1]):
            if abs(a[0]) > _ZERO * max(abs(value) for value in a):
                raise _TooFar
            a, b = a[1:] or [Decimal(0)], b[1:]
        if len(b) == 1:
            return [value / b[0] for value in a]
        quotient: _Series = []
        for k in range(self.terms):
            rest = a[k] if k < len(a) else Decimal(0)
            for j in range(1, min(k, len(b) - 1) + 1):
                rest -= b[j] * quotient[k - j]
            quotient.append(rest / b[0])
        return quotient

    def exp(self, a: _Series) -> _Series:
        result = [a[0].exp()]
        for k in range(1, self.terms if len(a) > 1 else 1):
            total = Decimal(0)
            for j in range(1, min(k, len(a) - 1) + 1):
                total += j * a[j] * result[k - j]
            result.append(total / k)
        return result

    def log(self, a: _Series) -> _Series:
        if a[0] <= 0:
            raise _TooFar
        result = [a[0].ln()]
        for k in range(1, self.terms if len(a) > 1 else 1):
            total = k * a[k] if k < len(a) else Decimal(0)
            for j in range(max(1, k - len(a) + 1), k):
                total -= j * result[j] * a[k - j]
            result.append(total / (k * a[0]))
        return result

    def sinh(self, a: _Series) -> _Series:
        up, down = self.exp(a), self.exp(self.scale(-1, a))
        return self.scale(Decimal("0.5"), self.add(up, self.scale(-1, down)))

    def cosh(self, a: _Series) -> _Series:
        return self.scale(Decimal("0.5"), self.add(self.exp(a), self.exp(self.scale(-1, a))))

    def tanh(self, a: _Series) -> _Series:
        return self.div(self.sinh(a), self.cosh(a))

    def power(self, a: _Series, exponent: _Series) -> _Series:
        return self.exp(self.mul(exponent, self.log(a)))

    def abs(self, a: _Series) -> _Series:
        return a if a[0] > 0 else self.scale(-1, a)


_Tape = Callable[[_Arithmetic, _Series, Sequence[_Series]], _Series]


class _SeriesLaw:
    """The law of n steps, from tapes that compute K and what else is known of one step."""

    def __init__(
        self,
        count: int,
        parameters: Sequence[Decimal],
        cgf: _Tape,
        facts: Sequence[_Tape],
        removable: Sequence[_Tape],
    ) -> None:
        self.count = count
        self._cgf = cgf
        self._parameters = [[value] for value in parameters]
        with localcontext(_CONTEXT):
            finite, *ends = (self._number(tape) for tape in facts)
            self.log_finite_mass = float(finite.ln()) if finite > 0 else float("-inf")
            self._removable = [self._number(tape) for tape in removable]
        self.domain = float(ends[0]), float(ends[1])
        self.loss_range = float(ends[2]), float(ends[3])

    def exponent(self, tilt: float, order: int, epsilon: float) -> list[float]:
        with localcontext(_CONTEXT):
            series = self._expansion(Decimal(tilt), order + 1)
            series += [Decimal(0)] * (order + 1 - len(series))
            values, factorial = [], 1
            for j in range(order + 1):
                factorial *= max(j, 1)
                values.append(self.count * factorial * series[j])
            values[0] -= Decimal(epsilon) * Decimal(tilt)
            if order > 0:
                values[1] -= Decimal(epsilon)
            return [float(value) for value in values]

    def _number(self, tape: _Tape) -> Decimal:
        return tape(_Arithmetic(1), [Decimal(0)], self._parameters)[0]

    def _at(self, tilt: Decimal, terms: int, removable: bool = False) -> _Series:
        try:
            arithmetic = _Arithmetic(terms, removable)
            return self._cgf(arithmetic, [tilt, Decimal(1)], self._parameters)
        except DecimalException:
            raise _TooFar from None

    def _expansion(self, tilt: Decimal, terms: int) -> _Series:
        for centre in self._removable:
            distance = tilt - centre
            if abs(distance) < _NEAR:
                long = self._at(centre, terms + _REACH, removable=True)[: terms + _REACH - 4]
                last = max(abs(c) * abs(distance) ** k for k, c in enumerate(long[-4:], terms + 20))
                if distance == 0 or last < Decimal("1e-35") * abs(distance) ** (terms - 1):
                    return _moved(long, distance, terms)
        return self._at(tilt, terms)


def _moved(series: _Series, distance: Decimal, terms: int) -> _Series:
    """Return the first terms of a series about a place that lies `distance` further."""
    series = list(series)
    for k in range(min(terms, len(series))):
        for j in range(len(series) - 2, k - 1, -1):
            series[j] += distance * series[j + 1]
    return series[:terms]
