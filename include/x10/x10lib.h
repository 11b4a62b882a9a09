/*
 * x10/x10lib.h - the X10Lib interface for C and C++, by Portolan.
 *
 * Every call of X10Lib 0.1 exists in C99 (x10_*) and in C++11 (namespace x10lib). The C++ names are
 * listed at the end and are equivalent to the C ones. The following holds for every call:
 *
 * Places. A place is an MPI process, numbered as in the communicator on which the library was first
 * started, normally MPI_COMM_WORLD. A global reference consists of a place and any address in that
 * place: of a global, on the stack or on the heap. References to the caller's own place are always
 * valid.
 *
 * Errors. Calls return X10_OK or X10_ERR_LAPI. The reason goes to standard error, and
 * x10_last_error returns it. A call with invalid arguments moves nothing. An address that its place
 * has not mapped is an invalid argument; if only part of the bytes is mapped, that part may have
 * moved. Invalid addresses of the caller's own memory cause a fault, as in memcpy. Before x10_init
 * and after x10_finalize every call fails, except x10_init, x10_last_error, x10_get_value_status
 * and the calls that make and read references. docs/errors-x10.md lists the errors of each call.
 *
 * Overlap. If contiguous bytes and their copy overlap, which is possible in the caller's own place,
 * the result is that of memmove. Addresses need no alignment.
 *
 * Zero length. A transfer of no bytes succeeds and does nothing. Its addresses may have any value,
 * including NULL, but its place must exist.
 *
 * Completion. A blocking get returns when the bytes have arrived. A blocking put returns when the
 * bytes are at the target. A non-blocking transfer is issued on a switch, see below. Blocking
 * transfers of one thread to one place take effect in order.
 *
 * Functions at other places. An async identifies a function by its address. The address travels as
 * the program or library that contains it, and the offset in it. So position-independent programs
 * and libraries may be loaded at different addresses in each place. Every place must run the same
 * build of that program or library and keep it loaded. A registered function travels as its index
 * instead. If the function argument is itself an index (a number from 1 to X10_TABLE_SIZE, cast),
 * it refers to the target's table. A function that the target does not have ends the job.
 *
 * Rules for functions that an async runs. Each place runs one at a time, on any thread that makes
 * progress, even while the place computes. The functions must be short and must not wait: a call
 * that would wait, or that is collective, returns X10_ERR_LAPI. They may spawn asyncs. They own the
 * arguments until they return. C++ exceptions must not leave them.
 */
#ifndef PORTOLAN_X10LIB_H
#define PORTOLAN_X10LIB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------- codes, limits */

#define X10_OK 0
#define X10_ERR_LAPI 1              /* any error of the layer below, or an invalid argument */

#define X10_MAX_ASYNC_ARGS 32       /* maximum number of arguments of one async */
#define X10_TABLE_SIZE 1024         /* indices of registered functions are 1 to this */
#define X10_MAX_AGG_SIZE 1024       /* default of X10_AGG_LIMIT */
#define X10_MAX_LEVELS 8            /* maximum number of levels of a strided transfer */
#define X10_MAX_NODE_NAME 256       /* bytes of X10_NODE_NAME, including the final 0 */

/* ------------------------------------------------------------------- types */

typedef int32_t place_t;
typedef int64_t async_arg_t;

/* A function that an async runs. Receives the arguments and their number. */
typedef void async_func_t(async_arg_t *args, int n);
typedef async_func_t *x10_async_handler_t;

/* A global reference. */
typedef struct {
  place_t place;
  unsigned long addr;
} x10_gas_ref_t;

/*
 * Blocks of a vector transfer: count blocks of bytes bytes each. The references may name different
 * places. They are the source of a get; the local addresses are the source of a put.
 */
typedef struct {
  x10_gas_ref_t *remote;
  void **local;
  int bytes;
  int count;
} x10_giov_ref_t;

/* Identifies a switch. NULL means no switch. */
typedef struct x10_switch *x10_switch_t;

/*
 * Queries of x10_getenv. "set" marks those that x10_setenv can change. A setting marked "stored"
 * has no effect beyond its value.
 */
typedef enum {
  /* LAPI's queries, with LAPI's values. */
  X10_TASK_ID = 0,                  /* this place */
  X10_NUM_TASKS = 1,                /* number of places */
  X10_MAX_UHDR_SZ = 2,              /* maximum length of a message header, in bytes */
  X10_MAX_DATA_SZ = 3,              /* maximum number of bytes of one transfer */
  X10_ERROR_CHK = 4,                /* set: 0 or 1, stored; arguments are always checked */
  X10_TIMEOUT = 5,                  /* set: seconds, stored; no call times out, see
                                       PORTOLAN_WATCHDOG */
  X10_MIN_TIMEOUT = 6,              /* minimum and maximum of X10_TIMEOUT */
  X10_MAX_TIMEOUT = 7,
  X10_INTERRUPT_SET = 8,            /* set: the negation of X10_POLLING_SET */
  X10_MAX_PORTS = 9,                /* communication contexts: 1 */
  X10_MAX_PKT_SZ = 10,              /* bytes of one message to any place */
  X10_NUM_REX_BUFS = 11,            /* retransmission buffers and their size: 0, because */
  X10_REX_BUF_SZ = 12,              /* no message is lost */
  X10_LOC_ADDRTBL_SZ = 13,          /* X10_TABLE_SIZE */
  X10_EPOCH_NUM = 14,               /* successful calls of x10_init in this process */
  X10_USE_THRESH = 15,              /* whether messages are throttled: 1 */
  X10_RCV_FIFO_SIZE = 16,           /* bytes that one place may have in flight to another */
  X10_MAX_ATOM_SIZE = 17,           /* bytes of the largest value calls: 8 */
  X10_BUF_CP_SIZE = 18,             /* longest message that is copied on sending */
  X10_MAX_PKTS_OUT = 19,            /* X10_RCV_FIFO_SIZE / X10_MAX_PKT_SZ */
  X10_ACK_THRESHOLD = 20,           /* set: messages per acknowledgement, stored; the transport
                                       chooses its own number */
  X10_QUERY_SHM_ENABLED = 21,       /* 1 if this place shares its node with others */
  X10_QUERY_SHM_NUM_TASKS = 22,     /* places on this node, including this one */
  X10_QUERY_SHM_TASKS = 23,         /* ret_val: an array for the numbers of these places */
  X10_QUERY_STATISTICS = 24,        /* ret_val: an x10_statistics_t, cast to int * */
  X10_PRINT_STATISTICS = 25,        /* prints the statistics; ret_val may be NULL */
  X10_QUERY_SHM_STATISTICS = 26,    /* an error, like the next one, because X10Lib counts */
  X10_QUERY_LOCAL_SEND_STATISTICS = 27, /* all transfers together */
  X10_BULK_XFER = 28,               /* bulk transfers by RDMA: 0, because there are none */
  X10_BULK_MIN_MSG_SIZE = 29,       /* for any length: INT_MAX */
  X10_RDMA_REMOTE_RCXT_AVAIL = 30,  /* so there are no contexts or queue pairs: 0 */
  X10_RDMA_REMOTE_RCXT_TOTAL = 31,
  X10_RC_MAX_QP = 32,
  X10_RC_QP_IN_USE = 33,
  X10_RC_QP_USE_LRU = 34,
  X10_RC_QP_USE_LMC = 35,
  X10_RC_QP_INIT_SETUP = 36,
  /* X10Lib's own queries. */
  X10_PLACE_ID = 100,               /* this place */
  X10_NUM_PLACES = 101,             /* number of places */
  X10_NODE_NAME = 102,              /* ret_val: X10_MAX_NODE_NAME chars, cast to int * */
  X10_NODE_ID = 103,                /* number of this place's node, from 0 */
  X10_POLLING_SET = 104,            /* set: 1 if the program polls, 0 if it computes for long
                                       periods; stored. Progress is made in both cases. Initially 1
                                       if no thread makes progress */
  X10_AGG_LIMIT = 105               /* set: number of items for one place that are collected before
                                       they are sent, 1 to 8192, for functions that were not
                                       aggregated before. Initially the environment variable
                                       X10_MAX_AGG_SIZE. Items with many arguments are sent earlier,
                                       as many as a message holds */
#ifndef LAPI_H
  ,
  /*
   * LAPI's own names. If lapi.h is included too, before or after this header, they belong to
   * lapi_query_t. x10_getenv and x10_setenv accept them either way.
   */
  TASK_ID = X10_TASK_ID,
  NUM_TASKS = X10_NUM_TASKS,
  MAX_UHDR_SZ = X10_MAX_UHDR_SZ,
  MAX_DATA_SZ = X10_MAX_DATA_SZ,
  ERROR_CHK = X10_ERROR_CHK,
  TIMEOUT = X10_TIMEOUT,
  MIN_TIMEOUT = X10_MIN_TIMEOUT,
  MAX_TIMEOUT = X10_MAX_TIMEOUT,
  INTERRUPT_SET = X10_INTERRUPT_SET,
  MAX_PORTS = X10_MAX_PORTS,
  MAX_PKT_SZ = X10_MAX_PKT_SZ,
  NUM_REX_BUFS = X10_NUM_REX_BUFS,
  REX_BUF_SZ = X10_REX_BUF_SZ,
  LOC_ADDRTBL_SZ = X10_LOC_ADDRTBL_SZ,
  EPOCH_NUM = X10_EPOCH_NUM,
  USE_THRESH = X10_USE_THRESH,
  RCV_FIFO_SIZE = X10_RCV_FIFO_SIZE,
  MAX_ATOM_SIZE = X10_MAX_ATOM_SIZE,
  BUF_CP_SIZE = X10_BUF_CP_SIZE,
  MAX_PKTS_OUT = X10_MAX_PKTS_OUT,
  ACK_THRESHOLD = X10_ACK_THRESHOLD,
  QUERY_SHM_ENABLED = X10_QUERY_SHM_ENABLED,
  QUERY_SHM_NUM_TASKS = X10_QUERY_SHM_NUM_TASKS,
  QUERY_SHM_TASKS = X10_QUERY_SHM_TASKS,
  QUERY_STATISTICS = X10_QUERY_STATISTICS,
  PRINT_STATISTICS = X10_PRINT_STATISTICS,
  QUERY_SHM_STATISTICS = X10_QUERY_SHM_STATISTICS,
  QUERY_LOCAL_SEND_STATISTICS = X10_QUERY_LOCAL_SEND_STATISTICS,
  BULK_XFER = X10_BULK_XFER,
  BULK_MIN_MSG_SIZE = X10_BULK_MIN_MSG_SIZE,
  RDMA_REMOTE_RCXT_AVAIL = X10_RDMA_REMOTE_RCXT_AVAIL,
  RDMA_REMOTE_RCXT_TOTAL = X10_RDMA_REMOTE_RCXT_TOTAL,
  RC_MAX_QP = X10_RC_MAX_QP,
  RC_QP_IN_USE = X10_RC_QP_IN_USE,
  RC_QP_USE_LRU = X10_RC_QP_USE_LRU,
  RC_QP_USE_LMC = X10_RC_QP_USE_LMC,
  RC_QP_INIT_SETUP = X10_RC_QP_INIT_SETUP,
  LAST_QUERY = 37
#define PORTOLAN_X10_HAS_LAPI_QUERIES
#endif
} x10_query_t;

/* Statistics of this place since x10_init. */
typedef struct {
  unsigned long gets;               /* get calls that moved bytes, and their bytes */
  unsigned long bytes_got;
  unsigned long puts;
  unsigned long bytes_put;
  unsigned long spawned;            /* asyncs sent without aggregation */
  unsigned long ran;                /* asyncs that ran here, from any place */
  unsigned long batches;            /* messages with aggregated asyncs that arrived */
} x10_statistics_t;

/* ------------------------------------------------------------- start and end */

/*
 * Starts X10Lib, and MPI if it is not running. Collective. Registers handlers[i], for i below n, at
 * index i + 1; registers nothing if handlers is NULL or n is not positive. All places have
 * registered their handlers before any async arrives. If one place passes more than X10_TABLE_SIZE
 * handlers, the call fails at all places.
 */
int x10_init(x10_async_handler_t *handlers, int n);

/*
 * Completes everything, as x10_gfence does, and ends X10Lib. Collective. MPI keeps running unless
 * x10_init started it; while MPI runs, x10_init may be called again. No other thread may be in a
 * call of X10Lib.
 */
int x10_finalize(void);

/*
 * Returns the text of this thread's last error, or "" if there was none. The text is valid until
 * the thread's next error.
 */
const char *x10_last_error(void);

/* ---------------------------------------------------------- global references */

x10_gas_ref_t x10_make_gas_ref(place_t place, void *addr);
place_t x10_gas2place(x10_gas_ref_t ref);
void *x10_gas2addr(x10_gas_ref_t ref);

/* ------------------------------------------------------------------- switches */

/*
 * A switch counts transfers in flight. A transfer subtracts one when it is issued (a vector
 * transfer one for each place, a long transfer one for each part) and adds one back when it is
 * complete. A get is complete when the bytes have arrived, a put when they are at the target. One
 * switch may serve any number of transfers. The program may change the count too.
 */
x10_switch_t x10_alloc_switch(void);                    /* value 0; NULL on an error */
int x10_free_switch(x10_switch_t hndl);                 /* fails if transfers on it are in flight */
int x10_decrement_switch(x10_switch_t hndl);            /* subtracts one */
int x10_increment_switch(x10_switch_t hndl);            /* adds one */
int x10_switch_value(x10_switch_t hndl, int *value);

/* Waits until the value of the switch is at least 0. Fails if a transfer on the switch failed. */
int x10_wait(x10_switch_t hndl);
int x10_next_on_switch(x10_switch_t hndl);              /* same as x10_wait */
/* Sets *done to 1 if x10_wait would return immediately, else to 0. */
int x10_test(x10_switch_t hndl, int *done);

/* ------------------------------------------------------------ contiguous bytes */

int x10_get(x10_gas_ref_t src, void *dest, int n);
int x10_get_nb(x10_gas_ref_t src, void *dest, int n, x10_switch_t hndl);
int x10_put(void *src, x10_gas_ref_t dest, int n);
int x10_put_nb(void *src, x10_gas_ref_t dest, int n, x10_switch_t hndl);

/* --------------------------------------------------------------------- vectors */

/* dsrc has len elements. */
int x10_get_v(x10_giov_ref_t *dsrc, int len);
int x10_get_v_nb(x10_giov_ref_t *dsrc, int len, x10_switch_t hndl);
int x10_put_v(x10_giov_ref_t *dsrc, int len);
int x10_put_v_nb(x10_giov_ref_t *dsrc, int len, x10_switch_t hndl);

/* --------------------------------------------------------------------- strided */

/*
 * A strided transfer moves count[0] contiguous bytes, repeated count[1] times at a distance of
 * stride[0] bytes, all of that count[2] times at a distance of stride[1], and so on. count has
 * levels + 1 elements, and the stride arrays have levels elements. levels is at most
 * X10_MAX_LEVELS. Strides may be negative.
 *
 * The X10Lib specification uses the names of the blocking calls for the non-blocking ones, with a
 * switch as the seventh argument. That form works too.
 */
int x10_get_s(x10_gas_ref_t src, int src_stride[], void *dest, int dest_stride[], int count[],
              int levels);
int x10_get_s_nb(x10_gas_ref_t src, int src_stride[], void *dest, int dest_stride[], int count[],
                 int levels, x10_switch_t hndl);
int x10_put_s(void *src, int src_stride[], x10_gas_ref_t dest, int dest_stride[], int count[],
              int levels);
int x10_put_s_nb(void *src, int src_stride[], x10_gas_ref_t dest, int dest_stride[], int count[],
                 int levels, x10_switch_t hndl);

/* ---------------------------------------------------------------------- values */

/*
 * A get of a value cannot return an error code. On failure it returns 0, and x10_get_value_status
 * returns X10_ERR_LAPI until this thread's next get of a value.
 */
int x10_get_value_int(x10_gas_ref_t src);
long x10_get_value_long(x10_gas_ref_t src);
float x10_get_value_float(x10_gas_ref_t src);
double x10_get_value_double(x10_gas_ref_t src);
int x10_get_value_status(void);

int x10_put_value_int(int val, x10_gas_ref_t dest);
int x10_put_value_long(long val, x10_gas_ref_t dest);
int x10_put_value_float(float val, x10_gas_ref_t dest);
int x10_put_value_double(double val, x10_gas_ref_t dest);
int x10_put_value_int_nb(int val, x10_gas_ref_t dest, x10_switch_t hndl);
int x10_put_value_long_nb(long val, x10_gas_ref_t dest, x10_switch_t hndl);
int x10_put_value_float_nb(float val, x10_gas_ref_t dest, x10_switch_t hndl);
int x10_put_value_double_nb(double val, x10_gas_ref_t dest, x10_switch_t hndl);

/* Short names of these calls. */
int x10_put_int(int val, x10_gas_ref_t dest);
int x10_put_long(long val, x10_gas_ref_t dest);
int x10_put_float(float val, x10_gas_ref_t dest);
int x10_put_double(double val, x10_gas_ref_t dest);
int x10_put_int_nb(int val, x10_gas_ref_t dest, x10_switch_t hndl);
int x10_put_long_nb(long val, x10_gas_ref_t dest, x10_switch_t hndl);
int x10_put_float_nb(float val, x10_gas_ref_t dest, x10_switch_t hndl);
int x10_put_double_nb(double val, x10_gas_ref_t dest, x10_switch_t hndl);

/* -------------------------------------------------------- order, exclusion */

/*
 * Waits until everything that this place has issued is complete at its target: blocking and
 * non-blocking transfers are done, and asyncs, including aggregated ones, have run.
 */
int x10_fence(void);

/*
 * Like x10_fence, for all places. Collective. On return, asyncs that other asyncs have spawned, to
 * any depth, have run everywhere.
 */
int x10_gfence(void);

/*
 * x10_lock keeps asyncs from running at this place until the same thread calls x10_unlock. Calls
 * nest. Asyncs that other places send wait meanwhile. An async that the thread itself spawns at its
 * own place runs immediately. Hold the lock only briefly; waiting for an async at this place under
 * the lock would not end. x10_unlock without x10_lock is an error, and so are fences and
 * x10_finalize under the lock.
 */
int x10_lock(void);
int x10_unlock(void);

/* ------------------------------------------------------------------- addresses */

/*
 * Registers a function at an index from 1 to X10_TABLE_SIZE of this place's table and replaces the
 * previous entry. NULL clears the entry. Not collective.
 */
int x10_register(void *addr, int addr_hndl);

/*
 * Stores the my_addr of place j, which may be NULL, in addr_tab[j]. Collective. If addr_tab is NULL
 * at a place, only that place gets an error.
 */
int x10_addr_init(void *my_addr, void *addr_tab[]);

/* ---------------------------------------------------------------- environment */

int x10_getenv(int query, int *ret_val);    /* query: an x10_query_t, or a query of LAPI */
int x10_setenv(int query, int set_val);

/* --------------------------------------------------------------------- asyncs */

/*
 *   int x10_asyncSpawnInline(place_t dest, int n, async_func_t *f, ...);
 *   int x10_asyncSpawnInlineAgg(place_t dest, int n, async_func_t *f, int handle, ...);
 *
 * Run f at dest with the n arguments that follow, 0 to X10_MAX_ASYNC_ARGS. Each argument is
 * converted to async_arg_t, integers and pointers by value. To pass a floating-point number, copy
 * its bits into an integer.
 *
 * The first call sends the async immediately and returns when it has handed the async over. If dest
 * is the caller's own place, f has run on the caller's stack when the call returns, even if an
 * async makes the call. The second call aggregates: asyncs with the same f, n and handle are sent
 * in batches, when X10_AGG_LIMIT of them wait for one place, at a flush or a fence, and after a
 * millisecond.
 *
 * In C these are macros over the functions below, which take the arguments as an array, with their
 * number in given.
 */
int x10_async_spawn_packed(place_t dest, int n, async_func_t *f, int given,
                           const async_arg_t *args);
int x10_async_spawn_agg_packed(place_t dest, int n, async_func_t *f, int handle, int given,
                               const async_arg_t *args);

/*
 * Send the asyncs collected under n and handle, of any function, or of f. In the X10Lib
 * specification f is also a parameter of x10_flush, so x10_flush(n, f, handle) is accepted and
 * means x10_flush_func.
 */
int x10_flush(int n, int handle);
int x10_flush_func(int n, async_func_t *f, int handle);

#ifdef __cplusplus
} /* extern "C" */
#endif

/* ---------------------------------------- the specification's names in plain C */

#ifndef __cplusplus

/* With six arguments the transfer blocks. The seventh is the switch. */
#define X10_SEVENTH_(a, b, c, d, e, f, g, name, ...) name
#define x10_get_s(...) X10_SEVENTH_(__VA_ARGS__, x10_get_s_nb, x10_get_s, 0)(__VA_ARGS__)
#define x10_put_s(...) X10_SEVENTH_(__VA_ARGS__, x10_put_s_nb, x10_put_s, 0)(__VA_ARGS__)

/* Accepts two arguments, or three. */
#define X10_FOURTH_(a, b, c, name, ...) name
#define x10_flush(...) X10_FOURTH_(__VA_ARGS__, x10_flush_func, x10_flush, 0)(__VA_ARGS__)

/* Selects by the type of the value. A get has no argument that could select the type. */
#if defined(__GNUC__) || __STDC_VERSION__ >= 201112L
#ifdef __GNUC__
#define X10_GENERIC_ __extension__ _Generic
#else
#define X10_GENERIC_ _Generic
#endif
#define x10_put_value(val, dest)                                                        \
  (X10_GENERIC_((val), int: x10_put_value_int, long: x10_put_value_long,                \
                float: x10_put_value_float, double: x10_put_value_double)((val), (dest)))
#define x10_put_value_nb(val, dest, hndl)                                               \
  (X10_GENERIC_((val), int: x10_put_value_int_nb, long: x10_put_value_long_nb,          \
                float: x10_put_value_float_nb,                                          \
                double: x10_put_value_double_nb)((val), (dest), (hndl)))
#endif

/*
 * X10_COUNT_ counts the arguments after h and k. X10_WORDS_ converts each to async_arg_t. Neither
 * needs an empty variable part, which C99 does not allow.
 */
#define X10_COUNT_(...)                                                                   \
  X10_COUNT_I_(__VA_ARGS__, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18,   \
               17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define X10_COUNT_I_(h, k, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14,   \
                     a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27,     \
                     a28, a29, a30, a31, a32, count, ...)                                 \
  count
#define X10_JOIN_(a, b) X10_JOIN_I_(a, b)
#define X10_JOIN_I_(a, b) a##b
#define X10_FIRST_(h, ...) h
#define X10_SECOND_(h, k, ...) k
#define X10_WORDS_(...) X10_JOIN_(X10_W, X10_COUNT_(__VA_ARGS__))(__VA_ARGS__)
#define X10_W0(h, k) 0
#define X10_W1(h, k, a) (async_arg_t)(a)
#define X10_W2(h, k, a, ...) (async_arg_t)(a), X10_W1(h, k, __VA_ARGS__)
#define X10_W3(h, k, a, ...) (async_arg_t)(a), X10_W2(h, k, __VA_ARGS__)
#define X10_W4(h, k, a, ...) (async_arg_t)(a), X10_W3(h, k, __VA_ARGS__)
#define X10_W5(h, k, a, ...) (async_arg_t)(a), X10_W4(h, k, __VA_ARGS__)
#define X10_W6(h, k, a, ...) (async_arg_t)(a), X10_W5(h, k, __VA_ARGS__)
#define X10_W7(h, k, a, ...) (async_arg_t)(a), X10_W6(h, k, __VA_ARGS__)
#define X10_W8(h, k, a, ...) (async_arg_t)(a), X10_W7(h, k, __VA_ARGS__)
#define X10_W9(h, k, a, ...) (async_arg_t)(a), X10_W8(h, k, __VA_ARGS__)
#define X10_W10(h, k, a, ...) (async_arg_t)(a), X10_W9(h, k, __VA_ARGS__)
#define X10_W11(h, k, a, ...) (async_arg_t)(a), X10_W10(h, k, __VA_ARGS__)
#define X10_W12(h, k, a, ...) (async_arg_t)(a), X10_W11(h, k, __VA_ARGS__)
#define X10_W13(h, k, a, ...) (async_arg_t)(a), X10_W12(h, k, __VA_ARGS__)
#define X10_W14(h, k, a, ...) (async_arg_t)(a), X10_W13(h, k, __VA_ARGS__)
#define X10_W15(h, k, a, ...) (async_arg_t)(a), X10_W14(h, k, __VA_ARGS__)
#define X10_W16(h, k, a, ...) (async_arg_t)(a), X10_W15(h, k, __VA_ARGS__)
#define X10_W17(h, k, a, ...) (async_arg_t)(a), X10_W16(h, k, __VA_ARGS__)
#define X10_W18(h, k, a, ...) (async_arg_t)(a), X10_W17(h, k, __VA_ARGS__)
#define X10_W19(h, k, a, ...) (async_arg_t)(a), X10_W18(h, k, __VA_ARGS__)
#define X10_W20(h, k, a, ...) (async_arg_t)(a), X10_W19(h, k, __VA_ARGS__)
#define X10_W21(h, k, a, ...) (async_arg_t)(a), X10_W20(h, k, __VA_ARGS__)
#define X10_W22(h, k, a, ...) (async_arg_t)(a), X10_W21(h, k, __VA_ARGS__)
#define X10_W23(h, k, a, ...) (async_arg_t)(a), X10_W22(h, k, __VA_ARGS__)
#define X10_W24(h, k, a, ...) (async_arg_t)(a), X10_W23(h, k, __VA_ARGS__)
#define X10_W25(h, k, a, ...) (async_arg_t)(a), X10_W24(h, k, __VA_ARGS__)
#define X10_W26(h, k, a, ...) (async_arg_t)(a), X10_W25(h, k, __VA_ARGS__)
#define X10_W27(h, k, a, ...) (async_arg_t)(a), X10_W26(h, k, __VA_ARGS__)
#define X10_W28(h, k, a, ...) (async_arg_t)(a), X10_W27(h, k, __VA_ARGS__)
#define X10_W29(h, k, a, ...) (async_arg_t)(a), X10_W28(h, k, __VA_ARGS__)
#define X10_W30(h, k, a, ...) (async_arg_t)(a), X10_W29(h, k, __VA_ARGS__)
#define X10_W31(h, k, a, ...) (async_arg_t)(a), X10_W30(h, k, __VA_ARGS__)
#define X10_W32(h, k, a, ...) (async_arg_t)(a), X10_W31(h, k, __VA_ARGS__)

/* The variable part is n, f and the arguments. */
#define x10_asyncSpawnInline(dest, ...)                                                   \
  x10_async_spawn_packed((dest), X10_FIRST_(__VA_ARGS__), X10_SECOND_(__VA_ARGS__, 0),    \
                         X10_COUNT_(__VA_ARGS__),                                         \
                         (const async_arg_t[]){ X10_WORDS_(__VA_ARGS__) })
/* The variable part is f, handle and the arguments. */
#define x10_asyncSpawnInlineAgg(dest, n, ...)                                             \
  x10_async_spawn_agg_packed((dest), (n), X10_FIRST_(__VA_ARGS__),                        \
                             X10_SECOND_(__VA_ARGS__, 0), X10_COUNT_(__VA_ARGS__),        \
                             (const async_arg_t[]){ X10_WORDS_(__VA_ARGS__) })

#else /* __cplusplus */

/* ---------------------------------------- the specification's C names in C++ */

inline int x10_get_s(x10_gas_ref_t src, int src_stride[], void *dest, int dest_stride[],
                     int count[], int levels, x10_switch_t hndl)
{
  return x10_get_s_nb(src, src_stride, dest, dest_stride, count, levels, hndl);
}
inline int x10_put_s(void *src, int src_stride[], x10_gas_ref_t dest, int dest_stride[],
                     int count[], int levels, x10_switch_t hndl)
{
  return x10_put_s_nb(src, src_stride, dest, dest_stride, count, levels, hndl);
}
inline int x10_flush(int n, async_func_t *f, int handle) { return x10_flush_func(n, f, handle); }

inline int x10_put_value(int v, x10_gas_ref_t d) { return x10_put_value_int(v, d); }
inline int x10_put_value(long v, x10_gas_ref_t d) { return x10_put_value_long(v, d); }
inline int x10_put_value(float v, x10_gas_ref_t d) { return x10_put_value_float(v, d); }
inline int x10_put_value(double v, x10_gas_ref_t d) { return x10_put_value_double(v, d); }
inline int x10_put_value_nb(int v, x10_gas_ref_t d, x10_switch_t h) { return x10_put_value_int_nb(v, d, h); }
inline int x10_put_value_nb(long v, x10_gas_ref_t d, x10_switch_t h) { return x10_put_value_long_nb(v, d, h); }
inline int x10_put_value_nb(float v, x10_gas_ref_t d, x10_switch_t h) { return x10_put_value_float_nb(v, d, h); }
inline int x10_put_value_nb(double v, x10_gas_ref_t d, x10_switch_t h) { return x10_put_value_double_nb(v, d, h); }

/* -------------------------------------------------------------------- C++ calls */

namespace x10lib {

namespace detail {

template <class A> inline async_arg_t word(A a) { return (async_arg_t)a; }

/* The function that runs a struct with operator(). */
template <class T> struct runner {
  static void run(async_arg_t *args, int n)
  {
    T body = T();
    body(args, n);
  }
};

} /* namespace detail */

inline int Init(x10_async_handler_t *handlers, int n) { return x10_init(handlers, n); }
inline int Finalize() { return x10_finalize(); }
inline const char *LastError() { return x10_last_error(); }

inline x10_gas_ref_t MakeGASRef(place_t place, void *addr) { return x10_make_gas_ref(place, addr); }
inline place_t GAS2Place(x10_gas_ref_t ref) { return x10_gas2place(ref); }
inline void *GAS2Addr(x10_gas_ref_t ref) { return x10_gas2addr(ref); }

inline x10_switch_t AllocSwitch() { return x10_alloc_switch(); }
inline int FreeSwitch(x10_switch_t hndl) { return x10_free_switch(hndl); }
inline int Decrement(x10_switch_t hndl) { return x10_decrement_switch(hndl); }
inline int Increment(x10_switch_t hndl) { return x10_increment_switch(hndl); }
inline int SwitchValue(x10_switch_t hndl, int *value) { return x10_switch_value(hndl, value); }
inline int Wait(x10_switch_t hndl) { return x10_wait(hndl); }
inline int Next(x10_switch_t hndl) { return x10_next_on_switch(hndl); }
inline int Test(x10_switch_t hndl, int *done) { return x10_test(hndl, done); }

inline int Get(x10_gas_ref_t src, void *dest, int n) { return x10_get(src, dest, n); }
inline int NbGet(x10_gas_ref_t src, void *dest, int n, x10_switch_t hndl)
{
  return x10_get_nb(src, dest, n, hndl);
}
inline int Put(void *src, x10_gas_ref_t dest, int n) { return x10_put(src, dest, n); }
inline int NbPut(void *src, x10_gas_ref_t dest, int n, x10_switch_t hndl)
{
  return x10_put_nb(src, dest, n, hndl);
}

inline int GetV(x10_giov_ref_t *dsrc, int len) { return x10_get_v(dsrc, len); }
inline int NbGetV(x10_giov_ref_t *dsrc, int len, x10_switch_t hndl)
{
  return x10_get_v_nb(dsrc, len, hndl);
}
inline int PutV(x10_giov_ref_t *dsrc, int len) { return x10_put_v(dsrc, len); }
inline int NbPutV(x10_giov_ref_t *dsrc, int len, x10_switch_t hndl)
{
  return x10_put_v_nb(dsrc, len, hndl);
}

inline int GetS(x10_gas_ref_t src, int src_stride[], void *dest, int dest_stride[], int count[],
                int levels)
{
  return ::x10_get_s(src, src_stride, dest, dest_stride, count, levels);
}
inline int NbGetS(x10_gas_ref_t src, int src_stride[], void *dest, int dest_stride[], int count[],
                  int levels, x10_switch_t hndl)
{
  return x10_get_s_nb(src, src_stride, dest, dest_stride, count, levels, hndl);
}
inline int PutS(void *src, int src_stride[], x10_gas_ref_t dest, int dest_stride[], int count[],
                int levels)
{
  return ::x10_put_s(src, src_stride, dest, dest_stride, count, levels);
}
inline int NbPutS(void *src, int src_stride[], x10_gas_ref_t dest, int dest_stride[], int count[],
                  int levels, x10_switch_t hndl)
{
  return x10_put_s_nb(src, src_stride, dest, dest_stride, count, levels, hndl);
}

inline int GetValueInt(x10_gas_ref_t src) { return x10_get_value_int(src); }
inline long GetValueLong(x10_gas_ref_t src) { return x10_get_value_long(src); }
inline float GetValueFloat(x10_gas_ref_t src) { return x10_get_value_float(src); }
inline double GetValueDouble(x10_gas_ref_t src) { return x10_get_value_double(src); }
inline int GetValueStatus() { return x10_get_value_status(); }

inline int PutValueInt(int val, x10_gas_ref_t dest) { return x10_put_value_int(val, dest); }
inline int PutValueLong(long val, x10_gas_ref_t dest) { return x10_put_value_long(val, dest); }
inline int PutValueFloat(float val, x10_gas_ref_t dest) { return x10_put_value_float(val, dest); }
inline int PutValueDouble(double val, x10_gas_ref_t dest) { return x10_put_value_double(val, dest); }
inline int NbPutValueInt(int val, x10_gas_ref_t dest, x10_switch_t hndl)
{
  return x10_put_value_int_nb(val, dest, hndl);
}
inline int NbPutValueLong(long val, x10_gas_ref_t dest, x10_switch_t hndl)
{
  return x10_put_value_long_nb(val, dest, hndl);
}
inline int NbPutValueFloat(float val, x10_gas_ref_t dest, x10_switch_t hndl)
{
  return x10_put_value_float_nb(val, dest, hndl);
}
inline int NbPutValueDouble(double val, x10_gas_ref_t dest, x10_switch_t hndl)
{
  return x10_put_value_double_nb(val, dest, hndl);
}

inline int Fence() { return x10_fence(); }
inline int Gfence() { return x10_gfence(); }
inline int Lock() { return x10_lock(); }
inline int Unlock() { return x10_unlock(); }
inline int Register(void *addr, int addr_hndl) { return x10_register(addr, addr_hndl); }
inline int AddrInit(void *my_addr, void *addr_tab[]) { return x10_addr_init(my_addr, addr_tab); }
inline int Getenv(int query, int *ret_val) { return x10_getenv(query, ret_val); }
inline int Setenv(int query, int set_val) { return x10_setenv(query, set_val); }

/*
 * T is a struct with void operator()(async_arg_t *args, int n). dest constructs a T and calls it
 * with the N arguments.
 */
template <int N, class T, class... A> inline int asyncSpawnInline(place_t dest, A... a)
{
  static_assert(sizeof...(A) == N, "as many arguments as N says");
  const async_arg_t args[] = { detail::word(a)..., 0 };
  return x10_async_spawn_packed(dest, N, detail::runner<T>::run, N, args);
}
template <int N, class T, class... A>
inline int asyncSpawnInlineAgg(place_t dest, int handle, A... a)
{
  static_assert(sizeof...(A) == N, "as many arguments as N says");
  const async_arg_t args[] = { detail::word(a)..., 0 };
  return x10_async_spawn_agg_packed(dest, N, detail::runner<T>::run, handle, N, args);
}
template <int N, class T> inline int flush(int handle)
{
  return x10_flush_func(N, detail::runner<T>::run, handle);
}

} /* namespace x10lib */

/* The C calls with a variable number of arguments. */
template <class... A>
inline int x10_asyncSpawnInline(place_t dest, int n, async_func_t *f, A... a)
{
  const async_arg_t args[] = { x10lib::detail::word(a)..., 0 };
  return x10_async_spawn_packed(dest, n, f, (int)sizeof...(A), args);
}
template <class... A>
inline int x10_asyncSpawnInlineAgg(place_t dest, int n, async_func_t *f, int handle, A... a)
{
  const async_arg_t args[] = { x10lib::detail::word(a)..., 0 };
  return x10_async_spawn_agg_packed(dest, n, f, handle, (int)sizeof...(A), args);
}

#endif /* __cplusplus */

#endif /* PORTOLAN_X10LIB_H */
