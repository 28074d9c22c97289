"""The page in which a density is typed: its grammar is the parser's, its numbers the package's."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import mpmath
import pytest
import sympy as sp
from emitted import NODE

import symdp
from symdp.errors import InputError
from symdp.model.reading.parser import parse
from symdp.questions.steps.smaller_shifts import of_smaller_shifts

DOCS = Path(__file__).parents[2] / "docs"
NAMES = "chromium", "chromium-browser", "google-chrome"
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
needs_node = pytest.mark.skipif(NODE is None, reason="no node, which runs JavaScript")
X = sp.Symbol("x", real=True)
ASKED = {
    "variable": "x", "values": {}, "support": "interval", "lower": "-oo", "upper": "oo",
    "sensitivity": "1", "rate": "", "n": "100", "ask": "epsilon", "given": "1e-5",
}  # fmt: skip


@cache
def writer():
    spec = importlib.util.spec_from_file_location("try_page", DOCS / "try_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["try_page"] = module
    spec.loader.exec_module(module)
    return module


def run(folder: Path, expression: str, data: object) -> object:
    """Return what an expression of (data) gives inside the page's own program."""
    shown = (DOCS / "try" / "shown.js").read_text("utf-8")
    source = folder / "asked.mjs"
    replacer = '(_, v) => typeof v === "bigint" ? String(v) : v === Infinity ? "inf" : v'
    source.write_text(
        f"{writer().program()}\n{shown}\nconst data = {json.dumps(data)};\n"
        f"console.log(JSON.stringify(({expression})(data), {replacer}));\n",
        "utf-8",
    )
    ran = subprocess.run([str(NODE), str(source)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout)


def test_the_page_is_what_its_parts_make():
    assert (DOCS / "try.html").read_text("utf-8") == writer().page(), "run make try"


def test_the_page_fetches_and_evaluates_nothing():
    text = (DOCS / "try.html").read_text("utf-8")
    assert len(text.encode()) <= 300_000
    assert "default-src 'none'" in text
    assert "connect-src" not in text
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", text)
    for word in (r"\beval\s*\(", r"\bFunction\s*\(", r"\b(fetch|XMLHttpRequest|import)\s*\("):
        assert not re.search(word, text), word
    assert "innerHTML" not in text


GOOD = [
    "1", ".5e-2", "x", "-x**2", "-x**-2", "2**-x/3", "x - 1 - 2", "x/2/3", "2*x**3**2/5",
    "(1 + x**2/3)**-2", "exp(-x**2/2)/sqrt(2*pi)", "E**-x", "Abs(x - 1) + abs(x)", "ln(1 + x**2)",
    "Min(x, 1, 2) + max(x, 3)", "Piecewise((1, x < 0), (x, (0 <= x) & (x < 1)), (2, True))",
    "Piecewise((1, 0 < x < 1), (5, True))", "Piecewise((1, (x < 0) | (x > 1)), (5, True))",
    "gamma(3/2) + loggamma(5) + factorial(4)", "binomial(5, 2)*beta(1/2, 3/2)",
    "erf(x) + erfc(x)", "sech(x)*csch(2 + x**2)*coth(3)", "tanh(x) + asinh(x) + atan(x)",
    "besselk(1/2, 2 + x**2)", "besseli(1, 1 + x**2)", "sign(x)*x", "--x", "+-+x",
]  # fmt: skip
BAD = [
    "", "x^2", "x = 1", "x.real", "x!", "[x]", "x;1", "σ", "x²", "√2", "eval(x)", "__import__",
    "x and 1", "1 +", "(x", "x)", "x 2", "2 x", "exp", "exp()", "exp(1, 2)", "Min(x)", "nope(x)",
    "pow(x, 2)", "log2(x)", "Heaviside(x)", "oo", "x(2)", "0 < x", "Piecewise(x)",
    "Piecewise((1, x))", "Piecewise((1, x < 0))", "Piecewise((1, 2 < x),)", "lambda", "1/0",
    "1e9999", "x, 1", "(" * 101 + "x" + ")" * 101, "'a'", "a < b", "0x10", "1_000",
    "2x", "exp(-x/2x)", "|x|", "exp(-|x|)", "np.exp(x)", "foo.exp(x)", "exp(-x**2/0,5)",
    "exp(-x*1,25)", "2 (x)", "x/0",
]  # fmt: skip


@needs_node
def test_formulas_mean_the_same_in_both_parsers(tmp_path: Path):
    places = [-1.7, 0.3, 0.9, 2.5]
    ask = """(data) => data.texts.map((text) => {
      const tree = parseFormula(text, new Set(["x"]));
      const f = valued(tree, "x", {}), g = logarithm(tree, "x", {});
      return data.places.map((x) => {
        const v = f(x, 0), e = wrong, l = g(x, 0);
        return [v, e, sign_ * exp(l)];
      });
    })"""
    found = run(tmp_path, ask, {"texts": GOOD, "places": places})
    for text, rows in zip(GOOD, found, strict=True):
        expression = parse(text, {"x": X})
        for x, (value, error, by_log) in zip(places, rows, strict=True):
            truth = float(expression.subs(X, sp.Rational(str(x))).evalf(30))
            assert abs(value - truth) <= error + 1e-15 * abs(truth) * 60, text
            assert by_log == pytest.approx(truth, rel=1e-12, abs=1e-300), text


@needs_node
def test_bad_formulas_are_refused_in_the_same_words(tmp_path: Path):
    ask = """(data) => data.map((text) => {
      try { parseFormula(text, new Set(["x"])); } catch (error) { return error.message; }
      return null;
    })"""
    found = run(tmp_path, ask, BAD)
    for text, told in zip(BAD, found, strict=True):
        with pytest.raises(InputError) as error:
            parse(text, {"x": X})
        said = str(error.value)
        assert told is not None, text
        if "did you mean" in said or "known are" in said or "not finite" in said:
            said = said.partition(";")[0]
            assert told.startswith(said), text
        else:
            assert told == said


# Twenty densities; the values of parameters, and what else is asked.
DENSITIES = [
    ("exp(-x**2/(2*s**2))", {"s": "20"}, {}),
    ("exp(-Abs(x)/b)/(2*b)", {"b": "5"}, {"n": "1000"}),
    ("exp(-x/s)/(s*(1 + exp(-x/s))**2)", {"s": "10"}, {}),
    ("(1 + x**2/3)**-2", {}, {"n": "1000"}),
    ("exp(-(Abs(x)/s)**(3/2))", {"s": "8"}, {}),
    ("exp(-x**4)", {}, {"sensitivity": "1/10"}),
    ("exp(-x/b - exp(-x/b))", {"b": "3"}, {}),
    ("sech(x/4)", {}, {"n": "200"}),
    ("exp(-(x - 1000)**2/200)", {}, {}),
    ("exp(-sqrt(1 + x**2))", {}, {"sensitivity": "0.2", "n": "300"}),
    ("exp(-x**2/2)*(1 + x**2/2)", {}, {"sensitivity": "0.1", "n": "200"}),
    ("exp(-x**2/(2*s**2))", {"s": "112/100"}, {"rate": "256/60000", "n": "14063"}),
    ("exp(-Abs(x))", {}, {"rate": "0.02", "n": "2000"}),
    ("exp(-x/3 - exp(-x/3))", {}, {"rate": "0.1", "n": "5000"}),
    ("exp(-Abs(x)/b)", {"b": "20"}, {"support": "integers"}),
    ("exp(-x**2/200)", {}, {"support": "integers"}),
    ("exp(-x/b)", {"b": "4"}, {"lower": "0", "ask": "delta", "given": "30"}),
    ("x**3*exp(-x)", {}, {"lower": "0", "ask": "delta", "given": "2", "sensitivity": "0.01"}),
    ("exp(-x**2/8)*(2 + cos(2*pi*x))", {}, {"n": "40"}),
    ("exp(-x**2/2)/3 + exp(-(x - 6)**2/2)", {}, {"n": "30"}),
    ("(1 - x**2/100)**3", {}, {"lower": "-10", "upper": "10"}),
]  # fmt: skip
SEVERAL = "exp(-x**2/8)*(2 + cos(2*pi*x))", "exp(-x**2/2)/3 + exp(-(x - 6)**2/2)"
REFUSED = "(1 - x**2/100)**3", "x**3*exp(-x)"  # losses without end where the density is 0
QUICK = (1, 3, 14, 15, 16, 18, 19)
ASKED_OF_BOTH = [
    pytest.param(*one, marks=[pytest.mark.slow] * (place not in QUICK))
    for place, one in enumerate(DENSITIES)
]


def mechanism_of(density: str, values: dict[str, str], more: dict[str, str]) -> symdp.Mechanism:
    asked = ASKED | more
    ends = [asked["lower"], asked["upper"]]
    lines = [
        'name = "mine"', 'variable = "x"',
        f"support = {json.dumps(ends if asked['support'] == 'interval' else asked['support'])}",
        "[parameters]", *(f'{name} = "positive"' for name in values),
        "[noise]", f"density = {json.dumps(density)}", "normalize = true",
        f'sensitivity = "{asked["sensitivity"]}"',
    ]  # fmt: skip
    noise = symdp.Mechanism.from_toml("\n".join(lines))
    noise = noise(**values) if values else noise
    return noise.subsample("poisson", asked["rate"]) if asked["rate"] else noise


@pytest.mark.quick_cases("exp(-x**2/8)*(2 + cos(2*pi*x))-values18-more18")
@needs_node
@pytest.mark.parametrize(("density", "values", "more"), ASKED_OF_BOTH)
def test_the_page_never_says_less_than_the_package(tmp_path: Path, density, values, more):
    asked = ASKED | {"density": density, "values": values} | more
    ask = """(data) => {
      try {
        const [p, q] = exactNumber(data.sensitivity, "sensitivity");
        const tree = parseFormula(data.density, null);
        const by = (p) => lossOf(tree, "x", { op: "num", value: [p, q], args: [] });
        const { laws, ...found } = answered({ ...data, loss: { up: by(p), down: by(-p) } });
        return found;
      } catch (error) { return { error: error.message }; }
    }"""
    found = run(tmp_path, ask, asked)
    if density in SEVERAL:
        assert found.get("several")
        return
    if density in REFUSED:
        assert re.search("no epsilon is finite|more work", found["error"])
        return
    steps = symdp.compose(mechanism_of(density, values, more), int(asked["n"]))
    if asked["ask"] == "epsilon":
        truth = steps.epsilon(asked["given"])
        low, high = truth.lower, truth.upper
    else:
        truth = steps.delta(asked["given"])
        low, high = (sp.log(sp.Float(v, 20)) for v in (truth.lower, truth.upper))
    assert found["lower"] <= high
    assert found["upper"] >= low
    assert found["lower"] <= found["value"] <= found["upper"]
    assert found["upper"] - found["lower"] <= 1e-6 * (1 + abs(found["value"]))


@needs_node
def test_a_rise_that_lasts_to_the_end_of_the_support_is_a_mode(tmp_path: Path):
    """A U has two, wherever its least value is; what only rises, or is flat, has one."""
    modes = {
        "(x**2 + 1)**3": 2, "cosh(x)": 2, "x**2 + 1": 2, "1 + (x - 1)**2": 2, "1 + abs(x + 1)": 2,
        "2 + cos(3*x)": 3, "2 - cos(3*x)": 2, "exp(x)": 1, "exp(-x)": 1, "1": 1, "4 - x**2": 1,
    }  # fmt: skip
    ask = """(data) => data.map((density) => examined(specified({
      ...ASKED, lower: "-2", upper: "2", density })).modes)"""
    ask = ask.replace("ASKED", json.dumps(ASKED))
    assert run(tmp_path, ask, list(modes)) == list(modes.values())


SHAPES = {
    "laplace": ("exp(-Abs(x))", "-oo", "oo"),
    "gumbel": ("exp(-x/2 - exp(-x/2))", "-oo", "oo"),
    "U": ("1/sqrt(x*(10 - x))", "0", "10"),
    "normal and laplace": ("exp(-x**2/2)/sqrt(2*pi) + exp(-Abs(x))/2", "-oo", "oo"),
    "bimodal": ("exp(-(x - 2)**2/2) + exp(-(x + 2)**2/2)", "-oo", "oo"),
}


@needs_node
def test_pages_and_programs_say_the_same_of_smaller_shifts(tmp_path: Path):
    """How it is known differs: a rule, balls, or the values that a page looks at."""
    ask = """(data) => data.map(([density, lower, upper]) =>
      onSmallerShifts(examined(specified({ ...ASKED, density, lower, upper }))))"""
    ask = ask.replace("ASKED", json.dumps(ASKED))
    shown = run(tmp_path, ask, list(SHAPES.values()))

    def without_reason(text: str) -> str:
        return re.sub(r" \(.*\)", "", text)

    for (name, (density, lower, upper)), sentence in zip(SHAPES.items(), shown, strict=True):
        ends = [lower.replace("oo", '"oo"').replace('-"oo"', '"-oo"')]
        ends.append('"oo"' if upper == "oo" else upper)
        noise = symdp.Mechanism.from_toml(
            f'name = "shape"\nsupport = [{", ".join(ends)}]\nvariable = "x"\n'
            f'[noise]\nnormalize = true\ndensity = "{density}"\nsensitivity = 1\n'
        )
        words = of_smaller_shifts(noise)
        assert without_reason(sentence) == f"{words[0].upper()}{without_reason(words[1:])}."
        if name == "laplace":
            program = symdp.derive(noise).to_program("python")
            comment = program.split('"""')[1]
            assert words[1:] in " ".join(comment.split())


@pytest.mark.quick_cases(
    "exp(-(Abs(x)/s)**(3/2))-values4-more4",
    "exp(-x/b - exp(-x/b))-values6-more6",
    "exp(-x**2/(2*s**2))-values0-more0",
    "exp(-x**4)-values5-more5",
    "exp(-x/3 - exp(-x/3))-values13-more13",
    "exp(-Abs(x))-values12-more12",
    "exp(-Abs(x)/b)/(2*b)-values1-more1",
    "exp(-x/b)-values16-more16",
    "(1 + x**2/3)**-2-values3-more3",
)
@needs_node
@pytest.mark.parametrize(("density", "values", "more"), DENSITIES)
def test_the_loss_that_is_shown_is_that_of_the_density(tmp_path: Path, density, values, more):
    whole = more.get("support") == "integers"
    low = float(more.get("lower", "-oo").replace("oo", "inf"))
    places = [1.25, 2.5, 3.75, 6.0] if low >= 0 else [-3.75, -1.0, 0.25, 2.5, 6.0]
    places = [round(x) for x in places] if whole else places
    shift = sp.Rational(more.get("sensitivity", "1"))
    ask = """(data) => {
      const shift = { op: "num", value: data.shift.map(BigInt), args: [] };
      const tree = lossOf(parseFormula(data.density, null), "x", shift), given = {};
      for (const [name, value] of Object.entries(data.values))
        given[name] = toDouble(exactNumber(value, name));
      const f = valued(tree, "x", given);
      return data.places.map((x) => [f(x, 0), wrong]);
    }"""
    data = {"density": density, "values": values, "places": places}
    data["shift"] = [str(shift.p), str(shift.q)]
    found = run(tmp_path, ask, data)
    symbols = {name: sp.Symbol(name, positive=True) for name in values}
    f = parse(density, symbols | {"x": X}).subs(
        {s: sp.Rational(values[n]) for n, s in symbols.items()}
    )
    for x, (value, error) in zip(places, found, strict=True):
        at = sp.Rational(str(x))
        truth = (sp.log(f.subs(X, at - shift)) - sp.log(f.subs(X, at))).evalf(40)
        assert abs(value - float(truth)) <= error + 1e-15, (x, value)


VISIT = """
<script>
const told = { errors: [], answers: [] };
addEventListener("error", (event) => told.errors.push(event.message));
addEventListener("securitypolicyviolation", (event) => told.errors.push(event.blockedURI));
const box = document.getElementById("answer");
const settled = async () => {
  while (!box.dataset.ready) await new Promise((done) => setTimeout(done, 50));
  const all = (words) => [...document.querySelectorAll(words)];
  told.answers.push({ ...box.dataset, shown: box.innerText, plots: all("#plots svg").length,
    math: all(".formulas math").length,
    codes: all("pre[data-of]").map((pre) => [pre.dataset.of, pre.textContent]) });
};
const put = (id, text) => {
  const field = document.getElementById(id);
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
};
(async () => {
  told.paint = performance.getEntriesByType("paint").map((entry) => entry.startTime);
  await settled();
  put("density", "exp(-x**2/(2*b**2))");
  put("support", "integers");
  await new Promise((done) => setTimeout(done, 10));
  await settled();
  put("density", "<img src=x onerror=alert(1)>");
  told.refused = box.innerText;
  told.width = document.documentElement.scrollWidth;
  console.log("TOLD " + encodeURIComponent(JSON.stringify(told)) + " END");
})();
</script>
"""


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium, which opens the page")
def test_a_density_is_typed_in_a_browser_and_the_copied_code_answers(tmp_path: Path):
    page = tmp_path / "try.html"
    page.write_text((DOCS / "try.html").read_text("utf-8").replace("</body>", VISIT + "</body>"))
    flags = (
        "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync"
        " --disable-background-networking --disable-component-update --window-size=390,900"
        " --enable-logging=stderr"
    )
    command = [str(BROWSER), *flags.split(), f"--user-data-dir={tmp_path / 'profile'}"]
    address = f"{page.as_uri()}#density=exp(-Abs(x)/b)&v.b=5&n=1000"
    with subprocess.Popen([*command, address], stderr=subprocess.PIPE, text=True) as browser:
        clock = threading.Timer(500, browser.terminate)
        clock.start()
        assert browser.stderr is not None
        lines = (re.search(r"TOLD (\S+) END", line) for line in browser.stderr)
        found = next(filter(None, lines), None)
        browser.terminate()
        clock.cancel()
    assert found is not None
    told = json.loads(unquote(found[1]))
    assert told["errors"] == []
    assert told["width"] <= 500  # the least width of a window
    assert "not allowed in a formula" in told["refused"] or "missing" in told["refused"]
    first, second = told["answers"]
    for answer in (first, second):
        assert answer["plots"] >= 2  # ε(n) only where other n have an answer
        assert answer["math"] == 4
        codes = dict(answer["codes"])
        names: dict[str, object] = {}
        source = codes["Python"].replace("print(", "found = (")
        exec(compile(source, "copied", "exec"), names)
        truth = names["found"]
        assert isinstance(truth, symdp.Guarantee)
        assert float(answer["lower"]) <= truth.upper
        assert float(answer["upper"]) >= truth.lower
        assert symdp.Mechanism.from_toml(codes["mine.toml"]).name == "mine"
    assert max(told["paint"], default=0) <= 1000


ANSWERED = """(data) => data.map((asked) => {
  try { const found = answered(asked); delete found.laws; return found; }
  catch (error) { return error.message; }
})"""


@pytest.mark.slow
@needs_node
def test_noise_on_a_half_line_has_the_mass_that_only_one_law_has(tmp_path: Path):
    """Two steps of x exp(-x): losses have a tail of power one, and an atom at infinity."""

    def below(a: mpmath.mpf) -> mpmath.mpf:
        return 1 - (1 + a) * mpmath.exp(-a)

    def one(epsilon: mpmath.mpf) -> mpmath.mpf:
        if epsilon <= -1:
            return 1 - mpmath.exp(epsilon)
        odds = mpmath.exp(epsilon + 1)
        x = odds / (odds - 1)
        return below(x) - mpmath.exp(epsilon) * below(x - 1)

    def more(x: mpmath.mpf) -> mpmath.mpf:
        loss = mpmath.log(x / (x - 1)) - 1
        return x * mpmath.exp(-x) * one(1 - loss)

    kink = mpmath.e**3 / (mpmath.e**3 - 1)  # where the other loss must be at least its least
    truth = below(mpmath.mpf(1)) + mpmath.quad(more, [1, kink, 2, 5, 60])
    density = {"density": "x*exp(-x)", "lower": "0", "n": "2", "ask": "delta", "given": "1"}
    (answer,) = run(tmp_path, ANSWERED, [{**ASKED, **density}])
    assert answer["lower"] <= float(mpmath.log(truth)) <= answer["upper"]
    assert answer["upper"] - answer["lower"] < 1e-3


@needs_node
def test_places_of_coarse_rounding_make_no_loss_constant(tmp_path: Path):
    """Far to the left exp(-x/2) is rounded by more than the loss turns: it tells nothing."""
    ask = """(data) => [1, -1].map((side) => pairOf(examined(specified(data)), side).flats)"""
    density = {"density": "exp(-x/2 - exp(-x/2))", "rate": "1/10"}
    assert run(tmp_path, ask, {**ASKED, **density}) == [[0], [0]]
