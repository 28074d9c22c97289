"""`symdp train`: the numbers of the library, in text, JSON and CSV; one-line errors."""

import csv
import io

import pytest
from shell import Shell

import symdp
from symdp.errors import AccuracyError

RUN = "train --examples 100 --batch 1 --epochs 5 --delta 1e-5"


@pytest.fixture
def shell(capsys):
    return Shell(capsys)


@pytest.mark.slow
def test_json_is_what_the_library_says(shell):
    answer = shell(f"{RUN} --noise 2 --json --compare").json
    run = symdp.training(100, 1, 5, noise_multiplier=2)
    assert answer["epsilon"] == run.epsilon(1e-5).epsilon
    assert answer["lower"] <= answer["epsilon"] <= answer["upper"]
    assert answer["protects"] == run.protection.sentence
    assert answer["training"] == {
        "examples": 100, "batch": 1, "steps": 500, "rate": "1/100", "noise": 2.0,
        "target_epsilon": None,
    }  # fmt: skip
    first, *others = answer["samplings"]
    assert first["sampling"] == "poisson"
    assert first["epsilon"] == answer["epsilon"]
    assert first["renyi"] == run.epsilon(1e-5, "renyi").epsilon > first["upper"]
    assert [row["sampling"] for row in others] == [
        "without_replacement", "with_replacement", "random_allocation",
    ]  # fmt: skip
    assert all(row["lower"] <= row["epsilon"] <= row["upper"] for row in others)


def test_text_says_what_is_protected(shell):
    ran = shell(f"{RUN} --noise 2 --sampling without-replacement")
    assert ran.code == 0
    assert "protects one record's value changed" in ran.out
    assert "500 steps, batches of 1 out of 100 examples (rate 0.01), noise multiplier 2" in ran.out
    assert "by Rényi orders" in ran.out
    assert "with_replacement:" not in ran.out  # the comparison is on request


@pytest.mark.slow
def test_a_comparison_comes_row_by_row_and_is_never_fatal(shell, monkeypatch):
    from symdp.cli import training as train

    def fails(sampling, composition, delta, row=train._training_row):
        if sampling == "with_replacement":
            raise AccuracyError("too hard")
        return row(sampling, composition, delta)

    monkeypatch.setattr(train, "_training_row", fails)
    ran = shell(f"{RUN} --noise 2 --compare")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("ε(δ = 1e-05) = ")
    assert "with_replacement: too hard" in lines
    assert any(line.startswith("without_replacement: ε = ") for line in lines)
    assert "a shuffled pass is another thing" in ran.out  # of random allocation


@pytest.mark.parametrize(
    "words",
    ["--n 100 --batch_size 1 --num-epochs 5 --sigma 2 --target-delta 1e-5",
     "--dataset-size 100 --bs 1 --epochs 5 --noise-multiplier=2 --delta 1e-5"],
)  # fmt: skip
def test_the_options_of_other_libraries(shell, words):
    mine, theirs = shell(f"{RUN} --noise 2 --json").json, shell(f"train {words} --json").json
    assert (mine["epsilon"], mine["training"]) == (theirs["epsilon"], theirs["training"])


@pytest.mark.slow
def test_csv_has_a_line_for_each_sampling(shell):
    ran = shell(f"{RUN} --noise 2 --csv --largest-batch 4 --compare")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert len(rows) == 5
    assert (
        float(rows[0]["epsilon"])
        == symdp.training(100, 1, 5, noise_multiplier=2).epsilon(1e-5).epsilon
    )
    assert all(row["error"] == "" and float(row["steps"]) == 500 for row in rows)


@pytest.mark.slow
def test_every_row_speaks_of_the_relation_asked_for(shell):
    line = "train --examples 4 --batch 4 --steps 2 --noise 3 --delta 1e-3 --largest-batch 2"
    line += " --json --compare"
    plain = {row["sampling"]: row for row in shell(line).json["samplings"]}
    assert plain["with_replacement"]["epsilon"] > 2 * plain["poisson"]["epsilon"]
    assert plain["truncated_poisson"]["epsilon"] > 1.05 * plain["poisson"]["epsilon"]
    assert "value changed; fixed batches" in plain["without_replacement"]["protects"]
    assert "truncated batches" in plain["truncated_poisson"]["protects"]
    changed = {r["sampling"]: r for r in shell(f"{line} --relation substitution").json["samplings"]}
    assert all("value changed" in row["protects"] for row in changed.values() if not row["error"])
    refused = {name for name, row in changed.items() if row["error"]}
    assert refused == {"truncated_poisson", "random_allocation"}
    added = {r["sampling"]: r for r in shell(f"{line} --relation add-remove").json["samplings"]}
    refused = {name for name, row in added.items() if row["error"]}
    assert refused == {"without_replacement", "with_replacement"}
    assert all(row["epsilon"] is None for row in added.values() if row["error"])


@pytest.mark.slow
def test_the_noise_for_an_epsilon(shell):
    answer = shell(f"{RUN} --target-epsilon 1 --json").json
    assert 1 - 1e-6 < answer["epsilon"] <= 1
    assert answer["training"]["target_epsilon"] == 1
    again = shell(f"{RUN} --noise {answer['training']['noise']} --json").json
    assert again["epsilon"] == answer["epsilon"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("train --batch 5 --epochs 1 --noise 1 --delta 1e-5", "--examples N is missing"),
        ("train --examples 10 --epochs 1 --noise 1 --delta 1e-5", "--batch B is missing"),
        ("train --examples 10 --batch 5 --noise 1 --delta 1e-5", "--epochs E or --steps T"),
        ("train --examples 10 --batch 5 --epochs 1 --delta 1e-5", "--noise Z or --target-epsilon"),
        ("train --examples 10 --batch 5 --epochs 1 --noise 1 --delta 2", "--delta 2"),
        ("train --examples ten --batch 5 --epochs 1 --noise 1 --delta 1e-5", "--examples"),
        ("train --examples 10 --batch 50 --epochs 1 --noise 1 --delta 1e-5", "too large"),
        (
            "train --examples 10 --batch 5 --epochs 1 --noise 1 --delta 1e-5 --json --csv",
            "one of the two",
        ),
        (
            "train --examples 10 --batch 5 --epochs 1 --noise 1 --delta 1e-5 --sampling poison",
            "did you mean 'poisson'",
        ),
        ("train --examples 10 --batch 5 --epochs 1 --noise 1", "--delta"),
        ("train --examples 10 --batch 5 --epochs 1 --noise 0 --delta 1e-5", "--noise 0"),
        ("train --examples 10 --batch 5 --epochs 0 --noise 1 --delta 1e-5", "--epochs 0"),
        ("train --examples 10 --sample-rate 0.1 --noise 1 --delta 1e-5", "whose ratio is the rate"),
        ("train --examples 10 --max_grad_norm 1 --noise 1 --delta 1e-5", "changes no ε"),
        ("epsilon gaussian --sigma 4 -n 3 --delta 1e-5", "NAME=VALUE"),
        ("calibrate gaussian --parameter sigma -n 3 --advantage 2", "--advantage 2: it must"),
    ],
)
def test_one_line_and_code_two(shell, line, words):
    ran = shell(line)
    assert ran.code == 2
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert not ran.out


def test_a_delta_that_publishes_an_example_is_warned_of(shell):
    line = "train --examples 1000 --batch 100 --epochs 1 --noise 4 --delta"
    assert "warning: δ = 0.001 is not below 1/1000" in shell(line, "1e-3").out
    assert "1/1000" in shell(line, "1e-3", "--json").json["training"]["warning"]
    assert "warning" not in shell(line, "9e-4").out
    assert "warning" not in shell(line, "9e-4", "--json").json["training"]
