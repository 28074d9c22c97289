"""The README's code is run, and the paper's: what they show is what this version prints."""

from __future__ import annotations

import re
import shlex

import pytest
from pages import ROOT, Page, complaints, settled

from symdp.citation import REFERENCES

PAGE = Page(ROOT / "README.md")
PAPER = Page(ROOT / "paper" / "paper.md")
CONSOLE = dict.fromkeys([*PAGE.console(), *PAPER.console()])
AT_THE_TOP = ("README.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "CHANGELOG.md")
LONGEST = 100  # lines: what is read before the first command is typed


def test_the_readme_is_short():
    assert len(PAGE.text.splitlines()) <= LONGEST


def test_the_readme_begins_with_the_two_commands():
    code = PAGE.blocks("sh")[0]
    assert code.startswith("make run")
    assert "\nmake test" in code
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", code, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_what_to_type_next_works(shell, monkeypatch):
    monkeypatch.chdir(ROOT)
    third = PAGE.blocks("sh")[0].splitlines()[2]
    program, *words = shlex.split(third)
    assert program == ".venv/bin/symdp"  # where both commands before it install it
    ran = shell("", *words)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("δ(2.5) = 0.00716066322984\n")
    assert third in (ROOT / "examples" / "run.py").read_text(encoding="utf-8")


def test_no_line_needs_what_was_not_installed():
    # The project is on no index: whatever pip is told to install is this folder.
    for command in re.findall(r"`(pipx? install [^`]*)`", PAGE.text):
        assert shlex.split(command)[-1] in {".", ".[plot]"}, command
    for language in ("sh", "console"):
        for line in "".join(PAGE.blocks(language)).splitlines():
            assert "pip" not in line


@pytest.mark.parametrize("place", range(len(PAGE.blocks("python"))))
def test_python_examples(place, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert not complaints(PAGE.blocks("python")[place], "README.md")


@pytest.mark.slow_cases("symdp certify examples/logistic.toml s=4 -n 50 --epsilon 2.5")
@pytest.mark.parametrize(("command", "expected"), CONSOLE, ids=[c for c, _ in CONSOLE])
def test_console_examples(shell, monkeypatch, command, expected):
    monkeypatch.chdir(ROOT)
    program, *words = shlex.split(command)
    assert program == "symdp"
    ran = shell("", *words)
    assert settled(ran.out + ran.err) == settled(expected)


def test_the_file_shown_is_the_file_there():
    shown = PAGE.blocks("toml")[0].splitlines()
    there = (ROOT / "examples" / "logistic.toml").read_text(encoding="utf-8").splitlines()
    for line in shown:
        assert line in there


@pytest.mark.parametrize("name", AT_THE_TOP)
def test_every_link_leads_somewhere(name):
    for target in Page(ROOT / name).links():
        assert (ROOT / target).exists(), target


def test_the_paper_cites_what_the_package_cites():
    there = (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8").split("\n\n")
    known = {entry.key: entry.bibtex() for entry in REFERENCES.values()}
    cited = set(re.findall(r"@([a-z]+\d{4}[a-z]+)", PAPER.text))
    assert cited == {re.findall(r"\{(\w+),", entry)[0] for entry in there}
    of_methods = cited & known.keys()
    # The library that balls are computed by, and where a table's chords come from.
    assert cited - of_methods == {"doroshenko2022dots", "johansson2017arb"}
    for key in of_methods:
        assert known[key] in [entry.strip() for entry in there]
