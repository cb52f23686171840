"""The demo: all raw files of the centre under one folder.

site.toml                      registration of the cluster, the filesystem and its servers
pbs/20170705                   accounting of a local day
late/pbs-20170706              accounting that comes later than the rest
alps/messages-20170705         launches of a local day
job_stats/TARGET or OSS/TIME.txt, md_stats/MDT/TIME.txt
                               one read each: its time (UTC) is the name, and the file's mtime
rpctrace/golden.log            0.563 s of the MDS: the seeds' listing
rpctrace/SERVER.TIME.log.gz    the start of the crisis, in two dumps
truth.json                     what really happened: for tests only
"""

from pathlib import Path

import numpy as np

from simulator import centre, counter_files, crisis, golden, server_log, site, truth
from simulator.centre import END, START, Centre
from simulator.clock import MICROSECONDS, local
from simulator.formats import alps, pbs, rpctrace, site_toml
from simulator.progress import say
from simulator.randomness import stream

GOLDEN_FIRST_END_US = local(2017, 7, 5, "14:41:07") * MICROSECONDS + 211_385
_GOLDEN_NEIGHBOURS = 150  # nodes of others that show up in the golden trace


def write(seed: int, out: Path) -> None:
    """Write the centre's files under `out`; the same seed gives the same bytes."""
    out.mkdir(parents=True, exist_ok=True)
    say("three days pass")
    happened = centre.happen(seed)
    say(f"{len(happened.jobs):,} jobs")
    (out / "site.toml").write_text(site_toml.text())
    _write_batch_logs(happened, out)
    _write_golden(seed, happened, out / "rpctrace")
    traced = crisis.write(seed, happened, out / "rpctrace")
    say("counters")
    shown = counter_files.write(seed, happened.sources, START, END, out)
    (out / "truth.json").write_text(truth.text(seed, happened, shown, traced))
    say(f"written to {out}")


def _write_batch_logs(happened: Centre, out: Path) -> None:
    in_time = [job for job in happened.jobs if job is not happened.late]
    _write_texts(out / "pbs", pbs.daily_files(in_time, END))
    late = "".join(pbs.daily_files([happened.late], END).values())
    _write_texts(out / "late", {"pbs-20170706": late})
    launches = alps.daily_files(happened.jobs, END)
    _write_texts(out / "alps", {f"messages-{day}": text for day, text in launches.items()})


def _write_texts(folder: Path, texts: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text)


def _write_golden(seed: int, happened: Centre, folder: Path) -> None:
    chance = stream(seed, "golden trace")
    nodes = {apid: job.nodes for apid, job in happened.golden.items()}
    elsewhere = np.setdiff1d(np.arange(site.NODE_COUNT), np.concatenate(list(nodes.values())))
    others = np.concatenate(
        [
            chance.choice(elsewhere, _GOLDEN_NEIGHBOURS, replace=False),
            [site.client(nid) for nid in site.HOST_OF_NID],
        ]
    )
    served = golden.requests(nodes, others, GOLDEN_FIRST_END_US, chance)
    records = server_log.records(served, seed, chance, handling_share=0)
    folder.mkdir(exist_ok=True)
    with (folder / "golden.log").open("wb") as file:
        rpctrace.write(rpctrace.lines(records, server_log.names(seed)), file)
