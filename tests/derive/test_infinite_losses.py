"""Losses that are infinite with positive probability: what a derivation prints, read back.

Truths are integrals over densities written here once more, sums over all outcomes of lists, and
nested integrals for two steps; the printed text is read by `printed_formula`.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import pytest
from printed_formula import value

import symdp
from symdp.derive import derive
from symdp.page.text import formula_lines
from symdp.page.worked import sheets

mp = mpmath.mp
EXP, LOG = mpmath.exp, mpmath.log
NOISE = """
name = "noise"
variable = "x"
support = [{low}, {high}]
[noise]
density = "{density}"
sensitivity = 1
"""
DISJOINT = """
name = "disjoint"
variable = "x"
support = [0, 3]
[pair]
P = "Piecewise((1/10, x < 1), (9/5*(x - 1), x < 2), (0, True))"
Q = "Piecewise((0, x < 1), (4/5, x < 2), (1/5, True))"
"""
LIST = """
name = "list"
variable = "k"
support = [0, 1, 2, 3]
[pair]
P = ["1/10", "1/2", "2/5", "0"]
Q = ["0", "3/10", "1/2", "1/5"]
"""
FAR = 200  # where integrals over a half-line end
CAUCHY = "3/(2*atan(20/3)*(x**2 + 9))"


class Case(NamedTuple):
    """A file, its two densities, and the places where they have kinks or end."""

    file: str
    p: Callable[[Any], Any]
    q: Callable[[Any], Any]
    places: tuple[float, ...]


def _noise(low: Any, high: Any, text: str, f: Callable[[Any], Any], *kinks: float) -> Case:
    """Noise of a density between two ends, moved by 1 under P."""

    top = math.inf if high == FAR else high

    def density(x: Any) -> Any:
        return f(x) if low <= x <= top else mpmath.mpf(0)

    ends = (low, high, low + 1, high + (top < math.inf), *kinks)
    file = NOISE.format(low=low, high=high if top < math.inf else '"oo"', density=text)
    return Case(file, lambda x: density(x - 1), density, tuple(sorted({float(e) for e in ends})))


CASES: dict[str, Case] = {
    "laplace": _noise(
        -3, 3, "exp(-Abs(x))/(2*(1 - exp(-3)))", lambda x: EXP(-abs(x)) / (2 - 2 * EXP(-3)), 0, 1
    ),
    "cauchy": _noise(
        -20, 20, CAUCHY, lambda x: 3 / (2 * mpmath.atan(mpmath.mpf(20) / 3) * (x * x + 9)),
        (1 - 37**0.5) / 2, (1 + 37**0.5) / 2,
    ),
    "uniform": _noise(-4, 4, "1/8", lambda x: mpmath.mpf(1) / 8),
    "exponential": _noise(0, FAR, "exp(-x/2)/2", lambda x: EXP(-x / 2) / 2),
    "half normal": _noise(
        0, FAR, "exp(-x**2/8)/sqrt(2*pi)", lambda x: EXP(-x * x / 8) / mpmath.sqrt(2 * mp.pi), 9, 20
    ),
    "disjoint": Case(
        DISJOINT,
        lambda x: mpmath.mpf("0.1") if x < 1 else 1.8 * (x - 1) if x < 2 else mpmath.mpf(0),
        lambda x: mpmath.mpf(0) if x < 1 else mpmath.mpf("0.8") if x < 2 else mpmath.mpf("0.2"),
        (0, 1, 2, 3),
    ),
}  # fmt: skip


class Truth:
    """Integrals over the densities of a case, over the outputs whose loss is finite."""

    def __init__(self, case: Case) -> None:
        self.case = case
        middles = [(a, b, (a + b) / 2) for a, b in itertools.pairwise(case.places)]
        self.parts = [(a, b, case.p(m) > 0, case.q(m) > 0) for a, b, m in middles]
        self.lost_p = self._over(case.p, lambda p, q: not q)
        self.lost_q = self._over(case.q, lambda p, q: not p)

    def _over(self, f: Callable[[Any], Any], taken: Callable[[bool, bool], bool]) -> Any:
        parts = [(a, b) for a, b, p, q in self.parts if taken(p, q)]
        return mpmath.fsum(mpmath.quad(f, [a, b]) for a, b in parts)

    def loss(self, x: Any) -> Any:
        return LOG(self.case.p(x) / self.case.q(x))

    def mean(self, f: Callable[[Any, Any], Any]) -> Any:
        """∫ f(x, ℓ(x)) P(x) dx over finite losses."""
        inside = lambda x: self.case.p(x) * f(x, self.loss(x))  # noqa: E731
        return self._over(inside, lambda p, q: p and q)

    def cumulants(self, t: Any) -> list[Any]:
        """K, K′, …, K⁗ of the finite loss."""
        mass = self.mean(lambda x, s: EXP(t * s))
        first = self.mean(lambda x, s: EXP(t * s) * s) / mass
        two, three, four = (
            self.mean(lambda x, s, k=k: EXP(t * s) * (s - first) ** k) / mass for k in (2, 3, 4)
        )
        return [LOG(mass), first, two, three, four - 3 * two**2]

    def above(self, level: Any, f: Callable[[Any], Any]) -> Any:
        """∫ f(ℓ(x)) P(x) dx where the finite loss is above a level; it is monotone on each part."""
        total = mpmath.mpf(0)
        for a, b, p, q in self.parts:
            if not (p and q):
                continue
            near = (b - a) * mpmath.mpf(10) ** -13
            high = [self.loss(end) > level for end in (a + near, b - near)]
            if any(high):
                ends = [a, b]
                if not all(high):
                    cut = mpmath.findroot(
                        lambda x: self.loss(x) - level, (a + near, b - near), solver="anderson"
                    )
                    ends = [a, cut] if high[0] else [cut, b]
                total += mpmath.quad(lambda x: self.case.p(x) * f(self.loss(x)), ends)
        return total

    def one(self, level: Any) -> Any:
        """E (1 − e^{level − L})⁺ over finite losses of one step."""
        return self.above(level, lambda s: 1 - EXP(level - s))

    def delta(self, epsilon: Any, count: int) -> Any:
        """δ(ε) of one or two steps."""
        finite = self.one(epsilon)
        if count == 2:
            with mp.workdps(12):
                finite = self.mean(lambda x, s: self.one(epsilon - s))
        return 1 - (1 - self.lost_p) ** count + finite


class Page:
    """Lines of a derivation by their left sides."""

    def __init__(self, d: Any) -> None:
        self.d = d
        self.lines: dict[str, tuple[str, dict[str, str]]] = {}
        self.text = "\n".join(
            line for s in d.sections() for own in s.lines for line in formula_lines(own)
        )
        for section in d.sections():
            for line in section.lines:
                if line.left is None or line.right is None or line.right.kind == "cases":
                    continue
                first, *others = formula_lines(line)
                if "∫" in first:
                    continue
                left, right = re.split(r" [=≈] ", first, maxsplit=1)
                named = (re.match(r"  (\w+) = (.*)", other) for other in others)
                parts = {m.group(1): m.group(2) for m in named if m} if line.where else {}
                self.lines.setdefault(left, (_plain(right.partition("    ")[0]), parts))

    def __contains__(self, left: str) -> bool:
        return left in self.lines

    def at(self, left: str, **names: Any) -> Any:
        formula, parts = self.lines[left]
        known = dict(names)
        for name, own in parts.items():
            known[name] = value(_plain(own), known)
        return value(formula, known)


def _plain(formula: str) -> str:
    """Give what the reader takes: names without signs, and no dots at the end of a sum."""
    return formula.replace("δ_(−∞)", "δ_w").replace("δ_∞", "δ_v").replace(" + …", "")


@pytest.fixture(scope="module")
def found() -> dict[str, tuple[Truth, Page]]:
    return {}


def both(found: dict[str, tuple[Truth, Page]], name: str) -> tuple[Truth, Page]:
    if name not in found:
        found[name] = Truth(CASES[name]), Page(derive(symdp.Mechanism.from_toml(CASES[name].file)))
    return found[name]


def close(a: Any, b: Any, error: float = 1e-9) -> bool:
    return bool(abs(a - b) <= error * (1 + abs(b)))


@pytest.mark.quick_cases("uniform", "exponential")
@pytest.mark.parametrize("name", CASES)
def test_masses_and_cumulants_are_those_of_the_finite_loss(found, name):
    truth, page = both(found, name)
    assert close(page_mass(page, "δ_∞"), truth.lost_p)
    assert close(page_mass(page, "δ_(−∞)"), truth.lost_q)
    for t in (0, -1, mpmath.mpf("0.37")):
        true = truth.cumulants(t)
        for mark, own in zip(("", "′", "″"), true, strict=False):
            if page.d.cgf.expression is not None:
                assert close(page.at(f"K{mark}(t)", t=t), own), (t, mark)
    true = truth.cumulants(0)
    if page.d.cgf.expression is None:
        low, high = (re.escape(edge) for edge in ("₋₁₉", "²⁰"))
        assert re.search(rf"m_j = 1/\(1 − δ_∞\)·∫{low}{high} ℓ\(x\)\^jP\(x\) dx", page.text)
    else:
        for index, own in zip("₁₂₃₄", true[1:], strict=True):
            assert close(page.at(f"κ{index}"), own), index
    assert "K counts finite losses alone" in page.text


def page_mass(page: Page, name: str) -> Any:
    return page.at(name) if name in page else mpmath.mpf(0)


@pytest.mark.slow_cases("laplace", "cauchy", "half normal", "exponential", "disjoint")
@pytest.mark.parametrize("name", CASES)
def test_the_composed_delta_of_one_and_two_steps_is_the_integral(found, name):
    truth, page = both(found, name)
    if "δ(ε)" not in page or not any(s.key == "composed" and s.lines for s in page.d.sections()):
        assert page.d.cgf.expression is None or name == "half normal"
        return
    (section,) = (s for s in page.d.sections() if s.key == "composed")
    page = Page(_Only(page.d, section))
    for count, epsilon in ((1, 0.3), (2, 0.3), (2, -0.4)):
        true = truth.delta(mpmath.mpf(epsilon), count)
        own = _composed(page, truth, count, mpmath.mpf(epsilon))
        # The nested quadrature of two steps does not cut at the kinks of the inner one.
        assert close(own, true, 1e-8 if count == 1 else 1e-6), (count, epsilon)


class _Only:
    def __init__(self, d: Any, section: Any) -> None:
        self.d, self.section = d, section

    def sections(self) -> list[Any]:
        return [self.section]


def _composed(page: Page, truth: Truth, n: int, e: Any) -> Any:
    """What the section says: one formula, a sum over k with power series, or one of residues."""
    formula = page.lines["δ(ε)"][0]
    if "Res" in formula:  # one exponential over one pole at −2: residues by a circle around all
        assert formula.startswith("1 − (1 − δ_v)^n + ∑_(b > ε)")
        at = lambda w: page.at("M(t)", t=w) ** n * EXP(-e * w) / (w * (1 + w))  # noqa: E731
        inside = lambda a: at(-1 + 3 * mpmath.expj(a)) * 3 * mpmath.expj(a)  # noqa: E731
        b = n * LOG(mpmath.mpf(9) / 4)
        total = mpmath.quad(inside, [0, mp.pi, 2 * mp.pi]).real / (2 * mp.pi) if b > e else 0
        return 1 - (1 - truth.lost_p) ** n + total
    if "[w^" not in formula:
        return page.at("δ(ε)", n=n, ε=e)
    assert formula.startswith("1 − (1 − δ_v)^n + ∑_(k:b_k > ε) C(n, k)(r₀ + r₁ + [w^(n − 1)]")
    total = 1 - (1 - truth.lost_p) ** n
    for k in range(n + 1):
        if page.at("b_k", n=n, k=k) > e:
            near = lambda w, k=k: page.at("g_k(w)", w=w, n=n, k=k, ε=e)  # noqa: E731
            power = mpmath.taylor(near, 0, n - 1)[n - 1]
            sides = page.at("r₀", n=n, k=k, ε=e) + page.at("r₁", n=n, k=k, ε=e)
            total += mpmath.binomial(n, k) * (sides + power)
    return total


@pytest.mark.quick_cases("uniform")
@pytest.mark.parametrize("name", CASES)
def test_tail_bounds_hold_and_are_what_their_words_say(found, name):
    truth, page = both(found, name)
    d = page.d
    width = d.loss_range[1] - d.loss_range[0]
    for n in (1, 30):
        for under, lost, t in (("P", truth.lost_p, 0), ("Q", truth.lost_q, -1)):
            mean = truth.cumulants(t)[1]
            level = n * mean + mpmath.mpf("0.6") * math.sqrt(n)
            add = 1 - (1 - lost) ** n if under == "P" else mpmath.mpf(0)
            numbers = {"ε": level, "n": n, f"E_{under}": mean}
            for label in (f"log {under}_Hoeffding(ε)", f"log {under}_sub(ε)"):
                if label in page and width.is_finite and width != 0:
                    wide = mpmath.mpf(str(width.evalf(40)))
                    bound = add + (1 - lost) ** n * EXP(
                        -2 * (level - n * mean) ** 2 / (n * wide**2)
                    )
                    assert close(page.at(label, **numbers), LOG(bound)), label
            constants = {c.name: c for c in d.tails}
            for kind in ("chernoff", "hoeffding", "sub_gaussian_tail"):
                constant = constants[f"{kind}_{under.lower()}"]
                try:
                    ball = constant.value(epsilon=str(level), n=n)
                except symdp.AccuracyError:
                    continue
                assert n > 1 or EXP(float(ball)) >= _tail(truth, under, level) * (1 - 1e-9)
                assert float(ball) >= LOG(add) if add else True
                least = min(
                    truth.cumulants(s)[0] * n - (s - t) * level
                    for s in (t, t + 0.25, t + 0.5, t + 1, t + 2, t + 4)
                )
                if kind == "chernoff":
                    assert float(ball) <= LOG(add + EXP(least)) + 1e-6


def _tail(truth: Truth, under: str, level: Any) -> Any:
    """P or Q of a loss of one step at or above a level."""
    shift = 0 if under == "P" else -1
    finite = truth.above(level, lambda s: EXP(shift * s))
    return finite + (truth.lost_p if under == "P" else 0)


@pytest.mark.slow
def test_a_bound_on_the_tail_counts_the_infinite_loss():
    """Ten steps of a truncated Cauchy law: 1 − (1 − δ_∞)¹⁰ = 0.0268, and no finite loss is 5."""
    cut = symdp.derive(symdp.Mechanism.from_toml(CASES["cauchy"].file))
    lost = (1 - mpmath.atan(mpmath.mpf(19) / 3) / mpmath.atan(mpmath.mpf(20) / 3)) / 2
    least = LOG(1 - (1 - lost) ** 10)
    assert close(EXP(least), 0.0268, 1e-4)
    for name in ("hoeffding_p", "sub_gaussian_tail_p", "chernoff_p"):
        ball = cut.tails[name].value(epsilon=5, n=10)
        assert least - 1e-12 < float(ball) < least + 1e-2, name


COUNT = 40


def _disjoint_truth(e: Any, n: int) -> Any:
    """δ of n steps: −log(x − 1) is exponential, of rate 2 under P and of rate 1 under Q."""
    reach = n * LOG(mpmath.mpf(9) / 4) - e
    p, q = (mpmath.gammainc(n, 0, rate * reach, regularized=True) for rate in (2, 1))
    return 1 - mpmath.mpf("0.9") ** n * (1 - p) - EXP(e) * mpmath.mpf("0.8") ** n * q


@pytest.mark.slow
@pytest.mark.parametrize("e", [6.0, 9.0, 12.0])
def test_the_series_add_what_infinite_losses_are(found, e):
    """The printed sums, with cumulants of an exponential variable, and those of the sheet."""
    _, page = both(found, "disjoint")
    n, e = COUNT, mpmath.mpf(e)
    true, lost = _disjoint_truth(e, n), 1 - mpmath.mpf("0.9") ** n
    t = mpmath.findroot(
        lambda t: n * (LOG(mpmath.mpf(9) / 4) - 1 / (2 + t)) - e - 1 / t - 1 / (1 + t),
        (1e-3, 9), solver="anderson",
    )  # fmt: skip
    f = [n * (LOG(mpmath.mpf(9) / 5) + t * LOG(mpmath.mpf(9) / 4) - LOG(2 + t))]
    f[0] += -e * t - LOG(t) - LOG(1 + t)
    f += [
        mpmath.factorial(j - 1) * (-1) ** j * (n * (2 + t) ** -j + t**-j + (1 + t) ** -j)
        for j in range(1, 7)
    ]
    names = {f"F{k}": own for k, own in zip("₀₁₂₃₄₅₆", f, strict=True)}
    names |= {f"ρ{k}": f[j] / f[2] ** (j / 2) for k, j in zip("₃₄₅₆", (3, 4, 5, 6), strict=True)}
    series = [section for section in page.d.sections() if section.key == "series"]
    saddle, edgeworth = (Page(_Only(page.d, section)) for section in series[:2])
    names |= {c: saddle.at(c, **names) for c in ("c₁", "c₂")}
    own = saddle.at("δ(ε)", δ_v=mpmath.mpf("0.1"), n=n, **names)
    assert abs(own - true) < 0.02 * (true - lost)
    tails = {}
    for under, rate in (("P", 2), ("Q", 1)):
        k = [mpmath.factorial(j - 1) * (-1) ** j * n * mpmath.mpf(rate) ** -j for j in (2, 3, 4)]
        x = (e - n * (LOG(mpmath.mpf(9) / 4) - mpmath.mpf(1) / rate)) / mpmath.sqrt(k[0])
        known = {"λ₃": k[1] / k[0] ** 1.5, "λ₄": k[2] / k[0] ** 2, "x": x}
        known |= {h: edgeworth.at(h, x=x) for h in ("He₂", "He₃", "He₅")}
        known |= {c: edgeworth.at(c, **known) for c in ("e₁", "e₂")}
        tails[f"E_{under}"] = lambda _, known=known: edgeworth.at("E(x)", **known)
    own = edgeworth.at("δ(ε)", δ_v=mpmath.mpf("0.1"), δ_w=mpmath.mpf("0.2"), n=n, ε=e,
                       x_P=0, x_Q=0, **tails)  # fmt: skip
    assert abs(own - true) < 0.01  # three halves of an order of n below the tails themselves
    sheet = dict(sheets(symdp.compose(page.d.mechanism, n), page.d, float(e), 2, "remove"))
    for title in ("Saddle-point series", "Edgeworth series"):
        rows = {row[0].partition(" =")[0]: row[2] for row in sheet[title]}
        assert float(rows["exact δ (exact, contour), remove direction"]) == pytest.approx(
            float(true), rel=1e-5
        )
        assert abs(float(rows["δ₂"]) - true) < (0.02 * (true - lost) if "Sad" in title else 0.01)


@pytest.mark.slow  # on a busy machine the time for closed forms of K is over first
def test_many_steps_say_what_finite_losses_add(found):
    """In the bulk and in the tail the printed logarithm is that of δ − 1 + (1 − δ_∞)ⁿ."""
    _, page = both(found, "disjoint")
    n = 4000
    for regime, at in (("bulk", {"ξ": mpmath.mpf(1)}), ("tail", {"r": mpmath.mpf("0.42")})):
        lines = page.text.partition(f"in the {regime}")[2].splitlines()
        first = next(k for k, line in enumerate(lines) if line.startswith("log("))
        left, right = lines[first].split(" ≈ ")
        assert left == "log(δ − 1 + (1 − δ_∞)^n)"
        known = {"n": n, **at}
        for line in itertools.takewhile(
            lambda line: re.match(r"  \w+ = ", line), lines[first + 1 :]
        ):
            known[line.strip().partition(" = ")[0]] = line.partition(" = ")[2]
        for name in [k for k, v in known.items() if isinstance(v, str)]:
            known[name] = value(known[name], known)
        if regime == "tail":  # M(t) = (9/5)^(1+t) (4/5)^(-t) / (t + 2)
            rest = 1 / (LOG(mpmath.mpf(9) / 4) - at["r"])  # where K′ is r
            common = mpmath.mpf(9) / 5 * (mpmath.mpf(9) / 4) ** (rest - 2)
            known |= {"θ": rest - 2, "K₀": LOG(common / rest), "K₂": 1 / rest**2}
        kappa = LOG(mpmath.mpf(9) / 4) - mpmath.mpf(1) / 2
        e = n * kappa + mpmath.sqrt(n) / 2 if regime == "bulk" else n * at["r"]
        with mp.workdps(400):
            finite = _disjoint_truth(e, n) - 1 + mpmath.mpf("0.9") ** n
            true = LOG(finite)
        assert abs(value(right, known) - true) < 0.05  # n^(−1/2)
    fixed = page.text.partition("at fixed ε")[2].splitlines()[0]
    assert "if κ₁ > 0 > K′(−1)" in fixed


def _random_list(seed: int) -> tuple[list[int], list[int]]:
    """Whole weights of two laws on some points, each 0 here and there."""
    rng = random.Random(seed)
    while True:
        p, q = (
            [rng.randint(0, 9) * rng.randint(0, 1) for _ in range(rng.randint(3, 5))] for _ in "pq"
        )
        q = (q + [rng.randint(1, 9)] * 5)[: len(p)]
        if any(a and b for a, b in zip(p, q, strict=True)) and sum(p) and sum(q):
            return p, q


@pytest.mark.slow_cases("1", "3", "5", "6")
@pytest.mark.parametrize("seed", range(8))
def test_tails_of_random_lists_lie_below_their_bounds(seed):
    """Sums over all outcomes, of laws that need not have an outcome in common."""
    p, q = _random_list(seed)
    ps, qs = ([f"{own}/{sum(law)}" for own in law] for law in (p, q))
    points = list(range(len(p)))
    text = f'name = "l"\nvariable = "x"\nsupport = {points}\n[pair]\nP = {ps}\nQ = {qs}\n'
    d = derive(symdp.Mechanism.from_toml(text.replace("'", '"')))
    masses = [(mpmath.mpf(a) / sum(p), mpmath.mpf(b) / sum(q)) for a, b in zip(p, q, strict=True)]
    step = [(a, b, LOG(a / b) if a and b else None) for a, b in masses]
    for n in (1, 3):
        outcomes = []
        for chosen in itertools.product(step, repeat=n):
            losses = [one[2] for one in chosen]
            weights = [mpmath.fprod(one[k] for one in chosen) for k in (0, 1)]
            outcomes.append((weights, None if None in losses else mpmath.fsum(losses)))
        finite = sorted({float(s) for _, s in outcomes if s is not None})
        levels = {finite[0] - 1, finite[-1], finite[-1] + 1, *finite[:: max(1, len(finite) // 3)]}
        for level in levels:
            for under, k in (("P", 0), ("Q", 1)):
                above = [w[k] for w, s in outcomes if s is not None and s >= level - 1e-12]
                infinite = [w[0] for w, s in outcomes if s is None] if under == "P" else []
                true = mpmath.fsum(above + infinite)
                for kind in ("chernoff", "hoeffding", "sub_gaussian_tail"):
                    constant = d.tails[f"{kind}_{under.lower()}"]
                    try:
                        ball = constant.value(epsilon=str(level - 1e-9), n=n)
                    except symdp.AccuracyError:
                        continue
                    assert EXP(float(ball)) >= true * (1 - 1e-9), (kind, under, n, level)


def test_epochs_of_random_allocation_add_their_infinite_losses():
    """An epoch has the infinite loss of its step; turned round, that of all likelihood ratios."""
    noise = symdp.Mechanism.from_toml(CASES["uniform"].file).subsample("random_allocation", steps=3)
    for direction, lost in (("remove", 1 / 8), ("add", 1 / 512)):
        epoch = derive(noise, direction)
        assert float(epoch.mass_at_infinity) == lost
        assert epoch.renyi(2) == math.inf
        assert "1 − (1 − δ_∞)^n + e^(F₀)" in epoch.to_text(only=("series",))


def test_divergences_of_an_infinite_loss_are_infinite():
    laplace = derive(symdp.Mechanism.from_toml(CASES["laplace"].file))
    assert laplace.renyi(2) == math.inf
    assert math.isfinite(derive(symdp.mechanisms.laplace(b=1)).renyi(2))


def test_losses_of_one_value_have_a_formula_and_no_series():
    """Uniform noise: 1 − (7/8)ⁿ + (7/8)ⁿ(1 − e^ε)⁺; exponential noise: (1 − e^{ε − n/2})⁺."""
    for name, true in (
        ("uniform", lambda n, e: 1 - 0.875**n * min(1.0, math.exp(e))),
        ("exponential", lambda n, e: max(0.0, 1 - math.exp(e - n / 2))),
    ):
        d = derive(symdp.Mechanism.from_toml(CASES[name].file))
        text = d.to_text()
        assert not re.search(r"nan|zoo|∞·|= ∞|≈ ∞", text.partition("Many steps")[2]), name
        assert "there is none: the finite loss takes one value alone" in text
        page = Page(_Only(d, next(s for s in d.sections() if s.key == "composed")))
        for n, e in itertools.product((1, 4, 30), (-0.7, 0.3, 2.0)):
            assert float(page.at("δ(ε)", n=n, ε=mpmath.mpf(e))) == pytest.approx(true(n, e))
