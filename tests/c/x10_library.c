/* Asyncs of functions in a library that each place loads at a different address, with or without
 * other libraries, and of functions in the program.
 *
 * An async that the target does not have must end the job: with "library", only place 0 has
 * loaded the library; with "index", only place 0 has registered the function.
 *
 * Compiled with -DLIBRARY, this file is the library; its file name is the program's with ".so"
 * added.
 */
// TEST: x10
// TEST: abort n=2 -- {index,library}
#ifdef LIBRARY

#include <x10/x10lib.h>

long library_sum;
static void hidden(async_arg_t *args, int n) { library_sum += 1000 * n * args[0]; }
void library_add(async_arg_t *args, int n);
void library_add(async_arg_t *args, int n) { library_sum += n * args[0]; }
async_func_t *library_hidden(void);
async_func_t *library_hidden(void) { return hidden; }

#else

#define _DEFAULT_SOURCE
#include "x10_check.h"

#include <dlfcn.h>
#include <sys/mman.h>

static long program_sum;
static void add(async_arg_t *args, int n) { program_sum += n * args[0]; }

static void *found(void *library, const char *name)
{
  void *symbol = dlsym(library, name);
  CHECK(symbol != NULL, "%s: %s", name, dlerror());
  return symbol;
}

static void *opened(const char *program)
{
  char path[4096];
  void *library;

  snprintf(path, sizeof path, "%s.so", program);
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(library != NULL, "%s", dlerror());
  return library;
}

static int unknown(const char *which, const char *program)
{
  async_func_t *f = (async_func_t *)(size_t)7;

  if (me == 0) {
    if (strcmp(which, "library") == 0)
      *(void **)&f = found(opened(program), "library_add");
    else
      GOOD(x10_register((void *)add, 7));
    printf("EXPECT-ABORT %s\n", which);
    check_linger();
    GOOD(x10_asyncSpawnInline(1, 0, f));
  }
  GOOD(x10_gfence());
  printf("FAIL %s went on\n", which);
  return 0;
}

int main(int argc, char **argv)
{
  const long room = (me + 3) * 1000000L;
  void *library, **table;
  long *sum;
  async_func_t *library_add, *hidden, *(*hidden_of)(void);

  x_start("x10_library", &argc, &argv);
  if (argc > 1)
    return unknown(argv[1], argv[0]);
  /* Loads another library at odd places, so that the addresses differ. */
  if (me % 2)
    CHECK(dlopen("libresolv.so.2", RTLD_NOW) || dlopen("libm.so.6", RTLD_NOW), "%s", dlerror());
  CHECK(mmap(NULL, (size_t)(room * (me + 1)), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
        MAP_FAILED, "no room");
  library = opened(argv[0]);
  sum = found(library, "library_sum");
  *(void **)&library_add = found(library, "library_add");
  *(void **)&hidden_of = found(library, "library_hidden");
  hidden = hidden_of();
  table = x_addresses((void *)library_add);
  if (nproc > 1)
    CHECK(table[0] != table[1], "the library lies at %p at two places: nothing is shown", table[0]);
  GOOD(x10_gfence());

  for (int p = 0; p < nproc; p++) {
    GOOD(x10_asyncSpawnInline(p, 1, library_add, me + 1));
    GOOD(x10_asyncSpawnInline(p, 2, hidden, 1, 0));
    GOOD(x10_asyncSpawnInline(p, 1, add, me + 1));
    for (int i = 0; i < 100; i++) {
      GOOD(x10_asyncSpawnInlineAgg(p, 1, library_add, 1, 1000000));
      GOOD(x10_asyncSpawnInlineAgg(p, 1, add, 1, 1000000));
    }
  }
  GOOD(x10_gfence());
  CHECK_EQ(*sum, nproc * (nproc + 1) / 2 + 2000L * nproc + 100000000L * nproc);
  CHECK_EQ(program_sum, nproc * (nproc + 1) / 2 + 100000000L * nproc);
  free(table);
  return x_end();
}

#endif
