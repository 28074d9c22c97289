"""Pages, formulas, figures and the comparison with truth."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import mpmath
import pytest
import sympy as sp

import symdp
from symdp.guarantee import Guarantee
from symdp.report import formulas
from symdp.report.blocks import Heading, Listing, Page, Paragraph, Plot, Table
from symdp.report.html import to_html
from symdp.report.markdown import to_markdown
from symdp.report.mathml import mathml
from symdp.report.plot import Series, embedded, save
from symdp.report.profile import default_range
from symdp.report.references import full
from symdp.report.section import analyse, epsilon_truth, section
from symdp.report.verification import Truth, check, is_broken, places, truth_at, verify

VOID = {"meta", "br", "hr", "img", "input", "link"}
STEPS = symdp.compose(symdp.mechanisms.gaussian(sigma=5), 10)


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
    results = analyse(STEPS, 1e-5, digits=20, targets=(1e-3,))
    return Page("A page", section("ten steps", STEPS, 1e-5, results))


def test_a_page_is_well_formed_and_needs_no_network(page):
    html = to_html(page)
    reader = read(html)
    assert all(link.startswith("#") for link in reader.links)
    assert {link[1:] for link in reader.links} <= set(reader.ids)
    assert len(set(reader.ids)) == len(reader.ids)
    assert "//" not in re.sub(r"\s", "", html).replace("/>", "")
    assert "url(#" in html
    assert "@import" not in html


def test_a_page_holds_what_was_promised(page):
    text = " ".join(read(to_html(page)).texts)
    for wanted in ("Gaussian mechanism", "Privacy loss", "Series", "Checked against truth"):
        assert wanted in text
    for method in ("contour", "msd:1", "clt", "moments", "truth"):
        assert method in text
    assert "EUROCRYPT" in text
    assert "violated" not in text


def test_two_sections_share_a_page_without_sharing_names(page):
    plots = [block for block in page.blocks if isinstance(block, Plot)]
    other = [Plot(plots[0].series, plots[0].caption, "another")]
    reader = read(to_html(Page("Two", [*page.blocks, *other])))
    assert len(set(reader.ids)) == len(reader.ids)


def test_text_of_a_file_is_only_text(page):
    evil = "<script>alert('&')</script>"
    blocks = [
        Heading(2, evil),
        Paragraph(evil),
        Table([evil], [[evil]], caption=evil),
        Listing([evil]),
    ]
    html = to_html(Page(evil, blocks))
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 8
    markdown = to_markdown(Page(evil, blocks), None)
    assert "<script" not in re.sub(r"\\<", "", markdown)


def test_a_page_as_markdown_has_its_figure_beside_it(page, tmp_path):
    file = tmp_path / "page.md"
    text = to_markdown(page, file)
    assert "![" in text
    assert "$$" in text
    assert (tmp_path / "page-profile.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert "| method |" in text


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
    assert "<mo>&#8901;</mo>" in mathml(3 * 2**x)


@pytest.mark.parametrize("name", symdp.mechanisms.names())
def test_every_mechanism_has_formulas(name):
    derivation = symdp.derive(symdp.mechanisms.load_builtin(name))
    rows = [*formulas.densities(derivation), *formulas.loss(derivation)]
    rows += formulas.series(derivation, 1)
    for row in rows:
        ET.fromstring(row.mathml())
        assert "=" in row.latex()


def curve(labels, lowest=-3000.0):
    points = (0.0, 1.0, 2.0)
    logs = (-1.0, lowest / 2, lowest)
    return [Series(label, points, logs) for label in labels]


def test_an_embedded_figure_names_nothing_outside():
    svg = embedded(curve(["contour", "moments"]), "here")
    root = ET.fromstring(svg)
    assert root.tag == "svg"
    assert "http" not in svg
    assert "currentColor" in svg
    for element in root.iter():
        assert element.get("id", "here-").startswith("here-")


def test_the_same_curves_give_the_same_file(tmp_path):
    for name in ("a.svg", "b.svg"):
        save(curve(["contour"]), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


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


def test_truth_is_the_closed_form():
    truth = truth_at(STEPS, 2.0, "both", 30)
    with mpmath.workdps(50):
        mu = mpmath.sqrt(10) / 5

        def tail(z):
            return mpmath.erfc(z / mpmath.sqrt(2)) / 2

        exact = tail(2 / mu - mu / 2) - mpmath.exp(2) * tail(2 / mu + mu / 2)
        assert abs(truth.value / exact - 1) < mpmath.mpf(10) ** -29
    assert truth.digits == 30


def test_true_epsilon_meets_delta():
    start = STEPS.epsilon(1e-6)
    found = epsilon_truth(STEPS, 1e-6, start, 30)
    assert found.exact is not None
    assert float(found.exact) == pytest.approx(start.epsilon, rel=1e-12)
    rough = epsilon_truth(STEPS, 1e-6, STEPS.epsilon(1e-6, "moments"), 30)
    assert float(rough.exact) == pytest.approx(float(found.exact), rel=1e-14)


def test_every_accountant_is_compared():
    from symdp.accountant import names

    seen = []
    checks = list(
        verify(STEPS, digits=20, targets=(1e-2, 1e-8), advance=lambda *at: seen.append(at))
    )
    assert [c.method for c in checks] == 2 * list(names())
    assert seen[-1][0] == seen[-1][1]
    assert not any(c.broken for c in checks)
    exact = [c for c in checks if c.method == "contour"]
    assert all(abs(c.error) < 1e-11 for c in exact)
    moments = [c for c in checks if c.method == "moments"]
    assert all(c.error > 0 for c in moments)


def guarantee(**values):
    given = {"epsilon": 1.0, "log_delta": -2.0, "kind": "exact", "method": "m"}
    return Guarantee(**(given | {"direction": "remove", "count": 1} | values))


@pytest.mark.parametrize(
    ("values", "broken"),
    [
        ({"kind": "bound", "log_delta": -1.9}, False),
        ({"kind": "bound", "log_delta": -2.1}, True),
        ({"kind": "bound", "log_delta": -2.0}, False),
        ({"log_lower": -2.1, "log_upper": -1.9}, False),
        ({"log_lower": -1.99, "log_upper": -1.9}, True),
        ({"log_lower": -2.2, "log_upper": -2.1}, True),
        ({"log_lower": -math.inf, "log_upper": 0.0}, False),
        ({"kind": "estimate", "log_delta": -5.0}, False),
    ],
)
def test_a_bound_on_the_wrong_side_is_seen(values, broken):
    with mpmath.workdps(30):
        truth = Truth(1.0, mpmath.exp(-2), 30, "remove")
    assert is_broken(guarantee(**values), truth) is broken


def test_an_accountant_without_an_answer_says_why(monkeypatch):
    def fails(*_):
        raise symdp.AccuracyError("too slow")

    monkeypatch.setattr(symdp.Composition, "delta", fails)
    one = check(STEPS, "contour", "both", Truth(1.0, mpmath.mpf(1), 30))
    assert one.answer is None
    assert one.reason == "too slow"
    assert one.to_json()["reason"] == "too slow"


def test_places_leave_out_what_the_profile_never_reaches():
    mechanism = symdp.mechanisms.randomized_response(epsilon_0=1)
    found = places(symdp.compose(mechanism, 3), "both", (0.5, 1e-2, 1e-30))
    assert found == sorted(found)
    assert all(0 <= epsilon <= 3 for epsilon in found)


def test_verify_command(shell, monkeypatch):
    monkeypatch.setattr("symdp.report.verification.TARGETS", (1e-3, 1e-9))
    ran = shell("verify gaussian sigma=5 -n 10 --digits 15 --json")
    result = ran.json
    assert result["violated"] == 0
    assert result["digits"] == 15
    assert result["count"] == 10
    methods = {row["method"] for row in result["checks"]}
    assert {"contour", "moments", "clt"} <= methods
    for row in result["checks"]:
        assert row["relative_error"] is None or math.isfinite(row["relative_error"])


def test_verify_for_people_and_a_violation_is_code_1(shell, monkeypatch):
    monkeypatch.setattr("symdp.report.verification.TARGETS", (1e-3,))
    ran = shell("verify gaussian sigma=5 -n 10 --digits 15")
    assert ran.code == 0
    assert "no bound violated" in ran.out
    monkeypatch.setattr("symdp.report.verification.is_broken", lambda *_: True)
    ran = shell("verify gaussian sigma=5 -n 10 --digits 15")
    assert ran.code == 1
    assert "VIOLATED" in ran.out
    assert ran.err == ""


def test_references_are_spelled_out_once():
    found = full(["SPA (60)", "SPA (61)", "EA Prop 3.2", "A. Author: A Book (2000)", ""])
    assert len(found) == 3
    assert found[0].startswith("SPA: W. Alghamdi")
    assert found[2] == "A. Author: A Book (2000)"


def test_every_citation_of_an_accountant_has_its_reference():
    from symdp.accountant import accountant, names

    for name in names():
        for text in full(accountant(name).citations):
            assert ": " in text, f"{name} cites {text!r}, which references.py does not know"
