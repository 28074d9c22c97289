"""The guides' files, commands and sessions are read and run; cells are run by test_derivations."""

from __future__ import annotations

import ast
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
SLOW = re.compile("symdp calibrate|.*--delta 1.13e-18")  # takes ten seconds of computing
COMMANDS = [
    pytest.param(
        command, expected, id=command, marks=[pytest.mark.slow] * bool(SLOW.match(command))
    )
    for page in PAGES
    for command, expected in dict.fromkeys(page.console())
    if command.startswith("symdp ") and expected
]
PEERS = ("opacus", "dp_accounting", "flwr", "opendp", "jax_privacy")


@pytest.mark.slow_cases("recipes")
@pytest.mark.parametrize(("page", "body"), SESSIONS, ids=[name for name, _ in SESSIONS])
def test_sessions(page, body, monkeypatch):
    peers = [peer for peer in PEERS if re.search(rf"(from|import) {peer}\b", body)]
    if peers and ">>> " not in body:  # a part of somebody's loop; tests/adapters runs whole ones
        ast.parse(body)
        return
    if missing := [peer for peer in peers if not importlib.util.find_spec(peer)]:
        pytest.skip(f"{missing[0]} is not installed")
    monkeypatch.chdir(ROOT)
    assert not complaints(body, page)


@pytest.mark.parametrize(("page", "body"), FILES, ids=[name for name, _ in FILES])
def test_files(page, body):
    if "step" in tomllib.loads(body):
        shown = [line for line in body.splitlines() if line]
        files = (ROOT / "examples").glob("*.toml")
        texts = [path.read_text(encoding="utf-8").splitlines() for path in files]
        assert shown in [[line for line in text if line][1:] for text in texts]
    else:
        assert symdp.Mechanism.from_toml(body).name


@pytest.mark.parametrize(("command", "expected"), COMMANDS)
def test_commands(shell, monkeypatch, command, expected):
    monkeypatch.chdir(ROOT)
    ran = shell("", *shlex.split(command)[1:])
    assert settled(ran.out + ran.err) == settled(expected)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.stem)
def test_links(page):
    for target in page.links():
        assert (page.path.parent / target).exists(), target


def test_every_command_has_its_section():
    from symdp.cli.table import COMMANDS

    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"\n## symdp {name}\n" in text
        assert f"\n| [`{name}`](#symdp-{name})" in text


def test_every_derivation_is_in_the_table_of_contents():
    listed = set(re.findall(r"^derivations/([\w-]+)$", (ROOT / "docs/index.md").read_text(), re.M))
    assert listed == {page.stem for page in (ROOT / "derivations").glob("*.md")}


def test_the_page_of_answers_shows_the_methods_of_the_package():
    from symdp.methods import METHODS

    text = (ROOT / "docs" / "answers.md").read_text(encoding="utf-8")
    for method in METHODS:
        name, kind, what, source, flags = METHODS[method].cells(method)
        own = f"`{name}`" + (" (default)" if method == "contour" else "")
        shown = f"`{flags}`" if flags else ""
        assert f"| {own} | {kind} | {what} | {source} | {shown} |" in text


def reference_names():
    pages = (ROOT / "docs").glob("reference*.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    return re.findall(r"^\.\. auto(?:function|class|exception):: ([\w.]+)$", text, re.MULTILINE)


@pytest.mark.parametrize("name", reference_names())
def test_a_name_of_the_reference_is_imported_as_it_is_printed(name):
    module, _, own = name.rpartition(".")
    found: dict[str, object] = {}
    exec(f"from {module} import {own}", found)
    assert callable(found[own])
    assert found[own].__doc__


def test_the_page_of_choices_shows_the_routes_of_the_package():
    from symdp.methods.route import ROUTES

    text = (ROOT / "docs" / "how-to-choose.md").read_text(encoding="utf-8")
    rows = [f"| `{r.name}` | {r.laws} | {r.how} | {r.promise} | {r.cost} |" for r in ROUTES]
    assert "\n".join(rows) in text
    assert text.index(rows[-1]) < text.index("\n## ")  # before anything else is explained
