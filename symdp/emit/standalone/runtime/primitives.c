typedef struct { double *at; long size; } vector;

static struct { void **blocks; long count, room; jmp_buf out; const char *trouble; } held;

static void release(long mark)
{
    while (held.count > mark) free(held.blocks[--held.count]);
}

static void fail(const char *message)
{
    held.trouble = message;
    longjmp(held.out, 1);
}

static void *block(size_t bytes)
{
    if (held.count == held.room) {
        void **more = realloc(held.blocks, (size_t) (2 * held.room + 64) * sizeof(void *));
        if (!more) fail("no memory");
        held.blocks = more;
        held.room = 2 * held.room + 64;
    }
    void *found = calloc(bytes ? bytes : 1, 1);
    if (!found) fail("no memory");
    return held.blocks[held.count++] = found;
}

static vector room(double size)
{
    vector v = { block((size_t) size * sizeof(double)), (long) size };
    return v;
}

/* a vector that outlives all others since a mark */
static vector kept_alone(vector v, long mark)
{
    for (long i = mark; i < held.count; i++)
        if (held.blocks[i] == (void *) v.at) {
            held.blocks[i] = held.blocks[mark];
            held.blocks[mark++] = v.at;
            break;
        }
    release(mark);
    return v;
}

static double absolute(double x) { return fabs(x); }
static double power(double a, double b) { return pow(a, b); }
static double maximum(double a, double b) { return a > b || isnan(a) ? a : b; }
static double minimum(double a, double b) { return a < b || isnan(a) ? a : b; }
static double size(vector v) { return (double) v.size; }

static vector filled(double count, double value)
{
    vector v = room(count);
    for (long i = 0; i < v.size; i++) v.at[i] = value;
    return v;
}

static vector steps(double count)
{
    vector v = room(count);
    for (long i = 0; i < v.size; i++) v.at[i] = (double) i;
    return v;
}

static int rising(const void *one, const void *other)
{
    double a = *(const double *) one, b = *(const double *) other;
    return (a > b) - (a < b);
}

static vector gathered(vector v, double start, double count)
{
    vector r = room(count);
    for (long i = 0; i < r.size; i++) r.at[i] = v.at[i + (long) start];
    return r;
}

static vector ordered(vector v)
{
    vector r = gathered(v, 0.0, (double) v.size);
    qsort(r.at, (size_t) r.size, sizeof(double), rising);
    return r;
}

static const double *ranked;

static int rising_at(const void *one, const void *other)
{
    double i = *(const double *) one, j = *(const double *) other;
    return rising(&ranked[(long) i], &ranked[(long) j]);
}

static vector ranking(vector v)
{
    vector r = steps((double) v.size);
    ranked = v.at;
    qsort(r.at, (size_t) r.size, sizeof(double), rising_at);
    return r;
}

static vector taken(vector v, vector places)
{
    vector r = room((double) places.size);
    for (long i = 0; i < r.size; i++) r.at[i] = v.at[(long) places.at[i]];
    return r;
}

static vector repeated(vector v, double n)
{
    vector r = room((double) v.size * n);
    for (long i = 0; i < r.size; i++) r.at[i] = v.at[i / (long) n];
    return r;
}

static vector tiled(vector v, double n)
{
    vector r = room((double) v.size * n);
    for (long i = 0; i < r.size; i++) r.at[i] = v.at[i % v.size];
    return r;
}

static vector joined(vector a, vector b)
{
    vector r = room((double) (a.size + b.size));
    for (long i = 0; i < r.size; i++) r.at[i] = i < a.size ? a.at[i] : b.at[i - a.size];
    return r;
}

static vector kept(vector v, vector mask)
{
    vector r = room((double) v.size);
    r.size = 0;
    for (long i = 0; i < v.size; i++) if (mask.at[i] != 0.0) r.at[r.size++] = v.at[i];
    return r;
}

static vector sums_of(vector v, double n)
{
    vector r = room((double) v.size / n);
    for (long i = 0; i < v.size; i++) r.at[i / (long) n] += v.at[i];
    return r;
}

static vector largest_of(vector v, double n)
{
    vector r = filled((double) v.size / n, -INFINITY);
    for (long i = 0; i < v.size; i++) r.at[i / (long) n] = maximum(v.at[i], r.at[i / (long) n]);
    return r;
}

static vector binned(vector places, vector v, double count)
{
    vector r = room(count);
    for (long i = 0; i < v.size; i++) r.at[(long) places.at[i]] += v.at[i];
    return r;
}

/* the sums on a grid that closes of numbers, each spread as a Gaussian about its place:
 * exp(-c (o + k)^2) is exp(-c o^2) exp(-2 c o k) exp(-c k^2), the middle one a power */
static vector spread_over(vector v, vector places, vector off, double count, double wide, double decay)
{
    vector r = room(count), fixed = room(wide);
    long many = r.size, number = fixed.size;
    double k = 0.5 * wide - 1.0;
    for (long j = 0; j < number; j++) fixed.at[j] = exp(-decay * (k - (double) j) * (k - (double) j));
    for (long i = 0; i < v.size; i++) {
        double step = exp(2.0 * decay * off.at[i]);
        double share = v.at[i] * exp(-decay * off.at[i] * (off.at[i] + 2.0 * k));
        long at = (long) fmod(places.at[i] - k, count);
        if (at < 0) at += many;
        for (long j = 0; j < number; j++) {
            r.at[at] += share * fixed.at[j];
            share *= step;
            at = at + 1 == many ? 0 : at + 1;
        }
    }
    return r;
}

/* the discrete Fourier transform of a power of 2 numbers, or its inverse: real parts, then imaginary ones */
static vector spectrum(vector real, vector imaginary, double direction)
{
    long n = real.size;
    vector v = room(2.0 * (double) n), c = room(0.5 * (double) n), s = room(0.5 * (double) n);
    double *r = v.at;
    for (long i = 0; i < n / 2; i++) {
        c.at[i] = cos(2.0 * PI * (double) i / (double) n);
        s.at[i] = -direction * sin(2.0 * PI * (double) i / (double) n);
    }
    for (long i = 0, j = 0; i < n; i++) {  /* in the order of reversed bits */
        long bit = n >> 1;
        r[j] = real.at[i];
        r[n + j] = imaginary.at[i];
        for (; j & bit; bit >>= 1) j ^= bit;
        j |= bit;
    }
    for (long half = 1, stride = n >> 1; half < n; half *= 2, stride >>= 1)
        for (long start = 0; start < n; start += 2 * half)
            for (long k = 0; k < half; k++) {
                long i = start + k, j = i + half;
                double a = c.at[k * stride], b = s.at[k * stride];
                double x = a * r[j] - b * r[n + j], y = a * r[n + j] + b * r[j];
                r[j] = r[i] - x;
                r[n + j] = r[n + i] - y;
                r[i] += x;
                r[n + i] += y;
            }
    if (direction < 0.0) for (long i = 0; i < 2 * n; i++) r[i] /= (double) n;
    return v;
}

static double log_ratio(double difference, double a, double b)
{
    return fabs(difference) < 0.5 * fabs(b) ? log1p(difference / b) : log(a) - log(b);
}

/* log of the sum of c exp(a), pairs (c, a), around its largest term */
static double log_sum_exp(int count, const double *pairs)
{
    int best = 0;
    double peak = -INFINITY, rest = 0.0;
    for (int k = 0; k < count; k++) {
        double height = pairs[2 * k] > 0.0 ? log(pairs[2 * k]) + pairs[2 * k + 1] : -INFINITY;
        if (height > peak) {
            peak = height;
            best = k;
        }
    }
    double top = pairs[2 * best], at = pairs[2 * best + 1];
    if (!isfinite(at)) return at;
    for (int k = 0; k < count; k++)
        if (k != best) rest += pairs[2 * k] * exp(pairs[2 * k + 1] - at) / top;
    return at + log(top) + log1p(rest);
}

/* the same where the c add up to 1, accurate where it is small */
static double unit_log_sum_exp(int count, const double *pairs)
{
    double sum = 0.0;
    for (int k = 0; k < count; k++)
        if (pairs[2 * k + 1] != 0.0) sum += pairs[2 * k] * expm1(pairs[2 * k + 1]);
    return sum > -0.5 && isfinite(sum) ? log1p(sum) : log_sum_exp(count, pairs);
}

static double careful(int count, const double *parts)
{
    double sum = 0.0, most = 0.0;
    for (int k = 0; k < count; k++) {
        sum += parts[k];
        most = maximum(most, fabs(parts[k]));
    }
    if (fabs(sum) < 1e-3 * most) fail("digits cancel in double precision at these values; the package answers");
    return sum;
}

/* by Horner's rule, even and odd powers apart; the highest power is first */
static double polynomial(vector c, double x)
{
    double square = x * x;
    int k = c.size % 2 ? 1 : 2;
    double odd = k == 1 ? 0.0 : c.at[0], even = c.at[k - 1];
    for (; k < c.size; k += 2) {
        odd = odd * square + c.at[k];
        even = even * square + c.at[k + 1];
    }
    return odd * x + even;
}
