"""The roll-up stage: sums of charged windows, made anew where they change.

A bucket is rolled up once it has ended and its records have had time to come; until then its
pending row sends readers to the finer level (`pieces`). Late rows leave pending rows of their own.
RPCs are added up by 10 s, these by the minute, and these by ten minutes: of each principal, and of
all together (totals). I/O windows are poll intervals and are never cut: those that begin in the
same ten minutes are added up whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max, Min
from psycopg import sql

from collectors.tables import COUNTERS
from ioportal.telemetry import coverage, levels, planner, retention
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import (
    LARGEST_BIGINT,
    BaselinePeriod,
    DirtyImpact,
    DirtyIo,
    DirtyRpcs,
    IoWindow,
)
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from ioportal.telemetry.levels import Level

_LOCK = 7_305  # any number that no other advisory lock uses
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_PIECES = 8
_IO_WIDTH = levels.IO_TEN_MINUTES.width
_IO_SETTLED_AFTER = timedelta(seconds=30)


@dataclass(frozen=True)
class RollUp:
    """One level of RPCs: what its rows are told apart by, besides their buckets, and their sums."""

    level: Level
    keys: tuple[str, ...]
    values: dict[str, sql.Composable]

    @property
    def made_of(self) -> Level:
        """The finer level."""
        assert self.level.made_of  # noqa: S101  (declared in `levels`)
        return self.level.made_of

    @property
    def is_of_principals(self) -> bool:
        """Whether it changes where others are charged with the same RPCs."""
        return "job_id" in self.keys


@dataclass(frozen=True)
class RpcRollUp:
    """The levels of RPCs in buckets of one width; all are made of finer ones."""

    pending: DirtyRpcs.Level
    width: timedelta
    settled_after: timedelta  # from the end of a bucket: most of its records have come
    roll_ups: tuple[RollUp, ...]

    @property
    def levels(self) -> tuple[Level, ...]:
        """What it fills."""
        return tuple(roll_up.level for roll_up in self.roll_ups)


_OF_SERVER = sql.SQL("server_id = %(server)s")
# ("Not 0" is said for the sake of indexes which hold no zeros.)
_OF_PRINCIPALS = sql.SQL("""(
    job_id <> 0 AND job_id = ANY(%(jobs)s)
    OR nid_id <> 0 AND nid_id = ANY(%(nids)s)
    OR source_job_id <> 0 AND source_job_id = ANY(%(source_jobs)s) AND nid_id = 0
)""")

_CLEAR = sql.SQL("DELETE FROM {into} WHERE start >= %(start)s AND start < %(end)s AND {rows}")
_ROLL = sql.SQL("""
INSERT INTO {into} (start, {keys}, {names})
SELECT date_bin(%(width)s, start, %(epoch)s), {keys}, {values}
FROM {made_of} WHERE start >= %(start)s AND start < %(end)s AND {rows}
GROUP BY 1, {keys}
ORDER BY 1, server_id  -- what is read together stands together
""")


_KIND = ("server_id", "service_id", "opcode")
_PRINCIPAL = ("server_id", "kind", "job_id", "source_job_id", "nid_id")
_SUMS = ("count", "timed", "service_us_sum", "total_us_sum")


def _values(form: str, names: Iterable[str]) -> dict[str, sql.Composable]:
    return {name: sql.SQL(form).format(sql.Identifier(name)) for name in names}


_LOAD = _values("sum({})", _SUMS)
_TIMES = {
    **_LOAD,
    **_values("coalesce(min({}) FILTER (WHERE timed > 0), 0)", ("service_us_min", "queue_us_min")),
    **_values("max({})", ("service_us_max", "queue_us_max")),
}
_BY_OPCODE = (*_PRINCIPAL, "service_id", "opcode")

RPC_ROLL_UPS = (
    RpcRollUp(
        DirtyRpcs.Level.TEN_SECONDS,
        timedelta(seconds=10),
        timedelta(0),  # they are few: what comes late is added up once more
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
# A total of unknown duration is no part of a rate: it stays alone, like intervals over a gap.
_ROLL_IO = sql.SQL("""
INSERT INTO telemetry_iotenminutes
    (bucket, {keys}, start, "end", basis, metadata_operations, {counters})
SELECT date_bin(%(width)s, start, %(epoch)s), {keys}, min(start), max("end"), max(basis),
    least(sum({metadata}), %(largest)s), {sums}
FROM telemetry_iowindow w WHERE {rows}
GROUP BY 1, {keys}, basis = %(TOTAL)s, CASE WHEN "end" - start > %(gap)s THEN start END
ORDER BY 1, filesystem_id, target_id  -- what is read together stands together
""")
# What no interval told is not known: `least` alone would take it for the largest number.
_IO_SUMS = sql.SQL(", ").join(
    _values("CASE WHEN count({0}) > 0 THEN least(sum({0}), %(largest)s) END", COUNTERS).values()
)
_CLEAR_IO_TOTALS = sql.SQL("DELETE FROM telemetry_iototal WHERE {rows}")
_ROLL_IO_TOTALS = sql.SQL("""
INSERT INTO telemetry_iototal (filesystem_id, target_id, start, "end", basis, metadata_operations)
SELECT filesystem_id, target_id, start, "end", basis, least(sum({metadata}), %(largest)s)
FROM telemetry_iowindow w WHERE {rows}
GROUP BY 1, 2, 3, 4, 5
ORDER BY start
""")


def mark_server_dirty(server_id: int, start: datetime, end: datetime) -> None:
    """Ask for the roll-ups of a server's charged windows of [start, end) anew."""
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
    """Ask for the roll-ups of some jobs', nodes' and ids' charged windows of [start, end) anew."""
    DirtyRpcs.objects.create(
        level=DirtyRpcs.Level.TEN_SECONDS,
        start=start,
        end=end,
        job_ids=sorted(jobs),
        nid_ids=sorted(nids),
        source_job_ids=sorted(source_jobs),
    )


def mark_target_dirty(filesystem_id: int, target_id: int, start: datetime, end: datetime) -> None:
    """Ask for the roll-up of a target's I/O windows that begin in [start, end) anew."""
    DirtyIo.objects.create(filesystem_id=filesystem_id, target_id=target_id, start=start, end=end)


def mark_source_jobs_dirty(source_jobs: Collection[int]) -> None:
    """Ask for the roll-up of all I/O windows of some ids anew: they were charged anew."""
    windows = IoWindow.objects.filter(source_job_id__in=source_jobs)
    span = windows.aggregate(first=Min("start"), last=Max("start"))
    if span["first"]:
        DirtyIo.objects.create(
            source_job_ids=sorted(source_jobs),
            start=span["first"],
            end=span["last"] + timedelta(microseconds=1),
        )


_READ_BY_ROLL_UPS = {one.made_of for kind in RPC_ROLL_UPS for one in kind.roll_ups}


def roll_up(limit: int = 500) -> int:
    """Claim up to `limit` touched intervals of each kind and roll them up; return how many.

    The caller goes on until it is 0. Safe to run twice and beside itself. Buckets that have not
    ended stay pending.
    """
    with transaction.atomic():
        lock()
        now = datetime.now(UTC)
        return sum(roll_rpcs(kind, now, limit) for kind in RPC_ROLL_UPS) + _roll_io(now, limit)


def lock() -> None:
    """Wait until nobody rolls up, and let nobody until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def pending_since(level: Level) -> datetime | None:
    """Return from when on rows of a level are still to be rolled up; None: all are."""
    touched: Any
    if level is levels.IO_WINDOWS:
        touched = DirtyIo.objects.all()
    elif level in _READ_BY_ROLL_UPS:
        touched = DirtyRpcs.objects.all()
    else:
        return None
    first: datetime | None = touched.aggregate(first=Min("start"))["first"]
    return first and floor(first, _IO_WIDTH)


def floor(moment: datetime, width: timedelta) -> datetime:
    """Return the begin of the bucket that holds a moment."""
    return moment - (moment - _EPOCH) % width


def ceil(moment: datetime, width: timedelta) -> datetime:
    """Return the end of the bucket that ends at a moment, or holds it."""
    return moment + (_EPOCH - moment) % width


@dataclass
class _Asked:
    """What is to be rolled up of some principals, or of one source."""

    who: dict[str, Any]
    spans: list[Interval] = field(default_factory=list)


def _claim(touched: Any, fields: tuple[str, ...], limit: int) -> list[_Asked]:
    """Claim pending rows, grouped by source."""
    asked: dict[str, _Asked] = {}
    for row in touched.claim(limit):
        who = {name: getattr(row, name) for name in fields}
        asked.setdefault(repr(who), _Asked(who)).spans.append(Interval(row.start, row.end))
    return list(asked.values())


def roll_rpcs(kind: RpcRollUp, now: datetime, limit: int) -> int:
    """Roll up to one level what has ended by now; return how many intervals were claimed."""
    ended = floor(now - kind.settled_after, kind.width)
    due = DirtyRpcs.objects.filter(level=kind.pending, start__lt=ended)
    fields = ("server_id", "job_ids", "nid_ids", "source_job_ids")
    claimed = _claim(due, fields, limit)
    again: list[DirtyRpcs] = []
    for asked in claimed:
        done, left = _divided(asked.spans, kind.width, ended)
        again += [DirtyRpcs(level=kind.pending, **asked.who, start=s, end=e) for s, e in left]
        for span in done:
            for one in kind.roll_ups:
                for part in retention.retained((one.made_of, one.level), *span):
                    _roll_rpcs_of(one, asked.who, part)
        if kind is RPC_ROLL_UPS[0]:
            server = asked.who["server_id"]
            DirtyImpact.objects.bulk_create(
                DirtyImpact(server_id=server, start=s, end=e) for s, e in done
            )
        if kind is not RPC_ROLL_UPS[-1]:
            coarser = RPC_ROLL_UPS[RPC_ROLL_UPS.index(kind) + 1].pending
            again += [DirtyRpcs(level=coarser, **asked.who, start=s, end=e) for s, e in done]
    DirtyRpcs.objects.bulk_create(again)
    return sum(len(asked.spans) for asked in claimed)


def _roll_rpcs_of(one: RollUp, who: dict[str, Any], span: Interval) -> None:
    is_of_server = who["server_id"] is not None
    if not is_of_server and not one.is_of_principals:
        return
    values = {
        "server": who["server_id"],
        "jobs": who["job_ids"],
        "nids": who["nid_ids"],
        "source_jobs": who["source_job_ids"],
        "start": span.start,
        "end": span.end,
        "width": one.level.width,
        "epoch": _EPOCH,
    }
    rows = _OF_SERVER if is_of_server else _OF_PRINCIPALS
    into = sql.Identifier(one.level.table)
    roll = _ROLL.format(
        into=into,
        made_of=sql.Identifier(one.made_of.table),
        keys=sql.SQL(", ").join(map(sql.Identifier, one.keys)),
        names=sql.SQL(", ").join(map(sql.Identifier, one.values)),
        values=sql.SQL(", ").join(one.values.values()),
        rows=rows,
    )
    with connection.cursor() as cursor, planner.settings(work_mem="128MB"):
        cursor.execute(_CLEAR.format(into=into, rows=rows), values)
        cursor.execute(roll, values)
    if one.level is levels.RPC_TOTALS:
        BaselinePeriod.objects.filter(
            server_id=who["server_id"], start__lt=span.end, end__gt=span.start
        ).delete()


def _roll_io(now: datetime, limit: int) -> int:
    ended = floor(now - _IO_SETTLED_AFTER, _IO_WIDTH)
    due = DirtyIo.objects.filter(start__lt=ended)
    claimed = _claim(due, ("filesystem_id", "target_id", "source_job_ids"), limit)
    again: list[DirtyIo] = []
    for asked in claimed:
        done, left = _divided(asked.spans, _IO_WIDTH, ended)
        again += [DirtyIo(**asked.who, start=s, end=e) for s, e in left]
        for span in done:
            for part in retention.retained((levels.IO_WINDOWS, levels.IO_TEN_MINUTES), *span):
                _roll_io_of(asked.who, part)
            if asked.who["target_id"] is not None:  # totals do not change with who is charged
                for part in retention.retained((levels.IO_WINDOWS, levels.IO_TOTALS), *span):
                    _roll_io_totals_of(asked.who, part)
    DirtyIo.objects.bulk_create(again)
    return sum(len(asked.spans) for asked in claimed)


def _roll_io_of(who: dict[str, Any], span: Interval) -> None:
    values = {
        "filesystem": who["filesystem_id"],
        "target": who["target_id"],
        "source_jobs": who["source_job_ids"],
        "start": span.start,
        "end": span.end,
        "width": _IO_WIDTH,
        "epoch": _EPOCH,
        "gap": settings.POLL_GAP,
        "largest": LARGEST_BIGINT,
        "TOTAL": IoWindow.Basis.TOTAL.value,
    }
    rows = _OF_IDS if who["target_id"] is None else _OF_TARGET

    def of(time: str) -> sql.Composed:
        return rows.format(sql.Identifier(time), sql.Identifier(time))

    with connection.cursor() as cursor:
        cursor.execute(_CLEAR_IO.format(rows=of("bucket")), values)
        cursor.execute(
            _ROLL_IO.format(
                keys=sql.SQL(", ").join(map(sql.Identifier, _IO_KEYS)),
                counters=sql.SQL(", ").join(map(sql.Identifier, COUNTERS)),
                metadata=metadata_operations("w"),
                sums=_IO_SUMS,
                rows=of("start"),
            ),
            values,
        )


def _roll_io_totals_of(who: dict[str, Any], span: Interval) -> None:
    values = {
        "filesystem": who["filesystem_id"],
        "target": who["target_id"],
        "start": span.start,
        "end": span.end,
        "largest": LARGEST_BIGINT,
    }
    rows = _OF_TARGET.format(sql.Identifier("start"), sql.Identifier("start"))
    with connection.cursor() as cursor:
        cursor.execute(_CLEAR_IO_TOTALS.format(rows=rows), values)
        cursor.execute(_ROLL_IO_TOTALS.format(metadata=metadata_operations("w"), rows=rows), values)


def _divided(
    spans: list[Interval], width: timedelta, ended: datetime
) -> tuple[list[Interval], list[Interval]]:
    """Widen intervals to whole buckets, join them, and divide them into ended ones and others."""
    whole = _joined(Interval(floor(start, width), ceil(end, width)) for start, end in spans)
    done = [Interval(start, min(end, ended)) for start, end in whole]
    left = [Interval(max(start, ended), end) for start, end in whole if end > ended]
    return [span for span in done if span.start < span.end], left


def _joined(spans: Iterable[Interval]) -> list[Interval]:
    """Join intervals that overlap or meet."""
    joined: list[Interval] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1].end:
            joined[-1] = Interval(joined[-1].start, max(joined[-1].end, end))
        else:
            joined.append(Interval(start, end))
    return joined


@dataclass(frozen=True)
class Piece:
    """A part of a range, and the level whose rows tell of it."""

    level: Level
    start: datetime
    end: datetime


def pieces(level: Level, start: datetime, end: datetime) -> list[Piece]:
    """Return what to read for a level's rows of [start, end), whole buckets.

    Where it is not rolled up yet, that which it is made of is read instead: nothing is missing, and
    nothing is there twice.
    """
    if start >= end:
        return []
    if level.made_of is None or not level.is_roll_up:
        return [Piece(level, start, end)]
    open_spans = _open(level, start, end)
    settled = coverage.gaps(open_spans, start, end)
    finer = (pieces(level.made_of, *span) for span in open_spans)
    return [*(Piece(level, *span) for span in settled), *chain.from_iterable(finer)]


def coarsest_pieces(of: Sequence[Level], start: datetime, end: datetime) -> list[Piece]:
    """Return what to read for sums over [start, end): as coarse as it goes, finer at its edges.

    Args:
        of: levels, finest first, whose buckets fill those of the next.
        start: where a bucket of the finest begins.
        end: likewise.
    """
    *finer, coarsest = of
    if not finer:
        return pieces(coarsest, start, end)
    begin, stop = ceil(start, coarsest.width), floor(end, coarsest.width)
    if begin >= stop:
        return coarsest_pieces(finer, start, end)
    edges = (*coarsest_pieces(finer, start, begin), *coarsest_pieces(finer, stop, end))
    return [*pieces(coarsest, begin, stop), *edges]


def _open(level: Level, start: datetime, end: datetime) -> list[Interval]:
    """Return the parts of a range in which a source's rows are still to be rolled up."""
    if level in {levels.IO_TEN_MINUTES, levels.IO_TOTALS}:
        width = _IO_WIDTH
        touched: Any = DirtyIo.objects.filter(target_id__isnull=False)
    else:
        (kind,) = (kind for kind in RPC_ROLL_UPS if level in kind.levels)
        width = kind.width
        touched = DirtyRpcs.objects.filter(level__lte=kind.pending, server_id__isnull=False)
    rows = touched.filter(start__lt=end, end__gt=start).values_list("start", "end")
    whole = [
        Interval(max(span.start, start), min(span.end, end))
        for span in _divided([Interval(*row) for row in rows], width, end)[0]
        if span.end > start
    ]
    return whole if len(whole) <= _MOST_PIECES else [Interval(whole[0].start, whole[-1].end)]


_RE_ADDED = sql.SQL("""
SELECT {sums} FROM {table} WHERE start >= %(start)s AND start < %(end)s
""")
_WHAT = ("RPCs", "timed RPCs", "µs of service time", "µs from arrival to end")  # of `_SUMS`


def discrepancies(start: datetime, end: datetime) -> list[str]:
    """Re-add the roll-ups of [start, end) against the charged windows, where all are kept.

    Returns:
        A sentence for every sum of a roll-up that is off.
    """
    found = []
    for kind in RPC_ROLL_UPS:
        whole = (floor(start, kind.width), ceil(end, kind.width))
        for level in kind.levels:
            for part in retention.retained((levels.ATTRIBUTED_RPCS, level), *whole):
                windows = _re_added(Piece(levels.ATTRIBUTED_RPCS, *part))
                read = map(_re_added, pieces(level, *part))
                rolled = [sum(sums) for sums in zip(*read, strict=True)]
                found += [
                    f"{level.table}: {charged} {what} are charged from {part.start} to "
                    f"{part.end}, {added} are rolled up"
                    for what, charged, added in zip(_WHAT, windows, rolled, strict=True)
                    if charged != added
                ]
    return found


def _re_added(piece: Piece) -> list[int]:
    sums = sql.SQL(", ").join(_values("coalesce(sum({}), 0)", _SUMS).values())
    with connection.cursor() as cursor:
        cursor.execute(
            _RE_ADDED.format(sums=sums, table=sql.Identifier(piece.level.table)),
            {"start": piece.start, "end": piece.end},
        )
        return list(map(int, cursor.fetchone()))
