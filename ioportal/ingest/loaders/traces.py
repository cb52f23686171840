"""RPC traces: raw windows of one server, and its demand by second in slow episodes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import polars as pl
from django.db.models import Exists, OuterRef

from collectors.format import Origin as InputOrigin
from collectors.lustre import rpc_extents, rpc_windows
from ioportal.ingest import stream_coverage
from ioportal.ingest.checks import MAX_CLOCK_LEAD
from ioportal.ingest.loaders.common import (
    discard,
    needed,
    overlap,
    segment_of,
    with_repeats,
)
from ioportal.ingest.loading import Loader, LoadOptions
from ioportal.ingest.models import Batch, DirtyTrace, Segment
from ioportal.site import name_ids
from ioportal.site.models import Server
from ioportal.telemetry.copy import copy_frame
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import Coverage, RpcSecond, RpcWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from django.db.models import QuerySet

    from collectors.parsed import Account, Parsed
    from collectors.source import Source
    from ioportal.ingest.loading import Origin
    from ioportal.ingest.manifest import Observed


# Windows that are merged, sorted and copied together: parts of a file end within windows, and
# inserting in the order of the index is 1.5 times as fast.
_ROWS_TOGETHER = 500_000
# Sorting by a single number takes half the time; a start is below 2**32 until 2106.
_INDEX = pl.col("nid_id").cast(pl.Int64) * 2**32 + pl.col("start").dt.epoch("s")


class _Windows:
    """The windows of a server in a segment, stored in groups of parts."""

    def __init__(self, segment: Segment, server: Server) -> None:
        self._segment = segment
        self._server = server
        self._nids = name_ids.nids()
        self._services = name_ids.services()
        self._source_job_ids = name_ids.source_job_ids(server.filesystem)
        self._extents = pl.DataFrame(schema=rpc_extents.EXTENT)
        self._waiting: list[pl.DataFrame] = []
        # Of windows with seconds, which are up to a minute older than a batch.
        self._slow_extents = self._extents

    def add(self, parsed: Parsed) -> None:
        """Add a part."""
        if parsed.seconds is not None and not parsed.seconds.is_empty():
            self._append_seconds(parsed.seconds)
        table = parsed.table
        if table.is_empty():
            return
        extents = table.group_by("start").agg(pl.min("first"), pl.max("last"))
        self.reach(extents.select(*rpc_extents.EXTENT))
        self._segment.operations += int(table["count"].sum())
        self._waiting.append(table)
        if sum(waiting.height for waiting in self._waiting) >= _ROWS_TOGETHER:
            self._append()

    def reach(self, extents: pl.DataFrame) -> None:
        """Extend the traced intervals."""
        self._extents = rpc_extents.joined(self._extents.vstack(extents))

    def complete(self) -> list[Interval]:
        """Store the remaining windows; return the traced intervals."""
        if self._waiting:
            self._append()
        extents = [Interval(*extent) for extent in self._extents.iter_rows()]
        if extents:
            self._segment.start, self._segment.end = extents[0].start, extents[-1].end
            # Locked until the commit: two loads cannot cover the same interval.
            Server.objects.select_for_update().get(pk=self._server.pk)
            DirtyTrace.objects.bulk_create(
                DirtyTrace(server=self._server, start=first, end=last) for first, last in extents
            )
        DirtyTrace.objects.bulk_create(
            DirtyTrace(server=self._server, start=first, end=last, has_rows=True)
            for first, last in self._slow_extents.iter_rows()
        )
        return extents

    def _append(self) -> None:
        windows = pl.concat(self._waiting)
        self._waiting.clear()
        named = self._with_ids(windows, self._nids.ids)
        rows = rpc_windows.merged(
            named, "nid_id", "start", "source_job_id", "service_id", "opcode"
        ).sort(_INDEX)
        copy_frame(RpcWindow, self._of_segment(rows))
        self._segment.records += rows.height

    def _append_seconds(self, seconds: pl.DataFrame) -> None:
        copy_frame(RpcSecond, self._of_segment(self._with_ids(seconds, self._ids_or_0)))
        extents = seconds.select(first="start", last="start").unique()
        self._slow_extents = rpc_extents.joined(self._slow_extents.vstack(extents))

    def _ids_or_0(self, nids: pl.Series) -> pl.Series:
        """Return the ids of NIDs; 0 for an empty one."""
        is_given = nids != ""
        ids = self._nids.ids(nids.filter(is_given))
        return pl.zeros(len(nids), pl.Int32, eager=True).scatter(is_given.arg_true(), ids)

    def _with_ids(
        self, rows: pl.DataFrame, nid_ids: Callable[[pl.Series], pl.Series]
    ) -> pl.DataFrame:
        """Replace names by ids."""
        names = rows.with_columns(
            name_ids.storable(pl.col("nid"), name_ids.NID_CHARACTERS),
            name_ids.storable(pl.col("job"), name_ids.SOURCE_JOB_ID_CHARACTERS),
            name_ids.storable(pl.col("service"), name_ids.SERVICE_CHARACTERS),
        )
        return names.select(
            pl.exclude("nid", "job", "service"),
            nid_ids(names["nid"]).alias("nid_id"),
            self._source_job_ids.ids(names["job"]).alias("source_job_id"),
            self._services.ids(names["service"]).alias("service_id"),
        )

    def _of_segment(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.with_columns(
            pl.lit(self._segment.pk).alias("segment_id"),
            pl.lit(self._server.pk).alias("server_id"),
        )


class RpcTraceLoader(Loader):
    """The RPC trace of a server; it covers the time between its records, without long gaps."""

    time_column = "last"

    def __init__(self, options: LoadOptions, segment: Segment, origin: Origin) -> None:
        super().__init__(options, segment, origin)
        self._server = needed(origin.server, "--server: the MDS or OSS that wrote the log")
        self._windows = _Windows(segment, self._server)
        self._repeats = 0

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the file, without records of its command's other files, or of the future."""
        seen = self.options.repeats
        latest = datetime.now(UTC) + MAX_CLOCK_LEAD
        origin = InputOrigin(repeats=seen, latest_s=int(latest.timestamp()))
        for parsed, repeats in with_repeats(self.parsed(source, origin), seen):
            self._repeats += repeats
            yield parsed

    def store(self, parsed: Parsed) -> None:
        """Append the windows."""
        self._windows.add(parsed)

    def recognises(self, account: Account) -> bool:
        """Return whether there are handled RPCs: a debug log has lines of other subsystems."""
        return account.accepted + self._repeats > 0

    def finish(self) -> None:
        """Cover the intervals, unless another segment of the server overlaps."""
        Coverage.objects.bulk_create(
            Coverage(
                source=Coverage.Source.RPC_TRACE,
                source_id=self._server.pk,
                start=first,
                end=last,
                segment_id=self.segment.pk,
            )
            for first, last in self._windows.complete()
        )
        for other in self._overlapping():
            if not self.options.replace or other.is_batch:
                raise overlap(self.segment, other, f"server {self._server}")
            discard(other)

    def _overlapping(self) -> QuerySet[Segment]:
        """Return overlapping segments that were loaded earlier."""
        covered = Coverage.objects.filter(
            source=Coverage.Source.RPC_TRACE, source_id=self._server.pk
        )
        ours = covered.filter(
            segment_id=self.segment.pk, start__lte=OuterRef("end"), end__gte=OuterRef("start")
        )
        return Segment.objects.filter(pk__in=covered.filter(Exists(ours)).values("segment_id"))


class TraceBatchLoader:
    """A batch of a server's windows; it covers its stated intervals and its rows."""

    def __init__(self, batch: Batch, observed: Sequence[Observed]) -> None:
        self._batch = batch
        self._server = needed(batch.source.server, "the source a server")
        self._windows = _Windows(batch.segment, self._server)
        self._windows.reach(
            pl.DataFrame(
                [(o.start, o.end) for o in observed], schema=rpc_extents.EXTENT, orient="row"
            )
        )

    def store(self, parsed: Parsed) -> None:
        """Append the windows."""
        self._windows.add(parsed)

    def finish(self) -> None:
        """Cover the intervals, unless a file or rows of another stream overlap."""
        extents = self._windows.complete()
        covered = stream_coverage.from_other_streams(
            self._batch, Coverage.Source.RPC_TRACE, self._server.pk
        )
        segment = self._batch.segment
        for extent in extents:
            for other in covered.filter(start__lte=extent.end, end__gte=extent.start):
                if not stream_coverage.give_way(other, extent, segment):
                    raise overlap(segment, segment_of(other), f"server {self._server}")
        stream_coverage.add(self._batch, Coverage.Source.RPC_TRACE, self._server.pk, extents)
