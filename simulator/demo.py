"""The demo centre: all raw files of a few days, under one folder."""

from pathlib import Path

import numpy as np

from simulator import golden, site
from simulator.clock import MICROSECONDS, local
from simulator.formats import alps, pbs, rpctrace, site_toml
from simulator.jobs import Job, Launch
from simulator.randomness import stream
from simulator.server_log import names, records

END = local(2017, 7, 8)
GOLDEN_FIRST_END_US = local(2017, 7, 5, "14:41:07") * MICROSECONDS + 211_385


def write(seed: int, out: Path) -> None:
    """Write the centre's files under `out`."""
    jobs = _golden_jobs(seed)
    out.mkdir(parents=True, exist_ok=True)
    (out / "site.toml").write_text(site_toml.text())
    _write_texts(out / "pbs", pbs.daily_files(jobs, END))
    _write_texts(
        out / "alps", {f"messages-{day}": text for day, text in alps.daily_files(jobs, END).items()}
    )
    _write_golden(seed, jobs, out / "rpctrace" / "golden.log")


def _write_texts(folder: Path, texts: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text)


def _golden_jobs(seed: int) -> list[Job]:
    rng = stream(seed, "golden nodes")
    nodes = rng.permutation(site.NODE_COUNT)
    jobs = []
    for apid, number, start, launched_us, end in (
        (9_205_355, 3_519_633, "14:31:02", 14_334_071, "16:12:40"),
        (9_205_593, 3_519_650, "14:38:48", 14_402_917, "16:31:15"),
    ):
        count = golden.NODES[apid]
        mine, nodes = np.sort(nodes[:count]), nodes[count:]
        started = local(2017, 7, 5, start)
        ended = local(2017, 7, 5, end)
        job = Job(
            number=number,
            user=site.PANDA,
            name="atlas_pilot",
            queue="batch",
            node_count=count,
            limit_s=7_200,
            submitted=started - 1_871,
            started=started,
            ended=ended,
            nodes=mine,
        )
        job.launches.append(
            Launch(
                apid,
                started * MICROSECONDS + launched_us,
                (ended - 4) * MICROSECONDS + 338_120,
                mine,
                "./wrapper_mpi.py",
            )
        )
        jobs.append(job)
    return jobs


def _write_golden(seed: int, jobs: list[Job], path: Path) -> None:
    rng = stream(seed, "golden trace")
    nodes = {launch.apid: launch.nodes for job in jobs for launch in job.launches}
    free = np.setdiff1d(np.arange(site.NODE_COUNT), np.concatenate(list(nodes.values())))
    others = np.concatenate([rng.choice(free, 150), [site.client(n) for n in site.LOGIN_NIDS]])
    served = golden.requests(nodes, others, GOLDEN_FIRST_END_US, rng)
    text = rpctrace.lines(records(served, seed, rng, handling_share=0), names(seed))
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        rpctrace.write(text, file)
