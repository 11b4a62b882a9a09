/*
 * io_forwarding_server.c - the I/O rank of io_forwarding.c.
 *
 * Reads and writes pass through a buffer of fixed size, which is divided into slots of one chunk
 * each. A chunk of a write goes from a free slot to a transfer that pulls it from the client, then
 * to a thread that writes it to the file; then its slot is free again. A chunk of a read goes in
 * the opposite direction. Calls receive slots in turn. One thread makes all calls of Mercury. The
 * file threads take chunks from one queue and put them into another.
 *
 * Invariant: each slot is free, used by one transfer, or used by one thread.
 */
#include "io_forwarding.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 2, MOST_FILES = 1024, PATH_SIZE = 4096 };

/* A call in progress. */
struct move {
  hg_handle_t handle;
  move_in_t in;
  int fd, write, error;
  size_t total, started, done;
  unsigned int flying;
  struct move *next;
};

/* A slot of the buffer, and the chunk in it. */
struct slot {
  hg_bulk_t bulk;
  char *room;
  struct move *move;
  size_t at, size;
  size_t filed; /* bytes that a thread has moved; error if not all */
  int error;
  struct slot *next;
};

/* A FIFO queue of slots. */
struct slots {
  struct slot *first, **last;
};

static struct {
  char root[PATH_SIZE - 256];
  int files[MOST_FILES]; /* descriptors, or 0 */
  struct slot *slots, *free;
  size_t slot_count;
  struct move *moves; /* in the order of their turns */
  int left, ending, ended;
  size_t calls, bytes, refused;
  double busy_since, next_line;
  size_t shown;
} io;

/* Shared with the file threads. */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t more;
  struct slots wanted, done;
  size_t with_threads; /* chunks that the threads have not returned */
  int stop;
  pthread_t threads[THREADS];
} work = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };

static void put(struct slots *list, struct slot *slot)
{
  slot->next = NULL;
  if (!list->first)
    list->last = &list->first;
  *list->last = slot;
  list->last = &slot->next;
}

static struct slot *take(struct slots *list)
{
  struct slot *slot = list->first;
  if (slot)
    list->first = slot->next;
  return slot;
}

/* ------------------------------------------------------------------------ file threads */

/* Moves a whole chunk, or up to the end of the file. */
static void file_chunk(struct slot *slot)
{
  const struct move *move = slot->move;
  slot->filed = 0;
  slot->error = 0;
  while (slot->filed < slot->size) {
    char *at = slot->room + slot->filed;
    const size_t left = slot->size - slot->filed;
    const off_t offset = (off_t)(move->in.offset + slot->at + slot->filed);
    const ssize_t n = move->write ? pwrite(move->fd, at, left, offset) : pread(move->fd, at, left, offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      slot->error = errno;
    if (n <= 0)
      return;
    slot->filed += (size_t)n;
  }
}

static void *file_thread(void *none)
{
  sigset_t all;
  sigfillset(&all); /* the serving thread handles signals */
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  pthread_mutex_lock(&work.lock);
  while (!work.stop) {
    struct slot *slot = take(&work.wanted);
    if (!slot) {
      pthread_cond_wait(&work.more, &work.lock);
      continue;
    }
    pthread_mutex_unlock(&work.lock);
    file_chunk(slot);
    pthread_mutex_lock(&work.lock);
    put(&work.done, slot);
  }
  pthread_mutex_unlock(&work.lock);
  return none;
}

static void give_to_threads(struct slot *slot)
{
  pthread_mutex_lock(&work.lock);
  put(&work.wanted, slot);
  work.with_threads++;
  pthread_cond_signal(&work.more);
  pthread_mutex_unlock(&work.lock);
}

/* Returns the next chunk that a thread has finished, or NULL. */
static struct slot *take_from_threads(void)
{
  pthread_mutex_lock(&work.lock);
  struct slot *slot = take(&work.done);
  if (slot)
    work.with_threads--;
  pthread_mutex_unlock(&work.lock);
  return slot;
}

/* ------------------------------------------------------------------- reads and writes */

static void release(struct slot *slot, int error)
{
  if (error && !slot->move->error)
    slot->move->error = error;
  slot->move->flying--;
  slot->next = io.free;
  io.free = slot;
}

static void complete(struct slot *slot)
{
  slot->move->done += slot->size;
  io.bytes += slot->size;
  release(slot, 0);
}

static hg_return_t moved(const struct hg_cb_info *info)
{
  struct slot *slot = info->arg;
  if (info->ret != HG_SUCCESS)
    release(slot, EIO);
  else if (slot->move->write)
    give_to_threads(slot);
  else
    complete(slot);
  return HG_SUCCESS;
}

/* Moves a chunk from or to the client. */
static void transfer(struct slot *slot)
{
  const struct move *move = slot->move;
  const hg_return_t code =
      HG_Bulk_transfer(job.context, moved, slot, move->write ? HG_BULK_PULL : HG_BULK_PUSH,
                          HG_Get_info(move->handle)->addr, move->in.data, slot->at, slot->bulk, 0,
                          slot->size, HG_OP_ID_IGNORE);
  if (code != HG_SUCCESS) {
    fprintf(stderr, "a transfer of %zu bytes is refused: %s\n", slot->size, HG_Error_to_string(code));
    release(slot, code == HG_PERMISSION ? EACCES : EIO);
  }
}

/* Starts the next step of a chunk that a thread has finished. */
static void filed(struct slot *slot)
{
  struct move *move = slot->move;
  if (slot->error) {
    release(slot, slot->error);
  } else if (move->write) {
    complete(slot);
  } else {
    if (slot->filed < slot->size && slot->at + slot->filed < move->total)
      move->total = slot->at + slot->filed; /* the file ends here */
    slot->size = slot->filed;
    if (slot->size > 0)
      transfer(slot);
    else
      complete(slot);
  }
}

/* Answers a call. A client that was started by hand may be gone, which ends nothing here. */
static void respond(hg_handle_t handle, void *out)
{
  const hg_return_t code = HG_Respond(handle, NULL, NULL, out);
  if (code != HG_SUCCESS && job.by_hand)
    fprintf(stderr, "a client is gone: %s\n", HG_Error_to_string(code));
  else
    MUST(code);
}

static void answer(struct move *move)
{
  move_out_t out = { move->error, move->done };
  io.calls++;
  respond(move->handle, &out);
  close(move->fd);
  MUST(HG_Free_input(move->handle, &move->in));
  MUST(HG_Destroy(move->handle));
  free(move);
}

/* Gives free slots to the calls in turn, and answers the calls that are done. */
static void advance(void)
{
  int again = 1;
  while (again) {
    again = 0;
    for (struct move **at = &io.moves; *at;) {
      struct move *move = *at;
      const int more = !move->error && move->started < move->total;
      if (!more && !move->flying) {
        *at = move->next;
        answer(move);
        continue;
      }
      if (more && io.free) {
        struct slot *slot = io.free;
        io.free = slot->next;
        slot->move = move;
        slot->at = move->started;
        slot->size = move->total - slot->at < job.options.chunk ? move->total - slot->at : job.options.chunk;
        move->started += slot->size;
        move->flying++;
        if (move->write)
          transfer(slot);
        else
          give_to_threads(slot);
        again = 1;
      }
      at = &move->next;
    }
  }
  if (!io.moves)
    io.busy_since = 0;
}

/* ---------------------------------------------------------------------------- handlers */

/* Answers a call and frees its handle. */
static hg_return_t finish(hg_handle_t handle, void *in, void *out)
{
  respond(handle, out);
  if (in)
    MUST(HG_Free_input(handle, in));
  return HG_Destroy(handle);
}

/* Returns 0 if a new call may start, or ESHUTDOWN after SIGTERM. */
static int32_t refused(void)
{
  if (!io.ending)
    return 0;
  io.refused++;
  return ESHUTDOWN;
}

/* Stores the path in the rank's directory, which it must not leave. Returns 0 or an errno value. */
static int32_t whole_path(const char *path, char whole[PATH_SIZE])
{
  if (!path || !*path || *path == '/')
    return EACCES;
  for (const char *part = path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
    if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || !part[2]))
      return EACCES;
  if (snprintf(whole, PATH_SIZE, "%s/%s", io.root, path) >= PATH_SIZE)
    return ENAMETOOLONG;
  return 0;
}

hg_return_t open_called(hg_handle_t handle)
{
  open_in_t in;
  open_out_t out = { 0, 0 };
  char path[PATH_SIZE];
  MUST(HG_Get_input(handle, &in));
  out.error = refused();
  if (!out.error)
    out.error = whole_path(in.path, path);
  while (!out.error && out.file < MOST_FILES && io.files[out.file])
    out.file++;
  if (!out.error && out.file == MOST_FILES)
    out.error = ENFILE;
  if (!out.error) {
    const int flags = in.create ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY;
    const int fd = open(path, flags | O_CLOEXEC, 0666);
    if (fd < 0)
      out.error = errno;
    else
      io.files[out.file] = fd;
  }
  return finish(handle, &in, &out);
}

static int descriptor(uint64_t file)
{
  return file < MOST_FILES && io.files[file] ? io.files[file] : -1;
}

static hg_return_t move_called(hg_handle_t handle, int write)
{
  struct move *move = calloc(1, sizeof *move), **last = &io.moves;
  move_out_t out = { 0, 0 };
  if (!move)
    return HG_NOMEM;
  MUST(HG_Get_input(handle, &move->in));
  out.error = refused();
  /* The call has its own descriptor, so that the client may close the file meanwhile. */
  if (!out.error && (move->fd = dup(descriptor(move->in.file))) < 0)
    out.error = errno;
  if (out.error) {
    const hg_return_t code = finish(handle, &move->in, &out);
    free(move);
    return code;
  }
  move->handle = handle;
  move->write = write;
  move->total = HG_Bulk_get_size(move->in.data);
  while (*last)
    last = &(*last)->next;
  *last = move;
  if (io.busy_since == 0)
    io.busy_since = seconds();
  return HG_SUCCESS;
}

hg_return_t write_called(hg_handle_t handle)
{
  return move_called(handle, 1);
}

hg_return_t read_called(hg_handle_t handle)
{
  return move_called(handle, 0);
}

hg_return_t stat_called(hg_handle_t handle)
{
  stat_in_t in;
  stat_out_t out = { 0, 0, 0 };
  struct stat found;
  char path[PATH_SIZE];
  MUST(HG_Get_input(handle, &in));
  out.error = refused();
  if (!out.error)
    out.error = whole_path(in.path, path);
  if (!out.error && stat(path, &found) != 0)
    out.error = errno;
  if (!out.error) {
    out.size = (uint64_t)found.st_size;
    out.mode = found.st_mode;
  }
  return finish(handle, &in, &out);
}

/* A client may close its files even after SIGTERM. */
hg_return_t close_called(hg_handle_t handle)
{
  close_in_t in;
  close_out_t out = { 0 };
  MUST(HG_Get_input(handle, &in));
  const int fd = descriptor(in.file);
  if (fd < 0) {
    out.error = EBADF;
  } else {
    io.files[in.file] = 0;
    if (close(fd) != 0)
      out.error = errno;
  }
  return finish(handle, &in, &out);
}

hg_return_t leave_called(hg_handle_t handle)
{
  io.left++;
  return finish(handle, NULL, NULL);
}

hg_return_t end_called(hg_handle_t handle)
{
  io.ended = 1;
  return finish(handle, NULL, NULL);
}

/* -------------------------------------------------------------------------------- loop */

void server_start(void)
{
  const char *tmp = getenv("TMPDIR");
  char full[PATH_SIZE];
  int length;
  if (job.options.dir)
    length = snprintf(io.root, sizeof io.root, "%s/io-%d", job.options.dir, job.rank);
  else
    length = snprintf(io.root, sizeof io.root, "%s/portolan-io-forwarding-XXXXXX", tmp ? tmp : "/tmp");
  if (length >= (int)sizeof io.root)
    give_up("the directory", "its path is too long");
  if (job.options.dir)
    mkdir(job.options.dir, 0777);
  if (job.options.dir ? mkdir(io.root, 0777) != 0 && errno != EEXIST : mkdtemp(io.root) == NULL)
    give_up(io.root, strerror(errno));
  snprintf(full, sizeof full, "%s/" FULL, io.root);
  unlink(full);
  if (symlink("/dev/full", full) != 0)
    give_up(full, strerror(errno));

  io.slot_count = job.options.buffer / job.options.chunk;
  io.slots = calloc(io.slot_count, sizeof *io.slots);
  if (!io.slots)
    give_up("the buffer", "no memory");
  for (size_t i = 0; i < io.slot_count; i++) {
    struct slot *slot = &io.slots[i];
    void *room;
    hg_size_t size = job.options.chunk, got;
    hg_uint32_t count;
    MUST(HG_Bulk_create(job.hg, 1, NULL, &size, HG_BULK_READWRITE, &slot->bulk));
    MUST(HG_Bulk_access(slot->bulk, 0, size, HG_BULK_READWRITE, 1, &room, &got, &count));
    slot->room = room;
    slot->next = io.free;
    io.free = slot;
  }
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&work.threads[i], NULL, file_thread, NULL) != 0)
      give_up("a file thread", strerror(errno));
  printf("I/O rank %d: pid %d, files in %s\n", job.rank, (int)getpid(), io.root);
  fflush(stdout);
}

/* Prints a progress line at intervals during long transfers. */
static void show(void)
{
  const double now = seconds();
  size_t left = 0, calls = 0;
  if (io.busy_since == 0 || now - io.busy_since < 1 || now < io.next_line || io.bytes == io.shown)
    return;
  for (const struct move *move = io.moves; move; move = move->next, calls++)
    left += move->done < move->total ? move->total - move->done : 0;
  fprintf(stderr, "I/O rank %d: %zu MiB moved, %zu MiB left of %zu calls under way\n", job.rank,
          io.bytes >> 20, left >> 20, calls);
  io.shown = io.bytes;
  io.next_line = now + 0.5 * job.server_count;
}

void server_step(unsigned int most)
{
  struct slot *slot;
  unsigned int ran = 0, n;
  int busy = 0;
  /* Threads report through a queue, so do not wait for the network while they work. */
  HG_Progress(job.context, work.with_threads ? 0 : io.moves ? 1 : most);
  do {
    n = 0;
    HG_Trigger(job.context, 0, 64, &n);
    ran += n;
  } while (n > 0);
  if (terminated && !io.ending) {
    size_t calls = 0;
    for (const struct move *move = io.moves; move; move = move->next)
      calls++;
    io.ending = 1;
    printf("I/O rank %d: SIGTERM; %zu calls are completed first\n", job.rank, calls);
    fflush(stdout);
  }
  while ((slot = take_from_threads()) != NULL) {
    filed(slot);
    busy = 1;
  }
  advance();
  show();
  if (work.with_threads && !ran && !busy) {
    const struct timespec moment = { 0, 50000 };
    nanosleep(&moment, NULL);
  }
}

int server_is_done(void)
{
  const int over = job.by_hand ? io.ended || io.ending : io.left == job.client_count;
  return over && !io.moves;
}

void server_stop(void)
{
  char path[PATH_SIZE];
  DIR *dir;
  const struct dirent *entry;

  pthread_mutex_lock(&work.lock);
  work.stop = 1;
  pthread_cond_broadcast(&work.more);
  pthread_mutex_unlock(&work.lock);
  for (int i = 0; i < THREADS; i++)
    pthread_join(work.threads[i], NULL);
  for (size_t i = 0; i < io.slot_count; i++)
    MUST(HG_Bulk_free(io.slots[i].bulk));
  free(io.slots);

  printf("I/O rank %d: %zu reads and writes of %zu bytes", job.rank, io.calls, io.bytes);
  if (io.refused)
    printf(", %zu further calls answered with ESHUTDOWN", io.refused);
  printf("\n");
  fflush(stdout);

  snprintf(path, sizeof path, "%s/" FULL, io.root);
  unlink(path);
  if (job.options.dir)
    return;
  dir = opendir(io.root);
  while (dir && (entry = readdir(dir)) != NULL)
    if (entry->d_name[0] != '.' && snprintf(path, sizeof path, "%s/%s", io.root, entry->d_name) < PATH_SIZE)
      unlink(path);
  if (dir)
    closedir(dir);
  if (rmdir(io.root) != 0)
    fprintf(stderr, "cannot clean up in %s: %s\n", io.root, strerror(errno));
}
