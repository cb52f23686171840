"""The roll-up stage: sums of attributed windows, computed again where they change.

A bucket is rolled up some time after its end; until then readers use the finer level of a dirty
interval (`piecewise`). Late rows create dirty intervals again. RPCs are added up by 10 s, minute
and ten minutes, by principal and in total. I/O windows are poll intervals and are never divided:
ten minutes contain the whole windows that start in them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max, Min
from psycopg import sql

from collectors.tables import COUNTED
from ioportal.core.postgres.advisory_locks import Lock, hold, try_hold
from ioportal.telemetry import buckets, levels, planner, retention
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import (
    LARGEST_BIGINT,
    BaselinePeriod,
    DirtyImpact,
    DirtyIo,
    DirtyRpcs,
    IoWindow,
)
from ioportal.telemetry.sums import expressions, metadata_operations, time_sums

if TYPE_CHECKING:
    from collections.abc import Collection

    from ioportal.telemetry.levels import Level

IO_WIDTH = levels.IO_TEN_MINUTES.width
_IO_SETTLED_AFTER = timedelta(seconds=30)


@dataclass(frozen=True)
class RollUp:
    """One level of RPCs: its key columns apart from the bucket, and its sums."""

    level: Level
    keys: tuple[str, ...]
    values: dict[str, sql.Composable]

    @property
    def made_of(self) -> Level:
        """The finer level."""
        assert self.level.made_of  # noqa: S101  (declared in `levels`)
        return self.level.made_of

    @property
    def is_by_principal(self) -> bool:
        """Whether its rows depend on the attribution of RPCs."""
        return "job_id" in self.keys


@dataclass(frozen=True)
class RpcRollUp:
    """The levels of RPCs with buckets of one width."""

    pending: DirtyRpcs.Level
    width: timedelta
    settled_after: timedelta  # time from the end of a bucket to the arrival of most of its records
    roll_ups: tuple[RollUp, ...]

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels that it fills."""
        return tuple(roll_up.level for roll_up in self.roll_ups)


_OF_SERVER = sql.SQL("server_id = %(server)s")
# ("<> 0" selects the partial indexes, which contain no zeros.)
_OF_PRINCIPALS = sql.SQL("""(
    job_id <> 0 AND job_id = ANY(%(jobs)s)
    OR nid_id <> 0 AND nid_id = ANY(%(nids)s)
    OR source_job_id <> 0 AND source_job_id = ANY(%(source_jobs)s)
        AND kind <> 2  -- a process, which is found by its NID
)""")

_CLEAR = sql.SQL("DELETE FROM {into} WHERE start >= %(start)s AND start < %(end)s AND {rows}")
_ROLL = sql.SQL("""
INSERT INTO {into} (start, {keys}, {names})
SELECT date_bin(%(width)s, start, %(epoch)s), {keys}, {values}
FROM {made_of} WHERE start >= %(start)s AND start < %(end)s AND {rows}
GROUP BY 1, {keys}
ORDER BY 1, server_id  -- clusters rows that are read together
""")


_KIND = ("server_id", "service_id", "opcode")
_PRINCIPAL = ("server_id", "kind", "job_id", "source_job_id", "nid_id")
SUMS = ("count", "timed", "service_us_sum", "total_us_sum")

_LOAD = expressions("sum({})", SUMS)
_TIMES = {
    **_LOAD,
    **expressions(
        "coalesce(min({}) FILTER (WHERE timed > 0), 0)", ("service_us_min", "queue_us_min")
    ),
    **expressions("max({})", ("service_us_max", "queue_us_max")),
}
_BY_OPCODE = (*_PRINCIPAL, "service_id", "opcode")

RPC_ROLL_UPS = (
    RpcRollUp(
        DirtyRpcs.Level.TEN_SECONDS,
        timedelta(seconds=10),
        timedelta(0),  # few rows: late data is added up again
        (
            RollUp(levels.RPC_TOTALS, _KIND, _TIMES),
            RollUp(levels.LOAD_WINDOWS, _PRINCIPAL, _LOAD),
        ),
    ),
    RpcRollUp(
        DirtyRpcs.Level.MINUTE,
        timedelta(minutes=1),
        timedelta(seconds=30),
        (
            RollUp(levels.RPC_TOTAL_MINUTES, _KIND, _TIMES),
            RollUp(levels.RPC_MINUTES, _BY_OPCODE, _TIMES),
            RollUp(levels.LOAD_MINUTES, _PRINCIPAL, _LOAD),
        ),
    ),
    RpcRollUp(
        DirtyRpcs.Level.TEN_MINUTES,
        timedelta(minutes=10),
        timedelta(seconds=30),
        (
            RollUp(levels.RPC_TOTAL_TEN_MINUTES, _KIND, _TIMES),
            RollUp(levels.RPC_TEN_MINUTES, _BY_OPCODE, _TIMES),
            RollUp(levels.LOAD_TEN_MINUTES, _PRINCIPAL, _LOAD),
        ),
    ),
)

_OF_TARGET = sql.SQL(
    "filesystem_id = %(filesystem)s AND target_id = %(target)s AND {} >= %(start)s AND {} < %(end)s"
)
_OF_IDS = sql.SQL("source_job_id = ANY(%(source_jobs)s) AND {} >= %(start)s AND {} < %(end)s")
_IO_KEYS = ("filesystem_id", "target_id", "source_job_id", "kind", "job_id")
_CLEAR_IO = sql.SQL("DELETE FROM telemetry_iotenminutes WHERE {rows}")
# Totals of unknown duration, like intervals across a gap, have separate rows: no rates.
_ROLL_IO = sql.SQL("""
INSERT INTO telemetry_iotenminutes
    (bucket, {keys}, start, "end", basis, metadata_operations, {counters})
SELECT date_bin(%(width)s, start, %(epoch)s), {keys}, min(start), max("end"), max(basis),
    least(sum({metadata}), %(largest)s), {sums}
FROM telemetry_iowindow w WHERE {rows}
GROUP BY 1, {keys}, basis = %(TOTAL)s, CASE WHEN "end" - start > %(gap)s THEN start END
ORDER BY 1, filesystem_id, target_id  -- clusters rows that are read together
""")
# NULL if no interval has a value: `least` ignores NULL and would return the largest number.
_IO_SUMS = {
    **expressions("CASE WHEN count({0}) > 0 THEN least(sum({0}), %(largest)s) END", COUNTED),
    **time_sums("least({}, %(largest)s)"),
}
_CLEAR_IO_TOTALS = sql.SQL("DELETE FROM telemetry_iototal WHERE {rows}")
_ROLL_IO_TOTALS = sql.SQL("""
INSERT INTO telemetry_iototal (filesystem_id, target_id, start, "end", basis, metadata_operations)
SELECT filesystem_id, target_id, start, "end", basis, least(sum({metadata}), %(largest)s)
FROM telemetry_iowindow w WHERE {rows}
GROUP BY 1, 2, 3, 4, 5
ORDER BY start
""")


def mark_server_dirty(server_id: int, start: datetime, end: datetime) -> None:
    """Mark the roll-ups of a server in [start, end) as dirty."""
    DirtyRpcs.objects.create(
        level=DirtyRpcs.Level.TEN_SECONDS, server_id=server_id, start=start, end=end
    )


def mark_principals_dirty(
    jobs: Collection[int],
    nids: Collection[int],
    source_jobs: Collection[int],
    start: datetime,
    end: datetime,
) -> None:
    """Mark the roll-ups of jobs, NIDs and source job ids in [start, end) as dirty."""
    DirtyRpcs.objects.create(
        level=DirtyRpcs.Level.TEN_SECONDS,
        start=start,
        end=end,
        job_ids=sorted(jobs),
        nid_ids=sorted(nids),
        source_job_ids=sorted(source_jobs),
    )


def mark_target_dirty(filesystem_id: int, target_id: int, start: datetime, end: datetime) -> None:
    """Mark the roll-ups of a target's I/O windows that start in [start, end) as dirty."""
    DirtyIo.objects.create(filesystem_id=filesystem_id, target_id=target_id, start=start, end=end)


def mark_source_jobs_dirty(source_jobs: Collection[int]) -> None:
    """Mark the roll-ups of all I/O windows of source job ids as dirty."""
    windows = IoWindow.objects.filter(source_job_id__in=source_jobs)
    span = windows.aggregate(first=Min("start"), last=Max("start"))
    if span["first"]:
        DirtyIo.objects.create(
            source_job_ids=sorted(source_jobs),
            start=span["first"],
            end=span["last"] + timedelta(microseconds=1),
        )


_SOURCE_LEVELS = {roll_up.made_of for kind in RPC_ROLL_UPS for roll_up in kind.roll_ups}


def roll_up(limit: int = 500) -> int:
    """Claim up to `limit` dirty intervals of each kind, roll them up, and return their number.

    The caller repeats it until it returns 0. Safe to run repeatedly and concurrently. Buckets stay
    dirty until they end.
    """
    with transaction.atomic():
        lock()
        now = datetime.now(UTC)
        return sum(roll_rpcs(kind, now, limit) for kind in RPC_ROLL_UPS) + _roll_io(now, limit)


def lock() -> None:
    """Exclude other roll-ups until the transaction ends."""
    hold(Lock.ROLL_UP)


def try_lock() -> bool:
    """Exclude other roll-ups until the transaction ends; return whether none is running."""
    return try_hold(Lock.ROLL_UP)


def pending_since(level: Level) -> datetime | None:
    """Return the start of the rows of a level that await roll-up; None: no rows."""
    dirty: Any
    if level is levels.IO_WINDOWS:
        dirty = DirtyIo.objects.all()
    elif level in _SOURCE_LEVELS:
        dirty = DirtyRpcs.objects.all()
    else:
        return None
    first: datetime | None = dirty.aggregate(first=Min("start"))["first"]
    return first and buckets.floor(first, IO_WIDTH)


@dataclass
class _Request:
    """Dirty intervals of one source or of some principals."""

    subject: dict[str, Any]
    spans: list[Interval] = field(default_factory=list)


def _claim(dirty: Any, fields: tuple[str, ...], limit: int) -> list[_Request]:
    """Claim dirty intervals, grouped by subject."""
    requests: dict[str, _Request] = {}
    for row in dirty.claim(limit):
        subject = {name: getattr(row, name) for name in fields}
        request = requests.setdefault(repr(subject), _Request(subject))
        request.spans.append(Interval(row.start, row.end))
    return list(requests.values())


def roll_rpcs(kind: RpcRollUp, now: datetime, limit: int) -> int:
    """Roll up the buckets of one width that have ended; return the number of claimed intervals."""
    ended = buckets.floor(now - kind.settled_after, kind.width)
    due = DirtyRpcs.objects.filter(level=kind.pending, start__lt=ended)
    fields = ("server_id", "job_ids", "nid_ids", "source_job_ids")
    claimed = _claim(due, fields, limit)
    again: list[DirtyRpcs] = []
    for request in claimed:
        done, left = buckets.divided(request.spans, kind.width, ended)
        again += [DirtyRpcs(level=kind.pending, **request.subject, start=s, end=e) for s, e in left]
        for span in done:
            for roll_up in kind.roll_ups:
                for part in retention.retained((roll_up.made_of, roll_up.level), *span):
                    _fill_rpc_level(roll_up, request.subject, part)
        if kind is RPC_ROLL_UPS[0]:
            server = request.subject["server_id"]
            DirtyImpact.objects.bulk_create(
                DirtyImpact(server_id=server, start=s, end=e) for s, e in done
            )
        if kind is not RPC_ROLL_UPS[-1]:
            coarser = RPC_ROLL_UPS[RPC_ROLL_UPS.index(kind) + 1].pending
            again += [DirtyRpcs(level=coarser, **request.subject, start=s, end=e) for s, e in done]
    DirtyRpcs.objects.bulk_create(again)
    return sum(len(request.spans) for request in claimed)


def _fill_rpc_level(roll_up: RollUp, subject: dict[str, Any], span: Interval) -> None:
    is_of_server = subject["server_id"] is not None
    if not is_of_server and not roll_up.is_by_principal:
        return
    values = {
        "server": subject["server_id"],
        "jobs": subject["job_ids"],
        "nids": subject["nid_ids"],
        "source_jobs": subject["source_job_ids"],
        "start": span.start,
        "end": span.end,
        "width": roll_up.level.width,
        "epoch": buckets.EPOCH,
    }
    rows = _OF_SERVER if is_of_server else _OF_PRINCIPALS
    into = sql.Identifier(roll_up.level.table)
    roll = _ROLL.format(
        into=into,
        made_of=sql.Identifier(roll_up.made_of.table),
        keys=sql.SQL(", ").join(map(sql.Identifier, roll_up.keys)),
        names=sql.SQL(", ").join(map(sql.Identifier, roll_up.values)),
        values=sql.SQL(", ").join(roll_up.values.values()),
        rows=rows,
    )
    with connection.cursor() as cursor, planner.settings(work_mem="128MB"):
        cursor.execute(_CLEAR.format(into=into, rows=rows), values)
        cursor.execute(roll, values)
    if roll_up.level is levels.RPC_TOTALS:
        BaselinePeriod.objects.filter(
            server_id=subject["server_id"], start__lt=span.end, end__gt=span.start
        ).delete()


def _roll_io(now: datetime, limit: int) -> int:
    ended = buckets.floor(now - _IO_SETTLED_AFTER, IO_WIDTH)
    due = DirtyIo.objects.filter(start__lt=ended)
    claimed = _claim(due, ("filesystem_id", "target_id", "source_job_ids"), limit)
    again: list[DirtyIo] = []
    for request in claimed:
        done, left = buckets.divided(request.spans, IO_WIDTH, ended)
        again += [DirtyIo(**request.subject, start=s, end=e) for s, e in left]
        for span in done:
            for part in retention.retained((levels.IO_WINDOWS, levels.IO_TEN_MINUTES), *span):
                _fill_io_ten_minutes(request.subject, part)
            if request.subject["target_id"] is not None:  # totals do not depend on attribution
                for part in retention.retained((levels.IO_WINDOWS, levels.IO_TOTALS), *span):
                    _fill_io_totals(request.subject, part)
    DirtyIo.objects.bulk_create(again)
    return sum(len(request.spans) for request in claimed)


def _fill_io_ten_minutes(subject: dict[str, Any], span: Interval) -> None:
    values = {
        "filesystem": subject["filesystem_id"],
        "target": subject["target_id"],
        "source_jobs": subject["source_job_ids"],
        "start": span.start,
        "end": span.end,
        "width": IO_WIDTH,
        "epoch": buckets.EPOCH,
        "gap": settings.POLL_GAP,
        "largest": LARGEST_BIGINT,
        "TOTAL": IoWindow.Basis.TOTAL.value,
    }
    rows = _OF_IDS if subject["target_id"] is None else _OF_TARGET

    def rows_by(time: str) -> sql.Composed:
        return rows.format(sql.Identifier(time), sql.Identifier(time))

    with connection.cursor() as cursor:
        cursor.execute(_CLEAR_IO.format(rows=rows_by("bucket")), values)
        cursor.execute(
            _ROLL_IO.format(
                keys=sql.SQL(", ").join(map(sql.Identifier, _IO_KEYS)),
                counters=sql.SQL(", ").join(map(sql.Identifier, _IO_SUMS)),
                metadata=metadata_operations("w"),
                sums=sql.SQL(", ").join(_IO_SUMS.values()),
                rows=rows_by("start"),
            ),
            values,
        )


def _fill_io_totals(subject: dict[str, Any], span: Interval) -> None:
    values = {
        "filesystem": subject["filesystem_id"],
        "target": subject["target_id"],
        "start": span.start,
        "end": span.end,
        "largest": LARGEST_BIGINT,
    }
    rows = _OF_TARGET.format(sql.Identifier("start"), sql.Identifier("start"))
    with connection.cursor() as cursor:
        cursor.execute(_CLEAR_IO_TOTALS.format(rows=rows), values)
        cursor.execute(_ROLL_IO_TOTALS.format(metadata=metadata_operations("w"), rows=rows), values)
