"""Changes of variable: the same transforms, over ends that are regular."""

import pytest
import sympy as sp
from catalogue import ALL
from flint import arb, ctx

from symdp.certify.parts import Parts
from symdp.certify.scope import Scope
from symdp.derive.pieces import pieces
from symdp.truth import cgf_ball

R = sp.Rational

VALUES = ("4/5", "7/5", "9/10")
MOVED = {
    "chi-square": ("", "1/100"),
    "levy scales": ("",),  # what it is compared with finds no bound of the sampled one's tail
    "weibull scales": ("",),
    "beta shapes": ("",),
    "triangles": ("1/100",),
    "arcsine and uniform": ("", "1/100"),
    "pareto shapes": ("", "1/100"),
    "burr": ("",),
}
CASES = [(name, rate) for name, rates in MOVED.items() for rate in rates]
TILT = R(1, 3)
DIGITS = 10


def _pair(name, rate):
    raw = ALL[name].mechanism("entry")
    values = dict(zip((p.name for p in raw.declared), VALUES, strict=False))
    mechanism = raw(**values) if values else raw
    return (mechanism.subsample("poisson", rate) if rate else mechanism).pair("remove")


@pytest.mark.parametrize(("name", "rate"), CASES)
def test_what_is_moved_to_infinity_keeps_its_transform(name, rate):
    """Against the enclosure over the variable as it was given."""
    pair = _pair(name, rate)
    parts = Parts(pair)
    assert not {part.piece for part in parts.stretches} & set(pieces(pair))
    assert all(part.piece.upper == sp.oo for part in parts.stretches)
    for tilt in (TILT, -R(1, 2)):
        assert abs(parts.cgf(tilt) - cgf_ball(pair, tilt, DIGITS).real) < 1e-8
    with ctx.workprec(96):
        scale = parts.cgf(TILT).mid()
        for frequencies, y in (((0.0, 3.0), R(5, 2)), ((8.0, 24.0), R(11))):
            nodes = parts.nodes(TILT, scale, arb(2) ** -50, Scope(frequencies))
            given = (cgf_ball(pair, TILT + sp.I * y, DIGITS) - scale).exp()
            assert abs(nodes.at(arb(int(2 * y)) / 2) - given) < 1e-8


def test_an_end_stays_where_wide_balls_beyond_it_would_have_no_values():
    """The log of a sine of a ball that holds 0 could not bound a tail."""
    pair = ALL["cos**2 and uniform"].mechanism("entry").pair("remove")
    assert {part.piece for part in Parts(pair).stretches} <= set(pieces(pair))
