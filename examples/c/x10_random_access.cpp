// RandomAccess of the HPC Challenge benchmarks with X10Lib in C++. x10_random_access.c explains it.
// Here the async is a struct, and the compiler knows the number of its arguments.
//
//   mpiexec -n 4 x10_random_access [log2 of entries per place [updates per entry [pairs]]]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <vector>
#include <x10/x10lib.h>

namespace {

const int HANDLE = 1;
std::vector<std::uint64_t> table;
std::uint64_t mask;
int me, places, bits;

void check(int code)
{
  if (code != X10_OK) {
    std::fprintf(stderr, "place %d: %s\n", me, x10lib::LastError());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

// Runs at the owner.
struct Update {
  void operator()(async_arg_t *args, int)
  {
    const std::uint64_t number = static_cast<std::uint64_t>(args[0]);
    table[number & mask] ^= number;
  }
};

// The benchmark's stream: powers of x modulo x^64 + x^2 + x + 1.
class Stream {
public:
  explicit Stream(std::uint64_t position)
  {
    std::uint64_t power = 2;
    for (position %= 1317624576693539401ULL; position; position >>= 1) {
      if (position & 1)
        number = product(number, power);
      power = product(power, power);
    }
  }
  std::uint64_t next() { return number = doubled(number); }

private:
  static std::uint64_t doubled(std::uint64_t n)
  {
    return (n << 1) ^ (static_cast<std::int64_t>(n) < 0 ? 7 : 0);
  }
  static std::uint64_t product(std::uint64_t a, std::uint64_t b)
  {
    std::uint64_t result = 0;
    for (int bit = 63; bit >= 0; bit--)
      result = doubled(result) ^ (b >> bit & 1 ? a : 0);
    return result;
  }
  std::uint64_t number = 1;
};

// Makes all updates of this place's section. Returns when those of all places are done.
void run(std::uint64_t updates)
{
  const std::uint64_t others = places - 1;
  const bool power_of_two = (places & others) == 0;
  Stream stream(updates * me);

  for (std::uint64_t i = 0; i < updates; i++) {
    const std::uint64_t number = stream.next(), entry = number >> bits;
    const place_t owner = static_cast<place_t>(power_of_two ? entry & others : entry % places);
    check(x10lib::asyncSpawnInlineAgg<1, Update>(owner, HANDLE, number));
  }
  check(x10lib::Gfence());
}

} // namespace

int main(int argc, char **argv)
{
  check(x10lib::Init(nullptr, 0));
  check(x10lib::Getenv(X10_PLACE_ID, &me));
  check(x10lib::Getenv(X10_NUM_PLACES, &places));
  bits = argc > 1 ? std::atoi(argv[1]) : 18;
  const std::uint64_t factor = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 4;
  const int runs = 2 * (argc > 3 ? std::atoi(argv[3]) : 1);
  if (bits < 1 || bits > 40 || factor < 1 || runs < 2) {
    if (me == 0)
      std::fprintf(stderr, "usage: x10_random_access [1 to 40 [updates per entry [pairs]]]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const std::uint64_t entries = 1ULL << bits, first = me * entries;
  mask = entries - 1;
  table.resize(entries);
  for (std::uint64_t i = 0; i < entries; i++)
    table[i] = first + i;
  check(x10lib::Gfence());

  std::vector<double> rates;
  for (int i = 0; i < runs; i++) {
    const double begin = MPI_Wtime();
    run(factor * entries);
    rates.push_back(static_cast<double>(factor * entries) * places / (MPI_Wtime() - begin));
  }
  std::uint64_t wrong = 0, all_wrong = 0;
  for (std::uint64_t i = 0; i < entries; i++)
    wrong += table[i] != first + i;
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);

  std::sort(rates.begin(), rates.end());
  if (me == 0) {
    const double rate = (rates[runs / 2] + rates[runs / 2 - 1]) / 2;
    std::printf("places %d, entries 2^%d each, %llu updates a run\n", places, bits,
                static_cast<unsigned long long>(factor * entries * places));
    std::printf("GUPS %.6f, %.2f million updates a second\n", rate * 1e-9, rate * 1e-6);
    std::printf("wrong entries %llu: %s\n", static_cast<unsigned long long>(all_wrong),
                all_wrong ? "FAILED" : "passed");
  }
  check(x10lib::Finalize());
  return all_wrong != 0;
}
