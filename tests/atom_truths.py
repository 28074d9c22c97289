"""Pairs with atoms beside densities for tests, and their δ, which shares no code with symdp.

One step is δ(ε) = Σ (p − e^ε q)⁺ + ∫ (P − e^ε Q)⁺ dx in closed form; of n steps the same with the
loss of one step taken off: δ_n(ε) = E_P δ_{n−1}(ε − ℓ), integrated between the places where the
integrand has a kink.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from fractions import Fraction

import mpmath as mp
import sympy as sp

import symdp

CLAMPED = """
name = "clamped_normal"
variable = "x"
support = ["-B", "B"]
[parameters]
s = "positive"
B = "positive"
[pair]
P = "exp(-(x - 1/2)**2/(2*s**2))/(s*sqrt(2*pi))"
Q = "exp(-(x + 1/2)**2/(2*s**2))/(s*sqrt(2*pi))"
[pair.atoms]
"-B" = ["(1 - erf((B + 1/2)/(s*sqrt(2))))/2", "(1 - erf((B - 1/2)/(s*sqrt(2))))/2"]
"B" = ["(1 - erf((B - 1/2)/(s*sqrt(2))))/2", "(1 - erf((B + 1/2)/(s*sqrt(2))))/2"]
"""
INFLATED = """
name = "often_zero"
variable = "x"
support = [0, "oo"]
[parameters]
a = "probability"
[pair]
P = "(1 - a)*exp(-x)"
Q = "4/5*3/2*exp(-3*x/2)"
atoms = { "0" = ["a", 0.2] }
"""
SPIKE = """
name = "spike"
variable = "x"
support = ["-oo", "oo"]
[pair]
P = "exp(-(x - 1)**2/2)/sqrt(2*pi)/2"
Q = "exp(-x**2/2)/sqrt(2*pi)*2/3"
atoms = { "0" = [0.5, "1/3"] }
"""
LAPLACE = """
name = "clamped_laplace"
variable = "x"
support = [-2, 2]
[pair]
P = "exp(-abs(x - 1/2))/2"
Q = "exp(-abs(x + 1/2))/2"
atoms = { "-2" = ["exp(-5/2)/2", "exp(-3/2)/2"], "2" = ["exp(-3/2)/2", "exp(-5/2)/2"] }
"""
FAILING = """
name = "fails"
variable = "x"
support = ["-oo", "oo"]
[pair]
P = "99/200*exp(-abs(x - 1))"
Q = "exp(-abs(x))/2"
atoms = { "7" = ["1/100", 0] }
"""


@dataclass
class Truth:
    """A loss slope·x + start on an interval, by the masses of P and Q above x, and atoms (p, q)."""

    ends: tuple
    slope: mp.mpf
    start: mp.mpf
    density: object  # of P
    above_p: object
    above_q: object
    atoms: list

    def place(self, loss):
        return min(max((loss - self.start) / self.slope, self.ends[0]), self.ends[1])

    def delta(self, epsilon, count=1):
        if count == 1:
            at, scale = self.place(epsilon), mp.exp(epsilon)
            rest = sum((max(p - scale * q, mp.mp.zero) for p, q in self.atoms), mp.mp.zero)
            return self.above_p(at) - scale * self.above_q(at) + rest
        kinks = [self.slope * end + self.start for end in self.ends if mp.isfinite(end)]
        kinks += [mp.log(p / q) for p, q in self.atoms if p and q]
        sums = itertools.combinations_with_replacement([mp.mp.zero, *kinks], count - 1)
        cuts = sorted({*self.ends, *(self.place(epsilon - sum(some)) for some in sums)})
        close = mp.mp.eps * 2**20  # of two cuts that are one but for rounding
        cuts = [cuts[0], *(b for a, b in itertools.pairwise(cuts) if b - a > close)]

        def inside(x):
            return self.density(x) * self.delta(epsilon - self.slope * x - self.start, count - 1)

        total = mp.quad(inside, cuts)
        for p, q in self.atoms:
            if p:
                total += p * (self.delta(epsilon - mp.log(p / q), count - 1) if q else 1)
        return total


def clamped(s, B):
    s, B, half = mp.mpf(s), mp.mpf(B), mp.mpf(1) / 2
    p, q = (mp.ncdf(-B, m, s) for m in (half, -half))
    return Truth(
        (-B, B), 1 / s**2, mp.mp.zero,
        lambda x: mp.npdf(x, half, s),
        lambda x: mp.ncdf(B, half, s) - mp.ncdf(x, half, s),
        lambda x: mp.ncdf(B, -half, s) - mp.ncdf(x, -half, s),
        [(p, q), (q, p)],
    )  # fmt: skip


def inflated(a):
    a, b = mp.mpf(a), mp.mpf(1) / 5
    return Truth(
        (mp.mp.zero, mp.inf), mp.mpf(1) / 2, mp.log((1 - a) / ((1 - b) * 3 / 2)),
        lambda x: (1 - a) * mp.exp(-x),
        lambda x: (1 - a) * mp.exp(-x),
        lambda x: (1 - b) * mp.exp(-3 * x / 2),
        [(a, b)],
    )  # fmt: skip


def spike():
    half, third = mp.mpf(1) / 2, mp.mpf(1) / 3
    return Truth(
        (-mp.inf, mp.inf), mp.mp.one, mp.log(mp.mpf(3) / 4) - half,
        lambda x: half * mp.npdf(x, 1, 1),
        lambda x: half * mp.ncdf(1 - x),
        lambda x: (1 - third) * mp.ncdf(-x),
        [(half, third)],
    )  # fmt: skip


LAWS = {
    "clamped normal": (CLAMPED, {"s": 2, "B": 1}, lambda: clamped(2, 1)),
    "often zero": (INFLATED, {"a": "1/4"}, lambda: inflated(mp.mpf(1) / 4)),
    "spike": (SPIKE, {}, spike),
}


def step(name):
    text, values, _ = LAWS[name]
    return symdp.Mechanism.from_toml(text)(**values)


def drawn(seed):
    """Truncated exponentials and some atoms on [0, 1], of which some weigh under one law alone."""
    chance = random.Random(seed)
    number = chance.choice((1, 2, 4))
    places = [Fraction(k, 10) for k in chance.sample(range(11), number)]
    parts = [[Fraction(chance.randint(0, 4), 5 * number) for _ in places] for _ in range(2)]
    rates = [Fraction(chance.randint(1, 9), 3), Fraction(chance.randint(10, 19), 3)]
    chance.shuffle(rates)
    rests = [1 - sum(own) for own in parts]
    x = sp.Symbol("x", real=True)
    laws = [
        sp.Rational(rest) * rate * sp.exp(-rate * x) / (1 - sp.exp(-rate))
        for rest, rate in zip(rests, map(sp.Rational, rates), strict=True)
    ]
    atoms = {place: (p, q) for place, p, q in zip(places, *parts, strict=True)}
    made = symdp.Mechanism.from_pair(*laws, x, (0, 1), atoms=atoms)
    a, b = (mp.mpf(rate.numerator) / rate.denominator for rate in rates)
    u, v = (
        mp.mpf(r.numerator) / r.denominator / (1 - mp.exp(-t))
        for r, t in zip(rests, (a, b), strict=True)
    )
    own = [(mp.mpf(p.numerator) / p.denominator, mp.mpf(q.numerator) / q.denominator)
           for p, q in atoms.values()]  # fmt: skip

    def excess(scale, swapped=False):
        """∫ (P − scale·Q)⁺ and the same of the atoms, the two laws exchanged."""
        (r, c), (t, d) = ((b, v), (a, u)) if swapped else ((a, u), (b, v))
        root = mp.log(scale * d * t / (c * r)) / (t - r)  # where the densities are equal
        cuts = sorted({mp.mp.zero, mp.mp.one, min(max(root, mp.mp.zero), mp.mp.one)})
        total = mp.mp.zero
        for low, high in itertools.pairwise(cuts):
            part = c * (mp.exp(-r * low) - mp.exp(-r * high))
            part -= scale * d * (mp.exp(-t * low) - mp.exp(-t * high))
            total += max(part, mp.mp.zero)
        pairs = [(q, p) if swapped else (p, q) for p, q in own]
        return total + sum((max(p - scale * q, mp.mp.zero) for p, q in pairs), mp.mp.zero)

    return made, excess
