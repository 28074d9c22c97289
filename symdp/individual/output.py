"""Results as files of columns: Parquet or npz."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from symdp.durable import replace_file
from symdp.errors import InputError, suggestion

FORMATS = ("parquet", "npz")


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

        def write(part: IO[bytes]) -> None:
            np.savez_compressed(part, meta=extra, **columns)  # type: ignore[arg-type]

    else:
        pa, pq = pyarrow()
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        table = table.replace_schema_metadata(meta)

        def write(part: IO[bytes]) -> None:
            pq.write_table(table, part)

    replace_file(path, write, private=True)  # what is in it is private
