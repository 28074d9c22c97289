"""symdp: write a mechanism's density; get its privacy accounting derived, fast and proved.

>>> import symdp
>>> steps = symdp.compose(symdp.mechanisms.gaussian(sigma=2), 3)
>>> print(f"{steps.delta(1.5).delta:.12f}")
0.028882245552
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from symdp.above import HOMES

# What rooms below ask of these, which they do not know: see `symdp.above`.
HOMES |= {
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
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOME_OF = {name: home for home, name in re.findall(r"from (\S+) import \w+ as (\w+)", _STUB)}
__all__ = sorted(_HOME_OF)  # noqa: PLE0605
_ROOMS = ("individual", "matrix", "mechanisms", "methods", "prove")  # modules

# The import system puts the folder `derive` here, once; the name is the function's.
import_module("symdp.derive")
del globals()["derive"]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"symdp.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'symdp' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
