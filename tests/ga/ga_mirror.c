/* Mirrored arrays: each node has a whole copy, which its ranks share. The copies are summed, and
 * copied to and from distributed arrays. */
// TEST: ga
#include "ga_check.h"

enum { N = 37, M = 29 };

static int nodes, node, first;      /* node count, own node, whether first on the node */

static double value(int i, int j) { return 1000.0 * i + j; }

static int make_mirrored(const char *name)
{
    int dims[2] = {N, M}, g = GA_Create_handle();
    GA_Set_data(g, 2, dims, C_DBL);
    GA_Set_array_name(g, (char *)name);
    GA_Set_pgroup(g, GA_Pgroup_get_mirror());
    CHECK(GA_Allocate(g), "a mirrored array cannot be had");
    CHECK(GA_Is_mirrored(g) == (nodes > 1), "on %d nodes, mirrored: %d", nodes, GA_Is_mirrored(g));
    GA_Zero(g);
    return g;
}

/* The first rank of each node fills the node's copy. */
static void fill_copies(int g, double factor)
{
    int lo[2] = {0, 0}, hi[2] = {N - 1, M - 1}, ld[1] = {M};
    double *all = malloc(sizeof(double) * N * M);
    for (int e = 0; e < N * M; e++)
        all[e] = factor * (node + 1) * value(e / M, e % M);
    GA_Sync();
    if (first)
        NGA_Put(g, lo, hi, all, ld);
    GA_Sync();
    free(all);
}

static void expect(int g, double factor, const char *what)
{
    double *all;
    GA_Sync();
    all = whole_matrix(g, N, M);
    for (int e = 0; e < N * M; e++)
        CHECK(all[e] == factor * value(e / M, e % M), "%s, node %d of %d: (%d,%d) is %g, not %g", what, node, nodes,
              e / M, e % M, all[e], factor * value(e / M, e % M));
    free(all);
    GA_Sync();
}

int main(int argc, char **argv)
{
    int dims[2] = {N, M}, lo[2] = {0, 0}, hi[2] = {N - 1, M - 1}, ld[1] = {M};
    double one = 1.0;
    ga_start(&argc, &argv, "ga_mirror");
    nodes = GA_Cluster_nnodes();
    node = GA_Cluster_nodeid();
    first = GA_Cluster_procid(node, 0) == ga_me;
    const double sum = nodes * (nodes + 1) / 2;
    int on_node = GA_Cluster_nprocs(node);

    int plain = make_matrix(N, M, "distributed");
    CHECK(!GA_Is_mirrored(plain), "an ordinary array is mirrored");

    int g = make_mirrored("mirrored");
    fill_copies(g, 1);
    expect(g, node + 1, "a node's own copy");
    GA_Merge_mirrored(g);
    expect(g, sum, "the sum of the copies");

    /* All ranks of a node add to its copy at once. */
    double *all = malloc(sizeof(double) * N * M);
    for (int e = 0; e < N * M; e++)
        all[e] = value(e / M, e % M);
    NGA_Acc(g, lo, hi, all, ld, &one);
    expect(g, sum + on_node, "after accumulates of all ranks of the node");
    GA_Zero(g);
    NGA_Acc(g, lo, hi, all, ld, &one);
    GA_Merge_mirrored(g);
    expect(g, ga_ranks, "accumulates of all ranks, merged");

    /* A copy from a distributed array to every node's copy, and back. */
    set_matrix(plain, N, M, all);
    GA_Zero(g);
    GA_Copy(plain, g);
    expect(g, 1, "copies of a distributed array");
    double three = 3.0;
    GA_Scale(g, &three);
    GA_Zero(plain);
    GA_Copy(g, plain);
    expect(plain, 3, "a distributed array from copies");

    /* Part of the copies, summed into a distributed array. */
    int plo[2] = {3, 2}, phi[2] = {N - 4, M - 6};
    fill_copies(g, 1);
    GA_Zero(plain);
    NGA_Merge_distr_patch(g, plo, phi, plain, plo, phi);
    GA_Sync();
    double *got = whole_matrix(plain, N, M);
    for (int e = 0; e < N * M; e++) {
        const int i = e / M, j = e % M;
        const int inside = i >= plo[0] && i <= phi[0] && j >= plo[1] && j <= phi[1];
        const double want = inside ? sum * value(i, j) : 0;
        CHECK(got[e] == want, "a merged patch: (%d,%d) is %g, not %g", i, j, got[e], want);
    }
    free(got);
    GA_Sync();
    CHECK(dims[0] == N, "dimensions changed");
    free(all);
    GA_Destroy(g);
    GA_Destroy(plain);
    return ga_finish();
}
