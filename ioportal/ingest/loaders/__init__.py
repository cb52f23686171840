"""How the rows of each table are stored, from files and from the batches of agents."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

from collectors import tables
from collectors.format import Format, Option
from collectors.parsed import Parsed
from collectors.tables import Table
from ioportal.ingest.loaders.accounting import JobsLoader, LaunchesLoader, WorkloadJobsLoader
from ioportal.ingest.loaders.counters import JobStatsLoader, MdStatsLoader
from ioportal.ingest.loaders.deltas import ExportDeltasLoader, JobDeltasLoader, TargetDeltasLoader
from ioportal.ingest.loaders.histories import HistoryLoader
from ioportal.ingest.loaders.services import ServiceStatsLoader
from ioportal.ingest.loaders.traces import RpcTraceLoader, TraceBatchLoader
from ioportal.ingest.loading import Loader, LoaderFactory, LoadOptions, Origin
from ioportal.ingest.manifest import Observed
from ioportal.ingest.models import Batch


class BatchLoader(Protocol):
    """Stores the rows of one batch."""

    def store(self, parsed: Parsed) -> None:
        """Append the rows."""

    def finish(self) -> None:
        """Complete the segment: its extent, coverage and pending intervals."""


BatchLoaderFactory: TypeAlias = Callable[[Batch, Sequence[Observed]], BatchLoader]

# What the value of an option names, such as an experiment; registered by `experiments`.
NAMED: dict[Option, Callable[[str], Any]] = {}
# Formats of other tables are read by agents only, or registered by `experiments`.
FILE_LOADERS: dict[Table, type[Loader]] = {
    tables.RPC_WINDOWS: RpcTraceLoader,
    tables.REQUEST_WINDOWS: HistoryLoader,
    tables.JOB_COUNTERS: JobStatsLoader,
    tables.TARGET_COUNTERS: MdStatsLoader,
    tables.SERVICE_COUNTERS: ServiceStatsLoader,
    tables.JOBS: JobsLoader,
    tables.LAUNCHES: LaunchesLoader,
    tables.WORKLOAD_JOBS: WorkloadJobsLoader,
}


def attempts(form: Format, options: LoadOptions) -> Callable[[], LoaderFactory]:
    """Return what starts an attempt of `loading.load` to load files of a format."""
    return lambda: partial(FILE_LOADERS[form.table], options.for_attempt())


def _same_as_file(loader_class: type[Loader]) -> BatchLoaderFactory:
    """Return the loader of a table that batches and files share."""

    def load(batch: Batch, _observed: Sequence[Observed]) -> BatchLoader:
        return loader_class(LoadOptions(), batch.segment, Origin(cluster=batch.source.cluster))

    return load


def _history(batch: Batch, _observed: Sequence[Observed]) -> BatchLoader:
    """Return the loader of a request history, which covers the times of its rows."""
    return HistoryLoader(LoadOptions(), batch.segment, Origin(server=batch.source.server))


def _service_stats(batch: Batch, observed: Sequence[Observed]) -> BatchLoader:
    """Return the loader of service statistics; the batch covers the moment of the read."""
    read_at = max((interval.end for interval in observed), default=None)
    origin = Origin(server=batch.source.server, read_at=read_at)
    return ServiceStatsLoader(LoadOptions(), batch.segment, origin)


BATCH_LOADERS: dict[Table, BatchLoaderFactory] = {
    tables.RPC_WINDOWS: TraceBatchLoader,
    tables.REQUEST_WINDOWS: _history,
    tables.JOB_DELTAS: JobDeltasLoader,
    tables.TARGET_DELTAS: TargetDeltasLoader,
    tables.EXPORT_DELTAS: ExportDeltasLoader,
    tables.SERVICE_COUNTERS: _service_stats,
    tables.JOBS: _same_as_file(JobsLoader),
    tables.LAUNCHES: _same_as_file(LaunchesLoader),
    tables.WORKLOAD_JOBS: _same_as_file(WorkloadJobsLoader),
}

__all__ = ["BATCH_LOADERS", "FILE_LOADERS", "NAMED", "attempts"]
