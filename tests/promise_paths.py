"""Every public way to a number, and what every promise is made of: mechanisms, and how to ask.

Run as a program it prints the table: which ways answer for which promise, and which refuse. With
--freeze it writes what it prints into promises.json, which the tests compare; a diff of that file
shows which way began to refuse, or to answer.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import sympy as sp
from atom_truths import step
from emitted import COMPILER, ENDINGS, NODE, by_node, compiled

import symdp
from symdp import mechanisms
from symdp.derive.derivation import derive_pair
from symdp.errors import AccuracyError, InputError, SymdpError
from symdp.individual import from_mechanisms
from symdp.individual.filters import Odometer
from symdp.individual.gaussian import log_profile, step_mu
from symdp.interrupt import time_limit
from symdp.methods import names
from symdp.model.mechanism import Mechanism
from symdp.page.card import make_card
from symdp.page.panel import Panel, panel_html
from symdp.page.report import section
from symdp.page.verification import analyse
from symdp.page.worked import sheets
from symdp.questions.certificate_file import certificate, check
from symdp.questions.tradeoff import bayes_error

X, K = sp.Symbol("x", real=True), sp.Symbol("k", integer=True)
WAVES = Mechanism.additive(
    sp.exp(-(X**2) / 8) * (2 + sp.cos(2 * sp.pi * X)), X, normalize=True, name="waves"
)
HUMPS = Mechanism.additive(
    sp.exp(-abs(abs(K) - 2) / 3), K, 2, "integers", normalize=True, name="humps"
)
LOST = Mechanism.from_pair(
    [Fraction(1, 100), Fraction(59, 100), Fraction(2, 5), 0],
    [0, Fraction(2, 5), Fraction(59, 100), Fraction(1, 100)],
    X,
    {"points": [0, 1, 2, 3]},
    "lost",
)
GAUSS, GUMBEL = mechanisms.gaussian(sigma=2), mechanisms.gumbel(b=4)
SAMPLED = GUMBEL.subsample("poisson", "1/5")


@dataclass(frozen=True)
class Promise:
    """A mechanism that speaks of some field, how often it is run, and where δ is asked."""

    step: Mechanism
    count: int
    epsilon: float


PROMISES = {
    "plain": Promise(GAUSS, 4, 1.0),
    "poisson": Promise(GAUSS.subsample("poisson", "1/10"), 30, 0.5),
    "substitution": Promise(GAUSS.under("substitution"), 4, 1.0),
    "zero out, truncated": Promise(
        GAUSS.subsample("truncated_poisson", "1/4", 4, records=12).under("zero_out"), 20, 1.0
    ),
    "fixed batch": Promise(GAUSS.subsample("without_replacement", "1/10"), 30, 1.0),
    "with replacement": Promise(GAUSS.subsample("with_replacement", "1/10", 2), 30, 2.0),
    "allocation": Promise(GAUSS.subsample("random_allocation", steps=10), 3, 0.5),
    "group": Promise(GAUSS.subsample("poisson", "1/10", group=3), 30, 1.0),
    "average": Promise(GAUSS.subsample("poisson", "1/2", records=6, released="average"), 20, 6.0),
    "several modes": Promise(WAVES, 30, 8.0),
    "several modes, sampled": Promise(HUMPS.subsample("poisson", "1/5"), 20, 2.0),
    "exactly": Promise(WAVES.shifted("exactly"), 30, 6.0),
    "skewed": Promise(GUMBEL, 20, 2.0),
    "skewed, sampled": Promise(SAMPLED, 40, 1.0),
    "up": Promise(SAMPLED.shifted("up"), 40, 0.5),
    "down": Promise(SAMPLED.shifted("down"), 40, 1.0),
    "either way": Promise(SAMPLED.shifted("either way"), 40, 1.0),
    "atoms": Promise(mechanisms.laplace(b=4).subsample("poisson", "1/5"), 40, 0.5),
    "atoms beside a density": Promise(step("clamped normal"), 40, 2.0),
    "infinite losses": Promise(LOST, 5, 0.5),
    "an average of several modes": Promise(
        Mechanism.additive(
            (sp.exp(-((X - 4) ** 2) / 2) + sp.exp(-((X + 4) ** 2) / 2)) / sp.sqrt(8 * sp.pi), X
        ).subsample("poisson", "1/2", records=3, released="average"),
        1,
        2.0,
    ),
}


@dataclass(frozen=True)
class Asked:
    """A promise with its composition, and what that says."""

    promise: Promise
    composition: Any
    delta: float
    sentence: str

    @classmethod
    def of(cls, promise: Promise) -> Asked:
        composition = symdp.compose(promise.step, promise.count)
        answer = composition.delta(promise.epsilon)
        return cls(promise, composition, answer.delta, answer.protection.sentence)


# A way returns δ, to how much of it, and "=" or, for bounds, "≥"; whom it says it protects; and,
# where it has them, the ends of its interval.
Found = tuple[Any, ...]


def _number(answer: Any, tolerance: float = 1e-9) -> Found:
    ends = "≥" if answer.kind == "bound" and answer.method != "contour" else "="
    if answer.kind == "estimate":
        ends = "~"
    return answer.delta, tolerance, ends, answer.protection.sentence, answer.lower, answer.upper


def _epsilon(asked: Asked) -> Found:
    found = asked.composition.epsilon(asked.delta)
    again = asked.composition.delta(found.epsilon)
    return again.delta, 1e-8, "=", found.protection.sentence


def _certify_epsilon(asked: Asked) -> Found:
    found = asked.composition.certify_epsilon(asked.delta, digits=5)
    return asked.composition.delta(found.epsilon).delta, 1e-3, "=", found.protection.sentence


def _file(asked: Asked) -> Found:
    made = certificate(asked.composition, epsilon=asked.promise.epsilon, digits=6)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof.json"
        path.write_text(json.dumps(made), encoding="utf-8")
        assert check(path).code == 0
    low, high = (float(made["claim"][end]) for end in ("lower", "upper"))
    return (low + high) / 2, 1e-5, "=", None, low, high


def _bayes(asked: Asked) -> Found:
    prior = 1.0 / (1.0 + math.exp(asked.promise.epsilon))
    return 1.0 - bayes_error(asked.composition, prior) / prior, 1e-7, "=", None


def _advantage(asked: Asked) -> Found:
    ratio = asked.composition.membership_advantage() / asked.composition.delta(0.0).delta
    return asked.delta * ratio, 1e-7, "=", None


def _trade_off(asked: Asked) -> Found:
    # No line 1 − δ(ε) − e^ε α lies above f: where f is that of the same attacks, some α meets it.
    alphas = [2.0**-k for k in range(1, 40)]
    misses = asked.composition.trade_off(alphas)
    height = math.exp(asked.promise.epsilon)
    met = max(1.0 - f - height * a for a, f in zip(alphas, misses, strict=True))
    return met, 0.5, "=", None


def _renyi(asked: Asked) -> Found:
    bounds = []
    for order in (1.5, 2, 3, 5, 9, 17):
        t = order - 1
        spent = t * (asked.composition.renyi(order) - asked.promise.epsilon)
        bounds.append(spent + t * math.log(t) - order * math.log(order))
    return math.exp(min(bounds)), 1e-9, "≥", None


def _gaussian_mu(asked: Asked) -> Found:
    mu = asked.composition.gaussian_privacy(asked.delta / 2).mu
    return math.exp(float(log_profile(_array(mu), _array(asked.promise.epsilon)))), 1e-6, "≥", None


def _array(value: float) -> Any:
    import numpy as np

    return np.asarray(value)


def _calibrate(asked: Asked) -> Found:
    p = asked.promise
    found = symdp.calibrate(p.step, "n", epsilon=p.epsilon, delta=asked.delta * (1 + 1e-9))
    assert found.value == p.count
    return _number(found.guarantee)


def _sweep(asked: Asked) -> Found:
    p = asked.promise
    return _number(symdp.sweep(p.step, {}, p.count, epsilon=p.epsilon).answers[0])


def _ledger(asked: Asked) -> Found:
    ledger = symdp.Ledger([(asked.promise.step, asked.promise.count)])
    again = symdp.Ledger.from_state_dict(json.loads(json.dumps(ledger.state_dict())))
    return _number(again.delta(asked.promise.epsilon))


def _individual(asked: Asked) -> Found:
    p = asked.promise
    found = from_mechanisms([p.step], [[p.count]]).delta(p.epsilon)
    return float(found.upper_ends().delta[0]), 1e-8, "=", found.protects


def _filter(asked: Asked) -> Found:
    """By a Gaussian filter: every step's μ, whose squares add up."""
    p = asked.promise
    mu = step_mu(p.step).mu * math.sqrt(p.count)
    return math.exp(float(log_profile(_array(mu), _array(p.epsilon)))), 1e-9, "≥", None


def _program(asked: Asked) -> Found:
    p = asked.promise
    code = symdp.derive(p.step).to_program("python")
    own = ModuleType("emitted")
    exec(compile(code, "emitted.py", "exec"), own.__dict__)
    try:
        found = float(own.delta(p.epsilon, p.count))
        ends = own.log_delta_ends(p.epsilon, p.count)
    except own.NoAnswerError as refusal:
        raise AccuracyError(str(refusal)) from None
    told = " ".join(code.split("Protects ", 1)[1].split()).split(". Written by")[0]
    return found, 1e-9, "=", told, *outwards(*ends)


def outwards(log_lower: float, log_upper: float) -> tuple[float, float]:
    """Return the ends of δ from those of its logarithm, which `exp` rounds."""
    return math.exp(log_lower) * (1 - 1e-15), math.exp(log_upper) * (1 + 1e-15)


def _in_language(language: str) -> Callable[[Asked], Found]:
    def found(asked: Asked) -> Found:
        p = asked.promise
        code = symdp.derive(p.step).to_program(language)
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / f"own.{ENDINGS[language]}"
            source.write_text(code, encoding="utf-8")
            if language == "c":
                line = [*compiled(source), f"epsilon={p.epsilon!r}", f"n={p.count}", "both"]
                ran = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
                if ran.returncode:
                    raise AccuracyError(ran.stderr.strip())
                upper = float(ran.stdout.split("delta = ")[1].split()[0])
                # An interval of more than 1e-6 of δ is told, and what is narrower is not.
                is_told = "delta >= " in ran.stdout
                told = (
                    ran.stdout.split("delta >= ")[1].split()[0] if is_told else upper * (1 - 1e-6)
                )
                return upper, 1e-9, "=", None, float(told), upper * (1 + 1e-14)
            asks = ("delta", "log_delta_ends")
            answer, ends = by_node(source, [(ask, p.epsilon, p.count, {}, "both") for ask in asks])
        if isinstance(answer, str):
            raise AccuracyError(answer)
        return answer, 1e-9, "=", None, *outwards(*ends)

    return found


def _train(asked: Asked) -> Found:
    """A run of as many steps, told in a trainer's words."""
    step, sampling = asked.promise.step, asked.promise.step.sampling
    if step.template != mechanisms.gaussian or sampling is None or sampling.group > 1:
        raise InputError("no training run")
    rate = sampling.rate if sampling.steps is None else Fraction(1, int(sampling.steps))
    batch, examples = int(rate.numerator), int(rate.denominator)
    if sampling.scheme == "with_replacement":
        batch = sampling.batch
    if sampling.records is not None:
        batch, examples = batch * sampling.records // examples, sampling.records
    steps = asked.promise.count * (1 if sampling.steps is None else int(sampling.steps))
    run = symdp.training(
        examples,
        batch,
        steps=steps,
        noise_multiplier=2,
        sampling=sampling.scheme,
        largest_batch=sampling.batch if sampling.scheme == "truncated_poisson" else None,
        relation=step.relation,
        released=sampling.released,
    )
    return _number(run.delta(asked.promise.epsilon))


def _report(asked: Asked) -> Found:
    results = analyse(asked.composition, asked.delta, digits=12, patience=2.0)
    blocks = section("a report", asked.composition, asked.delta, results, undrawn="no figures")
    (told,) = [b.text for b in blocks if getattr(b, "text", "").startswith("Protects ")]
    assert results.best is not None
    again = asked.composition.delta(results.best.epsilon).delta
    return again, 1e-7, "=", told.removeprefix("Protects ").removesuffix(".")


def _odometer(asked: Asked) -> Found:
    p = asked.promise
    mu = step_mu(p.step).mu
    spent = Odometer([mu * math.sqrt(p.count) * (1 + 1e-12)])
    spent.commit(mu, n=p.count)
    return math.exp(float(log_profile(_array(spent.bound), _array(p.epsilon)))), 1e-9, "≥", None


def _event(asked: Asked) -> Found:
    """There and back again; a peer's accountant is compared in the adapters' own tests."""
    try:
        from symdp.adapters.dp_accounting import composition_of, event_of
    except ImportError:
        raise InputError("dp-accounting is not installed") from None
    event, relation = event_of(asked.composition)
    return _number(composition_of(event, relation).delta(asked.promise.epsilon))


def _explore(asked: Asked) -> Found:
    p = asked.promise
    page = panel_html([Panel("title", p.step, {}, "", "")])
    found = re.search(r'id="panel-data">(.*?)</script>', page, re.S)
    assert found is not None
    (own,) = json.loads(found[1].replace("<\\/", "</"))["panels"]
    return asked.delta, 1.0, "=", own["protects"]  # its program is the one above


def _worked(asked: Asked) -> Found:
    p = asked.promise
    found = sheets(asked.composition, derive_pair(p.step), p.epsilon, 1, "remove")
    told = next(last for _, rows in found for first, _, last in rows if "δ (" in first)
    own = asked.composition.delta(p.epsilon, direction="remove").delta
    shown = float(told.replace("−", "-").replace("·10^", "e"))
    assert math.isclose(shown, own, rel_tol=1e-5), (told, own)
    return asked.delta, 1e-9, "=", None


def _card(asked: Asked) -> Found:
    card = make_card(asked.composition, title="a release", deltas=[asked.delta])
    epsilon = card["privacy_parameters"][0]["epsilon"]
    whose = card["neighboring_datasets"]["protects"]
    return asked.composition.delta(epsilon).delta, 1e-7, "=", whose


def _selection(asked: Asked) -> Found:
    best = symdp.compose(asked.composition.selection(mean=1))
    return best.delta(asked.promise.epsilon).delta, 1e-9, "≥", None


def _parallel(asked: Asked) -> Found:
    plain = symdp.compose(asked.promise.step, 1)
    found = symdp.Parallel([asked.composition, plain]).delta(asked.promise.epsilon)
    return found.delta, 1e-9, "=", None


def _of_method(name: str) -> Callable[[Asked], Found]:
    return lambda asked: _number(asked.composition.delta(asked.promise.epsilon, name))


WAYS: dict[str, Callable[[Asked], Found]] = {
    "delta": lambda asked: _number(asked.composition.delta(asked.promise.epsilon)),
    "epsilon": _epsilon,
    "certify": lambda a: _number(a.composition.certify(a.promise.epsilon, digits=5), 1e-4),
    "certify_epsilon": _certify_epsilon,
    "certificate file": _file,
    "trade_off": _trade_off,
    "bayes_error": _bayes,
    "advantage": _advantage,
    "renyi": _renyi,
    "gaussian_privacy": _gaussian_mu,
    "calibrate n": _calibrate,
    "sweep": _sweep,
    "ledger": _ledger,
    "individual": _individual,
    "filter by step_mu": _filter,
    "odometer": _odometer,
    "event_of": _event,
    "program": _program,
    "program in C": _in_language("c"),
    "program in JavaScript": _in_language("javascript"),
    "train": _train,
    "report": _report,
    "explore": _explore,
    "derive -n": _worked,
    "card": _card,
    "selection": _selection,
    "parallel": _parallel,
} | {f"method {name}": _of_method(name) for name in ("truth", *names()) if name != "contour"}


def walked(way: str, asked: Asked) -> str:
    """Return "answered", or why not; AssertionError where the answer is another than it should be.

    A way that protects someone else, or says less than the composition, is found out here.
    """
    try:
        value, tolerance, relation, sentence, *ends = WAYS[way](asked)
    except SymdpError as refusal:
        text = str(refusal)
        assert text, way
        assert "\n" not in text, way
        assert "bug in symdp" not in text, text
        return f"refused: {text}"
    is_wide = relation == "=" and abs(value - asked.delta) > tolerance * asked.delta
    if is_wide:
        assert ends, (way, value, asked.delta)
        assert ends[0] <= asked.delta <= ends[1], (way, ends, asked.delta)
    if relation == "≥":
        assert value >= asked.delta * (1 - tolerance), (way, value, asked.delta)
    if sentence is not None:
        assert sentence.startswith(asked.sentence), (way, sentence, asked.sentence)
    if is_wide:
        return WIDE
    return "answered" if relation != "~" else "estimated"


TABLE = Path(__file__).with_name("promises.json")
# Ways that need what may be missing, and whether it is here.
HERE = {
    "event_of": find_spec("dp_accounting") is not None,
    "program in C": COMPILER is not None,
    "program in JavaScript": NODE is not None,
}


def worded(said: str) -> str:
    """Return what a way said with its numbers left out, which are another test's."""
    return re.sub(r"\d[\d.]*(e[+-]?\d+)?", "#", said)


def frozen() -> dict[str, dict[str, str]]:
    """Return the table: for each promise what each way says."""
    return dict(json.loads(TABLE.read_text(encoding="utf-8")))


# Whether they find an answer within their own seconds depends on the machine.
TIMED = ("report",)
WIDE = "answered: an interval that holds the value, of fewer digits than were asked for"
LONGEST = 10.0  # seconds of a processor; a way that takes longer is not walked by a test
TOO_LONG = "not walked: it takes longer than the other ways"


def within_seconds(way: str, asked: Asked) -> str:
    """Return what a way says, or that it takes too long; the table keeps which do."""
    start = time.process_time()
    try:
        with time_limit(None if way in TIMED else LONGEST):
            said = walked(way, asked)
    except AssertionError as wrong:
        said = f"WRONG: {wrong}"
    except Exception as error:
        said = f"BROKE: {error!r}"
    is_late = way not in TIMED and time.process_time() - start > 0.9 * LONGEST
    return TOO_LONG if is_late else said


if __name__ == "__main__":
    is_frozen = "--freeze" in sys.argv
    chosen = [name for name in sys.argv[1:] if name != "--freeze"] or list(PROMISES)
    table = frozen() if TABLE.exists() else {}
    for name in chosen:
        try:
            asked = Asked.of(PROMISES[name])
        except SymdpError as refusal:
            print(f"{name}: refused by all: {refusal}")
            continue
        for way in WAYS:
            start = time.process_time()
            said = within_seconds(way, asked)
            seconds = time.process_time() - start
            if HERE.get(way, True):
                table.setdefault(name, {})[way] = worded(said)
            print(f"{name:24} {way:20} {seconds:6.2f} s  {said:.150}", flush=True)
            if is_frozen:
                text = json.dumps(table, indent=1, ensure_ascii=False)
                TABLE.write_text(text + "\n", "utf-8")
