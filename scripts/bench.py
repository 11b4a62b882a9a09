#!/usr/bin/env python3
"""Usage: scripts/bench.py NAME [options]
       scripts/bench.py NAME --help

Builds the programs of an experiment, runs them in alternation, and prints medians and requirements.
The exit code is 0 if all requirements are met and no run of Portolan fails. The raw values are kept
in target/bench/NAME/raw.tsv. The experiments:
"""

import sys

sys.dont_write_bytecode = True

from bench import interfaces, kernels, scale, transfers  # the imports define the experiments
from bench.driver import Experiment, die


def main(name="--help", *arguments):
    experiments = {experiment.__name__.lower(): experiment for experiment in Experiment.__subclasses__()}
    if name in ("-h", "--help"):
        lines = (f"  {name:10} {experiment.__doc__.splitlines()[0]}" for name, experiment in experiments.items())
        print(__doc__.rstrip(), *lines, sep="\n")
        return 0
    if name not in experiments:
        die(f"there is no experiment '{name}', see --help")
    return experiments[name](arguments).main()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
