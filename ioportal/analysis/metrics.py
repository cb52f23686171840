"""Every metric once: name, unit, formula, source, caveats. docs/metrics.md is written from here."""

from dataclasses import dataclass
from enum import StrEnum

from collectors.tables import METADATA_OPERATIONS


class Unit(StrEnum):
    """What a metric's number counts."""

    COUNT = "operations"
    PER_SECOND = "operations/s"
    RPCS = "RPCs"
    RPCS_PER_SECOND = "RPCs/s"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes/s"
    SECONDS = "s"
    MICROSECONDS = "µs"
    NODES = "nodes"
    CORES = "cores"
    JOBS = "jobs"
    REQUESTS = "requests"
    CORE_HOURS = "core-hours"
    RATIO = "ratio"
    SHARE = "share"


class Source(StrEnum):
    """The one source that a metric is computed from."""

    ACCOUNTING = "accounting"
    JOB_STATS_MDT = "job_stats of the MDTs"
    JOB_STATS = "job_stats of the MDTs and OSTs"
    RPC_TRACE = "rpctrace"
    PANDA = "PanDA record"


@dataclass(frozen=True)
class Metric:
    """A number about a job."""

    name: str  # of a batch job, the column of JobStatistics; never renamed
    title: str
    unit: Unit
    source: Source
    formula: str
    caveat: str = ""


_OPEN_CAVEAT = (
    "What `open` counts depends on the server's version: failures too up to 2.13, none of the "
    "look-ups that fail in 2.14 and 2.15, successes only from 2.16 on."
)

_BYTES_CAVEAT = "Unknown where no OST of its filesystems is registered, or none was observed."

METRICS = (
    Metric(
        "duration_s",
        "Duration",
        Unit.SECONDS,
        Source.ACCOUNTING,
        "end - start; while it runs, the last record of its filesystems - start, at most its time "
        "limit + 1 hour",
    ),
    Metric("node_count", "Nodes", Unit.NODES, Source.ACCOUNTING, "nodes of the job's allocation"),
    Metric(
        "cpu_efficiency",
        "CPU efficiency",
        Unit.SHARE,
        Source.ACCOUNTING,
        "CPU time / (cores x duration)",
        "Unknown while the job runs and where accounting has no CPU time.",
    ),
    Metric(
        "read_bytes",
        "Read",
        Unit.BYTES,
        Source.JOB_STATS,
        "sum of read_bytes",
        _BYTES_CAVEAT,
    ),
    Metric(
        "write_bytes",
        "Written",
        Unit.BYTES,
        Source.JOB_STATS,
        "sum of write_bytes",
        _BYTES_CAVEAT,
    ),
    Metric(
        "read_bytes_per_node",
        "Read per node",
        Unit.BYTES,
        Source.JOB_STATS,
        "read_bytes / node_count",
    ),
    Metric(
        "write_bytes_per_node",
        "Written per node",
        Unit.BYTES,
        Source.JOB_STATS,
        "write_bytes / node_count",
    ),
    Metric(
        "mean_read_bytes",
        "Mean read size",
        Unit.BYTES,
        Source.JOB_STATS,
        "read_bytes / read requests",
    ),
    Metric(
        "mean_write_bytes",
        "Mean write size",
        Unit.BYTES,
        Source.JOB_STATS,
        "write_bytes / write requests",
    ),
    Metric(
        "metadata_operations",
        "Metadata operations",
        Unit.COUNT,
        Source.JOB_STATS_MDT,
        "sum of " + ", ".join(METADATA_OPERATIONS),
        _OPEN_CAVEAT,
    ),
    Metric("opens", "Opens", Unit.COUNT, Source.JOB_STATS_MDT, "sum of open", _OPEN_CAVEAT),
    Metric("closes", "Closes", Unit.COUNT, Source.JOB_STATS_MDT, "sum of close"),
    Metric(
        "open_close_ratio",
        "Opens per close",
        Unit.RATIO,
        Source.JOB_STATS_MDT,
        "opens / closes",
        "Measures failed look-ups only where the servers run 2.13 or older.",
    ),
    Metric(
        "metadata_operations_per_node",
        "Metadata operations per node",
        Unit.COUNT,
        Source.JOB_STATS_MDT,
        "metadata_operations / node_count",
    ),
    Metric(
        "metadata_rate",
        "Mean metadata rate",
        Unit.PER_SECOND,
        Source.JOB_STATS_MDT,
        "metadata operations of observed windows / observed seconds",
    ),
    Metric(
        "peak_metadata_rate",
        "Peak metadata rate",
        Unit.PER_SECOND,
        Source.JOB_STATS_MDT,
        "metadata operations / seconds of each MDT's poll interval, added where intervals of "
        "several MDTs overlap; the largest sum",
        "Shown with the longest of the intervals it was measured over: shorter polls see higher "
        "peaks. Where a poll interval reaches beyond the run, the peak divides by all of it and "
        "the mean by its part inside the run: the mean may then be the larger one. Unknown where "
        "that interval is longer than the run.",
    ),
    Metric(
        "startup_share",
        "Start-up share",
        Unit.SHARE,
        Source.JOB_STATS_MDT,
        "metadata operations of windows that end in the first 10 % of the run "
        "/ metadata operations",
        "Unknown where a poll interval is longer than 10 % of the run.",
    ),
    Metric(
        "largest_target_share",
        "Largest share of an MDT",
        Unit.SHARE,
        Source.JOB_STATS_MDT,
        "largest of the job's metadata operations / the MDT's (md_stats) over the job's run",
        "Unknown without md_stats of the same reads.",
    ),
    Metric(
        "metadata_rpcs", "Metadata RPCs", Unit.RPCS, Source.RPC_TRACE, "RPCs handled by the MDSs"
    ),
    Metric(
        "lock_enqueues",
        "Lock enqueues",
        Unit.RPCS,
        Source.RPC_TRACE,
        "LDLM_ENQUEUE RPCs handled by the MDSs",
        "An open, a stat and a look-up that fails are each one of them: a trace cannot tell which.",
    ),
    Metric(
        "metadata_rpc_rate",
        "Metadata RPC rate",
        Unit.RPCS_PER_SECOND,
        Source.RPC_TRACE,
        "metadata RPCs / traced seconds of the run",
    ),
    Metric(
        "mean_service_us",
        "Mean service time",
        Unit.MICROSECONDS,
        Source.RPC_TRACE,
        "sum of service times / timed RPCs",
    ),
    Metric(
        "max_service_us",
        "Longest service time",
        Unit.MICROSECONDS,
        Source.RPC_TRACE,
        "largest service time",
    ),
    Metric(
        "mean_queue_us",
        "Mean queue time",
        Unit.MICROSECONDS,
        Source.RPC_TRACE,
        "(sum of total times - sum of service times) / timed RPCs",
    ),
)
BY_NAME = {metric.name: metric for metric in METRICS}

# Of a PanDA job itself. Whatever else is said of it is its batch job's.
PANDA_METRICS = (
    Metric(
        "panda_duration_s",
        "Run time",
        Unit.SECONDS,
        Source.PANDA,
        "endtime - starttime",
        "Unknown before the PanDA job has ended.",
    ),
    Metric(
        "panda_wait_s",
        "Wait",
        Unit.SECONDS,
        Source.PANDA,
        "starttime - creationtime",
        "Unknown where it seems to start before it was created: two clocks tell these times.",
    ),
    Metric(
        "panda_setup_s",
        "Set-up",
        Unit.SECONDS,
        Source.PANDA,
        "the last of the five times in pilottiming",
        "How long the pilot prepared the program, such as by validating its software.",
    ),
    Metric(
        "panda_core_count",
        "Cores",
        Unit.CORES,
        Source.PANDA,
        "actualcorecount, or else corecount",
    ),
    Metric(
        "panda_cpu_s",
        "CPU time",
        Unit.SECONDS,
        Source.PANDA,
        "cpuconsumptiontime",
    ),
    Metric(
        "panda_cpu_efficiency",
        "CPU efficiency",
        Unit.SHARE,
        Source.PANDA,
        "panda_cpu_s / (panda_core_count x panda_duration_s)",
    ),
)
