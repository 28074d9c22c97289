"""The command line: what it may print on standard error, and its exit codes.

One line and code 2 for bad input, one line and code 1 for a computation that could not reach its
accuracy; never a traceback, unless SYMDP_DEBUG=1 asks for one. In come words, out go an answer and
a code. Read `app.py` first, which lists the commands, then `table.py`, which has every option.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from symdp.capacity import within_capacity
from symdp.cli.encoding import write_anything
from symdp.cli.supervise import INTERRUPTED, supervised
from symdp.errors import AccuracyError, SymdpError
from symdp.interrupt import is_interrupt, quiet_when_interrupted

_PIPE_CLOSED = 141  # 128 + SIGPIPE
_BUG = 1
_MANY_OBJECTS = 100_000  # made since the last collection: formulas are many small ones
# texts of refusals that time or memory explains, and of those of a density's mass
_LATE = ("no answer within", "no proof came within", "incomplete", "--time-limit", "memory")
_OF_MASS = ("cannot be normalized", "could not be shown to have mass 1")
_COMPLETING = "_SYMDP_COMPLETE"  # set where a shell asks what may follow the words typed so far


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    debugging = os.environ.get("SYMDP_DEBUG") == "1"
    if sys.stdout is None or sys.stderr is None:  # closed by whoever started this process
        return _nowhere_to_write()
    write_anything()
    if arguments is not None:
        return _finished(list(arguments), debugging)
    words = sys.argv[1:]
    # A command's arrays are short: threads for them take longer to start than they save.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(_MANY_OBJECTS)  # collecting what SymPy holds anyway is a tenth of the work
    if debugging or _COMPLETING in os.environ:
        return _finished(words, debugging)
    quiet_when_interrupted()
    return supervised(lambda: _finished(words, debugging), _complain)


def _finished(words: list[str], debugging: bool) -> int:
    """Run one command; every failure becomes a line and an exit code."""
    try:
        with warnings.catch_warnings(), ExitStack() as stack:
            if not debugging:  # what libraries warn of is no line of ours
                warnings.simplefilter("ignore")
                stack.enter_context(within_capacity(words[0] if words else "symdp"))
            code = _run_command(words)
        sys.stdout.flush()
    except SymdpError as error:
        code = _complain(_with_page(error), error.exit_code)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        _silence()
        code = _PIPE_CLOSED
    except OSError as error:
        if debugging:
            raise
        where = f"{error.filename}" if error.filename else "the standard output"
        code = _complain(f"{where} cannot be written or read: {error.strerror}", 1)
        _silence()
    except Exception as error:  # the one place where every failure must become a line
        if is_interrupt(error):
            return INTERRUPTED
        if debugging:
            raise
        code = _complain(
            f"a bug in symdp, please report it: {type(error).__name__}: {error} "
            "(SYMDP_DEBUG=1 shows where)",
            _BUG,
        )
    return code


def _run_command(words: list[str]) -> int:
    if words and words[0] != "--help":
        from symdp.cli.options import asked, call
        from symdp.cli.question import ours

        words = ours(words)
        plain = None if _COMPLETING in os.environ else asked(words)
        if plain is not None:
            return call(*plain) or 0
    return _read_by_typer(words)


def _read_by_typer(words: list[str]) -> int:
    import typer

    from symdp.cli.app import app

    # BadParameter's parent is the usage error of whichever click this typer is built on.
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    command: Any = typer.main.get_command(app)
    try:
        if _COMPLETING in os.environ:
            command.main(words, prog_name="symdp")  # ends by SystemExit
        with command.make_context("symdp", words or ["--help"]) as context:
            return command.invoke(context) or 0
    except typer.Exit as stop:
        return int(stop.exit_code)
    except SystemExit as stop:
        return int(stop.code or 0)
    except typer.Abort:
        return INTERRUPTED
    except usage_error as error:
        return _complain(_usage(error), 2)


def _with_page(error: SymdpError) -> str:
    """Return what an error says, with the page of remedies where a number was refused."""
    message = str(error)
    is_refused = isinstance(error, AccuracyError) or any(text in message for text in _OF_MASS)
    is_late = any(text in message for text in _LATE)
    if is_refused and not is_late:
        return f"{message}; see docs/refused.md"
    return message


def _usage(error: Exception) -> str:
    """Return a usage error's message with the remedy."""
    message = " ".join(getattr(error, "format_message", lambda: str(error))().split())
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "symdp"
    message = message[:1].lower() + message[1:].rstrip(".")
    return f"{message}; see '{path} --help'"


def _complain(message: str, code: int) -> int:
    """Print one line on standard error and return the exit code."""
    from symdp.cli.display import one_line

    try:
        print(f"symdp: {one_line(message)}", file=sys.stderr, flush=True)
    except OSError:
        _silence()
    return code


def _nowhere_to_write() -> int:
    """Say on what is left of the standard streams that one of them is closed."""
    if sys.stderr is not None:
        _complain("the standard output is closed: there is nowhere to print an answer", 1)
    return 1


def _silence() -> None:
    """Point the standard streams nowhere, so that nothing complains when the process ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(nowhere, stream.fileno())
        except (OSError, ValueError):  # a stream of a test, without a number
            continue
