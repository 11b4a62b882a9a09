// The headers in C++11: they compile, link, and carry a put and a get.
// TEST: armci
#include "check.h"

#include <complex>
#include <vector>

static_assert(sizeof(armci_hdl_t) == 8, "armci_hdl_t");
static_assert(ARMCI_ACC_DCPL == ARMCI_ACC_DCP, "two spellings of one type");

static void blocks(void **base, int target)
{
  std::vector<double> out(100), in(100);
  for (int i = 0; i < 100; i++)
    out[i] = me + 0.25 * i;
  CHECK_OK(ARMCI_Put(out.data(), base[target], 800, target));
  CHECK_OK(ARMCI_Get(base[target], in.data(), 800, target));
  CHECK(in == out, "got other numbers than were put");
}

static void vectors(void **base, int target)
{
  long out = 7, in = 0;
  void *here = &out, *back = &in, *there = check_at(base, target, 808);
  armci_giov_t put, get;
  armci_hdl_t handle;

  put.src_ptr_ar = &here;           // either field name
  put.dst_ptr_array = &there;
  put.bytes = 8;
  put.ptr_ar_len = 1;
  get.src_ptr_array = &there;
  get.dst_ptr_ar = &back;
  get.bytes = 8;
  get.ptr_array_len = 1;
  CHECK_OK(ARMCI_PutV(&put, 1, target));
  ARMCI_INIT_HANDLE(&handle);
  CHECK_OK(ARMCI_NbGetV(&get, 1, target, &handle));
  CHECK_OK(ARMCI_Wait(&handle));
  CHECK_EQ(in, 7);
}

static void complex_items(void **base, int target)
{
  std::complex<double> scale(0, 1), item(2, 3), sum;
  CHECK_OK(ARMCI_Acc(ARMCI_ACC_DCPL, &scale, &item, check_at(base, target, 816), 16, target));
  ARMCI_Barrier();
  CHECK_OK(ARMCI_Get(check_at(base, target, 816), &sum, 16, target));
  CHECK(sum == scale * item, "the complex sum is %g%+gi", sum.real(), sum.imag());
}

int main(int argc, char **argv)
{
  check_start("cxx", &argc, &argv);
  void **base = check_segment(832);
  const int target = (me + 1) % nproc;
  char plus[] = "+";
  long ones = 1;

  blocks(base, target);
  vectors(base, target);
  complex_items(base, target);
  armci_msg_lgop(&ones, 1, plus);
  CHECK_EQ(ones, nproc);
  check_free_segment(base);
  return check_end();
}
