"""Reads of counters: job_stats and md_stats of one or many targets at one moment."""

from __future__ import annotations

from collections import defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, Self

import polars as pl
from django.db import connection
from django.db.models import F, Q

from collectors.tables import OPERATIONS
from ioportal.ingest.loaders.common import (
    discard,
    needed,
    overlap,
    unregistered,
)
from ioportal.ingest.loading import Loader, LoadOptions, Refused
from ioportal.ingest.models import DirtyReads, Segment
from ioportal.jobs.models import DirtyStatistics
from ioportal.site import name_ids, registration
from ioportal.site.document_keys import InvalidDocument
from ioportal.site.models import Target
from ioportal.telemetry.copy import copy_frame
from ioportal.telemetry.models import LARGEST_BIGINT, Coverage, JobSnapshot, TargetSnapshot

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from collectors.parsed import Parsed
    from ioportal.ingest.loading import Origin

_MOST_LISTED = 10_000  # targets in a file
_ROWS_TOGETHER = 10_000  # of a file in memory; a group has a hundred files


class _ReadLoader(Loader):
    """Base of the counter loaders: the reads of a transaction are stored together."""

    coverage: ClassVar[Coverage.Source]

    def __init__(self, options: LoadOptions, segment: Segment, origin: Origin) -> None:
        super().__init__(options, segment, origin)
        self.read_at = needed(origin.read_at, "--at: when the counters were read")
        self.waiting: list[pl.DataFrame] = []
        self.names: set[str] = set()  # of targets in the rows that wait
        self.targets: set[Target] = set()
        self.unregistered_names: set[str] = set()

    def store(self, parsed: Parsed) -> None:
        """Keep the rows; append them if they are many."""
        table = parsed.table
        names = parsed.observed.union(table["target"].unique())
        if "" in names:
            target = needed(self.origin.target, "--target: the file does not name its target")
            names = names - {""} | {target.name}
            table = table.with_columns(pl.col("target").replace("", target.name))
        self.names |= names
        self.waiting.append(
            table.with_columns(
                pl.lit(self.segment.pk).alias("segment_id"),
                pl.lit(self.read_at).cast(pl.Datetime("us", "UTC")).alias("taken_at"),
            )
        )
        self.segment.records += table.height
        operations = table.select(pl.sum_horizontal(pl.col(OPERATIONS).cast(pl.Int128).sum()))
        self.segment.operations = min(self.segment.operations + operations.item(), LARGEST_BIGINT)
        if sum(rows.height for rows in self.waiting) >= _ROWS_TOGETHER:
            self._append([self])

    @classmethod
    def append(cls, rows: pl.DataFrame, targets: Mapping[str, Target]) -> None:
        """Append rows with the keys of their targets."""
        raise NotImplementedError

    @classmethod
    def finish_all(cls, loaders: Sequence[Self]) -> None:
        """Append the remaining rows, and cover the times of the reads, unless others cover them."""
        cls._append(loaders)
        for loader in loaders:
            if loader.unregistered_names:
                raise loader.refusal()
        keys = sorted({target.pk for loader in loaders for target in loader.targets})
        # Locked until the commit: two loads cannot cover the same time.
        list(Target.objects.select_for_update().filter(pk__in=keys).order_by("pk"))
        cls._require_uncovered(loaders, keys)
        reads = [
            (loader, target)
            for loader in loaders
            for target in sorted(loader.targets, key=attrgetter("pk"))
        ]
        for loader in loaders:
            if loader.targets:
                loader.segment.start = loader.segment.end = loader.read_at
        Segment.targets.through.objects.bulk_create(
            Segment.targets.through(segment=loader.segment, target=target)
            for loader, target in reads
        )
        Coverage.objects.bulk_create(
            Coverage(
                source=cls.coverage,
                source_id=target.pk,
                start=loader.read_at,
                end=loader.read_at,
                segment_id=loader.segment.pk,
            )
            for loader, target in reads
        )
        cls.mark([(target, loader.read_at) for loader, target in reads])

    @classmethod
    def mark(cls, reads: Sequence[tuple[Target, datetime]]) -> None:
        """Request what follows from reads of targets."""
        raise NotImplementedError

    @classmethod
    def _append(cls, loaders: Sequence[Self]) -> None:
        """Append the rows that wait."""
        names = {name for loader in loaders for name in loader.names}
        registered = {
            target.name: target
            for target in Target.objects.select_related("filesystem").filter(name__in=names)
        }
        rows: list[pl.DataFrame] = []
        for loader in loaders:
            loader.place(registered)
            rows += loader.waiting
            loader.names, loader.waiting = set(), []
        if rows and registered:
            keys = {name: target.pk for name, target in registered.items()}
            of_target = pl.col("target").replace_strict(keys, default=None, return_dtype=pl.Int32)
            known = pl.concat(rows).with_columns(target_id=of_target).drop_nulls("target_id")
            cls.append(known, registered)

    def place(self, registered: dict[str, Target]) -> None:
        """Find the targets of the rows that wait; register them with --register-targets."""
        unknown = self.names - registered.keys()
        if unknown and self.options.register_targets:
            try:
                added = registration.add_targets(unknown, self.origin.filesystem)
            except InvalidDocument as error:
                raise Refused(f"{self.segment.name}: {error}") from error
            registered |= {target.name: target for target in added}
        else:
            self.unregistered_names |= unknown
            if len(self.unregistered_names) > _MOST_LISTED:
                raise self.refusal()
        for name in sorted(self.names & registered.keys()):
            self.origin.check(registered[name])
            self.targets.add(registered[name])

    def refusal(self) -> Refused:
        return unregistered(
            self.segment.name,
            self.unregistered_names,
            "Load it with --register-targets to register them by their names, or add them on the "
            "Site page or as [[target]] to the file that 'manage.py register' reads.",
        )

    @classmethod
    def _require_uncovered(cls, loaders: Sequence[Self], targets: Collection[int]) -> None:
        """Refuse reads at times that others cover, or replace those; targets are locked."""
        by_target: dict[int, dict[datetime, Self]] = defaultdict(dict)
        for loader in loaders:
            for target in loader.targets:
                twin = by_target[target.pk].setdefault(loader.read_at, loader)
                if twin is not loader:
                    raise loader.twin(twin.segment, target)
        times = [loader.read_at for loader in loaders]
        polled = Q(start__lt=max(times), end__gt=F("start"))  # by an agent
        covered = Coverage.objects.filter(
            Q(start__in=times, end=F("start")) | polled,
            source=cls.coverage,
            source_id__in=targets,
        )
        for earlier in covered:
            reads = by_target[earlier.source_id]
            latest = max(reads)
            if earlier.end == earlier.start and earlier.start in reads:
                reads[earlier.start].replace(earlier)
            elif earlier.end > earlier.start and latest > earlier.start:
                reads[latest].replace(earlier)

    def replace(self, earlier: Coverage) -> None:
        """Discard the segment of other coverage, with --replace."""
        other = Segment.objects.filter(pk=earlier.segment_id).first()
        if other is None:
            return  # already deleted for another of its targets
        target = Target.objects.get(pk=earlier.source_id)
        if earlier.end > earlier.start or other.is_batch:
            raise overlap(self.segment, other, f"target {target}")
        if not self.options.replace or other.pk in self.options.loaded:
            raise self.twin(other, target)
        discard(other)

    def twin(self, other: Segment, target: Target) -> Refused:
        """Return the refusal of a second read of a target at the same time."""
        stored = other.pk and other.pk not in self.options.loaded
        remedy = " To replace the stored one, use --replace." if stored else ""
        return Refused(
            f"{self.segment.name} and {other.name} are reads of target {target} at the same time, "
            f"{self.read_at:%Y-%m-%d %H:%M:%S} UTC. Nothing was loaded.{remedy}"
        )


class JobStatsLoader(_ReadLoader):
    """job_stats of MDTs and OSTs."""

    coverage = Coverage.Source.JOB_STATS

    @classmethod
    def append(cls, rows: pl.DataFrame, targets: Mapping[str, Target]) -> None:
        """Append the entries."""
        jobs = rows.with_columns(
            name_ids.storable(pl.col("job"), name_ids.SOURCE_JOB_ID_CHARACTERS)
        )
        filesystems = {name: target.filesystem for name, target in targets.items()}
        for filesystem in set(filesystems.values()):
            names = [name for name, of in filesystems.items() if of == filesystem]
            part = jobs.filter(pl.col("target").is_in(names))
            ids = name_ids.source_job_ids(filesystem).ids(part["job"])
            copy_frame(JobSnapshot, part.with_columns(ids.alias("source_job_id")))

    @classmethod
    def mark(cls, reads: Sequence[tuple[Target, datetime]]) -> None:
        """Request the attribution of the entries."""
        DirtyReads.objects.bulk_create(
            DirtyReads(target=target, start=read_at, end=read_at) for target, read_at in reads
        )


# Their quality compares job_stats with md_stats.
_RUNNING = """
SELECT DISTINCT j.id
FROM unnest(%s::int[], %s::timestamptz[]) r(filesystem_id, taken_at)
JOIN site_filesystem_clusters USING (filesystem_id)
JOIN jobs_job j USING (cluster_id)
WHERE j.started_at <= r.taken_at AND (j.ended_at IS NULL OR j.ended_at >= r.taken_at)
"""


class MdStatsLoader(_ReadLoader):
    """md_stats of MDTs: totals for comparison with job_stats."""

    coverage = Coverage.Source.MD_STATS

    @classmethod
    def append(cls, rows: pl.DataFrame, targets: Mapping[str, Target]) -> None:  # noqa: ARG003
        """Append the totals."""
        copy_frame(TargetSnapshot, rows)

    @classmethod
    def mark(cls, reads: Sequence[tuple[Target, datetime]]) -> None:
        """Request new statistics of the jobs that ran meanwhile."""
        filesystems = [target.filesystem_id for target, _ in reads]
        with connection.cursor() as cursor:
            cursor.execute(_RUNNING, [filesystems, [read_at for _, read_at in reads]])
            DirtyStatistics.objects.mark({job for (job,) in cursor.fetchall()})
