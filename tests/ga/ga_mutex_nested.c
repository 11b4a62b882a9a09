/* Two mutexes held at a time, taken in one order everywhere. */
#include "ga_check.h"

#define ROUNDS 100
#define MUTEXES 6

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
    ga_start(&argc, &argv, "ga_mutex_nested");
    int g = make_array(elem_double, 1, dims, "guarded");
    GA_Zero(g);
    CHECK(GA_Create_mutexes(MUTEXES), "GA_Create_mutexes failed");
    GA_Sync();
    /* All the same pair. */
    for (int r = 0; r < ROUNDS; r++) {
        GA_Lock(0);
        GA_Lock(1);
        add(g, 0, 1.0);
        add(g, 1, -1.0);
        GA_Unlock(1);
        GA_Unlock(0);
    }
    /* Pairs that overlap; released in the order taken. */
    for (int r = 0; r < ROUNDS; r++) {
        int m = 2 + (r + ga_me) % 3;
        GA_Lock(m);
        GA_Lock(m + 1);
        add(g, m, 1.0);
        add(g, m + 1, 1.0);
        GA_Unlock(m);
        GA_Unlock(m + 1);
    }
    GA_Sync();
    NGA_Get(g, lo, hi, v, &ld);
    CHECK(v[0] == ROUNDS * ga_ranks && v[1] == -v[0], "one pair: %g and %g", v[0], v[1]);
    double rest = v[2] + v[3] + v[4] + v[5];
    CHECK(rest == 2.0 * ROUNDS * ga_ranks, "overlapping pairs: %g, not %g", rest, 2.0 * ROUNDS * ga_ranks);
    GA_Sync();
    CHECK(GA_Destroy_mutexes(), "GA_Destroy_mutexes failed");
    GA_Destroy(g);
    return ga_finish();
}
