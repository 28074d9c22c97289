const INFINITY = Infinity, PI = Math.PI;
const { exp, expm1, log, log1p, sqrt, sin, cos, tan, sinh, cosh, tanh, asin, acos, atan, asinh,
  acosh, atanh, atan2, floor, ceil, pow, sign } = Math;
const absolute = Math.abs, power = Math.pow, isfinite = Number.isFinite;
const hypot = (a, b) => Math.sqrt(a * a + b * b);
const maximum = (a, b) => (a > b || a !== a ? a : b);
const minimum = (a, b) => (a < b || a !== a ? a : b);
const fail = (message) => { throw new Error(message); };
const size = (v) => v.length;
const filled = (count, value) => new Float64Array(count).fill(value);
function steps(count) {
  const r = new Float64Array(count);
  for (let i = 0; i < count; i++) r[i] = i;
  return r;
}
const ordered = (v) => Float64Array.from(v).sort();
const gathered = (v, start, count) => v.slice(start, start + count);
const ranking = (v) => steps(v.length).sort((i, j) => v[i] - v[j]);
function taken(v, places) {
  const r = new Float64Array(places.length);
  for (let i = 0; i < r.length; i++) r[i] = v[places[i]];
  return r;
}
function repeated(v, n) {
  const r = new Float64Array(v.length * n);
  for (let i = 0; i < v.length; i++) r.fill(v[i], i * n, (i + 1) * n);
  return r;
}
function tiled(v, n) {
  const r = new Float64Array(v.length * n);
  for (let i = 0; i < n; i++) r.set(v, i * v.length);
  return r;
}
function joined(a, b) {
  const r = new Float64Array(a.length + b.length);
  r.set(a);
  r.set(b, a.length);
  return r;
}
function kept(v, mask) {
  const r = new Float64Array(v.length);
  let n = 0;
  for (let i = 0; i < v.length; i++) if (mask[i] !== 0) r[n++] = v[i];
  return r.slice(0, n);
}
function sums_of(v, n) {
  const r = new Float64Array(v.length / n);
  for (let i = 0; i < v.length; i++) r[floor(i / n)] += v[i];
  return r;
}
function largest_of(v, n) {
  const r = new Float64Array(v.length / n).fill(-Infinity);
  for (let i = 0; i < v.length; i++) r[floor(i / n)] = maximum(v[i], r[floor(i / n)]);
  return r;
}
function binned(places, v, count) {
  const r = new Float64Array(count);
  for (let i = 0; i < v.length; i++) r[places[i]] += v[i];
  return r;
}
/* The sums on a grid that closes of numbers, each spread as a Gaussian about its place:
   exp(-c (o + k)^2) is exp(-c o^2) exp(-2 c o k) exp(-c k^2), the middle one a power. */
function spread_over(v, places, off, count, wide, decay) {
  const r = new Float64Array(count), fixed = new Float64Array(wide), k = 0.5 * wide - 1;
  for (let j = 0; j < wide; j++) fixed[j] = exp(-decay * (k - j) * (k - j));
  for (let i = 0; i < v.length; i++) {
    const step = exp(2 * decay * off[i]);
    let share = v[i] * exp(-decay * off[i] * (off[i] + 2 * k)), at = (places[i] - k) % count;
    if (at < 0) at += count;
    for (let j = 0; j < wide; j++) {
      r[at] += share * fixed[j];
      share *= step;
      at = at + 1 === count ? 0 : at + 1;
    }
  }
  return r;
}
/* The discrete Fourier transform of a power of 2 numbers, or its inverse: real parts, then imaginary ones. */
function spectrum(real, imaginary, direction) {
  const n = real.length, r = new Float64Array(2 * n), c = new Float64Array(n / 2), s = new Float64Array(n / 2);
  for (let i = 0; i < n / 2; i++) { c[i] = cos(2 * PI * i / n); s[i] = -direction * sin(2 * PI * i / n); }
  for (let i = 0, j = 0; i < n; i++) { // in the order of reversed bits
    r[j] = real[i];
    r[n + j] = imaginary[i];
    let bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j |= bit;
  }
  for (let half = 1, stride = n >> 1; half < n; half *= 2, stride >>= 1)
    for (let start = 0; start < n; start += 2 * half)
      for (let k = 0; k < half; k++) {
        const i = start + k, j = i + half, a = c[k * stride], b = s[k * stride];
        const x = a * r[j] - b * r[n + j], y = a * r[n + j] + b * r[j];
        r[j] = r[i] - x; r[n + j] = r[n + i] - y;
        r[i] += x; r[n + i] += y;
      }
  if (direction < 0) for (let i = 0; i < 2 * n; i++) r[i] /= n;
  return r;
}
const log_ratio = (d, a, b) => (absolute(d) < 0.5 * absolute(b) ? log1p(d / b) : log(a) - log(b));
function log_sum_exp(...pairs) {
  let best = 0, peak = -Infinity, rest = 0;
  for (let k = 0; k < pairs.length; k += 2) {
    const height = pairs[k] > 0 ? log(pairs[k]) + pairs[k + 1] : -Infinity;
    if (height > peak) [peak, best] = [height, k];
  }
  const top = pairs[best], at = pairs[best + 1];
  if (!isfinite(at)) return at;
  for (let k = 0; k < pairs.length; k += 2)
    if (k !== best) rest += pairs[k] * exp(pairs[k + 1] - at) / top;
  return at + log(top) + log1p(rest);
}
function unit_log_sum_exp(...pairs) {
  let sum = 0;
  for (let k = 0; k < pairs.length; k += 2) if (pairs[k + 1] !== 0) sum += pairs[k] * expm1(pairs[k + 1]);
  return sum > -0.5 && isfinite(sum) ? log1p(sum) : log_sum_exp(...pairs);
}
/* the same of two pairs, which most sums have */
function log_sum_exp_of_two(c, a, d, b) {
  const first = c > 0 ? log(c) + a : -Infinity, second = d > 0 ? log(d) + b : -Infinity;
  return second > first ? log_sum_beside(d, b, c, a) : log_sum_beside(c, a, d, b);
}
const log_sum_beside = (c, a, d, b) => (isfinite(a) ? a + log(c) + log1p(d * exp(b - a) / c) : a);
function unit_log_sum_exp_of_two(c, a, d, b) {
  const sum = (a === 0 ? 0 : c * expm1(a)) + (b === 0 ? 0 : d * expm1(b));
  return sum > -0.5 && isfinite(sum) ? log1p(sum) : log_sum_exp_of_two(c, a, d, b);
}
function careful(...parts) {
  let sum = 0, most = 0;
  for (const part of parts) { sum += part; most = maximum(most, absolute(part)); }
  if (absolute(sum) < 1e-3 * most) fail("digits cancel in double precision at these values; the package answers");
  return sum;
}
/* Stirling's series beyond 16; below, the recurrence multiplies up. */
function lgamma(x) {
  if (!(x > 0)) return NaN;
  if (x === 1 || x === 2) return 0;
  let shift = 1;
  while (x < 16) { shift *= x; x += 1; }
  const y = 1 / (x * x);
  const tail = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - y * (691 / 360360 - y / 156)))))) / x;
  return (x - 0.5) * log(x) - x + 0.9189385332046727418 + tail - log(shift);
}
const gamma = (x) => exp(lgamma(x));
/* by Horner's rule, even and odd powers apart; the highest power is first */
function polynomial(c, x) {
  const square = x * x, n = c.length;
  let odd = n % 2 ? 0 : c[0], even = n % 2 ? c[0] : c[1];
  for (let k = 2 - n % 2; k < n; k += 2) {
    odd = odd * square + c[k];
    even = even * square + c[k + 1];
  }
  return odd * x + even;
}
