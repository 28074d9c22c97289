"""Formulas that an earlier command derived: no SymPy, the same answer, nothing believed blindly."""

from __future__ import annotations

import inspect
import json
import os
import shlex
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import typer
from shell import Shell

import symdp
from symdp import shipped, user_cache
from symdp.cli.app import typed
from symdp.cli.job import Job
from symdp.cli.options import asked, found_at, parameters_of, read
from symdp.cli.question import Composed
from symdp.cli.table import COMMANDS, EXAMPLES
from symdp.numeric.formula import _shipped_formula
from symdp.questions.steps.known import KnownComposition

pytestmark = pytest.mark.usefixtures("_nothing_shipped")
SAMPLED = {"sampling": "poisson", "rate": "0.01"}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SYMDP_CACHE", raising=False)


@pytest.fixture
def _nothing_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "_held", lambda _: {})
    _shipped_formula.cache_clear()


def remembered(job: Job) -> Path:
    """Answer once the usual way, and return the file of what is kept of it."""
    composed = Composed(job)
    assert type(composed()) is not KnownComposition
    composed.remember()
    assert composed._asked is not None
    return composed._asked.path


def run(*words: str) -> tuple[dict[str, object], str]:
    """Run a command in a new process: its answer, and the modules that it imported."""
    command = [sys.executable, "-X", "importtime", "-m", "symdp", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    return json.loads(done.stdout), done.stderr


def test_a_known_formula_answers_without_sympy(tmp_path: Path) -> None:
    builtin = Path(symdp.__file__).parent / "mechanisms" / "gaussian.toml"
    noise = tmp_path / "noise.toml"
    noise.write_text(builtin.read_text("utf-8").replace('"gaussian"', '"noise"'), "utf-8")
    words = ["-n", "1000", "--sampling", "poisson", "--rate", "0.01"]
    first, imported = run("delta", str(noise), "sigma=1.5", *words, "--epsilon", "1")
    assert "sympy" in imported
    again, imported = run("delta", str(noise), "sigma=1.5", *words, "--epsilon", "1")
    assert not [m for m in ("sympy", "scipy", "mpmath", "rich") if f" {m}\n" in imported]
    assert again | {"seconds": 0} == first | {"seconds": 0}
    # What the built-in one needs comes with the package.
    other, imported = run("epsilon", "gaussian", "sigma=7/3", *words, "--delta", "1e-6")
    assert " sympy\n" not in imported
    steps = symdp.mechanisms.gaussian(sigma="7/3").subsample("poisson", "1/100")
    anew = symdp.compose(steps, 1000).epsilon(1e-6)
    assert other["epsilon"] == pytest.approx(anew.epsilon, rel=1e-13)


def test_every_field_of_a_question_tells_what_is_kept_apart() -> None:
    """A field that the key forgot would answer one question with the numbers of another."""
    plain = Job("gumbel", ["b=2"], "200", **SAMPLED)
    others = [f.name for f in fields(Job) if f.name not in ("mechanism", "values", "count", "rate")]
    paths = [cached(plain), cached(replace(plain, count="1"))]
    for name in others:
        asked = cached(replace(plain, **{name: "2"}))
        assert asked is None or asked not in paths, name
        paths.append(asked)


def cached(job: Job) -> Path | None:
    asked = Composed(job)._asked
    return None if asked is None else asked.path


@pytest.mark.slow
def test_the_sign_of_a_shift_is_not_forgotten_by_what_is_kept() -> None:
    """Raised alone, sampled Gumbel noise loses a fifth of what it loses lowered."""
    words = ["epsilon", "gumbel", "b=2", "-n", "50", "--delta", "1e-5"]
    words += ["--sampling", "poisson", "--rate", "0.1"]
    found = [run(*words, "--shift", "up")[0], run(*words)[0], run(*words, "--shift", "up")[0]]
    assert [round(float(str(one["epsilon"])), 4) for one in found] == [1.1837, 5.6164, 1.1837]
    assert found[1]["shift"] == "at most, one sign"


@pytest.mark.quick_cases("gaussian sigma=1.5 --sampling poisson --rate 0.01 -n 1000")
@pytest.mark.parametrize(
    "job",
    [
        Job("gaussian", ["sigma=1.5"], "1000", **SAMPLED),
        Job("logistic", ["s=2"], "100"),
        Job("laplace", ["b=3"], "100", relation="substitution"),
        Job("gumbel", ["b=2"], "200", **SAMPLED, shift="up"),
    ],
    ids=lambda job: job.typed,
)
def test_what_is_kept_answers_as_a_derivation_does(job: Job) -> None:
    path = remembered(job)
    known, anew = Composed(job)(), job.build()
    assert type(known) is KnownComposition
    assert known.protection == anew.protection
    for direction in ("remove", "add", "both"):
        one, other = (steps.delta(0.5, direction=direction) for steps in (known, anew))
        # A law that other questions have used may have nodes of another window, which round apart.
        assert one.log_delta == pytest.approx(other.log_delta, abs=1e-12)
        assert one.direction == other.direction
    assert known.steps == anew.steps
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "job",
    [
        Job("gaussian", ["sigma=-1"], "10"),
        Job("gaussian", ["sigma=1", "tau=1"], "10"),
        Job("gaussian", ["sigma=x"], "10"),
        Job("nothing", [], "10"),
    ],
    ids=lambda job: job.typed,
)
def test_what_is_wrong_is_said_as_ever(job: Job) -> None:
    remembered(Job("gaussian", ["sigma=1"], "10"))
    with pytest.raises(Exception) as known:  # noqa: PT011
        Composed(job)()
    with pytest.raises(type(known.value)) as anew:
        job.build()
    assert str(known.value) == str(anew.value)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"facts": 1}', "\x00", '{"facts": {}} '])
def test_a_damaged_file_is_written_anew(text: str) -> None:
    job = Job("gaussian", ["sigma=2"], "100")
    path = remembered(job)
    path.write_text(text, encoding="utf-8")
    assert user_cache.recall(path) is None
    assert remembered(job) == path
    assert type(Composed(job)()) is KnownComposition
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("change", [{"formula": {"Formula": {}}}, {"formula": 3}, {"names": [1]}])
def test_other_facts_with_a_right_checksum_do_no_harm(change: dict[str, object]) -> None:
    job = Job("gaussian", ["sigma=2"], "100")
    path = remembered(job)
    user_cache.keep(path, user_cache.recall(path) | change)
    assert Composed(job)().delta(1.0).log_delta == pytest.approx(
        job.build().delta(1.0).log_delta, abs=1e-12
    )


def test_facts_of_another_mechanism_are_not_believed() -> None:
    """Whole files, with a right checksum, whose names were exchanged."""
    jobs = [Job(name, [f"{symbol}=2"], "100") for name, symbol in (("gaussian", "sigma"),
            ("laplace", "b"), ("logistic", "s"))]  # fmt: skip
    paths = [remembered(job) for job in jobs]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    for path, text in zip(paths, texts[1:] + texts[:1], strict=True):
        path.write_text(text, encoding="utf-8")
        assert user_cache.recall(path) is None
    right = [job.build().delta(1.0).log_delta for job in jobs]
    found = [Composed(job)().delta(1.0).log_delta for job in jobs]
    assert found == pytest.approx(right, abs=1e-12)
    assert [remembered(job) for job in jobs] == paths
    assert all(type(Composed(job)()) is KnownComposition for job in jobs)


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_a_file_that_others_may_write_is_not_read() -> None:
    path = remembered(Job("gaussian", ["sigma=2"], "100"))
    path.chmod(0o666)
    assert user_cache.recall(path) is None


def test_another_text_or_another_version_is_another_formula(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job("gaussian", ["sigma=2"], "100")
    path = remembered(job)
    facts = user_cache.recall(path)
    monkeypatch.setattr(user_cache, "versions", lambda: ["another"])
    assert user_cache.recall(path) is None
    assert Composed(job)._asked.path != path
    user_cache.keep(path, facts)
    assert user_cache.recall(path) == facts


@pytest.mark.slow_cases(
    "epsilon laplace b=2 --delta 1e-3 -n 7 --sampling poisson --rate 1/9 --json"
)
@pytest.mark.parametrize(
    "words",
    [
        "delta gaussian sigma=2 -n 5 --epsilon 1 --json",
        "delta --json --epsilon -1 gaussian sigma=2 --count 5 --direction add",
        "epsilon laplace b=2 --delta 1e-3 -n 7 --sampling poisson --rate 1/9 --json",
    ],
)
def test_plain_words_mean_what_typer_reads(
    words: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYMDP_CACHE", "off")
    plain = [shell(words).json]
    monkeypatch.setattr("symdp.cli.options.asked", lambda _: None)
    plain.append(shell(words).json)
    rounded = [
        {k: pytest.approx(v, rel=1e-12) if isinstance(v, float) else v for k, v in one.items()}
        for one in plain
    ]
    assert plain[0] | {"seconds": 0} == rounded[1] | {"seconds": 0}


@pytest.mark.parametrize(
    "words",
    ["", "gaussian", "--epsilon", "--epsilon 1 --epsilon 2", "--epsilon=1", "--epsilon 1 --jso",
     "--epsilon 1 --help", "-n5 --epsilon 1"],
)  # fmt: skip
def test_unusual_words_are_left_to_typer(words: str) -> None:
    assert asked(["delta", *words.split()]) is None


def commands() -> dict[str, Any]:
    """Return every command by its name, those of groups too."""
    found = {}
    for name, (where, _) in COMMANDS.items():
        own = found_at(where)
        found |= (
            {f"{name} {k}": v for k, v in own.items()} if isinstance(own, dict) else {name: own}
        )
    return found


@pytest.mark.parametrize("name", commands())
def test_plain_words_give_a_command_what_typer_gives(name: str) -> None:
    command, given = commands()[name], []
    function = typed(command, name)

    def kept(**words: Any) -> None:
        given.append({key: word or None for key, word in words.items()})

    kept.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    kept.__annotations__ = function.__annotations__
    reader = typer.Typer()
    reader.command(name)(kept)
    for example in EXAMPLES[name]:
        words = shlex.split(example)[1 + len(name.split()) :]
        plain = read(parameters_of(command, name), words)
        assert plain is not None
        typer.main.get_command(reader)(words, standalone_mode=False)
        assert {key: word or None for key, word in plain.items()} == given.pop()
