"""All commands as Typer reads them, for help, completion and what is unusual."""

from __future__ import annotations

import inspect
from collections import UserDict
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from symdp.cli.options import Parameter, call, found_at, parameters_of
from symdp.cli.table import COMMANDS, EXAMPLES


class _Commands(UserDict[str, Any]):
    """The commands by name, each built when it is asked for: all take a tenth of a second."""

    def __getitem__(self, name: str) -> Any:
        where = super().__getitem__(name)
        if isinstance(where, str):
            self[name] = _built(name, where)
        return super().__getitem__(name)


class _Program(TyperGroup):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Commands({name: where for name, (where, _) in COMMANDS.items()})

    def format_commands(self, _: Any, formatter: Any) -> None:
        """Write the list of all commands without building one."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


app = typer.Typer(
    cls=_Program,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Privacy accounting from a mechanism's density: derived, exact, checked.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from symdp.version import __version__

        typer.echo(f"symdp {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def typed(command: Callable[..., int | None], name: str) -> Callable[..., int | None]:
    """Return a command with the signature that Typer reads."""
    signature = {
        parameter.name: inspect.Parameter(
            parameter.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None if parameter.kind == Sequence[str] else parameter.default,
            annotation=_declared(parameter),
        )
        for parameter in parameters_of(command, name)
    }

    def asked(**values: Any) -> int | None:
        return call(command, values)

    asked.__doc__ = command.__doc__
    asked.__name__ = command.__name__
    asked.__annotations__ = {
        parameter.name: parameter.annotation for parameter in signature.values()
    }
    asked.__signature__ = inspect.Signature(list(signature.values()))  # type: ignore[attr-defined]
    return asked


def _declared(parameter: Parameter) -> Any:
    """Return a parameter's type as Typer reads it."""
    kind = list[str] | None if parameter.kind == Sequence[str] else parameter.kind
    if parameter.flags:
        option = typer.Option(
            *parameter.flags, metavar=parameter.metavar or None, help=parameter.told
        )
        return Annotated[kind, option]
    completed = _built_in if parameter.name == "mechanism" else None
    argument = typer.Argument(
        metavar=parameter.metavar, help=parameter.told, autocompletion=completed
    )
    return Annotated[kind, argument]


def _built_in(begun: str) -> list[str]:
    """Return the built-in names that begin with what was typed, for a shell's completion."""
    from symdp.mechanisms import names

    return [name for name in names() if name.startswith(begun)]


def _built(name: str, where: str) -> Any:
    """Return a command or a group of commands as Typer makes it."""
    command_or_group = found_at(where)
    alone = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if isinstance(command_or_group, dict):
        group = typer.Typer(rich_markup_mode=None, help=COMMANDS[name][1])
        for subcommand, command in command_or_group.items():
            group.command(subcommand, epilog=epilog(f"{name} {subcommand}"))(
                typed(command, f"{name} {subcommand}")
            )
        alone.add_typer(group, name=name, epilog=epilog(name))
    else:
        alone.command(name, epilog=epilog(name))(typed(command_or_group, name))
        alone.callback()(lambda: None)  # else Typer gives it options for completion
    built: Any = typer.main.get_command(alone)
    return built.commands[name]


def epilog(command: str) -> str:
    """Return the end of a command's help: its examples, one a line; of a group, those below it."""
    examples = [EXAMPLES[key] for key in EXAMPLES if f"{key} ".startswith(f"{command} ")]
    lines = "\n".join(f"  {example}" for listed in examples for example in listed)
    return f"\b\nExamples:\n{lines}"
