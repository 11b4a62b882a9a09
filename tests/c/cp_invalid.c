/*
 * cp_invalid.c - bad input to every call of cp.h (bad_input.h).
 *
 *   cp_invalid            each call with each fault of its arguments, before, during and after the
 *                         library's life
 *   cp_invalid page       prints the tables of docs/errors-compose.md; needs no launcher
 *   cp_invalid calls      prints the calls that have a row
 *
 * A refused call adds, moves and stores nothing.
 */
// TEST: faults
#define _GNU_SOURCE
#include "cp_check.h"
#include "bad_input.h"

#include <sys/stat.h>

enum { ROOM = 256 };

static unsigned char here[64];      /* local bytes outside any segment */
static void **base, *table[64];     /* the segment of each rank */
static unsigned char *own, *there;  /* this rank's segment, the right neighbour's */
static void *old;                   /* a freed segment */
static int right, simple, merged, mapped, dead, freed_under;
static char directory[200];

/* ------------------------------------------------------------------- arguments */

#define CODE_OF(code) CP_ERR_##code, "`CP_ERR_" #code "`"
#define F(name, code, ...) BAD_FAULT(ALL_RANKS, name, CODE_OF(code), __VA_ARGS__)
#define AGREED(name, code, ...) BAD_AGREED(name, CODE_OF(code), __VA_ARGS__)
#define IF_OTHERS if (bad_mode == LISTING || nproc > 1)
#define SAYS(text) bad_says = text
#define DEAD SAYS("not the number of a live"), good
#define NULL_IS_BAD F("null", ARGUMENT, SAYS("null"), good = NULL)
#define NULL_AGREED AGREED("null", ARGUMENT, good = NULL)

ARG(int, comp, "composition",
    F("0", HANDLE, DEAD = 0) F("-1", HANDLE, DEAD = -1) F("INT_MIN", HANDLE, DEAD = INT_MIN)
    F("INT_MAX", HANDLE, DEAD = INT_MAX) F("that was never made", HANDLE, DEAD = 77777)
    F("that was destroyed", HANDLE, DEAD = dead))
ARG(int, second, "second composition",
    F("0", HANDLE, DEAD = 0) F("mapped", HANDLE, SAYS("mapped"), good = mapped))
ARG(int, adding, "composition to add to", F("merged", HANDLE, SAYS("merged"), good = merged))
ARG(int, unmapped, "composition to add to, merge or map", F("mapped", HANDLE, SAYS("mapped"), good = mapped))
ARG(int, performed, "composition to perform",
    F("simple", HANDLE, SAYS("simple"), good = simple) F("merged", HANDLE, SAYS("merged"), good = merged))
ARG(void *, local, "local address", NULL_IS_BAD)
ARG(void *, remote, "remote address", NULL_IS_BAD)
#define WRAPS F("beyond the address space", ARGUMENT, SAYS("address space"), good = (void *)-4L)
ARG(void *, local_start, "local bytes", WRAPS)
ARG(void *, remote_start, "remote bytes", WRAPS)
#define LIST NULL_IS_BAD F("null behind a good one", ARGUMENT, SAYS("null"), good[1] = NULL)
ARG(void **, locals, "local addresses", LIST)
ARG(void **, remotes, "remote addresses", LIST)
ARG(void **, starts, "remote addresses of blocks",
    F("the last beyond the address space", ARGUMENT, SAYS("address space"), good[1] = (void *)-2L))
ARG(unsigned *, lengths, "lengths", NULL_IS_BAD)
#define FAR(what, to) F(what, ARGUMENT, SAYS("address space"), good = (void *)to)
ARG(void *, stride, "local stride", FAR("leaves the address space", INTPTR_MAX))
ARG(void *, far_stride, "remote stride", FAR("leaves the address space", INTPTR_MIN))
ARG(unsigned, far_block, "remote length of a block", F("fewer bytes than here", ARGUMENT, SAYS("8 bytes"), good = 3))
ARG(unsigned, far_blocks, "remote number of blocks",
    F("more bytes than here", ARGUMENT, SAYS("8 bytes"), good = 3) F("0", ARGUMENT, SAYS("8 bytes"), good = 0))
ARG(int, rank, "rank",
    F("-1", RANK, good = -1) F("the number of ranks", RANK, good = nproc) F("INT_MAX", RANK, good = INT_MAX))
ARG(int, number, "number of performances", F("-1", ARGUMENT, good = -1) F("INT_MIN", ARGUMENT, good = INT_MIN))
ARG(void **, addresses, "table of addresses, at one rank or all", NULL_AGREED)
ARG(size_t, size, "size, at one rank or all",
    AGREED("more than is available", MEMORY, good = (size_t)1 << 60) AGREED("SIZE_MAX", MEMORY, good = SIZE_MAX))
ARG(unsigned char *, part, "own segment, at one rank or all",
    AGREED("in no segment", ADDRESS, good = here) AGREED("inside a segment", ADDRESS, good += 8)
    AGREED("that was freed", ADDRESS, good = old)
    IF_OTHERS BAD_FAULT(LAST_RANK, "null at one rank, which has bytes", CODE_OF(ADDRESS), good = NULL))
ARG(int, file, "file number", F("-1", ARGUMENT, good = -1) F("INT_MIN", ARGUMENT, good = INT_MIN))

/* --------------------------------------- what calls make, use up, and return */

static int made(int rc) { return rc > 0 ? cp_destroy(rc) : rc; }
static int positive(int rc) { return rc > 0 ? 0 : rc; }
static int not_negative(int rc) { return rc >= 0 ? 0 : rc; }
static int allocated(int rc) { return rc ? rc : cp_free(table[me]); }
static int spare(void) { return bad_now == GOOD_CALL ? CP(cp_create(right)) : simple; }

static unsigned char *fresh(void)   /* a segment to free */
{
  if (bad_now != GOOD_CALL)
    return own;
  CP(cp_malloc(table, 8));
  return table[me];
}

/* ---------------------------------------------------------------------- tables */

static void compositions(void)
{
#define TO adding(unmapped(comp(simple)))
#define LOCALS locals((void *[]){ own, own + 16 })
#define REMOTES remotes((void *[]){ there + 128, there + 144 })
  AS(positive, cp_comptype, comp(simple));
  CODE(cp_destroy, comp(spare()));
  CODE(cp_add_adxpair, TO, local(own), remote(there + 128));
  CODE(cp_add_adxpairvector, TO, LOCALS, REMOTES, 2);
  CODE(cp_add_adxblock, TO, local_start(local(own)), remote_start(remote(there + 128)), 8);
  CODE(cp_add_adxblockvector, TO, LOCALS, starts(REMOTES), lengths((unsigned[]){ 4, 4 }), 2);
  CODE(cp_add_adxslice, TO, local_start(local(own)), stride((void *)8), 4, 2, remote_start(remote(there + 128)),
       far_stride((void *)8), far_block(4), far_blocks(2));
  CODE(cp_store, file(7), comp(simple));
  AS(made, cp_load, file(7));
  CODE(cp_rewind, file(7));
  AS(made, cp_merge, unmapped(comp(simple)), second(merged));
  AS(made, cp_map, unmapped(comp(simple)));
  CODE(cp_perform, performed(comp(mapped)));
  CODE(cp_waitfor, number(0));
  AS_OF_NONE(not_negative, cp_arrived);
  AS(made, cp_create, rank(right));
  AS(allocated, cp_malloc, addresses(table), size(8));
  CODE(cp_free, part(fresh()));
  CODE_OF_NONE(cp_sync);
  AS_OF_NONE(not_negative, cp_rank);
  AS_OF_NONE(not_negative, cp_nprocs);
  NO_FAULT(cp_init); NO_FAULT(cp_finalize); NO_FAULT(cp_errmsg);
}

/* ------------------------------------------------- faults of more than arguments */

#define C(call, fault, code, expression) BAD_CASE(call, fault, CODE_OF(code), expression)
#define LEGAL(call, what, expression) BAD_CASE(call, what, 0, "0", expression)

static int ended(int comp, int rc)  /* returns the code after the composition is destroyed */
{
  CP(cp_destroy(comp));
  return rc;
}

/* Returns a mapped composition of one block, or the error of cp_map. */
static int one_block(const void *from, void *to, unsigned length)
{
  const int it = CP(cp_create(right));
  CP(cp_add_adxblock(it, (void *)(uintptr_t)from, to, length));
  return ended(it, cp_map(it));
}

static int conflict(void)           /* blocks with different sources overlap in one remote byte */
{
  const int it = CP(cp_create(right));
  CP(cp_add_adxblock(it, own, there + 128, 8));
  CP(cp_add_adxblock(it, own + 32, there + 135, 8));
  return ended(it, cp_map(it));
}

static int folded(void)             /* blocks of 8 bytes at a remote stride of 4 */
{
  const int it = CP(cp_create(right));
  CP(cp_add_adxslice(it, own, (void *)8, 8, 3, there + 128, (void *)4, 8, 3));
  return ended(it, cp_map(it));
}

/* 2048 interleaved slices of 2^32 - 1 single bytes each: 2^43 bytes in all, more than any machine
 * can list. */
static int endless(void)
{
  const int it = CP(cp_create(right));
  for (uintptr_t i = 0; i < 2048; i++)
    CP(cp_add_adxslice(it, own + i, (void *)3, 1, UINT_MAX, there + 2 * i, (void *)2, 1, UINT_MAX));
  return ended(it, cp_map(it));
}

static int elsewhere(void)          /* bytes that the other rank has not mapped */
{
  const int it = one_block(here, (void *)64, 8);
  return it > 0 ? ended(it, cp_perform(it)) : it;
}

static const char *file_of(int of)
{
  static char name[300];
  snprintf(name, sizeof name, "%s/compose-%d.%d", directory, of, me);
  return name;
}

/* Loads a copy of a file that lacks its last `cut` bytes and has a flipped bit in byte `flip` (none
 * if negative). */
static int load_damaged(int cut, int flip)
{
  unsigned char bytes[1000];
  FILE *stream = fopen(file_of(7), "rb");
  CHECK(stream != NULL, "no %s", file_of(7));
  const size_t length = fread(bytes, 1, sizeof bytes, stream);
  fclose(stream);
  CHECK(length > 100 && length < sizeof bytes, "%s has %lu bytes", file_of(7), (unsigned long)length);
  if (flip >= 0)
    bytes[flip] ^= 0x40;
  stream = fopen(file_of(8), "wb");
  CHECK(stream != NULL && fwrite(bytes, 1, length - (size_t)cut, stream) == length - (size_t)cut, "%s", file_of(8));
  fclose(stream);
  CP(cp_rewind(8));
  return made(cp_load(8));
}

static int load_past_the_end(void)
{
  int it;
  CP(cp_rewind(7));
  while ((it = cp_load(7)) > 0)
    CP(cp_destroy(it));
  return it;
}

static int store_outside(void)
{
  const int it = CP(cp_create(right));
  CP(cp_add_adxblock(it, here, there, 8));
  return ended(it, cp_store(9, it));
}

/* Adds to a composition of its own, so that the table's composition stays empty. */
static int with_a_hole(void)
{
  const int it = CP(cp_create(right));
  void *holes[2] = { own, NULL };
  return ended(it, cp_add_adxblockvector(it, holes, holes, (unsigned[]){ 1, 0 }, 2));
}

static void cases(void)
{
  const unsigned most = UINT_MAX;
  void *high = (void *)-2147483648L, *step = (void *)8;
  C("cp_add_adxblock", "a length of UINT_MAX that leaves the address space", ARGUMENT,
    cp_add_adxblock(simple, own, high, most));
  C("cp_add_adxslice", "blocks and counts of UINT_MAX", ARGUMENT,
    cp_add_adxslice(simple, own, step, most, most, there, step, most, most));
  C("cp_map", "two local bytes that go to one remote byte", ARGUMENT, conflict());
  C("cp_map", "a slice whose remote blocks overlap", ARGUMENT, folded());
  C("cp_map", "slices of more blocks than memory can list", MEMORY, endless());
  IF_OTHERS C("cp_perform", "bytes that the other rank has not mapped", ADDRESS, elsewhere());
  C("cp_perform", "memory that was freed since it was mapped", STATE, cp_perform(freed_under));
  C("cp_store", "addresses outside of segments", ADDRESS, store_outside());
  GIVES("cp_store", "a file that cannot be written", "`CP_ERR_ARGUMENT`",
        mkdir(file_of(5), 0700) == 0 && cp_store(5, simple) == CP_ERR_ARGUMENT && rmdir(file_of(5)) == 0);
  C("cp_load", "a file that is missing", ARGUMENT, cp_load(6));
  C("cp_load", "behind the last composition", ARGUMENT, load_past_the_end());
  C("cp_load", "a file that is cut off", ARGUMENT, load_damaged(3, -1));
  C("cp_load", "a file cut off in its head", ARGUMENT, load_damaged(100, -1));
  C("cp_load", "another file", ARGUMENT, load_damaged(0, 0));
  C("cp_load", "another version", ARGUMENT, load_damaged(0, 8));
  C("cp_load", "damaged addresses", ARGUMENT, load_damaged(0, 90));
  LEGAL("cp_rewind", "a file that is missing", cp_rewind(6));
  LEGAL("cp_add_adxblock", "no bytes, both addresses null", cp_add_adxblock(simple, NULL, NULL, 0));
  LEGAL("cp_add_adxpairvector", "no pairs, both arrays null", cp_add_adxpairvector(simple, NULL, NULL, 0));
  LEGAL("cp_add_adxblockvector", "no blocks, all arrays null", cp_add_adxblockvector(simple, NULL, NULL, NULL, 0));
  LEGAL("cp_add_adxblockvector", "a null block of no bytes behind a good one", with_a_hole());
  LEGAL("cp_add_adxslice", "no bytes on either side, all addresses null",
        cp_add_adxslice(simple, NULL, NULL, 0, 5, NULL, NULL, 7, 0));
  LEGAL("cp_free", "`NULL` at all ranks", cp_free(NULL));
}

static void unsynchronised(void)
{
  C("cp_perform", "before the first cp_sync", STATE, cp_perform(mapped));
  C("cp_waitfor", "before the first cp_sync", STATE, cp_waitfor(1));
  C("cp_arrived", "before the first cp_sync", STATE, cp_arrived());
  LEGAL("cp_finalize", "once more than cp_init", cp_finalize());
}

/* ------------------------------------------------------------------------ main */

static void (*const tables[])(void) = { compositions, cases, unsynchronised, NULL };

static void stale(void) { CHECK(ARMCI_Absolute_id(NULL, 0) == -1, "a rank of no group"); }

static void make_compositions(void)
{
  simple = CP(cp_create(right));
  const int other = CP(cp_create(right));
  CP(cp_add_adxblock(other, own, there + 128, 16));
  merged = CP(cp_merge(other, other));
  mapped = CP(cp_map(merged));
  dead = ended(other, other);
}

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

static void outside_its_life(void)
{
  own = there = here;
  bad_input(compositions, NO_RUNTIME);
  CHECK_EQ(cp_finalize(), 0);
}

int main(int argc, char **argv)
{
  if (bad_list(argc, argv, tables))
    return 0;
  check_start_mpi("cp_invalid", &argc, &argv);
  const char *tmp = getenv("TMPDIR");
  snprintf(directory, sizeof directory, "%s/portolan-cp-invalid-XXXXXX", tmp ? tmp : "/tmp");
  CHECK(mkdtemp(directory) != NULL, "cannot make %s", directory);
  setenv("PORTOLAN_COMPOSE_DIR", directory, 1);
  right = (me + 1) % nproc;
  bad_error = cp_errmsg;
  bad_stale = stale;
  bad_no_runtime = (struct bad_fault){ NULL, "no cp_init", "`CP_ERR_STATE`", CP_ERR_STATE, ALL_RANKS };
  CHECK_EQ(cp_errmsg()[0], 0);
  watch("local memory", here, sizeof here);
  outside_its_life();

  CP(cp_init());
  void **freed = cp_segment(ROOM), **again = cp_segment(64);
  old = freed[me];
  base = cp_segment(ROOM);
  cp_free_segment(freed);
  own = base[me];
  there = base[right];
  make_compositions();
  freed_under = one_block(own, again[right], 8);
  cp_free_segment(again);
  CP(cp_sync());
  bad_input(compositions, GOOD_CALLS);
  CP(cp_sync());
  CP(cp_destroy(simple));
  simple = CP(cp_create(right));
  check_fill(own, 3, ROOM);
  CP(cp_sync());
  watch("the segment", own, ROOM);
  watch("the table of addresses", table, sizeof table);
  bad_input(compositions, FAULTS);
  bad_input(cases, FAULTS);
  bad_watches = 1;
  still_empty();
  CP(cp_sync());
  CP(cp_free(own));
  CP(cp_finalize());
  outside_its_life();

  /* The second life tests calls before its first synchronisation. */
  CHECK_OK(ARMCI_Init());
  base = check_segment(ROOM);
  own = base[me];
  there = base[right];
  make_compositions();
  bad_input(unsynchronised, FAULTS);
  check_free_segment(base);
  CHECK_OK(ARMCI_Finalize());
  CHECK_EQ(unlink(file_of(7)) + unlink(file_of(8)) + rmdir(directory), 0);
  if (me == 0)
    printf("%d calls with faults had the outcome that is documented\n", bad_refused);
  return check_end_mpi();
}
