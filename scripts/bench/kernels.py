"""The kernels that compare one-sided libraries: how to run them, and their tables and plot."""

import math
import shutil
import statistics
import subprocess
import sys

from .driver import Experiment, Run, flag, option
from .values import COLOURS, Drawing, hundredths, markdown, number, table

MPIS = {"mpich": "MPICH", "openmpi": "Open MPI"}
SIDES = {"mpi": "messages", "window": "windows", "shmem": "OpenSHMEM"}
NAMES = {**SIDES, "armci": "ARMCI-MPI"}
ORDER = [
    "nstream", "stencil-r1", "stencil-r4", "transpose", "sync-p2p", "sync-hops", "sparse",
    "histogram", "gather", "sparse-transpose", "toposort", "triangles", "isx", "random-access",
    "ptrans", "uts",
]
# The places, with their title and the arguments of Run.
PLACES = {
    "node": ("2 ranks on a node", dict(ranks=2, bind="core")),
    "node4": ("4 ranks on a node", dict(ranks=4, bind="core")),
    "node8": ("8 ranks on a node", dict(ranks=8, bind="core")),
    "node16": ("16 ranks on a node", dict(ranks=16, bind="core")),
    "virtual": ("4 ranks in virtual nodes of 2", dict(ranks=4, bind="none", env={"PORTOLAN_NODE_SIZE": "2"})),
    "hosts1": ("1 host", dict(hosts="1")),
    "hosts2": ("2 hosts, TCP", dict(hosts="1,1")),
    "hosts4": ("4 hosts, TCP", dict(hosts="1,1,1,1")),
    "hosts2x2": ("2 hosts with 2 ranks each, TCP", dict(hosts="2,2")),
}
HOSTS = [place for place in PLACES if place.startswith("hosts")]
# The kernels in C: the program, its size (as in benches/kernels), and its arguments after the repetitions.
IN_C = {
    "nstream": ("nstream", 4194304), "stencil-r1": ("stencil", 2000), "stencil-r4": ("stencil", 2000, "4"),
    "transpose": ("transpose", 2048), "sync-p2p": ("sync_p2p", 1000), "sync-hops": ("sync_p2p", 50, "hops"),
    "sparse": ("sparse", 9), "uts": ("uts", 9),
}
SHMEM = {
    "prk": ["stencil-r1", "stencil-r4", "transpose", "sync-p2p", "sync-hops", "sparse", "ptrans", "isx"],
    "bale": ["histogram", "gather", "triangles", "random-access"],
}


def configurations(text):
    places = [place for word in text.split(",") for place in (HOSTS if word == "hosts" else [word])]
    if not set(places) <= set(PLACES):
        raise ValueError
    return places


class Kernels(Experiment):
    """the kernels of the field, compared with MPI, ARMCI-MPI and OpenSHMEM

    Runs the kernels that compare one-sided libraries (benches/kernels, tests/c/kernel_*.c) on Portolan
    and on its peers: MPI's messages, MPI's windows, Debian's ARMCI, and with Open MPI also its OpenSHMEM
    (benches/c/kernels_shmem_*.c). A peer that is not installed is named and left out. Each side is a
    launch of its own, so that no peer pays for Portolan; the sides alternate in every round. Prints the
    median rates, and the median over the rounds of the best peer's rate divided by Portolan's: below 1,
    Portolan is faster. Direct versions, which make one operation for each item, are compared with
    direct versions, and all others with all others. The exit code is 0 if all results are right.

    The places are node (2 ranks), node4, node8 and node16 (as many ranks), all bound to cores; virtual
    (4 ranks in virtual nodes of 2); hosts1, hosts2 and hosts4 (one rank on each of 1, 2 or 4 hosts of
    namespaces, over TCP); hosts2x2 (2 ranks on each of 2 hosts); and hosts, which is all four.
    Between hosts there are no direct versions, and ratios are also given of the processor time per
    rank, because all hosts share the cores of this machine. All values are kept in
    target/bench/kernels/raw.tsv; --rounds 0 measures nothing, and prints and draws earlier values.
    """

    together = True
    rounds = 7
    options = {
        "--config": option("C,...", "places, see above", "node", configurations),
        "--only": option("KERNEL,...", "only kernels whose names begin with one of these words"),
        "--repeats": option("N", "repetitions of a kernel in a launch, whose median counts", 3, int),
        "--more": flag("keep the values of earlier calls"),
        "--markdown": flag("print tables in Markdown"),
        "--svg": option("FILE", "draw the ratios"),
    }

    def main(self):
        self.cluster = any(place in HOSTS for place in self.o.config)
        return super().main()

    def places(self):
        return self.o.config

    def build(self):
        self.program = self.cargo("-p", "portolan-kernels")["kernels"]
        self.armci = subprocess.run(
            [self.mpi.env["MPICC"], "-xc", "/dev/null", "-shared", "-o", "/dev/null", f"-larmci-{self.mpi.kind}"],
            env=self.mpi.env, stderr=subprocess.DEVNULL,
        ).returncode == 0
        self.shmem = self.mpi.kind == "openmpi" and shutil.which("oshcc")
        if not self.armci:
            print(f"no other ARMCI: libarmci-mpi-dev is not installed for {self.mpi.name}", file=sys.stderr)
        if self.mpi.kind == "openmpi" and not self.shmem:
            print("no OpenSHMEM: oshcc is not installed", file=sys.stderr)
        for name in {program[0] for program in IN_C.values()}:
            source = f"tests/c/kernel_{name}.c"
            self.compile(source, "-larmci", out=f"{name}.ours", flags=["-O3"])
            if self.armci:
                self.compile(source, f"-larmci-{self.mpi.kind}", out=f"{name}.debian", flags=["-O3"], prefix=None)
        for name in SHMEM if self.shmem else []:
            source = f"benches/c/kernels_shmem_{name}.c"
            self.compile(source, out=f"shmem_{name}", flags=["-std=gnu11", "-O3"], compiler="oshcc", prefix=None)

    def wanted(self, kernels):
        return [kernel for kernel in kernels if kernel.startswith(tuple((self.o.only or "").split(",")))]

    def runs(self, place):
        how, hosts = PLACES[place][1], place in HOSTS
        flags = ["--raw", "--repeats", self.o.repeats, *(["--without", "direct"] if hosts else [])]
        # Open MPI's default windows do not work over TCP.
        how = {**how, "env": {"OMPI_MCA_osc": "pt2pt"}} if hosts else how
        sides = ["portolan", "mpi", "window"]
        only = self.o.only.split(",") if self.o.only else []
        yield [Run(side, [self.program, *flags, "--side", side, *only], parse=fields, **how) for side in sides]
        if hosts:
            return
        for kernel in self.wanted(IN_C):
            program, *arguments = IN_C[kernel]
            arguments.insert(1, self.o.repeats)
            yield [
                Run(side, [self.dir / f"{program}.{side}", *arguments], parse=fields, may_fail=True, **how)
                for side in (["ours", "debian"] if self.armci else ["ours"])
            ]
        for name, kernels in SHMEM.items() if self.shmem else []:
            if self.wanted(kernels):
                command = [self.dir / f"shmem_{name}", self.o.repeats, *self.wanted(kernels)]
                launcher = ["oshrun", *self.mpi.launcher[1:]]
                yield [Run("shmem", command, parse=fields, launcher=launcher, **how)]

    def execute(self, run):
        code, output, errors = super().execute(run)
        # Debian's OpenSHMEM crashes at the exit.
        return (0 if run.side == "shmem" else code), output, errors

    def table(self):
        """Waits for all MPIs."""

    def finish(self):
        values, units, wrong = read(self.rows)
        runs = {run: rows_of(cases, units) for run, cases in values.items()}
        for place in PLACES if self.o.markdown else []:
            if any(place == its for _, its in runs):
                print(f"**{PLACES[place][0]}**\n\n{by_kernel(runs, place)}\n")
        for (mpi, place), rows in {} if self.o.markdown else runs.items():
            print(f"{MPIS.get(mpi, mpi)}, {PLACES[place][0]}\n", *all_peers(rows, place), "", sep="\n")
        for case in wrong:
            print("wrong: " + ", ".join(case))
        self.good &= not wrong
        if self.o.svg:
            plot(runs, self.o.svg)


def fields(run, text):
    """Rows of kernel, side, version, ranks, seconds, processor seconds per rank, rate, unit, right."""
    for line in text.splitlines():
        if line.count("\t") == 8:
            yield line.split("\t")


class Row:
    """A kernel of Portolan in a place, and its peers."""

    def __init__(self, name, unit, ours, peers):
        self.name, self.unit, self.ours, self.peers = name, unit, ours, peers

    def ratio(self, index=0):
        """Returns the best peer and the median ratio to it; index 1 is for processor time."""
        ratios = {}
        for peer, values in self.peers.items():
            if rounds := [r for r in self.ours if r in values]:
                ratios[peer] = statistics.median(values[r][index] / self.ours[r][index] for r in rounds)
        best = max(ratios, key=ratios.get, default=None)
        return best, ratios.get(best)


def read(rows):
    """Returns the values by (MPI, place) and (kernel, side, version), and the wrong ones."""
    values, units, wrong = {}, {}, set()
    for mpi, place, turn, kernel, side, version, _, took, used, rate, unit, right in rows:
        if right != "yes":
            wrong.add((mpi, place, kernel, side, version))
            continue
        took, used, rate = float(took), float(used), float(rate)
        per_second = rate * took / used if used > 0 else math.nan
        case = values.setdefault((mpi, place), {}).setdefault((kernel, side, version), {})
        case[turn] = (rate, per_second)
        units[kernel] = unit
    return values, units, sorted(wrong)


def rows_of(cases, units):
    rows = []
    for kernel in ORDER:
        ours = [(v, x) for (k, side, v), x in cases.items() if k == kernel and side == "portolan" and v != "armci"]
        for version, values in ours:
            peers = {
                side: x
                for (k, side, v), x in cases.items()
                if k == kernel and side in SIDES and (v == "direct") == (version == "direct")
            }
            name = f"{kernel}, {version}" if len(ours) > 1 else kernel
            rows.append(Row(name, units[kernel], values, peers))
    for kernel in ORDER:
        values, peer = cases.get((kernel, "portolan", "armci")), cases.get((kernel, "armci", "armci"))
        if values and peer:
            rows.append(Row(f"{kernel}, in C", units[kernel], values, {"armci": peer}))
    return rows


def middle(values):
    return number(statistics.median(v[0] for v in values.values()) if values else None)


def all_peers(rows, place):
    """Returns the lines of a table of one place and MPI, with all peers."""
    present = [side for side in NAMES if any(side in row.peers for row in rows)]
    ratios = ["ratio", *(["ratio of processor time"] if place in HOSTS else [])]
    lines = [["kernel", "unit", "Portolan", *(NAMES[side] for side in present), *ratios]]
    for row in rows:
        rates = [middle(row.ours), *(middle(row.peers.get(side)) for side in present)]
        lines.append([row.name, row.unit, *rates, *(hundredths(row.ratio(i)[1]) for i in range(len(ratios)))])
    return table(lines, left=2)


def by_kernel(runs, place):
    """Returns a table of a place by kernel, with the best peer under each MPI."""
    its = {mpi: {row.name: row for row in rows} for (mpi, where), rows in runs.items() if where == place}
    more = ["best peer", "ratio", *(["processor"] if place in HOSTS else [])]
    lines = [["kernel", "unit", *(head for mpi in its for head in (f"{MPIS.get(mpi, mpi)}: Portolan", *more))]]
    for name, unit in dict.fromkeys((row.name, row.unit) for rows in its.values() for row in rows.values()):
        cells = [name, unit]
        for row in (rows.get(name) for rows in its.values()):
            peer, ratio = row.ratio() if row else (None, None)
            shown = ["-"] * len(more)
            if ratio is not None:
                best = f"{middle(row.peers[peer])} {NAMES[peer]}"
                shown = [best, hundredths(ratio), hundredths(row.ratio(1)[1])][: len(more)]
            cells += [middle(row.ours) if row else "-", *shown]
        lines.append(cells)
    return markdown(lines)


def plot(runs, path):
    """Draws the ratios of all runs on one logarithmic axis, a row for each kernel."""
    places = [place for place in PLACES if any(place == its for _, its in runs)]
    names = list(dict.fromkeys(row.name for rows in runs.values() for row in rows if row.ratio()[1]))
    low, high, left, width, line = 0.01, 4.0, 180, 250, 17
    panel, top = width + 40, 46
    bottom = top + line * len(names)
    drawing = Drawing(left + panel * len(places), bottom + 30, "The best peer's rate divided by Portolan's")

    def scale(ratio):
        return width * math.log(min(max(ratio, low), high) / low) / math.log(high / low)

    for k, (mpi, label) in enumerate(MPIS.items()):
        drawing.dot(left + 70 * k + 4, 12, 4, COLOURS[mpi])
        drawing.text(left + 70 * k + 12, 16, label)
    for i, name in enumerate(names):
        drawing.text(left - 12, top + line * i + 12, name, 'text-anchor="end"')
    for p, place in enumerate(places):
        x = left + panel * p
        drawing.text(x, top - 12, PLACES[place][0], 'font-weight="bold"')
        for tick in (0.01, 0.1, 0.5, 1, 2, 4):
            drawing.path(f"M{x + scale(tick):.1f} {top} V{bottom}", "#444444" if tick == 1 else "#dfe5ec")
            drawing.text(x + scale(tick), bottom + 14, f"{tick:g}", 'text-anchor="middle"')
        for mpi, row in ((mpi, row) for (mpi, its), rows in runs.items() if its == place for row in rows):
            peer, ratio = row.ratio()
            if ratio is not None:
                y = top + line * names.index(row.name) + (5 if mpi == "mpich" else 11)
                title = f"{row.name}, {MPIS.get(mpi, mpi)}: {ratio:.2f} of {peer}"
                bar = f"M{x + scale(1):.1f} {y} H{x + scale(ratio):.1f}"
                drawing.path(bar, COLOURS.get(mpi, "#777777"), 'stroke-width="5"', title)
    drawing.text(left, bottom + 28, "best peer / Portolan: left of 1, Portolan is faster")
    drawing.write(path)
