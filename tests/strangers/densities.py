"""Densities beside the built-ins: the formula as a user writes it, and by hand in NumPy.

`same` is the density up to a factor; where it bends or jumps inside its support stands in `kinks`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

OO = "oo"


@dataclass(frozen=True)
class Stranger:
    """Noise of one density, a sensitivity, and perhaps a rate of Poisson sampling.

    In place of a formula there may be a file, with values of its parameters, and a pair of laws,
    the second of which is `other`.
    """

    formula: str
    same: Callable[[Any], Any]
    support: tuple[Any, Any] | str = ("-oo", OO)
    sensitivity: str = "1"
    normalize: bool = True
    kinks: tuple[float, ...] = ()
    rate: str = ""
    other: Callable[[Any], Any] | None = None
    values: tuple[tuple[str, str], ...] = ()

    @property
    def toml(self) -> str:
        """Return the file that a user would write."""
        sampling = [f'[sampling]\nscheme = "poisson"\nrate = "{self.rate}"'] if self.rate else []
        if self.values:
            return "\n".join([self.formula, *sampling])
        whole = isinstance(self.support, str)
        support = f'"{self.support}"' if whole else str(list(self.support)).replace("'", '"')
        lines = [
            'name = "stranger"', f'variable = "{"k" if whole else "x"}"', f"support = {support}",
            "[noise]", f'density = "{self.formula}"', f'sensitivity = "{self.sensitivity}"',
            f"normalize = {str(self.normalize).lower()}", 'shift = "exactly"',
        ]  # fmt: skip
        return "\n".join([*lines, *sampling])


def normal(x: Array, centre: float = 0.0, width: float = 1.0) -> Array:
    """Return a normal density."""
    return np.exp(-0.5 * ((x - centre) / width) ** 2) / (width * np.sqrt(2 * np.pi))


def sech(x: Array) -> Array:
    """Return 1/cosh without overflow."""
    return 2 * np.exp(-abs(x)) / (1 + np.exp(-2 * abs(x)))


def gumbel(x: Array) -> Array:
    """Return exp(−x − e^{−x})."""
    return np.exp(-x - np.exp(np.minimum(-x, 700)))


HALF = (0, OO)
UNIT = (0, 1)

LINE: dict[str, Stranger] = {
    # One mode, smooth.
    "sech squared": Stranger("sech(x)**2/2", lambda x: sech(x) ** 2, normalize=False),
    "secant": Stranger("1/(2*cosh(pi*x/2))", lambda x: sech(np.pi * x / 2), normalize=False),
    "cosh": Stranger("exp(-cosh(x))", lambda x: np.exp(-np.cosh(np.clip(x, -700, 700)))),
    "root of cosh": Stranger("cosh(x)**(-1/3)", lambda x: sech(x) ** (1 / 3)),
    "sixth power": Stranger("exp(-x**6)", lambda x: np.exp(-(x**6)), sensitivity="1/4"),
    "normal times Laplace": Stranger(
        "exp(-x**2 - abs(x))", lambda x: np.exp(-(x**2) - abs(x)), kinks=(0,)
    ),
    "power 3/2": Stranger("exp(-abs(x)**(3/2))", lambda x: np.exp(-(abs(x) ** 1.5)), kinks=(0,)),
    "hyperbolic": Stranger(
        "exp(-sqrt(1 + x**2))/(2*besselk(1, 1))",
        lambda x: np.exp(-np.sqrt(1 + x * x)),
        normalize=False,
    ),
    "normal inverse Gaussian": Stranger(
        "E*besselk(1, sqrt(1 + x**2))/(pi*sqrt(1 + x**2))",
        lambda x: special.k1(np.sqrt(1 + x * x)) / np.sqrt(1 + x * x),
        normalize=False,
    ),
    "blurred uniform": Stranger(
        "(erf(x + 1) - erf(x - 1))/4",
        lambda x: special.erfc(abs(x) - 1) - special.erfc(abs(x) + 1),
        normalize=False,
    ),
    "Voigt-like": Stranger(
        "7/10*exp(-x**2/8)/sqrt(8*pi) + 3/10/(pi*(1 + x**2))",
        lambda x: 0.7 * normal(x, 0, 2) + 0.3 / (np.pi * (1 + x * x)),
        normalize=False,
    ),
    # Skewed.
    "Gumbel": Stranger("exp(-x - exp(-x))", gumbel, normalize=False, sensitivity="1/2"),
    "logistic of type I": Stranger(
        "3*exp(-x)/(1 + exp(-x))**4", lambda x: special.expit(-x) * special.expit(x) ** 3,
        normalize=False,
    ),
    "skew normal": Stranger(
        "exp(-x**2/2)*(1 + erf(2*x))/sqrt(2*pi)",
        lambda x: np.exp(-(x**2) / 2) * special.erfc(-2 * x),
        normalize=False,
    ),
    "normal plus exponential": Stranger(
        "exp(1/2 - x)*erfc((1 - x)/sqrt(2))/2",
        lambda x: np.exp(0.5 - np.maximum(x, -30)) * special.erfc((1 - x) / np.sqrt(2)),
        normalize=False,
    ),
    "skew Student": Stranger(
        "(1 + x/sqrt(3 + x**2))**2*(1 - x/sqrt(3 + x**2))**3",
        lambda x: _skew(x) ** 2 * _skew(-x) ** 3,
    ),
    "tilted sech": Stranger(
        "sech(x)**2*(1 + 7/10*tanh(x))/2",
        lambda x: sech(x) ** 2 * (1 + 0.7 * np.tanh(x)),
        normalize=False,
    ),
    "two slopes": Stranger(
        "Piecewise((exp(x), x < 0), (exp(-x/3), True))/4",
        lambda x: np.where(x < 0, np.exp(np.minimum(x, 0)), np.exp(-np.maximum(x, 0) / 3)),
        normalize=False, kinks=(0,),
    ),
    # Heavy.
    "two Cauchy scales": Stranger(
        "6/(pi*(1 + x**2)*(4 + x**2))",
        lambda x: 1 / (1 + x * x) / (4 + x * x),
        normalize=False,
    ),
    "fourth power": Stranger(
        "sqrt(2)/(pi*(1 + x**4))", lambda x: 1 / (1 + x**4), normalize=False
    ),
    "two-sided Pareto": Stranger(
        "1/(1 + abs(x))**3", lambda x: (1 + abs(x)) ** -3.0, normalize=False, kinks=(0,)
    ),
    "cube": Stranger("1/(1 + abs(x)**3)", lambda x: 1 / (1 + abs(x) ** 3), kinks=(0,)),
    "logarithm over fourth power": Stranger(
        "log(E + x**2)/(1 + x**2)**2", lambda x: np.log(np.e + x * x) / (1 + x * x) ** 2
    ),
    "slash": Stranger(
        "(1 - exp(-x**2/2))/(x**2*sqrt(2*pi))",
        lambda x: -np.expm1(-x * x / 2) / (x * x), normalize=False,
    ),
    "arctangent slopes": Stranger(
        "exp(-2*x*atan(x))*(1 + x**2)", lambda x: np.exp(-2 * x * np.arctan(x)) * (1 + x * x)
    ),
    # Cusped or singular.
    "square root": Stranger(
        "exp(-sqrt(abs(x)))/4", lambda x: np.exp(-np.sqrt(abs(x))), normalize=False, kinks=(0,)
    ),
    "variance gamma": Stranger(
        "besselk(0, abs(x))/pi", lambda x: special.k0(abs(x)), normalize=False, kinks=(0,)
    ),
    "smoother variance gamma": Stranger(
        "abs(x)*besselk(1, abs(x))/pi", lambda x: abs(x) * special.k1(abs(x)),
        normalize=False, kinks=(0,),
    ),
    "two Laplace scales": Stranger(
        "exp(-abs(x)) + exp(-abs(x)/4)/3",
        lambda x: np.exp(-abs(x)) + np.exp(-abs(x) / 4) / 3, kinks=(0,),
    ),
    "Huber": Stranger(
        "Piecewise((exp(-x**2/2), abs(x) < 3/2), (exp(9/8 - 3*abs(x)/2), True))",
        lambda x: np.where(abs(x) < 1.5, np.exp(-x * x / 2), np.exp(9 / 8 - 1.5 * abs(x))),
        kinks=(-1.5, 1.5),
    ),
    # Several modes, or zeros.
    "quartic wings": Stranger("exp(-x**2)*(1 + x**4)", lambda x: np.exp(-(x**2)) * (1 + x**4)),
    "hole of a Laplace": Stranger(
        "abs(x)*exp(-abs(x))/2", lambda x: abs(x) * np.exp(-abs(x)), normalize=False, kinks=(0,)
    ),
    "Maxwell on both sides": Stranger(
        "x**2*exp(-x**2/2)/sqrt(2*pi)", lambda x: x * x * np.exp(-x * x / 2), normalize=False
    ),
    "double well": Stranger("exp(-(x**2 - 1)**2)", lambda x: np.exp(-((x**2 - 1) ** 2))),
    "two bumps": Stranger(
        "exp(-(x - 2)**2/2) + exp(-(x + 2)**2/2)/2",
        lambda x: normal(x, 2) + normal(x, -2) / 2,
    ),
    "three widths": Stranger(
        "exp(-x**2/2) + exp(-(x - 1)**2/18)/3 + exp(-(x + 4)**2/2)/5",
        lambda x: normal(x) + normal(x, 1, 3) + normal(x, -4) / 5,
    ),
    "rational with two bumps": Stranger(
        "(1 + x**2)/(1 + x**6)", lambda x: (1 + x**2) / (1 + x**6)
    ),
    "ripple": Stranger(
        "exp(-x**2/2)*(1 + cos(3*x)/2)", lambda x: np.exp(-x * x / 2) * (1 + np.cos(3 * x) / 2)
    ),
    "Laplace with waves": Stranger(
        "exp(-abs(x))*(1 + sin(x)**2)",
        lambda x: np.exp(-abs(x)) * (1 + np.sin(x) ** 2), kinks=(0,),
    ),
    "two Gumbels": Stranger(
        "exp(-x - exp(-x))/2 + exp(x - 5 - exp(x - 5))/2",
        lambda x: gumbel(x) + gumbel(5 - x), normalize=False,
    ),
    "logistic and normal": Stranger(
        "exp(-x)/(1 + exp(-x))**2/2 + exp(-(x - 1)**2/2)/sqrt(2*pi)/2",
        lambda x: special.expit(x) * special.expit(-x) + normal(x, 1), normalize=False,
    ),
}  # fmt: skip


def _skew(x: Array) -> Array:
    """Return 1 + x/√(3 + x²), without cancellation for x < 0."""
    root = np.sqrt(3 + x * x)
    return np.where(x > 0, 1 + x / root, 3 / (root * (root - np.minimum(x, 0))))


CUT: dict[str, Stranger] = {
    # On a finite interval.
    "triangle": Stranger(
        "1 - abs(x)", lambda x: 1 - abs(x), (-1, 1), "1/20", normalize=False, kinks=(0,)
    ),
    "raised cosine": Stranger(
        "(1 + cos(pi*x))/2", lambda x: np.cos(np.pi * x / 2) ** 2, (-1, 1), "1/30",
        normalize=False,
    ),
    "von Mises": Stranger(
        "exp(2*cos(pi*x))/(2*besseli(0, 2))", lambda x: np.exp(2 * np.cos(np.pi * x)),
        (-1, 1), "1/100", normalize=False,
    ),
    "Kumaraswamy": Stranger(
        "6*x*(1 - x**2)**2", lambda x: x * (1 - x**2) ** 2, UNIT, "1/50", normalize=False
    ),
    "truncated normal": Stranger(
        "exp(-(x - 1)**2)", lambda x: np.exp(-((x - 1) ** 2)), UNIT, "1/1000"
    ),
    "Beta": Stranger(
        "x**(3/2)*(1 - x)**3", lambda x: x**1.5 * (1 - x) ** 3, UNIT, "1/40"
    ),
    "bump": Stranger(
        "exp(-1/(1 - x**2))",
        lambda x: np.exp(-1 / np.maximum((1 - x) * (1 + x), 1e-300)), (-1, 1), "1/20",
    ),
    "minus a logarithm": Stranger(
        "-log(x)", lambda x: -np.log(x), UNIT, "1/1000", normalize=False
    ),
    "wave on an interval": Stranger(
        "2 + sin(8*x)", lambda x: 2 + np.sin(8 * x), UNIT, "1/2000"
    ),
    # On a half-line.
    "Maxwell": Stranger(
        "sqrt(2/pi)*x**2*exp(-x**2/2)", lambda x: x * x * np.exp(-x * x / 2), HALF, "1/30",
        normalize=False,
    ),
    "Rice": Stranger(
        "x*exp(-(x**2 + 4)/2)*besseli(0, 2*x)",
        lambda x: x * np.exp(-((x - 2) ** 2) / 2) * special.ive(0, 2 * x), HALF, "1/50",
        normalize=False,
    ),
    "Weibull": Stranger(
        "3/2*sqrt(x)*exp(-x**(3/2))", lambda x: np.sqrt(x) * np.exp(-(x**1.5)), HALF, "1/50",
        normalize=False,
    ),
    "Lomax": Stranger(
        "3/(1 + x)**4", lambda x: (1 + x) ** -4.0, HALF, "1/5000", normalize=False
    ),
    "log-logistic": Stranger(
        "3*x**2/(1 + x**3)**2", lambda x: x**2 / (1 + x**3) ** 2, HALF, "1/40",
        normalize=False,
    ),
    "Fréchet": Stranger(
        "2*exp(-1/x**2)/x**3", lambda x: np.exp(-1 / np.maximum(x * x, 1e-3)) / x**3, HALF,
        "1/20", normalize=False,
    ),
    "inverse Gaussian": Stranger(
        "exp(-(x - 1)**2/(2*x))/sqrt(2*pi*x**3)",
        lambda x: np.exp(-((x - 1) ** 2) / (2 * np.maximum(x, 1e-4))) / x**1.5, HALF, "1/20",
        normalize=False,
    ),
    "lognormal": Stranger(
        "exp(-log(x)**2/2)/(x*sqrt(2*pi))", lambda x: np.exp(-np.log(x) ** 2 / 2) / x, HALF,
        "1/20", normalize=False,
    ),
    "Lévy": Stranger(
        "exp(-1/(2*x))/sqrt(2*pi*x**3)",
        lambda x: np.exp(-1 / (2 * np.maximum(x, 1e-4))) / x**1.5, HALF, "1/20",
        normalize=False,
    ),
    "gamma": Stranger(
        "x**(3/2)*exp(-x)/gamma(5/2)", lambda x: x**1.5 * np.exp(-x), HALF, "1/20",
        normalize=False,
    ),
    "Gompertz": Stranger(
        "exp(x + 1 - exp(x))", lambda x: np.exp(x - np.exp(np.minimum(x, 700))), HALF, "1/2000",
        normalize=False,
    ),
    "Planck": Stranger(
        "15/pi**4*x**3/(exp(x) - 1)",
        lambda x: x**3 * np.exp(-x) / -np.expm1(-np.maximum(x, 1e-300)), HALF, "1/10",
        normalize=False,
    ),
    "half normal with a slope": Stranger(
        "(1 + x)*exp(-x**2/2)", lambda x: (1 + x) * np.exp(-x * x / 2), HALF, "1/3000"
    ),
    "waves that stay above zero": Stranger(
        "exp(-x)*(1 + cos(3*x)/2)", lambda x: np.exp(-x) * (1 + np.cos(3 * x) / 2), HALF,
        "1/2000",
    ),
}  # fmt: skip

Z, N = "integers", "naturals"
WHOLE: dict[str, Stranger] = {
    "Laplace on halves": Stranger("exp(-abs(k)/2)", lambda k: np.exp(-abs(k) / 2), Z, "2"),
    "logistic on integers": Stranger(
        "exp(-abs(k)/3)/(1 + exp(-abs(k)/3))**2",
        lambda k: np.exp(-abs(k) / 3) / (1 + np.exp(-abs(k) / 3)) ** 2, Z,
    ),
    "rounded normal": Stranger(
        "erf((k + 1/2)/(3*sqrt(2)))/2 - erf((k - 1/2)/(3*sqrt(2)))/2",
        lambda k: special.ndtr((0.5 - abs(k)) / 3) - special.ndtr((-0.5 - abs(k)) / 3), Z,
        normalize=False,
    ),
    "rounded logistic": Stranger(
        "1/(1 + exp(-(k + 1/2)/4)) - 1/(1 + exp(-(k - 1/2)/4))",
        lambda k: special.expit((0.5 - abs(k)) / 4) - special.expit((-0.5 - abs(k)) / 4), Z,
        normalize=False,
    ),
    "power 3/2 on integers": Stranger(
        "exp(-abs(k)**(3/2)/10)", lambda k: np.exp(-(abs(k) ** 1.5) / 10), Z
    ),
    "rational on integers": Stranger(
        "1/(1 + k**2)**2", lambda k: (1.0 + k * k) ** -2.0, Z
    ),
    "two bumps on integers": Stranger(
        "exp(-(k - 3)**2/8) + exp(-(k + 4)**2/18)",
        lambda k: np.exp(-((k - 3) ** 2) / 8) + np.exp(-((k + 4) ** 2) / 18), Z,
    ),
    "wide normal": Stranger(
        "exp(-k**2/2000000)", lambda k: np.exp(-k * k / 2e6), Z, "250"
    ),
    "wide secant": Stranger("1/cosh(k/200)", lambda k: sech(k / 200), Z, "50"),
    "Zipf": Stranger("1/(1 + k)**4", lambda k: (1.0 + k) ** -4.0, N),
    "Conway–Maxwell–Poisson": Stranger(
        "100**k/factorial(k)**2",
        lambda k: np.exp(k * np.log(100) - 2 * special.gammaln(k + 1)), N,
    ),
    "Poisson": Stranger(
        "40**k*exp(-40)/factorial(k)",
        lambda k: np.exp(k * np.log(40) - special.gammaln(k + 1) - 40), N, normalize=False,
    ),
    "negative binomial": Stranger(
        "binomial(k + 19, 19)/2**(k + 20)",
        lambda k: np.exp(
            special.gammaln(k + 20) - special.gammaln(k + 1) - special.gammaln(20)
            - (k + 20) * np.log(2)
        ), N, normalize=False,
    ),
    "Skellam": Stranger(
        "exp(-30)*besseli(abs(k), 30)", lambda k: special.ive(abs(k), 30.0), Z, normalize=False
    ),
}  # fmt: skip

SAMPLED: dict[str, Stranger] = {
    "sampled quartic wings": Stranger(
        "exp(-x**2/8)*(1 + x**4/64)", lambda x: np.exp(-(x**2) / 8) * (1 + x**4 / 64), rate="1/50"
    ),
    "sampled sech squared": Stranger(
        "sech(x/2)**2/4", lambda x: sech(x / 2) ** 2, normalize=False, rate="1/10"
    ),
    "sampled Gumbel": Stranger(
        "exp(-x - exp(-x))", gumbel, normalize=False, sensitivity="1/2", rate="1/20"
    ),
    "sampled logistic on integers": Stranger(
        "exp(-abs(k)/3)/(1 + exp(-abs(k)/3))**2",
        lambda k: np.exp(-abs(k) / 3) / (1 + np.exp(-abs(k) / 3)) ** 2, Z, rate="1/5",
    ),
    "sampled Student with five": Stranger(
        "1/(5 + x**2)**3", lambda x: (5 + x * x) ** -3.0, rate="1/4"
    ),
}  # fmt: skip

NEW: dict[str, Stranger] = {
    # Of heavy, one-sided, skewed and waving kinds, with what they are divided by left to symdp.
    "inverse gamma": Stranger("x**(-4)*exp(-4/x)", lambda x: _tail(x, 4, 1, 4), HALF),
    "Fréchet of power two": Stranger("x**(-3)*exp(-16/x**2)", lambda x: _tail(x, 3, 2, 16), HALF),
    "arctangent beside cosh": Stranger(
        "(pi/2 + atan(2*x/3))/cosh(x/3)", lambda x: np.arctan2(1.0, -2 * x / 3) * sech(x / 3)
    ),
    "flat top": Stranger("1/(1 + (x/6)**8)", lambda x: 1 / (1 + (x / 6) ** 8)),
    "tanh-tilted normal": Stranger(
        "exp(-x**2/18)*(2 + tanh(2*x - 1))",
        lambda x: np.exp(-(x**2) / 18) * (2 + np.tanh(2 * x - 1)),
    ),
    "rippled normal": Stranger(
        "exp(-x**2/32)*(4 + cos(3*x))", lambda x: np.exp(-(x**2) / 32) * (4 + np.cos(3 * x))
    ),
    "a shoulder": Stranger(
        "exp(-abs(x)/3) + exp(-(x - 7)**2/8)/4",
        lambda x: np.exp(-abs(x) / 3) + np.exp(-((x - 7) ** 2) / 8) / 4, kinks=(0,),
    ),
    "hyperbolic with tanh": Stranger(
        "exp(-sqrt(1 + x**2/9))*(2 + tanh(x/3))",
        lambda x: np.exp(-np.sqrt(1 + x * x / 9)) * (2 + np.tanh(x / 3)),
    ),
    "three humps": Stranger(
        "exp(-x**2/8)*(1 - x**2/6)**2", lambda x: np.exp(-(x**2) / 8) * (1 - x * x / 6) ** 2,
        kinks=(-math.sqrt(6), math.sqrt(6)),  # where it is zero, and a loss infinite
    ),
    "stretched exponential": Stranger(
        "exp(-abs(x)**(3/4))*(1 + abs(x))",
        lambda x: np.exp(-(abs(x) ** 0.75)) * (1 + abs(x)), kinks=(0,),
    ),
    "sampled inverse gamma": Stranger(
        "x**(-4)*exp(-4/x)", lambda x: _tail(x, 4, 1, 4), HALF, rate="1/10"
    ),
    "dip on integers": Stranger(
        "exp(-abs(k)/5)*(1 - exp(-(abs(k) + 1)/2))",
        lambda k: np.exp(-abs(k) / 5) * -np.expm1(-(abs(k) + 1) / 2), Z,
    ),
}  # fmt: skip


def _tail(x: Array, power: float, inner: float, scale: float) -> Array:
    """Return x^{−power} exp(−scale/x^inner) for x ≥ 0."""
    with np.errstate(all="ignore"):
        return np.exp(np.nan_to_num(-power * np.log(x) - scale * x**-inner, nan=-np.inf))


FROZEN = LINE | CUT | WHOLE | SAMPLED  # those with frozen rows
FOUND: dict[str, Stranger] = {  # by a random search: they were refused
    "discrete Gumbel": Stranger(
        "exp(-k/3 - exp(-k/3))", lambda k: np.exp(-k / 3 - np.exp(np.minimum(-k / 3, 700))),
        "integers",
    ),
    "Gumbel beside a square of logs": Stranger(
        "9/5*exp(-(x - 5)/3 - exp(-(x - 5)/3)) + exp(-log(1 + (x - 3)**2/16)**2)",
        lambda x: 1.8 * np.exp(-(x - 5) / 3 - np.exp(np.minimum(-(x - 5) / 3, 700)))
        + np.exp(-np.log1p((x - 3) ** 2 / 16) ** 2),
        rate="1/10",
    ),
}  # fmt: skip
STRANGERS = FROZEN | NEW | FOUND
