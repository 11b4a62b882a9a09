/* Every function of the headers is in the library; otherwise this program does not link. The test
 * `docs` checks that the table is complete. */
// TEST: armci
#include "check.h"

typedef void (*function)(void);

static const struct {
  const char *name;
  function address;
} table[] = {
#define NAME(name) { #name, (function)name },
  /* armci.h */
  NAME(ARMCI_Init) NAME(ARMCI_Init_args) NAME(ARMCI_Init_thread) NAME(ARMCI_Init_thread_comm)
  NAME(ARMCI_Init_mpi_comm) NAME(PARMCI_Init_mpi_comm) NAME(armci_notify) NAME(armci_notify_wait)
  NAME(parmci_notify) NAME(parmci_notify_wait) NAME(armci_group_comm)
  NAME(armci_stride_info_init) NAME(armci_stride_info_destroy) NAME(armci_stride_info_next)
  NAME(armci_stride_info_has_more) NAME(armci_stride_info_has_next) NAME(armci_stride_info_seg_ptr)
  NAME(armci_stride_info_get) NAME(armci_stride_info_seg_size) NAME(armci_stride_info_seg_off)
  NAME(armci_stride_info_pos) NAME(armci_stride_info_size) NAME(armci_stride_info_count)
  NAME(armci_stride_info_seg_count)
  NAME(ARMCI_Initialized) NAME(ARMCI_Finalize) NAME(ARMCI_Cleanup) NAME(ARMCI_Error)
  NAME(ARMCI_Malloc) NAME(ARMCI_Free) NAME(ARMCI_Malloc_local) NAME(ARMCI_Free_local)
  NAME(ARMCI_Malloc_memdev) NAME(ARMCI_Free_memdev) NAME(ARMCI_Access_begin)
  NAME(ARMCI_Access_end) NAME(ARMCI_Copy) NAME(ARMCI_Barrier) NAME(ARMCI_Fence)
  NAME(ARMCI_AllFence) NAME(ARMCI_Put) NAME(ARMCI_Get) NAME(ARMCI_Acc) NAME(ARMCI_Put_flag)
  NAME(ARMCI_PutS) NAME(ARMCI_GetS) NAME(ARMCI_AccS) NAME(ARMCI_PutS_flag)
  NAME(armci_write_strided) NAME(armci_read_strided) NAME(ARMCI_PutV) NAME(ARMCI_GetV)
  NAME(ARMCI_AccV) NAME(ARMCI_INIT_HANDLE) NAME(ARMCI_SET_AGGREGATE_HANDLE)
  NAME(ARMCI_UNSET_AGGREGATE_HANDLE) NAME(ARMCI_NbPut) NAME(ARMCI_NbGet) NAME(ARMCI_NbAcc)
  NAME(ARMCI_NbPutS) NAME(ARMCI_NbGetS) NAME(ARMCI_NbAccS) NAME(ARMCI_NbPutV) NAME(ARMCI_NbGetV)
  NAME(ARMCI_NbAccV) NAME(ARMCI_Wait) NAME(ARMCI_Test) NAME(ARMCI_WaitProc) NAME(ARMCI_WaitAll)
  NAME(ARMCI_PutValueInt) NAME(ARMCI_PutValueLong) NAME(ARMCI_PutValueFloat)
  NAME(ARMCI_PutValueDouble) NAME(ARMCI_NbPutValueInt) NAME(ARMCI_NbPutValueLong)
  NAME(ARMCI_NbPutValueFloat) NAME(ARMCI_NbPutValueDouble) NAME(ARMCI_GetValueInt)
  NAME(ARMCI_GetValueLong) NAME(ARMCI_GetValueFloat) NAME(ARMCI_GetValueDouble) NAME(ARMCI_Rmw)
  NAME(ARMCI_Create_mutexes) NAME(ARMCI_Destroy_mutexes) NAME(ARMCI_Lock) NAME(ARMCI_Unlock)
  NAME(ARMCI_Group_create) NAME(ARMCI_Group_create_child) NAME(ARMCI_Group_free)
  NAME(ARMCI_Group_rank) NAME(ARMCI_Group_size) NAME(ARMCI_Group_set_default)
  NAME(ARMCI_Group_get_default) NAME(ARMCI_Group_get_world) NAME(ARMCI_Absolute_id)
  NAME(ARMCI_Malloc_group) NAME(ARMCI_Free_group) NAME(ARMCI_Malloc_group_memdev)
  NAME(armci_domain_nprocs) NAME(armci_domain_id) NAME(armci_domain_glob_proc_id)
  NAME(armci_domain_my_id) NAME(armci_domain_count) NAME(armci_domain_same_id)
  NAME(ARMCI_Same_node) NAME(ARMCI_Uses_shm) NAME(ARMCI_Uses_shm_grp) NAME(ARMCI_Set_shm_limit)
  NAME(PARMCI_Init) NAME(PARMCI_Init_args) NAME(PARMCI_Init_thread)
  NAME(PARMCI_Init_thread_comm) NAME(PARMCI_Initialized) NAME(PARMCI_Finalize)
  NAME(PARMCI_Malloc) NAME(PARMCI_Free) NAME(PARMCI_Malloc_local) NAME(PARMCI_Free_local)
  NAME(PARMCI_Malloc_memdev) NAME(PARMCI_Malloc_group_memdev) NAME(PARMCI_Free_memdev)
  NAME(PARMCI_Access_begin) NAME(PARMCI_Access_end) NAME(PARMCI_Barrier) NAME(PARMCI_Fence)
  NAME(PARMCI_AllFence) NAME(PARMCI_Put) NAME(PARMCI_Get) NAME(PARMCI_Acc) NAME(PARMCI_Put_flag)
  NAME(PARMCI_PutS) NAME(PARMCI_GetS) NAME(PARMCI_AccS) NAME(PARMCI_PutS_flag) NAME(PARMCI_PutV)
  NAME(PARMCI_GetV) NAME(PARMCI_AccV) NAME(PARMCI_NbPut) NAME(PARMCI_NbGet) NAME(PARMCI_NbAcc)
  NAME(PARMCI_NbPutS) NAME(PARMCI_NbGetS) NAME(PARMCI_NbAccS) NAME(PARMCI_NbPutV)
  NAME(PARMCI_NbGetV) NAME(PARMCI_NbAccV) NAME(PARMCI_Wait) NAME(PARMCI_Test)
  NAME(PARMCI_WaitProc) NAME(PARMCI_WaitAll) NAME(PARMCI_PutValueInt) NAME(PARMCI_PutValueLong)
  NAME(PARMCI_PutValueFloat) NAME(PARMCI_PutValueDouble) NAME(PARMCI_NbPutValueInt)
  NAME(PARMCI_NbPutValueLong) NAME(PARMCI_NbPutValueFloat) NAME(PARMCI_NbPutValueDouble)
  NAME(PARMCI_GetValueInt) NAME(PARMCI_GetValueLong) NAME(PARMCI_GetValueFloat)
  NAME(PARMCI_GetValueDouble) NAME(PARMCI_Rmw) NAME(PARMCI_Create_mutexes)
  NAME(PARMCI_Destroy_mutexes) NAME(PARMCI_Lock) NAME(PARMCI_Unlock) NAME(parmci_msg_barrier)
  NAME(parmci_msg_group_barrier)
  /* message.h */
  NAME(armci_msg_init) NAME(armci_msg_finalize) NAME(armci_msg_me) NAME(armci_msg_nproc) NAME(armci_msg_abort) NAME(armci_timer)
  NAME(armci_msg_snd) NAME(armci_msg_rcv) NAME(armci_msg_rcvany) NAME(armci_msg_barrier)
  NAME(armci_msg_group_barrier) NAME(armci_msg_bintree) NAME(armci_msg_bcast)
  NAME(armci_msg_bcast_scope) NAME(armci_msg_brdcst) NAME(armci_msg_group_bcast_scope)
  NAME(armci_msg_clus_brdcst) NAME(armci_grp_clus_brdcst) NAME(armci_msg_gop_scope)
  NAME(armci_msg_igop) NAME(armci_msg_lgop) NAME(armci_msg_llgop) NAME(armci_msg_fgop)
  NAME(armci_msg_dgop) NAME(armci_msg_group_gop_scope) NAME(armci_msg_group_igop)
  NAME(armci_msg_group_lgop) NAME(armci_msg_group_llgop) NAME(armci_msg_group_fgop)
  NAME(armci_msg_group_dgop) NAME(armci_msg_clus_igop) NAME(armci_msg_clus_lgop)
  NAME(armci_msg_clus_llgop) NAME(armci_msg_clus_fgop) NAME(armci_msg_clus_dgop)
  NAME(armci_msg_reduce) NAME(armci_msg_reduce_scope) NAME(armci_msg_sel)
  NAME(armci_msg_sel_scope) NAME(armci_exchange_address) NAME(armci_exchange_address_grp)
  /* armcix.h */
  NAME(ARMCIX_Group_split) NAME(ARMCIX_Group_dup) NAME(ARMCIX_Create_mutexes_hdl)
  NAME(ARMCIX_Destroy_mutexes_hdl) NAME(ARMCIX_Lock_hdl) NAME(ARMCIX_Unlock_hdl)
  NAME(ARMCIX_Trylock_hdl) NAME(ARMCIX_Progress)
  /* portolan.h */
  NAME(portolan_malloc_many) NAME(portolan_stats_get) NAME(portolan_stats_reset)
  NAME(portolan_region_begin) NAME(portolan_region_end) NAME(portolan_mark)
  NAME(portolan_path_name) NAME(portolan_version) NAME(portolan_last_error)
};

int main(int argc, char **argv)
{
  const int count = (int)(sizeof table / sizeof table[0]);
  check_start("symbols", &argc, &argv);
  for (int i = 0; i < count; i++) {
    CHECK(table[i].address != NULL, "%s is missing", table[i].name);
    for (int j = 0; j < i; j++)
      CHECK(strcmp(table[i].name, table[j].name) != 0, "%s is listed twice", table[i].name);
  }
  CHECK(portolan_version() != NULL && portolan_version()[0] != '\0', "the library has no version");
  return check_end();
}
