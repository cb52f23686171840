"""Units and sources of figures."""

from enum import StrEnum


class Unit(StrEnum):
    """The unit of a metric."""

    COUNT = "operations"
    PER_SECOND = "operations/s"
    RPCS = "RPCs"
    RPCS_PER_SECOND = "RPCs/s"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes/s"
    SECONDS = "s"
    SECONDS_OF_WAITING = "s of waiting"  # a sum over requests, no time span
    MICROSECONDS = "µs"
    NODES = "nodes"
    CORES = "cores"
    JOBS = "jobs"
    REQUESTS = "requests"
    REQUESTS_PER_SECOND = "requests/s"
    EVENTS = "events"
    CORE_HOURS = "core-hours"
    RATIO = "ratio"
    TIMES = "times"  # another value: a ratio whose exact value means little above 1,000
    SHARE = "share"
    YES_NO = "yes or no"

    @property
    def symbol(self) -> str:
        """The unit as shown after a number; the title of the number names the kind of waiting."""
        return "s" if self is Unit.SECONDS_OF_WAITING else self.value


class Source(StrEnum):
    """The source of a metric."""

    ACCOUNTING = "accounting"
    JOB_STATS_MDT = "job_stats of the MDTs"
    JOB_STATS = "job_stats of the MDTs and OSTs"
    EXPORTS = "exports of the MDTs"
    RPC_TRACE = "rpctrace"
    IMPACT = "rpctrace, or mds_stats and job_stats"
    PANDA = "PanDA record"
    EXPERIMENT = "file of a run"
