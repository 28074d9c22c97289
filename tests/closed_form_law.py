"""Total losses with the numbers of a `SumLaw`, computed from closed forms at high precision.

Independent of the package's own quadrature: mpmath evaluates and differentiates closed-form CGFs,
and the subsampled Gaussian, which has none, is summed on a fine uniform grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import mpmath as mp
import numpy as np

DIGITS = 40


class ClosedFormLaw:
    """n copies of a loss whose one-step moment generating function is known in closed form."""

    uncertain_mass = 0.0

    def __init__(
        self,
        moment: Callable[[mp.mpc], mp.mpc],
        count: int,
        *,
        bounds: tuple[float, float] = (-math.inf, math.inf),
        domain: tuple[float, float] = (-math.inf, math.inf),
        mass_at_infinity: float = 0.0,
        is_lattice: bool = False,
        has_atoms: bool = False,
    ) -> None:
        self.moment = moment
        self.count = count
        self.domain = domain
        self.loss_bounds = (count * bounds[0], count * bounds[1])
        self.precise_top = None
        self.parts = ()
        self.mass_at_infinity = mass_at_infinity
        self.is_lattice = is_lattice
        self.has_atoms = has_atoms or is_lattice
        self.cumulants = lru_cache(maxsize=4096)(self._cumulants)

    @property
    def log_mass_at_infinity(self) -> float:
        return math.log(self.mass_at_infinity) if self.mass_at_infinity else -math.inf

    def exact_cgf(self, z: mp.mpc) -> mp.mpc:
        return self.count * mp.log(self.moment(z))

    def cgf(self, tilt: float) -> float:
        with mp.workdps(DIGITS):
            return float(mp.re(self.exact_cgf(mp.mpf(tilt))))

    @property
    def log_finite_mass(self) -> float:
        return self.cgf(0.0)

    def log_transform(self, tilts: np.ndarray, epsilon: float) -> np.ndarray:
        with mp.workdps(DIGITS):
            values = [self.exact_cgf(mp.mpf(t)) - mp.mpf(t) * mp.mpf(epsilon) for t in tilts]
            return np.array([float(mp.re(v)) for v in values])

    def drift(self, epsilon: float) -> float:
        with mp.workdps(DIGITS):
            return float(self.exact_cumulants(mp.mpf(0), 1)[0] - mp.mpf(epsilon))

    def exact_cumulants(self, tilt: mp.mpf, order: int) -> list[mp.mpf]:
        moments = mp.taylor(self.moment, mp.mpf(tilt), order)
        scaled = [m / moments[0] for m in moments]
        series = [mp.mpf(0)]
        for k in range(1, order + 1):  # the logarithm of a power series
            lower = mp.fsum(j * series[j] * scaled[k - j] for j in range(1, k))
            series.append(scaled[k] - lower / k)
        return [self.count * mp.factorial(k) * series[k] for k in range(1, order + 1)]

    def tried_cumulants(self, tilt: float, order: int, accuracy: float) -> np.ndarray:
        return self.cumulants(tilt, order)

    def _cumulants(self, tilt: float, order: int) -> np.ndarray:
        with mp.workdps(DIGITS):
            return np.array([float(c) for c in self.exact_cumulants(tilt, order)])

    def cgf_line(self, tilt: float, y: np.ndarray) -> np.ndarray:
        with mp.workdps(DIGITS):
            base = self.moment(mp.mpf(tilt))
            return np.array(
                [
                    self.count * complex(mp.log(self.moment(mp.mpc(tilt, v)) / base))
                    for v in np.asarray(y, dtype=float)
                ]
            )


class SubsampledGaussianLaw:
    """n Poisson-subsampled Gaussian steps, remove direction, on a uniform grid of x."""

    uncertain_mass = 0.0

    domain = (-math.inf, math.inf)
    mass_at_infinity = 0.0
    log_mass_at_infinity = -math.inf
    is_lattice = False
    has_atoms = False

    def __init__(self, rate: float, sigma: float, count: int, nodes: int = 800) -> None:
        self.rate, self.sigma, self.count, self.size = rate, sigma, count, nodes
        self.loss_bounds = (count * math.log1p(-rate), math.inf)
        self.precise_top = None

    def _grid(self, tilt: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return losses, base weights q(x)dx and tilted, normalised weights."""
        reach = 10.0 * self.sigma
        # the loss is flat far to the left, so that no tilt moves the mass there
        low, high = -reach - 5.0, max(0.0, 1.0 + tilt) + reach
        x = np.linspace(low, high, self.size)
        variance = self.sigma**2
        with np.errstate(over="ignore"):
            grown = self.rate * np.expm1((2 * x - 1) / (2 * variance))
        loss = np.log1p(grown)
        base = np.exp(-x * x / (2 * variance))
        base /= base.sum()
        exponent = (1 + tilt) * loss - x * x / (2 * variance)
        weight = np.exp(exponent - exponent.max())
        return loss, base, weight / weight.sum()

    def tried_cumulants(self, tilt: float, order: int, accuracy: float) -> np.ndarray:
        return self.cumulants(tilt, order)

    def cgf(self, tilt: float) -> float:
        loss, base, _ = self._grid(tilt)
        scaled = (1 + tilt) * loss
        if scaled.max() < 600:
            return self.count * math.log1p(float(base @ np.expm1(scaled)))
        exponent = scaled + np.log(np.maximum(base, 1e-320))
        top = exponent.max()
        return self.count * (top + math.log(np.exp(exponent - top).sum()))

    def cumulants(self, tilt: float, order: int) -> np.ndarray:
        loss, _, weight = self._grid(tilt)
        mean = float(weight @ loss)
        moments = [1.0, 0.0]
        moments += [float(weight @ (loss - mean) ** j) for j in range(2, order + 1)]
        values = [0.0, mean]
        for j in range(2, order + 1):
            lower = sum(
                math.comb(j - 1, i - 1) * values[i] * moments[j - i] for i in range(2, j - 1)
            )
            values.append(moments[j] - lower)
        return self.count * np.array(values[1 : order + 1])

    def cgf_line(self, tilt: float, y: np.ndarray) -> np.ndarray:
        loss, _, weight = self._grid(tilt)
        mean = float(weight @ loss)
        phase = 1j * np.multiply.outer(np.asarray(y, dtype=float), loss - mean)
        return self.count * (np.log1p(np.expm1(phase) @ weight) + 1j * np.asarray(y) * mean)


def gaussian(mu: float, count: int = 1) -> ClosedFormLaw:
    """Gaussian mechanism of sensitivity/σ = μ: L ~ N(μ²/2, μ²)."""
    square = mp.mpf(mu) ** 2
    return ClosedFormLaw(lambda z: mp.exp(z * (z + 1) * square / 2), count)


def logistic(mu: float, count: int = 1) -> ClosedFormLaw:
    """Logistic noise of unit scale: the loss, tilted to −1/2, is uniform on (−μ, μ)."""
    width = mp.mpf(mu)

    def moment(z: mp.mpc) -> mp.mpc:
        return (mp.sinh((z + 0.5) * width) / (2 * z + 1) if z != -0.5 else width / 2) / mp.sinh(
            width / 2
        )

    return ClosedFormLaw(moment, count, bounds=(-mu, mu))


def exponential(rate: float, count: int = 1) -> ClosedFormLaw:
    """P exponential of rate a > 1, Q of rate 1: a skewed loss log a − (a − 1)x."""
    a = mp.mpf(rate)
    return ClosedFormLaw(
        lambda z: a ** (1 + z) / (a + (a - 1) * z),
        count,
        bounds=(-math.inf, math.log(rate)),
        domain=(-rate / (rate - 1), math.inf),
    )


def laplace(mu: float, count: int = 1) -> ClosedFormLaw:
    """Laplace noise of unit scale: atoms at ±μ and a density between them."""
    width = mp.mpf(mu)

    def moment(z: mp.mpc) -> mp.mpc:
        between = (
            (mp.exp(z * width) - mp.exp(-(1 + z) * width)) / (2 * z + 1)
            if z != -0.5
            else width * mp.exp(-width / 2)
        )
        return (mp.exp(z * width) + mp.exp(-(1 + z) * width) + between) / 2

    return ClosedFormLaw(moment, count, bounds=(-mu, mu), has_atoms=True)


def randomized_response(loss: float, count: int = 1, escape: float = 0.0) -> ClosedFormLaw:
    """Two losses ±c, and with probability `escape` an output that Q never has."""
    c = mp.mpf(loss)
    stay = 1 - mp.mpf(escape)

    def moment(z: mp.mpc) -> mp.mpc:
        return stay * (mp.exp(z * c) + mp.exp(-(1 + z) * c)) / (1 + mp.exp(-c))

    return ClosedFormLaw(
        moment,
        count,
        bounds=(-loss, loss),
        mass_at_infinity=float(1 - stay**count),
        is_lattice=True,
    )


def contour_log_delta(law: ClosedFormLaw, epsilon: float, tilt: float, digits: int = 40) -> mp.mpf:
    """Return log |I| on Re z = tilt by the trapezoidal rule at high precision.

    The rule's error is a sum of terms of one sign; halving the step until two results agree to
    `digits` − 8 digits leaves it far below anything tested.
    """
    with mp.workdps(digits + 10 + len(str(law.count))):  # n copies multiply every rounding by n
        t, eps = mp.mpf(tilt), mp.mpf(epsilon)
        top = mp.re(law.exact_cgf(t)) - eps * t

        # longer than any gap between two lobes of φ, which count only where n is small
        width = 1 / mp.sqrt(law.exact_cumulants(t, 2)[1])
        gap = 8 if law.count < 300 else 6 * width

        def term(y: mp.mpf) -> mp.mpf:
            z = mp.mpc(t, y)
            ratio = (law.moment(z) / law.moment(t)) ** law.count
            return mp.re(ratio * mp.exp(-1j * eps * y) / (z * (1 + z)))

        def line(step: mp.mpf, offset: mp.mpf) -> mp.mpf:
            total, k, quiet = mp.mpf(0), 0, 0
            while quiet * step < gap:
                value = term(offset + k * step)
                total += value / 2 if offset == 0 and k == 0 else value
                quiet = quiet + 1 if abs(value) < abs(total) * mp.mpf(10) ** (-digits) else 0
                k += 1
            return total

        step = min(mp.mpf(1) / 8, width)
        whole = line(step, mp.mpf(0))
        previous = step * whole
        while True:
            whole += line(step, step / 2)
            step /= 2
            value = step * whole
            if abs(value - previous) < abs(value) * mp.mpf(10) ** (8 - digits):
                return top + mp.log(abs(value) / mp.pi)
            previous = value
