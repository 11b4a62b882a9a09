/* Iterates over the segments of strided memory, in the order and at the places of the strided
 * calls, for any number of levels and for empty ones. Packs and unpacks such memory. */
// TEST: armci
#include "check.h"

#include <iterator.h>

enum { BYTES = 4096 };

/* Computes a place by plain loops. */
static long place(const int *stride, const int *count, int levels, int number)
{
  long at = 0;
  for (int i = 0; i < levels; i++) {
    at += (long)(number % count[i + 1]) * stride[i];
    number /= count[i + 1];
  }
  return at;
}

static void one_by_one(int levels, int *stride, int *count)
{
  static char memory[BYTES];
  stride_info_t info, copy;
  int segments = 1, seen = 0;

  for (int i = 1; i <= levels; i++)
    segments *= count[i];
  memset(&info, 0xab, sizeof info);
  armci_stride_info_init(&info, memory, levels, stride, count);
  CHECK_EQ(armci_stride_info_size(&info), segments);
  CHECK_EQ(armci_stride_info_count(&info), segments);
  CHECK_EQ(armci_stride_info_seg_count(&info), segments);
  for (; armci_stride_info_has_more(&info); armci_stride_info_next(&info), seen++) {
    const long at = place(stride, count, levels, seen);
    CHECK_EQ(armci_stride_info_has_next(&info), 1);
    CHECK_EQ(armci_stride_info_pos(&info), seen);
    CHECK_EQ(armci_stride_info_seg_off(&info), at);
    CHECK_EQ(armci_stride_info_seg_size(&info), count[0]);
    CHECK((char *)armci_stride_info_seg_ptr(&info) == memory + at, "segment %d lies elsewhere", seen);
    CHECK(armci_stride_info_get(&info) == armci_stride_info_seg_ptr(&info), "two places of one segment");
    if (seen == segments / 2)
      copy = info;
  }
  CHECK_EQ(seen, segments);
  CHECK_EQ(armci_stride_info_has_next(&info), 0);
  CHECK_EQ(armci_stride_info_pos(&info), segments);
  if (segments > 0) {               /* a copy is independent */
    CHECK_EQ(armci_stride_info_pos(&copy), segments / 2);
    CHECK_EQ(armci_stride_info_seg_off(&copy), place(stride, count, levels, segments / 2));
    armci_stride_info_destroy(&copy);
  }
  armci_stride_info_destroy(&info);
  CHECK_EQ(armci_stride_info_has_more(&info), 0);
}

/* Gathers the segments into a buffer, and scatters it to other memory. */
static void packed(int levels, int *stride, int *count)
{
  int segments = 1;
  for (int i = 1; i <= levels; i++)
    segments *= count[i];
  const long size = (long)segments * count[0];
  char *memory = check_calloc(BYTES), *buffer = check_calloc(size + 1), *want = check_calloc(size + 1);
  char *other = check_calloc(BYTES), *scattered = check_calloc(BYTES);

  check_fill(memory, levels, BYTES);
  buffer[size] = want[size] = '#';
  for (int i = 0; i < segments; i++) {
    const long at = place(stride, count, levels, i);
    memcpy(want + (long)i * count[0], memory + at, (size_t)count[0]);
    memcpy(scattered + at, memory + at, (size_t)count[0]);
  }
  armci_write_strided(memory, levels, stride, count, buffer);
  CHECK_BYTES(buffer, want, size + 1, "armci_write_strided, %d levels", levels);
  armci_read_strided(other, levels, stride, count, buffer);
  CHECK_BYTES(other, scattered, BYTES, "armci_read_strided, %d levels", levels);
  free(memory);
  free(buffer);
  free(want);
  free(other);
  free(scattered);
}

int main(int argc, char **argv)
{
  static int strides[][8] = { { 0 }, { 40 }, { 40, 400 }, { 7, 61, 211 }, { 300, 20, 80 },
                              { 3, 6, 12, 24, 48, 96, 192, 384 } };
  static int counts[][9] = { { 100 }, { 20, 10 }, { 20, 10, 5 }, { 5, 3, 2, 4 }, { 20, 4, 3, 3 },
                             { 2, 2, 2, 2, 2, 2, 2, 2, 2 } };
  static const int levels[] = { 0, 1, 2, 3, 3, 8 };

  check_start("stride_info", &argc, &argv);
  for (int i = 0; i < (int)(sizeof levels / sizeof levels[0]); i++) {
    one_by_one(levels[i], strides[i], counts[i]);
    packed(levels[i], strides[i], counts[i]);
  }
  one_by_one(2, strides[2], (int[]){ 20, 0, 5 });
  one_by_one(0, NULL, (int[]){ 64 });

  stride_info_t far;                /* offsets that do not fit in an int */
  armci_stride_info_init(&far, NULL, 1, (int[]){ 0x7fffffff }, (int[]){ 1, 4 });
  for (int i = 0; i < 3; i++)
    armci_stride_info_next(&far);
  CHECK((char *)armci_stride_info_seg_ptr(&far) - (char *)NULL == 3L * 0x7fffffff, "a place beyond 4 GiB");
  return check_end();
}
