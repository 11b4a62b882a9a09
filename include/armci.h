/*
 * armci.h - ARMCI one-sided communication for MPI programs, by Portolan.
 *
 * Source and binary compatible with ARMCI programs: same names, same layouts, same values. The
 * following holds for every call:
 *
 * Addresses. A rank and an address in a segment identify remote memory. ARMCI_Malloc and its
 * variants make segments; the address lies in the owner's part, as given by its entry in the
 * pointer array. Local memory may be any memory of the caller. The source of a put or an accumulate
 * is local, and so is the destination of a get.
 *
 * Ranks. "proc" is a rank of the world group (the communicator on which ARMCI was initialised),
 * even for memory of a smaller group.
 *
 * Completion. A blocking put or accumulate returns when the source may be reused. A blocking get
 * returns when the data has arrived. ARMCI_Fence and ARMCI_AllFence wait for completion at the
 * target. Blocking operations of one rank on one location take effect in program order. A
 * non-blocking operation is complete locally after its wait, and complete at the target after a
 * fence that follows the wait.
 *
 * Zero length. An operation on no bytes succeeds and does nothing. Its addresses are not checked:
 * they may be NULL, one past the end, or any other value. Its rank must be valid.
 *
 * Errors. Unless its comment says otherwise, a call that returns int returns ARMCI_SUCCESS or a
 * PORTOLAN_ERR_ code. A call that returns an error has moved nothing. In a call that returns
 * nothing, an error ends the job with a message. portolan_last_error() in portolan.h returns the
 * text of the last error.
 *
 * Names. Every call marked (P) has an equivalent for profiling, PARMCI_X for ARMCI_X and parmci_x
 * for armci_x. A profiling tool may define the first name and call the equivalent.
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
#ifndef PORTOLAN_ERR_ARG            /* bad argument, such as a negative count, or NULL with bytes */
#define PORTOLAN_ERR_ARG 1
#endif
#ifndef PORTOLAN_ERR_RANK           /* rank outside the group */
#define PORTOLAN_ERR_RANK 2
#endif
#ifndef PORTOLAN_ERR_ADDRESS        /* address in no segment, or extent beyond its segment */
#define PORTOLAN_ERR_ADDRESS 3
#endif
#ifndef PORTOLAN_ERR_MEMORY         /* out of memory */
#define PORTOLAN_ERR_MEMORY 4
#endif
#ifndef PORTOLAN_ERR_STATE          /* not initialised, finalised, or object freed */
#define PORTOLAN_ERR_STATE 5
#endif
#ifndef PORTOLAN_ERR_HANDLE         /* handle NULL, freed or damaged, or kinds of operation mixed */
#define PORTOLAN_ERR_HANDLE 6
#endif
#ifndef PORTOLAN_ERR_TYPE           /* unknown datatype or operation; bad alignment or length */
#define PORTOLAN_ERR_TYPE 7
#endif
#ifndef PORTOLAN_ERR_MPI            /* the MPI library failed */
#define PORTOLAN_ERR_MPI 8
#endif
#ifndef PORTOLAN_ERR_INTERNAL       /* internal fault of this library */
#define PORTOLAN_ERR_INTERNAL 9
#endif
#ifndef PORTOLAN_ERR_MISMATCH       /* ranks made different collective calls; group unusable */
#define PORTOLAN_ERR_MISMATCH 10
#endif

/* --------------------------------------------------------------- lifetime */

/*
 * Starts ARMCI. Collective. Also starts MPI if it is not running. After MPI_Finalize, returns
 * PORTOLAN_ERR_STATE. Calls nest: each needs its own ARMCI_Finalize. After the last ARMCI_Finalize,
 * a program may start ARMCI again while MPI is running. If the start fails and the program goes on,
 * the next call that needs ARMCI ends the job. (P)
 */
int   ARMCI_Init(void);
/* Like ARMCI_Init. The arguments are not changed and may be NULL. (P) */
int   ARMCI_Init_args(int *argc, char ***argv);
/* Like ARMCI_Init. PORTOLAN_ERR_STATE if MPI's thread level is below armci_requested. (P) */
int   ARMCI_Init_thread(int armci_requested);
/* Like ARMCI_Init_thread, collective over comm, whose ranks become the world group. (P) */
int   ARMCI_Init_thread_comm(int armci_requested, MPI_Comm comm);
/*
 * Like ARMCI_Init, collective over comm. The ranks of comm become the world group, in the same
 * order. Other ranks do not call. Returns PORTOLAN_ERR_STATE if ARMCI is running and its world
 * group has different ranks or another order, and PORTOLAN_ERR_ARG if comm is MPI_COMM_NULL or an
 * intercommunicator. (P)
 */
int   ARMCI_Init_mpi_comm(MPI_Comm comm);
/* Returns non-zero between the first ARMCI_Init and the last ARMCI_Finalize. (P) */
int   ARMCI_Initialized(void);

/*
 * Undoes one ARMCI_Init. Collective. The last call completes all operations. If the program uses no
 * other interface of the library, such as LAPI, this call also frees all segments and mutexes, and
 * ends MPI if ARMCI_Init started it. If the program has called MPI_Init since, but not yet
 * MPI_Finalize, MPI ends in MPI_Finalize instead. An extra call, or a call after the end of MPI,
 * does nothing and returns ARMCI_SUCCESS. (P)
 */
int   ARMCI_Finalize(void);
/*
 * Flushes the output streams. Local. For use before a program ends abnormally. Shared memory needs
 * no cleanup, because it ends with its processes.
 */
void  ARMCI_Cleanup(void);
/*
 * Prints msg, code and the rank to standard error, and ends the job through MPI_Abort. The exit
 * status is code, or 1 if the low eight bits of code are zero, because the system would read them
 * as success.
 */
void  ARMCI_Error(const char *msg, int code);

/* ----------------------------------------------------------------- memory */

/*
 * Allocates a segment with size bytes on this rank; sizes may differ between ranks. Collective over
 * the world group. base_ptrs has one entry per rank and receives every rank's address, aligned for
 * any type, or NULL for a rank that asked for 0 bytes. An error of one rank, such as
 * PORTOLAN_ERR_MEMORY, is the result on all ranks. (P)
 */
int   ARMCI_Malloc(void **base_ptrs, armci_size_t size);
/*
 * Frees a segment of ARMCI_Malloc. Collective. Each rank passes its own address, or NULL if its
 * part is empty. Waits for operations on the segment. Also frees a segment of ARMCI_Malloc_group if
 * every member has bytes of it; otherwise ends the job, because NULL names no group. (P)
 */
int   ARMCI_Free(void *ptr);

/* Allocates local memory. Returns NULL on failure and for 0 bytes. (P) */
void *ARMCI_Malloc_local(armci_size_t size);
/* Frees memory of ARMCI_Malloc_local. Local. Does nothing if ptr is NULL. (P) */
int   ARMCI_Free_local(void *ptr);

/*
 * Like ARMCI_Malloc and ARMCI_Free. The device name is a hint and may be NULL or unknown. The
 * memory is ordinary memory. (P)
 */
int   ARMCI_Malloc_memdev(void **ptr_arr, armci_size_t bytes, const char *device);
int   ARMCI_Free_memdev(void *ptr);

/*
 * Bracket loads and stores to the caller's part of the segment that contains ptr. After begin, the
 * caller sees what other ranks have completed. After end, other ranks see what the caller has
 * stored. A ptr outside all segments is an error that ends the job. (P)
 */
void  ARMCI_Access_begin(void *ptr);
void  ARMCI_Access_end(void *ptr);

/* Copies size bytes between two local buffers, which may overlap. */
void  ARMCI_Copy(void *src, void *dst, int size);

/* -------------------------------------------------------- synchronisation */

/* Completes all operations of all ranks, then waits in a barrier over the world group. (P) */
void  ARMCI_Barrier(void);
/* Waits until the caller's puts and accumulates to proc are complete there. (P) */
void  ARMCI_Fence(int proc);
/* Waits until the caller's puts and accumulates to all ranks are complete. (P) */
void  ARMCI_AllFence(void);

/*
 * Notifies proc that all earlier operations of the caller on the memory of proc are complete there.
 * Does not wait for a matching armci_notify_wait. Returns the number of notifications that the
 * caller has sent to proc, including this one, or a negative error code. (P)
 */
int   armci_notify(int proc);
/*
 * Waits for the next notification of proc: the n-th call for proc waits for the n-th notification.
 * So each notification ends one wait, however early it arrives. Stores n in *pval unless pval is
 * NULL. Returns the number of notifications that have arrived from proc, or a negative error code.
 * (P)
 */
int   armci_notify_wait(int proc, int *pval);

/* ------------------------------------------------------ contiguous blocks */

/* Copy size bytes from the caller to target, or from target to the caller. (P) */
int   ARMCI_Put(void *src, void *dst, int size, int target);
int   ARMCI_Get(void *src, void *dst, int size, int target);

/*
 * Item types of an accumulate, dst[i] += scale * src[i]. scale points to one item of that type;
 * NULL is PORTOLAN_ERR_ARG. Each item is updated atomically with respect to other accumulates and
 * to ARMCI_Rmw. The length of a block must be a multiple of the item's size, or the call returns
 * PORTOLAN_ERR_TYPE. src, dst and strides need not be aligned to the item. An unaligned item is
 * atomic with respect to accumulates on the same address.
 */
enum  ARMCI_Acc_e {
  ARMCI_ACC_INT,                    /* int */
  ARMCI_ACC_LNG,                    /* long */
  ARMCI_ACC_FLT,                    /* float */
  ARMCI_ACC_DBL,                    /* double */
  ARMCI_ACC_CPL,                    /* complex: two floats */
  ARMCI_ACC_DCP,                    /* double complex: two doubles */
  ARMCI_ACC_DCPL = ARMCI_ACC_DCP    /* alternative spelling */
};

/* Accumulates bytes bytes. (P) */
int   ARMCI_Acc(int datatype, void *scale, void *src, void *dst, int bytes, int proc);

/*
 * Puts the data, then stores value in the int at flag on the same rank. A rank that sees the value
 * also sees the data. With size 0 the call still stores the flag. An unaligned flag is
 * PORTOLAN_ERR_TYPE. (P)
 */
int   ARMCI_Put_flag(void *src, void *dst, int size, int *flag, int value, int proc);

/* --------------------------------------------------------- strided blocks */

/*
 * Transfer a block of count[0] bytes, repeated count[i] times at a distance of stride_ar[i-1] bytes
 * for i = 1 .. stride_levels. Each side has its own strides. They need not be multiples of one
 * another and may not be negative. A count of zero at any level moves nothing. With stride_levels 0
 * the stride arrays may be NULL. stride_levels is at most 8. (P)
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

/*
 * Local packing. armci_write_strided gathers the blocks at ptr into buf. armci_read_strided
 * scatters buf to the blocks at ptr.
 */
void  armci_write_strided(void *ptr, int stride_levels, int stride_arr[], int count[], char *buf);
void  armci_read_strided(void *ptr, int stride_levels, int stride_arr[], int count[], char *buf);

/* The largest stride_levels of a call. */
#define ARMCI_MAX_STRIDE_LEVEL 8

/*
 * Iterates over the segments of strided memory, its contiguous blocks, innermost level first. The
 * memory may be local or remote, because the calls only compute addresses. The caller owns the
 * structure, may copy it, and need not destroy it. Its members are read-only.
 */
typedef struct {
  char *base_ptr;
  int   stride_levels;
  int   stride_arr[ARMCI_MAX_STRIDE_LEVEL];
  int   seg_count[ARMCI_MAX_STRIDE_LEVEL + 1];
  int   size;                       /* number of segments */
  int   pos;                        /* index of the current one, from 0; size after the last */
  int   itr[ARMCI_MAX_STRIDE_LEVEL];
} stride_info_t;

/*
 * Starts at the first segment. Segments have seg_count[0] bytes and are repeated seg_count[i] times
 * at a distance of stride_arr[i-1] bytes. Invalid arguments end the job.
 */
void  armci_stride_info_init(stride_info_t *sinfo, void *base_ptr, int stride_levels,
                             const int *stride_arr, const int *seg_count);
void  armci_stride_info_destroy(stride_info_t *sinfo);
/* Advances to the next segment. Ends the job if there is no current segment. */
void  armci_stride_info_next(stride_info_t *sinfo);
/* Return 1 while there is a current segment, else 0. The two are equivalent. */
int   armci_stride_info_has_more(stride_info_t *sinfo);
int   armci_stride_info_has_next(stride_info_t *sinfo);
/*
 * Address of the current segment (two spellings), its size in bytes, and its distance in bytes from
 * the first segment.
 */
void *armci_stride_info_seg_ptr(stride_info_t *sinfo);
void *armci_stride_info_get(stride_info_t *sinfo);
int   armci_stride_info_seg_size(stride_info_t *sinfo);
int   armci_stride_info_seg_off(stride_info_t *sinfo);
/* Number of segments before the current one; number of all segments (three spellings). */
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

/* A set of blocks of equal length. Some members have two names: programs use either. */
typedef struct {
#ifdef PORTOLAN_UNION
  PORTOLAN_UNION { void **src_ptr_array; void **src_ptr_ar; };  /* source of each block */
  PORTOLAN_UNION { void **dst_ptr_array; void **dst_ptr_ar; };  /* destination of each block */
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
 * Transfer iov_len sets of blocks in one operation. Blocks of 0 bytes, sets of 0 blocks and 0 sets
 * move nothing. Blocks may lie in several segments of proc. If destinations of a put overlap, the
 * order of the writes is undefined. (P)
 */
int   ARMCI_PutV(armci_giov_t *iov, int iov_len, int proc);
int   ARMCI_GetV(armci_giov_t *iov, int iov_len, int proc);
int   ARMCI_AccV(int datatype, void *scale, armci_giov_t *iov, int iov_len, int proc);

/* ----------------------------------------------------------- non-blocking */

/*
 * Identifies a non-blocking operation, or an aggregate of several. The library owns the members, and
 * uses no bytes beyond them, so programs that were compiled with a longer handle also work. A handle
 * that no operation uses counts as complete, whatever bytes it contains. Passing a handle to a
 * second operation before its wait first completes the earlier operation, unless the handle is an
 * aggregate. A call that fails adds no operation to the handle.
 */
typedef struct armci_hdl_s {
  int target;
  int aggregate;
} armci_hdl_t;

/* Marks a handle as unused. */
void  ARMCI_INIT_HANDLE(armci_hdl_t *hdl);
/*
 * ARMCI_SET_AGGREGATE_HANDLE makes a handle collect several operations, which complete together at
 * its wait. They must be all puts, all gets or all accumulates: a call of another kind returns
 * PORTOLAN_ERR_HANDLE. ARMCI_SET_AGGREGATE_HANDLE has no effect on an aggregate handle, and ends
 * the job if the handle is an ordinary one with unfinished operations.
 * ARMCI_UNSET_AGGREGATE_HANDLE makes the handle an ordinary one. Its unfinished operations complete
 * at its wait.
 */
void  ARMCI_SET_AGGREGATE_HANDLE(armci_hdl_t *handle);
void  ARMCI_UNSET_AGGREGATE_HANDLE(armci_hdl_t *handle);

/*
 * Like the blocking calls, but the buffers stay in use until the handle's wait. If hdl is NULL
 * (implicit handle), they stay in use until ARMCI_WaitProc or ARMCI_WaitAll. (P)
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

/*
 * Completes the handle's operations locally. The handle is then unused. NULL is
 * PORTOLAN_ERR_HANDLE. (P)
 */
int   ARMCI_Wait(armci_hdl_t *hdl);
/*
 * Makes progress and returns 0 if the operations are complete, as after a wait, or 1 if they are in
 * progress. Returns an error code of at least 2 on failure, PORTOLAN_ERR_HANDLE for NULL. (P)
 */
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

/*
 * Put one value without blocking. The value is complete at the target after the handle's wait and a
 * fence. If hdl is NULL, the calls are like the blocking ones. (P)
 */
int    ARMCI_NbPutValueInt(int src, void *dst, int proc, armci_hdl_t *hdl);
int    ARMCI_NbPutValueLong(long src, void *dst, int proc, armci_hdl_t *hdl);
int    ARMCI_NbPutValueFloat(float src, void *dst, int proc, armci_hdl_t *hdl);
int    ARMCI_NbPutValueDouble(double src, void *dst, int proc, armci_hdl_t *hdl);

/* Get one value. An error ends the job. (P) */
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
 * Atomically reads and updates the int or long at prem on proc. Fetch-and-add adds value and stores
 * the old content in *ploc. Swap exchanges *ploc and *prem and ignores value. The operation is
 * complete at the target on return. An unaligned prem is PORTOLAN_ERR_TYPE. (P)
 */
int   ARMCI_Rmw(int op, void *ploc, void *prem, int value, int proc);

/*
 * Creates count mutexes on this rank, numbered from 0. Collective; count may be 0. Only one set can
 * exist at a time: creating another returns PORTOLAN_ERR_STATE. (P)
 */
int   ARMCI_Create_mutexes(int count);
/* Frees the set. Collective. Returns PORTOLAN_ERR_STATE if there is none. (P) */
int   ARMCI_Destroy_mutexes(void);
/*
 * Acquire and release a mutex of proc. The call ends the job if the mutex does not exist, if the
 * thread that acquires the mutex already holds it, or if the rank that releases the mutex does not
 * hold it. (P)
 */
void  ARMCI_Lock(int mutex, int proc);
void  ARMCI_Unlock(int mutex, int proc);

/* ----------------------------------------------------------------- groups */

/*
 * A set of ranks. comm is its communicator, or MPI_COMM_NULL on ranks outside the group. rank and
 * size are the caller's group rank and the number of members, or -1 and 0 outside the group. The
 * library owns the tables.
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
 * Create a group of the listed ranks of the default group, or of a parent group, in the order of
 * the list. Collective over the listed ranks; other ranks of the parent may call and get a group
 * without members. An invalid list (a rank out of range or listed twice) ends the job.
 */
void ARMCI_Group_create(int grp_size, int *pid_list, ARMCI_Group *group_out);
void ARMCI_Group_create_child(int grp_size, int *pid_list, ARMCI_Group *group_out,
                              ARMCI_Group *group_parent);
/* Frees a group. Collective over its members. Does nothing on other ranks. */
void ARMCI_Group_free(ARMCI_Group *group);

/* Stores the caller's rank in the group. Outside the group, stores -1 and returns non-zero. */
int  ARMCI_Group_rank(ARMCI_Group *group, int *rank);
/* Stores the number of members, or 0 on ranks outside the group. */
void ARMCI_Group_size(ARMCI_Group *group, int *size);

/*
 * The default group is the parent group of ARMCI_Group_create and affects no other call. It is the
 * world group until the program sets another one, and again after the program frees that one. The
 * caller of ARMCI_Group_set_default must be a member of the group.
 */
void ARMCI_Group_set_default(ARMCI_Group *group);
void ARMCI_Group_get_default(ARMCI_Group *group_out);
void ARMCI_Group_get_world(ARMCI_Group *group_out);

/*
 * Returns the group's communicator for the program's own MPI calls, or MPI_COMM_NULL on ranks
 * outside the group.
 */
MPI_Comm armci_group_comm(ARMCI_Group *group);

/* Returns the world rank of a member, or -1 if group_rank is out of range. */
int  ARMCI_Absolute_id(ARMCI_Group *group, int group_rank);

/*
 * ARMCI_Malloc and ARMCI_Free over a group. Collective over its members. ptr_arr has one entry per
 * member. A member without bytes passes NULL to ARMCI_Free_group.
 */
int  ARMCI_Malloc_group(void **ptr_arr, armci_size_t bytes, ARMCI_Group *group);
int  ARMCI_Free_group(void *ptr, ARMCI_Group *group);
/*
 * Like ARMCI_Malloc_group, with the device hint of ARMCI_Malloc_memdev. ARMCI_Free_group frees the
 * segment. (P)
 */
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

/* The only kind of domain: ranks that share memory (a node). */
enum armci_domain_e { ARMCI_DOMAIN_SMP };

typedef int armci_domain_t;

/*
 * A negative domain id means the caller's domain. On an error, the calls for domains return a
 * negative error code.
 */

/* Number of ranks in a domain. */
int armci_domain_nprocs(armci_domain_t domain, int id);
/* Domain of a rank. */
int armci_domain_id(armci_domain_t domain, int glob_proc_id);
/* World rank of the rank with index loc_proc_id, from 0, in a domain, in rank order. */
int armci_domain_glob_proc_id(armci_domain_t domain, int id, int loc_proc_id);
/* The caller's domain. */
int armci_domain_my_id(armci_domain_t domain);
/* Number of domains. */
int armci_domain_count(armci_domain_t domain);
/* 1 if proc is in the caller's domain, else 0. */
int armci_domain_same_id(armci_domain_t domain, int proc);

/* 1 if proc shares memory with the caller, else 0. */
int  ARMCI_Same_node(int proc);

/* 1 if the ranks of a node access each other's segments with loads and stores, else 0. */
int  ARMCI_Uses_shm(void);
int  ARMCI_Uses_shm_grp(ARMCI_Group *group);
/* Accepted for compatibility. Only the system limits shared memory. */
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
