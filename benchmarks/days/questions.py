"""Eighty questions that people ask in a day: what is accounted for, and what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import symdp
from benchmarks.peers.jobs import Job

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CURVE = tuple(3.0 * k / 199 for k in range(200))
POISSON = {"scheme": "poisson", "rate": "1/100"}


@dataclass(frozen=True)
class Step:
    """A mechanism with its values, how it is sampled, and how often it is taken.

    Attributes
    ----------
    mechanism
        The name of a built-in one, or of a file in examples/.
    values
        Numbers or ratios, taken exactly; all scales of noise first.
    sampling
        What `Mechanism.subsample` takes; empty for none.
    count
        How often.
    under
        The neighbouring relation, where it is another one than the mechanism's own.
    """

    mechanism: str
    values: Mapping[str, str]
    sampling: Mapping[str, Any] = field(default_factory=dict)
    count: int = 1
    under: str = ""

    def made(self, places: int) -> symdp.Mechanism:
        """Return the mechanism, its first value moved by so many ten-thousandths."""
        first = next(iter(self.values), "")
        values = {
            name: Fraction(value) * (1 + Fraction(places, 10_000)) if name == first else value
            for name, value in self.values.items()
        }
        made = _known(self.mechanism)(**values)
        made = made.under(self.under) if self.under else made
        return made.subsample(**self.sampling) if self.sampling else made


def _known(name: str) -> symdp.Mechanism:
    if name.endswith(".toml"):
        return symdp.load(EXAMPLES / name)
    found: symdp.Mechanism = getattr(symdp.mechanisms, name)
    return found


@dataclass(frozen=True)
class Question:
    """What is asked of a composition.

    Attributes
    ----------
    name
        What people would call it.
    steps
        What is composed.
    ask
        "delta", "epsilon", "curve" (δ at 200 ε), "calibrate" (the first value of the one step that
        meets ε and δ) or "records" (ε of three records that took parts of the steps).
    at
        ε or δ, or both.
    """

    name: str
    steps: tuple[Step, ...]
    ask: str
    at: tuple[float, ...]

    def answer(self, places: int = 0) -> tuple[float, ...]:
        """Ask it in a fresh composition; `places` > 0 moves parameters to others never seen."""
        return _ASKED[self.ask](self, places)

    def composed(self, places: int = 0) -> symdp.Composition:
        """Return the composition."""
        return symdp.compose([(step.made(places), step.count) for step in self.steps])

    def job(self) -> Job | None:
        """Return it as peers are asked, None where no peer has such a question."""
        (step, *others) = self.steps
        noise, rate = step.mechanism.removesuffix(".toml"), step.sampling.get("rate", "1")
        plain = step.sampling in ({}, {"scheme": "poisson", "rate": rate}) and not step.under
        known = noise in {"gaussian", "laplace"} and self.ask in {"delta", "epsilon", "curve"}
        if others or not (plain and known):
            return None
        scale = next(iter(step.values.values()))
        return Job(self.name, self.name, "", noise, scale, rate, step.count, self.at[0])


def _calibrated(question: Question, places: int) -> tuple[float, ...]:
    (step,) = question.steps
    name = next(iter(step.values))
    free = _known(step.mechanism)(**{k: v for k, v in step.values.items() if k != name})
    free = free.subsample(**step.sampling) if step.sampling else free
    epsilon, delta = question.at
    moved = epsilon * (1.0 + places / 10_000)
    found = symdp.calibrate(free, name, step.count, epsilon=moved, delta=delta)
    return (float(found.value),)


def _of_records(question: Question, places: int) -> tuple[float, ...]:
    kinds = [step.made(places) for step in question.steps]
    counts = [[step.count // share for step in question.steps] for share in (1, 2, 10)]
    found = symdp.individual.from_mechanisms(kinds, counts).epsilon(question.at[0])
    return tuple(found.epsilon.tolist())


_ASKED: dict[str, Callable[[Question, int], tuple[float, ...]]] = {
    "delta": lambda q, k: (q.composed(k).delta(q.at[0]).delta,),
    "epsilon": lambda q, k: (q.composed(k).epsilon(q.at[0]).epsilon,),
    "curve": lambda q, k: tuple(q.composed(k).delta(CURVE).delta.tolist()),
    "calibrate": _calibrated,
    "records": _of_records,
}

_NOISES = {
    "adaptive_clipping": {"z": "2", "sigma_b": "10"},
    "discrete_gaussian": {"sigma": "4"},
    "discrete_laplace": {"b": "5"},
    "gaussian": {"sigma": "2"},
    "gumbel": {"b": "5"},
    "laplace": {"b": "5"},
    "logistic": {"s": "3"},
    "negative_binomial": {"p": "9/10", "r": "5"},
    "skellam": {"mu": "20"},
    "student_t": {"s": "3", "nu": "5"},
}
_LAWS = {
    "approximate_dp": {"epsilon_0": "1/10", "delta_0": "1/1000000"},
    "bounded_range": {"epsilon_0": "1/2", "u": "1/3"},
    "exponential": {"epsilon_0": "1/5"},
    "gnmax": {"sigma": "20"},
    "k_ary_randomized_response": {"epsilon_0": "1/2", "k": "5"},
    "permute_and_flip": {"epsilon_0": "1/5"},
    "randomized_response": {"epsilon_0": "1/2"},
    "staircase": {"epsilon_0": "1/2", "gamma_0": "1/3"},
    "sparse_histogram": {"sigma": "2", "tau": "12", "j": "1", "m": "1"},
    "zcdp": {"rho": "1/100"},
}
_EVERY = {"gaussian": "2", "laplace": "5", "logistic.toml": "3", "discrete_gaussian": "4"}
_LETTER = {"gaussian": "sigma", "discrete_gaussian": "sigma", "laplace": "b", "logistic.toml": "s"}


def _one(
    name: str,
    ask: str,
    at: float | Sequence[float],
    mechanism: str,
    values: Mapping[str, str],
    sampling: Mapping[str, Any] | None = None,
    count: int = 1,
    under: str = "",
) -> Question:
    step = Step(mechanism, dict(values), dict(sampling or {}), count, under)
    return Question(name, (step,), ask, (at,) if isinstance(at, int | float) else tuple(at))


def _built_in() -> list[Question]:
    found = []
    for name, values in _NOISES.items():
        # Noise of one side never goes below a δ of its own: no ε answers for a smaller one.
        at, at_sampled = (1e-3, 1e-3) if name == "negative_binomial" else (1e-5, 1e-6)
        found.append(_one(f"{name}, 10 steps", "epsilon", at, name, values, None, 10))
        sampled = f"{name}, sampled, 1000 steps"
        found.append(_one(sampled, "epsilon", at_sampled, name, values, POISSON, 1000))
    for name, values in _LAWS.items():
        found.append(_one(f"{name}, 10 steps", "epsilon", 1e-4, name, values, None, 10))
    for name, value in _EVERY.items():
        values = {_LETTER[name]: value}
        plain = name.removesuffix(".toml")
        for count, at in ((1, 0.1), (100, 1.5)):
            text = f"{plain}, {count} step{'s' * (count > 1)}"
            found.append(_one(text, "delta", at, name, values, None, count))
            found.append(_one(f"{text}, sampled", "delta", at, name, values, POISSON, count))
    return found


def _of_jobs() -> list[Question]:
    normal, readme = "gaussian", {"scheme": "poisson", "rate": "256/60000"}
    tutorial = {"sigma": "1.12"}
    job = {"sigma": "1.5"}
    no_average = {"scheme": "without_replacement", "rate": "1/100"}
    averaged = {**POISSON, "released": "average", "records": 1000}
    return [
        _one("tutorial of TensorFlow Privacy", "epsilon", 1e-5, normal, tutorial, readme, 14063),
        _one("the same, curve of 200", "curve", 0.0, normal, tutorial, readme, 14063),
        _one("δ of a long run", "delta", 1.0, normal, job, POISSON, 10_000),
        _one("ε of a long run", "epsilon", 1e-5, normal, job, POISSON, 10_000),
        _one("curve of a long run", "curve", 0.0, normal, job, POISSON, 10_000),
        _one("one epoch", "epsilon", 1e-5, normal, {"sigma": "1"}, POISSON, 100),
        _one("five rounds of many users", "epsilon", 1e-6, normal, {"sigma": "1"},
             {"scheme": "poisson", "rate": "1/10"}, 5),
        _one("little noise", "epsilon", 1e-5, normal, {"sigma": "1/2"}, POISSON, 1000),
        _one("much noise", "epsilon", 1e-5, normal, {"sigma": "10"}, POISSON, 1000),
        _one("a file of one's own", "delta", 2.5, "logistic.toml", {"s": "4"}, None, 50),
        _one("a file, curve", "curve", 0.0, "logistic.toml", {"s": "4"}, None, 50),
        _one("counts of a survey", "delta", 1.0, "discrete_laplace", {"b": "20"}, None, 30),
        _one("queries with Laplace noise", "epsilon", 1e-6, "laplace", {"b": "20"}, None, 100),
        _one("Laplace, ε where mass is", "delta", 1.0, "laplace", {"b": "28"}, None, 30),
        _one("a census", "epsilon", 1e-10, "discrete_gaussian", {"sigma": "10"}, None, 20),
        _one("fixed batches", "epsilon", 1e-5, normal, {"sigma": "4"}, no_average, 1000),
        _one("drawn with replacement", "epsilon", 1e-5, normal, {"sigma": "4"},
             {"scheme": "with_replacement", "batch": 10, "rate": "1/1000"}, 1000),
        _one("a record replaced", "epsilon", 1e-5, normal, job, POISSON, 1000, "substitution"),
        _one("batches with a largest size", "epsilon", 1e-5, normal, job,
             {"scheme": "truncated_poisson", "rate": "1/100", "batch": 130, "records": 10_000},
             1000),
        _one("averages", "epsilon", 1e-5, normal, job, averaged, 1000),
        _one("one of 100 batches", "epsilon", 1e-5, normal, job,
             {"scheme": "random_allocation", "steps": 100}),
        _one("a family of 4", "epsilon", 1e-5, normal, {"sigma": "4"}, {**POISSON, "group": 4},
             1000),
        _one("a group of 50", "epsilon", 1e-5, normal, {"sigma": "4"}, {**POISSON, "group": 50},
             1000),
        _one("noise for ε = 3", "calibrate", (3.0, 1e-5), normal, {"sigma": "1"}, POISSON, 1000),
        _one("noise for one release", "calibrate", (1.0, 1e-6), normal, {"sigma": "1"}),
        _one("scale of Laplace noise", "calibrate", (1.0, 1e-6), "laplace", {"b": "1"}, None, 10),
    ]  # fmt: skip


def _mixed() -> list[Question]:
    def levels(many: int, count: int) -> tuple[Step, ...]:
        scales = [1 + Fraction(k, many) for k in range(many)]
        return tuple(Step("gaussian", {"sigma": str(s)}, POISSON, count) for s in scales)

    epochs = tuple(
        Step("gaussian", {"sigma": str(1 + Fraction(k, 300))},
             {"scheme": "poisson", "rate": str(Fraction(1, 100) + Fraction(k, 10**5))})
        for k in range(300)
    )  # fmt: skip
    laplace = [Step("laplace", {"b": str(20 + k)}) for k in range(30)]
    normal = Step("gaussian", {"sigma": "20"})
    survey = Step("laplace", {"b": "10"}, {}, 10)
    training = Step("gaussian", {"sigma": "1.5"}, POISSON, 1000)
    records = tuple(Step("gaussian", {"sigma": s}, POISSON, 300) for s in ("1", "2"))
    slow = tuple(Step("logistic", {"s": s}, POISSON, 100) for s in ("1", "3"))
    return [
        Question("a survey and a training", (survey, training), "epsilon", (1e-5,)),
        Question("100 levels of noise", levels(100, 10), "epsilon", (1e-5,)),
        Question("3000 levels of noise", levels(3000, 1), "epsilon", (1e-5,)),
        Question("300 levels and rates", epochs, "epsilon", (1e-5,)),
        Question("30 Laplace and a normal", (*laplace, normal), "delta", (1.0,)),
        Question("three records, normal", records, "records", (1e-5,)),
        Question("three records, logistic", slow, "records", (1e-5,)),
        _one("noise added twice", "curve", 0.0, "gaussian", {"sigma": "3"}, None, 2),
    ]


QUESTIONS = (*_built_in(), *_of_jobs(), *_mixed())


def named(name: str) -> Question:
    """Return the question of that name."""
    return next(question for question in QUESTIONS if question.name == name)
