/*
 * io_forwarding.h - what compute ranks and I/O ranks of io_forwarding.c share: the calls
 * that travel, the options, the signal.
 */
#ifndef IO_FORWARDING_H
#define IO_FORWARDING_H

#include <mercury.h>
#include <mercury_bulk.h>
#include <mercury_macros.h>
#include <portolan.h>
#include <signal.h>

/* ------------------------------------------------------------- the calls that travel */

/* Each output begins with 0 or the errno value of the I/O rank's system. */
MERCURY_GEN_PROC(open_in_t, ((hg_const_string_t)(path)) ((hg_bool_t)(create)))
MERCURY_GEN_PROC(open_out_t, ((int32_t)(error)) ((uint64_t)(file)))
MERCURY_GEN_PROC(move_in_t, ((uint64_t)(file)) ((uint64_t)(offset)) ((hg_bulk_t)(data)))
MERCURY_GEN_PROC(move_out_t, ((int32_t)(error)) ((uint64_t)(bytes)))
MERCURY_GEN_PROC(stat_in_t, ((hg_const_string_t)(path)))
MERCURY_GEN_PROC(stat_out_t, ((int32_t)(error)) ((uint64_t)(size)) ((uint32_t)(mode)))
MERCURY_GEN_PROC(close_in_t, ((uint64_t)(file)))
MERCURY_GEN_PROC(close_out_t, ((int32_t)(error)))

struct calls {
  hg_id_t open, write, read, stat, close;
  hg_id_t leave; /* the client has no further calls */
};

/* In the directory of each I/O rank there is a file on a device that is full. */
#define FULL "full"

/* -------------------------------------------------------------------------- the job */

struct options {
  const char *dir; /* NULL for temporary ones */
  size_t size, files, io_ranks, segment, chunk, buffer, window;
};

struct job {
  int rank, ranks;
  int *servers, server_count;
  int *clients, client_count;
  struct options options;
  hg_class_t *hg;
  hg_context_t *context;
  struct calls calls;
};

extern struct job job;

/* What a client has done. */
struct report {
  long long written, compared, differ, failed, stopped;
  double writing, reading;  /* seconds */
  unsigned int errors;      /* which of the errno values tried came back, as bits */
};

extern struct report report;

/* SIGTERM has come. */
extern volatile sig_atomic_t terminated;

/* Ends the job where a call of Mercury has failed. */
void must(hg_return_t code, const char *call);
#define MUST(call) must((call), #call)

/* Ends the job with a text. */
void give_up(const char *what, const char *why);

double seconds(void);

/* ------------------------------------------------------------------ the compute rank */

/* All of its work; at the end it has left the I/O ranks. */
void run_client(void);

/* The errno values that came back, as they should. */
void print_errors(void);

/* ---------------------------------------------------------------------- the I/O rank */

void server_start(void);

/* Serves; waits for at most so many milliseconds until there is something. */
void server_step(unsigned int most);

/* Whether all clients have left. */
int server_is_done(void);

void server_stop(void);

hg_return_t open_called(hg_handle_t handle);
hg_return_t write_called(hg_handle_t handle);
hg_return_t read_called(hg_handle_t handle);
hg_return_t stat_called(hg_handle_t handle);
hg_return_t close_called(hg_handle_t handle);
hg_return_t leave_called(hg_handle_t handle);

#endif /* IO_FORWARDING_H */
