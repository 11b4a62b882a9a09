/* Procs of Mercury 2.4's interface: structs of all types, string objects, macros, a buffer that remains.
 * mercury_proc.c tests the functions, which are the same. */
// TEST: n=1
#include "mercury2_check.h"

MERCURY_GEN_PROC(inner_t, ((uint8_t)(small))((hg_const_string_t)(name)))
MERCURY_GEN_PROC(all_t, ((int8_t)(a))((int16_t)(b))((uint16_t)(c))((int32_t)(d))((uint32_t)(e))
                            ((int64_t)(f))((uint64_t)(g))((hg_bool_t)(h))((hg_id_t)(i))((inner_t)(j))
                            ((hg_string_t)(none)))

typedef struct {
  int32_t x;
} pair_t;
MERCURY_GEN_STRUCT_PROC(pair_t, ((int32_t)(x)))

static hg_return_t by_macro(hg_proc_t proc, int64_t *value)
{
  hg_return_t ret = HG_SUCCESS;
  HG_PROC_TYPE(proc, int64_t, value, done, ret);
  HG_PROC_BYTES(proc, value, sizeof *value, done, ret);
done:
  return ret;
}

int main(int argc, char **argv)
{
  check_start_mpi("mercury2_proc", &argc, &argv);
  hg_class = HG_Init("self", HG_TRUE);
  CHECK(hg_class != NULL, "HG_Init: %s", portolan_last_error());
  char buf[256], sum[8];
  hg_proc_t proc;
  all_t in = { -1, -2, 3, -4, 5, -6, 7, HG_TRUE, UINT64_C(1) << 60, { 9, "inside" }, NULL }, out;

  MUST(hg_proc_create(hg_class, HG_CRC64, &proc));
  CHECK(hg_proc_get_class(proc) == hg_class, "another class");
  MUST(hg_proc_reset(proc, buf, sizeof buf, HG_ENCODE));
  CHECK(hg_proc_get_op(proc) == HG_ENCODE && hg_proc_get_size(proc) == sizeof buf, "after reset");
  hg_proc_set_flags(proc, HG_PROC_BULK_EAGER);
  CHECK(hg_proc_get_flags(proc) == HG_PROC_BULK_EAGER, "flags");
  MUST(hg_proc_all_t(proc, &in));
  MUST(hg_proc_flush(proc));
  const hg_size_t used = hg_proc_get_size_used(proc);
  CHECK(used > 40 && hg_proc_get_size_left(proc) == sizeof buf - used && !hg_proc_get_extra_buf(proc),
        "%lu bytes", (unsigned long)used);
  MUST(hg_proc_checksum_get(proc, sum, sizeof sum));
  MUST(hg_proc_reset(proc, buf, used, HG_DECODE));
  MUST(hg_proc_all_t(proc, &out));
  MUST(hg_proc_flush(proc));
  MUST(hg_proc_checksum_verify(proc, sum, sizeof sum));
  sum[0] ^= 1;
  MUST_BE(HG_CHECKSUM_ERROR, hg_proc_checksum_verify(proc, sum, sizeof sum));
  CHECK(out.a == -1 && out.b == -2 && out.c == 3 && out.d == -4 && out.e == 5 && out.f == -6 &&
            out.g == 7 && out.h && out.i == in.i && out.j.small == 9 && !out.none &&
            strcmp(out.j.name, "inside") == 0,
        "other values");
  MUST(hg_proc_reset(proc, NULL, 0, HG_FREE));
  MUST(hg_proc_all_t(proc, &out));
  CHECK(out.j.name == NULL, "the string is not freed");
  MUST(hg_proc_reset(proc, buf, used - 20, HG_DECODE));
  MUST_BE(HG_OVERFLOW, hg_proc_all_t(proc, &out));
  MUST(hg_proc_free(proc));

  /* Here the caller keeps the extra buffer. */
  int64_t value = 77;
  MUST(hg_proc_create_set(hg_class, buf, 4, HG_ENCODE, HG_NOHASH, &proc));
  MUST(by_macro(proc, &value));
  MUST(hg_proc_set_extra_buf_is_mine(proc, 1));
  char *encoded = hg_proc_get_extra_buf(proc);
  MUST(hg_proc_free(proc));
  CHECK(memcmp(encoded, &value, sizeof value) == 0, "another value is encoded");
  free(encoded);

  /* String objects. */
  hg_string_object_t one;
  char other[] = "other";
  MUST(hg_string_object_init_char(&one, other, 2));
  CHECK(one.is_owned == true, "%d", one.is_owned);
  one.is_owned = 2;
  CHECK(one.is_owned == true, "the flag is no bool: %d", one.is_owned);
  MUST(hg_string_object_init_char(&one, other, 0));
  pair_t pair = { 5 };
  MUST(hg_proc_create_set(hg_class, buf, sizeof buf, HG_ENCODE, HG_CRC16, &proc));
  const hg_size_t without = hg_proc_get_size_used(proc);
  MUST(hg_proc_hg_string_object_t(proc, &one));
  /* Mercury encodes the size, the string and two flags. */
  CHECK(hg_proc_get_size_used(proc) == without + 8 + strlen(other) + 1 + 2, "%lu bytes",
        (unsigned long)(hg_proc_get_size_used(proc) - without));
  MUST(hg_proc_pair_t(proc, &pair));
  MUST(hg_proc_free(proc));

  MUST(HG_Finalize(hg_class));
  return check_end_mpi();
}
