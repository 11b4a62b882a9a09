/* Layouts, values and texts. */
// TEST: lapi
#include "lapi_check.h"

#define AT(type, field, offset) CHECK_EQ(offsetof(type, field), offset)
#define SIZE(type, size) CHECK_EQ(sizeof(type), size)

/* The codes must be macros: programs use them in preprocessor conditions. */
#if !defined(LAPI_SUCCESS) || LAPI_SUCCESS != 0 || !defined(LAPI_ERR_UNKNOWN)
#error "LAPI_SUCCESS is no macro"
#endif
#if LAPI_ERR_TGT_PURGED != 421 || LAPI_ERR_XFER_CMD != 476 || LAPI_ERR_GRP != 527 || \
    LAPI_ERR_LASTCODE != 528
#error "codes are no macros, or have other values"
#endif
#if defined(LAPI_ERR_BAD_NINTH_PARM) || defined(LAPI_DGSM_COPY_SIZE)
#error "macros by which programs know other versions"
#endif

static void layouts(void)
{
  SIZE(lapi_handle_t, 4);
  AT(lapi_return_info_t, msg_len, 0);
  AT(lapi_return_info_t, MAGIC, 8);
  AT(lapi_return_info_t, ret_flags, 12);
  AT(lapi_return_info_t, ctl_flags, 16);
  AT(lapi_return_info_t, dgsp_handle, 24);
  AT(lapi_return_info_t, bytes, 32);
  AT(lapi_return_info_t, src, 40);
  AT(lapi_return_info_t, udata_one_pkt_ptr, 48);
  AT(lapi_return_info_t, recv_offset_dgsp_bytes, 56);
  SIZE(lapi_return_info_t, 64);
  AT(lapi_info_t, err_hndlr, 24);
  SIZE(lapi_info_t, 56);
  AT(lapi_cntr_t, cntr, 0);
  SIZE(lapi_cntr_t, 16);
  SIZE(lapi_vec_t, 24);
  SIZE(lapi_sh_info_t, 56);
  SIZE(lapi_msg_info_t, 88);
  SIZE(lapi_statistics_t, 72);
  AT(lapi_am_t, Xfer_type, 0);
  AT(lapi_am_t, flags, 4);
  AT(lapi_am_t, tgt, 8);
  AT(lapi_am_t, hdr_hdl, 16);
  AT(lapi_am_t, uhdr_len, 24);
  AT(lapi_am_t, uhdr, 32);
  AT(lapi_am_t, udata, 40);
  AT(lapi_am_t, udata_len, 48);
  AT(lapi_am_t, shdlr, 56);
  AT(lapi_am_t, sinfo, 64);
  AT(lapi_am_t, tgt_cntr, 72);
  AT(lapi_am_t, org_cntr, 80);
  AT(lapi_am_t, cmpl_cntr, 88);
  SIZE(lapi_am_t, 96);
  SIZE(lapi_get_t, 72);
  SIZE(lapi_put_t, 80);
  SIZE(lapi_getv_t, 64);
  SIZE(lapi_putv_t, 72);
  SIZE(lapi_amv_t, 88);
  SIZE(lapi_rmw_t, 64);
  SIZE(lapi_xfer_t, 120);       /* the size of Amx */
  AT(lapi_mc_t, group, 8);
  AT(lapi_mc_t, hdr_hdl, 16);
  AT(lapi_mc_t, uhdr_len, 24);
  AT(lapi_mc_t, uhdr, 32);
  AT(lapi_mc_t, udata, 40);
  AT(lapi_mc_t, udata_len, 48);
  AT(lapi_mc_t, shdlr, 56);
  AT(lapi_mc_t, sinfo, 64);
  SIZE(lapi_mc_t, 72);
  SIZE(lapi_cond_t, sizeof(pthread_cond_t));
  AT(lapi_thread_func_t, Util_type, 0);
  AT(lapi_thread_func_t, mutex_lock, 8);
  AT(lapi_thread_func_t, mutex_unlock, 16);
  AT(lapi_thread_func_t, mutex_trylock, 24);
  AT(lapi_thread_func_t, mutex_getowner, 32);
  AT(lapi_thread_func_t, cond_wait, 40);
  AT(lapi_thread_func_t, cond_timedwait, 48);
  AT(lapi_thread_func_t, cond_signal, 56);
  AT(lapi_thread_func_t, cond_init, 64);
  AT(lapi_thread_func_t, cond_destroy, 72);
  SIZE(lapi_thread_func_t, 80);
  SIZE(lapi_util_t, 80);
  AT(lapi_reg_dgsp_t, idgsp, 8);
  AT(lapi_reg_dgsp_t, dgsp_handle, 16);
  AT(lapi_reg_dgsp_t, status, 28);
  SIZE(lapi_reg_dgsp_t, 32);
  AT(lapi_resv_dgsp_t, dgsp_handle, 8);
  SIZE(lapi_resv_dgsp_t, 24);
  AT(lapi_dref_dgsp_t, dgsp_handle, 8);
  SIZE(lapi_dref_dgsp_t, 24);
  AT(lapi_reg_ddm_t, ddm_func, 8);
  SIZE(lapi_reg_ddm_t, 24);
  AT(lapi_pack_dgsp_t, bytes, 24);
  AT(lapi_pack_dgsp_t, position, 48);
  SIZE(lapi_pack_dgsp_t, 64);
  AT(lapi_unpack_dgsp_t, in_size, 24);
  AT(lapi_unpack_dgsp_t, bytes, 40);
  SIZE(lapi_unpack_dgsp_t, 64);
  AT(lapi_dgsm_copy_t, offset, 16);
  SIZE(lapi_dgsm_copy_t, 24);
  AT(lapi_dgsm_mcopy_t, block, 8);
  SIZE(lapi_dgsm_mcopy_t, 24);
  AT(lapi_dgsm_gosub_t, reps, 16);
  AT(lapi_dgsm_gosub_t, stride, 32);
  SIZE(lapi_dgsm_gosub_t, 40);
  SIZE(lapi_dgsm_iterate_t, 8);
  SIZE(lapi_dgsm_control_t, 12);
  CHECK_EQ(LAPI_DGSM_CONTROL, 4);
  CHECK_EQ(LAPI_DGSM_GOSUB_SIZE, 10);
  CHECK_EQ(LAPI_DGSM_MCOPY_BLOCK_SIZE, 4);
  CHECK(LAPI_BYTE == NULL, "LAPI_BYTE is no null handle");
  AT(lapi_dgsp_descr_t, density, 16);
  AT(lapi_dgsp_descr_t, size, 24);
  AT(lapi_dgsp_descr_t, atom_size, 56);
  SIZE(lapi_dgsp_descr_t, 64);
  AT(lapi_amdgsp_t, hdr_hdl, 16);
  AT(lapi_amdgsp_t, dgsp, 96);
  AT(lapi_amdgsp_t, status, 104);
  SIZE(lapi_amdgsp_t, 112);
  AT(lapi_amx_t, send_offset_dgsp_bytes, 112);
  SIZE(lapi_amx_t, 120);
  AT(lapi_xfer_t, Dgsp.dgsp, 96);
  AT(lapi_xfer_t, HwXfer.tgt_pvo, 24);
  AT(lapi_xfer_t, Amx.send_offset_dgsp_bytes, 112);
  AT(lapi_hwxfer_t, rdma_tag, 10);
  AT(lapi_hwxfer_t, src_pvo, 16);
  AT(lapi_hwxfer_t, len, 40);
  AT(lapi_hwxfer_t, org_cntr, 48);
  SIZE(lapi_hwxfer_t, 72);
  AT(lapi_udpinfo_t, reserve, 16);
  SIZE(lapi_udpinfo_t, 96);
  SIZE(lapi_udp_t, 8);
  AT(lapi_udp_storage, port_no, 16);
  SIZE(lapi_udp_storage, 24);
  AT(lapi_extend_t, udp_ext_hndlr, 24);
  SIZE(lapi_extend_t, 104);
  AT(lapi_add_udp_port_t, udp_port, 8);
  SIZE(lapi_add_udp_port_t, 32);
  SIZE(lapi_add_udp_port_ext, 32);
  AT(lapi_trigger_util_t, trigger_name, 16);
  SIZE(lapi_trigger_util_t, 24);
  SIZE(lapi_stat_t, 16);
  AT(lapi_stat_util_t, stat, 8);
  SIZE(lapi_stat_util_t, 16);
  AT(lapi_remote_cxt_t, usr_rcxt, 12);
  SIZE(lapi_user_cxt_t, 4);
  SIZE(lapi_user_pvo_t, 8);
  SIZE(lapi_rdma_tag_t, 2);
  SIZE(lapi_rdma_op_t, 2);
  SIZE(lapi_rdma_flg_t, 2);
  SIZE(lapi_group_t, 4);
}

static const struct { const char *name; int is, value; } numbers[] = {
#define N(value, name) { #name, (int)(name), value }
  N(0, LAPI_NORMAL), N(1, LAPI_LOCAL_STATE), N(2, LAPI_SEND_REPLY), N(0, LAPI_DELIVER_MSG),
  N(1, LAPI_BURY_MSG), N(2, LAPI_DROP_PKT), N(0, LAPI_GET_XFER), N(1, LAPI_AM_XFER),
  N(2, LAPI_PUT_XFER), N(3, LAPI_GETV_XFER), N(4, LAPI_PUTV_XFER), N(5, LAPI_AMV_XFER),
  N(6, LAPI_RMW_XFER), N(0, FETCH_AND_ADD), N(1, FETCH_AND_OR), N(2, SWAP), N(3, COMPARE_AND_SWAP),
  N(0, LAPI_GEN_IOVECTOR), N(1, LAPI_GEN_STRIDED_XFER), N(2, LAPI_GEN_GENERIC),
  N(160, LAPI_MAX_ERR_STRING), N(0, TASK_ID), N(4, ERROR_CHK), N(13, LOC_ADDRTBL_SZ),
  N(20, ACK_THRESHOLD), N(25, PRINT_STATISTICS), N(26, QUERY_SHM_STATISTICS),
  N(27, QUERY_LOCAL_SEND_STATISTICS), N(28, BULK_XFER), N(29, BULK_MIN_MSG_SIZE),
  N(30, RDMA_REMOTE_RCXT_AVAIL), N(31, RDMA_REMOTE_RCXT_TOTAL), N(32, RC_MAX_QP),
  N(33, RC_QP_IN_USE), N(34, RC_QP_USE_LRU), N(35, RC_QP_USE_LMC), N(36, RC_QP_INIT_SETUP),
  N(37, LAST_QUERY), N(7, LAPI_DGSP_XFER), N(8, LAPI_RDMA_XFER), N(9, LAPI_AM_LW_XFER),
  N(10, LAPI_AMX_XFER), N(11, LAPI_MC_XFER), N(0x2, USE_TGT_VEC_TYPE), N(0x4, LAPI_USE_LAZY_ACKS),
  N(0x10, BUFFER_BOTH_CONTIGUOUS), N(0x20, LAPI_NOT_USE_BULK_XFER), N(0x40, LAPI_USE_BULK_XFER),
  N(0x80, LAPI_NOT_STRIPE), N(0x100, LAPI_NO_LOCAL_COPY), N(0x200, LAPI_RC_NO_LRU),
  N(0, LAPI_REGISTER_DGSP), N(7, LAPI_GET_THREAD_FUNC), N(8, LAPI_REMOTE_RCXT),
  N(9, LAPI_XLATE_ADDRESS), N(14, LAPI_STAT_SAVE), N(0, LAPI_RDMA_ACQUIRE), N(1, LAPI_RDMA_RELEASE),
  N(0, LAPI_MSG_INITIAL), N(1, LAPI_MSG_RECVD), N(2, LAPI_MSG_PURGED), N(3, LAPI_MSG_PURGED_RCVD),
  N(4, LAPI_MSG_INVALID), N(0, LAPI_COMPLETE),
#undef N
};

static void values(void)
{
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
    CHECK(numbers[i].is == numbers[i].value, "%s is %d, not %d", numbers[i].name, numbers[i].is, numbers[i].value);
  CHECK(LAPI_ADDR_NULL == NULL, "LAPI_ADDR_NULL");
  CHECK(LAPI_MAX_MSG_SZ == 0x7fffffffffffffffL, "LAPI_MAX_MSG_SZ");
  CHECK(LAPI_VOID_HANDLE == (lapi_handle_t)-1, "LAPI_VOID_HANDLE");
  CHECK(LAPI_NULL_THREAD_ID == (pthread_t)-1, "LAPI_NULL_THREAD_ID");
}

static const struct { int value, code; const char *name; } codes[] = {
#define C(value, name) { value, LAPI_ ## name, "LAPI_" #name }
  C(0, SUCCESS), C(401, ERR_ALL_HNDL_IN_USE), C(405, ERR_INFO_NULL),
  C(409, ERR_HDR_HNDLR_NULL), C(417, ERR_HNDL_INVALID), C(418, ERR_RET_PTR_NULL),
  C(419, ERR_ADDR_HNDL_RANGE), C(420, ERR_ADDR_TBL_NULL), C(421, ERR_TGT_PURGED),
  C(422, ERR_MULTIPLE_WAITERS), C(423, ERR_MEMORY_EXHAUSTED), C(424, ERR_INFO_NONZERO),
  C(425, ERR_ORG_ADDR_NULL), C(426, ERR_TGT_ADDR_NULL), C(427, ERR_DATA_LEN),
  C(428, ERR_TGT), C(429, ERR_UHDR_NULL), C(430, ERR_UHDR_LEN), C(431, ERR_HDR_LEN),
  C(458, ERR_CNTR_NULL), C(459, ERR_CNTR_VAL), C(460, ERR_QUERY_TYPE), C(464, ERR_SET_VAL),
  C(476, ERR_XFER_CMD), C(519, ERR_CODE_UNKNOWN),
  C(404, ERR_CSS_LOAD_FAILED), C(406, ERR_MSG_API), C(407, ERR_NO_NETSTR_SET),
  C(408, ERR_NO_UDP_HNDLR), C(411, WARN_PARM_NULL), C(413, ERR_TIMEOUT),
  C(416, ERR_USER_UDP_HNDLR_FAIL), C(434, ERR_NO_CONNECTIVITY), C(436, ERR_RECV_INCOMP),
  C(437, ERR_SEND_INCOMP), C(438, ERR_SEND_TIMEOUT), C(439, ERR_SHM_SETUP),
  C(446, ERR_TGT_EXTENT), C(447, ERR_TGT_STRIDE), C(457, ERR_POLLING_NET), C(465, ERR_DGSP),
  C(477, ERR_UTIL_CMD), C(479, ERR_PACK_SZ), C(515, ERR_LW_DATA_LEN),
  C(516, ERR_NO_HNDLR_SET), C(523, ERR_TASK_NUM), C(524, ERR_NULL_LIST),
  C(525, ERR_GRP_MEMBER), C(526, ERR_NULL_GRP), C(527, ERR_GRP),
  C(402, ERR_BOTH_NETSTR_SET), C(403, ERR_CKPT_LOAD_FAILED), C(410, ERR_PSS_NON_ROOT),
  C(412, ERR_SHM_KE_NOT_LOADED), C(414, ERR_REG_TIMER), C(415, ERR_UDP_PKT_SZ),
  C(450, ERR_CKPT), C(466, ERR_DGSP_ATOM), C(467, ERR_DGSP_BRANCH), C(468, ERR_DGSP_CTL),
  C(469, ERR_DGSP_COPY_SZ), C(470, ERR_DGSP_FREE), C(471, ERR_DGSP_OPC),
  C(472, ERR_DGSP_REPS), C(473, ERR_DGSP_STACK), C(478, ERR_CATALOG_FAIL),
  C(480, ERR_DGSP_OTHER), C(481, ERR_UDP_SOCKET), C(482, ERR_COLLECTIVE_PSS),
  C(483, ERR_DMA_HNDL), C(484, ERR_DMA_TAG), C(485, ATT_FR_SETUP_INTERNAL),
  C(486, ATT_FR_SETUP_NONAM), C(487, ATT_FR_SETUP_NOHAGS), C(488, ATT_FR_SETUP_BADPOE),
  C(489, ATT_FR_SETUP_NOPOE), C(490, ATT_FR_SETUP_NONSNX), C(491, ATT_FR_HALTED),
  C(492, ERR_TGT_CONTEXT), C(493, ERR_SRC_CONTEXT), C(494, ERR_TGT_BUFHNDL),
  C(495, ERR_SRC_BUFHNDL), C(496, ERR_TGT_OFFSET), C(497, ERR_SRC_OFFSET),
  C(498, ERR_NO_RDMA_RESOURCE), C(499, ATT_BULK_ENABLED), C(500, ATT_COMM_TIMEOUT),
  C(501, ATT_VERSION), C(502, ATT_SHMINIT_FAIL), C(503, ATT_SHMINIT_CKPT_FAIL),
  C(504, ATT_SHM_SINGLE_TASK), C(505, ATT_SHM_CREATE_FAIL), C(506, ATT_SHM_GET_FAIL),
  C(507, ATT_SHM_ATT_FAIL), C(508, ATT_SHM_NO_SEGATT), C(509, ATT_PORT_START),
  C(510, ERR_NO_ENV_VAR), C(511, ERR_NO_CALLBACK_REG), C(512, ERR_NO_CNTR_REG),
  C(517, ERR_OFFSET_LEN), C(518, ERR_RCXT_CANCEL), C(520, ATT_PREEMPT_SETUP_INTERNAL),
  C(521, ERR_DUP_TRIGGER), C(522, ERR_TRIGGER_UNKNOWN), C(528, ERR_STAT_SAVE_FAIL),
#undef C
};

static void texts(void)
{
  char text[LAPI_MAX_ERR_STRING + 8];

  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
    CHECK_EQ(codes[i].code, codes[i].value);
    memset(text, '#', sizeof text);
    LAPI_OK(LAPI_Msg_string(codes[i].value, text));
    CHECK(strncmp(text, codes[i].name, strlen(codes[i].name)) == 0, "text of %s: %s",
          codes[i].name, text);
    CHECK(strlen(text) > strlen(codes[i].name) + 10, "text of %s says nothing", codes[i].name);
    CHECK_BYTES(text + LAPI_MAX_ERR_STRING, "########", 8, "behind the text");
  }
  for (int code = -3; code < 1000; code++) {
    const int rc = LAPI_Msg_string(code, text);
    CHECK(rc == LAPI_SUCCESS || rc == LAPI_ERR_CODE_UNKNOWN, "code %d: %d", code, rc);
  }
  LAPI_CODE(LAPI_Msg_string(1, text), LAPI_ERR_CODE_UNKNOWN);
  CHECK(strchr(text, '1') != NULL, "the text does not name the code: %s", text);
  LAPI_CODE(LAPI_Msg_string(0, NULL), LAPI_ERR_RET_PTR_NULL);
}

int main(int argc, char **argv)
{
  ulong number = 0;
  lapi_info_t info;

  check_start_mpi("lapi_abi", &argc, &argv);
  layouts();
  values();
  texts();
  LAPI_OK(PLAPI_Address(&number, &number));       /* legal before LAPI_Init */
  CHECK(number == (ulong)&number, "PLAPI_Address");

  memset(&info, 0, sizeof info);
  LAPI_OK(LAPI_Init(&hndl, &info));
  LAPI_OK(LAPI_Term(hndl));
  texts();                                        /* also after LAPI_Term */
  return check_end_mpi();
}
