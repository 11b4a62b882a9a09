"""Collective calls with values that depend on the rank are errors on all ranks."""

import pytest

CALLS = {
    "a.fill(pt.rank())": "fill of an array with {rank}, \"plate\"",
    "a[:4].sum(); pt.full(4, 0.5 * pt.rank(), name='made')": "fill of an array with {half}, \"made\"",
    "pt.full_like(a, pt.rank() > 0, bool)": "fill of an array with the bytes [{rank}]",
    "pt.Counter(pt.rank())": "call Counter({rank})",
    "pt.WorkQueue(10 + pt.rank())": "call WorkQueue(1{rank} tasks)",
    "a.T.sum(axis=min(pt.rank(), 1))": "call add along axes ({rank},)",
    "import numpy; numpy.linalg.norm(a, 3 + pt.rank(), 0)": "call norm of order {order} along axes (0,)",
    "a.max(axis=0, initial=pt.rank() / 2)": "initial {half}",
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("ranks", [2, 3])
def test_values_that_depend_on_the_rank(jobs, call, ranks):
    ended = jobs.run(
        f"""
        import os, time
        import portolan as pt
        a = pt.zeros((4, 4), name="plate")
        try:
            {call}
        except pt.Error as error:
            print(f"refused on rank {{pt.rank()}}:", error)
        # The first rank that ends aborts the job.
        open(f"ended{{pt.rank()}}", "w").close()
        while not all(os.path.exists(f"ended{{n}}") for n in range(pt.size())):
            time.sleep(0.01)
        """,
        n=ranks,
    )
    assert ended.out.count("refused on rank") == ranks, ended.text
    # Two of the different calls are named, each with its ranks.
    named = [
        CALLS[call].format(rank=rank, half=f"{rank / 2:g}", order=3.0 + rank) in ended.out
        for rank in range(ranks)
    ]
    assert sum(named) >= 2 and "rank 0: " in ended.out, ended.text


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("node", ["", "1"])
def test_ranks_that_have_caught_a_mismatch_continue(jobs, ranks, node):
    ended = jobs.run(
        """
        import portolan as pt
        a = pt.ones(12, name="plate")
        kept = [a + n for n in range(3)]  # spare arrays later
        for turn in range(3):
            try:
                if pt.rank() == 1:
                    kept.pop()
                    pt.zeros(4 + turn)
                elif turn:
                    kept.pop()
                    a.sync()
                else:
                    pt.world.sum(1)
                print("not refused")
            except pt.Error as error:
                assert "collective calls differ" in str(error) and "resume()" in str(error), error
            try:
                a.sum()
            except pt.Error as error:
                assert "earlier mismatch" in str(error) and "rank 1: " in str(error), error
            pt.world.resume()
            assert a.sum() == 12 * 3**turn
            with a.access() as mine:
                mine.local[...] *= 3
            b = a + 1
            a.sync()
            assert b[3] == 3 ** (turn + 1) + 1
            assert pt.world.all_gather(pt.rank()) == list(range(pt.size()))
        try:
            pt.world.resume()
        except pt.Error as error:
            print("again:", error)
        """,
        n=ranks,
        **({"PORTOLAN_NODE_SIZE": node} if node else {}),
    )
    assert ended.code == 0 and "not refused" not in ended.out, ended.text
    assert ended.out.count("again: the collective calls of the group's ranks have not differed") == ranks
    assert "ARMCI" not in ended.text, ended.text


def test_a_mismatch_does_not_prevent_the_end(jobs):
    ended = jobs.run(
        """
        import portolan as pt
        try:
            pt.zeros(3 + pt.rank())
        except pt.Error:
            print("caught")
        """
    )
    assert ended.code == 0 and ended.out.count("caught") == 2, ended.text
    assert ended.err == "", ended.text


def test_different_subgroups_cannot_be_resumed(jobs):
    ended = jobs.run(
        """
        import portolan as pt
        for turn in range(2):
            try:
                pt.world.subgroup([2, 1, 0] if pt.rank() else [1, 0, 2])
            except pt.Error as error:
                print("caught", "creation of a group" in str(error))
        # The world itself has had no mismatch.
        try:
            pt.world.resume()
        except pt.Error as error:
            print("refused", error)
        assert pt.world.sum(1) == 3
        """,
        n=3,
    )
    assert ended.code == 0, ended.text
    assert ended.out.count("caught True") == 6 and ended.out.count("refused") == 3, ended.text


@pytest.mark.parametrize("known", ["", "world.subgroup([1, 0])"])
def test_the_world_and_its_ranks_in_another_order(jobs, known):
    # The world needs no new group, and neither does a group that is known.
    ended = jobs.run(
        f"""
        import portolan as pt
        world = pt.world
        {known}
        try:
            world.subgroup([0, 1] if pt.rank() else [1, 0])
        except pt.Error as error:
            text = str(error)
            print("caught", "of the ranks 0, 1" in text, "of the ranks 1, 0" in text)
        assert world.sum(1) == 2
        """
    )
    assert ended.code == 0 and ended.out.count("caught True True") == 2, ended.text
