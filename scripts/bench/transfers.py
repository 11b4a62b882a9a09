"""Experiments with transfers, paths and waits between ranks."""

import itertools
import pathlib
import re
import shutil
import sys

from .driver import (
    CORES, QUICK, RANKS, Experiment, Run, die, execute, flag, numbers, option, pairs, said, words,
)
from .values import formula, side


class Armci(Experiment):
    """this library, compared with Debian's ARMCI

    Builds the programs of benches/c with Portolan and with Debian's ARMCI (libarmci-mpi-dev), and runs
    them in alternation. The exit code does not depend on failures of Debian's.
    """

    together = True
    options = {
        "--ranks": RANKS,
        "--only": option("CASE,...", "only these cases of armci_bench --list and ga_bench, and idle", None, words),
        "--quick": QUICK,
    }
    title = "{mpi}, {ranks} ranks: microseconds"
    columns = {"Debian": side("debian"), "ours": side("ours"), "Debian/ours": formula("debian_{} / {}")}
    best = ("ga_matmul", "ga_200_arrays")
    needs = [
        (f"{case}: {what}", text.format(case), sign, limit)
        for cases, what, text, sign, limit in [
            ("put8,get8,acc8,put8_fence,fetch_add", "Debian over ours", "debian_{0} / {0}", ">=", (20, 3)),
            ("aggregate_put8", "Debian over ours", "debian_{0} / {0}", ">=", (None, 5)),
            ("get8_among_1000", "Debian over ours", "debian_{0} / {0}", ">=", 50),
            ("get8_among_1000,get8_among_10000", "over get8_among_1", "{0} / get8_among_1", "<=", 1.5),
            ("put_64K,put_512K,put_1M,put_8M", "over memcpy", "{0} / memcpy_{0}", "<=", 1.15),
            ("get_64K,get_512K,get_1M,get_8M", "over memcpy", "{0} / memcpy_{0}", "<=", 1.15),
            ("put_block64x64,put_column1024,put_cube32", "over a plain loop", "{0} / loop_{0}", "<=", 1.25),
            ("get_block64x64,get_column1024,get_cube32", "over a plain loop", "{0} / loop_{0}", "<=", 1.25),
            ("acc_4K,acc_1M", "over a plain loop at -O2", "{0} / loopO2_{0}", "<=", 1.4),
            ("acc_4K,acc_1M", "over a plain loop at -O3", "{0} / loopO3_{0}", "<=", 1.4),
            ("lock_unlock", "Debian over ours", "debian_{0} / {0}", ">=", 15),
            ("fetch_add_contended,lock_contended,alloc_free_64K", "Debian over ours", "debian_{0} / {0}", ">=", 1),
            ("fetch_add_contended_share,lock_contended_share", "least over most", "{0}", ">=", 0.5),
            ("busy_worst", "us", "{0}", "<=", 1000),
            ("busy_worst_message", "us", "{0}", "<=", 5000),
            ("idle_percent", "of a core", "{0}", "<=", 1),
            (",".join(best), "over Debian on its best MPI", "{0} / best_{0}", "<=", 0.8),
        ]
        for case in words(cases)
    ]

    def build(self):
        armci = [f"-larmci-{self.mpi.kind}"]
        if not any(pathlib.Path("/usr/lib").glob(f"*/lib{armci[0][2:]}.a")):
            die(f"no lib{armci[0][2:]}.a: install libarmci-mpi-dev and libglobalarrays-dev")
        for program, libraries in {"armci_bench": armci, "idle": armci, "ga_bench": self.mpi.ga()}.items():
            self.compile(f"benches/c/{program}.c", *libraries, out=f"{program}.ours")
            self.compile(f"benches/c/{program}.c", *libraries, out=f"{program}.debian", prefix=None)

    def runs(self, place):
        only = self.o.only
        flags = ["--quick"] * self.o.quick + (["--only", ",".join(only)] if only else [])

        def run(side, program, *arguments, **more):
            command = [self.dir / f"{program}.{side}", *arguments]
            return Run(side, command, self.o.ranks, limit=600, may_fail=side == "debian", **more)

        # Debian's ARMCI makes a window per segment, and MPICH supports only about 2,000 windows.
        yield [run("debian", "armci_bench", *flags, "--skip", "get8_among_10000"), run("ours", "armci_bench", *flags)]
        yield [run("debian", "ga_bench", *flags), run("ours", "ga_bench", *flags)]
        alone = {"PORTOLAN_NODE_SIZE": "1"}
        if not only or "busy" in only:
            by_message = {**alone, "PORTOLAN_PATH": "message"}
            yield [run("ours", "armci_bench", "--only", "busy", env=by_message, suffix="_message")]
        if not only or "idle" in only:
            yield [run("ours", "idle", 5, env=alone)]

    def values(self, mpi, place):
        values = super().values(mpi, place)
        for case in self.best:
            times = [super(Armci, self).values(m, place).median("debian", case) for m in self.mpis]
            turns = values.rounds.get(("ours", case), {})
            if any(times):
                values.rounds["best", case] = dict.fromkeys(turns, min(filter(None, times)))
        return values


class Peer(Experiment):
    """this library, compared with another runtime of Global Arrays

    OURS and PEER are prefixes of one version of Global Arrays that was configured twice: with Portolan
    (docs/global-arrays.md), and with the other runtime, for example --with-mpi-pr. Runs the same
    programs of benches/c with both, in alternation. A ratio above 1 means that Portolan is faster.
    """

    default_mpi = "mpich"
    options = {
        "prefixes": option("PREFIX", "OURS and PEER", nargs=2, type=pathlib.Path),
        "--ranks": RANKS,
        "--peer-ranks": option("N", "MPI ranks of the peer, with those that only make progress", 0, int),
        "--hosts": option("N,...", "ranks on each host of namespaces, instead of --ranks on one node", ""),
        "--peer-hosts": option("N,...", "MPI ranks of the peer on each host", ""),
        "--only": option("CASE,...", "only these cases of armci_bench --list and ga_bench", None, words),
        "--quick": QUICK,
    }
    title = "{mpi}, {ranks} ranks: microseconds"
    columns = {"peer": side("peer"), "ours": side("ours"), "peer/ours": formula("peer_{} / {}")}

    def build(self):
        for side, prefix in zip(("ours", "peer"), self.o.prefixes):
            config = said([prefix / "bin/ga-config", "--cppflags", "--ldflags", "--libs", "--flibs"], self.mpi.env)
            for program in ("armci_bench", "ga_bench"):
                flags = [f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", *config.split(), "-lblas"]
                ours = self.mpi.prefix if side == "ours" else None
                self.compile(f"benches/c/{program}.c", *flags, out=f"{program}.{side}", prefix=ours)

    def runs(self, place):
        flags = ["--quick"] * self.o.quick + (["--only", ",".join(self.o.only)] if self.o.only else [])
        flags += ["--skip", "get8_among_10000"]  # some runtimes take 20 ms for an allocation
        ranks = {"ours": self.o.ranks, "peer": self.o.peer_ranks or self.o.ranks}
        hosts = {"ours": self.o.hosts, "peer": self.o.peer_hosts or self.o.hosts}
        for program in ("armci_bench", "ga_bench"):
            yield [
                Run(side, [self.dir / f"{program}.{side}", *flags], n, hosts=hosts[side], limit=600, may_fail=side == "peer")
                for side, n in ranks.items()
            ]


def marked(ratio):
    return "-" if ratio is None else f"{ratio:.3f} " + ("<" if ratio < 0.97 else ">" if ratio > 1.03 else " ")


class Builds(Experiment):
    """two builds of this library

    Compares two builds of the library, or one build with two settings, to measure the cost of a
    change or the benefit of a mechanism. PREFIX_A and PREFIX_B are prefixes that scripts/install.sh
    installed; without PREFIX_B, both sides use PREFIX_A. The programs are built once and run on two
    ranks of this node. B/A is the median of the ratios of the rounds, marked with `<` or `>` if it
    differs from 1 by more than 3 %. Figures are in microseconds, except some of rpc (see
    benches/c/rpc_bench.c).
    """

    default_mpi = "mpich"
    installs = False
    programs = {  # source, libraries (Global Arrays by default), arguments, of which the first is for quick runs
        "armci": ("benches/c/armci_bench.c", ["-larmci"], ["--quick", "--skip", "get8_among_10000,busy"]),
        "ga": ("benches/c/ga_bench.c", None, ["--quick"]),
        "rpc": ("benches/c/rpc_bench.c", ["-lmercury"], ["--quick"]),
        "x10": ("examples/c/x10_random_access.c", ["-lx10"], ["20"]),
        "compose": ("benches/c/cp_bench.c", ["-lcompose", "-larmci"], ["--quick"]),
    }
    options = {
        "prefixes": option("PREFIX", "one or two installed builds", nargs="+"),
        "--only": option("PROGRAM,...", "a selection of programs", ",".join(programs), words),
        "--full": flag("use the full measurement times of armci and rpc"),
        "--set-a": option("VAR=VALUE", "set a variable for side A", [], action="append"),
        "--set-b": option("VAR=VALUE", "set a variable for side B", [], action="append"),
    }
    title = "{mpi}, 2 ranks"
    columns = {"A": side("a"), "B": side("b"), "B/A": formula("b_{} / a_{}", marked)}

    def build(self):
        self.prefixes = [pathlib.Path(p).resolve() for p in self.o.prefixes]
        if len(self.prefixes) > 2 or not set(self.o.only) <= set(self.programs):
            die("one or two builds and known programs are to be named, see --help")
        for program in self.o.only:
            source, libraries, _ = self.programs[program]
            # Without an rpath, the loader finds the library of each side by LD_LIBRARY_PATH.
            self.compile(source, *(libraries or self.mpi.ga()), out=program, prefix=self.prefixes[0], rpath=False)

    def runs(self, place):
        sides = {"a": (self.prefixes[0], self.o.set_a), "b": (self.prefixes[-1], self.o.set_b)}
        for program in self.o.only:
            arguments = [a for a in self.programs[program][2] if a != "--quick" or not self.o.full]
            yield [
                Run(side, [self.dir / program, *arguments], parse=self.figures, limit=600,
                    env=library(self.mpi, prefix, dict(s.split("=", 1) for s in settings)))
                for side, (prefix, settings) in sides.items()
            ]

    @staticmethod
    def figures(run, text):
        program = pathlib.Path(run.command[0]).name
        for side, case, value in pairs(run, text):
            yield side, f"{program}/{case}", value
        for rate in re.findall(r"^GUPS\s+([0-9.e+-]+)", text, re.MULTILINE):
            yield run.side, "x10/update", 1e-3 / float(rate)


def library(mpi, prefix, settings):
    """Returns the variables with which the loader finds the library in a prefix."""
    path = ":".join(filter(None, [f"{prefix}/lib", mpi.env.get("LD_LIBRARY_PATH")]))
    return {**settings, "LD_LIBRARY_PATH": path}


class Node(Experiment):
    """one node: columns, accumulates, threads

    Measures on one node, without another library to compare with: columns and accumulates, compared
    with plain C over the same addresses (benches/c/kernels_bench.c, one rank), and the rates of 1, 2
    and 4 threads of a rank (benches/c/threads_bench.c, two ranks). The sources of the programs explain
    the output lines. `--quick` and `--only CASE,...` are options of the programs.
    """

    rounds = 1
    passes = "the programs"
    title = "{mpi}: kernels_bench with one rank, threads_bench with two"

    def build(self):
        self.kernels = self.compile("benches/c/kernels_bench.c", "-larmci")
        self.threads = self.compile("benches/c/threads_bench.c", "-larmci", "-llapi_r", "-lpthread")

    def runs(self, place):
        yield [Run("ours", [self.kernels, *self.rest], 1, "core")]
        # Threads need all cores.
        yield [Run("ours", [self.threads, *self.rest], 2, "none")]


class Hosts(Experiment):
    """two hosts over TCP, compared with MPI's messages

    Compares transfers between two hosts over TCP (namespaces of this machine, scripts/dev cluster)
    with MPI's own messages in the same run (benches/c/hosts_bench.c). Then multiplies matrices with
    Global Arrays on two hosts, with two and four ranks, and checks the products.

    With --compute, measures instead a rank that computes while another host reads and writes its memory
    (benches/c/compute_bench.c explains its output lines), compared with a program that serves requests
    in its own thread.
    """

    cluster = True
    options = {"--compute": flag("measure a rank that computes")}
    passes = "hosts_bench, for example --quick"
    how = dict(hosts="1,1")
    title = "{mpi}, two hosts, TCP: microseconds, *_rate: MiB/s, *8 and *8_both: thousand a second"
    needs = [
        ("8 B: put until it arrives over half a round trip of messages", "put_arrives / pingpong", "<=", 1.2),
        ("8 B: put and fence over half a round trip (a round trip is 2)", "put_fence / pingpong", "<=", 2.4),
        ("8 B: get over half a round trip (a round trip is 2)", "get / pingpong", "<=", 2.2),
        ("8 B: rate of puts over messages", "puts8 / sends8", ">=", 0.8),
        ("8 B: rate of puts over messages, both directions", "puts8_both / sends8_both", ">=", 0.8),
        ("8 B: rate of gets, 64 under way, over answered messages", "gets8 / asks8", ">=", 0.8),
        ("8 B: processor of the owner for a get over an answered message", "gets8_owner / asks8_owner", "<=", 1.5),
        ("1 MiB: puts over messages", "put_rate / send_rate", ">=", 0.95),
        ("1 MiB: gets over messages", "get_rate / send_rate", ">=", 0.95),
        ("1 MiB: puts over messages, both directions", "put_both_rate / send_both_rate", ">=", 0.95),
        ("1 MiB: gets over messages, both directions", "get_both_rate / send_both_rate", ">=", 0.95),
        ("1 MiB in rows: puts over messages", "put_rows_rate / send_rows_rate", ">=", 0.95),
        ("1 MiB in rows: gets over messages", "get_rows_rate / send_rows_rate", ">=", 0.95),
        ("8 B: get from a rank that moves bulk, ms", "small_behind_bulk / 1000", "<=", 1),
    ]

    def build(self):
        program = "compute_bench" if self.o.compute else "hosts_bench"
        self.program = self.compile(f"benches/c/{program}.c", "-larmci", "-lpthread")

    def also(self, values, place):
        if not self.o.compute and self.mpi.name == self.mpi.kind:
            products = ["ga/ga_dgemm [n=2 hosts=1,1]", "ga/ga_dgemm [n=4 hosts=2,2]"]
            program = ["scripts/dev", "programs", "--mpi", self.mpi.name, "--exact", *products]
            sys.stdout.flush()
            code, _, _ = execute(["scripts/dev", "cluster", "run", "--hosts", 2, "--", *program], self.mpi.env)
            self.good &= code == 0


class Paths(Experiment):
    """the paths between nodes

    Checks that messages, which PORTOLAN_PATH=auto uses between nodes, are not slower than MPI's
    windows. Runs two programs with the communication of Global Arrays (benches/c/paths_bench.c:
    products of dense matrices by patches, and of a sparse one) between virtual nodes of one rank, and
    prints the minimum time of each. `portolan-perf --path rma,message` measures single operations.
    """

    least = True
    options = {"--quick": QUICK}
    title = "{mpi}, two virtual nodes of one rank: microseconds"
    columns = {
        "windows": side("rma"), "messages": side("message"), "messages/windows": formula("message_{} / rma_{}"),
    }
    needs = [
        ("mult: messages over windows", "message_mult / rma_mult", "<=", 1.1),
        ("sparse: messages over windows", "message_sparse / rma_sparse", "<=", 1.1),
    ]

    def build(self):
        self.program = self.compile("benches/c/paths_bench.c", *self.mpi.ga("--cflags"), *self.mpi.ga())

    def runs(self, place):
        command, virtual = [self.program, *["--quick"] * self.o.quick], {"PORTOLAN_NODE_SIZE": "1"}
        yield [Run(path, command, bind="", env={**virtual, "PORTOLAN_PATH": path}) for path in ("rma", "message")]


BINDS = {"yes": ["bound"], "no": ["not bound"], "both": ["bound", "not bound"]}


class Contended(Experiment):
    """operations that wait, while other work competes for the cores

    Measures operations in which ranks wait for each other while other work competes for the cores
    (benches/c/contended_bench.c). If Global Arrays are installed, it also measures two programs on
    them, a matrix product and the build of a Fock matrix (benches/c/ga_bench.c). Starts busy loops on
    each core, and compares Portolan with the faster one of Debian's ARMCI and plain MPI.

    A case without an equivalent is compared with the closest operation: `notify`, `message` and
    `null_call` with the round trip of messages. `futex` is the limit: two processes that wake each
    other.
    """

    rounds = 7
    options = {
        "--ranks": option("N,...", "numbers of ranks", "2,4,8", numbers),
        "--loops": option("L,...", "numbers of busy loops per core", "0,1,2", numbers),
        "--bind": option("B", "bind ranks to cores (yes, no or both), if there are enough", "both", choices=BINDS),
        "--seconds": option("S", "duration of each case", "0.3"),
        "--only": option("CASE,...", "only these cases", None, words),
    }
    title = "{mpi}, {place}: microseconds"
    columns = {
        "Portolan": side("ours"), "Debian": side("debian"), "MPI": side("mpi"),
        "ratio": formula("{} / min(debian_{}, mpi_{})"),
    }
    alike = ("notify", "message", "null_call")

    def build(self):
        source, libraries = "benches/c/contended_bench.c", ["-larmci", "-llapi_r", "-lmercury", "-lpthread"]
        self.compile(source, *libraries, out="ours")
        self.compile(source, f"-larmci-{self.mpi.kind}", out="debian", flags=["-DPEER=1"], prefix=None)
        self.compile(source, out="mpi", flags=["-DPEER=2"], prefix=None)
        if self.mpi.has_ga:
            self.compile("benches/c/ga_bench.c", *self.mpi.ga(), out="ga-ours")
            self.compile("benches/c/ga_bench.c", *self.mpi.ga(), out="ga-debian", prefix=None)

    def places(self):
        for ranks, loops, bind in itertools.product(self.o.ranks, self.o.loops, BINDS[self.o.bind]):
            if bind == "not bound" or ranks <= len(CORES):
                yield f"{ranks} ranks, {loops} loops per core, {bind}"

    def loops(self, place):
        return int(place.split()[2])

    def runs(self, place):
        how = dict(ranks=int(place.split()[0]), bind="none" if "not" in place else "core")
        flags = ["--seconds", self.o.seconds, *(["--only", ",".join(self.o.only)] if self.o.only else [])]
        yield [Run(side, [self.dir / side, *flags], may_fail=True, **how) for side in ("ours", "debian", "mpi")]
        ga = [case for case in ("ga_matmul", "scf_like") if not self.o.only or case in self.o.only]
        if self.mpi.has_ga and ga:
            flags = ["--quick", "--only", ",".join(ga)]
            yield [Run(side, [self.dir / f"ga-{side}", *flags], may_fail=True, **how) for side in ("ours", "debian")]

    def values(self, mpi, place):
        values = super().values(mpi, place)
        inf = dict.fromkeys(next(iter(values.rounds.values()), {}), float("inf"))
        for case in values.cases:
            for peer in ("debian", "mpi"):
                alike = "round_trip" if case in self.alike else case
                values.rounds[peer, case] = values.rounds.get((peer, alike), inf)
        return values


def added(value):
    return "-" if value is None else f"{value:+.1f}"


class Trace(Experiment):
    """the overhead of statistics and traces

    Runs benches/c/armci_bench.c on two ranks of this node without statistics and traces, with
    PORTOLAN_STATS=1, and with PORTOLAN_TRACE. Prints also the medians of the time that statistics and
    traces added in each round.
    """

    default_mpi = "mpich"
    installs = False
    cases = "put8,get8,acc8,put8_fence,fetch_add,lock_unlock,barrier"
    options = {
        "prefix": option("PREFIX", "an installed build, by default target/MPI/prefix", nargs="?"),
        "--only": option("CASE,...", "cases of armci_bench", cases),
        "--base": option("PREFIX", "also measure this build, which shows the overhead while both are off"),
        "--path": option("P", "PORTOLAN_PATH"),
    }
    title = "{mpi}, 2 ranks: nanoseconds a call"
    columns = {name: side(name) for name in ("base", "off", "stats", "trace")} | {
        f"{a} - {b}": formula(f"{a}_{{}} - {b}_{{}}", added)
        for a, b in (("off", "base"), ("stats", "off"), ("trace", "off"))
    }

    def build(self):
        self.prefix = pathlib.Path(self.o.prefix).resolve() if self.o.prefix else self.mpi.prefix
        # Without an rpath, the loader finds the library of each side by LD_LIBRARY_PATH.
        self.program = self.compile("benches/c/armci_bench.c", "-larmci", prefix=self.prefix, rpath=False)

    def runs(self, place):
        traces = self.dir / "trace"
        shutil.rmtree(traces, ignore_errors=True)
        sides = {"off": {}, "stats": {"PORTOLAN_STATS": "1"}, "trace": {"PORTOLAN_TRACE": str(traces)}}
        if self.o.base:
            sides = {"base": {}, **sides}
        common = {"PORTOLAN_PATH": self.o.path} if self.o.path else {}
        command = [self.program, "--quick", "--only", self.o.only]
        yield [
            Run(side, command, parse=nanoseconds, limit=600, env=library(self.mpi, prefix, {**common, **settings}))
            for side, settings in sides.items()
            for prefix in [pathlib.Path(self.o.base).resolve() if side == "base" else self.prefix]
        ]


def nanoseconds(run, text):
    return pairs(run, text, 1000)
