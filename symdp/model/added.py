"""What people ask of a mechanism, and `symdp.questions` answers, from above."""

from __future__ import annotations

from typing import Any

from symdp.above import above


class Added:
    """The noise that it adds, which sampling does not change; and a release beside others."""

    @property
    def mean(self) -> float:
        """The mean of the noise, enclosed by balls to a double's accuracy."""
        return float(above("noise").moment(self, "mean"))

    @property
    def std(self) -> float:
        """The standard deviation of the noise; AccuracyError where none is found."""
        return float(above("noise").moment(self, "std"))

    @property
    def mean_abs(self) -> float:
        """E|X − EX| of the noise."""
        return float(above("noise").moment(self, "mean_abs"))

    def quantile(self, p: Any) -> Any:
        """Return the least x with P(noise ≤ x) ≥ p, see `symdp.questions.noise.quantile`.

        >>> from symdp import mechanisms
        >>> print(f"{mechanisms.laplace(b=3).quantile(0.75):.12f}")
        2.079441541680
        """
        return above("noise").quantile(self, p)

    def sample(self, size: int, rng: Any = None) -> Any:
        """Return values of the noise for simulations, see `symdp.questions.noise.sample`."""
        return above("noise").sample(self, size, rng)

    def plot(self) -> Any:
        """Draw density and shift, loss, K and trade-off; return the Matplotlib figure."""
        return above("figures").mechanism_figure(self)

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
