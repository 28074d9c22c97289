"""docs/try.html: a page in which a density is typed, and its accounting appears.

Run it as `python docs/try_page.py`; it writes docs/try.html. The page holds the accountant of the
emitted JavaScript, translated from the same source, and a parser with the grammar of the package's.
"""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from pathlib import Path

from symdp.emit.standalone.tables import tables
from symdp.emit.standalone.translate import JAVASCRIPT, translate
from symdp.emit.standalone.write import error_functions, runtime
from symdp.page.panel import POLICY
from symdp.questions.steps.smaller_shifts import DOMINATES, MAY_LOSE_MORE, NO_SMALLER
from symdp.version import __version__

HERE = Path(__file__).parent
_HOOKS = ("log_p", "log_q", "loss_at", "term")
_TABLES = ("KIND", "FLAT", "LOWER", "UPPER", "LOSS", "SERIES_LOW", "SERIES_HIGH")


def _source(name: str) -> str:
    return (HERE / "try" / name).read_text("utf-8").strip("\n")


def accountant() -> str:
    """Return the accountant that every emitted JavaScript holds, its Gauss rule and primitives."""
    read = files("symdp.emit.standalone.runtime").joinpath
    rule = tables()
    lists = "\n".join(
        f"const {name} = Float64Array.of({', '.join(map(repr, values))});"
        for name, values in rule.items()
    )
    declared = {name: ["float", "Number", "Vector"] for name in _HOOKS}
    names = frozenset([*_TABLES, *rule])
    return "\n".join(
        [
            read("primitives.js").read_text("utf-8").strip("\n"),
            lists,
            error_functions("javascript"),
            translate(runtime(), JAVASCRIPT, declared, names),
        ]
    )


def sentences() -> str:
    """Return what every page says of smaller shifts, by what is known of the modes."""
    words = {"one": DOMINATES, "several": MAY_LOSE_MORE, "none": NO_SMALLER}
    return f"const ON_SMALLER_SHIFTS = {json.dumps(words, ensure_ascii=False)};"


def program() -> str:
    """Return what answers: the accountant, the grammar, and a density made ready for both."""
    own = map(_source, ("formula.js", "evaluate.js", "density.js"))
    return "\n".join([accountant(), sentences(), *own])


def page() -> str:
    """Return the page: one file that fetches nothing."""
    style = files("symdp.page").joinpath("style.css").read_text("utf-8").strip("\n")
    texts = {"program": program(), "serve": _source("serve.js")}
    # A text of another type than a script is not run; no text may end the element that holds it.
    held = "\n".join(
        f'<script type="text/plain" id="{name}">\n{text}\n</script>' for name, text in texts.items()
    )
    own = "\n".join(map(_source, ("formula.js", "shown.js", "page.js")))
    assert "</script" not in own + texts["program"] + texts["serve"]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<link rel="icon" href="data:,">\n<title>symdp: type a density</title>\n'
        f"<style>\n{style}\n{_source('page.css')}\n</style>\n</head>\n<body>\n"
        f"{_source('page.html')}\n<footer>symdp {escape(__version__)}. The accountant of this page "
        "is that of <code>symdp derive --format javascript</code>.</footer>\n"
        f"{held}\n<script>\n(() => {{\n{own}\n}})();\n</script>\n</body>\n</html>\n"
    )


if __name__ == "__main__":
    (HERE / "try.html").write_text(page(), "utf-8")
