/* A formula as a function of doubles, each value with a bound of its own rounding: after every call `wrong`
   holds it (Wilkinson's running error analysis). Logarithms are taken without leaving the logarithmic scale. */
const UNIT = 2 ** -53; // of rounding
let wrong = 0, sign_ = 1;
const told = (value, error) => { wrong = error; return value; };
const logGamma = (x) => {
  if (x > 0) return told(lgamma(x), 8 * UNIT * (1 + absolute(lgamma(x)) + x * absolute(log(x))));
  return NaN;
};
/* The integrals of the Bessel functions; both integrands are analytic, so that equal steps are enough. */
function logBesselK(order, x) {
  const far = Math.acosh(1 + (750 + 40 * absolute(order)) / x), count = 4000;
  let top = -INFINITY, sum = 0;
  const at = (t) => -x * 2 * sinh(t / 2) ** 2 + absolute(order) * t + log1p(exp(-2 * absolute(order) * t)) - Math.LN2;
  for (let k = 0; k <= count; k++) top = maximum(top, at(far * k / count));
  for (let k = 0; k <= count; k++) sum += (k && k < count ? 1 : 0.5) * exp(at(far * k / count) - top);
  return top - x + log(sum * far / count);
}
function logBesselI(order, x) {
  if (order !== floor(order)) return refuse("besseli of an order that is no whole number is not in this page; the package has it");
  let sum = 0;
  const count = 200 + 4 * ceil(sqrt(x)) + 4 * absolute(order);
  for (let k = 0; k < 2 * count; k++) sum += exp(x * (cos(PI * k / count) - 1)) * cos(order * PI * k / count);
  return x + log(sum / (2 * count));
}
/* name: [value, its slope's size] */
const SLOPES = {
  sin: [sin, (a) => absolute(cos(a))], cos: [cos, (a) => absolute(sin(a))], tan: [tan, (a) => 1 + tan(a) ** 2],
  asin: [asin, (a) => 1 / sqrt(1 - a * a)], acos: [acos, (a) => 1 / sqrt(1 - a * a)], atan: [atan, (a) => 1 / (1 + a * a)],
  sinh: [sinh, Math.cosh], cosh: [Math.cosh, (a) => absolute(sinh(a))], tanh: [Math.tanh, (a) => 1 / Math.cosh(a) ** 2],
  asinh: [asinh, (a) => 1 / sqrt(1 + a * a)], acosh: [Math.acosh, (a) => 1 / sqrt(a * a - 1)],
  atanh: [Math.atanh, (a) => 1 / absolute(1 - a * a)],
  sech: [(a) => 1 / Math.cosh(a), (a) => absolute(Math.tanh(a)) / Math.cosh(a)],
  csch: [(a) => 1 / sinh(a), (a) => Math.cosh(a) / sinh(a) ** 2], coth: [(a) => 1 / Math.tanh(a), (a) => 1 / sinh(a) ** 2],
  erf: [erf, (a) => 1.13 * exp(-a * a)], erfc: [erfc, (a) => 1.13 * exp(-a * a)],
  log: [log, (a) => 1 / absolute(a)], exp: [exp, exp],
};

/** A function of the variable that returns a value; `given`: doubles by name, the variable left out. */
function valued(tree, variable, given) {
  const parts = tree.args.map((part) => valued(part, variable, given));
  switch (tree.op) {
    case "num": { const v = toDouble(tree.value), e = tree.value[1] === 1n ? 0 : UNIT * absolute(v); return () => told(v, e); }
    case "name": {
      if (tree.name === variable) return (x, dx) => told(x, dx);
      const v = CONSTANTS.get(tree.name) ?? given[tree.name], e = UNIT * absolute(v);
      return () => told(v, e);
    }
    case "add": return (x, dx) => {
      let sum = 0, error = 0;
      for (const part of parts) { sum += part(x, dx); error += wrong + UNIT * absolute(sum); }
      return told(sum, error);
    };
    case "mul": return (x, dx) => {
      let product = 1, error = 0;
      for (const part of parts) {
        const v = part(x, dx);
        error = error * absolute(v) + absolute(product) * wrong + UNIT * absolute(product * v);
        product *= v;
      }
      return told(product, error);
    };
    case "pow": {
      const [base, exponent] = parts;
      const whole = tree.args[1].op === "num" && tree.args[1].value[1] === 1n;
      return (x, dx) => {
        const e = exponent(x, dx), de = wrong, b = base(x, dx), db = wrong;
        const v = b < 0 && !whole && e !== floor(e) ? NaN : b ** e;
        const grown = de ? de * absolute(log(absolute(b))) : 0;
        return told(v, absolute(v) * (absolute(e) * (b ? db / absolute(b) : 0) + grown + 4 * UNIT));
      };
    }
    case "cases": case "call": break;
    case "true": return () => 1;
    case "and": return (x, dx) => parts.every((part) => part(x, dx)) ? 1 : 0;
    case "or": return (x, dx) => parts.some((part) => part(x, dx)) ? 1 : 0;
    case "compare": {
      const [a, b] = parts;
      return { "<": (x, dx) => a(x, dx) < b(x, dx), "<=": (x, dx) => a(x, dx) <= b(x, dx),
        ">": (x, dx) => a(x, dx) > b(x, dx), ">=": (x, dx) => a(x, dx) >= b(x, dx) }[tree.sign];
    }
  }
  if (tree.op === "cases") return (x, dx) => {
    for (let k = 0; k < parts.length; k += 2) if (parts[k + 1](x, dx)) return parts[k](x, dx);
    return NaN;
  };
  const [first, second] = parts;
  switch (tree.name) {
    case "Abs": return (x, dx) => absolute(first(x, dx));
    case "sign": return (x, dx) => told(sign(first(x, dx)), 0);
    case "Min": return (x, dx) => extreme(parts, x, dx, (a, b) => a < b);
    case "Max": return (x, dx) => extreme(parts, x, dx, (a, b) => a > b);
    case "gamma": case "loggamma": case "factorial": case "binomial": case "besseli": case "besselk": {
      const inLog = logarithm(tree.name === "loggamma" ? { ...tree, name: "gamma" } : tree, variable, given);
      if (tree.name === "loggamma") return inLog;
      return (x, dx) => { const v = exp(inLog(x, dx)); return told(v, v * (wrong + UNIT)); };
    }
  }
  const [value, slope] = SLOPES[tree.name];
  return (x, dx) => {
    const a = first(x, dx), e = wrong, v = value(a);
    return told(v, (e ? slope(a) * e : 0) + 2 * UNIT * absolute(v) + (value === erf || value === erfc ? 4 * UNIT * absolute(v) : 0));
  };
}
function extreme(parts, x, dx, before) {
  let best = parts[0](x, dx), error = wrong;
  for (const part of parts.slice(1)) {
    const v = part(x, dx);
    error = maximum(error, wrong);
    if (before(v, best)) best = v;
  }
  return told(best, error);
}

/* The arguments of erf(u) − erf(v), which cancels far out; null where a sum is no such difference. */
function erfDifference(tree) {
  const erfs = { "1": [], "-1": [] };
  for (const part of tree.args) {
    const [factor, inner] = part.op === "mul" && part.args.length === 2 && part.args[0].op === "num" ? part.args : [null, part];
    const [above, below] = factor ? factor.value : [1n, 1n], kind = erfs[String(above)];
    if (!kind || below !== 1n || inner.op !== "call" || inner.name !== "erf") return null;
    kind.push(inner.args[0]);
  }
  return tree.args.length === 2 && erfs["1"].length === 1 ? [erfs["1"][0], erfs["-1"][0]] : null;
}
function logErfDifference([above, below], variable, given) {
  const u = valued(above, variable, given), v = valued(below, variable, given);
  return (x, dx) => {
    const a = u(x, dx), ea = wrong, b = v(x, dx), eb = wrong;
    const middle = 0.5 * (a + b), half = 0.5 * absolute(a - b), error = 0.5 * (ea + eb) + UNIT * (absolute(a) + absolute(b));
    sign_ = sign(a - b);
    if (half === 0) return told(-INFINITY, 0);
    const value = log_erf_difference(middle, half);
    return told(value, error * (2 * absolute(middle) + 2 + 1 / half) + 8 * UNIT * (1 + absolute(value)));
  };
}

/** A function that returns log |value|, and sets `sign_` to the value's sign. */
function logarithm(tree, variable, given) {
  const plain = valued.bind(null), deep = (part) => logarithm(part, variable, given);
  const value = ["call"].includes(tree.op) && ["gamma", "loggamma", "factorial", "binomial", "besseli", "besselk"].includes(tree.name)
    ? null : plain(tree, variable, given);
  const ordinary = (x, dx) => {
    const v = value(x, dx);
    sign_ = v < 0 ? -1 : 1;
    return told(log(absolute(v)), v ? wrong / absolute(v) + UNIT * absolute(log(absolute(v))) : 0);
  };
  if (tree.op === "mul") {
    const parts = tree.args.map(deep);
    return (x, dx) => {
      let sum = 0, error = 0, s = 1;
      for (const part of parts) { sum += part(x, dx); error += wrong + UNIT * absolute(sum); s *= sign_; }
      sign_ = s;
      return told(sum, error);
    };
  }
  if (tree.op === "pow") {
    const base = deep(tree.args[0]), exponent = valued(tree.args[1], variable, given);
    return (x, dx) => {
      const e = exponent(x, dx), de = wrong, b = base(x, dx), db = wrong;
      if (sign_ < 0) { if (e !== floor(e)) return NaN; sign_ = e % 2 ? -1 : 1; }
      if (e === 0) return told(0, 0);
      return told(e * b, absolute(e) * db + (de ? de * absolute(b) : 0) + UNIT * absolute(e * b));
    };
  }
  if (tree.op === "add") {
    const difference = erfDifference(tree);
    if (difference) return logErfDifference(difference, variable, given);
    const parts = tree.args.map(deep);
    return (x, dx) => {
      const v = value(x, dx);
      if (absolute(v) > 1e-280 && absolute(v) < 1e290) {
        sign_ = v < 0 ? -1 : 1;
        return told(log(absolute(v)), wrong / absolute(v) + UNIT * absolute(log(absolute(v))));
      }
      let top = -INFINITY, sum = 0, error = 0;
      const found = parts.map((part) => { const l = part(x, dx); top = maximum(top, l); return [l, sign_, wrong]; });
      if (!isfinite(top)) { sign_ = 1; return told(top, 0); }
      for (const [l, s, e] of found) { sum += s * exp(l - top); if (l > -INFINITY) error += exp(l - top) * (e + 2 * UNIT); }
      sign_ = sum < 0 ? -1 : 1;
      return told(top + log(absolute(sum)), error / absolute(sum) + 2 * UNIT * (absolute(top) + 1));
    };
  }
  if (tree.op === "cases") {
    const parts = tree.args.map((part, k) => (k % 2 ? valued(part, variable, given) : deep(part)));
    return (x, dx) => {
      for (let k = 0; k < parts.length; k += 2) if (parts[k + 1](x, dx)) return parts[k](x, dx);
      return NaN;
    };
  }
  if (tree.op !== "call") return ordinary;
  const parts = tree.args.map((part) => valued(part, variable, given));
  const [first, second] = parts;
  const positive = (inner) => (x, dx) => { const l = inner(x, dx); sign_ = 1; return l; };
  switch (tree.name) {
    case "exp": return positive(first);
    case "Abs": return positive(deep(tree.args[0]));
    case "cosh": case "sech": {
      const s = tree.name === "cosh" ? 1 : -1;
      return positive((x, dx) => {
        const a = absolute(first(x, dx)), v = a + log1p(exp(-2 * a)) - Math.LN2;
        return told(s * v, wrong + 3 * UNIT * (1 + a));
      });
    }
    case "erfc": return positive((x, dx) => {
      const a = first(x, dx), v = log_erfc(a);
      return told(v, 2 * (absolute(a) + 2) * wrong + 8 * UNIT * (1 + absolute(v)));
    });
    case "gamma": case "factorial": {
      const more = tree.name === "factorial" ? 1 : 0;
      return positive((x, dx) => {
        const a = first(x, dx) + more, e = wrong, v = logGamma(a);
        return told(v, wrong + e * (absolute(log(a)) + 1 / a));
      });
    }
    case "binomial": return positive((x, dx) => {
      const a = first(x, dx), b = second(x, dx), all = logGamma(a + 1), error = wrong, one = logGamma(b + 1), other = logGamma(a - b + 1);
      return told(all - one - other, 3 * (error + 8 * UNIT * (1 + absolute(all))));
    });
    case "besseli": case "besselk": {
      const own = tree.name === "besselk" ? logBesselK : logBesselI;
      return positive((x, dx) => {
        const order = first(x, dx), a = second(x, dx), e = wrong;
        if (!(a > 0)) return NaN;
        return told(own(order, a), e * (2 + (1 + absolute(order)) / a) + 1e-14);
      });
    }
  }
  return ordinary;
}

/** Places where a formula may bend or jump: where what is inside Abs, sign, Min, Max or a condition changes sign. */
function bends(tree, variable, given, low, high, found = []) {
  const zero = (a, b) => {
    const difference = b ? { op: "add", args: [a, { op: "mul", args: [MINUS_ONE, b] }] } : a;
    if (namesOf(difference).has(variable)) found.push(...roots(difference, variable, given, low, high));
  };
  if (tree.op === "call" && ["Abs", "sign"].includes(tree.name)) zero(tree.args[0]);
  if (tree.op === "call" && ["Min", "Max"].includes(tree.name))
    tree.args.forEach((a, i) => tree.args.slice(i + 1).forEach((b) => zero(a, b)));
  if (tree.op === "compare") zero(...tree.args);
  tree.args.forEach((part) => bends(part, variable, given, low, high, found));
  return found;
}
function roots(tree, variable, given, low, high) {
  const f = valued(tree, variable, given), found = [];
  // a straight line: its root is a quotient
  const zero = f(0, 0), one = f(1, 0), two = f(2, 0), far = f(-5, 0);
  const bent = absolute(two - 2 * one + zero) + absolute(far + 5 * one - 6 * zero);
  if (bent <= 1e-14 * (absolute(zero) + absolute(one)) && one !== zero) {
    const root = -zero / (one - zero);
    const near = Number(root.toPrecision(15)); // 0.1 + 0.2 is 0.3
    return [absolute(f(near, 0)) <= absolute(f(root, 0)) ? near : root].filter((x) => x >= low && x <= high);
  }
  const places = spread(low, high);
  for (let i = 0; i < places.length; i++) {
    const v = f(places[i], 0);
    if (v === 0) { found.push(places[i]); continue; }
    if (!i) continue;
    let [a, b] = [places[i - 1], places[i]];
    const s = sign(f(a, 0));
    if (!(s * v < 0)) continue;
    for (let k = 0; k < 200 && b - a > 2 * UNIT * (absolute(a) + absolute(b)); k++) {
      const m = 0.5 * (a + b);
      if (sign(f(m, 0)) === s) a = m; else b = m;
    }
    found.push(b);
  }
  return found;
}
/** Places from one end to the other: equal steps between finite ends, and at every scale about an end or zero. */
function spread(low, high, count = 2000) {
  const found = new Set();
  const anchors = [low, high].filter(isfinite);
  if (anchors.length < 2) anchors.push(CENTER);
  for (const anchor of anchors)
    for (let k = -30 * 16; k <= 40 * 16; k++)
      for (const s of [-1, 1]) found.add(anchor + s * SCALE * 2 ** (k / 16));
  if (isfinite(low + high)) for (let k = 0; k <= count; k++) found.add(low + (high - low) * k / count);
  else for (let k = -count; k <= count; k++) found.add(CENTER + SCALE * k / 16);
  for (const anchor of anchors) found.add(anchor);
  return Float64Array.from(found).filter((x) => x >= low && x <= high).sort();
}
