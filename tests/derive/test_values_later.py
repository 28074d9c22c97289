"""K of a mechanism with values: found and checked with free parameters, which are then put in."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import pytest
import sympy as sp

import symdp
from symdp.derive import cgf as cgf_module
from symdp.derive import derive
from symdp.model.mechanism import Mechanism


@pytest.fixture(autouse=True)
def _cold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMDP_CACHE", "off")


def pair(
    p: str, q: str, support: str = '["-oo", "oo"]', word: str = "positive", parameters: str = "m"
) -> Mechanism:
    names = "".join(f'{name} = "{word}"\n' for name in parameters)
    return symdp.Mechanism.from_toml(
        f'name = "given"\nvariable = "x"\nsupport = {support}\n[parameters]\n{names}\n'
        f'[pair]\nP = "{p}"\nQ = "{q}"'
    )


BETA = pair(
    "x**m*(1-x)**(m-1)/beta(m+1,m)",
    "x**(m-1)*(1-x)**m/beta(m,m+1)",
    "[0, 1]",
    "positive integer",
)
NORMAL = "exp(-x**2/(2*{0}**2))/({0}*sqrt(2*pi))"


@pytest.mark.quick_cases("40")
@pytest.mark.parametrize("m", [3, 40])
def test_a_large_count_does_not_lose_the_form(m: int) -> None:
    d = derive(BETA(m=m))
    assert d.cgf.form == "closed", d.cgf.reason
    assert d.cgf.domain == (-m - 1, m)
    with mpmath.workdps(30):
        for tilt in (mpmath.mpf("0.4"), mpmath.mpf("-1.7")):
            law = lambda x, t=tilt: 4**m * x ** (m + t) * (1 - x) ** (m - 1 - t)  # noqa: E731
            truth = mpmath.log(mpmath.quad(law, [0, 0.4, 0.5, 0.6, 1])) - mpmath.log(
                4**m * mpmath.beta(m + 1, m)
            )
            found = d.cgf.expression.subs(d.cgf.tilt, sp.Rational(str(tilt))).evalf(25)  # type: ignore[union-attr]
            assert abs(found - truth) < 1e-20


def test_values_at_which_the_free_form_has_no_sense_are_derived_with_them() -> None:
    """At m = a the two laws are one, K = 0 and whatever divides by m − a is 0/0."""
    made = pair(NORMAL.format("m"), NORMAL.format("a"), parameters="ma")
    d = derive(made(m=2, a=2))
    assert d.cgf.form == "closed"
    assert d.cgf.expression == 0


def test_a_free_form_that_an_integral_contradicts_is_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = pair(NORMAL.format("m"), "exp(-(x-1)**2/(2*m**2))/(m*sqrt(2*pi))")
    right = derive(made).cgf
    own = cgf_module.derive_cgf

    def forged(pair: object, *rest: object) -> object:
        found = own(pair, *rest)  # type: ignore[arg-type]
        has_parameters = found.expression is not None and len(found.expression.free_symbols) > 1
        return replace(found, expression=2 * found.expression) if has_parameters else found

    monkeypatch.setattr(cgf_module, "derive_cgf", forged)
    d = derive(made(m=2))
    assert right.expression is not None
    m = made.parameters["m"]
    assert sp.simplify(d.cgf.expression - right.expression.subs(m, 2)) == 0  # type: ignore[operator]
