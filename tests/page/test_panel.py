"""The page with sliders: one file, no network, and the numbers of the package."""

from __future__ import annotations

import json
import re
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest
from emitted import NODE
from shell import Shell

import symdp
from symdp import mechanisms
from symdp.page.panel import Panel, _opening
from symdp.questions.tradeoff import trade_off

needs_node = pytest.mark.skipif(NODE is None, reason="no node, which runs JavaScript")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {}


@pytest.fixture
def page(shell: Shell, tmp_path: Path, pages: dict[str, str]):
    def write(words: str) -> str:
        if words not in pages:
            path = tmp_path / "page.html"
            ran = shell(f"explore {words} -o {path}")
            assert ran.code == 0, ran.err
            pages[words] = path.read_text("utf-8")
        return pages[words]

    return write


def data_of(text: str) -> dict:
    found = re.search(r'id="panel-data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1].replace("<\\/", "</"))


def served(text: str, asked: dict, tmp_path: Path, leap: int = 0) -> dict:
    """Return the worker's last answer to one request, with no browser around it.

    On a busy machine the clock leaps by so many milliseconds between two looks at it.
    """
    found = re.search(r"const SERVE = `(.*?)`;", text, re.DOTALL)
    assert found is not None
    data = data_of(text)
    parts = [data["parts"][place] for place in data["panels"][0]["program"]]
    program = "\n\n".join(parts) + found[1]
    script = f"""
import vm from "node:vm";
let last = null;
let leaps = 0;
const context = vm.createContext({{ postMessage: (message) => {{ last = message; }}, setTimeout }});
if ({leap}) context.Date = {{ now: () => Date.now() + {leap} * leaps++ }};
vm.runInContext({json.dumps(program)}, context);
await context.onmessage({{ data: {json.dumps(asked)} }});
console.log(JSON.stringify(last));
"""
    source = tmp_path / "served.mjs"
    source.write_text(script, "utf-8")
    ran = subprocess.run([str(NODE), str(source)], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


SAMPLED = "gaussian sigma=2 --sampling poisson --rate 1/100 -n 1000"


@pytest.mark.slow
def test_the_page_is_one_small_file_that_fetches_nothing(page):
    text = page(SAMPLED)
    assert len(text.encode()) <= 300_000
    assert "connect-src" not in text
    assert "default-src 'none'" in text
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", text)
    assert not re.search(r"\b(fetch|XMLHttpRequest|import)\s*\(", text)
    panel = data_of(text)["panels"][0]
    values = {field["name"]: field["value"] for field in panel["fields"]}
    assert values == {"sigma": "2", "q": "1/100", "n": "1000"}
    assert "<math" in panel["formulas"]
    assert panel["command"] == "gaussian sigma={sigma} --sampling poisson --rate {q} -n {n}"


@pytest.mark.slow
@needs_node
@pytest.mark.parametrize("ask", ["epsilon", "delta"])
def test_the_page_s_numbers_are_the_package_s(page, ask, tmp_path: Path):
    text = page("gaussian")
    values = {"sigma": 12.5}
    given = 1e-5 if ask == "epsilon" else 2.0
    asked = {"id": 1, "ask": ask, "given": given, "n": 100, "values": values, "direction": "both"}
    asked["patience"] = 60_000  # milliseconds: no test measures time
    found = served(text, asked, tmp_path)
    steps = symdp.compose(mechanisms.gaussian(**values), 100)
    if ask == "epsilon":
        assert found["epsilon"] == pytest.approx(steps.epsilon(1e-5).epsilon, rel=1e-12)
    else:
        assert found["log_delta"] == pytest.approx(steps.delta(2.0).log_delta, rel=1e-12)
    # what an attack finds is never shown too small, and close to the trade-off curve
    for alpha, power in zip((0.01, 0.001), found["power"], strict=True):
        exact = 1.0 - trade_off(steps, alpha)
        assert exact * (1 - 1e-9) <= power <= exact * 1.0001
    assert found["coarse"] == [False, False]
    assert found["larger"] == "both"


@pytest.mark.quick_cases("no finite \\u03b5")
@needs_node
@pytest.mark.parametrize(
    ("words", "opens"),
    [
        ("gaussian sigma=4 -n 30", "ε = 6.326 at δ = 1e-5"),
        # no ε is finite at δ = 1e-5
        pytest.param("approximate_dp", "ε = 1 at δ = 0.01", marks=pytest.mark.slow),
        ("gaussian sigma=9 -n 80 --epsilon 1/2", "ε = 1/2 at δ = 0.236"),
        pytest.param(
            "gaussian sigma=3 --sampling poisson --rate 0.05 -n 20 --delta 0.001",
            "ε = 0.1547",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["plain", "no finite ε", "ε given", "sampled"],
)
def test_the_first_answer_is_in_the_page_and_the_script_s(page, words, opens, tmp_path: Path):
    text = page(words)
    markup = text[: text.index('id="panel-data"')]
    assert f'class="answer">{opens}' in markup
    assert "removing a record" in markup.lower()
    assert markup.count("<svg") == markup.count('class="curve"') == 2
    assert "NaN" not in markup
    data, first = data_of(text), data_of(text)["first"]
    given = {
        field["name"]: float(Fraction(field["value"])) for field in data["panels"][0]["fields"]
    }
    asked = {"id": 1, "ask": data["ask"], "n": given.pop("n"), "values": given}
    asked |= {"direction": "both", "most": 1e9}  # milliseconds: no test measures time
    of = "delta" if data["ask"] == "epsilon" else "epsilon"
    found = served(text, asked | {"given": float(Fraction(data[of]["value"]))}, tmp_path)
    for name in ("epsilon", "log_delta"):
        assert found[name] == pytest.approx(first[name], rel=1e-11, abs=1e-11)
    assert found["power"] == pytest.approx(first["power"], rel=1e-4)
    script = dict(map(tuple, found["points"]))
    assert any(script.get(e) == pytest.approx(v, rel=1e-9, abs=1e-11) for e, v in first["points"])
    for (rate, shown), (_, exact) in zip(first["trade"], found["trade"], strict=True):
        assert shown == pytest.approx(exact, abs=0.05), rate


@pytest.mark.slow
@needs_node
def test_the_attack_table_does_not_depend_on_the_load(page, tmp_path: Path):
    text = page("gaussian")
    asked = {"id": 1, "ask": "epsilon", "given": 1e-5, "n": 100, "values": {"sigma": 12.5}}
    asked["direction"] = "both"
    idle, busy = (served(text, asked, tmp_path, leap) for leap in (0, 50))
    assert len(busy["points"]) < len(idle["points"])  # the picture alone is coarser
    assert busy["power"] == idle["power"]


@pytest.mark.slow
@needs_node
def test_an_attack_that_time_did_not_refine_is_marked(page, tmp_path: Path):
    asked = {"id": 1, "ask": "epsilon", "given": 1e-5, "n": 100, "values": {"sigma": 12.5}}
    late = served(page("gaussian"), asked | {"direction": "both", "most": 1}, tmp_path, 50)
    steps = symdp.compose(mechanisms.gaussian(sigma=12.5), 100)
    assert late["coarse"] == [True, True]
    for alpha, power in zip((0.01, 0.001), late["power"], strict=True):
        assert power >= 1.0 - trade_off(steps, alpha)


@pytest.mark.slow
@needs_node
def test_an_attack_is_sought_beyond_the_epsilon_that_is_shown(page, tmp_path: Path):
    asked = {"id": 1, "ask": "delta", "given": 0.01, "n": 20, "values": {"sigma": 3}}
    found = served(page("gaussian"), asked | {"direction": "both"}, tmp_path)
    one = symdp.compose(mechanisms.gaussian(sigma=3), 20)
    for alpha, power in zip((0.01, 0.001), found["power"], strict=True):
        exact = 1.0 - trade_off(one, alpha)
        assert exact * (1 - 1e-9) <= power <= exact * 1.0001


@needs_node
@pytest.mark.slow
def test_a_parameter_of_a_mass_keeps_its_value(page, tmp_path: Path):
    path = tmp_path / "quartic.toml"
    path.write_text(
        'name = "quartic"\nvariable = "x"\nsupport = ["-oo", "oo"]\n'
        '[parameters]\ns = "positive"\n'
        '[noise]\ndensity = "exp(-x**4/s)"\nnormalize = true\n',
        "utf-8",
    )
    text = page(f"{path} s=40 -n 300")
    assert [field["name"] for field in data_of(text)["panels"][0]["fields"]] == ["n"]
    assert data_of(text)["panels"][0]["command"] == f"{path} s=40 -n {{n}}"
    asked = {"id": 1, "ask": "delta", "given": 60.0, "n": 300, "values": {}, "direction": "both"}
    found = served(text, asked | {"patience": 60_000}, tmp_path)
    steps = symdp.compose(symdp.load(path)(s=40), 300)
    above = found["log_delta"] - steps.delta(60.0).log_delta
    assert -1e-14 <= above <= 4e-12  # the upper end of what a sum may be off by


@pytest.mark.slow_cases("skewed", "fixed batches", "upwards")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("gaussian --sampling without_replacement", "fixed batches: an upper bound"),
        ("gumbel", "by the sensitivity at most, to one side at all steps"),
        ("gumbel --sampling poisson --shift up", "raises the output, by the sensitivity at most"),
    ],
    ids=["fixed batches", "skewed", "upwards"],
)
def test_the_page_says_whose_privacy_it_speaks_of(page, words, told):
    assert told in data_of(page(words))["panels"][0]["protects"]


@pytest.mark.slow
@needs_node
def test_what_has_no_answer_is_a_sentence(page, tmp_path: Path):
    asked = {"id": 1, "ask": "epsilon", "given": 1e-5, "n": 3}
    asked |= {"values": {"epsilon_0": 1, "delta_0": 0.01}, "direction": "both"}
    found = served(page("approximate_dp"), asked, tmp_path)
    assert "no epsilon is finite" in found["error"]


@pytest.mark.slow
def test_no_text_of_a_file_leaves_its_element(page, tmp_path: Path):
    file = tmp_path / "odd.toml"
    file.write_text(
        'name = "odd"\ntitle = "</script><script>alert(1)</script>"\nvariable = "x"\n'
        'description = "<b>bold</b>"\nsupport = ["-oo", "oo"]\n[parameters]\ns = "positive"\n'
        '[noise]\ndensity = "exp(-x**2/(2*s**2))/(s*sqrt(2*pi))"\nsensitivity = 1\n',
        "utf-8",
    )
    text = page(str(file))
    assert "alert(1)</script>" not in text
    assert "&lt;b&gt;bold" in text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("explore zcdp -o page.html", "it is known by its Rényi curve alone"),
        ("explore gaussian -o page.txt", "the name must end in"),
        ("explore gaussian tau=1 -o page.html", "gaussian has no parameter 'tau'"),
        ("explore gaussian sigma=x -o page.html", "'x' is not a number"),
        ("explore -o page.html", "MECHANISM is missing"),
    ],
)
def test_what_cannot_be_explored_is_one_line(shell: Shell, words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = shell(words)
    assert ran.code == 2
    assert told in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.sweep
def test_the_calculator_of_the_documentation_shares_its_program(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs"))
    from calculator import calculator

    text = calculator()
    assert len(text.encode()) <= 300_000
    titles = [panel["title"] for panel in data_of(text)["panels"]]
    assert titles[0] == "DP-SGD: a model trained with noise"
    assert len(titles) == len(set(titles)) == 12


@pytest.mark.slow
def test_a_value_that_decides_an_order_has_a_slider(shell: Shell, tmp_path) -> None:
    file, page = tmp_path / "cut.toml", tmp_path / "page.html"
    file.write_text(
        'name = "cut"\nvariable = "x"\nsupport = ["-L", "L"]\n'
        '[parameters]\ng = "positive"\nL = "positive"\n'
        '[noise]\ndensity = "1/(2*g*atan(L/g)*(1 + (x/g)**2))"\n',
        encoding="utf-8",
    )
    ran = shell(f"explore {file} g=3 L=20 -o {page}")
    assert ran.code == 0, ran.err
    fields = data_of(page.read_text(encoding="utf-8"))["panels"][0]["fields"]
    assert {field["name"] for field in fields if not field["fixed"]} == {"g", "L", "n"}


def test_the_last_batch_of_training_counts_whole():
    """One epoch of 1000 examples in batches of 300 is four steps, not ten thirds."""
    steps = mechanisms.gaussian(sigma=2).subsample("poisson", "q")
    values = {"examples": "1000", "batch": "300", "epochs": "1"}
    data = {
        "panels": [{"fields": [{"name": name, "value": values[name]} for name in values]}],
        "epsilon": {"value": "1"},
        "delta": {"value": "1e-5"},
    }
    first = _opening(Panel("training", steps, {}, "", "", rate="q"), data)
    assert first is not None
    exact = symdp.compose(steps(q="3/10"), 4).epsilon("1e-5").epsilon
    assert first["epsilon"] == pytest.approx(exact, rel=1e-12)
