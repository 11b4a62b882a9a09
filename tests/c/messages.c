/* Messages, broadcasts, trees, selection, address exchange: every call of message.h except the
 * reductions, in every scope. */
// TEST: armci
// TEST: n=3
#include "scopes.h"
#include <math.h>

static void broadcasts(void)
{
  static const int lengths[] = { 0, 1, 13, 4096, 300001 };
  int *ranks = check_calloc(nproc * (long)sizeof(int));
  unsigned char *buffer = check_calloc(300001), *want = check_calloc(300001);
  ARMCI_Group world;

  ARMCI_Group_get_world(&world);
  for (int l = 0; l < 5; l++)
    for (int how = 0; how < 6; how++)
      for (int scope = SCOPE_ALL; scope <= SCOPE_MASTERS; scope++) {
        const int which = how < 2 ? SCOPE_ALL : how == 4 ? SCOPE_NODE : how == 5 ? SCOPE_ALL : scope;
        const int len = lengths[l], count = scope_ranks(which, ranks);
        const int root = how >= 4 ? ranks[0] : ranks[(l + how) % count];
        check_fill(buffer, me, len);
        check_fill(want, in_scope(which) ? root : me, len);
        if (how == 0)      armci_msg_bcast(buffer, len, root);
        else if (how == 1) armci_msg_brdcst(buffer, len, root);
        else if (how == 2) armci_msg_bcast_scope(which, buffer, len, root);
        else if (how == 3) armci_msg_group_bcast_scope(which, buffer, len, root, &world);
        else if (how == 4) armci_msg_clus_brdcst(buffer, len);
        else               armci_grp_clus_brdcst(buffer, len, 0, nproc, &world);
        CHECK_BYTES(buffer, want, len, "broadcast %d, scope %d, %d bytes", how, which, len);
      }

  const int half = (nproc + 1) / 2, first = me < half ? 0 : half;
  long value = me;                  /* two clusters of consecutive members */
  armci_grp_clus_brdcst(&value, sizeof value, first, first ? nproc - half : half, &world);
  CHECK_EQ(value, first);
  free(buffer);
  free(want);
  free(ranks);
}

static void trees(void)
{
  int *ranks = check_calloc(nproc * (long)sizeof(int));
  for (int scope = SCOPE_ALL; scope <= SCOPE_MASTERS; scope++) {
    int root = -9, up = -9, left = -9, right = -9, place = -1;
    const int count = scope_ranks(scope, ranks);
    armci_msg_bintree(scope, &root, &up, &left, &right);
    for (int i = 0; i < count; i++)
      if (ranks[i] == me)
        place = i;
    CHECK_EQ(root, ranks[0]);
    CHECK_EQ(up, place > 0 ? ranks[(place - 1) / 2] : -1);
    CHECK_EQ(left, place >= 0 && 2 * place + 1 < count ? ranks[2 * place + 1] : -1);
    CHECK_EQ(right, place >= 0 && 2 * place + 2 < count ? ranks[2 * place + 2] : -1);
  }
  free(ranks);
}

/* The key of a rank. Pairs of ranks have equal keys: the lower rank's record must win. */
static double key(int rank) { return rank / 2 % 2 - 0.5; }

static void selection(void)
{
  typedef struct { double key; int owner; char note[21]; } record;
  int *ranks = check_calloc(nproc * (long)sizeof(int));

  for (int max = 0; max < 2; max++)
    for (int skip = -1; skip < 3; skip++)             /* the rank that does not contribute */
      for (int scope = SCOPE_ALL; scope <= SCOPE_MASTERS; scope++) {
        const int count = scope_ranks(scope, ranks);
        int winner = -1;
        record r = { key(me), me, "" };
        snprintf(r.note, sizeof r.note, "from %d", me);
        for (int i = 0; i < count; i++)
          if (ranks[i] % 3 != skip && (winner < 0 || (max ? key(ranks[i]) > key(winner)
                                                          : key(ranks[i]) < key(winner))))
            winner = ranks[i];
        if (scope == SCOPE_ALL)
          armci_msg_sel(&r, sizeof r, max ? (char[]){ "max" } : (char[]){ "min" }, ARMCI_DOUBLE,
                        me % 3 != skip);
        else
          armci_msg_sel_scope(scope, &r, sizeof r, max ? (char[]){ "max" } : (char[]){ "min" },
                              ARMCI_DOUBLE, me % 3 != skip);
        if (winner < 0 || !in_scope(scope))
          winner = me;
        char note[21];
        snprintf(note, sizeof note, "from %d", winner);
        CHECK_EQ(r.owner, winner);
        CHECK(r.key == key(winner) && strcmp(r.note, note) == 0,
              "record %g '%s' of rank %d", r.key, r.note, winner);
      }
  for (int type = ARMCI_INT; type <= ARMCI_DOUBLE; type++) {
    items x;
    memset(&x, 0, sizeof x);
    store(&x, type, 0, -me);        /* the minimum is on the last rank, with its payload */
    store(&x, type, 1, 100 + me);
    armci_msg_sel(&x, sizeof x, (char[]){ "min" }, type, 1);
    CHECK_EQ(load(&x, type, 0), -(nproc - 1));
    CHECK_EQ(load(&x, type, 1), 100 + nproc - 1);
  }
  for (int max = 0; max < 2; max++)                   /* numbers win over NaN, wherever it is */
    for (int number = 0; number < nproc; number++) {
      double both[2] = { me == number ? 7 : NAN, me };
      float one[2] = { me == number ? 7 : NAN, me };
      armci_msg_sel(both, sizeof both, max ? (char[]){ "max" } : (char[]){ "min" }, ARMCI_DOUBLE, 1);
      armci_msg_sel(one, sizeof one, max ? (char[]){ "max" } : (char[]){ "min" }, ARMCI_FLOAT, 1);
      CHECK_EQ(both[1], number);
      CHECK_EQ(one[1], number);
    }
  free(ranks);
}

static unsigned long address_of(int i)    /* entry i of the table; the top bit is set */
{
  return 0xf000000000000001UL + 4096UL * (unsigned long)i;
}

static void addresses(void)
{
  ARMCI_Group world;
  void **table = check_calloc(3 * nproc * (long)sizeof(void *));
  ARMCI_Group_get_world(&world);
  for (int group = 0; group < 2; group++) {
    memset(table, 0, 3 * (size_t)nproc * sizeof(void *));
    for (int i = 3 * me; i < 3 * me + 3; i++)
      table[i] = (void *)address_of(i);
    if (group)
      armci_exchange_address_grp(table, 3 * nproc, &world);
    else
      armci_exchange_address(table, 3 * nproc);
    for (int i = 0; i < 3 * nproc; i++)
      CHECK((unsigned long)table[i] == address_of(i), "entry %d is %p", i, table[i]);
  }
  free(table);
}

static void point_to_point(void)
{
  static const int lengths[] = { 0, 1, 100, 5000, 200000 };
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  unsigned char *out = check_calloc(200000), *in = check_calloc(200001), *want = check_calloc(200001);

  for (int l = 0; l < 5; l++)
    for (int tag = 0; tag < 3; tag++) {
      const int len = lengths[l];
      int got = -1;
      check_fill(out, me + tag, len);
      memset(in, 3, 200001);
      memset(want, 3, 200001);
      check_fill(want, left + tag, len);
      if (me % 2 == 0 || nproc == 1)
        armci_msg_snd(tag, out, len, right);
      armci_msg_rcv(tag, in, 200000, tag == 2 ? NULL : &got, left);
      if (me % 2 == 1)
        armci_msg_snd(tag, out, len, right);
      if (tag != 2)
        CHECK_EQ(got, len);
      CHECK_BYTES(in, want, 200001, "message of %d bytes, tag %d", len, tag);
    }

  if (me > 0) {                     /* tags select messages; rcvany returns the sender */
    int second[2] = { me, 2 };
    armci_msg_snd(11, &me, sizeof me, 0);
    armci_msg_snd(12, second, sizeof second, 0);
  } else {
    int seen = 0;
    for (int i = 1; i < nproc; i++) {
      int pair[2], got;
      armci_msg_rcv(12, pair, sizeof pair, &got, i);
      CHECK_EQ(got, sizeof pair);
      CHECK_EQ(pair[0], i);
    }
    for (int i = 1; i < nproc; i++) {
      int value[4] = { -1, -1, -1, -1 }, got = -1;
      const int from = armci_msg_rcvany(11, value, sizeof value, &got);
      CHECK_EQ(got, sizeof(int));
      CHECK_EQ(value[0], from);
      CHECK_EQ(value[1], -1);
      seen |= 1 << from;
    }
    CHECK_EQ(seen, (1 << nproc) - 2);
  }
  free(out);
  free(in);
  free(want);
}

int main(int argc, char **argv)
{
  check_start("messages", &argc, &argv);
  CHECK_EQ(armci_msg_me(), me);
  CHECK_EQ(armci_msg_nproc(), nproc);
  const double start = armci_timer();
  learn_scopes();
  broadcasts();
  trees();
  selection();
  addresses();
  point_to_point();
  for (int i = 0; i < 50; i++)
    armci_msg_barrier();
  CHECK(armci_timer() >= start && armci_timer() - start < 1000, "the timer went from %g to %g", start,
        armci_timer());
  forget_scopes();
  return check_end();
}
