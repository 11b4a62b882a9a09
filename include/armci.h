/*
 * armci.h - ARMCI one-sided communication for MPI programs, by Portolan.
 *
 * Source and binary compatible with ARMCI programs: same names, same layouts,
 * same values. What holds for every call:
 *
 * Addresses. Remote memory is named by a rank and an address in a segment made
 * by ARMCI_Malloc or one of its forms, as the owner's entry of the pointer
 * array gives it. Local memory may be any memory of the caller. In a put or an
 * accumulate the source is local, in a get the destination is.
 *
 * Ranks. "proc" is a rank of the world group (the communicator ARMCI was
 * initialised on), also for memory that belongs to a smaller group.
 *
 * Completion. A blocking put or accumulate returns when its source may be
 * reused, a blocking get when the data is there. ARMCI_Fence and
 * ARMCI_AllFence wait for completion at the target. Blocking operations of one
 * rank on one location take effect in program order. Non-blocking ones are
 * complete locally after their wait, remotely after a fence behind it.
 *
 * Zero length. An operation on no bytes succeeds and does nothing; its
 * addresses may be NULL, one past the end, or anything else.
 *
 * Errors. Calls that return int give ARMCI_SUCCESS or a PORTOLAN_ERR_ code and,
 * on an error, have moved nothing. Calls that cannot return a code report
 * through ARMCI_Error, which ends the job. portolan.h has the text of the last
 * error.
 *
 * Names. Every call marked (P) also exists with a PARMCI_ name that does the
 * same; a profiling tool may define the ARMCI_ name and call the other.
 */
#ifndef PORTOLAN_ARMCI_H
#define PORTOLAN_ARMCI_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Level of the ARMCI-on-MPI interface that this header is compatible with. */
#define ARMCI_MPI 3

/* Signed byte count, and its MPI datatype. */
typedef long armci_size_t;
#define ARMCII_MPI_SIZE_T MPI_LONG

/* ------------------------------------------------------------ error codes */

#ifndef ARMCI_SUCCESS
#define ARMCI_SUCCESS 0
#endif
#ifndef PORTOLAN_ERR_ARG            /* negative count or stride, NULL with bytes to move */
#define PORTOLAN_ERR_ARG 1
#endif
#ifndef PORTOLAN_ERR_RANK           /* rank outside the group */
#define PORTOLAN_ERR_RANK 2
#endif
#ifndef PORTOLAN_ERR_ADDRESS        /* address in no segment, or extent leaves the segment */
#define PORTOLAN_ERR_ADDRESS 3
#endif
#ifndef PORTOLAN_ERR_MEMORY         /* memory cannot be had */
#define PORTOLAN_ERR_MEMORY 4
#endif
#ifndef PORTOLAN_ERR_STATE          /* not initialised, finalised, or object freed */
#define PORTOLAN_ERR_STATE 5
#endif
#ifndef PORTOLAN_ERR_HANDLE         /* handle NULL, freed, damaged, or mixing kinds of operation */
#define PORTOLAN_ERR_HANDLE 6
#endif
#ifndef PORTOLAN_ERR_TYPE           /* unknown datatype or operation; place or length does not suit it */
#define PORTOLAN_ERR_TYPE 7
#endif
#ifndef PORTOLAN_ERR_MPI            /* the MPI library failed */
#define PORTOLAN_ERR_MPI 8
#endif
#ifndef PORTOLAN_ERR_INTERNAL       /* a fault of this library */
#define PORTOLAN_ERR_INTERNAL 9
#endif
#ifndef PORTOLAN_ERR_MISMATCH       /* ranks made different collective calls; the group is unusable */
#define PORTOLAN_ERR_MISMATCH 10
#endif

/* --------------------------------------------------------------- lifetime */

/*
 * Start ARMCI; collective. MPI must be running, else PORTOLAN_ERR_STATE.
 * Further calls nest: each needs its own ARMCI_Finalize. After the last
 * ARMCI_Finalize, ARMCI may be started again while MPI runs. (P)
 */
int   ARMCI_Init(void);
/* As ARMCI_Init; the arguments are left alone and may be NULL. (P) */
int   ARMCI_Init_args(int *argc, char ***argv);
/* As ARMCI_Init; states the MPI thread level that the program will use. (P) */
int   ARMCI_Init_thread(int armci_requested);
/* As above, collective over comm, whose ranks become the world group. (P) */
int   ARMCI_Init_thread_comm(int armci_requested, MPI_Comm comm);
/*
 * As ARMCI_Init, collective over comm, whose ranks, in its order, become the world group;
 * ranks outside do not call. While ARMCI runs, a communicator of other ranks is
 * PORTOLAN_ERR_STATE; a null one is PORTOLAN_ERR_ARG. (P)
 */
int   ARMCI_Init_mpi_comm(MPI_Comm comm);
/* Non-zero between the first ARMCI_Init and the last ARMCI_Finalize. (P) */
int   ARMCI_Initialized(void);

/*
 * Undo one ARMCI_Init; collective. The last one completes all operations and
 * frees all segments and mutexes. One too many, or one after MPI_Finalize,
 * does nothing and returns ARMCI_SUCCESS. (P)
 */
int   ARMCI_Finalize(void);
/* Release what outlives a killed process (shared memory). Local. For use
 * before a program ends abnormally. */
void  ARMCI_Cleanup(void);
/*
 * Print msg, code and the rank, clean up and end the job by MPI_Abort. The exit
 * status is code, or 1 where code would read as success to the system.
 */
void  ARMCI_Error(const char *msg, int code);

/* ----------------------------------------------------------------- memory */

/*
 * Make a segment: collective over the world group, size bytes on this rank
 * (sizes may differ). base_ptrs, one entry a rank, gets every rank's address,
 * aligned for any type; NULL for a rank that asked for zero bytes. An error of
 * one rank, such as PORTOLAN_ERR_MEMORY, is the result on all. (P)
 */
int   ARMCI_Malloc(void **base_ptrs, armci_size_t size);
/*
 * Free a segment: collective, each rank gives its own address, NULL where its
 * part was empty. Waits for operations on it. (P)
 */
int   ARMCI_Free(void *ptr);

/* Local memory for sources and destinations; NULL if it cannot be had. (P) */
void *ARMCI_Malloc_local(armci_size_t size);
/* Free it; local. NULL does nothing. (P) */
int   ARMCI_Free_local(void *ptr);

/* As ARMCI_Malloc and ARMCI_Free. The device name is a hint that may be NULL
 * or unknown; the memory is ordinary memory. (P) */
int   ARMCI_Malloc_memdev(void **ptr_arr, armci_size_t bytes, const char *device);
int   ARMCI_Free_memdev(void *ptr);

/*
 * Bracket loads and stores of the caller's own part of the segment that holds
 * ptr: after begin, what others completed is seen; after end, others see what
 * was stored. A ptr in no segment is an error that ends the job. (P)
 */
void  ARMCI_Access_begin(void *ptr);
void  ARMCI_Access_end(void *ptr);

/* Copy size bytes between two local buffers. */
void  ARMCI_Copy(void *src, void *dst, int size);

/* -------------------------------------------------------- synchronisation */

/* All operations of all ranks complete, then a barrier of the world group. (P) */
void  ARMCI_Barrier(void);
/* Wait until the caller's puts and accumulates to proc are complete there. (P) */
void  ARMCI_Fence(int proc);
/* The same for every rank. (P) */
void  ARMCI_AllFence(void);

/*
 * Tell proc that the caller's operations on its memory so far are complete there. Never
 * waits for proc. The result is how many notifications the caller has sent to proc, this
 * one counted; below 0 on an error. (P)
 */
int   armci_notify(int proc);
/*
 * Wait until as many notifications of proc are here as this call was made for proc, this
 * one counted; so each notification ends one wait, however early it came. *pval, unless
 * NULL, gets that number; the result is how many have come; below 0 on an error. (P)
 */
int   armci_notify_wait(int proc, int *pval);

/* ------------------------------------------------------ contiguous blocks */

/* Copy size bytes from the caller to target, or from target to the caller. (P) */
int   ARMCI_Put(void *src, void *dst, int size, int target);
int   ARMCI_Get(void *src, void *dst, int size, int target);

/*
 * Item types of an accumulate, dst[i] += scale * src[i]. scale points to one
 * item of that type; NULL is PORTOLAN_ERR_ARG. Each item is updated atomically
 * with respect to other accumulates and to ARMCI_Rmw. The length of a block
 * must be a multiple of the item's size, else PORTOLAN_ERR_TYPE. Neither src nor
 * dst nor strides need be aligned to the item; an item that is not is atomic
 * with respect to accumulates on the same address.
 */
enum  ARMCI_Acc_e {
  ARMCI_ACC_INT,                    /* int */
  ARMCI_ACC_LNG,                    /* long */
  ARMCI_ACC_FLT,                    /* float */
  ARMCI_ACC_DBL,                    /* double */
  ARMCI_ACC_CPL,                    /* complex: two floats */
  ARMCI_ACC_DCP,                    /* double complex: two doubles */
  ARMCI_ACC_DCPL = ARMCI_ACC_DCP    /* another spelling */
};

/* Accumulate bytes bytes. (P) */
int   ARMCI_Acc(int datatype, void *scale, void *src, void *dst, int bytes, int proc);

/*
 * Put, then store value in the int at flag on the same rank. Whoever sees the
 * value there sees the data. With no data the flag is still stored. (P)
 */
int   ARMCI_Put_flag(void *src, void *dst, int size, int *flag, int value, int proc);

/* --------------------------------------------------------- strided blocks */

/*
 * A block of count[0] bytes, repeated count[i] times at distance
 * stride_ar[i-1] bytes for i = 1 .. stride_levels. Strides are given for each
 * side, need be no multiples of one another, and may not be negative. A count
 * of zero at any level moves nothing. With stride_levels 0 the stride arrays
 * may be NULL. Up to 8 levels. (P)
 */
int   ARMCI_PutS(void *src_ptr, int src_stride_ar[/* stride_levels */],
                 void *dst_ptr, int dst_stride_ar[/* stride_levels */],
                 int count[/* stride_levels + 1 */], int stride_levels, int proc);
int   ARMCI_GetS(void *src_ptr, int src_stride_ar[/* stride_levels */],
                 void *dst_ptr, int dst_stride_ar[/* stride_levels */],
                 int count[/* stride_levels + 1 */], int stride_levels, int proc);
int   ARMCI_AccS(int datatype, void *scale,
                 void *src_ptr, int src_stride_ar[/* stride_levels */],
                 void *dst_ptr, int dst_stride_ar[/* stride_levels */],
                 int count[/* stride_levels + 1 */], int stride_levels, int proc);
/* Strided ARMCI_Put_flag. (P) */
int   ARMCI_PutS_flag(void *src_ptr, int src_stride_ar[/* stride_levels */],
                      void *dst_ptr, int dst_stride_ar[/* stride_levels */],
                      int count[/* stride_levels + 1 */], int stride_levels,
                      int *flag, int value, int proc);

/* Local packing: write_strided gathers the blocks at ptr into buf,
 * read_strided scatters buf to the blocks at ptr. */
void  armci_write_strided(void *ptr, int stride_levels, int stride_arr[], int count[], char *buf);
void  armci_read_strided(void *ptr, int stride_levels, int stride_arr[], int count[], char *buf);

/* The most stride_levels that a call takes. */
#define ARMCI_MAX_STRIDE_LEVEL 8

/*
 * The segments of strided memory one by one, innermost first, local or not: only their
 * places are computed. The structure belongs to the caller, who may copy it and need not
 * destroy it; it is to be read only.
 */
typedef struct {
  char *base_ptr;
  int   stride_levels;
  int   stride_arr[ARMCI_MAX_STRIDE_LEVEL];
  int   seg_count[ARMCI_MAX_STRIDE_LEVEL + 1];
  int   size;                       /* number of segments */
  int   pos;                        /* of the current one, from 0; size behind the last */
  int   itr[ARMCI_MAX_STRIDE_LEVEL];
} stride_info_t;

/* Begin at the first of the segments of seg_count[0] bytes each, repeated seg_count[i] times
 * at distance stride_arr[i-1]. Bad arguments end the job. */
void  armci_stride_info_init(stride_info_t *sinfo, void *base_ptr, int stride_levels,
                             const int *stride_arr, const int *seg_count);
void  armci_stride_info_destroy(stride_info_t *sinfo);
/* Go to the next segment; where there is no current one any more the job ends. */
void  armci_stride_info_next(stride_info_t *sinfo);
/* 1 while there is a current segment, else 0; two spellings. */
int   armci_stride_info_has_more(stride_info_t *sinfo);
int   armci_stride_info_has_next(stride_info_t *sinfo);
/* The place of the current segment, two spellings; its bytes; its distance in bytes from
 * the first one. */
void *armci_stride_info_seg_ptr(stride_info_t *sinfo);
void *armci_stride_info_get(stride_info_t *sinfo);
int   armci_stride_info_seg_size(stride_info_t *sinfo);
int   armci_stride_info_seg_off(stride_info_t *sinfo);
/* How many segments were visited; how many there are, three spellings. */
int   armci_stride_info_pos(stride_info_t *sinfo);
int   armci_stride_info_size(stride_info_t *sinfo);
int   armci_stride_info_count(stride_info_t *sinfo);
int   armci_stride_info_seg_count(stride_info_t *sinfo);

/* ------------------------------------------------------ vectors of blocks */

#if defined(__GNUC__)
#define PORTOLAN_UNION __extension__ union
#elif defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L)
#define PORTOLAN_UNION union
#endif

/* A set of blocks of one length. Each array has two names in the literature. */
typedef struct {
#ifdef PORTOLAN_UNION
  PORTOLAN_UNION { void **src_ptr_array; void **src_ptr_ar; };  /* where each block is read */
  PORTOLAN_UNION { void **dst_ptr_array; void **dst_ptr_ar; };  /* where it is written */
  int bytes;                                                    /* length of one block */
  PORTOLAN_UNION { int ptr_array_len; int ptr_ar_len; };        /* number of blocks */
#else
  void **src_ptr_array;
  void **dst_ptr_array;
  int    bytes;
  int    ptr_array_len;
#endif
} armci_giov_t;

/*
 * iov_len sets of blocks in one operation. Blocks of zero bytes, sets of zero
 * blocks and zero sets move nothing. Blocks may lie in several segments of
 * proc; overlapping destinations of a put have no defined order. (P)
 */
int   ARMCI_PutV(armci_giov_t *iov, int iov_len, int proc);
int   ARMCI_GetV(armci_giov_t *iov, int iov_len, int proc);
int   ARMCI_AccV(int datatype, void *scale, armci_giov_t *iov, int iov_len, int proc);

/* ----------------------------------------------------------- non-blocking */

/*
 * Names one non-blocking operation, or an aggregate of several. Its content
 * belongs to the library. A handle that no operation uses is complete,
 * whatever bytes it holds. A handle given to a second operation before its
 * wait first completes the earlier one, unless it is an aggregate. A call that
 * fails leaves nothing to wait for.
 */
typedef struct armci_hdl_s {
  int target;
  int aggregate;
} armci_hdl_t;

/* Make a handle unused. */
void  ARMCI_INIT_HANDLE(armci_hdl_t *hdl);
/*
 * Let the handle gather several operations, which complete together at its
 * wait. All are puts, all are gets, or all are accumulates: another kind is
 * refused with PORTOLAN_ERR_HANDLE. Unset ends that, after the wait.
 */
void  ARMCI_SET_AGGREGATE_HANDLE(armci_hdl_t *handle);
void  ARMCI_UNSET_AGGREGATE_HANDLE(armci_hdl_t *handle);

/*
 * As the blocking calls, but buffers stay in use until the handle's wait. With
 * hdl NULL (implicit handle) until ARMCI_WaitProc or ARMCI_WaitAll. (P)
 */
int   ARMCI_NbPut(void *src, void *dst, int bytes, int proc, armci_hdl_t *hdl);
int   ARMCI_NbGet(void *src, void *dst, int bytes, int proc, armci_hdl_t *hdl);
int   ARMCI_NbAcc(int datatype, void *scale, void *src, void *dst, int bytes, int proc,
                  armci_hdl_t *hdl);
int   ARMCI_NbPutS(void *src_ptr, int src_stride_ar[/* stride_levels */],
                   void *dst_ptr, int dst_stride_ar[/* stride_levels */],
                   int count[/* stride_levels + 1 */], int stride_levels, int proc,
                   armci_hdl_t *hdl);
int   ARMCI_NbGetS(void *src_ptr, int src_stride_ar[/* stride_levels */],
                   void *dst_ptr, int dst_stride_ar[/* stride_levels */],
                   int count[/* stride_levels + 1 */], int stride_levels, int proc,
                   armci_hdl_t *hdl);
int   ARMCI_NbAccS(int datatype, void *scale,
                   void *src_ptr, int src_stride_ar[/* stride_levels */],
                   void *dst_ptr, int dst_stride_ar[/* stride_levels */],
                   int count[/* stride_levels + 1 */], int stride_levels, int proc,
                   armci_hdl_t *hdl);
int   ARMCI_NbPutV(armci_giov_t *iov, int iov_len, int proc, armci_hdl_t *handle);
int   ARMCI_NbGetV(armci_giov_t *iov, int iov_len, int proc, armci_hdl_t *handle);
int   ARMCI_NbAccV(int datatype, void *scale, armci_giov_t *iov, int iov_len, int proc,
                   armci_hdl_t *handle);

/* Complete the handle's operations locally; the handle is unused afterwards.
 * NULL is PORTOLAN_ERR_HANDLE. (P) */
int   ARMCI_Wait(armci_hdl_t *hdl);
/* 0: complete, as after a wait; 1: in progress; else a code. Makes progress.
 * NULL is PORTOLAN_ERR_HANDLE. (P) */
int   ARMCI_Test(armci_hdl_t *hdl);
/* Complete all implicit operations to proc, or to every rank, locally. (P) */
int   ARMCI_WaitProc(int proc);
int   ARMCI_WaitAll(void);

/* ---------------------------------------------------------- single values */

/* Put one value. (P) */
int    ARMCI_PutValueInt(int src, void *dst, int proc);
int    ARMCI_PutValueLong(long src, void *dst, int proc);
int    ARMCI_PutValueFloat(float src, void *dst, int proc);
int    ARMCI_PutValueDouble(double src, void *dst, int proc);

/* The same, complete remotely after the handle's wait and a fence. (P) */
int    ARMCI_NbPutValueInt(int src, void *dst, int proc, armci_hdl_t *hdl);
int    ARMCI_NbPutValueLong(long src, void *dst, int proc, armci_hdl_t *hdl);
int    ARMCI_NbPutValueFloat(float src, void *dst, int proc, armci_hdl_t *hdl);
int    ARMCI_NbPutValueDouble(double src, void *dst, int proc, armci_hdl_t *hdl);

/* Get one value; an error ends the job. (P) */
int    ARMCI_GetValueInt(void *src, int proc);
long   ARMCI_GetValueLong(void *src, int proc);
float  ARMCI_GetValueFloat(void *src, int proc);
double ARMCI_GetValueDouble(void *src, int proc);

/* ----------------------------------------------- atomics and mutual exclusion */

enum ARMCI_Rmw_e {
  ARMCI_FETCH_AND_ADD,              /* int */
  ARMCI_FETCH_AND_ADD_LONG,         /* long */
  ARMCI_SWAP,                       /* int */
  ARMCI_SWAP_LONG                   /* long */
};

/*
 * Atomic read-modify-write of the int or long at prem on proc. Fetch-and-add
 * adds value and stores the old content in *ploc; swap exchanges *ploc and
 * *prem and ignores value. Complete at the target on return. prem must be
 * aligned, else PORTOLAN_ERR_TYPE. (P)
 */
int   ARMCI_Rmw(int op, void *ploc, void *prem, int value, int proc);

/*
 * Make count mutexes on this rank, numbered from 0; collective, count may be 0.
 * One set at a time: a second is PORTOLAN_ERR_STATE. (P)
 */
int   ARMCI_Create_mutexes(int count);
/* Free the set; collective. PORTOLAN_ERR_STATE if there is none. (P) */
int   ARMCI_Destroy_mutexes(void);
/* Take and release a mutex of proc. A mutex that does not exist, taking one
 * twice, and releasing one that is not held are errors that end the job. (P) */
void  ARMCI_Lock(int mutex, int proc);
void  ARMCI_Unlock(int mutex, int proc);

/* ----------------------------------------------------------------- groups */

/*
 * A set of ranks. comm is its communicator (MPI_COMM_NULL at ranks outside),
 * rank and size describe the caller's place (-1 and 0 outside). The tables
 * belong to the library.
 */
typedef struct {
  MPI_Comm  comm;
  MPI_Comm  noncoll_pgroup_comm;
  int      *grp_to_abs;
  int      *abs_to_grp;
  int       rank;
  int       size;
} ARMCI_Group;

/*
 * Make a group of the given ranks of the default group, or of a parent, in the
 * order listed. Collective over the parent. The error of a bad list (a rank
 * out of range or twice) ends the job.
 */
void ARMCI_Group_create(int grp_size, int *pid_list, ARMCI_Group *group_out);
void ARMCI_Group_create_child(int grp_size, int *pid_list, ARMCI_Group *group_out,
                              ARMCI_Group *group_parent);
/* Free a group; collective over its members, nothing elsewhere. */
void ARMCI_Group_free(ARMCI_Group *group);

/* The caller's rank in the group; -1 and a non-zero return if it is outside. */
int  ARMCI_Group_rank(ARMCI_Group *group, int *rank);
/* Number of members; 0 at ranks outside. */
void ARMCI_Group_size(ARMCI_Group *group, int *size);

/* The default group is the parent that ARMCI_Group_create uses: the world group
 * until set. It changes no other call. */
void ARMCI_Group_set_default(ARMCI_Group *group);
void ARMCI_Group_get_default(ARMCI_Group *group_out);
void ARMCI_Group_get_world(ARMCI_Group *group_out);

/* The group's communicator, for the program's own calls of MPI; MPI_COMM_NULL at ranks
 * outside. */
MPI_Comm armci_group_comm(ARMCI_Group *group);

/* World rank of a member; -1 if group_rank is out of range. */
int  ARMCI_Absolute_id(ARMCI_Group *group, int group_rank);

/* ARMCI_Malloc and ARMCI_Free over a group: collective over its members,
 * ptr_arr has one entry for each member. */
int  ARMCI_Malloc_group(void **ptr_arr, armci_size_t bytes, ARMCI_Group *group);
int  ARMCI_Free_group(void *ptr, ARMCI_Group *group);
/* As ARMCI_Malloc_memdev. (P) */
int  ARMCI_Malloc_group_memdev(void **ptr_arr, armci_size_t bytes, ARMCI_Group *group,
                               const char *device);

#ifdef __cplusplus
}
#endif

/* Messages and collective operations. */
#include <message.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- topology */

/* The one kind of domain: ranks that share memory (a node). */
enum armci_domain_e { ARMCI_DOMAIN_SMP };

typedef int armci_domain_t;

/* In all of these a negative domain id means the caller's own, and the result
 * is negative on an error. */

/* Number of ranks in a domain. */
int armci_domain_nprocs(armci_domain_t domain, int id);
/* Domain of a rank. */
int armci_domain_id(armci_domain_t domain, int glob_proc_id);
/* World rank of the loc_proc_id-th rank of a domain, in rank order. */
int armci_domain_glob_proc_id(armci_domain_t domain, int id, int loc_proc_id);
/* The caller's domain. */
int armci_domain_my_id(armci_domain_t domain);
/* Number of domains. */
int armci_domain_count(armci_domain_t domain);
/* 1 if proc is in the caller's domain, else 0. */
int armci_domain_same_id(armci_domain_t domain, int proc);

/* 1 if proc shares memory with the caller, else 0. */
int  ARMCI_Same_node(int proc);

/* 1 if ranks of a node reach each other's segments by loads and stores. */
int  ARMCI_Uses_shm(void);
int  ARMCI_Uses_shm_grp(ARMCI_Group *group);
/* Accepted for old programs; shared memory is limited by the system alone. */
void ARMCI_Set_shm_limit(unsigned long shmemlimit);

/* -------------------------------------- the same calls, for profiling tools */

int    PARMCI_Init(void);
int    PARMCI_Init_args(int *argc, char ***argv);
int    PARMCI_Init_thread(int armci_requested);
int    PARMCI_Init_thread_comm(int armci_requested, MPI_Comm comm);
int    PARMCI_Init_mpi_comm(MPI_Comm comm);
int    PARMCI_Initialized(void);
int    PARMCI_Finalize(void);

int    PARMCI_Malloc(void **base_ptrs, armci_size_t size);
int    PARMCI_Free(void *ptr);
void  *PARMCI_Malloc_local(armci_size_t size);
int    PARMCI_Free_local(void *ptr);
int    PARMCI_Malloc_memdev(void **ptr_arr, armci_size_t bytes, const char *device);
int    PARMCI_Malloc_group_memdev(void **ptr_arr, armci_size_t bytes, ARMCI_Group *group,
                                  const char *device);
int    PARMCI_Free_memdev(void *ptr);
void   PARMCI_Access_begin(void *ptr);
void   PARMCI_Access_end(void *ptr);

void   PARMCI_Barrier(void);
void   PARMCI_Fence(int proc);
void   PARMCI_AllFence(void);

int    PARMCI_Put(void *src, void *dst, int size, int target);
int    PARMCI_Get(void *src, void *dst, int size, int target);
int    PARMCI_Acc(int datatype, void *scale, void *src, void *dst, int bytes, int proc);
int    PARMCI_Put_flag(void *src, void *dst, int size, int *flag, int value, int proc);

int    PARMCI_PutS(void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
                   int count[], int stride_levels, int proc);
int    PARMCI_GetS(void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
                   int count[], int stride_levels, int proc);
int    PARMCI_AccS(int datatype, void *scale, void *src_ptr, int src_stride_ar[],
                   void *dst_ptr, int dst_stride_ar[], int count[], int stride_levels, int proc);
int    PARMCI_PutS_flag(void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
                        int count[], int stride_levels, int *flag, int value, int proc);

int    PARMCI_PutV(armci_giov_t *iov, int iov_len, int proc);
int    PARMCI_GetV(armci_giov_t *iov, int iov_len, int proc);
int    PARMCI_AccV(int datatype, void *scale, armci_giov_t *iov, int iov_len, int proc);

int    PARMCI_NbPut(void *src, void *dst, int bytes, int proc, armci_hdl_t *hdl);
int    PARMCI_NbGet(void *src, void *dst, int bytes, int proc, armci_hdl_t *hdl);
int    PARMCI_NbAcc(int datatype, void *scale, void *src, void *dst, int bytes, int proc,
                    armci_hdl_t *hdl);
int    PARMCI_NbPutS(void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
                     int count[], int stride_levels, int proc, armci_hdl_t *hdl);
int    PARMCI_NbGetS(void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
                     int count[], int stride_levels, int proc, armci_hdl_t *hdl);
int    PARMCI_NbAccS(int datatype, void *scale, void *src_ptr, int src_stride_ar[],
                     void *dst_ptr, int dst_stride_ar[], int count[], int stride_levels, int proc,
                     armci_hdl_t *hdl);
int    PARMCI_NbPutV(armci_giov_t *iov, int iov_len, int proc, armci_hdl_t *handle);
int    PARMCI_NbGetV(armci_giov_t *iov, int iov_len, int proc, armci_hdl_t *handle);
int    PARMCI_NbAccV(int datatype, void *scale, armci_giov_t *iov, int iov_len, int proc,
                     armci_hdl_t *handle);

int    PARMCI_Wait(armci_hdl_t *hdl);
int    PARMCI_Test(armci_hdl_t *hdl);
int    PARMCI_WaitProc(int proc);
int    PARMCI_WaitAll(void);

int    PARMCI_PutValueInt(int src, void *dst, int proc);
int    PARMCI_PutValueLong(long src, void *dst, int proc);
int    PARMCI_PutValueFloat(float src, void *dst, int proc);
int    PARMCI_PutValueDouble(double src, void *dst, int proc);
int    PARMCI_NbPutValueInt(int src, void *dst, int proc, armci_hdl_t *hdl);
int    PARMCI_NbPutValueLong(long src, void *dst, int proc, armci_hdl_t *hdl);
int    PARMCI_NbPutValueFloat(float src, void *dst, int proc, armci_hdl_t *hdl);
int    PARMCI_NbPutValueDouble(double src, void *dst, int proc, armci_hdl_t *hdl);
int    PARMCI_GetValueInt(void *src, int proc);
long   PARMCI_GetValueLong(void *src, int proc);
float  PARMCI_GetValueFloat(void *src, int proc);
double PARMCI_GetValueDouble(void *src, int proc);

int    PARMCI_Rmw(int op, void *ploc, void *prem, int value, int proc);
int    PARMCI_Create_mutexes(int count);
int    PARMCI_Destroy_mutexes(void);
void   PARMCI_Lock(int mutex, int proc);
void   PARMCI_Unlock(int mutex, int proc);

int    parmci_notify(int proc);
int    parmci_notify_wait(int proc, int *pval);

void   parmci_msg_barrier(void);
void   parmci_msg_group_barrier(ARMCI_Group *group);

#ifdef __cplusplus
}
#endif

#endif /* PORTOLAN_ARMCI_H */
