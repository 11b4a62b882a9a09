/* GA_Transpose and GA_Symmetrize of several shapes. */
// TEST: ga
#include "ga_check.h"

static void transpose(int n, int m)
{
    int a = make_matrix(n, m, "A"), b = make_matrix(m, n, "B");
    double *v = malloc(sizeof(double) * (size_t)(n * m)), minus = -1;
    CHECK(v, "no memory");
    for (int e = 0; e < n * m; e++)
        v[e] = 3.0 * e + 1;
    set_matrix(a, n, m, v);
    GA_Fill(b, &minus);
    GA_Transpose(a, b);
    double *w = whole_matrix(b, m, n);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            CHECK(w[i * n + j] == v[j * m + i], "%d x %d: (%d,%d) is %g, not %g", n, m, i, j,
                  w[i * n + j], v[j * m + i]);
    free(v);
    free(w);
    GA_Sync();
    GA_Destroy(b);
    GA_Destroy(a);
}

static void symmetrize(int n)
{
    int a = make_matrix(n, n, "A");
    double *v = malloc(sizeof(double) * (size_t)(n * n));
    CHECK(v, "no memory");
    for (int e = 0; e < n * n; e++)
        v[e] = (e * 37) % 101;
    set_matrix(a, n, n, v);
    GA_Symmetrize(a);
    double *w = whole_matrix(a, n, n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double want = 0.5 * (v[i * n + j] + v[j * n + i]);
            CHECK(fabs(w[i * n + j] - want) < 1e-12, "symmetrized %d: (%d,%d) is %g, not %g", n, i, j,
                  w[i * n + j], want);
        }
    free(v);
    free(w);
    GA_Sync();
    GA_Destroy(a);
}

int main(int argc, char **argv)
{
    ga_start(&argc, &argv, "ga_transpose");
    transpose(16, 16);
    transpose(31, 17);
    transpose(5, 120);
    transpose(1, 40);
    transpose(101, 99);
    symmetrize(24);
    symmetrize(37);
    return ga_finish();
}
