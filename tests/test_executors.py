"""What an executor's workers answer is what is answered here, in the same order."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest

from symdp import AccuracyError, mechanisms, sweep
from symdp.individual import from_counts, from_mechanisms

GRID = {"sigma": [2, 3, 4, 5, 6]}


class _Broken(Executor):
    """A pool whose worker was killed."""

    def submit(self, *_, **__) -> Future:
        future: Future = Future()
        future.set_exception(BrokenProcessPool("killed"))
        return future


def pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def test_threads_give_the_rows_in_order():
    steps, deltas = [1, 30], [1e-5, 1e-6]
    seen = []
    with ThreadPoolExecutor(2) as executor:
        shared = sweep(
            mechanisms.gaussian, GRID, steps, delta=deltas, executor=executor,
            progress=lambda *at: seen.append(at),
        )  # fmt: skip
    assert shared.to_csv() == sweep(mechanisms.gaussian, GRID, steps, delta=deltas).to_csv()
    assert seen[-1] == (10, 10)


@pytest.mark.slow
def test_processes_give_the_rows_in_order():
    steps, deltas = [1, 30], [1e-5, 1e-6]
    with pool(2) as executor:
        shared = sweep(mechanisms.gaussian, GRID, steps, delta=deltas, executor=executor)
    assert shared.to_csv() == sweep(mechanisms.gaussian, GRID, steps, delta=deltas).to_csv()


@pytest.mark.slow
@pytest.mark.parametrize("by", ["levels", "mechanisms"])
def test_records_are_the_records(by):
    counts = np.arange(14).reshape(7, 2) * 10
    if by == "levels":
        rate = np.linspace(0.01, 0.03, 7)[:, None]
        accountant = from_counts([1.0, 2.0], counts, rate, ids=[f"r{k}" for k in range(7)])
    else:
        kinds = [mechanisms.gaussian(sigma=4), mechanisms.laplace(b=50)]
        accountant = from_mechanisms(kinds, counts[:3])
    with pool(2) as executor:
        shared = accountant.epsilon(1e-5, executor=executor)
    whole = accountant.epsilon(1e-5)
    np.testing.assert_allclose(shared.epsilon, whole.epsilon, rtol=1e-12)
    assert shared.columns()["id"].tolist() == whole.columns()["id"].tolist()


def test_a_worker_that_ended_is_said():
    with pytest.raises(AccuracyError, match="a worker ended before its part"):
        sweep(mechanisms.gaussian, GRID, 10, delta=1e-5, executor=_Broken())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_of_two_workers():
    distributed = pytest.importorskip("distributed")
    sigmas = np.linspace(5, 50, 1000)
    counts = np.random.default_rng(3).integers(0, 500, (100_000, 3))
    records = from_counts([1.0, 2.0, 4.0], counts, 0.01)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        table = sweep(mechanisms.gaussian, {"sigma": sigmas}, 10, delta=1e-5, executor=executor)
        answers = records.epsilon(1e-5, executor=executor)
    text = sweep(mechanisms.gaussian, {"sigma": sigmas[:3]}, 10, delta=1e-5).to_csv()
    assert table.to_csv().startswith(text)
    assert len(table) == 1000
    few = from_counts([1.0, 2.0, 4.0], counts[::10_000], 0.01).epsilon(1e-5).epsilon
    np.testing.assert_allclose(answers.epsilon[::10_000], few, rtol=1e-9)
