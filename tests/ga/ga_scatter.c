/* Scatter, gather and scatter-accumulate of single elements at arbitrary places. */
// TEST: ga ga-moving
#include "ga_check.h"

#define N 37
#define M 29
#define COUNT 300

static void one(const elem_type *t, int flat)
{
    int dims[2] = {N, M}, g = make_array(t, 2, dims, "scattered");
    char *v = malloc(COUNT * t->size), scale[16];
    int subs[COUNT][2], *list[COUNT];
    CHECK(v, "no memory");
    GA_Zero(g);

    /* Rank r writes its own elements, every ga_ranks-th in a shuffled order. */
    int count = 0;
    for (long e = 0; e < N * M && count < COUNT; e++) {
        long at = e * 577 % (N * M);        /* 577 and N*M are coprime */
        if (at % ga_ranks != ga_me)
            continue;
        subs[count][0] = (int)(at / M);
        subs[count][1] = (int)(at % M);
        list[count] = subs[count];
        elem_store(t, v, count, elem_value(t, 2, at));
        count++;
    }
    if (flat)
        NGA_Scatter_flat(g, v, &subs[0][0], count);
    else
        NGA_Scatter(g, v, list, count);
    GA_Sync();

    memset(v, 0x33, COUNT * t->size);
    if (flat)
        NGA_Gather_flat(g, v, &subs[0][0], count);
    else
        NGA_Gather(g, v, list, count);
    for (int e = 0; e < count; e++) {
        double complex got = elem_load(t, v, e), want = elem_value(t, 2, subs[e][0] * M + subs[e][1]);
        CHECK(got == want, "%s, scatter and gather of (%d,%d): %g%+gi, not %g%+gi", t->name,
              subs[e][0], subs[e][1], creal(got), cimag(got), creal(want), cimag(want));
    }
    GA_Sync();

    /* All ranks add to the same elements, and the sum is exact. */
    GA_Zero(g);
    elem_store(t, scale, 0, 3.0);
    for (int e = 0; e < COUNT; e++) {
        long at = e * 577L % (N * M);
        subs[e][0] = (int)(at / M);
        subs[e][1] = (int)(at % M);
        list[e] = subs[e];
        elem_store(t, v, e, elem_value(t, ga_me, at));
    }
    if (flat)
        NGA_Scatter_acc_flat(g, v, &subs[0][0], COUNT, scale);
    else
        NGA_Scatter_acc(g, v, list, COUNT, scale);
    GA_Sync();
    NGA_Gather(g, v, list, COUNT);
    for (int e = 0; e < COUNT; e++) {
        double complex want = 0, got = elem_load(t, v, e);
        for (int q = 0; q < ga_ranks; q++)
            want += 3.0 * elem_value(t, q, subs[e][0] * M + subs[e][1]);
        CHECK(got == want, "%s, scatter-accumulate at (%d,%d): %g%+gi, not %g%+gi", t->name,
              subs[e][0], subs[e][1], creal(got), cimag(got), creal(want), cimag(want));
    }
    GA_Sync();
    GA_Destroy(g);
    free(v);
}

int main(int argc, char **argv)
{
    ga_start(&argc, &argv, "ga_scatter");
    for (int t = 0; t < ELEM_TYPES; t++) {
        one(&elem_types[t], 0);
        one(&elem_types[t], 1);
    }
    return ga_finish();
}
