"""The README's code is run: what it shows is what this version prints."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from symdp.cli import app as commands

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Times, and what a method thinks of its own rounding, differ between machines.
VARIES = [
    (re.compile(r"[\d.e-]+ s$", re.MULTILINE), "TIME s"),
    (re.compile(r"at most [\d.e-]+ by"), "at most ERROR by"),
]


def blocks(language):
    return [body for kind, body in BLOCK.findall(TEXT) if kind == language]


def console():
    found = []
    for body in blocks("console"):
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            found.append((command, expected))
    return found


def settled(text):
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def test_the_readme_begins_with_the_two_commands():
    code = blocks("sh")[0]
    assert code.startswith("make run")
    assert "\nmake test" in code
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", code, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_what_to_type_next_works(shell, monkeypatch):
    monkeypatch.chdir(ROOT)
    third = blocks("sh")[0].splitlines()[2]
    program, *words = shlex.split(third)
    assert program == ".venv/bin/symdp"  # where both commands before it install it
    ran = shell("", *words)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("δ(2.5) = 0.00716066322984\n")
    assert third in (ROOT / "examples" / "run.py").read_text(encoding="utf-8")


def test_no_line_needs_what_was_not_installed():
    # The project is on no index: whatever pip is told to install is this folder.
    for command in re.findall(r"`(pipx? install [^`]*)`", TEXT):
        assert shlex.split(command)[-1] in {".", ".[plot]"}, command
    for language in ("sh", "console"):
        for line in "".join(blocks(language)).splitlines():
            assert "pip" not in line


@pytest.mark.parametrize("place", range(len(blocks("python"))))
def test_python_examples(place, monkeypatch):
    monkeypatch.chdir(ROOT)
    test = doctest.DocTestParser().get_doctest(
        blocks("python")[place], {}, "README.md", "README.md", 0
    )
    assert test.examples
    complaints: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=complaints.append)
    assert not complaints, "".join(complaints)


@pytest.mark.parametrize(("command", "expected"), console(), ids=[c for c, _ in console()])
def test_console_examples(shell, monkeypatch, command, expected):
    monkeypatch.chdir(ROOT)
    program, *words = shlex.split(command)
    assert program == "symdp"
    ran = shell("", *words)
    assert settled(ran.out + ran.err) == settled(expected)


def test_the_file_shown_is_the_file_there():
    shown = blocks("toml")[0].splitlines()
    there = (ROOT / "examples" / "logistic.toml").read_text(encoding="utf-8").splitlines()
    for line in shown:
        assert line in there


def test_every_command_is_named():
    for command in commands.app.registered_commands:
        name = command.name or command.callback.__name__
        assert f"`symdp {name}" in TEXT


def test_every_method_is_named():
    from symdp.methods import names

    for name in names():
        assert f"`{name.split(':')[0]}" in TEXT
