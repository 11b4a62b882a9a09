/* Jobs that were launched separately: a server publishes its address in a file; clients of other
 * jobs look it up and call the server, which transfers their memory.
 *
 *   mercury_dynamic                   reports what this MPI supports, without other jobs
 *   mercury_dynamic server FILE CALLS serves CALLS calls
 *   mercury_dynamic client FILE
 *   mercury_dynamic refused FILE      has a different secret and is refused
 *   mercury_dynamic killed FILE       is admitted and dies
 *
 * Open MPI needs one ompi-server for both launchers; Debian's MPICH does not support this. */
// TEST: n=1
#include "mercury_check.h"
#include <signal.h>

MERCURY_GEN_PROC(job_in_t, ((hg_const_string_t)(name)) ((hg_bulk_t)(bulk)))
MERCURY_GEN_PROC(job_out_t, ((uint64_t)(sum)) ((hg_string_t)(text)))

enum { BYTES = 3000001 };
static int served;

static hg_return_t job_cb(hg_handle_t handle)
{
  job_in_t in;
  job_out_t out = { 0, NULL };
  hg_bulk_t local;
  hg_bulk_request_t request;
  hg_status_t done = HG_FALSE;
  size_t size;
  unsigned int count;
  void *at;

  MUST(HG_Handler_get_input(handle, &in));
  size = HG_Bulk_handle_get_size(in.bulk);
  MUST(HG_Bulk_handle_create(1, NULL, &size, HG_BULK_READWRITE, &local));
  MUST(HG_Bulk_handle_access(local, 0, size, HG_BULK_READWRITE, 1, &at, &size, &count));
  MUST(HG_Bulk_transfer(HG_BULK_PULL, HG_Handler_get_addr(handle), in.bulk, 0, local, 0, size,
                        &request));
  MUST(HG_Bulk_wait(request, 20000, &done));
  CHECK(done, "the pull has not ended");
  for (size_t i = 0; i < size; i++) {
    out.sum += ((unsigned char *)at)[i];
    ((unsigned char *)at)[i] ^= 0xff;
  }
  MUST(HG_Bulk_transfer(HG_BULK_PUSH, HG_Handler_get_addr(handle), in.bulk, 0, local, 0, size,
                        &request));
  MUST(HG_Bulk_wait(request, 20000, &done));
  CHECK(done, "the push has not ended");
  out.text = check_calloc(200000); /* too long for a message */
  memset(out.text, 'z', 199999);
  MUST(HG_Bulk_handle_free(local));
  MUST(HG_Handler_start_output(handle, &out));
  free(out.text);
  MUST(HG_Handler_free_input(handle, &in));
  served++;
  return HG_Handler_free(handle);
}

static void serve(const char *file, int calls)
{
  char text[NA_MAX_ADDR_LEN], other[NA_MAX_ADDR_LEN];
  na_addr_t self;
  FILE *f;

  MUST(NA_Addr_self(network, &self));
  MUST(NA_Addr_to_string(network, text, sizeof text, self));
  snprintf(other, sizeof other, "%s.new", file);
  f = fopen(other, "w");
  CHECK(f != NULL && fprintf(f, "%s\n", text) > 0 && fclose(f) == 0, "cannot write %s", other);
  CHECK(rename(other, file) == 0, "cannot write %s", file);
  while (served < calls)
    MUST(HG_Handler_process(1000, HG_STATUS_IGNORE));
  for (int i = 0; i < 20; i++) /* the last outputs are still pulled */
    MUST(HG_Handler_process(20, HG_STATUS_IGNORE));
  MUST(NA_Addr_free(network, self));
}

/* Reads the address file as soon as it exists. */
static void read_address(const char *file, char *text, int size)
{
  FILE *f = NULL;

  for (int i = 0; i < 300 && !f; i++) {
    f = fopen(file, "r");
    if (!f) {
      const struct timespec moment = { 0, 100000000 };
      nanosleep(&moment, NULL);
    }
  }
  CHECK(f != NULL && fgets(text, size, f) != NULL, "no address in %s", file);
  fclose(f);
  text[strcspn(text, "\n")] = '\0';
}

static void call(const char *file, hg_id_t id)
{
  char text[NA_MAX_ADDR_LEN] = "";
  unsigned char *bytes = check_calloc(BYTES);
  size_t sizes[2] = { 1000000, BYTES - 1000000 };
  void *at[2] = { bytes, bytes + 1000000 };
  job_in_t in = { "client", HG_BULK_NULL };
  job_out_t out;
  hg_request_t request;
  hg_status_t done = HG_FALSE;
  uint64_t sum = 0;
  na_addr_t server;

  read_address(file, text, sizeof text);
  MUST(NA_Addr_lookup_wait(network, text, &server));
  CHECK(!NA_Addr_is_self(network, server), "the server is another job");
  for (int i = 0; i < BYTES; i++) {
    bytes[i] = check_byte(3, i);
    sum += bytes[i];
  }
  MUST(HG_Bulk_handle_create(2, at, sizes, HG_BULK_READWRITE, &in.bulk));
  MUST(HG_Forward(server, id, &in, &out, &request));
  MUST(HG_Wait(request, 30000, &done));
  CHECK(done, "the call has not ended");
  CHECK_EQ(out.sum, sum);
  CHECK_EQ(strlen(out.text), 199999);
  for (int i = 0; i < BYTES; i++)
    CHECK_EQ(bytes[i], check_byte(3, i) ^ 0xff);
  MUST(HG_Request_free(request));
  MUST(HG_Bulk_handle_free(in.bulk));
  MUST(NA_Addr_free(network, server));
  free(bytes);
}

static void be_refused(const char *file)
{
  char text[NA_MAX_ADDR_LEN];
  na_addr_t server;

  read_address(file, text, sizeof text);
  MUST_BE(NA_PERMISSION, NA_Addr_lookup_wait(network, text, &server));
  CHECK(strstr(portolan_last_error(), "PORTOLAN_RPC_SECRET_FILE") != NULL, "the error says too little: %s",
        portolan_last_error());
  CHECK(strstr(portolan_last_error(), text + strlen(text) - 32) == NULL, "the error shows the token");
}

static void be_killed(const char *file)
{
  char text[NA_MAX_ADDR_LEN];
  na_addr_t server;

  read_address(file, text, sizeof text);
  MUST(NA_Addr_lookup_wait(network, text, &server));
  printf("connected\n");
  fflush(stdout);
  raise(SIGKILL);
}

int main(int argc, char **argv)
{
  const int server = argc > 2 && strcmp(argv[1], "server") == 0;
  hg_id_t id;

  check_start_mpi("mercury_dynamic", &argc, &argv);
  network = NA_Initialize("mpi+dynamic", argc > 2 ? server : NA_TRUE);
  if (network == NULL) {
    CHECK(argc == 1 && strstr(portolan_last_error(), "MPI_Open_port") != NULL
            && (strstr(portolan_last_error(), "ompi-server") != NULL
                || strstr(portolan_last_error(), "I_MPI_SPAWN=1") != NULL),
          "the error does not say what is missing: %s", portolan_last_error());
    return check_end_mpi();
  }
  MUST(HG_Init(network));
  id = MERCURY_REGISTER("job", job_in_t, job_out_t, job_cb);
  if (argc == 1) {
    na_addr_t self, none;
    char text[NA_MAX_ADDR_LEN];
    MUST(NA_Addr_self(network, &self));
    MUST(NA_Addr_to_string(network, text, sizeof text, self));
    CHECK(strncmp(text, "mpi+dynamic://", 14) == 0, "the address is %s", text);
    CHECK(strlen(text) > 46 && text[strlen(text) - 33] == '/', "no token in %s", text);
    MUST_BE(NA_INVALID_PARAM, NA_Addr_lookup_wait(network, "mpi+dynamic://127.0.0.1:1", &none));
    MUST_BE(NA_HOSTUNREACH,
            NA_Addr_lookup_wait(network, "mpi+dynamic://127.0.0.1:1/0123456789abcdef0123456789abcdef",
                                &none));
    MUST(NA_Addr_free(network, self));
  } else if (server) {
    serve(argv[2], argc > 3 ? atoi(argv[3]) : 1);
  } else if (strcmp(argv[1], "refused") == 0) {
    be_refused(argv[2]);
  } else if (strcmp(argv[1], "killed") == 0) {
    be_killed(argv[2]);
  } else {
    call(argv[2], id);
  }
  MUST(HG_Finalize());
  MUST(NA_Finalize(network));
  return check_end_mpi();
}
