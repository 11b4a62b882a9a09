/* Structs and procs from the preprocessor: the shared vectors, many fields, nesting, and the state
 * after a failed decoding. */
// TEST: n=1
#include "check.h"

#include <stdbool.h>

#include <mercury_macros.h>

#include "mercury_structs.h"
#include "proc_vectors.h"

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

/* Encodes a struct with each checksum and compares the bytes with the vectors of that name. */
static void same(const char *name, hg_proc_cb_t over, void *data, size_t size)
{
  FILE *file = vector_open();
  vector v;
  int lines = 0;
  while (vector_next(file, &v)) {
    unsigned char room[1000];
    char *back = (char *)check_calloc((long)size);
    hg_proc_t proc;
    if (strcmp(v.name, name)) {
      free(back);
      continue;
    }
    CHECK_OK(hg_proc_create(room, sizeof room, HG_ENCODE, v.hash, &proc));
    CHECK_OK(over(proc, data));
    CHECK_OK(hg_proc_flush(proc));
    CHECK_EQ(hg_proc_get_size_used(proc), v.size);
    CHECK_BYTES(room, v.bytes, v.size, "line %d", v.line);
    CHECK_OK(hg_proc_free(proc));

    CHECK_OK(hg_proc_create(v.bytes, (hg_size_t)v.size, HG_DECODE, v.hash, &proc));
    CHECK_OK(over(proc, back));
    CHECK_OK(hg_proc_flush(proc));
    CHECK_OK(hg_proc_free(proc));

    memset(room, 0, sizeof room); /* the decoded struct encodes to the same bytes */
    CHECK_OK(hg_proc_create(room, sizeof room, HG_ENCODE, v.hash, &proc));
    CHECK_OK(over(proc, back));
    CHECK_OK(hg_proc_flush(proc));
    CHECK_BYTES(room, v.bytes, v.size, "line %d, decoded", v.line);
    CHECK_OK(hg_proc_free(proc));

    CHECK_OK(hg_proc_create(NULL, 0, HG_FREE, HG_NOHASH, &proc));
    CHECK_OK(over(proc, back));
    CHECK_OK(hg_proc_free(proc));
    free(back);
    lines++;
  }
  CHECK_EQ(lines, 5);
}

static void vectors(void)
{
  function_in_t function = { -77 };
  by_hand_t hand = { -77 };
  open_in_t open = { "/tmp/a file", 577, 420 };
  numbers_t numbers = { -8, 200, -1600, 60000, -32000000, 4000000000u, -6400000000000LL,
                        18000000000000000000ULL, 0.5f, -0.125, true };
  char name[] = "inner", name2[] = "inner 2";
  nested_t nested = { 1, { name, 2 }, -3, { name2, 4 }, NULL };
  same("function_in", hg_proc_function_in_t, &function, sizeof function);
  same("function_in", hg_proc_by_hand_t, &hand, sizeof hand);
  same("open_in", hg_proc_open_in_t, &open, sizeof open);
  same("numbers", hg_proc_numbers_t, &numbers, sizeof numbers);
  same("nested", hg_proc_nested_t, &nested, sizeof nested);
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
