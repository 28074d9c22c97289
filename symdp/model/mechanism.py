"""A mechanism: its density or its two laws, its parameters, and values bound to them exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import sympy as sp

from symdp.arguments import AT_MOST, DOWN, spelled
from symdp.errors import InputError, at, suggestion
from symdp.model import assumption
from symdp.model.average import RELEASED, SUM
from symdp.model.fact import Shape, shipped_shape
from symdp.model.family import TILT, coordinates, family_of
from symdp.model.from_above import FromAbove
from symdp.model.local import Local, read_randomizer, with_people
from symdp.model.pair import Component, Pair, Support, mass_of
from symdp.model.reading.guarded import substitute
from symdp.model.reading.intake import Intake
from symdp.model.reading.parser import parse
from symdp.model.relation import SHIFTS, SUBSTITUTION, check_relation, checked, usual_relation
from symdp.model.sampling import (
    Laws,
    MassNoise,
    MechanismRecord,
    Noise,
    Number,
    Parameter,
    Radial,
    RenyiCurve,
    Source,
    declare,
    exact,
    mass_noise,
    symbols_of,
    variable_symbol,
)
from symdp.model.schemes import ALLOCATION, NAMES, Sampling, allocation

_LONGEST_VALUE = 24  # characters in a message
_LARGEST = sp.Integer(10) ** 308  # about the largest double
__all__ = ["Component", "Mechanism", "Pair", "Parameter", "Support", "declare", "exact"]


def _readings(
    values: Mapping[str, Number],
    parameters: Mapping[str, Parameter],
    bound: Mapping[str, sp.Expr],
    owner: str,
) -> list[tuple[str, sp.Expr]]:
    """Return values for parameters, exact and within their domains; InputError otherwise."""
    new = []
    for name, value in values.items():
        if name not in parameters:
            hint = suggestion(name, parameters) or f"; it has {', '.join(parameters) or 'none'}"
            raise InputError(f"{owner} has no parameter '{name}'{hint}")
        if name in bound:
            raise InputError(f"{owner}: {name} is already bound to {bound[name]}")
        read = parameters[name].checked(exact(value, name))
        if read.is_Rational and read != 0 and not 1 / _LARGEST < abs(read) < _LARGEST:
            size = "large" if abs(read) > 1 else "small"
            raise InputError(
                f"{owner}: {name} = {sp.N(read, 3)} is too {size}: the loss is computed in doubles,"
                " which end at 1e308 and 1e-308"
            )
        new.append((name, read))
    return new


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(FromAbove, MechanismRecord):
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
        modes: int | None = None,
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
        modes : 1 where you know that the noise has one mode: used where no proof is found. Every
            answer that rests on it says so, and values that contradict it are an error

        Raises
        ------
        InputError : an input that breaks one of these rules.
        """
        intake = Intake(variable, support, parameters)
        f = intake.density(density, "the density")
        if isinstance(f, sp.Add):
            from symdp.model.tidy import without_difference

            f = without_difference(f, intake.variable)
        size = intake.constant(sensitivity, "the sensitivity")
        moved = substitution_sensitivity
        if moved is not None:
            moved = intake.constant(moved, "the substitution sensitivity")
        fields = (name, intake.variable, intake.support, Noise(f, size, moved), intake.declared)
        mechanism = cls(*fields, shift=spelled(shift, SHIFTS), modes=modes).assuming(assume)
        if normalize:
            return mechanism.normalized()
        return mechanism

    @classmethod
    def radial(
        cls,
        density: sp.Expr,
        variable: sp.Symbol,
        dimension: Number,
        sensitivity: Number = 1,
        name: str = "mechanism",
        *,
        parameters: Mapping[str, str] | None = None,
        assume: Mapping[str, str] | Sequence[str] | None = None,
        modes: int | None = None,
    ) -> Mechanism:
        r"""Return the mechanism that adds noise of density g(‖x‖) to a vector that a record moves.

        .. math:: Q(x) = g(‖x‖)/C, \qquad P(x) = g(‖x - s‖)/C, \qquad ‖s‖ = D

        The pair at the largest shift dominates all shifts of at most D, as g falls: the balls on
        which two such densities are high meet the less the farther their centres part.

        Parameters
        ----------
        density : SymPy expression of the length, up to a factor: its mass over all vectors is
            found. It falls with the length, and is smooth but at 0
        variable : the symbol of the length, from 0 to oo
        dimension : of the vectors; a whole number, or an expression of parameters
        sensitivity : the largest Euclidean length by which one record moves the output
        parameters, assume, modes : as for `additive`

        Raises
        ------
        InputError : an input that breaks one of these rules.

        Examples
        --------
        >>> r, s = sp.Symbol("r"), sp.Symbol("s", positive=True)
        >>> Mechanism.radial(sp.exp(-r/s), r, dimension=2, name="planar Laplace")
        <Mechanism planar Laplace(s)>
        """
        intake = Intake(variable, (sp.Integer(0), sp.oo), parameters)
        g = intake.density(density, "the density")
        size = intake.constant(sensitivity, "the sensitivity")
        number = intake.constant(dimension, "the dimension")
        fields = (name, intake.variable, intake.support, Radial(g, number, size), intake.declared)
        return cls(*fields, modes=modes).assuming(assume)

    @classmethod
    def family(
        cls,
        log_partition: sp.Expr,
        with_record: Mapping[Any, Any] | Sequence[Any],
        without_record: Mapping[Any, Any] | Sequence[Any],
        name: str = "mechanism",
        *,
        length: sp.Symbol | str | None = None,
        counts: bool = False,
        parameters: Mapping[str, str] | None = None,
        assume: Mapping[str, str] | Sequence[str] | None = None,
    ) -> Mechanism:
        r"""Return the mechanism whose output has a law of one exponential family.

        .. math:: h(x) \exp(⟨θ, T(x)⟩ - A(θ))

        θ₁ is the parameter of the output with the record and θ₀ the one without it. Which two are
        the worst that a record can bring about is the author's word.

        Parameters
        ----------
        log_partition : A, an expression of the coordinates of θ, or of its length
        with_record, without_record : θ₁ and θ₀, coordinate -> value, a number or an expression of
            parameters; two lists of components where A is of the length
        length : the symbol of the length of θ in A
        counts : whether T counts, so that the losses lie on a lattice; one coordinate may change
        parameters, assume : as for `additive`

        Raises
        ------
        InputError : an input that breaks one of these rules.

        Examples
        --------
        >>> theta, a, b = sp.Symbol("theta"), *sp.symbols("a b", positive=True)
        >>> Mechanism.family(
        ...     sp.exp(theta), {theta: sp.log(b)}, {theta: sp.log(a)}, "poisson", counts=True)
        <Mechanism poisson(b, a)>
        """
        members = with_record, without_record
        names = coordinates(members, length)
        if taken := [name for name in names if name in (parameters or ())]:
            raise InputError(f"'{taken[0]}' is both a coordinate of theta and a parameter")
        words = None if parameters is None else {**parameters, **dict.fromkeys(names, "real")}
        intake = Intake(TILT, (-sp.oo, sp.oo), words)
        a = intake.constant(log_partition, "the log-partition function")
        source = family_of(intake, a, members, length, counts)
        declared = tuple(p for p in intake.declared if p.name not in names)
        return cls(name, TILT, intake.support, source, declared).assuming(assume)

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
        envelope: bool = False,
        rho: Number | None = None,
    ) -> Mechanism:
        """Return the mechanism of a dominating pair: P with the record, Q without it.

        Parameters
        ----------
        P, Q : SymPy expressions of the variable; on points also lists with a mass for every point
        variable, name, parameters, normalize, assume : as for `additive`
        support : as for additive noise; a list of three points or more, or {"points": [...]}
        atoms : place -> its probabilities under P and Q, beside densities on an interval
        envelope : whether it stands for many pairs, whose largest profile it has: then δ of several
            steps and every divergence are upper bounds
        rho : of an envelope, a bound on D_α/α, α > 1, that holds for all these pairs

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
        if rho is not None and not envelope:
            raise InputError(
                "rho is of a pair that stands for many: say envelope = true, or leave it out"
            )
        intake = Intake(variable, support, parameters)
        laws = Laws(
            intake.law(P, "P"),
            intake.law(Q, "Q"),
            atoms=intake.atoms(atoms or {}),
            is_envelope=envelope,
            rho=None if rho is None else intake.formula(rho, "rho"),
        )
        mechanism = cls(name, intake.variable, intake.support, laws, intake.declared).assuming(
            assume
        )
        if normalize:
            return mechanism.normalized()
        return mechanism

    @classmethod
    def listed(
        cls,
        masses: Sequence[Number],
        sensitivity: Number = 1,
        name: str = "mechanism",
        variable: sp.Symbol | str = "k",
        *,
        tail: Number = 0,
        cell: Number | None = None,
    ) -> Mechanism:
        """Return the mechanism that adds whole numbers whose masses are listed, or cells of reals.

        Parameters
        ----------
        masses : those of 0, 1, 2, …, ratios that do not rise; −k has that of k; they add up to one
        sensitivity : what a record moves the output by at most, a whole number (of cells)
        tail : T, the mass beyond the last p_K, on either side; it falls by T/(T + p_K) a value
        cell : on the reals, the width of the cells around 0, ±w, ±2w, … that masses are those of

        Raises
        ------
        InputError : masses that break one of these rules.

        Examples
        --------
        >>> Mechanism.listed(["1/2", "3/16", "1/16"], name="short").pair().P
        (0, 1/16, 3/16, 1/2, 3/16, 1/16)
        """
        noise, support = mass_noise(masses, sensitivity, tail, cell)
        return cls(name, variable_symbol(str(variable), "points"), support, noise, ())

    @classmethod
    def local(
        cls,
        density: sp.Expr | Sequence[Sequence[Number]],
        variable: sp.Symbol | str = "y",
        input: sp.Symbol | str = "x",
        inputs: object = None,
        support: object = (-sp.oo, sp.oo),
        name: str = "local",
        *,
        parameters: Mapping[str, str] | None = None,
        assume: Mapping[str, str] | Sequence[str] | None = None,
    ) -> Mechanism:
        """Return a local randomizer: the law of one person's answer at each of their inputs.

        Parameters
        ----------
        density : SymPy expression of the answer and the input; or a list of laws, for each input a
            list with a mass for every outcome
        variable, input : the symbols of the answer and of the input
        inputs : (lower, upper), or {"values": [...]}; left out of a list of laws
        support, name, parameters, assume : as for `additive`, the support that of the answers

        Examples
        --------
        >>> x, y, b = sp.Symbol("x"), sp.Symbol("y"), sp.Symbol("b", positive=True)
        >>> Mechanism.local(sp.exp(-sp.Abs(y - x) / b) / (2 * b), y, x, (0, 1), name="answer")
        <Mechanism answer(b)>
        >>> Mechanism.local([["3/4", "1/4"], ["1/4", "3/4"]]).shuffled(1000).summary
        'local(), 1000 people shuffled'
        """
        written = (density, variable, input, inputs)
        intake, source = read_randomizer(Intake, written, support, parameters)
        declared = tuple(p for p in intake.declared if p.name != str(input))
        return cls(name, intake.variable, intake.support, source, declared).assuming(assume)

    def shuffled(self, people: Number) -> Mechanism:
        """Return the answers of so many people by this local randomizer, their names dropped.

        Parameters
        ----------
        people : how many answer, the protected person among them: a whole number from 2 on, or an
            expression of parameters; a name that is no parameter yet becomes one

        Raises
        ------
        InputError : another mechanism, or a wrong number.

        >>> coin = Mechanism.local([["3/4", "1/4"], ["1/4", "3/4"]])
        >>> coin.shuffled("people")(people=500).summary
        'local(people=500), 500 people shuffled'
        """
        source, declared = with_people(self, people, Intake, declare)
        template = self.template and self.template.shuffled(people)
        return replace(self, source=source, declared=declared, template=template)

    def require_concrete(self) -> Mechanism:
        """Return self; raise InputError naming the parameters that have no value yet."""
        missing = [p for p in self.declared if p.name in self.parameters]
        if not missing:
            return self
        wanted = ", ".join(f"{p.name} ({p.rule})" for p in missing)
        raise InputError(f"{self.name} needs a value for {wanted}, as in {missing[0].name}=VALUE")

    def __call__(self, /, *unnamed: object, **values: Number) -> Mechanism:
        """Return the mechanism with values bound to some of its parameters, exactly, see `exact`.

        An unknown name, a value outside the domain and a bound parameter raise InputError.
        """
        if unnamed:
            names = list(self.parameters) or ["NAME"]
            shown = ", ".join(f"{n}={v!r:.20}" for n, v in zip(names, unnamed, strict=False))
            raise InputError(f"values need names: write {self.name}({shown})")
        if not values:
            return self
        by_name = {parameter.name: parameter for parameter in self.declared}
        new = _readings(values, by_name, self.values, self.name)
        symbols = {by_name[name].symbol: value for name, value in new}
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
            raise InputError(f"{self.name} with {_values_in_words(new)}: {error}") from None

    @property
    def neighbours(self) -> str:
        """Which two data sets the guarantee cannot tell apart; `usual_relation` where unasked."""
        return self.relation or usual_relation(self)

    @property
    def on_a_line(self) -> Mechanism:
        """Noise of density g(|x|) on the line for one on vectors: the same in one dimension."""
        density = self.source.density.xreplace({self.variable: sp.Abs(self.variable)})  # type: ignore[union-attr]
        support, noise = Support("interval", -sp.oo, sp.oo), Noise(density, self.source.sensitivity)  # type: ignore[union-attr]
        return replace(self, source=noise, support=support, template=None)

    @property
    def is_mirrored(self) -> bool:
        """Whether both directions have one law or bound, as under substitution of noise."""
        is_substitution = self.neighbours == SUBSTITUTION and isinstance(self.source, Noise)
        turned = isinstance(self.source, Radial | MassNoise) and self.sampling is None
        return is_substitution or turned or isinstance(self.source, RenyiCurve | Local)

    @property
    def shipped_shape(self) -> Shape | None:
        """The shape of a built-in mechanism's noise, as it comes with the package, or None."""
        form = self.template or self
        return shipped_shape(form.name, form.key)

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
        return assumption.assumed(self, assume)

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
        is_formula = isinstance(sensitivity, sp.Expr) and sensitivity.free_symbols
        size = sensitivity if is_formula else exact(sensitivity, "the sensitivity")
        if isinstance(self.source, MassNoise):
            moved, support = self.source.moved(size)
            return replace(self, source=moved, support=support, template=None)
        if not isinstance(self.source, Noise | Radial):
            raise InputError(f"{self.name} is a pair of laws and has no sensitivity to change")
        return replace(self, source=self.source.on(size).checked(self.support), template=None)

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
        shift = spelled(shift, SHIFTS)
        template = self.template and replace(self.template, shift=shift)
        return replace(self, shift=shift, template=template)

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
        scheme = spelled(scheme, NAMES)
        released = spelled(released, RELEASED)
        if scheme == ALLOCATION:
            if rate is not None:
                raise InputError("random_allocation takes no rate: steps and participations say it")
            sampling = replace(
                allocation(steps, participations),
                batch=batch,
                records=records,
                group=group,
                released=released,
            )
            return replace(self, sampling=sampling.checked())
        drawn = (batch, records, group, steps, participations, released)
        sampling = Sampling(scheme, sp.S.One, *drawn).checked()
        if rate is None:
            raise InputError(f"the sampling rate must be a number: {scheme} sampling needs one")
        rate, declared = self._read_rate(rate)
        return replace(self, sampling=sampling.at(rate), declared=declared)

    def _read_rate(self, rate: Number) -> tuple[sp.Expr, tuple[Parameter, ...]]:
        """Return a rate, exact and in own symbols, and the parameters with that which it may be."""
        declared = self.declared
        alone = isinstance(rate, sp.Symbol | str) and str(rate).isidentifier()
        if alone and str(rate) not in {parameter.name for parameter in declared}:
            if str(rate) == self.variable.name:
                raise InputError(f"'{rate}' is both the variable and a parameter")
            declared = (*declared, declare(str(rate), "probability"))
        if isinstance(rate, str):
            with at("the sampling rate"):
                rate = parse(rate, {parameter.name: parameter.symbol for parameter in declared})
        else:
            intake = Intake(self.variable, self.support, None, declared)
            rate = intake.constant(rate, "the sampling rate")
            declared = intake.declared
        bound = self.values
        values = {p.symbol: bound[p.name] for p in declared if p.name in bound}
        return substitute(rate, values), declared

    def normalized(self) -> Mechanism:
        """Return the mechanism with its densities divided by their masses, kept exact.

        >>> x = sp.Symbol("x")
        >>> rounded = Mechanism.from_pair([0.66, 0.33], [0.33, 0.66], x, {"points": [0, 1]})
        >>> rounded.normalized().pair().P
        (2/3, 1/3)
        """
        source, on = self.source, (self.variable, self.support)
        if isinstance(source, Noise):
            divided: Source = source.of_density(source.density / mass_of(source.density, *on))
        elif isinstance(source, Laws):
            divided = source.normalized(*on)
        else:
            return self
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
        if same:
            return self._pair
        return self._pair.reversed()

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
        """A text of name, expressions and sampling, equal for equal mechanisms.

        Values in a formula are told apart as values: the expression that they give is not needed.
        """
        scheme: list[Any] = []
        if self.sampling is not None:
            scheme = [type(self.sampling).__name__, *vars(self.sampling).values()]
        choices: list[Any] = [self.neighbours]
        if self.shift != AT_MOST:
            choices.append(self.shift)
        if self.modes is not None:
            choices.append("modes 1")
        template = self.template
        if template is not None and self.is_concrete:
            values = dict(self.bound)
            declared = {parameter.name for parameter in template.declared}
            used = sorted(values.keys() & declared)
            equations = [f"{name}={values[name]}" for name in used]
            return "\n".join(map(str, (template.key, *choices, *equations, *scheme)))
        parts = [self.name, self.variable, *choices]
        for part in (self.support, self.source):
            parts += [type(part).__name__, *vars(part).values()]
        return "\n".join(sp.srepr(value) for value in (*parts, *scheme))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Mechanism):
            return self.key == other.key
        return NotImplemented

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
        values = {name: f"={value}" for name, value in self.bound}
        names = (p.name + values.get(p.name, "") for p in self.declared)
        text = f"{self.name}({', '.join(names)})"
        source = self.source
        size = getattr(source, "sensitivity", sp.S.One)
        if size.is_Integer and size != 1:
            text += f", sensitivity {size}"
        people = getattr(source, "people", None)
        if people is not None:
            text += f", {people} people shuffled"
        if self.sampling:
            text += f", {self.sampling.describe()}"
        if self.relation is not None:
            text += f", {self.relation.replace('_', ' ')}"
        if self.shift != AT_MOST:
            text += f", shift {self.shift}"
        if self.modes is not None:
            text += ", one mode by its author's word"
        if assumptions := assumption.comparisons(self):
            text += f", assuming {' and '.join(assumptions)}"
        return text


def _values_in_words(bound: Sequence[tuple[str, sp.Expr]]) -> str:
    """Return values for a message, those of many digits rounded."""
    texts = {name: str(value) for name, value in bound}
    texts |= {n: str(v.evalf(3)) for n, v in bound if len(texts[n]) > _LONGEST_VALUE}
    return ", ".join(f"{name}={text}" for name, text in texts.items())


def a_mechanism(value: Any) -> Mechanism:
    """Return the value if it is a mechanism."""
    if isinstance(value, Mechanism):
        return value
    text = f"{value!r:.60}"
    named = isinstance(value, str) and value.isidentifier()
    example = f"symdp.mechanisms.{value}" if named else "symdp.mechanisms.gaussian(sigma=2)"
    raise InputError(f'{text} is no mechanism: pass {example}, say, or symdp.load("file.toml")')
