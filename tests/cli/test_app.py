"""Commands that succeed: what they print, for people and for programs."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import mpmath
import pytest

import symdp

KEYS = {
    "epsilon",
    "delta",
    "lower",
    "upper",
    "kind",
    "method",
    "direction",
    "count",
    "seconds",
    "relation",
    "sampling",
    "shift",
    "protects",
    "pair",
    "route",
    "mass",
}
GAUSSIAN = "gaussian sigma=1.5 -n 100"

COMPOSITION = """
[[step]]
mechanism = "gaussian"
parameters = { sigma = 4 }
count = 20

[[step]]
mechanism = "laplace"
parameters = { b = "5/2" }
sampling = { scheme = "poisson", rate = 0.1 }
count = 10
"""


def normal_tail(x):
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


def gaussian_delta(epsilon, sigma, count):
    """Return δ(ε) of Gaussian noise, from its closed form at 60 digits."""
    with mpmath.workdps(60):
        mu = mpmath.sqrt(count) / mpmath.mpf(sigma)
        epsilon = mpmath.mpf(epsilon)
        return normal_tail(epsilon / mu - mu / 2) - mpmath.exp(epsilon) * normal_tail(
            epsilon / mu + mu / 2
        )


def test_delta_is_the_closed_form(shell):
    answer = shell(f"delta {GAUSSIAN} --epsilon 40 --json").json
    assert set(answer) == KEYS
    assert answer["delta"] == pytest.approx(float(gaussian_delta(40, "1.5", 100)), rel=1e-12)
    assert answer["lower"] <= answer["delta"] <= answer["upper"]
    assert answer["epsilon"] == 40
    assert answer["kind"] == "exact"
    assert answer["method"] == "contour"
    assert answer["direction"] in {"remove", "add"}
    assert answer["count"] == 100
    assert answer["seconds"] >= 0


def test_epsilon_inverts_delta(shell):
    answer = shell(f"epsilon {GAUSSIAN} --delta 1/100000 --json").json
    assert set(answer) == KEYS
    assert answer["delta"] == pytest.approx(1e-5, rel=1e-14)
    exact = gaussian_delta(answer["epsilon"], "1.5", 100)
    assert float(exact) == pytest.approx(1e-5, rel=1e-11)


def test_one_json_object_in_one_line(shell):
    out = shell(f"delta {GAUSSIAN} --epsilon 1 --json").out
    assert out.count("\n") == 1


def test_values_are_exact(shell):
    third = shell("delta laplace b=1/3 -n 2 --epsilon 1 --json").json
    bound = symdp.compose(symdp.mechanisms.laplace(b="1/3"), 2).delta(1.0)
    assert third["delta"] == bound.delta


@pytest.mark.parametrize("count", ["1000", "1e3", "1000.0", "1E+3"])
def test_integral_decimals_are_counts(shell, count):
    assert shell(f"delta gaussian sigma=50 -n {count} --epsilon 1 --json").json["count"] == 1000


def test_a_huge_count_is_a_count(shell):
    answer = shell("delta gaussian sigma=1e5 -n 1e9 --epsilon 1 --json").json
    assert answer["count"] == 10**9
    assert answer["delta"] == pytest.approx(float(gaussian_delta(1, 10**5, 10**9)), rel=1e-9)


def test_a_negative_epsilon_is_a_number_not_an_option(shell):
    answer = shell(f"delta {GAUSSIAN} --epsilon -2.5 --json").json
    assert answer["epsilon"] == -2.5
    assert answer["delta"] == pytest.approx(float(gaussian_delta("-2.5", "1.5", 100)), rel=1e-12)


def test_below_the_double_range_delta_is_a_decimal_string(shell):
    answer = shell("delta gaussian sigma=5 -n 10 --epsilon 40 --json").json
    assert isinstance(answer["delta"], str)
    with mpmath.workdps(30):
        exact = gaussian_delta(40, 5, 10)
        assert abs(mpmath.mpf(answer["delta"]) / exact - 1) < 1e-11
    assert isinstance(answer["lower"], str)


def test_a_tiny_delta_has_an_epsilon(shell):
    answer = shell("epsilon gaussian sigma=5 -n 10 --delta 1e-300 --json").json
    with mpmath.workdps(30):
        exact = gaussian_delta(answer["epsilon"], 5, 10)
        assert abs(exact / mpmath.mpf("1e-300") - 1) < 1e-9


def test_sampling(shell):
    command = "delta gaussian sigma=2 -n 50 --epsilon 0.1 --json --sampling"
    poisson = shell(f"{command} poisson --rate 1/10").json
    mechanism = symdp.mechanisms.gaussian(sigma=2)
    same = symdp.compose(mechanism.subsample("poisson", "1/10"), 50).delta(0.1)
    assert poisson["delta"] == same.delta
    batch = shell(f"{command} with-replacement --rate 1/10 --batch-size 2").json
    assert batch["delta"] > 0


def test_directions_differ_and_both_is_the_larger(shell):
    command = "delta gumbel b=2 -n 3 --epsilon 0.5 --json --direction"
    remove, add, both = (shell(f"{command} {side}").json for side in ("remove", "add", "both"))
    assert remove["direction"] == "remove"
    assert add["direction"] == "add"
    assert remove["delta"] != pytest.approx(add["delta"], rel=1e-3)
    assert both["delta"] == max(remove["delta"], add["delta"])


def test_a_method_by_name_and_a_missing_bound_is_null(shell):
    answer = shell(f"delta {GAUSSIAN} --epsilon 40 --method msd:1 --json").json
    assert answer["kind"] == "estimate"
    assert answer["lower"] is None
    assert answer["upper"] is None
    assert answer["delta"] == pytest.approx(float(gaussian_delta(40, "1.5", 100)), rel=1e-2)


def test_advice_is_in_json_and_a_warning_for_people(shell):
    command = "delta logistic s=4 -n 50 --epsilon 10 --method edgeworth:4"
    assert shell(f"{command} --json").json["advice"]
    assert "warning: " in shell(command).out


@pytest.mark.parametrize(
    ("method", "words"),
    [("contour", "exact formula"), ("msd:0", "not a guarantee"), ("moments", "proved upper bound")],
)
def test_people_read_what_a_number_is(shell, method, words):
    ran = shell(f"epsilon {GAUSSIAN} --delta 1e-5 --method {method}")
    assert ran.code == 0
    assert ran.out.startswith("ε(δ = 1e-05) = ")
    assert words in ran.out
    assert "direction" in ran.out
    assert "100 steps" in ran.out


def test_one_step_is_what_is_asked_where_no_count_is_said(shell):
    """One release is the commonest question."""
    ran = shell("delta gaussian sigma=1.5 --epsilon 1")
    assert "1 step," in ran.out
    exact = float(gaussian_delta(1, "1.5", 1))
    for words in ("delta gaussian sigma=1.5 --epsilon 1", "delta gaussian sigma=1.5 --epsilon=1"):
        answer = shell(f"{words} --json").json  # the second is read by Typer
        assert (answer["count"], answer["delta"]) == (1, pytest.approx(exact, rel=1e-12))
    assert shell("certify gaussian sigma=1.5 --epsilon 1 --json").json["count"] == 1
    ran = shell("calibrate gaussian --parameter sigma --epsilon 1 --delta 1e-5")
    assert "1 step," in ran.out


def test_a_composition_file(shell, tmp_path):
    file = tmp_path / "steps.toml"
    file.write_text(COMPOSITION, encoding="utf-8")
    answer = shell("delta --epsilon 1 --json --composition", str(file)).json
    assert answer["count"] == 30
    steps = symdp.load_composition(file)
    assert answer["delta"] == steps.delta(1.0).delta
    twice = shell("delta --epsilon 1 --json -n 2 --composition", str(file)).json
    assert twice["count"] == 60
    assert twice["delta"] > answer["delta"]


@pytest.mark.slow
def test_a_mechanism_file(shell, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(
        'name = "own"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[parameters]\nb = "positive"\n'
        '[noise]\ndensity = "exp(-Abs(x)/b)/(2*b)"\n',
        encoding="utf-8",
    )
    own = shell(f"delta {file} b=2 -n 4 --epsilon 0.5 --json").json
    same = shell("delta laplace b=2 -n 4 --epsilon 0.5 --json").json
    assert own["delta"] == pytest.approx(same["delta"], rel=1e-12)


def test_list_names_every_mechanism(shell):
    out = shell("list").out
    for name in symdp.mechanisms.names():
        assert name in out


def test_help_names_every_command_of_this_version_and_no_other(shell):
    ran = shell("--help")
    assert ran.code == 0
    commands = ran.out.partition("Commands:")[2].split("\n")
    names = [line.split()[0] for line in commands if line.startswith("  ") and line[2] != " "]
    assert names == [
        "list", "methods", "derive", "delta", "epsilon", "curve", "verify", "certify", "check",
        "check-claim", "calibrate", "sensitivities", "plan", "train", "card", "compare", "design",
        "sample", "plot", "tradeoff", "renyi", "audit", "report", "explore", "individual",
        "ledger", "filter",
    ]  # fmt: skip
    assert shell("").out == ran.out


def test_version(shell):
    assert shell("--version").out == f"symdp {symdp.__version__}\n"


@pytest.mark.quick_cases("mathml")
@pytest.mark.parametrize("form", ["text", "latex", "mathml", "json"])
def test_derive_in_every_form(shell, form):
    name = "laplace" if form == "json" else "gaussian"  # whose formulas are short
    ran = shell(f"derive {name} --order 3 --format {form}")
    assert ran.code == 0, ran.err
    marks = {"text": "c₃ =", "latex": "c_{3} &=", "mathml": "<mn>3</mn>", "json": '"3"'}
    assert marks[form] in ran.out
    if form == "json":
        assert ran.json["loss_range"] == ["-1/b", "1/b"]


@pytest.mark.slow
def test_derive_binds_values_and_samples(shell):
    out = shell("derive gaussian sigma=2 --sampling poisson --rate 1/4 --order 1").out
    assert "poisson" in out
    assert "c₁ =" in out
    assert "c₂ =" not in out


def test_curve_as_json(shell):
    curve = shell("curve gaussian sigma=5 -n 10 --points 5 --epsilon-range -1 3 --json").json
    assert [point["epsilon"] for point in curve["points"]] == [-1, 0, 1, 2, 3]
    for point in curve["points"]:
        assert set(point) == KEYS
        exact = float(gaussian_delta(point["epsilon"], 5, 10))
        assert point["delta"] == pytest.approx(exact, rel=1e-11)
    whose = {"relation", "sampling", "shift", "protects", "pair"}
    assert set(curve) == {"points", "kind", "method", "direction", "count", "seconds"} | whose


def test_the_default_range_of_a_curve_ends_at_a_small_delta(shell):
    curve = shell("curve gaussian sigma=5 -n 10 --points 3 --json").json
    assert curve["points"][0]["epsilon"] == 0
    assert curve["points"][-1]["delta"] == pytest.approx(1e-10, rel=1e-9)


def test_curve_for_people(shell):
    ran = shell("curve gaussian sigma=5 -n 10 --points 4 --method msd:2")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 6
    assert "protects one record added" in ran.out
    assert ran.out.count("estimate") == 4


@pytest.mark.quick_cases("png-\\x89PNG")
@pytest.mark.parametrize(
    ("ending", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")]
)
def test_a_curve_is_drawn(shell, tmp_path, ending, start):
    file = tmp_path / f"curve.{ending}"
    ran = shell("curve gaussian sigma=5 -n 10 --points 9 --plot", str(file))
    assert ran.code == 0, ran.err
    assert file.read_bytes().startswith(start)


def test_a_curve_below_the_double_range_is_drawn(shell, tmp_path):
    file = tmp_path / "deep.svg"
    line = "curve gaussian sigma=5 -n 10 --points 5 --epsilon-range 30 60 --plot"
    assert shell(line, str(file)).code == 0
    assert file.stat().st_size > 1000


def test_numbers_of_the_same_command_are_the_same(shell):
    first, second = (shell(f"delta {GAUSSIAN} --epsilon 3 --json").json for _ in range(2))
    first["seconds"] = second["seconds"] = math.nan
    assert str(first) == str(second)


def run(*words, **more):
    return subprocess.run(
        [sys.executable, "-m", "symdp", *words], capture_output=True, text=True, check=False, **more
    )


def test_as_a_process():
    done = run(*f"delta {GAUSSIAN} --epsilon 1 --json".split())
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith('{"epsilon": 1.0, ')


def test_the_script_and_the_module_are_one_program():
    script = os.path.join(os.path.dirname(sys.executable), "symdp")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == run("--version").stdout


def test_in_a_pipe_there_is_no_colour_and_no_progress():
    done = run(*["curve", "gaussian", "sigma=5", "-n", "10", "--points", "3"])
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_a_closed_pipe_is_quiet():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "symdp", "list"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert done.stderr == ""
    assert done.returncode == 141


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("contour", "exact formula in floating point"),
        ("truth", "arbitrary precision"),
        ("certified", "proved, every rounding included"),
    ],
)
def test_the_answer_says_what_it_rests_on(shell, method, words):
    text = shell(f"delta {GAUSSIAN} --epsilon 40 --method {method}").out
    assert words in text
    assert ("own estimate" in text) == (method != "certified")
