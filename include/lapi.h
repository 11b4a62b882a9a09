/*
 * lapi.h - the LAPI active message interface, for C and C++. Link with -llapi_r.
 *
 * Layouts are those of 64-bit programs. Each LAPI_X has a profiling twin PLAPI_X.
 * Every call returns LAPI_SUCCESS or one of the codes below and has changed nothing
 * then; LAPI_Msg_string gives the text. All arguments are checked, whatever ERROR_CHK
 * says. docs/errors-lapi.md lists what each call refuses, docs/lapi.md says what is
 * particular to this library.
 *
 * Where contiguous bytes and their copy overlap, which they can at one's own task, it is as by
 * memmove.
 */
#ifndef LAPI_H
#define LAPI_H

#include <stddef.h>
#include <sys/types.h>

#if !defined(__LP64__)
#error "lapi.h describes the layouts of 64-bit programs"
#endif

/* Strict C leaves these two out of sys/types.h; C11 and C++ admit them twice. */
#if !defined(__USE_MISC)
typedef unsigned int uint;
typedef unsigned long ulong;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ values */

/* Return codes. */
enum {
  LAPI_SUCCESS                      = 0,
  LAPI_ERR_UNKNOWN                  = 400,
  LAPI_ERR_ALL_HNDL_IN_USE          = 401,
  LAPI_ERR_INFO_NULL                = 405,
  LAPI_ERR_HDR_HNDLR_NULL           = 409,
  LAPI_ERR_HNDL_INVALID             = 417,
  LAPI_ERR_RET_PTR_NULL             = 418,
  LAPI_ERR_ADDR_HNDL_RANGE          = 419,
  LAPI_ERR_ADDR_TBL_NULL            = 420,
  LAPI_ERR_TGT_PURGED               = 421,
  LAPI_ERR_MULTIPLE_WAITERS         = 422,
  LAPI_ERR_MEMORY_EXHAUSTED         = 423,
  LAPI_ERR_INFO_NONZERO             = 424,
  LAPI_ERR_ORG_ADDR_NULL            = 425,
  LAPI_ERR_TGT_ADDR_NULL            = 426,
  LAPI_ERR_DATA_LEN                 = 427,
  LAPI_ERR_TGT                      = 428,
  LAPI_ERR_UHDR_NULL                = 429,
  LAPI_ERR_UHDR_LEN                 = 430,
  LAPI_ERR_HDR_LEN                  = 431,
  LAPI_ERR_ORG_EXTENT               = 432,
  LAPI_ERR_ORG_STRIDE               = 433,
  LAPI_ERR_ORG_VEC_ADDR             = 440,
  LAPI_ERR_ORG_VEC_LEN              = 441,
  LAPI_ERR_ORG_VEC_NULL             = 442,
  LAPI_ERR_ORG_VEC_TYPE             = 443,
  LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL = 444,
  LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL = 445,
  LAPI_ERR_TGT_EXTENT               = 446,
  LAPI_ERR_TGT_STRIDE               = 447,
  LAPI_ERR_TGT_VEC_ADDR             = 448,
  LAPI_ERR_TGT_VEC_LEN              = 449,
  LAPI_ERR_TGT_VEC_NULL             = 451,
  LAPI_ERR_TGT_VEC_TYPE             = 452,
  LAPI_ERR_VEC_NUM_DIFF             = 453,
  LAPI_ERR_VEC_TYPE_DIFF            = 454,
  LAPI_ERR_VEC_LEN_DIFF             = 455,
  LAPI_ERR_MSG_INFO_NULL            = 456,
  LAPI_ERR_CNTR_NULL                = 458,
  LAPI_ERR_CNTR_VAL                 = 459,
  LAPI_ERR_QUERY_TYPE               = 460,
  LAPI_ERR_IN_VAL_NULL              = 461,
  LAPI_ERR_RMW_OP                   = 462,
  LAPI_ERR_TGT_VAR_NULL             = 463,
  LAPI_ERR_SET_VAL                  = 464,
  LAPI_ERR_OP_SZ                    = 474,
  LAPI_ERR_XFER_CMD                 = 476,
  LAPI_ERR_CODE_UNKNOWN             = 519
};

#define LAPI_ADDR_NULL      ((void *)0)
#define LAPI_MAX_ERR_STRING (160)
#define LAPI_MAX_MSG_SZ     0x7fffffffffffffffL

/* What LAPI_Qenv answers. ERROR_CHK, TIMEOUT, INTERRUPT_SET and ACK_THRESHOLD can be
 * set by LAPI_Senv. QUERY_SHM_TASKS fills QUERY_SHM_NUM_TASKS ints, QUERY_STATISTICS a
 * lapi_statistics_t. */
typedef enum {
  TASK_ID = 0,
  NUM_TASKS = 1,
  MAX_UHDR_SZ = 2,
  MAX_DATA_SZ = 3,
  ERROR_CHK = 4,
  TIMEOUT = 5,
  MIN_TIMEOUT = 6,
  MAX_TIMEOUT = 7,
  INTERRUPT_SET = 8,
  MAX_PORTS = 9,
  MAX_PKT_SZ = 10,
  NUM_REX_BUFS = 11,
  REX_BUF_SZ = 12,
  LOC_ADDRTBL_SZ = 13,
  EPOCH_NUM = 14,
  USE_THRESH = 15,
  RCV_FIFO_SIZE = 16,
  MAX_ATOM_SIZE = 17,
  BUF_CP_SIZE = 18,
  MAX_PKTS_OUT = 19,
  ACK_THRESHOLD = 20,
  QUERY_SHM_ENABLED = 21,
  QUERY_SHM_NUM_TASKS = 22,
  QUERY_SHM_TASKS = 23,
  QUERY_STATISTICS = 24,
  PRINT_STATISTICS = 25,
  LAST_QUERY = 26
} lapi_query_t;

/* COMPARE_AND_SWAP takes two operands and answers whether it swapped. */
typedef enum { FETCH_AND_ADD = 0, FETCH_AND_OR = 1, SWAP = 2, COMPARE_AND_SWAP = 3 } RMW_ops_t;

typedef enum {
  LAPI_GET_XFER = 0,
  LAPI_AM_XFER = 1,
  LAPI_PUT_XFER = 2,
  LAPI_GETV_XFER = 3,
  LAPI_PUTV_XFER = 4,
  LAPI_AMV_XFER = 5,
  LAPI_RMW_XFER = 6
} lapi_xfer_type_t;

typedef enum {
  LAPI_GEN_IOVECTOR = 0,        /* info: addresses; len: their bytes */
  LAPI_GEN_STRIDED_XFER = 1,    /* info: base, block, stride */
  LAPI_GEN_GENERIC = 2          /* as the first, but cut as each side likes */
} lapi_vectype_t;

/* What a header handler may set in ret_flags: bits. */
typedef int lapi_ret_flags_t;
#define LAPI_NORMAL      0      /* the completion handler runs on its own thread */
#define LAPI_LOCAL_STATE 1      /* it runs at once; no reply: cmpl_cntr never counts */
#define LAPI_SEND_REPLY  2      /* it runs at once */

/* What a header handler may set in ctl_flags. */
typedef enum {
  LAPI_DELIVER_MSG = 0,         /* put the data where the handler says */
  LAPI_BURY_MSG = 1,            /* discard the data */
  LAPI_DROP_PKT = 2             /* keep the message, call the handler again later */
} lapi_ctl_flags_t;

/* What LAPI_Msgpoll reports: bits. */
typedef uint lapi_msg_state_t;
#define LAPI_SEND_COMPLETE 1
#define LAPI_RECV_COMPLETE 2
#define LAPI_BOTH_COMPLETE 3
#define LAPI_POLLING_NET   4
#define LAPI_DISP_CNTR     8

/* What an error handler is told of. */
typedef enum { GET_ERR = 0, PUT_ERR, RMW_ERR, AM_ERR, INT_ERR, TMR_ERR } lapi_err_t;
/* For lib_vers; all mean the same here. */
typedef enum { L1_LIB = 0, L2_LIB, L3_LIB, L4_LIB, LAST_LIB } lapi_lib_t;
typedef enum { NULL_DEV = 0 } lapi_dev_t;

/* ------------------------------------------------------------------- types */

typedef uint lapi_handle_t;
typedef unsigned long long lapi_long_t; /* an address or a length of any task */

/* A counter; set it by LAPI_Setcntr, or to zeros. */
typedef union {
  int cntr;
  long long space[2];
} lapi_cntr_t;

/* Handle, code, what failed, this task, the other task. The job ends afterwards. */
typedef void (LAPI_err_hndlr)(lapi_handle_t *hndl, int *error_code, lapi_err_t *err_type,
                              int *task_id, int *src);

/* Protocols, may be combined: polling mode from the start (INTERRUPT_SET 0); two hints. */
#define LAPI_INTERRUPT_OFF  0x20000000
#define LAPI_PSS_GPFS       0x40000000
#define LAPI_SHARE_PROTOCOL 0x80000000

/* For LAPI_Init: set all to zero, then err_hndlr and protocol if wanted. */
typedef struct {
  lapi_dev_t protocol;          /* 0 or LAPI_INTERRUPT_OFF and the like */
  lapi_lib_t lib_vers;          /* any lapi_lib_t */
  uint epoch_num;
  int num_compl_hndlr_thr;      /* 0 or 1 */
  uint instance_no;             /* 0 or 1 */
  int info6;
  LAPI_err_hndlr *err_hndlr;
  void *lapi_thread_attr;
  void *adapter_name;
  void *add_info;
} lapi_info_t;

typedef void *lapi_dg_handle_t;

/* What the msg_len of a header handler points to. */
typedef struct {
  ulong msg_len;                /* bytes of data */
  int MAGIC;                    /* leave as it is */
  lapi_ret_flags_t ret_flags;
  lapi_ctl_flags_t ctl_flags;
  lapi_dg_handle_t dgsp_handle; /* leave as it is */
  ulong bytes;
  int src;                      /* the task that sent the message */
  void *udata_one_pkt_ptr;      /* the data, if it came whole; gone when the handler returns */
  ulong recv_offset_dgsp_bytes;
} lapi_return_info_t;

typedef struct {
  lapi_vectype_t vec_type;
  uint num_vecs;
  void **info;
  ulong *len;
} lapi_vec_t;

typedef struct {
  uint src;                     /* the target of what was sent */
  uint reason;                  /* a return code */
  ulong reserve[6];
} lapi_sh_info_t;

typedef struct {
  lapi_msg_state_t status;
  ulong reserve[10];
} lapi_msg_info_t;

typedef struct {
  lapi_long_t Tot_dup_pkt_cnt;
  lapi_long_t Tot_retrans_pkt_cnt;
  lapi_long_t Tot_gho_pkt_cnt;
  lapi_long_t Tot_pkt_sent_cnt;
  lapi_long_t Tot_pkt_recv_cnt;
  lapi_long_t Tot_data_sent;
  lapi_long_t Tot_data_recv;
  lapi_long_t Tot_ack_send_cnt;
  lapi_long_t Tot_ack_recv_cnt;
} lapi_statistics_t;

/* A completion handler, at the target of a message or the origin of a get. */
typedef void (compl_hndlr_t)(lapi_handle_t *hndl, void *completion_param);
/* A send completion handler, at the origin. */
typedef void (scompl_hndlr_t)(lapi_handle_t *hndl, void *completion_param,
                              lapi_sh_info_t *info);
/* A header handler. It must not block. */
typedef void *(hdr_hndlr_t)(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len,
                            compl_hndlr_t **comp_h, void **user_info);
/* A header handler of LAPI_Amsendv: gets the lengths, returns where the blocks go. */
typedef lapi_vec_t *(vhdr_hndlr_t)(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len,
                                   ulong *len_vec, compl_hndlr_t **comp_h, void **user_info);

/* The transfers of LAPI_Xfer. Addresses of the target are 64-bit numbers. */
typedef struct {
  lapi_xfer_type_t Xfer_type;   /* LAPI_GET_XFER */
  int flags;
  uint tgt;
  uint pad;
  lapi_long_t tgt_addr;
  void *org_addr;
  ulong len;
  lapi_long_t tgt_cntr;
  lapi_cntr_t *org_cntr;
  compl_hndlr_t *chndlr;        /* runs when the data is here */
  void *cinfo;
} lapi_get_t;

typedef struct {
  lapi_xfer_type_t Xfer_type;   /* LAPI_AM_XFER */
  int flags;
  uint tgt;
  uint pad;
  lapi_long_t hdr_hdl;
  uint uhdr_len;
  void *uhdr;
  void *udata;
  ulong udata_len;
  scompl_hndlr_t *shdlr;        /* runs when header and data may be changed */
  void *sinfo;
  lapi_long_t tgt_cntr;
  lapi_cntr_t *org_cntr;
  lapi_cntr_t *cmpl_cntr;
} lapi_am_t;

typedef struct {
  lapi_xfer_type_t Xfer_type;   /* LAPI_PUT_XFER */
  int flags;
  uint tgt;
  uint pad;
  lapi_long_t tgt_addr;
  void *org_addr;
  ulong len;
  scompl_hndlr_t *shdlr;
  void *sinfo;
  lapi_long_t tgt_cntr;
  lapi_cntr_t *org_cntr;
  lapi_cntr_t *cmpl_cntr;
} lapi_put_t;

typedef struct {
  lapi_xfer_type_t Xfer_type;   /* LAPI_GETV_XFER */
  int flags;
  uint tgt;
  uint pad;
  lapi_vec_t *org_vec;
  void *tgt_vec;                /* a lapi_vec_t of this task, with addresses of the target */
  lapi_long_t tgt_cntr;
  lapi_cntr_t *org_cntr;
  compl_hndlr_t *chndlr;
  void *cinfo;
} lapi_getv_t;

typedef struct {
  lapi_xfer_type_t Xfer_type;   /* LAPI_PUTV_XFER */
  int flags;
  uint tgt;
  uint pad;
  scompl_hndlr_t *shdlr;
  void *sinfo;
  lapi_vec_t *org_vec;
  void *tgt_vec;                /* a lapi_vec_t of this task, with addresses of the target */
  lapi_long_t tgt_cntr;
  lapi_cntr_t *org_cntr;
  lapi_cntr_t *cmpl_cntr;
} lapi_putv_t;

typedef struct {
  lapi_xfer_type_t Xfer_type;   /* LAPI_AMV_XFER */
  int flags;
  uint tgt;
  uint pad;
  lapi_long_t hdr_hdl;
  uint uhdr_len;
  void *uhdr;
  scompl_hndlr_t *shdlr;
  void *sinfo;
  lapi_vec_t *org_vec;
  lapi_long_t tgt_cntr;
  lapi_cntr_t *org_cntr;
  lapi_cntr_t *cmpl_cntr;
} lapi_amv_t;

typedef struct {
  lapi_xfer_type_t Xfer_type;   /* LAPI_RMW_XFER */
  RMW_ops_t op;
  uint tgt;
  uint size;                    /* 32 or 64 */
  lapi_long_t tgt_var;
  void *in_val;
  void *prev_tgt_val;
  lapi_cntr_t *org_cntr;
  scompl_hndlr_t *shdlr;
  void *sinfo;
} lapi_rmw_t;

typedef union {
  lapi_xfer_type_t Xfer_type;
  lapi_get_t Get;
  lapi_am_t Am;
  lapi_rmw_t Rmw;
  lapi_put_t Put;
  lapi_getv_t Getv;
  lapi_putv_t Putv;
  lapi_amv_t Amv;
} lapi_xfer_t;

/* ------------------------------------------------------------------- calls */

/* Start, end, settings. LAPI_Init and LAPI_Term are collective. */
int LAPI_Init(lapi_handle_t *hndl, lapi_info_t *lapi_info);
int LAPI_Term(lapi_handle_t hndl);
int LAPI_Qenv(lapi_handle_t hndl, lapi_query_t query, int *ret_val);
int LAPI_Senv(lapi_handle_t hndl, lapi_query_t query, int set_val);
int LAPI_Msg_string(int error_code, void *buf);

/* Addresses. LAPI_Address_init is collective. */
int LAPI_Address(void *my_addr, ulong *ret_addr);
int LAPI_Address_init(lapi_handle_t hndl, void *my_addr, void *add_tab[]);
int LAPI_Addr_set(lapi_handle_t hndl, void *addr, int addr_hndl);
int LAPI_Addr_get(lapi_handle_t hndl, void **addr, int addr_hndl);

/* Active messages. */
int LAPI_Amsend(lapi_handle_t hndl, uint tgt, void *hdr_hdl, void *uhdr, uint uhdr_len,
    void *udata, ulong udata_len, lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr,
    lapi_cntr_t *cmpl_cntr);
int LAPI_Amsendv(lapi_handle_t hndl, uint tgt, void *hdr_hdl, void *uhdr, uint uhdr_len,
    lapi_vec_t *org_vec, lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr, lapi_cntr_t
    *cmpl_cntr);
int LAPI_Xfer(lapi_handle_t hndl, lapi_xfer_t *xfer_cmd);

/* Put, get, read-modify-write. */
int LAPI_Put(lapi_handle_t hndl, uint tgt, ulong len, void *tgt_addr, void *org_addr,
    lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr, lapi_cntr_t *cmpl_cntr);
int LAPI_Get(lapi_handle_t hndl, uint tgt, ulong len, void *tgt_addr, void *org_addr,
    lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr);
int LAPI_Putv(lapi_handle_t hndl, uint tgt, lapi_vec_t *tgt_vec, lapi_vec_t *org_vec,
    lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr, lapi_cntr_t *cmpl_cntr);
int LAPI_Getv(lapi_handle_t hndl, uint tgt, lapi_vec_t *tgt_vec, lapi_vec_t *org_vec,
    lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr);
int LAPI_Rmw(lapi_handle_t hndl, RMW_ops_t op, uint tgt, int *tgt_var, int *in_val, int
    *prev_tgt_val, lapi_cntr_t *org_cntr);
int LAPI_Rmw64(lapi_handle_t hndl, RMW_ops_t op, uint tgt, long long *tgt_var, long long
    *in_val, long long *prev_tgt_val, lapi_cntr_t *org_cntr);

/* Counters, progress, order. LAPI_Gfence is collective. */
int LAPI_Setcntr(lapi_handle_t hndl, lapi_cntr_t *cntr, int val);
int LAPI_Getcntr(lapi_handle_t hndl, lapi_cntr_t *cntr, int *val);
int LAPI_Waitcntr(lapi_handle_t hndl, lapi_cntr_t *cntr, int val, int *cur_cntr_val);
int LAPI_Nopoll_wait(lapi_handle_t hndl, lapi_cntr_t *cntr_ptr, int val, int
    *cur_cntr_val);
int LAPI_Probe(lapi_handle_t hndl);
int LAPI_Msgpoll(lapi_handle_t hndl, uint cnt, lapi_msg_info_t *info);
int LAPI_Fence(lapi_handle_t hndl);
int LAPI_Gfence(lapi_handle_t hndl);
int LAPI_Purge_totask(lapi_handle_t hndl, uint dest);
int LAPI_Resume_totask(lapi_handle_t hndl, uint dest);

/* ---------------------------------------------------------- profiling twins */

int PLAPI_Init(lapi_handle_t *hndl, lapi_info_t *lapi_info);
int PLAPI_Term(lapi_handle_t hndl);
int PLAPI_Qenv(lapi_handle_t hndl, lapi_query_t query, int *ret_val);
int PLAPI_Senv(lapi_handle_t hndl, lapi_query_t query, int set_val);
int PLAPI_Msg_string(int error_code, void *buf);
int PLAPI_Address(void *my_addr, ulong *ret_addr);
int PLAPI_Address_init(lapi_handle_t hndl, void *my_addr, void *add_tab[]);
int PLAPI_Addr_set(lapi_handle_t hndl, void *addr, int addr_hndl);
int PLAPI_Addr_get(lapi_handle_t hndl, void **addr, int addr_hndl);
int PLAPI_Amsend(lapi_handle_t hndl, uint tgt, void *hdr_hdl, void *uhdr, uint uhdr_len,
    void *udata, ulong udata_len, lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr,
    lapi_cntr_t *cmpl_cntr);
int PLAPI_Amsendv(lapi_handle_t hndl, uint tgt, void *hdr_hdl, void *uhdr, uint uhdr_len,
    lapi_vec_t *org_vec, lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr, lapi_cntr_t
    *cmpl_cntr);
int PLAPI_Xfer(lapi_handle_t hndl, lapi_xfer_t *xfer_cmd);
int PLAPI_Put(lapi_handle_t hndl, uint tgt, ulong len, void *tgt_addr, void *org_addr,
    lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr, lapi_cntr_t *cmpl_cntr);
int PLAPI_Get(lapi_handle_t hndl, uint tgt, ulong len, void *tgt_addr, void *org_addr,
    lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr);
int PLAPI_Putv(lapi_handle_t hndl, uint tgt, lapi_vec_t *tgt_vec, lapi_vec_t *org_vec,
    lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr, lapi_cntr_t *cmpl_cntr);
int PLAPI_Getv(lapi_handle_t hndl, uint tgt, lapi_vec_t *tgt_vec, lapi_vec_t *org_vec,
    lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr);
int PLAPI_Rmw(lapi_handle_t hndl, RMW_ops_t op, uint tgt, int *tgt_var, int *in_val, int
    *prev_tgt_val, lapi_cntr_t *org_cntr);
int PLAPI_Rmw64(lapi_handle_t hndl, RMW_ops_t op, uint tgt, long long *tgt_var, long long
    *in_val, long long *prev_tgt_val, lapi_cntr_t *org_cntr);
int PLAPI_Setcntr(lapi_handle_t hndl, lapi_cntr_t *cntr, int val);
int PLAPI_Getcntr(lapi_handle_t hndl, lapi_cntr_t *cntr, int *val);
int PLAPI_Waitcntr(lapi_handle_t hndl, lapi_cntr_t *cntr, int val, int *cur_cntr_val);
int PLAPI_Nopoll_wait(lapi_handle_t hndl, lapi_cntr_t *cntr_ptr, int val, int
    *cur_cntr_val);
int PLAPI_Probe(lapi_handle_t hndl);
int PLAPI_Msgpoll(lapi_handle_t hndl, uint cnt, lapi_msg_info_t *info);
int PLAPI_Fence(lapi_handle_t hndl);
int PLAPI_Gfence(lapi_handle_t hndl);
int PLAPI_Purge_totask(lapi_handle_t hndl, uint dest);
int PLAPI_Resume_totask(lapi_handle_t hndl, uint dest);

#ifdef __cplusplus
}
#endif

#endif /* LAPI_H */
