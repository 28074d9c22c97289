"""A tail constant: what it bounds, its formula or why there is none, and its proved value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp.errors import InputError, suggestion

if TYPE_CHECKING:
    from flint import arb

EPSILON = sp.Symbol("epsilon", real=True)
COUNT = sp.Symbol("n", integer=True, positive=True)
FREQUENCY = sp.Symbol("y", positive=True)


@dataclass(frozen=True)
class TailConstant:
    """One constant of the loss.

    Attributes
    ----------
    name
        How it is asked for, as in ``tails["sub_gaussian_p"]``.
    symbol
        Its symbol as LaTeX.
    bounds
        What it is or bounds, one line of text.
    expression
        A formula in the parameters, the tilt, ε and n; None where there is none.
    reason
        Why there is no formula; empty where there is one.
    arguments
        The names that `evaluate` needs beside parameters.
    """

    name: str
    symbol: str
    bounds: str
    expression: sp.Expr | None
    reason: str
    arguments: tuple[str, ...]
    evaluator: Callable[..., arb] = field(repr=False, compare=False)

    def evaluate(self, **values: Any) -> arb:
        """Return a ball around the value; of a bound, a number that is proved to be one.

        Parameters
        ----------
        **values
            `arguments`, and values for parameters that are still free; numbers are exact.

        Raises
        ------
        InputError
            For a missing or an unknown name, or a value outside its domain.
        AccuracyError
            Where the constant does not exist or could not be enclosed; the line says which.

        Examples
        --------
        >>> import symdp
        >>> from symdp.derive import derive
        >>> tails = derive(symdp.mechanisms.gaussian).tails
        >>> tails["third_moment"].evaluate(t=1, sigma=2).str(6, radius=False)
        '0.199471'
        """
        return self.evaluator(self, values)


@dataclass(frozen=True)
class Tails:
    """The tail constants of one derivation, by name.

    Examples
    --------
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
        known = [constant.name for constant in self.constants]
        hint = suggestion(name, known) or f" (there are {', '.join(known)})"
        raise InputError(f"no tail constant is called '{name}'{hint}")

    def __iter__(self) -> Iterator[TailConstant]:
        return iter(self.constants)

    def __len__(self) -> int:
        return len(self.constants)
