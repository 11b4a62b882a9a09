/* After memory is deregistered or its handle freed, a rank that still has its description can no
 * longer read or write it, neither by a new transfer nor by one that is in progress. */
// TEST: mercury networks
#define _DEFAULT_SOURCE 1 /* MAP_ANONYMOUS */
#include "mercury_check.h"

#include <sys/mman.h>

enum { LENGTH = 3 << 20, ROUNDS = 60, DESCRIPTION = 4096 };

static int left, right;
static na_addr_t peer;
static unsigned char *mine;
static na_mem_handle_t local;

static int done;
static na_return_t status;

static na_return_t note(const struct na_cb_info *info)
{
  done = 1;
  status = info->ret;
  return NA_SUCCESS;
}

/* Transfers bytes and returns the result, which may be immediate or from the callback. */
static na_return_t move(int put, na_mem_handle_t remote, na_size_t size)
{
  done = 0;
  const na_return_t rc =
    put ? NA_Put(network, context, note, NULL, local, 0, remote, 0, size, peer, NA_OP_ID_IGNORE)
        : NA_Get(network, context, note, NULL, local, 0, remote, 0, size, peer, NA_OP_ID_IGNORE);
  if (rc != NA_SUCCESS)
    return rc;
  pump_until(&done, 1, "a transfer");
  return status;
}

/* Sends the description to the left and receives the right neighbour's. */
static na_mem_handle_t exchange(na_mem_handle_t handle)
{
  unsigned char out[DESCRIPTION], in[DESCRIPTION];
  na_mem_handle_t theirs;
  MUST(NA_Mem_handle_serialize(network, out, sizeof out, handle));
  MPI_Sendrecv(out, sizeof out, MPI_BYTE, left, 1, in, sizeof in, MPI_BYTE, right, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MUST(NA_Mem_handle_deserialize(network, &theirs, in, sizeof in));
  return theirs;
}

static void all_are(const unsigned char *bytes, int value, const char *when)
{
  for (long i = 0; i < LENGTH; i++)
    CHECK(bytes[i] == value, "%s: byte %ld is %d, not %d", when, i, bytes[i], value);
}

/* Later transfers of any length are refused. */
static void later(na_size_t size)
{
  unsigned char *bytes = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  na_mem_handle_t handle, theirs;
  CHECK(bytes != MAP_FAILED, "mmap");
  memset(mine, 100 + me, LENGTH);
  MUST(NA_Mem_handle_create(network, bytes, LENGTH, NA_MEM_READWRITE, &handle));
  theirs = exchange(handle); /* serialised before it is registered */
  pump_barrier();
  MUST_BE(NA_ACCESS, move(1, theirs, size));
  pump_barrier();
  all_are(bytes, 0, "not registered");
  MUST(NA_Mem_register(network, handle));
  pump_barrier();
  MUST(move(1, theirs, size));
  pump_barrier();
  CHECK(bytes[0] == 100 + left && bytes[size - 1] == 100 + left, "registered");
  for (int again = 0; again < 2; again++) {
    MUST(NA_Mem_deregister(network, handle));
    memset(bytes, 7, LENGTH);
    pump_barrier();
    MUST_BE(NA_ACCESS, move(1, theirs, size));
    MUST_BE(NA_ACCESS, move(0, theirs, size));
    CHECK_EQ(mine[0], 100 + me);
    pump_barrier();
    all_are(bytes, 7, "deregistered");
    MUST(NA_Mem_register(network, handle));
    pump_barrier();
    MUST(move(1, theirs, size));
    pump_barrier();
    CHECK_EQ(bytes[size - 1], 100 + left);
    pump_barrier();
  }
  MUST(NA_Mem_handle_free(network, handle)); /* while still registered */
  memset(bytes, 8, LENGTH);
  pump_barrier();
  MUST_BE(NA_ACCESS, move(1, theirs, size));
  MUST_BE(NA_ACCESS, move(0, theirs, size));
  pump_barrier();
  all_are(bytes, 8, "freed");
  CHECK(munmap(bytes, LENGTH) == 0, "munmap");
  pump_barrier();
  MUST_BE(NA_ACCESS, move(1, theirs, size));
  MUST_BE(NA_ACCESS, move(0, theirs, size));
  pump_barrier();
  MUST(NA_Mem_handle_free(network, theirs));
}

/* Registering the same bytes again does not revive the old description. */
static void exposed_again(void)
{
  static unsigned char bytes[64];
  na_mem_handle_t first, second, old, fresh;
  MUST(NA_Mem_handle_create(network, bytes, sizeof bytes, NA_MEM_READWRITE, &first));
  MUST(NA_Mem_register(network, first));
  old = exchange(first);
  pump_barrier();
  MUST(NA_Mem_handle_free(network, first));
  MUST(NA_Mem_handle_create(network, bytes, sizeof bytes, NA_MEM_READWRITE, &second));
  MUST(NA_Mem_register(network, second));
  fresh = exchange(second);
  pump_barrier();
  MUST_BE(NA_ACCESS, move(1, old, sizeof bytes));
  MUST(move(1, fresh, sizeof bytes));
  pump_barrier();
  MUST(NA_Mem_handle_free(network, second));
  MUST(NA_Mem_handle_free(network, old));
  MUST(NA_Mem_handle_free(network, fresh));
  pump_barrier();
}

/* The neighbour puts continuously. When deregistering returns, no put is in progress. */
static void under_way(na_size_t size)
{
  unsigned char *bytes = check_calloc(LENGTH);
  na_mem_handle_t handle, theirs;
  MUST(NA_Mem_handle_create(network, bytes, LENGTH, NA_MEM_READWRITE, &handle));
  theirs = exchange(handle);
  memset(mine, 200, LENGTH);
  for (int round = 0; round < ROUNDS; round++) {
    const int owner = round % 2 == me % 2;
    MUST(NA_Mem_register(network, handle));
    pump_barrier();
    /* With one rank or an odd number, some owners target other owners, and nothing races. */
    if (owner) {
      for (int i = 0; i < round % 7; i++)
        pump(1);
      MUST(NA_Mem_deregister(network, handle));
      memset(bytes, round, LENGTH);
    } else {
      na_return_t rc;
      int puts = 0;
      do
        rc = move(round % 3 != 0, theirs, size);
      while (rc == NA_SUCCESS && (++puts < 20 || (nproc % 2 == 0 && nproc > 1)));
      CHECK(rc == NA_SUCCESS || rc == NA_ACCESS, "a put ends with %d", rc);
    }
    pump_barrier();
    if (owner)
      all_are(bytes, round, "deregistered while it was written");
    else
      MUST(NA_Mem_deregister(network, handle));
    memset(mine, 200, LENGTH);
    pump_barrier();
  }
  MUST(NA_Mem_handle_free(network, theirs));
  MUST(NA_Mem_handle_free(network, handle));
  pump_barrier();
  free(bytes);
}

/* More handles than the node's table holds. The owner serves the rest by the same rules. */
static void many(void)
{
  enum { COUNT = 2600 };
  static unsigned char bytes[COUNT];
  na_mem_handle_t *handles = check_calloc(COUNT * (long)sizeof *handles), last = NULL;
  unsigned char ignored[DESCRIPTION];
  for (int i = 0; i < COUNT; i++) {
    MUST(NA_Mem_handle_create(network, bytes + i, 1, NA_MEM_READWRITE, &handles[i]));
    MUST(NA_Mem_register(network, handles[i]));
    MUST(NA_Mem_handle_serialize(network, ignored, sizeof ignored, handles[i]));
  }
  last = exchange(handles[COUNT - 1]);
  memset(mine, 3, 8);
  pump_barrier();
  MUST(move(1, last, 1));
  pump_barrier();
  CHECK_EQ(bytes[COUNT - 1], 3);
  MUST(NA_Mem_deregister(network, handles[COUNT - 1]));
  pump_barrier();
  MUST_BE(NA_ACCESS, move(1, last, 1));
  pump_barrier();
  for (int i = 0; i < COUNT; i++)
    MUST(NA_Mem_handle_free(network, handles[i]));
  MUST(NA_Mem_handle_free(network, last));
  free(handles);
}

int main(int argc, char **argv)
{
  start_network("mercury_withdrawn", &argc, &argv);
  context = NA_Context_create(network);
  left = (me + nproc - 1) % nproc;
  right = (me + 1) % nproc;
  peer = address_of(right);
  mine = check_calloc(LENGTH);
  MUST(NA_Mem_handle_create(network, mine, LENGTH, NA_MEM_READWRITE, &local));
  MUST(NA_Mem_register(network, local));
  later(1);
  later(4096);
  later(200000);
  later(LENGTH);
  exposed_again();
  under_way(8);
  under_way(100000);
  under_way(LENGTH);
  many();
  MUST(NA_Mem_handle_free(network, local));
  free(mine);
  MUST(NA_Addr_free(network, peer));
  MUST(NA_Context_destroy(network, context));
  MUST(NA_Finalize(network));
  return check_end_mpi();
}
