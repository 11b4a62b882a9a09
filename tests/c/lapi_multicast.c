/*
 * Groups and multicasts (LAPI_MC_XFER), light active messages (LAPI_AM_LW_XFER), and the flags of
 * LAPI_Xfer, all of which are hints.
 */
// TEST: lapi lapi-moving
#include "lapi_check.h"

enum { TAKE = 1, LIGHT, LONGEST = 1 << 20, KINDS = 64 };

struct head { int kind, sender; long len; };

static unsigned char bytes[LONGEST], room[LONGEST];
static volatile long came[KINDS], done[KINDS], light_came, sends;
static lapi_cntr_t tgt, cmpl;

static void complete(lapi_handle_t *h, void *info)
{
  const struct head *head = (const struct head *)info;
  (void)h;
  for (long i = 0; i < head->len; i++)
    CHECK(room[i] == (unsigned char)(i * 7 + head->kind + head->sender), "byte %ld of kind %d from task %d", i,
          head->kind, head->sender);
  done[head->kind]++;
}

static void *take(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len, compl_hndlr_t **comp_h,
                  void **info)
{
  struct head *head = (struct head *)uhdr;
  lapi_return_info_t *is = (lapi_return_info_t *)(void *)msg_len;
  (void)h;
  CHECK_EQ(*len, sizeof *head);
  CHECK_EQ(is->src, head->sender);
  CHECK_EQ(is->msg_len, head->len);
  CHECK(head->kind >= 0 && head->kind < KINDS, "kind %d", head->kind);
  came[head->kind]++;
  *comp_h = complete;
  *info = uhdr;
  is->ret_flags = LAPI_SEND_REPLY;      /* reply at once: all messages share `room` */
  return head->len > 0 ? room : NULL;
}

static void sent(lapi_handle_t *h, void *info, lapi_sh_info_t *what)
{
  CHECK_EQ(*h, hndl);
  CHECK_EQ(what->reason, LAPI_SUCCESS);
  CHECK_EQ(what->src, *(lapi_group_t *)info);
  memset(bytes, 0xee, sizeof bytes);    /* the bytes may be changed now */
  sends++;
}

static void fill(int kind)
{
  for (long i = 0; i < LONGEST; i++)
    bytes[i] = (unsigned char)(i * 7 + kind + me);
}

static void send_to(lapi_group_t *group, void *function, int kind, long len)
{
  struct head head = { kind, me, len };
  lapi_xfer_t x;
  memset(&x, 0, sizeof x);
  x.Mc.Xfer_type = LAPI_MC_XFER;
  x.Mc.flags = LAPI_USE_BULK_XFER;
  x.Mc.group = *group;
  x.Mc.hdr_hdl = (lapi_long_t)function;
  x.Mc.uhdr = &head;
  x.Mc.uhdr_len = sizeof head;
  x.Mc.udata = len > 0 ? bytes : NULL;
  x.Mc.udata_len = (ulong)len;
  x.Mc.shdlr = sent;
  x.Mc.sinfo = group;
  fill(kind);
  sends = 0;
  LAPI_OK(LAPI_Xfer(hndl, &x));
  memset(&head, 0xff, sizeof head);     /* the header was copied */
  while (sends == 0)
    LAPI_OK(LAPI_Probe(hndl));
  LAPI_OK(LAPI_Fence(hndl));
  LAPI_OK(LAPI_Probe(hndl));
  CHECK_EQ(sends, 1);                   /* once, not once per member */
}

/* Each task in turn sends to a group with this member list. */
static void multicast(const uint *list, uint members, int kind, long len)
{
  lapi_group_t group = 0;
  int member = 0;
  for (uint i = 0; i < members; i++)
    member += list[i] == (uint)me;
  for (int sender = 0; sender < nproc; sender++) {
    came[kind] = done[kind] = 0;
    LAPI_OK(LAPI_Gfence(hndl));
    if (sender == me) {
      LAPI_OK(LAPI_Group_create(hndl, members, (uint *)list, &group));
      CHECK(group != 0, "group 0");
      send_to(&group, kind % 2 ? (void *)take : (void *)TAKE, kind, len);
      LAPI_OK(LAPI_Group_free(hndl, group));
      LAPI_CODE(LAPI_Group_free(hndl, group), LAPI_ERR_GRP);
    }
    LAPI_OK(LAPI_Gfence(hndl));
    CHECK_EQ(came[kind], member);
    CHECK_EQ(done[kind], member);
    LAPI_OK(LAPI_Gfence(hndl));
  }
}

static void multicasts(void)
{
  static const long lengths[] = { 0, 1, 8, 5000, 70000, LONGEST };
  uint all[256], even[256], others[256], n = 0, m = 0, last = (uint)(nproc - 1);
  int kind = 0;
  for (uint i = 0; i < (uint)nproc; i++) {
    all[nproc - 1 - (int)i] = i;
    if (i % 2 == 0)
      even[n++] = i;
    if (i != 0)
      others[m++] = i;
  }
  for (int i = 0; i < 6; i++) {
    multicast(all, (uint)nproc, kind++, lengths[i]);
    multicast(even, n, kind++, lengths[i]);
    multicast(&last, 1, kind++, lengths[i]);
    if (m > 0)
      multicast(others, m, kind++, lengths[i]);
  }
}

/* Many groups at once. If a member is purged, no member gets anything. */
static void groups(void)
{
  lapi_group_t group[100];
  uint list[256];
  for (int i = 0; i < nproc; i++)
    list[i] = (uint)i;
  for (int i = 0; i < 100; i++) {
    LAPI_OK(LAPI_Group_create(hndl, (uint)nproc, list, &group[i]));
    for (int j = 0; j < i; j++)
      CHECK(group[i] != group[j], "a group was given twice");
  }
  list[0] = 12345;                      /* the list may be reused */
  came[1] = 0;
  LAPI_OK(LAPI_Gfence(hndl));
  LAPI_OK(LAPI_Purge_totask(hndl, (uint)(nproc - 1)));
  struct head head = { 1, me, 0 };
  lapi_xfer_t x;
  memset(&x, 0, sizeof x);
  x.Mc.Xfer_type = LAPI_MC_XFER;
  x.Mc.group = group[50];
  x.Mc.hdr_hdl = TAKE;
  x.Mc.uhdr = &head;
  x.Mc.uhdr_len = sizeof head;
  LAPI_CODE(LAPI_Xfer(hndl, &x), LAPI_ERR_TGT_PURGED);
  LAPI_OK(LAPI_Resume_totask(hndl, (uint)(nproc - 1)));
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(came[1], 0);
  LAPI_OK(LAPI_Gfence(hndl));
  LAPI_OK(LAPI_Xfer(hndl, &x));         /* without a send completion handler */
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(came[1], nproc);
  for (int i = 0; i < 100; i++)
    LAPI_OK(LAPI_Group_free(hndl, group[i]));
}

/* ---------------------------------------------------------------------- light */

static unsigned char light_bytes[256];

static void *light(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len, compl_hndlr_t **comp_h,
                   void **info)
{
  const lapi_return_info_t *is = (const lapi_return_info_t *)(void *)msg_len;
  const unsigned char *header = (const unsigned char *)uhdr, *data = (const unsigned char *)is->udata_one_pkt_ptr;
  (void)h, (void)info;
  CHECK(is->msg_len == 0 || data != NULL, "%lu bytes did not come whole", is->msg_len);
  for (uint i = 0; i < *len; i++)
    CHECK_EQ(header[i], (unsigned char)(i + 1));
  for (ulong i = 0; i < is->msg_len; i++)
    CHECK_EQ(data[i], (unsigned char)(*len + i + 1));
  *comp_h = NULL;
  light_came++;
  return NULL;
}

/* Light messages of every length. Fields that the call does not read hold rubbish, and the buffer
 * is reused at once. */
static void lights(void)
{
  const uint right = (uint)((me + 1) % nproc);
  long count = 0;
  light_came = 0;
  LAPI_OK(LAPI_Gfence(hndl));
  for (int header = 0; header <= 128; header += 1 + header / 9)
    for (int data = 0; header + data <= 128; data++) {
      lapi_xfer_t x;
      memset(&x, 0xa5, sizeof x);
      for (int i = 0; i < header + data; i++)
        light_bytes[i] = (unsigned char)(i + 1);
      x.Am.Xfer_type = LAPI_AM_LW_XFER;
      x.Am.tgt = count % 3 ? right : (uint)me;
      x.Am.hdr_hdl = LIGHT;
      x.Am.uhdr_len = (uint)header;
      x.Am.uhdr = header ? light_bytes : NULL;
      x.Am.udata_len = (ulong)data;
      x.Am.udata = data ? light_bytes + header : NULL;
      LAPI_OK(LAPI_Xfer(hndl, &x));
      memset(light_bytes, 0, sizeof light_bytes);
      count++;
    }
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(light_came, count);
  LAPI_OK(LAPI_Gfence(hndl));
}

/* ---------------------------------------------------------------------- flags */

static void flags(void)
{
  static const int flag[] = { USE_TGT_VEC_TYPE, LAPI_USE_LAZY_ACKS, BUFFER_BOTH_CONTIGUOUS,
    LAPI_NOT_USE_BULK_XFER, LAPI_USE_BULK_XFER, LAPI_NOT_STRIPE, LAPI_NO_LOCAL_COPY, LAPI_RC_NO_LRU,
    0x3f6 };
  const uint right = (uint)((me + 1) % nproc);
  void **room_of = lapi_exchange(room), **tgt_of = lapi_exchange(&tgt);
  static unsigned char back[1000];
  for (size_t i = 0; i < sizeof flag / sizeof flag[0]; i++) {
    const int kind = 40 + (int)i;
    struct head head = { kind, me, 1000 };
    lapi_xfer_t x;
    came[kind] = 0;
    LAPI_OK(LAPI_Gfence(hndl));
    fill(kind);
    memset(&x, 0, sizeof x);
    x.Am.Xfer_type = LAPI_AM_XFER;
    x.Am.flags = flag[i];
    x.Am.tgt = right;
    x.Am.hdr_hdl = TAKE;
    x.Am.uhdr = &head;
    x.Am.uhdr_len = sizeof head;
    x.Am.udata = bytes;
    x.Am.udata_len = 1000;
    x.Am.tgt_cntr = (lapi_long_t)tgt_of[right];
    x.Am.cmpl_cntr = &cmpl;
    LAPI_OK(LAPI_Xfer(hndl, &x));
    LAPI_WAIT(&cmpl, 1);
    LAPI_WAIT(&tgt, 1);
    CHECK_EQ(came[kind], 1);
    memset(&x, 0, sizeof x);
    x.Put.Xfer_type = LAPI_PUT_XFER;
    x.Put.flags = flag[i];
    x.Put.tgt = right;
    x.Put.tgt_addr = (lapi_long_t)room_of[right];
    x.Put.org_addr = bytes;
    x.Put.len = 1000;
    x.Put.cmpl_cntr = &cmpl;
    LAPI_OK(LAPI_Xfer(hndl, &x));
    LAPI_WAIT(&cmpl, 1);
    memset(&x, 0, sizeof x);
    x.Get.Xfer_type = LAPI_GET_XFER;
    x.Get.flags = flag[i];
    x.Get.tgt = right;
    x.Get.tgt_addr = (lapi_long_t)room_of[right];
    x.Get.org_addr = back;
    x.Get.len = 1000;
    x.Get.org_cntr = &cmpl;
    LAPI_OK(LAPI_Xfer(hndl, &x));
    LAPI_WAIT(&cmpl, 1);
    CHECK_BYTES(back, bytes, 1000, "a put and a get with flags %x", (unsigned)flag[i]);
    LAPI_OK(LAPI_Gfence(hndl));
  }
  free(room_of);
  free(tgt_of);
}

int main(int argc, char **argv)
{
  lapi_start("lapi_multicast", &argc, &argv);
  lapi_zero(&tgt);
  lapi_zero(&cmpl);
  LAPI_OK(LAPI_Addr_set(hndl, (void *)take, TAKE));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)light, LIGHT));
  multicasts();
  groups();
  lights();
  flags();
  return lapi_end();
}
