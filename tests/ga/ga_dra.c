/* Disk-resident arrays: whole arrays and sections are written, read back after reopening, and
 * deleted; all types, one file for all ranks and one file per rank. */
// TEST: ga
#include "ga_check.h"

#include <dra.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[256], own_directory[300];

/* Returns the name of one file for all ranks or, as on nodes with local disks, the same name in
 * each rank's own working directory. */
static void file_name(char *name, size_t room, const char *what, int shared)
{
    if (shared)
        snprintf(name, room, "%s/%s", directory, what);
    else
        snprintf(name, room, "%s", what);
}

static void make_directories(void)
{
    if (ga_me == 0) {
        const char *base = getenv("TMPDIR");
        snprintf(directory, sizeof directory, "%s/ga_dra.XXXXXX", base ? base : "/tmp");
        CHECK(mkdtemp(directory) != NULL, "no directory %s", directory);
    }
    MPI_Bcast(directory, sizeof directory, MPI_CHAR, 0, MPI_COMM_WORLD);
    snprintf(own_directory, sizeof own_directory, "%s/%d", directory, ga_me);
    CHECK(mkdir(own_directory, 0700) == 0 && chdir(own_directory) == 0, "no directory %s", own_directory);
}

static void remove_empty(const char *name)
{
    DIR *d = opendir(name);
    struct dirent *e;
    CHECK(d != NULL, "%s is gone", name);
    while ((e = readdir(d)) != NULL)
        CHECK(e->d_name[0] == '.', "%s/%s is left", name, e->d_name);
    closedir(d);
    CHECK(rmdir(name) == 0, "%s cannot be removed", name);
}

/* Removes the directories, which must be empty when all disk arrays are deleted. */
static void remove_directories(void)
{
    GA_Sync();
    CHECK(chdir("/") == 0, "no root");
    remove_empty(own_directory);
    GA_Sync();
    if (ga_me == 0)
        remove_empty(directory);
}

static void fill(const elem_type *t, int g, int ndim, const int dims[], int seed)
{
    int lo[3], hi[3], ld[2], at[3] = {0, 0, 0};
    char *p;
    if (owned(g, lo, hi)) {
        NGA_Access(g, lo, hi, &p, ld);
        long n = 1;
        for (int d = 0; d < ndim; d++)
            n *= hi[d] - lo[d] + 1;
        for (long e = 0; e < n; e++) {
            long rest = e, place = 0, from = 0;
            for (int d = ndim - 1; d >= 0; d--) {
                at[d] = (int)(rest % (hi[d] - lo[d] + 1));
                rest /= hi[d] - lo[d] + 1;
            }
            for (int d = 0; d < ndim; d++) {
                place = place * dims[d] + lo[d] + at[d];
                from = from * (d ? ld[d - 1] : 1) + at[d];
            }
            elem_store(t, p, from, elem_value(t, seed, place));
        }
        NGA_Release_update(g, lo, hi);
    }
    GA_Sync();
}

static void same(const elem_type *t, int g, int ndim, const int dims[], int seed, const char *what)
{
    int lo[3] = {0, 0, 0}, hi[3], ld[2];
    long n = 1;
    for (int d = 0; d < ndim; d++) {
        hi[d] = dims[d] - 1;
        n *= dims[d];
        if (d)
            ld[d - 1] = dims[d];
    }
    void *all = malloc((size_t)n * t->size);
    NGA_Get(g, lo, hi, all, ld);
    for (long e = 0; e < n; e++)
        CHECK(elem_load(t, all, e) == elem_value(t, seed, e), "%s of %s: element %ld is %g, not %g", what,
              t->name, e, creal(elem_load(t, all, e)), creal(elem_value(t, seed, e)));
    free(all);
    GA_Sync();
}

static void done(int request)
{
    int status = 0;
    CHECK(DRA_Probe(request, &status) == 0, "DRA_Probe");
    CHECK(DRA_Wait(request) == 0, "DRA_Wait");
}

/* Create, write, close; open, read, delete. */
static void whole(const elem_type *t, int ndim, int shared)
{
    int dims[3] = {17, 23, 11}, got_type, got_ndim, d_a, request;
    dra_size_t disk[3], piece[3] = {5, 23, 11}, got[3];
    char file[300], name[300], got_file[300], title[] = "whole";
    int a = make_array(t, ndim, dims, "a"), b = make_array(t, ndim, dims, "b");
    for (int d = 0; d < ndim; d++)
        disk[d] = dims[d];
    fill(t, a, ndim, dims, 3);
    GA_Zero(b);
    file_name(file, sizeof file, "whole", shared);
    CHECK(NDRA_Create(t->id, ndim, disk, title, file, DRA_RW, piece, &d_a) == 0, "NDRA_Create of %s", t->name);
    CHECK(NDRA_Write(a, d_a, &request) == 0, "NDRA_Write");
    done(request);
    CHECK(DRA_Close(d_a) == 0, "DRA_Close");

    CHECK(DRA_Open(file, DRA_R, &d_a) == 0, "DRA_Open");
    memset(name, 0, sizeof name);
    CHECK(NDRA_Inquire(d_a, &got_type, &got_ndim, got, name, got_file) == 0, "NDRA_Inquire");
    CHECK(got_type == t->id && got_ndim == ndim, "type %d, %d dimensions", got_type, got_ndim);
    for (int d = 0; d < ndim; d++)
        CHECK(got[d] == dims[d], "dimension %d has %ld", d, (long)got[d]);
    CHECK(NDRA_Read(b, d_a, &request) == 0, "NDRA_Read");
    done(request);
    same(t, b, ndim, dims, 3, shared ? "one file" : "a file a rank");
    CHECK(DRA_Delete(d_a) == 0, "DRA_Delete");
    GA_Destroy(a);
    GA_Destroy(b);
}

/* Sections of an array to sections of a larger one on disk, and back to different places. */
static void sections(const elem_type *t, int shared)
{
    enum { N = 14, LARGE = 31, ROUNDS = 12 };
    int dims[3] = {N, N, N}, d_a, request, ld[2] = {N, N};
    dra_size_t disk[3] = {LARGE, LARGE, LARGE}, piece[3] = {2, N, N};
    char file[300], title[] = "sections";
    int a = make_array(t, 3, dims, "a"), b = make_array(t, 3, dims, "b");
    unsigned state = 77;
    void *from = malloc(N * N * N * t->size), *back = malloc(N * N * N * t->size);
    int all_lo[3] = {0, 0, 0}, all_hi[3] = {N - 1, N - 1, N - 1};
    fill(t, a, 3, dims, 5);
    file_name(file, sizeof file, "sections", shared);
    CHECK(NDRA_Create(t->id, 3, disk, title, file, DRA_RW, piece, &d_a) == 0, "NDRA_Create");
    for (int round = 0; round < ROUNDS; round++) {
        int glo[3], ghi[3], blo[3], bhi[3];
        dra_size_t dlo[3], dhi[3];
        for (int d = 0; d < 3; d++) {
            const int n = 1 + ga_random(&state, N);
            glo[d] = ga_random(&state, N - n + 1);
            ghi[d] = glo[d] + n - 1;
            blo[d] = ga_random(&state, N - n + 1);
            bhi[d] = blo[d] + n - 1;
            dlo[d] = ga_random(&state, LARGE - n + 1);
            dhi[d] = dlo[d] + n - 1;
        }
        CHECK(NDRA_Write_section(0, a, glo, ghi, d_a, dlo, dhi, &request) == 0, "NDRA_Write_section");
        done(request);
        GA_Zero(b);
        CHECK(NDRA_Read_section(0, b, blo, bhi, d_a, dlo, dhi, &request) == 0, "NDRA_Read_section");
        done(request);
        NGA_Get(a, all_lo, all_hi, from, ld);
        NGA_Get(b, all_lo, all_hi, back, ld);
        for (int e = 0; e < N * N * N; e++) {
            const int at[3] = {e / (N * N), e / N % N, e % N};
            long there = 0;
            int inside = 1;
            for (int d = 0; d < 3; d++) {
                inside = inside && at[d] >= blo[d] && at[d] <= bhi[d];
                there = there * N + glo[d] + at[d] - blo[d];
            }
            const double complex want = inside ? elem_load(t, from, there) : 0;
            CHECK(elem_load(t, back, e) == want, "%s, round %d: element %d is %g, not %g", t->name, round, e,
                  creal(elem_load(t, back, e)), creal(want));
        }
        GA_Sync();
    }
    CHECK(DRA_Delete(d_a) == 0, "DRA_Delete");
    free(from);
    free(back);
    GA_Destroy(a);
    GA_Destroy(b);
}

/* Several disk arrays at once, each with a request under way; one is reopened for writing. */
static void several(void)
{
    enum { ARRAYS = 4 };
    const elem_type *t = elem_double;
    int dims[2] = {40, 30}, g[ARRAYS], d_a[ARRAYS], request[ARRAYS];
    dra_size_t disk[2] = {40, 30}, piece[2] = {10, 30};
    char file[ARRAYS][300], title[] = "several";
    for (int i = 0; i < ARRAYS; i++) {
        char what[20];
        g[i] = make_array(t, 2, dims, "several");
        fill(t, g[i], 2, dims, i);
        snprintf(what, sizeof what, "several%d", i);
        file_name(file[i], sizeof file[i], what, 1);
        CHECK(NDRA_Create(t->id, 2, disk, title, file[i], DRA_RW, piece, &d_a[i]) == 0, "NDRA_Create %d", i);
        CHECK(NDRA_Write(g[i], d_a[i], &request[i]) == 0, "NDRA_Write %d", i);
    }
    for (int i = ARRAYS - 1; i >= 0; i--) {
        CHECK(DRA_Wait(request[i]) == 0, "DRA_Wait %d", i);
        CHECK(DRA_Close(d_a[i]) == 0, "DRA_Close %d", i);
    }
    CHECK(DRA_Open(file[1], DRA_RW, &d_a[1]) == 0, "DRA_Open to write");
    CHECK(NDRA_Write(g[2], d_a[1], &request[1]) == 0, "NDRA_Write again");
    done(request[1]);
    CHECK(DRA_Close(d_a[1]) == 0, "DRA_Close");
    for (int i = 0; i < ARRAYS; i++) {
        GA_Zero(g[i]);
        CHECK(DRA_Open(file[i], DRA_R, &d_a[i]) == 0, "DRA_Open %d", i);
        CHECK(NDRA_Read(g[i], d_a[i], &request[i]) == 0, "NDRA_Read %d", i);
    }
    for (int i = 0; i < ARRAYS; i++) {
        CHECK(DRA_Wait(request[i]) == 0, "DRA_Wait %d", i);
        same(t, g[i], 2, dims, i == 1 ? 2 : i, "several");
        CHECK(DRA_Delete(d_a[i]) == 0, "DRA_Delete %d", i);
        GA_Destroy(g[i]);
    }
}

int main(int argc, char **argv)
{
    ga_start(&argc, &argv, "ga_dra");
    make_directories();
    CHECK(DRA_Init(8, 1e8, 1e9, 1e6) == 0, "DRA_Init");
    for (int shared = 0; shared <= 1; shared++) {
        for (int i = 0; i < ELEM_TYPES; i++)
            for (int ndim = 1; ndim <= 3; ndim++)
                whole(&elem_types[i], ndim, shared);
        sections(elem_double, shared);
        sections(&elem_types[0], shared);
    }
    several();
    CHECK(DRA_Terminate() == 0, "DRA_Terminate");
    remove_directories();
    return ga_finish();
}
