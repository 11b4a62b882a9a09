/*
 * portolan.h - calls of Portolan's own, besides the interfaces that it
 * implements. Strings belong to the library.
 */
#ifndef PORTOLAN_H
#define PORTOLAN_H

#include <stddef.h>

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

/* Name and version of the library; needs no initialisation. */
const char *portolan_version(void);

/* Text of this thread's last error, "" if there was none. Valid until its next
 * error. */
const char *portolan_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* PORTOLAN_H */
