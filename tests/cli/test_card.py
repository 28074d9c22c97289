"""`symdp card`: written in four forms, computed again by --check, nothing in it trusted."""

import json

import pytest
from shell import Shell

import symdp
from symdp import mechanisms
from symdp.cli import main
from symdp.page.card import make_card, wrong_in_certificate

HOSTILE = r"100% <b>\input{x}</b> $y_1$ | # [a](b)"


@pytest.fixture
def shell(capsys):
    return Shell(capsys)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("card") / "card.json"
    line = "card gaussian sigma=4 -n 10 --delta 1e-5,1e-6 -o"
    assert main([*line.split(), str(path)]) == 0
    return path.read_text(encoding="utf-8")


@pytest.fixture
def card(written, tmp_path):
    path = tmp_path / "card.json"
    path.write_text(written, encoding="utf-8")
    return path


def test_a_card_says_what_the_library_says(card):
    held = json.loads(card.read_text(encoding="utf-8"))
    steps = symdp.compose(mechanisms.gaussian(sigma=4), 10)
    assert [row["epsilon"] for row in held["privacy_parameters"]] == [
        steps.epsilon(delta).epsilon for delta in (1e-5, 1e-6)
    ]
    assert held["neighboring_datasets"]["protects"] == steps.protection.sentence
    rates = {row["false_positive_rate"]: row["true_positive_rate"]
             for row in held["attack"]["trade_off"]}  # fmt: skip
    assert rates[0.01] == 1 - steps.trade_off(0.01)
    assert held["attack"]["advantage"] == steps.delta(0.0).upper
    assert held["composition"] == {"steps": 10, "distinct": 1}
    assert held["software"]["symdp"] == symdp.__version__
    assert "EUROCRYPT 2006" in held["citation"]
    assert held["proof"]["status"].startswith("not proved")


def test_a_true_card_passes(shell, card):
    ran = shell("card --check", str(card))
    assert (ran.code, ran.out) == (0, f"{card}: computed again, everything agrees\n")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda c: c["privacy_parameters"][1].update(epsilon=0.1), "privacy_parameters[1].epsilon"),
        (lambda c: c.update(unit_of_privacy="one company"), "unit_of_privacy"),
        (lambda c: c["attack"].update(advantage=0), "attack.advantage"),
        (lambda c: c["inputs"].update(title="another"), "title"),
        (lambda c: c.update(audited=True), "audited"),
        (lambda c: c.update(sha256="0"), "sha256"),
    ],
)
def test_a_changed_card_is_told_where(shell, card, change, place):
    held = json.loads(card.read_text(encoding="utf-8"))
    change(held)
    card.write_text(json.dumps(held), encoding="utf-8")
    ran = shell("card --json --check", str(card))
    assert (ran.code, ran.err) == (1, "")
    answer = json.loads(ran.out)
    assert not answer["agrees"]
    assert place in [one["place"] for one in answer["differences"]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no JSON"),
        ("[]", "no privacy card"),
        ('{"format": "symdp privacy card", "version": 2}', "version 2"),
        ('{"format": "symdp privacy card", "version": 1, "inputs": {}}', "inputs"),
        ('{"format": "symdp privacy card", "version": NaN}', "NaN"),
        (
            '{"format": "symdp privacy card", "version": 1, "inputs": {"title": "t", "deltas": '
            '[1e-5], "proved_digits": 900, "ledger": {}}}',
            "proved_digits",
        ),
        (
            '{"format": "symdp privacy card", "version": 1, "inputs": {"title": "t", "deltas": '
            '[1e-5], "proved_digits": null, "ledger": {}}}',
            "no ledger",
        ),
    ],
)
def test_what_is_no_card(shell, tmp_path, text, words):
    path = tmp_path / "card.json"
    path.write_text(text, encoding="utf-8")
    ran = shell("card --check", str(path))
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert words in ran.err


@pytest.fixture(scope="module")
def hostile():
    return make_card(symdp.compose(mechanisms.gaussian(sigma=4)), title=HOSTILE, deltas=[1e-5])


@pytest.mark.parametrize(
    ("ending", "kept"),
    [
        ("md", r"# 100% \<b\>\\input\{x\}\</b\> \$y\_1\$ \| \# \[a\](b)"),
        ("html", r"100% &lt;b&gt;\input{x}&lt;/b&gt; $y_1$ | # [a](b)"),
        (
            "tex",
            r"\section{100\% \textless{}b\textgreater{}\textbackslash{}input\{x\}\textless{}/b"
            r"\textgreater{} \$y\_1\$ \textbar{} \# [a](b)}",
        ),
    ],
)
def test_text_is_escaped(shell, tmp_path, monkeypatch, hostile, ending, kept):
    monkeypatch.setattr("symdp.page.card.make_card", lambda *_, **told: hostile)
    path = tmp_path / f"card.{ending}"
    ran = shell("card gaussian sigma=4 -n 1 --delta 1e-5 -o", str(path), "--title", HOSTILE)
    assert (ran.code, ran.out) == (0, f"{path}\n"), ran.err
    text = path.read_text(encoding="utf-8")
    assert kept in text
    assert "<b>" not in text
    assert "0.926342" in text  # ε, rounded up


@pytest.mark.slow
def test_a_card_of_batches_of_all_examples_names_how_they_are_drawn(shell, tmp_path):
    path = tmp_path / "card.json"
    run = "card --examples 9 --batch 9 --steps 3 --noise 3 --delta 1e-5 --json --sampling"
    held = shell(f"{run} truncated_poisson --largest-batch 4 -o", str(path)).json
    assert "truncated batches" in held["neighboring_datasets"]["protects"]
    steps = symdp.training(
        9, 9, steps=3, noise_multiplier=3, sampling="truncated_poisson", largest_batch=4
    )  # fmt: skip
    assert held["privacy_parameters"][0]["epsilon"] == steps.epsilon(1e-5).epsilon
    fixed = shell(f"{run} without_replacement --relation substitution -o", str(path)).json
    assert "value changed; fixed batches" in fixed["neighboring_datasets"]["protects"]


@pytest.mark.slow
def test_a_training_run_and_a_proof(shell, tmp_path):
    path = tmp_path / "card.json"
    line = "card --examples 9 --batch 9 --steps 3 --noise 2 --delta 1e-5 --prove 4 --json -o"
    held = shell(line, str(path)).json
    assert held["inputs"]["proved_digits"] == 4
    low, high = (float(held["proof"][f"epsilon_{end}"]) for end in ("lower", "upper"))
    assert low <= held["privacy_parameters"][0]["epsilon"] <= high < low * 1.001
    assert json.loads(path.read_text(encoding="utf-8")) == held


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("card gaussian sigma=4 -n 1", "-o FILE is missing"),
        ("card gaussian sigma=4 -n 1 -o card.pdf", "must end in"),
        ("card gaussian sigma=4 -n 1 -o nowhere/card.md", "no folder"),
        ("card --examples 10 --batch 1 --steps 1 -o card.md", "--noise Z is missing"),
        ("card gaussian --examples 10 --batch 1 --steps 1 --noise 1 -o card.md", "no MECHANISM"),
        ("card gaussian --check card.json", "stands alone"),
        ("card --check missing.json", "cannot be read"),
        ("card gaussian sigma=4 -n 1 --delta 1e-5,2 -o card.md", "--delta 2"),
    ],
)
def test_one_line_and_code_two(shell, line, words):
    ran = shell(line)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert words in ran.err


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    path = tmp_path_factory.mktemp("card") / "card.json"
    line = "card randomized_response epsilon_0=1/10 -n 200 --delta 1e-5 --certificate -o"
    assert main([*line.split(), str(path)]) == 0
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.slow_cases("delta")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c["claim"].update(upper="1/10"), "not the first δ"),
        (lambda c: c["claim"].update(epsilon="1"), "not next to"),
        (lambda c: c["claim"].update(direction="add"), "both directions"),
        (lambda c: c["steps"][0].update(count="100"), "not those of the card"),
        (lambda c: c["witness"]["add"].update(terms="2"), "refused"),
        (lambda c: c.clear(), "no claim"),
    ],
    ids=["delta", "epsilon", "direction", "count", "witness", "empty"],
)
def test_what_is_wrong_in_a_certificate_is_said(certified, change, said):
    held = json.loads(json.dumps(certified))
    change(held["certificate"])
    assert any(said in one for one in wrong_in_certificate(held))


@pytest.mark.slow
@pytest.mark.parametrize("upper", [None, "1/10"])
def test_the_certificate_of_a_card_is_checked(shell, tmp_path, certified, upper):
    held = json.loads(json.dumps(certified))
    held["certificate"]["claim"]["upper"] = upper or held["certificate"]["claim"]["upper"]
    path = tmp_path / "card.json"
    path.write_text(json.dumps(held), encoding="utf-8")
    ran = shell("card --check", str(path))
    assert ("everything agrees" if upper is None else "not the first δ") in ran.out
    assert ran.code == (0 if upper is None else 1)


@pytest.mark.slow
def test_a_card_tells_the_run_the_day_and_mu_with_its_regret(shell, tmp_path):
    path, page = tmp_path / "run.json", tmp_path / "run.md"
    told = "card --examples 60000 --batch 256 --epochs 2 --noise 1.12 --delta 1e-5 -o"
    assert shell(told, str(path)).code == shell(told, str(page)).code == 0
    held = json.loads(path.read_text(encoding="utf-8"))
    assert held["training"]["examples"] == 60000
    assert held["training"]["batch"] == 256
    assert held["training"]["epochs"] == pytest.approx(2, rel=1e-3)
    assert held["training"]["steps"] == 469
    assert held["date"] == held["inputs"]["date"] >= "2024-01-01"
    text = page.read_text(encoding="utf-8")
    for word in ("training examples N: 60000", "epochs: 2.0", "with its regret", held["date"]):
        assert word in text
    run = symdp.training(60000, 256, 2, noise_multiplier="1.12")
    mu, regret = held["gaussian_privacy"]["mu"], held["gaussian_privacy"]["regret"]
    normal = symdp.compose(mechanisms.gaussian(sigma=1 / mu))
    for epsilon in (0.0, 0.03, 0.31, 0.5, 1.1, 2.7):
        assert run.delta(epsilon).lower <= normal.delta(epsilon).upper + regret
    assert shell("card --check", str(path)).code == 0
    held["inputs"]["training"]["examples"] = 70000
    path.write_text(json.dumps(held), encoding="utf-8")
    ran = shell("card --check", str(path))
    assert ran.code == 2
    assert "does not give the steps" in ran.err
