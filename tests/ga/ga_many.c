/* 200 arrays created and freed: one after another, all alive at once, and freed in a different
 * order; the remaining arrays stay correct and no memory is kept. */
// TEST: ga
#include "ga_check.h"

#define ARRAYS 200

static int shape(int a) { return 5 + a % 13; }

static void check(int g, int a)
{
    int n = shape(a), at[2] = {n - 1, n - 2}, ld = 1;
    double v = -1;
    NGA_Get(g, at, at, &v, &ld);
    CHECK(v == a + 0.5, "array %d holds %g, not %g", a, v, a + 0.5);
}

int main(int argc, char **argv)
{
    int g[ARRAYS];
    ga_start(&argc, &argv, "ga_many");
    size_t before = GA_Inquire_memory();

    for (int a = 0; a < ARRAYS; a++) {
        double v = a + 0.5;
        int one = make_matrix(shape(a), shape(a), "brief");
        GA_Fill(one, &v);
        check(one, a);
        GA_Sync();
        GA_Destroy(one);
    }
    CHECK(GA_Inquire_memory() == before, "%zu bytes are left of arrays made and freed in turn",
          GA_Inquire_memory() - before);

    for (int a = 0; a < ARRAYS; a++) {
        double v = a + 0.5;
        g[a] = make_matrix(shape(a), shape(a), "live");
        GA_Fill(g[a], &v);
    }
    GA_Sync();
    for (int a = 0; a < ARRAYS; a++)
        check(g[(a * 77 + ga_me) % ARRAYS], (a * 77 + ga_me) % ARRAYS);
    GA_Sync();

    /* Every third is freed first; the others keep their contents. */
    for (int a = 0; a < ARRAYS; a += 3)
        GA_Destroy(g[a]);
    for (int a = 0; a < ARRAYS; a++)
        if (a % 3)
            check(g[a], a);
    GA_Sync();
    /* The freed places are reused. */
    for (int a = 0; a < ARRAYS; a += 3) {
        double v = a + 0.5;
        g[a] = make_matrix(shape(a), shape(a), "again");
        GA_Fill(g[a], &v);
    }
    for (int a = 0; a < ARRAYS; a++)
        check(g[a], a);
    GA_Sync();
    for (int a = ARRAYS - 1; a >= 0; a--)
        GA_Destroy(g[a]);
    CHECK(GA_Inquire_memory() == before, "%zu bytes are left", GA_Inquire_memory() - before);

    /* A large array among the small ones, beyond any pool of small ones. */
    int big = make_matrix(1500, 1500, "big");
    double three = 3.0;
    GA_Fill(big, &three);
    CHECK(GA_Ddot(big, big) == 9.0 * 1500 * 1500, "the big array sums to %g", GA_Ddot(big, big));
    GA_Sync();
    GA_Destroy(big);
    return ga_finish();
}
