"""Refusals of bad input: one line that says what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from symdp.errors import InputError


@contextmanager
def refused(*parts: str) -> Iterator[None]:
    """Expect an InputError of one line that holds these parts."""
    with pytest.raises(InputError) as caught:
        yield
    message = str(caught.value)
    assert "\n" not in message
    assert [part for part in parts if part not in message] == []
