// The C++ interface in C++11: every name, asyncs of structs, and the C names in C++.
// TEST: x10
#include "x10_check.h"

#include <vector>

using namespace x10lib;

static volatile long hits, sum;

struct Add {
  void operator()(async_arg_t *args, int n)
  {
    hits++;
    for (int i = 0; i < n; i++)
      sum += args[i];
  }
};

struct Scaled {                       // each item gets a new object
  long factor = 3;
  void operator()(async_arg_t *args, int n) const
  {
    CHECK_EQ(n, 2);
    hits++;
    sum += factor * args[0] * args[1];
  }
};

template <int K> struct Times {       // one function per instance
  void operator()(async_arg_t *args, int) { hits++; sum += K * args[0]; }
};

struct Nothing {
  void operator()(async_arg_t *, int n) { CHECK_EQ(n, 0); hits++; }
};

static void plain(async_arg_t *args, int n) { hits++; sum += 7 * n * args[0]; }

static void reset()
{
  GOOD(Gfence());
  hits = sum = 0;
  GOOD(Gfence());
}

static void asyncs()
{
  reset();
  for (int p = 0; p < nproc; p++) {
    GOOD((asyncSpawnInline<3, Add>(p, 1, 20L, (short)-300)));
    GOOD((asyncSpawnInline<2, Scaled>(p, 5, 7u)));
    GOOD((asyncSpawnInline<0, Nothing>(p)));
    GOOD((asyncSpawnInline<1, Times<2>>(p, 1000)));
    GOOD((asyncSpawnInline<1, Times<5>>(p, 10000)));
    GOOD(x10_asyncSpawnInline(p, 1, plain, 100000));
    GOOD((asyncSpawnInline<16, Add>(p, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)));
  }
  GOOD(Gfence());
  CHECK_EQ(hits, 7 * nproc);
  CHECK_EQ(sum, nproc * (-279 + 105 + 2000 + 50000 + 700000 + 1));
  FAILS((asyncSpawnInline<0, Nothing>(nproc)), "place");
  FAILS(x10_asyncSpawnInline(0, 2, plain, 1), "1 arguments");
  FAILS(x10_asyncSpawnInline(0, 0, plain, 1), "1 arguments");
}

static void aggregated()
{
  reset();
  for (int i = 0; i < 3000; i++) {
    const int p = i % nproc;
    GOOD((asyncSpawnInlineAgg<1, Add>(p, 1, i)));
    GOOD((asyncSpawnInlineAgg<2, Scaled>(p, 2, 1, 1)));
    GOOD((asyncSpawnInlineAgg<0, Nothing>(p, 3)));
    GOOD(x10_asyncSpawnInlineAgg(p, 1, plain, 4, 1));
  }
  GOOD((flush<1, Add>(1)));
  GOOD((flush<2, Scaled>(2)));
  GOOD((flush<0, Nothing>(3)));
  GOOD(x10_flush(1, plain, 4));
  GOOD(Gfence());
  long mine[2] = { hits, sum }, all[2];
  MPI_Allreduce(mine, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(all[0], 12000L * nproc);
  CHECK_EQ(all[1], nproc * (3000L * 2999 / 2 + 9000 + 21000));
  GOOD(Gfence());
  FAILS((asyncSpawnInlineAgg<0, Nothing>(-1, 3)), "place");
  FAILS((flush<1, Add>(1), x10_flush(-1, 1)), "-1");
}

static void transfers()
{
  std::vector<double> memory(100), out(100), in(100);
  std::vector<void *> table(nproc);
  GOOD(AddrInit(memory.data(), table.data()));
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  const x10_gas_ref_t there = MakeGASRef(right, table[right]);
  x10_switch_t sw = AllocSwitch();
  int done = 0, value = -1;

  CHECK_EQ(GAS2Place(there), right);
  CHECK(GAS2Addr(there) == table[right], "a reference has lost its address");
  for (int i = 0; i < 100; i++)
    out[i] = me + 0.25 * i;
  GOOD(Put(out.data(), there, 800));
  GOOD(Get(there, in.data(), 800));
  CHECK(in == out, "got other numbers than were put");
  GOOD(Gfence());
  CHECK(memory[4] == left + 1.0, "the left place put %g", memory[4]);
  GOOD(Gfence());

  for (int i = 0; i < 100; i++)
    out[i] = -i - me;
  GOOD(NbPut(out.data(), there, 800, sw));
  GOOD(Wait(sw));
  GOOD(NbGet(there, in.data(), 800, sw));
  while (!done)
    GOOD(Test(sw, &done));
  CHECK(in == out, "got other numbers than were put");

  x10_gas_ref_t refs[2] = { there, MakeGASRef(me, &memory[50]) };
  double a = 11, b = 22;
  void *local[2] = { &a, &b };
  x10_giov_ref_t v = { refs, local, 8, 2 };
  GOOD(Gfence());
  GOOD(PutV(&v, 1));
  a = b = 0;
  GOOD(GetV(&v, 1));
  CHECK(a == 11 && b == 22, "got %g and %g", a, b);
  a = 33;
  GOOD(NbPutV(&v, 1, sw));
  GOOD(Next(sw));
  a = 0;
  GOOD(NbGetV(&v, 1, sw));
  GOOD(Wait(sw));
  CHECK(a == 33 && b == 22, "got %g and %g", a, b);
  GOOD(Gfence());

  int near_stride[1] = { 8 }, far_stride[1] = { 16 }, count[2] = { 8, 10 };
  GOOD(PutS(out.data(), near_stride, there, far_stride, count, 1));
  GOOD(GetS(there, far_stride, in.data(), near_stride, count, 1));
  CHECK(in[9] == out[9], "got %g", in[9]);
  GOOD(NbPutS(out.data() + 10, near_stride, there, far_stride, count, 1, sw));
  GOOD(Wait(sw));
  GOOD(NbGetS(there, far_stride, in.data(), near_stride, count, 1, sw));
  GOOD(Wait(sw));
  CHECK(in[9] == out[19], "got %g", in[9]);
  // the name in the publication
  GOOD(x10_put_s(out.data(), near_stride, there, far_stride, count, 1, sw));
  GOOD(x10_get_s(there, far_stride, in.data(), near_stride, count, 1, sw));
  GOOD(Wait(sw));
  GOOD(x10_get_s(there, far_stride, in.data(), near_stride, count, 1));
  CHECK(in[9] == out[9], "got %g", in[9]);

  GOOD(Decrement(sw));
  GOOD(SwitchValue(sw, &value));
  CHECK_EQ(value, -1);
  GOOD(Increment(sw));
  GOOD(FreeSwitch(sw));
  FAILS(FreeSwitch(sw), "switch");
  GOOD(Gfence());
}

template <class T> static void one_value(int (*put)(T, x10_gas_ref_t),
                                         int (*nb_put)(T, x10_gas_ref_t, x10_switch_t),
                                         T (*get)(x10_gas_ref_t), T first)
{
  T cell = 0;
  std::vector<void *> table(nproc);
  GOOD(AddrInit(&cell, table.data()));
  const x10_gas_ref_t there = MakeGASRef((me + 1) % nproc, table[(me + 1) % nproc]);
  x10_switch_t sw = AllocSwitch();

  GOOD(put(first, there));
  CHECK(get(there) == first, "another value");
  GOOD(nb_put(first + 1, there, sw));
  GOOD(Wait(sw));
  CHECK(get(there) == first + 1, "another value");
  GOOD(x10_put_value((T)(first + 2), there));
  CHECK(get(there) == first + 2, "another value");
  GOOD(x10_put_value_nb((T)(first + 3), there, sw));
  GOOD(Wait(sw));
  CHECK(get(there) == first + 3, "another value");
  CHECK_EQ(GetValueStatus(), X10_OK);
  CHECK(get(MakeGASRef(-1, nullptr)) == 0, "a value of no place");
  CHECK_EQ(GetValueStatus(), X10_ERR_LAPI);
  CHECK(strstr(LastError(), "place") != nullptr, "%s", LastError());
  GOOD(FreeSwitch(sw));
  GOOD(Gfence());
}

static void the_rest()
{
  int value = 0;
  GOOD(Getenv(X10_NUM_PLACES, &value));
  CHECK_EQ(value, nproc);
  GOOD(Setenv(X10_ERROR_CHK, 1));
  GOOD(Getenv(X10_ERROR_CHK, &value));
  CHECK_EQ(value, 1);
  GOOD(Lock());
  GOOD(Unlock());
  FAILS(Unlock(), "lock");
  GOOD(Fence());
  reset();
  GOOD(Register((void *)plain, 5));
  GOOD(Gfence());
  GOOD(x10_asyncSpawnInline((me + 1) % nproc, 1, (async_func_t *)5, 2));
  GOOD(Gfence());
  CHECK_EQ(sum, 14);
}

int main(int argc, char **argv)
{
  x10_async_handler_t handlers[] = { plain };
  check_start_mpi("x10_cxx", &argc, &argv);
  GOOD(Init(handlers, 1));
  asyncs();
  aggregated();
  transfers();
  one_value<int>(PutValueInt, NbPutValueInt, GetValueInt, -5);
  one_value<long>(PutValueLong, NbPutValueLong, GetValueLong, 1L << 40);
  one_value<float>(PutValueFloat, NbPutValueFloat, GetValueFloat, 0.5f);
  one_value<double>(PutValueDouble, NbPutValueDouble, GetValueDouble, 1e10);
  the_rest();
  GOOD(Finalize());
  FAILS(Fence(), "not initialised");
  return check_end_mpi();
}
