"""One δ by symdp and by its peers, in one run: seconds, value, error against a 30-digit truth.

The job: Gaussian noise σ = 1.5, Poisson sampling at rate 0.01, 10 000 steps, δ at ε = 1 in the
remove direction. Every time is the median of repetitions in a warm process, from the mechanism's
parameters to δ; symdp keeps the compiled mechanism between calls, as it does for its users.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module, metadata

import mpmath

import symdp
from symdp.truth import privacy_profile

SIGMA, RATE, STEPS, EPSILON = "1.5", "0.01", 10_000, 1.0
REPETITIONS = 15
LONG = (10**3, 10**9)


def median_seconds(function: Callable[[], object]) -> float:
    function()
    seconds = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def mechanism() -> symdp.Mechanism:
    return symdp.mechanisms.gaussian(sigma=SIGMA).subsample("poisson", RATE)


def ours() -> dict[str, Callable[[], float]]:
    sampled = mechanism()
    kept = symdp.compose(sampled, STEPS)
    return {
        "symdp, a new composition": lambda: (
            symdp.compose(sampled, STEPS).delta(EPSILON, direction="remove").delta
        ),
        "symdp, the same composition": lambda: kept.delta(EPSILON, direction="remove").delta,
    }


def google() -> dict[str, Callable[[], float]]:
    pld = import_module("dp_accounting.pld.privacy_loss_distribution")

    def step():
        return pld.from_gaussian_mechanism(
            float(SIGMA),
            value_discretization_interval=1e-4,
            sampling_prob=float(RATE),
            use_connect_dots=True,
        )

    kept = step()
    return {
        "Google PLD": lambda: step().self_compose(STEPS).get_delta_for_epsilon(EPSILON),
        "Google PLD, its step kept": lambda: kept.self_compose(STEPS).get_delta_for_epsilon(
            EPSILON
        ),
    }


def prv() -> dict[str, Callable[[], float]]:
    prv_accountant = import_module("prv_accountant")

    def delta():
        step = prv_accountant.PoissonSubsampledGaussianMechanism(
            sampling_probability=float(RATE), noise_multiplier=float(SIGMA)
        )
        accountant = prv_accountant.PRVAccountant(
            prvs=[step], max_self_compositions=[STEPS], eps_error=0.1, delta_error=1e-10
        )
        return accountant.compute_delta(EPSILON, [STEPS])[1]

    return {"prv-accountant (ε error 0.1)": delta}


def main() -> None:
    start = time.perf_counter()
    first = symdp.compose(mechanism(), STEPS).delta(EPSILON, direction="remove").delta
    cold = time.perf_counter() - start
    truth = privacy_profile([(mechanism().pair("remove"), STEPS)], EPSILON, digits=30)
    versions = [f"symdp {symdp.__version__}"]
    ways = ours()
    for name, make in (("dp-accounting", google), ("prv-accountant", prv)):
        try:
            ways |= make()
            versions.append(f"{name} {metadata.version(name)}")
        except ImportError as error:
            print(f"{name} is left out: {error}")
    print(", ".join(versions))
    print(f"δ({EPSILON:g}), σ = {SIGMA}, q = {RATE}, n = {STEPS}, remove; truth to 30 digits:")
    print(f"  {mpmath.nstr(truth, 30)}")
    print(f"symdp's first δ, compilation included: {cold:.3f} s, {first!r}")
    reference = None
    print(f"{'':31}{'median s':>12}{'ratio':>9}  {'δ':<24}relative error")
    for name, function in ways.items():
        value = float(function())
        seconds = median_seconds(function)
        reference = reference or seconds
        error = float(mpmath.mpf(value) / truth - 1)
        print(f"{name:<31}{seconds:>12.6f}{seconds / reference:>9.1f}  {value!r:<24}{error:+.1e}")
    for count in LONG:
        steps = symdp.compose(mechanism(), count)
        epsilon = steps.epsilon(1e-5, direction="remove").epsilon
        seconds = median_seconds(partial(steps.delta, epsilon, direction="remove"))
        print(f"symdp at n = {count:.0e}, ε = {epsilon:.6g}: {seconds:.6f} s")


if __name__ == "__main__":
    main()
