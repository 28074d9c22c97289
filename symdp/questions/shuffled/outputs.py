r"""The outputs of a local randomizer, as nodes with the laws of all inputs at them.

Inputs of an interval. Where R_x(y) = f(y − x) and f has one mode, x ↦ R_x(y) rises, then falls, so
that the least of all inputs is at an end of the interval: ω = min(R_a, R_b), a fact with the source
that the one mode has. Where f turns more often, see `floors.py`. Of other densities the infimum is
not known: their inputs are listed. A density that is affine in the input has its least at an end.

Where the two ends are the worst pair of all inputs, see `worst.py`, they are asked alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from symdp.balls.modes import one_mode
from symdp.density.breakpoints import smooth_stretches
from symdp.emit import compile_numpy
from symdp.errors import InputError
from symdp.model.fact import RULE, Fact
from symdp.model.local import Local, is_affine, location
from symdp.numeric.shuffled.outputs import Outputs, listed_outputs, smooth_outputs
from symdp.questions.shuffled.floors import Floor, turning_floors
from symdp.questions.shuffled.worst import as_noise, is_even_with_one_mode, worst_ends
from symdp.tolerances import MASS_TOLERANCE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from symdp.model.mechanism import Mechanism

    Array = NDArray[np.float64]

_PARTS = 4  # of an interval of inputs, between which pairs are compared
_MORE_PARTS = 8  # the same where the density turns more than once
_FAR = 1e60  # outputs beyond which a density that is no number is 0


@dataclass(frozen=True)
class Randomizer:
    """Outputs of all inputs, and which pairs of inputs there are to compare."""

    outputs: Outputs
    pairs: tuple[tuple[int, int], ...]
    inputs: tuple[sp.Expr, ...]
    # whether the least law of all inputs is that of those which are listed, and why
    least: Fact
    # whether the worst pair of all inputs is among those that are compared, and why
    worst: Fact
    # whether inputs between those that are listed exist
    is_interval: bool


@lru_cache(maxsize=32)
def randomizer(mechanism: Mechanism) -> Randomizer:
    """Return the outputs of a concrete randomizer.

    Raises
    ------
    InputError
        If its laws have other masses than 1, or the least of them is not known.
    AccuracyError
        If they are not resolved.
    """
    source = mechanism.source
    assert isinstance(source, Local)
    least, floors = least_law(mechanism)
    worst = Fact(True, RULE, "all ordered pairs of inputs are compared")
    if mechanism.support.kind == "points":
        inputs = source.inputs
        outputs = listed_outputs(_masses_of_inputs(mechanism, source))
        pairs = _classes(outputs.densities[:, :, 0])
    else:
        ends = worst_ends(mechanism)
        parts = _MORE_PARTS if floors else _PARTS
        inputs = _ends(source) if ends else _compared(source, parts)
        if ends or source.is_interval:
            worst = ends
        outputs = _nodes(mechanism, source, inputs, floors)
        pairs = _farthest_first(len(inputs))
        if ends and is_even_with_one_mode(mechanism):
            # y → a + b + 2c − y exchanges both laws
            pairs = pairs[:1]
    off = outputs.off(len(inputs))
    if not off <= MASS_TOLERANCE:
        raise InputError(
            f"{mechanism.summary}: the mass of a law is off from 1 by {off:.3g}; each input needs "
            "a law of mass 1"
        )
    if not float((outputs.least * outputs.weights).sum()) > 0.0:
        raise InputError(
            f"{mechanism.summary}: its laws have no common part, so that some answers tell the "
            "input at once and shuffling hides nobody; give laws that overlap"
        )
    return Randomizer(outputs, pairs, inputs, least, worst, source.is_interval)


def least_law(mechanism: Mechanism) -> tuple[Fact, tuple[Floor, ...]]:
    """Return why ω is the least of the laws that are compared and of floors, and the floors."""
    source = mechanism.source
    assert isinstance(source, Local)
    if not source.is_interval:
        listed = Fact(True, RULE, "it is the least of the laws at all inputs, which are listed")
        return listed, ()
    if is_affine(source):
        reason = "the density is affine in the input: of all inputs one at an end gives least"
        return Fact(True, RULE, reason), ()
    density = location(source, mechanism.variable)
    if density is None or mechanism.support.kind == "points":
        raise InputError(
            f"{mechanism.summary}: what all inputs of an interval have in common is known of "
            "densities f(y - x) and of those that are affine in x; list the inputs, as in "
            "inputs = { values = [0, 1] }"
        )
    noise = as_noise(mechanism)
    fact = None if noise is None else one_mode(noise)
    if fact:
        reason = (
            f"the density has one mode ({fact.reason}): of all inputs one at an end gives least"
        )
        return Fact(True, fact.by, reason), ()
    floors = turning_floors(mechanism, source, density)
    if floors is None:
        known = "" if fact is None else f" ({fact.reason})"
        raise InputError(
            f"{mechanism.summary}: the density was not shown to have one mode{known}, nor where it "
            "turns, and only then what all inputs of an interval have in common is known; list the "
            "inputs, as in inputs = { values = [0, 1] }"
        )
    reason = (
        "the density is monotone between its turning points: of all inputs one at an end gives "
        "least, or one that puts the answer where the density turns"
    )
    return Fact(True, RULE, reason), floors


def _ends(source: Local) -> tuple[sp.Expr, ...]:
    """Return the least and the largest input."""
    return min(source.inputs, key=float), max(source.inputs, key=float)


def _compared(source: Local, parts: int) -> tuple[sp.Expr, ...]:
    """Return all inputs, of an interval some on a grid."""
    if not source.is_interval:
        return source.inputs
    lower, upper = source.inputs
    width = (upper - lower) / parts
    return tuple(lower + width * index for index in range(parts + 1))


def _farthest_first(count: int) -> tuple[tuple[int, int], ...]:
    """Return all ordered pairs of inputs, those farthest apart in their list first."""
    pairs = permutations(range(count), 2)
    return tuple(sorted(pairs, key=lambda pair: -abs(pair[0] - pair[1])))


def _masses_of_inputs(mechanism: Mechanism, source: Local) -> Array:
    """Return the masses of a list of outcomes, a row for each input."""
    y = mechanism.variable
    if isinstance(source.density, tuple):
        values: dict[sp.Expr, float] = {}
        for law in source.density:
            for mass in law:
                if mass not in values:
                    values[mass] = float(mass)
        table = np.array([[values[mass] for mass in law] for law in source.density])
    else:
        function = compile_numpy(source.density, [y, source.input])
        points = np.array([float(point) for point in mechanism.support.points])
        inputs = np.array([float(value) for value in source.inputs])
        grid = np.broadcast_arrays(points[None, :], inputs[:, None])
        table = np.broadcast_to(function(*grid), grid[0].shape).astype(float)
    if not (table >= 0.0).all():
        raise InputError(f"{mechanism.summary}: a mass is negative, or no number")
    return table


def _nodes(
    mechanism: Mechanism, source: Local, inputs: tuple[sp.Expr, ...], floors: tuple[Floor, ...]
) -> Outputs:
    """Return the nodes of densities, and of floors below them."""
    y = mechanism.variable
    support = mechanism.support
    laws = [source.density.subs(source.input, value) for value in inputs]  # type: ignore[union-attr]
    edges = {float(value) for value in inputs}
    for law in laws:
        for stretch in smooth_stretches((law,), y, support.lower, support.upper):
            edges |= {float(end) for end in (stretch.lower, stretch.upper) if end.is_finite}
    functions = [_density(law, y) for law in laws]
    for floor in floors:
        edges |= {floor.low, floor.high}
        functions.append(floor.over(functions[0]))
    ends = float(support.lower), float(support.upper)
    spread = float(max(inputs, key=float) - min(inputs, key=float))
    densities = _densities(functions, mechanism)
    return smooth_outputs(densities, len(functions), sorted(edges), ends, spread)


def _density(law: sp.Expr, y: sp.Symbol) -> Callable[[Array], Array]:
    """Return a density as a function: by its logarithm where the formula itself is no number."""
    plain = compile_numpy(law, [y])
    if law.has(sp.Piecewise, sp.Heaviside):
        return plain
    logarithm = compile_numpy(sp.expand_log(sp.log(law), force=True), [y])

    def density(outputs: Array) -> Array:
        values = np.array(np.broadcast_to(plain(outputs), outputs.shape), dtype=float)
        # what overflows inside may make it infinite, or 0
        is_none = ~np.isfinite(values) | (values == 0.0)
        if is_none.any():
            values[is_none] = np.exp(logarithm(outputs[is_none]))
        return values

    return density


def _densities(
    functions: Sequence[Callable[..., Array]], mechanism: Mechanism
) -> Callable[[Array, Sequence[int]], Array]:
    """Return the densities of all inputs as one function of a vector of outputs."""

    def densities(outputs: Array, inputs: Sequence[int]) -> Array:
        rows = [np.broadcast_to(functions[k](outputs), outputs.shape) for k in inputs]
        values = np.array(rows, dtype=float)
        values[~np.isfinite(values) & (np.abs(outputs) > _FAR)] = 0.0
        if not (values >= 0.0).all():
            raise InputError(f"{mechanism.summary}: a density is negative, or no number")
        return values

    return densities


def _classes(table: Array) -> tuple[tuple[int, int], ...]:
    """Return one ordered pair of inputs of each kind: pairs with one law of the ratios are alike.

    The kind is told by a sum over outcomes of e^{-(aR₀ + bR₁)/ω}, weighted.
    """
    least = table.min(axis=0)
    hidden = least > 0.0
    ratios = table[:, hidden] / least[hidden]
    first = np.exp(-0.7548776662 * np.log1p(ratios)) * least[hidden]
    second = np.exp(-0.5698402910 * np.log1p(ratios))
    kinds = first @ second.T
    bare = table[:, ~hidden]
    kinds += np.exp(-0.7548776662 * bare) @ np.exp(-0.5698402910 * bare).T
    seen: dict[float, tuple[int, int]] = {}
    for pair in permutations(range(table.shape[0]), 2):
        seen.setdefault(float(f"{kinds[pair]:.11e}"), pair)
    return tuple(seen.values())
