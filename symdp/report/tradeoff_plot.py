"""The trade-off of the best attack as a figure: miss rate over false positive rate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from symdp.errors import InputError
from symdp.report.plot import format_of, settings


def save_trade_off(alpha: Sequence[float], beta: Sequence[float], path: Path) -> None:
    """Draw the curve, and beside it that of guessing, into a file.

    Raises
    ------
    InputError
        If the name's ending is unknown, the file cannot be written, or Matplotlib is missing.
    """
    kind = format_of(path)
    with settings():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.6, 4.4), layout="constrained")
        axes = figure.subplots()
        axes.plot(alpha, beta, color="#0b5fa5", label="best attack")
        axes.plot([0, 1], [1, 0], color="#5b6770", linestyle="--", label="guessing")
        axes.set_xlabel("false positive rate α")
        axes.set_ylabel("miss rate β")
        axes.set_aspect("equal")
        axes.grid(True, color="#888888", alpha=0.25, linewidth=0.6)
        axes.legend(frameon=False)
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
        try:
            figure.savefig(path, format=kind, dpi=160, metadata=metadata)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from None
