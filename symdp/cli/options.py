"""What a command takes, from its signature and the table of options; how plain words say it.

A command is a plain function with types and defaults.  A dataclass among its arguments stands for
the options of its fields, and `settings` for those of methods.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from symdp.cli.table import COMMANDS, TABLE, WITHOUT
from symdp.method_options import OPTIONS

Command = Callable[..., "int | None"]


class Parameter(NamedTuple):
    """One option of a command, or an argument, which has no flags."""

    name: str
    kind: Any
    default: Any
    flags: tuple[str, ...]
    metavar: str
    told: str

    @property
    def holds(self) -> int:
        """How many words follow its flag."""
        return 0 if self.kind is bool else 2 if self.kind == tuple[str, str] | None else 1

    def read(self, words: Sequence[str]) -> Any:
        """Return the value that its words mean."""
        if self.kind in (Path, Path | None):
            return Path(words[0])
        return tuple(words) if len(words) > 1 else words[0] if words else True

    @property
    def is_list(self) -> bool:
        """Whether it may be given several times."""
        return self.kind in (list[str], list[str] | None, Sequence[str])


def found_at(where: str) -> Any:
    """Return a command, or a group of commands, from module and name."""
    module, name = where.split(".")
    return getattr(import_module(f"symdp.cli.{module}"), name)


def _signature(command: Command) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(command, eval_str=True).parameters


def _record(one: inspect.Parameter) -> Any:
    """Return the class of a record among a command's arguments, None of any other."""
    return one.annotation if is_dataclass(one.annotation) else None


def parameters_of(command: Command, name: str) -> list[Parameter]:
    """Return what a command takes; its own arguments stand in place of a record's fields."""
    own = _signature(command)
    left_out = {*own, *WITHOUT.get(name, ())}
    found: dict[str, Parameter] = {}
    for one in own.values():
        if one.name == "settings":
            found |= {
                option.name: Parameter(
                    option.name, str | None, None, (option.flag,), "VALUE", f"{option.what}."
                )
                for option in OPTIONS
                if option.name not in own
            }
        elif record := _record(one):
            fields = _signature(record).values()
            found |= {
                field.name: _parameter(field, name)
                for field in fields
                if field.name not in left_out | found.keys()
            }
        else:
            found[one.name] = _parameter(one, name)
    return list(found.values())


def _parameter(one: inspect.Parameter, command: str) -> Parameter:
    """Return a parameter with its row of the table: the command's own, its group's, or of all."""
    keys = f"{command} {one.name}", f"{command.split(maxsplit=1)[0]} {one.name}", one.name
    flags, metavar, told = next(TABLE[key] for key in keys if key in TABLE)
    return Parameter(one.name, one.annotation, one.default, tuple(flags.split()), metavar, told)


def call(command: Command, given: Mapping[str, Any]) -> int | None:
    """Run a command with the values of its parameters, put into its records."""
    own = _signature(command)
    said = {key: word for key, word in given.items() if word is not None}
    arguments = dict(given)
    for one in own.values():
        names = [option.name for option in OPTIONS] if one.name == "settings" else []
        record = _record(one)
        if record is None and not names:
            continue
        names = names or list(_signature(record))
        taken = {key: said[key] for key in names if key in said and key not in own}
        arguments[one.name] = record(**taken) if record else taken
    return command(**{key: arguments[key] for key in own})


def read(parameters: Sequence[Parameter], words: Sequence[str]) -> dict[str, Any] | None:
    """Return the values that plain words give to parameters.

    None is returned for anything unusual, which Typer then reads, or explains: options that are
    unknown, given twice or joined to their value by "=", and what is missing.
    """
    options = {flag: one for one in parameters for flag in one.flags}
    places = [one for one in parameters if not one.flags]
    given: dict[str, Any] = {}
    left = list(words)
    while left:
        if left[0].startswith("-"):
            one, many = options.get(left.pop(0)), None
        else:
            one, many = next((p for p in places if p.is_list or p.name not in given), None), 1
        many = one.holds if one is not None and many is None else many
        if one is None or many is None or len(left) < many:
            return None
        value = one.read(left[:many])
        left = left[many:]
        if one.is_list:
            given.setdefault(one.name, []).append(value)
        elif one.name in given:
            return None
        else:
            given[one.name] = value
    absent = {one.name: one.default for one in parameters if one.name not in given}
    return None if inspect.Parameter.empty in absent.values() else absent | given


def asked(words: Sequence[str]) -> tuple[Command, dict[str, Any]] | None:
    """Return the command that plain words call and what they give it, None for anything unusual."""
    name, *left = words
    command = found_at(COMMANDS[name][0]) if name in COMMANDS else None
    if isinstance(command, dict) and left:
        command, name, left = command.get(left[0]), f"{name} {left[0]}", left[1:]
    if not callable(command):
        return None
    given = read(parameters_of(command, name), left)
    return None if given is None else (command, given)
