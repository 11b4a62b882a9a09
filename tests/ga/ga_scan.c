/* Vectors: enumeration of a patch, segmented copies and sums, packing by a mask and unpacking;
 * whole vectors and parts of them, longer and shorter than the number of ranks. */
// TEST: ga
#include "ga_check.h"

static void put_all(int g, int n, void *all)
{
    int lo[1] = {0}, hi[1] = {n - 1}, ld[1] = {n};
    GA_Sync();
    if (ga_me == 0)
        NGA_Put(g, lo, hi, all, ld);
    GA_Sync();
}

static void get_all(int g, int n, void *all)
{
    int lo[1] = {0}, hi[1] = {n - 1}, ld[1] = {n};
    GA_Sync();
    NGA_Get(g, lo, hi, all, ld);
    GA_Sync();
}

/* A vector of values, a mask, and the expected result. */
typedef struct {
    const elem_type *t;
    int n, src, dst, mask;
    int *bits;
    void *values, *got;
} vectors;

static void setup(vectors *v, const elem_type *t, int n)
{
    int dims[1] = {n};
    v->t = t;
    v->n = n;
    v->src = make_array(t, 1, dims, "source");
    v->dst = make_array(t, 1, dims, "destination");
    v->mask = make_array(&elem_types[0], 1, dims, "mask");
    v->bits = malloc((size_t)n * sizeof(int));
    v->values = malloc((size_t)n * t->size);
    v->got = malloc((size_t)n * t->size);
    for (int i = 0; i < n; i++)
        elem_store(t, v->values, i, elem_value(t, 4, i));
    put_all(v->src, n, v->values);
}

static void teardown(vectors *v)
{
    GA_Destroy(v->src);
    GA_Destroy(v->dst);
    GA_Destroy(v->mask);
    free(v->bits);
    free(v->values);
    free(v->got);
}

/* Sets the first bit of the part, and every `every`-th bit or, if `every` is 0, random bits. */
static void set_bits(vectors *v, int lo, int every)
{
    unsigned state = 5u + (unsigned)every;
    for (int i = 0; i < v->n; i++)
        v->bits[i] = i == lo || (every > 0 ? i % every == 0 : ga_random(&state, 3) == 0);
    put_all(v->mask, v->n, v->bits);
}

static void expect(const vectors *v, int i, double complex want, const char *what, int lo, int hi)
{
    const double complex got = elem_load(v->t, v->got, i);
    CHECK(got == want, "%s of %d %s, part %d to %d: element %d is %g%+gi, not %g%+gi", what, v->n, v->t->name,
          lo, hi, i, creal(got), cimag(got), creal(want), cimag(want));
}

static void scans(vectors *v, int lo, int hi)
{
    double complex sum = 0, copied = 0;
    GA_Zero(v->dst);
    GA_Scan_copy(v->src, v->dst, v->mask, lo, hi);
    get_all(v->dst, v->n, v->got);
    for (int i = 0; i < v->n; i++) {
        if (i >= lo && i <= hi && v->bits[i])
            copied = elem_load(v->t, v->values, i);
        expect(v, i, i >= lo && i <= hi ? copied : 0, "scan_copy", lo, hi);
    }
    for (int exclusive = 0; exclusive <= 1; exclusive++) {
        GA_Zero(v->dst);
        GA_Scan_add(v->src, v->dst, v->mask, lo, hi, exclusive);
        get_all(v->dst, v->n, v->got);
        for (int i = lo; i <= hi; i++) {
            const double complex x = elem_load(v->t, v->values, i);
            if (v->bits[i])
                sum = 0;
            expect(v, i, exclusive ? sum : sum + x, exclusive ? "exclusive scan_add" : "scan_add", lo, hi);
            sum += x;
        }
    }
}

static void packing(vectors *v, int lo, int hi)
{
    int count = -1, want = 0;
    GA_Zero(v->dst);
    GA_Pack(v->src, v->dst, v->mask, lo, hi, &count);
    get_all(v->dst, v->n, v->got);
    for (int i = lo; i <= hi; i++)
        if (v->bits[i])
            expect(v, want++, elem_load(v->t, v->values, i), "pack", lo, hi);
    CHECK(count == want, "pack of %d: %d elements, not %d", v->n, count, want);

    /* Unpacks the elements to their old places; the other elements keep their values. */
    double complex other = elem_value(v->t, 9, 1);
    char fill[2 * sizeof(double)];
    elem_store(v->t, fill, 0, other);
    GA_Fill(v->src, fill);
    GA_Unpack(v->dst, v->src, v->mask, lo, hi, &count);
    get_all(v->src, v->n, v->got);
    for (int i = 0; i < v->n; i++)
        expect(v, i, i >= lo && i <= hi && v->bits[i] ? elem_load(v->t, v->values, i) : other, "unpack", lo, hi);
    CHECK(count == want, "unpack of %d: %d elements, not %d", v->n, count, want);
    put_all(v->src, v->n, v->values);
}

static void enumeration(vectors *v, int lo, int hi)
{
    char start[2 * sizeof(double)], step[2 * sizeof(double)];
    elem_store(v->t, start, 0, 7 + (v->t->is_complex ? 2 * I : 0));
    elem_store(v->t, step, 0, 3 - (v->t->is_complex ? 1 * I : 0));
    GA_Zero(v->dst);
    GA_Patch_enum(v->dst, lo, hi, start, step);
    get_all(v->dst, v->n, v->got);
    for (int i = 0; i < v->n; i++) {
        double complex want = 0;
        if (i >= lo && i <= hi)
            want = 7 + 3 * (i - lo) + (v->t->is_complex ? (2 - (i - lo)) * I : 0);
        expect(v, i, want, "patch_enum", lo, hi);
    }
}

int main(int argc, char **argv)
{
    static const int lengths[] = {1, 3, 150};
    vectors v;
    ga_start(&argc, &argv, "ga_scan");
    for (int t = 0; t < ELEM_TYPES; t++)
        for (int l = 0; l < (int)(sizeof lengths / sizeof *lengths); l++) {
            const int n = lengths[l];
            setup(&v, &elem_types[t], n);
            for (int every = 0; every <= n; every = every * 9 + 1) {
                set_bits(&v, 0, every);
                scans(&v, 0, n - 1);
                packing(&v, 0, n - 1);
                if (n > 5) {
                    set_bits(&v, n / 5, every);
                    scans(&v, n / 5, n - 2);
                    packing(&v, n / 5, n - 2);
                }
            }
            enumeration(&v, 0, n - 1);
            enumeration(&v, n / 3, n - 1 - n / 4);
            teardown(&v);
        }
    return ga_finish();
}
