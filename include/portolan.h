/*
 * portolan.h - what Portolan tells about itself, besides the interfaces that it
 * implements. Strings belong to the library.
 */
#ifndef PORTOLAN_H
#define PORTOLAN_H

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

/* Name and version of the library; needs no initialisation. */
const char *portolan_version(void);

/* Text of this thread's last error, "" if there was none. Valid until its next
 * error. */
const char *portolan_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* PORTOLAN_H */
