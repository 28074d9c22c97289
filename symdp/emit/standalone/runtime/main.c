#ifdef ACCOUNTANT_MAIN
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

static int usage(const char *program, FILE *stream)
{
    fprintf(stream, "usage: %s epsilon=VALUE|delta=VALUE n=VALUE", program);
    for (int k = 3; k < ARGUMENTS + 3; k++) fprintf(stream, " %s=VALUE", NAMES[k]);
    fprintf(stream, " [remove|add|both]\n");
    return stream == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
    double p[ARGUMENTS + 3] = { 0 }, found = 0.0;
    char given[ARGUMENTS + 3] = { 0 };
    const char *direction = "both";
    if (argc == 1) return usage(argv[0], stderr);
    if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")) return usage(argv[0], stdout);
    for (int i = 1; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        int place = -1;
        if (!strcmp(argv[i], "remove") || !strcmp(argv[i], "add") || !strcmp(argv[i], "both")) {
            direction = argv[i];
            continue;
        }
        for (int k = 0; equals && k < ARGUMENTS + 3; k++)
            if (strlen(NAMES[k]) == (size_t) (equals - argv[i])
                && !strncmp(NAMES[k], argv[i], (size_t) (equals - argv[i])))
                place = k;
        if (place < 0) return complain("unknown: ", argv[i]);
        if (!read_number(equals + 1, &p[place])) return complain("no finite number: ", argv[i]);
        given[place] = 1;
    }
    int asked = given[1] ? 1 : 0;
    for (int k = 0; k < ARGUMENTS + 3; k++)
        if (!given[k] && k != 1 - asked) return complain("a value is missing: ", NAMES[k]);
    const char *sides[] = { direction, direction };
    double values[2], ends[2][2] = { { -INFINITY, -INFINITY }, { -INFINITY, -INFINITY } };
    if (!strcmp(direction, "both") && !ONE_LAW) {
        sides[0] = "remove";
        sides[1] = "add";
    }
    const char *wrong = NULL;
    for (int k = 0; k < (ONE_LAW ? 1 : 2) && !wrong; k++)
        wrong = answer(asked ? 'e' : 'l', &p[asked], 1, p[2], p + 3, sides[k], &values[k], ends[k]);
    if (ONE_LAW) values[1] = values[0];
    if (wrong) {
        fprintf(stderr, "no answer: %s\n", wrong);
        return 1;
    }
    found = values[0] < values[1] ? values[1] : values[0];
    double least = fmax(ends[0][0], ends[1][0]), most = fmax(ends[0][1], ends[1][1]);
    /* the one in which it is larger, by more than rounding and the width of what encloses them */
    if (fabs(values[0] - values[1]) > fmax(1e-9 * fmax(1.0, fabs(found)), most - least))
        direction = values[0] < values[1] ? sides[1] : sides[0];
    if (asked) printf("epsilon = %.15g\n", found);
    else if (found > -700.0 || found == -INFINITY) printf("delta = %.15g\n", exp(found));
    else printf("delta = exp(%.15g)\n", found);
    printf("direction = %s\n", direction);
    if (most - least > 1e-6) {
        if (asked) printf("epsilon >= %.15g\n", least);
        else printf(least > -700.0 || least == -INFINITY ? "delta >= %.15g\n" : "delta >= exp(%.15g)\n",
                    least > -700.0 || least == -INFINITY ? exp(least) : least);
    }
    return 0;
}
#endif
