"""The formats that can be loaded: what each needs to be told, and how its rows are stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

import polars as pl
from django.db.models import Sum

from collectors.batch import alps, pbs, sacct
from collectors.lustre import job_stats, md_stats, rpc_trace
from collectors.tables import OPERATIONS
from ioportal.ingest.loading import Loader, Origin, Refused
from ioportal.ingest.models import (
    AccountingRecord,
    Segment,
    TouchedJob,
    TouchedReads,
    TouchedTrace,
)
from ioportal.jobs import accounting, names
from ioportal.jobs.models import Job, Target
from ioportal.telemetry.copy import copy_frame
from ioportal.telemetry.models import Coverage, JobSnapshot, RpcWindow, TargetSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from collectors.parsed import Parsed
    from collectors.source import Source
    from ioportal.jobs.models import Server

_SOURCE_JOB_ID_CHARACTERS = 255
_NID_CHARACTERS = 128
_SERVICE_CHARACTERS = 32


class RpcTraceLoader:
    """A server's RPC trace: raw windows, one covered interval from the first record to the last."""

    def __init__(self, segment: Segment, origin: Origin, seen: rpc_trace.RepeatedRecords) -> None:
        self.reached: datetime | None = None
        self._segment = segment
        self._server = _needed(origin.server, "--server: whose trace it is")
        self._seen = seen
        self._nids = names.nids()
        self._services = names.services()
        self._source_job_ids = names.source_job_ids(self._server.filesystem)

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the text; records that another text of this command has are left out."""
        return rpc_trace.parse(source, self._seen)

    def store(self, parsed: Parsed) -> None:
        """Append the windows."""
        windows = parsed.table.with_columns(
            names.storable(pl.col("nid"), _NID_CHARACTERS),
            names.storable(pl.col("job"), _SOURCE_JOB_ID_CHARACTERS),
            names.storable(pl.col("service"), _SERVICE_CHARACTERS),
        )
        if windows.is_empty():
            return
        copy_frame(
            RpcWindow,
            windows.select(
                pl.exclude("nid", "job", "service"),
                pl.lit(self._segment.pk).alias("segment_id"),
                pl.lit(self._server.pk).alias("server_id"),
                self._nids.ids(windows["nid"]).alias("nid_id"),
                self._source_job_ids.ids(windows["job"]).alias("source_job_id"),
                self._services.ids(windows["service"]).alias("service_id"),
            ),
        )
        first, last = windows.select(pl.min("first"), pl.max("last")).row(0)
        self._segment.start = min(first, self._segment.start or first)
        self._segment.end = self.reached = max(last, self._segment.end or last)
        self._segment.records += windows.height
        self._segment.operations += windows["count"].sum()

    def finish(self) -> None:
        """Cover the extent, unless another segment of the server covers part of it."""
        segment = self._segment
        if segment.start is None or segment.end is None:
            return
        other = (
            Segment.objects.filter(
                format=segment.format,
                server=self._server,
                start__lte=segment.end,
                end__gte=segment.start,
            )
            .exclude(pk=segment.pk)
            .exclude(digest__startswith="loading ")
            .first()
        )
        if other:
            raise _overlap(segment, other, f"server {self._server}")
        Coverage.objects.create(
            source=Coverage.Source.RPC_TRACE,
            source_id=self._server.pk,
            start=segment.start,
            end=segment.end,
            segment_id=segment.pk,
        )
        TouchedTrace.objects.create(server=self._server, start=segment.start, end=segment.end)


class _ReadLoader:
    """Reads of counters: one read of one or many targets at one moment."""

    source: ClassVar[Coverage.Source]

    reached: datetime | None = None

    def __init__(self, segment: Segment, origin: Origin) -> None:
        self._segment = segment
        self._origin = origin
        self._read_at = _needed(origin.read_at, "--at: when it was read")
        self._targets = {target.name: target for target in Target.objects.all()}
        self._read: dict[str, Target] = {}

    def _placed(self, table: pl.DataFrame) -> pl.DataFrame:
        """Add the columns that both kinds of snapshot have."""
        for name in table["target"].unique().sort().to_list():
            self._read[name] = self._target(name)
        self._segment.records += table.height
        self._segment.operations += int(
            table.select(pl.sum_horizontal(pl.col(OPERATIONS).sum())).item() or 0
        )
        ids = {name: target.pk for name, target in self._read.items()}
        return table.with_columns(
            pl.col("target").replace_strict(ids, return_dtype=pl.Int32).alias("target_id"),
            pl.lit(self._segment.pk).alias("segment_id"),
            pl.lit(self._read_at).cast(pl.Datetime("us", "UTC")).alias("taken_at"),
        )

    def _target(self, name: str) -> Target:
        if not name:
            return _needed(self._origin.target, "--target: the text does not name its target")
        if name not in self._targets:
            raise Refused(
                f"{self._segment.name}: target {name[:64]!r} is not registered. Add it to its "
                f"filesystem on the Site page, or as a [[target]] to the file that "
                f"'manage.py register' reads."
            )
        return self._targets[name]

    def finish(self) -> None:
        """Cover the moment of the read, unless it was loaded from another text."""
        segment, targets = self._segment, list(self._read.values())
        if not targets:
            return
        segment.start = segment.end = self._read_at
        segment.targets.set(targets)
        earlier = Coverage.objects.filter(
            source=self.source, source_id__in=[t.pk for t in targets], start=self._read_at
        ).first()
        if earlier:
            other = Segment.objects.get(pk=earlier.segment_id)
            raise _overlap(segment, other, f"target {Target.objects.get(pk=earlier.source_id)}")
        Coverage.objects.bulk_create(
            Coverage(
                source=self.source,
                source_id=target.pk,
                start=self._read_at,
                end=self._read_at,
                segment_id=segment.pk,
            )
            for target in targets
        )
        self._touch(targets)

    def _touch(self, targets: list[Target]) -> None:
        """Leave what is to be derived anew."""


class JobStatsLoader(_ReadLoader):
    """job_stats of MDTs and OSTs."""

    source = Coverage.Source.JOB_STATS

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the text."""
        return job_stats.parse(source)

    def store(self, parsed: Parsed) -> None:
        """Append the entries."""
        if parsed.table.is_empty():
            return
        placed = self._placed(parsed.table)
        jobs = placed.select(
            "target", text=names.storable(pl.col("job"), _SOURCE_JOB_ID_CHARACTERS)
        )
        filesystems = {target.filesystem for target in self._read.values()}
        ...

    def _touch(self, targets: list[Target]) -> None:
        TouchedReads.objects.bulk_create(
            TouchedReads(target=target, start=self._read_at, end=self._read_at)
            for target in targets
        )
