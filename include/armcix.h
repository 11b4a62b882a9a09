/*
 * armcix.h - ARMCI extensions, by Portolan: splitting and duplicating groups, sets of mutexes,
 * explicit progress.
 */
#ifndef PORTOLAN_ARMCIX_H
#define PORTOLAN_ARMCIX_H

#include <armci.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Splits parent into groups of equal color, ordered by key and then by parent rank, as
 * MPI_Comm_split does. Collective over the parent. A caller with color MPI_UNDEFINED, or another
 * negative color, gets a group without members. If new_group is NULL on one rank, all ranks get
 * PORTOLAN_ERR_ARG. A parent that is NULL or was freed is an error of the caller alone.
 */
int ARMCIX_Group_split(ARMCI_Group *parent, int color, int key, ARMCI_Group *new_group);
/* Creates a group of the same ranks in the same order. Otherwise like ARMCIX_Group_split. */
int ARMCIX_Group_dup(ARMCI_Group *parent, ARMCI_Group *new_group);

/* A set of mutexes. The library owns the members. */
struct armcix_mutex_hdl_s {
  int         my_count;
  int         max_count;
  ARMCI_Group grp;
  MPI_Win    *windows;
  uint8_t   **bases;
};

typedef struct armcix_mutex_hdl_s *armcix_mutex_hdl_t;

/*
 * ARMCIX_Create_mutexes_hdl creates a set with count mutexes on this rank, numbered from 0, and
 * returns NULL on failure. Any number of sets may exist. ARMCIX_Destroy_mutexes_hdl destroys a set.
 * Both are collective over the group.
 */
armcix_mutex_hdl_t ARMCIX_Create_mutexes_hdl(int count, ARMCI_Group *pgroup);
int  ARMCIX_Destroy_mutexes_hdl(armcix_mutex_hdl_t hdl);

/* Like ARMCI_Lock and ARMCI_Unlock. proc is a world rank and must be a member of the group. */
void ARMCIX_Lock_hdl(armcix_mutex_hdl_t hdl, int mutex, int proc);
void ARMCIX_Unlock_hdl(armcix_mutex_hdl_t hdl, int mutex, int proc);
/*
 * Acquires the mutex if it is free, and never waits for the holder. Returns 0 if the caller
 * acquired it, 1 if any rank, including the caller, holds it, or a negative error code.
 */
int  ARMCIX_Trylock_hdl(armcix_mutex_hdl_t hdl, int mutex, int proc);

/* Serves requests of other ranks and advances the caller's operations. */
void ARMCIX_Progress(void);

#ifdef __cplusplus
}
#endif

#endif /* PORTOLAN_ARMCIX_H */
