/* The panel: fields and sliders, ε or δ, curves, a link. Numbers come from a worker. */
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("panel-data").textContent);
  const root = document.getElementById("panel");
  const make = (tag, attributes = {}, ...children) => {
    const node = tag.startsWith("svg:")
      ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4)) : document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const SERVE = `
let latest = 0;
onmessage = async (event) => {
  const { id, ask, given, n, values, direction, patience = 700, most = 20000 } = event.data;
  const answer = { id }, start = Date.now();
  let rest = start;
  latest = id;
  // whether this question is still asked: a newer one is heard ten times a second
  const asked = async () => {
    if (Date.now() - rest > 100) { await new Promise((done) => setTimeout(done)); rest = Date.now(); }
    return id === latest;
  };
  try {
    const found = laws(n, values, direction), known = new Map();
    // four digits are shown: a line need be no longer
    for (const law of found) { law.near = 1e-4; law.relative = 2e-5; }
    const at = (epsilon) => {
      if (!known.has(epsilon)) known.set(epsilon, log_delta_at(found, epsilon));
      return known.get(epsilon);
    };
    const target = ask === "epsilon" ? Math.log(given) : at(given);
    if (ask === "epsilon" && !(given > 0 && given < 1)) throw new RangeError("delta must be above 0 and below 1");
    const sides = ask === "epsilon" ? epsilons(found, given) : log_deltas(found, given);
    answer.epsilon = ask === "epsilon" ? Math.max(...sides) : given;
    answer.log_delta = target;
    // the one in which it is larger; the laws come in this order
    answer.ends = ends_of(found);
    const alike = Math.max(1e-9 * Math.max(1, Math.abs(sides[0])), answer.ends[1] - answer.ends[0]);
    const equal = sides.length < 2 || Math.abs(sides[0] - sides[1]) <= alike;
    answer.larger = equal ? "both" : sides[0] > sides[1] ? "remove" : "add";
    known.set(answer.epsilon, target);
    // a curve may lose digits next to its end, and needs no longer line than its own is wide
    for (const law of found) { law.strict = 0; law.near = 1e-3; }
    postMessage({ ...answer, first: true });
    // from delta(0) to far beyond what is asked
    const end = Number.isFinite(answer.epsilon) ? Math.max(answer.epsilon * 1.5, 0.2) : 20;
    // TPR at FPR a is at most delta + a e^epsilon and 1 - e^-epsilon (1 - delta - a), at any epsilon
    const power = (a, e, l) => Math.min(1, Math.exp(l) + a * Math.exp(e), 1 - Math.exp(-e) * (1 - Math.exp(l) - a));
    answer.power = [];
    answer.coarse = [];
    for (const a of [0.01, 0.001]) {
      let isCoarse = false;
      const height = (e) => { try { return power(a, e, at(e)); } catch (error) { isCoarse = true; return 1; } };
      // the same places on every machine: the first bound is below 1 up to e^epsilon = 1 / a
      const top = Math.max(end, Math.log(1000)), places = [];
      for (let i = 0; i <= 10; i++) {
        if (!await asked()) return;
        height(top * i / 10);
        places.push(top * i / 10);
      }
      const k = places.reduce((best, e, i) => (height(e) < height(places[best]) ? i : best), 0);
      let low = places[Math.max(0, k - 1)], high = places[Math.min(10, k + 1)];
      isCoarse = false;  // gaps far from the lowest place hide nothing
      // next to the lowest place its slope is no more than itself: one part in 1,000
      const part = (Math.sqrt(5) - 1) / 2;
      while (high - low > 1e-3 + 1e-13 * high) {
        if (!await asked()) return;
        if (Date.now() - start > most) { isCoarse = true; break; }
        const x = high - part * (high - low), y = low + part * (high - low);
        if (height(x) <= height(y)) high = y; else low = x;
      }
      answer.power.push(Math.min(...[...known].map(([e, l]) => power(a, e, l))));
      answer.coarse.push(isCoarse);
    }
    // coarse places of the curve first, then between them, as long as a person waits
    const drawn = Date.now();
    for (const [first, step] of [[0, 40], [20, 40], [10, 20], [5, 10], [0, 5], [1, 5], [2, 5], [3, 5], [4, 5]])
      for (let i = first; i <= 40 && Date.now() - drawn < patience; i += step) {
        if (!await asked()) return;
        try { at(end * i / 40); } catch (error) { /* a gap in the curve */ }
      }
    const points = [...known].sort((p, q) => p[0] - q[0]);
    answer.points = points.filter(([e, l]) => e <= end && l > -Infinity);
    answer.trade = [];
    for (let i = 0; i <= 48; i++) {
      const a = 10 ** (-4 + i / 12);
      answer.trade.push([a, Math.min(...points.map(([e, l]) => power(a, e, l)))]);
    }
    postMessage(answer);
  } catch (error) { postMessage({ id, error: error.message, input: error instanceof RangeError }); }
};`;
  const workers = new Map();
  let mode = data.ask, current = data.panels[0], pinned = null, clock = 0, number = 0, waiting = null, busy = null, opening = true;
  const state = {};
  const read = (text) => {
    const parts = text.trim().replace(",", ".").split("/");
    if (parts.length > 2 || parts.some((part) => !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(part.trim()))) return NaN;
    return parts.length === 2 ? Number(parts[0]) / Number(parts[1]) : Number(parts[0]);
  };
  const digits = (x, n = 4) => (x === 0 ? "0" : Math.abs(x) < 1e-3 || Math.abs(x) >= 1e6
    ? Number(x.toPrecision(n)).toExponential().replace("e+", "e") : String(Number(x.toPrecision(n))));
  // what is promised is shown rounded up
  const up = (x, n = 4) => {
    if (!(x > 0)) return digits(x, n);
    const unit = 10 ** (Math.floor(Math.log10(x)) - n + 1), near = Number(x.toPrecision(n));
    return digits(near < x ? near + unit : near, n);
  };
  const ofLog = (l, n = 4) => {
    if (l > -700) return digits(Math.exp(l), n);
    if (l === -Infinity) return "0";
    const tens = Math.floor(l / Math.LN10);
    return `${(Math.exp(l - tens * Math.LN10)).toPrecision(n)}e${tens}`;
  };
  const whole = (field) => field.domain.includes("integer") || field.domain === "natural";
  const wrong = (field, x) => {
    if (Number.isNaN(x)) return `${field.label} must be a number, such as ${field.value}`;
    if (!Number.isFinite(x)) return `${field.label} is beyond what a double holds`;
    if (whole(field) && x !== Math.floor(x)) return `${field.label} must be a whole number`;
    if (field.open ? x <= field.least : x < field.least) return `${field.label} must be ${field.rule}`;
    if (field.openTop ? x >= field.most : x > field.most) return `${field.label} must be ${field.rule}`;
    return "";
  };
  const toSlider = (field, x) => (field.log
    ? 1000 * Math.log(x / field.low) / Math.log(field.high / field.low) : 1000 * (x - field.low) / (field.high - field.low));
  const fromSlider = (field, s) => {
    const x = field.log ? field.low * (field.high / field.low) ** (s / 1000) : field.low + (field.high - field.low) * s / 1000;
    return whole(field) ? Math.round(x) : Number(x.toPrecision(3));
  };
  const fields = () => current.fields.concat(mode === "epsilon" ? [data.delta] : [data.epsilon]);
  const value = (field) => state[field.name] ?? field.value;

  const form = make("form", { class: "fields", "aria-label": "Settings" });
  form.addEventListener("submit", (event) => event.preventDefault());
  const result = make("div", { class: "result", role: "status", "aria-live": "polite" });
  const plots = make("div", { class: "plots" });
  const codes = make("div", { class: "codes" });
  const formulas = make("div");

  function build() {
    form.replaceChildren();
    if (data.panels.length > 1) {
      const select = make("select", { id: "which" });
      data.panels.forEach((panel, i) => select.append(make("option", { value: i }, panel.title)));
      select.value = data.panels.indexOf(current);
      select.addEventListener("change", () => { current = data.panels[select.value]; pinned = null; build(); ask(); });
      form.append(make("div", { class: "field" }, make("label", { for: "which" }, "Mechanism"), select));
    }
    const choice = make("div", { class: "field modes", role: "radiogroup", "aria-label": "What is given" });
    for (const [name, text] of [["epsilon", "δ given, ε asked"], ["delta", "ε given, δ asked"]]) {
      const radio = make("input", { type: "radio", name: "mode", id: `mode-${name}`, value: name });
      radio.checked = mode === name;
      radio.addEventListener("change", () => { mode = name; build(); ask(); });
      choice.append(make("label", { for: `mode-${name}` }, radio, " ", text));
    }
    form.append(choice);
    for (const field of fields()) {
      const id = `field-${field.name}`;
      const text = make("input", { id, type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false",
        "aria-describedby": `${id}-told` });
      const slider = field.fixed ? make("span") : make("input", { type: "range", min: 0, max: 1000, step: 1, "aria-label": `${field.label}, slider` });
      const told = make("span", { id: `${id}-told`, class: "told" });
      text.value = value(field);
      if (field.fixed) text.disabled = true;
      const show = () => {
        const x = read(String(value(field)));
        const sentence = wrong(field, x);
        told.textContent = sentence;
        text.setAttribute("aria-invalid", sentence ? "true" : "false");
        if (!sentence && !field.fixed) { slider.value = toSlider(field, x); slider.setAttribute("aria-valuetext", digits(x)); }
      };
      text.addEventListener("input", () => { opening = false; state[field.name] = text.value; show(); ask(); });
      slider.addEventListener("input", () => {
        opening = false;
        state[field.name] = String(fromSlider(field, Number(slider.value)));
        text.value = state[field.name];
        show();
        ask();
      });
      show();
      form.append(make("div", { class: "field" }, make("label", { for: id }, field.label), text, slider, told));
    }
    if (current.narrowed) form.append(make("p", { class: "quiet", id: "narrowed" }, current.narrowed));
    formulas.replaceChildren();
    if (current.formulas) {
      const box = make("div", { class: "formulas" });
      box.innerHTML = current.formulas;
      formulas.append(make("details", {}, make("summary", {}, "The formulas that were derived"), box));
    }
  }

  function settings() {
    const values = {}, given = {};
    for (const field of fields()) {
      const x = read(String(value(field)));
      if (wrong(field, x)) return null;
      given[field.name] = x;
    }
    for (const name of current.parameters) values[name] = given[name];
    if (current.training) {
      values[current.training] = given.batch / given.examples;
      given.n = Math.ceil(given.epochs * given.examples / given.batch);
      const isLarge = given.batch > given.examples;
      document.getElementById("field-batch-told").textContent = isLarge ? "a batch has no more examples than there are" : "";
      if (isLarge) return null;
    }
    const of = mode === "epsilon" ? data.delta : data.epsilon, typed = String(value(of)).trim().replace(",", ".");
    return { ask: mode, given: given[of.name], typed, n: given.n, values, direction: "both" };
  }

  function worker() {
    if (!workers.has(current)) {
      const own = new Worker(URL.createObjectURL(new Blob([current.program.map((i) => data.parts[i]).join("\n\n") + SERVE], { type: "text/javascript" })));
      own.onmessage = (event) => receive(event.data);
      workers.set(current, own);
    }
    return workers.get(current);
  }

  function ask() {
    const asked = settings();
    clearTimeout(clock);
    if (!asked) {
      waiting = null;
      only(make("p", { class: "told" }, "No answer for these values."));
      return;
    }
    for (const one of [result, plots, codes]) one.classList.add("stale");
    wait();
    keep();
    waiting = { id: ++number, ...asked };
    if (!busy || busy.heard) send();
  }
  function wait() {
    clearTimeout(clock);
    clock = setTimeout(() => only(make("p", { id: "computing" }, "computing …")), 300);
  }
  // what is shown in place of an answer: no old one stands beside it
  function only(sentence) {
    for (const one of [plots, codes]) one.replaceChildren();
    result.classList.remove("stale");
    result.replaceChildren(sentence);
  }
  function send() {
    busy = waiting;
    waiting = null;
    worker().postMessage(busy);
  }
  function receive(answer) {
    if (!busy || answer.id !== busy.id) return;
    const asked = busy;
    if (answer.first) asked.heard = true; else busy = null;
    if (waiting) { send(); if (!answer.first) return; }
    if (settings() === null) return;
    if (answer.error) {
      // a page opens on steps that it can answer, where nobody said how many
      const steps = current.fields.find((field) => field.name === "n" && !field.given);
      if (opening && steps && value(steps) < 1e4) {
        state.n = String(10 * value(steps));
        build();
        ask();
        return;
      }
      clearTimeout(clock);
      only(make("p", { class: "told" }, `No answer: ${answer.error}.`));
      return;
    }
    if (waiting) wait(); else clearTimeout(clock);
    opening = false;
    result.replaceChildren(draw(asked, answer));
    result.classList.toggle("stale", Boolean(waiting));
    if (!answer.first) { curves(asked, answer); plots.classList.remove("stale"); codes.classList.remove("stale"); }
  }

  function draw(asked, answer) {
    const asksDelta = asked.ask === "delta", l = answer.log_delta;
    const epsilon = asksDelta ? asked.typed : up(answer.epsilon);
    const delta = !asksDelta ? asked.typed : l > -700 ? up(Math.exp(l)) : ofLog(l + 1e-3);
    const box = make("div");
    box.append(make("p", { class: "answer", id: "answer" }, `ε = ${epsilon} at δ = ${delta}`));
    box.dataset.epsilon = String(answer.epsilon);
    box.dataset.logDelta = String(answer.log_delta);
    const larger = answer.larger === "both" ? "Removing a record and adding one have the same." : `The larger of removing a record and adding one: ${answer.larger}.`;
    box.append(make("p", { class: "told", id: "direction" }, larger));
    box.append(make("p", {}, `Protects ${current.protects}.`));
    if (answer.power) {
      const percent = (x) => `${up(Math.min(100, 100 * x), 3)} %`;
      const table = make("table", {}, make("caption", {}, "The best attack on one record's presence"));
      table.append(make("tr", {}, make("th", { scope: "col" }, "false alarms"), make("th", { scope: "col" }, "found at most")));
      [0.01, 0.001].forEach((a, i) => table.append(make("tr", {}, make("td", {}, percent(a)),
        make("td", {}, percent(answer.power[i]) + (answer.coarse[i] ? " (coarse: less is possible)" : "")))));
      box.append(table);
    }
    const [least, most] = answer.ends ?? [0, 0], number = (x) => (asksDelta ? `δ ${ofLog(x, 7)}` : `ε ${digits(x, 7)}`);
    box.append(make("p", { class: "quiet" }, most - least > 1e-9 * Math.max(1, Math.abs(most))
      ? `Between ${number(least - 1e-7 * Math.abs(least))} and ${number(most + 1e-7 * Math.abs(most))}: ${data.enclosed}`
      : `ε = ${digits(answer.epsilon, 12)}, δ = ${ofLog(answer.log_delta, 12)}: ${data.told}`));
    return box;
  }

  function curves(asked, answer) {
    plots.replaceChildren(
      plot("Privacy profile", "ε", "log₁₀ δ", answer.points.map(([e, l]) => [e, l / Math.LN10]),
        pinned && pinned.points.map(([e, l]) => [e, l / Math.LN10])),
      plot("Trade-off of attacks", "log₁₀ false alarms", "records found", answer.trade.map(([a, p]) => [Math.log10(a), p]),
        pinned && pinned.trade.map(([a, p]) => [Math.log10(a), p]), [0, 1]));
    const pin = make("button", { type: "button" }, pinned ? "Unpin" : "Pin this setting");
    pin.addEventListener("click", () => { pinned = pinned ? null : answer; curves(asked, answer); });
    plots.append(make("p", {}, pin, pinned ? " Dashed: the pinned setting." : ""));
    // as it was typed, where the value is a field's own
    const shown = { ...asked.values };
    for (const field of fields()) if (read(String(value(field))) === shown[field.name]) shown[field.name] = String(value(field)).trim().replace(",", ".");
    const words = current.command.replace("{n}", asked.n).replace(/\{(\w+)\}/g, (_, name) => String(shown[name]));
    const python = current.python.replace("{n}", asked.n).replace(/\{(\w+)\}/g, (_, name) => `"${shown[name]}"`);
    const [flag, method] = mode === "epsilon" ? ["--delta", "epsilon"] : ["--epsilon", "delta"];
    codes.replaceChildren();
    for (const [label, text] of [
      ["Command line", `symdp ${method} ${words} ${flag} ${asked.typed}`],
      ["Python", `${python}.${method}(${asked.typed})`],
      ["Link", location.href],
    ]) {
      const copy = make("button", { type: "button", "aria-label": `Copy ${label}` }, "Copy");
      copy.addEventListener("click", () => {
        const done = () => { copy.textContent = "Copied"; setTimeout(() => { copy.textContent = "Copy"; }, 1500); };
        navigator.clipboard ? navigator.clipboard.writeText(text).then(done, () => {}) : done();
      });
      codes.append(make("div", { class: "code" }, make("span", {}, label), make("code", { tabindex: "0" }, text), copy));
    }
  }

  function plot(title, across, up, points, other, range) {
    const all = other ? points.concat(other) : points;
    if (points.length < 2) return make("p", {}, `${title}: no curve here.`);
    const xs = all.map((p) => p[0]), ys = all.map((p) => p[1]).filter(Number.isFinite);
    const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
    const [y0, y1] = range || [Math.max(Math.min(...ys), Math.max(...ys) - 30), Math.max(...ys)];
    const W = 420, H = 260, L = 52, B = 40, T = 12, R = 12;
    const px = (x) => L + (W - L - R) * (x - x0) / (x1 - x0 || 1);
    const py = (y) => H - B - (H - B - T) * (y - y0) / (y1 - y0 || 1);
    const svg = make("svg:svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}: ${up} against ${across}` });
    const ticks = (a, b) => {
      const raw = (b - a) / 5, ten = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find((s) => s * ten >= raw) * ten;
      const list = [];
      for (let t = Math.ceil(a / step) * step; t <= b + 1e-9 * step; t += step) list.push(Number(t.toPrecision(6)));
      return list;
    };
    for (const t of ticks(x0, x1)) svg.append(make("svg:line", { x1: px(t), x2: px(t), y1: T, y2: H - B, class: "grid" }),
      make("svg:text", { x: px(t), y: H - B + 15, "text-anchor": "middle" }, String(t)));
    for (const t of ticks(y0, y1)) svg.append(make("svg:line", { x1: L, x2: W - R, y1: py(t), y2: py(t), class: "grid" }),
      make("svg:text", { x: L - 6, y: py(t) + 4, "text-anchor": "end" }, String(t)));
    const path = (list, kind) => make("svg:polyline", { class: kind,
      points: list.filter((p) => p[1] >= y0 - 1e-9).map((p) => `${px(p[0]).toFixed(1)},${py(p[1]).toFixed(1)}`).join(" ") });
    if (other) svg.append(path(other, "pinned"));
    svg.append(path(points, "curve"), make("svg:text", { x: (L + W) / 2, y: H - 6, "text-anchor": "middle" }, across),
      make("svg:text", { x: 12, y: H / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${H / 2})` }, up));
    return make("figure", {}, make("figcaption", {}, title), svg);
  }

  function keep() {
    const kept = new URLSearchParams({ m: data.panels.indexOf(current), ask: mode });
    for (const field of fields()) kept.set(field.name, value(field));
    try { history.replaceState(null, "", `#${kept}`); } catch (error) { /* where a page may not */ }
  }
  function restore() {
    const kept = new URLSearchParams(location.hash.slice(1));
    current = data.panels[Number(kept.get("m"))] ?? data.panels[0];
    if (kept.get("ask") === "delta" || kept.get("ask") === "epsilon") mode = kept.get("ask");
    for (const field of current.fields.concat([data.delta, data.epsilon]))
      if (kept.has(field.name)) { state[field.name] = kept.get(field.name); opening = false; }
  }

  restore();
  root.replaceChildren(form, result, plots, codes, formulas);
  build();
  // the first answer is in the page
  const isFirst = data.first && current === data.panels[0] && mode === data.ask
    && fields().every((field) => String(value(field)) === field.value);
  if (!isFirst) ask();
  else {
    keep();
    result.replaceChildren(draw(settings(), data.first));
    curves(settings(), data.first);
  }
})();
