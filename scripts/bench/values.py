"""Measured values: medians over rounds, formulas of requirements, tables and drawings."""

import math
import re
import statistics

COLOURS = {"mpich": "#1f5fa8", "openmpi": "#b5541c"}


class Values:
    """The values of one MPI in one place, by side and case, then by round.

    If a round has several values of a case, the minimum counts.
    """

    def __init__(self, rows):
        self.rounds = {}
        for turn, side, case, value in rows:
            of = self.rounds.setdefault((side, case), {})
            of[turn] = min(float(value), of.get(turn, math.inf))
        self.cases = list(dict.fromkeys(case for _, case in self.rounds))

    def median(self, side, case):
        values = self.rounds.get((side, case))
        return statistics.median(values.values()) if values else None

    def evaluate(self, formula):
        """Returns the median over the rounds of a formula, or None if a name has no value.

        Names are those of cases of the side `ours`, and SIDE_CASE for other sides, with `_` for
        every other character. Load affects all values of a round, so this varies less than a
        formula of medians.
        """
        names = {}
        for (side, case), values in self.rounds.items():
            name = re.sub(r"\W", "_", case if side == "ours" else f"{side}_{case}")
            for turn, value in values.items():
                names.setdefault(turn, {"__builtins__": {}, "max": max, "min": min})[name] = value
        found, code = [], compile(str(formula), "formula", "eval")
        for turn in names:
            try:
                found.append(eval(code, names[turn]))
            except (NameError, ZeroDivisionError):
                pass
        return statistics.median(found) if found else None

    def of(self, formula, case):
        """Evaluates a formula in which {} is the case."""
        return self.evaluate(formula.replace("{}", re.sub(r"\W", "_", case)))


def show(value):
    """Prints a value of any size for the screen."""
    if value in (None, math.inf):
        return "-"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def number(value):
    """Prints three significant digits for a page."""
    if value is None:
        return "-"
    digits = 3 - math.ceil(math.log10(value)) if value > 0 else 0
    return f"{value:,.{max(digits, 0)}f}"


def hundredths(value):
    return "-" if value is None else f"{value:.2f}"


def side(name):
    """The column of the medians of a side."""
    return lambda values, case: show(values.median(name, case))


def formula(text, form=hundredths):
    """The column of a formula in which {} is the case."""
    return lambda values, case: form(values.of(text, case))


def table(lines, left=1):
    """Returns the lines with cells aligned: the first columns to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    return [
        "  ".join(c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))).rstrip()
        for line in lines
    ]


def markdown(lines):
    """Returns a table in Markdown; the first line has the headings."""
    rows = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([rows[0], "|" + "---|" * len(lines[0]), *rows[1:]])


class Drawing:
    """An SVG."""

    def __init__(self, width, height, title):
        space, font = 'xmlns="http://www.w3.org/2000/svg"', 'font-family="sans-serif" font-size="11"'
        head = f'<svg {space} viewBox="0 0 {width} {height}" {font}>'
        self.lines = [head, f"<title>{title}</title>", f'<rect width="{width}" height="{height}" fill="#ffffff"/>']

    def text(self, x, y, text, more=""):
        self.lines.append(f'<text x="{x:.1f}" y="{y:.1f}" {more}>{text}</text>')

    def path(self, d, stroke, more="", title=""):
        self.lines.append(f'<path d="{d}" stroke="{stroke}" {more}><title>{title}</title></path>')

    def dot(self, x, y, radius, colour):
        self.lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"/>')

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join([*self.lines, "</svg>"]) + "\n")
