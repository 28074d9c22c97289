"""From a derivation to an accountant that stands alone: where derivation, numbers and code meet."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp

from symdp.emit.standalone import (
    Argument,
    ClosedForm,
    ExactModel,
    ExactPiece,
    Model,
    NoTapeError,
    Points,
    to_exact_c,
    to_exact_python,
)
from symdp.emit.standalone import to_c as _write_c
from symdp.emit.standalone import to_python as _write_python
from symdp.errors import AccuracyError, InputError

if TYPE_CHECKING:
    from symdp.derive.derivation import Derivation
    from symdp.model.mechanism import Mechanism

HIGHEST_ORDER = 8  # of correction terms in a file
_FARTHEST_TILTS = (255.0, 63.0, 15.0, 3.0)  # that a table may serve; the first that can be resolved
_MOST_POINTS = 4_000  # with which the widest tilts are taken
_TOO_MANY = 50_000  # nodes of a table in a file: a megabyte
_SAME = 1e-12  # relative: what a file computes beside what symdp does


def to_python(derivation: Derivation, order: int = 2, *, exact: bool = False) -> str:
    """Return a Python module that accounts for this mechanism without symdp.

    Where K is closed, parameters stay arguments and the standard library is enough; else the loss
    becomes a table of weighted points for the bound values, and NumPy is needed. The module offers
    log_delta, delta and epsilon by MSD_k [SPA (60), (61)], an estimate, and cgf.

    Parameters
    ----------
    derivation : Derivation
    order : int, 0 to 8
        The highest order of the series.
    exact : bool
        Write a program that prints δ by the contour integral, to about 1e-12, in place of the
        estimate. It needs NumPy, computes its nodes itself, and says where it has no answer.

    Raises
    ------
    InputError
        If K is numeric and a parameter has no value, or an exact program would need a function
        that standalone code does not have.

    Examples
    --------
    >>> import symdp
    >>> code = to_python(symdp.derive(symdp.mechanisms.gaussian))
    >>> "def epsilon(delta: float, count: int, *, sigma" in code
    True
    """
    if exact:
        return to_exact_python(_exact_model(derivation))
    return _written(derivation, order, python=True)


def to_c(derivation: Derivation, order: int = 2, *, exact: bool = False) -> str:
    """Return the same accountant as a C99 file that needs libm alone.

    Parameters
    ----------
    derivation, order, exact
        As for `to_python`.

    Raises
    ------
    InputError
        As for `to_python`.

    Examples
    --------
    >>> import symdp
    >>> "int gaussian_log_delta(" in to_c(symdp.derive(symdp.mechanisms.gaussian))
    True
    """
    if exact:
        return to_exact_c(_exact_model(derivation))
    return _written(derivation, order, python=False)


def _written(derivation: Derivation, order: int, *, python: bool) -> str:
    if isinstance(order, bool) or order not in range(HIGHEST_ORDER + 1):
        raise InputError(f"the order must be a whole number from 0 to 8, not {order!r}")
    write = _write_python if python else _write_c
    if derivation.cgf.expression is None:
        return write(_model(derivation, order, closed=False))
    try:
        return write(_model(derivation, order, closed=True))
    except NoTapeError as error:
        if not derivation.mechanism.is_concrete:
            raise InputError(f"{error}; give every parameter a value") from None
        return write(_model(derivation, order, closed=False))


def _model(derivation: Derivation, order: int, *, closed: bool) -> Model:
    mechanism = derivation.mechanism
    free = (
        () if not closed else tuple(p for p in mechanism.declared if p.name in mechanism.parameters)
    )
    law = _closed(derivation) if closed else _points(derivation)
    from symdp.version import __version__

    what = repr(mechanism)[len("<Mechanism ") : -1]
    heading = f"Privacy accountant of {what}, {derivation.direction} direction."
    notes = [
        f"Written by symdp {__version__}. You may use this file under the MIT license.",
        "delta is MSD_k, the method of steepest descent for the contour integral of delta: an",
        "estimate, no bound. Its next term says how far to trust it.",
        "Source: Alghamdi et al., The Saddle-Point Accountant for Differential Privacy (2022),",
        "equations (28), (50), (59)-(61).",
        *_formula(derivation, law),
    ]
    arguments = tuple(Argument(p.symbol, p.domain, p.rule) for p in free)
    return Model(mechanism.name, heading, tuple(notes), arguments, law, order)


def _exact_model(derivation: Derivation) -> ExactModel:
    from symdp.version import __version__

    mechanism, kind = derivation.mechanism, derivation.pair.support.kind
    pieces = [
        ExactPiece(p.lower, p.upper, p.log_p, p.log_q, p.loss, p.slope == "constant")
        for p in derivation.pieces
    ] or [
        ExactPiece(p.p, p.q, None, None, p.loss)
        for p in derivation.points
        if not (p.p.is_zero and p.q.is_zero)
    ]
    if not pieces:
        raise InputError(f"{mechanism.name}: a public choice among pairs has no exact program yet")
    free = [p for p in mechanism.declared if p.name in mechanism.parameters]
    what = repr(mechanism)[len("<Mechanism ") : -1]
    notes = (
        f"Written by symdp {__version__}. You may use this file under the MIT license.",
        "delta is exact to about 1e-12, relative: the contour integral by the trapezoidal rule,",
        "the moment generating function by Gauss quadrature. No bound is proved.",
        "Source: Alghamdi et al., The Saddle-Point Accountant for Differential Privacy (2022),",
        "equation (28).",
    )
    return ExactModel(
        f"Exact privacy accountant of {what}.",
        notes,
        tuple(Argument(p.symbol, p.domain, p.rule) for p in free),
        derivation.variable,
        "integers" if kind in ("integers", "naturals") else kind,
        tuple(pieces),
        derivation.loss_range or (-sp.oo, sp.oo),
        derivation.direction == "remove" or mechanism.is_mirrored,
    )


def _formula(derivation: Derivation, law: ClosedForm | Points) -> list[str]:
    if isinstance(law, ClosedForm):
        return [f"K({law.tilt}) = {law.cgf}"]
    return [
        f"K is numeric: {derivation.cgf.reason or 'its closed form has no series here'}.",
        f"The loss is given as {len(law.centred)} weighted points, which serve the tilts from "
        f"{law.tilts[0]:g} to {law.tilts[1]:g}.",
    ]


def _closed(derivation: Derivation) -> ClosedForm:
    cgf = derivation.cgf
    assert cgf.expression is not None
    domain = cgf.domain or (-sp.oo, sp.oo)
    losses = derivation.loss_range or (-sp.oo, sp.oo)
    finite = sp.simplify(1 - derivation.mass_at_infinity)
    return ClosedForm(cgf.expression, cgf.tilt, (finite, *domain, *losses), cgf.removable)


def _points(derivation: Derivation) -> Points:
    return _table(derivation.mechanism.require_concrete(), derivation.direction)


@lru_cache(maxsize=16)
def _table(mechanism: Mechanism, direction: str) -> Points:
    from symdp.law.compile import loss_law
    from symdp.law.nodes import NodeSet, build_nodes

    law = loss_law(mechanism, direction)
    low, high = law.domain
    found: tuple[NodeSet, float, float] | None = None
    for reach in _FARTHEST_TILTS:
        left, right = -1.0 - _within(reach, -1.0 - low), _within(reach, high)
        try:
            nodes = build_nodes(law.step, law.outlines, [left, -1.0, 0.0, right], 0.0)
        except AccuracyError:
            continue
        found = nodes, left, right
        if nodes.loss.size <= _MOST_POINTS:
            break
    if found is None or found[0].loss.size > _TOO_MANY:
        raise AccuracyError(f"the loss of {mechanism.name} does not fit into a table of points")
    nodes, left, right = found
    mean = law.precise_mean
    first = float(mean)
    spread = max(abs(loss) for loss in nodes.centred.tolist())
    if abs(first - nodes.mean) > _SAME * max(spread, abs(first)):
        raise AccuracyError(f"two quadratures of the mean loss of {mechanism.name} disagree")
    return Points(
        tuple(nodes.centred.tolist()),
        tuple(nodes.log_weight.tolist()),
        (first, float(mean - type(mean)(first))),
        math.log1p(-nodes.mass_at_infinity),
        law.domain,
        law.loss_bounds,
        (left, right),
    )


def _within(reach: float, end: float) -> float:
    """Return a tilt on the way to `reach` that stays inside a domain ending at `end`."""
    if math.isinf(end):
        return reach
    return reach / (1.0 + reach / end) if end > 0 else 0.0
