"""``GET /api/v1/jobs/CLUSTER/JOB/report``: the report of a job (docs/api.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse, JsonResponse
from ninja import Router

from ioportal.api.authentication import READER, reader
from ioportal.api.problems import Problem, problems
from ioportal.api.responses import answer
from ioportal.core.visible_text import visible
from ioportal.findings.job_report import JobReport, reportable
from ioportal.jobs.job_filters import by_id
from ioportal.jobs.models import Job

if TYPE_CHECKING:
    from django.http import HttpRequest

_RETRY_S = 15
_TEXT, _JSON = "text/plain", "application/json"
_EXAMPLE = "Job 3567126 on titan\n...\nhttps://io.example.org/jobs/1042/\n"

router = Router(tags=["Jobs"])


@router.get(
    "/{cluster}/{job}/report",
    auth=READER,
    url_name="job_report",
    summary="Report of a job",
    response=problems(404, 409),
    openapi_extra=answer(
        "The report, as text or JSON by the header Accept", _EXAMPLE, _JSON, kind=_TEXT
    ),
)
def job_report(request: HttpRequest, cluster: str, job: str) -> HttpResponse:
    """Report what the latest job of an id did to the filesystems."""
    user = reader(request)
    named = Job.objects.visible_to(user).filter(
        by_id([visible(job)]), cluster__name=visible(cluster)
    )
    latest = named.order_by("-submitted_at", "-pk").values_list("pk", flat=True).first()
    if latest is None:
        raise Problem(
            404, "job", "No job of this id that you may see is known. Accounting may follow.",
            retry_after_s=_RETRY_S,
        )  # fmt: skip
    ended = reportable(Job.objects.filter(pk=latest)).first()
    if ended is None:
        raise Problem(
            409, "pending", "The job has not ended, or its statistics are being computed.",
            retry_after_s=_RETRY_S,
        )  # fmt: skip
    report = JobReport(ended, user)
    if request.get_preferred_type([_TEXT, _JSON]) == _JSON:
        return JsonResponse(report.facts)
    return HttpResponse(f"{report.text}\n", content_type=f"{_TEXT}; charset=utf-8")
