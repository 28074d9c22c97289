"""The range of the loss of varied mechanisms: found, and confirmed by losses at many places."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp

import symdp
from symdp.derive import Derivation, derive
from symdp.model.mechanism import Mechanism
from symdp.page.sections.loss import seen_ends

R, HALF_LINE, NATURALS, INTEGERS = '["-oo", "oo"]', '[0, "oo"]', '"naturals"', '"integers"'
GAUSSIAN = "exp(-x**2/(2*s**2))/(s*sqrt(2*pi))"
LAPLACE = "exp(-abs(x)/s)/(2*s)"
# Support, density (or P and Q), values, and what else: sampling, a group, normalize.
LAWS: dict[str, tuple[str, str | tuple[str, str], dict[str, str], str]] = {
    "gaussian": (R, GAUSSIAN, {"s": "2"}, ""),
    "sampled gaussian": (R, GAUSSIAN, {"s": "2"}, "poisson"),
    "fixed batch": (R, GAUSSIAN, {"s": "2"}, "without_replacement"),
    "group of gaussian": (R, GAUSSIAN, {"s": "2"}, "group"),
    "group of laplace": (R, LAPLACE, {"s": "2"}, "group"),
    "two gaussians": (
        R,
        f"3/4*{GAUSSIAN} + 1/4*exp(-x**2/(18*s**2))/(3*s*sqrt(2*pi))",
        {"s": "2"},
        "",
    ),
    "two laplace": (R, f"1/2*{LAPLACE} + exp(-abs(x)/(3*s))/(12*s)", {"s": "2"}, ""),
    "gaussian and laplace": (R, f"1/2*{GAUSSIAN} + 1/2*{LAPLACE}", {"s": "2"}, ""),
    "quartic": (R, "exp(-(x/s)**4)/(2*s*gamma(5/4))", {"s": "2"}, ""),
    "truncated quartic": ("[-4, 4]", "exp(-(x/s)**4)", {"s": "2"}, "normalize"),
    "generalised gaussian": (R, "exp(-(abs(x)/s)**(3/2))/(2*s*gamma(5/3))", {"s": "2"}, ""),
    "root": (R, "exp(-sqrt(abs(x)/s))/(4*s)", {"s": "2"}, ""),
    "skew normal": (R, f"{GAUSSIAN}*(1 + erf(x/(s*sqrt(2))))", {"s": "2"}, ""),
    "student": (
        R,
        "gamma((v+1)/2)/(sqrt(v*pi)*gamma(v/2))*(1+x**2/v)**(-(v+1)/2)",
        {"v": "5/2"},
        "",
    ),
    "skew student": (
        R,
        "Piecewise(((1+x**2/4)**(-3/2)/5, x<0), ((1+x**2)**(-3/2)*3/5, True))",
        {},
        "normalize",
    ),
    "cauchy": (R, "1/(pi*s*(1+x**2/s**2))", {"s": "2"}, ""),
    "logistic": (R, "exp(-x/s)/(s*(1+exp(-x/s))**2)", {"s": "2"}, ""),
    "gumbel": (R, "exp(-x/s-exp(-x/s))/s", {"s": "2"}, ""),
    "secant": (R, "1/(2*s*cosh(pi*x/(2*s)))", {"s": "2"}, ""),
    "hyperbolic": (R, "exp(-sqrt(1+x**2/s**2))/(2*s*besselk(1,1))", {"s": "2"}, ""),
    "normal inverse gaussian": (
        R,
        "besselk(1,sqrt(1+x**2/s**2))*exp(1)/(pi*s*sqrt(1+x**2/s**2))",
        {"s": "2"},
        "",
    ),
    "weibull": (HALF_LINE, "2*x/s**2*exp(-(x/s)**2)", {"s": "3"}, ""),
    "two-sided weibull": (R, "3/(4*s)*sqrt(abs(x)/s)*exp(-(abs(x)/s)**(3/2))", {"s": "3"}, ""),
    "inverse gaussian": (HALF_LINE, "sqrt(s/(2*pi*x**3))*exp(-s*(x-2)**2/(8*x))", {"s": "3"}, ""),
    "lomax": (HALF_LINE, "2/s*(1+x/s)**(-3)", {"s": "3"}, ""),
    "beta": ("[0, 4]", "6*x/4*(1-x/4)/4", {}, ""),
    "raised cosine": ("[-3, 3]", "(1+cos(pi*x/3))/6", {}, ""),
    "poisson": (NATURALS, "exp(-s)*s**x/factorial(x)", {"s": "3"}, ""),
    "two poisson means": (
        NATURALS,
        ("exp(-s)*s**x/factorial(x)", "exp(-2*s)*(2*s)**x/factorial(x)"),
        {"s": "3"},
        "",
    ),
    "geometric": (NATURALS, "(1-r)*r**x", {"r": "1/3"}, ""),
    "negative binomial": (NATURALS, "binomial(x+3,x)*(1-r)**4*r**x", {"r": "1/3"}, ""),
    "discrete gaussian": (INTEGERS, "exp(-x**2/(2*s**2))", {"s": "3"}, "normalize"),
    "skellam": (INTEGERS, "exp(-2*s)*besseli(x, 2*s)", {"s": "3"}, ""),
    "two gamma shapes": (
        HALF_LINE,
        ("x**2*exp(-x/s)/(2*s**3)", "x**(3/2)*exp(-x/s)/(s**(5/2)*gamma(5/2))"),
        {"s": "2"},
        "",
    ),
}
NUMBERS_ALONE = {"normal inverse gaussian"}  # where its loss turns has no formula
OPEN = {"normal inverse gaussian", "gaussian and laplace"}
SHARES = (1e-9, 1e-3, 0.1, 0.3, 0.46, 0.49, 0.5, 0.54, 0.7, 0.9, 0.999, 1 - 1e-9)
SLACK = 1e-6  # of a range that numbers show, which has six digits


def mechanism(name: str, with_values: bool = True) -> Mechanism:
    support, law, values, more = LAWS[name]
    if isinstance(law, tuple):
        table = f'[pair]\nP = "{law[0]}"\nQ = "{law[1]}"'
    else:
        table = f'[noise]\ndensity = "{law}"\n{"normalize = true" if more == "normalize" else ""}'
    words = {"r": "open probability"}
    declared = "\n".join(f'{key} = "{words.get(key, "positive")}"' for key in values)
    made = symdp.Mechanism.from_toml(
        f'name = "{name}"\nvariable = "x"\nsupport = {support}\n[parameters]\n{declared}\n{table}'
    )
    made = made(**values) if with_values else made
    if more == "group":
        return made.subsample("poisson", "1/10", group=3)
    return made.subsample(more, "1/10") if more in {"poisson", "without_replacement"} else made


def losses(d: Derivation) -> list[float]:
    """Finite losses at places near the ends, far out and in the middle of every piece."""
    found = []
    with mpmath.workdps(60):  # 1 + erf(−10) is no more than 1e-45
        for piece in d.pieces:
            if piece.loss.is_infinite:
                continue
            low, high = (
                mpmath.mpf(float(end)) if end.is_infinite else mpmath.mpf(sp.N(end, 30))
                for end in (piece.lower, piece.upper)
            )
            loss = sp.lambdify(d.variable, piece.loss, "mpmath")
            for share in SHARES:
                if mpmath.isfinite(low) and mpmath.isfinite(high):
                    at = low + (high - low) * share
                elif mpmath.isfinite(low) or mpmath.isfinite(high):
                    start, side = (low, 1) if mpmath.isfinite(low) else (high, -1)
                    at = start + side * 30 * share / (1 - share + 0.01)
                else:
                    at = mpmath.mpf(60) * (share - 0.5)
                at = mpmath.mpf(round(float(at))) if d.variable.is_integer else at
                if low <= at <= high:
                    found.append(float(mpmath.re(loss(at))))
    return found


@pytest.mark.slow_cases(
    "group of laplace",
    "two gaussians",
    "two laplace",
    "gaussian and laplace",
    "truncated quartic",
    "generalised gaussian",
    "root",
    "skew normal",
    "student",
    "skew student",
    "hyperbolic",
    "normal inverse gaussian",
    "two-sided weibull",
    "raised cosine",
    "poisson",
    "skellam",
)
@pytest.mark.parametrize("name", LAWS)
def test_the_range_holds_every_loss_and_is_approached(name: str) -> None:
    d = derive(mechanism(name))
    ends = d.loss_range or seen_ends(d, "loss_bounds")
    assert ends is not None, d.range_reason
    assert (d.loss_range is None) == (name in NUMBERS_ALONE) == bool(d.range_reason)
    low, high = (float(end) for end in ends)
    seen = losses(d)
    assert min(seen) >= low - SLACK
    assert max(seen) <= high + SLACK
    for end, own in ((low, min(seen)), (high, max(seen))):
        assert abs(own) > 2 if abs(end) == float("inf") else abs(end - own) < 0.08


@pytest.mark.quick_cases(
    "gaussian",
    "two poisson means",
    "geometric",
    "sampled gaussian",
    "two gamma shapes",
    "discrete gaussian",
    "gumbel",
    "quartic",
    "fixed batch",
    "negative binomial",
    "logistic",
    "weibull",
)
@pytest.mark.parametrize("name", [name for name, law in LAWS.items() if law[2]])
def test_with_free_parameters_it_is_a_formula_or_a_reason(name: str) -> None:
    d = derive(mechanism(name, with_values=False))
    assert (d.loss_range is None) == (name in OPEN)
    if d.loss_range is None:
        assert d.range_reason
        said = d.range_reason.replace("-oo", "−∞").replace("oo", "∞")
        assert f"not found: {said}" in " ".join(d.to_text(0).split())
        assert d.to_json(0)["range_reason"] == d.range_reason
        return
    assert not d.range_reason
    values = {d.mechanism.parameters[key]: sp.Rational(v) for key, v in LAWS[name][2].items()}
    there = derive(mechanism(name)).loss_range
    assert there is not None
    for general, own in zip(d.loss_range, there, strict=True):
        bound = general.subs(values)
        assert bound == own or abs(sp.N(bound - own, 25)) < 1e-20


def test_how_many_have_a_range() -> None:
    """Of 34 mechanisms 33 have a formula with values, and 29 of 31 with free parameters."""
    assert len(LAWS) - len(NUMBERS_ALONE) == 33
    assert sum(bool(law[2]) for law in LAWS.values()) - len(OPEN) == 29


@pytest.mark.slow
def test_an_assumption_finds_the_range_of_a_negative_binomial() -> None:
    free = symdp.mechanisms.negative_binomial
    assert "while p, r may have any value" in derive(free).range_reason
    found = derive(free.assuming({"r": "> 1"}))
    p, r = (found.mechanism.parameters[name] for name in ("p", "r"))
    assert found.loss_range is not None
    low, high = found.loss_range
    assert high == -sp.log(p)
    assert sp.expand_log(low, force=True) == -sp.log(p) - sp.log(r)


def test_the_far_end_of_a_shifted_noise_is_found_by_its_slope() -> None:
    """Weibull noise with a free shape above 1: x^k − (x − 1)^k grows without bound."""
    text = "k/s*(x/s)**(k - 1)*exp(-(x/s)**k)"
    noise = symdp.Mechanism.from_toml(
        f'name = "w"\nvariable = "x"\nsupport = {HALF_LINE}\n[parameters]\nk = "positive"\n'
        f's = "positive"\n[noise]\ndensity = "{text}"\n[assume]\nk = "> 1"'
    )
    assert derive(noise).loss_range == (-sp.oo, sp.oo)
    d = derive(noise(k=3, s=2))
    assert d.loss_range == (-sp.oo, sp.oo)
    assert max(losses(d)) > 1e2
