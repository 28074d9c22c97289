"""Two jobs from a density to a checked ε: DP-SGD, and a mechanism known only by its density.

The first is the job of the TensorFlow Privacy tutorial: 60 000 examples, batches of 256, noise
multiplier 1.12, 60 epochs. TensorFlow Privacy rounds 60·60000/256 = 14062.5 steps up to 14 063,
and its Rényi accountant printed ε = 2.92 at δ = 1e-5. The second is examples/logistic.toml.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import symdp
from symdp.cli.display import progress
from symdp.cli.report import write_page
from symdp.derive import derive
from symdp.report.blocks import Page
from symdp.report.section import Results, analyse, section

HERE = Path(__file__).parent
REPORT = HERE.parent / "out" / "report.html"
DELTA = 1e-5
DIGITS = 50
TARGETS = (1e-10,)  # the profile is also checked where δ is about this

EXAMPLES, BATCH, EPOCHS = 60_000, 256, 60
STEPS = math.ceil(EPOCHS * EXAMPLES / BATCH)


@dataclass(frozen=True)
class Job:
    """What is accounted for, and what is worth knowing about it."""

    title: str
    composition: symdp.Composition
    note: str = ""


def jobs() -> list[Job]:
    """Return the two jobs."""
    gaussian = symdp.mechanisms.gaussian(sigma="1.12")
    sgd = gaussian.subsample("poisson", f"{BATCH}/{EXAMPLES}")
    logistic = symdp.load(HERE / "logistic.toml")(s=4)
    note = "TensorFlow Privacy printed 2.92 for this job, from the plain moments bound"
    return [
        Job(f"DP-SGD: {EPOCHS} epochs of {EXAMPLES} examples", symdp.compose(sgd, STEPS), note),
        Job("Logistic noise, known only by its density", symdp.compose(logistic, 50)),
    ]


def main() -> int:
    """Derive, account, check, and write the report; return 1 if a check fails."""
    start = time.perf_counter()
    page = Page("Two jobs, from density to ε")
    checked = True
    for place, job in enumerate(jobs()):
        with progress() as screen:
            task = screen.add_task(job.title, total=None)

            def advance(what: str, screen=screen, task=task) -> None:
                screen.update(task, description=what, advance=1)

            results, lines = account(job, advance)
            page.blocks += section(
                job.title,
                job.composition,
                DELTA,
                results,
                name=f"profile-{place}",
                advance=advance,
            )
        print("\n".join([job.title, *lines]), flush=True)
        checked = checked and not results.violated
    REPORT.parent.mkdir(exist_ok=True)
    write_page(page, REPORT)
    print(f"report: {REPORT}  ({time.perf_counter() - start:.0f} s)")
    return 0 if checked else 1


def account(job: Job, advance: Callable[[str], None]) -> tuple[Results, list[str]]:
    """Return the numbers of one job, and the lines that say them."""
    composition = job.composition
    ((mechanism, count),) = composition.steps
    advance(f"derivation of {mechanism.name}")
    derivation = derive(mechanism)
    results = analyse(composition, DELTA, digits=DIGITS, targets=TARGETS, advance=advance)
    by_name = {answer.method: answer for answer in results.answers}
    exact, bound, plain = (by_name[name] for name in ("contour", "moments", "moments-plain"))
    cgf = derivation.cgf
    transform = f"numeric: {cgf.reason}" if cgf.expression is None else str(cgf.expression)
    lines = [
        f"  {mechanism!r}, {count} steps",
        f"  ℓ({derivation.variable}) = {derivation.loss}",
        f"  K({cgf.tilt}) = {transform}",
        f"  ε = {exact.epsilon:.12f} at δ = {DELTA:g}, exact formula in floating point",
        f"  ε ≤ {bound:.12f} by the tightened moments bound",
        f"  ε ≤ {plain:.12f} by the plain one" + (f" ({job.note})" if job.note else ""),
    ]
    truth = results.truth
    if truth is None or truth.exact is None:
        lines.append(f"  truth was not reached: {truth.reason if truth else 'not asked'}")
    else:
        error = float(exact.epsilon / truth.exact - 1)
        lines.append(f"  relative error of ε against {truth.digits}-digit truth: {error:+.1e}")
    for check in results.checks:
        if check.method == "contour" and check.answer is not None and check.error is not None:
            lines.append(
                f"  δ({check.truth.epsilon:g}) = {check.answer.delta_text()}, relative error "
                f"against {check.truth.digits}-digit truth: {check.error:+.1e}"
            )
    return results, lines


if __name__ == "__main__":
    sys.exit(main())
