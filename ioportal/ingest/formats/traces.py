"""RPC traces: raw windows of one server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from collectors.lustre import rpc_trace
from ioportal.ingest.formats.common import Command, discard, needed, overlap
from ioportal.ingest.models import Segment, TouchedTrace
from ioportal.jobs import names
from ioportal.jobs.models import Server
from ioportal.telemetry.copy import copy_frame
from ioportal.telemetry.models import Coverage, RpcWindow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from collectors.parsed import Parsed
    from collectors.source import Source
    from ioportal.ingest.loading import Origin


class RpcTraceLoader:
    """A server's RPC trace; it covers the interval from its first record to its last."""

    rejects_foreign_lines = False  # the debug log has other subsystems' lines

    def __init__(self, command: Command, segment: Segment, origin: Origin) -> None:
        self.reached: datetime | None = None
        self._segment = segment
        self._command = command
        self._server = needed(origin.server, "--server: the MDS or OSS that wrote the log")
        self._nids = names.nids()
        self._services = names.services()
        self._source_job_ids = names.source_job_ids(self._server.filesystem)

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the text, without records that another text of this command has."""
        return rpc_trace.parse(source, self._command.seen)

    def store(self, parsed: Parsed) -> None:
        """Append the windows."""
        if parsed.table.is_empty():
            return
        windows = parsed.table.with_columns(
            names.storable(pl.col("nid"), names.NID_CHARACTERS),
            names.storable(pl.col("job"), names.SOURCE_JOB_ID_CHARACTERS),
            names.storable(pl.col("service"), names.SERVICE_CHARACTERS),
        )
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
        self._segment.operations += int(windows["count"].sum())

    def finish(self) -> None:
        """Cover the extent, unless another segment of the server covers part of it."""
        segment = self._segment
        if segment.start is None or segment.end is None:
            return
        # Held until the commit: two loads cannot both find the extent free.
        Server.objects.select_for_update().get(pk=self._server.pk)
        for other in Segment.objects.loaded().filter(
            format=segment.format,
            server=self._server,
            start__lte=segment.end,
            end__gte=segment.start,
        ):
            if not self._command.replace:
                raise overlap(segment, other, f"server {self._server}")
            discard(other)
        Coverage.objects.create(
            source=Coverage.Source.RPC_TRACE,
            source_id=self._server.pk,
            start=segment.start,
            end=segment.end,
            segment_id=segment.pk,
        )
        TouchedTrace.objects.create(server=self._server, start=segment.start, end=segment.end)
