"""Densities, common and rare, with what their derivation must come to.

Each entry is a mechanism as a user would write it.  "closed" says that the CGF has a form that
must be found in that direction; "numeric" that none is known, so that the derivation must say so
within its time limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from symdp.model.mechanism import Mechanism, declare
from symdp.model.reading.parser import parse
from symdp.model.sampling import variable_symbol

LINE = ("-oo", "oo")
RAY = ("0", "oo")
UNIT = ("0", "1")


@dataclass(frozen=True)
class Entry:
    """One mechanism by its formulas; `q` left out means additive noise of density `p`."""

    p: str
    q: str = ""
    parameters: str = ""
    support: tuple[str, str] | str = LINE
    sensitivity: str = "1"
    poisson: str = ""
    remove: str = "closed"
    add: str = ""

    def form(self, direction: str) -> str:
        """What the CGF in that direction must be: "closed" or "numeric"."""
        return self.add or self.remove if direction == "add" else self.remove

    def mechanism(self, name: str = "entry") -> Mechanism:
        """Build the mechanism."""
        words = dict(_domain(word) for word in self.parameters.split())
        symbols = {name: declare(name, word).symbol for name, word in words.items()}
        kind = self.support if isinstance(self.support, str) else "interval"
        x = variable_symbol("k" if kind in {"integers", "naturals"} else "x", kind)
        support: object = self.support
        if not isinstance(support, str):
            support = tuple(parse(end, symbols, infinite=True) for end in self.support)
        elif self.support.startswith("points"):
            count = int(self.support.split()[1])
            support = {"points": list(range(count))}
        elif self.q == "" and kind == "naturals":
            support = kind
        known = {**symbols, x.name: x}
        shared = {"parameters": words, "support": support, "name": name}
        if isinstance(support, Mapping):
            laws = [[parse(mass, known) for mass in law.split(";")] for law in (self.p, self.q)]
            made = Mechanism.from_pair(*laws, x, **shared)
        elif self.q:
            made = Mechanism.from_pair(parse(self.p, known), parse(self.q, known), x, **shared)
        else:
            size = parse(self.sensitivity, symbols)
            made = Mechanism.additive(parse(self.p, known), x, size, **shared)
        return made.subsample("poisson", self.poisson) if self.poisson else made


def _domain(word: str) -> tuple[str, str]:
    name, _, domain = word.partition(":")
    return name, domain.replace("_", " ") or "positive"


LAPLACE = "exp(-abs(x)/b)/(2*b)"
GAUSSIAN = "exp(-x**2/(2*sigma**2))/(sigma*sqrt(2*pi))"
LOGISTIC = "exp(-x/s)/(s*(1 + exp(-x/s))**2)"

# The mechanisms of the field, parameters left free wherever the derivation can keep them free.
KNOWN: dict[str, Entry] = {
    "gaussian": Entry(GAUSSIAN, parameters="sigma D", sensitivity="D"),
    "gaussian, two variances": Entry(
        "exp(-(x - m)**2/(2*a**2))/(a*sqrt(2*pi))",
        "exp(-x**2/(2*c**2))/(c*sqrt(2*pi))",
        parameters="a c m:real",
    ),
    "laplace": Entry(LAPLACE, parameters="b D", sensitivity="D"),
    "laplace, poisson at numbers": Entry("exp(-abs(x))/2", poisson="1/10", remove="numeric"),
    "laplace, poisson": Entry(LAPLACE, parameters="b", poisson="q", remove="numeric"),
    "asymmetric laplace": Entry(
        "Piecewise((exp(x/a), x < 0), (exp(-x/c), True))/(a + c)", parameters="a c"
    ),
    "logistic": Entry(LOGISTIC, parameters="s D", sensitivity="D"),
    "gumbel": Entry("exp(-x/b - exp(-x/b))/b", parameters="b D", sensitivity="D"),
    "exponential noise": Entry("exp(-x/b)/b", parameters="b D", sensitivity="D", support=RAY),
    "gamma noise": Entry("x**2*exp(-x)/2", support=RAY),
    "gamma scales": Entry(
        "x**(k - 1)*exp(-x/a)/(gamma(k)*a**k)",
        "x**(k - 1)*exp(-x/c)/(gamma(k)*c**k)",
        parameters="k a c",
        support=RAY,
    ),
    "gamma shapes": Entry(
        "x**(a - 1)*exp(-x)/gamma(a)",
        "x**(c - 1)*exp(-x)/gamma(c)",
        parameters="a c",
        support=RAY,
    ),
    "uniform noise": Entry("1/(1 + w)", support=("0", "1 + w"), parameters="w"),
    "weibull scales": Entry(
        "k/a*(x/a)**(k - 1)*exp(-(x/a)**k)",
        "k/c*(x/c)**(k - 1)*exp(-(x/c)**k)",
        parameters="k a c",
        support=RAY,
    ),
    "weibull noise": Entry("2*x*exp(-x**2)", support=RAY, remove="numeric"),
    "generalised gaussian scales": Entry(
        "p*exp(-(abs(x)/a)**p)/(2*a*gamma(1/p))",
        "p*exp(-(abs(x)/c)**p)/(2*c*gamma(1/p))",
        parameters="p a c",
    ),
    "generalised gaussian noise": Entry("exp(-x**4)/(2*gamma(5/4))", remove="numeric"),
    "discrete laplace": Entry("exp(-abs(k)/b)*tanh(1/(2*b))", parameters="b", support="integers"),
    "discrete laplace, sensitivity 3": Entry(
        "exp(-abs(k)/b)*tanh(1/(2*b))", parameters="b", support="integers", sensitivity="3"
    ),
    "geometric noise": Entry("(1 - r)*r**k", parameters="r:open_probability", support="naturals"),
    "geometric pair": Entry(
        "(1 - r)*r**k",
        "(1 - s)*s**k",
        parameters="r:open_probability s:open_probability",
        support="naturals",
    ),
    "randomised response of 4": Entry(
        "exp(e)/(3 + exp(e)); 1/(3 + exp(e)); 1/(3 + exp(e)); 1/(3 + exp(e))",
        "1/(3 + exp(e)); exp(e)/(3 + exp(e)); 1/(3 + exp(e)); 1/(3 + exp(e))",
        parameters="e",
        support="points 4",
    ),
    "poisson counts": Entry(
        "exp(-a)*a**k/factorial(k)",
        "exp(-c)*c**k/factorial(k)",
        parameters="a c",
        support="naturals",
    ),
    "staircase": Entry(
        "(1 - exp(-1))/(2*(1/2 + exp(-1)/2))*Piecewise((1, abs(x) < 1/2),"
        " (exp(-1), abs(x) < 3/2), (exp(-2), abs(x) < 5/2), (exp(-3), abs(x) < 7/2), (0, True))"
        "/(1 - exp(-4))",
    ),
    "staircase, cells": Entry(
        "exp(e)/(1 + 2*exp(e)); exp(e)/(1 + 2*exp(e)); 1/(1 + 2*exp(e))",
        "1/(1 + 2*exp(e)); exp(e)/(1 + 2*exp(e)); exp(e)/(1 + 2*exp(e))",
        parameters="e",
        support="points 3",
    ),
    "truncated laplace": Entry(
        "exp(-abs(x)/b)/(2*b*(1 - exp(-4/b)))", parameters="b", support=("-4", "4")
    ),
    "gaussian, poisson": Entry(GAUSSIAN, parameters="sigma", poisson="q", remove="numeric"),
    "logistic, poisson": Entry(LOGISTIC, parameters="s", poisson="q", remove="numeric"),
    "student": Entry(
        "gamma((nu + 1)/2)/(sqrt(pi*nu)*gamma(nu/2))*(1 + x**2/nu)**(-(nu + 1)/2)",
        parameters="nu",
    ),
    "cauchy": Entry("1/(pi*(1 + x**2))"),
    "hyperbolic secant": Entry("sech(pi*x/2)/2", remove="closed"),
    "discrete gaussian": Entry(
        "exp(-k**2/8)/5.013256549262000", support="integers", remove="numeric"
    ),
    "skellam": Entry("exp(-2)*besseli(abs(k), 2)", support="integers", remove="numeric"),
    "mixture": Entry(
        "exp(-x**2/2)/(2*sqrt(2*pi)) + exp(-(x - 2)**2/2)/(2*sqrt(2*pi))", remove="numeric"
    ),
}

# Densities that nobody thought of when the table was written: noise, scales, shapes and shifts.
UNSEEN: dict[str, Entry] = {
    "levy scales": Entry(
        "sqrt(a/(2*pi))*exp(-a/(2*x))*x**(-3/2)",
        "sqrt(c/(2*pi))*exp(-c/(2*x))*x**(-3/2)",
        parameters="a c",
        support=RAY,
    ),
    "inverse gaussian means": Entry(
        "sqrt(1/(2*pi*x**3))*exp(-(x - a)**2/(2*a**2*x))",
        "sqrt(1/(2*pi*x**3))*exp(-(x - c)**2/(2*c**2*x))",
        parameters="a c",
        support=RAY,
    ),
    "rayleigh scales": Entry(
        "x/a**2*exp(-x**2/(2*a**2))", "x/c**2*exp(-x**2/(2*c**2))", parameters="a c", support=RAY
    ),
    "half-normal scales": Entry(
        "sqrt(2/pi)/a*exp(-x**2/(2*a**2))",
        "sqrt(2/pi)/c*exp(-x**2/(2*c**2))",
        parameters="a c",
        support=RAY,
    ),
    "half-normal noise": Entry("sqrt(2/pi)*exp(-x**2/2)", support=RAY),
    "maxwell scales": Entry(
        "sqrt(2/pi)*x**2/a**3*exp(-x**2/(2*a**2))",
        "sqrt(2/pi)*x**2/c**3*exp(-x**2/(2*c**2))",
        parameters="a c",
        support=RAY,
    ),
    "log-normal": Entry(
        "exp(-(log(x) - m)**2/(2*s**2))/(x*s*sqrt(2*pi))",
        "exp(-log(x)**2/(2*s**2))/(x*s*sqrt(2*pi))",
        parameters="m:real s",
        support=RAY,
    ),
    "pareto shapes": Entry("a*x**(-a - 1)", "c*x**(-c - 1)", parameters="a c", support=("1", "oo")),
    "lomax shapes": Entry(
        "a*(1 + x)**(-a - 1)", "c*(1 + x)**(-c - 1)", parameters="a c", support=RAY
    ),
    "beta shapes": Entry(
        "x**(a - 1)*(1 - x)**(d - 1)/beta(a, d)",
        "x**(c - 1)*(1 - x)**(d - 1)/beta(c, d)",
        parameters="a c d",
        support=UNIT,
    ),
    "kumaraswamy": Entry(
        "a*b*x**(a - 1)*(1 - x**a)**(b - 1)",
        "a*c*x**(a - 1)*(1 - x**a)**(c - 1)",
        parameters="a b c",
        support=UNIT,
    ),
    "arcsine and uniform": Entry("1 + 0*x", "1/(pi*sqrt(x*(1 - x)))", support=UNIT),
    "triangles": Entry("2*x", "2*(1 - x)", support=UNIT),
    "chi-square": Entry(
        "x**(a/2 - 1)*exp(-x/2)/(2**(a/2)*gamma(a/2))",
        "x**(c/2 - 1)*exp(-x/2)/(2**(c/2)*gamma(c/2))",
        parameters="a c",
        support=RAY,
    ),
    "frechet scales": Entry(
        "k/a*(x/a)**(-1 - k)*exp(-(x/a)**(-k))",
        "k/c*(x/c)**(-1 - k)*exp(-(x/c)**(-k))",
        parameters="k a c",
        support=RAY,
    ),
    "burr": Entry(
        "c*a*x**(c - 1)*(1 + x**c)**(-a - 1)",
        "c*b*x**(c - 1)*(1 + x**c)**(-b - 1)",
        parameters="c a b",
        support=RAY,
    ),
    "log-logistic scales": Entry(
        "(x/2)**2*3/x/(1 + (x/2)**3)**2*x/2", "3*x**2/(1 + x**3)**2", support=RAY
    ),
    "inverse gamma": Entry(
        "b**a*x**(-a - 1)*exp(-b/x)/gamma(a)",
        "c**a*x**(-a - 1)*exp(-c/x)/gamma(a)",
        parameters="a b c",
        support=RAY,
    ),
    "nakagami": Entry(
        "2*m**m*x**(2*m - 1)*exp(-m*x**2/a)/(gamma(m)*a**m)",
        "2*m**m*x**(2*m - 1)*exp(-m*x**2/c)/(gamma(m)*c**m)",
        parameters="m a c",
        support=RAY,
    ),
    "exp(-|x|**3) scales": Entry(
        "exp(-abs(x)**3)/(2*gamma(4/3))", "exp(-abs(x/2)**3)/(4*gamma(4/3))"
    ),
    "exp(-|x|**3) noise": Entry("exp(-abs(x)**3)/(2*gamma(4/3))", remove="numeric"),
    "exp(-cosh x)": Entry("exp(-cosh(x))/(2*besselk(0, 1))"),
    "cos**2 and uniform": Entry("1/pi + 0*x", "2*cos(x)**2/pi", support=("-pi/2", "pi/2")),
    "raised cosine noise": Entry("(1 + cos(pi*x))/2", support=("-1", "1"), remove="numeric"),
    "negative binomial": Entry(
        "binomial(k + 4, k)*(1 - a)**5*a**k",
        "binomial(k + 4, k)*(1 - c)**5*c**k",
        parameters="a:open_probability c:open_probability",
        support="naturals",
    ),
    "zeta": Entry(
        "90*(k + 1)**(-4)/pi**4", "6*(k + 1)**(-2)/pi**2", support="naturals", remove="numeric"
    ),
    "binomial pair": Entry(
        "binomial(10, k)*a**k*(1 - a)**(10 - k)*Piecewise((1, k <= 10), (0, True))",
        "binomial(10, k)*c**k*(1 - c)**(10 - k)*Piecewise((1, k <= 10), (0, True))",
        parameters="a:open_probability c:open_probability",
        support="naturals",
    ),
    "logarithmic series": Entry(
        "(1/2)**(k + 1)/((k + 1)*log(2))",
        "(2/3)**(k + 1)/((k + 1)*log(3))",
        support="naturals",
    ),
    "cauchy scales": Entry("1/(pi*a*(1 + (x/a)**2))", "1/(pi*c*(1 + (x/c)**2))", parameters="a c"),
    "cauchy noise": Entry("1/(pi*b*(1 + (x/b)**2))", parameters="b"),
    "student shapes": Entry("2/(pi*(1 + x**2)**2)", "1/(pi*(1 + x**2))"),
    "laplace scales": Entry("exp(-abs(x)/a)/(2*a)", "exp(-abs(x)/c)/(2*c)", parameters="a c"),
    "laplace against gaussian": Entry("exp(-abs(x))/2", "exp(-x**2/2)/sqrt(2*pi)"),
    "logistic scales": Entry(
        "exp(-x)/(1 + exp(-x))**2", "exp(-x/2)/(2*(1 + exp(-x/2))**2)", remove="numeric"
    ),
    "logistic shapes": Entry(
        "exp(-x)/(1 + exp(-x))**2", "a*exp(-x)/(1 + exp(-x))**(a + 1)", parameters="a"
    ),
    "gumbel scales": Entry("exp(-x - exp(-x))", "exp(-x/2 - exp(-x/2))/2", remove="numeric"),
    "gompertz": Entry(
        "a*exp(a)*exp(x)*exp(-a*exp(x))",
        "c*exp(c)*exp(x)*exp(-c*exp(x))",
        parameters="a c",
        support=RAY,
    ),
    "parabola": Entry("3/4*(1 - x**2)", "1/2 + 0*x", support=("-1", "1")),
    "von mises": Entry(
        "exp(cos(x))/(2*pi*besseli(0, 1))",
        "exp(cos(x - 1))/(2*pi*besseli(0, 1))",
        support=("-pi", "pi"),
    ),
    "smooth box": Entry(
        "1/(2*x**2)*Piecewise((x**2, abs(x) < 1), (0, True)) + 0*x", remove="closed"
    ),
    "yule": Entry(
        "gamma(k + 1)*2*gamma(3)/gamma(k + 4)",
        "gamma(k + 1)*3*gamma(4)/gamma(k + 5)",
        support="naturals",
        remove="numeric",
    ),
    # New ones come last: the frozen values count them.
    "pearson vii noise": Entry(
        "gamma(n)/(gamma(n - 1/2)*a*sqrt(pi))*(1 + x**2/a**2)**(-n)", parameters="a n"
    ),
    "student scales": Entry("3*a**4/4*(a**2 + x**2)**(-5/2)", "3/4*(1 + x**2)**(-5/2)", "a"),
    "triangular noise": Entry("(1 - abs(x)/3)/3", support=("-3", "3")),
    "triangular noise, wide for its shift": Entry(
        "(1 - abs(x)/5)/5", support=("-5", "5"), sensitivity="7/2"
    ),
    "gamma noise, any shape": Entry(
        "x**(k - 1)*exp(-x/b)/(gamma(k)*b**k)", parameters="b k", support=RAY
    ),
    "lomax noise": Entry("a/b*(1 + x/b)**(-a - 1)", parameters="a b", support=RAY),
    "lomax noise, truncated": Entry("5/(4*(1 + x)**2)", support=("0", "4")),
    "power function noise": Entry("3*x**2", support=UNIT, sensitivity="1/3"),
    "parabola and ramp, tilted": Entry("x*(1 - x)*exp(x)/(3 - exp(1))", "2*x", support=UNIT),
}

ALL = {**KNOWN, **UNSEEN}


def main() -> None:
    """Print what is found and how long it takes: python tests/catalogue.py."""
    import time

    from symdp.derive import derive

    total, found = 0.0, 0
    for name, entry in ALL.items():
        for direction in ("remove", "add"):
            start = time.perf_counter()
            cgf = derive(entry.mechanism(name), direction).cgf
            seconds = time.perf_counter() - start
            total, found = total + seconds, found + (cgf.form == "closed")
            words = cgf.reason if cgf.expression is None else cgf.expression
            print(f"{name:28} {direction:6} {cgf.form:7} {seconds:5.1f} s  {words}")
    print(f"{len(ALL)} densities, {found} of {2 * len(ALL)} closed, {total:.0f} s")


if __name__ == "__main__":
    main()
