"""Streams of agents: which agent sends a source, and the removal of wrong data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from ioportal.ingest import senders, stream_discards
from ioportal.ingest.models import Sender, Stream
from ioportal.site.models import Source
from ioportal.web.common.staff_only import staff_only
from ioportal.web.ingest import segments

if TYPE_CHECKING:
    from django.http import HttpResponse

    from ioportal.web.common.requests import UserRequest

_PER_PAGE = 50


class ReleaseForm(forms.Form):
    """A waiting agent that may take over."""

    source = forms.ModelChoiceField(Source.objects.all(), to_field_name="name")
    agent = forms.UUIDField()


class DiscardForm(forms.Form):
    """The confirmation of a discarded stream."""

    reason = forms.CharField(label="Reason", max_length=200)
    confirmed = forms.BooleanField(label="Delete all data of this stream")


@require_http_methods(["GET", "HEAD", "POST"])
@staff_only
def streams(request: UserRequest) -> HttpResponse:
    """List streams and waiting agents; let a waiting agent take over."""
    if request.method == "POST":
        form = ReleaseForm(request.POST)
        host = None
        if form.is_valid():
            source, agent = form.cleaned_data["source"], form.cleaned_data["agent"]
            host = senders.release(source, request.user.get_username(), agent)
        if host:
            messages.success(request, f"The agent on {host} takes over with its next attempt.")
        else:
            messages.error(request, "This agent no longer waits. Nothing was changed.")
        return redirect("streams")
    waiting = Sender.objects.filter(
        stream__isnull=False, rival_at__gt=timezone.now() - senders.RECENT
    )
    context = {
        "section": "ingest",
        "tab": "streams",
        "counts": segments.tab_counts(),
        "waiting": waiting.select_related("source", "stream").order_by("source__name"),
        "page": Paginator(
            Stream.objects.select_related("source").order_by("-latest_at", "-pk"),
            _PER_PAGE,
        ).get_page(request.GET.get("page")),
    }
    return render(request, "ingest/streams.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_only
def stream(request: UserRequest, pk: int) -> HttpResponse:
    """Ask for confirmation, and discard a stream."""
    discarded = get_object_or_404(Stream.objects.select_related("source"), pk=pk)
    form = DiscardForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        by = request.user.get_username()
        try:
            stream_discards.discard(discarded, by, form.cleaned_data["reason"])
        except stream_discards.Invalid as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, "The stream is discarded. Its rows are being deleted.")
            return redirect("streams")
    return render(
        request,
        "ingest/stream.html",
        {
            "section": "ingest",
            "tab": "streams",
            "counts": segments.tab_counts(),
            "stream": discarded,
            "form": form,
        },
        status=400 if form.errors else 200,
    )
