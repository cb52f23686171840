"""Reads of counters: job_stats and md_stats of one or many targets at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import polars as pl
from django.db.models import F, Q

from collectors.tables import OPERATIONS
from ioportal.ingest.formats.common import (
    LoadOptions,
    discard,
    needed,
    overlap,
    parsed_parts,
    unregistered,
)
from ioportal.ingest.loading import Refused
from ioportal.ingest.models import DirtyReads, Segment
from ioportal.site import name_ids, registration
from ioportal.site.document_keys import InvalidDocument
from ioportal.site.models import Target
from ioportal.telemetry.copy import copy_frame
from ioportal.telemetry.models import LARGEST_BIGINT, Coverage, JobSnapshot, TargetSnapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.parsed import Account, Parsed
    from collectors.source import Source
    from ioportal.ingest.loading import Origin
    from ioportal.site.models import Filesystem


_MOST_LISTED = 10_000  # targets in a file


class _ReadLoader:
    """Base of the counter loaders."""

    coverage: ClassVar[Coverage.Source]
    time_column: str | None = None

    def __init__(self, options: LoadOptions, segment: Segment, origin: Origin) -> None:
        self._segment = segment
        self._origin = origin
        self._options = options
        self._read_at = needed(origin.read_at, "--at: when the counters were read")
        self._registered = {
            target.name: target for target in Target.objects.select_related("filesystem")
        }
        self._read: dict[str, Target] = {}
        self._unregistered: set[str] = set()

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the file."""
        return parsed_parts(self._segment, source)

    def recognises(self, account: Account) -> bool:
        """Return whether there are counters: output of lctl may have other parameters."""
        return account.accepted > 0

    def finish(self) -> None:
        """Cover the time of the read, unless another file covers it."""
        if self._unregistered:
            raise self._refusal()
        segment = self._segment
        targets = sorted(set(self._read.values()), key=lambda target: target.pk)
        if not targets:
            return
        # Locked until the commit: two loads cannot cover the same time.
        list(
            Target.objects.select_for_update().filter(pk__in=[t.pk for t in targets]).order_by("pk")
        )
        covered = Coverage.objects.filter(
            source=self.coverage, source_id__in=[t.pk for t in targets]
        )
        polled = Q(start__lt=self._read_at, end__gt=F("start"))  # by an agent
        for earlier in covered.filter(Q(start=self._read_at, end=self._read_at) | polled):
            other = Segment.objects.filter(pk=earlier.segment_id).first()
            if other is None:
                continue  # already deleted for another of its targets
            if not self._options.replace or earlier.end > earlier.start:
                target = Target.objects.get(pk=earlier.source_id)
                raise overlap(segment, other, f"target {target}")
            discard(other)
        segment.start = segment.end = self._read_at
        segment.targets.set(targets)
        Coverage.objects.bulk_create(
            Coverage(
                source=self.coverage,
                source_id=target.pk,
                start=self._read_at,
                end=self._read_at,
                segment_id=segment.pk,
            )
            for target in targets
        )
        DirtyReads.objects.bulk_create(
            DirtyReads(target=target, start=self._read_at, end=self._read_at) for target in targets
        )

    def placed(self, parsed: Parsed) -> pl.DataFrame:
        """Add the common columns of snapshots."""
        names_read = parsed.observed.union(parsed.table["target"].unique())
        self._register({name for name in names_read if name and name not in self._registered})
        table = parsed.table.filter(~pl.col("target").is_in(list(self._unregistered)))
        for name in sorted(names_read - self._unregistered):
            self._read[name] = self._target(name)
        self._segment.records += table.height
        operations = table.select(pl.sum_horizontal(pl.col(OPERATIONS).cast(pl.Int128).sum()))
        self._segment.operations = min(self._segment.operations + operations.item(), LARGEST_BIGINT)
        ids = {name: target.pk for name, target in self._read.items()}
        return table.with_columns(
            pl.col("target").replace_strict(ids, return_dtype=pl.Int32).alias("target_id"),
            pl.lit(self._segment.pk).alias("segment_id"),
            pl.lit(self._read_at).cast(pl.Datetime("us", "UTC")).alias("taken_at"),
        )

    def _register(self, target_names: set[str]) -> None:
        """Register targets with --register-targets; otherwise collect their names."""
        if target_names and self._options.register_targets:
            try:
                added = registration.add_targets(target_names, self._origin.filesystem)
            except InvalidDocument as error:
                raise Refused(f"{self._segment.name}: {error}") from error
            self._registered |= {target.name: target for target in added}
            return
        self._unregistered |= target_names
        if len(self._unregistered) > _MOST_LISTED:
            raise self._refusal()

    def _refusal(self) -> Refused:
        return unregistered(
            self._segment.name,
            self._unregistered,
            "Load it with --register-targets to register them by their names, or add them on the "
            "Site page or as [[target]] to the file that 'manage.py register' reads.",
        )

    def _target(self, name: str) -> Target:
        if not name:
            return needed(self._origin.target, "--target: the file does not name its target")
        target = self._registered[name]
        self._origin.check(target)
        return target


class JobStatsLoader(_ReadLoader):
    """job_stats of MDTs and OSTs."""

    coverage = Coverage.Source.JOB_STATS

    def __init__(self, options: LoadOptions, segment: Segment, origin: Origin) -> None:
        super().__init__(options, segment, origin)
        self._source_job_ids: dict[Filesystem, name_ids.NameIds] = {}

    def store(self, parsed: Parsed) -> None:
        """Append the entries."""
        entries = self.placed(parsed).with_columns(
            name_ids.storable(pl.col("job"), name_ids.SOURCE_JOB_ID_CHARACTERS)
        )
        for (target,), part in entries.partition_by("target", as_dict=True).items():
            filesystem = self._read[target].filesystem
            if filesystem not in self._source_job_ids:
                self._source_job_ids[filesystem] = name_ids.source_job_ids(filesystem)
            ids = self._source_job_ids[filesystem].ids(part["job"])
            copy_frame(JobSnapshot, part.with_columns(ids.alias("source_job_id")))


class MdStatsLoader(_ReadLoader):
    """md_stats of MDTs: totals for comparison with job_stats."""

    coverage = Coverage.Source.MD_STATS

    def store(self, parsed: Parsed) -> None:
        """Append the totals."""
        copy_frame(TargetSnapshot, self.placed(parsed))
