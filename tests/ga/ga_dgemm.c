/* Matrix products of several shapes, all four transpositions, alpha and beta, four types, and of
 * patches; against a plain triple loop. */
// TEST: ga ga-moving
#include "ga_check.h"

#define AT(x, t, i, j, rows, cols) ((t) == 'N' ? (x)[(i) * (cols) + (j)] : (x)[(j) * (rows) + (i)])

static double complex *numbers(int count, int seed, int is_complex)
{
    double complex *v = malloc(sizeof *v * (size_t)count);
    CHECK(v, "no memory");
    for (int e = 0; e < count; e++)
        v[e] = (e * 13 + seed) % 17 - 8 + (is_complex ? ((e * 5 + seed) % 11 - 5) * I : 0);
    return v;
}

static int array_of(const elem_type *t, int n, int m, const double complex *v, const char *name)
{
    int dims[2] = {n, m}, lo[2] = {0, 0}, hi[2] = {n - 1, m - 1};
    int g = make_array(t, 2, dims, name);
    if (ga_me == 0) {
        char *buf = malloc((size_t)(n * m) * t->size);
        for (int e = 0; e < n * m; e++)
            elem_store(t, buf, e, v[e]);
        NGA_Put(g, lo, hi, buf, &m);
        free(buf);
    }
    GA_Sync();
    return g;
}

/* C(m x n) = alpha op(A) op(B) + beta C, op(A) is m x k. */
static void product(const elem_type *t, char ta, char tb, int m, int n, int k, double alpha, double beta)
{
    int an = ta == 'N' ? m : k, am = ta == 'N' ? k : m, bn = tb == 'N' ? k : n, bm = tb == 'N' ? n : k;
    double complex *a = numbers(m * k, 3, t->is_complex), *b = numbers(k * n, 8, t->is_complex);
    double complex *c = numbers(m * n, 5, t->is_complex);
    int ga = array_of(t, an, am, a, "A"), gb = array_of(t, bn, bm, b, "B"), gc = array_of(t, m, n, c, "C");

    if (t->id == C_FLOAT) {
        GA_Sgemm(ta, tb, m, n, k, (float)alpha, ga, gb, (float)beta, gc);
    } else if (t->id == C_DBL) {
        GA_Dgemm(ta, tb, m, n, k, alpha, ga, gb, beta, gc);
    } else if (t->id == C_SCPL) {
        SingleComplex x = {(float)alpha, 0}, y = {(float)beta, 0};
        GA_Cgemm(ta, tb, m, n, k, x, ga, gb, y, gc);
    } else {
        DoubleComplex x = {alpha, 0}, y = {beta, 0};
        GA_Zgemm(ta, tb, m, n, k, x, ga, gb, y, gc);
    }

    int lo[2] = {0, 0}, hi[2] = {m - 1, n - 1};
    char *got = malloc((size_t)(m * n) * t->size);
    CHECK(got, "no memory");
    NGA_Get(gc, lo, hi, got, &n);
    double allowed = t->size == sizeof(float) || t->id == C_SCPL ? 1e-4 : 1e-11;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double complex sum = 0, g = elem_load(t, got, i * n + j);
            for (int l = 0; l < k; l++)
                sum += AT(a, ta, i, l, m, k) * AT(b, tb, l, j, k, n);
            sum = alpha * sum + beta * c[i * n + j];
            CHECK(cabs(g - sum) <= allowed * (64.0 * k),
                  "%s %c%c %d x %d x %d at (%d,%d): %g%+gi, not %g%+gi", t->name, ta, tb, m, n, k, i, j,
                  creal(g), cimag(g), creal(sum), cimag(sum));
        }
    free(got);
    free(a);
    free(b);
    free(c);
    GA_Sync();
    GA_Destroy(gc);
    GA_Destroy(gb);
    GA_Destroy(ga);
}

static void patches(void)
{
    int n = 30, alo[2] = {2, 5}, ahi[2] = {11, 24}, blo[2] = {6, 1}, bhi[2] = {25, 15};
    int clo[2] = {10, 12}, chi[2] = {19, 26};        /* 10x20 times 20x15 */
    double complex *a = numbers(n * n, 1, 0), *b = numbers(n * n, 2, 0), *c = numbers(n * n, 4, 0);
    int ga = array_of(elem_double, n, n, a, "A"), gb = array_of(elem_double, n, n, b, "B");
    int gc = array_of(elem_double, n, n, c, "C");
    double alpha = 0.5, beta = 2.0;
    NGA_Matmul_patch('N', 'N', &alpha, &beta, ga, alo, ahi, gb, blo, bhi, gc, clo, chi);
    double *w = whole_matrix(gc, n, n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double want = creal(c[i * n + j]);
            if (i >= clo[0] && i <= chi[0] && j >= clo[1] && j <= chi[1]) {
                want *= beta;
                for (int l = 0; l < 20; l++)
                    want += alpha * creal(a[(i - clo[0] + alo[0]) * n + alo[1] + l] *
                                          b[(blo[0] + l) * n + j - clo[1] + blo[1]]);
            }
            CHECK(fabs(w[i * n + j] - want) < 1e-9, "patch (%d,%d): %g, not %g", i, j, w[i * n + j], want);
        }
    free(w);
    free(a);
    free(b);
    free(c);
    GA_Sync();
    GA_Destroy(gc);
    GA_Destroy(gb);
    GA_Destroy(ga);
}

int main(int argc, char **argv)
{
    static const int shapes[][3] = {{16, 16, 16}, {33, 21, 45}, {1, 40, 7}, {64, 3, 50}, {100, 90, 110}};
    ga_start(&argc, &argv, "ga_dgemm");
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int x = 0; x < 4; x++)
            product(elem_double, x & 1 ? 'T' : 'N', x & 2 ? 'T' : 'N', shapes[s][0], shapes[s][1],
                    shapes[s][2], x ? 1.5 : 1.0, x == 3 ? -2.0 : x == 2 ? 1.0 : 0.0);
    product(elem_double, 'N', 'N', 300, 260, 280, 1.0, 0.0);
    for (int t = 2; t < ELEM_TYPES; t++)
        for (int x = 0; x < 4; x++)
            product(&elem_types[t], x & 1 ? 'T' : 'N', x & 2 ? 'T' : 'N', 24, 31, 17, 2.0, 1.0);
    patches();
    return ga_finish();
}
