/* The world works while arrays of groups exist: puts, accumulates and fences to ranks outside this
 * rank's group, and reads of a group's array by its members. */
// TEST: ga
// TEST: own-level
#include "ga_check.h"

#define N 16

int main(int argc, char **argv)
{
    int list[64], count = 0, lo[2], hi[2], dims[2] = {N, N}, ld = 1;
    double two = 2.0, half = 0.5, *w;
    ga_start(&argc, &argv, "ga_groups_fence");

    /* Rank 0 alone, and a group of the other ranks, whose array has no part on rank 0. */
    for (int r = 0; r < ga_ranks; r++)
        if ((r == 0) == (ga_me == 0))
            list[count++] = r;
    int group = GA_Pgroup_create(list, count);
    int inside = NGA_Create_config(C_DBL, 2, dims, "of the group", NULL, group);
    CHECK(inside, "cannot create an array in a group");
    GA_Fill(inside, &half);
    GA_Sync();

    int outside = make_matrix(N, N, "of the world");
    GA_Fill(outside, &two);
    GA_Sync();
    /* Accumulates into the first element of every rank's part; the fence is for that rank. */
    for (int r = 0; r < ga_ranks; r++) {
        NGA_Distribution(outside, r, lo, hi);
        if (lo[0] < 0 || hi[0] < lo[0])
            continue;
        GA_Init_fence();
        NGA_Acc(outside, lo, lo, &two, &ld, &half);
        GA_Fence();
    }
    GA_Sync();
    w = whole_matrix(outside, N, N);
    double sum = 0, want = 2.0 * N * N;
    for (int e = 0; e < N * N; e++)
        sum += w[e];
    for (int r = 0; r < ga_ranks; r++) {
        NGA_Distribution(outside, r, lo, hi);
        if (lo[0] >= 0 && hi[0] >= lo[0]) {
            CHECK(w[lo[0] * N + lo[1]] == 2.0 + ga_ranks, "first element of rank %d is %g", r, w[lo[0] * N + lo[1]]);
            want += ga_ranks;
        }
    }
    CHECK(sum == want, "the world's array sums to %g, not %g", sum, want);
    free(w);
    GA_Sync();
    w = whole_matrix(inside, N, N);
    for (int e = 0; e < N * N; e++)
        CHECK(w[e] == 0.5, "element %d of the group's array is %g", e, w[e]);
    free(w);

    /* The world's array is freed before the group's. */
    GA_Sync();
    GA_Destroy(outside);
    GA_Sync();
    GA_Destroy(inside);
    GA_Sync();
    CHECK(GA_Pgroup_destroy(group), "cannot free the group");
    return ga_finish();
}
