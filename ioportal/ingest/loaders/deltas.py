"""Increments between polls of job_stats and md_stats, computed by the agent.

The counters of a target come either from files, whose increments the portal computes, or from the
polls of an agent.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, ClassVar

import polars as pl
from django.db.models import F, Q
from django.utils import timezone

from collectors.tables import BASES, OPERATIONS
from ioportal.ingest import senders, stream_coverage
from ioportal.ingest.attribution import hosts
from ioportal.ingest.loaders.common import needed, overlap, segment_of, unregistered
from ioportal.ingest.loading import Refused
from ioportal.ingest.models import Batch, DirtyDeltas, DirtyExports
from ioportal.site import name_ids
from ioportal.site.models import Source, Target
from ioportal.telemetry.copy import copy_frame
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import (
    LARGEST_BIGINT,
    Coverage,
    HostWindow,
    IoWindow,
    JobDelta,
    Principal,
    TargetDelta,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from collectors.parsed import Parsed
    from ioportal.ingest.manifest import Observed
    from ioportal.site.models import Filesystem

_BASES = {name: IoWindow.Basis[name.upper()].value for name in BASES}


class DeltasLoader:
    """Base of the loaders of increments."""

    coverage: ClassVar[Coverage.Source]
    operations: ClassVar[Sequence[str]] = OPERATIONS  # columns

    def __init__(self, batch: Batch, observed: Sequence[Observed]) -> None:
        source = batch.source
        self.batch = batch
        self.segment = batch.segment
        self.filesystem: Filesystem = needed(
            source.scope_filesystem, "the source a server or a filesystem"
        )
        self._registered = {
            target.name: target for target in Target.objects.filter(filesystem=self.filesystem)
        }
        self._observed: dict[str, list[Interval]] = defaultdict(list)
        for o in observed:
            self._observe(o.target, o.start, o.end)

    def placed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Add the common columns."""
        polls = rows.select("target", "start", "end").unique()
        for target, start, end in polls.iter_rows():
            self._observe(target, start, end)
        self._expect_registered()
        self.segment.records += rows.height
        each = pl.col(self.operations).cast(pl.Int128).sum()
        operations = rows.select(pl.sum_horizontal(each)).item()
        self.segment.operations = min(self.segment.operations + operations, LARGEST_BIGINT)
        ids = {name: self.number(name) for name in polls["target"].unique().to_list()}
        return rows.with_columns(
            pl.col("target").replace_strict(ids, return_dtype=pl.Int32).alias("target_id"),
            pl.col("basis").replace_strict(_BASES, return_dtype=pl.Int16),
            pl.lit(self.segment.pk).alias("segment_id"),
        )

    def number(self, name: str) -> int:
        """Return the target id of rows."""
        target = self._registered[name]
        if target.kind != Target.Kind.MDT:
            raise Refused(f"{name} is an OST: fold a host's OSTs into rows of target ''.")
        return target.pk

    def finish(self) -> None:
        """Cover the polls, unless files or rows of another stream overlap."""
        self._expect_registered()
        observed = {
            target: intervals
            for name, intervals in self._observed.items()
            for target in self._targets(name)
        }
        polls = [poll for intervals in observed.values() for poll in intervals]
        if not polls:
            return
        self.segment.start = min(poll.start for poll in polls)
        self.segment.end = max(poll.end for poll in polls)
        self.segment.targets.set(observed)
        # Locked until the commit: two loads cannot cover the same interval.
        list(
            Target.objects.select_for_update()
            .filter(pk__in=[t.pk for t in observed])
            .order_by("pk")
        )
        self._expect_undelivered(observed)
        for target, intervals in observed.items():
            self._expect_free(target, min(interval.start for interval in intervals), intervals)
            longer = (interval for interval in intervals if interval.end > interval.start)
            stream_coverage.add(self.batch, self.coverage, target.pk, longer)

    def _expect_undelivered(self, targets: Iterable[Target]) -> None:
        """Refuse targets of other servers while another source delivers them.

        After a failover the partner's agent delivers them: the source before it is silent.
        """
        source = self.batch.source
        away = [t for t in targets if source.server_id not in {None, t.server_id}]
        if not away:
            return
        others = Source.objects.filter(
            Q(server__filesystem=self.filesystem) | Q(filesystem=self.filesystem),
            format=source.format,
        ).exclude(pk=source.pk)
        lately = Q(pk=None)
        for other in others:
            heard_since = timezone.now() - senders.patience(other)
            lately |= Q(source=other, segment__loaded_at__gt=heard_since)
        deliveries = Batch.objects.filter(lately, segment__targets__in=away)
        delivery = deliveries.values("source__name", name=F("segment__targets__name")).first()
        if delivery:
            raise Refused(
                f"{delivery['name']} is not registered on {source.server}, and the source "
                f"{delivery['source__name']} delivers it. After a failover {source} may, once the "
                "other has sent nothing of it for three polls, at least five minutes. If it moved "
                f"for good, register it on {source.server}."
            )

    def _expect_free(self, target: Target, start: datetime, intervals: Iterable[Interval]) -> None:
        others = stream_coverage.from_other_streams(self.batch, self.coverage, target.pk)
        read = others.filter(start=F("end"), start__gt=start)  # of a file
        if other := read.first():
            raise overlap(self.segment, segment_of(other), f"target {target}")
        for interval in intervals:
            for other in others.filter(end__gt=F("start"), start__lt=interval.end).filter(
                end__gt=interval.start
            ):
                if not stream_coverage.give_way(other, interval, self.segment):
                    raise overlap(self.segment, segment_of(other), f"target {target}")

    def _observe(self, name: str, start: datetime, end: datetime) -> None:
        self._observed[name].append(Interval(start, end))

    def _targets(self, name: str) -> list[Target]:
        """Return the targets of a name; "" is all OSTs of the source."""
        if name:
            return [self._registered[name]]
        server = self.batch.source.server
        osts = [
            target
            for target in self._registered.values()
            if target.kind == Target.Kind.OST and (server is None or target.server_id == server.pk)
        ]
        if not osts:
            raise Refused(
                f"No OST of {server or self.filesystem} is registered: add them on the Site page, "
                "or as [[target]] to the file that 'manage.py register' reads."
            )
        return osts

    def _expect_registered(self) -> None:
        """Refuse a batch with unregistered targets, and list them."""
        if missing := {name for name in self._observed if name} - self._registered.keys():
            raise unregistered(
                str(self.filesystem),
                missing,
                "Add them on the Site page, or as [[target]] to the file that 'manage.py register' "
                "reads.",
            )


class JobDeltasLoader(DeltasLoader):
    """Increments by job id on MDTs, or on all OSTs of a host."""

    coverage = Coverage.Source.JOB_STATS

    def store(self, parsed: Parsed) -> None:
        """Append the increments."""
        rows = self.placed(parsed.table).with_columns(
            name_ids.storable(pl.col("job"), name_ids.SOURCE_JOB_ID_CHARACTERS),
            pl.lit(self.filesystem.pk).alias("filesystem_id"),
        )
        ids = name_ids.source_job_ids(self.filesystem).ids(rows["job"])
        copy_frame(JobDelta, rows.with_columns(ids.alias("source_job_id")))

    def number(self, name: str) -> int:
        """Return the id of an MDT or of all OSTs."""
        return super().number(name) if name else stream_coverage.FOLDED

    def finish(self) -> None:
        """Request the attribution of the increments."""
        super().finish()
        if self.segment.start and self.segment.end:
            DirtyDeltas.objects.create(
                segment=self.segment,
                filesystem=self.filesystem,
                start=self.segment.start,
                end=self.segment.end,
            )


class TargetDeltasLoader(DeltasLoader):
    """Increments of all clients on MDTs."""

    coverage = Coverage.Source.MD_STATS

    def store(self, parsed: Parsed) -> None:
        """Append the increments."""
        copy_frame(TargetDelta, self.placed(parsed.table))


_KEY = ("start", "end", "target", "basis", "nid_id", "kind", "job_id")
_KINDS = {"nid_id": pl.Int64(), "kind": pl.Int16(), "job_id": pl.Int64()}


class ExportDeltasLoader(DeltasLoader):
    """Increments by client of MDTs: stored by host outside jobs, and by job."""

    coverage = Coverage.Source.EXPORTS
    operations = ("metadata_operations",)

    def store(self, parsed: Parsed) -> None:
        """Append the increments of hosts, and the sums of the nodes of each job."""
        rows = parsed.table.with_columns(
            name_ids.storable(pl.col("nid"), name_ids.NID_CHARACTERS),
        )
        if rows.is_empty():
            return
        nid_ids = name_ids.nids().ids(rows["nid"])
        start, end = rows.select(pl.min("start"), pl.max("end")).row(0)
        kinds = pl.DataFrame(
            hosts.kinds(nid_ids.unique().to_list(), start, end), schema=_KINDS, orient="row"
        )
        operations, time = (
            pl.col(name).cast(pl.Int128).sum().clip(upper_bound=LARGEST_BIGINT).cast(pl.Int64)
            for name in ("metadata_operations", "metadata_us")
        )
        has_times = pl.col("metadata_us").is_not_null().all()
        windows = (
            rows.with_columns(nid_ids.cast(pl.Int64).alias("nid_id"))
            .join(kinds, on="nid_id")
            .with_columns(pl.when(pl.col("kind") == Principal.HOST).then("nid_id").otherwise(0))
            .group_by(_KEY)
            .agg(operations, pl.when(has_times).then(time))
        )
        copy_frame(HostWindow, self.placed(windows))

    def finish(self) -> None:
        """Request the attribution of hosts whose jobs are recorded at the same time."""
        super().finish()
        if self.segment.start and self.segment.end:
            DirtyExports.objects.create(
                segment=self.segment,
                filesystem=self.filesystem,
                start=self.segment.start,
                end=self.segment.end,
                has_rows=True,
            )
