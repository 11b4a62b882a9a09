"""Each rank writes into the row of the next rank, without the help of that rank.

    mpiexec -n 4 python hello.py
"""

# ANCHOR: program
import portolan as pt

me, ranks = pt.rank(), pt.size()
a = pt.zeros((ranks, 1000))  # divided among all ranks
a[(me + 1) % ranks] = 100 + me  # writes a row, wherever it is
a.sync()  # all rows are now complete and visible
got = a[me, 0]  # reads an element by its global index
print(f"rank {me} of {ranks}: {got:.0f} from rank {(me - 1) % ranks}, sum {a.sum():.0f}")
# ANCHOR_END: program

assert got == 100 + (me - 1) % ranks
assert a.sum() == 1000 * sum(range(100, 100 + ranks))
pt.barrier()
if me == 0:
    print("hello: correct")
