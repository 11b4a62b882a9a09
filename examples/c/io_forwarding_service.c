/*
 * io_forwarding_service.c - servers and clients of io_forwarding.c that are started by hand, without
 * MPI. They find each other by a file with the server's address.
 */
#include "io_forwarding.h"

#include <stdio.h>
#include <unistd.h>

/* Writes the own address into the file. A client never reads half an address. */
static void publish(const char *file)
{
  char text[ADDRESS_SIZE], new[4096];
  FILE *out;
  own_address(text);
  snprintf(new, sizeof new, "%s.new", file);
  out = fopen(new, "w");
  if (!out || fputs(text, out) < 0 || fclose(out) != 0 || rename(new, file) != 0)
    give_up(file, "cannot be written");
}

/* Reads the server's address, and opens the network in it. */
static void connect_to(const char *file)
{
  static char address[1][ADDRESS_SIZE];
  char network[ADDRESS_SIZE];
  FILE *in = fopen(file, "r");
  if (!in || !fgets(address[0], ADDRESS_SIZE, in))
    give_up(file, "cannot be read; start the server first");
  fclose(in);
  snprintf(network, sizeof network, "%.*s", (int)strcspn(address[0], ":"), address[0]);
  open_network(network, 0);
  job.addresses = address;
}

static int serve(void)
{
  open_network(job.options.network, 1);
  server_start();
  publish(job.options.address);
  while (!server_is_done())
    server_step(1000);
  remove(job.options.address);
  server_stop();
  close_network();
  return terminated ? 3 : 0;
}

static int client(void)
{
  /* The number of the process makes the names of the files unique. */
  job.rank = (int)getpid();
  connect_to(job.options.address);
  run_client();
  close_network();
  print_errors();
  if (report.differ || report.failed)
    printf("io_forwarding: %lld digests differ, %lld failures\n", report.differ, report.failed);
  else if (report.stopped || terminated)
    printf("io_forwarding: ended early: %lld of %zu files written\n", report.written, job.options.files);
  else
    printf("io_forwarding: all %lld digests agree\n", report.compared);
  return report.differ || report.failed ? 1 : report.stopped || terminated ? 3 : 0;
}

static hg_return_t ended(const struct hg_cb_info *info)
{
  *(int *)info->arg = 1;
  return info->ret;
}

static int end(void)
{
  hg_addr_t server;
  hg_handle_t handle;
  int done = 0;
  unsigned int ran;
  connect_to(job.options.address);
  MUST(HG_Addr_lookup2(job.hg, job.addresses[0], &server));
  MUST(HG_Create(job.context, server, job.calls.end, &handle));
  MUST(HG_Forward(handle, ended, &done, NULL));
  while (!done) {
    HG_Progress(job.context, 1000);
    HG_Trigger(job.context, 0, 1, &ran);
  }
  MUST(HG_Destroy(handle));
  MUST(HG_Addr_free(job.hg, server));
  close_network();
  return 0;
}

int run_by_hand(int argc, char **argv)
{
  const struct {
    const char *name;
    int (*run)(void);
  } roles[] = { { "serve", serve }, { "client", client }, { "end", end } };
  job.by_hand = 1;
  job.ranks = 2; /* the client does not serve itself */
  job.server_count = 1;
  int code = parse_options(argc, argv);
  if (code >= 0)
    return code;
  for (int i = 0; i < 3; i++)
    if (strcmp(argv[0], roles[i].name) == 0 && job.options.address)
      return roles[i].run();
  fprintf(stderr, "io_forwarding: %s needs --address FILE, see --help\n", argv[0]);
  return 2;
}
