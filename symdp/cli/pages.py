"""Commands that write pages: report, explore and card.

A card's job is what the other commands take, a mechanism or a composition's file, or the words of a
training run: whoever fills in a card has one of the three at hand.
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symdp.cli import job as words
from symdp.cli.asking import How, SoFar, in_time, seconds_of
from symdp.cli.display import check_output, one_line, print_json, steps_of
from symdp.cli.job import Job
from symdp.cli.training import TrainingJob
from symdp.cli.working import working
from symdp.durable import replace_text, unique
from symdp.errors import InputError
from symdp.model.relation import is_shuffled

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.page.document import Block
    from symdp.page.panel import Panel
    from symdp.questions.composition import Composition

_DIGITS = 20  # of the truth, four more than a double has; more can take minutes
_PARTS = 6  # of the time: first ε, truths, accountants at each place, other ε; two for the rest
_LARGEST_CARD = 10_000_000  # bytes
_RATE = "q"  # the name of a sampling rate that has no other


def report(
    *,
    output: Path,
    job: Job,
    title: str = "Privacy report",
    delta: str = "1e-5",
    time_limit: str = "120",
    as_json: bool = False,
) -> None:
    """Write a report: what was derived, ε by every accountant, the privacy profile."""
    at = words.delta(delta)
    ending = check_output(output, "html", "md")
    limit = seconds_of(time_limit)
    patience = None
    if limit is not None:
        patience = limit / _PARTS
    known = SoFar()
    from symdp.page.html import to_html
    from symdp.page.markdown import to_markdown
    from symdp.page.plot import why_not_drawn
    from symdp.page.report import PROFILE, Report
    from symdp.page.shuffled import ShuffledReport, is_one_round
    from symdp.page.verification import Results

    undrawn = why_not_drawn()

    def written(job_asked: Job) -> Results:
        with working(f"report on {job.subject}") as shown:
            composition = job_asked.build()
            name = composition.steps[0][0].name
            if job.composition:
                name = Path(job.composition).name
            head = one_line(f"{name}, {steps_of(composition.n)}"), one_line(job.typed)
            panel = None
            if ending == "html":
                panel = partial(_panel, job, delta)
            page: Report | ShuffledReport
            if is_one_round(composition):
                page = ShuffledReport(head, composition, at, undrawn=undrawn)
            else:
                page = Report(head, composition, at, undrawn=undrawn, panel=panel)

            def write(mark: str) -> None:
                document = page.document(one_line(title), mark)
                if ending == "html":
                    replace_text(output, to_html(document))
                else:
                    replace_text(output, to_markdown(document, output))

            known.tell = write
            for what, left in page.make(digits=_DIGITS, patience=patience):
                known.lacks = ""
                if left:
                    known.lacks = f"{output} lacks {', '.join(left)}"
                if what == PROFILE:  # the numbers are there, whatever comes of the rest
                    write(f"incomplete: the work on this page was broken off at {what}")
                shown.say(what)
            shown.say(f"writing {output}")
            write("")
        return page.results

    results = in_time(time_limit, lambda: job, written, known=known)
    if as_json:
        rows = [answer.to_json() for answer in results.answers]
        document: dict[str, Any] = {"file": str(output), "delta": at, "answers": rows}
        if results.profile:
            document["least_delta"] = results.escaped
            document["profile"] = [answer.to_json() for answer in results.profile]
        print_json(document)
    else:
        print(output)
    if undrawn:
        print(f"symdp: the report has no figures: {undrawn}", file=sys.stderr)


def _panel(job: Job, delta: str) -> list[Block]:
    """Return the panel that answers the same question with sliders, where a program serves it."""
    from symdp.page.document import Embedded
    from symdp.page.panel import panel_html

    try:
        panel = panel_of(job)
        values = {**panel.values, "delta": delta}
        # The formulas are in the appendix.
        return [Embedded(panel_html([replace(panel, values=values, with_formulas=False)]))]
    except InputError:
        return []  # the page has its numbers all the same


def explore(
    *, output: Path, job: Job, epsilon: str | None = None, delta: str | None = None, how: How
) -> None:
    """Write a page with sliders: ε, δ and attacks, computed in the browser, without network."""
    check_output(output, "html")
    values = {}
    if epsilon is not None:
        words.real(epsilon, "--epsilon")
        values["ε"] = _without_percent(epsilon)
    if delta is not None:
        words.delta(delta)
        values["delta"] = _without_percent(delta)

    known = SoFar()

    def page(panel: Panel, mark: str = "") -> str:
        from symdp.page.html import to_html
        from symdp.page.panel import MOST_BYTES, explorer

        what = panel.mechanism
        title = f"{panel.title}, explored"
        text = to_html(explorer(title, what.description or what.name, [panel], mark))
        if len(text.encode()) > MOST_BYTES:
            raise InputError(
                f"{what.name}: the page would have more than {MOST_BYTES // 1000} kB; "
                "leave out the sampling, or write the density in fewer terms"
            )
        return text

    def written(job_asked: Job) -> None:
        with job_asked.of_its_file():
            names = [word.partition("=")[0] for word in job_asked.values]
            # A value decides the order of kinks, say, where a slider would leave it open.
            tries = list(dict.fromkeys([(), *((name,) for name in names), tuple(names)]))
            for k, kept in enumerate(tries):
                panel = panel_of(job_asked, kept)
                panel = replace(panel, values={**panel.values, **values})
                lacks = f"{output} lacks its first answer and its formulas"
                try:
                    # The numbers first: its formulas may take long.
                    replace_text(output, page(replace(panel, with_formulas=False), lacks))
                    known.lacks = lacks
                    replace_text(output, page(panel))
                    break
                except InputError:
                    if known.lacks or k == len(tries) - 1:
                        raise

    how.ask(f"page of {job.subject}", lambda: job, written, known=known)
    print(output)


def panel_of(job: Job, kept: Sequence[str] = ()) -> Panel:
    """Return the panel of one mechanism, its values where sliders begin; those kept have none."""
    from symdp.page.panel import Panel

    values = {
        name: _without_percent(text)
        for name, _, text in (word.partition("=") for word in job.values)
    }
    if job.composition is not None:
        composition = job.build()
        if len(composition.steps) != 1:
            raise InputError(
                f"{job.composition}: it composes {len(composition.steps)} mechanisms, and a page "
                f"computes with one: symdp epsilon --composition {job.composition} answers for all"
            )
        composition.accounted.require_one_sign(f"{job.composition}: a page")
        mechanism, count = composition.steps[0]
        command = f"--composition {job.composition}"
        python = f"symdp.load_composition({job.composition!r})"
        return Panel(mechanism.name, mechanism, {"n": str(count)}, command, python)
    # A group of sampled records is a matter of the sampling.
    group = None
    if job.sampling is None:
        group = job.group
    unbound = replace(job, values=[], rate=None, sampling=None, relation=None, group=group)
    mechanism = unbound.build_mechanism()
    if is_shuffled(mechanism):
        raise InputError(
            f"{mechanism.summary}: a page with sliders computes with the law of the loss, and of "
            "shuffled answers a bound on δ is known alone; `symdp report` writes a page at given "
            "values, and `symdp curve` a table"
        )
    values_given = words.bindings(job.values)
    mechanism(**values_given)  # where a value breaks a rule, this says so
    # A program integrates no mass: what one depends on keeps its value, and has no slider.
    fixed = {
        name: values_given[name] for name in {*_of_masses(mechanism), *kept} & values_given.keys()
    }
    slid = {}
    arguments = []
    for parameter in mechanism.declared:
        key = parameter.name
        if key in fixed:
            slid[key] = values[key]
            arguments.append(f'{key}="{values[key]}"')
        else:
            slid[key] = f"{{{key}}}"
            arguments.append(f"{key}={{{key}}}")
    mechanism = mechanism(**fixed)
    values = {name: value for name, value in values.items() if name not in fixed}
    name = str(job.mechanism)
    bindings = " ".join(f"{key}={value}" for key, value in slid.items())
    python = f"symdp.mechanisms.{name}"
    if name.endswith(".toml"):
        python = f"symdp.load({name!r})"
    if arguments:
        python += f"({', '.join(arguments)})"
    command = f"{name} {bindings}".strip()
    if job.shift is not None:
        command += f" --shift {job.shift}"
        python += f'.shifted("{mechanism.shift}")'
    if job.sampling is not None:
        rate = _RATE
        if _RATE in mechanism.parameters:
            rate = "rate"
        mechanism = job.subsampled(mechanism, job.scheme, rate)
        if job.rate is not None:
            words.number(job.rate, "--rate")
            values[rate] = _without_percent(job.rate)
        command += f" --sampling {job.scheme} --rate {{{rate}}}"
        python += f'.subsample("{job.scheme}", {{{rate}}})'
    if job.relation is not None:
        mechanism = mechanism.under(job.relation.replace("-", "_"))
        command += f" --relation {job.relation}"
        python += f'.under("{job.relation}")'
    if job.count is not None:
        values["n"] = job.count
    return Panel(
        mechanism.title or mechanism.name,
        mechanism,
        values,
        f"{command} -n {{n}}",
        f"symdp.compose({python}, {{n}})",
        told=job.told,
    )


def _without_percent(text: str) -> str:
    """Return a number as it was typed, a percentage as a ratio, which a page reads too."""
    if text.rstrip().endswith("%"):
        return str(words.number(text, "a value"))
    return text


def _of_masses(mechanism: Mechanism) -> set[str]:
    """Return the parameters that the mass of a density depends on."""
    from symdp.emit.mass import MassIntegral

    pair = replace(mechanism, sampling=None, relation=None).pair()
    laws = [law for law in pair.components if not isinstance(law, tuple)]
    laws += [mass for _, masses in pair.atoms for mass in masses]
    masses = [mass for law in laws for mass in law.atoms(MassIntegral)]
    return {str(symbol.name) for mass in masses for symbol in mass.free_symbols}


def card(
    *,
    job: Job,
    run: TrainingJob,
    noise: str | None = None,
    delta: str = "1e-5,1e-6,1e-8",
    title: str | None = None,
    prove: str | None = None,
    certificate: bool = False,
    output: Path | None = None,
    registry: Path | None = None,
    check: Path | None = None,
    how: How,
) -> int:
    """Write a privacy card: parameters, unit, neighbors, mechanism, attack, proof, sources, hash.

    With --check, exit code 1 where something differs.
    """
    is_run = run.is_asked or noise is not None
    if check is not None:
        if output is not None or registry is not None or run.is_asked or job.is_asked:
            raise InputError("--check FILE stands alone: a card holds its own job")
        what = f"computing {check} again"
        return how.ask(what, lambda: check, lambda file: _check_card(file, how.as_json))
    if output is None and registry is None:
        raise InputError("-o FILE is missing: a .json, .md, .html or .tex file; or --registry FILE")
    ending = check_output(output, "json", "md", "html", "tex")
    check_output(registry, "yaml", option="--registry")
    if is_run and (job.is_asked or job.count or job.rate):
        raise InputError("a training run takes no MECHANISM, --composition, -n or --rate")
    if is_run and noise is None:
        raise InputError("--noise Z is missing: the noise multiplier, as in --noise 1.12")
    multiplier = words.optional(words.number, noise, "--noise")
    deltas = [words.delta(word) for word in delta.split(",")]
    digits = words.optional(words.whole, prove, "--prove", 1, 15)
    subject = job.subject
    if is_run:
        subject = run.subject
    training_told = None
    if run.is_asked and noise is not None:
        training_told = run.told(noise)

    def made(composed: Composition) -> dict[str, Any]:
        from symdp.page.card import add_certificate, make_card

        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        document = make_card(
            composed, title=title or subject, deltas=deltas, proved_digits=digits, date=day,
            training=training_told,
        )  # fmt: skip
        if certificate:
            add_certificate(document, composed)
        return document

    def build() -> Composition:
        if multiplier is None:
            return job.build()
        return run.build().composition(multiplier)

    card_document = how.ask(f"card of {subject}", build, made)
    if output is not None:
        replace_text(output, _page_text(card_document, output, ending))
    if registry is not None:
        from symdp.page.card import registry_record

        replace_text(registry, registry_record(card_document))
    if how.as_json:
        print_json(card_document)
    else:
        print(*filter(None, (output, registry)), sep="\n")
    return 0


def _page_text(document: dict[str, Any], path: Path, ending: str) -> str:
    from symdp.page.card import card_page
    from symdp.page.html import to_html
    from symdp.page.latex import to_latex
    from symdp.page.markdown import to_markdown

    if ending == "json":
        return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    page = card_page(document)
    if ending == "md":
        return to_markdown(page, path)
    if ending == "html":
        return to_html(page)
    return to_latex(page)


def _check_card(path: Path, as_json: bool) -> int:
    from symdp.page.card import Difference, differences, wrong_in_certificate

    document = _read_card(path)
    mistakes = differences(document)
    assert isinstance(document, dict)
    mistakes += [Difference("certificate", wrong, "") for wrong in wrong_in_certificate(document)]
    if as_json:
        places = [{"place": d.place, "card": d.found, "computed": d.recomputed} for d in mistakes]
        print_json({"agrees": not mistakes, "differences": places})
    elif not mistakes:
        print(f"{path}: computed again, everything agrees")
    else:
        for difference in mistakes:
            print(one_line(f"{path}: {difference}"))
    return int(bool(mistakes))


def _read_card(path: Path) -> object:
    def refused(constant: str) -> None:
        raise InputError(f"a card has no {constant}: every number in it is finite")

    try:
        if path.stat().st_size > _LARGEST_CARD:
            raise InputError(f"{path} is larger than {_LARGEST_CARD} bytes: no card")
        text = path.read_text(encoding="utf-8")
        return json.loads(text, parse_constant=refused, object_pairs_hook=unique)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is no card: it is truncated, or no JSON") from None
