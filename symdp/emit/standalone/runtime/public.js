const SIDES = { remove: [1], add: [-1], both: [1, -1] };

function laws(n, values, direction) {
  if (!Object.hasOwn(SIDES, direction)) throw new RangeError("direction must be remove, add or both");
  if (!(n >= 1 && n < 1e15 && n === floor(n))) throw new RangeError("n must be a whole number from 1 to 1e15");
  for (const name of Object.keys(values))
    if (!NAMES.includes(name)) throw new RangeError(`unknown: ${name}`);
  for (const name of NAMES) {
    if (!(name in values)) throw new RangeError(`a value is missing: ${name}`);
    if (!isfinite(values[name])) throw new RangeError(`${name} must be a finite number`);
  }
  const p = Float64Array.from(NAMES, (name) => values[name]);
  const wrong = check(p);
  if (wrong) throw new RangeError(wrong);
  const c = constants(p);
  const sides = ONE_LAW ? SIDES[direction].slice(0, 1) : SIDES[direction];
  return sides.map((side) => law_of(c, REMOVE * side, n));
}

/* What each law answers, beside the lower end of those before it. */
function beside(found, answer, question, least) {
  return found.map((law) => {
    const value = answer(law, question, least);
    least = Math.max(least, law.lower);
    return value;
  });
}
const log_deltas = (found, epsilon) => beside(found, log_delta_beside, epsilon, -INFINITY);
const epsilons = (found, delta) => beside(found, epsilon_beside, log(delta), 0);

function log_delta_at(found, epsilon) {
  if (!isfinite(epsilon)) throw new RangeError("epsilon must be a finite number");
  return Math.max(...log_deltas(found, epsilon));
}

/** log δ(ε) of n steps; values: { parameter: number }. */
export function log_delta(epsilon, n, values = {}, direction = "both") {
  return log_delta_at(laws(n, values, direction), epsilon);
}

/* A δ below the least double is shown as that one, never as 0. */
const from_log = (l) => exp(l) || (l > -INFINITY ? 5e-324 : 0);

/** δ(ε) of n steps. */
export function delta(epsilon, n, values = {}, direction = "both") {
  return from_log(log_delta(epsilon, n, values, direction));
}

/** The least ε ≥ 0 with δ(ε) at most delta. */
export function epsilon(delta, n, values = {}, direction = "both") {
  if (!(delta > 0 && delta < 1)) throw new RangeError("delta must be above 0 and below 1");
  return Math.max(...epsilons(laws(n, values, direction), delta));
}

/* The larger law's: each end is at least that of the other. */
const ends_of = (found) => [Math.max(...found.map((law) => law.lower)), Math.max(...found.map((law) => law.upper))];

/** Between which numbers log δ(ε) lies. */
export function log_delta_ends(epsilon, n, values = {}, direction = "both") {
  const found = laws(n, values, direction);
  log_delta_at(found, epsilon);
  return ends_of(found);
}

/** Between which numbers the least ε lies. */
export function epsilon_ends(delta, n, values = {}, direction = "both") {
  if (!(delta > 0 && delta < 1)) throw new RangeError("delta must be above 0 and below 1");
  const found = laws(n, values, direction);
  epsilons(found, delta);
  return ends_of(found);
}

/** δ at each ε. */
export function curve(places, n, values = {}, direction = "both") {
  const found = laws(n, values, direction);
  return Array.from(places, (epsilon) => from_log(log_delta_at(found, epsilon)));
}
