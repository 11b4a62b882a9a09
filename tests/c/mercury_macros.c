/* Structs and procs from the preprocessor: their bytes, many fields, nesting, and the state
 * after a failed decoding. */
// TEST: n=1
#include "check.h"

#include <stdbool.h>

#include <mercury_macros.h>

#include "mercury_structs.h"

/* The example of the specification, by hand and by the macro. */
typedef struct {
  int32_t func_param1;
} by_hand_t;

static inline int hg_proc_by_hand_t(hg_proc_t proc, void *data)
{
  int ret = S_SUCCESS;
  by_hand_t *struct_data = (by_hand_t *)data;

  ret = fs_proc_int32_t(proc, &struct_data->func_param1);
  if (ret != S_SUCCESS) {
    S_ERROR_DEFAULT("Proc error");
    ret = S_FAIL;
    return ret;
  }
  return ret;
}

MERCURY_GEN_PROC( function_in_t, ((int32_t)(func_param1)) )

/* Encodes a struct, compares the bytes, and decodes and encodes them again. */
static void same(hg_proc_cb_t over, void *data, size_t size, hg_proc_hash_t hash, const char *hex)
{
  unsigned char want[200], room[200];
  char *back = (char *)check_calloc((long)size);
  hg_proc_t proc;
  long length = 0;
  for (; hex[2 * length]; length++)
    sscanf(hex + 2 * length, "%2hhx", &want[length]);
  for (int again = 0; again < 2; again++) {
    CHECK_OK(hg_proc_create(room, sizeof room, HG_ENCODE, hash, &proc));
    CHECK_OK(over(proc, again ? back : data));
    CHECK_OK(hg_proc_flush(proc));
    CHECK_EQ(hg_proc_get_size_used(proc), length);
    CHECK_BYTES(room, want, length, "encoded for the %s time", again ? "second" : "first");
    CHECK_OK(hg_proc_reset(proc, want, (hg_size_t)length, again ? HG_FREE : HG_DECODE));
    CHECK_OK(over(proc, back));
    CHECK_OK(hg_proc_flush(proc));
    CHECK_OK(hg_proc_free(proc));
  }
  free(back);
}

/* The bytes are lines of tests/data/proc_vectors.txt, which the unit tests in Rust read. */
static void vectors(void)
{
  function_in_t function = { -77 };
  by_hand_t hand = { -77 };
  open_in_t open = { "/tmp/a file", 577, 420 };
  numbers_t numbers = { -8, 200, -1600, 60000, -32000000, 4000000000u, -6400000000000LL,
                        18000000000000000000ULL, 0.5f, -0.125, true };
  char name[] = "inner", name2[] = "inner 2";
  nested_t nested = { 1, { name, 2 }, -3, { name2, 4 }, NULL };
  same(hg_proc_function_in_t, &function, sizeof function, HG_NOHASH, "b3ffffff");
  same(hg_proc_by_hand_t, &hand, sizeof hand, HG_CRC16, "b3ffffff0400000000000000cf42");
  same(hg_proc_open_in_t, &open, sizeof open, HG_CRC32,
       "0c000000000000002f746d702f612066696c6500000041020000a40100001e000000000000007707c91b");
  same(hg_proc_numbers_t, &numbers, sizeof numbers, HG_CRC64,
       "f8c8c0f960ea00b817fe00286bee000046e22dfaffff000008c5a1d8ccf90000003f000000000000c0bf01"
       "2b00000000000000eb162e49fbc9e67d");
  same(hg_proc_nested_t, &nested, sizeof nested, HG_ADLER32,
       "010000000600000000000000696e6e65720000000200000000000000fdffffffffffffff0800000000000000"
       "696e6e65722032000000040000000000000000000000000000004600000000000000960c89e5");
}

/* A struct of 64 fields of all kinds and one of 256, field by field. */
static void many(void)
{
  many_t out, in;
  huge_t huge_out, huge_in;
  char buffer[4096];
  hg_proc_t proc;
  int64_t *const as_numbers = (int64_t *)&out;

  CHECK_EQ(sizeof out, 64 * 8);
  CHECK_EQ(sizeof huge_out, 256);
  for (int i = 0; i < 64; i++)
    as_numbers[i] = i * 1000000007LL - 5;
  check_fill(&huge_out, 3, sizeof huge_out);
  memset(&in, 0, sizeof in);
  memset(&huge_in, 0, sizeof huge_in);
  CHECK_OK(hg_proc_create(buffer, sizeof buffer, HG_ENCODE, HG_CRC64, &proc));
  CHECK_OK(hg_proc_many_t(proc, &out));
  CHECK_EQ(hg_proc_get_size_used(proc), 512);
  CHECK_OK(hg_proc_huge_t(proc, &huge_out));
  CHECK_EQ(hg_proc_get_size_used(proc), 512 + 256);
  CHECK_OK(hg_proc_flush(proc));
  CHECK_OK(hg_proc_free(proc));
  CHECK_BYTES(buffer, &out, 512, "64 fields");
  CHECK_OK(hg_proc_create(buffer, sizeof buffer, HG_DECODE, HG_CRC64, &proc));
  CHECK_OK(hg_proc_many_t(proc, &in));
  CHECK_OK(hg_proc_huge_t(proc, &huge_in));
  CHECK_OK(hg_proc_flush(proc));
  CHECK_OK(hg_proc_free(proc));
  CHECK_BYTES(&in, &out, 512, "64 fields");
  CHECK_BYTES(&huge_in, &huge_out, 256, "256 fields");
  CHECK_EQ(in.f77, out.f77);
  CHECK_EQ(huge_in.b377, huge_out.b377);
}

/* If decoding fails at any field, the fields decoded before are freed and null. */
static void failures(void)
{
  char buffer[200], name[] = "first name", name2[] = "second name", last[] = "last";
  nested_t out = { 1, { name, 2 }, -3, { name2, 4 }, last }, in;
  hg_proc_t proc;
  hg_size_t size;

  CHECK_OK(hg_proc_create(buffer, sizeof buffer, HG_ENCODE, HG_CRC16, &proc));
  CHECK_OK(hg_proc_nested_t(proc, &out));
  size = hg_proc_get_size_used(proc);
  CHECK_OK(hg_proc_flush(proc));
  CHECK_OK(hg_proc_free(proc));
  for (hg_size_t cut = 0; cut < size; cut++) {
    memset(&in, 0, sizeof in);
    CHECK_OK(hg_proc_create(buffer, cut, HG_DECODE, HG_CRC16, &proc));
    CHECK_EQ(hg_proc_nested_t(proc, &in), HG_OVERFLOW);
    CHECK_EQ(hg_proc_get_op(proc), HG_DECODE);
    CHECK_EQ(hg_proc_flush(proc), HG_OVERFLOW);
    CHECK(in.inner.name == NULL && in.other.name == NULL && in.last == NULL,
          "cut at %d: a string is left", (int)cut);
    CHECK_OK(hg_proc_free(proc));
  }
  /* If the checksum fails, all fields are decoded, and the caller frees them. */
  buffer[0] ^= 1;
  CHECK_OK(hg_proc_create(buffer, sizeof buffer, HG_DECODE, HG_CRC16, &proc));
  CHECK_OK(hg_proc_nested_t(proc, &in));
  CHECK_EQ(hg_proc_flush(proc), HG_CHECKSUM_ERROR);
  CHECK_OK(hg_proc_reset(proc, NULL, 0, HG_FREE));
  CHECK_OK(hg_proc_nested_t(proc, &in));
  CHECK_OK(hg_proc_free(proc));
  CHECK(in.inner.name == NULL && in.other.name == NULL && in.last == NULL, "not freed");
}

/* An existing struct, of which only some fields are encoded, and a struct of all other field
 * types. */
static void others(void)
{
  foreign_t foreign = { 5, 7, { 1, 2, 3 } }, back = { 0, 0, { 9, 9, 9 } };
  char buffer[200], text[] = "object";
  kinds_t kinds, got;
  hg_proc_t proc;

  memset(&kinds, 0, sizeof kinds);
  kinds.flag = HG_TRUE;
  kinds.pointer = (hg_ptr_t)(uintptr_t)text;
  kinds.size = ~(hg_size_t)0;
  kinds.length = 12;
  kinds.id = 0xfeedface;
  kinds.letter = 'z';
  CHECK_OK(hg_string_object_init_char(&kinds.object, text, HG_FALSE));

  CHECK_OK(hg_proc_create(buffer, sizeof buffer, HG_ENCODE, HG_ADLER32, &proc));
  CHECK_OK(hg_proc_foreign_t(proc, &foreign));
  CHECK_EQ(hg_proc_get_size_used(proc), 16);
  CHECK_OK(hg_proc_kinds_t(proc, &kinds));
  CHECK_OK(hg_proc_flush(proc));
  CHECK_OK(hg_proc_free(proc));
  CHECK_OK(hg_proc_create(buffer, sizeof buffer, HG_DECODE, HG_ADLER32, &proc));
  CHECK_OK(hg_proc_foreign_t(proc, &back));
  CHECK(back.a == 5 && back.b == 7 && back.not_sent[0] == 9, "the foreign struct");
  CHECK_OK(hg_proc_kinds_t(proc, &got));
  CHECK_OK(hg_proc_flush(proc));
  CHECK(got.flag == HG_TRUE && got.pointer == kinds.pointer && got.size == kinds.size, "kinds");
  CHECK(got.length == 12 && got.id == 0xfeedface && got.letter == 'z', "kinds");
  CHECK(!strcmp(got.object.data, "object"), "kinds");
  CHECK_OK(hg_proc_reset(proc, NULL, 0, HG_FREE));
  CHECK_OK(hg_proc_kinds_t(proc, &got));
  CHECK(got.object.data == NULL, "not freed");
  CHECK_OK(hg_proc_free(proc));
}

/* The expansion of MERCURY_REGISTER. */
#define TEXT(...) TEXT_(__VA_ARGS__)
#define TEXT_(...) #__VA_ARGS__

static void registering(void)
{
  CHECK(!strcmp(TEXT(MERCURY_REGISTER("f", a_t, b_t, cb)),
                "HG_Register(\"f\", hg_proc_a_t, hg_proc_b_t, cb)"),
        "%s", TEXT(MERCURY_REGISTER("f", a_t, b_t, cb)));
  CHECK(!strcmp(TEXT(MERCURY_REGISTER("f", a_t, void, cb)),
                "HG_Register(\"f\", hg_proc_a_t, " TEXT(NULL) ", cb)"), "without output");
  CHECK(!strcmp(TEXT(MERCURY_REGISTER("f", a_t, b_t)),
                "HG_Register(\"f\", hg_proc_a_t, hg_proc_b_t, " TEXT(NULL) ")"), "a client");
  CHECK(!strcmp(TEXT(MERCURY_HANDLER_REGISTER("f", cb, a_t, b_t)),
                "HG_Register(\"f\", hg_proc_a_t, hg_proc_b_t, cb)"), "a handler");
}

int main(int argc, char **argv)
{
  check_start_mpi("mercury_macros", &argc, &argv);
  vectors();
  many();
  failures();
  others();
  registering();
  return check_end_mpi();
}
