"""From the words of a command line to a composition, every number exact."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar, cast

from symdp.errors import AccuracyError, InputError, at, suggestion
from symdp.exact_number import exact_number

if TYPE_CHECKING:
    from symdp.arguments import MethodName
    from symdp.model.mechanism import Mechanism
    from symdp.model.relation import Protection
    from symdp.model.sampling import Number
    from symdp.questions.composition import Composition, Direction
    from symdp.questions.parallel import Parallel

T = TypeVar("T")
DIRECTIONS = ("remove", "add", "both")
_WHOLE_NUMBERS = {
    "batch_size": "--batch-size", "records": "--records", "group": "--group",
    "epoch_steps": "--steps", "participations": "--participations",
}  # fmt: skip
_SAMPLING_OPTIONS = {"rate": "--rate", **_WHOLE_NUMBERS, "released": "--released"}
_SMALLEST = 5e-324
_NAMES = re.compile(r"(?<![\w.])[A-Za-z]\w*")
_RATIO = re.compile(r"\s*(\w+)\s*/\s*([A-Za-z]\w*)\s*")


@dataclass(frozen=True)
class Job:
    """What the options that commands share say."""

    mechanism: str | None = None
    values: Sequence[str] = ()
    count: str | None = None
    composition: str | None = None
    sampling: str | None = None
    rate: str | None = None
    batch_size: str | None = None
    records: str | None = None
    group: str | None = None
    epoch_steps: str | None = None
    participations: str | None = None
    released: str | None = None
    relation: str | None = None
    sensitivity: str | None = None
    shift: str | None = None
    people: str | None = None

    def __post_init__(self) -> None:
        """What is wrong is known before work begins."""
        wholes = {**_WHOLE_NUMBERS, "count": "-n"}
        for name, option in wholes.items():
            if (text := getattr(self, name)) is not None:
                whole(text, option)
        if self.sampling is None and self.mechanism is not None:
            for name, option in _SAMPLING_OPTIONS.items():
                if getattr(self, name) is not None and name != "group":
                    from symdp.model.schemes import SCHEMES

                    raise InputError(f"{option} needs --sampling SCHEME: {', '.join(SCHEMES)}")

    @property
    def is_asked(self) -> bool:
        """Whether a mechanism or a file of steps was given."""
        return self.mechanism is not None or self.composition is not None

    @property
    def scheme(self) -> str:
        """The name of the sampling scheme as the library has it."""
        return (self.sampling or "").lower().replace("-", "_")

    @property
    def subject(self) -> str:
        """The job in a few words, for those who wait."""
        name = self.composition or self.mechanism or "no mechanism"
        if self.count is None:
            return name
        return f"{name}, n = {self.count}"

    @property
    def typed(self) -> str:
        """The mechanism, its values and how it is sampled, as they were typed."""
        options = {
            "--composition": self.composition, "--sampling": self.sampling, "--rate": self.rate,
            "--batch-size": self.batch_size, "--records": self.records, "--group": self.group,
            "--released": self.released, "--relation": self.relation,
            "--sensitivity": self.sensitivity, "--shift": self.shift, "--people": self.people,
            "-n": self.count,
        }  # fmt: skip
        options_typed = [f"{name} {word}" for name, word in options.items() if word is not None]
        words = [*self.values, *options_typed]
        if self.mechanism:
            words.insert(0, self.mechanism)
        return " ".join(words)

    @property
    def steps_asked(self) -> int:
        """How many steps are meant, 1 where nothing is said."""
        if self.count is None:
            return 1
        return whole(self.count, "-n")

    def build_mechanism(self) -> Mechanism:
        """Return the mechanism, its parameters bound as far as values were given."""
        if self.mechanism is None:
            raise InputError(
                "MECHANISM is missing: give a built-in name ('symdp list' shows them), a TOML "
                "file, or --composition FILE"
            )
        scheme = self._scheme()
        from symdp.mechanisms import resolve

        mechanism = resolve(self.mechanism)
        if self.people is not None:
            with at("--people"):
                mechanism = mechanism.shuffled(_people(self.people))
        values = bindings(self.values)
        mechanism = declared(mechanism, self.rate, self.sensitivity)
        of_rate = names_in(self.rate)
        mechanism = mechanism(
            **{name: value for name, value in values.items() if name not in of_rate}
        )
        times = self._unsampled_group()
        if names_in(self.sensitivity):
            mechanism = moved(mechanism, str(self.sensitivity))
        elif self.sensitivity is not None or times > 1:
            mechanism = _with_sensitivity(mechanism, self.sensitivity, times)
        if self.shift is not None:
            with at("--shift"):
                mechanism = mechanism.shifted(self.shift.replace("-", " "))
        if scheme is not None:
            rate = self.rate if of_rate or self.rate is None else number(self.rate, "--rate")
            mechanism = self.subsampled(mechanism, scheme, rate)
            mechanism = mechanism(**{name: values[name] for name in of_rate if name in values})
            mechanism = below_one(mechanism, self.rate)
        if self.relation is None:
            return mechanism
        return mechanism.under(self._relation())

    def unsampled(self) -> Job:
        """Return the same job without sampling."""
        absent: dict[str, Any] = dict.fromkeys((*_SAMPLING_OPTIONS, "sampling"))
        return replace(self, **absent)

    def _unsampled_group(self) -> int:
        """Return how many records move the output together where all take part in every step."""
        if self.group is None or self.sampling is not None:
            return 1
        return whole(self.group, "--group")

    def subsampled(self, mechanism: Mechanism, scheme: str, rate: Number | None) -> Mechanism:
        """Return the mechanism sampled as the options say, at a rate of its own."""
        numbers = {
            name: optional(whole, text, option)
            for name, option, text in (
                ("batch", "--batch-size", self.batch_size),
                ("records", "--records", self.records),
                ("steps", "--steps", self.epoch_steps),
                ("participations", "--participations", self.participations),
            )
        }
        group = 1
        if self.group is not None:
            group = whole(self.group, "--group")
        released = "sum"
        if self.released is not None:
            released = self.released.replace("-", "_")
        return mechanism.subsample(scheme, rate, **numbers, group=group, released=released)

    def _relation(self) -> str:
        return (self.relation or "").replace("-", "_")

    def build(self) -> Composition:
        """Return the composition that the options describe; InputError for steps of parts."""
        composition = self.build_any()
        if not hasattr(composition, "steps"):
            raise InputError(
                f"{self.composition}: its steps are those of parts of the data, which only delta "
                "and epsilon answer"
            )
        return cast("Composition", composition)

    def build_any(self) -> Composition | Parallel:
        """Return the composition that the options describe, or those of parts of the data."""
        count = self.steps_asked
        if self.composition is not None:
            return self._from_file(count)
        mechanism = self.build_mechanism().require_concrete()
        from symdp.questions.composition import compose

        with self.of_its_file():
            composition = compose(mechanism, count)
        composition.protection = self.told(composition.protection)
        return composition

    def told(self, whose: Protection) -> Protection:
        """Return whom an answer protects with what was asked besides: a sensitivity, a group."""
        notes = ""
        times = self._unsampled_group()
        if self.sensitivity is not None:
            notes += f"; sensitivity {self.sensitivity}"
        if times > 1:
            notes += f"; without sampling a group of {times} is a shift of {times} times as much"
        if notes:
            return replace(whose, note=notes, group=max(times, whose.group))
        return whose

    @contextmanager
    def of_its_file(self) -> Iterator[None]:
        """Put the file that describes the mechanism in front of an error about its densities."""
        from symdp import mechanisms

        try:
            yield
        except (InputError, AccuracyError) as error:
            file = self.composition or self.mechanism
            if file is None or file in mechanisms.names() or file in str(error):
                raise
            if isinstance(error, InputError):
                raise InputError(f"{file}: {error}") from error
            raise AccuracyError(f"{file}: {error}") from error

    def _from_file(self, count: int) -> Composition | Parallel:
        if self.mechanism is not None:
            raise InputError(
                f"--composition takes the place of MECHANISM and NAME=VALUE; leave out "
                f"{self.mechanism!r:.60}"
            )
        stated = (*_SAMPLING_OPTIONS, "sampling", "relation", "sensitivity", "shift", "people")
        if any(getattr(self, field) for field in stated):
            raise InputError(
                "with --composition, sampling and relation stand in the file, step by step"
            )
        from symdp.questions.composition import Composition
        from symdp.questions.parallel import Parallel, read_parts

        assert self.composition is not None
        parts = read_parts(self.composition)
        with self.of_its_file():
            compositions = {
                name: Composition([(mechanism, count * times) for mechanism, times in steps])
                for name, steps in parts.items()
            }
            if list(compositions) == [""]:
                return compositions[""]
            return Parallel(compositions)

    def _scheme(self) -> str | None:
        from symdp.model.schemes import ALLOCATION, SCHEMES, UNPROVED, hint

        if self.sampling is None:
            return None
        scheme = self.scheme
        if scheme not in (*SCHEMES, *UNPROVED):
            raise InputError(f"--sampling {self.sampling!r:.60} is unknown{hint(scheme)}")
        if scheme == ALLOCATION and self.epoch_steps is None:
            raise InputError("--sampling random_allocation needs --steps T, as in --steps 50")
        if self.rate is None and scheme in SCHEMES and scheme != ALLOCATION:
            raise InputError("--sampling needs --rate Q, as in --rate 0.01")
        return scheme


def _people(text: str) -> Number:
    """Return how many people answer: a whole number, or the name of a parameter."""
    if text.isidentifier():
        return text
    return whole(text, "--people")


def _with_sensitivity(mechanism: Mechanism, sensitivity: str | None, times: int) -> Mechanism:
    """Return the same noise on a query that records move by another amount."""
    size: Any = getattr(mechanism.source, "sensitivity", None)
    if size is None:
        what = "--group without --sampling"
        if sensitivity is not None:
            what = "--sensitivity"
        raise InputError(
            f"{what} needs noise that is added to a query; {mechanism.name} has no sensitivity"
        )
    if sensitivity is not None:
        size = number(sensitivity, "--sensitivity")
    return mechanism.moved_by(times * size)


def names_in(text: str | None) -> tuple[str, ...]:
    """Return the names that a rate or a sensitivity is written with, none of a number."""
    return tuple(dict.fromkeys(_NAMES.findall(text or "")))


def declared(mechanism: Mechanism, rate: str | None, sensitivity: str | None) -> Mechanism:
    """Return the mechanism with a parameter for each name of a rate or a sensitivity.

    A rate that is a name lies between 0 and 1; other names are positive numbers.
    """
    from symdp.model.sampling import declare

    names = {parameter.name for parameter in mechanism.declared}
    new = [name for name in (*names_in(rate), *names_in(sensitivity)) if name not in names]
    alone = (rate or "").strip()
    with at("--rate or --sensitivity"):
        kinds = ("open probability" if name == alone else "positive" for name in new)
        more = tuple(map(declare, new, kinds))
    return replace(mechanism, declared=(*mechanism.declared, *more))


def below_one(mechanism: Mechanism, rate: str | None) -> Mechanism:
    """Return a mechanism of which a rate b/N, with names that have no value, is assumed below 1."""
    ratio = _RATIO.fullmatch(rate or "")
    if ratio is None or not set(names_in(rate)) <= set(mechanism.parameters):
        return mechanism
    return mechanism.assuming([f"{ratio.group(2)} > {ratio.group(1)}"])


def moved(mechanism: Mechanism, sensitivity: str) -> Mechanism:
    """Return the same noise on a query whose sensitivity is a formula of parameters."""
    from symdp.model.reading.parser import parse

    symbols = {parameter.name: parameter.symbol for parameter in mechanism.declared}
    values = {symbols[name]: value for name, value in mechanism.values.items()}
    return mechanism.moved_by(parse(sensitivity, symbols).subs(values))


def number(text: str, name: str) -> Fraction:
    """Return the exact number that an option's text means; errors name the option."""
    with at(name):
        return exact_number(text)


def real(text: str, name: str) -> float:
    """Return the double nearest to the number that a text means."""
    exact = number(text, name)
    value = _double(exact)
    if not math.isfinite(value):
        raise InputError(f"{name} {text:.40}: the number is beyond the double range")
    return value


def delta(text: str, name: str = "--delta") -> float:
    """Return a δ strictly between 0 and 1."""
    if number(text, name) == 0:
        raise InputError(
            f"{name} {text:.40}: δ must lie strictly between 0 and 1; at δ = 0, ε is the largest "
            "loss: symdp renyi … --order inf"
        )
    return share(text, name, "δ")


def optional(read: Callable[..., T], text: str | None, *rules: object) -> T | None:
    """Return what a reader makes of an option's text, None where the option was left out."""
    if text is None:
        return None
    return read(text, *rules)


def share(text: str, name: str, what: str = "it") -> float:
    """Return a probability strictly between 0 and 1."""
    exact = number(text, name)
    if not 0 < exact < 1:
        raise InputError(f"{name} {text:.40}: {what} must lie strictly between 0 and 1")
    value = _double(exact)
    if not _SMALLEST <= value < 1:
        raise InputError(f"{name} {text:.40}: no double lies there; take one from 1e-307 to 0.999")
    return value


def whole(text: str, name: str, least: int = 1, most: int | None = None) -> int:
    """Return a whole number from `least` to `most`; "1e6" is one."""
    exact = number(text, name)
    if exact.denominator != 1 or exact < least or (most is not None and exact > most):
        rule = f"{least} or more"
        if most is not None:
            rule = f"from {least} to {most}"
        raise InputError(f"{name} {text:.40}: it must be a whole number, {rule}")
    return int(exact)


def direction(text: str, allowed: Sequence[str] = DIRECTIONS) -> Direction:
    """Return a direction; a misspelt one raises InputError with the close match."""
    if text not in allowed:
        hint = suggestion(text, allowed) or f"; it is {' or '.join(allowed)}"
        raise InputError(f"--direction {text!r:.60} is unknown{hint}")
    return cast("Direction", text)


def method(text: str) -> MethodName:
    """Return the name of an accountant; a misspelt one raises InputError with the close match."""
    text = text.lower()
    if text == "contour":  # the usual one, known without loading all others
        return "contour"
    from symdp.methods.table import accountant

    if text not in {"truth", "certified", "clones"}:
        text = accountant(text).name
    return cast("MethodName", text)


def settings(name: str, given: Mapping[str, str]) -> dict[str, float]:
    """Return a method's options as numbers; one that it does not take raises InputError."""
    if not given:
        return {}
    from symdp.methods.table import options_of

    return options_of(name, given)


def _double(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf


def bindings(words: Sequence[str]) -> dict[str, Fraction | str]:
    """Return the values that words such as sigma=1.5 bind to names; a formula stays text."""
    values: dict[str, Fraction | str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InputError(f"{word!r:.60} is no parameter: write NAME=VALUE, as in sigma=1.5")
        if name in values:
            raise InputError(f"the parameter {name!r:.60} is given twice")
        if "(" in text:
            values[name] = text
        else:
            values[name] = number(text, name)
    return values
