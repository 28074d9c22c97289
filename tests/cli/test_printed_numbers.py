"""What is printed: bounds on their safe side, and every value between its own bounds."""

from __future__ import annotations

import json
import math
import random
import re
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import pytest

from symdp import AccuracyError, Guarantee, InputError, Ledger, compose, mechanisms
from symdp.decimal_text import (
    exponential,
    formatted,
    given,
    rounded,
    rounded_exponential,
    scientific,
)
from symdp.methods import names
from symdp.questions.certificate import Certificate

COMPOSED = {
    "gaussian": (mechanisms.gaussian(sigma=2), 5),
    "sampled gaussian": (mechanisms.gaussian(sigma=2).subsample("poisson", "1/100"), 2000),
    "laplace": (mechanisms.laplace(b=2), 1),
}
SIDES = ("remove", "add", "both")
DECIMAL = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@cache
def composed(name):
    return compose(*COMPOSED[name])


def answers(name, method):
    """Answers in each direction to δ in the bulk, and in both to δ far out and to ε."""
    steps = composed(name)
    target = 0.05 if name == "laplace" else 1e-5
    asked = [(steps.delta, 0.4, side) for side in SIDES]
    asked += [(steps.delta, 4.0, "both"), (steps.epsilon, target, "both")]
    for ask, value, side in asked:
        try:
            yield ask(value, method=method, direction=side)
        except (AccuracyError, InputError):  # no answer prints nothing
            continue


def exact(number):
    return Decimal(number) if isinstance(number, str) else Decimal(repr(number))


@pytest.mark.slow_cases(
    "contour-sampled gaussian",
    "msd:0-sampled gaussian",
    "msd:0-laplace",
    "msd:1-sampled gaussian",
    "msd:2-sampled gaussian",
    "tilted-edgeworth:2-laplace",
    "edgeworth:1-laplace",
    "edgeworth:2-laplace",
    "prv-gaussian",
    "prv-sampled gaussian",
    "prv-laplace",
    "tilted-prv-gaussian",
    "tilted-prv-sampled gaussian",
    "tilted-prv-laplace",
    "spa-bounds-gaussian",
    "spa-bounds-laplace",
    "eeai-sampled gaussian",
    "eeai-laplace",
    "moments-plain-laplace",
    "moments-variance-sampled gaussian",
    "moments-variance-laplace",
    "lugannani-rice-laplace",
    "berry-esseen-sampled gaussian",
    "berry-esseen-laplace",
    "buckets-gaussian",
    "buckets-sampled gaussian",
    "buckets-laplace",
    "fourier-gaussian",
    "fourier-sampled gaussian",
    "fourier-laplace",
    "gdp-e-laplace",
    "spa-bounds-sampled gaussian",
)
@pytest.mark.parametrize("name", COMPOSED)
@pytest.mark.parametrize("method", names())
def test_every_value_lies_between_its_bounds(name, method):
    seen = 0
    for answer in answers(name, method):
        seen += 1
        own = json.loads(json.dumps(answer.to_json()), parse_float=Decimal)
        value = Decimal(own[answer.quantity])
        low, high = own["lower"], own["upper"]
        assert low is None or Decimal(low) <= value
        assert high is None or value <= Decimal(high)
        _check_text(answer)
        assert answer.lower is None or answer.lower <= answer.value
        assert answer.upper is None or answer.value <= answer.upper
    assert seen or method in {"clt", "eeai", "gdp-e", "gaussian", "edgeworth:1"}


def _check_text(answer):
    """The text's value lies between the text's bounds, and is no smaller than a bound."""
    shown = answer.delta_text() if answer.quantity == "delta" else answer.epsilon_text()
    low, high = answer.bound_texts()
    assert low is None or Decimal(low) <= Decimal(shown)
    assert high is None or Decimal(shown) <= Decimal(high)
    assert f"{shown}" in str(answer)
    if answer.kind == "bound":
        for text in (shown, f"{answer:.3g}", f"{answer:.9e}", f"{answer:.25f}"):
            if answer.quantity == "epsilon":
                assert Fraction(text) >= Fraction(answer.epsilon)
            elif answer.log_delta > -math.inf:
                size = Decimal(answer.log_delta).exp()
                assert Decimal(text) >= size * (1 - Decimal(10) ** -20)
    if high is not None and answer.quantity == "delta" and answer.log_upper > -math.inf:
        assert Decimal(high) >= Decimal(answer.log_upper).exp() * (1 - Decimal(10) ** -20)


@pytest.mark.slow_cases("3")
@pytest.mark.slow_cases("40")
@pytest.mark.parametrize("digits", [3, 40])
def test_a_certificate_prints_its_value_between_its_ends(digits):
    steps = composed("gaussian")
    for proved in (
        steps.certify(4.0, digits=digits, direction="remove"),
        steps.certify(80.0, digits=digits, direction="remove"),
        steps.certify_epsilon(1e-5, digits=digits, direction="remove"),
    ):
        own = proved.to_json()
        assert Decimal(own["lower"]) <= exact(own[proved.quantity]) <= Decimal(own["upper"])
        assert proved.lower <= proved.value <= proved.upper


@pytest.mark.slow
def test_the_certificate_that_was_outside(shell):
    command = "certify gaussian sigma=2 --sampling poisson --rate 0.01 -n 2000 --epsilon 4 --json"
    own = shell(command).json
    assert own["lower"].startswith("1.1800914860522141")
    assert Decimal(own["lower"]) <= exact(own["delta"]) <= Decimal(own["upper"])


def test_a_bound_is_printed_rounded_up(shell):
    line = "epsilon gaussian sigma=1.12 --sampling poisson --rate 256/60000 -n 14063 --delta 1e-5"
    own = shell(f"{line} --method moments --json").json
    text = shell(f"{line} --method moments").out
    printed = DECIMAL.findall(text.splitlines()[0])[-1]
    assert Decimal(printed) >= Decimal(own["epsilon"])
    assert Decimal(printed) - Decimal(own["epsilon"]) < Decimal("1e-11")


def test_a_table_rounds_its_bounds_outwards(shell):
    line = "curve gaussian sigma=2 -n 5 --epsilon-range 0 4 --points 5 --method eeai"
    points = shell(f"{line} --json").json["points"]
    rows = [row.split() for row in shell(line).out.splitlines()[1 : len(points) + 1]]
    assert len(rows) == len(points)
    for row, point in zip(rows, points, strict=True):
        if point["kind"] == "bound":
            assert Decimal(row[1]) >= Decimal(repr(point["delta"])) * (1 - Decimal("1e-15"))
            assert Decimal(row[0]) >= Decimal(repr(point["epsilon"]))


def test_a_value_off_by_rounding_is_put_back_and_any_other_refused():
    made = {"kind": "exact", "method": "contour", "direction": "add", "n": 1}
    put = Guarantee(1.0, -9.0, log_lower=-9.0 + 1e-15, log_upper=-8.0, **made)
    assert put.log_delta == -9.0 + 1e-15
    for log_delta, lower, upper in (
        (-9.0, -8.9, -8.0),
        (-9.0, -10.0, -9.1),
        (-9.0, -8.0, -10.0),
        (math.nan, -10.0, -8.0),
        (math.nan, None, None),
    ):
        with pytest.raises(AccuracyError, match="please report it"):
            Guarantee(1.0, log_delta, log_lower=lower, log_upper=upper, **made)
    with pytest.raises(AccuracyError, match="please report it"):
        Guarantee(1.0, -9.0, quantity="epsilon", epsilon_lower=2.0, epsilon_upper=3.0, **made)


def test_decimals_lie_on_the_side_asked_for():
    chance = random.Random(7)
    for _ in range(500):
        x = chance.uniform(-1, 1) * 10.0 ** chance.randint(-30, 30)
        digits = chance.randint(1, 17)
        low, near, high = (rounded(x, digits, side) for side in ("down", "nearest", "up"))
        assert Fraction(low) <= Fraction(x) <= Fraction(high)
        assert Fraction(low) <= Fraction(near) <= Fraction(high)
        assert near == f"{x:.{digits}g}"
        assert Fraction(high) - Fraction(low) <= abs(Fraction(x)) / 10 ** (digits - 1)
        for specification in (".3g", ".7e", ".4f", "14.2g", ".20e", ".30f"):
            low, high = (formatted(x, specification, side) for side in ("down", "up"))
            assert Fraction(low.strip()) <= Fraction(x) <= Fraction(high.strip())
        log = chance.uniform(-2000, 0)
        low, high = (rounded_exponential(log, digits, side) for side in ("down", "up"))
        assert Decimal(low) <= Decimal(log).exp() <= Decimal(high)
        low, high = (exact(exponential(log, side)) for side in ("down", "up"))
        assert low < Decimal(log).exp() < high


def _random_guarantee(chance):
    """Return an answer of random size, interval and kind, and the number not to be undercut."""
    kind = chance.choice(("exact", "bound", "estimate"))
    width = 10.0 ** chance.randint(-16, -1)
    made = {"kind": kind, "method": "contour", "direction": "add", "n": 1}
    if chance.random() < 0.5:
        value = chance.uniform(0, 1) * 10.0 ** chance.randint(-12, 3)
        upper = chance.choice((None, value * (1.0 + width)))
        ends = {"epsilon_lower": None if upper is None else 0.0, "epsilon_upper": upper}
        given_ = {"quantity": "epsilon", "target_delta": 1e-5, **ends}
        return Guarantee(value, math.log(1e-5), **given_, **made), Decimal(upper or value)
    value = -chance.expovariate(1.0) * 10.0 ** chance.randint(-3, 3)
    upper = chance.choice((None, min(0.0, value + width)))
    ends = {"log_lower": None if upper is None else value - width, "log_upper": upper}
    with localcontext(prec=40):
        return Guarantee(1.0, value, **ends, **made), Decimal(
            value if upper is None else upper
        ).exp()


def test_no_answer_is_printed_smaller_than_its_upper_end():
    """However many digits, as text and by a format."""
    chance = random.Random(11)
    for _ in range(2000):
        answer, upper = _random_guarantee(chance)
        digits = chance.randint(1, 17)
        by_delta = answer.quantity == "delta"
        text = answer.delta_text(digits) if by_delta else answer.epsilon_text(digits)
        shown = [text]
        if abs(answer.log_delta) < 600:
            shown += [f"{answer:.{digits}{kind}}" for kind in "eg"]
            shown.append(f"{answer:.20f}")
        if answer.kind == "estimate":  # promises nothing
            continue
        # A double has its own rounding, of one unit in its last place outwards.
        assert all(Decimal(one) >= upper * (1 - Decimal(10) ** -20) for one in shown), answer
        # As many figures as are known: what lies between the ends is more than what is rounded.
        _, low, high = answer._value_and_ends
        gap = 0.0
        if answer.kind_for_pair == "exact" and None not in (low, high) and low < high:
            gap = -math.expm1(low - high) if by_delta else (high - low) / abs(high or 1.0)
        gap = 0.1 if answer.sign == "≤" else min(10 * gap, 0.1)
        last = max(Decimal(10) ** (1 - min(digits, 12)), Decimal(gap))
        assert Decimal(text) <= upper * (1 + 2 * last)
        assert f"{answer.delta_text() if by_delta else answer.epsilon_text()}" in str(answer)


def test_what_was_given_is_printed_as_it_was_given():
    for x in (1e-5, 0.1, 0.1 + 0.2, 0.499999999999999, 1.0, 1e-300, 12345678.9):
        assert float(given(x)) == x
    assert (given(1e-5), given(2.0)) == ("1e-05", "2")
    assert "ε(δ = 1e-05)" in composed("gaussian").epsilon(1e-5)._repr_html_()


def test_scientific_ends_of_powers_of_ten():
    assert scientific(Fraction(1, 1000), 4, up=True) == "1.000e-3"
    assert scientific(Fraction(9999, 10**6), 2, up=True) == "1.0e-2"
    assert scientific(Fraction(0), 4, up=False) == "0"


def test_formats_and_pictures_for_notebooks():
    steps = composed("gaussian")
    answer = steps.delta(1.0, method="moments")
    assert f"{answer}" == str(answer)
    assert float(f"{answer:.2e}") >= float(answer) > float(f"{float(answer):.17g}") * (1 - 1e-15)
    tiny = steps.delta(100.0)
    assert Decimal(f"{tiny:.3e}") > 0
    assert float(tiny) == 0.0
    curve = steps.delta([1.0, 2.0])
    assert repr(curve).startswith("Curve(2 points from ε = 1, δ = ")
    assert repr(curve[:0]) == "Curve(no points)"
    ledger = Ledger([(mechanisms.laplace(b=2), 3)])
    assert repr(ledger) == "Ledger(1 distinct step, 3 in all)"
    many = compose([(mechanisms.laplace(b=b), 1) for b in range(1, 60)])
    assert repr(many).endswith("56 more distinct steps, 59 steps in all)")
    for thing in (answer, tiny, curve, ledger, many, steps, steps.certify(1.0)):
        html = thing._repr_html_()
        assert html.count("<") == html.count(">")
    assert "&lt;" in Guarantee(1.0, -9.0, "estimate", "clt", "add", 1, advice="a < b")._repr_html_()
    assert "… and 19 more" in many._repr_html_()
    assert isinstance(steps.certify(1.0), Certificate)
    with pytest.raises(ValueError, match="format"):
        format(answer, "nonsense")


def test_a_certified_double_lies_between_decimal_ends():
    """The middle of 1.26125e-15 and 1.26126e-15, printed to so few digits, was the lower end."""
    steps = compose(mechanisms.discrete_laplace(b=10**16), 1000)
    answer = steps.certify(0, digits=3).to_json()
    value = answer["delta"]
    assert Decimal(answer["lower"]) <= Decimal(value) <= Decimal(answer["upper"])
