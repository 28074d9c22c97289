"""`symdp report`: one composition on a page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from symdp.cli import job as words
from symdp.cli import options
from symdp.cli.display import one_line, print_json, steps_of
from symdp.cli.job import Job
from symdp.cli.working import working
from symdp.durable import replace_text
from symdp.errors import InputError, suggestion

if TYPE_CHECKING:
    from symdp.page.blocks import Block

_DIGITS = 20  # of the truth, four more than a double has; more can take minutes
_PATIENCE = 30.0  # seconds for the truth, and for the accountants


@options.of_steps()
def report(
    *,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="A .html or a .md file.")
    ],
    job: Job,
    title: Annotated[
        str, typer.Option("--title", metavar="TEXT", help="The heading of the page.")
    ] = "Privacy report",
    delta: Annotated[
        str, typer.Option("--delta", metavar="D", help="The δ at which ε is compared.")
    ] = "1e-5",
    as_json: options.Json = False,
) -> None:
    """Write a report: what was derived, ε by every accountant, the privacy profile."""
    at, path = words.delta(delta), output
    check_file(path, ("html", "md"))
    with working(f"report on {job.subject}") as work:
        composition = job.build(default_count=100)
        from symdp.page.analysis import analyse
        from symdp.page.blocks import Folded, Page, Paragraph
        from symdp.page.html import to_html
        from symdp.page.markdown import to_markdown
        from symdp.page.plot import why_not_drawn
        from symdp.page.report_section import section

        undrawn = why_not_drawn()
        name = Path(job.composition).name if job.composition else composition.steps[0][0].name
        advance = work.say
        results = analyse(composition, at, digits=_DIGITS, advance=advance, patience=_PATIENCE)
        heading = one_line(f"{name}, {steps_of(composition.count)}")
        found = section(heading, composition, at, results, advance=advance, undrawn=undrawn)
        if asked := one_line(job.typed):
            found.insert(1, Paragraph(f"Asked: {asked}", "quiet"))
        from symdp.page.head import head_blocks

        blocks = [*found[:2], *head_blocks(composition, at, results), *_panel(job, path, delta)]
        blocks.append(Folded("Appendix: the mathematics, every accountant, the checks", found[2:]))
        left = ", ".join(dict.fromkeys(method for method, _ in results.failures))
        blocks.append(Paragraph(f"Not evaluated: {left or 'nothing'}.", "quiet"))
        work.say(f"writing {path}")
        page = Page(one_line(title), blocks)
        forms = {"html": lambda: to_html(page), "md": lambda: to_markdown(page, path)}
        write_file(path, forms)
    if as_json:
        rows = [answer.to_json() for answer in results.answers]
        print_json({"file": str(path), "delta": at, "answers": rows})
    else:
        print(path)
    if undrawn:
        print(f"symdp: the report has no figures: {undrawn}", file=sys.stderr)


def _panel(job: Job, path: Path, delta: str) -> list[Block]:
    """Return the panel that answers the same question with sliders, where a program serves it."""
    if path.suffix.lower() != ".html":
        return []
    from symdp.cli.panel import panel_of
    from symdp.page.blocks import Embedded
    from symdp.page.panel import panel_html

    try:
        panel = panel_of(job)
        panel = replace(panel, values={**panel.values, "delta": delta})
        return [Embedded(panel_html([panel]))]
    except InputError:
        return []  # the page has its numbers all the same


def check_file(path: Path, endings: Sequence[str]) -> None:
    """Refuse a wrong name or a missing folder before the work."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in endings:
        listed = [f".{one}" for one in endings]
        known = f"{', '.join(listed[:-1])} or {listed[-1]}"
        hint = suggestion(ending, endings) if ending else ""
        raise InputError(f"-o {path}: the name must end in {known}{hint}")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}")


def write_file(path: Path, forms: Mapping[str, Callable[[], str]]) -> None:
    """Write a file in the form that its name asks for, whole or not at all."""
    replace_text(path, forms[path.suffix.lower().removeprefix(".")]())
