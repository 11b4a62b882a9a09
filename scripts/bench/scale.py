"""The growth of costs with the number of ranks: its bounds, tables and plot."""

import math

from .driver import Experiment, Run, flag, numbers, option
from .values import COLOURS, Drawing, Values, markdown, number

# Figure: label and unit.
FIGURES = {
    "mpi_init": "MPI_Init, ms",
    "start": "start, beyond MPI_Init, ms",
    "stop": "stop, ms",
    "allocate": "allocate 4 KiB, us",
    "free": "free, us",
    "allocate_many": "allocate 1,000 in one call, us",
    "allocate_ten": "allocate ten, one by one, us",
    "barrier": "barrier, us",
    "allreduce_1": "allreduce of 1 double, us",
    "allreduce_1024": "allreduce of 1,024, us",
    "broadcast_1024": "broadcast of 1,024, us",
    "counter": "counter, by all, us",
    "lock": "lock and unlock, by all, us",
    "put_all": "put to all, fence, us",
    "memory": "memory a rank, KiB",
}
BESIDE_MPI = ["barrier", "allreduce_1", "allreduce_1024", "broadcast_1024"]
# Figure, upper bound (or one for each MPI), and place.
BOUNDS = [
    ("start", (700, None), "64 ranks, one node"),
    ("start", (None, 3000), "256 ranks, one node"),
    ("allocate", 20000, "256 ranks, one node"),
    ("counter", 500, "64 ranks, nodes of 4"),
    ("lock", 5000, "64 ranks, nodes of 4"),
]
PANELS = ["start", "allocate", "barrier", "allreduce_1", "allreduce_1024", "memory"]


class Scale(Experiment):
    """growth of costs with the number of ranks

    Measures how costs grow with the number of ranks (benches/c/scale_bench.c), on one node and on
    virtual nodes, compared with MPI's own collectives in the same run. Prints the figures and the
    bounds of those that have one. Writes to target/bench/scale/: all values (raw.tsv), tables for
    docs/scale-measured.md (tables.md), and the plot of the growth (scale-measured.svg).
    """

    rounds = 1
    options = {
        "--ranks": option("N,...", "numbers of ranks (128 and 256 take minutes)", "2,4,16,64", numbers),
        "--nodes": option("K,...", "ranks per node (0 is one node for all)", "0,4", numbers),
        "--more": flag("keep the values of earlier calls; values that are measured again replace them"),
    }
    passes = "scale_bench, for example --quick"
    source, libraries = "benches/c/scale_bench.c", ["-larmci"]
    title = "{mpi}, {place}: us; mpi_init, start and stop: ms; memory: KiB"
    needs = [(f"{figure} over MPI's", f"{figure} / mpi_{figure}", "<=", 1) for figure in BESIDE_MPI]
    needs += [(figure, figure, "<=", most, place) for figure, most, place in BOUNDS]

    def places(self):
        return [f"{ranks} ranks, {node_name(node)}" for node in self.o.nodes for ranks in self.o.ranks]

    def measure(self):
        again = {(self.mpi.name, place) for place in self.places()}
        self.rows = [row for row in self.rows if row[:2] not in again]
        super().measure()

    def runs(self, place):
        node, ranks = place_of(place)
        yield [Run("ours", [self.program, *self.rest], ranks, "none", {"PORTOLAN_NODE_SIZE": str(node)}, limit=900)]

    def finish(self):
        runs = {}
        for mpi, place in sorted({row[:2] for row in self.rows}, key=lambda at: (at[0], *place_of(at[1]))):
            medians = Values([row[2:] for row in self.rows if row[:2] == (mpi, place)])
            runs[mpi, *place_of(place)] = {case: medians.median("ours", case) for case in medians.cases}
        (self.out / "tables.md").write_text(tables(runs))
        plot(runs, self.out / "scale-measured.svg")


def node_name(node):
    return "one node" if node == 0 else f"nodes of {node}"


def place_of(place):
    """Returns the ranks per node and the ranks."""
    ranks, node = place.split(" ranks, ")
    return 0 if node == "one node" else int(node.split()[-1]), int(ranks)


def cell(run, values, figure):
    """Returns a figure, the ratio to MPI's in brackets, and the bound in square brackets."""
    text, (mpi, node, ranks) = number(values.get(figure)), run
    if figure in BESIDE_MPI and figure in values and values.get("mpi_" + figure):
        text += f" ({values[figure] / values['mpi_' + figure]:.2f})"
    for name, most, place in BOUNDS if figure in values else []:
        most = most[mpi == "openmpi"] if isinstance(most, tuple) else most
        if (name, place) == (figure, f"{ranks} ranks, {node_name(node)}") and most is not None:
            text += f" [{number(most)}]"
    return text


def tables(runs):
    """Returns a table for each MPI and size of nodes, in Markdown."""
    out = []
    for mpi, node in dict.fromkeys(run[:2] for run in runs):
        columns = [run for run in runs if run[:2] == (mpi, node)]
        lines = [["", *(f"{run[2]} ranks" for run in columns)]]
        for figure, label in FIGURES.items():
            cells = [cell(run, runs[run], figure) for run in columns]
            lines += [[label, *cells]] if set(cells) != {"-"} else []
        out.append(f"\n### {mpi}, {node_name(node)}\n\n{markdown(lines)}\n")
    return "".join(out)


def plot(runs, path):
    """Draws a panel for each figure, both axes logarithmic; MPI's own as a dotted line."""
    wide, high, margin, columns = 330, 230, 48, 3
    height = -(-len(PANELS) // columns) * high + 34
    drawing = Drawing(columns * wide, height, "Growth with the number of ranks")
    all_ranks = sorted({run[2] for run in runs})
    first, last = math.log2(all_ranks[0]), math.log2(max(all_ranks[-1], all_ranks[0] * 2))
    lines = list(dict.fromkeys(run[:2] for run in runs))
    for position, figure in enumerate(PANELS):
        left, top = position % columns * wide + margin, position // columns * high + 26
        right, bottom = left + wide - margin - 14, top + high - 56
        wanted = [figure] + (["mpi_" + figure] if figure in BESIDE_MPI else [])
        values = [runs[run][name] for run in runs for name in wanted if runs[run].get(name, 0) > 0]
        if not values:
            continue
        low = math.floor(math.log10(min(values)))
        top_power = max(math.ceil(math.log10(max(values))), low + 1)

        def x(ranks):
            return left + (math.log2(ranks) - first) / (last - first) * (right - left)

        def y(value):
            return bottom - (math.log10(value) - low) / (top_power - low) * (bottom - top)

        drawing.text(left, top - 8, FIGURES[figure], 'font-weight="bold"')
        for power in range(low, top_power + 1):
            at = y(10**power)
            drawing.path(f"M{left} {at:.1f} H{right}", "#dfe5ec")
            drawing.text(left - 5, at + 4, f"{10**power:,}" if power >= 0 else f"{10**power:g}", 'text-anchor="end"')
        for ranks in all_ranks:
            drawing.text(x(ranks), bottom + 15, ranks, 'text-anchor="middle"')
        for (mpi, node), name in ((line, name) for line in lines for name in wanted):
            its = [run for run in runs if run[:2] == (mpi, node) and runs[run].get(name, 0) > 0]
            if (name != figure and node != 0) or not its:
                continue
            points = [(x(run[2]), y(runs[run][name])) for run in its]
            dash = "1 4" if name != figure else ("" if node == 0 else "6 3")
            more = 'fill="none" stroke-width="1.6"' + (f' stroke-dasharray="{dash}"' if dash else "")
            colour = COLOURS.get(mpi, "#444444")
            line = "M" + " L".join(f"{a:.1f} {b:.1f}" for a, b in points)
            drawing.path(line, colour, more, f"{mpi}, {node_name(node)}, {name}")
            for a, b in points if name == figure else []:
                drawing.dot(a, b, 2.2, colour)
    at = margin
    for mpi in dict.fromkeys(line[0] for line in lines):
        drawing.text(at, height - 10, mpi, f'fill="{COLOURS.get(mpi, "#444444")}" font-weight="bold"')
        at += 12 * len(mpi)
    legend = "solid: one node; dashed: virtual nodes of four; dotted: MPI's own collective; "
    legend += "number of ranks to the right"
    drawing.text(at, height - 10, legend)
    drawing.write(path)
