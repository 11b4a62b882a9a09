/*
 * cp_invalid.c - bad input to every call of cp.h, from tables.
 *
 *   cp_invalid             each call with each fault that applies to it, before, during and after
 *                          the library's life
 *   cp_invalid markdown    prints the tables as in docs/errors-compose.md; needs no launcher
 *
 * A refused call adds, moves and stores nothing, and sets its error text.
 */
// TEST: faults
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE
#endif
#include "cp_check.h"
#include "refusals.h"

#include <stdint.h>
#include <sys/stat.h>

enum { ROOM = 256 };

static unsigned char here[64];      /* local bytes outside any segment */
static void **base, *tables[64];    /* the segment of each rank */
static unsigned char *own, *there;  /* this rank's segment, the right neighbour's */
static void *old;                   /* a freed segment */
static int right, simple, merged, mapped, dead;
static char directory[200];

/* ----------------------------------------------------------- compositions */

/* The arguments of all calls that take a composition. */
static struct {
  int comp, merged, mapped;
  void *local, *remote, *locals[2], *remotes[2], *local_stride, *remote_stride;
  unsigned length, lengths[2], blocks, local_block, remote_block, remote_blocks;
  int no_locals, no_remotes, no_lengths;
} in;

static void good_input(void)
{
  memset(&in, 0, sizeof in);
  in.comp = simple;
  in.merged = merged;
  in.mapped = mapped;
  in.local = own;
  in.remote = there + 128;
  in.length = 8;
  in.blocks = in.remote_blocks = 2;
  in.lengths[0] = in.lengths[1] = 4;
  in.local_block = in.remote_block = 4;
  in.local_stride = in.remote_stride = (void *)8;
  in.locals[0] = in.local;
  in.locals[1] = own + 16;
  in.remotes[0] = in.remote;
  in.remotes[1] = there + 144;
}

/* Destroys the composition that a call returned. */
static int made(int comp)
{
  if (comp <= 0)
    return comp;
  return cp_destroy(comp);
}

static int positive(int rc) { return rc > 0 ? 0 : rc; }
static int destroyed(void) { return cp_destroy(in.comp == simple ? CP(cp_create(right)) : in.comp); }

#define LOCALS (in.no_locals ? NULL : in.locals)
#define REMOTES (in.no_remotes ? NULL : in.remotes)
#define LENGTHS (in.no_lengths ? NULL : in.lengths)

enum { ANY = 1, PAIR = 2, BLOCK = 4, LISTS = 8, LISTED_LENGTHS = 16, SLICE = 32, ADD = 64, MERGE = 128, PERFORM = 256 };

#define CALLS(X)                                                                                   \
  X(cp_comptype, ANY, positive(cp_comptype(in.comp)))                                              \
  X(cp_destroy, ANY, destroyed())                                                                  \
  X(cp_add_adxpair, ANY | ADD | PAIR, cp_add_adxpair(in.comp, in.local, in.remote))                \
  X(cp_add_adxpairvector, ANY | ADD | LISTS, cp_add_adxpairvector(in.comp, LOCALS, REMOTES, in.blocks)) \
  X(cp_add_adxblock, ANY | ADD | PAIR | BLOCK, cp_add_adxblock(in.comp, in.local, in.remote, in.length)) \
  X(cp_add_adxblockvector, ANY | ADD | LISTS | LISTED_LENGTHS,                                     \
    cp_add_adxblockvector(in.comp, LOCALS, REMOTES, LENGTHS, in.blocks))                           \
  X(cp_add_adxslice, ANY | ADD | PAIR | SLICE,                                                     \
    cp_add_adxslice(in.comp, in.local, in.local_stride, in.local_block, in.blocks, in.remote,      \
                    in.remote_stride, in.remote_block, in.remote_blocks))                          \
  X(cp_store, ANY, cp_store(7, in.comp))                                                           \
  X(cp_merge, ANY | MERGE, made(cp_merge(in.comp, in.merged)))                                     \
  X(cp_map, ANY | MERGE, made(cp_map(in.comp)))                                                    \
  X(cp_perform, ANY | PERFORM, cp_perform(in.mapped))

#define DEFINE_CALL(name, traits, expression) static int run_##name(void) { return expression; }
CALLS(DEFINE_CALL)
#define CALL_ROW(name, traits, expression) { #name, traits, run_##name },
static const struct refusals_call calls[] = { CALLS(CALL_ROW) { NULL, 0, NULL } };

static void number_is(int n) { in.comp = in.mapped = n; }

#define FAULTS(X) \
  X(zero, "composition 0", ANY, CP_ERR_HANDLE, "not the number of a live", number_is(0)) \
  X(negative, "composition -1", ANY, CP_ERR_HANDLE, "not the number of a live", number_is(-1)) \
  X(least, "composition INT_MIN", ANY, CP_ERR_HANDLE, "not the number of a live", number_is(INT_MIN)) \
  X(most, "composition INT_MAX", ANY, CP_ERR_HANDLE, "not the number of a live", number_is(INT_MAX)) \
  X(never, "a number that was never given", ANY, CP_ERR_HANDLE, "not the number of a live", number_is(77777)) \
  X(gone, "a composition that was destroyed", ANY, CP_ERR_HANDLE, "not the number of a live", number_is(dead)) \
  X(to_merged, "a merged composition", ADD, CP_ERR_HANDLE, "merged", in.comp = merged) \
  X(to_mapped, "a mapped composition", ADD | MERGE, CP_ERR_HANDLE, "mapped", in.comp = mapped) \
  X(of_simple, "a simple composition", PERFORM, CP_ERR_HANDLE, "simple", in.mapped = simple) \
  X(of_merged, "a merged composition", PERFORM, CP_ERR_HANDLE, "merged", in.mapped = merged) \
  X(local_null, "a null local address", PAIR, CP_ERR_ARGUMENT, "null", in.local = NULL) \
  X(remote_null, "a null remote address", PAIR, CP_ERR_ARGUMENT, "null", in.remote = NULL) \
  X(local_wraps, "local bytes beyond the address space", BLOCK | SLICE, CP_ERR_ARGUMENT, "address space", in.local = (void *)-4L) \
  X(remote_wraps, "remote bytes beyond the address space", BLOCK | SLICE, CP_ERR_ARGUMENT, "address space", in.remote = (void *)-4L) \
  X(longest, "a length of UINT_MAX that leaves the address space", BLOCK, CP_ERR_ARGUMENT, "address space", \
    (in.length = UINT_MAX, in.remote = (void *)-2147483648L)) \
  X(locals_null, "a null array of local addresses", LISTS, CP_ERR_ARGUMENT, "null", in.no_locals = 1) \
  X(remotes_null, "a null array of remote addresses", LISTS, CP_ERR_ARGUMENT, "null", in.no_remotes = 1) \
  X(lengths_null, "a null array of lengths", LISTED_LENGTHS, CP_ERR_ARGUMENT, "null", in.no_lengths = 1) \
  X(local_hole, "a null local address behind a good one", LISTS, CP_ERR_ARGUMENT, "null", in.locals[1] = NULL) \
  X(remote_hole, "a null remote address behind a good one", LISTS, CP_ERR_ARGUMENT, "null", in.remotes[1] = NULL) \
  X(list_wraps, "a block beyond the address space behind a good one", LISTED_LENGTHS, CP_ERR_ARGUMENT, "address space", \
    in.remotes[1] = (void *)-2L) \
  X(unequal, "more bytes there than here", SLICE, CP_ERR_ARGUMENT, "8 bytes", in.remote_blocks = 3) \
  X(fewer, "fewer bytes there than here", SLICE, CP_ERR_ARGUMENT, "8 bytes", in.remote_block = 3) \
  X(none_there, "no bytes there, some here", SLICE, CP_ERR_ARGUMENT, "8 bytes", in.remote_blocks = 0) \
  X(local_far, "a local stride that leaves the address space", SLICE, CP_ERR_ARGUMENT, "address space", \
    in.local_stride = (void *)INTPTR_MAX) \
  X(remote_far, "a negative remote stride that leaves it", SLICE, CP_ERR_ARGUMENT, "address space", \
    in.remote_stride = (void *)INTPTR_MIN) \
  X(all_most, "blocks and counts of UINT_MAX", SLICE, CP_ERR_ARGUMENT, "address space", \
    in.local_block = in.remote_block = in.blocks = in.remote_blocks = UINT_MAX)

#define DEFINE_FAULT(id, name, traits, code, says, statement) static void spoil_##id(void) { statement; }
FAULTS(DEFINE_FAULT)
#define FAULT_ROW(id, name, traits, code, says, statement) { name, traits, code, "`" #code "`", spoil_##id, says },
static const struct refusals_fault faults[] = { FAULTS(FAULT_ROW) { NULL, 0, 0, NULL, NULL, NULL } };

/* A refused call has added nothing: the composition is still empty. */
static void still_empty(void)
{
  const int empty = CP(cp_map(simple));
  CP(cp_sync());
  CP(cp_perform(empty));
  CP(cp_sync());
  CHECK_EQ(cp_arrived(), 0);
  CP(cp_destroy(empty));
  CHECK_EQ(cp_comptype(simple), CP_COMPTYPE_SIMPLE);
  CHECK_EQ(cp_comptype(merged), CP_COMPTYPE_MERGED);
  CHECK_EQ(cp_comptype(mapped), CP_COMPTYPE_MAPPED);
}

/* ------------------------------------------------------------ the other calls */

/* Returns a mapped composition of one block, or the error of cp_map. */
static int one_block(const void *local, void *remote, unsigned length)
{
  const int comp = CP(cp_create(right));
  CP(cp_add_adxblock(comp, (void *)(uintptr_t)local, remote, length));
  const int map = cp_map(comp);
  CP(cp_destroy(comp));
  return map;
}

/* Two blocks with different sources overlap in one remote byte. */
static int conflict(void)
{
  const int comp = CP(cp_create(right));
  CP(cp_add_adxblock(comp, own, there + 128, 8));
  CP(cp_add_adxblock(comp, own + 32, there + 135, 8));
  const int rc = cp_map(comp);
  CP(cp_destroy(comp));
  return rc;
}

/* Blocks of 8 bytes at a remote stride of 4: neighbours overlap by half. */
static int folded(void)
{
  const int comp = CP(cp_create(right));
  CP(cp_add_adxslice(comp, own, (void *)8, 8, 3, there + 128, (void *)4, 8, 3));
  const int rc = cp_map(comp);
  CP(cp_destroy(comp));
  return rc;
}

/* 2048 interleaved slices of 2^32 - 1 single bytes each: 2^43 bytes in all, more than any machine
 * can list. */
static int endless(void)
{
  const int comp = CP(cp_create(right));
  for (uintptr_t i = 0; i < 2048; i++)
    CP(cp_add_adxslice(comp, own + i, (void *)3, 1, UINT_MAX, there + 2 * i, (void *)2, 1, UINT_MAX));
  const int rc = cp_map(comp);
  CP(cp_destroy(comp));
  return rc;
}

static int performed(int comp)
{
  const int rc = cp_perform(comp);
  if (comp > 0)
    CP(cp_destroy(comp));
  return rc;
}

static void others(void)
{
  rows_begin("Making and performing");
  REFUSED("cp_create", "rank -1", CP_ERR_RANK, cp_create(-1));
  REFUSED("cp_create", "a rank equal to the number of ranks", CP_ERR_RANK, cp_create(nproc));
  REFUSED("cp_create", "rank INT_MAX", CP_ERR_RANK, cp_create(INT_MAX));
  REFUSED("cp_merge", "composition 0 in second place", CP_ERR_HANDLE, cp_merge(simple, 0));
  REFUSED("cp_merge", "a mapped composition in second place", CP_ERR_HANDLE, cp_merge(simple, mapped));
  REFUSED("cp_map", "two local bytes that go to one remote byte", CP_ERR_ARGUMENT, conflict());
  REFUSED("cp_map", "a slice whose remote blocks overlap", CP_ERR_ARGUMENT, folded());
  REFUSED("cp_map", "slices of more blocks than memory can list", CP_ERR_MEMORY, endless());
  REFUSED("cp_waitfor", "-1 performances", CP_ERR_ARGUMENT, cp_waitfor(-1));
  REFUSED("cp_waitfor", "INT_MIN performances", CP_ERR_ARGUMENT, cp_waitfor(INT_MIN));
  if (LISTED || right != me) {
    REFUSED("cp_perform", "bytes that the other rank has not mapped", CP_ERR_ADDRESS,
            performed(one_block(here, (void *)64, 8)));
  }
}

/* Adds to a composition of its own, so that the table's composition stays empty. */
static int holes_added(void *holes[], unsigned lengths[])
{
  const int comp = CP(cp_create(right));
  const int rc = cp_add_adxblockvector(comp, holes, holes, lengths, 2);
  CP(cp_destroy(comp));
  return rc;
}

/* Zero bytes need no address. */
static void legal(void)
{
  void *holes[2] = { own, NULL };
  unsigned none[2] = { 1, 0 };
  rows_begin("No faults");
  REFUSED("cp_add_adxblock", "no bytes, both addresses null", 0, cp_add_adxblock(simple, NULL, NULL, 0));
  REFUSED("cp_add_adxpairvector", "no pairs, both arrays null", 0, cp_add_adxpairvector(simple, NULL, NULL, 0));
  REFUSED("cp_add_adxblockvector", "no blocks, all arrays null", 0,
          cp_add_adxblockvector(simple, NULL, NULL, NULL, 0));
  REFUSED("cp_add_adxblockvector", "a null block of no bytes behind a good one", 0, holes_added(holes, none));
  REFUSED("cp_add_adxslice", "no bytes on either side, all addresses null", 0,
          cp_add_adxslice(simple, NULL, NULL, 0, 5, NULL, NULL, 7, 0));
}

static void memory(void)
{
  rows_begin("Memory");
  REFUSED("cp_malloc", "a null table", CP_ERR_ARGUMENT, cp_malloc(NULL, 8));
  GIVES("cp_malloc", "a null table at one rank", "`CP_ERR_ARGUMENT` at all",
        cp_malloc(me == 0 ? NULL : tables, 8) == CP_ERR_ARGUMENT);
  GIVES("cp_malloc", "more than is available, at one rank", "`CP_ERR_MEMORY` at all",
        cp_malloc(tables, me == 0 ? (size_t)1 << 60 : 8) == CP_ERR_MEMORY);
  GIVES("cp_malloc", "SIZE_MAX bytes at one rank", "`CP_ERR_MEMORY` at all",
        cp_malloc(tables, me == nproc - 1 ? SIZE_MAX : 8) == CP_ERR_MEMORY);
  REFUSED("cp_free", "an address in no segment", CP_ERR_ADDRESS, cp_free(here));
  REFUSED("cp_free", "an address inside a segment", CP_ERR_ADDRESS, cp_free(own + 8));
  REFUSED("cp_free", "a segment that was freed", CP_ERR_ADDRESS, cp_free(old));
  REFUSED("cp_free", "`NULL` at all ranks", 0, cp_free(NULL));
  if (LISTED || right != me) {
    GIVES("cp_free", "`NULL` at one rank, which has bytes", "`CP_ERR_ADDRESS` at all, and nothing is freed",
          cp_free(me == 0 ? NULL : own) == CP_ERR_ADDRESS);
  }
  GIVES("cp_free", "a wrong address at one rank", "`CP_ERR_ADDRESS` at all, and nothing is freed",
        cp_free(me == 0 ? here : own) == CP_ERR_ADDRESS);
}

/* ----------------------------------------------------------------------- files */

static const char *file_of(int number)
{
  static char name[300];
  snprintf(name, sizeof name, "%s/compose-%d.%d", directory, number, me);
  return name;
}

/* Loads a copy of a file that lacks its last `cut` bytes and has a flipped bit in byte `flip` (none
 * if negative). */
static int load_damaged(int cut, int flip)
{
  unsigned char bytes[1000];
  FILE *file = fopen(file_of(7), "rb");
  CHECK(file != NULL, "no %s", file_of(7));
  const size_t length = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  CHECK(length > 100 && length < sizeof bytes, "%s has %lu bytes", file_of(7), (unsigned long)length);
  if (flip >= 0)
    bytes[flip] ^= 0x40;
  file = fopen(file_of(8), "wb");
  CHECK(file != NULL && fwrite(bytes, 1, length - (size_t)cut, file) == length - (size_t)cut, "%s", file_of(8));
  fclose(file);
  CP(cp_rewind(8));
  return made(cp_load(8));
}

static int store_outside(void)
{
  const int comp = CP(cp_create(right));
  CP(cp_add_adxblock(comp, here, there, 8));
  const int rc = cp_store(9, comp);
  CP(cp_destroy(comp));
  return rc;
}

static int load_past_the_end(void)
{
  CP(cp_rewind(7));
  for (;;) {
    const int comp = cp_load(7);
    if (comp <= 0)
      return comp;
    CP(cp_destroy(comp));
  }
}

static void files(void)
{
  rows_begin("Files");
  REFUSED("cp_store", "file number -1", CP_ERR_ARGUMENT, cp_store(-1, simple));
  REFUSED("cp_store", "addresses outside of segments", CP_ERR_ADDRESS, store_outside());
  GIVES("cp_store", "a file that cannot be written", "`CP_ERR_ARGUMENT`",
        mkdir(file_of(5), 0700) == 0 && cp_store(5, simple) == CP_ERR_ARGUMENT && rmdir(file_of(5)) == 0);
  REFUSED("cp_load", "file number -1", CP_ERR_ARGUMENT, cp_load(-1));
  REFUSED("cp_load", "a file that is missing", CP_ERR_ARGUMENT, cp_load(6));
  REFUSED("cp_load", "behind the last composition", CP_ERR_ARGUMENT, load_past_the_end());
  REFUSED("cp_load", "a file that is cut off", CP_ERR_ARGUMENT, load_damaged(3, -1));
  REFUSED("cp_load", "a file cut off in its head", CP_ERR_ARGUMENT, load_damaged(100, -1));
  REFUSED("cp_load", "another file", CP_ERR_ARGUMENT, load_damaged(0, 0));
  REFUSED("cp_load", "another version", CP_ERR_ARGUMENT, load_damaged(0, 8));
  REFUSED("cp_load", "damaged addresses", CP_ERR_ARGUMENT, load_damaged(0, 90));
  REFUSED("cp_rewind", "file number INT_MIN", CP_ERR_ARGUMENT, cp_rewind(INT_MIN));
  REFUSED("cp_rewind", "a file that is missing", 0, cp_rewind(6));
}

/* ----------------------------------------------------------------- wrong state */

static void gone(void)
{
  static int comp;
  void **segment;
  rows_begin("Wrong state");
  if (!LISTED) {
    segment = cp_segment(64);
    comp = one_block(own, segment[right], 8);
    cp_free_segment(segment);
    CP(cp_sync());
  }
  REFUSED("cp_perform", "memory that was freed since it was mapped", CP_ERR_STATE, cp_perform(comp));
  if (!LISTED)
    CP(cp_destroy(comp));
}

static void unsynchronised(void)
{
  REFUSED("cp_perform", "before the first cp_sync", CP_ERR_STATE, cp_perform(mapped));
  REFUSED("cp_waitfor", "before the first cp_sync", CP_ERR_STATE, cp_waitfor(1));
  REFUSED("cp_arrived", "before the first cp_sync", CP_ERR_STATE, cp_arrived());
  REFUSED("cp_finalize", "once more than cp_init", 0, cp_finalize());
}

static void outside(void)
{
  static const struct refusals_fault none = { "no cp_init", 0, CP_ERR_STATE, "`CP_ERR_STATE`", good_input,
                                              "not initialised" };
  for (const struct refusals_call *call = calls; call->name; call++)
    if (call->run != run_cp_destroy)
      call_fails(call, &none, good_input);
  const char *when = "no cp_init";
#define NO(name, expression) REFUSED(name, when, CP_ERR_STATE, expression)
  NO("cp_destroy", cp_destroy(1));
  NO("cp_create", cp_create(0));
  NO("cp_rank", cp_rank());
  NO("cp_nprocs", cp_nprocs());
  NO("cp_malloc", cp_malloc(tables, 8));
  NO("cp_free", cp_free(here));
  NO("cp_load", cp_load(7));
  NO("cp_rewind", cp_rewind(7));
  NO("cp_sync", cp_sync());
  NO("cp_waitfor", cp_waitfor(0));
  NO("cp_arrived", cp_arrived());
  REFUSED("cp_finalize", when, 0, cp_finalize());
}

/* ------------------------------------------------------------------------ main */

static void head_of_page(void)
{
  printf("# Bad input to cp.h\n\n"
         "What each call does with arguments that are wrong. tests/c/cp_invalid.c tests every line, and\n"
         "this page is what `cp_invalid markdown` prints. A call that is refused adds, moves and stores\n"
         "nothing; its text is `cp_errmsg()`. Numbers below 0 are codes.\n\n"
         "## Calls that take a composition\n\n");
}

static void tables_of_faults(void)
{
  calls_with_faults(calls, faults, good_input, "cp_");
  if (LISTED)
    printf("| before cp_init, after cp_finalize | all, and every call below but cp_finalize | `CP_ERR_STATE` |\n");
  others();
  legal();
  memory();
  files();
  gone();
}

static void stale(void) { CHECK(ARMCI_Absolute_id(NULL, 0) == -1, "a rank of no group"); }

static void make_compositions(void)
{
  simple = CP(cp_create(right));
  const int other = CP(cp_create(right));
  CP(cp_add_adxblock(other, own, there + 128, 16));
  merged = CP(cp_merge(other, other));
  mapped = CP(cp_map(merged));
  CP(cp_destroy(other));
  dead = CP(cp_create(right));
  CP(cp_destroy(dead));
}

int main(int argc, char **argv)
{
  if (refusals_listed(argc, argv)) {
    head_of_page();
    tables_of_faults();
    unsynchronised();
    return 0;
  }
  check_start_mpi("cp_invalid", &argc, &argv);
  const char *tmp = getenv("TMPDIR");
  snprintf(directory, sizeof directory, "%s/portolan-cp-invalid-XXXXXX", tmp ? tmp : "/tmp");
  CHECK(mkdtemp(directory) != NULL, "cannot make %s", directory);
  setenv("PORTOLAN_COMPOSE_DIR", directory, 1);
  right = (me + 1) % nproc;
  refusals_error = cp_errmsg;
  refusals_stale = stale;
  CHECK_EQ(cp_errmsg()[0], 0);
  own = there = here;
  watch("local memory", here, sizeof here);
  watch("the table of addresses", tables, sizeof tables);
  outside();

  CP(cp_init());
  void **freed = cp_segment(ROOM);
  old = freed[me];
  base = cp_segment(ROOM);
  cp_free_segment(freed);
  own = base[me];
  there = base[right];
  make_compositions();
  CP(cp_sync());
  calls_work(calls, good_input);
  CP(cp_waitfor(1));
  CP(cp_sync());
  CP(cp_destroy(simple));
  simple = CP(cp_create(right));
  check_fill(own, 3, ROOM);
  CP(cp_sync());
  watch("the segment", own, ROOM);
  CP(cp_sync());
  tables_of_faults();
  still_empty();
  watch_ends("any call", "any fault");
  CP(cp_sync());
  watches--;
  CP(cp_free(own));
  CP(cp_finalize());
  own = there = here;
  outside();

  /* The second life tests calls before its first synchronisation. */
  CHECK_OK(ARMCI_Init());
  base = check_segment(ROOM);
  own = base[me];
  there = base[right];
  make_compositions();
  unsynchronised();
  check_free_segment(base);
  CHECK_OK(ARMCI_Finalize());
  CHECK_EQ(unlink(file_of(7)) + unlink(file_of(8)) + rmdir(directory), 0);
  if (me == 0)
    printf("%d calls with faults had the outcome that is documented\n", refusals);
  return check_end_mpi();
}
