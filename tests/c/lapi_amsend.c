/*
 * Active messages: lengths from 0 to 64 MiB, the arguments and results of header handlers, the
 * three ways to name a handler, flags, counters.
 */
// TEST: lapi lapi-moving
// TEST: n=3 -- polling
// TEST: release n=3 node-size=1 -- polling
#include "lapi_check.h"

enum { COPY, TAKE, BURY, DROP, IN_LINE, SILENT, BOTH };
typedef struct {
  long mode, seed, expect_whole;    /* expect_whole: 1 in one packet, 0 not, -1 either */
  long length;
} request_t;

static unsigned char *room, *taken;
static long capacity;
static int headers, completions, drops_left;
static lapi_cntr_t tgt, org, cmpl;
static void **tgt_of, **plain_of;
static uint max_uhdr;
static int eager;

static void completion(lapi_handle_t *h, void *info)
{
  CHECK(*h == hndl, "the handle of a completion handler");
  CHECK(info == &completions, "the parameter of a completion handler");
  completions++;
}

static void *header(lapi_handle_t *h, void *uhdr, uint *uhdr_len, ulong *msg_len,
                    compl_hndlr_t **comp_h, void **user_info)
{
  lapi_return_info_t *info = (lapi_return_info_t *)msg_len;
  const request_t *r = uhdr;

  CHECK(*h == hndl, "the handle of a header handler");
  CHECK((size_t)uhdr % 8 == 0, "the header lies at %p", uhdr);
  CHECK(*uhdr_len >= sizeof *r, "the header is short");
  for (uint i = sizeof *r; i < *uhdr_len; i++)
    CHECK_EQ(((unsigned char *)uhdr)[i], check_byte((int)r->seed + 1, i));
  CHECK_EQ(*msg_len, r->length);
  CHECK_EQ(info->bytes, r->length);
  CHECK_EQ(info->ret_flags, LAPI_NORMAL);
  CHECK_EQ(info->ctl_flags, LAPI_DELIVER_MSG);
  CHECK(info->dgsp_handle == NULL, "dgsp_handle");
  CHECK(info->src >= 0 && info->src < nproc, "src is %d", info->src);
  CHECK(*comp_h == NULL && *user_info == NULL, "what is to be returned is not empty");
  if (r->length == 0)
    CHECK(info->udata_one_pkt_ptr == NULL, "a packet without data");
  else if (r->expect_whole >= 0)
    CHECK_EQ(info->udata_one_pkt_ptr != NULL, r->expect_whole);
  if (info->udata_one_pkt_ptr) {
    CHECK((size_t)info->udata_one_pkt_ptr % 8 == 0, "data at %p", info->udata_one_pkt_ptr);
    for (long i = 0; i < r->length; i++)
      CHECK_EQ(((unsigned char *)info->udata_one_pkt_ptr)[i], check_byte((int)r->seed, i));
  }
  headers++;
  *comp_h = completion;
  *user_info = &completions;
  switch (r->mode) {
  case TAKE:
    memcpy(taken, info->udata_one_pkt_ptr, *msg_len);
    return NULL;
  case BURY:
    info->ctl_flags = LAPI_BURY_MSG;
    return NULL;
  case DROP:
    if (drops_left-- > 0) {
      info->ctl_flags = LAPI_DROP_PKT;
      return NULL;
    }
    break;
  case IN_LINE:
    info->ret_flags = LAPI_SEND_REPLY;
    break;
  case SILENT:
    info->ret_flags = LAPI_LOCAL_STATE;
    break;
  case BOTH:
    *comp_h = NULL;
    info->ret_flags = LAPI_LOCAL_STATE | LAPI_SEND_REPLY;
    break;
  }
  CHECK(r->length <= capacity, "%ld bytes, room for %ld", r->length, capacity);
  return r->length ? room : NULL;
}

/* A header handler without a completion handler. */
static void *plain(lapi_handle_t *h, void *uhdr, uint *uhdr_len, ulong *msg_len,
                   compl_hndlr_t **comp_h, void **user_info)
{
  (void)h, (void)uhdr, (void)comp_h, (void)user_info;
  CHECK_EQ(*uhdr_len, 0);
  CHECK(uhdr == NULL, "a header of no bytes at %p", uhdr);
  headers++;
  return *msg_len ? room : NULL;
}

/* Sends one message from rank 0 to `to`, which checks it. `handler` is an address or an index. */
static void one(int to, void *handler, int mode, long length, int seed, uint uhdr_len)
{
  static unsigned char *data;
  static long have = -1;
  long head[512];
  request_t *r = (request_t *)head;
  const int whole = me == to ? -1 : length <= eager ? 1 : length >= 1 << 18 ? 0 : -1;

  headers = completions = 0;
  memset(room, 0xee, (size_t)(length < 4096 ? 4096 : length));
  LAPI_OK(LAPI_Gfence(hndl));
  if (me == 0) {
    if (length > have) {
      free(data);
      data = check_calloc(length);
      have = length;
    }
    check_fill(data, seed, length);
    *r = (request_t){ mode, seed, whole, length };
    for (uint i = sizeof *r; i < uhdr_len; i++)
      ((unsigned char *)head)[i] = check_byte(seed + 1, i);
    LAPI_OK(LAPI_Amsend(hndl, (uint)to, handler, head, uhdr_len, length ? data : NULL,
                        (ulong)length, tgt_of[to], &org, &cmpl));
    memset(head, 0x55, uhdr_len);   /* the call copies long headers */
    LAPI_WAIT(&org, 1);
    memset(data, 0x11, (size_t)length);
    if (mode == SILENT || mode == BOTH) {
      LAPI_OK(LAPI_Fence(hndl));
    } else {
      LAPI_WAIT(&cmpl, 1);
    }
  }
  if (me == to) {
    LAPI_WAIT(&tgt, 1);
    CHECK_EQ(headers, mode == DROP ? 4 : 1);
    CHECK_EQ(completions, mode == BOTH ? 0 : 1);
    unsigned char *want = check_calloc(length);
    check_fill(want, seed, length);
    if (mode == TAKE) {
      CHECK_BYTES(taken, want, length, "taken from the packet");
      CHECK_EQ(room[0], 0xee);
    } else if (mode == BURY) {
      for (int i = 0; i < 4096; i++)
        CHECK_EQ(room[i], 0xee);
    } else {
      CHECK_BYTES(room, want, length, "%ld bytes in mode %d", length, mode);
    }
    free(want);
  }
  LAPI_OK(LAPI_Gfence(hndl));
  lapi_nap(me == 0 && mode == SILENT ? 20 : 0);
  CHECK_EQ(lapi_value(&cmpl), 0);   /* a silent message never sends a reply */
  CHECK_EQ(lapi_value(&tgt), 0);
  CHECK_EQ(lapi_value(&org), 0);
}

static void lengths(int to, void *handler)
{
  static const long some[] = { 0, 1, 7, 8, 100, 1024, 4096, 10000, 65536, 1 << 20 };
  int seed = to;

  for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
    one(to, handler, COPY, some[i], seed += 3, sizeof(request_t));
  for (int d = -1; d <= 1; d++)     /* around the longest packet */
    one(to, handler, COPY, eager + d, seed += 3, sizeof(request_t));
  one(to, handler, COPY, 5000, seed += 3, max_uhdr);
  one(to, handler, COPY, eager, seed += 3, max_uhdr);
}

static void modes(int to, void *handler)
{
  static const long some[] = { 8, 1000, 300000 };

  one(to, handler, TAKE, eager < 4000 ? eager : 4000, 5, sizeof(request_t));
  for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
    for (int mode = BURY; mode <= BOTH; mode++) {
      if (mode == DROP)
        drops_left = 3;
      one(to, handler, mode, some[i], (int)i + mode, sizeof(request_t) + 64);
    }
  drops_left = 3;
  one(to, handler, DROP, 0, 9, sizeof(request_t));
}

/* A header of any length arrives unchanged at an address that is a multiple of 8. */
static uint odd_len;
static lapi_vec_t odd_vector;

static void odd_check(void *uhdr, uint len)
{
  CHECK_EQ(len, odd_len);
  CHECK((size_t)uhdr % 8 == 0, "the header lies at %p", uhdr);
  for (uint i = 0; i < len; i++)
    CHECK_EQ(((unsigned char *)uhdr)[i], check_byte((int)len, i));
  headers++;
}

static void *odd(lapi_handle_t *h, void *uhdr, uint *uhdr_len, ulong *msg_len,
                 compl_hndlr_t **comp_h, void **user_info)
{
  const lapi_return_info_t *info = (lapi_return_info_t *)msg_len;

  (void)h, (void)comp_h, (void)user_info;
  CHECK((size_t)info->udata_one_pkt_ptr % 8 == 0, "data at %p", info->udata_one_pkt_ptr);
  odd_check(uhdr, *uhdr_len);
  return room;
}

static lapi_vec_t *odd_vec(lapi_handle_t *h, void *uhdr, uint *uhdr_len, ulong *len_vec,
                           compl_hndlr_t **comp_h, void **user_info)
{
  (void)h, (void)len_vec, (void)comp_h, (void)user_info;
  odd_check(uhdr, *uhdr_len);
  return &odd_vector;
}

static void odd_headers(int to)
{
  static unsigned char head[4096], data[100];
  static void *from[1] = { data }, *into[1];
  static ulong length[1] = { sizeof data };
  lapi_vec_t vector = { LAPI_GEN_IOVECTOR, 1, from, length };
  lapi_xfer_t x;

  LAPI_OK(LAPI_Addr_set(hndl, (void *)odd, 21));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)odd_vec, 22));
  into[0] = room;
  odd_vector = (lapi_vec_t){ LAPI_GEN_IOVECTOR, 1, into, length };
  check_fill(data, 3, sizeof data);
  for (uint len = 1; len <= max_uhdr; len = len < 80 ? len + 1 : len < max_uhdr - 9 ? max_uhdr - 9 : len + 1) {
    headers = 0;
    odd_len = len;
    memset(room, 0, sizeof data);
    LAPI_OK(LAPI_Gfence(hndl));
    if (me == 0) {
      check_fill(head, (int)len, len);
      head[len] = 0xa5;             /* nothing is written behind it */
      LAPI_OK(LAPI_Amsend(hndl, (uint)to, (void *)21, head, len, data, sizeof data, NULL, NULL, &cmpl));
      LAPI_OK(LAPI_Amsendv(hndl, (uint)to, (void *)22, head, len, &vector, NULL, NULL, &cmpl));
      memset(&x, 0, sizeof x);
      x.Am.Xfer_type = LAPI_AM_XFER;
      x.Am.tgt = (uint)to;
      x.Am.hdr_hdl = 21;
      x.Am.uhdr = head;
      x.Am.uhdr_len = len;
      x.Am.udata = data;
      x.Am.udata_len = sizeof data;
      x.Am.cmpl_cntr = &cmpl;
      LAPI_OK(LAPI_Xfer(hndl, &x));
      LAPI_WAIT(&cmpl, 3);
    }
    LAPI_OK(LAPI_Gfence(hndl));
    if (me == to) {
      CHECK_EQ(headers, 3);
      CHECK_BYTES(room, data, sizeof data, "data after a header of %u bytes", len);
    }
  }
  if (me == 0)
    LAPI_CODE(LAPI_Amsend(hndl, (uint)to, (void *)21, head, max_uhdr + 1, NULL, 0, NULL, NULL, NULL),
              LAPI_ERR_UHDR_LEN);
  LAPI_OK(LAPI_Gfence(hndl));
}

/* A message without header, data, handler and counters. */
static void bare(int to)
{
  headers = 0;
  LAPI_OK(LAPI_Gfence(hndl));
  if (me == 0) {
    LAPI_OK(LAPI_Amsend(hndl, (uint)to, plain_of[to], NULL, 0, NULL, 0, NULL, NULL, NULL));
    LAPI_OK(LAPI_Amsend(hndl, (uint)to, plain_of[to], NULL, 0, NULL, 0, tgt_of[to], NULL, &cmpl));
    LAPI_WAIT(&cmpl, 1);
  }
  if (me == to) {
    LAPI_WAIT(&tgt, 1);
    CHECK_EQ(headers, 2);           /* in the order of sending */
  }
  LAPI_OK(LAPI_Gfence(hndl));
}

int main(int argc, char **argv)
{
  int value, table_size;
  void *entry;

  lapi_start("lapi_amsend", &argc, &argv);
  const int last = nproc - 1;
  LAPI_OK(LAPI_Qenv(hndl, MAX_UHDR_SZ, &value));
  max_uhdr = (uint)value;
  CHECK(max_uhdr >= 512 && max_uhdr % 8 == 0, "MAX_UHDR_SZ is %u", max_uhdr);
  LAPI_OK(LAPI_Qenv(hndl, MAX_PKT_SZ, &value));
  eager = value;
  MPI_Bcast(&eager, 1, MPI_INT, 0, MPI_COMM_WORLD);
  CHECK_EQ(eager, value);
  capacity = 64l << 20;
  room = check_calloc(capacity);
  taken = check_calloc(1 << 16);
  lapi_zero(&tgt);
  lapi_zero(&org);
  lapi_zero(&cmpl);
  tgt_of = lapi_exchange(&tgt);
  plain_of = lapi_exchange((void *)plain);
  void **header_of = lapi_exchange((void *)header);
  LAPI_OK(LAPI_Addr_set(hndl, (void *)header, 7));
  LAPI_OK(LAPI_Addr_get(hndl, &entry, 7));
  CHECK(entry == (void *)header, "the entry of the table");
  LAPI_OK(LAPI_Addr_get(hndl, &entry, 8));
  CHECK(entry == NULL, "an entry that was not set");
  LAPI_OK(LAPI_Qenv(hndl, LOC_ADDRTBL_SZ, &table_size));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)header, table_size - 1));

  lengths(last, header_of[last]);   /* by the target's own address */
  if (nproc > 1)
    lengths(0, header_of[0]);       /* to the sender itself */
  modes(last, header_of[last]);
  modes(0, (void *)7);              /* by index */
  one(last, (void *)(size_t)(table_size - 1), COPY, 50, 1, sizeof(request_t));
  one(last, (void *)header, COPY, 60, 2, sizeof(request_t));      /* by this task's own address */
  one(last, (void *)header, COPY, 200000, 3, sizeof(request_t));
  bare(last);
  bare(0);
  odd_headers(last);
  if (nproc > 1)
    odd_headers(0);
  one(last, header_of[last], COPY, capacity, 77, sizeof(request_t));
  free(header_of);
  free(tgt_of);
  free(plain_of);
  free(room);
  free(taken);
  return lapi_end();
}
