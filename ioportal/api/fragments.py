"""Fragments of HTML for other portals, such as Open OnDemand (docs/client.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from ninja import Router

from ioportal.api.authentication import READER, reader
from ioportal.api.problems import problems
from ioportal.api.responses import answer
from ioportal.core import formatting
from ioportal.core.visible_text import visible
from ioportal.findings.cases import case_texts as cases
from ioportal.findings.flags import flag_texts
from ioportal.jobs.job_facts import statistics_of
from ioportal.jobs.models import Job
from ioportal.metrics import BY_NAME

if TYPE_CHECKING:
    from django.http import HttpRequest

_JOBS = 10
_METRICS = [BY_NAME[name] for name in ("metadata_operations", "peak_metadata_rate")]
_HTML = "text/html"

router = Router(tags=["Fragments"])


@router.get(
    "/jobs/",
    auth=READER,
    summary="The user's latest jobs and cases, as HTML",
    response=problems(),
    openapi_extra=answer(
        "A section without scripts and styles",
        "<section>...</section>",
        kind=_HTML,
        schema={"type": "string"},
    ),
)
def own_jobs(request: HttpRequest) -> HttpResponse:
    """Show the latest jobs of the token's user, and the user's worst cases."""
    user = reader(request)
    own = Job.objects.visible_to(user).filter(owner=user.get_username())
    latest = own.select_related("cluster", "statistics").order_by("-submitted_at", "-pk")
    jobs = list(latest[:_JOBS])
    flag_texts.mark_jobs(jobs, user)
    found = cases.for_owner(user.get_username(), user)
    context = {
        "portal": settings.PORTAL_URL,
        "user": visible(user.get_username()),
        "headings": [f"{each.title} ({formatting.SHORT_UNITS[each.unit]})" for each in _METRICS],
        "jobs": [_row(job) for job in jobs],
        "cases": [
            (row.address, row.case.title, visible(row.case.application), row.highest)
            for row in found
        ],
        "simulated": any(job.cluster.simulated for job in jobs),
    }
    html = render_to_string("api/own_jobs.html", context)
    return HttpResponse(html, content_type=f"{_HTML}; charset=utf-8")


def _row(job: Job) -> dict[str, Any]:
    """Return a job as text, with the addresses of its page and of its worst case."""
    statistics = statistics_of(job)
    flag = job.worst_flag  # type: ignore[attr-defined]  # set by `mark_jobs`
    return {
        "address": reverse("job", args=[job.pk]),
        "id": visible(job.display_id),
        "name": visible(job.name),
        "state": job.get_state_display(),
        "started_at": job.started_at,
        "figures": [
            formatting.human(getattr(statistics, metric.name, None), metric.unit)
            for metric in _METRICS
        ],
        "quality": statistics.get_quality_display() if statistics else formatting.UNKNOWN,
        "case": flag and (reverse("case", args=[flag.case_id]), flag.title),
    }
