"""What the loading of files reports: lines and operations, and what could not be attributed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import Max

from collectors import tables
from ioportal.ingest.attribution import namesakes
from ioportal.ingest.reconciliation.comparing import attributed_operations
from ioportal.jobs.models import WorkloadJob
from ioportal.site.models import Target
from ioportal.telemetry.models import JobSnapshot, Principal, ServiceSnapshot, TargetSnapshot

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from ioportal.ingest.models import Segment

_ATTRIBUTABLE = (tables.RPC_WINDOWS, tables.JOB_COUNTERS)
_ATTRIBUTED = (Principal.JOB, Principal.PROCESS, Principal.HOST)

_WITHOUT_JOBS = """
SELECT g.id, array_agg(DISTINCT c.name ORDER BY c.name)
FROM ingest_segment g
CROSS JOIN LATERAL (
    SELECT filesystem_id FROM site_server WHERE id = g.server_id
    UNION
    SELECT t.filesystem_id FROM ingest_segment_targets m JOIN site_target t ON t.id = m.target_id
    WHERE m.segment_id = g.id
) f
JOIN site_filesystem_clusters fc USING (filesystem_id)
JOIN site_cluster c ON c.id = fc.cluster_id
WHERE g.id = ANY(%(segments)s) AND g.start IS NOT NULL
GROUP BY g.id
HAVING NOT bool_or(EXISTS (
    SELECT FROM jobs_job j
    WHERE j.cluster_id = c.id AND j.started_at < g."end" + %(after)s
        AND (j.ended_at IS NULL OR j.ended_at > g.start - %(before)s)
))
ORDER BY g.id
"""


@dataclass
class SegmentAccount:
    """Lines and operations of one or more segments; counters count since the previous read."""

    lines: int = 0
    accepted: int = 0
    rejected: int = 0
    irrelevant: int = 0
    operations: int = 0
    attributed: dict[str, int] = field(
        default_factory=lambda: {str(kind.label): 0 for kind in _ATTRIBUTED}
    )
    pending: int = 0
    ambiguous: int = 0
    unattributed: int = 0
    contradicted: int = 0

    @classmethod
    def for_segments(cls, segments: Collection[Segment]) -> SegmentAccount:
        """Add up the lines of segments and their operations by current attribution."""
        account = cls()
        for name in ("lines", "accepted", "rejected", "irrelevant"):
            setattr(account, name, sum(getattr(segment, name) for segment in segments))
        for kind, operations in attributed_operations(segments).items():
            account.operations += operations
            if kind in _ATTRIBUTED:
                account.attributed[str(kind.label)] += operations
            else:
                setattr(account, str(kind.label), operations)
        return account


def without_jobs(segments: Collection[Segment]) -> dict[tuple[str, ...], list[Segment]]:
    """Return the segments of whose time range no job is known, by the names of their clusters."""
    attributable = {segment.pk: segment for segment in segments if segment.table in _ATTRIBUTABLE}
    values: dict[str, Any] = {
        "segments": list(attributable),
        "before": namesakes.ENDED_WITHIN,
        "after": namesakes.STARTS_WITHIN,
    }
    lacking: dict[tuple[str, ...], list[Segment]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_WITHOUT_JOBS, values)
        for key, clusters in cursor.fetchall():
            lacking[tuple(clusters)].append(attributable[key])
    return lacking


def unlinked_workload_jobs(segment: Segment) -> int:
    """Return the number of PanDA jobs of a segment without a link to a batch job."""
    if segment.table is not tables.WORKLOAD_JOBS:
        return 0
    return WorkloadJob.objects.filter(records__segment=segment, jobs=None).distinct().count()


def last_counter_changes(reads: Collection[Segment]) -> dict[int, datetime]:
    """Return the latest change of counters by segment, where the input contains its time."""
    changes: dict[int, datetime] = {}
    read_times = [read.start for read in reads if read.start]
    if not read_times:
        return changes
    targets = Target.objects.filter(segment__in=reads).values_list("pk", flat=True)
    of_targets = {"target_id__in": set(targets)}
    of_servers = {"server_id__in": {read.server_id for read in reads if read.server_id}}
    snapshots: tuple[tuple[Any, dict[str, set[int]]], ...] = (
        (JobSnapshot, of_targets),
        (TargetSnapshot, of_targets),
        (ServiceSnapshot, of_servers),
    )
    for model, filters in snapshots:
        rows = model.objects.filter(
            segment_id__in=[read.pk for read in reads],
            taken_at__gte=min(read_times),
            taken_at__lte=max(read_times),
            snapshot_at__isnull=False,
            **filters,
        )
        changes |= dict(rows.values_list("segment_id").annotate(Max("snapshot_at")))
    return changes
