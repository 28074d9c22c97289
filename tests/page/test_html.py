"""Pages, formulas and figures."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as ET
from html import unescape
from html.parser import HTMLParser

import pytest
import sympy as sp

import symdp
from symdp.model.sampling import Radial
from symdp.page.document import Document, Figure, Formulas, Heading, Listing, Sentence, Table
from symdp.page.formula import equation
from symdp.page.formula import read as read_name
from symdp.page.html import formula, mathml, to_html
from symdp.page.markdown import to_markdown
from symdp.page.plot import _COLOURS, Series, embedded, save
from symdp.page.report import full, head_blocks, section
from symdp.page.sections.loss import density_lines, law_lines, loss_lines
from symdp.page.sections.series import corrections
from symdp.page.verification import Results, analyse, default_range
from symdp.questions.tradeoff import trade_off

VOID = {"meta", "br", "hr", "img", "input", "link"}
STEPS = symdp.compose(symdp.mechanisms.gaussian(sigma=15), 100)


class Reader(HTMLParser):
    """Checks that elements nest, that ids are unique, and collects what a page refers to."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.texts = [], [], [], []

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in {"href", "src", "xlink:href", "action", "data", "srcset"}:
                self.links.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def page():
    results = analyse(STEPS, 1e-5, digits=15, targets=(1e-3,))
    return Document("A page", section("a hundred steps", STEPS, 1e-5, results))


@pytest.mark.slow
def test_a_page_is_well_formed_and_needs_no_network(page):
    html = to_html(page)
    reader = read(html)
    links = [link for link in reader.links if link != "data:,"]
    assert all(link.startswith("#") for link in links)
    assert {link[1:] for link in links} <= set(reader.ids)
    assert len(set(reader.ids)) == len(reader.ids)
    assert "//" not in re.sub(r"\s", "", html).replace("/>", "")
    assert "url(#" in html
    assert "@import" not in html


@pytest.mark.slow
def test_a_page_holds_what_was_promised(page):
    text = " ".join(read(to_html(page)).texts)
    for wanted in (
        "Gaussian mechanism",
        "Privacy loss",
        "Tail constants",
        "the reflection x → 1 − x exchanges P and Q",
        "correction terms",
        "Checked against truth",
        "@misc{alghamdi2022saddlepoint",
    ):
        assert wanted in text
    for method in ("contour", "msd:1", "clt", "moments", "truth"):
        assert method in text
    assert "EUROCRYPT" in text
    assert "violated" not in text


@pytest.mark.slow
def test_two_sections_share_a_page_without_sharing_names(page):
    plots = [block for block in page.blocks if isinstance(block, Figure)]
    other = [Figure(plots[0].series, plots[0].caption, "another")]
    assert len(plots) == 2
    reader = read(to_html(Document("Two", [*page.blocks, *other])))
    assert len(set(reader.ids)) == len(reader.ids)


def test_text_of_a_file_is_only_text(page):
    evil = "<script>alert('&')</script>"
    blocks = [
        Heading(2, evil),
        Sentence(evil),
        Table([evil], [[evil]], caption=evil),
        Listing([evil]),
    ]
    html = to_html(Document(evil, blocks))
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 8
    markdown = to_markdown(Document(evil, blocks), None)
    assert "<script" not in re.sub(r"\\<", "", markdown)


def test_a_page_as_markdown_has_its_figure_beside_it(page, tmp_path):
    file = tmp_path / "page.md"
    text = to_markdown(page, file)
    assert "![" in text
    assert "$$" in text
    assert (tmp_path / "page-profile.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert "| method |" in text


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
MEASURE = """<script>addEventListener("load", () => {
  const tall = selector => [...document.querySelectorAll(selector)]
    .map(e => e.getBoundingClientRect().height);
  document.body.dataset.seen = JSON.stringify({
    fetched: performance.getEntriesByType("resource").map(e => e.name),
    page: document.documentElement.scrollHeight, sideways:
      document.documentElement.scrollWidth - document.documentElement.clientWidth,
    fractions: tall("mfrac"), letters: tall("mi"), figures: tall("figure > svg"),
    folded: document.querySelectorAll("details:not([open])").length});
});</script>"""


def browse(html, tmp_path, width=1000):
    """Open a page in a browser without a window; return its DOM, what was measured, the log."""
    if BROWSER is None:
        pytest.skip("no Chromium here to open the page in")
    file = tmp_path / "seen.html"
    allowed = html.replace("default-src 'none';", "default-src 'none'; script-src 'unsafe-inline';")
    file.write_text(allowed.replace("</body>", MEASURE + "</body>"), encoding="utf-8")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom", "--no-first-run"]
    options += ["--enable-logging=stderr", "--disable-background-networking"]
    options += ["--virtual-time-budget=5000", f"--window-size={width},900"]
    ran = subprocess.run(
        [BROWSER, *options, f"--user-data-dir={tmp_path / 'profile'}", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    seen = re.search(r'data-seen="([^"]*)"', ran.stdout)
    assert seen is not None, "the page was not loaded"
    return ran.stdout, json.loads(unescape(seen.group(1))), ran.stderr


@pytest.mark.slow_cases("1000")
@pytest.mark.parametrize("width", [1000, 500])
def test_a_browser_shows_the_page_and_fetches_nothing(page, tmp_path, width):
    html = to_html(page)
    dom, seen, log = browse(html, tmp_path, width)
    assert "CONSOLE" not in log, log
    assert seen["fetched"] == []
    assert dom.count("<math") == html.count("<math") > 40
    assert seen["page"] > 2000
    assert seen["sideways"] <= 0
    # A fraction of one line is as high as its letters: MathML was not understood then.
    shown = [height for height in seen["fractions"] if height > 0]
    assert len(shown) > 10
    assert sorted(shown)[len(shown) // 2] > 1.5 * sorted(seen["letters"])[-1] > 0
    assert max(seen["figures"]) > 100
    assert seen["folded"] > 0


def test_the_browser_would_tell_of_a_request(tmp_path):
    page = to_html(Document("A page", [Sentence("text")]))
    _, _, log = browse(page.replace("</p>", '<img src="http://x.invalid/a.png"></p>'), tmp_path)
    assert "Content Security Policy" in log
    assert "CONSOLE" in log


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["html", "md"])
def test_the_report_command_writes_a_page(shell, tmp_path, ending):
    file = tmp_path / f"page.{ending}"
    ran = shell("report gaussian sigma=2 -n 5 --delta 1e-6 -o", str(file))
    assert ran.code == 0, ran.err
    assert ran.out.strip() == str(file)
    text = file.read_text(encoding="utf-8")
    assert "gaussian, 5 steps" in text
    if ending == "html":
        read(text)


x, b = sp.Symbol("x", real=True), sp.Symbol("b", positive=True)


@pytest.mark.parametrize(
    "expression",
    [
        sp.exp(-(x**2) / (2 * b**2)) / (b * sp.sqrt(2 * sp.pi)),
        sp.Piecewise((-1 / b, x < 0), (x, x > 3), (sp.oo, True)),
        sp.log(sp.sinh((2 * x + 1) / (2 * b))) - sp.Rational(2, 3) * sp.Abs(x),
        sp.besseli(0, x) + sp.besselk(1, b) + sp.gamma(x) + sp.erf(x) + sp.hyper([1], [2], x),
        2 * 2**x * x**-3 / sp.sqrt(x) + sp.Rational(-1, 3) * x,
        sp.Sum(sp.exp(-(x**2)), (x, -sp.oo, sp.oo)),
        sp.Symbol("<b>&amp;"),
        sp.Tuple(sp.Rational(1, 4), sp.exp(sp.Rational(-3, 4))),
    ],
)
def test_mathml_is_well_formed(expression):
    ET.fromstring(f"<math>{mathml(expression)}</math>")


def test_mathml_keeps_an_exponential_above_the_line():
    text = mathml(sp.exp(-x) / 2)
    assert text.startswith("<mfrac><msup><mi>e</mi>")
    assert text.endswith("<mn>2</mn></mfrac>")


def test_mathml_never_lets_two_numbers_run_together():
    assert "<mn>3</mn><mo>·</mo><msup>" in mathml(3 * 2**x)


@pytest.mark.quick_cases(
    "multivariate_t", "randomized_response", "gaussian", "laplace", "discrete_gaussian", "skellam"
)
@pytest.mark.parametrize("name", symdp.mechanisms.names())
def test_every_mechanism_has_formulas(name):
    held = getattr(symdp.mechanisms, name)
    if isinstance(held.source, Radial):
        pytest.skip("noise on vectors has no pair on a line")
    derivation = symdp.derive(held)
    rows = [
        *density_lines(derivation),
        *loss_lines(derivation),
    ]
    rows += [line for one in corrections(derivation, 1) for line in one.lines]
    for row in rows:
        ET.fromstring(formula(row))
        assert row.right is not None or row.words


def curve(labels, lowest=-3000.0):
    points = (0.0, 1.0, 2.0)
    logs = (-1.0, lowest / 2, lowest)
    return [Series(label, points, logs) for label in labels]


@pytest.mark.slow
def test_an_embedded_figure_names_nothing_outside():
    svg = embedded(curve(["contour", "moments"]), "here")
    root = ET.fromstring(svg)
    assert root.tag == "svg"
    assert "http" not in svg
    assert "currentColor" in svg
    for element in root.iter():
        assert element.get("id", "here-").startswith("here-")


@pytest.mark.slow
def test_the_same_curves_give_the_same_file(tmp_path):
    for name in ("a.svg", "b.svg"):
        save(curve(["contour"]), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_errors_have_a_row_for_each_accountant_and_a_mark_for_each_epsilon():
    curves = [
        Series(f"method {k}", (0.5, 1.0)[: 1 + k % 2], (-90.0, 9.0)[: 1 + k % 2]) for k in range(8)
    ]
    svg = embedded(curves, "many", of_errors=True)
    assert len(re.findall(r'id="many-ytick_', svg)) == 8
    marks = [len(re.findall(f"<use [^>]*fill: {colour}", svg)) for colour in _COLOURS[:3]]
    assert marks == [9, 5, 0]  # one of each in the legend


def percent(row):
    return float(row[1].removeprefix("≤ ").removesuffix(" %"))


def test_the_head_of_a_report_is_a_table_of_answers():
    steps = symdp.compose(symdp.mechanisms.gaussian(sigma=2), 10)
    results = Results([steps.epsilon(1e-5), steps.epsilon(1e-5, "moments")])
    table, protects, note = head_blocks(steps, 1e-5, results)
    exact = steps.epsilon(1e-5).epsilon
    assert table.rows[0][0] == "ε at δ = 1e-05"
    assert exact <= float(table.rows[0][1]) <= exact * 1.001
    bound = steps.epsilon(1e-5, "moments").epsilon
    assert bound <= float(table.rows[1][1]) <= bound * 1.001
    for alpha, row in zip((0.01, 0.001), table.rows[2:], strict=True):
        found = 100 * (1 - trade_off(steps, alpha))
        assert found * (1 - 1e-9) <= percent(row) <= found * 1.01
    assert steps.protection.sentence in protects.text
    assert "whether one record was in the data" in note.text


def test_a_figure_copes_with_no_delta_at_all(tmp_path):
    dead = Series("contour", (0.0, 1.0), (-math.inf, -math.inf))
    save([dead], tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size > 0


def test_bounds_are_shaded_only_where_an_eye_sees_them():
    points = {"epsilon": (0.0, 1.0), "log_delta": (-1.0, -2.0)}
    wide = Series("a", **points, log_lower=(-2.0, -3.0), log_upper=(-0.5, -1.0))
    hair = Series("a", **points, log_lower=(-1.0 - 1e-9, -2.0), log_upper=(-1.0, -2.0))
    assert "FillBetween" in embedded([wide], "w")
    assert "FillBetween" not in embedded([hair], "h")


def test_the_default_range_ends_above_the_mass_at_infinity():
    quarter, rest = sp.Rational(1, 4), sp.Rational(3, 4)
    mechanism = symdp.Mechanism.from_pair(
        [quarter, rest, 0],
        [0, rest, quarter],
        sp.Symbol("k"),
        {"points": [0, 1, 2]},
    )
    low, high = default_range(symdp.compose(mechanism, 2))
    assert low == 0.0
    assert high > 0.0


EXPONENTIAL = symdp.Mechanism.additive(
    sp.exp(-sp.Symbol("z", real=True) / 2) / 2,
    sp.Symbol("z", real=True),
    support=(0, sp.oo),
    name="exponential",
)


@pytest.mark.slow
def test_mass_at_infinity_leaves_a_page_with_its_reason():
    steps = symdp.compose(EXPONENTIAL, 1)
    results = analyse(steps, 1e-5, digits=15, targets=(0.3,))
    html = to_html(Document("A page", section("one step", steps, 1e-5, results)))
    text = " ".join(read(html).texts)
    assert "No finite ε exists at δ = 1e-05" in text
    head = head_blocks(steps, 1e-5, results)
    # Q puts 1 − e^(−1/2) where P puts nothing, and no δ(ε) is less.
    mass = -math.expm1(-0.5)
    assert f"{mass:.6g}" in head[-1].text
    first, *at_epsilon = head[0].rows[:7]
    assert first[:2] == ("ε at δ = 1e-05", "none")
    places = [float(row[0].removeprefix("δ at ε = ")) for row in at_epsilon]
    assert places == [0.0, 0.5, 1.0, 2.0, 5.0, 10.0]
    assert [float(row[1]) for row in at_epsilon] == pytest.approx([mass] * 6, rel=1e-9)
    for alpha, row in zip((0.01, 0.001), head[0].rows[7:], strict=True):
        most = 100 * (mass + alpha)  # the line of ε = 0: guesses between certainty and nothing
        assert most <= percent(row) <= most + 0.1
    assert "remove direction" in text
    assert "add direction" in text
    assert "<msub><mi>δ</mi><mi>∞</mi></msub>" in html
    assert "zoo" not in html
    assert "nan" not in re.findall(r"<m[ino]>(\w+)</m[ino]>", html)


def test_epsilon_is_found_where_one_direction_only_loses():
    steps = symdp.compose(EXPONENTIAL, 1)
    # δ(ε) of the remove direction is 1 − e^(ε − 1/2), less than 0.4 from ε = 0 on.
    assert steps.epsilon(0.4).epsilon == 0
    with pytest.raises(symdp.InputError, match="no finite epsilon"):
        steps.epsilon(0.3)


def test_long_formulas_are_folded():
    short, long = x + 1, sp.Add(*(sp.sin(k * x) for k in range(1, 40)))
    rows = [equation(read_name("f_{}", sp.Integer(k)), f) for k, f in enumerate((short, long))]
    reader = read(to_html(Document("A page", [Formulas(rows)])))
    assert [row.is_long for row in rows] == [False, True]
    assert "operations" in " ".join(reader.texts)
    html = to_html(Document("A page", [Formulas(rows)]))
    assert html.count("<details>") == 1
    assert to_markdown(Document("A page", [Formulas(rows)]), None).count("<details>") == 1


def test_a_formula_that_is_missing_gives_its_reason():
    derivation = symdp.derive(symdp.mechanisms.randomized_response(epsilon_0=1))
    html = to_html(Document("A page", [Formulas(law_lines(derivation))]))
    assert "the loss has atoms alone" in html
    assert "?" not in html.split("<body>")[1].split("<footer>")[0]


def test_references_are_spelled_out_once():
    found = full(["SPA (60)", "SPA (61)", "EA Prop 3.2", "A. Author: A Book (2000)", ""])
    assert len(found) == 3
    assert found[0].startswith("SPA: W. Alghamdi")
    assert found[2] == "A. Author: A Book (2000)"


def test_every_citation_of_an_accountant_has_its_reference():
    from symdp.methods import accountant, names

    for name in names():
        for text in full(accountant(name).citations):
            assert ": " in text, f"{name} cites {text!r}, which references.py does not know"


def busy(*_, **__):
    end = time.process_time() + 60.0
    while time.process_time() < end:
        pass


@pytest.mark.slow
def test_a_report_that_is_broken_off_is_written_and_says_what_it_lacks(
    shell, tmp_path, monkeypatch
):
    monkeypatch.setattr("symdp.page.report.loss_section", busy)
    monkeypatch.setattr("symdp.methods.table.names", lambda: ("contour",))
    file = tmp_path / "page.md"
    ran = shell("report laplace b=5 -n 2 --time-limit 6 -o", str(file))
    assert (ran.code, ran.out) == (1, "")
    lacks = f"incomplete after 6 s: {file} lacks derivation"
    assert ran.err == f"symdp: {lacks}; raise --time-limit\n"
    text = file.read_text(encoding="utf-8")
    assert f"I{lacks[1:].replace('_', chr(92) + '_')}." in text
    assert re.search(r"ε at δ = 1e-05 *\| *0.4 ", text.replace("*", ""))  # two losses of 1/5
    assert "Derived from" in text  # and what was there of the part that is not


def test_an_attack_is_read_off_what_is_known_where_its_best_line_takes_long(monkeypatch):
    steps = symdp.compose(symdp.mechanisms.gaussian(sigma=2), 10)
    results = Results([steps.epsilon(1e-5)])
    refined = head_blocks(steps, 1e-5, results)[0].rows[1:]
    monkeypatch.setattr("symdp.questions.tradeoff.trade_off", busy)
    monkeypatch.setattr("symdp.page.report.MORE_TIME", 0.1)
    coarse = head_blocks(steps, 1e-5, results)[0].rows[1:]
    assert [row[2] for row in coarse] == ["coarse", "coarse"]
    for own, best in zip(coarse, refined, strict=True):
        assert percent(best) <= percent(own) <= 100.0
    epsilon = steps.epsilon(1e-5).epsilon
    least = 100 * min(1e-5 + math.exp(epsilon) * 0.001, 1 - math.exp(-epsilon) * 0.999)
    assert least <= percent(coarse[1]) <= 1.01 * least
