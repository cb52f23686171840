"""All raw files of the centre under one folder.

site.toml                      registration of the clusters, the filesystem and its servers
pbs/201707                     accounting of one local month
late/pbs-20170706              accounting that arrives later than the rest
alps/messages-201707           launches of one local month
sacct/rhea-2017-07             accounting of the analysis cluster, one month
panda/2017-W27.json.gz         PanDA job records of one week
job_stats/TARGET or OSS/TIME.txt, md_stats/MDT/TIME.txt
                               one read per file: its time (UTC) is the name and the mtime
nfsd/SERVER/TIME.txt           one read per day of the NFS server's counters
rpctrace/golden.log            0.563 s of the MDS: the reports' listing
rpctrace/SERVER.TIME.log.gz    or .zst: minutes around incidents
truth.json                     true activity, for tests only
"""

import gzip
from pathlib import Path

import numpy as np

from simulator import centre, site, truth
from simulator.batch import payloads
from simulator.batch.payloads import Payloads
from simulator.centre import Centre
from simulator.clock import MICROSECONDS, local, local_day, utc_week
from simulator.formats import alps, panda, pbs, rpctrace, sacct, site_toml
from simulator.plan import Plan
from simulator.progress import say
from simulator.randomness import stream
from simulator.servers import counter_files, golden, nfs, server_log, traced

GOLDEN_FIRST_END_US = local(2017, 7, 5, "14:41:07") * MICROSECONDS + 211_385
_GOLDEN_NEIGHBOURS = 150  # nodes of other jobs in the golden trace
_GZIP_LEVEL = 3


def write(plan: Plan, out: Path) -> None:
    """Write the centre's files under `out`; the same plan gives the same bytes."""
    out.mkdir(parents=True, exist_ok=True)
    say(f"{(plan.end - plan.start) / 86_400:,.0f} days pass")
    happened = centre.happen(plan)
    say(f"{len(happened.jobs):,} jobs")
    (out / "site.toml").write_text(site_toml.text(plan))
    _write_batch_logs(plan, happened, out)
    inside = payloads.of_jobs(happened.jobs, stream(plan.seed, "payloads"))
    _write_panda(inside, out / "panda")
    nfs.write(plan, inside, out / "nfsd" / site.NFS_SERVER)
    if happened.golden:
        _write_golden(plan, happened, out / "rpctrace")
    around = traced.write(plan, happened, out / "rpctrace")
    totals = counter_files.write(plan, happened.sources, out)
    (out / "truth.json").write_text(truth.text(plan, happened, inside, totals, around))
    say(f"{totals.files:,} counter files; the logs are in {out}")


def _write_batch_logs(plan: Plan, happened: Centre, out: Path) -> None:
    on_machine = [job for job in happened.jobs if job.cluster == site.CLUSTER]
    in_time = [job for job in on_machine if job is not happened.late]
    _write_texts(out / "pbs", pbs.monthly_files(in_time, plan.end))
    if happened.late:
        late = "".join(pbs.monthly_files([happened.late], plan.end).values())
        _write_texts(out / "late", {f"pbs-{local_day(happened.late.submitted)}": late})
    launches = alps.monthly_files(on_machine, plan.end)
    _write_texts(out / "alps", {f"messages-{month}": text for month, text in launches.items()})
    shared = [job for job in happened.jobs if job.cluster == site.ANALYSIS_CLUSTER]
    exports = sacct.monthly_files(shared, plan.end)
    _write_texts(
        out / "sacct",
        {f"{site.ANALYSIS_CLUSTER}-{month}": text for month, text in exports.items()},
    )


def _write_texts(folder: Path, texts: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text)


def _write_panda(inside: list[Payloads], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    weeks: dict[str, list[str]] = {}
    for mine in inside:
        for ended, record in panda.records(mine):
            weeks.setdefault(utc_week(ended), []).append(record)
    say(f"{sum(map(len, weeks.values())):,} PanDA jobs")
    for week, records in weeks.items():
        # No name or time in the header: the same text gives the same bytes.
        compressed = gzip.compress(panda.text(records).encode(), _GZIP_LEVEL, mtime=0)
        (folder / f"{week}.json.gz").write_bytes(compressed)


def _write_golden(plan: Plan, happened: Centre, folder: Path) -> None:
    chance = stream(plan.seed, "golden trace")
    nodes = {apid: job.nodes for apid, job in happened.golden.items()}
    elsewhere = np.setdiff1d(np.arange(plan.node_count), np.concatenate(list(nodes.values())))
    neighbours = np.concatenate(
        [
            chance.choice(elsewhere, _GOLDEN_NEIGHBOURS, replace=False),
            [site.client(nid) for nid in site.HOST_OF_NID],
        ]
    )
    served = golden.requests(nodes, neighbours, GOLDEN_FIRST_END_US, chance)
    records = server_log.records(served, plan.seed, chance, handling_share=0)
    folder.mkdir(exist_ok=True)
    with (folder / "golden.log").open("wb") as file:
        rpctrace.write(rpctrace.lines(records, server_log.names(plan.seed)), file)
