/* Parameters as bytes: growing buffers, checksums, freeing, and invalid lengths. mercury_macros.c tests the
 * form of each type, and mercury_invalid.c the arguments that a call rejects. */
// TEST: n=1
#include "check.h"

#include <mercury_proc.h>
#include <mercury_proc_string.h>

#include <stdbool.h>

#define OK(call) CHECK_EQ(call, HG_SUCCESS)

/* ------------------------------------------------------------------ buffers */

static void growth(void)
{
  char eager[64];
  hg_proc_t proc;
  void *extra;
  hg_size_t size;

  OK(hg_proc_create(eager, sizeof eager, HG_ENCODE, HG_CRC32, &proc));
  CHECK_EQ(hg_proc_get_size_left(proc), 64);
  for (uint64_t i = 0; i < 10000; i++) {
    CHECK((hg_proc_get_extra_buf(proc) == NULL) == (i <= 8), "extra after %d numbers", (int)i);
    OK(hg_proc_uint64_t(proc, &i));
  }
  OK(hg_proc_set_size(proc, 100000)); /* growth on request keeps the encoded bytes */
  CHECK(hg_proc_get_size(proc) >= 100000, "the size is %lu", (long)hg_proc_get_size(proc));
  OK(hg_proc_flush(proc));
  OK(hg_proc_flush(proc)); /* a second flush does nothing */
  size = hg_proc_get_size_used(proc);
  CHECK_EQ(size, 80000 + 8 + 4);
  CHECK_EQ(hg_proc_get_size(proc), hg_proc_get_extra_size(proc));
  extra = hg_proc_get_extra_buf(proc);
  OK(hg_proc_set_extra_buf_is_mine(proc, HG_FALSE));
  OK(hg_proc_free(proc)); /* the buffer remains */

  OK(hg_proc_create(extra, size, HG_DECODE, HG_CRC32, &proc));
  for (uint64_t i = 0; i < 10000; i++) {
    uint64_t got = ~i;
    OK(hg_proc_uint64_t(proc, &got));
    CHECK_EQ(got, i);
  }
  OK(hg_proc_flush(proc));
  OK(hg_proc_free(proc));
  hg_proc_buf_free(extra);
}

/* Bytes that the caller writes and reads itself. */
static void by_hand(void)
{
  char buffer[36], twelve[] = "twelve bytes";
  hg_proc_t proc;
  uint32_t number = 5;

  for (int op = HG_ENCODE; op <= HG_DECODE; op++) {
    OK(hg_proc_create(buffer, sizeof buffer, (hg_proc_op_t)op, HG_CRC64, &proc));
    CHECK(hg_proc_get_buf_ptr(proc) == (void *)buffer, "does not begin at the beginning");
    char *place = (char *)hg_proc_save_ptr(proc, 12);
    OK(hg_proc_uint32_t(proc, &number));
    if (op == HG_ENCODE)
      memcpy(place, twelve, 12); /* filled after the next value: the buffer has not moved */
    CHECK(memcmp(place, twelve, 12) == 0 && number == 5, "saved, and then %u", number);
    char *start = (char *)hg_proc_get_buf_ptr(proc);
    CHECK_EQ(start - buffer, 16);
    OK(hg_proc_set_buf_ptr(proc, start + 4)); /* a gap */
    OK(hg_proc_flush(proc));
    OK(hg_proc_free(proc));
    number = 0;
  }
  OK(hg_proc_create(buffer, sizeof buffer, HG_DECODE, HG_CRC64, &proc));
  CHECK_EQ(hg_proc_set_buf_ptr(proc, buffer + 37), HG_INVALID_ARG);
  OK(hg_proc_free(proc));
  OK(hg_proc_create(buffer, sizeof buffer, HG_DECODE, HG_CRC64, &proc));
  CHECK(hg_proc_save_ptr(proc, 37) == NULL, "saved more than there is");
  CHECK_EQ(hg_proc_flush(proc), HG_OVERFLOW);
  OK(hg_proc_free(proc));
}

/* Checksums that the caller sends itself. */
static void without_trailer(void)
{
  const hg_proc_hash_t hashes[] = { HG_CRC16, HG_CRC32, HG_CRC64, HG_ADLER32 };
  const hg_size_t sizes[] = { 2, 4, 8, 4 };
  unsigned char buffer[64], hash[8];
  hg_proc_t proc;
  int some = 3;

  for (int i = 0; i < 4; i++) {
    int64_t a = -5, b = 6;
    OK(hg_proc_create_set((hg_class_t *)&some, buffer, 64, HG_ENCODE, hashes[i], &proc));
    CHECK(hg_proc_get_class(proc) == (hg_class_t *)&some, "the class");
    hg_proc_set_handle(proc, &some);
    CHECK(hg_proc_get_handle(proc) == (hg_handle_t)&some, "the handle");
    hg_proc_set_flags(proc, HG_PROC_SM);
    CHECK_EQ(hg_proc_get_flags(proc), HG_PROC_SM);
    OK(hg_proc_int64_t(proc, &a));
    OK(hg_proc_int64_t(proc, &b));
    OK(hg_proc_flush(proc));
    CHECK_EQ(hg_proc_get_size_used(proc), 16);
    CHECK_EQ(hg_proc_checksum_get(proc, hash, sizes[i] - 1), HG_INVALID_ARG);
    OK(hg_proc_checksum_get(proc, hash, sizes[i]));

    OK(hg_proc_reset(proc, buffer, 64, HG_DECODE));
    CHECK_EQ(hg_proc_get_op(proc), HG_DECODE);
    CHECK_EQ(hg_proc_get_flags(proc), 0);
    CHECK(hg_proc_get_class(proc) == (hg_class_t *)&some, "the class after a reset");
    OK(hg_proc_int64_t(proc, &a));
    CHECK_EQ(hg_proc_checksum_verify(proc, hash, sizes[i]), HG_CHECKSUM_ERROR);
    OK(hg_proc_reset(proc, buffer, 64, HG_DECODE)); /* clears the error */
    OK(hg_proc_int64_t(proc, &a));
    OK(hg_proc_int64_t(proc, &b));
    OK(hg_proc_flush(proc));
    OK(hg_proc_checksum_verify(proc, hash, sizes[i]));
    hg_proc_checksum_update(proc, &b, 8); /* bytes that are not in the buffer */
    CHECK_EQ(hg_proc_checksum_verify(proc, hash, sizes[i]), HG_CHECKSUM_ERROR);
    OK(hg_proc_free(proc));
  }
}

/* ------------------------------------------------------------------ strings */

static void strings(void)
{
  char buffer[200], owned[] = "a string", *copy;
  hg_proc_t proc;
  hg_const_string_t text = "constant", got = NULL;
  hg_string_t none = NULL;
  hg_string_object_t object, other;

  OK(hg_proc_create(buffer, sizeof buffer, HG_ENCODE, HG_NOHASH, &proc));
  OK(hg_proc_hg_const_string_t(proc, &text));
  OK(hg_string_object_init_char(&object, owned, HG_FALSE));
  CHECK(!object.is_const && !object.is_owned, "neither constant nor owned");
  OK(hg_proc_hg_string_object_t(proc, &object));
  OK(hg_proc_hg_string_t(proc, &none));
  OK(hg_proc_flush(proc));
  OK(hg_proc_free(proc));
  OK(hg_string_object_free(&object)); /* frees nothing */

  OK(hg_proc_create(buffer, sizeof buffer, HG_DECODE, HG_NOHASH, &proc));
  OK(hg_proc_hg_const_string_t(proc, &got));
  CHECK(!strcmp(got, "constant") && got != text, "got '%s'", got);
  OK(hg_proc_hg_string_object_t(proc, &object));
  CHECK(!strcmp(object.data, owned) && object.is_owned, "got '%s'", object.data);
  none = owned;
  OK(hg_proc_hg_string_t(proc, &none));
  CHECK(none == NULL, "null came as something");
  OK(hg_proc_free(proc));

  OK(hg_string_object_dup(object, &other));
  CHECK(other.data != object.data && !strcmp(other.data, owned), "a copy");
  OK(hg_proc_create(NULL, 0, HG_FREE, HG_NOHASH, &proc));
  OK(hg_proc_hg_const_string_t(proc, &got));
  CHECK(got == NULL, "freed but not null");
  OK(hg_proc_hg_const_string_t(proc, &got)); /* a second call is harmless */
  OK(hg_proc_hg_string_object_t(proc, &object));
  CHECK(object.data == NULL, "freed but not null");
  CHECK(hg_proc_save_ptr(proc, 8) == NULL, "a place to free");
  OK(hg_proc_flush(proc));
  OK(hg_proc_free(proc));

  copy = hg_string_object_swap(&other, owned);
  CHECK(!strcmp(copy, owned) && other.data == owned && !other.is_owned, "swapped");
  free(copy);
  OK(hg_string_object_free(&other));
  OK(hg_string_object_init(&other));
  CHECK(other.data == NULL, "not empty");
  OK(hg_string_object_init_const_char(&other, text, HG_FALSE));
  CHECK(other.is_const && other.data == text, "constant");
  OK(hg_string_object_free(&other));
}

/* ------------------------------------------------------------------- errors */

static void arguments(void)
{
  char buffer[16];
  hg_proc_t proc;
  hg_proc_hash_t hash = HG_NOHASH;
  uint64_t number = 1;

  OK(hg_proc_hash_from_name("adler32", &hash));
  CHECK_EQ(hash, HG_ADLER32);

  OK(hg_proc_create(buffer, 16, HG_ENCODE, HG_NOHASH, &proc));
  CHECK_EQ(hg_proc_uint64_t(proc, NULL), HG_INVALID_ARG);
  CHECK_EQ(hg_proc_uint64_t(proc, &number), HG_INVALID_ARG); /* the first error remains */
  CHECK_EQ(hg_proc_flush(proc), HG_INVALID_ARG);
  OK(hg_proc_reset(proc, buffer, 16, HG_ENCODE));
  OK(hg_proc_uint64_t(proc, &number));
  CHECK_EQ(hg_proc_raw(proc, &number, ~(hg_size_t)0), HG_NOMEM);
  OK(hg_proc_free(proc));

  OK(hg_proc_create(buffer, 0, HG_ENCODE, HG_NOHASH, &proc)); /* an empty buffer */
  OK(hg_proc_raw(proc, NULL, 0));
  OK(hg_proc_memcpy(proc, &number, 8));
  OK(hg_proc_bytes(proc, &number, 3));
  CHECK_EQ(hg_proc_get_size_used(proc), 11);
  OK(hg_proc_flush(proc));
  OK(hg_proc_free(proc));
}

/* Decodes a string from the bytes and expects an error. No string may be allocated. */
static void refuse(const void *bytes, long size, int want)
{
  hg_proc_t proc;
  hg_string_t text = (hg_string_t)bytes;
  OK(hg_proc_create((void *)bytes, (hg_size_t)size, HG_DECODE, HG_NOHASH, &proc));
  CHECK_EQ(hg_proc_hg_string_t(proc, &text), want);
  CHECK(text == NULL, "a string came of an error");
  CHECK_EQ(hg_proc_flush(proc), want);
  OK(hg_proc_free(proc));
}

static void lies(void)
{
  const uint64_t sizes[] = { 2, 3, 1000, 1u << 31, 1ull << 32, 1ull << 63, ~0ull, ~0ull - 8 };
  unsigned char bytes[10];
  for (int i = 0; i < 8; i++) {
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, &sizes[i], 8);
    refuse(bytes, 9, HG_OVERFLOW);
  }
  for (long cut = 0; cut < 8; cut++)
    refuse(bytes, cut, HG_OVERFLOW);
  memcpy(bytes, "\2\0\0\0\0\0\0\0ab", 10); /* not terminated */
  refuse(bytes, 10, HG_PROTOCOL_ERROR);
  memcpy(bytes, "\2\0\0\0\0\0\0\0\0\0", 10); /* terminated twice */
  refuse(bytes, 10, HG_PROTOCOL_ERROR);

  {
    hg_proc_t proc;
    bool flag = false;
    char value[8] = "\2";
    OK(hg_proc_create(value, 8, HG_DECODE, HG_NOHASH, &proc));
    CHECK_EQ(hg_proc_bool(proc, &flag), HG_PROTOCOL_ERROR);
    OK(hg_proc_reset(proc, value, 8, HG_DECODE));
    CHECK_EQ(hg_proc_raw(proc, bytes, ~(hg_size_t)0), HG_OVERFLOW);
    OK(hg_proc_reset(proc, value, 8, HG_DECODE));
    CHECK_EQ(hg_proc_set_size(proc, 9), HG_OVERFLOW);
    OK(hg_proc_free(proc));
  }
}

int main(int argc, char **argv)
{
  check_start_mpi("mercury_proc", &argc, &argv);
  growth();
  by_hand();
  without_trailer();
  strings();
  arguments();
  lies();
  return check_end_mpi();
}
