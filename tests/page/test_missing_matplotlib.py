"""Without Matplotlib: figures fail before any work, a report is written and says what it lacks."""

from __future__ import annotations

import sys

import pytest

from symdp.page.plot import why_not_drawn
from symdp.questions.composition import Composition

STEPS = "laplace b=2 -n 2"


class _Hidden:
    """Finds no Matplotlib, as where it is not installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def hidden(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Hidden(), *sys.meta_path])


@pytest.fixture
def asked(monkeypatch):
    """Count the questions that are computed."""
    found = []
    for name in ("delta", "epsilon"):
        real = getattr(Composition, name)

        def counted(self, *words, real=real, **more):
            found.append(words)
            return real(self, *words, **more)

        monkeypatch.setattr(Composition, name, counted)
    return found


def test_the_reason_names_what_works_from_the_checkout(hidden):
    assert "pip install -e '.[plot]'" in why_not_drawn()
    assert "symdp[plot]" not in why_not_drawn()


def test_with_matplotlib_there_is_no_reason():
    assert why_not_drawn() == ""


def test_a_figure_is_refused_before_anything_is_computed(shell, tmp_path, hidden, asked):
    ran = shell(f"curve {STEPS} --points 2 --plot", str(tmp_path / "a.svg"))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert "pip install -e '.[plot]'" in ran.err
    assert asked == []
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_named_before_anything_is_computed(shell, tmp_path, asked):
    ran = shell(f"curve {STEPS} --points 2 --plot", str(tmp_path / "no" / "a.svg"))
    assert (ran.code, ran.out) == (2, "")
    assert "there is no folder" in ran.err
    assert asked == []


def test_a_curve_that_is_not_drawn_needs_no_matplotlib(shell, hidden, asked):
    ran = shell(f"curve {STEPS} --points 2 --epsilon-range 0 0.5")
    assert ran.code == 0, ran.err
    assert len(asked) == 2


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["html", "md"])
def test_a_report_is_written_without_figures_and_says_so(
    shell, tmp_path, hidden, monkeypatch, ending
):
    from symdp.page import report

    monkeypatch.setattr(report, "analysing", lambda *_, **__: iter(()))
    monkeypatch.setattr(report, "sample", lambda *_, **__: pytest.fail("a profile not drawn"))
    file = tmp_path / f"page.{ending}"
    ran = shell(f"report {STEPS} -o", str(file))
    assert ran.code == 0, ran.err
    assert ran.out == f"{file}\n"
    assert ran.err.count("\n") == 1
    assert "no figures" in ran.err
    assert "pip install -e '.[plot]'" in ran.err
    text = file.read_text(encoding="utf-8")
    assert "not drawn" in text
    assert "<svg" not in text
    assert list(tmp_path.iterdir()) == [file]
