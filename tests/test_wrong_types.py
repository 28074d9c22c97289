"""What people pass by mistake: one error that says what to pass instead."""

from __future__ import annotations

import pytest
from refusals import refused

import symdp
from symdp import individual, mechanisms

STEPS = symdp.compose(mechanisms.gaussian(sigma=2), 3)
WRONG = {
    "derive": (lambda: symdp.derive("gaussian"), "pass symdp.mechanisms.gaussian"),
    "ledger": (lambda: symdp.Ledger().add("gaussian"), "pass symdp.mechanisms.gaussian"),
    "nothing": (lambda: symdp.Ledger().add(None), "None is no mechanism"),
    "history": (lambda: symdp.Ledger().add_history("gaussian", []), "is no mechanism"),
    "compose": (lambda: symdp.compose("laplace", 3), "pass symdp.mechanisms.laplace"),
    "calibrate": (
        lambda: symdp.calibrate("gaussian", "sigma", 3, epsilon=1, delta=0.1),
        "is no mechanism",
    ),
    "sweep": (lambda: symdp.sweep("gaussian", {"sigma": [1]}, 3, delta=0.1), "is no mechanism"),
    "sensitivities": (lambda: symdp.sensitivities("gaussian", 3, 0.1), "is no mechanism"),
    "method": (lambda: STEPS.delta(1, method=None), "method = None: it is a name"),
    "number": (lambda: STEPS.epsilon(1e-5, method=3), "method = 3: it is a name"),
    "path": (lambda: symdp.load(None), "give the path of a TOML file"),
    "text": (lambda: symdp.Mechanism.from_toml(None), "TOML text is needed"),
    "composition": (lambda: symdp.load_composition(3), "give the path of a TOML file"),
    "unnamed": (lambda: mechanisms.gaussian(2), "write gaussian(sigma=2)"),
    "counts": (
        lambda: individual.from_counts(noise=1.0, counts=[[1, 2]]),
        "one level for 2 kinds of steps",
    ),
    "targets": (lambda: symdp.calibrate(mechanisms.gaussian, "sigma", 3), "or tpr and fpr"),
    "training": (
        lambda: symdp.training(100, 10, 1),
        "give noise_multiplier, or target_epsilon and delta",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_type_is_named(name):
    make, words = WRONG[name]
    with refused(words):
        make()


@pytest.mark.parametrize("name", ["individual", "matrix", "methods", "prove"])
def test_documented_modules_are_there_after_import(name):
    assert getattr(symdp, name).__name__ == f"symdp.{name}"


@pytest.mark.slow
def test_python_has_what_the_command_line_has():
    run = symdp.training(100, 5, 1, target_epsilon=2, delta=1e-5)
    assert run.epsilon(1e-5).epsilon == pytest.approx(2, rel=1e-8)
    assert run.epsilon(1e-5).epsilon <= 2
    found = symdp.calibrate(mechanisms.gaussian, "sigma", 1, tpr=0.2, fpr=0.1)
    assert found.rate <= 0.2 < found.missed
    one = symdp.calibrate(mechanisms.gaussian, "sigma", 10, epsilon=1, delta=1e-5, digits=6)
    assert "<b>11.7973</b>" in one._repr_html_()
    table = symdp.sweep(mechanisms.gaussian, {"sigma": [4, 5]}, 10, delta=1e-5)
    assert "<th>sigma</th><th>n</th>" in table._repr_html_()
    assert table._repr_html_().count("<tr>") == 3


def test_figures_without_axes():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    axes = STEPS.delta([0.5, 1, 2]).plot()
    assert axes.lines[0].get_marker() == "o"  # few points are seen
    both = STEPS.plot(method=["contour", "moments"], epsilons=[0.5, 1, 2])
    assert [line.get_label() for line in both.lines] == ["contour", "moments"]
    assert both.get_legend() is not None
    pyplot.close("all")
