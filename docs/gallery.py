"""Programs of examples/ as pages, and pages whose checks are folded until they are asked for."""

from __future__ import annotations

import ast
import re

_HEAD = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n"
_CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
_CODE = re.compile(r"^```\{code-cell\} ipython3\n(?![:-])(.*?)^```$", re.MULTILINE | re.DOTALL)


def page_of(program: str) -> str:
    """Return a program in cells, ``# %%`` and ``# %% [markdown]``, as a MyST page."""
    _, *parts = _CELL.split(program)
    page = []
    for kind, body in zip(parts[::2], parts[1::2], strict=True):
        if "markdown" in kind:
            page.append(re.sub(r"^# ?", "", body.strip(), flags=re.MULTILINE))
        else:
            page.append(f"```{{code-cell}} ipython3\n{body.strip()}\n```")
    return _HEAD + "\n\n".join(page) + "\n"


def folded(page: str) -> str:
    """Return a page whose cells that check something hide their code, not their results."""
    return _CODE.sub(_fold, page)


def _fold(cell: re.Match[str]) -> str:
    if not any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(cell[1]))):
        return cell[0]
    return cell[0].replace("\n", "\n:tags: [hide-input]\n\n", 1)
