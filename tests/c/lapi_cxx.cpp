// lapi.h compiles, links and runs in C++.
// TEST: lapi
#include "check.h"

#include <lapi.h>

#include <vector>

namespace {

std::vector<double> received;
int done;

extern "C" void completion(lapi_handle_t *, void *parameter)
{
  *static_cast<int *>(parameter) += 1;
}

extern "C" void *header(lapi_handle_t *, void *uhdr, uint *uhdr_len, ulong *msg_len,
                        compl_hndlr_t **comp_h, void **user_info)
{
  const lapi_return_info_t *info = reinterpret_cast<lapi_return_info_t *>(msg_len);
  CHECK_EQ(*uhdr_len, sizeof(long));
  CHECK_EQ(*static_cast<long *>(uhdr), info->src);
  received.resize(*msg_len / sizeof(double));
  *comp_h = completion;
  *user_info = &done;
  return received.data();
}

void succeed(int code)
{
  char text[LAPI_MAX_ERR_STRING];
  LAPI_Msg_string(code, text);
  CHECK(code == LAPI_SUCCESS, "%s", text);
}

}  // namespace

int main(int argc, char **argv)
{
  lapi_handle_t handle;
  lapi_info_t info = lapi_info_t();
  lapi_cntr_t cmpl;

  check_start_mpi("lapi_cxx", &argc, &argv);
  succeed(LAPI_Init(&handle, &info));
  std::vector<void *> table(nproc);
  succeed(LAPI_Address_init(handle, reinterpret_cast<void *>(&header), table.data()));
  succeed(LAPI_Setcntr(handle, &cmpl, 0));

  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  std::vector<double> data(5000);
  for (std::size_t i = 0; i < data.size(); i++)
    data[i] = me + 1.0 / static_cast<double>(i + 1);
  long from = me;
  succeed(LAPI_Amsend(handle, static_cast<uint>(right), table[right], &from, sizeof from,
                      data.data(), data.size() * sizeof(double), NULL, NULL, &cmpl));
  succeed(LAPI_Waitcntr(handle, &cmpl, 1, NULL));
  succeed(LAPI_Gfence(handle));
  CHECK_EQ(done, 1);
  CHECK_EQ(received.size(), data.size());
  for (std::size_t i = 0; i < received.size(); i++)
    CHECK(received[i] == left + 1.0 / static_cast<double>(i + 1), "element %zu", i);
  succeed(LAPI_Term(handle));
  return check_end_mpi();
}
