"""Writing files that are complete or absent: a temporary neighbour, flushed, then renamed."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.errors import InputError, suggestion

FORMATS = ("parquet", "npz")


def replace_file(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a neighbour of a file, then put it in the file's place in one step.

    Raises
    ------
    InputError
        If the folder is missing or cannot be written to; what was there stays as it was.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror}); give another place"
        ) from None
    part = Path(name)
    try:
        write(part)
        with part.open("rb+") as stream:
            os.fsync(stream.fileno())
        part.chmod(0o600)  # what is in it is private
        part.replace(path)
        _flush_folder(path.parent)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror}); free some space or give another place"
        ) from None
    finally:
        part.unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def format_of(path: Path) -> str:
    """Return "parquet" or "npz" by a file's name; InputError for any other.

    Examples
    --------
    >>> format_of(Path("run.npz"))
    'npz'
    """
    name = path.suffix.lower().removeprefix(".")
    if name not in FORMATS:
        hint = suggestion(name, FORMATS) if name else ""
        raise InputError(f"{path}: the name must end in .parquet or .npz{hint}")
    if name == "parquet":
        pyarrow()
    return name


def pyarrow() -> Any:
    """Return pyarrow's Parquet module; InputError where pyarrow is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError(
            "Parquet files need pyarrow: pip install -e '.[data]' in this folder, or use .npz"
        ) from None
    return pa, pq


def write_columns(columns: dict[str, NDArray[Any]], meta: dict[str, str], path: Path) -> None:
    """Write columns of equal length as Parquet or npz."""
    if format_of(path) == "npz":
        extra = np.asarray(json.dumps(meta))

        def write(part: Path) -> None:
            with part.open("wb") as stream:
                np.savez_compressed(stream, meta=extra, **columns)  # type: ignore[arg-type]

    else:
        pa, pq = pyarrow()
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        table = table.replace_schema_metadata(meta)

        def write(part: Path) -> None:
            pq.write_table(table, part)

    replace_file(path, write)
