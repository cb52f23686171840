"""Request histories: the latest requests of a server, by client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from collectors.format import Origin as InputOrigin
from collectors.lustre.rpc_extents import EXTENT, joined
from ioportal.ingest.loaders.common import (
    discard,
    needed,
    overlap,
    with_repeats,
)
from ioportal.ingest.loading import Loader, LoadOptions
from ioportal.ingest.models import Segment
from ioportal.site import name_ids
from ioportal.site.models import Server
from ioportal.telemetry.copy import copy_frame
from ioportal.telemetry.models import Coverage, RequestWindow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.parsed import Account, Parsed
    from collectors.source import Source
    from ioportal.ingest.loading import Origin


class HistoryLoader(Loader):
    """The request history of a server; it is incomplete, and therefore not attributed."""

    time_column = "last"

    def __init__(self, options: LoadOptions, segment: Segment, origin: Origin) -> None:
        super().__init__(options, segment, origin)
        self._server = needed(origin.server, "--server: the MDS or OSS that was read")
        self._nids = name_ids.nids()
        self._services = name_ids.services()
        self._repeats = 0
        self._extents = pl.DataFrame(schema=EXTENT)

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the file, without requests of other files of this command."""
        seen = self.options.repeats
        origin = InputOrigin(service=self.origin.service or "", repeats=seen)
        parts = self.parsed(source, origin)
        for parsed, repeats in with_repeats(parts, seen):
            self._repeats += repeats
            yield parsed

    def recognises(self, account: Account) -> bool:
        """Return whether there are requests: output of lctl may have other parameters."""
        return account.accepted + self._repeats > 0

    def store(self, parsed: Parsed) -> None:
        """Append the windows."""
        if parsed.table.is_empty():
            return
        if "" in parsed.table["service"]:
            needed(self.origin.service, "--service: the file does not name its service")
        rows = parsed.table.with_columns(
            name_ids.storable(pl.col("nid"), name_ids.NID_CHARACTERS),
            name_ids.storable(pl.col("service"), name_ids.SERVICE_CHARACTERS),
        )
        copy_frame(
            RequestWindow,
            rows.with_columns(
                self._nids.ids(rows["nid"]).alias("nid_id"),
                self._services.ids(rows["service"]).alias("service_id"),
                pl.lit(self.segment.pk).alias("segment_id"),
                pl.lit(self._server.pk).alias("server_id"),
            ),
        )
        extents = rows.group_by("start").agg(pl.min("first"), pl.max("last"))
        self._extents = joined(self._extents.vstack(extents.select(*EXTENT)))
        self.segment.records += rows.height
        self.segment.operations += int(rows["count"].sum())

    def finish(self) -> None:
        """Cover the intervals, unless another history of the server overlaps."""
        segment = self.segment
        extents = list(self._extents.iter_rows())
        if not extents:
            return
        segment.start, segment.end = extents[0][0], extents[-1][1]
        # Locked until the commit: two loads cannot cover the same interval.
        Server.objects.select_for_update().get(pk=self._server.pk)
        covered = Coverage.objects.filter(
            source=Coverage.Source.REQ_HISTORY, source_id=self._server.pk
        )
        for first, last in extents:
            clashing = covered.filter(start__lte=last, end__gte=first).values("segment_id")
            for other in Segment.objects.filter(pk__in=clashing):
                if not self.options.replace or other.is_batch:
                    raise overlap(segment, other, f"server {self._server}")
                discard(other)
        Coverage.objects.bulk_create(
            Coverage(
                source=Coverage.Source.REQ_HISTORY,
                source_id=self._server.pk,
                start=first,
                end=last,
                segment_id=segment.pk,
            )
            for first, last in extents
        )
