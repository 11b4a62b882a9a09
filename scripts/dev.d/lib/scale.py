#!/usr/bin/env python3
"""The values of scripts/dev bench-scale as a table, as JSON, as Markdown and as a plot.

    scale.py RAW [--json FILE] [--markdown FILE] [--svg FILE]

RAW has lines of MPI, ranks of a node (0: all), ranks, figure, value, parted by tabs; of
several values of a figure the last one counts. Prints each figure with its bound, if it has
one; the exit code is 0 when none is beyond it.
"""

import argparse
import json
import math
import sys

# Figure, unit, and label.
FIGURES = [
    ("mpi_init", "ms", "MPI_Init"),
    ("start", "ms", "start, beyond MPI_Init"),
    ("stop", "ms", "stop"),
    ("allocate", "us", "allocate 4 KiB"),
    ("free", "us", "free"),
    ("allocate_many", "us", "allocate 1,000 in one call"),
    ("allocate_ten", "us", "allocate ten, one by one"),
    ("barrier", "us", "barrier"),
    ("allreduce_1", "us", "allreduce of 1 double"),
    ("allreduce_1024", "us", "allreduce of 1,024"),
    ("broadcast_1024", "us", "broadcast of 1,024"),
    ("counter", "us", "counter, by all"),
    ("lock", "us", "lock and unlock, by all"),
    ("put_all", "us", "put to all, fence"),
    ("memory", "KiB", "memory a rank"),
]
BESIDE_MPI = ["barrier", "allreduce_1", "allreduce_1024", "broadcast_1024"]
# MPI (empty: any), ranks per node (0: all), ranks, figure, upper bound.
BOUNDS = [
    ("mpich", 0, 64, "start", 700),
    ("openmpi", 0, 256, "start", 3000),
    ("", 0, 256, "allocate", 20000),
    ("", 4, 64, "counter", 500),
    ("", 4, 64, "lock", 5000),
]
MOST_OF_MPI = 1.0  # upper bound, as a fraction of the time of MPI's own collective
PANELS = ["start", "allocate", "barrier", "allreduce_1", "allreduce_1024", "memory"]
COLOURS = {"mpich": "#1f5fa8", "openmpi": "#b5541c"}


def read(path):
    runs = {}
    with open(path, encoding="ascii") as lines:
        for line in lines:
            mpi, node, ranks, figure, value = line.rstrip("\n").split("\t")
            runs.setdefault((mpi, int(node), int(ranks)), {})[figure] = float(value)
    return dict(sorted(runs.items()))


def bound(run, figure):
    for mpi, node, ranks, name, most in BOUNDS:
        if name == figure and mpi in ("", run[0]) and node == run[1] and ranks == run[2]:
            return most
    return None


def ratio(values, figure):
    theirs = values.get("mpi_" + figure)
    return values[figure] / theirs if theirs and figure in values else None


def short(value):
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def place(node):
    return "one node" if node == 0 else f"nodes of {node}"


def judge(runs):
    """Prints all figures; whether none is beyond its bound."""
    good = True
    for run, values in runs.items():
        print(f"{run[0]}, {run[2]} ranks, {place(run[1])}")
        for figure, unit, name in FIGURES:
            if figure not in values:
                continue
            line = f"     {name:28} {short(values[figure]):>10} {unit}"
            most, of_mpi = bound(run, figure), ratio(values, figure)
            verdict = None
            if most is not None:
                verdict = values[figure] <= most
                line += f", at most {most}"
            if figure in BESIDE_MPI and of_mpi is not None:
                verdict = of_mpi <= MOST_OF_MPI
                line += f", {of_mpi:.2f} of MPI's, at most {MOST_OF_MPI:g}"
            if verdict is not None:
                line = ("ok  " if verdict else "FAIL") + line[4:]
                good = good and verdict
            print(line)
    return good


def markdown(runs):
    out = []
    for mpi, node in dict.fromkeys(run[:2] for run in runs):
        columns = [run for run in runs if run[:2] == (mpi, node)]
        out.append(f"\n### {mpi}, {place(node)}\n")
        out.append("| | " + " | ".join(f"{run[2]} ranks" for run in columns) + " |")
        out.append("|---|" + "---|" * len(columns))
        for figure, unit, name in FIGURES:
            cells = []
            for run in columns:
                values = runs[run]
                cell = short(values[figure]) if figure in values else "-"
                of_mpi = ratio(values, figure)
                if figure in BESIDE_MPI and of_mpi is not None:
                    cell += f" ({of_mpi:.2f})"
                most = bound(run, figure)
                if most is not None and figure in values:
                    cell += f" [{short(most)}]"
                cells.append(cell)
            if any(cell != "-" for cell in cells):
                out.append(f"| {name}, {unit} | " + " | ".join(cells) + " |")
    return "\n".join(out) + "\n"


def svg(runs):
    """A panel for each figure, both axes logarithmic; MPI's own as a dotted line."""
    wide, high, margin = 330, 230, 48
    columns = 3
    rows = (len(PANELS) + columns - 1) // columns
    width, height = columns * wide, rows * high + 34
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11">',
        "<title>What grows with the number of ranks</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    names = {figure: f"{name}, {unit}" for figure, unit, name in FIGURES}
    all_ranks = sorted({run[2] for run in runs})
    lines = list(dict.fromkeys(run[:2] for run in runs))
    for number, figure in enumerate(PANELS):
        left = number % columns * wide + margin
        top = number // columns * high + 26
        right, bottom = left + wide - margin - 14, top + high - 56
        wanted = [figure] + (["mpi_" + figure] if figure in BESIDE_MPI else [])
        values = [runs[run][name] for run in runs for name in wanted if runs[run].get(name, 0) > 0]
        if not values:
            continue
        low = math.floor(math.log10(min(values)))
        top_power = max(math.ceil(math.log10(max(values))), low + 1)
        first, last = math.log2(all_ranks[0]), math.log2(max(all_ranks[-1], all_ranks[0] * 2))

        def x(ranks):
            return left + (math.log2(ranks) - first) / (last - first) * (right - left)

        def y(value):
            return bottom - (math.log10(value) - low) / (top_power - low) * (bottom - top)

        out.append(f'<text x="{left}" y="{top - 8}" font-weight="bold">{names[figure]}</text>')
        for power in range(low, top_power + 1):
            at = y(10**power)
            text = f"{10**power:,}" if power >= 0 else f"{10**power:g}"
            out.append(
                f'<path d="M{left} {at:.1f} H{right}" stroke="#dfe5ec"/>'
                f'<text x="{left - 5}" y="{at + 4:.1f}" text-anchor="end">{text}</text>'
            )
        for ranks in all_ranks:
            out.append(f'<text x="{x(ranks):.1f}" y="{bottom + 15}" text-anchor="middle">{ranks}</text>')
        for mpi, node in lines:
            for name in wanted:
                points = [
                    (x(run[2]), y(runs[run][name]))
                    for run in runs
                    if run[:2] == (mpi, node) and runs[run].get(name, 0) > 0
                ]
                if name != figure and node != 0 or not points:
                    continue
                path = " L".join(f"{a:.1f} {b:.1f}" for a, b in points)
                dash = "1 4" if name != figure else ("" if node == 0 else "6 3")
                colour = COLOURS.get(mpi, "#444444")
                out.append(
                    f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.6"'
                    + (f' stroke-dasharray="{dash}"' if dash else "")
                    + f'><title>{mpi}, {place(node)}, {name}</title></path>'
                )
                if name == figure:
                    out.extend(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.2" fill="{colour}"/>' for a, b in points)
    at = margin
    for mpi in dict.fromkeys(line[0] for line in lines):
        colour = COLOURS.get(mpi, "#444444")
        out.append(f'<text x="{at}" y="{height - 10}" fill="{colour}" font-weight="bold">{mpi}</text>')
        at += 12 * len(mpi)
    out.append(
        f'<text x="{at}" y="{height - 10}">solid: one node; dashed: virtual nodes of four; '
        "dotted: MPI's own collective; number of ranks to the right</text>"
    )
    out.append("</svg>\n")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("raw")
    for form in ("json", "markdown", "svg"):
        parser.add_argument("--" + form)
    options = parser.parse_args()
    runs = read(options.raw)
    if not runs:
        sys.exit(f"{options.raw} has no values")
    good = judge(runs)
    if options.json:
        listed = [
            {"mpi": run[0], "ranks_of_a_node": run[1], "ranks": run[2], "values": values}
            for run, values in runs.items()
        ]
        units = {figure: unit for figure, unit, _ in FIGURES}
        with open(options.json, "w", encoding="ascii") as file:
            json.dump({"units": units, "runs": listed}, file, indent=1)
            file.write("\n")
    for path, make in ((options.markdown, markdown), (options.svg, svg)):
        if path:
            with open(path, "w", encoding="utf-8") as file:
                file.write(make(runs))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
