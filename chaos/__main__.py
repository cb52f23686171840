"""Verify that every operation is counted exactly once while processes are killed.

usage: python -m chaos [--seeds N | --seed K]

Exit status: 0 if every operation was counted once, 1 if not, and 3 if this is unknown, because the
machine was too slow to deliver all batches in time.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from chaos import report
from chaos.installation import Installation
from chaos.run import Run
from scripts.checkout import Problem, exit_status, say

FEW = 20
INCONCLUSIVE = 3  # 2 is a usage error


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--seeds", type=int, default=FEW, help="how many")
    parser.add_argument("--seed", type=int, help="run only this seed")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    seeds = range(1, arguments.seeds + 1) if arguments.seed is None else [arguments.seed]
    folder = Path(tempfile.mkdtemp(prefix="ioportal-chaos-"))
    say(f"Starting an installation in {folder}")
    site = Installation(folder)
    try:
        site.start()
        run = Run(site)
        for outcome in run.seeds(seeds):
            say(outcome.line(len(run.outcomes), len(seeds)))
            run.save()
        say("Comparing all sums")
        wrong = run.conclude()
        run.save(wrong)
        say(f"Compared {run.sums_compared} sums of ten minutes; later sums may still change")
    finally:
        site.stop()
    failed = [outcome.seed for outcome in run.outcomes if outcome.wrong]
    if failed or wrong:
        wrong += [f"seed {seed} failed: make chaos SEED={seed}" for seed in failed]
        raise Problem("\n".join([*wrong, f"Logs are in {folder}"]))
    shutil.rmtree(folder)
    unknown = [outcome.seed for outcome in run.outcomes if outcome.inconclusive]
    if unknown or not run.is_delivered:
        say(f"Inconclusive: seeds {unknown} did not finish, see {report.FILE}. Nothing is known to")
        say("be lost. Repeat them on a faster machine or without other load: make chaos SEED=...")
        sys.exit(INCONCLUSIVE)
    say(f"No operation was lost or counted twice: see {report.FILE}")


if __name__ == "__main__":
    sys.exit(exit_status(main))
