"""What individual accounting returns: arrays over the records, and what each number is."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from symdp.arguments import share
from symdp.durable import replace_file
from symdp.errors import InputError, suggestion
from symdp.numeric.step import Array
from symdp.questions.guarantee import KINDS, Alike

PATHS = ("shared line", "no loss seen at this delta", "single record", "renyi bound")
WARNING = (
    "individual epsilons, norms and active sets are functions of the data: they are private "
    "themselves"
)
_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_FORMATS = ("parquet", "npz", "csv")


@dataclass(frozen=True, eq=False)
class IndividualResult(Alike):
    """ε or δ of every record, with bounds and with what kind of number each one is.

    A kind is "exact" (a fixed sequence, value within [lower, upper]), "bound" (proved to be no
    smaller than the truth) or "estimate". Bounds are those of the counted losses rounded towards
    smaller and larger ones, and of the numerical error. Arrays have the shape (records,).
    """

    quantity: str  # what was asked for, "epsilon" or "delta"
    epsilon: Array  # in nats
    log_delta: Array
    lower: Array  # of what was asked for, log δ where δ was
    upper: Array
    kind_code: NDArray[np.uint8]  # the place in `KINDS`
    path_code: NDArray[np.uint8]  # the place in `PATHS`: how each number was found
    numerical_error: Array  # an estimate of it alone, relative to δ
    steps: NDArray[np.int64]  # Σ counts of each record
    method: str
    direction: str
    seconds: float = field(default=0.0, compare=False)
    note: str = ""  # what is wrong with the numbers, if anything
    protects: str = ""  # whose privacy they speak of
    ids: NDArray[Any] | None = None  # the records' names, None for 0, 1, 2, …
    extra: dict[str, Array] = field(default_factory=dict)  # further columns of the file

    def __len__(self) -> int:
        return int(self.epsilon.size)

    def __repr__(self) -> str:
        name = "ε" if self.quantity == "epsilon" else "δ"
        return f"<IndividualResult: {name} of {len(self)} records by {self.method}>"

    def taken(self, places: NDArray[np.intp]) -> IndividualResult:
        """Return the answers at some places, one place as often as it is named."""
        columns: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                columns[name] = value[places]
        return replace(self, **columns)

    @property
    def delta(self) -> Array:
        """δ as doubles; where `log_delta` lies below their range, 0."""
        return np.asarray(np.exp(self.log_delta))

    @property
    def value(self) -> Array:
        """What was asked for: ε, or δ."""
        if self.quantity == "epsilon":
            return self.epsilon
        return self.delta

    @property
    def computed(self) -> Array:
        """What was asked for as it is computed: ε, or log δ."""
        if self.quantity == "epsilon":
            return self.epsilon
        return self.log_delta

    @property
    def kind(self) -> NDArray[np.str_]:
        """The kind of every number, as words."""
        return np.asarray(KINDS)[self.kind_code]

    @property
    def paths(self) -> dict[str, int]:
        """How many records took which path; none is silently slower or looser."""
        counted = np.bincount(self.path_code, minlength=len(PATHS))
        return {name: int(n) for name, n in zip(PATHS, counted, strict=True) if n}

    def quantiles(self, shares: Sequence[float] = _QUANTILES) -> dict[float, float]:
        """Return quantiles of what was asked for over the records."""
        if not len(self):
            raise InputError("quantiles of no records: give at least one")
        values = np.quantile(self.value, shares, method="higher")
        return {float(s): float(v) for s, v in zip(shares, values, strict=True)}

    def upper_ends(self) -> IndividualResult:
        """Return this with the upper end of every number, where it has one, in its place."""
        ends = np.where(np.isfinite(self.upper), np.fmax(self.computed, self.upper), self.computed)
        if self.quantity == "epsilon":
            return replace(self, epsilon=ends)
        return replace(self, log_delta=ends)

    def histogram(self, bins: int = 30) -> tuple[NDArray[np.int64], Array]:
        """Return counts and edges of a histogram of what was asked for."""
        counts, edges = np.histogram(self.value, bins=bins)
        return counts, edges

    def by_group(self, labels: Iterable[Any]) -> dict[Any, dict[str, float]]:
        """Return count, median, mean, 95 % quantile and maximum of each label's records."""
        names = np.asarray(list(labels) if not hasattr(labels, "__len__") else labels)
        if names.shape != self.epsilon.shape:
            raise InputError(
                f"labels of shape {names.shape} for {len(self)} records: one label each is needed"
            )
        table = {}
        for name in np.unique(names):
            values = self.value[names == name]
            key = name.item() if hasattr(name, "item") else name
            table[key] = {
                "count": float(values.size),
                "median": float(np.median(values)),
                "mean": float(values.mean()),
                "q95": float(np.quantile(values, 0.95, method="higher")),
                "max": float(values.max()),
            }
        return table

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns that are written to files."""
        return {
            "id": np.arange(len(self)) if self.ids is None else self.ids,
            "epsilon": self.epsilon,
            "log_delta": self.log_delta,
            "lower": self.lower,
            "upper": self.upper,
            "kind": self.kind,
            "path": np.asarray(PATHS)[self.path_code],
            "steps": self.steps,
            **self.extra,
        }

    def save(self, path: str | Path) -> None:
        """Write one row a record to a .csv, .npz or .parquet file, complete or not at all."""
        attributes = ("method", "direction", "note", "protects")
        meta = {"asked": self.quantity} | {name: getattr(self, name) for name in attributes}
        meta |= {"warning": WARNING}
        _write_columns(self.columns(), meta, Path(path))

    def summary(self) -> dict[str, Any]:
        """Return the numbers of a summary as JSON values."""
        quantiles = self.quantiles()
        kinds = np.bincount(self.kind_code, minlength=len(KINDS))
        with np.errstate(invalid="ignore"):
            wide = self.upper - self.lower
        return {
            "asked": self.quantity,
            "records": len(self),
            "quantiles": {f"{k:g}": v for k, v in quantiles.items()},
            "mean": float(self.value.mean()),
            "widest_interval": float(np.nanmax(wide)) if np.isfinite(wide).any() else None,
            "kinds": {k: int(n) for k, n in zip(KINDS, kinds, strict=True) if n},
            "paths": self.paths,
            "method": self.method,
            "direction": self.direction,
            "seconds": round(self.seconds, 6),
            "note": self.note,
            "protects": self.protects,
            "warning": WARNING,
        }


def larger(first: IndividualResult, second: IndividualResult) -> IndividualResult:
    """Return the larger of two directions' numbers, record by record, by its weakest kind.

    As `symdp.questions.guarantee` has it: what is proved to be less counts for nothing.
    """
    take = second.computed > first.computed
    names = ("epsilon", "log_delta", "path_code", "numerical_error")
    chosen = {n: np.where(take, getattr(second, n), getattr(first, n)) for n in names}
    chosen["lower"] = np.fmax(first.lower, second.lower)
    chosen["upper"] = np.maximum(first.upper, second.upper)  # none where one has none
    kinds = [
        np.where(_is_less(a, b), 0, a.kind_code) for a, b in ((first, second), (second, first))
    ]
    return replace(first, direction="both", kind_code=np.maximum(*kinds), **chosen)


def _is_less(one: IndividualResult, other: IndividualResult) -> NDArray[np.bool_]:
    """Return for which records one direction is proved to be less than the other."""
    proved = np.maximum(one.kind_code, other.kind_code) < KINDS.index("estimate")
    return np.asarray(proved & (one.upper < other.lower))


def check_delta(delta: float | str) -> float:
    """Return log δ of a δ that lies strictly between 0 and 1."""
    return math.log(share(delta, "delta"))


def format_of(path: Path) -> str:
    """Return "parquet", "npz" or "csv" by a file's name; InputError for any other."""
    name = path.suffix.lower().removeprefix(".")
    if name not in _FORMATS:
        hint = suggestion(name, _FORMATS) if name else ""
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


def _write_columns(columns: dict[str, NDArray[Any]], meta: dict[str, str], path: Path) -> None:
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
