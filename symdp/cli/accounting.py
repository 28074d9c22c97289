"""Commands over the profile: curve, verify, calibrate, tradeoff, renyi and audit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from symdp.arguments import sides
from symdp.cli import job as words
from symdp.cli.asking import How, SoFar, in_time, seconds_of
from symdp.cli.display import (
    check_drawing,
    meaning,
    one_line,
    print_json,
    protection,
    say,
    show,
    source,
    steps_of,
)
from symdp.cli.job import Job
from symdp.cli.working import working
from symdp.decimal_text import given, rounded, rounded_exponential
from symdp.errors import InputError
from symdp.interrupt import limit
from symdp.page.document import Block, Sentence, Table
from symdp.tolerances import SAME

if TYPE_CHECKING:
    from symdp.arguments import Direction, MethodName
    from symdp.model.mechanism import Mechanism
    from symdp.page.verification import Check
    from symdp.questions.calibrate import AttackCalibration, Calibrated, Calibration
    from symdp.questions.composition import Composition
    from symdp.questions.design.scaled import ScaledSteps, SharedBudget
    from symdp.questions.guarantee import Guarantee
    from symdp.questions.noise import Compared

T = TypeVar("T")

_FOR_ROWS = 0.8  # of the time limit, for the rows of a comparison
_MOST_NAMED = 3  # mechanisms in a title
_AT_ONCE = 25  # points that are taken together, between two signs of life
_MOST_DIGITS = 12  # digits of a true δ, where so many are known
_MOST_RATES = 1000  # false positive rates
_DRAWN = 101  # false positive rates of a figure, on the unit interval


def curve(
    *,
    job: Job,
    epsilon_range: tuple[str, str] | None = None,
    points: str = "50",
    plot: Path | None = None,
    method: list[str] | None = None,
    settings: Mapping[str, str],
    how: How,
) -> None:
    """Print the privacy profile δ(ε) at evenly spaced ε, and draw it."""
    ends = _two_numbers(epsilon_range, "--epsilon-range", words.real)
    if ends is not None and not ends[0] < ends[1]:
        raise InputError("--epsilon-range A B: A must lie below B")
    names = [words.method(one) for one in method or ["contour"]]
    many = words.whole(points, "--points", 2, 10_000)
    if len(names) > 1 and plot is None:
        raise InputError("several --method are drawn over each other: give --plot FILE too")
    chosen, side = words.settings(names[0], settings), how.side
    check_drawing(plot)

    known, start = SoFar(), time.perf_counter()
    answers: list[Guarantee] = []

    def told(mark: str) -> None:
        if how.as_json:
            _print_points(answers, side, time.perf_counter() - start, mark)
        else:
            show(*_points(answers))

    known.tell = told

    def computed(job_asked: Job) -> None:
        with working(f"profile of {job_asked.subject}") as work:
            composition = job_asked.build()
            from symdp.page.verification import default_range, evenly

            epsilons = evenly(ends or default_range(composition, side), many)
            while len(answers) < len(epsilons):
                done = len(answers)
                # The first alone: it shows whether all others will take long.
                next_epsilons = epsilons[done : done + (_AT_ONCE if done else 1)]
                work.say(f"δ({next_epsilons[0]:.6g}) of {job_asked.subject}", done, many)
                answers.extend(composition.delta(next_epsilons, names[0], side, **chosen))
                known.lacks = f"{len(answers)} of {many} points"
            if plot is not None:
                work.say(f"drawing {plot}")
                _draw(composition, answers, side, plot, names[1:] or ["moments"])

    in_time(how.time_limit, lambda: job, computed, known=known)
    if how.as_json or plot is None:
        told("")
    else:
        show(*protection(answers[0]), *_drawn(plot))


def _points(answers: list[Guarantee]) -> Iterator[Block]:
    wide = any(_are_apart(a) for a in answers)
    head = ("ε", "δ", *(("lower", "upper") if wide else ()), "kind")
    rows = []
    for a in answers:
        bounds = [text or "" for text in a.bound_texts()] if wide else []
        # δ falls with ε: what holds at one ε holds at a larger one
        rows.append((rounded(a.epsilon, 8, "up"), a.delta_text(), *bounds, a.kind))
    yield Table(head, rows, numbers=range(len(head) - 1))
    yield from protection(answers[0])
    advice = dict.fromkeys(a.advice for a in answers if a.advice)
    yield from (Sentence(f"warning: {warning}", "warning") for warning in advice)


def _two_numbers(
    ends: tuple[str, str] | None, option: str, read: Callable[[str, str], T]
) -> tuple[T, T] | None:
    return None if ends is None else (read(ends[0], option), read(ends[1], option))


def _print_points(answers: list[Guarantee], direction: str, seconds: float, mark: str = "") -> None:
    from symdp.questions.guarantee import weakest

    whose = answers[0].protection
    print_json({
        "points": [answer.to_json() for answer in answers],
        "kind": weakest(answer.kind for answer in answers),
        "method": answers[0].method,
        "direction": direction,
        "count": answers[0].n,
        "seconds": round(seconds, 6),
        **({} if whose is None else whose.to_json()),
        **({"incomplete": mark} if mark else {}),
    })  # fmt: skip


def _draw(
    composition: Composition,
    answers: list[Guarantee],
    direction: Direction,
    path: Path,
    overlaid: list[MethodName],
) -> None:
    from symdp.page.plot import Series, save
    from symdp.page.verification import sample

    epsilons = [answer.epsilon for answer in answers]
    curves = [Series.of(answers[0].method, answers)]
    for name in overlaid:
        if name != answers[0].method:
            others = sample(composition, epsilons, name, direction)
            curves.append(Series.of("moments bound" if name == "moments" else name, others))
    title = "\n".join(f"{steps_of(n)} of {m.summary}" for m, n in composition.steps)
    if len(composition.steps) > _MOST_NAMED:
        title = f"{composition.n} steps of {len(composition.steps)} mechanisms"
    save(curves, path, title)


def _are_apart(answer: Guarantee) -> bool:
    """Whether the bounds on δ differ by more than the digits that are shown."""
    low, high = answer.log_lower, answer.log_upper
    return low is not None and high is not None and high - low > SAME


def verify(
    *,
    job: Job,
    epsilon: str | None = None,
    delta: str | None = None,
    digits: str = "20",
    method: str | None = None,
    how: How,
) -> int:
    """Compare every accountant with a many-digit truth."""
    side = how.side
    wanted = words.whole(digits, "--digits", 15, 200)
    methods = None if method is None else [words.method(method)]
    at = None if epsilon is None else [words.real(epsilon, "--epsilon")]
    targets = None if delta is None else [words.delta(delta)]
    if epsilon is not None and delta is not None:
        raise InputError("give --epsilon E or --delta D, one of the two")

    seconds = seconds_of(how.time_limit)
    patience = None if seconds is None else _FOR_ROWS * seconds

    def compared(composition: Composition) -> int:
        from symdp.page import verification

        def told(mark: str) -> None:
            """Print what is not printed yet."""
            if not how.as_json:
                if unprinted:
                    _print_place(unprinted, notes)
                return
            print_json({
                "checks": [c.to_json() for c in checks],
                "digits": min((c.truth.digits for c in checks), default=wanted),
                "direction": side,
                "count": composition.n,
                "violated": sum(c.broken for c in checks),
                "seconds": round(time.perf_counter() - start, 6),
                **({"incomplete": mark} if mark else {}),
            })  # fmt: skip

        def advance(done: int, total: int) -> None:
            known.lacks = f"{done} of {total} truths and rows" if checks else ""
            work.say(what, done, total)

        def noted(check: Check) -> float:
            checks.append(check)
            unprinted.append(check)
            return check.truth.epsilon

        known.tell, start, notes = told, time.perf_counter(), dict[str, str]()
        checks: list[Check] = []
        unprinted: list[Check] = []
        rows: Iterator[list[Check]] | None = None
        if not how.as_json:
            names = "; ".join(
                f"{count} × {repr(m)[len('<Mechanism ') : -1]}" for m, count in composition.steps
            )
            say(one_line(f"{names}, {steps_of(composition.n)}"), "strong")
        while True:
            with working(what) as work:
                if rows is None:
                    checked = verification.verify(
                        composition, side, digits=wanted, methods=methods, targets=targets,
                        epsilons=at, patience=patience, advance=advance,
                    )  # fmt: skip
                    rows = (list(group) for _, group in groupby(checked, noted))
                group = next(rows, [])
            if not group:
                break
            if not how.as_json:  # what is known is printed, whatever comes of the rest
                _print_place(group, notes)
                del unprinted[: len(group)]
        known.lacks, broken = "", sum(c.broken for c in checks)
        if how.as_json:
            told("")
        else:
            _print_agreement(composition, checks, (seconds or math.inf) * (1 - _FOR_ROWS) / 2)
            if notes:
                say()
            for name, advice in notes.items():
                say(advice if advice.startswith(name) else f"{name}: {advice}", "warning")
            say()
            unseen = sum(c.truth.value is None for c in checks)
            left = f"; {unseen} of {len(checks)} rows have no truth beside them" if unseen else ""
            say(f"{broken or 'no'} bound{'s' * (broken > 0)} violated{left}", _tone(broken, unseen))
        return int(broken > 0)

    what = f"truth and accountants for {job.subject}"
    known = SoFar()
    return in_time(how.time_limit, job.build, compared, known=known)


def _tone(broken: int, unseen: int) -> str:
    return "bad" if broken else "warning" if unseen else "good"


def _print_place(checks: list[Check], notes: dict[str, str]) -> None:
    """Print the truth at one ε and what every accountant says of it."""
    truth = checks[0].truth
    if truth.value is None:
        head = f"ε = {truth.epsilon:g}: no truth, {truth.reason}"
    else:
        delta = rounded_exponential(truth.log, min(_MOST_DIGITS, truth.digits), side="up")
        head = f"ε = {truth.epsilon:g}: δ = {delta} to {truth.behind or f'{truth.digits} digits'}"
    columns = ("method", "kind", "δ", "relative error", "seconds", "")
    rows = [_check_row(c, notes) for c in checks]
    show(Sentence(""), Sentence(head), Table(columns, rows, numbers=range(2, 5)))


def _print_agreement(composition: Composition, checks: list[Check], seconds: float) -> None:
    """Print how well quadratures that share no code agree with one step of each kind."""
    from symdp.page.independent import agreement

    side = next((c.truth.direction for c in checks if c.truth.direction != "both"), "remove")
    say()
    for pair, _ in composition.accounted.pairs(side):
        sentence = f"not compared within {seconds:.2g} s"
        with limit(seconds, of_work=True):
            digits_of = agreement(pair, 0.0)
            sentence = "the densities are no formulas for it"
            if digits_of is not None:
                sentence = f"δ(0) agrees to {digits_of[0]} digits, K(−1/2) to {digits_of[1]}"
        say(f"independent: one step by mpmath's quadrature of P and Q: {sentence}")


def _check_row(c: Check, notes: dict[str, str]) -> list[str]:
    if c.answer is None:
        return [c.method, "", "none", "", "", c.reason]
    error = "" if c.error is None else f"{c.error:+.1e}"
    mark = "VIOLATED" if c.broken else ""
    if c.answer.advice:
        mark = f"{mark} advice".strip()
        notes.setdefault(c.method, c.answer.advice)
    value = c.answer.delta_text(8)
    return [c.method, c.answer.kind, value, error, f"{c.answer.seconds:.4f}", mark]


def calibrate(
    *,
    parameter: str | None = None,
    epsilon: str | None = None,
    delta: str | None = None,
    advantage: str | None = None,
    tpr: str | None = None,
    fpr: str | None = None,
    job: Job,
    digits: str | None = None,
    between: tuple[str, str] | None = None,
    how: How,
) -> None:
    """Print the value of a parameter that just meets (ε, δ), rounded to the safe side.

    Or the value that holds attacks down: --advantage A, or --tpr T at --fpr F.
    """
    kinds = (epsilon, delta), (advantage,), (tpr, fpr)
    named = [kind for kind in kinds if any(word is not None for word in kind)]
    if len(named) != 1 or None in named[0]:
        raise InputError("give --epsilon E and --delta D, or --advantage A, or --tpr T and --fpr F")
    target = {
        "epsilon": None if epsilon is None else words.real(epsilon, "--epsilon"),
        "delta": None if delta is None else words.delta(delta),
        "advantage": None if advantage is None else words.share(advantage, "--advantage"),
        "tpr": None if tpr is None else words.share(tpr, "--tpr"),
        "fpr": None if fpr is None else words.share(fpr, "--fpr"),
    }
    many = None if digits is None else words.whole(digits, "--digits", 4, 13)
    name, ends = how.name, _two_numbers(between, "--between", words.number)
    steps = None if job.composition is None else _steps_with_a_name(job)
    if parameter is None and (steps is None or not steps.is_shared):
        raise InputError("--parameter NAME is missing: what is to be calibrated")
    unknown = parameter or "share"
    visited: dict[Any, tuple[float, bool]] = {}
    known = SoFar()

    def seen(value: Any, bound: float, meets: bool) -> None:
        visited[value] = bound, meets
        known.lacks = _narrowed(unknown, visited)

    def told(mark: str) -> None:
        rows = sorted((value, *one) for value, one in visited.items())
        if how.as_json:
            entries = [{"value": float(v), "bound": b, "meets": meets} for v, b, meets in rows]
            print_json({"parameter": unknown, "incomplete": mark, "visited": entries})
            return
        from symdp.questions.value_search import decimal

        cells = [
            (decimal(v), rounded(b, 6, "up"), "meets it" if meets else "misses it")
            for v, b, meets in rows
        ]
        show(Table((unknown, "at most", "the target"), cells, numbers=range(2)))

    known.tell = told

    def found(job_asked: Job) -> Any:
        from symdp.questions.calibrate import COUNT, calibrate

        options: dict[str, Any] = {"digits": many, "between": ends, "progress": seen, **target}
        options |= {"method": name, "direction": how.side}
        if steps is not None:
            return calibrate(steps, unknown, job_asked.steps_asked, **options)
        mechanism = _open(job_asked, unknown)
        of_steps = unknown == COUNT and COUNT not in mechanism.parameters
        count = None if of_steps and job_asked.count is None else job_asked.steps_asked
        return calibrate(mechanism, unknown, count, **options)

    what = f"calibrating {unknown} of {job.subject}"
    how.tell(how.ask(what, lambda: job, found, known=known), _calibrated)


def _narrowed(parameter: str, visited: Mapping[Any, tuple[float, bool]]) -> str:
    """Return between which values a parameter is known to lie."""
    from symdp.questions.value_search import decimal

    met = [value for value, (_, meets) in visited.items() if meets]
    missed = [value for value, (_, meets) in visited.items() if not meets]
    if not met:
        return f"every value of {parameter} that was visited misses it"
    if not missed:
        return f"every value of {parameter} that was visited meets it"
    best = max(met)
    worst = min(missed)
    if max(missed) < max(met):
        best = min(met)
        worst = max(missed)
    return f"{parameter} = {decimal(best)} meets it and {decimal(worst)} does not"


def _steps_with_a_name(job: Job) -> ScaledSteps | SharedBudget:
    """Return the steps of a file with an unknown, other names bound to NAME=VALUE."""
    from symdp.questions.design.scaled import SharedBudget, load_scaled

    typed = [*([] if job.mechanism is None else [job.mechanism]), *job.values]
    steps = load_scaled(job.composition or "")
    values = words.bindings(typed)
    if not values:
        return steps
    if isinstance(steps, SharedBudget):
        raise InputError(f"{job.composition}: steps that share a budget have no names for values")
    return steps.bound(**values)


def _open(job: Job, parameter: str) -> Mechanism:
    """Return the mechanism; a sampling rate that is left out or named becomes the parameter."""
    scheme = job.scheme
    if scheme in {"", "random_allocation"} or job.rate not in {None, parameter}:
        return job.build_mechanism()
    plain = job.unsampled().build_mechanism()
    if job.rate is None and parameter in {*plain.parameters, "n"}:
        raise InputError("--sampling needs --rate Q, as in --rate 0.01")
    return job.subsampled(plain, scheme, parameter)


def _calibrated(calibration: Calibration | AttackCalibration) -> Iterator[Block]:
    from symdp.questions.calibrate import Calibration
    from symdp.questions.value_search import decimal

    yield Sentence(f"{calibration.parameter} = ", answer=decimal(calibration.value))
    is_next = abs(calibration.neighbour - calibration.value) == calibration.step
    which = "the next" if is_next else "the nearest that was answered"
    beyond = f"  {which}, {decimal(calibration.neighbour)},"
    if isinstance(calibration, Calibration):
        answer, goal = calibration.guarantee, given(calibration.target_delta)
        # With as many digits as keep δ at most the target that it meets; else its interval, which
        # is printed beside, reaches beyond the target.
        texts = (answer.delta_text(), answer.delta_text(17))
        within = next(
            (t for t in texts if float(t) <= calibration.target_delta), given(answer.delta)
        )
        yield Sentence(f"  δ({answer.epsilon_text()}) = {within} ≤ {goal}, {meaning(answer)}")
        yield Sentence(f"{beyond} has {calibration.missed.delta_text()} and misses it")
        if calibration.steps:
            yield Table(("step", "parameters"), _rows_of_steps(calibration.steps))
        yield from source(answer, calibration.seconds)
        yield from _noted(calibration)
        return
    alpha = calibration.false_positive_rate
    what = "advantage" if alpha is None else f"true positive rate at {given(alpha)}"
    most = rounded(calibration.rate, 9, "up")
    if float(most) > calibration.target:
        most = rounded(calibration.rate, 17, "up")
    yield Sentence(f"  no attack has a higher {what} than {most} ≤ {given(calibration.target)}")
    yield Sentence(f"{beyond} allows {rounded(calibration.missed, 9, 'up')} and misses it")
    yield Sentence(f"  both directions, {calibration.seconds:.2g} s")
    yield from _noted(calibration)


def _rows_of_steps(steps: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str]]:
    """Return a row for each step: its name, and the values of its parameters."""
    rows = []
    for name, values in steps.items():
        rows.append((name, ", ".join(f"{key} = {value}" for key, value in values.items())))
    return rows


def _noted(calibration: Calibrated) -> Iterator[Block]:
    """Say what a search stepped over or left open."""
    if calibration.note:
        yield Sentence(f"  {calibration.note}", "warning")


def compare(
    *,
    job: Job,
    delta: str,
    std: str | None = None,
    mean_abs: str | None = None,
    plot: Path | None = None,
    how: How,
) -> None:
    """Print noises of one size side by side, what is most private first."""
    size_missing = InputError("give the size of the noise: --std S or --mean-abs A, one of them")
    if std is not None and mean_abs is not None:
        raise size_missing
    sizes = {}
    if std is not None:
        sizes["std"] = words.real(std, "--std")
    if mean_abs is not None:
        sizes["mean_abs"] = words.real(mean_abs, "--mean-abs")
    at_delta = words.delta(delta)
    check_drawing(plot)
    jobs = _of_each([job.mechanism or "", *job.values], job)
    from symdp.questions.noise import ALPHA
    from symdp.questions.noise import compare as ask

    def told(noises: list[Mechanism]) -> None:
        if not sizes and not all(noise.is_concrete for noise in noises):
            raise size_missing
        left_out: list[str] = []
        rows = ask(noises, job.steps_asked, delta=at_delta, **sizes, left_out=left_out.append)
        if plot is not None:
            _draw_all(rows, job.steps_asked, plot)
        if how.as_json:
            without = {"left_out": left_out} if left_out else {}
            print_json({"noises": [row.to_json() for row in rows], **without})
            return
        least = rows[0].guarantee.epsilon_text()
        asked_of = (f"ε at δ = {given(at_delta)}", f"δ at ε = {least}", "kind")
        attacks = ("advantage", f"miss rate at {given(ALPHA)}")
        head = ("noise", "standard deviation", "E|X − EX|", *asked_of, *attacks)
        show(
            Table(head, [_compared_cells(row) for row in rows], numbers=[1, 2, 3, 4, 6, 7]),
            *dict.fromkeys(line for row in rows for line in protection(row.guarantee)),
            *(Sentence(f"  left out: {reason}", "warning") for reason in left_out),
            *_drawn(plot),
        )

    what = f"{len(jobs)} noises of one size"
    how.ask(what, lambda: [one.build_mechanism() for one in jobs], told)


def _drawn(plot: Path | None) -> list[Block]:
    return [] if plot is None else [Sentence(f"drawn: {plot}")]


def _of_each(typed: list[str], job: Job) -> list[Job]:
    """Return a job for each mechanism that was typed, with the values that follow it."""
    jobs: list[Job] = []
    for word in typed:
        if "=" in word and jobs:
            jobs[-1] = replace(jobs[-1], values=[*jobs[-1].values, word])
        else:
            jobs.append(replace(job, mechanism=word or None, values=[]))
    return jobs


def _compared_cells(row: Compared) -> tuple[str, ...]:
    values = " ".join(f"{name}={value}" for name, value in row.values.items())
    sizes = ("–", "–")
    if row.size is not None:
        sizes = (f"{row.size.std:.8g}", f"{row.size.mean_abs:.8g}")
    return (
        f"{row.mechanism.name} {values}".strip(), *sizes,
        row.guarantee.epsilon_text(), rounded(row.delta, 6, "up"), row.guarantee.kind,
        rounded(row.advantage, 6, "up"), rounded(row.miss_rate, 6, "down"),
    )  # fmt: skip


def _draw_all(rows: Sequence[Compared], count: int, plot: Path) -> None:
    from symdp.page.plot import Series, save
    from symdp.page.verification import evenly
    from symdp.questions.composition import compose

    epsilons = evenly((0.0, 1.25 * rows[-1].guarantee.epsilon), _DRAWN)
    curves = []
    for row in rows:
        profile = compose(row.mechanism, count).delta(epsilons)
        curves.append(Series.of(_compared_cells(row)[0], profile))
    save(curves, plot)


def tradeoff(
    *,
    job: Job,
    alpha: str = "0.001,0.01,0.05,0.1,0.5",
    plot: Path | None = None,
    how: How,
) -> None:
    """Print the least miss rate of any attack at its false positive rate, and draw it."""
    side = how.side
    rates = [words.real(word, "--alpha") for word in alpha.split(",")]
    if len(rates) > _MOST_RATES or not all(0.0 <= one <= 1.0 for one in rates):
        raise InputError(f"--alpha {alpha:.40}: at most {_MOST_RATES} rates, each from 0 to 1")
    check_drawing(plot)
    # All at once: what is computed for one rate tells of its neighbours.
    grid = [] if plot is None else [index / (_DRAWN - 1) for index in range(_DRAWN)]

    def told(steps: Composition) -> None:
        from symdp.questions.tradeoff import trade_off

        misses = [float(miss) for miss in trade_off(steps, [*rates, *grid], side)]
        advantage = steps.membership_advantage()
        points = list(zip(rates, misses[: len(rates)], strict=True))
        whose = steps.accounted.protection_of(side)
        if plot is not None:
            from symdp.page.plot import save_trade_off

            save_trade_off(grid, misses[len(rates) :], plot)
        if how.as_json:
            print_json({
                "points": [
                    {"alpha": rate, "beta": miss, "true_positive_rate": 1.0 - miss}
                    for rate, miss in points
                ],
                "advantage": advantage,
                "direction": side,
                "count": steps.n,
                **whose.to_json(),
            })  # fmt: skip
            return
        rows = [
            (given(rate), rounded(miss, 8, "down"), rounded(1 - Fraction(miss), 8, "up"))
            for rate, miss in points
        ]
        head = ("false positive rate", "miss rate, at least", "true positive rate, at most")
        show(
            Table(head, rows, numbers=range(3)),
            Sentence(f"advantage over guessing at most {rounded(advantage, 8, 'up')}"),
            Sentence(f"protects {whose.sentence}"),
            *_drawn(plot),
        )

    how.ask(f"trade-off of {job.subject}", job.build, told)


def renyi(
    *,
    job: Job,
    order: str = "2,4,8,16,32,64",
    how: How,
) -> None:
    """Print Rényi divergences in both directions, and the least ρ of zCDP."""
    from symdp.questions.tradeoff import divergence_kind, renyi_ends

    named = order.split(",")
    orders = [math.inf if word == "inf" else words.real(word, "--order") for word in named]
    if len(orders) > _MOST_RATES or not all(one >= 0.0 for one in orders):
        raise InputError(f"--order {order:.40}: at most {_MOST_RATES} orders, each 0 or more")
    ways = sides(how.side)

    def told(steps: Composition) -> None:
        ends = {
            way: [renyi_ends(steps, alpha, cast("Direction", way)) for alpha in orders]
            for way in ways
        }
        highs = {way: [high for _, high in pairs] for way, pairs in ends.items()}
        kind = divergence_kind(steps)
        least = steps.zcdp(how.side)
        if how.as_json:
            finite = {w: [x if math.isfinite(x) else None for x in v] for w, v in highs.items()}
            print_json({
                "orders": [alpha if math.isfinite(alpha) else "inf" for alpha in orders],
                **finite,
                "kind": kind,
                "zcdp": least.to_json(),
            })  # fmt: skip
            return
        columns = [[_divergence(pair, kind) for pair in ends[way]] for way in ways]
        names = [given(alpha) if math.isfinite(alpha) else "∞" for alpha in orders]
        show(
            Table(("order α", *ways), list(zip(names, *columns, strict=True)), numbers=range(3)),
            Sentence(f"zCDP: {least}"),
            Sentence(f"protects {least.protection.sentence}"),
        )

    how.ask(f"Rényi divergences of {job.subject}", job.build, told)


def _divergence(ends: tuple[float, float], kind: str) -> str:
    """Return D_α as text: ≤ its upper end, where it is no exact value."""
    low, high = ends
    if not math.isfinite(high):
        return "∞" if low == high and kind == "exact" else "no finite bound"
    if kind == "exact" and low == high:
        return rounded(high, 10)
    return f"≤ {rounded(high, 10, 'up')}"


def audit(
    *,
    tp: str,
    fp: str,
    members: str | None = None,
    others: str | None = None,
    delta: str | None = None,
    confidence: str = "0.95",
    job: Job,
    how: How,
) -> None:
    """Print a lower bound on ε from an attack's counts, and test a claim with them."""
    from symdp.questions.audit import audit as ask

    hits, all_members = _counted(tp, members, "--tp", "--members")
    alarms, all_others = _counted(fp, others or members, "--fp", "--others")
    at = 0.0 if delta is None else words.delta(delta)
    sure = words.share(confidence, "--confidence")
    counted = hits, alarms, all_members, all_others
    steps, result = how.ask(
        f"audit of {job.subject}",
        lambda: job.build() if job.is_asked else None,
        lambda steps: (steps, ask(*counted, delta=at, confidence=sure, composition=steps)),
    )
    if how.as_json:
        print_json(result.to_json())
        return
    at_delta = "" if delta is None else f" at δ = {delta}"
    low = rounded(result.true_positive_rate, 6, "down")
    high = rounded(result.false_positive_rate, 6, "up")
    show(
        Sentence("ε ≥ ", answer=f"{rounded(result.epsilon, 6, 'down')}{at_delta}"),
        Sentence(
            f"  with confidence {confidence}: true positive rate at least {low}, false positive "
            f"rate at most {high} (Clopper and Pearson)"
        ),
    )
    if steps is not None and result.allowed is not None and result.p_value is not None:
        verdict = "refutes" if result.is_refuted else "does not refute"
        most = rounded(result.allowed, 6, "up")
        say(f"  {verdict} {job.typed}: p-value {rounded(result.p_value, 3, 'up')}")
        say(f"  it allows a true positive rate of {most} at false positive rate {high}")


def _counted(text: str, whole: str | None, option: str, of: str) -> tuple[int, int]:
    """Return a count and what it is out of, written as 90/100 or in two options."""
    part, slash, total = text.partition("/")
    if whole is not None:
        words.whole(whole, of)
    if slash:
        return words.whole(part, option, 0), words.whole(total, option)
    if whole is None:
        raise InputError(f"{option} {text:.40}: out of how many? Write {option} 90/100, or {of} N")
    return words.whole(text, option, 0), words.whole(whole, of)
