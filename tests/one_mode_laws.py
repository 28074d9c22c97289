"""Twenty laws of one mode, with what SciPy or NumPy says of their densities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

import symdp
from symdp.model.mechanism import Mechanism

_FILE = """
name = "law"
variable = "{variable}"
support = {support}
[noise]
density = "{density}"
sensitivity = {sensitivity}
normalize = true
"""


@dataclass(frozen=True)
class Law:
    """A density as a file has it, and up to a constant in doubles, with where its mass is."""

    formula: str
    values: Callable[[Any], Any]
    span: tuple[float, float]  # but for 1e-9 of the mass
    kinks: tuple[float, ...] = ()
    support: str = '["-oo", "oo"]'
    sensitivity: int = 1

    @property
    def is_whole(self) -> bool:
        """Whether it is a law on whole numbers."""
        return self.support.startswith('"')

    def mechanism(self) -> Mechanism:
        """The noise."""
        return symdp.Mechanism.from_toml(
            _FILE.format(
                variable="k" if self.is_whole else "x",
                support=self.support,
                density=self.formula,
                sensitivity=self.sensitivity,
            )
        )


def _smooth_laplace(x: Any) -> Any:
    """Normal plus Laplace noise, of scales 2 and 2."""
    near = np.exp(-x / 2) * special.erfc((1 - x / 2) / np.sqrt(2))
    return near + np.exp(x / 2) * special.erfc((1 + x / 2) / np.sqrt(2))


_SPLICE = "Piecewise((exp(-x**2/18), abs(x) <= 18/5), (exp(-18/25)*(18/(5*abs(x)))**(36/25), True))"
_HUBER = "Piecewise((exp(-x**2/18), abs(x) <= 4), (exp(-4*abs(x)/9 + 8/9), True))"
_SPLIT = "Piecewise((exp(-x**2/18), x < 0), (exp(-x**2/50), True))"
LAWS = {
    "normal": Law("exp(-x**2/32)", lambda x: np.exp(-(x**2) / 32), (-30, 30)),
    "Laplace": Law("exp(-abs(x)/2)", lambda x: np.exp(-abs(x) / 2), (-45, 45), (0,)),
    "logistic": Law("1/cosh(x/4)**2", lambda x: np.cosh(x / 4) ** -2.0, (-60, 60)),
    "sech": Law("1/cosh(x/2)", lambda x: 1 / np.cosh(x / 2), (-45, 45)),
    "Student, 3": Law("(1 + x**2/3)**(-2)", lambda x: (1 + x * x / 3) ** -2.0, (-3e3, 3e3)),
    "Student, 2": Law("(1 + x**2/8)**(-3/2)", lambda x: (1 + x * x / 8) ** -1.5, (-1e5, 1e5)),
    "Cauchy": Law("1/(1 + x**2/4)", lambda x: 1 / (1 + x * x / 4), (-1e9, 1e9)),
    "Gumbel": Law("exp(-x/2 - exp(-x/2))", lambda x: np.exp(-x / 2 - np.exp(-x / 2)), (-8, 45)),
    "normal and Laplace": Law(
        "exp(-x/2)*erfc((1 - x/2)/sqrt(2)) + exp(x/2)*erfc((1 + x/2)/sqrt(2))",
        _smooth_laplace,
        (-45, 45),
    ),
    "smoothed box": Law(
        "erf((x + 40)/(2*sqrt(2))) - erf((x - 40)/(2*sqrt(2)))",
        lambda x: special.erfc((abs(x) - 40) / 8**0.5) - special.erfc((abs(x) + 40) / 8**0.5),
        (-53, 53),
    ),
    "splice": Law(
        _SPLICE,
        lambda x: np.where(
            abs(x) <= 3.6,
            np.exp(-(x**2) / 18),
            np.exp(-0.72) * (3.6 / np.maximum(abs(x), 3.6)) ** 1.44,
        ),
        (-1e18, 1e18),
        (-3.6, 3.6),
    ),
    "Champernowne": Law("1/(cosh(x/3) + 2)", lambda x: 1 / (np.cosh(x / 3) + 2), (-70, 70)),
    "Huber": Law(
        _HUBER,
        lambda x: np.where(abs(x) <= 4, np.exp(-(x**2) / 18), np.exp(-4 * abs(x) / 9 + 8 / 9)),
        (-50, 50),
        (-4, 4),
    ),
    "split normal": Law(
        _SPLIT,
        lambda x: np.where(x < 0, np.exp(-(x**2) / 18), np.exp(-(x**2) / 50)),
        (-20, 33),
        (0,),
    ),
    "Lindley": Law(
        "(1 + abs(x))*exp(-abs(x))", lambda x: (1 + abs(x)) * np.exp(-abs(x)), (-28, 28), (0,)
    ),
    "two scales": Law(
        "exp(-x**2/2) + exp(-x**2/72)/3",
        lambda x: np.exp(-(x**2) / 2) + np.exp(-(x**2) / 72) / 3,
        (-40, 40),
    ),
    "root of a length": Law(
        "exp(-sqrt(abs(x)))", lambda x: np.exp(-np.sqrt(abs(x))), (-900, 900), (0,)
    ),
    "waves that never rise": Law(
        "(1 + sin(x)**2)*exp(-abs(x))",
        lambda x: (1 + np.sin(x) ** 2) * np.exp(-abs(x)),
        (-25, 25),
        (0,),
    ),
    "Laplace on integers": Law(
        "exp(-abs(k)/3)", lambda k: np.exp(-abs(k) / 3), (-80, 80), (), '"integers"', 2
    ),
    "zeta on integers": Law(
        "(3 + abs(k))**(-3)", lambda k: (3.0 + abs(k)) ** -3.0, (-3e4, 3e4), (), '"integers"', 2
    ),
}
