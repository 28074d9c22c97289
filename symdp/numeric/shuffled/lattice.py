r"""E[S₊] with every part moved to a lattice: an upper bound where no line ends.

A value X between two points of a lattice is replaced by these two, with probabilities that keep its
mean; a cell of values by its two ends. E[g(X)] of every convex g only grows, and so does E[S₊]. The
n-th power of the part's discrete Fourier transform then is that of the sum, tilted so that the
periods that it adds are negligible: nothing of the line is left out, as it has only one period.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from symdp.numeric.answer import LONG_LINE, TOLERABLE
from symdp.numeric.shuffled.law import PartLaw, log_moment
from symdp.numeric.shuffled.line import Excess, chernoff, period
from symdp.tolerances import NEGLIGIBLE, ROUNDED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from symdp.numeric.shuffled.law import Array, Cells


def lattice_excess(nodes: PartLaw, cells: Cells, people: int) -> Excess:
    """Return E[S₊] where every value is moved to the ends of its cell, and these to a lattice.

    The nodes of the law say where tilt and period lie.
    """
    tilt, _ = chernoff(nodes, people)
    # Values that the tilt makes negligible are raised: S₊ grows with them.
    law = _at_ends(cells, -NEGLIGIBLE / tilt)
    reach = float(law.values.max()) - min(float(law.values.min()), 0.0)
    length = max(period(nodes, people, tilt), 2.0 * reach)
    # moving to a lattice of step h adds a share of about t²nh²/8
    fineness = tilt * length * math.sqrt(people / (800.0 * TOLERABLE))
    power = max(math.ceil(math.log2(fineness)), 10)
    power = min(power, LONG_LINE.bit_length() + 3)
    size = 1 << power
    step = _step(law, length / size)
    # a size without large prime factors
    power = math.floor(math.log2(length / step))
    unit = 1 << max(power - 3, 10)
    size = math.ceil(length / step / unit) * unit
    length = step * size
    numbers, masses = _on_lattice(law, step)
    # The tilted masses, the remaining one at 0 among them, wrapped around the period.
    exponents = np.asarray(tilt * step * numbers, dtype=np.float64)
    cgf = log_moment(masses, exponents)
    weighted = np.exp(np.log(masses) + exponents - cgf)
    tilted = np.bincount(numbers % size, weighted, minlength=size)
    tilted[0] += law.remaining * math.exp(-cgf)
    transform = np.conj(np.fft.rfft(tilted))
    # Most of it is negligible, as an n-th power.
    squares = transform.real**2 + transform.imag**2
    counts = np.flatnonzero(squares > math.exp(-2.0 * NEGLIGIBLE / people))
    values = transform[counts]
    is_alone = (counts == 0) | (counts == size // 2)
    weights = np.where(is_alone, 1.0, 2.0)
    points = tilt + 2j * math.pi / length * counts
    kernel = step / (4.0 * np.sinh(0.5 * step * points) ** 2)
    terms = np.exp(people * np.log(values)) * kernel
    total = float(weights @ terms.real)
    # A transform's values are off by a few roundings of the largest, 1.
    before = np.abs(values) ** (people - 1)
    lost = np.abs(kernel) * before
    rounding = 8.0 * ROUNDED * people * float(weights @ lost)
    value = total + rounding
    moved = people * (tilt * step) ** 2 / 8.0
    share = rounding / value + moved
    return Excess(people * cgf + math.log(value / size), share)


def _step(law: PartLaw, most: float) -> float:
    """Return a step of at most so much; one that the value next to 0 is a multiple of.

    Where few values have a common measure, sums of 0 then stay sums of 0.
    """
    nearest = float(np.abs(law.values[law.values != 0.0]).min(initial=math.inf))
    if not most < nearest < math.inf:
        return most
    return nearest / math.ceil(nearest / most)


def _at_ends(cells: Cells, floor: float) -> PartLaw:
    """Return the law of the ends of all cells, with probabilities that keep their means.

    Ends below a floor are raised to it.
    """
    span = cells.upper - cells.lower
    is_wide = span > 0.0
    rise = (cells.means - cells.lower) / np.where(is_wide, span, 1.0)
    to_upper = np.clip(np.where(is_wide, rise, 0.0), 0.0, 1.0)
    masses = np.concatenate((cells.masses * (1.0 - to_upper), cells.masses * to_upper))
    values = np.maximum(np.concatenate((cells.lower, cells.upper)), floor)
    counts = masses > 0.0
    return PartLaw(values[counts], masses[counts])


def _on_lattice(law: PartLaw, step: float) -> tuple[NDArray[np.int64], Array]:
    """Return points of the lattice by their numbers, and their masses."""
    places = law.values / step
    below = np.floor(places)
    above = places - below
    numbers = np.concatenate((below, below + 1.0)).astype(np.int64)
    # what is a multiple but for rounding stays where it is
    nearest = np.rint(above)
    is_multiple = np.abs(above - nearest) < 1e-9
    above = np.where(is_multiple, nearest, above)
    masses = np.concatenate((law.masses * (1.0 - above), law.masses * above))
    counts = masses > 0.0
    return numbers[counts], masses[counts]
