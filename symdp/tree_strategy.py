r"""The sensitivity of binary trees over thousands of steps with several participations (DP-FTRL).

A record that takes part at the steps π moves the node ν by at most the number of them below it, and
all nodes together by

.. math:: \mathrm{sens}^2 = \max_\pi \sum_\nu |\pi \cap \nu|^2 .

A complete block of the tree is described by its best patterns alone: for a number of participations
and a value, the least last step among patterns that do not begin before a given one. Two blocks
beside each other are joined by that, so that no matrix is needed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from symdp.errors import InputError
from symdp.matrix import Sensitivity
from symdp.tolerances import ROUNDED

__all__ = ["tree_sensitivity"]

_MOST_EXACT = (
    24  # participations up to which all patterns are told apart, in a second for 10⁴ steps
)
_MOST_STEPS = 1_000_000
_LARGEST_BLOCK = 20_000  # steps up to which they are
_NEVER = np.iinfo(np.int64).max // 4
Patterns = dict[tuple[int, int], NDArray[np.int64]]  # (participations, value) -> least last step


def tree_sensitivity(steps: int, participations: int = 1, separation: int = 1) -> Sensitivity:
    """Return the sensitivity of `symdp.matrix.tree(steps)` without the matrix.

    Parameters
    ----------
    steps : how many steps the tree is over, its incomplete nodes left out
    participations : the most steps that one record takes part in
    separation : the least distance of two participations of one record

    Returns
    -------
    Sensitivity; exact for up to 24 participations, otherwise an interval. Its pattern is empty.

    Raises
    ------
    InputError : a number that is no positive integer, or more than a million steps.

    Examples
    --------
    >>> found = tree_sensitivity(2000, participations=6, separation=314)
    >>> round(float(found) ** 2, 9), found.is_exact
    (79.0, True)
    """
    for name, value in (
        ("steps", steps), ("participations", participations), ("separation", separation)
    ):  # fmt: skip
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name} must be 1, 2, 3 or more, not {value!r:.40}")
    if steps > _MOST_STEPS:
        raise InputError(f"a tree over {steps} steps: at most {_MOST_STEPS} are accounted for")
    times = min(participations, -(-steps // separation))
    if times <= _MOST_EXACT and steps <= _LARGEST_BLOCK:
        low = high = _largest(steps, times, separation)
    else:
        low, high = _of_even_gaps(steps, times, separation), _by_levels(steps, times, separation)
    return Sensitivity(math.sqrt(low) * (1 - ROUNDED), math.sqrt(high) * (1 + ROUNDED), ())


def _largest(steps: int, times: int, apart: int) -> int:
    """Return the largest Σ |π ∩ ν|² of all patterns."""
    blocks: list[tuple[Patterns, int]] = [({(1, 1): np.zeros(1, dtype=np.int64)}, 1)]
    while 2 * blocks[-1][1] <= steps:
        last = blocks[-1]
        doubled = _joined_blocks(last, last, times, apart, is_node=True)
        blocks.append(doubled)
    whole = blocks.pop()
    for block in reversed(blocks):
        _, length = block
        if steps & length:
            whole = _joined_blocks(whole, block, times, apart, is_node=False)
    patterns, _ = whole
    return max(value for _, value in patterns)


def _joined_blocks(
    left: tuple[Patterns, int],
    right: tuple[Patterns, int],
    times: int,
    apart: int,
    *,
    is_node: bool,
) -> tuple[Patterns, int]:
    """Return the patterns of two blocks beside each other, which may be one node together."""
    (of_left, width) = left
    (of_right, more) = right
    patterns: Patterns = {}

    def offer(count: int, value: int, last: NDArray[np.int64]) -> None:
        key = count, value + (count**2 if is_node else 0)
        if last[0] < _NEVER:
            patterns[key] = np.minimum(patterns[key], last) if key in patterns else last

    nowhere = np.full(more, _NEVER)
    for (count, value), last in of_left.items():
        offer(count, value, np.concatenate([last, nowhere]))
    for (others, gain), after in of_right.items():
        moved = np.where(after < _NEVER, after + width, _NEVER)
        offer(others, gain, np.concatenate([np.full(width, moved[0]), moved]))
        padded = np.append(moved, _NEVER)
        for (count, value), last in of_left.items():
            if count + others <= times:
                next_one = padded[np.clip(last + apart - width, 0, more)]
                offer(count + others, value + gain, np.concatenate([next_one, nowhere]))
    return _undominated(patterns), width + more


def _undominated(patterns: Patterns) -> Patterns:
    """Leave out patterns that another of as many participations beats in value and in last step."""
    kept: Patterns = {}
    for count in {count for count, _ in patterns}:
        best: NDArray[np.int64] | None = None
        for value in sorted((v for n, v in patterns if n == count), reverse=True):
            last = patterns[count, value]
            if best is None or (last < best).any():
                kept[count, value] = last
                best = last if best is None else np.minimum(best, last)
    return kept


def _by_levels(steps: int, times: int, apart: int) -> int:
    """Return an upper bound: on every level the nodes are as full as they may be."""
    total = 0
    for level in range(steps.bit_length()):
        most = min(times, -(-(1 << level) // apart))
        total += times // most * most**2 + (times % most) ** 2
    return total


def _of_even_gaps(steps: int, times: int, apart: int) -> int:
    """Return what the participations at 0, b, 2b, … reach, a lower bound."""
    places = np.arange(times) * apart
    total = 0
    for level in range(steps.bit_length()):
        counts = np.bincount(places >> level)[: steps >> level]
        total += int((counts**2).sum())
    return total
