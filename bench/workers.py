"""Attribution of several filesystems by one and by two workers."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection

from bench import inputs, portal
from bench.figures import Figure, Way, in_turn
from ioportal.ingest import attribution_stage
from ioportal.ingest.models import DirtyReads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FILESYSTEMS = 4
JOBS, READS = 4_000, 20
_GOAL = 1.7
_SITE = """
[[filesystem]]
name = "{name}"
clusters = ["{cluster}"]

[[target]]
name = "{name}-MDT0000"
filesystem = "{name}"
"""
# As a worker: turns of the stage, until nothing is left.
_WORKER = """
import django
django.setup()
from ioportal.ingest import attribution_stage, tasks
while tasks.attribute_pending() or attribution_stage.pending_filesystems():
    pass
"""


def measure(scale: float) -> Iterator[Figure]:
    """Time the attribution of the same reads by one worker and by two."""
    jobs, names = int(JOBS * scale), [f"lake{n}" for n in range(FILESYSTEMS)]
    portal.register("".join(_SITE.format(name=name, cluster=portal.CLUSTER) for name in names))
    portal.record_jobs((inputs.FIRST_JOB + n, f"c{n:05d}", 1) for n in range(jobs))
    with inputs.job_stats(jobs, READS) as reads, tempfile.TemporaryDirectory() as folder:
        for name in names:
            portal.ingest("job_stats", *(_renamed(read, name, folder) for read in reads))
    portal.settle()
    request = partial(_request, names)
    ways = {f"{number}": Way(partial(_attribute, number), prepare=request) for number in (1, 2)}
    timed = in_turn(f"{FILESYSTEMS} filesystems of {jobs:,} jobs, {READS} reads", ways)
    one, two = (timed.median_s(way) for way in ways)
    what = f"{FILESYSTEMS} filesystems, {READS} reads of {jobs:,} jobs each"
    yield Figure("workers", f"{what}: 2 workers / 1 worker", one / two, "x", at_least=_GOAL)
    yield Figure("one_worker", f"{what}: attribution by one worker", one, "s")


def _renamed(read: Path, name: str, folder: str) -> str:
    """Copy a read as one of another filesystem's MDT, with its time."""
    copy = Path(folder, f"{name}-{read.name}")
    copy.write_text(read.read_text().replace("atlas2-MDT0000", f"{name}-MDT0000"))
    os.utime(copy, (read.stat().st_atime, read.stat().st_mtime))
    return str(copy)


def _request(names: Sequence[str]) -> None:
    """Request the attribution of all reads again.

    Chunks stay: while a transaction creates one, others wait for its end, but only once a week.
    """
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM telemetry_iowindow")
        cursor.execute("VACUUM telemetry_iowindow")
        cursor.execute("TRUNCATE jobs_dirtystatistics, jobs_dirtyevidence")
    attribution_stage.mark_all_dirty()
    DirtyReads.objects.exclude(target__filesystem__name__in=names).delete()  # of other benches


def _attribute(number: int) -> None:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _WORKER],
            cwd=settings.BASE_DIR,
            env=os.environ
            | {
                "DATABASE_URL": portal.database_url(),
                "DJANGO_SETTINGS_MODULE": "ioportal.settings",
            },
        )
        for _ in range(number)
    ]
    codes = [worker.wait() for worker in workers]
    if any(codes):
        raise RuntimeError("A worker failed: see above.")
