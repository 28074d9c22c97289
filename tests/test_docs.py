"""The guides' files, commands and sessions are read and run; cells are run by test_derivations."""

from __future__ import annotations

import importlib.util
import re
import shlex
import tomllib

import pytest
from pages import ROOT, Page, complaints, settled

import symdp

PAGES = [Page(path) for path in sorted((ROOT / "docs").glob("*.md"))]
SESSIONS = [(page.path.stem, body) for page in PAGES for body in page.blocks("python")]
FILES = [(page.path.stem, body) for page in PAGES for body in page.blocks("toml")]
SLOW = re.compile("symdp calibrate")  # takes ten seconds of computing
COMMANDS = [
    pytest.param(
        command, expected, id=command, marks=[pytest.mark.slow] * bool(SLOW.match(command))
    )
    for page in PAGES
    for command, expected in dict.fromkeys(page.console())
    if command.startswith("symdp ") and expected
]
# Pages that are made by a program, which writes their links, or that the build makes.
MADE = re.compile(r"(derivations|examples)/\w")
PEERS = ("opacus", "dp_accounting")


@pytest.mark.parametrize(("page", "body"), SESSIONS, ids=[name for name, _ in SESSIONS])
def test_sessions(page, body, monkeypatch):
    for peer in PEERS:
        if re.search(rf"(from|import) {peer}\b", body) and not importlib.util.find_spec(peer):
            pytest.skip(f"{peer} is not installed")
    monkeypatch.chdir(ROOT)
    assert not complaints(body, page)


@pytest.mark.parametrize(("page", "body"), FILES, ids=[name for name, _ in FILES])
def test_files(page, body):
    if "step" in tomllib.loads(body):
        shown = [line for line in body.splitlines() if line]
        there = (ROOT / "examples" / "composition.toml").read_text(encoding="utf-8")
        assert shown == [line for line in there.splitlines() if line][1:]
    else:
        assert symdp.loads(body).name


@pytest.mark.parametrize(("command", "expected"), COMMANDS)
def test_commands(shell, monkeypatch, command, expected):
    monkeypatch.chdir(ROOT)
    ran = shell("", *shlex.split(command)[1:])
    assert settled(ran.out + ran.err) == settled(expected)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.stem)
def test_links(page):
    for target in page.links():
        if not MADE.match(target):
            assert (page.path.parent / target).exists(), target


def test_every_command_has_its_section():
    from symdp.cli import app as commands

    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    groups = [group.name for group in commands.app.registered_groups]
    for command in commands.app.registered_commands:
        groups.append(command.name or command.callback.__name__)
    for name in groups:
        assert f"\n## symdp {name}\n" in text


def test_every_method_is_named():
    from symdp.methods import names

    text = (ROOT / "docs" / "answers.md").read_text(encoding="utf-8")
    for name in names():
        assert f"`{name.split(':')[0]}" in text
