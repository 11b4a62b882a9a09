/*
 * scopes.h - the ranks in each scope of message.h, from the topology calls.
 */
#ifndef SCOPES_H
#define SCOPES_H

#include "check.h"

/* Finds the ranks of each scope with the topology calls; node[] is the caller's node. */
static int *node, node_size, *masters, master_count, node_place = -1, master_place = -1;

static inline void learn_scopes(void)
{
  node = check_calloc(nproc * (long)sizeof(int));
  masters = check_calloc(nproc * (long)sizeof(int));
  node_size = armci_domain_nprocs(ARMCI_DOMAIN_SMP, -1);
  for (int i = 0; i < node_size; i++) {
    node[i] = armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, -1, i);
    if (node[i] == me)
      node_place = i;
  }
  master_count = armci_domain_count(ARMCI_DOMAIN_SMP);
  for (int i = 0; i < master_count; i++) {
    masters[i] = armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, i, 0);
    if (masters[i] == me)
      master_place = i;
  }
  CHECK(node_place >= 0, "rank %d is not on its node", me);
}

/* Stores the ranks of a scope, as seen by the caller; returns their number. */
static inline int scope_ranks(int scope, int *ranks)
{
  if (scope == SCOPE_NODE) {
    memcpy(ranks, node, (size_t)node_size * sizeof(int));
    return node_size;
  }
  if (scope == SCOPE_MASTERS) {
    memcpy(ranks, masters, (size_t)master_count * sizeof(int));
    return master_count;
  }
  for (int i = 0; i < nproc; i++)
    ranks[i] = i;
  return nproc;
}

static inline int in_scope(int scope)
{
  return scope != SCOPE_MASTERS || master_place >= 0;
}

static inline void forget_scopes(void)
{
  free(node);
  free(masters);
}

/* Returns item i of a rank: small, of either sign, some zero. */
static inline long item(int rank, int i)
{
  static const long table[] = { 1, -3, 2, 0, -1, 5, 4, -2 };
  return table[(rank * 3 + i) % 8];
}

enum { N = 5 };                     /* items of a test array, plus a guard */

typedef union {
  int i[N + 1];
  long l[N + 1];
  long long q[N + 1];
  float f[N + 1];
  double d[N + 1];
} items;

/* Store and load whole numbers in an array of any type. */
static inline void store(items *x, int type, int at, long value)
{
  switch (type) {
  case ARMCI_INT:       x->i[at] = (int)value; break;
  case ARMCI_LONG:      x->l[at] = value; break;
  case ARMCI_LONG_LONG: x->q[at] = value; break;
  case ARMCI_FLOAT:     x->f[at] = (float)value; break;
  default:              x->d[at] = (double)value; break;
  }
}

static inline long load(const items *x, int type, int at)
{
  switch (type) {
  case ARMCI_INT:       return x->i[at];
  case ARMCI_LONG:      return x->l[at];
  case ARMCI_LONG_LONG: return (long)x->q[at];
  case ARMCI_FLOAT:     return (long)x->f[at];
  default:              return (long)x->d[at];
  }
}

#endif /* SCOPES_H */
