/* A typed density becomes what the accountant asks for: pieces, log densities, losses, each with its rounding. */
let MODEL = null, PIECES = 0, POINTS = 0, INTEGERS = 0, LEAST = 0, LARGEST = 1, FIRST = 0, LAST = 0;
let KIND = [], FLAT = [], LOWER = [], UPPER = [], LOSS = [], SERIES_LOW = [], SERIES_HIGH = [];
const log_p = (piece, x) => MODEL.logP(piece, x), log_q = (piece, x) => MODEL.logQ(piece, x);
const loss_at = (piece, x) => MODEL.loss(piece, x), term = () => NaN;
const SAMPLES = 96; // places of a piece at which a loss is looked at
const MOST_DOUBT = 0.01; // relative width of an answer beyond which the page refuses it
const QUADRATURE = 1e-10; // relative: what panels, sums and their tails leave, with room
const PER_STEP = 1e-13; // of log M
const PAGE_NEAR = 1e-3; // of log delta: the width at which a line is long enough
const PAGE_NODES = 6e4; // of a law, for frequencies of a line that converges; beyond, one that is cut off is quicker
const PAGE_PLACES = 2.5e6; // at which densities are evaluated for one question: some seconds
let CENTER = 0, SCALE = 1; // where a density is highest, and how far it is to where it has fallen by a factor e

/** Read what a person typed; numbers are text. */
function specified(asked) {
  const names = Object.keys(asked.values), given = {};
  if (!/^[A-Za-z_]\w*$/.test(asked.variable) || CONSTANTS.has(asked.variable) || FUNCTIONS.has(asked.variable))
    refuse(`${quoted(asked.variable)} cannot be the variable: write a name such as x`);
  const tree = parseFormula(asked.density, new Set([asked.variable, ...names]));
  for (const name of names) given[name] = toDouble(exactNumber(asked.values[name], name));
  const end = (text, side) => {
    const bare = text.replace(/\s/g, "");
    if (bare === "-oo" || bare === "oo" || bare === "+oo") {
      if ((bare === "-oo") !== (side === "lower")) refuse(`the ${side} end of the support cannot be ${bare}`);
      return side === "lower" ? -INFINITY : INFINITY;
    }
    const f = parseFormula(text, new Set(names));
    const v = valued(f, "", given)(0, 0);
    return isfinite(v) ? v : refuse(`the ${side} end of the support is not a number`);
  };
  const whole = asked.support !== "interval";
  const low = asked.support === "naturals" ? 0 : asked.support === "integers" ? -INFINITY : end(asked.lower, "lower");
  const high = whole ? INFINITY : end(asked.upper, "upper");
  if (!(low < high)) refuse("the support must have its lower end below its upper end");
  const shift = toDouble(exactNumber(asked.sensitivity, "sensitivity"));
  if (!(shift > 0)) refuse("sensitivity must be above 0");
  if (whole && shift !== floor(shift)) refuse("sensitivity must be a whole number where the output is one");
  const rate = asked.rate.trim() ? toDouble(exactNumber(asked.rate, "rate")) : 1;
  if (!(rate > 0 && rate <= 1)) refuse("rate must be above 0 and at most 1");
  return { tree, given, low, high, whole, shift, rate, variable: asked.variable, loss: asked.loss };
}

/** The density itself: its stretches, log f, its mass, how many modes. */
function examined(own) {
  [CENTER, SCALE] = [0, 1];
  const raw = logarithm(own.tree, own.variable, own.given);
  const plain = (x, dx) => {
    const l = raw(x, dx);
    if (sign_ < 0 && l > -INFINITY) refuse(`the density is negative at ${own.variable} = ${x}`);
    return l;
  };
  const inner = own.whole ? [] : bends(own.tree, own.variable, own.given, own.low, own.high);
  const places = distinct([own.low, ...inner.filter((x) => x > own.low && x < own.high), own.high]);
  const stretches = [];
  for (let i = 1; i < places.length; i++) {
    const seen = within(places[i - 1], places[i], own.whole).map((x) => plain(x, 0));
    if (seen.some((l) => l !== l)) refuse("the density has no real value at some places of its support");
    if (seen.some((l) => l === INFINITY)) refuse("the density is infinite inside its support");
    if (seen.some((l) => l > -INFINITY)) stretches.push([places[i - 1], places[i]]);
  }
  if (!stretches.length) refuse("the density is 0 everywhere on its support");
  const found = { ...own, stretches, logMass: 0, bends: distinct([...inner, own.low, own.high].filter(isfinite)) };
  found.logF = (x, dx) => plain(x, dx) - found.logMass;
  // its integral, by the panels of the accountant; scaled first, as a density may be given up to any factor
  let top = -INFINITY;
  for (const [low, high] of stretches) for (const x of within(low, high, own.whole)) top = maximum(top, plain(x, 0));
  found.logMass = top;
  install({ ends: stretches, kinds: stretches.map(() => 0), flats: stretches.map(() => 0), logP: (_, x) => found.logF(x, 0),
    logQ: (_, x) => found.logF(x, 0), loss: () => 0, least: -INFINITY, largest: INFINITY, whole: own.whole });
  locate(found);
  found.modes = modes(found);
  if (found.modes > 1 && !hasOneShift(found)) return found; // it has no number here
  const law = law_of(MODEL.c, 1, 1);
  forget_nodes(law);
  for (let piece = 0; piece < PIECES; piece++) {
    const [low, high] = stretches[piece];
    if (own.whole) add_integers(law, piece, low, high, 1); else add_interval(law, piece, low, high, 1);
    if (law.far) refuse("the density has no finite integral, or its tails are too heavy for this page");
  }
  const mass = law.log_weight.reduce((sum, l) => sum + exp(l), 0);
  if (!(mass > 0 && isfinite(mass))) refuse("the density has no finite integral");
  found.logMass += log(mass);
  return found;
}
function locate(found) {
  let top = -INFINITY;
  for (let piece = 0; piece < PIECES; piece++)
    for (const x of found.whole ? within(...found.stretches[piece], true) : outline(piece, MODEL.c, 1, 0, ...found.stretches[piece])) {
      const l = found.logF(x, 0);
      if (l > top && isfinite(l)) { top = l; CENTER = x; }
    }
  for (SCALE = 2 ** -40; SCALE < 2 ** 60; SCALE *= 2) {
    const fallen = [CENTER - SCALE, CENTER + SCALE].map((x) => (x > found.low && x < found.high ? found.logF(x, 0) : -INFINITY));
    if (!(maximum(...fallen) > top - 1)) break;
  }
  if (found.whole) SCALE = maximum(1, SCALE);
}
function distinct(list) {
  const close = (a, b) => a === b || b - a <= 1e-13 * minimum(absolute(a) + absolute(b), 1e300);
  return Array.from(Float64Array.from(list).sort()).filter((x, i, all) => i === 0 || !close(all[i - 1], x));
}
/* places inside a stretch: spread out evenly, at every scale about its ends, and irregularly */
function within(low, high, whole, count = SAMPLES) {
  const found = [];
  if (isfinite(low + high)) for (let k = 0; k < count; k++) found.push(low + (high - low) * ((k + 0.5 + 0.3 * sin(7 * k)) / count));
  else {
    const start = isfinite(low) ? low : isfinite(high) ? high : CENTER;
    for (let k = 0; k < count; k++) {
      const step = SCALE * 2 ** (-6 + 20 * k / count) * (1 + 0.1 * sin(5 * k));
      for (const from of [start, CENTER]) found.push(from - step, from + step);
    }
  }
  const kept = whole ? distinct(found.map(Math.round)) : found;
  return kept.filter((x) => (whole ? x >= low && x <= high : x > low && x < high));
}
/* how often the density has risen, beyond its rounding: a rise that lasts to the end of the support counts */
function modes(found) {
  const all = found.whole ? distinct([...spread(maximum(found.low, -1e6), minimum(found.high, 1e6))].map(Math.round))
    : distinct([...spread(found.low, found.high), ...found.stretches.flatMap(([low, high]) => within(low, high, false))]);
  const is = (x) => found.stretches.some(([low, high]) => (found.whole ? x >= low && x <= high : x > low && x < high));
  let count = 0, rising = true, extreme = -INFINITY;
  for (const x of all) {
    if (!is(x) && found.bends.includes(x)) continue; // at a bend either side's value may stand
    const l = is(x) ? found.logF(x, UNIT * absolute(x)) : -INFINITY, e = isfinite(l) ? 4 * wrong + 1e-13 : 0;
    if (rising) {
      if (l > extreme) extreme = l;
      else if (l < extreme - e) { rising = false; count += 1; extreme = l; }
    } else if (l < extreme) extreme = l;
    else if (l > extreme + e) { rising = true; extreme = l; }
  }
  return rising ? count + 1 : count;
}

/* whether f(x) = f(−x) at all places that are looked at, but for rounding */
function isEven(own) {
  if (own.low !== -own.high) return false;
  return own.stretches.every(([low, high]) => within(low, high, own.whole).every((x) => {
    const a = own.logF(x, 0), ea = wrong, b = own.logF(-x, 0), eb = wrong;
    return a === b || absolute(a - b) <= 4 * (ea + eb);
  }));
}

/** The pair of one shift, up or down, sampled or not. */
function pairOf(found, direction) {
  const shift = direction * found.shift, rate = found.rate, sampled = rate < 1;
  const ends = found.whole ? null : distinct([-INFINITY, INFINITY, ...found.bends, ...found.bends.map((x) => x + shift)]);
  const has = (x) => found.stretches.some(([low, high]) => (found.whole ? x >= low && x <= high : x > low && x < high));
  const model = { ends: [], kinds: [], both: [], whole: found.whole };
  const cuts = !found.whole ? ends : found.low === -INFINITY ? [-INFINITY, INFINITY]
    : [minimum(0, shift), maximum(0, shift), INFINITY];
  for (let i = 1; i < cuts.length; i++) {
    const low = cuts[i - 1], high = found.whole && isfinite(cuts[i]) ? cuts[i] - 1 : cuts[i];
    const probe = found.whole ? (isfinite(low) ? low : 0) : isfinite(low + high) ? 0.5 * (low + high)
      : isfinite(low) ? low + 1 : isfinite(high) ? high - 1 : 0;
    const q = has(probe), p = has(probe - shift);
    if (!q && !p) continue;
    model.ends.push([low, high]);
    model.both.push(q && p ? 0 : q ? -1 : 1);
    model.kinds.push(q ? (p || sampled ? 0 : -1) : 1);
  }
  const before = (x) => found.logF(x - shift, UNIT * absolute(x - shift));
  const direct = (x) => {
    const a = before(x), e = wrong, b = found.logF(x, 0);
    return a === -INFINITY && b === -INFINITY ? told(NaN, 0) : told(a - b, e + wrong + UNIT * absolute(a - b));
  };
  // the loss as it was simplified, where that is closer; both must agree
  const simple = found.loss ? valued(direction > 0 ? found.loss.up : found.loss.down, found.variable, found.given) : null;
  const closer = model.ends.map(([low, high], piece) => {
    if (!simple || model.both[piece]) return direct;
    let one = 0, other = 0, disagree = 0;
    for (const x of within(low, high, found.whole)) {
      const a = direct(x), ea = wrong, b = simple(x, 0), eb = wrong;
      if (isfinite(a) && isfinite(b) && !(absolute(a - b) <= 4 * (ea + eb) + 1e-9 * absolute(a))) disagree += 1;
      if (isfinite(eb)) { one += ea; other += eb; }
    }
    if (disagree || !(other < one)) return direct;
    return (x) => {
      const b = simple(x, 0), eb = wrong;
      if (eb <= 8 * UNIT * (1 + absolute(b))) return told(b, eb);
      const a = direct(x);
      return isfinite(b) && eb < wrong ? told(b, eb) : a; // `wrong` is that of the direct one
    };
  });
  const mixed = (l) => { // log(1 − q + q e^l)
    if (!sampled || l !== l) return l;
    const e = wrong;
    const v = l > 36 ? l + log(rate) + log1p((1 - rate) / rate * exp(-l)) : l === -INFINITY ? log1p(-rate) : log1p(rate * expm1(l));
    return told(v, e + 2 * UNIT * absolute(v));
  };
  model.loss = (piece, x) => {
    const kind = model.both[piece];
    if (kind > 0) return told(INFINITY, 0);
    if (kind < 0) return told(sampled ? log1p(-rate) : -INFINITY, 0);
    return mixed(closer[piece](x));
  };
  model.logQ = (piece, x) => (model.both[piece] > 0 ? -INFINITY : found.logF(x, 0));
  model.logP = (piece, x) => {
    const kind = model.both[piece];
    if (kind > 0) return before(x) + log(rate);
    if (kind < 0) return sampled ? found.logF(x, 0) + log1p(-rate) : -INFINITY;
    if (!sampled) return before(x);
    const q = found.logF(x, 0);
    return q > -INFINITY ? q + model.loss(piece, x) : before(x) + log(rate);
  };
  // a loss that is constant on a piece is an atom
  let least = INFINITY, largest = -INFINITY, flatLeast = INFINITY, flatLargest = -INFINITY;
  model.flats = model.ends.map(([low, high], piece) => {
    if (model.kinds[piece]) return 0;
    // flat: one value lies within the rounding of every place; the places of coarse rounding tell nothing
    let a = INFINITY, b = -INFINITY, most = -INFINITY, least_ = INFINITY;
    for (const x of within(low, high, found.whole)) {
      if (model.logP(piece, x) === -INFINITY && model.logQ(piece, x) === -INFINITY) continue;
      const l = model.loss(piece, x), e = 4 * wrong + 1e-15 * absolute(l);
      if (l !== l) continue;
      a = minimum(a, l); b = maximum(b, l);
      most = maximum(most, l - e); least_ = minimum(least_, l + e);
    }
    const flat = most <= least_ && a <= b;
    if (flat) { flatLeast = minimum(flatLeast, a); flatLargest = maximum(flatLargest, b); }
    else { least = minimum(least, a); largest = maximum(largest, b); }
    return flat || found.whole ? 1 : 0;
  });
  // the largest loss is known where it is that of an atom
  model.least = flatLeast <= least && isfinite(flatLeast) ? flatLeast : -INFINITY;
  model.largest = flatLargest >= largest && isfinite(flatLargest) ? flatLargest : INFINITY;
  return model;
}
function install(model) {
  model.c ??= Float64Array.from([...model.ends.flat(), model.least, model.largest, 0, model.ends.length]);
  MODEL = model;
  [PIECES, INTEGERS] = [model.ends.length, model.whole ? 1 : 0];
  [LEAST, LARGEST, FIRST, LAST] = [0, 1, 2, 3].map((i) => 2 * PIECES + i); // places among the constants
  [KIND, FLAT] = [model.kinds, model.flats];
  LOWER = model.ends.map((_, i) => 2 * i);
  UPPER = LOWER.map((i) => i + 1);
  return model;
}

/* Five digits are shown: a line need be no longer. */
function coarser(law) {
  law.near = PAGE_NEAR;
  law.most_nodes = PAGE_NODES;
  law.allowed = PAGE_PLACES;
  return law;
}

/** Everything about one question: { epsilon, delta, lower, upper, … }. */
function opened(asked) {
  const own = examined(specified(asked));
  const count = Number(asked.n);
  if (!(/^\d+$/.test(asked.n.trim()) && count >= 1 && count < 1e12)) refuse("n must be a whole number from 1 to 1e12");
  // of an even density a shift up and one down are one pair, and so are both sides of a pair that is not sampled
  const even = isEven(own), directions = own.rate < 1 && !even ? [1, -1] : [1];
  const sides = even && own.rate === 1 ? [1] : [1, -1];
  const laws = directions.flatMap((direction) => {
    const model = install(pairOf(own, direction));
    return sides.map((side) => ({ model, law: coarser(law_of(model.c, side, count)) }));
  });
  return { own, laws, count };
}
const ask = (one, question) => { install(one.model); return question(one.law); };
/* The laws of one question share its work, and each is asked beside the lower end of those before it. */
function shared(laws, question, least) {
  let left = PAGE_PLACES;
  return laws.map((one) => {
    one.law.allowed = left;
    const answer = question(one, least);
    left -= one.law.evaluated;
    least = maximum(least, answer.least);
    return answer;
  });
}
function logDelta(laws, epsilon) {
  let largest = -INFINITY;
  for (const one of laws) largest = maximum(largest, ask(one, (law) => log_delta_beside(law, epsilon, largest)));
  return largest;
}

/* How far rounding and quadrature may have moved log δ: the loss of one node may be off by its own bound, and the sum
   of n by n times the mean bound under the tilted law; the weights likewise. */
function doubt(one, t) {
  install(one.model);
  const { side, count } = one.law;
  let most = 0;
  for (const tilt of [0, t]) {
    const rows = [];
    let top = -INFINITY;
    for (let piece = 0; piece < PIECES; piece++) {
      if (side * KIND[piece] !== 0) continue;
      const [low, high] = one.model.ends[piece];
      const places = one.model.whole ? within(low, high, true, 600) : spread(low, high, 600);
      for (let i = 1; i < places.length; i++) {
        const x = one.model.whole ? places[i] : 0.5 * (places[i - 1] + places[i]), width = places[i] - places[i - 1];
        const p = side > 0 ? one.model.logP(piece, x) : one.model.logQ(piece, x), ep = wrong;
        if (!isfinite(p) || !(width > 0)) continue;
        const l = side * one.model.loss(piece, x), el = wrong;
        if (!isfinite(l)) continue;
        const height = p + tilt * l + log(width);
        rows.push([height, ep + tilt * el]);
        top = maximum(top, height);
      }
    }
    let sum = 0, mean = 0;
    for (const [height, error] of rows) { const w = exp(height - top); sum += w; mean += w * error; }
    most = maximum(most, sum ? mean / sum : 0);
  }
  return QUADRATURE + count * (PER_STEP + 2 * most) + 4 * UNIT * t * (1 + absolute(one.law.guess || 0));
}

/* Whether a smaller shift may lose more, in the words of the package's pages; in brackets, how that is known here. */
const hasOneShift = (own) => own.whole && own.shift === 1;
function onSmallerShifts(own) {
  const [word, known] = own.modes === 1 ? ["one", "its values rise, then fall, at all places that were looked at"]
    : hasOneShift(own) ? ["none", ""] : ["several", `its values rise ${own.modes} times`];
  const words = ON_SMALLER_SHIFTS[word].replace("{}", known);
  return `${words[0].toUpperCase()}${words.slice(1)}.`;
}

function answered(asked) {
  const { own, laws } = opened(asked);
  const said = { mass: exp(own.logMass), logMass: own.logMass, modes: own.modes, shifts: onSmallerShifts(own) };
  if (own.modes > 1 && !hasOneShift(own)) return { ...said, several: true };
  const given = toDouble(exactNumber(asked.given, asked.ask === "epsilon" ? "delta" : "epsilon"));
  if (asked.ask === "epsilon" && !(given > 0 && given < 1)) refuse("delta must be above 0 and below 1");
  const isEpsilon = asked.ask === "epsilon";
  const each = shared(laws, (one, least) => {
    const value = ask(one, (law) => (isEpsilon ? epsilon_beside(law, log(given), least) : log_delta_beside(law, given, least)));
    const t = absolute(one.law.slope) || 1, { lower, upper } = one.law;
    const own = doubt(one, t);
    return { one, value, lower, upper, t, doubt: own, least: lower - own * (isEpsilon ? 1 / t : 1) };
  }, isEpsilon ? 0 : -INFINITY);
  // a law whose ε is 0 matters where no other's is larger
  const certain = (one) => ask(one, (law) => log_delta_of(law, 0)) + doubt(one, absolute(one.law.slope) || 1) <= log(given);
  const wide = (row, s) => (asked.ask === "epsilon" ? maximum(0, (s < 0 ? row.lower : row.upper) + s * row.doubt * maximum(1 / row.t, row.value ? 1e-12 : 0))
    : minimum(0, (s < 0 ? row.lower : row.upper) + s * row.doubt));
  if (each.some((row) => !(row.doubt < MOST_DOUBT) && row.value > (asked.ask === "epsilon" ? 0 : -INFINITY)))
    refuse("digits cancel in double precision at these values; the package answers");
  const most = (f) => Math.max(...each.map(f));
  const largest = most((row) => (row.value > 0 ? wide(row, 1) : -INFINITY));
  const end = (row) => (asked.ask !== "epsilon" || row.value > 0 || wide(row, 1) <= largest || !certain(row.one) ? wide(row, 1) : 0);
  return { ...said, given, value: most((row) => row.value), lower: most((row) => wide(row, -1)),
    upper: most(end), laws };
}
