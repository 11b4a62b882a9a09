/* Reductions: every call, operation, type and scope of message.h. Also operator names that end
 * at an unreadable page. */
// TEST: armci
#define _GNU_SOURCE                 /* MAP_ANONYMOUS */
#include "scopes.h"

#include <sys/mman.h>

static const char *const ops[] = { "+", "*", "min", "max", "absmin", "absmax", "abs", "or",
                                   "&&", "land", "||", "lor", "&", "band", "|", "bor",
                                   "max  ", "abs ", "or " };

static long magnitude(long x) { return x < 0 ? -x : x; }

/* Returns the result of an operation over the ranks, in whole numbers. */
static long expected(const char *op, const int *ranks, int count, int i, int floating)
{
  long x = item(ranks[0], i);
  if (strncmp(op, "abs", 3) == 0 && strncmp(op, "absm", 4) != 0)
    return magnitude(item(me, i));
  const int logical = op[0] == '&' ? op[1] == '&' : op[0] == '|' ? op[1] == '|' : op[0] == 'l';
  if (strncmp(op, "absm", 4) == 0)
    x = magnitude(x);
  if (logical || (floating && strncmp(op, "or", 2) == 0))
    x = x != 0;
  for (int r = 1; r < count; r++) {
    const long y = item(ranks[r], i);
    if (op[0] == '+')                          x += y;
    else if (op[0] == '*')                     x *= y;
    else if (strncmp(op, "min", 3) == 0)       x = y < x ? y : x;
    else if (strncmp(op, "max", 3) == 0)       x = y > x ? y : x;
    else if (strncmp(op, "absmin", 6) == 0)    x = magnitude(y) < x ? magnitude(y) : x;
    else if (strncmp(op, "absmax", 6) == 0)    x = magnitude(y) > x ? magnitude(y) : x;
    else if (!strcmp(op, "&&") || !strcmp(op, "land"))  x = x && y;
    else if (!strcmp(op, "||") || !strcmp(op, "lor"))   x = x || y;
    else if (!strcmp(op, "&") || !strcmp(op, "band"))   x &= y;
    else if (floating)                         x = x || y != 0;
    else                                       x |= y;
  }
  return x;
}

enum call { GOP_SCOPE, GOP_TYPED, GROUP_SCOPE, GROUP_TYPED, CLUSTER, REDUCE_SCOPE, REDUCE, CALLS };

static void reduce(enum call call, int scope, items *x, int n, char *op, int type, ARMCI_Group *group)
{
#define TYPED(prefix, ...)                                               \
  switch (type) {                                                        \
  case ARMCI_INT:       prefix##igop(x->i, n, op __VA_ARGS__); break;    \
  case ARMCI_LONG:      prefix##lgop(x->l, n, op __VA_ARGS__); break;    \
  case ARMCI_LONG_LONG: prefix##llgop(x->q, n, op __VA_ARGS__); break;   \
  case ARMCI_FLOAT:     prefix##fgop(x->f, n, op __VA_ARGS__); break;    \
  default:              prefix##dgop(x->d, n, op __VA_ARGS__); break;    \
  }
#define COMMA_GROUP , group
#define NOTHING
  switch (call) {
  case GOP_SCOPE:    armci_msg_gop_scope(scope, x, n, op, type); break;
  case GOP_TYPED:    TYPED(armci_msg_, NOTHING) break;
  case GROUP_SCOPE:  armci_msg_group_gop_scope(scope, x, n, op, type, group); break;
  case GROUP_TYPED:  TYPED(armci_msg_group_, COMMA_GROUP) break;
  case CLUSTER:      TYPED(armci_msg_clus_, NOTHING) break;
  case REDUCE_SCOPE: armci_msg_reduce_scope(scope, x, n, op, type); break;
  default:           armci_msg_reduce(x, n, op, type); break;
  }
}

/* Runs a reduction whose operator name is the text at `name`, which begins with `op`. */
static void check_named(enum call call, int scope, char *name, const char *op, int type, ARMCI_Group *group)
{
  const int floating = type == ARMCI_FLOAT || type == ARMCI_DOUBLE;
  const int to_one = call == REDUCE || call == REDUCE_SCOPE;
  int *ranks = check_calloc(nproc * (long)sizeof(int));
  const int count = scope_ranks(scope, ranks);
  items x;

  for (int i = 0; i <= N; i++)
    store(&x, type, i, item(me, i));
  reduce(call, scope, &x, N, name, type, group);
  for (int i = 0; i <= N; i++) {
    const int mine = i < N && in_scope(scope) && (!to_one || ranks[0] == me);
    const long want = mine ? expected(op, ranks, count, i, floating) : item(me, i);
    CHECK(load(&x, type, i) == want, "call %d, scope %d, op '%s', type %d, item %d: %ld, expected %ld",
          (int)call, scope, op, type, i, load(&x, type, i), want);
  }
  free(ranks);
}

static void check_reduction(enum call call, int scope, const char *op, int type, ARMCI_Group *group)
{
  char text[16];
  strcpy(text, op);
  check_named(call, scope, text, op, type, group);
}

static void reductions(void)
{
  ARMCI_Group world;
  ARMCI_Group_get_world(&world);
  for (int o = 0; o < (int)(sizeof ops / sizeof ops[0]); o++)
    for (int type = ARMCI_INT; type <= ARMCI_DOUBLE; type++) {
      const int bits = strcmp(ops[o], "&") == 0 || strcmp(ops[o], "|") == 0 || ops[o][0] == 'b';
      if (bits && type >= ARMCI_FLOAT)
        continue;
      for (enum call call = GOP_SCOPE; call < CALLS; call++) {
        const int scoped = call == GOP_SCOPE || call == GROUP_SCOPE || call == REDUCE_SCOPE;
        for (int scope = SCOPE_ALL; scope <= (scoped ? SCOPE_MASTERS : SCOPE_ALL); scope++)
          check_reduction(call, call == CLUSTER ? SCOPE_NODE : scope, ops[o], type, &world);
      }
    }

  enum { LARGE = 100000 };
  double *x = check_calloc(LARGE * 8L);               /* longer than one message */
  for (int i = 0; i < LARGE; i++)
    x[i] = i + me;
  armci_msg_dgop(x, LARGE, (char[]){ "+" });
  for (int i = 0; i < LARGE; i++)
    CHECK(x[i] == (double)nproc * i + nproc * (nproc - 1) / 2, "item %d of a long sum: %g", i, x[i]);
  armci_msg_dgop(NULL, 0, (char[]){ "+" });
  free(x);
}

/* Places an operator's name so that its last character is the last byte of a page and the next
 * page is unreadable, as if the program passed a single char. */
static char *at_end_of_page(const char *op)
{
  static char *pages;
  const long page = sysconf(_SC_PAGESIZE), len = (long)strlen(op);
  if (pages == NULL) {
    pages = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED, "no pages");
    CHECK(mprotect(pages + page, (size_t)page, PROT_NONE) == 0, "a page cannot be protected");
  }
  return memcpy(pages + page - len, op, (size_t)len);
}

/* No call reads beyond the character that selects the operator, and further characters are
 * ignored. */
static void names(void)
{
  static const char *const exact[] = { "+", "*", "max", "min", "absmax", "absmin", "or", "&&", "||", "land", "lor" };
  static const char *const longer[] = { "+\001", "*?", "maximum", "minx", "absmaximal", "absminimal", "order", "absolute" };
  ARMCI_Group world;
  ARMCI_Group_get_world(&world);
  for (int type = ARMCI_INT; type <= ARMCI_DOUBLE; type++)
    for (enum call call = GOP_SCOPE; call < CALLS; call++) {
      const int scope = call == CLUSTER ? SCOPE_NODE : SCOPE_ALL;
      for (int o = 0; o < (int)(sizeof exact / sizeof exact[0]); o++)
        check_named(call, scope, at_end_of_page(exact[o]), exact[o], type, &world);
      for (int o = 0; o < (int)(sizeof longer / sizeof longer[0]); o++) {
        char text[16];
        strcpy(text, longer[o]);
        check_named(call, scope, text, longer[o], type, &world);
      }
    }

  for (int least = 0; least <= 1; least++) {
    int record[4];
    for (int i = 0; i < 4; i++)
      record[i] = 100 * me + i;
    armci_msg_sel(record, sizeof record, at_end_of_page(least ? "min" : "max"), ARMCI_INT, 1);
    CHECK_EQ(record[3], 100 * (least ? 0 : nproc - 1) + 3);
    armci_msg_sel_scope(SCOPE_NODE, record, sizeof record, at_end_of_page(least ? "min" : "max"), ARMCI_INT, 0);
  }
}

int main(int argc, char **argv)
{
  check_start("reductions", &argc, &argv);
  learn_scopes();
  reductions();
  names();
  forget_scopes();
  return check_end();
}
