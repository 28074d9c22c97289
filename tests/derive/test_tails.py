"""Tail constants: valid against quadrature that knows nothing of them, and not absurdly loose."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
import sympy as sp
from flint import arb

import symdp
from symdp.derive import derive
from symdp.derive.records import COUNT, EPSILON
from symdp.derive.tails.constants import _power_of_loss, _squares
from symdp.derive.tails.van_der_corput import _unimodal
from symdp.errors import AccuracyError, InputError
from symdp.model.mechanism import Mechanism

R = sp.Rational
X = sp.Symbol("x", real=True)
BUILT = symdp.mechanisms


def normal(at: sp.Expr, sigma: sp.Expr = sp.S.One) -> sp.Expr:
    return sp.exp(-(at**2) / (2 * sigma**2)) / (sigma * sp.sqrt(2 * sp.pi))


def two_variances() -> Mechanism:
    return Mechanism.from_pair(normal(X), normal(X, sp.Integer(2)), X, name="two variances")


def mixture() -> Mechanism:
    noise = R(3, 4) * normal(X) + R(1, 4) * normal(X, sp.Integer(3))
    return Mechanism.additive(noise, X, name="mixture of normals")


def truncated() -> Mechanism:
    one = sp.S.One
    rising = 2 * sp.exp(2 * X) / (sp.exp(2 * one) - 1)
    falling = sp.exp(-X) / (1 - sp.exp(-one))
    return Mechanism.from_pair(rising, falling, X, support=(0, 1), name="truncated")


def one_sided() -> Mechanism:
    return Mechanism.from_pair(
        2 * sp.exp(-2 * X), sp.exp(-X) * X / 2 + sp.exp(-X) / 2, X, support=(0, sp.oo),
        name="one-sided",
    )  # fmt: skip


# name -> mechanism, and the range of x outside of which nothing of it is left
CASES: dict[str, tuple[Callable[[], Mechanism], tuple[float, float]]] = {
    "gaussian": (lambda: BUILT.gaussian(sigma=R(3, 2)), (-25, 30)),
    "subsampled gaussian": (
        lambda: BUILT.gaussian(sigma=R(3, 2)).subsample("poisson", R(1, 20)), (-20, 25),
    ),
    "fixed batches": (
        lambda: BUILT.gaussian(sigma=1).under("substitution").subsample("poisson", R(1, 10)),
        (-16, 18),
    ),
    "laplace": (lambda: BUILT.laplace(b=2), (-70, 70)),
    "subsampled laplace": (
        lambda: BUILT.laplace(b=1).subsample("poisson", R(1, 10)), (-36, 36),
    ),
    "logistic": (lambda: BUILT.logistic(s=1), (-36, 38)),
    "gumbel": (lambda: BUILT.gumbel(b=2), (-10, 70)),
    "student t": (lambda: BUILT.student_t(nu=7, s=1), (-60, 60)),
    "mixture": (mixture, (-36, 38)),
    "two variances": (two_variances, (-22, 22)),
    "truncated": (truncated, (0, 1)),
    "one-sided": (one_sided, (0, 40)),
}  # fmt: skip
TILTS = (R(-1, 2), R(1, 2), R(2))
FREQUENCIES = (0.5, 2.0, 8.0, 30.0, 120.0)
TURNING = {"student t", "mixture", "two variances"}
SMOOTH = {"gaussian", "subsampled gaussian", "fixed batches"}


@cache
def derivation(name: str):
    return derive(CASES[name][0]())


@cache
def grid(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes' weights under P and losses, straight from P and Q; kinks at 0 and 1 end panels."""
    pair = derivation(name).pair
    low, high = CASES[name][1]
    edges = np.unique(np.concatenate([np.linspace(low, high, 2001), [0.0, 0.5, 1.0, -1.0]]))
    edges = edges[(edges >= low) & (edges <= high)]
    nodes, weights = np.polynomial.legendre.leggauss(10)
    half = np.diff(edges)[:, None] / 2
    x = ((edges[:-1] + edges[1:])[:, None] / 2 + half * nodes).ravel()
    p, q = (sp.lambdify(pair.variable, law, "numpy")(x) for law in (pair.P, pair.Q))
    keep = (p > 0) & (q > 0)
    return (half * weights).ravel()[keep] * p[keep], np.log(p[keep] / q[keep]), x[keep]


def tilted(name: str, tilt: float) -> tuple[np.ndarray, np.ndarray]:
    mass, loss, _ = grid(name)
    weight = mass * np.exp(tilt * loss)
    return weight / weight.sum(), loss


def continuous_part(name: str, tilt: float, y: float) -> float:
    """|φ_t(y)| without atoms."""
    weight, loss = tilted(name, tilt)
    values = np.exp(1j * y * loss)
    smooth = np.ones(len(loss), dtype=bool)
    for atom in derivation(name).atoms:
        smooth &= np.abs(loss - float(atom.loss)) > 1e-12
    return abs(np.sum(weight[smooth] * values[smooth]))


def upper(ball: arb) -> float:
    assert ball.is_finite()
    return float(ball.upper())


@pytest.mark.slow
def test_the_grid_agrees_with_arbitrary_precision():
    pair = derivation("subsampled gaussian").pair
    p, q = (sp.lambdify(pair.variable, law, "mpmath") for law in (pair.P, pair.Q))
    with mpmath.workdps(30):

        def moment(z: mpmath.mpc) -> mpmath.mpc:
            return mpmath.quad(
                lambda x: p(x) * mpmath.exp(z * mpmath.log(p(x) / q(x))), range(-20, 26)
            )

        true = abs(moment(mpmath.mpc(2, 8)) / moment(mpmath.mpf(2)))
    assert continuous_part("subsampled gaussian", 2.0, 8.0) == pytest.approx(float(true), rel=1e-9)


@pytest.mark.quick_cases("subsampled laplace")
@pytest.mark.parametrize("name", [name for name in CASES if name not in TURNING])
def test_van_der_corput_constants_bound_the_characteristic_function(name):
    tails = derivation(name).tails
    for tilt in TILTS:
        closest = 0.0
        for order in (1, 2, 3) if name in SMOOTH else (1,):
            constant = upper(tails[f"van_der_corput_{order}"].value(t=tilt))
            for y in FREQUENCIES:
                found, bound = continuous_part(name, float(tilt), y), constant / y**order
                assert found <= bound + 1e-13
                closest = max(closest, min(found / bound, 1.0))
        assert closest > 0.02  # some frequency comes near to the bound


@pytest.mark.slow
@pytest.mark.parametrize("tilt", TILTS[1:], ids=map(str, range(len(TILTS) - 1)))
@pytest.mark.parametrize("name", sorted(TURNING))
def test_where_the_loss_turns_the_split_bound_holds(name, tilt):
    tails = derivation(name).tails
    with pytest.raises(AccuracyError, match="turns at"):
        tails["van_der_corput_1"].value(t=tilt)
    for y in FREQUENCIES:
        bound = upper(tails["van_der_corput_split"].value(t=tilt, frequency=y))
        found = continuous_part(name, float(tilt), y)
        assert found <= bound
    assert bound < 40 * max(found, 1 / y)  # of order |y|^(−1/2), not of order 1
    assert derivation(name).tails["van_der_corput_1"].expression is None
    assert "turns at" in derivation(name).tails["van_der_corput_1"].reason


@pytest.mark.slow
@pytest.mark.parametrize("name", ["laplace", "logistic", "truncated"])
def test_constants_that_do_not_exist_say_so(name):
    with pytest.raises(AccuracyError, match="boundary terms remain"):
        derivation(name).tails["van_der_corput_2"].value(t=1)


@pytest.mark.slow_cases("3")
@pytest.mark.parametrize("order", [1, 2, 3])
def test_formulas_of_a_normal_loss_are_met_within_a_thousandth(order):
    constant = derive(BUILT.gaussian).tails[f"van_der_corput_{order}"]
    sigma = next(iter(constant.expression.free_symbols))
    exact = float(constant.expression.subs(sigma, R(3, 2)))
    proved = upper(constant.value(t=R(1, 3), sigma=R(3, 2)))
    assert exact * (1 - 1e-12) <= proved <= exact * 1.001


def test_a_unimodal_density_has_the_formula_that_is_proved():
    constant = derive(BUILT.laplace).tails["van_der_corput_1"]
    (b,) = (s for s in constant.expression.free_symbols if s.name == "b")
    (t,) = (s for s in constant.expression.free_symbols if s.name == "t")
    for tilt in (R(-2), R(1, 3), R(3)):
        exact = float(constant.expression.subs({b: R(3, 2), t: tilt}))
        proved = upper(constant.value(t=tilt, b=R(3, 2)))
        assert exact * (1 - 1e-12) <= proved <= exact * 1.001


@pytest.mark.quick_cases("laplace", "subsampled laplace")
@pytest.mark.parametrize("name", list(CASES))
def test_third_moments_and_their_ratio(name):
    tails = derivation(name).tails
    for tilt in TILTS:
        weight, loss = tilted(name, float(tilt))
        mean = np.sum(weight * loss)
        third = np.sum(weight * np.abs(loss - mean) ** 3)
        variance = np.sum(weight * (loss - mean) ** 2)
        proved = tails["third_moment"].value(t=tilt)
        assert float(proved.rad()) < 1e-9 * float(proved)
        # The kink of |ℓ − mean|³ lies inside a panel: the rule has about six digits there.
        assert float(proved) == pytest.approx(third, rel=1e-6)
        ratio = tails["berry_esseen"].value(t=tilt)
        assert float(ratio) == pytest.approx(third / variance**1.5, rel=1e-6)


def sums(name: str, under: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The law of a sum, each loss rounded down to a grid: tails are not overstated."""
    mass, loss, _ = grid(name)
    mass = mass * np.exp(-loss) if under == "Q" else mass
    step = 1e-3
    kept = (loss > -40) & (mass > 1e-300)
    cells = np.floor(loss[kept] / step).astype(int)
    first = cells.min()
    law = np.bincount(cells - first, weights=mass[kept])
    total = law
    for _ in range(count - 1):
        total = np.convolve(total, law) if len(law) < 20000 else _fast(total, law)
    return (first * count + np.arange(len(total))) * step, np.maximum(total, 0.0)


def _fast(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    size = len(a) + len(b) - 1
    return np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)


@pytest.mark.quick_cases("laplace-Q")
@pytest.mark.parametrize("under", ["P", "Q"])
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name == "mixture" else name for name in CASES],
)
def test_tail_bounds_hold_for_sums(name, under):
    tails, count = derivation(name).tails, 3
    values, masses = sums(name, under, count)
    mean = float(np.sum(values * masses))
    spread = math.sqrt(np.sum((values - mean) ** 2 * masses))
    low = under.lower()
    tried = 0
    for share in (0.7, 2.0, 3.5):
        epsilon = R(str(round(mean + share * spread, 3)))
        true = float(masses[values >= float(epsilon)].sum())
        if true < 1e-10:  # a convolution in double precision knows no less
            continue
        for kind in ("chernoff", "hoeffding", "sub_gaussian_tail"):
            constant = tails[f"{kind}_{low}"]
            try:
                log_bound = upper(constant.value(epsilon=epsilon, n=count))
            except AccuracyError:
                assert kind != "chernoff"
                assert constant.reason
                continue
            tried += 1
            assert math.log(true) <= log_bound + 1e-9
            if kind == "chernoff":
                assert log_bound <= max(0.6 * math.log(true) + 3, 0) + 1e-9
    assert tried


@pytest.mark.quick_cases("gaussian-Q")
@pytest.mark.parametrize("under", ["P", "Q"])
@pytest.mark.parametrize("name", ["gaussian", "subsampled gaussian", "laplace", "gumbel"])
def test_sub_gaussian_constants_hold_on_their_interval(name, under):
    tails = derivation(name).tails
    low = under.lower()
    within = upper(tails[f"sub_gaussian_within_{low}"].value(low=R(-1, 4), high=R(1, 2)))
    exponential = upper(tails[f"sub_exponential_{low}"].value())
    scale = float(tails[f"sub_exponential_scale_{low}"].value())
    mass, loss, _ = grid(name)
    mass = mass * np.exp(-loss) if under == "Q" else mass
    mean = np.sum(mass * loss)

    def needed(u: float) -> float:
        return 2 * math.log(np.sum(mass * np.exp(u * (loss - mean)))) / u**2

    worst = max(needed(u) for u in np.linspace(-0.25, 0.5, 31) if abs(u) > 1e-9)
    assert worst * (1 - 1e-9) <= within <= 1.1 * worst
    for u in np.linspace(-1 / scale, 1 / scale, 21):
        if abs(u) > 1e-9:
            assert needed(u) <= exponential * (1 + 1e-9)


@pytest.mark.slow_cases("remove-rate0", "add-rate1")
@pytest.mark.parametrize(("direction", "rate"), [("remove", R(1, 100)), ("add", R(1, 3))])
def test_the_subsampled_normal_loss_is_sub_gaussian_with_one_over_sigma_squared(rate, direction):
    d = derive(BUILT.gaussian.subsample("poisson", rate), direction)
    sigma = d.mechanism.parameters["sigma"]
    base = "q" if direction == "remove" else "p"  # the law that is one normal density
    assert d.tails[f"sub_gaussian_{base}"].expression == sigma**-2
    value = R(4, 5)
    concrete = derive(BUILT.gaussian(sigma=value).subsample("poisson", rate), direction)
    within = concrete.tails[f"sub_gaussian_within_{base}"]
    # No interval of tilts needs more than the global constant (and 1.3 % of the chords).
    assert upper(within.value(low=-4, high=4)) <= 1.014 / float(value) ** 2
    # It cannot be improved: far out the CGF is that of one shifted normal law.
    sign = 1 if direction == "remove" else -1
    far = {"low": 0, "high": 40} if sign > 0 else {"low": -40, "high": 0}
    assert 0.7 < upper(within.value(**far)) * float(value) ** 2 <= 1.014


def test_finite_lists_have_formulas_that_match_their_values():
    tails = derive(BUILT.randomized_response).tails
    point = {"epsilon_0": R(3, 2)}
    for name in ("third_moment", "berry_esseen"):
        constant = tails[name]
        symbols = {s.name: s for s in constant.expression.free_symbols}
        exact = constant.expression.subs({symbols["t"]: R(1, 2), symbols["epsilon_0"]: R(3, 2)})
        ball = constant.value(t=R(1, 2), **point)
        assert float(ball) == pytest.approx(float(exact), rel=1e-12)
    legendre = tails["chernoff_p"]
    symbols = {s.name: s for s in legendre.expression.free_symbols}
    exact = legendre.expression.subs(
        {symbols["epsilon"]: 6, symbols["n"]: 5, symbols["epsilon_0"]: R(3, 2)}
    )
    proved = upper(legendre.value(epsilon=6, n=5, **point))
    assert float(exact) <= proved + 1e-12
    assert proved == pytest.approx(float(exact), rel=1e-4)
    with pytest.raises(AccuracyError, match="does not decay"):
        tails["van_der_corput_1"].value(t=1, **point)


@pytest.mark.quick_cases("gaussian")
@pytest.mark.parametrize("name", ["gaussian", "gumbel"])
def test_legendre_transforms_by_formula_are_the_chernoff_exponents(name):
    tails = derivation(name).tails
    for low in ("p", "q"):
        constant = tails[f"chernoff_{low}"]
        symbols = {s.name: s for s in constant.expression.free_symbols}
        exact = float(constant.expression.subs({symbols["epsilon"]: R(1, 2), symbols["n"]: 2}))
        proved = upper(constant.value(epsilon=R(1, 2), n=2))
        assert exact <= proved + 1e-12
        assert proved == pytest.approx(exact, rel=1e-3, abs=1e-4)


@pytest.mark.quick_cases("discrete_gaussian")
@pytest.mark.parametrize("mechanism", ["discrete_laplace", "discrete_gaussian"])
def test_whole_valued_mechanisms(mechanism):
    free = getattr(BUILT, mechanism)
    d = derive(free(**dict.fromkeys(free.parameters, 2)))
    k = np.arange(-200, 202)
    noise = np.exp(-np.abs(k) / 2.0) if mechanism == "discrete_laplace" else np.exp(-(k**2) / 8.0)
    noise = noise / noise.sum()
    q, p = noise[1:], noise[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(p / q)
    weight = np.where(p > 1e-280, p * np.exp(0.5 * loss), 0.0)
    loss = np.where(p > 1e-280, loss, 0.0)
    weight = weight / weight.sum()
    mean = np.sum(weight * loss)
    third = float(d.tails["third_moment"].value(t=R(1, 2)))
    assert third == pytest.approx(np.sum(weight * np.abs(loss - mean) ** 3), rel=1e-9)
    assert d.tails["van_der_corput_1"].reason.endswith("does not decay")


def test_wrong_requests_say_what_is_wrong():
    tails = derive(BUILT.gumbel).tails
    with pytest.raises(InputError, match="did you mean 'van_der_corput_1'"):
        tails["van_der_corput1"]
    with pytest.raises(InputError, match="needs t"):
        tails["third_moment"].value(b=1)
    with pytest.raises(InputError, match="neither an argument"):
        tails["third_moment"].value(t=1, beta=1)
    with pytest.raises(InputError, match="outside"):
        tails["third_moment"].value(t=-2, b=1)
    with pytest.raises(InputError, match="leaves the domain"):
        tails["sub_gaussian_within_p"].value(low=-3, high=1, b=1)
    with pytest.raises(InputError, match="hold 0"):
        tails["sub_gaussian_within_p"].value(low=R(1, 2), high=1, b=1)
    with pytest.raises(InputError, match="whole number"):
        tails["chernoff_p"].value(epsilon=1, n=0, b=1)
    with pytest.raises(AccuracyError, match="unbounded"):
        tails["sub_gaussian_p"].value(b=1)
    with pytest.raises(AccuracyError, match="infinite"):
        tails["loss_width"].value(b=1)


@pytest.mark.slow
def test_every_constant_has_a_formula_or_a_reason():
    for name in CASES:
        for constant in derivation(name).tails:
            assert (constant.expression is None) == bool(constant.reason)
    data = derive(BUILT.gaussian).to_json(order=1)["tails"]
    assert [entry["name"] for entry in data][:2] == ["loss_width", "loss_drift"]
    assert all(isinstance(entry["bounds"], str) for entry in data)


@pytest.mark.slow
def test_a_width_is_infinite_or_a_number():
    """Not ∞ − log(1 − q), which SymPy leaves as it is."""
    sampled = BUILT.gaussian.subsample("poisson", sp.Symbol("q", positive=True))
    assert derive(sampled).tails["loss_width"].expression is sp.oo


HALF = R(1, 2)
# A density, its support and shift, and where P(ℓ > s) and P(ℓ < −s) come from: an end of the
# overlap, or a zero inside it, and on which side of it.
AT_ENDS = {
    "beta": (R(15, 16) * X**2 * (2 - X) ** 2, (0, 2), 1, {1: [(2, -1)], -1: [(1, 1)]}),
    "unequal powers": (20 * X * (1 - X) ** 3, (0, 1), HALF, {1: [(1, -1)], -1: [(0.5, 1)]}),
    "triangle": (
        R(2, 3) - R(4, 9) * sp.Abs(X), (-R(3, 2), R(3, 2)), 1, {1: [(1.5, -1)], -1: [(-0.5, 1)]},
    ),
    "raised cosine": (
        (1 + sp.cos(sp.pi * X / 2)) / 4, (-2, 2), 1, {1: [(2, -1)], -1: [(-1, 1)]},
    ),
    "gamma noise": (
        4 * X ** R(3, 2) * sp.exp(-X) / (3 * sp.sqrt(sp.pi)), (0, sp.oo), 1, {-1: [(1, 1)]},
    ),
    "two modes": (
        R(105, 16) * X**2 * (1 - X**2) ** 2, (-1, 1), HALF,
        {1: [(0, -1), (0, 1), (1, -1)], -1: [(-0.5, 1), (0.5, -1), (0.5, 1)]},
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", AT_ENDS)
def test_tails_of_a_loss_that_is_unbounded_at_finite_ends(name: str):
    """Against the mass of {±ℓ > s}, found by bisection on P and Q as they were written."""
    density, support, shift, places = AT_ENDS[name]
    noise = Mechanism.additive(density, X, sensitivity=shift, support=support, name="noise")
    found = derive(noise)
    p, q = (sp.lambdify(X, law, "mpmath") for law in (found.pair.P, found.pair.Q))
    with mpmath.workdps(60):
        for side, ends in places.items():
            level, mass = mpmath.mpf(60), mpmath.mpf(0)
            for end, inwards in ends:

                def law(y, of=p, end=end, inwards=inwards):
                    return of(mpmath.mpf(end) + inwards * y)

                near, far = mpmath.mpf(-110), mpmath.mpf(-3)
                for _ in range(120):
                    y = mpmath.exp((near + far) / 2)
                    is_beyond = side * mpmath.log(law(y) / law(y, q)) > level
                    near, far = ((near + far) / 2, far) if is_beyond else (near, (near + far) / 2)
                mass += mpmath.quad(law, [0, mpmath.exp(near)])
            kind = "upper" if side > 0 else "lower"
            a, scale = (
                mpmath.mpf(found.tails[f"{kind}_tail_{part}"].value().mid().str(30, radius=False))
                for part in ("exponent", "factor")
            )
            assert abs(scale * mpmath.exp(-a * level) / mass - 1) < mpmath.mpf("1e-5")
            edge = found.cgf.domain[side > 0]
            assert abs(a - side * mpmath.mpf(str(edge.evalf(30)))) < 1e-20


def test_a_bound_by_the_only_maximum_is_told_where_there_is_one():
    """Of heights −x⁴ + 2x², with two maxima and a minimum at 0, and −x², with one maximum."""
    t = sp.Symbol("t", real=True)
    whole = SimpleNamespace(variable=X, cgf=SimpleNamespace(tilt=t))
    for height, told in ((-(X**4) + 2 * X**2, None), (-(X**2), 2)):
        piece = SimpleNamespace(
            log_p=height - t * X, loss=X, slope="increasing", lower=-sp.oo, upper=sp.oo
        )
        assert _unimodal(piece, whole) == told


def test_a_tail_under_p_rests_on_the_constant_under_p_where_there_is_one():
    """Of two answers, chances 3/4 and 1/4: −(ε − n K′(0))²/(2 n s²), s² of the loss under P."""
    answers = Mechanism.from_pair([R(3, 4), R(1, 4)], [R(1, 4), R(3, 4)], X, {"points": [0, 1]})
    found = {constant.name: constant for constant in _squares(derive(answers))}
    for under, mean in (("p", sp.log(3) / 2), ("q", -sp.log(3) / 2)):
        square = found[f"sub_gaussian_{under}"].expression
        tail = found[f"sub_gaussian_tail_{under}"].expression
        expected = -((EPSILON - COUNT * mean) ** 2) / (2 * COUNT * square)
        assert sp.simplify(tail - expected) == 0


@pytest.mark.parametrize(
    ("p", "q", "side", "exponent", "factor"),
    [
        # ℓ = −log 3x² > s is x < e^(−s/2)/√3; with P and Q exchanged −ℓ > s is that, of mass x³.
        (sp.S.One, 3 * X**2, 1, HALF, 1 / sp.sqrt(3)),
        (3 * X**2, sp.S.One, -1, R(3, 2), 1 / (3 * sp.sqrt(3))),
        # −log 6x(1 − x) > s: a part e^(−s)/6 of either end.
        (sp.S.One, 6 * X * (1 - X), 1, sp.S.One, R(1, 3)),
        # Of x^(−1/2)/2 against 2x, −log 4x^(3/2) > s is x < (e^(−s)/4)^(2/3), of mass √x.
        (1 / (2 * sp.sqrt(X)), 2 * X, 1, R(1, 3), 4 ** R(-1, 3)),
    ],
)
def test_tails_of_powers_have_their_formulas(p, q, side, exponent, factor):
    pair = Mechanism.from_pair(p, q, X, support=(0, 1), name="powers")
    found, scale, reason = _power_of_loss(derive(pair), side)
    assert (found, sp.simplify(scale - factor), reason) == (exponent, 0, "")


@pytest.mark.slow
def test_delta_falls_like_the_upper_tail():
    """P uniform on [0, 1] against 3x²: δ(ε) = 2/(3√3) e^{−ε/2} for every ε ≥ −log 3."""
    pair = Mechanism.from_pair(sp.S.One, 3 * X**2, X, support=(0, 1), name="power")
    tails = derive(pair).tails
    a, scale = tails["upper_tail_exponent"].expression, tails["upper_tail_factor"].expression
    assert (a, scale) == (HALF, 1 / sp.sqrt(3))
    assert "bounded" in tails["lower_tail_exponent"].reason
    for epsilon in (1, 30):
        answer = symdp.compose(pair).delta(epsilon, direction="remove").delta
        assert abs(answer / float(scale / (1 + a) * sp.exp(-a * epsilon)) - 1) < 1e-12


@pytest.mark.slow
def test_what_decides_a_tail_may_be_a_parameter():
    k = sp.Symbol("k", positive=True)
    density = X ** (k - 1) * sp.exp(-X) / sp.gamma(k)
    noise = Mechanism.additive(
        density, X, support=(0, sp.oo), parameters={"k": "positive"}, name="n"
    )
    tails = derive(noise).tails
    assert "towards 1 depends on parameters" in tails["lower_tail_exponent"].reason
    assert "at infinity" in derivation("gaussian").tails["upper_tail_factor"].reason


def test_scales_are_twice_one_over_the_way_to_the_nearer_end():
    """Of rates 1 and 2 on a ray E e^{tℓ} = 2^{−t}/(1 − t) has one end, of 2 and 1 it is at −2."""
    fast, slow = 2 * sp.exp(-2 * X), sp.exp(-X)
    scales = {}
    for name, pair in (("slow", (slow, fast)), ("fast", (fast, slow))):
        made = derive(Mechanism.from_pair(*pair, X, (0, sp.oo), name=name))
        tails = {constant.name: constant.expression for constant in made.tails}
        scales[name] = [tails[f"sub_exponential_scale_{law}"] for law in "pq"]
    assert scales == {"slow": [2, 1], "fast": [1, 2]}
