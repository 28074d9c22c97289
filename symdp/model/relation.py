"""Neighbouring relations: which two data sets a guarantee cannot tell apart.

The sensitivity D of a mechanism is what *adding or removing one record* moves its output by.
Under substitution one record's contribution may turn from +D to −D, which moves it by up to 2D.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from symdp.arguments import AT_MOST, DOWN, EITHER, EXACTLY, UP, instance, spelled
from symdp.errors import InputError, suggestion
from symdp.model.average import AVERAGE, SUM
from symdp.model.fact import AUTHOR

if TYPE_CHECKING:
    from symdp.model.sampling import MechanismRecord

ADD_REMOVE = "add_remove"
SUBSTITUTION = "substitution"
ZERO_OUT = "zero_out"
SHIFTS = (AT_MOST, EITHER, UP, DOWN, EXACTLY)
# What an answer says of the shifts: skewed noise bounds those that never change their sign.
ONE_SIGN = "at most, one sign"
UPWARDS = "at most, upwards"
DOWNWARDS = "at most, downwards"
SEVERAL_SIGNS = "at most, upwards and downwards"
IN_LENGTH = "at most, in Euclidean length"  # of vectors
PAIR = "pair"  # of laws that were given: what they dominate is known to whoever wrote them

_MADE = "make a mechanism with Mechanism.additive, Mechanism.from_pair or symdp.load"
_SENTENCES = {
    ADD_REMOVE: ("{one} added to or removed from the data", "{many} added or removed"),
    SUBSTITUTION: ("{one}'s value changed", "the values of {many} changed"),
    ZERO_OUT: ("{one}'s contribution set to zero", "the contributions of {many} set to zero"),
    PAIR: ("the change that the given pair of laws stands for", ""),
}
_SHIFTS = {
    ONE_SIGN: " that moves the output by the sensitivity at most, to one side at all steps",
    UPWARDS: " that raises the output, by the sensitivity at most",
    DOWNWARDS: " that lowers the output, by the sensitivity at most",
    SEVERAL_SIGNS: " that raises the output of some steps and lowers that of others, as each says, "
    "by the sensitivity at most",
    IN_LENGTH: " that moves the vector by the sensitivity at most in Euclidean length",
    EXACTLY: " that moves the output by exactly the sensitivity: a smaller shift may lose more",
}
_OPEN_MODE = "was not shown to have one mode"
ONE_MODE_BY_AUTHOR = "that the noise has one mode is its author's word"
_NOISY_SUM = "; released is the noisy sum of a batch, or that divided by a constant"
RELATIONS = (ADD_REMOVE, SUBSTITUTION, ZERO_OUT)
# As dp-accounting calls them.
_OF_OTHERS = {
    "add_or_remove_one": ADD_REMOVE, "replace_one": SUBSTITUTION, "replace_special": ZERO_OUT
}  # fmt: skip
_FIXED_BATCH = ("without_replacement", "with_replacement")


def checked(relation: object) -> str:
    """Return a relation's name; raise InputError for what is none."""
    relation = spelled(relation, (*RELATIONS, *_OF_OTHERS))
    relation = _OF_OTHERS.get(str(relation), relation)
    if relation not in RELATIONS:
        hint = suggestion(str(relation), RELATIONS) or f"; there are {', '.join(RELATIONS)}"
        raise InputError(f"unknown neighbouring relation {relation!r:.60}{hint}")
    return str(relation)


def protects(relation: str, group: int = 1) -> str:
    """Say what cannot be told apart."""
    single, several = _SENTENCES[relation]
    if group == 1:
        return single.format(one="one record")
    return several.format(many=f"up to {group} records")


def is_local(mechanism: MechanismRecord) -> bool:
    """Whether it is a local randomizer, told without loading what few mechanisms need."""
    return hasattr(mechanism.source, "is_shuffled")


def is_shuffled(mechanism: MechanismRecord) -> bool:
    """Whether it is the shuffled answers of a local randomizer."""
    return bool(getattr(mechanism.source, "is_shuffled", False))


def usual_relation(mechanism: MechanismRecord) -> str:
    """Return the relation where none was asked; given laws mean what their author does."""
    scheme = None if mechanism.sampling is None else mechanism.sampling.scheme
    if scheme in _FIXED_BATCH:
        return SUBSTITUTION
    if is_local(mechanism):
        return SUBSTITUTION
    is_pair = scheme is None and mechanism.is_given and not mechanism.is_listed
    if is_pair:
        return PAIR
    return ADD_REMOVE


def check_relation(mechanism: MechanismRecord) -> None:
    """Raise InputError where source and support do not fit, or no pair is proved for them."""
    # Known questions are answered without SymPy, which these need.
    from symdp.model.family import Family
    from symdp.model.local import Local
    from symdp.model.pair import Support
    from symdp.model.sampling import Laws, Noise, Radial, RenyiCurve

    sampling = mechanism.sampling
    name = mechanism.name
    shift = mechanism.shift
    if not isinstance(mechanism.source, Noise | Laws | RenyiCurve | Radial | Family | Local):
        raise InputError(f"{mechanism.source!r:.60}: {_MADE}")
    mechanism.source.checked(instance(mechanism.support, Support, _MADE).checked())
    if mechanism.modes is not None and (type(mechanism.modes) is not int or mechanism.modes != 1):
        raise InputError(
            f"modes = {mechanism.modes!r:.40}: an author can say that noise has one mode, with "
            "modes = 1; leave it out of noise that has several"
        )
    shifts = (*SHIFTS, *_SHIFTS) if mechanism.is_given else SHIFTS
    if shift not in shifts:
        choices = ", ".join(f"'{choice}'" for choice in SHIFTS)
        raise InputError(f"shift = {shift!r:.40} must be one of {choices}")
    if isinstance(mechanism.source, Local):
        _check_local(mechanism)
    made_for = getattr(mechanism.source, "made_for", PAIR)  # of a product of pairs
    if made_for != PAIR and mechanism.relation not in (None, made_for):
        raise InputError(
            f"{name} was made of releases under {made_for}: say {mechanism.relation} of each of "
            "them, before they are put together"
        )
    if sampling is None:
        return
    scheme = sampling.scheme
    group = sampling.group
    if isinstance(mechanism.source, RenyiCurve):
        raise InputError(
            f"{name} is known by its Rényi curve alone: what {scheme} sampling gains is known of "
            "noise and of pairs of laws; give the curve of the sampled step"
        )
    if isinstance(mechanism.source, Family):
        raise InputError(
            f"{name} is known by its log-partition function: what {scheme} sampling gains needs "
            "the density of the loss; give the two laws as a pair where there is one"
        )
    if isinstance(mechanism.source, Radial) and (
        (scheme not in {"poisson", "random_allocation"} or (group, sampling.released) != (1, SUM))
        or mechanism.relation not in (None, ADD_REMOVE)
    ):
        raise InputError(
            f"{name}: of noise on vectors the pairs of single records are known without sampling, "
            "and of Poisson samples and random allocation under add_remove"
        )
    if mechanism.is_given and scheme not in {"poisson", "random_allocation"}:
        raise InputError(f"{scheme} sampling needs additive noise; {name} is a pair")
    if mechanism.is_given and group > 1:
        raise InputError(f"groups need additive noise; {name} is a pair of two laws")
    if sampling.released == AVERAGE and mechanism.is_given:
        raise InputError(f"released = average needs additive noise; {name} is a pair of two laws")
    if mechanism.relation is None:
        return
    if sampling.released == AVERAGE and mechanism.relation != ADD_REMOVE:
        raise InputError(
            f"released = average: a pair is proved for add_remove, not for {mechanism.relation}; "
            "divide by a constant, the expected size of a batch, say: then released is sum"
        )
    if scheme in _FIXED_BATCH and mechanism.relation != SUBSTITUTION:
        raise InputError(
            f"{scheme}: a batch of fixed size admits the relation substitution alone, not "
            f"{mechanism.relation}: another record takes the place of one that is left out"
        )
    if mechanism.relation != SUBSTITUTION or scheme in _FIXED_BATCH:
        return
    if mechanism.is_given:
        raise InputError(
            f"{name}: what a sampled pair of laws protects is known for one record added or "
            "removed, not for substitution"
        )
    if scheme in {"truncated_poisson", "random_allocation"} or group > 1:
        what = scheme if group == 1 else f"a group of {group} under {scheme} sampling"
        raise InputError(f"{what}: no pair is proved for substitution; use add_remove")


def _check_local(mechanism: MechanismRecord) -> None:
    """Raise InputError for what is not known of the answers of a local randomizer."""
    name = mechanism.name
    if mechanism.sampling is not None:
        raise InputError(
            f"{name} is a local randomizer: what sampling its people gains is not known here; "
            "leave the sampling out"
        )
    if mechanism.relation not in (None, SUBSTITUTION):
        raise InputError(
            f"{name} is a local randomizer, of which one person's input is protected: its relation "
            f"is substitution, not {mechanism.relation}"
        )


@dataclass(frozen=True)
class Protection:
    """Whose privacy an answer speaks of.

    Attributes
    ----------
    relation
        "add_remove", "substitution", "zero_out", or "pair" for two laws that were given.
    sampling
        The schemes of the steps: "none", "poisson", "without_replacement", ...
    group
        How many records are protected together.
    is_attained
        Whether data sets are known that are as far apart as the pair; else it is an upper bound.
    released
        "sum", the noisy sum of a batch or that divided by a constant; "average" where a step
        divides by the number of records that were drawn.
    shift
        How far the record moves the output that noise is added to: "at most" the sensitivity; "at
        most, one sign", where the noise is skewed; "at most, upwards" or "at most, downwards" where
        that was asked for; "at most, in Euclidean length" of vectors; "exactly" the sensitivity.
        Empty for laws that were given.
    is_of_all_shifts
        Whether the pair bounds every shift of noise that was not shown to have one mode.
    by_curve
        Whether a step is known by its Rényi curve alone.
    is_envelope
        Whether a step's pair stands for many, none of which attains all of its profile: divergences
        are upper bounds, and so is δ of several steps.
    by_author
        Whether that the noise of a step has one mode is its author's word, which no proof supports.
    note
        What else was asked, in words: another sensitivity, a group without sampling.
    """

    relation: str = PAIR
    sampling: str = "none"
    group: int = 1
    is_attained: bool = True
    released: str = SUM
    shift: str = ""
    is_of_all_shifts: bool = False
    by_curve: bool = False
    is_envelope: bool = False
    by_author: bool = False
    note: str = ""

    def over(self, count: int) -> Protection:
        """Return the protection of so many steps in all, of which one alone attains an envelope."""
        if self.is_envelope and count > 1:
            return replace(self, is_attained=False)
        return self

    @property
    def sentence(self) -> str:
        """What cannot be told apart, in words.

        >>> Protection("substitution", "without_replacement", 1, False).sentence
        "one record's value changed; fixed batches: an upper bound that no known data attain"
        >>> Protection("add_remove", "poisson").sentence  # doctest: +ELLIPSIS
        'one record added to or removed from the data; released is the noisy sum of a batch, or ...'
        >>> Protection("add_remove", shift="exactly").sentence  # doctest: +ELLIPSIS
        'one record added to or removed from the data that moves the output by exactly ...'
        """
        text = protects(self.relation, self.group) + _SHIFTS.get(self.shift, "") + self.note
        if self.by_author:
            text += f"; {ONE_MODE_BY_AUTHOR}"
        if self.relation == ZERO_OUT and "truncated" in self.sampling:
            text += ", its place in the batch kept"
        if self.has_random_batches and self.released == SUM:
            text += _NOISY_SUM
        if self.by_curve:
            text = text.replace("pair of laws", "guarantee")
            return f"{text}; a step is known by its Rényi curve alone: an upper bound"
        if self.is_attained:
            return text
        if self.is_of_all_shifts:
            return f"{text}; noise that {_OPEN_MODE}: an upper bound for all shifts at once"
        if self.is_envelope:
            return f"{text}; a pair that is the largest of many: an upper bound for several steps"
        if self.released == AVERAGE:
            what = "averages over the records drawn"
        elif "random_allocation" in self.sampling:
            what = "several steps for one record"
        elif "truncated" in self.sampling:
            what = "truncated batches"
        else:
            what = "fixed batches" if "replacement" in self.sampling else "a dominating pair"
            what = "a large group" if self.group > 1 and self.sampling == "poisson" else what
        return f"{text}; {what}: an upper bound that no known data attain"

    @property
    def has_random_batches(self) -> bool:
        """Whether noise is added to sums over batches whose size the data may tell."""
        random = "poisson" in self.sampling or "random_allocation" in self.sampling
        return random and self.relation != PAIR

    @property
    def pair(self) -> Literal["tight", "dominating"]:
        """What the pair of laws is: as far apart as some data, or an upper bound."""
        if self.is_attained:
            return "tight"
        return "dominating"

    def to_json(self) -> dict[str, Any]:
        """Return the entries of an answer's JSON object."""
        group = {"group": self.group} if self.group > 1 else {}
        entries = {"relation": self.relation, "sampling": self.sampling}
        entries |= {"shift": self.shift} if self.shift else {}
        released = {} if self.released == SUM else {"released": self.released}
        entries |= {"one_mode_by": AUTHOR} if self.by_author else {}
        return {**entries, **group, **released, "protects": self.sentence, "pair": self.pair}
