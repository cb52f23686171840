"""Increments between polls of export statistics, computed by the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ioportal.ingest.attribution import hosts
from ioportal.ingest.formats.deltas import DeltasLoader
from ioportal.ingest.models import DirtyExports
from ioportal.site import name_ids
from ioportal.telemetry.copy import copy_frame
from ioportal.telemetry.models import LARGEST_BIGINT, Coverage, HostWindow, Principal

if TYPE_CHECKING:
    from collectors.parsed import Parsed

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
                segment=self.segment, start=self.segment.start, end=self.segment.end, has_rows=True
            )
