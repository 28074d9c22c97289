"""δ of two steps against nested quadratures of mpmath, from densities and distribution functions.

δ(ε) = δ∞ + ∫ P(x) D(ε − ℓ(x)) dx with D(c) = Σ (F_P − e^c F_Q) over the stretches where
ℓ > c: mpmath finds turns and roots of ℓ on a grid of its own, and integrates between the places
where D has kinks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import mpmath as mp
import pytest

import symdp

Function = Callable[[mp.mpf], mp.mpf]
DIGITS = 18


@dataclass
class Pair:
    """Densities and distribution functions, and finite places around all mass that counts."""

    p: Function
    q: Function
    mass_of_p: Function
    mass_of_q: Function
    edges: Sequence[float]  # where densities are not smooth, and the ends
    cuts: Sequence[float] = ()  # between which a quadrature sees what is narrow
    grid: int = 400  # places between two edges
    pieces: list[tuple[mp.mpf, mp.mpf]] = field(default_factory=list)
    infinite: float | mp.mpf = 0

    def loss(self, x: mp.mpf) -> mp.mpf:
        return mp.log(self.p(x) / self.q(x))

    def prepare(self) -> None:
        """Cut the axis where the loss turns, and drop where P or Q vanishes."""
        for a, b in pairwise(map(mp.mpf, sorted([*self.edges, *self.cuts]))):
            middle = (a + b) / 2
            if self.q(middle) == 0:
                self.infinite += self.mass_of_p(b) - self.mass_of_p(a)
            elif self.p(middle) > 0:
                self.pieces += pairwise([a, *self._turns(a, b), b])

    def _turns(self, a: mp.mpf, b: mp.mpf) -> list[mp.mpf]:
        # Geometric towards both ends, where what is singular turns.
        shares = [mp.sin(mp.pi * k / (2 * self.grid)) ** 2 for k in range(1, self.grid)]
        places = [a + (b - a) * share for share in shares]
        losses = [self.loss(x) for x in places]
        turns = []
        for k in range(1, len(places) - 1):
            before, after = losses[k] - losses[k - 1], losses[k + 1] - losses[k]
            if before * after < 0 and min(abs(before), abs(after)) > mp.mpf(10) ** (5 - mp.mp.dps):
                turns.append(self._turn(places[k - 1], places[k + 1], before > 0))
        return turns

    def _turn(self, low: mp.mpf, high: mp.mpf, is_top: bool) -> mp.mpf:
        """Return where ℓ′ changes its sign."""
        step = mp.mpf(10) ** (-mp.mp.dps // 3)
        for _ in range(40):
            middle = (low + high) / 2
            rises = self.loss(middle + step) > self.loss(middle - step)
            low, high = (middle, high) if rises == is_top else (low, middle)
        return (low + high) / 2

    def root(self, a: mp.mpf, b: mp.mpf, target: mp.mpf) -> mp.mpf | None:
        """Return where ℓ is a number between two places between which it is monotone."""
        room = (b - a) * mp.mpf(10) ** (4 - mp.mp.dps)
        low, high = a + room, b - room
        left, right = self.loss(low) - target, self.loss(high) - target
        if left * right >= 0:
            return None
        return mp.findroot(
            lambda x: self.loss(x) - target,
            (low, high),
            solver="anderson",
            tol=mp.mpf(10) ** (-2 * mp.mp.dps),
            maxsteps=200,
            verify=False,
        )

    def profile(self, c: mp.mpf) -> mp.mpf:
        """Return E(1 − e^{c − L})⁺ over finite losses."""
        total, factor = mp.mpf(0), mp.exp(c)
        for a, b in self.pieces:
            root = self.root(a, b, c)
            ends = [a, b] if root is None else [a, root, b]
            for low, high in pairwise(ends):
                if self.loss((low + high) / 2) > c:
                    of_p = self.mass_of_p(high) - self.mass_of_p(low)
                    total += of_p - factor * (self.mass_of_q(high) - self.mass_of_q(low))
        return total

    def kinks(self) -> list[mp.mpf]:
        """Return the losses at the ends of stretches on which it is monotone."""
        values = []
        for a, b in self.pieces:
            room = (b - a) * mp.mpf(10) ** (4 - mp.mp.dps)
            if not any(a == cut for cut in self.cuts):
                values.append(self.loss(a + room))
            if not any(b == cut for cut in self.cuts):
                values.append(self.loss(b - room))
        values.sort()
        return [values[0], *(y for x, y in pairwise(values) if y - x > mp.mpf(10) ** -12)]


def _share(outer: Pair, inner: Pair, epsilon: float, x: mp.mpf) -> mp.mpf:
    if outer.p(x) == 0 or outer.q(x) == 0:  # an end, next to which places are rounded to it
        return mp.mpf(0)
    return outer.p(x) * inner.profile(epsilon - outer.loss(x))


def two_steps(outer: Pair, inner: Pair, epsilon: float) -> mp.mpf:
    """Return δ(ε) of a step of each."""
    total = 1 - (1 - outer.infinite) * (1 - inner.infinite)
    kinks = inner.kinks()
    for a, b in outer.pieces:
        roots = [outer.root(a, b, epsilon - kink) for kink in kinks]
        ends = sorted({a, b, *(root for root in roots if root is not None)})
        # Short stretches between roots that are one but for rounding hold nothing.
        ends = [ends[0], *(y for x, y in pairwise(ends) if y - x > mp.mpf(10) ** -DIGITS)]
        total += mp.quad(partial(_share, outer, inner, epsilon), ends)
    return total


def shifted(
    f: Function, mass: Function, edges: Sequence[float], moved: str, cuts: Sequence[float] = ()
) -> Pair:
    """Return noise that is moved, as P, beside noise that is not."""
    d = mp.mpf(moved.partition("/")[0]) / mp.mpf(moved.partition("/")[2] or 1)
    all_edges = sorted({*map(mp.mpf, edges), *(mp.mpf(x) + d for x in edges)})
    return Pair(lambda x: f(x - d), f, lambda x: mass(x - d), mass, all_edges, cuts)


def smooth(f: Function, mass: Function, reach: float) -> Pair:
    """Return noise without kinks that is moved by 1, beside noise that is not."""
    return Pair(lambda x: f(x - 1), f, lambda x: mass(x - 1), mass, [-reach, 1 + reach])


def sampled(pair: Pair, rate: float) -> Pair:
    """Return (1 − q)Q + qP beside Q."""
    q = mp.mpf(rate)
    return Pair(
        lambda x: (1 - q) * pair.q(x) + q * pair.p(x),
        pair.q,
        lambda x: (1 - q) * pair.mass_of_q(x) + q * pair.mass_of_p(x),
        pair.mass_of_q,
        pair.edges,
        pair.cuts,
    )


def reverse(pair: Pair) -> Pair:
    return Pair(pair.q, pair.p, pair.mass_of_q, pair.mass_of_p, pair.edges, pair.cuts)


def normal_mass(x: mp.mpf) -> mp.mpf:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def log_normal(moved: str) -> Pair:
    def f(x: mp.mpf) -> mp.mpf:
        return mp.npdf(mp.log(x)) / x if x > 0 else mp.mpf(0)

    def mass(x: mp.mpf) -> mp.mpf:
        return normal_mass(mp.log(x)) if x > 0 else mp.mpf(0)

    return shifted(f, mass, [0, 1e6], moved, [20.0, 2e3])


def burr() -> Pair:
    def f(x: mp.mpf) -> mp.mpf:
        return 2 * x / (1 + x * x) ** 2 if x > 0 else mp.mpf(0)

    def mass(x: mp.mpf) -> mp.mpf:
        return x * x / (1 + x * x) if x > 0 else mp.mpf(0)

    return shifted(f, mass, [0, 1e10], "1", [20.0, 2e4])


def rippled() -> Pair:
    total = 2 + mp.exp(mp.mpf(-9) / 2)

    def f(x: mp.mpf) -> mp.mpf:
        return mp.npdf(x) * (2 + mp.cos(3 * x)) / total

    def mass(x: mp.mpf) -> mp.mpf:
        turned = mp.erfc(-(x - 3j) / mp.sqrt(2)) / 2
        return (2 * normal_mass(x) + mp.exp(mp.mpf(-9) / 2) * turned.real) / total

    return smooth(f, mass, 9)


def teeth() -> Pair:
    def f(x: mp.mpf) -> mp.mpf:
        return mp.npdf(x, -2, mp.mpf(1) / 2) / 3 + mp.npdf(x, 2, mp.mpf(1) / 2) * 2 / 3

    def mass(x: mp.mpf) -> mp.mpf:
        return normal_mass(2 * (x + 2)) / 3 + normal_mass(2 * (x - 2)) * 2 / 3

    return smooth(f, mass, 7)


def with_gap() -> Pair:
    def f(x: mp.mpf) -> mp.mpf:
        return mp.exp(1 - x * x) * abs(x) if abs(x) > 1 else mp.mpf(0)

    def mass(x: mp.mpf) -> mp.mpf:
        below = mp.exp(1 - max(abs(x), mp.mpf(1)) ** 2) / 2
        return below if x < 0 else 1 - below

    return shifted(f, mass, [-7, -1, 1, 7], "1/2")


def huber() -> Pair:
    normal = mp.sqrt(2 * mp.pi) * (normal_mass(mp.mpf(1)) - normal_mass(mp.mpf(-1)))
    tail = mp.exp(-mp.mpf(1) / 2)
    total = normal + 2 * tail

    def f(x: mp.mpf) -> mp.mpf:
        size = abs(x)
        return (mp.exp(-x * x / 2) if size < 1 else mp.exp(mp.mpf(1) / 2 - size)) / total

    def mass(x: mp.mpf) -> mp.mpf:
        if abs(x) >= 1:
            below = mp.exp(mp.mpf(1) / 2 - abs(x)) / total
            return below if x < 0 else 1 - below
        middle = mp.sqrt(2 * mp.pi) * (normal_mass(x) - normal_mass(mp.mpf(-1)))
        return (tail + middle) / total

    return shifted(f, mass, [-45, -1, 1, 45], "1/2")


def one_sided() -> Pair:
    def f(x: mp.mpf) -> mp.mpf:
        return mp.exp(-x) * (1 + x * x) / 3 if x > 0 else mp.mpf(0)

    def mass(x: mp.mpf) -> mp.mpf:
        return 1 - mp.exp(-x) * (x * x + 2 * x + 3) / 3 if x > 0 else mp.mpf(0)

    return shifted(f, mass, [0, 50], "1/3")


def cauchy() -> Pair:
    def f(x: mp.mpf) -> mp.mpf:
        return 1 / (mp.pi * (1 + x * x))

    def mass(x: mp.mpf) -> mp.mpf:
        return mp.acot(-x) / mp.pi if x < 0 else 1 - mp.acot(x) / mp.pi if x else mp.mpf(1) / 2

    far = [10.0**k for k in (1, 2, 4, 7, 11, 15)]
    return replace(smooth(f, mass, 1e20), cuts=[*(-x for x in far), *far])


def apart() -> Pair:
    """A logistic law beside a wider normal one."""
    return Pair(
        lambda x: mp.exp(-x) / (1 + mp.exp(-x)) ** 2,
        lambda x: mp.npdf(x, 1, 3),
        lambda x: 1 / (1 + mp.exp(-x)),
        lambda x: normal_mass((x - 1) / 3),
        [-40, 40],
        [0],
    )


def noise(density: str, support: str = '["-oo", "oo"]', moved: str = "1") -> symdp.Mechanism:
    return symdp.Mechanism.from_toml(
        f'name = "noise"\nvariable = "x"\nsupport = {support}\n[noise]\ndensity = "{density}"\n'
        f'sensitivity = "{moved}"\nnormalize = true\nshift = "exactly"\n'
    )


HALF = '[0, "oo"]'
TWO_LAWS = symdp.Mechanism.from_toml(
    'name = "two laws"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[pair]\n'
    'P = "exp(-x)/(1 + exp(-x))**2"\nQ = "exp(-(x - 1)**2/18)/(3*sqrt(2*pi))"\n'
)
# Mechanism, pair of the direction that removes, and ε: below, at and above kinks of the profile.
LAWS = {
    "log-normal": (noise("exp(-log(x)**2/2)/x", HALF), lambda: log_normal("1"), (-0.5, 1.0, 1.9)),
    "log-normal, little moved": (
        noise("exp(-log(x)**2/2)/x", HALF, "1/20"),
        lambda: log_normal("1/20"),
        (0.02, 0.09),
    ),
    "Burr": (noise("x/(1 + x**2)**2", HALF), burr, (0.3, 2.0)),
    "rippled": (noise("exp(-x**2/2)*(2 + cos(3*x))"), rippled, (0.0, 1.0, 4.0)),
    "two teeth": (
        noise("exp(-2*(x + 2)**2) + 2*exp(-2*(x - 2)**2)"),
        teeth,
        (1.0, 4.0),
    ),
    "gap": (
        noise("Piecewise((abs(x)*exp(-x**2), abs(x) > 1), (0, True))", moved="1/2"),
        with_gap,
        (0.25, 1.5),
    ),
    "atoms at both ends": (
        noise("Piecewise((exp(-x**2/2), abs(x) < 1), (exp(1/2 - abs(x)), True))", moved="1/2"),
        huber,
        (0.5, 0.75, 0.999),
    ),
    "one-sided": (noise("exp(-x)*(1 + x**2)", HALF, "1/3"), one_sided, (0.1, 0.5)),
    "Cauchy": (noise("1/(1 + x**2)"), cauchy, (0.1, 1.0)),
    "two laws": (TWO_LAWS, apart, (0.2, 2.5)),
}
CASES = [
    (name, epsilon, side)
    for name, (_, _, every) in LAWS.items()
    for epsilon in every
    for side in ("remove", "add")
]


def ready(pair: Pair) -> Pair:
    pair.prepare()
    return pair


def assert_holds(steps: symdp.Composition, side: str, epsilon: float, truth: mp.mpf) -> None:
    answer = steps.delta(epsilon, direction=side)
    log_truth = mp.log(truth)
    assert answer.log_lower <= log_truth <= answer.log_upper, float(log_truth - answer.log_delta)
    assert answer.log_upper - answer.log_lower < 2e-11


@pytest.mark.slow
@pytest.mark.parametrize(("name", "epsilon", "side"), CASES, ids=str)
def test_two_steps_hold_what_nested_quadratures_give(name, epsilon, side):
    mechanism, pair_of, _ = LAWS[name]
    with mp.workdps(DIGITS):
        pair = pair_of()
        pair = ready(pair if side == "remove" else reverse(pair))
        truth = two_steps(pair, pair, epsilon)
        assert_holds(symdp.compose(mechanism, 2), side, epsilon, truth)


@pytest.mark.sweep
@pytest.mark.parametrize("side", ["remove", "add"])
@pytest.mark.parametrize(
    ("name", "rate", "epsilon"), [("Cauchy", "1/2", 0.3), ("atoms at both ends", "1/10", 0.05)]
)
def test_two_sampled_steps(name, rate, epsilon, side):
    mechanism, pair_of, _ = LAWS[name]
    with mp.workdps(DIGITS):
        pair = sampled(pair_of(), mp.mpf(1) / int(rate[2:]))
        pair = ready(pair if side == "remove" else reverse(pair))
        truth = two_steps(pair, pair, epsilon)
        assert_holds(symdp.compose(mechanism.subsample("poisson", rate), 2), side, epsilon, truth)


@pytest.mark.sweep
@pytest.mark.parametrize("side", ["remove", "add"])
def test_two_steps_of_different_laws(side):
    first, pair_of, _ = LAWS["log-normal"]
    second, other_of, _ = LAWS["two teeth"]
    with mp.workdps(DIGITS):
        pairs = [pair_of(), other_of()]
        if side == "add":
            pairs = [reverse(pair) for pair in pairs]
        truth = two_steps(ready(pairs[0]), ready(pairs[1]), 1.5)
        steps = symdp.compose([(first, 1), (second, 1)])
        assert_holds(steps, side, 1.5, truth)


@pytest.mark.parametrize("name", ["rippled", "log-normal", "atoms at both ends"])
def test_two_steps_have_a_row_of_their_own(name):
    mechanism, _, (epsilon, *_) = LAWS[name]
    answer = symdp.compose(mechanism, 2).delta(epsilon)
    assert answer.route == "two_steps"
    assert answer.log_upper - answer.log_lower < 2e-11
