/* Irregular distributions: the parts lie as the map says, and operations between arrays with
 * different distributions agree. */
// TEST: ga
#include "ga_check.h"

#define N 60
#define M 21

/* Distributes rows unevenly: the first rank has one, later ranks more and more. */
static void row_map(int *map)
{
    map[0] = 0;
    for (int r = 1; r < ga_ranks; r++)
        map[r] = map[r - 1] + (r == 1 ? 1 : 5 * r);
    map[ga_ranks] = 0;      /* one block of columns */
}

static void rows(const elem_type *t)
{
    int dims[2] = {N, M}, block[2] = {ga_ranks, 1}, map[65], lo[2], hi[2], ld = M;
    int all_lo[2] = {0, 0}, all_hi[2] = {N - 1, M - 1};
    CHECK(ga_ranks <= 4, "this test is for up to 4 ranks");
    row_map(map);
    int g = NGA_Create_irreg(t->id, 2, dims, "uneven", block, map);
    CHECK(g, "cannot create an uneven array of %s", t->name);
    for (int r = 0; r < ga_ranks; r++) {
        int end = r + 1 < ga_ranks ? map[r + 1] - 1 : N - 1;
        NGA_Distribution(g, r, lo, hi);
        CHECK(lo[0] == map[r] && hi[0] == end && lo[1] == 0 && hi[1] == M - 1,
              "rank %d has rows %d..%d, not %d..%d", r, lo[0], hi[0], map[r], end);
    }

    char *v = malloc(N * M * t->size);
    CHECK(v, "no memory");
    for (long e = 0; e < N * M; e++)
        elem_store(t, v, e, elem_value(t, 6, e));
    if (ga_me == ga_ranks - 1)
        NGA_Put(g, all_lo, all_hi, v, &ld);
    GA_Sync();

    /* A copy to an evenly distributed array and back. */
    int h = make_array(t, 2, dims, "even"), k = GA_Duplicate(g, "uneven again");
    CHECK(GA_Compare_distr(g, k) == 0, "the duplicate is distributed differently");
    GA_Copy(g, h);
    GA_Copy(h, k);
    memset(v, 0, N * M * t->size);
    NGA_Get(k, all_lo, all_hi, v, &ld);
    for (long e = 0; e < N * M; e++)
        CHECK(elem_load(t, v, e) == elem_value(t, 6, e), "%s: element %ld is %g after two copies", t->name,
              e, creal(elem_load(t, v, e)));
    GA_Sync();
    GA_Destroy(k);
    GA_Destroy(h);
    GA_Destroy(g);
    free(v);
}

/* Fewer blocks than ranks: some ranks own nothing, but use the array. */
static void few_blocks(void)
{
    int dims[1] = {33}, block[1] = {ga_ranks > 1 ? ga_ranks - 1 : 1}, map[64], lo[1], hi[1], ld = 1;
    for (int b = 0; b < block[0]; b++)
        map[b] = b * 2;
    int g = NGA_Create_irreg(C_DBL, 1, dims, "few", block, map);
    CHECK(g, "cannot create");
    double one = 1.0, v[33];
    GA_Fill(g, &one);
    for (int e = 0; e < 33; e++)
        v[e] = e;
    lo[0] = 0;
    hi[0] = 32;
    NGA_Acc(g, lo, hi, v, &ld, &one);
    GA_Sync();
    NGA_Get(g, lo, hi, v, &ld);
    for (int e = 0; e < 33; e++)
        CHECK(v[e] == 1 + e * ga_ranks, "element %d is %g, not %d", e, v[e], 1 + e * ga_ranks);
    if (ga_ranks > 1)
        CHECK(owned(g, lo, hi) == (ga_me < ga_ranks - 1), "rank %d owns the wrong part", ga_me);
    GA_Sync();
    GA_Destroy(g);
}

/* Block-cyclic: blocks are assigned in turn, and any patch still reads as one. */
static void block_cyclic(void)
{
    int dims[2] = {N, M}, blocks[2] = {7, 4}, lo[2] = {4, 3}, hi[2] = {50, 18}, ld = 16;
    int g = GA_Create_handle();
    GA_Set_data(g, 2, dims, C_DBL);
    GA_Set_block_cyclic(g, blocks);
    CHECK(GA_Allocate(g), "cannot create a block-cyclic array");
    CHECK(GA_Total_blocks(g) == 9 * 6, "%d blocks, not 54", GA_Total_blocks(g));
    double v[47 * 16], *w, three = 3.0, two = 2.0;
    GA_Fill(g, &three);
    for (int e = 0; e < 47 * 16; e++)
        v[e] = e;
    NGA_Acc(g, lo, hi, v, &ld, &two);
    GA_Sync();
    w = whole_matrix(g, N, M);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            int in = i >= lo[0] && i <= hi[0] && j >= lo[1] && j <= hi[1];
            double want = 3.0 + (in ? 2.0 * ga_ranks * ((i - lo[0]) * 16 + j - lo[1]) : 0);
            CHECK(w[i * M + j] == want, "block-cyclic (%d,%d) is %g, not %g", i, j, w[i * M + j], want);
        }
    free(w);
    GA_Sync();
    GA_Destroy(g);
}

int main(int argc, char **argv)
{
    ga_start(&argc, &argv, "ga_irregular");
    for (int t = 0; t < ELEM_TYPES; t++)
        rows(&elem_types[t]);
    few_blocks();
    block_cyclic();
    return ga_finish();
}
