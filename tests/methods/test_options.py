"""Options of methods: one spelling in Python and on the command line, ranges in one line."""

from __future__ import annotations

import json
import math

import pytest

from symdp import compose, mechanisms, methods
from symdp.cli import main
from symdp.errors import InputError
from symdp.methods import METHODS, accountant, names, table
from symdp.methods.fourier import Fourier
from symdp.methods.prv import Prv
from symdp.methods.spa_bounds import SpaBounds

STEPS = compose(mechanisms.gaussian(sigma=20), 300)
JOB = ["gaussian", "sigma=20", "-n", "300", "--epsilon", "1", "--json"]
CHOSEN = {
    "fourier": {"points": "1048576", "reach": "12"},
    "prv": {"eps_error": "1e-3", "delta_error": "1/10000000000"},
    "buckets": {"points": "65536"},
    "tilted-prv": {"points": "65536"},
    "spa-bounds": {"tilt": "2"},
    "certified": {"digits": "20"},
}


def test_each_method_that_takes_options_is_tried_below():
    assert set(CHOSEN) == {name for name, method in METHODS.items() if method.options}
    assert {"msd:2", "contour", "prv"} < set(names())


@pytest.mark.slow_cases("fourier", "certified", "prv")
@pytest.mark.parametrize("method", CHOSEN)
def test_the_command_line_and_python_spell_them_alike(capsys, method):
    words = [w for n, v in CHOSEN[method].items() for w in ("--" + n.replace("_", "-"), v)]
    assert main(["delta", *JOB, "--method", method, *words]) == 0
    printed = json.loads(capsys.readouterr().out)
    found = STEPS.delta(1, method=method, **CHOSEN[method])
    assert float(printed["delta"]) == pytest.approx(found.delta, rel=1e-12)
    truth = STEPS.delta(1).delta
    assert found.lower * (1 - 1e-12) <= truth <= found.upper * (1 + 1e-12)


def test_epsilon_takes_them_and_typer_reads_them(capsys):
    how = ["--method=prv", "--eps-error", "0.01", "--delta=1e-5", "--json"]
    assert main(["epsilon", *JOB[:4], *how]) == 0
    printed = json.loads(capsys.readouterr().out)
    found = STEPS.epsilon(1e-5, method="prv", eps_error=0.01)
    assert printed["epsilon"] == pytest.approx(found.epsilon, rel=1e-12)
    assert found.epsilon_lower <= STEPS.epsilon(1e-5).epsilon <= found.epsilon_upper


def test_the_error_that_is_asked_for_is_the_one_that_is_had():
    """[PRV Thm 5.5]: δ(ε + e) − η ≤ δ̃ ≤ δ(ε − e) + η, and the interval has both twice."""
    for error in (1e-1, 1e-2, 1e-3):
        found = STEPS.delta(1, method="prv", eps_error=error, delta_error=1e-10)
        wide, narrow = (STEPS.delta(1 + k * error).delta for k in (-2, 2))
        assert narrow - 4e-10 < found.lower <= STEPS.delta(1).delta <= found.upper < wide + 4e-10
    assert found.upper - found.lower < 2e-3


@pytest.mark.parametrize(
    ("method", "given", "said"),
    [
        ("prv", {"eps_eror": 1}, "no option 'eps_eror'; did you mean 'eps_error'?"),
        ("contour", {"metod": "prv"}, "no option 'metod'; did you mean 'method'?"),
        ("msd:2", {"points": 5}, "method 'msd:2' has no option 'points'; it takes none"),
        ("truth", {"digits": 5}, "method 'truth' has no option 'digits'"),
        ("prv", {"points": 2.5e3 + 0.5}, "points = 2500.5 must be a whole number from 1024 to"),
        ("prv", {"points": True}, "points = True must be a whole number"),
        ("fourier", {"points": 1 << 30}, "must be a whole number from 2 to 4194304"),
        ("fourier", {"points": 1001}, "must be even"),
        ("fourier", {"reach": -1}, "reach = -1 must be a finite number above 0"),
        ("fourier", {"reach": "oo"}, "reach = oo must be a finite number above 0"),
        ("prv", {"delta_error": 1}, "delta_error = 1 must be a number strictly between 0 and 1"),
        ("prv", {"eps_error": None}, "eps_error = None must be a finite number above 0"),
        ("prv", {"eps_error": 10**400}, "must be a finite number above 0"),
        ("prv", {"eps_error": 1, "points": 1024}, "eps_error chooses points; give one of them"),
        ("spa-bounds", {"tilt": 0}, "tilt = 0 must be a finite number above 0"),
        ("certified", {"digits": 0}, "digits = 0 must be a whole number from 1 to 1000"),
    ],
)
def test_what_is_refused_is_named_in_one_line(method, given, said):
    with pytest.raises(InputError) as refused:
        STEPS.delta(1, method=method, **given)
    message = str(refused.value)
    assert said in message
    assert "\n" not in message
    assert len(message) < 160


def test_a_tilt_beyond_the_moments_is_refused():
    law = compose(mechanisms.student_t(nu=3, s=5).subsample("poisson", "1/2"), 3)
    assert law.delta(1, method="spa-bounds", tilt=5).upper < 1
    heavy = compose(mechanisms.gumbel(b=2), 3).law("remove")
    if math.isfinite(heavy.domain[1]):
        with pytest.raises(InputError, match="must lie below"):
            SpaBounds(tilt=2 * heavy.domain[1]).log_delta(heavy, 1.0)


def test_accountants_have_their_options():
    assert accountant("fourier", reach="12", points=2048) == Fourier(12.0, 2048)
    assert accountant("tilted-prv", points="2e3") == Prv(tilted=True, points=2000)
    with pytest.raises(InputError, match="asked of a composition"):
        accountant("truth")


def test_methods_are_listed_with_source_promise_and_options(capsys):
    assert main(["methods"]) == 0
    text = capsys.readouterr().out
    for name, method in METHODS.items():
        assert name in text
        assert all(option.flag in text for option in method.options)


def test_the_room_gives_the_names_of_its_table_and_no_other():
    assert methods.METHODS is table.METHODS
    assert methods.names() == table.names()
    with pytest.raises(AttributeError, match="no_such"):
        methods.no_such  # noqa: B018


def test_orders_of_series_are_listed_once_each():
    """The lower ones are what the higher ones are compared with."""
    orders = {name: method.orders for name, method in table.METHODS.items() if method.orders}
    assert orders == {"msd": (0, 1, 2), "tilted-edgeworth": (2,), "edgeworth": (1, 2, 4)}
    assert len(set(table.names())) == len(table.names())
