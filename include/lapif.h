! lapif.h - the LAPI active message interface, for Fortran with TYPE(*) (Fortran 2018), in
! free or fixed form. Write INCLUDE 'lapif.h' after IMPLICIT. Link with -llapi_r.
!
! The calls are those of lapi.h, with the return code as an additional last argument. An
! argument that is a pointer in C is one of the following:
!   address  an INTEGER (KIND=LAPI_ADDR_TYPE) or TYPE (LAPI_ADDR_T) that holds an address
!            from LAPI_ADDRESS or LAPI_ADDRESS_INIT: udata, org_addr of LAPI_GET,
!            tgt_addr, tgt_var, tgt_cntr, hdr_hdl, my_addr of LAPI_ADDRESS_INIT and
!            LAPI_ADDRESS_INIT64, addr of LAPI_ADDR_SET
!   buffer   the variable itself: all others, such as uhdr, org_addr of LAPI_PUT and the
!            counters of this task
! org_vec and tgt_vec may be of either kind. Every one of these arguments may be
! LAPI_ADDR_NULL, or another constant that begins with eight zero bytes. hdr_hdl and addr
! of LAPI_ADDR_SET may also be the function itself. hdr_hdl may also be an index of the
! address table, as an INTEGER (KIND=LAPI_ADDR_TYPE).
!
! A header handler is an INTEGER (KIND=LAPI_ADDR_TYPE) FUNCTION, because it returns an
! address. It declares comp_h as INTEGER (KIND=LAPI_ADDR_TYPE) and sets it with
! LAPI_ADDRESS or to LAPI_ADDR_NULL, its initial value. user_info is a
! TYPE (LAPI_ADDR_T). msg_len is the first member of a TYPE (LAPI_RETURN_INFO_T) and may
! be declared as that type instead.

      INTEGER (KIND=4), PARAMETER :: LAPI_LONG_TYPE = 8
      INTEGER (KIND=4), PARAMETER :: LAPI_LONG_LONG_TYPE = 8
      INTEGER (KIND=4), PARAMETER :: LAPI_ADDR_TYPE = 8
      INTEGER (KIND=LAPI_ADDR_TYPE), PARAMETER :: LAPI_ADDR_NULL = 0
      INTEGER (KIND=4), PARAMETER :: LAPI_MAX_ERR_STRING = 160
      INTEGER (KIND=LAPI_LONG_TYPE),                                    &
     &  PARAMETER :: LAPI_MAX_MSG_SZ = HUGE(0_8)

! Return codes.
      INTEGER (KIND=4), PARAMETER :: LAPI_SUCCESS = 0
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_UNKNOWN = 400
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_ALL_HNDL_IN_USE = 401
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_BOTH_NETSTR_SET = 402
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_CKPT_LOAD_FAILED = 403
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_CSS_LOAD_FAILED = 404
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_INFO_NULL = 405
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_MSG_API = 406
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_NO_NETSTR_SET = 407
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_NO_UDP_HNDLR = 408
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_HDR_HNDLR_NULL = 409
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_PSS_NON_ROOT = 410
      INTEGER (KIND=4), PARAMETER :: LAPI_WARN_PARM_NULL = 411
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_SHM_KE_NOT_LOADED = 412
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_TIMEOUT = 413
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_REG_TIMER = 414
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_UDP_PKT_SZ = 415
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_USER_UDP_HNDLR_FAIL = 416
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_HNDL_INVALID = 417
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_RET_PTR_NULL = 418
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_ADDR_HNDL_RANGE = 419
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_ADDR_TBL_NULL = 420
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_TGT_PURGED = 421
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_MULTIPLE_WAITERS = 422
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_MEMORY_EXHAUSTED = 423
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_INFO_NONZERO = 424
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_ORG_ADDR_NULL = 425
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_TGT_ADDR_NULL = 426
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_DATA_LEN = 427
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_TGT = 428
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_UHDR_NULL = 429
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_UHDR_LEN = 430
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_HDR_LEN = 431
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_ORG_EXTENT = 432
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_ORG_STRIDE = 433
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_NO_CONNECTIVITY = 434
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_ADAPTERS_DOWN = 435
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_RECV_INCOMP = 436
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_SEND_INCOMP = 437
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_SEND_TIMEOUT = 438
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_SHM_SETUP = 439
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_ORG_VEC_ADDR = 440
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_ORG_VEC_LEN = 441
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_ORG_VEC_NULL = 442
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_ORG_VEC_TYPE = 443
      INTEGER (KIND=4), PARAMETER ::                                    &
     &  LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL = 444
      INTEGER (KIND=4), PARAMETER ::                                    &
     &  LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL = 445
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_TGT_EXTENT = 446
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_TGT_STRIDE = 447
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_TGT_VEC_ADDR = 448
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_TGT_VEC_LEN = 449
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_CKPT = 450
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_TGT_VEC_NULL = 451
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_TGT_VEC_TYPE = 452
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_VEC_NUM_DIFF = 453
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_VEC_TYPE_DIFF = 454
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_VEC_LEN_DIFF = 455
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_MSG_INFO_NULL = 456
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_POLLING_NET = 457
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_CNTR_NULL = 458
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_CNTR_VAL = 459
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_QUERY_TYPE = 460
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_IN_VAL_NULL = 461
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_RMW_OP = 462
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_TGT_VAR_NULL = 463
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_SET_VAL = 464
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_DGSP = 465
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_DGSP_ATOM = 466
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_DGSP_BRANCH = 467
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_DGSP_CTL = 468
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_DGSP_COPY_SZ = 469
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_DGSP_FREE = 470
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_DGSP_OPC = 471
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_DGSP_REPS = 472
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_DGSP_STACK = 473
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_OP_SZ = 474
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_UDP_PORT_INFO = 475
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_XFER_CMD = 476
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_UTIL_CMD = 477
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_CATALOG_FAIL = 478
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_PACK_SZ = 479
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_DGSP_OTHER = 480
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_UDP_SOCKET = 481
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_COLLECTIVE_PSS = 482
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_DMA_HNDL = 483
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_DMA_TAG = 484
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_FR_SETUP_INTERNAL = 485
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_FR_SETUP_NONAM = 486
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_FR_SETUP_NOHAGS = 487
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_FR_SETUP_BADPOE = 488
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_FR_SETUP_NOPOE = 489
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_FR_SETUP_NONSNX = 490
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_FR_HALTED = 491
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_TGT_CONTEXT = 492
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_SRC_CONTEXT = 493
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_TGT_BUFHNDL = 494
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_SRC_BUFHNDL = 495
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_TGT_OFFSET = 496
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_SRC_OFFSET = 497
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_NO_RDMA_RESOURCE = 498
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_BULK_ENABLED = 499
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_COMM_TIMEOUT = 500
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_VERSION = 501
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_SHMINIT_FAIL = 502
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_SHMINIT_CKPT_FAIL = 503
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_SHM_SINGLE_TASK = 504
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_SHM_CREATE_FAIL = 505
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_SHM_GET_FAIL = 506
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_SHM_ATT_FAIL = 507
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_SHM_NO_SEGATT = 508
      INTEGER (KIND=4), PARAMETER :: LAPI_ATT_PORT_START = 509
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_NO_ENV_VAR = 510
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_NO_CALLBACK_REG = 511
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_NO_CNTR_REG = 512
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_XLATE_FAILED = 513
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_RDMA_RESOURCES = 514
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_LW_DATA_LEN = 515
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_NO_HNDLR_SET = 516
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_OFFSET_LEN = 517
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_RCXT_CANCEL = 518
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_CODE_UNKNOWN = 519
      INTEGER (KIND=4), PARAMETER ::                                    &
     &  LAPI_ATT_PREEMPT_SETUP_INTERNAL = 520
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_DUP_TRIGGER = 521
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_TRIGGER_UNKNOWN = 522
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_TASK_NUM = 523
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_NULL_LIST = 524
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_GRP_MEMBER = 525
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_NULL_GRP = 526
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_GRP = 527
      INTEGER (KIND=4), PARAMETER :: LAPI_ERR_STAT_SAVE_FAIL = 528

! Queries.
      INTEGER (KIND=4), PARAMETER :: TASK_ID = 0
      INTEGER (KIND=4), PARAMETER :: NUM_TASKS = 1
      INTEGER (KIND=4), PARAMETER :: MAX_UHDR_SZ = 2
      INTEGER (KIND=4), PARAMETER :: MAX_DATA_SZ = 3
      INTEGER (KIND=4), PARAMETER :: ERROR_CHK = 4
      INTEGER (KIND=4), PARAMETER :: TIMEOUT = 5
      INTEGER (KIND=4), PARAMETER :: MIN_TIMEOUT = 6
      INTEGER (KIND=4), PARAMETER :: MAX_TIMEOUT = 7
      INTEGER (KIND=4), PARAMETER :: INTERRUPT_SET = 8
      INTEGER (KIND=4), PARAMETER :: MAX_PORTS = 9
      INTEGER (KIND=4), PARAMETER :: MAX_PKT_SZ = 10
      INTEGER (KIND=4), PARAMETER :: NUM_REX_BUFS = 11
      INTEGER (KIND=4), PARAMETER :: REX_BUF_SZ = 12
      INTEGER (KIND=4), PARAMETER :: LOC_ADDRTBL_SZ = 13
      INTEGER (KIND=4), PARAMETER :: EPOCH_NUM = 14
      INTEGER (KIND=4), PARAMETER :: USE_THRESH = 15
      INTEGER (KIND=4), PARAMETER :: RCV_FIFO_SIZE = 16
      INTEGER (KIND=4), PARAMETER :: MAX_ATOM_SIZE = 17
      INTEGER (KIND=4), PARAMETER :: BUF_CP_SIZE = 18
      INTEGER (KIND=4), PARAMETER :: MAX_PKTS_OUT = 19
      INTEGER (KIND=4), PARAMETER :: ACK_THRESHOLD = 20
      INTEGER (KIND=4), PARAMETER :: QUERY_SHM_ENABLED = 21
      INTEGER (KIND=4), PARAMETER :: QUERY_SHM_NUM_TASKS = 22
      INTEGER (KIND=4), PARAMETER :: QUERY_SHM_TASKS = 23
      INTEGER (KIND=4), PARAMETER :: QUERY_STATISTICS = 24
      INTEGER (KIND=4), PARAMETER :: PRINT_STATISTICS = 25
      INTEGER (KIND=4), PARAMETER :: QUERY_SHM_STATISTICS = 26
      INTEGER (KIND=4), PARAMETER :: QUERY_LOCAL_SEND_STATISTICS = 27
      INTEGER (KIND=4), PARAMETER :: BULK_XFER = 28
      INTEGER (KIND=4), PARAMETER :: BULK_MIN_MSG_SIZE = 29
      INTEGER (KIND=4), PARAMETER :: RDMA_REMOTE_RCXT_AVAIL = 30
      INTEGER (KIND=4), PARAMETER :: RDMA_REMOTE_RCXT_TOTAL = 31
      INTEGER (KIND=4), PARAMETER :: RC_MAX_QP = 32
      INTEGER (KIND=4), PARAMETER :: RC_QP_IN_USE = 33
      INTEGER (KIND=4), PARAMETER :: RC_QP_USE_LRU = 34
      INTEGER (KIND=4), PARAMETER :: RC_QP_USE_LMC = 35
      INTEGER (KIND=4), PARAMETER :: RC_QP_INIT_SETUP = 36

! Operations, transfers, vectors, flags.
      INTEGER (KIND=4), PARAMETER :: FETCH_AND_ADD = 0
      INTEGER (KIND=4), PARAMETER :: FETCH_AND_OR = 1
      INTEGER (KIND=4), PARAMETER :: SWAP = 2
      INTEGER (KIND=4), PARAMETER :: COMPARE_AND_SWAP = 3
      INTEGER (KIND=4), PARAMETER :: LAPI_GET_XFER = 0
      INTEGER (KIND=4), PARAMETER :: LAPI_AM_XFER = 1
      INTEGER (KIND=4), PARAMETER :: LAPI_PUT_XFER = 2
      INTEGER (KIND=4), PARAMETER :: LAPI_GETV_XFER = 3
      INTEGER (KIND=4), PARAMETER :: LAPI_PUTV_XFER = 4
      INTEGER (KIND=4), PARAMETER :: LAPI_AMV_XFER = 5
      INTEGER (KIND=4), PARAMETER :: LAPI_RMW_XFER = 6
      INTEGER (KIND=4), PARAMETER :: LAPI_AM_LW_XFER = 9
      INTEGER (KIND=4), PARAMETER :: LAPI_MC_XFER = 11
      INTEGER (KIND=4), PARAMETER :: LAPI_GEN_IOVECTOR = 0
      INTEGER (KIND=4), PARAMETER :: LAPI_GEN_STRIDED_XFER = 1
      INTEGER (KIND=4), PARAMETER :: LAPI_GEN_GENERIC = 2
      INTEGER (KIND=4), PARAMETER :: LAPI_NORMAL = 0
      INTEGER (KIND=4), PARAMETER :: LAPI_LOCAL_STATE = 1
      INTEGER (KIND=4), PARAMETER :: LAPI_SEND_REPLY = 2
      INTEGER (KIND=4), PARAMETER :: LAPI_DELIVER_MSG = 0
      INTEGER (KIND=4), PARAMETER :: LAPI_BURY_MSG = 1
      INTEGER (KIND=4), PARAMETER :: LAPI_DROP_PKT = 2
      INTEGER (KIND=4), PARAMETER :: LAPI_COMPLETE = 0
      INTEGER (KIND=4), PARAMETER :: LAPI_SEND_COMPLETE = 1
      INTEGER (KIND=4), PARAMETER :: LAPI_RECV_COMPLETE = 2
      INTEGER (KIND=4), PARAMETER :: LAPI_BOTH_COMPLETE = 3
      INTEGER (KIND=4), PARAMETER :: LAPI_POLLING_NET = 4
      INTEGER (KIND=4), PARAMETER :: LAPI_DISP_CNTR = 8
      INTEGER (KIND=4), PARAMETER :: LAPI_MSG_INITIAL = 0
      INTEGER (KIND=4), PARAMETER :: LAPI_MSG_RECVD = 1
      INTEGER (KIND=4), PARAMETER :: LAPI_MSG_PURGED = 2
      INTEGER (KIND=4), PARAMETER :: LAPI_MSG_PURGED_RCVD = 3
      INTEGER (KIND=4), PARAMETER :: LAPI_MSG_INVALID = 4
      INTEGER (KIND=4), PARAMETER :: LAPI_GET_THREAD_FUNC = 7

! Types, with the same layouts as in C.
      TYPE LAPI_ADDR_T
        SEQUENCE
        INTEGER (KIND=8) :: addr
      END TYPE LAPI_ADDR_T
      TYPE LAPI_CNTR_T
        SEQUENCE
        INTEGER (KIND=4) :: cntr
        INTEGER (KIND=4) :: reserved(3)
      END TYPE LAPI_CNTR_T
      TYPE LAPI_INFO_T
        SEQUENCE
        INTEGER (KIND=4) :: protocol
        INTEGER (KIND=4) :: lib_vers
        INTEGER (KIND=4) :: epoch_num
        INTEGER (KIND=4) :: num_compl_hndlr_thr
        INTEGER (KIND=4) :: instance_no
        INTEGER (KIND=4) :: info6
        INTEGER (KIND=8) :: err_hndlr
        INTEGER (KIND=8) :: lapi_thread_attr
        INTEGER (KIND=8) :: adapter_name
        INTEGER (KIND=8) :: add_info
      END TYPE LAPI_INFO_T
      TYPE LAPI_RETURN_INFO_T
        SEQUENCE
        INTEGER (KIND=8) :: msg_len
        INTEGER (KIND=4) :: MAGIC
        INTEGER (KIND=4) :: ret_flags
        INTEGER (KIND=4) :: ctl_flags
        INTEGER (KIND=4) :: pad1
        INTEGER (KIND=8) :: dgsp_handle
        INTEGER (KIND=8) :: bytes
        INTEGER (KIND=4) :: src
        INTEGER (KIND=4) :: pad2
        INTEGER (KIND=8) :: udata_one_pkt_ptr
        INTEGER (KIND=8) :: recv_offset_dgsp_bytes
      END TYPE LAPI_RETURN_INFO_T
      TYPE LAPI_SH_INFO_T
        SEQUENCE
        INTEGER (KIND=4) :: src
        INTEGER (KIND=4) :: reason
        INTEGER (KIND=8) :: reserve(6)
      END TYPE LAPI_SH_INFO_T
      TYPE LAPI_MSG_STATE_T
        SEQUENCE
        INTEGER (KIND=4) :: status
        INTEGER (KIND=4) :: pad1
        INTEGER (KIND=8) :: reserve(10)
      END TYPE LAPI_MSG_STATE_T
      TYPE LAPI_STATISTICS_T
        SEQUENCE
        INTEGER (KIND=8) :: Tot_dup_pkt_cnt
        INTEGER (KIND=8) :: Tot_retrans_pkt_cnt
        INTEGER (KIND=8) :: Tot_gho_pkt_cnt
        INTEGER (KIND=8) :: Tot_pkt_sent_cnt
        INTEGER (KIND=8) :: Tot_pkt_recv_cnt
        INTEGER (KIND=8) :: Tot_data_sent
        INTEGER (KIND=8) :: Tot_data_recv
        INTEGER (KIND=8) :: Tot_ack_send_cnt
        INTEGER (KIND=8) :: Tot_ack_recv_cnt
      END TYPE LAPI_STATISTICS_T
      TYPE LAPI_VEC_T
        SEQUENCE
        INTEGER (KIND=4) :: vec_type
        INTEGER (KIND=4) :: num_vecs
        INTEGER (KIND=8) :: info
        INTEGER (KIND=8) :: len
      END TYPE LAPI_VEC_T
      TYPE LAPI_GET_T
        SEQUENCE
        INTEGER (KIND=4) :: Xfer_type
        INTEGER (KIND=4) :: flags
        INTEGER (KIND=4) :: tgt
        INTEGER (KIND=4) :: pad
        INTEGER (KIND=8) :: tgt_addr
        INTEGER (KIND=8) :: org_addr
        INTEGER (KIND=8) :: len
        INTEGER (KIND=8) :: tgt_cntr
        INTEGER (KIND=8) :: org_cntr
        INTEGER (KIND=8) :: chndlr
        INTEGER (KIND=8) :: cinfo
      END TYPE LAPI_GET_T
      TYPE LAPI_AM_T
        SEQUENCE
        INTEGER (KIND=4) :: Xfer_type
        INTEGER (KIND=4) :: flags
        INTEGER (KIND=4) :: tgt
        INTEGER (KIND=4) :: pad
        INTEGER (KIND=8) :: hdr_hdl
        INTEGER (KIND=4) :: uhdr_len
        INTEGER (KIND=4) :: pad2
        INTEGER (KIND=8) :: uhdr
        INTEGER (KIND=8) :: udata
        INTEGER (KIND=8) :: udata_len
        INTEGER (KIND=8) :: shdlr
        INTEGER (KIND=8) :: sinfo
        INTEGER (KIND=8) :: tgt_cntr
        INTEGER (KIND=8) :: org_cntr
        INTEGER (KIND=8) :: cmpl_cntr
      END TYPE LAPI_AM_T
      TYPE LAPI_PUT_T
        SEQUENCE
        INTEGER (KIND=4) :: Xfer_type
        INTEGER (KIND=4) :: flags
        INTEGER (KIND=4) :: tgt
        INTEGER (KIND=4) :: pad
        INTEGER (KIND=8) :: tgt_addr
        INTEGER (KIND=8) :: org_addr
        INTEGER (KIND=8) :: len
        INTEGER (KIND=8) :: shdlr
        INTEGER (KIND=8) :: sinfo
        INTEGER (KIND=8) :: tgt_cntr
        INTEGER (KIND=8) :: org_cntr
        INTEGER (KIND=8) :: cmpl_cntr
      END TYPE LAPI_PUT_T
      TYPE LAPI_GETV_T
        SEQUENCE
        INTEGER (KIND=4) :: Xfer_type
        INTEGER (KIND=4) :: flags
        INTEGER (KIND=4) :: tgt
        INTEGER (KIND=4) :: pad
        INTEGER (KIND=8) :: org_vec
        INTEGER (KIND=8) :: tgt_vec
        INTEGER (KIND=8) :: tgt_cntr
        INTEGER (KIND=8) :: org_cntr
        INTEGER (KIND=8) :: chndlr
        INTEGER (KIND=8) :: cinfo
      END TYPE LAPI_GETV_T
      TYPE LAPI_PUTV_T
        SEQUENCE
        INTEGER (KIND=4) :: Xfer_type
        INTEGER (KIND=4) :: flags
        INTEGER (KIND=4) :: tgt
        INTEGER (KIND=4) :: pad
        INTEGER (KIND=8) :: shdlr
        INTEGER (KIND=8) :: sinfo
        INTEGER (KIND=8) :: org_vec
        INTEGER (KIND=8) :: tgt_vec
        INTEGER (KIND=8) :: tgt_cntr
        INTEGER (KIND=8) :: org_cntr
        INTEGER (KIND=8) :: cmpl_cntr
      END TYPE LAPI_PUTV_T
      TYPE LAPI_AMV_T
        SEQUENCE
        INTEGER (KIND=4) :: Xfer_type
        INTEGER (KIND=4) :: flags
        INTEGER (KIND=4) :: tgt
        INTEGER (KIND=4) :: pad
        INTEGER (KIND=8) :: hdr_hdl
        INTEGER (KIND=4) :: uhdr_len
        INTEGER (KIND=4) :: pad2
        INTEGER (KIND=8) :: uhdr
        INTEGER (KIND=8) :: shdlr
        INTEGER (KIND=8) :: sinfo
        INTEGER (KIND=8) :: org_vec
        INTEGER (KIND=8) :: tgt_cntr
        INTEGER (KIND=8) :: org_cntr
        INTEGER (KIND=8) :: cmpl_cntr
      END TYPE LAPI_AMV_T
      TYPE LAPI_RMW_T
        SEQUENCE
        INTEGER (KIND=4) :: Xfer_type
        INTEGER (KIND=4) :: op
        INTEGER (KIND=4) :: tgt
        INTEGER (KIND=4) :: size
        INTEGER (KIND=8) :: tgt_var
        INTEGER (KIND=8) :: in_val
        INTEGER (KIND=8) :: prev_tgt_val
        INTEGER (KIND=8) :: org_cntr
        INTEGER (KIND=8) :: shdlr
        INTEGER (KIND=8) :: sinfo
      END TYPE LAPI_RMW_T
      TYPE LAPI_MC_T
        SEQUENCE
        INTEGER (KIND=4) :: Xfer_type
        INTEGER (KIND=4) :: flags
        INTEGER (KIND=4) :: group
        INTEGER (KIND=4) :: pad
        INTEGER (KIND=8) :: hdr_hdl
        INTEGER (KIND=4) :: uhdr_len
        INTEGER (KIND=4) :: pad2
        INTEGER (KIND=8) :: uhdr
        INTEGER (KIND=8) :: udata
        INTEGER (KIND=8) :: udata_len
        INTEGER (KIND=8) :: shdlr
        INTEGER (KIND=8) :: sinfo
      END TYPE LAPI_MC_T
! Addresses of C functions, for C_F_PROCPOINTER.
      TYPE LAPI_THREAD_FUNC_T
        SEQUENCE
        INTEGER (KIND=4) :: Util_type
        INTEGER (KIND=4) :: pad
        INTEGER (KIND=8) :: mutex_lock
        INTEGER (KIND=8) :: mutex_unlock
        INTEGER (KIND=8) :: mutex_trylock
        INTEGER (KIND=8) :: mutex_getowner
        INTEGER (KIND=8) :: cond_wait
        INTEGER (KIND=8) :: cond_timedwait
        INTEGER (KIND=8) :: cond_signal
        INTEGER (KIND=8) :: cond_init
        INTEGER (KIND=8) :: cond_destroy
      END TYPE LAPI_THREAD_FUNC_T
! A command of LAPI_UTIL that is none of the other types.
      TYPE LAPI_UTIL_T
        SEQUENCE
        INTEGER (KIND=4) :: Util_type
        INTEGER (KIND=4) :: pad
        INTEGER (KIND=8) :: reserved(9)
      END TYPE LAPI_UTIL_T

! Calls and their profiling equivalents.
      INTERFACE
      SUBROUTINE LAPI_INIT(hndl, lapi_info, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: lapi_info
      TYPE(*), DIMENSION(*) :: lapi_info
      INTEGER (KIND=4) :: hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_TERM(hndl, ierror)
      INTEGER (KIND=4) :: hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_QENV(hndl, query, ret_val, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: ret_val
      TYPE(*), DIMENSION(*) :: ret_val
      INTEGER (KIND=4) :: hndl, query, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_SENV(hndl, query, set_val, ierror)
      INTEGER (KIND=4) :: hndl, query, set_val, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_MSG_STRING(error_code, buf, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      TYPE(*), DIMENSION(*) :: buf
      INTEGER (KIND=4) :: error_code, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE LAPI_ADDRESS
      SUBROUTINE LAPI_ADDRESS(my_addr, ret_addr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: my_addr
      TYPE(*), DIMENSION(*) :: my_addr
      INTEGER (KIND=4) :: ierror
      INTEGER (KIND=8) :: ret_addr
      END SUBROUTINE
      SUBROUTINE LAPI_ADDRESS_PROC(my_addr, ret_addr, ierror)
      EXTERNAL :: my_addr
      INTEGER (KIND=4) :: ierror
      INTEGER (KIND=8) :: ret_addr
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_ADDRESS_INIT(hndl, my_addr, add_tab, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: my_addr
      TYPE(*), DIMENSION(*) :: my_addr
      INTEGER (KIND=4) :: hndl, ierror
      INTEGER (KIND=8), DIMENSION(*) :: add_tab
      END SUBROUTINE
      END INTERFACE
      INTERFACE LAPI_ADDR_SET
      SUBROUTINE LAPI_ADDR_SET(hndl, addr, addr_hndl, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: addr
      TYPE(*), DIMENSION(*) :: addr
      INTEGER (KIND=4) :: hndl, addr_hndl, ierror
      END SUBROUTINE
      SUBROUTINE LAPI_ADDR_SET_PROC(hndl, addr, addr_hndl, ierror)
      EXTERNAL :: addr
      INTEGER (KIND=4) :: hndl, addr_hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_ADDR_GET(hndl, addr, addr_hndl, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: addr
      TYPE(*), DIMENSION(*) :: addr
      INTEGER (KIND=4) :: hndl, addr_hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE LAPI_AMSEND
      SUBROUTINE LAPI_AMSEND(hndl, tgt, hdr_hdl, uhdr, uhdr_len, udata, &
     &  udata_len, tgt_cntr, org_cntr, cmpl_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: hdr_hdl, uhdr, udata
!GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_cntr, org_cntr, cmpl_cntr
      TYPE(*), DIMENSION(*) :: hdr_hdl, uhdr, udata, tgt_cntr, org_cntr,&
     &  cmpl_cntr
      INTEGER (KIND=4) :: hndl, tgt, uhdr_len, ierror
      INTEGER (KIND=8) :: udata_len
      END SUBROUTINE
      SUBROUTINE LAPI_AMSEND_PROC(hndl, tgt, hdr_hdl, uhdr, uhdr_len,   &
     &  udata, udata_len, tgt_cntr, org_cntr, cmpl_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: uhdr, udata, tgt_cntr
!GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr, cmpl_cntr
      TYPE(*), DIMENSION(*) :: uhdr, udata, tgt_cntr, org_cntr,         &
     &  cmpl_cntr
      EXTERNAL :: hdr_hdl
      INTEGER (KIND=4) :: hndl, tgt, uhdr_len, ierror
      INTEGER (KIND=8) :: udata_len
      END SUBROUTINE
      END INTERFACE
      INTERFACE LAPI_AMSENDV
      SUBROUTINE LAPI_AMSENDV(hndl, tgt, hdr_hdl, uhdr, uhdr_len,       &
     &  org_vec, tgt_cntr, org_cntr, cmpl_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: hdr_hdl, uhdr, org_vec
!GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_cntr, org_cntr, cmpl_cntr
      TYPE(*), DIMENSION(*) :: hdr_hdl, uhdr, org_vec, tgt_cntr,        &
     &  org_cntr, cmpl_cntr
      INTEGER (KIND=4) :: hndl, tgt, uhdr_len, ierror
      END SUBROUTINE
      SUBROUTINE LAPI_AMSENDV_PROC(hndl, tgt, hdr_hdl, uhdr, uhdr_len,  &
     &  org_vec, tgt_cntr, org_cntr, cmpl_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: uhdr, org_vec, tgt_cntr
!GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr, cmpl_cntr
      TYPE(*), DIMENSION(*) :: uhdr, org_vec, tgt_cntr, org_cntr,       &
     &  cmpl_cntr
      EXTERNAL :: hdr_hdl
      INTEGER (KIND=4) :: hndl, tgt, uhdr_len, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_XFER(hndl, xfer_cmd, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: xfer_cmd
      TYPE(*), DIMENSION(*) :: xfer_cmd
      INTEGER (KIND=4) :: hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_PUT(hndl, tgt, len, tgt_addr, org_addr, tgt_cntr, &
     &  org_cntr, cmpl_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_addr, org_addr, tgt_cntr
!GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr, cmpl_cntr
      TYPE(*), DIMENSION(*) :: tgt_addr, org_addr, tgt_cntr, org_cntr,  &
     &  cmpl_cntr
      INTEGER (KIND=4) :: hndl, tgt, ierror
      INTEGER (KIND=8) :: len
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_GET(hndl, tgt, len, tgt_addr, org_addr, tgt_cntr, &
     &  org_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_addr, org_addr, tgt_cntr
!GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr
      TYPE(*), DIMENSION(*) :: tgt_addr, org_addr, tgt_cntr, org_cntr
      INTEGER (KIND=4) :: hndl, tgt, ierror
      INTEGER (KIND=8) :: len
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_PUTV(hndl, tgt, tgt_vec, org_vec, tgt_cntr,       &
     &  org_cntr, cmpl_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_vec, org_vec, tgt_cntr
!GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr, cmpl_cntr
      TYPE(*), DIMENSION(*) :: tgt_vec, org_vec, tgt_cntr, org_cntr,    &
     &  cmpl_cntr
      INTEGER (KIND=4) :: hndl, tgt, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_GETV(hndl, tgt, tgt_vec, org_vec, tgt_cntr,       &
     &  org_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_vec, org_vec, tgt_cntr
!GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr
      TYPE(*), DIMENSION(*) :: tgt_vec, org_vec, tgt_cntr, org_cntr
      INTEGER (KIND=4) :: hndl, tgt, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_RMW(hndl, op, tgt, tgt_var, in_val, prev_tgt_val, &
     &  org_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_var, in_val, prev_tgt_val
!GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr
      TYPE(*), DIMENSION(*) :: tgt_var, in_val, prev_tgt_val, org_cntr
      INTEGER (KIND=4) :: hndl, op, tgt, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_RMW64(hndl, op, tgt, tgt_var, in_val,             &
     &  prev_tgt_val, org_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_var, in_val, prev_tgt_val
!GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr
      TYPE(*), DIMENSION(*) :: tgt_var, in_val, prev_tgt_val, org_cntr
      INTEGER (KIND=4) :: hndl, op, tgt, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_SETCNTR(hndl, cntr, val, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: cntr
      TYPE(*), DIMENSION(*) :: cntr
      INTEGER (KIND=4) :: hndl, val, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_GETCNTR(hndl, cntr, val, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: cntr
      TYPE(*), DIMENSION(*) :: cntr
      INTEGER (KIND=4) :: hndl, val, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_WAITCNTR(hndl, cntr, val, cur_cntr_val, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: cntr, cur_cntr_val
      TYPE(*), DIMENSION(*) :: cntr, cur_cntr_val
      INTEGER (KIND=4) :: hndl, val, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_NOPOLL_WAIT(hndl, cntr, val, cur_cntr_val, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: cntr, cur_cntr_val
      TYPE(*), DIMENSION(*) :: cntr, cur_cntr_val
      INTEGER (KIND=4) :: hndl, val, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_PROBE(hndl, ierror)
      INTEGER (KIND=4) :: hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_MSGPOLL(hndl, cnt, info, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: info
      TYPE(*), DIMENSION(*) :: info
      INTEGER (KIND=4) :: hndl, cnt, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_FENCE(hndl, ierror)
      INTEGER (KIND=4) :: hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_GFENCE(hndl, ierror)
      INTEGER (KIND=4) :: hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_PURGE_TOTASK(hndl, dest, ierror)
      INTEGER (KIND=4) :: hndl, dest, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_RESUME_TOTASK(hndl, dest, ierror)
      INTEGER (KIND=4) :: hndl, dest, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_UTIL(hndl, util_p, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: util_p
      TYPE(*), DIMENSION(*) :: util_p
      INTEGER (KIND=4) :: hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_ADDRESS_INIT64(hndl, my_addr, add_tab, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: my_addr
      TYPE(*), DIMENSION(*) :: my_addr
      INTEGER (KIND=4) :: hndl, ierror
      INTEGER (KIND=8), DIMENSION(*) :: add_tab
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_SETCNTR_WSTATUS(hndl, cntr, val, dest,            &
     &    dest_status, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: cntr, dest, dest_status
      TYPE(*), DIMENSION(*) :: cntr, dest, dest_status
      INTEGER (KIND=4) :: hndl, val, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_GROUP_CREATE(hndl, num_tasks, task_list, group,   &
     &    ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: task_list, group
      TYPE(*), DIMENSION(*) :: task_list, group
      INTEGER (KIND=4) :: hndl, num_tasks, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE LAPI_GROUP_FREE(hndl, group, ierror)
      INTEGER (KIND=4) :: hndl, group, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_INIT(hndl, lapi_info, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: lapi_info
      TYPE(*), DIMENSION(*) :: lapi_info
      INTEGER (KIND=4) :: hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_TERM(hndl, ierror)
      INTEGER (KIND=4) :: hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_QENV(hndl, query, ret_val, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: ret_val
      TYPE(*), DIMENSION(*) :: ret_val
      INTEGER (KIND=4) :: hndl, query, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_SENV(hndl, query, set_val, ierror)
      INTEGER (KIND=4) :: hndl, query, set_val, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_MSG_STRING(error_code, buf, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      TYPE(*), DIMENSION(*) :: buf
      INTEGER (KIND=4) :: error_code, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE PLAPI_ADDRESS
      SUBROUTINE PLAPI_ADDRESS(my_addr, ret_addr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: my_addr
      TYPE(*), DIMENSION(*) :: my_addr
      INTEGER (KIND=4) :: ierror
      INTEGER (KIND=8) :: ret_addr
      END SUBROUTINE
      SUBROUTINE PLAPI_ADDRESS_PROC(my_addr, ret_addr, ierror)
      EXTERNAL :: my_addr
      INTEGER (KIND=4) :: ierror
      INTEGER (KIND=8) :: ret_addr
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_ADDRESS_INIT(hndl, my_addr, add_tab, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: my_addr
      TYPE(*), DIMENSION(*) :: my_addr
      INTEGER (KIND=4) :: hndl, ierror
      INTEGER (KIND=8), DIMENSION(*) :: add_tab
      END SUBROUTINE
      END INTERFACE
      INTERFACE PLAPI_ADDR_SET
      SUBROUTINE PLAPI_ADDR_SET(hndl, addr, addr_hndl, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: addr
      TYPE(*), DIMENSION(*) :: addr
      INTEGER (KIND=4) :: hndl, addr_hndl, ierror
      END SUBROUTINE
      SUBROUTINE PLAPI_ADDR_SET_PROC(hndl, addr, addr_hndl, ierror)
      EXTERNAL :: addr
      INTEGER (KIND=4) :: hndl, addr_hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_ADDR_GET(hndl, addr, addr_hndl, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: addr
      TYPE(*), DIMENSION(*) :: addr
      INTEGER (KIND=4) :: hndl, addr_hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE PLAPI_AMSEND
      SUBROUTINE PLAPI_AMSEND(hndl, tgt, hdr_hdl, uhdr, uhdr_len, udata,&
     &  udata_len, tgt_cntr, org_cntr, cmpl_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: hdr_hdl, uhdr, udata
!GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_cntr, org_cntr, cmpl_cntr
      TYPE(*), DIMENSION(*) :: hdr_hdl, uhdr, udata, tgt_cntr, org_cntr,&
     &  cmpl_cntr
      INTEGER (KIND=4) :: hndl, tgt, uhdr_len, ierror
      INTEGER (KIND=8) :: udata_len
      END SUBROUTINE
      SUBROUTINE PLAPI_AMSEND_PROC(hndl, tgt, hdr_hdl, uhdr, uhdr_len,  &
     &  udata, udata_len, tgt_cntr, org_cntr, cmpl_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: uhdr, udata, tgt_cntr
!GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr, cmpl_cntr
      TYPE(*), DIMENSION(*) :: uhdr, udata, tgt_cntr, org_cntr,         &
     &  cmpl_cntr
      EXTERNAL :: hdr_hdl
      INTEGER (KIND=4) :: hndl, tgt, uhdr_len, ierror
      INTEGER (KIND=8) :: udata_len
      END SUBROUTINE
      END INTERFACE
      INTERFACE PLAPI_AMSENDV
      SUBROUTINE PLAPI_AMSENDV(hndl, tgt, hdr_hdl, uhdr, uhdr_len,      &
     &  org_vec, tgt_cntr, org_cntr, cmpl_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: hdr_hdl, uhdr, org_vec
!GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_cntr, org_cntr, cmpl_cntr
      TYPE(*), DIMENSION(*) :: hdr_hdl, uhdr, org_vec, tgt_cntr,        &
     &  org_cntr, cmpl_cntr
      INTEGER (KIND=4) :: hndl, tgt, uhdr_len, ierror
      END SUBROUTINE
      SUBROUTINE PLAPI_AMSENDV_PROC(hndl, tgt, hdr_hdl, uhdr, uhdr_len, &
     &  org_vec, tgt_cntr, org_cntr, cmpl_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: uhdr, org_vec, tgt_cntr
!GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr, cmpl_cntr
      TYPE(*), DIMENSION(*) :: uhdr, org_vec, tgt_cntr, org_cntr,       &
     &  cmpl_cntr
      EXTERNAL :: hdr_hdl
      INTEGER (KIND=4) :: hndl, tgt, uhdr_len, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_XFER(hndl, xfer_cmd, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: xfer_cmd
      TYPE(*), DIMENSION(*) :: xfer_cmd
      INTEGER (KIND=4) :: hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_PUT(hndl, tgt, len, tgt_addr, org_addr, tgt_cntr,&
     &  org_cntr, cmpl_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_addr, org_addr, tgt_cntr
!GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr, cmpl_cntr
      TYPE(*), DIMENSION(*) :: tgt_addr, org_addr, tgt_cntr, org_cntr,  &
     &  cmpl_cntr
      INTEGER (KIND=4) :: hndl, tgt, ierror
      INTEGER (KIND=8) :: len
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_GET(hndl, tgt, len, tgt_addr, org_addr, tgt_cntr,&
     &  org_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_addr, org_addr, tgt_cntr
!GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr
      TYPE(*), DIMENSION(*) :: tgt_addr, org_addr, tgt_cntr, org_cntr
      INTEGER (KIND=4) :: hndl, tgt, ierror
      INTEGER (KIND=8) :: len
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_PUTV(hndl, tgt, tgt_vec, org_vec, tgt_cntr,      &
     &  org_cntr, cmpl_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_vec, org_vec, tgt_cntr
!GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr, cmpl_cntr
      TYPE(*), DIMENSION(*) :: tgt_vec, org_vec, tgt_cntr, org_cntr,    &
     &  cmpl_cntr
      INTEGER (KIND=4) :: hndl, tgt, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_GETV(hndl, tgt, tgt_vec, org_vec, tgt_cntr,      &
     &  org_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_vec, org_vec, tgt_cntr
!GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr
      TYPE(*), DIMENSION(*) :: tgt_vec, org_vec, tgt_cntr, org_cntr
      INTEGER (KIND=4) :: hndl, tgt, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_RMW(hndl, op, tgt, tgt_var, in_val, prev_tgt_val,&
     &  org_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_var, in_val, prev_tgt_val
!GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr
      TYPE(*), DIMENSION(*) :: tgt_var, in_val, prev_tgt_val, org_cntr
      INTEGER (KIND=4) :: hndl, op, tgt, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_RMW64(hndl, op, tgt, tgt_var, in_val,            &
     &  prev_tgt_val, org_cntr, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_var, in_val, prev_tgt_val
!GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr
      TYPE(*), DIMENSION(*) :: tgt_var, in_val, prev_tgt_val, org_cntr
      INTEGER (KIND=4) :: hndl, op, tgt, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_SETCNTR(hndl, cntr, val, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: cntr
      TYPE(*), DIMENSION(*) :: cntr
      INTEGER (KIND=4) :: hndl, val, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_GETCNTR(hndl, cntr, val, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: cntr
      TYPE(*), DIMENSION(*) :: cntr
      INTEGER (KIND=4) :: hndl, val, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_WAITCNTR(hndl, cntr, val, cur_cntr_val, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: cntr, cur_cntr_val
      TYPE(*), DIMENSION(*) :: cntr, cur_cntr_val
      INTEGER (KIND=4) :: hndl, val, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_NOPOLL_WAIT(hndl, cntr, val, cur_cntr_val,       &
     &  ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: cntr, cur_cntr_val
      TYPE(*), DIMENSION(*) :: cntr, cur_cntr_val
      INTEGER (KIND=4) :: hndl, val, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_PROBE(hndl, ierror)
      INTEGER (KIND=4) :: hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_MSGPOLL(hndl, cnt, info, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: info
      TYPE(*), DIMENSION(*) :: info
      INTEGER (KIND=4) :: hndl, cnt, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_FENCE(hndl, ierror)
      INTEGER (KIND=4) :: hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_GFENCE(hndl, ierror)
      INTEGER (KIND=4) :: hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_PURGE_TOTASK(hndl, dest, ierror)
      INTEGER (KIND=4) :: hndl, dest, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_RESUME_TOTASK(hndl, dest, ierror)
      INTEGER (KIND=4) :: hndl, dest, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_UTIL(hndl, util_p, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: util_p
      TYPE(*), DIMENSION(*) :: util_p
      INTEGER (KIND=4) :: hndl, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_ADDRESS_INIT64(hndl, my_addr, add_tab, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: my_addr
      TYPE(*), DIMENSION(*) :: my_addr
      INTEGER (KIND=4) :: hndl, ierror
      INTEGER (KIND=8), DIMENSION(*) :: add_tab
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_SETCNTR_WSTATUS(hndl, cntr, val, dest,           &
     &    dest_status, ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: cntr, dest, dest_status
      TYPE(*), DIMENSION(*) :: cntr, dest, dest_status
      INTEGER (KIND=4) :: hndl, val, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_GROUP_CREATE(hndl, num_tasks, task_list, group,  &
     &    ierror)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: task_list, group
      TYPE(*), DIMENSION(*) :: task_list, group
      INTEGER (KIND=4) :: hndl, num_tasks, ierror
      END SUBROUTINE
      END INTERFACE
      INTERFACE
      SUBROUTINE PLAPI_GROUP_FREE(hndl, group, ierror)
      INTEGER (KIND=4) :: hndl, group, ierror
      END SUBROUTINE
      END INTERFACE
