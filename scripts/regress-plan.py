#!/usr/bin/env python3
"""Chooses the cases of the regression suite; scripts/regress.sh calls it.

    regress-plan.py programs --level quick|full --hosts 1,2,3 [--no-windows] [--case TEXT] < PROGRAMS
    regress-plan.py ranks    --level quick|full --hosts 1,2,3 [--no-windows]

The first prints lines for scripts/test-programs.sh --plan, the second arguments for the
tests on several ranks, one a line. All combinations of layout, path and thread level for
each program would be some nine thousand launches, hours of them. Of these a selection is
taken in which each program meets every layout, every path on every number of hosts, every
thread level on every number of hosts, and every path at every thread level; what is left
free turns from program to program, so that every combination there is meets some program.
"""

import argparse
import re
import sys
from math import gcd

# How ranks are spread: on this host alone, or so many on each of several.
LAYOUTS = ["1", "2", "3", "4", "1,1", "2,1", "1,3", "1,1,1", "2,1,1"]
PATHS = ["direct", "rma", "message", "auto"]
LEVELS = ["multiple", "single"]

# A program of each kind that moves data, for the quick selection.
QUICK = """c/contiguous c/strided c/vector c/accumulate c/rmw c/values c/handles c/mutexes c/groups
c/messages c/reductions c/domains c/cp_patterns c/cp_random c/x10_copy c/x10_strided c/x10_async
c/x10_aggregate c/x10_lock c/lapi_example c/lapi_amsend c/lapi_counters c/lapi_putget
fortran/armci_fortran fortran/lapi_fortran ga/ga_acc ga/ga_dgemm ga/ga_copy ga/ga_groups
ga/ga_fortran""".split()

# Programs that ask for a thread level themselves, or cannot do without a thread that
# serves others: LAPI_Nopoll_wait waits and makes no progress, by its definition, and the
# programs of fences wait in calls of MPI for ranks that fence.
OWN_LEVEL = {
    "fortran/mpi_f08", "c/interpose", "c/lapi_interpose", "c/lapi_counters", "ga/ga_fence", "ga/ga_groups_fence",
}  # fmt: skip

# Where an MPI has no windows between hosts, this program alone asks for them.
ASKS_FOR_WINDOWS = "c/contiguous"

# Configurations of the tests on several ranks, and the layouts on which each runs.
ON_HOSTS = ["1,1", "2,1", "1,1,1", "2,2", "2,1,1"]
CONFIGS = [
    "default", "path=message", "path=rma", "path=rma atomics=native", "am=mpi", "routed",
    "path=message small pieces", "thread=0", "host=single", "path=message host=single",
    "path=rma host=single",
]  # fmt: skip


def hosts_of(layout):
    return layout.count(",") + 1


def ranks_of(layout):
    return sum(map(int, layout.split(",")))


def combinations(layouts):
    for layout in layouts:
        for path in PATHS:
            # Between hosts nothing is reached directly.
            if path == "direct" and hosts_of(layout) > 1:
                continue
            for level in LEVELS:
                yield layout, path, level


def line(program, combination):
    layout, path, level = combination
    settings = []
    if hosts_of(layout) > 1:
        settings.append(f"hosts={layout}")
    if path != "auto":
        settings.append(f"path={path}")
    if level != "multiple" and program not in OWN_LEVEL:
        settings.append("level=single")
    return f"{program}|{ranks_of(layout)}|{' '.join(settings)}|"


def features(combination):
    layout, path, level = combination
    hosts = hosts_of(layout)
    return {("layout", layout), ("path", hosts, path), ("level", hosts, level), ("both", path, level)}


def without_windows(every, program):
    return [c for c in every if c[1] != "rma" or hosts_of(c[0]) == 1 or program == ASKS_FOR_WINDOWS]


def cover(programs, layouts, windows):
    """A selection for each program; ties go to what has been used least so far."""
    combined = list(combinations(layouts))
    used = dict.fromkeys(combined, 0)
    for program in programs:
        every = combined if windows else without_windows(combined, program)
        open_features = set().union(*map(features, every))
        while open_features:
            best = max(every, key=lambda c: (len(features(c) & open_features), -used[c]))
            open_features -= features(best)
            used[best] += 1
            yield program, best


def quick(programs, layouts, windows):
    """Each program once, turning through the combinations on several hosts."""
    several = [c for c in combinations(layouts) if hosts_of(c[0]) > 1] or list(combinations(layouts))
    if not windows:
        several = without_windows(several, "") + [c for c in several if c[1] == "rma"][:1]
    several.sort(key=lambda c: (LEVELS.index(c[2]), PATHS.index(c[1]) * 5 % 4, c[0]))
    stride = next(step for step in (7, 5, 3, 1) if gcd(step, len(several)) == 1)
    for k, program in enumerate(p for p in QUICK if p in programs):
        best = several[k * stride % len(several)]
        if program == ASKS_FOR_WINDOWS:
            best = next(c for c in several if c[1] == "rma")
        elif not windows and best[1] == "rma":
            best = several[(k * stride + 1) % len(several)]
        yield program, best


def named(case, programs):
    """The line of a case given by its whole name, planned or not."""
    match = re.search(r"(\S+)((?: [^\[\s]+)*) \[n=(\d+)((?: [^\]\s]+)*)\]$", case)
    if match and match[1] in programs:
        return f"{match[1]}|{match[3]}|{match[4].strip()}|{match[2].strip()}"
    return None


def plan_programs(options, hosts):
    programs = [p for p in sys.stdin.read().split() if p]
    layouts = [layout for layout in LAYOUTS if hosts_of(layout) in hosts]
    if options.case and (exact := named(options.case, programs)):
        print(exact)
        return
    choose = quick if options.level == "quick" else cover
    seen = set()
    for program, combination in choose(programs, layouts, not options.no_windows):
        text = line(program, combination)
        if text not in seen:
            seen.add(text)
            print(text)


def plan_ranks(options, hosts):
    layouts = [layout for layout in ON_HOSTS if hosts_of(layout) in hosts]
    configs = [c for c in CONFIGS if not (options.no_windows and "path=rma" in c)]
    if options.level == "quick":
        if 2 in hosts:
            print("2,1:default")
        if 3 in hosts:
            print("1,1,1:path=message host=single")
        return
    chosen = {layout: [] for layout in layouts}
    for k, config in enumerate(configs):
        # Every configuration on two layouts, the default on all.
        for step in range(len(layouts) if config == "default" else min(2, len(layouts))):
            chosen[layouts[(k + step * 2) % len(layouts)]].append(config)
    for layout, some in chosen.items():
        alone = ["alone"] if layout in ("1,1", "2,1") else []
        print(":".join([layout, *dict.fromkeys(some), *alone]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["programs", "ranks"])
    parser.add_argument("--level", choices=["quick", "full"], default="quick")
    parser.add_argument("--hosts", default="1,2,3")
    parser.add_argument("--case", default="")
    parser.add_argument("--no-windows", action="store_true", help="the MPI has none between hosts")
    options = parser.parse_args()
    hosts = {int(word) for word in options.hosts.split(",")}
    (plan_programs if options.what == "programs" else plan_ranks)(options, hosts)


if __name__ == "__main__":
    main()
