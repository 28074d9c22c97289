"""`symdp derive`: the derivation in the form that is asked for."""

from __future__ import annotations

from symdp.cli.display import one_line, print_json
from symdp.cli.job import Job, direction
from symdp.errors import InputError, suggestion

FORMATS = ("text", "latex", "mathml", "python", "c", "json")


def print_derivation(job: Job, side: str, order: int, form: str) -> None:
    """Derive and print.

    Raises
    ------
    InputError
        If an option breaks a rule.
    """
    direction(side, ("remove", "add"))
    if form not in FORMATS:
        hint = suggestion(form, FORMATS) or f"; there are {', '.join(FORMATS)}"
        raise InputError(f"--format {form!r:.60} is unknown{hint}")
    mechanism = job.build_mechanism()
    from symdp.derive import derive

    derivation = derive(mechanism, side)
    if form == "json":
        print_json(derivation.to_json(order))
    elif form == "latex":
        print(derivation.to_latex(order))
    elif form == "mathml":
        print(derivation.to_mathml(order))
    elif form == "python":
        print(derivation.to_python(order), end="")
    elif form == "c":
        print(derivation.to_c(order), end="")
    else:
        for line in derivation.to_text(order).splitlines():
            print("  " * line.startswith("  ") + one_line(line))
