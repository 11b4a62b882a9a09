#!/usr/bin/env python3
"""Makes a report of what the test runners printed.

    report.py --into DIRECTORY [--pins FILE] [--title TEXT] [--note TEXT ...] MPI:SUITE:LOG ...

Reads logs with a line a case, `ok NAME 1.23s`, `FAIL NAME 1.23s: why` and its output in
lines that begin with a bar, `skip NAME: why`. Writes junit.xml and report.html into
DIRECTORY and prints a table; the last line is `N passed, N failed`. A failure that FILE
knows as a fault of an MPI counts as pinned, not as failed; lines of FILE are
`MPI | case | output | program that shows the fault`, the first three regular expressions.
"""

import argparse
import html
import re
import sys
import time
import xml.etree.ElementTree as xml
from collections import Counter, OrderedDict
from pathlib import Path

CASE = re.compile(r"^(ok|FAIL|skip)\s+(.*)$")
SECONDS = re.compile(r" (\d+(?:\.\d+)?)s$")
KINDS = ["passed", "failed", "pinned", "skipped"]


class Case:
    def __init__(self, mpi, suite, kind, text):
        self.mpi, self.suite, self.kind, self.why, self.output = mpi, suite, kind, "", []
        self.seconds, self.pin = 0.0, ""
        name, why = text, ""
        if kind != "passed":
            # The settings in brackets may hold colons; what follows them says why.
            cut = re.search(r"(?<=[\]s\w]): (?![^\[]*\])", text)
            if cut:
                name, why = text[: cut.start()], text[cut.end() :]
        match = SECONDS.search(name)
        if match:
            self.seconds, name = float(match[1]), name[: match.start()]
        self.name, self.why = name, why

    @property
    def hosts(self):
        match = re.search(r"hosts=([\d,]+)", self.name)
        return match[1].count(",") + 1 if match else 1

    @property
    def path(self):
        match = re.search(r"path=(\w+)", self.name)
        return match[1] if match else "auto"

    @property
    def full_name(self):
        return f"{self.mpi} {self.suite} {self.name}"


def read_log(mpi, suite, path):
    cases, ended = [], False
    kinds = {"ok": "passed", "FAIL": "failed", "skip": "skipped"}
    for line in path.read_text(errors="replace").splitlines():
        match = CASE.match(line)
        if match:
            cases.append(Case(mpi, suite, kinds[match[1]], match[2]))
        elif line.startswith("     ") and cases:
            cases[-1].output.append(re.sub(r"^\| ?", "", line[5:]))
        ended = ended or re.match(r"^\d+ passed, \d+ failed$", line)
    if not ended:
        cases.append(Case(mpi, suite, "failed", "the run as a whole: did not come to its end"))
        cases[-1].output = path.read_text(errors="replace").splitlines()[-30:]
    return cases


def read_pins(path):
    pins = []
    for line in path.read_text().splitlines() if path else []:
        if line.strip() and not line.startswith("#"):
            fields = [field.strip() for field in line.split(" | ")]
            if len(fields) != 4:
                sys.exit(f"report.py: {path}: not four fields: {line}")
            pins.append(fields)
    return pins


def apply_pins(cases, pins):
    for case in cases:
        if case.kind != "failed":
            continue
        text = "\n".join([case.why, *case.output])
        for mpi, name, output, program in pins:
            if (
                re.fullmatch(mpi, case.mpi)
                and re.search(name, f"{case.suite} {case.name}")
                and re.search(output, text)
            ):
                case.kind, case.pin = "pinned", program


def junit(cases, path):
    root = xml.Element("testsuites")
    groups = OrderedDict()
    for case in cases:
        groups.setdefault((case.mpi, case.suite), []).append(case)
    for (mpi, suite), members in groups.items():
        counts = Counter(case.kind for case in members)
        element = xml.SubElement(
            root,
            "testsuite",
            name=f"{mpi}.{suite}",
            tests=str(len(members)),
            failures=str(counts["failed"]),
            skipped=str(counts["skipped"] + counts["pinned"]),
            time=f"{sum(case.seconds for case in members):.2f}",
        )
        for case in members:
            entry = xml.SubElement(
                element, "testcase", classname=f"{mpi}.{suite}", name=case.name, time=f"{case.seconds:.2f}"
            )
            if case.kind == "failed":
                failure = xml.SubElement(entry, "failure", message=clean(case.why))
                failure.text = clean("\n".join(case.output))
            elif case.kind == "pinned":
                xml.SubElement(entry, "skipped", message=clean(f"fault of {mpi}, see {case.pin}: {case.why}"))
            elif case.kind == "skipped":
                xml.SubElement(entry, "skipped", message=clean(case.why))
    xml.indent(root)
    xml.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def clean(text):
    """Without the control characters that XML does not have."""
    return re.sub(r"[^\t\n\x20-\ud7ff\ue000-\ufffd]", "?", text)


STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em; color: #222 }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse } td, th { padding: .2em .8em; text-align: left; border-bottom: 1px solid #ddd }
td.n { text-align: right; font-variant-numeric: tabular-nums }
pre { background: #f6f6f6; padding: .7em; overflow-x: auto; font-size: 12px }
.passed { color: #1a7f37 } .failed { color: #c00; font-weight: 600 } .pinned { color: #9a6700 } .skipped { color: #777 }
summary { cursor: pointer }
"""


def count_cells(counts):
    cells = (
        f'<td class="n {kind if counts[kind] else ""}">{counts[kind] or ""}</td>' for kind in KINDS
    )
    return "".join(cells)


def count_table(cases, heads, key):
    groups = Counter()
    keys = OrderedDict()
    for case in cases:
        keys[key(case)] = True
        groups[key(case), case.kind] += 1
    head = "".join(f"<th>{text}</th>" for text in [*heads, *KINDS])
    lines = [f"<table><tr>{head}</tr>"]
    for name in sorted(keys, key=lambda k: tuple(map(str, k))):
        counts = Counter({kind: groups[name, kind] for kind in KINDS})
        cells = "".join(f"<td>{html.escape(str(part))}</td>" for part in name)
        lines.append(f"<tr>{cells}{count_cells(counts)}</tr>")
    return "\n".join([*lines, "</table>"])


def page(cases, title, notes, path):
    counts = Counter(case.kind for case in cases)
    esc = html.escape
    out = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{esc(title)}</title><style>{STYLE}</style>",
        f"<h1>{esc(title)}</h1><p>{time.strftime('%Y-%m-%d %H:%M')}, {len(cases)} cases: ",
        ", ".join(f'<span class="{k}">{counts[k]} {k}</span>' for k in KINDS if counts[k] or k in KINDS[:2]),
        f"; {sum(case.seconds for case in cases) / 60:.1f} minutes of runs.</p>",
        *(f"<p>{esc(note)}</p>" for note in notes),
        "<h2>By MPI and suite</h2>",
        count_table(cases, ["MPI", "suite"], lambda c: (c.mpi, c.suite)),
        "<h2>By MPI, hosts and path</h2>",
        count_table(cases, ["MPI", "hosts", "path"], lambda c: (c.mpi, c.hosts, c.path)),
    ]
    for kind, head in [("failed", "Failed"), ("pinned", "Pinned: faults of an MPI"), ("skipped", "Skipped")]:
        members = [case for case in cases if case.kind == kind]
        if not members:
            continue
        out.append(f"<h2>{head}</h2>")
        for case in members:
            where = f" &mdash; {esc(case.pin)}" if case.pin else ""
            out.append(
                f"<details{' open' if kind == 'failed' else ''}><summary class={kind}>{esc(case.full_name)}: "
                f"{esc(case.why)}{where}</summary>"
            )
            if kind == "failed":
                out.append(f"<p>Again: <code>scripts/regress.sh --case '{esc(case.full_name)}'</code></p>")
            if case.output:
                out.append(f"<pre>{esc(chr(10).join(case.output))}</pre>")
            out.append("</details>")
    out.append("<h2>All cases</h2><table><tr><th>case<th>seconds<th></tr>")
    for case in cases:
        out.append(
            f"<tr><td>{esc(case.full_name)}<td class=n>{case.seconds:.2f}<td class={case.kind}>{case.kind}</tr>"
        )
    out.append("</table></html>")
    path.write_text("\n".join(out), encoding="utf-8", errors="replace")


def print_table(cases):
    groups = OrderedDict()
    for case in cases:
        groups.setdefault((case.mpi, case.suite, case.hosts), []).append(case)
    print(f"{'MPI':14} {'suite':10} {'hosts':>5} " + " ".join(f"{kind:>8}" for kind in KINDS) + f" {'minutes':>8}")
    for (mpi, suite, hosts), members in groups.items():
        counts = Counter(case.kind for case in members)
        numbers = " ".join(f"{counts[kind] or '':>8}" for kind in KINDS)
        minutes = sum(case.seconds for case in members) / 60
        print(f"{mpi:14} {suite:10} {hosts:>5} {numbers} {minutes:8.1f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--pins", type=Path)
    parser.add_argument("--title", default="Portolan, regression suite")
    parser.add_argument("--note", action="append", default=[])
    parser.add_argument("logs", nargs="*")
    options = parser.parse_args()
    cases = []
    for log in options.logs:
        mpi, suite, path = log.split(":", 2)
        cases += read_log(mpi, suite, Path(path))
    apply_pins(cases, read_pins(options.pins))
    options.into.mkdir(parents=True, exist_ok=True)
    junit(cases, options.into / "junit.xml")
    page(cases, options.title, options.note, options.into / "report.html")
    print_table(cases)
    for case in cases:
        if case.kind == "failed":
            print(f"FAIL {case.full_name}: {case.why}")
    for pin, number in Counter(case.pin for case in cases if case.kind == "pinned").items():
        print(f"{number} pinned by {pin}")
    counts = Counter(case.kind for case in cases)
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
