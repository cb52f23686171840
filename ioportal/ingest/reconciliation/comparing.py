"""Reconciliation: re-add the stored rows of segments and compare them with their accounts.

Segments are compared in groups, with a constant number of statements for each group.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db.models import Case, Count, F, Sum, Value, When
from django.db.models.functions import Coalesce

from collectors import tables
from collectors.tables import OPERATIONS, REQUEST_COUNTERS
from ioportal.ingest.models import AccountingRecord, LateRows, SegmentPart
from ioportal.ingest.reconciliation import expected_operations, panda_links
from ioportal.site.models import Counter
from ioportal.telemetry import levels, retention
from ioportal.telemetry.models import Principal, floor_to_window

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from collectors.tables import Table
    from ioportal.ingest.models import Segment
    from ioportal.telemetry.levels import Level

_RPCS: Any = F("count")
_OPERATIONS: Any = reduce(add, (Coalesce(F(name), Value(0)) for name in OPERATIONS))


class _Rows(NamedTuple):
    """The raw rows of a table: their level and the expression for their operations."""

    level: Level
    operations: Any


_FROM_FILES: Final[dict[Table, _Rows]] = {
    tables.RPC_WINDOWS: _Rows(levels.RPC_WINDOWS, _RPCS),
    tables.REQUEST_WINDOWS: _Rows(levels.REQUEST_WINDOWS, _RPCS),
    tables.JOB_COUNTERS: _Rows(levels.JOB_SNAPSHOTS, _OPERATIONS),
    tables.TARGET_COUNTERS: _Rows(levels.TARGET_SNAPSHOTS, _OPERATIONS),
    tables.SERVICE_COUNTERS: _Rows(levels.SERVICE_SNAPSHOTS, F("samples")),  # of requests
}
_FROM_AGENTS: Final[dict[Table, _Rows]] = _FROM_FILES | {
    tables.JOB_COUNTERS: _Rows(levels.JOB_DELTAS, _OPERATIONS),
    tables.TARGET_COUNTERS: _Rows(levels.TARGET_DELTAS, _OPERATIONS),
    tables.EXPORT_COUNTERS: _Rows(levels.HOST_WINDOWS, F("metadata_operations")),
}
_ATTRIBUTED: Final[dict[Table, _Rows]] = {
    tables.RPC_WINDOWS: _Rows(levels.ATTRIBUTED_RPCS, _RPCS),
    tables.JOB_COUNTERS: _Rows(levels.IO_WINDOWS, _OPERATIONS),
}
STORED: dict[Table, Callable[[Segment], int]] = {}  # counts the stored rows of other tables


@dataclass(frozen=True)
class Comparison:
    """What differs between the account of a segment and its stored rows."""

    segment: Segment
    is_complete: bool  # none of its rows were dropped
    differences: Sequence[str]


def compare(segments: Iterable[Segment]) -> list[Comparison]:
    """Re-add the stored rows of segments; retention may have left a part of them.

    Args:
        segments: with their batches (`select_related`).
    """
    groups: dict[tuple[Table, bool], list[Segment]] = defaultdict(list)
    for segment in segments:
        groups[segment.table, segment.is_batch].append(segment)
    return [each for group in groups.values() for each in _compare(group)]


def attributed_operations(segments: Collection[Segment]) -> dict[Principal, int]:
    """Return operations of segments by kind of principal."""
    operations: dict[Principal, int] = defaultdict(int)
    for table, (level, amount) in _ATTRIBUTED.items():
        group = [segment for segment in segments if segment.table is table]
        if not group:
            continue
        rows = _within(level, group, _keys(group)).values_list("kind")
        rows = rows.annotate(amount=Sum(amount))
        for kind, number in rows:
            operations[Principal(kind)] += int(number)
    return dict(operations)  # a template would look up `items` as a key of a defaultdict


def _compare(group: list[Segment]) -> list[Comparison]:
    """Compare segments of one table, all from files or all from agents."""
    retained = _Retained(group)
    keys = _keys(group)
    stored = _stored(group, keys)
    expected = _expected(group, retained)
    attributed = _attributed(group, keys) if expected else {}
    comparisons = []
    for segment in group:
        sentences = [*_contradictions(segment)]
        if segment.pk in retained.raw:
            sentences += _missing(segment, *stored[segment.pk])
        found = attributed.get(segment.pk, 0)
        if found != expected.get(segment.pk, found):
            sentences.append(f"{expected[segment.pk]} operations expected, {found} attributed")
        if wrong_links := panda_links.wrong_links(segment):
            sentences.append(
                f"{wrong_links} links of its PanDA jobs to batch jobs are missing or wrong"
            )
        comparisons.append(Comparison(segment, retained.is_complete(segment), sentences))
    return comparisons


class _Retained:
    """Which rows of segments of one table were not dropped, by the keys of the segments."""

    def __init__(self, group: list[Segment]) -> None:
        table, is_batch = group[0].table, group[0].is_batch
        keys = {segment.pk for segment in group}
        self.raw = self.attributed = self.expected = keys
        raw, attributed = _raw(group), _ATTRIBUTED.get(table)
        if raw:
            self.raw = keys - _dropped(raw.level, group)
        if attributed:
            self.attributed = keys - _dropped(attributed.level, group) - _late(group)
        if table is tables.JOB_COUNTERS:
            self.expected = self.raw
            if is_batch:  # without earlier reads, all operations of a batch are attributed
                self.expected = keys - _after_dropped_reads(group, self.raw)

    def is_complete(self, segment: Segment) -> bool:
        """Return whether all rows can be re-added."""
        return all(segment.pk in keys for keys in (self.raw, self.attributed, self.expected))


def _raw(group: Sequence[Segment]) -> _Rows | None:
    return (_FROM_AGENTS if group[0].is_batch else _FROM_FILES).get(group[0].table)


def _dropped(level: Level, group: Sequence[Segment]) -> set[int]:
    """Return the segments of which rows of a level may be dropped."""
    log = retention.dropped([level], *retention.ALWAYS)
    return {
        segment.pk
        for segment in group
        if segment.start
        and segment.end
        and any(start <= segment.end and end > floor_to_window(segment.start) for start, end in log)
    }


def _late(group: Sequence[Segment]) -> set[int]:
    """Return the segments that overlap data that is not attributed, because it arrived late."""
    late: dict[tuple[str, int | None], list[tuple[datetime, datetime]]] = defaultdict(list)
    places = ("server_id", "target_id", "segment_id")
    for start, end, *keys in LateRows.objects.filter(job=None).values_list("start", "end", *places):
        for place, key in zip(places, keys, strict=True):
            late[place, key].append((start, end))
    if not late:
        return set()
    targets = defaultdict(list)
    for pk, target in expected_operations.targets_of([segment.pk for segment in group]):
        targets[pk].append(("target_id", target))
    return {
        segment.pk
        for segment in group
        for place in (
            ("server_id", segment.server_id),
            ("segment_id", segment.pk),
            *targets[segment.pk],
        )
        for start, end in late.get(place, ())
        if segment.start and segment.end and start <= segment.end and end >= segment.start
    }


def _after_dropped_reads(batches: Sequence[Segment], raw: set[int]) -> set[int]:
    """Return the batches after reads from files of which rows may be dropped."""
    starts = {batch.pk: batch.start for batch in batches if batch.start}
    polls = [(pk, (target, starts[pk])) for pk, target in expected_operations.targets_of(starts)]
    reads = expected_operations.last_reads({poll for _, poll in polls})
    after = {(pk, reads[poll]) for pk, poll in polls if poll in reads}
    dropped = retention.dropped([levels.JOB_SNAPSHOTS], *retention.ALWAYS) if after else []
    return {
        pk
        for pk, read_at in after
        if pk not in raw or any(start <= read_at < end for start, end in dropped)
    }


def _contradictions(segment: Segment) -> Iterator[str]:
    """Yield what an account contradicts in itself."""
    if segment.lines != segment.accepted + segment.rejected + segment.irrelevant:
        yield f"{segment.lines} lines are not the sum of their kinds"
    if sum(segment.rejected_by_reason.values()) != segment.rejected:
        yield f"{segment.rejected} rejects are not the sum of their reasons"


def _missing(segment: Segment, records: int, operations: int) -> Iterator[str]:
    """Yield how the stored rows differ from an account."""
    # Rows of hosts are added up when a job on them arrives: their number changes, not their sum.
    if records != segment.records and segment.table is not tables.EXPORT_COUNTERS:
        yield f"{segment.records} records were accepted, {records} are stored"
    if operations != segment.operations:
        yield f"{segment.operations} operations were counted, {operations} are stored"


def _stored(group: Sequence[Segment], keys: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """Return the numbers of raw rows and their operations by segment."""
    table = group[0].table
    found: dict[int, tuple[int, int]] = {segment.pk: (0, 0) for segment in group}
    if stored := STORED.get(table):
        return {segment.pk: (stored(segment), 0) for segment in group}
    if raw := _raw(group):
        sums = _within(raw.level, group, keys).values_list("segment_id")
        amount = _requests() if table is tables.SERVICE_COUNTERS else raw.operations
        for key, records, operations in sums.annotate(
            records=Count("segment_id"), amount=Sum(amount)
        ):
            earlier = found[keys[key]]
            found[keys[key]] = earlier[0] + records, earlier[1] + int(operations or 0)
        return found
    records = AccountingRecord.objects.filter(segment__in=found).values_list("segment")
    return found | {pk: (number, 0) for pk, number in records.annotate(number=Count("pk"))}


def _within(level: Level, group: Sequence[Segment], keys: Collection[int]) -> QuerySet[Any]:
    """Return the rows of segments of one table in their time."""
    starts = [floor_to_window(segment.start) for segment in group if segment.start]
    ends = [segment.end for segment in group if segment.end]
    every: QuerySet[Any] = level.model._default_manager.all()  # noqa: SLF001  (documented name)
    rows = every.filter(segment_id__in=list(keys))
    if not starts or not ends:
        return rows.none()
    rows = rows.filter(**{f"{level.time}__lte": max(ends)})
    if level is levels.IO_WINDOWS:
        return rows  # the window of a read starts with the read before
    return rows.filter(**{f"{level.time}__gte": min(starts)})


def _keys(group: Sequence[Segment]) -> dict[int, int]:
    """Return the segments by the keys in their rows."""
    return SegmentPart.keys_of(segment.pk for segment in group)


def _requests() -> Any:
    """Return the expression for the requests in a snapshot of a service counter."""
    counters = Counter.objects.filter(name__in=REQUEST_COUNTERS).values("pk")
    return Case(When(counter_id__in=counters, then=F("samples")), default=Value(0))


def _attributed(group: Sequence[Segment], keys: Mapping[int, int]) -> dict[int, int]:
    """Return the attributed operations by segment."""
    level, operations = _ATTRIBUTED[group[0].table]
    sums = _within(level, group, keys).values_list("segment_id")
    found: dict[int, int] = defaultdict(int)
    for key, number in sums.annotate(amount=Sum(operations)):
        found[keys[key]] += int(number)
    return found


def _expected(group: Sequence[Segment], retained: _Retained) -> dict[int, int]:
    """Return the operations to attribute, of segments whose rows are retained."""
    table = group[0].table
    known = retained.attributed & retained.expected
    group = [segment for segment in group if segment.pk in known]
    if not group or table not in _ATTRIBUTED:
        return {}
    if table is tables.JOB_COUNTERS and not group[0].is_batch:
        return expected_operations.of_reads(group)
    expected = {segment.pk: segment.operations for segment in group}
    if table is tables.JOB_COUNTERS:
        for pk, operations in expected_operations.counted_by_files(group).items():
            expected[pk] -= operations
    return expected
