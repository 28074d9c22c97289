"""Pieces against P and Q themselves, at 50 digits, at rational points of every piece."""

from __future__ import annotations

import math
import random
from functools import lru_cache
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import sympy as sp
from derive_examples import (
    PAIRS,
    R,
    additive,
    gaussian,
    laplace,
    plain,
    poisson,
    randomized_response,
    shifted,
    student,
    x,
)

import symdp
from symdp.density.normal_form import log_form, occurrences
from symdp.density.pieces import pieces, points
from symdp.density.records import Piece
from symdp.density.roots import known_roots, roots_between
from symdp.density.turning import monotone_cuts
from symdp.derive.limits import monotone_pieces
from symdp.emit import compile_numpy
from symdp.emit.mass import MassIntegral
from symdp.errors import InputError
from symdp.model.mechanism import Mechanism
from symdp.model.pair import Pair, Support

DIGITS = 50


def inner_points(piece: Piece, count: int, seed: int) -> list[sp.Rational]:
    """Rational points of a piece, near its ends and far out."""
    chance = random.Random(seed)
    low, high = piece.lower, piece.upper
    if low == high:
        return [low]
    found = []
    for _ in range(count):
        share = R(chance.randint(1, 10**6), 10**6 + 1)
        if low == -sp.oo and high == sp.oo:
            point = 12 * share - 6
        elif low == -sp.oo:
            point = high - 8 * share
        elif high == sp.oo:
            point = low + 8 * share
        else:
            point = low + (high - low) * share
        found.append(R(str(sp.N(point, 20))))
    return found


@lru_cache
def found_pieces(name: str) -> tuple[Piece, ...]:
    return pieces(PAIRS[name]())


def value(expression: sp.Expr, variable: sp.Symbol, at: sp.Expr) -> mpmath.mpf:
    number = expression.subs(variable, at).xreplace(
        {total: _summed(total) for total in expression.atoms(sp.Sum)}
    )
    return mpmath.mpf(sp.N(number, DIGITS)._to_mpmath(200))


def _summed(total: sp.Sum) -> sp.Expr:
    (index, *_), term = total.limits[0], total.function
    return sp.Add(*(term.subs(index, j).evalf(DIGITS + 10) for j in range(-50, 51)))


@pytest.mark.slow_cases("laplace with")
@pytest.mark.parametrize("name", PAIRS)
def test_loss_and_log_densities_agree_with_the_pair(name: str) -> None:
    pair = PAIRS[name]()
    variable = pair.variable
    found = found_pieces(name)
    assert found
    with mpmath.workdps(DIGITS):
        for index, piece in enumerate(found):
            ats = inner_points(piece, 4, index)
            if variable.is_integer:
                ats = sorted({sp.floor(at) for at in ats if at >= piece.lower})
            for at in ats:
                p, q = value(pair.P, variable, at), value(pair.Q, variable, at)
                close = {"rel_eps": mpmath.mpf(10) ** (8 - DIGITS)}
                for density, log in ((p, piece.log_p), (q, piece.log_q)):
                    if log is None:
                        assert density == 0
                    else:
                        assert mpmath.almosteq(
                            mpmath.exp(value(log, variable, at)), density, **close
                        )
                if p and q:
                    loss = value(piece.loss, variable, at)
                    assert mpmath.almosteq(mpmath.exp(loss), p / q, **close)
                else:
                    assert piece.loss == (sp.oo if p else -sp.oo)


@pytest.mark.slow_cases("laplace with")
@pytest.mark.parametrize("name", PAIRS)
def test_terms_add_up_to_their_density(name: str) -> None:
    pair = PAIRS[name]()
    with mpmath.workdps(DIGITS):
        for index, piece in enumerate(found_pieces(name)):
            at = inner_points(piece, 1, index)[0]
            at = sp.floor(at) if pair.variable.is_integer and at != piece.lower else at
            for terms, density in ((piece.log_p_terms, pair.P), (piece.log_q_terms, pair.Q)):
                total = sum(mpmath.exp(value(term, pair.variable, at)) for term in terms)
                wanted = value(density, pair.variable, at)
                assert mpmath.almosteq(total, wanted, rel_eps=mpmath.mpf(10) ** (8 - DIGITS))


@pytest.mark.slow_cases(
    "laplace with",
    "mixed noise",
    "mixed noise poisson",
    "gaussian with",
    "wave",
    "asymmetric laplace",
)
@pytest.mark.parametrize("name", PAIRS)
def test_slopes_are_those_of_the_loss(name: str) -> None:
    pair = PAIRS[name]()
    for index, piece in enumerate(monotone_pieces(pair)):
        if piece.slope == "constant":
            assert pair.variable not in piece.loss.free_symbols
            continue
        assert piece.slope in {"increasing", "decreasing"}
        ats = sorted(inner_points(piece, 12, 7 + index))
        if pair.variable.is_integer:
            ats = sorted({sp.floor(at) for at in ats if at >= piece.lower})
        with mpmath.workdps(DIGITS):
            losses = [value(piece.loss, pair.variable, at) for at in ats]
        steps = [b - a for a, b in pairwise(losses)]
        assert all(step > 0 if piece.slope == "increasing" else step < 0 for step in steps)


@pytest.mark.parametrize("name", PAIRS)
def test_pieces_tile_the_support(name: str) -> None:
    pair = PAIRS[name]()
    found = found_pieces(name)
    gap = 1 if pair.variable.is_integer else 0
    assert (found[0].lower, found[-1].upper) == (pair.support.lower, pair.support.upper)
    for left, right in pairwise(found):
        assert left.upper + gap == right.lower


@pytest.mark.parametrize("name", PAIRS)
def test_no_kinked_function_is_left(name: str) -> None:
    for piece in found_pieces(name):
        for expression in (piece.log_p, piece.log_q, piece.loss, *piece.log_p_terms):
            if expression is not None:
                assert not expression.has(sp.Abs, sp.sign, sp.Max, sp.Min, sp.Piecewise)


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("gaussian", 1),
        ("gaussian poisson", 1),
        ("gaussian without", 2),
        ("laplace poisson", 1),
        ("logistic", 1),
        ("logistic by sech", 1),
        ("logistic poisson", 1),
        ("sech", 1),
        ("gumbel", 1),
        ("two variances", 1),
        ("own mixture", 1),
        ("quartic", 2),
        ("student", 2),
        ("mixed noise", 3),
        ("asymmetric laplace", 1),
        ("discrete gaussian poisson", 1),
        ("poisson counts", 1),
    ],
)
def test_variable_occurs_rarely(name: str, most: int) -> None:
    pair = PAIRS[name]()
    assert max(occurrences(piece.loss, pair.variable) for piece in found_pieces(name)) <= most


def test_subsampled_gaussian_keeps_the_shape_that_targets_recognise() -> None:
    sigma, q = sp.symbols("sigma q", positive=True)
    (piece,) = pieces(poisson(additive(gaussian(sigma)), q))
    assert piece.loss == sp.log(1 - q + q * sp.exp((2 * x - 1) / (2 * sigma**2)))
    assert piece.slope == "increasing"


def test_symbolic_laplace_has_its_three_pieces() -> None:
    b, delta = sp.symbols("b Delta", positive=True)
    found = pieces(additive(laplace(b), delta))
    assert [(p.lower, p.upper) for p in found] == [(-sp.oo, 0), (0, delta), (delta, sp.oo)]
    assert [p.loss for p in found] == [-delta / b, (2 * x - delta) / b, delta / b]


def test_symbolic_student_turns_where_the_formula_says() -> None:
    nu, delta = sp.symbols("nu Delta", positive=True)
    first, second, third = monotone_pieces(additive(student(nu), delta))
    assert sp.simplify(first.upper - (delta - sp.sqrt(delta**2 + 4 * nu)) / 2) == 0
    assert [first.slope, second.slope, third.slope] == ["decreasing", "increasing", "decreasing"]


def test_numbers_do_not_ask_where_a_loss_turns() -> None:
    (piece,) = pieces(additive(student(sp.Integer(3)), sp.S.One))
    assert (piece.lower, piece.upper, piece.slope) == (-sp.oo, sp.oo, "unknown")


def test_reversing_a_pair_negates_the_loss() -> None:
    for name in ("gaussian poisson", "laplace without", "student"):
        pair = PAIRS[name]()
        forth, back = pieces(pair), pieces(pair.reversed())
        assert [sp.simplify(a.loss + b.loss) for a, b in zip(forth, back, strict=True)] == [
            0
        ] * len(forth)


def test_equal_densities_have_no_loss() -> None:
    (piece,) = pieces(plain(gaussian(sp.S.One), gaussian(sp.S.One)))
    assert (piece.loss, piece.slope) == (0, "constant")


def test_mass_at_infinity_is_marked() -> None:
    low, middle, high = pieces(PAIRS["uniform"]())
    assert (low.loss, low.log_p) == (-sp.oo, None)
    assert middle.loss == 0
    assert (high.loss, high.log_q) == (sp.oo, None)


def test_randomized_response_is_a_list_of_points() -> None:
    pair = randomized_response(R(3, 4))
    assert pieces(pair) == ()
    assert [(p.value, p.loss) for p in points(pair)] == [(0, -sp.log(3)), (1, sp.log(3))]
    assert points(PAIRS["gaussian"]()) == ()


def test_points_without_q_carry_infinite_loss() -> None:
    support = Support("points", sp.S.Zero, R(3), tuple(map(sp.Integer, range(4))))
    half = R(1, 2)
    masses = ((half, half, sp.S.Zero, sp.S.Zero), (half, sp.S.Zero, half, sp.S.Zero))
    found = points(Pair(x, support, masses, (sp.S.Zero, sp.S.One), (sp.S.One, sp.S.Zero)))
    assert [point.loss for point in found] == [0, -sp.oo, sp.oo]


@pytest.mark.parametrize(
    ("density", "word"),
    [
        (sp.exp(-sp.Abs(sp.sin(x)) - x**2), "infinitely many kinks"),
        (sp.exp(-(sp.floor(x) ** 2)), "floor"),
    ],
)
def test_what_cannot_be_cut_is_refused(density: sp.Expr, word: str) -> None:
    with pytest.raises(InputError, match=word):
        pieces(plain(density, density.subs(x, x - 1)))


def test_kinks_in_an_open_order_ask_for_values() -> None:
    width, shift = sp.symbols("w D", positive=True)
    line = Support("interval", sp.S.Zero, width + shift)
    pair = plain(shifted(1 / width, x <= width), shifted(1 / width, x >= shift), line)
    with pytest.raises(InputError, match="give values to D, w"):
        pieces(pair)


def test_finitely_many_waves_are_fine() -> None:
    density = sp.exp(-sp.Abs(sp.sin(x)))
    found = pieces(plain(density, density.subs(x, x - 1), Support("interval", -R(3), R(3))))
    assert any(piece.upper == 0 for piece in found) or any(
        abs(sp.N(piece.upper, 30)) < R(1, 10**25) for piece in found
    )


@pytest.mark.parametrize(
    "loss",
    [
        -sp.log(x**2 + 1),
        sp.log(1 + 1 / (x**2 + 1)),
        -sp.log(sp.Rational(99, 100) + 1 / (50 * (x**2 + 1))),
        sp.log(sp.Rational(1, 2) + (x**2 + 1) ** -2),
        sp.log(1 + x**2 * sp.exp(-x)),
        sp.log(2 + x**3 * sp.exp(-(x**2))),
        sp.log(3 + x / (1 + x**2)),
        sp.log(1 + (x - 1) ** 4) - x,
        sp.log(sp.exp(x) + sp.exp(-2 * x)),
        sp.log(sp.Rational(1, 3) + sp.exp(-((x - 1) ** 2)) * 2 / 3),
    ],
)
def test_named_slopes_are_what_numbers_show(loss):
    """Between the cuts of (−∞, ∞) the loss moves the way that its name says."""
    parts = monotone_cuts(loss, x, -sp.oo, sp.oo)
    assert [low for low, _, _ in parts[1:]] == [high for _, high, _ in parts[:-1]]
    function = sp.lambdify(x, loss, "mpmath")
    for lower, upper, slope in parts:
        low, high = max(float(lower), -9.0), min(float(upper), 9.0)
        with mpmath.workdps(60):
            values = [function(low + (high - low) * mpmath.mpf(k) / 40) for k in range(1, 40)]
            moves = [after - before for before, after in pairwise(values)]
        if slope != "unknown":
            assert all(move > 0 if slope == "increasing" else move < 0 for move in moves)


def test_a_slope_is_told_at_an_end_where_it_is_a_long_root_between():
    """(log x)·u² − (x − 1)²/2 rises from u to (1 + √(1 + 4u²))/2 and then falls."""
    u = sp.Symbol("u", positive=True)
    loss = u**2 * sp.log(x) - (x - 1) ** 2 / 2
    turn = (1 + sp.sqrt(1 + 4 * u**2)) / 2
    (rise, fall) = monotone_cuts(loss, x, u, u + 1)
    assert (rise[0], fall[1]) == (u, u + 1)
    assert sp.simplify(rise[1] - turn) == sp.simplify(fall[0] - turn) == 0
    assert (rise[2], fall[2]) == ("increasing", "decreasing")


@pytest.mark.parametrize("name", PAIRS)
def test_every_example_is_a_pair(name: str) -> None:
    pair = PAIRS[name]()
    assert sum(pair.p_weights) == 1
    assert sp.expand(sum(pair.q_weights) - 1) == 0


@pytest.mark.slow_cases("densities1-support1", "densities2-support2", "densities3-support3")
@pytest.mark.parametrize(
    ("densities", "support"),
    [
        (("exp(-4/x)/x**4",), (0, sp.oo)),
        (("exp(-16/x**2)/x**3",), (0, sp.oo)),
        (("(pi/2 + atan(2*x/3))/cosh(x/3)",), (-sp.oo, sp.oo)),
        (("exp(-abs(x)**3)*(2 + cos(9*x))",), (-sp.oo, sp.oo)),
        (("exp(3*x/10)/sqrt(1 - x**2)", "exp(-x/7)/sqrt(1 - x**2)"), (-1, 1)),
        (("sqrt(2 + x)", "exp(-x**4)"), (-1, 1)),
    ],
)
def test_no_formula_waits_for_the_value_of_a_normaliser(densities, support, monkeypatch):
    """It cancels where both laws have one, and is a constant of the loss where they have two."""
    x = sp.Symbol("x", real=True)
    laws = [sp.sympify(own, locals={"x": x}) for own in densities]
    make = Mechanism.additive if len(laws) == 1 else Mechanism.from_pair
    made = make(*laws, x, support=support, normalize=True)
    for sampled in (made, made.subsample("poisson", "1/7")):
        pair = sampled.pair()
        monkeypatch.setattr(MassIntegral, "_eval_evalf", lambda *_: pytest.fail("a value"))
        found = pieces(pair)
        monkeypatch.undo()
        losses = [p.loss for p in found if not p.loss.is_infinite]
        assert any(p.log_p is not None and p.log_p.has(MassIntegral) for p in found)
        assert losses
        for loss in losses:
            assert len(loss.atoms(MassIntegral)) in {0, len(laws) if len(laws) > 1 else 0}


def test_a_weight_without_value_is_a_probability():
    """No value above 1 decides the sign of 1 − w: the logarithm was that of what is negative."""
    made = symdp.Mechanism.from_toml(
        'name = "contaminated"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[parameters]\n'
        's = "positive"\nw = "open probability"\n[noise]\ndensity = "((1 - w)*exp(-x**2/(2*s**2))'
        ' + w/10*exp(-x**2/(200*s**2)))/(s*sqrt(2*pi))"\n'
    )
    (piece,) = pieces(made.pair())
    values = {"s": 2, "w": sp.Rational(1, 20), "x": 3}
    own = piece.log_q.subs({y: values[y.name] for y in piece.log_q.free_symbols})
    normal = [math.exp(-9 / (2 * s * s)) / (s * math.sqrt(2 * math.pi)) for s in (2, 20)]
    truth = math.log(0.95 * normal[0] + 0.05 * normal[1])
    assert float(own.evalf(20)) == pytest.approx(truth, rel=1e-14)


def test_nothing_is_pulled_out_that_cancels_at_the_other_end():
    """Of x³ + log(1 + e^{x − x³}) doubles keep −999936 at −10⁶, and farther out a mass of 0."""
    form = log_form(sp.exp(x**3) + sp.exp(x), x, sp.S.Zero).to_expression()
    found = compile_numpy(form, [x])(np.asarray([-1e6, 10.0]))
    assert found == pytest.approx([-1e6, 1e3], rel=1e-15)


def test_bessel_functions_of_the_second_kind_have_no_zeros_at_positive_places():
    """Balls of K_ν shrink with it: a search in them ended after 15 s, without an answer."""
    assert known_roots(sp.besselk(1, sp.sqrt(1 + x**2)), x, -sp.oo, sp.oo) == ()
    less = sp.besselk(1, x) - sp.Rational(1, 2)  # the difference has one, and keeps it
    (root,) = roots_between(less, x, sp.Rational(1, 4), sp.Integer(3))
    assert abs(mpmath.besselk(1, mpmath.mpf(root.p) / root.q) - 0.5) < 1e-12


WHOLE = sp.Symbol("k", integer=True)
# A mass whose formula at 0 is another, of the same value, has no piece of its own there.
ONE_POINT = {
    "shifted by one": (sp.exp(-sp.Abs(WHOLE - 1) / 3), sp.exp(-sp.Abs(WHOLE) / 3), 2),
    "another rate": (sp.exp(-sp.Abs(WHOLE - 1)), sp.exp(-sp.Abs(WHOLE) / 2), 2),
    "written at 0": (
        sp.Piecewise(
            (sp.exp(-WHOLE - 1), WHOLE > 0),
            (sp.exp(-1), sp.Eq(WHOLE, 0)),
            (sp.exp(2 * WHOLE), True),
        ),
        sp.exp(-sp.Abs(WHOLE) / 2),
        2,
    ),
    "another mass at 0": (
        sp.Piecewise((2, sp.Eq(WHOLE, 0)), (sp.exp(-sp.Abs(WHOLE)), True)),
        sp.exp(-sp.Abs(WHOLE) / 2),
        3,
    ),
}


@pytest.mark.parametrize("name", ONE_POINT)
def test_one_point_is_a_piece_only_where_its_mass_is_another(name):
    p, q, count = ONE_POINT[name]
    pair = Mechanism.from_pair(p, q, WHOLE, "integers", normalize=True).pair("remove")
    assert len(pieces(pair)) == count


def test_a_scale_that_is_one_over_a_logarithm_ends():
    """δ(1/5) = (1 − e^{1/5}·7/10)/(1 + 7/10): losses are ±log(10/7) and what lies between."""
    noise = symdp.mechanisms.discrete_laplace(b=1 / sp.log(sp.Rational(10, 7)))
    answer = symdp.compose(noise).delta(sp.Rational(1, 5))
    assert answer.value == pytest.approx((1 - 0.7 * math.exp(0.2)) / 1.7, rel=1e-12)


def test_roots_of_high_order_are_left_to_values():
    """As a polynomial in a thousandth root this has degree 3 001: factoring it takes minutes."""
    x = sp.Symbol("x", positive=True)
    power = sp.Rational(3001, 1000)
    (root,) = roots_between(x**power + x - 3, x, sp.S.Zero, sp.oo)
    assert abs(float(root**power + root - 3)) < 1e-15
    assert 1 < root < 2
