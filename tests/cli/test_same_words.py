"""The same words mean the same in every command, and what is wrong is said before work begins."""

from __future__ import annotations

import json
import math
import re
import time
from fractions import Fraction
from importlib import import_module

import pytest

import symdp
from symdp.cli.options import found_at, parameters_of
from symdp.cli.table import COMMANDS
from symdp.exact_number import exact_number


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("delta gaussian sigma=2 --delta 1e-5", "for ε at a δ: symdp epsilon"),
        ("delta gaussian sigma=2 --target-delta=1e-5", "for ε at a δ: symdp epsilon"),
        ("epsilon gaussian sigma=2 --epsilon 1", "for δ at an ε: symdp delta"),
        ("epsilon gaussian sigma=2 --eps=1", "for δ at an ε: symdp delta"),
        ("curve gaussian sigma=2 --epsilon 1", "for δ at one ε: symdp delta"),
        ("curve gaussian sigma=2 --delta 1e-5", "for ε at a δ: symdp epsilon"),
        ("report gaussian sigma=2 --epsilon 1 -o page.html", "for δ at an ε: symdp verify"),
        ("tradeoff gaussian sigma=2 --delta 1e-5", "for ε at a δ: symdp epsilon"),
    ],
)
def test_a_question_of_another_command_names_it(shell, words, named):
    ran = shell(words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(f"{named}\n")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [("1%", Fraction(1, 100)), ("0.5 %", Fraction(1, 200)), ("-20%", Fraction(-1, 5))],
)
def test_a_percentage_is_exact(text, value):
    assert exact_number(text) == value


@pytest.mark.parametrize("text", ["%", "1%%", "1/3%", "%1", "1 % 2"])
def test_what_is_no_percentage_is_refused(text):
    with pytest.raises(symdp.InputError, match="is not a number"):
        exact_number(text)


def normal_delta(epsilon, sigma):
    """Return δ(ε) of one Gaussian step by its formula."""
    tail = [0.5 * math.erfc((sigma * epsilon + s / (2 * sigma)) / math.sqrt(2)) for s in (-1, 1)]
    return tail[0] - math.exp(epsilon) * tail[1]


@pytest.mark.slow
def test_names_and_numbers_as_others_write_them(shell):
    ran = shell("delta normal sigma=2 --epsilon 1 --json").json
    assert ran["delta"] == pytest.approx(normal_delta(1.0, 2.0), rel=1e-12)
    one = shell("delta gaussian sigma=2 --epsilon 1 --relation REPLACE_ONE --json").json
    assert one["delta"] == pytest.approx(normal_delta(1.0, 1.0), rel=1e-12)
    assert one["relation"] == "substitution"
    bound = shell("delta gaussian sigma=2 --epsilon 1 --method PRV --json").json
    assert bound["method"] == "prv"
    assert bound["delta"] >= normal_delta(1.0, 2.0)
    sampled = "delta gaussian sigma=2 --epsilon 0.1 --json"
    found = [
        shell(f"{sampled} --sampling {scheme} --rate {rate}").json["delta"]
        for scheme, rate in (("POISSON", "1%"), ("poisson", "0.01"))
    ]
    assert found[0] == found[1]
    words = "calibrate gaussian sigma=2 --parameter rate -n 9 --epsilon 1 --delta 1e-3 --json"
    found = [
        shell(f"{words} --rate rate --sampling {scheme}").json["value"]
        for scheme in ("Poisson", "poisson")
    ]
    assert found[0] == found[1]


def test_other_names_from_python():
    assert repr(symdp.mechanisms.normal(sigma=2)) == repr(symdp.mechanisms.gaussian(sigma=2))
    mechanism = symdp.mechanisms.gaussian(sigma=2)
    for other, own in [("replace_one", "substitution"), ("ADD_OR_REMOVE_ONE", "add_remove"),
                       ("replace_special", "zero_out")]:  # fmt: skip
        assert mechanism.under(other).relation == own


def test_a_file_called_normal_is_that_file(tmp_path, monkeypatch, shell):
    monkeypatch.chdir(tmp_path)
    text = 'name = "mine"\nvariable = "x"\nsupport = ["-oo", "oo"]\n[parameters]\nb = "positive"\n'
    text += '[noise]\ndensity = "exp(-Abs(x)/b)/(2*b)"\nsensitivity = 1\n'
    (tmp_path / "normal").write_text(text, encoding="utf-8")
    found = shell("delta normal b=2 --epsilon 0.25 --json").json
    assert found["delta"] == pytest.approx(1 - math.exp((0.25 - 0.5) / 2), rel=1e-12)


@pytest.mark.slow
def test_numbers_of_a_derivation_at_a_delta(shell):
    at = shell("epsilon gaussian sigma=2 --delta 1e-5 --direction remove --json").json["epsilon"]
    by_delta = shell("derive gaussian sigma=2 --delta 1e-5 --format json").json["values"]
    by_epsilon = shell("", "derive", "gaussian", "sigma=2", "--epsilon", repr(at), "--format",
                       "json").json["values"]  # fmt: skip
    for sheets in zip(by_delta, by_epsilon, strict=True):
        one, other = (sheet["rows"] for sheet in sheets)
        assert [row[0] for row in one] == [row[0] for row in other]
        # Cumulants that are 0 are roundings of their own at each of the two tilts.
        assert numbers(one) == pytest.approx(numbers(other), rel=2e-5, abs=1e-12)


def numbers(rows):
    """The last column of a sheet."""
    texts = [row[-1].replace("−", "-") for row in rows]
    return [float(text) for text in texts if re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", text)]


def test_a_comparison_at_one_place(shell):
    at_epsilon = shell("verify gaussian sigma=2 --epsilon 1.25 --method clt --json").json["checks"]
    assert [one["epsilon"] for one in at_epsilon] == [1.25]
    at_delta = shell("verify gaussian sigma=2 --delta 1e-3 --method clt --json").json["checks"]
    assert [normal_delta(one["epsilon"], 2.0) for one in at_delta] == [pytest.approx(1e-3, rel=0.1)]


@pytest.mark.slow
def test_a_page_begins_at_what_is_asked(shell, tmp_path):
    page = tmp_path / "page.html"
    shell("", "explore", "gaussian", "sigma=3", "--sampling", "Poisson", "--rate", "2%",
          "--epsilon", "2.5", "--delta", "1e-7", "-o", str(page))  # fmt: skip
    text = page.read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="panel-data">(.*?)</script>', text, re.S).group(1))
    assert (data["epsilon"]["value"], data["delta"]["value"]) == ("2.5", "1e-7")
    fields = {field["name"]: field["value"] for field in data["panels"][0]["fields"]}
    assert fields["q"] == "1/50"


@pytest.mark.parametrize(
    "words",
    [
        "report gaussian sigma=2 -o page.pdf",
        "report gaussian sigma=2 -o page.html --time-limit soon",
        "explore gaussian -o page.html --delta 2",
        "verify gaussian sigma=2 --epsilon 1 --delta 1e-5",
        "verify gaussian sigma=2 --direction up",
        "derive gaussian sigma=2 --epsilon 1 --delta 1e-5",
        "derive gaussian sigma=2 --delta 1e-5 --format latex",
        "certify gaussian sigma=2 --epsilon 1 --time-limit soon",
        "calibrate gaussian --parameter sigma --epsilon 1 --delta 1e-5 --direction up",
        "curve gaussian sigma=2 --plot nowhere/curve.svg",
        "tradeoff gaussian sigma=2 --time-limit -1",
        "epsilon gaussian sigma=2 --delta 1e-5 --time-limit soon",
    ],
)
def test_options_are_checked_before_work_begins(shell, words, monkeypatch):
    def worked(*_, **__):
        raise AssertionError("work began")

    monkeypatch.setattr("symdp.cli.job.Job.build", worked)
    monkeypatch.setattr("symdp.cli.job.Job.build_any", worked)
    monkeypatch.setattr("symdp.cli.job.Job.build_mechanism", worked)
    ran = shell(words)
    assert ran.code == 2, ran.err
    assert ran.err.startswith("symdp: ")
    assert ran.err.count("\n") == 1


# A command line of every command with a job that takes seconds, were it begun.
_STEPS = "gaussian sigma=2 --sampling poisson --rate 0.01 -n 1000"
_LINES = {
    "list": "", "methods": "", "derive": "gaussian sigma=2", "delta": f"{_STEPS} --epsilon 1",
    "epsilon": f"{_STEPS} --delta 1e-5", "curve": _STEPS, "verify": _STEPS,
    "certify": f"{_STEPS} --epsilon 1", "check": "certificate.json",
    "check-claim": f"eps=1,delta=1e-5 {_STEPS}", "compare": "gaussian --std 20 --delta 1e-5",
    "calibrate": "gaussian --parameter sigma --epsilon 1 --delta 1e-5", "tradeoff": _STEPS,
    "renyi": _STEPS, "audit": f"{_STEPS} --tp 90/100 --fp 5/100",
    "report": f"{_STEPS} -o page.html",
    "explore": f"{_STEPS} -o page.html", "ledger add": f"ledger.json {_STEPS}",
    "card": f"{_STEPS} -o card.json",
    "train": "--examples 60000 --batch 256 --epochs 60 --noise 1.12 --delta 1e-5",
}  # fmt: skip
_NO_MISTAKE = ("title", "note", "user")  # any text will do
_OF_THE_DERIVATION = {"only": "which formulas there are is known once they are derived"}
_FILES = ("output", "plot", "file", "registry", "check", "composition")


def options():
    """Yield each option that takes a value, of each command, in a line that gives it a bad one."""
    for command, line in _LINES.items():
        where = COMMANDS[command.split()[0]][0]
        found = found_at(where)
        found = found[command.split()[1]] if isinstance(found, dict) else found
        for one in parameters_of(found, command):
            if one.flags and one.holds and one.name not in {*_NO_MISTAKE, *_OF_THE_DERIVATION}:
                bad = "nowhere/at.all" if one.name in _FILES else "mistake?"
                words, flag = [command.split(), line.split()], one.flags[0]
                given = words[1]
                if flag in given:
                    place = given.index(flag)
                    del given[place : place + 2]
                yield pytest.param(
                    [*words[0], *given, flag, *[bad] * one.holds], flag, id=f"{command} {flag}"
                )


@pytest.mark.parametrize(("words", "flag"), list(options()))
def test_a_mistake_in_any_option_is_known_before_work_begins(
    shell, words, flag, monkeypatch, tmp_path
):
    def worked(*_, **__):
        raise AssertionError("work began")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("symdp.questions.composition.Composition.__init__", worked)
    monkeypatch.setattr("symdp.questions.steps.known.KnownComposition.__init__", worked)
    monkeypatch.setattr(import_module("symdp.derive.derivation"), "monotone_pieces", worked)
    monkeypatch.setattr("symdp.page.panel._data", worked)
    ran = shell("", *words)
    assert ran.code == 2, ran.err
    assert ran.out == ""
    assert ran.err.startswith("symdp: ")
    assert ran.err.count("\n") == 1
    assert "a bug in symdp" not in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [one for one in _LINES if one not in ("list", "methods")])
@pytest.mark.parametrize(
    ("flag", "named"), [("--epsilon", "symdp delta"), ("--delta", "symdp eps")]
)
def test_what_a_command_does_not_ask_another_does(shell, command, flag, named):
    where = COMMANDS[command.split()[0]][0]
    found = found_at(where)
    if isinstance(found, dict) or command in ("check", "train", "card"):
        pytest.skip("it has steps of its own, or another question")
    if any(flag in one.flags for one in parameters_of(found, command)):
        pytest.skip("it takes it")
    ran = shell("", command, *_LINES[command].split(), flag, "0.5")
    assert ran.code == 2
    assert named in ran.err or "symdp verify" in ran.err


def test_what_needs_sampling_says_so(shell):
    ran = shell("delta gaussian sigma=2 --epsilon 1 --released average")
    assert (ran.code, ran.out) == (2, "")
    assert "--released needs --sampling SCHEME" in ran.err


@pytest.mark.slow
def test_no_limit_of_time_is_written_in_the_same_way(shell):
    expected = shell("derive laplace --only loss --time-limit 30").out
    for text in ("0", "none"):
        assert shell("derive laplace --only loss --time-limit", text).out == expected


def until(answered, real, *, stop=60.0):
    """Return a function that answers some times, and then works for long."""
    times = [0]

    def asked(*given, **more):
        times[0] += 1
        if times[0] <= answered:
            return real(*given, **more)
        end = time.process_time() + stop
        while time.process_time() < end:
            pass
        raise AssertionError("nobody stopped it")

    return asked


@pytest.mark.slow
def test_a_curve_that_is_broken_off_shows_its_points(shell, monkeypatch):
    slow = until(2, symdp.Composition.delta)
    monkeypatch.setattr("symdp.questions.composition.Composition.delta", slow)
    words = "curve gaussian sigma=2 --epsilon-range 0 1 --points 40 --time-limit 3"
    ran = shell(words)
    assert ran.code == 1
    assert ran.err == "symdp: incomplete after 3 s: 26 of 40 points; raise --time-limit\n"
    rows = [line.split() for line in ran.out.splitlines() if line.endswith("exact")]
    assert len(rows) == 26
    assert float(rows[0][1]) == pytest.approx(normal_delta(0.0, 2.0), rel=1e-9)


@pytest.mark.slow
def test_a_calibration_that_is_broken_off_shows_what_it_visited(shell, monkeypatch):
    words = "calibrate gaussian --parameter sigma --epsilon 1 --delta 1e-5 --time-limit 3"
    for more, kind in (("", "text"), (" --json", "json")):
        with monkeypatch.context() as patch:
            slow = until(7, symdp.Composition.delta)
            patch.setattr("symdp.questions.composition.Composition.delta", slow)
            ran = shell(words + more)
        assert ran.code == 1
        told = re.fullmatch(
            r"symdp: (incomplete after 3 s: sigma = (\S+) meets it and (\S+) does not); "
            r"raise --time-limit\n", ran.err,
        )  # fmt: skip
        assert told
        assert normal_delta(1.0, float(told[2])) <= 1e-5 < normal_delta(1.0, float(told[3]))
        if kind == "json":
            found = json.loads(ran.out)
            assert found["incomplete"] == told[1]
            rows = [(one["value"], one["bound"], one["meets"]) for one in found["visited"]]
        else:
            cells = [line.split(maxsplit=2) for line in ran.out.splitlines()[1:]]
            rows = [(float(one), float(most), said == "meets it") for one, most, said in cells]
        assert len(rows) == 7
        for value, most, meets in rows:
            assert most >= normal_delta(1.0, value) * (1 - 1e-9)
            assert meets == (normal_delta(1.0, value) <= 1e-5)


@pytest.mark.slow
def test_a_comparison_that_is_broken_off_shows_its_rows(shell, monkeypatch):
    words = "verify gaussian sigma=2 --epsilon 1 --time-limit 3"
    for more in ("", " --json"):
        with monkeypatch.context() as patch:
            from symdp.page import verification

            patch.setattr(verification, "check", until(3, verification.check))
            patch.setattr(verification, "_ROW_SHARE", 60.0)
            ran = shell(words + more)
        assert ran.code == 1
        assert re.search(r"incomplete after 3 s: \d of \d+ truths and rows; raise", ran.err)
        if more:
            found = json.loads(ran.out)
            assert len(found["checks"]) == 3
            assert found["incomplete"].startswith("incomplete after 3 s")
        else:
            assert "contour" in ran.out
            assert "bound violated" not in ran.out


@pytest.mark.slow
def test_a_page_with_sliders_is_written_before_its_formulas(shell, monkeypatch, tmp_path):
    slow = until(0, None)
    monkeypatch.setattr(import_module("symdp.derive.printed").Derivation, "to_mathml", slow)
    page = tmp_path / "page.html"
    ran = shell("explore laplace b=2 --time-limit 4 -o", str(page))
    assert (ran.code, ran.out) == (1, "")
    lacks = f"{page} lacks its first answer and its formulas"
    assert ran.err == f"symdp: incomplete after 4 s: {lacks}; raise --time-limit\n"
    text = page.read_text(encoding="utf-8")
    assert "lacks its first answer" in text
    assert 'id="panel-data"' in text
