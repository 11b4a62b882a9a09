/*
 * invalid_others.h - the calls of armci.h and armcix.h that move no data themselves, with the
 * faults of their arguments: calls that return a value, and calls that end the job.
 */
#ifndef INVALID_OTHERS_H
#define INVALID_OTHERS_H

static ARMCI_Group world, dead, evens;      /* all ranks, freed, even ranks */
static ARMCI_Group made;
static void *table[64];
static int value;
static const size_t one_length = 8;
static void *freed_here;            /* an own address that no longer starts an allocation */

static void make_groups(void)
{
  int list[64], count = 0;
  for (int r = 0; r < nproc; r += 2)
    list[count++] = r;
  ARMCI_Group_get_world(&world);
  freed_here = own_freed;
  CHECK_OK(ARMCIX_Group_dup(&world, &dead));
  ARMCI_Group_free(&dead);
  ARMCI_Group_create(count, list, &evens);
}

static void drop_groups(void) { ARMCI_Group_free(&evens); }

/* -------------------------------------------------- calls that return a value */

struct other {
  const char *call, *fault, *outcome;
  int (*run)(void);                 /* whether the outcome is the stated one */
};

static int after_mutexes(int rc)    /* a second set of mutexes */
{
  return ARMCI_Destroy_mutexes() == ARMCI_SUCCESS ? rc : -1;
}

static int with_mutexes(int (*call)(int)) { return ARMCI_Create_mutexes(1) ? -1 : after_mutexes(call(1)); }

static int mixed(void)              /* an aggregate cannot mix gets and puts */
{
  int rc;
  ARMCI_INIT_HANDLE(&handle);
  ARMCI_SET_AGGREGATE_HANDLE(&handle);
  if (ARMCI_NbPut(all_segments[me], all_segments[me], 8, me, &handle))
    return 0;
  rc = ARMCI_NbGet(all_segments[me], here, 8, me, &handle);
  return ARMCI_Wait(&handle) == ARMCI_SUCCESS && rc == PORTOLAN_ERR_HANDLE;
}

#define IS(code, call) ((call) == (code))
#define OTHERS(X)                                                                                         \
  X(init_level, "ARMCI_Init_thread", "an unknown thread level", "`PORTOLAN_ERR_ARG`",                     \
    IS(PORTOLAN_ERR_ARG, ARMCI_Init_thread(-7)) && ARMCI_Initialized() == 1)                              \
  X(malloc_null, "ARMCI_Malloc", "a null table", "`PORTOLAN_ERR_ARG` on all ranks",                       \
    IS(PORTOLAN_ERR_ARG, ARMCI_Malloc(NULL, 8)))                                                          \
  X(malloc_one_null, "ARMCI_Malloc", "a null table on one rank", "`PORTOLAN_ERR_ARG` on all ranks",       \
    IS(PORTOLAN_ERR_ARG, ARMCI_Malloc(me == 0 ? NULL : table, 8)))                                        \
  X(malloc_negative, "ARMCI_Malloc", "a negative size on one rank", "`PORTOLAN_ERR_ARG` on all ranks",    \
    IS(PORTOLAN_ERR_ARG, ARMCI_Malloc(table, me == nproc - 1 ? -8 : 8)))                                  \
  X(malloc_huge, "ARMCI_Malloc", "more than is available, on one rank", "`PORTOLAN_ERR_MEMORY` on all ranks", \
    IS(PORTOLAN_ERR_MEMORY, ARMCI_Malloc(table, me == 0 ? 1L << 60 : 8)))                                 \
  X(memdev_null, "ARMCI_Malloc_memdev", "a null table", "`PORTOLAN_ERR_ARG` on all ranks",                \
    IS(PORTOLAN_ERR_ARG, ARMCI_Malloc_memdev(NULL, 8, "")))                                               \
  X(free_outside, "ARMCI_Free", "an address in no segment", "`PORTOLAN_ERR_ADDRESS` on all ranks",        \
    IS(PORTOLAN_ERR_ADDRESS, ARMCI_Free(outside)))                                                        \
  X(free_inside, "ARMCI_Free", "an address inside a segment", "`PORTOLAN_ERR_ADDRESS` on all ranks",      \
    IS(PORTOLAN_ERR_ADDRESS, ARMCI_Free((char *)all_segments[me] + 8)))                                   \
  X(free_one, "ARMCI_Free", "a wrong address on one rank", "`PORTOLAN_ERR_ADDRESS` on all ranks",         \
    IS(PORTOLAN_ERR_ADDRESS, ARMCI_Free(me == 0 ? (void *)outside : all_segments[me])))                   \
  X(free_twice, "ARMCI_Free", "a segment that was freed", "`PORTOLAN_ERR_ADDRESS` on all ranks",          \
    IS(PORTOLAN_ERR_ADDRESS, ARMCI_Free(freed_here)))                                                     \
  X(free_silent, "ARMCI_Free", "`NULL` on one rank, which has bytes", "`PORTOLAN_ERR_ADDRESS` on all ranks", \
    nproc == 1 || IS(PORTOLAN_ERR_ADDRESS, ARMCI_Free(me == 0 ? NULL : all_segments[me])))                \
  X(local_negative, "ARMCI_Malloc_local", "a negative size", "`NULL`", ARMCI_Malloc_local(-8) == NULL)    \
  X(local_huge, "ARMCI_Malloc_local", "more than is available", "`NULL`", ARMCI_Malloc_local(1L << 60) == NULL) \
  X(local_free, "ARMCI_Free_local", "an address that it did not give", "`PORTOLAN_ERR_ADDRESS`",          \
    IS(PORTOLAN_ERR_ADDRESS, ARMCI_Free_local(outside)))                                                  \
  X(group_null, "ARMCI_Malloc_group", "a null group", "`PORTOLAN_ERR_ARG`",                               \
    IS(PORTOLAN_ERR_ARG, ARMCI_Malloc_group(table, 8, NULL)))                                             \
  X(group_dead, "ARMCI_Malloc_group", "a group that was freed", "`PORTOLAN_ERR_STATE`",                   \
    IS(PORTOLAN_ERR_STATE, ARMCI_Malloc_group(table, 8, &dead)))                                          \
  X(group_outsider, "ARMCI_Malloc_group", "a group without the caller", "`PORTOLAN_ERR_STATE`, there alone",  \
    me % 2 == 0 || IS(PORTOLAN_ERR_STATE, ARMCI_Malloc_group(table, 8, &evens)))                            \
  X(free_group_null, "ARMCI_Free_group", "a null group", "`PORTOLAN_ERR_ARG`",                            \
    IS(PORTOLAN_ERR_ARG, ARMCI_Free_group(all_segments[me], NULL)))                                       \
  X(free_group_wrong, "ARMCI_Free_group", "a segment of another group", "`PORTOLAN_ERR_ADDRESS`",         \
    me % 2 != 0 || IS(PORTOLAN_ERR_ADDRESS, ARMCI_Free_group(all_segments[me], &evens)))                  \
  X(split_out, "ARMCIX_Group_split", "`NULL` for the new group on one rank", "`PORTOLAN_ERR_ARG` on all ranks", \
    IS(PORTOLAN_ERR_ARG, ARMCIX_Group_split(&world, me, 0, me == 0 ? NULL : &made)))                      \
  X(split_null, "ARMCIX_Group_split", "a null parent", "`PORTOLAN_ERR_ARG`",                              \
    IS(PORTOLAN_ERR_ARG, ARMCIX_Group_split(NULL, me, 0, &made)))                                         \
  X(dup_out, "ARMCIX_Group_dup", "`NULL` for the new group on one rank", "`PORTOLAN_ERR_ARG` on all ranks", \
    IS(PORTOLAN_ERR_ARG, ARMCIX_Group_dup(&world, me == 0 ? NULL : &made)))                               \
  X(dup_dead, "ARMCIX_Group_dup", "a parent that was freed", "`PORTOLAN_ERR_STATE`",                      \
    IS(PORTOLAN_ERR_STATE, ARMCIX_Group_dup(&dead, &made)))                                               \
  X(group_rank_null, "ARMCI_Group_rank", "a null group", "not 0", ARMCI_Group_rank(NULL, &value) != 0)    \
  X(group_rank_dead, "ARMCI_Group_rank", "a group that was freed", "not 0", ARMCI_Group_rank(&dead, &value) != 0) \
  X(group_rank_out, "ARMCI_Group_rank", "a group without the caller", "not 0, and the rank is -1",        \
    me % 2 == 0 || (ARMCI_Group_rank(&evens, &value) != 0 && value == -1))                                \
  X(id_negative, "ARMCI_Absolute_id", "group rank -1", "-1", ARMCI_Absolute_id(&world, -1) == -1)         \
  X(id_after, "ARMCI_Absolute_id", "a group rank outside", "-1", ARMCI_Absolute_id(&world, nproc) == -1)  \
  X(id_null, "ARMCI_Absolute_id", "a null group", "-1", ARMCI_Absolute_id(NULL, 0) == -1)                 \
  X(id_dead, "ARMCI_Absolute_id", "a group that was freed", "-1", ARMCI_Absolute_id(&dead, 0) == -1)      \
  X(wait_null, "ARMCI_Wait", "a null handle", "`PORTOLAN_ERR_HANDLE`", IS(PORTOLAN_ERR_HANDLE, ARMCI_Wait(NULL)))  \
  X(test_null, "ARMCI_Test", "a null handle", "`PORTOLAN_ERR_HANDLE`", IS(PORTOLAN_ERR_HANDLE, ARMCI_Test(NULL)))  \
  X(mixed, "ARMCI_NbGet", "an aggregate handle of puts", "`PORTOLAN_ERR_HANDLE`", mixed())                \
  X(wait_rank, "ARMCI_WaitProc", "rank -1", "`PORTOLAN_ERR_RANK`", IS(PORTOLAN_ERR_RANK, ARMCI_WaitProc(-1)))  \
  X(wait_after, "ARMCI_WaitProc", "a rank outside", "`PORTOLAN_ERR_RANK`", IS(PORTOLAN_ERR_RANK, ARMCI_WaitProc(nproc)))  \
  X(mutex_negative, "ARMCI_Create_mutexes", "a negative count", "`PORTOLAN_ERR_ARG` on all ranks",        \
    IS(PORTOLAN_ERR_ARG, ARMCI_Create_mutexes(me == 0 ? -1 : 1)))                                         \
  X(mutex_huge, "ARMCI_Create_mutexes", "INT_MAX of them", "`PORTOLAN_ERR_MEMORY` on all ranks",          \
    IS(PORTOLAN_ERR_MEMORY, ARMCI_Create_mutexes(INT_MAX)))                                               \
  X(mutex_again, "ARMCI_Create_mutexes", "a second set", "`PORTOLAN_ERR_STATE`",                          \
    IS(PORTOLAN_ERR_STATE, with_mutexes(ARMCI_Create_mutexes)))                                           \
  X(mutex_none, "ARMCI_Destroy_mutexes", "no set", "`PORTOLAN_ERR_STATE`",                                \
    IS(PORTOLAN_ERR_STATE, ARMCI_Destroy_mutexes()))                                                      \
  X(hdl_negative, "ARMCIX_Create_mutexes_hdl", "a negative count", "`NULL`",                              \
    ARMCIX_Create_mutexes_hdl(-1, &world) == NULL)                                                        \
  X(hdl_null, "ARMCIX_Destroy_mutexes_hdl", "`NULL`", "not 0", ARMCIX_Destroy_mutexes_hdl(NULL) != 0)     \
  X(init_twice, "ARMCI_Init", "a second time", "0, and counts: ARMCI_Finalize is called as often",        \
    ARMCI_Init() == ARMCI_SUCCESS && ARMCI_Finalize() == ARMCI_SUCCESS && ARMCI_Initialized())            \
  X(init_null, "ARMCI_Init_mpi_comm", "`MPI_COMM_NULL`", "`PORTOLAN_ERR_ARG`",                             \
    IS(PORTOLAN_ERR_ARG, ARMCI_Init_mpi_comm(MPI_COMM_NULL)) && ARMCI_Initialized() == 1)                 \
  X(init_other, "ARMCI_Init_mpi_comm", "other ranks than those that ARMCI runs over", "`PORTOLAN_ERR_STATE`", \
    nproc == 1 || (IS(PORTOLAN_ERR_STATE, ARMCI_Init_mpi_comm(MPI_COMM_SELF)) && ARMCI_Initialized() == 1)) \
  X(notify_negative, "armci_notify", "rank -1", "below 0", armci_notify(-1) < 0)                          \
  X(notify_rank, "armci_notify", "a rank outside", "below 0", armci_notify(nproc) < 0)                    \
  X(notify_wait, "armci_notify_wait", "a rank outside", "below 0", armci_notify_wait(nproc, &value) < 0)  \
  X(path_rank, "portolan_path_name", "a rank outside", "`NULL`", portolan_path_name(nproc) == NULL)       \
  X(many_negative, "portolan_malloc_many", "a negative count", "`PORTOLAN_ERR_ARG` on all ranks",         \
    IS(PORTOLAN_ERR_ARG, portolan_malloc_many(me == 0 ? -1 : 1, &one_length, table)))                 \
  X(many_counts, "portolan_malloc_many", "counts that differ by rank", "`PORTOLAN_ERR_ARG` on all ranks", \
    nproc == 1 || IS(PORTOLAN_ERR_ARG, portolan_malloc_many(me == 0 ? 0 : 1, &one_length, table)))    \
  X(many_null, "portolan_malloc_many", "`NULL` for the addresses", "`PORTOLAN_ERR_ARG` on all ranks",     \
    IS(PORTOLAN_ERR_ARG, portolan_malloc_many(1, &one_length, me == 0 ? NULL : table)))               \
  X(domain_rank, "armci_domain_id", "a rank outside", "below 0", armci_domain_id(ARMCI_DOMAIN_SMP, nproc) < 0)  \
  X(domain_nprocs, "armci_domain_nprocs", "a domain outside", "below 0",                                  \
    armci_domain_nprocs(ARMCI_DOMAIN_SMP, nproc) < 0)                                                   \
  X(domain_glob, "armci_domain_glob_proc_id", "a member outside", "below 0",                              \
    armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, 0, nproc) < 0)                                          \
  X(same_node, "ARMCI_Same_node", "a rank outside", "0", ARMCI_Same_node(nproc) == 0)

#define DEFINE(id, call, fault, outcome, condition) static int other_##id(void) { return (condition); }
OTHERS(DEFINE)
#define ROW(id, call, fault, outcome, condition) { call, fault, outcome, other_##id },
static const struct other other_calls[] = { OTHERS(ROW) { NULL, NULL, NULL, NULL } };

/* --------------------------------------------------------- calls that end the job */

enum who { ONE, ALL, EARLY, LATE }; /* last rank; all; all before Init; all after Finalize */

struct fatal {
  const char *name, *call, *fault;
  enum who who;
  void (*run)(void);
};

static int numbers[4] = { 1, 2, 3, 4 };
static double reals[2] = { 1, 2 };
static char add[] = "+", slash[] = "/", both[] = "&";
static int two[2] = { 8, 2 }, eight[1] = { 8 }, no_list[2] = { 0, -1 };

static stride_info_t segments;

static void next_of_none(void)
{
  armci_stride_info_init(&segments, here, 0, NULL, eight);
  armci_stride_info_next(&segments);
  CHECK_EQ(armci_stride_info_has_more(&segments), 0);
  armci_stride_info_next(&segments);
}

static void lock_gone(void)
{
  armcix_mutex_hdl_t set = ARMCIX_Create_mutexes_hdl(1, &world);
  CHECK_EQ(ARMCIX_Destroy_mutexes_hdl(set), 0);
  ARMCIX_Lock_hdl(set, 0, 0);
}

static void free_of_group(void)     /* rank 0 has no bytes, so it cannot name the segment */
{
  void *ptrs[64];
  CHECK_OK(ARMCIX_Group_dup(&world, &made));
  CHECK_OK(ARMCI_Malloc_group(ptrs, me == 0 ? 0 : 8, &made));
  ARMCI_Free(ptrs[me]);
}

#define FATALS(X)                                                                                          \
  X(fence_rank, "fence-rank", "ARMCI_Fence", "a rank outside", ONE, ARMCI_Fence(nproc))                    \
  X(fence_negative, "fence-negative", "ARMCI_Fence", "rank -1", ONE, ARMCI_Fence(-1))                      \
  X(fence_early, "fence-early", "ARMCI_Fence", "before ARMCI_Init", EARLY, ARMCI_Fence(0))                 \
  X(fence_late, "fence-late", "ARMCI_Fence", "after ARMCI_Finalize", LATE, ARMCI_Fence(0))                 \
  X(all_fence_early, "all-fence-early", "ARMCI_AllFence", "before ARMCI_Init", EARLY, ARMCI_AllFence())    \
  X(all_fence_late, "all-fence-late", "ARMCI_AllFence", "after ARMCI_Finalize", LATE, ARMCI_AllFence())    \
  X(barrier_early, "barrier-early", "ARMCI_Barrier", "before ARMCI_Init", EARLY, ARMCI_Barrier())          \
  X(barrier_late, "barrier-late", "ARMCI_Barrier", "after ARMCI_Finalize", LATE, ARMCI_Barrier())          \
  X(lock_none, "lock-none", "ARMCI_Lock", "no mutexes", ONE, ARMCI_Lock(0, 0))                             \
  X(lock_early, "lock-early", "ARMCI_Lock", "before ARMCI_Init", EARLY, ARMCI_Lock(0, 0))                  \
  X(unlock_none, "unlock-none", "ARMCI_Unlock", "no mutexes", ONE, ARMCI_Unlock(0, 0))                     \
  X(lock_null, "lock-null", "ARMCIX_Lock_hdl", "`NULL`", ONE, ARMCIX_Lock_hdl(NULL, 0, 0))                 \
  X(lock_gone, "lock-gone", "ARMCIX_Lock_hdl", "a set that was destroyed", ALL, lock_gone())               \
  X(unlock_null, "unlock-null", "ARMCIX_Unlock_hdl", "`NULL`", ONE, ARMCIX_Unlock_hdl(NULL, 0, 0))         \
  X(value_outside, "value-outside", "ARMCI_GetValueInt", "an address in no segment", ONE,                  \
    printf("%d\n", ARMCI_GetValueInt(outside, me)))                                                        \
  X(value_rank, "value-rank", "ARMCI_GetValueLong", "a rank outside", ONE,                                 \
    printf("%ld\n", ARMCI_GetValueLong(segment, nproc)))                                                   \
  X(value_float, "value-float", "ARMCI_GetValueFloat", "a null address", ONE,                              \
    printf("%f\n", (double)ARMCI_GetValueFloat(NULL, me)))                                                 \
  X(value_freed, "value-freed", "ARMCI_GetValueDouble", "a segment that was freed", ONE,                   \
    printf("%f\n", ARMCI_GetValueDouble(freed, right)))                                                    \
  X(access_outside, "access-outside", "ARMCI_Access_begin", "an address in no segment", ONE, ARMCI_Access_begin(outside)) \
  X(copy_negative, "copy-negative", "ARMCI_Copy", "a negative length", ONE, ARMCI_Copy(numbers, reals, -4)) \
  X(copy_null, "copy-null", "ARMCI_Copy", "a null address", ONE, ARMCI_Copy(NULL, reals, 4))               \
  X(write_null, "write-null", "armci_write_strided", "a null address", ONE,                                \
    armci_write_strided(NULL, 1, eight, two, (char *)here))                                                \
  X(read_levels, "read-levels", "armci_read_strided", "stride_levels -1", ONE,                             \
    armci_read_strided(here, -1, eight, two, (char *)before))                                              \
  X(segments_null, "segments-null", "armci_stride_info_init", "a null structure", ONE,                     \
    armci_stride_info_init(NULL, here, 1, eight, two))                                                     \
  X(segments_levels, "segments-levels", "armci_stride_info_init", "9 stride levels", ONE,                  \
    armci_stride_info_init(&segments, here, 9, eight, two))                                                \
  X(segments_end, "segments-end", "armci_stride_info_next", "no segment left", ONE, next_of_none())        \
  X(segments_ask, "segments-ask", "armci_stride_info_seg_ptr", "a null structure", ONE,                    \
    printf("%p\n", armci_stride_info_seg_ptr(NULL)))                                                       \
  X(comm_null, "comm-null", "armci_group_comm", "a null group", ONE, (void)armci_group_comm(NULL))         \
  X(handle_null, "handle-null", "ARMCI_SET_AGGREGATE_HANDLE", "a null handle", ONE, ARMCI_SET_AGGREGATE_HANDLE(NULL)) \
  X(group_list, "group-list", "ARMCI_Group_create", "a list with an invalid rank", ALL,                \
    ARMCI_Group_create(2, no_list, &made))                                                                 \
  X(group_null, "group-null", "ARMCI_Group_create", "a null list", ALL, ARMCI_Group_create(2, NULL, &made)) \
  X(group_count, "group-count", "ARMCI_Group_create", "a negative length", ALL, ARMCI_Group_create(-1, no_list, &made)) \
  X(group_out, "group-out", "ARMCI_Group_create", "a null group", ALL, ARMCI_Group_create(1, numbers, NULL)) \
  X(child_dead, "child-dead", "ARMCI_Group_create_child", "a parent that was freed", ALL,                  \
    ARMCI_Group_create_child(1, no_list, &made, &dead))                                                    \
  X(free_empty, "free-empty", "ARMCI_Free", "a group's segment in which a rank has no bytes", ALL, free_of_group()) \
  X(free_world, "free-world", "ARMCI_Group_free", "the group of all ranks", ALL, ARMCI_Group_free(&world)) \
  X(free_twice, "free-twice", "ARMCI_Group_free", "a group that was freed", ALL, ARMCI_Group_free(&dead))   \
  X(free_null, "free-null", "ARMCI_Group_free", "a null group", ALL, ARMCI_Group_free(NULL))               \
  X(default_dead, "default-dead", "ARMCI_Group_set_default", "a group that was freed", ALL, ARMCI_Group_set_default(&dead)) \
  X(size_null, "size-null", "ARMCI_Group_size", "a null group", ONE, ARMCI_Group_size(NULL, &value))       \
  X(gop_op, "gop-op", "armci_msg_igop", "an invalid operator", ALL, armci_msg_igop(numbers, 4, slash)) \
  X(gop_op_null, "gop-op-null", "armci_msg_igop", "a null operator", ALL, armci_msg_igop(numbers, 4, NULL)) \
  X(gop_null, "gop-null", "armci_msg_dgop", "a null array", ALL, armci_msg_dgop(NULL, 2, add))             \
  X(gop_count, "gop-count", "armci_msg_lgop", "a negative count", ALL, armci_msg_lgop((long *)(void *)here, -1, add)) \
  X(gop_bits, "gop-bits", "armci_msg_dgop", "an operator of integers", ALL, armci_msg_dgop(reals, 2, both)) \
  X(gop_early, "gop-early", "armci_msg_igop", "before ARMCI_Init", EARLY, armci_msg_igop(numbers, 4, add)) \
  X(gop_group, "gop-group", "armci_msg_group_igop", "a group that was freed", ALL,                         \
    armci_msg_group_igop(numbers, 4, add, &dead))                                                          \
  X(gop_type, "gop-type", "armci_msg_reduce", "an unknown type", ALL, armci_msg_reduce(numbers, 4, add, 77)) \
  X(scope, "scope", "armci_msg_gop_scope", "an unknown scope", ALL,                                        \
    armci_msg_gop_scope(9, numbers, 4, add, ARMCI_INT))                                                    \
  X(bcast_root, "bcast-root", "armci_msg_bcast", "a root outside", ALL, armci_msg_bcast(numbers, 4, nproc)) \
  X(bcast_null, "bcast-null", "armci_msg_brdcst", "a null buffer", ALL, armci_msg_brdcst(NULL, 4, 0))      \
  X(barrier_group, "barrier-group", "armci_msg_group_barrier", "a null group", ALL, armci_msg_group_barrier(NULL)) \
  X(snd_rank, "snd-rank", "armci_msg_snd", "a rank outside", ONE, armci_msg_snd(1, numbers, 4, nproc))     \
  X(snd_tag, "snd-tag", "armci_msg_snd", "a negative tag", ONE, armci_msg_snd(-7, numbers, 4, 0))          \
  X(rcv_rank, "rcv-rank", "armci_msg_rcv", "rank -2", ONE, armci_msg_rcv(1, numbers, 4, NULL, -2))         \
  X(rcv_null, "rcv-null", "armci_msg_rcv", "a null buffer", ONE, armci_msg_rcv(1, NULL, 4, NULL, 0))       \
  X(sel_op, "sel-op", "armci_msg_sel", "an operator other than min and max", ALL,                          \
    armci_msg_sel(numbers, 16, add, ARMCI_INT, 1))                                                         \
  X(exchange_null, "exchange-null", "armci_exchange_address", "a null table", ALL, armci_exchange_address(NULL, nproc)) \
  X(error, "error", "ARMCI_Error", "code 0", ONE, ARMCI_Error("asked to", 0))

#define DEFINE_FATAL(id, name, call, fault, who, statement) static void fatal_##id(void) { statement; }
FATALS(DEFINE_FATAL)
#define FATAL_ROW(id, name, call, fault, who, statement) { name, call, fault, who, fatal_##id },
static const struct fatal fatal_calls[] = { FATALS(FATAL_ROW) { NULL, NULL, NULL, ONE, NULL } };

#endif /* INVALID_OTHERS_H */
