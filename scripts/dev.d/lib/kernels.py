#!/usr/bin/env python3
"""The values of scripts/dev bench-kernels as tables and as a plot.

    kernels.py RAW [--markdown] [--svg FILE]

RAW has lines of MPI, configuration, round, kernel, side, version, ranks, seconds, processor
seconds per rank, rate, unit, and whether the result is right, parted by tabs. A ratio is the
median over the rounds of the best peer's rate divided by Portolan's: below 1, Portolan is faster.
Direct versions, which make one operation for each item, are compared with direct versions, and
all others with all others. The exit code is 0 if all results are right.
"""

import argparse
import math
import statistics
import sys

CONFIGS = {
    "node": "2 ranks on a node",
    "node4": "4 ranks on a node",
    "node8": "8 ranks on a node",
    "node16": "16 ranks on a node",
    "virtual": "4 ranks in virtual nodes of 2",
    "hosts1": "1 host",
    "hosts2": "2 hosts, TCP",
    "hosts4": "4 hosts, TCP",
    "hosts2x2": "2 hosts with 2 ranks each, TCP",
}
MPIS = {"mpich": "MPICH", "openmpi": "Open MPI"}
SIDES = {"mpi": "messages", "window": "windows", "shmem": "OpenSHMEM"}
NAMES = {**SIDES, "armci": "ARMCI-MPI"}
ORDER = [
    "nstream", "stencil-r1", "stencil-r4", "transpose", "sync-p2p", "sync-hops", "sparse",
    "histogram", "gather", "sparse-transpose", "toposort", "triangles", "isx", "random-access",
    "ptrans", "uts",
]
COLOURS = {"mpich": "#1f5fa8", "openmpi": "#b5541c"}


class Row:
    """A kernel of Portolan in a configuration, and its peers."""

    def __init__(self, name, unit, ours, peers, bound):
        self.name, self.unit, self.ours, self.peers, self.bound = name, unit, ours, peers, bound

    def ratio(self, index=0):
        """Returns the best peer and the ratio to it; index 1 is for processor time."""
        best = {}
        for peer, values in self.peers.items():
            rounds = [r for r in self.ours if r in values]
            if rounds:
                best[peer] = statistics.median(values[r][index] / self.ours[r][index] for r in rounds)
        if not best:
            return None, None
        peer = max(best, key=best.get)
        return peer, best[peer]

    def to_bound(self):
        rounds = [r for r in self.ours if r in self.bound]
        if not rounds:
            return None
        return statistics.median(self.bound[r][0] / self.ours[r][0] for r in rounds)


def read(path):
    """Returns the values by (MPI, configuration) and (kernel, side, version), and the wrong ones."""
    values, units, wrong = {}, {}, set()
    with open(path, encoding="ascii") as lines:
        for line in lines:
            mpi, config, turn, kernel, side, version, _, took, used, rate, unit, right = line.rstrip("\n").split("\t")
            if right != "yes":
                wrong.add((mpi, config, kernel, side, version))
                continue
            took, used, rate = float(took), float(used), float(rate)
            per_second = rate * took / used if used > 0 else math.nan
            case = values.setdefault((mpi, config), {}).setdefault((kernel, side, version), {})
            case[turn] = (rate, per_second)
            units[kernel] = unit
    return values, units, sorted(wrong)


def rows_of(cases, units):
    rows = []
    for kernel in ORDER:
        ours = [(v, x) for (k, side, v), x in cases.items() if k == kernel and side == "portolan" and v != "armci"]
        several = len(ours) > 1
        for version, values in ours:
            direct = version == "direct"
            peers = {
                side: x
                for (k, side, v), x in cases.items()
                if k == kernel and side in SIDES and (v == "direct") == direct
            }
            bound = cases.get((kernel, "local", "no exchange"), {})
            name = f"{kernel}, {version}" if several else kernel
            rows.append(Row(name, units[kernel], values, peers, bound))
    for kernel in ORDER:
        values, peer = cases.get((kernel, "portolan", "armci")), cases.get((kernel, "armci", "armci"))
        if values and peer:
            rows.append(Row(f"{kernel}, in C", units[kernel], values, {"armci": peer}, {}))
    return rows


def number(value):
    if value is None:
        return "-"
    digits = 3 - math.ceil(math.log10(value)) if value > 0 else 0
    return f"{value:,.{max(digits, 0)}f}"


def middle(values):
    return statistics.median(v[0] for v in values.values()) if values else None


def table(rows, config):
    """Returns a table of a run, with all peers."""
    present = [side for side in NAMES if any(side in row.peers for row in rows)]
    hosts = config.startswith("hosts")
    heads = ["kernel", "unit", "Portolan", *[NAMES[side] for side in present], "ratio"]
    heads.append("ratio of processor time" if hosts else "to the bound")
    lines = [heads]
    for row in rows:
        last = row.ratio(1)[1] if hosts else row.to_bound()
        cells = [row.name, row.unit, number(middle(row.ours))]
        cells += [number(middle(row.peers.get(side))) for side in present]
        lines.append(cells + ["-" if x is None else f"{x:.2f}" for x in (row.ratio()[1], last)])
    widths = [max(map(len, column)) for column in zip(*lines)]
    pad = lambda i, cell: cell.ljust(widths[i]) if i < 2 else cell.rjust(widths[i])
    return "\n".join("  ".join(pad(i, cell) for i, cell in enumerate(cells)).rstrip() for cells in lines)


def markdown(runs, config):
    """Returns a table of a configuration by kernel, with the best peer under each MPI."""
    mpis = [mpi for mpi, its in runs if its == config]
    hosts = config.startswith("hosts")
    columns = ["Portolan", "best peer", "ratio", *(["processor"] if hosts else [])]
    heads = ["kernel", "unit", *[f"{MPIS.get(mpi, mpi)}: {c}" if c == "Portolan" else c for mpi in mpis for c in columns]]
    names = []
    for mpi in mpis:
        names += [(row.name, row.unit) for row in runs[mpi, config] if (row.name, row.unit) not in names]
    out = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for name, unit in names:
        cells = [name, unit]
        for mpi in mpis:
            row = next((row for row in runs[mpi, config] if row.name == name), None)
            peer, ratio = row.ratio() if row else (None, None)
            if row is None or ratio is None:
                cells += ["-" if row is None else number(middle(row.ours)), *["-"] * (len(columns) - 1)]
                continue
            cells += [number(middle(row.ours)), f"{number(middle(row.peers[peer]))} {NAMES[peer]}", f"{ratio:.2f}"]
            if hosts:
                cells.append(f"{row.ratio(1)[1]:.2f}")
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out)


def plot(runs, path):
    """Draws the ratios of all runs on one logarithmic axis, a row for each kernel."""
    configs = [c for c in CONFIGS if any(config == c for _, config in runs)]
    names = []
    for rows in runs.values():
        names += [row.name for row in rows if row.ratio()[1] and row.name not in names]
    low, high, left, width, line = 0.01, 4.0, 180, 250, 17
    panel, top = width + 40, 46
    scale = lambda r: width * (math.log10(min(max(r, low), high)) - math.log10(low)) / (math.log10(high) - math.log10(low))
    total, height = left + panel * len(configs), top + line * len(names) + 30
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}" font-family="sans-serif" font-size="11">',
        "<title>The best peer's rate divided by Portolan's</title>",
        f'<rect width="{total}" height="{height}" fill="#ffffff"/>',
    ]
    for k, (mpi, label) in enumerate(MPIS.items()):
        svg.append(f'<circle cx="{left + 70 * k + 4}" cy="12" r="4" fill="{COLOURS[mpi]}"/>')
        svg.append(f'<text x="{left + 70 * k + 12}" y="16">{label}</text>')
    for i, name in enumerate(names):
        svg.append(f'<text x="{left - 12}" y="{top + line * i + 12}" text-anchor="end">{name}</text>')
    for c, config in enumerate(configs):
        x = left + panel * c
        bottom = top + line * len(names)
        svg.append(f'<text x="{x}" y="{top - 12}" font-weight="bold">{CONFIGS[config]}</text>')
        for tick in (0.01, 0.1, 0.5, 1, 2, 4):
            at, colour = x + scale(tick), "#444444" if tick == 1 else "#dfe5ec"
            svg.append(f'<path d="M{at:.1f} {top} V{bottom}" stroke="{colour}"/>')
            svg.append(f'<text x="{at:.1f}" y="{bottom + 14}" text-anchor="middle">{tick:g}</text>')
        for (mpi, its), rows in runs.items():
            if its != config:
                continue
            shift = 5 if mpi == "mpich" else 11
            for row in rows:
                peer, ratio = row.ratio()
                if ratio is None:
                    continue
                y = top + line * names.index(row.name) + shift
                one, at = x + scale(1), x + scale(ratio)
                svg.append(f'<path d="M{one:.1f} {y} H{at:.1f}" stroke="{COLOURS.get(mpi, "#777777")}" stroke-width="5">')
                svg[-1] += f"<title>{row.name}, {MPIS.get(mpi, mpi)}: {ratio:.2f} of {peer}</title></path>"
    svg.append(f'<text x="{left}" y="{height - 2}">best peer / Portolan: left of 1, Portolan is faster</text>')
    with open(path, "w", encoding="ascii") as out:
        out.write("\n".join([*svg, "</svg>"]) + "\n")


def main():
    if any(a in ("-h", "--help") for a in sys.argv[1:]):
        print(__doc__)
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("raw")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--svg")
    args = parser.parse_args()
    values, units, wrong = read(args.raw)
    runs = {run: rows_of(cases, units) for run, cases in values.items()}
    if args.markdown:
        for config in (c for c in CONFIGS if any(c == its for _, its in runs)):
            print(f"**{CONFIGS[config]}**\n\n{markdown(runs, config)}\n")
    else:
        for (mpi, config), rows in runs.items():
            print(f"{MPIS.get(mpi, mpi)}, {CONFIGS[config]}\n\n{table(rows, config)}\n")
    for case in wrong:
        print("wrong: " + ", ".join(case))
    if args.svg:
        plot(runs, args.svg)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
