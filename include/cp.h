/*
 * cp.h - compose and perform: describe a set of copies once, then perform it many times. By
 * Portolan; link with -lcompose.
 *
 * A composition is a set of triples: a local byte, a remote rank and a byte of that rank.
 *   simple   has one target rank; bytes, blocks and slices can be added to it
 *   merged   consists of simple or merged compositions, with any target ranks
 *   mapped   the form that can be performed, made from a simple or merged composition; it cannot
 *            be changed or merged
 * Merging and mapping copy their inputs: they do not change the inputs, and later changes to the
 * inputs do not affect the result. A triple that is added twice counts once. One local byte may go
 * to many places. If two local bytes go to one remote byte, cp_map fails and reports the addresses.
 * A composition may be empty, and its target may be the caller.
 *
 * Addresses. Addresses, lengths and strides are in bytes. A remote address is an address in the
 * target's address space. Memory of cp_malloc, or of another interface of the library such as
 * ARMCI_Malloc, is fastest to access. Any other memory of a rank is valid too; an address that
 * another rank has not mapped is an error of cp_perform. Invalid addresses of the caller's own
 * memory cause a fault, as in memcpy. Freeing memory of cp_malloc invalidates the compositions that
 * are mapped to it: performing them is an error.
 *
 * Performing. On a node no bytes are buffered, so the ranks must first agree that the destinations
 * may be overwritten:
 *
 *     cp_sync();              all ranks: destinations may be written
 *     cp_perform(mapped);     any number of times, any compositions
 *     cp_waitfor(n);          n performances with bytes for this rank have arrived completely
 *
 * A performance must not write the bytes that it, or another performance of the same phase, reads.
 * The order in which bytes are copied is undefined. If source and destination share a node, the
 * bytes have arrived when cp_perform returns. Otherwise the local bytes must not change until the
 * next cp_waitfor (cp_waitfor(0) suffices) or cp_sync has returned.
 *
 * Errors. A call that fails returns a negative number and, unless documented otherwise, has changed
 * nothing. cp_errmsg returns the reason. The numbers are -PORTOLAN_ERR_..., as listed below.
 * docs/errors-compose.md lists the errors of each call.
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

#define CP_ERR_ARGUMENT (-1) /* invalid argument, conflict, or invalid or missing file */
#define CP_ERR_RANK (-2)     /* rank outside the job */
#define CP_ERR_ADDRESS (-3)  /* address unsuitable for the call */
#define CP_ERR_MEMORY (-4)   /* out of memory */
#define CP_ERR_STATE (-5)    /* not initialised or synchronised, or memory freed */
#define CP_ERR_HANDLE (-6)   /* no such composition, or one of the wrong kind */
#define CP_ERR_MPI (-8)      /* the MPI library failed */
#define CP_ERR_INTERNAL (-9) /* internal fault of this library */

/* ------------------------------------------------------------- start and end */

/*
 * cp_init starts the library over all ranks, and MPI too if it is not running. Collective. Calls
 * nest, also with the initialisation calls of the library's other interfaces: a program that has
 * called ARMCI_Init need not call cp_init. The last cp_finalize is collective and destroys all
 * compositions. It fails if another thread is in a call that performs, waits, or uses a file.
 */
int cp_init(void);
int cp_finalize(void);

/* The caller's rank, and the number of ranks. */
int cp_rank(void);
int cp_nprocs(void);

/*
 * cp_malloc allocates memory that all ranks can access, with bytes bytes on this rank. Sizes may
 * differ between ranks and may be 0. Stores the address of each rank's memory in ptrs, or NULL for
 * a rank without memory. cp_free takes the caller's own address, or NULL if the caller has no
 * memory. If all ranks pass NULL, it frees nothing. Collective: if the argument of one rank is
 * invalid, the call fails on all ranks.
 */
int cp_malloc(void *ptrs[], size_t bytes);
int cp_free(void *ptr);

/* Returns the reason why this thread's last failed call failed, or "" if no call has failed. */
const char *cp_errmsg(void);

/* -------------------------------------------------------------- compositions */

/* Returns the kind of a composition, one of CP_COMPTYPE_. */
int cp_comptype(int compnum);

/*
 * Creates an empty simple composition. Returns its number, which is positive and unique among
 * existing compositions.
 */
int cp_create(int targetproc);

/* Destroys a composition. Compositions that were made from it are unaffected. */
int cp_destroy(int compnum);

/*
 * Store compositions of any kind in files and load them, in the same run or in another one. Each
 * rank has its own file for each file number (0 and above), in the directory that
 * PORTOLAN_COMPOSE_DIR names. In each run the first cp_store to a number replaces the file, and
 * further calls append to it. Each cp_load loads the next composition of the file and returns its
 * new number. cp_rewind returns to the first composition.
 *
 * A file identifies an address by an allocation of cp_malloc (or ARMCI_Malloc and so on) and an
 * offset. So all addresses must lie in such memory, and the loading run must have the same number
 * of ranks and must have allocated the same lengths in the same order. cp_load rejects a file that
 * is damaged, has another version, is from another rank or number of ranks, or needs allocations
 * that this run lacks. cp_store and cp_load fail with CP_ERR_ADDRESS for memory of the library
 * itself, such as mutexes, and of distributed arrays.
 */
int cp_load(int filenum);
int cp_store(int filenum, int compnum);
int cp_rewind(int filenum);

/*
 * Add to a simple composition: one byte; single bytes, from two arrays of addresses; a block of
 * length bytes; several blocks. Addresses are ignored if the length or count is 0.
 */
int cp_add_adxpair(int compnum, void *localadx, void *remoteadx);
int cp_add_adxpairvector(int compnum, void *localadx[], void *remoteadx[],
                         unsigned int numpairs);
int cp_add_adxblock(int compnum, void *localadxstart, void *remoteadxstart,
                    unsigned int length);
int cp_add_adxblockvector(int compnum, void *localadxstart[], void *remoteadxstart[],
                          unsigned int length[], unsigned int numblocks);

/*
 * Adds a slice. Each side consists of a number of blocks of equal length. The stride is the
 * distance in bytes between the starts of consecutive blocks, cast to a pointer; it may be
 * negative. The bytes of each side are numbered in order, and local byte k goes to remote byte k.
 * The sides may have different block lengths, but must have the same total number of bytes.
 */
int cp_add_adxslice(int compnum, void *localadxstart, void *localadxstride,
                    unsigned int localblocklen, unsigned int localnumblocks,
                    void *remoteadxstart, void *remoteadxstride,
                    unsigned int remoteblocklen, unsigned int remotenumblocks);

/* Creates a merged composition with the triples of both. Returns its number. */
int cp_merge(int compnum1, int compnum2);

/* Creates a mapped composition from a simple or merged one. Returns its number. */
int cp_map(int compnum);

/* ---------------------------------------------------------------- performing */

/*
 * Begins a phase. On return the caller's performances are complete everywhere, all ranks have made
 * the call, and the count of arrivals is 0. Collective.
 */
int cp_sync(void);

/*
 * Copies the bytes of a mapped composition. Each rank that receives bytes counts one arrival after
 * them. If the call fails for some ranks, because of an address that a rank has not mapped, the
 * other ranks have received their bytes.
 */
int cp_perform(int compnum);

/*
 * Waits until the caller may change its own local bytes, and until n performances with bytes for
 * the caller have arrived since the last cp_sync.
 */
int cp_waitfor(int n);

/* Returns the number of performances that have arrived since the last cp_sync. */
int cp_arrived(void);

#ifdef __cplusplus
}
#endif

#endif /* PORTOLAN_CP_H */
