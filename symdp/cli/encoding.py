"""Every answer in whatever encoding the standard streams have: letters as words where they must be.

>>> "ε(δ = 1e-05) ≤ 2·√3".encode("ascii", HANDLER).decode()
'epsilon(delta = 1e-05) <= 2*sqrt3'
"""

from __future__ import annotations

import codecs
import sys
import unicodedata

HANDLER = "symdp.words"
_WORDS = {
    "≤": "<=", "≥": ">=", "≈": "~", "≠": "!=", "−": "-", "–": "-", "—": "-", "×": "x", "·": "*",
    "→": "->", "←": "<-", "↦": "->", "…": "...", "√": "sqrt", "∞": "oo", "∑": "sum",
    "∫": "integral",
    "ℓ": "l", "‖": "||", "′": "'", "″": "''", "∈": "in", "⌈": "ceil(", "⌉": ")", "⌊": "floor(",
    "⌋": ")", "“": '"', "”": '"', "’": "'", "‘": "'", "∂": "d", "ø": "o", "ł": "l", "ß": "ss",
    "─": "-", "│": "|", "█": "#", "▏": "|", "°": "deg", "±": "+-",
}  # fmt: skip


def in_words(text: str) -> str:
    """Return text in ASCII: Greek letters by their names, signs as they are typed.

    >>> in_words("σ² = ½, Rényi")
    'sigma^2 = 1/2, Renyi'
    """
    return "".join(c if c.isascii() else _word(c) for c in text)


def _word(character: str) -> str:
    if character in _WORDS:
        return _WORDS[character]
    name = unicodedata.name(character, "")
    if name.startswith(("GREEK SMALL LETTER ", "GREEK CAPITAL LETTER ")):
        letter = name.rpartition("LETTER ")[2].split()[0].lower().replace("lamda", "lambda")
        return letter.capitalize() if "CAPITAL" in name else letter
    plain = unicodedata.normalize("NFKD", character).replace("⁄", "/").replace("−", "-")
    found = "".join(c for c in plain if c.isascii())
    if name.startswith("SUPERSCRIPT"):
        return f"^{found}"
    return found or "?"


def _handler(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return in_words(error.object[error.start : error.end]), error.end


codecs.register_error(HANDLER, _handler)


def write_anything() -> None:
    """Let the standard streams write every character, as words where they have no code for it."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=HANDLER)
