"""The commands sample and plot: what a mechanism's noise looks like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from symdp.cli import job as words
from symdp.cli.display import check_drawing, print_json, say
from symdp.cli.job import Job

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism

_MOST = 1_000_000  # values that are printed
_FOR_WHAT = (
    "for simulations: no release may use them, as the rounding of doubles tells of what they are "
    "added to"
)


def sample(*, job: Job, size: str = "10", seed: str | None = None, as_json: bool = False) -> None:
    """Print independent values of the noise, for simulations."""
    from symdp.questions.noise import sample as drawn

    many = words.whole(size, "--size", most=_MOST)
    start = None if seed is None else words.whole(seed, "--seed", least=0)
    mechanism = _concrete(job)
    values: list[Any] = drawn(mechanism, many, start).tolist()
    if mechanism.variable.is_integer:
        values = [int(value) for value in values]
    if as_json:
        print_json(
            {"mechanism": mechanism.summary, "seed": start, "values": values, "for": _FOR_WHAT}
        )
        return
    for value in values:
        say(repr(value))


def plot(*, job: Job, output: Path) -> None:
    """Draw density and shift, privacy loss, K and trade-off of one step."""
    check_drawing(output, "-o")
    from symdp.page.plot import save_mechanism

    save_mechanism(_concrete(job), output)
    say(f"drawn: {output}")


def _concrete(job: Job) -> Mechanism:
    """Return the mechanism of a job, every parameter with a value."""
    return job.build_mechanism().require_concrete()
