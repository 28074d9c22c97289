"""What every test may rely on."""

from __future__ import annotations

import os
from collections.abc import Iterator

import flint
import mpmath
import pytest
from shell import Shell

# Nothing that a user's own derivations left on the disk may decide a test.
os.environ["SYMDP_CACHE"] = "off"


@pytest.fixture(autouse=True)
def _restored_precision() -> Iterator[None]:
    """Restore the precision that mpmath and FLINT share among all code in a process."""
    digits, bits = mpmath.mp.dps, flint.ctx.prec
    yield
    mpmath.mp.dps, flint.ctx.prec = digits, bits


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    """Run commands in this process."""
    return Shell(capsys)
