"""How the documentation is built: Sphinx, MyST pages that are executed, the Furo theme."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

import symdp

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from calculator import calculator  # noqa: E402
from gallery import folded, page_of  # noqa: E402

project = "symdp"
author = "the symdp developers"
version = release = symdp.__version__
copyright = f"2026, {author} (MIT license). This is symdp {version}"  # the footer of every page

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb"]
root_doc = "index"
exclude_patterns = ["_ipython"]
nitpicky = False

# Pages: executed every time, for a result kept from an older package would prove nothing.
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 300
nb_execution_in_temp = False
nb_output_stderr = "error"
nb_merge_streams = True
nb_code_prompt_show = "Show the steps and their checks"
nb_code_prompt_hide = "Hide them"
# Words such as "lower" in a type are prose, though several classes have an attribute of that name.
suppress_warnings = ["ref.python"]

# The kernel's own configuration draws figures as SVG, in one style for all pages.
os.environ["IPYTHONDIR"] = str(HERE / "_ipython")

# Each kernel announces its start to the root of the log.
logging.getLogger("traitlets").setLevel(logging.WARNING)

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"symdp {version}"
html_static_path = ["_static"]
html_css_files = ["symdp.css"]
html_copy_source = False
html_show_sphinx = False
# Formulas become MathML here, which browsers show without a script and without network.
html_math_renderer = "mathml"


_LITERAL = re.compile(r"(``.*?``|`[^`]*`(?:_|__)?|:\w+:`[^`]*`)")
_ONE_LINE_RAISE = re.compile(r"(\s*)(\w+Error) : (.+)")
_MARKUP = re.compile(r"([|*\\]|(?<=\w)_(?!\w))")


def plain_text(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Escape what docstrings mean literally: they are prose with formulas such as |φ_t(y)| ≤ V/|y|.

    Examples, directives and indented displays stay as they are.
    """
    directive: int | None = None
    for place, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if directive is not None and line.strip() and indent <= directive:
            directive = None
        if line.lstrip().startswith(".. "):
            directive = indent
        if directive is None and not line.lstrip().startswith((">>> ", "... ")):
            parts = _LITERAL.split(line)
            parts[::2] = [_MARKUP.sub(r"\\\1", part) for part in parts[::2]]
            lines[place] = "".join(parts)
    for place in reversed(range(len(lines))):
        if raised := _ONE_LINE_RAISE.fullmatch(lines[place]):
            indent, error, why = raised.groups()
            lines[place : place + 1] = [indent + error, f"{indent}    {why}"]


def inline_formula(page: Any, node: Any) -> None:
    """Write a formula within a line."""
    page.body.append(convert(node.astext()))
    raise SkipNode


def displayed_formula(page: Any, node: Any) -> None:
    """Write a formula on lines of its own; lines that are cut by a double backslash are aligned."""
    formula = node.astext().strip()
    formula = formula.replace("{aligned}", "{split}")  # what the converter calls it
    if "\\\\" in formula and "\\begin{" not in formula:
        formula = rf"\begin{{split}}{formula}\end{{split}}"
    page.body.append(f'<div class="math">{convert(formula, display="block")}</div>')
    raise SkipNode


def mirror(folder: str, pages: dict[str, str]) -> None:
    """Write pages below the source folder, as Sphinx sees no others; unchanged ones stay."""
    shown = HERE / folder
    shown.mkdir(exist_ok=True)
    for old in shown.iterdir():
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        page = shown / name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def mirror_all() -> None:
    """Bring the derivations, their checks folded, and the gallery's programs among the pages."""
    derivations = sorted((HERE.parent / "derivations").glob("*.md"))
    mirror("derivations", {p.name: folded(p.read_text(encoding="utf-8")) for p in derivations})
    programs = {p.stem: p.read_text("utf-8") for p in (HERE.parent / "examples").glob("*.py")}
    shown = {name: text for name, text in programs.items() if text.startswith("# %%")}
    mirror("examples", {f"{name}.md": page_of(text) for name, text in shown.items()})


def linked(app: Any, name: str, source: list[str]) -> None:
    """Turn links to files of the repository into links to their pages of the build."""
    text = source[0].replace("](../derivations/", "](derivations/").replace("](../docs/", "](../")
    source[0] = re.sub(r"\]\(\.\./examples/([\w-]+)\.py", r"](examples/\1.md", text)


def write_panels(app: Any, error: Exception | None) -> None:
    """Write the pages that two pages of the documentation show."""
    if error is None and app.builder.format == "html":
        (Path(app.outdir) / "calculator-panel.html").write_text(calculator(), encoding="utf-8")
        shutil.copy(HERE / "try.html", Path(app.outdir) / "try-panel.html")


def setup(app: Any) -> None:
    """Bring the pages together, register formulas, and the hook that comes before napoleon's."""
    mirror_all()
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    app.connect("autodoc-process-docstring", plain_text, priority=1)
    app.connect("source-read", linked)
    app.connect("build-finished", write_panels)
