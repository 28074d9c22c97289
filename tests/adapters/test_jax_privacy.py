"""jax-privacy: its analyses and calibrations run unchanged with symdp's accountant."""

import pytest

accounting = pytest.importorskip("jax_privacy.accounting")

import symdp
from symdp.adapters.dp_accounting import SymdpAccountant

JOB = {"num_samples": 60000, "delta": 1e-5, "batch_size": 256}
NOISE = symdp.mechanisms.gaussian


class Symdp(accounting.DpAccountantConfig):
    def create_accountant(self):
        return SymdpAccountant()


OURS = accounting.DpsgdTrainingAccountant(Symdp())
PLD = accounting.DpsgdTrainingAccountant(accounting.PldAccountantConfig())


def params(**more):
    return accounting.DpParams(**{"noise_multipliers": 1.12} | JOB | more)


@pytest.mark.parametrize(
    ("more", "parts"),
    [
        ({}, [("1.12", "256/60000", 14063)]),
        ({"cycle_length": 4}, [("1.12", "256/15000", 3516)]),
        (
            {"noise_multipliers": [(0, 1.0), (1000, 1.5)]},
            [("1", "256/60000", 1000), ("1.5", "256/60000", 13063)],
        ),
        (
            {"sampling_method": accounting.SamplingMethod.FIXED_BATCH_SIZE},
            [("0.56", "256/60000", 14063)],
        ),
    ],
    ids=["poisson", "cyclic", "schedule", "fixed"],
)
def test_epsilon_is_the_exact_one_of_the_event_and_below_their_grid(more, parts):
    steps = [(NOISE(sigma=sigma).subsample("poisson", q), n) for sigma, q, n in parts]
    exact = symdp.compose(steps).epsilon(1e-5)
    found = OURS.compute_epsilon(14063, params(**more))
    assert exact.lower * (1 - 1e-9) <= found <= exact.upper * (1 + 1e-9)
    theirs = PLD.compute_epsilon(14063, params(**more))
    assert found <= theirs <= found * (1 + 1e-3)


def test_calibrated_noise_meets_the_budget():
    found = accounting.calibrate_noise_multiplier(
        target_epsilon=3,
        accountant=OURS,
        batch_sizes=256,
        num_updates=14063,
        num_samples=60000,
        target_delta=1e-5,
    )
    sigma = 0.968427416  # of `symdp calibrate`; their search stops within 0.01
    assert sigma <= found <= sigma + 0.02
    assert OURS.compute_epsilon(14063, params(noise_multipliers=found)) <= 3
