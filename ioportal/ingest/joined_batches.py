"""Old batches: those of a stream and day become one segment, with the sum of their accounts.

Without this, the accounts of batches would soon take more space than what they count. Rows keep the
keys of their batches (`SegmentPart`) until retention drops them. A batch is joined when no row is
derived by its key any more.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max, Min

from collectors import tables
from collectors.formats import BY_NAME
from ioportal.ingest.models import Batch, DirtyDeltas, DirtyExports, Segment, SegmentPart, Stream
from ioportal.telemetry import levels, retention
from ioportal.telemetry.models import LARGEST_BIGINT, floor_to_window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collectors.tables import Table
    from ioportal.telemetry.levels import Level

# The levels whose rows name their segment; other tables' rows refer to it by a foreign key.
_NAMED_BY: Final[dict[Table, Sequence[Level]]] = {
    tables.RPC_WINDOWS: (levels.RPC_WINDOWS, levels.RPC_SECONDS, levels.ATTRIBUTED_RPCS),
    tables.REQUEST_WINDOWS: (levels.REQUEST_WINDOWS,),
    tables.JOB_COUNTERS: (levels.JOB_DELTAS, levels.IO_WINDOWS),
    tables.TARGET_COUNTERS: (levels.TARGET_DELTAS,),
    tables.EXPORT_COUNTERS: (levels.HOST_WINDOWS,),
    tables.SERVICE_COUNTERS: (levels.SERVICE_SNAPSHOTS,),
}
_A_DAY, _MOMENT = timedelta(days=1), timedelta(microseconds=1)
_FORGOTTEN_AT_ONCE = 100  # segments

# Sequence numbers without a gap: a batch between them may still be delivered.
_RUNS = """
CREATE TEMP TABLE joining ON COMMIT DROP AS
SELECT batch_id, segment_id, first_sequence, sequence,
    first_value(segment_id) OVER (PARTITION BY run ORDER BY sequence) AS kept
FROM (
    SELECT *, count(*) FILTER (WHERE begins) OVER (ORDER BY sequence) AS run
    FROM (
        SELECT b.id AS batch_id, segment_id, first_sequence, sequence,
            lag(sequence) OVER (ORDER BY sequence) IS DISTINCT FROM first_sequence - 1 AS begins
        FROM ingest_batch b JOIN ingest_segment g ON g.id = b.segment_id
        WHERE source_id = %(source)s AND stream = %(stream)s AND content <> ''
            AND loaded_at < %(until)s
    ) b
) runs
"""

_ADD_UP = """
UPDATE ingest_segment s SET lines = t.lines, accepted = t.accepted, rejected = t.rejected,
    irrelevant = t.irrelevant, records = t.records,
    operations = least(t.operations, %(largest)s), start = t.start, "end" = t."end",
    name = CASE t.batches WHEN 1 THEN s.name
        ELSE %(name)s || ' batches ' || t.first_sequence || ' to ' || t.sequence END,
    rejected_by_reason = (
        SELECT coalesce(jsonb_object_agg(reason, rejects), '{}')
        FROM (
            SELECT r.key AS reason, sum(r.value::bigint) AS rejects
            FROM joining j JOIN ingest_segment g ON g.id = j.segment_id,
                jsonb_each_text(g.rejected_by_reason) r
            WHERE j.kept = s.id
            GROUP BY r.key
        ) reasons
    )
FROM (
    SELECT kept, count(*) AS batches, min(first_sequence) AS first_sequence,
        max(sequence) AS sequence, sum(lines) AS lines, sum(accepted) AS accepted,
        sum(rejected) AS rejected, sum(irrelevant) AS irrelevant, sum(records) AS records,
        sum(operations) AS operations, min(start) AS start, max("end") AS "end"
    FROM joining j JOIN ingest_segment g ON g.id = j.segment_id
    GROUP BY kept
) t
WHERE s.id = t.kept
"""
_ADD_TARGETS = """
INSERT INTO ingest_segment_targets (segment_id, target_id)
SELECT DISTINCT kept, target_id FROM joining JOIN ingest_segment_targets USING (segment_id)
ON CONFLICT DO NOTHING
"""
_REFERENCES = (
    ("ingest_accountingrecord", "segment_id"),
    ("ingest_displacedclaim", "segment_id"),
    ("ingest_displacedclaim", "taken_by_id"),
    ("ingest_laterows", "segment_id"),
    ("ingest_ownerconflict", "segment_id"),
    ("ingest_reject", "segment_id"),
    ("telemetry_coverage", "segment_id"),
)
_REFER = """
UPDATE {0} r SET {1} = kept FROM joining j WHERE r.{1} = j.segment_id AND kept <> j.segment_id
"""
# Queues are read each minute, so records of a job repeat: its latest one of the day is kept.
_JOIN_RECORDS = """
DELETE FROM ingest_accountingrecord WHERE id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER (
            PARTITION BY segment_id, job_id, workload_job_id ORDER BY id DESC
        ) AS place
        FROM ingest_accountingrecord WHERE segment_id IN (SELECT kept FROM joining)
    ) records
    WHERE place > 1
)
"""
_COUNT_RECORDS = """
UPDATE ingest_segment s
SET records = (SELECT count(*) FROM ingest_accountingrecord r WHERE r.segment_id = s.id)
WHERE id IN (SELECT kept FROM joining)
"""
_KEEP_KEYS = """
INSERT INTO ingest_segmentpart (id, segment_id)
SELECT segment_id, kept FROM joining WHERE kept <> segment_id
"""
_FORGET_TARGETS = """
DELETE FROM ingest_segment_targets m USING joining j
WHERE m.segment_id = j.segment_id AND kept <> j.segment_id
"""
_FORGET_BATCHES = """
DELETE FROM ingest_batch b USING joining j WHERE b.id = j.batch_id AND kept <> j.segment_id
"""
_FORGET_SEGMENTS = """
DELETE FROM ingest_segment s USING joining j WHERE s.id = j.segment_id AND kept <> s.id
"""
_MARK_JOINED = """
UPDATE ingest_batch b SET sequence = t.sequence, content = ''
FROM (SELECT kept, max(sequence) AS sequence FROM joining GROUP BY kept) t
WHERE b.segment_id = t.kept
"""
_FORGET = (_FORGET_TARGETS, _FORGET_BATCHES, _FORGET_SEGMENTS, _MARK_JOINED, "DROP TABLE joining")


def join_old(now: datetime) -> int:
    """Join the oldest day of each stream; return how many streams had batches old enough."""
    if settings.BATCHES_RETENTION is None:
        return 0
    before = _midnight(now - settings.BATCHES_RETENTION)
    streams = Stream.objects.filter(discarded_at=None).select_related("source")
    return sum(_join_day(stream, before) for stream in streams)


def forget_keys() -> None:
    """Delete the keys of batches of which retention has dropped all rows."""
    joined = Segment.objects.filter(pk__in=SegmentPart.objects.values("segment"))
    for segment in joined.order_by("end")[:_FORGOTTEN_AT_ONCE]:
        if not _is_named(segment.table, segment.start, segment.end):
            segment.parts.all().delete()


@transaction.atomic
def _join_day(stream: Stream, before: datetime) -> bool:
    """Join the batches of the first day that has single ones; return whether there are any."""
    Stream.objects.select_for_update().get(pk=stream.pk)  # staff may discard it
    single = Batch.objects.filter(source=stream.source, stream=stream.stream).exclude(content="")
    loaded = single.order_by("sequence").values_list("segment__loaded_at", flat=True)
    first, last = loaded.first(), loaded.last()
    # The last day remains: pages show when the latest batch was stored.
    if first is None or last is None or _midnight(first) >= min(before, _midnight(last)):
        return False
    until = _midnight(first) + _A_DAY
    table = BY_NAME[stream.source.format].table
    segments = Segment.objects.filter(pk__in=single.values("segment"), loaded_at__lt=until)
    if _is_needed(table, segments):
        return False
    values: dict[str, Any] = {
        "source": stream.source_id,
        "stream": stream.stream,
        "until": until,
        "name": str(stream.source),
        "largest": LARGEST_BIGINT,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RUNS, values)
        cursor.execute(_ADD_UP, values)
        cursor.execute(_ADD_TARGETS)
        for name, column in _REFERENCES:
            cursor.execute(_REFER.format(name, column))
        if table in _NAMED_BY:
            cursor.execute(_KEEP_KEYS)
        else:
            cursor.execute(_JOIN_RECORDS)
            cursor.execute(_COUNT_RECORDS)
        for statement in _FORGET:
            cursor.execute(statement)
    return True


def _midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.date(), time(), moment.tzinfo)


def _is_needed(table: Table, segments: Any) -> bool:
    """Return whether rows may still be derived by the keys of segments."""
    pending = (dirty.objects.filter(segment__in=segments) for dirty in (DirtyDeltas, DirtyExports))
    if any(rows.exists() for rows in pending) or segments.exclude(experiment=None).exists():
        return True
    if table is not tables.JOB_COUNTERS:
        return False
    extent = segments.aggregate(start=Min("start"), end=Max("end"))
    return _is_retained([levels.JOB_DELTAS], extent["start"], extent["end"])


def _is_named(table: Table, start: datetime | None, end: datetime | None) -> bool:
    """Return whether rows may still name the keys of segments between two times."""
    return any(_is_retained([level], start, end) for level in _NAMED_BY[table])


def _is_retained(kinds: Sequence[Level], start: datetime | None, end: datetime | None) -> bool:
    """Return whether rows of levels may be retained between two times."""
    if start is None or end is None:
        return False
    return bool(retention.retained(kinds, floor_to_window(start), end + _MOMENT))
