"""Accountants: rules from the law of a composition's privacy loss to δ(ε), each in a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from symdp.errors import InputError, suggestion
from symdp.exact.answer import Accountant, Answer
from symdp.exact.base import HIGHEST_ORDER
from symdp.exact.route import Contour
from symdp.methods.central_limit import CentralLimit, TiltedEdgeworth
from symdp.methods.edgeworth import Edgeworth
from symdp.methods.eeai import EdgeworthInterval
from symdp.methods.fourier import Fourier
from symdp.methods.gaussian import Gaussian, GaussianEdgeworth
from symdp.methods.lugannani_rice import LugannaniRice
from symdp.methods.moments import Moments
from symdp.methods.msd import SaddlePoint
from symdp.methods.prv import Prv
from symdp.methods.renyi import Renyi
from symdp.methods.spa_bounds import SpaBounds
from symdp.methods.variance_bound import VarianceBound

__all__ = ["Accountant", "Answer", "accountant", "names"]

_PLAIN: dict[str, Callable[[], Accountant]] = {
    "contour": Contour,
    "clt": CentralLimit,
    "lugannani-rice": LugannaniRice,
    "moments": Moments,
    "moments-plain": lambda: Moments(plain=True),
    "moments-variance": VarianceBound,
    "fourier": Fourier,
    "prv": Prv,
    "tilted-prv": lambda: Prv(tilted=True),
    "renyi": Renyi,
    "spa-bounds": SpaBounds,
    "eeai": EdgeworthInterval,
    Gaussian().name: Gaussian,
    GaussianEdgeworth().name: GaussianEdgeworth,
}
_SERIES: dict[str, Callable[[int], Accountant]] = {
    "msd": SaddlePoint,
    "edgeworth": Edgeworth,
    "tilted-edgeworth": TiltedEdgeworth,
}
# What others call these methods.
_OTHER_NAMES = {
    "rdp": "renyi",
    "pld": "prv",
    "fft": "fourier",
    "gdp": Gaussian().name,
    "clt-gdp": Gaussian().name,
    "ma": "moments",
    "spa": "msd:2",
    "saddlepoint": "msd:2",
    "exact": "contour",
}
_SHOWN_ORDERS = {"msd": (0, 1, 2), "edgeworth": (1, 2, 4), "tilted-edgeworth": (2,)}


def names() -> tuple[str, ...]:
    """Return the accountants by name, a series with the orders that are usually wanted.

    Examples
    --------
    >>> "contour" in names(), "msd:2" in names()
    (True, True)
    """
    series = [f"{name}:{order}" for name, orders in _SHOWN_ORDERS.items() for order in orders]
    return ("contour", *series, *(name for name in _PLAIN if name != "contour"))


@lru_cache(maxsize=64)
def accountant(name: str) -> Accountant:
    """Return the accountant of a name such as contour, msd:2 (or msd2), clt, edgeworth:3, moments.

    Raises
    ------
    InputError
        If the name is unknown or its order out of range.

    Examples
    --------
    >>> accountant("msd1").name
    'msd:1'
    """
    if name in _PLAIN:
        return _PLAIN[name]()
    family = name.rstrip("0123456789")
    digits = name[len(family) :]
    family = family.removesuffix(":")
    if family in _SERIES:
        if not digits:
            raise InputError(f"method '{name}' needs an order, for example {family}:2")
        if len(digits) > 3 or int(digits) > HIGHEST_ORDER:
            raise InputError(f"method '{name}': the highest order is {HIGHEST_ORDER}")
        return _SERIES[family](int(digits))
    known = [*_PLAIN, *(f"{series}:2" for series in _SERIES), "truth", "certified"]
    other = _OTHER_NAMES.get(name.lower())
    hint = f"; did you mean '{other}'?" if other else suggestion(name, known)
    hint = hint or f"; known: {', '.join(known)}"
    raise InputError(f"method '{name}' is unknown{hint}")
