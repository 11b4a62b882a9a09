/* Arrays of every type and of 1 to 4 dimensions: created, queried, duplicated, compared, freed. The
 * owners' parts tile the array. */
// TEST: ga
#include "ga_check.h"

static void tiles(int g, int ndim, const int dims[])
{
    long total = 1, seen = 0;
    for (int d = 0; d < ndim; d++)
        total *= dims[d];
    for (int r = 0; r < ga_ranks; r++) {
        int lo[4], hi[4];
        long part = 1;
        NGA_Distribution(g, r, lo, hi);
        for (int d = 0; d < ndim; d++) {
            if (lo[d] < 0 || hi[d] < lo[d]) {
                part = 0;
                break;
            }
            CHECK(hi[d] < dims[d], "rank %d ends at %d of %d", r, hi[d], dims[d]);
            part *= hi[d] - lo[d] + 1;
        }
        seen += part;
        if (part) {
            CHECK(NGA_Locate(g, lo) == r, "first element of rank %d found on %d", r, NGA_Locate(g, lo));
            CHECK(NGA_Locate(g, hi) == r, "last element of rank %d found on %d", r, NGA_Locate(g, hi));
        }
    }
    CHECK(seen == total, "parts hold %ld elements of %ld", seen, total);
}

static void one(const elem_type *t, int ndim, int dims[])
{
    int g = make_array(t, ndim, dims, "first"), type, n, asked[4];
    NGA_Inquire(g, &type, &n, asked);
    CHECK(type == t->id && n == ndim, "type %d, %d dimensions", type, n);
    for (int d = 0; d < ndim; d++)
        CHECK(asked[d] == dims[d], "dimension %d is %d, not %d", d, asked[d], dims[d]);
    CHECK(GA_Ndim(g) == ndim, "GA_Ndim says %d", GA_Ndim(g));
    CHECK(strcmp(GA_Inquire_name(g), "first") == 0, "name is %s", GA_Inquire_name(g));
    tiles(g, ndim, dims);

    int h = GA_Duplicate(g, "second");
    CHECK(h != 0 && h != g, "duplicate has handle %d, the first %d", h, g);
    CHECK(GA_Compare_distr(g, h) == 0, "duplicate is distributed differently");
    CHECK(strcmp(GA_Inquire_name(h), "second") == 0, "name is %s", GA_Inquire_name(h));

    /* The duplicate has memory of its own. */
    char three[16] = {0}, four[16] = {0}, got[16] = {0};
    int last[4], ld[3] = {1, 1, 1};
    elem_store(t, three, 0, 3.0);
    elem_store(t, four, 0, 4.0);
    GA_Fill(g, three);
    GA_Fill(h, four);
    for (int d = 0; d < ndim; d++)
        last[d] = dims[d] - 1;
    NGA_Get(g, last, last, got, ld);
    CHECK(elem_load(t, got, 0) == 3.0, "%s: last element is %g, not 3", t->name, creal(elem_load(t, got, 0)));
    NGA_Get(h, last, last, got, ld);
    CHECK(elem_load(t, got, 0) == 4.0, "%s: last element is %g, not 4", t->name, creal(elem_load(t, got, 0)));
    GA_Sync();
    GA_Destroy(h);
    GA_Destroy(g);
}

int main(int argc, char **argv)
{
    int shapes[][4] = {{1}, {97}, {13, 29}, {40, 7}, {5, 6, 11}, {3, 4, 5, 7}};
    int ndims[] = {1, 1, 2, 2, 3, 4};
    ga_start(&argc, &argv, "ga_create");
    for (int t = 0; t < ELEM_TYPES; t++)
        for (size_t s = 0; s < sizeof ndims / sizeof *ndims; s++)
            one(&elem_types[t], ndims[s], shapes[s]);

    /* Creation step by step, with a minimal chunk. */
    int dims[2] = {24, 36}, chunk[2] = {24, 4}, lo[2], hi[2];
    int g = GA_Create_handle();
    GA_Set_data(g, 2, dims, C_DBL);
    GA_Set_array_name(g, "by steps");
    GA_Set_chunk(g, chunk);
    CHECK(GA_Allocate(g), "GA_Allocate failed");
    tiles(g, 2, dims);
    if (owned(g, lo, hi))
        CHECK(hi[0] - lo[0] + 1 == 24, "the chunk keeps columns whole, rows are %d..%d", lo[0], hi[0]);
    GA_Destroy(g);
    return ga_finish();
}
