"""The accountants by name: what people read of them, and what makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from symdp.arguments import MethodName, instance
from symdp.errors import InputError, suggestion
from symdp.method_options import (
    DELTA_ERROR,
    DIGITS,
    EPS_ERROR,
    POINTS,
    REACH,
    TILT,
    Option,
    read_options,
)
from symdp.methods import fourier
from symdp.methods.eeai import EdgeworthInterval
from symdp.methods.fourier import Fourier
from symdp.methods.gaussian import Gaussian, GaussianEdgeworth
from symdp.methods.lugannani_rice import LugannaniRice
from symdp.methods.moments import Moments, VarianceBound
from symdp.methods.prv import Buckets, Prv
from symdp.methods.renyi import Renyi
from symdp.methods.route import Contour
from symdp.methods.series import (
    HIGHEST_ORDER,
    CentralLimit,
    Edgeworth,
    SaddlePoint,
    TiltedEdgeworth,
)
from symdp.methods.spa_bounds import BerryEsseen, SpaBounds
from symdp.numeric.answer import Accountant, Answer

__all__ = ["METHODS", "Accountant", "Answer", "Method", "accountant", "names", "options_of"]


@dataclass(frozen=True)
class Method:
    """What people read of a method, and what makes it."""

    kind: str
    what: str
    source: str
    make: Callable[..., Accountant] | None
    options: tuple[Option, ...] = ()
    orders: tuple[int, ...] = ()

    def cells(self, name: str) -> tuple[str, ...]:
        """Return what a table says of it: name, promise, what it does, source and options."""
        flags = ", ".join(option.flag for option in self.options)
        return (f"{name}:K" if self.orders else name, self.kind, self.what, self.source, flags)


_GAUSSIAN = Gaussian().name
METHODS: dict[str, Method] = {
    "contour": Method(
        "exact", "the contour integral for δ, or what else the table of routes names", "SPA",
        Contour,
    ),
    "truth": Method(
        "exact", "30 digits by a proof; of two steps what two sums agree on", "SPA",
        None,
    ),
    "certified": Method(
        "exact", "an enclosure proved in ball arithmetic, floating point included", "SPA",
        None, (DIGITS,),
    ),
    "clones": Method(
        "bound", "clones of the protected answer among others: of shuffled answers alone",
        "Feldman2021", None,
    ),
    "prv": Method(
        "bound", "convolution of the discretised loss", "PRV",
        Prv, (POINTS, EPS_ERROR, DELTA_ERROR),
    ),
    "tilted-prv": Method(
        "bound", "the same, tilted: errors relative to δ", "PRV",
        lambda **given: Prv(tilted=True, **given), (POINTS, EPS_ERROR, DELTA_ERROR),
    ),
    "spa-bounds": Method(
        "bound", "an interval around the tilted Gaussian approximation", "SPA",
        SpaBounds, (TILT,),
    ),
    "eeai": Method(
        "bound", "an interval around the first-order Edgeworth expansion of the loss", "EA",
        EdgeworthInterval,
    ),
    "renyi": Method("bound", "the Rényi curve over real orders, converted", "IND", Renyi),
    "moments": Method("bound", "Chernoff's bound with its best constant", "SPA", Moments),
    "moments-plain": Method(
        "bound", "Chernoff's bound without that constant", "SPA", lambda: Moments(plain=True)
    ),
    "moments-variance": Method(
        "bound", "Chernoff's bound with the tilted variance too", "SPA", VarianceBound
    ),
    "msd": Method(
        "estimate", "method of steepest descent with all terms up to n^−K", "SPA",
        SaddlePoint, orders=(0, 1, 2),
    ),
    "clt": Method("estimate", "Gaussian approximation of the tilted loss", "SPA", CentralLimit),
    "tilted-edgeworth": Method(
        "estimate", "Edgeworth expansion of the tilted loss", "SPA", TiltedEdgeworth, orders=(2,)
    ),
    "edgeworth": Method(
        "estimate", "Edgeworth expansion of the loss", "EA", Edgeworth, orders=(1, 2, 4)
    ),
    "lugannani-rice": Method(
        "estimate", "tail probabilities of the loss under P and Q", "Daniels", LugannaniRice
    ),
    "berry-esseen": Method(
        "bound", "an interval around the untilted Gaussian approximation: a baseline", "SPA",
        BerryEsseen,
    ),
    "buckets": Method(
        "bound", "losses rounded up and down to a mesh: a baseline", "Meiser2018",
        Buckets, (POINTS,),
    ),
    "fourier": Method(
        "estimate", "FFT of the loss's density on a grid", "FA", Fourier, (fourier.POINTS, REACH)
    ),
    _GAUSSIAN: Method("estimate", "one Gaussian trade-off curve", "IND", Gaussian),
    "gdp-e": Method("estimate", "its refinement by skewness", "EA", GaussianEdgeworth),
}  # fmt: skip
# What others call these methods.
_OTHER_NAMES = {
    "rdp": "renyi",
    "pld": "prv",
    "fft": "fourier",
    "gdp": _GAUSSIAN,
    "clt-gdp": _GAUSSIAN,
    "ma": "moments",
    "spa": "msd:2",
    "saddlepoint": "msd:2",
    "exact": "contour",
}


def names() -> tuple[MethodName, ...]:
    """Return the accountants by name, a series with the orders that are usually wanted.

    Examples
    --------
    >>> "contour" in names(), "msd:2" in names()
    (True, True)
    """
    series = []
    plain = []
    for name, method in METHODS.items():
        if method.make is None:
            continue
        series += [f"{name}:{order}" for order in method.orders]
        if not method.orders and name != "contour":
            plain.append(name)
    return cast("tuple[MethodName, ...]", ("contour", *series, *plain))


def options_of(name: str, given: Mapping[str, Any]) -> dict[str, float]:
    """Return the options given to a method as numbers, see `read_options`."""
    method = METHODS.get(_a_name(name))
    instance(given, dict, "options are a dict of names to numbers")
    if given:
        return read_options(name, method.options if method else (), given)
    return {}


def _a_name(name: object) -> str:
    if isinstance(name, str):
        return name.lower().replace("_", "-").replace(" ", "-")
    raise InputError(f"method = {name!r:.40}: it is a name such as 'contour' or 'msd:1'")


@lru_cache(maxsize=64)
def accountant(name: str, **options: Any) -> Accountant:
    """Return the accountant of a name such as contour, msd:2 (or msd2), clt, edgeworth:3, moments.

    Parameters
    ----------
    name
        One of `METHODS`, with an order for a series.
    options
        Those that the method takes, as numbers or as text.

    Raises
    ------
    InputError
        If the name or an option is unknown, or an order or an option out of range.

    Examples
    --------
    >>> accountant("msd1").name
    'msd:1'
    >>> accountant("fourier", reach=12, points=50_000).reach
    12.0
    """
    name = _a_name(name)
    method_named = METHODS.get(name)
    if method_named is not None and method_named.make is not None and not method_named.orders:
        return method_named.make(**options_of(name, options))
    family = name.rstrip("0123456789")
    digits = name[len(family) :]
    family = family.removesuffix(":")
    method_named = METHODS.get(family)
    if method_named is not None and method_named.make is not None and method_named.orders:
        if not digits:
            raise InputError(f"method '{name}' needs an order, for example {family}:2")
        if len(digits) > 3 or int(digits) > HIGHEST_ORDER:
            raise InputError(f"method '{name}': the highest order is {HIGHEST_ORDER}")
        options_of(name, options)
        return method_named.make(int(digits))
    known_names = [f"{other}:2" if method.orders else other for other, method in METHODS.items()]
    if name in known_names:
        raise InputError(f"method '{name}' is asked of a composition, not of the law of its loss")
    meant = _OTHER_NAMES.get(name.lower())
    hint = f"; did you mean '{meant}'?" if meant else suggestion(name, known_names)
    hint = hint or f"; known: {', '.join(known_names)}"
    raise InputError(f"method '{name}' is unknown{hint}")
