"""Records put together by what answers them: equal noise levels and rates, or kinds of steps."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdp.errors import InputError
from symdp.individual.single import gaussian_step

_MOST = 256  # distinct rows of noise and rate; each costs tables of its own


def split_profiles(
    work: Any, chosen: NDArray[np.int64] | None
) -> list[tuple[NDArray[np.int64], Any]]:
    """Return the records of each distinct row of noise levels and rates, with their work.

    Raises
    ------
    InputError
        If there are more than 256 distinct rows.

    Examples
    --------
    >>> from symdp.individual import from_counts
    >>> answer = from_counts([2.0], [[100], [100]], rate=[[0.01], [0.02]]).epsilon(1e-5)
    >>> answer.epsilon.round(9).tolist()
    [0.189794475, 0.404724554]
    """
    records, kinds = work.counts.shape
    columns = []
    for levels in (work.noise, work.rate, work.noise_above):
        if levels is None:
            continue
        rows = levels[chosen] if levels.ndim == 2 and chosen is not None else levels
        columns.append(np.broadcast_to(rows, (records, kinds)))
    distinct, which = np.unique(np.concatenate(columns, axis=1), axis=0, return_inverse=True)
    if distinct.shape[0] > _MOST:
        raise InputError(
            f"{distinct.shape[0]} distinct rows of noise and rate: at most {_MOST} are served at "
            "once; round them, noise down and rate up, or ask for the records in parts"
        )
    which = which.ravel()
    parts = []
    for number, row in enumerate(distinct):
        places = np.flatnonzero(which == number)
        cut = np.split(row, len(columns))
        above = cut[2] if work.noise_above is not None else None
        own = replace(
            work, counts=work.counts[places], noise=cut[0], rate=cut[1], noise_above=above
        )
        parts.append((places, own))
    return parts


def split_steps(work: Any) -> list[tuple[NDArray[np.int64] | None, Any]]:
    """Return the records whose steps are sampled Gaussians alone, by numbers, and the others.

    The methods of the papers know no other steps.
    """
    nothing, unknown = (math.inf, 0.0), (math.nan, 0.0)
    steps = [nothing if m is None else gaussian_step(m) or unknown for m in work.mechanisms]
    noise, rate = np.asarray(steps).T
    others = np.isnan(noise)
    alone = np.asarray(work.counts[:, others].any(axis=1))
    parts: list[tuple[NDArray[np.int64] | None, Any]] = []
    for rows, numbers in (
        (np.flatnonzero(~alone), {"noise": np.where(others, np.inf, noise), "rate": rate}),
        (np.flatnonzero(alone), {}),
    ):
        if rows.size:
            kinds = None if numbers else work.mechanisms
            own = replace(work, counts=work.counts[rows], mechanisms=kinds, **numbers)
            parts.append((rows, own))
    return parts
