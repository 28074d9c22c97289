"""The README's code is run: what it shows is what this version prints."""

from __future__ import annotations

import re
import shlex

import pytest
from pages import ROOT, Page, complaints, settled

PAGE = Page(ROOT / "README.md")
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


@pytest.mark.parametrize(
    ("command", "expected"), PAGE.console(), ids=[c for c, _ in PAGE.console()]
)
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


def test_every_link_leads_somewhere():
    for target in PAGE.links():
        assert (ROOT / target).exists(), target
