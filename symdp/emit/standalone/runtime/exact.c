/* The exact contour accountant: the part that every emitted file shares.
 *
 * M(z) = E exp(z L) is a sum over Gauss nodes of the density, or over the outcomes of a discrete
 * law; delta is the trapezoidal sum along Re z = t, the saddle point, of
 *
 *     M(z)^n exp(-z epsilon) / (z (z + 1)),
 *
 * halved until two sums agree. Where all losses lie on a lattice, the sum runs over one period.
 */

enum { GAUSS = 20, DEEPEST = 60, MOST_NODES = 200000, TILTS = 3 };
static const double NEGLIGIBLE = 1e-18;  /* relative: what a sum leaves out */
static const double CLOSE = 1e-14;       /* relative: a panel and its halves, which are far closer */
static const double AGREED = 1e-13;      /* relative: two sums with one step and with half of it */
static const double MOST_TURN = 10.0;    /* radians by which a loss may turn within a panel */
static const double MOST_WORK = 4e8;     /* exponentials of all sums of one direction */

typedef struct {
    size_t size, room;
    double *loss, *weight;     /* weight: probability under P */
    char *atomic;
    double escaped, top, flat; /* mass at infinity, largest loss */
} law;

typedef struct {
    double tilt, mean, variance, cgf;
} tilted;

static double gauss_place[GAUSS], gauss_weight[GAUSS];
static const char *trouble;
static double spent;  /* exponentials so far */

static int fails(const char *message)
{
    trouble = message;
    return 0;
}

/* In long double: what is wrong with a weight is wrong in every panel alike. */
static void gauss_rule(void)
{
    for (int i = 0; i < GAUSS / 2; i++) {
        long double x = cosl((long double) PI * (i + 0.75L) / (GAUSS + 0.5L)), slope = 1.0L;
        for (int round = 0; round < 60; round++) {
            long double before = 1.0L, value = x;
            for (int k = 2; k <= GAUSS; k++) {
                long double next = ((2 * k - 1) * x * value - (k - 1) * before) / k;
                before = value;
                value = next;
            }
            slope = GAUSS * (before - x * value) / ((1.0L - x) * (1.0L + x));
            long double step = value / slope;
            x -= step;
            if (fabsl(step) < 1e-18L) break;
        }
        int other = GAUSS - 1 - i;
        gauss_place[i] = (double) x;
        gauss_place[other] = -gauss_place[i];
        gauss_weight[i] = (double) (2.0L / ((1.0L - x) * (1.0L + x) * slope * slope));
        gauss_weight[other] = gauss_weight[i];
    }
}

/* log density under the law asked for and the loss at a place of a piece */
static void look(int piece, double x, const double *c, int side, double *log_p, double *loss)
{
    double out[3];
    PIECES[piece](x, c, out);
    *log_p = side > 0 ? out[0] : out[1];
    *loss = side > 0 ? out[2] : -out[2];
    if (isnan(*log_p)) *log_p = -INFINITY;
}

static int add_node(law *self, double loss, double weight, int atomic)
{
    if (!(weight > 0.0)) return 1;
    if (loss == INFINITY) {
        self->escaped += weight;
        return 1;
    }
    if (self->size >= MOST_NODES) return fails("the loss needs too many nodes");
    if (self->size == self->room) {
        self->room = 2 * self->room + 1024;
        self->loss = realloc(self->loss, self->room * sizeof(double));
        self->weight = realloc(self->weight, self->room * sizeof(double));
        self->atomic = realloc(self->atomic, self->room);
        if (!self->loss || !self->weight || !self->atomic) return fails("no memory");
    }
    self->loss[self->size] = loss;
    self->weight[self->size] = weight;
    self->atomic[self->size++] = (char) atomic;
    if (loss > self->top) self->top = loss;
    return 1;
}

/* What a panel has to resolve: three tilts, and losses that turn with a frequency. */
typedef struct {
    const double *c;
    int piece, side;
    double tilts[TILTS], peak[TILTS], total[TILTS], frequency;
} work;

typedef struct {
    double log_p[GAUSS], loss[GAUSS], sums[TILTS], turn, share;
} panel;

static void measure(const work *w, double a, double b, panel *p)
{
    double least = INFINITY, most = -INFINITY;
    for (int k = 0; k < TILTS; k++) p->sums[k] = 0.0;
    for (int i = 0; i < GAUSS; i++) {
        double x = 0.5 * (a + b) + 0.5 * (b - a) * gauss_place[i];
        look(w->piece, x, w->c, w->side, &p->log_p[i], &p->loss[i]);
        if (p->log_p[i] == -INFINITY) continue;
        least = fmin(least, p->loss[i]);
        most = fmax(most, p->loss[i]);
        for (int k = 0; k < TILTS; k++) {
            double tilt = w->tilts[k] == 0.0 ? 0.0 : w->tilts[k] * p->loss[i];
            p->sums[k] += 0.5 * (b - a) * gauss_weight[i] * exp(p->log_p[i] + tilt - w->peak[k]);
        }
    }
    p->turn = most > least ? w->frequency * (most - least) : 0.0;
    p->share = 0.0;
    for (int k = 0; k < TILTS; k++) p->share = fmax(p->share, p->sums[k] / w->total[k]);
}

static int divide(law *self, const work *w, double a, double b, const panel *whole, int depth)
{
    panel left, right;
    double middle = 0.5 * (a + b), off = 0.0;
    measure(w, a, middle, &left);
    measure(w, middle, b, &right);
    for (int k = 0; k < TILTS; k++) {
        double difference = fabs(left.sums[k] + right.sums[k] - whole->sums[k]);
        off = fmax(off, difference / w->total[k]);
    }
    if (isnan(off)) return fails("the density has no value somewhere");
    double share = fmax(left.share, right.share);
    int turns = share > NEGLIGIBLE && fmax(left.turn, right.turn) > MOST_TURN;
    if ((off > CLOSE || turns) && depth < DEEPEST && middle > a && middle < b)
        return divide(self, w, a, middle, &left, depth + 1)
            && divide(self, w, middle, b, &right, depth + 1);
    if (off > 1e3 * CLOSE) return fails("the density is too rough for this file");
    if (share < 1e-3 * NEGLIGIBLE) return 1;
    for (int half = 0; half < 2; half++) {
        const panel *p = half ? &right : &left;
        for (int i = 0; i < GAUSS; i++) {
            double weight = 0.25 * (b - a) * gauss_weight[i] * exp(p->log_p[i]);
            if (!add_node(self, p->loss[i], weight, FLAT[w->piece])) return 0;
        }
    }
    return 1;
}

static int rising(const void *one, const void *other)
{
    double a = *(const double *) one, b = *(const double *) other;
    return (a > b) - (a < b);
}

/* Places between which a piece is first looked at: around the modes of P and Q, geometrically. */
static size_t outline(int piece, const double *c, double low, double high, double *places)
{
    enum { POWERS = 71 };
    double grid[2 * POWERS + 3];
    size_t size = 0, count = 0;
    double anchor = isfinite(low) ? low : isfinite(high) ? high : 0.0;
    grid[size++] = anchor;
    for (int k = 0; k < POWERS; k++) {
        grid[size++] = anchor + ldexp(1.0, k - 30);
        grid[size++] = anchor - ldexp(1.0, k - 30);
    }
    qsort(grid, size, sizeof(double), rising);
    for (int side = 1; side >= -1; side -= 2) {
        double values[2 * POWERS + 3], loss;
        for (size_t i = 0; i < size; i++) {
            values[i] = -INFINITY;
            if (grid[i] > low && grid[i] < high)
                look(piece, grid[i], c, side, &values[i], &loss);
        }
        for (size_t i = 1; i + 1 < size; i++) {
            if (!(values[i] >= values[i - 1] && values[i] >= values[i + 1])) continue;
            if (values[i] == -INFINITY) continue;
            double a = grid[i - 1], b = grid[i + 1], best = grid[i], peak = values[i];
            for (int round = 0; round < 100; round++) {  /* golden section */
                double x = best - a > b - best ? best - 0.381966 * (best - a)
                                               : best + 0.381966 * (b - best), value;
                if (!(x > low && x < high)) break;
                look(piece, x, c, side, &value, &loss);
                if (value > peak) {
                    if (x < best) b = best; else a = best;
                    best = x;
                    peak = value;
                } else if (x < best) a = x; else b = x;
            }
            int scale = -40;
            for (; scale < 40; scale++) {  /* where the density has fallen by a part */
                double x = best + ldexp(1.0, scale), right = -INFINITY, left = -INFINITY;
                if (x < high) look(piece, x, c, side, &right, &loss);
                x = best - ldexp(1.0, scale);
                if (x > low) look(piece, x, c, side, &left, &loss);
                if (fmax(left, right) < peak - 0.5) break;
            }
            for (int k = scale - 2; k <= scale + 40; k++)
                for (int sign = -1; sign <= 1; sign += 2) {
                    double x = best + sign * ldexp(1.0, k);
                    if (x > low && x < high && count < 4000) places[count++] = x;
                }
            if (best > low && best < high && count < 4000) places[count++] = best;
        }
    }
    if (isfinite(low)) places[count++] = low;
    if (isfinite(high)) places[count++] = high;
    qsort(places, count, sizeof(double), rising);
    return count;
}

static int add_interval(law *self, work *w, double low, double high)
{
    static double places[4096];
    static panel panels[4096];
    size_t count = outline(w->piece, w->c, low, high, places);
    if (count < 2) return fails("no mass is seen on a piece of the support");
    for (int k = 0; k < TILTS; k++) w->peak[k] = -INFINITY;
    for (size_t i = 0; i + 1 < count; i++)
        for (int j = 0; j < GAUSS; j += 3) {
            double x = 0.5 * (places[i] + places[i + 1])
                + 0.5 * (places[i + 1] - places[i]) * gauss_place[j];
            double log_p, loss;
            look(w->piece, x, w->c, w->side, &log_p, &loss);
            if (log_p == -INFINITY) continue;
            for (int k = 0; k < TILTS; k++)
                w->peak[k] = fmax(w->peak[k], log_p + (w->tilts[k] == 0.0 ? 0.0 : w->tilts[k] * loss));
        }
    if (w->peak[0] == -INFINITY) return 1;
    for (int k = 0; k < TILTS; k++) w->total[k] = 1.0;
    double totals[TILTS] = { 0.0 };
    for (size_t i = 0; i + 1 < count; i++) {
        measure(w, places[i], places[i + 1], &panels[i]);
        for (int k = 0; k < TILTS; k++) totals[k] += panels[i].sums[k];
    }
    for (int k = 0; k < TILTS; k++) {
        if (!isfinite(totals[k])) return fails("far");
        w->total[k] = fmax(totals[k], 1e-300);
    }
    for (size_t i = 0; i + 1 < count; i++) {
        if (panels[i].share > 1e-9 && (i == 0 || i + 2 == count) && !isfinite(i ? high : low))
            return fails("far");  /* no moment generating function so far out */
        if (!divide(self, w, places[i], places[i + 1], &panels[i], 0)) return 0;
    }
    return 1;
}

static int add_integers(law *self, work *w, double low, double high)
{
    double start = isfinite(low) ? low : isfinite(high) ? high : 0.0, best = start, peak, loss;
    look(w->piece, start, w->c, w->side, &peak, &loss);
    for (int direction = -1; direction <= 1; direction += 2) {
        double peaks[TILTS] = { -INFINITY, -INFINITY, -INFINITY };
        double x = direction < 0 ? best - 1.0 : best;
        for (long step = 0; x >= low && x <= high; x += direction, step++) {
            double log_p;
            int counts = step < 64;
            look(w->piece, x, w->c, w->side, &log_p, &loss);
            for (int k = 0; k < TILTS; k++) {
                double height = log_p + (w->tilts[k] == 0.0 ? 0.0 : w->tilts[k] * loss);
                peaks[k] = fmax(peaks[k], height);
                counts |= height > peaks[k] - 60.0;
            }
            if (!counts) break;
            if (step > MOST_NODES) return fails("far");
            if (!add_node(self, loss, exp(log_p), 1)) return 0;
        }
    }
    return 1;
}

/* The law for tilts from 0 to `reach` and frequencies up to one. */
static int build(law *self, const double *c, int side, double reach, double frequency)
{
    self->size = 0;
    self->escaped = 0.0;
    self->top = -INFINITY;
    for (int i = 0; i < COUNT; i++) {
        int kind = side * KIND[i];
        if (kind < 0) continue;
        work w = { c, i, side, { 0.0, 0.5 * reach, reach }, { 0 }, { 1, 1, 1 }, 0.0 };
        w.frequency = FLAT[i] ? 0.0 : frequency;
        if (kind > 0) w.tilts[1] = w.tilts[2] = 0.0;
        double low = c[LOWER[i]], high = c[UPPER[i]];
        if (INTEGERS ? !add_integers(self, &w, low, high)
                     : POINTS ? !add_node(self, side > 0 ? c[LOSS[i]] : -c[LOSS[i]],
                                          c[side > 0 ? LOWER[i] : UPPER[i]], 1)
                              : !add_interval(self, &w, low, high))
            return 0;
    }
    long double total = self->escaped;
    for (size_t j = 0; j < self->size; j++) total += self->weight[j];
    if (!(fabsl(total - 1.0L) < 1e-9L)) return fails("the density does not add up to one here");
    self->escaped = (double) (self->escaped / total);
    for (size_t j = 0; j < self->size; j++) 
        self->weight[j] = (double) (self->weight[j] / total);
    return 1;
}

static tilted tilt_law(const law *self, double t)
{
    double top = -INFINITY;
    long double sum = 0.0L, growth = -self->escaped, first = 0.0L, second = 0.0L;
    for (size_t j = 0; j < self->size; j++) top = fmax(top, t * self->loss[j]);
    for (size_t j = 0; j < self->size; j++) {
        double u = self->weight[j] * exp(t * self->loss[j] - top);
        sum += u;
        first += u * self->loss[j];
        growth += self->weight[j] * expm1(fmin(t * self->loss[j], 700.0));
    }
    double mean = (double) (first / sum);
    for (size_t j = 0; j < self->size; j++) {
        double u = self->weight[j] * exp(t * self->loss[j] - top), d = self->loss[j] - mean;
        second += u * d * d;
    }
    double cgf = top > 300.0 ? top + (double) logl(sum) : (double) log1pl(growth);
    tilted found = { t, mean, (double) (second / sum), cgf };
    return found;
}

/* log(1 + w) for any complex w but -1 */
static double complex log_one_plus(double complex w)
{
    double a = creal(w), b = cimag(w), square = a * (2.0 + a) + b * b;
    double modulus = square > -0.75 ? 0.5 * log1p(square) : log(hypot(1.0 + a, b));
    return modulus + I * atan2(b, 1.0 + a);
}

typedef struct {
    const law *base;
    double *weight, *deviation;
    tilted at;
    double count, drift;  /* n E_t L - epsilon */
} line;

/* [M(t + iy) / M(t)]^n exp(-iy epsilon) */
static double complex on_line(const line *self, double y)
{
    double real = 0.0, imaginary = 0.0;
    spent += (double) self->base->size;
    for (size_t j = 0; j < self->base->size; j++) {
        double angle = y * self->deviation[j], half = sin(0.5 * angle);
        real -= 2.0 * self->weight[j] * half * half;
        imaginary += self->weight[j] * sin(angle);
    }
    double complex logarithm = self->count * log_one_plus(real + I * imaginary);
    return cexp(logarithm + I * y * self->drift);
}

/* 1: done, 0: trouble, -1: the nodes must resolve higher frequencies. */
static int sum_line(const line *self, double scale, double highest, double *found)
{
    double t = self->at.tilt, atoms = 0.0;
    for (size_t j = 0; j < self->base->size; j++)
        if (self->base->atomic[j]) atoms += self->weight[j];
    double recurring = pow(atoms, self->count);
    double h = 2.0 * PI * t / (40.0 - fmin(scale, 0.0));
    if (self->at.variance > 0.0)
        h = fmin(h, 0.5 / sqrt(self->count * self->at.variance + 1.0 / (t * t)));
    for (int round = 0; round < 12; round++, h *= 0.5) {
        double even = 0.5 / (t * (1.0 + t)), odd = 0.0, settled = INFINITY;
        for (long k = 1;; k++) {
            double y = 0.5 * h * k;
            if (y > highest) return -1;
            if (spent > MOST_WORK)
                return fails("the characteristic function does not die out: too few steps");
            double complex z = t + I * y, value = on_line(self, y) / (z * (1.0 + z));
            if (k % 2) odd += creal(value); else even += creal(value);
            if (cabs(value) > NEGLIGIBLE * fabs(even)) settled = INFINITY;
            else if (isinf(settled)) settled = y;
            if (y > 1.5 * settled && k > 40) {
                if (recurring / y > 1e-14 * h * fabs(even))
                    return fails("the atoms' part of the characteristic function recurs: too few "
                                 "steps for this file");
                break;
            }
        }
        *found = 0.5 * h * (even + odd) / PI;
        if (fabs(even - odd) <= AGREED * fabs(even)) return *found > 0.0 ? 1 : fails("no digit");
    }
    return fails("the trapezoidal sums do not agree");
}

/* The spacing of the lattice on which all losses lie, 0 for none. */
static double spacing(const law *self, double *least)
{
    if (self->size == 0) return 0.0;
    double *sorted = malloc(self->size * sizeof(double)), s = INFINITY;
    if (!sorted) return 0.0;
    memcpy(sorted, self->loss, self->size * sizeof(double));
    qsort(sorted, self->size, sizeof(double), rising);
    double first = sorted[0], last = sorted[self->size - 1], close = 1e-12 * (fabs(first) + fabs(last));
    for (size_t j = 1; j < self->size; j++)
        if (sorted[j] - sorted[j - 1] > close) s = fmin(s, sorted[j] - sorted[j - 1]);
    if (isinf(s)) s = fmax(fabs(first), 1.0);  /* one loss */
    double steps = floor((last - first) / s + 0.5);
    if (steps > 0.0) s = (last - first) / steps;
    for (size_t j = 0; s > 0.0 && j < self->size; j++) {
        double place = (sorted[j] - first) / s;
        if (fabs(place - floor(place + 0.5)) > 1e-9) s = 0.0;
    }
    free(sorted);
    *least = first;
    return s;
}

static int sum_period(const line *self, double epsilon, double next, double s, double *found)
{
    double t = self->at.tilt, d = next - epsilon, before = 0.0;
    for (long size = 64; spent + (double) size * self->base->size < MOST_WORK; size *= 2) {
        double total = 0.0;
        for (long k = 0; k <= size / 2; k++) {
            double y = 2.0 * PI * k / (s * size);
            double complex z = t + I * y, a = cexp(-z * s);
            double complex kernel = (-expm1(-d) - a * exp(-d) * expm1(d - s))
                / ((1.0 - a) * (1.0 - a * exp(-s)));
            double share = k == 0 || 2 * k == size ? 0.5 : 1.0;
            total += share * creal(on_line(self, y) * kernel);
        }
        *found = 2.0 * total / size;
        if (fabs(*found - before) <= AGREED * fabs(*found)) return *found > 0.0 ? 1 : fails("no digit");
        before = *found;
    }
    return fails("the sums over one period do not agree");
}

static int sum_at(const law *self, double epsilon, double count, double t, double s, double least,
                  double highest, double *log_delta)
{
    line own = { self, malloc(self->size * sizeof(double)), malloc(self->size * sizeof(double)),
                 tilt_law(self, t), count, 0.0 };
    double sum = 0.0, top = -INFINITY, value = 0.0, next = epsilon;
    if (!own.weight || !own.deviation) return fails("no memory");
    if (s > 0.0) next = count * least + s * (floor((epsilon - count * least) / s) + 1.0);
    own.drift = count * own.at.mean - next;
    for (size_t j = 0; j < self->size; j++) top = fmax(top, t * self->loss[j]);
    for (size_t j = 0; j < self->size; j++) {
        own.deviation[j] = self->loss[j] - own.at.mean;
        sum += own.weight[j] = self->weight[j] * exp(t * self->loss[j] - top);
    }
    for (size_t j = 0; j < self->size; j++) own.weight[j] /= sum;
    double scale = count * own.at.cgf - t * next;
    int done = s > 0.0 ? sum_period(&own, epsilon, next, s, &value)
                       : sum_line(&own, scale, highest, &value);
    *log_delta = scale + log(value);
    free(own.weight);
    free(own.deviation);
    return done;
}

/* log delta of n steps in one direction: side 1 for (P, Q) of this file, -1 for (Q, P). */
static int log_delta_of(const double *c, int side, double epsilon, double count, double *log_delta)
{
    law own = { 0 };
    double low = 0.0, high = INFINITY, reach = 1.0, frequency = 0.0, largest = c[LARGEST];
    if (side < 0) largest = -c[LEAST];
    int done = 0;
    spent = 0.0;
    trouble = "the saddle point was not found";
    for (int round = 0; round < 60 && !done; round++) {
        if (!build(&own, c, side, reach, frequency)) {
            if (strcmp(trouble, "far") != 0) break;
            trouble = "the moment generating function ends before the saddle point";
            high = reach;
            reach = 0.5 * (low + high);
            if (high - low < 1e-6 * high) break;
            continue;
        }
        double least = 0.0, s = 0.0;
        int atoms = 1;
        for (size_t j = 0; j < own.size; j++) atoms &= own.atomic[j];
        double escaped = -expm1(count * log1p(-own.escaped));
        if (own.size == 0) largest = -INFINITY;
        else if (INTEGERS || POINTS || atoms) largest = fmax(largest, own.top);
        if (own.size == 0 || epsilon >= count * largest) {
            *log_delta = log(escaped);
            done = 1;
            break;
        }
        if (atoms) {
            s = spacing(&own, &least);
            if (!(s > 0.0)) {
                trouble = "the losses are single values off any lattice, which this file cannot add";
                break;
            }
        }
        double farthest = s > 0.0 ? fmin(reach, 50.0 / s) : reach, a = 0.0, b = farthest;
        tilted at = tilt_law(&own, b);
        if (count * at.mean - epsilon - 1.0 / b - 1.0 / (1.0 + b) < 0.0 && b == reach) {
            low = reach;
            reach = isinf(high) ? 2.0 * reach : 0.5 * (low + high);
            if (reach > 1e6 || high - low < 1e-6 * high) break;
            continue;
        }
        for (int k = 0; k < 60; k++) {
            double t = 0.5 * (a + b);
            at = tilt_law(&own, t);
            if (count * at.mean - epsilon - 1.0 / t - 1.0 / (1.0 + t) > 0.0) b = t; else a = t;
        }
        at = tilt_law(&own, b);
        if (s == 0.0 && frequency == 0.0) {
            frequency = 30.0 / sqrt(count * at.variance);
            continue;
        }
        done = sum_at(&own, epsilon, count, b, s, least, frequency, log_delta);
        if (done < 0) {
            done = 0;
            frequency *= 3.0;
            trouble = "the characteristic function does not die out: too few steps for this file";
            continue;
        }
        if (!done) break;
        if (escaped > 0.0) {
            double one = fmax(log(escaped), *log_delta), other = fmin(log(escaped), *log_delta);
            *log_delta = one + log1p(exp(other - one));
        }
    }
    free(own.loss);
    free(own.weight);
    free(own.atomic);
    return done;
}

static int read_number(const char *text, double *value)
{
    char *rest;
    *value = strtod(text, &rest);
    if (rest != text && *rest == '/') {
        const char *below = rest + 1;
        double divisor = strtod(below, &rest);
        if (rest == below) return 0;
        *value /= divisor;
    }
    return rest != text && *rest == '\0' && isfinite(*value);
}

static int complain(const char *what, const char *name)
{
    fprintf(stderr, "%s%s\n", what, name);
    return 2;
}

int main(int argc, char **argv)
{
    double p[ARGUMENTS + 1] = { 0 }, epsilon = 0.0, count = 0.0, c[CONSTANTS + 1];
    char given[ARGUMENTS + 3] = { 0 };
    int sides = 3;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "remove")) sides = 1;
        else if (!strcmp(argv[i], "add")) sides = 2;
        else if (strcmp(argv[i], "both")) {
            const char *equals = strchr(argv[i], '=');
            int place = -1;
            for (int k = 0; equals && k < ARGUMENTS + 2; k++)
                if (strlen(NAMES[k]) == (size_t) (equals - argv[i])
                    && !strncmp(NAMES[k], argv[i], (size_t) (equals - argv[i])))
                    place = k;
            if (place < 0) return complain("unknown: ", argv[i]);
            double *value = place == 0 ? &epsilon : place == 1 ? &count : &p[place - 2];
            if (!read_number(equals + 1, value)) return complain("no finite number: ", argv[i]);
            given[place] = 1;
        }
    }
    for (int k = 0; k < ARGUMENTS + 2; k++)
        if (!given[k]) return complain("a value is missing: ", NAMES[k]);
    if (!(count >= 1.0 && count == floor(count) && count < 1e15))
        return complain("n must be a whole number of 1 or more", "");
    const char *wrong = check(p);
    if (wrong) return complain(wrong, "");
    gauss_rule();
    use_operations();
    constants(p, c);
    double best = -INFINITY;
    for (int side = 0; side < 2; side++) {
        double found;
        if (!(sides & (1 << side))) continue;
        if (!log_delta_of(c, side ? -REMOVE : REMOVE, epsilon, count, &found)) {
            fprintf(stderr, "no answer: %s\n", trouble);
            return 1;
        }
        best = fmax(best, found);
    }
    if (best > -700.0 || best == -INFINITY) printf("delta = %.15g\n", exp(best));
    else printf("delta = exp(%.15g)\n", best);
    printf("exact to about 1e-12, relative: the contour integral by the trapezoidal rule\n");
    return 0;
}
