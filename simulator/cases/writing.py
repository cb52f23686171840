"""Writes the input of the portal: the history, and the stream step by step."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from simulator import site
from simulator.batch.jobs import Ints
from simulator.cases.cast import GAP_S, NODE_COUNT
from simulator.cases.filesystems import ALL, KEPT_S, SMALL, UNREAD, Filesystem
from simulator.cases.scene import Scene
from simulator.cases.traffic import Traffic
from simulator.clock import DAY_S, MICROSECONDS, MINUTE_S, iso, utc_name
from simulator.formats import job_stats, md_stats, rpctrace, sacct, site_toml, squeue
from simulator.formats.releases import counts_failed_opens
from simulator.formats.rpctrace import Version
from simulator.randomness import stream
from simulator.servers import counters, dumps, server_log
from simulator.servers.counters import NEVER, Server, Sightings

STEP_S = 10
_QUEUE_EVERY = 3  # steps
_READ_EVERY_S = 10 * MINUTE_S  # before the stream


def registration() -> str:
    """Return the site's TOML."""
    parts = [*site_toml.cluster(site.ANALYSIS_CLUSTER, NODE_COUNT, site.HOST_OF_NID)]
    for filesystem in ALL:
        parts.append(site_toml.filesystem(filesystem.name, [site.ANALYSIS_CLUSTER]))
        for host, kind, target, version in (
            (filesystem.mds, "mds", filesystem.mdt, filesystem.version),
            (filesystem.oss, "oss", filesystem.ost, site.LUSTRE_VERSION),
        ):
            parts.append(
                site_toml.server(host, filesystem=filesystem.name, kind=kind, version=version)
            )
            parts.append(
                site_toml.target(target, filesystem=filesystem.name, server=host, kept_s=KEPT_S)
            )
    return "\n".join(parts)


def before(out: Path, scene: Scene, calm: Traffic) -> None:
    """Write the history before the stream."""
    out.mkdir(parents=True)
    ended = (actor.job for actor in scene.actors if (actor.job.ended or 0) <= scene.opened)
    (out / "sacct.txt").write_text(sacct.text(sorted(ended, key=lambda job: job.ended or 0)))
    moments = np.arange(scene.begun, scene.opened + 1, _READ_EVERY_S)
    for filesystem in ALL:
        if filesystem.is_counted:
            for moment, (by_job, whole) in zip(
                moments.tolist(), _reads(scene, filesystem, moments), strict=True
            ):
                for format_name, text in (("job_stats", by_job), ("md_stats", whole)):
                    path = out / f"{format_name}-{filesystem.name}" / f"{utc_name(moment)}.txt"
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(text)
                    os.utime(path, (moment, moment))
    chance = stream(scene.seed, "cases: log of the calm")
    dumps.write(
        _records(calm, scene.seed, chance),
        server_log.names(scene.seed),
        chance,
        out / f"rpctrace-{SMALL.name}.log.zst",
        version=Version.V2_15,
    )


def slices(out: Path, scene: Scene, traffic: Mapping[Filesystem, Traffic]) -> None:
    """Write the stream."""
    ends = np.arange(scene.opened + STEP_S, scene.closed + 1, STEP_S)
    folders = [out / f"{step:04d}" for step in range(len(ends))]
    jobs = [actor.job for actor in scene.actors if (actor.job.ended or 0) > scene.opened]
    for step, (folder, end) in enumerate(zip(folders, ends.tolist(), strict=True)):
        folder.mkdir(parents=True)
        (folder / "slice.json").write_text(
            json.dumps({"start": iso(end - STEP_S), "end": iso(end)})
        )
        over = [job for job in jobs if end - STEP_S < (job.ended or 0) <= end]
        if over:
            (folder / "sacct.txt").write_text(sacct.text(over))
        if (step + 1) % _QUEUE_EVERY == 0:
            there = [job for job in jobs if job.submitted <= end < (job.ended or 0)]
            (folder / "squeue.txt").write_text(squeue.text(there, end))
    for filesystem in ALL:
        if filesystem.is_counted:
            reads = _reads(scene, filesystem, ends)
            for folder, end, (by_job, whole) in zip(folders, ends.tolist(), reads, strict=True):
                if filesystem is UNREAD and GAP_S[0] < end - scene.opened < GAP_S[1]:
                    continue
                (folder / f"job_stats-{filesystem.name}.txt").write_text(by_job)
                (folder / f"md_stats-{filesystem.name}.txt").write_text(whole)
        if filesystem.is_traced:
            _write_trace(folders, scene, filesystem, traffic[filesystem])


def _reads(scene: Scene, filesystem: Filesystem, moments: Ints) -> Iterator[tuple[str, str]]:
    """Yield job_stats and md_stats of a filesystem at each time."""
    sources, cleared = scene.sources(filesystem), scene.cleared()
    failures_until = NEVER if counts_failed_opens(filesystem.version) else 0
    server = Server(KEPT_S, failures_until=failures_until)
    of_mdt: list[Sightings] = []
    of_ost: list[Sightings] = []
    for source in sources:
        mounts = [cleared[source]] if source in cleared else []
        of_mdt += counters.mdt_sightings(source, moments, Server(KEPT_S, mounts, failures_until))
        of_ost += counters.ost_sightings(source, 0, moments, server)
    totals = counters.mdt_totals(sources, moments, server)
    reads = zip(
        moments.tolist(),
        counters.entries_by_poll(of_mdt, len(moments)),
        counters.entries_by_poll(of_ost, len(moments)),
        totals.tolist(),
        strict=True,
    )
    for moment, by_job, bytes_by_job, total in reads:
        yield (
            job_stats.mdt(filesystem.mdt, by_job, version=filesystem.version)
            + job_stats.ost(filesystem.ost, bytes_by_job),
            md_stats.mdt(
                filesystem.mdt,
                moment * MICROSECONDS,
                total,
                version=filesystem.version,
                mounted_s=scene.begun - DAY_S,
            ),
        )


def _records(traffic: Traffic, seed: int, chance: np.random.Generator) -> pl.DataFrame:
    served, source = traffic.served()
    job_ids = pl.Series([sender.job_id or "" for sender in traffic.sources]).gather(source)
    return server_log.records(served, seed, chance, handling_share=0, job_ids=job_ids)


def _write_trace(
    folders: Sequence[Path], scene: Scene, filesystem: Filesystem, traffic: Traffic
) -> None:
    """Write each step's records; records after the last step are not written."""
    chance = stream(scene.seed, f"cases: log of {filesystem.name}")
    records = _records(traffic, scene.seed, chance)
    names = server_log.names(scene.seed)
    edges_us = (scene.opened + np.arange(len(folders) + 1) * STEP_S) * MICROSECONDS
    edges = np.searchsorted(records["time_us"].to_numpy(), edges_us).tolist()
    for folder, first, last in zip(folders, edges[:-1], edges[1:], strict=True):
        lines = rpctrace.lines(records[first:last], names, Version.V2_15)
        with (folder / f"rpctrace-{filesystem.name}.log").open("wb") as file:
            rpctrace.write(lines, file)
