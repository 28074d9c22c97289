"""D_α rises with α up to the largest loss, also where a table ends before its law; envelopes bound.

The truths are sums of own quadrature rules and closed forms of mpmath.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import sympy as sp

import symdp
from symdp import Ledger, Mechanism, compose, mechanisms
from symdp.errors import AccuracyError, InputError
from symdp.methods.renyi import _check_order_of_divergences

R = sp.Symbol("r", positive=True)
X = sp.Symbol("x", real=True)
# By name: the density of the length, its logarithm in NumPy, the dimension and the largest loss.
LENGTHS: dict[str, tuple[sp.Expr, Callable[..., np.ndarray], int, float]] = {
    "planar Laplace": (sp.exp(-R / 6), lambda r: -r / 6, 2, 1 / 6),
    "sech": (1 / sp.cosh(R), lambda r: -np.logaddexp(r, -r), 3, 1.0),
    "power": ((1 + R**2) ** -4, lambda r: -4 * np.log1p(r**2), 3, 8 * math.asinh(0.5)),
    "softened": (sp.exp(-sp.sqrt(1 + R**2)), lambda r: -np.hypot(1, r), 4, 1.0),
    "sum": (sp.exp(-R) + sp.exp(-3 * R), lambda r: np.logaddexp(-r, -3 * r), 3, math.nan),
}
ORDERS = [0.5, 1.0, 1.5, 2.0, 10.0, 1e3, 3e4, 1e5, 9e5, 2e6, 1e9, math.inf]


def divergence(log_g: Callable[..., np.ndarray], d: int, order: float) -> float:
    """Return D_α by a rule in the coordinate along the shift and the distance from its line."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    far = np.geomspace(1e-4, 700.0, 25)

    def rule(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        half = 0.5 * np.diff(edges)[:, None]
        middle = 0.5 * (edges[1:] + edges[:-1])[:, None]
        return (middle + half * nodes).ravel(), (half * weights).ravel()

    near = far[far < 0.5]
    x, wx = rule(np.concatenate([-far[::-1], [0.0], near, [0.5], 1 - near[::-1], [1.0], 1 + far]))
    y, wy = rule(np.append(0.0, far))
    log_weight = np.log(wx[:, None] * wy * y ** (d - 2))
    with_record, without = log_g(np.hypot(x[:, None] - 1, y)), log_g(np.hypot(x[:, None], y))
    mass, loss = np.exp(log_weight + without).sum(), with_record - without
    if order == 1.0:
        return float((np.exp(log_weight + with_record) * loss).sum() / mass)
    total = np.exp(log_weight + with_record + (order - 1) * loss).sum()
    return float(math.log(total / mass) / (order - 1))


@pytest.mark.quick_cases("planar Laplace")
@pytest.mark.parametrize("name", LENGTHS)
def test_vectors_have_the_divergences_of_an_own_rule_and_they_rise_to_the_largest_loss(
    name: str,
) -> None:
    density, log_g, d, top = LENGTHS[name]
    steps = compose(Mechanism.radial(density, R, d), 1)
    for order in (1.0, 2.0, 10.0):
        assert steps.renyi(order) == pytest.approx(divergence(log_g, d, order), rel=1e-9)
    ends = [symdp.questions.tradeoff.renyi_ends(steps, order) for order in ORDERS]
    for (_, before), (_, high) in pairwise(ends):
        assert before <= high * (1 + 1e-12)
    assert all(low <= high <= ends[-1][1] for low, high in ends)
    if not math.isnan(top):
        assert ends[-1][1] == pytest.approx(top, rel=1e-9)
    found = steps.zcdp()
    assert found.kind == "exact"
    ratios = [steps.renyi(order) / order for order in (1.0, 1.01, 2.0, 10.0, 1e3)]
    assert max(ratios) * (1 - 1e-12) <= found.rho <= max(ratios) * (1 + 1e-9)


@pytest.mark.slow
def test_an_order_beyond_a_table_is_refused_with_what_is_known() -> None:
    steps = compose(mechanisms.multivariate_t(nu=5, s=1, d=3), 2)
    with pytest.raises(AccuracyError, match=r"beyond the table .* lies between 3\.548"):
        steps.renyi(2e6)
    assert steps.zcdp().kind == "exact"
    # No loss is the largest here: at far orders a least value alone is known.
    far = compose(Mechanism.radial(sp.exp(-(R ** sp.Rational(3, 2))), R, 3), 1)
    with pytest.raises(AccuracyError, match=r"is at least 11\.89"):
        far.renyi(1e3)
    assert far.zcdp().kind == "estimate"
    # A law that its table cuts e^-700 below has all divergences that the table resolves.
    steep = compose(Mechanism.radial(sp.exp(-(R**2) - R**4 / 10), R, 3), 1)

    def log_steep(r: np.ndarray) -> np.ndarray:
        return -(r**2) - r**4 / 10

    for order in (1.0, 2.0, 3.0):
        assert steep.renyi(order) == pytest.approx(divergence(log_steep, 3, order), rel=1e-9)
    with pytest.raises(AccuracyError, match="is at least"):
        steep.renyi(10)


def test_divergences_that_fall_are_a_fault_that_is_told() -> None:
    law = compose(mechanisms.laplace(b=1), 1).law("remove")
    _check_order_of_divergences(law, 2.0, 0.5)
    for wrong in (0.2, 1.1):  # below the mean loss 1/e, above the largest
        with pytest.raises(AccuracyError, match="a bug in symdp"):
            _check_order_of_divergences(law, 2.0, wrong)


def bounded_range(epsilon: float, share: float, order: float) -> mpmath.mpf:
    """Return D_α of the two outputs of losses uε and (u − 1)ε."""
    e, u = mpmath.mpf(epsilon), mpmath.mpf(share)
    p = (1 - mpmath.exp(-(1 - u) * e)) / (1 - mpmath.exp(-e))
    if order == 1:
        return p * u * e + (1 - p) * (u - 1) * e
    t = mpmath.mpf(order) - 1
    return mpmath.log(p * mpmath.exp(t * u * e) + (1 - p) * mpmath.exp(t * (u - 1) * e)) / t


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
def test_every_bounded_range_keeps_below_the_stated_rho_and_one_comes_near(epsilon: float) -> None:
    steps = compose(mechanisms.exponential(epsilon_0=epsilon), 3)
    found = steps.zcdp()
    with mpmath.workdps(30):
        worst = max(
            bounded_range(epsilon, share / 200, order) / order
            for share in range(1, 200)
            for order in (1, 1.01, 1.5, 2, 8, 100)
        )
    assert 3 * worst <= found.rho <= 3 * worst * (1 + 1e-3)
    assert (found.kind, found.lower, found.upper) == ("bound", 0.0, found.rho)
    assert found.rho <= 3 * epsilon**2 / 8
    assert str(found).startswith("ρ ≤ ")
    for order in (1, 2, 8):
        most = max(bounded_range(epsilon, share / 200, order) for share in range(1, 200))
        assert 3 * most <= steps.renyi(order) <= 3 * found.rho * order


@pytest.mark.slow
def test_an_envelope_is_exact_for_one_step_and_a_bound_for_several_and_for_divergences() -> None:
    noise = mechanisms.laplace(b=2)
    for step in (mechanisms.exponential(epsilon_0=1), mechanisms.permute_and_flip(epsilon_0=1)):
        assert compose(step, 1).delta(0.3).kind == "exact"
        assert compose(step, 1).zcdp().kind == "bound"
        for several in (compose(step, 2), compose([(step, 1), (noise, 1)])):
            assert several.delta(0.3).kind == "bound"
            assert several.zcdp().kind == "bound"
        claim = compose(step, 4).check_claim(0.1, 1e-3)
        assert claim.verdict != "refuted"  # of the pair alone it is


def test_an_envelope_is_kept_by_a_file_a_ledger_and_a_cached_law(shell, tmp_path) -> None:
    made = symdp.Mechanism.from_toml(
        'name = "largest"\nvariable = "x"\nsupport = {points = [0, 1]}\n[parameters]\n'
        'e = "positive"\n[pair]\nP = ["exp(e)/(1 + exp(e))", "1/(1 + exp(e))"]\n'
        'Q = ["1/(1 + exp(e))", "exp(e)/(1 + exp(e))"]\nenvelope = true\nrho = "e**2/8"\n'
    )(e=2)
    assert compose(made, 3).zcdp().rho == pytest.approx(1.5)
    book = Ledger([(made, 3)])
    book.save(tmp_path / "book.json")
    again = Ledger.load(tmp_path / "book.json").composition()
    assert again.zcdp().rho == pytest.approx(1.5)
    assert again.delta(0.5).kind == "bound"
    for count, kind in ((1, "exact"), (2, "bound"), (1, "exact")):
        answer = shell(f"delta permute_and_flip epsilon_0=1/3 --epsilon 0.1 -n {count} --json").json
        assert answer["kind"] == kind
    with pytest.raises(InputError, match="say envelope = true"):
        Mechanism.from_pair(sp.exp(-X), sp.exp(-X), X, (0, 1), normalize=True, rho="x")


@pytest.mark.slow
def test_the_command_says_which_numbers_are_bounds(shell) -> None:
    shown = shell("renyi multivariate_t nu=5 d=3 s=1 --order 2,5000000,inf").out
    (first, far, last) = (line.split() for line in shown.splitlines()[1:4])
    assert "≤" not in first + last
    assert far[1] == "≤"
    assert shell("renyi exponential epsilon_0=1 --order 2").out.splitlines()[1].split()[1] == "≤"
    assert "ρ ≤ 0.123301561483, bound" in shell("renyi exponential epsilon_0=1").out
