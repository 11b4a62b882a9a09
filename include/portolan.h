/*
 * portolan.h - calls of Portolan's own, besides the interfaces that it
 * implements. Strings belong to the library.
 */
#ifndef PORTOLAN_H
#define PORTOLAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How the caller reaches ordinary segments of a world rank: "direct" (loads and
 * stores in shared memory), "rma" (MPI windows) or "message" (requests that the
 * owner's progress engine serves). NULL if target is no rank or the library is
 * not initialised.
 */
const char *portolan_path_name(int target);

/*
 * Allocates count segments at once, in about the time of one: what count calls of
 * ARMCI_Malloc do with bytes[0] to bytes[count - 1]. ptrs[n * ranks + p] gets the
 * address of segment n at rank p, NULL where that rank asked for no bytes of it. Each
 * is freed by ARMCI_Free. Collective over all ranks, which must give the same
 * count. Returns 0, or an error on all ranks, with nothing allocated.
 */
int portolan_malloc_many(int count, const size_t *bytes, void **ptrs);

/*
 * Statistics. What is counted without PORTOLAN_STATS=1 (complete is 0 then): waits in
 * which a thread rested, naps, rendezvous, aggregation, memory.
 */

/* Which call: members of portolan_stats_t.call. */
enum {
  PORTOLAN_CALL_PUT,
  PORTOLAN_CALL_NON_BLOCKING_PUT,
  PORTOLAN_CALL_GET,
  PORTOLAN_CALL_NON_BLOCKING_GET,
  PORTOLAN_CALL_ACCUMULATE,
  PORTOLAN_CALL_NON_BLOCKING_ACCUMULATE,
  PORTOLAN_CALL_READ_MODIFY_WRITE,
  PORTOLAN_CALL_LOCK,
  PORTOLAN_CALL_UNLOCK,
  PORTOLAN_CALL_FENCE,
  PORTOLAN_CALL_FENCE_TO_ALL,
  PORTOLAN_CALL_BARRIER,
  PORTOLAN_CALL_WAIT,
  PORTOLAN_CALL_NOTIFY,
  PORTOLAN_CALL_WAIT_FOR_A_NOTIFICATION,
  PORTOLAN_CALL_REDUCE,
  PORTOLAN_CALL_BROADCAST,
  PORTOLAN_CALL_EXCHANGE,
  PORTOLAN_CALL_ALLOCATE,
  PORTOLAN_CALL_FREE,
  PORTOLAN_CALL_MESSAGE,
  PORTOLAN_CALL_AGGREGATED_MESSAGE,
  PORTOLAN_CALL_QUIESCENCE,
  PORTOLAN_CALL_REMOTE_CALL,
  PORTOLAN_CALL_BULK_TRANSFER,
  PORTOLAN_CALL_PERFORM,
  PORTOLAN_CALL_EXPOSE,
  PORTOLAN_CALL_OTHER
};

/* How its bytes travelled: members of .path. */
enum {
  PORTOLAN_PATH_NONE,
  PORTOLAN_PATH_DIRECT,
  PORTOLAN_PATH_RMA,
  PORTOLAN_PATH_MESSAGE,
  PORTOLAN_PATH_RING,
  PORTOLAN_PATH_CMA,
  PORTOLAN_PATH_BUFFER
};

/* What a thread waited for: members of .wait. */
enum {
  PORTOLAN_WAIT_OTHER,
  PORTOLAN_WAIT_FENCE,
  PORTOLAN_WAIT_LOCK,
  PORTOLAN_WAIT_BARRIER,
  PORTOLAN_WAIT_HANDLE,
  PORTOLAN_WAIT_CREDIT,
  PORTOLAN_WAIT_FULL_RING,
  PORTOLAN_WAIT_ANSWER,
  PORTOLAN_WAIT_COLLECTIVE,
  PORTOLAN_WAIT_NOTIFICATION,
  PORTOLAN_WAIT_RENDEZVOUS,
  PORTOLAN_WAIT_ACTIVE_MESSAGE,
  PORTOLAN_WAIT_REMOTE_CALL,
  PORTOLAN_WAIT_START_AND_END,
  PORTOLAN_WAIT_MPI_OF_THE_PROGRAM
};

/* What this rank did for others: members of .served. */
enum {
  PORTOLAN_SERVED_PUT,
  PORTOLAN_SERVED_GET,
  PORTOLAN_SERVED_ACCUMULATE,
  PORTOLAN_SERVED_READ_MODIFY_WRITE,
  PORTOLAN_SERVED_MUTEX,
  PORTOLAN_SERVED_FENCE,
  PORTOLAN_SERVED_HANDLER,
  PORTOLAN_SERVED_COMPLETION_HANDLER,
  PORTOLAN_SERVED_DATA,
  PORTOLAN_SERVED_OTHER
};

typedef struct {
  uint64_t calls; /* how many */
  uint64_t bytes;
  uint64_t ns; /* their time */
} portolan_calls_t;

typedef struct {
  uint64_t number; /* how often */
  uint64_t ns;     /* how long together */
  uint64_t longest_ns; /* since initialisation */
} portolan_spent_t;

typedef struct {
  size_t size;                /* in: sizeof(portolan_stats_t); out: bytes that were filled */
  int complete;               /* 1: all calls were counted */
  int most_waited_for;        /* the rank that this one waited for longest; -1: none */
  uint64_t most_waited_ns;    /* how long */
  double seconds;             /* since initialisation, or portolan_stats_reset */
  portolan_calls_t call[32];  /* by call, PORTOLAN_CALL_PUT and so on */
  portolan_calls_t path[8];    /* by path */
  portolan_spent_t wait[16];  /* by what was waited for */
  portolan_spent_t served[16];
  uint64_t served_bytes;
  uint64_t longest_delay_ns;  /* a request had waited here for at most this long */
  uint64_t requests;          /* of other ranks, served here */
  uint64_t naps;              /* of threads that waited */
  uint64_t rendezvous;        /* messages whose data the target asked for */
  uint64_t aggregated_messages;
  uint64_t aggregated_items;
  uint64_t peak_memory_bytes; /* of the process */
  uint64_t dropped_events;    /* that the trace of PORTOLAN_TRACE has not */
} portolan_stats_t;

/* What this rank has counted; stats->size is to be set before. 0, or an error. Members
 * are added at the end: a program gets those that its header has. */
int portolan_stats_get(portolan_stats_t *stats);

/* Counts from now on. */
int portolan_stats_reset(void);

/*
 * Regions and marks of the program in the trace (PORTOLAN_TRACE). Regions nest, in
 * each thread. They do nothing where there is no trace, or before initialisation.
 * Fortran: call portolan_region_begin('SCF iteration'), call portolan_region_end(),
 * call portolan_mark('converged').
 */
void portolan_region_begin(const char *name);
void portolan_region_end(void);
void portolan_mark(const char *name);

/* Name and version of the library; needs no initialisation. */
const char *portolan_version(void);

/* Text of this thread's last error, "" if there was none. Valid until its next
 * error. */
const char *portolan_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* PORTOLAN_H */
