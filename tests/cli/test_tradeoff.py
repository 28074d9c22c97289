"""`symdp tradeoff`, and `symdp calibrate` to what an attack may reach."""

import pytest
from shell import Shell

import symdp
from symdp import mechanisms

STEPS = symdp.compose(mechanisms.gaussian(sigma=4), 10)


@pytest.fixture
def shell(capsys):
    return Shell(capsys)


def test_json_is_what_the_library_says(shell):
    answer = shell("tradeoff gaussian sigma=4 -n 10 --alpha 0,0.01,1/2 --json").json
    assert [point["alpha"] for point in answer["points"]] == [0.0, 0.01, 0.5]
    assert [point["beta"] for point in answer["points"]] == list(STEPS.trade_off([0, 0.01, 0.5]))
    # No attack does better: the upper end of δ(0).
    assert answer["advantage"] == STEPS.delta(0.0).upper
    assert answer["relation"] == "add_remove"


def test_text_rounds_against_the_attack_s_limits(shell):
    ran = shell("tradeoff gaussian sigma=4 -n 10 --alpha 0.01")
    row = ran.out.splitlines()[1].split()
    miss = STEPS.trade_off(0.01)
    assert float(row[1]) <= miss
    assert float(row[2]) >= 1 - miss
    assert "protects one record" in ran.out


@pytest.mark.quick_cases("svg")
@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_figure(shell, tmp_path, ending):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"attack.{ending}"
    ran = shell("tradeoff gaussian sigma=4 -n 10 --alpha 0.01 --plot", str(path))
    assert ran.code == 0, ran.err
    assert path.stat().st_size > 2000
    assert f"drawn: {path}" in ran.out


def test_the_noise_that_holds_an_attack_down(shell):
    line = "calibrate gaussian --parameter sigma -n 1 --digits 4"
    answer = shell(f"{line} --advantage 0.1 --json").json
    assert answer["rate"] <= 0.1 < answer["missed"]
    ran = shell(f"{line} --tpr 0.2 --fpr 0.05")
    assert "no attack has a higher true positive rate at 0.05" in ran.out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tradeoff gaussian sigma=4 -n 10 --alpha 2", "--alpha 2"),
        ("tradeoff gaussian sigma=4 -n 10 --alpha x", "--alpha"),
        ("tradeoff gaussian sigma=4 -n 10 --plot a.jpg", ".svg, .pdf or .png"),
        ("calibrate gaussian --parameter sigma -n 1 --advantage 0.1 --epsilon 1", "--advantage A"),
        ("calibrate gaussian --parameter sigma -n 1 --tpr 0.1", "--tpr T and --fpr F"),
        ("calibrate gaussian --parameter sigma -n 1 --tpr 0.1 --fpr 0.2", "guessing alone"),
        ("calibrate gaussian --parameter sigma -n 1 --advantage 0.1 --method moments", "contour"),
        ("calibrate gaussian --parameter sigma -n 1", "--epsilon E and --delta D"),
    ],
)
def test_one_line_and_code_two(shell, line, words):
    ran = shell(line)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert words in ran.err
