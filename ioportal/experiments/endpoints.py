"""``/api/v1/experiments/``: runs of experiments, and files of them (docs/api.md)."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  (pydantic reads it)
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID  # noqa: TC003  (ninja reads it)

from django.conf import settings
from django.db import transaction
from django.shortcuts import get_object_or_404
from django.urls import reverse
from ninja import Query, Router, Schema, Status
from pydantic import ConfigDict, Field, field_validator

from collectors.experiments.numbers import LARGEST
from collectors.formats import BY_NAME
from ioportal.api.authentication import READER, WRITER, reader
from ioportal.api.problems import Problem, problems
from ioportal.api.responses import answer, json_response
from ioportal.celery import wake
from ioportal.core.stages import LOAD_UPLOADS
from ioportal.core.time_fields import EARLIEST, LATEST
from ioportal.core.visible_text import storable
from ioportal.experiments import uploads
from ioportal.experiments.experiments import (
    ARM_CHARACTERS,
    NAME_CHARACTERS,
    Ambiguous,
    RunRecord,
    experiment_to_change,
    job_metrics,
    record_runs,
)
from ioportal.experiments.models import Run, Upload
from ioportal.ingest.manifest import Moment  # noqa: TC001  (pydantic reads it)
from ioportal.jobs.models import Job

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from ioportal.experiments.models import Experiment

BODY_BYTES = 32 << 20
_TEXTS = 200  # labels, metrics or steps of a run

router = Router(tags=["Experiments"])

_Number = Annotated[float, Field(strict=True, ge=-LARGEST, le=LARGEST)]

_FILE = {
    "requestBody": {
        "required": True,
        "description": f"A file, plain, gzip or zstd, of at most {BODY_BYTES:,} bytes",
        "content": {
            "application/octet-stream": {
                "schema": {"type": "string", "format": "binary"},
                "example": "arm,run,wall_s\nbefore,1,725.73\nafter,1,674.95\n",
            }
        },
    }
}


class Step(Schema):
    """A part of a run."""

    name: str = Field(max_length=NAME_CHARACTERS, examples=["stage in"])
    seconds: float = Field(ge=0, le=1e9, strict=True)


class BatchJob(Schema):
    """The batch job that was the run."""

    cluster: str
    batch_id: str
    array_index: str = ""


class RunBody(Schema):
    """A run; units are in the names of metrics."""

    model_config = ConfigDict(extra="forbid")

    arm: str = Field("", max_length=ARM_CHARACTERS, examples=["before"])
    state: Literal[("", *Run.State.values)] = ""  # type: ignore[valid-type]
    started_at: Moment | None = None
    scale: float | None = Field(None, ge=0, le=LARGEST, strict=True, description="Nodes")
    events: int | None = Field(None, ge=0, lt=2**63, strict=True)
    labels: dict[str, str] = Field({}, max_length=_TEXTS, examples=[{"protocol": "xroot"}])
    metrics: dict[str, _Number] = Field({}, max_length=_TEXTS, examples=[{"wall_s": 674.95}])
    steps: list[Step] = Field([], max_length=_TEXTS)
    recipe: dict[str, str] = Field({}, max_length=_TEXTS, examples=[{"release": "3_3_6"}])
    job: BatchJob | None = Field(None, description="Its figures become metrics of the run")
    panda_id: int | None = Field(None, ge=1, lt=2**63, strict=True)

    @field_validator("started_at", mode="before")
    @classmethod
    def _is_text(cls, moment: object) -> object:
        if isinstance(moment, int | float):
            raise ValueError("Expected a time such as 2017-08-18T12:00:00Z.")  # noqa: TRY004  (pydantic's)
        return moment

    @field_validator("started_at")
    @classmethod
    def _is_of_our_time(cls, moment: datetime | None) -> datetime | None:
        if moment and not EARLIEST <= moment < LATEST:
            raise ValueError("The time is not between 1970 and 2200.")
        return moment


class StoredRun(Schema):
    """The run is stored."""

    url: str = Field(examples=["https://io.example.org/experiments/protocols/runs/7/"])
    created: bool


class FileFields(Schema):
    """Where a file belongs."""

    name: str = Field(min_length=1, max_length=255, examples=["job.strace.gz"])
    arm: str = Field("", max_length=ARM_CHARACTERS)
    run: str = Field("", max_length=NAME_CHARACTERS, description="Default: the name of the file")
    format: str = Field("", description="Default: recognised by the first bytes")
    replace: bool = Field(default=False, description="Replace data of the same run")


class UploadState(Schema):
    """A file on its way into an experiment."""

    id: str = Field(examples=["0b0a6a1f-6f53-4d5e-9c70-2b1f1d2b8f10"])
    state: str = Field(examples=["pending"], description=", ".join(Upload.State.values))
    message: str = Field(description="The result, or the reason of a failure")
    lines: int = Field(description="Lines parsed so far")
    url: str = Field(examples=["https://io.example.org/experiments/protocols/"])


@router.put(
    "/{experiment}/runs/{run}/",
    auth=WRITER,
    summary="Store a run",
    response={200: StoredRun, **problems(409, 422)},
)
def store_run(request: HttpRequest, experiment: str, run: str, body: RunBody) -> dict[str, object]:
    """Store a run under its name; the same body again changes nothing.

    The experiment is named by its slug or name; a new one belongs to the user of the token.
    """
    job = _job(request, body.job) if body.job else None
    metrics = {**(job_metrics(job) if job else {}), **_texts(body.metrics)}
    record = RunRecord(
        name=_name(run),
        arm=storable(body.arm),
        state=body.state,
        started_at=body.started_at or (job.started_at if job else None),
        scale=body.scale,
        events=body.events,
        labels=_texts(body.labels),
        metrics=metrics,
        steps=[{"name": storable(step.name), "seconds": step.seconds} for step in body.steps],
        recipe=_texts(body.recipe),
    )
    with transaction.atomic():
        into = _experiment(request, experiment)
        created = not into.runs.filter(name=record.name).exists()
        [stored] = record_runs(into, [record], replace=True)
        if job or body.panda_id:
            Run.objects.filter(pk=stored.pk).update(job=job, panda_id=body.panda_id)
    url = reverse("run", args=[into.slug, stored.pk])
    return {"url": f"{settings.PORTAL_URL}{url}", "created": created}


@router.post(
    "/{experiment}/files/",
    auth=WRITER,
    summary="Upload a file",
    response={202: UploadState, **problems(409, 413, 422)},
    openapi_extra=_FILE,
)
def upload_file(
    request: HttpRequest, experiment: str, fields: Query[FileFields]
) -> Status[dict[str, object]]:
    """Store a file; a worker loads it into the experiment.

    Without a format, it is recognised by the first bytes. Larger files: in the browser, or
    with ``manage.py ingest``.
    """
    if fields.format and "experiment" not in getattr(BY_NAME.get(fields.format), "options", ()):
        raise Problem(422, "format", f"{fields.format[:64]!r} is not a format of experiments.")
    content = request.read(BODY_BYTES + 1)
    if len(content) > BODY_BYTES:
        raise Problem(413, "too_large", f"A file has at most {BODY_BYTES:,} bytes here.")
    user = reader(request)
    with transaction.atomic():
        upload = Upload(
            owner=user,
            experiment=_experiment(request, experiment),
            arm=storable(fields.arm),
            run=storable(fields.run),
            format=fields.format,
            replace=fields.replace,
        )
        try:
            [file] = uploads.declare(upload, [(fields.name, len(content))])
            uploads.receive(file, [content])
            uploads.complete(upload)
        except uploads.Invalid as error:
            raise Problem(422, "file", str(error)) from error
    wake(LOAD_UPLOADS)
    upload.refresh_from_db()
    return Status(202, _state(upload))


@router.get(
    "/uploads/{upload_id}/",
    auth=READER,
    summary="State of an upload",
    response=problems(404),
    openapi_extra=answer(
        "The state",
        {
            "id": "0b0a6a1f-6f53-4d5e-9c70-2b1f1d2b8f10",
            "state": "loaded",
            "message": "12 lines, none rejected.",
            "lines": 12,
            "url": "https://io.example.org/experiments/protocols/",
        },
    ),
)
def upload_state(request: HttpRequest, upload_id: UUID) -> HttpResponse:
    """Return whether a file is loaded; if not, why."""
    visible = Upload.objects.visible_to(reader(request)).select_related("experiment")
    return json_response(_state(get_object_or_404(visible, pk=upload_id)))


def _experiment(request: HttpRequest, name: str) -> Experiment:
    """Return an experiment that the user may change, by slug or name; or a new one."""
    try:
        return experiment_to_change(_name(name), reader(request))
    except Ambiguous as error:
        raise Problem(409, "ambiguous_name", str(error)) from error


def _job(request: HttpRequest, wanted: BatchJob) -> Job:
    jobs = Job.objects.visible_to(reader(request)).filter(
        cluster__name=storable(wanted.cluster),
        batch_id=storable(wanted.batch_id),
        array_index=storable(wanted.array_index),
    )
    job = jobs.select_related("statistics").order_by("-submitted_at", "-pk").first()
    if job is None:
        raise Problem(
            422, "job", f"Job {wanted.batch_id[:64]} of {wanted.cluster[:64]} is unknown."
        )
    return job


def _name(text: str) -> str:
    return storable(text).strip()[:NAME_CHARACTERS] or "unnamed"


def _texts(named: dict[str, Any]) -> dict[str, Any]:
    return {
        storable(name): storable(value) if isinstance(value, str) else value
        for name, value in named.items()
    }


def _state(upload: Upload) -> dict[str, object]:
    url = reverse("experiment", args=[upload.experiment.slug])
    return {
        "id": str(upload.pk),
        **{name: getattr(upload, name) for name in ("state", "message", "lines")},
        "url": f"{settings.PORTAL_URL}{url}",
    }
