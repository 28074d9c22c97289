"""A reader of printed formulas, from text to mpmath; it shares nothing with what prints them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import mpmath

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<above>[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)|(?P<primes>[′″‴]+)"
    r"|(?P<name>(?:log|atan|sinh|cosh|tanh|coth|max|erf|loss|He|[A-Za-zα-ωΑ-Ωℓ])"
    r"(?:[₀₁₂₃₄₅₆₇₈₉]+|_[A-Za-zα-ω∗]+)?)|(?P<sign>\S))"
)
_FIGURES = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "log": mpmath.log, "atan": mpmath.atan, "sinh": mpmath.sinh, "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "coth": mpmath.coth, "Φ": mpmath.ncdf, "Γ": mpmath.gamma, "max": max, "erf": mpmath.erf,
    "C": mpmath.binomial, "φ": mpmath.npdf,
}  # fmt: skip


def value(formula: str, names: Mapping[str, Any]) -> Any:
    """Return what a printed formula comes to; `names` are numbers and functions."""
    reader = _Reader(formula, dict(names))
    found = reader.sum()
    assert reader.kind == "end", f"not read: {formula[reader.at :]!r} of {formula!r}"
    return found


class _Reader:
    def __init__(self, formula: str, names: dict[str, Any]) -> None:
        self.formula, self.names = formula, names
        self.at = self.behind = 0
        self.kind = self.text = ""
        self.next()

    def next(self) -> None:
        self.at = self.behind
        found = _TOKEN.match(self.formula, self.at)
        if found is None:
            self.kind, self.text = "end", ""
            return
        self.behind = found.end()
        self.kind = str(found.lastgroup)
        self.text = found.group(self.kind)

    def take(self, sign: str) -> bool:
        if self.kind == "sign" and self.text == sign:
            self.next()
            return True
        return False

    def need(self, sign: str) -> None:
        assert self.take(sign), f"{sign!r} wanted at {self.formula[self.at :]!r}"

    def sum(self) -> Any:
        total = -self.product() if self.take("−") else self.product()
        while self.kind == "sign" and self.text in "+−":
            sign = 1 if self.text == "+" else -1
            self.next()
            total += sign * self.product()
        return total

    def product(self) -> Any:
        if self.take("∑"):
            return self.series()
        total = self.factor()
        while True:
            if self.take("·"):
                total *= self.factor()
            elif self.take("/"):
                total /= self.factor()
            elif self.kind in {"number", "name"} or (self.kind == "sign" and self.text in "(√"):
                total *= self.factor()
            else:
                return total

    def series(self) -> Any:
        self.need("_")
        self.need("(")
        index = self.text
        self.next()
        self.need("=")
        first = int(self.sum())
        self.need(")")
        self.need("^")
        last = int(self.atom())
        body, total = self.at, mpmath.mpf(0)
        for k in range(first, last + 1):
            self.behind = body
            self.names[index] = k
            self.next()
            total += self.product()
        return total

    def factor(self) -> Any:
        found = self.atom()
        while True:
            if self.kind == "above":
                found = mpmath.mpf(found) ** int(self.text.translate(_FIGURES))
                self.next()
            elif self.take("^"):
                found = mpmath.mpf(found) ** self.atom()
            else:
                return found

    def atom(self) -> Any:
        if self.take("("):
            inside = self.sum()
            self.need(")")
            return inside
        if self.take("|"):
            inside = self.sum()
            self.need("|")
            return abs(inside)
        if self.take("√"):
            return mpmath.sqrt(self.atom())
        kind, text = self.kind, self.text
        assert kind in {"number", "name"}, f"{text!r} in {self.formula!r}"
        self.next()
        if kind == "number":
            return mpmath.mpf(text)
        if self.kind == "primes":
            text += self.text
            self.next()
        function = self.names.get(text, FUNCTIONS.get(text))
        if callable(function):
            power = 1
            if self.kind == "above":
                power = int(self.text.translate(_FIGURES))
                self.next()
            return function(*self.arguments()) ** power
        if text == "e":
            return mpmath.e
        if text == "π":
            return mpmath.pi
        assert text in self.names, f"{text!r} has no value in {self.formula!r}"
        return self.names[text]

    def arguments(self) -> list[Any]:
        self.need("(")
        found = [self.sum()]
        while self.take(","):
            found.append(self.sum())
        self.need(")")
        return found
