"""A panel of sliders that answers ε and δ in a browser, by the emitted program, without network.

A page shows no slider that it cannot move: the program that it holds is tried, while the page is
written, at several numbers of steps and at both ends of each parameter. An end without an answer
moves towards the opening value; a slider that nothing is left of becomes a text.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from symdp.decimal_text import rounded, rounded_exponential
from symdp.errors import InputError, SymdpError
from symdp.exact_number import exact_number
from symdp.model.assumption import AssumedSymbol
from symdp.numeric.saddle_point import golden_section
from symdp.page.document import Block, Document, Embedded, Sentence

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.model.relation import Protection
    from symdp.questions.composition import Composition

COUNTS = (1, 2, 5, 10, 100, 10_000)  # steps at which a program is tried
_HALVINGS = 3  # of the way from an end without an answer to the opening value
_COARSE = 0.1  # of log δ: the width of an interval that tells whether there is an answer
_LEAST_WAY = 0.01  # of a slider, logarithmic where the slider is: less is no slider
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


def panel_html(panels: Sequence[Panel], *, is_answered: bool = False) -> str:
    """Return markup, style and script, to be put into a page; with its first answer if asked."""
    at = panels[0].values.get("delta", "1e-5")
    epsilon = panels[0].values.get("ε", "1")
    panels_data = [_data(panel, _LONG // len(panels)) for panel in panels]
    # What the programs of a page have in common is in it once.
    parts: dict[str, int] = {}
    for panel_data in panels_data:
        panel_data["program"] = [
            parts.setdefault(part, len(parts)) for part in panel_data["program"]
        ]
    data = {
        "panels": panels_data,
        "parts": list(parts),
        "delta": _field("delta", "δ", "open probability", "above 0 and below 1", at, (1e-12, 0.5)),
        "epsilon": _field("epsilon", "ε", "real", "a number", epsilon, (0.0, 20.0)),
    }
    first = None
    if is_answered:
        first = _opening(panels[0], data)
    data["first"] = first
    data["told"] = _TOLD
    data["enclosed"] = _ENCLOSED
    data["ask"] = "epsilon"
    if first:
        data["ask"] = first["ask"]
    if is_answered and _narrow(panels[0], data):
        first = _opening(panels[0], data)
        data["first"] = first
    shown = "<p>The calculator needs JavaScript.</p>"
    if first:
        shown = _shown(data, first)
    # No text may end the element that holds it.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("</", "<\\/")
    read = files("symdp.page").joinpath
    return (
        f"<style>\n{read('panel.css').read_text('utf-8')}</style>\n"
        '<section id="panel" aria-label="Calculator">\n'
        f"{shown}</section>\n"
        f'<script type="application/json" id="panel-data">{text}</script>\n'
        f"<script>\n{read('panel.js').read_text('utf-8')}</script>\n"
    )


def explorer(title: str, description: str, panels: Sequence[Panel], mark: str = "") -> Document:
    """Return a document with a panel alone, and a mark where it is not all."""
    foot = "The numbers are computed in this page, in floating point; nothing is sent anywhere."
    blocks: list[Block] = []
    if mark:
        blocks.append(Sentence(f"Incomplete: {mark}.", "warning"))
    blocks.append(Sentence(description))
    blocks.append(Embedded(panel_html(panels, is_answered=not mark)))
    return Document(title, blocks, foot)


def _field(
    name: str,
    label: str,
    domain: str,
    rule: str,
    value: str | None = None,
    ends: tuple[float, float] | None = None,
) -> dict[str, Any]:
    first, low, high, is_log = _RANGES[domain]
    text = f"{first:g}"
    number = 0.0
    if value is not None:
        text = value
        number = float(exact_number(value))
    within = "probability" in domain
    most = 1e300
    if within:
        most = 1.0
    if ends is not None:
        low, high = ends
    elif is_log and number > 0 and not within:
        low = min(low, number / 20)
        high = max(high, number * 20)
    return {
        "name": name,
        "label": label,
        "fixed": False,
        "domain": domain,
        "rule": rule,
        "value": text,
        "low": low,
        "high": high,
        "log": is_log and low > 0,
        "least": {"integer above 1": 1.0, "real": -1e300, "integer": -1e300}.get(domain, 0.0),
        "most": most,
        "open": domain in ("positive", "open probability", "positive integer", "integer above 1"),
        "openTop": domain == "open probability",
    }


def _within(field: dict[str, Any], symbol: Any) -> dict[str, Any]:
    """Return a field whose slider stays between the numbers that are assumed of its parameter."""
    if not isinstance(symbol, AssumedSymbol):
        return field
    numbers = {end.is_lower: end.value for end in symbol.ends if not end.value.free_symbols}
    low = field["low"]
    high = field["high"]
    if True in numbers:
        low = max(low, float(numbers[True]))
    if False in numbers:
        high = min(high, float(numbers[False]))
    return {**field, "low": low, "high": high}


_WHOLE = "positive integer"
_ANY = 1e300
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
    from symdp.questions.steps.accounted import answering

    mechanism = panel.mechanism
    derivation = derive(mechanism)
    step, whose = answering(mechanism, f"{mechanism.name}: a page")
    program = derivation.to_program("javascript").replace("\nexport ", "\n")
    free = [p for p in mechanism.declared if p.name in mechanism.parameters]
    slid = [p for p in free if p.name != panel.rate]
    fields = []
    for p in slid:
        field = _field(p.name, str(p.name), p.domain, p.rule, panel.values.get(p.name))
        fields.append(_within(field, p.symbol))
    for name, label, domain, rule, otherwise, ends, most_of_it in _COUNTS[bool(panel.rate)]:
        field = _field(name, label, domain, rule, panel.values.get(name, otherwise), ends)
        fields.append(field | {"most": most_of_it, "given": name in panel.values})
    # Those of a pair for all shifts are a table.
    formulas = ""
    if panel.with_formulas and step == mechanism:
        formulas = "".join(case.to_mathml(1) for case in derivation.cases)
    if len(formulas) >= most:
        formulas = ""
    return {
        "title": panel.title,
        "program": program.split("\n\n"),
        "parameters": [p.name for p in free if p.name != panel.rate],
        "training": panel.rate,
        "fields": fields,
        "protects": panel.told(whose).sentence,
        "command": panel.command,
        "python": panel.python,
        "formulas": formulas,
    }


_TOLD = "floating point; twelve digits by a test against certified values; no bound is proved."
_ENCLOSED = (
    "floating point; the number lies between the two, and the upper end is shown; none is proved."
)
_ASKS = {"epsilon": "δ given, ε asked", "delta": "ε given, δ asked"}
_TARGETS = {"epsilon": "delta", "delta": "epsilon"}  # what is given, by what is asked
_ALARMS = 0.01, 0.001  # false alarms of the attack table
_PLACES = 24  # of a curve
_FIRST_LOOK = 12  # places of ε, for the line that bounds an attack best
_NARROWINGS = 12  # of the interval between two of them


class _Profile:
    """log δ of steps at many ε, each an upper end, without the balls that would narrow it."""

    def __init__(self, steps: Composition) -> None:
        self._accountant = steps.accountant()
        self._near = getattr(self._accountant, "near", lambda law, epsilon: None)
        self._laws = [steps.law(side) for side in steps.sides("both")]
        self._log_deltas: dict[float, float] = {}

    def log_delta(self, epsilon: float) -> float:
        """Return the upper end of log δ(ε), of the larger direction."""
        if epsilon not in self._log_deltas:
            ends = []
            for law in self._laws:
                answer = self._near(law, epsilon) or self._accountant.log_delta(law, epsilon)
                end = answer.log_upper
                ends.append(answer.log_delta if end is None else end)
            self._log_deltas[epsilon] = min(max(ends), 0.0)
        return self._log_deltas[epsilon]

    @property
    def log_deltas(self) -> dict[float, float]:
        """What was computed, in the order of ε."""
        return dict(sorted(self._log_deltas.items()))

    def least_power(self, alarms: float, top: float) -> float:
        """Return what an attack finds at most, by the best ε up to one: a first look, then near."""

        def power(epsilon: float) -> float:
            return _power_of_attack(alarms, epsilon, self.log_delta(epsilon))

        step = top / _FIRST_LOOK
        places = [i * step for i in range(_FIRST_LOOK + 1)]
        best = min(places, key=power)
        golden_section(power, max(best - step, 0.0), min(best + step, top), _NARROWINGS)
        return _least_power(alarms, self._log_deltas)


def _opening(panel: Panel, data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the script would find for the values that a page opens with."""
    from symdp.questions.composition import compose
    from symdp.questions.steps.accounted import answering

    asks = tuple(_ASKS)
    if "ε" in panel.values and "delta" not in panel.values:
        asks = ("delta", "epsilon")
    values = {f["name"]: exact_number(f["value"]) for f in data["panels"][0]["fields"]}
    if panel.rate:
        values[panel.rate] = values["batch"] / values["examples"]
        values["n"] = Fraction(math.ceil(values["epochs"] / values[panel.rate]))
    step = answering(panel.mechanism, panel.title)[0]
    for ask in asks:
        try:
            # No ε is finite at some δ, of laws that reveal more than that.
            step_values = {name: values[name] for name in step.parameters}
            steps = compose(step(**step_values), int(values["n"]))
            target = exact_number(data[_TARGETS[ask]]["value"])
            if ask == "epsilon":
                answer = steps.epsilon(target)
            else:
                answer = steps.delta(target)
            profile = _Profile(steps)
            end = max(1.5 * answer.epsilon, 0.2)
            top = max(end, -math.log(_ALARMS[-1]))
            curve = [end * i / _PLACES for i in range(_PLACES + 1)]
            for epsilon in (*curve, answer.epsilon):
                profile.log_delta(epsilon)
            power = [profile.least_power(alarms, top) for alarms in _ALARMS]
            logs = profile.log_deltas
        except SymdpError:
            continue
        if answer.kind != "estimate":
            larger = answer.direction
            if steps.accounted.has_one_law:
                larger = "both"
            rates = [10 ** (-4 + i / 12) for i in range(49)]
            return {
                "ask": ask,
                "epsilon": answer.epsilon,
                "log_delta": answer.log_delta,
                "larger": larger,
                "power": power,
                "coarse": [False, False],
                "points": [(e, float(v)) for e, v in logs.items() if e <= end and v > -math.inf],
                "trade": [(alarms, _least_power(alarms, logs)) for alarms in rates],
            }
    return None


def _narrow(panel: Panel, data: dict[str, Any]) -> bool:
    """Move the ends of sliders to where the page's program answers, and say so on the page.

    True where that moves the number of steps with which the page opens.
    """
    from symdp.derive import derive

    panel_data = data["panels"][0]
    values = {f["name"]: float(exact_number(f["value"])) for f in panel_data["fields"]}
    count = values.pop("n", 1.0)
    if panel.rate:
        values[panel.rate] = values.pop("batch") / values.pop("examples")
        count = float(math.ceil(values.pop("epochs") / values[panel.rate]))
    opened = count
    first = data["first"] or {"epsilon": 1.0, "larger": ""}
    has_one_law = first["larger"] == "both"
    program = derive(panel.mechanism).to_program("python")
    direction = "both"
    if has_one_law:
        direction = "remove"
    sentences: list[str] = []
    with running(program) as asked_program:
        trial = Trial(asked_program, first["epsilon"], count, values, direction)
        if not panel.rate:
            sentences += _least_steps(panel, panel_data["fields"], trial)
            count = float(_named(panel_data["fields"], "n")["value"])
        for i, field in enumerate(panel_data["fields"]):
            if field["name"] in values and field["name"] != panel.rate:
                panel_data["fields"][i] = narrowed(trial, count, field)
                sentences += _moved(field, panel_data["fields"][i])
    panel_data["narrowed"] = " ".join(f"{s[0].upper()}{s[1:]}." for s in sentences)
    return count != opened


def _named(fields: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(field for field in fields if field["name"] == name)


def _least_steps(panel: Panel, fields: Sequence[dict[str, Any]], trial: Trial) -> list[str]:
    """Move the least number of steps to where the program answers; return what to say of it."""
    count = trial.count
    steps = _named(fields, "n")
    is_chosen = "n" in panel.values
    least, why = least_count(trial)
    if is_chosen:
        why = trial.refusal(count) or why
    if least is None or (is_chosen and trial.refusal(count)):
        raise InputError(f"{panel.title}: a page has no answer at {count:g} steps: {why}")
    if least == 1:
        return []
    if is_chosen:
        steps["low"] = float(min(least, count))
    else:
        steps["low"] = float(least)
        steps["value"] = f"{max(count, least):g}"
    return [f"fewer than {least:g} steps have no answer here: {why}"]


def _moved(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return what to say of a slider whose ends moved."""
    name = after["name"]
    if after["fixed"]:
        return [f"the value of {name} is fixed: others have no answer here"]
    if (after["low"], after["high"]) == (before["low"], before["high"]):
        return []
    ends = f"from {after['low']:.3g} to {after['high']:.3g}"
    return [f"the slider of {name} goes {ends}: beyond, this page has no answer"]


# what the page says of the direction of a number, as the script does
_LARGER = {
    "both": "Removing a record and adding one have the same.",
    "remove": "The larger of removing a record and adding one: remove.",
    "add": "The larger of removing a record and adding one: add.",
}


def _power_of_attack(alarms: float, epsilon: float, log_delta: float) -> float:
    """Return what an attack finds at most, by one point of the privacy profile."""
    delta = math.exp(log_delta)
    other = 1.0 - math.exp(-epsilon) * (1.0 - delta - alarms)
    return min(1.0, delta + alarms * math.exp(epsilon), other)


def _least_power(alarms: float, log_deltas: Mapping[float, float]) -> float:
    """Return what an attack finds at most, by every point of the privacy profile."""
    return min(
        _power_of_attack(alarms, epsilon, log_delta) for epsilon, log_delta in log_deltas.items()
    )


def _shown(data: Mapping[str, Any], first: Mapping[str, Any]) -> str:
    """Return what the script draws of the first answer, for eyes that come before it."""
    panel_data = data["panels"][0]
    ask = first["ask"]
    target = data[_TARGETS[ask]]
    if ask == "epsilon":
        epsilon = _up(first["epsilon"], 4)
        delta = target["value"]
    else:
        epsilon = target["value"]
        delta = _short(rounded_exponential(first["log_delta"], 4, "up"))
    rows = [(f["label"], f["value"]) for f in [*panel_data["fields"], target]]
    if len(data["panels"]) > 1:
        rows.insert(0, ("Mechanism", panel_data["title"]))
    fields = "".join(
        f'<div class="field"><span>{escape(label)}</span>'
        f'<input type="text" value="{escape(value)}" aria-label="{escape(label)}" disabled></div>'
        for label, value in rows
    )
    attacks = "".join(
        f"<tr><td>{100 * a:g} %</td><td>{_up(100 * power, 3)} %</td></tr>"
        for a, power in zip(_ALARMS, first["power"], strict=True)
    )
    points = [(e, v / math.log(10)) for e, v in first["points"]]
    trade = [(math.log10(a), power) for a, power in first["trade"]]
    return (
        f'<div class="fields"><div class="field modes">{_ASKS[ask]}</div>{fields}</div>\n'
        f'<div class="result"><p class="answer">ε = {epsilon} at δ = {delta}</p>'
        f'<p class="told" id="direction">{_LARGER[first["larger"]]}</p>'
        f"<p>Protects {escape(panel_data['protects'])}.</p>"
        "<table><caption>The best attack on one record's presence</caption>"
        f'<tr><th scope="col">false alarms</th><th scope="col">found at most</th></tr>{attacks}'
        f'</table><p class="quiet">ε = {_short(rounded(first["epsilon"]))}, '
        f"δ = {_short(rounded_exponential(first['log_delta'], 12))}: {_TOLD}</p></div>\n"
        f'<div class="plots">{_plot("Privacy profile", "ε", "log₁₀ δ", points)}'
        f"{_plot('Trade-off of attacks', 'log₁₀ false alarms', 'records found', trade, (0.0, 1.0))}"
        "<noscript><p>The sliders need JavaScript.</p></noscript></div>"
    )


def _short(text: str) -> str:
    """Return a number as the script writes it: 1e-5, not 1e-05."""
    return re.sub(r"e([+-])0*", lambda match: "e" + match[1].strip("+"), text)


def _up(value: float, digits: int) -> str:
    return _short(rounded(value, digits, "up"))


# of a figure, as in the script
_WIDTH = 420
_HEIGHT = 260
_LEFT = 52
_BOTTOM = 40
_MARGIN = 12


def _plot(
    title: str,
    across: str,
    up: str,
    points: Sequence[tuple[float, float]],
    ends: tuple[float, float] | None = None,
) -> str:
    if len(points) < 2:
        return f"<p>{title}: no curve here.</p>"
    xs, ys = zip(*points, strict=True)
    y0, y1 = ends or (max(min(ys), max(ys) - 30.0), max(ys))
    low = min(xs)
    right = _WIDTH - _MARGIN
    floor = _HEIGHT - _BOTTOM
    wide = (max(xs) - low) or 1.0
    tall = (y1 - y0) or 1.0

    def px(x: float) -> str:
        return f"{_LEFT + (right - _LEFT) * (x - low) / wide:.1f}"

    def py(y: float) -> str:
        return f"{floor - (floor - _MARGIN) * (y - y0) / tall:.1f}"

    grid = [
        f'<line x1="{px(t)}" x2="{px(t)}" y1="{_MARGIN}" y2="{floor}" class="grid"/>'
        f'<text x="{px(t)}" y="{floor + 15}" text-anchor="middle">{t:.6g}</text>'
        for t in _ticks(low, low + wide)
    ] + [
        f'<line x1="{_LEFT}" x2="{right}" y1="{py(t)}" y2="{py(t)}" class="grid"/>'
        f'<text x="{_LEFT - 6}" y="{py(t)}" dy="4" text-anchor="end">{t:.6g}</text>'
        for t in _ticks(y0, y0 + tall)
    ]  # fmt: skip
    line = " ".join(f"{px(x)},{py(y)}" for x, y in points if y >= y0 - 1e-9)
    middle = _HEIGHT / 2
    return (
        f'<figure><figcaption>{title}</figcaption><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{title}: {up} against {across}">{"".join(grid)}'
        f'<polyline class="curve" points="{line}"/>'
        f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 6}" text-anchor="middle">{across}</text>'
        f'<text x="12" y="{middle}" text-anchor="middle" transform="rotate(-90 12 {middle})">{up}'
        "</text></svg></figure>"
    )


def _ticks(low: float, high: float) -> Iterator[float]:
    """Yield round numbers, five or so."""
    raw = (high - low) / 5
    ten = 10.0 ** math.floor(math.log10(raw))
    step = next(s * ten for s in (1, 2, 5, 10) if s * ten >= raw)
    for k in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1):
        yield k * step


# What runs a program beside symdp: a question a line, and why it has no answer a line.
_ASKED = """
import json, math, runpy, sys
names = runpy.run_path(sys.argv[1])
for line in sys.stdin:
    count, values, direction, epsilons, width = json.loads(line)
    try:
        laws = names["_laws_of"](count, values, direction)
        for law in laws:
            law.near = width
        logs = [names["_log_delta"](laws, epsilon) for epsilon in epsilons]
        why = "no number" if any(map(math.isnan, logs)) else ""
    except (ArithmeticError, ValueError) as error:
        why = str(error)
    print(json.dumps(why), flush=True)
"""
Question = tuple[float, Mapping[str, float], str, Sequence[float], float]
Program = Callable[[Question], str]


@contextmanager
def running(program: str) -> Iterator[Program]:
    """Run a program in Python, and yield what asks it: why it has no answer, empty where it has.

    A page that is given up takes it along: its input ends.
    """
    with TemporaryDirectory() as folder:
        source = Path(folder) / "program.py"
        source.write_text(program, "utf-8")
        line = [sys.executable, "-I", "-c", _ASKED, str(source)]
        with subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:

            def ask(question: Question) -> str:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(json.dumps(question) + "\n")
                process.stdin.flush()
                return str(json.loads(process.stdout.readline()))

            try:
                yield ask
            finally:
                process.kill()


@dataclass(frozen=True)
class Trial:
    """The program of a page, and what the page opens with."""

    program: Program
    epsilon: float
    count: float
    values: Mapping[str, float]
    direction: str = "both"

    def refusal(self, count: float, **values: float) -> str:
        """Return why the program has no δ at 0 and about where the page asks, or nothing."""
        scaled = self.epsilon * math.sqrt(count / self.count)
        everything = {**self.values, **values}
        return self.program((count, everything, self.direction, (0.0, scaled), _COARSE))


def least_count(trial: Trial) -> tuple[int | None, str]:
    """Return the number of steps from which on all that are tried have an answer, and why."""
    least = None
    why = ""
    for count in reversed(COUNTS):
        why = trial.refusal(count)
        if why:
            break
        least = count
    return least, why


def narrowed(trial: Trial, count: float, field: Mapping[str, Any]) -> dict[str, Any]:
    """Return a slider whose ends have answers: `low`, `high`, or `fixed` where nothing is left."""
    name, value = field["name"], trial.values[field["name"]]
    ends = {}
    for side in ("low", "high"):
        end = field[side]
        for _ in range(_HALVINGS):
            if not trial.refusal(count, **{name: _allowed(field, end)}):
                break
            end = _between(field, end, value)
        else:
            end = value
        ends[side] = end
    way = _way(field, ends["low"], ends["high"]) / (_way(field, field["low"], field["high"]) or 1.0)
    return {**field, **ends, "fixed": way < _LEAST_WAY}


def _allowed(field: Mapping[str, Any], end: float) -> float:
    """Return an end that the rule of a parameter allows."""
    is_out = field["open"] and end <= field["least"]
    if is_out:
        return float(field["least"]) + 1e-3
    return end


def _between(field: Mapping[str, Any], end: float, value: float) -> float:
    middle = math.sqrt(end * value) if field["log"] else 0.5 * (end + value)
    if "integer" in field["domain"] or field["domain"] == "natural":
        return round(middle)
    return middle


def _way(field: Mapping[str, Any], low: float, high: float) -> float:
    if field["log"]:
        return math.log(high / low)
    return high - low
