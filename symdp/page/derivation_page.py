"""A derivation page of a new mechanism: MyST, executed with its asserts, as those of the built-ins.

What is printed comes from the sections of the derivation, and every cell holds the package against
something that it did not come from: numerical integrals, differences, proofs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from symdp.density.signs import random_values
from symdp.errors import InputError
from symdp.page.markdown import markdown_blocks
from symdp.page.step_log import step_log

if TYPE_CHECKING:
    import sympy as sp

    from symdp.derive.derivation import Derivation

_DESCRIBED = "Derived by symdp from its density, and checked below."
_COUNT = 8  # steps: of so few truth may be out of reach


def derivation_page(d: Derivation, source: str, values: Mapping[str, str], order: int = 2) -> str:
    """Return a derivation as an executable page."""
    if d.pair.alternatives:
        raise InputError("a public choice among pairs has no page: derive one of them")
    made: dict[str, list[str]] = {"mechanism": [], "loss": [], "cumulants": [], "others": []}
    for section in d.sections(order):
        made.get(section.key, made["others"]).append(markdown_blocks(section.blocks(2)))
    page = files("symdp.page").joinpath("derivation_page.md").read_text(encoding="utf-8")
    return Template(page).substitute(
        {name: "\n\n".join(parts) for name, parts in made.items()},
        title=d.mechanism.title or f"The mechanism {d.mechanism.name}",
        description=d.mechanism.description or _DESCRIBED,
        source=source,
        direction=d.direction,
        values=repr(dict(_drawn(d)) | dict(values)),
        steps=markdown_blocks(step_log(d).blocks(2)),
        count=_COUNT,
    )


def _drawn(d: Derivation) -> Iterator[tuple[str, str]]:
    """Yield the free parameters, each with an exact number inside its domain."""
    drawn = random_values(d.mechanism.parameters.values(), 1, d.below_one)
    names: dict[sp.Symbol, str] = {s: name for name, s in d.mechanism.parameters.items()}
    yield from ((names[symbol], str(value)) for symbol, value in drawn.items())
