"""Every answer in the encoding of the standard streams: letters as words where they must be."""

from __future__ import annotations

import codecs
import sys

HANDLER = "symdp.words"


def _handler(error: UnicodeError) -> tuple[str, int]:
    from symdp.page.node import transliterated  # only where a stream asks for it

    assert isinstance(error, UnicodeEncodeError)
    return transliterated(error.object[error.start : error.end]), error.end


codecs.register_error(HANDLER, _handler)


def write_anything() -> None:
    """Let the standard streams write every character, as words where they have no code for it."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=HANDLER)
