"""`symdp explore`: a page with sliders for one mechanism."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from symdp.cli import options
from symdp.cli.job import Job
from symdp.cli.panel import panel_of
from symdp.cli.report import check_file, write_file
from symdp.cli.working import working
from symdp.errors import InputError


@options.of_steps()
def explore(
    *,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="A .html file.")],
    job: Job,
) -> None:
    """Write a page with sliders: ε, δ and attacks, computed in the browser, without network."""
    check_file(output, ("html",))
    with working(f"page of {job.subject}") as work:
        from symdp.page.panel import MOST_BYTES, page_html

        with job.of_its_file():
            panel = panel_of(job)
            what = panel.mechanism
            text = page_html(f"{panel.title}, explored", what.description or what.name, [panel])
        if len(text.encode()) > MOST_BYTES:
            raise InputError(
                f"{what.name}: the page would have more than {MOST_BYTES // 1000} kB; "
                "leave out the sampling, or write the density in fewer terms"
            )
        work.say(f"writing {output}")
        write_file(output, {"html": lambda: text})
    print(output)
