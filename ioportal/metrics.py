"""Definitions of all metrics: name, unit, formula, source, caveats; source of docs/metrics.md."""

from dataclasses import dataclass

from collectors.tables import METADATA_OPERATIONS
from ioportal.core.units import Source, Unit


@dataclass(frozen=True)
class Metric:
    """A figure of a job."""

    name: str  # for batch jobs, the column of JobStatistics; never renamed
    title: str
    unit: Unit
    source: Source
    formula: str
    caveat: str = ""

    @property
    def is_counted(self) -> bool:
        """Whether its values are differences of counters, which have gaps between reads."""
        return self.source in {Source.JOB_STATS, Source.JOB_STATS_MDT}

    @property
    def is_plural(self) -> bool:
        """Whether its title has a plural verb: "opens fall", "opens per close falls"."""
        return self.unit is not Unit.RATIO and self.title.partition(" per ")[0].endswith("s")


_OPEN_CAVEAT = (
    "The meaning of `open` depends on the server's version: up to 2.13 with failures, in 2.14 and "
    "2.15 without failed look-ups, from 2.16 on successes only."
)

_BYTES_CAVEAT = "Unknown if no OST of its filesystems is registered and observed."

METRICS = (
    Metric(
        "duration_s",
        "Duration",
        Unit.SECONDS,
        Source.ACCOUNTING,
        "end \N{MINUS SIGN} start; of a running job, last record of its filesystems \N{MINUS SIGN} "
        "start, at most its time limit + 1 hour",
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
        "Measures failed look-ups only with servers up to 2.13.",
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
        "mean_operation_us",
        "Mean operation time",
        Unit.MICROSECONDS,
        Source.JOB_STATS_MDT,
        "sum of the times of metadata operations / operations with a known time",
        "Servers count times since Lustre 2.14. The time of an operation on the MDS includes "
        "waiting for locks and disks, but not the time in the request queue.",
    ),
    Metric(
        "peak_metadata_rate",
        "Peak metadata rate",
        Unit.PER_SECOND,
        Source.JOB_STATS_MDT,
        "metadata operations / seconds of each MDT's poll interval, summed over overlapping "
        "intervals of several MDTs; the maximum of these sums",
        "Shown with the longest interval of its measurement: shorter polls give higher peaks. If a "
        "poll interval extends beyond the run, the peak divides by the whole interval and the mean "
        "by its part inside the run, so the mean may be larger. Unknown if the interval is longer "
        "than the run. Where all MDSs were traced, the operations of an interval are at most the "
        "RPCs of all clients in it, without LDLM_CANCEL: a read may show old counters. Of windows "
        "of 10 s that overlap it partly, the RPCs count in proportion.",
    ),
    Metric(
        "startup_share",
        "Start-up share",
        Unit.SHARE,
        Source.JOB_STATS_MDT,
        "metadata operations of windows that end in the first 10 % of the run "
        "/ metadata operations",
        "Unknown if a poll interval is longer than 10 % of the run.",
    ),
    Metric(
        "largest_target_share",
        "Largest share of an MDT",
        Unit.SHARE,
        Source.JOB_STATS_MDT,
        "largest of the job's metadata operations / the MDT's (md_stats), over the poll intervals "
        "from the job's first to its last operations there",
        "Unknown without md_stats of the same reads. Two significant digits: the rest are "
        "others' operations.",
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
        "Opens, stats and failed look-ups each cause one; a trace does not distinguish them.",
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
        "(sum of total times \N{MINUS SIGN} sum of service times) / timed RPCs",
    ),
)
BY_NAME = {metric.name: metric for metric in METRICS}

# Figures of the PanDA job itself; all others belong to its batch job.
PANDA_METRICS = (
    Metric(
        "panda_duration_s",
        "Run time",
        Unit.SECONDS,
        Source.PANDA,
        "endtime \N{MINUS SIGN} starttime",
        "Unknown before the PanDA job has ended.",
    ),
    Metric(
        "panda_wait_s",
        "Wait",
        Unit.SECONDS,
        Source.PANDA,
        "starttime \N{MINUS SIGN} creationtime",
        "Unknown if the start is before the creation: the times come from two clocks.",
    ),
    Metric(
        "panda_setup_s",
        "Set-up",
        Unit.SECONDS,
        Source.PANDA,
        "timetotal_setup, the fifth time in pilottiming",
        "Preparation of the program by the pilot, such as software validation.",
    ),
    Metric(
        "panda_core_count",
        "Cores",
        Unit.CORES,
        Source.PANDA,
        "actualcorecount, otherwise corecount",
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
    Metric(
        "panda_stage_in_s",
        "Copy latency in",
        Unit.SECONDS,
        Source.PANDA,
        "timestagein, the second time in pilottiming",
        "Copy of the input to the node, in whole seconds.",
    ),
    Metric(
        "panda_stage_out_s",
        "Copy latency out",
        Unit.SECONDS,
        Source.PANDA,
        "timestageout, the fourth time in pilottiming",
        "Copy of the output from the node, in whole seconds.",
    ),
    Metric(
        "panda_get_job_s",
        "Job request",
        Unit.SECONDS,
        Source.PANDA,
        "timegetjob, the first time in pilottiming",
        "Time of the pilot's request for the job.",
    ),
    Metric(
        "panda_payload_s",
        "Payload time",
        Unit.SECONDS,
        Source.PANDA,
        "timepayload, the third time in pilottiming",
        "Run of the program, without stage-in and stage-out.",
    ),
    Metric(
        "panda_events",
        "Events",
        Unit.EVENTS,
        Source.PANDA,
        "nevents",
        "0 is unknown: the default of PanDA.",
    ),
    Metric(
        "panda_max_pss_bytes",
        "Peak memory",
        Unit.BYTES,
        Source.PANDA,
        "maxpss x 1,024",
        "Proportional set size: memory of several processes is divided among them.",
    ),
    Metric(
        "panda_max_swap_bytes",
        "Peak swap",
        Unit.BYTES,
        Source.PANDA,
        "maxswap x 1,024",
    ),
)
ANY_BY_NAME = {metric.name: metric for metric in (*METRICS, *PANDA_METRICS)}
