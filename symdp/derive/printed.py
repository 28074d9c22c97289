"""What has pages: `symdp.page` stands above this room and makes them when they are asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy as sp

from symdp.above import above
from symdp.derive.orders import check_order
from symdp.errors import suggestion

if TYPE_CHECKING:
    from symdp.derive.privacy_loss import PrivacyLoss
    from symdp.model.mechanism import Mechanism

WIDTH = 100  # columns of a text, which fit a terminal and a page
_BRIEF = 98  # columns of a line of three that stand for a derivation
_DIGITS = 12  # shown of a long number
_LONG_RATIO = 60  # characters of a ratio that nobody reads
_MOST_BITS = 1000  # of numerator and denominator: far more characters than that


class Derivation:
    """What `symdp.derive` finds: sections of formulas, with a text, LaTeX, MathML, HTML and JSON.

    What is in it depends on the mechanism: of a pair all of `PairDerivation`, of an epoch its
    transform, of noise on vectors its loss at two distances, of a local randomizer what its laws
    have in common; where the order of parameters decides, `cases`. A part that it has not is an
    AttributeError that says so.
    """

    mechanism: Mechanism
    direction: str

    @property
    def headline(self) -> str:
        """What was derived, in one line."""
        return f"{self.mechanism!r}, {self.direction} direction"

    @property
    def cases(self) -> tuple[Derivation, ...]:
        """One derivation for each order of the parameters; itself where one order holds."""
        return (self,)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(self._without(name))

    def _without(self, name: str) -> str:
        """Return that a part is not there, and what is called nearly the same."""
        parts = [part for part in dir(type(self)) if not part.startswith("_")]
        return f"a {type(self).__name__} has no {name!r:.40}{suggestion(name, parts)}"

    def sections(self, order: int = 2) -> list[Any]:
        """Return the sections, expansions up to `order`, each with its legend."""
        check_order(order, 0)
        if order not in self._made:
            self._made[order] = above("pages").sections(self, order)
        return list(self._made[order])

    @cached_property
    def _made(self) -> dict[int, list[Any]]:
        return {}

    def show(self, *only: str, order: int = 2) -> str:
        """Return sections as text, such as "series" or "cumulants".

        >>> import symdp
        >>> shown = symdp.derive(symdp.mechanisms.gaussian).show("composed")
        >>> print(shown.splitlines()[1])
          δ(ε) = Φ((n − 2εσ²)/(2σ√n)) − e^εΦ(−(2εσ² + n)/(2σ√n))
        """
        return str(above("pages").to_text(self, order, only, WIDTH, headline=False))

    def plot(self, ax: Any = None) -> Any:
        """Draw the mechanism into four Matplotlib axes and return them, see `Mechanism.plot`."""
        return above("figures").mechanism_axes(self.mechanism, ax)

    def to_text(
        self,
        order: int | None = None,
        only: tuple[str, ...] = (),
        width: int = WIDTH,
        ascii_only: bool = False,
        whole: bool = False,
    ) -> str:
        """Return the derivation as text of `width` columns.

        `whole`, or an `order`, adds the series that are the same for every mechanism, up to that
        order, 2 if left out; `only` takes sections, and formulas by the names they begin with, such
        as "K".
        """
        terms, whole = printed_orders(order, whole)
        text = above("pages").to_text(self, terms, only, width, ascii_only, whole=whole)
        return str(text)

    def to_latex(
        self, order: int | None = None, only: tuple[str, ...] = (), whole: bool = False
    ) -> str:
        """Return the derivation as LaTeX: for each section a heading and one align (amsmath).

        Of formulas that are asked for by name it is that align alone.
        """
        terms, whole = printed_orders(order, whole)
        return str(above("pages").to_latex(self, terms, only, whole))

    def to_mathml(
        self, order: int | None = None, only: tuple[str, ...] = (), whole: bool = False
    ) -> str:
        """Return the formulas as MathML elements, one a line."""
        terms, whole = printed_orders(order, whole)
        return str(above("pages").to_mathml(self, terms, only, whole))

    def to_json(self, order: int = 2) -> dict[str, Any]:
        """Return the derivation as JSON-ready data."""
        document: dict[str, Any] = above("json").to_json(self, order)
        return document

    def to_program(self, language: str) -> str:
        """Return a file that accounts for the mechanism without symdp.

        It has log_delta, delta, epsilon and curve of n steps, in double precision; parameters
        without value are arguments, of which it takes the case that holds. By the contour integral
        they are accurate to about 1e-12. Where that dies out too slowly, as with two to some dozens
        of steps of noise with kinks, or atoms off any lattice, a grid above the true law and one
        below it enclose the answer: the upper end is given, and log_delta_ends and epsilon_ends
        give both.

        Parameters
        ----------
        language : {"python", "c", "javascript"}

        Raises
        ------
        InputError
            For another language, or what has no pair on a line and so no program.

        Examples
        --------
        >>> import symdp
        >>> d = symdp.derive(symdp.mechanisms.gaussian)
        >>> "def epsilon(delta: float" in d.to_program("python")
        True
        >>> "*gaussian_epsilon(double delta" in d.to_program("c")
        True
        >>> "export function curve" in d.to_program("javascript")
        True
        """
        return str(above("programs").to_program(self, language))

    def _repr_latex_(self) -> str:
        return str(above("pages").notebook_latex(self))

    def _repr_html_(self) -> str:
        return str(above("pages").notebook_html(self))


def printed_orders(order: int | None, whole: bool) -> tuple[int, bool]:
    """Return up to which order, and whether the general series are asked for."""
    if order is None:
        return (2, whole)
    return (order, True)


def in_brief(d: PrivacyLoss) -> str:
    """Return three lines: what was derived, the loss, and K if it was asked for already."""
    loss = f"  ell({d.variable}) = {plain(d.loss)}"
    last = "  K(t): ask for .cgf"
    if "cgf" in vars(d):
        form = d.cgf.expression
        last = f"  K({d.cgf.tilt}) = {d.cgf.form if form is None else plain(form)}"
    first = f"<Derivation of {d.mechanism.summary}, {d.direction} direction"
    return "\n".join([first, *(_abbreviated(line) for line in (loss, last))]) + ">"


def plain(expression: sp.Basic) -> str:
    """Return an expression as SymPy's text; long rationals are rounded."""
    return str(rounded(expression))


def rounded(expression: sp.Basic) -> sp.Basic:
    """Return an expression with short decimals for the long rationals of irrational places."""
    return expression.xreplace(
        {
            number: number.evalf(_DIGITS)
            for number in expression.atoms(sp.Rational)
            if _is_long(number)
        }
    )


def _is_long(number: sp.Rational) -> bool:
    """Whether nobody reads a ratio; Python prints no number of more than 4300 digits."""
    bits = int(number.p).bit_length() + int(number.q).bit_length()
    return bits > _MOST_BITS or len(str(number)) > _LONG_RATIO


def _abbreviated(line: str) -> str:
    if len(line) < _BRIEF:
        return line
    return f"{line[: _BRIEF - 1]}…"


# What the dominating pair of a sampling scheme rests on.
_SCHEMES = {
    "poisson": ("SPA Lemma 3", "IND Lemma 8"),
    "without_replacement": ("BBG Thm 8", "ZDW"),
    "with_replacement": ("BBG Thm 10", "ZDW"),
    "truncated_poisson": ("ZDW",),
    "random_allocation": ("FS", "BB"),
}


def citations(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the sources of a derivation: its mechanism, its sampling, the two expansions."""
    sources = (mechanism.citation,) if mechanism.citation else ()
    scheme = _SCHEMES[mechanism.sampling.scheme] if mechanism.sampling else ()
    return (*sources, *scheme, "SPA (28)", "SPA (59)", "EA Prop 3.2")
