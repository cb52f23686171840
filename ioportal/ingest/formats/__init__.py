"""The formats that can be loaded, from texts and in batches, and how their rows are stored."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from collectors import tables
from collectors.parsed import Parsed
from collectors.tables import Table
from ioportal.ingest.formats.accounts import (
    AlpsLoader,
    PandaLoader,
    PbsLoader,
    SacctLoader,
    SqueueLoader,
)
from ioportal.ingest.formats.common import Command
from ioportal.ingest.formats.counters import JobStatsLoader, MdStatsLoader
from ioportal.ingest.formats.deltas import JobDeltasLoader, TargetDeltasLoader
from ioportal.ingest.formats.histories import HistoryLoader
from ioportal.ingest.formats.services import ServiceStatsLoader
from ioportal.ingest.formats.traces import RpcTraceLoader, TraceBatchLoader
from ioportal.ingest.loading import Loader, Origin
from ioportal.ingest.manifest import Observed
from ioportal.ingest.models import Batch, Segment

LOADERS: dict[Segment.Format, Callable[[Command, Segment, Origin], Loader]] = {
    Segment.Format.RPCTRACE: RpcTraceLoader,
    Segment.Format.REQ_HISTORY: HistoryLoader,
    Segment.Format.JOB_STATS: JobStatsLoader,
    Segment.Format.MD_STATS: MdStatsLoader,
    Segment.Format.MDS_STATS: ServiceStatsLoader,
    Segment.Format.SACCT: SacctLoader,
    Segment.Format.SQUEUE: SqueueLoader,
    Segment.Format.PBS: PbsLoader,
    Segment.Format.ALPS: AlpsLoader,
    Segment.Format.PANDA: PandaLoader,
}


class BatchLoader(Protocol):
    """Stores the rows of one batch."""

    def store(self, parsed: Parsed) -> None:
        """Append the rows."""

    def finish(self) -> None:
        """Complete the segment: its extent, coverage and pending intervals."""


BatchLoaderFactory: TypeAlias = Callable[[Batch, Sequence[Observed]], BatchLoader]


def _as_of_a_file(loader_of: Callable[[Command, Segment, Origin], Loader]) -> BatchLoaderFactory:
    """Return the loader of a format whose batches hold what its texts do."""

    def load(batch: Batch, _observed: Sequence[Observed]) -> BatchLoader:
        return loader_of(Command(), batch.segment, Origin(cluster=batch.source.cluster))

    return load


def _history(batch: Batch, _observed: Sequence[Observed]) -> BatchLoader:
    """Return the loader of what a server kept: it covers what its rows show."""
    return HistoryLoader(Command(), batch.segment, Origin(server=batch.source.server))


def _service_stats(batch: Batch, observed: Sequence[Observed]) -> BatchLoader:
    """Return the loader of a read of a server's services: its batch covers the moment of it."""
    read_at = max((one.end for one in observed), default=None)
    origin = Origin(server=batch.source.server, read_at=read_at)
    return ServiceStatsLoader(Command(), batch.segment, origin)


# The table that batches of a format have, and how their rows are stored.
BATCHES: dict[Segment.Format, tuple[Table, BatchLoaderFactory]] = {
    Segment.Format.RPCTRACE: (tables.RPC_WINDOWS, TraceBatchLoader),
    Segment.Format.REQ_HISTORY: (tables.REQUEST_WINDOWS, _history),
    Segment.Format.JOB_STATS: (tables.JOB_DELTAS, JobDeltasLoader),
    Segment.Format.MD_STATS: (tables.TARGET_DELTAS, TargetDeltasLoader),
    Segment.Format.MDS_STATS: (tables.SERVICE_COUNTERS, _service_stats),
    Segment.Format.SACCT: (tables.JOBS, _as_of_a_file(SacctLoader)),
    Segment.Format.SQUEUE: (tables.JOBS, _as_of_a_file(SqueueLoader)),
    Segment.Format.PBS: (tables.JOBS, _as_of_a_file(PbsLoader)),
    Segment.Format.ALPS: (tables.LAUNCHES, _as_of_a_file(AlpsLoader)),
    Segment.Format.PANDA: (tables.WORKLOAD_JOBS, _as_of_a_file(PandaLoader)),
}

__all__ = ["BATCHES", "LOADERS", "Command"]
