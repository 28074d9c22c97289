"""The programs behind one face: a step, its composition, and what people ask of it.

Each program is asked in three stages, so that what may be kept between calls is kept for everyone:
`step` is made from the parameters, `composed` from a step and a count, and δ, ε or a curve are
asked of what was composed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import symdp
from benchmarks.peers.answers import Answer, Kind, NotCoveredError
from benchmarks.peers.jobs import Job

CHECKED = (0, 50, 100, 150, 199)  # places of a curve at which it is compared with truth


# It asks for other versions beside it than Google's library, and runs with either.
PRV_FOLDER = Path(__file__).resolve().parents[2] / ".peers" / "prv-accountant"


@contextmanager
def _within(folder: Path) -> Iterator[None]:
    """Import from a folder too, before all others."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


NO_SCHEME = {
    "substitution": "no substitution of a sampled record",
    "allocation": "no random allocation",
}


class Program(Protocol):
    """What the worker asks of a program."""

    def step(self, job: Job) -> Any: ...
    def composed(self, step: Any, count: int) -> Any: ...
    def delta(self, composed: Any, epsilon: float) -> Answer: ...
    def epsilon(self, composed: Any, delta: float) -> Answer: ...
    def curve(self, composed: Any, epsilons: Sequence[float]) -> Answer: ...


class Symdp:
    """symdp by one of its methods; the compiled mechanism is kept by symdp itself."""

    def __init__(self, method: str, direction: str = "remove") -> None:
        self._method, self._direction = method, direction

    def step(self, job: Job) -> Any:
        return job.mechanism()

    def composed(self, step: Any, count: int) -> Any:
        return symdp.compose(step, count)

    def delta(self, composed: Any, epsilon: float) -> Answer:
        return _of(composed.delta(epsilon, method=self._method, direction=self._direction))

    def epsilon(self, composed: Any, delta: float) -> Answer:
        return _of(composed.epsilon(delta, method=self._method, direction=self._direction))

    def curve(self, composed: Any, epsilons: Sequence[float]) -> Answer:
        found = composed.delta(epsilons, method=self._method, direction=self._direction)
        return Answer(_checked(found.delta), _kind(found[0]))


class SymdpGrid:
    """symdp's Fourier accountant on a grid that is given."""

    def __init__(self, reach: float, points: int) -> None:
        self._grid = import_module("symdp.methods.fourier").Fourier(reach, points)

    def step(self, job: Job) -> Any:
        return job.mechanism()

    def composed(self, step: Any, count: int) -> Any:
        return symdp.compose(step, count).law("remove")

    def delta(self, composed: Any, epsilon: float) -> Answer:
        found = self._grid.log_delta(composed, epsilon)
        ends = (math.exp(found.log_lower), math.exp(found.log_upper))
        return Answer(math.exp(found.log_delta), "estimate", *ends, note=found.advice)

    def epsilon(self, composed: Any, delta: float) -> Answer:
        raise NotCoveredError("only δ is asked for on a given grid")

    def curve(self, composed: Any, epsilons: Sequence[float]) -> Answer:
        return Answer(_checked([self.delta(composed, e).value for e in epsilons]), "estimate")


class GooglePld:
    """Google's privacy loss distributions; δ is the larger of both directions."""

    def __init__(self, interval: float, algorithm: str) -> None:
        self._pld = import_module("dp_accounting.pld.privacy_loss_distribution")
        self._replace = self._pld.NeighborRel.REPLACE_ONE
        self._kind: Kind = "lower" if algorithm == "optimistic" else "upper"
        self._options = {
            "value_discretization_interval": interval,
            "use_connect_dots": algorithm == "dots",
            "pessimistic_estimate": algorithm != "optimistic",
        }

    def step(self, job: Job) -> Any:
        if job.scheme == "allocation":
            raise NotCoveredError("no random allocation")
        if job.noise == "gaussian":
            options = dict(self._options)
            if job.scheme != "poisson":
                options["neighboring_relation"] = self._replace
            return self._pld.from_gaussian_mechanism(job.sigma, sampling_prob=job.q, **options)
        if job.noise == "laplace":
            return self._pld.from_laplace_mechanism(job.sigma, sampling_prob=job.q, **self._options)
        raise NotCoveredError(
            "no such mechanism; it would want the distribution function of the loss by hand"
        )

    def composed(self, step: Any, count: int) -> Any:
        return step.self_compose(count)

    def delta(self, composed: Any, epsilon: float) -> Answer:
        return Answer(float(composed.get_delta_for_epsilon(epsilon)), self._kind)

    def epsilon(self, composed: Any, delta: float) -> Answer:
        return Answer(float(composed.get_epsilon_for_delta(delta)), self._kind)

    def curve(self, composed: Any, epsilons: Sequence[float]) -> Answer:
        return Answer(_checked(composed.get_delta_for_epsilon(list(epsilons))), self._kind)


class GoogleRdp:
    """Google's Rényi accountant at its default orders."""

    def __init__(self) -> None:
        self._events = import_module("dp_accounting")
        self._rdp = import_module("dp_accounting.rdp")

    def step(self, job: Job) -> Any:
        if job.scheme != "poisson":
            raise NotCoveredError(NO_SCHEME[job.scheme])
        noise = {"gaussian": "GaussianDpEvent", "laplace": "LaplaceDpEvent"}.get(job.noise)
        if noise is None:
            raise NotCoveredError("no such mechanism")
        event = getattr(self._events, noise)(job.sigma)
        return event if job.q == 1.0 else self._events.PoissonSampledDpEvent(job.q, event)

    def composed(self, step: Any, count: int) -> Any:
        accountant = self._rdp.RdpAccountant()
        event = self._events.SelfComposedDpEvent(step, count)
        if not accountant.supports(event):
            raise NotCoveredError("no such mechanism once it is sampled")
        return accountant.compose(event)

    def delta(self, composed: Any, epsilon: float) -> Answer:
        return Answer(float(composed.get_delta(epsilon)), "upper")

    def epsilon(self, composed: Any, delta: float) -> Answer:
        return Answer(float(composed.get_epsilon(delta)), "upper")

    def curve(self, composed: Any, epsilons: Sequence[float]) -> Answer:
        return Answer(_checked([composed.get_delta(e) for e in epsilons]), "upper")


class PrvAccountant:
    """Microsoft's prv-accountant at an absolute error of ε; remove direction."""

    def __init__(self, eps_error: float) -> None:
        with _within(PRV_FOLDER):
            self._prv = import_module("prv_accountant")
        self._error = eps_error

    def step(self, job: Job) -> Any:
        if job.scheme != "poisson":
            raise NotCoveredError(NO_SCHEME[job.scheme])
        if job.noise == "gaussian":
            loss = self._prv.PoissonSubsampledGaussianMechanism(
                sampling_probability=job.q, noise_multiplier=job.sigma
            )
        elif job.noise == "laplace" and job.q == 1.0:
            loss = self._prv.LaplaceMechanism(mu=1.0 / job.sigma)
        else:
            raise NotCoveredError(
                "no such mechanism; it would want the distribution function of the loss and a "
                "Rényi curve by hand"
            )
        return self._prv.PRVAccountant(
            prvs=[loss],
            max_self_compositions=[job.count],
            eps_error=self._error,
            delta_error=job.delta_error,
        )

    def composed(self, step: Any, count: int) -> Any:
        # What compute_delta and compute_epsilon compose anew at each call is kept here.
        return step, step.compute_composition([count])

    def delta(self, composed: Any, epsilon: float) -> Answer:
        accountant, losses = composed
        middle = losses.compute_delta_estimate(epsilon)
        low = losses.compute_delta_estimate(epsilon + accountant.eps_error)
        high = losses.compute_delta_estimate(epsilon - accountant.eps_error)
        slack = accountant.delta_error
        return Answer(float(middle), "estimate", float(low - slack), float(high + slack))

    def epsilon(self, composed: Any, delta: float) -> Answer:
        accountant, losses = composed
        low, middle, high = losses.compute_epsilon(
            delta, accountant.delta_error, accountant.eps_error
        )
        return Answer(middle, "estimate", low, high)

    def curve(self, composed: Any, epsilons: Sequence[float]) -> Answer:
        _, losses = composed
        return Answer(_checked([losses.compute_delta_estimate(e) for e in epsilons]), "estimate")


class Autodp:
    """autodp's Rényi accountant; its characteristic functions ask SciPy for what 1.14 removed."""

    def __init__(self) -> None:
        self._mechanisms = import_module("autodp.mechanism_zoo")
        self._rules = import_module("autodp.transformer_zoo")

    def step(self, job: Job) -> Any:
        if job.scheme != "poisson":
            raise NotCoveredError(NO_SCHEME[job.scheme])
        if job.noise == "gaussian":
            step = self._mechanisms.GaussianMechanism(sigma=job.sigma)
        elif job.noise == "laplace":
            step = self._mechanisms.LaplaceMechanism(b=job.sigma)
        else:
            raise NotCoveredError("no such mechanism")
        if job.q == 1.0:
            return step
        # Its tight bound is known to it for Gaussian noise alone.
        tight = job.noise == "gaussian"
        return self._rules.AmplificationBySampling()(step, job.q, improved_bound_flag=tight)

    def composed(self, step: Any, count: int) -> Any:
        return self._rules.Composition()([step], [count])

    def delta(self, composed: Any, epsilon: float) -> Answer:
        return Answer(float(composed.approx_delta(epsilon)), "upper")

    def epsilon(self, composed: Any, delta: float) -> Answer:
        return Answer(float(composed.get_approxDP(delta)), "upper")

    def curve(self, composed: Any, epsilons: Sequence[float]) -> Answer:
        return Answer(_checked([composed.approx_delta(e) for e in epsilons]), "upper")


class PldAccounting:
    """PLD_accounting: random allocation, and Google's distributions sampled by rules of its own."""

    def __init__(self, interval: float) -> None:
        self._own = import_module("PLD_accounting")
        self._pld = import_module("dp_accounting.pld.privacy_loss_distribution")
        self._interval = interval

    def step(self, job: Job) -> Any:
        if job.scheme == "allocation":
            if job.noise != "gaussian":
                raise NotCoveredError("only Gaussian noise has a call of its own")
            return self._own.gaussian_allocation_pld(
                params=self._own.PrivacyParams(
                    sigma=job.sigma, num_steps=round(1.0 / job.q), epsilon=job.epsilon
                ),
                config=self._own.AllocationSchemeConfig(loss_discretization=self._interval),
            )
        known = {
            "gaussian": self._pld.from_gaussian_mechanism,
            "laplace": self._pld.from_laplace_mechanism,
        }
        if job.scheme != "poisson":
            raise NotCoveredError(NO_SCHEME[job.scheme])
        if job.noise not in known:
            raise NotCoveredError("no such mechanism; it would want the loss on a grid by hand")
        if job.q == 1.0:
            raise NotCoveredError("nothing is sampled: this is Google's own distribution")
        plain = known[job.noise](job.sigma, value_discretization_interval=self._interval)
        return self._own.subsample_pld(pld=plain, sampling_probability=job.q)

    def composed(self, step: Any, count: int) -> Any:
        return step if count == 1 else step.self_compose(count)

    def delta(self, composed: Any, epsilon: float) -> Answer:
        return Answer(float(composed.get_delta_for_epsilon(epsilon)), "upper")

    def epsilon(self, composed: Any, delta: float) -> Answer:
        return Answer(float(composed.get_epsilon_for_delta(delta)), "upper")

    def curve(self, composed: Any, epsilons: Sequence[float]) -> Answer:
        return Answer(_checked(composed.get_delta_for_epsilon(list(epsilons))), "upper")


class Riskcal(GooglePld):
    """riskcal, which reads an attack's best advantage, δ(0), off Google's distributions."""

    def __init__(self, interval: float) -> None:
        super().__init__(interval, "dots")
        self._analysis = import_module("riskcal.analysis")

    def delta(self, composed: Any, epsilon: float) -> Answer:
        if epsilon != 0.0:
            raise NotCoveredError("trade-off curves and advantages alone")
        return Answer(float(self._analysis.get_advantage_from_pld(composed)), "upper")


PROGRAMS: dict[str, type[Any]] = {
    "symdp": Symdp,
    "symdp grid": SymdpGrid,
    "google": GooglePld,
    "google rdp": GoogleRdp,
    "prv": PrvAccountant,
    "autodp": Autodp,
    "allocation": PldAccounting,
    "riskcal": Riskcal,
}


def _of(guarantee: Any) -> Answer:
    value, low, high = guarantee.value, guarantee.lower, guarantee.upper
    if hasattr(guarantee, "lower_decimal"):  # proved ends have more digits than a double
        low, high = Fraction(guarantee.lower_decimal), Fraction(guarantee.upper_decimal)
        value = float((low + high) / 2)
    return Answer(value, _kind(guarantee), low, high, guarantee.advice)


def _kind(guarantee: Any) -> Kind:
    kinds: dict[str, Kind] = {"exact": "exact", "bound": "upper", "estimate": "estimate"}
    return kinds[guarantee.kind]


def _checked(deltas: Sequence[Any]) -> tuple[float, ...]:
    return tuple(float(deltas[k]) for k in CHECKED)
