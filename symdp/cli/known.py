"""A question of a formula that an earlier command derived, answered without SymPy."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from symdp import user_cache
from symdp.cli.job import Job, bindings, number, whole
from symdp.errors import SymdpError
from symdp.interrupt import limit

if TYPE_CHECKING:
    from symdp.questions.composition import Composition

_LARGEST_FILE = 1_000_000  # bytes, as for every mechanism file
_LONGEST = 5.0  # seconds that a command may work once its answer is printed
_RATE = "sampling_rate"  # as a law's formula calls it
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError)


class _Asked(NamedTuple):
    """Where the facts of a job's formula are kept, and the values that it is asked for."""

    path: Path
    values: dict[str, Fraction]


class Composed:
    """The composition that a job describes, from known facts where there are some.

    Call it to have the composition, and `remember` once it has answered.
    """

    def __init__(self, job: Job) -> None:
        self._job, self._asked = job, _asked(job)
        self._built: Composition | None = None

    def __call__(self) -> Composition:
        """Return the composition."""
        return self._known() or self._made()

    def _known(self) -> Composition | None:
        facts = None if self._asked is None else user_cache.recall(self._asked.path)
        if self._asked is None or facts is None:
            return None
        from symdp.questions.known import KnownComposition

        try:
            count = whole(self._job.count or "1", "-n")
            return KnownComposition(facts, self._asked.values, count, self._made)
        except (*_UNREADABLE, SymdpError):
            return None  # the usual way answers, or says what is wrong

    def _made(self) -> Composition:
        self._built = self._job.build()
        return self._built

    def remember(self) -> None:
        """Keep the facts of a composition that was made the usual way."""
        if self._built is None or self._asked is None:
            return
        from symdp.questions.known import facts_of

        with limit(_LONGEST, of_work=True):
            facts = facts_of(self._built)
            if facts is not None and set(facts["names"]) <= set(self._asked.values):
                user_cache.keep(self._asked.path, facts)


def _asked(job: Job) -> _Asked | None:
    """Return None for a job that no formula of one step answers."""
    from symdp.mechanisms import path_of

    if job.mechanism is None or job.composition is not None or job.count is None:
        return None
    try:
        file = path_of(job.mechanism)
        if file is None or file.stat().st_size > _LARGEST_FILE:
            return None
        text = file.read_bytes().decode("utf-8-sig")
        words = tomllib.loads(text).get("parameters", {})
        values = bindings(job.values)
        if job.rate is not None:
            values[_RATE] = number(job.rate, "--rate")
    except (*_UNREADABLE, SymdpError):
        return None
    free = {name for name in values if name == _RATE or words.get(name) == "positive"}
    if any(values[name] <= 0 or (name == _RATE and values[name] >= 1) for name in free):
        return None
    fixed = [f"{name}={values[name]}" for name in sorted(set(values) - free)]
    options = {
        "sampling": job.sampling, "batch": job.batch, "records": job.records, "group": job.group,
        "steps": job.steps, "participations": job.participations, "relation": job.relation,
    }  # fmt: skip
    written = [f"{name}={value}" for name, value in options.items()]
    path = user_cache.file_for("law", text, *sorted(free), "", *fixed, "", *written)
    return None if path is None else _Asked(path, values)
