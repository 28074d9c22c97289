/* The page: fields on the left of a question, formulas at once, numbers from a worker, and what to copy. */
"use strict";
(() => {
  const by = (id) => document.getElementById(id);
  const make = (tag, text, kind) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const EXAMPLES = [
    ["logistic", { density: "exp(-x/s)/(s*(1 + exp(-x/s))**2)", values: { s: "10" }, n: "100" }],
    ["Gaussian, Poisson sampled", { density: "exp(-x**2/(2*sigma**2))", values: { sigma: "1.12" }, rate: "256/60000", n: "14063" }],
    ["between Laplace and Gauss", { density: "exp(-(Abs(x)/s)**(3/2))", values: { s: "8" }, n: "100" }],
    ["Student", { density: "(1 + x**2/(nu*s**2))**(-(nu + 1)/2)", values: { nu: "4", s: "10" }, n: "200" }],
    ["geometric, on integers", { density: "exp(-Abs(x)/b)", values: { b: "20" }, support: "integers", n: "100" }],
  ];
  const START = { density: EXAMPLES[0][1].density, variable: "x", values: { s: "10" }, support: "interval", lower: "-oo", upper: "oo",
    sensitivity: "1", rate: "", n: "100", ask: "epsilon", given: "1e-5" };
  const FIELDS = ["density", "variable", "support", "lower", "upper", "sensitivity", "rate", "n", "ask", "given"];
  let state = { ...START, values: { ...START.values } }, number_ = 0, waiting = null, worker = null, address = null, clock = null;

  const read = () => {
    for (const name of FIELDS) state[name] = by(name).value;
    for (const field of document.querySelectorAll("#values input")) state.values[field.name] = field.value;
  };
  const write = () => {
    for (const name of FIELDS) by(name).value = state[name];
    by("ends").hidden = state.support !== "interval";
    by("given-label").textContent = state.ask === "epsilon" ? "at δ" : "at ε";
  };
  const restore = () => {
    const kept = new URLSearchParams(location.hash.slice(1));
    for (const name of FIELDS) if (kept.has(name)) state[name] = kept.get(name).slice(0, 20000);
    if (![...kept.keys()].length) return;
    state.values = {};
    for (const [name, value] of kept) if (name.startsWith("v.")) state.values[name.slice(2)] = value.slice(0, 200);
  };
  const keep = () => {
    const kept = new URLSearchParams();
    for (const name of FIELDS) if (state[name] !== START[name] || name === "density") kept.set(name, state[name]);
    for (const name of used()) kept.set(`v.${name}`, state.values[name]);
    try { history.replaceState(null, "", `#${kept}`); } catch (error) { /* where a page may not */ }
  };
  const used = () => [...document.querySelectorAll("#values input")].map((field) => field.name);

  /* Each free name of the formulas has a field. */
  function fieldsFor(names) {
    if (used().join() === names.join()) return;
    by("values").replaceChildren(...names.map((name) => {
      const label = make("label", `${name} = `), field = make("input");
      Object.assign(field, { name, value: state.values[name] ??= "1", autocomplete: "off", spellcheck: false, inputMode: "decimal" });
      field.setAttribute("aria-label", name);
      label.append(field);
      return label;
    }));
  }
  function parsed() {
    const tree = parseFormula(state.density, null);
    const names = namesOf(tree);
    names.delete(state.variable);
    if (state.support === "interval") for (const end of [state.lower, state.upper])
      if (!/^\s*[+-]?\s*oo\s*$/.test(end)) for (const name of namesOf(parseFormula(end, null))) names.add(name);
    if (names.size > 12) refuse("a density with more than 12 parameters is for a file: symdp reads it");
    if (!namesOf(tree).has(state.variable) && state.support !== "interval") refuse(`the density does not depend on ${state.variable}`);
    return { tree, names: [...names].sort() };
  }
  const shiftTree = () => {
    const value = exactNumber(state.sensitivity, "sensitivity");
    return (sign) => ({ op: "num", value: [BigInt(sign) * value[0], value[1]], args: [] });
  };
  /* the simplified loss as text for the worker: trees hold exact integers, which messages carry */
  const losses = (tree) => {
    const shift = shiftTree();
    return { up: lossOf(tree, state.variable, shift(1)), down: lossOf(tree, state.variable, shift(-1)) };
  };

  const set = (id, ...parts) => by(id).replaceChildren(...parts);
  const display = (...parts) => {
    const made = ml("math", ...parts);
    made.setAttribute("display", "block");
    return made;
  };
  function formulas(tree, loss) {
    const x = () => mi(state.variable), name = (word) => row(ml("mi", word), fenced(x()));
    set("formula-density", display(row(name("f"), mo("∝"), math(tree))));
    const sampled = state.rate.trim() && state.rate.trim() !== "1";
    const own = math(loss.up), q = () => fraction(exactNumber(state.rate, "rate"));
    set("formula-loss", display(row(name("ℓ"), mo("="), ml("mi", "log"), ml("mfrac",
      row(ml("mi", "f"), fenced(row(x(), mo("−"), math(shiftTree()(1))))), name("f")), mo("="), own)));
    if (sampled) by("formula-loss").append(display(row(ml("msub", ml("mi", "ℓ"), ml("mi", "q")), fenced(x()), mo("="), ml("mi", "log"),
      fenced(row(ml("mn", "1"), mo("−"), ml("mi", "q"), mo("+"), ml("mi", "q"), ml("msup", ml("mi", "e"), name("ℓ")))), mo(","), ml("mi", "q"), mo("="), q())));
    const ends = state.support === "interval" ? [state.lower, state.upper] : [state.support === "naturals" ? "0" : "-oo", "oo"];
    const end = (text) => (/oo/.test(text) ? (text.includes("-") ? row(mo("−"), ml("mi", "∞")) : ml("mi", "∞")) : math(parseFormula(text, null)));
    const sum = ml(state.support === "interval" ? "msubsup" : "munderover", mo(state.support === "interval" ? "∫" : "∑"),
      state.support === "interval" ? end(ends[0]) : row(x(), mo("="), end(ends[0])), end(ends[1]));
    const l = sampled ? row(ml("msub", ml("mi", "ℓ"), ml("mi", "q")), fenced(x())) : name("ℓ");
    set("formula-cgf", display(row(ml("mi", "K"), fenced(ml("mi", "z")), mo("="), ml("mi", "log"), sum,
      name("f"), ml("msup", ml("mi", "e"), row(fenced(row(ml("mn", "1"), mo("+"), ml("mi", "z"))), l)),
      ...(state.support === "interval" ? [ml("mi", "d"), x()] : []))));
    set("formula-delta", display(row(ml("mi", "δ"), fenced(ml("mi", "ε")), mo("="), ml("mfrac", ml("mn", "1"), row(ml("mn", "2"), ml("mi", "π"), ml("mi", "i"))),
      ml("munder", mo("∫"), row(ml("mi", "Re"), ml("mi", "z"), mo("="), ml("mi", "t"))),
      ml("mfrac", ml("msup", ml("mi", "e"), row(ml("mi", "n"), ml("mi", "K"), fenced(ml("mi", "z")), mo("−"), ml("mi", "ε"), ml("mi", "z"))),
        row(ml("mi", "z"), fenced(row(ml("mi", "z"), mo("+"), ml("mn", "1"))))), ml("mi", "d"), ml("mi", "z"))));
  }

  /* What to copy. Every text that goes into TOML or Python has passed the parser, or is quoted. */
  const text = (word) => JSON.stringify(word);
  function toml(names) {
    const ends = state.support === "interval" ? `[${[state.lower, state.upper].map((end) => text(end.trim())).join(", ")}]` : text(state.support);
    const value = (name) => exactNumber(state.values[name], name);
    const domain = (name) => (value(name)[0] > 0n ? "positive" : "real");
    return [
      'name = "mine"', `variable = ${text(state.variable)}`, `support = ${ends}`, "",
      ...(names.length ? ["[parameters]", ...names.map((name) => `${name} = "${domain(name)}"`), ""] : []),
      "[noise]", `density = ${text(state.density.trim().replace(/\s+/g, " "))}`, "normalize = true",
      `sensitivity = ${text(state.sensitivity.trim())}`, "",
    ].join("\n");
  }
  function copies(names) {
    const values = names.map((name) => [name, state.values[name].trim().replace(/\s+/g, "")]);
    const rate = state.rate.trim().replace(/\s+/g, ""), given = state.given.trim();
    const [flag, method] = state.ask === "epsilon" ? ["--delta", "epsilon"] : ["--epsilon", "delta"];
    const file = toml(names);
    const words = [...values.map(([name, value]) => `${name}=${value}`), "-n", state.n.trim(),
      ...(rate ? ["--sampling", "poisson", "--rate", rate] : []), flag, given];
    const bound = values.length ? `(${values.map(([name, value]) => `${name}="${value}"`).join(", ")})` : "";
    const sampled = rate ? `.subsample("poisson", "${rate}")` : "";
    const python = `import symdp\n\nnoise = symdp.Mechanism.from_toml("""\n${file.replaceAll("\\", "\\\\")}""")${bound}${sampled}\n`
      + `print(symdp.compose(noise, ${state.n.trim()}).${method}(${text(given)}))\n`;
    const command = `symdp ${method} mine.toml ${words.join(" ")}`;
    by("codes").replaceChildren(...[["mine.toml", file], ["Command line", command], ["Python", python], ["Link", location.href]].map(([label, shown]) => {
      const box = make("div", undefined, "code"), copy = make("button", "Copy"), pre = make("pre", shown);
      copy.type = "button";
      copy.setAttribute("aria-label", `Copy ${label}`);
      pre.tabIndex = 0;
      pre.dataset.of = label;
      copy.addEventListener("click", () => {
        const done = () => { copy.textContent = "Copied"; setTimeout(() => { copy.textContent = "Copy"; }, 1500); };
        if (navigator.clipboard) navigator.clipboard.writeText(shown).then(done, () => {});
      });
      box.append(make("span", label), copy, pre);
      return box;
    }));
  }

  const digits = (x, n = 4) => (x === 0 ? "0" : Math.abs(x) < 1e-3 || Math.abs(x) >= 1e6 ? x.toExponential(n - 1).replace("e+", "e") : String(Number(x.toPrecision(n))));
  // what is promised is shown rounded up, the lower end rounded down
  const outward = (x, s, n) => {
    if (!(x > 0) || !Number.isFinite(x)) return digits(x, n);
    const unit = 10 ** (Math.floor(Math.log10(x)) - n + 1), near = Number(x.toPrecision(n));
    return digits(s * (near - x) < 0 ? near + s * unit : near, n);
  };
  const ofLog = (l, s, n) => {
    if (l === -Infinity) return "0";
    if (l > -690) return outward(Math.exp(l), s, n);
    const tens = Math.floor(l / Math.LN10), head = Math.exp(l - tens * Math.LN10);
    return `${outward(head, s, n)}e${tens}`;
  };
  function told(found) {
    const asks = state.ask === "epsilon", show = asks ? outward : ofLog;
    const box = by("answer");
    box.className = "";
    if (found.several) {
      box.replaceChildren(make("p", found.shifts, "alarm"),
        make("p", "This page has no such pair, and no number: copy the file and the command below."));
      return;
    }
    const n = state.n.trim(), big = make("p", `${asks ? "ε" : "δ"} ≤ ${show(found.upper, 1, 5)}`, "big");
    box.dataset.value = found.value; box.dataset.lower = found.lower; box.dataset.upper = found.upper;
    box.replaceChildren(big,
      make("p", `An estimate in floating point, between ${show(found.lower, -1, 9)} and ${show(found.upper, 1, 9)}: how far rounding and the quadrature's rest may reach, `
        + `not a proof. ${n} ${n === "1" ? "step" : "steps"}, ${asks ? "δ" : "ε"} = ${state.given.trim()}, the larger of both directions`
        + `${state.rate.trim() ? " and both signs" : ""}, a record that moves the output by at most ${state.sensitivity.trim()}.`),
      ...(state.rate.trim() ? [] : [make("p", found.shifts, "quiet")]),
      make("p", Math.abs(found.logMass) < 1e-9 ? "The density integrates to 1, as the quadrature sees it."
        : `What you typed ${state.support === "interval" ? "integrates" : "sums"} to ${digits(found.mass, 10)}, and is divided by that.`, "quiet"));
  }

  function plot(title, across, up, given, logX, logY) {
    const points = logY ? given.filter((p) => p[1] > 0).map(([x, y]) => [x, Math.log10(y)]) : given;
    const figure = make("figure");
    figure.append(make("figcaption", title));
    if (points.length < 2) { figure.append(make("p", "No curve here.", "quiet")); return figure; }
    const NS = "http://www.w3.org/2000/svg";
    const draw = (tag, attributes, words) => {
      const made = document.createElementNS(NS, tag);
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      if (words !== undefined) made.textContent = words;
      return made;
    };
    const W = 420, H = 250, L = 54, B = 40, T = 10, R = 20;
    const at = (x) => (logX ? Math.log10(x) : x);
    const xs = points.map((p) => at(p[0])), ys = points.map((p) => p[1]);
    const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const px = (x) => L + (W - L - R) * (x - x0) / (x1 - x0 || 1), py = (y) => H - B - (H - B - T) * (y - y0) / (y1 - y0 || 1);
    const svg = draw("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}: ${up} against ${across}` });
    const ticks = (a, b) => {
      const raw = (b - a) / 5 || 1, ten = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find((s) => s * ten >= raw) * ten, list = [];
      for (let t = Math.ceil(a / step) * step; t <= b + 1e-9 * step; t += step) list.push(Number(t.toPrecision(6)));
      return list;
    };
    const whole = (list) => (logX ? list.filter((t) => t === Math.floor(t)) : list);
    for (const t of whole(ticks(x0, x1))) svg.append(draw("line", { x1: px(t), x2: px(t), y1: T, y2: H - B, class: "grid" }),
      draw("text", { x: px(t), y: H - B + 15, "text-anchor": "middle" }, logX ? digits(10 ** t, 1) : String(t)));
    for (const t of ticks(y0, y1)) svg.append(draw("line", { x1: L, x2: W - R, y1: py(t), y2: py(t), class: "grid" }),
      draw("text", { x: L - 6, y: py(t) + 4, "text-anchor": "end" }, logY ? digits(10 ** t, 2) : String(t)));
    svg.append(draw("polyline", { class: "curve", points: points.map((p) => `${px(at(p[0])).toFixed(1)},${py(p[1]).toFixed(1)}`).join(" ") }),
      draw("text", { x: (L + W) / 2, y: H - 6, "text-anchor": "middle" }, across),
      draw("text", { x: 12, y: H / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${H / 2})` }, up));
    figure.append(svg);
    return figure;
  }
  function curves({ points, trade, steps }, answer) {
    const list = [plot("δ(ε)", "ε", "log₁₀ δ", points.map(([e, l]) => [e, l / Math.LN10]).filter((p) => p[1] > -30)),
      plot("Trade-off: what an attack can reach", "false positives", "true positives", trade, true)];
    const all = answer && !answer.several && state.ask === "epsilon" ? [...steps, [Number(state.n), answer.value]].sort((a, b) => a[0] - b[0]) : [];
    if (all.length > 1) list.splice(1, 0, plot("ε(n) at this δ", "n, steps", "ε", all, true, true));
    by("plots").replaceChildren(...list);
    by("plots").classList.remove("stale");
    by("answer").dataset.ready = "yes";
  }

  function refused(error) {
    clearTimeout(clock);
    by("answer").className = "";
    by("answer").dataset.ready = "yes";
    for (const name of ["value", "lower", "upper"]) delete by("answer").dataset[name];
    by("answer").replaceChildren(make("p", error.message, "alarm"),
      ...(error.input ? [] : [make("p", "The command below answers.")]));
    by("plots").replaceChildren();
  }
  function stop() { if (worker) worker.terminate(); worker = null; clearTimeout(clock); }
  // while a question takes longer than a moment no older answer stands there
  function computing() {
    const box = by("answer");
    box.className = "";
    for (const name of ["value", "lower", "upper"]) delete box.dataset[name];
    box.replaceChildren(make("p", "Computing …", "quiet"));
    by("plots").replaceChildren();
  }
  function go() {
    delete by("answer").dataset.ready;
    read();
    write();
    clearTimeout(waiting);
    stop();
    let what;
    try {
      what = parsed();
      fieldsFor(what.names);
      read();
      for (const name of what.names) exactNumber(state.values[name], name);
      what.loss = losses(what.tree);
      if (state.rate.trim()) exactNumber(state.rate, "rate");
      exactNumber(state.given, state.ask === "epsilon" ? "delta" : "epsilon");
      if (!/^\s*\d+\s*$/.test(state.n)) refuse("n must be a whole number from 1 to 1e12");
      formulas(what.tree, what.loss);
      keep();
      copies(what.names);
    } catch (error) {
      if (error instanceof RangeError) error.input = true;
      refused(error);
      by("codes").replaceChildren();
      return;
    }
    if (by("answer").dataset.value) {
      by("answer").className = "stale";
      clock = setTimeout(computing, 550);
    } else computing();
    by("plots").classList.add("stale");
    const id = ++number_;
    waiting = setTimeout(() => {
      address ??= URL.createObjectURL(new Blob([`${by("program").textContent}\n${by("serve").textContent}`], { type: "text/javascript" }));
      worker = new Worker(address);
      let answer = null;
      worker.onmessage = ({ data }) => {
        if (data.id !== id) return;
        clearTimeout(clock);
        if (data.error) refused({ message: data.error, input: data.input });
        else if (data.first) { told(data); answer = data; if (data.several) { by("plots").replaceChildren(); by("answer").dataset.ready = "yes"; } }
        else curves(data, answer);
      };
      worker.onerror = (event) => refused({ message: `the page could not compute: ${event.message}` });
      const { density, variable, support, lower, upper, sensitivity, rate, n, ask, given } = state;
      const values = Object.fromEntries(what.names.map((name) => [name, state.values[name]]));
      worker.postMessage({ id, asked: { density, variable, support, lower, upper, sensitivity, rate, n: n.trim(), ask, given, values, loss: what.loss } });
    }, 250);
  }

  for (const [label, example] of EXAMPLES) {
    const button = make("button", label);
    button.type = "button";
    button.addEventListener("click", () => {
      state = { ...START, ...example, values: { ...example.values } };
      by("values").replaceChildren();
      write();
      go();
    });
    by("examples").append(button);
  }
  by("form").addEventListener("submit", (event) => event.preventDefault());
  by("form").addEventListener("input", (event) => {
    if (event.target.id === "ask") { read(); by("given").value = state.ask === "epsilon" ? "1e-5" : "1"; }
    go();
  });
  restore();
  write();
  go();
})();
