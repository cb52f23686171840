"""What rules judge: the columns of their evidence; null is not known."""

from __future__ import annotations

from datetime import timedelta

import polars as pl

from collectors.tables import METADATA_OPERATIONS
from ioportal.analysis.metrics import METRICS
from ioportal.analysis.rules.rule import Subject

# Rates are judged by what was done within five minutes: a strong storm is over a limit after
# seconds, a mild one must last.
WITHIN = timedelta(minutes=5)
SUSTAINED = timedelta(minutes=10)  # to tell who keeps at it from who hurries once
DAY = timedelta(days=1)  # in which the jobs of one user add up
HOUR = timedelta(hours=1)  # over which the quality of a filesystem's data is judged

_COUNT = pl.Float64()  # (counts, too: ratios and limits are made of them)

# Each is the largest within five minutes, so far; they need not be the same ones.
PEAKS = {
    "peak_operations": _COUNT,  # metadata operations
    "sustained_operations": _COUNT,  # likewise, within ten minutes
    "peak_stats": _COUNT,  # getattr
    "peak_locks_s": _COUNT,  # service time of lock enqueues
    "peak_impact_s": _COUNT,  # others' waiting because of it
}
# What other jobs usually do: it takes time to know, so that rules say which of it they need.
OF_PEERS = {
    "peers": _COUNT,  # jobs of its size: of 1 node, 2 to 3, 4 to 7, ...; in the month before
    "peers_median": pl.Float64(),  # of ln(1 + their metadata operations per node)
    "peers_deviation": pl.Float64(),  # median absolute deviation from it
}
OF_NAMESAKES = {
    "namesakes": _COUNT,  # jobs of the same name on the same cluster
    "namesakes_read_bytes": _COUNT,  # their median
}
JOB_EVIDENCE = {
    "subject": pl.String(),
    "core_count": _COUNT,
    **{metric.name: pl.Float64() for metric in METRICS},
    **{f"count_{kind}": _COUNT for kind in METADATA_OPERATIONS},
    **PEAKS,
    "counted_enqueues": _COUNT,  # lock enqueues before the newest read of the MDTs' counters
    "startup_operations": _COUNT,  # metadata operations in the first five minutes of the run
    "startup_opens": _COUNT,
    "lock_share": pl.Float64(),  # of its RPCs, lock enqueues: where their service took longest
    "lock_ratio": pl.Float64(),  # how many times as long its enqueues took there as all others'
    "impact_s": pl.Float64(),  # others' waiting because of it, altogether
    "impact_share": pl.Float64(),  # of the servers' work, its own: where others waited longest
    "impact_times": pl.Float64(),  # how many times as long as usual others' RPCs took there
    "failures_counted": pl.Boolean(),  # whether its servers count opens that find nothing
    "has_ended": pl.Boolean(),
    **OF_PEERS,
    **OF_NAMESAKES,
}
USER_EVIDENCE = {
    "subject": pl.String(),
    "jobs": _COUNT,  # that ran within a day
    "metadata_operations": _COUNT,  # theirs together
    "largest_job_operations": _COUNT,
}
HOST_EVIDENCE = {
    "subject": pl.String(),
    "rpcs": _COUNT,  # within five minutes, on the servers of one filesystem
    "server_share": pl.Float64(),  # of those servers' RPCs meanwhile
    "impact_s": pl.Float64(),  # others' waiting because of it meanwhile
}
FILESYSTEM_EVIDENCE = {
    "subject": pl.String(),
    "rpcs": _COUNT,  # within an hour
    "unattributed_rpcs": _COUNT,
}
OF_SUBJECT = {
    Subject.JOB: JOB_EVIDENCE,
    Subject.USER: USER_EVIDENCE,
    Subject.HOST: HOST_EVIDENCE,
    Subject.FILESYSTEM: FILESYSTEM_EVIDENCE,
}
