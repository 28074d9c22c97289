"""A training run from the words of a command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from symdp.cli import job as words
from symdp.errors import InputError

if TYPE_CHECKING:
    from symdp.questions.training import TrainingRun

T = TypeVar("T")

Examples = Annotated[
    str | None, typer.Option("--examples", metavar="N", help="How many training examples.")
]
BatchSize = Annotated[
    str | None, typer.Option("--batch", metavar="B", help="Examples in a batch, as expected.")
]
Epochs = Annotated[
    str | None, typer.Option("--epochs", metavar="E", help="Passes over the data, or --steps.")
]
Steps = Annotated[
    str | None, typer.Option("--steps", metavar="T", help="Optimizer steps, or --epochs.")
]
Noise = Annotated[
    str | None,
    typer.Option("--noise", metavar="Z", help="Noise multiplier: noise over clip norm."),
]
LargestBatch = Annotated[
    str | None,
    typer.Option(
        "--largest-batch", metavar="M", help="Examples that a truncated Poisson batch keeps."
    ),
]


@dataclass(frozen=True)
class TrainingJob:
    """What the options of a training run say."""

    examples: str | None
    batch: str | None
    epochs: str | None
    steps: str | None
    sampling: str | None
    largest_batch: str | None
    relation: str | None

    @property
    def is_asked(self) -> bool:
        """Whether an option that only a training run has was given."""
        own = (self.examples, self.batch, self.epochs, self.steps, self.largest_batch)
        return any(word is not None for word in own)

    @property
    def subject(self) -> str:
        """The run in a few words, for those who wait."""
        return f"training on {self.examples} examples"

    def build(self) -> TrainingRun:
        """Return the run, its noise multiplier open.

        Raises
        ------
        InputError
            If a word breaks a rule, naming the option.
        """
        needed = {"--examples N": self.examples, "--batch B": self.batch}
        for option, word in needed.items():
            if word is None:
                raise InputError(f"{option} is missing, as in --examples 60000 --batch 256")
        if (self.epochs is None) == (self.steps is None):
            raise InputError("give --epochs E or --steps T, one of the two")
        from symdp.questions.training import DEFAULT_SAMPLING, training_run

        sampling, relation = (
            None if word is None else word.replace("-", "_")
            for word in (self.sampling, self.relation)
        )
        return training_run(
            _read(self.examples, "--examples", words.whole) or 0,
            _read(self.batch, "--batch", words.whole) or 0,
            _read(self.epochs, "--epochs", words.number),
            steps=_read(self.steps, "--steps", words.whole),
            sampling=sampling or DEFAULT_SAMPLING,
            largest_batch=_read(self.largest_batch, "--largest-batch", words.whole),
            relation=relation,
        )


def _read(text: str | None, option: str, reader: Callable[[str, str], T]) -> T | None:
    return None if text is None else reader(text, option)
