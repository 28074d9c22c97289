"""The faces of a derivation: what it can be written as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from symdp.derive.derivation import Derivation


class Shown:
    """Methods of a `Derivation` that write it out, for people, programs and notebooks."""

    def _derivation(self) -> Derivation:
        return cast("Derivation", self)

    def to_text(self, order: int = 2) -> str:
        """Return the derivation as plain text, expansions up to `order`."""
        from symdp.derive.present import to_text

        return to_text(self._derivation(), order)

    def to_latex(self, order: int = 2) -> str:
        """Return the derivation as LaTeX, an aligned display."""
        from symdp.derive.present import to_latex

        return to_latex(self._derivation(), order)

    def to_mathml(self, order: int = 2) -> str:
        """Return the derivation as MathML, one formula a line."""
        from symdp.derive.present import to_mathml

        return to_mathml(self._derivation(), order)

    def to_python(self, order: int = 2) -> str:
        """Return a Python module that accounts for this mechanism alone."""
        from symdp.law.standalone import to_python

        return to_python(self._derivation(), order)

    def to_c(self, order: int = 2) -> str:
        """Return a C file that accounts for this mechanism alone (`symdp.law.standalone`)."""
        from symdp.law.standalone import to_c

        return to_c(self._derivation(), order)

    def to_json(self, order: int = 2) -> dict[str, Any]:
        """Return the derivation as JSON-ready data, which `derive.present.from_json` reads."""
        from symdp.derive.present import to_json

        return to_json(self._derivation(), order)

    def citation(self) -> str:
        """Return BibTeX entries of what the derivation rests on.

        Examples
        --------
        >>> import symdp
        >>> print(symdp.derive(symdp.mechanisms.logistic).citation().splitlines()[0])
        @misc{alghamdi2022saddlepoint,
        """
        from symdp.citation import bibtex
        from symdp.derive.present import citations

        return bibtex(citations(self._derivation()))

    def _repr_latex_(self) -> str:
        return f"$$\n{self.to_latex(order=1)}\n$$"

    def _repr_html_(self) -> str:
        from symdp.derive.present import to_html

        return to_html(self._derivation(), 1)
