/*
 * armcix.h - ARMCI extensions, by Portolan: group split and duplicate, sets of
 * mutexes, explicit progress.
 */
#ifndef PORTOLAN_ARMCIX_H
#define PORTOLAN_ARMCIX_H

#include <armci.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Cut parent into groups of equal color, ranked by key and then by parent rank,
 * as MPI_Comm_split does; collective over the parent. With color MPI_UNDEFINED
 * the caller gets an empty group.
 */
int ARMCIX_Group_split(ARMCI_Group *parent, int color, int key, ARMCI_Group *new_group);
/* A group of the same ranks in the same order; collective over the parent. */
int ARMCIX_Group_dup(ARMCI_Group *parent, ARMCI_Group *new_group);

/* A set of mutexes. The content belongs to the library. */
struct armcix_mutex_hdl_s {
  int         my_count;
  int         max_count;
  ARMCI_Group grp;
  MPI_Win    *windows;
  uint8_t   **bases;
};

typedef struct armcix_mutex_hdl_s *armcix_mutex_hdl_t;

/*
 * Make count mutexes on this rank; collective over the group, any number of
 * sets may live. NULL on an error. Destroying is collective, too.
 */
armcix_mutex_hdl_t ARMCIX_Create_mutexes_hdl(int count, ARMCI_Group *pgroup);
int  ARMCIX_Destroy_mutexes_hdl(armcix_mutex_hdl_t hdl);

/* As ARMCI_Lock and ARMCI_Unlock; proc is a world rank, member of the group. */
void ARMCIX_Lock_hdl(armcix_mutex_hdl_t hdl, int mutex, int proc);
void ARMCIX_Unlock_hdl(armcix_mutex_hdl_t hdl, int mutex, int proc);
/* Take the mutex if it is free: 0 if taken, non-zero if somebody has it (the
 * caller, too). Does not wait for the holder. */
int  ARMCIX_Trylock_hdl(armcix_mutex_hdl_t hdl, int mutex, int proc);

/* Serve what other ranks want of this one, and advance the caller's operations. */
void ARMCIX_Progress(void);

#ifdef __cplusplus
}
#endif

#endif /* PORTOLAN_ARMCIX_H */
