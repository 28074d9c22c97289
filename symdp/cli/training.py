"""`symdp train`: what a training run costs, in the words of whoever trains."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from symdp.cli import job as words
from symdp.cli.asking import How, seconds_of
from symdp.cli.display import answer_blocks, print_json, say, show, steps_of
from symdp.decimal_text import given, rounded
from symdp.errors import InputError, SymdpError
from symdp.interrupt import limit
from symdp.page.document import Sentence

if TYPE_CHECKING:
    import sympy as sp

    from symdp.questions.composition import Composition
    from symdp.questions.guarantee import Guarantee
    from symdp.questions.training import TrainingRun

# What Opacus, TensorFlow Privacy and Flower use unless they are told otherwise.
PEERS_METHOD: Final = "renyi"
_COLUMNS = (
    "sampling", "protects", "noise", "steps", "rate", "delta", "epsilon", "lower", "upper",
    PEERS_METHOD, "error",
)  # fmt: skip

_LONGEST_ROW = 60.0  # seconds for one row of a comparison where nothing else is said
_WARNINGS = {
    "random_allocation": "; holds only where the step of every record is drawn at random for it "
    "alone: a shuffled pass is another thing, of which no such bound is known",
}

_LOOSE = (
    "δ = {delta} is not below 1/{examples}: to publish one example, drawn at random, has no larger "
    "δ; ask one well below"
)

T = TypeVar("T")


def train(
    *,
    run: TrainingJob,
    noise: str | None = None,
    target_epsilon: str | None = None,
    delta: str,
    how: How,
    as_csv: bool = False,
    compare: bool = False,
) -> None:
    """Print ε of a training run with noisy gradients, or the noise that it needs for an ε."""
    if (noise is None) == (target_epsilon is None):
        raise InputError("give --noise Z or --target-epsilon E, one of the two")
    if how.as_json and as_csv:
        raise InputError("--json and --csv: one of the two")
    at = words.delta(delta)
    goal = words.optional(words.real, target_epsilon, "--target-epsilon")
    multiplier = words.optional(words.number, noise, "--noise")
    if multiplier is not None and multiplier <= 0:
        raise InputError(f"--noise {noise}: the noise multiplier must be above 0")
    if goal is not None and goal <= 0:
        raise InputError(f"--target-epsilon {target_epsilon}: ε must be above 0")
    what = f"ε(δ = {delta}) of {run.subject}"
    plan = how.ask(what, run.build, lambda built: _planned(built, multiplier, goal, at))
    as_text = not (how.as_json or as_csv)
    if as_text:
        _print(plan)
    if compare:
        for row in _others(plan, seconds_of(how.time_limit) or _LONGEST_ROW):
            plan.rows.append(row)
            if as_text:
                _print_row(row)
    if not as_text:
        if how.as_json:
            _print_json(plan)
        else:
            _print_csv(plan)


@dataclass(frozen=True)
class _Row:
    """One way of drawing batches: ε, and by the peers' usual method; or why there is none."""

    sampling: str
    protects: str
    answer: Guarantee | None
    peers: Guarantee | None
    error: str = ""


@dataclass(frozen=True)
class _Plan:
    """A training run at a noise multiplier, and the same run under the other samplings."""

    run: TrainingRun
    noise: sp.Expr
    target_epsilon: float | None
    delta: float
    rows: list[_Row]  # the one that was asked for first

    @property
    def answer(self) -> Guarantee:
        """ε of what was asked for."""
        answer = self.rows[0].answer
        assert answer is not None
        return answer


def _planned(
    run: TrainingRun,
    noise: sp.Expr | None,
    goal: float | None,
    delta: float,
) -> _Plan:
    if noise is None:
        assert goal is not None
        noise = run.calibrated(goal, delta).value
    rows = [_training_row(run.sampling, run.composition(noise), delta)]
    return _Plan(run, noise, goal, delta, rows)


def _others(plan: _Plan, seconds: float) -> Iterator[_Row]:
    """Yield the same run under the other samplings; a row that fails, or takes long, says so."""
    from symdp.questions.training import samplings

    for other in samplings(plan.run.largest_batch):
        if other == plan.run.sampling:
            continue
        row = _Row(other, "", None, None, f"no answer within {seconds:g} s")
        with limit(seconds, of_work=True):
            try:
                row = _training_row(
                    other, plan.run.drawn(other).composition(plan.noise), plan.delta
                )
            except SymdpError as error:
                row = _Row(other, "", None, None, str(error))
        yield row


def _training_row(sampling: str, composition: Composition, delta: float) -> _Row:
    answer = composition.epsilon(delta)
    try:
        peers = composition.epsilon(delta, PEERS_METHOD)
    except SymdpError:  # no Rényi bound where large losses count as infinite
        peers = None
    sentence = composition.protection.sentence + _WARNINGS.get(sampling, "")
    return _Row(sampling, sentence, answer, peers)


def _records(plan: _Plan) -> list[dict[str, Any]]:
    """Return the rows as JSON values, all with the same keys."""
    rows = []
    for row in plan.rows:
        answer = row.answer
        peers_epsilon = None
        if row.peers is not None:
            peers_epsilon = row.peers.epsilon
        values = (
            row.sampling,
            row.protects,
            float(plan.noise),
            plan.run.steps,
            str(plan.run.rate),
            plan.delta,
            *(getattr(answer, name, None) for name in ("epsilon", "lower", "upper")),
            peers_epsilon,
            row.error,
        )
        rows.append(dict(zip(_COLUMNS, values, strict=True)))
    return rows


def _print_json(plan: _Plan) -> None:
    run = plan.run
    facts: dict[str, Any] = {
        "examples": run.examples,
        "batch": run.batch,
        "steps": run.steps,
        "rate": str(run.rate),
        "noise": float(plan.noise),
        "target_epsilon": plan.target_epsilon,
    }
    if run.is_loose(plan.delta):
        facts["warning"] = _LOOSE.format(delta=given(plan.delta), examples=run.examples)
    print_json({**plan.answer.to_json(), "training": facts, "samplings": _records(plan)})


def _print_csv(plan: _Plan) -> None:
    writer = csv.DictWriter(sys.stdout, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_records(plan))


def _print(plan: _Plan) -> None:
    from symdp.questions.value_search import decimal

    run = plan.run
    peers = plan.rows[0].peers
    if plan.target_epsilon is not None:
        show(Sentence("noise multiplier = ", answer=decimal(plan.noise)))
    show(*answer_blocks(plan.answer))
    say(
        f"  {steps_of(run.steps)}, batches of {run.batch} out of {run.examples} examples (rate "
        f"{float(run.rate):.6g}), noise multiplier {rounded(plan.noise, 10, 'up')}"
    )
    if peers is not None:
        say(f"  by Rényi orders, as other accountants have it: ε = {peers.epsilon_text(8)}")
    if run.is_loose(plan.delta):
        warning = _LOOSE.format(delta=given(plan.delta), examples=run.examples)
        say(f"  warning: {warning}", "warning")
    if run.sampling in _WARNINGS:
        say(f"  warning: {_WARNINGS[run.sampling][2:]}", "warning")


def _print_row(row: _Row) -> None:
    """Print the same run under another sampling."""
    if row.answer is None:
        say(f"{row.sampling}: {row.error}")
        return
    line = f"{row.sampling}: ε = {row.answer.epsilon_text(8)}, {row.answer.kind}"
    if row.peers is not None:
        line += f"; by Rényi orders {row.peers.epsilon_text(8)}"
    say(line)
    say(f"  protects {row.protects}", "quiet")


@dataclass(frozen=True)
class TrainingJob:
    """What the options of a training run say."""

    examples: str | None = None
    batch: str | None = None
    epochs: str | None = None
    steps: str | None = None
    sampling: str | None = None
    largest_batch: str | None = None
    relation: str | None = None
    released: str | None = None

    @property
    def is_asked(self) -> bool:
        """Whether an option that only a training run has was given."""
        options = (self.examples, self.batch, self.epochs, self.steps, self.largest_batch)
        return any(word is not None for word in options)

    @property
    def subject(self) -> str:
        """The run in a few words, for those who wait."""
        return f"training on {self.examples} examples"

    def told(self, noise: str) -> dict[str, Any]:
        """Return what a card says of the run."""
        run = self.build()
        return {
            "examples": run.examples, "batch": run.batch, "steps": run.steps, "noise": noise,
            "sampling": run.sampling, "largest_batch": run.largest_batch,
            "relation": run.relation, "released": run.released,
        }  # fmt: skip

    def build(self) -> TrainingRun:
        """Return the run, its noise multiplier open."""
        needed = {"--examples N": self.examples, "--batch B": self.batch}
        for option, word in needed.items():
            if word is None:
                raise InputError(f"{option} is missing, as in --examples 60000 --batch 256")
        if (self.epochs is None) == (self.steps is None):
            raise InputError("give --epochs E or --steps T, one of the two")
        from symdp.model.average import SUM
        from symdp.questions.training import DEFAULT_SAMPLING, training_run

        sampling, relation = (
            None if word is None else word.replace("-", "_")
            for word in (self.sampling, self.relation)
        )
        return training_run(
            _optional(self.examples, "--examples", words.whole) or 0,
            _optional(self.batch, "--batch", words.whole) or 0,
            _optional(self.epochs, "--epochs", _positive),
            steps=_optional(self.steps, "--steps", words.whole),
            sampling=sampling or DEFAULT_SAMPLING,
            largest_batch=_optional(self.largest_batch, "--largest-batch", words.whole),
            relation=relation,
            released=self.released or SUM,
        )


def _positive(text: str, option: str) -> Any:
    value = words.number(text, option)
    if value <= 0:
        raise InputError(f"{option} {text}: it must be above 0")
    return value


def _optional(text: str | None, option: str, reader: Callable[[str, str], T]) -> T | None:
    if text is None:
        return None
    return reader(text, option)
