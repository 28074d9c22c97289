"""From a density to a checked ε, twice: a mechanism known only by its density, and DP-SGD.

The first is examples/logistic.toml: the loss and its CGF are derived, ε is computed, and then
proved in ball arithmetic, floating point included.  The second is the job of the TensorFlow
Privacy tutorial: 60 000 examples, batches of 256, noise multiplier 1.12, 60 epochs.  TensorFlow
Privacy rounds 60·60000/256 = 14062.5 steps up to 14 063, and its Rényi accountant printed ε = 2.92
at δ = 1e-5.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import symdp
from symdp.cli.supervise import supervised
from symdp.cli.working import working
from symdp.page.plot import Series, save, why_not_drawn
from symdp.page.verification import evenly, sample

HERE = Path(__file__).parent
FIGURE = HERE.parent / "out" / "profile.svg"
DELTA = 1e-5
EPSILON = 2.5  # where δ is asked for
DIGITS = 8  # of ε that are proved
POINTS = 40  # of the figure
NEXT = ".venv/bin/symdp delta examples/logistic.toml s=4 -n 50 --epsilon 2.5"

EXAMPLES, BATCH, EPOCHS = 60_000, 256, 60
STEPS = math.ceil(EPOCHS * EXAMPLES / BATCH)


@contextmanager
def stage(what: str) -> Iterator[None]:
    """Say what is being done, and how many seconds it took."""
    start = time.perf_counter()
    on_terminal = sys.stdout.isatty() and sys.stderr.isatty()
    if not on_terminal:
        print(f"{what} ...", end=" ", flush=True)
    with working(what, patience=0.2):
        yield
    seconds = f"{time.perf_counter() - start:.1f} s"
    print(f"{what} ... {seconds}" if on_terminal else seconds, flush=True)


def main() -> int:
    """Derive, account, prove and draw; return 1 if a check fails."""
    start = time.perf_counter()
    print("From a density to a checked ε, in two jobs; it takes about ten seconds.", flush=True)
    checked = [density(), training()]
    print(f"\ndone in {time.perf_counter() - start:.0f} s; a question of your own: {NEXT}")
    return 0 if all(checked) else 1


def density() -> bool:
    """Account for a mechanism that is known by its density alone; return whether it checks."""
    print("\nLogistic noise of scale 4, 50 steps, from examples/logistic.toml", flush=True)
    with stage("read the density"):
        logistic = symdp.load(HERE / "logistic.toml")
    with stage("derive the privacy loss and its CGF"):
        derivation = symdp.derive(logistic)
    print(f"  ℓ({derivation.variable}) = {derivation.loss}")
    print(f"  K({derivation.cgf.tilt}) = {derivation.cgf.expression}")
    with stage("δ and ε by the contour integral"):
        steps = symdp.compose(logistic(s=4), 50)
        delta, epsilon = steps.delta(EPSILON), steps.epsilon(DELTA)
    print(f"  {delta}\n  {epsilon}")
    with stage(f"prove ε to {DIGITS} digits, every rounding included"):
        proved = steps.certify_epsilon(DELTA, DIGITS)
    print(f"  {proved.lower_decimal} ≤ ε(δ = {DELTA:g}) ≤ {proved.upper_decimal}")
    inside = float(proved.lower_decimal) <= epsilon.epsilon <= float(proved.upper_decimal)
    if not inside:
        print(f"  NOT CHECKED: ε = {epsilon.epsilon!r} lies outside of what is proved")
    with stage("draw the privacy profile"):
        drawn = draw(steps)
    print(f"  {drawn}")
    return inside


def training() -> bool:
    """Account for the training job; return whether its moments bound lies above its ε."""
    print(f"\nDP-SGD: {EPOCHS} epochs of {EXAMPLES} examples in batches of {BATCH}", flush=True)
    noise = symdp.mechanisms.gaussian(sigma="1.12")
    steps = symdp.compose(noise.subsample("poisson", f"{BATCH}/{EXAMPLES}"), STEPS)
    with stage(f"ε of {STEPS} steps by the contour integral"):
        exact = steps.epsilon(DELTA)
    print(f"  {exact}")
    with stage("the moments bounds"):
        bounds = [steps.epsilon(DELTA, method=name) for name in ("moments", "moments-plain")]
    print(*(f"  {bound}" for bound in bounds), sep="\n")
    print("  (TensorFlow Privacy printed 2.92 for this job, from the plain moments bound)")
    return all(exact.epsilon <= bound.epsilon for bound in bounds)


def draw(steps: symdp.Composition) -> str:
    """Draw the profile where Matplotlib is installed; return where it is, or why it is not."""
    if reason := why_not_drawn():
        return f"not drawn: {reason}"
    FIGURE.parent.mkdir(exist_ok=True)
    places = evenly((0.0, 2 * EPSILON), POINTS)
    curves = [Series.of(name, sample(steps, places, name)) for name in ("contour", "moments")]
    save(curves, FIGURE, "50 steps of logistic noise, s = 4")
    return str(FIGURE)


def is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: C code that calls Python back reports it as its own."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def run() -> int:
    """Run both jobs, and return 130 where somebody interrupts them."""
    try:
        return main()
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error):
            raise
        on_terminal = sys.stdout.isatty()
        print(file=sys.stdout if not on_terminal else sys.stderr, flush=True)  # ends a line begun
        print("interrupted", file=sys.stderr)
        return 130


def complain(line: str, code: int) -> int:
    """Say why it ended, and return the exit code."""
    print(line, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(supervised(run, complain))
