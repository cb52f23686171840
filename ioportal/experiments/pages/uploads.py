"""Uploads: the form, parts of files, and the state of an upload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.http import JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from ioportal.celery import wake
from ioportal.core.stages import LOAD_UPLOADS
from ioportal.experiments import uploads
from ioportal.experiments.experiments import Ambiguous
from ioportal.experiments.models import Experiment, Upload, UploadFile
from ioportal.experiments.pages.forms import UploadForm
from ioportal.telemetry.free_space import database_full
from ioportal.web.common.requests import parameter

if TYPE_CHECKING:
    from django.http import HttpResponse

    from ioportal.web.common.requests import UserRequest


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: UserRequest) -> HttpResponse:
    """Upload files; of declared files only names and sizes are sent, their content follows."""
    if request.method != "POST":
        editable = Experiment.objects.editable_by(request.user)
        known = editable.filter(slug=parameter(request, "experiment")).first()
        return _form(request, UploadForm(request.user, initial={"experiment": known or ""}))
    form = UploadForm(request.user, request.POST, request.FILES)
    if form.is_valid():
        try:
            upload = _store(form)
        except Ambiguous as error:
            form.add_error("experiment", str(error))
        except uploads.Invalid as error:
            form.add_error("content", str(error))
        else:
            return _addresses(upload) if form.cleaned_data["declared"] else _loading(upload)
    if form.cleaned_data.get("declared"):
        return JsonResponse({"errors": form.errors}, status=400)
    return _form(request, form)


@transaction.atomic
def _store(form: UploadForm) -> Upload:
    upload = form.upload()
    if declared := form.cleaned_data["declared"]:
        uploads.declare(upload, declared)
        return upload
    contents = form.cleaned_data["content"]
    files = uploads.declare(upload, [(content.name, content.size) for content in contents])
    for file, content in zip(files, contents, strict=True):
        uploads.receive(file, content.chunks())
    uploads.complete(upload)
    return upload


def _addresses(upload: Upload) -> JsonResponse:
    """Return where the parts of each file are sent."""
    return JsonResponse(
        {
            "part_bytes": uploads.PART_BYTES,
            "files": [
                reverse("upload_part", args=[upload.pk, file.pk, 0]).removesuffix("0/")
                for file in upload.files.all()
            ],
            "complete": reverse("upload_complete", args=[upload.pk]),
        },
        status=201,
    )


@require_POST
def part(request: UserRequest, pk: str, file: int, number: int) -> JsonResponse:
    """Receive a part of a file: the body of the request."""
    found = get_object_or_404(
        UploadFile.objects.select_related("upload"),
        pk=file,
        upload__in=Upload.objects.filter(pk=pk, owner=request.user),
    )
    try:
        uploads.receive_part(found, number, request.read(uploads.PART_BYTES + 1))
    except uploads.Invalid as error:
        return JsonResponse({"errors": {"content": [str(error)]}}, status=400)
    return JsonResponse({})


@require_POST
def complete(request: UserRequest, pk: str) -> JsonResponse:
    """Release an upload for loading."""
    upload = get_object_or_404(Upload, pk=pk, owner=request.user)
    try:
        uploads.complete(upload)
    except uploads.Invalid as error:
        return JsonResponse({"errors": {"content": [str(error)]}}, status=400)
    wake(LOAD_UPLOADS)
    return JsonResponse({"url": reverse("upload_state", args=[upload.pk])})


@require_safe
def upload(request: UserRequest, pk: str) -> HttpResponse:
    """Show the state of an upload; it leads to its experiment when it is loaded."""
    found = get_object_or_404(
        Upload.objects.visible_to(request.user).select_related("experiment"), pk=pk
    )
    context = {
        "section": "experiments",
        "upload": found,
        "experiment": found.experiment,
        "full": None if found.is_finished else database_full(),
    }
    return render(request, "experiments/upload_state.html", context)


def _loading(upload: Upload) -> HttpResponse:
    wake(LOAD_UPLOADS)
    return redirect("upload_state", upload.pk)


def _form(request: UserRequest, form: UploadForm) -> HttpResponse:
    context = {
        "section": "experiments",
        "form": form,
        "quotas": uploads.quotas_of_user(request.user),
        "full": database_full(),
    }
    status = 400 if form.errors else 200
    return render(request, "experiments/upload.html", context, status=status)
