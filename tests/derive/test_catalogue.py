"""Every density of the catalogue: found or declared numeric as it must be, and none found wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import mpmath
import pytest
import sympy as sp
from catalogue import ALL, KNOWN, UNSEEN, Entry

from symdp.derive import Derivation, Piece, derive
from symdp.model.mechanism import Mechanism

# Parameter values at which the found forms are compared with quadrature; the derivation's own
# check draws others.
VALUES = ("4/5", "7/5", "9/10", "6/5")
SHARES = ("3/10", "9/20", "1/5")
QUICK = ("gaussian, two variances", "gumbel", "uniform noise", "staircase, cells", "student")
AT = (mpmath.mpf("-0.37"), mpmath.mpc("-0.58", "0.41"))


@pytest.fixture(autouse=True)
def _cold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMDP_CACHE", "off")


def concrete(mechanism: Mechanism) -> Mechanism:
    """Bind values that respect the domains."""
    plain, shares = iter(VALUES), iter(SHARES)
    declared = {p.name: p.domain for p in mechanism.declared}
    return mechanism(
        **{n: next(shares if "probability" in d else plain) for n, d in declared.items()}
    )


def sides(piece: Piece) -> Iterator[tuple[mpmath.mpf, mpmath.mpf]]:
    """Cut a piece into stretches that start where the density may be singular, with their length.

    A negative length runs to the left.
    """
    low, high = (
        mpmath.mpf(str(sp.N(end, 60))) if end.is_finite else mpmath.inf * int(sp.sign(end))
        for end in (piece.lower, piece.upper)
    )
    if mpmath.isfinite(low) and mpmath.isfinite(high):
        yield from ((low, (high - low) / 2), (high, (low - high) / 2))
    elif mpmath.isfinite(low):
        yield low, mpmath.inf
    elif mpmath.isfinite(high):
        yield high, -mpmath.inf
    else:
        yield from ((mpmath.mpf(0), mpmath.inf), (mpmath.mpf(0), -mpmath.inf))


def along(
    integrand: Callable[[mpmath.mpf], mpmath.mpc], start: mpmath.mpf, length: mpmath.mpf
) -> mpmath.mpc:
    """∫ in panels whose widths double, until nothing is left."""
    total, near, sign = mpmath.mpc(0), mpmath.mpf(0), mpmath.sign(length)
    for k in range(-100, 260, 2):
        far = min(mpmath.mpf(2) ** k, abs(length))
        ends = sorted((start + sign * near, start + sign * far))
        part = mpmath.quad(integrand, ends, method="gauss-legendre", maxdegree=5)
        total, near = total + part, far
        if far == abs(length) or (k > 4 and abs(part) < mpmath.mpf(10) ** -25 * abs(total)):
            return total
    return total


def raw_moment(found: Derivation, z: mpmath.mpc) -> mpmath.mpc:
    """∫ P^{1+z} Q^{−z}, from P and Q as they were written."""
    if found.points:
        masses = ((mpmath.mpf(str(sp.N(p.p, 40))), mpmath.mpf(str(sp.N(p.q, 40))))
                  for p in found.points)  # fmt: skip
        return mpmath.fsum(p ** (1 + z) * q**-z for p, q in masses if p and q)
    pair, x = found.pair, found.variable
    p, q = (sp.lambdify(x, law, "mpmath") for law in (pair.P, pair.Q))

    def integrand(at: mpmath.mpf) -> mpmath.mpc:
        top, bottom = mpmath.mpf(p(at)), mpmath.mpf(q(at))
        if top <= 0 or bottom <= 0:
            return mpmath.mpf(0)
        return mpmath.exp((1 + z) * mpmath.log(top) - z * mpmath.log(bottom))

    total = mpmath.mpc(0)
    for piece in found.pieces:
        if piece.log_p is None or piece.log_q is None:
            continue
        if x.is_integer:
            first = -400 if piece.lower == -sp.oo else int(piece.lower)
            last = 400 if piece.upper == sp.oo else int(piece.upper)
            total += mpmath.fsum(integrand(mpmath.mpf(k)) for k in range(first, last + 1))
            continue
        total += mpmath.fsum(along(integrand, *side) for side in sides(piece))
    return total


def check(name: str, entry: Entry, direction: str) -> None:
    mechanism = entry.mechanism(name)
    cgf = derive(mechanism, direction).cgf
    assert cgf.form == entry.form(direction), cgf.reason
    if cgf.expression is None:
        assert cgf.reason
        return
    bound = concrete(mechanism)
    values = {p.symbol: bound.values[p.name] for p in mechanism.declared}
    expression = sp.exp(cgf.expression).subs(values)
    with mpmath.workdps(25):
        for z in AT:
            tilt = sp.Float(str(z.real), 40) + sp.I * sp.Float(str(z.imag), 40)
            closed = mpmath.mpmathify(expression.subs(cgf.tilt, tilt).evalf(25))
            direct = raw_moment(derive(bound, direction), z)
            # Singular ends are cut at 2^−100, which leaves a little of the slowest.
            assert abs(closed - direct) < mpmath.mpf("1e-10") * abs(direct), (closed, direct)
    if cgf.domain is not None:
        low, high = (float(sp.N(end.subs(values))) for end in cgf.domain)
        assert low <= -1 + 1e-12
        assert high >= -1e-12
        assert not math.isnan(low + high) or (low, high) == (-math.inf, math.inf)


@pytest.mark.quick_cases(
    "uniform noise-remove", "uniform noise-add", "staircase, cells-remove", "staircase, cells-add"
)
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("name", QUICK)
def test_a_few_densities(name: str, direction: str) -> None:
    check(name, ALL[name], direction)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("name", [name for name in ALL if name not in QUICK])
def test_all_densities(name: str, direction: str) -> None:
    check(name, ALL[name], direction)


def test_the_catalogue_is_broad() -> None:
    assert len(KNOWN) >= 25
    assert len(UNSEEN) >= 25
