/* Ghost cells in forms that ga_ghosts.c does not cover: one and four dimensions, all types, uneven
 * blocks, arrays created by a handle; non-blocking updates; access to single elements.
 * (NGA_NbGet_ghost_dir of GA 5.8 takes its mask for an index and refuses valid masks.) */
// TEST: ga
#include "ga_check.h"

enum { MOST = 4 };

static int wrap(int i, int n) { return ((i % n) + n) % n; }

/* Returns the number of an element in the whole array. */
static long number(int ndim, const int *dims, const int *at)
{
    long n = 0;
    for (int d = 0; d < ndim; d++)
        n = n * dims[d] + wrap(at[d], dims[d]);
    return n;
}

/* Advances to the next place in a box; returns 0 after the last one. */
static int step(int ndim, const int *ext, int *at)
{
    for (int d = ndim - 1; d >= 0; d--) {
        if (++at[d] < ext[d])
            return 1;
        at[d] = 0;
    }
    return 0;
}

static long place(int ndim, const int *ld, const int *at)
{
    long p = at[0];
    for (int d = 1; d < ndim; d++)
        p = p * ld[d - 1] + at[d];
    return p;
}

/* Stores values in the own elements, and in the ghosts a value that no element has. */
static void fill(const elem_type *t, int g, int ndim, const int *dims, const int *width)
{
    int lo[MOST], hi[MOST], ext[MOST], ld[MOST], at[MOST] = {0}, real[MOST];
    char *p;
    if (owned(g, lo, hi)) {
        NGA_Access_ghosts(g, ext, &p, ld);
        do {
            int own = 1;
            for (int d = 0; d < ndim; d++) {
                real[d] = lo[d] - width[d] + at[d];
                own = own && real[d] >= lo[d] && real[d] <= hi[d];
            }
            elem_store(t, p, place(ndim, ld, at), own ? elem_value(t, 6, number(ndim, dims, real)) : -5000);
        } while (step(ndim, ext, at));
        NGA_Release_update_ghosts(g);
    }
    GA_Sync();
}

/* Checks that all ghosts hold the elements at their place, periodic at the edges of the array. */
static void check(const elem_type *t, int g, int ndim, const int *dims, const int *width, const char *what)
{
    int lo[MOST], hi[MOST], ext[MOST], ld[MOST], at[MOST] = {0}, real[MOST];
    char *p, *one;
    GA_Sync();
    if (owned(g, lo, hi)) {
        NGA_Access_ghosts(g, ext, &p, ld);
        for (int d = 0; d < ndim; d++)
            CHECK(ext[d] == hi[d] - lo[d] + 1 + 2 * width[d], "%s: %d long in dimension %d", what, ext[d], d);
        do {
            for (int d = 0; d < ndim; d++)
                real[d] = lo[d] - width[d] + at[d];
            const double complex want = elem_value(t, 6, number(ndim, dims, real));
            const double complex got = elem_load(t, p, place(ndim, ld, at));
            CHECK(got == want, "%s of %s: ghost (%d,%d,..) of a part from (%d,..): %g%+gi, not %g%+gi", what, t->name,
                  at[0], ndim > 1 ? at[1] : 0, lo[0], creal(got), cimag(got), creal(want), cimag(want));
        } while (step(ndim, ext, at));
        NGA_Release_ghosts(g);
        for (int d = 0; d < ndim; d++)
            at[d] = ext[d] - 1;     /* the last corner on its own */
        NGA_Access_ghost_element(g, &one, at, ld);
        CHECK(elem_load(t, one, 0) == elem_load(t, p, place(ndim, ld, at)), "%s: the corner by itself differs", what);
        NGA_Release_ghost_element(g, at);
    }
    GA_Sync();
}

static void updates(const elem_type *t, int g, int ndim, int *dims, int *width, const char *what)
{
    ga_nbhdl_t handle;
    CHECK(GA_Has_ghosts(g), "%s: no ghosts", what);
    fill(t, g, ndim, dims, width);
    GA_Update_ghosts(g);
    check(t, g, ndim, dims, width, what);

    fill(t, g, ndim, dims, width);
    NGA_Update_ghosts_nb(g, &handle);
    NGA_NbWait(&handle);
    check(t, g, ndim, dims, width, what);
    GA_Destroy(g);
}

static void regular(const elem_type *t)
{
    static const struct { int ndim, dims[MOST], width[MOST]; } all[] = {
        {1, {50}, {3}}, {2, {18, 21}, {2, 1}}, {3, {9, 8, 10}, {1, 2, 1}}, {4, {6, 5, 6, 4}, {1, 1, 1, 1}},
    };
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++) {
        int dims[MOST], width[MOST];
        memcpy(dims, all[i].dims, sizeof dims);
        memcpy(width, all[i].width, sizeof width);
        int g = NGA_Create_ghosts(t->id, all[i].ndim, dims, width, "regular", NULL);
        CHECK(g, "cannot create with ghosts");
        updates(t, g, all[i].ndim, dims, width, "regular");
        g = GA_Create_handle();
        GA_Set_data(g, all[i].ndim, dims, t->id);
        GA_Set_ghosts(g, width);
        CHECK(GA_Allocate(g), "cannot allocate with ghosts");
        updates(t, g, all[i].ndim, dims, width, "by a handle");
    }
}

static void uneven(const elem_type *t)
{
    int dims[2] = {9 + 7 * ga_ranks, 13}, width[2] = {2, 3}, blocks[2] = {ga_ranks, 1}, *map;
    map = malloc(sizeof(int) * (size_t)(ga_ranks + 1));
    for (int r = 0; r < ga_ranks; r++)
        map[r] = r == 0 ? 0 : 7 * r + (r % 2 ? 4 : 0);
    map[ga_ranks] = 0;
    int g = NGA_Create_ghosts_irreg(t->id, 2, dims, width, "uneven", blocks, map);
    CHECK(g, "cannot create with uneven blocks");
    updates(t, g, 2, dims, width, "uneven blocks");
    free(map);
}

int main(int argc, char **argv)
{
    ga_start(&argc, &argv, "ga_ghosts_more");
    for (int t = 0; t < ELEM_TYPES; t++) {
        regular(&elem_types[t]);
        uneven(&elem_types[t]);
    }
    return ga_finish();
}
