"""The store of closed forms: round trips, corrupted files, and forged ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sympy as sp
from derive_examples import PAIRS, R, additive, gaussian, poisson

from symdp import user_cache
from symdp.derive import cgf as cgf_module
from symdp.derive import check, store
from symdp.derive.cgf import derive_cgf
from symdp.emit import json as json_nodes

T = sp.Symbol("t", real=True)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SYMDP_CACHE", raising=False)
    derive_cgf.cache_clear()


def refuse(*_: object) -> None:
    raise AssertionError("derived again")


@pytest.mark.parametrize("name", ["gaussian", "gumbel", "two variances", "logistic poisson"])
def test_a_second_session_reads_what_the_first_found(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = PAIRS[name]()
    first = derive_cgf(pair)
    derive_cgf.cache_clear()
    monkeypatch.setattr(cgf_module, "_derived", refuse)
    assert derive_cgf(pair) == first
    derive_cgf.cache_clear()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"tilt": "t"}', "\x00", '{"tilt": 3}' * 3])
def test_a_corrupted_file_is_written_anew(text: str) -> None:
    pair = additive(gaussian(R(9, 7)))
    first = derive_cgf(pair)
    path = store.entry(pair, ())
    assert path is not None
    path.write_text(text, encoding="utf-8")
    assert store.recall(path) is None
    derive_cgf.cache_clear()
    assert derive_cgf(pair) == first
    assert store.recall(path) == first
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_off_means_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMDP_CACHE", "off")
    assert user_cache.folder("cgf") is None
    derive_cgf(additive(gaussian(R(11, 7))))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert derive_cgf(additive(gaussian(R(13, 7)))).form == "closed"


def test_a_form_that_failed_its_check_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = additive(gaussian(R(15, 7)))
    monkeypatch.setattr(check, "agrees", lambda *_: False)
    assert derive_cgf(pair).form == "numeric"
    path = store.entry(pair, ())
    assert path is not None
    assert not path.exists()
    derive_cgf.cache_clear()


def test_keys_tell_pairs_apart() -> None:
    pair = additive(gaussian(R(9, 7)))
    others = (pair.reversed(), poisson(pair, R(1, 10)), additive(gaussian(R(9, 7)), 2))
    paths = {store.entry(p, ()) for p in (pair, *others)}
    assert len(paths) == 4
    symbol = sp.Symbol("q", positive=True)
    assert store.entry(poisson(pair, symbol), ("q",)) != store.entry(poisson(pair, symbol), ())


def _forged(path: Path, change: dict[str, sp.Basic]) -> None:
    """Write other expressions into an entry, with the checksum that belongs to them."""
    facts = user_cache.recall(path)
    read = json_nodes.read_expressions(facts["expressions"])
    written = json_nodes.write_expressions(read | change)
    user_cache.keep(path, facts | {"expressions": written})


@pytest.mark.quick_cases(
    "change0-gaussian",
    "change0-gumbel",
    "change1-gaussian",
    "change1-logistic poisson",
    "change2-gaussian",
    "change2-two variances",
    "change3-gaussian",
    "change4-gaussian",
)
@pytest.mark.parametrize("name", ["gaussian", "gumbel", "two variances", "logistic poisson"])
@pytest.mark.parametrize(
    "change",
    [
        {"expression": 2 * T},
        {"expression": T, "tilt": sp.Symbol("x", real=True)},
        {"expression": sp.true},
        {"expression": sp.oo},
        {"expression": sp.Pow(0, T, evaluate=False)},
    ],
)
def test_a_wrong_form_that_reads_well_is_derived_anew(
    name: str, change: dict[str, sp.Basic]
) -> None:
    pair = PAIRS[name]()
    first = derive_cgf(pair)
    path = store.entry(pair, ())
    assert path is not None
    _forged(path, change)
    derive_cgf.cache_clear()
    assert derive_cgf(pair) == first
    assert store.recall(path) == first


def test_a_form_that_is_nearly_right_is_derived_anew() -> None:
    pair = PAIRS["gaussian"]()
    first = derive_cgf(pair)
    path = store.entry(pair, ())
    assert path is not None
    assert first.expression is not None
    _forged(path, {"expression": first.expression + sp.Rational(1, 10**15) * first.tilt})
    derive_cgf.cache_clear()
    assert derive_cgf(pair) == first


def test_an_entry_of_another_pair_is_a_miss() -> None:
    pairs = PAIRS["gaussian"](), PAIRS["gumbel"]()
    forms = [derive_cgf(pair) for pair in pairs]
    one, other = (store.entry(pair, ()) for pair in pairs)
    assert one is not None
    assert other is not None
    one.write_bytes(other.read_bytes())
    assert store.recall(one) is None
    derive_cgf.cache_clear()
    assert [derive_cgf(pair) for pair in pairs] == forms
    assert store.recall(one) == forms[0]


@pytest.mark.parametrize("change", [{"versions": ["0", "0"]}, {"layout": 1}, {"more": 1}])
def test_an_entry_of_other_versions_or_changed_by_hand_is_a_miss(change: dict[str, object]) -> None:
    pair = PAIRS["gaussian"]()
    derive_cgf(pair)
    path = store.entry(pair, ())
    assert path is not None
    whole = path.read_text(encoding="utf-8")
    path.write_text(json.dumps(json.loads(whole) | change), encoding="utf-8")
    assert store.recall(path) is None
    path.write_text(whole.replace('["Symbol", "t"', '["Symbol", "u"'), encoding="utf-8")
    assert store.recall(path) is None
