/*
 * RandomAccess of the HPC Challenge benchmarks with X10Lib. A table is distributed in equal parts
 * over all places. The numbers of a pseudo-random stream select the entries to update (entry ^=
 * number) at any place. Each number travels as the only argument of an aggregated async, which
 * updates the entry at its owner. No update is lost, because a place runs one async at a time.
 *
 *   mpiexec -n 4 x10_random_access [log2 of entries per place [updates per entry [pairs]]]
 *
 * The stream is that of the benchmark, over the polynomial x^64 + x^2 + x + 1. Every place takes
 * its own section of it. A second run of the same updates restores the table, which the program
 * checks: the benchmark allows 1 % of wrong entries, this program none. So runs come in pairs. The
 * reported rate is the median of all runs. The benchmark lets a place look ahead by 1,024 numbers.
 * To comply strictly on more than two places, set X10_MAX_AGG_SIZE accordingly.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <x10/x10lib.h>

#define POLYNOMIAL 7u
#define PERIOD 1317624576693539401ULL
#define HANDLE 1
#define MOST_RUNS 100

static uint64_t *table, mask;
static int me, places, bits;

static void check(int code, const char *call)
{
  if (code != X10_OK) {
    fprintf(stderr, "place %d: %s: %s\n", me, call, x10_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
#define CHECK(call) check((call), #call)

/* Returns the next number: times x, reduced. */
static inline uint64_t next(uint64_t number)
{
  return (number << 1) ^ ((int64_t)number < 0 ? POLYNOMIAL : 0);
}

static uint64_t product(uint64_t a, uint64_t b)
{
  uint64_t result = 0;
  for (int bit = 63; bit >= 0; bit--) {
    result = next(result);
    if (b >> bit & 1)
      result ^= a;
  }
  return result;
}

/* Returns the number at a position of the stream, a power of x. The stream begins with 1. */
static uint64_t stream_at(uint64_t position)
{
  uint64_t result = 1, power = 2;
  for (position %= PERIOD; position; position >>= 1) {
    if (position & 1)
      result = product(result, power);
    power = product(power, power);
  }
  return result;
}

// ANCHOR: update
/* Runs at the owner. */
static void update(async_arg_t *args, int n)
{
  const uint64_t number = (uint64_t)args[0];
  (void)n;
  table[number & mask] ^= number;
}

/* Makes all updates of this place's section. Returns when those of all places are done. */
static void run(uint64_t updates)
{
  const uint64_t others = (uint64_t)places - 1;
  const int power_of_two = ((uint64_t)places & others) == 0;
  uint64_t number = stream_at(updates * (uint64_t)me);

  for (uint64_t i = 0; i < updates; i++) {
    number = next(number);
    const uint64_t entry = number >> bits;
    const place_t owner = (place_t)(power_of_two ? entry & others : entry % (uint64_t)places);
    const int code = x10_asyncSpawnInlineAgg(owner, 1, update, HANDLE, number);
    if (code != X10_OK)
      check(code, "x10_asyncSpawnInlineAgg");
  }
  CHECK(x10_gfence());
}
// ANCHOR_END: update

static int by_value(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
  static double rates[MOST_RUNS];
  int runs;
  uint64_t factor, entries, updates, wrong = 0, all_wrong = 0;

  CHECK(x10_init(NULL, 0));
  CHECK(x10_getenv(X10_PLACE_ID, &me));
  CHECK(x10_getenv(X10_NUM_PLACES, &places));
  bits = argc > 1 ? atoi(argv[1]) : 18;
  factor = argc > 2 ? strtoull(argv[2], NULL, 10) : 4;
  runs = 2 * (argc > 3 ? atoi(argv[3]) : 1);
  if (bits < 1 || bits > 40 || factor < 1 || runs < 2 || runs > MOST_RUNS) {
    if (me == 0)
      fprintf(stderr, "usage: x10_random_access [1 to 40 [updates per entry [pairs, to %d]]]\n",
              MOST_RUNS / 2);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  entries = 1ULL << bits;
  mask = entries - 1;
  updates = factor * entries;
  table = malloc(entries * sizeof *table);
  if (!table) {
    fprintf(stderr, "place %d: no memory for %llu entries\n", me, (unsigned long long)entries);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (uint64_t i = 0; i < entries; i++)
    table[i] = (uint64_t)me * entries + i;
  CHECK(x10_gfence());

  for (int i = 0; i < runs; i++) {
    const double begin = MPI_Wtime();
    run(updates);
    rates[i] = (double)updates * places / (MPI_Wtime() - begin);
  }
  for (uint64_t i = 0; i < entries; i++)
    wrong += table[i] != (uint64_t)me * entries + i;
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);

  qsort(rates, (size_t)runs, sizeof *rates, by_value);
  if (me == 0) {
    const double rate = (rates[runs / 2] + rates[runs / 2 - 1]) / 2;
    printf("places %d, entries 2^%d each, %llu updates a run\n", places, bits,
           (unsigned long long)(updates * (uint64_t)places));
    printf("GUPS %.6f, %.2f million updates a second\n", rate * 1e-9, rate * 1e-6);
    printf("wrong entries %llu: %s\n", (unsigned long long)all_wrong, all_wrong ? "FAILED" : "passed");
  }
  CHECK(x10_finalize());
  free(table);
  return all_wrong != 0;
}
