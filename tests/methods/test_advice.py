"""An estimate that is off by a percent or more says so: every series, order and kind of job."""

import math
import sys
from pathlib import Path

import pytest

from symdp import compose, mechanisms

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks/ is no part of what is installed

from benchmarks.peers.jobs import JOBS as BENCHMARK

ORDERS = range(13)
ESTIMATES = (
    *(f"msd:{k}" for k in ORDERS),
    *(f"edgeworth:{k}" for k in ORDERS),
    *(f"tilted-edgeworth:{k}" for k in ORDERS),
    "clt",
    "gaussian",
    "gdp-e",
    "lugannani-rice",
)
OFF = 0.01  # relative, of δ


def sampled(sigma, rate):
    return mechanisms.gaussian(sigma=sigma).subsample("poisson", rate)


JOBS = [
    (sampled("3/2", "1/100"), 10**4, (1,)),
    (sampled(2, "1/100"), 2000, (4, 8)),
    (sampled(1, "1/1000"), 10**6, (0.5, 1, 2, 4)),
    (mechanisms.laplace(b=5), 100, (3,)),
    *((mechanisms.gaussian(sigma=2), n, (0.5, 2)) for n in (1, 2, 5)),
    *((mechanisms.laplace(b=2), n, (0.5, 2)) for n in (1, 2, 5)),
    (mechanisms.discrete_gaussian(sigma=2), 20, (0.5, 2, 4)),
    (mechanisms.discrete_gaussian(sigma=5), 20, (0.5, 1, 2)),
    (mechanisms.randomized_response(epsilon_0="1/4"), 50, (0.5, 2)),
    (mechanisms.gumbel(b=3), 10, (0.5, 3)),
]


@pytest.mark.quick_cases("laplace 1 (0.5, 2)")
@pytest.mark.parametrize(
    ("mechanism", "count", "epsilons"), JOBS, ids=[f"{m.name} {n} {e}" for m, n, e in JOBS]
)
def test_no_estimate_is_silently_off_by_a_percent(mechanism, count, epsilons):
    steps = compose(mechanism, count)
    assert [(e, *row) for e in epsilons for row in silent(steps, e, "both", ESTIMATES)] == []


def silent(steps, epsilon, direction, methods):
    """The estimates that are a percent off and do not say so."""
    exact, rows = steps.delta(epsilon, direction=direction).log_delta, []
    for method in methods:
        found = steps.delta(epsilon, method=method, direction=direction)
        if found.kind != "estimate" or found.advice or found.log_delta == exact:
            continue
        off = math.expm1(min(found.log_delta - exact, 700)) if exact > -math.inf else math.inf
        if abs(off) >= OFF:
            rows.append((method, off))
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("job", BENCHMARK[::3], ids=[job.name for job in BENCHMARK[::3]])
def test_the_jobs_of_the_benchmark_and_few_steps_of_them(job):
    """At each job, and at one, two and five of its steps, in either direction."""
    found = []
    few = [(n, e) for n in (1, 2, 5) if n < job.count for e in (0.5, job.epsilon)]
    for count, epsilon in ((job.count, job.epsilon), *few):
        steps = compose(job.mechanism(), count)
        for direction in ("remove", "add"):
            rows = silent(steps, epsilon, direction, (*ESTIMATES, "fourier"))
            found += [(count, epsilon, direction, *row) for row in rows]
    assert found == []


def test_series_in_their_regime_do_not_warn():
    """The rule is no rule that warns of all."""
    steps = compose(sampled("3/2", "1/100"), 10**4)
    for method in ("msd:2", "edgeworth:3", "tilted-edgeworth:2", "clt", "lugannani-rice"):
        found = steps.delta(1, method=method)
        assert found.advice == ""
        assert found.log_delta == pytest.approx(steps.delta(1).log_delta, abs=OFF)


@pytest.mark.slow_cases("28/25-256/60000-0.0209")
@pytest.mark.parametrize(
    ("sigma", "rate", "epsilon"),
    [("3/2", "1/100", 0.0352), ("3/2", "1/100", 0.0498), ("28/25", "256/60000", 0.0209)],
)
def test_next_to_the_largest_loss_tails_nearly_cancel(sigma, rate, epsilon):
    """The tilted loss is nearly normal there, and the two tails' own errors are not alike."""
    steps = compose(sampled(sigma, rate), 5)
    exact = steps.delta(epsilon, direction="add").log_delta
    found = steps.delta(epsilon, method="lugannani-rice", direction="add")
    assert abs(math.expm1(found.log_delta - exact)) > OFF
    assert "out of its regime" in found.advice
