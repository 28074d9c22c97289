/* n K(t) - epsilon t and its derivatives from the closed form. */

static int expansion(const law *l, dd tilt, int terms, series *s)
{
    arithmetic a = { 0, 0, 0 };
    int i, k, j, last;
    for (i = 0; i < REMOVABLE; i++) {
        dd distance = dd_add(tilt, dd_neg(l->removable[i]));
        double tail = 0.0;
        if (!(fabs(distance.hi) < 0.125)) continue;
        /* Near a removable singularity K is expanded about it, and the series moved to t. */
        a.terms = terms + REACH;
        a.removable = 1;
        a.failed = 0;
        cgf_tape(&a, l->removable[i], l->p, s);
        if (a.failed) continue;
        for (k = s->size; k < a.terms; k++) s->c[k] = dd_of(0.0);
        last = a.terms - 4; /* the last terms are spent on dividing through */
        for (k = last - 4; k < last; k++) {
            double size = fabs(s->c[k].hi) * pow(fabs(distance.hi), (double) (k - terms + 1));
            if (size > tail) tail = size;
        }
        if (distance.hi != 0.0 && !(tail < 1e-24 * fabs(s->c[2].hi))) continue;
        for (k = 0; k < terms; k++)
            for (j = last - 2; j >= k; j--)
                s->c[j] = dd_add(s->c[j], dd_mul(distance, s->c[j + 1]));
        s->size = terms;
        return DONE;
    }
    a.terms = terms;
    a.removable = 0;
    a.failed = 0;
    cgf_tape(&a, tilt, l->p, s);
    return a.failed ? TOO_FAR : DONE;
}

static int exponent(const law *l, double tilt, int order, double epsilon, double *out)
{
    series s;
    double factorial = 1.0;
    dd value, product;
    int j;
    if (expansion(l, dd_of(tilt), order + 1, &s) != DONE) return TOO_FAR;
    for (j = 0; j <= order; j++) {
        if (j > 0) factorial *= (double) j;
        value = j < s.size ? dd_ldexp(s.c[j], s.e) : dd_of(0.0);
        value = dd_times(dd_times(value, factorial), l->count);
        if (j == 0) {
            product.hi = epsilon * tilt;
            product.lo = fma(epsilon, tilt, -product.hi);
            value = dd_add(value, dd_neg(product));
        }
        if (j == 1) value = dd_add(value, dd_of(-epsilon));
        out[j] = value.hi + value.lo;
        if (!(fabs(out[j]) <= 1.7e308)) return TOO_FAR;
    }
    return DONE;
}

static int law_open(law *l)
{
    arithmetic a = { 1, 0, 0 };
    series s;
    double *ends[4];
    int i;
    ends[0] = &l->lower; ends[1] = &l->upper; ends[2] = &l->least; ends[3] = &l->largest;
    fact_tapes[0](&a, dd_of(0.0), l->p, &s);
    if (s.c[0].hi > 0.0) {
        series_log(&a, &s, &s);
        l->log_finite_mass = series_value(&s);
    } else
        l->log_finite_mass = -INFINITY;
    for (i = 0; i < 4; i++) {
        fact_tapes[i + 1](&a, dd_of(0.0), l->p, &s);
        *ends[i] = series_value(&s);
    }
    for (i = 0; i < REMOVABLE; i++) {
        removable_tapes[i](&a, dd_of(0.0), l->p, &s);
        l->removable[i] = dd_ldexp(s.c[0], s.e);
    }
    return a.failed ? BAD_INPUT : DONE;
}
