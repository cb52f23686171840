"""The parts of the job page as CSV and JSON."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from ioportal.display import visible_text
from ioportal.jobs import workloads
from ioportal.reporting import job_facts
from ioportal.reporting.ranges import TimeRange
from ioportal.reporting.series import JobSeries
from ioportal.reporting.timelines import BY_NAME, Timeline
from ioportal.studies import similar_jobs
from ioportal.web.common import exports
from ioportal.web.jobs.job_query import (
    launch_of,
    report_of,
    run_of,
    shown_by_default,
    statistics_of,
    visible_job,
)
from ioportal.web.panda.job_list import ROWS_AT_ONCE, TWIN_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpResponseBase

    from ioportal.analysis.rpc_report import RpcReport, Times
    from ioportal.web.common.requests import UserRequest

_REPORT_HEADER = [
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
]
_STANDINGS_HEADER = [
    "metric",
    "unit",
    "value",
    "peers",
    "share_below",
    "p25",
    "p50",
    "p75",
    "p90",
]


@require_safe
@login_required
@exports.offered("csv", "json")
def timeline(request: UserRequest, pk: int, name: str) -> HttpResponseBase:
    """One timeline."""
    job = visible_job(request, pk)
    run = run_of(job)
    if name not in BY_NAME or run is None:
        raise Http404("There is no such timeline.")
    try:
        window = TimeRange.from_query(request.GET, shown_by_default(run))
    except ValidationError as error:
        return exports.refuse({"range": error.messages})
    shown = Timeline(BY_NAME[name], JobSeries(job, window), window)
    about = {
        "job": job.display_id,
        "cluster": job.cluster.name,
        "simulated": job.cluster.simulated,
        "chart": shown.chart.title,
        "unit": shown.chart.unit,
        "start": window.start,
        "end": window.end,
        "not_observed": [
            {"start": gap.start, "end": gap.end, "known": gap.known.value}
            for gap in shown.steps.gaps(window.start, window.end)
        ],
        "without_a_time": shown.undated,
    }
    return exports.twin(request, f"{job.batch_id}-{name}", about, shown.header, shown.rows())


@require_safe
@login_required
@exports.offered("csv", "json", "text")
def rpcs(request: UserRequest, pk: int) -> HttpResponseBase:
    """The RPC report of a job or of one of its launches; ``format=text`` is the command line's."""
    job = visible_job(request, pk)
    run = run_of(job)
    try:
        window = TimeRange.from_query(request.GET, run) if run else None
    except ValidationError as error:
        return exports.refuse({"range": error.messages})
    report = report_of(job, launch_of(request, job), window)
    if report is None:
        raise Http404("No trace covers any of it.")
    if exports.asked_format(request) == "text":
        return HttpResponse(
            f"{visible_text(report.text())}\n", content_type="text/plain; charset=utf-8"
        )
    about = {
        "title": report.title,
        "simulated": report.simulated,
        "traced_s": report.covered_s,
        "nodes_seen": report.nodes_seen,
        "nodes_held": report.nodes_held,
    }
    name = f"{job.batch_id}-rpcs"
    return exports.twin(request, name, about, _REPORT_HEADER, _report_rows(report))


@require_safe
@login_required
@exports.offered("csv", "json")
def standings(request: UserRequest, pk: int) -> HttpResponseBase:
    """Where a job stands among its peers."""
    job = visible_job(request, pk)
    statistics = statistics_of(job)
    found = similar_jobs.standings(job, statistics) if statistics else []
    rows = (
        [
            standing.metric.name,
            str(standing.metric.unit),
            standing.value,
            standing.similar_jobs,
            standing.rank,
            *(astuple(standing.usual) if standing.usual else (None,) * 4),
        ]
        for standing in found
    )
    about = {
        "job": job.display_id,
        "cluster": job.cluster.name,
        "simulated": job.cluster.simulated,
    }
    return exports.twin(request, f"{job.batch_id}-peers", about, _STANDINGS_HEADER, rows)


@require_safe
@login_required
@exports.offered("csv", "json")
def panda(request: UserRequest, pk: int) -> HttpResponseBase:
    """The PanDA jobs that ran inside a batch job."""
    job = visible_job(request, pk)
    about = {
        "job": job.display_id,
        "cluster": job.cluster.name,
        "simulated": job.cluster.simulated,
        **job_facts.sharing(workloads.inside(job)),
    }
    rows = workloads.in_order(job).values_list(*TWIN_COLUMNS.values()).iterator(ROWS_AT_ONCE)
    return exports.twin(request, f"{job.batch_id}-panda", about, list(TWIN_COLUMNS), rows)


def _report_rows(report: RpcReport) -> Iterator[list[Any]]:
    for row in (*report.rows, report.overall):
        share = row.count / report.overall.count if report.overall.count else None
        times = (*_times(row.service), *_times(row.queue))
        yield [row.opcode, row.count, share, row.per_second, *times]


def _times(times: Times | None) -> tuple[float | None, float | None, float | None]:
    return (times.min_us, times.mean_us, times.max_us) if times else (None, None, None)
