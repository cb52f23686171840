"""Write the hours before the first run of `live` in one step, with few reads of the counters.

past/rpctrace/TIME.log                      the debug log of the MDS, until a time
past/job_stats/TIME.txt, md_stats/TIME.txt  one read per file: its time is the mtime, too
past/squeue.txt, sacct.txt                  the latest output of commands

The other logs are files of `live`, which continues them.
"""

import os
from pathlib import Path
from time import time

from simulator.clock import HOUR_S, MINUTE_S, utc_name
from simulator.live import PRINTED_AHEAD_S, Live, State
from simulator.progress import say

CALM_S = 13 * HOUR_S // 2  # enough for a baseline: 1,000 windows of 10 s with half of the load
_READ_EVERY_S = 10 * MINUTE_S
_READ = ("job_stats", "md_stats")


def write(folder: Path, *, seed: int, pace: int) -> None:
    """Write all logs up to now, unless `live` or this command has written below `folder`."""
    past = folder / "past"
    if (folder / "state.json").exists():
        return
    for name in ("rpctrace", *_READ):
        (past / name).mkdir(parents=True, exist_ok=True)
    now = int(time())
    live = Live(folder, State(seed, pace, begun=now - CALM_S, opened=now, until=now - CALM_S))
    while live.until < now:
        live.write(min(now, live.until + _READ_EVERY_S))
        printed = live.printed()
        (folder / "rpctrace.log").rename(past / f"rpctrace/{utc_name(live.until)}.log")
        at = live.until + PRINTED_AHEAD_S
        for name in _READ:
            path = past / name / f"{utc_name(at)}.txt"
            path.write_text(printed[name])
            os.utime(path, (at, at))
    for name in ("squeue", "sacct"):
        (past / f"{name}.txt").write_text(printed[name])
    live.save()
    say(f"{CALM_S / HOUR_S} hours are in {past}")
