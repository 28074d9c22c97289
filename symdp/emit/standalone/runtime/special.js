/* log of I_v(x), v >= 0: its series of positive terms, or the integral along the steepest path */
function log_besseli(order, x) {
  let v = absolute(order);
  if (!(x >= 0) || (order < 0 && order !== floor(order))) return NaN;
  if (x === 0) return v > 0 ? -INFINITY : 0;
  if (x <= 30 || x * x <= 40 * (v + 1)) {
    let part = 1, sum = 1, square = 0.25 * x * x;
    for (let k = 1; part > 1e-18 * sum; k++) {
      part *= square / (k * (v + k));
      sum += part;
    }
    return v * log(0.5 * x) - lgamma(v + 1) + log(sum);
  }
  let r = hypot(x, v), h = 0.5 / sqrt(r), sum = 0.5;
  for (let k = 1; k * h < PI; k++) {
    let a = k * h, s = sin(0.5 * a);
    let turn = a < 0.1 ? -a * a * a / 6 * (1 - a * a / 20 * (1 - a * a / 42 * (1 - a * a / 72)))
      : sin(a) - a;
    if (2 * r * s * s > 45) break;
    sum += exp(-2 * r * s * s) * cos(v * turn);
  }
  /* r - v asinh(v/x), where r and x are close or not */
  return (x > v ? x + v * v / (r + x) : r) - v * asinh(v / x) + log(h * sum / PI);
}

/* log of K_v(x): the trapezoidal sum of exp(-x cosh t + vt) about its highest place */
function log_besselk(order, x) {
  let v = absolute(order), r = hypot(x, v), sum = 1;
  if (!(x > 0)) return x === 0 ? INFINITY : NaN;
  let h = minimum(0.15, 0.5 / sqrt(r));
  for (let side = -1; side <= 1; side += 2)
    for (let k = 1; k < 100000; k++) {
      let u = side * k * h, s = sinh(0.5 * u), t = u * u;
      let over = absolute(u) < 0.5 ? u * t / 6 * (1 + t / 20 * (1 + t / 42 * (1 + t / 72
        * (1 + t / 110 * (1 + t / 156))))) : sinh(u) - u;
      /* r cosh u + v sinh u to the left of the place is x cosh t, without a difference */
      let fall = u > 0 ? 2 * r * s * s + v * over
        : 0.5 * (x * x / (r + v) * exp(-u) + (r + v) * exp(u)) - r - v * u;
      if (fall < 4 && u < 0) fall = 2 * r * s * s + v * over;
      if (fall > 45) break;
      sum += exp(-fall);
    }
  return -r + v * asinh(v / x) + log(0.5 * h * sum);
}

function besseli(order, x) {
  let sign = x < 0 && order !== 2 * floor(0.5 * order) ? -1 : 1;
  if (x < 0 && order !== floor(order)) return NaN;
  return sign * exp(log_besseli(order, absolute(x)));
}

function besselk(order, x) { return exp(log_besselk(order, x)); }

/* erf(ix)/i by its series of positive terms */
function erfi(x) {
  let part = x, sum = x;
  for (let k = 1; absolute(part) > 1e-18 * absolute(sum) && isfinite(sum); k++) {
    part *= x * x / k;
    sum += part / (2 * k + 1);
  }
  return 2 / sqrt(PI) * sum;
}

/* of the incomplete gamma functions without x^s e^-x: a series below, a continued fraction above */
function gamma_below(s, x) {
  let part = 1 / s, sum = part;
  for (let k = 1; absolute(part) > 1e-18 * absolute(sum) && k < 100000; k++) {
    part *= x / (s + k);
    sum += part;
  }
  return sum;
}

function gamma_above(s, x) {
  let b = x + 1 - s, c = 1e300, d = 1 / b, f = d;
  for (let k = 1; k < 100000; k++) {
    let a = -k * (k - s);
    b += 2;
    d = 1 / (a * d + b);
    c = b + a / c;
    f *= c * d;
    if (absolute(c * d - 1) < 1e-16) break;
  }
  return f;
}

function lowergamma(s, x) {
  if (!(s > 0 && x >= 0)) return NaN;
  if (x === 0) return 0;
  if (x < s + 1) return exp(s * log(x) - x) * gamma_below(s, x);
  return gamma(s) - exp(s * log(x) - x) * gamma_above(s, x);
}

function uppergamma(s, x) {
  if (!(x >= 0)) return NaN;
  if (x > 1 && x >= s + 1) return exp(s * log(x) - x) * gamma_above(s, x);
  if (s > 0) return x === 0 ? gamma(s) : gamma(s) - exp(s * log(x) - x) * gamma_below(s, x);
  if (x > 0 && s === 0) {
    let part = 1, sum = -0.57721566490153286061 - log(x);
    for (let k = 1; k < 60; k++) {
      part *= -x / k;
      sum -= part / k;
    }
    return sum;
  }
  if (s > -30) return (uppergamma(s + 1, x) - exp(s * log(x) - x)) / s;
  return NaN;
}
