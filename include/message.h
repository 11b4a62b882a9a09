/*
 * message.h - ARMCI's messages and collective operations, by Portolan.
 *
 * Lengths (len, buflen) are in bytes, counts (n) in items, except armci_msg_sel.
 * Ranks are world ranks, also where a group is given. None of these calls
 * returns a code: an error ends the job through ARMCI_Error. No length or count
 * of zero needs a buffer.
 *
 * Operations, for every type of armci_type_e; the result is in x, item by item:
 *   "+" "*" "min" "max"   the usual reductions
 *   "absmin" "absmax"     smallest and largest absolute value
 *   "or"                  integers: bitwise or; floating types: 1 if any item is
 *                         not zero, else 0
 *   "abs"                 no reduction: x becomes |x| on each rank
 *   "&&" "land", "||" "lor"   logical and, or: 1 or 0
 *   "&" "band", "|" "bor"     bitwise and, or; integers only
 * The leading characters decide, so what follows does no harm, and nothing behind the
 * one that decides is read: the address of a single char '+' will do. Results are the same
 * on all ranks.
 */
#ifndef PORTOLAN_MESSAGE_H
#define PORTOLAN_MESSAGE_H

#include <armci.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Who takes part, of the world group or of the group given:
 *   SCOPE_ALL      everyone
 *   SCOPE_NODE     the ranks of the caller's node, each node for itself
 *   SCOPE_MASTERS  the first rank of each node; other ranks may call and nothing
 *                  happens to them
 */
enum armci_scope_e { SCOPE_ALL, SCOPE_NODE, SCOPE_MASTERS };

enum armci_type_e { ARMCI_INT, ARMCI_LONG, ARMCI_LONG_LONG, ARMCI_FLOAT, ARMCI_DOUBLE };

/* ----------------------------------------------------------------- basics */

/* Start MPI unless it runs; the arguments are left alone and may be NULL. */
void   armci_msg_init(int *argc, char ***argv);
/* End MPI, and ARMCI where that still runs; nothing where MPI does not run. */
void   armci_msg_finalize(void);

/* Where MPI runs but ARMCI does not, the first two are those of MPI_COMM_WORLD. */
int    armci_msg_me(void);          /* the caller's world rank */
int    armci_msg_nproc(void);       /* number of ranks in the world group */
void   armci_msg_abort(int code);   /* end the job; status as for ARMCI_Error */
double armci_timer(void);           /* wall clock, in seconds */

/* --------------------------------------------------------- point to point */

/* Send; returns when the buffer may be reused. A message to oneself is kept
 * until it is received. */
void   armci_msg_snd(int tag, void *buffer, int len, int to);
/* Receive from one rank, or from any; the latter returns the sender. The length
 * that came is stored in *msglen unless that is NULL. A message longer than
 * buflen is an error. */
void   armci_msg_rcv(int tag, void *buffer, int buflen, int *msglen, int from);
int    armci_msg_rcvany(int tag, void *buffer, int buflen, int *msglen);

/* ----------------------------------------------------- barrier, broadcast */

/* Barriers only: no fence. */
void   armci_msg_barrier(void);
void   armci_msg_group_barrier(ARMCI_Group *group);

/*
 * A binary tree over the scope, in world ranks: its root, and the caller's
 * parent and children; -1 where there is none. At a rank outside SCOPE_MASTERS
 * only the root is given and the others are -1.
 */
void   armci_msg_bintree(int scope, int *Root, int *Up, int *Left, int *Right);

/* Broadcast from root, which must belong to the scope. The first and the third
 * are the same call. */
void   armci_msg_bcast(void *buffer, int len, int root);
void   armci_msg_bcast_scope(int scope, void *buffer, int len, int root);
void   armci_msg_brdcst(void *buffer, int len, int root);
void   armci_msg_group_bcast_scope(int scope, void *buf, int len, int root, ARMCI_Group *group);

/* Broadcast from the first rank of each node to that node. */
void   armci_msg_clus_brdcst(void *buf, int len);
/* Broadcast from member grp_master of the group to it and the next
 * grp_clus_nproc - 1 members (group ranks); they alone need call. */
void   armci_grp_clus_brdcst(void *buf, int len, int grp_master, int grp_clus_nproc,
                             ARMCI_Group *mastergroup);

/* -------------------------------------------------------------- reductions */

/* Reduce x over the scope; every rank gets the result. */
void   armci_msg_gop_scope(int scope, void *x, int n, char *op, int type);
void   armci_msg_igop(int *x, int n, char *op);
void   armci_msg_lgop(long *x, int n, char *op);
void   armci_msg_llgop(long long *x, int n, char *op);
void   armci_msg_fgop(float *x, int n, char *op);
void   armci_msg_dgop(double *x, int n, char *op);

/* The same within a group. */
void   armci_msg_group_gop_scope(int scope, void *x, int n, char *op, int type,
                                 ARMCI_Group *group);
void   armci_msg_group_igop(int *x, int n, char *op, ARMCI_Group *group);
void   armci_msg_group_lgop(long *x, int n, char *op, ARMCI_Group *group);
void   armci_msg_group_llgop(long long *x, int n, char *op, ARMCI_Group *group);
void   armci_msg_group_fgop(float *x, int n, char *op, ARMCI_Group *group);
void   armci_msg_group_dgop(double *x, int n, char *op, ARMCI_Group *group);

/* The same within the caller's node. */
void   armci_msg_clus_igop(int *x, int n, char *op);
void   armci_msg_clus_lgop(long *x, int n, char *op);
void   armci_msg_clus_llgop(long long *x, int n, char *op);
void   armci_msg_clus_fgop(float *x, int n, char *op);
void   armci_msg_clus_dgop(double *x, int n, char *op);

/* Reduce x to the first rank of the scope; elsewhere x keeps its content. */
void   armci_msg_reduce(void *x, int n, char *op, int type);
void   armci_msg_reduce_scope(int scope, void *x, int n, char *op, int type);

/*
 * Select one record: x is n bytes that begin with an item of the given type.
 * The record with the smallest ("min") or largest ("max") item among ranks with
 * contribute not zero replaces x on every rank of the scope; of equals, the
 * lowest rank's. If nobody contributes, x keeps its content.
 */
void   armci_msg_sel(void *x, int n, char *op, int type, int contribute);
void   armci_msg_sel_scope(int scope, void *x, int n, char *op, int type, int contribute);

/* Merge tables of addresses: each entry is set by one rank and NULL on the
 * others; afterwards every rank has all entries. */
void   armci_exchange_address(void *ptr_ar[], int n);
void   armci_exchange_address_grp(void *ptr_arr[], int n, ARMCI_Group *group);

#ifdef __cplusplus
}
#endif

#endif /* PORTOLAN_MESSAGE_H */
