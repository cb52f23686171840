"""The parts of a job as tables for export: names, columns and rows."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING, Any, NamedTuple

from ioportal.jobs import job_facts
from ioportal.jobs.panda_jobs import jobs_inside, panda_summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ioportal.jobs.analysis.rpc_report import RpcReport, Times
    from ioportal.jobs.models import Job
    from ioportal.jobs.similar_jobs import Standing
    from ioportal.load.step_charts import Timeline

# PanDA's own names: rows can be joined with its responses. Memory is in bytes, not in PanDA's kB.
PANDA_COLUMNS = {
    "pandaid": "panda_id",
    "jeditaskid": "task_id",
    "attemptnr": "attempt",
    "jobstatus": "state",
    "error": "error",
    "batchid": "reported_batch_id",
    "computingsite": "site",
    "modificationhost": "host",
    "produsername": "user",
    "transformation": "transformation",
    "creationtime": "created_at",
    "starttime": "started_at",
    "endtime": "ended_at",
    "modificationtime": "modified_at",
    "corecount": "core_count",
    "cpuconsumptiontime": "cpu_s",
    "timegetjob": "get_job_s",
    "timestagein": "stage_in_s",
    "timepayload": "payload_s",
    "timestageout": "stage_out_s",
    "timetotal_setup": "setup_s",
    "nevents": "event_count",
    "maxpss_bytes": "max_pss_bytes",
    "maxswap_bytes": "max_swap_bytes",
    "transfertype": "transfer_type",
}
ROWS_PER_FETCH = 2_000
_RPC_COLUMNS = (
    "opcode",
    "count",
    "share",
    "per_second",
    "service_min_us",
    "service_mean_us",
    "service_max_us",
    "queue_min_us",
    "queue_mean_us",
    "queue_max_us",
)
_SIMILAR_COLUMNS = (
    "metric",
    "unit",
    "value",
    "similar_jobs",
    "share_below",
    "p25",
    "p50",
    "p75",
    "p90",
)


class Export(NamedTuple):
    """A table to export: file name, members of the JSON object, column names and rows."""

    name: str
    about: dict[str, Any]
    header: Sequence[str]
    rows: Iterable[Sequence[object]]


def timeline(job: Job, chart: Timeline) -> Export:
    """Export one timeline of a job."""
    about = {
        **_identity(job),
        "chart": chart.chart.title,
        "unit": chart.chart.unit,
        "start": chart.window.start,
        "end": chart.window.end,
        "not_observed": [
            {"start": gap.start, "end": gap.end, "known": gap.known.value} for gap in chart.gaps
        ],
        "without_a_time": chart.undated,
    }
    return Export(f"{job.batch_id}-{chart.chart.name}", about, chart.header, chart.rows())


def rpc_report(job: Job, report: RpcReport) -> Export:
    """Export the RPC report of a job or of one of its launches."""
    about = {
        "title": report.title,
        "simulated": report.simulated,
        "traced_s": report.covered_s,
        "nodes_seen": report.nodes_seen,
        "nodes_held": report.nodes_held,
    }
    return Export(f"{job.batch_id}-rpc-report", about, _RPC_COLUMNS, _rpc_rows(report))


def similar_jobs(job: Job, standings: Iterable[Standing]) -> Export:
    """Export the ranks of a job among similar jobs."""
    rows = (
        [
            standing.metric.name,
            str(standing.metric.unit),
            standing.value,
            standing.similar_jobs,
            standing.rank,
            *(astuple(standing.usual) if standing.usual else (None,) * 4),
        ]
        for standing in standings
    )
    return Export(f"{job.batch_id}-similar-jobs", _identity(job), _SIMILAR_COLUMNS, rows)


def panda_jobs(job: Job) -> Export:
    """Export the PanDA jobs that ran inside a batch job."""
    about = {**_identity(job), **job_facts.sharing(panda_summary(job))}
    rows = jobs_inside(job).values_list(*PANDA_COLUMNS.values()).iterator(ROWS_PER_FETCH)
    return Export(f"{job.batch_id}-panda", about, tuple(PANDA_COLUMNS), rows)


def _identity(job: Job) -> dict[str, Any]:
    return {
        "job": job.display_id,
        "cluster": job.cluster.name,
        "simulated": job.cluster.simulated,
    }


def _rpc_rows(report: RpcReport) -> Iterator[list[Any]]:
    for row in (*report.rows, report.overall):
        share = row.count / report.overall.count if report.overall.count else None
        times = (*_times(row.service), *_times(row.queue))
        yield [row.opcode, row.count, share, row.per_second, *times]


def _times(times: Times | None) -> tuple[float | None, float | None, float | None]:
    return (times.min_us, times.mean_us, times.max_us) if times else (None, None, None)
