"""Public objects are pickled and copied, before and after questions, and answer the same."""

from __future__ import annotations

import copy
import math
import pickle
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import symdp
from symdp import Mechanism, audit, compare, compose, individual, mechanisms
from symdp.individual import Recorder
from symdp.methods import METHODS, accountant
from symdp.numeric.answer import Answer
from symdp.questions.design.integers import design
from symdp.questions.design.plan import plan

COPIES = {
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}
BENT = symdp.Mechanism.from_toml(
    'name = "bent"\nvariable = "x"\nsupport = ["-oo", "oo"]\n'
    '[noise]\ndensity = "exp(-x**2/2 - x**4/10)"\nnormalize = true\n'
)
BOX = symdp.Mechanism.from_toml(
    'name = "box"\nvariable = "x"\nsupport = ["-w", "w"]\n'
    '[parameters]\nw = "positive"\n[noise]\ndensity = "1/(2*w)"\n'
)
RADIUS = sp.Symbol("r", positive=True)
ON_VECTORS = symdp.Mechanism.radial((1 + RADIUS**2) ** -4, RADIUS, dimension=3)
COIN = symdp.Mechanism.local([["3/4", "1/4"], ["1/4", "3/4"]])
NOISE = mechanisms.gaussian(sigma=2)
CURVE = Mechanism.from_renyi_points([(2, 0.1), (8, 0.5), (32, 2.5)])
COUNTED = individual.from_counts([1.0, 4.0], [[100, 0], [50, 50]], 0.01)


def numbers(one, *names):
    return [np.asarray(getattr(one, name)).tolist() for name in names]


def steps(one):
    found = [one.epsilon(1e-3).epsilon, one.delta([0.5, 1.0]).delta.tolist(), one.renyi(2.0)]
    return [*found, one.certify(0.5, 5).upper_decimal]


def profile(one):
    return [one.epsilon(1e-3).epsilon, one.delta(0.5).log_delta]


def derived(one):
    return [str(one.cumulant(2)), one.to_text(order=1, only=("loss",)), repr(one)]


def records(one):
    return [one.epsilon(1e-5).epsilon.tolist(), one.delta(1.0).log_delta.tolist()]


def spent(bound):
    """Charge a copy: the one that was copied is left as it was."""

    def ask(one):
        own, before = copy.copy(one), str(one.to_json())
        own.commit(bound)
        assert str(one.to_json()) == before != str(own.to_json())
        return [before, str(own.to_json())]

    return ask


def counted(one):
    own, before = copy.copy(one), len(one._buffer)
    own.step([1.0, 0.5, 0.1])
    assert len(one._buffer) == before
    return [own.steps, own.records, one.steps]


# Name -> what makes the object, and what is asked of it.
OBJECTS = {
    "density": (lambda: BENT, lambda m: profile(compose(m, 2))),
    "list": (lambda: mechanisms.randomized_response(epsilon_0=1), lambda m: profile(compose(m))),
    "open": (lambda: mechanisms.laplace, lambda m: [repr(m), profile(compose(m(b=2), 2))]),
    "curve alone": (lambda: CURVE, lambda m: profile(compose(m))),
    "claim": (
        lambda: compose(NOISE, 3).check_claim(5.0, 1e-3), lambda one: [one.verdict, one.to_json()],
    ),
    "noises of one size": (
        lambda: compare([NOISE], delta=1e-3, std=1)[0], lambda one: [one.size, one.delta],
    ),
    "pair": (NOISE.pair, lambda pair: [pair, hash(pair)]),
    "protection": (lambda: compose(NOISE).protection, lambda one: [one.sentence]),
    "steps of a normalized density": (lambda: compose(BENT, 5), profile),
    "normal steps": (lambda: compose(NOISE, 3), steps),
    "sampled steps": (lambda: compose(NOISE.subsample("poisson", "1/10"), 30), profile),
    "allocated steps": (
        lambda: compose(NOISE.subsample("random_allocation", steps=5), 2), profile,
    ),
    "steps with atoms": (lambda: compose(mechanisms.laplace(b=3), 4), steps),
    "whole numbers": (lambda: compose(mechanisms.discrete_gaussian(sigma=2), 3), profile),
    "heavy steps": (lambda: compose(mechanisms.student_t(nu=3, s=5), 20), profile),
    "lists": (lambda: compose(mechanisms.randomized_response(epsilon_0=1), 3), steps),
    "a curve's steps": (lambda: compose([CURVE, NOISE]), profile),
    "very many steps": (
        lambda: compose([(mechanisms.gaussian(sigma=5 + k / 50), 1) for k in range(150)]), profile,
    ),
    "training": (lambda: symdp.training(1000, 50, 2, noise_multiplier=1.1), profile),
    "parts": (lambda: symdp.Parallel({"a": compose(BENT, 2), "b": compose(NOISE)}), profile),
    "ledger": (lambda: symdp.Ledger([(BENT, 2), (NOISE, 3)]), profile),
    "entry": (
        lambda: symdp.Ledger([(NOISE, 3)]).entries[0], lambda one: [one, one.to_json()],
    ),
    "guarantee": (lambda: compose(BENT, 2).delta(0.5), lambda one: [one, repr(one)]),
    "certificate": (lambda: compose(NOISE, 2).certify(0.5, 5), lambda one: [one, one.lower]),
    "many answers": (
        lambda: compose(NOISE, 2).delta([0.5, 0.6]), lambda one: numbers(one, "delta", "upper"),
    ),
    "sweep": (
        lambda: symdp.sweep(mechanisms.gaussian, {"sigma": [2, 3]}, 3, epsilon=1),
        lambda table: [table.to_csv()],
    ),
    "calibration": (
        lambda: symdp.calibrate(mechanisms.gaussian, "sigma", 10, epsilon=1, delta=1e-5),
        lambda one: [one, repr(one)],
    ),
    "calibration to an attack": (
        lambda: symdp.calibrate(mechanisms.gaussian, "sigma", 1, advantage=0.1),
        lambda one: [one, repr(one)],
    ),
    "gradient": (
        lambda: compose(mechanisms.gaussian(sigma=2), 9).gradient(epsilon=1),
        lambda one: [repr(one), *(repr(slope) for slope in one.slopes)],
    ),
    "slope": (
        lambda: compose(mechanisms.gaussian(sigma=2), 9).gradient(epsilon=1).slopes[0],
        lambda one: [repr(one)],
    ),
    "plan": (
        lambda: plan(
            mechanisms.gaussian, "sigma", {"sigma": (9, 15)}, epsilon=1, delta=1e-5, n=10
        ),
        lambda one: [repr(one)],
    ),
    "design": (lambda: design(1, delta=1e-2, std=1), lambda one: [one.to_toml(), repr(one)]),
    "audit": (lambda: audit(90, 10, 100, 100), lambda one: [one, repr(one)]),
    "zCDP": (lambda: compose(NOISE, 2).zcdp(), lambda one: [one, one.to_json()]),
    "Gaussian privacy": (lambda: compose(NOISE, 2).gaussian_privacy(), lambda one: [one]),
    "search": (
        lambda: compose(NOISE).selection(5), lambda m: [compose(m).epsilon(1e-4).epsilon],
    ),
    "derivation": (lambda: symdp.derive(mechanisms.gaussian), derived),
    "derivation of a normalized density": (lambda: symdp.derive(BENT), derived),
    "cases": (lambda: symdp.derive(BOX), lambda d: [len(d.cases), d.to_text(1, ("loss",))]),
    "vectors": (lambda: symdp.derive(ON_VECTORS), lambda d: [str(d.loss), d.to_text(1, ("loss",))]),
    "local randomizer": (lambda: symdp.derive(COIN), lambda d: [str(d.common_mass), repr(d)]),
    "epoch": (
        lambda: symdp.derive(mechanisms.gaussian.subsample("random_allocation", steps=5)),
        lambda one: [str(one.cumulant(2)), repr(one)],
    ),
    "CGF": (lambda: symdp.derive(mechanisms.laplace).cgf, lambda one: [one]),
    "tails": (
        lambda: symdp.derive(mechanisms.gaussian).tails,
        lambda one: [one, list(one), repr(one)],
    ),
    "tail constant": (lambda: next(iter(symdp.derive(mechanisms.gaussian).tails)), lambda c: [c]),
    "piece": (lambda: symdp.derive(mechanisms.laplace).pieces[1], lambda one: [one]),
    "atom": (lambda: symdp.derive(mechanisms.laplace).atoms[0], lambda one: [one]),
    "records": (lambda: COUNTED, records),
    "records of kinds": (
        lambda: individual.from_mechanisms([BENT, NOISE], [[1, 2], [3, 0]]), records,
    ),
    "every record's answer": (lambda: COUNTED.epsilon(1e-5), lambda r: numbers(r, "epsilon")),
    "filter": (lambda: individual.GaussianFilter(budget=1), spent(0.1)),
    "odometer": (lambda: individual.Odometer([0.5, 1]), spent(0.1)),
    "Rényi filter": (
        lambda: individual.RenyiFilter([8.0, 16.0], epsilon=3.0, delta=1e-5), spent([0.1, 0.2]),
    ),
    "individual filter": (lambda: individual.IndividualFilter(3, budget=1), spent([0.1, 0.2, 9])),
    "decision": (lambda: individual.GaussianFilter(budget=1).ask(0.1), lambda one: [one]),
    "active set": (
        lambda: individual.IndividualFilter(2, budget=1).ask([0.1, 0.2]),
        lambda one: numbers(one, "scale", "active"),
    ),
    "μ of a step": (lambda: individual.step_mu(NOISE), lambda one: [one, repr(one)]),
    "error": (lambda: symdp.InputError("no"), lambda one: [str(one), one.exit_code]),
    "inaccuracy": (lambda: symdp.AccuracyError("no"), lambda one: [str(one), one.exit_code]),
}  # fmt: skip


@cache
def made(name):
    return OBJECTS[name][0]()


@pytest.mark.slow_cases(
    "density",
    "claim",
    "noises of one size",
    "sampled steps",
    "allocated steps",
    "whole numbers",
    "heavy steps",
    "a curve's steps",
    "very many steps",
    "parts",
    "ledger",
    "calibration",
    "search",
    "derivation",
    "derivation of a normalized density",
    "records",
    "records of kinds",
    "\\u03bc of a step",
    "epoch",
    "open",
    "Gaussian privacy",
    "normal steps",
    "design",
    "steps of a normalized density",
    "plan",
)
@pytest.mark.parametrize("name", OBJECTS)
def test_copies_answer_the_same(name):
    ask = OBJECTS[name][1]
    one = made(name)
    early = {how: again(one) for how, again in COPIES.items()}
    right = ask(one)
    for how, again in COPIES.items():
        assert type(again(one)) is type(one)
        # A copy makes its own laws; those of the first may have met other questions since.
        assert close(ask(early[how]), right), how
        assert close(ask(again(one)), right), how


def close(found, right):
    """Whether two answers are one: numbers but for the rounding of a sum in another order."""
    if isinstance(right, list):
        return len(found) == len(right) and all(map(close, found, right))
    if isinstance(right, float):
        return math.isclose(found, right, rel_tol=1e-11)
    return bool(found == right)


def test_a_recorder_is_copied_with_its_counts(tmp_path):
    run = Recorder(tmp_path / "run", 3, 1.0, 2.0, 0.01, grid="norm:8")
    run.step([1.0, 0.5, 0.1])
    right = counted(run)
    for again in COPIES.values():
        assert counted(again(run)) == right


@pytest.mark.slow_cases("prv", "tilted-prv", "buckets")
@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.make])
def test_accountants_are_copied(name):
    one = accountant(f"{name}:2" if METHODS[name].orders else name)
    law = compose(NOISE, 3).law("remove")
    right = one.log_delta(law, 1.0)
    for again in COPIES.values():
        assert again(one).log_delta(law, 1.0) == right == again(right)


@pytest.mark.slow_cases(
    "search", "\\u03bc of a step", "claim", "derivation of a normalized density"
)
@pytest.mark.parametrize("name", OBJECTS)
def test_what_is_printed_of_an_object_is_short(name):
    """A line or a few, never arrays, nor an address where Python found nothing to say."""
    shown = repr(made(name))
    assert len(shown) <= 310
    assert " object at 0x" not in shown
    assert "array(" not in shown or name == "active set"


@pytest.mark.parametrize(
    "name", ["every record's answer", "many answers", "sweep", "active set", "zCDP", "claim"]
)
def test_equal_answers_are_equal_whatever_time_they_took(name):
    one, other = OBJECTS[name][0](), OBJECTS[name][0]()
    assert one is not other
    assert one == other
    assert one != 3


def test_answers_of_other_records_differ():
    one = COUNTED.epsilon(1e-5)
    assert one != COUNTED.epsilon(1e-6)
    assert one != replace(one, extra={"mu": one.epsilon})
    assert replace(one, extra={"mu": one.epsilon}) == replace(one, extra={"mu": one.epsilon})
    assert compose(NOISE).delta([0.5, 1.0]) != compose(NOISE).delta([0.5, 1.1])


def test_every_documented_class_is_among_them():
    """What the reference names, and the two packages export, has an object here."""
    asked = {type(made(name)) for name in OBJECTS} | {Recorder, Answer}
    asked |= {type(accountant(f"{n}:2" if m.orders else n)) for n, m in METHODS.items() if m.make}
    text = "".join(p.read_text() for p in Path("docs").glob("reference*.md"))
    named = re.findall(r"autoclass:: (\S+)\.(\w+)", text)
    named += [("symdp", name) for name in symdp.__all__]
    named += [("symdp.individual", name) for name in individual.__all__]
    for module, name in named:
        found = getattr(import_module(module), name)
        if isinstance(found, type):
            assert any(issubclass(own, found) for own in asked), name


@pytest.mark.slow
def test_other_processes_answer_for_objects_that_were_asked():
    names = "steps of a normalized density", "sampled steps", "lists", "ledger", "parts"
    right = [profile(made(name)) for name in names]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(profile, map(made, names)))
    assert close(found, right)
