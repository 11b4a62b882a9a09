/*
 * cp.h - compose and perform: say once which bytes go where, then move them many
 * times. By Portolan; link with -lcompose.
 *
 * A composition is a set of triples: this byte here goes to that byte of that rank.
 *   simple   towards one rank; bytes, blocks and slices are added to it
 *   merged   made of simple or merged ones, towards any ranks
 *   mapped   the form that can be performed, made of a simple or merged one; it
 *            cannot be changed or merged
 * Merging and mapping leave their inputs as they are, and do not change when those
 * do later. The same triple twice is once. One local byte may go to many places;
 * where two local bytes go to one remote byte, cp_map fails and names the addresses.
 * An empty composition, and one towards the caller itself, are legal.
 *
 * Addresses. The unit is the byte, in addresses, lengths and strides. A remote
 * address is one of the target's own address space. Memory that cp_malloc (or
 * another interface of the library, such as ARMCI_Malloc) gave is reached fastest;
 * any other memory of a rank is legal too, and what the target has not mapped is an
 * error of cp_perform. Where memory of cp_malloc is freed, compositions that were
 * mapped to it can no longer be performed: an error.
 *
 * Performing. Nothing is buffered in between on a node, so ranks agree first that
 * the destinations are free:
 *
 *     cp_sync();              all ranks: destinations may be written
 *     cp_perform(mapped);     any number of times, any compositions
 *     cp_waitfor(n);          n performances with bytes for me have arrived whole
 *
 * What a performance reads must not be written by it, or by another one of the same
 * phase; the order of its bytes is not defined. Where source and destination share
 * a node, the bytes are there when cp_perform returns. Else local bytes must not be
 * changed before the next cp_waitfor (also cp_waitfor(0)) or cp_sync has returned.
 *
 * Errors. Calls return a negative number where they fail, and have changed nothing
 * then unless they say so; cp_errmsg says why. The numbers are -PORTOLAN_ERR_...,
 * as in the list below; docs/errors-compose.md lists what each call refuses.
 */
#ifndef PORTOLAN_CP_H
#define PORTOLAN_CP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CP_COMPTYPE_SIMPLE 1
#define CP_COMPTYPE_MERGED 2
#define CP_COMPTYPE_MAPPED 3

#define CP_ERR_ARGUMENT (-1) /* a bad argument, a conflict, a bad or missing file */
#define CP_ERR_RANK (-2)     /* a rank outside the job */
#define CP_ERR_ADDRESS (-3)  /* an address that is not what the call needs */
#define CP_ERR_MEMORY (-4)   /* memory cannot be had */
#define CP_ERR_STATE (-5)    /* not initialised, not synchronised, or memory was freed */
#define CP_ERR_HANDLE (-6)   /* no live composition, or one of the wrong kind */
#define CP_ERR_MPI (-8)      /* the MPI library failed */
#define CP_ERR_INTERNAL (-9) /* a fault of this library */

/* ------------------------------------------------------------- start and end */

/*
 * Start the library over all ranks, MPI too unless the program has; collective.
 * Calls nest with each other, and with those of the library's other interfaces: a
 * program that has called ARMCI_Init needs none. cp_finalize forgets all
 * compositions.
 */
int cp_init(void);
int cp_finalize(void);

/* The caller's rank, and the number of ranks. */
int cp_rank(void);
int cp_nprocs(void);

/*
 * Memory that all ranks reach: bytes on this rank (each may ask for its own number,
 * also none). ptrs gets the address of each rank's memory, NULL where it has none.
 * cp_free takes the caller's own address, NULL where it has none; NULL at all ranks frees
 * nothing. Collective: where one rank's argument is bad, the call fails at all.
 */
int cp_malloc(void *ptrs[], size_t bytes);
int cp_free(void *ptr);

/* Why the last call of this thread that failed has failed; "" where none has. */
const char *cp_errmsg(void);

/* -------------------------------------------------------------- compositions */

/* One of CP_COMPTYPE_. */
int cp_comptype(int compnum);

/* A simple composition; returns its number, which is above 0 and which no other
 * one has while it lives. */
int cp_create(int targetproc);

/* Forget a composition. Those that were made of it stay. */
int cp_destroy(int compnum);

/*
 * Store a composition of any kind, and load it again, in this run or in another one.
 * Each rank has its own file for each file number (0 and above), in the directory
 * that PORTOLAN_COMPOSE_DIR names. The first cp_store of a run to a number begins
 * the file anew, further ones add to it. cp_load takes one composition after the
 * other, and returns the number that it gets; cp_rewind makes it begin again with
 * the first.
 *
 * Files name addresses by memory of cp_malloc (or ARMCI_Malloc, ...) and offset: all
 * addresses must lie in such memory, and the run that loads must have as many ranks,
 * and must have allocated the same lengths in the same order. A file that is
 * damaged, of another rank, version or program is refused, and so is one that names
 * memory of the library itself (mutexes, for example), by CP_ERR_ADDRESS.
 */
int cp_load(int filenum);
int cp_store(int filenum, int compnum);
int cp_rewind(int filenum);

/*
 * Add to a simple composition: a byte; bytes, from two arrays of addresses; a block
 * of length bytes; blocks. No length and no count needs an address when it is 0.
 */
int cp_add_adxpair(int compnum, void *localadx, void *remoteadx);
int cp_add_adxpairvector(int compnum, void *localadx[], void *remoteadx[],
                         unsigned int numpairs);
int cp_add_adxblock(int compnum, void *localadxstart, void *remoteadxstart,
                    unsigned int length);
int cp_add_adxblockvector(int compnum, void *localadxstart[], void *remoteadxstart[],
                          unsigned int length[], unsigned int numblocks);

/*
 * Add a slice: on each side so many blocks, from a start, at a stride, which is the
 * number of bytes from the start of a block to that of the next one (cast to a
 * pointer; it may be negative). The bytes of both sides are taken in order, and byte
 * k here goes to byte k there: the sides may be cut differently, but must have as
 * many bytes.
 */
int cp_add_adxslice(int compnum, void *localadxstart, void *localadxstride,
                    unsigned int localblocklen, unsigned int localnumblocks,
                    void *remoteadxstart, void *remoteadxstride,
                    unsigned int remoteblocklen, unsigned int remotenumblocks);

/* A merged composition with the triples of both; returns its number. */
int cp_merge(int compnum1, int compnum2);

/* A mapped composition of a simple or merged one; returns its number. */
int cp_map(int compnum);

/* ---------------------------------------------------------------- performing */

/*
 * Begin a phase: the caller's performances are complete everywhere when it returns,
 * all ranks have called it, and the count of arrivals is 0. Collective.
 */
int cp_sync(void);

/* Copy the bytes of a mapped composition. Each rank to which it has bytes counts one
 * arrival, behind them. Where it fails for some ranks (an address that a rank has not
 * mapped), the others have been served. */
int cp_perform(int compnum);

/* Wait until the caller's own local bytes may be changed, and n performances that
 * have bytes for the caller have arrived since the last cp_sync. */
int cp_waitfor(int n);

/* How many have arrived since the last cp_sync. */
int cp_arrived(void);

#ifdef __cplusplus
}
#endif

#endif /* PORTOLAN_CP_H */
