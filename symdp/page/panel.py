"""A panel of sliders that answers ε and δ in a browser, by the emitted program, without network."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from symdp.page.document import Document, Embedded, Sentence

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.model.relation import Protection

MOST_BYTES = 300_000  # of a page with one mechanism
_LONG = 60_000  # characters of formulas, beyond which a page leaves them out
# What a browser holds the page to: nothing is fetched; a worker computes.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "script-src 'unsafe-inline' blob:; worker-src blob:"
)
_RANGES: Mapping[
    str, tuple[float, float, float, bool]
] = {  # first value, slider's ends, logarithmic
    "positive": (1.0, 0.01, 100.0, True),
    "nonnegative": (1.0, 0.0, 10.0, False),
    "real": (0.0, -10.0, 10.0, False),
    "probability": (0.01, 1e-5, 1.0, True),
    "open probability": (0.01, 1e-5, 0.99, True),
    "integer": (0.0, -10.0, 10.0, False),
    "integer above 1": (2.0, 2.0, 1000.0, True),
    "positive integer": (1.0, 1.0, 1000.0, True),
    "natural": (1.0, 0.0, 100.0, False),
}


@dataclass(frozen=True)
class Panel:
    """One mechanism of a page."""

    title: str
    mechanism: Mechanism
    values: Mapping[str, str]
    command: str
    python: str
    rate: str = ""
    with_formulas: bool = True
    told: Callable[[Protection], Protection] = lambda whose: whose


def panel_html(panels: Sequence[Panel]) -> str:
    """Return markup, style and script, to be put into a page."""
    at = panels[0].values.get("delta", "1e-5")
    found = [_data(panel, _LONG // len(panels)) for panel in panels]
    # What the programs of a page have in common is in it once.
    parts: dict[str, int] = {}
    for one in found:
        one["program"] = [parts.setdefault(part, len(parts)) for part in one["program"]]
    data = {
        "panels": found,
        "parts": list(parts),
        "delta": _field("delta", "δ", "open probability", "above 0 and below 1", at, (1e-12, 0.5)),
        "epsilon": _field("epsilon", "ε", "real", "a number", "1", (0.0, 20.0)),
    }
    # No text may end the element that holds it.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("</", "<\\/")
    read = files("symdp.page").joinpath
    return (
        f"<style>\n{read('panel.css').read_text('utf-8')}</style>\n"
        '<section id="panel" aria-label="Calculator">\n'
        "<p>The calculator needs JavaScript.</p></section>\n"
        f'<script type="application/json" id="panel-data">{text}</script>\n'
        f"<script>\n{read('panel.js').read_text('utf-8')}</script>\n"
    )


def explorer(title: str, description: str, panels: Sequence[Panel]) -> Document:
    """Return a document with a panel alone."""
    told = "The numbers are computed in this page, in floating point; nothing is sent anywhere."
    return Document(title, [Sentence(description), Embedded(panel_html(panels))], told)


def _field(
    name: str,
    label: str,
    domain: str,
    rule: str,
    value: str | None = None,
    ends: tuple[float, float] | None = None,
) -> dict[str, Any]:
    first, low, high, is_log = _RANGES[domain]
    if value is not None:
        number = _number(value)
        if ends is None and is_log and number > 0 and "probability" not in domain:
            low, high = min(low, number / 20), max(high, number * 20)
    if ends is not None:
        low, high = ends
    within = "probability" in domain
    least = {"integer above 1": 1.0}.get(domain, 0.0)
    return {
        "name": name,
        "label": label,
        "domain": domain,
        "rule": rule,
        "value": value if value is not None else f"{first:g}",
        "low": low,
        "high": high,
        "log": is_log and low > 0,
        "least": least if domain not in ("real", "integer") else -1e300,
        "most": 1.0 if within else 1e300,
        "open": domain in ("positive", "open probability", "positive integer", "integer above 1"),
        "openTop": domain == "open probability",
    }


def _number(text: str) -> float:
    from symdp.exact_number import exact_number

    return float(exact_number(text))


def _data(panel: Panel, most: int) -> dict[str, Any]:
    from symdp.derive import derive
    from symdp.questions.accounted import answering
    from symdp.questions.programs import to_program

    mechanism = panel.mechanism
    derivation = derive(mechanism)
    step, whose = answering(mechanism, f"{mechanism.name}: a page")
    program = to_program(derivation, "javascript").replace("\nexport ", "\n")
    free = [p for p in mechanism.declared if p.name in mechanism.parameters]
    slid = [p for p in free if p.name != panel.rate]
    fields = [_field(p.name, str(p.name), p.domain, p.rule, panel.values.get(p.name)) for p in slid]
    if panel.rate:
        for name, label, first, ends in (
            ("examples", "examples", "60000", (100.0, 1e7)),
            ("batch", "examples of a batch", "256", (1.0, 65536.0)),
            ("epochs", "epochs", "20", (1.0, 1000.0)),
        ):
            domain = "positive" if name == "epochs" else "positive integer"
            field = _field(name, label, domain, "above 0", panel.values.get(name, first), ends)
            fields.append(field | {"low": ends[0], "high": ends[1]})
    else:
        count = panel.values.get("n", "1")
        field = _field("n", "n, steps", "positive integer", "from 1 to 1e15", count, (1.0, 1e6))
        fields.append(field | {"most": 1e15})
    # Those of a pair for all shifts are a table.
    shown = panel.with_formulas and step == mechanism
    formulas = derivation.to_mathml(1) if shown else ""
    return {
        "title": panel.title,
        "program": program.split("\n\n"),
        "parameters": [p.name for p in free if p.name != panel.rate],
        "training": panel.rate,
        "fields": fields,
        "protects": panel.told(whose).sentence,
        "command": panel.command,
        "python": panel.python,
        "formulas": formulas if len(formulas) < most else "",
    }
