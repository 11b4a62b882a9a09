/* Puts and gets of random patches in arrays of every type and of 1 to 5 dimensions, with buffers
 * that are wider than the patch. */
// TEST: ga ga-moving
#include "ga_check.h"

#define MAX_DIM 5
#define ROUNDS 40

/* Visits the patch lo..hi in row-major order: advances *sub to the next element, returns 0 at the
 * end. */
static int next(int ndim, const int lo[], const int hi[], int sub[])
{
    for (int d = ndim - 1; d >= 0; d--) {
        if (++sub[d] <= hi[d])
            return 1;
        sub[d] = lo[d];
    }
    return 0;
}

static long place(int ndim, const int dims[], const int sub[])
{
    long at = 0;
    for (int d = 0; d < ndim; d++)
        at = at * dims[d] + sub[d];
    return at;
}

/* Returns the index of sub in a buffer with leading dimensions ld that starts at lo. */
static long in_buffer(int ndim, const int lo[], const int ld[], const int sub[])
{
    long at = sub[0] - lo[0];
    for (int d = 1; d < ndim; d++)
        at = at * ld[d - 1] + (sub[d] - lo[d]);
    return at;
}

static void one(const elem_type *t, int ndim, int dims[])
{
    int g = make_array(t, ndim, dims, "patched");
    int lo[MAX_DIM], hi[MAX_DIM], ld[MAX_DIM], sub[MAX_DIM], whole = 1;
    unsigned state = 17;
    for (int d = 0; d < ndim; d++)
        whole *= dims[d];
    double complex *shadow = calloc((size_t)whole, sizeof *shadow);
    /* Leading dimensions are up to 2 wider than the array. */
    long room = dims[0];
    for (int d = 1; d < ndim; d++)
        room *= dims[d] + 2;
    char *buf = malloc((size_t)room * t->size);
    CHECK(shadow && buf, "no memory");
    GA_Zero(g);

    /* Every rank follows the same sequence; one rank puts in each round. */
    for (int round = 0; round < ROUNDS; round++) {
        for (int d = 0; d < ndim; d++) {
            int a = ga_random(&state, dims[d]), b = ga_random(&state, dims[d]);
            lo[d] = a < b ? a : b;
            hi[d] = a < b ? b : a;
            if (d)
                ld[d - 1] = hi[d] - lo[d] + 1 + round % 3;
        }
        GA_Sync();
        memcpy(sub, lo, sizeof sub);
        do {
            double complex z = elem_value(t, round, place(ndim, dims, sub));
            shadow[place(ndim, dims, sub)] = z;
            elem_store(t, buf, in_buffer(ndim, lo, ld, sub), z);
        } while (next(ndim, lo, hi, sub));
        if (round % ga_ranks == ga_me)
            NGA_Put(g, lo, hi, buf, ld);
        GA_Sync();

        /* Each rank gets a different patch, which need not overlap the last put. */
        unsigned mine = (unsigned)(round * 101 + ga_me * 7919);
        for (int d = 0; d < ndim; d++) {
            int a = ga_random(&mine, dims[d]), b = ga_random(&mine, dims[d]);
            lo[d] = a < b ? a : b;
            hi[d] = a < b ? b : a;
            if (d)
                ld[d - 1] = hi[d] - lo[d] + 1 + (round + ga_me) % 3;
        }
        memset(buf, 0x5a, (size_t)room * t->size);
        NGA_Get(g, lo, hi, buf, ld);
        memcpy(sub, lo, sizeof sub);
        do {
            double complex want = shadow[place(ndim, dims, sub)];
            double complex got = elem_load(t, buf, in_buffer(ndim, lo, ld, sub));
            CHECK(got == want, "%s, %d dimensions, round %d, element %ld: %g%+gi, not %g%+gi",
                  t->name, ndim, round, place(ndim, dims, sub), creal(got), cimag(got),
                  creal(want), cimag(want));
        } while (next(ndim, lo, hi, sub));
    }
    GA_Destroy(g);
    free(shadow);
    free(buf);
}

int main(int argc, char **argv)
{
    int shapes[][MAX_DIM] = {{211}, {17, 23}, {64, 64}, {7, 9, 10}, {4, 5, 6, 7}, {3, 4, 3, 5, 4}};
    int ndims[] = {1, 2, 2, 3, 4, 5};
    ga_start(&argc, &argv, "ga_patches");
    for (int t = 0; t < ELEM_TYPES; t++)
        for (size_t s = 0; s < sizeof ndims / sizeof *ndims; s++)
            one(&elem_types[t], ndims[s], shapes[s]);
    return ga_finish();
}
