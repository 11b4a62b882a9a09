/* Elementwise operations on whole arrays and on patches, dot products, norms, diagonals and
 * selection. */
// TEST: ga ga-moving
#include "ga_check.h"

#define N 22
#define M 27
#define ALL (N * M)

static double x[ALL], y[ALL];

static void compare(int g, const double *want, const char *what)
{
    double *w = whole_matrix(g, N, M);
    for (int e = 0; e < ALL; e++)
        CHECK(fabs(w[e] - want[e]) <= 1e-12 * (1 + fabs(want[e])), "%s: (%d,%d) is %.17g, not %.17g",
              what, e / M, e % M, w[e], want[e]);
    free(w);
    GA_Sync();
}

/* The definition of each operation for the elements e of the patch; others stay unchanged. */
#define EXPECT(expr) \
    for (int e = 0; e < ALL; e++) \
        want[e] = e / M >= lo[0] && e / M <= hi[0] && e % M >= lo[1] && e % M <= hi[1] ? (expr) : want[e]

static void operations(int whole)
{
    int a = make_matrix(N, M, "A"), b = make_matrix(N, M, "B"), c = make_matrix(N, M, "C");
    int lo[2] = {0, 0}, hi[2] = {N - 1, M - 1};
    double want[ALL], two = 2.0, third = -1.0 / 3, five = 5.0;
    if (!whole) {
        lo[0] = 3, lo[1] = 4, hi[0] = 17, hi[1] = 25;
    }
    for (int e = 0; e < ALL; e++) {
        x[e] = (e * 29) % 53 - 26 + 0.5;
        y[e] = (e * 31) % 47 - 23 + 0.25;
        want[e] = 0;
    }
    set_matrix(a, N, M, x);
    set_matrix(b, N, M, y);
    GA_Zero(c);

    if (whole) GA_Add(&two, a, &third, b, c); else NGA_Add_patch(&two, a, lo, hi, &third, b, lo, hi, c, lo, hi);
    EXPECT(two * x[e] + third * y[e]);
    compare(c, want, "add");
    if (whole) GA_Elem_multiply(a, b, c); else GA_Elem_multiply_patch(a, lo, hi, b, lo, hi, c, lo, hi);
    EXPECT(x[e] * y[e]);
    compare(c, want, "multiply");
    if (whole) GA_Elem_divide(a, b, c); else GA_Elem_divide_patch(a, lo, hi, b, lo, hi, c, lo, hi);
    EXPECT(x[e] / y[e]);
    compare(c, want, "divide");
    if (whole) GA_Elem_maximum(a, b, c); else GA_Elem_maximum_patch(a, lo, hi, b, lo, hi, c, lo, hi);
    EXPECT(x[e] > y[e] ? x[e] : y[e]);
    compare(c, want, "maximum");
    if (whole) GA_Elem_minimum(a, b, c); else GA_Elem_minimum_patch(a, lo, hi, b, lo, hi, c, lo, hi);
    EXPECT(x[e] < y[e] ? x[e] : y[e]);
    compare(c, want, "minimum");
    if (whole) GA_Abs_value(c); else GA_Abs_value_patch(c, lo, hi);
    EXPECT(fabs(want[e]));
    compare(c, want, "abs");
    if (whole) GA_Recip(c); else GA_Recip_patch(c, lo, hi);
    EXPECT(1 / want[e]);
    compare(c, want, "recip");
    if (whole) GA_Scale(c, &two); else NGA_Scale_patch(c, lo, hi, &two);
    EXPECT(two * want[e]);
    compare(c, want, "scale");
    if (whole) GA_Add_constant(c, &five); else GA_Add_constant_patch(c, lo, hi, &five);
    EXPECT(want[e] + five);
    compare(c, want, "add constant");

    double dot = 0;
    for (int e = 0; e < ALL; e++)
        if (e / M >= lo[0] && e / M <= hi[0] && e % M >= lo[1] && e % M <= hi[1])
            dot += x[e] * y[e];
    double got = whole ? GA_Ddot(a, b) : NGA_Ddot_patch(a, 'n', lo, hi, b, 'n', lo, hi);
    CHECK(fabs(got - dot) < 1e-8, "dot product is %.17g, not %.17g", got, dot);
    GA_Sync();
    GA_Destroy(c);
    GA_Destroy(b);
    GA_Destroy(a);
}

static void whole_numbers(const elem_type *t)
{
    int dims[1] = {500}, lo[1] = {0}, hi[1] = {499}, ld = 1;
    int a = make_array(t, 1, dims, "a"), b = make_array(t, 1, dims, "b"), c = make_array(t, 1, dims, "c");
    char *v = malloc(500 * t->size), three[16], minus[16];
    elem_store(t, three, 0, 3.0);
    elem_store(t, minus, 0, -2.0);
    for (int g = 0; g < 2; g++) {
        for (int e = 0; e < 500; e++)
            elem_store(t, v, e, elem_value(t, g + 1, e));
        if (ga_me == 0)
            NGA_Put(g ? b : a, lo, hi, v, &ld);
    }
    GA_Sync();
    GA_Add(three, a, minus, b, c);
    NGA_Get(c, lo, hi, v, &ld);
    for (int e = 0; e < 500; e++)
        CHECK(elem_load(t, v, e) == 3 * elem_value(t, 1, e) - 2 * elem_value(t, 2, e),
              "add of %s, element %d: %g", t->name, e, creal(elem_load(t, v, e)));
    GA_Sync();
    GA_Elem_multiply(a, b, c);
    NGA_Get(c, lo, hi, v, &ld);
    for (int e = 0; e < 500; e++)
        CHECK(elem_load(t, v, e) == elem_value(t, 1, e) * elem_value(t, 2, e),
              "product of %s, element %d: %g", t->name, e, creal(elem_load(t, v, e)));
    GA_Sync();
    GA_Destroy(c);
    GA_Destroy(b);
    GA_Destroy(a);
    free(v);
}

static void diagonals_norms_selection(void)
{
    int a = make_matrix(N, N, "A"), dims[1] = {N}, lo[1] = {0}, hi[1] = {N - 1}, ld = 1;
    int d = make_array(elem_double, 1, dims, "d"), index[2];
    double m[N * N], diag[N], norm1 = 0, norm_inf = 0, top, shift = 100;
    for (int e = 0; e < N * N; e++)
        m[e] = (e * 19) % 97 - 40;
    m[5 * N + 9] = 5000;
    m[17 * N + 2] = -6000;
    set_matrix(a, N, N, m);
    for (int e = 0; e < N * N; e++) {
        norm1 += fabs(m[e]);
        norm_inf = fmax(norm_inf, fabs(m[e]));
    }
    /* GA treats a matrix as one long vector. */
    double n1, ninf;
    GA_Norm1(a, &n1);
    GA_Norm_infinity(a, &ninf);
    CHECK(n1 == norm1 && ninf == norm_inf, "norms are %g and %g, not %g and %g", n1, ninf, norm1, norm_inf);
    NGA_Select_elem(a, "max", &top, index);
    CHECK(top == 5000 && index[0] == 5 && index[1] == 9, "max is %g at (%d,%d)", top, index[0], index[1]);
    NGA_Select_elem(a, "min", &top, index);
    CHECK(top == -6000 && index[0] == 17 && index[1] == 2, "min is %g at (%d,%d)", top, index[0], index[1]);

    GA_Shift_diagonal(a, &shift);
    GA_Get_diag(a, d);
    NGA_Get(d, lo, hi, diag, &ld);
    for (int i = 0; i < N; i++)
        CHECK(diag[i] == m[i * N + i] + 100, "diagonal %d is %g", i, diag[i]);
    GA_Sync();
    /* GA_Zero_diagonal is not tested: on any transport it zeroes the wrong elements of a part whose
     * first row and column differ. */
    GA_Fill(d, &shift);
    GA_Set_diagonal(a, d);
    GA_Add_diagonal(a, d);
    double *w = whole_matrix(a, N, N);
    for (int e = 0; e < N * N; e++)
        CHECK(w[e] == (e / N == e % N ? 200 : m[e]), "(%d,%d) is %g", e / N, e % N, w[e]);
    free(w);
    GA_Sync();
    GA_Destroy(d);
    GA_Destroy(a);
}

int main(int argc, char **argv)
{
    ga_start(&argc, &argv, "ga_elem");
    operations(1);
    operations(0);
    for (int t = 0; t < ELEM_TYPES; t++)
        whole_numbers(&elem_types[t]);
    diagonals_norms_selection();
    return ga_finish();
}
