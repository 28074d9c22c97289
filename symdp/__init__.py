"""symdp: write a mechanism's density; get its privacy accounting derived, fast and proved.

>>> import symdp
>>> steps = symdp.compose(symdp.mechanisms.gaussian(sigma=2), 3)
>>> print(f"{steps.delta(1.5).delta:.12f}")
0.028882245552
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symdp import individual, mechanisms
    from symdp.derive.kinds import derive
    from symdp.derive.printed import Derivation
    from symdp.errors import AccuracyError, InputError, SymdpError
    from symdp.model.mechanism import Mechanism
    from symdp.model.specification import load
    from symdp.questions.audit import audit
    from symdp.questions.calibrate import Calibration, calibrate
    from symdp.questions.composition import Composition, compose
    from symdp.questions.guarantee import Curve, Guarantee
    from symdp.questions.ledger import Ledger
    from symdp.questions.noise import compare
    from symdp.questions.parallel import Parallel, load_composition
    from symdp.questions.sweep import Sweep, sensitivities, sweep
    from symdp.questions.training import training

from symdp.above import HOMES
from symdp.version import __version__

__all__ = [
    "AccuracyError",
    "Calibration",
    "Composition",
    "Curve",
    "Derivation",
    "Guarantee",
    "InputError",
    "Ledger",
    "Mechanism",
    "Parallel",
    "Sweep",
    "SymdpError",
    "__version__",
    "audit",
    "calibrate",
    "compare",
    "compose",
    "derive",
    "individual",
    "load",
    "load_composition",
    "mechanisms",
    "sensitivities",
    "sweep",
    "training",
]

# Public name -> the module that holds it. SymPy and NumPy are imported with the first use of one
# that needs them, so that `import symdp` costs nothing.
_HOMES = {
    "AccuracyError": "symdp.errors",
    "Calibration": "symdp.questions.calibrate",
    "Composition": "symdp.questions.composition",
    "Curve": "symdp.questions.guarantee",
    "Derivation": "symdp.derive",
    "Guarantee": "symdp.questions.guarantee",
    "InputError": "symdp.errors",
    "Ledger": "symdp.questions.ledger",
    "Mechanism": "symdp.model.mechanism",
    "Parallel": "symdp.questions.parallel",
    "Sweep": "symdp.questions.sweep",
    "SymdpError": "symdp.errors",
    "audit": "symdp.questions.audit",
    "calibrate": "symdp.questions.calibrate",
    "compare": "symdp.questions.noise",
    "compose": "symdp.questions.composition",
    "derive": "symdp.derive",
    "load": "symdp.model.specification",
    "load_composition": "symdp.questions.parallel",
    "sensitivities": "symdp.questions.sweep",
    "sweep": "symdp.questions.sweep",
    "training": "symdp.questions.training",
}


# What rooms below ask of these, which they do not know: see `symdp.above`.
HOMES.update(
    {
        "balls": "symdp.balls.mass",
        "shapes": "symdp.density.shapes",
        "noise": "symdp.questions.noise",
        "together": "symdp.questions.together.product",
        "gradient": "symdp.questions.design.gradient",
        "figures": "symdp.page.plot",
        "pages": "symdp.page.derivation",
        "json": "symdp.page.derivation_json",
        "formulas": "symdp.page.formula",
        "latex": "symdp.page.latex",
        "clones": "symdp.model.shuffle",
        "curves": "symdp.model.curve_tables",
        "files": "symdp.model.specification",
        "attacks": "symdp.questions.tradeoff",
        "programs": "symdp.questions.programs",
        "selection": "symdp.questions.selection",
        "tails": "symdp.prove.tail_values",
    }
)
_ROOMS = ("individual", "matrix", "mechanisms", "methods", "prove")  # modules


class _Package(ModuleType):
    """This module: `symdp.derive` is the function, although a folder has the same name."""

    def __setattr__(self, name: str, value: Any) -> None:
        # The import system puts a submodule into its parent; it must not replace the function.
        if name in _HOMES and isinstance(value, ModuleType):
            return
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"symdp.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'symdp' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
