"""Evaluation of 2,000 running jobs as windows arrive, and back-tests of 100,000 jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Any

from django.db import connection

from bench import centre, portal
from bench.figures import Figure, say
from ioportal.findings import back_tests, evaluation
from ioportal.findings.models import BackTest
from ioportal.jobs.models import DirtyEvidence, Job
from ioportal.site.models import Server
from ioportal.telemetry import levels, rollups
from ioportal.telemetry.models import DirtyImpact
from ioportal.telemetry.stage_runs import drain

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNNING = 2_000  # jobs
ENDED = 100_000  # jobs of a month; the month before has as many
_RUN = timedelta(hours=2)
_STEP = timedelta(seconds=10)
_STEPS = 5  # evaluated one after the other
_NOW = datetime(2024, 6, 3, 20, tzinfo=UTC)
_MONTH = timedelta(days=30)
_AT_MOST_CPU_S = 2
_AT_MOST_S = 30
# By a job's own figures, and by similar jobs.
_TRIED = {
    "metadata-operations": {"metadata_operations": 500_000},
    "outlier": {"z_score": 3},
}
STATEMENTS = Path(__file__).with_suffix(".sql")
# Activity of all jobs in the steps of [start, end), increasing: the last minutes are a peak.
_WINDOWS = """
INSERT INTO telemetry_iowindow (start, "end", job_id, segment_id, filesystem_id, target_id,
    source_job_id, kind, basis, open, close, getattr)
SELECT w, w + interval '10 s', j.id, 1, t.filesystem_id, t.id, j.id, 1, 1,
    5 + j.id %% 90, 5 + j.id %% 90, 3
FROM generate_series(%(start)s::timestamptz, %(end)s::timestamptz - interval '10 s', '10 s') w,
    jobs_job j, (SELECT id, filesystem_id, row_number() OVER (ORDER BY id) AS n FROM site_target) t
WHERE j.id %% 2 + 1 = t.n
"""
_REQUESTS = """
INSERT INTO telemetry_attributedrpc (start, job_id, segment_id, server_id, source_job_id, nid_id,
    service_id, opcode, kind, method, count, timed, service_us_sum, service_us_min, service_us_max,
    queue_us_min, queue_us_max, total_us_sum)
SELECT w, j.id, 1, s.id, j.id, 0, 1, opcode, 1, 1, 9, 9, 900, 20, 900, 5, 500, 1200
FROM generate_series(%(start)s::timestamptz, %(end)s::timestamptz - interval '10 s', '10 s') w,
    jobs_job j, unnest(ARRAY[35, 101]) opcode,
    (SELECT id, row_number() OVER (ORDER BY id) AS n FROM site_server) s
WHERE j.id %% 2 + 1 = s.n
"""
_EVIDENCE = """
INSERT INTO findings_jobevidence (job_id, seen_until, filesystem_id, peak_operations,
    sustained_operations, peak_stats, peak_locks_s, peak_impact_s, impact_s, lock_share, lock_ratio,
    startup_operations, startup_opens)
SELECT s.job_id, s.computed_at, f.id, s.metadata_operations / 9, s.metadata_operations / 5,
    s.count_getattr / 9, random() * 80, random() * 400, random() * 900, random(), 8 * random(),
    s.metadata_operations / 7, s.opens / 7
FROM jobs_jobstatistics s, site_filesystem f
"""


def measure(scale: float) -> Iterator[Figure]:
    """Evaluate steps of a stream, then run back-tests."""
    with portal.empty_database("ioportal_bench_judging"):
        yield from _live(round(RUNNING * scale))
    ended = round(ENDED * scale)
    began = datetime.fromisoformat(centre.ENDED) - 2 * _MONTH
    with centre.filled(2 * ended, began.isoformat()):
        yield from _back_tests(ended)


def _live(jobs: int) -> Iterator[Figure]:
    _fill(jobs)
    spent = []
    for step in range(_STEPS + 1):  # the first warms up
        _arrive(_NOW + step * _STEP)
        before = process_time(), portal.backend_s()
        drain(evaluation.evaluate_pending)
        evaluation.evaluate_current()
        spent.append((process_time() - before[0], portal.backend_s() - before[1]))
        say(f"evaluated a step: portal {spent[-1][0]:.2f} s, database {spent[-1][1]:.2f} s of CPU")
    what = f"Evaluating a step of 10 s of {jobs:,} running jobs: CPU of"
    portals, backends = (median(column) for column in zip(*spent[1:], strict=True))
    both = median(map(sum, spent[1:]))
    yield Figure("judging_portal", f"{what} the portal", portals, "s")
    yield Figure("judging_database", f"{what} the database", backends, "s")
    yield Figure("judging", f"{what} both", both, "s", at_most=_AT_MOST_CPU_S)


def _fill(jobs: int) -> None:
    """Create jobs that have run for two hours, with all of their data."""
    portal.register(portal.TWO_SERVERS)
    span = {"start": _NOW - _RUN, "end": _NOW}
    tables = [levels.ATTRIBUTED_RPCS.table, levels.IO_WINDOWS.table]
    with connection.cursor() as cursor:
        # The processor time of a backend excludes parallel workers.
        cursor.execute("SET max_parallel_workers_per_gather = 0")
        parameters: dict[str, Any] = {"jobs": jobs, "began": _NOW - _RUN, "now": _NOW}
        cursor.execute(STATEMENTS.read_text(), parameters)
        with centre.without_indexes(tables):
            cursor.execute(_WINDOWS, span)
            cursor.execute(_REQUESTS, span)
        say(f"{jobs:,} jobs have run for {_RUN}")
        _roll_up(_NOW - _RUN, _NOW)
        cursor.execute("VACUUM ANALYZE")
    say("rolled up")


def _arrive(start: datetime) -> None:
    """Attribute a step's windows, and add the pending rows of the evaluation."""
    end = start + _STEP
    with connection.cursor() as cursor:
        for statement in (_WINDOWS, _REQUESTS):
            cursor.execute(statement, {"start": start, "end": end})
        cursor.execute('UPDATE telemetry_coverage SET "end" = %s', [end])
    _roll_up(start, end)
    DirtyEvidence.objects.mark(Job.objects.values_list("pk", flat=True), start)
    for server in Server.objects.all():
        DirtyImpact.objects.create(server_id=server.pk, start=start, end=end)


def _roll_up(start: datetime, end: datetime) -> None:
    for server in Server.objects.all():
        rollups.mark_server_dirty(server.pk, start, end)
    drain(rollups.roll_up)


def _back_tests(ended: int) -> Iterator[Figure]:
    with connection.cursor() as cursor:
        cursor.execute(_EVIDENCE)
        cursor.execute("VACUUM ANALYZE findings_jobevidence")
    end = datetime.fromisoformat(centre.ENDED)
    for rule, thresholds in _TRIED.items():
        test = BackTest.objects.create(
            rule=rule,
            thresholds=thresholds,
            start=end - _MONTH,
            end=end,
            requested_by="bench",
        )
        drain(lambda _: back_tests.run_next())
        test.refresh_from_db()
        say(f"{rule}: {test.evaluated:,} jobs, {test.counts} in {test.took_s:.1f} s")
        what = f"Back-test of 30 days, {ended:,} jobs: {rule}"
        yield Figure(f"back_test_{rule}", what, test.took_s or 0, "s", at_most=_AT_MOST_S)
