"""docs/papers.md: every call and every test that it names is there; its counterexample holds."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import norm

import symdp
from symdp.methods import accountant

ROOT = Path(__file__).parents[1]
ROWS = re.findall(
    r"^\| (.+?) \| (.+?) \| `(.+?)` \|$",
    (ROOT / "docs" / "papers.md").read_text("utf-8"),
    re.MULTILINE,
)


def test_all_five_papers_are_there():
    text = (ROOT / "docs" / "papers.md").read_text("utf-8")
    assert re.findall(r"^## .*\((\w+)\)$", text, re.MULTILINE) == ["SPA", "EA", "FA", "PRV", "IND"]
    assert len(ROWS) > 40


@pytest.mark.parametrize(("statement", "call", "test"), ROWS, ids=[row[0][:40] for row in ROWS])
def test_the_call_and_the_test_exist(statement, call, test):
    name = call.strip("`")
    if name.startswith("method:"):
        assert accountant(name.removeprefix("method:")).name == name.removeprefix("method:")
    elif not name.startswith("not offered"):
        assert callable(pkgutil.resolve_name(name))
    file, _, function = test.partition("::")
    source = (ROOT / file).read_text("utf-8")
    assert not function or f"def {function}(" in source


GRID = np.linspace(-6, 6, 601)


def response(loss):
    return [(loss, 1 / (1 + np.exp(-loss))), (-loss, 1 / (1 + np.exp(loss)))]


RARE = [(2.8, 0.36), (-2.8, 0.36 * np.exp(-2.8)), (0.0, 0.64 - 0.36 * np.exp(-2.8))]


def after(second):
    """Losses and their probabilities of a first step and of the one that its loss chooses."""
    return [(a + b, p * q) for a, p in response(1.0) for b, q in second(a)]


def profile(second):
    return sum(p * np.maximum(1 - np.exp(GRID - loss), 0) for loss, p in after(second))


def gaussian(mu):
    tail = np.exp(GRID + norm.logcdf(-GRID / mu - mu / 2))
    return norm.cdf(-GRID / mu + mu / 2) - tail


def least(delta):
    return brentq(lambda mu: (gaussian(mu) - delta).min(), 0.5, 5.0)


def of_fixed():
    """The least μ of both orders that could have been fixed beforehand."""
    return max(least(profile(lambda _: response(1.4))), least(profile(lambda _: RARE)))


def chosen(loss):
    return response(1.4) if loss > 0 else RARE


def test_a_filter_by_a_curve_promises_too_much():
    """Both fixed orders lie below a Gaussian curve that the adaptive choice of them exceeds."""
    fixed, adaptive = of_fixed(), profile(chosen)
    assert least(adaptive) > 1.03 * fixed
    assert (adaptive - gaussian(fixed)).max() > 0.02


@pytest.mark.slow
def test_a_filter_by_a_curve_keeps_zcdp():
    """D_α of the adaptive run is at most αμ²/2, though the run is not μ-GDP."""
    losses, masses = np.array(after(chosen)).T
    for order in 1 + np.geomspace(1e-3, 1e3, 100):
        forth = logsumexp((order - 1) * losses, b=masses) / (order - 1)
        back = logsumexp(-order * losses, b=masses) / (order - 1)
        assert max(forth, back) <= order * of_fixed() ** 2 / 2


@pytest.mark.quick_cases("1-10-4.8020e-6-2.0325e-3")
@pytest.mark.parametrize(
    ("batch", "records", "printed", "attained"),
    [(1, 10, "4.8020e-6", "2.0325e-3"), (10, 100, "1.3713e-5", "2.8440e-3")],
)
def test_fixed_batches_as_printed_promise_too_much(batch, records, printed, attained):
    """[FA 6.2] is one draw, [FA 6.3] several: a data set has more, and symdp's bound covers it."""
    noise, epsilon = symdp.mechanisms.gaussian(sigma=2), mp.mpf(1) / 2
    scheme = "with_replacement" if batch > 1 else "without_replacement"
    options = {"batch": batch} if batch > 1 else {}
    bound = symdp.compose(noise.subsample(scheme, f"1/{records}", **options), 1).delta(0.5)
    with mp.workdps(30):
        share = mp.mpf(1) / records
        weights = [
            mp.binomial(batch, j) * share**j * (1 - share) ** (batch - j) for j in range(batch + 1)
        ]

        def law(shift):
            return lambda y: sum(w * mp.npdf(y, j * shift, 2) for j, w in enumerate(weights))

        def delta(p, q):
            ratio = lambda y: mp.log(p(y) / q(y)) - epsilon  # noqa: E731
            root = mp.findroot(ratio, (0, 30), solver="anderson", tol=1e-20)
            ends = [root + far for far in (0, 1, 3, 8, 16, 40)]
            return mp.quad(lambda y: p(y) - mp.exp(epsilon) * q(y), ends)

        promised, real = delta(law(1), law(-1)), delta(law(2), law(0))
    assert promised == pytest.approx(float(printed), rel=1e-4)
    assert real == pytest.approx(float(attained), rel=1e-4)
    assert promised * 200 < real <= bound.delta * (1 + 1e-12)
    text = (ROOT / "docs" / "papers.md").read_text("utf-8")
    assert printed in text
    assert attained in text
