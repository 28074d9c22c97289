"""A command's signature as Typer reads it, from the table of all options.

A command is a plain function with types and defaults; `job` among its arguments stands for all
options that say which steps are meant, and `settings` for those of methods.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from symdp.cli.job import Job
from symdp.cli.table import OF_STEPS, TABLE, WITHOUT
from symdp.method_options import OPTIONS, Option


def typed(command: Callable[..., int | None], name: str) -> Callable[..., int | None]:
    """Return a command with the signature that Typer reads."""
    parameters: list[inspect.Parameter] = []
    without = WITHOUT.get(name, ())
    settings = {one.name: one for one in OPTIONS if one.name not in without}
    own = inspect.signature(command, eval_str=True).parameters
    for one in own.values():
        if one.name == "job":
            for key, word in OF_STEPS.items():
                kind = list[str] | None if key == "values" else str | None
                shown = inspect.Parameter(
                    key, one.kind, default=None, annotation=_declared(word, name, kind)
                )
                parameters += [] if key in without else [shown]
        elif one.name == "settings":
            parameters += [
                inspect.Parameter(key, one.kind, default=None, annotation=_of_method(option))
                for key, option in settings.items()
            ]
        else:
            kind = _declared(one.name, name, one.annotation)
            parameters.append(one.replace(annotation=kind))

    def asked(**given: Any) -> int | None:
        if "settings" in own:
            chosen = {key: given.pop(key) for key in settings}
            given["settings"] = {key: word for key, word in chosen.items() if word is not None}
        if "job" in own:
            job = Job.of(given)
            given = {key: word for key, word in given.items() if key not in OF_STEPS}
            return command(job=job, **given)
        return command(**given)

    asked.__doc__, asked.__name__ = command.__doc__, command.__name__
    asked.__annotations__ = {one.name: one.annotation for one in parameters}
    asked.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return asked


def _declared(name: str, command: str, kind: Any) -> Any:
    """Return a type with its row of the table."""
    flags, metavar, told = TABLE.get(f"{command} {name}") or TABLE[name]
    if flags:
        return Annotated[kind, typer.Option(*flags.split(), metavar=metavar or None, help=told)]
    completed = _built_in if name == "mechanism" else None
    return Annotated[kind, typer.Argument(metavar=metavar, help=told, autocompletion=completed)]


def _of_method(one: Option) -> Any:
    return Annotated[str | None, typer.Option(one.flag, metavar="VALUE", help=f"{one.what}.")]


def _built_in(begun: str) -> list[str]:
    """Return the built-in names that begin with what was typed, for a shell's completion."""
    from symdp.mechanisms import names

    return [name for name in names() if name.startswith(begun)]


def check_output(path: Path, *endings: str, option: str = "-o") -> str:
    """Return the ending of a file's name; a wrong one or a missing folder is known before work."""
    from symdp.errors import InputError, suggestion

    ending = path.suffix.lower().removeprefix(".")
    if ending not in endings:
        listed = [f".{one}" for one in endings]
        known = " or ".join(filter(None, (", ".join(listed[:-1]), listed[-1])))
        hint = suggestion(ending, endings) if ending else ""
        raise InputError(f"{option} {path}: the name must end in {known}{hint}")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}")
    return ending
