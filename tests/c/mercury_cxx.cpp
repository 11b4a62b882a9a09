// Mercury's headers in C++11: they compile, link, and carry parameters in both directions.
// TEST: n=1
#include "check.h"

#include <string>
#include <vector>

#include <mercury_checksum.h>
#include <mercury_macros.h>
#include <mercury_proc.h>
#include <mercury_proc_string.h>
#include <mercury_string_object.h>

#include "mercury_structs.h"

static_assert(sizeof(hg_bool_t) == 1 && sizeof(hg_id_t) == 4 && sizeof(hg_size_t) == 8, "sizes");
static_assert(HG_SUCCESS == 0 && HG_FAIL == -1, "codes");
static_assert(sizeof(hg_string_object_t) == 16, "string object");

// A function with C++ linkage may be passed as a callback.
static hg_return_t over(hg_proc_t proc, hg_proc_cb_t callback, void *data)
{
  return callback(proc, data);
}

int main(int argc, char **argv)
{
  check_start_mpi("mercury_cxx", &argc, &argv);
  std::vector<char> buffer(16);
  char name[] = "one", other[] = "another";
  nested_t out = { 1, { name, 2 }, 3, { other, 4 }, nullptr }, in;
  hg_proc_t proc = HG_PROC_NULL;
  hg_checksum_t sum = HG_CHECKSUM_NULL;
  unsigned char value[8];

  CHECK_OK(hg_proc_create(buffer.data(), buffer.size(), HG_ENCODE, HG_CRC64, &proc));
  CHECK_OK(over(proc, hg_proc_nested_t, &out));
  CHECK_OK(hg_proc_flush(proc));
  const char *bytes = static_cast<const char *>(hg_proc_get_extra_buf(proc));
  CHECK(bytes != nullptr, "16 bytes are enough?");
  buffer.assign(bytes, bytes + hg_proc_get_size_used(proc));
  CHECK_OK(hg_proc_free(proc));

  CHECK_OK(hg_proc_create(buffer.data(), buffer.size(), HG_DECODE, HG_CRC64, &proc));
  CHECK_OK(over(proc, hg_proc_nested_t, &in));
  CHECK_OK(hg_proc_flush(proc));
  CHECK(in.inner.name == std::string("one") && in.other.name == std::string("another"), "names");
  CHECK(in.first == 1 && in.second == 3 && in.other.size == 4 && in.last == nullptr, "numbers");
  CHECK_OK(hg_proc_reset(proc, nullptr, 0, HG_FREE));
  CHECK_OK(over(proc, hg_proc_nested_t, &in));
  CHECK_OK(hg_proc_free(proc));

  CHECK_EQ(hg_checksum_init("crc64", &sum), 0);
  CHECK_EQ(hg_checksum_update(sum, buffer.data(), buffer.size() - 16), 0);
  CHECK_EQ(hg_checksum_get(sum, value, sizeof value, 1), 0);
  CHECK_BYTES(value, buffer.data() + buffer.size() - 8, 8, "the checksum of the trailer");
  CHECK_EQ(hg_checksum_destroy(sum), 0);
  return check_end_mpi();
}
