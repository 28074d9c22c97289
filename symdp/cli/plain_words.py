"""Questions whose words are all plain, read without what Typer loads to convert and to explain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

WANTED = {"delta": "epsilon", "epsilon": "delta"}  # the option that each command needs
OPTIONS = {
    "-n": "count", "--count": "count", "--method": "method", "--sampling": "sampling",
    "--rate": "rate", "--batch-size": "batch", "--records": "records", "--group": "group",
    "--steps": "steps", "--participations": "participations", "--relation": "relation",
    "--direction": "direction", "--composition": "composition", "--time-limit": "time_limit",
}  # fmt: skip
FLAGS = {"--explain": "explain", "--json": "as_json"}
USUAL = {"method": "contour", "direction": "both", "time_limit": "60"}  # where not given


def plain_words(command: str, words: Sequence[str]) -> dict[str, Any] | None:
    """Return what the words of delta or epsilon say, by the names that the options have there.

    None is returned for anything unusual, which Typer then reads, or explains: options that are
    unknown, given twice or joined to their value by "=", or one that is missing.

    Examples
    --------
    >>> plain_words("delta", ["gaussian", "sigma=2", "-n", "5", "--epsilon", "1"])["count"]
    '5'
    >>> plain_words("delta", ["gaussian", "--epsilom", "1"]) is None
    True
    """
    wanted = WANTED[command]
    options = OPTIONS | {f"--{wanted}": wanted}
    given: dict[str, Any] = {}
    others: list[str] = []
    left = iter(words)
    for word in left:
        if not word.startswith("-"):
            others.append(word)
            continue
        name = options.get(word) or FLAGS.get(word)
        value: Any = True if word in FLAGS else next(left, None)
        if name is None or value is None or name in given:
            return None
        given[name] = value
    if wanted not in given:
        return None
    absent = dict.fromkeys(OPTIONS.values()) | dict.fromkeys(FLAGS.values(), False)
    return (
        absent
        | USUAL
        | given
        | {
            "mechanism": others[0] if others else None,
            "values": others[1:],
        }
    )
