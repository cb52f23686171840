"""Streams of agents: which agent sends a source, and the removal of wrong data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.views.decorators.http import require_http_methods

from ioportal.ingest import senders, stream_discards
from ioportal.ingest.models import Sender, Stream
from ioportal.site.models import Source
from ioportal.web.common.staff_only import staff_only
from ioportal.web.common.tables import Column, Table
from ioportal.web.ingest.segments import tabs
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from django.http import HttpResponse
    from django.utils.safestring import SafeString

    from ioportal.web.common.requests import UserRequest

_PER_PAGE = 50


def _state(stream: Stream) -> SafeString:
    if stream.discarded_at is None:
        return format_html(
            '<a href="{}" aria-label="Discard the stream {}">Discard</a>',
            reverse("stream", args=[stream.pk]),
            stream.stream,
        )
    return format_html(
        "discarded {} by {}: {}",
        show.when(stream.discarded_at),
        show.visible(stream.discarded_by),
        show.visible(stream.discard_reason),
    )


_STREAMS: tuple[Column[Stream], ...] = (
    Column("source", "Source", "source__name", note="source__format"),
    Column("host", "Host"),
    Column("started_at", "First batch"),
    Column("latest_at", "Last delivery"),
    Column("stream", "Stream", form=lambda stream: show.code(str(stream))),
    Column("state", "State", _state, css="wrap"),
)


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
        **tabs("streams"),
        "waiting": waiting.select_related("source", "stream").order_by("source__name"),
        "table": Table(
            "Streams",
            _STREAMS,
            Stream.objects.select_related("source").order_by("-latest_at", "-pk"),
            query=request.GET,
            per_page=_PER_PAGE,
        ),
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
        {**tabs("streams"), "stream": discarded, "form": form},
        status=400 if form.errors else 200,
    )
