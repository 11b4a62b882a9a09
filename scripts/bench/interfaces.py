"""Experiments with arrays, compositions and remote procedure calls."""

import itertools
import os
import re
import subprocess
import sys
import time

from .driver import QUICK, RANKS, ROOT, Experiment, Mpi, Run, die, execute, flag, option, said
from .values import formula, side


class Array(Experiment):
    """distributed arrays, compared with Global Arrays

    Compares distributed arrays in Rust with Global Arrays' NGA calls from C on the same library:
    patches, lists, creation, ghost cells, matrix products. Runs both programs (benches/array.rs,
    benches/c/ga_array.c) and the examples ga_matmul, halo_compose, heat and jacobi with 2 ranks. The
    matrix product with tiles from counters is compared with ga_matmul at its best block size.
    """

    options = {"--blas": flag("multiply matrices with the system's CBLAS, as GA does")}
    title = "{mpi}, 2 ranks: array and GA, nanoseconds (step: million cells a second)"
    columns = {"array": side("array"), "GA": side("ga"), "ratio": formula("array_{} / ga_{}")}
    needs = [
        ("ghosts over halo_compose", "array_ghosts_64 / halo_ghosts_64", "<=", 1.15),
        ("jacobi over heat", "array_step_1024 / heat_step_1024", ">=", 0.9),
    ]
    limits = {  # of the ratio to Global Arrays, by the beginning of a case
        "put|get|acc|gather|scatter|product.*dynamic": 1.0,
        "product 1024$": 1.05,
        "create|ghosts": 0.5,
    }

    def build(self):
        for source in ("benches/c/ga_array.c", "examples/c/ga_matmul.c"):
            self.compile(source, *self.mpi.ga("--cppflags"), *self.mpi.ga())
        examples = [word for name in ("halo_compose", "heat", "jacobi") for word in ("--example", name)]
        feature = "portolan/blas" if self.o.blas else "portolan/array"
        self.programs = self.cargo("--features", feature, "--bench", "array", *examples)

    def runs(self, place):
        def run(side, program, *arguments, parse=None):
            command = [self.programs.get(program) or self.dir / program, *arguments]
            return Run(side, command, bind="core", parse=parse, limit=120)

        def found(case, pattern, scale=1.0):
            def parse(run, text):
                for value, unit in re.findall(pattern, text, re.MULTILINE):
                    yield run.side, case, float(value) * {"µs": 1e3, "ms": 1e6}.get(unit, scale)

            return parse

        yield [run("array", "array"), run("ga", "ga_array")]
        best = found("product 1024 dynamic", r"^run [23]: ([0-9.]+) (s)", 1e9)
        yield from ([run("ga", "ga_matmul", 1024, block, 3, parse=best)] for block in (32, 64, 128, 256))
        yield [run("halo", "halo_compose", 64, 2000, parse=found("ghosts 64", r" steps, ([0-9.]+)(µs|ms) each"))]
        step = r".* ([0-9.]+) (million) cells"
        yield [
            run("heat", "heat", 1024, 300, parse=found("step 1024", step)),
            run("array", "jacobi", 1024, 16, 300, parse=found("step 1024", ".*2 dim" + step)),
        ]

    def also(self, values, place):
        for case, (pattern, limit) in itertools.product(values.cases, self.limits.items()):
            if re.match(pattern, case):
                self.need(f"{case} over GA", values.of("array_{} / ga_{}", case), "<=", limit)


class Python(Experiment):
    """the Python package, compared with Rust and mpi4py

    Compares gets and puts of the Python package with the same calls of the Rust arrays
    (benches/array.rs) and with mpi4py's windows, between two ranks on one node. Uses the environment of
    `scripts/dev python`.
    """

    default_mpi = "mpich"
    installs = False
    title = "{mpi}, 2 ranks: microseconds"
    columns = {"Rust": side("rust"), "Python": side("portolan"), "mpi4py": side("mpi4py")}

    def build(self):
        self.python = ROOT / "target/python" / self.mpi.tag / "bin/python"
        if not self.python.exists():
            die(f"run scripts/dev python --mpi {self.mpi.name} first")
        self.bench = self.cargo("--bench", "array")["array"]

    def runs(self, place):
        wheel = [self.python.parent / "mpiexec", *self.mpi.launcher[1:]] if self.mpi.name.endswith("-wheel") else None
        how = dict(bind="core", parse=self.transfers, limit=120)
        alone = dict(env={"LD_LIBRARY_PATH": None, "PORTOLAN_MPI": None}, launcher=wheel)
        yield [
            Run("rust", [self.bench, "rows"], **how),
            Run("", [self.python, ROOT / "python/benches/transfers.py"], **how, **alone),
        ]

    @staticmethod
    def transfers(run, text):
        for who, call, size, time in re.findall(r"^(\w*) ?(get|put) (\d+)\s+([0-9.]+)$", text, re.MULTILINE):
            yield who or run.side, f"{call} {size}", float(time) / 1000

    def also(self, values, place):
        for case in values.cases:
            if case.endswith(" 8"):
                self.need(f"{case}: us beyond Rust", values.of("portolan_{} - rust_{}", case), "<=", 1)
            else:
                self.need(f"{case}: over Rust", values.of("portolan_{} / rust_{}", case), "<=", 1.05)
            self.need(f"{case}: over mpi4py", values.of("portolan_{} / mpi4py_{}", case), "<=", 1)


class NumPy(Experiment):
    """distributed arrays in Python, compared with NumPy

    Compares operations on whole arrays of 10^7 elements, and index arrays, of two ranks on one node
    with NumPy on a rank's half of the elements, and random elements with an exchange by hand
    (Alltoallv of mpi4py). Uses the environment of `scripts/dev python`.
    """

    default_mpi = "mpich"
    installs = False
    title = "{mpi}, 2 ranks: milliseconds"
    columns = {"Python": side("portolan"), "NumPy": side("numpy"), "Alltoallv": side("alltoallv")}
    limits = {"a.b$": 1.1, ".*rows": 2.0}  # of the ratio to NumPy; of others 1

    def build(self):
        self.python = ROOT / "target/python" / self.mpi.tag / "bin/python"
        if not self.python.exists():
            die(f"run scripts/dev python --mpi {self.mpi.name} first")

    def runs(self, place):
        alone = {"LD_LIBRARY_PATH": None, "PORTOLAN_MPI": None}
        program = [self.python, ROOT / "python/benches/arrays.py"]
        yield [Run("", program, bind="core", parse=self.times, limit=240, env=alone)]

    @staticmethod
    def times(run, text):
        for who, call, time in re.findall(r"^(\w+) (\S+) ([0-9.]+)$", text, re.MULTILINE):
            yield who, call, float(time)

    def also(self, values, place):
        for case in values.cases:
            other = "alltoallv" if case.endswith("elements") else "numpy"
            limit = next((limit for pattern, limit in self.limits.items() if re.match(pattern, case)), 1.0)
            self.need(f"{case} over {other}", values.of(f"portolan_{{}} / {other}_{{}}", case), "<=", limit)


class Compose(Experiment):
    """compose/perform, compared with MPI's datatypes

    Compares compose/perform with the same exchange through ARMCI puts, through MPI derived datatypes
    with Isend and Irecv, and through MPI_Neighbor_alltoallw (benches/c/cp_bench.c). The requirements
    are those for one node.
    """

    options = {"--ranks": RANKS}
    passes = "cp_bench, for example --quick"
    source, libraries = "benches/c/cp_bench.c", ["-lcompose"]
    title = "{mpi}, {ranks} ranks, microseconds (blocks26: nanoseconds)"
    needs = [
        ("halo: Isend over compose", "halo_isend / halo_cp", ">=", 2),
        ("halo: Neighbor_alltoallw over compose", "halo_alltoallw / halo_cp", ">=", 2),
        ("halo: PutS calls over perform", "halo_puts_calls / halo_cp_perform", ">=", 1),
        ("26 blocks: ns beyond the copies", "blocks26_cp - blocks26_copies", "<=", 300),
        ("map a million pairs: seconds", "map_million / 1e6", "<=", 1),
        ("map a million pairs: KiB", "map_million_kib", "<=", 131072),
    ]


class Rpc(Experiment):
    """Mercury's calls, compared with MPI's messages

    Compares remote procedure calls through Mercury's C interface with MPI's own messages and memcpy
    (benches/c/rpc_bench.c), with one client and one server on a node, without and with checksums.
    `portolan-perf rpc` measures the Rust interface.
    """

    rounds = 3
    options = {"--idle": flag("measure what an idle server costs, without and with 10,000 connections over TCP")}
    passes = "rpc_bench, for example --quick"
    source, libraries = "benches/c/rpc_bench.c", ["-lmercury"]
    title = "{mpi}, checksum {place}: microseconds, million calls a second, GB/s"
    needs = [
        ("null call over MPI round trip", "null_poll / mpi_round_trip", "<=", 1.3),
        ("null call, the server waits: us", "null_wait", "<=", "max(5, 4 * null_poll)"),
        ("64 calls under way: million a second", "null_64", ">=", "max(1.2, mpi_64 / 2)"),
        ("input of 4 KiB over MPI", "in_4k / mpi_4k", "<=", 2),
        ("input of 4 KiB over MPI, which sends what was just written", "in_4k / fresh_4k", "<=", 2),
        ("input of 64 KiB over MPI", "in_64k / mpi_64k", "<=", 2),
        ("input of 64 KiB over MPI, which sends what was just written", "in_64k / fresh_64k", "<=", 2),
        ("input of 1 MiB over MPI, which sends what was just written", "in_1m / fresh_1m", "<=", 2),
        ("pull of 1 MiB over memcpy", "pull_1m / memcpy_1m", ">=", 0.85),
        ("pull of 16 MiB over memcpy", "pull_16m / memcpy_16m", ">=", 0.85),
        ("1,024 segments over contiguous", "pull_1024 / pull_1m", ">=", 0.5),
        ("1 MiB of memory of the program over memcpy", "user_1m / memcpy_1m", ">=", 0.85),
        ("the kernel alone over memcpy at 1 MiB", "kernel_1m / memcpy_1m", ">=", None),
        ("16 MiB of memory of the program over memcpy", "user_16m / memcpy_16m", ">=", 0.85),
        ("1,024 segments of it over contiguous", "user_1024 / user_1m", ">=", 0.5),
        ("1 MiB of bulk memory made, written and freed over calloc", "make_1m / calloc_1m", "<=", 1.5),
        ("idle server: percent of a core", "idle_percent", "<=", 0.5),
        ("call to an idle server: us", "idle_wake", "<=", 100),
    ]

    def main(self):
        if not self.o.idle:
            return super().main()
        mpi = Mpi(self.chosen_mpis()[0])
        cargo = ["cargo", "test", "--release", "-p", "portolan-tests", "--test", "services", "--"]
        test = ["--ignored", "--exact", "idle::measure_10_000_idle_connections", "--nocapture"]
        return execute([*cargo, *test], mpi.env)[0]

    def places(self):
        return ["none", "crc64"]

    def runs(self, place):
        yield [Run("ours", [self.program, *self.rest], env={"PORTOLAN_RPC_CHECKSUM": place})]


class Services(Experiment):
    """Mercury's calls between separate processes, compared with Mercury itself

    Measures calls between a server and a client that are started separately
    (benches/c/services_bench.c). With --with-mercury, also measures the Mercury 2.4 in PREFIX: na+sm is
    compared with na+sm, and tcp with ofi+tcp. The MPI is that of the library and is not used.
    """

    default_mpi = "default"
    rounds = 3
    options = {
        "--with-mercury": option("PREFIX", "compare with the Mercury in PREFIX"),
        "--quick": QUICK,
        "networks": option("NETWORK", "na+sm and tcp by default", nargs="*"),
    }
    title = "{place}: microseconds, million calls a second, GiB/s"
    columns = {"Portolan": side("ours"), "Mercury": side("mercury"), "ratio": formula("{} / mercury_{}")}
    needs = [
        ("null call over Mercury", "null_wait / mercury_null_wait", "<=", 0.25),
        ("calls per second over Mercury", "null_32 / mercury_null_32", ">=", 4),
        ("pull of 1 MiB over Mercury", "pull_1m / mercury_pull_1m", ">=", 2, "na+sm"),
        ("pull of 1 MiB over a plain socket", "pull_1m / socket_1m", ">=", 0.9),
    ]

    def build(self):
        source, include = "benches/c/services_bench.c", f"-I{self.mpi.prefix}/include/mercury2"
        self.programs = {"ours": self.compile(source, "-lmercury2", out="portolan", compiler="cc", flags=[include])}
        if self.o.with_mercury:
            other = os.path.abspath(self.o.with_mercury)
            found = {**os.environ, "PKG_CONFIG_PATH": f"{other}/lib/pkgconfig:{other}/lib64/pkgconfig"}
            flags = said(["pkg-config", "--cflags", "--libs", "mercury"], found).split()
            flags.append(f"-Wl,-rpath,{other}/lib:{other}/lib64")
            self.programs["mercury"] = self.compile(source, *flags, out="mercury", compiler="cc", prefix=None)

    def places(self):
        return self.o.networks or ["na+sm", "tcp"]

    def runs(self, place):
        quick = ["--quick"] * self.o.quick
        # Mercury 2.4 has TCP through libfabric only.
        name = {"ours": place, "mercury": "ofi+tcp" if place == "tcp" else place}
        yield [Run(side, [program, name[side], *quick]) for side, program in self.programs.items()]
        if place != "na+sm":
            yield [Run("ours", [self.programs["ours"], "socket", *quick])]

    def execute(self, run):
        """Starts a server, and a client when the server has written its address."""
        program, network, *quick = map(str, run.command)
        pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if network == "socket":
            return execute(run.command, self.mpi.env, run.limit, **pipes)
        address = self.dir / "address"
        address.unlink(missing_ok=True)
        server = subprocess.Popen(["timeout", "600", program, "serve", network, str(address)], env=self.mpi.env)
        try:
            while not address.exists():
                if server.poll() is not None:
                    print(f"{program} does not work over {network} here", file=sys.stderr)
                    return 0, "", ""
                time.sleep(0.01)
            done = execute([program, "call", address, *quick], self.mpi.env, run.limit, **pipes)
            if done[0] == 0:
                server.wait()
            return done
        finally:
            server.terminate()
