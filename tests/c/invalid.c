/*
 * invalid.c - bad input to every call of armci.h, message.h, armcix.h and portolan.h (bad_input.h).
 *
 *   invalid             each call with each fault of its arguments, before, during and after
 *                       ARMCI's life
 *   invalid page        prints the tables of docs/errors.md; needs no launcher
 *   invalid calls       prints the calls that have a row
 *
 * errors.c tests that a call that ends the job does so at all ranks.
 */
// TEST: faults
#define _GNU_SOURCE
#include "check.h"
#include <message.h>
#include "bad_input.h"

enum { ROOM = 256 };

static void **all_segments;         /* of all ranks; `segment` is the right neighbour's */
static char *segment, *own, *freed, *own_freed;
static int right, left, value, numbers[4];
static char here[ROOM], there[ROOM], plus[] = "+", least[] = "min", slash[] = "/", both[] = "&", either[] = "|", *const outside = (char *)numbers;
static long one = 1;
static const size_t eight = 8;
static armci_hdl_t handle;
static ARMCI_Group world, dead, evens, made, spare; /* all ranks, freed, even ranks */
static armcix_mutex_hdl_t mutexes, destroyed;
static void *table[64];
static stride_info_t segments;
static portolan_stats_t stats;

/* ------------------------------------------------------------------- arguments */

#define CODE_OF(code) PORTOLAN_ERR_##code, "`PORTOLAN_ERR_" #code "`"
#define F(name, code, ...) BAD_FAULT(ALL_RANKS, name, CODE_OF(code), __VA_ARGS__)
#define AGREED(name, code, ...) BAD_AGREED(name, CODE_OF(code), __VA_ARGS__)
#define IF_OTHERS if (bad_mode == LISTING || nproc > 1)
#define NULL_IS(code) F("null", code, good = NULL)
#define SKEWED(code) F("not aligned", code, good = (void *)((char *)good + 1))

ARG(int, rank, "rank",
    F("-1", RANK, good = -1) F("the number of ranks", RANK, good = nproc) F("INT_MAX", RANK, good = INT_MAX))
#define REMOTE_FAULTS(at)                                                                            \
  F("null", ARG, at = NULL) F("in no segment", ADDRESS, at = outside) F("16", ADDRESS, at = (char *)16) \
  F("8 bytes below the last address", ADDRESS, at = (char *)-8L)                                     \
  F("just past the end", ADDRESS, at = segment + ROOM) F("before the start", ADDRESS, at = segment - 8) \
  F("the last bytes beyond the end", ADDRESS, at = segment + ROOM - 2)                               \
  F("in a segment that was freed", ADDRESS, at = freed)
ARG(char *, remote, "remote address", REMOTE_FAULTS(good))
ARG(char *, item, "remote item", F("not aligned", TYPE, good = segment + 4))
ARG(void *, local, "local address", NULL_IS(ARG))
ARG(int, bytes, "length of a transfer",
    F("negative", ARG, good = -8) F("INT_MAX - 7", ADDRESS, good = INT_MAX - 7))
ARG(int, whole, "length of items", F("no multiple of an item", TYPE, good = 12))
ARG(int, levels, "stride_levels", F("-1", ARG, good = -1) F("9", ARG, good = 9))
ARG(int *, counts, "counts",
    NULL_IS(ARG) SKEWED(ARG) F("a negative length", ARG, good[0] = -8) F("a negative count", ARG, good[1] = -2))
ARG(int *, far_counts, "counts of a transfer", F("a length of INT_MAX - 7", ADDRESS, good[0] = INT_MAX - 7))
ARG(int *, whole_counts, "length of items", F("no multiple of an item", TYPE, good[0] = 12))
ARG(int *, strides, "local strides", NULL_IS(ARG) SKEWED(ARG) F("negative", ARG, good[0] = -16))
ARG(int *, any_strides, "strides of any sign", NULL_IS(ARG) SKEWED(ARG))
ARG(int *, far_strides, "remote strides",
    NULL_IS(ARG) SKEWED(ARG) F("negative", ARG, good[0] = -16) F("that leave the segment", ADDRESS, good[0] = ROOM)
    F("INT_MAX - 7", ADDRESS, good[0] = INT_MAX - 7))
ARG(void **, locals, "list of local blocks", NULL_IS(ARG) SKEWED(ARG) F("with a null block", ARG, good[1] = NULL))
ARG(void **, remotes, "list of remote blocks", NULL_IS(ARG) SKEWED(ARG))
ARG(char *, block, "remote block", REMOTE_FAULTS(good))
ARG(armci_giov_t *, sets, "sets of blocks",
    NULL_IS(ARG) F("a negative number of blocks", ARG, good->ptr_array_len = -1)
    F("a negative length", ARG, good->bytes = -8) F("a length of INT_MAX - 7", ADDRESS, good->bytes = INT_MAX - 7))
ARG(armci_giov_t *, whole_sets, "length of items", F("no multiple of an item", TYPE, good->bytes = 12))
ARG(int, number, "number of sets", F("-1", ARG, good = -1))
#define UNKNOWN(code) F("unknown", code, good = 99) F("-1", code, good = -1)
ARG(int, type, "type of items", UNKNOWN(TYPE))
ARG(int, operation, "operation", UNKNOWN(TYPE))
ARG(void *, scale, "scale", NULL_IS(ARG))
ARG(int *, flag, "flag", NULL_IS(ARG) F("in no segment", ADDRESS, good = (int *)(void *)outside))
ARG(armci_hdl_t *, hdl, "handle", NULL_IS(HANDLE))

ARG(ARMCI_Group *, group, "group", NULL_IS(ARG) F("that was freed", STATE, good = &dead))
ARG(ARMCI_Group *, any_group, "group, which may be freed", NULL_IS(ARG))
ARG(ARMCI_Group *, live_group, "group of the caller", NULL_IS(ARG) F("that was freed", RANK, good = &dead))
ARG(ARMCI_Group *, old_group, "group to free", F("of all ranks", ARG, good = &world))
ARG(ARMCI_Group *, new_group, "new group", NULL_IS(ARG))
ARG(ARMCI_Group *, agreed_group, "new group, at one rank or all", AGREED("null", ARG, good = NULL))
ARG(int, group_size, "number of members", F("negative", ARG, good = -1))
ARG(int *, members, "list of members",
    NULL_IS(ARG) F("with rank -1", RANK, good[0] = -1) F("with the number of ranks", RANK, good[0] = nproc)
    IF_OTHERS F("with a rank twice", RANK, good[1] = good[0]))

ARG(void **, addresses, "table of addresses, at one rank or all", AGREED("null", ARG, good = NULL))
ARG(long, size, "size, at one rank or all",
    AGREED("negative", ARG, good = -8) AGREED("more than is available", MEMORY, good = 1L << 60))
ARG(int, count, "count, at one rank or all", AGREED("negative", ARG, good = -1))
ARG(int, count_of_mutexes, "number of mutexes", F("INT_MAX", MEMORY, good = INT_MAX))
ARG(const size_t *, lengths, "lengths, at one rank or all", AGREED("null", ARG, good = NULL))
ARG(char *, part, "own part of a segment, at one rank or all",
    AGREED("in no segment", ADDRESS, good = outside) AGREED("inside a segment", ADDRESS, good += 8)
    AGREED("of a segment that was freed", ADDRESS, good = own_freed)
    IF_OTHERS BAD_FAULT(LAST_RANK, "null at one rank, which has bytes", CODE_OF(ADDRESS), good = NULL))
ARG(long, local_size, "local size", F("negative", ARG, good = -8) F("more than is available", MEMORY, good = 1L << 60))
ARG(void *, given, "local memory", F("that ARMCI_Malloc_local did not give", ADDRESS, good = outside))
ARG(char *, inside, "address in the own part of a segment",
    NULL_IS(ARG) F("in no segment", ADDRESS, good = outside) F("in a segment that was freed", ADDRESS, good = own_freed))
ARG(int, mutex, "mutex", F("-1", ARG, good = -1) F("the number of mutexes", ARG, good = 1))
ARG(armcix_mutex_hdl_t, set, "handle of mutexes",
    NULL_IS(HANDLE) F("an address of memory", HANDLE, good = (armcix_mutex_hdl_t)(void *)here)
    F("that was destroyed", HANDLE, good = destroyed))
ARG(int, level, "thread level", F("unknown", ARG, good = -7))
ARG(MPI_Comm, comm, "communicator",
    F("MPI_COMM_NULL", ARG, good = MPI_COMM_NULL)
    IF_OTHERS F("of other ranks than those of ARMCI", STATE, good = MPI_COMM_SELF))

ARG(void *, buffer, "buffer", NULL_IS(ARG))
ARG(int, length, "number of bytes or elements", F("negative", ARG, good = -1))
ARG(int, of_node, "number of ranks of a node", F("negative", ARG, good = -1))
ARG(int, tag, "tag", F("negative", ARG, good = -7))
ARG(int, scope, "scope", UNKNOWN(ARG))
ARG(int, kind, "type of elements", UNKNOWN(TYPE))
ARG(char *, op, "operator", NULL_IS(ARG) F("\"/\"", TYPE, good = slash))
ARG(char *, real_op, "operator on floating-point numbers",
    F("\"&\"", TYPE, good = both) F("\"|\"", TYPE, good = either))
ARG(char *, choice, "operator of a selection", F("\"+\"", TYPE, good = plus))
ARG(int, chosen, "bytes of a selection", F("fewer than an element", ARG, good = 3))
ARG(void *, elements, "array of elements", NULL_IS(ARG) SKEWED(TYPE))
ARG(void **, pointers, "array of addresses", NULL_IS(ARG) SKEWED(ARG))
ARG(int *, root_at, "Root", NULL_IS(ARG))
ARG(int *, up_at, "Up", NULL_IS(ARG))
ARG(int *, left_at, "Left", NULL_IS(ARG))
ARG(int *, right_at, "Right", NULL_IS(ARG))
ARG(int *, result, "place for the result", NULL_IS(ARG))
ARG(int, domain, "domain", F("unknown", ARG, good = 1))
ARG(int, node, "node", F("the number of ranks", ARG, good = nproc))
ARG(stride_info_t *, info, "stride_info_t", NULL_IS(ARG))
ARG(void *, source, "source", NULL_IS(ARG))
ARG(void *, target, "destination", NULL_IS(ARG))
ARG(portolan_stats_t *, statistics, "statistics", NULL_IS(ARG) F("with size 0", ARG, good->size = 0))

/* --------------------------------------- what calls make, use up, and return */

static int is_good(void) { return bad_now == GOOD_CALL; }

static void *fresh(void)            /* a part of a segment to free */
{
  if (!is_good())
    return own;
  CHECK_OK(ARMCI_Malloc(table, 8));
  return table[me];
}

static ARMCI_Group *fresh_group(void)
{
  if (is_good())
    CHECK_OK(ARMCIX_Group_dup(&world, &spare));
  return &spare;
}

static int sent(int bytes)          /* a message to receive */
{
  if (is_good())
    armci_msg_snd(7, numbers, bytes, right);
  return bytes;
}

static portolan_stats_t *sized(void)
{
  stats.size = sizeof stats;
  return &stats;
}

static armci_giov_t *vector(void **from, void **to)
{
  static armci_giov_t it;
  it.src_ptr_array = from, it.dst_ptr_array = to, it.bytes = 8, it.ptr_array_len = 2;
  return &it;
}

static int allocated(int rc) { return rc ? rc : ARMCI_Free(table[me]); }
static int created(int rc) { return rc ? rc : ARMCI_Destroy_mutexes(); }
static int grouped(int rc) { return rc ? rc : (ARMCI_Group_free(&made), 0); }
static int started(int rc) { return rc ? rc : ARMCI_Finalize(); }
static int set_made(armcix_mutex_hdl_t made) { return made ? ARMCIX_Destroy_mutexes_hdl(made) : REFUSED; }
static int local_made(void *made) { return made ? ARMCI_Free_local(made) : REFUSED; }
static int below(int rc) { return rc < 0 ? -rc : 0; }
static int minus_one(int rc) { return rc == -1 ? REFUSED : 0; }
static int tried(int rc) { return rc ? below(rc) : (ARMCIX_Unlock_hdl(mutexes, 0, right), 0); }

/* ---------------------------------------------------------------------- tables */

#define ITEMS type(ARMCI_ACC_LNG), scale(&one)
#define S_PUT local(here), strides((int[]){ 16 }), remote(segment), far_strides((int[]){ 16 })
#define S_GET remote(segment), far_strides((int[]){ 16 }), local(here), strides((int[]){ 16 })
#define COUNTS far_counts(counts((int[]){ 8, 2 }))
#define LOCALS locals((void *[]){ here, here + 16 })
#define REMOTES remotes((void *[]){ segment, block(segment + 16) })
#define V_PUT sets(vector(LOCALS, REMOTES)), number(1), rank(right)
#define V_GET sets(vector(REMOTES, LOCALS)), number(1), rank(right)
#define V_ACC sets(whole_sets(vector(LOCALS, REMOTES))), number(1), rank(right)

static void transfers(void)
{
#define BOTH(name, ...)                                                     \
  CODE(ARMCI_##name, __VA_ARGS__);                                          \
  CODE(ARMCI_Nb##name, __VA_ARGS__, &handle)
  BOTH(Put, local(here), remote(segment), bytes(16), rank(right));
  BOTH(Get, remote(segment), local(here), bytes(16), rank(right));
  BOTH(Acc, ITEMS, local(here), remote(segment), whole(bytes(16)), rank(right));
  BOTH(PutS, S_PUT, COUNTS, levels(1), rank(right));
  BOTH(GetS, S_GET, COUNTS, levels(1), rank(right));
  BOTH(AccS, ITEMS, S_PUT, whole_counts(COUNTS), levels(1), rank(right));
  BOTH(PutV, V_PUT);
  BOTH(GetV, V_GET);
  BOTH(AccV, ITEMS, V_ACC);
  CODE(ARMCI_Put_flag, local(here), remote(segment), bytes(16), flag((int *)(void *)(segment + 128)), 1, rank(right));
  CODE(ARMCI_PutS_flag, S_PUT, COUNTS, levels(1), flag((int *)(void *)(segment + 128)), 1, rank(right));
#define VALUES(type)                                                        \
  BOTH(PutValue##type, 1, remote(segment), rank(right));                    \
  ENDS(ARMCI_GetValue##type, remote(segment), rank(right))
  VALUES(Int);
  VALUES(Long);
  VALUES(Float);
  VALUES(Double);
  CODE(ARMCI_Rmw, operation(ARMCI_FETCH_AND_ADD_LONG), local(here), item(remote(segment)), 1, rank(right));
  CODE(ARMCI_Wait, hdl(&handle));
  CODE(ARMCI_Test, hdl(&handle));
  CODE(ARMCI_WaitProc, rank(right));
  CODE_OF_NONE(ARMCI_WaitAll);
  ENDS(ARMCI_SET_AGGREGATE_HANDLE, hdl(&handle));
  ENDS(ARMCI_UNSET_AGGREGATE_HANDLE, hdl(&handle));
  ENDS(ARMCI_Access_begin, inside(own));
  ENDS(ARMCI_Access_end, inside(own));
  ENDS(ARMCI_Fence, rank(right));
  ENDS_OF_NONE(ARMCI_AllFence);
  ENDS_OF_NONE(ARMCI_Barrier);
  ENDS_OF_NONE(ARMCIX_Progress);
  OUTCOME("below 0", below, armci_notify, rank(right));
  OUTCOME("below 0", below, armci_notify_wait, rank(left), &value);
}

static void always(void)            /* calls that ARMCI's life does not limit */
{
  AS(started, ARMCI_Init_thread, level(MPI_THREAD_SINGLE));
  AS(started, ARMCI_Init_thread_comm, level(MPI_THREAD_SINGLE), comm(MPI_COMM_WORLD));
  AS(started, ARMCI_Init_mpi_comm, comm(MPI_COMM_WORLD));
  CODE(ARMCI_Group_rank, live_group(&world), result(&value));
}

static void objects(void)
{
  AS(allocated, ARMCI_Malloc, addresses(table), size(8));
  AS(allocated, ARMCI_Malloc_memdev, addresses(table), size(8), "");
  AS(allocated, ARMCI_Malloc_group, addresses(table), size(8), group(&world));
  AS(allocated, ARMCI_Malloc_group_memdev, addresses(table), size(8), group(&world), "");
  AS(allocated, portolan_malloc_many, count(1), lengths(&eight), addresses(table));
  CODE(ARMCI_Free, part(fresh()));
  CODE(ARMCI_Free_memdev, part(fresh()));
  CODE(ARMCI_Free_group, part(fresh()), group(&world));
  OUTCOME("`NULL`", local_made, ARMCI_Malloc_local, local_size(8));
  CODE(ARMCI_Free_local, given(is_good() ? ARMCI_Malloc_local(8) : NULL));
  ENDS(ARMCI_Copy, source(here), target(here + 128), length(8));
  AS(created, ARMCI_Create_mutexes, count_of_mutexes(count(1)));
  OUTCOME("`NULL`", set_made, ARMCIX_Create_mutexes_hdl, count_of_mutexes(count(1)), group(&world));
  CODE(ARMCIX_Destroy_mutexes_hdl, set(is_good() ? ARMCIX_Create_mutexes_hdl(1, &world) : NULL));
  AS(grouped, ARMCIX_Group_split, group(&world), me, 0, agreed_group(&made));
  AS(grouped, ARMCIX_Group_dup, group(&world), agreed_group(&made));
#define MEMBERS group_size(2 - (nproc == 1)), members((int[]){ 0, 1 }), new_group(&made)
  ENDS(ARMCI_Group_create, MEMBERS);
  ENDS(ARMCI_Group_create_child, MEMBERS, group(&world));
  ENDS(ARMCI_Group_free, old_group(group(fresh_group())));
  ENDS(ARMCI_Group_size, any_group(&world), result(&value));
  ENDS(ARMCI_Group_set_default, group(&world));
  ENDS(ARMCI_Group_get_default, new_group(&made));
  ENDS(ARMCI_Group_get_world, new_group(&made));
  OUTCOME("-1", minus_one, ARMCI_Absolute_id, group(&world), rank(0));
  ENDS(armci_group_comm, any_group(&world));
  CODE(portolan_stats_get, statistics(sized()));
  CODE_OF_NONE(portolan_stats_reset);
}

static void locks(void)
{
  ENDS(ARMCI_Lock, mutex(0), rank(right));
  ENDS(ARMCI_Unlock, mutex(0), rank(right));
  ENDS(ARMCIX_Lock_hdl, set(mutexes), mutex(0), rank(right));
  ENDS(ARMCIX_Unlock_hdl, set(mutexes), mutex(0), rank(right));
  OUTCOME("below 0", tried, ARMCIX_Trylock_hdl, set(mutexes), mutex(0), rank(right));
}

static void messages(void)
{
  ENDS(armci_msg_snd, tag(7), buffer(numbers), length(4), rank(right));
  ENDS(armci_msg_rcv, tag(7), buffer(numbers), length(4), &value, rank(left));
  ENDS(armci_msg_rcvany, tag(7), buffer(numbers), length(sent(4)), &value);
  ENDS_OF_NONE(armci_msg_barrier);
  ENDS(armci_msg_group_barrier, group(&world));
  ENDS(armci_msg_bintree, scope(SCOPE_ALL), root_at(&value), up_at(&value), left_at(&value), right_at(&value));
#define DATA buffer(numbers), length(4), rank(0)
  ENDS(armci_msg_bcast, DATA);
  ENDS(armci_msg_brdcst, DATA);
  ENDS(armci_msg_bcast_scope, scope(SCOPE_ALL), DATA);
  ENDS(armci_msg_group_bcast_scope, scope(SCOPE_ALL), DATA, group(&world));
  ENDS(armci_msg_clus_brdcst, buffer(numbers), length(4));
  ENDS(armci_grp_clus_brdcst, DATA, of_node(nproc), group(&world));
#define REDUCTIONS(letter, op)                                              \
  ENDS(armci_msg_##letter##gop, elements(table), length(1), op);            \
  ENDS(armci_msg_group_##letter##gop, elements(table), length(1), op, group(&world)); \
  ENDS(armci_msg_clus_##letter##gop, elements(table), length(1), op)
  REDUCTIONS(i, op(plus));
  REDUCTIONS(l, op(plus));
  REDUCTIONS(ll, op(plus));
  REDUCTIONS(f, real_op(op(plus)));
  REDUCTIONS(d, real_op(op(plus)));
#define ARRAY elements(table), length(1), op(plus), kind(ARMCI_INT)
  ENDS(armci_msg_gop_scope, scope(SCOPE_ALL), ARRAY);
  ENDS(armci_msg_group_gop_scope, scope(SCOPE_ALL), ARRAY, group(&world));
  ENDS(armci_msg_reduce, ARRAY);
  ENDS(armci_msg_reduce_scope, scope(SCOPE_ALL), ARRAY);
#define CHOICE buffer(numbers), chosen(length(8)), choice(op(least)), kind(ARMCI_INT), 1
  ENDS(armci_msg_sel, CHOICE);
  ENDS(armci_msg_sel_scope, scope(SCOPE_ALL), CHOICE);
  ENDS(armci_exchange_address, pointers(table), length(1));
  ENDS(armci_exchange_address_grp, pointers(table), length(1), group(&world));
  OUTCOME("below 0", below, armci_domain_nprocs, domain(ARMCI_DOMAIN_SMP), node(0));
  OUTCOME("below 0", below, armci_domain_id, domain(ARMCI_DOMAIN_SMP), rank(right));
  OUTCOME("below 0", below, armci_domain_glob_proc_id, domain(ARMCI_DOMAIN_SMP), node(0), rank(0));
  OUTCOME("below 0", below, armci_domain_my_id, domain(ARMCI_DOMAIN_SMP));
  OUTCOME("below 0", below, armci_domain_count, domain(ARMCI_DOMAIN_SMP));
  OUTCOME("below 0", below, armci_domain_same_id, domain(ARMCI_DOMAIN_SMP), rank(right));
}

static void alone(void)             /* calls that need no ARMCI */
{
#define PACKED source(here), levels(1), strides((int[]){ 16 }), counts((int[]){ 8, 2 }), target(here + 128)
  ENDS(armci_write_strided, PACKED);
  ENDS(armci_read_strided, PACKED);
  ENDS(armci_stride_info_init, info(&segments), here, levels(1), any_strides((int[]){ 16 }), counts((int[]){ 8, 2 }));
#define ASKS(what) ENDS(armci_stride_info_##what, info(&segments))
  ASKS(has_more); ASKS(has_next); ASKS(seg_ptr); ASKS(get); ASKS(seg_size); ASKS(seg_off); ASKS(pos);
  ASKS(size); ASKS(count); ASKS(seg_count); ASKS(next); ASKS(destroy);
  /* Bad input to these calls is impossible, legal, or among the cases. */
  NO_FAULT(ARMCI_Init); NO_FAULT(ARMCI_Init_args); NO_FAULT(ARMCI_Initialized); NO_FAULT(ARMCI_Finalize);
  NO_FAULT(ARMCI_Cleanup); NO_FAULT(ARMCI_Error); NO_FAULT(ARMCI_Destroy_mutexes); NO_FAULT(ARMCI_INIT_HANDLE);
  NO_FAULT(ARMCI_Same_node); NO_FAULT(ARMCI_Uses_shm); NO_FAULT(ARMCI_Uses_shm_grp); NO_FAULT(ARMCI_Set_shm_limit);
  NO_FAULT(armci_msg_init); NO_FAULT(armci_msg_finalize); NO_FAULT(armci_msg_me); NO_FAULT(armci_msg_nproc);
  NO_FAULT(armci_msg_abort); NO_FAULT(armci_timer); NO_FAULT(portolan_path_name); NO_FAULT(portolan_version);
  NO_FAULT(portolan_region_begin); NO_FAULT(portolan_region_end); NO_FAULT(portolan_mark);
  NO_FAULT(portolan_last_error);
}

/* ------------------------------------------------- faults of more than arguments */

static int mixed(void)              /* an aggregate cannot mix gets and puts */
{
  ARMCI_SET_AGGREGATE_HANDLE(&handle);
  CHECK_OK(ARMCI_NbPut(own, own, 8, me, &handle));
  const int rc = ARMCI_NbGet(own, here, 8, me, &handle);
  ARMCI_UNSET_AGGREGATE_HANDLE(&handle);
  return rc;
}

static int next_of_none(void)
{
  armci_stride_info_init(&segments, here, 0, NULL, (int[]){ 8 });
  armci_stride_info_next(&segments);
  armci_stride_info_next(&segments);
  return 0;
}

static void cases(void)
{
#define C(call, fault, code, expression) BAD_CASE(call, fault, CODE_OF(code), expression)
  C("ARMCI_NbGet", "an aggregate handle of puts", HANDLE, mixed());
  C("ARMCI_Create_mutexes", "a second set", STATE, ARMCI_Create_mutexes(1));
  C("ARMCI_Destroy_mutexes", "no set", STATE, (ARMCI_Destroy_mutexes(), ARMCI_Destroy_mutexes()));
  C("ARMCI_Lock", "no set", STATE, (ARMCI_Lock(0, 0), 0));
  C("ARMCI_Unlock", "no set", STATE, (ARMCI_Unlock(0, 0), 0));
  C("ARMCI_Unlock", "a mutex that the caller does not hold", STATE, (ARMCI_Create_mutexes(1), ARMCI_Unlock(0, me), 0));
  C("ARMCI_Lock", "a mutex that the caller holds", STATE, (ARMCI_Lock(0, me), ARMCI_Lock(0, me), 0));
  C("armci_stride_info_next", "no segment left", STATE, next_of_none());
  C("ARMCI_Malloc_group", "a group without the caller, there alone", STATE,
    me % 2 ? ARMCI_Malloc_group(table, 8, &evens) : SILENT);
  C("ARMCI_Free_group", "a segment of another group", ADDRESS,
    me % 2 ? SILENT : ARMCI_Free_group(own, &evens));
  C("portolan_malloc_many", "counts that differ by rank", ARG,
    nproc == 1 ? SILENT : portolan_malloc_many(me == 0 ? 0 : 1, &eight, table));
  GIVES("ARMCI_Group_rank", "a group without the caller", "not 0, and the rank is -1",
        me % 2 == 0 || (ARMCI_Group_rank(&evens, &value) != 0 && value == -1));
  GIVES("ARMCI_Same_node", "a rank outside", "0", ARMCI_Same_node(nproc) == 0 && ARMCI_Same_node(-1) == 0);
  GIVES("ARMCI_Uses_shm_grp", "a null group", "0", ARMCI_Uses_shm_grp(NULL) == 0);
  GIVES("portolan_path_name", "a rank outside", "`NULL`",
        portolan_path_name(nproc) == NULL && portolan_path_name(-1) == NULL);
  GIVES("ARMCI_Init", "a second time", "0, and counts: ARMCI_Finalize is called as often",
        ARMCI_Init() == ARMCI_SUCCESS && ARMCI_Finalize() == ARMCI_SUCCESS && ARMCI_Initialized());
}

/* ------------------------------------------------------------------------ main */

static void (*const tables[])(void) = { transfers, objects, locks, messages, always, alone, cases, NULL };

static void stale(void) { ARMCI_Uses_shm_grp(NULL); }

/* A handle stays usable after a call that was refused. */
static void waited(void) { CHECK_OK(ARMCI_Initialized() ? ARMCI_Wait(&handle) : ARMCI_SUCCESS); }

static void outside_its_life(void)
{
  for (int i = 0; i < 4; i++)
    bad_input(tables[i], NO_RUNTIME);
  bad_input(alone, FAULTS);
}

static void during_its_life(void)
{
  int list[64], even = 0;
  for (int r = 0; r < nproc; r += 2)
    list[even++] = r;
  ARMCI_Group_create(even, list, &evens);
  ARMCI_Group_get_world(&world);
  CHECK_OK(ARMCIX_Group_dup(&world, &dead));
  ARMCI_Group_free(&dead);
  destroyed = ARMCIX_Create_mutexes_hdl(1, &world);
  mutexes = ARMCIX_Create_mutexes_hdl(1, &world);
  CHECK_OK(ARMCIX_Destroy_mutexes_hdl(destroyed));
  void **gone = check_segment(ROOM);
  all_segments = check_segment(ROOM);           /* last, so that nothing is behind it */
  segment = all_segments[right];
  own = all_segments[me];
  freed = gone[right];
  own_freed = gone[me];
  check_free_segment(gone);
  for (int mode = GOOD_CALLS; mode <= FAULTS; mode++) {
    check_fill(here, 3, ROOM);
    memcpy(own, there, ROOM);
    ARMCI_Barrier();
    bad_input(transfers, mode);
    CHECK_OK(ARMCI_Create_mutexes(1));
    bad_input(locks, mode);
    CHECK_OK(ARMCI_Destroy_mutexes());
    bad_input(objects, mode);
    bad_input(always, mode);
    bad_input(messages, mode);
    bad_input(alone, mode);
  }
  CHECK_OK(ARMCI_Create_mutexes(1));
  bad_input(cases, FAULTS);
  ARMCI_Unlock(0, me);
  CHECK_OK(ARMCI_Destroy_mutexes());
  ARMCI_Barrier();
  CHECK_BYTES(own, there, ROOM, "the segment after refused calls");
  CHECK_OK(ARMCIX_Destroy_mutexes_hdl(mutexes));
  ARMCI_Group_free(&evens);
  check_free_segment(all_segments);
}

int main(int argc, char **argv)
{
  if (bad_list(argc, argv, tables))
    return 0;
  check_start_mpi("invalid", &argc, &argv);
  right = (me + 1) % nproc;
  left = (me + nproc - 1) % nproc;
  check_fill(there, 7, ROOM);
  check_fill(here, 3, ROOM);
  watch("local memory", here, sizeof here);
  bad_stale = stale;
  bad_after = waited;
  bad_no_runtime = (struct bad_fault){ NULL, "no ARMCI", "`PORTOLAN_ERR_STATE`", PORTOLAN_ERR_STATE, ALL_RANKS };
  segment = own = here;
  outside_its_life();
  CHECK_OK(ARMCI_Init());
  during_its_life();
  CHECK_OK(ARMCI_Finalize());
  outside_its_life();
  if (me == 0)
    printf("%d calls with faults were refused\n", bad_refused);
  return check_end_mpi();
}
