/*
 * invalid_calls.h - the calls of armci.h that move data, and the faults of their arguments: two
 * tables. invalid.c combines each call with each fault that applies to it.
 */
#ifndef INVALID_CALLS_H
#define INVALID_CALLS_H

#include <limits.h>

enum { ROOM = 256 };

static void **all_segments, **freed_segment;
static char *segment, *freed;       /* the right neighbour's */
static int right;
static unsigned char here[ROOM], before[ROOM], there[ROOM];
static void *own_freed;             /* this rank's part of the freed segment */
static long outside[4];             /* in no segment */
static armci_hdl_t handle;

/* The arguments of all calls: 16 bytes, as one block or as two. */
static struct input {
  void *local, *remote, *scale;
  int bytes, proc, type, operation;
  int levels, *count, *local_stride, *remote_stride;
  int counts[2], local_strides[1], remote_strides[1];
  void *locals[2], *remotes[2];
  void **local_blocks, **remote_blocks;
  int block, blocks, sets;
  int no_sets;                      /* pass no array of sets */
  int *flag;
} arguments, *const in = &arguments;

static void good_input(void)
{
  static long one = 1;
  memset(in, 0, sizeof *in);
  in->local = here;
  in->remote = segment;
  in->scale = &one;
  in->bytes = 16;
  in->proc = right;
  in->type = ARMCI_ACC_LNG;
  in->operation = ARMCI_FETCH_AND_ADD_LONG;
  in->levels = 1;
  in->count = in->counts;
  in->local_stride = in->local_strides;
  in->remote_stride = in->remote_strides;
  in->counts[0] = 8;
  in->counts[1] = 2;
  in->local_strides[0] = in->remote_strides[0] = 16;
  in->local_blocks = in->locals;
  in->remote_blocks = in->remotes;
  in->block = 8;
  in->blocks = 2;
  in->sets = 1;
  in->flag = (int *)(void *)(segment + 128);
  ARMCI_INIT_HANDLE(&handle);
}

/* The sets of blocks. A get has source and destination swapped. */
static armci_giov_t *sets(int get)
{
  static armci_giov_t set;
  in->locals[0] = in->local;
  in->locals[1] = in->local ? (char *)in->local + 16 : NULL;
  in->remotes[0] = in->remote;
  in->remotes[1] = in->remote ? (char *)in->remote + 16 : NULL;
  set.src_ptr_array = get ? in->remote_blocks : in->local_blocks;
  set.dst_ptr_array = get ? in->local_blocks : in->remote_blocks;
  set.bytes = in->block;
  set.ptr_array_len = in->blocks;
  return in->no_sets ? NULL : &set;
}

/* The arguments of a call, which determine the faults that apply to it. */
enum {
  ANY = 1,                          /* a rank and a remote address */
  LOCAL = 2,                        /* a local address */
  PLAIN = 4,                        /* a length */
  STRIDED = 8,
  VECTOR = 16,
  ACC = 32,                         /* typed items */
  RMW = 64,
  FLAG = 128
};

/* A handle stays usable after a call that was refused. */
static int waited(int code)
{
  if (code != PORTOLAN_ERR_STATE)
    CHECK_OK(ARMCI_Wait(&handle));
  return code;
}

#define RUN(name, expression) static int run_##name(void) { return expression; }
#define ITEMS in->type, in->scale
#define OUT in->local, in->remote, in->bytes, in->proc
#define OUT_S in->local, in->local_stride, in->remote, in->remote_stride, in->count, in->levels
#define IN_S in->remote, in->remote_stride, in->local, in->local_stride, in->count, in->levels
#define PUT_V sets(0), in->sets, in->proc
#define GET_V sets(1), in->sets, in->proc

RUN(Put, ARMCI_Put(OUT))
RUN(Get, ARMCI_Get(in->remote, in->local, in->bytes, in->proc))
RUN(Acc, ARMCI_Acc(ITEMS, OUT))
RUN(Put_flag, ARMCI_Put_flag(in->local, in->remote, in->bytes, in->flag, 1, in->proc))
RUN(PutS, ARMCI_PutS(OUT_S, in->proc))
RUN(GetS, ARMCI_GetS(IN_S, in->proc))
RUN(AccS, ARMCI_AccS(ITEMS, OUT_S, in->proc))
RUN(PutS_flag, ARMCI_PutS_flag(OUT_S, in->flag, 1, in->proc))
RUN(PutV, ARMCI_PutV(PUT_V))
RUN(GetV, ARMCI_GetV(GET_V))
RUN(AccV, ARMCI_AccV(ITEMS, PUT_V))
RUN(NbPut, waited(ARMCI_NbPut(OUT, &handle)))
RUN(NbGet, waited(ARMCI_NbGet(in->remote, in->local, in->bytes, in->proc, &handle)))
RUN(NbAcc, waited(ARMCI_NbAcc(ITEMS, OUT, &handle)))
RUN(NbPutS, waited(ARMCI_NbPutS(OUT_S, in->proc, &handle)))
RUN(NbGetS, waited(ARMCI_NbGetS(IN_S, in->proc, &handle)))
RUN(NbAccS, waited(ARMCI_NbAccS(ITEMS, OUT_S, in->proc, &handle)))
RUN(NbPutV, waited(ARMCI_NbPutV(PUT_V, &handle)))
RUN(NbGetV, waited(ARMCI_NbGetV(GET_V, &handle)))
RUN(NbAccV, waited(ARMCI_NbAccV(ITEMS, PUT_V, &handle)))
RUN(PutValueInt, ARMCI_PutValueInt(1, in->remote, in->proc))
RUN(PutValueLong, ARMCI_PutValueLong(1, in->remote, in->proc))
RUN(PutValueFloat, ARMCI_PutValueFloat(1, in->remote, in->proc))
RUN(PutValueDouble, ARMCI_PutValueDouble(1, in->remote, in->proc))
RUN(NbPutValueInt, waited(ARMCI_NbPutValueInt(1, in->remote, in->proc, &handle)))
RUN(NbPutValueLong, waited(ARMCI_NbPutValueLong(1, in->remote, in->proc, &handle)))
RUN(NbPutValueFloat, waited(ARMCI_NbPutValueFloat(1, in->remote, in->proc, &handle)))
RUN(NbPutValueDouble, waited(ARMCI_NbPutValueDouble(1, in->remote, in->proc, &handle)))
RUN(Rmw, ARMCI_Rmw(in->operation, in->local, in->remote, 1, in->proc))

static const struct refusals_call calls[] = {
  { "ARMCI_Put", ANY | LOCAL | PLAIN, run_Put },
  { "ARMCI_Get", ANY | LOCAL | PLAIN, run_Get },
  { "ARMCI_Acc", ANY | LOCAL | PLAIN | ACC, run_Acc },
  { "ARMCI_Put_flag", ANY | LOCAL | PLAIN | FLAG, run_Put_flag },
  { "ARMCI_PutS", ANY | LOCAL | STRIDED, run_PutS },
  { "ARMCI_GetS", ANY | LOCAL | STRIDED, run_GetS },
  { "ARMCI_AccS", ANY | LOCAL | STRIDED | ACC, run_AccS },
  { "ARMCI_PutS_flag", ANY | LOCAL | STRIDED | FLAG, run_PutS_flag },
  { "ARMCI_PutV", ANY | LOCAL | VECTOR, run_PutV },
  { "ARMCI_GetV", ANY | LOCAL | VECTOR, run_GetV },
  { "ARMCI_AccV", ANY | LOCAL | VECTOR | ACC, run_AccV },
  { "ARMCI_NbPut", ANY | LOCAL | PLAIN, run_NbPut },
  { "ARMCI_NbGet", ANY | LOCAL | PLAIN, run_NbGet },
  { "ARMCI_NbAcc", ANY | LOCAL | PLAIN | ACC, run_NbAcc },
  { "ARMCI_NbPutS", ANY | LOCAL | STRIDED, run_NbPutS },
  { "ARMCI_NbGetS", ANY | LOCAL | STRIDED, run_NbGetS },
  { "ARMCI_NbAccS", ANY | LOCAL | STRIDED | ACC, run_NbAccS },
  { "ARMCI_NbPutV", ANY | LOCAL | VECTOR, run_NbPutV },
  { "ARMCI_NbGetV", ANY | LOCAL | VECTOR, run_NbGetV },
  { "ARMCI_NbAccV", ANY | LOCAL | VECTOR | ACC, run_NbAccV },
  { "ARMCI_PutValueInt", ANY, run_PutValueInt },
  { "ARMCI_PutValueLong", ANY, run_PutValueLong },
  { "ARMCI_PutValueFloat", ANY, run_PutValueFloat },
  { "ARMCI_PutValueDouble", ANY, run_PutValueDouble },
  { "ARMCI_NbPutValueInt", ANY, run_NbPutValueInt },
  { "ARMCI_NbPutValueLong", ANY, run_NbPutValueLong },
  { "ARMCI_NbPutValueFloat", ANY, run_NbPutValueFloat },
  { "ARMCI_NbPutValueDouble", ANY, run_NbPutValueDouble },
  { "ARMCI_Rmw", ANY | LOCAL | RMW, run_Rmw },
  { NULL, 0, NULL }
};

/* ------------------------------------------------------------------- faults */

#define SPOIL(name, statement) static void spoil_##name(void) { statement; }
SPOIL(rank_negative, in->proc = -1)
SPOIL(rank_after, in->proc = nproc)
SPOIL(rank_huge, in->proc = INT_MAX)
SPOIL(remote_null, in->remote = NULL)
SPOIL(remote_outside, in->remote = outside)
SPOIL(remote_low, in->remote = (void *)16)
SPOIL(remote_high, in->remote = (void *)-8L)
SPOIL(remote_end, in->remote = segment + ROOM)
SPOIL(remote_over, in->remote = segment + ROOM - 8)
SPOIL(remote_before, in->remote = segment - 8)
SPOIL(remote_freed, in->remote = freed)
SPOIL(local_null, in->local = NULL)
SPOIL(negative, in->bytes = in->block = in->counts[0] = -8)
SPOIL(too_long, in->bytes = in->block = in->counts[0] = INT_MAX - 7)
SPOIL(levels_negative, in->levels = -1)
SPOIL(levels_many, in->levels = 9)
SPOIL(counts_null, in->count = NULL)
SPOIL(local_strides_null, in->local_stride = NULL)
SPOIL(remote_strides_null, in->remote_stride = NULL)
SPOIL(counts_odd, in->count = (int *)(void *)((char *)in->count + 1))
SPOIL(count_negative, in->counts[1] = -2)
SPOIL(local_stride_negative, in->local_strides[0] = -16)
SPOIL(remote_stride_negative, in->remote_strides[0] = -16)
SPOIL(stride_over, in->remote_strides[0] = ROOM)
SPOIL(stride_huge, in->remote_strides[0] = INT_MAX - 7)
SPOIL(sets_null, in->no_sets = 1)
SPOIL(sets_negative, in->sets = -1)
SPOIL(blocks_negative, in->blocks = -1)
SPOIL(blocks_null, in->local_blocks = NULL)
SPOIL(blocks_odd, in->local_blocks = (void **)(void *)((char *)in->local_blocks + 1))
SPOIL(remote_blocks_null, in->remote_blocks = NULL)
SPOIL(type_unknown, in->type = in->operation = 99)
SPOIL(type_negative, in->type = in->operation = -1)
SPOIL(scale_null, in->scale = NULL)
SPOIL(unaligned, in->remote = segment + 4)
SPOIL(ragged, in->bytes = in->block = in->counts[0] = 12)
SPOIL(flag_null, in->flag = NULL)
SPOIL(flag_outside, in->flag = (int *)(void *)outside)

static const struct refusals_fault faults[] = {
  FAULT("rank -1", ANY, PORTOLAN_ERR_RANK, spoil_rank_negative),
  FAULT("a rank equal to the number of ranks", ANY, PORTOLAN_ERR_RANK, spoil_rank_after),
  FAULT("rank INT_MAX", ANY, PORTOLAN_ERR_RANK, spoil_rank_huge),
  FAULT("a null remote address", ANY, PORTOLAN_ERR_ARG, spoil_remote_null),
  FAULT("a remote address in no segment", ANY, PORTOLAN_ERR_ADDRESS, spoil_remote_outside),
  FAULT("remote address 16", ANY, PORTOLAN_ERR_ADDRESS, spoil_remote_low),
  FAULT("8 bytes below the last remote address", ANY, PORTOLAN_ERR_ADDRESS, spoil_remote_high),
  FAULT("a remote address just past the end", ANY, PORTOLAN_ERR_ADDRESS, spoil_remote_end),
  FAULT("the last bytes beyond the end", PLAIN | STRIDED | VECTOR, PORTOLAN_ERR_ADDRESS, spoil_remote_over),
  FAULT("a remote address before the start", ANY, PORTOLAN_ERR_ADDRESS, spoil_remote_before),
  FAULT("a segment that was freed", ANY, PORTOLAN_ERR_ADDRESS, spoil_remote_freed),
  FAULT("a null local address", LOCAL, PORTOLAN_ERR_ARG, spoil_local_null),
  FAULT("a negative length", PLAIN | STRIDED | VECTOR, PORTOLAN_ERR_ARG, spoil_negative),
  FAULT("a length of INT_MAX - 7", PLAIN | STRIDED | VECTOR, PORTOLAN_ERR_ADDRESS, spoil_too_long),
  FAULT("stride_levels -1", STRIDED, PORTOLAN_ERR_ARG, spoil_levels_negative),
  FAULT("stride_levels 9", STRIDED, PORTOLAN_ERR_ARG, spoil_levels_many),
  FAULT("null counts", STRIDED, PORTOLAN_ERR_ARG, spoil_counts_null),
  FAULT("counts that are not aligned", STRIDED, PORTOLAN_ERR_ARG, spoil_counts_odd),
  FAULT("null local strides", STRIDED, PORTOLAN_ERR_ARG, spoil_local_strides_null),
  FAULT("null remote strides", STRIDED, PORTOLAN_ERR_ARG, spoil_remote_strides_null),
  FAULT("a negative count", STRIDED, PORTOLAN_ERR_ARG, spoil_count_negative),
  FAULT("a negative local stride", STRIDED, PORTOLAN_ERR_ARG, spoil_local_stride_negative),
  FAULT("a negative remote stride", STRIDED, PORTOLAN_ERR_ARG, spoil_remote_stride_negative),
  FAULT("a stride that leaves the segment", STRIDED, PORTOLAN_ERR_ADDRESS, spoil_stride_over),
  FAULT("a stride of INT_MAX - 7", STRIDED, PORTOLAN_ERR_ADDRESS, spoil_stride_huge),
  FAULT("a null array of sets", VECTOR, PORTOLAN_ERR_ARG, spoil_sets_null),
  FAULT("a negative number of sets", VECTOR, PORTOLAN_ERR_ARG, spoil_sets_negative),
  FAULT("a negative number of blocks", VECTOR, PORTOLAN_ERR_ARG, spoil_blocks_negative),
  FAULT("a null array of local blocks", VECTOR, PORTOLAN_ERR_ARG, spoil_blocks_null),
  FAULT("an array of local blocks that is not aligned", VECTOR, PORTOLAN_ERR_ARG, spoil_blocks_odd),
  FAULT("a null array of remote blocks", VECTOR, PORTOLAN_ERR_ARG, spoil_remote_blocks_null),
  FAULT("an unknown type or operation", ACC | RMW, PORTOLAN_ERR_TYPE, spoil_type_unknown),
  FAULT("type or operation -1", ACC | RMW, PORTOLAN_ERR_TYPE, spoil_type_negative),
  FAULT("a null scale", ACC, PORTOLAN_ERR_ARG, spoil_scale_null),
  FAULT("a remote item that is not aligned", RMW, PORTOLAN_ERR_TYPE, spoil_unaligned),
  FAULT("a length that is not a multiple of the item", ACC, PORTOLAN_ERR_TYPE, spoil_ragged),
  FAULT("a null flag", FLAG, PORTOLAN_ERR_ARG, spoil_flag_null),
  FAULT("a flag in no segment", FLAG, PORTOLAN_ERR_ADDRESS, spoil_flag_outside),
  { NULL, 0, 0, NULL, NULL, NULL }
};

static void make_segments(void)
{
  check_fill(there, 7, ROOM);
  freed_segment = check_segment(ROOM);
  all_segments = check_segment(ROOM);
  memcpy(all_segments[me], there, ROOM);
  segment = all_segments[right];
  freed = freed_segment[right];
  own_freed = freed_segment[me];
  check_free_segment(freed_segment);
}

static void drop_segments(void) { check_free_segment(all_segments); }

#endif /* INVALID_CALLS_H */
