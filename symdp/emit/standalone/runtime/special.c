/* log of I_v(x), v >= 0: its series of positive terms, or the integral along the steepest path */
static double log_besseli(double order, double x)
{
    double v = fabs(order);
    if (!(x >= 0.0) || (order < 0.0 && order != floor(order))) return NAN;
    if (x == 0.0) return v > 0.0 ? -INFINITY : 0.0;
    if (x <= 30.0 || x * x <= 40.0 * (v + 1.0)) {
        double part = 1.0, sum = 1.0, square = 0.25 * x * x;
        for (int k = 1; part > 1e-18 * sum; k++) {
            part *= square / (k * (v + k));
            sum += part;
        }
        return v * log(0.5 * x) - lgamma(v + 1.0) + log(sum);
    }
    double r = hypot(x, v), h = 0.5 / sqrt(r), sum = 0.5;
    for (int k = 1; k * h < PI; k++) {
        double a = k * h, s = sin(0.5 * a);
        double turn = a < 0.1 ? -a * a * a / 6.0 * (1.0 - a * a / 20.0 * (1.0 - a * a / 42.0 * (1.0 - a * a / 72.0)))
            : sin(a) - a;
        if (2.0 * r * s * s > 45.0) break;
        sum += exp(-2.0 * r * s * s) * cos(v * turn);
    }
    /* r - v asinh(v/x), where r and x are close or not */
    return (x > v ? x + v * v / (r + x) : r) - v * asinh(v / x) + log(h * sum / PI);
}

/* log of K_v(x): the trapezoidal sum of exp(-x cosh t + vt) about its highest place */
static double log_besselk(double order, double x)
{
    double v = fabs(order), r = hypot(x, v), sum = 1.0;
    if (!(x > 0.0)) return x == 0.0 ? INFINITY : NAN;
    double h = fmin(0.15, 0.5 / sqrt(r));
    for (int side = -1; side <= 1; side += 2)
        for (int k = 1; k < 100000; k++) {
            double u = side * k * h, s = sinh(0.5 * u), t = u * u;
            double over = fabs(u) < 0.5 ? u * t / 6.0 * (1.0 + t / 20.0 * (1.0 + t / 42.0 * (1.0 + t / 72.0
                * (1.0 + t / 110.0 * (1.0 + t / 156.0))))) : sinh(u) - u;
            /* r cosh u + v sinh u to the left of the place is x cosh t, without a difference */
            double fall = u > 0.0 ? 2.0 * r * s * s + v * over
                : 0.5 * (x * x / (r + v) * exp(-u) + (r + v) * exp(u)) - r - v * u;
            if (fall < 4.0 && u < 0.0) fall = 2.0 * r * s * s + v * over;
            if (fall > 45.0) break;
            sum += exp(-fall);
        }
    return -r + v * asinh(v / x) + log(0.5 * h * sum);
}

static double besseli(double order, double x)
{
    double sign = x < 0.0 && order != 2.0 * floor(0.5 * order) ? -1.0 : 1.0;
    if (x < 0.0 && order != floor(order)) return NAN;
    return sign * exp(log_besseli(order, fabs(x)));
}

static double besselk(double order, double x) { return exp(log_besselk(order, x)); }

/* erf(ix)/i by its series of positive terms */
static double erfi(double x)
{
    double part = x, sum = x;
    for (int k = 1; fabs(part) > 1e-18 * fabs(sum) && isfinite(sum); k++) {
        part *= x * x / k;
        sum += part / (2.0 * k + 1.0);
    }
    return 2.0 / sqrt(PI) * sum;
}

/* of the incomplete gamma functions without x^s e^-x: a series below, a continued fraction above */
static double gamma_below(double s, double x)
{
    double part = 1.0 / s, sum = part;
    for (int k = 1; fabs(part) > 1e-18 * fabs(sum) && k < 100000; k++) {
        part *= x / (s + k);
        sum += part;
    }
    return sum;
}

static double gamma_above(double s, double x)
{
    double b = x + 1.0 - s, c = 1e300, d = 1.0 / b, f = d;
    for (int k = 1; k < 100000; k++) {
        double a = -k * (k - s);
        b += 2.0;
        d = 1.0 / (a * d + b);
        c = b + a / c;
        f *= c * d;
        if (fabs(c * d - 1.0) < 1e-16) break;
    }
    return f;
}

static double lowergamma(double s, double x)
{
    if (!(s > 0.0 && x >= 0.0)) return NAN;
    if (x == 0.0) return 0.0;
    if (x < s + 1.0) return exp(s * log(x) - x) * gamma_below(s, x);
    return tgamma(s) - exp(s * log(x) - x) * gamma_above(s, x);
}

static double uppergamma(double s, double x)
{
    if (!(x >= 0.0)) return NAN;
    if (x > 1.0 && x >= s + 1.0) return exp(s * log(x) - x) * gamma_above(s, x);
    if (s > 0.0) return x == 0.0 ? tgamma(s) : tgamma(s) - exp(s * log(x) - x) * gamma_below(s, x);
    if (x > 0.0 && s == 0.0) {
        double part = 1.0, sum = -0.57721566490153286061 - log(x);
        for (int k = 1; k < 60; k++) {
            part *= -x / k;
            sum -= part / k;
        }
        return sum;
    }
    if (s > -30.0) return (uppergamma(s + 1.0, x) - exp(s * log(x) - x)) / s;
    return NAN;
}
