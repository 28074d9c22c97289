"""Sixty densities that nobody tuned for, a third of them files as users write them.

Twelve stand in `densities.NEW`. Of a file the parameters have values, and the formula by hand has
the same ones; `other` is the second law of a pair.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from strangers.densities import HALF, NEW, UNIT, N, Stranger, Z, normal, sech

FORMULAS: dict[str, Stranger] = {
    # Several modes, gaps, waves.
    "two far normals": Stranger(
        "exp(-(x - 5)**2/2) + exp(-(x + 5)**2/2)", lambda x: normal(x, 5) + normal(x, -5)
    ),
    "four teeth": Stranger(
        "exp(-2*(x - 3)**2) + exp(-2*(x - 1)**2) + exp(-2*(x + 1)**2) + exp(-2*(x + 3)**2)/2",
        lambda x: sum(normal(x, c, 0.5) for c in (3, 1, -1)) + normal(x, -3, 0.5) / 2,
        sensitivity="1/2",
    ),
    "cosine that reaches zero": Stranger(
        "exp(-abs(x)/2)*cos(x)**2", lambda x: np.exp(-abs(x) / 2) * np.cos(x) ** 2, kinks=(0,)
    ),
    "logistic with a ripple": Stranger(
        "(2 + cos(5*x))*exp(-x)/(1 + exp(-x))**2",
        lambda x: (2 + np.cos(5 * x)) * special.expit(x) * special.expit(-x),
    ),
    "chirp": Stranger(
        "exp(-x**2/8)*(1 + sin(x**2)/2)", lambda x: np.exp(-x * x / 8) * (1 + np.sin(x * x) / 2)
    ),
    "hole of a power": Stranger("x**4/(1 + x**8)", lambda x: x**4 / (1 + x**8)),
    "gap": Stranger(
        "Piecewise((0, abs(x) < 1), (exp(-abs(x)), True))",
        lambda x: np.where(abs(x) < 1, 0.0, np.exp(-abs(x))), kinks=(-1, 0, 1),
        sensitivity="1/100",
    ),
    "steps with tails": Stranger(
        "Piecewise((1, abs(x) < 1), (1/4, abs(x) < 3), (exp(-abs(x)), True))",
        lambda x: np.where(abs(x) < 1, 1, np.where(abs(x) < 3, 0.25, np.exp(-abs(x)))),
        kinks=(-3, -1, 0, 1, 3),
    ),
    "uniform with Laplace tails": Stranger(
        "Piecewise((1, abs(x) < 2), (exp(2 - abs(x)), True))",
        lambda x: np.exp(np.minimum(2 - abs(x), 0)), kinks=(-2, 2),
    ),
    "normal on a pedestal": Stranger(
        "exp(-x**2/2) + Piecewise((1/4, abs(x) < 1), (0, True))",
        lambda x: np.exp(-x * x / 2) + np.where(abs(x) < 1, 0.25, 0), kinks=(-1, 1),
    ),
    # Smooth, of one mode.
    "cosh and a square": Stranger(
        "1/(1 + cosh(x) + x**2)", lambda x: 1 / (1 + np.cosh(np.clip(x, -700, 700)) + x * x)
    ),
    "normal over Cauchy": Stranger(
        "exp(-x**2/4)/(1 + x**2)", lambda x: np.exp(-x * x / 4) / (1 + x * x)
    ),
    "logarithm of a bell": Stranger(
        "log(1 + exp(-x**2/3))", lambda x: np.log1p(np.exp(-x * x / 3))
    ),
    "log-gamma": Stranger(
        "exp(2*x - exp(x))", lambda x: np.exp(2 * x - np.exp(np.minimum(x, 700)))
    ),
    "error function of a distance": Stranger(
        "erfc(abs(x)/2)", lambda x: special.erfc(abs(x) / 2), kinks=(0,)
    ),
    "Laplace and Cauchy": Stranger(
        "exp(-abs(x)) + 1/(10*(1 + x**2))", lambda x: np.exp(-abs(x)) + 0.1 / (1 + x * x),
        kinks=(0,),
    ),
    # Heavy.
    "Pearson's fourth": Stranger(
        "exp(atan(x))/(1 + x**2)**2", lambda x: np.exp(np.arctan(x)) / (1 + x * x) ** 2
    ),
    "Student of three halves": Stranger(
        "(1 + x**2/3)**(-5/4)", lambda x: (1 + x * x / 3) ** -1.25
    ),
    "logarithm under a square": Stranger(
        "1/((1 + x**2)*log(3 + x**2))", lambda x: 1 / ((1 + x * x) * np.log(3 + x * x))
    ),
    # On an interval, or on one side.
    "semicircle": Stranger(
        "sqrt(4 - x**2)", lambda x: np.sqrt(np.maximum((2 - x) * (2 + x), 0)), (-2, 2), "1/20"
    ),
    "arcsine": Stranger(
        "1/sqrt(x*(1 - x))", lambda x: 1 / np.sqrt(x * (1 - x)), UNIT, "1/100"
    ),
    "half normal with a tail": Stranger(
        "exp(-x**2 - x)", lambda x: np.exp(-x * x - x), HALF, "1/100"
    ),
    "Rayleigh": Stranger("x*exp(-x**2/2)", lambda x: x * np.exp(-x * x / 2), HALF, "1/50"),
    "Dagum": Stranger("x/(1 + x**2)**2", lambda x: x / (1 + x * x) ** 2, HALF, "1/50"),
    # Whole numbers.
    "square hole on integers": Stranger(
        "(1 + k**2)*exp(-abs(k)/3)", lambda k: (1 + k * k) * np.exp(-abs(k) / 3), Z
    ),
    "even ones favoured": Stranger(
        "exp(-abs(k)/4)*(3 + cos(pi*k))",
        lambda k: np.exp(-abs(k) / 4) * (3 + np.cos(np.pi * k)), Z,
    ),
    "sech squared on integers": Stranger("1/cosh(k/4)**2", lambda k: sech(k / 4) ** 2, Z),
    "two geometric scales": Stranger(
        "exp(-k/3) + exp(-k/20)/10", lambda k: np.exp(-k / 3) + np.exp(-k / 20) / 10, N
    ),
}  # fmt: skip


def _file(lines: str, support: str = '["-oo", "oo"]', **domains: str) -> str:
    """Return a file; the lines are those of its last table."""
    own = "".join(f'{name} = "{domain}"\n' for name, domain in domains.items())
    variable = "k" if support in ('"integers"', '"naturals"') else "x"
    return (
        f'name = "written"\nvariable = "{variable}"\nsupport = {support}\n'
        f"[parameters]\n{own}{lines}"
    )


def _noise(density: str, support: str = '["-oo", "oo"]', more: str = "", **domains: str) -> str:
    return _file(f'[noise]\ndensity = "{density}"\n{more}', support, **domains)


_POSITIVE, _NORMALIZE = "positive", "normalize = true\n"
INTEGERS, WIDE = '"integers"', ("-oo", "oo")

FILES: dict[str, Stranger] = {
    "Moyal": Stranger(
        _noise("exp(-(x/s + exp(-x/s))/2)/(s*sqrt(2*pi))", s=_POSITIVE),
        lambda x: np.exp(-(x / 2 + np.exp(np.minimum(-x / 2, 700))) / 2), values=(("s", "2"),),
    ),
    "asymmetric Laplace": Stranger(
        _noise(
            "Piecewise((exp(x/(s*a)), x < 0), (exp(-a*x/s), True))*a/(s*(1 + a**2))",
            s=_POSITIVE, a=_POSITIVE,
        ),
        lambda x: np.where(x < 0, np.exp(np.minimum(x, 0) / 3), np.exp(-0.75 * np.maximum(x, 0))),
        kinks=(0,), values=(("s", "2"), ("a", "3/2")),
    ),
    "generalised logistic": Stranger(
        _noise("a*exp(-x/s)/(s*(1 + exp(-x/s))**(a + 1))", s=_POSITIVE, a=_POSITIVE),
        lambda x: special.expit(-x / 3) * special.expit(x / 3) ** 2.5,
        values=(("s", "3"), ("a", "5/2")),
    ),
    "Student with a scale": Stranger(
        _noise(
            "(1 + x**2/(n*s**2))**(-(n + 1)/2)", more=_NORMALIZE, s=_POSITIVE, n=_POSITIVE
        ),
        lambda x: (1 + x * x / 12) ** -2.0, values=(("s", "2"), ("n", "3")),
    ),
    "Subbotin": Stranger(
        _noise("exp(-abs(x/s)**p)", more=_NORMALIZE, s=_POSITIVE, p=_POSITIVE),
        lambda x: np.exp(-(abs(x / 2) ** 1.25)), kinks=(0,),
        values=(("s", "2"), ("p", "5/4")),
    ),
    "contaminated normal": Stranger(
        _noise(
            "((1 - w)*exp(-x**2/(2*s**2)) + w/10*exp(-x**2/(200*s**2)))/(s*sqrt(2*pi))",
            s=_POSITIVE, w="open probability",
        ),
        lambda x: 0.95 * normal(x, 0, 2) + 0.05 * normal(x, 0, 20),
        values=(("s", "2"), ("w", "1/20")),
    ),
    "hyperbolic secant": Stranger(
        _noise("1/(pi*s*cosh(x/s))", s=_POSITIVE), lambda x: sech(x / 2), values=(("s", "2"),),
    ),
    "uniform of a width": Stranger(
        _noise("1/(2*w)", '["-w", "w"]', w=_POSITIVE),
        np.ones_like, (-2000, 2000), values=(("w", "2000"),),
    ),
    "triangle of a width": Stranger(
        _noise("(w - abs(x))/w**2", '["-w", "w"]', w=_POSITIVE),
        lambda x: 60 - abs(x), (-60, 60), kinks=(0,), values=(("w", "60"),),
    ),
    "triangle on integers": Stranger(
        _noise("Max(0, w - abs(k))/w**2", INTEGERS, w="positive integer"),
        lambda k: np.maximum(60.0 - abs(k), 0), Z, values=(("w", "60"),),
    ),
    "rounded Laplace": Stranger(
        _noise(
            "exp(-abs(k)/b)*(1 - exp(-1/b))/(1 + exp(-1/b))", INTEGERS, "sensitivity = 2\n",
            b=_POSITIVE,
        ),
        lambda k: np.exp(-abs(k) / 5), Z, "2", values=(("b", "5"),),
    ),
    "discrete normal that ends": Stranger(
        _noise(
            "Piecewise((exp(-k**2/(2*s**2)), abs(k) <= m), (0, True))", INTEGERS, _NORMALIZE,
            s=_POSITIVE, m="positive integer",
        ),
        lambda k: np.where(abs(k) <= 30, np.exp(-k * k / 128), 0), Z,
        values=(("s", "8"), ("m", "30")),
    ),
    "hole of a scale": Stranger(  # two modes; the file does not say "exactly"
        _noise("abs(x)*exp(-abs(x)/s)/(2*s**2)", s=_POSITIVE),
        lambda x: abs(x) * np.exp(-abs(x) / 4), kinks=(0,), values=(("s", "4"),),
    ),
    "two humps of a width": Stranger(
        _noise(
            "(exp(-(x - c)**2/(2*s**2)) + exp(-(x + c)**2/(2*s**2)))/(2*s*sqrt(2*pi))",
            s=_POSITIVE, c=_POSITIVE,
        ),
        lambda x: normal(x, 4, 2) + normal(x, -4, 2), values=(("s", "2"), ("c", "4")),
    ),
    "waves of a scale": Stranger(
        _noise("exp(-abs(x)/s)*(2 + cos(x))", more=_NORMALIZE, s=_POSITIVE),
        lambda x: np.exp(-abs(x) / 3) * (2 + np.cos(x)), kinks=(0,), values=(("s", "3"),),
    ),
    # Pairs of laws.
    "two variances": Stranger(
        _file(
            '[pair]\nP = "exp(-(x - 1)**2/(2*s**2))/(s*sqrt(2*pi))"\n'
            'Q = "exp(-x**2/(2*t**2))/(t*sqrt(2*pi))"\n', s=_POSITIVE, t=_POSITIVE,
        ),
        lambda x: normal(x, 1, 4), other=lambda x: normal(x, 0, 5),
        values=(("s", "4"), ("t", "5")),
    ),
    "logistic against sech": Stranger(
        _file(
            '[pair]\nP = "exp(-x/s)/(1 + exp(-x/s))**2"\nQ = "1/cosh(x/s)"\nnormalize = true\n',
            s=_POSITIVE,
        ),
        lambda x: special.expit(x / 2) * special.expit(-x / 2) / 2,
        other=lambda x: sech(x / 2) / (2 * np.pi), values=(("s", "2"),),
    ),
    "a slope on an interval": Stranger(
        _file('[pair]\nP = "2*(1 + a*x)/(2 + a)"\nQ = "1"\n', "[0, 1]", a=_POSITIVE),
        lambda x: 1 + x, UNIT, other=np.ones_like, values=(("a", "1"),),
    ),
    "two Poisson laws": Stranger(
        _file(
            '[pair]\nP = "exp(-c)*c**k/factorial(k)"\nQ = "exp(-a)*a**k/factorial(k)"\n',
            '"naturals"', a=_POSITIVE, c=_POSITIVE,
        ),
        lambda k: np.exp(k * np.log(50) - special.gammaln(k + 1) - 50), N,
        other=lambda k: np.exp(k * np.log(48) - special.gammaln(k + 1) - 48),
        values=(("a", "48"), ("c", "50")),
    ),
    "what is clamped": Stranger(  # the atoms as cells beside the interval, of length 1
        _file(
            '[pair]\nP = "exp(-(x - 1/2)**2/(2*s**2))/(s*sqrt(2*pi))"\n'
            'Q = "exp(-(x + 1/2)**2/(2*s**2))/(s*sqrt(2*pi))"\n[pair.atoms]\n'
            '"-B" = ["(1 - erf((B + 1/2)/(s*sqrt(2))))/2", "(1 - erf((B - 1/2)/(s*sqrt(2))))/2"]\n'
            '"B" = ["(1 - erf((B - 1/2)/(s*sqrt(2))))/2", "(1 - erf((B + 1/2)/(s*sqrt(2))))/2"]\n',
            '["-B", "B"]', s=_POSITIVE, B=_POSITIVE,
        ),
        lambda x: _clamped(x, 0.5), (-3, 3), other=lambda x: _clamped(x, -0.5), kinks=(-2, 2),
        values=(("s", "2"), ("B", "2")),
    ),
}  # fmt: skip


def _clamped(x: np.ndarray, mean: float) -> np.ndarray:
    ends = special.ndtr((-2 - mean) / 2), special.ndtr((mean - 2) / 2)
    return np.where(x < -2, ends[0], np.where(x > 2, ends[1], normal(x, mean, 2)))


UNSEEN = NEW | FORMULAS | FILES
