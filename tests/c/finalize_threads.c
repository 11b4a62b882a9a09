/* When the program calls MPI_Finalize while the library runs, the library has ended its threads
 * before MPI begins to end: MPICH assumes a single thread from then on. */
// TEST: n=2
// TEST: n=4 node-size=2
#include "check.h"
#include <dirent.h>

static int called;

/* Runs within MPI_Finalize, before the library's own callback. */
static int on_finalize(MPI_Comm comm, int key, void *value, void *extra)
{
  (void)comm, (void)key, (void)value, (void)extra;
  DIR *tasks = opendir("/proc/self/task");
  struct dirent *task;
  CHECK(tasks != NULL, "/proc/self/task cannot be read");
  while ((task = readdir(tasks)) != NULL) {
    char path[300], name[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    FILE *comm_file = task->d_name[0] == '.' ? NULL : fopen(path, "r");
    if (comm_file == NULL)
      continue;
    if (fgets(name, sizeof name, comm_file) == NULL)
      name[0] = 0;
    fclose(comm_file);
    CHECK(strncmp(name, "portolan-progre", 15) != 0, "the progress thread runs in MPI_Finalize");
  }
  closedir(tasks);
  called = 1;
  return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
  int key;
  check_start("finalize_threads", &argc, &argv);
  CHECK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &key, NULL) == MPI_SUCCESS, "key");
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  CHECK(called, "the callback did not run");
  return check_pass();
}
