"""The formats that can be loaded: what each needs to be told, and how its rows are stored."""

from collections.abc import Callable

from ioportal.ingest.formats.accounts import (
    AlpsLoader,
    PandaLoader,
    PbsLoader,
    SacctLoader,
    SqueueLoader,
)
from ioportal.ingest.formats.common import Command
from ioportal.ingest.formats.counters import JobStatsLoader, MdStatsLoader
from ioportal.ingest.formats.services import ServiceStatsLoader
from ioportal.ingest.formats.traces import RpcTraceLoader
from ioportal.ingest.loading import Loader, Origin
from ioportal.ingest.models import Segment

LOADERS: dict[Segment.Format, Callable[[Command, Segment, Origin], Loader]] = {
    Segment.Format.RPCTRACE: RpcTraceLoader,
    Segment.Format.JOB_STATS: JobStatsLoader,
    Segment.Format.MD_STATS: MdStatsLoader,
    Segment.Format.MDS_STATS: ServiceStatsLoader,
    Segment.Format.SACCT: SacctLoader,
    Segment.Format.SQUEUE: SqueueLoader,
    Segment.Format.PBS: PbsLoader,
    Segment.Format.ALPS: AlpsLoader,
    Segment.Format.PANDA: PandaLoader,
}

__all__ = ["LOADERS", "Command"]
