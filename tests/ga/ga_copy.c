/* Fill, zero, fill of a patch, copies of arrays and patches, with and without transposition,
 * between arrays with different distributions. */
// TEST: ga ga-moving
#include "ga_check.h"

#define N 26
#define M 34

static void fill_and_zero(const elem_type *t)
{
    int dims[2] = {N, M}, lo[2] = {3, 5}, hi[2] = {20, 30}, zlo[2] = {10, 0}, zhi[2] = {12, M - 1};
    int all_lo[2] = {0, 0}, all_hi[2] = {N - 1, M - 1}, ld = M, g = make_array(t, 2, dims, "filled");
    char two[16], nine[16], *all = malloc(N * M * t->size);
    double complex a = t->is_complex ? 2 + 3 * I : 2, b = t->is_complex ? 9 - 1 * I : 9;
    CHECK(all, "no memory");
    elem_store(t, two, 0, a);
    elem_store(t, nine, 0, b);
    GA_Fill(g, two);
    NGA_Fill_patch(g, lo, hi, nine);
    NGA_Zero_patch(g, zlo, zhi);
    NGA_Get(g, all_lo, all_hi, all, &ld);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            int in = i >= lo[0] && i <= hi[0] && j >= lo[1] && j <= hi[1];
            double complex want = i >= 10 && i <= 12 ? 0 : in ? b : a;
            CHECK(elem_load(t, all, i * M + j) == want, "%s: (%d,%d) is %g, not %g", t->name, i, j,
                  creal(elem_load(t, all, i * M + j)), creal(want));
        }
    GA_Sync();
    GA_Zero(g);
    NGA_Get(g, all_lo, all_hi, all, &ld);
    for (int e = 0; e < N * M; e++)
        CHECK(elem_load(t, all, e) == 0, "%s: zeroed element %d is not 0", t->name, e);
    GA_Sync();
    GA_Destroy(g);
    free(all);
}

static void copies(void)
{
    int dims[2] = {N, M}, by_rows[2] = {0, M}, by_columns[2] = {N, 0};
    int a = NGA_Create(C_DBL, 2, dims, "rows", by_rows);
    int b = NGA_Create(C_DBL, 2, dims, "columns", by_columns);
    int c = make_matrix(M, N, "turned");
    CHECK(a && b, "cannot create");
    double *v = malloc(sizeof(double) * N * M), minus = -1.0;
    for (int e = 0; e < N * M; e++)
        v[e] = e + 0.5;
    set_matrix(a, N, M, v);

    GA_Copy(a, b);
    double *w = whole_matrix(b, N, M);
    for (int e = 0; e < N * M; e++)
        CHECK(w[e] == v[e], "copy: element %d is %g, not %g", e, w[e], v[e]);
    free(w);
    GA_Sync();

    /* A patch to a different place in another array. */
    int alo[2] = {1, 2}, ahi[2] = {10, 22}, blo[2] = {15, 12}, bhi[2] = {24, 32};
    GA_Fill(b, &minus);
    NGA_Copy_patch('n', a, alo, ahi, b, blo, bhi);
    w = whole_matrix(b, N, M);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            int in = i >= blo[0] && i <= bhi[0] && j >= blo[1] && j <= bhi[1];
            double want = in ? v[(i - blo[0] + alo[0]) * M + j - blo[1] + alo[1]] : -1.0;
            CHECK(w[i * M + j] == want, "copy of a patch: (%d,%d) is %g, not %g", i, j, w[i * M + j], want);
        }
    free(w);
    GA_Sync();

    /* The transposed copy: (i,j) of the source at (j,i) of the destination. */
    int clo[2] = {4, 3}, chi[2] = {24, 12};
    GA_Fill(c, &minus);
    NGA_Copy_patch('t', a, alo, ahi, c, clo, chi);
    w = whole_matrix(c, M, N);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            int in = i >= clo[0] && i <= chi[0] && j >= clo[1] && j <= chi[1];
            double want = in ? v[(j - clo[1] + alo[0]) * M + i - clo[0] + alo[1]] : -1.0;
            CHECK(w[i * N + j] == want, "turned patch: (%d,%d) is %g, not %g", i, j, w[i * N + j], want);
        }
    free(w);
    free(v);
    GA_Sync();
    GA_Destroy(c);
    GA_Destroy(b);
    GA_Destroy(a);
}

int main(int argc, char **argv)
{
    ga_start(&argc, &argv, "ga_copy");
    for (int t = 0; t < ELEM_TYPES; t++)
        fill_and_zero(&elem_types[t]);
    copies();
    return ga_finish();
}
