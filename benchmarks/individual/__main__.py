"""Measure individual accounting and print every figure: python -m benchmarks.individual [NAME …].

Names: counts, norms, accuracy, grid, peers; all of them, if none is given.  --records N scales the
first two down from a million.
"""

from __future__ import annotations

import argparse
import resource
import time
from types import SimpleNamespace

import numpy as np

from symdp.individual import from_counts
from symdp.individual.methods import record_composition
from symdp.individual.norms import NormGrid
from symdp.individual.published import _loss_density
from symdp.numeric.many.kinds import sampled_normals
from symdp.numeric.many.rows import solve_rows

STEPS, RATE, DELTA = 5000, 0.01, 1e-6
NOISE = np.geomspace(1.0, 30.0, 64)


def shares(random, records, steps):
    """Norms over the clip of heterogeneous records: lognormal, each record with its own median."""
    median = np.exp(random.uniform(-3.0, 0.0, (records, 1)))
    spread = random.uniform(0.2, 1.0, (records, 1))
    noise = random.standard_normal((records, steps), dtype=np.float32)
    return np.minimum(median * np.exp(spread * noise), 1.0).astype(np.float32)


def synthetic_counts(random, records):
    """Counts over 64 geometric noise levels of such records."""
    from scipy.special import ndtr

    table = np.zeros((records, NOISE.size), dtype=np.uint16)
    edges = np.append(np.log(NOISE), np.inf)
    for start in range(0, records, 20_000):
        many = min(20_000, records - start)
        mean = random.uniform(0.0, 2.2, (many, 1))
        spread = random.uniform(0.1, 1.2, (many, 1))
        above = ndtr((edges[1:] - mean) / spread)
        share = np.diff(above, axis=1, prepend=0.0)
        share /= share.sum(axis=1, keepdims=True)
        table[start : start + many] = random.multinomial(STEPS, share)
    return table


class Clock:
    """CPU and wall seconds of a block."""

    def __enter__(self):
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        self.wall, self.cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu


def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def measure_counts(records):
    table = synthetic_counts(np.random.default_rng(1), records)
    with Clock() as one:
        found = from_counts(NOISE, table, RATE, "remove").epsilon(DELTA)
    print(
        f"counts → ε, remove: {records} records × 64, {one.wall:.1f} s ({one.cpu:.1f} s CPU), "
        f"peak {memory():.2f} GB, paths {found.paths}, "
        f"numerical error of δ at most {np.nanmax(found.numerical_error):.1g}"
    )
    with Clock() as both:
        found = from_counts(NOISE, table, RATE).epsilon(DELTA)
    print(f"counts → ε, both directions: {both.wall:.1f} s ({both.cpu:.1f} s CPU), {found.paths}")


def measure_norms(records):
    import tempfile

    from symdp.individual import Recorder

    random = np.random.default_rng(2)
    spent = made = 0.0
    with tempfile.TemporaryDirectory() as folder:
        run = Recorder(f"{folder}/run", records, multiplier=1.0, clip=1.0, rate=RATE)
        for start in range(0, records, 2000):
            with Clock() as one:
                block = shares(random, min(2000, records - start), STEPS)
            made += one.cpu
            with Clock() as one:
                run.count_block(block, start)
            spent += one.cpu
        counts = run.accountant("remove").counts
        table = sampled_normals(run.grid.levels(1.0)[0], np.full(run.grid.count, RATE), "remove")
        with Clock() as two:
            solution = solve_rows(table, counts, np.log(DELTA))
    print(
        f"norms → ε: {records} × {STEPS} float32 counted in {spent:.1f} s CPU "
        f"({1e9 * spent / records / STEPS:.2f} ns a norm; made in {made:.0f} s), accounted in "
        f"{two.wall:.1f} s ({two.cpu:.1f} s CPU), peak {memory():.2f} GB, "
        f"{(solution.path == 2).sum()} without a shared line"
    )


def measure_accuracy(many=200):
    random = np.random.default_rng(3)
    noise = np.array([1.0, 2.5, 6.0, 15.0])
    table = np.zeros((many, 4), dtype=np.int64)
    for i in range(many):
        if i % 4 == 0:
            table[i] = random.multinomial(5000, random.dirichlet(np.ones(4)))
        elif i % 4 == 1:
            table[i] = [random.integers(1, 6), 0, 0, 4000]
        elif i % 4 == 2:
            table[i] = random.multinomial(random.integers(3, 60), np.full(4, 0.25))
        else:
            table[i, random.integers(0, 4)] = random.integers(200, 900)
    with Clock() as shared:
        found = from_counts(noise, table, RATE, "remove").epsilon(DELTA)
    work = SimpleNamespace(counts=table, noise=noise, rate=np.full(4, RATE), mechanisms=None)
    worst = 0.0
    with Clock() as single:
        for i in range(many):
            alone = record_composition(work, i).epsilon(DELTA, direction="remove").epsilon
            gap = abs(found.epsilon[i] - alone) / max(alone, 1e-300) if alone else found.epsilon[i]
            worst = max(worst, gap)
    print(
        f"accuracy: {many} records, ε within {worst:.1g} of one record at a time; "
        f"{found.paths}; {1e3 * shared.cpu / many:.2f} ms against {1e3 * single.cpu / many:.0f} ms"
    )


def measure_grid(many=300):
    random = np.random.default_rng(4)
    values = shares(random, many, STEPS)
    fine = NormGrid.parse("norm:4096")
    exact = over(values, fine)
    print("grid: over-estimate of ε against the lower end of a grid of 4096, per record")
    for name in ("norm:256", "norm:1024", "geometric:64:100"):
        found = over(values, NormGrid.parse(name))
        gap = found.epsilon / np.maximum(exact.lower, 1e-300) - 1.0
        gap = gap[exact.lower > 1e-6]
        print(
            f"  {name}: median {np.median(gap):.2%}, 90 % {np.quantile(gap, 0.9):.2%}, "
            f"worst {gap.max():.2%} of {gap.size} records with ε > 0"
        )
        if name == "norm:256":
            print("   ", " ".join(f"{100 * g:.2f}" for g in gap), "(per cent)")


def over(values, grid):
    places = grid.place_scaled(values, 1.0)
    table = np.zeros((values.shape[0], grid.count), dtype=np.int64)
    for i in range(values.shape[0]):
        table[i] = np.bincount(places[i], minlength=grid.count)
    used = table.any(axis=0)
    below, above = (level[used] for level in grid.levels(1.0))
    return from_counts(below, table[:, used], RATE, "remove", noise_above=above).epsilon(DELTA)


def measure_peers(many=3):
    random = np.random.default_rng(1)
    table = synthetic_counts(random, 20_000)
    records = from_counts(NOISE, table, RATE, "remove")
    with Clock() as shared:
        exact = records.epsilon(DELTA)
    each = shared.cpu / len(exact)
    print(f"peers: shared lines {1e6 * each:.0f} µs a record at 20 000 records")
    grid = 20.0 * (np.arange(1 << 20) - (1 << 19)) / (1 << 19)
    spacing = grid[1] - grid[0]
    spectra = [
        np.fft.rfft(np.fft.ifftshift(spacing * _loss_density(grid, s, RATE, True))) for s in NOISE
    ]
    for i in range(many):
        with Clock() as one:
            product = np.ones(spectra[0].size, dtype=complex)
            for b in np.flatnonzero(table[i]):
                product *= spectra[b] ** int(table[i, b])
            masses = np.fft.fftshift(np.fft.irfft(product, grid.size))
            epsilon = exact.epsilon[i]
            above = grid > epsilon
            delta = float((masses[above] * -np.expm1(epsilon - grid[above])).sum())
        print(
            f"  FFT + Plancherel, 2^20 points, record {i}: {one.cpu:.2f} s, "
            f"δ off by {abs(delta / DELTA - 1):.1e} ({one.cpu / each:.0f} ×)"
        )
    try:
        from dp_accounting import dp_event, pld
    except ImportError:
        print("  dp-accounting is not installed: pip install dp-accounting in its own environment")
        return
    for i in range(many):
        with Clock() as one:
            accountant = pld.PLDAccountant()
            for b in np.flatnonzero(table[i]):
                event = dp_event.PoissonSampledDpEvent(
                    RATE, dp_event.GaussianDpEvent(float(NOISE[b]))
                )
                accountant.compose(event, int(table[i, b]))
            other = accountant.get_epsilon(DELTA)
        gap = abs(other / exact.epsilon[i] - 1)
        print(f"  dp-accounting, record {i}: {one.cpu:.2f} s, ε off by {gap:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--records", type=int, default=1_000_000)
    given = parser.parse_args()
    every = {
        "counts": lambda: measure_counts(given.records),
        "norms": lambda: measure_norms(given.records),
        "accuracy": measure_accuracy,
        "grid": measure_grid,
        "peers": measure_peers,
    }
    for name in given.names or every:
        every[name]()


if __name__ == "__main__":
    main()
