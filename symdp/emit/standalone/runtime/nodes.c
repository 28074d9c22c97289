/* n K(t) - epsilon t and its derivatives from weighted points of the loss. */

typedef struct { double sum, rest; } total; /* compensated */

static void include(total *s, double x)
{
    dd t = dd_two(s->sum, x);
    s->sum = t.hi;
    s->rest += t.lo;
}

/* e^x - 1 - x, accurate relative to itself */
static double remainder_of_exp(double x)
{
    double square = x * x, half;
    if (fabs(x) >= 0.5) return expm1(x) - x;
    half = sinh(0.5 * x);
    return 2.0 * half * half + x * square / 6.0 * (1.0 + square / 20.0 * (1.0 + square / 42.0
        * (1.0 + square / 72.0 * (1.0 + square / 110.0 * (1.0 + square / 156.0
        * (1.0 + square / 210.0))))));
}

static int exponent(const law *l, double tilt, int order, double epsilon, double *out)
{
    double top = -INFINITY, shift, residue, excess, drift, binomial, cumulant[HIGHEST + 1];
    total mass = { 0.0, 0.0 }, first = { 0.0, 0.0 }, second = { 0.0, 0.0 }, ratio = { 0.0, 0.0 };
    total moment[HIGHEST + 1];
    dd mean;
    int i, j, k;
    if (!(tilt >= l->lowest_tilt && tilt <= l->highest_tilt)) return TOO_FAR;
    for (i = 0; i < POINTS; i++) {
        double height = LOG_WEIGHT[i] + tilt * CENTRED[i];
        if (height > top) top = height;
    }
    for (i = 0; i < POINTS; i++) {
        double weight = exp(LOG_WEIGHT[i] + tilt * CENTRED[i] - top);
        include(&mass, weight);
        include(&first, weight * CENTRED[i]);
    }
    mass.sum += mass.rest;
    shift = (first.sum + first.rest) / mass.sum;
    for (i = 0; i < POINTS; i++)
        include(&second, exp(LOG_WEIGHT[i] + tilt * CENTRED[i] - top) * (CENTRED[i] - shift));
    residue = (second.sum + second.rest) / mass.sum;
    for (j = 0; j <= order; j++) moment[j].sum = moment[j].rest = 0.0;
    for (i = 0; i < POINTS; i++) {
        double deviation = CENTRED[i] - shift - residue;
        double power = exp(LOG_WEIGHT[i] + tilt * CENTRED[i] - top) / mass.sum * deviation;
        for (j = 2; j <= order; j++) {
            power *= deviation;
            include(&moment[j], power);
        }
    }
    if (top > 30.0)
        excess = top + log(mass.sum);
    else {
        for (i = 0; i < POINTS; i++) {
            double x = tilt * CENTRED[i], weight = exp(LOG_WEIGHT[i]);
            if (x < 1.0)
                include(&ratio, weight * remainder_of_exp(x));
            else
                include(&ratio, exp(LOG_WEIGHT[i] + x) - weight * (1.0 + x));
        }
        excess = log1p((ratio.sum + ratio.rest) / exp(l->log_finite_mass)) + l->log_finite_mass;
    }
    cumulant[0] = 0.0;
    cumulant[1] = shift + residue;
    for (j = 2; j <= order; j++) {
        cumulant[j] = moment[j].sum + moment[j].rest;
        binomial = (double) (j - 1);
        for (k = 2; k < j - 1; k++) {
            cumulant[j] -= binomial * cumulant[k] * (moment[j - k].sum + moment[j - k].rest);
            binomial = binomial * (double) (j - k) / (double) k;
        }
    }
    mean.hi = MEAN_HIGH;
    mean.lo = MEAN_LOW;
    mean = dd_add(dd_times(mean, l->count), dd_of(-epsilon));
    drift = mean.hi + mean.lo;
    for (j = 0; j <= order; j++) out[j] = l->count * cumulant[j];
    out[0] = tilt * drift + l->count * excess;
    if (order > 0) out[1] += drift;
    for (j = 0; j <= order; j++)
        if (!(fabs(out[j]) <= 1.7e308)) return TOO_FAR;
    return DONE;
}

static int law_open(law *l)
{
    l->log_finite_mass = LOG_FINITE_MASS;
    l->lower = DOMAIN_LOWER;
    l->upper = DOMAIN_UPPER;
    l->least = LEAST_LOSS;
    l->largest = LARGEST_LOSS;
    l->lowest_tilt = LOWEST_TILT;
    l->highest_tilt = HIGHEST_TILT;
    return DONE;
}
