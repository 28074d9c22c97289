"""Running the command line in this process: what it prints, what it complains of, its code."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from symdp.cli import main


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


class Shell:
    """Call with the words after `symdp`."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, line: str, *words: str) -> Ran:
        self._capture.readouterr()
        code = main([*line.split(), *words])
        printed = self._capture.readouterr()
        return Ran(code, printed.out, printed.err)
