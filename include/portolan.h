/*
 * portolan.h - Portolan's own calls, in addition to the interfaces that it implements. The library
 * owns all strings that these calls return.
 */
#ifndef PORTOLAN_H
#define PORTOLAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns how the caller accesses ordinary segments of world rank target: "direct" (loads and
 * stores in shared memory), "rma" (MPI windows) or "message" (requests that the owner's progress
 * engine serves). Returns NULL if target is not a rank of the job or the library is not
 * initialised.
 */
const char *portolan_path_name(int target);

/*
 * Allocates count segments, as count calls of ARMCI_Malloc with bytes[0] to bytes[count - 1] would,
 * in about the time of one call. Stores the address of segment n at rank p in ptrs[n * ranks + p],
 * or NULL if rank p asked for 0 bytes. Free each segment with ARMCI_Free. Collective over all
 * ranks, which must pass the same count. Returns 0. On failure returns an error on all ranks and
 * allocates nothing.
 */
int portolan_malloc_many(int count, const size_t *bytes, void **ptrs);

/*
 * Statistics. The library counts all calls only if PORTOLAN_STATS=1 or PORTOLAN_TRACE is set.
 * Otherwise the member complete is 0, and the library counts only:
 *   wait      number and ns, of waits that outlast their first polls
 *   requests, naps, rendezvous, aggregated_messages, aggregated_items, peak_memory_bytes
 */

/* Kinds of calls: the indices of portolan_stats_t.call. */
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

/* Paths that the bytes of a call take: the indices of portolan_stats_t.path. */
enum {
  PORTOLAN_PATH_NONE,
  PORTOLAN_PATH_DIRECT,
  PORTOLAN_PATH_RMA,
  PORTOLAN_PATH_MESSAGE,
  PORTOLAN_PATH_RING,
  PORTOLAN_PATH_CMA,
  PORTOLAN_PATH_BUFFER
};

/* Reasons for a wait: the indices of portolan_stats_t.wait. */
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

/* Work that this rank does for other ranks: the indices of portolan_stats_t.served. */
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
  uint64_t calls; /* number of calls */
  uint64_t bytes;
  uint64_t ns; /* total time */
} portolan_calls_t;

typedef struct {
  uint64_t number; /* number of waits, or of requests served */
  uint64_t ns;     /* total time */
  uint64_t longest_ns; /* longest one since initialisation, also after a reset; 0 if number is 0 */
} portolan_spent_t;

typedef struct {
  size_t size;                /* in: sizeof(portolan_stats_t); out: bytes written */
  int complete;               /* 1: all calls were counted */
  int most_waited_for;        /* rank that this rank waited for longest in total; -1: none */
  uint64_t most_waited_ns;    /* total time of these waits */
  double seconds;             /* since initialisation or portolan_stats_reset */
  portolan_calls_t call[32];  /* by call, from PORTOLAN_CALL_PUT */
  portolan_calls_t path[8];    /* by path */
  portolan_spent_t wait[16];  /* by reason */
  portolan_spent_t served[16];
  uint64_t served_bytes;
  uint64_t longest_delay_ns;  /* upper bound of the time that a request waited here */
  uint64_t requests;          /* requests of other ranks that this rank served */
  uint64_t naps;              /* naps of waiting threads */
  uint64_t rendezvous;        /* messages whose data the target requested later */
  uint64_t aggregated_messages;
  uint64_t aggregated_items;
  uint64_t peak_memory_bytes; /* peak of the process */
  uint64_t dropped_events;    /* events missing from the trace of PORTOLAN_TRACE */
} portolan_stats_t;

/*
 * Stores this rank's statistics in *stats. The caller sets stats->size first. New versions add
 * members at the end; a program gets the members that its header declares. Returns 0, or an error
 * code.
 */
int portolan_stats_get(portolan_stats_t *stats);

/* Restarts the statistics at zero. Returns 0, or an error code. */
int portolan_stats_reset(void);

/*
 * Regions and marks of the program in the trace (PORTOLAN_TRACE). Regions nest within a thread. The
 * calls do nothing without a trace or before initialisation.
 *
 *   Fortran: call portolan_region_begin('SCF iteration'), call portolan_region_end(),
 *            call portolan_mark('converged')
 */
void portolan_region_begin(const char *name);
void portolan_region_end(void);
void portolan_mark(const char *name);

/* Returns the version of the library as MAJOR.MINOR.PATCH. Needs no initialisation. */
const char *portolan_version(void);

/*
 * Returns the text of this thread's last error, or "" if there was none. The text is valid until
 * the thread's next error.
 */
const char *portolan_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* PORTOLAN_H */
