"""Service statistics of servers: numbers and waiting times of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from collectors.lustre import service_stats
from collectors.tables import REQUEST_COUNTERS
from ioportal.ingest import impact_marks
from ioportal.ingest.loaders.common import discard, needed, overlap
from ioportal.ingest.loading import Loader, LoadOptions
from ioportal.ingest.models import Segment
from ioportal.site import name_ids
from ioportal.site.models import Server
from ioportal.telemetry.copy import copy_frame
from ioportal.telemetry.models import LARGEST_BIGINT, Coverage, ServiceSnapshot

if TYPE_CHECKING:
    from collectors.parsed import Parsed
    from ioportal.ingest.loading import Origin

_UNITS = {unit.label: unit.value for unit in ServiceSnapshot.Unit}


class ServiceStatsLoader(Loader):
    """Statistics of a server's services at a point in time; they are not attributed."""

    def __init__(self, options: LoadOptions, segment: Segment, origin: Origin) -> None:
        super().__init__(options, segment, origin)
        self._server = needed(origin.server, "--server: the MDS or OSS that was read")
        self._read_at = needed(origin.read_at, "--at: when the counters were read")
        self._services = name_ids.services()
        self._counters = name_ids.counters()

    def store(self, parsed: Parsed) -> None:
        """Append the counters."""
        rows = parsed.table
        if "" in rows["service"]:
            name = needed(self.origin.service, "--service: the file does not name its service")
            service = service_stats.THREADS.get(name, name)
            rows = rows.with_columns(pl.col("service").replace({"": service}))
        rows = rows.with_columns(
            name_ids.storable(pl.col("service"), name_ids.SERVICE_CHARACTERS),
            name_ids.storable(pl.col("counter"), name_ids.COUNTER_CHARACTERS),
        )
        copy_frame(
            ServiceSnapshot,
            rows.with_columns(
                pl.lit(self._read_at).cast(pl.Datetime("us", "UTC")).alias("taken_at"),
                pl.lit(self.segment.pk).alias("segment_id"),
                pl.lit(self._server.pk).alias("server_id"),
                pl.col("unit").replace_strict(_UNITS, return_dtype=pl.Int16),
                self._services.ids(rows["service"]).alias("service_id"),
                self._counters.ids(rows["counter"]).alias("counter_id"),
            ),
        )
        self.segment.records += rows.height
        requests = rows.filter(pl.col("counter").is_in(REQUEST_COUNTERS))["samples"]
        counted = self.segment.operations + int(requests.cast(pl.Int128).sum())
        self.segment.operations = min(counted, LARGEST_BIGINT)

    def finish(self) -> None:
        """Cover the time of the read, unless another file covers it."""
        segment = self.segment
        # Locked until the commit: two loads cannot cover the same time.
        Server.objects.select_for_update().get(pk=self._server.pk)
        reads = Coverage.objects.filter(
            source=Coverage.Source.MDS_STATS, source_id=self._server.pk, start=self._read_at
        )
        for other in Segment.objects.filter(pk__in=reads.values("segment_id")):
            if not self.options.replace:
                raise overlap(segment, other, f"server {self._server}")
            discard(other)
        segment.start = segment.end = self._read_at
        Coverage.objects.create(
            source=Coverage.Source.MDS_STATS,
            source_id=self._server.pk,
            start=self._read_at,
            end=self._read_at,
            segment_id=segment.pk,
        )
        if self._server.kind == Server.Kind.MDS:
            impact_marks.mark_read(self._server.pk, self._read_at)
