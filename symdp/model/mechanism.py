"""A mechanism: its density or its two laws, its parameters, and values bound to them exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import sympy as sp

from symdp.arguments import AT_MOST, DOWN
from symdp.errors import InputError, at, suggestion
from symdp.model import assumption, comparison, description
from symdp.model.average import SUM
from symdp.model.guarded import substitute
from symdp.model.intake import Intake, readings
from symdp.model.pair import Component, Pair, Support, mass_of
from symdp.model.record import MechanismRecord
from symdp.model.relation import SUBSTITUTION, check_relation, checked, usual_relation
from symdp.model.renyi_curve import RenyiCurve
from symdp.model.sampling import Laws, Noise, Number, Parameter, Source, declare, exact, symbols_of
from symdp.model.schemes import ALLOCATION, Sampling, allocation

__all__ = ["Component", "Mechanism", "Pair", "Parameter", "Support", "declare", "exact"]


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(MechanismRecord):
    """A mechanism, immutable: make one with `additive`, `from_pair`, or from a file.

    Examples
    --------
    >>> x, sigma = sp.Symbol("x"), sp.Symbol("sigma", positive=True)
    >>> density = sp.exp(-x**2 / (2*sigma**2)) / (sigma*sp.sqrt(2*sp.pi))
    >>> gaussian = Mechanism.additive(density, x, name="gaussian")
    >>> gaussian(sigma=1.5).subsample("poisson", 0.01)
    <Mechanism gaussian(sigma=3/2), poisson sampling at rate 1/100>
    """

    def __post_init__(self) -> None:
        check_relation(self)

    @classmethod
    def additive(
        cls,
        density: sp.Expr,
        variable: sp.Symbol,
        sensitivity: Number = 1,
        support: object = (-sp.oo, sp.oo),
        name: str = "mechanism",
        *,
        parameters: Mapping[str, str] | None = None,
        substitution_sensitivity: Number | None = None,
        normalize: bool = False,
        assume: Mapping[str, str] | Sequence[str] | None = None,
        shift: str = AT_MOST,
    ) -> Mechanism:
        r"""Return the mechanism that adds noise of density f to a query of sensitivity D.

        .. math:: Q(x) = f(x), \qquad P(x) = f(x - D)

        Parameters
        ----------
        density : SymPy expression of the variable, zero off the support
        variable : its symbol; on integers and naturals it becomes an integer, else a real
        sensitivity : what a record moves the output by, above 0; a whole number on integers
        substitution_sensitivity : what changing one record's value moves it by; 2 D if left out
        support : (lower, upper), "integers" or "naturals"; or SymPy's Interval, Integers, Naturals0
        parameters : name -> domain word. Left out, every other symbol is a parameter: its
            assumptions give the domain, and one without any becomes the real symbol of its name
        normalize : divide by the sum or integral of the density, kept exact and unevaluated
        assume : what holds of parameters that have no value yet; see `assuming`
        shift : "at most" D, what a record may do, of one sign at all steps where noise is skewed;
            "either way", signs that change between steps; "up" or "down", D at most and one way;
            or "exactly" D, whatever a smaller shift does

        Raises
        ------
        InputError : an input that breaks one of these rules.
        """
        intake = Intake(variable, support, parameters)
        f = intake.read(density, "the density")
        size = intake.constant(sensitivity, "the sensitivity")
        moved = substitution_sensitivity
        if moved is not None:
            moved = intake.constant(moved, "the substitution sensitivity")
        held = (name, intake.variable, intake.support, Noise(f, size, moved), intake.declared)
        made = cls(*held, shift=shift).assuming(assume)
        return made.normalized() if normalize else made

    @classmethod
    def from_pair(
        cls,
        P: sp.Expr | Iterable[Number],
        Q: sp.Expr | Iterable[Number],
        variable: sp.Symbol,
        support: object = (-sp.oo, sp.oo),
        name: str = "mechanism",
        *,
        parameters: Mapping[str, str] | None = None,
        atoms: Mapping[Number, Sequence[Number]] | None = None,
        normalize: bool = False,
        assume: Mapping[str, str] | Sequence[str] | None = None,
    ) -> Mechanism:
        """Return the mechanism of a dominating pair: P with the record, Q without it.

        Parameters
        ----------
        P, Q : SymPy expressions of the variable; on points also lists with a mass for every point
        variable, name, parameters, normalize, assume : as for `additive`
        support : as for additive noise; a list of three points or more, or {"points": [...]}
        atoms : place -> its probabilities under P and Q, beside densities on an interval

        Raises
        ------
        InputError : an input that breaks one of these rules.

        Examples
        --------
        >>> e = sp.Symbol("e", positive=True)
        >>> truth = sp.exp(e) / (1 + sp.exp(e))
        >>> coin = Mechanism.from_pair(
        ...     [truth, 1 - truth], [1 - truth, truth], sp.Symbol("x"), {"points": [0, 1]})
        >>> coin(e=sp.log(3)).pair().P
        (3/4, 1/4)
        """
        intake = Intake(variable, support, parameters)
        laws = Laws(intake.law(P, "P"), intake.law(Q, "Q"), atoms=intake.atoms(atoms or {}))
        made = cls(name, intake.variable, intake.support, laws, intake.declared).assuming(assume)
        return made.normalized() if normalize else made

    def require_concrete(self) -> Mechanism:
        """Return self; raise InputError naming the parameters that have no value yet."""
        missing = [p for p in self.declared if p.name in self.parameters]
        if not missing:
            return self
        wanted = ", ".join(f"{p.name} ({p.rule})" for p in missing)
        raise InputError(f"{self.name} needs a value for {wanted}, as in {missing[0].name}=VALUE")

    def __call__(self, /, *unnamed: object, **values: Number) -> Mechanism:
        """Return the mechanism with values bound to some of its parameters, exactly (see `exact`).

        Raises
        ------
        InputError : an unknown name, a value outside the domain, or a bound parameter.
        """
        description.require_names(self, unnamed)
        if not values:
            return self
        known = {parameter.name: parameter for parameter in self.declared}
        new = readings(values, known, self.values, self.name)
        symbols = {known[name].symbol: value for name, value in new}
        symbols |= (moved := assumption.moved(self.declared, symbols))
        try:
            assumption.check_values(self.declared, self.values | dict(new))
            return replace(
                self,
                support=self.support.substitute(symbols),
                source=self.source.substitute(symbols),
                sampling=self.sampling.substitute(symbols) if self.sampling else None,
                bound=(*self.bound, *new),
                declared=tuple(p.renamed(moved) for p in self.declared),
                template=self.template or self._unsampled,
            )
        except InputError as error:
            raise InputError(f"{self.name} with {description.values(new)}: {error}") from None

    @property
    def neighbours(self) -> str:
        """Which two data sets the guarantee cannot tell apart; `usual_relation` where unasked."""
        return self.relation or usual_relation(self)

    @property
    def is_mirrored(self) -> bool:
        """Whether both directions have one law or bound, as under substitution of noise."""
        own = self.neighbours == SUBSTITUTION and isinstance(self.source, Noise)
        return own or isinstance(self.source, RenyiCurve)

    def under(self, relation: str) -> Mechanism:
        """Return the mechanism accounted for under another neighbouring relation.

        Parameters
        ----------
        relation : "add_remove"; "substitution", where one record's value changes and the output
            moves by up to twice the sensitivity; or "zero_out", where a record contributes nothing
            and keeps its place, which costs what add_remove does but for truncated batches

        Raises
        ------
        InputError : an unknown relation, or one for which the sampling scheme has no proved pair.

        >>> from symdp import mechanisms
        >>> mechanisms.gaussian(sigma=2).under("substitution").pair().P
        sqrt(2)*exp(-(x - 2)**2/8)/(4*sqrt(pi))
        """
        return replace(self, relation=checked(relation))

    def assuming(self, assume: Mapping[str, str] | Sequence[str] | None) -> Mechanism:
        """Return the mechanism under assumptions on its parameters, which order its pieces.

        Parameters
        ----------
        assume : name -> one or two ends, formulas of other parameters: "> 1/s", "> 1/2, < 2*b";
            or a list of comparisons, each linear in a parameter: ["a > c", "c*s >= 1"]

        Raises
        ------
        InputError : an unknown parameter, another text, or a bound value that breaks it.

        >>> from symdp import mechanisms
        >>> mechanisms.laplace.assuming({"b": ">= 1"}).assumptions
        ('b >= 1',)
        """
        return comparison.assumed(self, assume)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed of parameters that have no value, such as 'w > 1/2'."""
        return assumption.comparisons(self)

    def moved_by(self, sensitivity: Number) -> Mechanism:
        """Return the same noise on a query that one record moves by another sensitivity.

        Raises
        ------
        InputError : a pair of laws, which has no sensitivity, or a number that is not above 0.

        >>> from symdp import mechanisms
        >>> mechanisms.discrete_laplace(b=2).moved_by(3).source.sensitivity
        3
        """
        if not isinstance(self.source, Noise):
            raise InputError(f"{self.name} is a pair of laws and has no sensitivity to change")
        size = exact(sensitivity, "the sensitivity")
        source = Noise(self.source.density, size).checked(self.support)
        return replace(self, source=source, template=None)

    def shifted(self, shift: str) -> Mechanism:
        """Return the same noise for records that move its query by other shifts.

        Parameters
        ----------
        shift : as for `additive`

        Raises
        ------
        InputError : an unknown word, or a pair of laws, which has no shift.

        >>> from symdp import mechanisms
        >>> mechanisms.gumbel(b=2).shifted("down").summary
        'gumbel(b=2), shift down'
        """
        if self.is_given:
            raise InputError(f"{self.name} is a pair of laws and has no shift to change")
        own = self.template and replace(self.template, shift=shift)
        return replace(self, shift=shift, template=own)

    def subsample(
        self,
        scheme: str,
        rate: Number | None = None,
        batch: int | None = None,
        *,
        records: int | None = None,
        group: int = 1,
        steps: int | None = None,
        participations: int | None = None,
        released: str = SUM,
    ) -> Mechanism:
        """Return the mechanism run on a random part of the records.

        Parameters
        ----------
        scheme : see `Sampling`, and `symdp.model.dominating` for the pair of each
        rate : probability from 0 to 1, a number or an expression of parameters; a name or symbol
            on its own that is no parameter yet becomes one, a probability
        batch : number of draws with replacement, or the most records that a Poisson batch keeps
        records, group : number of all records, and of those that are protected together
        steps, participations : of random_allocation, without rate: in how many of them it is (1)
        released : "sum", noisy, also divided by a constant; or "average" of the drawn, for poisson

        Raises
        ------
        InputError : a wrong scheme or number, or a mechanism that it does not fit.

        >>> from symdp import mechanisms
        >>> fixed = mechanisms.gaussian(sigma=2).subsample("without_replacement", "1/100")
        >>> fixed.neighbours
        'substitution'
        """
        if self.sampling is not None:
            raise InputError(f"{self.name} already has {self.sampling.scheme} sampling")
        if scheme == ALLOCATION:
            if rate is not None:
                raise InputError("random_allocation takes no rate: steps and participations say it")
            held = allocation(steps, participations)
            return replace(self, sampling=replace(held, released=released))
        drawn = (batch, records, group, steps, participations, released)
        if rate is None:
            Sampling(scheme, sp.Integer(1), *drawn)
            raise InputError(f"the sampling rate must be a number: {scheme} sampling needs one")
        alone = isinstance(rate, sp.Symbol | str) and str(rate).isidentifier()
        new = alone and str(rate) not in {parameter.name for parameter in self.declared}
        rates = (declare(str(rate), "probability"),) if new else ()
        intake = Intake(self.variable, self.support, None, (*self.declared, *rates))
        expr = intake.formula(rate, "the sampling rate")
        expr = substitute(expr, {intake.symbols[name]: value for name, value in self.bound})
        sampling = Sampling(scheme, expr, *drawn)
        return replace(self, sampling=sampling, declared=intake.declared)

    def normalized(self) -> Mechanism:
        """Return the mechanism with its densities divided by their masses, kept exact.

        >>> x = sp.Symbol("x")
        >>> rounded = Mechanism.from_pair([0.66, 0.33], [0.33, 0.66], x, {"points": [0, 1]})
        >>> rounded.normalized().pair().P
        (2/3, 1/3)
        """
        source, held = self.source, (self.variable, self.support)
        if isinstance(source, Noise):
            divided: Source = source.of_density(source.density / mass_of(source.density, *held))
        elif isinstance(source, RenyiCurve):
            return self
        else:
            divided = source.normalized(*held)
        return replace(self, source=divided, template=None)

    def pair(self, direction: str = "remove") -> Pair:
        """Return the dominating pair, sampling included.

        Parameters
        ----------
        direction : "remove" for (P, Q) as given, "add" for (Q, P); else InputError. Where both
            have one law of the loss (`is_mirrored`), they are the same pair
        """
        if direction not in ("remove", "add"):
            hint = suggestion(str(direction), ("remove", "add"))
            raise InputError(f"the direction must be remove or add, not {direction!r}{hint}")
        same = direction == "remove" or self.is_mirrored
        return self._pair if same else self._pair.reversed()

    @cached_property
    def _pair(self) -> Pair:
        from symdp.model.dominating import dominating_pair

        with at(self.summary):
            return dominating_pair(
                self.source,
                self.variable,
                self.support,
                self.sampling,
                self.neighbours,
                lowers=self.shift == DOWN,
            )

    @cached_property
    def _unsampled(self) -> Mechanism:
        """The mechanism on all records, without parameters that only its rate depended on."""
        rate = self.sampling.rate.free_symbols if self.sampling else frozenset()
        alone = rate - symbols_of(self.source, self.support)
        declared = tuple(p for p in self.declared if p.symbol not in alone)
        return replace(self, sampling=None, relation=None, declared=declared)

    @cached_property
    def key(self) -> str:
        """A text, equal for equal mechanisms."""
        known = "" if self.template is None else self.template.key
        return description.key(self, self.neighbours, known)

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Mechanism) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"<Mechanism {self.summary}>"

    @property
    def summary(self) -> str:
        """Name, values and sampling in one line.

        >>> from symdp import mechanisms
        >>> mechanisms.gaussian(sigma=2).subsample("poisson", "1/9").summary
        'gaussian(sigma=2), poisson sampling at rate 1/9'
        """
        return description.summary(self)

    def _repr_latex_(self) -> str:
        return description.latex(self)
