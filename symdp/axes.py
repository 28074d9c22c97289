"""New Matplotlib axes, where a figure is asked for without any: the only place that makes them."""

from __future__ import annotations

from typing import Any

from symdp.errors import InputError


def axes_or_new(axes: Any) -> Any:
    """Return the axes given, or those of a new figure."""
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ImportError:
        raise InputError("a figure needs Matplotlib: pip install 'symdp[plot]'") from None
    return pyplot.subplots()[1]
