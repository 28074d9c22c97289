"""Figures of individual accounting: a histogram of ε, and one curve for each group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from symdp.report.plot import format_of


def save_histogram(found: Any, path: Path, labels: Sequence[Any] | None = None) -> None:
    """Draw how ε is spread over the records, and its distribution within each group.

    Parameters
    ----------
    found
        What `IndividualAccountant.epsilon` or `.delta` returned.
    path
        A .svg, .pdf or .png file.
    labels
        One label for each record.

    Raises
    ------
    InputError
        If the name's ending is unknown or the file cannot be written.
    """
    import numpy as np
    from matplotlib.figure import Figure

    from symdp.individual.output import replace_file

    kind = format_of(path)
    panels = 1 if labels is None else 2
    figure = Figure(figsize=(5.0 * panels, 3.2), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    name = "ε" if found.asked == "epsilon" else "δ"
    counts, edges = found.histogram()
    axes[0].stairs(counts, edges, fill=True, color="#0b5fa5", alpha=0.7)
    axes[0].axvline(float(np.max(found.value)), color="#d1495b", linestyle="--")
    axes[0].set(xlabel=f"{name} (largest dashed)", ylabel="records")
    if labels is not None:
        names = np.asarray(labels)
        for one in np.unique(names):
            values = np.sort(found.value[names == one])
            axes[1].step(values, np.arange(1, values.size + 1) / values.size, label=str(one))
        axes[1].set(xlabel=name, ylabel="share of the group")
        axes[1].legend(fontsize=7)
    replace_file(path, lambda part: figure.savefig(part, format=kind))
