/* Reductions of every type and operation, short and long, and broadcasts from every root. */
// TEST: ga
#include "ga_check.h"

/* Returns a rank's contribution to element e, some negative. */
static int brought(int rank, int e) { return (e * 7 + rank * 3) % 11 - 5; }

static double expected(const char *op, int e)
{
    double all = 0;
    for (int r = 0; r < ga_ranks; r++) {
        double v = brought(r, e), a = fabs(v);
        if (r == 0)
            all = op[0] == 'a' ? a : v;
        else if (op[0] == '+')
            all += v;
        else if (op[0] == '*')
            all *= v;
        else if (strcmp(op, "max") == 0)
            all = fmax(all, v);
        else if (strcmp(op, "min") == 0)
            all = fmin(all, v);
        else if (strcmp(op, "absmax") == 0)
            all = fmax(all, a);
        else
            all = fmin(all, a);
    }
    return all;
}

#define REDUCE(call, type) \
    static void reduce_##type(int n) \
    { \
        static char *ops[] = {"+", "*", "max", "min", "absmax", "absmin"}; \
        type *v = malloc(sizeof(type) * (size_t)n); \
        CHECK(v, "no memory"); \
        for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) { \
            for (int e = 0; e < n; e++) \
                v[e] = (type)brought(ga_me, e); \
            call(v, n, ops[o]); \
            for (int e = 0; e < n; e++) \
                CHECK((double)v[e] == expected(ops[o], e), #call " %s of %d, element %d: %g, not %g", \
                      ops[o], n, e, (double)v[e], expected(ops[o], e)); \
        } \
        free(v); \
    }

REDUCE(GA_Igop, int)
REDUCE(GA_Lgop, long)
REDUCE(GA_Fgop, float)
REDUCE(GA_Dgop, double)

static void reduce_complex(int n)
{
    DoubleComplex *z = malloc(sizeof *z * (size_t)n);
    SingleComplex *c = malloc(sizeof *c * (size_t)n);
    CHECK(z && c, "no memory");
    for (int e = 0; e < n; e++) {
        z[e].real = brought(ga_me, e);
        z[e].imag = brought(ga_me, e + 1);
        c[e].real = (float)z[e].real;
        c[e].imag = (float)z[e].imag;
    }
    GA_Zgop(z, n, "+");
    GA_Cgop(c, n, "+");
    for (int e = 0; e < n; e++) {
        double re = expected("+", e), im = expected("+", e + 1);
        CHECK(z[e].real == re && z[e].imag == im, "GA_Zgop of %d, element %d: %g%+gi", n, e, z[e].real, z[e].imag);
        CHECK(c[e].real == re && c[e].imag == im, "GA_Cgop of %d, element %d: %g%+gi", n, e,
              (double)c[e].real, (double)c[e].imag);
    }
    free(z);
    free(c);
}

static void broadcast(int bytes)
{
    char *v = malloc((size_t)bytes);
    CHECK(v, "no memory");
    for (int root = 0; root < ga_ranks; root++) {
        for (int b = 0; b < bytes; b++)
            v[b] = ga_me == root ? (char)(b * 3 + root) : 0;
        GA_Brdcst(v, bytes, root);
        for (int b = 0; b < bytes; b++)
            CHECK(v[b] == (char)(b * 3 + root), "broadcast of %d bytes from %d, byte %d: %d", bytes, root, b, v[b]);
    }
    free(v);
}

int main(int argc, char **argv)
{
    static const int lengths[] = {1, 2, 7, 100, 5000, 100000};
    ga_start(&argc, &argv, "ga_reduce");
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        reduce_int(lengths[l]);
        reduce_long(lengths[l]);
        reduce_float(lengths[l]);
        reduce_double(lengths[l]);
        reduce_complex(lengths[l]);
        broadcast(lengths[l]);
    }
    double x = ga_me;
    GA_Gop(C_DBL, &x, 1, "+");
    CHECK(x == ga_ranks * (ga_ranks - 1) / 2.0, "GA_Gop gave %g", x);
    return ga_finish();
}
