/* NGA_Read_inc by all ranks at once: every number is returned exactly once, and each rank sees its
 * own numbers grow. */
// TEST: ga ga-moving
#include "ga_check.h"

#define EACH 400
#define COUNTERS 11

static void tickets(int type)
{
    int dims[1] = {COUNTERS}, all = EACH * ga_ranks;
    int g = NGA_Create(type, 1, dims, "counters", NULL);
    char *taken = calloc((size_t)(all * COUNTERS), 1);
    long last[COUNTERS];
    CHECK(g && taken, "cannot create the counters");
    GA_Zero(g);
    for (int c = 0; c < COUNTERS; c++)
        last[c] = -1;
    GA_Sync();
    for (int e = 0; e < EACH; e++)
        for (int c = 0; c < COUNTERS; c++) {
            int at[1] = {(c + ga_me) % COUNTERS};
            long got = NGA_Read_inc(g, at, 1);
            CHECK(got > last[at[0]] && got < all, "counter %d gave %ld after %ld", at[0], got, last[at[0]]);
            last[at[0]] = got;
            taken[at[0] * all + got] = 1;
        }
    GA_Sync();

    /* No two ranks have the same number: the numbers taken add up to all. */
    int *sum = malloc(sizeof(int) * (size_t)(all * COUNTERS));
    CHECK(sum, "no memory");
    for (int e = 0; e < all * COUNTERS; e++)
        sum[e] = taken[e];
    GA_Igop(sum, all * COUNTERS, "+");
    for (int e = 0; e < all * COUNTERS; e++)
        CHECK(sum[e] == 1, "number %d of counter %d was given out %d times", e % all, e / all, sum[e]);
    for (int c = 0; c < COUNTERS; c++) {
        int at[1] = {c};
        long end = NGA_Read_inc(g, at, 0);
        CHECK(end == all, "counter %d ends at %ld, not %d", c, end, all);
    }
    GA_Sync();
    GA_Destroy(g);
    free(sum);
    free(taken);
}

/* Negative and large steps; a get sees the result. */
static void steps(void)
{
    int dims[1] = {2 * ga_ranks}, at[1] = {2 * ga_ranks - 1}, ld = 1;
    int g = NGA_Create(C_LONG, 1, dims, "steps", NULL);
    long value = 0, big = 3000000000L;
    CHECK(g, "cannot create");
    GA_Zero(g);
    if (ga_me == 0)
        NGA_Put(g, at, at, &big, &ld);
    GA_Sync();
    NGA_Read_inc(g, at, -5);
    NGA_Read_inc(g, at, 7000);
    GA_Sync();
    NGA_Get(g, at, at, &value, &ld);
    CHECK(value == big + 6995L * ga_ranks, "value is %ld, not %ld", value, big + 6995L * ga_ranks);
    GA_Sync();
    GA_Destroy(g);
}

int main(int argc, char **argv)
{
    ga_start(&argc, &argv, "ga_read_inc");
    tickets(C_INT);
    tickets(C_LONG);
    steps();
    return ga_finish();
}
