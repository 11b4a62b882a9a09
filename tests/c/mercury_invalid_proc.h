/*
 * mercury_invalid_proc.h - bad input to the calls of mercury_proc.h, mercury_proc_string.h,
 * mercury_string_object.h and mercury_checksum.h: rows for mercury_invalid.c. They need no network.
 * A proc and a checksum are plain pointers: null is detected, a freed one is not.
 */
#ifndef MERCURY_INVALID_PROC_H
#define MERCURY_INVALID_PROC_H

static unsigned char bytes[64];     /* a proc's buffer */
static hg_proc_t encoder, made_proc;
static hg_proc_hash_t hash = HG_CRC16;
static hg_string_object_t object;
static hg_checksum_t sum, good_sum;
static long long number = 77, scrap[4];

#define PROC(call, fault, code, expression) CASE("hg_proc_" call, fault, code, hg_proc_##expression)

/* Runs a proc function that decodes these bytes into `to`. */
static int decoded(hg_return_t (*run)(hg_proc_t, void *), const void *from, size_t size, void *to)
{
  unsigned char copy[64];
  hg_proc_t proc;
  memcpy(copy, from, size);
  MUST(hg_proc_create(copy, size, HG_DECODE, HG_NOHASH, &proc));
  const int rc = run(proc, to);
  if (rc != HG_SUCCESS)
    CHECK_EQ(run(proc, to), rc);    /* keeps failing with its first error */
  MUST(hg_proc_free(proc));
  return rc;
}

/* Returns the result of flushing a decoder whose encoded bytes were damaged. */
static int flushed_damaged(void)
{
  unsigned char copy[64];
  hg_proc_t proc;
  int32_t x = 5;
  MUST(hg_proc_create(copy, sizeof copy, HG_ENCODE, HG_CRC64, &proc));
  MUST(hg_proc_int32_t(proc, &x));
  MUST(hg_proc_flush(proc));
  copy[1] ^= 1;
  MUST(hg_proc_reset(proc, copy, hg_proc_get_size_used(proc), HG_DECODE));
  MUST(hg_proc_int32_t(proc, &x));
  const int rc = hg_proc_flush(proc);
  MUST(hg_proc_free(proc));
  return rc;
}

static hg_return_t over_bytes(hg_proc_t proc, void *data) { return hg_proc_bytes(proc, data, 16); }

static void proc_making(void)
{
#define MAKE_PROC(fault, code, buf, size, op, hash, to)                          \
  PROC("create", fault, code, create(buf, size, op, hash, to));                  \
  PROC("create_set", fault, code, create_set(NULL, buf, size, op, hash, to))
  MAKE_PROC("a null pointer for the result", HG_INVALID_ARG, bytes, 64, HG_ENCODE, HG_NOHASH, NULL);
  MAKE_PROC("a null buffer with a size", HG_INVALID_ARG, NULL, 64, HG_ENCODE, HG_NOHASH, &made_proc);
  MAKE_PROC("a size of UINT64_MAX", HG_INVALID_ARG, bytes, UINT64_MAX, HG_ENCODE, HG_NOHASH, &made_proc);
  MAKE_PROC("HG_INVALID for what to do", HG_INVALID_ARG, bytes, 64, HG_INVALID, HG_NOHASH, &made_proc);
  MAKE_PROC("-1 for what to do", HG_INVALID_ARG, bytes, 64, (hg_proc_op_t)-1, HG_NOHASH, &made_proc);
  MAKE_PROC("an unknown checksum", HG_INVALID_ARG, bytes, 64, HG_ENCODE, (hg_proc_hash_t)77, &made_proc);
  PROC("reset", "a null proc", HG_INVALID_ARG, reset(NULL, bytes, 64, HG_ENCODE));
  PROC("reset", "a null buffer with a size", HG_INVALID_ARG, reset(encoder, NULL, 64, HG_ENCODE));
  PROC("reset", "a size of UINT64_MAX", HG_INVALID_ARG, reset(encoder, bytes, UINT64_MAX, HG_ENCODE));
  PROC("reset", "HG_INVALID for what to do", HG_INVALID_ARG, reset(encoder, bytes, 64, HG_INVALID));
  PROC("free", "a null proc", HG_INVALID_ARG, free(NULL));
  PROC("hash_from_name", "a name of an unknown checksum", HG_INVALID_ARG, hash_from_name("md5", &hash));
  PROC("hash_from_name", "a null name", HG_INVALID_ARG, hash_from_name(NULL, &hash));
  PROC("hash_from_name", "a null pointer for the result", HG_INVALID_ARG, hash_from_name("crc64", NULL));
  GIVES("hg_proc_get_op", "a null proc", "`HG_INVALID`", hg_proc_get_op(NULL) == HG_INVALID);
  GIVES("hg_proc_get_class, hg_proc_get_handle", "a null proc", "`NULL`",
        hg_proc_get_class(NULL) == NULL && hg_proc_get_handle(NULL) == NULL);
  GIVES("hg_proc_get_flags, hg_proc_get_size, hg_proc_get_size_used, hg_proc_get_size_left", "a null proc", "0",
        hg_proc_get_flags(NULL) == 0 && hg_proc_get_size(NULL) == 0 && hg_proc_get_size_used(NULL) == 0 &&
          hg_proc_get_size_left(NULL) == 0);
  GIVES("hg_proc_get_extra_buf, hg_proc_get_extra_size, hg_proc_get_buf_ptr", "a null proc", "`NULL`, 0",
        hg_proc_get_extra_buf(NULL) == NULL && hg_proc_get_extra_size(NULL) == 0 &&
          hg_proc_get_buf_ptr(NULL) == NULL);
  GIVES("hg_proc_set_handle, hg_proc_set_flags, hg_proc_checksum_update, hg_proc_undo_begin, hg_proc_undo_end",
        "a null proc", "nothing happens",
        (hg_proc_set_handle(NULL, NULL), hg_proc_set_flags(NULL, 1), hg_proc_checksum_update(NULL, bytes, 1),
         hg_proc_undo_begin(NULL), hg_proc_undo_end(NULL), 1));
  PROC("set_size", "a null proc", HG_INVALID_ARG, set_size(NULL, 64));
  PROC("set_extra_buf_is_mine", "a null proc", HG_INVALID_ARG, set_extra_buf_is_mine(NULL, HG_TRUE));
  PROC("flush", "a null proc", HG_INVALID_ARG, flush(NULL));
  CASE("hg_proc_flush", "bytes that do not match their checksum", HG_CHECKSUM_ERROR, flushed_damaged());
  PROC("checksum_get", "a null proc", HG_INVALID_ARG, checksum_get(NULL, bytes, 8));
  PROC("checksum_get", "a buffer that is too short", HG_INVALID_ARG, checksum_get(encoder, bytes, 7));
  PROC("checksum_get", "a null buffer", HG_INVALID_ARG, checksum_get(encoder, NULL, 8));
  PROC("checksum_verify", "a null proc", HG_INVALID_ARG, checksum_verify(NULL, bytes, 8));
  PROC("checksum_verify", "a size of UINT64_MAX", HG_INVALID_ARG, checksum_verify(encoder, bytes, UINT64_MAX));
  PROC("checksum_verify", "a null checksum", HG_INVALID_ARG, checksum_verify(encoder, NULL, 8));
  GIVES("hg_proc_save_ptr", "a null proc", "`NULL`", hg_proc_save_ptr(NULL, 8) == NULL);
  PROC("restore_ptr", "a null proc", HG_INVALID_ARG, restore_ptr(NULL, bytes, 8));
  PROC("restore_ptr", "a place that the proc did not give", HG_INVALID_ARG, restore_ptr(encoder, here, 8));
  PROC("set_buf_ptr", "a null proc", HG_INVALID_ARG, set_buf_ptr(NULL, bytes));
  PROC("set_buf_ptr", "a place outside of the buffer", HG_INVALID_ARG, set_buf_ptr(encoder, here));
  GIVES("hg_proc_buf_alloc", "UINT64_MAX bytes", "`NULL`", hg_proc_buf_alloc(UINT64_MAX) == NULL);
  GIVES("hg_proc_buf_free", "`NULL`", "nothing happens", (hg_proc_buf_free(NULL), 1));
}

/* The cases above have these calls together. */
static void proc_rows(void)
{
  NO_FAULT(hg_proc_get_class); NO_FAULT(hg_proc_get_handle); NO_FAULT(hg_proc_get_flags); NO_FAULT(hg_proc_get_size);
  NO_FAULT(hg_proc_get_size_used); NO_FAULT(hg_proc_get_size_left); NO_FAULT(hg_proc_get_extra_buf);
  NO_FAULT(hg_proc_get_extra_size); NO_FAULT(hg_proc_get_buf_ptr); NO_FAULT(hg_proc_set_handle);
  NO_FAULT(hg_proc_set_flags); NO_FAULT(hg_proc_checksum_update); NO_FAULT(hg_proc_undo_begin);
  NO_FAULT(hg_proc_undo_end);
}

/* Results of the proc functions for each type. */
static void proc_types(void)
{
  static const unsigned char lie[16] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f }, open_end[9] = { 1, 0, 0, 0, 0, 0, 0, 0, 'x' };
  static char *text;
#define EACH_TYPE(X) X(int8_t) X(uint8_t) X(int16_t) X(uint16_t) X(int32_t) X(uint32_t) X(int64_t) X(uint64_t) \
  X(float) X(double) X(bool) X(hg_bulk_t) X(hg_string_t) X(hg_const_string_t) X(hg_string_object_t)
#define TYPE_ROWS(type)                                                                          \
  PROC(#type, "a null proc", HG_INVALID_ARG, type(NULL, &number));                               \
  CASE("hg_proc_" #type, "a null place, decoding", HG_INVALID_ARG,                               \
       decoded(hg_proc_##type, lie, sizeof lie, NULL));                                          \
  CASE("hg_proc_" #type, "no bytes left, decoding", HG_OVERFLOW, decoded(hg_proc_##type, lie, 0, scrap));
  EACH_TYPE(TYPE_ROWS)
  PROC("bytes", "a null proc", HG_INVALID_ARG, bytes(NULL, here, 8));
  PROC("raw", "a null proc", HG_INVALID_ARG, raw(NULL, here, 8));
  PROC("memcpy", "a null proc", HG_INVALID_ARG, memcpy(NULL, here, 8));
  CASE("hg_proc_bytes", "a null place with a size", HG_INVALID_ARG, decoded(over_bytes, lie, 16, NULL));
  CASE("hg_proc_bytes", "fewer bytes than asked for", HG_OVERFLOW, decoded(over_bytes, lie, 15, scrap));
  CASE("hg_proc_hg_string_t", "a length that is too large", HG_OVERFLOW, decoded(hg_proc_hg_string_t, lie, 16, &text));
  CASE("hg_proc_hg_string_t", "no zero at the end", HG_PROTOCOL_ERROR,
          decoded(hg_proc_hg_string_t, open_end, 9, &text));
  CASE("hg_proc_hg_bulk_t", "a length that is too large", HG_OVERFLOW, decoded(hg_proc_hg_bulk_t, lie, 16, scrap));
  CASE("hg_proc_hg_bulk_t", "bytes that are not a handle", HG_PROTOCOL_ERROR,
          decoded(hg_proc_hg_bulk_t, open_end, 9, scrap));
}

static void strings_and_checksums(void)
{
#define STRING(call, code, expression) \
  CASE("hg_string_object_" call, "a null object", code, hg_string_object_##expression)
  STRING("init", HG_INVALID_ARG, init(NULL));
  STRING("init_char", HG_INVALID_ARG, init_char(NULL, (char *)here, HG_FALSE));
  STRING("init_const_char", HG_INVALID_ARG, init_const_char(NULL, "text", HG_FALSE));
  STRING("free", HG_INVALID_ARG, free(NULL));
  STRING("dup", HG_INVALID_ARG, dup(object, NULL));
  GIVES("hg_string_object_swap", "a null object", "`NULL`", hg_string_object_swap(NULL, (char *)here) == NULL);
#define SUM(call, fault, expression) CASE("hg_checksum_" call, fault, -1, hg_checksum_##expression)
  SUM("init", "an unknown method", init("md5", &sum));
  SUM("init", "method none", init("none", &sum));
  SUM("init", "a null method", init(NULL, &sum));
  SUM("init", "a null pointer for the result", init("crc64", NULL));
  SUM("destroy", "a null checksum", destroy(NULL));
  SUM("reset", "a null checksum", reset(NULL));
  SUM("update", "a null checksum", update(NULL, here, 8));
  SUM("get", "a null checksum", get(NULL, bytes, 8, 0));
  GIVES("hg_checksum_get_size", "a null checksum", "0", hg_checksum_get_size(NULL) == 0);
  SUM("update", "null data with a size", update(good_sum, NULL, 8));
  SUM("update", "SIZE_MAX bytes", update(good_sum, here, SIZE_MAX));
  SUM("get", "a null buffer", get(good_sum, NULL, 8, 0));
  SUM("get", "SIZE_MAX bytes", get(good_sum, bytes, SIZE_MAX, 1));
  SUM("get", "a buffer that is too short", get(good_sum, bytes, 7, 0));
}

#endif /* MERCURY_INVALID_PROC_H */
