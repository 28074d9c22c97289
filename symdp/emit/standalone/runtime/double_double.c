/* Numbers as unevaluated sums of two doubles: about 32 digits from libm's fma alone. */

typedef struct { double hi, lo; } dd;

static inline dd dd_of(double x) { dd r = { x, 0.0 }; return r; }

static inline dd dd_quick(double a, double b) /* |a| >= |b| */
{
    dd r;
    r.hi = a + b;
    r.lo = b - (r.hi - a);
    return r;
}

static inline dd dd_two(double a, double b)
{
    dd r;
    double t;
    r.hi = a + b;
    t = r.hi - a;
    r.lo = (a - (r.hi - t)) + (b - t);
    return r;
}

static inline dd dd_add(dd a, dd b)
{
    dd s = dd_two(a.hi, b.hi), t = dd_two(a.lo, b.lo);
    s = dd_quick(s.hi, s.lo + t.hi);
    return dd_quick(s.hi, s.lo + t.lo);
}

static inline dd dd_neg(dd a) { a.hi = -a.hi; a.lo = -a.lo; return a; }

static inline dd dd_mul(dd a, dd b)
{
    double p = a.hi * b.hi, e = fma(a.hi, b.hi, -p);
    return dd_quick(p, e + (a.hi * b.lo + a.lo * b.hi));
}

static inline dd dd_times(dd a, double b)
{
    double p = a.hi * b, e = fma(a.hi, b, -p);
    return dd_quick(p, e + a.lo * b);
}

static inline dd dd_div(dd a, dd b)
{
    double first = a.hi / b.hi, second;
    dd rest = dd_add(a, dd_neg(dd_times(b, first)));
    second = rest.hi / b.hi;
    rest = dd_add(rest, dd_neg(dd_times(b, second)));
    return dd_add(dd_quick(first, second), dd_of(rest.hi / b.hi));
}

static inline dd dd_ldexp(dd a, int e) { a.hi = ldexp(a.hi, e); a.lo = ldexp(a.lo, e); return a; }

static const dd DD_LN2 = { 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56 };
static const double DD_LN2_REST = 0x1.7b57a079a1934p-111;

/* e^a = result 2^*e, for |a| up to 1e8 */
static inline dd dd_exp(dd a, int *e)
{
    double k = floor(a.hi / 0.69314718055994531 + 0.5);
    dd r, term, sum;
    int j;
    r = dd_add(a, dd_neg(dd_times(DD_LN2, k)));
    r = dd_add(r, dd_of(-k * DD_LN2_REST));
    r = dd_ldexp(r, -9);
    sum = term = r; /* e^r - 1 by its series, then nine squarings */
    for (j = 2; j < 12; j++) {
        term = dd_div(dd_mul(term, r), dd_of((double) j));
        sum = dd_add(sum, term);
    }
    for (j = 0; j < 9; j++)
        sum = dd_add(dd_ldexp(sum, 1), dd_mul(sum, sum));
    *e = (int) k;
    return dd_add(sum, dd_of(1.0));
}

static inline dd dd_log(dd a) /* a > 0 */
{
    int e, power;
    dd y, t, m;
    frexp(a.hi, &e);
    m = dd_ldexp(a, -e);
    if (m.hi < 0.70710678118654752) { m = dd_ldexp(m, 1); e -= 1; }
    y = dd_of(log(m.hi));
    t = dd_exp(dd_neg(y), &power);
    t = dd_add(dd_mul(m, dd_ldexp(t, power)), dd_of(-1.0));
    /* log(1 + t) = t - t^2/2 + ..., t about 1e-16 */
    y = dd_add(y, dd_add(t, dd_times(dd_mul(t, t), -0.5)));
    y = dd_add(y, dd_times(DD_LN2, (double) e));
    return dd_add(y, dd_of((double) e * DD_LN2_REST));
}
