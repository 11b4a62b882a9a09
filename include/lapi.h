/*
 * lapi.h - the LAPI active message interface, for C and C++. Link with -llapi_r.
 *
 * The layouts are those of 64-bit programs. Each LAPI_X has a profiling equivalent PLAPI_X. Every
 * call returns LAPI_SUCCESS or one of the error codes below. LAPI_Msg_string returns the text of a
 * code. The calls check all arguments, whatever the value of ERROR_CHK. A call that refuses an
 * argument has changed nothing. docs/errors-lapi.md lists the errors of each call. docs/lapi.md
 * describes the properties of this implementation.
 *
 * If source and destination of a contiguous put or get overlap, which is possible in the caller's
 * own task, the result is that of memmove.
 */
#ifndef LAPI_H
#define LAPI_H

#include <pthread.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#if !defined(__LP64__)
#error "lapi.h describes the layouts of 64-bit programs"
#endif

/* Strict C omits these two types from sys/types.h. C11 and C++ allow the repeated definition. */
#if !defined(__USE_MISC)
typedef unsigned int uint;
typedef unsigned long ulong;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ values */

/* Return codes: enumerators for debuggers, and macros for #ifdef. */
enum {
  LAPI_SUCCESS                      = 0,
  LAPI_ERR_UNKNOWN                  = 400,
  LAPI_ERR_ALL_HNDL_IN_USE          = 401,
  LAPI_ERR_BOTH_NETSTR_SET          = 402,
  LAPI_ERR_CKPT_LOAD_FAILED         = 403,
  LAPI_ERR_CSS_LOAD_FAILED          = 404,
  LAPI_ERR_INFO_NULL                = 405,
  LAPI_ERR_MSG_API                  = 406,
  LAPI_ERR_NO_NETSTR_SET            = 407,
  LAPI_ERR_NO_UDP_HNDLR             = 408,
  LAPI_ERR_HDR_HNDLR_NULL           = 409,
  LAPI_ERR_PSS_NON_ROOT             = 410,
  LAPI_WARN_PARM_NULL               = 411,
  LAPI_ERR_SHM_KE_NOT_LOADED        = 412,
  LAPI_ERR_TIMEOUT                  = 413,
  LAPI_ERR_REG_TIMER                = 414,
  LAPI_ERR_UDP_PKT_SZ               = 415,
  LAPI_ERR_USER_UDP_HNDLR_FAIL      = 416,
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
  LAPI_ERR_NO_CONNECTIVITY          = 434,
  LAPI_ERR_ADAPTERS_DOWN            = 435,
  LAPI_ERR_RECV_INCOMP              = 436,
  LAPI_ERR_SEND_INCOMP              = 437,
  LAPI_ERR_SEND_TIMEOUT             = 438,
  LAPI_ERR_SHM_SETUP                = 439,
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
  LAPI_ERR_CKPT                     = 450,
  LAPI_ERR_TGT_VEC_NULL             = 451,
  LAPI_ERR_TGT_VEC_TYPE             = 452,
  LAPI_ERR_VEC_NUM_DIFF             = 453,
  LAPI_ERR_VEC_TYPE_DIFF            = 454,
  LAPI_ERR_VEC_LEN_DIFF             = 455,
  LAPI_ERR_MSG_INFO_NULL            = 456,
  LAPI_ERR_POLLING_NET              = 457,
  LAPI_ERR_CNTR_NULL                = 458,
  LAPI_ERR_CNTR_VAL                 = 459,
  LAPI_ERR_QUERY_TYPE               = 460,
  LAPI_ERR_IN_VAL_NULL              = 461,
  LAPI_ERR_RMW_OP                   = 462,
  LAPI_ERR_TGT_VAR_NULL             = 463,
  LAPI_ERR_SET_VAL                  = 464,
  LAPI_ERR_DGSP                     = 465,
  LAPI_ERR_DGSP_ATOM                = 466,
  LAPI_ERR_DGSP_BRANCH              = 467,
  LAPI_ERR_DGSP_CTL                 = 468,
  LAPI_ERR_DGSP_COPY_SZ             = 469,
  LAPI_ERR_DGSP_FREE                = 470,
  LAPI_ERR_DGSP_OPC                 = 471,
  LAPI_ERR_DGSP_REPS                = 472,
  LAPI_ERR_DGSP_STACK               = 473,
  LAPI_ERR_OP_SZ                    = 474,
  LAPI_ERR_UDP_PORT_INFO            = 475,
  LAPI_ERR_XFER_CMD                 = 476,
  LAPI_ERR_UTIL_CMD                 = 477,
  LAPI_ERR_CATALOG_FAIL             = 478,
  LAPI_ERR_PACK_SZ                  = 479,
  LAPI_ERR_DGSP_OTHER               = 480,
  LAPI_ERR_UDP_SOCKET               = 481,
  LAPI_ERR_COLLECTIVE_PSS           = 482,
  LAPI_ERR_DMA_HNDL                 = 483,
  LAPI_ERR_DMA_TAG                  = 484,
  LAPI_ATT_FR_SETUP_INTERNAL        = 485,
  LAPI_ATT_FR_SETUP_NONAM           = 486,
  LAPI_ATT_FR_SETUP_NOHAGS          = 487,
  LAPI_ATT_FR_SETUP_BADPOE          = 488,
  LAPI_ATT_FR_SETUP_NOPOE           = 489,
  LAPI_ATT_FR_SETUP_NONSNX          = 490,
  LAPI_ATT_FR_HALTED                = 491,
  LAPI_ERR_TGT_CONTEXT              = 492,
  LAPI_ERR_SRC_CONTEXT              = 493,
  LAPI_ERR_TGT_BUFHNDL              = 494,
  LAPI_ERR_SRC_BUFHNDL              = 495,
  LAPI_ERR_TGT_OFFSET               = 496,
  LAPI_ERR_SRC_OFFSET               = 497,
  LAPI_ERR_NO_RDMA_RESOURCE         = 498,
  LAPI_ATT_BULK_ENABLED             = 499,
  LAPI_ATT_COMM_TIMEOUT             = 500,
  LAPI_ATT_VERSION                  = 501,
  LAPI_ATT_SHMINIT_FAIL             = 502,
  LAPI_ATT_SHMINIT_CKPT_FAIL        = 503,
  LAPI_ATT_SHM_SINGLE_TASK          = 504,
  LAPI_ATT_SHM_CREATE_FAIL          = 505,
  LAPI_ATT_SHM_GET_FAIL             = 506,
  LAPI_ATT_SHM_ATT_FAIL             = 507,
  LAPI_ATT_SHM_NO_SEGATT            = 508,
  LAPI_ATT_PORT_START               = 509,
  LAPI_ERR_NO_ENV_VAR               = 510,
  LAPI_ERR_NO_CALLBACK_REG          = 511,
  LAPI_ERR_NO_CNTR_REG              = 512,
  LAPI_ERR_XLATE_FAILED             = 513,
  LAPI_ERR_RDMA_RESOURCES           = 514,
  LAPI_ERR_LW_DATA_LEN              = 515,
  LAPI_ERR_NO_HNDLR_SET             = 516,
  LAPI_ERR_OFFSET_LEN               = 517,
  LAPI_ERR_RCXT_CANCEL              = 518,
  LAPI_ERR_CODE_UNKNOWN             = 519,
  LAPI_ATT_PREEMPT_SETUP_INTERNAL   = 520,
  LAPI_ERR_DUP_TRIGGER              = 521,
  LAPI_ERR_TRIGGER_UNKNOWN          = 522,
  LAPI_ERR_TASK_NUM                 = 523,
  LAPI_ERR_NULL_LIST                = 524,
  LAPI_ERR_GRP_MEMBER               = 525,
  LAPI_ERR_NULL_GRP                 = 526,
  LAPI_ERR_GRP                      = 527,
  LAPI_ERR_STAT_SAVE_FAIL           = 528
};

#define LAPI_SUCCESS                      (0)
#define LAPI_ERR_UNKNOWN                  (400)
#define LAPI_ERR_ALL_HNDL_IN_USE          (401)
#define LAPI_ERR_BOTH_NETSTR_SET          (402)
#define LAPI_ERR_CKPT_LOAD_FAILED         (403)
#define LAPI_ERR_CSS_LOAD_FAILED          (404)
#define LAPI_ERR_INFO_NULL                (405)
#define LAPI_ERR_MSG_API                  (406)
#define LAPI_ERR_NO_NETSTR_SET            (407)
#define LAPI_ERR_NO_UDP_HNDLR             (408)
#define LAPI_ERR_HDR_HNDLR_NULL           (409)
#define LAPI_ERR_PSS_NON_ROOT             (410)
#define LAPI_WARN_PARM_NULL               (411)
#define LAPI_ERR_SHM_KE_NOT_LOADED        (412)
#define LAPI_ERR_TIMEOUT                  (413)
#define LAPI_ERR_REG_TIMER                (414)
#define LAPI_ERR_UDP_PKT_SZ               (415)
#define LAPI_ERR_USER_UDP_HNDLR_FAIL      (416)
#define LAPI_ERR_HNDL_INVALID             (417)
#define LAPI_ERR_RET_PTR_NULL             (418)
#define LAPI_ERR_ADDR_HNDL_RANGE          (419)
#define LAPI_ERR_ADDR_TBL_NULL            (420)
#define LAPI_ERR_TGT_PURGED               (421)
#define LAPI_ERR_MULTIPLE_WAITERS         (422)
#define LAPI_ERR_MEMORY_EXHAUSTED         (423)
#define LAPI_ERR_INFO_NONZERO             (424)
#define LAPI_ERR_ORG_ADDR_NULL            (425)
#define LAPI_ERR_TGT_ADDR_NULL            (426)
#define LAPI_ERR_DATA_LEN                 (427)
#define LAPI_ERR_TGT                      (428)
#define LAPI_ERR_UHDR_NULL                (429)
#define LAPI_ERR_UHDR_LEN                 (430)
#define LAPI_ERR_HDR_LEN                  (431)
#define LAPI_ERR_ORG_EXTENT               (432)
#define LAPI_ERR_ORG_STRIDE               (433)
#define LAPI_ERR_NO_CONNECTIVITY          (434)
#define LAPI_ERR_ADAPTERS_DOWN            (435)
#define LAPI_ERR_RECV_INCOMP              (436)
#define LAPI_ERR_SEND_INCOMP              (437)
#define LAPI_ERR_SEND_TIMEOUT             (438)
#define LAPI_ERR_SHM_SETUP                (439)
#define LAPI_ERR_ORG_VEC_ADDR             (440)
#define LAPI_ERR_ORG_VEC_LEN              (441)
#define LAPI_ERR_ORG_VEC_NULL             (442)
#define LAPI_ERR_ORG_VEC_TYPE             (443)
#define LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL (444)
#define LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL (445)
#define LAPI_ERR_TGT_EXTENT               (446)
#define LAPI_ERR_TGT_STRIDE               (447)
#define LAPI_ERR_TGT_VEC_ADDR             (448)
#define LAPI_ERR_TGT_VEC_LEN              (449)
#define LAPI_ERR_CKPT                     (450)
#define LAPI_ERR_TGT_VEC_NULL             (451)
#define LAPI_ERR_TGT_VEC_TYPE             (452)
#define LAPI_ERR_VEC_NUM_DIFF             (453)
#define LAPI_ERR_VEC_TYPE_DIFF            (454)
#define LAPI_ERR_VEC_LEN_DIFF             (455)
#define LAPI_ERR_MSG_INFO_NULL            (456)
#define LAPI_ERR_POLLING_NET              (457)
#define LAPI_ERR_CNTR_NULL                (458)
#define LAPI_ERR_CNTR_VAL                 (459)
#define LAPI_ERR_QUERY_TYPE               (460)
#define LAPI_ERR_IN_VAL_NULL              (461)
#define LAPI_ERR_RMW_OP                   (462)
#define LAPI_ERR_TGT_VAR_NULL             (463)
#define LAPI_ERR_SET_VAL                  (464)
#define LAPI_ERR_DGSP                     (465)
#define LAPI_ERR_DGSP_ATOM                (466)
#define LAPI_ERR_DGSP_BRANCH              (467)
#define LAPI_ERR_DGSP_CTL                 (468)
#define LAPI_ERR_DGSP_COPY_SZ             (469)
#define LAPI_ERR_DGSP_FREE                (470)
#define LAPI_ERR_DGSP_OPC                 (471)
#define LAPI_ERR_DGSP_REPS                (472)
#define LAPI_ERR_DGSP_STACK               (473)
#define LAPI_ERR_OP_SZ                    (474)
#define LAPI_ERR_UDP_PORT_INFO            (475)
#define LAPI_ERR_XFER_CMD                 (476)
#define LAPI_ERR_UTIL_CMD                 (477)
#define LAPI_ERR_CATALOG_FAIL             (478)
#define LAPI_ERR_PACK_SZ                  (479)
#define LAPI_ERR_DGSP_OTHER               (480)
#define LAPI_ERR_UDP_SOCKET               (481)
#define LAPI_ERR_COLLECTIVE_PSS           (482)
#define LAPI_ERR_DMA_HNDL                 (483)
#define LAPI_ERR_DMA_TAG                  (484)
#define LAPI_ATT_FR_SETUP_INTERNAL        (485)
#define LAPI_ATT_FR_SETUP_NONAM           (486)
#define LAPI_ATT_FR_SETUP_NOHAGS          (487)
#define LAPI_ATT_FR_SETUP_BADPOE          (488)
#define LAPI_ATT_FR_SETUP_NOPOE           (489)
#define LAPI_ATT_FR_SETUP_NONSNX          (490)
#define LAPI_ATT_FR_HALTED                (491)
#define LAPI_ERR_TGT_CONTEXT              (492)
#define LAPI_ERR_SRC_CONTEXT              (493)
#define LAPI_ERR_TGT_BUFHNDL              (494)
#define LAPI_ERR_SRC_BUFHNDL              (495)
#define LAPI_ERR_TGT_OFFSET               (496)
#define LAPI_ERR_SRC_OFFSET               (497)
#define LAPI_ERR_NO_RDMA_RESOURCE         (498)
#define LAPI_ATT_BULK_ENABLED             (499)
#define LAPI_ATT_COMM_TIMEOUT             (500)
#define LAPI_ATT_VERSION                  (501)
#define LAPI_ATT_SHMINIT_FAIL             (502)
#define LAPI_ATT_SHMINIT_CKPT_FAIL        (503)
#define LAPI_ATT_SHM_SINGLE_TASK          (504)
#define LAPI_ATT_SHM_CREATE_FAIL          (505)
#define LAPI_ATT_SHM_GET_FAIL             (506)
#define LAPI_ATT_SHM_ATT_FAIL             (507)
#define LAPI_ATT_SHM_NO_SEGATT            (508)
#define LAPI_ATT_PORT_START               (509)
#define LAPI_ERR_NO_ENV_VAR               (510)
#define LAPI_ERR_NO_CALLBACK_REG          (511)
#define LAPI_ERR_NO_CNTR_REG              (512)
#define LAPI_ERR_XLATE_FAILED             (513)
#define LAPI_ERR_RDMA_RESOURCES           (514)
#define LAPI_ERR_LW_DATA_LEN              (515)
#define LAPI_ERR_NO_HNDLR_SET             (516)
#define LAPI_ERR_OFFSET_LEN               (517)
#define LAPI_ERR_RCXT_CANCEL              (518)
#define LAPI_ERR_CODE_UNKNOWN             (519)
#define LAPI_ATT_PREEMPT_SETUP_INTERNAL   (520)
#define LAPI_ERR_DUP_TRIGGER              (521)
#define LAPI_ERR_TRIGGER_UNKNOWN          (522)
#define LAPI_ERR_TASK_NUM                 (523)
#define LAPI_ERR_NULL_LIST                (524)
#define LAPI_ERR_GRP_MEMBER               (525)
#define LAPI_ERR_NULL_GRP                 (526)
#define LAPI_ERR_GRP                      (527)
#define LAPI_ERR_STAT_SAVE_FAIL           (528)
#define LAPI_ERR_FIRSTCODE                (LAPI_ERR_UNKNOWN)
#define LAPI_ERR_LASTCODE                 (LAPI_ERR_STAT_SAVE_FAIL)

/*
 * Former names. Most of them had another meaning, so no call returns their values for it.
 * LAPI_ERR_BAD_NINTH_PARM is not defined, because programs use it to detect another version.
 */
#define LAPI_ERR_UNKNOWN_DEVICE          (401)
#define LAPI_ERR_UNKNOWN_FUNCTION        (402)
#define LAPI_ERR_NOMORE_PORTS            (403)
#define LAPI_ERR_INIT_FAILED             (404)
#define LAPI_ERR_OPEN_FAILED             (405)
#define LAPI_ERR_CLOSE_FAILED            (406)
#define LAPI_ERR_SWITCH_FAULT            (407)
#define LAPI_ERR_INTR_HNDLR              (408)
#define LAPI_ERR_NO_HD_HNDLR             (409)
#define LAPI_ERR_BAD_PARAMETER           (410)
#define LAPI_ERR_RETRANSMISSION          (412)
#define LAPI_ERR_QUEUE_FULL              (414)
#define LAPI_ERR_INIT_LOCK_FAILED        (415)
#define LAPI_ERR_GET_LOCK_FAILED         (416)
#define LAPI_ERR_REL_LOCK_FAILED         (417)
#define LAPI_ERR_TRY_LOCK_FAILED         (418)
#define LAPI_ERR_INVALID_OPTIONS         (419)
#define LAPI_WAIT_INTERRUPTED            (420)
#define LAPI_ERR_PURGED_TASK             (421)
#define LAPI_ERR_EXHAUSTED_MEMORY        (423)
#define LAPI_ERR_NONZERO_INFO            (424)
#define LAPI_ERR_BAD_FIRST_PARM          (425)
#define LAPI_ERR_BAD_SECOND_PARM         (426)
#define LAPI_ERR_BAD_THIRD_PARM          (427)
#define LAPI_ERR_BAD_FOURTH_PARM         (428)
#define LAPI_ERR_BAD_FIFTH_PARM          (429)
#define LAPI_ERR_BAD_SIXTH_PARM          (430)
#define LAPI_ERR_BAD_SEVENTH_PARM        (431)
#define LAPI_ERR_BAD_EIGHTH_PARM         (432)
#define LAPI_ERR_SHM_CLEANUP             (440)
#define LAPI_ERR_SHM_REGISTER            (441)
#define LAPI_ERR_SHM_RELEASE             (442)
#define LAPI_ERR_SHM_ATTDET              (443)
#define LAPI_ERR_SHM_ATTACH              (444)
#define LAPI_ERR_SHM_DETACH              (445)
#define LAPI_ERR_SHM_ENV_SET             (446)
#define LAPI_ERR_SHM_NOCOMM_TASK         (447)
#define LAPI_ERR_SHM_SETSHM              (448)
#define LAPI_ERR_SHM_LOAD                (449)
#define LAPI_ERR_CHECKPOINT              (450)
#define LAPI_ERR_INVALID_SEND_REPLY_TGT  (501)
#define CSS_KE_INTERNAL_ERROR            (500)
#define CSS_KE_UCODE_ERROR               (502)

#define LAPI_ADDR_NULL      ((void *)0)
#define LAPI_MAX_ERR_STRING (160)
#define LAPI_MAX_MSG_SZ     0x7fffffffffffffffL

/*
 * Queries of LAPI_Qenv. LAPI_Senv can set ERROR_CHK, TIMEOUT, INTERRUPT_SET and ACK_THRESHOLD.
 * QUERY_SHM_TASKS fills QUERY_SHM_NUM_TASKS ints. Three queries fill a lapi_statistics_t:
 * QUERY_STATISTICS, QUERY_SHM_STATISTICS (only traffic through shared memory) and
 * QUERY_LOCAL_SEND_STATISTICS (only traffic of a task to itself). There is no bulk transfer by
 * RDMA: its queries return 0, and INT_MAX for the minimum size.
 */
#ifdef PORTOLAN_X10_HAS_LAPI_QUERIES    /* x10/x10lib.h, included before, has the same names */
typedef x10_query_t lapi_query_t;
#else
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
  QUERY_SHM_STATISTICS = 26,
  QUERY_LOCAL_SEND_STATISTICS = 27,
  BULK_XFER = 28,
  BULK_MIN_MSG_SIZE = 29,
  RDMA_REMOTE_RCXT_AVAIL = 30,
  RDMA_REMOTE_RCXT_TOTAL = 31,
  RC_MAX_QP = 32,
  RC_QP_IN_USE = 33,
  RC_QP_USE_LRU = 34,
  RC_QP_USE_LMC = 35,
  RC_QP_INIT_SETUP = 36,
  LAST_QUERY = 37
} lapi_query_t;
#endif

/* COMPARE_AND_SWAP takes two operands. Its result is 1 if it swapped, else 0. */
typedef enum { FETCH_AND_ADD = 0, FETCH_AND_OR = 1, SWAP = 2, COMPARE_AND_SWAP = 3 } RMW_ops_t;

typedef enum {
  LAPI_GET_XFER = 0,
  LAPI_AM_XFER = 1,
  LAPI_PUT_XFER = 2,
  LAPI_GETV_XFER = 3,
  LAPI_PUTV_XFER = 4,
  LAPI_AMV_XFER = 5,
  LAPI_RMW_XFER = 6,
  LAPI_DGSP_XFER = 7,           /* rejected: data gather/scatter programs are not supported */
  LAPI_RDMA_XFER = 8,           /* rejected: RDMA is not supported */
  LAPI_AM_LW_XFER = 9,
  LAPI_AMX_XFER = 10,           /* rejected, like LAPI_DGSP_XFER */
  LAPI_MC_XFER = 11,
  LAPI_LAST_XFER = 12
} lapi_xfer_type_t;

/* Flags of transfers. They are hints and have no effect here. */
#define USE_TGT_VEC_TYPE       0x00000002
#define LAPI_USE_LAZY_ACKS     0x00000004
#define BUFFER_BOTH_CONTIGUOUS 0x00000010
#define LAPI_NOT_USE_BULK_XFER 0x00000020
#define LAPI_USE_BULK_XFER     0x00000040
#define LAPI_NOT_STRIPE        0x00000080
#define LAPI_NO_LOCAL_COPY     0x00000100
#define LAPI_RC_NO_LRU         0x00000200

typedef enum {
  LAPI_GEN_IOVECTOR = 0,        /* info: addresses; len: lengths in bytes */
  LAPI_GEN_STRIDED_XFER = 1,    /* info: base, block, stride */
  LAPI_GEN_GENERIC = 2          /* like the first; only the total lengths must be equal */
} lapi_vectype_t;

/* Bits that a header handler may set in ret_flags. */
typedef int lapi_ret_flags_t;
#define LAPI_NORMAL      0      /* the completion handler runs on the library's thread */
#define LAPI_LOCAL_STATE 1      /* it runs at once; without a reply, so cmpl_cntr never changes */
#define LAPI_SEND_REPLY  2      /* it runs at once */

/* Values that a header handler may set in ctl_flags. */
typedef enum {
  LAPI_DELIVER_MSG = 0,         /* put the data where the handler says */
  LAPI_BURY_MSG = 1,            /* discard the data */
  LAPI_DROP_PKT = 2             /* keep the message and call the handler again later */
} lapi_ctl_flags_t;

/*
 * The status that LAPI_Msgpoll reports: LAPI_SEND_COMPLETE, LAPI_RECV_COMPLETE or both, or
 * LAPI_DISP_CNTR if nothing has completed. The other values are not used.
 */
typedef uint lapi_msg_state_t;
#define LAPI_COMPLETE      0
#define LAPI_SEND_COMPLETE 1
#define LAPI_RECV_COMPLETE 2
#define LAPI_BOTH_COMPLETE 3
#define LAPI_POLLING_NET   4
#define LAPI_DISP_CNTR     8

/* The status of a destination (LAPI_Setcntr_wstatus). */
#define LAPI_MSG_INITIAL     0  /* not counted yet */
#define LAPI_MSG_RECVD       1  /* counted */
#define LAPI_MSG_PURGED      2  /* purged before it was counted */
#define LAPI_MSG_PURGED_RCVD 3  /* both, in either order */
#define LAPI_MSG_INVALID     4  /* purged before the call, or not a task */

/* The kinds of errors that an error handler receives. */
typedef enum { GET_ERR = 0, PUT_ERR, RMW_ERR, AM_ERR, INT_ERR, TMR_ERR } lapi_err_t;
/* Values of lib_vers. All have the same meaning here. */
typedef enum { L1_LIB = 0, L2_LIB, L3_LIB, L4_LIB, LAST_LIB } lapi_lib_t;
typedef enum { NULL_DEV = 0 } lapi_dev_t;

/* ------------------------------------------------------------------- types */

typedef uint lapi_handle_t;
typedef uint lapi_group_t;              /* valid in the task that created it */
typedef uint lapi_status_t;
#define LAPI_VOID_HANDLE    ((lapi_handle_t)-1)
#define LAPI_NULL_THREAD_ID ((pthread_t)-1)
typedef unsigned long long lapi_long_t; /* an address or a length in any task */

/* A counter. Initialise it with LAPI_Setcntr, or to zeros. */
typedef union {
  int cntr;
  long long space[2];
} lapi_cntr_t;

/*
 * An error handler, for errors that no call can return. Its arguments are the handle, the error
 * code, the kind of error, this task and the other task. The job ends after it returns.
 */
typedef void (LAPI_err_hndlr)(lapi_handle_t *hndl, int *error_code, lapi_err_t *err_type,
                              int *task_id, int *src);

/*
 * Protocol flags, which may be combined: polling mode from the start (INTERRUPT_SET 0), and two
 * hints.
 */
#define LAPI_INTERRUPT_OFF  0x20000000
#define LAPI_PSS_GPFS       0x40000000
#define LAPI_SHARE_PROTOCOL 0x80000000

/* Argument of LAPI_Init. Set all members to zero, then err_hndlr and protocol if needed. */
typedef struct {
  lapi_dev_t protocol;          /* 0, or the protocol flags above */
  lapi_lib_t lib_vers;          /* any lapi_lib_t */
  uint epoch_num;
  int num_compl_hndlr_thr;      /* ignored */
  uint instance_no;             /* 0 to 16; all mean the same instance */
  int info6;
  LAPI_err_hndlr *err_hndlr;
  void *lapi_thread_attr;
  void *adapter_name;
  void *add_info;
} lapi_info_t;

/*
 * Data gather/scatter programs are not supported. Their types, and those of other unsupported
 * features below, are for programs that name them. LAPI_DGSM_COPY_SIZE is not defined, because
 * programs use it to detect another version.
 */
typedef enum {
  LAPI_DGSM_COPY = 0,
  LAPI_DGSM_MCOPY = 1,
  LAPI_DGSM_GOSUB = 2,
  LAPI_DGSM_ITERATE = 3,
  LAPI_DGSM_CONTROL = 4
} lapi_dgsm_opcode_t;

typedef struct {
  lapi_dgsm_opcode_t opcode;    /* LAPI_DGSM_COPY */
  long bytes;
  long offset;
} lapi_dgsm_copy_t;

typedef struct {
  long block_disp;
  long block_len;
} lapi_dgsm_block_t;

typedef struct {
  lapi_dgsm_opcode_t opcode;    /* LAPI_DGSM_MCOPY */
  int count;
  lapi_dgsm_block_t block[1];   /* count blocks */
} lapi_dgsm_mcopy_t;

typedef struct {
  lapi_dgsm_opcode_t opcode;    /* LAPI_DGSM_GOSUB */
  int to_loc;
  int ret_loc;
  long reps;
  long offset;
  long stride;
} lapi_dgsm_gosub_t;

typedef struct {
  lapi_dgsm_opcode_t opcode;    /* LAPI_DGSM_ITERATE */
  int iter_loc;
} lapi_dgsm_iterate_t;

typedef struct {
  lapi_dgsm_opcode_t opcode;    /* LAPI_DGSM_CONTROL */
  int operation;
  int operand;
} lapi_dgsm_control_t;

#define LAPI_DGSM_NO_CTL           -1
#define LAPI_DGSM_GOSUB_SIZE       (sizeof(lapi_dgsm_gosub_t) / sizeof(int))
#define LAPI_DGSM_ITERATE_SIZE     (sizeof(lapi_dgsm_iterate_t) / sizeof(int))
#define LAPI_DGSM_CONTROL_SIZE     (sizeof(lapi_dgsm_control_t) / sizeof(int))
#define LAPI_DGSM_MCOPY_SIZE       (sizeof(lapi_dgsm_mcopy_t) / sizeof(int))
#define LAPI_DGSM_MCOPY_BLOCK_SIZE (sizeof(lapi_dgsm_block_t) / sizeof(int))

typedef enum {
  LAPI_DGSM_SPARSE = 0,
  LAPI_DGSM_CONTIG = 1,
  LAPI_DGSM_UNIT = 2
} lapi_dgsp_density_t;

typedef struct {
  int *code;
  int code_size;
  int depth;
  lapi_dgsp_density_t density;
  long size;
  long extent;
  long lext;
  long rext;
  int atom_size;
} lapi_dgsp_descr_t;

typedef lapi_dgsp_descr_t *lapi_dg_handle_t;
#define LAPI_BYTE ((lapi_dg_handle_t)0)

/* The structure to which msg_len of a header handler points. */
typedef struct {
  ulong msg_len;                /* length of the data in bytes */
  int MAGIC;                    /* do not change */
  lapi_ret_flags_t ret_flags;
  lapi_ctl_flags_t ctl_flags;
  lapi_dg_handle_t dgsp_handle; /* do not change */
  ulong bytes;
  int src;                      /* task that sent the message */
  void *udata_one_pkt_ptr;      /* the data if it arrived whole; valid until the handler returns */
  ulong recv_offset_dgsp_bytes;
} lapi_return_info_t;

typedef struct {
  lapi_vectype_t vec_type;
  uint num_vecs;
  void **info;
  ulong *len;
} lapi_vec_t;

/* A lapi_vec_t with addresses of another task. */
typedef struct {
  lapi_vectype_t vec_type;
  uint num_vecs;
  lapi_long_t *info;
  ulong *len;
} lapi_lvec_t;

typedef struct {
  uint src;                     /* the target of the message; the group of a multicast */
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

/* A completion handler, at the target of a message or at the origin of a get. */
typedef void (compl_hndlr_t)(lapi_handle_t *hndl, void *completion_param);
/* A send completion handler, at the origin. */
typedef void (scompl_hndlr_t)(lapi_handle_t *hndl, void *completion_param,
                              lapi_sh_info_t *info);
/* A header handler. It must not block. */
typedef void *(hdr_hndlr_t)(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len,
                            compl_hndlr_t **comp_h, void **user_info);
/*
 * A header handler of LAPI_Amsendv. It gets the lengths of the blocks and returns their
 * destinations. The data has arrived.
 */
typedef lapi_vec_t *(vhdr_hndlr_t)(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len,
                                   ulong *len_vec, compl_hndlr_t **comp_h, void **user_info);

/* The transfers of LAPI_Xfer. Addresses in the target are 64-bit numbers. */
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
  compl_hndlr_t *chndlr;        /* runs after the data has arrived */
  void *cinfo;
} lapi_get_t;

/*
 * LAPI_AM_LW_XFER is a lightweight active message. Header and data have at most 128 bytes together
 * and may be changed when the call returns. hdr_hdl is an index of the address table. This task
 * must also have set a handler for the index. The members after udata_len are ignored.
 */
typedef struct {
  lapi_xfer_type_t Xfer_type;   /* LAPI_AM_XFER, or LAPI_AM_LW_XFER: see above */
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
  void *tgt_vec;                /* a lapi_vec_t of this task, with addresses in the target */
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
  void *tgt_vec;                /* a lapi_vec_t of this task, with addresses in the target */
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
  uint size;                    /* 32 or 64 bits */
  lapi_long_t tgt_var;
  void *in_val;
  void *prev_tgt_val;
  lapi_cntr_t *org_cntr;
  scompl_hndlr_t *shdlr;
  void *sinfo;
} lapi_rmw_t;

/* A multicast: an active message without counters to each member of a group. */
typedef struct {
  lapi_xfer_type_t Xfer_type;   /* LAPI_MC_XFER */
  int flags;
  lapi_group_t group;
  uint pad;
  lapi_long_t hdr_hdl;          /* as for LAPI_AM_XFER */
  uint uhdr_len;
  void *uhdr;
  void *udata;
  ulong udata_len;
  scompl_hndlr_t *shdlr;        /* runs once, when header and data may be changed */
  void *sinfo;
} lapi_mc_t;

/* Transfers by RDMA, which are rejected. */
typedef unsigned int lapi_user_cxt_t;
typedef unsigned long long lapi_user_pvo_t;
typedef unsigned short lapi_rdma_tag_t;
typedef unsigned short lapi_rdma_op_t;
typedef unsigned short lapi_rdma_flg_t;
typedef enum { LAPI_RDMA_ACQUIRE = 0, LAPI_RDMA_RELEASE = 1 } lapi_rdma_req_t;
typedef void (remote_hndlr_t)(lapi_handle_t *hndl, void *sinfo, int *src);
#define LAPI_RDMA_GET     0x0001
#define LAPI_RDMA_PUT     0x0002
#define LAPI_RCALLBACK    0x0004
#define LAPI_RCNTR_UPDATE 0x0008

typedef struct {
  lapi_xfer_type_t Xfer_type;   /* LAPI_RDMA_XFER */
  uint tgt;
  lapi_rdma_op_t op;
  lapi_rdma_tag_t rdma_tag;
  lapi_user_cxt_t remote_cxt;
  lapi_user_pvo_t src_pvo;
  lapi_user_pvo_t tgt_pvo;
  uint src_offset;
  uint tgt_offset;
  uint len;
  uint pad;
  lapi_cntr_t *org_cntr;
  scompl_hndlr_t *shdlr;
  void *sinfo;
} lapi_hwxfer_t;

/* Transfers with data gather/scatter programs, which are rejected. */
typedef struct {
  lapi_xfer_type_t Xfer_type;   /* LAPI_DGSP_XFER */
  int flags;
  uint tgt;
  uint pad;
  lapi_long_t hdr_hdl;
  uint uhdr_len;
  void *uhdr;
  void *udata;
  ulong udata_len;
  scompl_hndlr_t *shdlr;
  void *sinfo;
  lapi_long_t tgt_cntr;
  lapi_cntr_t *org_cntr;
  lapi_cntr_t *cmpl_cntr;
  lapi_dg_handle_t dgsp;
  lapi_status_t status;
} lapi_amdgsp_t;

typedef struct {
  lapi_xfer_type_t Xfer_type;   /* LAPI_AMX_XFER */
  int flags;
  uint tgt;
  uint pad;
  lapi_long_t hdr_hdl;
  uint uhdr_len;
  void *uhdr;
  void *udata;
  ulong udata_len;
  scompl_hndlr_t *shdlr;
  void *sinfo;
  lapi_long_t tgt_cntr;
  lapi_cntr_t *org_cntr;
  lapi_cntr_t *cmpl_cntr;
  lapi_dg_handle_t dgsp;
  lapi_status_t status;
  ulong send_offset_dgsp_bytes;
} lapi_amx_t;

typedef union {
  lapi_xfer_type_t Xfer_type;
  lapi_get_t Get;
  lapi_am_t Am;
  lapi_rmw_t Rmw;
  lapi_put_t Put;
  lapi_getv_t Getv;
  lapi_putv_t Putv;
  lapi_amv_t Amv;
  lapi_amdgsp_t Dgsp;
  lapi_hwxfer_t HwXfer;
  lapi_amx_t Amx;
  lapi_mc_t Mc;
} lapi_xfer_t;

/* The commands of LAPI_Util. All are rejected except LAPI_GET_THREAD_FUNC. */
typedef enum {
  LAPI_REGISTER_DGSP = 0,
  LAPI_RESERVE_DGSP = 1,
  LAPI_UNRESERVE_DGSP = 2,
  LAPI_REG_DDM_FUNC = 3,
  LAPI_DGSP_PACK = 4,
  LAPI_DGSP_UNPACK = 5,
  LAPI_ADD_UDP_DEST_PORT = 6,
  LAPI_GET_THREAD_FUNC = 7,
  LAPI_REMOTE_RCXT = 8,
  LAPI_XLATE_ADDRESS = 9,
  LAPI_REGISTER_NOTIFICATION = 10,
  LAPI_TRIGGER_ADD = 11,
  LAPI_TRIGGER_REMOVE = 12,
  LAPI_ADD_UDP_DEST_EXT = 13,
  LAPI_STAT_SAVE = 14,
  LAPI_LAST_UTIL = 15
} lapi_util_type_t;

typedef union {
  pthread_cond_t Pt;
  long long Lw;
} lapi_cond_t;

/*
 * The functions of LAPI_GET_THREAD_FUNC: a recursive lock and condition variables.
 *
 * While a thread holds the lock, this task runs no header handler, and no completion handler of
 * LAPI_LOCAL_STATE or LAPI_SEND_REPLY. A LAPI call of that thread that waits or polls releases the
 * lock meanwhile.
 *
 * The functions return 0, EBUSY (trylock), EPERM (not the owner), ETIMEDOUT, EINVAL, or a LAPI
 * code. The time of cond_timedwait is absolute, on CLOCK_REALTIME. Waits may wake up spuriously.
 */
typedef int (*lapi_mutex_lock_t)(lapi_handle_t);
typedef int (*lapi_mutex_unlock_t)(lapi_handle_t);
typedef int (*lapi_mutex_trylock_t)(lapi_handle_t);
typedef int (*lapi_mutex_getowner_t)(lapi_handle_t, pthread_t *);
typedef int (*lapi_cond_wait_t)(lapi_handle_t, lapi_cond_t *);
typedef int (*lapi_cond_timedwait_t)(lapi_handle_t, lapi_cond_t *, struct timespec *);
typedef int (*lapi_cond_signal_t)(lapi_handle_t, lapi_cond_t *);
typedef int (*lapi_cond_init_t)(lapi_handle_t, lapi_cond_t *);
typedef int (*lapi_cond_destroy_t)(lapi_handle_t, lapi_cond_t *);

typedef struct {
  lapi_util_type_t Util_type;   /* LAPI_GET_THREAD_FUNC */
  lapi_mutex_lock_t mutex_lock;
  lapi_mutex_unlock_t mutex_unlock;
  lapi_mutex_trylock_t mutex_trylock;
  lapi_mutex_getowner_t mutex_getowner; /* LAPI_NULL_THREAD_ID: no owner */
  lapi_cond_wait_t cond_wait;
  lapi_cond_timedwait_t cond_timedwait;
  lapi_cond_signal_t cond_signal;
  lapi_cond_init_t cond_init;
  lapi_cond_destroy_t cond_destroy;
} lapi_thread_func_t;

/* The types of the other commands. */
typedef struct {
  lapi_util_type_t Util_type;   /* LAPI_REMOTE_RCXT */
  lapi_rdma_req_t operation;
  int dest;
  lapi_user_cxt_t usr_rcxt;
} lapi_remote_cxt_t;

typedef struct {
  lapi_util_type_t Util_type;   /* LAPI_XLATE_ADDRESS */
  uint length;
  lapi_user_pvo_t usr_pvo;
  void *address;
  lapi_rdma_req_t operation;
} lapi_get_pvo_t;

typedef struct {
  lapi_util_type_t Util_type;   /* LAPI_REGISTER_NOTIFICATION */
  lapi_rdma_tag_t rdma_tag;
  lapi_rdma_flg_t flags;
  lapi_cntr_t *cntr;
  remote_hndlr_t *callback;
  void *sinfo;
} lapi_rdma_notification_t;

typedef enum {
  LAPI_NORMAL_CALL = 0,
  LAPI_SEND_COMPL_HNDLR = 1,
  LAPI_RECV_INLINE_HNDLR = 2
} lapi_usr_fcall_t;

typedef long ddm_func_t(void *in, void *inout, long bytes, int operand, int operation);

typedef struct {
  lapi_util_type_t Util_type;   /* LAPI_REGISTER_DGSP */
  lapi_dgsp_descr_t *idgsp;
  lapi_dg_handle_t dgsp_handle;
  lapi_usr_fcall_t in_usr_func;
  lapi_status_t status;
} lapi_reg_dgsp_t;

typedef struct {
  lapi_util_type_t Util_type;   /* LAPI_RESERVE_DGSP */
  lapi_dg_handle_t dgsp_handle;
  lapi_usr_fcall_t in_usr_func;
  lapi_status_t status;
} lapi_resv_dgsp_t;

typedef struct {
  lapi_util_type_t Util_type;   /* LAPI_UNRESERVE_DGSP */
  lapi_dg_handle_t dgsp_handle;
  lapi_usr_fcall_t in_usr_func;
  lapi_status_t status;
} lapi_dref_dgsp_t;

typedef struct {
  lapi_util_type_t Util_type;   /* LAPI_REG_DDM_FUNC */
  ddm_func_t *ddm_func;
  lapi_usr_fcall_t in_usr_func;
  lapi_status_t status;
} lapi_reg_ddm_t;

typedef struct {
  lapi_util_type_t Util_type;   /* LAPI_DGSP_PACK */
  lapi_dg_handle_t dgsp;
  void *in_buf;
  ulong bytes;
  void *out_buf;
  ulong out_size;
  ulong position;
  lapi_usr_fcall_t in_usr_func;
  lapi_status_t status;
} lapi_pack_dgsp_t;

typedef struct {
  lapi_util_type_t Util_type;   /* LAPI_DGSP_UNPACK */
  lapi_dg_handle_t dgsp;
  void *in_buf;
  ulong in_size;
  void *out_buf;
  ulong bytes;
  ulong position;
  lapi_usr_fcall_t in_usr_func;
  lapi_status_t status;
} lapi_unpack_dgsp_t;

/* Communication over UDP, with addresses of netinet/in.h in network byte order. */
typedef struct {
  uint task_id;
  uint tot_num_tasks;
  uint num_tasks;
  uint instance_no;
  ulong reserve[10];
} lapi_udpinfo_t;

typedef struct {
  uint ip_addr;
  unsigned short port_no;
} lapi_udp_t;

typedef union {
  uint ipv4_addr;
  uint ipv6_addr[4];
} inet_address;

typedef struct {
  inet_address addr;
  int af;
} in_addr_storage;

typedef struct {
  inet_address ip_addr;
  unsigned short port_no;
  int af;
} lapi_udp_storage;

typedef int (udp_init_hndlr)(lapi_handle_t *hndl, lapi_udp_storage *local_addr,
                             lapi_udp_storage *addr_list, lapi_udpinfo_t *info);

/* For add_info of lapi_info_t, which must be null. */
typedef struct {
  udp_init_hndlr *udp_hndlr;
  lapi_udp_t *add_udp_addrs;
  uint num_udp_addr;
  uint pad;
  udp_init_hndlr *udp_ext_hndlr;
  lapi_udp_storage *add_udp_ext_addrs;
  ulong reserve[8];
} lapi_extend_t;

typedef struct {
  lapi_util_type_t Util_type;   /* LAPI_ADD_UDP_DEST_PORT */
  uint tgt;
  lapi_udp_t *udp_port;
  uint instance_no;
  lapi_usr_fcall_t in_usr_func;
  lapi_status_t status;
} lapi_add_udp_port_t;

typedef struct {
  lapi_util_type_t Util_type;   /* LAPI_ADD_UDP_DEST_EXT */
  uint tgt;
  lapi_udp_storage *udp_port;
  uint instance_no;
  lapi_usr_fcall_t in_usr_func;
  lapi_status_t status;
} lapi_add_udp_port_ext;

/* Triggers and stored statistics. */
typedef int (*lapi_trigger_function_t)(lapi_handle_t hndl, int argc, char *argv[]);

typedef struct {
  lapi_util_type_t Util_type;   /* LAPI_TRIGGER_ADD or LAPI_TRIGGER_REMOVE */
  lapi_trigger_function_t trigger;
  char *trigger_name;
} lapi_trigger_util_t;

typedef struct {
  char *key;
  lapi_long_t value;
} lapi_stat_t;

typedef struct {
  lapi_util_type_t Util_type;   /* LAPI_STAT_SAVE */
  int count;
  lapi_stat_t *stat;
} lapi_stat_util_t;

typedef union {
  lapi_util_type_t Util_type;
  lapi_thread_func_t ThreadFunc;
  lapi_remote_cxt_t Rcxt;
  lapi_get_pvo_t Pvo;
  lapi_rdma_notification_t RdmaNotify;
  lapi_reg_dgsp_t RegDgsp;
  lapi_dref_dgsp_t DrefDgsp;
  lapi_resv_dgsp_t ResvDgsp;
  lapi_reg_ddm_t DdmFunc;
  lapi_pack_dgsp_t PackDgsp;
  lapi_unpack_dgsp_t UnpackDgsp;
  lapi_add_udp_port_t Udp;
  lapi_add_udp_port_ext Udp_ext;
  lapi_trigger_util_t TriggerUtil;
} lapi_util_t;

/* ------------------------------------------------------------------- calls */

/* Start, end and settings. LAPI_Init is collective, and fails on all tasks or on none. LAPI_Term
 * waits for the other tasks, but at most ten seconds, so that a task can abort by LAPI_Term and exit.
 * Calls of other threads then return LAPI_ERR_HNDL_INVALID. */
int LAPI_Init(lapi_handle_t *hndl, lapi_info_t *lapi_info);
int LAPI_Term(lapi_handle_t hndl);
int LAPI_Qenv(lapi_handle_t hndl, lapi_query_t query, int *ret_val);
int LAPI_Senv(lapi_handle_t hndl, lapi_query_t query, int set_val);
int LAPI_Msg_string(int error_code, void *buf);
int LAPI_Util(lapi_handle_t hndl, lapi_util_t *util_p);

/* Addresses. LAPI_Address_init and LAPI_Address_init64 are collective. */
int LAPI_Address(void *my_addr, ulong *ret_addr);
int LAPI_Address_init(lapi_handle_t hndl, void *my_addr, void *add_tab[]);
int LAPI_Address_init64(lapi_handle_t hndl, lapi_long_t my_addr, lapi_long_t *add_tab);
int LAPI_Addr_set(lapi_handle_t hndl, void *addr, int addr_hndl);
int LAPI_Addr_get(lapi_handle_t hndl, void **addr, int addr_hndl);

/* Active messages. The calls for groups are local: a task creates the groups that it sends to. */
int LAPI_Amsend(lapi_handle_t hndl, uint tgt, void *hdr_hdl, void *uhdr, uint uhdr_len,
    void *udata, ulong udata_len, lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr,
    lapi_cntr_t *cmpl_cntr);
int LAPI_Amsendv(lapi_handle_t hndl, uint tgt, void *hdr_hdl, void *uhdr, uint uhdr_len,
    lapi_vec_t *org_vec, lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr, lapi_cntr_t
    *cmpl_cntr);
int LAPI_Xfer(lapi_handle_t hndl, lapi_xfer_t *xfer_cmd);
int LAPI_Group_create(lapi_handle_t hndl, uint num_tasks, uint *task_list, lapi_group_t
    *group);
int LAPI_Group_free(lapi_handle_t hndl, lapi_group_t group);

/* Put, get and read-modify-write. */
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

/*
 * Counters, progress and order. LAPI_Gfence is collective. LAPI_Setcntr_wstatus sets the counter to
 * zero and tracks the status of each of the val tasks in dest. If dest or dest_status is NULL, it
 * sets the counter to val instead.
 */
int LAPI_Setcntr(lapi_handle_t hndl, lapi_cntr_t *cntr, int val);
int LAPI_Setcntr_wstatus(lapi_handle_t hndl, lapi_cntr_t *cntr, int val, uint *dest, int
    *dest_status);
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

/* ----------------------------------------------------- profiling equivalents */

int PLAPI_Init(lapi_handle_t *hndl, lapi_info_t *lapi_info);
int PLAPI_Term(lapi_handle_t hndl);
int PLAPI_Qenv(lapi_handle_t hndl, lapi_query_t query, int *ret_val);
int PLAPI_Senv(lapi_handle_t hndl, lapi_query_t query, int set_val);
int PLAPI_Msg_string(int error_code, void *buf);
int PLAPI_Util(lapi_handle_t hndl, lapi_util_t *util_p);
int PLAPI_Address(void *my_addr, ulong *ret_addr);
int PLAPI_Address_init(lapi_handle_t hndl, void *my_addr, void *add_tab[]);
int PLAPI_Address_init64(lapi_handle_t hndl, lapi_long_t my_addr, lapi_long_t *add_tab);
int PLAPI_Addr_set(lapi_handle_t hndl, void *addr, int addr_hndl);
int PLAPI_Addr_get(lapi_handle_t hndl, void **addr, int addr_hndl);
int PLAPI_Amsend(lapi_handle_t hndl, uint tgt, void *hdr_hdl, void *uhdr, uint uhdr_len,
    void *udata, ulong udata_len, lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr,
    lapi_cntr_t *cmpl_cntr);
int PLAPI_Amsendv(lapi_handle_t hndl, uint tgt, void *hdr_hdl, void *uhdr, uint uhdr_len,
    lapi_vec_t *org_vec, lapi_cntr_t *tgt_cntr, lapi_cntr_t *org_cntr, lapi_cntr_t
    *cmpl_cntr);
int PLAPI_Xfer(lapi_handle_t hndl, lapi_xfer_t *xfer_cmd);
int PLAPI_Group_create(lapi_handle_t hndl, uint num_tasks, uint *task_list, lapi_group_t
    *group);
int PLAPI_Group_free(lapi_handle_t hndl, lapi_group_t group);
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
int PLAPI_Setcntr_wstatus(lapi_handle_t hndl, lapi_cntr_t *cntr, int val, uint *dest, int
    *dest_status);
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
