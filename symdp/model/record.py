"""What a mechanism is made of: what its rules, its texts and its pairs are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import sympy as sp

from symdp.arguments import AT_MOST
from symdp.model.pair import Support
from symdp.model.sampling import Noise, Parameter, Radial, Source
from symdp.model.schemes import Sampling


@dataclass(frozen=True, eq=False, repr=False)
class MechanismRecord:
    """The parts of a mechanism, see `symdp.Mechanism`."""

    name: str
    variable: sp.Symbol
    support: Support
    source: Source
    declared: tuple[Parameter, ...]
    bound: tuple[tuple[str, sp.Expr], ...] = ()
    sampling: Sampling | None = None
    relation: str | None = None
    title: str = ""
    description: str = ""
    citation: str = ""
    protects: str = ""
    dominates: str = ""
    template: Self | None = None
    shift: str = AT_MOST

    @property
    def values(self) -> dict[str, sp.Expr]:
        """The bound values, exact."""
        return dict(self.bound)

    @property
    def parameters(self) -> dict[str, sp.Symbol]:
        """The free parameters; a bound one is no longer here."""
        return {p.name: p.symbol for p in self.declared if p.name not in self.values}

    @property
    def is_concrete(self) -> bool:
        """Whether every parameter has its value."""
        return len(self.bound) == len(self.declared)

    @property
    def is_given(self) -> bool:
        """Whether two laws or a Rényi curve were given instead of noise."""
        return not isinstance(self.source, Noise | Radial)

    @property
    def group(self) -> int:
        """How many records are protected together."""
        return 1 if self.sampling is None else self.sampling.group
