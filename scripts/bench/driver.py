"""Everything that experiments share: MPIs, builds, launches, rounds, raw values and requirements."""

import argparse
import contextlib
import inspect
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field

from .values import Values, side, table

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORES = sorted(os.sched_getaffinity(0))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def die(text):
    print(f"bench.py: {text}", file=sys.stderr)
    sys.exit(2)


def execute(command, env=None, limit=3600, **options):
    """Runs a command, and ends it if this program is interrupted. Returns exit code, output, errors."""
    command = ["timeout", "-k", "10", str(limit), *map(str, command)]
    options |= dict(stdin=subprocess.DEVNULL, encoding="utf-8", errors="replace")
    with subprocess.Popen(command, env=env, cwd=ROOT, **options) as process:
        try:
            output, errors = process.communicate()
        except BaseException:
            process.terminate()
            raise
    return process.returncode, output, errors


def said(command, env=None):
    """Returns the output of a command that has to succeed."""
    code, output, _ = execute(command, env, stdout=subprocess.PIPE)
    return sys.exit(code) if code else output


def from_shell(script, *arguments):
    """Returns what a script prints after scripts/env.sh, which knows the MPIs."""
    script = f"set -euo pipefail; . scripts/env.sh; {script}"
    return said(["bash", "-c", script, "bench.py", *arguments]).split("\0")[:-1]


def distorts(variable):
    """Whether the caller's value of a variable would change the figures."""
    return variable.startswith(("PORTOLAN_", "ARMCI_")) and variable not in ("PORTOLAN_MPI", "PORTOLAN_MPIRUN_FLAGS")


class Mpi:
    """An MPI as scripts/env.sh describes it."""

    def __init__(self, name):
        fields = '"$MPI" "$MPI_NAME" "$MPI_TAG" "$PREFIX" "$CARGO_TARGET_DIR" "${#LAUNCH[@]}" "${LAUNCH[@]}"'
        values = from_shell(f'complete_mpi "$1"; printf "%s\\0" {fields}; env -0', name)
        self.kind, self.name, self.tag, prefix, target, count = values[:6]
        self.prefix, self.target = pathlib.Path(prefix), pathlib.Path(target)
        self.launcher, variables = values[6 : 6 + int(count)], values[6 + int(count) :]
        self.env = {name: value for name, _, value in (v.partition("=") for v in variables) if not distorts(name)}
        self.has_ga = self.env["GA_CONFIG"] != "true"

    def ga(self, *options):
        """Returns what the compiler needs for Global Arrays."""
        if not self.has_ga:
            die(f"there are no Global Arrays for {self.name} here")
        return said([self.env["GA_CONFIG"], *(options or ("--ldflags", "--libs", "--flibs"))], self.env).split()


def flag(help):
    """An option of an experiment without a value."""
    return dict(action="store_true", help=help)


def option(metavar, help, default=None, type=str, **more):
    """An option of an experiment with a value."""
    help += f" (default: {default})" if default else ""
    return dict(metavar=metavar, help=help, default=default, type=type, **more)


def numbers(text):
    return [int(word) for word in text.split(",")]


def words(text):
    return text.split(",")


def path_or_name(text):
    return os.path.abspath(text) if "/" in text else text


QUICK = flag("short measurements, for a first impression")
RANKS = option("N", "number of ranks; bound to cores if there are enough cores", 2, int)


@dataclass
class Run:
    """A launch of a program: a side of the comparison."""

    side: str
    command: list
    ranks: int = 2
    bind: str = "fit"  # core, none, fit (core if there are enough), or nothing
    env: dict = field(default_factory=dict)  # None unsets a variable
    hosts: str = ""  # the ranks on each host of namespaces, for example 1,1
    launcher: list = None  # instead of the MPI's
    suffix: str = ""  # appended to the names of the cases
    parse: object = None  # turns the run and its output into rows of side, case, value
    limit: int = 300
    may_fail: bool = False  # a failure is listed, but the exit code stays


def pairs(run, text, scale=1.0):
    """Rows of the lines `case TAB value`."""
    for case, value in re.findall(r"^([^\t\n]+)\t([0-9.e+-]+)$", text, re.MULTILINE):
        yield run.side, case + run.suffix, float(value) * scale


@contextlib.contextmanager
def busy_loops(count):
    """Runs endless loops on each core. They end by themselves if this program is killed."""
    loop = ["timeout", "3600", "bash", "-c", "while :; do :; done"]
    loops = [subprocess.Popen(["taskset", "-c", str(core), *loop]) for core in CORES for _ in range(count)]
    try:
        yield
    finally:
        for process in loops:
            process.terminate()
            process.wait()


class Experiment:
    """An experiment: its attributes and methods say what to build, run, print and require.

    The docstring of each is its help, and the first line of it stands in the list.
    """

    default_mpi = "all"
    rounds = 5
    installs = True  # needs the library that scripts/install.sh installs
    cluster = False  # needs hosts of namespaces
    together = False  # the tables of all MPIs come at the end
    least = False  # the minimum of the rounds counts, not the median
    options = {}
    passes = ""  # the program that gets all other arguments
    source, libraries, how = "", [], {}  # the only program, and the keywords of its only run
    title = ""  # of each table, with {mpi}, {place} and the options
    columns = {"": side("ours")}  # heading: function of values and case
    # text, formula, sign, limit (None, a formula, or one for each MPI), and the place if it is only one
    needs = []

    def __init__(self, arguments):
        self.name = type(self).__name__.lower()
        parser = argparse.ArgumentParser(
            prog=f"scripts/bench.py {self.name}",
            description=inspect.cleandoc(self.__doc__),
            epilog=self.passes and f"All other arguments are those of {self.passes}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        common = {
            "--mpi": option("M", "an MPI of scripts/env.sh, or all", self.default_mpi, path_or_name),
            "--rounds": option("R", "runs of each program", self.rounds, int),
            "--json": option("FILE", "also write medians and requirements to FILE"),
        }
        if self.installs:
            common["--installed"] = flag("use the library in target/MPI/prefix as it is")
        for name, keywords in (common | self.options).items():
            parser.add_argument(name, **keywords)
        self.o, self.rest = parser.parse_known_args(arguments)
        if self.rest and not self.passes:
            die(f"unknown argument '{self.rest[0]}', see --help")
        self.out = ROOT / "target" / "bench" / self.name
        self.rows, self.failures, self.good, self.mpis, self.record = [], [], True, [], []

    # Experiments replace these where a single program is not enough.

    def build(self):
        """Builds the programs for `self.mpi`."""
        self.program = self.compile(self.source, *self.libraries)

    def places(self):
        """The configurations that share the builds."""
        return [""]

    def loops(self, place):
        """The busy loops on each core in a place."""
        return 0

    def runs(self, place):
        """Yields the groups of runs of a round. The runs of a group take turns to be the first."""
        yield [Run("ours", [self.program, *self.rest], getattr(self.o, "ranks", 2), **self.how)]

    def also(self, values, place):
        """Prints what belongs below the table of a place."""

    def finish(self):
        """Prints what covers all MPIs."""

    # How to run an experiment.

    def main(self):
        if self.cluster:
            code, why, _ = execute(["scripts/dev", "cluster", "check"], stdout=subprocess.PIPE)
            if code:
                die(why.strip())
        self.out.mkdir(parents=True, exist_ok=True)
        if (getattr(self.o, "more", False) or self.o.rounds == 0) and (self.out / "raw.tsv").exists():
            self.rows = [tuple(line.split("\t")) for line in (self.out / "raw.tsv").read_text().splitlines()]
        for name in self.chosen_mpis() if self.o.rounds else []:
            self.mpi = Mpi(name)
            self.mpis.append(self.mpi)
            self.dir = self.mpi.target / "bench" / self.name
            self.dir.mkdir(parents=True, exist_ok=True)
            if self.installs and not self.o.installed:
                install = ["scripts/install.sh", "--mpi", name, "--prefix", self.mpi.prefix]
                if execute(install, self.mpi.env, stdout=sys.stderr)[0]:
                    die("the library cannot be installed")
            self.build()
            self.measure()
            if not self.together:
                self.table()
        for self.mpi in self.mpis if self.together else []:
            self.table()
        self.finish()
        if self.failures:
            print("runs that failed:", *self.failures, sep="\n  ")
        if self.o.json:
            pathlib.Path(self.o.json).write_text(json.dumps(self.record, indent=1) + "\n")
        return 0 if self.good else 1

    def chosen_mpis(self):
        script = '[[ $1 != default ]] || set -- "$(default_mpi)"; choose_mpis "$1"; printf "%s\\0" "${mpis[@]}"'
        return from_shell(script, self.o.mpi)

    def measure(self):
        earlier = max((int(row[2]) for row in self.rows), default=0)
        for place in self.places():
            with busy_loops(self.loops(place)):
                for turn in range(1, self.o.rounds + 1):
                    where = ", ".join(filter(None, [self.mpi.name, place]))
                    print(f"{where}, round {turn} of {self.o.rounds}", file=sys.stderr)
                    for group in self.runs(place):
                        first = (turn - 1) % len(group)
                        for run in group[first:] + group[:first]:
                            self.perform(place, turn, earlier + turn, run)
            lines = ["\t".join(row) + "\n" for row in self.rows]
            (self.out / "raw.tsv").write_text("".join(lines), encoding="utf-8")

    def perform(self, place, turn, key, run):
        code, output, errors = self.execute(run)
        if code:
            what = " ".join([self.mpi.name, place, run.side, pathlib.Path(run.command[0]).name])
            self.failures.append(f"{what}, round {turn}: exit code {code}")
            self.good &= run.may_fail
            print(self.failures[-1], *errors.splitlines()[-5:], sep="\n    ", file=sys.stderr)
        for row in (run.parse or pairs)(run, output):
            self.rows.append((self.mpi.name, place, str(key), *map(str, row)))

    def execute(self, run):
        """Returns the exit code, the standard output and the standard error of a run."""
        mpi, command, bind = self.mpi, ["./mpirun.sh", "--mpi", self.mpi.name, "--per-host", run.hosts], run.bind
        env = {name: value for name, value in {**mpi.env, **run.env}.items() if value is not None}
        if not run.hosts:
            if bind == "fit":
                bind = "core" if run.ranks <= len(CORES) else "none"
            flag = "--bind-to" if mpi.kind == "openmpi" else "-bind-to"
            command = [*(run.launcher or mpi.launcher), *([flag, bind] if bind else [])]
            if mpi.kind == "openmpi":
                command += [word for name in run.env if name in env for word in ("-x", name)]
            command += ["-n", run.ranks]
        return execute([*command, *run.command], env, run.limit, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def compile(self, source, *libraries, out=None, flags=(), compiler=None, prefix="", rpath=True):
        """Compiles a program with Portolan, with that in a prefix, or without it (None)."""
        out = self.dir / (out or pathlib.Path(source).stem)
        prefix = self.mpi.prefix if prefix == "" else prefix
        command = [compiler or self.mpi.env["MPICC"], "-std=gnu99", "-O2", "-Wall", *flags, ROOT / source, "-o", out]
        if prefix:
            # This directory comes first: it has libraries with the names of Debian's.
            command += [f"-I{prefix}/include", f"-L{prefix}/lib", *([f"-Wl,-rpath,{prefix}/lib"] if rpath else [])]
        said([*command, f"-I{ROOT}/benches/c", *libraries, "-lm"], self.mpi.env)
        if rpath and ("libportolan" in said(["ldd", out], self.mpi.env)) != bool(prefix):
            die(f"{out} is {'not ' if prefix else ''}linked with Portolan")
        return out

    def cargo(self, *arguments):
        """Builds with cargo, and returns the paths of the executables by name."""
        command = ["cargo", "build", "--release", "--message-format=json-render-diagnostics", *arguments]
        messages = map(json.loads, said(command, self.mpi.env).splitlines())
        return {m["target"]["name"]: m["executable"] for m in messages if m.get("executable")}

    def values(self, mpi, place):
        rows = [row[2:] for row in self.rows if row[:2] == (mpi.name, place)]
        return Values([("", *row[1:]) for row in rows] if self.least else rows)

    def table(self):
        """Prints the values and requirements of `self.mpi`."""
        for place in self.places():
            values = self.values(self.mpi, place)
            print(self.title.format(**{**vars(self.o), "mpi": self.mpi.name, "place": place}))
            lines = [["", *self.columns]] if len(self.columns) > 1 else []
            lines += [[case, *(column(values, case) for column in self.columns.values())] for case in values.cases]
            print(*table([line for line in lines if set(line[1:]) != {"-"}]), sep="\n")
            medians = {f"{side}/{case}": values.median(side, case) for side, case in values.rounds}
            self.record.append({"mpi": self.mpi.name, "place": place, "medians": medians, "requirements": []})
            for what, formula, sign, limit, *only in self.needs:
                limit = limit[self.mpi.kind == "openmpi"] if isinstance(limit, tuple) else limit
                if only in ([], [place]):
                    self.need(what, values.evaluate(formula), sign, limit and values.evaluate(limit))
            self.also(values, place)

    def need(self, what, value, sign, limit):
        """Prints a requirement, if it has a value. Without a limit, prints only the value."""
        if value is None:
            return
        bound = {">=": "at least", "<=": "at most"}[sign]
        good = limit is None or (value >= limit if sign == ">=" else value <= limit)
        verdict = "" if limit is None else "ok" if good else "FAIL"
        print(f"{verdict:4} {what}: {value:.2f}" + (f", required {bound} {limit:g}" if verdict else ""))
        self.record[-1]["requirements"].append({"what": what, "value": value, bound: limit, "ok": good})
        self.good &= good
