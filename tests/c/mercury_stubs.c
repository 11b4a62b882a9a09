/* Generated stubs and callbacks: rank 0 serves the others, or itself when it is alone. */
// TEST: mercury networks
#include "check.h"

#include <mercury_macros.h>

/* ------------------------------------------------- server functions */

static int finished;

static int32_t open_file(const char *path, int32_t flags, int32_t *event)
{
  *event = 10 * flags + (int32_t)strlen(path);
  return strcmp(path, "/no/such/file") ? 1 : -1;
}

/* Checks the client's buffer; returns its size, or minus the number of wrong bytes. */
static int64_t write_data(int32_t seed, const void *data, hg_uint64_t size)
{
  int64_t wrong = 0;
  for (hg_uint64_t i = 0; i < size; i++)
    wrong += ((const unsigned char *)data)[i] != check_byte(seed, (long)i);
  return wrong ? -wrong : (int64_t)size;
}

/* Fills the client's buffer. */
static int64_t read_data(int32_t seed, void *data, hg_uint64_t size, uint64_t *last)
{
  check_fill(data, seed, (long)size);
  *last = size - 1;
  return (int64_t)size;
}

static void add_up(double a, double b, double *sum)
{
  *sum = a + b;
}

static void finish(void)
{
  finished++;
}

/* ----------------------------------------------------------- generated code */

#define OPEN_IN ((hg_const_string_t)(path)) ((int32_t)(flags))
#define OPEN_OUT ((int32_t)(event))
MERCURY_GEN_PROC(open_file_in_t, OPEN_IN)
MERCURY_GEN_PROC(open_file_out_t, ((int32_t)(ret)) OPEN_OUT)
MERCURY_GEN_RPC_STUB(ship_open, open_file,
                     MERCURY_GEN_TRUE, int32_t, -99,
                     MERCURY_GEN_TRUE, open_file_in_t, OPEN_IN,
                     MERCURY_GEN_TRUE, open_file_out_t, OPEN_OUT,
                     MERCURY_GEN_FALSE, MERCURY_GEN_FALSE)
MERCURY_HANDLER_GEN_CALLBACK_STUB(open_cb, open_file,
                                  MERCURY_GEN_TRUE, int32_t,
                                  MERCURY_GEN_TRUE, open_file_in_t, OPEN_IN,
                                  MERCURY_GEN_TRUE, open_file_out_t, OPEN_OUT,
                                  MERCURY_GEN_FALSE, MERCURY_GEN_FALSE)

MERCURY_GEN_PROC(write_in_t, ((int32_t)(seed)) ((hg_bulk_t)(bulk_handle)))
MERCURY_GEN_PROC(write_out_t, ((int64_t)(ret)))
MERCURY_GEN_RPC_STUB(ship_write, write_data,
                     MERCURY_GEN_TRUE, int64_t, -99,
                     MERCURY_GEN_TRUE, write_in_t, ((int32_t)(seed)),
                     MERCURY_GEN_FALSE, write_out_t, ,
                     MERCURY_GEN_TRUE, MERCURY_GEN_TRUE)
MERCURY_HANDLER_GEN_CALLBACK_STUB(write_cb, write_data,
                                  MERCURY_GEN_TRUE, int64_t,
                                  MERCURY_GEN_TRUE, write_in_t, ((int32_t)(seed)),
                                  MERCURY_GEN_FALSE, write_out_t, ,
                                  MERCURY_GEN_TRUE, MERCURY_GEN_TRUE)

MERCURY_GEN_PROC(read_out_t, ((int64_t)(ret)) ((uint64_t)(last)))
MERCURY_GEN_RPC_STUB(ship_read, read_data,
                     MERCURY_GEN_TRUE, int64_t, -99,
                     MERCURY_GEN_TRUE, write_in_t, ((int32_t)(seed)),
                     MERCURY_GEN_TRUE, read_out_t, ((uint64_t)(last)),
                     MERCURY_GEN_TRUE, MERCURY_GEN_FALSE)
MERCURY_HANDLER_GEN_CALLBACK_STUB(read_cb, read_data,
                                  MERCURY_GEN_TRUE, int64_t,
                                  MERCURY_GEN_TRUE, write_in_t, ((int32_t)(seed)),
                                  MERCURY_GEN_TRUE, read_out_t, ((uint64_t)(last)),
                                  MERCURY_GEN_TRUE, MERCURY_GEN_FALSE)

MERCURY_GEN_PROC(add_in_t, ((double)(a)) ((double)(b)))
MERCURY_GEN_PROC(add_out_t, ((double)(sum)))
MERCURY_GEN_RPC_STUB(ship_add, add_up,
                     MERCURY_GEN_FALSE, , ,
                     MERCURY_GEN_TRUE, add_in_t, ((double)(a)) ((double)(b)),
                     MERCURY_GEN_TRUE, add_out_t, ((double)(sum)),
                     MERCURY_GEN_FALSE, MERCURY_GEN_FALSE)
MERCURY_HANDLER_GEN_CALLBACK_STUB(add_cb, add_up,
                                  MERCURY_GEN_FALSE, ,
                                  MERCURY_GEN_TRUE, add_in_t, ((double)(a)) ((double)(b)),
                                  MERCURY_GEN_TRUE, add_out_t, ((double)(sum)),
                                  MERCURY_GEN_FALSE, MERCURY_GEN_FALSE)

MERCURY_GEN_RPC_STUB(ship_finish, finish,
                     MERCURY_GEN_FALSE, , ,
                     MERCURY_GEN_FALSE, , ,
                     MERCURY_GEN_FALSE, , ,
                     MERCURY_GEN_FALSE, MERCURY_GEN_FALSE)
MERCURY_HANDLER_GEN_CALLBACK_STUB(finish_cb, finish,
                                  MERCURY_GEN_FALSE, ,
                                  MERCURY_GEN_FALSE, , ,
                                  MERCURY_GEN_FALSE, , ,
                                  MERCURY_GEN_FALSE, MERCURY_GEN_FALSE)

/* ------------------------------------------------------------------ the roles */

static void serve(void)
{
  MERCURY_REGISTER("open_file", open_file_in_t, open_file_out_t, open_cb);
  MERCURY_REGISTER("write_data", write_in_t, write_out_t, write_cb);
  MERCURY_REGISTER("read_data", write_in_t, read_out_t, read_cb);
  MERCURY_HANDLER_REGISTER("add_up", add_cb, add_in_t, add_out_t);
  MERCURY_REGISTER("finish", void, void, finish_cb);
}

static void call(void)
{
  const long sizes[] = { 1, 4096, 100000, 3000001 };
  char *longest = (char *)check_calloc(50001);
  int32_t event = 0;
  double sum = 0;

  CHECK_EQ(ship_open("/tmp/file", me, &event), 1);
  CHECK_EQ(event, 10 * me + 9);
  CHECK_EQ(ship_open("/no/such/file", 3, &event), -1);
  memset(longest, 'x', 50000); /* too long for a message */
  CHECK_EQ(ship_open(longest, 1, &event), 1);
  CHECK_EQ(event, 50010);
  free(longest);

  for (int i = 0; i < 4; i++) {
    unsigned char *data = (unsigned char *)check_calloc(sizes[i]);
    uint64_t last = 0;
    check_fill(data, me, sizes[i]);
    CHECK_EQ(ship_write(me, data, (hg_uint64_t)sizes[i]), sizes[i]);
    CHECK_EQ(ship_write(me + 1, data, (hg_uint64_t)sizes[i]) < 0, 1);
    CHECK_EQ(ship_read(me + 7, data, (hg_uint64_t)sizes[i], &last), sizes[i]);
    CHECK_EQ(last, sizes[i] - 1);
    for (long k = 0; k < sizes[i]; k++)
      CHECK(data[k] == check_byte(me + 7, k), "byte %ld of %ld", k, sizes[i]);
    free(data);
  }
  ship_add(0.25, me, &sum);
  CHECK(sum == 0.25 + me, "the sum is %g", sum);
  ship_finish();
}

int main(int argc, char **argv)
{
  na_class_t *network;
  hg_status_t status;
  check_start_mpi("mercury_stubs", &argc, &argv);
  setenv(HG_PORT_NAME, "mpi://0", 1);
  network = NA_Initialize("mpi", 1);
  CHECK(network != NULL, "no network: %s", portolan_last_error());
  CHECK_OK(HG_Init(network));
  if (me == 0)
    serve();
  MPI_Barrier(MPI_COMM_WORLD);
  if (me > 0 || nproc == 1)
    call();
  while (me == 0 && finished < (nproc == 1 ? 1 : nproc - 1)) {
    int ret = HG_Handler_process(1000, &status);
    CHECK(ret == HG_SUCCESS || ret == HG_TIMEOUT, "process returned %d", ret);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(HG_Finalize());
  CHECK_EQ(NA_Finalize(network), NA_SUCCESS);
  return check_end_mpi();
}
