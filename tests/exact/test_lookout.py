"""Which far nodes of a sum of single-valued losses are looked at."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from symdp import compose, mechanisms
from symdp.errors import AccuracyError
from symdp.exact.line import continuous_kernel, first_line, tilted_laws
from symdp.exact.lookout import Lookout, _Kind
from symdp.law.line import log_characteristic

NOISE = mechanisms.discrete_gaussian(sigma=2)
RARE = NOISE.subsample("poisson", "1/100")
HALF = mechanisms.discrete_laplace(b=1).subsample("poisson", "1/2")
RESPONSE = mechanisms.randomized_response(epsilon_0="1/3")

SUMS = {
    "few": ([(HALF, 7)], 1.5),
    "many": ([(RARE, 1000)], 4.0),
    "very many": ([(RARE, 10**9)], 0.01),
    "two kinds": ([(RARE, 300), (HALF, 3)], 1.0),
    "crowded": ([(RESPONSE, 2), (RARE, 2)], 1.0),
}


def lookout_of(name):
    steps, tilt = SUMS[name]
    law = compose(steps).law("remove")
    tilted = tilted_laws(law, tilt)
    counts = [n for _, n in law.terms]
    mean, variance = (float(v) for v in law.cumulants(0.0, 2))
    epsilon = mean + 2.0 * math.sqrt(variance)
    line, _ = first_line(law, tilted, epsilon, tilt, continuous_kernel, math.inf, 0.0)
    return Lookout(tilted, counts, line.step), tilted, counts, line.step


def exponents(tilted, counts, y):
    return sum(n * log_characteristic(part, y) for part, n in zip(tilted, counts, strict=True))


@pytest.mark.parametrize("level", [1.0, 20.0])
@pytest.mark.parametrize("name", SUMS)
def test_no_loud_node_is_missed(name, level):
    lookout, tilted, counts, step = lookout_of(name)
    end, ends = 0, [0]
    while end < 1 << 18:
        first = end
        end, heard, values = lookout.block(first, level)
        ends.append(end)
        assert len(np.unique(heard)) == heard.size == values.size
        assert ((first <= heard) & (heard < end)).all()
        everywhere = np.arange(first, end, dtype=np.float64)
        exponent = exponents(tilted, counts, step * everywhere)
        loud = everywhere[exponent.real > -level]
        assert np.isin(loud, heard).all()
        expected = np.exp(exponents(tilted, counts, step * heard))
        # A power of a rounded number; the losses are rounded too, and y is large.
        rounded = 1e-15 * (sum(counts) + 1e3) + 9e-16 * step * end * loss_size(tilted, counts)
        assert np.abs(values - expected).max(initial=0.0) <= rounded
    assert all(earlier < later for earlier, later in itertools.pairwise(ends))


def loss_size(tilted, counts):
    sizes = [float(part.weight @ np.abs(part.deviation)) for part in tilted]
    return sum(n * size for n, size in zip(counts, sizes, strict=True))


def test_most_nodes_are_never_looked_at():
    lookout, tilted, *_ = lookout_of("many")
    end = heard = 0
    while end < 1 << 26:
        end, found, _ = lookout.block(end, 30.0)
        heard += found.size
    atoms = sum(part.weight.size for part in tilted)
    assert 0 < heard < end / 100
    assert lookout.work < end * atoms / 20


def test_the_middle_of_a_cell_tells_of_all_of_it():
    """Else what comes back within a cell would be lost, were it looked at or not."""
    _, tilted, _, step = lookout_of("many")
    (part,) = tilted
    kind = _Kind(part, step)
    random = np.random.default_rng(3)
    for size in (2, 8, 64):
        middle = 1e6 * random.random(4000)
        inside = middle + step * (random.random(4000) - 0.5) * (size - 1)
        there = 2.0 * log_characteristic(part, middle).real
        depth = -log_characteristic(part, inside).real
        least = np.asarray([kind.least(max(d, 0.0), size, rare=0.0) for d in depth])
        assert (np.exp(there) >= least - 1e-12).all()


def test_the_first_look_leaves_out_what_it_says():
    _, (part,), _, step = lookout_of("many")
    kind = _Kind(part, step)
    assert kind.likely < part.weight.size
    first, rows, size = 4096, 2, 8
    seen = np.sqrt(kind.places(kind.turns(first, rows, size), size)).ravel()
    middles = first + size * np.arange(seen.size) + 0.5 * (size - 1)
    there = np.exp(log_characteristic(part, step * middles).real)
    assert 1e-6 < np.abs(seen - there).max() <= kind._rare


def test_a_tilt_that_leaves_one_value_is_refused():
    tilted = tilted_laws(compose(RESPONSE, 3).law("remove"), 1e6)
    with pytest.raises(AccuracyError, match="all but one value"):
        Lookout(tilted, [3], 0.5)
