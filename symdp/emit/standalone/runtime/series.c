/* Truncated Taylor series in z - t with a power of two in front, so that nothing overflows. */

typedef struct { int e, size; dd c[TERMS_MAX]; } series; /* sum_k c_k (z - t)^k, times 2^e */
typedef struct { int terms, removable, failed; } arithmetic;

static inline series series_zero(void)
{
    series s;
    int k;
    s.e = 0;
    s.size = 1;
    for (k = 0; k < TERMS_MAX; k++) s.c[k] = dd_of(0.0);
    return s;
}

static inline void series_scale(arithmetic *a, series *r)
{
    double largest = 0.0;
    int k, e;
    for (k = 0; k < r->size; k++)
        if (fabs(r->c[k].hi) > largest) largest = fabs(r->c[k].hi);
    if (r->size == 1 && isinf(largest)) { r->e = 0; return; }
    if (!(largest <= 1e300)) { a->failed = 1; return; }
    if (r->c[0].hi != 0.0) largest = fabs(r->c[0].hi);
    if (largest == 0.0) { r->e = 0; return; }
    frexp(largest, &e);
    for (k = 0; k < r->size; k++) r->c[k] = dd_ldexp(r->c[k], -e);
    r->e += e;
    if (r->e > 1000000000 || r->e < -1000000000) a->failed = 1;
}

static inline void series_constant(arithmetic *a, series *r, double hi, double lo, int e)
{
    r->e = e;
    r->size = 1;
    r->c[0].hi = hi;
    r->c[0].lo = lo;
    series_scale(a, r);
}

static inline void series_tilt(arithmetic *a, series *r, dd tilt)
{
    r->e = 0;
    r->size = a->terms > 1 ? 2 : 1;
    r->c[0] = tilt;
    if (a->terms > 1) r->c[1] = dd_of(1.0);
}

static inline int series_is_zero(const series *s)
{
    int k;
    for (k = 0; k < s->size; k++) if (s->c[k].hi != 0.0) return 0;
    return 1;
}

static inline void series_add(arithmetic *a, series *r, const series *x, const series *y)
{
    series s;
    int k, shift;
    s.c[0] = dd_of(0.0);
    if (series_is_zero(x)) { s = *y; *r = s; return; }
    if (series_is_zero(y)) { s = *x; *r = s; return; }
    if (x->e < y->e) { const series *t = x; x = y; y = t; }
    shift = y->e - x->e;
    if (shift < -2000) shift = -2000;
    s.e = x->e;
    s.size = x->size > y->size ? x->size : y->size;
    for (k = 0; k < s.size; k++) {
        dd left = k < x->size ? x->c[k] : dd_of(0.0);
        dd right = k < y->size ? dd_ldexp(y->c[k], shift) : dd_of(0.0);
        s.c[k] = dd_add(left, right);
    }
    series_scale(a, &s);
    *r = s;
}

static inline void series_times(series *r, double factor)
{
    int k;
    for (k = 0; k < r->size; k++) r->c[k] = dd_times(r->c[k], factor);
}

static inline void series_mul(arithmetic *a, series *r, const series *x, const series *y)
{
    series s;
    int i, j;
    s.c[0] = dd_of(0.0);
    s.e = x->e + y->e;
    s.size = x->size + y->size - 1;
    if (s.size > a->terms) s.size = a->terms;
    for (i = 0; i < s.size; i++) {
        s.c[i] = dd_of(0.0);
        for (j = 0; j <= i; j++)
            if (j < x->size && i - j < y->size)
                s.c[i] = dd_add(s.c[i], dd_mul(x->c[j], y->c[i - j]));
    }
    series_scale(a, &s);
    *r = s;
}

static inline void series_div(arithmetic *a, series *r, const series *x, const series *y)
{
    series s, above = *x, below = *y;
    int k, j;
    s.c[0] = dd_of(0.0);
    while (a->removable && below.size > 1 && fabs(below.c[0].hi) <= 1e-25 * fabs(below.c[1].hi)) {
        double largest = 0.0;
        for (k = 0; k < above.size; k++)
            if (fabs(above.c[k].hi) > largest) largest = fabs(above.c[k].hi);
        if (fabs(above.c[0].hi) > 1e-25 * largest) { a->failed = 1; break; }
        for (k = 1; k < above.size; k++) above.c[k - 1] = above.c[k];
        for (k = 1; k < below.size; k++) below.c[k - 1] = below.c[k];
        if (above.size > 1) above.size--; else above.c[0] = dd_of(0.0);
        below.size--;
    }
    if (below.c[0].hi == 0.0) a->failed = 1;
    if (a->failed) { *r = *x; return; }
    s.e = above.e - below.e;
    s.size = below.size == 1 ? above.size : a->terms;
    for (k = 0; k < s.size; k++) {
        dd rest = k < above.size ? above.c[k] : dd_of(0.0);
        for (j = 1; j <= k && j < below.size; j++)
            rest = dd_add(rest, dd_neg(dd_mul(below.c[j], s.c[k - j])));
        s.c[k] = dd_div(rest, below.c[0]);
    }
    series_scale(a, &s);
    *r = s;
}

/* coefficients without the power of two */
static inline void series_plain(arithmetic *a, series *r, const series *x)
{
    int k;
    if (x->e > 1000) { a->failed = 1; *r = *x; return; }
    *r = *x;
    for (k = 0; k < r->size; k++) r->c[k] = dd_ldexp(r->c[k], x->e < -1060 ? -1060 : x->e);
    r->e = 0;
}

static inline void series_exp(arithmetic *a, series *r, const series *x)
{
    series s, p;
    int k, j;
    s.c[0] = dd_of(0.0);
    series_plain(a, &p, x);
    if (a->failed || !(fabs(p.c[0].hi) < 1e8)) { a->failed = 1; *r = *x; return; }
    s.c[0] = dd_exp(p.c[0], &s.e);
    s.size = p.size > 1 ? a->terms : 1;
    for (k = 1; k < s.size; k++) {
        dd total = dd_of(0.0);
        for (j = 1; j <= k && j < p.size; j++)
            total = dd_add(total, dd_mul(dd_times(p.c[j], (double) j), s.c[k - j]));
        s.c[k] = dd_div(total, dd_of((double) k));
    }
    series_scale(a, &s);
    *r = s;
}

static inline void series_log(arithmetic *a, series *r, const series *x)
{
    series s;
    int k, j;
    s.c[0] = dd_of(0.0);
    if (!(x->c[0].hi > 0.0)) { a->failed = 1; *r = *x; return; }
    s.e = 0;
    s.c[0] = dd_add(dd_log(x->c[0]), dd_times(DD_LN2, (double) x->e));
    s.c[0] = dd_add(s.c[0], dd_of((double) x->e * DD_LN2_REST));
    s.size = x->size > 1 ? a->terms : 1;
    for (k = 1; k < s.size; k++) {
        dd total = k < x->size ? dd_times(x->c[k], (double) k) : dd_of(0.0);
        for (j = 1; j < k; j++)
            if (k - j < x->size)
                total = dd_add(total, dd_neg(dd_times(dd_mul(s.c[j], x->c[k - j]), (double) j)));
        s.c[k] = dd_div(total, dd_times(x->c[0], (double) k));
    }
    series_scale(a, &s);
    *r = s;
}

/* sinh or cosh at small arguments, where e^x - e^-x would cancel: each one's slope is the other */
static inline void series_small(series *r, const series *x, int terms, int want_cosh)
{
    series s, c;
    dd square = dd_mul(x->c[0], x->c[0]), term = dd_of(1.0);
    int k, j;
    s.c[0] = dd_of(0.0);
    c.c[0] = dd_of(0.0);
    for (k = 2; k < 40; k += 2) {
        c.c[0] = dd_add(c.c[0], term);
        s.c[0] = dd_add(s.c[0], dd_div(dd_mul(term, x->c[0]), dd_of((double) (k - 1))));
        term = dd_div(dd_mul(term, square), dd_of((double) (k * (k - 1))));
    }
    s.e = c.e = 0;
    s.size = c.size = x->size > 1 ? terms : 1;
    for (k = 1; k < s.size; k++) {
        s.c[k] = c.c[k] = dd_of(0.0);
        for (j = 1; j <= k && j < x->size; j++) {
            dd slope = dd_times(x->c[j], (double) j);
            s.c[k] = dd_add(s.c[k], dd_mul(slope, c.c[k - j]));
            c.c[k] = dd_add(c.c[k], dd_mul(slope, s.c[k - j]));
        }
        s.c[k] = dd_div(s.c[k], dd_of((double) k));
        c.c[k] = dd_div(c.c[k], dd_of((double) k));
    }
    *r = want_cosh ? c : s;
}

static inline void series_half(arithmetic *a, series *r, const series *x, double sign)
{
    series up, down, minus;
    series_plain(a, &minus, x);
    if (!a->failed && fabs(minus.c[0].hi) < 1.0) {
        up = minus;
        series_small(r, &up, a->terms, sign > 0.0);
        series_scale(a, r);
        return;
    }
    minus = *x;
    series_times(&minus, -1.0);
    series_exp(a, &up, x);
    series_exp(a, &down, &minus);
    if (a->failed) { *r = *x; return; }
    series_times(&down, sign);
    series_add(a, r, &up, &down);
    r->e -= 1;
}

static inline void series_sinh(arithmetic *a, series *r, const series *x) { series_half(a, r, x, -1.0); }
static inline void series_cosh(arithmetic *a, series *r, const series *x) { series_half(a, r, x, 1.0); }

static inline void series_tanh(arithmetic *a, series *r, const series *x)
{
    series s, c;
    series_sinh(a, &s, x);
    series_cosh(a, &c, x);
    series_div(a, r, &s, &c);
}

static inline void series_power(arithmetic *a, series *r, const series *x, const series *y)
{
    series s;
    series_log(a, &s, x);
    series_mul(a, &s, y, &s);
    series_exp(a, r, &s);
}

static inline void series_abs(arithmetic *a, series *r, const series *x)
{
    (void) a;
    *r = *x;
    if (x->c[0].hi < 0.0) series_times(r, -1.0);
}

static inline double series_value(const series *s)
{
    return ldexp(s->c[0].hi, s->e > 2000 ? 2000 : s->e < -2000 ? -2000 : s->e);
}
