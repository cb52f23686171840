"""Columns of the evidence that rules evaluate; null is unknown."""

from __future__ import annotations

from datetime import timedelta

import polars as pl

from collectors.tables import METADATA_OPERATIONS
from ioportal.metrics import METRICS
from ioportal.rules.rule import GROUPS, Subject

# Rates are evaluated as totals of five minutes: a strong storm exceeds a threshold within seconds,
# a mild one after minutes.
PEAK_SPAN = timedelta(minutes=5)
JOB_RECORD_DELAY = timedelta(minutes=10)  # usual time from the start of a job to its record
SUSTAINED_SPAN = timedelta(minutes=10)  # excludes short bursts
DAY = timedelta(days=1)  # for totals of a user's jobs
HOUR = timedelta(hours=1)  # for the data quality of a filesystem

_COUNT = pl.Float64()  # also of counts: they enter ratios and thresholds

# The highest total of any five minutes so far; each peak has its own five minutes.
PEAKS = {
    "peak_operations": _COUNT,  # metadata operations
    "sustained_operations": _COUNT,  # metadata operations within ten minutes
    "peak_stats": _COUNT,  # getattr
    "peak_locks_s": _COUNT,  # service time of lock enqueues
    "peak_impact_s": _COUNT,  # extra wait of other users' RPCs
}
# Usual values of similar jobs (`ioportal.jobs.similar_jobs`). They take time to compute: each rule
# declares the ones it reads.
USUAL_VALUES = {
    "similar_jobs": _COUNT,  # with known metadata operations
    "usual_operations": _COUNT,  # median of metadata operations per node
    "usual_high": _COUNT,  # 95th percentile of metadata operations per node
    "usual_deviation": pl.Float64(),  # median absolute deviation of ln(1 + operations per node)
    "similar_jobs_with_bytes": _COUNT,  # with known bytes
    "usual_read_bytes": _COUNT,  # median
    "usual_read_high": _COUNT,  # 95th percentile
}
JOB_EVIDENCE = {
    "subject": pl.String(),
    "core_count": _COUNT,
    "capacity_per_s": _COUNT,  # requests that the metadata servers of its filesystem can serve
    "capacity_is_registered": pl.Boolean(),  # otherwise it is assumed, at least in part
    **{metric.name: pl.Float64() for metric in METRICS},
    **{f"count_{kind}": _COUNT for kind in METADATA_OPERATIONS},
    **PEAKS,
    "counted_enqueues": _COUNT,  # lock enqueues until the latest read of the MDTs' counters
    "startup_operations": _COUNT,  # metadata operations in the first five minutes of the run
    "startup_opens": _COUNT,
    # At the peak of lock service time:
    "lock_share": pl.Float64(),  # lock enqueues / RPCs of the job
    "lock_ratio": pl.Float64(),  # mean service time of its enqueues / of all other enqueues
    "impact_s": pl.Float64(),  # extra wait of other users' RPCs over the whole run
    # At the peak of impact:
    "impact_share": pl.Float64(),  # work of the job / of all RPCs
    "impact_times": pl.Float64(),  # time of other users' RPCs / their usual time
    "impact_is_estimated": pl.Float64(),  # 1: by counters; 0: measured by traces
    "failures_counted": pl.Boolean(),  # whether its servers count opens that fail
    "has_ended": pl.Boolean(),
    **USUAL_VALUES,
}
# Of the jobs of a user, a project or an application. A part of a user is one of its applications; a
# part of a project is a user.
GROUP_EVIDENCE = {
    "subject": pl.String(),
    "metadata_operations": _COUNT,  # the most within 24 hours
    # Within the same 24 hours:
    "jobs": _COUNT,  # with metadata operations
    "largest_job_operations": _COUNT,
    "part_operations": _COUNT,  # of the part with most operations
    "part_jobs": _COUNT,
    "part_largest_job_operations": _COUNT,
    # Of the hour and the filesystem with the largest share of the capacity:
    "hour_operations": _COUNT,
    "capacity_per_s": _COUNT,
    "capacity_is_registered": pl.Boolean(),
    # Within the last day:
    "peak_impact_s": _COUNT,  # extra wait of others within five minutes
    "impact_share": pl.Float64(),  # at the peak: work of the group / of all RPCs
    "impact_times": pl.Float64(),  # at the peak: time of others' RPCs / their usual time
    "impact_is_estimated": pl.Float64(),  # at the peak: 1: by counters; 0: measured by traces
    "impact_s": pl.Float64(),  # extra wait of others
    "parts_impact_s": _COUNT,  # part of impact_s explained by its largest or its accused parts
}
HOST_EVIDENCE = {
    "subject": pl.String(),
    "rpcs": _COUNT,  # within five minutes, on the metadata servers of one filesystem
    "server_share": pl.Float64(),  # of all RPCs of these servers
    "capacity_per_s": _COUNT,  # requests that these servers can serve
    "capacity_is_registered": pl.Boolean(),
    # In the windows of the last hour in which it delayed others:
    "impact_s": pl.Float64(),  # extra wait of others
    "impact_share": pl.Float64(),  # its work / all work
    "impact_is_estimated": pl.Float64(),  # 1: at least partly
    "operations": _COUNT,  # metadata operations within five minutes (exports)
    "operations_share": pl.Float64(),  # of all clients' operations
    # Processes of a user, or a single process (job_stats):
    "process_operations": _COUNT,  # metadata operations within five minutes
    "process_operations_share": pl.Float64(),  # of all counted operations
    # Of the nodes of one job, or of a NID without exactly one job:
    "contradicted_rpcs": _COUNT,  # within five minutes, whose node or user contradicts the job id
    "contradicted_hosts": _COUNT,  # which sent them
}
# Figures that others' requests are a part of: two significant digits reveal no single user's.
OF_OTHERS = frozenset({
    "impact_s", "peak_impact_s", "parts_impact_s", "impact_share", "impact_times", "lock_ratio",
    "server_share", "operations_share", "process_operations_share", "largest_target_share",
})  # fmt: skip
FILESYSTEM_EVIDENCE = {
    "subject": pl.String(),
    "rpcs": _COUNT,  # within an hour
    "unattributed_rpcs": _COUNT,
}
EVIDENCE = {
    Subject.JOB: JOB_EVIDENCE,
    **dict.fromkeys(GROUPS, GROUP_EVIDENCE),
    Subject.HOST: HOST_EVIDENCE,
    Subject.FILESYSTEM: FILESYSTEM_EVIDENCE,
}
