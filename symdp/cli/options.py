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
        if self.kind is bool:
            return 0
        if self.kind == tuple[str, str] | None:
            return 2
        return 1

    def read(self, words: Sequence[str]) -> Any:
        """Return the value that its words mean."""
        if self.kind in (Path, Path | None):
            return Path(words[0])
        if len(words) > 1:
            return tuple(words)
        if words:
            return words[0]
        return True

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


def _record(parameter: inspect.Parameter) -> Any:
    """Return the class of a record among a command's arguments, None of any other."""
    if is_dataclass(parameter.annotation):
        return parameter.annotation
    return None


def parameters_of(command: Command, name: str) -> list[Parameter]:
    """Return what a command takes; its own arguments stand in place of a record's fields."""
    signature = _signature(command)
    left_out = {*signature, *WITHOUT.get(name, ())}
    parameters: dict[str, Parameter] = {}
    for parameter in signature.values():
        if parameter.name == "settings":
            parameters |= {
                option.name: Parameter(
                    option.name, str | None, None, (option.flag,), "VALUE", f"{option.what}."
                )
                for option in OPTIONS
                if option.name not in signature
            }
        elif record := _record(parameter):
            fields = _signature(record).values()
            parameters |= {
                field.name: _parameter(field, name)
                for field in fields
                if field.name not in left_out | parameters.keys()
            }
        else:
            parameters[parameter.name] = _parameter(parameter, name)
    return list(parameters.values())


def _parameter(argument: inspect.Parameter, command: str) -> Parameter:
    """Return a parameter with its row of the table: the command's own, its group's, or of all."""
    keys = (
        f"{command} {argument.name}",
        f"{command.split(maxsplit=1)[0]} {argument.name}",
        argument.name,
    )
    flags, metavar, sentence = next(TABLE[key] for key in keys if key in TABLE)
    return Parameter(
        argument.name,
        argument.annotation,
        argument.default,
        tuple(flags.split()),
        metavar,
        sentence,
    )


def call(command: Command, values: Mapping[str, Any]) -> int | None:
    """Run a command with the values of its parameters, put into its records."""
    signature = _signature(command)
    values_typed = {key: word for key, word in values.items() if word is not None}
    arguments = dict(values)
    for parameter in signature.values():
        names = [option.name for option in OPTIONS] if parameter.name == "settings" else []
        record = _record(parameter)
        if record is None and not names:
            continue
        names = names or list(_signature(record))
        taken = {
            key: values_typed[key] for key in names if key in values_typed and key not in signature
        }
        arguments[parameter.name] = record(**taken) if record else taken
    return command(**{key: arguments[key] for key in signature})


def read(parameters: Sequence[Parameter], words: Sequence[str]) -> dict[str, Any] | None:
    """Return the values that plain words give to parameters.

    None is returned for anything unusual, which Typer then reads, or explains: options that are
    unknown, given twice or joined to their value by "=", and what is missing.
    """
    options = {flag: parameter for parameter in parameters for flag in parameter.flags}
    places = [parameter for parameter in parameters if not parameter.flags]
    values: dict[str, Any] = {}
    left = list(words)
    while left:
        if left[0].startswith("-"):
            parameter = options.get(left.pop(0))
            many = None
        else:
            parameter = next((p for p in places if p.is_list or p.name not in values), None)
            many = 1
        many = parameter.holds if parameter is not None and many is None else many
        if parameter is None or many is None or len(left) < many:
            return None
        value = parameter.read(left[:many])
        left = left[many:]
        if parameter.is_list:
            values.setdefault(parameter.name, []).append(value)
        elif parameter.name in values:
            return None
        else:
            values[parameter.name] = value
    absent = {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.name not in values
    }
    if inspect.Parameter.empty in absent.values():
        return None
    return absent | values


def asked(words: Sequence[str]) -> tuple[Command, dict[str, Any]] | None:
    """Return the command that plain words call and what they give it, None for anything unusual."""
    name, *left = words
    command = found_at(COMMANDS[name][0]) if name in COMMANDS else None
    if isinstance(command, dict) and left:
        command = command.get(left[0])
        name = f"{name} {left[0]}"
        left = left[1:]
    if not callable(command):
        return None
    values = read(parameters_of(command, name), left)
    if values is None:
        return None
    return (command, values)
