"""Show that every operation is counted exactly once, by killing whatever runs.

usage: python -m chaos [--seeds N | --seed K]
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from chaos.installation import Installation
from chaos.run import Run
from scripts.checkout import Problem, exit_status, say

FEW = 20


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--seeds", type=int, default=FEW, help="how many")
    parser.add_argument("--seed", type=int, help="this one alone")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    seeds = range(1, arguments.seeds + 1) if arguments.seed is None else [arguments.seed]
    folder = Path(tempfile.mkdtemp(prefix="ioportal-chaos-"))
    say(f"Starting an installation in {folder}")
    site = Installation(folder)
    try:
        site.start()
        run = Run(site)
        run.seeds(seeds, say)
    finally:
        site.stop()
    if failed := [outcome.seed for outcome in run.outcomes if outcome.wrong]:
        raise Problem(f"Failed: seeds {failed}; logs are in {folder}; make chaos SEED={failed[0]}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(exit_status(main))
