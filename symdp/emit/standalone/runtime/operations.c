static double whole(double value)
{
    return value == floor(value);
}

/* log of the sum of c exp(a), pairs (c, a), around its largest term */
static double log_sum_exp(int size, const double *pairs)
{
    int best = 0;
    double peak = -INFINITY, rest = 0.0;
    for (int k = 0; k < size; k++) {
        double height = pairs[2 * k] > 0.0 ? log(pairs[2 * k]) + pairs[2 * k + 1] : -INFINITY;
        if (height > peak) {
            peak = height;
            best = k;
        }
    }
    double top = pairs[2 * best], at = pairs[2 * best + 1];
    if (!isfinite(at)) return at;
    for (int k = 0; k < size; k++)
        if (k != best) rest += pairs[2 * k] * exp(pairs[2 * k + 1] - at) / top;
    return at + log(top) + log1p(rest);
}

/* the same where the c add up to 1, accurate where it is small */
static double unit_log_sum_exp(int size, const double *pairs)
{
    double total = 0.0;
    for (int k = 0; k < size; k++)
        if (pairs[2 * k + 1] != 0.0) total += pairs[2 * k] * expm1(pairs[2 * k + 1]);
    return total > -0.5 && isfinite(total) ? log1p(total) : log_sum_exp(size, pairs);
}

/* log a - log b, the difference a - b given */
static double log_ratio(double difference, double a, double b)
{
    return fabs(difference) < 0.5 * fabs(b) ? log1p(difference / b) : log(a) - log(b);
}

/* not every density needs them */
static void use_operations(void)
{
    (void) whole;
    (void) log_sum_exp;
    (void) unit_log_sum_exp;
    (void) log_ratio;
}
