/*
 * x10_invalid_calls.h - the calls of x10lib.h that move data and the faults of their arguments: two
 * tables, from which x10_invalid.c forms all pairs that apply.
 */
#ifndef X10_INVALID_CALLS_H
#define X10_INVALID_CALLS_H

enum { ROOM = 256 };

static unsigned char here[ROOM], mine[ROOM];    /* local bytes, remotely accessible bytes */
static unsigned char scrap[16];     /* local bytes; the first 8 may change */
static void *there;                 /* `mine` of the right place */
static void *edge_there;            /* 8 bytes before the end of a mapped page there */
static int right;
static x10_switch_t usable, freed;

/* The arguments of all calls: 16 bytes, as one block or as two. */
static struct {
  void *local, *remote;
  int place, bytes, blocks, elements, levels;
  int count[X10_MAX_LEVELS + 1], stride[X10_MAX_LEVELS];
  int *counts, *local_stride, *remote_stride;
  x10_switch_t on;
  x10_giov_ref_t set;
  x10_gas_ref_t refs[2];
  void *locals[2];
  int no_sets, no_refs, no_locals;
} in;

static void good_input(void)
{
  memset(&in, 0, sizeof in);
  in.local = here;
  in.remote = there;
  in.place = right;
  in.bytes = 8;
  in.blocks = 2;
  in.elements = in.levels = 1;
  in.count[0] = 8;
  in.count[1] = 2;
  in.stride[0] = 16;
  in.counts = in.count;
  in.local_stride = in.remote_stride = in.stride;
  in.on = usable;
}

static x10_gas_ref_t ref(void) { return x10_make_gas_ref(in.place, in.remote); }

static x10_giov_ref_t *sets(void)
{
  for (int i = 0; i < 2; i++) {
    in.refs[i] = x10_make_gas_ref(in.place, in.remote ? (char *)in.remote + 16 * i : NULL);
    in.locals[i] = in.local ? (char *)in.local + 16 * i : NULL;
  }
  in.set.remote = in.no_refs ? NULL : in.refs;
  in.set.local = in.no_locals ? NULL : in.locals;
  in.set.bytes = in.bytes;
  in.set.count = in.blocks;
  return in.no_sets ? NULL : &in.set;
}

/* Waits on the switch; returns the call's own code, or that of the wait. The switch is then open
 * again. */
static int awaited(int rc)
{
  const int waited = x10_wait(usable);
  int value = -1;
  GOOD(x10_switch_value(usable, &value));
  CHECK_EQ(value, 0);
  return rc != X10_OK ? rc : waited;
}

/* Returns the status of a get of a value, which must be zero if the get failed. */
static int got(int zero)
{
  const int rc = x10_get_value_status();
  CHECK(rc == X10_OK || zero, "a value of a get that failed");
  return rc;
}

enum { REMOTE = 1, LOCAL = 2, LENGTH = 4, STRIDED = 8, VECTOR = 16, SWITCH = 32 };

#define STRIDED_GET ref(), in.remote_stride, in.local, in.local_stride, in.counts, in.levels
#define STRIDED_PUT in.local, in.local_stride, ref(), in.remote_stride, in.counts, in.levels

#define CALLS(X)                                                                       \
  X(x10_get, REMOTE | LOCAL | LENGTH, x10_get(ref(), in.local, in.bytes))              \
  X(x10_put, REMOTE | LOCAL | LENGTH, x10_put(in.local, ref(), in.bytes))              \
  X(x10_get_nb, REMOTE | LOCAL | LENGTH | SWITCH,                                      \
    awaited(x10_get_nb(ref(), in.local, in.bytes, in.on)))                             \
  X(x10_put_nb, REMOTE | LOCAL | LENGTH | SWITCH,                                      \
    awaited(x10_put_nb(in.local, ref(), in.bytes, in.on)))                             \
  X(x10_get_v, REMOTE | LOCAL | LENGTH | VECTOR, x10_get_v(sets(), in.elements))       \
  X(x10_put_v, REMOTE | LOCAL | LENGTH | VECTOR, x10_put_v(sets(), in.elements))       \
  X(x10_get_v_nb, REMOTE | LOCAL | LENGTH | VECTOR | SWITCH,                           \
    awaited(x10_get_v_nb(sets(), in.elements, in.on)))                                 \
  X(x10_put_v_nb, REMOTE | LOCAL | LENGTH | VECTOR | SWITCH,                           \
    awaited(x10_put_v_nb(sets(), in.elements, in.on)))                                 \
  X(x10_get_s, REMOTE | LOCAL | LENGTH | STRIDED, x10_get_s(STRIDED_GET))              \
  X(x10_put_s, REMOTE | LOCAL | LENGTH | STRIDED, x10_put_s(STRIDED_PUT))              \
  X(x10_get_s_nb, REMOTE | LOCAL | LENGTH | STRIDED | SWITCH,                          \
    awaited(x10_get_s_nb(STRIDED_GET, in.on)))                                         \
  X(x10_put_s_nb, REMOTE | LOCAL | LENGTH | STRIDED | SWITCH,                          \
    awaited(x10_put_s_nb(STRIDED_PUT, in.on)))                                         \
  VALUES(X, int) VALUES(X, long) VALUES(X, float) VALUES(X, double)

#define VALUES(X, type)                                                                \
  X(x10_get_value_##type, REMOTE, got(x10_get_value_##type(ref()) == 0))               \
  X(x10_put_value_##type, REMOTE, x10_put_value_##type(1, ref()))                      \
  X(x10_put_##type, REMOTE, x10_put_##type(1, ref()))                                  \
  X(x10_put_value_##type##_nb, REMOTE | SWITCH, awaited(x10_put_value_##type##_nb(1, ref(), in.on))) \
  X(x10_put_##type##_nb, REMOTE | SWITCH, awaited(x10_put_##type##_nb(1, ref(), in.on)))

#define DEFINE_CALL(name, traits, expression) static int run_##name(void) { return expression; }
CALLS(DEFINE_CALL)
#define NAME_OF(name) #name
#define CALL_ROW(name, traits, expression) { NAME_OF(name), traits, run_##name },
static const struct refusals_call calls[] = { CALLS(CALL_ROW) { NULL, 0, NULL } };

/* ------------------------------------------------------------------- faults */

static void bytes_are(int n) { in.bytes = in.count[0] = n; }

/* A total size that exceeds any address space. */
static void too_many(void)
{
  in.levels = 3;
  for (int i = 0; i <= 3; i++)
    in.count[i] = INT_MAX;
  for (int i = 0; i < 3; i++)
    in.stride[i] = INT_MAX;
}

#define FAULTS(X)                                                                      \
  X(place_negative, "place -1", REMOTE, in.place = -1)                                 \
  X(place_least, "place INT_MIN", REMOTE, in.place = INT_MIN)                          \
  X(place_after, "a place equal to the number of places", REMOTE, in.place = nproc)    \
  X(place_huge, "place INT_MAX", REMOTE, in.place = INT_MAX)                           \
  X(place_no_bytes, "an invalid place, and no bytes", LENGTH, (in.place = nproc, bytes_are(0))) \
  X(local_null, "a null local address", LOCAL, in.local = NULL)                        \
  X(negative, "a negative length", LENGTH, bytes_are(-8))                              \
  X(least, "a length of INT_MIN", LENGTH, bytes_are(INT_MIN))                          \
  X(remote_null, "a null remote address", REMOTE, in.remote = NULL)                    \
  X(elements_null, "a null array of elements", VECTOR, in.no_sets = 1)                 \
  X(elements_negative, "a negative number of elements", VECTOR, in.elements = -1)      \
  X(blocks_negative, "a negative number of blocks", VECTOR, in.blocks = -2)            \
  X(refs_null, "a null array of references", VECTOR, in.no_refs = 1)                   \
  X(locals_null, "a null array of local addresses", VECTOR, in.no_locals = 1)          \
  X(levels_negative, "levels -1", STRIDED, in.levels = -1)                             \
  X(levels_many, "levels above X10_MAX_LEVELS", STRIDED, in.levels = X10_MAX_LEVELS + 1) \
  X(levels_huge, "levels INT_MAX", STRIDED, in.levels = INT_MAX)                       \
  X(counts_null, "null counts", STRIDED, in.counts = NULL)                             \
  X(counts_odd, "counts that are not aligned", STRIDED, in.counts = (int *)(void *)((char *)in.counts + 1)) \
  X(local_strides_null, "null local strides", STRIDED, in.local_stride = NULL)         \
  X(remote_strides_null, "null remote strides", STRIDED, in.remote_stride = NULL)      \
  X(count_negative, "a negative count", STRIDED, in.count[1] = -2)                     \
  X(overflow, "counts and strides of INT_MAX", STRIDED, too_many())                    \
  X(switch_null, "a null switch", SWITCH, in.on = NULL)                                \
  X(switch_freed, "a switch that was freed", SWITCH, in.on = freed)                    \
  X(switch_foreign, "an address for a switch", SWITCH, in.on = (x10_switch_t)(void *)here)

/* Faults that only remote memory can have: bad local addresses crash the program. */
#define FAR_FAULTS(X)                                                                  \
  X(low, "remote address 16", REMOTE, in.remote = (void *)16)                          \
  X(high, "4096 bytes below the last remote address", REMOTE, in.remote = (void *)-4096L)      \
  X(past, "a remote address that is not mapped", REMOTE, in.remote = (char *)edge_there + 8) \
  X(over, "the last bytes beyond what is mapped", LENGTH,                              \
    (in.local = scrap, in.remote = edge_there, in.blocks = 1, in.levels = 0, bytes_are(16)))

#define DEFINE_FAULT(id, name, traits, statement) static void spoil_##id(void) { statement; }
FAULTS(DEFINE_FAULT)
FAR_FAULTS(DEFINE_FAULT)
#define FAULT_ROW(id, name, traits, statement) FAULT(name, traits, X10_ERR_LAPI, spoil_##id),
static const struct refusals_fault faults[] = { FAULTS(FAULT_ROW) { NULL, 0, 0, NULL, NULL, NULL } };
static const struct refusals_fault far_faults[] = { FAR_FAULTS(FAULT_ROW) { NULL, 0, 0, NULL, NULL, NULL } };

#endif /* X10_INVALID_CALLS_H */
