"""Results as files of columns: Parquet, npz or CSV."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from symdp.durable import replace_file
from symdp.errors import InputError, suggestion

FORMATS = ("parquet", "npz", "csv")


def format_of(path: Path) -> str:
    """Return "parquet", "npz" or "csv" by a file's name; InputError for any other.

    Examples
    --------
    >>> format_of(Path("run.npz"))
    'npz'
    """
    name = path.suffix.lower().removeprefix(".")
    if name not in FORMATS:
        hint = suggestion(name, FORMATS) if name else ""
        raise InputError(f"{path}: the name must end in .csv, .npz or .parquet{hint}")
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
    """Write columns of equal length as Parquet, npz or CSV, every number a full double."""
    kind = format_of(path)
    if kind == "csv":
        values = [column.tolist() for column in columns.values()]

        def write(part: IO[bytes]) -> None:
            text = io.TextIOWrapper(part, encoding="utf-8", newline="")
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*values, strict=True))
            text.flush()
            text.detach()

    elif kind == "npz":
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
