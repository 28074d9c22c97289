"""Logs of mixtures where one density is far outside the range of doubles beside the other."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import symdp
from symdp.density.pieces import smooth_pairs
from symdp.emit import compile_numpy
from symdp.numeric.laws.of_mechanism import loss_law

SAMPLED = """
name = "far"
variable = "x"
support = ["-oo", "oo"]
[pair]
P = "{P}"
Q = "{Q}"
normalize = {normalize}
[sampling]
scheme = "poisson"
rate = "1/2"
"""
PAIRS = {  # P and Q in a file, and the log of P/Q in mpmath
    "power and root beside sech": (
        "(1/(1+((x+2.8)/3.56)**2)**2/3.56 + 0.19*exp(-Abs((x-1.63)/1.24)**1.5)/1.24)/1.9",
        "1/cosh((x+2.12)/3.33)/10",
        lambda x: (
            mpmath.log(
                1 / (1 + ((x + 2.8) / 3.56) ** 2) ** 2 / 3.56
                + 0.19 * mpmath.exp(-(abs((x - 1.63) / 1.24) ** 1.5)) / 1.24
            )
            + mpmath.log(mpmath.cosh((x + 2.12) / 3.33) * 10 / 1.9)
        ),
    ),
    "two roots beside a normal": (
        "exp(-Abs(x)**1.5) + exp(-Abs(x-1)**1.25)",
        "exp(-x**2/2)",
        lambda x: (
            mpmath.log(mpmath.exp(-(abs(x) ** 1.5)) + mpmath.exp(-(abs(x - 1) ** 1.25)))
            + x**2 / 2
        ),
    ),
    "a normal beside two roots": (
        "exp(-x**2/2)",
        "exp(-Abs(x)**1.5) + exp(-Abs(x-1)**1.25)",
        lambda x: (
            -mpmath.log(mpmath.exp(-(abs(x) ** 1.5)) + mpmath.exp(-(abs(x - 1) ** 1.25)))
            - x**2 / 2
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_a_mixture_has_a_finite_loss_far_out(name):
    p, q, log_ratio = PAIRS[name]
    mechanism = symdp.Mechanism.from_toml(SAMPLED.format(P=p, Q=q, normalize="false"))
    pair = mechanism.pair("remove")
    places = np.array([-9000.0, -3000.0, -2000.0, -40.0, -1.5, 0.7, 2.0, 50.0, 2000.0, 9000.0])
    for piece in smooth_pairs(pair):
        loss = compile_numpy(piece.loss, [pair.variable])
        inside = places[(places > float(piece.lower)) & (places < float(piece.upper))]
        for x, value in zip(inside, np.atleast_1d(loss(inside)), strict=True):
            with mpmath.workdps(40):
                ratio = log_ratio(mpmath.mpf(float(x)))
                truth = mpmath.log1p(mpmath.exp(-abs(ratio))) + max(ratio, 0) - mpmath.log(2)
            truth = float(truth)
            assert value == pytest.approx(truth, rel=1e-12, abs=1e-15)


@pytest.mark.slow
def test_sampled_sums_of_exponentials_times_erfc_stay_in_the_doubles():
    """Far out the loss of a sample of normal plus Laplace noise is log(1 − q + q e^{±D/b})."""
    noise = symdp.Mechanism.from_toml(
        'name = "smooth"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[noise]\nsensitivity = 1\n'
        'density = "exp(-x/2)*erfc((1 - x/2)/sqrt(2)) + exp(x/2)*erfc((1 + x/2)/sqrt(2))"\n'
        "normalize = true\n"
    )
    law = loss_law(noise.subsample("poisson", "1/10"), "remove")
    far = np.asarray([-1000.0, -60.0, 60.0, 1000.0])
    limits = np.log(0.9 + 0.1 * np.exp([-0.5, -0.5, 0.5, 0.5]))
    assert law.step.pieces[0].values(far)[2] == pytest.approx(limits, rel=1e-12)
