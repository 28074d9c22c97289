"""A tail constant: what it bounds, its formula or why there is none, what kind of bound it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp.above import above
from symdp.errors import InputError, suggestion

if TYPE_CHECKING:
    from flint import arb

    from symdp.derive.privacy_loss import PrivacyLoss


@dataclass(frozen=True)
class TailRule:
    """What kind of bound a constant is, for whoever evaluates it (`TailConstant.value`).

    Attributes
    ----------
    kind
        "formula", "end", "drift", "chernoff", "quadratic", "sub-gaussian within",
        "sub-exponential", "third moment", "berry-esseen", "van der corput" or "split".
    under
        The law, "P" or "Q", of the tail.
    formula
        Of a quadratic bound s² under `known`, of a sub-exponential one its scale α; None where it
        is not known.
    known
        The law under which s² holds; where it is Q and the bound is one under P,
        P(ΣL ≥ ε) ≤ E_Q e^{sΣL} e^{(1−s)ε} with s ≥ 1 is used.
    order
        k of V_k.
    """

    kind: str
    under: str = "P"
    formula: sp.Expr | None = None
    known: str = "P"
    order: int = 1


@dataclass(frozen=True)
class TailConstant:
    """One constant of the loss.

    Attributes
    ----------
    name
        How it is asked for, as in ``tails["sub_gaussian_p"]``.
    notation
        Its symbol, in the notation of `symdp.page.formula`.
    bounds
        What it is or bounds, one line of text.
    expression
        A formula in the parameters, the tilt, ε and n; None where there is none.
    reason
        Why there is no formula; empty where there is one.
    arguments
        The names that `value` needs beside parameters.
    rule
        What kind of bound it is.
    derivation
        What it belongs to.
    """

    name: str
    notation: str
    bounds: str
    expression: sp.Expr | None
    reason: str
    arguments: tuple[str, ...]
    rule: TailRule = field(repr=False)
    derivation: PrivacyLoss = field(repr=False, compare=False)

    def value(self, **values: Any) -> arb:
        """Return a ball around the constant; of a bound, a number that is proved to be one.

        Parameters
        ----------
        **values
            The names in `arguments`, and parameters that are still free; numbers are exact.

        Raises
        ------
        InputError
            For a missing or an unknown name, or a value outside its domain.
        AccuracyError
            Where the constant does not exist or could not be enclosed; the line says which.

        Examples
        --------
        >>> import symdp
        >>> tails = symdp.derive(symdp.mechanisms.gaussian).tails
        >>> tails["third_moment"].value(t=1, sigma=2).str(6, radius=False)
        '0.199471'
        >>> tails = symdp.derive(symdp.mechanisms.laplace).tails
        >>> tails["chernoff_p"].value(epsilon=2, n=5, b=2).str(5, radius=False)
        '-1.2911'
        """
        ball: arb = above("tails").tail_value(self, **values)
        return ball

    @property
    def symbol(self) -> str:
        """Its symbol as LaTeX."""
        return str(above("latex").latex(above("formulas").read(self.notation)))


@dataclass(frozen=True)
class Tails:
    """The tail constants of one derivation, by name.

    >>> import symdp
    >>> from symdp.derive import derive
    >>> tails = derive(symdp.mechanisms.gaussian).tails
    >>> tails["sub_gaussian_p"].expression
    sigma**(-2)
    >>> tails["van_der_corput_1"].expression
    sqrt(2)*sigma/sqrt(pi)
    """

    constants: tuple[TailConstant, ...]

    def __getitem__(self, name: str) -> TailConstant:
        for constant in self.constants:
            if constant.name == name:
                return constant
        names = [constant.name for constant in self.constants]
        hint = suggestion(name, names) or f" (there are {', '.join(names)})"
        raise InputError(f"no tail constant is called '{name}'{hint}")

    def __iter__(self) -> Iterator[TailConstant]:
        return iter(self.constants)

    def __len__(self) -> int:
        return len(self.constants)

    def __repr__(self) -> str:
        return f"<Tails: {len(self)} constants, {self.constants[0].name} the first>"


def to_json(tails: Tails) -> list[dict[str, Any]]:
    """Return the constants as dicts of strings and None."""
    return [
        {
            "name": constant.name,
            "symbol": constant.symbol,
            "bounds": constant.bounds,
            "expression": None if constant.expression is None else str(constant.expression),
            "reason": constant.reason or None,
            # the number of steps has the name of the command line
            "arguments": ["count" if name == "n" else name for name in constant.arguments],
        }
        for constant in tails
    ]
