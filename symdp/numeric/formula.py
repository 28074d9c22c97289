"""The law of a formula as a function of its parameters: derived and compiled once, then evaluated.

The pieces of a pair are derived with its positive parameters left as symbols. Values put numbers in
for what depends on them alone, and nothing is derived again.

**As plain data** another process evaluates it without deriving it. A formula consists of
straight-line programs. Its constants are expressions: those without symbols become programs, too,
those that depend on parameters become numbers of a table.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from flint import arb, arb_poly, ctx, fmpq

from symdp import shipped
from symdp.emit.arb import (
    ArbFunction,
    ArbFunctions,
    compile_arb_together,
)
from symdp.emit.exact import real_ball
from symdp.emit.numpy import NumpyFunction, NumpyFunctions, coefficients_only
from symdp.emit.steps import Program
from symdp.emit.steps import Step as Operation
from symdp.errors import InputError
from symdp.interrupt import generation
from symdp.numeric.closed import ClosedMasses
from symdp.numeric.loss import LossLaw
from symdp.numeric.step import Array, Moment, Numbers, SmoothPiece, Step
from symdp.tolerances import LONG_BITS

if TYPE_CHECKING:
    import sympy as sp

    from symdp.density.exponential_sum import ExponentialSum
    from symdp.density.records import Piece, Point
    from symdp.model.mechanism import Mechanism
    from symdp.model.pair import Pair

_LEAST_BITS = 120  # of a constant that is to be rounded to 64 or to 53
_MOST = 1e150  # of a constant, and one over it the least: products of some are doubles, too
_AROUND = 1e-12  # an end where the functions are holomorphic that far around needs no stretching
_LIKELY = 6.0  # e-folds below the likeliest panel: those hold nearly all of P and Q
# name of the rate among the parameters of a formula
RATE = "sampling_rate"


def law_of_formula(mechanism: Mechanism, direction: str) -> LossLaw | None:
    """Return the law of one step from the formula of its mechanism, None where that has none.

    `mechanism`: A concrete mechanism. `direction`: "remove" or "add".
    """
    formula_at = formula_of(mechanism, direction)
    if formula_at is None:
        return None
    formula, values = formula_at
    return formula.at(values, mechanism.name)


class _Question(NamedTuple):
    """What a formula is derived from, and the values of its symbols."""

    template: Mechanism
    fixed: tuple[tuple[str, sp.Expr], ...]
    sampling: Any  # its rate a symbol
    relation: str | None
    direction: str
    values: dict[str, Fraction]

    @property
    def key(self) -> list[object]:
        """What tells a formula from all others, in plain data."""
        scheme = None
        if self.sampling is not None:
            parameters = map(str, vars(self.sampling).values())
            scheme = [self.sampling.scheme, *parameters]
        fixed = [[name, str(value)] for name, value in self.fixed]
        return [self.template.key, fixed, scheme, self.relation, self.direction]


def formula_of(mechanism: Mechanism, direction: str) -> tuple[Formula, list[Fraction]] | None:
    """Return the formula of a concrete mechanism and the values of its symbols, None without."""
    question = _question(mechanism, direction)
    if question is None:
        return None
    key = json.dumps(question.key)
    formula = _shipped_formula(question.template.name, key)
    if formula is None:
        formula = _derived_formula(*question[:-1], generation())
    if formula is None:
        return None
    values = [question.values[name] for name in formula.names]
    return formula, values


def key_of(mechanism: Mechanism, direction: str) -> list[object] | None:
    """Return what tells the formula of a concrete mechanism from all others, None without one."""
    question = _question(mechanism, direction)
    if question is None:
        return None
    return question.key


def _question(mechanism: Mechanism, direction: str) -> _Question | None:
    template = mechanism.template
    if template is None:
        return None
    names = {parameter.name for parameter in template.declared}
    values = {name: value for name, value in mechanism.bound if name in names}
    free = {
        parameter.name
        for parameter in template.declared
        if parameter.symbol.is_positive and not parameter.symbol.is_integer
    }
    fixed = []
    numbers = {}
    for name, value in values.items():
        if name in free:
            numbers[name] = value
        else:
            fixed.append((name, value))
    sampling = mechanism.sampling
    if sampling is not None:
        numbers[RATE] = sampling.rate
    if not numbers or not all(value.is_Rational for value in numbers.values()):
        return None
    if sampling is not None:
        is_inner = 0 < sampling.rate < 1
        # Of weights q^j (1 − q)^(k − j) the signs are known with the value of q alone.
        if not is_inner or sampling.group > 1:
            return None
    scheme = None
    if sampling is not None:
        import sympy as sp

        scheme = replace(sampling, rate=sp.Symbol(RATE))
    exact = {}
    for name, value in numbers.items():
        exact[name] = Fraction(int(value.p), int(value.q))
    return _Question(
        template=template,
        fixed=tuple(fixed),
        sampling=scheme,
        relation=mechanism.relation,
        direction=direction,
        values=exact,
    )


@lru_cache(maxsize=64)
def _shipped_formula(name: str, key: str) -> Formula | None:
    """Return the formula that comes with the package, None where there is none."""
    data = shipped.fact_of_parts(name, "formulas", json.loads(key))
    if data is None:
        return None
    formula = decode(data)
    if formula.moment is not None:
        formula.moment.is_checked = True
    return formula


@lru_cache(maxsize=64)
def _derived_formula(
    template: Mechanism,
    fixed: tuple[tuple[str, sp.Expr], ...],
    sampling: Any,
    relation: str | None,
    direction: str,
    _: int,
) -> Formula | None:
    from symdp.density.pieces import pieces, points

    try:
        mechanism = template(**dict(fixed))
        if sampling is not None:
            mechanism = mechanism.subsample(
                sampling.scheme,
                RATE,
                sampling.batch,
                records=sampling.records,
                group=sampling.group,
                released=sampling.released,
            )
        mechanism = replace(mechanism, relation=relation)
        pair = mechanism.pair(direction)
        probabilities = [p.name for p in mechanism.declared if p.domain.endswith("probability")]
        names = (*probabilities, RATE)
        if pair.support.kind == "points":
            return ListFormula(points(pair), mechanism.parameters, pair, names)
        return Formula(pieces(pair), mechanism.parameters, pair, names)
    except (InputError, NotImplementedError, TypeError):
        return None  # values may decide what symbols do not


class Formula:
    """The pieces of a formula, compiled."""

    def __init__(
        self,
        derived: Sequence[Piece],
        parameters: dict[str, sp.Symbol],
        pair: Pair,
        below_one: tuple[str, ...],
    ) -> None:
        from symdp.emit.mass import names_of_masses

        x = pair.variable
        self.source = (pair, below_one)
        self.is_discrete = pair.is_discrete
        if any(piece.log_p is None or piece.log_q is None for piece in derived):
            raise InputError("the pieces of the loss depend on values")
        self.names = tuple(sorted(parameters))
        self._parameters = [parameters[name] for name in self.names]
        # Sums over integers that a density is divided by are symbols, evaluated by themselves.
        named = {}
        if pair.is_discrete:
            named = names_of_masses(pair.expressions())
        self._masses = list(named)
        self._symbols = [*self._parameters, *named.values()]
        self._pieces = [
            PieceFormula(piece.replaced(named), x, self._symbols)  # its masses are symbols
            for piece in derived
        ]
        wanted: list[sp.Expr] = []
        for piece in self._pieces:
            wanted += piece.entries_of_table
        finite = [expression for expression in wanted if not expression.is_infinite]
        self._constants = list(dict.fromkeys(finite))
        self._balls: ArbFunctions | None = None
        if self._constants:
            self._balls = compile_arb_together(self._constants, self._symbols)

    def at(self, values: Sequence[Fraction], name: str) -> LossLaw | None:
        """Return the law at some values, None where these need a derivation of their own."""
        exact = [fmpq(value.numerator, value.denominator) for value in values]
        with ctx.workprec(LONG_BITS):
            masses = [self._mass_at(mass, values) for mass in self._masses]
            balls: Sequence[arb] = ()
            if self._balls is not None:
                balls = self._balls(*map(arb, exact), *masses)
        bound: list[fmpq | arb] = [*exact, *masses]
        constants = dict(zip(self._constants, balls, strict=True))
        if not all(_is_usable(ball) for ball in balls):
            return None
        pieces: list[SmoothPiece] = []
        for formula in self._pieces:
            piece = formula.at(bound, constants)
            if piece is None:
                return None
            if pieces and not formula.is_atom and piece.lower < pieces[-1].upper:
                return None
            pieces.append(piece)
        if self.is_discrete:
            return self._on_integers(name, pieces, constants)

        def read_moment() -> Moment | None:
            return None if self.moment is None else self.moment.at(exact)

        step = Step(name, tuple(pieces))
        return LossLaw(step, None, is_reversible=True, read_moment=read_moment)

    def _mass_at(self, mass: sp.Expr, values: Sequence[Fraction]) -> arb:
        import sympy as sp

        pairs = zip(self._parameters, values, strict=True)
        rationals = {symbol: sp.Rational(v.numerator, v.denominator) for symbol, v in pairs}
        return real_ball(mass.xreplace(rationals))

    @property
    def has_masses(self) -> bool:
        """Whether sums without a formula are evaluated at the values of the parameters."""
        return bool(self._masses)

    def _on_integers(
        self,
        name: str,
        pieces: Sequence[SmoothPiece],
        constants: dict[sp.Expr, arb],
    ) -> LossLaw:
        """Return the law of integers, those of one loss together as an atom."""
        losses: list[float] = []
        log_masses: list[float] = []
        balls: list[tuple[arb, arb]] = []
        with ctx.workprec(LONG_BITS):
            for formula, piece in zip(self._pieces, pieces, strict=True):
                if not piece.flat:
                    continue
                end = piece.exact_end(upper=math.isinf(piece.lower))
                _, loss = piece.ball(end)
                log_mass = constants[formula.log_mass]
                balls.append((log_mass.exp(), loss))
                log_masses.append(float(log_mass.mid()))
                losses.append(float(loss.mid()))
        moving = tuple(piece for piece in pieces if not piece.flat)
        step = Step(
            name,
            moving,
            point_loss=np.asarray(losses),
            point_log_p=np.asarray(log_masses),
            point_balls=tuple(balls),
        )
        return LossLaw(step, None)

    @cached_property
    def moment(self) -> MomentFormula | None:
        """M as a sum of rational functions times exponentials, read once for all values."""
        from symdp.density.exponential_sum import exponential_sum

        if self.is_discrete:  # residues are of losses with a density
            return None
        exponentials = exponential_sum(*self.source)
        if exponentials is None:
            return None
        return MomentFormula(exponentials, self._symbols)

    def entries(self, vectors: Sequence[Sequence[Fraction]], laws: Sequence[LossLaw]) -> Array:
        """Return all that depends on the parameters, a row for each of many values of them.

        That is every constant of the formula, and log P, log Q and ℓ at the likely places of one
        of some laws of it, the narrowest.
        """
        rows = [list(map(float, vector)) for vector in vectors]
        columns = np.asarray(rows).T
        entries: list[Array] = []
        if self._constants:
            entries = list(self._doubles(*columns))
        constants = dict(zip(self._constants, entries, strict=True))
        for number, piece in enumerate(self._pieces):
            of_laws = [_likely_places(law, number) for law in laws]
            places = [u for u in of_laws if u.size]
            if places:
                narrowest = min(places, key=np.ptp)
                entries += piece.entries(narrowest, constants, len(vectors))
        return np.column_stack(entries)

    @cached_property
    def _doubles(self) -> NumpyFunctions:
        assert self._balls is not None
        program, numbers = self._balls.in_doubles()
        return NumpyFunctions(program, numbers=numbers)


class ListFormula(Formula):
    """The probabilities and losses of a finite list, compiled."""

    def __init__(
        self,
        listed: Sequence[Point],
        parameters: dict[str, sp.Symbol],
        pair: Pair,
        below_one: tuple[str, ...],
    ) -> None:
        self.source = (pair, below_one)
        self.is_discrete = True
        self.names = tuple(sorted(parameters))
        self._parameters = [parameters[name] for name in self.names]
        self._masses = []
        charged = [point for point in listed if not point.p.is_zero]
        self._is_finite = [not point.loss.is_infinite for point in charged]
        losses = [point.loss for point in charged if not point.loss.is_infinite]
        masses = [point.p for point in charged]
        self._entries = compile_arb_together([*masses, *losses], self._parameters)

    def at(self, values: Sequence[Fraction], name: str) -> LossLaw | None:
        """Return the law at some values, None where a probability vanishes or a loss is none."""
        exact = [fmpq(value.numerator, value.denominator) for value in values]
        size = len(self._is_finite)
        with ctx.workprec(LONG_BITS):
            balls = self._entries(*map(arb, exact))
            masses = balls[:size]
            finite_losses = iter(balls[size:])
            losses = []
            for is_finite in self._is_finite:
                loss = next(finite_losses) if is_finite else arb.pos_inf()
                losses.append(loss)
            has_masses = all(mass > 0 for mass in masses)
            if not has_masses or any(loss.is_nan() for loss in losses):
                return None
            log_p = [float(mass.log().mid()) for mass in masses]
        points = zip(masses, losses, strict=True)
        finite = tuple((mass, loss) for mass, loss in points if loss.is_finite())
        if len(finite) != sum(self._is_finite):
            return None
        point_loss = []
        for loss in losses:
            if loss.is_finite():
                point_loss.append(float(loss.mid()))
            else:
                point_loss.append(math.inf)
        step = Step(
            name,
            point_loss=np.asarray(point_loss),
            point_log_p=np.asarray(log_p),
            point_balls=finite,
        )
        return LossLaw(step, None, read_moment=lambda: self._moment_at(exact))

    def _moment_at(self, exact: Sequence[fmpq]) -> Moment:
        """Return Σ p e^{zℓ} over finite losses."""
        size = len(self._is_finite)

        def numbers() -> Numbers:
            balls = self._entries(*map(arb, exact))
            masses = zip(balls[:size], self._is_finite, strict=True)
            polynomials = tuple(arb_poly([mass]) for mass, is_finite in masses if is_finite)
            return Numbers(polynomials, rates=tuple(balls[size:]), poles=())

        rates = (None,) * sum(self._is_finite)
        return Moment(numbers, orders=(), rates=rates, exact=())


def _likely_places(law: LossLaw, number: int) -> Array:
    """Return places of a piece where P or Q has mass, from a finite end of the piece or from 0.

    In a finite piece they are shares of its length. A piece of a single loss has none.
    """
    piece = law.step.pieces[number]
    for other, lower, upper in law.base.panels:
        if other is not piece:
            continue
        x = 0.5 * (lower + upper)
        log_p, log_q, _ = piece.values(x)
        log_mass = np.maximum(log_p, log_q) + np.log(upper - lower)
        x = x[log_mass > log_mass.max() - _LIKELY]
        length = piece.upper - piece.lower
        if math.isfinite(length):
            return np.asarray((x - piece.lower) / length)
        if math.isfinite(piece.lower):
            return np.asarray(x - piece.lower)
        if math.isfinite(piece.upper):
            return np.asarray(piece.upper - x)
        return np.asarray(x)
    return np.empty(0)


class PieceFormula:
    """One piece of a formula."""

    def __init__(self, piece: Piece, x: sp.Symbol, parameters: list[sp.Symbol]) -> None:
        import sympy as sp

        from symdp.density.exponents import exponents
        from symdp.density.pieces import log_exponential_mass
        from symdp.emit.program import compile_template

        self.lower = piece.lower
        self.upper = piece.upper
        self._flat = piece.slope == "constant"
        self.is_atom = piece.place is not None
        self._monotone = piece.slope in ("increasing", "decreasing")
        self._integer = bool(x.is_integer)
        self.log_mass = log_exponential_mass(piece, x)
        if self._integer and self._flat and self.log_mass is None:
            raise InputError("integers of one loss whose mass has no formula")
        self.exponents = exponents(piece, x)
        terms = list(dict.fromkeys((*piece.log_p_terms, *piece.log_q_terms)))
        parts = [piece.log_p, piece.log_q, piece.loss]
        listed = [parts, terms, *([expression] for expression in parts)]
        self._programs = [compile_template(expressions, [x]) for expressions in listed]
        self._balls = compile_arb_together([piece.log_p, piece.loss], [x, *parameters])
        self.constants: list[sp.Expr] = []
        for program in self._programs:
            self.constants += program.constants
        if not all(isinstance(constant, sp.Expr) for constant in self.constants):
            raise InputError("which branch of the density holds depends on values")

    def at(self, values: Sequence[fmpq | arb], constants: dict[sp.Expr, arb]) -> SmoothPiece | None:
        """Return the piece at some values, None where an end of it is singular."""
        ball = self._balls.at(values)
        finite_ends = [end for end in (self.lower, self.upper) if not end.is_infinite]
        ends = tuple(constants[end] for end in finite_ends)
        if not self._integer and not all(continues(ball, end) for end in ends):
            return None
        rounded_ends = []
        for end in (self.lower, self.upper):
            if end.is_infinite:
                rounded_ends.append(float(end))
            else:
                rounded_ends.append(float(constants[end].mid()))
        lower, upper = rounded_ends
        is_empty = lower > upper if self._integer else lower >= upper
        if is_empty:
            return None
        log_mass = None
        if self.log_mass is not None:
            log_mass = float(constants[self.log_mass].mid())
        whole, terms, *single = self._programs
        functions = []
        for program in single:
            functions.append(NumpyFunction(program, *_numbers(program, constants)))
        log_p, log_q, loss = functions
        return SmoothPiece(
            lower=lower,
            upper=upper,
            log_p=log_p,
            log_q=log_q,
            loss=loss,
            ball=ball,
            log_terms=NumpyFunctions(terms, *_numbers(terms, constants)),
            flat=self._flat,
            log_mass=log_mass,
            monotone=self._monotone,
            integer=self._integer,
            ends=ends,
            joint=NumpyFunctions(whole, *_numbers(whole, constants)),
            closed=self._closed_masses(constants),
        )

    def _closed_masses(self, constants: dict[sp.Expr, arb]) -> ClosedMasses | None:
        if self.exponents is None:
            return None
        sides = []
        for side in self.exponents:
            balls = []
            for a, b, c in side:
                balls.append((constants[a], constants[b], constants[c]))
            sides.append(tuple(balls))
        return ClosedMasses(*sides)

    @property
    def entries_of_table(self) -> list[sp.Expr]:
        """Its ends and all else that becomes a number of the table."""
        entries = [self.lower, self.upper, *self.constants]
        if self.log_mass is not None:
            entries.append(self.log_mass)
        for side in self.exponents or ():
            for term in side:
                entries += term
        return entries

    def entries(self, places: Array, constants: dict[sp.Expr, Array], rows: int) -> list[Array]:
        """Return log P, log Q and ℓ at some places for many values of the parameters."""
        has_lower = not self.lower.is_infinite
        has_upper = not self.upper.is_infinite
        if has_lower and has_upper:
            lower = constants[self.lower][:, None]
            length = constants[self.upper][:, None] - lower
            x = lower + places * length
        elif has_lower:
            x = constants[self.lower][:, None] + places * 1.0
        elif has_upper:
            x = constants[self.upper][:, None] - places
        else:
            x = np.tile(places, (rows, 1))
        whole = self._programs[0]
        numbers = [constants[constant][:, None] for constant in whole.constants]
        return list(NumpyFunctions(whole, numbers=numbers)(x))


class MomentFormula:
    """M = Σ N(z) e^{bz}/Π (z − p)^d with parameters, whose numbers are one program of them."""

    is_checked = False  # whether it was compared with integrals at many values

    def __init__(self, exponentials: ExponentialSum, parameters: list[sp.Symbol]) -> None:
        terms = exponentials.terms
        poles = [pole for pole, _ in exponentials.poles]
        listed = []
        for term in terms:
            listed += list(term.polynomial)
        listed += [term.rate for term in terms]
        listed += poles
        self._lengths = tuple(len(term.polynomial) for term in terms)
        self._orders = tuple(order for _, order in exponentials.poles)
        exact = []
        for pole in poles:
            ratio = (int(pole.p), int(pole.q)) if pole.is_Rational else None
            exact.append(ratio)
        self._exact = tuple(exact)
        self._balls = compile_arb_together(listed, parameters)

    def at(self, values: Sequence[fmpq]) -> Moment:
        """Return M at some values."""

        def numbers() -> Numbers:
            balls = iter(self._balls(*map(arb, values)))
            polynomials = []
            for length in self._lengths:
                coefficients = list(islice(balls, length))
                polynomials.append(arb_poly(coefficients))
            rates = tuple(islice(balls, len(self._lengths)))
            return Numbers(tuple(polynomials), rates, poles=tuple(balls))

        exact = []
        for ratio in self._exact:
            pole = None if ratio is None else Fraction(*ratio)
            exact.append(pole)
        rates = (None,) * len(self._lengths)
        return Moment(numbers, self._orders, rates, tuple(exact), self.is_checked)


def continues(ball: Callable[..., Sequence[Any]], end: arb) -> bool:
    """Return whether functions are seen to be holomorphic around an end."""
    from flint import acb

    with ctx.workprec(LONG_BITS):
        around = end + acb(arb(0, _AROUND), arb(0, _AROUND))
        return all(value.is_finite() for value in ball(around, analytic=True))


def _is_usable(ball: arb) -> bool:
    """Return whether a constant is known to more than 64 bits, and moderate."""
    if not ball.is_finite():
        return False
    if ball == 0:
        return True
    if ball.rel_accuracy_bits() < _LEAST_BITS:
        return False
    size = abs(float(ball.mid()))
    return 1.0 / _MOST < size < _MOST


def _numbers(
    program: Program, constants: dict[sp.Expr, arb]
) -> tuple[list[float], dict[int, float]]:
    """Return the constants of a program, and the logs of those near 1 that no double holds."""
    balls = [constants[constant] for constant in program.constants]
    numbers = [float(ball.mid()) for ball in balls]
    near_one = {}
    for slot, (ball, number) in enumerate(zip(balls, numbers, strict=True), len(program.symbols)):
        is_exact = ball == number  # of balls, != is no opposite of that
        if 0.5 < number < 2.0 and not is_exact:
            near_one[slot] = ball
    only = coefficients_only(program, near_one, near_one)
    return numbers, {slot: float(near_one[slot].log().mid()) for slot in only}


# by name in a record on disk
_FUNCTIONS = {function.__name__: function for function in (ArbFunction, ArbFunctions)}
# by name in a record on disk
_RECORDS = {
    record.__name__: record for record in (Formula, ListFormula, MomentFormula, PieceFormula)
}
# what a formula was derived from, and what is compiled anew from what is written
_NOT_WRITTEN = {"source", "_doubles"}


@dataclass(frozen=True, slots=True)
class _Constant:
    """A constant of a formula: the number of an entry in its table, or infinity."""

    number: int
    infinity: int = 0

    @property
    def is_infinite(self) -> bool:
        return self.infinity != 0

    def __float__(self) -> float:
        return self.infinity * math.inf


def encode(formula: Formula) -> Any:
    """Return a formula as JSON values."""
    assert formula.moment is None or formula.moment  # looked for before it is written down
    if formula.has_masses:
        raise InputError("a sum over integers is no plain data")
    return _Encoder().any(formula)


def decode(data: Any) -> Formula:
    """Return the formula of JSON values."""
    formula = _decoded(data)
    if not isinstance(formula, Formula):
        raise TypeError("no formula")
    return formula


class _Encoder:
    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def any(self, value: Any) -> Any:
        """Return any part of a formula."""
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, list | tuple):
            return {type(value).__name__: [self.any(part_of_list) for part_of_list in value]}
        if isinstance(value, Program):
            constants = [self.any(constant) for constant in value.constants]
            return {"program": self._program_data(value, constants)}
        name = type(value).__name__
        if name in _FUNCTIONS:
            program, _ = value.__reduce__()[1]
            constants = [self._constant_program(c) for c in program.constants]
            return {name: self._program_data(program, constants)}
        if name in _RECORDS:
            parts = {}
            for key, part in vars(value).items():
                if key not in _NOT_WRITTEN:
                    parts[key] = self.any(part)
            return {name: parts}
        if getattr(value, "is_infinite", False):
            return {"constant": [-1, 1 if value.is_extended_positive else -1]}
        if hasattr(value, "free_symbols"):
            return {"constant": [self._numbers.setdefault(value, len(self._numbers)), 0]}
        raise InputError(f"{name} is no plain data")

    def _constant_program(self, constant: Any) -> Any:
        """Return a constant without symbols as a program."""
        from symdp.emit.program import compile_constant

        return {"program": self._program_data(compile_constant(constant), [])}

    def _program_data(self, program: Program, constants: list[Any]) -> list[Any]:
        steps = []
        for step in program.steps:
            if not isinstance(step.detail, int | tuple | None):
                raise InputError(f"the operation {step.operation} is no plain data")
            detail = list(step.detail) if isinstance(step.detail, tuple) else step.detail
            steps.append([step.operation, list(step.operands), detail])
        return [list(program.symbols), constants, steps, list(program.results)]


def _decoded(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    ((kind, content),) = data.items()
    if kind == "constant":
        return _Constant(*content)
    if kind == "list":
        return [_decoded(item) for item in content]
    if kind == "tuple":
        return tuple(_decoded(item) for item in content)
    if kind == "program":
        return _program_of(content)
    if kind in _FUNCTIONS:
        return _FUNCTIONS[kind](_program_of(content))
    record = object.__new__(_RECORDS[kind])
    parts = {key: _decoded(part) for key, part in content.items()}
    vars(record).update(parts)
    return record


def _program_of(fields: list[Any]) -> Program:
    symbols, constants, steps, results = fields
    operations = []
    for name, operands, detail in steps:
        arguments = tuple(detail) if isinstance(detail, list) else detail
        operations.append(Operation(name, tuple(operands), arguments))
    return Program(
        tuple(symbols),
        tuple(_decoded(constant) for constant in constants),
        tuple(operations),
        tuple(results),
    )
