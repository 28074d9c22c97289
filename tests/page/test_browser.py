"""The page with sliders in a real browser: a slider moves, and ε is the package's."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from shell import Shell

import symdp
from symdp import mechanisms

NAMES = "chromium", "chromium-browser", "google-chrome"
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
# What a person does: read ε, move sigma's slider to a place, wait, read again, type nonsense.
VISIT = """
<script>
const told = { errors: [], answers: [] };
addEventListener("error", (event) => told.errors.push(event.message));
addEventListener("securitypolicyviolation", (event) => told.errors.push(event.blockedURI));
console.error = (...words) => told.errors.push(words.join(" "));
const settled = async () => {
  for (let i = 0; i < 600; i++) {
    await new Promise((done) => setTimeout(done, 50));
    for (let k = 0; k < 3e7; k++) Math.sin(k);  // the browser's clock does not wait for a worker
    const box = document.querySelector(".result > div"), plots = document.querySelector(".plots");
    const stale = document.querySelector(".stale") || !plots.querySelector("svg");
    if (!stale && box && box.dataset.epsilon)
      return told.answers.push({ epsilon: box.dataset.epsilon,
        shown: document.getElementById("answer").textContent,
        sigma: document.getElementById("field-sigma").value });
  }
  told.errors.push("no answer: " + document.querySelector(".result").textContent);
};
const put = (field, text) => { field.value = text; field.dispatchEvent(new Event("input")); };
(async () => {
  await settled();
  put(document.querySelector("#field-sigma ~ input[type=range]"), "850");
  await settled();
  put(document.getElementById("field-sigma"), "twelve");
  told.sentence = document.getElementById("field-sigma-told").textContent;
  told.result = document.querySelector(".result").textContent;
  told.link = location.hash;
  told.width = document.documentElement.scrollWidth;
  const textContent = JSON.stringify(told);
  document.body.append(Object.assign(document.createElement("pre"), { id: "told", textContent }));
})();
</script>
"""


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium, which opens the page")
def test_a_slider_moves_and_epsilon_follows(shell: Shell, tmp_path: Path):
    page = tmp_path / "page.html"
    ran = shell(f"explore gaussian sigma=12.5 -n 100 -o {page}")
    assert ran.code == 0, ran.err
    page.write_text(page.read_text("utf-8").replace("</body>", VISIT + "</body>"), "utf-8")
    command = [
        str(BROWSER),
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=390,900",
    ]
    command += [
        f"--user-data-dir={tmp_path / 'profile'}",
        "--virtual-time-budget=60000",
        "--dump-dom",
    ]
    seen = subprocess.run(
        [*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    found = re.search(r'<pre id="told">(.*?)</pre>', seen.stdout, re.DOTALL)
    assert found is not None, seen.stderr[-2000:]
    told = json.loads(html.unescape(found[1]))
    assert told["errors"] == []
    first, moved = told["answers"]
    assert f'class="answer">{first["shown"]}</p>' in page.read_text("utf-8")
    assert first["sigma"] == "12.5"
    assert float(moved["sigma"]) > 12.5
    for answer in (first, moved):
        steps = symdp.compose(mechanisms.gaussian(sigma=float(answer["sigma"])), 100)
        exact = steps.epsilon(1e-5).epsilon
        assert float(answer["epsilon"]) == pytest.approx(exact, rel=1e-12)
        shown = float(answer["shown"].split()[2])  # rounded up to four digits
        assert exact * (1 - 1e-12) <= shown <= exact * 1.001
    assert told["width"] <= 500  # the least width of a window: nothing is cut off
    assert "must be a number" in told["sentence"]
    assert told["result"] == "No answer for these values."  # no old one beside an error
    assert "sigma=" in told["link"]
