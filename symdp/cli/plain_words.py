"""Commands whose words are all plain, run without what Typer loads to convert and to explain."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, get_args, get_type_hints


def plain_call(function: Callable[..., None], words: Sequence[str]) -> Callable[[], None] | None:
    """Return the call that words mean, read off the function's own options.

    None is returned for anything unusual, which Typer then reads, or explains: options that are
    unknown, given twice, joined to their value by "=" or not known to be text or a flag.

    Examples
    --------
    >>> from symdp.cli.app import delta
    >>> plain_call(delta, ["gaussian", "sigma=2", "-n", "5", "--epsilon", "1"]).keywords["count"]
    '5'
    >>> plain_call(delta, ["gaussian", "--epsilom", "1"]) is None
    True
    """
    import typer

    options: dict[str, tuple[str, bool]] = {}
    arguments: list[tuple[str, bool]] = []
    given: dict[str, Any] = {}
    parameters = inspect.signature(function).parameters
    for name, hint in get_type_hints(function, include_extras=True).items():
        if name not in parameters:
            continue
        kind, told = get_args(hint)[:2]
        if isinstance(told, typer.models.OptionInfo):
            # Inside Annotated, the first name of an option takes the place of its default.
            own = (told.default, *(told.param_decls or ()))
            options |= dict.fromkeys(map(str, own), (name, kind is bool))
        else:
            arguments.append((name, kind == list[str] | None))
    left = iter(words)
    for word in left:
        if word.startswith("-"):
            name, is_flag = options.get(word, ("", False))
            value: Any = True if is_flag else next(left, None)
        else:
            (name, several), *others = arguments or [("", False)]
            arguments = arguments if several else others
            value = [*given.pop(name, []), word] if several else word
        if not name or value is None or name in given:
            return None
        given[name] = value
    wanted = {name for name, one in parameters.items() if one.default is inspect.Parameter.empty}
    return partial(function, **given) if wanted <= set(given) else None
