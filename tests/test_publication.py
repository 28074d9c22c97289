"""What a publication says of the package is what pyproject.toml and the package say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import symdp

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]


def listed(text: str, key: str) -> list[str]:
    """Return the items of a list of a YAML file."""
    found = re.search(rf"^( *){key}:\n((?:\1  - .*\n)+)", text, re.M)
    assert found is not None
    return [line.strip().removeprefix("- ") for line in found[2].splitlines()]


def test_the_version_is_that_of_every_file():
    """That of what is installed is checked by `make dist`: an editable one keeps an older one."""
    assert PROJECT["dynamic"] == ["version"]
    assert PYPROJECT["tool"]["hatch"]["version"]["path"] == "symdp/version.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", symdp.__version__)
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    version, day = re.search(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", changes, re.M).groups()
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert version == symdp.__version__
    assert f"\nversion: {version}\n" in citation
    assert f'\ndate-released: "{day}"\n' in citation
    assert f'\n  version: "{version}"\n' in (ROOT / "recipe.yaml").read_text("utf-8")


def test_the_conda_recipe_asks_for_what_the_project_asks_for():
    recipe = (ROOT / "recipe.yaml").read_text("utf-8")
    wanted = [re.sub(r"(?<=\w)(?=[<>=])", " ", need) for need in PROJECT["dependencies"]]
    assert listed(recipe, "run") == [f"python {PROJECT['requires-python']}", *wanted]
    assert listed(recipe, "entry_points") == [f"symdp = {PROJECT['scripts']['symdp']}"]
    assert f"\n  summary: {PROJECT['description']}\n" in recipe
    assert f"\n  license: {PROJECT['license']}\n" in recipe


def test_no_address_is_made_up():
    """The project states none: what is published says so in CONTRIBUTING."""
    assert "urls" not in PROJECT
    assert "homepage" not in (ROOT / "recipe.yaml").read_text("utf-8")
    assert "`[project.urls]`" in (ROOT / "CONTRIBUTING.md").read_text("utf-8")
