"""`symdp renyi`: divergences of both directions, and ρ, as a table and as JSON."""

import math

import pytest


def test_orders_of_laplace_noise(shell):
    answer = shell("renyi laplace b=2 -n 10 --order 2,inf --json").json
    two = 10 * math.log(2 / 3 * math.exp(1 / 2) + 1 / 3 * math.exp(-1))
    assert answer["orders"] == [2.0, "inf"]
    assert answer["remove"] == answer["add"] == [pytest.approx(two, rel=1e-12), 5.0]
    rho = 10 * (1 / 2 + math.exp(-1 / 2) - 1)
    assert answer["zcdp"]["lower"] <= rho <= answer["zcdp"]["upper"]


def test_directions_differ_and_an_infinite_one_is_null(shell):
    ran = shell("renyi gumbel b=2 --order 0,8 --json").json
    assert ran["add"] == [pytest.approx(0.0, abs=1e-15), None]
    assert ran["remove"][1] == pytest.approx(0.3110145777, rel=1e-9)
    assert ran["zcdp"]["rho"] is None
    assert "no finite ρ: D_α is infinite from α = 2.54149 on" in shell("renyi gumbel b=2").out


@pytest.mark.parametrize("orders", ["x", "-1", ""])
def test_orders_that_are_none(shell, orders):
    ran = shell("renyi laplace b=2 --order", orders)
    assert ran.code == 2
    assert "--order" in ran.err
