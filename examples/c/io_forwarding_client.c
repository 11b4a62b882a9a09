/*
 * io_forwarding_client.c - the compute rank of io_forwarding.c: writes files through the I/O ranks,
 * reads them back and compares them.
 */
#include "io_forwarding.h"

#include <errno.h>
#include <stdio.h>

enum { GHOST = 64, MARK = 0x5a };

/* A call and its result. */
struct flight {
  hg_handle_t handle;
  hg_return_t code;
  int ended;
  void *out;
};

/* Rows of bytes, with ghost cells before, between and after them. */
struct field {
  unsigned char *base;
  size_t rows, row, total;
  hg_bulk_t bulk;
};

/* A file that is being written or read. */
struct piece {
  size_t number;
  hg_addr_t server;
  uint64_t file;
  struct field field;
  struct flight flight;
  move_out_t out;
};

static hg_addr_t *servers;
static uint64_t *digests;
static unsigned char *have; /* whether the digest is valid */
static const struct {
  int error;
  const char *what;
} tried[] = { { ENOENT, "opening a missing file" },
              { EACCES, "opening a file outside" },
              { EBADF, "reading a file that is not open" },
              { ENOSPC, "writing to a full device" } };

/* ------------------------------------------------------------------------------- calls */

static void pump(unsigned int most)
{
  unsigned int n;
  if (job.ranks == 1) { /* a single rank serves itself */
    server_step(most);
    return;
  }
  HG_Progress(job.context, most);
  HG_Trigger(job.context, 0, 64, &n);
}

static hg_return_t ended(const struct hg_cb_info *info)
{
  struct flight *flight = info->arg;
  flight->code = info->ret;
  if (flight->code == HG_SUCCESS && flight->out)
    flight->code = HG_Get_output(info->info.forward.handle, flight->out);
  flight->ended = 1;
  return HG_SUCCESS;
}

/* Starts a call. out is filled when the call has ended. */
static void forward(struct flight *flight, hg_addr_t server, hg_id_t id, void *in, void *out)
{
  flight->ended = 0;
  flight->out = out;
  MUST(HG_Create(job.context, server, id, &flight->handle));
  MUST(HG_Forward(flight->handle, ended, flight, in));
}

static void finish(struct flight *flight)
{
  while (!flight->ended)
    pump(20);
  MUST(flight->code);
  if (flight->out)
    MUST(HG_Free_output(flight->handle, flight->out));
  MUST(HG_Destroy(flight->handle));
}

static void call(hg_addr_t server, hg_id_t id, void *in, void *out)
{
  struct flight flight;
  forward(&flight, server, id, in, out);
  finish(&flight);
}

/* Records the error of a call, if any. Returns whether the call succeeded. */
static int good(const char *what, const char *path, int error)
{
  if (error == ESHUTDOWN) {
    report.stopped = 1;
  } else if (error) {
    fprintf(stderr, "rank %d: %s %s: %s\n", job.rank, what, path, strerror(error));
    report.failed++;
  }
  return error == 0;
}

static open_out_t open_file(hg_addr_t server, const char *path, int create)
{
  open_in_t in = { path, (hg_bool_t)create };
  open_out_t out;
  call(server, job.calls.open, &in, &out);
  return out;
}

static int close_file(hg_addr_t server, uint64_t file)
{
  close_in_t in = { file };
  close_out_t out;
  call(server, job.calls.close, &in, &out);
  return out.error;
}

/* ------------------------------------------------------------------------------ fields */

static unsigned char *row_at(const struct field *field, size_t row)
{
  return field->base + GHOST + row * (field->row + GHOST);
}

static size_t row_size(const struct field *field, size_t row)
{
  const size_t left = field->total - row * field->row;
  return left < field->row ? left : field->row;
}

static void make_field(struct field *field, size_t total, size_t row, hg_uint8_t flags)
{
  field->total = total;
  field->row = row;
  field->rows = (total + row - 1) / row;
  field->base = malloc(GHOST + field->rows * (row + GHOST));
  void **at = malloc(field->rows * sizeof *at);
  hg_size_t *sizes = malloc(field->rows * sizeof *sizes);
  if (!field->base || !at || !sizes)
    give_up("a field", "no memory");
  memset(field->base, MARK, GHOST + field->rows * (row + GHOST));
  for (size_t i = 0; i < field->rows; i++) {
    at[i] = row_at(field, i);
    sizes[i] = row_size(field, i);
  }
  MUST(HG_Bulk_create(job.hg, (hg_uint32_t)field->rows, at, sizes, flags, &field->bulk));
  free(at);
  free(sizes);
}

static void free_field(struct field *field)
{
  MUST(HG_Bulk_free(field->bulk));
  free(field->base);
}

/* Fills the rows with numbers that occur in no other file. */
static void fill(struct field *field, uint64_t seed)
{
  uint64_t x = seed | 1;
  for (size_t row = 0; row < field->rows; row++) {
    unsigned char *at = row_at(field, row);
    for (size_t left = row_size(field, row); left;) {
      const size_t n = left < sizeof x ? left : sizeof x;
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      memcpy(at, &x, n);
      at += n;
      left -= n;
    }
  }
}

/* Returns the FNV-1a hash of all bytes, whatever the length of the rows. */
static uint64_t digest(const struct field *field)
{
  uint64_t value = 0xcbf29ce484222325;
  for (size_t row = 0; row < field->rows; row++) {
    const unsigned char *at = row_at(field, row);
    for (size_t i = 0; i < row_size(field, row); i++)
      value = (value ^ at[i]) * 0x100000001b3;
  }
  return value;
}

/* Returns whether the ghost cells are unchanged. */
static int ghosts_are_whole(const struct field *field)
{
  for (size_t row = 0; row <= field->rows; row++)
    for (int i = 1; i <= GHOST; i++)
      if (row_at(field, row)[-i] != MARK)
        return 0;
  return 1;
}

/* ------------------------------------------------------------------------------ client */

static void expect(size_t n, int error)
{
  if (error == ESHUTDOWN) {
    report.stopped = 1;
  } else if (error == tried[n].error) {
    report.errors |= 1u << n;
  } else {
    fprintf(stderr, "rank %d: %s gives '%s', not '%s'\n", job.rank, tried[n].what, strerror(error),
            strerror(tried[n].error));
    report.failed++;
  }
}

/* Checks that errors of the file system are reported and that nothing hangs. */
static void try_errors(hg_addr_t server)
{
  struct field field;
  move_in_t in = { UINT64_MAX, 0, HG_BULK_NULL };
  move_out_t out;
  make_field(&field, 100000, 4096, HG_BULK_READ_ONLY);
  in.data = field.bulk;
  expect(0, open_file(server, "missing", 0).error);
  expect(1, open_file(server, "../x", 1).error);
  call(server, job.calls.read, &in, &out);
  expect(2, out.error);
  const open_out_t full = open_file(server, FULL, 1);
  if (good("opening", FULL, full.error)) {
    in.file = full.file;
    call(server, job.calls.write, &in, &out);
    expect(3, out.error);
    good("closing", FULL, close_file(server, full.file));
  }
  free_field(&field);
}

/* Returns the name of a file, which is the same for writing and reading. */
static const char *name_of(size_t number)
{
  static char name[64];
  snprintf(name, sizeof name, "rank-%d-file-%zu", job.rank, number);
  return name;
}

/* Opens a file and starts to write or read it. Returns 0 if the file cannot be opened. */
static int begin(struct piece *piece, size_t number, int writing)
{
  const struct options *o = &job.options;
  const char *path = name_of(number);
  piece->number = number;
  /* Files are distributed round-robin over the I/O ranks. */
  piece->server = servers[((size_t)job.rank + number) % (size_t)job.server_count];
  const open_out_t opened = open_file(piece->server, path, writing);
  if (!good("opening", path, opened.error))
    return 0;
  piece->file = opened.file;
  if (writing) {
    make_field(&piece->field, o->size, o->segment, HG_BULK_READ_ONLY);
    fill(&piece->field, (uint64_t)(job.rank + 1) << 20 | number);
  } else {
    make_field(&piece->field, o->size, o->segment + o->segment / 2 + 1, HG_BULK_WRITE_ONLY);
  }
  move_in_t in = { piece->file, 0, piece->field.bulk };
  forward(&piece->flight, piece->server, writing ? job.calls.write : job.calls.read, &in, &piece->out);
  if (writing) { /* while the bytes move */
    digests[number] = digest(&piece->field);
    have[number] = 1;
  }
  return 1;
}

static void end(struct piece *piece, int writing)
{
  const size_t number = piece->number;
  const char *path = name_of(number), *what = writing ? "writing" : "reading";
  finish(&piece->flight);
  good("closing", path, close_file(piece->server, piece->file));
  if (!good(what, path, piece->out.error)) {
    have[number] = 0;
  } else if (piece->out.bytes != job.options.size) {
    fprintf(stderr, "rank %d: %s %s: %llu bytes of %zu\n", job.rank, what, path,
            (unsigned long long)piece->out.bytes, job.options.size);
    report.failed++;
    have[number] = 0;
  } else if (writing) {
    stat_in_t in = { path };
    stat_out_t out;
    report.written++;
    call(piece->server, job.calls.stat, &in, &out);
    if (good("looking at", path, out.error) && out.size != job.options.size) {
      fprintf(stderr, "rank %d: %s has %llu bytes\n", job.rank, path, (unsigned long long)out.size);
      report.failed++;
    }
  } else {
    report.compared++;
    if (digest(&piece->field) != digests[number] || !ghosts_are_whole(&piece->field)) {
      fprintf(stderr, "rank %d: %s is not as it was written\n", job.rank, path);
      report.differ++;
    }
  }
  free_field(&piece->field);
}

/* Writes or reads all files, several at a time. Returns the time in seconds. */
static double all_files(int writing)
{
  const size_t window = job.options.window;
  struct piece *pieces = calloc(window, sizeof *pieces);
  size_t begun = 0, over = 0;
  const double since = seconds();
  if (!pieces)
    give_up("the files under way", "no memory");
  for (size_t number = 0; number < job.options.files; number++) {
    report.stopped |= terminated;
    if (report.stopped)
      break;
    if (!writing && !have[number])
      continue; /* files that were not written are not read */
    if (begun - over == window)
      end(&pieces[over++ % window], writing);
    begun += (size_t)begin(&pieces[begun % window], number, writing);
  }
  while (over < begun)
    end(&pieces[over++ % window], writing);
  free(pieces);
  return seconds() - since;
}

void run_client(void)
{
  servers = calloc((size_t)job.server_count, sizeof *servers);
  digests = calloc(job.options.files, sizeof *digests);
  have = calloc(job.options.files, 1);
  if (!servers || !digests || !have)
    give_up("the client", "no memory");
  for (int i = 0; i < job.server_count; i++)
    MUST(HG_Addr_lookup2(job.hg, job.addresses[i], &servers[i]));
  for (int i = 0; i < job.server_count && !report.stopped; i++)
    try_errors(servers[i]);
  report.writing = all_files(1);
  report.reading = all_files(0);
  for (int i = 0; i < job.server_count; i++) {
    call(servers[i], job.calls.leave, NULL, NULL);
    MUST(HG_Addr_free(job.hg, servers[i]));
  }
  free(servers);
  free(digests);
  free(have);
}

void print_errors(void)
{
  const char *between = ": ";
  printf("errno values that came back");
  for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
    if (report.errors >> i & 1) {
      printf("%s%s", between, strerror(tried[i].error));
      between = ", ";
    }
  printf("\n");
}
