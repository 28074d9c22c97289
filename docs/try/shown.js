/* What a person reads: the privacy loss, simplified as far as sums of powers go, and formulas as MathML. */
const key = (tree) => (tree.op === "num" ? tree.value.join("/") : tree.op === "name" ? tree.name
  : `${tree.op}${tree.name ?? tree.sign ?? ""}(${tree.args.map(key).join(",")})`);
const MOST_TERMS = 60; // of a sum that is multiplied out
const node = (op, ...args) => ({ op, args });
const call = (name, ...args) => ({ op: "call", name, args });
const times = ([a, b], [c, d]) => ratio(a * c, b * d);
const plus = ([a, b], [c, d]) => ratio(a * d + b * c, b * d);
const isZero = ([p]) => p === 0n;

/* A sum is a Map from the key of its powers to { by: exact factor, powers: Map key -> [tree, exact exponent] }. */
const keyOf = (powers) => [...powers].sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, [, e]]) => `${k}^${e.join("/")}`).join("*");
function put(sum, by, powers) {
  const name = keyOf(powers), old = sum.get(name);
  const factor = old ? plus(old.by, by) : by;
  if (isZero(factor)) sum.delete(name); else sum.set(name, { by: factor, powers });
  return sum;
}
const constant = (value) => put(new Map(), value, new Map());
const single = (tree, exponent = [1n, 1n]) => put(new Map(), [1n, 1n], new Map([[key(tree), [tree, exponent]]]));
const added = (...sums) => sums.reduce((all, sum) => { for (const { by, powers } of sum.values()) put(all, by, powers); return all; }, new Map());
const scaled = (sum, by) => { const all = new Map(); for (const one of sum.values()) put(all, times(one.by, by), one.powers); return all; };
function multiplied(a, b) {
  if (a.size * b.size > MOST_TERMS) return single(node("mul", treeOf(a), treeOf(b)));
  const all = new Map();
  for (const one of a.values()) for (const other of b.values()) {
    const powers = new Map(one.powers);
    for (const [k, [tree, e]] of other.powers) {
      const exponent = powers.has(k) ? plus(powers.get(k)[1], e) : e;
      if (isZero(exponent)) powers.delete(k); else powers.set(k, [tree, exponent]);
    }
    put(all, times(one.by, other.by), powers);
  }
  return all;
}
function normal(tree) {
  const parts = () => tree.args.map(normal);
  if (tree.op === "num") return isZero(tree.value) ? new Map() : constant(tree.value);
  if (tree.op === "name") return single(tree);
  if (tree.op === "add") return added(...parts());
  if (tree.op === "mul") return parts().reduce(multiplied);
  if (tree.op === "pow") {
    const [base, exponent] = parts();
    const whole = exponent.size === 1 && [...exponent.values()][0].powers.size === 0 ? [...exponent.values()][0].by : exponent.size ? null : [0n, 1n];
    if (whole && isZero(whole)) return constant([1n, 1n]);
    if (whole && whole[1] === 1n) {
      const n = Number(whole[0]);
      if (base.size === 1) {
        const [{ by, powers }] = base.values();
        const raised = new Map([...powers].map(([k, [t, e]]) => [k, [t, times(e, whole)]]));
        const factor = n < 0 ? ratio(by[1] ** BigInt(-n), by[0] ** BigInt(-n)) : ratio(by[0] ** BigInt(n), by[1] ** BigInt(n));
        if (Math.abs(n) <= 40) return put(new Map(), factor, raised);
      }
      if (n > 0 && n <= 6 && base.size ** n <= MOST_TERMS) return Array(n).fill(base).reduce(multiplied);
      if (base.size) return single(treeOf(base), whole);
    }
    if (whole && base.size) return single(treeOf(base), whole);
    return single(node("pow", treeOf(base), treeOf(exponent)));
  }
  const again = (part) => (["compare", "and", "or", "true"].includes(part.op) ? { ...part, args: part.args.map(again) } : treeOf(normal(part)));
  return single({ ...tree, args: tree.args.map(again) });
}
/* log of a formula, taken apart over products, powers and exponentials */
function logged(tree) {
  if (tree.op === "mul") return added(...tree.args.map(logged));
  if (tree.op === "pow") return multiplied(normal(tree.args[1]), logged(tree.args[0]));
  if (tree.op === "call" && tree.name === "exp") return normal(tree.args[0]);
  if (tree.op === "call" && tree.name === "sech") return scaled(logged(call("cosh", tree.args[0])), [-1n, 1n]);
  if (tree.op === "num" && tree.value[0] === tree.value[1]) return new Map();
  if (tree.op === "num" || tree.op === "name") return single(call("log", tree));
  if (tree.op === "cases") return single({ op: "cases", args: tree.args.map((part, k) => (k % 2 ? part : treeOf(logged(part)))) });
  return single(call("log", treeOf(normal(tree))));
}
const degree = (powers) => [...powers.values()].reduce((sum, [tree, [p, q]]) => sum + (tree.op === "name" ? Number(p) / Number(q) : 0), 0);
function treeOf(sum) {
  const terms = [...sum.values()].sort((a, b) => degree(b.powers) - degree(a.powers) || (keyOf(a.powers) < keyOf(b.powers) ? -1 : 1));
  const written = terms.map(({ by, powers }) => {
    const factors = [...powers.values()].map(([tree, e]) => (e[0] === e[1] ? tree : node("pow", tree, { op: "num", value: e, args: [] })));
    if (by[0] !== by[1] || !factors.length) factors.unshift({ op: "num", value: by, args: [] });
    return factors.length === 1 ? factors[0] : { op: "mul", args: factors };
  });
  return !written.length ? number(0n) : written.length === 1 ? written[0] : { op: "add", args: written };
}
/** ℓ(x) = log f(x − Δ) − log f(x), as a tree; `shift` a tree. */
function lossOf(density, variable, shift) {
  const before = replaced(density, variable, node("add", { op: "name", name: variable, args: [] }, node("mul", MINUS_ONE, shift)));
  return treeOf(added(logged(before), scaled(logged(density), [-1n, 1n])));
}

/* MathML, which browsers show without a script; texts are set, never read as markup. */
const SPACE = "http://www.w3.org/1998/Math/MathML";
const ml = (tag, ...children) => {
  const made = document.createElementNS(SPACE, tag);
  made.append(...children);
  return made;
};
const letters = new Map(GREEK.map((word, i) => [word, String.fromCodePoint(0x3b1 + i)]).concat([["lambda", "λ"], ["pi", "π"]]));
const mi = (word) => {
  const [, head, tail] = /^(.*?)_?(\d*)$/.exec(word);
  const plain = ml("mi", letters.get(head) ?? (head || word));
  return tail && head ? ml("msub", plain, ml("mn", tail)) : plain;
};
const mo = (text) => ml("mo", text);
const row = (...parts) => (parts.length === 1 ? parts[0] : ml("mrow", ...parts));
const fenced = (part) => row(mo("("), part, mo(")"));
const NEEDS = { add: 1, mul: 2 };
const fraction = (value) => (value[1] === 1n ? ml("mn", String(value[0])) : ml("mfrac", ml("mn", String(value[0])), ml("mn", String(value[1]))));
function math(given, least = 0) {
  const tree = flat(given);
  const shown = written(tree);
  return (NEEDS[tree.op] ?? 9) < least || (tree.op === "num" && tree.value[0] < 0n && least) ? fenced(shown) : shown;
}
const negative = (tree) => (tree.op === "num" ? tree.value[0] < 0n : tree.op === "mul" && tree.args.some((part) => part.op === "num" && part.value[0] < 0n));
function opposite(tree) {
  if (tree.op === "num") return { ...tree, value: [-tree.value[0], tree.value[1]] };
  const place = tree.args.findIndex((part) => part.op === "num" && part.value[0] < 0n), args = [...tree.args];
  args[place] = opposite(args[place]);
  if (args[place].value[0] === args[place].value[1]) args.splice(place, 1);
  return args.length === 1 ? args[0] : { ...tree, args };
}
const flat = (tree) => (tree.op !== "mul" ? tree
  : { ...tree, args: tree.args.flatMap((part) => (part.op === "mul" ? flat(part).args : [part])) });
const applied = (word, inside) => {
  const space = ml("mspace");
  space.setAttribute("width", "0.17em");
  return row(space, word, fenced(inside));
};
function written(given) {
  const tree = flat(given);
  switch (tree.op) {
    case "num": return tree.value[0] < 0n ? row(mo("−"), fraction([-tree.value[0], tree.value[1]])) : fraction(tree.value);
    case "name": return tree.name === "E" ? ml("mi", "e") : mi(tree.name);
    case "add": return row(...tree.args.map(flat).flatMap((part, i) => (negative(part) ? [mo("−"), math(opposite(part), 2)] : [...(i ? [mo("+")] : []), math(part, i ? 1 : 0)])));
    case "mul": {
      if (negative(tree)) return row(mo("−"), math(opposite(tree), 2));
      const above = [], below = [];
      const sort = (part) => {
        if (part.op === "mul") part.args.forEach(sort);
        else if (part.op === "num") {
          if (part.value[0] !== 1n) above.unshift({ ...part, value: [part.value[0], 1n] });
          if (part.value[1] !== 1n) below.unshift({ ...part, value: [part.value[1], 1n] });
        } else if (part.op === "pow" && negative(part.args[1])) {
          const e = opposite(part.args[1]);
          below.push(e.op === "num" && e.value[0] === e.value[1] ? part.args[0] : node("pow", part.args[0], e));
        } else above.push(part);
      };
      tree.args.forEach(sort);
      const product = (list, alone) => (list.length ? row(...list.flatMap((part, i) => [...(i && part.op === "num" ? [mo("·")] : []), math(part, list.length > 1 || !alone ? 2 : 0)])) : ml("mn", "1"));
      return below.length ? ml("mfrac", product(above, true), product(below, true)) : product(above, true);
    }
    case "pow": {
      const [base, exponent] = tree.args;
      if (exponent.op === "num" && exponent.value[0] === 1n && exponent.value[1] === 2n) return ml("msqrt", math(base));
      if (negative(exponent)) return written({ op: "mul", args: [tree] });
      const plain = base.op === "name" || (base.op === "num" && base.value[1] === 1n && base.value[0] >= 0n) || (base.op === "call" && base.name === "Abs");
      return ml("msup", plain ? math(base) : fenced(math(base)), math(exponent));
    }
    case "compare": return row(math(tree.args[0]), mo({ "<=": "≤", ">=": "≥" }[tree.sign] ?? tree.sign), math(tree.args[1]));
    case "and": case "or": return row(...tree.args.flatMap((part, i) => [...(i ? [ml("mtext", tree.op === "and" ? " and " : " or ")] : []), math(part)]));
    case "true": return ml("mtext", "otherwise");
    case "cases": {
      const lines = [];
      for (let k = 0; k < tree.args.length; k += 2) {
        const when = tree.args[k + 1];
        lines.push(ml("mtr", ml("mtd", math(tree.args[k])), ml("mtd", when.op === "true" ? ml("mtext", "otherwise") : row(ml("mtext", "if "), math(when)))));
      }
      return row(mo("{"), ml("mtable", ...lines));
    }
  }
  const [first, second] = tree.args;
  if (tree.name === "exp") return ml("msup", ml("mi", "e"), math(first));
  if (tree.name === "Abs") return row(mo("|"), math(first), mo("|"));
  if (tree.name === "gamma") return row(ml("mi", "Γ"), fenced(math(first)));
  if (tree.name === "factorial") return row(math(first, 3), mo("!"));
  if (tree.name === "binomial") return fenced(ml("mfrac", math(first), math(second)));
  if (tree.name === "besseli" || tree.name === "besselk") return row(ml("msub", ml("mi", tree.name === "besseli" ? "I" : "K"), math(first)), fenced(math(second)));
  const word = { Min: "min", Max: "max", loggamma: "log Γ", sign: "sgn" }[tree.name] ?? tree.name;
  return applied(ml("mi", word), row(...tree.args.flatMap((part, i) => [...(i ? [mo(",")] : []), math(part)])));
}
