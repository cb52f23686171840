"""RPC traces: raw windows of one server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from django.db.models import Exists, OuterRef

from collectors.format import Origin as InputOrigin
from collectors.lustre import rpc_extents
from ioportal.ingest import stream_coverage
from ioportal.ingest.formats.common import (
    LoadOptions,
    discard,
    needed,
    overlap,
    parsed_parts,
    segment_of,
    with_repeats,
)
from ioportal.ingest.models import Batch, DirtyTrace, Segment
from ioportal.site import name_ids
from ioportal.site.models import Server
from ioportal.telemetry.copy import copy_frame
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import Coverage, RpcWindow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from django.db.models import QuerySet

    from collectors.parsed import Account, Parsed
    from collectors.source import Source
    from ioportal.ingest.loading import Origin
    from ioportal.ingest.manifest import Observed


# So many windows are merged, sorted and copied together: parts of a text end within windows, and
# the index takes rows in its own order half as fast again.
_ROWS_TOGETHER = 500_000


class _Windows:
    """The windows of one server that a segment holds, appended many parts together."""

    def __init__(self, segment: Segment, server: Server) -> None:
        self._segment = segment
        self._server = server
        self._nids = name_ids.nids()
        self._services = name_ids.services()
        self._source_job_ids = name_ids.source_job_ids(server.filesystem)
        self._extents = pl.DataFrame(schema=rpc_extents.EXTENT)
        self._waiting: list[pl.DataFrame] = []

    def add(self, table: pl.DataFrame) -> None:
        """Take a part."""
        if table.is_empty():
            return
        extents = table.group_by("start").agg(pl.min("first"), pl.max("last"))
        self.reach(extents.select(*rpc_extents.EXTENT))
        self._segment.operations += int(table["count"].sum())
        self._waiting.append(table)
        if sum(waiting.height for waiting in self._waiting) >= _ROWS_TOGETHER:
            self._append()

    def reach(self, extents: pl.DataFrame) -> None:
        """Extend what was traced."""
        self._extents = rpc_extents.joined(self._extents.vstack(extents))

    def complete(self) -> list[Interval]:
        """Append what is left; return what was traced."""
        if self._waiting:
            self._append()
        extents = [Interval(*extent) for extent in self._extents.iter_rows()]
        if extents:
            self._segment.start, self._segment.end = extents[0].start, extents[-1].end
            # Held until the commit: two loads cannot both find an extent free.
            Server.objects.select_for_update().get(pk=self._server.pk)
            DirtyTrace.objects.bulk_create(
                DirtyTrace(server=self._server, start=first, end=last) for first, last in extents
            )
        return extents

    def _append(self) -> None:
        windows = pl.concat(self._waiting).with_columns(
            name_ids.storable(pl.col("nid"), name_ids.NID_CHARACTERS),
            name_ids.storable(pl.col("job"), name_ids.SOURCE_JOB_ID_CHARACTERS),
            name_ids.storable(pl.col("service"), name_ids.SERVICE_CHARACTERS),
        )
        self._waiting.clear()
        rows = _merged(
            windows.select(
                pl.exclude("nid", "job", "service"),
                self._nids.ids(windows["nid"]).alias("nid_id"),
                self._source_job_ids.ids(windows["job"]).alias("source_job_id"),
                self._services.ids(windows["service"]).alias("service_id"),
            )
        )
        copy_frame(
            RpcWindow,
            rows.with_columns(
                pl.lit(self._segment.pk).alias("segment_id"),
                pl.lit(self._server.pk).alias("server_id"),
            ),
        )
        self._segment.records += rows.height


class RpcTraceLoader:
    """A server's RPC trace; it covers what lies between its records, but for long silences."""

    time_column: str | None = "last"

    def __init__(self, options: LoadOptions, segment: Segment, origin: Origin) -> None:
        self._segment = segment
        self._options = options
        self._server = needed(origin.server, "--server: the MDS or OSS that wrote the log")
        self._windows = _Windows(segment, self._server)
        self._repeats = 0

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the text, without records that another text of this command has."""
        seen = self._options.repeats
        for parsed, repeats in with_repeats(
            parsed_parts(self._segment, source, InputOrigin(repeats=seen)), seen
        ):
            self._repeats += repeats
            yield parsed

    def store(self, parsed: Parsed) -> None:
        """Append the windows."""
        self._windows.add(parsed.table)

    def recognises(self, account: Account) -> bool:
        """Tell whether there is a handled RPC: the debug log has other subsystems' lines."""
        return account.accepted + self._repeats > 0

    def finish(self) -> None:
        """Cover the extents, unless another segment of the server covers part of them."""
        Coverage.objects.bulk_create(
            Coverage(
                source=Coverage.Source.RPC_TRACE,
                source_id=self._server.pk,
                start=first,
                end=last,
                segment_id=self._segment.pk,
            )
            for first, last in self._windows.complete()
        )
        for other in self._overlapping():
            if not self._options.replace or other.is_batch:
                raise overlap(self._segment, other, f"server {self._server}")
            discard(other)

    def _overlapping(self) -> QuerySet[Segment]:
        """Return the segments that were loaded earlier and cover part of what this one does."""
        covered = Coverage.objects.filter(
            source=Coverage.Source.RPC_TRACE, source_id=self._server.pk
        )
        ours = covered.filter(
            segment_id=self._segment.pk, start__lte=OuterRef("end"), end__gte=OuterRef("start")
        )
        return Segment.objects.loaded().filter(
            pk__in=covered.filter(Exists(ours)).values("segment_id")
        )


class TraceBatchLoader:
    """A batch of a server's windows; its stream covers what it says, and what its rows show."""

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
        self._windows.add(parsed.table)

    def finish(self) -> None:
        """Cover the extents, unless a file or another stream covers part of them."""
        extents = self._windows.complete()
        covered = stream_coverage.from_other_streams(
            self._batch, Coverage.Source.RPC_TRACE, self._server.pk
        )
        for extent in extents:
            if other := covered.filter(start__lte=extent.end, end__gte=extent.start).first():
                raise overlap(self._batch.segment, segment_of(other), f"server {self._server}")
        stream_coverage.add(self._batch, Coverage.Source.RPC_TRACE, self._server.pk, extents)


def _merged(windows: pl.DataFrame) -> pl.DataFrame:
    """Add up what parts say of the same window; in the order of the index."""
    minima = pl.col("service_us_min", "queue_us_min")
    return (
        windows.lazy()
        # Here, not within the sums: there it takes three times as long.
        .with_columns(pl.when(pl.col("timed") > 0).then(minima))
        .group_by("nid_id", "start", "source_job_id", "service_id", "opcode")
        .agg(
            pl.sum("count", "timed", "service_us_sum", "total_us_sum"),
            pl.min("service_us_min", "queue_us_min", "first"),
            pl.max("service_us_max", "queue_us_max", "last"),
        )
        .with_columns(minima.fill_null(0))
        # One number is sorted by in half the time of two; a start is below 2**32 until 2106.
        .sort(pl.col("nid_id").cast(pl.Int64) * 2**32 + pl.col("start").dt.epoch("s"))
        .collect()
    )
