"""Writes the input of the portal: the history, and the stream step by step."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from simulator import site
from simulator.batch.jobs import Ints
from simulator.clock import MICROSECONDS, MINUTE_S, iso, utc_name
from simulator.formats import exports, job_stats, md_stats, rpctrace, sacct, site_toml, squeue
from simulator.labelled import tracing
from simulator.labelled.cast import NODE_COUNT
from simulator.labelled.counting import KEPT_S, Counting
from simulator.labelled.scene import Scene
from simulator.labelled.service import Service
from simulator.randomness import stream
from simulator.servers import dumps, server_log

FILESYSTEM, MDS, OSS = "lake", "lake-mds1", "lake-oss1"
MDT, OST = "lake-MDT0000", "lake-OST0000"
EXPORTS = "lake-mds1-exports"  # registered source
STEP_S = 30
_READ_EVERY_S = 15 * MINUTE_S  # before the stream
_JOB_ID_PATTERNS = {False: r"(?P<batch_id>\d+)", True: r"(?P<batch_id>\d+):(?P<uid>\d+)"}


def registration(scene: Scene) -> str:
    """Return the site's TOML."""
    users = {actor.job.user.name: actor.job.user for actor in scene.actors}
    parts = [
        *site_toml.cluster(site.ANALYSIS_CLUSTER, NODE_COUNT, site.HOST_OF_NID),
        site_toml.filesystem(FILESYSTEM, [site.ANALYSIS_CLUSTER], _JOB_ID_PATTERNS[scene.has_uids]),
    ]
    for host, kind, target, capacity in (
        (MDS, "mds", MDT, _measured_capacity(scene)),
        (OSS, "oss", OST, None),
    ):
        parts += [
            site_toml.server(
                host,
                filesystem=FILESYSTEM,
                kind=kind,
                version=scene.version,
                capacity_per_s=capacity,
            ),
            site_toml.target(target, filesystem=FILESYSTEM, server=host, kept_s=KEPT_S),
        ]
    parts.append(site_toml.source(EXPORTS, "exports", MDS))
    parts += [site_toml.user(user.name, user.uid) for _, user in sorted(users.items())]
    return "\n".join(parts)


def _measured_capacity(scene: Scene) -> int:
    """Return the server's capacity as a site measures it, up to 20 % wrong."""
    chance = stream(scene.seed, "labelled: measured capacity")
    return int(scene.capacity_per_s * chance.uniform(0.8, 1.2))


def before(out: Path, scene: Scene, service: Service, counting: Counting) -> None:
    """Write the history before the stream."""
    out.mkdir(parents=True)
    ended = (actor.job for actor in scene.actors if (actor.job.ended or 0) <= scene.opened)
    (out / "sacct.txt").write_text(sacct.text(sorted(ended, key=lambda job: job.ended or 0)))
    moments = np.arange(scene.begun, scene.opened + 1, _READ_EVERY_S)
    for moment, texts in zip(moments.tolist(), reads(scene, counting, moments), strict=True):
        for format_name, text in texts.items():
            _write_read(out / format_name, moment, text)
    minutes = np.arange(scene.begun, scene.opened + 1, MINUTE_S)  # short, and usual times need many
    for moment, text in zip(minutes.tolist(), counting.service_texts(minutes), strict=True):
        _write_read(out / "mds_stats", moment, text)
    (text,) = export_texts(scene, counting, np.array([scene.opened]))
    (out / "exports.txt").write_text(text)
    dumps.write(
        tracing.records(scene, service, scene.begun, scene.opened),
        server_log.names(scene.seed),
        stream(scene.seed, "labelled: log of the history"),
        out / "rpctrace.log.zst",
        version=tracing.version(scene),
    )


def _write_read(folder: Path, moment: int, text: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / f"{utc_name(moment)}.txt"
    path.write_text(text)
    os.utime(path, (moment, moment))


def slices(out: Path, scene: Scene, service: Service, counting: Counting) -> None:
    """Write the stream."""
    ends = np.arange(scene.opened + STEP_S, scene.closed + 1, STEP_S)
    folders = [out / f"{step:04d}" for step in range(len(ends))]
    jobs = [actor.job for actor in scene.actors if (actor.job.ended or 0) > scene.opened]
    for folder, end, texts in zip(
        folders, ends.tolist(), reads(scene, counting, ends), strict=True
    ):
        folder.mkdir(parents=True)
        (folder / "slice.json").write_text(
            json.dumps({"start": iso(end - STEP_S), "end": iso(end)})
        )
        for format_name, text in texts.items():
            (folder / f"{format_name}.txt").write_text(text)
        over = [job for job in jobs if end - STEP_S < (job.ended or 0) <= end]
        if over:
            (folder / "sacct.txt").write_text(sacct.text(over))
        there = [job for job in jobs if job.submitted <= end < (job.ended or 0)]
        (folder / "squeue.txt").write_text(squeue.text(there, end))
    polled = slice(1, None, 2)  # the statistics of all clients are long: every second step
    for folder, text in zip(
        folders[polled], export_texts(scene, counting, ends[polled]), strict=True
    ):
        (folder / "exports.txt").write_text(text)
    _write_trace(folders, scene, service)


def reads(scene: Scene, counting: Counting, moments: Ints) -> Iterator[dict[str, str]]:
    """Yield the texts of job_stats, md_stats and mds_stats at each time."""
    counted = counting.reads(moments)
    for moment, of_mdt, of_ost, totals, slowdowns, started, of_service in zip(
        moments.tolist(),
        counted.mdt,
        counted.ost,
        counted.totals.tolist(),
        counted.slowdowns.tolist(),
        counted.started,
        counting.service_texts(moments),
        strict=True,
    ):
        yield {
            "job_stats": job_stats.mdt(MDT, of_mdt, version=scene.version)
            + job_stats.ost(OST, of_ost),
            "md_stats": md_stats.mdt(
                MDT,
                moment * MICROSECONDS,
                totals,
                version=scene.version,
                mounted_s=started,
                slowdowns=slowdowns,
            ),
            "mds_stats": of_service,
        }


def export_texts(scene: Scene, counting: Counting, moments: Ints) -> Iterator[str]:
    """Yield the export statistics at each time."""
    for moment, clients in zip(moments.tolist(), counting.clients(moments), strict=True):
        yield exports.mdt(
            MDT,
            moment * MICROSECONDS,
            clients,
            version=scene.version,
            mounted_s=counting.started(moment),
        )


def _write_trace(folders: list[Path], scene: Scene, service: Service) -> None:
    """Write each step's records."""
    records = tracing.records(scene, service, scene.opened, scene.closed)
    edges_us = (scene.opened + np.arange(len(folders) + 1) * STEP_S) * MICROSECONDS
    edges = np.searchsorted(records["time_us"].to_numpy(), edges_us).tolist()
    for folder, first, last in zip(folders, edges[:-1], edges[1:], strict=True):
        with (folder / "rpctrace.log").open("wb") as file:
            rpctrace.write(lines(scene, records[first:last]), file)


def lines(scene: Scene, records: pl.DataFrame) -> pl.Series:
    """Return the lines of a trace."""
    return rpctrace.lines(records, server_log.names(scene.seed), tracing.version(scene))
