/*
 * message.h - ARMCI's messages and collective operations, by Portolan.
 *
 * Lengths (len, buflen) are in bytes. Counts (n) are in items, except in armci_msg_sel and
 * armci_msg_sel_scope. Ranks are world ranks, even in calls that take a group, except in
 * armci_grp_clus_brdcst. No call returns an error code: an error ends the job with a message. A
 * buffer may be NULL if its length or count is 0.
 *
 * Operators, for every type of armci_type_e. The result replaces x, item by item:
 *   "+" "*" "min" "max"       sum, product, minimum, maximum
 *   "absmin" "absmax"         smallest and largest absolute value
 *   "or"                      integers: bitwise or; floating-point: 1 if any item is not zero,
 *                             else 0
 *   "abs"                     no reduction: x becomes |x| on each rank
 *   "&&" "land", "||" "lor"   logical and, or: 1 or 0
 *   "&" "band", "|" "bor"     bitwise and, or; integers only
 * The leading characters determine the operator. The library does not read beyond the character
 * that decides, so the address of a single char '+' is valid. All ranks that get the result of a
 * reduction get the same bits.
 */
#ifndef PORTOLAN_MESSAGE_H
#define PORTOLAN_MESSAGE_H

#include <armci.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Scope: the ranks of the world group, or of the given group, that take part:
 *   SCOPE_ALL      all ranks
 *   SCOPE_NODE     the ranks of the caller's node, separately on each node
 *   SCOPE_MASTERS  the first rank of each node; on other ranks the call does nothing
 */
enum armci_scope_e { SCOPE_ALL, SCOPE_NODE, SCOPE_MASTERS };

enum armci_type_e { ARMCI_INT, ARMCI_LONG, ARMCI_LONG_LONG, ARMCI_FLOAT, ARMCI_DOUBLE };

/* ----------------------------------------------------------------- basics */

/* Starts MPI unless it is running. The arguments are not changed and may be NULL. */
void   armci_msg_init(int *argc, char ***argv);
/*
 * Ends MPI, and ARMCI if it is still running. Does nothing if MPI is not running. If the library
 * started MPI and the program has called MPI_Init since, but not yet MPI_Finalize, both end in
 * MPI_Finalize instead.
 */
void   armci_msg_finalize(void);

/* armci_msg_me and armci_msg_nproc refer to MPI_COMM_WORLD if MPI is running but ARMCI is not. */
int    armci_msg_me(void);          /* the caller's world rank */
int    armci_msg_nproc(void);       /* number of ranks in the world group */
void   armci_msg_abort(int code);   /* ends the job; exit status as for ARMCI_Error */
double armci_timer(void);           /* wall-clock time in seconds */

/* --------------------------------------------------------- point to point */

/*
 * Sends a message. Returns when the buffer may be reused. The library keeps a message that the
 * caller sends to itself until the caller receives it.
 */
void   armci_msg_snd(int tag, void *buffer, int len, int to);
/*
 * armci_msg_rcv receives from rank from. armci_msg_rcvany receives from any rank and returns the
 * sender. Both store the length of the message in *msglen unless msglen is NULL. A message longer
 * than buflen is an error.
 */
void   armci_msg_rcv(int tag, void *buffer, int buflen, int *msglen, int from);
int    armci_msg_rcvany(int tag, void *buffer, int buflen, int *msglen);

/* ----------------------------------------------------- barrier, broadcast */

/* Barriers. They do not fence. (P) */
void   armci_msg_barrier(void);
void   armci_msg_group_barrier(ARMCI_Group *group);

/*
 * Describes a binary tree over the scope in world ranks: its root, and the caller's parent and
 * children, or -1 for a rank that does not exist. A caller outside SCOPE_MASTERS gets only the
 * root; the other three are -1.
 */
void   armci_msg_bintree(int scope, int *Root, int *Up, int *Left, int *Right);

/*
 * Broadcasts from root, which must belong to the scope. armci_msg_bcast and armci_msg_brdcst are
 * the same call: they broadcast to all ranks.
 */
void   armci_msg_bcast(void *buffer, int len, int root);
void   armci_msg_bcast_scope(int scope, void *buffer, int len, int root);
void   armci_msg_brdcst(void *buffer, int len, int root);
void   armci_msg_group_bcast_scope(int scope, void *buf, int len, int root, ARMCI_Group *group);

/* Broadcasts from the first rank of each node to the other ranks of the node. */
void   armci_msg_clus_brdcst(void *buf, int len);
/*
 * Broadcasts from group rank grp_master to the next grp_clus_nproc - 1 group ranks. Only these
 * grp_clus_nproc ranks call it.
 */
void   armci_grp_clus_brdcst(void *buf, int len, int grp_master, int grp_clus_nproc,
                             ARMCI_Group *mastergroup);

/* -------------------------------------------------------------- reductions */

/* Reduces x over the ranks of the scope, or over all ranks. Each of them gets the result. */
void   armci_msg_gop_scope(int scope, void *x, int n, char *op, int type);
void   armci_msg_igop(int *x, int n, char *op);
void   armci_msg_lgop(long *x, int n, char *op);
void   armci_msg_llgop(long long *x, int n, char *op);
void   armci_msg_fgop(float *x, int n, char *op);
void   armci_msg_dgop(double *x, int n, char *op);

/* Reduces x over the ranks of a group. Every rank of the group gets the result. */
void   armci_msg_group_gop_scope(int scope, void *x, int n, char *op, int type,
                                 ARMCI_Group *group);
void   armci_msg_group_igop(int *x, int n, char *op, ARMCI_Group *group);
void   armci_msg_group_lgop(long *x, int n, char *op, ARMCI_Group *group);
void   armci_msg_group_llgop(long long *x, int n, char *op, ARMCI_Group *group);
void   armci_msg_group_fgop(float *x, int n, char *op, ARMCI_Group *group);
void   armci_msg_group_dgop(double *x, int n, char *op, ARMCI_Group *group);

/* Reduces x over the ranks of the caller's node. Every rank of the node gets the result. */
void   armci_msg_clus_igop(int *x, int n, char *op);
void   armci_msg_clus_lgop(long *x, int n, char *op);
void   armci_msg_clus_llgop(long long *x, int n, char *op);
void   armci_msg_clus_fgop(float *x, int n, char *op);
void   armci_msg_clus_dgop(double *x, int n, char *op);

/* Reduces x to the first rank of the scope or of all ranks. On other ranks x is unchanged. */
void   armci_msg_reduce(void *x, int n, char *op, int type);
void   armci_msg_reduce_scope(int scope, void *x, int n, char *op, int type);

/*
 * Selects one record. x is a record of n bytes that begins with an item of the given type. The
 * record with the smallest ("min") or largest ("max") item replaces x on every rank of the scope,
 * or on all ranks. Only records of ranks with a nonzero contribute are candidates. If items are
 * equal, the record of the lowest rank wins. If no rank contributes, x is unchanged.
 */
void   armci_msg_sel(void *x, int n, char *op, int type, int contribute);
void   armci_msg_sel_scope(int scope, void *x, int n, char *op, int type, int contribute);

/*
 * Merges tables of addresses. Exactly one rank sets each entry, and the entry is NULL on all other
 * ranks. On return every rank has all entries.
 */
void   armci_exchange_address(void *ptr_ar[], int n);
void   armci_exchange_address_grp(void *ptr_arr[], int n, ARMCI_Group *group);

#ifdef __cplusplus
}
#endif

#endif /* PORTOLAN_MESSAGE_H */
