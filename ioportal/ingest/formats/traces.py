"""RPC traces: raw windows of one server."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

import polars as pl
from django.db.models import Exists, OuterRef, Q

from collectors.lustre import req_history, rpc_trace
from collectors.tables import RPC_WINDOWS
from ioportal.ingest import covering
from ioportal.ingest.formats.common import Command, discard, needed, overlap, segment_of
from ioportal.ingest.models import Batch, Segment, TouchedTrace
from ioportal.jobs import names
from ioportal.jobs.models import Server
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


# A server's clients ping it every 25 s: silent for this long, it was not recorded.
SILENCE = timedelta(minutes=5)

_WINDOW = timedelta(seconds=10)

# So many windows are merged, sorted and copied together: parts of a text end within windows, and
# the index takes rows in its own order half as fast again.
_ROWS_TOGETHER = 500_000

_EXTENT = {name: RPC_WINDOWS.columns[name] for name in ("first", "last")}


class _Windows:
    """The windows of one server that a segment holds, appended many parts together."""

    def __init__(self, segment: Segment, server: Server) -> None:
        self._segment = segment
        self._server = server
        self._nids = names.nids()
        self._services = names.services()
        self._source_job_ids = names.source_job_ids(server.filesystem)
        self._extents = pl.DataFrame(schema=_EXTENT)
        self._waiting: list[pl.DataFrame] = []

    def add(self, table: pl.DataFrame) -> None:
        """Take a part."""
        if table.is_empty():
            return
        extents = table.group_by("start").agg(pl.min("first"), pl.max("last"))
        self.reach(extents.select(*_EXTENT))
        self._segment.operations += int(table["count"].sum())
        self._waiting.append(table)
        if sum(waiting.height for waiting in self._waiting) >= _ROWS_TOGETHER:
            self._append()

    def reach(self, extents: pl.DataFrame) -> None:
        """Extend what was traced."""
        self._extents = _joined(self._extents.vstack(extents))

    def complete(self) -> list[Interval]:
        """Append what is left; return what was traced."""
        if self._waiting:
            self._append()
        extents = [Interval(*extent) for extent in self._extents.iter_rows()]
        if extents:
            self._segment.start, self._segment.end = extents[0].start, extents[-1].end
            # Held until the commit: two loads cannot both find an extent free.
            Server.objects.select_for_update().get(pk=self._server.pk)
            TouchedTrace.objects.bulk_create(
                TouchedTrace(server=self._server, start=first, end=last) for first, last in extents
            )
        return extents

    def _append(self) -> None:
        windows = pl.concat(self._waiting).with_columns(
            names.storable(pl.col("nid"), names.NID_CHARACTERS),
            names.storable(pl.col("job"), names.SOURCE_JOB_ID_CHARACTERS),
            names.storable(pl.col("service"), names.SERVICE_CHARACTERS),
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
    covers: ClassVar[Coverage.Source] = Coverage.Source.RPC_TRACE

    def __init__(self, command: Command, segment: Segment, origin: Origin) -> None:
        self._segment = segment
        self._command = command
        self._origin = origin
        self._server = needed(origin.server, "--server: the MDS or OSS that wrote the log")
        self._windows = _Windows(segment, self._server)
        self._repeats = 0

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the text, without records that another text of this command has."""
        seen = self._command.seen
        parts = self._parse(source)
        while True:
            before = seen.dropped
            parsed = next(parts, None)
            if parsed is None:
                return
            self._repeats += seen.dropped - before
            yield parsed

    def _parse(self, source: Source) -> Iterator[Parsed]:
        return rpc_trace.parse(source, self._command.seen)

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
                source=self.covers,
                source_id=self._server.pk,
                start=first,
                end=last,
                segment_id=self._segment.pk,
            )
            for first, last in self._windows.complete()
        )
        for other in self._overlapping():
            if not self._command.replace or Batch.objects.filter(segment=other).exists():
                raise overlap(self._segment, other, f"server {self._server}")
            discard(other)

    def _overlapping(self) -> QuerySet[Segment]:
        """Return the segments that were loaded earlier and cover part of what this one does."""
        covered = Coverage.objects.filter(source_id=self._server.pk)
        ours = covered.filter(source=self.covers, segment_id=self._segment.pk)
        ends, begins = OuterRef("end"), OuterRef("start")
        of_our_kind = ours.filter(start__lte=ends, end__gte=begins)
        # Of the other kind none may share even a window with ours: it would hold RPCs twice.
        of_the_other = ours.filter(start__lte=ends + _WINDOW, end__gte=begins - _WINDOW)
        clashing = covered.filter(
            Q(Exists(of_our_kind), source=self.covers)
            | Q(Exists(of_the_other), source__in=set(Coverage.OF_RPCS) - {self.covers})
        )
        return Segment.objects.loaded().filter(pk__in=clashing.values("segment_id"))


class HistoryLoader(RpcTraceLoader):
    """A server's history of requests: RPCs without times, known where no trace is."""

    covers = Coverage.Source.REQ_HISTORY

    def _parse(self, source: Source) -> Iterator[Parsed]:
        for parsed in req_history.parse(source, self._origin.service or "", self._command.seen):
            if "" in parsed.table["service"]:
                needed(self._origin.service, "--service: the text does not name its service")
            yield parsed


class TraceBatchLoader:
    """A batch of a server's windows; its stream covers what it says, and what its rows show."""

    covers: ClassVar[Coverage.Source] = Coverage.Source.RPC_TRACE

    def __init__(self, batch: Batch, observed: Sequence[Observed]) -> None:
        self._batch = batch
        self._server = needed(batch.source.server, "the source a server")
        self._windows = _Windows(batch.segment, self._server)
        self._windows.reach(
            pl.DataFrame([(o.start, o.end) for o in observed], schema=_EXTENT, orient="row")
        )

    def store(self, parsed: Parsed) -> None:
        """Append the windows."""
        self._windows.add(parsed.table)

    def finish(self) -> None:
        """Cover the extents, unless a file or another stream covers part of them."""
        extents = self._windows.complete()
        covered = covering.of_others(self._batch, self.covers, self._server.pk)
        of_the_other = Coverage.objects.filter(
            source__in=set(Coverage.OF_RPCS) - {self.covers}, source_id=self._server.pk
        )
        for first, last in extents:
            other = (
                covered.filter(start__lte=last, end__gte=first).first()
                or of_the_other.filter(start__lte=last + _WINDOW, end__gte=first - _WINDOW).first()
            )
            if other:
                raise overlap(self._batch.segment, segment_of(other), f"server {self._server}")
        covering.cover(self._batch, self.covers, self._server.pk, extents)


class HistoryBatchLoader(TraceBatchLoader):
    """A batch of the windows of a server's history of requests."""

    covers = Coverage.Source.REQ_HISTORY


def _joined(extents: pl.DataFrame) -> pl.DataFrame:
    """Join extents that are no further apart than `SILENCE`; in order."""
    reached = pl.col("last").cum_max().shift()
    return (
        extents.sort("first")
        .with_columns(
            (pl.col("first") > reached + SILENCE).fill_null(value=False).cum_sum().alias("island")
        )
        .group_by("island", maintain_order=True)
        .agg(pl.min("first"), pl.max("last"))
        .select(*_EXTENT)
    )


def _merged(windows: pl.DataFrame) -> pl.DataFrame:
    """Add up what parts say of the same window; in the order of the index."""
    timed = pl.col("timed") > 0
    return (
        windows.group_by("nid_id", "start", "source_job_id", "service_id", "opcode")
        .agg(
            pl.sum("count", "timed", "service_us_sum", "total_us_sum"),
            pl.col("service_us_min", "queue_us_min").filter(timed).min().fill_null(0),
            pl.max("service_us_max", "queue_us_max", "last"),
            pl.min("first"),
        )
        .sort("nid_id", "start")
    )
