"""A budget ledger: steps are added as they happen, and ε or δ may be asked at any time.

What is added is an entry with its date, and with a note and a user where they are given. The file
has one writer at a time, is replaced whole or not at all, and carries a checksum. It holds entries
as JSON values, every number exact; nothing that is read is trusted.
"""

from __future__ import annotations

import os
import threading
import unicodedata
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from symdp.arguments import checked_count, real, share
from symdp.axes import axes_or_new
from symdp.decimal_text import given
from symdp.durable import Kept, lock
from symdp.errors import InputError, at
from symdp.model.average import SUM
from symdp.model.mechanism import a_mechanism
from symdp.questions.composition import Composition
from symdp.questions.guarantee import Asked, Curve, table_html
from symdp.questions.steps.accounted import listed_steps
from symdp.turns import in_turn

if TYPE_CHECKING:
    import sympy as sp
    from filelock import BaseFileLock

    from symdp.arguments import MethodName
    from symdp.model.mechanism import Mechanism
    from symdp.model.sampling import Number, Source
    from symdp.model.schemes import Sampling
    from symdp.questions.composition import Direction

# One: the formulas without parameters; two: no relation, fixed batches too cheap; three: no texts;
# four: no dates, notes and users.
_VERSION = 5
_KEYS = {"format", "version", "steps"}
_WHICH = (
    "say how the batches were drawn: scheme='poisson' (every record on its own; protects one "
    "record added or removed), 'truncated_poisson', or 'without_replacement' or 'with_replacement' "
    "(batches of one size; protect one record's value); of shuffled passes no pair is known"
)
_FILE = Kept(
    "symdp ledger file",
    2,
    "the ledger",
    "'symdp ledger add' and Ledger.save write one (a state_dict is read by Ledger.from_state_dict)",
)
_BOUND = "dominating pair"  # of what is only partly known
_ENVELOPE = "envelope"  # of many pairs, whose largest profile it has
_LISTED = "listed noise"  # its masses
_LAWS = ("P", "Q")
_CURVE = "renyi curve"
_VECTORS = "noise on vectors"
_FAMILY = "family"
_SOURCES: dict[str, tuple[str, ...]] = {
    "noise": ("density", "sensitivity"),
    "pair": _LAWS,
    _BOUND: _LAWS,
    _ENVELOPE: _LAWS,
    _LISTED: _LAWS,
    _CURVE: ("divergence",),
    _VECTORS: ("density", "dimension", "sensitivity"),
    _FAMILY: ("log_moment", "lattice"),
}
_NUMBERS = ("rho", "cells", "tail", "cell")  # of a source, where it has them
_SAMPLING = ("scheme", "batch", "records", "group", "steps", "participations")
_TEXTS = ("title", "description", "citation")
# What earlier versions did not write, and what it was then: the sum goes without saying.
_EARLIER: tuple[tuple[tuple[str, ...], tuple[Any, ...]], ...] = (
    (("relation", "records", "group"), (None, None, 1)),
    (_TEXTS, ("", "", "")),
    (("released",), (SUM,)),
    (("steps", "participations"), (None, None)),
    (("shift",), ("at most",)),
    (("modes",), (None,)),
)
_LONGEST_TEXT = 1_000_000  # characters, as many as a mechanism file may have
_LABELS = ("date", "note", "user")
_OF_A_STEP = {"mechanism", "count", *_LABELS}
_LONGEST_LABEL = 1_000  # characters
_MOST_DRAWN = 100  # places of a figure at which ε is asked


@dataclass(frozen=True)
class Entry:
    """Equal steps that were recorded together.

    Attributes
    ----------
    mechanism, n
        The step, and how often it was taken.
    date
        When the first of them was recorded, ISO 8601 with its time zone; empty if not known.
    note, user
        What for, and by whom, as it was given; empty if it was not.
    """

    mechanism: Mechanism
    n: int
    date: str = ""
    note: str = ""
    user: str = ""

    @property
    def day(self) -> str:
        """The day of the date, where it was recorded."""
        return self.date[:10]

    def to_json(self) -> dict[str, Any]:
        """Return the entry as JSON values, the step in words."""
        labels = {name: getattr(self, name) for name in _LABELS}
        return {"step": self.mechanism.summary, "count": self.n, **labels}


_GROUPS = {"note": "note", "user": "user", "date": "day"}  # by which entries are told apart


class Ledger(Asked):
    """The steps taken so far: equal ones of a day are counted together, a million in one entry.

    Threads may share a ledger. A copy, pickled or not, has its own count and no file. What breaks
    a rule is an InputError, and then nothing has changed: a parameter without a value, a file that
    is missing, damaged, edited, open elsewhere or no ledger's.

    Parameters
    ----------
    steps
        Pairs (mechanism, count) to begin with; when they were taken is not known.

    Examples
    --------
    >>> from symdp import mechanisms
    >>> step = mechanisms.gaussian(sigma=2).subsample("poisson", "1/100")
    >>> ledger = Ledger()
    >>> for _ in range(1000):
    ...     ledger.add(step)
    >>> print(len(ledger), ledger.n, f"{ledger.delta(0.5).delta:.12f}")
    1 1000 0.000121178974
    """

    _path: Path | None = None
    _saved = ""  # checksum of the file as this object knows it
    _writer: BaseFileLock | None = None

    def __init__(self, steps: Iterable[tuple[Mechanism, int]] = ()) -> None:
        self._begin({})
        for mechanism, count in listed_steps(steps):
            self._add(mechanism, count, (), "")

    def _begin(self, entries: dict[object, Entry]) -> None:
        self._lock = threading.RLock()
        self._entries = entries
        self._composition: Composition | None = None

    @classmethod
    def _of(cls, entries: Iterable[Entry]) -> Self:
        """Return the ledger of entries, to which nothing that is added later is joined."""
        ledger = cls()
        ledger._begin(dict(enumerate(entries)))
        return ledger

    def __getstate__(self) -> dict[str, Any]:
        return {"entries": self.entries}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._begin(dict(enumerate(state["entries"])))

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        where = f", {self._path}" if self._path else ""
        kinds = "1 distinct step" if len(self) == 1 else f"{len(self)} distinct steps"
        return f"Ledger({kinds}, {self.n} in all{where})"

    def _repr_html_(self) -> str:
        return table_html(*self.table())

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return head and rows of the entries, a column for what any of them has."""
        columns = {
            "date": [entry.date[:16].replace("T", " ") for entry in self.entries],
            "steps": [str(entry.n) for entry in self.entries],
            "mechanism": [entry.mechanism.summary for entry in self.entries],
            "title": [entry.mechanism.title for entry in self.entries],
            "note": [entry.note for entry in self.entries],
            "user": [entry.user for entry in self.entries],
        }
        shown = {}
        for head, cells in columns.items():
            if head in ("steps", "mechanism") or any(cells):
                shown[head] = cells
        return tuple(shown), list(zip(*shown.values(), strict=True))

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was recorded, in order; equal steps of one day, note and user are one entry.

        What was read from a file is joined by nothing that is added later.
        """
        with self._lock:
            return tuple(self._entries.values())

    @property
    def steps(self) -> tuple[tuple[Mechanism, int], ...]:
        """The distinct steps, each with its count, in the order in which they first came."""
        counts: dict[Mechanism, int] = {}
        for entry in self.entries:
            counts[entry.mechanism] = counts.get(entry.mechanism, 0) + entry.n
        return tuple(counts.items())

    @property
    def n(self) -> int:
        """How many steps were taken in all."""
        return sum(entry.n for entry in self.entries)

    def add(self, mechanism: Mechanism, n: int = 1, *, note: str = "", user: str = "") -> None:
        """Add `n` steps of a mechanism, with the present date.

        Parameters
        ----------
        mechanism, n
            The step, and how often it was taken.
        note, user
            What for and by whom, a line each; nothing is recorded that is not given.
        """
        labels = _label(note, "note"), _label(user, "user")
        self._add(mechanism, n, labels, _now())

    def _add(self, mechanism: Mechanism, count: int, labels: tuple[str, ...], date: str) -> None:
        if type(count) is not int or count != 1:
            count = checked_count(count)
        key = a_mechanism(mechanism), date[:10], *labels
        _refuse_local(mechanism)
        if key not in self._entries:
            mechanism.require_concrete()
        with self._lock:
            entry = self._entries.get(key) or Entry(mechanism, 0, date, *labels)
            self._entries[key] = replace(entry, n=entry.n + count)
            self._composition = None

    def add_history(
        self,
        mechanism: Mechanism,
        history: Iterable[tuple[Number, Number, int]],
        scheme: str | None = None,
        batch: int | None = None,
        *,
        records: int | None = None,
        relation: str | None = None,
        note: str = "",
        user: str = "",
    ) -> None:
        """Add a history of (noise multiplier, sample rate, steps), as training libraries keep it.

        Parameters
        ----------
        mechanism
            Additive noise of sensitivity 1 with one free parameter, which takes the multiplier:
            noise over what adding or removing one record moves the sum by, the clip norm.
        history
            The entries; a rate of 1 means no sampling.
        scheme
            How batches were drawn, see `Mechanism.subsample`. It must be said where a rate is below
            1: libraries that record only a rate draw in different ways, which cost differently.
        batch, records
            What the scheme needs besides its rate.
        relation
            The neighbouring relation, see `Mechanism.under`; that of the scheme if left out.
        note, user
            As for `add`.

        Examples
        --------
        >>> from symdp import mechanisms
        >>> ledger = Ledger()
        >>> history = [(2.0, 0.01, 600), (2.0, 0.01, 400)]
        >>> ledger.add_history(mechanisms.gaussian, history, "poisson")
        >>> ledger.steps
        ((<Mechanism gaussian(sigma=2), poisson sampling at rate 1/100>, 1000),)
        """
        names = list(a_mechanism(mechanism).parameters)
        if len(names) != 1:
            raise InputError(
                f"{mechanism.name} has {len(names)} free parameters; a history needs exactly one, "
                "the noise multiplier"
            )
        from symdp.model.sampling import exact

        added: dict[Mechanism, int] = {}
        for index, entry in enumerate(history, start=1):
            if not isinstance(entry, tuple | list) or len(entry) != 3:
                raise InputError(
                    f"history entry {index}: (noise multiplier, sample rate, steps) is needed"
                )
            multiplier, rate, count = entry
            with at(f"history entry {index}"):
                step = mechanism(**{names[0]: multiplier})
                if exact(rate, "the sample rate") != 1:
                    if scheme is None:
                        raise InputError(_WHICH)
                    step = step.subsample(scheme, rate, batch, records=records)
                step = step if relation is None else step.under(relation)
                added[step] = added.get(step, 0) + checked_count(count)
        with self._lock:
            for step, count in added.items():
                self.add(step, count, note=note, user=user)

    def by(self, what: str) -> dict[str, Ledger]:
        """Return the entries of each "note", "user" or day ("date") as a ledger of its own.

        What groups spend does not add up to what all spend, which is less, as a rule.

        Examples
        --------
        >>> from symdp import mechanisms
        >>> ledger = Ledger()
        >>> ledger.add(mechanisms.laplace(b=2), 3, note="histogram")
        >>> ledger.add(mechanisms.gaussian(sigma=4), 8, note="mean")
        >>> ledger.add(mechanisms.laplace(b=2), note="histogram")
        >>> {note: group.n for note, group in ledger.by("note").items()}
        {'histogram': 4, 'mean': 8}
        """
        if what not in tuple(_GROUPS):
            raise InputError(f"by {what!r:.40}: it is {', '.join(map(repr, _GROUPS))}")
        groups: dict[str, list[Entry]] = {}
        for entry in self.entries:
            groups.setdefault(getattr(entry, _GROUPS[what]), []).append(entry)
        return {name: self._of(entries) for name, entries in groups.items()}

    def spent(
        self,
        delta: float,
        method: MethodName = "contour",
        direction: Direction = "both",
        **options: Any,
    ) -> Curve:
        """Return ε(δ) of all steps up to each entry, at most 100 of them, the last among them.

        Examples
        --------
        >>> from symdp import mechanisms
        >>> ledger = Ledger([(mechanisms.gaussian(sigma=4), 8), (mechanisms.laplace(b=2), 3)])
        >>> [round(float(epsilon), 6) for epsilon in ledger.spent(1e-5).epsilon]
        [2.943225, 4.118923]
        """
        self.composition()  # an empty ledger is refused
        share(delta, "delta")  # so is an array
        parts = [self._of(self.entries[:stop]) for stop in self._places()]
        return Curve([part.epsilon(delta, method, direction, **options) for part in parts])

    def _places(self) -> list[int]:
        """Return how many entries have come, at the places at which ε is asked."""
        many = len(self.entries)
        return sorted({-(-many * k // _MOST_DRAWN) for k in range(1, _MOST_DRAWN + 1)} - {0})

    def plot(
        self,
        delta: float,
        budget: float | None = None,
        ax: Any = None,
        *,
        by: str = "entry",
        method: MethodName = "contour",
        direction: Direction = "both",
        **options: Any,
    ) -> Any:
        """Draw ε spent at a δ over the entries into Matplotlib axes, beside a budget; return them.

        Parameters
        ----------
        delta
            The δ at which ε is told.
        budget
            The ε that is not to be exceeded, a dashed line; none if left out.
        ax
            The axes; those of a new figure if left out.
        by
            "entry", or "date" where every entry has one.
        method, direction, options
            As for `epsilon`.
        """
        most = None if budget is None else real(budget, "budget")
        if most is not None and most < 0.0:
            raise InputError(f"budget = {given(most)}: an ε is 0 or more")
        if by not in ("entry", "date"):
            raise InputError(f"by {by!r:.40}: it is 'entry' or 'date'")
        curve = self.spent(delta, method, direction, **options)
        places = self._places()
        over: list[Any] = [0, *places]
        if by == "date":
            dates = [entry.date for entry in self.entries]
            if not all(dates):
                raise InputError("entry 1 has no date: draw over the entries")
            read = [datetime.fromisoformat(date) for date in dates]
            over = [read[0], *(max(read[:k]) for k in places)]
        ax = axes_or_new(ax)
        kinds = ", ".join(dict.fromkeys(answer.kind for answer in curve))
        legend = f"ε spent at δ = {given(curve[0].delta)}, {kinds}"
        ends = [0.0, *(answer.at_most for answer in curve)]
        ax.step(over, ends, where="post", marker="o", markersize=3, label=legend)
        if most is not None:
            label = f"budget ε = {given(most)}"
            ax.axhline(most, linestyle="--", color="#d1495b", label=label)
        ax.set(xlabel="date" if by == "date" else "entries", ylabel="ε (nats)")
        if by == "entry":
            ax.locator_params("x", integer=True)
        else:
            ax.tick_params("x", rotation=20)
        ax.legend(frameon=False)
        return ax

    @in_turn
    def composition(self) -> Composition:
        """Return the composition of all steps so far; raise InputError if there is none."""
        with self._lock:
            if self._composition is None:
                if not self._entries:
                    raise InputError("the ledger is empty: add a step first")
                self._composition = Composition(self.steps)
            return self._composition

    def _ask(self, quantity: str, value: Any, *how: Any, **options: Any) -> Any:
        return getattr(self.composition(), quantity)(value, *how, **options)

    def state_dict(self) -> dict[str, Any]:
        """Return the ledger as JSON values, every number exact.

        Examples
        --------
        >>> import json
        >>> from symdp import mechanisms
        >>> ledger = Ledger([(mechanisms.laplace(b=2), 3)])
        >>> text = json.dumps(ledger.state_dict())
        >>> Ledger.from_state_dict(json.loads(text)).steps == ledger.steps
        True
        """
        first: dict[Mechanism, int] = {}
        steps = []
        for index, entry in enumerate(self.entries, start=1):
            before = first.setdefault(entry.mechanism, index)
            written = _written(entry.mechanism) if before == index else before
            labels = {name: text for name in _LABELS if (text := getattr(entry, name))}
            steps.append({"mechanism": written, "count": entry.n, **labels})
        return {"format": "symdp ledger", "version": _VERSION, "steps": steps}

    @classmethod
    def from_state_dict(cls, state: object) -> Self:
        """Return the ledger that `state_dict` wrote; nothing in it is trusted, no text is run."""
        if not isinstance(state, dict) or state.get("format") != "symdp ledger":
            raise InputError("this is no ledger: its 'format' must be 'symdp ledger'")
        version = state.get("version")
        if type(version) is not int or not 1 <= version <= _VERSION:
            raise InputError(f"a ledger of version {version!r:.20}; known: 1 to {_VERSION}")
        unknown = sorted(repr(key) for key in set(state) - _KEYS)
        if unknown:
            raise InputError(f"a ledger has no {unknown[0]:.60}: only {', '.join(sorted(_KEYS))}")
        steps = state.get("steps")
        if not isinstance(steps, list):
            raise InputError("a ledger's 'steps' must be a list")
        entries: list[Entry] = []
        for index, step in enumerate(steps, start=1):
            with at(f"step {index} of the ledger"):
                entries.append(_read_step(step, entries))
        return cls._of(entries)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Return the ledger of a file, a new one if there is none, as its only writer.

        Used in a with statement: at its end, and at every `save`, what was added is in the file.
        A process that is killed loses what it added since; save before noise is released.

        Examples
        --------
        >>> from symdp import Ledger, mechanisms
        >>> path = getfixture("tmp_path") / "budget.json"
        >>> for _ in range(2):
        ...     with Ledger.open(path) as ledger:
        ...         ledger.add(mechanisms.laplace(b=2), 3)
        >>> Ledger.load(path).n
        6
        """
        file = Path(path)
        with ExitStack() as stack:
            writer = lock(file)
            stack.callback(writer.release)
            ledger = cls.load(file) if file.exists() else cls()
            stack.pop_all()
        ledger._path = file
        ledger._writer = writer
        return ledger

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the ledger that a file holds; nothing in it is trusted, no text is run."""
        file = Path(path)
        document = _FILE.read(file)
        with at(str(file)):
            ledger = cls.from_state_dict(document.get("ledger"))
        ledger._path = file
        ledger._saved = document["checksum"]
        return ledger

    def save(self, path: str | os.PathLike[str] | None = None) -> None:
        """Write the ledger into a file, its own where none is named, replacing it in one step.

        A file that holds what this ledger has not read is refused: counted steps are never lost.
        """
        with self._lock:
            file = self._path if path is None else Path(path)
            if file is None:
                raise InputError("this ledger has no file yet: name one, as in save('budget.json')")
            is_same_file = file == self._path
            writer = self._writer if is_same_file and self._writer else lock(file)
            try:
                checksum = self._saved if is_same_file else ""
                if file.exists() and _FILE.read(file)["checksum"] != checksum:
                    raise InputError(
                        f"{file} holds steps that this ledger has not read: add to it with "
                        "Ledger.open, or name another file"
                    )
                self._saved = _FILE.write(file, {"ledger": self.state_dict()})
                self._path = file
            finally:
                if writer is not self._writer:
                    writer.release()

    def close(self) -> None:
        """Let others write the file; nothing is saved by this alone."""
        with self._lock:
            if self._writer is not None:
                self._writer.release()
                self._writer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.save()  # after an error too: what was added may have been spent
        finally:
            self.close()


def _refuse_local(mechanism: Mechanism) -> None:
    from symdp.model.relation import is_local

    if is_local(mechanism):
        raise InputError(
            f"{mechanism.summary}: ledgers and cards hold noise and pairs of laws, no local "
            "randomizers; ask for ε, δ, a curve, a calibration or a report"
        )


def _written(mechanism: Mechanism) -> dict[str, Any]:
    """Return a mechanism as JSON values."""
    from sympy import sympify

    from symdp.emit.json import write_expressions

    _refuse_local(mechanism)
    has = [
        k
        for k, attributes in _SOURCES.items()
        if all(hasattr(mechanism.source, x) for x in attributes)
    ]
    kind = max(has, key=lambda kind_of: len(_SOURCES[kind_of]))  # noise on vectors is told by more
    if getattr(mechanism.source, "is_bound", False):
        kind = _BOUND
    if getattr(mechanism.source, "is_envelope", False):
        kind = _ENVELOPE
    if mechanism.is_listed:
        kind = _LISTED
    # With its parameters free, so that steps of one family are known for it again.
    template = mechanism.template or mechanism
    sampling = mechanism.sampling
    support = template.support
    formulas: dict[str, sp.Basic] = {
        "variable": mechanism.variable,
        "lower": support.lower,
        "upper": support.upper,
        **{f"point {i}": point for i, point in enumerate(support.points)},
        **{f"value {name}": value for name, value in mechanism.bound},
    }
    moved = getattr(template.source, "moved_by_substitution", None)
    if moved is not None:
        formulas["moved by substitution"] = moved
    for name in _SOURCES[kind]:
        law = getattr(template.source, name)
        masses = law if isinstance(law, tuple) else (law,)
        formulas |= {f"{name} {i}": mass for i, mass in enumerate(masses)}
    for name in _NUMBERS:
        number = getattr(template.source, name, None)
        if number is not None:
            formulas[name] = sympify(number, strict=True)
    for i, (x_value, masses) in enumerate(getattr(template.source, "atoms", ())):
        formulas |= {f"atom {i}": x_value, f"P of atom {i}": masses[0], f"Q of atom {i}": masses[1]}
    if sampling is not None:
        formulas["rate"] = sampling.rate
    return {
        "name": mechanism.name,
        **{name: getattr(mechanism, name) for name in _TEXTS},
        "support": support.kind,
        "source": kind,
        "parameters": {p.name: p.domain for p in mechanism.declared},
        "relation": mechanism.relation,
        "shift": mechanism.shift,
        **{name: None if sampling is None else getattr(sampling, name) for name in _SAMPLING},
        **({} if mechanism.modes is None else {"modes": mechanism.modes}),
        **({} if sampling is None or sampling.released == SUM else {"released": sampling.released}),
        "formulas": write_expressions(formulas),
    }


def _now() -> str:
    return datetime.now().astimezone().isoformat("T", "seconds")


def _label(text: object, name: str) -> str:
    """Return a note or a user: a line of text that no terminal obeys."""
    if not isinstance(text, str) or len(text) > _LONGEST_LABEL:
        raise InputError(f"{name} must be a text of at most {_LONGEST_LABEL} characters")
    for index, character in enumerate(text, start=1):
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
            sentence = f"character {index} is {character!a}, which is none of one line of text"
            raise InputError(f"{name}: {sentence}; leave it out")
    return text


def _read_date(text: str) -> str:
    """Return a date that was written, empty for none."""
    try:
        is_valid = not text or datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        is_valid = False
    if not is_valid:
        raise InputError(f"date {text!r:.60}: ISO 8601 with a time zone is needed")
    return text


def _read_step(step: object, before: list[Entry]) -> Entry:
    """Return an entry, whose mechanism may be the number of one that has the same."""
    if not isinstance(step, dict) or not {"mechanism", "count"} <= set(step) <= _OF_A_STEP:
        rule = f"an object of 'mechanism' and 'count' is needed, with {', '.join(_LABELS)} if known"
        raise InputError(rule)
    labels = {name: _label(step.get(name, ""), name) for name in _LABELS}
    number = step["mechanism"]
    count = checked_count(step["count"])
    if type(number) is int:
        if not 1 <= number <= len(before):
            raise InputError(f"'mechanism' is that of step {number}, which is none before it")
        mechanism = before[number - 1].mechanism
    else:
        mechanism = _read(number)
        mechanism.require_concrete()
    return Entry(mechanism, count, _read_date(labels["date"]), labels["note"], labels["user"])


def _read(written: object) -> Mechanism:
    from symdp.emit.json import read_expressions
    from symdp.model.mechanism import Mechanism
    from symdp.model.pair import Support
    from symdp.model.sampling import declare, variable_symbol
    from symdp.model.schemes import Sampling

    stated = ("name", "support", "source", "parameters", "relation", "shift", "formulas")
    keys = {*stated, "modes", "released", *_SAMPLING, *_TEXTS}
    if not isinstance(written, dict):
        raise InputError(f"a mechanism is an object of {', '.join(sorted(keys))}")
    for names, usual in _EARLIER:
        if not set(names) & set(written):
            written = {**dict(zip(names, usual, strict=True)), **written}
    if set(written) != keys:
        raise InputError(f"a mechanism is an object of {', '.join(sorted(keys))}")
    name, kind, words = (written[key] for key in ("name", "support", "parameters"))
    source_kind = written["source"]
    if kind not in ("interval", "points", "integers", "naturals"):
        raise InputError(f"support {kind!r:.40} is unknown")
    if source_kind not in tuple(_SOURCES) or not isinstance(name, str) or len(name) > 60:
        raise InputError(f"'source' must be {', '.join(_SOURCES)}, and 'name' a short text")
    texts = {name: written[name] for name in _TEXTS}
    words_of_its_author = {name: written[name] for name in ("shift", "modes")}
    if any(not isinstance(text, str) or len(text) > _LONGEST_TEXT for text in texts.values()):
        raise InputError(f"{', '.join(_TEXTS)} must be texts of at most {_LONGEST_TEXT} characters")
    if not isinstance(words, dict):
        raise InputError("'parameters' must be an object of name and domain")
    formulas = read_expressions(written["formulas"])
    declared = tuple(declare(str(one), str(word)) for one, word in words.items())
    variable = formulas.get("variable")
    if variable is None or variable != variable_symbol(str(variable), kind):
        raise InputError(f"'variable' does not fit the support {kind}")
    values = {p.name: _one(formulas, f"value {p.name}") for p in declared}
    ends = _one(formulas, "lower"), _one(formulas, "upper")
    support = Support(kind, *ends, _all(formulas, "point"))
    sampling: Sampling | None = None
    if written["scheme"] is not None:
        options = {name: written[name] for name in (*_SAMPLING, "released") if name != "scheme"}
        rate = _one(formulas, "rate")
        sampling = Sampling(str(written["scheme"]), rate, **options).checked().at(rate)
        if sampling.rate.free_symbols:
            raise InputError("the sampling rate has no value")
    source = _source(source_kind, formulas, kind == "points")
    symbols = {variable, *(parameter.symbol for parameter in declared)}
    free = {s for f in formulas.values() for s in f.free_symbols} - symbols
    if free:
        raise InputError(f"{', '.join(sorted(map(str, free)))} has no value")
    mechanism = replace(
        Mechanism(name, variable, support, source, declared, **texts, **words_of_its_author)(
            **values
        ),
        sampling=sampling,
    )
    if written["relation"] is None:
        return mechanism
    return mechanism.under(written["relation"])


def _source(kind: str, formulas: dict[str, sp.Basic], listed: bool) -> Source:
    from symdp.model.family import Family
    from symdp.model.sampling import Laws, Noise, Radial, RenyiCurve

    if kind == _VECTORS:
        return Radial(*(_one(formulas, f"{name} 0") for name in _SOURCES[kind]))
    if kind == _FAMILY:
        return Family(_one(formulas, "log_moment 0"), _all(formulas, "lattice"))
    if kind == _CURVE:
        curve = _all(formulas, "divergence")
        if len(curve) == 1:
            return RenyiCurve(curve[0])
        return RenyiCurve.of_table(curve)
    if kind == "noise":
        name = "moved by substitution"
        moved = _one(formulas, name) if name in formulas else None
        return Noise(_one(formulas, "density 0"), _one(formulas, "sensitivity 0"), moved)
    rho = _any(formulas, "rho")
    facts: dict[str, Any] = {
        "is_bound": kind == _BOUND,
        "is_envelope": kind == _ENVELOPE,
        "rho": rho,
    }
    if kind == _LISTED:
        return _listed(formulas)
    if listed:
        return Laws(_all(formulas, "P"), _all(formulas, "Q"), **facts)
    atoms = zip(
        *(_all(formulas, column) for column in ("atom", "P of atom", "Q of atom")), strict=True
    )
    atom_masses = tuple((value, tuple(masses)) for value, *masses in atoms)
    return Laws(_one(formulas, "P 0"), _one(formulas, "Q 0"), atoms=atom_masses, **facts)


def _listed(formulas: dict[str, sp.Basic]) -> Source:
    """Return noise of listed masses; what earlier versions wrote has neither tails nor cells."""
    from symdp.model.sampling import MassNoise

    Q = _all(formulas, "Q")
    cells = _any(formulas, "cells")
    moved = sum(mass == 0 for mass in Q) if cells is None else int(cells)
    tail = _any(formulas, "tail")
    noise = MassNoise(_all(formulas, "P"), Q, cells=moved, cell=_any(formulas, "cell"))
    if tail is None:
        return noise
    return replace(noise, tail=tail)


def _any(formulas: dict[str, sp.Basic], name: str) -> sp.Expr | None:
    """Return a formula, None where there is none of this name."""
    if name in formulas:
        return _one(formulas, name)
    return None


def _one(formulas: dict[str, sp.Basic], name: str) -> sp.Expr:
    import sympy as sp

    formula = formulas.get(name)
    if not isinstance(formula, sp.Expr):
        raise InputError(f"the formula '{name}' is missing")
    return formula


def _all(formulas: dict[str, sp.Basic], name: str) -> tuple[sp.Expr, ...]:
    listed_formulas: list[sp.Expr] = []
    while f"{name} {len(listed_formulas)}" in formulas:
        listed_formulas.append(_one(formulas, f"{name} {len(listed_formulas)}"))
    return tuple(listed_formulas)
