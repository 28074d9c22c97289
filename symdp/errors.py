"""The errors that symdp raises, and the close matches that its messages offer."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")


class SymdpError(Exception):
    """Base of every error that symdp raises on purpose; `exit_code` is the command line's."""

    exit_code = 1


class InputError(SymdpError, ValueError):
    """The input breaks a rule: the message names the culprit, the rule and the remedy."""

    exit_code = 2


class AccuracyError(SymdpError, ArithmeticError):
    """A computation could not reach its accuracy, so no number is returned."""

    exit_code = 1


@contextmanager
def at(where: str) -> Iterator[None]:
    """Put the place of an error in front of its message."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def refusal(ask: Callable[[], object]) -> str:
    """Return why a question is refused, empty where it is answered: for who steps over refusals."""
    try:
        ask()
    except (InputError, AccuracyError) as error:
        return str(error)
    return ""


def answer_of(future: Future[T]) -> T:
    """Return what a worker of an executor found; AccuracyError where it ended before."""
    from concurrent.futures import BrokenExecutor

    try:
        return future.result()
    except BrokenExecutor:
        raise AccuracyError(
            "a worker ended before its part was done: ask again with a new executor"
        ) from None


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a hint with the closest known name, or an empty string."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    if matches:
        return f"; did you mean '{matches[0]}'?"
    return ""
