"""A panel of sliders that answers ε and δ in a browser, by the emitted program, without network."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from symdp.exact_number import exact_number
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
    at, epsilon = panels[0].values.get("delta", "1e-5"), panels[0].values.get("ε", "1")
    found = [_data(panel, _LONG // len(panels)) for panel in panels]
    # What the programs of a page have in common is in it once.
    parts: dict[str, int] = {}
    for one in found:
        one["program"] = [parts.setdefault(part, len(parts)) for part in one["program"]]
    data = {
        "panels": found,
        "parts": list(parts),
        "delta": _field("delta", "δ", "open probability", "above 0 and below 1", at, (1e-12, 0.5)),
        "epsilon": _field("epsilon", "ε", "real", "a number", epsilon, (0.0, 20.0)),
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
    number = None if value is None else float(exact_number(value))
    within = "probability" in domain
    if ends is not None:
        low, high = ends
    elif number is not None and is_log and number > 0 and not within:
        low, high = min(low, number / 20), max(high, number * 20)
    return {
        "name": name,
        "label": label,
        "domain": domain,
        "rule": rule,
        "value": value if value is not None else f"{first:g}",
        "low": low,
        "high": high,
        "log": is_log and low > 0,
        "least": {"integer above 1": 1.0, "real": -1e300, "integer": -1e300}.get(domain, 0.0),
        "most": 1.0 if within else 1e300,
        "open": domain in ("positive", "open probability", "positive integer", "integer above 1"),
        "openTop": domain == "open probability",
    }


_WHOLE, _ANY = "positive integer", 1e300
_COUNTS = {  # how often a step is taken, in the words of training or not
    False: [("n", "n, steps", _WHOLE, "from 1 to 1e15", "1", (1.0, 1e6), 1e15)],
    True: [
        ("examples", "examples", _WHOLE, "above 0", "60000", (100.0, 1e7), _ANY),
        ("batch", "examples of a batch", _WHOLE, "above 0", "256", (1.0, 65536.0), _ANY),
        ("epochs", "epochs", "positive", "above 0", "20", (1.0, 1000.0), _ANY),
    ],
}


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
    for name, label, domain, rule, otherwise, ends, most_of_it in _COUNTS[bool(panel.rate)]:
        field = _field(name, label, domain, rule, panel.values.get(name, otherwise), ends)
        fields.append(field | {"most": most_of_it, "given": name in panel.values})
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
