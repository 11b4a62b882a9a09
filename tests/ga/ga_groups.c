/* Processor groups: arrays, synchronisation and reductions inside a group, two groups at work at
 * the same time, groups split, made the default, and freed. */
// TEST: ga ga-moving
#include "ga_check.h"

#define N 40

/* Work of one group: an array of its own, filled by its first rank, summed by all. */
static void group_work(int group, int tag)
{
    int dims[2] = {N, N}, lo[2] = {0, 0}, hi[2] = {N - 1, N - 1}, ld = N;
    int me = GA_Pgroup_nodeid(group), size = GA_Pgroup_nnodes(group);
    for (int again = 0; again < 4; again++) {
        int g = NGA_Create_config(C_DBL, 2, dims, "in a group", NULL, group);
        CHECK(g != 0, "cannot create an array in a group");
        CHECK(GA_Get_pgroup(g) == group, "the array is in group %d, not %d", GA_Get_pgroup(g), group);
        double *v = malloc(sizeof(double) * N * N), one = 1.0;
        for (int e = 0; e < N * N; e++)
            v[e] = e + 10000.0 * tag;
        GA_Zero(g);
        if (me == 0)
            NGA_Put(g, lo, hi, v, &ld);
        GA_Pgroup_sync(group);
        NGA_Acc(g, lo, hi, v, &ld, &one);
        GA_Pgroup_sync(group);
        double *w = malloc(sizeof(double) * N * N);
        NGA_Get(g, lo, hi, w, &ld);
        for (int e = 0; e < N * N; e++)
            CHECK(w[e] == (1 + size) * v[e], "group %d, element %d: %g, not %g", tag, e, w[e], (1 + size) * v[e]);
        GA_Pgroup_sync(group);
        free(v);
        free(w);
        GA_Destroy(g);
    }

    int i[2] = {me + 1, -me};
    GA_Pgroup_igop(group, i, 2, "+");
    CHECK(i[0] == size * (size + 1) / 2 && i[1] == -size * (size - 1) / 2, "group sum %d %d", i[0], i[1]);
    double d[1] = {me * 1.5};
    GA_Pgroup_dgop(group, d, 1, "max");
    CHECK(d[0] == (size - 1) * 1.5, "group maximum %g", d[0]);
    long b[3] = {0, 0, 0};
    if (me == size - 1)
        b[0] = 42 + tag, b[2] = tag;
    GA_Pgroup_brdcst(group, b, sizeof b, size - 1);
    CHECK(b[0] == 42 + tag && b[1] == 0 && b[2] == tag, "group broadcast %ld %ld %ld", b[0], b[1], b[2]);
}

int main(int argc, char **argv)
{
    ga_start(&argc, &argv, "ga_groups");
    int world = GA_Pgroup_get_world();
    CHECK(GA_Pgroup_get_default() == world, "the default group is not the world");
    CHECK(GA_Pgroup_nnodes(world) == ga_ranks && GA_Pgroup_nodeid(world) == ga_me, "the world is wrong");

    /* Groups of ranks by parity. */
    int list[64], count = 0, parity = ga_me % 2;
    for (int r = 0; r < ga_ranks && count < 64; r++)
        if (r % 2 == parity)
            list[count++] = r;
    int group = GA_Pgroup_create(list, count);
    CHECK(GA_Pgroup_nnodes(group) == count, "group of %d has %d", count, GA_Pgroup_nnodes(group));
    CHECK(list[GA_Pgroup_nodeid(group)] == ga_me, "rank %d in the group is not me", GA_Pgroup_nodeid(group));
    for (int r = 0; r < count; r++)
        CHECK(GA_Pgroup_absolute_id(group, r) == list[r], "absolute id of %d is %d, not %d", r,
              GA_Pgroup_absolute_id(group, r), list[r]);
    group_work(group, 1 + parity);
    GA_Sync();

    /* With the group as default, plain calls act within it. */
    GA_Pgroup_set_default(group);
    CHECK(GA_Nnodes() == count, "in the default group there are %d ranks, not %d", GA_Nnodes(), count);
    double two = 2.0;
    int g = make_matrix(N, N, "by default");
    GA_Fill(g, &two);
    CHECK(GA_Ddot(g, g) == 4.0 * N * N, "dot product in the group is %g", GA_Ddot(g, g));
    GA_Destroy(g);
    GA_Sync();
    GA_Pgroup_set_default(world);
    CHECK(GA_Nnodes() == ga_ranks, "back in the world there are %d ranks", GA_Nnodes());
    GA_Sync();

    /* Splits of the world, by count and by colour. */
    if (ga_ranks > 1) {
        int half = GA_Pgroup_split(world, 2);
        group_work(half, 5);
        GA_Sync();
        CHECK(GA_Pgroup_destroy(half), "cannot free the split group");
    }
    int colour = GA_Pgroup_split_irreg(world, ga_me == 0 ? 0 : 1);
    CHECK(GA_Pgroup_nnodes(colour) == (ga_me == 0 ? 1 : ga_ranks - 1), "split by colour has %d",
          GA_Pgroup_nnodes(colour));
    group_work(colour, 7);
    GA_Sync();
    CHECK(GA_Pgroup_destroy(colour) && GA_Pgroup_destroy(group), "cannot free a group");
    return ga_finish();
}
