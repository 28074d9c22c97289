"""Changes of variable: the same transforms, over ends that are regular."""

import mpmath
import pytest
import sympy as sp
from catalogue import ALL
from flint import arb, ctx

from symdp.balls import cgf_ball
from symdp.certify.nodes import Nodes, Scope
from symdp.certify.parts import Parts
from symdp.derive.pieces import pieces
from symdp.model.mechanism import Mechanism

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
    "student": ("1/100",),
}
CASES = [(name, rate) for name, rates in MOVED.items() for rate in rates]
STAYING = {"student": 1}  # regular at both ends
ZEROS_OF_COSINES = ("cos**2 and uniform", "raised cosine noise")
MIRRORED = {"laplace against gaussian": 4, "cauchy scales": 2, "generalised gaussian scales": 2}
TILT = R(1, 3)
DIGITS = 10


def _pair(name, rate):
    raw = ALL[name].mechanism("entry")
    values = dict(zip((p.name for p in raw.declared), VALUES, strict=False))
    mechanism = raw(**values) if values else raw
    return (mechanism.subsample("poisson", rate) if rate else mechanism).pair("remove")


@pytest.mark.slow_cases(
    "chi-square-1/100",
    "burr-",
    "arcsine and uniform-1/100",
    "weibull scales-",
    "levy scales-",
    "arcsine and uniform-",
    "triangles-1/100",
    "student-1/100",
    "chi-square-",
    "beta shapes-",
)
@pytest.mark.parametrize(("name", "rate"), CASES)
def test_what_is_moved_to_infinity_keeps_its_transform(name, rate):
    """Against the enclosure over the variable as it was given."""
    pair = _pair(name, rate)
    parts = Parts(pair)
    staying = [part for part in parts.stretches if part.piece in pieces(pair)]
    assert len(staying) == STAYING.get(name, 0)
    assert all(part.piece.upper == sp.oo for part in parts.stretches if part not in staying)
    for tilt in (TILT, -R(1, 2)):
        assert abs(parts.cgf(tilt) - cgf_ball(pair, tilt, DIGITS).real) < 1e-8
    with ctx.workprec(96):
        scale = parts.cgf(TILT).mid()
        for reach, y in ((3.0, R(5, 2)), (24.0, R(11))):
            nodes = parts.nodes(TILT, scale, arb(2) ** -50, Scope(reach))
            given = (cgf_ball(pair, TILT + sp.I * y, DIGITS) - scale).exp()
            assert abs(nodes.at(arb(int(2 * y)) / 2) - given) < 1e-8


@pytest.mark.slow_cases(
    "raised cosine noise-", "raised cosine noise-1/100", "cos**2 and uniform-1/100"
)
@pytest.mark.parametrize("rate", ["", "1/100"])
@pytest.mark.parametrize("name", ZEROS_OF_COSINES)
def test_zeros_of_cosines_are_moved_to_infinity(name, rate):
    """Against tanh-sinh quadrature over the variable as it was given."""
    pair = _pair(name, rate)
    given = [p for p in pieces(pair) if p.log_p is not None and p.log_q is not None]
    parts = Parts(pair)
    assert all(part.is_flat or part.piece.upper == sp.oo for part in parts.stretches)
    with ctx.workprec(96), mpmath.workdps(24):
        scale = parts.cgf(TILT).mid()
        for reach, y in ((3.0, R(5, 2)), (24.0, R(11))):
            nodes = parts.nodes(TILT, scale, arb(2) ** -50, Scope(reach))
            value = mpmath.mpc(0)
            for piece in given:
                exponent = piece.log_p + (TILT + sp.I * y) * piece.loss
                function = sp.lambdify(pair.variable, sp.exp(exponent), "mpmath")
                ends = [mpmath.mpmathify(sp.N(end, 40)) for end in (piece.lower, piece.upper)]
                value += mpmath.quad(function, ends, maxdegree=9)
            value *= mpmath.exp(-mpmath.mpf(str(scale.mid().str(30, radius=False))))
            found = nodes.at(arb(int(2 * y)) / 2)
            for ball, part in ((found.real, value.real), (found.imag, value.imag)):
                assert abs(mpmath.mpf(ball.mid().str(30, radius=False)) - part) < 1e-10


@pytest.mark.parametrize("name", MIRRORED)
def test_mirror_images_add_up(name):
    pair = _pair(name, "1/100")
    parts = Parts(pair)
    assert len(parts.stretches) == len(pieces(pair)) == MIRRORED[name]
    for tilt in (-R(1, 2), -R(1, 8)):
        assert abs(parts.cgf(tilt) - cgf_ball(pair, tilt, DIGITS).real) < 1e-8


def test_what_is_no_mirror_image_is_not_taken_for_one():
    """Pieces of one density that is even, against one that is not."""
    x = sp.Symbol("x", real=True)
    pair = Mechanism.from_pair(sp.exp(-abs(x)) / 2, sp.exp(-abs(x - 1)) / 2, x).pair("remove")
    assert len(Parts(pair).stretches) == len(pieces(pair))


def test_an_end_stays_where_wide_balls_beyond_it_would_have_no_values():
    """The log of 1 − e^{−x} over a ball that holds 0 could not bound a tail."""
    x = sp.Symbol("x", positive=True)
    p, q = R(3, 2) * sp.sqrt(1 - sp.exp(-x)) * sp.exp(-x), sp.exp(-x)
    pair = Mechanism.from_pair(p, q, x, support=(0, sp.oo)).pair("remove")
    assert {part.piece for part in Parts(pair).stretches} <= set(pieces(pair))


def test_a_middle_is_found_among_losses_that_round_to_nothing():
    losses = (arb(0, 2.0**-90), arb(1))
    mean, deviation = Nodes((arb(1), arb(1)), losses, arb(0), 1.0).middle()
    assert (mean, deviation) == (arb(0.5), arb(0.5))


@pytest.mark.slow_cases("student-values2-1/10", "cauchy-values0-")
@pytest.mark.parametrize(
    ("name", "values", "rate"),
    [("cauchy", {}, ""), ("cauchy scales", {"a": 1, "c": 2}, ""), ("student", {"nu": 1}, "1/10")],
)
def test_a_half_line_in_another_variable_has_the_same_moments(name, values, rate):
    raw = ALL[name].mechanism("entry")
    mechanism = raw(**values) if values else raw
    pair = (mechanism.subsample("poisson", rate) if rate else mechanism).pair("remove")
    with ctx.workprec(160):
        parts = Parts(pair)
        assert any(part.x != pair.variable for part in parts.stretches)
        for tilt in (R(1, 2), R(7, 3)):
            found, truth = parts.cgf(tilt), cgf_ball(pair, tilt).real
            assert found.overlaps(truth)
            assert float(found.rad() + truth.rad()) < 1e-13
