"""Figures: the privacy profile (log δ over ε), the trade-off of attacks, ε of every record."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symdp.decimal_text import rounded
from symdp.durable import replace_file
from symdp.errors import InputError, suggestion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from symdp.model.mechanism import Mechanism
    from symdp.questions.design.integers import Design
    from symdp.questions.guarantee import Guarantee

FORMATS = ("svg", "pdf", "png")
_LN10 = math.log(10)
_VISIBLE = 0.01  # decades between bounds that an eye can see
_FEW_DECADES = 2.0
_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
# Colours that differ in lightness too, so that they survive grey printing and colour blindness.
_COLOURS = ("#0b5fa5", "#d1495b", "#2a9d5c", "#b8860b", "#7b4fa3", "#5b6770")
_MARKERS = "osD^vPX*"
_LARGEST_ERROR = 3.0  # decades; what is further off leaves the picture
# places of a density, and tilts of a figure
_DRAWN = 801
_FEW = 101
_RATES = 33  # false positive rates of a trade-off function in a small figure
_PANELS = 4  # of the figure of a mechanism
_TILTS = 3.0  # the farthest tilts of a drawn K, from 0 and from −1
_DEVIATIONS = 4.0  # to either side, of a designed noise that is drawn
_INK = "#123457"  # stands for the page's own text colour until the SVG is embedded


@dataclass(frozen=True)
class Series:
    """One accountant's curve, with or without bounds; `dots` draws its points alone."""

    label: str
    epsilon: tuple[float, ...]
    log_delta: tuple[float, ...]
    log_lower: tuple[float | None, ...] = ()
    log_upper: tuple[float | None, ...] = ()
    dots: bool = False

    @classmethod
    def of(cls, label: str, answers: Sequence[Guarantee]) -> Series:
        """Return the curve through an accountant's answers."""
        columns = (
            tuple(getattr(answer, name) for answer in answers)
            for name in ("epsilon", "log_delta", "log_lower", "log_upper")
        )
        epsilon, log_delta, lower, upper = columns
        return cls(label, epsilon, log_delta, lower, upper)


def why_not_drawn() -> str:
    """Return why nothing can be drawn here, with the remedy; "" where Matplotlib is there.

    To be asked before the work whose result is to be drawn.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return (
            "drawing needs Matplotlib, which is not installed: run pip install -e '.[plot]' in "
            "the checkout of symdp, or pip install matplotlib"
        )
    return ""


def format_of(path: Path) -> str:
    """Return the format that a file's name asks for; InputError if there is none such."""
    name = path.suffix.lower().removeprefix(".")
    if name not in FORMATS:
        hint = ""
        if name:
            hint = suggestion(name, FORMATS)
        raise InputError(f"--plot {path}: the name must end in .svg, .pdf or .png{hint}")
    return name


def save(series: Sequence[Series], path: Path, title: str = "", *, of_errors: bool = False) -> None:
    """Draw the curves into a file: vector graphics, or pixels where its name ends in .png."""
    _write(path, lambda: _figure(series, "black", title, of_errors=of_errors))


def save_axes(draw: Callable[[Any], object], path: Path) -> None:
    """Draw into a file what `draw` puts into Matplotlib axes."""

    def drawn() -> Figure:
        figure, (axes,) = _empty(6.4, 3.9)
        draw(axes)
        _finish(axes, "black")
        return figure

    _write(path, drawn)


def save_trade_off(alpha: Sequence[float], beta: Sequence[float], path: Path) -> None:
    """Draw the miss rate of the best attack over its false positive rate, beside guessing."""

    def drawn() -> Figure:
        figure, (axes,) = _empty(4.6, 4.4)
        axes.plot(alpha, beta, color=_COLOURS[0], label="best attack")
        axes.plot([0, 1], [1, 0], color=_COLOURS[-1], linestyle="--", label="guessing")
        axes.set_xlabel("false positive rate α")
        axes.set_ylabel("miss rate β")
        axes.set_aspect("equal")
        axes.grid(True, color="#888888", alpha=0.25, linewidth=0.6)
        axes.legend(frameon=False)
        return figure

    _write(path, drawn)


def mechanism_axes(mechanism: Mechanism, ax: Any = None) -> Any:
    """Draw density and shift, loss, K with its domain and trade-off of one step into four axes."""
    import numpy as np

    from symdp.model.sampling import Radial
    from symdp.questions.composition import compose
    from symdp.questions.noise import shown_range
    from symdp.questions.tradeoff import trade_off

    if ax is not None and np.size(ax) != _PANELS:
        raise InputError(f"ax: four axes are needed, as of subplots(2, 2), not {np.size(ax)}")
    steps = compose(mechanism)
    law = steps.law("remove")
    x = mechanism.variable
    low, high = shown_range(mechanism)
    with settings():
        if ax is None:
            from matplotlib import pyplot

            figure, ax = pyplot.subplots(2, 2, figsize=(9.0, 6.6), layout="constrained")
            figure.suptitle(mechanism.summary)
        density, loss, cgf, attack = np.ravel(ax)
        places, logs, mark = _laws_drawn(mechanism, low, high)
        style: dict[str, Any] = {"marker": mark, "markersize": 3, "linestyle": "-"}
        if mark:
            style["linestyle"] = ""
        for name, values, colour in zip("PQ", logs, _COLOURS, strict=False):
            density.plot(places, np.exp(values), color=colour, label=name, **style)
        with np.errstate(all="ignore"):
            loss.plot(places, logs[0] - logs[1], color=_COLOURS[0], **style)
        first, last = max(law.domain[0], -_TILTS - 1.0), min(law.domain[1], _TILTS)
        tilts = np.linspace(first, last, _FEW)[1:-1]
        cgf.plot(tilts, [law.cgf(float(t)) for t in tilts], color=_COLOURS[0])
        for end in (e for e in law.domain if abs(e) <= _TILTS + 1.0):
            cgf.axvline(end, color=_COLOURS[1], linestyle="--")
        # Denser at both ends, where the curve bends.
        alpha = (1.0 - np.cos(np.linspace(0.0, math.pi, _RATES))) / 2.0
        attack.plot(alpha, trade_off(steps, alpha), color=_COLOURS[0], label="best attack")
        attack.plot([0, 1], [1, 0], color=_COLOURS[-1], linestyle="--", label="guessing")
        domain = " to ".join(f"{end:.4g}" for end in law.domain).replace("inf", "∞")
        heights = "density, with the record P and without it Q"
        output = x.name
        transform = f"K(t), finite for t from {domain}"
        if isinstance(mechanism.source, Radial):
            heights = "density of P and Q, 1 at its centre"
            output = "x along the shift"
            transform = "K(t)"
        density.set(title=heights, xlabel=output)
        loss.set(title="privacy loss ℓ = log P/Q", xlabel=output)
        cgf.set(title=transform, xlabel="t")
        attack.set(title="trade-off", xlabel="false positive rate α", ylabel="miss rate β")
        for axes in (density, attack):
            axes.legend(frameon=False)
    return ax


def _laws_drawn(mechanism: Mechanism, low: float, high: float) -> tuple[Any, list[Any], str]:
    """Return places, log P and log Q there, and the marker of values that are not joined."""
    import numpy as np
    import sympy as sp

    from symdp.emit.numpy import compile_numpy
    from symdp.model.sampling import Radial

    x = mechanism.variable
    source = mechanism.source
    if isinstance(source, Radial):
        places = np.linspace(low, high, _DRAWN)
        height = compile_numpy(source.density, [x])
        away = np.abs(places - float(source.sensitivity))
        with np.errstate(all="ignore"):
            log_top = np.log(height(np.zeros(1)))
            logs = [np.log(height(distance)) - log_top for distance in (away, np.abs(places))]
        return places, logs, ""
    pair = mechanism.pair()
    if pair.support.points:
        places = np.asarray([float(point) for point in pair.support.points])
        masses = [np.asarray([float(sp.log(m)) for m in law]) for law in (pair.P, pair.Q)]
        return places, masses, "o"
    if pair.support.kind == "interval":
        places = np.linspace(low, high, _DRAWN)
        mark = ""
    else:
        places = np.arange(math.floor(low), math.ceil(high) + 1.0)
        mark = "o"
    with np.errstate(all="ignore"):
        logs = [np.log(compile_numpy(law, [x])(places)) for law in (pair.P, pair.Q)]
    return places, logs, mark


def save_mechanism(mechanism: Mechanism, path: Path) -> None:
    """Draw one step of a mechanism in a file."""
    _write(path, lambda: mechanism_axes(mechanism)[0, 0].figure)


def save_design(design: Design, path: Path) -> None:
    """Draw a designed noise beside those that it was compared with, ε of each in the legend."""
    _write(path, lambda: _design_figure(design))


def _design_figure(design: Design) -> Figure:
    import numpy as np

    with settings():
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(1, 3, figsize=(12.6, 3.7), layout="constrained")
        density, ratio, gain = axes
        is_real = design.cell is not None
        reach = math.ceil(_DEVIATIONS * design.rows[0].mechanism.std)
        places = np.arange(-reach, reach + 1.0)
        what = "probability of each value"
        if is_real:
            places = np.linspace(-reach, reach, 2 * _DRAWN + 1)
            what = "density"
        drawn = {row.name: _law(row.mechanism, places) for row in design.rows}
        best = design.rows[-1].name
        if len(design.rows) > 1:
            best = design.rows[1].name
        by_name = sorted(design.rows, key=lambda row: row.name, reverse=True)
        for row, colour, mark in zip(by_name, _COLOURS, _MARKERS, strict=False):
            epsilon = rounded(row.guarantee.epsilon, 6, "up")
            style: dict[str, Any] = {"color": colour, "linewidth": 1.1}
            if not is_real:
                style = {"color": colour, "marker": mark, "markersize": 3.0, "linewidth": 0.8}
            density.semilogy(places, drawn[row.name], label=f"{row.name}: ε = {epsilon}", **style)
            ratio.plot(places, drawn[row.name] / drawn[best], **style)
        density.set(title=what, xlabel="noise")
        ratio.set(title=f"the same over that of {best} noise", xlabel="noise", ylim=(0.0, 3.0))
        density.legend(frameon=False, fontsize=8)
        gains = design.gains()
        gain.semilogx(list(gains), list(gains.values()), "o-", color=_COLOURS[0], markersize=3.5)
        gain.axhline(0.0, color=_COLOURS[-1], linewidth=0.8)
        gain.axvline(design.n, color=_COLOURS[1], linestyle="--", linewidth=0.8)
        gain.set_xticks(list(gains), [str(n) for n in gains])
        gain.minorticks_off()
        gain.set(title=f"gain of the {design.rows[0].name} noise, in percent", xlabel="steps")
        gain.set(ylabel="ε below the better of the others, by")
        for panel in axes:
            panel.grid(True, color="#888888", alpha=0.25, linewidth=0.6)
        return figure


def _law(mechanism: Mechanism, places: Any) -> Any:
    """Return the masses of noise on the integers at places, or its density on the reals."""
    import numpy as np

    from symdp.emit.numpy import compile_numpy

    noise = mechanism.source
    if not mechanism.is_listed:
        density = compile_numpy(noise.density, [mechanism.variable])  # type: ignore[union-attr]
        return density(places)
    width = float(noise.cell or 1)  # type: ignore[union-attr]
    masses = np.asarray([float(mass) for mass in noise.masses])  # type: ignore[union-attr]
    index = np.floor(np.abs(places) / width + 0.5).astype(int)
    beyond = np.maximum(index - masses.size + 1, 0)
    ratio = float(noise.ratio)  # type: ignore[union-attr]
    values = masses[np.minimum(index, masses.size - 1)] * ratio**beyond / width
    return np.where(values > 0.0, values, math.nan)


def save_histogram(result: Any, path: Path, labels: Sequence[Any] | None = None) -> None:
    """Draw how ε is spread over the records, and its distribution within each group."""

    def drawn() -> Figure:
        import numpy as np

        panels = 1
        if labels is not None:
            panels = 2
        figure, axes = _empty(5.0 * panels, 3.2, panels)
        name = "δ"
        if result.quantity == "epsilon":
            name = "ε"
        axes[0].stairs(*result.histogram(), fill=True, color=_COLOURS[0], alpha=0.7)
        axes[0].axvline(float(np.max(result.value)), color=_COLOURS[1], linestyle="--")
        axes[0].set(xlabel=f"{name} (largest dashed)", ylabel="records")
        if labels is not None:
            names = np.asarray(labels)
            for group in np.unique(names):
                values = np.sort(result.value[names == group])
                axes[1].step(values, np.arange(1, values.size + 1) / values.size, label=str(group))
            axes[1].set(xlabel=name, ylabel="share of the group")
            axes[1].legend(fontsize=7)
        return figure

    _write(path, drawn)


def _write(path: Path, drawn: Callable[[], Figure]) -> None:
    kind = format_of(path)
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with settings():
        figure = drawn()
        replace_file(path, lambda p: figure.savefig(p, format=kind, dpi=160, metadata=metadata))


def _empty(width: float, height: float, panels: int = 1) -> tuple[Figure, Any]:
    """Return a figure without curves, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def embedded(series: Sequence[Series], name: str, *, of_errors: bool = False) -> str:
    """Return the figure as an SVG element for a page: no outside names, text in its colour."""
    with settings():
        target = StringIO()
        figure = _figure(series, _INK, "", of_errors=of_errors)
        figure.savefig(target, format="svg", transparent=True)
    svg = target.getvalue()
    svg = svg[svg.index("<svg") :]
    for pattern, replacement in (
        (r"<metadata>.*?</metadata>|<!--.*?-->", ""),
        (r' xmlns(:\w+)?="[^"]*"', ""),
        ("xlink:href", "href"),
        (_INK, "currentColor"),
        (r'\bid="', f'id="{name}-'),
        (r'href="#', f'href="#{name}-'),
        (r"url\(#", f"url(#{name}-"),
        (r'width="[\d.]+pt" height="[\d.]+pt"', ""),
        (r"\n\s*", "\n"),
    ):
        svg = re.sub(pattern, replacement, svg, flags=re.DOTALL)
    return svg


def _figure(series: Sequence[Series], ink: str, title: str, *, of_errors: bool) -> Figure:
    if of_errors:
        return _errors(series, ink)
    figure, (axes,) = _empty(6.4, 3.9)
    lowest = math.inf
    highest = -math.inf
    for index, curve in enumerate(series):
        pairs = zip(curve.epsilon, curve.log_delta, strict=True)
        points = [(e, d / _LN10) for e, d in pairs if math.isfinite(d)]
        if not points:
            continue
        colour = _COLOURS[index % len(_COLOURS)]
        if curve.dots:
            columns = [[point[column] for point in points] for column in range(2)]
            axes.plot(*columns, "o", label=curve.label, color=ink, markersize=5, zorder=90)
            continue
        style = _STYLES[(index + index // len(_COLOURS)) % len(_STYLES)]
        # The first curve lies below the others and is wide, so that they show where they meet.
        width = 1.5
        if index == 0 and len(series) > 1:
            width = 3.2
        axes.plot(
            [e for e, _ in points],
            [d for _, d in points],
            label=curve.label,
            color=colour,
            linestyle=style,
            linewidth=width,
            zorder=3 + index,
        )
        _shade(axes, curve, colour)
        if index == 0 or len(series) == 1:
            lowest = min(lowest, *(d for _, d in points))
            highest = max(highest, *(d for _, d in points))
    if lowest < highest:
        margin = 0.05 * (highest - lowest)
        axes.set_ylim(lowest - margin, min(highest + 3 * margin, max(highest + margin, 0.3)))
    if highest - lowest > _FEW_DECADES:
        _ticks(axes.yaxis, _power_tick, True)
    else:
        _ticks(axes.yaxis, _plain_tick, False)
    axes.set_xlabel("ε (nats)", color=ink)
    axes.set_ylabel("δ(ε)", color=ink)
    if title:
        axes.set_title(title, color=ink, fontsize="medium")
    _finish(axes, ink)
    if axes.lines:
        axes.legend(frameon=False, labelcolor=ink, loc="best")
    return figure


def _errors(series: Sequence[Series], ink: str) -> Figure:
    """Return a row for each curve of errors, with a mark for each ε."""
    figure, (axes,) = _empty(6.4, 0.24 * len(series) + 1.0)
    marks: dict[float, list[tuple[float, int]]] = {}
    for row, curve in enumerate(series):
        for epsilon, log_error in zip(curve.epsilon, curve.log_delta, strict=True):
            decades = min(log_error / _LN10, _LARGEST_ERROR)
            marks.setdefault(epsilon, []).append((decades, row))
    for index, epsilon in enumerate(sorted(marks)):
        axes.plot(
            *zip(*marks[epsilon], strict=True),
            label=f"ε = {rounded(epsilon, 4)}",
            color=_COLOURS[index % len(_COLOURS)],
            marker=_MARKERS[index % len(_MARKERS)],
            linestyle="none",
            markersize=5,
        )
    axes.set_yticks(range(len(series)), [curve.label for curve in series], fontsize="small")
    axes.set_ylim(len(series) - 0.5, -0.5)
    _ticks(axes.xaxis, _power_tick, True)
    axes.set_xlabel("|δ/truth − 1|", color=ink)
    axes.legend(
        frameon=False,
        labelcolor=ink,
        fontsize="small",
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=3,
    )
    _finish(axes, ink)
    return figure


def _ticks(axis: Any, written: Callable[[float, int], str], is_whole: bool) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=8, integer=is_whole))
    axis.set_major_formatter(FuncFormatter(written))


def _finish(axes: Any, ink: str) -> None:
    axes.grid(True, color="#888888", alpha=0.25, linewidth=0.6)
    axes.tick_params(colors=ink)
    for side, spine in axes.spines.items():
        spine.set_visible(side in {"left", "bottom"})
        spine.set_color(ink)


def _shade(axes: Any, curve: Series, colour: str) -> None:
    """Fill between bounds, as far as both are given and an eye could tell them apart."""
    rows = [
        (e, low / _LN10, high / _LN10)
        for e, low, high in zip(curve.epsilon, curve.log_lower, curve.log_upper, strict=False)
        if low is not None and high is not None and math.isfinite(low) and math.isfinite(high)
    ]
    if any(high - low > _VISIBLE for _, low, high in rows):
        columns = [[row[column] for row in rows] for column in range(3)]
        axes.fill_between(*columns, color=colour, alpha=0.18, linewidth=0)


def _power_tick(decades: float, _: int) -> str:
    if decades == 0:
        return "1"
    return f"$10^{{{decades:.0f}}}$"


def _plain_tick(decades: float, _: int) -> str:
    if decades > -300:
        return rounded(10.0**decades, 2)
    return f"$10^{{{decades:.4g}}}$"


def settings() -> Any:
    """Return Matplotlib's settings for the drawing, restored afterwards."""
    if reason := why_not_drawn():
        raise InputError(reason)
    import matplotlib

    return matplotlib.rc_context(
        {
            "svg.hashsalt": "symdp",  # the same curves give the same file
            "svg.fonttype": "path",
            "font.size": 10.5,
            "axes.unicode_minus": True,
            "date.converter": "concise",
        }
    )
