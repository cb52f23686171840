"""PanDA jobs: a list, and the page of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.decorators import login_required
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from ioportal.analysis.metrics import PANDA_METRICS
from ioportal.jobs import workloads
from ioportal.jobs.models import Job, WorkloadJob
from ioportal.reporting import job_facts
from ioportal.web.common import exports
from ioportal.web.jobs.job_query import statistics_of
from ioportal.web.panda.job_list import HEADER, TWIN_COLUMNS, PandaListing

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
@login_required
@exports.offered("csv", "json")
def panda_list(request: UserRequest) -> HttpResponseBase:
    """PanDA jobs by filters."""
    listing = PandaListing(request.user, request.GET)
    if not exports.asked_format(request):
        return render(request, "panda/list.html", {"section": "jobs", "listing": listing})
    if errors := listing.filter.errors:
        return exports.refuse(errors)
    about = {"simulated": listing.simulated}
    return exports.twin(request, "panda-jobs", about, HEADER, listing.values())


@require_safe
@login_required
@exports.offered("json")
def panda_job(request: UserRequest, cluster: str, panda_id: int) -> HttpResponseBase:
    """What PanDA says of a job, and what the batch job did that it ran inside."""
    visible = WorkloadJob.objects.visible_to(request.user).select_related("cluster")
    found = get_object_or_404(visible, cluster__name=cluster, panda_id=panda_id)
    holders = list(
        Job.objects.visible_to(request.user)
        .filter(workload_jobs=found)
        .select_related("cluster", "statistics")
        .order_by("batch_id", "array_index")
    )
    sole = holders[0] if found.batch_job_id else None
    inside = workloads.inside(sole) if sole else None
    statistics = statistics_of(sole) if sole else None
    figures = workloads.figures_of(found)
    if exports.asked_format(request):
        facts = {name: getattr(found, field) for name, field in TWIN_COLUMNS.items()}
        about = {"cluster": found.cluster.name, "simulated": found.cluster.simulated}
        batch = job_facts.facts(sole, statistics, inside) if sole else None
        return exports.json_response(facts | figures | about | {"batch_job": batch})
    return render(
        request,
        "panda/job.html",
        {
            "section": "jobs",
            "panda_job": found,
            "figures": [(metric, figures[metric.name]) for metric in PANDA_METRICS],
            "holders": holders,
            "job": sole,
            "inside": inside,
            "statistics": statistics,
            "groups": job_facts.groups(statistics) if statistics else {},
        },
    )
