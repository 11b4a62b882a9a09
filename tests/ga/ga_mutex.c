/* Mutexes: a read, change and write back under a lock loses no update, for one contended mutex and
 * for several. */
// TEST: ga
#include "ga_check.h"

#define ROUNDS 100
#define MUTEXES 5

static void add(int g, int i, double what)
{
    int at[1] = {i}, ld = 1;
    double v = -1;
    NGA_Get(g, at, at, &v, &ld);
    v += what;
    GA_Init_fence();
    NGA_Put(g, at, at, &v, &ld);
    GA_Fence();
}

int main(int argc, char **argv)
{
    int dims[1] = {MUTEXES}, lo[1] = {0}, hi[1] = {MUTEXES - 1}, ld = 1;
    double v[MUTEXES];
    ga_start(&argc, &argv, "ga_mutex");
    int g = make_array(elem_double, 1, dims, "guarded");

    /* Mutexes can be created and freed repeatedly. */
    for (int again = 0; again < 3; again++) {
        GA_Zero(g);
        CHECK(GA_Create_mutexes(MUTEXES), "GA_Create_mutexes failed");
        GA_Sync();
        for (int r = 0; r < ROUNDS; r++) {
            GA_Lock(0);
            add(g, 0, 1.0);
            GA_Unlock(0);
            int m = 1 + (r + ga_me) % (MUTEXES - 1);
            GA_Lock(m);
            add(g, m, 2.0);
            GA_Unlock(m);
        }
        GA_Sync();
        NGA_Get(g, lo, hi, v, &ld);
        double rest = 0;
        for (int m = 1; m < MUTEXES; m++)
            rest += v[m];
        CHECK(v[0] == ROUNDS * ga_ranks, "one mutex: %g, not %d", v[0], ROUNDS * ga_ranks);
        CHECK(rest == 2.0 * ROUNDS * ga_ranks, "several: %g, not %g", rest, 2.0 * ROUNDS * ga_ranks);
        GA_Sync();
        CHECK(GA_Destroy_mutexes(), "GA_Destroy_mutexes failed");
    }
    GA_Destroy(g);
    return ga_finish();
}
