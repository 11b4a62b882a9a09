/* Guarantees of fences and syncs: data is visible before the message that announces it; and the
 * owner's direct view, gets and puts agree after a sync. */
// TEST: ga
// TEST: own-level
#include "ga_check.h"

#define N 64
#define ROUNDS 50

/* Each rank writes into its right neighbour's part, fences, and sends a plain MPI message; the
 * neighbour checks its own memory. */
static void fence_then_message(int accumulate)
{
    int dims[1] = {N * ga_ranks}, lo[1], hi[1], ld = 1, chunk[1] = {N};
    int right = (ga_me + 1) % ga_ranks, left = (ga_me + ga_ranks - 1) % ga_ranks;
    int g = NGA_Create(C_DBL, 1, dims, "fenced", chunk);
    double v[N], one = 1.0, sum = 0;
    CHECK(g, "cannot create");
    GA_Zero(g);
    GA_Sync();
    for (int r = 0; r < ROUNDS; r++) {
        int note = -1;
        for (int e = 0; e < N; e++)
            v[e] = 1000.0 * ga_me + r + e;
        NGA_Distribution(g, right, lo, hi);
        CHECK(hi[0] - lo[0] == N - 1, "part of rank %d is %d..%d", right, lo[0], hi[0]);
        GA_Init_fence();
        if (accumulate)
            NGA_Acc(g, lo, hi, v, &ld, &one);
        else
            NGA_Put(g, lo, hi, v, &ld);
        GA_Fence();
        MPI_Sendrecv(&r, 1, MPI_INT, right, 9, &note, 1, MPI_INT, left, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(note == r, "round %d: the message says %d", r, note);

        double *mine;
        NGA_Distribution(g, ga_me, lo, hi);
        NGA_Access(g, lo, hi, &mine, &ld);
        sum = accumulate ? sum + 1000.0 * left + r : 1000.0 * left + r;
        for (int e = 0; e < N; e++) {
            double want = sum + (accumulate ? (r + 1.0) * e : e);
            CHECK(mine[e] == want, "%s, round %d, element %d: %g, not %g",
                  accumulate ? "accumulate" : "put", r, e, mine[e], want);
        }
        NGA_Release(g, lo, hi);
        /* The neighbour must not write before this rank has checked. */
        MPI_Barrier(MPI_COMM_WORLD);
        ld = 1;
    }
    GA_Sync();
    GA_Destroy(g);
}

/* In each round every rank puts its own column, the owners change their parts in place, and every
 * rank reads the whole array. */
static void in_place(void)
{
    int g = make_matrix(N, ga_ranks, "in place"), lo[2], hi[2], ld[1], one = 1;
    double column[N];
    for (int r = 0; r < 10; r++) {
        int clo[2] = {0, ga_me}, chi[2] = {N - 1, ga_me};
        for (int i = 0; i < N; i++)
            column[i] = 100.0 * r + i + 0.25 * ga_me;
        NGA_Put(g, clo, chi, column, &one);
        GA_Sync();
        if (owned(g, lo, hi)) {
            double *p;
            NGA_Access(g, lo, hi, &p, ld);
            for (int i = 0; i <= hi[0] - lo[0]; i++)
                for (int j = 0; j <= hi[1] - lo[1]; j++)
                    p[i * ld[0] + j] *= 2;
            NGA_Release_update(g, lo, hi);
        }
        GA_Sync();
        double *w = whole_matrix(g, N, ga_ranks);
        for (int i = 0; i < N; i++)
            for (int q = 0; q < ga_ranks; q++)
                CHECK(w[i * ga_ranks + q] == 2 * (100.0 * r + i + 0.25 * q), "round %d, (%d,%d): %g", r, i,
                      q, w[i * ga_ranks + q]);
        free(w);
        GA_Sync();
    }
    GA_Destroy(g);
}

int main(int argc, char **argv)
{
    ga_start(&argc, &argv, "ga_fence");
    fence_then_message(0);
    fence_then_message(1);
    in_place();
    for (int r = 0; r < 500; r++)
        GA_Sync();
    return ga_finish();
}
