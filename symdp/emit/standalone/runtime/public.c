static const char *open_laws(double n, const double *given, const char *direction, Law **laws, int *count)
{
    int sides = !strcmp(direction, "remove") ? 1 : !strcmp(direction, "add") ? 2
        : !strcmp(direction, "both") ? 3 : 0;
    vector p = room(ARGUMENTS), c = room(CONSTANTS);
    *count = 0;
    if (!sides) return "direction must be remove, add or both";
    if (!(n >= 1.0 && n == floor(n) && n < 1e15)) return "n must be a whole number from 1 to 1e15";
    for (int i = 0; i < ARGUMENTS; i++) {
        p.at[i] = given[i];
        if (!isfinite(given[i])) return "every parameter must be a finite number";
    }
    const char *wrong = check(p);
    if (wrong) return wrong;
    constants(p, c);
    if (ONE_LAW) sides = 1;
    for (int side = 0; side < 2; side++)
        if (sides & (1 << side)) laws[(*count)++] = law_of(c, side ? -REMOVE : REMOVE, n);
    return NULL;
}

static double log_delta_at(Law **laws, int count, double epsilon)
{
    double best = -INFINITY;
    if (!isfinite(epsilon)) fail("epsilon must be a finite number");
    double least = -INFINITY;  /* of the laws before */
    for (int i = 0; i < count; i++) {
        best = maximum(best, log_delta_beside(laws[i], epsilon, least));
        least = maximum(least, laws[i]->lower);
    }
    return best;
}

/* Answer `many` questions: delta at each epsilon, its logarithm, or epsilon at each delta.
 * ends: NULL, or between which numbers the last one lies, and its logarithm where it is delta. */
static const char *answer(char what, const double *asked, long many, double n, const double *given,
                          const char *direction, double *found, double *ends)
{
    Law *laws[2];
    int count;
    if (setjmp(held.out)) {
        release(0);
        return held.trouble;
    }
    const char *wrong = open_laws(n, given, direction, laws, &count);
    for (long k = 0; !wrong && k < many; k++) {
        if (what == 'e' && !(asked[k] > 0.0 && asked[k] < 1.0)) {
            wrong = "delta must be above 0 and below 1";
        } else if (what == 'e') {
            double least = found[k] = 0.0;
            for (int i = 0; i < count; i++) {
                found[k] = maximum(found[k], epsilon_beside(laws[i], log(asked[k]), least));
                least = maximum(least, laws[i]->lower);
            }
        } else {
            found[k] = log_delta_at(laws, count, asked[k]);
            if (what == 'd') {  /* below the least double that one, never 0 */
                double least = found[k] > -INFINITY ? 4.9406564584124654e-324 : 0.0;
                found[k] = maximum(exp(found[k]), least);
            }
        }
    }
    for (int i = 0; ends && !wrong && i < count; i++) {
        ends[0] = i ? maximum(ends[0], laws[i]->lower) : laws[i]->lower;
        ends[1] = i ? maximum(ends[1], laws[i]->upper) : laws[i]->upper;
    }
    release(0);
    free(held.blocks);
    held.blocks = NULL;
    held.room = 0;
    return wrong;
}
