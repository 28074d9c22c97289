/* The saddle-point accountant: strips, saddle points, the series, and its inverse. */

enum { RIGHT, MIDDLE, LEFT }; /* t > 0, -1 < t < 0, t < -1 */

typedef struct { double value, tolerance, proposal, variance; } probe;

static void position(int strip, double s, double *t, double *t_plus_one)
{
    *t = strip == RIGHT ? s : strip == MIDDLE ? -s : -1.0 - s;
    *t_plus_one = strip == RIGHT ? 1.0 + s : strip == MIDDLE ? 1.0 - s : -s;
}

static int look(const law *l, double epsilon, int strip, double s, probe *here)
{
    double t, t_plus_one, out[3], far, rest, steep, b, root;
    int code;
    position(strip, s, &t, &t_plus_one);
    code = exponent(l, t, 2, epsilon, out);
    if (code != DONE) return code;
    far = strip == LEFT ? t : t_plus_one;
    rest = (strip == RIGHT ? 1.0 : -1.0) * (out[1] - 1.0 / far);
    steep = out[2] + 1.0 / (far * far);
    b = rest - steep * s;
    root = sqrt(b * b + 4.0 * steep);
    here->variance = out[2];
    here->proposal = b > 0.0 ? 2.0 / (b + root) : (root - b) / (2.0 * steep);
    here->tolerance = 1e-13 * sqrt(steep + 1.0 / (s * s));
    here->value = rest - 1.0 / s;
    return DONE;
}

static double point(double u, double end)
{
    return isinf(end) ? exp(u) : end / (1.0 + exp(-u));
}

/* The distance of the saddle point from its strip's own pole; NO_SADDLE where there is none.
 * Where K cannot be evaluated as far as that, the farthest place, and *reached is 0. */
static int search(const law *l, double epsilon, int strip, double *found, int *reached)
{
    double low = -INFINITY, high = INFINITY, end, s, u, target;
    int i, code, reachable = 1;
    *reached = 1;
    end = strip == RIGHT ? l->upper : strip == MIDDLE ? 1.0 : -1.0 - l->lower;
    if (!(end > 0.0)) return NO_SADDLE;
    s = strip == MIDDLE ? 0.5 : end < 2.0 ? 0.5 * end : 1.0;
    u = isinf(end) ? log(s) : log(s / (end - s));
    for (i = 0; i < 200; i++) {
        probe here = { 0.0, 0.0, 0.0, 0.0 };
        code = look(l, epsilon, strip, s, &here);
        if (code == TOO_FAR) {
            high = u;
            reachable = 0;
        } else if (fabs(here.value) <= here.tolerance) {
            *found = s;
            return DONE;
        } else if (here.value > 0.0) {
            high = u;
            reachable = 1;
        } else
            low = u;
        if (high - low < (reachable ? 1e-15 * (1.0 + fabs(u)) : 1e-3)) {
            *found = reachable ? s : point(low, end);
            *reached = reachable;
            return reachable || low > -INFINITY ? DONE : NO_SADDLE;
        }
        if (code == DONE && here.proposal > 0.0 && here.proposal < end) {
            double proposed = here.proposal;
            target = isinf(end) ? log(proposed) : log(proposed / (end - proposed));
            if (target > u + 1.5) target = u + 1.5;
        } else
            target = u + (code == DONE && here.value < 0.0 ? 1.5 : -1.5);
        if (!(low < target && target < high)) target = 0.5 * (low + high);
        if (!(fabs(target) <= 690.0)) return NO_SADDLE;
        u = target;
        s = point(u, end);
        if (!(s > 0.0 && s < end)) return NO_SADDLE;
    }
    return NOT_SETTLED;
}

static double log_one_minus_exp(double x)
{
    if (x >= 0.0) return -INFINITY;
    return x > -0.6931471805599453 ? log(-expm1(x)) : log1p(-exp(x));
}

static double log_add_exp(double x, double y)
{
    double top = x > y ? x : y;
    return isinf(top) ? top : top + log1p(exp((x > y ? y : x) - top));
}

typedef struct { double t, t_plus_one, curvature, leading; int reached; } saddle;

static int saddle_point(const law *l, double epsilon, int strip, saddle *r)
{
    double s, out[3];
    int code = search(l, epsilon, strip, &s, &r->reached);
    if (code != DONE) return code;
    position(strip, s, &r->t, &r->t_plus_one);
    code = exponent(l, r->t, 2, epsilon, out);
    if (code != DONE) return code;
    r->curvature = out[2] + 1.0 / (r->t * r->t) + 1.0 / (r->t_plus_one * r->t_plus_one);
    r->leading = out[0] - log(fabs(r->t)) - log(fabs(r->t_plus_one))
        - 0.5 * log(6.283185307179586 * r->curvature);
    return DONE;
}

static double log_escaped(const law *l)
{
    double escaped = -expm1(l->count * l->log_finite_mass);
    return escaped > 0.0 ? log(escaped) : -INFINITY;
}

static int series_of_delta(const law *l, double epsilon, int order, double *value, double *next)
{
    saddle r;
    double out[HIGHEST + 1], f[HIGHEST + 1], terms[ORDERS + 1];
    double at_minus_one, width, power, at_zero, at_one, factorial, sum = 1.0, integral;
    int j, code, strip = epsilon >= 0.0 ? RIGHT : LEFT;
    *next = 0.0;
    if (epsilon >= l->count * l->largest) {
        *value = log_escaped(l);
        return DONE;
    }
    if (exponent(l, -1.0, 0, epsilon, out) != DONE) return OUT_OF_REGIME;
    at_minus_one = out[0];
    if (epsilon <= l->count * l->least) {
        *value = log_one_minus_exp(at_minus_one);
        return DONE;
    }
    code = saddle_point(l, epsilon, strip, &r);
    if (code == NOT_SETTLED) return code;
    if (code != DONE || !(r.leading - (epsilon < 0.0 ? epsilon : 0.0) < -0.6931471805599453)) {
        strip = MIDDLE;
        code = saddle_point(l, epsilon, strip, &r);
        if (code != DONE) return code;
    }
    if (!r.reached) return NO_SADDLE;
    code = exponent(l, r.t, 2 * order + 4, epsilon, out);
    if (code != DONE) return code;
    width = 1.0 / sqrt(r.curvature);
    power = width;
    factorial = 1.0;
    at_zero = -width / r.t;
    at_one = -width / r.t_plus_one;
    f[0] = f[1] = 0.0;
    for (j = 2; j <= 2 * order + 4; j++) {
        power *= width;
        factorial *= (double) (j - 1);
        f[j] = out[j] * power + factorial * (pow(at_zero, (double) j) + pow(at_one, (double) j));
    }
    corrections(f, order + 1, terms);
    for (j = 0; j < order; j++) sum += terms[j];
    if (!(sum > 0.0 && sum < INFINITY)) return OUT_OF_REGIME;
    integral = r.leading + log(sum);
    if (strip == RIGHT)
        *value = log_add_exp(log_escaped(l), integral);
    else if (strip == MIDDLE)
        *value = log_one_minus_exp(integral);
    else if (integral < at_minus_one)
        *value = log_one_minus_exp(at_minus_one + log_one_minus_exp(integral - at_minus_one));
    else
        return OUT_OF_REGIME;
    if (!(*value <= 0.0 && *value > -INFINITY)) return OUT_OF_REGIME;
    *next = fabs(terms[order]) * exp(r.leading - *value < 700.0 ? r.leading - *value : 700.0);
    return DONE;
}

static int height(const law *l, double epsilon, int order, double target, double *h)
{
    double next, value;
    int code = series_of_delta(l, epsilon, order, &value, &next);
    if (code != DONE) return code;
    *h = value - target > -1e6 ? value - target : -1e6;
    return DONE;
}

/* The sign change in [a, b]: inverse quadratic steps where they are safe, else halving. */
static int bracketed(const law *l, int order, double target, double a, double fa, double b,
    double fb, double *root)
{
    double c = a, fc = fa, share = 0.5, x, fx, xi, phi, best, tolerance;
    int i, code;
    for (i = 0; i < 200; i++) {
        x = a + share * (b - a);
        code = height(l, x, order, target, &fx);
        if (code != DONE) return code;
        if ((fx > 0.0) == (fa > 0.0)) {
            c = a;
            fc = fa;
        } else {
            c = b;
            fc = fb;
            b = a;
            fb = fa;
        }
        a = x;
        fa = fx;
        best = fabs(fa) < fabs(fb) ? a : b;
        tolerance = b != a ? 4e-16 * fabs(best) / fabs(b - a) : 1.0;
        if (fa == 0.0 || fb == 0.0 || tolerance > 0.5) {
            *root = best;
            return DONE;
        }
        xi = (a - b) / (c - b);
        phi = (fa - fb) / (fc - fb);
        share = 0.5;
        if (phi * phi < xi && (1.0 - phi) * (1.0 - phi) < 1.0 - xi)
            share = fa / (fb - fa) * fc / (fb - fc)
                + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb);
        if (share < tolerance) share = tolerance;
        if (share > 1.0 - tolerance) share = 1.0 - tolerance;
    }
    return NOT_SETTLED;
}

static int inverse(const law *l, double target, int order, double *epsilon)
{
    double out[3] = { 0.0, 0.0, 1.0 }, step, width, largest, low, high, at_low, at_high;
    int i, code;
    if (log_escaped(l) >= target) return NO_EPSILON;
    if (exponent(l, 0.0, 2, 0.0, out) != DONE) { out[1] = 0.0; out[2] = 1.0; }
    step = out[2] > 0.0 ? sqrt(out[2]) : 1.0;
    largest = l->count * l->largest > 0.0 ? l->count * l->largest : 0.0;
    low = out[1] > 0.0 ? out[1] : 0.0;
    if (low > largest) low = largest;
    high = low;
    code = height(l, low, order, target, &at_low);
    if (code != DONE) return code;
    at_high = at_low;
    for (i = 0, width = step; i < 200 && at_high > 0.0 && high < largest; i++, width *= 2.0) {
        low = high;
        at_low = at_high;
        high = high + width < largest ? high + width : largest;
        code = height(l, high, order, target, &at_high);
        if (code != DONE) return code;
    }
    for (i = 0, width = step; i < 200 && at_low <= 0.0 && low > 0.0; i++, width *= 2.0) {
        high = low;
        at_high = at_low;
        low = low - width > 0.0 ? low - width : 0.0;
        code = height(l, low, order, target, &at_low);
        if (code != DONE) return code;
    }
    if (at_low <= 0.0) {
        *epsilon = 0.0;
        return DONE;
    }
    if (at_high > 0.0) return NO_EPSILON;
    return bracketed(l, order, target, low, at_low, high, at_high, epsilon);
}
