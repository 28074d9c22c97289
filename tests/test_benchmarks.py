"""What can be tested of the benchmarks without the programs they compare: words, limits, pages."""

from __future__ import annotations

import ast
import copy
import doctest
import importlib
import json
import math
import re
import sys
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # benchmarks/ is no part of what is installed

from benchmarks import strangers  # noqa: E402
from benchmarks.days import measure, questions, scaling  # noqa: E402
from benchmarks.days import page as days_page  # noqa: E402
from benchmarks.frozen import __main__ as frozen  # noqa: E402
from benchmarks.frozen import asking, comparison  # noqa: E402
from benchmarks.frozen import cases as frozen_cases  # noqa: E402
from benchmarks.frozen import rows as frozen_rows  # noqa: E402
from benchmarks.mutants import reached  # noqa: E402
from benchmarks.mutants.changes import again, drawn, mutations  # noqa: E402
from benchmarks.peers import (  # noqa: E402
    accuracy,
    contenders,
    drawing,
    intervals,
    page,
    programs,
    ratios,
    report,
    run,
    verdict,
    worker,
)
from benchmarks.peers.answers import Answer, Contender, NotCoveredError, Outcome  # noqa: E402
from benchmarks.peers.jobs import JOBS, Job  # noqa: E402
from benchmarks.peers.runner import Runner  # noqa: E402

SCRIPTS = sorted([*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "examples").rglob("*.py")])
FROZEN_ROUTES = {
    "outside_range", "finite_sum", "single", "lattice", "contour", "residues", "moments", "mesh",
    "prv",
}  # fmt: skip
HALF = (Fraction(1, 2), Fraction(1, 2))
PLAIN = Job("plain", "Plain noise", "No sampling.", "gaussian", "2", "1", 3, 1.5)


def outcome(value, kind="estimate", lower=None, upper=None, note=""):
    return Outcome(Answer(value, kind, lower, upper, note), seconds={"once": 1.0, "first": 1.0})


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_script_imports_of_symdp_is_there(script):
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "symdp":
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (0.0, "estimate", "returns 0"),
        (0.0, "upper", "returns 0"),
        (-1e-20, "estimate", "negative"),
        (math.inf, "upper", "inf"),
        (math.nan, "upper", "nan"),
        (0.49, "upper", "**below the truth**"),
        (0.51, "lower", "**above the truth**"),
        (0.25, "estimate", "half of it is missing"),
        (0.5 * (1 - 1e-5), "estimate", "by 1.0e-05 of it"),
        (1e-9, "estimate", "5e+08 times too small"),
    ],
)
def test_what_is_wrong_is_said(value, kind, said):
    assert said in verdict.words(outcome(value, kind), HALF)


@pytest.mark.parametrize(
    ("value", "kind"),
    [(0.5, "upper"), (0.51, "upper"), (0.49, "lower"), (0.6, "estimate"), (0.5 - 1e-16, "exact")],
)
def test_what_is_right_needs_no_word(value, kind):
    assert verdict.words(outcome(value, kind), HALF) == ""


def test_a_double_that_rounds_the_truth_is_not_called_wrong():
    third = (Fraction(1, 3) - Fraction(1, 10**20), Fraction(1, 3) + Fraction(1, 10**20))
    assert verdict.below(1 / 3, third)
    assert verdict.words(outcome(1 / 3), third) == ""
    assert abs(verdict.relative_error(1 / 3, third)) < 1e-16


def test_a_trivial_bound_says_nothing_and_a_failure_speaks_for_itself():
    tiny = (Fraction(1, 10**100), Fraction(1, 10**100))
    assert "says nothing" in verdict.words(outcome(1.0, "upper"), tiny)
    assert verdict.words(Outcome(failure="over 30 s"), HALF) == "over 30 s"
    assert verdict.shown_error(1.0, tiny).startswith("×")


def test_intervals_hold_the_truth_or_not():
    assert intervals.verdict(outcome(0.5, "estimate", 0.4, 0.6), HALF) == "yes"
    assert intervals.verdict(outcome(0.7, "estimate", 0.6, 0.8), HALF).startswith("**no**")
    assert intervals.verdict(outcome(0.4, "upper"), HALF).startswith("**no**")
    assert intervals.verdict(outcome(0.4, "lower"), HALF) == "yes"
    assert intervals.verdict(outcome(0.4), HALF) == "claims no interval"
    missed = outcome(0.5, "estimate", Fraction(3, 5), 0.8)
    assert "**its interval misses the truth**" in verdict.words(missed, HALF)


@pytest.mark.parametrize("module", [page, verdict, scaling, asking, comparison, frozen_rows])
def test_examples_in_docstrings(module):
    failed, tried = doctest.testmod(module)
    assert failed == 0
    assert tried > 0


def test_numbers_as_they_are_printed():
    assert page.number(1.5912463e-109, 4) == "1.591e-109"
    assert page.duration(2.5e-5) == "0.025 ms"
    assert page.duration(0.0997) == "100 ms"
    assert page.ratio(1_234_567.0) == "1,200,000"
    assert page.ratio(math.nan) == "–"
    assert page.table(("a",), [("|x|",)]).splitlines()[-1] == "| /x/ |"


def test_jobs_are_what_they_say():
    names = [job.name for job in JOBS]
    assert len(set(names)) == len(names) >= 12
    assert {job.noise for job in JOBS} == {"gaussian", "laplace", "logistic"}
    tutorial = next(job for job in JOBS if job.name == "tutorial")
    assert tutorial.q == 256 / 60000
    assert "q = 256/60000, σ = 1.12, n = 14,063, ε = 2.31" in tutorial.setting
    moved = tutorial.moved(3)
    assert Fraction(moved.scale) == Fraction("1.12") * Fraction(10_003, 10_000)
    assert moved.mechanism().require_concrete()
    assert len(intervals.jobs()) == 1 + 2 * len(intervals.ROWS)


def test_contenders_come_from_coarse_to_fine():
    for ladder in {c.ladder for c in contenders.peers()}:
        fineness = [c.setting[0] for c in contenders.peers() if c.ladder == ladder and c.setting]
        assert fineness == sorted(fineness, reverse=True)
    labels = [c.label for c in (*contenders.methods(), *contenders.peers())]
    assert len(set(labels)) == len(labels)
    assert {c.label for c in contenders.defaults()} <= set(labels)
    assert all(c.program in programs.PROGRAMS for c in contenders.peers())


def test_symdp_answers_in_three_stages():
    exact, bound = programs.Symdp("contour"), programs.Symdp("moments")
    composed = exact.composed(exact.step(PLAIN), PLAIN.count)
    found = exact.delta(composed, PLAIN.epsilon)
    assert found.kind == "exact"
    assert found.value == pytest.approx(0.028882245552, rel=1e-10)  # from the package's doctest
    assert found.lower <= found.value <= found.upper
    assert bound.delta(composed, PLAIN.epsilon).kind == "upper"
    assert exact.epsilon(composed, found.value).value == pytest.approx(PLAIN.epsilon, rel=1e-10)
    curve = exact.curve(composed, [1.0 + k / 200 for k in range(200)]).value
    assert list(curve) == sorted(curve, reverse=True)
    proved = programs.Symdp("certified").delta(composed, PLAIN.epsilon)
    assert isinstance(proved.lower, Fraction)
    assert verdict.holds(found, (proved.lower, proved.upper))


def test_the_median_stops_at_its_budget():
    assert worker.median_seconds(lambda: sum(range(10**6)), 0.0) > 0.0
    calls = []
    worker.median_seconds(lambda: calls.append(1), 60.0)
    assert len(calls) == worker.MOST_CALLS


@pytest.mark.slow
def test_a_worker_answers_fails_and_is_replaced():
    with Runner(limit=60.0) as runner:
        truth = runner.truth(PLAIN, "delta", PLAIN.epsilon)
        assert float(truth[0]) == pytest.approx(0.028882245552, rel=1e-10)
        found = runner.ask(contenders.ours("clt"), PLAIN, "delta", PLAIN.epsilon, ("next",), 0.0)
        assert found.answer.kind == "estimate"
        assert found.seconds["next"] > 0
        unknown = Contender("symdp", ("no-such-method",), "unknown", "unknown")
        failed = runner.ask(unknown, PLAIN, "delta", 1.0)
        assert failed.failure.startswith("InputError")
        assert not failed.out_of_reach
        runner.limit = 0.0
        late = runner.ask(contenders.ours("clt"), PLAIN, "delta", 1.0)
        assert late.out_of_reach
        assert late.failure == "over 0 s"
        runner.limit = 60.0
        again = runner.ask(contenders.ours("clt"), PLAIN, "delta", PLAIN.epsilon)
        assert again.answer.value == found.answer.value


def measured():
    found = [
        (contenders.ours("contour"), outcome(0.5, "exact", 0.5, 0.5)),
        (contenders.ours("fourier"), outcome(0.5)),
        (contenders.dots(1e-3), outcome(1.0, "upper")),
        (contenders.dots(1e-4), outcome(0.4, "upper")),
        (contenders.buckets(1e-4), Outcome(failure="over 30 s", out_of_reach=True)),
        (contenders.rdp(), Outcome(failure="no such mechanism")),
        (contenders.prv(0.1), outcome(0.0, "estimate", -0.1, 0.1)),
    ]
    return accuracy.Measured(PLAIN, HALF, found)


@pytest.mark.slow
def test_the_figure_is_drawn_and_says_who_is_below(tmp_path):
    points = accuracy.points(measured())
    assert [p.below for p in points] == [False, False, False, True, True]
    assert {p.group for p in points} <= set(drawing.STYLES)
    drawing.save(points, "a title", "bench-plain", tmp_path, tmp_path)
    first = (tmp_path / "bench-plain.svg").read_text()
    assert "contour" in first
    assert "a title" in first
    drawing.save(points, "a title", "bench-plain", tmp_path, tmp_path)
    assert (tmp_path / "bench-plain.svg").read_text() == first


def test_the_page_names_what_must_not_be_relied_on():
    seconds = dict.fromkeys((*ratios.SITUATIONS, "cold"), 0.25)
    own = {c for pair in ratios.pairs() for c in pair}
    outcomes = {c: Outcome(Answer(0.5, "exact"), seconds=dict(seconds)) for c in own}
    race = ratios.Race("delta", "δ at ε = 1", [HALF], outcomes)
    for contender, found in outcomes.items():
        if contender.program != "symdp":
            found.seconds["next"] = 250.0
            found.answer = Answer(0.75, "upper")
    side = intervals.Side(PLAIN, HALF, [(contenders.dots(1e-4), outcome(0.4, "upper"))])
    text = accuracy.section(measured()) + ratios.section([race]) + intervals.section(side)
    assert "| 1,000 |" in text
    assert "unlike" not in text
    glance = ratios.headline([race]).splitlines()
    assert glance[2] == "| δ at ε = 1 | **parameters never seen** | 250 ms | 250 ms | 1.0 |"
    assert len(glance) == 2 + len(ratios.SITUATIONS) - 1
    del outcomes[ratios.pairs()[1][0]]  # a program that is not installed has no column
    assert "prv-accountant" not in ratios.section([race])
    assert "| over 30 s |" in text
    assert intervals.misses([side]) == {contenders.dots(1e-4).label: 1}
    whole = report._wrong([measured()])
    assert whole.count("\n") == 2
    assert "Google PLD, connect the dots, 0.0001 **below the truth**" in whole
    assert "prv-accountant, ε error 0.1 **returns 0**" in whole


def test_a_run_that_was_stopped_goes_on(tmp_path):
    said = []
    first = run.Parts(tmp_path / "kept", said.append)
    assert first.get("a part", lambda: [1, 2]) == [1, 2]
    again = run.Parts(tmp_path / "kept", said.append)
    assert again.get("a part", lambda: pytest.fail("measured anew")) == [1, 2]
    assert said == ["a part"]
    assert again.seconds == first.seconds > 0.0
    assert run.Parts(None, said.append).get("a part", lambda: 3) == 3


def test_nothing_is_written_where_a_program_is_missing(monkeypatch):
    monkeypatch.setattr(contenders, "find_spec", lambda name: None if name == "riskcal" else name)
    assert contenders.missing() == ["riskcal"]
    monkeypatch.setattr(sys, "argv", ["benchmarks.peers"])
    with pytest.raises(SystemExit, match="the page names riskcal"):
        run.main()


def test_peers_say_what_they_have_not(monkeypatch):
    monkeypatch.setattr(programs, "import_module", lambda name: SimpleNamespace())
    allocated = next(job for job in JOBS if job.scheme == "allocation")
    for program in (programs.GoogleRdp(), programs.Autodp(), programs.PrvAccountant(0.1)):
        with pytest.raises(NotCoveredError, match="random allocation"):
            program.step(allocated)
    with pytest.raises(NotCoveredError, match="distribution function"):
        programs.PrvAccountant(0.1).step(JOBS[-1])
    with pytest.raises(NotCoveredError, match="no such mechanism"):
        programs.GoogleRdp().step(JOBS[-1])


def test_the_pages_are_whole():
    text = (ROOT / "docs" / "benchmarks-jobs.md").read_text()
    for job in JOBS:
        assert f"## {job.heading}\n" in text
    assert "prv-accountant" in (ROOT / "docs" / "benchmarks-intervals.md").read_text()
    pictures = re.findall(r"\(figures/(bench-[\w-]+\.svg)\)", text)
    assert len(pictures) >= 10
    for name in pictures:
        assert (ROOT / "docs" / "figures" / name).read_text().lstrip().startswith("<?xml")


def test_the_page_of_jobs_is_an_index_and_folded_tables():
    text = (ROOT / "docs" / "benchmarks-jobs.md").read_text()
    _, *parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    plain = [re.sub(r"<details>.*</summary>\n\n|\n*</details>", "", part) for part in parts]
    assert report.job_page([part.rstrip("\n") + "\n" for part in plain]) == text
    assert text.count("<details>") == text.count("</details>") == len(JOBS)
    seen = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    assert len(seen.split()) < 1200


def test_the_page_of_days_is_what_was_measured():
    kept = json.loads((ROOT / "docs" / "figures" / "days.json").read_text())
    names = [question.name for question in questions.QUESTIONS]
    assert len(set(names)) == len(names) == 80
    assert [row["name"] for row in kept["rows"]] == names
    assert (ROOT / "docs" / "days.md").read_text() == days_page.page(kept)
    assert (ROOT / "docs" / "figures" / "days-scaling.svg").is_file()


def test_a_question_of_a_day_is_asked_moved_and_checked():
    asked = questions.named("gaussian, 1 step")
    (first,), (moved,) = asked.answer(), asked.answer(5)
    # Normal noise of scale 2: δ = Φ(1/4 − 2ε) − e^ε Φ(−1/4 − 2ε), ε = 0.1.
    phi = NormalDist().cdf
    assert first == pytest.approx(phi(0.05) - math.exp(0.1) * phi(-0.45), rel=1e-10)
    assert 0 < first - moved < 1e-3 * first
    (check,) = measure.checks(asked, (first,))
    assert (check.ask, check.at, check.value) == ("delta", 0.1, first)
    other = questions.named("gaussian, 1 step, sampled")
    assert measure.checks(other, (0.0,))[0].key != check.key
    assert asked.job().setting.endswith("σ = 2, n = 1, ε = 0.1")
    assert questions.named("logistic, 10 steps").job() is None


def test_frozen_answers_are_compared_and_a_doctored_row_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SYMDP_CACHE", "off")
    monkeypatch.setattr(asking, "prepare", lambda: None)  # seconds are not looked at here
    kept = frozen_rows.read()
    name = "built-in: 1 laplace b=2"
    three = [row for row in kept.values() if row["case"] == name]
    assert len(three) == 3
    wrong = copy.deepcopy(three[1])
    wrong["answer"]["log_lower"] += 1e-6
    wrong["answer"]["log_upper"] += 1e-6
    file = tmp_path / "values.jsonl"
    frozen_rows.write([three[0], wrong, three[2]], file)
    found = tmp_path / "found.json"
    frozen.main(["compare", "--only", name, "--values", str(file), "--json", str(found)])
    said = capsys.readouterr().out
    assert re.search(r"^rows +3$", said, re.M)
    assert re.search(r"^moved outside +1$", said, re.M)
    assert f"{name}, {wrong['place']}, answer: moved outside: log δ in" in said
    verdicts = [one["verdicts"] for one in json.loads(found.read_text())]
    assert ["moved outside" in one for one in verdicts] == [False, True, False]


def test_frozen_rows_are_of_the_cases_and_meet_every_route():
    kept, known = frozen_rows.read(), frozen_cases.cases()
    assert len(known) == 405
    assert {case for case, _ in kept} <= set(known)
    assert {place for case, place in kept} <= {p for one in known.values() for p in one.places}
    assert {row["answer"].get("route", "") for row in kept.values()} >= FROZEN_ROUTES


def test_what_a_change_does_to_a_frozen_row_has_a_word():
    answer = {"log_delta": -9.0, "log_lower": -9.1, "log_upper": -8.9, "kind": "exact"}
    proof = {"lower": "1.2e-4", "upper": "1.3e-4", "by": "a sum"}
    old = {"case": "a", "place": "mean", "answer": answer | {"seconds": 0.1}, "truth": proof}

    def verdicts(**now):
        return comparison.compare(old, old["answer"] | now, "answer").verdicts

    assert verdicts() == []
    assert verdicts(log_lower=-9.3, log_delta=-9.2) == ["value outside", "widened"]
    assert verdicts(log_upper=-8.95) == ["narrowed"]
    assert verdicts(log_lower=-8.94) == ["narrowed", "moved outside"]  # log 1.3e-4 = −8.948
    assert verdicts(kind="estimate", seconds=0.3) == ["weaker kind", "slower than twice"]
    assert verdicts(refused="no") == ["refused"]
    assert verdicts(log_upper=None) == ["widened"]


TO_CHANGE = '''"""Text - of 1."""
LEAST = 1e-3

def upper(x: int = 2) -> float:
    return -x if x < 3 else max(x, LEAST)
'''


def test_a_mutation_changes_one_thing_that_is_run():
    changed = {change.applied(TO_CHANGE).split("\n")[change.line - 1] for change in
               mutations("a.py", TO_CHANGE)}  # fmt: skip
    assert changed == {
        "LEAST = 0.002",
        "def upper(x: int = 3) -> float:",
        "    return x if x < 3 else max(x, LEAST)",
        "    return -x if x <= 3 else max(x, LEAST)",
        "    return -x if x > 3 else max(x, LEAST)",
        "    return -x if x < 4 else max(x, LEAST)",
        "    return -x if x < 3 else min(x, LEAST)",
    }


def test_mutations_are_drawn_alike_and_found_again_in_a_text_that_moved(tmp_path):
    room = tmp_path / "symdp" / "room"
    room.mkdir(parents=True)
    (room / "a.py").write_text(TO_CHANGE, encoding="utf-8")
    (room / "b.py").write_text("def double(x):\n    return 2 * x + 1\n", encoding="utf-8")
    few = drawn(tmp_path, "room", 4, seed=1)
    assert drawn(tmp_path, "room", 9, seed=1)[:4] == few
    assert {change.path for change in few} == {"symdp/room/a.py", "symdp/room/b.py"}
    own = next(change for change in few if change.path.endswith("b.py"))
    before = (tmp_path / own.path).read_text(encoding="utf-8")
    (tmp_path / own.path).write_text("# moved\n" + before, encoding="utf-8")
    moved = again(tmp_path, own, before.split("\n")[own.line - 1])
    assert moved is not None
    assert moved.applied("# moved\n" + before) == "# moved\n" + own.applied(before)


@pytest.mark.parametrize(
    ("room", "measured"), [("page", ["page"]), ("", ["emit", "page", "test_a.py"])]
)
def test_the_lines_of_one_room_or_of_all_are_measured(room, measured, tmp_path, monkeypatch):
    """What a room's own tests run is known without the tests of other rooms."""
    for name in ("emit", "page"):
        (tmp_path / "tests" / name).mkdir(parents=True)
        (tmp_path / f"{name}.json").write_text(json.dumps({name: 1.0}))
    (tmp_path / "tests" / "test_a.py").touch()
    (tmp_path / "test_a.py.json").write_text(json.dumps({"test_a.py": 1.0}))
    assert set(reached.Reached(tmp_path, tmp_path, room).seconds) == set(measured)
    asked = []
    monkeypatch.setattr(reached.subprocess, "run", lambda command, **_: asked.append(command[4:]))
    reached.Reached(tmp_path, tmp_path / "new", room).measure()
    assert asked == [[f"tests/{name}"] for name in measured]


def test_the_page_of_strangers_names_what_is_asked():
    """The same densities and the same questions, in any order."""
    text = (ROOT / "docs/strangers.md").read_text(encoding="utf-8")
    _, _, names = text.partition("## The densities")
    listed = " ".join(names.split("\n\n")[1].split()).rstrip(".").split("; ")
    assert sorted(listed) == sorted(strangers.UNSEEN | strangers.TWENTY)
    asked = strangers.questions(strangers.UNSEEN["two far normals"])
    table = text.partition("| asked |")[2].partition("## ")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    assert [row for row in rows if row not in ("---", "all")] == list(asked)
