/* The grammar of formulas, as symdp/model/reading/parser.py has it: text becomes a tree, and is never run.
   A node is { op, args } with op num, name, add, mul, pow, call, cases, compare, and, or, true. */
const LONGEST_TEXT = 20000, MOST_TOKENS = 5000, DEEPEST_BRACKETS = 100, MOST_BRANCHES = 100, MOST_DIGITS = 1000;
const ONE_ARGUMENT = ("exp log sqrt Abs sign erf erfc gamma loggamma factorial sin cos tan asin acos atan"
  + " sinh cosh tanh asinh acosh atanh sech csch coth").split(" ");
const FUNCTIONS = new Map([
  ...ONE_ARGUMENT.map((name) => [name, [1, 1]]),
  ...["binomial", "besseli", "besselk", "beta"].map((name) => [name, [2, 2]]),
  ...["Min", "Max"].map((name) => [name, [2, 8]]),
]);
const BRANCHING = new Set(["Min", "Max", "Abs", "sign"]);
const ALIASES = new Map([["ln", "log"], ["abs", "Abs"], ["min", "Min"], ["max", "Max"]]);
const CONSTANTS = new Map([["pi", Math.PI], ["E", Math.E]]);
const CASES = "write Piecewise((value, condition), (other, True))";
const CASE_WORDS = new Set(["if", "else", "elif", "for", "in"]);
const INSTEAD = new Map(Object.entries({
  Rational: "write 1/3, which is exact",
  Heaviside: "write Piecewise((1, x > 0), (0, True)) for a variable x",
  where: CASES,
  pow: "write x**y", exp2: "write 2**x", expm1: "write exp(x) - 1", log1p: "write log(1 + x)",
  log2: "write log(x)/log(2)", log10: "write log(x)/log(10)",
}));
const COMPARISONS = new Set(["<", "<=", ">", ">="]);
const COMPARISON = 2, SUM = 3, POWER = 5; // a product binds at 4
const BINDING = new Map([["|", 0], ["&", 1], ["<", 2], ["<=", 2], [">", 2], [">=", 2], ["+", 3], ["-", 3],
  ["*", 4], ["/", 4], ["**", 5]]);
const CODE = new Set(("eval exec print open False None as assert async await break class continue def del elif else"
  + " except finally for from global if import in is lambda nonlocal not pass raise return try while with yield").split(" "));
const LIBRARIES = new Set(["np", "numpy", "math", "sp", "sympy", "mp", "mpmath", "scipy", "torch", "jnp"]);
const HINTS = new Map([
  ["^", "write ** for a power"], ["=", "compare with <, <=, > or >="], [".", "a formula has no attributes"],
  ["!", "write factorial(n)"],
  ...[..."[]{}"].map((c) => [c, "use round parentheses"]),
  ...[..."'\""].map((c) => [c, "a formula holds no strings"]),
  ...[...";:@#\\`$?~%"].map((c) => [c, "this is a formula, not code"]),
  ...[..."\u2212\u2013\u2014"].map((c) => [c, "write -"]),
  ...[..."\u00d7\u00b7\u22c5"].map((c) => [c, "write *"]),
  ...[..."\u00b2\u00b3"].map((c) => [c, "write ** for a power"]),
  ["\u221e", "write oo"], ["\u221a", "write sqrt(...)"],
]);
const GREEK = ("alpha beta gamma delta epsilon zeta eta theta iota kappa lamda mu nu xi omicron pi rho"
  + " - sigma tau upsilon phi chi psi omega").split(" ");
const DIGITS = "(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+-]?\\d+)?";
const TOKEN = new RegExp(`(?<space>\\s+)|(?<number>${DIGITS})|(?<name>[A-Za-z_][A-Za-z0-9_]*)|(?<operator>\\*\\*|<=|>=|[-+*/()<>,&|])`, "y");

class InputError extends RangeError {}
const refuse = (sentence) => { throw new InputError(sentence); };
const quoted = (text, length = 40) => {
  const cut = [...text].length <= length ? text : `${[...text].slice(0, length).join("")}...`;
  const sign = cut.includes("'") && !cut.includes('"') ? '"' : "'";
  return sign + cut.replace(/\\/g, "\\\\").replace(/\n/g, "\\n").replace(/\t/g, "\\t").replace(/\r/g, "\\r")
    .replaceAll(sign === "'" ? "'" : "\u0000", sign === "'" ? "\\'" : "") + sign;
};

/* Numbers are exact: [above, below], in lowest terms. */
const gcd = (a, b) => { while (b) [a, b] = [b, a % b]; return a < 0n ? -a : a; };
const ratio = (p, q = 1n) => {
  const d = gcd(p, q) * (q < 0n ? -1n : 1n);
  return [p / d, q / d];
};
const number = (p, q = 1n) => ({ op: "num", value: ratio(p, q), args: [] });
const MINUS_ONE = number(-1n);
function decimal(text) {
  const [mantissa, exponent = ""] = text.toLowerCase().split("e");
  const [whole, fraction = ""] = mantissa.split(".");
  const digits = (whole + fraction).replace(/^0+/, "") || "0";
  const huge = exponent.replace(/^[+-]?0*/, "").length > 4;
  const power = huge ? MOST_DIGITS + 1 : Number(exponent || 0) - fraction.length;
  if (Math.max(digits.length, Math.abs(power)) > MOST_DIGITS)
    refuse(`the number ${quoted(text, 20)} has over ${MOST_DIGITS} digits`);
  return ratio(BigInt(digits) * 10n ** BigInt(Math.max(power, 0)), 10n ** BigInt(Math.max(-power, 0)));
}
/* the nearest double, of numbers beyond the doubles' range as well */
const toDouble = ([p, q]) => {
  const plain = Number(p) / Number(q);
  if (Number.isFinite(Number(p)) && Number.isFinite(Number(q)) && Math.abs(Number(p)) < 2 ** 53 && Number(q) < 2 ** 53) return plain;
  if (p === 0n) return 0;
  const size = (v) => v.toString(2).length;
  const shift = BigInt(66 - size(p < 0n ? -p : p) + size(q));
  const scaled = shift >= 0n ? (p << shift) / q : p / (q << -shift);
  return shift > 1000n ? Number(scaled) * 2 ** -1000 * 2 ** -Number(shift - 1000n) : Number(scaled) * 2 ** -Number(shift);
};
/** A number or a ratio of two, as people write them: exact. */
function exactNumber(text, what) {
  const found = new RegExp(`^([+-]?)(${DIGITS})(?:\\s*/\\s*(${DIGITS}))?$`).exec(text.trim());
  if (!found) {
    if (/^[+-]?(nan|inf|infinity|oo)$/i.test(text.trim())) refuse(`${what}: ${quoted(text)} is not a finite number, as it must be`);
    refuse(`${what}: ${quoted(text)} is not a number; write one such as 0.5 or 1e-5, or a ratio: 1/3`);
  }
  const above = decimal(found[2]), below = found[3] ? decimal(found[3]) : [1n, 1n];
  if (below[0] === 0n) refuse(`${what}: ${quoted(text)} divides by zero`);
  return ratio((found[1] === "-" ? -1n : 1n) * above[0] * below[1], above[1] * below[0]);
}

/** What to write for a function of a library, as exp for np.exp; nothing elsewhere. */
function withoutLibrary(text, position) {
  const before = /[A-Za-z_]\w*$/.exec(text.slice(0, position));
  const after = /^[A-Za-z_]\w*/.exec(text.slice(position + 1));
  if (!before || !after || !LIBRARIES.has(before[0])) return "";
  return `write ${after[0]} for ${before[0]}.${after[0]}`;
}

function tokens(text) {
  const found = [];
  for (let position = 0; position < text.length; position = TOKEN.lastIndex) {
    TOKEN.lastIndex = position;
    const match = TOKEN.exec(text);
    if (!match) {
      const character = String.fromCodePoint(text.codePointAt(position));
      const greek = GREEK[character.codePointAt(0) - 0x3b1] ?? "-";
      const library = character === "." ? withoutLibrary(text, position) : "";
      const hint = library || (HINTS.get(character) ?? (greek === "-" ? "" : `spell it ${greek}`));
      const place = [...text.slice(0, position)].length + 1;
      const what = `${quoted(character)} is not allowed in a formula (character ${place})`;
      refuse(hint ? `${what}; ${hint}` : what);
    }
    const [kind] = Object.entries(match.groups).find(([, part]) => part !== undefined);
    if (kind === "space") continue;
    if (found.length >= MOST_TOKENS) refuse(`the formula has over ${MOST_TOKENS} numbers, names and signs`);
    found.push({ kind, text: match[0] });
  }
  found.push({ kind: "end", text: "" });
  return found;
}

/** The tree of a formula; `known`: the names it may use, or null for any. */
function parseFormula(text, known) {
  if (text.length > LONGEST_TEXT) refuse(`the formula has ${text.length} characters, more than ${LONGEST_TEXT}`);
  if (!text.trim()) refuse("the formula is empty");
  const list = tokens(text);
  let place = 0, depth = 0, branches = 0;
  const next = () => list[place];
  const advance = () => { const token = list[place]; if (token.kind !== "end") place += 1; return token; };
  const take = (sign) => { const found = next().text === sign; if (found) place += 1; return found; };
  const refuseNeighbours = () => {
    const after = next(), before = list[Math.max(place - 1, 0)];
    if (after.kind === "name" && before.kind === "number") {
      const digits = after.text.replaceAll("_", "");
      if (/^[0-9]+$/.test(digits)) refuse(`write ${before.text}${digits} for ${before.text}${after.text}`);
      refuse(`an operator is missing in ${quoted(before.text + after.text)}: write ${quoted(`${before.text}*${after.text}`)}`);
    }
    refuse(`an operator such as * is missing before ${quoted(after.text)}`);
  };
  /** What to say of a number with a comma, among the tokens from one on. */
  const decimalComma = (first) => {
    for (let k = first; k < place; k += 1) {
      const [whole, comma, digits] = list.slice(k, k + 3);
      if (comma?.text === "," && whole.kind === "number" && digits?.kind === "number") {
        const written = `${whole.text},${digits.text}`;
        return `; if ${written} is a number, write ${written.replaceAll(",", ".")}`;
      }
    }
    return "";
  };
  const expect = (sign) => {
    if (take(sign)) return;
    refuseCode(next().text);
    if (list[Math.max(place - 1, 0)].kind === "number" && ["name", "number"].includes(next().kind)) refuseNeighbours();
    refuse(`'${sign}' is missing before ${next().text ? quoted(next().text) : "the end"}`);
  };
  const refuseCode = (name) => {
    if (name === "and" || name === "or") refuse(`'${name}' is not allowed; write (a < x) ${name === "and" ? "&" : "|"} (x < b)`);
    const remedy = CASE_WORDS.has(name) ? CASES : "a formula holds only numbers and functions";
    if (CODE.has(name) || name.startsWith("_")) refuse(`${quoted(name)} is code; ${remedy}`);
  };
  const descend = () => { if (++depth > DEEPEST_BRACKETS) refuse(`the formula is nested over ${DEEPEST_BRACKETS} levels deep`); };
  const branch = (parts) => {
    branches += parts.length;
    if (branches > MOST_BRANCHES) refuse(`the formula has over ${MOST_BRANCHES} terms compared, or inside Abs, Min and Max`);
  };
  const isCondition = (part) => ["compare", "and", "or", "true"].includes(part.op);
  const numeric = (part) => {
    if (isCondition(part)) refuse("a comparison stands where a number is needed; use Piecewise");
    return part;
  };
  const condition = (part) => {
    if (!isCondition(part)) refuse("a condition is needed: a comparison such as x < 1, or True");
    return part;
  };
  const build = (op, parts) => ({ op, args: parts.map(numeric) });
  const divided = (part) => {
    if (part.op === "num" && part.value[0] === 0n) refuse(`the formula divides by zero${decimalComma(place - 1)}`);
    return build("pow", [part, MINUS_ONE]);
  };

  function expression(least) {
    let left = "+-".includes(next().text || " ") ? signed() : atom();
    for (;;) {
      const binding = BINDING.get(next().text) ?? -1;
      if (binding < least) return left;
      if (binding === POWER) {
        advance(); descend();
        const exponent = expression(POWER); // right-associative
        depth -= 1;
        left = build("pow", [left, exponent]);
      } else if (binding >= SUM) left = arithmetic(left, binding);
      else if (binding === COMPARISON) left = comparison(left);
      else {
        const sign = next().text, parts = [left];
        while (take(sign)) parts.push(expression(binding + 1));
        left = { op: sign === "&" ? "and" : "or", args: parts.map(condition) };
      }
    }
  }
  function signed() {
    let minus = 0;
    while (next().text === "+" || next().text === "-") minus += advance().text === "-";
    const part = numeric(expression(POWER));
    return minus % 2 ? build("mul", [MINUS_ONE, part]) : part;
  }
  function arithmetic(left, binding) {
    const parts = [left];
    while (BINDING.get(next().text) === binding) {
      const sign = advance().text;
      const part = numeric(expression(binding + 1));
      parts.push(sign === "-" ? build("mul", [MINUS_ONE, part]) : sign === "/" ? divided(part) : part);
    }
    return build(binding === SUM ? "add" : "mul", parts);
  }
  function comparison(left) {
    const found = [];
    while (COMPARISONS.has(next().text)) {
      const sign = advance().text, right = expression(SUM);
      branch([left, right]);
      found.push({ op: "compare", sign, args: [left, right].map(numeric) });
      left = right;
    }
    return found.length === 1 ? found[0] : { op: "and", args: found };
  }
  function atom() {
    const token = advance();
    if (token.kind === "number") return { op: "num", value: decimal(token.text), args: [] };
    if (token.kind === "name") return next().text === "(" ? call(token.text) : name(token.text);
    if (token.text === "(") {
      descend();
      const inner = expression(0);
      expect(")");
      depth -= 1;
      return inner;
    }
    if (token.text === "|") refuse("'|' joins conditions; for an absolute value write abs(...)");
    return refuse(`a number or a name is missing before ${token.text ? `'${token.text}'` : "the end"}`);
  }
  function name(word) {
    if (known && known.has(word)) return { op: "name", name: word, args: [] };
    if (word === "True") return { op: "true", args: [] };
    if (word === "oo") refuse("oo (infinity) stands only alone, as an end of a support");
    if (CONSTANTS.has(word)) return { op: "name", name: word, args: [] };
    if (FUNCTIONS.has(word) || ALIASES.has(word) || word === "Piecewise") refuse(`${word} is a function; write ${word}(...)`);
    refuseCode(word);
    if (["inf", "infinity"].includes(word.toLowerCase())) refuse(`unknown name ${quoted(word)}; infinity is written oo`);
    if (known) refuse(`unknown name ${quoted(word)}`);
    return { op: "name", name: word, args: [] };
  }
  function call(word) {
    if ((known && known.has(word)) || CONSTANTS.has(word) || word === "oo") refuse(`'${word}' is not a function here; write ${word}*(...)`);
    refuseCode(word);
    const head = ALIASES.get(word) ?? word, start = place;
    if (!FUNCTIONS.has(head) && head !== "Piecewise")
      refuse(`unknown function ${quoted(head)}${INSTEAD.has(head) ? `; ${INSTEAD.get(head)}` : ""}`);
    expect("(");
    descend();
    const parts = [];
    while (parts.length ? take(",") : next().text !== ")") parts.push(head === "Piecewise" ? pair() : expression(0));
    expect(")");
    depth -= 1;
    if (head === "Piecewise") {
      if (!parts.length || parts.at(-1)[1].op !== "true") refuse("the last pair of a Piecewise must be (expr, True)");
      return { op: "cases", args: parts.flat() };
    }
    const [least, most] = FUNCTIONS.get(head);
    if (parts.length < least || parts.length > most)
      refuse(`${head} takes ${["1 argument", "2 arguments", "2 to 8 arguments"][Math.min(most, 3) - 1]}, not ${parts.length}${decimalComma(start)}`);
    if (BRANCHING.has(head)) branch(parts);
    if (head === "sqrt") return build("pow", [...parts, number(1n, 2n)]);
    if (head === "beta") {
      const gammas = parts.map((part) => ({ op: "call", name: "gamma", args: [numeric(part)] }));
      const below = { op: "call", name: "gamma", args: [build("add", parts)] };
      return build("mul", [...gammas, build("pow", [below, MINUS_ONE])]);
    }
    return { ...build("call", parts), name: head };
  }
  function pair() {
    if (!take("(")) refuse("Piecewise takes pairs: Piecewise((expr, condition), (expr, True))");
    const value = numeric(expression(0));
    expect(",");
    const when = condition(expression(0));
    expect(")");
    return [value, when];
  }

  const result = expression(0);
  if (next().kind !== "end") {
    if (next().text === ")" || next().text === ",") refuse(`'(' is missing for '${next().text}'`);
    if (CODE.has(next().text) || next().text === "and" || next().text === "or") refuseCode(next().text);
    refuseNeighbours();
  }
  return numeric(result);
}

/** The names that a formula uses, constants aside. */
function namesOf(tree, found = new Set()) {
  if (tree.op === "name" && !CONSTANTS.has(tree.name)) found.add(tree.name);
  tree.args.forEach((part) => namesOf(part, found));
  return found;
}
const replaced = (tree, name, by) => (tree.op === "name" && tree.name === name ? by
  : tree.args.length ? { ...tree, args: tree.args.map((part) => replaced(part, name, by)) } : tree);
