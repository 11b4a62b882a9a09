/* Ghost cells: after an update every rank's border holds its neighbours' elements, periodic at the
 * edges of the array; updates of all sides or of one direction. */
// TEST: ga
#include "ga_check.h"

static int wrap(int i, int n) { return ((i % n) + n) % n; }

static double value(int i, int j, int k) { return 10000.0 * i + 100.0 * j + k; }

static void fill(int g, int ndim)
{
    int lo[3] = {0, 0, 0}, hi[3] = {0, 0, 0}, ld[2];
    double *p;
    if (!owned(g, lo, hi))
        return;
    NGA_Access(g, lo, hi, &p, ld);
    for (int i = lo[0]; i <= hi[0]; i++)
        for (int j = lo[1]; j <= hi[1]; j++)
            if (ndim == 2) {
                p[(i - lo[0]) * ld[0] + j - lo[1]] = value(i, j, 0);
            } else {
                for (int k = lo[2]; k <= hi[2]; k++)
                    p[((i - lo[0]) * ld[0] + j - lo[1]) * ld[1] + k - lo[2]] = value(i, j, k);
            }
    NGA_Release_update(g, lo, hi);
}

static void planes(int n, int m, int wi, int wj)
{
    int dims[2] = {n, m}, width[2] = {wi, wj}, lo[2], hi[2], ext[2], ld[1];
    int g = NGA_Create_ghosts(C_DBL, 2, dims, width, "ghosts", NULL);
    CHECK(g && GA_Has_ghosts(g), "cannot create with ghosts");
    double minus = -1, *p;
    GA_Fill(g, &minus);
    fill(g, 2);
    GA_Sync();
    GA_Update_ghosts(g);
    GA_Sync();
    if (owned(g, lo, hi)) {
        NGA_Access_ghosts(g, ext, &p, ld);
        CHECK(ext[0] == hi[0] - lo[0] + 1 + 2 * wi && ext[1] == hi[1] - lo[1] + 1 + 2 * wj,
              "part with ghosts is %d x %d", ext[0], ext[1]);
        for (int i = 0; i < ext[0]; i++)
            for (int j = 0; j < ext[1]; j++) {
                double want = value(wrap(lo[0] - wi + i, n), wrap(lo[1] - wj + j, m), 0);
                CHECK(p[i * ld[0] + j] == want, "%d x %d, widths %d %d, ghost (%d,%d): %g, not %g", n, m,
                      wi, wj, i, j, p[i * ld[0] + j], want);
            }
        NGA_Release_ghosts(g);
    }
    GA_Sync();

    /* Ghosts do not affect gets of the array itself. */
    double *w = whole_matrix(g, n, m);
    for (int e = 0; e < n * m; e++)
        CHECK(w[e] == value(e / m, e % m, 0), "(%d,%d) is %g", e / m, e % m, w[e]);
    free(w);
    GA_Sync();
    GA_Destroy(g);
}

static void one_direction(void)
{
    int dims[2] = {20, 24}, width[2] = {1, 2}, lo[2], hi[2], ext[2], ld[1];
    int g = NGA_Create_ghosts(C_DBL, 2, dims, width, "directed", NULL);
    double minus = -1, *p;
    CHECK(g, "cannot create with ghosts");
    GA_Fill(g, &minus);
    fill(g, 2);
    GA_Sync();
    /* Both sides of both dimensions; the last flag includes the corners. */
    for (int d = 0; d < 2; d++)
        for (int dir = -1; dir <= 1; dir += 2)
            CHECK(NGA_Update_ghost_dir(g, d, dir, 1), "update of dimension %d, direction %d failed", d, dir);
    GA_Sync();
    if (owned(g, lo, hi)) {
        NGA_Access_ghosts(g, ext, &p, ld);
        for (int i = 0; i < ext[0]; i++)
            for (int j = 0; j < ext[1]; j++) {
                int corner = (i < 1 || i >= ext[0] - 1) && (j < 2 || j >= ext[1] - 2);
                double want = value(wrap(lo[0] - 1 + i, 20), wrap(lo[1] - 2 + j, 24), 0);
                CHECK(corner || p[i * ld[0] + j] == want, "by direction, ghost (%d,%d): %g, not %g", i, j,
                      p[i * ld[0] + j], want);
            }
        NGA_Release_ghosts(g);
    }
    GA_Sync();
    GA_Destroy(g);
}

static void cube(void)
{
    int dims[3] = {8, 10, 12}, width[3] = {1, 1, 2}, lo[3], hi[3], ext[3], ld[2];
    int g = NGA_Create_ghosts(C_DBL, 3, dims, width, "cube", NULL);
    double minus = -1, *p;
    CHECK(g, "cannot create with ghosts");
    GA_Fill(g, &minus);
    fill(g, 3);
    GA_Sync();
    GA_Update_ghosts(g);
    GA_Sync();
    if (owned(g, lo, hi)) {
        NGA_Access_ghosts(g, ext, &p, ld);
        for (int i = 0; i < ext[0]; i++)
            for (int j = 0; j < ext[1]; j++)
                for (int k = 0; k < ext[2]; k++) {
                    double want = value(wrap(lo[0] - 1 + i, 8), wrap(lo[1] - 1 + j, 10),
                                        wrap(lo[2] - 2 + k, 12));
                    double got = p[(i * ld[0] + j) * ld[1] + k];
                    CHECK(got == want, "cube, ghost (%d,%d,%d): %g, not %g", i, j, k, got, want);
                }
        NGA_Release_ghosts(g);
    }
    GA_Sync();
    GA_Destroy(g);
}

int main(int argc, char **argv)
{
    ga_start(&argc, &argv, "ga_ghosts");
    planes(16, 16, 1, 1);
    planes(25, 30, 2, 3);
    planes(40, 12, 3, 0);
    one_direction();
    cube();
    return ga_finish();
}
