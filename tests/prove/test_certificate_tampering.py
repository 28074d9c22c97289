"""Certificates that were tampered with: what is false is refused, and work is counted."""

from __future__ import annotations

import copy
import json
import random
from fractions import Fraction

import pytest

import symdp
from symdp import mechanisms
from symdp.errors import InputError, SymdpError
from symdp.prove import check_certificate as checker
from symdp.questions.certificate_file import certificate, check

MADE = {
    "coin": (lambda: mechanisms.randomized_response(epsilon_0="1/2"), 40, "3", 8, "remove"),
    "sampled coin": (
        lambda: mechanisms.randomized_response(epsilon_0=1).subsample("poisson", "1/10"),
        30,
        "1",
        6,
        "both",
    ),
    "choices": (
        lambda: mechanisms.k_ary_randomized_response(epsilon_0=1, k=5), 20, "2", 6, "add"
    ),
    "black box": (
        lambda: mechanisms.approximate_dp(epsilon_0="1/4", delta_0="1e-6"), 30, "3", 4, "remove"
    ),
    "whole numbers": (lambda: mechanisms.discrete_laplace(b=5), 50, "2", 6, "remove"),
    "normal whole numbers": (lambda: mechanisms.discrete_gaussian(sigma=4), 20, "1", 6, "remove"),
    "staircase": (
        lambda: mechanisms.staircase(epsilon_0="1/2", gamma_0="1/3"), 30, "2", 6, "remove"
    ),
    "range": (lambda: mechanisms.exponential(epsilon_0="1/2"), 60, "3", 6, "remove"),
    "normal": (lambda: mechanisms.gaussian(sigma=5), 40, "2", 6, "remove"),
    "sampled normal": (
        lambda: mechanisms.gaussian(sigma=2).subsample("poisson", "1/50"), 1000, "1", 6, "remove"
    ),
    "sampled normal, added": (
        lambda: mechanisms.gaussian(sigma=2).subsample("poisson", "1/50"), 1000, "1", 6, "add"
    ),
    "a hundred thousand": (
        lambda: mechanisms.gaussian(sigma=2).subsample("poisson", "1/500"), 10**5, "1", 6, "remove"
    ),
    "small delta": (lambda: mechanisms.gaussian(sigma=10), 40, "4", 6, "remove"),
    "negative epsilon": (lambda: mechanisms.gaussian(sigma=10), 200, "-1/2", 6, "remove"),
    "Laplace": (lambda: mechanisms.laplace(b=5), 1000, "12", 6, "remove"),
    "sampled Laplace": (
        lambda: mechanisms.laplace(b=2).subsample("poisson", "1/50"), 2000, "1", 6, "remove"
    ),
    "logistic": (lambda: mechanisms.logistic(s=4), 100, "3", 6, "remove"),
    "skew": (lambda: mechanisms.gumbel(b=4), 100, "3", 6, "add"),
    "two coins": (
        lambda: symdp.compose(
            [(mechanisms.randomized_response(epsilon_0="1/2"), 10),
             (mechanisms.randomized_response(epsilon_0=1), 10)]
        ), 1, "4", 6, "remove",
    ),
    "two kinds": (
        lambda: symdp.compose([(mechanisms.gaussian(sigma=6), 40), (mechanisms.laplace(b=9), 60)]),
        1, "2", 6, "remove",
    ),
}  # fmt: skip
QUICK = ("coin",)
CHANGES = {
    "a little up": lambda v: str(v + abs(v) / 10**5 + Fraction(1, 10**30)),
    "a little down": lambda v: str(v - abs(v) / 10**5 - Fraction(1, 10**30)),
    "up": lambda v: str(v * 2 + 1),
    "down": lambda v: str(v / 2),
    "zero": lambda v: "0",
    "negative": lambda v: str(-v - 1),
    "huge": lambda v: "1e300",
    "no number": lambda v: "nan",
    "a double": lambda v: float(v) if abs(v) < 10**300 else 1e300,
    "many digits": lambda v: "9" * 1_000_000,
    "a list": lambda v: [[[str(v)]]],
    "nothing": lambda v: None,
    "code": lambda v: "__import__('os').system('true')",
}
REFUSED = (
    checker.Refused,
    OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError, SyntaxError,
)  # fmt: skip


def made(name):
    build, count, epsilon, digits, direction = MADE[name]
    steps = build()
    steps = steps if isinstance(steps, symdp.Composition) else symdp.compose(steps, count)
    return json.loads(
        json.dumps(certificate(steps, epsilon=epsilon, digits=digits, direction=direction))
    )


def leaves(value, place=()):
    """Yield the places of all that stands in a certificate."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inner:
        if isinstance(one, dict | list):
            yield from leaves(one, (*place, key))
        else:
            yield (*place, key)


def put(told, place, change):
    told = copy.deepcopy(told)
    holder = told
    for key in place[:-1]:
        holder = holder[key]
    try:
        holder[place[-1]] = change(Fraction(holder[place[-1]]))
    except (ValueError, ZeroDivisionError):  # a formula, or a word
        holder[place[-1]] = change(Fraction(1))
    return told


def is_true(told):
    """Whether a claim holds, by balls and from the certificate's own text."""
    claim, steps = told["claim"], []
    for one in told["steps"]:
        lists = [law if isinstance(law, list) else [law] for law in one["laws"]]
        mixtures = [
            [" + ".join(f"({w})*({law[k]})" for w, law in zip(one[key], lists, strict=True))
             for k in range(len(lists[0]))]
            for key in "pq"
        ]  # fmt: skip
        support = one["support"]
        if support == "points":
            support = {"points": list(range(len(lists[0])))}
        else:
            mixtures = [texts[0] for texts in mixtures]
        if support == "integers":
            support = '"integers"'
        elif isinstance(support, dict):
            support = "{ points = " + str(support["points"]) + " }"
        else:
            far = {
                end: ("oo", "-oo")[place == 0]
                for place, end in enumerate(support)
                if end == "1e300"
            }
            support = json.dumps([far.get(end, end) for end in support])
        text = (
            f'name = "told"\nvariable = "x"\nsupport = {support}\n[pair]\n'
            f"P = {json.dumps(mixtures[0])}\nQ = {json.dumps(mixtures[1])}\n"
        )
        steps.append((symdp.Mechanism.from_toml(text), int(one["count"])))
    try:
        total = symdp.compose(steps)
    except InputError:  # P or Q has not the mass 1: no laws, of which nothing is said
        return True
    proved = total.certify(Fraction(claim["epsilon"]), 12, claim["direction"])
    low, high = Fraction(proved.lower_decimal), Fraction(proved.upper_decimal)
    slack = Fraction(1, 10**9)  # where a constant is told as a decimal
    return Fraction(claim["lower"]) <= high * (1 + slack) and low * (1 - slack) <= Fraction(
        claim["upper"]
    )


def places_of(told, some):
    """Return all places of claims, and some of the witness."""
    every = list(leaves(told))
    claims = [place for place in every if place[0] != "witness"]
    hints = [place for place in every if place[0] == "witness"]
    return claims, random.Random(1).sample(hints, min(some, len(hints)))


def accepted(told):
    """Whether the checker accepts."""
    try:
        checker.check(told)
    except REFUSED:
        return False
    return True


def tampered(name, some):
    told = made(name)
    assert accepted(told)
    claims, hints = places_of(told, some)
    found = 0
    for place in claims + hints:
        for change in CHANGES.values():
            other = put(told, place, change)
            if other == told or not accepted(other):
                continue
            found += 1
            if place in claims and place[-1] != "format":
                assert is_true(other), (place, other["claim"])
    return found


@pytest.mark.slow_cases(*(name for name in MADE if name not in QUICK))
@pytest.mark.parametrize("name", MADE)
def test_no_false_claim_is_accepted(name):
    tampered(name, 12 if name in QUICK else 40)


@pytest.mark.quick_cases("no number", "code")
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_claim_of_a_normal_is_refused(change, certified):
    for place in (
        ("claim", "epsilon"),
        ("claim", "upper"),
        ("claim", "lower"),
        ("steps", 0, "count"),
    ):
        other = put(certified, place, CHANGES[change])
        if other != certified and accepted(other):
            assert is_true(other), place


@pytest.fixture(scope="module")
def certified():
    return made("normal")


@pytest.mark.slow_cases("1", "3", "5", "6", "10", "12", "13", "20", "21")
@pytest.mark.parametrize(
    ("place", "text"),
    [
        (("witness", "remove", "terms"), "1"),
        (("witness", "remove", "terms"), "3"),
        (("witness", "remove", "tilt"), "1/100"),
        (("witness", "remove", "period"), "1"),
        (("witness", "bits"), "63"),
        (("witness", "rule", 3, 0), "1/2"),
        (("witness", "rule", 3, 1), "1/20"),
        (("witness", "remove", "steps", 0, "panels", 0, 1), "1000"),
        (("witness", "remove", "steps", 0, "panels", 0, 0), "-1e9"),
        (("witness", "remove", "steps", 0, "cells", 1), "-1"),
        (("witness", "remove", "steps", 0, "cells", 1), "0"),
        (("claim", "direction"), "both"),
        (("steps", 0, "laws", 0), "exp(-x**2/50)/(5*(2*pi)**(1/2))*11/10"),
        (("steps", 0, "laws", 0), "exp(-x**2/49)/(7*pi**(1/2))"),
        (("steps", 0, "laws", 0), "exp(" * 300 + "x" + ")" * 300),
        (("steps", 0, "laws", 0), "-" * 3000 + "x"),
        (("steps", 0, "laws", 0), "9**9**9**9"),
        (("steps", 0, "laws", 0), "x.__class__"),
        (("steps", 0, "laws", 0), "open('x')"),
        (("steps", 0, "laws", 0), "+".join(["x"] * 1900)),
        (("steps", 0, "laws", 0), "((1e9999**64)**64)**64"),
        (("steps", 0, "laws", 0), "(x + 1e300)**64**x"),
        (("steps", 0, "laws", 0), "exp(-x**2/50, 2)"),
        (("steps", 0, "support", 0), "0"),
        (("steps", 0, "p", 0), "1/2"),
    ],
    ids=range(25),
)
def test_a_changed_field_is_refused(place, text, certified):
    if place[1:] == ("direction",):
        certified = copy.deepcopy(certified)  # the witness of one direction alone
    assert not accepted(put(certified, place, lambda _: text))


def test_a_panel_that_is_left_out_is_mass_outside(certified):
    """Its mass counts as an infinite loss, and |M| is that of the other panels."""
    other = copy.deepcopy(certified)
    hint = other["witness"]["remove"]["steps"][0]
    row, cut = hint["panels"][1], hint["cells"][1]
    middle = len(row) // 2
    hint["panels"][1:2] = [row[:middle], row[middle:]]
    hint["cells"][1:2] = [cut, cut]
    with pytest.raises(checker.Refused, match="upper end"):
        checker.check(other)


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[1].insert(1, rows[1][1]),
        lambda rows: rows[1].reverse(),
        lambda rows: rows.append(rows[0]),
        lambda rows: rows[0].insert(0, rows[1][0]),
    ],
    ids=["twice", "falling", "again", "overlap"],
)
def test_panels_rise_and_do_not_overlap(change, certified):
    other = copy.deepcopy(certified)
    hint = other["witness"]["remove"]["steps"][0]
    change(hint["panels"])
    hint["cells"] = (hint["cells"] * 2)[: len(hint["panels"])]
    with pytest.raises(checker.Refused, match=r"overlap|empty"):
        checker.check(other)


def test_panels_outside_of_the_support_are_refused():
    other = made("range")
    hint = other["witness"]["remove"]["steps"][0]
    hint["panels"][0][0] = "-1000000"
    with pytest.raises(checker.Refused, match="outside of the support"):
        checker.check(other)


@pytest.mark.quick_cases("rule")
@pytest.mark.parametrize("key", ["panels", "cells", "rule"])
def test_very_long_lists_are_refused(key, certified):
    other = copy.deepcopy(certified)
    hint = other["witness"] if key == "rule" else other["witness"]["remove"]["steps"][0]
    hint[key] = hint[key] * (200_000 // len(json.dumps(hint[key])) + 1)
    assert not accepted(other)


@pytest.mark.slow
@pytest.mark.parametrize("cut", ["100000", "1000000000"])
def test_many_cells_are_too_much_work(cut, certified):
    other = copy.deepcopy(certified)
    other["witness"]["remove"]["steps"][0]["cells"][1] = cut
    with pytest.raises(checker.Refused, match="too much work"):
        checker.check(other)


@pytest.mark.slow
def test_work_is_counted_whatever_a_file_asks(certified):
    """Many bits, panels and terms at once."""
    other = copy.deepcopy(certified)
    other["steps"][0]["laws"][0] = "+".join(["exp(-x**2/50)/(5*(2*pi)**(1/2))/60"] * 60)
    other["witness"]["bits"] = "2048"
    hint = other["witness"]["remove"]["steps"][0]
    hint["panels"] = [[str(Fraction(k, 10)) for k in range(-500, 500)]]
    hint["cells"] = ["4"]
    with pytest.raises(checker.Refused, match="too much work"):
        checker.check(other)


@pytest.mark.slow
def test_a_key_that_is_there_twice_is_refused(tmp_path):
    """In every object of the file: what a person reads first is not what the last one says."""
    text = json.dumps(made("coin"))
    path = tmp_path / "proof.json"
    places = [k for k, sign in enumerate(text) if sign == "{"]
    for place in places:
        (key, *_), _ = json.JSONDecoder().raw_decode(text, place)
        path.write_text(f'{text[: place + 1]}"{key}": "0", {text[place + 1 :]}')
        assert check(path) == (2, "not a certificate: a key is there twice")
    path.write_text(text)
    assert check(path).code == 0


def test_no_point_counts_twice():
    """An index below 0 would be one from the end of a list: a list has all of its points."""
    other = made("coin")
    other["witness"]["remove"]["steps"][0]["range"] = ["-1", "1"]
    assert accepted(other)
    other["steps"][0]["laws"] = ["01", "10"]
    assert not accepted(other)


@pytest.mark.slow
def test_swapped_laws_are_another_claim(certified):
    other = made("sampled normal")
    assert other["claim"]["direction"] == "remove"
    other["claim"]["direction"] = "add"
    other["witness"]["add"] = other["witness"].pop("remove")
    assert not accepted(other)


def random_mechanism(seed):
    """Return a composition that nobody chose, and an ε and a direction."""
    draw = random.Random(seed)
    scale = Fraction(draw.randint(10, 80), 10)
    noise = draw.choice(["gaussian", "laplace", "logistic", "coin", "whole", "mixture", "choices"])
    if noise == "coin":
        step = mechanisms.randomized_response(epsilon_0=1 / scale)
    elif noise == "choices":
        step = mechanisms.k_ary_randomized_response(epsilon_0=1 / scale, k=draw.randint(3, 9))
    elif noise == "whole":
        step = mechanisms.discrete_laplace(b=scale)
    elif noise == "mixture":
        w, wide = Fraction(draw.randint(1, 9), 10), scale * draw.randint(2, 4)
        step = symdp.Mechanism.from_toml(
            'name = "mixture"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[noise]\nsensitivity = 1\n'
            f'density = "{w}*exp(-(x/({scale}))**2/2)/({scale}*sqrt(2*pi))'
            f' + {1 - w}*exp(-(x/({wide}))**2/2)/({wide}*sqrt(2*pi))"\n'
        )
    else:
        name = {"gaussian": "sigma", "laplace": "b", "logistic": "s"}[noise]
        step = getattr(mechanisms, noise)(**{name: scale})
    if noise not in ("whole", "choices") and draw.random() < 0.5:
        step = step.subsample("poisson", Fraction(draw.randint(1, 50), 100))
    count = round(10 ** draw.uniform(1.2, 4))
    steps = symdp.compose(step, count)
    about = steps.epsilon(10 ** draw.uniform(-9, -0.5)).epsilon
    return steps, Fraction(round(about * 1000), 1000), draw.choice(["remove", "add"])


def random_case(seed):
    """Return whether there is a certificate; and claims nudged past the truth are refused."""
    try:
        steps, epsilon, direction = random_mechanism(seed)
        told = certificate(steps, epsilon=epsilon, digits=6, direction=direction)
    except SymdpError:
        return False
    proved = steps.certify(epsilon, 9, direction)
    low, high = Fraction(proved.lower_decimal), Fraction(proved.upper_decimal)
    claim = told["claim"]
    assert Fraction(claim["lower"]) <= high * (1 + Fraction(1, 10**40))
    assert low * (1 - Fraction(1, 10**40)) <= Fraction(claim["upper"])
    assert Fraction(claim["upper"]) <= Fraction(1001, 1000) * Fraction(claim["lower"])
    assert accepted(told)
    for ends in (
        {"upper": str(low * (1 - Fraction(1, 10**7)))},
        {"lower": str(high * (1 + Fraction(1, 10**7)))},
    ):
        false = copy.deepcopy(told)
        false["claim"] |= {"lower": "0", "upper": "1"} | ends
        assert not accepted(false)
    return True


@pytest.mark.quick_cases("16", "45", "63")
@pytest.mark.parametrize("seed", [2, 9, 14, 16, 37, 44, 45, 63, 101, 105])  # the cheap ones
def test_false_claims_about_random_mechanisms_are_refused(seed):
    assert random_case(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_false_claims_about_forty_random_mechanisms_are_refused(first):
    assert sum(random_case(seed) for seed in range(first, first + 10)) >= 4


def test_a_huge_file_is_told_at_once(tmp_path):
    file = tmp_path / "proof.json"
    with file.open("wb") as stream:
        stream.truncate(100_000_000)
    verdict = check(file)
    assert (verdict.code, "\n" in verdict.text) == (2, False)
