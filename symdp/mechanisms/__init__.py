"""The mechanisms that come with symdp: TOML files such as anybody may write.

In comes a name, out goes a `Mechanism`; calling it binds its parameters. Read `gaussian.toml`
first.

>>> import symdp.mechanisms
>>> symdp.mechanisms.gaussian(sigma=1.5)
<Mechanism gaussian(sigma=3/2)>
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from symdp.arguments import a_path, instance
from symdp.errors import InputError, suggestion

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism

# The other functions are for rooms above: people write symdp.mechanisms.gaussian, or symdp.load.
__all__ = ["names"]

_FOLDER = Path(__file__).parent


class _UnknownMechanismError(InputError, AttributeError):
    """Also an AttributeError: hasattr, inspect and import rely on that."""


@cache
def _built_in_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


@cache
def _files() -> dict[str, Path]:
    """Return the file of every name, of those that are known by a curve alone too."""
    found = {path.stem: path for path in _FOLDER.glob("curves/*.toml")}
    return {name: _FOLDER / f"{name}.toml" for name in _built_in_names()} | dict(
        sorted(found.items())
    )


def curve_names() -> list[str]:
    """Return the names of those of which a Rényi curve alone is known, and no pair."""
    return [name for name in _files() if name not in _built_in_names()]


def names() -> list[str]:
    """Return the names of the built-in mechanisms, sorted; this does not import SymPy.

    >>> "gaussian" in names()
    True
    """
    return list(_built_in_names())


def load_builtin(name: str) -> Mechanism:
    """Return a built-in mechanism with its parameters free.

    Raises
    ------
    InputError : no built-in mechanism has this name.

    Examples
    --------
    >>> load_builtin("laplace").parameters
    {'b': b}
    """
    return _loaded(checked_name(instance(name, str, "give a name such as 'gaussian'")))


@cache
def _loaded(name: str) -> Mechanism:
    from symdp.model.specification import load

    return load(_files()[name])


@cache
def _other_names() -> dict[str, str]:
    """Return what a mechanism is also called -> its name."""
    documents = {name: tomllib.loads(path.read_text("utf-8")) for name, path in _files().items()}
    return {other: name for name, held in documents.items() for other in held.get("also", ())}


def checked_name(name: str) -> str:
    """Return the name of a built-in mechanism."""
    if name not in _files():
        if name in _other_names():
            return _other_names()[name]
        _refuse_without_pair(name)
        hint = suggestion(name, _files()) or f" (there are {', '.join(_files())})"
        raise _UnknownMechanismError(f"no built-in mechanism is called '{name}'{hint}")
    return name


def _refuse_without_pair(name: str) -> None:
    """Raise InputError for a mechanism of which it is known that no pair is known."""
    for path in sorted((_FOLDER / "without_pair").glob("*.toml")):
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        if "_".join(name.lower().replace("-", " ").split()) in document["names"]:
            known = f"{document['why']}; {document['instead']} [{document['citation']}]"
            raise _UnknownMechanismError(f"{name}: {known}")


def resolve(name_or_path: str | Path, folder: str | Path = ".") -> Mechanism:
    """Return a built-in mechanism by its name, or the mechanism in a TOML file.

    Parameters
    ----------
    name_or_path : a built-in name, which wins over a file of that name, or a path
    folder : where a relative path starts

    Raises
    ------
    InputError : neither, or a file that describes no mechanism.

    Examples
    --------
    >>> resolve("gumbel")
    <Mechanism gumbel(b)>
    """
    from symdp.model.specification import load

    a_path(name_or_path, "a TOML file, or the name of a built-in mechanism")
    text = str(name_or_path)
    if text in _files():
        return load_builtin(text)
    path = path_of(text, folder)
    if path is not None:
        if path not in _files().values():
            return load(path)
        return load_builtin(path.stem)
    _refuse_without_pair(text)
    hint = suggestion(text, _files()) or f" (built in are {', '.join(_files())})"
    raise InputError(f"no mechanism or file is called {text!r:.60}{hint}")


def path_of(name_or_path: str, folder: str | Path = ".") -> Path | None:
    """Return the TOML file that a name or a path means, None where it means none."""
    if name_or_path in _files():
        return _files()[name_or_path]
    path = Path(folder) / name_or_path
    named = name_or_path.endswith(".toml") or "/" in name_or_path or "\\" in name_or_path
    if named or _is_there(path):
        return path
    return _files().get(_other_names().get(name_or_path, ""))


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long for a file's name, say
        return False


def __getattr__(name: str) -> Mechanism:
    return load_builtin(name)


def __dir__() -> list[str]:
    return [*__all__, *_files()]
