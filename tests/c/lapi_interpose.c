/* A program defines LAPI_ names over the PLAPI_ ones, as profiling tools do. */
// TEST: lapi
// TEST: own-level
// TEST: n=2 build=static
#include "lapi_check.h"

static int sends, waits, xfers;
static long bytes;
static char room[128];

int LAPI_Amsend(lapi_handle_t h, uint tgt, void *hdr_hdl, void *uhdr, uint uhdr_len, void *udata,
                ulong udata_len, lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr,
                lapi_cntr_t *cmpl_cntr)
{
  sends++;
  bytes += (long)udata_len;
  return PLAPI_Amsend(h, tgt, hdr_hdl, uhdr, uhdr_len, udata, udata_len, tgt_cntr, org_cntr,
                      cmpl_cntr);
}

int LAPI_Waitcntr(lapi_handle_t h, lapi_cntr_t *cntr, int val, int *cur_cntr_val)
{
  waits++;
  return PLAPI_Waitcntr(h, cntr, val, cur_cntr_val);
}

int LAPI_Xfer(lapi_handle_t h, lapi_xfer_t *xfer_cmd)
{
  xfers++;
  return PLAPI_Xfer(h, xfer_cmd);
}

HEADER_HANDLER(header)
{
  return room;
}

int main(int argc, char **argv)
{
  lapi_cntr_t cmpl;
  char data[100] = "through the program's own";
  lapi_xfer_t x;

  lapi_start("lapi_interpose", &argc, &argv);
  void **table = lapi_exchange((void *)header);
  const uint right = (uint)((me + 1) % nproc);
  lapi_zero(&cmpl);
  LAPI_OK(LAPI_Amsend(hndl, right, table[right], NULL, 0, data, sizeof data, NULL, NULL, &cmpl));
  LAPI_WAIT(&cmpl, 1);
  memset(&x, 0, sizeof x);
  x.Am.Xfer_type = LAPI_AM_XFER;
  x.Am.tgt = right;
  x.Am.hdr_hdl = (lapi_long_t)table[right];
  x.Am.udata = data;
  x.Am.udata_len = sizeof data;
  x.Am.cmpl_cntr = &cmpl;
  LAPI_OK(LAPI_Xfer(hndl, &x));
  LAPI_WAIT(&cmpl, 1);
  LAPI_OK(PLAPI_Gfence(hndl));
  CHECK_BYTES(room, data, sizeof data, "the data");
  CHECK_EQ(sends, 1);               /* the library does not call LAPI_ names itself */
  CHECK_EQ(bytes, 100);
  CHECK_EQ(waits, 2);
  CHECK_EQ(xfers, 1);
  free(table);
  return lapi_end();
}
