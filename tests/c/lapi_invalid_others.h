/*
 * lapi_invalid_others.h - bad input to LAPI_Util, to groups, and to the transfers of LAPI_Xfer that
 * have no call of their own: light active messages and multicasts. Part of lapi_invalid.c.
 */
#ifndef LAPI_INVALID_OTHERS_H
#define LAPI_INVALID_OTHERS_H

static lapi_util_t util;
static uint member;
static lapi_group_t group = 77;

/* Runs an unsupported LAPI_Util command; the error text must say what it would need. */
static int utility(int command, const char *needs)
{
  util.Util_type = (lapi_util_type_t)command;
  const int refused = LAPI_Util(hndl, &util);
  CHECK(LISTED || strstr(portolan_last_error(), needs) != NULL, "%s: no \"%s\"", portolan_last_error(), needs);
  return refused;
}

static void utilities(void)
{
  rows_begin("LAPI_Util");
  REFUSED("LAPI_Util", "a null command", LAPI_ERR_UTIL_CMD, LAPI_Util(hndl, NULL));
#define NOT_HERE(name, needs) REFUSED("LAPI_Util", #name, LAPI_ERR_UTIL_CMD, utility(name, needs))
  NOT_HERE(LAPI_REGISTER_DGSP, "data gather/scatter programs");
  NOT_HERE(LAPI_RESERVE_DGSP, "data gather/scatter programs");
  NOT_HERE(LAPI_UNRESERVE_DGSP, "data gather/scatter programs");
  NOT_HERE(LAPI_REG_DDM_FUNC, "data gather/scatter programs");
  NOT_HERE(LAPI_DGSP_PACK, "data gather/scatter programs");
  NOT_HERE(LAPI_DGSP_UNPACK, "data gather/scatter programs");
  NOT_HERE(LAPI_ADD_UDP_DEST_PORT, "UDP");
  NOT_HERE(LAPI_REMOTE_RCXT, "remote direct memory access");
  NOT_HERE(LAPI_XLATE_ADDRESS, "remote direct memory access");
  NOT_HERE(LAPI_REGISTER_NOTIFICATION, "remote direct memory access");
  NOT_HERE(LAPI_TRIGGER_ADD, "triggers");
  NOT_HERE(LAPI_TRIGGER_REMOVE, "triggers");
  NOT_HERE(LAPI_ADD_UDP_DEST_EXT, "UDP");
  NOT_HERE(LAPI_STAT_SAVE, "statistics");
  NOT_HERE(LAPI_LAST_UTIL, "15");
  REFUSED("LAPI_Util", "command -1", LAPI_ERR_UTIL_CMD, utility(-1, "-1"));
}

/* Light active messages and multicasts; each row makes one argument bad. */
static int light(uint tgt, lapi_long_t index, uint uhdr_len, void *uhdr, ulong len, void *data)
{
  lapi_xfer_t x;
  memset(&x, 0xa5, sizeof x);       /* fields that the call does not read may have any value */
  x.Am.Xfer_type = LAPI_AM_LW_XFER;
  x.Am.tgt = tgt;
  x.Am.hdr_hdl = index;
  x.Am.uhdr_len = uhdr_len;
  x.Am.uhdr = uhdr;
  x.Am.udata_len = len;
  x.Am.udata = data;
  return LAPI_Xfer(hndl, &x);
}

static int multicast(lapi_group_t to, void *function, uint uhdr_len, void *uhdr, ulong len, void *data)
{
  lapi_xfer_t x;
  memset(&x, 0, sizeof x);
  x.Mc.Xfer_type = LAPI_MC_XFER;
  x.Mc.group = to;
  x.Mc.hdr_hdl = (lapi_long_t)function;
  x.Mc.uhdr_len = uhdr_len;
  x.Mc.uhdr = uhdr;
  x.Mc.udata_len = len;
  x.Mc.udata = data;
  return LAPI_Xfer(hndl, &x);
}

static int to_purged(lapi_group_t to)
{
  LAPI_OK(LAPI_Purge_totask(hndl, (uint)right));
  const int refused = multicast(to, handler, 0, NULL, 0, NULL);
  LAPI_OK(LAPI_Resume_totask(hndl, (uint)right));
  return refused;
}

static int freed_twice(void)
{
  lapi_group_t mine_only;
  LAPI_OK(LAPI_Group_create(hndl, 1, &member, &mine_only));
  LAPI_OK(LAPI_Group_free(hndl, mine_only));
  return LAPI_Group_free(hndl, mine_only);
}

static void others_that_send(void)
{
  const ulong huge = 0x8000000000000000ul;
  const uint to = (uint)right;
  uint list[2];
  lapi_group_t all = 0;

  rows_begin("Light active messages: LAPI_AM_LW_XFER");
  if (!LISTED)
    LAPI_OK(LAPI_Addr_set(hndl, (void *)header, 2));
  REFUSED("LAPI_Xfer", "a task equal to the number of tasks", LAPI_ERR_TGT, light((uint)nproc, 2, 8, here, 8, here));
  REFUSED("LAPI_Xfer", "index 0", LAPI_ERR_HDR_HNDLR_NULL, light(to, 0, 8, here, 8, here));
  REFUSED("LAPI_Xfer", "an index that this task has not set", LAPI_ERR_NO_HNDLR_SET, light(to, 3, 8, here, 8, here));
  REFUSED("LAPI_Xfer", "an address for the index", LAPI_ERR_NO_HNDLR_SET,
          light(to, (lapi_long_t)handler, 8, here, 8, here));
  REFUSED("LAPI_Xfer", "a header and data of 129 bytes", LAPI_ERR_LW_DATA_LEN, light(to, 2, 64, here, 65, here));
  REFUSED("LAPI_Xfer", "a header of UINT_MAX bytes", LAPI_ERR_LW_DATA_LEN, light(to, 2, UINT_MAX, here, 0, NULL));
  REFUSED("LAPI_Xfer", "data of ULONG_MAX bytes", LAPI_ERR_LW_DATA_LEN, light(to, 2, 8, here, ULONG_MAX, here));
  REFUSED("LAPI_Xfer", "a null header with a length", LAPI_ERR_UHDR_NULL, light(to, 2, 8, NULL, 8, here));
  REFUSED("LAPI_Xfer", "null data with a length", LAPI_ERR_ORG_ADDR_NULL, light(to, 2, 8, here, 8, NULL));

  rows_begin("Groups and multicasts: LAPI_MC_XFER");
  member = (uint)(LISTED ? 0 : me);
  REFUSED("LAPI_Group_create", "no members", LAPI_ERR_TASK_NUM, LAPI_Group_create(hndl, 0, &member, &group));
  REFUSED("LAPI_Group_create", "more members than tasks", LAPI_ERR_TASK_NUM,
          LAPI_Group_create(hndl, (uint)nproc + 1, &member, &group));
  REFUSED("LAPI_Group_create", "a null list", LAPI_ERR_NULL_LIST, LAPI_Group_create(hndl, 1, NULL, &group));
  REFUSED("LAPI_Group_create", "a null group", LAPI_ERR_NULL_GRP, LAPI_Group_create(hndl, 1, &member, NULL));
  list[0] = (uint)nproc;
  REFUSED("LAPI_Group_create", "a member equal to the number of tasks", LAPI_ERR_GRP_MEMBER,
          LAPI_Group_create(hndl, 1, list, &group));
  list[0] = (uint)-1;
  REFUSED("LAPI_Group_create", "member -1", LAPI_ERR_GRP_MEMBER, LAPI_Group_create(hndl, 1, list, &group));
  if (LISTED || nproc > 1) {
    list[0] = list[1] = 0;
    REFUSED("LAPI_Group_create", "a member twice", LAPI_ERR_GRP_MEMBER, LAPI_Group_create(hndl, 2, list, &group));
  }
  REFUSED("LAPI_Group_free", "group 0", LAPI_ERR_GRP, LAPI_Group_free(hndl, 0));
  REFUSED("LAPI_Group_free", "a group that was never made", LAPI_ERR_GRP, LAPI_Group_free(hndl, 4711));
  REFUSED("LAPI_Group_free", "a group that was freed", LAPI_ERR_GRP, freed_twice());
  if (!LISTED)
    LAPI_OK(LAPI_Group_create(hndl, 1, (uint *)&to, &all));
  REFUSED("LAPI_Xfer", "a group that was never made", LAPI_ERR_GRP, multicast(4711, handler, 8, here, 8, here));
  REFUSED("LAPI_Xfer", "a member that was purged", LAPI_ERR_TGT_PURGED, to_purged(all));
  REFUSED("LAPI_Xfer", "a null header handler", LAPI_ERR_HDR_HNDLR_NULL, multicast(all, NULL, 8, here, 8, here));
  REFUSED("LAPI_Xfer", "a user header above MAX_UHDR_SZ", LAPI_ERR_UHDR_LEN,
          multicast(all, handler, MAX_UHDR + 8, here, 8, here));
  REFUSED("LAPI_Xfer", "a null user header with a length", LAPI_ERR_UHDR_NULL, multicast(all, handler, 8, NULL, 8, here));
  REFUSED("LAPI_Xfer", "a length above LAPI_MAX_MSG_SZ", LAPI_ERR_DATA_LEN, multicast(all, handler, 8, here, huge, here));
  REFUSED("LAPI_Xfer", "null data with a length", LAPI_ERR_ORG_ADDR_NULL, multicast(all, handler, 8, here, 8, NULL));
  if (!LISTED) {
    LAPI_OK(LAPI_Group_free(hndl, all));
    LAPI_OK(LAPI_Addr_set(hndl, NULL, 2));
  }
}

#endif /* LAPI_INVALID_OTHERS_H */
