"""``/api/v1/panda/``: tasks, queues and plots of PanDA jobs; storage of PanDA jobs."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from django.core.exceptions import RequestDataTooBig
from django.db.models import F
from django.http import HttpRequest, HttpResponse, QueryDict
from ninja import Router, Schema
from pydantic import Field

from collectors.formats import BY_NAME
from collectors.parsed import SourceUnavailable
from collectors.source import Source
from ioportal.api.authentication import READER, WRITER, reader
from ioportal.api.panda import plots as panda_plots
from ioportal.api.panda.aggregates import aggregates
from ioportal.api.problems import Problem, invalid, problems
from ioportal.api.responses import answer, json_response
from ioportal.api.selection import selected
from ioportal.celery import wake
from ioportal.core.stages import ATTRIBUTE_PENDING
from ioportal.core.visible_text import storable
from ioportal.ingest.loaders import attempts
from ioportal.ingest.loading import InputFile, Loaded, LoadOptions, Origin, Refused, load
from ioportal.jobs.models import Job, WorkloadJob
from ioportal.jobs.populations.selections import PANDA_JOBS
from ioportal.site.models import Cluster

if TYPE_CHECKING:
    from datetime import datetime

_FORM = BY_NAME["panda"]
_CONTENT_BYTES = 512 << 20  # of a compressed body
_TIMES = ("last", "start", "end")
_ABOUT_TIMES = {
    "parameters": [
        {"in": "query", "name": name, "schema": {"type": "string"}, "description": about}
        for name, about in (
            ("last", "Ran in the last 24h, 7d, 30d, 90d or 1y"),
            ("start", "Ran after this time"),
            ("end", "Ran before this time"),
        )
    ]
}

router = Router(tags=["PanDA"])
_FIGURES = {
    "npandajobs": 300,
    "nbatchjobs": 12,
    "jobstatus": {"finished": 288, "failed": 12},
    "statistics": {"opens": {"title": "Opens", "unit": "count", "of": "batch job"}},
}


class StoredRecords(Schema):
    """The records are stored."""

    records: int = Field(examples=[300])
    accepted: int
    rejected: int
    already: bool = Field(description="Whether the same body was stored before")
    reasons: dict[str, int] = Field(description="Numbers of rejected records by reason")


@router.get(
    "/tasks/{jeditaskid}/",
    auth=READER,
    summary="I/O of a task",
    response=problems(404),
    openapi_extra=_ABOUT_TIMES
    | answer("Figures of the task", {"jeditaskid": "10995522", **_FIGURES}),
)
def task(request: HttpRequest, jeditaskid: int) -> HttpResponse:
    """Return statistics, histograms, trend and flags of the PanDA jobs of a task."""
    return _aggregates(request, "jeditaskid", str(jeditaskid))


@router.get(
    "/sites/{computingsite}/",
    auth=READER,
    summary="I/O of a PanDA queue",
    response=problems(404),
    openapi_extra=_ABOUT_TIMES
    | answer("Figures of the queue", {"computingsite": "ORNL_Titan_MCORE", **_FIGURES}),
)
def site(request: HttpRequest, computingsite: str) -> HttpResponse:
    """Return statistics, histograms, trend and flags of the PanDA jobs of a PanDA queue."""
    return _aggregates(request, "computingsite", storable(computingsite))


@router.get(
    "/jobs/{pandaid}/plots/",
    auth=READER,
    summary="Timelines of a PanDA job, as PanDA's monitor draws them",
    response=problems(404),
    openapi_extra=answer(
        "Lines by chart; the first is the x axis",
        {
            "plotsDict": {
                "opens-closes": {
                    "data": [["x", 0.5, 1.5], ["open", 100.0, 80.0]],
                    "details": {"title": "Opens and closes", "xlabel": "Wall time, min"},
                }
            },
            "error": "",
        },
    ),
)
def plots(request: HttpRequest, pandaid: int) -> HttpResponse:
    """Return the I/O of the batch job during a PanDA job, by minutes since its start."""
    job, start, end = _run(request, pandaid)
    return json_response({"plotsDict": panda_plots.plots(job, start, end), "error": ""})


@router.get(
    "/jobs/{pandaid}/series/",
    auth=READER,
    summary="Timelines of a PanDA job as rows",
    response=problems(404),
    openapi_extra=answer(
        "Rows by chart",
        {
            "series": [
                {
                    "name": "opens-closes",
                    "title": "Opens and closes",
                    "unit": "1/s",
                    "rows": [{"start": "2017-08-18T12:00:00Z", "open": 100.0}],
                }
            ]
        },
    ),
)
def series(request: HttpRequest, pandaid: int) -> HttpResponse:
    """Return the I/O of the batch job during a PanDA job, by time."""
    return json_response({"series": panda_plots.series(*_run(request, pandaid))})


@router.post(
    "/records/",
    auth=WRITER,
    summary="Store PanDA jobs",
    response={200: StoredRecords, **problems(404, 409, 413, 422)},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"type": "object"},
                    "example": {"jobs": [{"pandaid": 4012345678, "batchid": "3567126"}]},
                }
            },
        }
    },
)
def store(request: HttpRequest, cluster: str) -> dict[str, Any]:
    """Store records as PanDA's monitor returns them: an object with the list `jobs`.

    Of several records of a job, the one modified last counts, so they may be sent repeatedly.
    """
    origin = Cluster.objects.filter(name=storable(cluster)).first()
    if origin is None:
        raise Problem(404, "cluster", f"The cluster {cluster[:64]!r} is not registered.")
    try:
        body = request.body
    except RequestDataTooBig as error:
        raise Problem(413, "too_large", "The body is too large. Send fewer records.") from error
    loaded = _load(body, origin)
    wake(ATTRIBUTE_PENDING)
    segment = loaded.segment
    return {
        "records": segment.lines,
        "accepted": segment.accepted,
        "rejected": segment.rejected,
        "already": loaded.already,
        "reasons": segment.rejected_by_reason,
    }


def _load(body: bytes, cluster: Cluster) -> Loaded:
    file = InputFile(lambda: _source(body), Origin(cluster=cluster))
    try:
        (loaded,) = load([file], _FORM, attempts(_FORM, LoadOptions()))
    except (Refused, SourceUnavailable) as error:
        raise Problem(422, "refused", str(error)) from error
    return loaded


def _source(body: bytes) -> Source:
    return Source(BytesIO(body), "the body", most_bytes=_CONTENT_BYTES)


def _aggregates(request: HttpRequest, name: str, value: str) -> HttpResponse:
    query = QueryDict(mutable=True)
    for parameter, values in request.GET.lists():
        if parameter not in _TIMES:
            raise invalid(parameter, f"It is not one of {', '.join(_TIMES)}.")
        query.setlist(parameter, values)
    query[name] = value
    user = reader(request)
    found = aggregates(user, selected(PANDA_JOBS, user, query), query.urlencode())
    if found is None:
        raise Problem(404, "missing", "No PanDA job that you may see matches.")
    return json_response({name: value, **found})


def _run(request: HttpRequest, pandaid: int) -> tuple[Job, datetime, datetime]:
    """Return the batch job of a PanDA job, and the time of its run."""
    user = reader(request)
    panda_job = (
        WorkloadJob.objects.visible_to(user)
        .filter(panda_id=pandaid)
        .order_by(F("modified_at").desc(nulls_last=True), "-pk")
        .first()
    )
    if panda_job is None:
        raise Problem(404, "missing", f"No PanDA job {pandaid} that you may see is known.")
    holders = Job.objects.visible_to(user).select_related("statistics")
    job = holders.filter(pk=panda_job.batch_job_id or 0).first()
    start = panda_job.started_at
    end = panda_job.ended_at or (job.known_until if job else None)
    if job is None or start is None or end is None or start >= end:
        raise Problem(404, "no_run", f"PanDA job {pandaid} has no known run in one batch job.")
    return job, start, end
