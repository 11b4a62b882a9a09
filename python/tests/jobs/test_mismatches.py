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
