"""What SymPy gives up is not tried again; what ended for want of time or memory is."""

from __future__ import annotations

import importlib

import pytest
import sympy as sp

from symdp import user_cache

child = importlib.import_module("symdp.derive.child")
x = sp.Symbol("x", real=True)
UNKNOWN = (sp.Function("f")(x), x, sp.S.Zero, sp.S.One)


@pytest.fixture
def tasks(tmp_path, monkeypatch):
    """Turn the cache on, in a folder of its own; return a table of tasks to be added to."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SYMDP_CACHE", raising=False)
    own = dict(child._TASKS)
    monkeypatch.setattr(child, "_TASKS", own)
    return own


def fails(error):
    def task(*_):
        raise error

    return task


def kept(folder):
    return sorted(folder.rglob("failed/*.json"))


def test_what_is_given_up_is_not_tried_again(tmp_path, tasks, monkeypatch):
    assert child.compute("integrate", UNKNOWN, 20.0) is None
    assert len(kept(tmp_path)) == 1
    with monkeypatch.context() as patch:
        patch.setattr(child, "_by_fork", lambda *_: pytest.fail("it was tried again"))
        patch.setattr(child, "_by_interpreter", lambda *_: pytest.fail("it was tried again"))
        assert child.compute("integrate", UNKNOWN, 20.0) is None
    # Symbols of other assumptions, another task and another version are other questions.
    tasks["integrate"] = tasks["limit"] = lambda *_: sp.S.One
    positive = sp.Symbol("x", positive=True)
    other = (sp.Function("f")(positive), positive, sp.S.Zero, sp.S.One)
    assert child.compute("integrate", other, 20.0) == 1
    assert child.compute("limit", UNKNOWN, 20.0) == 1
    monkeypatch.setattr(user_cache, "versions", lambda: ["another"])
    assert child.compute("integrate", UNKNOWN, 20.0) == 1


@pytest.mark.parametrize(
    ("task", "is_kept"),
    [
        (fails(NotImplementedError()), True),
        (fails(ValueError()), True),
        (fails(RecursionError()), False),
        (fails(MemoryError()), False),
        (lambda *_: sp.Integral(x, x), True),
    ],
)
def test_only_what_came_to_its_end_is_kept(tmp_path, tasks, task, is_kept):
    tasks["factor"] = task
    assert child.compute("factor", (x,), 20.0) is None
    assert len(kept(tmp_path)) == is_kept
    tasks["factor"] = lambda *_: sp.S.One
    assert (child.compute("factor", (x,), 20.0) is None) == is_kept


def test_more_time_finds_what_less_did_not(tmp_path, tasks):
    def slow(*_):
        number = 0
        while number < 10**7:
            number += 1
        return sp.S.One

    tasks["factor"] = slow
    assert child.compute("factor", (x,), 0.05) is None
    assert kept(tmp_path) == []
    assert child.compute("factor", (x,), 60.0) == 1


def test_symbols_without_a_name_of_their_own_are_not_kept(tmp_path, tasks):
    u = sp.Dummy("u", real=True)
    assert child.compute("integrate", (sp.Function("f")(u), u, sp.S.Zero, sp.S.One), 20.0) is None
    assert kept(tmp_path) == []


def test_a_cache_that_is_off_holds_nothing(tmp_path, tasks, monkeypatch):
    monkeypatch.setenv("SYMDP_CACHE", "off")
    assert child.compute("integrate", UNKNOWN, 20.0) is None
    assert kept(tmp_path) == []
