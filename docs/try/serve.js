/* The worker: an answer first, then its curves. */
onmessage = (event) => {
  const { id, asked } = event.data;
  try {
    const found = answered(asked), { laws } = found;
    delete found.laws;
    const upper = asked.ask === "epsilon" ? found.upper : found.given;
    postMessage({ id, ...found, first: true });
    if (found.several) return;
    for (const { law } of laws) law.strict = 0; // a curve may lose digits next to its end
    const end = Math.max(upper * 1.5, 0.2), start = Date.now(), points = [];
    for (const [first, step] of [[0, 24], [12, 24], [6, 12], [3, 6], [1, 3], [2, 3]])
      for (let i = first; i <= 24 && Date.now() - start < 1500; i += step) {
        const at = (end * i) / 24;
        if (points.some((p) => p[0] === at)) continue;
        try { points.push([at, logDelta(laws, at)]); } catch (error) { /* a gap in the curve */ }
      }
    points.sort((p, q) => p[0] - q[0]);
    const power = (a, e, l) => Math.min(1, Math.exp(l) + a * Math.exp(e), 1 - Math.exp(-e) * (1 - Math.exp(l) - a));
    const trade = [];
    for (let i = 0; i <= 48; i++) {
      const a = 10 ** (-4 + i / 12);
      trade.push([a, Math.min(...points.map(([e, l]) => power(a, e, l)))]);
    }
    const steps = [], { law } = laws[0];
    for (const n of [100, 1000, 10000, 10, 1, 300, 3000, 30, 3].filter((n) => n !== law.count)) {
      if (Date.now() - start > 3000 || asked.ask !== "epsilon") break;
      try {
        const each = laws.map((one) => ask({ model: one.model, law: coarser(law_of(one.model.c, one.law.side, n)) }, (own) => epsilon_of(own, Math.log(found.given))));
        steps.push([n, Math.max(...each)]);
      } catch (error) { /* refused at this n */ }
    }
    postMessage({ id, points: points.filter((p) => p[1] > -Infinity), trade, steps });
  } catch (error) {
    postMessage({ id, error: error.message, input: error instanceof RangeError && !/call stack/.test(error.message) });
  }
};
