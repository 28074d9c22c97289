"""The page that `symdp derive --format page` writes runs, and fails where the formula is wrong."""

from __future__ import annotations

import pytest

import symdp
from symdp.page.derivation import to_page

QUARTIC = """
name = "quartic"
variable = "x"
support = ["-oo", "oo"]
[noise]
density = "exp(-x**4)/(2*gamma(5/4))"
sensitivity = 1
"""


def run(text: str) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    for part in text.split("```{code-cell} ipython3\n")[1:]:
        exec(part.partition("\n```")[0], namespace)


@pytest.mark.slow_cases("discrete_laplace")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("laplace", marks=pytest.mark.slow),
        pytest.param("logistic", marks=pytest.mark.slow),
        "discrete_laplace",
        "randomized_response",
    ],
)
def test_pages_of_built_ins_run(name, capsys):
    made = getattr(symdp.mechanisms, name)
    run(to_page(symdp.derive(made), f"symdp.mechanisms.{name}", {}))
    assert "(ε, δ) = (0.5, " in capsys.readouterr().out


@pytest.mark.slow
def test_a_page_of_a_file_runs_and_a_wrong_one_fails(shell, tmp_path):
    path = tmp_path / "quartic.toml"
    path.write_text(QUARTIC)
    ran = shell(f"derive {path} --format page")
    assert ran.code == 0
    assert "How K was found" in ran.out
    run(ran.out)
    with pytest.raises(AssertionError):
        run(ran.out.replace("Gamma(5/4)", "x").replace("gamma(5/4)", "gamma(5/3)"))
    with pytest.raises(AssertionError):  # the loss of another pair
        run(
            ran.out.replace(
                "own = symdp.derive(step,", "own = symdp.derive(symdp.mechanisms.laplace(b=1),"
            )
        )


def test_what_has_no_page(shell):
    ran = shell("derive laplace --sampling poisson --rate 0.1 --format page")
    assert (ran.code, ran.err.count("\n")) == (2, 1)


@pytest.mark.slow
@pytest.mark.parametrize(("values", "held"), [("", ".assuming(['w > 1'])"), (" w=3", "{'w': '3'}")])
def test_symbols_may_leave_an_order_open(shell, tmp_path, values, held):
    """Values decide it; without any the page is that of the first order, which it assumes."""
    file = tmp_path / "triangle.toml"
    file.write_text(
        'name = "triangle"\nvariable = "k"\nsupport = "integers"\n[parameters]\n'
        'w = "positive integer"\n[noise]\ndensity = "Max(0, w - abs(k))/w**2"\n',
        encoding="utf-8",
    )
    ran = shell(f"derive {file}{values} --format page --time-limit 5")
    assert ran.code == 0
    assert held in ran.out
