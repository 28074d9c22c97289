"""What a mechanism has from rooms and files above it: what its noise is like, and makers by curves.

They are loaded when they are first asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from symdp.above import above
from symdp.errors import suggestion

if TYPE_CHECKING:
    import sympy as sp

    from symdp.model.sampling import Number


_ANSWERED = (  # by a composition
    "bayes_error", "certify", "certify_epsilon", "check_claim", "delta", "epsilon",
    "gaussian_privacy", "gradient", "law", "membership_advantage", "renyi", "selection",
    "trade_off", "zcdp",
)  # fmt: skip
_MEANT = dict.fromkeys(_ANSWERED, "compose it: symdp.compose(mechanism, n).{}(…)") | {
    "compose": "it is a function: symdp.compose(mechanism, n)",
    "derive": "it is a function: symdp.derive(mechanism)",
    "group": "a group of k records moves the output k times as far: mechanism.moved_by(k*D), D its "
    "sensitivity; or mechanism.subsample(…, group=k)",
    "cdf": "its noise has mean, std, quantile(p) and sample(size)",
}


class FromAbove:
    """Moments, quantiles and values of the noise, which sampling does not change; and makers."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            meant = _MEANT.get(name)
            if meant is None:
                hint = suggestion(name, dir(type(self))) if not name.startswith("_") else ""
                raise AttributeError(f"a mechanism has no {name!r:.40}{hint}")
            raise AttributeError(f"a mechanism has no {name}; {meant.format(name)}")

    @property
    def mean(self) -> float:
        """The mean of the noise, enclosed by balls to a double's accuracy."""
        return float(above("noise").moment(self, "mean"))

    @property
    def std(self) -> float:
        """The standard deviation of the noise, on vectors that of a coordinate.

        AccuracyError where none is found.
        """
        return float(above("noise").moment(self, "std"))

    @property
    def mean_abs(self) -> float:
        """E|X − EX| of the noise, on vectors that of a coordinate."""
        return float(above("noise").moment(self, "mean_abs"))

    def quantile(self, p: Any) -> Any:
        """Return the least x with P(noise ≤ x) ≥ p, an array of them for an array.

        It is asked of additive noise on the line or on integers, with all its values.

        Parameters
        ----------
        p : from 1e-30 to below 1; x is where a p that differs by 1e-12, relatively, is reached

        Raises
        ------
        InputError : no noise of a density, a parameter without a value, or p out of range.
        AccuracyError : a density whose mass quadrature does not find.

        Examples
        --------
        >>> from symdp import mechanisms
        >>> print(f"{mechanisms.laplace(b=3).quantile(0.75):.12f}")
        2.079441541680
        """
        return above("noise").quantile(self, p)

    def sample(self, size: int, rng: Any = None) -> Any:
        """Return independent values of the noise, for simulations and figures.

        No release may use them: the rounding of doubles tells of what they are added to. Noise on
        the integers has whole numbers, of NumPy's int64 where all of them fit; noise on vectors
        has a row for each vector.

        Parameters
        ----------
        size : how many
        rng : a NumPy generator, or the seed of one

        Raises
        ------
        As `quantile`.

        Examples
        --------
        >>> from symdp import mechanisms
        >>> mechanisms.discrete_laplace(b=2).sample(4, rng=1).tolist()
        [0, 5, -2, 4]
        """
        return above("noise").sample(self, size, rng)

    def _repr_latex_(self) -> str:
        return str(above("pages").mechanism_latex(self))

    def plot(self, ax: Any = None) -> Any:
        """Draw density and shift, loss, K and trade-off into four Matplotlib axes; return them.

        `ax` is an array of axes, as of `pyplot.subplots(2, 2)`; those of a new figure if left out.
        """
        return above("figures").mechanism_axes(self, ax)

    def together(self, *others: Any) -> Any:
        """Return this and other releases as one step, for which one sample of records is drawn.

        Parameters
        ----------
        others : mechanisms with all their values, without sampling; or pairs of one and its count

        Raises
        ------
        InputError : a step that has a sample of its own, or no pair of laws.

        >>> from symdp import mechanisms
        >>> mean, count = mechanisms.gaussian(sigma=8), mechanisms.gaussian(sigma=4)
        >>> mean.together((count, 2)).subsample("poisson", "1/100").summary
        'gaussian together(), poisson sampling at rate 1/100'
        """
        return above("together").together([self, *others])

    @classmethod
    def from_toml(cls, text: str, source: str = "text") -> Self:
        """Read a mechanism from TOML text; `source` stands in the error messages.

        Raises
        ------
        InputError : the text describes no mechanism.

        Examples
        --------
        >>> from symdp import Mechanism
        >>> Mechanism.from_toml('''
        ... name = "exponential"
        ... variable = "x"
        ... support = [0, "oo"]
        ... [parameters]
        ... b = "positive"
        ... [noise]
        ... density = "exp(-x/b)/b"
        ... ''')
        <Mechanism exponential(b)>
        """
        mechanism: Self = above("files").loads(text, source)
        return mechanism

    @classmethod
    def from_trade_off(
        cls,
        f: sp.Expr,
        variable: sp.Symbol,
        name: str = "trade_off",
        *,
        parameters: Mapping[str, str] | None = None,
    ) -> Self:
        """Return the mechanism whose trade-off function is a formula.

        Parameters
        ----------
        f : the least miss rate at false alarm rate α, for 0 ≤ α ≤ 1; other symbols are parameters
        variable : α
        parameters : name -> domain word, as for `Mechanism.additive`

        Raises
        ------
        InputError : f(1) is not 0, or f is found to rise, to be concave, or to lie above 1 − α.

        Examples
        --------
        >>> import sympy as sp
        >>> from symdp import Mechanism
        >>> a = sp.Symbol("a")
        >>> Mechanism.from_trade_off((1 - sp.sqrt(a))**2, a).source.Q
        exp(-a_s)
        """
        mechanism: Self = above("curves").from_trade_off(f, variable, name, parameters=parameters)
        return mechanism

    @classmethod
    def from_trade_off_points(
        cls, points: Iterable[Iterable[Number]], between: str = "unknown", name: str = "trade_off"
    ) -> Self:
        """Return a pair that dominates every step whose trade-off function a table describes.

        Parameters
        ----------
        points : (α, β), α rising: false alarm rates and least miss rates, ratios in [0, 1]
        between : what is known between the points. "unknown": β is a lower bound at α, no more;
            "convex": β is the value at α; "lines": it is straight from point to point

        Raises
        ------
        InputError : fewer than two points, points out of order, a rate that is no probability,
            a β that rises, or lies above 1 − α; a corner that bends the wrong way, unless
            "unknown".

        Examples
        --------
        >>> from symdp import Mechanism
        >>> Mechanism.from_trade_off_points([(0, 1), ("1/4", "1/4"), (1, 0)], "lines").pair().P
        (3/4, 1/4)
        """
        mechanism: Self = above("curves").from_trade_off_points(points, between, name)
        return mechanism

    @classmethod
    def from_profile(
        cls,
        delta: sp.Expr,
        variable: sp.Symbol,
        support: object,
        name: str = "profile",
        *,
        parameters: Mapping[str, str] | None = None,
    ) -> Self:
        """Return the mechanism whose privacy profile is a formula.

        Parameters
        ----------
        delta : δ(ε) of one direction on the range of the loss, without atoms
        variable : ε
        support : (least, most) loss, where δ must come down to 0
        parameters : name -> domain word, as for `Mechanism.additive`

        Raises
        ------
        InputError : δ is not 0 at the largest loss.

        Examples
        --------
        >>> import sympy as sp
        >>> from symdp import Mechanism
        >>> e = sp.Symbol("e")
        >>> Mechanism.from_profile(1 / (1 + sp.exp(e)), e, (-sp.oo, sp.oo))
        <Mechanism profile()>
        """
        mechanism: Self = above("curves").from_profile(
            delta, variable, support, name, parameters=parameters
        )
        return mechanism

    @classmethod
    def from_profile_points(
        cls, points: Iterable[Iterable[Number]], *, both: bool = True, name: str = "profile"
    ) -> Self:
        """Return a pair that dominates every step with a list of guarantees (ε, δ).

        The profile is convex in e^ε and does not rise, so that it lies below the lower convex hull
        of the points, continued by a constant. One point is the box of Kairouz, Oh and Viswanath.

        Parameters
        ----------
        points : (ε, δ), ε rising from −500 to 500, each a guarantee of the step
        both : whether they hold in both directions, as guarantees of differential privacy do; then
            δ(−ε) ≤ 1 − e^{−ε} + e^{−ε}δ bounds the other side

        Raises
        ------
        InputError : no points, points out of order, a δ that is no probability, rises with ε, or
            lies below 1 − e^ε.

        Examples
        --------
        >>> from symdp import Mechanism
        >>> box = Mechanism.from_profile_points([(0, "1/3")]).pair()
        >>> box.P, box.Q
        ((1/3, 0, 2/3), (0, 1/3, 2/3))
        """
        mechanism: Self = above("curves").from_profile_points(points, both=both, name=name)
        return mechanism

    @classmethod
    def from_renyi(
        cls,
        divergence: sp.Expr,
        variable: sp.Symbol | str = "alpha",
        name: str = "renyi",
        *,
        parameters: Mapping[str, str] | None = None,
    ) -> Self:
        """Return the step whose Rényi divergence of order α > 1 is at most a formula of α.

        Parameters
        ----------
        divergence : D_α, a SymPy expression; symbols besides α are parameters
        variable : α
        parameters : name -> domain word, as for `Mechanism.additive`

        Raises
        ------
        InputError : no formula of α, or one that is negative or no number at some order.

        Examples
        --------
        >>> import sympy as sp
        >>> from symdp import Mechanism
        >>> Mechanism.from_renyi(sp.Symbol("alpha") / 8, name="step")
        <Mechanism step()>
        """
        mechanism: Self = above("curves").from_renyi(
            divergence, variable, name, parameters=parameters
        )
        return mechanism

    @classmethod
    def from_renyi_points(
        cls, points: Mapping[Number, Number] | Iterable[Iterable[Number]], name: str = "renyi"
    ) -> Self:
        """Return the step whose Rényi divergence is bounded at some orders.

        Parameters
        ----------
        points : order α > 1 -> D_α, or pairs of them, orders rising, as accountants print them

        Raises
        ------
        InputError : no orders, one not above 1 or out of turn, a divergence that is negative or
            falls.

        Examples
        --------
        >>> from symdp import Mechanism
        >>> Mechanism.from_renyi_points({2: "1/4", 4: 0.5})
        <Mechanism renyi()>
        """
        mechanism: Self = above("curves").from_renyi_points(points, name)
        return mechanism

    @classmethod
    def from_shuffled(cls, epsilon_0: Number, people: int, clones: Number | None = None) -> Self:
        """Return a pair that dominates the shuffled answers of one ε₀-private randomizer.

        Protected is one person's value. The pair reads the same in both directions, and rounds may
        be chosen adaptively. It is an upper bound: its ε lies about a percent above that of the
        clones.

        Parameters
        ----------
        epsilon_0 : local privacy of the randomizer, above 0 and up to 20
        people : how many answer, the person in question among them; 2 to 10⁸
        clones : the probability that another person's answer is a clone. Left out, e^{−ε₀}, which
            holds for every randomizer; 2/(1 + e^{ε₀}), the most, for randomized response of one bit

        Raises
        ------
        InputError : a number outside its range.

        Examples
        --------
        >>> from symdp import Mechanism, compose
        >>> compose(Mechanism.from_shuffled(1, 1000)).delta(0.2).delta < 1e-5
        True
        """
        mechanism: Self = above("clones").from_shuffled(epsilon_0, people, clones)
        return mechanism
