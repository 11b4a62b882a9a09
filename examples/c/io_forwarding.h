/*
 * io_forwarding.h - what the compute ranks and I/O ranks of io_forwarding.c share: the remote
 * calls, the options, the signal.
 */
#ifndef IO_FORWARDING_H
#define IO_FORWARDING_H

#include <mercury.h>
#include <mercury_bulk.h>
#include <mercury_macros.h>
#include <mercury_proc_string.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ remote calls */

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
  hg_id_t leave; /* the client makes no further calls */
  hg_id_t end;   /* ends a server that was started by hand */
};

/* Name of a file in the directory of each I/O rank that is on a full device. */
#define FULL "full"

/* ------------------------------------------------------------------------------ job */

struct options {
  const char *dir; /* NULL for temporary directories */
  const char *network, *address; /* of a server that is started by hand: its network, its address file */
  size_t size, files, io_ranks, segment, chunk, buffer, window;
};

enum { ADDRESS_SIZE = 512 };

struct job {
  int by_hand; /* this process was started by hand, and does not use MPI */
  int rank, ranks;
  int *servers, server_count;
  char (*addresses)[ADDRESS_SIZE]; /* of the I/O ranks, or of the server */
  int *clients, client_count;
  struct options options;
  hg_class_t *hg;
  hg_context_t *context;
  struct calls calls;
};

extern struct job job;

/* Results of a client. */
struct report {
  long long written, compared, differ, failed, stopped;
  double writing, reading;  /* seconds */
  unsigned int errors;      /* bit n: the expected errno value of test n was returned */
};

extern struct report report;

/* Whether SIGTERM has arrived. */
extern volatile sig_atomic_t terminated;

/* Parses the options after the first word. Returns an exit code, or -1 to continue. */
int parse_options(int argc, char **argv);

/* Opens the network and registers the calls. The calls of a server run in server_step. */
void open_network(const char *info, int serving);
void close_network(void);

/* Writes the own address as text. */
void own_address(char text[ADDRESS_SIZE]);

/* Runs a server or a client that was started by hand. The first word says which. Returns the exit
 * code. */
int run_by_hand(int argc, char **argv);

/* Ends the job if a Mercury call failed. */
void must(hg_return_t code, const char *call);
#define MUST(call) must((call), #call)

/* Ends the job with a message. */
void give_up(const char *what, const char *why);

double seconds(void);

/* ---------------------------------------------------------------------- compute rank */

/* Does all work of the client, then announces to the I/O ranks that it leaves. */
void run_client(void);

/* Prints the errno values that were returned as expected. */
void print_errors(void);

/* -------------------------------------------------------------------------- I/O rank */

void server_start(void);

/* Serves calls. Waits for up to most milliseconds if there is nothing to do. */
void server_step(unsigned int most);

/* Returns whether all clients have left, or one of them has ended a server started by hand. */
int server_is_done(void);

void server_stop(void);

hg_return_t open_called(hg_handle_t handle);
hg_return_t write_called(hg_handle_t handle);
hg_return_t read_called(hg_handle_t handle);
hg_return_t stat_called(hg_handle_t handle);
hg_return_t close_called(hg_handle_t handle);
hg_return_t leave_called(hg_handle_t handle);
hg_return_t end_called(hg_handle_t handle);

#endif /* IO_FORWARDING_H */
