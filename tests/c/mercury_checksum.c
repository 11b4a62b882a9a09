/* Checksums by name: their values, in several updates, padded. */
// TEST: n=1
#include "check.h"

#include <mercury_checksum.h>

static const struct {
  const char *name;
  size_t size;
  unsigned char value[8]; /* over the digits 1 to 9 */
} method[] = {
  { "crc16", 2, { 0xdb, 0xd0 } },
  { "crc32c", 4, { 0x83, 0x92, 0x06, 0xe3 } },
  { "crc64", 8, { 0xfa, 0x39, 0x19, 0xdf, 0xbb, 0xc9, 0x5d, 0x99 } },
  { "adler32", 4, { 0xde, 0x01, 0x1e, 0x09 } },
};

static void values(void)
{
  for (int m = 0; m < 4; m++) {
    hg_checksum_t sum = HG_CHECKSUM_NULL;
    unsigned char got[16], want[16];
    CHECK_EQ(hg_checksum_init(method[m].name, &sum), 0);
    CHECK_EQ(hg_checksum_get_size(sum), method[m].size);
    for (int round = 0; round < 3; round++) {
      CHECK_EQ(hg_checksum_update(sum, "12345", 5), 0);
      CHECK_EQ(hg_checksum_get(sum, got, sizeof got, 0), 0); /* get leaves the state unchanged */
      CHECK_EQ(hg_checksum_update(sum, NULL, 0), 0);
      CHECK_EQ(hg_checksum_update(sum, "6789", 4), 0);
      memset(got, 0x77, sizeof got);
      CHECK_EQ(hg_checksum_get(sum, got, method[m].size, 1), 0);
      CHECK_BYTES(got, method[m].value, (long)method[m].size, "%s", method[m].name);
      CHECK_EQ(got[method[m].size], 0x77);
      memset(want, 0, sizeof want);
      memcpy(want, method[m].value, 8);
      CHECK_EQ(hg_checksum_get(sum, got, sizeof got, 1), 0);
      CHECK_BYTES(got, want, 16, "%s, padded", method[m].name);
      CHECK_EQ(hg_checksum_reset(sum), 0);
    }
    CHECK_EQ(hg_checksum_destroy(sum), 0);
  }
}

int main(int argc, char **argv)
{
  check_start_mpi("mercury_checksum", &argc, &argv);
  values();
  return check_end_mpi();
}
