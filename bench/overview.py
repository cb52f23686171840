"""The overview and a job's timelines: 100 million windows stored, 5 million in the range."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING

from django.contrib.auth.models import User
from django.db import connection

from bench import centre, portal
from bench.figures import Figure, say
from bench.pages import client_of, timed
from ioportal.jobs.models import Job
from ioportal.site.models import Server
from ioportal.telemetry import levels, rollups
from ioportal.telemetry.models import DirtyRpcs
from ioportal.telemetry.stage_runs import drain

if TYPE_CHECKING:
    from collections.abc import Iterator

HOURS = 20  # of 5 million windows each
_REQUESTS = 20  # after two warm-up requests
_AT_MOST_MS = 150
_END = datetime(2024, 6, 3, 20, tzinfo=UTC)
_HOUR = timedelta(hours=1)
_DATABASE = "ioportal_bench_overview"
STATEMENTS = Path(__file__).with_suffix(".sql")
# Few principals are busy: the first sends a thousand times as much as the last.
_ATTRIBUTED = """
INSERT INTO telemetry_attributedrpc
SELECT w, p.job_id, 1, s.id, p.source_job_id, p.nid_id, 1, opcode, p.kind, 0,
    1 + 20000 / p.n, 1 + 20000 / p.n, 50 * (1 + 20000 / p.n), 20, 900, 5, 4000,
    80 * (1 + 20000 / p.n)
FROM generate_series(%(start)s::timestamptz, %(end)s::timestamptz - interval '10 s', '10 s') w,
    bench_principal p, unnest(ARRAY[33, 34, 35, 36, 37, 49, 101]) opcode,
    (SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM site_server) s
WHERE p.n %% 2 = s.n
"""
_WINDOWS = """
INSERT INTO telemetry_iowindow (
    start, "end", job_id, segment_id, filesystem_id, target_id, source_job_id, kind, basis,
    open, close, getattr, unlink
)
SELECT w, w + interval '1 min', p.job_id, 1, t.filesystem_id, t.id,
    CASE WHEN p.kind = 2 THEN p.source_job_id ELSE p.n END, p.kind, 1,
    1 + 90000 / p.n, 1 + 80000 / p.n, 10, 5
FROM generate_series(%(start)s::timestamptz, %(end)s::timestamptz - interval '1 min', '1 min') w,
    bench_principal p,
    (SELECT id, filesystem_id, row_number() OVER (ORDER BY id) - 1 AS n FROM site_target) t
WHERE p.n %% 2 = t.n AND p.kind <> 3
"""
_ROWS = "SELECT count(*) FROM telemetry_attributedrpc WHERE start >= %s AND start < %s"


def measure(scale: float) -> Iterator[Figure]:
    """Request the latest hour and a job repeatedly."""
    hours = max(2, round(HOURS * scale))
    with portal.empty_database(_DATABASE):
        _fill(hours)
        start, end = _END - _HOUR, _END
        yield Figure("overview_rows", "Overview: windows stored", _rows(hours * _HOUR), "rows")
        yield Figure("overview_range", "Overview: windows in the range", _rows(_HOUR), "rows")
        job = Job.objects.earliest("pk").pk
        hour = f"start={start:%Y-%m-%dT%H:%M:%SZ}&end={end:%Y-%m-%dT%H:%M:%SZ}"
        for name, what, address, goal in (
            ("rpcs", "RPCs of an hour", f"/overview/rpcs/?{hour}", _AT_MOST_MS),
            ("operations", "operations of an hour", f"/overview/operations/?{hour}", _AT_MOST_MS),
            ("users", "RPCs by user", f"/overview/rpcs/?{hour}&by=user", _AT_MOST_MS),
            ("job_hour", "a job's hour", f"/jobs/{job}/timelines/rpcs/?{hour}&format=json", 150),
            ("job_run", "a job's run", f"/jobs/{job}/timelines/rpcs/?format=json", _AT_MOST_MS),
            ("all", "RPCs of all hours", f"/overview/rpcs/?{_all(hours)}", None),
        ):
            p95 = _p95(address)
            say(f"p95 {p95:6.0f} ms  {address}")
            yield Figure(f"overview_{name}", f"Overview, {what}: p95", p95, "ms", at_most=goal)


def _all(hours: int) -> str:
    start = _END - hours * _HOUR
    return f"start={start:%Y-%m-%dT%H:%M:%SZ}&end={_END:%Y-%m-%dT%H:%M:%SZ}"


def _p95(address: str) -> float:
    client = client_of(centre.STAFF)
    answers = [timed(client, address)[0] for _ in range(_REQUESTS + 2)]
    return quantiles(answers[2:], n=20, method="inclusive")[-1]


def _rows(before_end: timedelta) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, [_END - before_end, _END])
        return int(cursor.fetchone()[0])


def _fill(hours: int) -> None:
    """Store windows and roll them up, except for the last minute, which has not ended."""
    portal.register(portal.TWO_SERVERS)
    start = _END - hours * _HOUR
    with connection.cursor() as cursor:
        cursor.execute(STATEMENTS.read_text(), {"start": start, "end": _END})
    for statement, level in ((_ATTRIBUTED, levels.ATTRIBUTED_RPCS), (_WINDOWS, levels.IO_WINDOWS)):
        with centre.without_indexes([level.table]), connection.cursor() as cursor:
            for hour in range(hours):
                begin = start + hour * _HOUR
                cursor.execute(statement, {"start": begin, "end": begin + _HOUR})
                say(f"{level.table}: {hour + 1} of {hours} hours")
    _roll_up(start, hours)
    for server in Server.objects.all():
        DirtyRpcs.objects.create(
            level=DirtyRpcs.Level.MINUTE,
            server_id=server.pk,
            start=_END - timedelta(minutes=1),
            end=_END,
        )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    User.objects.create_user(centre.STAFF, is_staff=True)


def _roll_up(start: datetime, hours: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, filesystem_id FROM site_target")
        targets = cursor.fetchall()
    for hour in range(hours):
        begin = start + hour * _HOUR
        for server in Server.objects.all():
            rollups.mark_server_dirty(server.pk, begin, begin + _HOUR)
        for target, filesystem in targets:
            rollups.mark_target_dirty(filesystem, target, begin, begin + _HOUR)
        drain(rollups.roll_up)
        say(f"rolled up: {hour + 1} of {hours} hours")
