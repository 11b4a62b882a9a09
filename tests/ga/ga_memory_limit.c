/* A memory limit per rank: an array beyond it is refused without a fatal error, and freed memory
 * can be allocated again. */
// TEST: ga
#include "ga_check.h"

#define LIMIT ((size_t)4 << 20)

int main(int argc, char **argv)
{
    ga_start_limited(&argc, &argv, "ga_memory_limit", LIMIT);
    CHECK(GA_Memory_limited(), "there is no limit");
    size_t free_at_start = GA_Memory_avail();
    CHECK(free_at_start > 0 && free_at_start <= LIMIT, "%zu bytes are available of %zu", free_at_start, LIMIT);
    CHECK(GA_Inquire_memory() == 0, "%zu bytes are in use at the start", GA_Inquire_memory());

    for (int again = 0; again < 3; again++) {
        /* About 1 MiB per rank fits. */
        int dims[2] = {128 * ga_ranks, 1024}, chunk[2] = {128, 1024};
        int fits = NGA_Create(C_DBL, 2, dims, "fits", chunk);
        CHECK(fits, "1 MiB a rank was refused");
        CHECK(GA_Inquire_memory() >= (size_t)1 << 20, "only %zu bytes are said to be in use", GA_Inquire_memory());
        CHECK(GA_Memory_avail() < free_at_start, "nothing was taken from what is available");

        /* About 8 MiB per rank does not fit. */
        int large[2] = {1024 * ga_ranks, 1024}, none = NGA_Create(C_DBL, 2, large, "too large", NULL);
        CHECK(none == 0, "8 MiB a rank were given beyond a limit of 4");

        double two = 2.0;
        GA_Fill(fits, &two);
        CHECK(GA_Ddot(fits, fits) == 4.0 * dims[0] * dims[1], "the array that fits sums to %g", GA_Ddot(fits, fits));
        GA_Sync();
        GA_Destroy(fits);
        CHECK(GA_Memory_avail() == free_at_start, "%zu bytes available after freeing, %zu before",
              GA_Memory_avail(), free_at_start);
    }

    /* The limit can be raised. */
    GA_Set_memory_limit(16 * LIMIT);
    int large[2] = {1024 * ga_ranks, 1024}, g = NGA_Create(C_DBL, 2, large, "large", NULL);
    CHECK(g, "8 MiB a rank was refused under a limit of 64");
    GA_Sync();
    GA_Destroy(g);
    return ga_finish();
}
